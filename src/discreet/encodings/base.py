"""What every encoding knows: its size, how to write, refuse, read and count reports, and its base.

An `Encoding` is the public parameters, as they stand in a mechanism file. Its `Coder` is the same
with the tables that one mechanism needs. Nothing outside this package asks which encoding it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import exact
from discreet.exact import D
from discreet.parts import AnyPart, Part
from discreet.policy import Policy
from discreet.randomness import Source

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism
    from discreet.sets import Promises

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

REASONS = {
    "length": "a report of this mechanism has {size} bytes",
    "part": "the first byte names a part that the mechanism does not have",
    "tail": "a bit beyond the last item is set",
    "size": "the report names another number of items of a level than every report does",
    "silent": "the report names an item of a level that its part says nothing about",
    "ticket": "the number is beyond the last ticket",
    "residue": "a coefficient is not below the prime",
}


@dataclass(frozen=True)
class Encoding(ABC):
    """How a report names items: the public parameters."""

    kind: ClassVar[str]
    name: ClassVar[str]  # the word people use: bits or ticket
    told: ClassVar[str]  # one or two words more
    fixed_size: ClassVar[bool] = False  # every report of a part names the same number of items
    samples: ClassVar[bool] = True  # of a set, one item is sampled and reported
    number: ClassVar[bool] = (
        False  # a table holds a report as an unsigned 32-bit integer, not as bytes
    )

    def document(self) -> dict[str, Any]:
        """What stands in the mechanism file."""
        return {"kind": self.kind, **asdict(self)}

    @abstractmethod
    def base(self, size: int) -> int:
        """What `other` of a group of `size` items is a numerator over."""

    @abstractmethod
    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""

    def part(
        self, row: Mapping[str, Any], bases: tuple[int, ...], groups: tuple[int, ...]
    ) -> AnyPart:
        """A part as it stands in a mechanism file."""
        return Part.from_document(row, bases, groups)

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[Any]
    ) -> exact.Violation | None:
        """The exact check of the guarantee; what `misfit` refuses must have been refused before."""
        return exact.check(policy, groups, parts[0].bases, [part.chances for part in parts])

    def misfit(self, mechanism: Mechanism) -> str | None:
        """Why the policy or the numbers of the parts are not for this encoding."""
        policy, parts = mechanism.policy, mechanism.parts
        if policy.takes_sets and not policy.pads:
            return f'protect = "item" asks every item on its own, which "{self.kind}" does not'
        return exact.malformed(policy, len(mechanism.bases), [part.chances for part in parts])

    def promises(self, mechanism: Mechanism) -> Promises:
        """What is promised of sets."""
        from discreet.sets import Sampled

        return Sampled(mechanism)

    def unbiased(self, mechanism: Mechanism) -> bool:
        """Whether the counts are right for everybody: nothing for privacy, all for the numbers."""
        return True

    def problem(self, m: int, parts: int) -> str:
        """Why these parameters do not fit m items and so many parts; empty when they do."""
        return ""

    @abstractmethod
    def coder(self, mechanism: Mechanism) -> Coder:
        """The same with the tables of one mechanism."""


class Coder(ABC):
    """Writes, refuses, reads and counts the reports of one mechanism."""

    reasons: ClassVar[Sequence[str]]  # what can be wrong beside the length, in order

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.m, self.size = mechanism.m, mechanism.report_size
        self.parts = mechanism.parts
        self.group_of = mechanism.group_of  # of every item
        self.sizes = mechanism.group_sizes
        self.chance = [[*p.chance_, *([] if p.none is None else [p.none])] for p in self.parts]
        # the last edge, 2^32, is never passed; one row per group, then of an empty sample (-1)
        self.edges = np.cumsum(np.array(self.chance, dtype=np.uint64), axis=0).T.copy()
        self.other = np.array([p.other_ for p in self.parts], dtype=np.int64)

    @cached_property
    def own(self) -> NDArray[np.uint32]:
        """The chance of an own item over 2^32, parts x groups."""
        return np.array([part.own_ for part in self.parts], dtype=np.uint32)

    # ---- the user's side -------------------------------------------------------------------------

    def write_sets(self, source: Source, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets, person u from offsets[u]."""
        padding = self.mechanism.padding
        assert padding is not None
        self.write(source, sample(source, items, offsets, padding), out)

    def write(self, source: Source, held: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these items (-1: an empty sample)."""
        group = np.where(held < 0, -1, self.group_of.take(held, mode="clip"))
        part = self._draw_part(source, group)
        own = (
            source.uint32(len(held)) < self.own[part, group]
        )  # of "none" and of silent ones: unused
        self._write(source, held, group, part, own, out)

    def _draw_part(self, source: Source, group: Ints) -> Ints:
        """The part of every person, by the chances of the own group: one 32-bit integer each."""
        if len(self.parts) == 1:
            return np.zeros(len(group), np.int64)
        draw = source.uint32(len(group)).astype(np.uint64)
        if len(self.edges) > 64:
            return (draw[:, None] >= self.edges[group]).sum(axis=1)
        part = np.empty(len(group), np.int64)
        for row, edges in enumerate(self.edges):
            mine = np.flatnonzero(group == row if row < self.n_groups else group < 0)
            part[mine] = np.searchsorted(edges, draw[mine], side="right")
        return part

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.sizes)

    def _write(
        self,
        source: Source,
        held: Ints,
        group: Ints,
        part: Ints,
        own: NDArray[np.bool_],
        out: Bytes,
    ) -> None:
        """Reports of people whose part and own bit are drawn."""
        raise NotImplementedError

    # ---- the server's side -----------------------------------------------------------------------

    @abstractmethod
    def check(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None; for one, without numpy."""

    @abstractmethod
    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, NDArray[np.bool_]]]:
        """The part of every row and, for every reason, which rows it applies to."""

    @abstractmethod
    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports, all of one part, name each item."""

    def count_times(self, part: int, rows: Bytes, times: Ints | None) -> Ints:
        """The same where every row was seen so many times: 5 times are 4 and 1, so the rows of
        every power of two are counted, from the largest.
        """
        if times is None:
            return self.count(part, rows)
        counts = np.zeros(self.m, np.int64)
        for power in range(int(times.max(initial=0)).bit_length() - 1, -1, -1):
            counts = 2 * counts + self.count(part, rows[(times >> power) % 2 == 1])
        return counts

    @abstractmethod
    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""

    def adds_up(self, part_n: Ints, counts: Ints) -> bool:
        """Whether these can be the counts of so many reports of every part."""
        return bool((counts <= part_n[:, None]).all())

    @property
    @abstractmethod
    def block(self) -> tuple[int, int]:
        """Rows per block of counting: at least, at most. Some milliseconds of work each."""

    # ---- many reports: gathered block by block, then settled -------------------------------------

    def worth_a_table(self, n: int) -> bool:
        """Whether so many reports are worth what `start` makes for many."""
        return True

    def start(self, n: int | None = None) -> Any:
        """What a thread gathers reports in; n: how many there will be, where that is known."""
        k = len(self.parts)
        return np.zeros(k, np.int64), np.zeros((k, self.m), np.int64)

    def gather(self, into: Any, rows: Bytes, times: Ints | None = None) -> dict[str, int]:
        """Add these reports; returns how many were refused, by reason."""
        part_n, counts = into
        part, reasons = self.refusals(rows)
        refused, good = {}, np.ones(len(rows), bool)
        for reason, which in reasons.items():
            fresh = which & good
            if fresh.any():
                refused[reason] = int(fresh.sum() if times is None else times[fresh].sum())
                good &= ~fresh
        if refused:
            part, rows = part[good], rows[good]
            times = None if times is None else times[good]
        many = np.bincount(part, minlength=len(part_n))
        part_n += many if times is None else summed(part, times, len(part_n))
        if many.max(initial=0) < len(part):  # several parts: put the rows of each together
            order = np.argsort(part.astype(np.uint8), kind="stable")
            rows, times = rows[order], None if times is None else times[order]
        ends = np.cumsum(many)
        for p in np.flatnonzero(many):
            mine = slice(ends[p] - many[p], ends[p])
            often = None if times is None else times[mine]
            counts[p] += self.count_times(int(p), rows[mine], often)
        return refused

    def settle(self, gathered: Sequence[Any], threads: int | None = None) -> tuple[Ints, Ints]:
        """Reports per part, and how many name every item (parts x m), of all that was gathered."""
        part_n, counts = self.start(0)
        for one in gathered:
            part_n += one[0]
            counts += one[1]
        return part_n, counts

    # ---- simulation ------------------------------------------------------------------------------

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts (parts x m), of people with these sets."""
        lengths = np.diff(offsets)
        place = rng.integers(0, np.maximum(lengths, self.mechanism.padding or 1))
        real = place < lengths
        sampled = items[(offsets[:-1] + place)[real]]
        return self.draw_held(np.bincount(sampled, minlength=self.m), len(lengths), rng)

    def draw_held(self, truth: Any, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """The same for n people of whom truth[i] hold (or are sampled at) item i, the rest none."""
        idle, k = n - int(truth.sum()), len(self.parts)
        if k == 1:
            holders, empty = truth[None, :], np.array([idle])
        else:
            chance = np.array(self.chance, dtype=float) / D
            holders, held = np.zeros((k, self.m), np.int64), np.flatnonzero(truth)
            holders[:, held] = rng.multinomial(truth[held], chance[:, self.group_of[held]].T).T
            empty = rng.multinomial(idle, chance[:, -1]) if idle else np.zeros(k, np.int64)
        part_n = (holders.sum(axis=1) + empty).astype(np.int64)
        return part_n, self.draw(holders, part_n, rng).astype(np.int64)

    def draw(self, holders: Ints, part_n: Ints, rng: np.random.Generator) -> Ints:
        """Counts of every part and item (parts x m) for holders[o, i] people of part o who hold
        item i: every item's count is exact in distribution, without making reports.
        """
        own, other = self.chances
        return rng.binomial(holders, own) + rng.binomial(part_n[:, None] - holders, other)

    @cached_property
    def chances(self) -> tuple[Any, Any]:
        """The chance that an item is named by its holder and by another person, parts x m."""
        own = np.array([part.own_group for part in self.parts])[:, self.group_of]
        other = np.array([part.other_group for part in self.parts])[:, self.group_of]
        return own, other


def sample(source: Source, items: Ints, offsets: Ints, padding: int) -> Ints:
    """Padding-and-Sampling (paper, Algorithm 1): one of max(|x|, padding) places of every set; -1
    where it is a dummy.
    """
    lengths = np.diff(offsets)
    place = source.below(np.maximum(lengths, padding).astype(np.uint64)).astype(np.int64)
    real = place < lengths
    return np.where(real, items[np.where(real, offsets[:-1] + place, 0)] if len(items) else -1, -1)


def is_prime(q: int) -> bool:
    """By trial division: q is below 2^32."""
    return q > 1 and all(q % k for k in range(2, int(q**0.5) + 1))


def summed(places: Ints, times: Ints, size: int) -> Ints:
    """How many times every place was named, exactly."""
    out = np.zeros(size, np.int64)
    np.add.at(out, places, times)
    return out


assert D == 2**32  # a uniform 32-bit integer is a uniform numerator
