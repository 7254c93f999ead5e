"""Weighted tallies of files of reports, and files of a population's groups."""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.arrays.grouped_tallies import group_name
from discreet.arrays.tally import Tally
from discreet.arrays.threads import run_blocks
from discreet.arrays.types import Floats
from discreet.arrays.weighted import POWERS, WeightedTally, as_times, check_weights, unit_for
from discreet.data.counting import Group, TalliesByValue, as_columns
from discreet.data.files import Advance, parquet_file
from discreet.data.reports import Piece, name_in_errors, read_piece, split_file
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    import pyarrow as pa

MOST_PEOPLE = 1e15
_GROUPED = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")  # 300.000 is 300 or 300,000
_TIMES = "\0times"  # a column that no file has
# people per tuple of values of the columns; None for a column that is not told
Population = dict[tuple[str | None, ...], float]


def tally_weighted(
    paths: Iterable[Path],
    mechanism: Mechanism,
    weights: str,
    by: str | Iterable[str] | None = None,
    advance: Advance = lambda _: None,
    threads: int | None = None,
) -> dict[Group, WeightedTally]:
    """Tally files of reports whose column `weights` has a weight for each: one tally per value of
    the columns `by`, under None without them.
    """
    import pyarrow as pa

    columns, lock, listed = as_columns(by), threading.Lock(), [*paths]
    wanted = (*dict.fromkeys((*columns, weights)),)
    pieces = [piece for path in listed for piece in split_file(path, mechanism, wanted)]
    largest = max((_largest(path, weights) for path in listed), default=0.0)
    if not largest > 0:
        raise DataError(f"all weights in the column {quoted(weights)} are 0, so nobody counts")
    groups = [TalliesByValue(mechanism, columns) for _ in POWERS]
    unit = unit_for(sum(_rows(piece) for piece in pieces))

    def count(piece: Piece) -> None:
        for batch in read_piece(piece, mechanism, wanted):
            with name_in_errors(piece.path):
                values = _weights(batch, weights)
                for power, tallies in zip(POWERS, groups, strict=True):
                    times = pa.array(as_times(values, largest, power, unit))
                    tallies.add(batch.append_column(_TIMES, times), counts=_TIMES)
        with lock:
            advance(piece.size)

    run_blocks(lambda k, _: count(pieces[k]), len(pieces), 1, threads, fewest=2)
    tallies = [by_value.tallies(threads) for by_value in groups]
    return {group: _weighted(group, [x[group] for x in tallies], unit) for group in tallies[0]}


def _weighted(group: Group, tallies: Sequence[Tally], unit: int) -> WeightedTally:
    try:
        return WeightedTally.from_powers(tallies, unit)
    except DataError as error:
        where = "" if group is None else f"{group_name(group)}: "
        raise DataError(f"{where}{error}") from None


def _rows(piece: Piece) -> int:
    metadata = piece.metadata
    if metadata is None or piece.groups is None:
        return 0
    return sum(metadata.row_group(k).num_rows for k in piece.groups)


def _largest(path: Path, column: str) -> float:
    with parquet_file(path) as file, name_in_errors(path):
        batches = file.iter_batches(1 << 20, columns=[column], use_threads=False)
        return max((float(_weights(x, column).max(initial=0)) for x in batches), default=0.0)


def _weights(batch: pa.RecordBatch, column: str) -> Floats:
    import pyarrow as pa

    values = batch.column(column)
    kind = values.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not numeric:
        raise DataError(f"the column {quoted(column)} has values of type {kind}, not numbers")
    if values.null_count:
        raise DataError(f"the column {quoted(column)} has a row without a weight")
    try:
        return check_weights(values.cast(pa.float64(), safe=False).to_numpy(), zero=True)
    except DataError as error:
        raise DataError(f"the column {quoted(column)} is no weight: {error}") from None


# ---- a population --------------------------------------------------------------------------------


def read_population(path: str | Path, by: Sequence[str]) -> Population:
    """Read a CSV of columns of groups and `people`: the people per tuple of values of the columns
    `by`, None for a column that the file does not have.
    """
    heads, rows = read_table(path)
    columns = [name for name in by if name in heads]
    if "people" not in heads or not columns:
        raise DataError(
            f'{path} needs a column "people" and one or more of {", ".join(map(quoted, by))}'
        )
    if strange := [name for name in heads if name not in {*by, "people"}]:
        raise DataError(
            f"{path} has a column {quoted(strange[0])}, by which the answers are not grouped; "
            "leave it out, or group by it too"
        )
    population: Population = {}
    for number, cells in enumerate(rows, 2):
        if len(cells) != len(heads):
            raise DataError(
                f"{path}, line {number} has {len(cells)} cells and the head {len(heads)}; write "
                "numbers without commas"
            )
        row = dict(zip(heads, cells, strict=True))
        if _GROUPED.fullmatch(row["people"]):
            raise DataError(
                f"{path}, line {number}: {row['people']!r} could be a fraction or thousands; write "
                "whole numbers without points"
            )
        try:
            people = float(row["people"].replace("_", ""))
        except ValueError:
            people = -1.0
        if not 0 <= people <= MOST_PEOPLE:
            raise DataError(
                f"{path}, line {number}: people is a number from 0 to 1e15, got {row['people']!r}"
            )
        group = tuple(row[name] if name in columns else None for name in by)
        if group in population:
            raise DataError(f"{path}, line {number}: this group appears twice")
        population[group] = people
    if not sum(population.values()) > 0:
        raise DataError(f"{path} has no people")
    return population


def read_table(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """The heads and rows of a CSV, without blanks around the cells and without empty lines."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(f"{path} cannot be read as a CSV") from None
    heads = rows[0] if rows else []
    if twice := [name for name in heads if heads.count(name) > 1]:
        raise DataError(f"{path} has two columns {quoted(twice[0])}; keep one")
    return heads, rows[1:]
