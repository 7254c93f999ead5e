"""The compiled inner loops, and only those. Plain functions of arrays; nothing here knows what a mechanism is."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

PLANES = 8  # of random bits drawn for every word; the few lanes still undecided draw more
_jit = numba.njit(cache=True, nogil=True, boundscheck=False)


@_jit
def bernoulli_words(out: Any, part: Any, planes: Any, lanes: Any, random: Any, start: int) -> Any:
    """Fill rows out[start:] with packed Bernoulli bits, item k at bit k % 64 of word k // 64.

    Bit-sliced comparison of a random 32-bit integer with the threshold, most significant bit first:
    planes[p, j, w] has bit 31 - j of the threshold of every lane of word w in part p. A lane is decided at the first
    bit in which the two differ, so 8 planes decide all but 1 in 256 lanes. Returns the rows done and the random words used;
    stops early rather than run out of them in the middle of a row, because how many are needed depends on the outcome.
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


@_jit
def _compare(less: Any, equal: Any, threshold: Any, random: Any) -> None:
    for w in range(less.size):
        r, t, e = random[w], threshold[w], equal[w]
        less[w] |= e & t & ~r
        equal[w] = e & ~(r ^ t)


@_jit
def put_bits(words: Any, item: Any, bit: Any) -> None:
    """Replace the held item's bit in every row of packed words (item < 0: none is held)."""
    for i in range(item.size):
        k = item[i]
        if k >= 0:
            mask = np.uint64(1) << np.uint64(k & 63)
            if bit[i]:
                words[i, k >> 6] |= mask
            else:
                words[i, k >> 6] &= ~mask


@_jit
def put_bytes(words: Any, out: Any, offset: int) -> None:
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


@_jit
def compact_triples(out: Any, place: Any, low: Any, span: Any, prime: int, random: Any, start: int) -> Any:
    """Rows (s, t, r) with (s + t c + r c^2) mod prime uniform in [low, low + span), c = place + 1; t, r uniform below prime.

    Uniform integers by rejection. A row that runs out of random words is drawn again from the start, which changes
    nothing: its accepted values do not depend on how many were rejected. Returns the rows done.
    """
    n = out.shape[0]
    at = 0
    full = np.uint64(1) << np.uint64(32)
    p = np.uint64(prime)
    for i in range(start, n):
        bound = span[i]
        limit = (full // bound) * bound
        v = full
        while v >= limit:
            if at >= random.size:
                return i
            v = np.uint64(random[at])
            at += 1
        v = low[i] + v % bound
        c = (np.uint64(place[i]) + np.uint64(1)) % p
        pair = np.zeros(2, dtype=np.uint64)
        for k in range(2):
            x = p
            while x >= p:
                if at >= random.size:
                    return i
                x = np.uint64(random[at] >> np.uint32(1))
                at += 1
            pair[k] = x
        t, r = pair[0], pair[1]
        minus = (t * c) % p + (r * ((c * c) % p)) % p
        out[i, 0] = np.uint32((v + p + p - minus) % p)
        out[i, 1] = np.uint32(t)
        out[i, 2] = np.uint32(r)
    return n


@_jit
def _add(a: Any, b: Any, c: Any) -> Any:
    """A full adder on 64 columns at once: sum and carry."""
    u = a ^ b
    return u ^ c, (a & b) | (u & c)


@_jit
def count_bits(words: Any, counts: Any) -> None:
    """Add to counts[64 w + k] the number of rows whose word w has bit k: vertical counters of carry-save adders.

    Sixteen rows collapse into one plane of sixteens with 15 adders; counters up to 15 sixteens are then read off bit by bit.
    """
    n, width = words.shape
    tail = np.zeros((16, width), np.uint64)  # the last rows, filled up to sixteen with zeros
    tail[: n % 16] = words[n - n % 16 :]
    state = np.zeros((width, 8), np.uint64)  # ones, twos, fours, eights; then a 4-bit counter of sixteens
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


@_jit
def _flush(counts: Any, state: Any, first: int, unit: int) -> None:
    """Read off and clear the 4-bit counters that start at plane `first`."""
    for w in range(state.shape[0]):
        column = counts[64 * w : 64 * w + 64]
        p0, p1, p2, p3 = state[w, first], state[w, first + 1], state[w, first + 2], state[w, first + 3]
        for k in range(64):
            b = np.uint64(k)
            value = (p0 >> b) & np.uint64(1) | ((p1 >> b) & np.uint64(1)) << np.uint64(1)
            value |= ((p2 >> b) & np.uint64(1)) << np.uint64(2) | ((p3 >> b) & np.uint64(1)) << np.uint64(3)
            column[k] += unit * np.int64(value)
        for k in range(first, first + 4):
            state[w, k] = 0


@_jit
def count_compact(triples: Any, thresholds: Any, prime: int, counts: Any) -> None:
    """Add to counts[k] the number of rows with (s + t c + r c^2) mod prime < thresholds[k], c = k + 1.

    By second differences over blocks of rows that stay in cache: v += d, d += 2 r, each reduced by one subtraction
    (the smaller of x and x - prime as unsigned integers).
    """
    n, m = triples.shape[0], thresholds.size
    p = np.uint32(prime)
    block = 1024
    v, d, r2 = np.empty(block, np.uint32), np.empty(block, np.uint32), np.empty(block, np.uint32)
    for first in range(0, n, block):
        size = min(block, n - first)
        for i in range(size):
            s, t, r = triples[first + i, 0], triples[first + i, 1], triples[first + i, 2]
            r2[i] = _sum(r, r, p)
            v[i] = _sum(_sum(s, t, p), r, p)  # the value at c = 1
            d[i] = _sum(_sum(r2[i], r, p), t, p)  # the difference from c = 1 to 2: t + 3 r
        for k in range(m):
            counts[k] += _step(v[:size], d[:size], r2[:size], thresholds[k], p)


@_jit
def _sum(x: Any, y: Any, p: Any) -> Any:
    """(x + y) mod p for x, y < p < 2^31, in 32 bits."""
    z = np.uint32(x + y)
    return min(z, np.uint32(z - p))


@_jit
def _step(v: Any, d: Any, r2: Any, limit: Any, p: Any) -> Any:
    """How many values are below the limit; then move all of them to the next item."""
    total = np.uint32(0)
    for i in range(v.size):
        total = np.uint32(total + np.uint32(v[i] < limit))
        v[i] = _sum(v[i], d[i], p)
        d[i] = _sum(d[i], r2[i], p)
    return total
