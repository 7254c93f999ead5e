"""Surveys of several questions and groups at the collector: posts beside those of one question, and
a million reports in a thousand groups beside as many in one. `python -m benchmarks groups`.
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

import numpy as np

import discreet as d
from benchmarks.collector import ROOT, collector, contents, drive
from benchmarks.timing import seconds, si, table
from discreet.collector.store import Upload, open_store

POSTS, WARM, REPEATS = 4_000, 500, 3
REPORTS, BATCH, ITEMS = 1_000_000, 10_000, 40


def run() -> str:
    with tempfile.TemporaryDirectory() as name:
        return _posts(Path(name)) + "\n" + _fills()


def survey(questions: int, groups: int) -> d.Survey:
    """So many questions of as many items each; groups of one public question or two."""
    levels = [
        ("few", 1, [f"f{k}" for k in range(4)]),
        ("all", 2, [f"a{k}" for k in range(ITEMS - 4)]),
    ]
    made = {f"q{k}": d.design(d.Policy.from_levels(levels), goal="total") for k in range(questions)}
    sizes = {1: [], 6: [3, 2], 1_000: [50, 20]}[groups]
    public = [
        {"name": f"p{k}", "text": "?", "items": [f"i{j}" for j in range(size)]}
        for k, size in enumerate(sizes)
    ]
    return d.Survey(f"s{questions}-{groups}", made, public=public)


def _posts(folder: Path) -> str:
    found: dict[tuple[int, int], list[tuple[float, float]]]
    found = {(1, 1): [], (3, 1): [], (3, 6): [], (3, 1_000): []}
    for shape in found:
        survey(*shape).save(folder / f"{shape[0]}-{shape[1]}.json")
    for _ in range(REPEATS):  # in turns, so that what else runs here harms all alike
        for shape, rates in found.items():
            file = folder / f"{shape[0]}-{shape[1]}.json"
            with collector(file, str(Path(tempfile.mkdtemp(dir=folder)) / "store")) as (port, pid):
                before = cpu_of(pid)
                rate = drive(file, port, POSTS, warm=WARM)["rate"]
                rates.append((rate, (cpu_of(pid) - before) / (POSTS + WARM)))
    best = {shape: (max(x for x, _ in y), min(x for _, x in y)) for shape, y in found.items()}
    rate, cpu = best[1, 1]
    rows = [
        [
            questions,
            f"{groups:,}",
            si(mine),
            f"{mine / rate:.2f}",
            seconds(work),
            f"{work / cpu:.2f}",
        ]
        for (questions, groups), (mine, work) in best.items()
    ]
    title = (
        f"Posts of one report each: surveys beside one question, SQLite, best of {REPEATS} in turns"
    )
    ratio = "beside one question"
    heads = ["questions", "groups", "posts per second", ratio, "processor time per post", ratio]
    return table(title, heads, rows)


def cpu_of(pid: int) -> float:
    """Seconds of processor time of a process and its children: unlike a rate, what else runs on the
    machine hardly changes them.
    """
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        if pid in (int(stat.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _fills() -> str:
    done = {groups: _fill(groups) for groups in (1, 1_000)}
    base = done[1]
    rows = [
        [
            f"{groups:,}",
            *(f"{seconds(x[key])} ({x[key] / base[key]:.2f})" for key in ("add", "by group")),
            f"{x['peak']:,.0f} MB",
            f"{x['store']:,.0f} MB",
        ]
        for groups, x in done.items()
    ]
    heads = [
        "groups",
        "counting (ratio)",
        "tally and all estimates (ratio)",
        "peak memory",
        "store",
    ]
    return table(f"{REPORTS:,} reports of {ITEMS} items in a thousand groups, SQLite", heads, rows)


def _fill(groups: int) -> dict[str, float]:
    """In a process of its own, for its memory."""
    command = [sys.executable, "-m", "benchmarks.groups", str(groups)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def fill(groups: int) -> None:
    """Count them in batches, then estimate every group."""
    made = survey(1, groups)
    pool = contents(made, 100_000, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        store, took = open_store(str(path)), 0.0
        store.create(made)
        for k in range(0, REPORTS, BATCH):
            ids = [os.urandom(16) for _ in range(BATCH)]
            mine = pool[k % len(pool) : k % len(pool) + BATCH]
            began = time.process_time()
            store.add([Upload(made.name, ids, mine)])
            took += time.process_time() - began
        began = time.process_time()
        tally = store.tally(made.name)
        n = sum(t.estimate().n for t in tally.groups(0).values())
        last = time.process_time() - began
        assert n == REPORTS
        store.close()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"add": took, "by group": last, "peak": peak, "store": size / 2**20}))


if __name__ == "__main__":
    fill(int(sys.argv[1]))
