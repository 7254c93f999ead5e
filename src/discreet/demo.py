"""`discreet demo`: a health survey from policy to forecast, readable by someone who has not read the paper."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet import show, summary
from discreet.designs import design
from discreet.mechanism import Mechanism
from discreet.policy import Policy

if TYPE_CHECKING:
    from rich.console import Console

USERS = 100_000


def example(name: str) -> Policy:
    """A policy that comes with discreet: "health-survey" or "toy"."""
    return Policy.load(Path(str(files("discreet") / "data" / f"{name}.toml")))


def run() -> None:
    """Print the demonstration."""
    console = show.console()
    survey = example("health-survey")
    console.rule("[bold]1. A health survey: 41 conditions, three levels of protection")
    console.print(
        "An agency wants to know how common 41 conditions are, without learning who has what. HIV must be protected most "
        "(epsilon 1), a cold least (epsilon 2). Every phone perturbs its answer before it leaves; the probabilities:"
    )
    mechanism = design(survey)
    show.mechanism(mechanism, summary.describe(mechanism))
    forecast = summary.plan(survey, USERS, "uniform", None, None, mechanism)
    console.print(f"\nForecast for {USERS:,} people, one standard error:")
    for row in forecast["rows"]:
        if row["model"] == mechanism.model:
            console.print(f"  {row['level']:>9}: ± {row['stderr_count']:,.0f} people ({row['stderr_share']:.2%})")
    console.print(f"  total squared error {forecast['gain']:.0%} below the best plain-LDP mechanism ({forecast['best_plain']})\n")
    _collect(console, mechanism)
    console.rule("[bold]3. The paper's own survey: five answers")
    console.print("With so few answers it is better to send one (perturbed) answer than five (perturbed) bits:")
    mechanism = design(example("toy"))
    show.mechanism(mechanism, summary.describe(mechanism))


def answers(m: int) -> NDArray[np.int64]:
    """Made-up answers with a power law; they have a seed, their perturbation never has."""
    rng = np.random.default_rng(2020)
    popularity = 1 / np.arange(1, m + 1) ** 0.8
    return rng.choice(rng.permutation(m), USERS, p=popularity / popularity.sum())


def _collect(console: Console, mechanism: Mechanism) -> None:
    """100,000 simulated participants, each answer really perturbed, and the estimate beside the truth."""
    console.rule(f"[bold]2. {USERS:,} simulated participants answer")
    given = answers(mechanism.m)
    reports = mechanism.perturb_many(given)
    console.print(f"One answered {mechanism.policy.items[given[0]]!r}; what left the phone is {reports[0].tobytes().hex()}.")
    estimate = mechanism.tally(reports).estimate()
    counts = np.bincount(given, minlength=mechanism.m).tolist()
    truth = dict(zip(mechanism.policy.items, counts, strict=True))
    show.estimate(USERS, estimate.top(15), 0.95, truth)
    low, high = estimate.interval()
    inside = int(((low <= counts) & (counts <= high)).sum())
    console.print(f"{inside} of {mechanism.m} intervals hold the truth (95 % are expected to).\n")
