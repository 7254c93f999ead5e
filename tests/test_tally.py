"""Tallies add up exactly, in any order and any split; what is not a report is counted and never used."""

import json
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from conftest import three_levels
from hypothesis import given
from hypothesis import strategies as st

import discreet as d
from discreet.errors import DataError
from discreet.exact import D, P
from discreet.tally import Tally

SMALL = three_levels(sizes=(2, 3, 8))


def in_parts(encoding):
    """Two parts, a quarter and three quarters of the people."""
    first, second = (
        d.design(SMALL, model, encoding=encoding).parts[0] for model in ("opt0", "opt1")
    )
    return d.Mechanism(
        SMALL,
        "mixed",
        encoding,
        (replace(first, numerator=D // 4), replace(second, numerator=D - D // 4)),
    )


MECHANISMS = {
    "bits": d.design(SMALL, "opt0"),
    "parts": in_parts("bits"),
    "compact": d.design(SMALL, "opt0", encoding="compact"),
    "compact parts": in_parts("compact"),
    "direct": d.design(SMALL, "direct"),
}
every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
names = st.sampled_from(sorted(MECHANISMS))


def parts_of(mechanism):
    return max(1, len(mechanism.parts_))


def junk(mechanism):
    """A report for every reason that this mechanism can refuse."""
    size, several = mechanism.report_size, parts_of(mechanism) > 1
    front = b"\x00" if several else b""
    found = {"length": bytes(size + 1)}
    if several:
        found["part"] = b"\xff" + bytes(size - 1)
    if mechanism.direct:
        found["item"] = mechanism.m.to_bytes(4, "little")
    elif mechanism.encoding == "compact":
        found["range"] = front + P.to_bytes(4, "little") + bytes(8)
    else:
        found["padding"] = front + b"\x00\x80"
    return found


def plain(mechanism, rows):
    """The tally in plain Python, without the kernels."""
    part_n, counts = [0] * parts_of(mechanism), np.zeros((parts_of(mechanism), mechanism.m), int)
    for raw in map(bytes, rows):
        part, body = (raw[0], raw[1:]) if len(part_n) > 1 else (0, raw)
        part_n[part] += 1
        if mechanism.direct:
            counts[0, int.from_bytes(body, "little")] += 1
        elif mechanism.encoding == "bits":
            counts[part] += [body[k // 8] >> k % 8 & 1 for k in range(mechanism.m)]
        else:
            s, t, r = (int.from_bytes(body[j : j + 4], "little") for j in (0, 4, 8))
            limits = [mechanism.parts[part].B[level] for level in mechanism.policy.level_of]
            counts[part] += [
                (s + t * c + r * c * c) % P < limit for c, limit in enumerate(limits, 1)
            ]
    return Tally(mechanism, np.array(part_n), counts)


@st.composite
def tallies(draw, mechanism):
    """Any tally that fits the mechanism, with counts up to 2^40."""
    numbers = st.integers(0, 2**40)
    k = parts_of(mechanism)
    counts = np.array(
        draw(st.lists(numbers, min_size=k * mechanism.m, max_size=k * mechanism.m)), np.int64
    ).reshape(k, -1)
    refused = draw(
        st.dictionaries(st.sampled_from(["length", "part", "item"]), st.integers(1, 2**40))
    )
    part_n = counts.sum(axis=1) if mechanism.direct else counts.max(axis=1) + draw(numbers)
    return Tally(mechanism, part_n, counts, refused)


# ---- counting ---------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 700, 5003])
def test_the_count_of_every_bit(mechanism, n):
    rows = mechanism.perturb_many(np.arange(n) % mechanism.m)
    tally = mechanism.tally(rows)
    assert tally == plain(mechanism, rows)
    assert tally.n == n and tally.refused == {}
    assert tally.part_n.dtype == tally.counts.dtype == np.int64


@pytest.mark.parametrize("m", [1, 3, 8, 13, 64, 65, 70, 200])
@pytest.mark.parametrize("parts", [1, 2])
def test_the_count_of_every_bit_for_any_number_of_items(m, parts):
    policy = d.Policy.from_levels([("all", 1, [str(k) for k in range(m)])])
    base = d.design(policy, "oue").parts[0]
    mechanism = d.Mechanism(policy, "oue", "bits", (replace(base, numerator=D // parts),) * parts)
    rows = mechanism.perturb_many(np.zeros(1500, np.int64))
    bits = np.unpackbits(rows[:, parts - 1 :], axis=1, bitorder="little")[:, :m].astype(int)
    part = rows[:, 0] if parts > 1 else np.zeros(len(rows), int)
    tally = mechanism.tally(rows)
    assert np.array_equal(tally.counts, [bits[part == k].sum(axis=0) for k in range(parts)])


@every
def test_all_ones_and_all_zeros(mechanism):
    """Every counter full, in every position: carries must not leak into a neighbour."""
    if mechanism.direct or mechanism.encoding == "compact":
        row = np.zeros(
            mechanism.report_size, np.uint8
        )  # item 0, or the value 0, which is below every threshold
    else:
        full = (2**mechanism.m - 1).to_bytes(2, "little")
        row = np.frombuffer((b"\x00" if parts_of(mechanism) > 1 else b"") + full, np.uint8)
    for n in (16, 240, 255, 256, 257, 4096, 70_001):
        tally = mechanism.tally(np.tile(row, (n, 1)))
        ones = n * (np.arange(mechanism.m) == 0) if mechanism.direct else np.full(mechanism.m, n)
        assert np.array_equal(tally.counts[0], ones)
        assert tally.part_n[0] == tally.n == n


@every
def test_threads_do_not_matter(mechanism):
    rows = mechanism.perturb_many(np.arange(300_000) % mechanism.m)
    first = mechanism.tally(rows, threads=1)
    assert (
        first
        == mechanism.tally(rows, threads=2)
        == mechanism.tally(rows)
        == mechanism.tally(rows, threads=7)
    )
    assert first.n == 300_000


@pytest.mark.parametrize("name", MECHANISMS)
@given(data=st.data())
def test_any_order_and_any_split_give_the_same_tally(name, data):
    mechanism = MECHANISMS[name]
    bad = st.sampled_from(sorted(junk(mechanism).values()))
    good = st.integers(0, mechanism.m - 1).map(lambda k: bytes(mechanism.perturb(k)))
    reports = data.draw(st.lists(good | bad, max_size=20))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reports)), max_size=4)))
    shuffled = data.draw(st.permutations(reports))
    blocks = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(reports)], strict=True)]
    tallies_ = data.draw(st.permutations([mechanism.tally(block) for block in blocks]))
    assert reduce(add, tallies_, Tally.empty(mechanism)) == mechanism.tally(reports)


