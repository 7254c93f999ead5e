"""What is promised of sets of items, exactly, for people to read: the item promise, by how much
having or not having one item changes the chance of any report, and the set promise, by how much two
whole sets do. All factors are rationals from the checked integers.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

from discreet.check import exact_picks, exact_sets
from discreet.check.parts import AnyPart, HitsPart, Part, PicksPart
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property
from discreet.promises.ratios import Factor, log
from discreet.promises.words import in_words

P = TypeVar("P", bound=AnyPart)

LISTS = (5, 20)  # answers of a list that is told about, where the factors of answers multiply


class SetPromises(ABC, Generic[P]):
    """Of one mechanism that takes sets."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism, self.policy = mechanism, mechanism.policy
        self.parts = cast(tuple[P, ...], mechanism.parts)
        self.sizes = mechanism.group_sizes

    @cached_property
    def item_factors(self) -> tuple[Fraction, ...]:
        """Per level: having or not having one of its items."""
        by_part = [self.group_factors(part) for part in self.parts]
        worst = [max(column) for column in zip(*by_part, strict=True)]
        return tuple(worst[g] for g in self.mechanism.groups)

    @abstractmethod
    def group_factors(self, part: P) -> Sequence[Fraction]:
        """The same per group, for reports of one part."""

    @cached_property
    @abstractmethod
    def set_factor(self) -> Fraction:
        """Between any two sets."""

    @property
    def epsilon(self) -> float:
        """ln of that."""
        return log(self.set_factor)

    @abstractmethod
    def list_factor(self, items: Sequence[int]) -> Fraction:
        """Between these items and any other set (`each`: and the empty one)."""

    @abstractmethod
    def bound(self, first: Sequence[int], second: Sequence[int]) -> Factor:
        """Pr(y | first) / Pr(y | second) is at most this, for all y."""

    def sentence(self) -> str:
        """The set promise for people."""
        return (
            "Whole lists: whoever sees your report can change their odds between any two lists of "
            f"answers by at most a factor of {in_words(self.set_factor)}."
        )

    def list_sentence(self, items: Sequence[int]) -> str:
        """The promise of these items for the person who has them."""
        return (
            "Your whole list: whoever sees your report can change their odds between it and any "
            f"other list by at most a factor of {in_words(self.list_factor(items))}."
        )


class Bounded(SetPromises[P]):
    """Where the law of a set lies between two extremes, per part."""

    @abstractmethod
    def extremes(self, part: P) -> tuple[Fraction, Fraction]:
        """The largest and the smallest of all sets."""

    @abstractmethod
    def between(self, part: P, items: Sequence[int]) -> tuple[Fraction, Fraction]:
        """The same for these items."""

    @cached_property
    def set_factor(self) -> Fraction:
        """Between any two sets."""
        return max(high / low for high, low in map(self.extremes, self.parts))

    def list_factor(self, items: Sequence[int]) -> Fraction:
        """Between these items and any other set."""
        worst = Fraction(1)
        for part in self.parts:
            (high, low), (top, bottom) = self.extremes(part), self.between(part, items)
            worst = max(worst, top / low, high / bottom)
        return worst

    def bound(self, first: Sequence[int], second: Sequence[int]) -> Fraction:
        """Pr(y | first) / Pr(y | second) is at most this, for all y."""
        each = ((self.between(p, first)[0], self.between(p, second)[1]) for p in self.parts)
        return max(top / bottom for top, bottom in each)


