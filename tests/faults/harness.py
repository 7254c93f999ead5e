"""Real processes: a service that can be killed, clients that do not give up, a sceptical checker.

Nothing here assumes how long anything takes; a deadline only turns a hang into a failure.
"""

import http.client
import json
import os
import random
import re
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

import discreet as d

DEADLINE = 120.0  # seconds until something that must happen has not happened
TOKEN = "the organiser's token of these tests"
POLICY = d.Policy.from_levels(
    [("high", 1.0, [f"h{i}" for i in range(4)]), ("low", 2.0, [f"l{i}" for i in range(33)])],
    question="Which?",
)
MECHANISM = d.design(POLICY)  # several parts, bits: 1 + 5 bytes
SMALL = d.design(d.Policy.from_budgets(dict.fromkeys("abc", 1), question="What?"), "opt0")
assert len(MECHANISM.parts) > 1 and MECHANISM.report_size == 6
assert len(SMALL.parts) == 1 == SMALL.report_size  # frames of two widths
SURVEY = d.Survey(
    "faults",
    {"which": MECHANISM, "what": SMALL},
    public=[
        {"name": "region", "text": "Where?", "items": ["north", "south", "west"]},
        {"name": "shift", "text": "When?", "items": ["day", "night"]},
    ],
)
FRONT = 3  # bytes before a report: the question, and the two public answers


def _pool() -> list[bytes]:
    """What stands behind the ids: reports on both questions from every group of people."""
    rng, found = np.random.default_rng(3), []
    for place, mechanism in enumerate((MECHANISM, SMALL)):
        for report in mechanism.perturb_many(np.arange(2000) % mechanism.m):
            group = [int(rng.integers(3)), int(rng.integers(2))]
            found.append(bytes([place, *group]) + report.tobytes())
    return [found[k] for k in rng.permutation(len(found))]


POOL = _pool()


def seed() -> int:
    """Of this test; pytest shows what is printed when the test fails."""
    found = int(os.environ.get("DISCREET_SEED") or secrets.randbits(32))
    print(f"seed {found} (DISCREET_SEED={found} draws the same again)")
    return found


def wait_for(what: str, condition: Callable[[], object], deadline: float = DEADLINE) -> None:
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"not within {deadline:.0f} s: {what}"
        time.sleep(0.01)


# ---- the service ---------------------------------------------------------------------------------


class Process(NamedTuple):
    pid: int
    parent: int
    command: str


def group(leader: int) -> list[Process]:
    """The living processes of a group, those that are only waiting to be buried left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, pgrp = (folder / "stat").read_text().rpartition(") ")[2].split()[:3]
            if int(pgrp) == leader and state not in "ZX":
                found.append(
                    Process(
                        int(folder.name),
                        int(parent),
                        (folder / "cmdline").read_text().replace("\0", " "),
                    )
                )
        except (OSError, ValueError):
            continue
    return found


class Service:
    """`discreet serve` with its workers, in a process group of its own."""

    def __init__(
        self, folder: Path, store: str, workers: int = 1, temporary: Path | None = None
    ) -> None:
        self.folder, self.store, self.workers = folder, store, workers
        self.port: int | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.temporary = temporary or folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self._said = folder / "stderr"
        SURVEY.save(folder / "survey.json")

    def arguments(self) -> list[str]:
        """Of `discreet serve`; the port is the last."""
        found = ["survey.json", "--store", self.store, "--workers", str(self.workers)]
        return [*found, "--keep-reports", "--port", "0"]

    def launch(self) -> None:
        """Start it; whether it comes up is not waited for."""
        assert self.process is None
        command = [Path(sys.executable).parent / "discreet", "serve", *self.arguments()]
        environment = {**os.environ, "DISCREET_TOKEN": TOKEN, "TMPDIR": str(self.temporary)}
        with (self.folder / "stdout").open("wb") as out, self._said.open("ab") as err:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start it and learn its port."""
        self.launch()
        text = self.folder / "stdout"
        wait_for(
            "discreet serve says that it collects",
            lambda: self.said_collecting() or self.process.poll() is not None,
        )
        assert self.alive(), self.words()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", text.read_text())[1])

    def said_collecting(self) -> bool:
        return "Collecting" in (self.folder / "stdout").read_text()

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def members(self) -> list[Process]:
        return group(self.process.pid)

    def worker_pids(self) -> set[int]:
        """The workers of a supervisor; a service of one worker is its own."""
        if self.workers == 1:
            return {self.process.pid}
        return {
            p.pid
            for p in self.members()
            if p.parent == self.process.pid and "spawn_main" in p.command
        }

    def kill(self) -> None:
        """SIGKILL to the whole group; returns when nothing of it lives."""
        if self.process is None:
            return
        leader, self.port = self.process.pid, None
        with suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
        self.process.wait(DEADLINE)
        wait_for("the killed processes are gone", lambda: not group(leader))
        self.process = None

    def stop(self, sign: int = signal.SIGTERM, everyone: bool = False) -> int:
        """Ask it to end (a Ctrl-C reaches everyone in the group); returns its exit code."""
        (os.killpg if everyone else os.kill)(self.process.pid, sign)
        code = self.process.wait(DEADLINE)
        leader, self.port, self.process = self.process.pid, None, None
        wait_for("the workers are gone", lambda: not group(leader))
        return code

    def request(
        self, method: str, path: str, body: bytes = b"", timeout: float = DEADLINE
    ) -> tuple[int, dict[str, str], bytes]:
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        ) as connection:
            connection.request(method, path, body, HEADERS)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def healthy(self) -> bool:
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def n(self) -> int:
        """The number of reports on all questions, as the organiser is told."""
        status, _, body = self.request("GET", "/v1/collections/faults/estimate")
        assert status == 200, body
        return sum(question["n"] for question in json.loads(body)["asked"])

    def words(self) -> str:
        """The end of what it said on stderr."""
        return self._said.read_text()[-2000:] if self._said.exists() else ""


