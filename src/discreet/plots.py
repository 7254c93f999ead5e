"""Pictures (extra `plot`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DataError, MissingExtra
from discreet.files import written_aside

if TYPE_CHECKING:
    from discreet.comparison import Comparison
    from discreet.estimate import Estimate

COLOURS = ("#c0392b", "#e67e22", "#2471a3", "#1e8449", "#7d3c98", "#5d6d7e", "#b7950b", "#148f77")


def bars(
    estimate: Estimate,
    path: str | Path | None = None,
    k: int = 30,
    confidence: float = 0.95,
    truth: Any = None,
    view: str | None = None,
    axes: Any = None,
) -> Any:
    """The top items as bars with whiskers, coloured by level; dots mark the truth where it is
    known, diamonds the counts of a view with its intervals.
    """
    policy = estimate.mechanism.policy
    table = estimate.table(confidence, [view] if view else [])
    ranked = np.nan_to_num(table.columns[view or "count"], nan=-np.inf)
    order = np.argsort(-ranked, kind="stable")[:k]
    shown = table.take(order).columns
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
    axes.set_title(f"{policy.name}: {estimate.n:,} reports")
    for j in sorted(set(levels)):
        axes.barh(
            0,
            0,
            color=COLOURS[j % len(COLOURS)],
            label=f"{policy.levels[j].name} (ε = {policy.levels[j].budget.text})",
        )
    axes.legend(loc="lower right", frameon=False)
    return _finished(axes, path)


def differences(
    comparison: Comparison, path: str | Path | None = None, k: int = 30, axes: Any = None
) -> Any:
    """The foremost differences with their intervals; what differs for certain is filled."""
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
    return _finished(axes, path)


def _axes(path: str | Path | None, axes: Any, height: float) -> Any:
    """Axes to draw in: those given, new ones for a file, or new ones that a notebook shows."""
    if path is not None:
        Figure = figure_class(path)
    if axes is not None:
        return axes
    size: dict[str, Any] = {"figsize": (8, height), "layout": "constrained"}
    if path is not None:
        return Figure(**size).subplots()
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("a plot", "plot") from None
    return pyplot.subplots(**size)[1]


def _finished(axes: Any, path: str | Path | None) -> Any:
    axes.spines[["top", "right"]].set_visible(False)
    if path is not None:
        save(axes.figure, path)
    return axes


def _whiskers(shown: Any, counts: str, prefix: str) -> Any:
    """What reaches to both sides of the counts; None where the view has no intervals."""
    if f"{prefix}lower" not in shown:
        return None
    middle, low, high = shown[counts], shown[f"{prefix}lower"], shown[f"{prefix}upper"]
    return np.abs(np.stack((middle - low, high - middle)))


def models(scores: Any, path: str | Path, title: str, k: int) -> None:
    """Models compared: total MSE / n and precision of the top k, for every view."""
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
        found = [mine[name] for name in names if name in mine]
        for axes, key in ((left, "mse"), (right, "precision")):
            values, errors = (
                [getattr(s, key) for s in found],
                [getattr(s, f"{key}_error") for s in found],
            )
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


def figure_class(path: str | Path) -> Any:
    """matplotlib's Figure, once the ending of the path is known to be right."""
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise DataError(f"{path}: a plot is written as .png or .svg")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a plot", "plot") from None
    return Figure


def save(figure: Any, path: str | Path, dpi: int = 150) -> None:
    """Write a figure as PNG or SVG, aside first; the same figure is the same bytes."""
    from matplotlib import rc_context

    kind = Path(path).suffix[1:].lower()
    with (
        written_aside(path) as aside,
        rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none"}),
    ):
        figure.savefig(
            aside, format=kind, dpi=dpi, metadata={"Date": None} if kind == "svg" else None
        )
