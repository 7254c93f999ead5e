"""The collector under load: `python -m benchmarks collector`.

Service, echo and clients are processes of their own on this machine; what is compared is measured
in turns, best of three. The client is a bare protocol on uvloop with requests built beforehand, so
that it is never what limits.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

import discreet as d
from benchmarks.reports import policy
from benchmarks.timing import seconds, si, table
from discreet.device.wire import front

ROOT = Path(__file__).parent.parent
CONNECTIONS = 16
REPEATS = 3
SINGLES, BATCHES, BATCH = 10_000, 200, 1_000  # posts of one report; posts of a thousand
LARGE, MILLION = 16_470, 1_000_000
TOKEN = "the organiser's token of this benchmark"
ECHO = b'{"accepted":1,"duplicates":0}'


# ---- the client, in a process of its own ---------------------------------------------------------


class Connection(asyncio.Protocol):
    """Sends the next request as soon as the last one is answered."""

    def __init__(
        self, requests: Iterator[bytes], times: list[float], done: asyncio.Future[None]
    ) -> None:
        self._requests, self._times, self._done = requests, times, done
        self._said = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self._done.set_result(None)
        else:
            self._began = time.perf_counter()
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        said = self._said = self._said + data if self._said else data
        end = said.find(b"\r\n\r\n")
        if end < 0 or len(said) < end + 4 + int(re.search(rb"content-length: (\d+)", said)[1]):
            return
        self._times.append(time.perf_counter() - self._began)
        self._said = b""
        if said.startswith(b"HTTP/1.1 200 "):
            self._next()
        else:
            self._done.set_exception(RuntimeError(said.decode()))

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or RuntimeError("the connection was closed"))


def requests(survey: d.Survey, posts: int, size: int, seed: int) -> list[bytes]:
    """Uploads of this many reports each, with ids of their own."""
    rng = np.random.default_rng(seed)
    pool, ids = contents(survey, min(posts * size, 200_000), rng), rng.bytes(16 * posts * size)
    frames = [ids[16 * k : 16 * k + 16] + pool[k % len(pool)] for k in range(posts * size)]
    head = (
        f"POST /v1/collections/{survey.name}/reports HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/octet-stream\r\nDiscreet-Survey: {survey.fingerprint}\r\n"
        "Content-Length: "
    ).encode()
    bodies = [b"".join(frames[k : k + size]) for k in range(0, len(frames), size)]
    return [head + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies]


def contents(survey: d.Survey, count: int, rng: np.random.Generator) -> list[bytes]:
    """What stands behind the ids of so many reports: on all questions, from all groups."""
    found: list[bytes] = []
    sizes = [len(public.items) for public in survey.public]
    for place, question in enumerate(survey.listed):
        mechanism, n = question.mechanism, -(-count // len(survey.listed))
        reports = mechanism.perturb_many(rng.integers(0, mechanism.m, n), indices=True)
        groups = rng.integers(0, sizes or [1], size=(n, max(1, len(sizes)))).tolist()
        for report, group in zip(reports, groups, strict=True):
            found.append(front(survey, place, group if sizes else []) + report.tobytes())
    return [found[k] for k in rng.permutation(len(found))[:count]]


async def _drive(port: int, prepared: list[bytes]) -> tuple[float, list[float]]:
    loop, queue, times = asyncio.get_running_loop(), iter(prepared), []
    done = [loop.create_future() for _ in range(CONNECTIONS)]
    began = time.perf_counter()
    for future in done:
        await loop.create_connection(lambda: Connection(queue, times, future), "127.0.0.1", port)
    await asyncio.gather(*done)
    return time.perf_counter() - began, times


def client(file: str, port: int, posts: int, size: int, warm: int) -> None:
    """In the client's process: some posts unmeasured, then all the others."""
    import uvloop

    prepared = requests(d.Survey.load(file), posts + warm, size, int.from_bytes(os.urandom(4)))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_drive(port, prepared[:warm]))
        took, times = runner.run(_drive(port, prepared[warm:]))
    p50, p99 = np.quantile(times, (0.5, 0.99))
    print(json.dumps({"rate": posts / took, "p50": p50, "p99": p99, "slowest": max(times)}))


