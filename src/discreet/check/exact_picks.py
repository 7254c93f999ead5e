"""The check of picks, sets that are reported as subsets of fixed size, in exact integer arithmetic.

As in exact.py: no floating point, no solver, no numpy; this file is meant to be audited.

Public chances first draw a *cut*: a set of groups whose m items are *active*. Parts with the same
active groups belong to the same cut. Then a person with a set of at most s items, j of them active,
draws by row j of the cut a part and a *run*, some numbers n of own items that are named; then the
number n of the run with a chance proportional to C(j,n) C(m-j,k-n); then n of the own active items
and k - n of the other active ones, every choice alike. So against a uniform subset of k of the m
active items the density of a report is a function of its part, j and n alone,

    f_j(n) = mass C(m,k) / (2^52 W),    W = sum over the n of the run of C(j,n) C(m-j,k-n)

A set of more than s items is first cut to a uniform subset of s, whatever is active.

What is proved, for any two sets x, x' and every report y, with the paper's budget eps_x of a set:

    Pr(y | x) <= min(e^{eps_x}, e^{eps_x'}) Pr(y | x')

from max f_j <= R_j LO and HI <= R_j min f_j for every j, as for hits (exact_sets.py): HI and LO are
the extremes of all densities of the part, R_j = (j E_c + (s-j) E_1) / s, E_1 at most
e^{smallest budget} and E_c at most e^{smallest budget of an active level}. The chance of the cut is
the same for everybody and drops out. And that having or not having an item changes the chance of
any report by at most e^{eps of its level} (`item_factors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

from discreet.check.exact import D, Violation, level_factors
from discreet.check.exact_sets import TOTAL, worst
from discreet.policy import Policy

Row = Sequence[Sequence[int]]  # the runs of a number of active items: last number n, mass
Densities = list[dict[int, Fraction]]  # f_j(n) of the numbers n that can happen, per j


class PickChances(NamedTuple):
    """The integers of one part."""

    chance: int  # of the cut, over 2^32, whatever the answer
    active: Sequence[int]  # per group, 1 if its items can be named
    size: int  # k, the number of items that every report names
    # for j = 0, …, s active items, empty where j > m; masses over 2^52, of all parts of the cut
    rows: Sequence[Row]


class Run(NamedTuple):
    """Numbers of own items that are named with one density."""

    mass: int
    ways: int  # W
    numbers: range


# ---- one part ------------------------------------------------------------------------------------


def possible(m: int, k: int, j: int) -> range:
    """The numbers of own items, of j among m, that a subset of k can name."""
    return range(max(0, k + j - m), min(j, k) + 1)


def weight(m: int, k: int, j: int, n: int) -> int:
    """How many subsets of k of m items name n of j given ones."""
    return comb(j, n) * comb(m - j, k - n)


def runs(m: int, k: int, j: int, row: Row) -> Iterator[Run]:
    """The runs of a row."""
    first = possible(m, k, j).start
    for last, mass in row:
        numbers = range(first, last + 1)
        yield Run(mass, sum(weight(m, k, j, n) for n in numbers), numbers)
        first = last + 1


def densities(m: int, part: PickChances) -> Densities:
    """f_j(n) for j = 0, …, s."""
    k = part.size
    return [
        {
            n: Fraction(run.mass * comb(m, k), TOTAL * run.ways)
            for run in runs(m, k, j, row)
            for n in run.numbers
        }
        for j, row in enumerate(part.rows)
    ]


def law(m: int, part: PickChances, j: int) -> dict[int, Fraction]:
    """The chance of the part and of n named own items, given the cut and j active items."""
    k = part.size
    return {
        n: Fraction(run.mass * weight(m, k, j, n), TOTAL * run.ways)
        for run in runs(m, k, j, part.rows[j])
        for n in run.numbers
    }


def extremes(f: Densities) -> tuple[Fraction, Fraction]:
    """The largest and the smallest density."""
    values = [value for row in f for value in row.values()]
    return max(values), min(values)


def item_factors(f: Densities, m: int, others: int) -> tuple[Fraction, Fraction]:
    """By how much having or not having an item changes the chance of any report that exists: an
    active item, and another, of m active and so many other items (exact_sets.item_factors).
    """
    s, held, lacked = len(f) - 1, [Fraction(1)], [Fraction(1)]
    for j, row in enumerate(f[1:], 1):
        held += [
            value / f[j - 1][n - h] for n, value in row.items() for h in (0, 1) if n - h in f[j - 1]
        ]
    for a, row in enumerate(f):
        if s - a > others:  # nobody has s items of which a are active
            continue
        for n in row:
            if a < m:
                held += [r for h in (0, 1) if (r := _replaced(f, a, n, h)) is not None]
            if s - a < others:
                lacked += [r for r in (_replaced(f, a, n, None),) if r is not None]
    return worst(held), worst(lacked)


def _replaced(f: Densities, a: int, n: int, h: int | None) -> Fraction | None:
    """Law of x over law of x - i, where x - i has s items, a of them active and n named: i takes
    the place of one of them or stays out, all alike. h: whether i is named; None where it is not
    active. None if there is no such report.
    """
    s = len(f) - 1
    more, plus = (0, 0) if h is None else (1, h)  # active items, and named ones, that i adds
    mean = Fraction(0)  # s times the mean over the item whose place is taken
    for places, away, off in ((n, 1, 1), (a - n, 1, 0), (s - a, 0, 0)):
        if places:
            value = f[a - away + more].get(n - off + plus)
            if value is None:
                return None
            mean += places * value
    return (1 + mean / f[a][n]) / (s + 1)


def cuts(parts: Sequence[PickChances]) -> list[list[int]]:
    """The places of the parts of every cut: those with the same active groups."""
    by_active: dict[tuple[int, ...], list[int]] = {}
    for o, part in enumerate(parts):
        by_active.setdefault(tuple(part.active), []).append(o)
    return list(by_active.values())


def active_items(part: PickChances, sizes: Sequence[int]) -> int:
    """m, the number of active items, from the sizes of the groups."""
    return sum(size for size, on in zip(sizes, part.active, strict=True) if on)


# ---- the check -----------------------------------------------------------------------------------


def malformed(count: int, padding: int, parts: Sequence[PickChances]) -> str | None:
    """Why these are not the numbers of parts at all, for so many groups; None when they are."""
    for part in parts:
        flat = [x for row in part.rows for run in row for x in run]
        if any(type(x) is not int for x in (part.chance, part.size, *part.active, *flat)):
            return "a part holds something else than whole numbers"
        if len(part.active) != count or not set(part.active) <= {0, 1} or 1 not in part.active:
            return f"active of a part is 0 or 1 for each of {count} groups, and 1 for some"
        if len(part.rows) != padding + 1 or any(len(run) != 2 for row in part.rows for run in row):
            return f"a part needs {padding + 1} rows of pairs, one per number of active items"
    return None


def check(policy: Policy, groups: Sequence[int], parts: Sequence[PickChances]) -> Violation | None:
    """None when the guarantee holds for any two sets, and for any item. What `malformed` refuses
    must have been refused before.
    """
    e = [factor for factor in level_factors(policy) if factor is not None]  # none is open
    for o, part in enumerate(parts):
        active = [k for k, group in enumerate(groups) if part.active[group]]
        m = sum(policy.level_sizes[k] for k in active)
        wrong = _degenerate(m, part)
        if wrong:
            return Violation(wrong, (), o)
        f = densities(m, part)
        if not _sets_hold(f, min(e), min(e[k] for k in active)):
            first = groups[min(active, key=e.__getitem__)]
            sentence = "two sets are told apart by more than their budgets allow"
            return Violation(sentence, (first,), o)
        held, lacked = item_factors(f, m, policy.m - m)
        for k, bound in enumerate(e):
            if (held if part.active[groups[k]] else lacked) > bound:
                sentence = "having or not having an item is told by more than its budget allows"
                return Violation(sentence, (groups[k],), o)
    wrong = _wrong_chances(parts)
    return Violation(wrong) if wrong else None


def _wrong_chances(parts: Sequence[PickChances]) -> str | None:
    """What is wrong with the chances of cuts, and with the masses of the parts of one cut."""
    total = 0
    for cut in cuts(parts):
        first, *others = (parts[o] for o in cut)
        if first.chance <= 0 or any(part.chance != first.chance for part in others):
            return "every part of a cut must have the cut's chance, a positive number"
        total += first.chance
        for j, row in enumerate(first.rows):
            # rows that no person can have are empty in all parts of the cut
            if row and sum(mass for o in cut for _, mass in parts[o].rows[j]) != TOTAL:
                return f"the masses of row {j} do not sum to 2^52 over the parts of a cut"
    if total != D:
        return "the chances of the cuts do not sum to 2^32"
    return None


def _degenerate(m: int, part: PickChances) -> str | None:
    """Without this 0 <= 0 would pass for privacy: who can send a report, and who cannot."""
    if not 0 <= part.size < m:
        return f"size = {part.size} must be from 0 to {m - 1}, fewer than the active items"
    for j, row in enumerate(part.rows):
        numbers = possible(m, part.size, j)
        before = numbers.start - 1
        for last, mass in row:
            if last <= before or mass <= 0:
                return f"the runs of row {j} must go up, each with a positive mass"
            before = last
        if before != numbers[-1] if numbers else row:
            return f"the runs of row {j} must cover every number of own items that can be named"
    return None


def _sets_hold(f: Densities, smallest: Fraction, of_active: Fraction) -> bool:
    s = len(f) - 1
    high, low = extremes(f)
    for j, row in enumerate(filter(None, f)):
        bound = (j * of_active + (s - j) * smallest) / s
        if max(row.values()) > bound * low or high > bound * min(row.values()):
            return False
    return True
