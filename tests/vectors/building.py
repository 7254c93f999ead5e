"""How mechanisms for the vectors are made: from chances, boxes and hits, and as changed copies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, prod
from typing import Any

import picks
from reference import (
    MANY,
    TOTAL,
    D,
    Document,
    base,
    body_of,
    classes,
    groups_of,
    holds,
    inputs,
    level_bound,
    sha256,
    solve,
)

HALF, QUARTER = D // 2, D // 4


def signed(document: Document) -> Document:
    body = body_of(document)
    return {**body, "fingerprint": sha256(body)}


# ---- how good mechanisms are made ----------------------------------------------------------------


def policy(levels: list[tuple[str, str, list[int]]], items: list[str], **more: Any) -> Document:
    """From (name, epsilon, places of its items) per level."""
    sets = {"strict": False} if more.get("kind") == "set" else {}
    of = [next(k for k, row in enumerate(levels) if i in row[2]) for i in range(len(items))]
    return {
        "question": "", "kind": "single", "notion": "min",
        "items": items, "level_of": of,
        "levels": [{"name": name, "epsilon": epsilon} for name, epsilon, _ in levels],
        "pairs": [], **sets, **more,
    }  # fmt: skip


def of_sets(policy_: Document, **more: Any) -> Document:
    """The same policy for lists of answers."""
    return {**policy_, "kind": "set", "strict": False, **more}


def body(policy_: Document, model: str, encoding: Document, **more: Any) -> Document:
    """Everything but the parts: shares of people as if all items were equally frequent."""
    document = {
        "format": "discreet-mechanism/3", "policy": policy_, "model": model, "prior": "uniform",
        "encoding": encoding, "padding": 3 if policy_["kind"] == "set" else 0,
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

    def passes(x: int) -> bool:
        return holds(changed(document, path, x, sign=False))

    return end if passes(end) else last(now, end, passes)


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
    document["parts"] = [part | ({"none": D} if policy_["kind"] != "single" else {})]
    for g in range(len(b)):
        own[g] = extreme(document, 0, "own", g, D)
    return document


Cell = tuple[Any, Any, Any]  # `other`, and the values H and L of a box of SPEC 1
ABSENT: Cell = (0, None, None)  # never uses the part
PLAIN: Cell = ("plain", 1, 0)  # sent as it is


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
        part |= {"none": chances[-1][o]} if policy_["kind"] != "single" else {}
        document["parts"].append(part)
    assert holds(document)
    return document


def numerator(document: Document, g: int, other: Any) -> int:
    if other == "plain":
        return 0
    return int(Fraction(other) * D) if document["encoding"]["kind"] == "bits" else other


def share_of(document: Document, g: int, cell: Cell) -> tuple[Fraction, Fraction]:
    """The chance of the part up to its scale, and of the own item."""
    other, h, l = cell
    if cell == ABSENT:
        return Fraction(0), Fraction(0)
    if cell == PLAIN:
        return Fraction(1), Fraction(1)
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


# ---- every item on its own, and hits -------------------------------------------------------------


def each(policy_: Document, **more: Any) -> Document:
    """As little noise as every group's budget allows: a = 1 - b, b = 1 / (e^eps + 1)."""
    alone = {key: value for key, value in policy_.items() if key != "strict"}
    document = body({**alone, "kind": "each"}, "each", {"kind": "each"}, **more)
    least = [min(e_[0] for e_ in bounds(document, g)) for g in range(max(document["groups"]) + 1)]
    other = [int(D / (x + 1)) + 1 for x in least]
    part = {"chance": [D] * len(other), "own": [D - x for x in other], "other": other, "none": D}
    return {**document, "parts": [part]}


def bounds(document: Document, group: int) -> list[tuple[Fraction, bool]]:
    """The factors of the levels of a group."""
    policy_ = document["policy"]
    return [level_bound(policy_, k) for k, g in enumerate(document["groups"]) if g == group]


def hits(
    policy_: Document, prime: int, padding: int,
    cuts: dict[tuple[int, ...], str | Fraction], model: str = "hits", **more: Any,
) -> Document:  # fmt: skip
    """A part for each choice of active groups, with its chance."""
    encoding = {"kind": "hits", "prime": prime}
    document = body(policy_, model, encoding, **more, padding=padding)
    every = [min(e_[0] for e_ in bounds(document, g)) for g in range(max(document["groups"]) + 1)]
    chances = rounded([Fraction(x) for x in cuts.values()])
    document["parts"] = []
    for active, chance in zip(cuts, chances, strict=True):
        e1, ec = min(every), min(x for x, on in zip(every, active, strict=True) if on)
        limit, rows = best_rows(e1, ec, padding, prime)
        document["parts"].append(
            {"chance": chance, "active": list(active), "limit": limit, "rows": rows}
        )
    assert holds(document)
    return document


