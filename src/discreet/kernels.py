"""The compiled inner loops, and only those. Plain functions of arrays; nothing here knows what a
mechanism is.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

PLANES = 8  # of random bits drawn for every word; the few lanes still undecided draw more


def _jit(function: Any) -> Any:
    """Compiled when first called. What was compiled is kept for other processes, beside the package
    or in NUMBA_CACHE_DIR or the user's home; a user who can write to none of them (a service)
    compiles in every process.
    """
    try:
        return numba.njit(cache=True, nogil=True, boundscheck=False)(function)
    except RuntimeError:  # "no locator available": there is no such folder
        return numba.njit(nogil=True, boundscheck=False)(function)


@_jit
def bernoulli_words(out: Any, part: Any, planes: Any, lanes: Any, random: Any, start: int) -> Any:
    """Fill rows out[start:] with packed Bernoulli bits, item k at bit k % 64 of word k // 64.

    Bit-sliced comparison of a random 32-bit integer with the threshold, most significant bit first:
    planes[p, j, w] has bit 31 - j of the threshold of every lane of word w in part p. A lane is
    decided at the first bit in which the two differ, so 8 planes decide all but 1 in 256 lanes.
    Returns the rows done and the random words used; stops early rather than run out of them in the
    middle of a row, because how many are needed depends on the outcome.
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


def _typed_popcount(typing: Any, x: Any) -> Any:
    """The number of ones of a 64-bit word, by the processor's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return numba.types.uint64(numba.types.uint64), generate


_popcount: Any = intrinsic(_typed_popcount)
SLICES = 4  # bits of the chance that a first guess of a subset is drawn with


@_jit
def fixed_subsets(
    out: Any,
    front: int,
    part: Any,
    group: Any,
    place: Any,
    own: Any,
    sizes: Any,
    items: Any,
    first: Any,
    masks: Any,
    guess: Any,
    random: Any,
    start: int,
) -> Any:
    """Write to rows out[start:] the bits of uniform subsets: sizes[p, g] items of every group.

    place[i] is the rank of the held item in its group (negative: none is held); it is in the subset
    iff own[i], and the rest is a uniform subset of the others. A row that runs out of random words
    is drawn again from the start, which changes nothing: its accepted values do not depend on how
    many were rejected. Returns the rows done.
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
                at = _guess(words, masks[g], members, skip, k, guess[part[i], g], random, at)
            elif 2 * k > n:
                at = _floyd(words, members, n, skip, n - k, random, at)
                for r in range(members.size):
                    if r != skip:
                        words[members[r] >> 6] ^= np.uint64(1) << np.uint64(members[r] & 63)
            else:
                at = _floyd(words, members, n, skip, k, random, at)
            if at < 0:
                return i
            if skip < members.size and own[i]:
                words[members[skip] >> 6] |= np.uint64(1) << np.uint64(members[skip] & 63)
        row = out[i, front:]
        for b in range(size):
            row[b] = np.uint8(words[b >> 3] >> np.uint64(8 * (b & 7)))
    return out.shape[0]


@_jit
def _below_bound(bound: int, random: Any, at: int) -> Any:
    """A uniform integer below the bound (Lemire's multiplication and rejection) and the place in
    `random`; -1 at its end.
    """
    n, mask = np.uint64(bound), np.uint64(0xFFFFFFFF)
    while at < random.size:
        wide = np.uint64(random[at]) * n
        at += 1
        # rejected below 2^32 mod n, which need not be worked out for most draws
        if (wide & mask) >= n or (wide & mask) >= (mask - n + np.uint64(1)) % n:
            return np.int64(wide >> np.uint64(32)), at
    return np.int64(0), -1


@_jit
def _floyd(words: Any, members: Any, n: int, skip: int, k: int, random: Any, at: int) -> Any:
    """Set k of the n bits of members without the one at `skip`, uniformly (Floyd); the place in
    `random`, -1 at its end.
    """
    for j in range(n - k, n):
        r, at = _below_bound(j + 1, random, at)
        if at < 0:
            return -1
        item = members[r + (r >= skip)]
        if words[item >> 6] >> np.uint64(item & 63) & np.uint64(1):
            item = members[j + (j >= skip)]
        words[item >> 6] |= np.uint64(1) << np.uint64(item & 63)
    return at


@_jit
def _guess(
    words: Any, mask: Any, members: Any, skip: int, k: int, chance: int, random: Any, at: int
) -> Any:
    """The same for many items: every bit is drawn with a chance near k / n, 64 at once, and then
    random ones are cleared or random zeros set until there are k. Given their number the first bits
    are uniform, so the result is, whatever the chance.
    """
    count: Any = 0
    kept: Any = -1
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
        r, at = _below_bound(members.size, random, at)
        if at < 0:
            return -1
        item = members[r]
        bit = np.uint64(item & 63)
        # without a branch: whether a try succeeds cannot be predicted
        hit = ((words[item >> 6] >> bit & np.uint64(1)) ^ wanted) & np.uint64(r != skip)
        words[item >> 6] ^= hit << bit
        count += np.int64(hit) * sign
    return at


