"""What the terminal shows of a survey as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape

from discreet.show import facts, group_sizes
from discreet.show.layout import console, make_table, print_sentence, print_table

_COLUMNS = 5  # questions that a row shows one by one

if TYPE_CHECKING:
    from discreet.designs.surveys import Answering
    from discreet.survey import Survey


def survey(survey: Survey, published: str) -> None:
    """Print what a survey asks, and what it promises about everything that a person sends; then
    how large groups will be, and what the results alone tell.
    """
    out, promise = console(), survey.promise()
    out.print(f"[bold]{escape(survey.name)}[/bold]: {len(survey.listed)} questions")
    for sentence in (promise.drawn, promise.caution or promise.sentence):
        if sentence:
            print_sentence(out, escape(sentence))
    if survey.public:
        groups(survey)
    print_sentence(out, published)


def groups(survey: Survey) -> None:
    """Print how large the groups of public questions will be."""
    print_sentence(console(), escape(group_sizes.sentence(survey, facts.PUBLISHED)))


def compare_answers(survey: Survey, rows: Sequence[Answering], users: int) -> None:
    """Print what every number of answers per person costs, question by question."""
    out, names = console(), list(survey.questions)
    out.print(f"[bold]{escape(survey.name)}[/bold]: forecast for {users:,} people")
    few = len(names) <= _COLUMNS
    table = make_table("answers per person", *(escape(n) for n in names if few), "sum of errors")
    for row in rows:
        mark = "[bold]" if row.answers == survey.answers else ""
        errors = [f"{error:.4g}" for error in row.errors if few]
        table.add_row(f"{mark}{row.answers}", *errors, f"{row.total:.4g}")
    print_table(out, table)
    people = users * survey.answers // len(names)
    print_sentence(
        out,
        f"Errors are expected total MSE / n about everyone. Here each person answers "
        f"{survey.answers} of {len(names)} questions, so about {people:,} people answer each.",
    )
    if survey.public:
        print_sentence(out, escape(group_sizes.sentence(survey, users)))


def bullet(sentence: str) -> None:
    """Print a sentence of a list."""
    print_sentence(console(), sentence, mark="  • ")
