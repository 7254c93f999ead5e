"""The check that stands between any solver and any mechanism, in exact integer arithmetic.

Nothing here uses floating point, a solver or numpy: this file is meant to be audited. Probabilities
are integers over D = 2^32. A group of levels has in every part a chance of the part, the chance
`own` that the answer itself is named, and `other` over `base`, the chance that any other item is.
Budgets become rationals that are *at most* e^epsilon, so what passes here holds for the budget.

What is proved, for every two inputs of levels i and j and every report y (paper, Def. 2):

    Pr(y | i) <= e^{r_ij} Pr(y | j)

Up to a factor that all inputs share, the probability of a report of one part given an item of a
group takes at most two values, its *states*:

    named       chance own base / other
    not named   chance (D - own) base / (base - other)
    silent      chance D                                 (own = other = 0: nothing is said of it)

so it is enough to compare every state of every group with every state of every other, and with its
own. With set input "none", a sample that is empty, is one more input, and always silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from discreet.policy import Budget, Policy

D = 2**32
_BITS = 80  # of the fraction of an irrational bound: 2^48 times finer than a probability
_CEILING = Fraction(45)  # a larger budget counts as this one


@dataclass(frozen=True)
class Violation:
    """Where a guarantee fails; `groups` are places of groups of levels, or none."""

    sentence: str
    groups: tuple[int, ...] = ()
    part: int | None = None


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


def factor(budget: Budget) -> Fraction:
    """A rational at most e^epsilon; exactly k for the budget ln(k)."""
    return budget.value if budget.is_log else exp_lower(min(budget.value, _CEILING))


def level_factors(policy: Policy) -> list[Fraction]:
    """A rational at most e^epsilon per level; if `strict`, of all budgets the smallest."""
    found = [factor(level.budget) for level in policy.levels]
    if not policy.strict:
        return found
    pairs = (factor(pair.budget) for pair in policy.pairs if pair.budget is not None)
    return [min([*found, *pairs])] * len(found)


# ---- the check -----------------------------------------------------------------------------------


def check(
    policy: Policy, groups: Sequence[int], bases: Sequence[int], parts: Sequence[Chances]
) -> Violation | None:
    """None when the guarantee holds; `groups` is the group of every level, `bases` one per group.
    What `malformed` refuses must have been refused before.
    """
    sets = policy.takes_sets
    for o, part in enumerate(parts):
        wrong = degenerate(part, bases)
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
        if policy.takes_sets != (part.none is not None):
            return 'a part has "none", the chance of an empty sample, with set input only'
        none = (part.none,) if policy.takes_sets else ()
        if any(type(x) is not int for row in (*part[:3], none) for x in row):
            return "a part holds something else than whole numbers"
    return None


def degenerate(part: Chances, bases: Sequence[int]) -> tuple[str, tuple[int, ...]] | None:
    """Chances of 0 or 1: without this 0 <= 0 would pass for privacy."""
    if any(x <= 0 for x in part.chance) or (part.none is not None and part.none <= 0):
        least = min(range(len(bases)), key=lambda g: part.chance[g])
        groups = (least,) if part.chance[least] <= 0 else ()
        return "every group must be able to use every part: a chance is not positive", groups
    for g, (own, other, base) in enumerate(zip(part.own, part.other, bases, strict=True)):
        if own == other == 0:
            continue
        if not (0 < own < D and 0 < other < base):
            sentence = (
                f"own = {own}/{D}, other = {other}/{base}: "
                "both lie strictly between 0 and 1, or are 0"
            )
            return sentence, (g,)
    return None


def ranges(part: Chances, bases: Sequence[int]) -> list[Range]:
    """The extreme states of every group, and of an empty sample."""
    found = []
    for chance, own, other, base in zip(part.chance, part.own, part.other, bases, strict=True):
        if own == 0:
            found.append(Range((chance * D, 1), (chance * D, 1)))
            continue
        named = (chance * own * base, other)
        unnamed = (chance * (D - own) * base, base - other)
        larger = named[0] * unnamed[1] >= unnamed[0] * named[1]
        found.append(Range(named, unnamed) if larger else Range(unnamed, named))
    if part.none is not None:
        found.append(Range((part.none * D, 1), (part.none * D, 1)))
    return found


# ---- the bounds of pairs -------------------------------------------------------------------------


class _Bounds:
    """Squares of factors, at most e^{2 r}: under `avg`, 2 r = eps_i + eps_j, so no root
    is needed.
    """

    def __init__(self, policy: Policy, groups: Sequence[int], count: int) -> None:
        self.policy, self.groups, self.count = policy, groups, count
        self.of_level = level_factors(policy)
        self.of_group = [Fraction(0)] * count  # the smallest of its levels
        for group, e in zip(groups, self.of_level, strict=True):
            old = self.of_group[group]
            self.of_group[group] = min(old, e) if old else e
        self.smallest = min(self.of_group)
        self.table = self._table() if policy.overrides else None

    def name(self, group: int) -> str:
        """The first level of a group; an empty sample has no level."""
        if group == self.count:
            return "none"
        return self.policy.levels[self.groups.index(group)].name

    def broken(self, ranges: Sequence[Range]) -> tuple[int, int] | None:
        """Two groups, the second with the smaller state, that break their bound; None
        if all hold.
        """
        if self.table is not None:
            return self._every_pair(ranges)
        e = self.of_group + [self.smallest] * (len(ranges) - self.count)  # of "none"
        return (_broken_avg if self.policy.notion == "avg" else _broken_min)(ranges, e)

    def _table(self) -> list[list[Fraction | None]]:
        """The smallest square of any two levels of two groups; "none" has the smallest of a row."""
        table: list[list[Fraction | None]] = [[None] * self.count for _ in range(self.count)]
        for i, g in enumerate(self.groups):
            for j, h in enumerate(self.groups):
                table[g][h] = _smallest((table[g][h], self._square(i, j)))
        lowest = [_smallest(row) for row in table]
        return [[*row, low] for row, low in zip(table, lowest, strict=True)] + [[*lowest, None]]

    def _square(self, i: int, j: int) -> Fraction | None:
        if (i, j) in self.policy.overrides:
            budget = self.policy.overrides[i, j]
            return None if budget is None else factor(budget) ** 2
        first, second = self.of_level[i], self.of_level[j]
        return first * second if self.policy.notion == "avg" else min(first, second) ** 2

    def _every_pair(self, ranges: Sequence[Range]) -> tuple[int, int] | None:
        assert self.table is not None
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


def _broken_min(ranges: Sequence[Range], e: Sequence[Fraction]) -> tuple[int, int] | None:
    """Every pair in O(groups): high_g <= min(e_g, e_h) low_h, so only the extremes matter."""
    top = _extreme([r.high for r in ranges], largest=True)
    bottom = _extreme([r.low for r in ranges], largest=False)
    high, low = ranges[top].high, ranges[bottom].low
    for g, f in enumerate(e):
        mine = ranges[g]
        if mine.high[0] * low[1] * f.denominator > f.numerator * low[0] * mine.high[1]:
            return g, bottom
        if high[0] * mine.low[1] * f.denominator > f.numerator * mine.low[0] * high[1]:
            return top, g
    return None


def _broken_avg(ranges: Sequence[Range], e: Sequence[Fraction]) -> tuple[int, int] | None:
    """Every pair in O(groups): high_g^2 / e_g <= e_h low_h^2, so only the extremes matter."""
    highs = [
        (r.high[0] ** 2 * f.denominator, r.high[1] ** 2 * f.numerator)
        for r, f in zip(ranges, e, strict=True)
    ]
    lows = [
        (r.low[0] ** 2 * f.numerator, r.low[1] ** 2 * f.denominator)
        for r, f in zip(ranges, e, strict=True)
    ]
    top, bottom = _extreme(highs, largest=True), _extreme(lows, largest=False)
    broken = _exceeds(ranges[top].high, ranges[bottom].low, e[top] * e[bottom])
    return (top, bottom) if broken else None


def _extreme(ratios: Sequence[tuple[int, int]], largest: bool) -> int:
    """The place of the largest or the smallest of ratios (numerator, positive denominator)."""
    best = 0
    for k, (numerator, denominator) in enumerate(ratios):
        left, right = numerator * ratios[best][1], ratios[best][0] * denominator
        if left > right if largest else left < right:
            best = k
    return best