def drive(file: Path, port: int, posts: int, size: int = 1, warm: int = 0) -> dict[str, float]:
    return json.loads(_child("client", file, port, posts, size, warm).splitlines()[-1])


# ---- the servers ---------------------------------------------------------------------------------


def echo() -> None:
    """In the echo's process: a bare Starlette that reads the body, under the settings
    with which the collector runs uvicorn.
    """
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from discreet.collector import server

    async def answer(request: Request) -> Response:
        await request.body()
        return Response(ECHO, media_type="application/json")

    route = Route("/v1/collections/{name}/reports", answer, methods=["POST"])
    server.application = lambda: Starlette(routes=[route])
    sock = server.listen("127.0.0.1", 0)
    print(f"http://127.0.0.1:{sock.getsockname()[1]}/", flush=True)
    server.run("", sock)


@contextmanager
def serving(command: list[Any], folder: Path) -> Iterator[tuple[int, int]]:
    """A server's port and process id."""
    environment = {**os.environ, "DISCREET_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=folder, env=environment, text=True
    )
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())):
            if process.poll() is not None:
                raise RuntimeError("the server did not start")
        port = int(found[1])
        while True:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
                    connection.request("GET", "/healthz")
                    connection.getresponse().read()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def collector(file: Path, store: str) -> Any:
    command = [
        Path(sys.executable).parent / "discreet",
        "serve",
        file,
        "--store",
        store,
        "--port",
        "0",
    ]
    return serving(command, file.parent)


def _child(*arguments: Any) -> str:
    command = [sys.executable, "-m", "benchmarks.collector", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return done.stdout


@contextmanager
def postgres() -> Iterator[Callable[[], str] | None]:
    """Makes databases in a PostgreSQL of our own, the tests' one but with fsync; None
    where there is none.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from postgres import Postgres, programs

    where = programs()
    if where is None:
        yield None
        return

    class Durable(Postgres):
        def start(self) -> None:
            self._run(
                "pg_ctl",
                "-w",
                "-l",
                str(self.folder / "log"),
                "-o",
                f'-c listen_addresses="" -k {self.folder}',
                "start",
            )
            with psycopg.connect(self.url()) as db:
                if db.execute("SHOW fsync").fetchone() != ("on",):
                    raise RuntimeError("PostgreSQL runs without fsync")

    server = Durable(where)
    try:
        yield server.fresh
    finally:
        server.stop("immediate")
        subprocess.run(["rm", "-r", server.folder], check=True)


# ---- raw inserts of the same rows ----------------------------------------------------------------


def raw_sqlite(path: Path) -> float:
    """Reports per second: ids into a table like the collector's, duplicates ignored, a
    thousand to a transaction.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536"):
            db.execute(f"PRAGMA {statement}")
        db.execute(
            "CREATE TABLE report (collection INTEGER NOT NULL, id BLOB NOT NULL, report BLOB, "
            "PRIMARY KEY (collection, id)) "
            "WITHOUT ROWID"
        )
        groups = [[(1, os.urandom(16)) for _ in range(BATCH)] for _ in range(BATCHES)]
        began = time.perf_counter()
        for rows in groups:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR IGNORE INTO report (collection, id) VALUES (?, ?)", rows)
            db.execute("COMMIT")
        return BATCHES * BATCH / (time.perf_counter() - began)


def raw_postgres(url: str) -> float:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "CREATE TABLE report (collection INTEGER NOT NULL, id BYTEA NOT NULL, report BYTEA, "
            "PRIMARY KEY (collection, id))"
        )
        groups = [[os.urandom(16) for _ in range(BATCH)] for _ in range(BATCHES)]
        began = time.perf_counter()
        for ids in groups:
            with db.transaction():
                db.execute(
                    "INSERT INTO report (collection, id) SELECT 1, unnest(%b::bytea[]) ON "
                    "CONFLICT DO NOTHING",
                    (ids,),
                    binary=True,
                )
        return BATCHES * BATCH / (time.perf_counter() - began)


