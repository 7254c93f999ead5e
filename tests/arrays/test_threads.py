"""Blocks cover all rows once; errors come out; threads are used where they help."""

import os
import threading
from itertools import pairwise

import pytest

from discreet.arrays.threads import run_blocks


def blocks(n, step, threads):
    """The blocks in the order in which they ended, and the threads that worked on them."""
    found, names = [], set()

    def work(first, last):
        found.append((first, last))
        names.add(threading.get_ident())

    assert run_blocks(work, n, step, threads) is None
    return found, names


@pytest.mark.parametrize("threads", [None, 1, 2, 7])
@pytest.mark.parametrize(("n", "step"), [(1, 5), (5, 5), (6, 5), (15, 5), (16, 5), (23, 5), (9, 1)])
def test_every_row_is_in_one_block(n, step, threads):
    found = sorted(blocks(n, step, threads)[0])
    assert found[0][0] == 0 and found[-1][1] == n
    assert all(last == first for (_, last), (first, _) in pairwise(found))
    assert all(last - first == step for first, last in found[:-1])
    assert 1 <= found[-1][1] - found[-1][0] <= step


def test_without_rows_there_is_no_work():
    assert blocks(0, 5, 2)[0] == []


@pytest.mark.parametrize(("n", "threads"), [(100, 1), (15, 2), (15, None)])
def test_one_thread_or_few_blocks_stay_in_the_callers_thread(n, threads):
    found, names = blocks(n, 5, threads)
    assert names == {threading.get_ident()} and found == sorted(found)


def test_four_blocks_meet_in_as_many_threads_as_are_asked_for():
    """All of them wait for the others: with fewer threads the barrier would break."""
    barrier = threading.Barrier(4, timeout=60)
    run_blocks(lambda *_: barrier.wait(), 20, 5, 4)
    assert not barrier.broken
    broken = threading.Barrier(4, timeout=0.2)
    with pytest.raises(threading.BrokenBarrierError):
        run_blocks(lambda *_: broken.wait(), 20, 5, 3)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="this machine has one processor")
def test_all_processors_are_used_unless_told_otherwise():
    barrier = threading.Barrier(2, timeout=60)
    run_blocks(lambda *_: barrier.wait(), 20, 5, None)


def test_where_nobody_knows_the_processors_the_callers_thread_works(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert blocks(100, 5, None)[1] == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_block_is_the_callers(threads):
    def work(first, last):
        if first == 15:
            raise ValueError(f"{first} to {last}")

    with pytest.raises(ValueError, match="^15 to 20$"):
        run_blocks(work, 50, 5, threads)
