"""Blocks of counted hits (encodings/hits.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.base import BlockCoder
from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s, Words
from discreet.check import exact_sets
from discreet.check.parts import HitsPart
from discreet.encodings import Hits
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property

Fill = Callable[[Uint32s | Words], None]  # overwrites an array with random bits

RowKernel = Callable[..., int]  # fills rows of its first argument, returns the number done


class HitsBlocks(BlockCoder):
    """Cuts a set to the padding, draws which of its active items are named, and a polynomial that
    names those.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        assert mechanism.padding is not None
        self.encoding = cast(Hits, mechanism.encoding)
        self.prime, self.padding = self.encoding.prime, mechanism.padding
        self._hit_ints = [cast(HitsPart, part).ints for part in self.parts]
        self.limits = np.array([ints.limit for ints in self._hit_ints])
        self.active = self.other[:, self.group_of] > 0  # parts x items

    def chance_ints(self) -> list[list[int]]:
        """The chance of every part over 2^32; it does not depend on the answer."""
        return [[ints.chance] * (len(ints.active) + 1) for ints in self._hit_ints]

    def other_ints(self) -> list[list[int]]:
        """The number of values that name an item, per group; 0 where the group is silent."""
        return [[ints.limit * on for on in ints.active] for ints in self._hit_ints]

    # ---- the user's side -------------------------------------------------------------------------

    def write_sets(self, source: BitSource, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets."""
        from discreet.arrays.kernels import hits as kernels

        n = len(offsets) - 1
        part = self._draw_part(source, np.full(n, -1))
        kept, count, named = self._own(source.fill, part, items, offsets)
        coefficients = np.empty((n, self.padding + 2), np.int64)
        values = (kept, count, named, self.limits[part], self.prime, self._inverses)
        fill_rows(source.fill, kernels.draw_polynomials, n, 2 * self.padding, coefficients, *values)
        out[:, 0] = part
        out[:, 1:] = coefficients.astype(self._width).view(np.uint8).reshape(n, -1)

    @property
    def _width(self) -> str:
        """The type of a coefficient in a report."""
        return "<u2" if self.encoding.width == 2 else "<u4"

    def _own(self, fill: Fill, part: Ints, items: Ints, offsets: Ints) -> tuple[Ints, Ints, Ints]:
        """The active items of every set, cut to the padding; how many there are, and how many of
        them are named. The named items stand in front.
        """
        from discreet.arrays.kernels import hits as kernels

        n = len(part)
        kept = np.empty((n, self.padding), np.int64)
        fill_rows(fill, kernels.cut_sets, n, self.padding, kept, items, offsets, part, self.active)
        count = (kept >= 0).sum(axis=1)
        named = self._numbers(fill, part, count)
        fill_rows(fill, kernels.choose_named, n, 8 * self.padding, kept, count, named)
        return kept, count, named

    def _numbers(self, fill: Fill, part: Ints, count: Ints) -> Ints:
        """Draw how many of `count` own items are named, by the exact law.

        Inverts a uniform number of 64 bits; where these 64 bits equal those of an edge, it draws
        more.
        """
        draw = np.empty(len(part), np.uint64)
        fill(draw)
        edges = self._edges[part, count]
        named = (draw[:, None] >= edges).sum(axis=1)
        for i in np.flatnonzero((draw[:, None] == edges).any(axis=1)):
            named[i] = invert(fill, int(draw[i]), self._law(int(part[i]), int(count[i])))
        return named

    def _law(self, part: int, j: int) -> list[Fraction]:
        """Pr(N <= n) of j active items, for n = 0, …, j - 1."""
        if not j:
            return []
        ints, total, cumulated = self._hit_ints[part], Fraction(0), []
        by_number = [Fraction(0)] * (j + 1)
        weights = exact_sets.weights(self.prime, ints.limit, j)
        for mass, whole, numbers in exact_sets.classes(self.prime, ints.limit, j, ints.rows[j - 1]):
            for n in numbers:
                by_number[n] = Fraction(mass * weights[n], exact_sets.TOTAL * whole)
        for p in by_number[:-1]:
            total += p
            cumulated.append(total)
        return cumulated

    @cached_property
    def _edges(self) -> Words:
        """The first 64 bits of the law, parts x (padding + 1) x padding; the largest number where
        there is no edge.
        """
        never = np.uint64(2**64 - 1)
        table = np.full((len(self.parts), self.padding + 1, self.padding), never)
        for o in range(len(self.parts)):
            for j in range(1, self.padding + 1):
                for n, p in enumerate(self._law(o, j)):
                    table[o, j, n] = min(int(p * 2**64), 2**64 - 1)
        return table

    @cached_property
    def _inverses(self) -> NDArray[np.int32]:
        """1 / x modulo a small prime, for every x."""
        if self.encoding.width > 2:
            return np.empty(0, np.int32)
        p, inverses = self.prime, np.ones(self.prime, np.int32)
        for x in range(2, p):
            inverses[x] = (p - p // x) * int(inverses[p % x]) % p
        return inverses

    # ---- the server's side -----------------------------------------------------------------------

    def _coefficients(self, rows: Bytes) -> Uint32s:
        return np.ascontiguousarray(rows[:, 1:]).view(self._width).astype(np.uint32)

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, Bools]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part = rows[:, 0].astype(np.int64)
        beyond: Bools = np.any(self._coefficients(rows) >= self.prime, axis=1)
        return part, {"part": part >= len(self.parts), "residue": beyond}

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item."""
        from discreet.arrays.kernels import hits as kernels

        counts, polynomials = np.zeros(self.m, np.int64), self._coefficients(rows)
        kernels.count_hits(polynomials, self.prime, int(self.limits[part]), counts)
        return np.where(self.active[part], counts, 0)

    def named(self, part: Ints, rows: Bytes, places: Ints) -> Bools:
        """Which of the items at these places every report names."""
        value = np.zeros((len(rows), len(places)), np.int64)
        for coefficient in self._coefficients(rows).T[::-1]:
            value = (value * (places + 1) + coefficient[:, None].astype(np.int64)) % self.prime
        limits: Ints = self.other[:, self.group_of[places]][part]
        return value < limits

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return max(256, (1 << 24) // self.m), max(1 << 12, (1 << 27) // self.m)

    # ---- simulation ------------------------------------------------------------------------------

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts, of people with these sets.

        Own items are drawn with the same code as in a report; all others are named by chance.
        """

        def fill(chunk: Uint32s | Words) -> None:
            chunk[:] = rng.integers(0, np.iinfo(chunk.dtype).max, len(chunk), chunk.dtype, True)

        n, k = len(offsets) - 1, len(self.parts)
        chance = self.mechanism.arrays.chance[:, 0]
        part = rng.choice(k, size=n, p=chance / chance.sum())
        kept, count, named = self._own(fill, part, items, offsets)
        place = np.arange(self.padding)
        part_n, counts = np.bincount(part, minlength=k), np.zeros((k, self.m), np.int64)
        for o in range(k):
            mine = part == o
            held, hit = (
                np.bincount(kept[mine][place < length[mine, None]], minlength=self.m)
                for length in (count, named)
            )
            other = float(self.limits[o]) / self.prime
            counts[o] = hit + rng.binomial(part_n[o] - held, np.where(self.active[o], other, 0.0))
        return part_n, counts


def fill_rows(
    fill: Fill, kernel: RowKernel, n: int, words: int, out: Ints | Bytes, *arguments: object
) -> None:
    """Run a kernel over n rows that need about `words` random words each, chunk by chunk."""
    chunk, done = np.empty(min(1 << 16, (words + 4) * n) + 64 * words + 64, np.uint32), 0
    while done < n:
        fill(chunk)
        done = kernel(out, *arguments, chunk, done)


def invert(fill: Fill, draw: int, law: list[Fraction]) -> int:
    """How many numbers of the law are at most X, uniform in [0, 1), with these first 64 bits."""
    bits, more = 64, np.empty(1, np.uint64)
    while any(draw < p * 2**bits < draw + 1 for p in law):
        fill(more)
        draw, bits = draw * 2**64 + int(more[0]), bits + 64
    return sum(p * 2**bits <= draw for p in law)