# ---- the tables ----------------------------------------------------------------------------------


def _mechanism(folder: Path, m: int) -> Path:
    """What `discreet serve` makes of such a policy."""
    file = folder / f"{m}.json"
    d.design(policy(m), encoding="ticket", goal="total").save(file)
    return file


def _stores(folder: Path, fresh: Callable[[], str] | None) -> dict[str, Callable[[], str]]:
    """How to make a new store of each kind."""
    sqlite = lambda: str(Path(tempfile.mkdtemp(dir=folder)) / "store.sqlite")  # noqa: E731
    return {"SQLite": sqlite} | ({"PostgreSQL": fresh} if fresh else {})


def _singles(file: Path, stores: dict[str, Callable[[], str]]) -> list[list[Any]]:
    found: dict[str, list[dict[str, float]]] = {"echo": [], **{name: [] for name in stores}}
    for _ in range(REPEATS):
        with serving([sys.executable, "-m", "benchmarks.collector", "echo"], file.parent) as (
            port,
            _,
        ):
            found["echo"].append(drive(file, port, 2 * SINGLES, warm=1000))
        for name, store in stores.items():
            with collector(file, store()) as (port, _):
                found[name].append(drive(file, port, SINGLES, warm=1000))
    return _rows(found, "echo", "bare Starlette echo")


def _batches(file: Path, stores: dict[str, Callable[[], str]]) -> list[list[Any]]:
    raw = {"SQLite": lambda url: raw_sqlite(Path(url)), "PostgreSQL": raw_postgres}
    rows = []
    for name, store in stores.items():
        found: dict[str, list[dict[str, float]]] = {"raw": [], name: []}
        for _ in range(REPEATS):
            found["raw"].append({"rate": raw[name](store())})
            with collector(file, store()) as (port, _):
                result = drive(file, port, BATCHES, BATCH, warm=20)
            found[name].append({**result, "rate": result["rate"] * BATCH})
        rows += _rows(found, "raw", f"raw inserts, {name}")
    return rows


def _rows(found: dict[str, list[dict[str, float]]], base: str, label: str) -> list[list[Any]]:
    best = {name: max(runs, key=lambda run: run["rate"]) for name, runs in found.items()}
    rows = []
    for name, run in best.items():
        times = [seconds(run[key]) if key in run else "–" for key in ("p50", "p99", "slowest")]
        spread = " / ".join(si(other["rate"]) for other in found[name])
        rows.append(
            [
                label if name == base else f"discreet serve, {name}",
                si(run["rate"]),
                f"{run['rate'] / best[base]['rate']:.2f} ×",
            ]
            + [*times, spread]
        )
    return rows


def _resident(pid: int) -> str:
    kilobytes = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]
    return f"{int(kilobytes) / 1024:.0f} MiB"


