"""Where `discreet estimate` gets its estimates from: a tally, tallies by group, or reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.arrays.grouped_tallies import file_name
from discreet.arrays.tally import Tally
from discreet.arrays.weighted import WeightedTally, load_tally
from discreet.cli.group import progress
from discreet.data.counting import as_columns, tally_files
from discreet.data.reports import report_files
from discreet.data.weights import read_population, read_table, tally_weighted
from discreet.errors import DataError
from discreet.estimates.estimate import Estimate
from discreet.estimates.fakes import oddities
from discreet.estimates.weights import people_per_group, post_stratify
from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted
from discreet.survey.public import RESERVED

Group = tuple[object, ...]
Tallies = Mapping[Group, Tally | WeightedTally]
Found = tuple[tuple[str, ...], dict[Group, Estimate], list[str]]


def read_estimates(
    mechanism: Mechanism,
    path: str,
    by: Sequence[str],
    weights: str | None,
    populations: Sequence[str],
) -> Found:
    """The columns of groups, the estimate of every group, and what is odd about the reports. With
    populations the groups are added up, and there are no columns.
    """
    refuse_columns(by)
    columns, tallies = _tallies(mechanism, path, as_columns(by), weights, populations)
    plain = [tally for tally in tallies.values() if isinstance(tally, Tally)]
    odd = oddities(sum(plain, Tally.empty(mechanism))) if plain else []
    if not any(tally.n for tally in tallies.values()):
        raise DataError(f"there are no reports in {path}, so there is nothing to estimate")
    estimates = {group: tally.estimate() for group, tally in tallies.items() if tally.n}
    if not populations:
        return columns, estimates, odd
    if not columns:
        raise DataError("--population needs groups: name their columns with --by")
    named: dict[tuple[str, ...], Estimate] = {}
    for group, estimate in estimates.items():
        texts = tuple("" if value is None else str(value) for value in group)
        if texts in named:
            raise DataError(
                f"two groups are both written {quoted(', '.join(texts))} (empty, or of another "
                "type); name them apart"
            )
        named[texts] = estimate
    sizes = {group: estimate.n for group, estimate in named.items()}
    people = people_per_group(sizes, [read_population(p, columns) for p in populations])
    return (), {(): post_stratify(named, people)}, odd


def refuse_columns(by: Sequence[str]) -> None:
    """Refuse to group by a column whose name means something in a table or a file of reports."""
    for name in by:
        if name in RESERVED:
            raise DataError(
                f"the column {quoted(name)} cannot make groups: this name is reserved; rename it"
            )


def _tallies(
    mechanism: Mechanism,
    path: str,
    by: tuple[str, ...],
    weights: str | None,
    populations: Sequence[str],
) -> tuple[tuple[str, ...], Tallies]:
    if path.endswith(".json") or not (Path(path).is_dir() or path.endswith(".parquet")):
        if by or weights:
            raise DataError(f"--by and --weights are for reports, and {path} is a tally of them")
        return (), {(): load_tally(path, mechanism)}
    saved = sorted(Path(path).glob("*.json")) if Path(path).is_dir() else []
    if saved and any(Path(path).rglob("*.parquet")):
        raise DataError(f"{path} holds tallies and reports; give one of them, in a folder alone")
    if saved:
        if by or weights:
            raise DataError(f"--by and --weights are for reports, and {path} has tallies of them")
        return _saved_groups(mechanism, saved, populations)
    paths = report_files([path])
    with progress("Counting reports", paths) as advance:
        if weights:
            counted: Mapping[object, Tally | WeightedTally] = tally_weighted(
                paths, mechanism, weights, by, advance
            )
        else:
            counted = tally_files(paths, mechanism, by, advance)
    if not by:
        return (), {(): counted[None]}
    single = len(by) == 1
    return by, {(group,) if single else tuple(group): x for group, x in counted.items()}  # type: ignore[arg-type]


def _saved_groups(
    mechanism: Mechanism, saved: Sequence[Path], populations: Sequence[str]
) -> tuple[tuple[str, ...], Tallies]:
    """Tallies that `tally --by` wrote. What their groups are called is known from a population."""
    tallies = {path.stem: load_tally(path, mechanism) for path in saved}
    if not populations:
        return ("group",), {(name,): tally for name, tally in tallies.items()}
    if len(populations) > 1:
        raise DataError("to rake to margins, give the reports and --by, not tallies")
    columns = _columns(populations[0])
    groups = read_population(populations[0], columns)
    names = {file_name(tuple(map(str, group))): group for group in groups}
    return columns, {tuple(names.get(name, (name,))): tally for name, tally in tallies.items()}


def _columns(path: str) -> tuple[str, ...]:
    return tuple(name for name in read_table(path)[0] if name != "people")
