"""Blocks of any encoding, report by report: a loop over what `encodings/` does.

New encodings start with this. Small jobs use it too, because compiling a faster loop would take
longer than the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from discreet.arrays.base import BlockCoder
from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Ints
from discreet.device.randomness import SystemRandomness


class _Numbers(SystemRandomness):
    """Random numbers for one report, from a source of bits."""

    def __init__(self, source: BitSource) -> None:
        super().__init__()
        self._source = source

    def _fresh(self, size: int) -> bytes:
        buffer = np.empty(size, np.uint8)
        self._source.fill(buffer)
        return buffer.tobytes()


class PlainBlocks(BlockCoder):
    """Writes, refuses and counts with the mechanism's own coder."""

    def write_sets(self, source: BitSource, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets."""
        held, ends = items.tolist(), offsets.tolist()
        for row, (first, last) in enumerate(pairwise(ends)):
            self._put(source, held[first:last], out[row])

    def write(self, source: BitSource, held: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these items."""
        for row, item in enumerate(held.tolist()):
            self._put(source, [item], out[row])

    def _put(self, source: BitSource, items: list[int], row: Bytes) -> None:
        row[:] = np.frombuffer(self.mechanism.coder.write(_Numbers(source), items), np.uint8)

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, Bools]]:
        """The part of every row and, for every reason, which rows it applies to."""
        coder = self.mechanism.coder
        part, reasons = np.zeros(len(rows), np.int64), []
        for k, row in enumerate(rows):
            report = row.tobytes()
            reasons.append(coder.refusal(report))
            if reasons[-1] is None:
                part[k] = coder.read_part(report)
        which = {why: np.array([x == why for x in reasons]) for why in coder.reasons}
        return part, {why: rows for why, rows in which.items() if rows.any()}

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item."""
        counts = np.zeros(self.m, np.int64)
        for row in rows:
            counts[self.mechanism.coder.named(row.tobytes())] += 1
        return counts

    def named(self, part: Ints, rows: Bytes, places: Ints) -> Bools:
        """Which of the items at these places every report names."""
        named = np.zeros((len(rows), self.m), bool)
        for k, row in enumerate(rows):
            named[k, self.mechanism.coder.named(row.tobytes())] = True
        return named[:, places]

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return 1 << 12, 1 << 20
