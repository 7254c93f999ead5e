"""A table of items: what the command line, files, pages, plots and notebooks show."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import DataError
from discreet.files import written_aside

_FORMULA = tuple("=+-@\t\r")  # a cell that begins so is run by a spreadsheet


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length, by name. A number that is not finite is not known: None in a
    row, null in Arrow and JSON, an empty cell in CSV.
    """

    columns: Mapping[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, places: Sequence[int] | Any) -> Table:
        """These rows, in this order."""
        return Table({name: np.asarray(values)[places] for name, values in self.columns.items()})

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        names, columns = list(self.columns), [_known(values) for values in self.columns.values()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_arrow(self) -> Any:
        """An Arrow table."""
        import pyarrow as pa

        def column(values: Any) -> Any:
            values = np.asarray(values)
            unknown = ~np.isfinite(values) if values.dtype.kind == "f" else None
            kind = pa.string() if values.dtype.kind in "OU" else None
            return pa.array(values, kind, mask=unknown)

        return pa.table({name: column(values) for name, values in self.columns.items()})

    def to_pandas(self) -> Any:
        """A pandas frame; a number that is not known is NaN."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise DataError("a pandas frame needs pandas: pip install pandas") from None

    def csv(self) -> bytes:
        """CSV with a header. A text that a spreadsheet would take for a formula gets an apostrophe
        in front.
        """
        import pyarrow.csv as pc

        out = io.BytesIO()
        safe = Table({name: _text_only(values) for name, values in self.columns.items()})
        pc.write_csv(safe.to_arrow(), out)
        return out.getvalue()

    def save(self, path: str | Path) -> None:
        """Write it as CSV or Parquet, by the ending of the path."""
        import pyarrow.parquet as pq

        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet"):
            raise DataError(f"{path}: a table is written as .csv or .parquet")
        with written_aside(path) as aside:
            if suffix == ".csv":
                aside.write_bytes(self.csv())
            else:
                pq.write_table(self.to_arrow(), str(aside))


def _text_only(values: Any) -> Any:
    values = np.asarray(values)
    if values.dtype.kind not in "OU":
        return values
    return np.array([f"'{x}" if x[:1] in _FORMULA else x for x in values], object)


def _known(values: Any) -> list[Any]:
    listed: list[Any] = np.asarray(values).tolist()
    if np.asarray(values).dtype.kind == "f" and not np.isfinite(values).all():
        return [x if math.isfinite(x) else None for x in listed]
    return listed
