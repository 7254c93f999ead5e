"""The table of items that the command line, files, pages, plots and notebooks show."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.types import Ints
from discreet.errors import DataError
from discreet.policy.files import written_aside

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_FORMULA = tuple("=+-@\t\r")  # a spreadsheet runs a cell that begins like this

# of an estimate
COLUMNS = ("item", "level", "count", "stderr", "lower", "upper", "share", "share_low", "share_high")

Column: TypeAlias = NDArray[Any] | tuple[()]  # texts, floats or booleans; () of no rows
Row: TypeAlias = dict[str, Any]  # texts, numbers, true and false; None where unknown


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length, by name.

    A number that is not finite is unknown: None in a row, null in Arrow and JSON, an empty cell in
    CSV.
    """

    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, places: Sequence[int] | Ints) -> Table:
        """These rows, in this order."""
        return Table({name: np.asarray(values)[places] for name, values in self.columns.items()})

    def followed_by(self, *others: Table) -> Table:
        """The rows of this table and then of others; a number that one does not have is unknown."""
        columns = {}
        for name, values in self.columns.items():
            parts = [np.asarray(values)]
            parts += [np.asarray(x.columns.get(name, np.full(len(x), np.nan))) for x in others]
            columns[name] = np.concatenate(parts)
        return Table(columns)

    def beside(self, front: Mapping[str, object], back: Mapping[str, object]) -> Table:
        """The table with columns in front and at the end that say the same in every row."""
        before, after = (
            {
                name: np.full(len(self), x, object if isinstance(x, str | None) else None)
                for name, x in c
            }
            for c in (front.items(), back.items())
        )
        return Table({**before, **self.columns, **after})

    def rows(self) -> list[Row]:
        """One dictionary per row."""
        names, columns = list(self.columns), [_cells(values) for values in self.columns.values()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_arrow(self) -> pa.Table:
        """An Arrow table."""
        import pyarrow as pa

        def column(values: Column) -> pa.Array:
            cells = np.asarray(values)
            unknown = ~np.isfinite(cells) if cells.dtype.kind == "f" else None
            kind = pa.string() if cells.dtype.kind in "OU" else None
            return pa.array(cells, kind, mask=unknown)

        return pa.table({name: column(values) for name, values in self.columns.items()})

    def to_pandas(self) -> pd.DataFrame:
        """A pandas frame; an unknown number is NaN."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise DataError("a pandas frame needs pandas: pip install pandas") from None

    def csv(self) -> bytes:
        """CSV with a header.

        A text that a spreadsheet would take for a formula gets an apostrophe in front.
        """
        import pyarrow.csv as pc

        out = io.BytesIO()
        safe = Table({name: _text_only(values) for name, values in self.columns.items()})
        pc.write_csv(safe.to_arrow(), out)
        return out.getvalue()

    def save(self, path: str | Path) -> None:
        """Write the table as CSV or Parquet, by the ending of the path."""
        import pyarrow.parquet as pq

        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet"):
            raise DataError(f"{path}: a table is written as .csv or .parquet")
        with written_aside(path) as aside:
            if suffix == ".csv":
                aside.write_bytes(self.csv())
            else:
                pq.write_table(self.to_arrow(), str(aside))


def _text_only(values: Column) -> Column:
    cells = np.asarray(values)
    if cells.dtype.kind not in "OU":
        return cells
    return np.array([f"'{x}" if x and x[0] in _FORMULA else x for x in cells], object)


def _cells(values: Column) -> list[object]:
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return [x if math.isfinite(x) else None for x in array.tolist()]
    return array.tolist()