# ---- adding -----------------------------------------------------------------------------------------------


@given(name=names, data=st.data())
def test_adding_is_exact_commutative_and_associative(name, data):
    mechanism = MECHANISMS[name]
    a, b, c = (data.draw(tallies(mechanism)) for _ in range(3))
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    total = a + b + c
    assert total.n == a.n + b.n + c.n
    assert total.counts.tolist() == [
        [x + y + z for x, y, z in zip(*rows, strict=True)]
        for rows in zip(a.counts.tolist(), b.counts.tolist(), c.counts.tolist(), strict=True)
    ]
    assert total.refused == dict(Counter(a.refused) + Counter(b.refused) + Counter(c.refused))


@given(name=names, data=st.data())
def test_the_empty_tally_is_neutral(name, data):
    mechanism = MECHANISMS[name]
    tally = data.draw(tallies(mechanism))
    assert Tally.empty(mechanism) + tally == tally == tally + Tally.empty(mechanism)
    assert Tally.empty(mechanism) == mechanism.tally() == mechanism.tally([])
    assert Tally.empty(mechanism).n == 0


def test_adding_leaves_both_as_they_were():
    mechanism = MECHANISMS["parts"]
    a, b = (mechanism.tally([*mechanism.perturb_many(np.arange(9)), b"?"]) for _ in range(2))
    kept = json.dumps([x.counts.tolist() for x in (a, b)] + [dict(a.refused), dict(b.refused)])
    assert (a + b).refused == {"length": 2}
    assert (
        json.dumps([x.counts.tolist() for x in (a, b)] + [dict(a.refused), dict(b.refused)]) == kept
    )


