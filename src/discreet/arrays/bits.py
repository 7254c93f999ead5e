"""Blocks of independent bits (encodings/bits.py)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays.packed import PackedBlocks
from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Bools, Bytes, Ints, Words
from discreet.policy.lazy import cached_property


class BitsBlocks(PackedBlocks):
    """Draws every bit with its chance `other`, 64 at once, and the held item's with `own`."""

    @cached_property
    def planes(self) -> tuple[Words, Words]:
        """The 32 bits of every threshold (part x bit x word), and the lanes of a word that are
        items.
        """
        words = -(-self.m // 64)
        padded = np.zeros((len(self.parts), words * 64), np.uint64)
        padded[:, : self.m] = self.other[:, self.group_of]
        shifts = np.arange(31, -1, -1, dtype=np.uint64)
        bits = (padded[:, None, :] >> shifts[None, :, None]) & np.uint64(1)
        packed = np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little")
        lanes = np.packbits(np.arange(words * 64) < self.m, bitorder="little")
        return np.ascontiguousarray(packed).view("<u8"), lanes.view("<u8")

    def _write(
        self,
        source: BitSource,
        held: Ints,
        group: Ints,
        part: Ints,
        own: Bools,
        out: Bytes,
    ) -> None:
        from discreet.arrays.kernels import bits as kernels

        planes, lanes = self.planes
        n, words = len(held), len(lanes)
        packed = np.empty((n, words), np.uint64)
        # about 8.7 random words per word, and 32 in reserve for the last row
        chunk = np.empty(min(1 << 15, 9 * words * n) + 32 * words, np.uint64)
        done, left = 0, 0
        while done < n:
            source.fill(chunk[left:])
            done, used = kernels.draw_words(packed, part, planes, lanes, chunk, done)
            left = len(chunk) - int(used)  # words that are not used yet
            chunk[:left] = chunk[used:].copy()
        # a silent group's bits are 0, whatever the answer
        kernels.put_bits(packed, held, own & (self.other[part, group] > 0))
        if self.front:
            out[:, 0] = part
        kernels.put_bytes(packed, out, self.front)

    @cached_property
    def silent(self) -> Bytes:
        """The bits of silent groups, per part."""
        return self.masks(silent_only=True)

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, Bools]:
        if not self.silent.any():
            return {}
        named: Bools = np.any(body & self.silent[part], axis=1)
        return {"silent": named}
