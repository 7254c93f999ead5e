"""Ordered questions: the mean of a scale, and the shares of people up to each point.

Points have the values 1, 2, 3 and so on. The mean is a sum of values times shares, so every report
has a score for it, whose mean square is known exactly for each answer. The cumulative shares are
sums of items (totals.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.types import Floats
from discreet.errors import DataError
from discreet.estimates.formulas import check_about, quantile
from discreet.estimates.intervals import freedom
from discreet.estimates.table import Row
from discreet.estimates.weights import Weighting, effect, unexplained
from discreet.mechanism import Mechanism
from discreet.policy import Policy

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate


def cumulative(policy: Policy) -> dict[str, list[int]]:
    """The items up to each point of a scale but the last, under a name; empty for other questions.

    >>> cumulative(Policy.from_scale(["never", "rarely", "often"]))
    {'up to rarely': [0, 1]}
    """
    if not policy.rule.ordered:
        return {}
    taken = {*policy.items, *(total.name for total in policy.totals)}
    sums = {f"up to {policy.items[k]}": list(range(k + 1)) for k in range(1, policy.m - 1)}
    return {name: places for name, places in sums.items() if name not in taken}


def has_mean(estimate: Estimate) -> bool:
    """Whether the mean and its error can be told: of a scale, unless subsets of several answers tie
    them together.
    """
    mechanism = estimate.mechanism
    return mechanism.policy.rule.ordered and (
        not mechanism.encoding.fixed_size or _is_silent(mechanism)
    )


def _is_silent(mechanism: Mechanism) -> bool:
    """Whether reports name nothing: every point is a group, and the part alone tells it."""
    return len(mechanism.group_sizes) == mechanism.m and not mechanism.arrays.own.any()


def mean_sentence(estimate: Estimate, confidence: float, about: str) -> str:
    """What the mean of a scale is; empty for other questions."""
    points = estimate.mechanism.policy.items
    if not has_mean(estimate):
        return ""
    row = mean(estimate, None, confidence, about)
    return (
        f"Mean: {row['mean']:.3g} ({100 * confidence:.4g} % interval {row['low']:.3g} to "
        f"{row['high']:.3g}), from 1 ({points[0]}) to {len(points)} ({points[-1]})."
    )


def mean(
    estimate: Estimate,
    values: Sequence[float] | None,
    confidence: float,
    about: str,
) -> Row:
    """The mean of the values of people's answers, with its standard error and interval."""
    mechanism = estimate.mechanism
    if not mechanism.policy.rule.ordered:
        raise DataError(
            "only an ordered question has a mean; make one with scale = … in the policy"
        )
    if not has_mean(estimate):
        raise DataError(
            f'the error of a mean is not known for model = "{mechanism.model}"; use subset'
        )
    a = _values(values, mechanism.m)
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise DataError(f"confidence = {confidence} must lie between 0 and 1")
    check_about(about)
    middle = _middle(estimate, a)
    stderr = math.sqrt(_variance(estimate, a, about))
    tail = (1 - confidence) / 2
    reach = -quantile(tail, freedom(estimate)) * stderr
    low, high = (float(np.clip(middle + sign * reach, a.min(), a.max())) for sign in (-1, 1))
    return {"mean": middle, "stderr": stderr, "low": low, "high": high}


def _middle(estimate: Estimate, a: Floats) -> float:
    """The mean of these values."""
    centre = float(a.mean())
    return centre + float((a - centre) @ estimate.counts) / estimate.n


def _variance(estimate: Estimate, a: Floats, about: str) -> float:
    """The variance of the mean of these values: of the noise, and the luck of the draw."""
    weighting = estimate.weighting
    if weighting is not None and weighting.groups:
        return _of_groups(weighting, a, about)
    n, middle, away = estimate.n, _middle(estimate, a), a - float(a.mean())
    heavy = np.ones(len(a)) if weighting is None else weighting.luck.slope  # mean squared weights
    shares = heavy * estimate.counts / n
    luck = max(float((a - middle) ** 2 @ shares), 0.0)  # estimated shares may be negative
    if _is_silent(estimate.mechanism):
        noise = _score_square(estimate.mechanism, a - middle, shares) - luck
    else:  # items are named independently, so that their variances add up
        noise = float(away**2 @ estimate.stderr**2) / n
    return (max(noise, 0.0) + (luck if about == "population" else 0.0)) / n


def _of_groups(weighting: Weighting, a: Floats, about: str) -> float:
    """Of groups that were added up: every group's own, and what raking does not explain."""
    factors, groups = zip(*weighting.groups, strict=True)
    people = np.array([f * group.n for f, group in zip(factors, groups, strict=True)])
    weights = people / people.sum()
    variances = np.array([_variance(group, a, about) for group in groups])
    if weighting.margins is not None and about == "population":
        middles = np.array([[_middle(group, a)] for group in groups])
        left = unexplained(middles, weighting.margins, people)[:, 0]
        effects = np.array([effect(group) / group.n for group in groups])
        variances += left**2 * effects
    return float(weights**2 @ variances)


def _values(values: object, m: int) -> Floats:
    """The value of every point."""
    try:
        a = np.arange(1.0, m + 1) if values is None else np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        a = np.zeros(0)
    if a.shape != (m,) or not (np.abs(a) < 1e100).all():
        raise DataError(f"values are {m} numbers, one per point of the scale")
    return a


def _score_square(mechanism: Mechanism, values: Floats, shares: Floats) -> float:
    """The mean squared score of these values, where the part alone tells the answer."""
    decoder, group_of = mechanism.arrays.decoder, mechanism.arrays.group_of
    by_group = np.empty_like(values)
    by_group[group_of] = values
    scores = (decoder.tau * by_group).sum(axis=1)
    return float((decoder.chance * scores[:, None] ** 2).sum(axis=0)[group_of] @ shares)