def test_a_tally_of_another_mechanism_cannot_be_added():
    for other in ("parts", "compact", "direct"):
        with pytest.raises(DataError, match="fingerprints differ"):
            Tally.empty(MECHANISMS["bits"]) + Tally.empty(MECHANISMS[other])
    relabelled = d.design(three_levels(sizes=(2, 3, 8), question="Another?"), "opt0")
    with pytest.raises(DataError, match="fingerprints differ"):
        Tally.empty(MECHANISMS["bits"]) + Tally.empty(relabelled)


def test_only_tallies_can_be_added():
    for other in (0, None, [1], "tally"):
        with pytest.raises(TypeError):
            Tally.empty(MECHANISMS["bits"]) + other
    with pytest.raises(TypeError):
        sum([Tally.empty(MECHANISMS["bits"])])


def test_equality_sees_every_difference():
    mechanism = MECHANISMS["parts"]
    zero = Tally.empty(mechanism)
    one = np.zeros_like(zero.counts)
    one[0, 0] = 1
    people = np.zeros_like(zero.part_n)
    people[1] = 1
    assert zero == Tally.empty(mechanism)
    assert zero == Tally(mechanism, zero.part_n, zero.counts, {})
    assert zero != Tally(mechanism, zero.part_n, one)
    assert zero != Tally(mechanism, people, zero.counts)
    assert zero != Tally(mechanism, zero.part_n, zero.counts, {"length": 1})
    assert zero != Tally.empty(d.design(SMALL, "opt1"))
    assert zero != 0
    assert zero != None  # noqa: E711


# ---- refused reports --------------------------------------------------------------------------------------


@every
def test_refused_reports_are_counted_by_reason_and_never_used(mechanism):
    good = [bytes(row) for row in mechanism.perturb_many(np.arange(200) % mechanism.m)]
    bad = junk(mechanism)
    mixed = list(good)
    for count, raw in enumerate(bad.values(), 1):
        for place in range(count):
            mixed.insert(37 * place + count, raw)
    tally, clean = mechanism.tally(mixed), mechanism.tally(good)
    assert tally.refused == {reason: count for count, reason in enumerate(bad, 1)}
    assert np.array_equal(tally.counts, clean.counts) and np.array_equal(tally.part_n, clean.part_n)
    assert np.array_equal(tally.estimate().counts, clean.estimate().counts)


@every
def test_refused_rows_of_an_array(mechanism):
    good = mechanism.perturb_many(np.arange(100_000) % mechanism.m)
    bad = {reason: raw for reason, raw in junk(mechanism).items() if reason != "length"}
    rows = np.insert(
        good,
        [5, 70_000],
        np.frombuffer(b"".join(list(bad.values()) * 2), np.uint8).reshape(-1, good.shape[1])[:2],
        0,
    )
    tally = mechanism.tally(rows, threads=2)
    assert sum(tally.refused.values()) == 2 and set(tally.refused) <= set(bad)
    assert np.array_equal(tally.counts, mechanism.tally(good).counts)


@every
def test_a_report_with_two_faults_is_refused_once(mechanism):
    tally = mechanism.tally([b"\xff" * mechanism.report_size] * 5)
    assert tally.n == 0 and sum(tally.refused.values()) == 5 and len(tally.refused) == 1


@every
def test_nothing_but_refused_reports(mechanism):
    tally = mechanism.tally(list(junk(mechanism).values()))
    assert tally.n == 0 and not tally.counts.any()
    with pytest.raises(DataError, match="no reports"):
        tally.estimate()


