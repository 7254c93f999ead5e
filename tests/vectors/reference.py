"""Mechanisms a second time, in plain integers and fractions, straight from its contract.

Nothing of discreet is used here. Reading a file, the canonical JSON, the exact check, the meaning
of a report and the estimates are written for the eye: every pair, every state, no short cuts.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, gcd, prod
from pathlib import Path
from typing import Any

import picks

D = 2**32
TOTAL = 2**52  # of a row of hits
SAFE = 2**53 - 1
Document = dict[str, Any]


class Refused(Exception):
    """With the word of the verdict: mechanism, fingerprint or guarantee."""


def must(condition: bool, word: str = "mechanism") -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused(word)


def verdict(document: Any) -> str:
    """What becomes of a document: ok, or the word of its refusal."""
    try:
        must(isinstance(document, dict))
        must(document.get("fingerprint") == sha256(body_of(document)), "fingerprint")
        check_shape(document)
        must(holds(document), "guarantee")
    except Refused as refused:
        return str(refused)
    return "ok"


def body_of(document: Document) -> Document:
    """All that the fingerprint covers."""
    return {key: value for key, value in document.items() if key != "fingerprint"}


# ---- files and canonical JSON --------------------------------------------------------------------

SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def read(raw: bytes) -> Any:
    """JSON as IEEE doubles see it."""
    try:
        text = raw.decode("utf-8")
        return json.loads(
            text.removeprefix("\ufeff"), parse_int=number, parse_float=number,
            parse_constant=number, object_pairs_hook=once,
        )  # fmt: skip
    except (ValueError, RecursionError):
        raise Refused("mechanism") from None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that names every key once."""
    must(len({key for key, _ in pairs}) == len(pairs))
    return dict(pairs)


def number(text: str) -> int:
    """The integer that a number is once it is a double; every other number is refused."""
    value = float(text)
    must(value == value and abs(value) <= SAFE and value == int(value))
    return int(value)


def canonical(value: Any) -> str:
    """Sorted keys, no blanks, nothing escaped but what must be."""
    if isinstance(value, dict):
        rows = (f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value))
        return "{" + ",".join(rows) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return '"' + "".join(map(escaped, value)) + '"'
    return str(value)


def escaped(c: str) -> str:
    """A character inside a text."""
    return SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c)


def sha256(document: Any) -> str:
    """The fingerprint: how the mechanism was found is not covered by it. Half a surrogate pair,
    which has no bytes, counts as U+FFFD.
    """
    covered = {k: v for k, v in document.items() if k not in ("model", "prior", "certificate")}
    text = re.sub("[\ud800-\udfff]", "\ufffd", canonical(covered))
    return hashlib.sha256(text.encode()).hexdigest()


# ---- the shape of a document ---------------------------------------------------------------------

MODEL = re.compile("[a-z][a-z0-9]{0,19}")
KEYS = ["format", "policy", "model", "prior", "encoding", "padding", "groups", "shares", "parts"]
POLICY_KEYS = ["question", "kind", "notion", "items", "level_of", "levels", "pairs"]
SET_KEYS = ["strict"]
SCALE_KEYS = ["cap"]
NOTIONS = ("min", "avg", "one-way", "blocks", "scale")
OPEN = "open"  # in the place of a level's budget
NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
LOGARITHM = re.compile(r"ln\(([1-9][0-9]*)(?:/([1-9][0-9]*))?\)(?:/([1-9][0-9]*))?")
RATIO = re.compile("([1-9][0-9]*)/([1-9][0-9]*)")
MOST_ROOTS = 1000
DECIMAL = re.compile(r"(0|[1-9][0-9]{0,29})(\.[0-9]{0,29}[1-9])?")


def table(value: Any, keys: list[str]) -> None:
    """An object with exactly these keys."""
    must(isinstance(value, dict) and sorted(value) == sorted(keys))


def rows(value: Any, count: int | None = None) -> list[Any]:
    """A list, of so many entries."""
    must(isinstance(value, list) and count in (None, len(value)))
    return value


def whole(value: Any, low: int = -SAFE, high: int = SAFE) -> int:
    """An integer within limits."""
    must(type(value) is int and low <= value <= high)
    return value


# The derived property Default_Ignorable_Code_Point of Unicode, first and last of every run.
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip
BLANK = (0x2800, 0x16FE4, 0x1D159)  # show a blank, and are symbols or marks
JOINERS = (0x200C, 0x200D)
SELECTORS = [(0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)]
CONTRACT = Path(__file__).parent / "v2" / "constants.json"
SPELLED = json.loads(CONTRACT.read_text(encoding="utf-8"))
TWINS, RESERVED = SPELLED["twins"], SPELLED["survey"]["reserved"]
LETTERS = {twin: letter for letter, twins in TWINS.items() for twin in twins}


def within(point: int, runs: list[tuple[int, int]]) -> bool:
    return any(first <= point <= last for first, last in runs)


def unseen(c: str) -> bool:
    """Shows nothing, or a blank that is none."""
    return within(ord(c), IGNORABLE) or ord(c) in BLANK


def silent(c: str) -> bool:
    """Shows nothing, and scripts are spelled with it."""
    return within(ord(c), SELECTORS) or ord(c) in JOINERS


def hidden(c: str) -> bool:
    """A control or formatting character, no character, or one that nobody sees or needs."""
    kind, point = unicodedata.category(c), ord(c)
    outside = point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF or 0x13430 <= point <= 0x1345F
    refused = kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or outside or unseen(c)
    return refused and not silent(c)


def prose(text: Any) -> bool:
    """A text without hidden characters."""
    return isinstance(text, str) and not any(map(hidden, text))


