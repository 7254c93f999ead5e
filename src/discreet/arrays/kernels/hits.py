"""Counted hits: cut sets, draw polynomials, and count which items they name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.kernels.draws import draw_below
from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Bools, Ints, Uint32s


@compiled
def cut_sets(
    kept: Ints,
    items: Ints,
    offsets: Ints,
    part: Ints,
    active: Bools,
    random: Uint32s,
    start: int,
) -> int:
    """Write every set's active items to rows kept[start:], then -1.

    A set that is larger than a row is cut to a uniform subset first. active[part, item] says which
    items are active. Returns the number of rows done. A row that runs out of random words is drawn
    again from the start.
    """
    n, size = kept.shape
    longest = 1
    for i in range(start, n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    chosen, at = np.empty(longest, np.int64), 0
    for i in range(start, n):
        length = offsets[i + 1] - offsets[i]
        for k in range(length):
            chosen[k] = items[offsets[i] + k]
        if length > size:
            for k in range(size):
                r, at = draw_below(length - k, random, at)
                if at < 0:
                    return i
                chosen[k], chosen[k + r] = chosen[k + r], chosen[k]
            length = size
        count = 0
        for k in range(length):
            if active[part[i], chosen[k]]:
                kept[i, count] = chosen[k]
                count += 1
        kept[i, count:] = -1
    return n


@compiled
def choose_named(kept: Ints, count: Ints, named: Ints, random: Uint32s, start: int) -> int:
    """Move a uniform subset of `named[i]` of the first `count[i]` items to the front of each row.

    Works on rows kept[start:] and returns the number of rows done. A row that runs out of random
    words is drawn again; its order then does not matter.
    """
    at = 0
    for i in range(start, kept.shape[0]):
        for k in range(named[i]):
            r, at = draw_below(count[i] - k, random, at)
            if at < 0:
                return i
            kept[i, k], kept[i, k + r] = kept[i, k + r], kept[i, k]
    return kept.shape[0]


@compiled
def _invert(x: int, prime: int, inverses: NDArray[np.int32]) -> np.int64:
    """1 / x modulo the prime: from the table, or as x^(prime - 2)."""
    if inverses.size:
        return np.int64(inverses[x])
    result, power, exponent = np.int64(1), np.int64(x), prime - 2
    while exponent:
        if exponent & 1:
            result = result * power % prime
        power = power * power % prime
        exponent >>= 1
    return result


@compiled
def draw_polynomials(
    out: Ints,
    kept: Ints,
    count: Ints,
    named: Ints,
    limit: Ints,
    prime: int,
    inverses: NDArray[np.int32],
    random: Uint32s,
    start: int,
) -> int:
    """Write the coefficients of uniform polynomials modulo the prime to rows out[start:], the
    constant one first.

    p(item + 1) is below the limit for the first named[i] of count[i] items of a row, and not below
    it for the others. Newton's form: divided differences of the items' values, then free
    coefficients. Returns the number of rows done. A row that runs out of random words is drawn
    again from the start.
    """
    n, degree = out.shape
    at, value, place = 0, np.empty(degree, np.int64), np.empty(degree, np.int64)
    for i in range(start, n):
        j = count[i]
        for k in range(j):
            place[k] = kept[i, k] + 1
            if k < named[i]:
                value[k], at = draw_below(limit[i], random, at)
            else:
                value[k], at = draw_below(prime - limit[i], random, at)
                value[k] += limit[i]
            if at < 0:
                return i
        row = out[i]
        row[:] = 0
        for k in range(degree - j):
            row[k], at = draw_below(prime, random, at)
            if at < 0:
                return i
        for step in range(1, j):  # divided differences
            for k in range(j - 1, step - 1, -1):
                distance = (place[k] - place[k - step]) % prime
                value[k] = (value[k] - value[k - 1] + prime) % prime
                value[k] = value[k] * _invert(distance, prime, inverses) % prime
        for k in range(j - 1, -1, -1):  # times (x - place), plus the difference
            for c in range(degree - 1, 0, -1):
                row[c] = (row[c - 1] + (prime - row[c]) * place[k]) % prime
            row[0] = ((prime - row[0]) * place[k] + value[k]) % prime
    return n


@compiled
def _take_differences(state: Uint32s, rows: Uint32s, first: int, prime: int) -> None:
    """Write the k-th forward difference at 1 of the polynomials rows[first:] to state[k]."""
    degree, block = state.shape
    for r in range(block):
        row = rows[first + r]
        for k in range(degree):
            x, total = np.uint64(k + 1), np.uint64(0)
            for c in range(degree - 1, -1, -1):
                total = (total * x + np.uint64(row[c])) % np.uint64(prime)
            state[k, r] = np.uint32(total)
        for step in range(1, degree):
            for k in range(degree - 1, step - 1, -1):
                a, b = state[k, r], state[k - 1, r]
                state[k, r] = a - b if a >= b else a + (np.uint32(prime) - b)


@compiled
def _step(state: Uint32s, prime: int) -> None:
    """Go from the differences at x to those at x + 1."""
    p = np.uint32(prime)
    for k in range(state.shape[0] - 1):
        low, high = state[k], state[k + 1]
        for r in range(low.size):
            total = np.uint32(low[r] + high[r])
            low[r] = min(total, np.uint32(total - p))  # below p the second wraps around


BLOCK = 256  # polynomials at once: their differences fit in the first-level cache


@compiled
def count_hits(rows: Uint32s, prime: int, limit: int, counts: Ints) -> None:
    """Add to counts[i] the number of polynomials with p(i + 1) < limit.

    rows has the coefficients. One addition per coefficient and item, no multiplication.
    """
    n, degree = rows.shape
    below = np.uint32(limit)
    for first in range(0, n, BLOCK):
        state = np.empty((degree, min(BLOCK, n - first)), np.uint32)
        _take_differences(state, rows, first, prime)
        for i in range(counts.size):
            counts[i] += _count_below(state[0], below)
            _step(state, prime)


@compiled
def _count_below(values: Uint32s, limit: np.uint32) -> np.int64:
    """The number of values below the limit."""
    total = np.uint32(0)
    for r in range(values.size):
        total += np.uint32(values[r] < limit)
    return np.int64(total)
