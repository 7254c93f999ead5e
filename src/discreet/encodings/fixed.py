"""Subsets of fixed size: every report of a part names exactly `other` items of each speaking
group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from discreet.encodings.base import Source, choose
from discreet.encodings.packed import Packed, PackedCoder, mask

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism

_SMALL = 64  # items of a subset, or left out of it, up to which they are drawn one by one
_SLICES = 16  # bits of the chance of a first guess of a large subset


@dataclass(frozen=True)
class Fixed(Packed):
    """m bits, of which a fixed number in every group is 1."""

    kind = "fixed"
    summary = "subsets of fixed size"
    fixed_size = True

    def denominator(self, size: int) -> int:
        """`other` is a number of items out of the group's."""
        return size

    def coder(self, mechanism: Mechanism) -> FixedCoder:
        """The tables of one mechanism."""
        return FixedCoder(mechanism)


class FixedCoder(PackedCoder):
    """A uniform subset of every speaking group; the own group's is drawn around the own item."""

    reasons = ("part", "tail", "size")

    def _write(self, source: Source, part: int, held: int | None, own: bool | None) -> bytes:
        bits = 0
        around = None if own is None or held is None else self.group(held)
        for g, count in enumerate(self.parts[part].ints.other):
            if not count:
                continue
            if g != around:
                bits |= self._subset(source, g, count, None)
            else:
                bits |= self._subset(source, g, count - bool(own), held)
                bits |= bool(own) << (held or 0)
        return self.pack(part, bits)

    def _subset(self, source: Source, g: int, count: int, without: int | None) -> int:
        """The bits of a uniform subset of a group, or of a group without one item."""
        members = self.members[g]
        size = len(members) - (without is not None)
        if min(count, size - count) <= _SMALL:
            fewer = min(count, size - count)
            subset = mask(_choose_but(source, members, fewer, without), self.m)
            return subset if fewer == count else self._but(g, without) & ~subset
        return self._mended(source, g, count, without)

    def _mended(self, source: Source, g: int, count: int, without: int | None) -> int:
        """The same for large subsets: every item with about the right chance, which makes all
        subsets of one size alike, then uniform ones in or out until their number is right.
        """
        members, everyone = self.members[g], self._but(g, without)
        chance = round(2**_SLICES * count / len(members))
        bits = bernoulli(source, self.m, chance) & everyone
        excess = bits.bit_count() - count
        wanted = int(excess > 0)  # what an item is that shall be changed
        row = bytearray(bits.to_bytes(-(-self.m // 8), "little"))
        while excess:
            item = members[source.below(len(members))]
            if item != without and row[item >> 3] >> (item & 7) & 1 == wanted:
                row[item >> 3] ^= 1 << (item & 7)
                excess += 1 - 2 * wanted
        return int.from_bytes(row, "little")

    def _but(self, g: int, without: int | None) -> int:
        return self.masks[g] & ~(0 if without is None else 1 << without)

    def _check(self, part: int, bits: int) -> str | None:
        wanted = self.parts[part].ints.other
        wrong = any(
            (bits & mask).bit_count() != k for mask, k in zip(self.masks, wanted, strict=True)
        )
        return "size" if wrong else None

    def _rest(self, report: bytes, part: int, named: set[int], held: int | None) -> Fraction:
        around, ways = None if held is None else self.group(held), 1
        for g, count in enumerate(self.parts[part].ints.other):
            mine = g == around
            ways *= comb(len(self.members[g]) - mine, count - (mine and held in named))
        return Fraction(1, ways)


def _choose_but(
    source: Source, members: Sequence[int], count: int, without: int | None
) -> list[int]:
    """A uniform subset of `count` members, one of them left out."""
    if len(members) <= 2 * count + 1 or len(members) <= _SMALL:
        return choose(source, [i for i in members if i != without], count)
    chosen: set[int] = set()
    while len(chosen) < count:  # at most half of them are taken: draw again what was drawn
        item = members[source.below(len(members))]
        if item != without:
            chosen.add(item)
    return list(chosen)


def bernoulli(source: Source, m: int, chance: int) -> int:
    """m independent bits, each 1 with the same chance over 2^16."""
    bits = 0
    for k in range(_SLICES):  # from the last digit of the chance: "or" for a 1, "and" for a 0
        more = source.bits(m)
        bits = bits | more if chance >> k & 1 else bits & more
    return bits