def _growth(file: Path, stores: dict[str, Callable[[], str]]) -> list[list[Any]]:
    """Memory of the service at several numbers of reports."""
    rows = []
    for name, store in stores.items():
        with collector(file, store()) as (port, pid):
            row, n = [name, _resident(pid)], 0
            for goal in (MILLION // 10, MILLION // 2, MILLION):
                drive(file, port, (goal - n) // BATCH, BATCH)
                n = goal
                row.append(_resident(pid))
        rows.append(row)
    return rows


def _estimates(file: Path, store: str) -> list[list[Any]]:
    """The first answer, and those after one more report each; the service counts a
    million reports of many items first.
    """
    survey = d.Survey.load(file)
    with (
        collector(file, store) as (port, _),
        closing(http.client.HTTPConnection("127.0.0.1", port)) as connection,
    ):
        loaded = time.perf_counter()
        drive(file, port, MILLION // 10_000, 10_000)
        loaded = time.perf_counter() - loaded

        def ask(query: str) -> tuple[float, int]:
            drive(file, port, 1)
            began = time.perf_counter()
            path = f"/v1/collections/{survey.name}/estimate{query}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise RuntimeError(body)
            return time.perf_counter() - began, len(body)

        rows = []
        for label, query in (
            ("counts", ""),
            ("with shrunk", "?views=shrunk"),
            ("CSV", "?format=csv"),
        ):
            first, size = ask(query)
            times = [ask(query)[0] for _ in range(7)]
            rows.append(
                [
                    label,
                    seconds(first),
                    seconds(min(times)),
                    seconds(statistics.median(times)),
                    f"{size / 2**20:.1f} MiB",
                ]
            )
    print(f"a million reports of {survey.mechanism.m:,} items in {loaded:.1f} s", file=sys.stderr)
    return rows


def _written(file: Path, stores: dict[str, Callable[[], str]]) -> list[list[Any]]:
    """Bytes of the write-ahead log per report, ids included, once 200,000 reports are there."""
    from discreet.collector.sqlite import SqliteDatabase
    from discreet.collector.store import Upload, open_store

    survey = d.Survey.load(file)
    mechanism = survey.mechanism
    reports = mechanism.perturb_many(np.random.default_rng(0).integers(0, mechanism.m, 300_000))
    rows = []
    for name, make in stores.items():
        url = make()
        store = open_store(url)
        store.create(survey)

        def add(first: int, last: int, step: int, store: Any = store) -> None:
            for k in range(first, last, step):
                some = reports[k : k + step]
                ids = [os.urandom(16) for _ in some]
                store.add([Upload(survey.name, ids, [row.tobytes() for row in some])])

        def log(url: str = url, store: Any = store) -> int:
            if url.startswith("postgresql"):
                with psycopg.connect(url, autocommit=True) as db:
                    return int(db.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()[0])
            return Path(f"{url}-wal").stat().st_size

        add(0, 200_000, 1000)
        if isinstance(store.database, SqliteDatabase):
            store.database.connection.execute("PRAGMA wal_autocheckpoint = 0")
            store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        start = log()
        add(200_000, 202_000, 1)
        middle = log()
        add(202_000, 300_000, 1000)
        one, many = (middle - start) / 2000, (log() - middle) / 98_000
        rows.append([name, f"{one:,.0f} bytes", f"{many:,.0f} bytes"])
        store.close()
    return rows


def run() -> str:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, postgres() as fresh:
        folder = Path(name)
        stores = _stores(folder, fresh)
        small, large = _mechanism(folder, 1000), _mechanism(folder, LARGE)
        singles, batches = _singles(small, stores), _batches(small, stores)
        memory, estimates = _growth(small, stores), _estimates(large, stores["SQLite"]())
        written = _written(large, stores)
    many = f"{MILLION:,} reports"
    times = ["p50", "p99", "slowest", "all runs"]
    return (
        table(
            f"Collector, posts of one report, m = 1,000, {CONNECTIONS} connections",
            ["", "posts / s", "against", *times],
            singles,
        )
        + table(
            f"Collector, posts of {BATCH:,} tickets, m = 1,000",
            ["", "reports / s", "against raw", *times],
            batches,
        )
        + table(
            "Collector, memory of the service (RSS)",
            ["store", "at the start", "100,000", "500,000", many],
            memory,
        )
        + table(
            f"Collector, estimate of {LARGE:,} items at {many}",
            ["answer", "first", "best", "median of 7", "size"],
            estimates,
        )
        + table(
            f"Collector, written per report at {LARGE:,} items, ids included",
            ["store", "one by one", "in batches of 1,000"],
            written,
        )
        + "\n\nOf the write-ahead log, once 200,000 reports are there. In SQLite a report writes "
        "two or three whole pages (of 1 KiB), and in batches the random ids fall on as many leaves "
        "of their tree as there are ids; PostgreSQL's figure also has the pages that it writes "
        f"whole after a checkpoint. Load when the collector's part began: {load:.1f}."
    )


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        echo()
    else:
        client(sys.argv[2], *map(int, sys.argv[3:]))
