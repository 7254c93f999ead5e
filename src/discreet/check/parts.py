"""What one report speaks about: the integers that are checked, and the same as plain numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from discreet.check import exact, exact_picks, exact_sets
from discreet.check.exact import D
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject


class Rates(NamedTuple):
    """The chances of a part per group; 0 where it says nothing about a group."""

    chance: tuple[float, ...]  # of the part
    own: tuple[float, ...]  # that an item is named by its holder
    other: tuple[float, ...]  # that it is named by anybody else
    difference: tuple[float, ...]  # own - other, without cancellation
    none: float  # the chance of the part for an empty sample


class AnyPart(ABC):
    """What every part has, whatever the encoding."""

    groups: tuple[int, ...]  # of every level

    @property
    @abstractmethod
    def by_group(self) -> Rates:
        """The chances per group."""

    @property
    @abstractmethod
    def states(self) -> list[tuple[Fraction, Fraction]]:
        """The largest and the smallest state per group, then of an empty sample (exact.py); for
        hits, of somebody with a single item.
        """

    @abstractmethod
    def document(self) -> JsonObject:
        """What stands in the mechanism file."""

    @cached_property
    def chance(self) -> tuple[float, ...]:
        """The chance of the part for an answer of every level."""
        return self._by_level(self.by_group.chance)

    @cached_property
    def own(self) -> tuple[float, ...]:
        """The chance that the answer itself is named, per level; 0 where the level is silent."""
        return self._by_level(self.by_group.own)

    @cached_property
    def other(self) -> tuple[float, ...]:
        """The chance that any other item is named, per level; 0 where the level is silent."""
        return self._by_level(self.by_group.other)

    def _by_level(self, values: Sequence[float]) -> tuple[float, ...]:
        return tuple(values[g] for g in self.groups)


@dataclass(frozen=True)
class Part(AnyPart):
    """Integers per group of levels.

    chance: of the part, for an answer of the group; own: that the answer itself is named; other:
    that any other item of the group is, over `denominators`. A group with own = other = 0 is
    silent. none: of the part, for an empty sample.
    """

    ints: exact.Chances
    denominators: tuple[int, ...]
    groups: tuple[int, ...]  # of every level

    def __post_init__(self) -> None:
        chance, own, other, none = self.ints
        rows = (tuple(chance), tuple(own), tuple(other))
        object.__setattr__(self, "ints", exact.Chances(*rows, none))
        for name in ("denominators", "groups"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def from_document(
        cls, row: JsonObject, denominators: tuple[int, ...], groups: tuple[int, ...]
    ) -> Part:
        """From a mechanism file; its values are validated later."""
        chance, own, other = (row[key] for key in ("chance", "own", "other"))
        if not all(isinstance(numbers, list) for numbers in (chance, own, other)):
            raise TypeError("a part's numbers are lists")
        return cls(exact.Chances(chance, own, other, row.get("none")), denominators, groups)

    def document(self) -> JsonObject:
        """What stands in the mechanism file."""
        chance, own, other, none = self.ints
        rows = {"chance": list(chance), "own": list(own), "other": list(other)}
        return rows if none is None else rows | {"none": none}

    @cached_property
    def states(self) -> list[tuple[Fraction, Fraction]]:
        """The largest and the smallest state per group, then of an empty sample (exact.py)."""
        ranges = exact.ranges(self.ints, self.denominators)
        return [(Fraction(*state.high), Fraction(*state.low)) for state in ranges]

    @cached_property
    def by_group(self) -> Rates:
        """The chances per group. The difference is taken of integers."""
        each = [*zip(self.ints.own, self.ints.other, self.denominators, strict=True)]
        return Rates(
            tuple(x / D for x in self.ints.chance),
            tuple(own / D for own, _, _ in each),
            tuple(other / over for _, other, over in each),
            tuple((own * over - other * D) / (D * over) for own, other, over in each),
            (self.ints.none or 0) / D,
        )


@dataclass(frozen=True)
class HitsPart(AnyPart):
    """A part of counted hits (exact_sets.py), whose chance does not depend on the answer."""

    ints: exact_sets.HitChances
    prime: int
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        chance, active, limit, rows = self.ints
        ints = exact_sets.HitChances(chance, tuple(active), limit, tuple(map(tuple, rows)))
        object.__setattr__(self, "ints", ints)
        object.__setattr__(self, "groups", tuple(self.groups))

    @classmethod
    def from_document(cls, row: JsonObject, prime: int, groups: tuple[int, ...]) -> HitsPart:
        """From a mechanism file; its values are validated later."""
        rows = row["rows"] if isinstance(row["rows"], list) else [None]
        if not all(isinstance(x, list) for x in (row["active"], *rows)):
            raise TypeError("a part's numbers are lists")
        ints = exact_sets.HitChances(row["chance"], row["active"], row["limit"], row["rows"])
        return cls(ints, prime, groups)

    def document(self) -> JsonObject:
        """What stands in the mechanism file."""
        chance, active, limit, rows = self.ints
        table = [list(row) for row in rows]
        return {"chance": chance, "active": list(active), "limit": limit, "rows": table}

    @cached_property
    def densities(self) -> exact_sets.Densities:
        """f_j(N)."""
        return exact_sets.densities(self.prime, self.ints)

    @cached_property
    def states(self) -> list[tuple[Fraction, Fraction]]:
        """The largest and the smallest density per group for somebody with a single item of it;
        then for somebody with none.
        """
        single, one = self.densities[1], Fraction(1)
        active = (max(single), min(single))
        return [active if on else (one, one) for on in self.ints.active] + [(one, one)]

    @cached_property
    def by_group(self) -> Rates:
        """The chances per group."""
        own = exact_sets.own(self.prime, self.ints)
        other = Fraction(self.ints.limit, self.prime)
        chance = (self.ints.chance / D,) * len(self.ints.active)
        values = (float(own), float(other), float(own - other))
        own_, other_, gap = (tuple(x * on for on in self.ints.active) for x in values)
        return Rates(chance, own_, other_, gap, self.ints.chance / D)


@dataclass(frozen=True)
class PicksPart(AnyPart):
    """A part of picks (exact_picks.py), whose chance depends on how many active items one has."""

    ints: exact_picks.PickChances
    group_sizes: tuple[int, ...]
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        chance, blocks, sizes, rows = self.ints
        table = tuple(tuple(map(tuple, row)) for row in rows)
        ints = exact_picks.PickChances(chance, tuple(blocks), tuple(sizes), table)
        object.__setattr__(self, "ints", ints)
        for name in ("group_sizes", "groups"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def from_document(
        cls, row: JsonObject, group_sizes: tuple[int, ...], groups: tuple[int, ...]
    ) -> PicksPart:
        """From a mechanism file; its values are validated later."""
        rows = row["rows"] if isinstance(row["rows"], list) else [None]
        bunches = [x for mine in rows for x in (mine if isinstance(mine, list) else [None])]
        if not all(isinstance(x, list) for x in (row["blocks"], row["sizes"], *rows, *bunches)):
            raise TypeError("a part's numbers are lists")
        ints = exact_picks.PickChances(row["chance"], row["blocks"], row["sizes"], row["rows"])
        return cls(ints, group_sizes, groups)

    def document(self) -> JsonObject:
        """What stands in the mechanism file."""
        chance, blocks, sizes, rows = self.ints
        table = [[list(bunch) for bunch in row] for row in rows]
        return {"chance": chance, "blocks": list(blocks), "sizes": list(sizes), "rows": table}

    @cached_property
    def m(self) -> exact_picks.Vector:
        """The number of items of every block."""
        return exact_picks.active_items(self.ints, self.group_sizes)

    @cached_property
    def classes(self) -> list[exact_picks.Vector]:
        """The classes that people can be in."""
        return list(self.densities)

    @cached_property
    def densities(self) -> exact_picks.Densities:
        """f_j(n)."""
        return exact_picks.densities(self.m, self.ints)

    @cached_property
    def laws(self) -> exact_picks.Densities:
        """The chance of the part and of n named own items, per class."""
        return exact_picks.laws(self.m, self.ints.sizes, self.densities)

    @cached_property
    def means(self) -> dict[exact_picks.Vector, tuple[Fraction, list[Fraction]]]:
        """Per class the chance of the part, and the number of named own items of every block in its
        reports on average; both within the cut.
        """
        return {
            j: (
                sum(law.values(), Fraction(0)),
                [sum((n[b] * p for n, p in law.items()), Fraction(0)) for b in range(len(j))],
            )
            for j, law in self.laws.items()
        }

    def learnt(self, j: exact_picks.Vector, block: int) -> Fraction:
        """How many more own items of a block are named than by chance, times its items."""
        used, named = self.means[j]
        return self.m[block] * named[block] - j[block] * self.ints.sizes[block] * used

    def _single(self, block: int) -> exact_picks.Vector:
        """The class of somebody with a single item of a block; of none with block 0."""
        return tuple(int(b + 1 == block) for b in range(len(self.m)))

    @cached_property
    def states(self) -> list[tuple[Fraction, Fraction]]:
        """The largest and the smallest density per group for somebody with a single item of it;
        then for somebody with none.
        """
        rows = [self.densities[self._single(block)].values() for block in (*self.ints.blocks, 0)]
        return [(max(row), min(row)) for row in rows]

    @property
    def active(self) -> tuple[int, ...]:
        """Per group, 1 if its items can be named."""
        return tuple(int(block > 0) for block in self.ints.blocks)

    @cached_property
    def by_group(self) -> Rates:
        """The chances per group, for somebody with a single item of it."""
        cut = self.ints.chance / D
        rates = [self._rates(block) for block in self.ints.blocks]
        chance, own, other, gap = (tuple(map(float, row)) for row in zip(*rates, strict=True))
        none, _ = self.means[self._single(0)]
        return Rates(tuple(cut * x for x in chance), own, other, gap, cut * float(none))

    def _rates(self, block: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        chance, named = self.means[self._single(block)]
        own = other = Fraction(0)
        if block:
            m, k = self.m[block - 1], self.ints.sizes[block - 1]
            own = named[block - 1] / chance
            other = (k - own) / (m - 1) if m > 1 else other
        return chance, own, other, own - other
