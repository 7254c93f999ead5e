"""What people will be able to see with so many answers, in sentences; and the budgets that a wanted
error needs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from statistics import NormalDist
from typing import Any, NamedTuple

from discreet.arrays import theory
from discreet.arrays.types import Prior
from discreet.designs import design
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Budget, Policy
from discreet.policy.labels import quoted

_SURE, _LIKELY = 1.959964, 0.841621  # 95 % confidence, and a chance of 80 % to see what is there
_MISSED = "more than 1 time in 5"  # the other side of _LIKELY
_TYPICAL = 0.1  # the share at which a difference is judged
_BLIND = 0.25  # a level of which only larger shares are seen has too few people
_WANTED = 0.05  # the share that advice aims at
_LISTED = 12  # levels that get a sentence


class Noise(NamedTuple):
    """The noise of one level's items, per person: n Var of the share p of an item is absent +
    slope p - bend p^2; and the largest score of a report.
    """

    absent: float
    slope: float = 1.0
    bend: float = 1.0
    step: float = 0.0

    def at(self, share: float) -> float:
        """n Var of the share of an item that so many hold."""
        p = min(share, 1.0)
        return self.absent + max(self.slope * p - self.bend * p**2, 0.0)


def visible_share(noise: Noise, users: int, items: int = 1) -> float:
    """The smallest share that stands out from zero with a chance of 80 %, where so many items are
    looked at together.
    """
    sure, share = _sure_of(items), 0.0
    for _ in range(60):  # p = (1.96 sd(0) + 0.84 sd(p)) / sqrt(n) + step / 2n, from below
        both = sure * math.sqrt(noise.absent) + _LIKELY * math.sqrt(noise.at(share))
        share = both / math.sqrt(users) + noise.step / 2 / users
    return share


def users_needed(noise: Noise, share: float, items: int = 1) -> int:
    """How many people it takes until such a share stands out with a chance of 80 %."""
    both = _sure_of(items) * math.sqrt(noise.absent) + _LIKELY * math.sqrt(noise.at(share))
    # share = both x + step / 2 x^2 with x = 1 / sqrt(n)
    x = 2 * share / (both + math.sqrt(both**2 + 2 * noise.step * share))
    return math.ceil(1 / x**2)


def _sure_of(items: int) -> float:
    """Standard errors of intervals that hold for so many items together, with 95 %."""
    return NormalDist().inv_cdf(1 - (1 - 0.95 ** (1 / items)) / 2)


def visible_difference(noise: Noise, users: int, items: int) -> float:
    """The smallest difference between two halves of the people that `compare`, which looks at all
    items together, calls certain with a chance of 80 %; one half has a share of 10 %.
    """
    sure = _sure_of(items)
    half, difference = users / 2, 0.0
    margin = math.sqrt(2) * (0.5 + (sure**2 - 1) / 6) * noise.step / half
    for _ in range(60):
        both = noise.at(_TYPICAL) + noise.at(_TYPICAL + difference)
        difference = (sure + _LIKELY) * math.sqrt(both / half) + margin
    return difference


def noises(mechanism: Mechanism, prior: Prior, about: str = "population") -> list[Noise]:
    """The noise of every level; about the population with the luck of who was drawn, p (1 - p)."""
    d, scale = mechanism.arrays.decoder, mechanism.scale
    steps = scale * abs(d.weight).max(axis=0)
    absent = theory.absent_variance(mechanism, prior)
    luck = float(about == "population")
    return [
        Noise(float(variance), float(scale * d.slope[group]) - 1 + luck, luck, float(steps[group]))
        for variance, group in zip(absent, mechanism.groups, strict=True)
    ]


def sentences(
    mechanism: Mechanism, users: int, prior: Prior = "uniform", about: str = "population"
) -> list[str]:
    """What so many people will show, level by level, and advice where that is next to nothing."""
    levels = mechanism.policy.levels
    several = len(levels) > 1
    lines, poor = [], []
    for level, noise in list(zip(levels, noises(mechanism, prior, about), strict=True))[:_LISTED]:
        share = visible_share(noise, users)
        compared = mechanism.m + len(mechanism.policy.totals)
        difference = visible_difference(noise, users, compared)
        of_level = f" {quoted(level.name)}" if several else ""
        if share >= 1:
            lines.append(
                f"With {users:,} people you may miss ({_MISSED}) anything{of_level}, "
                "however common it is."
            )
        else:
            lines.append(
                f"With {users:,} people you may miss ({_MISSED}) anything{of_level} "
                f"rarer than {_percent(share)}; {_shows(difference, users // 2)}."
            )
        if share > _BLIND:
            poor.append((level.name, noise.absent))
    if poor:
        name, worst = max(poor, key=lambda row: row[1])
        people = math.ceil(worst * ((_SURE + _LIKELY) / _WANTED) ** 2)
        digits = 10 ** max(0, len(str(people)) - 2)
        lines.append(
            f"These are few people for such budgets: to see {_percent(_WANTED)} of "
            f"{quoted(name)} takes about {-(-people // digits) * digits:,}. Ask more people, ask "
            "for fewer and broader answers, or find the budgets that would do with --solve epsilon."
        )
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def _shows(difference: float, half: int) -> str:
    groups = f"between two groups of {half:,}"
    if difference >= 0.995:
        return f"no difference {groups} will show"
    return f"a difference {groups} shows from {100 * difference:.2g} points on"


def solve_budgets(
    policy: Policy,
    users: int,
    target: float,
    prior: Prior = "uniform",
    about: str = "population",
    **options: Any,
) -> Policy:
    """The same policy with all budgets multiplied by the smallest number, to about 1 %, for which
    no level's standard error of a share exceeds the target.
    """
    check_target(target)

    def error(factor: float) -> float:
        mechanism = design(scaled(policy, factor), prior=prior, **options)
        shares = "uniform" if isinstance(prior, str) else prior
        return math.sqrt(float(theory.share_variance(mechanism, shares, about).max()) / users)

    largest = max(float(level.budget) for level in policy.levels)
    low, high = math.log(0.01 / largest), math.log(16 / largest)
    if error(math.exp(high)) > target:
        raise DesignError(
            f"no budgets up to 16 that compare like these give a standard error of {target:g} with "
            f"{users:,} people (shares of the {about}); ask more people, or accept a larger error"
        )
    if error(math.exp(low)) <= target:
        return scaled(policy, math.exp(low))
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if error(math.exp(middle)) <= target else (middle, high)
    return scaled(policy, math.exp(high))


def check_target(target: float | None) -> None:
    """Refuse a target that is no share."""
    if target is not None and not 1e-9 <= target <= 1:
        raise DesignError(f"the target error = {target} must be a share from 1e-9 to 1")


def scaled(policy: Policy, factor: float) -> Policy:
    """The policy with all budgets multiplied: the smallest to three digits, the others such that
    they compare with it as before. They are rounded down, because a budget that is a little above
    the sum of two smaller ones gains nothing.
    """
    smallest = min(float(level.budget) for level in policy.levels)
    unit = float(f"{smallest * factor:.3g}")

    def times(budget: Budget) -> Budget:
        exact = Decimal(repr(round(float(budget) / smallest * unit, 12)))
        digits = Decimal(1).scaleb(exact.adjusted() - 5)
        return Budget.parse(f"{exact.quantize(digits, ROUND_DOWN).normalize():f}")

    levels = tuple(replace(level, budget=times(level.budget)) for level in policy.levels)
    pairs = tuple(
        pair if pair.budget is None else replace(pair, budget=times(pair.budget))
        for pair in policy.pairs
    )
    return replace(policy, levels=levels, pairs=pairs)
