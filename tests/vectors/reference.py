"""Format 2 a second time, in plain integers and fractions, straight from its contract.

Nothing of discreet is used here. Reading a file, the canonical JSON, the exact check, the meaning
of a report and the estimates are written for the eye: every pair, every state, no short cuts.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import gcd
from pathlib import Path
from typing import Any

D = 2**32
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
            text.removeprefix("\ufeff"), parse_int=number, parse_float=number, parse_constant=number
        )
    except (ValueError, RecursionError):
        raise Refused("mechanism") from None


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
    """The fingerprint; half a surrogate pair, which has no bytes, counts as U+FFFD."""
    text = re.sub("[\ud800-\udfff]", "\ufffd", canonical(document))
    return hashlib.sha256(text.encode()).hexdigest()


# ---- the shape of a document ---------------------------------------------------------------------

MODEL = re.compile("[a-z][a-z0-9]{0,19}")
KEYS = ["format", "policy", "model", "prior", "encoding", "padding", "groups", "shares", "parts"]
POLICY_KEYS = ["name", "question", "input", "notion", "items", "level_of", "levels", "pairs"]
NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
LOGARITHM = re.compile(r"ln\(([1-9][0-9]*)(?:/([1-9][0-9]*))?\)")
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
TWINS = json.loads(CONTRACT.read_text(encoding="utf-8"))["twins"]
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
    must(document["format"] == "discreet-mechanism/2")
    must(isinstance(document["model"], str) and MODEL.fullmatch(document["model"]) is not None)
    must(document["prior"] in ("uniform", "worst", "given"))
    check_policy(document["policy"])
    sets = document["policy"]["input"] == "set"
    whole(document["padding"], *((1, 65536) if sets else (0, 0)))
    groups = rows(document["groups"], len(document["policy"]["levels"]))
    for k, group in enumerate(groups):
        whole(group, 0, max(groups[:k], default=-1) + 1)
    count = max(groups) + 1
    shares = [whole(x, 0, D) for x in rows(document["shares"], count + sets)]
    must(sum(shares) == D)
    must(1 <= len(rows(document["parts"])) <= 256)
    for part in document["parts"]:
        table(part, ["chance", "own", "other", *(["none"] if sets else [])])
        for key in ("chance", "own", "other"):
            for value in rows(part[key], count):
                whole(value)
        whole(part.get("none", 0))
    check_encoding(document["encoding"], len(document["parts"]), len(groups_of(document)))
    if optional:
        check_certificate(document["certificate"])


def check_policy(policy: Any) -> None:
    """Items, levels and pairs."""
    table(policy, POLICY_KEYS)
    label(policy["name"])
    must(prose(policy["question"]))
    must(policy["input"] in ("single", "set") and policy["notion"] in ("min", "avg"))
    for key in ("items", "levels"):
        names = rows(policy[key])
        if key == "levels":
            for level in policy["levels"]:
                table(level, ["name", "epsilon"])
                budget(level["epsilon"])
            names = [level["name"] for level in policy["levels"]]
        must(len(names) > 0)
        for name in names:
            label(name)
        must(not any(same(x, y) for x, y in combinations(names, 2)))
    places = [
        whole(k, 0, len(policy["levels"]) - 1)
        for k in rows(policy["level_of"], len(policy["items"]))
    ]
    must(len(set(places)) == len(policy["levels"]))
    must(not policy["pairs"] or len(names) <= 200)
    seen: dict[frozenset[str], str] = {}
    for pair in rows(policy["pairs"]):
        table(pair, ["levels", "epsilon"])
        two = rows(pair["levels"], 2)
        must(all(name in names for name in two))
        if pair["epsilon"] != "":
            budget(pair["epsilon"])
        must(seen.setdefault(frozenset(two), pair["epsilon"]) == pair["epsilon"])


def budget(text: Any) -> None:
    """A budget in its canonical spelling."""
    must(isinstance(text, str) and len(text) <= 100)
    log = LOGARITHM.fullmatch(text)
    if log:
        k, over = int(log[1]), int(log[2] or 1)
        must(k > over and gcd(k, over) == 1 and (log[2] is None or over > 1))
    else:
        must(NUMBER.fullmatch(text) is not None)
        must(Fraction(1, 10**29) <= Fraction(text) < 10**30)


def check_encoding(encoding: Any, parts: int, m: int) -> None:
    """That reports of this kind can be written."""
    must(isinstance(encoding, dict) and encoding.get("kind") in ("fixed", "bits", "ticket"))
    if encoding["kind"] != "ticket":
        return table(encoding, ["kind"])
    table(encoding, ["kind", "q", "t"])
    q, t = whole(encoding["q"], 2, D), whole(encoding["t"], 2, 31)
    must(all(q % x for x in range(2, min(q, 1 << 16))) and q > t)
    return must(q**t >= m and parts * q ** (t + 1) <= D)


def check_certificate(certificate: Any) -> None:
    """What the design claims; nothing is proved by it."""
    table(certificate, ["value", "lower_bound", "note"])
    for key in ("value", "lower_bound"):
        text = certificate[key]
        if key == "value" or text != "":
            must(isinstance(text, str) and DECIMAL.fullmatch(text) is not None)
            must(len(text.replace(".", "").strip("0")) <= 12)
    must(printable(certificate["note"]) and len(certificate["note"]) <= 400)


# ---- the exact check -----------------------------------------------------------------------------

MANY = Context(prec=50)
CEILING = Decimal(45)  # as in format 1: a larger budget counts as this one, unless it is ln(k)
Bound = tuple[Fraction, bool]  # e^r and whether it is exact
NONE = -1  # in the place of a group: nothing held


def groups_of(document: Document) -> list[int]:
    """The group of every item."""
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def inputs(document: Document) -> list[int]:
    """Every group, and nothing."""
    sets = document["policy"]["input"] == "set"
    return [*range(max(document["groups"]) + 1), *([NONE] if sets else [])]


def base(document: Document, group: int) -> int:
    """What `other` of a group is over."""
    kind = document["encoding"]["kind"]
    if kind == "fixed":
        return groups_of(document).count(group)
    return D if kind == "bits" else document["encoding"]["q"]


@cache
def exponential(text: str) -> Bound:
    """e^epsilon of a budget."""
    log = LOGARITHM.fullmatch(text)
    if log:
        return Fraction(int(log[1]), int(log[2] or 1)), True
    return Fraction(MANY.exp(min(Decimal(text), CEILING))), False


def squared_bound(policy: Document, i: int, j: int) -> Bound | None:
    """e^{2 r_ij} of two levels; None where they are not protected."""
    levels = policy["levels"]
    for pair in policy["pairs"]:
        if sorted(pair["levels"]) == sorted((levels[i]["name"], levels[j]["name"])):
            if pair["epsilon"] == "":
                return None
            e, exact = exponential(pair["epsilon"])
            return e * e, exact
    (e, one), (f, two) = (exponential(levels[k]["epsilon"]) for k in (i, j))
    if policy["notion"] == "avg":
        return e * f, one and two
    return (e * e, one) if e <= f else (f * f, two)


def smallest_bound(document: Document, g: int, h: int) -> Bound | None:
    """e^{2 r} of two groups, or of a group and nothing; None where nothing is protected."""
    if NONE in (g, h):
        others = [x for x in inputs(document) if x != NONE]
        found = [smallest_bound(document, max(g, h), x) for x in others]
    else:
        of = [[k for k, x in enumerate(document["groups"]) if x == y] for y in (g, h)]
        found = [squared_bound(document["policy"], i, j) for i in of[0] for j in of[1]]
    return min((bound for bound in found if bound is not None), default=None)


def states(document: Document, part: Document, group: int) -> list[Fraction]:
    """The chances of one report given an input of the group, up to a common factor."""
    if group == NONE:
        return [Fraction(part["none"] * D)]
    chance, own, other = (part[key][group] for key in ("chance", "own", "other"))
    if own == other == 0:
        return [Fraction(chance * D)]
    all_ = base(document, group)
    return [
        Fraction(chance * own * all_, other),
        Fraction(chance * (D - own) * all_, all_ - other),
    ]


def proper(document: Document) -> bool:
    """Chances that are some, and sum to one; groups that are silent or speak."""
    parts, real = document["parts"], [g for g in inputs(document) if g != NONE]
    columns = [[part["chance"][g] for part in parts] for g in real]
    if document["policy"]["input"] == "set":
        columns.append([part["none"] for part in parts])
    if any(sum(column) != D or min(column) <= 0 for column in columns):
        return False
    for part in parts:
        for g in real:
            own, other = part["own"][g], part["other"][g]
            speaks = 0 < own < D and 0 < other < base(document, g)
            if not speaks and not own == other == 0:
                return False
    return True


def ratios(document: Document) -> Iterator[tuple[Fraction, Bound]]:
    """s / s' of every two states that are compared, and their bound, both squared."""
    every = inputs(document)
    bounds = {(g, h): smallest_bound(document, g, h) for g in every for h in every}
    for part in document["parts"]:
        squares = {g: [s * s for s in states(document, part, g)] for g in every}
        for (g, h), bound in bounds.items():
            if bound is not None and not g == h == NONE:
                yield from ((s / s_, bound) for s in squares[g] for s_ in squares[h])


