"""The paper's figures: panels are described here, drawn with matplotlib, and their rows written beside them.

Theory is a solid line, experiment are markers with bars of two standard errors over repeats. Colours are those of Okabe and Ito,
which colour-blind readers tell apart; every line has a marker of its own too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

from discreet import plots
from discreet.paper.datasets import Dataset
from discreet.paper.experiments import Numbers, Row, padded, shrunk_singles, singles
from discreet.paper.settings import FIGURES, PAPER_MODELS, THREE_MODELS, Settings

STYLES = {  # colour, marker
    "rappor": ("#E69F00", "o"),
    "oue": ("#0072B2", "s"),
    "opt0": ("#009E73", "^"),
    "opt1": ("#CC79A7", "v"),
    "opt2": ("#56B4E9", "D"),
    "subset": ("#D55E00", "P"),
    "boxed": ("#000000", "X"),
}
BY_EPS = ("#440154", "#31688e", "#35b779", "#d8a200")
MARKS = ("o", "s", "^", "D")
NAMES = {
    "rappor": "RAPPOR",
    "oue": "OUE",
    "opt0": "IDUE",
    "opt1": "IDUE-opt1",
    "opt2": "IDUE-opt2",
    "subset": "subset",
    "boxed": "IDUE in the authors' box",
}
AXES = {
    "eps": "ε, the smallest budget", "k": "k", "padding": "padding length ℓ", "share": "share of items with the smaller budget (%)",
}  # fmt: skip
METRICS = {
    "mse": "total MSE / n",
    "re": "relative error of the top {k}",
    "precision": "precision of the top {k}",
}


@dataclass(frozen=True)
class Line:
    """Rows that are joined, and how they look."""

    label: str
    want: Mapping[str, Any]
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
    over: Mapping[str, Any] = field(
        default_factory=dict
    )  # rows whose theory the values are divided by
    best: bool = False  # a ring around the smallest theory of every line

    def rows(self, line: Line, numbers: Numbers) -> list[Row]:
        """The rows of a line, from left to right."""
        return sorted(numbers.select(**line.want), key=lambda row: getattr(row, self.x))


@dataclass(frozen=True)
class Figure:
    """Panels in rows and columns, with a title and a caption."""

    name: str
    title: str
    caption: str
    panels: Sequence[Sequence[Panel]]

    def rows(self, numbers: Numbers) -> list[Row]:
        """All rows that are drawn, once each, in the order of the lines."""
        panels = (panel for row in self.panels for panel in row)
        return list(
            dict.fromkeys(
                row for panel in panels for line in panel.lines for row in panel.rows(line, numbers)
            )
        )


# ---- the figures ------------------------------------------------------------------------------------------


def figures_of(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    """A figure of the paper, and its panels beyond the paper."""
    if name not in FIGURES:
        return []
    found = {
        "fig3": _fig3,
        "fig4": _fig4,
        "fig5": _fig5,
        "fig6": _fig6,
        "fig7": _fig7,
        "fig8": _padding,
        "fig9": _padding,
    }[name](name, settings, data)
    if settings.through_reports:
        found.insert(1, _tickets(found[0]))
    return [_finished(figure, settings, data) for figure in found]


def _tickets(figure: Figure) -> Figure:
    """The same figure from tickets."""
    panels = [
        [
            replace(
                panel,
                lines=[replace(x, want={**x.want, "encoding": "ticket"}) for x in panel.lines],
            )
            for panel in row
        ]
        for row in figure.panels
    ]
    caption = f"{figure.caption} From tickets, reports of 4 bytes."
    return Figure(f"{figure.name}_ticket", f"{figure.title}, tickets", caption, panels)


def _finished(figure: Figure, settings: Settings, data: Mapping[str, Dataset]) -> Figure:
    """With the data, the run and what is partial in the caption, and a quick run in the title."""
    used = {
        line.want["data"]: None for row in figure.panels for panel in row for line in panel.lines
    }
    sets = [data[key] for key in used]
    told = "; ".join(f"{d.title}: n = {d.n:,}, m = {d.m:,} ({d.source})" for d in sets)
    partial = " ".join(dict.fromkeys(d.partial for d in sets if d.partial))
    bars = "Lines: theory; markers: means with bars of two standard errors over repeats; dotted where there is no formula."
    caption = " ".join(
        filter(None, (figure.caption, bars, f"Data: {told}.", partial, settings.note))
    )
    title = figure.title + (f" (quick run, {settings.repeats} repeats)" if settings.quick else "")
    return Figure(figure.name, title, caption, figure.panels)


def _lines(models: Iterable[str], suffix: str = "", **want: Any) -> list[Line]:
    want = {"encoding": "bits", "view": "raw", **want}
    hollow = want["view"] != "raw"
    return [
        Line(f"{NAMES[model]}{suffix}", {"model": model, **want}, *STYLES[model], hollow)
        for model in models
    ]


def _fig3(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    row, beyond = [], []
    for key in ("power-law", "uniform"):
        title = f"{data[key].title} (m = {data[key].m:,})"
        lines = _lines(PAPER_MODELS, data=key, metric="mse")
        lines[2] = Line("IDUE-opt0", lines[2].want, lines[2].colour, lines[2].marker)
        row.append(Panel(title, "eps", METRICS["mse"], lines))
        base = {"model": "opt0", "data": key, "metric": "mse", "encoding": "bits", "view": "raw"}
        more = _lines(("opt0", "subset", "boxed"), data=key, metric="mse")
        tickets = Line("IDUE, tickets", {**base, "encoding": "ticket"}, "#56B4E9", "D", hollow=True)
        beyond.append(
            Panel(
                title,
                "eps",
                "MSE, relative to opt0's in theory",
                [*more, tickets],
                log=False,
                over=base,
            )
        )
    text = "Comparison of empirical and theoretical results of synthetic data (single-item input), the paper's Fig. 3."
    told = (
        "Beyond the paper, relative to opt0's exact theory: subset, the best mechanism there is, opt0 within the authors' box a >= 1/2 >= b, and "
        "tickets, reports of 4 bytes, instead of m bits."
    )
    if not settings.through_reports:
        told += " Counts of tickets are drawn item by item, which is exact for every two items (their marks are independent)."
    return [
        Figure(name, "Theory and experiment on synthetic data", text, [row]),
        Figure(
            f"{name}_beyond",
            "Beyond the paper: subset, the authors' box, tickets",
            told,
            [beyond],
        ),
    ]


def _fig4(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    k = 20
    rows, beyond = [], []
    for key in singles(data):
        title = data[key].title
        common: dict[str, Any] = {"data": key, "levels": 3, "padding": 0}
        rows.append(
            [
                Panel(title, "eps", METRICS["mse"], _lines(THREE_MODELS, metric="mse", **common)),
                Panel(
                    title,
                    "eps",
                    METRICS["re"].format(k=k),
                    _lines(THREE_MODELS, metric="re", k=k, **common),
                ),
            ]
        )
        if key not in shrunk_singles(settings, data):
            continue
        pair = []
        for metric, want in (("mse", {}), ("re", {"k": k})):
            lines = _lines(("oue", "opt0", "subset"), ", raw", metric=metric, **want, **common)
            lines += _lines(
                ("oue", "opt0", "subset"),
                ", shrunk",
                metric=metric,
                view="shrunk",
                **want,
                **common,
            )
            pair.append(Panel(title, "eps", METRICS[metric].format(k=k), lines))
        beyond.append(pair)
    text = "MSE and RE of real-world data sets (single-item input: the first item of each user), the paper's Fig. 4."
    told = "Beyond the paper: the same reports, raw and as posterior means (empirical Bayes), and subset."
    return [
        Figure(name, "MSE and RE of real-world data", text, rows),
        Figure(f"{name}_beyond", "Beyond the paper: shrunk estimates, subset", told, beyond),
    ]


def _fig5(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    rows = [
        [
            Panel(
                f"{data[key].title}, ε\u00a0=\u00a0{eps:g}", "k", "relative error of the top k",
                _lines(THREE_MODELS, data=key, levels=3, padding=0, metric="re", eps=eps),
            )
            for eps in settings.some_epsilons
        ]
        for key in singles(data)
    ]  # fmt: skip
    text = "RE of the top k frequent items, varying k, the paper's Fig. 5; the paper does not say at which ε."
    return [Figure(name, "RE of the top k, varying k", text, rows)]


def _fig6(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    rows, beyond = [], []
    for metric, want in (("mse", {}), ("re", {"k": 50})):
        line, more = [], []
        for eps in settings.some_epsilons:
            title, label = f"ε₁ = {eps:g}, ε₂ = {2 * eps:g}", METRICS[metric].format(k=50)
            common: dict[str, Any] = {
                "data": "retail",
                "levels": 2,
                "metric": metric,
                "eps": eps,
                **want,
            }
            line.append(Panel(title, "share", label, _lines(THREE_MODELS, **common)))
            more.append(Panel(title, "share", label, _lines(("oue", "opt0", "subset"), **common)))
        rows.append(line)
        beyond.append(more)
    name_ = data["retail"].title
    text = (
        "Under different privacy budget distributions, the paper's Fig. 6: two budgets, varying the share of the items with the "
        f"smaller one, {name_}, first item of each user. The paper does not name the data and the budgets."
    )
    told = f"Beyond the paper: subset beside opt0 under different budget distributions, {name_}."
    return [
        Figure(name, f"Varying the share of sensitive items, {name_}", text, rows),
        Figure(f"{name}_beyond", f"Beyond the paper: subset, {name_}", told, beyond),
    ]


def _fig7(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    k, eps, title = 50, 2.0, data["clothing"].title
    common: dict[str, Any] = {"data": "clothing", "padding": 2}
    rows, beyond = [], []
    for metric, log in (("precision", False), ("re", True)):
        panels = []
        for x, fixed, told in (("eps", {"k": k}, f"k = {k}"), ("k", {"eps": eps}, f"ε = {eps:g}")):
            label = METRICS[metric].format(k=k if x == "eps" else "k")
            panels.append(
                Panel(
                    f"{title}, {told}",
                    x,
                    label,
                    _lines(THREE_MODELS, "-PS", metric=metric, **fixed, **common),
                    log,
                )
            )
        rows.append(panels)
    for x, fixed, told in (("eps", {"k": k}, f"k = {k}"), ("k", {"eps": eps}, f"ε = {eps:g}")):
        want = {"metric": "precision", **fixed, **common}
        lines = _lines(("oue", "opt0"), "-PS, raw ranking", **want)
        lines += _lines(("opt0",), "-PS, posterior ranking", view="shrunk", **want)
        lines += _lines(("subset",), ", posterior ranking", view="shrunk", **want)
        beyond.append(
            Panel(
                f"{title}, {told}",
                x,
                METRICS["precision"].format(k=k if x == "eps" else "k"),
                lines,
                log=False,
            )
        )
    text = (
        f"Precision and RE of Clothing item-set data (ℓ = 2), the paper's Fig. 7; left with k = {k}, right with ε = {eps:g}, which "
        "the paper does not state."
    )
    told = (
        "Beyond the paper: the same reports ranked by posterior mean, which does not let a noisy sensitive item jump to the top "
        "(for OUE-PS the two rankings are the same: its noise is the same for every item)."
    )
    return [
        Figure(name, f"Precision and RE of item sets, {title} (ℓ = 2)", text, rows),
        Figure(f"{name}_beyond", "Beyond the paper: ranking by posterior mean", told, [beyond]),
    ]


def _padding(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Figure]:
    k, number = (20, 8) if name == "fig8" else (100, 9)

    def panels(key: str) -> list[Panel]:
        top = min(k, data[key].m)
        found = []
        for metric, want in (("mse", {}), ("re", {"k": top})):
            lines = []
            for j, eps in enumerate(settings.padding_epsilons):
                conditions = {
                    "model": "opt0",
                    "data": key,
                    "metric": metric,
                    "eps": eps,
                    "encoding": "bits",
                    "view": "raw",
                    **want,
                }
                lines.append(
                    Line(
                        f"ε = {eps:g}",
                        {**conditions, "padding": tuple(range(1, 99))},
                        BY_EPS[j],
                        MARKS[j],
                    )
                )
            found.append(
                Panel(data[key].title, "padding", METRICS[metric].format(k=top), lines, best=True)
            )
        return found

    own, *more = padded(name, data)
    text = (
        f"Varying ℓ and ε in {data[own].title} item-set data (k = {k}), IDUE-PS, the paper's Fig. {number}. Rings: the best ℓ of "
        "every line, in theory."
    )
    found = [Figure(name, f"Varying the padding, {data[own].title}", text, [panels(own)])]
    if more:
        told = (
            "Beyond the paper's figure: the same people ten times (as many as the paper has: the best padding depends on n), and "
            "Retail, of which the paper only says that it has similar trends. Rings: the best ℓ of every line, in theory."
        )
        found.append(
            Figure(
                f"{name}_beyond",
                "Beyond the paper's figure: more people, and Retail",
                told,
                [panels(key) for key in more],
            )
        )
    return found


# ---- drawing ----------------------------------------------------------------------------------------------


def draw(figure: Figure, numbers: Numbers, folder: Path) -> None:
    """The figure as PNG and SVG."""
    from matplotlib import rc_context

    paths = [folder / f"{figure.name}.png", folder / f"{figure.name}.svg"]
    height, width = len(figure.panels), max(len(row) for row in figure.panels)
    with rc_context(
        {"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 9}
    ):
        inches = 1.0 + 3.3 * width
        picture = plots.figure_class(paths[0])(
            figsize=(inches, 1.1 + 2.6 * height), layout="constrained"
        )
        grid = picture.subplots(height, width, squeeze=False)
        handles: dict[str, Any] = {}
        for row, line in zip(figure.panels, grid, strict=True):
            for k, (panel, axes) in enumerate(zip(row, line, strict=True)):
                handles |= _draw_panel(panel, axes, numbers)
                if k and panel.ylabel == row[k - 1].ylabel:
                    axes.set_ylabel("")
        picture.suptitle(figure.title, fontsize=11)
        rows = -(
            -len(handles) * (max(map(len, handles)) + 7) // int(13 * inches)
        )  # as many as the labels need
        picture.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=-(-len(handles) // rows),
            frameon=False,
        )
        picture.get_layout_engine().execute(picture)
        picture.set_layout_engine("none")  # the layout is found once, for both files
        for path in paths:
            plots.save(picture, path, dpi=140)


def _draw_panel(panel: Panel, axes: Any, numbers: Numbers) -> dict[str, Any]:
    scale = (
        {getattr(row, panel.x): row.theory or 1.0 for row in numbers.select(**panel.over)}
        if panel.over
        else {}
    )
    handles = {}
    for j, line in enumerate(panel.lines):
        aside = (
            0.06 * (j - (len(panel.lines) - 1) / 2) if panel.over else 0.0
        )  # bars that would lie on each other
        handles[line.label] = _draw_line(panel, line, axes, panel.rows(line, numbers), scale, aside)
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
    panel: Panel,
    line: Line,
    axes: Any,
    rows: Sequence[Row],
    scale: Mapping[Any, float],
    aside: float,
) -> Any:
    factor = 100.0 if panel.x == "share" else 1.0

    def x(row: Row) -> float:
        return factor * float(getattr(row, panel.x))

    def over(row: Row) -> float:
        return scale.get(getattr(row, panel.x), 1.0)

    smooth = [(x(row), row.theory / over(row)) for row in rows if row.theory is not None]
    if smooth:
        axes.plot(*zip(*smooth, strict=True), "-", color=line.colour, lw=1.2)
        if panel.best:
            at = min(smooth, key=lambda point: point[1])
            axes.plot(*at, "o", color=line.colour, ms=11, mfc="none", mew=1.3, zorder=4)
    seen = [row for row in rows if row.values]
    means, bars = (
        [row.mean / over(row) for row in seen],
        [2 * row.stderr / over(row) for row in seen],
    )
    places, inside = [x(row) + aside for row in seen], "white" if line.hollow else line.colour
    return axes.errorbar(
        places, means, yerr=bars, fmt=line.marker, color=line.colour, mfc=inside, ms=4.5, lw=1.0, capsize=2,
        ls="none" if smooth else ":", zorder=3,
    )  # fmt: skip


def _log_axis(axes: Any) -> None:
    """A logarithmic axis with plain numbers: even steps within a factor of eight, 1-2-5 up to two decades, then powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = LogLocator(base=10, subs=(1, 2, 5) if high / low < 200 else (1,), numticks=12)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]) if high / low < 8 else few)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_locator(NullLocator())
