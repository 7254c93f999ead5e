"""Picks: draw subsets of fixed size around a person's own items, refuse and count them."""

from __future__ import annotations

import numpy as np

from discreet.arrays.kernels.draws import draw_below
from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s


@compiled
def draw_subsets(
    out: Bytes,
    kept: Ints,
    count: Ints,
    named: Ints,
    part: Ints,
    layouts: Ints,
    ranks: Ints,
    random: Uint32s,
    start: int,
) -> int:
    """Write the bodies of reports to rows out[start:], which are zeros.

    Row i names the first named[i] of the count[i] active items kept[i], and so many of the cut's
    other active items that there are k; layouts[part] has the cut, its active items m, k, and the
    bits of a number, 0 where there is a bit per item. ranks[cut, item] is the place of an item.
    Returns the number of rows done. A row that runs out of random words is drawn again.
    """
    at, own = 0, np.empty(kept.shape[1], np.int64)
    chosen = np.zeros(layouts[:, 1].max(), np.uint8)
    for i in range(start, out.shape[0]):
        cut, m, k, width = layouts[part[i]]
        j, n = count[i], named[i]
        chosen[:m] = 0
        for a in range(j):
            own[a] = ranks[cut, kept[i, a]]
            if a < n:
                chosen[own[a]] = 1
        own[:j].sort()
        size = m - j  # Floyd: a uniform subset of k - n of the others, by their places among them
        for top in range(size - (k - n), size):
            r, at = draw_below(top + 1, random, at)
            if at < 0:
                return i
            place = _skip(r, own, j)
            if chosen[place]:
                place = _skip(top, own, j)
            chosen[place] = 1
        _pack(out[i], chosen, m, width)
    return out.shape[0]


@compiled
def _skip(r: int | np.int64, own: Ints, j: int) -> int | np.int64:
    """The place of the r-th item that is not one of the own ones, whose places go up."""
    for a in range(j):
        if own[a] <= r:
            r += 1
    return r


@compiled
def _pack(row: Bytes, chosen: Bytes, m: int, width: int) -> None:
    bit = 0
    for rank in range(m):
        if not width:
            row[rank >> 3] |= chosen[rank] << (rank & 7)
        elif chosen[rank]:
            for k in range(width):
                row[bit >> 3] |= ((rank >> k) & 1) << (bit & 7)
                bit += 1


@compiled
def read_subsets(
    rows: Bytes, part: Ints, layouts: Ints, wrong: Bytes, counts: Ints, times: Ints
) -> None:
    """Write to wrong[i] what is wrong with the body of row i: 1 a bit beyond the last, 2 another
    number of items, 3 numbers that do not go up; and add times[i] to counts[part, rank] of every
    item that a good one names.
    """
    for i in range(rows.shape[0]):
        o = part[i]
        m, k, width = layouts[o, 1], layouts[o, 2], layouts[o, 3]
        row, used = rows[i], m if width == 0 else k * width
        if m == 1:
            used = 0
        wrong[i] = 0
        for bit in range(used, 8 * row.size):
            if (row[bit >> 3] >> (bit & 7)) & 1:
                wrong[i] = 1
                break
        if wrong[i]:
            continue
        if width == 0:
            total = 0
            for rank in range(used):
                total += (row[rank >> 3] >> (rank & 7)) & 1
            if total != k:
                wrong[i] = 2
                continue
            for rank in range(used):
                if (row[rank >> 3] >> (rank & 7)) & 1:
                    counts[o, rank] += times[i]
            continue
        last = -1
        for n in range(k):
            number = _number(row, n, width)
            if number <= last or number >= m:
                wrong[i] = 3
                break
            last = number
        if not wrong[i]:
            for n in range(k):
                counts[o, _number(row, n, width)] += times[i]


@compiled
def _number(row: Bytes, n: int, width: int) -> int:
    number = 0
    for b in range(width):
        bit = n * width + b
        number |= ((row[bit >> 3] >> (bit & 7)) & 1) << b
    return number


@compiled
def find_named(rows: Bytes, part: Ints, layouts: Ints, ranks: Ints, out: Bools) -> None:
    """Set out[i, a] where row i names the item whose rank in the row's cut is ranks[cut, a]; -1
    where it is not active.
    """
    for i in range(rows.shape[0]):
        cut, m, k, width = layouts[part[i]]
        for a in range(ranks.shape[1]):
            rank = ranks[cut, a]
            out[i, a] = False
            if rank < 0:
                continue
            if width == 0:
                out[i, a] = m > 1 and (rows[i][rank >> 3] >> (rank & 7)) & 1 == 1
                continue
            for n in range(k):
                if _number(rows[i], n, width) == rank:
                    out[i, a] = True
