"""The paper's experiments without n x m work, beside the n x m way and beside real reports."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best, seconds, table
from discreet.arrays.tally import Tally
from discreet.estimates.simulation import draw_tally
from discreet.mechanism import Mechanism
from discreet.paper.experiments import Experiment, make_mechanism

SETTINGS = (("Power-law", 100_000, 100), ("Uniform", 100_000, 1_000), ("Retail", 88_162, 16_470))


def run() -> str:
    rows = []
    for name, n, m in SETTINGS:
        rng = np.random.default_rng(1)
        answers = np.sort(rng.zipf(1.3, 4 * n) - 1)
        answers = rng.choice(answers[answers < m], n)
        truth = np.bincount(answers, minlength=m)
        both = (Experiment("", "opt0", 1.0, 1, encoding=kind) for kind in ("bits", "ticket"))
        bits, tickets = (make_mechanism(one, m) for one in both)
        for mechanism in (bits, tickets):  # compiles the kernels
            _counted(mechanism, answers[:100])
        ours = best(lambda t=truth, x=bits: draw_tally(x, t, int(t.sum()), rng).estimate(), 1, 3)
        least = 1 if n * m > 10**9 else 3
        full = best(lambda a=answers, x=bits: one_by_one(x, a, rng), 0.1, least)
        real = [
            best(lambda a=answers, x=x: _counted(x, a).estimate(), 0.5, 1) for x in (bits, tickets)
        ]
        rows.append(
            [name, f"{n:,}", f"{m:,}", seconds(ours), seconds(full), f"{full / ours:,.0f} ×"]
            + [f"{seconds(x)} ({full / x:,.0f} ×)" for x in real]
        )
    heads = [
        "data",
        "n",
        "m",
        "drawn in O(m)",
        "numpy, n x m bits",
        "speed-up",
        "real reports, bits",
        "real reports, tickets",
    ]
    return table("One experiment of the paper (opt0, eps = 1), one thread", heads, rows)


def _counted(mechanism: Mechanism, answers: np.ndarray) -> Tally:
    reports = mechanism.perturb_many(answers, threads=1, indices=True)
    return mechanism.tally(reports, threads=1)


def one_by_one(
    mechanism: Mechanism, answers: np.ndarray, rng: np.random.Generator, block: int = 1000
) -> np.ndarray:
    """Every bit of every person drawn with numpy, in blocks of people, and the estimate."""
    a, b = mechanism.a[mechanism.arrays.level_of], mechanism.b[mechanism.arrays.level_of]
    counts = np.zeros(mechanism.m, np.int64)
    for first in range(0, len(answers), block):
        held = answers[first : first + block]
        draw = rng.random((len(held), mechanism.m))
        bits, people = draw < b, np.arange(len(held))
        bits[people, held] = draw[people, held] < a[held]
        counts += bits.sum(axis=0)
    return (counts - len(answers) * b) / (a - b)
