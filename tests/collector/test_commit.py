"""Group commit, on a real SQLite store: who shares a transaction, in which order, who is told what,
and what happens when the store fails.
"""

import asyncio
import re
import sqlite3
import threading
import time
from contextlib import nullcontext

import pytest
from collecting import DEADLINE, ids, survey, upload

from discreet.collector import limits
from discreet.collector.commit import Committer, answered
from discreet.collector.store import Outcome, StoreDown, open_store

MADE = survey("bits")


class Held:
    """A real store that remembers its transactions and holds each until it is let go."""

    def __init__(self, store):
        self.store, self.groups = store, []
        self.entered, self.open = threading.Event(), threading.Event()
        self.failures, self.aborts = [], 0
        self.open.set()

    def add(self, uploads):
        self.groups.append([len(one.ids) for one in uploads])
        self.entered.set()
        assert self.open.wait(DEADLINE)
        if self.failures:
            raise self.failures.pop()
        return self.store.add(uploads)

    def abort(self):
        self.aborts += 1
        self.failures.append(StoreDown("cut off"))
        self.open.set()

    @property
    def n(self):
        return self.store.tally("bits").n


@pytest.fixture
def store(tmp_path):
    opened = open_store(str(tmp_path / "store.sqlite"))
    opened.create(MADE)
    yield Held(opened)
    opened.close()


def run(scenario, store):
    """Run a scenario with a committer of its own; whatever hangs, fails."""

    async def whole():
        committer = Committer(store)
        try:
            return await scenario(committer)
        finally:
            await committer.close()

    async def limited():
        return await asyncio.wait_for(whole(), DEADLINE)

    return asyncio.run(limited())


def send(committer, size, some=None):
    return asyncio.create_task(committer.submit(upload(MADE, some or ids(size))))


async def first_of(committer, store, size=1):
    """An upload whose transaction is held open."""
    store.open.clear()
    first = send(committer, size)
    await asyncio.to_thread(store.entered.wait, DEADLINE)
    return first


async def gathered(committer, sizes):
    """Uploads of these sizes, which wait in this order."""
    sent = [send(committer, size) for size in sizes]
    await asyncio.sleep(0)
    assert [len(one.ids) for one, _ in committer._waiting] == list(sizes)
    return sent


# ---- who is told what ----------------------------------------------------------------------------


def test_everyone_is_told_their_own_outcome(store):
    """The order of a transaction is not that of the uploads; the outcomes go back to their own."""

    async def scenario(committer):
        first = await first_of(committer, store)
        known = ids(2)
        rest = await gathered(committer, (9, 4, 7, 1))
        rest += [send(committer, 0, [*known, *ids(3)]), send(committer, 0, known)]
        await asyncio.sleep(0)
        store.open.set()
        return [await one for one in (first, *rest)]

    # the smaller upload of the same ids is taken first: the larger one repeats it
    expected = [(1, 0), (9, 0), (4, 0), (7, 0), (1, 0), (3, 2), (2, 0)]
    assert run(scenario, store) == [Outcome(*pair) for pair in expected]
    assert store.groups == [[1], [9, 1, 2, 4, 5, 7]] and store.n == 1 + 9 + 4 + 7 + 1 + 5


def test_nobody_is_answered_before_it_is_durable(store):
    async def scenario(committer):
        first = await first_of(committer, store, 3)
        await asyncio.sleep(0.05)
        assert not first.done() and store.n == 0
        store.open.set()
        await first
        assert store.n == 3

    run(scenario, store)


def test_the_writer_rests_and_works_again(store):
    async def scenario(committer):
        for _ in range(3):
            assert await send(committer, 2) == Outcome(2, 0)

    run(scenario, store)
    assert store.groups == [[2]] * 3 and store.n == 6


def test_a_closed_collection_takes_nothing(store):
    store.store.close_collection("bits")

    async def scenario(committer):
        return await send(committer, 2)

    assert run(scenario, store) == Outcome(0, 0, "closed") and store.n == 0


