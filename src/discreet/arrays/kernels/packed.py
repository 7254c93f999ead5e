"""Packed bits: how many reports have each bit set."""

from __future__ import annotations

import numpy as np

from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Ints, Words


@compiled
def _add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """A full adder on 64 columns at once: sum and carry."""
    u = a ^ b
    return u ^ c, (a & b) | (u & c)


@compiled
def count_bits(words: Words, counts: Ints) -> None:
    """Add to counts[64 w + k] the number of rows whose word w has bit k.

    The counters are vertical, made of carry-save adders: 15 adders collapse sixteen rows into one
    plane of sixteens. After 15 sixteens the counters are read off bit by bit.
    """
    n, width = words.shape
    tail = np.zeros((16, width), np.uint64)  # the last rows, filled up to sixteen with zeros
    tail[: n % 16] = words[n - n % 16 :]
    state = np.zeros(
        (width, 8), np.uint64
    )  # ones, twos, fours, eights; then a 4-bit counter of sixteens
    blocks = 0
    for i in range(0, n, 16):
        x = words[i : i + 16] if i + 16 <= n else tail
        x0, x1, x2, x3, x4, x5, x6, x7 = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
        x8, x9, xa, xb, xc, xd, xe, xf = x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15]
        for w in range(width):
            here = state[w]
            ones, twos, fours, eights = here[0], here[1], here[2], here[3]
            ones, t0 = _add(ones, x0[w], x1[w])
            ones, t1 = _add(ones, x2[w], x3[w])
            twos, f0 = _add(twos, t0, t1)
            ones, t0 = _add(ones, x4[w], x5[w])
            ones, t1 = _add(ones, x6[w], x7[w])
            twos, f1 = _add(twos, t0, t1)
            fours, e0 = _add(fours, f0, f1)
            ones, t0 = _add(ones, x8[w], x9[w])
            ones, t1 = _add(ones, xa[w], xb[w])
            twos, f0 = _add(twos, t0, t1)
            ones, t0 = _add(ones, xc[w], xd[w])
            ones, t1 = _add(ones, xe[w], xf[w])
            twos, f1 = _add(twos, t0, t1)
            fours, e1 = _add(fours, f0, f1)
            eights, carry = _add(eights, e0, e1)
            here[0], here[1], here[2], here[3] = ones, twos, fours, eights
            for k in range(4, 8):
                old = here[k]
                here[k] = old ^ carry
                carry &= old
        blocks += 1
        if blocks == 15:
            _flush(counts, state, 4, 16)
            blocks = 0
    _flush(counts, state, 4, 16)
    _flush(counts, state, 0, 1)


@compiled
def _flush(counts: Ints, state: Words, first: int, unit: int) -> None:
    """Read off and clear the 4-bit counters that start at plane `first`."""
    for w in range(state.shape[0]):
        column = counts[64 * w : 64 * w + 64]
        p0, p1, p2, p3 = (
            state[w, first],
            state[w, first + 1],
            state[w, first + 2],
            state[w, first + 3],
        )
        for k in range(64):
            b = np.uint64(k)
            value = (p0 >> b) & np.uint64(1) | ((p1 >> b) & np.uint64(1)) << np.uint64(1)
            value |= ((p2 >> b) & np.uint64(1)) << np.uint64(2) | (
                (p3 >> b) & np.uint64(1)
            ) << np.uint64(3)
            column[k] += unit * np.int64(value)
        for k in range(first, first + 4):
            state[w, k] = 0
