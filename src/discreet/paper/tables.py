"""The paper's tables, and small ones behind its sentences: rows of plain numbers, exact theory, no randomness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from discreet import theory
from discreet.demo import example
from discreet.designs import design, reductions
from discreet.designs.reductions import Levels
from discreet.designs.rounding import parts_of
from discreet.encodings import Bits
from discreet.exact import D
from discreet.guarantee import leakage_bounds
from discreet.mechanism import Mechanism
from discreet.paper.boxed import boxed, optimum
from discreet.paper.datasets import SOURCES, Dataset
from discreet.paper.experiments import policy_of
from discreet.paper.settings import FACTORS, SHARES, Settings
from discreet.policy import Policy

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """Rows with the same columns, and what they show."""

    name: str
    title: str
    caption: str
    rows: Rows

    def markdown(self) -> str:
        """The table as text."""
        heads = list(self.rows[0])
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        lines += ["| " + " | ".join(_cell(row[head]) for head in heads) + " |" for row in self.rows]
        return f"**{self.title}**\n\n" + "\n".join(lines) + f"\n\n{self.caption}\n"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def tables_of(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Table]:
    """The tables that a name of the command stands for: its own, and those behind a figure's sentences."""
    if name == "table1":
        return [leakage(), cap()]
    if name == "table2":
        return [toy(), toy_beyond()]
    if name == "table3":
        return [data_sets(data)]
    if name == "fig3":
        return [designs(settings), box(settings), cost()]
    if name == "fig6":
        return [limit(settings)]
    if name == "fig7":
        return [set_budgets()]
    return [set_sizes(name, data)] if name in ("fig8", "fig9") else []


# ---- table 1: leakage -------------------------------------------------------------------------------------


def leakage() -> Table:
    """Bounds of prior / posterior under every notion, beside what a mechanism of that notion does, uniform prior."""
    policy = example("toy")
    apart = 1.0 - np.eye(policy.m)
    rows: Rows = []
    for notion, label, model in (
        ("ldp", "LDP", "oue"), ("pldp", "PLDP", "oue"), ("gi", "GI or CLDP", "grr"), ("minid", "MinID-LDP", "opt0"),
    ):  # fmt: skip
        bound = leakage_bounds(policy, notion, distance=apart)
        seen = design(policy, model).guarantee().leakage("uniform")
        for item in (0, 1):
            rows.append(
                {
                    "notion": label, "item": policy.items[item], "epsilon": policy.levels[policy.level_of[item]].budget.text,
                    "lower bound": float(bound.lower[item]), "upper bound": float(bound.upper[item]), "mechanism": model,
                    "its lowest": float(seen.lower[item]), "its highest": float(seen.upper[item]),
                }
            )  # fmt: skip
    caption = (
        "The paper's Table I on its own toy example (HIV at ln 4, four others at ln 6), uniform prior; GI and CLDP with distance 1 "
        "between any two answers. The last columns are the exact extremes of one mechanism of each notion."
    )
    return Table("table1", "Bounds of prior / posterior", caption, rows)


def cap() -> Table:
    """Lemma 1: a level with 4 eps gets the parameters of one with 2 eps."""
    rows: Rows = []
    for factors in (FACTORS, (1.0, 1.2, 4.0)):
        mechanism = design(policy_of(100, 1.0, factors, SHARES, "single"), "opt0")
        for k, factor in enumerate(factors):
            rows.append(
                {
                    "budgets": ", ".join(f"{f:g}" for f in factors), "level": f"{factor:g} eps", "a": float(mechanism.a[k]),
                    "b": float(mechanism.b[k]), "LDP epsilon": float(mechanism.guarantee().ldp_epsilon),
                }
            )  # fmt: skip
    caption = "opt0 at eps = 1, m = 100, shares 5/5/90 %. By Lemma 1 every pair is held to 2 min E = 2, whatever the largest budget is."
    return Table("table1_cap", "A level at 4 eps is a level at 2 eps", caption, rows)


# ---- table 2: the toy example -----------------------------------------------------------------------------

# As printed in the paper: 1 - a and b (HIV, others), variance per participant and per holder (HIV, others), total.
PRINTED = {
    "rappor": (0.33, 0.33, 0.33, 0.33, 2.0, 0.0, 2.0, 0.0, 10.0, 10.0),
    "oue": (0.5, 0.5, 0.2, 0.2, 1.78, 1.0, 1.78, 1.0, 9.9, 9.9),
    "opt0": (0.41, 0.33, 0.33, 0.28, 3.27, 0.31, 1.32, 0.13, 8.68, 8.86),
}
TOY_COLUMNS = (
    "1-a HIV", "1-a others", "b HIV", "b others", "Var HIV /n", "Var HIV /c", "Var others /n", "Var others /c", "total from",
    "total to",
)  # fmt: skip


