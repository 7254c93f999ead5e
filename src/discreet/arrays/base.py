"""What every encoding can do with many reports: write, refuse and count blocks of them, and
simulate their counts. `encodings/` has one report at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Floats, Ints, Words
from discreet.check.exact import Chances, D
from discreet.check.parts import Part
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property


class Gathered:
    """What one thread gathers reports in; only the coder that started it looks inside."""


@dataclass(eq=False)
class Counters(Gathered):
    """Reports per part, and how many name every item (parts x m)."""

    part_n: Ints
    counts: Ints


# More than 15 public methods: one object per mechanism writes, refuses, counts and simulates, and
# an encoding overrides only what it does differently.
class BlockCoder(ABC):
    """Writes, refuses and counts the reports of one mechanism."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.m, self.size = mechanism.m, mechanism.report_size
        self.parts = mechanism.parts
        self.group_of = mechanism.arrays.group_of  # of every item
        self.group_sizes = mechanism.arrays.group_sizes

    @cached_property
    def _ints(self) -> list[Chances]:
        """The integers of every part."""
        return [cast(Part, part).ints for part in self.parts]

    def chance_ints(self) -> list[list[int]]:
        """The chance of every part over 2^32, per group and then for an empty sample."""
        return [[*x.chance, *([] if x.none is None else [x.none])] for x in self._ints]

    def other_ints(self) -> list[list[int]]:
        """`other` of every part over the denominators, per group."""
        return [list(x.other) for x in self._ints]

    @cached_property
    def edges(self) -> Words:
        """Where the parts end in a draw of 32 bits: a row per group, then one for an empty sample
        (-1). The last edge is 2^32, which no draw reaches.
        """
        return np.cumsum(np.array(self.chance_ints(), dtype=np.uint64), axis=0).T.copy()

    @cached_property
    def other(self) -> Ints:
        """`other` over the denominators, parts x groups."""
        return np.array(self.other_ints(), dtype=np.int64)

    @cached_property
    def own(self) -> Words:
        """The chance of an own item over 2^32, parts x groups; 2^32 needs more than 32 bits."""
        return np.array([x.own for x in self._ints], dtype=np.uint64)

    # ---- the user's side -------------------------------------------------------------------------

    def write_sets(self, source: BitSource, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets, person u from offsets[u]."""
        padding = self.mechanism.padding
        assert padding is not None
        self.write(source, sample(source, items, offsets, padding), out)

    def write(self, source: BitSource, held: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these items (-1: an empty sample)."""
        group = np.where(held < 0, -1, self.group_of.take(held, mode="clip"))
        part = self._draw_part(source, group)
        # an empty sample and a silent group do not use their bit
        own = source.uint32(len(held)) < self.own[part, group]
        self._write(source, held, group, part, own, out)

    def _draw_part(self, source: BitSource, group: Ints) -> Ints:
        """Draw the part of every person by the chances of their group, with 32 bits each."""
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
        return len(self.group_sizes)

    def _write(
        self,
        source: BitSource,
        held: Ints,
        group: Ints,
        part: Ints,
        own: Bools,
        out: Bytes,
    ) -> None:
        """Fill `out` with the reports of people whose part and own bit are drawn."""
        raise NotImplementedError

    # ---- the server's side -----------------------------------------------------------------------

    @abstractmethod
    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, Bools]]:
        """The part of every row and, for every reason, which rows it applies to."""

    @abstractmethod
    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports, all of one part, name each item."""

    @abstractmethod
    def named(self, part: Ints, rows: Bytes, places: Ints) -> Bools:
        """Which of the items at these places every report names (reports x places)."""

    def count_times(self, part: int, rows: Bytes, times: Ints | None) -> Ints:
        """The same where row i was seen times[i] times.

        5 times are 4 and 1: the rows of every power of two are counted, the largest first.
        """
        if times is None:
            return self.count(part, rows)
        counts = np.zeros(self.m, np.int64)
        for power in range(int(times.max(initial=0)).bit_length() - 1, -1, -1):
            counts = 2 * counts + self.count(part, rows[(times >> power) % 2 == 1])
        return counts

    def adds_up(self, part_n: Ints, counts: Ints) -> bool:
        """Whether these counts can come from part_n[o] reports of every part o."""
        return bool((counts <= part_n[:, None]).all())

    @property
    @abstractmethod
    def block(self) -> tuple[int, int]:
        """The least and the most rows per block of counting: some milliseconds of work each."""

    # ---- many reports: gathered block by block, then settled -------------------------------------

    def worth_a_table(self, n: int) -> bool:
        """Whether n reports are worth the table that `start` makes for a large number."""
        return True

    def start(self, n: int | None = None) -> Gathered:
        """Empty counters for one thread; n: the number of reports, where it is known."""
        return self._no_reports()

    def _no_reports(self) -> Counters:
        k = len(self.parts)
        return Counters(np.zeros(k, np.int64), np.zeros((k, self.m), np.int64))

    def gather(self, into: Gathered, rows: Bytes, times: Ints | None = None) -> dict[str, int]:
        """Add these reports. Returns the number of refused reports by reason."""
        assert isinstance(into, Counters)
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
        rows_of_part = np.bincount(part, minlength=len(self.parts))
        into.part_n += rows_of_part if times is None else summed(part, times, len(self.parts))
        if rows_of_part.max(initial=0) < len(part):  # several parts: put the rows of each together
            order = np.argsort(part.astype(np.uint8), kind="stable")
            rows, times = rows[order], None if times is None else times[order]
        ends = np.cumsum(rows_of_part)
        for p in np.flatnonzero(rows_of_part):
            mine = slice(ends[p] - rows_of_part[p], ends[p])
            often = None if times is None else times[mine]
            into.counts[p] += self.count_times(int(p), rows[mine], often)
        return refused

    def settle(self, gathered: Sequence[Gathered], threads: int | None = None) -> Counters:
        """The total of what the threads gathered."""
        total = self._no_reports()
        for one in gathered:
            if isinstance(one, Counters):
                total.part_n += one.part_n
                total.counts += one.counts
        return total

    # ---- simulation ------------------------------------------------------------------------------

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts (parts x m), of people with these sets."""
        lengths = np.diff(offsets)
        place = rng.integers(0, np.maximum(lengths, self.mechanism.padding or 1))
        real = place < lengths
        sampled = items[(offsets[:-1] + place)[real]]
        return self.draw_held(np.bincount(sampled, minlength=self.m), len(lengths), rng)

    def draw_held(self, truth: Ints, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """The same for n people: truth[i] hold, or are sampled at, item i; the rest hold none."""
        idle, k = n - int(truth.sum()), len(self.parts)
        if k == 1:
            holders, empty = truth[None, :], np.array([idle])
        else:
            chance = self.mechanism.arrays.chance
            holders, held = np.zeros((k, self.m), np.int64), np.flatnonzero(truth)
            holders[:, held] = rng.multinomial(truth[held], chance[:, self.group_of[held]].T).T
            empty = rng.multinomial(idle, chance[:, -1]) if idle else np.zeros(k, np.int64)
        part_n = (holders.sum(axis=1) + empty).astype(np.int64)
        return part_n, self.draw(holders, part_n, rng).astype(np.int64)

    def draw(self, holders: Ints, part_n: Ints, rng: np.random.Generator) -> Ints:
        """Counts of every part and item (parts x m) for holders[o, i] people of part o who hold
        item i.

        Every item's count is exact in distribution; no reports are made.
        """
        own, other = self.chances
        return rng.binomial(holders, own) + rng.binomial(part_n[:, None] - holders, other)

    @cached_property
    def chances(self) -> tuple[Floats, Floats]:
        """The chance that an item is named by its holder and by another person, parts x m."""
        arrays = self.mechanism.arrays
        return arrays.own[:, self.group_of], arrays.other[:, self.group_of]


def sample(source: BitSource, items: Ints, offsets: Ints, padding: int) -> Ints:
    """Padding-and-Sampling (paper, Algorithm 1): one of max(|x|, padding) places of every set.

    Returns the item at that place; -1 where the place is a dummy.
    """
    lengths = np.diff(offsets)
    place = source.below(np.maximum(lengths, padding).astype(np.uint64)).astype(np.int64)
    real = place < lengths
    return np.where(real, items[np.where(real, offsets[:-1] + place, 0)] if len(items) else -1, -1)


def summed(places: Ints, times: Ints, size: int) -> Ints:
    """The sum of `times` at every place, in exact integers."""
    out = np.zeros(size, np.int64)
    np.add.at(out, places, times)
    return out


assert D == 2**32  # a uniform 32-bit integer is a uniform numerator
