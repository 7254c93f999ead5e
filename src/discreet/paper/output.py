"""The files of a run. Each is written to a temporary file first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from discreet.errors import DataError
from discreet.paper.drawing import Figure
from discreet.paper.experiments import Numbers, Row
from discreet.paper.tables import PaperTable
from discreet.paper.workers import Workers
from discreet.policy.files import write_text

FIELDS = (
    "data", "model", "eps", "levels", "share", "padding", "encoding", "metric", "k", "view"
)  # fmt: skip


class Writer:
    """Writes files into a folder, and lists them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[str] = []

    def text(self, name: str, text: str) -> None:
        """Write a text file."""
        write_text(self.folder / name, text)
        self.files.append(name)

    def json(self, name: str, facts: object) -> None:
        """Write a JSON file."""
        text = json.dumps(facts, indent=1, ensure_ascii=False, default=_plain)
        self.text(name, text + "\n")

    def table(self, table: PaperTable) -> None:
        """Write a table as CSV, and as Markdown with its caption."""
        rows = ([row[head] for head in table.heads] for row in table.rows)
        self.text(f"{table.name}.csv", _csv(table.heads, rows))
        self.text(f"{table.name}.md", table.markdown())

    def figures(self, wanted: Sequence[Figure], numbers: Numbers, workers: Workers) -> None:
        """Write figures as PNG and SVG, with their numbers (CSV) and captions (text)."""
        shown = [(figure, Numbers(figure.rows(numbers))) for figure in wanted]
        workers.draw(shown, self.folder)
        heads = (*FIELDS, "repeats", "mean", "stderr", "theory", "values")
        for figure, chosen in shown:
            self.text(f"{figure.name}.csv", _csv(heads, map(_cells, chosen.rows)))
            self.text(f"{figure.name}.txt", figure.caption + "\n")
            self.files += [f"{figure.name}.png", f"{figure.name}.svg"]


def _cells(row: Row) -> list[object]:
    numbers = (row.mean, row.stderr, row.theory, " ".join(map(_number, row.values)))
    return [*(getattr(row, name) for name in FIELDS), len(row.values), *numbers]


def _csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [",".join(heads)]
    for row in rows:
        cells = ("" if x is None else _number(x) if isinstance(x, float) else str(x) for x in row)
        lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"


def _number(x: float) -> str:
    return f"{x:.10g}" if math.isfinite(x) else ""


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else str(value)


def check_writable(folder: Path) -> None:
    """Create the folder, and check that it is writable, before any work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".discreet"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        why = f"{folder} cannot be written: {error.strerror}"
        raise DataError(f"{why}; name another folder with --out") from None
