"""One report of picks: its law is what enumeration says, its draws follow that law.

False alarms: `assert_distribution` at most 1e-7.
"""

from collections import Counter
from fractions import Fraction
from functools import cache, partial

import numpy as np
import picked
import pytest
from checks import must_fail
from small import assert_distribution

import discreet as d
from discreet.arrays.plain import PlainBlocks
from discreet.designs.set_subset import picks
from discreet.designs.task import Task
from discreet.device.perturb import perturb
from discreet.encodings.picks import Layout, _independent

CASES = {
    "cuts of one block": ((2, 3), (1, 2), 2),
    "two blocks": ((2, 3), (1, 2), 2),
    "two blocks, padding 3": ((2, 4), (1, "1.5"), 3),
    "three blocks": ((2, 1, 3), (1, "1.3", 2), 2),
}
SETS = [(), (0,), (1, 4), (0, 1, 2), (0, 1, 2, 3, 4)]


@cache
def designed(name):
    sizes, budgets, padding = CASES[name]
    levels = [
        (f"l{i}", e, [f"i{i}-{k}" for k in range(n)])
        for i, (n, e) in enumerate(zip(sizes, budgets, strict=True))
    ]
    policy = d.Policy.from_levels(levels, kind="set")
    task = Task(policy, "uniform", None, padding, goal="total")
    return picks(task, several=name != "cuts of one block")


@cache
def numbers():
    """A mechanism whose reports are item numbers: one of 20, two of 20."""
    policy = d.Policy.from_levels([("all", 4, [f"i{k}" for k in range(20)])], kind="set")
    mechanism = picks(Task(policy, "uniform", None, 2))
    assert any(layout.widths[0] and layout.k[0] > 1 for layout in mechanism.coder.layouts)
    return mechanism


