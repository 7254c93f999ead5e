"""The forecast of a survey of several questions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from discreet.cli.group import print_json

if TYPE_CHECKING:
    from discreet.arrays.types import Prior
    from discreet.designs.task import DesignOptions
    from discreet.mechanism import Mechanism
    from discreet.show.shapes import PlanRow
    from discreet.survey import Survey
    from discreet.survey.reading import SurveyFile


def plan_survey(
    draft: SurveyFile,
    users: int,
    options: DesignOptions,
    target: float | None,
    about: str,
    as_json: bool,
) -> None:
    """Print what every number of answers per person costs, and what each question will show."""
    from discreet.designs.surveys import compare, design_survey
    from discreet.show import facts, forecasts, outlook, surveys
    from discreet.show.group_sizes import smallest_group
    from discreet.show.layout import console, print_sentence

    outlook.check_target(target)
    rows = compare(draft, options)
    made = design_survey(draft, **options)
    people = max(users * made.answers // len(made.listed), 1)
    prior = options.get("prior", "uniform")
    prior = "uniform" if isinstance(prior, str) else prior
    shown = {q.name: outlook.sentences(q.mechanism, people, prior, about) for q in made.listed}
    forecast = {
        q.name: _forecast(made, q.mechanism, people, prior, target, about) for q in made.listed
    }
    published = facts.publish(made, facts.share_evenly(made, users))
    if as_json:
        listed = [{"answers": r.answers, "total": r.total, "errors": r.errors} for r in rows]
        print_json(
            {
                "name": made.name,
                "users": users,
                "answers": made.answers,
                "people_per_question": people,
                "groups": made.group_count,
                "smallest_group": smallest_group(users, made.group_count),
                "compared": listed,
                "about": about,
                "target_error": target,
                "forecast": forecast,
                "visible": shown,
                "published": published,
            }
        )
        return
    surveys.compare_answers(made, rows, users)
    forecasts.survey(forecast, target, about)
    for name, sentences in shown.items():
        click.echo(f"{name}:")
        for sentence in sentences:
            surveys.bullet(sentence)
    print_sentence(console(), published)


def _forecast(
    survey: Survey,
    mechanism: Mechanism,
    people: int,
    prior: Prior,
    target: float | None,
    about: str,
) -> list[PlanRow]:
    """What the people who draw a question show of it. The people that a target needs are those of
    the whole survey, of whom only some draw the question.
    """
    from discreet.show.facts import forecast_levels

    rows = forecast_levels(mechanism, people, prior, target, about)
    for row in rows:
        if "users_for_target" in row:
            row["users_for_target"] = math.ceil(
                row["users_for_target"] * len(survey.listed) / survey.answers
            )
    return rows
