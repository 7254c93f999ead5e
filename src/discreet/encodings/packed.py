"""What both kinds of bits share: a part's byte, then one bit per item, item k at bit k % 8 of byte
k // 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.encodings.base import Bytes, Coder, Encoding, Ints


@dataclass(frozen=True)
class Packed(Encoding):
    """m bits, packed; one byte with the part's number in front where there are several parts."""

    name = "bits"

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""
        return -(-m // 8) + (parts > 1)


class PackedCoder(Coder):
    """Reads and counts packed bits."""

    @property
    def front(self) -> int:
        """Bytes before the bits."""
        return int(len(self.parts) > 1)

    def check(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != self.size:
            return "length"
        part = report[0] if self.front else 0
        if part >= len(self.parts):
            return "part"
        if self.m % 8 and report[-1] >> (self.m % 8):
            return "tail"
        return self._check(part, int.from_bytes(report[self.front :], "little"))

    def _check(self, part: int, bits: int) -> str | None:
        """What is wrong with the bits of one report of a part."""
        raise NotImplementedError

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, NDArray[np.bool_]]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part = rows[:, 0].astype(np.int64) if self.front else np.zeros(len(rows), np.int64)
        found = {}
        if self.front:
            found["part"] = part >= len(self.parts)
        if self.m % 8:
            found["tail"] = rows[:, -1] >> (self.m % 8) != 0
        known = np.minimum(part, len(self.parts) - 1)
        return part, {**found, **self._refusals(known, rows[:, self.front :])}

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, NDArray[np.bool_]]:
        raise NotImplementedError

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item."""
        return count_columns(rows[:, self.front :])[: self.m]

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        body = np.frombuffer(report, np.uint8)[self.front :]
        return np.flatnonzero(np.unpackbits(body, bitorder="little")).tolist()

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return (1 << 22) // self.size, (1 << 25) // self.size

    def masks(self, silent_only: bool) -> NDArray[np.uint8]:
        """Per part (silent_only) the bits of silent groups; otherwise per group its
        bits; as bytes.
        """
        if silent_only:
            which = self.other[:, self.group_of] == 0
        else:
            which = self.group_of[None, :] == np.arange(self.n_groups)[:, None]
        return np.packbits(which, axis=1, bitorder="little")


def count_columns(body: Bytes) -> Ints:
    """How many rows have each bit set: rows are joined until their length is a whole number of
    64-bit words.
    """
    from discreet import kernels

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
