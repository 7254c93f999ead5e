"""The local engine and Spark side by side: `python -m benchmarks spark`. Every Spark
master runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import discreet as d
from benchmarks.reports import policy
from benchmarks.timing import seconds, si, table
from discreet.data.counting import tally_files
from discreet.data.reports import Piece, report_files, write_reports

WORK = [("ticket", 1_000_000, 16_470), ("bits", 200_000, 16_470)]
GROWTH = (10**5, 10**6, 10**7)


def _make(folder: Path, encoding: str, n: int, m: int) -> Path:
    home = folder / f"{encoding}-{n}-{m}"
    home.mkdir()
    mechanism = d.design(policy(m), "opt0", encoding=encoding)
    mechanism.save(home / "m.json")
    rng, files = np.random.default_rng(0), 8
    for k in range(files):
        write_reports(
            home / f"{k}.parquet",
            mechanism,
            [mechanism.perturb_many(rng.integers(0, m, n // files))],
        )
    return home


def _local(home: Path) -> float:
    """Two threads, from the files, best of three."""
    mechanism = d.Mechanism.load(home / "m.json")
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        tally_files(report_files([str(home)]), mechanism)
        best = min(best, time.perf_counter() - start)
    return best


def _spark(master: str, homes: list[Path]) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.spark", master, *map(str, homes)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return json.loads(done.stdout.splitlines()[-1])


def child(master: str, homes: list[str]) -> None:
    """In the Spark process: every stage of the same job, and the peak memory of driver
    and workers.
    """
    from discreet.data.engines import spark

    start = time.perf_counter()
    session = spark.session(master)
    session.sparkContext.setLogLevel("OFF")
    found: dict[str, object] = {"start": time.perf_counter() - start}
    for home in homes:
        mechanism = d.Mechanism.load(Path(home) / "m.json")
        first, tally = _timed(lambda: spark.tally_files([home], mechanism)[None])
        pieces = spark._split_files([home], mechanism, ())
        found[Path(home).name] = {
            "n": tally.n,
            "first": first,
            "best": _best(lambda: spark.tally_files([home], mechanism)),
            "read": _best(lambda: _read_only(session, pieces, mechanism)),
            "frame": _best(
                lambda: spark.tally(session.read.parquet(f"{home}/*.parquet"), mechanism)
            ),
        }
    found["driver"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    java = [
        p for p in Path("/proc").glob("[0-9]*") if _name(p) == "java" and _parent(p) == os.getpid()
    ]
    found["jvm"] = max((_peak(p) for p in java), default=0.0) / 2**20
    workers = [p for p in Path("/proc").glob("[0-9]*") if "pyspark.daemon" in _command(p)]
    found["worker"] = max((_peak(p) for p in workers), default=0.0) / 2**20
    session.stop()
    print(json.dumps(found))


def _read_only(session: Any, pieces: list[Piece], mechanism: d.Mechanism) -> None:
    """The same job without the counting."""

    def run(batches):
        from discreet.data.reports import read_piece

        for place in (k for batch in batches for k in batch.column("id").to_pylist()):
            for _ in read_piece(pieces[place], mechanism):
                pass
        return iter(())

    width = min(len(pieces), 4 * session.sparkContext.defaultParallelism)
    session.range(0, len(pieces), 1, width).mapInArrow(run, "id long").collect()


def _timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _best(work) -> float:
    return min(_timed(work)[0] for _ in range(3))


def _status(process: Path, key: str) -> str:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key + ":")), "")


def _name(process: Path) -> str:
    return _status(process, "Name")


def _parent(process: Path) -> int:
    return int(_status(process, "PPid") or 0)


def _peak(process: Path) -> float:
    return float((_status(process, "VmHWM") or "0").split()[0])


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def run() -> str:
    rows, stages, growth = [], [], []
    with tempfile.TemporaryDirectory() as name:
        tiny = _make(Path(name), "ticket", 8, 1000)
        homes = {
            key: _make(Path(name), *key) for key in [*WORK, *(("ticket", n, 1000) for n in GROWTH)]
        }
        local = {key: _local(home) for key, home in homes.items()}
        found = {
            master: _spark(master, [tiny, *homes.values()]) for master in ("local[1]", "local[2]")
        }
        for key in WORK:
            encoding, n, m = key
            what = [encoding, f"{n:,}", f"{m:,}"]
            rows.append(
                [*what, "local engine, two threads", seconds(local[key]), si(n / local[key]), "1"]
            )
            for master, result in found.items():
                r, overhead = result[homes[key].name], result[tiny.name]["best"]
                assert r["n"] == n
                for label, time_ in (
                    (f"Spark {master}, from files", r["best"]),
                    (f"Spark {master}, DataFrame", r["frame"]),
                ):
                    rows.append(
                        [*what, label, seconds(time_), si(n / time_), f"{local[key] / time_:.2f} ×"]
                    )
                parts = (overhead, max(0.0, r["read"] - overhead), max(0.0, r["best"] - r["read"]))
                stages.append(
                    [
                        *what,
                        master,
                        *(seconds(x) for x in (result["start"], r["first"], *parts, r["best"])),
                    ]
                )
        for n in GROWTH:
            key = ("ticket", n, 1000)
            r = found["local[2]"][homes[key].name]
            growth.append(
                [
                    f"{n:,}",
                    seconds(local[key]),
                    seconds(r["best"]),
                    f"{local[key] / r['best']:.2f} ×",
                ]
            )
        memory = [
            [master, f"{r['driver']:.2f} GiB", f"{r['jvm']:.2f} GiB", f"{r['worker']:.2f} GiB"]
            for master, r in found.items()
        ]
    heads = ["encoding", "n", "m", "engine", "steady", "reports / s", "against local"]
    steps = [
        "session starts",
        "first job",
        "an all but empty job",
        "reading",
        "counting and merging",
        "whole job, steady",
    ]
    return (
        table("Tally from Parquet: local engine and Spark", heads, rows)
        + table("Time per stage, from files", ["encoding", "n", "m", "master", *steps], stages)
        + table(
            "Growth, tickets, m = 1,000",
            ["n", "local engine, two threads", "Spark local[2]", "against local"],
            growth,
        )
        + table(
            "Peak memory", ["master", "driver (Python)", "JVM", "largest Python worker"], memory
        )
    )


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2:])
