"""Tickets: draw them, count marks one by one, or count tickets and transform the histogram."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Bytes, Ints, Uint16s, Uint32s

_Count = TypeVar("_Count", np.int32, np.int64)


@compiled
def draw_tickets(
    out: Uint32s,
    part: Ints,
    low: Ints,
    span: Ints,
    code: Ints,
    q: int,
    t: int,
    random: Uint32s,
    start: int,
) -> int:
    """Write tickets to out[start:]: part q^(t+1) + y.

    The mark y_0 + y_1 c_1 + … + y_t c_t is uniform in [low, low + span), and y_1 … y_t are uniform
    below q; both exactly, by multiplication and rejection. Returns the number of rows done. A row
    that runs out of random words is drawn again from the start.
    """
    at, rests = 0, np.uint64(1)  # rests: how many y_1 … y_t there are
    for _ in range(t):
        rests *= np.uint64(q)
    wide, low_bits = np.uint64(32), np.uint64(0xFFFFFFFF)
    full = np.uint64(1) << wide
    least_rest = (full - rests) % rests
    p = np.uint64(q)
    for i in range(start, out.size):
        bound = np.uint64(span[i])
        least = (full - bound) % bound
        while True:
            if at >= random.size:
                return i
            x = np.uint64(random[at]) * bound
            at += 1
            if (x & low_bits) >= least:
                break
        mark = np.uint64(low[i]) + (x >> wide)
        while True:
            if at >= random.size:
                return i
            x = np.uint64(random[at]) * rests
            at += 1
            if (x & low_bits) >= least_rest:
                break
        rest = x >> wide
        ticket = rest
        minus = np.uint64(0)
        for j in range(t - 1, -1, -1):  # y_t is the last digit
            minus += rest % p * np.uint64(code[i, j])
            rest //= p
        first = (mark + p - minus % p) % p
        out[i] = np.uint32(ticket + (first + p * np.uint64(part[i])) * rests)
    return out.size


@compiled
def count_tickets(numbers: Uint32s, q: int, t: int, limits: Uint16s, counts: Ints) -> None:
    """Add to counts[k] the number of tickets whose mark of item k is below limits[k].

    Items come in runs of q that share all digits but the first, x. A mark is the run's own shift
    plus y_1 x + y_2 x^2 + …. Forward differences lead from x to x + 1. Everything is below q, so
    one subtraction reduces a sum. Tickets are counted in blocks, so that the inner loops are
    vectors.
    """
    block, p = 1024, np.uint16(q)
    digits = np.empty((t + 1, block), np.uint16)
    steps, powers = np.empty((t + 1, block), np.uint16), np.empty((q, block), np.uint16)
    shift = np.empty(block, np.uint16)
    for first in range(0, numbers.size, block):
        n = min(block, numbers.size - first)
        for i in range(n):
            rest = np.int64(numbers[first + i])
            for j in range(t, -1, -1):
                digits[j, i] = rest % q
                rest //= q
        _take_differences(digits[:, :n], q, steps[:, :n])
        for x in range(q):
            powers[x, :n] = steps[0, :n]
            for j in range(t):
                _add_below(steps[j, :n], steps[j + 1, :n], p)
        for run in range(-(-limits.size // q)):
            if run % q:
                _add_below(shift[:n], digits[2, :n], p)
            else:
                for i in range(n):
                    total, digit = np.int64(digits[0, i]), run
                    for j in range(2, t + 1):
                        total += np.int64(digits[j, i]) * (digit % q)
                        digit //= q
                    shift[i] = total % q
            for k in range(run * q, min(run * q + q, limits.size)):
                counts[k] += _count_below(powers[k - run * q, :n], shift[:n], limits[k], p)


@compiled
def _take_differences(digits: Uint16s, q: int, steps: Uint16s) -> None:
    """Write the k-th forward difference at 0 of y_1 x + y_2 x^2 + … mod q to steps[k]."""
    t = digits.shape[0] - 1
    for i in range(digits.shape[1]):
        for x in range(t + 1):
            value = np.int64(0)
            for j in range(t, 0, -1):
                value = (value + np.int64(digits[j, i])) * x % q
            steps[x, i] = value
        for k in range(1, t + 1):
            for x in range(t, k - 1, -1):
                steps[x, i] = (np.int64(steps[x, i]) + q - np.int64(steps[x - 1, i])) % q


@compiled
def _add_below(values: Uint16s, more: Uint16s, q: np.uint16) -> None:
    """Add `more` to the values, mod q; both are below q."""
    for i in range(values.size):
        v = np.uint16(values[i] + more[i])
        values[i] = min(v, np.uint16(v - q))


@compiled
def _count_below(powers: Uint16s, shift: Uint16s, limit: np.uint16, q: np.uint16) -> np.uint16:
    """The number of sums mod q that are below the limit."""
    total = np.uint16(0)
    for i in range(powers.size):
        v = np.uint16(powers[i] + shift[i])
        v = min(v, np.uint16(v - q))  # unsigned: the smaller of v and v - q
        total = np.uint16(total + np.uint16(v < limit))
    return total


@compiled
def add_tickets(numbers: Uint32s, tiny: Bytes, table: Uint32s) -> int:
    """Count every number. Returns how many are beyond the table.

    The counters that are hit at random are bytes, so that they stay in the cache; they overflow
    into the table.
    """
    beyond, size = 0, np.uint32(tiny.size)
    for i in range(numbers.size):
        number = numbers[i]
        if number < size:
            count = np.uint8(tiny[number] + np.uint8(1))
            tiny[number] = count
            if count == 0:
                table[number] += np.uint32(256)
        else:
            beyond += 1
    return beyond


@compiled
def add_times(numbers: Uint32s, times: Ints, table: Ints) -> np.int64:
    """Count numbers[i] times[i] times. Returns the total of those beyond the table."""
    beyond = np.int64(0)
    for i in range(numbers.size):
        if numbers[i] < table.size:
            table[numbers[i]] += times[i]
        else:
            beyond += times[i]
    return beyond


@compiled
def transform_axis(table: NDArray[_Count], turned: NDArray[_Count]) -> None:
    """Transform one axis of a histogram of tickets.

    turned[c, v, r] = sum over y of table[y, v - y c, r], the second index mod q.
    """
    q, width = table.shape[0], table.shape[2]
    for c in range(q):
        goal = turned[c].reshape(-1)
        goal[:] = 0
        for y in range(q):
            row, split = table[y].reshape(-1), (q - y * c % q) * width
            for k in range(split):
                goal[goal.size - split + k] += row[k]
            for k in range(goal.size - split):
                goal[k] += row[split + k]
