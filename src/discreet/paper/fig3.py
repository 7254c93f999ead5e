"""Fig. 3: theory and experiment on synthetic data; and the designs behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.arrays import theory
from discreet.designs import design, reductions
from discreet.designs.reductions import Levels
from discreet.paper.boxed import boxed, optimum
from discreet.paper.datasets import SYNTHETIC, Data
from discreet.paper.drawing import METRICS, STYLES, Figure, Line, Panel, lines
from discreet.paper.experiments import Experiment, Row, grid, make_policy
from discreet.paper.settings import FACTORS, PAPER_MODELS, SHARES, Setup
from discreet.paper.tables import PaperTable, Rows
from discreet.paper.target import Target
from discreet.paper.verdicts import (
    ALMOST,
    FAILS,
    HOLDS,
    LEVEL,
    NOTHING,
    Cell,
    Claims,
    Evidence,
    Verdict,
    against,
    below,
)

CLAIMS = Claims("fig3")
NEAR = 0.10  # "near-optimal"
_DOMAINS = (100, 1_000, 16_470, 41_270)  # of the tables that compare sizes
_PLACE = "Sec. VI-A, Fig. 3"


def _experiments(setup: Setup, data: Data) -> list[Experiment]:
    tasks = []
    for key in SYNTHETIC:
        rest: dict[str, Any] = {"data": key, "repeats": setup.repeats}
        models = (*PAPER_MODELS, "subset", "boxed")
        tasks += grid(models, setup.epsilons, setup.encodings, **rest)
        tasks += grid(("opt0", "subset"), setup.epsilons, ("ticket",), **rest)
    return tasks


# ---- figures -------------------------------------------------------------------------------------


def _figures(setup: Setup, data: Data) -> list[Figure]:
    titles = {key: f"{data[key].title} (m = {data[key].m:,})" for key in SYNTHETIC}
    caption = (
        "Comparison of empirical and theoretical results of synthetic data (single-item input), "
        "the paper's Fig. 3."
    )
    beyond = (
        "Beyond the paper, relative to opt0's exact theory: subset, our best at uniform "
        "answers, opt0 within the authors' box a >= 1/2 >= b, and tickets, reports of 4 bytes, "
        "instead of m bits."
    )
    if not setup.through_reports:
        beyond += (
            " Counts of tickets are drawn item by item, which is exact for every two items (their "
            "marks are independent)."
        )
    own = [_panel(key, title) for key, title in titles.items()]
    more = [_relative(key, title) for key, title in titles.items()]
    title = "Beyond the paper: subset, the authors' box, tickets"
    return [
        Figure("fig3", "Theory and experiment on synthetic data", caption, [own]),
        Figure("fig3_beyond", title, beyond, [more]),
    ]


def _panel(key: str, title: str) -> Panel:
    shown = lines(PAPER_MODELS, data=key, metric="mse")
    shown[2] = Line("IDUE-opt0", shown[2].want, *STYLES["opt0"])
    return Panel(title, "eps", METRICS["mse"], shown)


def _relative(key: str, title: str) -> Panel:
    shown = lines(("opt0", "subset", "boxed"), data=key, metric="mse")
    over = shown[0].want
    for line, colour in ((shown[0], STYLES["opt2"][0]), (shown[1], STYLES["rappor"][0])):
        want = {**line.want, "encoding": "ticket"}
        shown.append(Line(f"{line.label}, tickets", want, colour, line.marker, hollow=True))
    label = "MSE, relative to opt0's in theory"
    return Panel(title, "eps", label, shown, log=False, over=over)


# ---- tables behind it ----------------------------------------------------------------------------


def designs(setup: Setup) -> PaperTable:
    """Every model at the default budgets, m = 100: probabilities, objective and the guarantee that
    is realised.
    """
    rows: Rows = []
    for eps in setup.epsilons:
        policy = make_policy(100, eps, FACTORS, SHARES, "single")
        for model in (*PAPER_MODELS, "boxed"):
            mechanism = boxed(policy) if model == "boxed" else design(policy, model, goal="total")
            guarantee, absent = mechanism.guarantee(), theory.absent_variance(mechanism)
            row: dict[str, Any] = {"eps": eps, "model": model}
            row |= {"worst case / n": mechanism.worst_case_mse}
            row |= {"uniform / n": mechanism.expected_mse()}
            row |= {"LDP epsilon": float(guarantee.ldp_epsilon), "holds": guarantee.holds}
            for k, factor in enumerate(FACTORS):
                row |= {f"a {factor:g}": float(mechanism.a[k])}
                row |= {f"b {factor:g}": float(mechanism.b[k])}
                row |= {f"V {factor:g}": float(absent[k])}
            rows.append(row)
    caption = (
        "m = 100, budgets eps x {1, 1.2, 2} for 5/5/90 % of the items. Worst case: the objective "
        "of opt0, the largest total MSE / n over all data sets. V: variance per participant of an "
        "item of the level. boxed: opt0 with a >= 1/2 >= b, as the authors solved it."
    )
    return PaperTable("fig3_designs", "The designs", caption, rows)


def box(setup: Setup) -> PaperTable:
    """What the authors' box costs in opt0's objective, by the size of the domain."""
    rows: Rows = []
    for m in _DOMAINS:
        row: dict[str, Any] = {"items": m}
        for eps in setup.epsilons:
            levels = Levels(eps * np.array(FACTORS), m * np.array(SHARES), "min")
            row[f"eps {eps:g}"] = optimum(levels)[2] / reductions.opt0(levels)[2] - 1
        rows.append(row)
    caption = (
        "The excess of opt0's worst-case objective within a >= 1/2 >= b over the global optimum, "
        "default budgets."
    )
    title = "Beyond the paper: the price of the authors' box"
    return PaperTable("fig3_box", title, caption, rows)


def cost() -> PaperTable:
    """What is solved for, at small and large domains."""
    rows: Rows = []
    for m in _DOMAINS:
        t = len(design(make_policy(m, 1.0, FACTORS, SHARES, "single"), "opt0").a)
        rows.append({"items": m, "levels": t, "variables": 2 * t, "constraints": t**2})
    return PaperTable("fig3_cost", "The size of the problem", "opt0 at the default budgets.", rows)


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [designs(setup), box(setup), cost()]


# ---- claims about the designs --------------------------------------------------------------------


def _column(evidence: Evidence, column: str = "worst case / n") -> dict[float, dict[str, float]]:
    """eps -> model -> a column of the designs."""
    table: dict[float, dict[str, float]] = {}
    for row in evidence.tables.get("fig3_designs", []):
        table.setdefault(row["eps"], {})[row["model"]] = row[column]
    return table


@CLAIMS.add(
    "guarantees",
    "Sec. VI",
    "RAPPOR and OUE satisfy eps-LDP with eps = min{E}, while IDUE and IDUE-PS satisfy E-MinID-LDP.",
)
def _guarantees(evidence: Evidence) -> Verdict:
    rows = evidence.tables["fig3_designs"]
    plain = [row for row in rows if row["model"] in ("rappor", "oue")]
    most = max(row["LDP epsilon"] / row["eps"] for row in plain)
    holds = all(row["holds"] for row in rows)
    number = (
        f"{len(rows)} designs checked exactly; LDP epsilon of RAPPOR and OUE / min E at most "
        f"{most:.9f}"
    )
    return Verdict(HOLDS if holds and most <= 1 + 1e-12 else FAILS, number)


@CLAIMS.add(
    "opt0 in the worst case",
    "Sec. IV-D",
    "The solution solved by opt0 will have less worst-case MSE than both RAPPOR and OUE.",
)
def _worst(evidence: Evidence) -> Verdict:
    values = _column(evidence).values()
    ratios = [row["opt0"] / row[other] for row in values for other in ("rappor", "oue")]
    number = f"opt0 / the other: {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} cells"
    return Verdict(HOLDS if max(ratios) < 1 else FAILS, number, 1 - max(ratios))


# ---- claims about the experiments ----------------------------------------------------------------


@CLAIMS.add(
    "experiment is theory",
    _PLACE,
    "The empirical results are very close to the theoretical results, which validates the "
    "correctness of our theoretical analysis.",
)
def _theory(evidence: Evidence) -> Verdict:
    rows = evidence.numbers.select(metric="mse", view="raw", data=SYNTHETIC, model=PAPER_MODELS)
    rows = [row for row in rows if row.sd]
    if not rows:
        return NOTHING
    z = np.array([_excess(row) / (row.sd / len(row.values) ** 0.5) for row in rows])
    away = max(abs(row.mean / np.mean(row.expected) - 1) for row in rows)
    largest, limit = float(np.abs(z).max()), _limit(len(rows))
    number = (
        f"{len(rows)} cells: largest |z| {largest:.2f} (allowed {limit:.2f}), root mean square of "
        f"z {np.sqrt((z**2).mean()):.2f}, largest deviation {away:.1%}"
    )
    note = (
        "Theory: the paper's MSE at the true counts. Its caption draws the theory solid, its text "
        "dashed; here it is solid."
    )
    return Verdict(HOLDS if largest <= limit else FAILS, number, 1 - largest / limit, note)


def _excess(row: Row) -> float:
    """The mean of the experiment less its expectation."""
    return float(row.mean - np.mean(row.expected))


def _limit(cells: int) -> float:
    """The largest |z| that this number of cells may have."""
    return float(-ndtri(LEVEL / 2 / cells))


def _beside(evidence: Evidence, model: str, others: Sequence[str]) -> list[Cell]:
    return against(evidence.numbers, model, others, data=SYNTHETIC, metric="mse")


def _outperforms_claim(model: str) -> None:
    sentence = f"IDUE with MinID-LDP outperforms RAPPOR and OUE (solved by {model})."

    @CLAIMS.add(f"IDUE below RAPPOR and OUE, {model}", _PLACE, sentence)
    def judge(evidence: Evidence) -> Verdict:
        cells = _beside(evidence, model, ("rappor", "oue"))
        verdict = below(cells, f"MSE of IDUE-{model} / the other's")
        same = [eps for eps in _column(evidence) if _is_oue(evidence, model, eps)]
        if not same:
            return verdict
        note = (
            f"From eps = {min(same):g} on the optimum of {model} is OUE itself, so nothing is "
            f"gained. {verdict.note}"
        )
        return Verdict(FAILS, verdict.number, verdict.margin, note.strip())


def _is_oue(evidence: Evidence, model: str, eps: float) -> bool:
    rows = {row["model"]: row for row in evidence.tables["fig3_designs"] if row["eps"] == eps}
    mine, oue = rows[model], rows["oue"]
    return all(abs(mine[key] - oue[key]) < 1e-6 for key in oue if key.startswith(("a ", "b ")))


for _model in ("opt0", "opt1", "opt2"):
    _outperforms_claim(_model)


@CLAIMS.add(
    "relatively similar utility",
    _PLACE,
    "Mechanisms satisfying LDP and MinID-LDP have relatively similar utility "
    '("similar": OUE within a factor of two of IDUE).',
)
def _similar(evidence: Evidence) -> Verdict:
    cells = _beside(evidence, "opt0", ("oue",))
    if not cells:
        return NOTHING
    gain = [1 / cell.ratio for cell in cells]
    number = f"OUE / IDUE-opt0: {min(gain):.3g} to {max(gain):.3g}"
    return Verdict(HOLDS if max(gain) <= 2 else FAILS, number, 1 - max(gain) / 2)


@CLAIMS.add(
    "opt1 and opt2 above opt0",
    _PLACE,
    "The reduced optimization models (opt1 and opt2) have relatively larger MSEs than the original "
    "optimization model (opt0).",
)
def _reduced(evidence: Evidence) -> Verdict:
    return below(_beside(evidence, "opt0", ("opt1", "opt2")), "MSE of opt0 / opt1 and opt2")


@CLAIMS.add(
    "opt1 and opt2 near-optimal",
    _PLACE,
    "They still can provide the near-optimal solution "
    f'("near": the better of the two within {NEAR:.0%} of opt0\'s objective).',
)
def _near(evidence: Evidence) -> Verdict:
    values = _column(evidence).items()
    excess = {eps: min(row["opt1"], row["opt2"]) / row["opt0"] - 1 for eps, row in values}
    worst = max(excess, key=lambda eps: excess[eps])
    near = [f"{eps:g}" for eps, x in excess.items() if x <= NEAR]
    number = f"excess over opt0: {min(excess.values()):.1%} to {excess[worst]:.1%} (eps {worst:g})"
    note = f"Within {NEAR:.0%} at eps = {', '.join(near) or 'none'}."
    return Verdict(HOLDS if excess[worst] <= NEAR else FAILS, number, NEAR - excess[worst], note)


@CLAIMS.add(
    "complexity depends on the levels alone",
    "Sec. VI",
    "The complexity of our solution, including the number of assigned privacy budgets and "
    "computation cost of solving our model, only depends on the number of privacy levels (rather "
    "than the domain size).",
)
def _cost(evidence: Evidence) -> Verdict:
    rows = evidence.tables["fig3_cost"]
    sizes = {(row["variables"], row["constraints"]) for row in rows}
    listed = "; ".join(f"{x} variables, {y} constraints" for x, y in sizes)
    items = [row["items"] for row in rows]
    number = f"{listed} from {min(items):,} to {max(items):,} items"
    return Verdict(HOLDS if len(sizes) == 1 else FAILS, number)


@CLAIMS.add(
    "tickets beside bits",
    "not in the paper",
    "Reports of 4 bytes have almost the error of reports of m bits "
    f'(IDUE-opt0; "almost": at most {ALMOST:.0%} more in theory).',
)
def _tickets(evidence: Evidence) -> Verdict:
    rows = evidence.numbers.select(metric="mse", view="raw", data=SYNTHETIC, model="opt0")
    rows = [row for row in rows if row.sd and row.theory]
    bits = {(row.data, row.eps): row for row in rows if row.encoding == "bits"}
    mine = [x for x in rows if x.encoding == "ticket" and (x.data, x.eps) in bits]
    if not mine:
        return NOTHING
    pairs = [(x, bits[x.data, x.eps]) for x in mine]
    largest = max(abs(_excess(x) - _excess(y)) / _noise(x, y) for x, y in pairs)
    more = max((x.theory or 0) / (y.theory or 1) - 1 for x, y in pairs)
    limit = _limit(len(pairs))
    number = (
        f"at most {more:.2%} more in theory; {len(pairs)} cells: largest |z| of the difference "
        f"beyond that {largest:.2f} (allowed {limit:.2f})"
    )
    holds = largest <= limit and more <= ALMOST
    return Verdict(HOLDS if holds else FAILS, number, ALMOST - more)


def _noise(x: Row, y: Row) -> float:
    """The standard error of the difference of two means."""
    return float((x.sd**2 / len(x.values) + y.sd**2 / len(y.values)) ** 0.5)


@CLAIMS.add(
    "larger error of sensitive items",
    "Sec. VI-B",
    "Items with the smallest privacy budget have larger error than the other two mechanisms.",
)
def _sensitive(evidence: Evidence) -> Verdict:
    values = _column(evidence, "V 1").values()
    ratios = [row["opt0"] / row[other] for row in values for other in ("rappor", "oue")]
    number = f"variance of IDUE / the other's: {min(ratios):.3g} to {max(ratios):.3g}"
    return Verdict(HOLDS if min(ratios) > 1 else FAILS, number, min(ratios) - 1)


TARGET = Target(CLAIMS, SYNTHETIC, tables=_tables, experiments=_experiments, figures=_figures)
