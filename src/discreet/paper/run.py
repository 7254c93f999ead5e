"""One run: find the data, work through the tasks on all cores, write tables, figures, claims and where they come from."""

from __future__ import annotations

import json
import math
import os
import platform
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.errors import DataError, MissingExtra
from discreet.files import write_text
from discreet.paper import claims as _claims
from discreet.paper import claims_sets as _claims_sets
from discreet.paper import datasets, experiments, figures, tables, verdicts
from discreet.paper.datasets import EXTRAS, SOURCES, Dataset
from discreet.paper.experiments import Numbers, Row, Task
from discreet.paper.settings import NAMES, Settings

Advance = Callable[[int], None]  # told of every finished task
_JUDGES = (_claims, _claims_sets)  # importing them put their claims on the list
TENFOLD = "kosarak-x10"


@dataclass(frozen=True)
class Outcome:
    """What a run wrote and found."""

    files: list[str]
    claims: list[dict[str, Any]]
    provenance: dict[str, Any]


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The tables and figures named, in the paper's order; nothing or "all" is all of them."""
    for name in names:
        if name != "all" and name not in NAMES:
            near = get_close_matches(name, NAMES, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(near)}?"
                if near
                else f"there are all, {', '.join(NAMES)}"
            )
            raise DataError(f'"{name}" is no table or figure of the evaluation; {hint}')
    return tuple(name for name in NAMES if not names or "all" in names or name in names)


class Run:
    """A run that is ready to start: names and folders are checked, the data are found but not read."""

    def __init__(
        self, names: Sequence[str], folder: str | None, out: str, settings: Settings
    ) -> None:
        self.names, self.settings = chosen(names), settings
        self.folder, self.out = Path(folder) if folder else None, Path(out)
        keys = tuple(
            key for key, source in SOURCES.items() if set(source.needed_by) & set(self.names)
        )
        self.paths = datasets.locate(keys, self.folder)
        if self.folder:
            self._more()
        _need_matplotlib(self.names)
        _writable(self.out)

    def _more(self) -> None:
        """Files that are shown where they are there: everything for table3, Retail and the other part of Kosarak beside figures."""
        assert self.folder is not None
        wanted: dict[str, tuple[str, ...]] = {"retail": ("retail",)} if "fig9" in self.names else {}
        if "table3" in self.names:
            wanted |= {key: source.stems for key, source in SOURCES.items() if source.stems}
        if "table3" in self.names and not self.settings.quick:
            wanted["clothing-all"] = (EXTRAS["clothing-all"][0],)
        whole = datasets.find(self.folder, ("kosarak",))
        if {"table3", "fig4", "fig5"} & set(self.names) and not whole and not self.settings.quick:
            wanted["kosarak-short"] = (EXTRAS["kosarak-short"][0],)
        for key, stems in wanted.items():
            path = datasets.find(self.folder, stems)
            if path and key not in self.paths:
                self.paths[key] = path

    def load(self, advance: Advance = lambda _: None) -> dict[str, Dataset]:
        """Read and generate the data."""
        data = {key: datasets.load(key, path, advance) for key, path in self.paths.items()}
        if {"fig3", "table3"} & set(self.names):
            data |= {
                key: datasets.synthetic(key, self.settings) for key in ("power-law", "uniform")
            }
        kosarak, long = (
            data.get("kosarak"),
            not (self.settings.quick or self.settings.through_reports),
        )
        if "fig9" in self.names and kosarak and kosarak.n * 5 < SOURCES["kosarak"].users and long:
            data[TENFOLD] = kosarak.repeated(10)
        return data

    def tasks(self, data: Mapping[str, Dataset]) -> list[Task]:
        """All tasks, once each."""
        return merged(
            task for name in self.names for task in experiments.tasks_of(name, self.settings, data)
        )

    def finish(self, data: Mapping[str, Dataset], rows: Iterable[Row], workers: Workers) -> Outcome:
        """Write everything."""
        numbers, writer = Numbers(rows), Writer(self.out)
        made = [
            table for name in self.names for table in tables.tables_of(name, self.settings, data)
        ]
        for table in made:
            writer.table(table)
        writer.figures(
            [f for name in self.names for f in figures.figures_of(name, self.settings, data)],
            numbers,
            workers,
        )
        facts = {key: datasets.facts(one) for key, one in data.items()}
        found = verdicts.Findings(numbers, {table.name: table.rows for table in made}, facts)
        reports = verdicts.judged(self.names, found)
        writer.text("claims.md", verdicts.markdown(reports, self.settings.note))
        writer.json("claims.json", reports)
        provenance = {
            "discreet": __version__,
            "tables and figures": list(self.names),
            "settings": asdict(self.settings),
            "note": self.settings.note,
            "data": facts,
            "versions": _versions(),
        }
        writer.json("run.json", provenance)
        return Outcome(writer.files, reports, provenance)


