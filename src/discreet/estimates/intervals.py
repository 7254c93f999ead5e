"""The intervals of an estimate: of counts, and of shares of the population or of respondents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.arrays.types import Floats
from discreet.estimates import formulas

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate


class Shares(NamedTuple):
    """Shares per item, and the ends of their intervals."""

    share: Floats
    low: Floats
    high: Floats


def variance(estimate: Estimate, about: str) -> formulas.Variance:
    """The variance of every count as a function of the true one, about these people."""
    formulas.check_about(about)
    noise = formulas.Variance(estimate.variance_at_zero, estimate.slope)
    if about == "respondents":
        return noise
    if estimate.weighting is not None:
        return noise + estimate.weighting.luck
    return noise + formulas.luck_of_the_draw(estimate.n, np.ones_like(estimate.counts))


def laws(estimate: Estimate, about: str) -> list[formulas.Variance]:
    """The variance of every count as a function of the true one. Weighted reports have a second
    law: holders whom chance left out may be heavier than those who were seen.
    """
    variances = [variance(estimate, about)]
    if estimate.weighting is not None and estimate.weighting.unseen is not None:
        noise, luck = estimate.weighting.unseen
        variances.append(noise if about == "respondents" else noise + luck)
    return variances


def freedom(estimate: Estimate) -> float:
    """The degrees of freedom of the variance; few where a few reports weigh most.

    What is not known is how the squared weights fall on the holders. Their mean has a relative
    variance of 1 / freedom - 1 / n, which is nothing where all weights are equal.
    """
    if estimate.weighting is None:
        return math.inf
    unknown = 1 / estimate.weighting.freedom - 1 / estimate.n
    return 1 / unknown if unknown > 1e-9 else math.inf


def outer(
    counts: Floats,
    laws: Sequence[formulas.Variance],
    step: Floats,
    confidence: float,
    simultaneous: bool,
    freedom: float,
) -> tuple[Floats, Floats]:
    """The ends of intervals that hold under each of the laws."""
    ends = [
        formulas.score_interval(counts, law, step, confidence, simultaneous, freedom)
        for law in laws
    ]
    low, high = zip(*ends, strict=True)
    return np.min(low, axis=0), np.max(high, axis=0)


def counts(
    estimate: Estimate, about: str, confidence: float, simultaneous: bool
) -> tuple[Floats, Floats]:
    """The ends of the intervals of the counts."""
    variances, free = laws(estimate, about), freedom(estimate)
    return outer(estimate.counts, variances, estimate.step, confidence, simultaneous, free)


def uncut_shares(estimate: Estimate, about: str, confidence: float, simultaneous: bool) -> Shares:
    """Shares with intervals that may reach below 0 and above 1, as unbiased counts do; to compute
    with.
    """
    ends = counts(estimate, about, confidence, simultaneous)
    return Shares(*(x / estimate.n for x in (estimate.counts, *ends)))


def shares(estimate: Estimate, about: str, confidence: float, simultaneous: bool) -> Shares:
    """Shares with intervals between 0 and 1; of a count beyond them, that of 0 or n."""
    within = replace(estimate, counts=np.clip(estimate.counts, 0, estimate.n))
    _, low, high = uncut_shares(within, about, confidence, simultaneous)
    return Shares(estimate.counts / estimate.n, np.clip(low, 0, 1), np.clip(high, 0, 1))
