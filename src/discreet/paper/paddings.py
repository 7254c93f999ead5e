"""What fig8 and fig9 share: experiments, panels and curves against the padding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.paper.datasets import Data
from discreet.paper.drawing import METRICS, Line, Panel
from discreet.paper.experiments import Experiment, Numbers, grid
from discreet.paper.settings import Setup
from discreet.paper.tables import PaperTable, Record, Rows
from discreet.paper.verdicts import FAILS, HOLDS, NOTHING, Claims, Evidence, Verdict

COLOURS = ("#440154", "#31688e", "#35b779", "#d8a200")  # by eps
MARKS = ("o", "s", "^", "D")


def experiments(keys: Sequence[str], k: int, setup: Setup, data: Data) -> list[Experiment]:
    """Every padding up to the largest; those between the setup's are theory alone."""
    tasks = []
    for key in keys:
        tried = setup.paddings(float(data[key].sizes.mean()))
        for ell in range(1, tried[-1] + 1):
            rest: dict[str, Any] = {"data": key, "ks": data[key].tops((), k), "padding": ell}
            rest["repeats"] = setup.repeats if ell in tried else 0
            encodings = setup.encodings if ell in tried else ("bits",)
            tasks += grid(("opt0",), setup.padding_epsilons, encodings, **rest)
    return tasks


def panels(key: str, k: int, setup: Setup, data: Data) -> list[Panel]:
    """MSE and RE of IDUE-PS, a line per eps."""
    top, panels = data[key].top(k), []
    for metric, want in (("mse", {}), ("re", {"k": top})):
        rows: dict[str, Any] = {"model": "opt0", "data": key, "metric": metric, **want}
        rows |= {"encoding": "bits", "view": "raw", "padding": tuple(range(1, 99))}
        shown = [
            Line(f"ε = {eps:g}", {**rows, "eps": eps}, COLOURS[j], MARKS[j])
            for j, eps in enumerate(setup.padding_epsilons)
        ]
        label = METRICS[metric].format(k=top)
        panels.append(Panel(data[key].title, "padding", label, shown, best=True))
    return panels


def sizes(name: str, keys: Sequence[str], data: Data) -> PaperTable:
    """How many items people have."""
    rows: Rows = []
    for key in keys:
        if key in data:
            size = data[key].sizes
            row = {"data": key, "title": data[key].title, "mean": float(size.mean())}
            row |= {"median": float(np.median(size))}
            row |= {"90th percentile": float(np.quantile(size, 0.9)), "largest": int(size.max())}
            rows.append(row)
    return PaperTable(f"{name}_sizes", "Items per person", "What the padding has to hold.", rows)


# ---- what is asked of the curves -----------------------------------------------------------------


def curves(numbers: Numbers, data: str, metric: str) -> dict[float, dict[int, float]]:
    """eps -> padding -> IDUE-PS in theory."""
    want: dict[str, Any] = {"data": data, "model": "opt0", "metric": metric, "levels": 3}
    rows = numbers.select(view="raw", encoding="bits", **want)
    rows = [row for row in rows if row.padding and row.theory is not None]
    # the figure's k; others belong to figures of one padding
    shown = Counter(row.k for row in rows).most_common(1)
    lines: dict[float, dict[int, float]] = {}
    for row in rows:
        if row.k == shown[0][0] and row.theory is not None:
            lines.setdefault(row.eps, {})[row.padding] = row.theory
    return {eps: lines[eps] for eps in sorted(lines) if len(lines[eps]) > 2}


def best(numbers: Numbers, data: str, metric: str) -> dict[float, int]:
    """eps -> the padding with the smallest value."""
    lines = curves(numbers, data, metric)
    return {eps: min(line, key=lambda ell: line[ell]) for eps, line in lines.items()}


def listed(paddings: Mapping[float, int]) -> str:
    """The best paddings by eps, as text."""
    return ", ".join(f"{eps:g}: {ell}" for eps, ell in paddings.items())


def find_sizes(evidence: Evidence, data: str) -> Record | None:
    """What the tables say of the sizes of a data set."""
    rows = [row for name in ("fig8", "fig9") for row in evidence.tables.get(f"{name}_sizes", [])]
    return next((row for row in rows if row["data"] == data), None)


def regret(line: Mapping[int, float], ell: int) -> float:
    """The value at a padding (the last tried, if it is beyond) over the best."""
    return line[min(ell, max(line))] / min(line.values())


# ---- claims that both make -----------------------------------------------------------------------


def mean_claim(claims: Claims, data: str, said: int) -> None:
    """How many items a person has."""
    sentence = f"Each user of {data.capitalize()} approximately has {said} items in average."

    @claims.add(f"items per user, {data}", "Sec. VI-B", sentence, (data,))
    def judge(evidence: Evidence) -> Verdict:
        size = find_sizes(evidence, data)
        if not size:
            return NOTHING
        return Verdict(HOLDS if round(size["mean"]) == said else FAILS, f"{size['mean']:.2f}")


def growing_claim(claims: Claims, data: str, sentence: str) -> None:
    """That the best padding grows with eps."""
    name = f"the best padding grows with eps, {data}"

    @claims.add(name, "Sec. VI-B, Fig. 8 and 9", sentence, (data,))
    def judge(evidence: Evidence) -> Verdict:
        picks = {metric: best(evidence.numbers, data, metric) for metric in ("re", "mse")}
        if not all(len(line) > 1 for line in picks.values()):
            return NOTHING
        note = f"Judged by RE, whose k the captions give. {_larger_survey(evidence, data)}"
        holds = _rises(list(picks["re"].values()))
        return Verdict(HOLDS if holds else FAILS, _by_metric(picks), None, note.strip())


def _by_metric(picks: Mapping[str, Mapping[float, int]]) -> str:
    return "; ".join(f"by {name.upper()} at eps {listed(line)}" for name, line in picks.items())


def _rises(values: Sequence[int]) -> bool:
    """Never falls, and ends above where it began."""
    return all(x <= y for x, y in pairwise(values)) and values[-1] > values[0]


def _larger_survey(evidence: Evidence, data: str) -> str:
    """What ten times as many people would change, where that was run."""
    picks = {metric: best(evidence.numbers, f"{data}-x10", metric) for metric in ("re", "mse")}
    if not all(picks.values()):
        return ""
    return (
        "The best padding depends on the number of people too: with everyone ten times, "
        f"{_by_metric(picks)}."
    )
