"""What the terminal shows of a forecast: of one question, and of a survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from discreet.show.layout import (
    console,
    make_table,
    print_sentence,
    print_table,
    print_warnings,
)
from discreet.show.terminal import print_goals

if TYPE_CHECKING:
    from discreet.show.shapes import PlanFacts, PlanRow

OBJECTIVES = {
    "mse": "MSE with undercounting",
    "shrunk": "MSE after shrinking, with undercounting",
    "relative": "relative error of the 20 most frequent items",
}


def plan(facts: PlanFacts) -> None:
    """Print a forecast, as `facts.plan` makes it."""
    out = console()
    out.print(
        f"[bold]{escape(facts['name'])}[/bold]: forecast for {facts['users']:,} people, at the "
        f"{facts['prior']} prior"
    )
    print_warnings(out, facts["warnings"])
    for sentence in facts["visible"]:
        print_sentence(out, sentence, mark="  • ")
    table = _table(["model"], facts["target_error"])
    last = None
    for row in facts["rows"]:
        _add(table, row, [row["model"] if row["model"] != last else ""])
        last = row["model"]
    print_table(out, table)
    print_sentence(out, _about_columns(facts["about"]))
    _print_padding(out, facts)
    print_goals(out, facts["goals"])
    gain = facts["gain"]
    compare = f"{gain:.1%} below" if gain >= 0 else f"{-gain:.1%} above"
    out.print(
        f"Chosen: [bold]{facts['best']}[/bold]; its total MSE is {compare} that of the best "
        f"plain-LDP model, {facts['best_plain']}."
    )
    if facts.get("why"):
        print_sentence(out, facts["why"])
    if facts["certificate"]:
        out.print(f"Its expected error: {escape(facts['certificate']['sentence'])}.")
    print_sentence(out, facts["fake"]["sentence"])
    if facts["published"]:
        print_sentence(out, facts["published"])


def survey(rows: Mapping[str, Sequence[PlanRow]], target: float | None, about: str) -> None:
    """Print what every question of a survey will show, level by level."""
    out, table = console(), _table(["question"], target)
    for name, of_question in rows.items():
        for place, row in enumerate(of_question):
            _add(table, row, [escape(name) if place == 0 else ""])
    print_table(out, table)
    print_sentence(out, _about_columns(about))


def _table(first: Sequence[str], target: float | None) -> Table:
    heads = "level", "std. error (people)", "std. error (share)", "detectable share"
    return make_table(*first, *heads, *(["users for the target"] if target else []))


def _add(table: Table, row: PlanRow, first: Sequence[str]) -> None:
    """Add a row of a forecast to its table."""
    share = row["smallest_share"]
    cells = [
        escape(row["level"]),
        f"{row['stderr_count']:,.1f}",
        f"{row['stderr_share']:.3%}",
        f"{share:.3%}" if share <= 1 else "none",
    ]
    needed = [f"{row['users_for_target']:,}"] if "users_for_target" in row else []
    table.add_row(*first, *cells, *needed)


def _about_columns(about: str) -> str:
    """What the columns of a forecast mean."""
    whom = "people who answer, so without the luck of who does"
    if about == "population":
        whom = "population, so with the luck of who answers"
    return (
        f"Errors of counts are about the people who answer. Shares are of the {whom}. Detectable "
        "share: the smallest that stands out from 0 with a chance of 80 %, at a confidence of 95 %."
    )


def _print_padding(out: Console, facts: PlanFacts) -> None:
    """Say why a padding was chosen, if it was."""
    curve, padding, objective = facts["padding_curve"], facts["padding"], facts["objective"]
    if curve is None or padding is None or objective is None:
        return
    near = [f"{ell}: {value:,.4g}" for ell, value in curve.items() if abs(ell - padding) <= 3]
    out.print(
        f"Padding [bold]{padding}[/bold] has the smallest expected {OBJECTIVES[objective]} "
        f"({', '.join(near)})."
    )
