"""Counted hits: a polynomial modulo a prime that stands for a random choice of items, drawn so that
it names more of a person's own items than chance would (check/exact_sets.py has the law and the
proof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, cast

from discreet.check import exact, exact_sets
from discreet.check.exact import D
from discreet.check.parts import HitsPart
from discreet.encodings.base import Coder, Encoding, Source, choose, draw, is_prime
from discreet.policy import Policy

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism
    from discreet.policy.types import JsonObject

_UNEVEN = Fraction(1, 10**6)  # of what is learnt, by which rows of a part may differ


@dataclass(frozen=True)
class Hits(Encoding[HitsPart]):
    """The part's byte, then padding + 2 coefficients modulo `prime`, of 2 or 4 bytes."""

    prime: int

    kind = "hits"
    name = "hits"
    summary = "a polynomial"
    lists = "counted"

    @property
    def width(self) -> int:
        """Bytes of a coefficient."""
        return 2 if self.prime < 2**16 else 4

    def denominator(self, size: int) -> int:
        """The limit is a number of values out of the prime."""
        return self.prime

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""
        return 1 + self.width * ((padding or 0) + 2)

    def unfit_size(self, m: int, parts: int) -> str:
        """Why the prime does not fit; empty when it does."""
        if not (max(m, 4) < self.prime < 2**31 and is_prime(self.prime)):
            return f"prime = {self.prime} must be a prime above {max(m, 4)} and below 2^31"
        return ""

    def part(
        self, row: JsonObject, denominators: tuple[int, ...], groups: tuple[int, ...]
    ) -> HitsPart:
        """A part as it stands in a mechanism file."""
        return HitsPart.from_document(row, self.prime, groups)

    def unfit_policy(self, mechanism: Mechanism) -> str | None:
        """Why the policy or the numbers are not for counted hits."""
        if unfit := unfit_for_hits(mechanism.policy, mechanism.padding):
            return unfit
        ints = [part.ints for part in _parts(mechanism)]
        return exact_sets.malformed(len(mechanism.denominators), mechanism.padding or 0, ints)

    def unbiased(self, mechanism: Mechanism) -> bool:
        """Whether an own item is named alike beside however many others."""
        for part in _parts(mechanism):
            rows = range(1, len(part.ints.rows) + 1)
            chances = [exact_sets.own(self.prime, part.ints, j) for j in rows]
            learnt = chances[0] - Fraction(part.ints.limit, self.prime)
            if max(chances) - min(chances) > abs(learnt) * _UNEVEN:
                return False
        return True

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[HitsPart]
    ) -> exact.Violation | None:
        """The exact check of any two sets, and of any item."""
        return exact_sets.check(policy, groups, self.prime, [part.ints for part in parts])

    def coder(self, mechanism: Mechanism) -> HitsCoder:
        """The tables of one mechanism."""
        return HitsCoder(mechanism)


def _parts(mechanism: Mechanism) -> tuple[HitsPart, ...]:
    return cast(tuple[HitsPart, ...], mechanism.parts)


def unfit_for_hits(policy: Policy, padding: int | None) -> str | None:
    """Why counted hits are not for a policy and a padding; None when they are."""
    if not policy.kind.pads or policy.notion != "min" or policy.pair_budgets:
        return 'hits are for kind = "set", notion = "min" and no explicit pairs'
    if padding is None or not 1 <= padding <= exact_sets.LARGEST:
        return f"padding = {padding} of hits must be from 1 to {exact_sets.LARGEST}"
    return None


