"""How mechanisms for the vectors are made: from chances, from boxes, and as changed copies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reference import MANY, D, Document, base, body_of, groups_of, holds, inputs, sha256, solve

HALF, QUARTER = D // 2, D // 4


def signed(document: Document) -> Document:
    body = body_of(document)
    return {**body, "fingerprint": sha256(body)}


# ---- how good mechanisms are made ----------------------------------------------------------------


def policy(levels: list[tuple[str, str, list[int]]], items: list[str], **more: Any) -> Document:
    """From (name, epsilon, places of its items) per level."""
    of = [next(k for k, row in enumerate(levels) if i in row[2]) for i in range(len(items))]
    return {
        "name": "vectors", "question": "", "input": "single", "notion": "min",
        "items": items, "level_of": of,
        "levels": [{"name": name, "epsilon": epsilon} for name, epsilon, _ in levels],
        "pairs": [], **more,
    }  # fmt: skip


def body(policy_: Document, model: str, encoding: Document, **more: Any) -> Document:
    """Everything but the parts: shares of people as if all items were equally frequent."""
    document = {
        "format": "discreet-mechanism/2", "policy": policy_, "model": model, "prior": "uniform",
        "encoding": encoding, "padding": 3 if policy_["input"] == "set" else 0,
        "groups": list(range(len(policy_["levels"]))), **more,
    }  # fmt: skip
    if "shares" not in more:
        of = groups_of(document)
        sizes = [of.count(g) for g in inputs(document)]
        document["shares"] = rounded([Fraction(size, len(of)) for size in sizes])
    return document


def rounded(shares: Sequence[Fraction]) -> list[int]:
    """Integers that sum to D, the remainder on the largest."""
    found = [round(share * D) for share in shares]
    found[found.index(max(found))] += D - sum(found)
    return found


def last(good: int, bad: int, passes: Callable[[int], bool]) -> int:
    """The last integer from `good` towards `bad` that passes."""
    assert passes(good) and not passes(bad)
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if passes(middle) else (good, middle)
    return good


def extreme(document: Document, part: int, key: str, group: int, end: int) -> int:
    """The last value of a numerator, from where it is towards `end`, with which the check holds."""
    path = f"parts/{part}/{key}/{group}"
    now = document["parts"][part][key][group]
    return last(now, end, lambda x: holds(changed(document, path, x, sign=False)))


def e(text: str) -> Fraction:
    """e^epsilon, near enough to design with."""
    return Fraction(MANY.exp(Decimal(text))).limit_denominator(10**12)


BITS: Document = {"kind": "bits"}
FIXED: Document = {"kind": "fixed"}


def ticket(q: int, t: int) -> Document:
    return {"kind": "ticket", "q": q, "t": t}


def unary(policy_: Document, model: str, encoding: Document, b: list[str], **more: Any) -> Document:
    """One part for all: given b of every group, a is raised group by group as far as it goes."""
    document = body(policy_, model, encoding, **more)
    other = [int(Fraction(x) * base(document, g)) for g, x in enumerate(b)]
    own = [x * D // base(document, g) for g, x in enumerate(other)]
    part = {"chance": [D] * len(b), "own": own, "other": other}
    document["parts"] = [part | ({"none": D} if policy_["input"] == "set" else {})]
    for g in range(len(b)):
        own[g] = extreme(document, 0, "own", g, D)
    return document


Cell = tuple[Any, Any, Any]  # `other`, and the values H and L of a box of SPEC 1


def high(value: Any) -> Cell:
    """Silent, its chance at the upper end of the box."""
    return 0, Fraction(value), None


def low(value: Any) -> Cell:
    """Silent, its chance at the lower end of the box."""
    return 0, None, Fraction(value)


def middle(value: Any) -> Cell:
    """Silent, where both ends meet."""
    return 0, Fraction(value), Fraction(value)


SLACK = Fraction(1, 10**6)  # far above what rounding to 2^-32 can move


def boxed(
    policy_: Document, encoding: Document, parts: list[list[Cell]],
    given: Sequence[str] = (), model: str = "subset", **more: Any,
) -> Document:  # fmt: skip
    """Parts from boxes (SPEC 2): a cell per group, then of nothing; the last scales are `given`."""
    document = body(policy_, model, encoding, **more)
    every = inputs(document)
    share = [[share_of(document, g, cell) for g, cell in zip(every, row)] for row in parts]
    free = len(parts) - len(given)
    rest = [
        1 - sum((Fraction(x) * row[k][0] for x, row in zip(given, share[free:])), Fraction(0))
        for k in range(len(every))
    ]
    columns = [[row[k][0] for row in share[:free]] for k in range(len(every))]
    scales = [*solve(columns, rest), *map(Fraction, given)]
    assert min(scales) > 0
    chances = [
        rounded([scale * row[k][0] for scale, row in zip(scales, share)]) for k in range(len(every))
    ]
    real = range(max(document["groups"]) + 1)
    document["parts"] = []
    for o, row in enumerate(parts):
        part: Document = {
            "chance": [chances[g][o] for g in real],
            "own": [round(share[o][g][1] * D) for g in real],
            "other": [numerator(document, g, row[g][0]) for g in real],
        }
        part |= {"none": chances[-1][o]} if policy_["input"] == "set" else {}
        document["parts"].append(part)
    assert holds(document)
    return document


def numerator(document: Document, g: int, other: Any) -> int:
    return int(Fraction(other) * D) if document["encoding"]["kind"] == "bits" else other


def share_of(document: Document, g: int, cell: Cell) -> tuple[Fraction, Fraction]:
    """The chance of the part up to its scale, and of the own item."""
    other, h, l = cell
    if not other:
        ends = [
            *([] if h is None else [h * (1 - SLACK)]),
            *([] if l is None else [l * (1 + SLACK)]),
        ]
        return sum(ends, Fraction(0)) / len(ends), Fraction(0)
    b = Fraction(numerator(document, g, other), base(document, g))
    h, l = Fraction(h) * (1 - SLACK), Fraction(l) * (1 + SLACK)
    whole = b * h + (1 - b) * l
    return whole, b * h / whole


def tightened(document: Document) -> Document:
    """The own chance of the last group that speaks raised to the last unit that passes."""
    o, g = last_speaking(document)
    return changed(document, f"parts/{o}/own/{g}", extreme(document, o, "own", g, D), sign=False)


def last_speaking(document: Document) -> tuple[int, int]:
    """The last part and group that speaks there."""
    parts = document["parts"]
    return max((o, g) for o, part in enumerate(parts) for g, own in enumerate(part["own"]) if own)


def changed(document: Document, path: str, value: Any, sign: bool = True) -> Document:
    """A copy with the value at a path such as "parts/0/own/1" replaced (… removes the key)."""
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


def altered(document: Document, changes: dict[str, Any]) -> Document:
    """Several changes at once."""
    for path, value in changes.items():
        document = changed(document, path, value)
    return document
