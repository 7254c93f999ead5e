"""The compiled loops against plain Python and numpy, bit by bit, on chosen random words (seeded:
nothing fails by chance).
"""

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations, product
from math import comb, factorial

import numpy as np
import pytest
from checks import assert_bernoulli, must_fail, z_for
from exhaustive import code
from small import assert_distribution
from terminals import seen_at_a_terminal

from discreet.arrays.kernels import bits as bit_kernels
from discreet.arrays.kernels import fixed as fixed_kernels
from discreet.arrays.kernels import packed as packed_kernels
from discreet.arrays.kernels import ticket as ticket_kernels
from discreet.arrays.packed import count_columns
from discreet.arrays.ticket import TicketBlocks

RNG = np.random.default_rng(20)
BEGINNING = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def anew():
    """Every test draws the same, whichever ran before it in its worker."""
    RNG.bit_generator.state = BEGINNING


FULL = 2**32


# ---- Bernoulli bits ------------------------------------------------------------------------------


def planes_of(integers, words):
    """The 32 bit planes of m integers, most significant first: plane x word, item k at bit k % 64
    of word k // 64.
    """
    planes = [[0] * words for _ in range(32)]
    for k, value in enumerate(integers):
        for j in range(32):
            planes[j][k // 64] |= (int(value) >> (31 - j) & 1) << (k % 64)
    return planes


def needed(row, threshold, words):
    """Planes that every word needs: 8, and on until each of its integers differs from its
    threshold, at most 32.
    """
    count = [bit_kernels.PLANES] * words
    for k, (r, t) in enumerate(zip(row.tolist(), threshold.tolist(), strict=True)):
        count[k // 64] = max(count[k // 64], min(32, 33 - (r ^ t).bit_length()))
    return count


def serialise(row, threshold, words):
    """The random words that make one row's integers, in the order in which the kernel
    reads them.
    """
    planes, count = planes_of(row, words), needed(row, threshold, words)
    head = (
        [(j, w) for w in range(words) for j in range(8)]
        if words < 8
        else [(j, w) for j in range(8) for w in range(words)]
    )
    tail = [(j, w) for w in range(words) for j in range(8, count[w])]
    return [planes[j][w] for j, w in head + tail]


def draws(n, thresholds):
    """Integers that meet their thresholds in every way: equal, off by one, the same first 8 or 20
    bits, the ends, anything.
    """
    m = len(thresholds)
    kind = RNG.integers(0, 8, (n, m))
    noise = RNG.integers(0, FULL, (n, m))
    t = np.broadcast_to(thresholds.astype(np.int64), (n, m))
    near = [
        t,
        t - 1,
        t + 1,
        t ^ (noise >> 8),
        t ^ (noise >> 20),
        np.zeros_like(t),
        np.full_like(t, FULL - 1),
        noise,
    ]
    return np.clip(np.choose(kind, near), 0, FULL - 1)


def setting(m, parts, n):
    words = -(-m // 64)
    thresholds = RNG.integers(1, FULL, (parts, m))  # in no order
    thresholds[0, 0], thresholds[-1, -1] = 1, FULL - 1
    part = RNG.integers(0, parts, n)
    integers = (
        np.stack([draws(1, thresholds[p])[0] for p in part]) if n else np.empty((0, m), np.int64)
    )
    planes = np.array([planes_of(t, words) for t in thresholds], dtype=np.uint64)
    lanes = np.array(
        [sum(1 << b for b in range(64) if 64 * w + b < m) for w in range(words)], dtype=np.uint64
    )
    streams = [serialise(row, thresholds[p], words) for row, p in zip(integers, part, strict=True)]
    return thresholds, part, integers, planes, lanes, streams


def unpacked(out):
    return np.unpackbits(
        out.astype("<u8").view(np.uint8).reshape(len(out), -1), axis=1, bitorder="little"
    )


SIZES = [1, 7, 8, 9, 63, 64, 65, 130, 447, 448, 512, 515, 1300]


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("parts", [1, 3])
def test_bernoulli_words_compare_integers_lane_by_lane(m, parts):
    """All lanes of all rows, the first and the last included; lanes beyond the last item stay 0."""
    n, words = 6, -(-m // 64)
    thresholds, part, integers, planes, lanes, streams = setting(m, parts, n)
    random = np.array(sum(streams, []) + [0] * 32 * words, dtype=np.uint64)
    out = RNG.integers(0, 2**63, (n, words)).astype(
        np.uint64
    )  # what was there before does not matter
    assert bit_kernels.draw_words(out, part, planes, lanes, random, 0)[0] == n
    bits = unpacked(out)
    np.testing.assert_array_equal(bits[:, :m], integers < thresholds[part])
    assert not bits[:, m:].any()


@pytest.mark.parametrize("m", [1, 70, 515, 1300])
@pytest.mark.parametrize("rows", [1, 2.5])
def test_bernoulli_words_stop_between_rows_and_resume(m, rows):
    """A buffer for a row or two: rows are never left half done, none is done twice, every one is
    right at the end.
    """
    n, words = 12, -(-m // 64)
    thresholds, part, integers, planes, lanes, streams = setting(m, 2, n)
    size = int(rows * 32 * words)
    out = np.zeros((n, words), np.uint64)
    done, calls = 0, 0
    while done < n:
        rest = sum(streams[done:], []) + [0] * 32 * words
        before = out.copy()
        now, _ = bit_kernels.draw_words(
            out, part, planes, lanes, np.array(rest[:size], dtype=np.uint64), done
        )
        assert done < now <= n
        np.testing.assert_array_equal(out[:done], before[:done])
        np.testing.assert_array_equal(out[now:], before[now:])
        done, calls = now, calls + 1
    assert calls > 1
    np.testing.assert_array_equal(unpacked(out)[:, :m], integers < thresholds[part])
    assert bit_kernels.draw_words(
        out, part, planes, lanes, np.zeros(32 * words - 1, np.uint64), 0
    ) == (0, 0)


def test_the_comparison_sees_a_threshold_off_by_one():
    """The twin: integers that equal their thresholds give 0; one unit more, and they give 1."""
    thresholds, m = RNG.integers(1, FULL - 1, 70), 70
    random = np.array(serialise(thresholds, thresholds, 2) + [0] * 64, dtype=np.uint64)
    lanes = np.array([2**64 - 1, 2**6 - 1], dtype=np.uint64)
    for shift in (0, 1):
        planes = np.array([planes_of(thresholds + shift, 2)], dtype=np.uint64)
        out = np.zeros((1, 2), np.uint64)
        if shift:  # other thresholds are decided earlier and read other words: give them theirs
            random = np.array(serialise(thresholds, thresholds + 1, 2) + [0] * 64, dtype=np.uint64)
        bit_kernels.draw_words(out, np.zeros(1, np.int64), planes, lanes, random, 0)
        assert unpacked(out)[0, :m].tolist() == [shift] * m


def test_no_rows():
    out = np.zeros((0, 2), np.uint64)
    planes, lanes = np.zeros((1, 32, 2), np.uint64), np.zeros(2, np.uint64)
    assert bit_kernels.draw_words(
        out, np.zeros(0, np.int64), planes, lanes, np.zeros(64, np.uint64), 0
    ) == (0, 0)


@pytest.mark.parametrize("m", [1, 8, 64, 65, 130])
def test_put_bits_replaces_one_bit_and_no_other(m):
    held = np.array([-1, 0, m - 1, m // 2, 0, m - 1], dtype=np.int64)
    bit = np.array([True, True, True, False, False, False])
    for fill in (0, 2**64 - 1):
        words = np.full((6, -(-m // 64)), fill, np.uint64)
        expected = unpacked(words)
        for i, (k, b) in enumerate(zip(held, bit, strict=True)):
            if k >= 0:
                expected[i, k] = b
        bit_kernels.put_bits(words, held, bit)
        np.testing.assert_array_equal(unpacked(words), expected)


@pytest.mark.parametrize("size", [*range(1, 18), 130])
@pytest.mark.parametrize("offset", [0, 1])
def test_put_bytes_is_little_endian(size, offset):
    words = RNG.integers(0, 2**63, (5, -(-size // 8))).astype(np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    out = np.full((5, size + offset), 77, np.uint8)
    bit_kernels.put_bytes(words, out, offset)
    np.testing.assert_array_equal(
        out[:, offset:], words.astype("<u8").view(np.uint8).reshape(5, -1)[:, :size]
    )
    assert (out[:, :offset] == 77).all()


# ---- counting ------------------------------------------------------------------------------------

ROWS = [0, 1, 15, 16, 17, 239, 240, 241, 4096 + 3]


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("fill", ["random", "ones"])
def test_count_bits(n, width, fill):
    words = (
        RNG.integers(0, 2**64, (n, width), dtype=np.uint64)
        if fill == "random"
        else np.full((n, width), 2**64 - 1, np.uint64)
    )
    counts = np.arange(64 * width, dtype=np.int64) + 2**33  # it adds, beyond 32 bits
    packed_kernels.count_bits(words, counts)
    np.testing.assert_array_equal(
        counts - 2**33 - np.arange(64 * width), unpacked(words).sum(axis=0) if n else 0
    )


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("size", [*range(1, 21), 130, 256])
def test_count_columns(n, size):
    body = RNG.integers(0, 256, (n, size), dtype=np.uint8)
    expected = np.unpackbits(body, axis=1, bitorder="little").sum(axis=0)
    np.testing.assert_array_equal(count_columns(body), expected)


def test_count_columns_of_a_view_with_gaps():
    body = RNG.integers(0, 256, (1000, 13), dtype=np.uint8)
    np.testing.assert_array_equal(
        count_columns(body[:, 1:]),
        np.unpackbits(body[:, 1:].copy(), axis=1, bitorder="little").sum(axis=0),
    )


# ---- subsets of fixed size -----------------------------------------------------------------------


def word(r, bound, last=False):
    """The first (or last) 32-bit word that means r below `bound`, by multiplication and
    rejection.
    """
    first, end = -(-r * FULL // bound), -(-(r + 1) * FULL // bound) - 1
    if last:
        return end
    return first if first * bound - r * FULL >= FULL % bound else first + 1


def tables(level_of, count):
    """Items by group, where every group starts, and the groups' bits as 64-bit words."""
    level_of = np.asarray(level_of)
    items = np.argsort(level_of, kind="stable")
    first = np.concatenate(([0], np.cumsum(np.bincount(level_of, minlength=count))))
    mine = np.zeros((count, -(-len(level_of) // 64) * 64), bool)
    mine[:, : len(level_of)] = level_of == np.arange(count)[:, None]
    return items, first, np.packbits(mine, axis=1, bitorder="little").view("<u8")


def subsets(sizes, words, rows=1, group=-1, place=-1, own=False, level_of=None, guess=0):
    """What the kernel makes of these words: the named items of every row, and how many
    were done.
    """
    if level_of is None:
        level_of = [g for g, n in enumerate(sizes[1]) for _ in range(n)]
    out = np.zeros((rows, -(-len(level_of) // 8)), np.uint8)
    people = [np.full(rows, x) for x in (0, group, place, own)]
    wanted = np.atleast_2d(sizes[0]).astype(np.int64)
    done = fixed_kernels.draw_subsets(
        out, 0, *people, wanted, *tables(level_of, len(sizes[1])), np.full_like(wanted, guess),
        np.asarray(words, np.uint32), 0,
    )  # fmt: skip
    named = np.unpackbits(out, axis=1, bitorder="little")[:, : len(level_of)]
    return [tuple(np.flatnonzero(row).tolist()) for row in named], done


def tuples(n, k):
    """All that Floyd's algorithm can draw for k of n: r_j below j + 1, for j = n - k .. n - 1."""
    k = min(k, n - k)
    return list(product(*(range(j + 1) for j in range(n - k, n)))), [*range(n - k + 1, n + 1)]


def assert_uniform(found, wanted):
    """Every wanted subset came equally often, and no other: an exact count, no chance in it."""
    counts = Counter(found)
    assert set(counts) == set(wanted)
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(2, 8) for k in range(1, n)])
def test_subsets_are_uniform(n, k):
    """Fed with every tuple of draws once, which are equally likely: each subset k! times."""
    draws, bounds = tuples(n, k)
    words = [word(r, b) for row in draws for r, b in zip(row, bounds)]
    found, done = subsets(([k], [n]), words, len(draws))
    assert done == len(draws)
    assert_uniform(found, list(combinations(range(n), k)))
    assert len(found) == comb(n, k) * factorial(min(k, n - k))
    if 2 <= k <= n - k:  # the twins: one draw less; repeated items without their second choice
        must_fail(assert_uniform, found[:-1], list(combinations(range(n), k)))
        careless = [tuple(sorted({*row[:-1], n - 1})) for row in draws]
        must_fail(assert_uniform, careless, list(combinations(range(n), k)))


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_subsets_around_the_own_item_are_uniform(n):
    """The own item is in it iff own; the rest is a uniform subset of the others, every rank and
    size.
    """
    for k, place, own in product(range(1, n), range(n), (False, True)):
        if not own and k > n - 1:
            continue
        draws, bounds = tuples(n - 1, k - own)
        words = [word(r, b) for row in draws for r, b in zip(row, bounds)]
        found, done = subsets(([k], [n]), words, len(draws), group=0, place=place, own=own)
        assert done == len(draws)
        others = [i for i in range(n) if i != place]
        rest = combinations(others, k - own)
        assert_uniform(found, [tuple(sorted((*some, *[place][:own]))) for some in rest])


def test_subsets_of_several_groups_are_independent_and_uniform():
    """Two groups that take turns, the own item in the second: the product of both; silent:
    nothing.
    """
    level_of = [1, 0, 1, 0, 1, 1, 0, 0, 0]  # more than a byte
    zero, one = ([i for i, g in enumerate(level_of) if g == x] for x in (0, 1))
    first, second = tuples(5, 2), tuples(3, 1)  # 2 of 5; 1 of the 3 others beside the own item
    draws = [(*a, *b) for a, b in product(first[0], second[0])]
    bounds = [*first[1], *second[1]]
    words = [word(r, b) for row in draws for r, b in zip(row, bounds)]
    found, done = subsets(
        ([2, 2], [5, 4]), words, len(draws), group=1, place=2, own=True, level_of=level_of
    )
    assert done == len(draws)
    others = [i for i in one if i != one[2]]
    pairs = product(combinations(zero, 2), others)
    assert_uniform(found, [tuple(sorted((*some, one[2], other))) for some, other in pairs])
    silent, _ = subsets(
        ([2, 0], [5, 4]), [word(r, b) for row in first[0] for r, b in zip(row, first[1])],
        len(first[0]), group=1, place=2, own=True, level_of=level_of,
    )  # fmt: skip
    assert_uniform(silent, list(combinations(zero, 2)))


@pytest.mark.parametrize("bound", [2, 3, 5, 6, 7, 100, 1000, 65535])
def test_every_value_of_a_draw_has_as_many_words(bound):
    """Lemire's rejection, exactly: floor(2^32 / bound) words mean each r; those at the ends do,
    those below do not.
    """
    for r in {0, 1, bound // 2, bound - 1}:
        assert word(r, bound, last=True) - word(r, bound) + 1 == FULL // bound
        for x in (word(r, bound), word(r, bound, last=True)):
            found, done = subsets(([1], [bound]), [x])
            assert (found, done) == ([(r,)], 1)
        before = word(r, bound) - 1
        if before * bound >= r * FULL:  # a word that a plain multiplication would add to r
            assert subsets(([1], [bound]), [before]) == ([()], 0)
            found, done = subsets(([1], [bound]), [before, word(bound - 1, bound)])
            assert (found, done) == ([(bound - 1,)], 1)
    if bound & (bound - 1):
        assert subsets(([1], [bound]), [0]) == ([()], 0)  # 0 is always among the rejected


def test_a_row_that_runs_out_is_drawn_again():
    words = np.array([word(r, b) for r, b in ((0, 4), (1, 5), (2, 6), (3, 4))], np.uint32)
    out = np.zeros((2, 1), np.uint8)
    people = [np.zeros(2, np.int64), np.full(2, -1), np.full(2, -1), np.zeros(2, bool)]
    rest = [np.array([[3]]), *tables([0] * 6, 1), np.zeros((1, 1), np.int64)]
    # 3 of 6, and a third of the next
    assert fixed_kernels.draw_subsets(out, 0, *people, *rest, words, 0) == 1
    first = out[0].copy()
    assert first[0].bit_count() == 3 and not out[1].any()
    assert fixed_kernels.draw_subsets(out, 0, *people, *rest, words[:3], 1) == 2
    np.testing.assert_array_equal(out, [first, first])  # the same words, the same subset


LARGE = [(6, 3, 8), (6, 2, 5), (7, 5, 12), (6, 3, 1), (6, 3, 15)]


@pytest.mark.parametrize(("n", "k", "chance"), LARGE)
def test_guessed_subsets_are_uniform(n, k, chance):
    """Large subsets start from a guess, whatever its chance: every subset alike, around the own
    item too.

    The twins: another size, an own item that is drawn like the
    others.
    """
    rows, words = 30_000, RNG.integers(0, FULL, 30_000 * 60, dtype=np.uint32)
    level_of = [1, *[0] * n, 1]
    for place, own in ((-1, False), (0, True), (n - 1, False)):
        found, done = subsets(
            ([k, 0], [n, 2]), words, rows, group=0, place=place, own=own, level_of=level_of,
            guess=chance,
        )  # fmt: skip
        assert done == rows
        held = {place + 1} if own else set()
        others = [i for i in range(1, n + 1) if i != place + 1]
        wanted = [tuple(sorted({*some, *held})) for some in combinations(others, k - own)]
        assert_distribution(Counter(found), dict.fromkeys(wanted, 1 / len(wanted)))
        every = list(combinations(range(1, n + 1), k))
        if place >= 0:
            must_fail(assert_distribution, Counter(found), dict.fromkeys(every, 1 / len(every)))
    short, done = subsets(([k, 0], [n, 2]), words[:7], 3, level_of=level_of, guess=chance)
    assert done == 0 and short == [()] * 3


@pytest.mark.parametrize("m", [20, 64, 130, 515])
def test_guessed_subsets_have_their_size_and_every_item_its_chance(m):
    """Groups over several words that take turns: exact sizes, frequencies with a false alarm of
    1e-7.
    """
    rows, of = 4000, np.arange(m) % 2
    sizes, held = [m // 2 // 3, m // 2 // 2], 2
    words = RNG.integers(0, FULL, rows * (40 * (-(-m // 64)) + m), dtype=np.uint32)
    found, done = subsets(
        (sizes, [0, 0]), words, rows, group=0, place=1, own=True, level_of=of, guess=6
    )
    assert done == rows
    named = np.zeros((rows, m))
    for row, items in zip(named, found):
        row[list(items)] = 1
    for g in (0, 1):
        assert (named[:, of == g].sum(axis=1) == sizes[g]).all()
    p = np.array(sizes)[of] / np.bincount(of)[of]
    p[of == 0] = (sizes[0] - 1) / ((of == 0).sum() - 1)
    p[held] = 1
    assert_bernoulli(named.sum(axis=0), rows, p, z_for(m))
    must_fail(assert_bernoulli, np.roll(named.sum(axis=0), 1), rows, p, z_for(m))


def plain_subset(rng_words, members, k, skip=None, own=False):
    """Floyd's algorithm in plain Python, on the smaller of the subset and its complement."""
    pool = [x for i, x in enumerate(members) if i != skip]
    k, n = k - own, len(pool)
    few = min(k, n - k)
    chosen = set()
    for j in range(n - few, n):
        while True:
            wide = int(next(rng_words)) * (j + 1)
            if wide % FULL >= FULL % (j + 1):
                break
        r = wide >> 32
        chosen.add(pool[j] if pool[r] in chosen else pool[r])
    found = chosen if few == k and not 2 * k > n else set(pool) - chosen
    return sorted(found | ({members[skip]} if own else set()))


@pytest.mark.parametrize("m", [3, 8, 9, 64, 70, 500])
def test_subsets_against_plain_python(m):
    """Any words: the same items as Floyd's algorithm in plain Python, over groups in any order."""
    level_of = RNG.integers(0, 3, m)
    level_of[:3] = 0, 1, 2
    groups = [np.flatnonzero(level_of == g).tolist() for g in range(3)]
    sizes = np.array([[int(RNG.integers(0, len(g))) for g in groups] for _ in range(4)])
    n = 40
    part, held = RNG.integers(0, 4, n), RNG.integers(-1, m, n)
    group = np.where(held < 0, -1, level_of[held])
    place = np.array([-1 if x < 0 else groups[level_of[x]].index(x) for x in held])
    own = RNG.random(n) < 0.5
    words = RNG.integers(0, FULL, 4 * n * m + 100, dtype=np.uint32)
    out = np.zeros((n, 2 + -(-m // 8)), np.uint8)
    out[:, :2] = 77
    assert n == fixed_kernels.draw_subsets(
        out, 2, part, group, place, own, sizes, *tables(level_of, 3), 0 * sizes, words, 0
    )
    assert (out[:, :2] == 77).all()
    stream = iter(words)
    for i in range(n):
        wanted = []
        for g, members in enumerate(groups):
            k = int(sizes[part[i], g])
            if k:
                mine = group[i] == g
                wanted += plain_subset(
                    stream, members, k, int(place[i]) if mine else None, bool(mine and own[i])
                )
        bits = np.unpackbits(out[i, 2:], bitorder="little")[:m]
        assert np.flatnonzero(bits).tolist() == sorted(wanted), i


@pytest.mark.parametrize("m", [1, 7, 8, 13, 70])
def test_wrong_sizes(m):
    """Rows of the right sizes, of one more or less, of another part's: against plain counting."""
    n, parts = 400, 3
    groups = RNG.integers(0, min(m, 4), m)
    masks = tables(groups, 4)[2]
    bits = RNG.random((n, m)) < 0.5
    part = RNG.integers(0, parts, n)
    sums = np.stack([bits[:, groups == g].sum(axis=1) for g in range(4)], axis=1)
    sizes = sums[:parts].astype(np.int64)  # what the first rows have
    part[:parts] = np.arange(parts)
    padded = np.zeros((n, masks.shape[1] * 64), bool)
    padded[:, :m] = bits
    body = np.packbits(padded, axis=1, bitorder="little").view("<u8")
    wrong = RNG.random(n) < 0.5  # overwritten
    fixed_kernels.find_wrong_sizes(body, part, masks, sizes, wrong)
    np.testing.assert_array_equal(wrong, (sums != sizes[part]).any(axis=1))
    assert not wrong[:parts].any() and (m == 1 or wrong.any())


# ---- tickets -------------------------------------------------------------------------------------

FIELDS = [(3, 2), (5, 2), (5, 3), (7, 4), (11, 8), (37, 3), (61, 3), (211, 2), (1621, 2)]


def named(ticket, q, t, item, limit):
    """Whether a ticket names an item, in plain Python."""
    digits = [ticket // q**k % q for k in range(t, -1, -1)]
    codes = code({"encoding": {"q": q, "t": t}}, item)
    return (digits[0] + sum(a * c for a, c in zip(digits[1:], codes, strict=True))) % q < limit


def tallied(tickets, q, t, limits):
    counts = np.full(len(limits), 7, np.int64)  # it adds
    ticket_kernels.count_tickets(
        np.asarray(tickets, np.uint32), q, t, np.asarray(limits, np.uint16), counts
    )
    return (counts - 7).tolist()


@pytest.mark.parametrize(("q", "t"), FIELDS)
def test_counting_tickets_is_naming_item_by_item(q, t):
    """All digits, the first and the last ticket, items up to the last of the field, silent ones."""
    last = q ** (t + 1)
    for m in sorted({1, 2, q - 1, q, q + 1, min(q**t, 300)}):
        if m > 400:
            continue
        tickets = [0, 1, q, q**t, last - 1, last // 2, *RNG.integers(0, last, 40).tolist()]
        limits = RNG.integers(0, q, m).tolist()
        limits[0], limits[-1] = q - 1, 1
        limits[m // 2] = 0 if m > 2 else limits[m // 2]
        wanted = [sum(named(y, q, t, i, limits[i]) for y in tickets) for i in range(m)]
        assert tallied(tickets, q, t, limits) == wanted
        assert tallied([], q, t, limits) == [0] * m


def test_the_last_items_of_a_field():
    """m = q^t: every item, the last runs too."""
    for q, t in ((3, 2), (5, 3), (7, 2)):
        m = q**t
        tickets = RNG.integers(0, q ** (t + 1), 50).tolist()
        limits = RNG.integers(0, q, m).tolist()
        wanted = [sum(named(y, q, t, i, limits[i]) for y in tickets) for i in range(m)]
        assert tallied(tickets, q, t, limits) == wanted


@pytest.mark.parametrize(("q", "t"), [(3, 2), (5, 2), (5, 3)])
def test_marks_are_uniform_and_pairwise_independent(q, t):
    """Over all tickets every item is named T q^t times, any two T T' q^(t-1) times: exactly."""
    m, every = q**t, np.arange(q ** (t + 1), dtype=np.uint32)
    limits = RNG.integers(1, q, m)
    assert tallied(every, q, t, limits) == (limits * q**t).tolist()
    some = RNG.choice(m, min(m, 6), replace=False)
    for i, j in combinations(some.tolist(), 2):
        mine = [y for y in every.tolist() if named(y, q, t, i, limits[i])]
        assert tallied(mine, q, t, limits)[j] == limits[i] * limits[j] * q ** (t - 1)
    # the twin: two items with one code would always be named together
    must_fail(
        lambda: np.testing.assert_equal(
            tallied(mine, q, t, limits)[i], limits[i] * limits[i] * q ** (t - 1)
        )
    )


@pytest.mark.parametrize(("q", "t"), [(3, 2), (5, 2), (5, 3)])
def test_tickets_are_a_bijection_of_the_draws(q, t):
    """Every mark and rest once: each ticket that gives the item such a mark comes exactly once."""
    for item in sorted({0, 1, q, q**t - 1}):
        codes = np.array([code({"encoding": {"q": q, "t": t}}, item)])
        for low, span in ((0, q), (0, 1), (1, q - 1), (q - 1, 1), (1, 1)):
            draws = list(product(range(span), range(q**t)))
            words = [word(x, b) for row in draws for x, b in zip(row, (span, q**t))]
            n, out = len(draws), np.zeros(len(draws), np.uint32)
            people = [np.full(n, x) for x in (2, low, span)]
            arguments = (*people, np.repeat(codes, n, axis=0), q, t, np.array(words, np.uint32))
            assert ticket_kernels.draw_tickets(out, *arguments, 0) == n
            part, y = np.divmod(out.astype(int), q ** (t + 1))
            assert (part == 2).all()
            wanted = [
                x for x in range(q ** (t + 1))
                if named(x, q, t, item, low + span) and not named(x, q, t, item, low)
            ]  # fmt: skip
            assert sorted(y.tolist()) == wanted
            # out of words in the middle of a row: it is drawn again
            short = (*people, np.repeat(codes, n, axis=0), q, t, np.array(words[:3], np.uint32))
            assert ticket_kernels.draw_tickets(out, *short, 0) == min(1, n)
    rejected = np.array([0, word(1, 3), 0, word(4, 9)], np.uint32)  # 0 means nothing below 3 or 9
    out = np.zeros(1, np.uint32)
    one = [np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, 3), np.zeros((1, 2), np.int64)]
    assert ticket_kernels.draw_tickets(out, *one, 3, 2, rejected, 0) == 1 and out[0] == 1 * 9 + 4


@pytest.mark.parametrize(("q", "t"), [(3, 2), (5, 2), (5, 3), (7, 4), (37, 2)])
def test_the_transform_of_a_histogram_is_counting_one_by_one(q, t):
    """The two ways to count agree for every item of the field, silent ones too."""
    numbers = RNG.integers(0, q ** (t + 1), 500).astype(np.uint32)
    limits = RNG.integers(0, q, min(q**t, 700))
    limits[0], limits[-1] = q - 1, 0
    coder = object.__new__(TicketBlocks)
    coder.q, coder.t, coder.m = q, t, len(limits)
    table = np.zeros(q ** (t + 1), np.int32)
    tiny = np.zeros(len(table), np.uint8)
    assert ticket_kernels.add_tickets(numbers, tiny, table) == 0
    table += tiny
    assert table.sum() == 500
    assert coder._transform(table, limits).tolist() == tallied(numbers, q, t, limits)
    table[0] += 1  # the twin: one ticket more, which names the first item
    assert coder._transform(table, limits).tolist() != tallied(numbers, q, t, limits)


@pytest.mark.parametrize("many", [0, 1, 255, 256, 257, 1000])
def test_counters_of_a_byte_overflow_into_the_table(many):
    """Counted in two calls: a counter goes on where it was; what is beyond the table is told."""
    numbers = np.array([0, 4, 5, 6, 2**32 - 1, *[2] * many], np.uint32)
    tiny, table = np.zeros(5, np.uint8), np.zeros(5, np.uint32)
    for times in (1, 2):
        assert ticket_kernels.add_tickets(numbers, tiny, table) == 3
        assert (table + tiny).tolist() == [times, 0, times * many, 0, times]
        assert not (table % 256).any()


def test_numbers_that_count_many_times():
    numbers, times = np.array([0, 4, 4, 5, 2**32 - 1], np.uint32), np.array([2**40, 1, 2, 30, 400])
    table = np.arange(5)
    assert ticket_kernels.add_times(numbers, times, table) == 430
    assert table.tolist() == [2**40, 1, 2, 3, 4 + 3]


def test_more_tickets_than_a_counter_of_16_bits_holds():
    for n in (65534, 65535, 65536, 140_000):
        assert tallied(np.zeros(n), 5, 2, [1, 4, 0, 2, 1, 1]) == [n, n, 0, n, n, n]


# ---- compiling -----------------------------------------------------------------------------------


def test_who_can_write_nowhere_compiles_in_every_process():
    """A service without a home, whose package belongs to root: there is no folder to keep it in."""
    code_ = "from discreet.arrays.kernels import bits; print(bits.draw_words.stats.cache_path)"
    nowhere = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    nowhere.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code_], env=nowhere, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("None\n", 0), done.stderr


# ---- compiling -----------------------------------------------------------------------------------

LOOPS = """
from discreet.arrays.kernels.jit import compiled

@compiled
def one_more(x):
    return x + 1

@compiled
def two_more(x):
    return x + 2

print(one_more(1), two_more(1))
"""


def test_compiling_is_said_once_on_a_terminal_and_not_elsewhere(tmp_path):
    script = tmp_path / "loops.py"
    script.write_text(LOOPS, encoding="utf-8")
    first, again = seen_at_a_terminal(script), seen_at_a_terminal(script)
    assert first.count("compiling once") == 1 and "2 3" in first
    assert "compiling" not in again and "2 3" in again  # the machine code was kept
    other = tmp_path / "others.py"
    other.write_text(LOOPS, encoding="utf-8")
    piped = subprocess.run([sys.executable, other], capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("2 3\n", "")
