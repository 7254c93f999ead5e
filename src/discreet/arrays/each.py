"""Blocks of reports in which every item is a question of its own (encodings/each.py)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays.bits import BitsBlocks
from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Ints


class EachBlocks(BitsBlocks):
    """Draws all bits with the chance `other`, then the own items' bits again with `own`."""

    def write_sets(self, source: BitSource, items: Ints, offsets: Ints, out: Bytes) -> None:
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

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, Bools]:
        return {}

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts, of people with these sets."""
        part_n = np.array([len(offsets) - 1])
        holders = np.bincount(items, minlength=self.m)[None, :]
        return part_n, self.draw(holders, part_n, rng).astype(np.int64)
