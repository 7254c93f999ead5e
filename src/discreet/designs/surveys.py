"""From a survey file to a survey: how many questions each device answers, and their mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from discreet.arrays import theory
from discreet.check.document import is_document
from discreet.designs import design
from discreet.designs.task import DesignOptions
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.survey import Question, Survey
from discreet.survey.reading import ALL, AUTO, SurveyFile, from_document, load


class Answering(NamedTuple):
    """What it costs to let every device answer so many questions: the total MSE / n per question,
    about everyone, where only some of the people drew it.
    """

    answers: int
    errors: tuple[float, ...]

    @property
    def total(self) -> float:
        """The sum over the questions."""
        return sum(self.errors)


def design_survey(
    source: object, answers: int | str | None = None, **options: Unpack[DesignOptions]
) -> Survey:
    """Design every question of a survey file, of its content, or of a draft. `answers` replaces the
    file's; `options` are those of `design`.
    """
    draft = read_draft(source)
    count = _count(draft, draft.answers if answers is None else answers, options)
    mechanisms = design_at(draft, count, options)
    listed = [Question(name, made, draft.crosses.get(name)) for name, made in mechanisms.items()]
    return Survey(draft.name, listed, draft.about, count, draft.public, draft.translations)


def survey_from_file(path: str, options: DesignOptions) -> Survey:
    """Load the survey in a file; one that is not designed yet is designed with these options."""
    if not is_document(path):
        return design_survey(path, **options)
    if options:
        raise DesignError(f"{path} is designed already; leave out {', '.join(options)}")
    return Survey.load(path)


def read_draft(source: object) -> SurveyFile:
    """A draft from a path, from the content of a file, or itself; a policy is one of one
    question.
    """
    if isinstance(source, SurveyFile):
        return source
    if isinstance(source, str | Path):
        return load(source)
    if isinstance(source, Policy):
        return SurveyFile("survey", {"question": source})
    if isinstance(source, dict):
        return from_document(source)
    raise DesignError(
        f"a survey is designed from a file or its content, got {type(source).__name__}"
    )


def design_at(draft: SurveyFile, answers: int, options: DesignOptions) -> dict[str, Mechanism]:
    """The mechanisms, by name, if every device answers so many questions."""
    return {
        name: design(policy.divided(answers), **options) for name, policy in draft.policies.items()
    }


def _count(draft: SurveyFile, answers: int | str, options: DesignOptions) -> int:
    most = len(draft.policies)
    if answers == ALL:
        return most
    if answers == AUTO:
        return min(compare(draft, options), key=lambda row: row.total).answers
    if not isinstance(answers, int) or not 1 <= answers <= most:
        raise DesignError(
            f"answers = {answers} must be from 1 to {most}, the number of questions (crossed ones "
            "included)"
        )
    return answers


def compare(draft: SurveyFile, options: DesignOptions) -> list[Answering]:
    """What every number of answers costs: (Q/h) T_q(eps/h) + (Q/h - 1)(1 - sum of pi^2) per
    question, T the expected total MSE / n. The second term is the luck of who draws the question.
    """
    most = len(draft.policies)
    options = {**options, "certify": False}
    return [
        Answering(h, tuple(_error(made, most / h, options) for made in mechanisms.values()))
        for h in range(1, most + 1)
        for mechanisms in [design_at(draft, h, options)]
    ]


def _error(mechanism: Mechanism, share: float, options: DesignOptions) -> float:
    prior = options.get("prior", "uniform")
    at = "uniform" if isinstance(prior, str) and prior == "worst" else prior
    held = theory.item_shares(mechanism.policy, at, mechanism.padding)
    luck = (
        float(np.sum(held * (1 - held))) if mechanism.policy.kind.lists else 1 - float(held @ held)
    )
    return share * mechanism.expected_mse(prior) + (share - 1) * luck
