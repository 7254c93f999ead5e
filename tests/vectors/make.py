"""Writes the test vectors of `v1/`, which the Python and the JavaScript sides share: `python tests/vectors/make.py`.

Nothing of discreet is used here: the canonical JSON, the exact check, the meaning of a report and the estimates are written a
second time, in plain integers and fractions, straight from DESIGN 3.5-3.9 and 4.4. The same input gives the same bytes.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "v1"
D = 2**32
P = 2**31 - 1
Document = dict[str, Any]


# ---- canonical JSON -------------------------------------------------------------------------------------

SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def canonical(value: Any) -> str:
    """Sorted keys, no blanks, nothing escaped but what must be."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'
    return str(value)


def sha256(document: Any) -> str:
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def signed(body: Document) -> Document:
    body = {key: value for key, value in body.items() if key != "fingerprint"}
    return {**body, "fingerprint": sha256(body)}


# ---- policies and the exact check -----------------------------------------------------------------------

TINY = Context(prec=80)


def logarithm(text: str) -> Decimal:
    """A budget in 80 digits."""
    log = re.fullmatch(r"ln\((\d+)(?:/(\d+))?\)", text)
    if log:
        return TINY.ln(TINY.divide(Decimal(log[1]), Decimal(log[2] or 1)))
    return Decimal(text)


def factor(policy: Document, i: int, j: int) -> tuple[Fraction, bool] | None:
    """e^{r_ij} and whether it is exact; None where the pair of levels is not protected."""
    names = [level["name"] for level in policy["levels"]]
    for pair in policy["pairs"]:
        if sorted(pair["levels"]) == sorted((names[i], names[j])):
            return exponential(pair["epsilon"]) if pair["epsilon"] else None
    first, second = (policy["levels"][k]["epsilon"] for k in (i, j))
    if policy["notion"] == "min":
        return exponential(first if logarithm(first) <= logarithm(second) else second)
    if first == second:
        return exponential(first)
    return Fraction(TINY.exp((logarithm(first) + logarithm(second)) / 2)), False


def exponential(text: str) -> tuple[Fraction, bool]:
    log = re.fullmatch(r"ln\(([0-9/]+)\)", text)
    return (Fraction(log[1]), True) if log else (Fraction(TINY.exp(Decimal(text))), False)


def within(high: int, low: int, bound: tuple[Fraction, bool] | None) -> bool:
    """high <= bound * low; a bound that is not exact must not be near enough to matter."""
    if bound is None:
        return True
    e, exact = bound
    assert exact or abs(high - e * low) > e * low / 2**70, "too near to an irrational bound for a test vector"
    return high <= e * low


def holds(document: Document) -> bool:
    """DESIGN 3.7, in its plainest form: every pair, every entry."""
    policy = document["policy"]
    levels = range(len(policy["levels"]))
    if document["encoding"] == "item":
        return holds_direct(document)
    q = P if document["encoding"] == "compact" else D
    parts = document["parts"]
    if sum(part["share"] for part in parts) != D or min(part["share"] for part in parts) <= 0:
        return False
    for part in parts:
        a, b = part["a"], part["b"]
        if not all(0 < b[i] < q and 0 < a[i] < D and b[i] * D <= a[i] * q for i in levels):
            return False
        if not all(within(a[i] * (q - b[j]), b[i] * (D - a[j]), factor(policy, i, j)) for i in levels for j in levels):
            return False
    return True


def matrix_of(document: Document) -> list[list[int]]:
    """The whole m x m matrix: row x, column y."""
    policy, matrix = document["policy"], document["matrix"]
    group = [matrix["groups"][k] for k in policy["level_of"]]
    m = range(len(group))
    return [[matrix["diagonal"][group[x]] if x == y else matrix["off"][group[x]][group[y]] for y in m] for x in m]


def holds_direct(document: Document) -> bool:
    policy, rows = document["policy"], matrix_of(document)
    level, m = policy["level_of"], range(len(rows))
    if any(sum(row) != D or min(row) <= 0 for row in rows):
        return False
    return all(within(rows[x][y], rows[z][y], factor(policy, level[x], level[z])) for x in m for z in m if x != z for y in m)


