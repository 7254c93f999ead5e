"""Counted hits: a polynomial modulo a prime that stands for a random choice of items, drawn so that
it names more of a person's own items than chance would (exact_hits.py has the law and the proof).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import exact, exact_hits
from discreet.encodings.base import Bytes, Coder, Encoding, Ints, is_prime
from discreet.parts import HitsPart
from discreet.policy import Policy
from discreet.randomness import Source

Fill = Callable[[Any], None]
_UNEVEN = Fraction(1, 10**6)  # of what is learnt, by which rows of a part may differ


@dataclass(frozen=True)
class Hits(Encoding):
    """The part's byte, then padding + 2 coefficients modulo `prime`, of 2 or 4 bytes."""

    prime: int

    kind = "hits"
    name = "hits"
    told = "a polynomial"
    samples = False

    @property
    def width(self) -> int:
        """Bytes of a coefficient."""
        return 2 if self.prime < 2**16 else 4

    def base(self, size: int) -> int:
        """The limit is a number of values out of the prime."""
        return self.prime

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""
        return 1 + self.width * ((padding or 0) + 2)

    def problem(self, m: int, parts: int) -> str:
        """Why the prime does not fit; empty when it does."""
        if not (max(m, 4) < self.prime < 2**31 and is_prime(self.prime)):
            return f"prime = {self.prime} must be a prime above {max(m, 4)} and below 2^31"
        return ""

    def part(
        self, row: Mapping[str, Any], bases: tuple[int, ...], groups: tuple[int, ...]
    ) -> HitsPart:
        """A part as it stands in a mechanism file."""
        return HitsPart.from_document(row, self.prime, groups)

    def misfit(self, mechanism: Any) -> str | None:
        """Why the policy or the numbers are not for counted hits."""
        policy, padding = mechanism.policy, mechanism.padding
        if unfit := unfit_for_hits(policy, padding):
            return unfit
        chances = [part.chances for part in mechanism.parts]
        return exact_hits.malformed(len(mechanism.bases), padding, chances)

    def promises(self, mechanism: Any) -> Any:
        """What is promised of sets."""
        from discreet.sets import Counted

        return Counted(mechanism)

    def unbiased(self, mechanism: Any) -> bool:
        """Whether an own item is named alike beside however many others."""
        for part in mechanism.parts:
            rows = range(1, len(part.rows) + 1)
            chances = [exact_hits.own(self.prime, part.chances, j) for j in rows]
            learnt = chances[0] - Fraction(part.limit, self.prime)
            if max(chances) - min(chances) > abs(learnt) * _UNEVEN:
                return False
        return True

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[Any]
    ) -> exact.Violation | None:
        """The exact check of any two sets, and of any item."""
        chances = [part.chances for part in parts]
        return exact_hits.check(policy, groups, self.prime, chances)

    def coder(self, mechanism: Any) -> HitsCoder:
        """The tables of one mechanism."""
        return HitsCoder(mechanism)


def unfit_for_hits(policy: Policy, padding: int | None) -> str | None:
    """Why counted hits are not for a policy and a padding; None when they are."""
    if not policy.pads or policy.notion != "min" or policy.overrides:
        return (
            'hits are for input = "set" with protect = "set", notion = "min" and no explicit pairs'
        )
    if padding is None or not 1 <= padding <= exact_hits.LARGEST:
        return f"padding = {padding} of hits must be from 1 to {exact_hits.LARGEST}"
    return None