# ---- who shares a transaction --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([3], [[3]]),
        ([5, 4, 1, 3, 1], [[5, 1, 1, 3], [4]]),  # exactly ten fit
        ([5, 4, 1, 4, 1], [[5, 1, 1], [4, 4]]),  # eleven do not
        ([12, 1], [[12], [1]]),  # the first goes even if it is too large
        ([1, 12, 2, 11], [[1, 2], [12], [11]]),
        ([6, 5, 5], [[6], [5, 5]]),
        ([2, 3, 1, 3, 1], [[2, 1, 1, 3, 3]]),
    ],
)
def test_the_longest_waiting_goes_first_then_the_smallest(store, sizes, groups, monkeypatch):
    monkeypatch.setattr(limits, "GROUP", 10)

    async def scenario(committer):
        first = await first_of(committer, store)
        rest = await gathered(committer, sizes)
        store.open.set()
        assert [(await one).accepted for one in (first, *rest)] == [1, *sizes]

    run(scenario, store)
    assert store.groups == [[1], *groups]


def test_of_the_same_size_whoever_came_first_is_first(store):
    async def scenario(committer):
        first = await first_of(committer, store)
        known = ids(1)
        rest = await gathered(committer, (2, 1))
        rest += [send(committer, 0, known) for _ in range(3)]
        await asyncio.sleep(0)
        store.open.set()
        return [await one for one in (first, *rest)][3:]

    assert run(scenario, store) == [Outcome(1, 0), Outcome(0, 1), Outcome(0, 1)]


def test_the_next_transaction_waits_for_those_of_the_last(store, monkeypatch):
    """One is in a transaction and two wait: a crowd of three. The first comes back at once, so the
    next transaction has all three, and starts when the third is there: here the pause has no end.
    """
    monkeypatch.setattr(asyncio, "timeout", lambda _: nullcontext())

    async def scenario(committer):
        first = await first_of(committer, store)
        rest = await gathered(committer, (2, 3))
        time.sleep(0.05)  # the transaction takes so long
        store.open.set()
        await first
        await asyncio.wait([*rest, send(committer, 4)])

    run(scenario, store)
    assert store.groups == [[1], [2, 3, 4]]


@pytest.mark.parametrize(
    ("waiting", "crowd", "ended", "took", "gathering", "pause"),
    [
        (2, 3, 99.0, 5.0, 10.0, 4.0),  # as long as a transaction takes, from the end of the last
        (2, 3, 99.0, 5.0, 0.5, 0.5),  # but never longer than this
        (3, 3, 99.0, 5.0, 10.0, None),  # all are here
        (4, 3, 99.0, 5.0, 10.0, None),
        (2, 3, 95.0, 5.0, 10.0, None),  # that time is over
        (2, 3, 90.0, 5.0, 10.0, None),
    ],
)
def test_how_long_a_transaction_waits_for_company(
    store, waiting, crowd, ended, took, gathering, pause, monkeypatch
):
    pauses = []

    def timeout(seconds):
        pauses.append(seconds)
        raise TimeoutError  # it passes, and nobody came

    monkeypatch.setattr(asyncio, "timeout", timeout)
    monkeypatch.setattr(limits, "GATHERING", gathering)

    async def scenario(committer):
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 100.0)
        committer._waiting = [None] * waiting
        committer._crowd, committer._ended, committer._took = crowd, ended, took
        await committer._gather()

    asyncio.run(scenario(Committer(store)))
    assert pauses == ([] if pause is None else [pause])


def test_the_crowd_and_the_time_of_the_last_transaction_are_remembered(store):
    async def scenario(committer):
        loop = asyncio.get_running_loop()
        began = loop.time()
        first = await first_of(committer, store)
        rest = await gathered(committer, (2, 3, 4))
        time.sleep(0.05)
        store.open.set()
        await first
        assert committer._crowd == 1 + 3
        assert 0.05 <= committer._took <= loop.time() - began
        assert began + committer._took <= committer._ended <= loop.time()
        await asyncio.wait(rest)
        assert committer._crowd == 3

    run(scenario, store)