class Sampled(Bounded[Part]):
    """Padding-and-Sampling: of a set x, one of max(|x|, padding) places is reported, so its law is
    a mean of states (exact.py).
    """

    def group_factors(self, part: Part) -> list[Fraction]:
        """Having i or not: with at most `padding` items, i or nothing beside others that say as
        little as possible; with one more than that, i or not among them.
        """
        padding, (*states, (none, _)) = self.mechanism.padding or 1, part.states
        lows, highs = (
            [(sign * state[k], size) for state, size in zip(states, self.sizes, strict=True)]
            for sign, k in ((1, 1), (-1, 0))
        )
        beside = _Smallest([*lows, (none, padding)], padding - 1)
        lowest, highest = _Smallest(lows, padding), _Smallest(highs, padding)
        worst = []
        for high, low in states:
            least = beside.without(low)
            ratios = [Fraction(1), (least + high) / (least + none), (least + none) / (least + low)]
            if self.policy.m > padding:
                ratios.append((padding + padding * high / lowest.without(low)) / (padding + 1))
                ratios.append((padding + 1) / (padding - padding * low / highest.without(-high)))
            worst.append(max(ratios))
        return worst

    def extremes(self, part: Part) -> tuple[Fraction, Fraction]:
        """The largest and the smallest state."""
        return max(high for high, _ in part.states), min(low for _, low in part.states)

    def between(self, part: Part, items: Sequence[int]) -> tuple[Fraction, Fraction]:
        """The mean of the largest states of these items and of dummies, and of the smallest."""
        group, states = self.mechanism.coder.group, part.states
        places = max(len(items), self.mechanism.padding or 1)
        high, low = (
            sum((states[group(i)][k] for i in items), (places - len(items)) * states[-1][k])
            / places
            for k in (0, 1)
        )
        return high, low


class Counted(Bounded[HitsPart]):
    """Counted hits (exact_sets.py)."""

    def group_factors(self, part: HitsPart) -> list[Fraction]:
        """Of an active group, and of another."""
        active = self._active(part)
        others = self.policy.m - active
        held, lacked = exact_sets.item_factors(part.densities, active, others)
        return [held if on else lacked for on in part.ints.active]

    def _active(self, part: HitsPart) -> int:
        return sum(size for size, on in zip(self.sizes, part.ints.active, strict=True) if on)

    def extremes(self, part: HitsPart) -> tuple[Fraction, Fraction]:
        """The largest and the smallest density of as many active items as there are."""
        return exact_sets.extremes(part.densities, self._active(part))

    def between(self, part: HitsPart, items: Sequence[int]) -> tuple[Fraction, Fraction]:
        """By how many of these items are active."""
        active = sum(part.ints.active[self.mechanism.coder.group(i)] for i in items)
        return _between(
            lambda j: part.densities[j[0]], (active,), len(items), self.mechanism.padding or 1
        )


class Picked(Bounded[PicksPart]):
    """Picks (exact_picks.py)."""

    def group_factors(self, part: PicksPart) -> list[Fraction]:
        """Of the groups of every block, and of others."""
        s, others = self.mechanism.padding or 1, self.policy.m - sum(part.m)
        held, lacked = exact_picks.item_factors(part.densities, part.m, s, others)
        return [held[block - 1] if block else lacked for block in part.ints.blocks]

    def extremes(self, part: PicksPart) -> tuple[Fraction, Fraction]:
        """The largest and the smallest density."""
        return exact_picks.extremes(part.densities)

    def between(self, part: PicksPart, items: Sequence[int]) -> tuple[Fraction, Fraction]:
        """By how many of these items every block has."""
        mine = [part.ints.blocks[self.mechanism.coder.group(i)] for i in items]
        j = tuple(mine.count(block + 1) for block in range(len(part.m)))
        return _between(
            lambda j: part.densities[j].values(), j, len(items), self.mechanism.padding or 1
        )


def _between(
    row: Callable[[tuple[int, ...]], Collection[Fraction]],
    mine: tuple[int, ...],
    count: int,
    s: int,
) -> tuple[Fraction, Fraction]:
    """The mean of the extremes of the rows of the classes, over what so many items, `mine` of every
    block, are cut to.
    """
    kept, idle = min(count, s), count - sum(mine)
    drawn, high, low = math.comb(count, kept), Fraction(0), Fraction(0)
    for j in itertools.product(*(range(min(x, kept) + 1) for x in mine)):
        if sum(j) <= kept:
            ways = math.prod(map(math.comb, mine, j)) * math.comb(idle, kept - sum(j))
            if ways:
                high, low = high + ways * max(row(j)), low + ways * min(row(j))
    return high / drawn, low / drawn