HEADERS = {
    "Content-Type": "application/octet-stream",
    "Discreet-Survey": SURVEY.fingerprint,
    "Authorization": f"Bearer {TOKEN}",
}
PATH = "/v1/collections/faults/reports"


@contextmanager
def running(
    folder: Path, store: str, workers: int = 1, temporary: Path | None = None
) -> Iterator[Service]:
    """A started service; nothing of it survives the block."""
    service = Service(folder, store, workers, temporary)
    try:
        service.start()
        yield service
    finally:
        service.kill()
        print(f"stderr of the service:\n{service.words()}")


# ---- the clients ---------------------------------------------------------------------------------


class Book:
    """What the clients know for certain, all of them together."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sent: dict[bytes, set[bytes]] = {}  # id -> the reports it was sent with
        self.acknowledged: set[bytes] = set()
        self.accepted = 0  # as the answers say
        self.answers = 0  # acknowledgements
        self.refused: Counter[int] = Counter()  # by status
        self.wrong: list[str] = []  # what should never be answered
        self.freezes = False  # whether the service is stopped for longer than a body may take

    def send(self, frames: list[tuple[bytes, bytes]]) -> None:
        with self.lock:
            for id_, report in frames:
                self.sent.setdefault(id_, set()).add(report)

    def answer(
        self, frames: list[tuple[bytes, bytes]], status: int, headers: dict[str, str], body: bytes
    ) -> bool:
        """Write an answer down; returns whether it acknowledged the frames."""
        with self.lock:
            if status != 200:
                self.refused[status] += 1
                if status == 408 and self.freezes:
                    pass  # a body that lay there while its reader was frozen came too late
                elif status != 503:
                    self.wrong.append(f"answer {status}: {body[:300]!r}")
                elif not headers.get("retry-after", "").isdigit():
                    self.wrong.append(f"a 503 without Retry-After: {headers}")
                return False
            said = json.loads(body)
            if (
                said["accepted"] + said["duplicates"] != len(frames)
                or said["accepted"] < 0
                or said["duplicates"] < 0
            ):
                self.wrong.append(f"{len(frames)} frames were answered with {said}")
            self.answers += 1
            self.accepted += said["accepted"]
            self.acknowledged.update(id_ for id_, _ in frames)
            return True


class Load:
    """Clients that send without pause and repeat the same frames until they are acknowledged.

    Now and then two of them send the same frames at once, a body has an id twice, or an id comes
    with two reports.
    """

    def __init__(self, service: Service, number: int, clients: int = 4) -> None:
        self.service, self.book = service, Book()
        self._stopping, self._hurry = threading.Event(), time.monotonic() + 10 * 3600
        self._shared: deque[list[tuple[bytes, bytes]]] = deque(maxlen=8)
        self._threads = [
            threading.Thread(target=self._client, args=(random.Random(number + k),))
            for k in range(clients)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._hurry = 0
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def finish(self) -> Book:
        """No new reports; everything that is pending is sent until it is acknowledged."""
        self._hurry = time.monotonic() + DEADLINE
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        assert not self.book.wrong, self.book.wrong[:3]
        assert self.book.acknowledged == set(self.book.sent), "some reports were never acknowledged"
        return self.book

    def abandon(self) -> None:
        """Send nothing more, not even what is pending."""
        self._hurry = 0
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        assert not self.book.wrong, self.book.wrong[:3]

    def wait_for_answers(self, more: int = 1) -> None:
        """Until this many further posts are acknowledged: the service is up and under load."""
        goal = self.book.answers + more
        wait_for("acknowledgements", lambda: self.book.answers >= goal or self.book.wrong)
        assert not self.book.wrong, self.book.wrong[:3]

    def wait_for_refusals(self, more: int = 1) -> None:
        """Until this many further posts are refused with 503."""
        goal = self.book.refused[503] + more
        wait_for("refusals", lambda: self.book.refused[503] >= goal or self.book.wrong)
        assert not self.book.wrong, self.book.wrong[:3]

    def _frames(self, rng: random.Random) -> list[tuple[bytes, bytes]]:
        if rng.random() < 0.2:
            with suppress(IndexError):
                return self._shared.popleft()
        frames = [(rng.randbytes(16), rng.choice(POOL)) for _ in range(rng.randint(1, 50))]
        if rng.random() < 0.1:
            frames.append(rng.choice(frames))
        if rng.random() < 0.1:
            frames.append((rng.choice(frames)[0], rng.choice(POOL)))
        self.book.send(frames)
        if rng.random() < 0.2:
            self._shared.append(frames)
        return frames

    def _client(self, rng: random.Random) -> None:
        connection: http.client.HTTPConnection | None = None
        try:
            while not self._stopping.is_set():
                frames = self._frames(rng)
                body = b"".join(id_ + report for id_, report in frames)
                while time.monotonic() < self._hurry:
                    if connection is None:
                        connection = self._connect()
                    if connection is not None and (answer := self._exchange(connection, body)):
                        if self.book.answer(frames, *answer):
                            break
                    elif connection is not None:
                        connection.close()
                        connection = None
                    time.sleep(rng.uniform(0.005, 0.05))
        finally:
            if connection is not None:
                connection.close()

    def _connect(self) -> http.client.HTTPConnection | None:
        port = self.service.port
        if port is None:
            return None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.connect()
        except OSError:
            return None
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @staticmethod
    def _exchange(
        connection: http.client.HTTPConnection, body: bytes
    ) -> tuple[int, dict[str, str], bytes] | None:
        try:
            connection.request("POST", PATH, body, HEADERS)
            answer = connection.getresponse()
            return (
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        except (OSError, http.client.HTTPException):
            return None


# ---- the checker ---------------------------------------------------------------------------------


# By question and group: reports per part, then the counts.
Numbers = dict[bytes, np.ndarray]


class Contents(NamedTuple):
    """All that a store holds of the collection."""

    ids: list[bytes]
    reports: list[bytes]
    numbers: Numbers  # with those that wait


def look_into(store: str) -> Contents:
    """Read the tables themselves, past the code that is tested."""
    if store.startswith("postgresql://"):
        import psycopg

        with psycopg.connect(store) as db:
            rows = db.execute("SELECT id, report FROM discreet_report_1", binary=True).fetchall()
            (numbers,) = db.execute("SELECT numbers FROM discreet_tally_1", binary=True).fetchone()
            waiting = db.execute("SELECT reports FROM discreet_waiting_1", binary=True).fetchall()
    else:
        with closing(sqlite3.connect(store)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            rows = db.execute("SELECT id, report FROM report").fetchall()
            (numbers,) = db.execute("SELECT numbers FROM tally").fetchone()
            waiting = db.execute("SELECT reports FROM waiting").fetchall()
    pending = [one for (some,) in waiting for one in _cut(_open(some))]
    whole = _sum(_read(_open(numbers)), recount(pending))
    return Contents([id_ for id_, _ in rows], [report for _, report in rows], whole)


def _open(raw: bytes) -> bytes:
    """What stands behind a checksum, which must be right."""
    assert raw[:1] == b"c" and zlib.crc32(raw[5:]) == int.from_bytes(raw[1:5], "little")
    return raw[5:]


def _read(raw: bytes) -> Numbers:
    """The numbers of every question and group, one after the other."""
    found, at = {}, 0
    while at < len(raw):
        slot = raw[at : at + FRONT]
        mechanism = (MECHANISM, SMALL)[slot[0]]
        end = at + FRONT + 8 * len(mechanism.parts) * (mechanism.m + 1)
        assert slot not in found and end <= len(raw)
        found[slot] = np.frombuffer(raw[at + FRONT : end], "<i8")
        at = end
    return found


def _cut(raw: bytes) -> list[bytes]:
    """Reports one after the other, each behind its front."""
    found, at = [], 0
    while at < len(raw):
        end = at + FRONT + (MECHANISM, SMALL)[raw[at]].report_size
        assert end <= len(raw)
        found.append(raw[at:end])
        at = end
    return found


def _sum(first: Numbers, second: Numbers) -> Numbers:
    slots = {*first, *second}
    return {slot: first.get(slot, 0) + second.get(slot, 0) for slot in slots}


def recount(contents: list[bytes]) -> Numbers:
    """By question and group, reports per part and the count of every bit, the slow and plain
    way.
    """
    by_slot: dict[bytes, list[bytes]] = {}
    for content in contents:
        by_slot.setdefault(content[:FRONT], []).append(content[FRONT:])
    return {
        slot: _recount((MECHANISM, SMALL)[slot[0]], reports) for slot, reports in by_slot.items()
    }


def _recount(mechanism: d.Mechanism, reports: list[bytes]) -> np.ndarray:
    parts, several = range(len(mechanism.parts)), len(mechanism.parts) > 1
    rows = np.frombuffer(b"".join(reports), np.uint8).reshape(-1, mechanism.report_size)
    bits = np.unpackbits(rows[:, several:], axis=1, bitorder="little")[:, : mechanism.m]
    mine = [rows[:, 0] == k if several else np.full(len(rows), True) for k in parts]
    return np.concatenate(
        [[which.sum() for which in mine], *(bits[which].sum(axis=0, dtype="<i8") for which in mine)]
    )


def reports_in(numbers: Numbers) -> int:
    """How many reports were counted."""
    return sum(
        int(x[: len((MECHANISM, SMALL)[slot[0]].parts)].sum()) for slot, x in numbers.items()
    )


def same(first: Numbers, second: Numbers) -> bool:
    """Whether they are equal, with or without those that are all zero."""
    return all(not x.any() for x in _sum(first, {slot: -x for slot, x in second.items()}).values())


def problems(contents: Contents, book: Book) -> list[str]:
    """Everything that is not as it must be, in words."""
    found = []
    stored, numbers = set(contents.ids), contents.numbers
    n = reports_in(numbers)
    if lost := book.acknowledged - stored:
        found.append(f"lost: {len(lost)} acknowledged reports are not in the store")
    if len(stored) < len(contents.ids):
        found.append(f"twice: {len(contents.ids) - len(stored)} ids are stored more than once")
    if n != len(stored):
        found.append(f"n: the tally has {n} reports, the store {len(stored)} ids")
    if not same(numbers, recount(contents.reports)):
        found.append("tally: it differs from a recount of the stored reports")
    if strange := sum(
        report not in book.sent.get(id_, ()) for id_, report in zip(contents.ids, contents.reports)
    ):
        found.append(f"strange: {strange} stored reports were never sent")
    if book.accepted > n:
        found.append(f"accepted: the answers say {book.accepted} were new, the tally has {n}")
    return found


def assert_exactly_once(service: Service, book: Book) -> None:
    """Acknowledged is counted, once, and the organiser is told the same number."""
    contents = look_into(service.store)
    assert problems(contents, book) == []
    if service.port is not None:
        assert service.n() == len(contents.ids)
    print(f"{len(book.acknowledged):,} reports acknowledged, all of them counted once")
