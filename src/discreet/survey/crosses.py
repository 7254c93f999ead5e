"""Crossed questions: one question about the pairs of answers to two others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

from discreet.errors import PolicyError
from discreet.policy import Budget, Level, Policy
from discreet.policy.kinds import Kind

NOTIONS = ("min", "avg")  # of questions that can be crossed
MOST_CELLS = 100_000
_BETWEEN = " × "


def cell(first: str, second: str) -> str:
    """The label of a pair of answers.

    >>> cell("young", "flu")
    'young × flu'
    """
    return f"{first}{_BETWEEN}{second}"


def cross(first: Policy, second: Policy, question: str = "") -> Policy:
    """The question whose items are the pairs. The budget of a pair is the smaller of its two, so an
    answer is protected in the pair at least as much as in its own question.

    >>> age, ill = Policy.from_budgets({"young": 2, "old": 2}), Policy.from_budgets({"flu": 1})
    >>> cross(age, ill).items, cross(age, ill).smallest
    (('young × flu', 'old × flu'), Budget('1'))
    """
    for policy in (first, second):
        if policy.kind is not Kind.SINGLE or policy.notion not in NOTIONS or policy.pairs:
            raise PolicyError(
                'only questions of kind "single" under the notion "min" or "avg", without explicit '
                "pair budgets, can be crossed"
            )
    if first.notion != second.notion:
        raise PolicyError(
            f'crossed questions have one notion, got "{first.notion}" and "{second.notion}"'
        )
    if first.m * second.m > MOST_CELLS:
        raise PolicyError(
            f"{first.m} × {second.m} answers are more than the {MOST_CELLS:,} cells of a cross"
        )
    items: list[str] = []
    levels: list[Level] = []
    places: dict[Budget, int] = {}
    level_of: list[int] = []
    for i, one in enumerate(first.items):
        for j, two in enumerate(second.items):
            items.append(cell(one, two))
            pair = first.levels[first.level_of[i]], second.levels[second.level_of[j]]
            stricter = min(pair, key=lambda level: float(level.budget))
            if stricter.budget not in places:
                places[stricter.budget] = len(levels)
                levels.append(Level(_new_name(stricter.name, levels), stricter.budget))
            level_of.append(places[stricter.budget])
    return Policy(tuple(items), tuple(level_of), tuple(levels), first.notion, question=question)


def _new_name(name: str, levels: Sequence[Level]) -> str:
    """The name of a level of a crossed question: that of the stricter of the two, unless another
    budget has taken it.
    """
    taken = {level.name for level in levels}
    names = chain([name], (f"{name} {k}" for k in count(2)))
    return next(new for new in names if new not in taken)


def margins(first: Policy, second: Policy, axis: int) -> list[list[int]]:
    """The cells that each answer of the first (axis 0) or second (axis 1) question sums.

    >>> age, ill = Policy.from_budgets({"young": 2, "old": 2}), Policy.from_budgets({"flu": 1})
    >>> margins(age, ill, 1)
    [[0, 1]]
    """
    if axis == 0:
        return [[i * second.m + j for j in range(second.m)] for i in range(first.m)]
    return [[i * second.m + j for i in range(first.m)] for j in range(second.m)]
