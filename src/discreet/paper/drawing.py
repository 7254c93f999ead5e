"""Figures: panels with lines of rows, drawn with matplotlib.

Theory is a solid line. Experiments are markers with bars of two standard errors over repeats. The
colours are those of Okabe and Ito, which colour-blind readers can distinguish, and every line has
its own marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError
from discreet.paper.datasets import Data
from discreet.paper.experiments import Numbers, Row
from discreet.paper.settings import Setup
from discreet.show import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure as Picture

    Handles = dict[str, ErrorbarContainer]  # for the legend, by label

STYLES = {  # colour, marker
    "rappor": ("#E69F00", "o"),
    "oue": ("#0072B2", "s"),
    "opt0": ("#009E73", "^"),
    "opt1": ("#CC79A7", "v"),
    "opt2": ("#56B4E9", "D"),
    "subset": ("#D55E00", "P"),
    "boxed": ("#000000", "X"),
}
LABELS = {
    "rappor": "RAPPOR",
    "oue": "OUE",
    "opt0": "IDUE",
    "opt1": "IDUE-opt1",
    "opt2": "IDUE-opt2",
    "subset": "subset",
    "boxed": "IDUE in the authors' box",
}
AXES = {
    "eps": "ε, the smallest budget",
    "k": "k",
    "padding": "padding length ℓ",
    "share": "share of items with the smaller budget (%)",
}
METRICS = {
    "mse": "total MSE / n",
    "re": "relative error of the top {k}",
    "precision": "precision of the top {k}",
}


@dataclass(frozen=True)
class Line:
    """Rows that are joined, and how they look."""

    label: str
    want: Mapping[str, object]
    colour: str
    marker: str
    hollow: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str  # the field of the rows along the axis
    ylabel: str
    lines: Sequence[Line]
    log: bool = True
    over: Mapping[str, object] = field(
        default_factory=dict
    )  # rows whose theory values are divided by
    best: bool = False  # a ring around the smallest theory of every line

    def rows(self, line: Line, numbers: Numbers) -> list[Row]:
        """The rows of a line, from left to right; a line without any is a mistake of the figure."""
        rows = sorted(numbers.select(**line.want), key=lambda row: getattr(row, self.x))
        if not rows:
            want = ", ".join(f"{key} = {value}" for key, value in line.want.items())
            raise DataError(f'"{self.title}" has no numbers for its line "{line.label}": {want}')
        return rows

    def scale(self, numbers: Numbers) -> dict[float, float]:
        """What the values are divided by, along the axis; empty if they are shown as they are."""
        rows = numbers.select(**self.over) if self.over else []
        return {getattr(row, self.x): row.theory for row in rows if row.theory}


@dataclass(frozen=True)
class Figure:
    """Panels in rows and columns, with a title and a caption."""

    name: str
    title: str
    caption: str
    panels: Sequence[Sequence[Panel]]

    def rows(self, numbers: Numbers) -> list[Row]:
        """All rows that are drawn, once each, in the order of the lines."""
        pairs = ((panel, line) for row in self.panels for panel in row for line in panel.lines)
        return list(dict.fromkeys(x for panel, line in pairs for x in panel.rows(line, numbers)))


def lines(models: Iterable[str], suffix: str = "", **want: object) -> list[Line]:
    """A line per model, of raw estimates from bits unless `want` says otherwise."""
    want = {"encoding": "bits", "view": "raw", **want}
    hollow = want["view"] != "raw"
    return [
        Line(f"{LABELS[model]}{suffix}", {"model": model, **want}, *STYLES[model], hollow)
        for model in models
    ]


def complete(figures: Sequence[Figure], setup: Setup, data: Data) -> list[Figure]:
    """Complete the captions of a target's figures with the data and the run. A run through reports
    also shows the paper's own figure a second time, from tickets.
    """
    again = [_from_tickets(figures[0])] if setup.through_reports and figures else []
    return [
        _complete_caption(figure, setup, data) for figure in [*figures[:1], *again, *figures[1:]]
    ]


def _from_tickets(figure: Figure) -> Figure:
    def changed(panel: Panel) -> Panel:
        new = [replace(x, want={**x.want, "encoding": "ticket"}) for x in panel.lines]
        return replace(panel, lines=new)

    panels = [[changed(panel) for panel in row] for row in figure.panels]
    caption = f"{figure.caption} From tickets, reports of 4 bytes."
    return Figure(f"{figure.name}_ticket", f"{figure.title}, tickets", caption, panels)


def _complete_caption(figure: Figure, setup: Setup, data: Data) -> Figure:
    """Add the data, the run and what is partial to the caption, and a quick run to the title."""
    panels = [panel for row in figure.panels for panel in row]
    sets = [
        data[key] for key in dict.fromkeys(str(x.want["data"]) for p in panels for x in p.lines)
    ]
    sources = "; ".join(f"{d.title}: n = {d.n:,}, m = {d.m:,} ({d.source})" for d in sets)
    partial = " ".join(dict.fromkeys(d.partial for d in sets if d.partial))
    bars = (
        "Lines: theory; markers: means with bars of two standard errors over repeats; dotted where "
        "there is no formula."
    )
    pieces = (figure.caption, bars, f"Data: {sources}.", partial, setup.note)
    title = figure.title + (f" (quick run, {setup.repeats} repeats)" if setup.quick else "")
    return replace(figure, title=title, caption=" ".join(filter(None, pieces)))


# ---- drawing -------------------------------------------------------------------------------------

_SIZES: dict[Any, Any] = dict.fromkeys(
    ("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize"), 9
)


def draw(figure: Figure, numbers: Numbers, folder: Path) -> None:
    """Draw a figure as PNG and SVG."""
    from matplotlib import rc_context
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    paths = [folder / f"{figure.name}.png", folder / f"{figure.name}.svg"]
    height, width = len(figure.panels), max(len(row) for row in figure.panels)
    inches = (1.0 + 3.3 * width, 1.1 + 2.6 * height)
    with rc_context(_SIZES):
        layout = ConstrainedLayoutEngine()
        picture = plots.figure_class(paths[0])(figsize=inches, layout=layout)
        grid = picture.subplots(height, width, squeeze=False)
        handles: Handles = {}
        for row, places in zip(figure.panels, grid, strict=True):
            for k, (panel, axes) in enumerate(zip(row, places, strict=True)):
                handles |= _draw_panel(panel, axes, numbers)
                if k and panel.ylabel == row[k - 1].ylabel:
                    axes.set_ylabel("")
        picture.suptitle(figure.title, fontsize=11)
        _legend(picture, handles, inches[0])
        layout.execute(picture)
        picture.set_layout_engine("none")  # both files have the same layout
        for path in paths:
            plots.save(picture, path, dpi=140)


def _legend(picture: Picture, handles: Handles, inches: float) -> None:
    """Below the panels, in as many rows as the labels need."""
    rows = -(-len(handles) * (max(map(len, handles)) + 7) // int(13 * inches))
    picture.legend(  # type: ignore[call-overload]  # it takes containers too
        handles.values(), handles.keys(), loc="outside lower center",
        ncols=-(-len(handles) // rows), frameon=False,
    )  # fmt: skip


def _draw_panel(panel: Panel, axes: Axes, numbers: Numbers) -> Handles:
    scale = panel.scale(numbers)
    handles: Handles = {}
    for j, line in enumerate(panel.lines):
        # bars that would lie on each other stand side by side
        aside = 0.06 * (j - (len(panel.lines) - 1) / 2) if panel.over else 0.0
        rows = panel.rows(line, numbers)
        handles[line.label] = _draw_line(panel, line, axes, rows, scale, aside)
    axes.set_title(fill(panel.title, 46))
    axes.set_xlabel(AXES[panel.x])
    axes.set_ylabel(panel.ylabel)
    if panel.log:
        _log_axis(axes)
    elif not panel.over:
        axes.set_ylim(0, None)
    axes.grid(True, which="major", color="#e3e3e3", lw=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return handles


def _draw_line(
    panel: Panel, line: Line, axes: Axes, rows: Sequence[Row], scale: Mapping[float, float],
    aside: float,
) -> ErrorbarContainer:  # fmt: skip
    factor = 100.0 if panel.x == "share" else 1.0

    def x(row: Row) -> float:
        return factor * float(getattr(row, panel.x))

    def over(row: Row) -> float:
        return scale[getattr(row, panel.x)] if panel.over else 1.0

    smooth = [(x(row), row.theory / over(row)) for row in rows if row.theory is not None]
    if smooth:
        axes.plot(*zip(*smooth, strict=True), "-", color=line.colour, lw=1.2)
        if panel.best:
            at = min(smooth, key=lambda point: point[1])
            axes.plot(*at, "o", color=line.colour, ms=11, mfc="none", mew=1.3, zorder=4)
    seen = [row for row in rows if row.values]
    means = [row.mean / over(row) for row in seen]
    bars = [2 * row.stderr / over(row) for row in seen]
    return axes.errorbar(
        [x(row) + aside for row in seen], means, yerr=bars, fmt=line.marker, color=line.colour,
        mfc="white" if line.hollow else line.colour, ms=4.5, lw=1.0, capsize=2,
        ls="none" if smooth else ":", zorder=3,
    )  # fmt: skip


def _log_axis(axes: Axes) -> None:
    """A logarithmic axis with plain numbers: even steps within a factor of eight, 1-2-5 up to two
    decades, then powers of ten.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = LogLocator(base=10, subs=(1, 2, 5) if high / low < 200 else (1,), numticks=12)
    even = MaxNLocator(6, steps=[1, 2, 5, 10])
    axes.yaxis.set_major_locator(even if high / low < 8 else few)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_locator(NullLocator())