def exact(mechanism, x):
    document = mechanism.to_document()
    return {picked.pack(document, *y): p for y, p in picked.law(document, x).items()}


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_the_enumeration(name):
    mechanism = designed(name)
    for x in picked.subsets(range(mechanism.m)):
        table = exact(mechanism, x)
        assert {y: mechanism.coder.law(y, sorted(x)) for y in table} == table


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("x", SETS)
def test_reports_are_drawn_by_their_law_one_by_one_and_many_at_once(name, x):
    mechanism, n = designed(name), 60_000
    table = exact(mechanism, frozenset(x))
    one_by_one = Counter(perturb(mechanism, set(x)) for _ in range(n // 6))
    assert_distribution(one_by_one, table)
    many = many_reports(mechanism, x, n)
    assert_distribution(many, table)
    wrong = exact(mechanism, frozenset({*x} ^ {3}))
    must_fail(assert_distribution, many, wrong)


def many_reports(mechanism, x, n):
    items = np.tile(np.array(x, np.int64), n), np.arange(n + 1) * len(x)
    rows = np.empty((n, mechanism.report_size), np.uint8)
    from discreet.arrays.randomness import Keystream

    mechanism.arrays.coder.write_sets(Keystream(), *items, rows)
    return Counter(map(bytes, rows))


@pytest.mark.parametrize("name", CASES)
def test_a_row_that_runs_out_of_words_is_drawn_again(name):
    """Wherever the words end, a row is a report or still empty."""
    from discreet.arrays.kernels import picks as kernels

    coder, n = designed(name).arrays.coder, 300
    rng = np.random.default_rng(3)
    kept = np.tile(np.array([0, 3]), (n, 1))
    cut = rng.integers(0, len(coder.cuts), n)
    part = np.array([rng.choice(coder.cuts[c]) for c in cut])
    of_block = coder.blocks[cut][:, [0, 3]]
    j = np.stack([(of_block == b + 1).sum(axis=1) for b in range(coder.layouts.shape[1])], axis=1)
    m, k = coder.layouts[part][:, :, 1], coder.layouts[part][:, :, 2]
    named = np.maximum(0, k + j - m)  # the fewest that can be named
    runs_out = 0
    for words in range(12):
        out, done = np.zeros((n, coder.size - 1), np.uint8), 0
        while done < n:
            before, random = done, rng.integers(0, 2**32, words + 8, np.uint32)
            # at first a few words too few, then enough for one row
            random = random[:words] if done % 2 == 0 else random
            values = (kept, named, part, cut, coder.layouts, coder.slots, random, done)
            done = kernels.draw_subsets(out, *values)
            assert not out[done:].any()
            runs_out += done < n
            if done == before:
                more = rng.integers(0, 2**32, 64, np.uint32)
                done = kernels.draw_subsets(out[: done + 1], *values[:-2], more, done)
        rows = np.column_stack((part.astype(np.uint8), out))
        _, refused = coder.refusals(rows)
        assert not any(wrong.any() for wrong in refused.values())
    assert runs_out > n


def test_numbers_are_drawn_by_their_law():
    mechanism, x = numbers(), (3, 17)
    table = exact(mechanism, frozenset(x))
    assert sum(table.values()) == 1
    assert_distribution(many_reports(mechanism, x, 200_000), table)
    assert_distribution(Counter(perturb(mechanism, set(x)) for _ in range(20_000)), table)


@pytest.mark.parametrize("make", [*(partial(designed, name) for name in CASES), numbers])
def test_every_report_is_read_as_it_was_written(make):
    mechanism = make()
    document = mechanism.to_document()
    for o, named in picked.reports(document)[:3000]:
        report = picked.pack(document, o, named)
        assert mechanism.coder.refusal(report) is None
        assert mechanism.coder.read_part(report) == o
        assert set(mechanism.coder.named(report)) == named


@pytest.mark.parametrize("make", [*(partial(designed, name) for name in CASES), numbers])
def test_everything_else_is_refused_for_the_same_reason_everywhere(make):
    """Random bytes, and reports with a bit flipped: the reasons of both ways to read, and none for
    what is a report.
    """
    mechanism, rng = make(), np.random.default_rng(1)
    document = mechanism.to_document()
    good = [picked.pack(document, *y) for y in picked.reports(document)]
    rows = rng.integers(0, 256, (4000, mechanism.report_size), np.uint8)
    rows[:, 0] = rng.integers(0, len(mechanism.parts) + 2, len(rows))
    some = np.array([list(good[k]) for k in rng.integers(0, len(good), 4000)], np.uint8)
    flipped = some.copy()
    bit = rng.integers(0, 8 * mechanism.report_size, len(some))
    flipped[np.arange(len(some)), bit >> 3] ^= (1 << (bit & 7)).astype(np.uint8)
    rows, known = np.concatenate((rows, some, flipped)), set(good)
    reasons = [mechanism.coder.refusal(bytes(row)) for row in rows]
    assert [why is None for why in reasons] == [bytes(row) in known for row in rows]
    tally = mechanism.arrays.coder.start()
    refused = mechanism.arrays.coder.gather(tally, rows)
    assert refused == dict(Counter(filter(None, reasons)))
    plain = PlainBlocks(mechanism)
    other = plain.start()
    plain.gather(other, rows)
    assert (tally.counts == other.counts).all() and (tally.part_n == other.part_n).all()
    assert len(set(reasons)) > 3
    assert mechanism.coder.refusal(good[0] + b"\0") == "length"


def test_numbers_must_go_up_and_lie_among_the_items():
    mechanism = numbers()
    layouts = enumerate(mechanism.coder.layouts)
    o, k = next((o, x.k[0]) for o, x in layouts if x.widths[0] and x.k[0] > 1)
    first = list(range(k - 2))

    def report(*ranks):
        body = sum(rank << 5 * n for n, rank in enumerate((*first, *ranks)))
        return bytes([o]) + body.to_bytes(mechanism.report_size - 1, "little")

    check = mechanism.coder.refusal
    assert check(report(13, 19)) is None
    wrong = ((19, 13), (13, 13), (13, 20), (31, 31))
    assert {check(report(*ranks)) for ranks in wrong} == {"order"}
    assert check(report(13, 19, 1)) == "tail"


@pytest.mark.parametrize(
    ("m", "k", "widths", "size"),
    [
        ((100,), (5,), (7,), 5),
        ((100,), (14,), (7,), 13),
        ((100,), (15,), (0,), 13),
        ((8,), (2,), (3,), 1),
        ((8,), (3,), (0,), 1),
        ((1,), (0,), (1,), 0),
        ((20,), (0,), (5,), 0),
        ((1000,), (3,), (10,), 4),
        ((10, 90), (3, 40), (0, 0), 13),
        ((10, 90, 1), (2, 3, 0), (4, 7, 1), 4),
    ],
)
def test_the_shorter_way_to_write_a_subset(m, k, widths, size):
    part = type("Part", (), {"m": m, "ints": type("Ints", (), {"sizes": k})})
    layout = Layout.of_part(part)
    assert (layout.widths, layout.size) == (widths, size)


@pytest.mark.parametrize(
    ("rows", "whether"),
    [
        ([], True),
        ([[0, 0]], False),
        ([[0, 2, 1]], True),
        ([[1, 2], [2, 4]], False),
        ([[1, 2], [2, 5]], True),
        ([[1, 0, 0], [0, 1, 0], [2, 3, 0]], False),
        ([[1, 0, 0], [0, 1, 0], [2, 3, 1]], True),
        ([[1, 1, 1], [0, 0, 1], [0, 0, 2]], False),
        ([[0, 1, 0], [1, 0, 0], [0, 1, 1]], True),
        ([[0, 1, 0], [1, 0, 0], [0, 3, 0]], False),
    ],
)
def test_whether_rows_are_independent(rows, whether):
    assert _independent([[Fraction(x, 3) for x in row] for row in rows]) is whether


@pytest.mark.parametrize("make", [*(partial(designed, name) for name in CASES), numbers])
def test_named_and_counts_agree_with_the_device(make):
    mechanism = make()
    last = mechanism.m - 1
    rows = mechanism.perturb_many([{3, last}, {2}, set(), {1, 2, 3}] * 200)
    named = np.zeros((len(rows), mechanism.m), bool)
    for k, row in enumerate(rows):
        named[k, mechanism.coder.named(bytes(row))] = True
    part = rows[:, 0].astype(np.int64)
    places = np.array([last, 0, 3])
    assert (mechanism.arrays.coder.named(part, rows, places) == named[:, places]).all()
    tally = mechanism.tally(rows)
    assert (tally.counts.sum(axis=0) == named.sum(axis=0)).all()
    times = np.arange(len(rows))
    often = mechanism.tally(rows, counts=times)
    assert (often.counts.sum(axis=0) == times @ named).all()
    assert mechanism.arrays.coder.adds_up(tally.part_n, tally.counts)
    more = tally.counts.copy()
    more[0, 0] += 1
    assert not mechanism.arrays.coder.adds_up(tally.part_n, more)
