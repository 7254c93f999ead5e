"""Counting tickets: a billion from Parquet to estimates, how it grows, and the old way beside it.
`python -m benchmarks counting`; COUNTING_N in the environment makes it smaller.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as d
from benchmarks.memory import _peak_of
from benchmarks.reports import ROOT, peer_python, policy
from benchmarks.timing import best, seconds, si, table
from discreet.arrays.ticket import TicketBlocks
from discreet.data.counting import tally_files
from discreet.data.reports import read_piece, split_file
from discreet.encodings.ticket import Ticket

ITEMS = 41_270
N = int(float(os.environ.get("COUNTING_N", 1e9)))
SCRIPT = Path(sys.executable).parent / "discreet"


def run() -> str:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=ROOT / ".bench-venv") as name:
        folder = Path(name)
        mechanism = d.design(policy(ITEMS), goal="total")
        mechanism.save(folder / "m.json")
        made = _answers_and_reports(folder, mechanism)
        whole, growth = _whole(folder, mechanism), _growth(folder / "r.parquet", mechanism)
        engines = _engines(folder / "r.parquet", mechanism)
    told = (
        f"The file, {4 * N / 1e9:.1f} GB, was made by `discreet perturb`, streamed, in "
        f"{made[0]:.0f} s ({si(N / made[0])} reports / s, peak {made[1] / 2**20:.2f} GiB) and lay "
        "in the page cache. "
        f"Load of the machine when this began: {load:.1f}; peak of this process "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB."
    )
    heads = ["", "time", "against only reading", "peak resident"]
    return (
        table(f"Counting, {N:,} tickets over {ITEMS:,} items, from Parquet", heads, whole)
        + f"\n\n{told}\n"
        + table(
            f"Counting, growth with n over {ITEMS:,} items, two threads",
            ["n", "time", "reports / s", "decoded by"],
            growth,
        )
        + table(
            f"Counting, {min(N, 100_000_000):,} tickets by other engines",
            ["", "time", "against discreet", "the same tally"],
            engines,
        )
        + table(
            "Counting, growth with m, 10,000,000 tickets in memory, two threads",
            ["m", "field", "parts", "histogram", "time", "decoded by"],
            _wide(),
        )
        + table(
            f"Counting, one report over {ITEMS:,} items, one thread",
            ["", "time per report", "against the histogram"],
            _others(mechanism),
        )
    )


def _answers_and_reports(folder: Path, mechanism: d.Mechanism) -> tuple[float, int]:
    rng = np.random.default_rng(0)
    schema = pa.schema([("item", pa.uint16())])
    with pq.ParquetWriter(
        folder / "a.parquet", schema, compression="none", use_dictionary=False
    ) as writer:
        for first in range(0, N, 1 << 22):
            some = (rng.pareto(1.1, min(1 << 22, N - first)) * 40).clip(0, ITEMS - 1)
            writer.write_table(pa.table({"item": some.astype(np.uint16)}, schema))
    began = time.perf_counter()
    command = [str(SCRIPT), "perturb", "m.json", "a.parquet", "--indices", "-o", "r.parquet"]
    peak = _peak_of(command, folder)
    (folder / "a.parquet").unlink()
    return time.perf_counter() - began, peak


def _whole(folder: Path, mechanism: d.Mechanism) -> list[list[object]]:
    file = folder / "r.parquet"
    read = best(lambda: _only_read(file, mechanism), 0, 3)
    rows: list[list[object]] = [["only reading the file, two threads", seconds(read), "1", ""]]

    def add(what: str, took: float, peak: object = "") -> None:
        rows.append([what, seconds(took), f"{took / read:.2f} x", peak])

    tally = tally_files([file], mechanism)[None]  # compiled and warm
    add("reading, counting and decoding", best(lambda: tally_files([file], mechanism), 0, 3))
    add("estimates with standard errors", best(lambda: tally.estimate().stderr, 0, 3))
    for name, source, out in (("tally", "r.parquet", "t.json"), ("estimate", "t.json", "e.csv")):
        began = time.perf_counter()
        peak = _peak_of([str(SCRIPT), name, "m.json", source, "-o", out], folder)
        took = time.perf_counter() - began
        add(f"`discreet {name}`, the whole command", took, f"{peak / 2**20:.2f} GiB")
    return rows


def _only_read(file: Path, mechanism: d.Mechanism) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def read(piece: object) -> None:
        for batch in read_piece(piece, mechanism):
            batch.column(0).to_numpy()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(read, split_file(file, mechanism)))


def _growth(file: Path, mechanism: d.Mechanism) -> list[list[object]]:
    """The first so many reports of the file, as arrays in memory below 10^8, from the file else."""
    rows, n = [], 100_000
    head = pq.ParquetFile(file).iter_batches(1 << 20)
    held = np.concatenate(
        [next(head).column(0).to_numpy() for _ in range(min(96, max(1, N >> 20)))]
    )
    while n <= N:
        if n <= len(held):
            took = best(lambda n=n: mechanism.tally(held[:n]), 0.5)
        else:
            took = best(lambda: tally_files([file], mechanism), 0, 2)
        rows.append([f"{n:,}", seconds(took), si(n / took), _way(mechanism, n)])
        n *= 10
    return rows


def _way(mechanism: d.Mechanism, n: int) -> str:
    coder = mechanism.arrays.coder
    assert isinstance(coder, TicketBlocks)
    return "transform" if coder.transform_pays(n // len(mechanism.parts)) else "mark by mark"


def _wide() -> list[list[object]]:
    rows, rng = [], np.random.default_rng(0)
    for m in (100, 1_000, 10_000, 41_270, 100_000, 200_000):
        mechanism = d.design(policy(m), encoding="ticket", goal="total")
        reports = mechanism.perturb_many(rng.integers(0, m, 10_000_000))
        took = best(lambda x=mechanism, y=reports: x.tally(y), 0, 3)
        ticket, k = mechanism.encoding, len(mechanism.parts)
        assert isinstance(ticket, Ticket)
        size = f"{5 * k * ticket.tickets / 2**20:,.0f} MiB a thread"
        field, way = f"{ticket.q}^{ticket.t}", _way(mechanism, len(reports))
        rows.append([f"{m:,}", field, k, size, seconds(took), way])
    return rows


def _others(mechanism: d.Mechanism) -> list[list[object]]:
    rng = np.random.default_rng(0)
    reports = mechanism.perturb_many(rng.integers(0, ITEMS, 1 << 24))
    mine = best(lambda: mechanism.tally(reports, threads=1), 0, 3) / len(reports)
    few = reports[:20_000]
    coder = mechanism.arrays.coder
    part, _ = coder.refusals(few)

    def marks() -> None:
        for p in np.unique(part):
            coder.count(int(p), few[part == p])

    rows: list[list[object]] = [
        [f"histogram and transform, {len(reports):,} reports", seconds_small(mine), "1"],
        ["mark by mark (the old way)", *_ratio(best(marks, 0.5) / len(few), mine)],
    ]
    python = peer_python()
    if python:
        done = subprocess.run(
            [python, str(ROOT / "benchmarks" / "peers.py"), "hashing", str(ITEMS), "1.0"],
            capture_output=True,
            text=True,
        )
        found = json.loads(done.stdout) if done.returncode == 0 else {}
        rows += [[name, *_ratio(took, mine)] for name, took in found.items()]
    rows.append(["opendp", "has no frequency oracle of this kind", ""])
    return rows


def _ratio(took: float, mine: float) -> tuple[str, str]:
    return seconds_small(took), f"{took / mine:,.0f} x"


def seconds_small(x: float) -> str:
    return f"{x * 1e9:.2f} ns" if x < 1e-6 else f"{x * 1e6:,.1f} µs"


def _engines(file: Path, mechanism: d.Mechanism) -> list[list[object]]:
    """The same tickets, grouped by others and decoded here; Spark and SQLite in their own way."""
    import sqlite3
    from contextlib import closing

    import duckdb

    from discreet.data.engines import spark

    n = min(N, 100_000_000)
    part = file.parent / "part.parquet"
    with pq.ParquetFile(file) as whole:
        schema = whole.schema_arrow
        with pq.ParquetWriter(part, schema, compression="none", use_dictionary=False) as writer:
            left = n
            for batch in whole.iter_batches(1 << 20):
                writer.write_batch(batch.slice(0, min(left, len(batch))))
                left -= min(left, len(batch))
                if not left:
                    break
    grouping = "SELECT report, count(*) AS count FROM {} GROUP BY report"
    expected = tally_files([part], mechanism)[None]
    mine = best(lambda: tally_files([part], mechanism), 0, 3)
    rows: list[list[object]] = [["discreet, two threads", seconds(mine), "1", "yes"]]

    def add(what: str, work: Callable[[], d.Tally], least: int = 2) -> None:
        found: list[d.Tally] = []
        took = best(lambda: found.append(work()), 0, least)
        same = "yes" if all(tally == expected for tally in found) else "no"
        rows.append([what, seconds(took), f"{took / mine:.1f} x", same])

    def in_duckdb() -> d.Tally:
        counted = duckdb.sql(grouping.format(f"'{part}'")).arrow().read_all()
        return mechanism.tally(counted["report"].to_numpy(), counted["count"].to_numpy())

    add("DuckDB groups, discreet decodes", in_duckdb)
    session = spark.session("local[2]")
    session.sparkContext.setLogLevel("OFF")
    add(
        "Spark local[2] groups, discreet decodes",
        lambda: spark.tally_files([str(part)], mechanism)[None],
    )
    session.stop()
    with closing(sqlite3.connect(file.parent / "part.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA cache_size = -1000000")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("CREATE TABLE reports (report INTEGER)")
        db.execute("BEGIN")
        for batch in pq.ParquetFile(part).iter_batches(1 << 18):
            db.executemany("INSERT INTO reports VALUES (?)", zip(batch.column(0).to_pylist()))
        db.execute("COMMIT")

        def in_sqlite() -> d.Tally:
            counted = np.array(db.execute(grouping.format("reports")).fetchall())
            return mechanism.tally(counted[:, 0], counted[:, 1])

        add("SQLite groups (data loaded before), discreet decodes", in_sqlite, 1)
    return rows