# ---- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (StoreDown("the disk is full"), 'the disk is full (collection "bits")'),
        (sqlite3.OperationalError("x"), 'the store fails: OperationalError (collection "bits")'),
    ],
)
def test_a_failure_is_that_of_everyone_in_the_transaction(store, failure, sentence):
    async def scenario(committer):
        first = await first_of(committer, store)
        rest = await gathered(committer, (2, 3))
        given_up = send(committer, 4)
        await asyncio.sleep(0)
        store.failures.append(failure)  # of the first transaction
        given_up.cancel()
        store.open.set()
        with pytest.raises(StoreDown) as caught:
            await first
        assert str(caught.value) == sentence
        assert [await one for one in rest] == [Outcome(2, 0), Outcome(3, 0)]
        store.open.clear()
        store.entered.clear()
        again, gone = send(committer, 5), send(committer, 6)
        await asyncio.to_thread(store.entered.wait, DEADLINE)
        gone.cancel()
        store.failures.append(failure)
        store.open.set()
        with pytest.raises(StoreDown, match=re.escape(sentence)):
            await again
        assert await send(committer, 7) == Outcome(7, 0)

    run(scenario, store)
    assert store.n == 2 + 3 + 4 + 7  # whoever gave up is counted all the same


def test_whoever_gives_up_does_not_keep_others_from_their_answer(store):
    async def scenario(committer):
        gone = await first_of(committer, store, 2)
        rest = await gathered(committer, (3, 4))
        gone.cancel()
        rest[0].cancel()
        store.open.set()
        assert await rest[1] == Outcome(4, 0)

    run(scenario, store)
    assert store.n == 2 + 3 + 4


def test_a_store_that_hangs_is_cut_off(store, monkeypatch):
    monkeypatch.setattr(limits, "STORE_SECONDS", 0.05)

    async def scenario(committer):
        first = await first_of(committer, store)
        with pytest.raises(StoreDown, match="cut off"):
            await first
        assert store.aborts == 1
        monkeypatch.setattr(limits, "STORE_SECONDS", 10.0)  # a busy disk is not one that hangs
        assert await send(committer, 3) == Outcome(3, 0)

    run(scenario, store)
    assert store.aborts == 1 and store.n == 3


@pytest.mark.parametrize(("reports", "seconds"), [(0, 10.0), (2500, 10.5), (10_000, 12.0)])
def test_large_transactions_get_more_time(store, reports, seconds, monkeypatch):
    monkeypatch.setattr(limits, "STORE_SECONDS", 10.0)
    monkeypatch.setattr(limits, "STORE_RATE", 5000)
    waits = timed(monkeypatch)

    async def scenario():
        work = asyncio.get_running_loop().create_future()
        work.set_result("done")
        return await (answered(work, store, reports) if reports else answered(work, store))

    assert asyncio.run(scenario()) == "done"
    assert waits == [seconds] and store.aborts == 0


def test_the_time_of_a_transaction_is_that_of_all_its_reports(store, monkeypatch):
    monkeypatch.setattr(limits, "STORE_SECONDS", 100.0)
    monkeypatch.setattr(limits, "STORE_RATE", 0.5)
    waits = timed(monkeypatch)

    async def scenario(committer):
        first = await first_of(committer, store)
        rest = await gathered(committer, (2, 3))
        store.open.set()
        for one in (first, *rest):
            await one

    run(scenario, store)
    assert waits == [102.0, 110.0]


def timed(monkeypatch):
    """The time that every wait gets."""
    waits, wait = [], asyncio.wait

    def recorded(work, *, timeout):
        waits.append(timeout)
        return wait(work, timeout=timeout)

    monkeypatch.setattr(asyncio, "wait", recorded)
    return waits


# ---- the end -------------------------------------------------------------------------------------


def test_closing_finishes_what_waits_and_ends_the_thread(store):
    before = set(threading.enumerate())

    async def scenario():
        committer = Committer(store)
        sent = [await first_of(committer, store)]
        sent += await gathered(committer, (2, 3))
        closing = asyncio.create_task(committer.close())
        await asyncio.sleep(0)
        assert not closing.done()
        store.open.set()
        await closing
        assert [one.result() for one in sent] == [Outcome(k, 0) for k in (1, 2, 3)]
        left = {thread.name for thread in set(threading.enumerate()) - before}
        assert not any(name.startswith("commit") for name in left)

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE))
    assert store.n == 6


def test_closing_without_work():
    asyncio.run(Committer(None).close())
