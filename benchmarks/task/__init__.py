"""One simple task in three libraries: levels, own data, counts with intervals, a plot.

The programs are those of docs/peers.md, run as they stand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import discreet as d
from benchmarks.reports import peer_python
from benchmarks.task import data
from benchmarks.task.sections import lines, split
from benchmarks.timing import seconds, table

HERE = Path(__file__).parent
PROGRAMS = {
    "discreet": "discreet_.py",
    "pure-ldp": "pure_ldp_.py",
    "multi-freq-ldpy": "multi_freq_ldpy_.py",
}
REPEATS = 100

GETS = [
    ["protocol used", "`subset`, designed for the policy", "OUE", "SS, subset selection"],
    ["budgets", "one per label or level", "one for all", "one for all"],
    [
        "guarantee",
        "stated per level, checked exactly, with a certificate of the error",
        "by the formula, in floats; any epsilon is accepted, even a negative one",
        "by the formula, in floats; epsilon must be positive",
    ],
    ["answers", "labels, checked", "any objects, by a function to indices", "integers, checked"],
    [
        "counts",
        "unbiased; non-negative or shrunk ones as named views",
        "unbiased; three normalisations",
        "shares, always cut at zero and normalised; also iterative Bayes (IBU)",
    ],
    [
        "intervals",
        "given",
        "by hand, 3 lines, formula and all",
        "by hand, 4 lines; a formula of the variance is given, its p and q are not",
    ],
    [
        "randomness",
        "AES-256 keystream, keyed by the system",
        "`numpy.random` and `random` (Mersenne Twister)",
        "`numpy.random` in numba (Mersenne Twister)",
    ],
    [
        "a report to send",
        "bytes of fixed length, a documented format, test vectors",
        "a numpy array; sending it is up to you",
        "a numpy array; sending it is up to you",
    ],
    [
        "files",
        "policy, mechanism, reports, tally, estimate: TOML, JSON, CSV, Parquet",
        "none",
        "none",
    ],
    ["plot", "one call, coloured by level", "by hand", "by hand"],
]


def run(page: Path) -> str:
    """Measure, and put the tables and the programs on the page."""
    python = peer_python()
    if python is None:
        return "\n### One task: three libraries\n\nThe peers could not be installed here.\n"
    load = os.getloadavg()[0]
    pythons = dict.fromkeys(PROGRAMS, python) | {"discreet": sys.executable}
    answers = data.answers()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.write(folder / "answers.csv", answers)
        whole = _whole(pythons, folder)
        found = {who: _sections(pythons[who], who, folder) for who in PROGRAMS}
    columns = [
        _column(who, whole[who], found[who], _truth(answers, found[who]["items"]))
        for who in PROGRAMS
    ]
    columns.append(_plain(answers))
    rows = [[name, *(column.get(name, "") for column in columns)] for name in columns[0]]
    title = (
        f"One task: {len(answers):,} answers, {len(data.LABELS)} labels, budgets 1, 1.2 and 2; "
        "the peers at 1"
    )
    note = (
        f"\n\nErrors and coverage: {REPEATS} repeats. Wall time depends on what else runs (load "
        f"{load:.1f} on {os.cpu_count()} cores when this began); all other times are processor "
        "times, summed over threads."
    )
    heads = ["", *PROGRAMS, "(discreet without levels, `ss`)"]
    measured = table(title, heads, rows) + note
    gets = table("One task: what one gets", ["", *PROGRAMS], GETS)
    text = page.read_text(encoding="utf-8")
    page.write_text(filled(text, {"measured": measured, "gets": gets}), encoding="utf-8")
    return measured + "\n" + gets


def filled(page: str, tables: dict[str, str]) -> str:
    """The page with these tables (without their titles) and the programs as they are."""
    for name, text in tables.items():
        body = text.strip().partition("\n")[2].strip()
        page = _between(page, f"<!-- {name} -->\n\n", "\n\n<!-- end -->", body)
    for program in PROGRAMS.values():
        code = (HERE / program).read_text(encoding="utf-8")
        page = _between(page, f"<!-- {program} -->\n\n```python\n", "```\n", code)
    return page


def _between(page: str, start: str, end: str, text: str) -> str:
    before, found, rest = page.partition(start)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"the page has no {start.splitlines()[0]}, or no end of it")
    return before + start + text + end + after


def _whole(pythons: dict[str, str], folder: Path) -> dict[str, tuple[float, float]]:
    """The best wall time and the best processor time of whole programs, in turns."""
    times: dict[str, list[tuple[float, float]]] = {who: [] for who in PROGRAMS}
    for _ in range(3):
        for who, program in PROGRAMS.items():
            before, start = _processor(), time.perf_counter()
            _start([pythons[who], str(HERE / program)], folder)
            times[who].append((time.perf_counter() - start, _processor() - before))
    return {
        who: (min(wall for wall, _ in pairs), min(cpu for _, cpu in pairs))
        for who, pairs in times.items()
    }


def _processor() -> float:
    import resource  # not on Windows

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _start(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _sections(python: str, who: str, folder: Path) -> dict[str, Any]:
    program = str(HERE / PROGRAMS[who])
    command = [python, str(HERE / "sections.py"), program, str(REPEATS)]
    return json.loads(_start(command, folder))


def _truth(answers: list[str], items: list[str]) -> np.ndarray:
    return np.array([answers.count(item) for item in items])


def _column(
    who: str, whole: tuple[float, float], found: dict[str, Any], truth: np.ndarray
) -> dict[str, str]:
    parts = split((HERE / PROGRAMS[who]).read_text(encoding="utf-8"))
    each = [lines(text) for text in parts.values()]
    first, count = found["first"], "perturb and count"
    column = {
        f"lines of code ({', '.join(parts)})": f"{sum(each)} ({' + '.join(map(str, each))})",
        "whole program, best of 3, wall time": f"{whole[0]:.1f} s",
        "whole program, best of 3, processor time": f"{whole[1]:.1f} s",
        "– imports": seconds(first["imports"]),
        "– policy, design and check; reading": seconds(first["the survey"]),
        f"– {count}, the first time": seconds(first[count]),
        "– plot": seconds(first["plot"]),
        f"{count} again, best of {REPEATS}": seconds(found["again"][count]),
        "bytes of a report in memory": str(found["bytes"]),
    }
    return column | _errors(np.array(found["estimates"]), truth)


def _errors(estimates: np.ndarray, truth: np.ndarray) -> dict[str, str]:
    """Mean squared error and coverage per level; estimates by repeat, label, (count, ends)."""
    n, start, found, covered = truth.sum(), 0, {}, []
    for name, epsilon, labels in data.LEVELS:
        part = slice(start, start := start + len(labels))
        count, lower, upper = np.moveaxis(estimates[:, part], 2, 0)
        square = ((count - truth[part]) ** 2).mean(axis=1)
        mean, error = square.mean() / n, square.std(ddof=1) / len(square) ** 0.5 / n
        people = f"{(mean * n) ** 0.5:.0f} people"
        row = f"MSE / n (its root), {name}: {len(labels)} labels, budget {epsilon:g}"
        found[row] = f"{mean:.2f} ± {error:.2f} ({people})"
        inside = (lower <= truth[part]) & (truth[part] <= upper)
        covered.append(f"{100 * inside.mean():.1f}")
    names = ", ".join(name for name, _, _ in data.LEVELS)
    return found | {f"95 % intervals cover ({names})": ", ".join(covered) + " %"}


def _plain(answers: list[str]) -> dict[str, str]:
    """What discreet does at the smallest budget: what is due to levels and what is not."""
    mechanism = d.design(d.Policy.from_levels(data.LEVELS), "ss")
    truth = _truth(answers, list(mechanism.policy.items))
    found = []
    for _ in range(REPEATS):
        estimate = mechanism.tally(mechanism.perturb_many(answers)).estimate()
        found.append(np.column_stack([estimate.counts, *estimate.interval()]))
    return {"bytes of a report in memory": str(mechanism.report_size)} | _errors(
        np.array(found), truth
    )
