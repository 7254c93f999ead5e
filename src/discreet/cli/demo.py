"""The demonstration: a health survey from policy to counts on a page, for people who have not read
the paper.
"""

from __future__ import annotations

import os
import secrets
import threading
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.cli.group import main

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.mechanism import Mechanism

USERS = 100_000
STUDENTS = 5_000


@main.command(epilog="Example:  discreet demo")
@click.option("--no-serve", is_flag=True, help="Stop before the collector starts.")
def demo(no_serve: bool) -> None:
    """Show the whole flow on a health survey.

    Then shows the paper's five answers, and runs a live collector until Ctrl-C.
    """
    run(serve=not no_serve)


def run(serve: bool = True) -> None:
    """Print the demonstration. Then serve the survey to simulated participants until Ctrl-C."""
    from discreet.data.examples import example
    from discreet.designs import design
    from discreet.show import facts, layout, terminal

    console = layout.console()
    survey = example("health-survey")
    console.rule("[bold]1. A health survey: 41 conditions, three levels of protection")
    console.print(
        "An agency wants to know how common 41 conditions are, without learning who has which. "
        "HIV needs the most protection (epsilon 1), a cold the least (epsilon 2). Every phone "
        "perturbs its answer before it sends it, with these probabilities:"
    )
    mechanism = design(survey)
    terminal.mechanism(mechanism, facts.describe(mechanism, name="health-survey"))
    forecast = facts.plan(survey, USERS, "uniform", None, None, mechanism)
    console.print(f"\nForecast for {USERS:,} people, one standard error:")
    for row in forecast["rows"]:
        if row["model"] == mechanism.model:
            console.print(
                f"  {row['level']:>9}: ± {row['stderr_count']:,.0f} people "
                f"({row['stderr_count'] / USERS:.2%})"
            )
    console.print(
        f"  total squared error {forecast['gain']:.0%} below the best plain-LDP mechanism "
        f"({forecast['best_plain']})\n"
    )
    _collect(console, mechanism)
    console.rule("[bold]3. The paper's own survey: five answers")
    console.print("With so few answers the best report names a few of them, in a byte or two:")
    toy = design(example("toy"))
    terminal.mechanism(toy, facts.describe(toy, name="toy-survey"))
    if serve:
        _serve(console, mechanism, toy)


def _collect(console: Console, mechanism: Mechanism) -> None:
    """Simulate 100,000 participants, really perturb each answer, and show the estimate beside the
    truth.
    """
    import numpy as np

    from discreet.data.examples import made_up_answers
    from discreet.show import terminal

    console.rule(f"[bold]2. {USERS:,} simulated participants answer")
    given = made_up_answers(mechanism.policy, USERS)
    reports = mechanism.perturb_many(given)
    console.print(
        f"One answered {mechanism.policy.items[given[0]]!r}; their phone sent "
        f"{reports[0].tobytes().hex()}."
    )
    estimate = mechanism.tally(reports).estimate()
    counts = np.bincount(given, minlength=mechanism.m).tolist()
    truth = dict(zip(mechanism.policy.items, counts, strict=True))
    terminal.estimate(estimate, estimate.top(15), truth=truth)
    low, high = estimate.interval()
    inside = int(((low <= counts) & (counts <= high)).sum())
    console.print(f"{inside} of {mechanism.m} intervals hold the truth (95 % are expected to).\n")


# ---- the collector, live -------------------------------------------------------------------------


def _serve(console: Console, survey: Mechanism, toy: Mechanism) -> None:
    """Run a collector on this machine, in a temporary folder."""
    from discreet.collector import rehearsal, scratch, server
    from discreet.collector.store import open_store
    from discreet.device.wire import page_path
    from discreet.errors import DataError
    from discreet.survey import Survey

    health, five = Survey("health-survey", [survey]), Survey("toy-survey", [toy])
    students = rehearsal.rehearse(Survey.design(_students()))
    try:
        sock = server.listen("127.0.0.1", 8000)
    except DataError:
        sock = server.listen("127.0.0.1", 0)  # port 8000 is taken
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with scratch.folder("demo") as folder:
        store = str(Path(folder) / "discreet.sqlite")
        opened = open_store(store)
        for each in (health, five, students):
            opened.create(each)
        opened.close()
        token = os.environ["DISCREET_TOKEN"] = secrets.token_urlsafe(24)
        console.rule("[bold]4. The same, live")
        console.print(
            "A collector is running on this machine, and simulated participants answer. Open"
        )
        for path, what in (
            (
                f"{page_path(health.name)}/results",
                "to watch the counts appear, with honest error bars",
            ),
            (
                f"{page_path(health.name)}#{health.fingerprint}",
                "to answer yourself, as a participant",
            ),
            (
                f"{page_path(five.name)}#{five.fingerprint}",
                "for the five answers: see what happens when you answer again",
            ),
            (
                "/desk",
                "to be the organiser: a survey of three questions fills there, and you can write "
                f"your own. Log in with the token {token}",
            ),
        ):
            console.print(f"  {base}{path}", style="bold", soft_wrap=True, highlight=False)
            console.print(f"    {what}", soft_wrap=True, highlight=False)
        console.print("Stop with Ctrl-C.")
        for asked, people in ((health, USERS), (students, STUDENTS)):
            arriving = (sock.getsockname(), asked, people)
            threading.Thread(target=rehearsal.arrive, args=arriving, daemon=True).start()
        server.run(store, sock, open_results=True, temporary=True)


def _students() -> dict[str, object]:
    """A survey of three questions, as it stands in its file."""
    from discreet.data.templates import template

    return tomllib.loads(template("student-life"), parse_float=Decimal)
