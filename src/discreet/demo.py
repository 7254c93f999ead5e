"""`discreet demo`: a health survey from policy to counts on a page, readable by someone who has not
read the paper.
"""

from __future__ import annotations

import os
import secrets
import threading
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet import rehearsal, show, summary
from discreet.designs import design
from discreet.errors import DataError, MissingExtra
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.wire import page_of

if TYPE_CHECKING:
    from rich.console import Console

USERS = 100_000


def example(name: str) -> Policy:
    """A policy that comes with discreet: "health-survey" or "toy"."""
    return Policy.load(Path(str(files("discreet") / "data" / f"{name}.toml")))


def run(serve: bool = True) -> None:
    """Print the demonstration; at its end, serve the survey with simulated participants arriving,
    until Ctrl-C.
    """
    console = show.console()
    survey = example("health-survey")
    console.rule("[bold]1. A health survey: 41 conditions, three levels of protection")
    console.print(
        "An agency wants to know how common 41 conditions are, without learning who has what. HIV "
        "must be protected most "
        "(epsilon 1), a cold least (epsilon 2). Every phone perturbs its answer before it leaves; "
        "the probabilities:"
    )
    mechanism = design(survey)
    show.mechanism(mechanism, summary.describe(mechanism))
    forecast = summary.plan(survey, USERS, "uniform", None, None, mechanism)
    console.print(f"\nForecast for {USERS:,} people, one standard error:")
    for row in forecast["rows"]:
        if row["model"] == mechanism.model:
            console.print(
                f"  {row['level']:>9}: ± {row['stderr_count']:,.0f} people "
                f"({row['stderr_share']:.2%})"
            )
    console.print(
        f"  total squared error {forecast['gain']:.0%} below the best plain-LDP mechanism "
        f"({forecast['best_plain']})\n"
    )
    _collect(console, mechanism)
    console.rule("[bold]3. The paper's own survey: five answers")
    console.print("With so few answers the best report names some of them, in a byte or two:")
    toy = design(example("toy"))
    show.mechanism(toy, summary.describe(toy))
    if serve:
        _serve(console, mechanism, toy)


def _collect(console: Console, mechanism: Mechanism) -> None:
    """100,000 simulated participants, each answer really perturbed, and the estimate beside the
    truth.
    """
    console.rule(f"[bold]2. {USERS:,} simulated participants answer")
    given = rehearsal.answers(mechanism.policy, USERS)
    reports = mechanism.perturb_many(given)
    console.print(
        f"One answered {mechanism.policy.items[given[0]]!r}; what left the phone is "
        f"{reports[0].tobytes().hex()}."
    )
    estimate = mechanism.tally(reports).estimate()
    counts = np.bincount(given, minlength=mechanism.m).tolist()
    truth = dict(zip(mechanism.policy.items, counts, strict=True))
    show.estimate(USERS, estimate.top(15), 0.95, truth)
    low, high = estimate.interval()
    inside = int(((low <= counts) & (counts <= high)).sum())
    console.print(f"{inside} of {mechanism.m} intervals hold the truth (95 % are expected to).\n")


# ---- the collector, live -------------------------------------------------------------------------


def _serve(console: Console, survey: Mechanism, toy: Mechanism) -> None:
    """A collector on this machine, in a folder that goes with it."""
    try:
        from discreet.collector import scratch, server
        from discreet.collector.store import open_store
    except ModuleNotFoundError:
        raise MissingExtra("the collector", "serve") from None
    try:
        sock = server.listen("127.0.0.1", 8000)
    except DataError:
        sock = server.listen("127.0.0.1", 0)  # someone else is there
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with scratch.folder("demo") as folder:
        store = str(Path(folder) / "discreet.sqlite")
        opened = open_store(store)
        for mechanism in (survey, toy):
            opened.create(mechanism)
        opened.close()
        os.environ["DISCREET_TOKEN"] = secrets.token_urlsafe(24)
        console.rule("[bold]4. The same, live")
        console.print(
            "A collector is running on this machine, and simulated participants are arriving. Open"
        )
        for path, what in (
            (
                f"{page_of(survey.policy.name)}/results",
                "and watch the counts appear, with honest error bars",
            ),
            (
                f"{page_of(survey.policy.name)}#{survey.fingerprint}",
                "and answer yourself, as a participant",
            ),
            (
                f"{page_of(toy.policy.name)}#{toy.fingerprint}",
                "for the five answers: see what happens when you answer again",
            ),
        ):
            console.print(f"  {base}{path}", style="bold", soft_wrap=True, highlight=False)
            console.print(f"    {what}")
        console.print("Stop with Ctrl-C.")
        given = rehearsal.answers(survey.policy, USERS)
        people = (sock.getsockname(), survey, given)
        threading.Thread(target=rehearsal.arrive, args=people, daemon=True).start()
        server.run(store, sock, open_results=True)