@every
def test_no_reports_no_estimate(mechanism):
    with pytest.raises(
        DataError, match="^there are no reports in this tally, so there is nothing to estimate$"
    ):
        mechanism.tally([]).estimate()


# ---- file -------------------------------------------------------------------------------------------------


@given(name=names, data=st.data())
def test_save_and_load_round_trip(name, data, tmp_path_factory):
    mechanism = MECHANISMS[name]
    tally = data.draw(tallies(mechanism))
    path = tmp_path_factory.mktemp("tally") / "t.json"
    tally.save(path)
    loaded = Tally.load(path, mechanism)
    assert loaded == tally and dict(loaded.refused) == dict(tally.refused)
    assert loaded.part_n.dtype == loaded.counts.dtype == np.int64
    again = path.with_name("again.json")
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


@every
def test_an_empty_tally_can_be_saved(mechanism, tmp_path):
    Tally.empty(mechanism).save(tmp_path / "t.json")
    assert Tally.load(tmp_path / "t.json", mechanism) == Tally.empty(mechanism)


def test_counts_beyond_32_bits(tmp_path):
    mechanism = MECHANISMS["bits"]
    large = Tally(mechanism, np.array([2**45]), np.full((1, mechanism.m), 2**44))
    large.save(tmp_path / "t.json")
    assert (Tally.load(tmp_path / "t.json", mechanism) + large).n == 2**46
    assert np.isfinite(large.estimate().counts).all()


@pytest.fixture(params=["bits", "parts", "direct"])
def saved(request, tmp_path):
    """A mechanism, the path of a tally of it, and the tally's document."""
    mechanism = MECHANISMS[request.param]
    path = tmp_path / "t.json"
    mechanism.tally([*mechanism.perturb_many(np.arange(50) % mechanism.m), b""]).save(path)
    return mechanism, path, json.loads(path.read_text())


def load_refused(mechanism, path):
    with pytest.raises(DataError) as caught:
        Tally.load(path, mechanism)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


def put(key, value, *inner):
    """A change of document[key][inner...] to a value, or by a function of the old value."""

    def change(document):
        place, last = document, key
        for step in inner:
            place, last = place[last], step
        place[last] = value(place[last]) if callable(value) else value

    return change


DAMAGE = {
    "n one more": put("n", lambda n: n + 1),
    "n zero": put("n", 0),
    "n negative": put("n", -50),
    "n missing": lambda document: document.pop("n"),
    "n text": put("n", "50"),
    "n null": put("n", None),
    "part_n missing": lambda document: document.pop("part_n"),
    "part_n empty": put("part_n", []),
    "part_n a number": put("part_n", 50),
    "part_n null": put("part_n", None),
    "part_n nested": put("part_n", lambda x: [x]),
    "part_n negative": put("part_n", lambda x: [-1 for _ in x]),
    "part_n too long": put("part_n", lambda x: [*x, 0]),
    "part_n huge": put("part_n", lambda x: [2**63 for _ in x]),
    "part_n not a number": put("part_n", lambda x: [float("nan") for _ in x]),
    "counts missing": lambda document: document.pop("counts"),
    "counts empty": put("counts", []),
    "counts null": put("counts", None),
    "counts flat": put("counts", lambda x: x[0]),
    "counts short": put("counts", lambda rows: [row[:-1] for row in rows]),
    "counts long": put("counts", lambda rows: [[*row, 0] for row in rows]),
    "counts ragged": put("counts", lambda row: row[:-1], 0),
    "counts one row more": put("counts", lambda rows: [*rows, rows[0]]),
    "count negative": put("counts", -1, 0, 0),
    "count above n": put("counts", 10**6, 0, 0),
    "count huge": put("counts", 10**30, 0, 0),
    "count 2^63": put("counts", 2**63, 0, 0),
    "count infinite": put("counts", float("inf"), 0, 0),
    "count null": put("counts", None, 0, 0),
    "count a list": put("counts", [1], 0, 0),
    "count a word": put("counts", "many", 0, 0),
    "refused missing": lambda document: document.pop("refused"),
    "refused a list": put("refused", [1]),
    "refused null": put("refused", None),
    "refused a word": put("refused", "many", "length"),
    "refused infinite": put("refused", float("inf"), "length"),
    "format missing": lambda document: document.pop("format"),
    "format of the future": put("format", "discreet-tally/2"),
    "format of a mechanism": put("format", "discreet-mechanism/1"),
    "fingerprint missing": lambda document: document.pop("fingerprint"),
    "fingerprint null": put("fingerprint", None),
    "fingerprint of another": put("fingerprint", "0" * 64),
    "fingerprint cut": put("fingerprint", lambda x: x[:16]),
}
LENIENT = {
    "n a decimal": put("n", lambda n: float(n)),
    "part_n decimals": put("part_n", lambda x: [float(n) for n in x]),
    "part_n fractions": put("part_n", lambda x: [n + 0.5 for n in x]),
    "part_n text": put("part_n", lambda x: [str(n) for n in x]),
    "counts text": put("counts", lambda rows: [[str(n) for n in row] for row in rows]),
    "counts fractions": put("counts", lambda rows: [[n + 0.25 for n in row] for row in rows]),
    "refused negative": put("refused", -3, "length"),
    "refused a fraction": put("refused", 2.5, "length"),
    "refused text": put("refused", "3", "length"),
}