# ---- good mechanisms ------------------------------------------------------------------------------------


def policy(levels: list[tuple[str, str, list[int]]], items: list[str], **more: Any) -> Document:
    """From (name, epsilon, places of its items) per level."""
    level_of = [next(k for k, row in enumerate(levels) if i in row[2]) for i in range(len(items))]
    return {
        "name": "vectors", "question": "", "input": "single", "notion": "min", "items": items, "level_of": level_of,
        "levels": [{"name": name, "epsilon": epsilon, "weight": "1"} for name, epsilon, _ in levels],
        "pairs": [], **more,
    }  # fmt: skip


def body(policy_: Document, model: str, encoding: str, padding: int = 0, **more: Any) -> Document:
    return {
        "format": "discreet-mechanism/1", "policy": policy_, "model": model, "prior": "uniform",
        "encoding": encoding, "padding": padding, **more,
    }  # fmt: skip


def last(good: int, bad: int, passes: Any) -> int:
    """The last integer from `good` towards `bad` that passes."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if passes(middle) else (good, middle)
    return good


def unary(policy_: Document, model: str, encoding: str, b: list[list[str]], shares: list[int], padding: int = 0) -> Document:
    """Given b of every part and level, a is raised level by level to the last unit that passes; "=" behind b leaves a = b."""
    q = P if encoding == "compact" else D
    document = body(policy_, model, encoding, padding, parts=[])
    for row, share in zip(b, shares, strict=True):
        low = [int(Fraction(text.rstrip("=")) * q) for text in row]
        part = {"share": D, "a": [-(-x * D // q) for x in low], "b": low}
        alone = {**document, "parts": [part]}
        assert holds(alone)
        for k, text in enumerate(row):
            if not text.endswith("="):
                part["a"][k] = last(part["a"][k], D, lambda x, k=k, part=part, alone=alone: moved(alone, part["a"], k, x))
        document["parts"].append({**part, "share": share})
    assert holds(document)
    return document


def moved(document: Document, values: list[int], k: int, x: int) -> bool:
    """Whether the document holds with values[k] = x; leaves it as it was."""
    old, values[k] = values[k], x
    found = holds(document)
    values[k] = old
    return found


FIVE = ["HIV", "anemia", "headache", "stomachache", "toothache"]
TOY = policy([("serious", "ln(4)", [0]), ("common", "ln(6)", [1, 2, 3, 4])], FIVE)
NINE = ["größe", "Ångström", "日本語", "naïve café", "🙂 smile", 'say "hi"', "back\\slash", "a,b", "жар-птица"]
AVERAGE = policy(
    [("hoch", "0.7", [1, 4, 8]), ("tief", "ln(7/2)", [0, 2, 3, 5, 6, 7])],
    NINE, notion="avg", name="Prüfung", question="Was trifft zu? 🙂",
)  # fmt: skip
THREE = policy([("a", "1", [1]), ("b", "1.2", [0, 2])], ["x", "y", "z"], input="set")
EIGHT = policy([("all", "2", list(range(8)))], [f"i{k}" for k in range(8)])
SEVENTY = policy(
    [("high", "1", list(range(0, 70, 14))), ("low", "2", [k for k in range(70) if k % 14])], [f"page {k}" for k in range(70)]
)
SETS = {**SEVENTY, "input": "set"}
PAIRS = policy(
    [("u", "ln(3)", [0, 3]), ("v", "2.5", [1, 2, 4])], ["p", "q", "r", "s", "t"],
    pairs=[{"levels": ["v", "v"], "epsilon": ""}, {"levels": ["u", "u"], "epsilon": "ln(2)"}],
)  # fmt: skip
PARTS = policy([("only", "ln(5)", [0, 1, 2])], ["1", "2", "3"])
HALF = D // 2


@cache
def good_mechanisms() -> dict[str, Document]:
    mixed = [D // 5, D - D // 5]
    weighted = copy.deepcopy(TOY)
    weighted["levels"][0]["weight"] = "2.5"
    certificate = {"objective": "worst-case total MSE / n", "value": "8.5", "lower_bound": "", "note": "not proven – a vector"}
    many = unary(PARTS, "mixed", "bits", [["0.3"]], [D])
    many["parts"] = [{**many["parts"][0], "share": D // 256} for _ in range(256)]
    found = {
        "toy-opt0-bits": unary(TOY, "opt0", "bits", [["0.327", "0.278"]], [D]),
        "toy-opt0-compact": unary(TOY, "opt0", "compact", [["0.327", "0.278"]], [D]),
        "toy-weighted-certificate": {**unary(weighted, "opt0", "bits", [["0.3", "0.25"]], [D]), "certificate": certificate},
        "toy-direct": body(
            TOY, "direct", "item",
            matrix={"groups": [0, 1], "diagonal": [1717986916, 2576980376], "off": [[0, 644245095], [429496730, 429496730]]},
        ),
        "toy-grr": body(TOY, "grr", "item", matrix={"groups": [0, 0], "diagonal": [HALF], "off": [[HALF // 4]]}),
        "three-set-bits": unary(THREE, "oue", "bits", [["0.3", "0.25"]], [D], padding=2),
        "three-grr": body(
            policy([("all", "ln(2)", [0, 1, 2])], ["x", "y", "z"]), "grr", "item",
            matrix={"groups": [0], "diagonal": [HALF], "off": [[HALF // 2]]},
        ),
        "three-256-parts": many,
        "five-pairs": unary(PAIRS, "opt0", "bits", [["0.35", "0.2"]], [D]),
        "eight-rappor": unary(EIGHT, "rappor", "bits", [["0.26894142"]], [D]),
        "nine-avg-bits": unary(AVERAGE, "opt1", "bits", [["0.4", "0.3"]], [D]),
        "nine-avg-compact-parts": unary(
            AVERAGE, "mixed", "compact", [["0.4", "0.3"], ["0.41", "0.2"], ["0.2", "0.3"]], [HALF, HALF // 2, HALF // 2]
        ),
        "seventy-bits": unary(SEVENTY, "opt0", "bits", [["0.27", "0.2"]], [D]),
        "seventy-compact": unary(SEVENTY, "oue", "compact", [["0.27", "0.2"]], [D]),
        "seventy-mixed-bits": unary(SEVENTY, "mixed", "bits", [["0.27", "0.268"], ["0.5=", "0.25"]], mixed),
        "seventy-mixed-compact": unary(SEVENTY, "mixed", "compact", [["0.27", "0.268"], ["0.4", "0.25"]], mixed),
        "seventy-set-compact": unary(SETS, "opt2", "compact", [["0.3", "0.2"]], [D], padding=5),
        "seventy-set-mixed-bits": unary(SETS, "mixed", "bits", [["0.27", "0.268"], ["0.5=", "0.25"]], mixed, padding=3),
    }  # fmt: skip
    assert all(holds(document) for document in found.values())
    return {name: signed(document) for name, document in found.items()}


# ---- bad mechanisms -------------------------------------------------------------------------------------


def changed(document: Document, path: str, value: Any, sign: bool = True) -> Document:
    """A copy with the value at a path such as "parts/0/a/1" replaced (… removes the key)."""
    document = copy.deepcopy(document)
    *inner, key = [int(k) if k.isdigit() else k for k in path.split("/")]
    place: Any = document
    for k in inner:
        place = place[k]
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return signed(document) if sign else document


def broken_guarantees(good: dict[str, Document]) -> dict[str, Document]:
    """Readable, signed, and not private: the check alone must see it."""
    toy, mixed, direct = good["toy-opt0-bits"], good["seventy-mixed-bits"], good["toy-direct"]
    found = {}
    for name, value in (("one", D), ("zero", 0)):
        found[f"degenerate-{name}"] = changed(changed(toy, "parts/0/a/1", value), "parts/0/b/1", value)
        every = changed(changed(toy, "parts/0/a", [value] * 2), "parts/0/b", [value] * 2)
        found[f"degenerate-{name}-everywhere"] = every
    for name in ("toy-opt0-bits", "toy-opt0-compact", "three-set-bits", "nine-avg-bits", "seventy-compact", "five-pairs"):
        document = good[name]
        part = document["parts"][0]
        k = len(part["a"]) - 1  # its a was raised last, so it stands at its bound
        found[f"{name}-a-one-too-large"] = changed(document, f"parts/0/a/{k}", part["a"][k] + 1)
        lowest = last(part["b"][k], 0, lambda x, document=document, part=part, k=k: moved(document, part["b"], k, x))
        assert holds(changed(document, f"parts/0/b/{k}", lowest))
        found[f"{name}-b-one-too-small"] = changed(document, f"parts/0/b/{k}", lowest - 1)
    a, b = mixed["parts"][1]["a"][1], mixed["parts"][0]["b"][0]
    found["second-part-a-one-too-large"] = changed(mixed, "parts/1/a/1", a + 1)
    found["last-of-256-parts-broken"] = changed(good["three-256-parts"], "parts/255/a/0", D - 1)
    found["a-below-b"] = changed(mixed, "parts/0/a/0", b - 1)
    found["compact-b-is-the-prime"] = changed(changed(good["seventy-compact"], "parts/0/b/0", P), "parts/0/a/0", D - 1)
    found["a-negative"] = changed(toy, "parts/0/a/0", -1)
    found["shares-one-too-many"] = changed(mixed, "parts/0/share", mixed["parts"][0]["share"] + 1)
    found["shares-one-too-few"] = changed(toy, "parts/0/share", D - 1)
    found["share-zero"] = changed(changed(mixed, "parts/0/share", 0), "parts/1/share", D)
    found["share-negative"] = changed(changed(mixed, "parts/0/share", -1), "parts/1/share", D + 1)
    found["budget-smaller"] = changed(toy, "policy/levels/0/epsilon", "ln(3)")
    found["pair-unprotected-no-more"] = changed(good["five-pairs"], "policy/pairs/0/epsilon", "ln(2)")
    found["direct-row-one-too-large"] = changed(direct, "matrix/diagonal/0", direct["matrix"]["diagonal"][0] + 1)
    found["direct-row-one-too-small"] = changed(direct, "matrix/diagonal/1", direct["matrix"]["diagonal"][1] - 1)
    matrix = {"groups": [0], "diagonal": [HALF + 2], "off": [[HALF // 2 - 1]]}
    found["direct-column-one-unit-too-large"] = changed(good["three-grr"], "matrix", matrix)
    matrix = {"groups": [0, 1], "diagonal": [1717986920, 2576980376], "off": [[0, 644245094], [429496730, 429496730]]}
    steps = 0
    while holds_direct({**direct, "matrix": matrix}):  # row by row of HIV, until its own column breaks
        matrix["diagonal"][0] += 4
        matrix["off"][0][1] -= 1
        steps += 1
        assert steps < 50
    found["direct-column-of-two-levels"] = changed(direct, "matrix", matrix)
    found["direct-entry-zero"] = changed(
        direct, "matrix", {"groups": [0, 1], "diagonal": [D, D - 4 * HALF // 8], "off": [[0, 0], [HALF // 8, HALF // 8]]}
    )
    assert not any(holds(document) for document in found.values()), [n for n, x in found.items() if holds(x)]
    # not even integers: what a reader without types would compute with
    found["a-is-a-fraction"] = changed(toy, "parts/0/a/0", toy["parts"][0]["a"][0] - 0.5)
    found["share-is-a-fraction"] = changed(changed(mixed, "parts/0/share", HALF + 0.5), "parts/1/share", HALF - 0.5)
    found["b-is-true"] = changed(toy, "parts/0/b/0", True)
    found["a-is-text"] = changed(toy, "parts/0/a/0", str(toy["parts"][0]["a"][0]))
    found["direct-diagonal-is-a-fraction"] = changed(direct, "matrix/diagonal/0", direct["matrix"]["diagonal"][0] + 0.5)
    found["a-has-one-too-few"] = changed(toy, "parts/0/a", toy["parts"][0]["a"][:1])
    found["b-has-one-too-many"] = changed(toy, "parts/0/b", [*toy["parts"][0]["b"], 1])
    found["direct-groups-too-few"] = changed(direct, "matrix/groups", [0])
    found["direct-off-not-square"] = changed(direct, "matrix/off/0", [0])
    return found


def wrong_fingerprints(good: dict[str, Document]) -> dict[str, Document]:
    toy = good["toy-opt0-bits"]
    return {
        "label-changed": changed(toy, "policy/items/0", "flu", sign=False),
        "label-changed-non-ascii": changed(good["nine-avg-bits"], "policy/items/0", "grösse", sign=False),
        "labels-swapped": changed(toy, "policy/items", [*FIVE[:3], FIVE[4], FIVE[3]], sign=False),
        "question-changed": changed(toy, "policy/question", "?", sign=False),
        "budget-changed": changed(toy, "policy/levels/0/epsilon", "ln(5)", sign=False),
        "a-changed": changed(toy, "parts/0/a/0", toy["parts"][0]["a"][0] - 1, sign=False),
        "key-added": changed(toy, "extra", 1, sign=False),
        "fingerprint-missing": changed(toy, "fingerprint", ..., sign=False),
        "fingerprint-null": changed(toy, "fingerprint", None, sign=False),
        "fingerprint-upper-case": changed(toy, "fingerprint", toy["fingerprint"].upper(), sign=False),
        "fingerprint-cut": changed(toy, "fingerprint", toy["fingerprint"][:32], sign=False),
        "fingerprint-of-another": changed(toy, "fingerprint", good["toy-grr"]["fingerprint"], sign=False),
    }


def unreadable(good: dict[str, Document]) -> dict[str, Document]:
    toy, direct, sets = good["toy-opt0-bits"], good["toy-direct"], good["three-set-bits"]
    found = {f"missing-{key}": changed(toy, key, ...) for key in ("format", "policy", "model", "prior", "encoding", "padding")}
    found |= {f"missing-policy-{key}": changed(toy, f"policy/{key}", ...) for key in toy["policy"]}
    found |= {f"missing-part-{key}": changed(toy, f"parts/0/{key}", ...) for key in ("share", "a", "b")}
    found |= {f"missing-matrix-{key}": changed(direct, f"matrix/{key}", ...) for key in ("groups", "diagonal", "off")}
    last_part = good["three-256-parts"]["parts"][-1]
    halved = [{**last_part, "share": last_part["share"] // 2}] * 2
    return found | {
        "missing-parts": changed(toy, "parts", ...),
        "missing-matrix": changed(direct, "matrix", ...),
        "no-parts": changed(toy, "parts", []),
        "format-of-the-future": changed(toy, "format", "discreet-mechanism/2"),
        "format-of-a-tally": changed(toy, "format", "discreet-tally/1"),
        "encoding-unknown": changed(toy, "encoding", "base64"),
        "encoding-is-a-list": changed(toy, "encoding", ["bits"]),
        "item-encoding-with-parts": changed(toy, "encoding", "item"),
        "notion-unknown": changed(toy, "policy/notion", "max"),
        "input-unknown": changed(toy, "policy/input", "many"),
        "set-without-padding": changed(sets, "padding", 0),
        "single-with-padding": changed(toy, "padding", 2),
        "direct-with-padding": changed(changed(direct, "policy/input", "set"), "padding", 2),
        "padding-is-a-fraction": changed(sets, "padding", 2.5),
        "padding-is-text": changed(sets, "padding", "2"),
        "padding-negative": changed(sets, "padding", -2),
        "padding-too-large": changed(sets, "padding", 65537),
        "extra-key": changed(toy, "note", "hello"),
        "extra-key-in-a-part": changed(toy, "parts/0/c", [1, 1]),
        "extra-key-in-the-policy": changed(toy, "policy/colour", "red"),
        "257-parts": changed(good["three-256-parts"], "parts", [*good["three-256-parts"]["parts"][:-1], *halved]),
        "parts-is-text": changed(toy, "parts", "all"),
        "item-twice": changed(toy, "policy/items/1", "HIV"),
        "item-empty": changed(toy, "policy/items/1", " "),
        "item-is-a-number": changed(toy, "policy/items/1", 7),
        "item-with-a-line-break": changed(toy, "policy/items/1", "a\nb"),
        "level-of-too-short": changed(toy, "policy/level_of", [0, 1, 1, 1]),
        "level-of-out-of-range": changed(toy, "policy/level_of/4", 2),
        "level-of-negative": changed(toy, "policy/level_of/4", -1),
        "level-of-is-a-fraction": changed(toy, "policy/level_of/4", 0.5),
        "level-without-items": changed(toy, "policy/level_of", [1, 1, 1, 1, 1]),
        "level-named-twice": changed(toy, "policy/levels/1/name", "serious"),
        "epsilon-zero": changed(toy, "policy/levels/0/epsilon", "0"),
        "epsilon-negative": changed(toy, "policy/levels/0/epsilon", "-1"),
        "epsilon-infinite": changed(toy, "policy/levels/0/epsilon", "inf"),
        "epsilon-ln-1": changed(toy, "policy/levels/0/epsilon", "ln(1)"),
        "epsilon-words": changed(toy, "policy/levels/0/epsilon", "small"),
        "epsilon-not-canonical": changed(toy, "policy/levels/1/epsilon", "ln( 6 )"),
        "weight-zero": changed(toy, "policy/levels/0/weight", "0"),
        "pair-of-an-unknown-level": changed(good["five-pairs"], "policy/pairs/0/levels", ["v", "w"]),
    }


def mechanisms() -> list[Document]:
    good = good_mechanisms()
    groups = {
        "ok": good,
        "guarantee": broken_guarantees(good),
        "fingerprint": wrong_fingerprints(good),
        "unreadable": unreadable(good),
    }
    return [{"name": n, "expect": e, "document": x} for e, documents in groups.items() for n, x in documents.items()]


# ---- reports --------------------------------------------------------------------------------------------


def stream(seed: str, size: int) -> bytes:
    """Bytes that look random and are always the same."""
    blocks = (hashlib.sha256(f"{seed}/{k}".encode()).digest() for k in range(-(-size // 32)))
    return b"".join(blocks)[:size]


def size_of(document: Document) -> int:
    if document["encoding"] == "item":
        return 4
    inner = 12 if document["encoding"] == "compact" else (len(document["policy"]["items"]) + 7) // 8
    return inner + (1 if len(document["parts"]) > 1 else 0)


def read(document: Document, report: bytes) -> tuple[str, int, list[int]]:
    """The reason of a refusal ("" for none), the part, and the items whose bit is 1."""
    m, level_of = len(document["policy"]["items"]), document["policy"]["level_of"]
    if len(report) != size_of(document):
        return "length", 0, []
    if document["encoding"] == "item":
        item = int.from_bytes(report, "little")
        return ("item", 0, []) if item >= m else ("", 0, [item])
    part = 0
    if len(document["parts"]) > 1:
        part, report = report[0], report[1:]
        if part >= len(document["parts"]):
            return "part", 0, []
    if document["encoding"] == "bits":
        ones = [k for k in range(8 * len(report)) if report[k // 8] >> (k % 8) & 1]
        return ("padding", 0, []) if any(k >= m for k in ones) else ("", part, ones)
    s, t, r = (int.from_bytes(report[k : k + 4], "little") for k in (0, 4, 8))
    if max(s, t, r) >= P:
        return "range", 0, []
    limits = document["parts"][part]["b"]
    return "", part, [k for k in range(m) if (s + t * (k + 1) + r * (k + 1) ** 2) % P < limits[level_of[k]]]


def some_reports(document: Document, seed: str, count: int) -> list[bytes]:
    """Reports that are all acceptable."""
    m, size, several = len(document["policy"]["items"]), size_of(document), len(document.get("parts", [])) > 1
    found: list[bytes] = []
    for k in range(count):
        raw = stream(f"{seed}/{k}", 16)
        front = bytes([raw[15] % len(document["parts"])]) if several else b""
        if document["encoding"] == "item":
            found.append((int.from_bytes(raw[:4], "little") % m).to_bytes(4, "little"))
        elif document["encoding"] == "bits":
            inner = int.from_bytes(stream(f"{seed}/bits/{k}", size), "little") & (2**m - 1)
            found.append(front + inner.to_bytes(size - several, "little"))
        else:
            triple = (int.from_bytes(raw[4 * j : 4 * j + 4], "little") % P for j in range(3))
            found.append(front + b"".join(x.to_bytes(4, "little") for x in triple))
    return found


def edge_reports(document: Document) -> list[bytes]:
    """The first and the last of everything, and what lies one beyond."""
    m, size, parts = len(document["policy"]["items"]), size_of(document), len(document.get("parts", []))
    lengths = [stream("length", k) for k in (0, 1, size - 1, size + 1, 2 * size, 64) if k != size]
    if document["encoding"] == "item":
        return lengths + [k.to_bytes(4, "little") for k in (0, 1, m - 1, m, m + 1, 256, 2**31, D - 1)]
    fronts = [b""] if parts == 1 else [bytes([k]) for k in (0, 1, parts - 1)]
    beyond = [bytes([k]) for k in (parts, 254, 255) if k < 256 and k >= parts] if parts > 1 else []
    if document["encoding"] == "bits":
        inner = size - (parts > 1)
        full = 2**m - 1
        good = [x.to_bytes(inner, "little") for x in (0, 1, 2, 1 << (m - 1), full, full // 3)]
        bad = [(1 << k).to_bytes(inner, "little") for k in range(m, 8 * inner)]
        bad += [(2 ** (8 * inner) - 1).to_bytes(inner, "little")] if m % 8 else []
    else:
        good = [(0, 0, 0), (P - 1, 0, 0), (0, P - 1, 0), (0, 0, P - 1), (P - 1, P - 1, P - 1), (1, 2, 3)]
        b = document["parts"][0]["b"][0]
        good += [(b - 1, 0, 0), (b, 0, 0)]  # on both sides of the threshold of the first level
        bad = [(P, 0, 0), (0, P, 0), (0, 0, P), (P, P, P), (D - 1, 0, 0), (0, 2**31, 0), (P + 1, P - 1, 0)]
        good, bad = ([b"".join(x.to_bytes(4, "little") for x in triple) for triple in rows] for rows in (good, bad))
    found = lengths + [front + row for front in fronts for row in good] + [fronts[0] + row for row in bad]
    return found + [front + row for front in beyond for row in (good[0], *bad[:1])]


def reports() -> list[Document]:
    found = []
    for name, document in good_mechanisms().items():
        for report in edge_reports(document) + some_reports(document, f"report/{name}", 6):
            reason, part, ones = read(document, report)
            meaning = {"refused": reason} if reason else {"part": part, "ones": ones}
            found.append({"mechanism": name, "report": report.hex(), **meaning})
    return found


# ---- tallies --------------------------------------------------------------------------------------------


def tally(document: Document, rows: list[bytes]) -> Document:
    parts, m = max(1, len(document.get("parts", []))), len(document["policy"]["items"])
    part_n, counts, refused = [0] * parts, [[0] * m for _ in range(parts)], {}
    for row in rows:
        reason, part, ones = read(document, row)
        if reason:
            refused[reason] = refused.get(reason, 0) + 1
            continue
        part_n[part] += 1
        for k in ones:
            counts[part][k] += 1
    return {"part_n": part_n, "counts": counts, "refused": refused}


def estimate(document: Document, part_n: list[int], counts: list[list[int]]) -> list[float | None]:
    """Exactly unbiased counts of people; null where no report informs (DESIGN 3.5, 3.6, 3.8)."""
    if document["encoding"] == "item":
        return list(map(float, solve([[Fraction(x, D) for x in row] for row in matrix_of(document)], counts[0])))
    q = P if document["encoding"] == "compact" else D
    found: list[float | None] = []
    for i, level in enumerate(document["policy"]["level_of"]):
        above = below = Fraction(0)
        for part, n, row in zip(document["parts"], part_n, counts, strict=True):
            a, b = Fraction(part["a"][level], D), Fraction(part["b"][level], q)
            if a > b:
                information = (a - b) ** 2 / (b * (1 - b))
                above += information * (row[i] - n * b) / (a - b)
                below += information * n
        found.append(float((document["padding"] or 1) * sum(part_n) * above / below) if below else None)
    return found


def solve(rows: list[list[Fraction]], counts: list[int]) -> list[Fraction]:
    """x with sum_x x[i] rows[i][j] = counts[j]: the whole matrix, by elimination."""
    m = len(rows)
    system = [[rows[i][j] for i in range(m)] + [Fraction(counts[j])] for j in range(m)]
    for k in range(m):
        pivot = next(j for j in range(k, m) if system[j][k])
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [x / system[k][k] for x in system[k]]
        for j in range(m):
            if j != k and system[j][k]:
                system[j] = [x - system[j][k] * y for x, y in zip(system[j], system[k], strict=True)]
    return [row[m] for row in system]


def tallies() -> list[Document]:
    good = good_mechanisms()
    counts = dict.fromkeys(good, 40) | {"nine-avg-bits": 2100, "seventy-compact": 1030, "seventy-mixed-bits": 90}
    cases = [(name, some_reports(good[name], f"tally/{name}", n)) for name, n in counts.items()]
    for name in ("toy-grr", "seventy-mixed-bits", "nine-avg-compact-parts", "nine-avg-bits"):  # good and bad ones in turn
        mixed = [x for pair in zip(edge_reports(good[name]), some_reports(good[name], f"mixed/{name}", 99)) for x in pair]
        cases.append((name, mixed))
    blind = [x for x in some_reports(good["seventy-mixed-bits"], "blind", 30) if x[0] == 1]  # a = b for the first level
    cases += [("seventy-mixed-bits", blind), ("toy-opt0-bits", [b"\x01"]), ("toy-opt0-bits", [])]
    found = []
    for name, rows in cases:
        expect = tally(good[name], rows)
        n = sum(expect["part_n"])
        expect["estimate"] = estimate(good[name], expect["part_n"], expect["counts"]) if n else None
        found.append({"mechanism": name, "reports": [row.hex() for row in rows], **expect})
    return found


# ---- canonical JSON vectors -------------------------------------------------------------------------------


def canonicals() -> list[Document]:
    documents: list[Document] = [
        {},
        {"b": 1, "a": 2, "B": 3, "": 4, "a ": 5, "aa": 6, "_": 7, "10": 8, "9": 9},
        {"list": [], "nested": [[], [1], [[2, [3, "x"]]], {}], "object": {"z": {"y": {"x": []}}}},
        {"numbers": [0, -1, 1, 4294967296, 2147483647, 9007199254740991, -9007199254740991]},
        {"quotes": 'a "b" c', "backslash": "a\\b\\\\c", "slash": "a/b", "both": '\\"', "apostrophe": "it's"},
        {"umlaut": "äöüß", "größe": "é", "combining": "e\u0301", "日本語": "日本語", "кот": "жар-птица", "arabic": "سلام"},
        {"astral": "🙂🧪𝒳", "joined": "👩‍⚕️", "private": "\ue000", "last": "\uffff\U0010ffff"},
        {"separators": "\u2028\u2029\u00a0\u00ad\u200b\ufeff", "delete": "\x7f", "c1": "\x80\x9f", "html": "<a href=x>&amp;</a>"},
        {"blanks": " a  b ", "empty": "", "lines": "one\ntwo\r\n\tthree"},
        {"order": ["b", "a", 10, 9, "", "Ä"], "Z": 1, "z": 2, "Ä": 3, "~": 4},
    ]
    good = good_mechanisms()
    documents += [{k: v for k, v in good[name].items() if k != "fingerprint"} for name in ("nine-avg-bits", "toy-direct")]
    return [{"document": x, "canonical": canonical(x), "sha256": sha256(x)} for x in documents]


# ---- files ------------------------------------------------------------------------------------------------


def rendered() -> dict[str, str]:
    """The text of every file, by its name: a list with one case per line."""
    cases = {"mechanisms": mechanisms(), "reports": reports(), "tallies": tallies(), "canonical": canonicals()}
    return {
        f"{name}.json": "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"
        for name, rows in cases.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
