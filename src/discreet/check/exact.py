"""The check that stands between any solver and any mechanism, in exact integer arithmetic.

Nothing here uses floating point, a solver or numpy: this file is meant to be audited. Probabilities
are integers over D = 2^32. A group of levels has in every part a chance of the part, the chance
`own` that the answer itself is named, and `other` over `base`, the chance that any other item is.
Budgets become rationals that are *at most* e^epsilon, so what passes here holds for the budget.

What is proved, for every two inputs of levels i and j and every report y (paper, Def. 2), where
r_ij is finite; r_ij and r_ji may differ:

    Pr(y | i) <= e^{r_ij} Pr(y | j)

Up to a factor that all inputs share, the probability of a report of one part given an item of a
group takes at most two values, its *states*:

    named       chance own base / other
    not named   chance (D - own) base / (base - other)
    silent      chance D                                 (own = other = 0: nothing is said of it)
    plain       chance D, and 0 for everybody else       (own = D, other = 0: sent as it is)

so it is enough to compare every state of every group with every state of every other, and with its
own. For sets "none", a sample that is empty, is one more input, and always silent.

A chance may be 0, and `own` may be D, where no budget forbids it: nobody of the group sends such a
report. 0 <= 0 holds, because neither of the two inputs sends it; a positive state against 0 fails.
For sets every chance is positive, and `own` is below D.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import NamedTuple

from discreet.policy import Budget, Policy
from discreet.policy.lazy import cached_property

D = 2**32
_BITS = 80  # of the fraction of an irrational bound: 2^48 times finer than a probability
_CEILING = Fraction(45)  # a larger budget counts as this one


@dataclass(frozen=True)
class Violation:
    """Where a guarantee fails; `groups` are places of groups of levels, or none."""

    sentence: str
    groups: tuple[int, ...] = ()
    part: int | None = None


Factors = Sequence[Fraction | None]  # per group, at most e^epsilon; None where nothing is promised


class Chances(NamedTuple):
    """The integers of one part: per group, and the chance of the part for an empty sample."""

    chance: Sequence[int]
    own: Sequence[int]
    other: Sequence[int]
    none: int | None = None


class Range(NamedTuple):
    """The largest and the smallest state of a group, as (numerator, denominator)."""

    high: tuple[int, int]
    low: tuple[int, int]


def exp_lower(x: Fraction) -> Fraction:
    """A rational at most e^x for x >= 0: the Taylor series with every term rounded down."""
    numerator, denominator = x.numerator, x.denominator
    total = term = 1 << _BITS
    k = 0
    while term:
        k += 1
        term = term * numerator // (denominator * k)
        total += term
    return Fraction(total, 1 << _BITS)


def root_lower(x: Fraction, root: int) -> Fraction:
    """A rational at most the root-th root of x >= 1: whole 2^-80ths, rounded down."""
    scaled = (x.numerator << (_BITS * root)) // x.denominator
    guess = 1 << -(-scaled.bit_length() // root)  # above the root; Newton's steps come down to it
    while True:
        better = ((root - 1) * guess + scaled // guess ** (root - 1)) // root
        if better >= guess:
            return Fraction(guess, 1 << _BITS)
        guess = better


def factor(budget: Budget) -> Fraction:
    """A rational at most e^epsilon; exactly k for the budget ln(k)."""
    if budget.is_log:
        return budget.value if budget.root == 1 else root_lower(budget.value, budget.root)
    return exp_lower(min(budget.value, _CEILING))


def level_factors(policy: Policy) -> list[Fraction | None]:
    """A rational at most e^epsilon per level, None for an open one; if `strict`, of all budgets the
    smallest.
    """
    factors = [None if level.budget.is_open else factor(level.budget) for level in policy.levels]
    if not policy.strict:
        return factors
    pairs = (factor(pair.budget) for pair in policy.pairs if pair.budget is not None)
    return [_smallest([*factors, *pairs])] * len(factors)


# ---- the check -----------------------------------------------------------------------------------


def check(
    policy: Policy, groups: Sequence[int], bases: Sequence[int], parts: Sequence[Chances]
) -> Violation | None:
    """None when the guarantee holds; `groups` is the group of every level, `bases` one per group.
    What `malformed` refuses must have been refused before.
    """
    sets = policy.kind.lists
    for o, part in enumerate(parts):
        wrong = degenerate(part, bases, zeros=not sets)
        if wrong:
            return Violation(*wrong, o)
    columns = [*zip(*(part.chance for part in parts), strict=True)]
    if sets:
        columns.append(tuple(part.none or 0 for part in parts))
    if not parts or any(sum(column) != D for column in columns):
        return Violation("the chances of the parts do not sum to 2^32 for every group")
    bounds = _Bounds(policy, groups, len(bases))
    for o, part in enumerate(parts):
        pair = bounds.broken(ranges(part, bases))
        if pair:
            names = " and ".join(f'"{bounds.name(g)}"' for g in pair)
            sentence = (
                f"answers of the levels {names} are told apart by more than their pair budget"
            )
            return Violation(sentence, tuple(g for g in pair if g < len(bases)), o)
    return None


def count_groups(policy: Policy, groups: Sequence[int]) -> int | None:
    """The number of groups; None unless every level has one and they are numbered in the order they
    appear.
    """
    seen = 0
    for group in groups:
        if type(group) is not int or not 0 <= group <= seen:
            return None
        seen = max(seen, group + 1)
    return seen if len(groups) == len(policy.levels) else None


def malformed(policy: Policy, count: int, parts: Sequence[Chances]) -> str | None:
    """Why these are not the numbers of parts at all, for so many groups; None when they are."""
    for part in parts:
        if any(len(row) != count for row in part[:3]):
            return f"a part needs {count} numbers of each kind, one per group"
        if policy.kind.lists != (part.none is not None):
            return 'a part has "none", the chance of an empty sample, for sets only'
        none = (part.none,) if policy.kind.lists else ()
        if any(type(x) is not int for row in (*part[:3], none) for x in row):
            return "a part holds something else than whole numbers"
    return None


def degenerate(
    part: Chances, bases: Sequence[int], zeros: bool
) -> tuple[str, tuple[int, ...]] | None:
    """What is no chance at all. Without `zeros` no group may be unable to send a report: then 0 <=
    0 would pass for privacy where a set holds several items.
    """
    least = min(range(len(bases)), key=lambda g: part.chance[g])
    if not zeros and (part.chance[least] <= 0 or (part.none is not None and part.none <= 0)):
        groups = (least,) if part.chance[least] <= 0 else ()
        return "every group must be able to use every part: a chance is not positive", groups
    if part.chance[least] < 0:
        return "a chance is negative", (least,)
    if not any(part.chance):
        return "nobody can use the part: every chance is 0", ()
    for g, (own, other, base) in enumerate(zip(part.own, part.other, bases, strict=True)):
        if own == other == 0:
            continue
        if not part.chance[g]:
            return "a group that cannot use a part must be silent in it", (g,)
        if zeros and own == D and other == 0:  # the answer is sent as it is
            continue
        if not (0 < own <= D - (not zeros) and 0 < other < base):
            sentence = (
                f"own = {own}/{D}, other = {other}/{base}: "
                "both lie strictly between 0 and 1, or are 0"
            )
            return sentence, (g,)
    return None


def ranges(part: Chances, bases: Sequence[int]) -> list[Range]:
    """The extreme states of every group, and of an empty sample."""
    ranges = []
    for chance, own, other, base in zip(part.chance, part.own, part.other, bases, strict=True):
        if own == 0:
            ranges.append(Range((chance * D, 1), (chance * D, 1)))
            continue
        if other == 0:  # it is sent as it is, and nobody else sends it
            ranges.append(Range((chance * D, 1), (0, 1)))
            continue
        named = (chance * own * base, other)
        unnamed = (chance * (D - own) * base, base - other)
        larger = named[0] * unnamed[1] >= unnamed[0] * named[1]
        ranges.append(Range(named, unnamed) if larger else Range(unnamed, named))
    if part.none is not None:
        ranges.append(Range((part.none * D, 1), (part.none * D, 1)))
    return ranges


# ---- the bounds of pairs -------------------------------------------------------------------------


class _Bounds:
    """Squares of factors, at most e^{2 r}: under `avg`, 2 r = eps_i + eps_j, so no root
    is needed.
    """

    def __init__(self, policy: Policy, groups: Sequence[int], count: int) -> None:
        self.policy, self.groups, self.count = policy, groups, count
        self._factors: dict[Budget, Fraction] = {}
        self.sizes = [0] * count
        for group, size in zip(groups, policy.level_sizes, strict=True):
            self.sizes[group] += size
        # the smallest budget of a group's levels, and of all; None where all are open
        self.of_group: list[Fraction | None] = [None] * count
        for group, e in zip(groups, level_factors(policy), strict=True):
            self.of_group[group] = _smallest((self.of_group[group], e))
        self.smallest = _smallest(self.of_group)
        self.closed = None if policy.pair_budgets else _CLOSED.get(policy.notion)

    def name(self, group: int) -> str:
        """The first level of a group; an empty sample has no level."""
        if group == self.count:
            return "none"
        return self.policy.levels[self.groups.index(group)].name

    def broken(self, ranges: Sequence[Range]) -> tuple[int, int] | None:
        """Two groups g, h whose ratio high(g) / low(h) is above their bound; None if all hold."""
        if self.closed is None:
            return self.every_pair(ranges)
        e = self.of_group + [self.smallest] * (len(ranges) - self.count)  # of "none"
        return self.closed(ranges, e, self)

    @cached_property
    def table(self) -> list[list[Fraction | None]]:
        """The smallest square of any two levels of two groups, in this order; "none" has the
        smallest of a row or column. The only answer of a group has no other to be told from.
        """
        table: list[list[Fraction | None]] = [[None] * self.count for _ in range(self.count)]
        sets = self.policy.kind.lists
        for i, g in enumerate(self.groups):
            for j, h in enumerate(self.groups):
                if g != h or self.sizes[g] > 1 or sets:
                    table[g][h] = _smallest((table[g][h], self._square(i, j)))
        over_none = [_smallest(row) for row in table]
        none_over = [_smallest(column) for column in zip(*table, strict=True)]
        rows = [[*row, low] for row, low in zip(table, over_none, strict=True)]
        return [*rows, [*none_over, None]]

    def _square(self, i: int, j: int) -> Fraction | None:
        """e^{2 r} of an answer of level i over one of level j."""
        if self.policy.strict:
            return None if self.smallest is None else self.smallest**2
        sums = self.policy.pair_budget(i, j)
        if sums is None:
            return None
        return min(prod(map(self._factor, budgets), start=Fraction(1)) for budgets in sums)

    def _factor(self, budget: Budget) -> Fraction:
        known = self._factors.get(budget)
        return self._factors.setdefault(budget, factor(budget)) if known is None else known

    def every_pair(self, ranges: Sequence[Range]) -> tuple[int, int] | None:
        """The same, pair by pair."""
        for g, first in enumerate(ranges):
            for h, second in enumerate(ranges):
                square = self.table[g][h]
                if square is not None and _exceeds(first.high, second.low, square):
                    return g, h
        return None


def _smallest(values: Iterable[Fraction | None]) -> Fraction | None:
    return min((x for x in values if x is not None), default=None)


def _exceeds(high: tuple[int, int], low: tuple[int, int], square: Fraction) -> bool:
    """high^2 > square low^2, all in integers."""
    left, right = high[0] * low[1], low[0] * high[1]
    return left * left * square.denominator > square.numerator * right * right


def _above(high: tuple[int, int], low: tuple[int, int], f: Fraction) -> bool:
    """high > f low, all in integers."""
    return high[0] * low[1] * f.denominator > f.numerator * low[0] * high[1]


def _broken_min(ranges: Sequence[Range], e: Factors, bounds: _Bounds) -> tuple[int, int] | None:
    """Every pair in O(groups): high_g <= min(e_g, e_h) low_h, so only the extremes matter."""
    top = _extreme([r.high for r in ranges], largest=True)
    bottom = _extreme([r.low for r in ranges], largest=False)
    for g, f in enumerate(e):
        assert f is not None  # no level is open
        if _above(ranges[g].high, ranges[bottom].low, f):
            return g, bottom
        if _above(ranges[top].high, ranges[g].low, f):
            return top, g
    return None


def _broken_one_way(ranges: Sequence[Range], e: Factors, bounds: _Bounds) -> tuple[int, int] | None:
    """Every pair in O(groups): high_g <= e_g low_h, so only the two smallest lows matter. The only
    answer of a group has no other to be told from.
    """
    lows = [r.low for r in ranges]
    bottom = _extreme(lows, largest=False)
    others = [h for h in range(len(lows)) if h != bottom]
    second = others[_extreme([lows[h] for h in others], largest=False)] if others else bottom
    for g, f in enumerate(e):
        h = second if g == bottom and bounds.sizes[g] == 1 else bottom
        if f is not None and (g != h or bounds.sizes[g] > 1) and _above(ranges[g].high, lows[h], f):
            return g, h
    return None


def _broken_scale(ranges: Sequence[Range], e: Factors, bounds: _Bounds) -> tuple[int, int] | None:
    """Neighbours, whose factors multiply to those of points further apart; then, with a cap, the
    extremes. A point is a lone item, so that its two states are one.
    """
    if len(ranges) < len(bounds.groups):  # points are told of together: look at every pair
        return bounds.every_pair(ranges)
    step = e[0]
    assert step is not None  # no level is open
    for g in range(len(ranges) - 1):
        for one, two in ((g, g + 1), (g + 1, g)):
            if _above(ranges[one].high, ranges[two].low, step):
                return one, two
    if bounds.policy.cap is not None:
        top = _extreme([r.high for r in ranges], largest=True)
        bottom = _extreme([r.low for r in ranges], largest=False)
        if _above(ranges[top].high, ranges[bottom].low, step**bounds.policy.cap):
            return top, bottom
    return None


def _broken_avg(ranges: Sequence[Range], e: Factors, bounds: _Bounds) -> tuple[int, int] | None:
    """Every pair in O(groups): high_g^2 / e_g <= e_h low_h^2, so only the extremes matter."""
    finite = [f for f in e if f is not None]  # all of them: no level is open
    highs = [
        (r.high[0] ** 2 * f.denominator, r.high[1] ** 2 * f.numerator)
        for r, f in zip(ranges, finite, strict=True)
    ]
    lows = [
        (r.low[0] ** 2 * f.numerator, r.low[1] ** 2 * f.denominator)
        for r, f in zip(ranges, finite, strict=True)
    ]
    top, bottom = _extreme(highs, largest=True), _extreme(lows, largest=False)
    broken = _exceeds(ranges[top].high, ranges[bottom].low, finite[top] * finite[bottom])
    return (top, bottom) if broken else None


# notions whose pairs need not be looked at one by one
_CLOSED = {
    "min": _broken_min,
    "avg": _broken_avg,
    "one-way": _broken_one_way,
    "scale": _broken_scale,
}


def _extreme(ratios: Sequence[tuple[int, int]], largest: bool) -> int:
    """The place of the largest or the smallest of ratios (numerator, positive denominator)."""
    best = 0
    for k, (numerator, denominator) in enumerate(ratios):
        left, right = numerator * ratios[best][1], ratios[best][0] * denominator
        if left > right if largest else left < right:
            best = k
    return best
