"""Fig. 6: two budgets, varying the share of the items with the smaller one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from discreet.designs import reductions
from discreet.designs.reductions import Levels
from discreet.paper.datasets import Data
from discreet.paper.drawing import METRICS, Figure, Panel, lines
from discreet.paper.experiments import Experiment, grid
from discreet.paper.settings import OURS, THREE_MODELS, Setup
from discreet.paper.tables import PaperTable, Rows
from discreet.paper.target import Target
from discreet.paper.verdicts import (
    ALMOST,
    FAILS,
    HOLDS,
    NOTHING,
    SOLVED,
    Claims,
    Evidence,
    Verdict,
    against,
    below,
    within,
)

CLAIMS = Claims("fig6", ("retail",))
NEEDS = ("retail",)
TWO = (1.0, 2.0)  # eps_1 and eps_2 = 2 eps_1, the largest that can bind (Lemma 1)
K = 50
CLOSE = 0.10  # "approach"
_PLACE = "Sec. VI-A, Fig. 6"


def _experiments(setup: Setup, data: Data) -> list[Experiment]:
    rest: dict[str, Any] = {"data": "retail", "repeats": setup.repeats, "factors": TWO}
    rest["ks"] = data["retail"].tops((), K)
    tasks = []
    for share in setup.sensitive:
        shares, models = (share, 1 - share), (*THREE_MODELS, "subset")
        tasks += grid(models, setup.some_epsilons, setup.encodings, shares=shares, **rest)
    return tasks


def _figures(setup: Setup, data: Data) -> list[Figure]:
    def panels(models: tuple[str, ...]) -> list[list[Panel]]:
        return [
            [_panel(x, eps, models, data) for eps in setup.some_epsilons] for x in ("mse", "re")
        ]

    title = data["retail"].title
    caption = (
        "Under different privacy budget distributions, the paper's Fig. 6: two budgets, varying "
        f"the share of the items with the smaller one, {title}, first item of each user. The paper "
        "does not name the data and the budgets."
    )
    beyond = f"Beyond the paper: subset beside opt0 under different budget distributions, {title}."
    name = f"Varying the share of sensitive items, {title}"
    return [
        Figure("fig6", name, caption, panels(THREE_MODELS)),
        Figure("fig6_beyond", f"Beyond the paper: subset, {title}", beyond, panels(OURS)),
    ]


def _panel(metric: str, eps: float, models: tuple[str, ...], data: Data) -> Panel:
    k = data["retail"].top(K)
    want: dict[str, Any] = {"data": "retail", "levels": 2, "metric": metric, "eps": eps}
    if metric == "re":
        want["k"] = k
    title = f"ε₁ = {eps:g}, ε₂ = {2 * eps:g}"
    return Panel(title, "share", METRICS[metric].format(k=k), lines(models, **want))


def limit(setup: Setup) -> PaperTable:
    """Fewer and fewer sensitive items: what opt0 approaches, by its worst-case objective."""
    rows: Rows = []
    for eps in setup.some_epsilons:
        m, u = 1e6, 2 * eps
        rappor, oue = m / (4 * np.sinh(u / 4) ** 2), m / np.sinh(u / 2) ** 2 + 1
        for share in (0.05, 0.01, 0.001, 0.0001, 0.00001):
            levels = Levels(np.array([eps, u]), m * np.array([share, 1 - share]), "min")
            mine = reductions.opt0(levels)[2]
            row = {"eps": eps, "sensitive share": share, "opt0, MSE / n": mine}
            row |= {"/ rappor at 2 eps": float(mine / rappor), "/ oue at 2 eps": float(mine / oue)}
            rows.append(row)
    caption = (
        "A million items, a share of them at eps and the others at 2 eps, beside plain LDP at 2 "
        "eps for all (worst case / n)."
    )
    return PaperTable("fig6_limit", "Hardly any sensitive item", caption, rows)


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [limit(setup)]


# ---- claims --------------------------------------------------------------------------------------


def _shares(evidence: Evidence, metric: str) -> dict[float, dict[float, float]]:
    """eps -> share of sensitive items -> IDUE / OUE in theory."""
    chosen = evidence.numbers.select(metric=metric, levels=2, view="raw", encoding="bits")
    rows = {(row.model, row.eps, row.share): row for row in chosen}
    table: dict[float, dict[float, float]] = {}
    for (model, eps, share), row in rows.items():
        other = rows.get(("oue", eps, share))
        if model == "opt0" and other and row.theory is not None and other.theory:
            table.setdefault(eps, {})[share] = row.theory / other.theory
    return table


@CLAIMS.add(
    "more benefit with fewer sensitive items",
    _PLACE,
    "Under a smaller percentage, i.e., only a few of items are more sensitive than others, IDUE "
    "can get more benefits.",
)
def _skewed(evidence: Evidence) -> Verdict:
    table = _shares(evidence, "mse").values()
    curves = [[ratios[share] for share in sorted(ratios)] for ratios in table]
    if not curves:
        return NOTHING
    rising = all(x <= y + SOLVED for curve in curves for x, y in pairwise(curve))
    first, last = max(curve[0] for curve in curves), min(curve[-1] for curve in curves)
    number = (
        f"MSE of IDUE / OUE goes from {first:.3f} to {last:.3f} with the share of sensitive items "
        "(theory)"
    )
    return Verdict(HOLDS if rising and first < last else FAILS, number, last - first)


def _almost_claim(metric: str, words: str) -> None:
    name = metric.upper()
    sentence = (
        "When the percentage of the more sensitive items is more than 40%, IDUE has almost the "
        "same "
        f'{words} as OUE ("almost": within {ALMOST:.0%}).'
    )

    @CLAIMS.add(f"IDUE is OUE above 40 %, {name}", _PLACE, sentence)
    def judge(evidence: Evidence) -> Verdict:
        table = _shares(evidence, metric).items()
        cells = [(eps, share, x) for eps, line in table for share, x in line.items()]
        ratios = {f"eps {eps:g}, {share:.0%}": x for eps, share, x in cells if share >= 0.4}
        return within(ratios, ALMOST, f"{name} of IDUE / OUE from 40 % on (theory)")


_almost_claim("mse", "total MSE")
_almost_claim("re", "average RE")


@CLAIMS.add("OUE outperforms RAPPOR", _PLACE, "OUE (which outperforms RAPPOR).")
def _oue(evidence: Evidence) -> Verdict:
    cells = against(evidence.numbers, "oue", ("rappor",), levels=2, metric=("mse", "re"))
    return below(cells, "MSE and RE of OUE / RAPPOR's")


@CLAIMS.add(
    "the limit of few sensitive items",
    "Sec. VII",
    "If items with the smaller budget only have little influence on the utility, the utility of "
    "IDUE will approach the LDP mechanism with the larger budget "
    f"(here: the better one, OUE at 2 eps, within {CLOSE:.0%}).",
    (),
)
def _limit(evidence: Evidence) -> Verdict:
    rows = evidence.tables["fig6_limit"]
    least = min(row["sensitive share"] for row in rows)
    last = [row for row in rows if row["sensitive share"] == least]
    oue, rappor = (max(row[f"/ {x} at 2 eps"] for row in last) for x in ("oue", "rappor"))
    number = (
        f"with {least:.3%} sensitive items: up to {oue:.3g} x the MSE of OUE at 2 eps, "
        f"{rappor:.3g} x "
        "that of RAPPOR at 2 eps"
    )
    room = 1 + CLOSE - oue
    if room >= 0:
        return Verdict(HOLDS, number, room)
    note = (
        "It approaches RAPPOR at 2 eps, slowly: ln(a/b) and ln((1-b)/(1-a)) are each held to eps, "
        "which OUE's are not."
    )
    return Verdict(FAILS, number, room, note)


TARGET = Target(CLAIMS, NEEDS, tables=_tables, experiments=_experiments, figures=_figures)
