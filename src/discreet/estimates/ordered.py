"""Ordered questions: the mean of a scale, and the shares of people up to each point.

Points have the values 1, 2, 3 and so on. The mean is a sum of values times shares, so every report
has a score for it, whose mean square is known exactly for each answer. The cumulative shares are
sums of items (totals.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.types import Floats
from discreet.errors import DataError
from discreet.estimates.formulas import check_about
from discreet.estimates.table import Row
from discreet.estimates.weights import effect
from discreet.mechanism import Mechanism
from discreet.policy import Policy

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate


def cumulative(policy: Policy) -> dict[str, list[int]]:
    """The items up to each point of a scale but the last, under a name; empty for other questions.

    >>> cumulative(Policy.from_scale(["never", "rarely", "often"]))
    {'up to rarely': [0, 1]}
    """
    if policy.notion != "scale":
        return {}
    taken = {*policy.items, *(total.name for total in policy.totals)}
    sums = {f"up to {policy.items[k]}": list(range(k + 1)) for k in range(1, policy.m - 1)}
    return {name: places for name, places in sums.items() if name not in taken}


def has_mean(estimate: Estimate) -> bool:
    """Whether the mean and its error can be told: of a scale, unless subsets of several answers tie
    them together.
    """
    mechanism = estimate.mechanism
    return mechanism.policy.notion == "scale" and (
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
    if mechanism.policy.notion != "scale":
        raise DataError("a mean is of an ordered question; make one with scale = … in the policy")
    if not has_mean(estimate):
        raise DataError(
            f'the error of a mean is not known for model = "{mechanism.model}"; use subset'
        )
    a = _values(values, mechanism.m)
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise DataError(f"confidence = {confidence} must lie between 0 and 1")
    check_about(about)
    n, centre = estimate.n, float(a.mean())
    shares = estimate.counts / n
    middle = centre + float((a - centre) @ shares)
    luck = max(float((a - middle) ** 2 @ shares), 0.0)  # estimated shares may be negative
    if _is_silent(mechanism):
        variance = _score_square(mechanism, a - middle, shares) - luck
    else:  # items are named independently, so that their variances add up
        variance = float((a - centre) ** 2 @ estimate.stderr**2) / n
    variance = max(variance, 0.0) + (luck if about == "population" else 0.0)
    stderr = math.sqrt(effect(estimate) * variance / n) if n else math.inf
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * stderr
    low, high = (float(np.clip(middle + sign * reach, a.min(), a.max())) for sign in (-1, 1))
    return {"mean": middle, "stderr": stderr, "low": low, "high": high}


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
