"""The forecast of a survey of several questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from discreet.cli.group import print_json

if TYPE_CHECKING:
    from discreet.designs.task import DesignOptions
    from discreet.survey.reading import SurveyFile


def plan_survey(draft: SurveyFile, users: int, options: DesignOptions, as_json: bool) -> None:
    """Print what every number of answers per person costs, and what each question will show."""
    from discreet.designs.surveys import compare, design_survey
    from discreet.show import outlook, surveys

    rows = compare(draft, options)
    made = design_survey(draft, **options)
    people = users * made.answers // len(made.listed)
    shown = {
        q.name: outlook.sentences(q.mechanism, max(people, 1), options.get("prior", "uniform"))
        for q in made.listed
    }
    if as_json:
        listed = [{"answers": r.answers, "total": r.total, "errors": r.errors} for r in rows]
        print_json(
            {
                "name": made.name,
                "users": users,
                "answers": made.answers,
                "people_per_question": people,
                "groups": made.group_count,
                "compared": listed,
                "visible": shown,
            }
        )
        return
    surveys.compare_answers(made, rows, users)
    for name, sentences in shown.items():
        click.echo(f"{name}:")
        for sentence in sentences:
            surveys.bullet(sentence)
