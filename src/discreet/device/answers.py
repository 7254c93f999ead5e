"""Answers to a survey, given by the names of its questions. An error never repeats an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.device.perturb import places
from discreet.errors import DataError
from discreet.policy.labels import quoted
from discreet.survey import Survey
from discreet.survey.crosses import cell

if TYPE_CHECKING:
    from discreet.policy.types import Answer

Answers = Mapping[str, "Answer"]  # by the names of the questions, public ones too


def by_name(survey: Survey, answer: Answer | Answers) -> Answers:
    """The answers by question. An error never repeats an answer."""
    if not isinstance(answer, Mapping):
        if survey.has_several or survey.public:
            names = ", ".join(quoted(name) for name in asked_names(survey))
            raise DataError(f"this survey asks {names}; give the answers by name")
        return {survey.only.name: answer}
    known = asked_names(survey)
    for name in answer:
        if name not in known:
            names = ", ".join(map(quoted, known))
            raise DataError(f"{quoted(name)} is not a question of this survey; it asks {names}")
    return answer


def asked_names(survey: Survey) -> list[str]:
    """The names of what a person is asked: public questions, then the others."""
    openly = [public.name for public in survey.public]
    return openly + [question.name for question in survey.listed if question.of is None]


def public_places(survey: Survey, answers: Answers) -> list[int]:
    """The places of the public answers."""
    places = []
    for public in survey.public:
        answer = answers.get(public.name)
        if not isinstance(answer, str) or answer not in public.items:
            listed = ", ".join(map(quoted, public.items[:10]))
            raise DataError(f'the public question "{public.name}" needs one of {listed}')
        places.append(public.items.index(answer))
    return places


def perturb_one(survey: Survey, name: str, answers: Answers) -> tuple[int, bytes]:
    """The place of a question, and a fresh report on it."""
    place = next(k for k, question in enumerate(survey.listed) if question.name == name)
    question = survey.listed[place]
    needed = question.of or (name,)
    for one in needed:
        if one not in answers:
            raise DataError(f"the question {quoted(one)} was drawn and has no answer")
    if question.of is None:
        return place, question.mechanism.perturb(answers[name])
    labels = []
    for one in needed:
        policy = survey.question(one).policy
        labels.append(policy.items[places(survey.question(one).mechanism, answers[one])[0]])
    return place, question.mechanism.perturb(cell(labels[0], labels[1]))
