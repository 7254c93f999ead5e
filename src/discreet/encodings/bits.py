"""Independent bits: every item of a speaking group is named with chance `other`, the own one with
`own`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.encodings.base import Bytes, Ints
from discreet.encodings.packed import Packed, PackedCoder
from discreet.exact import D
from discreet.randomness import Source


@dataclass(frozen=True)
class Bits(Packed):
    """m bits, drawn independently."""

    kind = "bits"
    told = "independent bits"

    def base(self, size: int) -> int:
        """`other` is over 2^32."""
        return D

    def coder(self, mechanism: Any) -> BitsCoder:
        """The tables of one mechanism."""
        return BitsCoder(mechanism)


class BitsCoder(PackedCoder):
    """Every bit from `other`, bit-sliced; the held item's from `own`."""

    reasons: ClassVar[Sequence[str]] = ("part", "tail", "silent")

    @cached_property
    def planes(self) -> tuple[Any, Any]:
        """The 32 bits of every threshold (part x bit x word), and which lanes of a word
        are items.
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
        source: Source,
        held: Ints,
        group: Ints,
        part: Ints,
        own: NDArray[np.bool_],
        out: Bytes,
    ) -> None:
        from discreet import kernels

        planes, lanes = self.planes
        n, words = len(held), len(lanes)
        packed = np.empty((n, words), np.uint64)
        # about 8.7 random words per word, and 32 in reserve for the last row
        chunk = np.empty(min(1 << 15, 9 * words * n) + 32 * words, np.uint64)
        done, left = 0, 0
        while done < n:
            source.fill(chunk[left:])
            done, used = kernels.bernoulli_words(packed, part, planes, lanes, chunk, done)
            left = len(chunk) - used  # words that nobody has looked at yet
            chunk[:left] = chunk[used:].copy()
        # a silent group draws nothing of its own: its bits are 0 whoever answers
        kernels.put_bits(packed, held, own & (self.other[part, group] > 0))
        if self.front:
            out[:, 0] = part
        kernels.put_bytes(packed, out, self.front)

    @cached_property
    def silent(self) -> NDArray[np.uint8]:
        """The bits of silent groups, per part."""
        return self.masks(silent_only=True)

    @cached_property
    def _silent_numbers(self) -> list[int]:
        return [int.from_bytes(row.tobytes(), "little") for row in self.silent]

    def _check(self, part: int, bits: int) -> str | None:
        return "silent" if bits & self._silent_numbers[part] else None

    def _refusals(self, part: Ints, body: Bytes) -> Mapping[str, NDArray[np.bool_]]:
        if not self.silent.any():
            return {}
        named: NDArray[np.bool_] = np.any(body & self.silent[part], axis=1)
        return {"silent": named}
