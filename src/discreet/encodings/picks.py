"""Picks: a subset of fixed size of the active items, which names more of a person's own items than
chance would (check/exact_picks.py has the law and the proof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, cast

from discreet.check import exact, exact_picks
from discreet.check.exact import D
from discreet.check.exact_sets import TOTAL
from discreet.check.parts import PicksPart
from discreet.encodings.base import Coder, Encoding, Source, choose, draw
from discreet.encodings.hits import unfit_for_hits
from discreet.encodings.packed import mask
from discreet.policy import Policy
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism
    from discreet.policy.types import JsonObject


@dataclass(frozen=True)
class Picks(Encoding[PicksPart]):
    """The part's byte, then the subset of its active items: a bit per item, or the items' numbers
    in ascending order, whichever is shorter; zeros up to `size` bytes.
    """

    size: int

    kind = "picks"
    name = "picks"
    summary = "subsets of fixed size that your items are in more often"
    lists = "picked"
    fixed_size = True

    def denominator(self, size: int) -> int:
        """The number of items of a group."""
        return size

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""
        return self.size

    def part(
        self, row: JsonObject, denominators: tuple[int, ...], groups: tuple[int, ...]
    ) -> PicksPart:
        """A part as it stands in a mechanism file."""
        return PicksPart.from_document(row, denominators, groups)

    def shares(self, groups: int, policy: Policy, padding: int | None) -> int:
        """Empty samples are told apart by how many items people have: 0, 1, …, padding - 1."""
        return groups + (padding or 1)

    def unfit_policy(self, mechanism: Mechanism) -> str | None:
        """Why the policy or the numbers are not for picks."""
        if unfit := unfit_for_picks(mechanism.policy, mechanism.padding):
            return unfit
        ints = [part.ints for part in _parts(mechanism)]
        wrong = exact_picks.malformed(len(mechanism.group_sizes), mechanism.padding or 1, ints)
        if wrong:
            return wrong
        size = 1 + max(Layout.of_part(part).size for part in _parts(mechanism))
        if self.size != size:
            return f"size = {self.size} of the encoding must be {size}, the bytes of a report"
        return None

    def unbiased(self, mechanism: Mechanism) -> bool:
        """Whether the parts of every cut tell all numbers of own items apart."""
        parts = _parts(mechanism)
        for cut in exact_picks.cuts([part.ints for part in parts]):
            means = list(zip(*(parts[o].means for o in cut), strict=True))
            m, sizes = parts[cut[0]].m, [parts[o].ints.size for o in cut]
            chances = [[p for p, _ in row] for row in means[: m + 1]]
            learnt = [
                [m * named - j * k * p for (p, named), k in zip(row, sizes, strict=True)]
                for j, row in enumerate(means)
                if 0 < j < m
            ]
            if not (_independent(chances) and _independent(learnt)):
                return False
        return True

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[PicksPart]
    ) -> exact.Violation | None:
        """The exact check of any two sets, and of any item."""
        return exact_picks.check(policy, groups, [part.ints for part in parts])

    def coder(self, mechanism: Mechanism) -> PicksCoder:
        """The tables of one mechanism."""
        return PicksCoder(mechanism)


def _parts(mechanism: Mechanism) -> tuple[PicksPart, ...]:
    return cast(tuple[PicksPart, ...], mechanism.parts)


def unfit_for_picks(policy: Policy, padding: int | None) -> str | None:
    """Why picks are not for a policy and a padding; None when they are."""
    unfit = unfit_for_hits(policy, padding)
    return unfit and unfit.replace("hits are", "picks are").replace("of hits", "of picks")


def _independent(rows: Sequence[Sequence[Fraction]]) -> bool:
    """Whether no row is a sum of multiples of the others (Gauss)."""
    left = [list(row) for row in rows]
    for i in range(len(left)):
        pivot = next((c for c, x in enumerate(left[i]) if x), None)
        if pivot is None:
            return False
        for other in left[i + 1 :]:
            factor = other[pivot] / left[i][pivot]
            for c, x in enumerate(left[i]):
                other[c] -= factor * x
    return True


@dataclass(frozen=True)
class Layout:
    """How the subset of a part is written: `width` bits per number, or one bit per active item."""

    m: int
    k: int
    width: int
    as_numbers: bool

    @classmethod
    def of_part(cls, part: PicksPart) -> Layout:
        """The shorter of the two."""
        m, k = part.m, part.ints.size
        width = (m - 1).bit_length()
        return cls(m, k, width, -(-k * width // 8) < -(-m // 8))

    @property
    def bits(self) -> int:
        """The number of bits that are used."""
        return self.k * self.width if self.as_numbers else self.m

    @property
    def size(self) -> int:
        """Bytes of the subset."""
        return -(-self.bits // 8)

    def write(self, ranks: Sequence[int]) -> int:
        """The subset as a number; `ranks` are places among the active items."""
        if not self.as_numbers:
            return mask(ranks, self.m)
        return sum(rank << self.width * n for n, rank in enumerate(sorted(ranks)))

    def read(self, body: int) -> list[int]:
        """The ranks of a subset."""
        if self.as_numbers:
            digit = (1 << self.width) - 1
            return [body >> self.width * n & digit for n in range(self.k)]
        return [rank for rank in range(self.m) if body >> rank & 1]

    def refusal(self, body: int) -> str | None:
        """Why this is not a subset, or None."""
        if body >> self.bits:
            return "tail"
        ranks = self.read(body)
        if len(ranks) != self.k:
            return "size"
        ascending = all(a < b for a, b in pairwise(ranks))
        return None if ascending and max(ranks, default=0) < self.m else "order"


class PicksCoder(Coder[PicksPart]):
    """Draws a cut, cuts the set to the padding, draws a part with the number of active items that
    are named, and a subset that names so many.
    """

    reasons = ("part", "tail", "size", "order")
    padding: int

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self.layouts = [Layout.of_part(part) for part in self.parts]
        self.cuts = exact_picks.cuts([part.ints for part in self.parts])

    @cached_property
    def active(self) -> list[list[int]]:
        """The active items of every cut, in their order."""
        return [
            [i for i in range(self.m) if self.parts[cut[0]].active[self.group(i)]]
            for cut in self.cuts
        ]

    @cached_property
    def cut_of(self) -> dict[int, int]:
        """The cut of every part."""
        return {o: c for c, cut in enumerate(self.cuts) for o in cut}

    def write(self, source: Source, items: Sequence[int]) -> bytes:
        """The report of a person who holds these items."""
        c = draw(source, [self.parts[cut[0]].ints.chance for cut in self.cuts])
        # a set is cut whatever its levels are; otherwise the promise of sets would not hold
        kept = set(choose(source, items, min(len(items), self.padding)))
        active = self.active[c]
        own = [rank for rank, item in enumerate(active) if item in kept]
        others = [rank for rank, item in enumerate(active) if item not in kept]
        part, n = self._part_and_number(source, c, len(own))
        k = self.parts[part].ints.size
        ranks = choose(source, own, n) + choose(source, others, k - n)
        body = self.layouts[part].write(ranks)
        return bytes([part]) + body.to_bytes(self.size - 1, "little")

    def _part_and_number(self, source: Source, c: int, j: int) -> tuple[int, int]:
        """The part, and how many of j active items are named: first the run, then within it."""
        left, m = source.below(TOTAL), len(self.active[c])
        for o in self.cuts[c]:
            ints = self.parts[o].ints
            for run in exact_picks.runs(m, ints.size, j, ints.rows[j]):
                left -= run.mass
                if left < 0:
                    ways = [exact_picks.weight(m, ints.size, j, n) for n in run.numbers]
                    return o, run.numbers[draw(source, ways)]
        raise AssertionError("a draw lies below the sum")

    def read_part(self, report: bytes) -> int:
        """The part that a report belongs to."""
        return report[0]

    def refusal(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != self.size:
            return "length"
        if report[0] >= len(self.parts):
            return "part"
        return self.layouts[report[0]].refusal(_body(report))

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        active = self.active[self.cut_of[report[0]]]
        return [active[rank] for rank in self.layouts[report[0]].read(_body(report))]

    def law(self, report: bytes, items: Sequence[int]) -> Fraction:
        """The exact probability of this report for a person who holds these items: the mean of the
        densities over what a larger set is cut to, times that of a uniform subset.
        """
        part, named = self.parts[report[0]], set(self.named(report))
        active = [i for i in items if part.active[self.group(i)]]
        hit = sum(i in named for i in active)
        missed, idle, kept = len(active) - hit, len(items) - len(active), self.padding
        total, ways = Fraction(0), 0
        for n in range(hit + 1):
            for j in range(n, n + missed + 1):
                rest = min(kept, len(items)) - j
                cuts = comb(hit, n) * comb(missed, j - n) * comb(idle, rest) if rest >= 0 else 0
                ways += cuts
                total += cuts * part.densities[j][n] if cuts else 0
        return Fraction(part.ints.chance, D) * total / ways / comb(part.m, part.ints.size)


def _body(report: bytes) -> int:
    return int.from_bytes(report[1:], "little")
