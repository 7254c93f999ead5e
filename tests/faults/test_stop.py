"""SIGTERM and Ctrl-C under load: what was acknowledged is counted, what is in flight is answered,
and the store is left clean.
"""

import json
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

import psycopg
import pytest

from faults.harness import (
    HEADERS,
    PATH,
    POOL,
    Load,
    assert_exactly_once,
    look_into,
    problems,
    running,
    seed,
    wait_for,
)

pytestmark = pytest.mark.xdist_group("faults")
STORES = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
WORKERS = pytest.mark.parametrize("workers", [1, 2])
GRACE = 30


class HalfSent:
    """An upload of which the service has the head, as its `100 Continue` shows, and half of the
    body.
    """

    def __init__(self, service, book):
        self.frames, self.book = [(random.randbytes(16), POOL[k]) for k in range(20)], book
        book.send(self.frames)
        body = b"".join(id_ + report for id_, report in self.frames)
        self.rest = body[len(body) // 2 :]
        headers = {
            "Host": "here",
            "Expect": "100-continue",
            "Content-Length": str(len(body)),
            **HEADERS,
        }
        head = (
            f"POST {PATH} HTTP/1.1\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            + "\r\n"
        )
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        self.socket.sendall(head.encode())
        self.said = b""
        while not self.said.endswith(b"100 Continue\r\n\r\n"):
            self.said += self._more()
        self.socket.sendall(body[: len(body) // 2])

    def _more(self):
        more = self.socket.recv(65536)
        assert more, f"the connection ended after {self.said!r}"
        return more

    def finish(self):
        """Send the rest and read the answer to its end: the service says that it will close."""
        self.socket.sendall(self.rest)
        answer = b""
        while more := self.socket.recv(65536):
            answer += more
        self.socket.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), answer
        assert json.loads(body) == {"accepted": len(self.frames), "duplicates": 0}
        assert self.book.answer(self.frames, 200, {}, body)


def clean(store):
    """Whether nothing is left open or half done."""
    if store.startswith("postgresql://"):
        with psycopg.connect(store) as db:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'discreet'"
            wait_for(
                "PostgreSQL has seen the connections go",
                lambda: db.execute(query).fetchone() == (0,),
            )
    else:
        assert not Path(f"{store}-wal").exists(), "the write-ahead log was not emptied"
        assert oct(Path(store).stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize(
    ("store", "workers"),
    [
        ("sqlite", 1),
        ("postgres", 2),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("sqlite", 2), ("postgres", 1))),
    ],
    indirect=["store"],
)
def test_stop_under_load(tmp_path, store, workers):
    with running(tmp_path, store, workers) as service:
        with Load(service, seed()) as load:
            load.wait_for_answers(20)
            upload = HalfSent(service, load.book)
            with socket.create_connection(("127.0.0.1", service.port), timeout=60) as idle:
                began, code = time.monotonic(), []
                stopping = threading.Thread(target=lambda: code.append(service.stop()))
                stopping.start()
                while idle.recv(65536):
                    pass  # a connection without a request is closed: the service has begun to stop
            upload.finish()
            stopping.join()
            load.abandon()
        assert time.monotonic() - began < GRACE + 15
        assert code == [0]
        assert problems(look_into(store), load.book) == []
        clean(store)
        assert os.listdir(service.temporary) == []
        assert all(json.loads(line)["level"] for line in service.words().splitlines())


@pytest.mark.slow
@STORES
@WORKERS
def test_ctrl_c_under_load(tmp_path, store, workers):
    """A terminal's Ctrl-C reaches every process of the group."""
    with running(tmp_path, store, workers) as service:
        with Load(service, seed()) as load:
            load.wait_for_answers(20)
            wait_for("all workers run", lambda: len(service.worker_pids()) == workers)
            assert service.stop(signal.SIGINT, everyone=True) in (0, 130)
            load.abandon()
        assert problems(look_into(store), load.book) == []
        clean(store)
        assert os.listdir(service.temporary) == []


@pytest.mark.slow
@STORES
def test_workers_go_when_their_supervisor_is_killed(tmp_path, store):
    """Otherwise a second service would find them still there."""
    with running(tmp_path, store, 2) as service, Load(service, seed()) as load:
        for _ in range(3):
            load.wait_for_answers(5)
            wait_for("both workers run", lambda: len(service.worker_pids()) == 2)
            os.kill(service.process.pid, signal.SIGKILL)
            service.process.wait()
            wait_for("the workers are gone", lambda: not service.members())
            service.kill()
            service.start()
        load.wait_for_answers()
        assert_exactly_once(service, load.finish())


@pytest.mark.slow
def test_workers_that_start_slowly(tmp_path, monkeypatch):
    """As on a machine with too much to do: their supervisor lets them."""
    (tmp_path / "slow").mkdir()
    late = (
        "import sys, time\n"
        "if any('spawn_main' in word for word in sys.orig_argv):\n    time.sleep(8)\n"
    )
    (tmp_path / "slow" / "sitecustomize.py").write_text(late)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "slow"))
    with (
        running(tmp_path, str(tmp_path / "store.sqlite"), 2) as service,
        Load(service, seed()) as load,
    ):
        load.wait_for_answers()
        seen = {}  # when each worker was first there
        wait_for("both workers are left alone for 12 s", lambda: _settled(service, seen, 12), 60)
        assert_exactly_once(service, load.finish())


def _settled(service, seen, seconds):
    now = service.worker_pids()
    for pid in now:
        seen.setdefault(pid, time.monotonic())
    return len(now) == 2 and all(time.monotonic() - seen[pid] > seconds for pid in now)
