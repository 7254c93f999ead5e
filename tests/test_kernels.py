"""The compiled loops against plain Python and numpy, bit by bit, on chosen random words."""

from itertools import product

import numpy as np
import pytest

from discreet import kernels
from discreet.exact import P
from discreet.tally import count_columns

RNG = np.random.default_rng(20)
FULL = 2**32


# ---- Bernoulli bits -----------------------------------------------------------------------------------


def planes_of(integers, words):
    """The 32 bit planes of m integers, most significant first: plane x word, item k at bit k % 64 of word k // 64."""
    planes = [[0] * words for _ in range(32)]
    for k, value in enumerate(integers):
        for j in range(32):
            planes[j][k // 64] |= (int(value) >> (31 - j) & 1) << (k % 64)
    return planes


def needed(row, threshold, words):
    """Planes that every word needs: 8, and on until each of its integers differs from its threshold, at most 32."""
    count = [kernels.PLANES] * words
    for k, (r, t) in enumerate(zip(row.tolist(), threshold.tolist(), strict=True)):
        count[k // 64] = max(count[k // 64], min(32, 33 - (r ^ t).bit_length()))
    return count


def serialise(row, threshold, words):
    """The random words that make one row's integers, in the order in which the kernel reads them."""
    planes, count = planes_of(row, words), needed(row, threshold, words)
    head = (
        [(j, w) for w in range(words) for j in range(8)]
        if words < 8
        else [(j, w) for j in range(8) for w in range(words)]
    )
    tail = [(j, w) for w in range(words) for j in range(8, count[w])]
    return [planes[j][w] for j, w in head + tail]


def draws(n, thresholds):
    """Integers that meet their thresholds in every way: equal, off by one, the same first 8 or 20 bits, the ends, anything."""
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
    assert kernels.bernoulli_words(out, part, planes, lanes, random, 0)[0] == n
    bits = unpacked(out)
    np.testing.assert_array_equal(bits[:, :m], integers < thresholds[part])
    assert not bits[:, m:].any()


@pytest.mark.parametrize("m", [1, 70, 515, 1300])
@pytest.mark.parametrize("rows", [1, 2.5])
def test_bernoulli_words_stop_between_rows_and_resume(m, rows):
    """A buffer for a row or two: rows are never left half done, none is done twice, every one is right at the end."""
    n, words = 12, -(-m // 64)
    thresholds, part, integers, planes, lanes, streams = setting(m, 2, n)
    size = int(rows * 32 * words)
    out = np.zeros((n, words), np.uint64)
    done, calls = 0, 0
    while done < n:
        rest = sum(streams[done:], []) + [0] * 32 * words
        before = out.copy()
        now, _ = kernels.bernoulli_words(
            out, part, planes, lanes, np.array(rest[:size], dtype=np.uint64), done
        )
        assert done < now <= n
        np.testing.assert_array_equal(out[:done], before[:done])
        np.testing.assert_array_equal(out[now:], before[now:])
        done, calls = now, calls + 1
    assert calls > 1
    np.testing.assert_array_equal(unpacked(out)[:, :m], integers < thresholds[part])
    assert kernels.bernoulli_words(
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
        kernels.bernoulli_words(out, np.zeros(1, np.int64), planes, lanes, random, 0)
        assert unpacked(out)[0, :m].tolist() == [shift] * m


def test_no_rows():
    out = np.zeros((0, 2), np.uint64)
    planes, lanes = np.zeros((1, 32, 2), np.uint64), np.zeros(2, np.uint64)
    assert kernels.bernoulli_words(
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
        kernels.put_bits(words, held, bit)
        np.testing.assert_array_equal(unpacked(words), expected)


@pytest.mark.parametrize("size", [*range(1, 18), 130])
@pytest.mark.parametrize("offset", [0, 1])
def test_put_bytes_is_little_endian(size, offset):
    words = RNG.integers(0, 2**63, (5, -(-size // 8))).astype(np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    out = np.full((5, size + offset), 77, np.uint8)
    kernels.put_bytes(words, out, offset)
    np.testing.assert_array_equal(
        out[:, offset:], words.astype("<u8").view(np.uint8).reshape(5, -1)[:, :size]
    )
    assert (out[:, :offset] == 77).all()


# ---- counting -----------------------------------------------------------------------------------------

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
    kernels.count_bits(words, counts)
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


def value(triples, c, prime):
    """(s + t c + r c^2) mod prime, without overflow: everything is below 2^62."""
    s, t, r = triples.astype(np.uint64).T
    q = np.uint64(prime)
    c = np.uint64(c) % q
    return (s + t * c % q + r * (c * c % q) % q) % q


@pytest.mark.parametrize("prime", [5, 7, P])
@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("m", [1, 2, 300])
def test_count_compact(prime, n, m):
    triples = RNG.integers(0, prime, (n, 3), dtype=np.uint32)
    corners = np.array(list(product((0, 1, prime - 1), repeat=3)), dtype=np.uint32)[:n]
    triples[: len(corners)] = corners
    thresholds = RNG.integers(1, prime, m, dtype=np.uint32)
    thresholds[0], thresholds[-1] = 1, prime - 1
    counts = np.full(m, 7, np.int64)
    kernels.count_compact(triples, thresholds, prime, counts)
    assert counts.tolist() == [
        7 + int((value(triples, k + 1, prime) < thresholds[k]).sum()) for k in range(m)
    ]


# ---- compact triples ----------------------------------------------------------------------------------


def triples(place, low, span, prime, words, rows=None):
    """All rows the kernel makes of these words, and how many were done."""
    n = len(place) if rows is None else rows
    out = np.full((n, 3), FULL - 1, np.uint32)
    arrays = (np.asarray(place, np.int64), np.asarray(low, np.uint64), np.asarray(span, np.uint64))
    done = kernels.compact_triples(out, *arrays, prime, np.asarray(words, np.uint32), 0)
    return out, done


@pytest.mark.parametrize("prime", [5, 7])
def test_compact_triples_are_a_bijection_of_the_words(prime):
    """Every place, low and span: all words (v, t, r) give each triple with a value in [low, low + span) exactly once."""
    for place, low in product(range(prime - 1), range(prime)):
        for span in range(1, prime - low + 1):
            words = list(product(range(span), range(prime), range(prime)))
            n = len(words)
            flat = [
                x for v, t, r in words for x in (v, 2 * t + 1, 2 * r)
            ]  # the lowest bit of t and r is dropped
            out, done = triples([place] * n, [low] * n, [span] * n, prime, flat)
            assert done == n
            values = value(out, place + 1, prime)
            assert values.tolist() == [low + v for v, _, _ in words]
            np.testing.assert_array_equal(out[:, 1:], [(t, r) for _, t, r in words])
            wanted = {
                x
                for x in product(range(prime), repeat=3)
                if low <= value(np.array([x]), place + 1, prime)[0] < low + span
            }
            assert set(map(tuple, out.tolist())) == wanted


@pytest.mark.parametrize("place", [0, 1, 16_469, P - 2])
def test_compact_triples_of_the_real_prime(place):
    n = 2000
    low = RNG.integers(0, P - 1, n).astype(np.uint64)
    span = RNG.integers(1, P - low.astype(np.int64) + 1).astype(np.uint64)
    out, done = triples([place] * n, low, span, P, RNG.integers(0, FULL, 12 * n))
    assert done == n
    assert (out < P).all()
    got = value(out, place + 1, P)
    assert ((low <= got) & (got < low + span)).all()


def test_compact_triples_reject_what_would_bias():
    """The words that a plain modulo would fold onto small values are skipped, and those just below are not."""
    limit = FULL // 5 * 5
    for high in range(limit, FULL):
        out, done = triples([0], [0], [5], 5, [high, FULL - 1, 3, 10, 11, FULL - 1, 8, 2])
        assert done == 1 and tuple(out[0, 1:]) == (4, 1)  # 10 >> 1 = 5 and 11 >> 1 = 5 are rejected
        assert value(out, 1, 5)[0] == 3
    out, done = triples([0], [0], [5], 5, [limit - 1, 0, 0])
    assert done == 1 and value(out, 1, 5)[0] == 4
    out, done = triples(
        [0], [0], [2**31], P, [FULL - 1, 0, 2 * P]
    )  # 2^31 divides 2^32: no value is rejected; P itself is, for r
    assert done == 0


def test_compact_triples_draw_an_unfinished_row_again():
    words = [1, 2, 4, 3, 6]  # a row, and two thirds of the next
    out, done = triples([0, 3], [0, 1], [5, 4], 5, words)
    assert done == 1
    assert (out[1] == FULL - 1).all()
    arrays = (np.array([0, 3]), np.array([0, 1], np.uint64), np.array([5, 4], np.uint64))
    first = out[0].copy()
    assert kernels.compact_triples(out, *arrays, 5, np.array([2, 0, 8], np.uint32), 1) == 2
    np.testing.assert_array_equal(out[0], first)
    assert out[1, 1:].tolist() == [0, 4]
    assert value(out[1:], 4, 5)[0] == 1 + 2
