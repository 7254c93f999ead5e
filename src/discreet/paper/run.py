"""One run: find the data, run the experiments, and write tables, figures, claims and provenance."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from discreet import __version__
from discreet.data.files import Advance
from discreet.errors import DataError, MissingExtra
from discreet.paper import (
    datasets,
    drawing,
    fig3,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    table1,
    table2,
    table3,
    verdicts,
)
from discreet.paper.datasets import PUBLISHED, SYNTHETIC, TENFOLD, Data, Dataset
from discreet.paper.experiments import Experiment, Numbers, Row, merge
from discreet.paper.output import Writer, check_writable
from discreet.paper.settings import QUICK_REPEATS, REPEATS, SEED, Setup
from discreet.paper.target import Target
from discreet.paper.verdicts import Report
from discreet.paper.workers import Workers, cores

_MODULES = (table1, table2, table3, fig3, fig4, fig5, fig6, fig7, fig8, fig9)
TARGETS: dict[str, Target] = {x.TARGET.name: x.TARGET for x in _MODULES}  # in the paper's order

# Shows a progress bar, given what is done and the number of steps (bytes, experiments)
Progress = Callable[[str, int], AbstractContextManager[Advance]]


def _silent(what: str, steps: int) -> AbstractContextManager[Advance]:
    return nullcontext(lambda _: None)


@dataclass(frozen=True)
class Reproduction:
    """The files of a run, the judged claims, and the provenance."""

    files: list[str]
    claims: list[Report]
    provenance: Mapping[str, object]


def reproduce(
    names: Sequence[str], folder: str | None, out: str, *, seed: int = SEED,
    repeats: int | None = None, quick: bool = False, through_reports: bool = False,
    progress: Progress = _silent,
) -> Reproduction:  # fmt: skip
    """Make these tables and figures (all if empty) from the data in `folder`, into `out`."""
    repeats = repeats or (QUICK_REPEATS if quick else REPEATS)
    setup = Setup(seed, repeats, quick, through_reports)
    run = Run(names, folder, out, setup)
    with progress("Reading the data", sum(x.stat().st_size for x in run.paths.values())) as advance:
        data = run.load(advance)
    tasks = run.tasks(data)
    with Workers(cores(), data, setup) as workers:
        with progress("Running the experiments", len(tasks)) as advance:
            rows = workers.run(tasks, advance)
        return run.finish(data, rows, workers)


def choose_targets(names: Sequence[str]) -> tuple[str, ...]:
    """These tables and figures in the paper's order; none or "all" means all of them."""
    for name in names:
        if name != "all" and name not in TARGETS:
            near = get_close_matches(name, TARGETS, n=3, cutoff=0.5)
            hint = f"there are all, {', '.join(TARGETS)}"
            if near:
                hint = f"did you mean {' or '.join(near)}?"
            raise DataError(f'"{name}" is no table or figure of the evaluation; {hint}')
    return tuple(name for name in TARGETS if not names or "all" in names or name in names)


class Run:
    """A run whose names and folders are checked, and whose data are located but not read."""

    def __init__(self, names: Sequence[str], folder: str | None, out: str, setup: Setup) -> None:
        self.names, self.setup, self.out = choose_targets(names), setup, Path(out)
        self.targets = [TARGETS[name] for name in self.names]
        needs = {key for target in self.targets for key in target.needs}
        self.keys = needs | {key for target in self.targets for key in target.uses}
        files = [key for key in (*PUBLISHED, *datasets.EXTRAS) if key not in SYNTHETIC]
        self.paths = datasets.locate(
            [key for key in files if key in needs], [key for key in files if key in self.keys],
            Path(folder) if folder else None, setup, without,
        )  # fmt: skip
        _need_matplotlib(self.names)
        check_writable(self.out)

    def load(self, advance: Advance = lambda _: None) -> dict[str, Dataset]:
        """Read and generate the data."""
        data = {key: datasets.load(key, path, advance) for key, path in self.paths.items()}
        data |= {key: datasets.synthetic(key, self.setup) for key in SYNTHETIC if key in self.keys}
        kosarak, short = data.get("kosarak"), self.setup.quick or self.setup.through_reports
        if kosarak and TENFOLD in self.keys and not short and _far_from_whole(kosarak):
            data[TENFOLD] = kosarak.repeated(10)
        return data

    def tasks(self, data: Data) -> list[Experiment]:
        """All experiments, once each."""
        return merge(one for x in self.targets for one in x.experiments(self.setup, data))

    def finish(self, data: Data, rows: Iterable[Row], workers: Workers) -> Reproduction:
        """Write everything."""
        numbers, writer = Numbers(rows), Writer(self.out)
        made = [table for x in self.targets for table in x.tables(self.setup, data)]
        for table in made:
            writer.table(table)
        shown = [
            figure
            for x in self.targets
            for figure in drawing.complete(x.figures(self.setup, data), self.setup, data)
        ]
        writer.figures(shown, numbers, workers)
        facts = {key: one.facts for key, one in data.items()}
        evidence = verdicts.Evidence(numbers, {table.name: table.rows for table in made}, facts)
        reports = [claim.report(evidence) for x in self.targets for claim in x.claims]
        writer.text("claims.md", verdicts.markdown(reports, self.setup.note))
        writer.json("claims.json", reports)
        provenance = {
            "discreet": __version__,
            "tables and figures": list(self.names),
            "settings": asdict(self.setup),
            "note": self.setup.note,
            "data": facts,
            "versions": _versions(),
        }
        writer.json("run.json", provenance)
        return Reproduction(writer.files, reports, provenance)


def _far_from_whole(data: Dataset) -> bool:
    return data.n * 5 < PUBLISHED[data.key].users


def without(key: str) -> list[str]:
    """The tables and figures that do not need a data set."""
    return [name for name, target in TARGETS.items() if key not in target.needs]


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "matplotlib", "numba", "pyarrow"):
        with suppress(PackageNotFoundError):  # tables need no matplotlib
            versions[name] = version(name)
    return versions


def _need_matplotlib(names: Iterable[str]) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        if any(name.startswith("fig") for name in names):
            raise MissingExtra("a figure", "plot") from None