@_jit
def _add(a: Any, b: Any, c: Any) -> Any:
    """A full adder on 64 columns at once: sum and carry."""
    u = a ^ b
    return u ^ c, (a & b) | (u & c)


@_jit
def count_bits(words: Any, counts: Any) -> None:
    """Add to counts[64 w + k] the number of rows whose word w has bit k: vertical counters of
    carry-save adders.

    Sixteen rows collapse into one plane of sixteens with 15 adders; counters up to 15 sixteens are
    then read off bit by bit.
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


@_jit
def _flush(counts: Any, state: Any, first: int, unit: int) -> None:
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


@_jit
def wrong_sizes(words: Any, part: Any, masks: Any, sizes: Any, wrong: Any) -> None:
    """Which rows of words have another number of bits within some mask than their part asks for."""
    for i in range(words.shape[0]):
        bad = False
        for g in range(masks.shape[0]):
            total = np.int64(0)
            for w in range(words.shape[1]):
                total += np.int64(_popcount(words[i, w] & masks[g, w]))
            bad |= total != sizes[part[i], g]
        wrong[i] = bad


@_jit
def tickets(
    out: Any, part: Any, low: Any, span: Any, code: Any, q: int, t: int, random: Any, start: int
) -> Any:
    """Rows out[start:] of part q^(t+1) + y with the mark y_0 + y_1 c_1 + … + y_t c_t uniform in
    [low, low + span) and y_1 … y_t uniform below q. Uniform integers by multiplication and
    rejection, exactly; a row that runs out of random words is drawn again from the start. Returns
    the rows done.
    """
    at, many = 0, np.uint64(1)
    for _ in range(t):
        many *= np.uint64(q)
    wide, low_bits = np.uint64(32), np.uint64(0xFFFFFFFF)
    full = np.uint64(1) << wide
    least_rest = (full - many) % many
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
            x = np.uint64(random[at]) * many
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
        out[i] = np.uint32(ticket + (first + p * np.uint64(part[i])) * many)
    return out.size


@_jit
def count_tickets(numbers: Any, q: int, t: int, limits: Any, counts: Any) -> None:
    """Add to counts[k] the number of tickets whose mark of item k is below limits[k].

    Items come in runs of q that share all digits but the first, x. A mark is the run's own shift
    plus y_1 x + y_2 x^2 + …, which goes on from x to x + 1 by differences; everything is below q,
    so one subtraction reduces a sum. Blocks of tickets, so that the inner loops are in vectors.
    """
    block, p = 1024, np.uint16(q)
    digits = np.empty((t + 1, block), np.uint16)
    steps, powers = np.empty((t + 1, block), np.uint16), np.empty((q, block), np.uint16)
    shift = np.empty(block, np.uint16)
    for first in range(0, numbers.size, block):
        n = min(block, numbers.size - first)
        for i in range(n):
            rest: Any = np.int64(numbers[first + i])
            for j in range(t, -1, -1):
                digits[j, i] = rest % q
                rest //= q
        _differences(digits[:, :n], q, steps[:, :n])
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
                counts[k] += _below(powers[k - run * q, :n], shift[:n], limits[k], p)


@_jit
def _differences(digits: Any, q: int, steps: Any) -> None:
    """steps[k] = the k-th forward difference at 0 of y_1 x + y_2 x^2 + … mod q, for
    every ticket.
    """
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


@_jit
def _add_below(values: Any, more: Any, q: Any) -> None:
    """values + more mod q, both below q."""
    for i in range(values.size):
        v = np.uint16(values[i] + more[i])
        values[i] = min(v, np.uint16(v - q))


@_jit
def _below(powers: Any, shift: Any, limit: Any, q: Any) -> Any:
    """How many sums, reduced, are below the limit."""
    total = np.uint16(0)
    for i in range(powers.size):
        v = np.uint16(powers[i] + shift[i])
        v = min(v, np.uint16(v - q))  # unsigned: the smaller of v and v - q
        total = np.uint16(total + np.uint16(v < limit))
    return total


@_jit
def add_tickets(numbers: Any, tiny: Any, table: Any) -> Any:
    """Count every number; returns how many are beyond the table. The counters that are hit at
    random are bytes, so that they stay in the cache; what overflows goes to the table.
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


@_jit
def add_times(numbers: Any, times: Any, table: Any) -> Any:
    """Count every number so many times; returns how often one was beyond the table."""
    beyond = np.int64(0)
    for i in range(numbers.size):
        if numbers[i] < table.size:
            table[numbers[i]] += times[i]
        else:
            beyond += times[i]
    return beyond


