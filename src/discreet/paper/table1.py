"""Table I: bounds of the leakage under every notion; and Lemma 1."""

from __future__ import annotations

import numpy as np

from discreet.arrays.leakage import leakage_bounds
from discreet.data.examples import example
from discreet.designs import design
from discreet.paper.datasets import Data
from discreet.paper.experiments import make_policy
from discreet.paper.settings import FACTORS, SHARES, Setup
from discreet.paper.tables import PaperTable, Rows
from discreet.paper.target import Target
from discreet.paper.verdicts import FAILS, HOLDS, Claims, Evidence, Verdict

CLAIMS = Claims("table1")
_NOTIONS = (
    ("ldp", "LDP", "oue"),
    ("pldp", "PLDP", "oue"),
    ("gi", "GI or CLDP", "grr"),
    ("minid", "MinID-LDP", "opt0"),
)


def leakage() -> PaperTable:
    """Bounds of prior / posterior under every notion, beside what a mechanism of that notion does,
    uniform prior.
    """
    policy = example("toy")
    distance = 1.0 - np.eye(policy.m)
    rows: Rows = []
    for notion, label, model in _NOTIONS:
        bound = leakage_bounds(policy, notion, distance=distance)
        seen = design(policy, model, goal="total").guarantee().leakage("uniform")
        for item in (0, 1):
            budget = policy.levels[policy.level_of[item]].budget
            rows.append(
                {
                    "notion": label,
                    "item": policy.items[item],
                    "epsilon": budget.text,
                    "lower bound": float(bound.lower[item]),
                    "upper bound": float(bound.upper[item]),
                    "mechanism": model,
                    "its lowest": float(seen.lower[item]),
                    "its highest": float(seen.upper[item]),
                }
            )
    caption = (
        "The paper's Table I on its own toy example (HIV at ln 4, four others at ln 6), uniform "
        "prior; GI and CLDP with distance 1 between any two answers. The last columns are the "
        "exact extremes of one mechanism of each notion."
    )
    return PaperTable("table1", "Bounds of prior / posterior", caption, rows)


def cap() -> PaperTable:
    """Lemma 1: a level with 4 eps gets the parameters of one with 2 eps."""
    rows: Rows = []
    for factors in (FACTORS, (1.0, 1.2, 4.0)):
        mechanism = design(make_policy(100, 1.0, factors, SHARES, "single"), "opt0")
        for k, factor in enumerate(factors):
            rows.append(
                {
                    "budgets": ", ".join(f"{f:g}" for f in factors),
                    "level": f"{factor:g} eps",
                    "a": float(mechanism.a[k]),
                    "b": float(mechanism.b[k]),
                    "LDP epsilon": float(mechanism.guarantee().ldp_epsilon),
                }
            )
    caption = (
        "opt0 at eps = 1, m = 100, shares 5/5/90 %. By Lemma 1 every pair is held to 2 min E = 2, "
        "whatever the largest budget is."
    )
    return PaperTable("table1_cap", "A level at 4 eps is a level at 2 eps", caption, rows)


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [leakage(), cap()]


@CLAIMS.add(
    "leakage bounds",
    "Sec. III-B, Table I",
    "The lower bound and upper bound (independent of y) of prior-posterior privacy leakage are "
    "summarized in Table I.",
)
def _leakage(evidence: Evidence) -> Verdict:
    rows = evidence.tables["table1"]
    low = min(row["its lowest"] / row["lower bound"] for row in rows)
    room = min(low, min(row["upper bound"] / row["its highest"] for row in rows))
    number = (
        f"{len(rows)} pairs of bounds; the extremes of the mechanisms stay within all, at the "
        f"closest by a factor {room:.4g}"
    )
    return Verdict(HOLDS if room >= 1 - 1e-6 else FAILS, number, round(room - 1, 9))


@CLAIMS.add(
    "twice the smallest budget",
    "Sec. VI, Lemma 1",
    "The privacy benefit is bounded by 2min{E} even when other privacy budgets are higher than "
    "2min{E} (a level with 4 eps gets the parameters of the level with 2 eps).",
)
def _cap(evidence: Evidence) -> Verdict:
    rows = evidence.tables["table1_cap"]
    half = len(rows) // 2
    pairs = list(zip(rows[:half], rows[half:], strict=True))
    gap = max(abs(x[key] - y[key]) for x, y in pairs for key in "ab")
    largest = max(row["LDP epsilon"] for row in rows)
    number = (
        f"largest difference of a and b: {gap:.1g}; realised LDP epsilon {largest:.3f}, allowed 2"
    )
    holds = gap < 1e-6 and largest <= 2 + 1e-9
    return Verdict(HOLDS if holds else FAILS, number, 1 - largest / 2)


TARGET = Target(CLAIMS, tables=_tables)
