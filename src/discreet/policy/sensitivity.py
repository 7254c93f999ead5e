"""Words for budgets: how sensitive an answer is, for people who do not think in epsilons."""

from __future__ import annotations

from typing import NamedTuple


class Sensitivity(NamedTuple):
    """A word, its budget, the factor on the odds that the budget allows, and when to choose it."""

    name: str
    epsilon: str
    factor: int
    when: str


# The largest is twice the smallest: beyond, a level gains nothing beside the most sensitive one.
SENSITIVITIES = (
    Sensitivity("very sensitive", "ln(3)", 3, "could cost somebody their job, safety or family"),
    Sensitivity("sensitive", "ln(4)", 4, "people tell it to few others"),
    Sensitivity("private", "ln(6)", 6, "people tell it to friends, but not to strangers"),
    Sensitivity("hardly sensitive", "ln(9)", 9, "most people would tell it to anybody"),
)


class Step(NamedTuple):
    """How far neighbouring answers of a scale may be told apart: a word, the budget per step, the
    factor on the odds, and when to choose it.
    """

    name: str
    epsilon: str
    factor: float
    when: str


STEPS = (
    Step("strong", "ln(3/2)", 1.5, "even a rough place on the scale is sensitive"),
    Step("medium", "ln(2)", 2, "neighbouring answers are hard to tell apart, the ends less so"),
    Step("light", "ln(3)", 3, "most people would tell roughly where they stand"),
)
