"""The notions: rules that give the budget of every ordered pair of levels from the levels' budgets.

To add a notion: an entry of `NOTIONS` here and in notions.js, and a row of the designs that can
serve it. A notion without a closed check is checked pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from discreet.policy.budgets import Budget

# twice r is the least of the sums of these budgets; None: not protected
PairBudget = tuple[tuple[Budget, ...], ...] | None


class Notion(NamedTuple):
    """A rule for pair budgets."""

    # of level i over level j; the last argument is the cap of a scale, in steps
    pair: Callable[[Sequence[Budget], int, int, int | None], PairBudget]
    # the longest of the shortest paths from a budget to the largest other one, where there is a
    # formula for it; the arguments are these two and the smallest of all
    reach: Callable[[float, float, float], float] | None = None
    mutual: bool = True  # r[l, c] is r[c, l]; otherwise it may be infinite in one direction alone
    for_lists: bool = True  # whole lists can be protected by it
    complete: bool = True  # protects every pair of answers, but for open levels
    ordered: bool = False  # the levels are points in an order, one item each


def _smaller(budgets: Sequence[Budget], i: int, j: int, cap: int | None) -> PairBudget:
    return (budgets[i], budgets[i]), (budgets[j], budgets[j])


def _mean(budgets: Sequence[Budget], i: int, j: int, cap: int | None) -> PairBudget:
    return ((budgets[i], budgets[j]),)


def _own(budgets: Sequence[Budget], i: int, j: int, cap: int | None) -> PairBudget:
    return None if budgets[i].is_open else ((budgets[i], budgets[i]),)


def _within(budgets: Sequence[Budget], i: int, j: int, cap: int | None) -> PairBudget:
    return ((budgets[i], budgets[i]),) if i == j else None


def _steps(budgets: Sequence[Budget], i: int, j: int, cap: int | None) -> PairBudget:
    steps = abs(i - j) if cap is None else min(abs(i - j), cap)
    return ((budgets[i],) * (2 * steps),) if steps else None  # a point has one answer


NOTIONS = {
    # Lemma 1: two answers are also protected through a third one of the smallest budget
    "min": Notion(_smaller, lambda own, other, least: min(own, other, 2 * least)),
    "avg": Notion(_mean, lambda own, other, least: (own + other) / 2),
    # an answer is protected by its own budget, whatever the other one is; levels may be open
    "one-way": Notion(_own, lambda own, other, least: own, mutual=False, for_lists=False),
    # which level an answer is in becomes known
    "blocks": Notion(_within, for_lists=False, complete=False),
    # every level is a point, in their order; a budget per step between two points
    "scale": Notion(_steps, for_lists=False, ordered=True),
}
