"""Sentences of the paper that can be true or false, item sets: figures 7 to 9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.paper.experiments import Numbers, Row
from discreet.paper.settings import THREE_MODELS
from discreet.paper.verdicts import (
    FAILS,
    HOLDS,
    NOTHING,
    UNKNOWN,
    Cell,
    Findings,
    Verdict,
    against,
    below,
    claim,
    pair,
)

SETS = ("clothing", "kosarak", "retail")


# ---- figure 7 -----------------------------------------------------------------------------------------------


@claim(
    "IDUE-PS keeps the budgets of sets",
    "fig7",
    "Sec. VI, Theorem 4",
    "The perturbation probabilities of IDUE-PS that satisfies MinID-LDP can be determined by IDUE.",
)
def _sets(found: Findings) -> Verdict:
    rows = found.tables["fig7_budgets"]
    excess, apart = (
        max(row["largest bound - budget"] for row in rows),
        max(row["a, b differ by"] for row in rows),
    )
    pairs = sum(row["pairs of sets"] for row in rows)
    number = f"{pairs} pairs of sets: log-ratio less budget at most {excess:.2g}; a and b differ by {apart:.0g}"
    return Verdict(HOLDS if excess <= 1e-9 and apart == 0 else FAILS, number, -excess)


@claim(
    "RE, clothing",
    "fig7",
    "Sec. VI-B, Fig. 7",
    "The proposed mechanism IDUE-PS has the smallest RE (similar to the previous results) among three mechanisms.",
    ("clothing",),
)
def _clothing(found: Findings) -> Verdict:
    cells = against(
        found.numbers, "opt0", ("rappor", "oue"), data="clothing", padding=2, metric="re"
    )
    return below(cells, "RE of IDUE-PS / the other's")


def _precision(found: Findings, **want: Any) -> list[Row]:
    rows = found.numbers.select(
        data="clothing", padding=2, metric="precision", view="raw", encoding="bits", **want
    )
    return [row for row in rows if row.values]


@claim(
    "raw precision may be worse, clothing",
    "fig7",
    "Sec. VI-B, Fig. 7",
    "For a smaller eps or k (such as eps = 1 in the left plot and k = 10 or 20 in the right plot), the precision of top frequent "
    "items identification may be worse than the precision of OUE-PS.",
    ("clothing",),
)
def _worse(found: Findings) -> Verdict:
    small = [row for row in _precision(found, model="opt0") if row.eps <= 1 or row.k <= 20]
    other = {(row.eps, row.k): row for row in _precision(found, model="oue")}
    cells: list[tuple[Cell, float]] = []
    for row in small:
        if (row.eps, row.k) in other:
            cells.append((pair(row, other[row.eps, row.k]), row.mean - other[row.eps, row.k].mean))
    if not cells:
        return NOTHING
    lowest, gap = min(cells, key=lambda x: x[1])
    lower = sum(x < 0 for _, x in cells)
    number = f"lower in {lower} of {len(cells)} cells; lowest at {lowest.place}: {gap:+.3f}"
    if any(cell.contrary(-1, len(cells)) for cell, _ in cells):
        return Verdict(HOLDS, number, -gap)
    note = "None is lower beyond sampling error."
    return Verdict(UNKNOWN if lower else FAILS, number, -gap, note)


@claim(
    "raw precision highest for larger eps and k, clothing",
    "fig7",
    "Sec. VI-B, Fig. 7",
    'For larger eps and k, IDUE-PS has the highest precision ("larger": eps >= 3 and k >= 50).',
    ("clothing",),
)
def _higher(found: Findings) -> Verdict:
    rows = [row for row in _precision(found) if row.eps >= 3 and row.k >= 50]
    return below(
        against(Numbers(rows), "opt0", ("rappor", "oue")),
        "precision of IDUE-PS / the other's",
        sign=-1,
    )


@claim(
    "larger k, lower precision, clothing",
    "fig7",
    "Sec. VI-B, Fig. 7",
    "A larger k generally leads to a lower precision on top frequent items identification.",
    ("clothing",),
)
def _falling(found: Findings) -> Verdict:
    lines: dict[tuple[str, float], list[Row]] = {}
    for row in _precision(found, model=THREE_MODELS):
        lines.setdefault((row.model, row.eps), []).append(row)
    change: dict[tuple[str, float], float] = {}
    for key, rows in lines.items():
        rows.sort(key=lambda row: row.k)
        if len(rows) > 1:
            change[key] = rows[-1].mean - rows[0].mean
    if not change:
        return NOTHING
    falls = sum(x < 0 for x in change.values())
    by_eps = {
        eps: np.mean([x for (_, e), x in change.items() if e == eps])
        for eps in sorted({eps for _, eps in change})
    }
    where = ", ".join(f"{eps:g}: {x:+.2f}" for eps, x in by_eps.items())
    number = f"precision is lower at the largest k than at the smallest on {falls} of {len(change)} lines"
    note = f"Change, mean over the three mechanisms, by eps: {where}."
    return Verdict(
        HOLDS if falls > len(change) / 2 else FAILS, number, falls / len(change) - 0.5, note
    )


# ---- figures 8 and 9: what is asked of the curves --------------------------------------------------------------


def curves(numbers: Numbers, data: str, metric: str) -> dict[float, dict[int, float]]:
    """eps -> padding -> IDUE-PS in theory."""
    rows = numbers.select(
        data=data, model="opt0", metric=metric, view="raw", encoding="bits", levels=3
    )
    rows = [row for row in rows if row.padding and row.theory is not None]
    shown = Counter(row.k for row in rows).most_common(
        1
    )  # the figure's k; others belong to figures of one padding
    found: dict[float, dict[int, float]] = {}
    for row in rows:
        if row.k == shown[0][0] and row.theory is not None:
            found.setdefault(row.eps, {})[row.padding] = row.theory
    return {eps: found[eps] for eps in sorted(found) if len(found[eps]) > 2}


def best(numbers: Numbers, data: str, metric: str) -> dict[float, int]:
    """eps -> the padding with the smallest value."""
    return {
        eps: min(line, key=lambda ell: line[ell])
        for eps, line in curves(numbers, data, metric).items()
    }


def _listed(found: Mapping[float, int]) -> str:
    return ", ".join(f"{eps:g}: {ell}" for eps, ell in found.items())


def _size(found: Findings, data: str) -> dict[str, Any] | None:
    """What the tables say of the sizes of a data set."""
    rows = [row for name in ("fig8_sizes", "fig9_sizes") for row in found.tables.get(name, [])]
    return next((row for row in rows if row["data"] == data), None)


def _regret(line: Mapping[int, float], ell: int) -> float:
    """The value at a padding (the last tried, if it is beyond) over the best."""
    return line[min(ell, max(line))] / min(line.values())


# ---- figures 8 and 9: the claims ------------------------------------------------------------------------------


def _mean_claim(data: str, needs: str, said: int) -> None:
    sentence = f"Each user of {data.capitalize()} approximately has {said} items in average."

    @claim(f"items per user, {data}", needs, "Sec. VI-B", sentence, (data,))
    def judge(found: Findings) -> Verdict:
        size = _size(found, data)
        return (
            Verdict(HOLDS if round(size["mean"]) == said else FAILS, f"{size['mean']:.2f}")
            if size
            else NOTHING
        )


_mean_claim("clothing", "fig8", 2)
_mean_claim("kosarak", "fig9", 8)


def _growing_claim(data: str, needs: str, sentence: str) -> None:
    @claim(
        f"the best padding grows with eps, {data}",
        needs,
        "Sec. VI-B, Fig. 8 and 9",
        sentence,
        (data,),
    )
    def judge(found: Findings) -> Verdict:
        picks = {metric: best(found.numbers, data, metric) for metric in ("re", "mse")}
        if not all(len(line) > 1 for line in picks.values()):
            return NOTHING
        number = "; ".join(
            f"by {metric.upper()} at eps {_listed(line)}" for metric, line in picks.items()
        )
        note = f"Judged by RE, whose k the captions give. {_larger_survey(found, data)}"
        return Verdict(
            HOLDS if _rises(list(picks["re"].values())) else FAILS, number, None, note.strip()
        )


def _rises(values: Sequence[int]) -> bool:
    """Never falls, and ends above where it began."""
    return all(x <= y for x, y in pairwise(values)) and values[-1] > values[0]


def _larger_survey(found: Findings, data: str) -> str:
    """What ten times as many people would change, where that was run."""
    larger = {metric: best(found.numbers, f"{data}-x10", metric) for metric in ("re", "mse")}
    if not all(larger.values()):
        return ""
    listed = "; ".join(
        f"by {metric.upper()} at eps {_listed(line)}" for metric, line in larger.items()
    )
    return (
        f"The best padding depends on the number of people too: with everyone ten times, {listed}."
    )


_growing_claim("clothing", "fig8", "The optimal l is larger under a larger eps (Clothing).")
_growing_claim("kosarak", "fig9", "The optimal l is larger under a larger eps (Kosarak).")
_growing_claim(
    "retail",
    "fig9",
    "Results in Retail data have similar trends as in Kosarak data (the optimal l grows with eps).",
)


@claim(
    "the best padding differs between data sets",
    "fig9",
    "Sec. VI-B, Fig. 8 and 9",
    "The optimal or near-optimal l differs in data distribution (users in Kosarak dataset have more items than in Clothing "
    "dataset).",
    ("kosarak", "clothing"),
)
def _differs(found: Findings) -> Verdict:
    first, second = best(found.numbers, "clothing", "re"), best(found.numbers, "kosarak", "re")
    both = sorted(set(first) & set(second))
    if not both:
        return Verdict(UNKNOWN, "needs the numbers of fig8 too")
    number = f"best l by RE at eps {_listed(first)} on Clothing, {_listed(second)} on Kosarak"
    return Verdict(
        HOLDS if second[both[-1]] > first[both[-1]] else FAILS,
        number,
        None,
        "Judged at the largest eps.",
    )


@claim(
    "variance grows and bias falls with the padding",
    "fig9",
    "Sec. VI-B",
    "A larger l leads to a larger variance while a smaller l leads to a larger bias.",
    ("kosarak",),
)
def _trade(found: Findings) -> Verdict:
    rising = [
        [line[ell] for ell in sorted(line)]
        for line in curves(found.numbers, "kosarak", "variance").values()
    ]
    falling = [
        [-line[ell] for ell in sorted(line)]
        for line in curves(found.numbers, "kosarak", "bias").values()
    ]
    steps = [y - x for line in rising + falling for x, y in pairwise(line)]
    if not steps:
        return NOTHING
    good = sum(step > 0 for step in steps)
    return Verdict(
        HOLDS if good == len(steps) else FAILS,
        f"{good} of {len(steps)} steps of l go the right way (theory)",
    )


@claim(
    "variance dominates at small eps",
    "fig9",
    "Sec. VI-B",
    "Under a smaller eps (i.e., stronger privacy), the error from variance dominates the error from bias, thus a smaller l should "
    "be selected to reduce the variance.",
    ("kosarak",),
)
def _dominates(found: Findings) -> Verdict:
    variance, bias = (curves(found.numbers, "kosarak", metric) for metric in ("variance", "bias"))
    size = _size(found, "kosarak")
    if not variance or size is None:
        return NOTHING
    ell = min(max(1, round(size["mean"])), max(next(iter(variance.values()))))
    share = {eps: line[ell] / (line[ell] + bias[eps][ell]) for eps, line in variance.items()}
    number = f"variance's share of the MSE at l = {ell}: " + ", ".join(
        f"{x:.1%} at eps {eps:g}" for eps, x in share.items()
    )
    low, high = share[min(share)], share[max(share)]
    return Verdict(HOLDS if low > 0.5 and low > high else FAILS, number, low - 0.5)


@claim(
    "padding 5 gains little from eps",
    "fig9",
    "Sec. VI-B, Fig. 9",
    "When fixing a relatively small l (such as l = 5 in Kosarak), RE does not reduce much with increasing eps because eps has "
    'little influence on the bias ("not much": by less than a third from eps = 2 to 4).',
    ("kosarak",),
)
def _little(found: Findings) -> Verdict:
    def fall(data: str, ell: int) -> float | None:
        lines = curves(found.numbers, data, "re")
        return (
            1 - lines[4.0][ell] / lines[2.0][ell]
            if all(ell in lines.get(eps, {}) for eps in (2.0, 4.0))
            else None
        )

    mine, larger = fall("kosarak", 5), fall("kosarak-x10", 5)
    if mine is None:
        return NOTHING
    wide = max(curves(found.numbers, "kosarak", "re")[4.0])
    number = f"RE falls by {mine:.0%} from eps 2 to 4 at l = 5, by {fall('kosarak', wide):.0%} at l = {wide} (theory)"
    note = (
        ""
        if larger is None
        else f"With everyone ten times (about as many people as the paper has) it falls by {larger:.0%}."
    )
    return Verdict(HOLDS if mine < 1 / 3 else FAILS, number, 1 / 3 - mine, note)


@claim(
    "the 90th percentile is not enough",
    "fig9",
    "Sec. VI-B",
    "In [wang2018locally], l is selected as the 90th percentile of numbers of items of all users. However, a good l should also "
    'depend on eps (the 90th percentile is "not good" if more than 10% above the best RE at some eps).',
    ("kosarak",),
)
def _percentile(found: Findings) -> Verdict:
    regrets: dict[str, float] = {}
    for data in SETS:
        size = _size(found, data)
        if size:
            lines = curves(found.numbers, data, "re")
            regrets |= {
                f"{data}, eps {eps:g}": _regret(line, round(size["90th percentile"]))
                for eps, line in lines.items()
            }
    if not regrets:
        return NOTHING
    worst = max(regrets, key=lambda key: regrets[key])
    number = f"RE at the 90th percentile / the best: {min(regrets.values()):.2f} to {regrets[worst]:.2f} ({worst})"
    return Verdict(HOLDS if regrets[worst] > 1.1 else FAILS, number, regrets[worst] - 1.1)


@claim(
    "a simple strategy for the padding",
    "fig9",
    "Sec. VI-B",
    "A simple empirical strategy is to select l as the average number of items in each user under a larger eps (such as 4), while "
    'select l less than the average one under a smaller eps (such as 2) ("works": at eps = 4 the rounded mean is within 10% of the '
    "best RE, at eps = 2 the best is below the mean).",
    ("kosarak",),
)
def _strategy(found: Findings) -> Verdict:
    tried: dict[str, tuple[str, bool]] = {}
    for data in (*SETS, "kosarak-x10"):
        size, lines = _size(found, data.removesuffix("-x10")), curves(found.numbers, data, "re")
        if size and 2.0 in lines and 4.0 in lines:
            regret = _regret(lines[4.0], max(1, round(size["mean"])))
            pick = best(found.numbers, data, "re")[2.0]
            said = f"{data.removesuffix('-x10')} (mean {size['mean']:.1f}): {regret:.2f} x the best at eps 4, best {pick} at eps 2"
            tried[data] = said, regret <= 1.1 and pick < size["mean"]
    larger = tried.pop("kosarak-x10", None)
    if not tried:
        return NOTHING
    note = (
        f"With everyone ten times it {'works' if larger[1] else 'does not work'}: {larger[0]}."
        if larger
        else ""
    )
    verdict = HOLDS if all(works for _, works in tried.values()) else FAILS
    return Verdict(verdict, "; ".join(said for said, _ in tried.values()), None, note)
