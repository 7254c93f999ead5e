"""Design time: opt0 and mixed beside the geometric program, up to one budget per item."""

from __future__ import annotations

import numpy as np

import discreet as d
from benchmarks.timing import best, seconds, table
from discreet.designs import mixed, program
from discreet.designs.reductions import Levels, opt0


def run() -> str:
    rng, rows = np.random.default_rng(0), []
    for t in (3, 10, 50, 1_000, 16_470):
        eps = np.round(rng.uniform(0.5, 2, t), 6)
        levels = Levels(
            eps, np.ones(t) if t > 1000 else rng.integers(1, 1000, t).astype(float), "min"
        )
        solve = best(lambda lv=levels: opt0(lv), 0.5)
        mix = best(lambda lv=levels: mixed.search(lv, lv.sizes), 0.5, 1)
        _, _, value, bound = opt0(levels)
        found = mixed.search(levels, levels.sizes)
        gap = 1 - found.lower_bound / found.value(levels, levels.sizes)
        reference = "–"
        if t <= 50:
            r = np.minimum.outer(eps, eps)
            reference = seconds(
                best(lambda r=r, lv=levels: program.solve(r, lv.sizes, "opt0"), 0.1, 1)
            )
        policy = d.Policy.from_levels([(f"L{k}", float(e), [f"i{k}"]) for k, e in enumerate(eps)])
        whole = best(lambda p=policy: d.design(p, "opt0"), 0.5, 1)
        whole_mixed = best(lambda p=policy: d.design(p, "mixed"), 0.5, 1)
        rows.append(
            [f"{t:,}", seconds(solve), f"{1 - bound / value:.0e}", reference, seconds(whole)]
            + [seconds(mix), f"{gap:.0e}", len(found.shares), seconds(whole_mixed)]
        )
    heads = [
        "levels",
        "opt0 search",
        "its gap",
        "geometric program",
        "design(opt0), checked",
        "mixed search",
        "its gap",
        "parts",
    ]
    return table(
        "Design (the checked design includes rounding and the exact check)",
        [*heads, "design(mixed), checked"],
        rows,
    )
