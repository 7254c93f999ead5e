"""Resident memory of the whole flow: 1,000,000 people x 16,470 items, perturb to file,
tally, estimate.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.reports import policy
from benchmarks.timing import table


def run(people: int = 1_000_000, m: int = 16_470) -> str:
    import discreet as d

    script, rows = Path(sys.executable).parent / "discreet", []
    for encoding in ("bits", "ticket"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            mechanism = d.design(policy(m), "opt0", encoding=encoding)
            mechanism.save(folder / "m.json")
            rng = np.random.default_rng(0)
            labels = pa.array(mechanism.policy.items)
            with pq.ParquetWriter(
                folder / "a.parquet", pa.schema([("item", pa.string())])
            ) as writer:
                for _ in range(0, people, 100_000):
                    writer.write_table(
                        pa.table({"item": labels.take(pa.array(rng.integers(0, m, 100_000)))})
                    )
            for arguments in (
                ["perturb", "m.json", "a.parquet", "-o", "r.parquet"],
                ["tally", "m.json", "r.parquet", "-o", "t.json"],
                ["estimate", "m.json", "t.json", "-o", "e.csv"],
            ):
                start = time.perf_counter()
                peak = _peak_of([str(script), *arguments], folder)
                size = folder / arguments[-1]
                rows.append(
                    [
                        encoding,
                        arguments[0],
                        f"{time.perf_counter() - start:.1f} s",
                        f"{peak / 2**20:.2f} GiB",
                    ]
                    + [f"{size.stat().st_size / 1e6:,.0f} MB"]
                )
    return table(
        f"Memory: {people:,} people, {m:,} items, by the commands",
        ["encoding", "command", "time", "peak resident", "output"],
        rows,
    )


def _peak_of(command: list[str], folder: Path) -> int:
    """Peak resident KiB of a command, measured by a small process of its own: a child
    starts with its parent's peak.
    """
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


if __name__ == "__main__":
    print(run())
