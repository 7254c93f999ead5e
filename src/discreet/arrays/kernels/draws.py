"""Exact draws that several encodings share.

Numba does not recompile a caller when only this file changes: after an edit here, delete the
`__pycache__` of this folder.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Uint32s


@compiled
def draw_below(bound: int, random: Uint32s, at: int) -> tuple[np.int64, int]:
    """Draw a uniform integer below the bound from random[at:] (Lemire: multiply, reject).

    Returns it and the place of the next random word; -1 where there are none left.
    """
    n, mask = np.uint64(bound), np.uint64(0xFFFFFFFF)
    while at < random.size:
        wide = np.uint64(random[at]) * n
        at += 1
        # rejected below 2^32 mod n; most draws are accepted without computing that
        if (wide & mask) >= n or (wide & mask) >= (mask - n + np.uint64(1)) % n:
            return np.int64(wide >> np.uint64(32)), at
    return np.int64(0), -1
