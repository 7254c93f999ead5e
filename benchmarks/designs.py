"""Design time: subset with its certificate and opt0, beside the geometric program, up
to one budget per item.
"""

from __future__ import annotations

import numpy as np

import discreet as d
from benchmarks.timing import best, seconds, table
from discreet.designs import program
from discreet.designs.reductions import Levels, opt0


def three(m: int, eps: float) -> d.Policy:
    """Budgets eps x {1, 1.2, 2} for 5, 5 and 90 % of the items."""
    few = max(1, m // 20)
    rows = [("high", eps, few), ("middle", 1.2 * eps, few), ("low", 2 * eps, m - 2 * few)]
    return d.Policy.from_levels(
        [(name, round(e, 6), [f"{name}{i}" for i in range(k)]) for name, e, k in rows]
    )


def run() -> str:
    return _subset() + _paper()


def _subset() -> str:
    rows = []
    for name, policy, settings in [
        ("3 levels, 100 items", three(100, 1), {}),
        ("the same, worst case", three(100, 1), {"prior": "worst"}),
        ("the same as tickets", three(100, 1), {"encoding": "ticket"}),
        ("3 levels, 1,000 items", three(1000, 1), {}),
        ("3 levels, 16,470 items (tickets)", three(16_470, 1), {}),
        *(_evenly(*row) for row in ((1, 2, 16_470), (1, 4, 16_470), (2, 4, 2_000))),
    ]:
        mechanism = d.design(policy, goal="total", **settings)
        time = best(lambda p=policy, s=settings: d.design(p, goal="total", **s), 0.5, 2)
        score = mechanism.worst_case_mse if settings.get("prior") else mechanism.expected_mse()
        told = mechanism.certificate.sentence
        rows.append(
            [
                name,
                mechanism.encoding.name,
                len(mechanism.parts),
                f"{score:,.6g}",
                told,
                seconds(time),
            ]
        )
    heads = ["policy", "encoding", "parts", "total MSE / n", "certificate", "design, checked"]
    return table("Design of `subset`, with its certificate and the exact check", heads, rows)


def _evenly(low: float, high: float, m: int) -> tuple[str, d.Policy, dict[str, str]]:
    budgets = {f"i{k}": round(float(e), 9) for k, e in enumerate(np.linspace(low, high, m))}
    return (
        f"{m:,} budgets in [{low}, {high}], bits",
        d.Policy.from_budgets(budgets),
        {"encoding": "bits"},
    )


def _paper() -> str:
    rng, rows = np.random.default_rng(0), []
    for t in (3, 10, 50, 1_000, 16_470):
        eps = np.round(rng.uniform(0.5, 2, t), 6)
        sizes = np.ones(t) if t > 1000 else rng.integers(1, 1000, t).astype(float)
        levels = Levels(eps, sizes, "min")
        solve = best(lambda lv=levels: opt0(lv), 0.5)
        _, _, value, bound = opt0(levels)
        reference = "–"
        if t <= 10:
            r = np.minimum.outer(eps, eps)
            reference = seconds(
                best(lambda r=r, lv=levels: program.solve(r, lv.sizes, "opt0"), 0.1, 1)
            )
        policy = d.Policy.from_levels([(f"L{k}", float(e), [f"i{k}"]) for k, e in enumerate(eps)])
        whole = best(lambda p=policy: d.design(p, "opt0"), 0.5, 1)
        rows.append(
            [f"{t:,}", seconds(solve), f"{1 - bound / value:.0e}", reference, seconds(whole)]
        )
    heads = ["levels", "opt0 search", "its gap", "geometric program", "design(opt0), checked"]
    return table("Design of the paper's opt0", heads, rows)