def toy() -> Table:
    """The paper's comparison on the toy example, beside what is printed there."""
    policy, rows = example("toy"), []
    for model, label in (("rappor", "RAPPOR"), ("oue", "OUE"), ("opt0", "IDUE")):
        rows.append({"mechanism": label, "row": "computed", **_toy_row(design(policy, model))})
        rows.append(
            {
                "mechanism": label,
                "row": "printed",
                **dict(zip(TOY_COLUMNS, PRINTED[model], strict=True)),
            }
        )
    rows.append(
        {
            "mechanism": "IDUE",
            "row": "computed from a and b rounded to two digits",
            **_toy_row(_rounded(policy)),
        }
    )
    caption = (
        "The paper's Table II: HIV at ln 4, four others at ln 6; variances per participant (/n) and per holder of the item (/c), "
        "the total over all data sets. The printed total of IDUE is the sum of its printed, rounded entries: 3.27 + 4 x 1.32 + "
        "0.13 (or 0.31)."
    )
    return Table("table2", "Utility in the toy example", caption, rows)


def _toy_row(mechanism: Mechanism) -> dict[str, float]:
    a, b = mechanism.a, mechanism.b
    V, h = theory.absent_variance(mechanism), mechanism.decoder.slope[list(mechanism.groups)] - 1
    variances = (V[0], h[0], V[1], h[1])
    values = (1 - a[0], 1 - a[1], b[0], b[1], *variances, *theory.mse_range(mechanism))
    return dict(zip(TOY_COLUMNS, map(float, values), strict=True))


