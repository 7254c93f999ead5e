"""What one report speaks about: the integers that are checked, and the same as floats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import exact, exact_hits
from discreet.exact import D

Floats = NDArray[Any]  # of float64


def fixed(array: Any) -> Any:
    """The array, made read-only: nothing of a mechanism can be changed after the check."""
    array.flags.writeable = False
    return array


class AnyPart(ABC):
    """What every part has: floats per group, from which those per level are made."""

    groups: tuple[int, ...]  # of every level

    @property
    @abstractmethod
    def chance_group(self) -> Floats:
        """The chance of the part, per group."""

    @property
    @abstractmethod
    def own_group(self) -> Floats:
        """The chance that an item is named by its holder, per group; 0 where it is silent."""

    @property
    @abstractmethod
    def other_group(self) -> Floats:
        """The chance that it is named by anybody else."""

    @property
    @abstractmethod
    def difference(self) -> Floats:
        """own - other per group, without cancellation."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """What stands in the mechanism file."""

    @cached_property
    def chance(self) -> Floats:
        """The chance of the part for an answer of every level."""
        return fixed(self.chance_group[list(self.groups)])

    @cached_property
    def own(self) -> Floats:
        """The chance that the answer itself is named, per level; 0 where the level is silent."""
        return fixed(self.own_group[list(self.groups)])

    @cached_property
    def other(self) -> Floats:
        """The chance that any other item is named, per level; 0 where the level is silent."""
        return fixed(self.other_group[list(self.groups)])


@dataclass(frozen=True)
class Part(AnyPart):
    """What one report speaks about: integers per group of levels, and the same as floats per level.

    chance: of the part, for an answer of the group; own: that the answer itself is named; other:
    that any other item of the group is, over `bases`. A group with own = other = 0 is silent. none:
    of the part, for an empty sample.
    """

    chance_: tuple[int, ...]
    own_: tuple[int, ...]
    other_: tuple[int, ...]
    none: int | None
    bases: tuple[int, ...]
    groups: tuple[int, ...]  # of every level

    def __post_init__(self) -> None:
        for name in ("chance_", "own_", "other_", "bases", "groups"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def from_document(
        cls, row: Mapping[str, Any], bases: tuple[int, ...], groups: tuple[int, ...]
    ) -> Part:
        """From a mechanism file; whether the numbers are ones is judged afterwards."""
        chance, own, other = (row[key] for key in ("chance", "own", "other"))
        if not all(isinstance(numbers, list) for numbers in (chance, own, other)):
            raise TypeError("a part's numbers are lists")
        return cls(chance, own, other, row.get("none"), bases, groups)

    def document(self) -> dict[str, Any]:
        """What stands in the mechanism file."""
        none = {} if self.none is None else {"none": self.none}
        numbers = {"chance": self.chance_, "own": self.own_, "other": self.other_}
        return {key: list(row) for key, row in numbers.items()} | none

    @property
    def chances(self) -> exact.Chances:
        """The integers that the check looks at."""
        return exact.Chances(self.chance_, self.own_, self.other_, self.none)

    @cached_property
    def states(self) -> list[tuple[Fraction, Fraction]]:
        """The largest and the smallest state per group, then of an empty sample (exact.py)."""
        found = exact.ranges(self.chances, self.bases)
        return [(Fraction(*state.high), Fraction(*state.low)) for state in found]

    @cached_property
    def chance_group(self) -> Floats:
        """The chance of the part, per group."""
        return fixed(np.array(self.chance_, dtype=float) / D)

    @cached_property
    def own_group(self) -> Floats:
        """The chance that the answer itself is named, per group."""
        return fixed(np.array(self.own_, dtype=float) / D)

    @cached_property
    def other_group(self) -> Floats:
        """The chance that a given item is named whatever the answer, per group."""
        return fixed(np.array(self.other_, dtype=float) / np.array(self.bases, dtype=float))

    @cached_property
    def difference(self) -> Floats:
        """own - other per group without cancellation: the subtraction is done on integers."""
        exactly = [
            a * base - b * D for a, b, base in zip(self.own_, self.other_, self.bases, strict=True)
        ]
        return fixed(np.array(exactly, dtype=float) / (D * np.array(self.bases, dtype=float)))

    @cached_property
    def log_states(self) -> tuple[Floats, Floats]:
        """ln of the largest and of the smallest state per group, then of an empty sample (see
        exact.py).
        """
        speaks = np.array(self.own_) > 0
        own, other = (np.where(speaks, x, 0.5) for x in (self.own_group, self.other_group))
        base = np.log(np.array(self.chance_, dtype=float))
        named = base + np.where(speaks, np.log(own / other), 0)
        unnamed = base + np.where(speaks, np.log1p(-own) - np.log1p(-other), 0)
        none = [] if self.none is None else [np.log(float(self.none))]
        high, low = np.maximum(named, unnamed), np.minimum(named, unnamed)
        return fixed(np.append(high, none)), fixed(np.append(low, none))


@dataclass(frozen=True)
class HitsPart(AnyPart):
    """A part of counted hits (exact_hits.py), whose chance does not depend on the answer."""

    none: int  # the chance of the part, for an empty sample and for every other
    active: tuple[int, ...]  # per group, 1 if its items are named
    limit: int
    rows: tuple[tuple[int, ...], ...]  # tau, hi, mid, lo for 1, 2, … active items
    prime: int
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("active", "groups"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))

    @classmethod
    def from_document(cls, row: Mapping[str, Any], prime: int, groups: tuple[int, ...]) -> HitsPart:
        """From a mechanism file; whether the numbers are ones is judged afterwards."""
        rows = row["rows"] if isinstance(row["rows"], list) else [None]
        if not all(isinstance(x, list) for x in (row["active"], *rows)):
            raise TypeError("a part's numbers are lists")
        return cls(row["chance"], row["active"], row["limit"], row["rows"], prime, groups)

    def document(self) -> dict[str, Any]:
        """What stands in the mechanism file."""
        return {
            "chance": self.none,
            "active": list(self.active),
            "limit": self.limit,
            "rows": [list(row) for row in self.rows],
        }

    @property
    def chances(self) -> exact_hits.HitChances:
        """The integers that the check looks at."""
        return exact_hits.HitChances(self.none, self.active, self.limit, self.rows)

    @property
    def chance_(self) -> tuple[int, ...]:
        """The chance of the part, per group."""
        return (self.none,) * len(self.active)

    @property
    def other_(self) -> tuple[int, ...]:
        """The number of values that name an item, per group; 0 where it is silent."""
        return tuple(self.limit * on for on in self.active)

    @cached_property
    def densities(self) -> exact_hits.Densities:
        """f_j(N)."""
        return exact_hits.densities(self.prime, self.chances)

    @cached_property
    def _named(self) -> tuple[float, float, float]:
        """The chance of an own item, of another, and their difference without cancellation."""
        own, other = exact_hits.own(self.prime, self.chances), Fraction(self.limit, self.prime)
        return float(own), float(other), float(own - other)

    @cached_property
    def chance_group(self) -> Floats:
        """The chance of the part, per group."""
        return fixed(np.full(len(self.active), self.none / D))

    @cached_property
    def own_group(self) -> Floats:
        """The chance that a holder who reports the item names it, per group."""
        return fixed(np.array(self.active) * self._named[0])

    @cached_property
    def other_group(self) -> Floats:
        """The chance that anybody else names it, per group."""
        return fixed(np.array(self.active) * self._named[1])

    @cached_property
    def difference(self) -> Floats:
        """own - other per group."""
        return fixed(np.array(self.active) * self._named[2])

    @cached_property
    def log_states(self) -> tuple[Floats, Floats]:
        """ln of the largest and of the smallest density per group, for one who has a single item of
        it; then for one who has none.
        """
        on = np.append(self.active, 0) > 0
        high, low = (float(pick(self.densities[1])) for pick in (max, min))
        return fixed(np.where(on, np.log(high), 0)), fixed(np.where(on, np.log(low), 0))
