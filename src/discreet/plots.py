"""Pictures (extra `plot`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DataError, MissingExtra
from discreet.files import written_aside

if TYPE_CHECKING:
    from discreet.estimate import Estimate

COLOURS = ("#c0392b", "#e67e22", "#2471a3", "#1e8449", "#7d3c98", "#5d6d7e", "#b7950b", "#148f77")


def bars(estimate: Estimate, path: str | Path, k: int = 30, truth: Any = None, shrunk: bool = False) -> None:
    """The top items as bars with 95 % whiskers, coloured by level; dots mark the truth where it is known, diamonds with
    credible intervals the shrunk counts.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".svg"):
        raise DataError(f"{path}: a plot is written as .png or .svg")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a plot", "plot") from None
    policy = estimate.mechanism.policy
    ranked = estimate.shrunk().counts if shrunk else np.nan_to_num(estimate.counts, nan=-np.inf)
    order = np.argsort(-ranked, kind="stable")[:k]
    low, high = estimate.interval()
    counts = estimate.counts[order]
    whiskers = np.abs(np.stack((counts - low[order], high[order] - counts)))
    figure = Figure(figsize=(8, 1.2 + 0.28 * len(order)), layout="constrained")
    axes = figure.subplots()
    levels = [policy.level_of[i] for i in order]
    axes.barh(
        range(len(order)), counts, xerr=whiskers, color=[COLOURS[j % len(COLOURS)] for j in levels],
        error_kw={"ecolor": "#333333", "lw": 1, "capsize": 2},
    )  # fmt: skip
    if shrunk:
        inner_low, inner_high = (end[order] for end in estimate.shrunk().interval())
        means = ranked[order]
        whiskers = np.abs(np.stack((means - inner_low, inner_high - means)))
        below = np.arange(len(order)) + 0.25
        axes.errorbar(means, below, xerr=whiskers, fmt="D", color="#111111", mfc="white", ms=4, lw=1, capsize=2, label="shrunk")
    if truth is not None:
        axes.plot(np.asarray(truth)[order], range(len(order)), "o", color="black", ms=4, label="truth")
    axes.set_yticks(range(len(order)), [policy.items[i][:40] for i in order])
    axes.invert_yaxis()
    axes.axvline(0, color="#333333", lw=0.8)
    axes.set_xlabel("people, with 95 % intervals")
    axes.set_title(f"{policy.name}: {estimate.n:,} reports")
    for j in sorted(set(levels)):
        axes.barh(0, 0, color=COLOURS[j % len(COLOURS)], label=f"{policy.levels[j].name} (ε = {policy.levels[j].budget.text})")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    with written_aside(path) as aside:
        figure.savefig(aside, format=suffix[1:], dpi=150)
