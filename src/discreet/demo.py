"""`discreet demo`: a health survey from policy to forecast, readable by someone who has not read the paper."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import summary
from discreet.designs import design
from discreet.policy import Policy

if TYPE_CHECKING:
    from rich.console import Console

USERS = 100_000


def example(name: str) -> Policy:
    """A policy that comes with discreet: "health-survey" or "toy"."""
    return Policy.load(Path(str(files("discreet") / "data" / f"{name}.toml")))


def run(console: Console, show: Callable[..., Any]) -> None:
    """Print the demonstration."""
    survey = example("health-survey")
    console.rule("[bold]1. A health survey: 41 conditions, three levels of protection")
    console.print(
        "An agency wants to know how common 41 conditions are, without learning who has what. HIV must be protected most "
        "(epsilon 1), a cold least (epsilon 2). Every phone perturbs its answer before it leaves; the probabilities:"
    )
    mechanism = design(survey)
    show(console, mechanism, summary.describe(mechanism))
    forecast = summary.plan(survey, USERS, "uniform", None, None, mechanism)
    console.print(f"\nForecast for {USERS:,} people, one standard error:")
    for row in forecast["rows"]:
        if row["model"] == mechanism.model:
            console.print(f"  {row['level']:>9}: ± {row['stderr_count']:,.0f} people ({row['stderr_share']:.2%})")
    console.print(f"  total squared error {forecast['gain']:.0%} below the best plain-LDP mechanism ({forecast['best_plain']})\n")
    console.rule("[bold]2. The paper's own survey: five answers")
    console.print("With so few answers it is better to send one (perturbed) answer than five (perturbed) bits:")
    mechanism = design(example("toy"))
    show(console, mechanism, summary.describe(mechanism))
