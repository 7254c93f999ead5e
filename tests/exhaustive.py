"""Every report's probability by enumeration, in fractions: the real claim, without sampling.

Nothing of discreet is used: a mechanism is its document (format 2), and probabilities come from
what the client does with it, step by step: the part, the own item, then the subset, the bits or
the ticket; of whole sets also every bit by itself, or the own hits and a polynomial through them.
For small mechanisms only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from math import comb, inf, lcm, log, prod
from typing import Any

import numpy as np
import picked

D = 2**32
TOTAL = 2**52  # of a row of hits
Document = dict[str, Any]
Distribution = dict[bytes, Fraction]
Items = frozenset[int]
Weights = Sequence[Sequence[Fraction]]  # parts x groups


# ---- what is in a document -----------------------------------------------------------------------


def groups_of(document: Document) -> list[int]:
    """The group of every item."""
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def members(document: Document) -> list[list[int]]:
    """The items of every group."""
    of = groups_of(document)
    return [[i for i, x in enumerate(of) if x == g] for g in range(max(document["groups"]) + 1)]


def answers(document: Document) -> list[int | None]:
    """Everything that can be held: the items and, for set input, None."""
    nothing = [None] if document["policy"]["kind"] != "single" else []
    return [*range(len(document["policy"]["items"])), *nothing]


# ---- what the client does ------------------------------------------------------------------------


def distribution(document: Document, item: int | None) -> Distribution:
    """Pr(report | what is held) of every report that can be sent."""
    write = {"fixed": fixed, "bits": bits, "ticket": tickets}[document["encoding"]["kind"]]
    found: Distribution = {}
    for o, part in enumerate(document["parts"]):
        chance = part["none"] if item is None else part["chance"][groups_of(document)[item]]
        for own, p in own_item(document, part, item) if chance else ():
            for report, share in write(document, o, item, own) if p else ():
                found[report] = found.get(report, Fraction(0)) + Fraction(chance, D) * p * share
    return found


def own_item(
    document: Document, part: Document, item: int | None
) -> list[tuple[bool | None, Fraction]]:
    """Whether the own item is named, with its chance; None where nothing is drawn for it."""
    if item is None or not part["own"][groups_of(document)[item]]:
        return [(None, Fraction(1))]
    own = Fraction(part["own"][groups_of(document)[item]], D)
    return [(True, own), (False, 1 - own)]


def fixed(
    document: Document, o: int, item: int | None, own: bool | None
) -> Iterator[tuple[bytes, Fraction]]:
    """A uniform subset of every speaking group, around the own item in its group."""
    choices = []
    for group, size in zip(members(document), document["parts"][o]["other"], strict=True):
        if own is None or item not in group:
            choices.append(list(combinations(group, size)))
        else:
            others = [i for i in group if i != item]
            rest = combinations(others, size - own)
            choices.append([(*((item,) if own else ()), *some) for some in rest])
    share = Fraction(1, prod(map(len, choices)) or 1)
    for some in product(*choices):
        yield packed(document, o, [i for row in some for i in row]), share


def bits(
    document: Document, o: int, item: int | None, own: bool | None
) -> Iterator[tuple[bytes, Fraction]]:
    """Every bit of a speaking group by itself; silent groups are 0."""
    other, of = document["parts"][o]["other"], groups_of(document)
    ones = [Fraction(other[g], D) for g in of]
    if own is not None and item is not None:
        ones[item] = Fraction(int(own))
    for row in product(*((0, 1) if 0 < p < 1 else (int(p),) for p in ones)):
        share = prod(
            (p if bit else 1 - p for p, bit in zip(ones, row, strict=True)), start=Fraction(1)
        )
        yield packed(document, o, [i for i, bit in enumerate(row) if bit]), share


def tickets(
    document: Document, o: int, item: int | None, own: bool | None
) -> Iterator[tuple[bytes, Fraction]]:
    """A uniform ticket, or one that gives the own item a uniform mark on its side of T."""
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    if own and item is not None and is_plain(document, o):
        yield numbered(document, o, item), Fraction(1)
        return
    if own is None or item is None:
        for y in range(q ** (t + 1)):
            yield numbered(document, o, y), Fraction(1, q ** (t + 1))
        return
    threshold = document["parts"][o]["other"][groups_of(document)[item]]
    marks = range(threshold) if own else range(threshold, q)
    for v, *rest in product(marks, *[range(q)] * t):
        first = (v - sum(a * c for a, c in zip(rest, code(document, item), strict=True))) % q
        y = sum(digit * q**k for k, digit in enumerate(reversed([first, *rest])))
        yield numbered(document, o, y), Fraction(1, len(marks) * q**t)


def is_plain(document: Document, o: int) -> bool:
    """Whether the reports of the part are items as they are: named by their own people alone."""
    part = document["parts"][o]
    return any(own and not other for own, other in zip(part["own"], part["other"], strict=True))


def code(document: Document, item: int) -> list[int]:
    """c_1 … c_t of an item: its digits, each but the first moved by a power of the first."""
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    x, found = item % q, [item % q]
    for j in range(2, t + 1):
        item //= q
        found.append((item + x**j) % q)
    return found


def packed(document: Document, o: int, named: Sequence[int]) -> bytes:
    """The part's number where there are several, then a bit per item."""
    row = bytearray(-(-len(document["policy"]["items"]) // 8))
    for i in named:
        row[i >> 3] |= 1 << (i & 7)
    return (bytes([o]) if len(document["parts"]) > 1 else b"") + bytes(row)


def numbered(document: Document, o: int, y: int) -> bytes:
    """Part and ticket in four bytes."""
    each = document["encoding"]["q"] ** (document["encoding"]["t"] + 1)
    return (o * each + y).to_bytes(4, "little")


def part_and_named(document: Document, report: bytes) -> tuple[int, list[int]]:
    """What a report that can be sent says."""
    of, every = groups_of(document), range(len(document["policy"]["items"]))
    if document["encoding"]["kind"] == "hits":
        return hits_named(document, report)
    if document["encoding"]["kind"] != "ticket":
        front = len(document["parts"]) > 1
        row = report[front:]
        return report[0] if front else 0, [i for i in every if row[i >> 3] >> (i & 7) & 1]
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    o, y = divmod(int.from_bytes(report, "little"), q ** (t + 1))
    first, rest = y // q**t, [y // q**k % q for k in range(t - 1, -1, -1)]
    other = document["parts"][o]["other"]
    if is_plain(document, o):
        return o, [y]

    def mark(i: int) -> int:
        return (first + sum(a * c for a, c in zip(rest, code(document, i), strict=True))) % q

    return o, [i for i in every if mark(i) < other[of[i]]]


# ---- sets ----------------------------------------------------------------------------------------


def sets(document: Document) -> Callable[[Items], Distribution]:
    """Pr(report | set). Where an item is sampled: one of max(|x|, padding) places is drawn, beyond
    the set: nothing.
    """
    by_kind = {"each": each_set, "hits": hits_set, "picks": picked.reports_of_set}
    if whole := by_kind.get(document["encoding"]["kind"]):
        return partial(whole, document)
    held = {x: distribution(document, x) for x in answers(document)}

    def of(x: Items) -> Distribution:
        each = Fraction(1, max(len(x), document["padding"]))
        rest = 1 - each * len(x)
        reports = {y for table in held.values() for y in table}
        zero = Fraction(0)
        return {
            y: rest * held[None].get(y, zero) + each * sum((held[i].get(y, zero) for i in x), zero)
            for y in reports
        }

    return of


def subsets(m: int) -> Iterator[Items]:
    """All sets of items."""
    for size in range(m + 1):
        yield from (frozenset(c) for c in combinations(range(m), size))


def each_set(document: Document, x: Items) -> Distribution:
    """Every item by itself: named with the chance `own` in the set, with `other` beyond it."""
    (part,), found = document["parts"], {}
    ones = [
        Fraction(part["own" if i in x else "other"][g], D)
        for i, g in enumerate(groups_of(document))
    ]
    for row in product((0, 1), repeat=len(ones)):
        chances = (p if bit else 1 - p for p, bit in zip(ones, row, strict=True))
        named = [i for i, bit in enumerate(row) if bit]
        found[packed(document, 0, named)] = prod(chances, start=Fraction(1))
    return found


# ---- hits ----------------------------------------------------------------------------------------


def hits_set(document: Document, x: Items) -> Distribution:
    """The client's steps: part, items kept, own hits, own values, polynomial."""
    found: Counter[bytes] = Counter()
    for o, part in enumerate(document["parts"]):
        for own, share in own_items(document, part, x):
            for named, p in own_hits(document, part, own):
                reports = list(polynomials(document, part, own, named))
                each = Fraction(part["chance"], D) * share * p / len(reports)
                for report in reports:
                    found[written(document, o, report)] += each
    return dict(found)


def own_items(document: Document, part: Document, x: Items) -> Iterator[tuple[Items, Fraction]]:
    """The active ones of a uniform subset of `padding` items, all levels alike."""
    of, kept = groups_of(document), list(combinations(sorted(x), min(len(x), document["padding"])))
    for some in kept:
        yield frozenset(i for i in some if part["active"][of[i]]), Fraction(1, len(kept))


def own_hits(document: Document, part: Document, own: Items) -> Iterator[tuple[Items, Fraction]]:
    """Which of the own items are named: a class, how many of it, then a uniform subset."""
    if not own:
        yield own, Fraction(1)
        return
    j, limit, p = len(own), part["limit"], document["encoding"]["prime"]
    tau, *masses = part["rows"][j - 1]
    for mass, names in zip(masses, (range(tau + 1, j + 1), [tau], range(tau)), strict=True):
        weights = {n: comb(j, n) * limit**n * (p - limit) ** (j - n) for n in names}
        for n, weight in weights.items():
            each = Fraction(mass * weight, TOTAL * sum(weights.values()) * comb(j, n))
            yield from ((frozenset(some), each) for some in combinations(sorted(own), n))


def polynomials(
    document: Document, part: Document, own: Items, named: Items
) -> Iterator[tuple[int, ...]]:
    """All that give the own items values on their side of T, each as often as any other: divided
    differences of the own points, over free coefficients.
    """
    p, limit, d = document["encoding"]["prime"], part["limit"], document["padding"] + 2
    points = [i + 1 for i in sorted(own)]
    sides = [range(limit) if i in named else range(limit, p) for i in sorted(own)]
    for values in product(*sides):
        table = list(values)
        for step in range(1, len(points)):
            for k in range(len(points) - 1, step - 1, -1):
                inverse = pow(points[k] - points[k - step], -1, p)
                table[k] = (table[k] - table[k - 1]) * inverse % p
        for rest in product(range(p), repeat=d - len(own)):
            found = list(rest)
            for k in range(len(points) - 1, -1, -1):
                shifted = [0, *found]  # times (x - point), plus the difference
                found = [(a - points[k] * b) % p for a, b in zip(shifted, [*found, 0], strict=True)]
                found[0] = (found[0] + table[k]) % p
            yield tuple(found)


def written(document: Document, o: int, coefficients: Iterable[int]) -> bytes:
    """The part's number, then the coefficients."""
    size = 2 if document["encoding"]["prime"] < 2**16 else 4
    return bytes([o]) + b"".join(c.to_bytes(size, "little") for c in coefficients)


def hits_named(document: Document, report: bytes) -> tuple[int, list[int]]:
    """Items of active groups whose value is below T, by Horner's rule."""
    p, part = document["encoding"]["prime"], document["parts"][report[0]]
    size = 2 if p < 2**16 else 4
    found = []
    for i, g in enumerate(groups_of(document)):
        value = 0
        for k in range(len(report) - size, 0, -size):
            value = (value * (i + 1) + int.from_bytes(report[k : k + size], "little")) % p
        if part["active"][g] and value < part["limit"]:
            found.append(i)
    return report[0], found


Pattern = tuple[int, Items]  # a part and the items that are named


def hits_patterns(
    document: Document, keep: Callable[..., Any] = own_items
) -> Callable[[Items], dict[Pattern, Fraction]]:
    """Pr(part and items named | set), from a count of all polynomials.

    Reports of one pattern have one chance: given the own hits every polynomial has the same.
    """
    counts = [pattern_counts(document, part) for part in document["parts"]]

    @cache
    def kept(o: int, own: Items) -> dict[Items, Fraction]:
        same: Counter[Items] = Counter()
        for named, count in counts[o].items():
            same[named & own] += count
        hits = dict(own_hits(document, document["parts"][o], own))
        return {y: hits[y & own] * Fraction(count, same[y & own]) for y, count in counts[o].items()}

    def of(x: Items) -> dict[Pattern, Fraction]:
        found: Counter[Pattern] = Counter()
        for o, part in enumerate(document["parts"]):
            for own, share in keep(document, part, x):
                for named, p in kept(o, own).items():
                    found[o, named] += Fraction(part["chance"], D) * share * p
        return dict(found)

    return of


def pattern_counts(document: Document, part: Document) -> dict[Items, int]:
    """How many of all polynomials name exactly these items."""
    p, d, of = document["encoding"]["prime"], document["padding"] + 2, groups_of(document)
    items = [i for i, g in enumerate(of) if part["active"][g]]
    if p**d > 10**6 and len(items) <= d:  # any d values of a polynomial are independent
        free, limit = p ** (d - len(items)), part["limit"]
        sizes = {y: len(y) for y in map(frozenset, chosen(items))}
        return {y: limit**n * (p - limit) ** (len(items) - n) * free for y, n in sizes.items()}
    return counted(p, d, part["limit"], tuple(items))


@cache
def counted(p: int, d: int, limit: int, items: tuple[int, ...]) -> dict[Items, int]:
    """By evaluating every one."""
    assert p**d <= 10**6
    coefficients = np.indices((p,) * d, dtype=np.int32).reshape(d, -1)
    pattern = np.zeros(p**d, np.int64)
    for place, i in enumerate(items):
        values = np.zeros(p**d, np.int32)
        for row in coefficients[::-1]:
            values = (values * (i + 1) + row) % p
        pattern |= (values < limit).astype(np.int64) << place
    found = np.bincount(pattern, minlength=1 << len(items)).tolist()
    return {
        frozenset(i for place, i in enumerate(items) if y >> place & 1): count
        for y, count in enumerate(found)
        if count
    }


def chosen(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All subsets of a few items."""
    for size in range(len(items) + 1):
        yield from combinations(items, size)


# ---- how far sets are apart ----------------------------------------------------------------------


def in_one_unit(laws: Mapping[Hashable, Mapping[Any, Fraction]]) -> dict[Any, list[int]]:
    """Chances of the same reports as whole numbers, so that they can be compared quickly."""
    reports = list(dict.fromkeys(y for law in laws.values() for y in law))
    unit = lcm(*(p.denominator for law in laws.values() for p in law.values()))
    zero = Fraction(0)
    return {x: [int(law.get(y, zero) * unit) for y in reports] for x, law in laws.items()}


def apart(first: Sequence[int], second: Sequence[int]) -> Fraction:
    """The largest ratio of two chances of one report."""
    most, least = 0, 1
    for p, q in {*zip(first, second, strict=True)}:
        if p * least > q * most:
            most, least = p, q
    return Fraction(most, least)


def item_factors(document: Document, rows: Mapping[Items, Sequence[int]]) -> list[Fraction]:
    """Per level, what having an item changes the chance of any report by, at most."""
    found = [Fraction(1)] * len(document["policy"]["levels"])
    for x, row in rows.items():
        for i in x:
            level, without = document["policy"]["level_of"][i], rows[x - {i}]
            found[level] = max(found[level], apart(row, without), apart(without, row))
    return found


# ---- what the policy allows ----------------------------------------------------------------------

CONTEXT = Context(prec=60)
CLOSE = Fraction(1, 10**50)  # of e^r, relative: far closer than one unit of 2^-32


def budget(text: str) -> Decimal:
    """epsilon to 60 digits."""
    logarithm = re.fullmatch(r"ln\((\d+)(?:/(\d+))?\)", text)
    if not logarithm:
        return Decimal(text)
    return CONTEXT.ln(CONTEXT.divide(Decimal(logarithm[1]), Decimal(logarithm[2] or 1)))


def pair_budget(policy: Document, i: int, j: int) -> Decimal | None:
    """r of an answer of level i over one of level j; None where it is not protected."""
    names = [policy["levels"][i]["name"], policy["levels"][j]["name"]]
    for pair in policy["pairs"]:
        if names in (pair["levels"], pair["levels"][:: 1 if pair.get("one_way") else -1]):
            return budget(pair["epsilon"]) if pair["epsilon"] else None
    texts = [policy["levels"][k]["epsilon"] for k in (i, j)]
    first, second = (None if text == "open" else budget(text) for text in texts)
    if policy["notion"] == "one-way" or first is None or second is None:
        return first
    if policy["notion"] == "blocks":
        return first if i == j else None
    if policy["notion"] == "scale":
        return min(abs(i - j), policy["cap"] or len(policy["levels"])) * first
    if policy["notion"] == "min":
        return min(first, second)
    return CONTEXT.divide(CONTEXT.add(first, second), Decimal(2))


def allowed(policy: Document, x: int | None, y: int | None) -> Decimal | None:
    """r of two answers by the policy alone; with nothing: the smallest of the item's level."""
    levels = [None if k is None else policy["level_of"][k] for k in (x, y)]
    if None not in levels:
        return pair_budget(policy, *levels)
    level = next(k for k in levels if k is not None)
    found = [pair_budget(policy, level, k) for k in range(len(policy["levels"]))]
    return min((r for r in found if r is not None), default=None)


def factor(r: Decimal) -> tuple[Fraction, Fraction]:
    """Rationals just below and just above e^r."""
    near = Fraction(CONTEXT.exp(r))
    return near * (1 - CLOSE), near * (1 + CLOSE)


def set_budget(document: Document, x: Items) -> tuple[Fraction, Fraction]:
    """Rationals just below and just above the paper's e^{eps_x}: the mean of e^eps over the set,
    with the smallest of all where it is smaller than the padding; strict: the smallest.
    """
    policy, places = document["policy"], max(len(x), document["padding"])
    each = [factor(budget(level["epsilon"])) for level in policy["levels"]]
    pairs_ = [factor(budget(pair["epsilon"])) for pair in policy["pairs"] if pair["epsilon"]]
    if policy["strict"]:
        return min(each + pairs_)
    own = [each[policy["level_of"][i]] for i in x] + [min(each)] * (places - len(x))
    return sum(e[0] for e in own) / places, sum(e[1] for e in own) / places


def pairs(document: Document) -> Iterator[tuple[Any, Any, Decimal, Fraction | None]]:
    """Two protected answers, their budget, and the largest ratio of any report; None: infinite."""
    tables = {x: distribution(document, x) for x in answers(document)}
    for x, y in product(tables, repeat=2):
        r = None if x == y else allowed(document["policy"], x, y)
        if r is None:
            continue
        if any(p and not tables[y].get(report) for report, p in tables[x].items()):
            yield x, y, r, None
        else:
            some = (p / tables[y][report] for report, p in tables[x].items() if p)
            yield x, y, r, max(some)


def worst_excess(document: Document) -> float:
    """The largest ln ratio - r over reports and pairs of answers; -inf where nothing is bound."""
    found = (
        inf if ratio is None else log(ratio.numerator) - log(ratio.denominator) - float(r)
        for _, _, r, ratio in pairs(document)
    )
    return max(found, default=-inf)


def violations(document: Document) -> list[tuple[Any, Any]]:
    """Ordered pairs of answers that some report tells apart by more than the policy allows.

    A ratio that is e^r to 50 digits is e^r: budgets such as ln(4) are met to the last unit.
    """
    return [(x, y) for x, y, r, ratio in pairs(document) if ratio is None or ratio > factor(r)[1]]


def breaks(document: Document) -> bool:
    """Whether some report breaks the promise of the policy."""
    return bool(violations(document))


# ---- moments of an estimator ---------------------------------------------------------------------


def scores(
    document: Document, report: bytes, w: Weights, b: Weights, tau: Weights
) -> list[Fraction]:
    """What one report adds to the estimate of every item: w (named - b) + tau of its part."""
    o, named = part_and_named(document, report)
    return [
        w[o][g] * ((i in named) - b[o][g]) + tau[o][g] for i, g in enumerate(groups_of(document))
    ]


def moments(
    document: Document, item: int | None, w: Weights, b: Weights, tau: Weights
) -> tuple[list[Fraction], list[Fraction]]:
    """Expectation and variance of what one answer adds to the estimate of every item."""
    m = range(len(document["policy"]["items"]))
    first, second = [Fraction(0) for _ in m], [Fraction(0) for _ in m]
    for report, p in distribution(document, item).items():
        for i, score in enumerate(scores(document, report, w, b, tau)):
            first[i] += p * score
            second[i] += p * score * score
    return first, [s - f * f for s, f in zip(second, first, strict=True)]
