"""What all encodings of bits share: a part's byte, then one bit per item, item k at bit k % 8 of
byte k // 8.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from discreet.encodings.base import Sampling, SamplingCoder
from discreet.policy.lazy import cached_property


@dataclass(frozen=True)
class Packed(Sampling):
    """m bits, packed; one byte with the part's number in front where there are several parts."""

    name = "bits"

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""
        return -(-m // 8) + (parts > 1)


class PackedCoder(SamplingCoder):
    """Reads packed bits; a report's bits are one large whole number, item k at bit k."""

    @property
    def front(self) -> int:
        """Bytes before the bits."""
        return int(len(self.parts) > 1)

    def pack(self, part: int, bits: int) -> bytes:
        """The report with these bits."""
        return bytes([part][: self.front]) + bits.to_bytes(self.size - self.front, "little")

    def bits(self, report: bytes) -> int:
        """The bits of a report."""
        return int.from_bytes(report[self.front :], "little")

    def read_part(self, report: bytes) -> int:
        """The part that a report belongs to."""
        return report[0] if self.front else 0

    def refusal(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != self.size:
            return "length"
        if self.read_part(report) >= len(self.parts):
            return "part"
        if self.bits(report) >> self.m:
            return "tail"
        return self._check(self.read_part(report), self.bits(report))

    def _check(self, part: int, bits: int) -> str | None:
        """What is wrong with the bits of a report of this part."""
        raise NotImplementedError

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        return [
            8 * place + k
            for place, byte in enumerate(report[self.front :])
            if byte
            for k in range(8)
            if byte >> k & 1
        ]

    @cached_property
    def masks(self) -> list[int]:
        """The bits of every group."""
        return [mask(group, self.m) for group in self.members]


def mask(items: Iterable[int], m: int) -> int:
    """The bits of these items, of m."""
    row = bytearray(-(-m // 8))
    for i in items:
        row[i >> 3] |= 1 << (i & 7)
    return int.from_bytes(row, "little")
