"""What a table is: rows of plain numbers, exact theory, no randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class PaperTable:
    """Rows with the same columns, and what they show."""

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


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
