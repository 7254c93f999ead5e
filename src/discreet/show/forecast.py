"""What a survey will show, before anybody is asked: for `discreet new` and the desk."""

from __future__ import annotations

import math
from typing import TypedDict

from discreet.designs.surveys import design_survey
from discreet.promises.words import finite
from discreet.show import facts, outlook
from discreet.survey import Question, Survey
from discreet.survey.reading import SurveyFile


class LevelForecast(TypedDict):
    """A level: the factor on the odds, and the smallest share that will probably be seen."""

    name: str
    epsilon: str
    factor: float | None  # None: no limit
    sees: float


class QuestionForecast(TypedDict):
    """What the people who draw a question will show."""

    name: str
    text: str
    items: int
    people: int
    sentences: list[str]
    warnings: list[str]
    levels: list[LevelForecast]


class SurveyForecast(TypedDict):
    """A survey with so many people."""

    name: str
    users: int
    answers: int
    groups: int
    caution: str
    promise: str
    fingerprint: str
    questions: list[QuestionForecast]


def forecast(draft: SurveyFile, users: int) -> tuple[Survey, SurveyForecast]:
    """Design the survey of a draft and say what so many people will show."""
    made = design_survey(draft)
    return made, tell(made, users)


def tell(made: Survey, users: int) -> SurveyForecast:
    """Say what so many people will show."""
    promise = made.promise()
    people = facts.share_evenly(made, users)
    return {
        "name": made.name,
        "users": users,
        "answers": made.answers,
        "groups": made.group_count,
        "caution": promise.caution,
        "promise": promise.sentence,
        "fingerprint": made.fingerprint,
        "questions": [_question(q, people[q.name]) for q in made.listed],
    }


def _question(question: Question, people: int) -> QuestionForecast:
    mechanism, policy = question.mechanism, question.policy
    noises = outlook.noises(mechanism, "uniform")
    rows = zip(policy.levels, mechanism.guarantee().factors, noises, strict=True)
    return {
        "name": question.name,
        "text": policy.question,
        "items": policy.m,
        "people": people,
        "sentences": outlook.sentences(mechanism, people),
        "warnings": facts.warnings(policy),
        "levels": [
            {
                "name": level.name,
                "epsilon": level.budget.text,
                "factor": finite(factor),
                "sees": min(1.0, _visible(noise, people)),
            }
            for level, factor, noise in rows
        ],
    }


def _visible(noise: outlook.Noise, people: int) -> float:
    share = outlook.visible_share(noise, people)
    return share if math.isfinite(share) else 1.0
