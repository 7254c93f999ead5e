"""The sections of a program, which begin with comments of their own: their lines and their times.

Run by the Python that has the program's library, beside answers.csv; arguments: program repeats.
Everything runs once, then `perturb and count` and `counts with intervals` again; prints JSON, with
seconds of processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

AGAIN = ("perturb and count", "counts with intervals")


def split(text: str) -> dict[str, str]:
    """The text of every section; the first is `imports`."""
    found, name = {"imports": ""}, "imports"
    for line in text.splitlines(keepends=True):
        if line.startswith("# "):
            name = line[2:].strip()
            found[name] = ""
        else:
            found[name] += line
    return found


def lines(text: str) -> int:
    """Lines that are neither blank nor only a comment."""
    bare = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in bare)


def run(program: Path, repeats: int) -> dict[str, object]:
    parts, space, seconds = split(program.read_text(encoding="utf-8")), {}, {}
    code = {name: compile(text, str(program), "exec") for name, text in parts.items()}

    def section(name: str) -> float:
        start = time.process_time()
        exec(code[name], space)
        return time.process_time() - start

    seconds = {name: section(name) for name in parts}
    again: dict[str, list[float]] = {name: [] for name in AGAIN}
    estimates = []
    for _ in range(repeats):
        for name in AGAIN:
            again[name].append(section(name))
        with Path("counts.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        estimates.append([[float(row[key]) for key in ("count", "lower", "upper")] for row in rows])
    return {
        "first": seconds,
        "again": {name: min(times) for name, times in again.items()},
        "bytes": space["reports"][0].nbytes,
        "items": [row["item"] for row in rows],
        "estimates": estimates,
    }


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]))))
