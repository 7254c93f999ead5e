"""The largest ratios of one mechanism's reports between two answers, from its checked integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, overload

from discreet.check.parts import AnyPart
from discreet.mechanism import Mechanism
from discreet.promises.words import MARGIN

if TYPE_CHECKING:
    from discreet.promises.guarantee import Guarantee

Ends = list[tuple[Fraction, int]]  # extreme values with their groups
Factor = Fraction | float  # a float only where it is infinite


@dataclass(frozen=True)
class PairPromise:
    """Two levels: the factor that the policy allows between any two of their inputs, and the one
    that is realised; where protection is one-way, of the first over the second.
    """

    first: str
    second: str
    allowed: float
    realised: float


class Pairs(Sequence[PairPromise]):
    """Every unordered pair of levels, computed when you ask for it: 16,470 levels have 1.4 x 10^8
    pairs. Where protection is one-way, every ordered pair.
    """

    def __init__(self, guarantee: Guarantee) -> None:
        self._guarantee = guarantee
        self._t = len(guarantee.names)
        self._mutual = guarantee.is_mutual

    def __len__(self) -> int:
        return self._t * (self._t + 1) // 2 if self._mutual else self._t**2

    def __iter__(self) -> Iterator[PairPromise]:
        for i in range(self._t):
            yield from self._row(i)

    @overload
    def __getitem__(self, k: int) -> PairPromise: ...
    @overload
    def __getitem__(self, k: slice) -> list[PairPromise]: ...
    def __getitem__(self, k: int | slice) -> PairPromise | list[PairPromise]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        i = 0
        while k >= self._t - self._first(i):
            k -= self._t - self._first(i)
            i += 1
        return self._row(i)[k]

    def _first(self, i: int) -> int:
        """The first partner of level i."""
        return i if self._mutual else 0

    def _row(self, i: int) -> list[PairPromise]:
        g = self._guarantee
        realised = g.realised_either_way(i) if self._mutual else g.realised(i)
        factors = (list(map(_exp, row)) for row in (g.allowed(i), realised))
        both = [*zip(*factors, strict=True)]
        return [
            PairPromise(g.names[i], g.names[j], *both[j]) for j in range(self._first(i), self._t)
        ]


def _exp(x: float) -> float:
    """e^x, infinite where it is beyond every float."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def realised(mechanism: Mechanism, mine: int) -> list[float]:
    """Per group the largest log-ratio of an input of the group `mine` over another one of it."""
    worst = [0.0] * len(mechanism.group_sizes)
    for part in mechanism.parts:
        logs = _logs(part)
        high = logs[mine][0]
        if high > -math.inf:  # otherwise nobody of the group sends such reports
            lows = (low for _, low in logs[: len(worst)])
            worst = [max(old, high - low) for old, low in zip(worst, lows, strict=True)]
    return worst


def realised_under(mechanism: Mechanism, mine: int) -> list[float]:
    """Per group the largest log-ratio of one of its inputs over another one of the group `mine`."""
    worst = [0.0] * len(mechanism.group_sizes)
    for part in mechanism.parts:
        logs = _logs(part)
        low = logs[mine][1]
        for g, (high, _) in enumerate(logs[: len(worst)]):
            if high > -math.inf:
                worst[g] = max(worst[g], high - low)
    return worst


@lru_cache(256)
def _logs(part: AnyPart) -> list[tuple[float, float]]:
    return [(log(high), log(low)) for high, low in part.states]


def log(x: Factor) -> float:
    """ln of a rational of any size, also of 0, and of an infinite factor."""
    if isinstance(x, float):
        return math.log(x)
    return math.log(x.numerator) - math.log(x.denominator) if x else -math.inf


def ratio(x: Fraction, y: Fraction) -> Factor:
    """x / y; infinite if only y is 0, and 1 if both are: then nobody of either sends it."""
    return x / y if y else (math.inf if x else Fraction(1))


def level_factors(mechanism: Mechanism, one_way: bool = False) -> tuple[Factor, ...]:
    """Per level the largest ratio between one of its inputs and any other input: either way, or
    only of the level's inputs over the others.
    """
    sizes = list(mechanism.group_sizes)
    worst: list[Factor] = [Fraction(1)] * len(sizes)
    if sum(sizes) == 1:
        return tuple(worst)
    for part in mechanism.parts:
        states = part.states[: len(sizes)]
        highest = _first_two([high for high, _ in states], sizes, largest=True)
        lowest = _first_two([low for _, low in states], sizes, largest=False)
        for g in range(len(worst)):
            high, low = states[g]
            under = Fraction(1) if one_way else ratio(_but(highest, g), low)
            worst[g] = max(worst[g], ratio(high, _but(lowest, g)), under)
    return tuple(worst[g] for g in mechanism.groups)


def factor_against(mechanism: Mechanism, level: int, others: Iterable[int]) -> Factor:
    """The largest ratio, either way, between an input of a level and any inputs of these others."""
    worst: Factor = Fraction(1)
    near = {mechanism.groups[other] for other in others}
    for part in mechanism.parts:
        high, low = part.states[mechanism.groups[level]]
        for top, bottom in (part.states[h] for h in near):
            worst = max(worst, ratio(high, bottom), ratio(top, low))
    return worst


def protected_factors(mechanism: Mechanism, paths: Sequence[Sequence[float]]) -> tuple[Factor, ...]:
    """The same over the inputs that a level is protected from: those that budgets lead to."""
    groups, mutual = mechanism.groups, mechanism.policy.is_mutual
    levels = mechanism.policy.level_sizes
    factors: list[Factor] = []
    for i, g in enumerate(groups):
        worst: Factor = Fraction(1)
        near = {
            groups[j]
            for j, path in enumerate(paths[i])
            if path < math.inf and (i != j or levels[i] > 1)  # the only answer of a level
        }
        for part in mechanism.parts:
            high, low = part.states[g]
            for h in near:
                top, bottom = part.states[h]
                worst = max(worst, ratio(high, bottom), ratio(top, low) if mutual else worst)
        factors.append(worst if near else math.inf)
    return tuple(factors)


def _first_two(values: list[Fraction], sizes: list[int], largest: bool) -> Ends:
    """The extreme value with its group, then that of another input: the same, if it has two."""
    order = sorted(range(len(values)), key=values.__getitem__, reverse=largest)[:2]
    first = order[0]
    second = first if sizes[first] > 1 else order[-1]
    return [(values[first], first), (values[second], second)]


def _but(ends: Ends, g: int) -> Fraction:
    """The extreme value over the inputs that are not this one of group g."""
    return ends[0][0] if ends[0][1] != g else ends[1][0]


def factor_up(epsilon: float, terms: int) -> Factor:
    """At least e^epsilon, for a sum of this many logarithms in floats."""
    if epsilon == math.inf:
        return math.inf
    if epsilon > 700:
        return Fraction(2 ** math.ceil(epsilon / math.log(2) + 1))
    return Fraction(math.exp(epsilon) * (1 + terms * (MARGIN - 1)))


def log_mean(budgets: Sequence[float]) -> float:
    """ln of the mean of e^budget."""
    top = max(budgets)
    return top + math.log(math.fsum(math.exp(x - top) for x in budgets) / len(budgets))
