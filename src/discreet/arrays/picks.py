"""Blocks of picks (encodings/picks.py)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from typing import cast

import numpy as np

from discreet.arrays.base import BlockCoder
from discreet.arrays.hits import Fill, fill_rows, invert
from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s, Words
from discreet.check import exact_picks
from discreet.check.parts import PicksPart
from discreet.encodings.picks import Layout
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property

_REASONS = ("tail", "size", "order")  # as kernels/picks.py numbers them, from 1


class PicksBlocks(BlockCoder):
    """Draws a cut, cuts a set to the padding, draws a part with the number of active items of every
    block that are named, and subsets that name so many.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        assert mechanism.padding is not None
        self.padding = mechanism.padding
        self._picks = [cast(PicksPart, part) for part in mechanism.parts]
        self.cuts = exact_picks.cuts([part.ints for part in self._picks])
        blocks = [self._picks[cut[0]].ints.blocks for cut in self.cuts]
        self.blocks = np.array(blocks)[:, self.group_of]  # cuts x items
        self.cut_of = np.empty(len(self.parts), np.int64)
        # slots of the active items, block by block, and per part and block the first slot, the
        # items, k, and the bits of a number (kernels/picks.py)
        self.slots = np.full(self.blocks.shape, -1)
        self.layouts = np.zeros((len(self.parts), int(self.blocks.max()), 4), np.int64)
        for c, (cut, of_item) in enumerate(zip(self.cuts, self.blocks, strict=True)):
            order = np.argsort(of_item, kind="stable")[np.count_nonzero(of_item == 0) :]
            self.slots[c, order] = np.arange(len(order))
            self.cut_of[cut] = c
            for o in cut:
                layout = Layout.of_part(self._picks[o])
                rows = (np.cumsum((0, *layout.m[:-1])), layout.m, layout.k, layout.widths)
                self.layouts[o, : len(layout.m)] = np.array(rows).T

    def chance_ints(self) -> list[list[int]]:
        """The chance of every cut over 2^32; it does not depend on the answer."""
        groups = len(self.group_sizes) + 1
        return [[self._picks[cut[0]].ints.chance] * groups for cut in self.cuts]

    def other_ints(self) -> list[list[int]]:
        """1 where a part can name the items of a group."""
        return [list(part.active) for part in self._picks]

    # ---- the user's side -------------------------------------------------------------------------

    def write_sets(self, source: BitSource, items: Ints, offsets: Ints, out: Bytes) -> None:
        """Fill `out` with the reports of people who hold these sets."""
        n = len(offsets) - 1
        edges = self.edges[0]
        cut = np.zeros(n, np.int64)
        if len(edges) > 1:
            cut = np.searchsorted(edges, source.uint32(n).astype(np.uint64), side="right")
        self._write_sets(source.fill, cut.astype(np.int64), items, offsets, out)

    def _write_sets(self, fill: Fill, cut: Ints, items: Ints, offsets: Ints, out: Bytes) -> None:
        from discreet.arrays.kernels import hits as own_kernels
        from discreet.arrays.kernels import picks as kernels

        n, s = len(cut), self.padding
        kept = np.empty((n, s), np.int64)
        active = self.blocks > 0
        fill_rows(fill, own_kernels.cut_sets, n, s, kept, items, offsets, cut, active)
        block = np.where(kept >= 0, self.blocks[cut[:, None], kept], 0)
        counts = [(block == b + 1).sum(axis=1) for b in range(self.layouts.shape[1])]
        part, named = self._named(fill, cut, np.stack(counts, axis=1))
        body = np.zeros((n, self.size - 1), np.uint8)
        words = int(self.layouts[:, :, 2].sum(axis=1).max()) + s + 1
        values = (kept, named, part, cut, self.layouts, self.slots)
        fill_rows(fill, kernels.draw_subsets, n, words, body, *values)
        out[:, 0], out[:, 1:] = part, body

    def _named(self, fill: Fill, cut: Ints, count: Ints) -> tuple[Ints, Ints]:
        """Draw the part of every person and how many of `count` own items of every block are named,
        by the exact law: inverts a uniform number of 64 bits, and draws more where these equal
        those of an edge.
        """
        draw = np.empty(len(cut), np.uint64)
        fill(draw)
        part, named = np.empty(len(cut), np.int64), np.zeros_like(count)
        kind = np.column_stack((cut, count)) @ (self.padding + 1) ** np.arange(count.shape[1] + 1)
        for place in np.unique(kind, return_index=True)[1].tolist():
            mine = np.flatnonzero(kind == kind[place])
            outcomes, law, edges = self._law(int(cut[place]), tuple(count[place].tolist()))
            which = np.searchsorted(edges, draw[mine], side="right")
            for i in np.flatnonzero(np.isin(draw[mine], edges)):
                which[i] = invert(fill, int(draw[mine[i]]), law)
            part[mine] = outcomes[which, 0]
            named[mine, : outcomes.shape[1] - 1] = outcomes[which, 1:]
        return part, named

    def _law(self, c: int, j: tuple[int, ...]) -> tuple[Ints, list[Fraction], Words]:
        """What can be drawn by people of a class of a cut: parts and numbers of named items; the
        chances up to each, but the last; and their first 64 bits.
        """
        if (c, j) not in self._laws:
            mine = [self._picks[o] for o in self.cuts[c]]
            laws = [part.laws[j[: len(part.m)]] for part in mine]
            rows = [
                ((o, *n), p)
                for o, found in zip(self.cuts[c], laws, strict=True)
                for n, p in found.items()
            ]
            law = list(accumulate(p for _, p in rows[:-1]))
            edges = np.array([min(int(p * 2**64), 2**64 - 1) for p in law], np.uint64)
            self._laws[c, j] = np.array([row for row, _ in rows]), law, edges
        return self._laws[c, j]

    @cached_property
    def _laws(self) -> dict[tuple[int, tuple[int, ...]], tuple[Ints, list[Fraction], Words]]:
        return {}

    # ---- the server's side -----------------------------------------------------------------------

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, Bools]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part = rows[:, 0].astype(np.int64)
        valid = np.minimum(part, len(self.parts) - 1)
        wrong, _ = self._read(valid, rows, np.zeros(len(rows), np.int64))
        reasons = {name: wrong == k for k, name in enumerate(_REASONS, 1)}
        return part, {"part": part >= len(self.parts), **reasons}

    def _read(self, part: Ints, rows: Bytes, times: Ints) -> tuple[Bytes, Ints]:
        from discreet.arrays.kernels import picks as kernels

        wrong = np.empty(len(rows), np.uint8)
        counts = np.zeros((len(self.parts), int(self.slots.max()) + 1), np.int64)
        body = np.ascontiguousarray(rows[:, 1:])
        kernels.read_subsets(body, part, self.layouts, wrong, counts, times)
        return wrong, counts

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item."""
        return self.count_times(part, rows, np.ones(len(rows), np.int64))

    def count_times(self, part: int, rows: Bytes, times: Ints | None) -> Ints:
        """The same where row i was seen times[i] times."""
        if times is None:
            return self.count(part, rows)
        _, counts = self._read(np.full(len(rows), part), rows, times)
        slot = self.slots[self.cut_of[part]]
        return np.where(slot >= 0, counts[part, slot], 0)

    def named(self, part: Ints, rows: Bytes, places: Ints) -> Bools:
        """Which of the items at these places every report names."""
        from discreet.arrays.kernels import picks as kernels

        out = np.empty((len(rows), len(places)), bool)
        slots = np.ascontiguousarray(self.slots[self.cut_of][:, places])
        kernels.find_named(np.ascontiguousarray(rows[:, 1:]), part, self.layouts, slots, out)
        return out

    def adds_up(self, part_n: Ints, counts: Ints) -> bool:
        """Whether the reports of a part name as many of its active items as they must."""
        block = self.blocks[self.cut_of]
        for b in range(self.layouts.shape[1] + 1):
            k = self.layouts[:, b - 1, 2] if b else 0
            if (np.where(block == b, counts, 0).sum(axis=1) != part_n * k).any():
                return False
        return super().adds_up(part_n, counts)

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return max(256, (1 << 24) // self.m), max(1 << 12, (1 << 27) // self.m)

    # ---- simulation ------------------------------------------------------------------------------

    def draw_sets(self, items: Ints, offsets: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Reports per part, and counts, of people with these sets. Fixed sizes tie the items
        together, so this draws the reports themselves, with the same code.
        """

        def fill(chunk: Uint32s | Words) -> None:
            chunk[:] = rng.integers(0, np.iinfo(chunk.dtype).max, len(chunk), chunk.dtype, True)

        total = self._no_reports()
        chance = np.array([self._picks[cut[0]].ints.chance for cut in self.cuts], float)
        step = max(1, (1 << 24) // self.size)
        for first in range(0, len(offsets) - 1, step):
            block = offsets[first : first + step + 1]
            rows = np.empty((len(block) - 1, self.size), np.uint8)
            cut = rng.choice(len(chance), size=len(rows), p=chance / chance.sum())
            self._write_sets(fill, cut, items, block, rows)
            self.gather(total, rows)
        return total.part_n, total.counts
