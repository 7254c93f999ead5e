"""The check of counted hits and of items that are asked one by one, in exact integer arithmetic.

As in exact.py: no floating point, no solver, no numpy; this file is meant to be audited.

**Hits.** A report of a part is a polynomial p of d = s + 2 coefficients modulo a prime P, s the
padding. It names item i of an active group if p(i + 1) < T. A person with a set of at most s items,
j of them active, draws how many of those are named, N, by the part's row j: with chance hi / 2^52
more than tau of them, with mid / 2^52 exactly tau, otherwise fewer; and given that, everything is
as if p were uniform, of which any d values are independent and uniform. So against a uniform report
the density of p is a function of j and N alone,

    f_j(N) = mass P^j / (2^52 W),    W = sum over the N of the same class of C(j,N) T^N (P-T)^(j-N)

and f_0 = 1. A set of more than s items is first cut to a uniform subset of s, whatever is active.

What is proved, for any two sets x, x' and every report y, with the paper's budget eps_x of a set:

    Pr(y | x) <= min(e^{eps_x}, e^{eps_x'}) Pr(y | x')

from max f_j <= R_j LO and HI <= R_j min f_j for every j, where HI and LO are the extremes of all
densities and R_j = (j E_c + (s-j) E_1) / s, E_1 at most e^{smallest budget} and E_c at most
e^{smallest budget of an active level}: if x has at most s items, R_j <= e^{eps_x}; if it has more,
Pr(y | x) is the mean over its s-subsets S, of which e^{eps_x} is the mean of e^{eps_S}, and the
harmonic mean is below the mean. And that having or not having an item changes the chance of any
report by at most e^{eps of its level} (`item_factors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

from discreet.check.exact import Chances, D, Violation, degenerate, level_factors
from discreet.policy import Policy

TOTAL = 2**52  # of the masses of a row: every one is exact as a double
LARGEST = 64  # the largest padding

Densities = list[list[Fraction]]  # f_j(N)


class HitChances(NamedTuple):
    """The integers of one part."""

    chance: int  # of the part, over 2^32, whatever the answer
    active: Sequence[int]  # per group, 1 if its items are named
    limit: int  # T
    rows: Sequence[Sequence[int]]  # tau, hi, mid, lo for j = 1, …, s


# ---- one part ------------------------------------------------------------------------------------


def weights(prime: int, limit: int, j: int) -> list[int]:
    """How many of the P^j values of j items name N of them, for every N."""
    return [comb(j, n) * limit**n * (prime - limit) ** (j - n) for n in range(j + 1)]


def classes(prime: int, limit: int, j: int, row: Sequence[int]) -> list[tuple[int, int, range]]:
    """Mass, W and the numbers N of the three classes."""
    tau, *masses = row
    ways = weights(prime, limit, j)
    numbers = (range(tau + 1, j + 1), range(tau, tau + 1), range(tau))
    return [(mass, sum(ways[n] for n in ns), ns) for mass, ns in zip(masses, numbers, strict=True)]


def densities(prime: int, part: HitChances) -> Densities:
    """f_j(N) for j = 0, …, s."""
    table = [[Fraction(1)]]
    for j, row in enumerate(part.rows, 1):
        values = [Fraction(0)] * (j + 1)
        for mass, whole, numbers in classes(prime, part.limit, j, row):
            for n in numbers:
                values[n] = Fraction(mass * prime**j, TOTAL * whole)
        table.append(values)
    return table


def own(prime: int, part: HitChances, j: int = 1) -> Fraction:
    """The chance that an active item is named by its holder, one of j active ones."""
    total, ways = Fraction(0), weights(prime, part.limit, j)
    for mass, whole, numbers in classes(prime, part.limit, j, part.rows[j - 1]):
        if whole:
            total += Fraction(mass * sum(n * ways[n] for n in numbers), TOTAL * whole)
    return total / j


def extremes(f: Densities, most: int) -> tuple[Fraction, Fraction]:
    """The largest and the smallest density of sets with at most `most` active items."""
    values = [value for row in f[: most + 1] for value in row]
    return max(values), min(values)


def item_factors(f: Densities, active: int, others: int) -> tuple[Fraction, Fraction]:
    """By how much having or not having an item changes the chance of any report: an active item,
    and another, of so many active and other items.

    With at most s items: f_j(N + h) against f_{j-1}(N), h = 1 if the item is named. With k > s
    items the law of x is (1 - s/k) L + (s/k) M, L that of x - i, the mean over the s-subsets S of
    x - i, and M the mean over the same S of the mean over the item of S that i takes the place of.
    M / L lies between the extremes of the ratios of the two at every S, and s/k is largest for
    k = s + 1, where S is all of x - i: no larger set is worse.
    """
    s = len(f) - 1
    held, lacked = [Fraction(1)], [Fraction(1)]
    for j in range(1, min(s, active) + 1):
        for n in range(j):
            held += (f[j][n + h] / f[j - 1][n] for h in (0, 1))
    if active + others > s:
        for a in range(max(0, s - others), min(s, active - 1) + 1):
            for h in (0, 1):
                held += _replaced(f, a, h)
        for a in range(max(0, s - others + 1), min(s, active) + 1):
            lacked += _replaced(f, a, None)
    return worst(held), worst(lacked)


def _replaced(f: Densities, a: int, h: int | None) -> Iterator[Fraction]:
    """Law of x over law of x - i, where x - i has s items, `a` of them active: i takes the place of
    one of them or stays out, all alike. h: whether i is named; None where it is not active.
    """
    s = len(f) - 1
    more, plus = (0, 0) if h is None else (1, h)  # active items, and named ones, that i adds
    for n in range(a + 1):
        mean = Fraction(0)  # s times the mean over the item whose place is taken
        for places, away, off in ((n, 1, 1), (a - n, 1, 0), (s - a, 0, 0)):
            if places:
                mean += places * f[a - away + more][n - off + plus]
        yield (1 + mean / f[a][n]) / (s + 1)


def worst(ratios: Sequence[Fraction]) -> Fraction:
    """The largest of ratios and of their inverses."""
    return max(max(ratios), 1 / min(ratios))


# ---- the checks ----------------------------------------------------------------------------------


def malformed(count: int, padding: int, parts: Sequence[HitChances]) -> str | None:
    """Why these are not the numbers of parts at all, for so many groups; None when they are."""
    for part in parts:
        whole = [part.chance, part.limit, *part.active, *(x for row in part.rows for x in row)]
        if any(type(x) is not int for x in whole):
            return "a part holds something else than whole numbers"
        if len(part.active) != count or not set(part.active) <= {0, 1} or 1 not in part.active:
            return f"active of a part is 0 or 1 for each of {count} groups, and 1 for some"
        if len(part.rows) != padding or any(len(row) != 4 for row in part.rows):
            return f"a part needs {padding} rows of four numbers, one per number of active items"
    return None


def check(
    policy: Policy, groups: Sequence[int], prime: int, parts: Sequence[HitChances]
) -> Violation | None:
    """None when the guarantee of counted hits holds for any two sets, and for any item."""
    if not parts or sum(part.chance for part in parts) != D or any(p.chance <= 0 for p in parts):
        return Violation("the chances of the parts are not positive numbers that sum to 2^32")
    e = [factor for factor in level_factors(policy) if factor is not None]  # none is open
    for o, part in enumerate(parts):
        wrong = _degenerate(prime, part)
        if wrong:
            return Violation(wrong, (), o)
        f = densities(prime, part)
        active = [k for k, group in enumerate(groups) if part.active[group]]
        if not _sets_hold(f, min(e), min(e[k] for k in active)):
            first = groups[min(active, key=e.__getitem__)]
            sentence = "two sets are told apart by more than their budgets allow"
            return Violation(sentence, (first,), o)
        count = sum(policy.level_sizes[k] for k in active)
        held, lacked = item_factors(f, count, policy.m - count)
        for k, bound in enumerate(e):
            if (held if part.active[groups[k]] else lacked) > bound:
                sentence = "having or not having an item is told by more than its budget allows"
                return Violation(sentence, (groups[k],), o)
    return None


def _degenerate(prime: int, part: HitChances) -> str | None:
    if not 0 < part.limit < prime:
        return f"limit = {part.limit} must lie strictly between 0 and {prime}"
    for j, row in enumerate(part.rows, 1):
        tau, *masses = row
        if not 0 <= tau <= j or min(masses) < 0 or sum(masses) != TOTAL:
            return f"row {j} must have tau from 0 to {j} and masses from 0 that sum to 2^52"
        for mass, whole, _ in classes(prime, part.limit, j, row):
            if (mass > 0) != (whole > 0):  # without this 0 <= 0 would pass for privacy
                return f"row {j} must give every class that can happen a mass, and no other"
    return None


def _sets_hold(f: Densities, smallest: Fraction, of_active: Fraction) -> bool:
    s = len(f) - 1
    high, low = extremes(f, s)
    for j, row in enumerate(f):
        bound = (j * of_active + (s - j) * smallest) / s
        if max(row) > bound * low or high > bound * min(row):
            return False
    return True


def each_factor(part: Chances, g: int, one_way: bool) -> Fraction:
    """By how much having or not having an item of a group changes the chance of any report, where
    every item is asked on its own; one way, by how much having it raises the chance.
    """
    own, other = part.own[g], part.other[g]
    ratios = [Fraction(own, other), Fraction(D - own, D - other)]
    return max(ratios) if one_way else worst(ratios)


def check_each(
    policy: Policy, groups: Sequence[int], bases: Sequence[int], parts: Sequence[Chances]
) -> Violation | None:
    """None when every item, asked on its own, keeps within its level's budget."""
    part, one_way = parts[0], not policy.is_mutual
    wrong = degenerate(part, bases, zeros=one_way)
    if wrong:
        return Violation(*wrong, 0)
    if any(x != D for x in (*part.chance, part.none)) or 0 in (*part.own, *part.other):
        return Violation("every item must be asked in the only part, whose chance is 2^32")
    for k, bound in enumerate(level_factors(policy)):
        if bound is not None and each_factor(part, groups[k], one_way) > bound:
            sentence = "having or not having an item is told by more than its budget allows"
            return Violation(sentence, (groups[k],), 0)
    return None
