"""Tallies add up exactly, in any order and any split; what is not a report is counted by its
reason and never used.

Reports are random, what is asserted of them is not: nothing here can fail by chance.
"""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from exhaustive import distribution, groups_of, part_and_named
from hypothesis import given
from hypothesis import strategies as st
from policies import three_levels
from small import build, small

import discreet as d
from discreet.arrays.tally import Tally, TallyBuilder, _step, as_rows
from discreet.arrays.ticket import Histogram
from discreet.encodings import REASONS
from discreet.errors import DataError

SMALL = three_levels(sizes=(2, 3, 8))
MECHANISMS = {
    "fixed": small("fixed"),
    "fixed one": d.design(SMALL, "ss"),
    "bits": small("bits"),
    "bits one": d.design(SMALL, "opt0"),
    "ticket": small("ticket"),
    "ticket one": small("ticket", "one"),
}
every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
names = st.sampled_from(sorted(MECHANISMS))


def reason(document, report):
    """Why this is not a report, in plain Python (the wire format's words, in their order), or
    None.
    """
    m, parts = len(document["policy"]["items"]), document["parts"]
    if document["encoding"]["kind"] == "ticket":
        if len(report) != 4:
            return "length"
        q, t = document["encoding"]["q"], document["encoding"]["t"]
        return "ticket" if int.from_bytes(report, "little") >= len(parts) * q ** (t + 1) else None
    several = len(parts) > 1
    if len(report) != -(-m // 8) + several:
        return "length"
    if several and report[0] >= len(parts):
        return "part"
    part, body = parts[report[0] if several else 0], report[several:]
    bits = [byte >> k & 1 for byte in body for k in range(8)]
    if any(bits[m:]):
        return "tail"
    of = groups_of(document)
    for g, wanted in enumerate(part["other"]):
        named = sum(bits[i] for i in range(m) if of[i] == g)
        if document["encoding"]["kind"] == "fixed" and named != wanted:
            return "size"
        if document["encoding"]["kind"] == "bits" and not wanted and named:
            return "silent"
    return None


def junk(mechanism):
    """A report for every reason that this mechanism can refuse."""
    document, size = mechanism.to_document(), mechanism.report_size
    several, kind = len(mechanism.parts) > 1, document["encoding"]["kind"]
    good = bytes(mechanism.perturb(0))
    found = {"length": bytes(size + 1)}
    if kind == "ticket":
        last = len(mechanism.parts) * mechanism.encoding.tickets
        return {**found, "ticket": last.to_bytes(4, "little")}
    if several:
        found["part"] = bytes([len(mechanism.parts)]) + good[1:]
    found["tail"] = good[:-1] + bytes([good[-1] | 0x80])
    if kind == "fixed":
        found["size"] = good[: -len(good) + several] + bytes(len(good) - several)
    elif several:
        silent = mechanism.parts[1].ints.other.index(0)
        held = groups_of(document).index(silent)
        found["silent"] = b"\x01" + bytes([1 << held])
    return found


def plain(mechanism, rows):
    """The tally in plain Python, without the kernels; the reports that are refused left out."""
    document, k = mechanism.to_document(), len(mechanism.parts)
    part_n, counts = np.zeros(k, np.int64), np.zeros((k, mechanism.m), np.int64)
    refused = Counter()
    for raw in map(bytes, rows):
        why = reason(document, raw)
        if why:
            refused[why] += 1
            continue
        part, named = part_and_named(document, raw)
        part_n[part] += 1
        counts[part, named] += 1
    return Tally(mechanism, part_n, counts, dict(refused))


@st.composite
def tallies(draw, mechanism):
    """Any tally that fits the mechanism, with counts up to 2^40."""
    numbers = st.integers(0, 2**40)
    k = len(mechanism.parts)
    counts = np.array(
        draw(st.lists(numbers, min_size=k * mechanism.m, max_size=k * mechanism.m)), np.int64
    ).reshape(k, -1)
    refused = draw(st.dictionaries(st.sampled_from(sorted(REASONS)), st.integers(1, 2**40)))
    if mechanism.encoding.fixed_size:  # so many items of every group are named by every report
        part_n = np.array(draw(st.lists(numbers, min_size=k, max_size=k)), np.int64)
        return Tally(mechanism, part_n, first_named(mechanism, part_n), refused)
    return Tally(mechanism, counts.max(axis=1) + draw(numbers), counts, refused)


def first_named(mechanism, part_n):
    """The counts if every report named the first items of every group."""
    counts = np.zeros((len(part_n), mechanism.m), np.int64)
    for o, part in enumerate(mechanism.parts):
        for g, size in enumerate(part.ints.other):
            counts[o, np.flatnonzero(mechanism.arrays.group_of == g)[:size]] = part_n[o]
    return counts


# ---- counting ------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 700, 2003])
def test_the_count_of_every_item(mechanism, n):
    rows = mechanism.perturb_many(np.arange(n) % mechanism.m)
    tally = mechanism.tally(rows)
    assert tally == plain(mechanism, rows)
    assert tally.n == n and tally.refused == {}
    assert tally.part_n.dtype == tally.counts.dtype == np.int64


@pytest.mark.parametrize("name", ["fixed", "bits", "ticket", "ticket one"])
def test_every_report_that_can_be_sent_is_counted_as_what_it_says(name):
    """All of them, once each, by itself and together; `named` reads the same."""
    mechanism = MECHANISMS[name]
    document = mechanism.to_document()
    reports = sorted(distribution(document, 0))
    assert mechanism.tally(reports) == plain(mechanism, reports)
    for report in reports:
        part, named = part_and_named(document, report)
        tally = mechanism.tally([report])
        assert tally.part_n.tolist() == [int(o == part) for o in range(len(mechanism.parts))]
        assert np.flatnonzero(tally.counts[part]).tolist() == named
        assert mechanism.coder.named(report) == named
        assert mechanism.coder.refusal(report) is None


@pytest.mark.parametrize("m", [2, 3, 8, 13, 64, 65, 70, 200])
@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
@pytest.mark.parametrize("parts", [1, 2])
def test_the_count_of_every_item_for_any_number_of_items(m, kind, parts):
    m = min(m, 25) if kind == "ticket" else m  # the field has 25 items
    other = {"fixed": max(1, m // 3), "bits": 0.3, "ticket": 2}[kind]
    mechanism = build(kind, [((1 / parts,), (0.5,), (other,))] * parts, level_of=(0,) * m)
    rows = mechanism.perturb_many(np.arange(300) % m)
    assert mechanism.tally(rows) == plain(mechanism, rows)


@every
def test_one_report_many_times(mechanism):
    """Every counter full, in every position: carries must not leak into a neighbour."""
    for row in (mechanism.perturb(0), mechanism.perturb(mechanism.m - 1)):
        part, named = part_and_named(mechanism.to_document(), row)
        for n in (16, 240, 255, 256, 257, 4096, 70_001):
            tally = mechanism.tally(np.tile(np.frombuffer(row, np.uint8), (n, 1)))
            assert tally.part_n[part] == tally.n == n
            assert tally.counts[part].tolist() == [n * (i in named) for i in range(mechanism.m)]


def test_all_ones_and_all_zeros():
    mechanism = MECHANISMS["bits one"]
    for n in (16, 255, 257, 70_001):
        full = np.tile(np.frombuffer(b"\xff\x1f", np.uint8), (n, 1))
        assert mechanism.tally(full).counts[0].tolist() == [n] * 13
        assert mechanism.tally(full * 0).counts[0].tolist() == [0] * 13
    ticket = MECHANISMS["ticket one"]  # ticket 0 gives every item the mark 0
    assert ticket.tally(np.zeros((777, 4), np.uint8)).counts[0].tolist() == [777] * ticket.m


@every
@pytest.mark.parametrize("with_junk", [False, True])
def test_threads_do_not_matter(mechanism, with_junk, monkeypatch):
    """Blocks of a thousand rows, so that threads have something to share."""
    monkeypatch.setattr(type(mechanism.arrays.coder), "block", (1000, 1000))
    rows = mechanism.perturb_many(np.arange(20_000) % mechanism.m)
    if with_junk:
        wrong = {why: raw for why, raw in junk(mechanism).items() if why != "length"}
        for place, raw in enumerate(wrong.values()):
            rows[place::777] = np.frombuffer(raw, np.uint8)
    first = mechanism.tally(rows, threads=1)
    for threads in (2, None, 7):
        assert first == mechanism.tally(rows, threads=threads)
    monkeypatch.undo()
    assert first == mechanism.tally(rows) and first.n + sum(first.refused.values()) == 20_000
    assert bool(first.refused) == (with_junk and bool(wrong))


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


# ---- adding --------------------------------------------------------------------------------------


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
    mechanism = MECHANISMS["fixed"]
    a, b = (mechanism.tally([*mechanism.perturb_many(np.arange(7)), b"?"]) for _ in range(2))
    kept = json.dumps([x.counts.tolist() for x in (a, b)] + [dict(a.refused), dict(b.refused)])
    assert (a + b).refused == {"length": 2}
    assert (
        json.dumps([x.counts.tolist() for x in (a, b)] + [dict(a.refused), dict(b.refused)]) == kept
    )


def test_a_tally_of_another_mechanism_cannot_be_added():
    for other in ("bits", "ticket one", "fixed one"):
        with pytest.raises(DataError, match="fingerprints differ"):
            Tally.empty(MECHANISMS["fixed"]) + Tally.empty(MECHANISMS[other])
    relabelled = d.design(three_levels(sizes=(2, 3, 8), question="Another?"), "opt0")
    with pytest.raises(DataError, match="fingerprints differ"):
        Tally.empty(MECHANISMS["bits one"]) + Tally.empty(relabelled)


def test_only_tallies_can_be_added():
    for other in (0, None, [1], "tally"):
        with pytest.raises(TypeError):
            Tally.empty(MECHANISMS["bits"]) + other
    for other in (1, None, "tally"):
        with pytest.raises(TypeError):
            other + Tally.empty(MECHANISMS["bits"])
    assert sum([Tally.empty(MECHANISMS["bits"])]) == Tally.empty(MECHANISMS["bits"])


def test_equality_sees_every_difference():
    mechanism = MECHANISMS["fixed"]
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


# ---- refused reports -----------------------------------------------------------------------------


def test_every_reason_is_tried():
    tried = set().union(*(junk(mechanism) for mechanism in MECHANISMS.values()))
    # of hits and of picks: test_encodings.py, test_picks.py
    assert tried | {"residue", "order"} == set(REASONS)


@every
def test_refused_reports_are_counted_by_reason_and_never_used(mechanism):
    good = [bytes(row) for row in mechanism.perturb_many(np.arange(200) % mechanism.m)]
    bad = junk(mechanism)
    mixed = list(good)
    for count, raw in enumerate(bad.values(), 1):
        for place in range(count):
            mixed.insert(37 * place + count, raw)
    tally, clean = mechanism.tally(mixed), mechanism.tally(good)
    assert tally.refused == {why: count for count, why in enumerate(bad, 1)}
    assert np.array_equal(tally.counts, clean.counts) and np.array_equal(tally.part_n, clean.part_n)
    np.testing.assert_array_equal(tally.estimate().counts, clean.estimate().counts)
    for why, raw in bad.items():
        assert mechanism.coder.refusal(raw) == reason(mechanism.to_document(), raw) == why


@every
@given(data=st.data())
def test_any_bytes_are_judged_as_by_the_wire_format(mechanism, data):
    """One report at a time (`check`) and in a tally, against plain Python; some have several
    faults.
    """
    size = mechanism.report_size
    raw = st.binary(min_size=size, max_size=size) | st.binary(max_size=size + 2)
    low = st.lists(st.integers(0, 3), min_size=size, max_size=size).map(bytes)
    reports = data.draw(st.lists(raw | low, max_size=12))
    document = mechanism.to_document()
    wanted = [reason(document, report) for report in reports]
    assert [mechanism.coder.refusal(report) for report in reports] == wanted
    assert mechanism.tally(reports) == plain(mechanism, reports)
    assert mechanism.tally(reports).refused == dict(Counter(why for why in wanted if why))


@every
def test_refused_rows_of_an_array(mechanism):
    good = mechanism.perturb_many(np.arange(10_000) % mechanism.m)
    bad = {why: raw for why, raw in junk(mechanism).items() if why != "length"}
    rows = np.insert(
        good, [5, 7000],
        np.frombuffer(b"".join((list(bad.values()) * 2)[:2]), np.uint8).reshape(2, -1), 0,
    )  # fmt: skip
    tally = mechanism.tally(rows, threads=2)
    assert sum(tally.refused.values()) == 2 and set(tally.refused) <= set(bad)
    assert np.array_equal(tally.counts, mechanism.tally(good).counts)
    narrow = mechanism.tally(np.zeros((9, mechanism.report_size + 1), np.uint8))
    assert narrow.refused == {"length": 9} and narrow.n == 0


@every
def test_a_report_with_two_faults_is_refused_once(mechanism):
    tally = mechanism.tally([b"\xff" * mechanism.report_size] * 5)
    first = reason(mechanism.to_document(), b"\xff" * mechanism.report_size)
    assert tally.n == 0 and tally.refused == ({first: 5} if first else {})
    assert first in ("part", "tail", "ticket")


@pytest.mark.parametrize("what", ["fixed", "bits"])
def test_a_part_that_does_not_exist_is_not_looked_at_further(what):
    """Byte 255 in front: no table is read beyond its end, whatever follows."""
    mechanism = MECHANISMS[what]
    rows = np.array([[k, j] for k in range(256) for j in range(256)], np.uint8)
    tally = mechanism.tally(rows)
    assert tally == plain(mechanism, rows)
    assert tally.refused["part"] == 253 * 256


@every
@pytest.mark.parametrize(
    "reports", [b"ab", "ab", 7, None, [1, 2], ["a"], np.zeros((2, 2)), np.zeros(4)]
)
def test_what_is_no_list_of_reports_is_one_sentence(mechanism, reports):
    with pytest.raises(DataError, match="report") as caught:
        mechanism.tally(reports)
    assert "\n" not in str(caught.value)


@every
def test_reports_in_any_form_of_bytes(mechanism):
    rows = mechanism.perturb_many(np.arange(20) % mechanism.m)
    forms = [rows, list(rows), [bytes(r) for r in rows], [bytearray(r) for r in rows],
             (memoryview(bytes(r)) for r in rows), np.asfortranarray(rows),
             np.repeat(rows, 2, axis=0)[::2]]  # fmt: skip
    first, *others = [mechanism.tally(form) for form in forms]
    assert first.n == 20 and all(other == first for other in others)


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


# ---- file ----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("by", [1, -1])
def test_counts_of_fixed_sizes_must_add_up(by, tmp_path):
    mechanism = next(m for m in MECHANISMS.values() if m.encoding.fixed_size)
    part_n = np.full(len(mechanism.parts), 100)
    counts = first_named(mechanism, part_n)
    Tally(mechanism, part_n, counts).save(tmp_path / "good.json")
    assert Tally.load(tmp_path / "good.json", mechanism).n == part_n.sum()
    speaking = next(o for o, part in enumerate(mechanism.parts) if any(part.ints.other))
    place = int(counts[speaking].argmax())
    counts[speaking, place if by < 0 else int(counts[speaking].argmin())] += by
    Tally(mechanism, part_n, counts).save(tmp_path / "bad.json")
    with pytest.raises(DataError, match="do not belong together"):
        Tally.load(tmp_path / "bad.json", mechanism)


@every
def test_what_stands_in_a_file(mechanism, tmp_path):
    tally = mechanism.tally([*mechanism.perturb_many(np.arange(50) % mechanism.m), b""])
    tally.save(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    assert document == {
        "format": "discreet-tally/2", "fingerprint": mechanism.fingerprint, "n": 50,
        "part_n": tally.part_n.tolist(), "counts": tally.counts.tolist(), "refused": {"length": 1},
    }  # fmt: skip


@every
def test_an_empty_tally_can_be_saved(mechanism, tmp_path):
    Tally.empty(mechanism).save(tmp_path / "t.json")
    assert Tally.load(tmp_path / "t.json", mechanism) == Tally.empty(mechanism)


def test_counts_beyond_32_bits(tmp_path):
    mechanism = MECHANISMS["bits one"]
    large = Tally(mechanism, np.array([2**45]), np.full((1, mechanism.m), 2**44))
    large.save(tmp_path / "t.json")
    assert (Tally.load(tmp_path / "t.json", mechanism) + large).n == 2**46
    assert np.isfinite(large.estimate().counts).all()


@pytest.fixture(params=["bits one", "fixed", "ticket"])
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
    "format of the future": put("format", "discreet-tally/3"),
    "format of the past": put("format", "discreet-tally/1"),
    "format of a mechanism": put("format", "discreet-mechanism/3"),
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


@pytest.mark.parametrize("document", [None, [], "tally", 3])
def test_what_is_no_table_is_a_damaged_tally(document):
    with pytest.raises(DataError, match="t.json is damaged: a part of it is missing"):
        d.Tally.from_document(document, "t.json", MECHANISMS["fixed"])


@pytest.mark.parametrize("change", LENIENT.values(), ids=LENIENT.keys())
def test_counts_that_are_not_whole_numbers_are_refused(saved, change):
    mechanism, path, document = saved
    damaged(path, document, change)
    load_refused(mechanism, path)


def test_part_n_beyond_64_bits_together_is_refused(tmp_path):
    mechanism = MECHANISMS["fixed"]
    document = {
        "format": "discreet-tally/2", "fingerprint": mechanism.fingerprint, "n": -2,
        "part_n": [2**63 - 1] * 3, "counts": [[0] * mechanism.m] * 3, "refused": {},
    }  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(document))
    load_refused(mechanism, tmp_path / "t.json")


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
        b'{"format": "discreet-tally/2"}',
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
    for length in range(1, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        told = load_refused(mechanism, path)
        assert "is a damaged tally: its JSON is cut off" in told and "discreet tally" not in told
    for other in (b"", b"PAR1", b"report,count\n"):
        path.write_bytes(other)
        assert "reports are counted into one with: discreet tally" in load_refused(mechanism, path)


def test_a_key_twice_is_refused(saved):
    mechanism, path, _ = saved
    path.write_text(path.read_text().replace('"n": ', '"n": 0, "n": ', 1))
    assert "is a damaged tally" in load_refused(mechanism, path)


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


# ---- reports that were counted before, and streams of them ---------------------------------------


def answers_of(mechanism, n):
    if mechanism.padding is None:
        return np.arange(n) % mechanism.m
    return np.arange(n) % mechanism.m, np.arange(n + 1)


def range_labels(n, first=0):
    return [str(k) for k in range(first, first + n)]


def grouped(rows):
    """Distinct rows and how often each was seen."""
    return np.unique(rows, axis=0, return_counts=True)


@every
def test_counted_reports_are_the_same_tally(mechanism):
    rows = mechanism.perturb_many(answers_of(mechanism, 3000))
    distinct, times = grouped(rows)
    assert mechanism.tally(distinct, times) == mechanism.tally(rows)
    some = [row.tobytes() for row in distinct]
    assert mechanism.tally(some, times.tolist()) == mechanism.tally(rows)
    assert mechanism.tally(distinct, times + 1) != mechanism.tally(rows)


@every
def test_counts_of_any_size_are_multiplied_exactly(mechanism):
    rows = mechanism.perturb_many(answers_of(mechanism, 40))
    times = np.random.default_rng(5).integers(0, 2 ** np.arange(1, 41))
    assert 0 in times and times.max() > 2**36
    alone = [mechanism.tally(rows[k : k + 1]) for k in range(40)]
    expected = sum(int(n) * one.counts for n, one in zip(times, alone, strict=True))
    found = mechanism.tally(rows, times)
    assert np.array_equal(found.counts, expected) and found.n == times.sum()


@every
def test_counted_reports_that_are_none_are_refused_so_many_times(mechanism):
    good = mechanism.perturb_many(answers_of(mechanism, 5))
    bad = b"\xff" * mechanism.report_size
    tally = mechanism.tally([*map(bytes, good), bad, b""], [1, 2, 3, 4, 5, 70, 900])
    reason = mechanism.coder.refusal(bad)
    assert tally.n == 15 and tally.refused == {reason: 70, "length": 900}


@pytest.mark.parametrize(
    "counts", [[1], [1, 2, 3], [1, -1], [1.0, 2.0], ["1", "2"], [[1], [2]], [2**62, 1], 7]
)
def test_counts_that_are_none_are_one_sentence(counts):
    mechanism = d.design(d.Policy.from_levels([("l", 1, ["a", "b"])]))
    with pytest.raises(DataError, match="counts are") as caught:
        mechanism.tally([b"\x01", b"\x02"], counts)
    assert "\n" not in str(caught.value)


def test_counts_that_no_one_could_list():
    """A count is not repeated: a hundred million million reports take no longer than one."""
    mechanism = d.design(d.Policy.from_levels([("l", 1, list("abcde"))]), encoding="ticket")
    (row,) = mechanism.perturb_many([3])
    tally = mechanism.tally([bytes(row)], [10**14])
    one = mechanism.tally([bytes(row)])
    assert tally.n == 10**14 and np.array_equal(tally.counts, one.counts * 10**14)


@pytest.mark.parametrize("kind", ["uint32", "int64", "uint64", "int32"])
def test_tickets_are_whole_numbers_of_any_kind(kind):
    mechanism = d.design(d.Policy.from_levels([("l", 1, list("abcde"))]), encoding="ticket")
    rows = mechanism.perturb_many(np.arange(500) % 5)
    numbers = rows.view("<u4")[:, 0]
    numbers = numbers[numbers < 2**31]
    expected = mechanism.tally(numbers.view(np.uint8).reshape(-1, 4))
    assert mechanism.tally(numbers.astype(kind)) == expected
    if kind == "int64":
        strange = np.append(numbers.astype(kind), [-1, 2**32, 2**40])
        assert mechanism.tally(strange).refused == {"length": 3}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("blocks", [1, 7])
def test_a_stream_of_tickets_is_a_histogram_and_the_same_tally(threads, blocks):
    """Every way to count: as they come (a histogram), all at once, and mark by mark."""
    policy = d.Policy.from_levels([("a", 1, range_labels(40)), ("b", 2, range_labels(160, 40))])
    mechanism = d.design(policy, encoding="ticket", goal="total")
    assert len(mechanism.parts) > 1
    rows = mechanism.perturb_many(np.arange(200_000) % 200, indices=True)
    beyond = np.full((5, 4), 255, np.uint8)
    expected = mechanism.tally(rows[:0])
    for row in np.split(rows, 50):
        expected += mechanism.tally(row)  # few enough to look at every mark
    counting = TallyBuilder(mechanism)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(counting.add, [*np.array_split(rows, blocks), beyond]))
    assert all(isinstance(x, Histogram) for x in counting._all)
    assert counting.tally(threads) == replace(expected, refused={"ticket": 5})
    assert mechanism.tally(rows) == expected
    few = TallyBuilder(mechanism)
    few.add(rows[:30])
    assert few.tally() == mechanism.tally(rows[:30])  # decoded mark by mark


def test_a_histogram_does_not_overflow():
    table = Histogram(3)
    assert table.add(np.array([0, 2, 2, 7], np.uint32)) == 1
    assert table.add(np.array([0, 5], np.uint32), np.array([2**40, 6])) == 6
    table._small[1], table._since = 2**32 - 256, 2**32 - 256
    assert table.add(np.full(255, 1, np.uint32)) == 0
    assert table.add(np.array([1, 1], np.uint32)) == 0
    assert table._small[1] == 0 and table._large[1] == 2**32 - 1
    other = Histogram(3)
    other.add(np.array([2], np.uint32))
    assert Histogram.total([table, other]).tolist() == [2**40 + 1, 2**32 + 1, 3]
    small = Histogram(2)
    small.add(np.array([1], np.uint32))
    assert Histogram.total([small, small]).dtype == np.uint32


def test_what_is_held_back_is_never_larger_than_a_histogram():
    """A small domain in a large field: the transform never pays, and memory stays bounded."""
    mechanism = build("bits", [((1, 1), (0.7, 0.6), (0.3, 0.2))])
    mechanism = d.design(mechanism.policy, encoding="ticket")
    coder = mechanism.arrays.coder
    large = len(mechanism.parts) * coder.tickets
    drawn = mechanism.perturb_many(np.arange(10_000) % mechanism.m)
    rows = np.resize(drawn, (large + 2, mechanism.report_size))  # each of them many times
    few, many = TallyBuilder(mechanism), TallyBuilder(mechanism)
    coder.transform_pays = lambda n: False
    few.add(rows[:large])
    many.add(rows)
    assert few._held and many._held is None and isinstance(many._all[0], Histogram)
    assert many.tally() == mechanism.tally(rows) and few.tally() == mechanism.tally(rows[:large])


# ---- bytes ---------------------------------------------------------------------------------------


@given(name=names, data=st.data())
def test_bytes_round_trip(name, data):
    """Little-endian numbers, part_n first; nothing behind them unless something was refused."""
    mechanism = MECHANISMS[name]
    tally = data.draw(tallies(mechanism))
    raw, (k, m) = tally.to_bytes(), tally.counts.shape
    assert Tally.from_bytes(raw, mechanism) == tally
    numbers = [int.from_bytes(raw[8 * i : 8 * i + 8], "little") for i in range(k + k * m)]
    assert numbers == [*tally.part_n.tolist(), *tally.counts.ravel().tolist()]
    behind = raw[8 * (k + k * m) :]
    assert (json.loads(behind) if behind else {}) == tally.refused
    assert bool(behind) == bool(tally.refused)


def test_a_tally_is_found_among_several_mechanisms(tmp_path):
    some = [MECHANISMS[name] for name in ("bits", "fixed", "ticket")]
    for mechanism in some:
        tally = mechanism.tally(mechanism.perturb_many([0] * 9))
        tally.save(tmp_path / "t.json")
        assert Tally.load(tmp_path / "t.json", *some) == tally
        assert Tally.load(tmp_path / "t.json", *some).mechanism is mechanism
    with pytest.raises(DataError, match="a tally is read with its mechanism"):
        Tally.load(tmp_path / "t.json")


# ---- limits --------------------------------------------------------------------------------------


def test_more_reports_than_can_be_counted():
    """2^62 - 1 of them can be, in one call or in several; one more is refused."""
    mechanism = MECHANISMS["bits"]
    (row,) = mechanism.perturb_many([0])
    counting = TallyBuilder(mechanism)
    for _ in range(3):
        counting.add(row[None], np.array([2**60]))
    counting.add(row[None], np.array([2**60 - 1]))
    assert counting.tally().n == 2**62 - 1
    with pytest.raises(DataError, match=r"more reports than can be counted, 2\^62"):
        counting.add(row[None])
    assert mechanism.tally([bytes(row)], [2**62 - 2**10]).n == 2**62 - 2**10
    with pytest.raises(DataError, match=r"their sum is below 2\^62"):
        mechanism.tally([bytes(row)] * 2, [2**61, 2**61])


def test_few_tickets_are_held_back_and_many_are_not():
    """Unless it is said how many there will be; what is held is counted in the end, once."""
    mechanism = MECHANISMS["ticket"]
    rows = mechanism.perturb_many(np.arange(2000) % 7)
    least = next(n for n in range(2000) if mechanism.arrays.coder.worth_a_table(n))
    assert 1 < least < 2000
    for n in (least - 1, least):
        counting = TallyBuilder(mechanism)
        counting.add(rows[: n - 1])
        counting.add(rows[n - 1 : n])
        assert (counting._held is None) == bool(counting._all) == (n == least)
        assert counting.tally() == counting.tally() == plain(mechanism, rows[:n])
    told = TallyBuilder(mechanism)
    told.expect(1)
    told.add(rows[:1])
    assert told._held is None and told.tally() == plain(mechanism, rows[:1])


@pytest.mark.parametrize(
    ("least", "most", "n", "step"),
    [
        (10, 5000, 80_000, 5000),
        (10, 5000, 16_001, 2001),  # an eighth, rounded up
        (10, 5000, 16_000, 2000),
        (10, 5000, 100, 256),
        (1000, 5000, 100, 1000),
        (10, 100, 80_000, 256),
    ],
)
def test_rows_of_a_block(least, most, n, step, monkeypatch):
    """An eighth of all, within the limits of the encoding, and never fewer than 256."""
    mechanism = MECHANISMS["bits"]
    monkeypatch.setattr(type(mechanism.arrays.coder), "block", (least, most))
    assert _step(mechanism, n) == step


def test_tickets_as_numbers_beyond_32_bits():
    mechanism = MECHANISMS["ticket"]
    numbers = np.array([-1, 0, 2**32 - 1, 2**32, 5])
    rows, good = as_rows(mechanism, numbers)
    assert good.tolist() == [False, True, True, False, True]
    assert rows.view("<u4").ravel().tolist() == [0, 2**32 - 1, 5]
    with pytest.raises(DataError, match="an array of reports is n x 4 of uint8, got 2 dimensions"):
        as_rows(mechanism, numbers[:, None])
    with pytest.raises(DataError, match="got 1 dimensions of float64"):
        as_rows(mechanism, numbers.astype(float))
    with pytest.raises(DataError, match="got 1 dimensions of int64"):
        as_rows(MECHANISMS["bits"], numbers)
