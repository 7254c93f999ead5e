"""A table: rows of plain numbers, from exact theory, without randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]  # one row: numbers and texts by column
Rows = list[Record]


@dataclass(frozen=True)
class PaperTable:
    """Rows with the same columns, a title and a caption."""

    name: str
    title: str
    caption: str
    rows: Rows

    @property
    def heads(self) -> list[str]:
        """The columns."""
        return list(self.rows[0])

    def markdown(self) -> str:
        """The table as text."""
        lines = [_line(self.heads), "|" + "---|" * len(self.heads)]
        lines += [_line([_cell(row[head]) for head in self.heads]) for row in self.rows]
        return f"**{self.title}**\n\n" + "\n".join(lines) + f"\n\n{self.caption}\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
