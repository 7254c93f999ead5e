"""The checker must see what it is there to see: stores broken by hand, each in one way."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from discreet.collector.checksums import with_checksum
from discreet.collector.store import Upload, open_store
from faults.harness import (
    FRONT,
    MECHANISM,
    POOL,
    SMALL,
    SURVEY,
    Book,
    look_into,
    problems,
    recount,
)

FRAMES = [(bytes([k]) * 16, POOL[k]) for k in range(40)]


@pytest.fixture
def kept(tmp_path):
    """A store with forty acknowledged reports, and what their clients know."""
    path, book = str(tmp_path / "store.sqlite"), Book()
    store = open_store(path)
    store.create(SURVEY, "reports")
    ids, contents = (list(column) for column in zip(*FRAMES, strict=True))
    (outcome,) = store.add([Upload("faults", ids, contents)])
    store.close()
    book.send(FRAMES)
    body = b'{"accepted": %d, "duplicates": %d}' % (outcome.accepted, outcome.duplicates)
    assert book.answer(FRAMES, 200, {}, body)
    return path, book


def run(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement, *values in statements:
            db.execute(statement, values)


def put_numbers(path, numbers):
    parts = (slot + x.astype("<i8").tobytes() for slot, x in sorted(numbers.items()))
    raw = with_checksum(b"".join(parts))
    run(path, ("UPDATE tally SET numbers = ?", raw), ("DELETE FROM waiting",))


def kinds(path, book):
    return {problem.partition(":")[0] for problem in problems(look_into(path), book)}


def test_a_sound_store_passes(kept):
    assert kinds(*kept) == set()


def test_a_lost_report_is_seen(kept):
    """Even one that was taken out of the tally as well, so that the store agrees with itself."""
    path, book = kept
    run(path, ("DELETE FROM report WHERE id = ?", FRAMES[7][0]))
    assert kinds(path, book) == {"lost", "n", "tally"}
    put_numbers(path, recount([report for k, (_, report) in enumerate(FRAMES) if k != 7]))
    assert kinds(path, book) == {"lost", "accepted"}


def test_a_double_count_is_seen(kept):
    path, book = kept
    put_numbers(path, recount([report for _, report in FRAMES] + [FRAMES[3][1]]))
    assert kinds(path, book) == {"n", "tally"}


def test_an_id_stored_twice_is_seen(kept):
    path, book = kept
    run(
        path,
        ("CREATE TABLE loose AS SELECT * FROM report",),
        ("DROP TABLE report",),
        ("ALTER TABLE loose RENAME TO report",),
    )
    assert kinds(path, book) == set()
    run(path, ("INSERT INTO report SELECT * FROM report WHERE id = ?", FRAMES[5][0]))
    put_numbers(path, recount([report for _, report in FRAMES] + [FRAMES[5][1]]))
    assert kinds(path, book) == {"twice", "n"}


def test_a_tally_that_differs_is_seen(kept):
    """By one bit of one item."""
    path, book = kept
    numbers = recount([report for _, report in FRAMES])
    numbers[max(numbers)][-1] += 1
    put_numbers(path, numbers)
    assert kinds(path, book) == {"tally"}


def test_a_report_exchanged_for_another_is_seen(kept):
    """By one bit: whatever was drawn, this is not it."""
    path, book = kept
    sent = FRAMES[5][1]
    other = sent[:-1] + bytes([sent[-1] ^ 1])
    run(
        path,
        ("UPDATE report SET report = ? WHERE id = ?", other, FRAMES[5][0]),
    )
    put_numbers(
        path,
        recount([other if k == 5 else report for k, (_, report) in enumerate(FRAMES)]),
    )
    assert kinds(path, book) == {"strange"}


def test_an_answer_that_claims_too_much_is_seen(kept):
    path, book = kept
    assert book.answer(FRAMES[:3], 200, {}, b'{"accepted": 1, "duplicates": 2}')
    assert kinds(path, book) == {"accepted"}


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, {}, b'{"accepted": 2, "duplicates": 0}'),
        (200, {}, b'{"accepted": 4, "duplicates": -1}'),
        (500, {}, b""),
        (503, {}, b""),
    ],
)
def test_a_wrong_answer_is_written_down(status, headers, body):
    book = Book()
    book.answer(FRAMES[:3], status, headers, body)
    assert book.wrong
    book = Book()
    assert not book.answer(FRAMES[:3], 503, {"retry-after": "2"}, b"")
    assert not book.wrong and not book.acknowledged


def test_a_report_counted_in_another_group_is_seen(kept):
    """By question alone, everything would be right."""
    path, book = kept
    numbers = recount([report for _, report in FRAMES])
    slot = max(numbers)
    moved = slot[:-1] + bytes([1 - slot[-1]])
    mine = numbers.pop(slot)
    numbers[moved] = numbers.get(moved, 0) + mine
    put_numbers(path, numbers)
    assert kinds(path, book) == {"tally"}


def test_the_plain_recount_is_the_tally():
    """Of both questions and of all six groups."""
    again = recount(POOL)
    assert len(again) == 12 and len({len(content) for content in POOL}) == 2
    for slot, numbers in again.items():
        tally = (MECHANISM, SMALL)[slot[0]].tally(
            [content[FRONT:] for content in POOL if content[:FRONT] == slot]
        )
        assert np.array_equal(numbers, np.concatenate((tally.part_n, tally.counts.ravel())))
