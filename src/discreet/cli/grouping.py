"""Where `discreet estimate` gets its estimates from: a tally, tallies by group, or reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

from discreet.arrays.grouped_tallies import file_name
from discreet.arrays.tally import Tally
from discreet.arrays.weighted import WeightedTally, load_tally
from discreet.cli.group import progress
from discreet.data.counting import as_columns, tally_files
from discreet.data.reports import report_files
from discreet.data.weights import Population, read_population, read_table, tally_weighted
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
    for group, estimate in estimates.items():
        _refuse_null(columns, group, estimate.n)
    named = {tuple(map(str, group)): estimate for group, estimate in estimates.items()}
    sizes = {group: estimate.n for group, estimate in named.items()}
    known = {path: read_population(path, columns) for path in populations}
    _refuse_told_twice(columns, populations, known)
    people = people_per_group(sizes, [*known.values()])
    return (), {(): post_stratify(named, people)}, odd


def _refuse_null(columns: Sequence[str], group: Group, n: int) -> None:
    """Refuse reports without a value, for which no population can stand."""
    for column, value in zip(columns, group, strict=True):
        if value is None:
            raise DataError(
                f"{n:,} report{'s have' if n > 1 else ' has'} no value in the column "
                f"{quoted(column)}; fill it in, or leave them out, because they belong to no group"
            )


def _refuse_told_twice(
    columns: Sequence[str], paths: Sequence[str], known: Mapping[str, Population]
) -> None:
    """Refuse a population whose columns are all in another one."""
    told = [
        (path, {c for c, x in zip(columns, next(iter(known[path])), strict=True) if x is not None})
        for path in paths
    ]
    for (first, mine), (second, others) in permutations(told, 2):
        if mine <= others:
            raise DataError(
                f"--population {first} and {second} both give the people by "
                f"{', '.join(quoted(c) for c in columns if c in mine)}; keep one"
            )


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
