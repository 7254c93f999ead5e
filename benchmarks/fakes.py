"""How many fake reports the alarm sees, and how far they have moved an item by then."""

from __future__ import annotations

from typing import Any

import numpy as np

import discreet as d
from benchmarks.timing import table
from discreet.data.examples import example
from discreet.estimates.fakes import Reach, oddities

ITEM = "HIV"
SHARES = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
REPEATS, HONEST = 50, 2000


def run() -> str:
    mechanism, rng = d.design(example("health-survey"), goal="total"), np.random.default_rng(1)
    item = mechanism.policy.items.index(ITEM)
    popular = 1 / np.arange(1, mechanism.m + 1)
    kinds = {"greedy": _greedy(mechanism, item), "adaptive": _adaptive(mechanism, item)}
    rows = []
    for n in (1000, 10_000, 100_000):
        for name, pool in kinds.items():
            for share in SHARES:
                alarms, moved = 0, []
                for _ in range(REPEATS):
                    honest = _honest(mechanism, rng, popular, n)
                    chosen = pool[rng.integers(0, len(pool), round(share * n))]
                    both = honest + mechanism.tally(chosen)
                    alarms += bool(oddities(both))
                    counts = [x.estimate().counts[item] for x in (both, honest)]
                    moved.append(counts[0] - counts[1])
                rows.append([f"{n:,}", name, f"{share:.0%}", f"{np.mean(moved):,.0f}",
                             f"{alarms / REPEATS:.0%}"])  # fmt: skip
    false = sum(
        bool(oddities(_honest(mechanism, rng, popular, n)))
        for n in (100, 1000, 10_000)
        for _ in range(HONEST)
    )
    title = (
        f"Fakes at one item of the health survey, {REPEATS} repeats; honest people hold items with "
        f"chances 1 / rank. {Reach.for_mechanism(mechanism).sentence(mechanism)} Honest "
        f"collections alone: {false} alarms in {3 * HONEST:,}"
    )
    heads = ["honest reports", "fakes", "so many", f"{ITEM} is moved by", "alarm"]
    return table(title, heads, rows)


def _honest(mechanism: d.Mechanism, rng: Any, popular: Any, n: int) -> d.Tally:
    held = rng.choice(mechanism.m, n, p=rng.permutation(popular) / popular.sum())
    return mechanism.tally(mechanism.perturb_many(held))


def _greedy(mechanism: d.Mechanism, item: int) -> Any:
    """Reports that count most at the item: they name it, in the part where that weighs most."""
    reports = mechanism.perturb_many(np.full(20_000, item))
    alone = [mechanism.tally(reports[k : k + 1]) for k in range(4000)]
    counts = np.array([tally.estimate().counts[item] for tally in alone])
    return reports[:4000][counts > counts.max() - 1e-9]


def _adaptive(mechanism: d.Mechanism, item: int) -> Any:
    """Reports as honest devices of people with the item would send them."""
    return mechanism.perturb_many(np.full(20_000, item))
