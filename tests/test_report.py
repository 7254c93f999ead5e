"""The bytes on the wire, byte by byte (DESIGN "Wire format"), and what makes a report unacceptable."""

import numpy as np
import pytest
from conftest import three_levels

import discreet as d
from discreet import report
from discreet.errors import DataError, ReportError
from discreet.exact import D, P
from discreet.mechanism import Mechanism, Part


def bits_of(m, parts=1, encoding="bits"):
    """A mechanism of m items in one level with this many equal parts."""
    policy = d.Policy.from_levels([("all", 1, [f"i{k}" for k in range(m)])])
    b, q = (D // 4, D) if encoding == "bits" else (P // 4, P)
    shares = [D // parts + (D % parts if k == 0 else 0) for k in range(parts)]
    return Mechanism(
        policy, "oue", encoding, tuple(Part(share, (D // 3,), (b,), q) for share in shares)
    )


def item_of(m):
    return d.design(d.Policy.from_levels([("all", 1, [f"i{k}" for k in range(m)])]), "grr")


def triple(s, t, r):
    return b"".join(x.to_bytes(4, "little") for x in (s, t, r))


def reason(mechanism, raw):
    """The reason of the refusal, or "" for a report that is accepted; check and tally must agree."""
    tally = mechanism.tally([raw])
    try:
        report.check(mechanism, raw)
    except ReportError as error:
        assert tally.n == 0 and tally.refused == {error.reason: 1} and not tally.counts.any()
        assert error.reason in report.REASONS and "{" not in str(error) and "\n" not in str(error)
        return error.reason
    assert tally.n == 1 and not tally.refused
    return ""


KINDS = {
    "bits": bits_of(13),
    "bits, whole bytes": bits_of(16),
    "bits, several parts": bits_of(13, parts=3),
    "compact": bits_of(13, encoding="compact"),
    "compact, several parts": bits_of(13, parts=3, encoding="compact"),
    "item": item_of(13),
}
kinds = pytest.mark.parametrize("mechanism", KINDS.values(), ids=KINDS.keys())


# ---- size -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 128, 300])
def test_the_size_follows_from_the_mechanism(m):
    assert bits_of(m).report_size == -(-m // 8)
    assert bits_of(m, parts=2).report_size == -(-m // 8) + 1
    assert bits_of(m, encoding="compact").report_size == 12
    assert bits_of(m, parts=2, encoding="compact").report_size == 13


@kinds
def test_every_other_length_is_refused(mechanism):
    for length in range(41):
        expected = "" if length == mechanism.report_size else "length"
        assert reason(mechanism, bytes(length)) == expected, length


@kinds
def test_a_wrong_length_says_both_lengths(mechanism):
    with pytest.raises(ReportError, match=f"has {mechanism.report_size} bytes, got 40"):
        report.check(mechanism, bytes(40))


@kinds
def test_what_perturb_makes_is_accepted(mechanism):
    rows = mechanism.perturb_many(np.arange(2000) % mechanism.m)
    assert rows.shape == (2000, mechanism.report_size) and rows.dtype == np.uint8
    assert mechanism.tally(rows).n == 2000 and not mechanism.tally(rows).refused
    one = mechanism.perturb("i0")
    assert type(one) is bytes
    assert reason(mechanism, one) == ""


# ---- bits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 256])
@pytest.mark.parametrize("m", [1, 5, 8, 9, 64, 65, 70, 300])
def test_item_k_is_bit_k_mod_8_of_byte_k_div_8(m, parts):
    mechanism = bits_of(m, parts)
    for k in range(m):
        raw = bytearray(mechanism.report_size)
        raw[k // 8 + (parts > 1)] = 1 << k % 8
        tally = mechanism.tally([bytes(raw)])
        assert np.flatnonzero(tally.counts[0]).tolist() == [k] and tally.counts[0, k] == 1
        assert tally.part_n[0] == tally.n == 1


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("m", [1, 5, 7, 9, 15, 65, 70])
def test_every_unused_high_bit_is_refused(m, parts):
    mechanism = bits_of(m, parts)
    for k in range(m, 8 * -(-m // 8)):
        raw = bytearray(mechanism.report_size)
        raw[-1] = 1 << k % 8
        assert reason(mechanism, bytes(raw)) == "padding", k
    full = (2**m - 1).to_bytes(-(-m // 8), "little")
    assert reason(mechanism, bytes(parts > 1) + full) == ""


def test_perturbed_reports_never_set_an_unused_bit():
    rows = bits_of(13).perturb_many(np.zeros(5000, np.int64))
    assert not (rows[:, 1] >> 5).any()


def test_whole_bytes_have_no_unused_bit():
    assert reason(bits_of(16), b"\xff\xff") == ""


# ---- parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@pytest.mark.parametrize("parts", [2, 3, 255, 256])
def test_the_first_byte_is_the_part(parts, encoding):
    mechanism = bits_of(9, parts, encoding)
    rest = bytes(mechanism.report_size - 1)
    for part in range(256):
        raw = bytes([part]) + rest
        if part < parts:
            assert mechanism.tally([raw]).part_n.tolist() == [int(k == part) for k in range(parts)]
            assert reason(mechanism, raw) == ""
        else:
            assert reason(mechanism, raw) == "part"


def test_an_unknown_part_is_named():
    with pytest.raises(ReportError, match="part 7, but the mechanism has parts 0 to 2"):
        report.check(bits_of(13, parts=3), b"\x07\x00\x00")


def test_one_part_has_no_part_byte():
    mechanism = bits_of(16)
    assert mechanism.tally([b"\x01\x00"]).counts[0].tolist() == [1] + [0] * 15


def test_an_unknown_part_is_said_before_anything_else():
    assert reason(bits_of(13, parts=3), b"\x03\xff\xff") == "part"
    assert reason(bits_of(13, parts=3, encoding="compact"), b"\x03" + b"\xff" * 12) == "part"


# ---- compact ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2])
def test_compact_is_s_t_r_little_endian(parts):
    """y_k = [(s + t c + r c^2) mod P < T_k], c = k + 1, with numbers whose bytes all differ."""
    policy = three_levels(sizes=(3, 4, 13))
    base = d.design(policy, "opt0", encoding="compact").parts[0]
    half = Part(D // parts, base.A, base.B, P)
    mechanism = Mechanism(policy, "opt0", "compact", (half,) * parts)
    for s, t, r in [
        (0x01020304, 0x11121314, 0x21222324),
        (0x7FFFFFFE, 1, 0),
        (5, 0x7FFFFFFE, 0x7FFFFFFE),
        (0, 0, 0),
    ]:
        raw = b"\x00" * (parts - 1) + triple(s, t, r)
        thresholds = [base.B[level] for level in policy.level_of]
        expected = [
            int((s + t * (k + 1) + r * (k + 1) ** 2) % P < limit)
            for k, limit in enumerate(thresholds)
        ]
        assert mechanism.tally([raw]).counts[0].tolist() == expected


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("value", [P, P + 1, 2**31, 2**32 - 1])
def test_s_t_and_r_are_below_the_prime(place, value, parts):
    mechanism = bits_of(9, parts, "compact")
    words = [1, 2, 3]
    words[place] = value
    assert reason(mechanism, bytes(parts - 1) + triple(*words)) == "range"
    words[place] = P - 1
    assert reason(mechanism, bytes(parts - 1) + triple(*words)) == ""


# ---- item -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 5, 256, 257, 70_000])
def test_an_item_is_four_bytes_little_endian(m):
    mechanism = item_of(m)
    for k in {0, 1, m - 1, m // 2}:
        tally = mechanism.tally([k.to_bytes(4, "little")])
        assert np.flatnonzero(tally.counts[0]).tolist() == [k]
    for k in (m, m + 1, 2**31, 2**32 - 1):
        assert reason(mechanism, k.to_bytes(4, "little")) == "item"


def test_an_unknown_item_is_named():
    with pytest.raises(ReportError, match="below 13, got 13"):
        report.check(item_of(13), (13).to_bytes(4, "little"))


def test_big_endian_is_not_read():
    assert reason(item_of(13), (1).to_bytes(4, "big")) == "item"


# ---- as_rows ----------------------------------------------------------------------------------------------


@kinds
def test_arrays_and_lists_are_the_same_rows(mechanism):
    size = mechanism.report_size
    array = mechanism.perturb_many(np.arange(10))
    listed = [row.tobytes() for row in array]
    for reports in (
        array,
        listed,
        tuple(listed),
        iter(listed),
        [bytearray(x) for x in listed],
        [memoryview(x) for x in listed],
    ):
        rows, wrong = report.as_rows(mechanism, reports)
        assert wrong == 0 and rows.shape == (10, size) and rows.dtype == np.uint8
        assert np.array_equal(rows, array)


@kinds
def test_lists_of_other_lengths_are_counted(mechanism):
    size = mechanism.report_size
    rows, wrong = report.as_rows(
        mechanism, [bytes(size), b"", bytes(size + 1), bytes(size - 1), bytes(size)]
    )
    assert wrong == 3 and rows.shape == (2, size)
    for width in (0, size - 1, size + 1):
        rows, wrong = report.as_rows(mechanism, np.zeros((4, width), np.uint8))
        assert wrong == 4 and rows.shape == (0, size)


@kinds
def test_no_reports_at_all(mechanism):
    for reports in ([], (), np.empty((0, mechanism.report_size), np.uint8)):
        rows, wrong = report.as_rows(mechanism, reports)
        assert wrong == 0 and rows.shape == (0, mechanism.report_size)
        assert mechanism.tally(reports).n == 0


def test_rows_that_are_not_contiguous():
    mechanism = bits_of(13, parts=2)
    array = mechanism.perturb_many(np.arange(1000) % 13)
    wide = np.zeros((1000, 9), np.uint8)
    wide[:, 2:5] = array
    expected = mechanism.tally(array)
    assert mechanism.tally(wide[:, 2:5]) == expected
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
    ],
)
def test_wrong_types_are_one_sentence(reports):
    with pytest.raises(DataError, match="report"):
        bits_of(13).tally(reports)


@pytest.mark.parametrize("reports", ["ab", ["ab", "cd"], [2, 2], [None], [3.5]], ids=repr)
def test_lists_of_what_is_not_bytes_are_one_sentence(reports):
    with pytest.raises(DataError, match="report"):
        bits_of(13).tally(reports)


@pytest.mark.parametrize("other", ["bits", "compact", "item"])
@pytest.mark.parametrize("mine", ["bits", "compact", "item"])
def test_reports_of_another_encoding_do_not_pass_by_accident(mine, other):
    """Lengths alone tell them apart here: 2, 12 and 4 bytes."""
    rows = KINDS[other].perturb_many(np.arange(100) % 13)
    tally = KINDS[mine].tally(rows)
    assert (tally.n, dict(tally.refused)) == ((100, {}) if mine == other else (0, {"length": 100}))
