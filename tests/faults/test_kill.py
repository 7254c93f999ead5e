"""kill -9 at random moments under load: acknowledged is counted, nothing twice, and the tally is
what the reports say.
"""

import os
import random
import signal
import time

import pytest

from faults.harness import Load, assert_exactly_once, running, seed, wait_for

pytestmark = pytest.mark.xdist_group("faults")
STORES = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
WORKERS = pytest.mark.parametrize("workers", [1, 2])


def kill_group(service, load, rng):
    load.wait_for_answers()
    time.sleep(rng.uniform(0.05, 0.5))
    service.kill()
    service.start()


def kill_group_in_between(service, load, rng):
    """And once more before it is quite up."""
    load.wait_for_answers()
    service.kill()
    service.launch()
    time.sleep(rng.uniform(0, 3))
    service.kill()
    service.start()


def kill_worker(service, load, rng):
    """One of them: the supervisor goes on and starts another, and the rest is served meanwhile."""
    load.wait_for_answers()
    wait_for("both workers run", lambda: len(service.worker_pids()) == 2)
    time.sleep(rng.uniform(0.05, 0.5))
    before = service.worker_pids()
    gone = rng.choice(sorted(before))
    os.kill(gone, signal.SIGKILL)
    load.wait_for_answers()
    wait_for(
        "another worker is started",
        lambda: gone not in service.worker_pids() and len(service.worker_pids()) == 2,
    )
    assert service.alive()


def survive(folder, store, workers, faults):
    number = seed()
    rng = random.Random(number)
    with running(folder, store, workers) as service, Load(service, number) as load:
        for fault in faults:
            fault(service, load, rng)
        load.wait_for_answers()
        assert_exactly_once(service, load.finish())


@STORES
@WORKERS
def test_kill(tmp_path, store, workers):
    survive(tmp_path, store, workers, [kill_group, kill_group if workers == 1 else kill_worker])


@pytest.mark.slow
@STORES
@WORKERS
def test_kill_thirty_times(tmp_path, store, workers):
    survive(tmp_path, store, workers, [kill_group] * 30 + [kill_group_in_between] * 5)


@pytest.mark.slow
@STORES
def test_kill_one_worker_thirty_times(tmp_path, store):
    survive(tmp_path, store, 2, [kill_worker] * 30)