class OneByOne(SetPromises[Part]):
    """Every item a question of its own: the factors of items multiply."""

    def group_factors(self, part: Part) -> list[Fraction]:
        """The largest ratio of the two chances of a bit, either way unless only one is promised."""
        one_way = not self.policy.is_mutual
        return [exact_sets.each_factor(part.ints, g, one_way) for g in range(len(self.sizes))]

    @property
    def set_factor(self) -> Fraction:
        """There is none to speak of."""
        raise DesignError(
            'with kind = "each" two sets have no factor of their own: those of the items in '
            "which they differ multiply; see list_factor"
        )

    @property
    def epsilon(self) -> float:
        """Between no item and all of them: the budgets add up."""
        each = zip(self.item_factors, self.policy.level_sizes, strict=True)
        return math.fsum(size * log(factor) for factor, size in each)

    def list_factor(self, items: Sequence[int]) -> Fraction:
        """Between these items and none."""
        levels = self.policy.level_of
        return math.prod((self.item_factors[levels[i]] for i in items), start=Fraction(1))

    def bound(self, first: Sequence[int], second: Sequence[int]) -> Factor:
        """Of the items in which they differ. One-way, a report may show that an item is lacking."""
        if {*second} - {*first} and not self.policy.is_mutual:
            return math.inf
        return self.list_factor(sorted({*first} ^ {*second}))

    def _largest(self, count: int) -> Fraction:
        factors = zip(self.item_factors, self.policy.level_sizes, strict=True)
        total = Fraction(1)
        for factor, size in sorted(factors, reverse=True):
            taken = min(size, count)
            total, count = total * factor**taken, count - taken
        return total

    def sentence(self) -> str:
        """The set promise for people."""
        few, large = (min(k, self.policy.m) for k in LISTS)
        answers = f"a list of {few} answer{'s' if few > 1 else ''}"
        text = (
            "Whole lists: each answer is protected on its own and the factors multiply, to at most "
            f"{in_words(self._largest(few))} for {answers} against an empty one"
        )
        more = (
            f", and to at most {in_words(self._largest(large))} for {large}" if large > few else ""
        )
        return f"{text}{more}."

    def list_sentence(self, items: Sequence[int]) -> str:
        """The promise of these items for the person who has them."""
        if not items:
            return (
                "You ticked nothing. Lists are not protected as one, only each answer on its own."
            )
        factor = in_words(self.list_factor(items))
        if not self.policy.is_mutual:
            return (
                "Your whole list is not protected as one: whoever sees your report can raise their "
                f"odds that it is yours, against an empty one, by at most a factor of {factor}; "
                "that you do not have anything else may become known."
            )
        return (
            "Your whole list is not protected as one: whoever sees your report can change their "
            f"odds between it and an empty one by at most a factor of {factor}."
        )


AnySetPromises = SetPromises[Any]

PROMISES: dict[str, type[AnySetPromises]] = {
    "sampled": Sampled,
    "counted": Counted,
    "picked": Picked,
    "each": OneByOne,
}


def set_promises(mechanism: Mechanism) -> AnySetPromises:
    """What a mechanism promises of sets."""
    return PROMISES[mechanism.encoding.lists](mechanism)


class _Smallest:
    """The sum of the `wanted` smallest of some values, each there several times, one left out."""

    def __init__(self, values: Iterable[tuple[Fraction, int]], wanted: int) -> None:
        self.sum, self.next, self.last = Fraction(0), Fraction(0), None
        for value, count in sorted(values):
            taken = min(count, wanted)
            if taken:
                self.sum, self.last, wanted = self.sum + taken * value, value, wanted - taken
            if count > taken:
                self.next = value
                break

    def without(self, value: Fraction) -> Fraction:
        """The sum without one of this value."""
        inside = self.last is not None and value <= self.last
        return self.sum - value + self.next if inside else self.sum