def merged(tasks: Iterable[Task]) -> list[Task]:
    """Tasks with the same draws as one that answers for all of them."""
    found: dict[tuple[object, ...], Task] = {}
    for task in tasks:
        old = found.get(task.key, task)
        ks = tuple(sorted({*old.ks, *task.ks}))
        found[task.key] = replace(
            task, ks=ks, shrunk=old.shrunk or task.shrunk, repeats=max(old.repeats, task.repeats)
        )
    return list(found.values())


# ---- work on all cores --------------------------------------------------------------------------------------

_shared: dict[str, Any] = {}  # what a worker process was given at its start


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Processes that share the work; one worker is this process. Results come in the order asked, whoever was first."""

    def __init__(self, jobs: int, data: Mapping[str, Dataset], settings: Settings) -> None:
        self.jobs, self.data, self.settings = jobs, data, settings
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.jobs > 1:
            self.pool = ProcessPoolExecutor(
                self.jobs, get_context("spawn"), _begin, (self.data, self.settings)
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def run(self, tasks: Sequence[Task], advance: Advance = lambda _: None) -> list[Row]:
        """The rows of all tasks; the numbers do not depend on how many workers there are."""
        if not self.pool:
            found = []
            for task in tasks:
                found += experiments.run(task, self.data[task.data], self.settings)
                advance(1)
            return found
        longest_first = sorted(
            range(len(tasks)), key=lambda k: (not tasks[k].shrunk, -tasks[k].repeats)
        )
        results: list[list[Row]] = [[] for _ in tasks]
        with _one_thread_each():
            waiting = {self.pool.submit(_one, tasks[k]): k for k in longest_first}
            for done in as_completed(waiting):
                results[waiting[done]] = _result(done)
                advance(1)
        return [row for rows in results for row in rows]

    def draw(self, wanted: Sequence[tuple[figures.Figure, Numbers]], folder: Path) -> None:
        """Draw figures."""
        if not self.pool:
            for figure, numbers in wanted:
                figures.draw(figure, numbers, folder)
            return
        for done in [
            self.pool.submit(figures.draw, figure, numbers, folder) for figure, numbers in wanted
        ]:
            _result(done)


def _result(done: Future[Any]) -> Any:
    try:
        return done.result()
    except BrokenProcessPool:
        raise DataError(
            "a worker process was ended from outside, perhaps for lack of memory; run fewer figures at once"
        ) from None


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Worker processes that start here do linear algebra on one thread: they are as many as there are cores."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _begin(data: Mapping[str, Dataset], settings: Settings) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops us
    _shared.update(data=data, settings=settings)


def _one(task: Task) -> list[Row]:
    return experiments.run(task, _shared["data"][task.data], _shared["settings"], threads=1)


# ---- files --------------------------------------------------------------------------------------------------


class Writer:
    """Writes into the folder, every file aside first, and remembers what."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[str] = []

    def text(self, name: str, text: str) -> None:
        """A text file."""
        write_text(self.folder / name, text)
        self.files.append(name)

    def json(self, name: str, facts: Any) -> None:
        """A JSON file."""
        self.text(name, json.dumps(facts, indent=1, ensure_ascii=False, default=_plain) + "\n")

    def table(self, table: tables.Table) -> None:
        """A table as CSV and as Markdown with its caption."""
        heads = list(table.rows[0])
        self.text(
            f"{table.name}.csv", _csv(heads, ([row[head] for head in heads] for row in table.rows))
        )
        self.text(f"{table.name}.md", table.markdown())

    def figures(self, wanted: Sequence[figures.Figure], numbers: Numbers, workers: Workers) -> None:
        """Figures as PNG and SVG, with their numbers (CSV) and captions (text)."""
        shown = [(figure, Numbers(figure.rows(numbers))) for figure in wanted]
        workers.draw(shown, self.folder)
        for figure, chosen_rows in shown:
            heads = (*FIELDS, "repeats", "mean", "stderr", "theory", "values")
            self.text(f"{figure.name}.csv", _csv(heads, map(_cells, chosen_rows.rows)))
            self.text(f"{figure.name}.txt", figure.caption + "\n")
            self.files += [f"{figure.name}.png", f"{figure.name}.svg"]


FIELDS = ("data", "model", "eps", "levels", "share", "padding", "encoding", "metric", "k", "view")


def _cells(row: Row) -> list[Any]:
    numbers = (row.mean, row.stderr, row.theory, " ".join(map(_number, row.values)))
    return [*(getattr(row, name) for name in FIELDS), len(row.values), *numbers]


def _csv(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [",".join(heads)]
    for row in rows:
        cells = [
            _number(cell) if isinstance(cell, float) else "" if cell is None else str(cell)
            for cell in row
        ]
        lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"


def _number(x: float) -> str:
    return f"{x:.10g}" if math.isfinite(x) else ""


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "matplotlib", "numba", "pyarrow"):
        with suppress(PackageNotFoundError):  # tables need no matplotlib
            found[name] = version(name)
    return found


def _need_matplotlib(names: Iterable[str]) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        if any(name.startswith("fig") for name in names):
            raise MissingExtra("a figure", "plot") from None


def _writable(folder: Path) -> None:
    """Make the folder and see that it can be written, before any work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".discreet"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error.strerror}; name another folder with --out"
        ) from None
