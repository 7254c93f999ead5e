"""A restart right after a kill: the address is taken for a moment; what was left behind goes."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from faults.harness import DEADLINE, SURVEY, Service, running, wait_for

pytestmark = pytest.mark.xdist_group("faults")


class Again(Service):
    """The same service with a port that is known before."""

    def __init__(self, folder, store, workers, port):
        super().__init__(folder, store, workers)
        self.address = port

    def arguments(self):
        return [*super().arguments()[:-1], str(self.address)]


def free_port():
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def stopped(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0] == "T"


def test_a_restart_waits_for_workers_that_still_listen(tmp_path):
    """The supervisor is killed while its workers are frozen: they hold the address until they
    notice. Whoever starts anew waits, says so, and takes over.
    """
    store, port = str(tmp_path / "store.sqlite"), free_port()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, second = (Again(tmp_path / name, store, 2, port) for name in ("one", "two"))
    workers = set()
    try:
        first.start()
        wait_for("both workers serve", lambda: len(first.worker_pids()) == 2 and first.healthy())
        workers = first.worker_pids()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        wait_for("both are frozen", lambda: all(map(stopped, workers)))
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        second.launch()
        wait_for(
            "the second one says that it waits",
            lambda: f"port {port} is in use; trying again" in second.words() or not second.alive(),
        )
        assert second.alive(), second.words()
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        wait_for("it serves", lambda: second.said_collecting() or not second.alive())
        assert second.alive(), second.words()
        second.port = port
        wait_for("it answers", second.healthy)
        wait_for("the old workers are gone", lambda: not first.members())
    finally:
        for pid in workers:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
        first.kill()
        second.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_kills_leave_no_folders_behind(tmp_path, workers):
    """A killed service cannot tidy up; the next one does, and touches nothing that is in use or
    somebody else's.
    """
    other = tmp_path / "other"
    other.mkdir()
    with (
        running(tmp_path, str(tmp_path / "store.sqlite"), workers) as service,
        running(other, str(other / "store.sqlite"), 1, service.temporary) as neighbour,
    ):
        mine = service.temporary / "discreet-somebody"
        mine.mkdir()
        (mine / "file").touch()
        for _ in range(3):
            service.kill()
            service.start()
            wait_for("it answers", service.healthy)
        wait_for("the neighbour answers", neighbour.healthy)
        names = [path.name for path in service.temporary.iterdir()]
        assert len(names) == 3 and "discreet-somebody" in names, names
        assert (mine / "file").exists()
        assert neighbour.n() == 0  # its counters are still there
        status, _, text = neighbour.request("GET", "/metrics")
        assert status == 200 and b"process_start_time_seconds" in text
        assert service.stop() == 0
        assert neighbour.stop() == 0
    assert [path.name for path in service.temporary.iterdir()] == ["discreet-somebody"]


def test_a_rehearsal_that_is_killed_leaves_no_folder_behind(tmp_path):
    SURVEY.save(tmp_path / "survey.json")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [Path(sys.executable).with_name("discreet"), "serve", "survey.json"]
    command += ["--rehearse", "1", "--port", "0"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    for _ in range(3):
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(
                command, cwd=tmp_path, env=environment, stdout=out, stderr=out
            )
        try:
            wait_for("it collects", lambda: "Collecting" in (tmp_path / "out").read_text())
            url = re.search(r"http://127[0-9.:]+", (tmp_path / "out").read_text())[0]
            assert httpx.get(f"{url}/healthz", timeout=DEADLINE).is_success
        finally:
            process.kill()
            process.wait()
    assert len(list(temporary.iterdir())) == 2