def holds(document: Document) -> bool:
    """The guarantee: s <= e^r s', by squares, for all states of all inputs."""
    if not proper(document):
        return False
    fine = True
    for ratio, (e, exact) in ratios(document):
        near = not exact and abs(float(ratio / e) - 1) < 1e-12
        assert not near or abs(ratio - e) > e / 2**60, (
            "too near to an irrational bound for a vector"
        )
        fine = fine and ratio <= e
    return fine


# ---- reports -------------------------------------------------------------------------------------


def report_size(document: Document) -> int:
    """Bytes of a report."""
    if document["encoding"]["kind"] == "ticket":
        return 4
    return -(-len(document["policy"]["items"]) // 8) + (len(document["parts"]) > 1)


def meaning(document: Document, report: bytes) -> tuple[str, int, list[int]]:
    """The reason of a refusal ("" for none), the part, and the items that are named."""
    if len(report) != report_size(document):
        return "length", 0, []
    if document["encoding"]["kind"] == "ticket":
        return ticket_meaning(document, int.from_bytes(report, "little"))
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
    if document["encoding"]["kind"] == "fixed" and sizes != other:
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
    named = [i for i, g in enumerate(group) if mark(y, i, q, t) < other[g]]
    return "", part, named


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
    b = [[Fraction(part["other"][g], base(document, g)) for g in real] for part in parts]
    chance = [[Fraction(x, D) for x in part["chance"]] for part in parts]
    none = [[Fraction(part["none"], D)] if "none" in part else [] for part in parts]
    lam = [[*some, *nothing] for some, nothing in zip(chance, none, strict=True)]
    x = [Fraction(share, D) for share in document["shares"]]
    p = [sum(share * value for share, value in zip(x, row, strict=True)) for row in lam]
    fixed = document["encoding"]["kind"] == "fixed"
    columns = [weights(document, g, [row[g] for row in b], p, fixed) for g in real]
    w = [[column[o] for column in columns] for o in range(len(parts))]
    tau = level_weights(document, lam, p) if fixed else [[Fraction(0)] * len(real) for _ in parts]
    return w, b, tau


def weights(document: Document, g: int, b: list[Fraction], p: list[Any], fixed: bool) -> list[Any]:
    """w of a group in every part; None where no report tells its items apart."""
    m = groups_of(document).count(g)
    if fixed and m == 1:
        return [Fraction(0)] * len(b)
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
    found = []
    for i, g in enumerate(groups_of(document)):
        if w[0][g] is None:
            found.append(None)
            continue
        terms = (
            w[o][g] * (counts[o][i] - n * b[o][g]) + tau[o][g] * n for o, n in enumerate(part_n)
        )
        found.append((document["padding"] or 1) * sum(terms, Fraction(0)))
    return found
