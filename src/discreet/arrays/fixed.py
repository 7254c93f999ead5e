"""Blocks of subsets of fixed size (encodings/fixed.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from discreet.arrays.packed import PackedBlocks, count_columns
from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s, Words
from discreet.policy.lazy import cached_property

_SMALL = 8  # up to so many items in a subset, or left out of it, are drawn one by one


class FixedBlocks(PackedBlocks):
    """A uniform subset of every speaking group; the own group's is drawn around the own item."""

    @cached_property
    def members(self) -> tuple[Ints, Ints, Ints]:
        """Items by group, where every group starts, and the rank of every item in its group."""
        items = np.argsort(self.group_of, kind="stable")
        first = np.concatenate(([0], np.cumsum(self.group_sizes)))
        rank = np.empty(self.m, np.int64)
        rank[items] = np.arange(self.m) - np.repeat(first[:-1], self.group_sizes)
        return items, first, rank

    @cached_property
    def words(self) -> Words:
        """The bits of every group, as 64-bit words."""
        masks = self.masks(silent_only=False)
        padded = np.zeros((len(masks), -(-masks.shape[1] // 8) * 8), np.uint8)
        padded[:, : masks.shape[1]] = masks
        return padded.view("<u8")

    @cached_property
    def guess(self) -> Ints:
        """The chance, over 2^4, of a first guess of a large subset, per part and group; 0 where
        subsets are small.
        """
        from discreet.arrays.kernels.fixed import SLICES

        near = np.rint(2**SLICES * self.other / self.group_sizes).astype(np.int64)
        large = np.minimum(self.other, self.group_sizes - self.other) > _SMALL
        return np.where(large, np.clip(near, 1, 2**SLICES - 1), 0)

    def _draw_subsets(
        self,
        fill: Callable[[Uint32s], None],
        group: Ints,
        place: Ints,
        part: Ints,
        own: Bools,
        out: Bytes,
    ) -> None:
        from discreet.arrays.kernels import fixed as kernels

        items, first, _ = self.members
        chunk, done = np.empty(min(1 << 15, 4 * self.m * len(out)) + 8 * self.m + 64, np.uint32), 0
        while done < len(out):
            fill(chunk)
            done = kernels.draw_subsets(
                out,
                out.shape[1] - -(-self.m // 8),
                part,
                group,
                place,
                own,
                self.other,
                items,
                first,
                self.words,
                self.guess,
                chunk,
                done,
            )

    def _write(
        self,
        source: BitSource,
        held: Ints,
        group: Ints,
        part: Ints,
        own: Bools,
        out: Bytes,
    ) -> None:
        if self.front:
            out[:, 0] = part
        place = np.where(held < 0, -1, self.members[2].take(held, mode="clip"))
        self._draw_subsets(source.fill, group, place, part, own, out)

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, Bools]:
        from discreet.arrays.kernels import fixed as kernels

        padded = np.zeros((len(body), self.words.shape[1] * 8), np.uint8)
        padded[:, : body.shape[1]] = body
        wrong = np.empty(len(body), np.bool_)
        kernels.find_wrong_sizes(padded.view("<u8"), part, self.words, self.other, wrong)
        return {"size": wrong}

    def adds_up(self, part_n: Ints, counts: Ints) -> bool:
        """Whether every report of a part names as many items of each group as it must."""
        named = np.stack([np.bincount(self.group_of, row, len(self.group_sizes)) for row in counts])
        return super().adds_up(part_n, counts) and bool(
            (named == part_n[:, None] * self.other).all()
        )

    def draw(self, holders: Ints, part_n: Ints, rng: np.random.Generator) -> Ints:
        """Counts of every part and item (parts x m).

        Fixed sizes tie the items together, so this draws the reports themselves, with the same
        code.
        """
        rank, counts = self.members[2], np.zeros((len(self.parts), self.m), np.int64)
        step = max(1, (1 << 22) // self.m)

        def fill(chunk: Uint32s) -> None:
            chunk[:] = rng.integers(0, 2**32, len(chunk), dtype=np.uint32)

        for o, n in enumerate(part_n.tolist()):
            held = np.repeat(np.arange(self.m), holders[o])
            none = np.full(n - len(held), -1)
            place, group = (np.concatenate((x[held], none)) for x in (rank, self.group_of))
            own = rng.random(n) < np.append(self.mechanism.arrays.own[o], 0.0)[group]
            for start in range(0, n, step):
                block = slice(start, min(start + step, n))
                rows = np.empty((block.stop - start, -(-self.m // 8)), np.uint8)
                self._draw_subsets(
                    fill, group[block], place[block], np.full(len(rows), o), own[block], rows
                )
                counts[o] += count_columns(rows)[: self.m]
        return counts