def printable(text: Any) -> bool:
    """The same, and no blanks but the plain one."""
    return prose(text) and all(c == " " or unicodedata.category(c) != "Zs" for c in text)


def label(text: Any) -> str:
    """A text with something to see."""
    must(printable(text) and any(c != " " and not unseen(c) for c in text))
    return text


def same(first: str, second: str) -> bool:
    """Whether people take two labels for one: in other forms of letters, case or blanks, or with
    letters that look like others.
    """
    one, two = ("".join(c for c in text if not unseen(c)) for text in (first, second))
    return form(one) == form(two) or form(latin(one)) == form(latin(two))


@cache
def form(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return " ".join(unicodedata.normalize("NFKD", decomposed).split())


@cache
def latin(text: str) -> str:
    """Letter by letter what it looks like, with and without its accents."""
    once = "".join(LETTERS.get(c, c) for c in text)
    return "".join(LETTERS.get(c, c) for c in unicodedata.normalize("NFKD", once))


def check_shape(document: Any) -> None:
    """Everything that the contract asks of a document but its fingerprint and the exact check."""
    optional = ["certificate"] if "certificate" in document else []
    table(body_of(document), [*KEYS, *optional])
    must(document["format"] == "discreet-mechanism/3")
    must(isinstance(document["model"], str) and MODEL.fullmatch(document["model"]) is not None)
    must(document["prior"] in ("uniform", "worst", "given"))
    check_policy(document["policy"])
    check_encoding(document["encoding"], document["policy"])
    sets = document["policy"]["kind"] != "single"
    padded = {"hits": (1, 64), "picks": (1, 64), "each": (0, 0)}.get(kind_of(document), (1, 65536))
    whole(document["padding"], *(padded if sets else (0, 0)))
    groups = rows(document["groups"], len(document["policy"]["levels"]))
    for k, group in enumerate(groups):
        whole(group, 0, max(groups[:k], default=-1) + 1)
    count = max(groups) + 1
    empty = document["padding"] if kind_of(document) == "picks" else sets
    shares = [whole(x, 0, D) for x in rows(document["shares"], count + empty)]
    must(sum(shares) == D)
    check_parts(document, count)
    if optional:
        check_certificate(document["certificate"])


def check_parts(document: Document, count: int) -> None:
    """So many numbers per group; of hits, a row for every number of own items."""
    parts, kind = rows(document["parts"]), kind_of(document)
    must(1 <= len(parts) <= (1 if kind == "each" else 256))
    for part in parts:
        if kind == "hits":
            check_hits_part(part, count, document["padding"])
            continue
        if kind == "picks":
            check_picks_part(part, count, document["padding"])
            continue
        none = ["none"] if document["policy"]["kind"] != "single" else []
        table(part, ["chance", "own", "other", *none])
        for key in ("chance", "own", "other"):
            for value in rows(part[key], count):
                whole(value)
        whole(part.get("none", 0))
    if kind == "picks":
        blocks, s = [len(part["sizes"]) for part in parts], document["padding"]
        must(sum(comb(s + 2 * b, s) * b**3 for b in blocks) <= 2**20)
        most = max(picks.body_size(document, part) for part in parts)
        must(document["encoding"]["size"] == 1 + most)
    if kind == "ticket":
        q, t = document["encoding"]["q"], document["encoding"]["t"]
        must(len(parts) * q ** (t + 1) <= D)


def plain(part: Document) -> bool:
    """Whether some group is named by its own people and by nobody else: as it is."""
    return any(
        own == D and not other for own, other in zip(part["own"], part["other"], strict=True)
    )


def only_plain(part: Document) -> bool:
    """Whether every group of the part is sent as it is, or does not use the part."""
    cells = zip(part["chance"], part["own"], part["other"], strict=True)
    return all((own, other) == (D if chance else 0, 0) for chance, own, other in cells)


def check_hits_part(part: Any, count: int, padding: int) -> None:
    """Which groups are active, the threshold, and the rows."""
    table(part, ["chance", "active", "limit", "rows"])
    whole(part["chance"])
    whole(part["limit"])
    must(1 in [whole(x, 0, 1) for x in rows(part["active"], count)])
    for row in rows(part["rows"], padding):
        for value in rows(row, 4):
            whole(value)


def check_picks_part(part: Any, count: int, padding: int) -> None:
    """The cut's chance and blocks, the numbers of items, and the bunches of every row."""
    table(part, ["chance", "blocks", "sizes", "rows"])
    whole(part["chance"])
    blocks = [whole(x) for x in rows(part["blocks"], count)]
    named = list(dict.fromkeys(x for x in blocks if x))
    must(named and named == list(range(1, len(named) + 1)))
    for k in rows(part["sizes"], len(named)):
        whole(k)
    for row in rows(part["rows"], comb(padding + len(named), padding)):
        for bunch in rows(row):
            must(len(rows(bunch)) > 1)
            for value in bunch:
                whole(value)


def check_policy(policy: Any) -> None:
    """Items, levels and pairs; of sets also what is protected, and how."""
    sets = isinstance(policy, dict) and policy.get("kind") == "set"
    must(isinstance(policy, dict))
    more = [key for key in ("totals", "last") if key in policy]
    more += SCALE_KEYS if policy.get("notion") == "scale" else []
    table(policy, [*POLICY_KEYS, *(SET_KEYS if sets else []), *more])
    if sets:
        must(type(policy["strict"]) is bool)
    must(policy["kind"] != "each" or not policy["pairs"])
    must(prose(policy["question"]))
    must(policy["kind"] in ("single", "set", "each") and policy["notion"] in NOTIONS)
    for key in ("items", "levels"):
        names = rows(policy[key])
        if key == "levels":
            for level in policy["levels"]:
                table(level, ["name", "epsilon"])
                if level["epsilon"] != OPEN:
                    budget(level["epsilon"])
            names = [level["name"] for level in policy["levels"]]
        must(len(names) > 0)
        for name in names:
            label(name)
        must(not any(same(x, y) for x, y in combinations(names, 2)))
    if "totals" in policy:
        check_totals(policy)
    if "last" in policy:
        check_last(policy)
    places = [
        whole(k, 0, len(policy["levels"]) - 1)
        for k in rows(policy["level_of"], len(policy["items"]))
    ]
    must(len(set(places)) == len(policy["levels"]))
    must(not policy["pairs"] or len(names) <= 200)
    seen: dict[tuple[str, str], str] = {}
    for pair in rows(policy["pairs"]):
        table(pair, ["levels", "epsilon", *(["one_way"] if "one_way" in pair else [])])
        must(pair.get("one_way", True) is True)
        two = rows(pair["levels"], 2)
        must(all(name in names for name in two))
        if pair["epsilon"] != "":
            budget(pair["epsilon"])
        must("one_way" not in pair or two[0] != two[1])
        for way in ways(pair):
            must(seen.setdefault(way, pair["epsilon"]) == pair["epsilon"])
    check_notion(policy)


def ways(pair: Document) -> list[tuple[str, str]]:
    """The ordered pairs of levels that a row of pairs is about."""
    first, second = pair["levels"]
    return [(first, second), *([] if "one_way" in pair else [(second, first)])]


def check_notion(policy: Document) -> None:
    """Open levels, directions, blocks and scales where they can be kept."""
    kind, notion, levels, pairs = (policy[key] for key in ("kind", "notion", "levels", "pairs"))
    opened = [level for level in levels if level["epsilon"] == OPEN]
    must(not opened or (notion == "one-way" and kind == "single"))
    must(len(opened) < len(levels) or len(pairs) > 0)
    one_way = any("one_way" in pair for pair in pairs)
    must(kind != "set" or (notion in ("min", "avg") and not one_way))
    must(kind != "each" or notion in ("min", "avg", "one-way"))
    must(notion != "blocks" or len(levels) <= 200)
    if notion == "scale":
        m = len(policy["items"])
        must(2 <= m <= 50 and not pairs and policy["level_of"] == [*range(m)])
        must([level["name"] for level in levels] == policy["items"])
        must(len({level["epsilon"] for level in levels}) == 1)
        whole(policy["cap"], 0, m - 1)


def check_totals(policy: Any) -> None:
    """Sums of items that have a name, which no item looks like; only of single answers."""
    must(policy["kind"] == "single" and len(rows(policy["totals"])) > 0)
    for total in policy["totals"]:
        table(total, ["name", "items"])
        label(total["name"])
        items = rows(total["items"])
        must(len(items) > 0 and all(isinstance(x, str) and x in policy["items"] for x in items))
        must(len(set(items)) == len(items))
    names = [*policy["items"], *(total["name"] for total in policy["totals"])]
    must(not any(same(x, y) for x, y in combinations(names, 2)))


def check_last(policy: Any) -> None:
    """Some of the items, each once; the points of a scale stay where they are."""
    last = rows(policy["last"])
    must(len(last) > 0 and all(isinstance(x, str) and x in policy["items"] for x in last))
    must(len(set(last)) == len(last) and policy["notion"] != "scale")


ABOUT = json.loads(CONTRACT.read_text(encoding="utf-8"))["about"]
TAG = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def check_about(about: Any) -> None:
    """Who asks, what for, from when to when: whatever is said, and nothing that is not."""
    must(isinstance(about, dict) and len(about) > 0 and set(about) <= set(ABOUT["keys"]))
    for key, most in ABOUT["characters"].items():
        if key in about:
            text = about[key]
            must(isinstance(text, str) and len(text) <= most)
            lines = text.split("\n") if key in ABOUT["several_lines"] else [text]
            must(all(map(prose, lines)))
            blanks = [unseen(c) or c == "\n" or unicodedata.category(c) == "Zs" for c in text]
            must(not all(blanks))
            must(not any(c == "\n" or unicodedata.category(c) == "Zs" for c in (text[0], text[-1])))
    must(re.match("https?://", about.get("notice", "http://")) is not None)
    times = [about[key] for key in ("opens", "closes") if key in about]
    for time in times:
        must(isinstance(time, str) and bool(re.fullmatch(r"[0-9TZ:-]{20}", time)))
        try:
            known = datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            known = None
        must(known is not None and known.year >= 1970)
    must(times == sorted(set(times)))
    if "language" in about:
        must(isinstance(about["language"], str) and bool(TAG.fullmatch(about["language"])))
    if "minimum" in about:
        whole(about["minimum"], *ABOUT["minimum"])
    must(about.get("rehearsal", True) is True)


def budget(text: Any) -> None:
    """A budget in its canonical spelling."""
    must(isinstance(text, str) and len(text) <= 100)
    log, ratio = LOGARITHM.fullmatch(text), RATIO.fullmatch(text)
    if log:
        k, over = int(log[1]), int(log[2] or 1)
        must(k > over and gcd(k, over) == 1 and (log[2] is None or over > 1))
        must(log[3] is None or 1 < int(log[3]) <= MOST_ROOTS)
    elif ratio:  # decimals never end: the denominator divides no power of ten
        n, d = int(ratio[1]), int(ratio[2])
        must(gcd(n, d) == 1 and 10**1000 % d != 0)
        must(Fraction(1, 10**29) <= Fraction(n, d) < 10**30)
    else:
        must(NUMBER.fullmatch(text) is not None)
        must(Fraction(1, 10**29) <= Fraction(text) < 10**30)


def check_encoding(encoding: Any, policy: Document) -> None:
    """That reports of this kind can be written, and belong to the policy."""
    must(isinstance(encoding, dict) and isinstance(encoding.get("kind"), str))
    kind, m = encoding["kind"], len(policy["items"])
    must(kind in ("fixed", "bits", "ticket", "each", "hits", "picks"))
    must((kind == "each") == (policy["kind"] == "each"))
    if kind == "ticket":
        table(encoding, ["kind", "q", "t"])
        q, t = whole(encoding["q"], 2, D), whole(encoding["t"], 2, 31)
        must(prime(q) and q > t and q**t >= m)
    elif kind == "hits":
        table(encoding, ["kind", "prime"])
        must(prime(whole(encoding["prime"], max(5, m + 1), 2**31 - 1)))
        must(policy["kind"] == "set" and policy["notion"] == "min")
        must(policy["strict"] or not policy["pairs"])
    elif kind == "picks":
        table(encoding, ["kind", "size"])
        whole(encoding["size"])
        must(policy["kind"] == "set" and policy["notion"] == "min")
        must(policy["strict"] or not policy["pairs"])
    else:
        table(encoding, ["kind"])


@cache
def prime(q: int) -> bool:
    """By all possible factors; up to 2^32."""
    return all(q % x for x in range(2, min(q, 1 << 16)))


def check_certificate(certificate: Any) -> None:
    """What the design claims; nothing is proved by it."""
    table(certificate, ["value", "lower_bound", "note"])
    for key in ("value", "lower_bound"):
        text = certificate[key]
        if key == "value" or text != "":
            must(isinstance(text, str) and DECIMAL.fullmatch(text) is not None)
            must(len(text.replace(".", "").strip("0")) <= 12)
    value, bound = (Fraction(certificate[key] or 0) for key in ("value", "lower_bound"))
    must(bound <= value)
    must(printable(certificate["note"]) and len(certificate["note"]) <= 400)


# ---- the exact check -----------------------------------------------------------------------------

MANY = Context(prec=50)
CEILING = Decimal(45)  # as in format 1: a larger budget counts as this one, unless it is ln(k)
Bound = tuple[Fraction, bool]  # e^r and whether it is exact
NONE = -1  # in the place of a group: nothing held


def kind_of(document: Document) -> str:
    return document["encoding"]["kind"]


def groups_of(document: Document) -> list[int]:
    """The group of every item."""
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def inputs(document: Document) -> list[int]:
    """Every group, and nothing."""
    sets = document["policy"]["kind"] != "single"
    return [*range(max(document["groups"]) + 1), *([NONE] if sets else [])]


def base(document: Document, group: int) -> int:
    """What `other` of a group is over."""
    if kind_of(document) == "fixed":
        return groups_of(document).count(group)
    return document["encoding"]["q"] if kind_of(document) == "ticket" else D


@cache
def exponential(text: str) -> Bound:
    """e^epsilon of a budget."""
    log = LOGARITHM.fullmatch(text)
    if log:
        whole_ = Fraction(int(log[1]), int(log[2] or 1))
        if log[3] is None:
            return whole_, True
        one = MANY.ln(MANY.divide(Decimal(whole_.numerator), Decimal(whole_.denominator)))
        return Fraction(MANY.exp(MANY.divide(one, Decimal(log[3])))), False
    n, _, d = text.partition("/")
    epsilon = MANY.divide(Decimal(n), Decimal(d or 1))
    return Fraction(MANY.exp(min(epsilon, CEILING))), False


def squared_bound(policy: Document, i: int, j: int) -> Bound | None:
    """e^{2 r} of an answer of level i over one of level j; None where it is not protected."""
    levels = policy["levels"]
    if policy.get("strict"):
        e, exact = strictest(policy)
        return e * e, exact
    for pair in policy["pairs"]:
        if (levels[i]["name"], levels[j]["name"]) in ways(pair):
            return None if pair["epsilon"] == "" else power(exponential(pair["epsilon"]), 2)
    notion = policy["notion"]
    if notion == "one-way":
        return None if levels[i]["epsilon"] == OPEN else power(own_bound(policy, i), 2)
    if notion == "blocks":
        return power(own_bound(policy, i), 2) if i == j else None
    if notion == "scale":
        steps = min(abs(i - j), policy["cap"] or len(levels))
        return power(own_bound(policy, 0), 2 * steps) if steps else None
    (e, one), (f, two) = (own_bound(policy, k) for k in (i, j))
    if notion == "avg":
        return e * f, one and two
    return (e * e, one) if e <= f else (f * f, two)


def own_bound(policy: Document, level: int) -> Bound:
    """e^epsilon of a level that is not open."""
    return exponential(policy["levels"][level]["epsilon"])


def power(bound: Bound, times: int) -> Bound:
    e, exact = bound
    return e**times, exact


def strictest(policy: Document) -> Bound:
    """The smallest factor of all levels and of all pairs that have a budget."""
    texts = [row["epsilon"] for row in (*policy["levels"], *policy["pairs"]) if row["epsilon"]]
    return min(map(exponential, texts))


def level_bound(policy: Document, level: int) -> Bound:
    """e^epsilon of a level, as it counts."""
    own = exponential(policy["levels"][level]["epsilon"])
    return strictest(policy) if policy.get("strict") else own


def smallest_bound(document: Document, g: int, h: int) -> Bound | None:
    """e^{2 r} of two groups, or of a group and nothing; None where nothing is protected."""
    if g == h and alone(document, g):
        return None
    if NONE in (g, h):
        others = [x for x in inputs(document) if x != NONE]
        found = [smallest_bound(document, max(g, h), x) for x in others]
    else:
        of = [[k for k, x in enumerate(document["groups"]) if x == y] for y in (g, h)]
        found = [squared_bound(document["policy"], i, j) for i in of[0] for j in of[1]]
    return min((bound for bound in found if bound is not None), default=None)


def alone(document: Document, group: int) -> bool:
    """Whether an answer of the group has no other to be told from.

    The rules `min` and `avg` compare such an answer with itself all the same, unless pairs are
    explicit: that is stricter than the promise.
    """
    policy = document["policy"]
    if policy["kind"] != "single" or (policy["notion"] in ("min", "avg") and not policy["pairs"]):
        return False
    return groups_of(document).count(group) == 1


def states(document: Document, part: Document, group: int) -> list[Fraction]:
    """The chances of one report given an input of the group, up to a common factor."""
    if group == NONE:
        return [Fraction(part["none"] * D)]
    chance, own, other = (part[key][group] for key in ("chance", "own", "other"))
    if own == other == 0:
        return [Fraction(chance * D)]
    if other == 0:  # named by its own people alone
        return [Fraction(chance * D), Fraction(0)]
    all_ = base(document, group)
    return [
        Fraction(chance * own * all_, other),
        Fraction(chance * (D - own) * all_, all_ - other),
    ]


def proper(document: Document) -> bool:
    """Chances that are some, and sum to one; groups that speak or, but of `each`, are silent.

    Of single answers a group may never use a part, and then it is silent there; every part is used
    by somebody. A group may always be named by its own people, where the policy is not about lists;
    every item on its own may be, where only having it is protected.
    """
    parts, real = document["parts"], [g for g in inputs(document) if g != NONE]
    single, each_ = document["policy"]["kind"] == "single", kind_of(document) == "each"
    columns = [[part["chance"][g] for part in parts] for g in real]
    if not single:
        columns.append([part["none"] for part in parts])
    if any(sum(column) != D or min(column) < (0 if single else 1) for column in columns):
        return False
    if not all(any(part["chance"]) for part in parts):
        return False
    if kind_of(document) in ("fixed", "bits", "ticket"):
        ticket = kind_of(document) == "ticket"
        if any(plain(part) for part in (parts[:-1] if ticket else parts)):
            return False
        if plain(parts[-1]) and not only_plain(parts[-1]):
            return False
    most = D if single or (each_ and document["policy"]["notion"] == "one-way") else D - 1
    for part in parts:
        for g in real:
            chance, own, other = (part[key][g] for key in ("chance", "own", "other"))
            speaks = chance > 0 and 0 < own <= most and 0 < other < base(document, g)
            sent = chance > 0 and plain(part) and (own, other) == (D, 0) and single
            silent = own == other == 0 and not each_
            if not (speaks or sent or silent):
                return False
    return True


Compared = Iterator[tuple[Fraction | None, Bound]]  # None: a number that is infinite


def ratios(document: Document) -> Compared:
    """s / s' of every two states that are compared, and their bound, both squared. A report that
    nobody of either group sends tells them apart by nothing.
    """
    every = inputs(document)
    bounds = {(g, h): smallest_bound(document, g, h) for g in every for h in every}
    for part in document["parts"]:
        squares = {g: [s * s for s in states(document, part, g)] for g in every}
        for (g, h), bound in bounds.items():
            if bound is not None and not g == h == NONE:
                for s in squares[g]:
                    yield from ((s / s_ if s_ else None, bound) for s_ in squares[h] if s or s_)


def holds(document: Document) -> bool:
    """The guarantee, with all that must be so that there are chances at all."""
    if kind_of(document) in ("hits", "picks"):
        return hits_hold(document)
    if not proper(document):
        return False
    compared = item_ratios(document) if kind_of(document) == "each" else ratios(document)
    fine = [at_most(ratio, bound) for ratio, bound in compared]
    return all(fine)


def at_most(value: Fraction | None, bound: Bound) -> bool:
    """Whether a number is at most the bound, which must not be too near to tell."""
    e, exact = bound
    if value is None:
        return False
    near = not exact and abs(float(value / e) - 1) < 1e-12
    assert not near or abs(value - e) > e / 2**60, "too near to an irrational bound for a vector"
    return value <= e


# ---- every item on its own -----------------------------------------------------------------------


def item_ratios(document: Document) -> Compared:
    """How much an item changes the chance of a report, and its level's bound."""
    for level, group in enumerate(document["groups"]):
        for ratio in each_ratios(document, group):
            yield ratio, level_bound(document["policy"], level)


def each_ratios(document: Document, group: int) -> list[Fraction]:
    """Named and not named, with the item over without it; and back, unless it is one way."""
    own, other = (document["parts"][0][key][group] for key in ("own", "other"))
    ends = [(own, other), (D - own, D - other)]
    if document["policy"]["notion"] != "one-way":
        ends += [(other, own), (D - other, D - own)]
    return [Fraction(x, y) for x, y in ends]


# ---- hits ----------------------------------------------------------------------------------------

Density = dict[tuple[int, int], Fraction]  # of j own items N are named: against a uniform report


def hits_hold(document: Document) -> bool:
    """Rows that are chances; every set within its mean of budgets; every item within its own."""
    parts, policy = document["parts"], document["policy"]
    if kind_of(document) == "picks":
        if not picks.proper(document):
            return False
    elif not proper_hits(document):
        return False
    fine = [whole_sets_hold(document, part) for part in parts]
    if all(fine):
        levels = range(len(policy["levels"]))
        fine = [at_most(item_factor(document, k), level_bound(policy, k)) for k in levels]
    return all(fine)


def proper_hits(document: Document) -> bool:
    """Whether all numbers are chances."""
    chances = [part["chance"] for part in document["parts"]]
    real = all(real_rows(document, part) for part in document["parts"])
    return min(chances) > 0 and sum(chances) == D and real


def real_rows(document: Document, part: Document) -> bool:
    """Whether the threshold and the rows of a part are what a client can draw from."""
    if not 0 < part["limit"] < document["encoding"]["prime"]:
        return False
    for j, (tau, *masses) in enumerate(part["rows"], 1):
        if not 0 <= tau <= j or min(masses) < 0 or sum(masses) != TOTAL:
            return False
        if any(mass and not names for mass, names in zip(masses, classes(j, tau), strict=True)):
            return False
    return True


def classes(j: int, tau: int) -> list[range]:
    """How many own items are named in the classes hi, mid and lo."""
    return [range(tau + 1, j + 1), range(tau, tau + 1), range(tau)]


def density(document: Document, part: Document, most: int | None = None) -> Density:
    """f of all j up to `most` and all N."""
    if kind_of(document) == "picks":
        return picks.density(document, part)
    p, limit = document["encoding"]["prime"], part["limit"]
    found = {(0, 0): Fraction(1)}
    for j, (tau, *masses) in enumerate(part["rows"][:most], 1):
        weight = [comb(j, n) * limit**n * (p - limit) ** (j - n) for n in range(j + 1)]
        for mass, names in zip(masses, classes(j, tau), strict=True):
            all_ = sum(weight[n] for n in names)
            found |= {(j, n): Fraction(mass * p**j, TOTAL * all_) for n in names}
    return found


def whole_sets_hold(document: Document, part: Document) -> bool:
    """max f_j <= R_j LO and HI <= R_j min f_j, for every number j of active items."""
    f, s, policy = density(document, part), document["padding"], document["policy"]
    if min(f.values()) <= 0:
        return False
    every = [level_bound(policy, k) for k in range(len(policy["levels"]))]
    e1, one = min(every)
    is_picks = kind_of(document) == "picks"
    blocks = part["blocks"] if is_picks else part["active"]
    of_block = [
        min(e for e, g in zip(every, document["groups"], strict=True) if blocks[g] == b)
        for b in range(1, max(blocks) + 1)
    ]
    people: dict[Any, list[Fraction]] = {}
    for (j, _), x in f.items():
        people.setdefault(j if is_picks else (j,), []).append(x)
    fine = []
    for j, f_j in people.items():
        own = sum(x * e for x, (e, _) in zip(j, of_block, strict=True))
        bound = (own + (s - sum(j)) * e1) / s, one and all(two for _, two in of_block)
        fine.append(at_most(max(f_j) / min(f.values()), bound))
        fine.append(at_most(max(f.values()) / min(f_j), bound))
    return all(fine)


def active_items(document: Document, part: Document, items: list[int] | None = None) -> int:
    """How many of these items, or of all, the part reports."""
    of = groups_of(document)
    return sum(part["active"][of[i]] for i in (range(len(of)) if items is None else items))


def hits_item_factor(document: Document, part: Document, group: int) -> Fraction:
    """What having an item of the group changes at most, in one part."""
    m, s, active = len(groups_of(document)), document["padding"], active_items(document, part)
    others, own = m - active, part["active"][group]
    f, found = density(document, part, min(s, active)), [Fraction(1)]
    if own:
        for j in range(1, min(s, active) + 1):
            found += [f[j, n + h] / f[j - 1, n] for n in range(j) for h in (0, 1)]
    if m > s:
        rest = others - (not own)  # items of other groups beside this one
        for a in range(max(0, s - rest), min(s, active - own) + 1):
            for hit in range(a + 1):
                for named in (0, 1) if own else (0,):
                    swapped = [
                        hit * f[a - 1 + own, hit - 1 + named] if hit else 0,
                        (a - hit) * f[a - 1 + own, hit + named] if a > hit else 0,
                        (s - a) * f[a + own, hit + named] if s > a else 0,
                    ]
                    found.append((1 + sum(swapped) / f[a, hit]) / (s + 1))
    return max(*found, *(1 / x for x in found))


# ---- what is told: one item, whole lists ---------------------------------------------------------


def item_factor(document: Document, level: int) -> Fraction:
    """How much having an item of the level changes the chance of a report of a set, at most."""
    g, kind = document["groups"][level], kind_of(document)
    if kind == "each":
        return max(each_ratios(document, g))
    found = {"hits": hits_item_factor, "picks": picks.item_factor}.get(kind, sampled_item_factor)
    return max(found(document, part, g) for part in document["parts"])


def sampled_item_factor(document: Document, part: Document, group: int) -> Fraction:
    """One item of max(|x|, padding) places: all others as rare as can be."""
    l, of = document["padding"], groups_of(document)
    own = states(document, part, group)
    i = of.index(group)
    others = [states(document, part, g) for k, g in enumerate(of) if k != i]
    (none,) = states(document, part, NONE)
    rare = sorted(min(both) for both in others if min(both) < none)[: l - 1]
    few = sum(rare) + (l - 1 - len(rare)) * none
    found = [Fraction(1), (few + max(own)) / (few + none), (few + none) / (few + min(own))]
    if len(of) > l:
        least = sum(sorted(min(both) for both in others)[:l])
        most = sum(sorted((max(both) for both in others), reverse=True)[:l])
        found += [(1 + max(own) / least) * l / (l + 1), (l + 1) / (l * (1 + min(own) / most))]
    return max(found)


def extremes(document: Document, part: Document) -> tuple[Fraction, Fraction]:
    """The largest and the smallest chance of a report that any list gives, up to one factor."""
    if kind_of(document) == "picks":
        return picks.extremes(document, part)
    if kind_of(document) == "hits":
        every = list(density(document, part, active_items(document, part)).values())
    else:
        every = [s for g in inputs(document) for s in states(document, part, g)]
    return max(every), min(every)


def set_factor(document: Document) -> Fraction:
    """What a report tells two lists apart by, at most; not where items are on their own."""
    both = [extremes(document, part) for part in document["parts"]]
    return max(most / least for most, least in both)


def list_factor(document: Document, items: list[int]) -> Fraction:
    """The same of one list against any other; of items on their own: against the empty one."""
    if kind_of(document) == "each":
        of = document["policy"]["level_of"]
        return prod((item_factor(document, of[i]) for i in items), start=Fraction(1))
    found = []
    for part in document["parts"]:
        most, least = extremes(document, part)
        of_list = {"hits": hits_list, "picks": picks.of_list}.get(kind_of(document), sampled_list)
        top, low = of_list(document, part, items)
        found += [top / least, most / low]
    return max(found)


def sampled_list(document: Document, part: Document, items: list[int]) -> tuple[Any, Any]:
    """The largest and the smallest chance of a report of one list."""
    of, places = groups_of(document), max(len(items), document["padding"])
    (none,) = states(document, part, NONE)
    rest = (places - len(items)) * none
    own = [states(document, part, of[i]) for i in items]
    return (sum(map(max, own)) + rest) / places, (sum(map(min, own)) + rest) / places


def hits_list(document: Document, part: Document, items: list[int]) -> tuple[Any, Any]:
    """The same: the mean over how many active items are kept."""
    k, a, s = len(items), active_items(document, part, items), document["padding"]
    kept, f = min(k, s), density(document, part, min(s, a))
    top = low = Fraction(0)
    for j in range(max(0, kept - (k - a)), min(kept, a) + 1):
        share = Fraction(comb(a, j) * comb(k - a, kept - j), comb(k, kept))
        top += share * max(f[j, n] for n in range(j + 1))
        low += share * min(f[j, n] for n in range(j + 1))
    return top, low


# ---- reports -------------------------------------------------------------------------------------


def report_size(document: Document) -> int:
    """Bytes of a report."""
    if kind_of(document) == "ticket":
        return 4
    if kind_of(document) == "picks":
        return int(document["encoding"]["size"])
    if kind_of(document) == "hits":
        return 1 + (document["padding"] + 2) * residue_size(document)
    return -(-len(document["policy"]["items"]) // 8) + (len(document["parts"]) > 1)


def residue_size(document: Document) -> int:
    """Bytes of a coefficient."""
    return 2 if document["encoding"]["prime"] < 2**16 else 4


def meaning(document: Document, report: bytes) -> tuple[str, int, list[int]]:
    """The reason of a refusal ("" for none), the part, and the items that are named."""
    if len(report) != report_size(document):
        return "length", 0, []
    if kind_of(document) == "ticket":
        return ticket_meaning(document, int.from_bytes(report, "little"))
    if kind_of(document) == "hits":
        return hits_meaning(document, report)
    if kind_of(document) == "picks":
        return picks.meaning(document, report)
    part, group = 0, groups_of(document)
    if len(document["parts"]) > 1:
        part, report = report[0], report[1:]
        if part >= len(document["parts"]):
            return "part", 0, []
    named = [k for k in range(8 * len(report)) if report[k // 8] >> (k % 8) & 1]
    if any(k >= len(group) for k in named):
        return "tail", 0, []
    other = document["parts"][part]["other"]
    sizes = [sum(group[k] == g for k in named) for g in range(len(other))]
    if kind_of(document) == "fixed" and sizes != other:
        return "size", 0, []
    if any(size and not limit for size, limit in zip(sizes, other, strict=True)):
        return "silent", 0, []
    return "", part, named


def ticket_meaning(document: Document, value: int) -> tuple[str, int, list[int]]:
    """Part and ticket in one number."""
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    part, y = divmod(value, q ** (t + 1))
    if part >= len(document["parts"]):
        return "ticket", 0, []
    other, group = document["parts"][part]["other"], groups_of(document)
    if plain(document["parts"][part]):  # y is an item that is sent as it is
        known = y < len(group) and document["parts"][part]["chance"][group[y]] > 0
        return ("", part, [y]) if known else ("ticket", 0, [])
    named = [i for i, g in enumerate(group) if mark(y, i, q, t) < other[g]]
    return "", part, named


def hits_meaning(document: Document, report: bytes) -> tuple[str, int, list[int]]:
    """Part, then a polynomial from its constant up; an item is named where it is below T."""
    p, size = document["encoding"]["prime"], residue_size(document)
    if report[0] >= len(document["parts"]):
        return "part", 0, []
    part = document["parts"][report[0]]
    starts = range(1, len(report), size)
    polynomial = [int.from_bytes(report[k : k + size], "little") for k in starts]
    if max(polynomial) >= p:
        return "residue", 0, []
    values = [
        sum(c * (i + 1) ** k for k, c in enumerate(polynomial)) % p
        for i in range(len(groups_of(document)))
    ]
    active = [part["active"][g] for g in groups_of(document)]
    named = [i for i, on in enumerate(active) if on and values[i] < part["limit"]]
    return "", report[0], named


def mark(y: int, item: int, q: int, t: int) -> int:
    """y_0 + y_1 c_1 + … + y_t c_t mod q, with y_0 the most significant digit of y."""
    digits = [y // q ** (t - j) % q for j in range(t + 1)]
    return (digits[0] + sum(a * b for a, b in zip(digits[1:], code(item, q, t), strict=True))) % q


def code(item: int, q: int, t: int) -> list[int]:
    """c_1 … c_t of an item."""
    digits = [item // q**j % q for j in range(t)]
    return digits[:1] + [(digits[j - 1] + digits[0] ** j) % q for j in range(2, t + 1)]


# ---- tallies and estimates -----------------------------------------------------------------------


def tally(document: Document, reports: list[bytes]) -> Document:
    """Reports of every part, how often each item was named, and what was refused."""
    parts, m = len(document["parts"]), len(document["policy"]["items"])
    part_n, counts, refused = [0] * parts, [[0] * m for _ in range(parts)], {}
    for report in reports:
        reason, part, named = meaning(document, report)
        if reason:
            refused[reason] = refused.get(reason, 0) + 1
            continue
        part_n[part] += 1
        for k in named:
            counts[part][k] += 1
    return {"part_n": part_n, "counts": counts, "refused": refused}


Matrix = list[list[Fraction]]


def decoder(document: Document) -> tuple[Matrix, Matrix, Matrix]:
    """w, b and tau, parts x groups: c_i = sum_o w (Y_oi - N_o b) + tau N_o."""
    parts, real = document["parts"], [g for g in inputs(document) if g != NONE]
    if kind_of(document) == "hits":
        return hits_decoder(document)
    if kind_of(document) == "picks":
        return picks.decoder(document, solve)
    b = [[Fraction(part["other"][g], base(document, g)) for g in real] for part in parts]
    chance = [[Fraction(x, D) for x in part["chance"]] for part in parts]
    none = [[Fraction(part["none"], D)] if "none" in part else [] for part in parts]
    lam = [[*some, *nothing] for some, nothing in zip(chance, none, strict=True)]
    x = [Fraction(share, D) for share in document["shares"]]
    p = [sum(share * value for share, value in zip(x, row, strict=True)) for row in lam]
    fixed = kind_of(document) == "fixed"
    columns = [weights(document, g, [row[g] for row in b], p, fixed) for g in real]
    w = [[column[o] for column in columns] for o in range(len(parts))]
    tau = level_weights(document, lam, p) if fixed else [[Fraction(0)] * len(real) for _ in parts]
    return w, b, tau


def hits_decoder(document: Document) -> tuple[Matrix, Matrix, Matrix]:
    """The parts in which a group is active, by their information; None where it never is."""
    parts, p = document["parts"], document["encoding"]["prime"]
    count = len(parts[0]["active"])
    first = [part["rows"][0] for part in parts]  # of one own item: named where N > 0
    own = [Fraction(mid if tau else hi, TOTAL) for tau, hi, mid, _ in first]
    b = [Fraction(part["limit"], p) for part in parts]
    slope = [(a - b_o) / (b_o * (1 - b_o)) for a, b_o in zip(own, b, strict=True)]
    w: Matrix = [[] for _ in parts]
    for g in range(count):
        on = [x * part["active"][g] for x, part in zip(slope, parts, strict=True)]
        total = sum(
            Fraction(part["chance"], D) * x * (a - b_o)
            for part, x, a, b_o in zip(parts, on, own, b, strict=True)
        )
        for row, x in zip(w, on, strict=True):
            row.append(x / total if total else None)  # type: ignore[arg-type]
    return w, [[b_o] * count for b_o in b], [[Fraction(0)] * count for _ in parts]


def weights(document: Document, g: int, b: list[Fraction], p: list[Any], fixed: bool) -> list[Any]:
    """w of a group in every part; None where no report tells its items apart."""
    m = groups_of(document).count(g)
    if fixed and m == 1:
        return [Fraction(0)] * len(b)
    last = document["parts"][-1]
    if plain(last) and last["chance"][g]:  # what is sent as it is tells it without noise
        return [Fraction(0)] * (len(b) - 1) + [Fraction(D, last["chance"][g])]
    raw, total = [], Fraction(0)
    for part, b_o, p_o in zip(document["parts"], b, p, strict=True):
        lam, a = Fraction(part["chance"][g], D), Fraction(part["own"][g], D)
        raw.append(lam / p_o * (a / b_o - (1 - a) / (1 - b_o)) if b_o else Fraction(0))
        total += raw[-1] * lam * (a - b_o)
    if not total:
        return [None] * len(b)
    return [value * (1 - Fraction(1, m) if fixed else 1) / total for value in raw]


def level_weights(document: Document, lam: Matrix, p: list[Any]) -> Matrix:
    """tau of a fixed-size mechanism; nothing held is one more group."""
    t = range(len(lam[0]))
    r = [[value / p_o for value in row] for row, p_o in zip(lam, p, strict=True)]
    g = [[sum(p_o * row[i] * row[j] for row, p_o in zip(r, p, strict=True)) for j in t] for i in t]
    sizes = [groups_of(document).count(k) for k in inputs(document) if k != NONE]
    solved = [solve(g, row) for row in r]  # G is symmetric, so rows of R G^-1 solve G z = R_o
    return [[z / m for z, m in zip(row, sizes)] for row in solved]


def solve(rows_: Matrix, right: list[Fraction]) -> list[Fraction]:
    """z with rows z = right, by elimination."""
    n = len(rows_)
    system = [[*row, value] for row, value in zip(rows_, right, strict=True)]
    for k in range(n):
        pivot = next(j for j in range(k, n) if system[j][k])
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [x / system[k][k] for x in system[k]]
        for j in range(n):
            if j != k and system[j][k]:
                times = system[j][k]
                system[j] = [x - times * y for x, y in zip(system[j], system[k], strict=True)]
    return [row[n] for row in system]


def estimate(document: Document, part_n: list[int], counts: list[list[int]]) -> list[Any]:
    """Unbiased counts of people, exactly; None where there is no such estimate."""
    w, b, tau = decoder(document)
    scale = 1 if kind_of(document) in ("hits", "picks") else document["padding"] or 1
    found = []
    for i, g in enumerate(groups_of(document)):
        if w[0][g] is None:
            found.append(None)
            continue
        terms = (
            w[o][g] * (counts[o][i] - n * b[o][g]) + tau[o][g] * n for o, n in enumerate(part_n)
        )
        found.append(scale * sum(terms, Fraction(0)))
    return found
