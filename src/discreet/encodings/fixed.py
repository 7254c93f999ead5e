"""Subsets of fixed size: every report of a part names exactly `other` items of each speaking group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encodings.base import Bytes, Ints
from discreet.encodings.packed import Packed, PackedCoder
from discreet.randomness import Source


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

    def _write(
        self,
        source: Source,
        held: Ints,
        group: Ints,
        part: Ints,
        own: NDArray[np.bool_],
        out: Bytes,
    ) -> None:
        from discreet import kernels

        items, first, rank = self.members
        out[:] = 0
        if self.front:
            out[:, 0] = part
        n, done = len(held), 0
        place = np.where(held < 0, -1, rank.take(held, mode="clip"))
        most = int(np.minimum(self.other + 1, self.sizes - self.other + 1).sum(axis=1).max())
        chunk = np.empty(min(1 << 16, 2 * most * n) + 4 * most + 64, np.uint32)
        while done < n:
            source.fill(chunk)
            done = kernels.fixed_subsets(
                out, self.front, part, group, place, own, self.other, items, first, chunk, done
            )

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

        wrong = np.empty(len(body), np.bool_)
        kernels.wrong_sizes(
            np.ascontiguousarray(body), part, self.masks(silent_only=False), self.other, wrong
        )
        return {"size": wrong}

    def draw(self, holders: Ints, part_n: Ints, rng: np.random.Generator) -> Ints:
        """Fixed sizes tie the items together, so the reports themselves are drawn, with the same code."""
        from discreet import kernels

        rank = self.members[2]
        counts = np.zeros((len(self.parts), self.m), np.int64)
        for o, n in enumerate(part_n):
            held = np.repeat(np.arange(self.m), holders[o])
            place = np.concatenate((rank[held], np.full(int(n) - len(held), -1)))
            group = np.concatenate((self.group_of[held], np.full(int(n) - len(held), -1)))
            own = rng.random(len(place)) < np.append(self.parts[o].own_group, 0.0)[group]
            step = max(1, (1 << 22) // self.m)
            for start in range(0, int(n), step):
                block = slice(start, min(start + step, int(n)))
                self._draw_block(o, group[block], place[block], own[block], rng, counts[o], kernels)
        return counts

    def _draw_block(
        self,
        o: int,
        group: Any,
        place: Any,
        own: Any,
        rng: np.random.Generator,
        counts: Ints,
        kernels: Any,
    ) -> None:
        items, first, _ = self.members
        rows = np.zeros((len(group), -(-self.m // 8)), np.uint8)
        part, done = np.full(len(group), o), 0
        while done < len(group):
            chunk = rng.integers(0, 2**32, size=(1 << 18) + 8 * self.m, dtype=np.uint32)
            done = kernels.fixed_subsets(
                rows, 0, part, group, place, own, self.other, items, first, chunk, done
            )
        counts += self.count(o, np.pad(rows, ((0, 0), (self.front, 0))) if self.front else rows)