@cache
def best_rows(e1: Fraction, ec: Fraction, s: int, prime: int) -> tuple[int, list[list[int]]]:
    """The threshold and the rows with the smallest b (1 - b) / delta^2 of a coarse grid."""
    r = [float(j * ec + (s - j) * e1) / s for j in range(s + 1)]
    steps = [float(e1) ** (k / 8) for k in range(1, 9)]
    some = {*range(1, s + 1, 1 + s // 6), s}
    chances = sorted({min(max(round(prime * 0.9 * 0.8**k), 1), prime - 1) for k in range(24)})
    found = []
    for limit, high_, low_ in product(chances, steps, steps):
        if max(high_, low_) > 0.999 * r[1]:  # nothing is left between the ends
            continue
        b = limit / prime
        delta = min(told(box(high_, 1 / low_, r[j]), b, j)[0] for j in some)
        if delta > 1e-9:
            found.append((round(b * (1 - b) / delta**2, 6), limit, high_, low_))
    _, limit, high_, low_ = min(found)
    high_, low_ = (min(Fraction(x).limit_denominator(10**6), e1) for x in (high_, low_))
    boxes = [box(high_, 1 / low_, (j * ec + (s - j) * e1) / s) for j in range(1, s + 1)]
    return limit, rows_of(boxes, limit, prime)


def picked(
    policy_: Document, padding: int, cuts: dict[tuple[int, ...], str],
    sizes: Sequence[int | tuple[int, ...]],
    sharp: str = "0.6", model: str = "subset", **more: Any,
) -> Document:  # fmt: skip
    """Per choice of blocks a part for every class of people: likelier for those who are in it and
    are named; and, of the smallest budget, as far as `sharp` says.
    """
    document = body(policy_, model, {"kind": "picks", "size": 1}, **more, padding=padding)
    groups = range(max(document["groups"]) + 1)
    if "shares" not in more:
        of = groups_of(document)
        few = Fraction(min(padding, len(of)), padding)
        empty = [Fraction(0)] * padding
        if few < 1:
            empty[min(padding, len(of))] = 1 - few
        document["shares"] = rounded([*(few * of.count(g) / len(of) for g in groups), *empty])
    e1 = min(e_[0] for g in groups for e_ in bounds(document, g))
    top = 1 + (Fraction(e1).limit_denominator(10**6) - 1) * Fraction(sharp)
    document["parts"] = []
    chances = rounded([Fraction(x) for x in cuts.values()])
    for blocks, chance in zip(cuts, chances, strict=True):
        m = picks.counts(document, {"blocks": blocks, "sizes": [0] * max(blocks)})
        people = [j for j in picks.classes(len(m), padding) if all(map(int.__le__, j, m))]
        some = []
        for c in range(len(people)):
            k = sizes[c % len(sizes)]
            each = (k,) * len(m) if isinstance(k, int) else k
            some.append([min(x, size - 1) for x, size in zip(each, m, strict=True)])
        table = picked_rows(m, padding, people, some, top)
        document["parts"] += [
            {"chance": chance, "blocks": list(blocks), "sizes": k, "rows": rows_}
            for k, rows_ in zip(some, table, strict=True)
        ]
    most = max(picks.body_size(document, part) for part in document["parts"])
    document["encoding"]["size"] = 1 + most
    assert holds(document)
    return document


def picked_rows(
    m: tuple[int, ...], s: int, people: list[tuple[int, ...]], sizes: Sequence[list[int]],
    top: Fraction,
) -> list[list[Any]]:  # fmt: skip
    """The rows of every part; each vector of named items is a bunch."""
    found: list[list[Any]] = [[] for _ in sizes]
    for j in picks.classes(len(m), s):
        masses = []
        for c, k in enumerate(sizes):
            every = Fraction(1, prod(map(comb, m, k)))
            names = picks.can_be_named(m, k, j)
            for place, n in enumerate(names):
                likely = top if people[c] == j and (any(n) or len(names) == 1) else 1
                masses.append((c, place, likely * every * picks.named_ways(m, k, j, n)))
        total = sum(x for _, _, x in masses)
        whole = [round(x / total * TOTAL) for _, _, x in masses]
        if whole:
            whole[whole.index(max(whole))] += TOTAL - sum(whole)
        for row in found:
            row.append([])
        for (c, place, _), mass in zip(masses, whole, strict=True):
            found[c][-1].append([mass, place])
    return found


def box(high_: Any, low_: Any, r: Any) -> tuple[Any, Any]:
    """The ends between which the density of a row may lie."""
    return min(high_, r * low_), max(low_, high_ / r)


def told(ends: tuple[Any, Any], b: Any, j: int) -> tuple[Any, int, list[Any]]:
    """delta of one own item of j, the boundary, and the density above, at and below it.

    The upper end for the largest N, as many as make the mean 1: nothing tells more.
    """
    top, low_ = ends
    law = [comb(j, n) * b**n * (1 - b) ** (j - n) for n in range(j + 1)]
    left, tau = (1 - low_) / (top - low_), j
    while tau and left > law[tau]:
        left -= law[tau]
        tau -= 1
    f = [top, low_ + (top - low_) * left / law[tau], low_]
    mean = sum(n * law[n] * f[(n <= tau) + (n < tau)] for n in range(j + 1))
    return mean / j - b, tau, f


def rows_of(boxes: list[tuple[Any, Any]], limit: int, prime: int) -> list[list[int]]:
    """Rows in which every own item is named with the same chance, up to units of 2^-52."""
    b = Fraction(limit, prime)
    every = [told(ends, b, j) for j, ends in enumerate(boxes, 1)]
    delta, found = min(row[0] for row in every) * (1 - Fraction(1, 10**9)), []
    for j, (more, tau, f) in enumerate(every, 1):
        names = classes(j, tau)
        share = [sum(comb(j, n) * b**n * (1 - b) ** (j - n) for n in row) for row in names]
        top, _, low_ = (
            int((1 + (x - 1) * delta / more) * y * TOTAL) for x, y in zip(f, share, strict=True)
        )
        found.append([tau, top, TOTAL - top - low_, low_])
    return found


# ---- changed copies ------------------------------------------------------------------------------


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
