"""Subsets of fixed size: draw them, and check the size of those that arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

import numba
import numpy as np
from numba.extending import intrinsic

from discreet.arrays.kernels.draws import draw_below
from discreet.arrays.kernels.jit import compiled
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s, Words

SLICES = 4  # bits of the chance that a first guess of a subset is drawn with


class _Builder(Protocol):
    """What writes the machine's instructions."""

    def ctpop(self, word: object) -> object: ...


def _typed_popcount(typing: object, word: object) -> tuple[object, Callable[..., object]]:
    """The number of ones of a 64-bit word, by the processor's own instruction."""

    def generate(
        context: object, builder: _Builder, signature: object, words: Sequence[object]
    ) -> object:
        return builder.ctpop(words[0])

    return numba.types.uint64(numba.types.uint64), generate


_popcount = cast(Callable[[np.uint64], np.uint64], intrinsic(_typed_popcount))


@compiled
def draw_subsets(
    out: Bytes,
    front: int,
    part: Ints,
    group: Ints,
    place: Ints,
    own: Bools,
    sizes: Ints,
    items: Ints,
    first: Ints,
    masks: Words,
    guess: Ints,
    random: Uint32s,
    start: int,
) -> int:
    """Write the bits of uniform subsets to rows out[start:]: sizes[p, g] items of every group.

    place[i] is the rank of the held item in its group; negative: no item is held. The held item is
    in the subset if own[i], and the rest is a uniform subset of the others.

    Returns the number of rows done. A row that runs out of random words is drawn again from the
    start. That keeps it uniform: the accepted values do not depend on how many were rejected.
    """
    words = np.zeros(masks.shape[1], np.uint64)
    size = out.shape[1] - front
    at = 0
    for i in range(start, out.shape[0]):
        words[:] = 0
        for g in range(sizes.shape[1]):
            k = sizes[part[i], g]
            if k == 0:
                continue
            members = items[first[g] : first[g + 1]]
            n, skip = members.size, members.size
            if g == group[i] and place[i] >= 0:
                n -= 1
                skip = place[i]
                k -= own[i]
            if guess[part[i], g]:
                at = _set_many(words, masks[g], members, skip, k, guess[part[i], g], random, at)
            elif 2 * k > n:
                at = _set_few(words, members, n, skip, n - k, random, at)
                for r in range(members.size):
                    if r != skip:
                        words[members[r] >> 6] ^= np.uint64(1) << np.uint64(members[r] & 63)
            else:
                at = _set_few(words, members, n, skip, k, random, at)
            if at < 0:
                return i
            if skip < members.size and own[i]:
                words[members[skip] >> 6] |= np.uint64(1) << np.uint64(members[skip] & 63)
        row = out[i, front:]
        for b in range(size):
            row[b] = np.uint8(words[b >> 3] >> np.uint64(8 * (b & 7)))
    return out.shape[0]


@compiled
def _set_few(
    words: Words, members: Ints, n: int, skip: int, k: int, random: Uint32s, at: int
) -> int:
    """Set a uniform choice of k of the members' bits, never the one at `skip` (Floyd's algorithm).

    n is the number of members without `skip`. Returns the place of the next random word; -1 where
    there are none left.
    """
    for j in range(n - k, n):
        r, at = draw_below(j + 1, random, at)
        if at < 0:
            return -1
        item = members[r + (r >= skip)]
        if words[item >> 6] >> np.uint64(item & 63) & np.uint64(1):
            item = members[j + (j >= skip)]
        words[item >> 6] |= np.uint64(1) << np.uint64(item & 63)
    return at


@compiled
def _set_many(
    words: Words,
    mask: Words,
    members: Ints,
    skip: int,
    k: int,
    chance: int,
    random: Uint32s,
    at: int,
) -> int:
    """The same for large subsets, 64 bits at once.

    Every bit is drawn with a chance near k / n. Then random ones are cleared, or random zeros set,
    until there are k. Given their number the first bits are uniform, so the result is uniform too,
    whatever the chance.
    """
    count: int | np.int64 = 0
    kept = -1
    if skip < members.size:
        kept = members[skip]
    for w in range(words.size):
        lanes = mask[w]
        if lanes == 0:
            continue
        if kept >= 0 and kept >> 6 == w:
            lanes &= ~(np.uint64(1) << np.uint64(kept & 63))
        if at + 2 * SLICES > random.size:
            return -1
        less, equal = np.uint64(0), lanes
        for j in range(SLICES - 1, -1, -1):
            r = np.uint64(random[at]) << np.uint64(32) | np.uint64(random[at + 1])
            at += 2
            if chance >> j & 1:
                less |= equal & ~r
                equal &= r
            else:
                equal &= ~r
        words[w] |= less
        count += np.int64(_popcount(less))
    wanted = np.uint64(count < k)  # a zero becomes a one, or a one a zero
    sign = 1 if count < k else -1
    while count != k:
        rank, at = draw_below(members.size, random, at)
        if at < 0:
            return -1
        item = members[rank]
        bit = np.uint64(item & 63)
        # without a branch: whether a try succeeds cannot be predicted
        hit = ((words[item >> 6] >> bit & np.uint64(1)) ^ wanted) & np.uint64(rank != skip)
        words[item >> 6] ^= hit << bit
        count += np.int64(hit) * sign
    return at


@compiled
def find_wrong_sizes(words: Words, part: Ints, masks: Words, sizes: Ints, wrong: Bools) -> None:
    """Mark the rows that have another number of bits within a mask than their part asks for."""
    for i in range(words.shape[0]):
        bad = False
        for g in range(masks.shape[0]):
            total = np.int64(0)
            for w in range(words.shape[1]):
                total += np.int64(_popcount(words[i, w] & masks[g, w]))
            bad |= total != sizes[part[i], g]
        wrong[i] = bad
