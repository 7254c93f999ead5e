"""Picks: subsets of fixed sizes of the active items, which name more of a person's own items than
chance would (check/exact_picks.py has the law and the proof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import comb, prod
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

_PRIME = 2**61 - 1  # rows that are independent modulo a prime are independent


@dataclass(frozen=True)
class Picks(Encoding[PicksPart]):
    """The part's byte, then for every block of its active items the subset: a bit per item, or the
    items' numbers in ascending order, whichever is shorter; zeros up to `size` bytes.
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
        """Whether the parts of every cut tell all classes of people apart."""
        parts = _parts(mechanism)
        for cut in exact_picks.cuts([part.ints for part in parts]):
            mine = [parts[o] for o in cut]
            if not _independent([[part.means[j][0] for part in mine] for j in mine[0].classes]):
                return False
            for b, m in enumerate(mine[0].m):
                told = [j for j in mine[0].classes if 0 < j[b] < m]
                if not _independent([[part.learnt(j, b) for part in mine] for j in told]):
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
    """Whether no row is a sum of multiples of the others (Gauss, modulo a prime)."""
    left = [[x.numerator * pow(x.denominator, -1, _PRIME) % _PRIME for x in row] for row in rows]
    for i, row in enumerate(left):
        pivot = next((c for c, x in enumerate(row) if x), None)
        if pivot is None:
            return False
        inverse = pow(row[pivot], -1, _PRIME)
        for other in left[i + 1 :]:
            factor = other[pivot] * inverse % _PRIME
            if factor:
                other[:] = [(y - factor * x) % _PRIME for x, y in zip(row, other, strict=True)]
    return True


