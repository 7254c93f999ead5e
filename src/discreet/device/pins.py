"""What a person pins: a collection that asks or promises anything else is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from discreet.errors import DataError, DiscreetError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import looks
from discreet.survey import Survey


class PromiseError(DiscreetError):
    """The collection is not what the caller pinned."""


def unlike(survey: Survey, expected: Survey | Policy) -> list[str]:
    """In what a survey is not the one that was expected, or does not ask the only question."""
    if isinstance(expected, Survey):
        return expected.differences(survey)
    if len(survey.listed) > 1:
        return [f"it has {len(survey.listed)} questions, and you named the policy of one"]
    policy = replace(survey.only.policy, padding=survey.only.mechanism.padding)
    return expected.differences(policy)


def check_budgets(survey: Survey, limit: float | Mapping[str, float], one_way: bool) -> None:
    """Raise PromiseError unless everything that may be drawn stays within the limit: of every item,
    and one number also of everything that is sent together.
    """
    if isinstance(limit, Mapping):
        there = {look for q in survey.listed for item in q.policy.items for look in looks(item)}
        unknown = [item for item in limit if there.isdisjoint(looks(item))]
        if unknown:
            raise PromiseError(
                f'"{min(unknown)}", for which you pinned a budget, is not an item of this survey; '
                "do not answer"
            )
    for question in survey.listed:
        _check_question(question.mechanism, limit, one_way)
    whole = survey.promise().epsilon if survey.answers > 1 else 0.0
    if not isinstance(limit, Mapping) and math.inf > whole > limit + 1e-9:
        raise PromiseError(
            f"all answers to this survey together have the budget {whole:.4g}, above the "
            f"{limit:.4g} you allow; do not answer"
        )


def _check_question(
    mechanism: Mechanism, limit: float | Mapping[str, float], one_way: bool
) -> None:
    policy = mechanism.policy
    if not policy.is_mutual and not one_way:
        raise PromiseError(
            "answers of this collection are protected one way only: that one is not yours may "
            "become known; do not answer, or accept that (--one-way, one_way=True)"
        )
    named = isinstance(limit, Mapping)  # whoever names an open item does not accept that it is open
    levels = [
        0.0 if level.budget.is_open and not named else budget
        for level, budget in zip(policy.levels, mechanism.guarantee().budgets, strict=True)
    ]
    given = limit if isinstance(limit, Mapping) else {}
    pinned: dict[str, float] = {}  # by every look of its item; of two pins the smaller counts
    for item, most in [*given.items(), *([] if isinstance(limit, Mapping) else [("", limit)])]:
        if isinstance(most, bool) or not isinstance(most, int | float) or not most > 0:
            raise DataError(f"a budget is a positive number, got {most!r}")
        for look in looks(item):
            pinned[look] = min(pinned.get(look, math.inf), most)
    for item, k in zip(mechanism.policy.items, mechanism.policy.level_of, strict=True):
        most = (
            min(pinned.get(look, math.inf) for look in looks(item))
            if isinstance(limit, Mapping)
            else limit
        )
        if levels[k] > most + 1e-9:
            raise PromiseError(
                f'"{item}" has budget {levels[k]:.4g} in this collection, above the {most:.4g} '
                "you allow; do not answer"
            )


def read_limit(most: float | None) -> float | None:
    """A cap on a sum of budgets, or none."""
    number = isinstance(most, int | float) and not isinstance(most, bool)
    if most is not None and not (number and most > 0):
        raise DataError(f"max_total is a positive number, got {most!r}")
    return most