def damaged(path, document, change):
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_tally_is_one_sentence(saved, change):
    mechanism, path, document = saved
    damaged(path, document, change)
    load_refused(mechanism, path)


@pytest.mark.parametrize("change", LENIENT.values(), ids=LENIENT.keys())
def test_counts_that_are_not_whole_numbers_are_refused(saved, change):
    mechanism, path, document = saved
    damaged(path, document, change)
    load_refused(mechanism, path)


def test_part_n_beyond_64_bits_together_is_refused(tmp_path):
    mechanism = MECHANISMS["parts"]
    document = {
        "format": "discreet-tally/1", "fingerprint": mechanism.fingerprint, "n": -2,
        "part_n": [2**63 - 1] * 2, "counts": [[0] * mechanism.m] * 2, "refused": {},
    }  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(document))
    load_refused(mechanism, tmp_path / "t.json")


def test_direct_counts_that_do_not_add_up(tmp_path):
    mechanism = MECHANISMS["direct"]
    path = tmp_path / "t.json"
    mechanism.tally(mechanism.perturb_many(np.arange(50) % mechanism.m)).save(path)
    document = json.loads(path.read_text())
    place = document["counts"][0].index(max(document["counts"][0]))
    damaged(path, document, put("counts", lambda x: x - 1, 0, place))
    assert "do not add up" in load_refused(mechanism, path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b'"tally"',
        b"\xff\xfe\x00",
        b"PAR1",
        b"{}",
        b'{"format": "discreet-tally/1"}',
        b"NaN",
    ],
    ids=repr,
)
def test_a_file_that_is_no_tally(saved, content):
    mechanism, path, _ = saved
    path.write_bytes(content)
    load_refused(mechanism, path)


def test_every_truncation_of_a_tally_is_refused(saved):
    mechanism, path, _ = saved
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        assert "not JSON" in load_refused(mechanism, path)


def test_deeply_nested_json_is_refused(saved):
    mechanism, path, _ = saved
    path.write_text("[" * 100_000)
    load_refused(mechanism, path)


def test_a_tally_of_another_mechanism_is_refused(saved):
    mechanism, path, _ = saved
    other = next(x for x in MECHANISMS.values() if x is not mechanism)
    assert "another mechanism" in load_refused(other, path)


def test_a_tally_that_is_not_there(saved):
    mechanism, path, _ = saved
    assert "cannot be read" in load_refused(mechanism, path.with_name("none.json"))
    assert "cannot be read" in load_refused(mechanism, path.parent)
