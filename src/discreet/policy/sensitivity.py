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
