"""How large the groups of public questions will be: people are found in small ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from discreet.policy.labels import quoted
from discreet.survey import Public, Survey

_MANY = 1_000  # people per group from which their number is nearly normal


def smallest_group(people: float, groups: int) -> int:
    """The median size of the smallest of so many groups, if a person is as likely in each.

    >>> smallest_group(10_000, 1), smallest_group(10_000, 100), smallest_group(100, 100)
    (10000, 76, 0)
    """
    if groups == 1:
        return math.floor(people)
    mean = people / groups
    chance = -math.expm1(-math.log(2) / groups)  # that one group is at most so large
    if mean >= _MANY:
        return max(0, round(mean + math.sqrt(mean) * NormalDist().inv_cdf(chance)))
    size, below = 0, math.exp(-mean)
    while below < chance:
        size += 1
        below += math.exp(size * math.log(mean) - mean - math.lgamma(size + 1))
    return size


def sentence(survey: Survey, users: int) -> str:
    """What to expect of the groups of a survey that so many people answer."""
    share = survey.answers / len(survey.listed)
    return describe_least(survey.public, survey.about.least, users, share)


def describe_least(public: Sequence[Public], least: int, users: int, share: float = 1) -> str:
    """The same by its public questions, the least answers that are shown, and the share of the
    people who answer a question.
    """
    names = ", ".join(quoted(x.name) for x in public)
    count = math.prod(len(x.items) for x in public)
    people, answers = (smallest_group(x, count) for x in (users, users * share))
    each = f", with {answers:,} answers to each question" if share < 1 else ""
    told = (
        f"Asked and sent openly: {names}. If {users:,} people answer, your smallest of "
        f"{count:,} groups will have about {people:,} people{each}, and fewer if some groups are "
        "rare."
    )
    if answers < least:
        told += f" Below {least} answers a group is shown to nobody without the token."
    return told
