"""Subsets of fixed size: every report of a part names exactly `other` items of each
speaking group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encodings.base import Bytes, Ints
from discreet.encodings.packed import Packed, PackedCoder, count_columns
from discreet.randomness import Source

_SMALL = 8  # items of a subset, or left out of it, up to which they are drawn one by one


@dataclass(frozen=True)
class Fixed(Packed):
    """m bits, of which a fixed number in every group is 1."""

    kind = "fixed"
    told = "subsets of fixed size"
    fixed_size = True

    def base(self, size: int) -> int:
        """`other` is a number of items out of the group's."""
        return size

    def coder(self, mechanism: Any) -> FixedCoder:
        """The tables of one mechanism."""
        return FixedCoder(mechanism)


class FixedCoder(PackedCoder):
    """A uniform subset of every speaking group; the own group's is drawn around the own item."""

    reasons = ("part", "tail", "size")

    @cached_property
    def members(self) -> tuple[Ints, Ints, Ints]:
        """Items by group, where every group starts, and the rank of every item in its group."""
        items = np.argsort(self.group_of, kind="stable")
        first = np.concatenate(([0], np.cumsum(self.sizes)))
        rank = np.empty(self.m, np.int64)
        rank[items] = np.arange(self.m) - np.repeat(first[:-1], self.sizes)
        return items, first, rank

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The bits of every group, as 64-bit words."""
        masks = self.masks(silent_only=False)
        padded = np.zeros((len(masks), -(-masks.shape[1] // 8) * 8), np.uint8)
        padded[:, : masks.shape[1]] = masks
        return padded.view("<u8")

    @cached_property
    def guess(self) -> Ints:
        """Per part and group: the chance, over 2^4, of a first guess of a large subset; 0 where
        subsets are small.
        """
        from discreet.kernels import SLICES

        near = np.rint(2**SLICES * self.other / self.sizes).astype(np.int64)
        large = np.minimum(self.other, self.sizes - self.other) > _SMALL
        return np.where(large, np.clip(near, 1, 2**SLICES - 1), 0)

    def _subsets(
        self,
        fill: Callable[[Any], None],
        group: Ints,
        place: Ints,
        part: Ints,
        own: Any,
        out: Bytes,
    ) -> None:
        from discreet import kernels

        items, first, _ = self.members
        chunk, done = np.empty(min(1 << 15, 4 * self.m * len(out)) + 8 * self.m + 64, np.uint32), 0
        while done < len(out):
            fill(chunk)
            done = kernels.fixed_subsets(
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
        source: Source,
        held: Ints,
        group: Ints,
        part: Ints,
        own: NDArray[np.bool_],
        out: Bytes,
    ) -> None:
        if self.front:
            out[:, 0] = part
        place = np.where(held < 0, -1, self.members[2].take(held, mode="clip"))
        self._subsets(source.fill, group, place, part, own, out)

    @cached_property
    def _groups(self) -> list[int]:
        return [int.from_bytes(row.tobytes(), "little") for row in self.masks(silent_only=False)]

    def _check(self, part: int, bits: int) -> str | None:
        wanted = self.parts[part].other_
        wrong = any(
            (bits & mask).bit_count() != k for mask, k in zip(self._groups, wanted, strict=True)
        )
        return "size" if wrong else None

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, NDArray[np.bool_]]:
        from discreet import kernels

        padded = np.zeros((len(body), self.words.shape[1] * 8), np.uint8)
        padded[:, : body.shape[1]] = body
        wrong = np.empty(len(body), np.bool_)
        kernels.wrong_sizes(padded.view("<u8"), part, self.words, self.other, wrong)
        return {"size": wrong}

    def adds_up(self, part_n: Ints, counts: Ints) -> bool:
        """Every report of a part names so many items of a group."""
        named = np.stack([np.bincount(self.group_of, row, len(self.sizes)) for row in counts])
        return super().adds_up(part_n, counts) and bool(
            (named == part_n[:, None] * self.other).all()
        )

    def draw(self, holders: Ints, part_n: Ints, rng: np.random.Generator) -> Ints:
        """Fixed sizes tie the items together, so the reports themselves are drawn, with the same
        code.
        """
        rank, counts = self.members[2], np.zeros((len(self.parts), self.m), np.int64)
        step = max(1, (1 << 22) // self.m)

        def fill(chunk: Any) -> None:
            chunk[:] = rng.integers(0, 2**32, len(chunk), dtype=np.uint32)

        for o, n in enumerate(part_n.tolist()):
            held = np.repeat(np.arange(self.m), holders[o])
            none = np.full(n - len(held), -1)
            place, group = (np.concatenate((x[held], none)) for x in (rank, self.group_of))
            own = rng.random(n) < np.append(self.parts[o].own_group, 0.0)[group]
            for start in range(0, n, step):
                block = slice(start, min(start + step, n))
                rows = np.empty((block.stop - start, -(-self.m // 8)), np.uint8)
                self._subsets(
                    fill, group[block], place[block], np.full(len(rows), o), own[block], rows
                )
                counts[o] += count_columns(rows)[: self.m]
        return counts