def _rounded(policy: Policy) -> Mechanism:
    """IDUE with the printed, rounded probabilities; they pass the exact check too."""
    flips, groups = np.array(PRINTED["opt0"][:4]), (0, 1)
    own, other = 1 - flips[None, :2], np.rint(flips[None, 2:] * D)
    parts = parts_of(policy, Bits(), groups, np.ones((1, 2)), own, other)
    return Mechanism(policy, "opt0", Bits(), groups, parts, (D // 5, D - D // 5))


def toy_beyond() -> Table:
    """What the paper does not compare: GRR, and ours, at the same guarantee."""
    policy, rows = example("toy"), []
    for model, label in (
        ("opt0", "IDUE (the paper's best)"), ("boxed", "IDUE in the authors' box"), ("grr", "GRR at ln 4"),
        ("ss", "subset selection at ln 4"), ("subset", "subset (the best possible)"),
    ):  # fmt: skip
        mechanism = boxed(policy) if model == "boxed" else design(policy, model)
        low, high = theory.mse_range(mechanism)
        rows.append(
            {
                "mechanism": label, "total variance / n, uniform answers": float(mechanism.expected_mse()),
                "smallest": float(low), "largest": float(high), "bytes per report": mechanism.report_size,
            }
        )  # fmt: skip
    caption = "The toy example with the same guarantee for every pair of answers; GRR and subset selection are plain LDP at the smallest budget."
    return Table("table2_beyond", "Beyond the paper: the toy example", caption, rows)


# ---- table 3: data ----------------------------------------------------------------------------------------


def data_sets(data: Mapping[str, Dataset]) -> Table:
    """The paper's data sets beside those at hand."""
    rows: Rows = []
    for key, source in SOURCES.items():
        mine = data.get(key)
        rows.append(
            {
                "data set": source.name, "records": source.records, "users": source.users, "items": source.items,
                "records here": mine.records if mine else None, "users here": mine.n if mine else None,
                "items here": mine.m if mine else None, "file": mine.source if mine else "not there",
                "partial": bool(mine and mine.partial),
            }
        )  # fmt: skip
    for key in ("kosarak-short", "clothing-all"):
        if key in data:
            mine = data[key]
            rows.append(
                {
                    "data set": mine.title, "records": None, "users": None, "items": None, "records here": mine.records,
                    "users here": mine.n, "items here": mine.m, "file": mine.source, "partial": True,
                }
            )  # fmt: skip
    return Table(
        "table3",
        "Synthetic and real-world data sets",
        "The paper's Table III beside the files that were used.",
        rows,
    )


def set_sizes(name: str, data: Mapping[str, Dataset]) -> Table:
    """How many items people have, for the figures about the padding."""
    rows: Rows = []
    for key in ("clothing",) if name == "fig8" else ("kosarak", "retail"):
        if key in data:
            sizes = data[key].sizes
            spread = {
                "mean": float(sizes.mean()),
                "median": float(np.median(sizes)),
                "90th percentile": float(np.quantile(sizes, 0.9)),
            }
            rows.append(
                {"data": key, "title": data[key].title, **spread, "largest": int(sizes.max())}
            )
    return Table(f"{name}_sizes", "Items per person", "What the padding has to hold.", rows)


# ---- behind figures 3 and 6 -------------------------------------------------------------------------------


def designs(settings: Settings) -> Table:
    """Every model at the default budgets, m = 100: probabilities, objective and the guarantee that is realised."""
    rows: Rows = []
    for eps in settings.epsilons:
        policy = policy_of(100, eps, FACTORS, SHARES, "single")
        for model in ("rappor", "oue", "opt0", "opt1", "opt2", "boxed"):
            mechanism = boxed(policy) if model == "boxed" else design(policy, model)
            guarantee = mechanism.guarantee()
            row = {
                "eps": eps,
                "model": model,
                "worst case / n": mechanism.worst_case_mse,
                "uniform / n": mechanism.expected_mse(),
            }
            row |= {"LDP epsilon": float(guarantee.ldp_epsilon), "holds": guarantee.holds}
            for k, factor in enumerate(FACTORS):
                row |= {
                    f"a {factor:g}": float(mechanism.a[k]),
                    f"b {factor:g}": float(mechanism.b[k]),
                }
                row |= {f"V {factor:g}": float(theory.absent_variance(mechanism)[k])}
            rows.append(row)
    caption = (
        "m = 100, budgets eps x {1, 1.2, 2} for 5/5/90 % of the items. Worst case: the objective of opt0, the largest total MSE / "
        "n over all data sets. V: variance per participant of an item of the level. boxed: opt0 with a >= 1/2 >= b, as the authors "
        "solved it."
    )
    return Table("fig3_designs", "The designs", caption, rows)


def box(settings: Settings) -> Table:
    """Beyond the paper: what the authors' box costs in opt0's objective, by the size of the domain."""
    rows: Rows = []
    for m in (100, 1_000, 16_470, 41_270):
        row: dict[str, Any] = {"items": m}
        for eps in settings.epsilons:
            levels = Levels(eps * np.array(FACTORS), m * np.array(SHARES), "min")
            row[f"eps {eps:g}"] = optimum(levels)[2] / reductions.opt0(levels)[2] - 1
        rows.append(row)
    caption = "The excess of opt0's worst-case objective within a >= 1/2 >= b over the global optimum, default budgets."
    return Table("fig3_box", "Beyond the paper: the price of the authors' box", caption, rows)


def cost() -> Table:
    """What is solved for, at small and large domains."""
    rows: Rows = []
    for m in (100, 1_000, 16_470, 41_270):
        a = design(policy_of(m, 1.0, FACTORS, SHARES, "single"), "opt0").a
        rows.append(
            {"items": m, "levels": len(a), "variables": 2 * len(a), "constraints": len(a) ** 2}
        )
    return Table("fig3_cost", "The size of the problem", "opt0 at the default budgets.", rows)


def set_budgets() -> Table:
    """Theorem 4: IDUE-PS with the probabilities of IDUE keeps the budgets of sets (all kinds of up to three items)."""
    rows: Rows = []
    for padding in (1, 2, 5):
        policy = policy_of(12, 1.0, FACTORS, (1 / 3, 1 / 3, 1 / 3), "set")
        mechanism = design(policy, "opt0", padding=padding)
        single = design(policy_of(12, 1.0, FACTORS, (1 / 3, 1 / 3, 1 / 3), "single"), "opt0")
        guarantee = mechanism.guarantee()
        kinds = [
            kind for size in range(4) for kind in combinations_with_replacement(range(3), size)
        ]
        sets = [
            {4 * level + kind[:place].count(level) for place, level in enumerate(kind)}
            for kind in kinds
        ]
        budget = [guarantee.set_budget(x) for x in sets]
        excess = [
            guarantee.set_bound(x, y) - min(budget[i], budget[j])
            for i, x in enumerate(sets)
            for j, y in enumerate(sets)
            if i != j
        ]
        same = max(
            float(np.abs(getattr(mechanism, key) - getattr(single, key)).max()) for key in "ab"
        )
        worst = {"largest bound - budget": max(excess), "a, b differ by": same}
        rows.append({"padding": padding, "pairs of sets": len(excess), **worst})
    caption = "eps = 1, x {1, 1.2, 2}. Bound: Lemma 2's of ln Pr(y | x) / Pr(y | x'); budget: the smaller eps_x of the two sets."
    return Table("fig7_budgets", "IDUE-PS keeps the budgets of sets", caption, rows)


def limit(settings: Settings) -> Table:
    """Fewer and fewer sensitive items: what opt0 approaches, by its worst-case objective."""
    rows: Rows = []
    for eps in settings.some_epsilons:
        m, u = 1e6, 2 * eps
        rappor, oue = m / (4 * np.sinh(u / 4) ** 2), m / np.sinh(u / 2) ** 2 + 1
        for share in (0.05, 0.01, 0.001, 0.0001, 0.00001):
            mine = reductions.opt0(
                Levels(np.array([eps, u]), m * np.array([share, 1 - share]), "min")
            )[2]
            ratios = {
                "/ rappor at 2 eps": float(mine / rappor),
                "/ oue at 2 eps": float(mine / oue),
            }
            rows.append({"eps": eps, "sensitive share": share, "opt0, MSE / n": mine, **ratios})
    caption = "A million items, a share of them at eps and the others at 2 eps, beside plain LDP at 2 eps for all (worst case / n)."
    return Table("fig6_limit", "Hardly any sensitive item", caption, rows)
