"""Every item a question of its own: named with chance `own` by whoever has it, with `other` by
everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import exact, exact_hits
from discreet.encodings.base import Bytes, Ints
from discreet.encodings.bits import Bits, BitsCoder
from discreet.policy import Policy
from discreet.randomness import Source


@dataclass(frozen=True)
class Each(Bits):
    """m independent bits, for sets: nothing is sampled or cut."""

    kind = "each"
    told = "an independent bit per item"
    samples = False

    def problem(self, m: int, parts: int) -> str:
        """There is one part."""
        return "" if parts == 1 else f'"each" has one part, got {parts}'

    def misfit(self, mechanism: Any) -> str | None:
        """Only where the policy asks for it."""
        policy, parts = mechanism.policy, mechanism.parts
        if not policy.takes_sets or policy.pads:
            return '"each" is for input = "set" with protect = "item"'
        return exact.malformed(policy, len(mechanism.bases), [part.chances for part in parts])

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[Any]
    ) -> exact.Violation | None:
        """The exact check of every item's promise."""
        chances = [part.chances for part in parts]
        return exact_hits.check_each(policy, groups, parts[0].bases, chances)

    def promises(self, mechanism: Any) -> Any:
        """What is promised of sets."""
        from discreet.sets import OneByOne

        return OneByOne(mechanism)

    def coder(self, mechanism: Any) -> EachCoder:
        """The tables of one mechanism."""
        return EachCoder(mechanism)


class EachCoder(BitsCoder):
    """All bits from `other`, those of the own items drawn anew from `own`."""

    reasons: ClassVar[Sequence[str]] = ("tail",)

    def write_sets(self, source: Source, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets."""
        n = len(offsets) - 1
        nobody, no = np.full(n, -1), np.zeros(n, np.bool_)
        self._write(source, nobody, nobody, np.zeros(n, np.int64), no, out)
        mine = items[offsets[0] : offsets[-1]]
        owner = np.repeat(np.arange(n), np.diff(offsets))
        place, bit = mine >> 3, np.left_shift(1, mine & 7).astype(np.uint8)
        named = source.uint32(len(mine)) < self.own[0, self.group_of[mine]]
        np.bitwise_and.at(out, (owner, place), ~bit)
        np.bitwise_or.at(out, (owner, place), np.where(named, bit, 0).astype(np.uint8))

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, NDArray[np.bool_]]:
        return {}

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts, of people with these sets."""
        part_n = np.array([len(offsets) - 1])
        holders = np.bincount(items, minlength=self.m)[None, :]
        return part_n, self.draw(holders, part_n, rng).astype(np.int64)
