"""How a terminal shows tables and sentences: at its width, and a file or pipe at a fixed one."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text


def console() -> Console:
    """The terminal, or a fixed width if the output is a file or a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)


def make_table(*heads: str) -> Table:
    """A table with these heads; numbers stand on the right."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for k, head in enumerate(heads):
        table.add_column(escape(head), justify="left" if k == 0 else "right", overflow="fold")
    return table


def print_table(out: Console, table: Table) -> None:
    """Print a table. On a narrow terminal the heads wrap first, then the gaps shrink, then the
    cells fold; nothing is cut.
    """
    widths = [_widths(column) for column in table.columns]
    gaps, least = len(widths) - 1, sum(width for width, _ in widths)
    if least + 3 * gaps + 2 > out.width:
        table.padding = 0
    room = out.width - 2 - least - (3 if any(table.padding) else 1) * gaps
    for column, (width, full) in zip(table.columns, widths, strict=True):
        if room >= 0:
            column.width = min(full, width + room)
            room -= column.width - width
    out.print(table)


def _widths(column: Column) -> tuple[int, int]:
    """The width that a column needs if its head wraps, and if nothing wraps."""
    head = Text.from_markup(str(column.header)).plain
    cells = max((cell_len(Text.from_markup(str(cell)).plain) for cell in column.cells), default=0)
    return max(cells, *map(cell_len, head.split() or [""])), max(cells, cell_len(head))


def print_sentence(out: Console, sentence: str, mark: str = "", style: str = "") -> None:
    """Print a sentence. A terminal wraps it behind its mark; a file or pipe gets one line."""
    if out.is_terminal:
        grid = Table.grid()
        grid.add_row(mark, Text(sentence, style))
        out.print(grid)
    else:
        out.print(Text(mark + sentence, style), soft_wrap=True)


def print_warnings(out: Console, warnings: Sequence[str]) -> None:
    """Print a line of its own for every warning."""
    for sentence in warnings:
        print_sentence(out, f"Warning: {sentence}", style="yellow")
