"""PostgreSQL goes and comes back in mid-load: 503 with Retry-After meanwhile, and everything
counted once afterwards.
"""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from faults.harness import Load, assert_exactly_once, running, seed, wait_for

pytestmark = pytest.mark.xdist_group("faults")


@pytest.fixture
def stoppable(postgres):
    """The server of this test run, running again afterwards whatever happens."""
    yield postgres
    if not (postgres.data / "postmaster.pid").exists():
        postgres.start()


def outage(service, load, postgres, mode):
    load.wait_for_answers()
    wait_for("all workers run", lambda: len(service.worker_pids()) == service.workers)
    before = service.worker_pids()
    postgres.stop(mode)
    load.wait_for_refusals(5)
    status, headers, _ = service.request("GET", "/healthz")
    assert (status, headers["retry-after"]) == (503, "2")
    postgres.start()
    load.wait_for_answers(5)
    assert service.alive() and service.worker_pids() == before, "a process did not survive"


def survive(folder, database, workers, postgres, modes):
    with running(folder, database, workers) as service, Load(service, seed()) as load:
        for mode in modes:
            outage(service, load, postgres, mode)
        with ThreadPoolExecutor(20) as readers, psycopg.connect(database) as db:
            assert set(readers.map(lambda _: service.request("GET", "/healthz")[0], range(60))) == {
                200
            }
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'discreet'"
            assert db.execute(query).fetchone()[0] <= 3 * workers, "connections pile up"
        assert_exactly_once(service, load.finish())


def test_postgres_stopped_and_started(tmp_path, database, stoppable):
    survive(tmp_path, database, 2, stoppable, ["immediate", "fast"])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_postgres_stopped_and_started_often(tmp_path, database, stoppable, workers):
    survive(tmp_path, database, workers, stoppable, ["immediate", "fast"] * 8)


@pytest.mark.slow
def test_a_worker_that_dies_in_the_outage(tmp_path, database, stoppable):
    """Its successor waits for the store; the service is there when PostgreSQL is."""
    with running(tmp_path, database, 2) as service, Load(service, seed()) as load:
        load.wait_for_answers()
        orphan(service, stoppable)
        stoppable.start()
        load.wait_for_answers(5)
        wait_for("both workers run", lambda: len(service.worker_pids()) == 2)
        assert_exactly_once(service, load.finish())


@pytest.mark.slow
def test_stop_in_the_outage(tmp_path, database, stoppable):
    """Even where a worker is waiting for the store."""
    with running(tmp_path, database, 2) as service:
        wait_for("the service is up", lambda: service.healthy())
        orphan(service, stoppable)
        assert service.stop() == 0


def orphan(service, postgres):
    """PostgreSQL goes, and then a worker, whose successor has no store."""
    wait_for("both workers run", lambda: len(service.worker_pids()) == 2)
    postgres.stop("immediate")
    gone = min(service.worker_pids())
    os.kill(gone, signal.SIGKILL)
    wait_for(
        "another worker is started",
        lambda: gone not in service.worker_pids() and len(service.worker_pids()) == 2,
    )
    later = time.monotonic() + 10  # it has tried by then
    wait_for(
        "10 s, or the end of the service", lambda: time.monotonic() > later or not service.alive()
    )
    assert service.alive(), "the service has given up"


@pytest.fixture
def freeze():
    """Stop processes without ending them: what a dead network or a dead machine looks like to the
    others.
    """
    frozen = []

    def stop(*pids):
        for pid in pids:
            frozen.append(pid)
            os.kill(pid, signal.SIGSTOP)

    def go():
        while frozen:
            with suppress(ProcessLookupError):
                os.kill(frozen.pop(), signal.SIGCONT)

    stop.thaw = go
    yield stop
    go()


@pytest.mark.slow
def test_a_postgres_that_hangs(tmp_path, database, stoppable, freeze):
    """Nobody waits for ever: 503, and SIGTERM ends the service."""
    leader = int((stoppable.data / "postmaster.pid").read_text().split()[0])
    with running(tmp_path, database) as service, Load(service, seed()) as load:
        load.wait_for_answers()
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        freeze(leader, *map(int, children))
        load.wait_for_refusals(1)
        began = time.monotonic()
        service.stop()
        assert time.monotonic() - began < 45  # a grace of 30
        freeze.thaw()
        service.start()
        assert_exactly_once(service, load.finish())


@pytest.mark.slow
def test_a_frozen_collector_does_not_stop_the_others(tmp_path, database, freeze):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    with (
        running(tmp_path / "one", database) as one,
        running(tmp_path / "other", database) as other,
        psycopg.connect(database, autocommit=True) as db,
        Load(one, seed()) as first,
        Load(other, seed()) as second,
    ):
        first.wait_for_answers()
        first.book.freezes = True

        def frozen_with_the_lock():
            """Then the other one waits for it."""
            freeze(one.process.pid)
            time.sleep(0.2)
            query = (
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE application_name = 'discreet' AND wait_event_type = 'Lock'"
            )
            if db.execute(query).fetchone()[0]:
                return True
            freeze.thaw()
            return False

        wait_for("it froze in a transaction", frozen_with_the_lock)
        second.wait_for_answers(5)
        freeze.thaw()
        first.finish()
        assert_exactly_once(other, _together(first.book, second.finish()))


def _together(book, more):
    book.sent.update(more.sent)
    book.acknowledged |= more.acknowledged
    book.accepted += more.accepted
    return book
