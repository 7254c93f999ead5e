"""Picks: draw subsets of fixed sizes around a person's own items, refuse and count them.

The items of a cut have *slots*, block by block. layouts[part, block] has the first slot, the items
m, k, and the bits of a number, 0 where there is a bit per item; all 0 where there is no such block.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays.kernels.draws import draw_below
from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s


@compiled
def draw_subsets(
    out: Bytes,
    kept: Ints,
    named: Ints,
    part: Ints,
    cut: Ints,
    layouts: Ints,
    slots: Ints,
    random: Uint32s,
    start: int,
) -> int:
    """Write the bodies of reports to rows out[start:], which are zeros.

    Row i names a uniform named[i, b] of the items kept[i] that are in block b, and so many of the
    block's other items that there are k. slots[cut, item] is the slot of an item. Returns the
    number of rows done. A row that runs out of random words is drawn again.
    """
    at, own = 0, np.empty(kept.shape[1], np.int64)
    chosen = np.zeros(slots.shape[1], np.uint8)
    for i in range(start, out.shape[0]):
        chosen[:] = 0
        for b in range(layouts.shape[1]):
            first, m, k, width = layouts[part[i], b]
            j, n = _own_of_block(kept[i], slots[cut[i]], first, m, own), named[i, b]
            for a in range(n):  # a uniform subset of n of the own ones, brought to the front
                r, at = draw_below(j - a, random, at)
                if at < 0:
                    return i
                own[a], own[a + r] = own[a + r], own[a]
                chosen[own[a]] = 1
            own[:j].sort()
            size = m - j  # Floyd: a uniform subset of k - n of the others, by their places
            for top in range(size - (k - n), size):
                r, at = draw_below(top + 1, random, at)
                if at < 0:
                    return i
                place = first + _skip(r, own, j, first)
                if chosen[place]:
                    place = first + _skip(top, own, j, first)
                chosen[place] = 1
        bit = 0  # only now: a row that is drawn again is still zeros
        for b in range(layouts.shape[1]):
            first, m, _, width = layouts[part[i], b]
            bit = _pack(out[i], chosen, first, m, width, bit)
    return out.shape[0]


@compiled
def _own_of_block(
    kept: Ints, slots: Ints, first: int | np.int64, m: int | np.int64, own: Ints
) -> int:
    """Write the slots of the own items of a block to the front of `own`; their number."""
    j = 0
    for item in kept:
        if item >= 0 and first <= slots[item] < first + m:
            own[j] = slots[item]
            j += 1
    return j


@compiled
def _skip(r: int | np.int64, own: Ints, j: int, first: int | np.int64) -> int | np.int64:
    """The place of the r-th item of a block that is not one of the own ones, whose slots go up."""
    for a in range(j):
        if own[a] - first <= r:
            r += 1
    return r


@compiled
def _pack(
    row: Bytes,
    chosen: Bytes,
    first: int | np.int64,
    m: int | np.int64,
    width: int | np.int64,
    bit: int,
) -> int:
    """Write a block from this bit on; the bit after it."""
    for rank in range(m):
        if not width:
            row[bit >> 3] |= chosen[first + rank] << (bit & 7)
            bit += 1
        elif chosen[first + rank]:
            for x in range(width):
                row[bit >> 3] |= ((rank >> x) & 1) << (bit & 7)
                bit += 1
    return bit


@compiled
def read_subsets(
    rows: Bytes, part: Ints, layouts: Ints, wrong: Bytes, counts: Ints, times: Ints
) -> None:
    """Write to wrong[i] what is wrong with the body of row i: 1 a bit beyond the last, 2 another
    number of items, 3 numbers that do not go up; and add times[i] to counts[part, slot] of every
    item that a good one names.
    """
    found = np.empty(counts.shape[1] + 1, np.int64)
    for i in range(rows.shape[0]):
        wrong[i], named = _read(rows[i], layouts[part[i]], found)
        if not wrong[i]:
            for a in range(named):
                counts[part[i], found[a]] += times[i]


@compiled
def _read(row: Bytes, layout: Ints, found: Ints) -> tuple[int, int]:
    """What is wrong with a row; else 0, and how many slots of named items are in `found`."""
    used = 0
    for b in range(layout.shape[0]):
        _, m, k, width = layout[b]
        used += k * width if width else m
    for bit in range(used, 8 * row.size):
        if _bit(row, bit):
            return 1, 0
    bit, total, falls = 0, 0, False
    for b in range(layout.shape[0]):
        first, m, k, width = layout[b]
        before = total
        if width:
            last = -1
            for _ in range(k):
                number = _number(row, bit, width)
                bit += width
                falls = falls or number <= last or number >= m
                last = number
                if number < m:
                    found[total] = first + number
                    total += 1
        else:
            end = bit + m
            while bit < end:
                byte, left = row[bit >> 3] >> (bit & 7), min(8 - (bit & 7), end - bit)
                for x in range(left):
                    found[total] = first + m - (end - bit) + x
                    total += (byte >> x) & 1  # the next item overwrites one that is not named
                bit += left
            if total - before != k:
                return 2, 0
    return (3, 0) if falls else (0, total)


@compiled
def _bit(row: Bytes, bit: int | np.int64) -> bool:
    return (row[bit >> 3] >> (bit & 7)) & 1 == 1


@compiled
def _number(row: Bytes, bit: int | np.int64, width: int | np.int64) -> int:
    number = 0
    for b in range(width):
        number |= ((row[(bit + b) >> 3] >> ((bit + b) & 7)) & 1) << b
    return number


@compiled
def find_named(rows: Bytes, part: Ints, layouts: Ints, slots: Ints, out: Bools) -> None:
    """Set out[i, a] where row i names the item whose slot in the part's cut is slots[part, a]; -1
    where it is not active.
    """
    found = np.empty(layouts[:, :, 1].sum(axis=1).max() + 1, np.int64)
    for i in range(rows.shape[0]):
        _, named = _read(rows[i], layouts[part[i]], found)
        for a in range(slots.shape[1]):
            out[i, a] = False
            for x in range(named):
                if found[x] == slots[part[i], a]:
                    out[i, a] = True
