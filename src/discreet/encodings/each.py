"""Every item a question of its own: named with chance `own` by whoever has it, with `other` by
everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, ClassVar

from discreet.check import exact, exact_sets
from discreet.check.exact import D
from discreet.check.parts import Part
from discreet.encodings.base import Source, malformed
from discreet.encodings.bits import Bits, BitsCoder
from discreet.encodings.packed import mask
from discreet.policy import Policy

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism


@dataclass(frozen=True)
class Each(Bits):
    """m independent bits, for sets: nothing is sampled or cut."""

    kind = "each"
    summary = "an independent bit per item"
    lists = "each"

    def unfit_size(self, m: int, parts: int) -> str:
        """There is one part."""
        return "" if parts == 1 else f'"each" has one part, got {parts}'

    def unfit_policy(self, mechanism: Mechanism) -> str | None:
        """Only where the policy asks for it."""
        if not mechanism.policy.kind.alone:
            return '"each" is for kind = "each"'
        return malformed(mechanism)

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[Part]
    ) -> exact.Violation | None:
        """The exact check of every item's promise."""
        ints = [part.ints for part in parts]
        return exact_sets.check_each(policy, groups, parts[0].denominators, ints)

    def coder(self, mechanism: Mechanism) -> EachCoder:
        """The tables of one mechanism."""
        return EachCoder(mechanism)


class EachCoder(BitsCoder):
    """All bits from `other`, those of the own items drawn anew from `own`."""

    reasons: ClassVar[Sequence[str]] = ("tail",)

    def write(self, source: Source, items: Sequence[int]) -> bytes:
        """The report of a person who holds these items."""
        own = self.parts[0].ints.own
        bits = self._others(source, 0) & ~mask(items, self.m)
        named = [i for i in items if source.below(D) < own[self.group(i)]]
        return self.pack(0, bits | mask(named, self.m))

    def law(self, report: bytes, items: Sequence[int]) -> Fraction:
        """The exact probability of this report for a person who holds these items."""
        ints, held, named = self.parts[0].ints, set(items), set(self.named(report))
        ways = []
        for item in range(self.m):
            chance = (ints.own if item in held else ints.other)[self.group(item)]
            ways.append(chance if item in named else D - chance)
        return Fraction(prod(ways), D**self.m)
