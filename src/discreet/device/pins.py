"""What a person pins: a collection that asks or promises anything else is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from discreet.errors import DataError, DiscreetError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import looks, quoted
from discreet.survey import Survey
from discreet.survey.told import told_by, told_openly


class PromiseError(DiscreetError):
    """The collection is not what the caller pinned."""


def unlike(survey: Survey, expected: Survey | Policy) -> list[str]:
    """In what a survey is not the one that was expected, or does not ask the only question."""
    if isinstance(expected, Survey):
        return expected.differences(survey)
    if survey.has_several:
        return [f"it has {len(survey.listed)} questions, and you named the policy of one"]
    policy = replace(survey.only.policy, padding=survey.only.mechanism.padding)
    openly = [f"it also asks {quoted(public.name)} openly" for public in survey.public]
    return expected.differences(policy) + openly


def check_budgets(survey: Survey, limit: float | Mapping[str, float], one_way: bool) -> None:
    """Raise PromiseError unless everything that may be drawn stays within the limit: budgets per
    item, or one number for every item and for everything that is sent together.
    """
    for question in survey.listed:
        _refuse_one_way(question.mechanism, one_way)
    if isinstance(limit, Mapping):
        _check_items(survey, limit)
        return
    _refuse_no_budget(limit)
    for question in survey.listed:
        _check_levels(question.mechanism, limit)
    whole = _largest_sum(survey, [_raised(q.mechanism) for q in survey.listed])
    if survey.answers > 1 and whole > limit + 1e-9:
        raise PromiseError(
            f"all answers to this survey together have the budget {whole:.4g}, above the "
            f"{limit:.4g} you allow; do not answer"
        )


def _refuse_one_way(mechanism: Mechanism, one_way: bool) -> None:
    if not mechanism.policy.is_mutual and not one_way:
        raise PromiseError(
            "this survey protects answers one way only: it may become known that an answer is not "
            "yours; do not answer, or accept that (--one-way, one_way=True)"
        )


def _refuse_no_budget(most: object) -> None:
    if isinstance(most, bool) or not isinstance(most, int | float) or not most > 0:
        raise DataError(f"a budget is a positive number, got {most!r}")


def _check_levels(mechanism: Mechanism, most: float) -> None:
    """Every item of a question; open levels were accepted with one-way protection."""
    policy, budgets = mechanism.policy, mechanism.guarantee().budgets
    for item, k in zip(policy.items, policy.level_of, strict=True):
        if not policy.levels[k].budget.is_open:
            _refuse_above(item, budgets[k], most)


def _check_items(survey: Survey, limit: Mapping[str, float]) -> None:
    """The items that are named, in whatever language: what all questions that one device answers
    may tell of each. Whoever names an open item does not accept that it is open.
    """
    if not limit:
        raise DataError("max_epsilon names no item; give a number, or {item: budget}")
    tellings = []
    for question in survey.listed:
        by_look: dict[str, float] = {}
        told = told_by(survey, question, question.mechanism.guarantee().budgets)
        for label, budget in told.by_label():
            for look in looks(label):
                by_look[look] = max(by_look.get(look, 0.0), budget)
        tellings.append(by_look)
    for item, most in limit.items():
        _refuse_no_budget(most)
        here = looks(item)
        _refuse_openly(survey, item)
        told_of = [[by[look] for look in here if look in by] for by in tellings]
        if not any(told_of):
            raise PromiseError(
                f'"{item}", for which you pinned a budget, is not an item of this survey; '
                "do not answer"
            )
        _refuse_above(item, _largest_sum(survey, [max(b, default=0.0) for b in told_of]), most)


def _refuse_openly(survey: Survey, item: str) -> None:
    """Whoever pins a budget for an item does not accept that a public question tells of it."""
    here = set(looks(item))
    for public in survey.public:
        told = [public.name, *told_openly(survey, public)]
        if any(not here.isdisjoint(looks(label)) for label in told):
            raise PromiseError(
                f'"{item}", for which you pinned a budget, is asked openly in the question '
                f"{quoted(public.name)}; do not answer"
            )


def _refuse_above(item: str, budget: float, most: float) -> None:
    if budget > most + 1e-9:
        raise PromiseError(
            f'"{item}" has budget {budget:.4g} in this collection, above the {most:.4g} '
            "you allow; do not answer"
        )


def _largest_sum(survey: Survey, budgets: Iterable[float]) -> float:
    """Of the questions that one device may answer."""
    return math.fsum(sorted(budgets, reverse=True)[: survey.answers])


def _raised(mechanism: Mechanism) -> float:
    """What a report tells in all; of raised odds alone where only these have a limit."""
    guarantee = mechanism.guarantee()
    return guarantee.ldp_epsilon if guarantee.is_mutual else guarantee.raise_epsilon


def read_limit(most: float | None) -> float | None:
    """A cap on a sum of budgets, or none."""
    number = isinstance(most, int | float) and not isinstance(most, bool)
    if most is not None and not (number and most > 0):
        raise DataError(f"max_total is a positive number, got {most!r}")
    return most
