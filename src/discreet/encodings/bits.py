"""Independent bits: every item of a speaking group is named with chance `other`, the own one with
`own`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, ClassVar

from discreet.check.exact import D
from discreet.encodings.base import Source
from discreet.encodings.packed import Packed, PackedCoder
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism


@dataclass(frozen=True)
class Bits(Packed):
    """m bits, drawn independently."""

    kind = "bits"
    summary = "independent bits"
    independent = True

    def denominator(self, size: int) -> int:
        """`other` is over 2^32."""
        return D

    def coder(self, mechanism: Mechanism) -> BitsCoder:
        """The tables of one mechanism."""
        return BitsCoder(mechanism)


class BitsCoder(PackedCoder):
    """Every bit from `other`; the held item's from `own`."""

    reasons: ClassVar[Sequence[str]] = ("part", "tail", "silent")

    def _write(self, source: Source, part: int, held: int | None, own: bool | None) -> bytes:
        bits = self._others(source, part)
        if own is not None and held is not None:
            bits = bits & ~(1 << held) | own << held
        return self.pack(part, bits)

    def _others(self, source: Source, part: int) -> int:
        """Every bit from `other`. Item by item a random 32-bit number is compared with the
        threshold, all items at once and a digit at a time: what is less in the first digit that
        differs is less.
        """
        less, undecided = 0, (1 << self.m) - 1
        for digit in self._digits[part]:
            drawn = source.bits(self.m)
            less |= undecided & digit & ~drawn
            undecided &= ~(digit ^ drawn)
            if not undecided:
                break
        return less

    @cached_property
    def _digits(self) -> list[list[int]]:
        """Per part the 32 binary digits of every item's threshold, the first digit first; each a
        number with one bit per item.
        """
        return [
            [
                sum(
                    mask
                    for mask, other in zip(self.masks, part.ints.other, strict=True)
                    if other >> place & 1
                )
                for place in range(31, -1, -1)
            ]
            for part in self.parts
        ]

    def _check(self, part: int, bits: int) -> str | None:
        return "silent" if bits & self._silent[part] else None

    @cached_property
    def _silent(self) -> list[int]:
        """Per part the bits of the groups that it says nothing about."""
        return [
            sum(mask for mask, other in zip(self.masks, part.ints.other, strict=True) if other == 0)
            for part in self.parts
        ]

    def _rest(self, report: bytes, part: int, named: set[int], held: int | None) -> Fraction:
        around = None if held is None else self.group(held)
        chances = []
        for g, other in enumerate(self.parts[part].ints.other):
            ones = sum(item in named for item in self.members[g])
            zeros = len(self.members[g]) - ones
            if g == around:  # its own chance is counted already
                ones, zeros = ones - (held in named), zeros - (held not in named)
            chances.append(Fraction(other, D) ** ones * Fraction(D - other, D) ** zeros)
        return prod(chances, start=Fraction(1))
