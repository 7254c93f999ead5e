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

from discreet.exact import D
from discreet.randomness import Source

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

REASONS = {
    "length": "a report of this mechanism has {size} bytes",
    "part": "the first byte names a part that the mechanism does not have",
    "tail": "a bit beyond the last item is set",
    "size": "the report names another number of items of a level than every report does",
    "silent": "the report names an item of a level that its part says nothing about",
    "ticket": "the number is beyond the last ticket",
}


@dataclass(frozen=True)
class Encoding(ABC):
    """How a report names items: the public parameters."""

    kind: ClassVar[str]
    name: ClassVar[str]  # the word people use: bits or ticket
    told: ClassVar[str]  # one or two words more
    fixed_size: ClassVar[bool] = False  # every report of a part names the same number of items
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
    def report_size(self, m: int, parts: int) -> int:
        """Bytes of every report."""

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
        columns = [[*p.chance_, *([] if p.none is None else [p.none])] for p in self.parts]
        # the last edge, 2^32, is never passed; one row per group, then of an empty sample (-1)
        self.edges = np.cumsum(np.array(columns, dtype=np.uint64), axis=0).T.copy()
        self.own = np.array([p.own_ for p in self.parts], dtype=np.uint32)
        self.other = np.array([p.other_ for p in self.parts], dtype=np.int64)

    # ---- the user's side -------------------------------------------------------------------------

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

    @abstractmethod
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

    # ---- the server's side -----------------------------------------------------------------------

    @abstractmethod
    def check(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None; for one, without numpy."""

    @abstractmethod
    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, NDArray[np.bool_]]]:
        """The part of every row and, for every reason, which rows it applies to."""

    @abstractmethod
    def count(self, part: int, rows: Bytes, times: Ints | None = None) -> Ints:
        """How many of these reports, all of one part, name each item; every row counts once, or so
        many times.
        """

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
            counts[p] += self.count(int(p), rows[mine], None if times is None else times[mine])
        return refused

    def settle(self, gathered: Sequence[Any], threads: int | None = None) -> tuple[Ints, Ints]:
        """Reports per part, and how many name every item (parts x m), of all that was gathered."""
        part_n, counts = self.start(0)
        for one in gathered:
            part_n += one[0]
            counts += one[1]
        return part_n, counts

    # ---- simulation ------------------------------------------------------------------------------

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


def summed(places: Ints, times: Ints, size: int) -> Ints:
    """How many times every place was named, exactly."""
    out = np.zeros(size, np.int64)
    np.add.at(out, places, times)
    return out


assert D == 2**32  # a uniform 32-bit integer is a uniform numerator
