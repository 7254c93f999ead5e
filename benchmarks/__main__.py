"""`python -m benchmarks [name ...]`: run all benchmarks, or those named, and write
docs/benchmarks.md.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from benchmarks import (
    collector,
    counting,
    designs,
    fakes,
    groups,
    memory,
    orders,
    paper,
    reports,
    sets,
    spark,
    surveys,
    task,
)

FOLDER = Path(__file__).parent.parent / "docs"
ALL = {
    "designs": designs.run,
    "paper": paper.run,
    "peers": reports.against_peers,
    "accuracy": lambda: reports.accuracy() + "\n" + orders.run(),
    "task": lambda: task.run(FOLDER / "peers.md"),
    "rates": reports.rates,
    "sets": sets.run,
    "surveys": surveys.run,
    "groups": groups.run,
    "fakes": fakes.run,
    "growth": lambda: reports.growth(FOLDER),
    "memory": memory.run,
    "counting": counting.run,
    "spark": spark.run,
    "collector": collector.run,
}


def main() -> None:
    names = sys.argv[1:] or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]}; there are {', '.join(ALL)}")
    texts = []
    for name in names:
        print(f"running {name} …", file=sys.stderr)
        texts.append(ALL[name]())
        print(texts[-1], flush=True)
    write("\n".join(texts), whole=names == list(ALL))


def write(text: str, whole: bool) -> None:
    """Put the tables on the page; some of them in the place of those of the same name."""
    page = FOLDER / "benchmarks.md"
    intro = (
        "# Benchmarks\n\nMade by `make bench`; best of several runs. Ratios are within one run; "
        "absolute rates are for the\nmachine that made this page: "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}. "
        'Designs are for the least total error (`goal = "total"`).\n'
    )
    picture = "\n\n![time against n and m](growth.png)\n"
    tables = {} if whole else _tables(page.read_text().removesuffix(picture))
    page.write_text(intro + "\n" + "\n\n".join((tables | _tables(text)).values()) + picture)


def _tables(text: str) -> dict[str, str]:
    found = ["### " + part.strip() for part in text.split("### ")[1:]]
    return {part.splitlines()[0]: part for part in found}


if __name__ == "__main__":
    main()