class HitsCoder(Coder[HitsPart]):
    """Cuts a set to the padding, draws which of its active items are named, and a polynomial that
    names those.
    """

    reasons = ("part", "residue")
    padding: int

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        encoding = cast(Hits, mechanism.encoding)
        self.prime, self.width = encoding.prime, encoding.width

    def write(self, source: Source, items: Sequence[int]) -> bytes:
        """The report of a person who holds these items."""
        part = draw(source, [part.ints.chance for part in self.parts])
        hits = self.parts[part].ints
        kept = choose(source, items, min(len(items), self.padding))
        active = [i for i in kept if hits.active[self.group(i)]]
        named = set(choose(source, active, self._number(source, hits, len(active))))
        low, high = hits.limit, self.prime - hits.limit
        values = [source.below(low) if i in named else low + source.below(high) for i in active]
        through = [(i + 1, value) for i, value in zip(active, values, strict=True)]
        coefficients = polynomial(source, self.prime, self.padding + 2, through)
        return bytes([part]) + b"".join(c.to_bytes(self.width, "little") for c in coefficients)

    def _number(self, source: Source, hits: exact_sets.HitChances, j: int) -> int:
        """How many of j active items are named: first the class, then the number within it."""
        if not j:
            return 0
        classes = exact_sets.classes(self.prime, hits.limit, j, hits.rows[j - 1])
        _, _, numbers = classes[draw(source, [mass for mass, _, _ in classes])]
        weights = exact_sets.weights(self.prime, hits.limit, j)
        return numbers[draw(source, [weights[n] for n in numbers])]

    def coefficients(self, report: bytes) -> list[int]:
        """Of the polynomial, the constant first."""
        steps = range(1, len(report), self.width)
        return [int.from_bytes(report[k : k + self.width], "little") for k in steps]

    def read_part(self, report: bytes) -> int:
        """The part that a report belongs to."""
        return report[0]

    def refusal(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != self.size:
            return "length"
        if report[0] >= len(self.parts):
            return "part"
        return "residue" if max(self.coefficients(report)) >= self.prime else None

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        hits, coefficients = self.parts[report[0]].ints, self.coefficients(report)
        named = []
        for item in range(self.m):
            if hits.active[self.group(item)]:
                value = 0
                for c in reversed(coefficients):
                    value = (value * (item + 1) + c) % self.prime
                if value < hits.limit:
                    named.append(item)
        return named

    def law(self, report: bytes, items: Sequence[int]) -> Fraction:
        """The exact probability of this report for a person who holds these items: the mean of the
        densities over what a larger set is cut to, times that of a uniform polynomial.
        """
        part, named = self.parts[report[0]], set(self.named(report))
        active = [i for i in items if part.ints.active[self.group(i)]]
        hit = sum(i in named for i in active)
        missed, idle, kept = len(active) - hit, len(items) - len(active), self.padding
        total, ways = Fraction(0), 0
        for n in range(hit + 1):
            for j in range(n, n + missed + 1):
                rest = min(kept, len(items)) - j
                cuts = comb(hit, n) * comb(missed, j - n) * comb(idle, rest) if rest >= 0 else 0
                ways += cuts
                total += cuts * part.densities[j][n] if cuts else 0
        uniform = Fraction(1, self.prime ** (self.padding + 2))
        return Fraction(part.ints.chance, D) * total / ways * uniform


def polynomial(
    source: Source, prime: int, size: int, through: Sequence[tuple[int, int]]
) -> list[int]:
    """The coefficients, constant first, of a uniform polynomial with `size` coefficients that takes
    these values at these places: Newton's polynomial through all of them, plus a uniform multiple
    of the polynomial that is 0 at every place.
    """
    sum_, zero = [0] * size, [1]  # zero: the product of (x - place) so far
    for place, value in through:
        inverse = pow(_at(zero, place, prime), -1, prime)
        step = (value - _at(sum_, place, prime)) * inverse % prime
        _add(sum_, zero, step, 0, prime)
        zero = [
            (low - place * high) % prime for low, high in zip([0, *zero], [*zero, 0], strict=True)
        ]
    for shift in range(size - len(through)):
        _add(sum_, zero, source.below(prime), shift, prime)
    return sum_


def _at(coefficients: Sequence[int], x: int, prime: int) -> int:
    value = 0
    for c in reversed(coefficients):
        value = (value * x + c) % prime
    return value


def _add(into: list[int], other: Sequence[int], times: int, shift: int, prime: int) -> None:
    """Add x^shift times a multiple of another polynomial."""
    for k, c in enumerate(other):
        into[k + shift] = (into[k + shift] + times * c) % prime
