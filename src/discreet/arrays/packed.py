"""Refuse and count blocks of packed bits; encodings/packed.py has the layout."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays.base import BlockCoder
from discreet.arrays.types import Bools, Bytes, Ints


class PackedBlocks(BlockCoder):
    """Reads and counts packed bits."""

    @property
    def front(self) -> int:
        """Bytes before the bits."""
        return int(len(self.parts) > 1)

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, Bools]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part = rows[:, 0].astype(np.int64) if self.front else np.zeros(len(rows), np.int64)
        reasons = {}
        if self.front:
            reasons["part"] = part >= len(self.parts)
        if self.m % 8:
            reasons["tail"] = rows[:, -1] >> (self.m % 8) != 0
        valid_part = np.minimum(part, len(self.parts) - 1)
        return part, {**reasons, **self._refusals(valid_part, rows[:, self.front :])}

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, Bools]:
        raise NotImplementedError

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item."""
        return count_columns(rows[:, self.front :])[: self.m]

    def named(self, part: Ints, rows: Bytes, places: Ints) -> Bools:
        """Which of the items at these places every report names."""
        bits = rows[:, self.front + (places >> 3)] >> (places & 7).astype(np.uint8)
        return (bits & 1).astype(bool)

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return (1 << 22) // self.size, (1 << 25) // self.size

    def masks(self, silent_only: bool) -> Bytes:
        """The bits of every group, packed; with `silent_only` the bits of silent groups, per
        part.
        """
        if silent_only:
            which = self.other[:, self.group_of] == 0
        else:
            which = self.group_of[None, :] == np.arange(self.n_groups)[:, None]
        return np.packbits(which, axis=1, bitorder="little")


def count_columns(body: Bytes) -> Ints:
    """How many rows have each bit set.

    Rows are joined until their length is a whole number of 64-bit words.
    """
    from discreet.arrays.kernels import packed as kernels

    n, size = body.shape
    join = 8 // int(np.gcd(size, 8))
    while join * size < 256:  # short rows: give the kernel columns to work on
        join *= 2
    whole = n - n % join
    folded = np.zeros(size * 8, np.int64)
    if whole:
        words = np.ascontiguousarray(body[:whole]).reshape(whole // join, join * size).view("<u8")
        counts = np.zeros(words.shape[1] * 64, np.int64)
        kernels.count_bits(words, counts)
        folded += counts.reshape(join, size * 8).sum(axis=0)
    if whole < n:
        folded += np.unpackbits(body[whole:], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return folded
