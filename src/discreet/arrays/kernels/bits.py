"""Independent bits: draw them, replace the held item's, and write them as bytes."""

from __future__ import annotations

import numpy as np

from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Bools, Bytes, Ints, Words

PLANES = 8  # of random bits drawn for every word; the few lanes still undecided draw more


@compiled
def draw_words(
    out: Words, part: Ints, planes: Words, lanes: Words, random: Words, start: int
) -> tuple[int, np.int64]:
    """Fill rows out[start:] with packed Bernoulli bits, item k at bit k % 64 of word k // 64.

    A random 32-bit integer is compared with the threshold bit by bit, for 64 items at once, most
    significant bit first: planes[p, j, w] has bit 31 - j of the threshold of every lane of word w
    in part p. The first bit that differs decides a lane, so 8 planes decide all but 1 in 256 lanes.

    Returns the number of rows done and of random words used. The number of words that a row needs
    depends on the outcome, so the loop stops before a row that might not have enough.
    """
    n, words = out.shape
    equal = np.empty(words, np.uint64)
    at, one = np.uintp(0), np.uintp(1)  # unsigned, so that no index is tested for being negative
    for i in range(start, n):
        if at + np.uintp(words * 32) > np.uintp(random.size):
            return i, np.int64(at)
        less, p = out[i], part[i]
        if words < 8:  # short rows: word by word, in registers
            for w in range(words):
                x, e = np.uint64(0), lanes[w]
                for j in range(PLANES):
                    r, t = random[at], planes[p, j, w]
                    at += one
                    x |= e & t & ~r
                    e &= ~(r ^ t)
                less[w], equal[w] = x, e
        else:  # long rows: plane by plane, in vectors
            for w in range(words):
                less[w], equal[w] = 0, lanes[w]
            for j in range(PLANES):
                _compare(less, equal, planes[p, j], random[at : at + np.uintp(words)])
                at += np.uintp(words)
        for w in range(words):
            e = equal[w]
            if e != 0:
                x, j = less[w], PLANES
                while e != 0 and j < 32:
                    r, t = random[at], planes[p, j, w]
                    at += one
                    x |= e & t & ~r
                    e &= ~(r ^ t)
                    j += 1
                less[w] = x
    return n, np.int64(at)


@compiled
def _compare(less: Words, equal: Words, threshold: Words, random: Words) -> None:
    for w in range(less.size):
        r, t, e = random[w], threshold[w], equal[w]
        less[w] |= e & t & ~r
        equal[w] = e & ~(r ^ t)


@compiled
def put_bits(words: Words, item: Ints, bit: Bools) -> None:
    """Replace the held item's bit in every row of packed words; a negative item holds none."""
    for i in range(item.size):
        k = item[i]
        if k >= 0:
            mask = np.uint64(1) << np.uint64(k & 63)
            if bit[i]:
                words[i, k >> 6] |= mask
            else:
                words[i, k >> 6] &= ~mask


@compiled
def put_bytes(words: Words, out: Bytes, offset: int) -> None:
    """Copy packed words, little-endian, to the bytes out[:, offset:]."""
    size = out.shape[1] - offset
    for i in range(out.shape[0]):
        row, packed = out[i, offset:], words[i]
        for w in range(size // 8):
            x = packed[w]
            for b in range(8):
                row[8 * w + b] = np.uint8(x >> np.uint64(8 * b))
        for b in range(size - size % 8, size):
            row[b] = np.uint8(packed[b >> 3] >> np.uint64(8 * (b & 7)))
