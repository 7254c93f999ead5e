"""The bytes on the wire, byte by byte (DESIGN "Wire format"), and why a report is refused."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from types import SimpleNamespace

import exhaustive
import numpy as np
import pytest
from checks import assert_bernoulli, assert_binomial, assert_uncorrelated, must_fail, z_for
from parts import changed, make_part
from small import pair_chances
from strategies import of_kind

import discreet as d
from discreet.arrays import ticket as ticket_blocks
from discreet.arrays.base import BlockCoder, sample
from discreet.arrays.bits import BitsBlocks
from discreet.arrays.hits import HitsBlocks
from discreet.arrays.kernels import bits as bit_kernels
from discreet.arrays.kernels import hits as hits_kernels
from discreet.arrays.packed import count_columns
from discreet.arrays.randomness import BitSource, Keystream
from discreet.arrays.tally import as_rows
from discreet.arrays.ticket import Histogram
from discreet.check import exact_sets
from discreet.check.exact import D
from discreet.encodings import KINDS, NAMES, REASONS, Bits, Fixed, Ticket, from_document
from discreet.encodings.base import is_prime
from discreet.encodings.hits import Hits, unfit_for_hits
from discreet.errors import DataError, DesignError, GuaranteeError, MechanismError
from discreet.mechanism import Mechanism, denominators
from discreet.policy import Budget, Policy
from discreet.promises import sets

ENCODINGS = {"fixed": Fixed(), "bits": Bits(), "ticket": Ticket(5, 2)}


def one_level(m, parts=1, kind="bits", encoding=None):
    """A mechanism of m items in one level with this many equal parts; a third of them named."""
    policy = Policy.from_levels([("all", 2, [f"i{k}" for k in range(m)])])
    encoding = encoding or ENCODINGS[kind]
    over = denominators(encoding, (0,), policy)
    other = 0 if over[0] == 1 else max(1, over[0] // 3)
    own = other and round(min(0.9, 1.5 * other / over[0]) * D)
    chances = [D // parts + (D % parts if k == 0 else 0) for k in range(parts)]
    rows = [make_part((x,), (own,), (other,), None, over, (0,)) for x in chances]
    return Mechanism(policy, "subset", encoding, (0,), rows, (D,))


def silent_somewhere(kind):
    """Two levels that take turns to be silent, eleven items in turns."""
    policy = Policy.from_budgets({f"i{k}": 4 + k % 2 for k in range(11)})
    over = denominators(ENCODINGS[kind], (0, 1), policy)
    half = [base // 2 for base in over]
    rows = [
        make_part((D // 2, D // 2), (D // 2, 0), (half[0], 0), None, over, (0, 1)),
        make_part((D // 4, D // 4), (0, D // 2), (0, half[1]), None, over, (0, 1)),
        make_part((D // 4, D // 4), (0, 0), (0, 0), None, over, (0, 1)),
    ]
    return Mechanism(policy, "subset", ENCODINGS[kind], (0, 1), rows, (D // 2, D // 2))


def reason(mechanism, raw):
    """Why a report is refused, or None; `check`, `refusals` and the tally must agree."""
    found, tally = mechanism.coder.refusal(raw), mechanism.tally([raw])
    assert found is None or found in REASONS
    assert (tally.n, dict(tally.refused)) == ((1, {}) if found is None else (0, {found: 1}))
    assert found is None or not tally.counts.any()
    return found


SUBJECTS = {
    "fixed": one_level(13, kind="fixed"),
    "fixed, several parts": one_level(13, 3, "fixed"),
    "fixed, silent": silent_somewhere("fixed"),
    "bits": one_level(13),
    "bits, whole bytes": one_level(16),
    "bits, several parts": one_level(13, 3),
    "bits, silent": silent_somewhere("bits"),
    "ticket": one_level(13, kind="ticket"),
    "ticket, several parts": one_level(13, 3, "ticket"),
    "ticket, silent": silent_somewhere("ticket"),
}
subjects = pytest.mark.parametrize("mechanism", SUBJECTS.values(), ids=SUBJECTS.keys())
packed = pytest.mark.parametrize("kind", ["fixed", "bits"])
kinds = pytest.mark.parametrize("kind", ENCODINGS)


def some(mechanism, n=200):
    return mechanism.perturb_many(np.arange(n) % mechanism.m)


# ---- size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 128, 300])
def test_the_size_follows_from_the_mechanism(m):
    for kind in ("fixed", "bits"):
        assert one_level(m, kind=kind).report_size == -(-m // 8)
        assert one_level(m, 2, kind).report_size == -(-m // 8) + 1
    for parts in (1, 2):
        assert one_level(m, parts, encoding=Ticket(19, 2)).report_size == 4


@subjects
def test_every_other_length_is_refused(mechanism):
    good = some(mechanism, 1)[0].tobytes()
    for length in range(41):
        raw = (good * 41)[:length]
        expected = None if length == mechanism.report_size else "length"
        assert reason(mechanism, raw) == expected, length


@subjects
def test_what_perturb_makes_is_accepted(mechanism):
    rows = some(mechanism, 2000)
    assert rows.shape == (2000, mechanism.report_size) and rows.dtype == np.uint8
    assert mechanism.tally(rows).n == 2000 and not mechanism.tally(rows).refused
    one = mechanism.perturb("i0")
    assert type(one) is bytes
    assert reason(mechanism, one) is None


@subjects
def test_named_and_counted_are_the_same(mechanism):
    rows = some(mechanism, 300)
    document = mechanism.to_document()
    counts = np.zeros((len(mechanism.parts), mechanism.m), int)
    for row in rows:
        part, named = exhaustive.part_and_named(document, row.tobytes())
        assert mechanism.coder.named(row.tobytes()) == named
        counts[part, named] += 1
    assert np.array_equal(mechanism.tally(rows).counts, counts)


@subjects
def test_the_sentences_of_refusals(mechanism):
    for why in ("length", *mechanism.coder.reasons):
        told = REASONS[why].format(size=mechanism.report_size)
        assert "{" not in told and "\n" not in told


# ---- every report there is ----------------------------------------------------------------------


@kinds
def test_what_is_accepted_is_what_can_be_sent(kind, toy):
    """All reports of the right length, and one look at each: no more, no less than the support."""
    mechanism = of_kind(kind, toy)
    document, size = mechanism.to_document(), mechanism.report_size
    can = {y for x in exhaustive.answers(document) for y in exhaustive.distribution(document, x)}
    if kind == "ticket":
        numbers = range(len(mechanism.parts) * 125 + 50)
        every = [*(k.to_bytes(4, "little") for k in numbers), b"\xff" * 4]
    else:
        every = [bytes(row) for row in product(range(256), repeat=size)]
    accepted = {raw for raw in every if mechanism.coder.refusal(raw) is None}
    assert accepted == can
    tally = mechanism.tally(every)
    assert tally.n == len(can) and sum(tally.refused.values()) == len(every) - len(can)
    rows = np.frombuffer(b"".join(every), np.uint8).reshape(-1, size)
    first = {}
    _, refusals = mechanism.arrays.coder.refusals(rows)
    for why, which in refusals.items():
        for k in np.flatnonzero(which):
            first.setdefault(int(k), why)
    assert [first.get(k) for k in range(len(every))] == list(map(mechanism.coder.refusal, every))


# ---- bits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 256])
@pytest.mark.parametrize("m", [1, 5, 8, 9, 64, 65, 70, 300])
def test_item_k_is_bit_k_mod_8_of_byte_k_div_8(m, parts):
    mechanism = one_level(m, parts)
    for k in range(m):
        raw = bytearray(mechanism.report_size)
        raw[k // 8 + (parts > 1)] = 1 << k % 8
        assert mechanism.coder.named(bytes(raw)) == [k]
        tally = mechanism.tally([bytes(raw)])
        assert np.flatnonzero(tally.counts[0]).tolist() == [k] and tally.counts[0, k] == 1
        assert tally.part_n[0] == tally.n == 1


@packed
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("m", [2, 5, 7, 9, 15, 65, 70])
def test_every_unused_high_bit_is_refused(m, parts, kind):
    mechanism = one_level(m, parts, kind)
    good = some(mechanism, 1)[0]
    for k in range(m, 8 * -(-m // 8)):
        raw = bytearray(good)
        raw[-1] |= 1 << k % 8
        assert reason(mechanism, bytes(raw)) == "tail", k
    if kind == "bits":
        full = (2**m - 1).to_bytes(-(-m // 8), "little")
        assert reason(mechanism, bytes(parts > 1) + full) is None


@packed
def test_perturbed_reports_never_set_an_unused_bit(kind):
    rows = one_level(13, kind=kind).perturb_many(np.zeros(5000, np.int64))
    assert not (rows[:, 1] >> 5).any()


@pytest.mark.parametrize("m", [1, 8, 63, 64, 65, 128, 130])
def test_thresholds_are_sliced_into_bits(m):
    """Bit 31 - j of every item's threshold is in plane j; nothing is drawn beyond the items."""
    group_of, other = np.arange(m) % 2, np.random.default_rng(m).integers(1, D, (3, 2)).tolist()
    parts = [make_part((D // 3,) * 2, (1, 1), row, None, (D, D), (0, 1)) for row in other]
    arrays = SimpleNamespace(group_of=group_of, group_sizes=np.bincount(group_of, minlength=2))
    coder = BitsBlocks(SimpleNamespace(m=m, report_size=-(-m // 8) + 1, parts=parts, arrays=arrays))
    planes, lanes = coder.planes
    words = -(-m // 64)
    assert planes.shape == (3, 32, words) and lanes.shape == (words,)
    assert sum(int(x) << 64 * w for w, x in enumerate(lanes)) == 2**m - 1
    for o in range(3):
        sliced = [sum(int(x) << 64 * w for w, x in enumerate(plane)) for plane in planes[o]]
        found = [
            sum((x >> k & 1) << 31 - j for j, x in enumerate(sliced)) for k in range(64 * words)
        ]
        assert found == [other[o][k % 2] for k in range(m)] + [0] * (64 * words - m)


class Stream(BitSource):
    """The words of a seeded generator, one after another, however they are asked for."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def fill(self, buffer):
        buffer[:] = self.rng.integers(0, 2**64, len(buffer), dtype=np.uint64)


@pytest.mark.parametrize(
    ("m", "parts", "n"), [(13, 1, 9000), (130, 2, 3000), (70, 1, 1), (70, 3, 0)]
)
def test_every_random_word_is_used_once_and_in_order(m, parts, n):
    """Reports drawn in chunks are those of one long row of words, whose last ones are left over."""
    mechanism = one_level(m, parts)
    coder, rng = mechanism.arrays.coder, np.random.default_rng(n)
    part, held, own = np.arange(n) % parts, np.arange(n) % m, rng.random(n) < 0.5
    out = np.empty((n, mechanism.report_size), np.uint8)
    coder._write(Stream(5), held, np.zeros(n, np.int64), part, own, out)
    (planes, lanes), words = coder.planes, -(-m // 64)
    expected, chunk = np.zeros((n, words), np.uint64), np.empty(40 * words * (n + 1), np.uint64)
    Stream(5).fill(chunk)
    done, used = bit_kernels.draw_words(expected, part, planes, lanes, chunk, 0)
    assert done == n and (used > 2 << 15 or n < 3)  # several chunks
    bits = np.unpackbits(expected.view(np.uint8), axis=1, bitorder="little")
    bits[np.arange(n), held] = own
    packed = np.packbits(bits, axis=1, bitorder="little")[:, : -(-m // 8)]
    assert (out[:, parts > 1 :] == packed).all()
    assert parts == 1 or out[:, 0].tolist() == part.tolist()


def test_whole_bytes_have_no_unused_bit():
    assert reason(one_level(16), b"\xff\xff") is None


@packed
@pytest.mark.parametrize("parts", [2, 3, 255, 256])
def test_the_first_byte_is_the_part(parts, kind):
    mechanism = one_level(9, parts, kind)
    rest = some(mechanism, 1)[0].tobytes()[1:]
    for part in range(256):
        raw = bytes([part]) + rest
        assert reason(mechanism, raw) == (None if part < parts else "part")
        if part < parts:
            assert mechanism.tally([raw]).part_n.tolist() == [int(k == part) for k in range(parts)]


def test_one_part_has_no_part_byte():
    assert one_level(16).tally([b"\x01\x00"]).counts[0].tolist() == [1] + [0] * 15


def test_fixed_sizes_are_exact():
    """4 of 13 items: every other number is refused, in every part."""
    mechanism = SUBJECTS["fixed, several parts"]
    for part, k in product(range(3), range(14)):
        raw = bytes([part]) + (2**k - 1).to_bytes(2, "little")
        assert reason(mechanism, raw) == (None if k == 4 else "size"), k


@packed
def test_a_silent_level_is_not_named(kind):
    mechanism = SUBJECTS[f"{kind}, silent"]
    of = mechanism.arrays.group_of
    for row in some(mechanism, 500):
        part, named = row[0], mechanism.coder.named(row.tobytes())
        assert part < 2 or not named
        assert all(of[i] == part for i in named)
        loud = next(i for i in range(11) if of[i] != part or part == 2)
        raw = bytearray(row)
        raw[1 + loud // 8] |= 1 << loud % 8
        assert reason(mechanism, bytes(raw)) == {"fixed": "size", "bits": "silent"}[kind]


def test_reasons_have_an_order():
    """Several things are wrong: the first of the contract's order is said."""
    for kind, last in (("fixed", "size"), ("bits", "silent")):
        mechanism = SUBJECTS[f"{kind}, silent"]
        assert reason(mechanism, b"\x03\xff\xff\xff") == "length"
        assert reason(mechanism, b"\x03\xff\xff") == "part"
        assert reason(mechanism, b"\x02\xff\xff") == "tail"
        assert reason(mechanism, b"\x02\xff\x07") == last


@pytest.mark.parametrize("size", [1, 2, 3, 8, 12, 31, 32, 33, 255, 256, 257, 300])
def test_columns_are_counted_in_rows_of_any_length(size):
    """Short rows are joined, long ones are not; what is left of the rows is counted by itself."""
    rng = np.random.default_rng(size)
    for n in (0, 1, 7, 8, 255, 256, 257, 700):
        body = rng.integers(0, 256, (n, size), dtype=np.uint8)
        expected = np.unpackbits(body, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        found = count_columns(body)
        assert found.tolist() == expected.tolist() and found.dtype == np.int64


@pytest.mark.parametrize(("m", "parts"), [(13, 1), (13, 3), (3000, 1)])
def test_a_block_of_counting_is_4_to_32_megabytes(m, parts):
    coder = one_level(m, parts).arrays.coder
    for rows, most in zip(coder.block, (1 << 22, 1 << 25), strict=True):
        assert rows * coder.size <= most < (rows + 1) * coder.size


# ---- tickets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [2, 3, 4])
def test_a_ticket_is_read_as_the_contract_says(t):
    """Little-endian; part, y_0 … y_t in base q; c_1 = x, c_j = digit + x^j; named if v < T."""
    q, m = 7, 45
    mechanism = one_level(m, 2, encoding=Ticket(q, t))
    rng, limit = np.random.default_rng(t), mechanism.parts[0].ints.other[0]
    for part, _ in product(range(2), range(20)):
        y = rng.integers(0, q, t + 1).tolist()
        number = part * q ** (t + 1) + sum(d_ * q ** (t - k) for k, d_ in enumerate(y))
        raw = number.to_bytes(4, "little")
        named = []
        for i in range(m):
            digits = [i // q**k % q for k in range(t)]
            code = [digits[0]] + [(digits[j - 1] + digits[0] ** j) % q for j in range(2, t + 1)]
            if (y[0] + sum(a * c for a, c in zip(y[1:], code, strict=True))) % q < limit:
                named.append(i)
        assert mechanism.coder.named(raw) == named
        tally = mechanism.tally([raw])
        assert np.flatnonzero(tally.counts[part]).tolist() == named and tally.part_n[part] == 1


def test_tickets_end_where_the_parts_do():
    for parts in (1, 3):
        mechanism = one_level(13, parts, "ticket")
        for number in (0, 1, 125 * parts - 1):
            assert reason(mechanism, number.to_bytes(4, "little")) is None
        for number in (125 * parts, 125 * parts + 1, 2**31, 2**32 - 1):
            assert reason(mechanism, number.to_bytes(4, "little")) == "ticket"
    assert reason(mechanism, (1).to_bytes(4, "big")) == "ticket"


@pytest.mark.parametrize(("q", "t"), [(5, 2), (7, 2), (5, 3), (3, 2)])
def test_codes_differ_and_any_two_marks_are_independent(q, t):
    """Every pair of marks of two items comes equally often over all tickets."""
    m = q**t
    coder = one_level(m, encoding=Ticket(q, t)).arrays.coder
    assert len({tuple(row) for row in coder.codes.tolist()}) == m
    y = np.array(list(product(range(q), repeat=t + 1)))
    marks = (y[:, :1] + y[:, 1:] @ coder.codes.T) % q
    rng = np.random.default_rng(0)
    for _ in range(60):
        i, j = rng.choice(m, 2, replace=False)
        both = np.bincount(marks[:, i] * q + marks[:, j], minlength=q * q)
        assert (both == q ** (t - 1)).all()


def test_aligned_blocks_are_off_common_lines():
    """The powers in the code: no three items of an aligned block of q are on a line (t = 2)."""
    q = 7
    codes = one_level(q**2, encoding=Ticket(q, 2)).arrays.coder.codes
    for block in range(q):
        c = codes[block * q : (block + 1) * q]
        for i, j, k in product(range(q), repeat=3):
            if i < j < k:
                a, b = c[j] - c[i], c[k] - c[i]
                assert (a[0] * b[1] - a[1] * b[0]) % q


@pytest.mark.parametrize(
    ("q", "t", "m", "parts"),
    [
        (4, 2, 5, 1), (1, 2, 1, 1), (5, 1, 5, 1), (2, 2, 3, 1), (3, 3, 9, 1), (5, 2, 26, 1),
        (131, 4, 5, 1), (1621, 2, 5, 2), (61, 4, 5, 6), (65_537, 2, 5, 1), (-5, 2, 5, 1),
        (3, 32, 5, 1), (5, 0, 1, 1),
    ],
)  # fmt: skip
def test_fields_that_do_not_fit(q, t, m, parts):
    assert Ticket(q, t).unfit_size(m, parts)
    with pytest.raises((DesignError, ValueError)):
        one_level(m, parts, encoding=Ticket(q, t))


@pytest.mark.parametrize(
    ("q", "t", "m", "parts"),
    [(3, 2, 9, 1), (5, 2, 25, 3), (1621, 2, 5, 1), (61, 3, 226_981, 256), (7, 6, 5, 5)],
)
def test_fields_that_fit(q, t, m, parts):
    assert Ticket(q, t).unfit_size(m, parts) == ""


def test_primes():
    assert [q for q in range(-3, 32) if is_prime(q)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31]
    assert is_prime(65_521) and not is_prime(65_521 * 3) and not is_prime(251**2)


# ---- in a file ----------------------------------------------------------------------------------


@kinds
def test_encodings_in_a_file(kind):
    encoding = ENCODINGS[kind]
    assert encoding.kind == kind and KINDS[kind] is type(encoding) and encoding.name in NAMES
    assert from_document(encoding.document()) == encoding and encoding.unfit_size(9, 1) == ""
    with pytest.raises(MechanismError, match="parameters"):
        from_document({**encoding.document(), "r": 3})


@pytest.mark.parametrize(
    "raw",
    [
        None, "bits", {}, {"kind": "compact"}, {"kind": "ticket"}, {"kind": "ticket", "q": 5},
        {"kind": "ticket", "q": "5", "t": 2}, {"kind": "ticket", "q": True, "t": 2},
        {"kind": "bits", "q": 5, "t": 2}, {"kind": ["bits"]},
    ],
)  # fmt: skip
def test_what_is_no_encoding(raw):
    with pytest.raises((MechanismError, TypeError)):
        from_document(raw)


# ---- rows ---------------------------------------------------------------------------------------


@subjects
def test_arrays_and_lists_are_the_same_rows(mechanism):
    array = some(mechanism, 10)
    listed = [row.tobytes() for row in array]
    for reports in (
        array,
        listed,
        tuple(listed),
        iter(listed),
        [bytearray(x) for x in listed],
        [memoryview(x) for x in listed],
    ):
        rows, good = as_rows(mechanism, reports)
        assert good.all() and rows.shape == array.shape and rows.dtype == np.uint8
        assert np.array_equal(rows, array)


@subjects
def test_lists_of_other_lengths_are_counted(mechanism):
    size = mechanism.report_size
    mixed = [bytes(size), b"", bytes(size + 1), bytes(size - 1), bytes(size)]
    rows, good = as_rows(mechanism, mixed)
    assert good.tolist() == [True, False, False, False, True] and rows.shape == (2, size)
    for width in (0, size - 1, size + 1):
        rows, good = as_rows(mechanism, np.zeros((4, width), np.uint8))
        assert good.tolist() == [False] * 4 and rows.shape == (0, size)


@subjects
def test_no_reports_at_all(mechanism):
    for reports in ([], (), np.empty((0, mechanism.report_size), np.uint8)):
        rows, good = as_rows(mechanism, reports)
        assert len(good) == 0 and rows.shape == (0, mechanism.report_size)
        assert mechanism.tally(reports).n == 0


@kinds
def test_rows_that_are_not_contiguous(kind):
    mechanism = SUBJECTS[f"{kind}, silent"]
    array = some(mechanism, 1000)
    size = array.shape[1]
    wide = np.zeros((1000, size + 6), np.uint8)
    wide[:, 2 : 2 + size] = array
    expected = mechanism.tally(array)
    assert mechanism.tally(wide[:, 2 : 2 + size]) == expected
    assert mechanism.tally(np.asfortranarray(array)) == expected
    assert mechanism.tally(array[::-1]) == expected
    read_only = array.copy()
    read_only.flags.writeable = False
    assert mechanism.tally(read_only) == expected


@pytest.mark.parametrize(
    "reports",
    [
        pytest.param(b"\x00\x00", id="one report"),
        pytest.param(bytearray(2), id="bytearray"),
        pytest.param(memoryview(b"\x00\x00"), id="memoryview"),
        pytest.param(np.zeros(2, np.uint8), id="one row"),
        pytest.param(np.zeros((1, 1, 2), np.uint8), id="three dimensions"),
        pytest.param(np.zeros((3, 2), np.int64), id="integers"),
        pytest.param(np.zeros((3, 2), np.float64), id="floats"),
        pytest.param(np.zeros((3, 2), bool), id="booleans"),
        pytest.param(7, id="a number"),
        pytest.param(None, id="nothing"),
        pytest.param("ab", id="text"),
        pytest.param(["ab", "cd"], id="texts"),
        pytest.param([2, 2], id="numbers"),
        pytest.param([None], id="nones"),
    ],
)
def test_wrong_types_are_one_sentence(reports):
    with pytest.raises(DataError, match="report"):
        one_level(13).tally(reports)


@pytest.mark.parametrize(("mine", "other"), [("bits", "ticket"), ("ticket", "bits")])
def test_reports_of_another_encoding_do_not_pass_by_accident(mine, other):
    """Lengths alone tell them apart here: 2 and 4 bytes."""
    tally = SUBJECTS[mine].tally(some(SUBJECTS[other], 100))
    assert (tally.n, dict(tally.refused)) == (0, {"length": 100})


# ---- the client: every report with its exact chance ---------------------------------------------

N = 150_000


def sent(mechanism, held):
    """How often every report was sent by N people who all hold the same (None: nothing)."""
    out = np.empty((N, mechanism.report_size), np.uint8)
    mechanism.arrays.coder.write(Keystream(), np.full(N, -1 if held is None else held), out)
    rows, counts = np.unique(out, axis=0, return_counts=True)
    return {row.tobytes(): int(k) for row, k in zip(rows, counts, strict=True)}


def assert_sent(mechanism):
    """Every report, and the own item in every part: false alarm 1e-7 per answer, 5e-7 in all.

    What has the chance p is seen to be off by d with N = 133 p (1 - p) / d^2 (z is below 6.5):
    0.009 at p = 0.1. Cells that are too unlikely to be compared are left out.
    """
    document = mechanism.to_document()
    for held in exhaustive.answers(document):
        exact, seen = exhaustive.distribution(document, held), sent(mechanism, held)
        assert set(seen) <= set(exact), "a report that cannot be sent"
        cells = {}
        for y, p in exact.items():
            o, named = exhaustive.part_and_named(document, y)
            for cell in (y, (o, held in named)):
                count, chance = cells.get(cell, (0, 0))
                cells[cell] = count + seen.get(y, 0), chance + p
        table = np.array([(k, float(p)) for k, p in cells.values() if 60 / N < p < 1 - 60 / N])
        assert_binomial(table[:, 0], N, table[:, 1])


def client_subject(kind, what):
    rows = [("a", 1, ["w", "x"]), ("b", 2, ["y", "z"])]
    policy = Policy.from_levels(rows, kind=what)
    mechanism = of_kind(kind, policy, padding=2 if what == "set" else None)
    assert len(mechanism.parts) > 1
    assert kind == "ticket" or any(0 in part.ints.other for part in mechanism.parts)
    return mechanism


@kinds
@pytest.mark.parametrize("what", ["single", "set"])
def test_the_client_sends_what_the_contract_says(kind, what):
    assert_sent(client_subject(kind, what))


@kinds
def test_a_client_that_draws_the_part_by_the_wrong_level_is_seen(kind, monkeypatch):
    mechanism = client_subject(kind, "single")
    right = BlockCoder._draw_part
    monkeypatch.setattr(
        BlockCoder, "_draw_part", lambda self, source, g: right(self, source, 1 - g)
    )
    must_fail(assert_sent, mechanism)


@kinds
def test_a_client_that_forgets_the_own_item_is_seen(kind):
    mechanism = client_subject(kind, "single")
    mechanism.arrays.coder.own = mechanism.arrays.coder.own - np.where(
        mechanism.arrays.coder.own > 0, D // 20, 0
    ).astype(np.uint32)
    must_fail(assert_sent, mechanism)


def test_a_silent_level_that_draws_its_own_bit_is_seen():
    """One in fifty bits of the own item is set where its level is silent."""
    mechanism = client_subject("bits", "single")
    coder = mechanism.arrays.coder
    coder.own = np.where(coder.own > 0, coder.own, D // 50).astype(np.uint32)
    assert_sent(mechanism)  # the draw is made and not used
    coder.planes  # noqa: B018  made from the right thresholds
    coder.other = np.where(coder.other > 0, coder.other, 1)  # now it is
    must_fail(assert_sent, mechanism)


def test_a_part_for_nothing_that_is_drawn_by_a_level_is_seen():
    mechanism = client_subject("fixed", "set")
    mechanism.arrays.coder.edges[-1] = mechanism.arrays.coder.edges[0]
    must_fail(assert_sent, mechanism)


def test_more_groups_than_are_looped_over():
    """Beyond 64 groups the part is drawn another way: the same chances."""
    policy = Policy.from_budgets({f"i{k}": 4 + k / 100 for k in range(66)})
    groups, rng = tuple(range(66)), np.random.default_rng(1)
    first = rng.integers(D // 4, D // 2, 66).tolist()
    quiet = (0,) * 66
    rows = [
        make_part(chance, quiet, quiet, None, (D,) * 66, groups)
        for chance in (first, [D - x for x in first])
    ]
    mechanism = Mechanism(
        policy, "subset", Bits(), groups, rows, (D // 66,) * 65 + (D - 65 * (D // 66),)
    )
    for held in (0, 30, 65):
        counts = sent(mechanism, held)
        assert_bernoulli(counts[bytes(10)], N, first[held] / D, z_for(3))  # false alarm 1e-7
    must_fail(assert_bernoulli, sent(mechanism, 3)[bytes(10)], N, first[3] / D + 0.02)


def test_a_copy_with_other_numbers_has_its_own_coder():
    mechanism = client_subject("fixed", "single")
    other = replace(mechanism, parts=mechanism.parts[::-1])
    assert other.arrays.coder.own.tolist() == mechanism.arrays.coder.own[::-1].tolist()
    assert d.design(mechanism.policy).arrays.coder is not mechanism.arrays.coder


# ---- tallies and simulations ---------------------------------------------------------------------


@subjects
def test_counts_add_up_if_reports_can_give_them(mechanism):
    """At most as many as there are reports; in subsets of fixed size exactly so many of a group:
    one name more or less is seen, one moved to another item of the group is not.
    """
    coder, fixed = mechanism.arrays.coder, mechanism.encoding.fixed_size
    tally = mechanism.tally(some(mechanism))
    n, counts = tally.part_n, tally.counts
    assert coder.adds_up(n, counts) and coder.adds_up(2 * n, counts) == (not fixed)
    for o, i in product(range(len(n)), range(mechanism.m)):
        for count in (counts[o, i] - 1, counts[o, i] + 1, n[o], n[o] + 1):
            other = counts.copy()
            other[o, i] = count
            fine = count == counts[o, i] if fixed else count <= n[o]
            assert coder.adds_up(n, other) == fine
    if fixed:
        group = np.flatnonzero(coder.group_of == coder.group_of[0])
        least, most = group[np.argsort(counts[0, group])[[0, -1]]]
        counts[0, [least, most]] += [1, -1]
        assert coder.adds_up(n, counts)


def test_large_subsets_are_guessed_with_the_nearest_chance():
    """In sixteenths, at least one and at most 15; small ones are not guessed, nor all but a few."""
    sizes = (1000, 1000, 1000, 96, 20, 20, 18)
    wanted = (9, 991, 8, 33, 9, 12, 9)
    items = {f"{g} {k}": 2 + g / 100 for g, size in enumerate(sizes) for k in range(size)}
    groups = tuple(range(len(sizes)))
    part = make_part(
        [D] * 7, [D * k // n for k, n in zip(wanted, sizes)], wanted, None, sizes, groups
    )
    shares = (D - 6, *([1] * 6))
    made = Mechanism(Policy.from_budgets(items), "subset", Fixed(), groups, [part], shares)
    assert made.arrays.coder.guess.tolist() == [[1, 15, 0, 6, 7, 0, 8]]  # 33 / 96 is 5.5 sixteenths


@kinds
def test_counts_are_drawn_with_the_chances_of_reports(kind):
    """Everybody holds the same item: all items of every part, false alarm 1e-7 per encoding.

    Of fixed sizes these are several blocks of rows, the last of them short.
    """
    mechanism = SUBJECTS[f"{kind}, silent"]
    document, coder, rng = mechanism.to_document(), mechanism.arrays.coder, np.random.default_rng(3)
    m, n, cells = mechanism.m, 2 * ((1 << 22) // mechanism.m) + 3, []
    for held in (0, 5, 10):
        holders = np.zeros((3, m), np.int64)
        holders[:, held] = 100, n - 1, 7
        counts = coder.draw(holders, np.array([100, n, 7]), rng)
        assert coder.adds_up(np.array([100, n, 7]), counts) and not counts[2].any()
        chances = np.diagonal(pair_chances(document, 1, held))
        assert not counts[1][chances == 0].any()
        cells += [(k, p) for k, p in zip(counts[1], chances) if p]
    table = np.array(cells)
    # one of n people holds nothing: a shift far below a standard error
    assert_bernoulli(table[:, 0], n, table[:, 1], z_for(len(table)) + 0.01)
    must_fail(assert_bernoulli, table[:, 0], n, table[:, 1] + 0.01, z_for(len(table)))


@kinds
@pytest.mark.parametrize("what", ["single", "set"])
def test_people_are_drawn_into_parts_by_their_level(kind, what):
    """Everybody is in one part, also whoever holds nothing: false alarm 1e-7 in all."""
    mechanism = client_subject(kind, what)
    document, rng = mechanism.to_document(), np.random.default_rng(9)
    k, found, chances = len(mechanism.parts), [], []
    for held in (0, 3, *([None] if what == "set" else [])):
        truth = np.bincount([held] * N if held is not None else [], minlength=mechanism.m)
        part_n, counts = mechanism.arrays.coder.draw_held(truth, N, rng)
        assert part_n.sum() == N and part_n.dtype == counts.dtype == np.int64
        assert mechanism.arrays.coder.adds_up(part_n, counts)
        g = mechanism.arrays.group_of[held] if held is not None else -1
        rows = [part["none"] if g < 0 else part["chance"][g] for part in document["parts"]]
        named = [np.diagonal(pair_chances(document, o, held)) for o in range(k)]
        found += [*part_n, *counts.ravel()]
        chances += [
            *(x / D for x in rows),
            *(x / D * p for x, row in zip(rows, named) for p in row),
        ]
    keep = np.array([60 / N < p < 1 - 60 / N for p in chances])
    assert_binomial(np.array(found)[keep], N, np.array(chances)[keep])


def test_sets_are_sampled_at_one_of_their_places():
    """A set of three, of one and of none, padding 2: which item speaks, by its share of places."""
    mechanism = client_subject("bits", "set")
    seen = []
    mechanism.arrays.coder.draw_held = lambda truth, n, rng: seen.append((truth, n))
    items, offsets = np.tile([0, 1, 3, 2], N), np.zeros(3 * N + 1, np.int64)
    offsets[1:] = np.cumsum(np.tile([3, 1, 0], N))
    mechanism.arrays.coder.draw_sets(items, offsets, np.random.default_rng(2))
    ((truth, n),) = seen
    assert n == 3 * N and len(truth) == 4 and truth[[0, 1, 3]].sum() == N
    assert_bernoulli(truth, N, np.array([1, 1, 1.5, 1]) / 3, z_for(4))


class Places(BitSource):
    """Gives these places of every set, and keeps how many there were to choose from."""

    def __init__(self, *places):
        self.places, self.bounds = places, None

    def fill(self, buffer):
        raise AssertionError("a place is drawn exactly, by rejection")

    def below(self, bounds):
        self.bounds = bounds.tolist()
        return np.array(self.places, np.uint64)


@pytest.mark.parametrize(
    ("places", "sampled"),
    [((0, 0, 0), [4, -1, 5]), ((1, 0, 0), [7, -1, 5]), ((2, 1, 1), [9, -1, -1])],
)
def test_a_sample_is_one_of_the_places_of_a_set(places, sampled):
    """Three items, none and one, padding 2: the places beyond the items are dummies."""
    source = Places(*places)
    found = sample(source, np.array([4, 7, 9, 5]), np.array([0, 3, 3, 4]), 2)
    assert source.bounds == [3, 2, 2] and found.tolist() == sampled
    nothing = sample(Places(0, 1), np.empty(0, np.int64), np.zeros(3, np.int64), 2)
    assert nothing.tolist() == [-1, -1]
    mechanism = client_subject("bits", "set")
    out = np.empty((3, mechanism.report_size), np.uint8)
    mechanism.arrays.coder.write_sets(
        Keystream(), np.array([0, 1, 3, 2]), np.array([0, 3, 3, 4]), out
    )
    assert mechanism.tally(out).n == 3


@kinds
def test_an_encoding_has_its_parts_checked(kind):
    """One level, e^2 at most: the same part passes, and not if its own item is named too often."""
    mechanism = one_level(13, kind=kind)
    for own, fine in ((mechanism.parts[0].ints.own[0], True), (D // 100 * 95, False)):
        parts = [changed(mechanism.parts[0], own=(own,))]
        found = mechanism.encoding.check(mechanism.policy, (0,), parts)
        assert (found is None) == fine


# ---- many tickets --------------------------------------------------------------------------------


def test_a_histogram_counts_whatever_comes_in_any_order():
    """Every sequence of four steps against a model: numbers once and often, reading, and counters
    that are nearly full, so that the next number must go into wider ones.
    """
    numbers = np.array([0, 2, 2, 5, 9, *[3] * 300], np.uint32)
    times = np.arange(1, 306) * 2**33
    for steps in product(("once", "often", "read", "full"), repeat=4):
        table, model, full = Histogram(6), np.zeros(6, np.int64), False
        for step in steps:
            if step == "once":
                assert table.add(numbers) == 1
                model += np.bincount(numbers)[:6]
                assert (table._large is not None) >= full
                full = False
            elif step == "often":
                assert table.add(numbers, times) == times[4]
                np.add.at(model, numbers[numbers < 6], times[numbers < 6])
            elif step == "full":
                table._since, full = 2**32 - len(numbers), True
            else:
                assert Histogram.total([table]).tolist() == model.tolist(), steps
        other = Histogram(6)
        other.add(numbers)
        both = model + np.bincount(numbers)[:6]
        assert Histogram.total([table, other]).tolist() == both.tolist(), steps
        assert Histogram.total([other, table]).tolist() == both.tolist(), steps


@pytest.mark.parametrize(("since", "wide"), [(2**32 - 6, False), (2**32 - 5, True)])
def test_counters_are_widened_just_before_they_could_overflow(since, wide):
    table = Histogram(2)
    table._since = table._small[1] = since
    assert table.add(np.ones(5, np.uint32)) == 0 and (table._large is not None) == wide
    assert table._since == (5 if wide else since + 5)  # wide ones are not needed again for long
    assert Histogram.total([table]).tolist() == [0, since + 5]
    table, other = Histogram(2), Histogram(2)
    table._since = table._small[1] = since
    other.add(np.ones(5, np.uint32))
    total = Histogram.total([table, other])
    assert total.tolist() == [0, since + 5] and (total.dtype == np.int64) == wide


def test_when_many_tickets_are_worth_a_table(monkeypatch):
    """One level of 13 items over 5^3 tickets: the transform pays from 4 t q^(t + 2) / m tickets on;
    a table is worth it then too, or once as many tickets are held as it has numbers.
    """
    coder = one_level(13, 3, "ticket").arrays.coder
    assert [coder.transform_pays(n) for n in (384, 385)] == [False, True]  # 5000 / 13
    assert [coder.worth_a_table(n) for n in (375, 376)] == [False, True]  # 3 x 125
    monkeypatch.setattr(ticket_blocks, "LARGEST_TABLE", 300)
    assert [coder.worth_a_table(n) for n in (300, 301)] == [False, True]
    for largest, table in ((374, False), (375, True)):
        monkeypatch.setattr(ticket_blocks, "LARGEST_TABLE", largest)
        found = [isinstance(coder.start(n), Histogram) for n in (None, 384, 385)]
        assert found == [table, False, table]
    several = one_level(13, kind="ticket").arrays.coder
    assert [several.worth_a_table(n) for n in (125, 126)] == [False, True]


@pytest.mark.parametrize("what", ["several parts", "silent"])
@pytest.mark.parametrize(
    ("seen", "times", "way"),
    [(125, 1, "count"), (60, 4, "count"), (60, 5, "count_times"), (10, 38, "count_times"),
     (13, 35, "transform"), (7, 2**31, "transform"), (0, 0, "count")],
)  # fmt: skip
def test_a_table_of_tickets_is_decoded_in_three_ways(seen, times, way, what, monkeypatch):
    """One by one, each distinct one once, or by the transform: the same counts."""
    mechanism = replace(SUBJECTS[f"ticket, {what}"])  # with a coder of its own
    coder, used = mechanism.arrays.coder, []
    expected = np.zeros(mechanism.m, np.int64)
    for number in range(seen):
        raw = (125 + number).to_bytes(4, "little")
        expected[exhaustive.part_and_named(mechanism.to_document(), raw)[1]] += times
    for name in ("count", "count_times", "_transform"):
        right = getattr(coder, name)
        monkeypatch.setattr(
            coder, name, lambda *args, name=name, right=right: used.append(name) or right(*args)
        )
    table = np.zeros(125, np.int64)
    table[:seen] = times
    assert coder._decode(1, table, seen * times).tolist() == expected.tolist()
    assert used[0] == {"transform": "_transform"}.get(way, way)


def test_tickets_gathered_in_tables_and_one_by_one_are_added():
    mechanism = one_level(13, 2, "ticket")
    coder, rows = mechanism.arrays.coder, some(mechanism, 900)
    gathered = [coder.start(None), coder.start(10), coder.start(None)]
    assert [isinstance(one, Histogram) for one in gathered] == [True, False, True]
    bad = np.full((3, 4), 255, np.uint8)
    for one, mine in zip(gathered, (rows[:400], rows[400:500], rows[500:]), strict=True):
        assert coder.gather(one, mine) == {}
        assert coder.gather(one, bad) == {"ticket": 3}
        assert coder.gather(one, bad, np.array([1, 2, 30])) == {"ticket": 33}
    total = coder.settle(gathered)
    part_n, counts = total.part_n, total.counts
    expected = mechanism.tally(rows[:450]) + mechanism.tally(rows[450:])
    assert part_n.tolist() == expected.part_n.tolist()
    assert counts.tolist() == expected.counts.tolist()
    total = coder.settle(gathered[1:2])
    part_n, counts = total.part_n, total.counts
    assert part_n.sum() == 100


# ---- hits and each -------------------------------------------------------------------------------

SET_LEVELS = [("a", 1, [f"a{k}" for k in range(4)]), ("c", 2, [f"c{k}" for k in range(30)])]


@cache
def hits(padding=3, prime=65521):
    made = d.design(
        d.Policy.from_levels(SET_LEVELS, kind="set"), padding=padding, model="hits", goal="total"
    )
    if prime == made.encoding.prime:
        return made
    wide = replace(made.encoding, prime=prime)  # the same chances, nearly
    parts = []
    for part in made.parts:
        limit = round(part.ints.limit / part.prime * prime)
        parts.append(replace(changed(part, limit=limit), prime=prime))
    return replace(made, encoding=wide, parts=parts, policy=looser(made.policy))


def looser(policy):
    """A little more budget, for numbers that were rounded for another prime."""
    levels = tuple(replace(x, budget=Budget.parse(float(x.budget) + 0.01)) for x in policy.levels)
    return replace(policy, levels=levels)


def evaluated(mechanism, report):
    """The part of a report and the value of its polynomial for every item, by Horner's rule."""
    width, prime = mechanism.encoding.width, mechanism.encoding.prime
    raw = [int.from_bytes(report[k : k + width], "little") for k in range(1, len(report), width)]
    values = []
    for x in range(1, mechanism.m + 1):
        total = 0
        for c in reversed(raw):
            total = (total * x + c) % prime
        values.append(total)
    return report[0], values


@pytest.mark.parametrize("prime", [65521, 2**31 - 1])
def test_hits_are_read_and_counted_as_the_polynomial_says(prime):
    mechanism = hits(prime=prime)
    people = [set(), {0}, {5, 6, 7}, {0, 1, 5}, set(range(9)), {33}] * 60
    reports = mechanism.perturb_many(people)
    counts = np.zeros((len(mechanism.parts), mechanism.m), int)
    part_n, of = np.zeros(len(mechanism.parts), int), mechanism.arrays.group_of
    for row in reports:
        o, values = evaluated(mechanism, row.tobytes())
        part = mechanism.parts[o]
        named = [i for i, v in enumerate(values) if part.ints.active[of[i]] and v < part.ints.limit]
        assert mechanism.coder.named(row.tobytes()) == named
        assert mechanism.coder.refusal(row.tobytes()) is None
        part_n[o] += 1
        counts[o, named] += 1
    tally = mechanism.tally(reports)
    assert tally.part_n.tolist() == part_n.tolist() and tally.counts.tolist() == counts.tolist()
    times = np.arange(len(reports)) % 4
    weighted = mechanism.tally(reports, times)
    assert weighted == mechanism.tally(np.repeat(reports, times, axis=0))
    assert mechanism.tally(reports[:257]) + mechanism.tally(reports[257:]) == tally


def test_hits_that_are_no_reports_are_refused():
    mechanism = hits()
    good = mechanism.perturb({0}).hex()
    size = mechanism.report_size
    assert size == 1 + 2 * (3 + 2)
    bad = {
        "length": [bytes.fromhex(good)[:-1], bytes.fromhex(good) + b"\0"],
        "part": [bytes([len(mechanism.parts)]) + bytes(size - 1), b"\xff" * size],
        "residue": [bytes(size - 2) + b"\xf1\xff", b"\0\xff\xff" + bytes(size - 3)],
    }
    for reason, reports in bad.items():
        assert [mechanism.coder.refusal(report) for report in reports] == [reason] * len(reports)
        assert mechanism.tally(reports).refused == {reason: len(reports)}
    last = bytes(size - 2) + b"\xf0\xff"  # 65520, the largest residue
    assert mechanism.coder.refusal(last) is None and mechanism.tally([last]).n == 1


class Scripted(BitSource):
    """Words given one after another, then zeros."""

    def __init__(self, *words):
        self.words = list(words)

    def fill(self, buffer):
        flat = buffer.reshape(-1)
        flat[:] = 0
        given, self.words = self.words[: len(flat)], self.words[len(flat) :]
        flat[: len(given)] = given


def test_how_many_own_items_are_named_is_drawn_exactly():
    """Edges of the law in 64 bits: below one it is decided, above too, and at it by further bits,
    as a comparison with the whole fraction says.
    """
    coder = hits(5).arrays.coder
    for o in range(len(coder.parts)):
        for j in range(1, 6):
            law = coder._law(o, j)
            assert len(law) == j and all(x < y for x, y in zip(law, law[1:]))
            for p in law:
                edge = int(p * 2**64)
                below = sum(q < p for q in law)
                beyond = int(p * 2**128) - edge * 2**64  # the next 64 bits of the edge
                exactly = p * 2**64 == edge  # then nothing more is drawn, and it is not below
                cases = [(beyond - 1, below), (beyond + 1, below + 1), (0, below)]
                for more, found in [(0, below + 1)] if exactly else cases:
                    source = Scripted(edge, *([] if exactly else [more]))
                    drawn = coder._numbers(source.fill, np.array([o]), np.array([j]))
                    assert drawn.tolist() == [found] and not source.words
                for draw, found in ((edge - 1, below), (edge + 1, below + 1)):
                    source = Scripted(draw)
                    drawn = coder._numbers(source.fill, np.array([o]), np.array([j]))
                    assert drawn.tolist() == [found]
            source = Scripted(2**64 - 1, 5)  # the largest draw of all
            drawn = coder._numbers(source.fill, np.array([o]), np.array([j]))
            assert drawn.tolist() == [j]


def test_the_law_of_own_items_is_that_of_the_rows():
    coder = hits(5).arrays.coder
    for o, part in enumerate(coder.parts):
        for j in range(1, 6):
            law = [Fraction(0), *coder._law(o, j), Fraction(1)]
            mean = sum(n * (law[n + 1] - law[n]) for n in range(j + 1))
            assert mean / j == exact_sets.own(part.prime, part.ints, j)


@pytest.mark.parametrize("prime", [13, 65521, 2**31 - 1])
def test_polynomials_have_the_values_that_were_drawn(prime):
    """For every number of items and of named ones: below the limit for those, not for the others;
    the free coefficients are as drawn.
    """
    rng, degree = np.random.default_rng(prime), 7
    table = np.array([0, *(pow(x, -1, prime) for x in range(1, prime))]) if prime < 2**16 else []
    inverses = np.array(table, np.int32)
    cases = [(j, n) for j in range(6) for n in range(j + 1)] * 20
    kept = np.array([rng.permutation(12)[:6] for _ in cases])
    count, named = (np.array(column) for column in zip(*cases))
    out, limit = np.empty((len(cases), degree), np.int64), np.full(len(cases), prime // 3)
    random = rng.integers(0, 2**32, 40 * len(cases), dtype=np.uint32)
    done = hits_kernels.draw_polynomials(out, kept, count, named, limit, prime, inverses, random, 0)
    assert done == len(cases) and out.min() >= 0 and out.max() < prime
    for row, items, j, n in zip(out, kept, count, named):
        for k in range(j):
            value = sum(int(c) * (int(items[k]) + 1) ** e for e, c in enumerate(row)) % prime
            assert (value < prime // 3) == (k < n)
    short = hits_kernels.draw_polynomials(
        out, kept, count, named, limit, prime, inverses, random[:50], 0
    )
    assert 0 < short < len(cases)  # and the rest is drawn from further words


def test_a_large_set_is_cut_before_it_is_asked_what_is_active():
    """Six items, two of them active, padding 3: how many active ones are left is hypergeometric."""
    items, n = np.tile([0, 1, 2, 3, 10, 11], 4000), 4000
    offsets, active = np.arange(n + 1) * 6, np.zeros((1, 34), bool)
    active[0, 10:] = True
    kept = np.empty((n, 3), np.int64)
    random = np.random.default_rng(3).integers(0, 2**32, 20 * n, dtype=np.uint32)
    part = np.zeros(n, np.int64)
    assert hits_kernels.cut_sets(kept, items, offsets, part, active, random, 0) == n
    left = (kept >= 0).sum(axis=1)
    for j, chance in enumerate([Fraction(4, 20), Fraction(12, 20), Fraction(4, 20)]):
        assert_bernoulli((left == j).sum(), n, float(chance))
        must_fail(assert_bernoulli, (left == 2).sum(), n, 1.0)  # as if active ones came first
    assert set(kept[left == 2].ravel().tolist()) == {10, 11, -1}


@pytest.mark.parametrize("held", [[0, 3, 9, 33], [1, 32], []])
def test_each_draws_every_bit_on_its_own(held):
    """Held items by `own`, others by `other`, all pairs uncorrelated: 1e-7 each. The first and the
    last item are held, and are not.
    """
    policy = d.Policy.from_levels(SET_LEVELS, kind="each")
    mechanism, n = d.design(policy), 40_000
    reports = mechanism.perturb_many([held] * n)
    assert reports.shape == (n, 5)
    bits = np.unpackbits(reports, axis=1, count=34, bitorder="little")
    own, other = mechanism.arrays.coder.chances
    expected = np.where(np.isin(np.arange(34), held), own[0], other[0])
    for k in range(34):
        assert_bernoulli(bits[:, k].sum(), n, expected[k], z_for(34))
    wrong = (other if 0 in held else own)[0, 0]
    must_fail(assert_bernoulli, bits[:, 0].sum(), n, wrong, z_for(34))
    assert_uncorrelated(bits, expected)
    assert mechanism.tally([b"\xff" * 5]).refused == {"tail": 1}


@pytest.mark.parametrize(
    ("prime", "m", "fits"),
    [
        (5, 4, True), (5, 5, False), (3, 1, False), (5, 1, True), (9, 4, False), (11, 10, True),
        (11, 11, False), (2**31 - 1, 5, True), (2**31 + 11, 5, False), (65521, 65520, True),
    ],
)  # fmt: skip
def test_primes_of_hits(prime, m, fits):
    """Above the items, so that no two share a value; a product of two fits 64 bits."""
    assert is_prime(prime) or prime == 9
    found = Hits(prime).unfit_size(m, 1)
    assert found == (
        "" if fits else f"prime = {prime} must be a prime above {max(m, 4)} and below 2^31"
    )


@pytest.mark.parametrize(("prime", "width"), [(5, 2), (65521, 2), (65537, 4), (2**31 - 1, 4)])
def test_the_size_of_a_polynomial(prime, width):
    assert Hits(prime).width == width
    for padding in (1, 3, 64, None):
        assert Hits(prime).report_size(9, 2, padding) == 1 + width * ((padding or 0) + 2)
    assert Hits(prime).denominator(9) == prime


def test_inverses_modulo_the_prime():
    found = hits().arrays.coder._inverses.astype(np.int64)
    assert len(found) == 65521 and (np.arange(1, 65521) * found[1:] % 65521 == 1).all()
    assert len(hits(prime=2**31 - 1).arrays.coder._inverses) == 0  # worked out one by one


def test_parts_of_hits_are_read_and_refused():
    made = hits()
    for row, part in zip(made.to_document()["parts"], made.parts, strict=True):
        assert made.encoding.part(row, made.denominators, made.groups) == part
    assert made.encoding.unfit_policy(made) is None
    wrong = {"policy": made.policy, "padding": 3, "denominators": made.denominators}
    short = [changed(part, rows=part.ints.rows[:2]) for part in made.parts]
    found = made.encoding.unfit_policy(SimpleNamespace(parts=short, **wrong))
    assert found.startswith("a part needs 3 rows")
    large = SimpleNamespace(parts=made.parts, **{**wrong, "padding": 65})
    assert made.encoding.unfit_policy(large) == unfit_for_hits(made.policy, 65) is not None


@pytest.mark.parametrize(
    ("m", "block"), [(34, (2**24 // 34, 2**27 // 34)), (2**16, (256, 4096)), (2**20, (256, 4096))]
)
def test_a_block_of_hits_looks_at_so_many_items(m, block):
    """16 to 128 million, and never less than 256 or 4,096 reports."""
    coder = HitsBlocks.__new__(HitsBlocks)
    coder.m = m
    assert coder.block == block


@pytest.mark.parametrize(
    ("settings", "padding", "sentence"),
    [
        ({}, 1, None), ({}, 64, None), ({}, 0, "padding = 0 of hits"), ({}, 65, "padding = 65 of"),
        ({}, None, "padding = None of hits"), ({"notion": "avg"}, 3, 'hits are for kind = "set"'),
        ({"pairs": [("a", "c", 2)]}, 3, 'hits are for kind = "set"'),
        ({"kind": "each"}, 3, 'hits are for kind = "set"'),
        ({"kind": "single"}, 3, 'hits are for kind = "set"'),
    ],
)  # fmt: skip
def test_what_hits_are_for(settings, padding, sentence):
    policy = d.Policy.from_levels(SET_LEVELS, **{"kind": "set", **settings})
    found = unfit_for_hits(policy, padding)
    assert found is None if sentence is None else found.startswith(sentence)


def test_rows_that_tell_more_beside_others_are_seen():
    """A millionth of what is learnt, and not more, may differ between the rows of a part."""
    made = hits(3)
    assert made.encoding.unbiased(made)
    last = made.parts[-1]
    learnt = exact_sets.own(last.prime, last.ints) - Fraction(last.ints.limit, last.prime)

    def moved(share):
        """The last row with so much more or less mass where most items are named."""
        tau, *masses = last.ints.rows[-1]
        found = exact_sets.classes(last.prime, last.ints.limit, 3, last.ints.rows[-1])
        weights = exact_sets.weights(last.prime, last.ints.limit, 3)
        means = [Fraction(sum(n * weights[n] for n in ns), whole or 1) for _, whole, ns in found]
        a, b = [k for k in range(3) if masses[k]][:2]
        step = int(share * learnt * 3 / (means[a] - means[b]) * exact_sets.TOTAL)
        masses[a] += step
        masses[b] -= step
        return changed(last, rows=(*last.ints.rows[:-1], (tau, *masses)))

    for share, fine in ((0, True), (5e-7, True), (-5e-7, True), (2e-6, False), (-2e-6, False)):
        parts = (*made.parts[:-1], moved(Fraction(share)))
        assert made.encoding.unbiased(SimpleNamespace(parts=parts)) is fine
        assert made.encoding.unbiased(SimpleNamespace(parts=parts[::-1])) is fine


def drawn_sets(mechanism, held, n):
    """Counts of n people who all have the same set, in all parts together."""
    items, offsets = np.tile(held, n), np.arange(n + 1) * len(held)
    part_n, counts = mechanism.arrays.coder.draw_sets(items, offsets, np.random.default_rng(4))
    assert part_n.sum() == n and part_n.shape == (len(mechanism.parts),)
    assert counts.shape == (len(mechanism.parts), mechanism.m)
    return part_n, counts


@pytest.mark.parametrize("held", [[0, 7, 33], [2], [0, 1, 5, 6, 7, 8]])
def test_sets_of_hits_are_drawn_with_the_chances_of_reports(held):
    """Own items by `own`, a set of six as three of them at random; others by chance; silent ones
    never: false alarm 1e-7 each.
    """
    mechanism, n = hits(3), 60_000
    part_n, counts = drawn_sets(mechanism, held, n)
    cells, mine = [], np.isin(np.arange(34), held)
    for o, part in enumerate(mechanism.parts):
        on = np.array(part.ints.active)[mechanism.arrays.group_of] == 1
        own, other = max(part.by_group.own), part.ints.limit / part.prime
        kept = min(1, 3 / len(held))
        chance = np.where(mine, kept * own + (1 - kept) * other, other)
        assert not counts[o][~on].any()
        cells += [(counts[o, i], part_n[o], chance[i]) for i in np.flatnonzero(on)]
        assert_bernoulli(part_n[o], n, part.ints.chance / D)
    k, many, p = np.array(cells).T
    assert_bernoulli(k, many, p, z_for(len(p)))
    must_fail(assert_bernoulli, k, many, p + 0.02, z_for(len(p)))


def test_sets_of_each_are_drawn_with_the_chances_of_reports():
    mechanism = d.design(d.Policy.from_levels(SET_LEVELS, kind="each"))
    held, n = [0, 3, 9, 33], 60_000
    _, counts = drawn_sets(mechanism, held, n)
    own, other = mechanism.arrays.coder.chances
    chance = np.where(np.isin(np.arange(34), held), own[0], other[0])
    assert_bernoulli(counts[0], n, chance, z_for(34))
    must_fail(assert_bernoulli, counts[0], n, other[0], z_for(34))


def test_each_writes_a_part_of_a_longer_list():
    """Offsets that start and end anywhere: only those items are of these people."""
    mechanism = d.design(d.Policy.from_levels([("a", 16, list("abcdefghijk"))], kind="each"))
    out = np.empty((2, 2), np.uint8)
    items, offsets = np.array([5, 0, 9, 10, 3, 7]), np.array([1, 3, 5])
    wanted = [[0, 9], [3, 10]]
    # a bit is wrong with a chance of e^-8 at most: 22 bits, ten tries, all wrong below 1e-20
    for _ in range(10):
        mechanism.arrays.coder.write_sets(Keystream(), items, offsets, out)
        if [sorted(mechanism.coder.named(row.tobytes())) for row in out] == wanted:
            return
    raise AssertionError("the wrong items are named")


def test_each_names_a_held_item_below_its_threshold():
    """2^32 a draws of 2^32, not one more; whatever was drawn for it as for anybody is replaced."""
    mechanism = d.design(d.Policy.from_levels(SET_LEVELS, kind="each"))
    own, group_of = mechanism.arrays.coder.own[0].astype(int), mechanism.arrays.group_of

    class Edges(BitSource):
        def fill(self, buffer):
            """As few ones as can be for those who do not hold it, and the draws of those who do."""
            buffer[:] = 2**64 - 1 if buffer.dtype == np.uint64 else draws

    items = np.array([0, 0, 9, 9, 33, 33])
    draws = [own[group_of[i]] - (k % 2 == 0) for k, i in enumerate(items)]
    out = np.empty((6, 5), np.uint8)
    mechanism.arrays.coder.write_sets(Edges(), items, np.arange(7), out)
    assert [mechanism.coder.named(row.tobytes()) for row in out] == [[0], [], [9], [], [33], []]


def test_each_is_checked_item_by_item():
    mechanism = d.design(d.Policy.from_levels(SET_LEVELS, kind="each"))
    (part,) = mechanism.parts
    more = changed(part, own=(part.ints.own[0] + D // 100, *part.ints.own[1:]))
    assert mechanism.encoding.check(mechanism.policy, mechanism.groups, [part]) is None
    found = mechanism.encoding.check(mechanism.policy, mechanism.groups, [more])
    assert found is not None and 0 in found.groups
    with pytest.raises(GuaranteeError):
        replace(mechanism, parts=[more])


def test_what_each_is_for():
    policy = d.Policy.from_levels(SET_LEVELS, kind="each")
    mechanism = d.design(policy)
    each = mechanism.encoding
    assert each.unfit_policy(mechanism) is None and each.unfit_size(5, 1) == ""
    assert each.unfit_size(5, 2) == '"each" has one part, got 2'
    part = changed(mechanism.parts[0], chance=(D,))
    short = SimpleNamespace(policy=policy, parts=[part], denominators=mechanism.denominators)
    assert each.unfit_policy(short) == "a part needs 2 numbers of each kind, one per group"
    for other in (replace(policy, kind="set"), d.Policy.from_levels(SET_LEVELS)):
        wrong = SimpleNamespace(
            policy=other, parts=mechanism.parts, denominators=mechanism.denominators
        )
        assert each.unfit_policy(wrong) == '"each" is for kind = "each"'
    for kind in (Bits(), Fixed(), Ticket(7, 2)):
        assert "asks every item on its own" in kind.unfit_policy(mechanism)


def test_only_what_was_sampled_is_scaled():
    """One of two places is reported: every report stands for two. Nothing else samples."""
    item = d.design(d.Policy.from_levels(SET_LEVELS, kind="each"))
    for mechanism, lists, scale in (
        *((client_subject(kind, "set"), "sampled", 2) for kind in ENCODINGS),
        *((client_subject(kind, "single"), "sampled", 1) for kind in ENCODINGS),
        (hits(3), "counted", 1),
        (item, "each", 1),
    ):
        assert (mechanism.encoding.lists, mechanism.scale) == (lists, scale)


def test_what_is_promised_of_sets_follows_from_the_encoding():
    item = d.design(d.Policy.from_levels(SET_LEVELS, kind="each"))
    for mechanism, promises in (
        (client_subject("bits", "set"), sets.Sampled),
        (client_subject("fixed", "set"), sets.Sampled),
        (client_subject("ticket", "set"), sets.Sampled),
        (hits(), sets.Counted),
        (item, sets.OneByOne),
    ):
        assert type(sets.set_promises(mechanism)) is promises