class HitsCoder(Coder):
    """Cuts a set to the padding, draws which of its active items are named, and a polynomial that
    names those.
    """

    reasons = ("part", "residue")
    parts: tuple[HitsPart, ...]

    def __init__(self, mechanism: Any) -> None:
        super().__init__(mechanism)
        self.encoding: Hits = mechanism.encoding
        self.prime, self.padding = self.encoding.prime, mechanism.padding
        self.limits = np.array([part.limit for part in self.parts])
        self.active = self.other[:, self.group_of] > 0  # parts x items

    # ---- the user's side -------------------------------------------------------------------------

    def write_sets(self, source: Source, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets."""
        from discreet import kernels

        n = len(offsets) - 1
        part = self._draw_part(source, np.full(n, -1))
        kept, count, named = self._own(source.fill, part, items, offsets)
        found = np.empty((n, self.padding + 2), np.int64)
        drawn = (kept, count, named, self.limits[part], self.prime, self._inverses)
        _drawn(source.fill, kernels.polynomials, n, 2 * self.padding, found, *drawn)
        kind = "<u2" if self.encoding.width == 2 else "<u4"
        out[:, 0] = part
        out[:, 1:] = found.astype(kind).view(np.uint8).reshape(n, -1)

    def _own(self, fill: Fill, part: Ints, items: Ints, offsets: Ints) -> tuple[Ints, Ints, Ints]:
        """The active items of everybody's set, cut to the padding; how many, and how many of those
        are named, which then stand in front.
        """
        from discreet import kernels

        n = len(part)
        kept = np.empty((n, self.padding), np.int64)
        _drawn(fill, kernels.cut_sets, n, self.padding, kept, items, offsets, part, self.active)
        count = (kept >= 0).sum(axis=1)
        named = self._numbers(fill, part, count)
        _drawn(fill, kernels.choose, n, 8 * self.padding, kept, count, named)
        return kept, count, named

    def _numbers(self, fill: Fill, part: Ints, count: Ints) -> Ints:
        """How many of `count` own items are named, by its exact law: a uniform number of 64 bits
        and, where it falls together with the beginning of an edge, further ones.
        """
        draw = np.empty(len(part), np.uint64)
        fill(draw)
        edges = self._edges[part, count]
        found = (draw[:, None] >= edges).sum(axis=1)
        for i in np.flatnonzero((draw[:, None] == edges).any(axis=1)):
            found[i] = _inverted(fill, int(draw[i]), self._law(int(part[i]), int(count[i])))
        return found

    def _law(self, part: int, j: int) -> list[Fraction]:
        """Pr(N <= n) of j active items for n = 0, …, j - 1."""
        if not j:
            return []
        chances, total, found = self.parts[part].chances, Fraction(0), []
        by_number = [Fraction(0)] * (j + 1)
        weights = exact_hits.weights(self.prime, chances.limit, j)
        for mass, whole, numbers in exact_hits.classes(
            self.prime, chances.limit, j, chances.rows[j - 1]
        ):
            for n in numbers:
                by_number[n] = Fraction(mass * weights[n], exact_hits.TOTAL * whole)
        for p in by_number[:-1]:
            total += p
            found.append(total)
        return found

    @cached_property
    def _edges(self) -> NDArray[np.uint64]:
        """The first 64 bits of these, parts x (padding + 1) x padding; what is never passed behind
        them.
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
        p, found = self.prime, np.ones(self.prime, np.int32)
        for x in range(2, p):
            found[x] = (p - p // x) * int(found[p % x]) % p
        return found

    # ---- the server's side -----------------------------------------------------------------------

    def _coefficients(self, rows: Bytes) -> NDArray[np.uint32]:
        kind = "<u2" if self.encoding.width == 2 else "<u4"
        return np.ascontiguousarray(rows[:, 1:]).view(kind).astype(np.uint32)

    def check(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != self.size:
            return "length"
        if report[0] >= len(self.parts):
            return "part"
        width = self.encoding.width
        beyond = any(
            int.from_bytes(report[k : k + width], "little") >= self.prime
            for k in range(1, self.size, width)
        )
        return "residue" if beyond else None

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, NDArray[np.bool_]]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part = rows[:, 0].astype(np.int64)
        beyond = (self._coefficients(rows) >= self.prime).any(axis=1)
        return part, {"part": part >= len(self.parts), "residue": beyond}

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item."""
        from discreet import kernels

        counts, polynomials = np.zeros(self.m, np.int64), self._coefficients(rows)
        kernels.count_hits(polynomials, self.prime, int(self.limits[part]), counts)
        return np.where(self.active[part], counts, 0)

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        rows = np.frombuffer(report, np.uint8)[None, :]
        return np.flatnonzero(self.count(report[0], rows)).tolist()

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return max(256, (1 << 24) // self.m), max(1 << 12, (1 << 27) // self.m)

    # ---- simulation ------------------------------------------------------------------------------

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts, of people with these sets: what is drawn of everyone's own
        items is the same code as theirs, all others are named by chance.
        """

        def fill(chunk: Any) -> None:
            chunk[:] = rng.integers(0, np.iinfo(chunk.dtype).max, len(chunk), chunk.dtype, True)

        n, k = len(offsets) - 1, len(self.parts)
        chance = np.array([part.chance_group[0] for part in self.parts])
        part = rng.choice(k, size=n, p=chance / chance.sum())
        kept, count, named = self._own(fill, part, items, offsets)
        place = np.arange(self.padding)
        part_n, counts = np.bincount(part, minlength=k), np.zeros((k, self.m), np.int64)
        for o in range(k):
            mine = part == o
            held, hit = (
                np.bincount(kept[mine][place < many[mine, None]], minlength=self.m)
                for many in (count, named)
            )
            other = float(self.limits[o]) / self.prime
            counts[o] = hit + rng.binomial(part_n[o] - held, np.where(self.active[o], other, 0.0))
        return part_n, counts


def _drawn(fill: Fill, kernel: Any, n: int, words: int, out: Any, *arguments: Any) -> None:
    """Run a kernel over n rows that need about so many random words each, in chunks of them."""
    chunk, done = np.empty(min(1 << 16, (words + 4) * n) + 64 * words + 64, np.uint32), 0
    while done < n:
        fill(chunk)
        done = kernel(out, *arguments, chunk, done)


def _inverted(fill: Fill, draw: int, law: list[Fraction]) -> int:
    """How many of these numbers are at most X, uniform in [0, 1), whose first 64 bits are drawn."""
    bits, more = 64, np.empty(1, np.uint64)
    while any(draw < p * 2**bits < draw + 1 for p in law):
        fill(more)
        draw, bits = draw * 2**64 + int(more[0]), bits + 64
    return sum(p * 2**bits <= draw for p in law)
