"""Pictures (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from discreet.arrays.types import Floats
from discreet.errors import DataError, MissingExtra
from discreet.policy.files import written_aside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from discreet.estimates.comparison import Comparison
    from discreet.estimates.estimate import Estimate
    from discreet.estimates.simulation import Score

COLOURS = ("#c0392b", "#e67e22", "#2471a3", "#1e8449", "#7d3c98", "#5d6d7e", "#b7950b", "#148f77")


def bars(
    estimate: Estimate,
    path: str | Path | None = None,
    k: int = 30,
    confidence: float = 0.95,
    truth: ArrayLike | None = None,
    view: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the top items as bars with whiskers, coloured by level. Dots mark the truth if you know
    it, diamonds the counts of a view with its intervals.
    """
    policy = estimate.mechanism.policy
    table = estimate.table(confidence, [view] if view else [])
    ranked = np.nan_to_num(table.columns[view or "count"], nan=-np.inf)
    order = np.argsort(-ranked, kind="stable")[:k]
    shown = cast("Mapping[str, Floats]", table.take(order).columns)
    axes = _axes(path, axes, 1.2 + 0.28 * len(order))
    levels = [policy.level_of[i] for i in order]
    axes.barh(
        range(len(order)),
        shown["count"],
        xerr=_whiskers(shown, "count", ""),
        color=[COLOURS[j % len(COLOURS)] for j in levels],
        error_kw={"ecolor": "#333333", "lw": 1, "capsize": 2},
    )
    if view:
        axes.errorbar(
            shown[view],
            np.arange(len(order)) + 0.25,
            xerr=_whiskers(shown, view, f"{view}_"),
            fmt="D",
            color="#111111",
            mfc="white",
            ms=4,
            lw=1,
            capsize=2,
            label=view,
        )
    if truth is not None:
        axes.plot(
            np.asarray(truth)[order], range(len(order)), "o", color="black", ms=4, label="truth"
        )
    axes.set_yticks(range(len(order)), [policy.items[i][:40] for i in order])
    axes.invert_yaxis()
    axes.axvline(0, color="#333333", lw=0.8)
    axes.set_xlabel(f"people, with {100 * confidence:g} % intervals")
    axes.set_title(f"{policy.title}: {estimate.n:,} reports")
    for j in sorted(set(levels)):
        axes.barh(
            0,
            0,
            color=COLOURS[j % len(COLOURS)],
            label=f"{policy.levels[j].name} (ε = {policy.levels[j].budget.text})",
        )
    axes.legend(loc="lower right", frameon=False)
    return _finish(axes, path)


def differences(
    comparison: Comparison, path: str | Path | None = None, k: int = 30, axes: Axes | None = None
) -> Axes:
    """Draw the largest differences with their intervals; a filled dot differs for certain."""
    order = comparison.ranked[:k]
    shown = comparison.table().take(order).columns
    axes = _axes(path, axes, 1.2 + 0.28 * len(order))
    first, second = comparison.names
    for y, row in enumerate(zip(*(100 * np.asarray(shown[name]) for name in ("difference", "lower",
                                  "upper")), shown["differs"], strict=True)):  # fmt: skip
        middle, low, high, sure = row
        colour = COLOURS[2] if sure else "#999999"
        axes.plot([low, high], [y, y], color=colour, lw=1.5)
        axes.plot(middle, y, "o", color=colour, mfc=colour if sure else "white", ms=5)
    axes.set_yticks(range(len(order)), [str(item)[:40] for item in shown["item"]])
    axes.invert_yaxis()
    axes.axvline(0, color="#333333", lw=0.8)
    trust = f"{100 * comparison.confidence:g} % for all items together"
    axes.set_xlabel(f"percentage points more in {first} than in {second} ({trust})")
    n = " and ".join(f"{e.n:,}" for e in (comparison.first, comparison.second))
    axes.set_title(f"{first} and {second}: {n} reports")
    return _finish(axes, path)


def _axes(path: str | Path | None, axes: Axes | None, height: float) -> Axes:
    """Axes to draw in: those given, new ones for a file, or new ones that a notebook shows."""
    if path is not None:
        Figure = figure_class(path)
    if axes is not None:
        return axes
    if path is not None:
        return Figure(figsize=(8, height), layout="constrained").subplots()
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("a plot", "plot") from None
    return pyplot.subplots(figsize=(8, height), layout="constrained")[1]


def _finish(axes: Axes, path: str | Path | None) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    if path is not None:
        save(axes.figure.figure, path)
    return axes


def _whiskers(shown: Mapping[str, Floats], counts: str, prefix: str) -> Floats | None:
    """How far the intervals reach to both sides of the counts; None if the view has none."""
    if f"{prefix}lower" not in shown:
        return None
    middle, low, high = shown[counts], shown[f"{prefix}lower"], shown[f"{prefix}upper"]
    return np.abs(np.stack((middle - low, high - middle)))


def models(scores: Sequence[Score], path: str | Path, title: str, k: int) -> None:
    """Compare models: total MSE / n and precision of the top k, for every view."""
    Figure = figure_class(path)
    names = list(dict.fromkeys(score.model for score in scores))
    kinds = list(dict.fromkeys(score.view for score in scores))
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(kinds)
    for j, view in enumerate(kinds):
        mine = {score.model: score for score in scores if score.view == view}
        places = [
            i + (j - (len(kinds) - 1) / 2) * width for i, name in enumerate(names) if name in mine
        ]
        drawn = [mine[name] for name in names if name in mine]
        for axes, key in ((left, "mse"), (right, "precision")):
            values = [getattr(score, key) for score in drawn]
            errors = [getattr(score, f"{key}_error") for score in drawn]
            axes.bar(
                places,
                values,
                width,
                yerr=errors,
                label=view,
                color=COLOURS[2 - j % 3],
                error_kw={"lw": 0.8},
            )
    left.set_yscale("log")
    left.set_ylabel("total MSE / n")
    right.set_ylabel(f"precision of the top {k}")
    for axes in (left, right):
        axes.set_xticks(range(len(names)), names)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.suptitle(title)
    save(figure, path)


def figure_class(path: str | Path) -> type[Figure]:
    """matplotlib's Figure, after checking that the path ends in .png or .svg."""
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise DataError(f"{path}: a plot is written as .png or .svg")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a plot", "plot") from None
    return Figure


def save(figure: Figure, path: str | Path, dpi: int = 150) -> None:
    """Write a figure as PNG or SVG. The same figure gives the same bytes."""
    from matplotlib import rc_context

    kind = Path(path).suffix[1:].lower()
    with (
        written_aside(path) as aside,
        rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none"}),
    ):
        figure.savefig(
            aside, format=kind, dpi=dpi, metadata={"Date": None} if kind == "svg" else None
        )