@dataclass(frozen=True)
class Layout:
    """How the subsets of a part are written, block by block: `width` bits per number, or one bit
    per item (width 0).
    """

    m: exact_picks.Vector
    k: exact_picks.Vector
    widths: exact_picks.Vector

    @classmethod
    def of_part(cls, part: PicksPart) -> Layout:
        """The shorter of the two in every block."""
        numbers = [max(1, (m - 1).bit_length()) for m in part.m]
        blocks = zip(part.m, part.ints.sizes, numbers, strict=True)
        return cls(
            part.m, tuple(part.ints.sizes), tuple(w if k * w < m else 0 for m, k, w in blocks)
        )

    @cached_property
    def bits(self) -> exact_picks.Vector:
        """The number of bits of every block."""
        blocks = zip(self.m, self.k, self.widths, strict=True)
        return tuple(k * width if width else m for m, k, width in blocks)

    @property
    def size(self) -> int:
        """Bytes of the subsets."""
        return -(-sum(self.bits) // 8)

    def write(self, ranks: Sequence[Sequence[int]]) -> int:
        """The subsets as a number; `ranks` are places among the items of every block."""
        body, first = 0, 0
        for mine, m, width, bits in zip(ranks, self.m, self.widths, self.bits, strict=True):
            numbers = sum(rank << width * n for n, rank in enumerate(sorted(mine)))
            body |= (numbers if width else mask(mine, m)) << first
            first += bits
        return body

    def read(self, body: int) -> list[list[int]]:
        """The ranks of the subsets."""
        found = []
        for m, k, width, bits in zip(self.m, self.k, self.widths, self.bits, strict=True):
            digit = (1 << width) - 1
            numbers = [body >> width * n & digit for n in range(k)]
            found.append(numbers if width else [rank for rank in range(m) if body >> rank & 1])
            body >>= bits
        return found

    def refusal(self, body: int) -> str | None:
        """Why these are not subsets, or None."""
        if body >> sum(self.bits):
            return "tail"
        found = self.read(body)
        if any(len(ranks) != k for ranks, k in zip(found, self.k, strict=True)):
            return "size"
        for ranks, m in zip(found, self.m, strict=True):
            if any(a >= b for a, b in pairwise(ranks)) or max(ranks, default=0) >= m:
                return "order"
        return None


class PicksCoder(Coder[PicksPart]):
    """Draws a cut, cuts the set to the padding, draws a part with the number of active items of
    every block that are named, and subsets that name so many.
    """

    reasons = ("part", "tail", "size", "order")
    padding: int

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self.layouts = [Layout.of_part(part) for part in self.parts]
        self.cuts = exact_picks.cuts([part.ints for part in self.parts])

    @cached_property
    def blocks(self) -> list[list[list[int]]]:
        """The items of every block of every cut, in their order."""
        found: list[list[list[int]]] = []
        for part in (self.parts[cut[0]] for cut in self.cuts):
            of_item = [part.ints.blocks[self.group(i)] for i in range(self.m)]
            blocks = range(1, len(part.m) + 1)
            found.append([[i for i, b in enumerate(of_item) if b == block] for block in blocks])
        return found

    @cached_property
    def cut_of(self) -> dict[int, int]:
        """The cut of every part."""
        return {o: c for c, cut in enumerate(self.cuts) for o in cut}

    def write(self, source: Source, items: Sequence[int]) -> bytes:
        """The report of a person who holds these items."""
        c = draw(source, [self.parts[cut[0]].ints.chance for cut in self.cuts])
        # a set is cut whatever its levels are; otherwise the promise of sets would not hold
        kept = set(choose(source, items, min(len(items), self.padding)))
        places = [list(enumerate(block)) for block in self.blocks[c]]
        own = [[rank for rank, item in block if item in kept] for block in places]
        others = [[rank for rank, item in block if item not in kept] for block in places]
        part, named = self._part_and_named(source, c, tuple(map(len, own)))
        sizes = self.parts[part].ints.sizes
        ranks = [
            choose(source, mine, n) + choose(source, rest, k - n)
            for mine, rest, n, k in zip(own, others, named, sizes, strict=True)
        ]
        body = self.layouts[part].write(ranks)
        return bytes([part]) + body.to_bytes(self.size - 1, "little")

    def _part_and_named(
        self, source: Source, c: int, j: exact_picks.Vector
    ) -> tuple[int, exact_picks.Vector]:
        """The part, and how many own items of every block are named: first the bunch, then within
        it.
        """
        left, row = source.below(TOTAL), self._places[c][j]
        for o in self.cuts[c]:
            part = self.parts[o]
            for bunch in exact_picks.bunches(part.m, part.ints.sizes, j, part.ints.rows[row]):
                left -= bunch.mass
                if left < 0:
                    return o, bunch.vectors[draw(source, bunch.weights)]
        raise AssertionError("a draw lies below the sum")

    @cached_property
    def _places(self) -> list[dict[exact_picks.Vector, int]]:
        """The rows of the classes, per cut."""
        counts = [len(self.parts[cut[0]].m) for cut in self.cuts]
        rows = [exact_picks.classes(blocks, self.padding) for blocks in counts]
        return [{j: row for row, j in enumerate(mine)} for mine in rows]

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
        blocks = self.blocks[self.cut_of[report[0]]]
        ranks = self.layouts[report[0]].read(_body(report))
        return sorted(
            block[rank] for block, mine in zip(blocks, ranks, strict=True) for rank in mine
        )

    def law(self, report: bytes, items: Sequence[int]) -> Fraction:
        """The exact probability of this report for a person who holds these items: the mean of the
        densities over what a larger set is cut to, times that of uniform subsets.
        """
        part, named = self.parts[report[0]], set(self.named(report))
        blocks = self.blocks[self.cut_of[report[0]]]
        mine = [[i for i in block if i in items] for block in blocks]
        hit = [sum(i in named for i in block) for block in mine]
        missed = [len(block) - n for block, n in zip(mine, hit, strict=True)]
        idle, kept = len(items) - sum(map(len, mine)), min(self.padding, len(items))
        total, drawn = Fraction(0), 0
        for n in product(*(range(x + 1) for x in hit)):
            for rest in product(*(range(x + 1) for x in missed)):
                left = kept - sum(n) - sum(rest)
                if left >= 0:
                    cuts = comb(idle, left) * prod(map(comb, (*hit, *missed), (*n, *rest)))
                    drawn += cuts
                    j = tuple(map(sum, zip(n, rest, strict=True)))
                    total += cuts * part.densities[j][n] if cuts else 0
        subsets = prod(map(comb, part.m, part.ints.sizes))
        return Fraction(part.ints.chance, D) * total / drawn / subsets


def _body(report: bytes) -> int:
    return int.from_bytes(report[1:], "little")