@_jit
def turn(table: Any, turned: Any) -> None:
    """One axis of the transform of a table of tickets: turned[c, v, r] = sum over y of table[y, v -
    y c, r], mod q.
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


# ---- hits ----------------------------------------------------------------------------------------


@_jit
def cut_sets(
    kept: Any, items: Any, offsets: Any, part: Any, active: Any, random: Any, start: int
) -> Any:
    """To rows kept[start:] a uniform subset, as large as a row, of every set that is larger; of it
    those items that are active[part, item], the rest -1. A row that runs out of random words is
    drawn again from the start. Returns the rows done.
    """
    n, size = kept.shape
    longest = 1
    for i in range(start, n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    chosen, at = np.empty(longest, np.int64), 0
    for i in range(start, n):
        many = offsets[i + 1] - offsets[i]
        for k in range(many):
            chosen[k] = items[offsets[i] + k]
        if many > size:
            for k in range(size):
                r, at = _below_bound(many - k, random, at)
                if at < 0:
                    return i
                chosen[k], chosen[k + r] = chosen[k + r], chosen[k]
            many = size
        count = 0
        for k in range(many):
            if active[part[i], chosen[k]]:
                kept[i, count] = chosen[k]
                count += 1
        kept[i, count:] = -1
    return n


@_jit
def choose(kept: Any, count: Any, named: Any, random: Any, start: int) -> Any:
    """Put a uniform subset of named[i] of the first count[i] items of rows kept[start:] in front,
    which a row that runs out of random words, and is drawn again, is in any order. Returns the rows
    done.
    """
    at = 0
    for i in range(start, kept.shape[0]):
        for k in range(named[i]):
            r, at = _below_bound(count[i] - k, random, at)
            if at < 0:
                return i
            kept[i, k], kept[i, k + r] = kept[i, k + r], kept[i, k]
    return kept.shape[0]


@_jit
def _inverse(x: int, prime: int, inverses: Any) -> Any:
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


@_jit
def polynomials(
    out: Any,
    kept: Any,
    count: Any,
    named: Any,
    limit: Any,
    prime: int,
    inverses: Any,
    random: Any,
    start: int,
) -> Any:
    """To rows out[start:] the coefficients of uniform polynomials p modulo the prime, from the
    constant one, with p(item + 1) below the limit for the first named[i] of count[i] items of a row
    and not below it for the others. Newton's form: divided differences of the items' values, and
    free coefficients behind them. A row that runs out of random words is drawn again from the
    start. Returns the rows done.
    """
    n, degree = out.shape
    at, value, place = 0, np.empty(degree, np.int64), np.empty(degree, np.int64)
    for i in range(start, n):
        j = count[i]
        for k in range(j):
            place[k] = kept[i, k] + 1
            if k < named[i]:
                value[k], at = _below_bound(limit[i], random, at)
            else:
                value[k], at = _below_bound(prime - limit[i], random, at)
                value[k] += limit[i]
            if at < 0:
                return i
        row = out[i]
        row[:] = 0
        for k in range(degree - j):
            row[k], at = _below_bound(prime, random, at)
            if at < 0:
                return i
        for step in range(1, j):  # divided differences
            for k in range(j - 1, step - 1, -1):
                apart = (place[k] - place[k - step]) % prime
                value[k] = (value[k] - value[k - 1] + prime) % prime
                value[k] = value[k] * _inverse(apart, prime, inverses) % prime
        for k in range(j - 1, -1, -1):  # times (x - place), plus the difference
            for c in range(degree - 1, 0, -1):
                row[c] = (row[c - 1] + (prime - row[c]) * place[k]) % prime
            row[0] = ((prime - row[0]) * place[k] + value[k]) % prime
    return n


@_jit
def _forward(state: Any, rows: Any, first: int, prime: int) -> None:
    """Forward differences at 1 of the polynomials rows[first:], a column each: state[k] is the
    k-th.
    """
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


@_jit
def _step(state: Any, prime: int) -> None:
    """From the differences at x to those at x + 1."""
    p = np.uint32(prime)
    for k in range(state.shape[0] - 1):
        low, high = state[k], state[k + 1]
        for r in range(low.size):
            total = np.uint32(low[r] + high[r])
            low[r] = min(total, np.uint32(total - p))  # below p the second wraps around


HITS_BLOCK = 256  # polynomials at once: their differences stay in the first-level cache


@_jit
def count_hits(rows: Any, prime: int, limit: int, counts: Any) -> None:
    """Add to counts[i] the number of polynomials (rows of coefficients, uint32) with
    p(i + 1) < limit: one addition per coefficient and item, no multiplication.
    """
    n, degree = rows.shape
    below = np.uint32(limit)
    for first in range(0, n, HITS_BLOCK):
        state = np.empty((degree, min(HITS_BLOCK, n - first)), np.uint32)
        _forward(state, rows, first, prime)
        for i in range(counts.size):
            counts[i] += _named(state[0], below)
            _step(state, prime)


@_jit
def _named(values: Any, limit: Any) -> Any:
    """How many values are below the limit."""
    total = np.uint32(0)
    for r in range(values.size):
        total += np.uint32(values[r] < limit)
    return np.int64(total)
