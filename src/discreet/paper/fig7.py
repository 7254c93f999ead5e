"""Fig. 7: precision and RE of item sets."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from discreet.designs import design
from discreet.paper.datasets import Data
from discreet.paper.drawing import METRICS, Figure, Line, Panel, lines
from discreet.paper.experiments import Experiment, Numbers, Row, grid, make_policy
from discreet.paper.settings import FACTORS, OURS, THREE_MODELS, Setup
from discreet.paper.tables import PaperTable, Rows
from discreet.paper.target import Target
from discreet.paper.verdicts import (
    FAILS,
    HOLDS,
    NOTHING,
    UNKNOWN,
    Cell,
    Claims,
    Evidence,
    Verdict,
    against,
    below,
    pair,
)

CLAIMS = Claims("fig7", ("clothing",))
K, EPS, PADDING = 50, 2.0, 2
_ROWS: dict[str, Any] = {"data": "clothing", "padding": PADDING}
_PLACE = "Sec. VI-B, Fig. 7"


def _experiments(setup: Setup, data: Data) -> list[Experiment]:
    ks = data["clothing"].tops(setup.tops, K)
    rest: dict[str, Any] = {**_ROWS, "repeats": setup.repeats, "ks": ks}
    plain = grid(("rappor",), setup.epsilons, setup.encodings, **rest)
    return plain + grid(OURS, setup.epsilons, setup.encodings, shrunk=True, **rest)


# ---- figures -------------------------------------------------------------------------------------


def _figures(setup: Setup, data: Data) -> list[Figure]:
    title = data["clothing"].title
    own = [_panels(metric, data, beyond=False) for metric in ("precision", "re")]
    caption = (
        f"Precision and RE of Clothing item-set data (ℓ = {PADDING}), the paper's Fig. 7; left "
        f"with k = {K}, right with ε = {EPS:g}, which the paper does not state."
    )
    beyond = (
        "Beyond the paper: the same reports ranked by posterior mean, which does not let a noisy "
        "sensitive item jump to the top (for OUE-PS the two rankings are the same: its noise is "
        "the same for every item), and subset."
    )
    name = f"Precision and RE of item sets, {title} (ℓ = {PADDING})"
    more = [_panels("precision", data, beyond=True)]
    return [
        Figure("fig7", name, caption, own),
        Figure("fig7_beyond", "Beyond the paper: ranking by posterior mean", beyond, more),
    ]


def _panels(metric: str, data: Data, beyond: bool) -> list[Panel]:
    """Against eps and against k."""
    title, k = data["clothing"].title, data["clothing"].top(K)
    panels = []
    for x, fixed, title_end in (("eps", {"k": k}, f"k = {k}"), ("k", {"eps": EPS}, f"ε = {EPS:g}")):
        want = {"metric": metric, **fixed, **_ROWS}
        shown = _rankings(want) if beyond else lines(THREE_MODELS, "-PS", **want)
        label = METRICS[metric].format(k=k if x == "eps" else "k")
        panels.append(Panel(f"{title}, {title_end}", x, label, shown, log=metric == "re"))
    return panels


def _rankings(want: Mapping[str, object]) -> list[Line]:
    return [
        *lines(("oue", "opt0"), "-PS, raw ranking", **want),
        *lines(("opt0",), "-PS, posterior ranking", view="shrunk", **want),
        *lines(("subset",), ", posterior ranking", view="shrunk", **want),
    ]


# ---- the table behind it -------------------------------------------------------------------------


def set_budgets() -> PaperTable:
    """Theorem 4: IDUE-PS with the probabilities of IDUE keeps the budgets of sets (all kinds of up
    to three items).
    """
    thirds = (1 / 3, 1 / 3, 1 / 3)
    policy, one = (make_policy(12, 1.0, FACTORS, thirds, kind) for kind in ("set", "single"))
    single = design(one, "opt0")
    kinds = [x for size in range(4) for x in combinations_with_replacement(range(3), size)]
    sets = [
        {policy.items[4 * level + x[:k].count(level)] for k, level in enumerate(x)} for x in kinds
    ]
    rows: Rows = []
    for padding in (1, 2, 5):
        mechanism = design(policy, "opt0", padding=padding)
        guarantee = mechanism.guarantee()
        budget = [guarantee.set_budget(x) for x in sets]
        excess = [
            guarantee.set_bound(x, y) - min(budget[i], budget[j])
            for i, x in enumerate(sets)
            for j, y in enumerate(sets)
            if i != j
        ]
        gap = (np.abs(mechanism.a - single.a).max(), np.abs(mechanism.b - single.b).max())
        worst = {"largest bound - budget": max(excess), "a, b differ by": float(max(gap))}
        rows.append({"padding": padding, "pairs of sets": len(excess), **worst})
    caption = (
        "eps = 1, x {1, 1.2, 2}. Bound: Lemma 2's of ln Pr(y | x) / Pr(y | x'); budget: the "
        "smaller eps_x of the two sets."
    )
    return PaperTable("fig7_budgets", "IDUE-PS keeps the budgets of sets", caption, rows)


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [set_budgets()]


# ---- claims --------------------------------------------------------------------------------------


@CLAIMS.add(
    "IDUE-PS keeps the budgets of sets",
    "Sec. VI, Theorem 4",
    "The perturbation probabilities of IDUE-PS that satisfies MinID-LDP can be determined by IDUE.",
    (),
)
def _sets(evidence: Evidence) -> Verdict:
    rows = evidence.tables["fig7_budgets"]
    excess = max(row["largest bound - budget"] for row in rows)
    gap = max(row["a, b differ by"] for row in rows)
    pairs = sum(row["pairs of sets"] for row in rows)
    number = (
        f"{pairs} pairs of sets: log-ratio less budget at most {excess:.2g}; a and b differ by "
        f"{gap:.0g}"
    )
    return Verdict(HOLDS if excess <= 1e-9 and gap == 0 else FAILS, number, -excess)


@CLAIMS.add(
    "RE, clothing",
    _PLACE,
    "The proposed mechanism IDUE-PS has the smallest RE (similar to the previous results) among "
    "three mechanisms.",
)
def _smallest(evidence: Evidence) -> Verdict:
    cells = against(evidence.numbers, "opt0", ("rappor", "oue"), metric="re", **_ROWS)
    return below(cells, "RE of IDUE-PS / the other's")


def _precision(evidence: Evidence, **want: object) -> list[Row]:
    want = {"metric": "precision", "view": "raw", "encoding": "bits", **_ROWS, **want}
    return [row for row in evidence.numbers.select(**want) if row.values]


@CLAIMS.add(
    "raw precision may be worse, clothing",
    _PLACE,
    "For a smaller eps or k (such as eps = 1 in the left plot and k = 10 or 20 in the right plot), "
    "the precision of top frequent items identification may be worse than the precision of OUE-PS.",
)
def _worse(evidence: Evidence) -> Verdict:
    small = [row for row in _precision(evidence, model="opt0") if row.eps <= 1 or row.k <= 20]
    other = {(row.eps, row.k): row for row in _precision(evidence, model="oue")}
    pairs = [(x, other[x.eps, x.k]) for x in small if (x.eps, x.k) in other]
    if not pairs:
        return NOTHING
    cells: list[tuple[Cell, float]] = [(pair(x, y), x.mean - y.mean) for x, y in pairs]
    lowest, gap = min(cells, key=lambda x: x[1])
    lower = sum(x < 0 for _, x in cells)
    number = f"lower in {lower} of {len(cells)} cells; lowest at {lowest.place}: {gap:+.3f}"
    if any(cell.contrary(-1, len(cells)) for cell, _ in cells):
        return Verdict(HOLDS, number, -gap)
    note = "None is lower beyond sampling error."
    return Verdict(UNKNOWN if lower else FAILS, number, -gap, note)


@CLAIMS.add(
    "raw precision highest for larger eps and k, clothing",
    _PLACE,
    'For larger eps and k, IDUE-PS has the highest precision ("larger": eps >= 3 and k >= 50).',
)
def _higher(evidence: Evidence) -> Verdict:
    rows = [row for row in _precision(evidence) if row.eps >= 3 and row.k >= 50]
    cells = against(Numbers(rows), "opt0", ("rappor", "oue"))
    return below(cells, "precision of IDUE-PS / the other's", sign=-1)


@CLAIMS.add(
    "larger k, lower precision, clothing",
    _PLACE,
    "A larger k generally leads to a lower precision on top frequent items identification.",
)
def _falling(evidence: Evidence) -> Verdict:
    curves: dict[tuple[str, float], list[Row]] = {}
    for row in _precision(evidence, model=THREE_MODELS):
        curves.setdefault((row.model, row.eps), []).append(row)
    change: dict[tuple[str, float], float] = {}
    for key, rows in curves.items():
        rows.sort(key=lambda row: row.k)
        if len(rows) > 1:
            change[key] = rows[-1].mean - rows[0].mean
    if not change:
        return NOTHING
    falls = sum(x < 0 for x in change.values())
    by_eps: dict[float, list[float]] = {}
    for (_, eps), x in sorted(change.items(), key=lambda one: one[0][1]):
        by_eps.setdefault(eps, []).append(x)
    where = ", ".join(f"{eps:g}: {np.mean(x):+.2f}" for eps, x in by_eps.items())
    count = f"on {falls} of {len(change)} lines"
    number = f"precision is lower at the largest k than at the smallest {count}"
    note = f"Change, mean over the three mechanisms, by eps: {where}."
    share = falls / len(change)
    return Verdict(HOLDS if share > 0.5 else FAILS, number, share - 0.5, note)


TARGET = Target(CLAIMS, ("clothing",), tables=_tables, experiments=_experiments, figures=_figures)
