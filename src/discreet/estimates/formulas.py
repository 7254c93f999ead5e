"""The formulas of an estimate: counts and variances from a tally, intervals, and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from discreet.arrays.classes import ClassDecoder
from discreet.arrays.tally import Tally
from discreet.arrays.types import Floats, Ints
from discreet.errors import DataError


def unbiased_counts(tally: Tally) -> tuple[Floats, Floats]:
    """The unbiased count of every item, and how much one more report that names it adds.

    The count is NaN, and the step infinite, where the mechanism says nothing about the item.
    """
    mechanism, scale = tally.mechanism, tally.mechanism.scale
    d, group_of = mechanism.arrays.decoder, mechanism.arrays.group_of
    # sum_o w_o (Y_oi - N_o kappa_o) + sum_o tau_o N_o
    named = (d.weight[:, group_of] * tally.counts).sum(axis=0)
    level = tally.part_n @ (d.tau - d.weight * d.kappa)
    counts = np.where(d.estimable[group_of], scale * (named + level[group_of]), np.nan)
    used = np.where((tally.part_n > 0)[:, None], np.abs(d.weight), 0).max(axis=0)
    # the count of a lone item follows from the parts alone
    step = scale * np.where(used > 0, used, np.abs(d.tau).max(axis=0))
    return counts, np.where(d.estimable, step, np.inf)[group_of]


def group_totals(tally: Tally) -> Floats | None:
    """The samples of every group, then the empty ones, as subsets of fixed size tell them; of picks
    the people of every class, cut by cut; None where nothing tells them, and nothing needs them.
    """
    mechanism, n, d = tally.mechanism, tally.n, tally.mechanism.arrays.decoder
    if isinstance(d, ClassDecoder):
        return n * np.concatenate(d.fitted(tally.part_n))
    if not mechanism.encoding.fixed_size or not d.estimable.all():
        return None
    totals = np.maximum(mechanism.arrays.group_sizes * (tally.part_n @ d.tau), 0)
    if mechanism.policy.kind.lists:
        totals = np.append(totals, max(n - totals.sum(), 0))
    return totals * (n / totals.sum())


def group_variance(tally: Tally) -> tuple[Floats, Floats]:
    """The variance of an estimate per group: of an item that nobody holds, and what one holder
    adds.

    Subsets of fixed size determine the totals of the groups, and these the expected number of
    reports of every part. A rare part counts even if nobody happened to use it.
    """
    mechanism, n, scale = tally.mechanism, tally.n, tally.mechanism.scale
    d, sizes = mechanism.arrays.decoder, mechanism.arrays.group_sizes
    if isinstance(d, ClassDecoder):
        return d.observed(tally)
    # a holder is sampled with chance 1 / scale: c / scale samples, and c / scale^2 is subtracted
    totals = group_totals(tally)
    if totals is None:
        absent = d.variance_at_zero(tally.part_n, np.zeros(len(sizes)))
        return scale**2 * absent, scale * d.slope - 1
    expected = d.chance @ totals
    base, slope = d.variance_at_zero(expected, totals), d.slope
    # a lone item's count is its group's total, so everything else moves with it
    others = expected[:, None] - (d.chance * totals)[:, : len(sizes)]
    with np.errstate(divide="ignore", invalid="ignore"):
        elsewhere = (others * d.spread).sum(axis=0) / (n - totals[: len(sizes)])
    everyone = (d.spread.T @ d.chance).mean(axis=1)  # where nobody seems to be elsewhere
    elsewhere = np.where(totals[: len(sizes)] < n * (1 - 1e-9), elsewhere, everyone)
    if len(d.chance.T) == 1:
        elsewhere = np.zeros(1)
    lone = sizes == 1
    base, slope = np.where(lone, n * elsewhere, base), np.where(lone, d.own - elsewhere, slope)
    return scale**2 * base, scale * slope - 1


ABOUT = ("population", "respondents")


@dataclass(frozen=True, eq=False)
class Variance:
    """The variance of an estimated count as a function of the true one: at_zero + slope c -
    bend c^2, per item. It is infinite at zero where it is unknown.
    """

    at_zero: Floats
    slope: Floats
    bend: Floats | float = 0.0

    def at(self, c: Floats | float) -> Floats:
        """The variance of every estimate if its true count is c."""
        return np.maximum(self.at_zero + (self.slope - self.bend * c) * c, 0)

    def __add__(self, other: Variance) -> Variance:
        return Variance(
            self.at_zero + other.at_zero, self.slope + other.slope, self.bend + other.bend
        )


def joined(first: Variance, second: Variance) -> Variance:
    """The variances of some counts, then of others."""
    bends = (np.broadcast_to(x.bend, x.slope.shape) for x in (first, second))
    return Variance(
        np.append(first.at_zero, second.at_zero),
        np.append(first.slope, second.slope),
        np.concatenate([*bends]),
    )


def luck_of_the_draw(n: int, most: Floats) -> Variance:
    """The variance of n p (1 - p) of a number of people who are drawn from a population with a
    share p = c / n; of items of which a person holds up to `most`, at most n p (most - p).
    """
    return Variance(0 * most, most, 1 / n)


def score_interval(
    counts: Floats,
    variance: Variance,
    step: Floats,
    confidence: float,
    simultaneous: bool,
    freedom: float = math.inf,
) -> tuple[Floats, Floats]:
    """All true counts c with |count - c| <= z sd(c) + half a step: their lower and upper ends.

    The standard deviation is taken at the count that is tested (a score interval), not at the
    estimate. The half step is the continuity correction. Where few heavy reports tell the
    variance, z is Student's with so many degrees of freedom.
    """
    check_confidence(confidence)
    tail = (1 - confidence) / 2
    if simultaneous:
        tail = -np.expm1(np.log1p(-2 * tail) / len(counts)) / 2
    z2 = quantile(tail, freedom) ** 2
    # Far out the skewness of the counts matters (Cornish-Fisher): a rare bit strays further up
    # than down, and one that hardly anybody lacks further down than up.
    margin = (0.5 + (z2 - 1) / 6 if simultaneous else 0.5) * step
    low, high = counts - margin, counts + margin
    with np.errstate(invalid="ignore"):
        ends = [_root(e, variance, z2, sign) for e, sign in ((low, -1), (high, 1))]
    estimable = np.isfinite(variance.at_zero)
    return np.where(estimable, ends[0], -np.inf), np.where(estimable, ends[1], np.inf)


def quantile(tail: float, freedom: float) -> float:
    """The value below which so much of a normal, or a Student's, distribution lies."""
    if freedom > 1e6:
        return NormalDist().inv_cdf(tail)
    from scipy.special import stdtrit  # scipy takes long to load

    return float(stdtrit(max(freedom, 1.0), tail))


def check_confidence(confidence: float) -> None:
    """Refuse what is no confidence."""
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise DataError(f"confidence = {confidence} must be between 0 and 1, such as 0.95")


def check_about(about: str) -> None:
    """Refuse what shares are not about."""
    if about not in ABOUT:
        raise DataError(f"about = {about!r} must be {' or '.join(ABOUT)}")


def _root(e: Floats, variance: Variance, z2: float, sign: int) -> Floats:
    """The root of (c - e)^2 = z^2 variance(c) above e, or below it if the sign is negative. It is e
    itself where no count on that side has a variance (small n).
    """
    leading = np.maximum(1 + z2 * variance.bend, 0.5)  # less only for a few people, unequal ones
    half = (e + z2 * variance.slope / 2) / leading
    inside = half**2 - (e**2 - z2 * variance.at_zero) / leading
    root = half + sign * np.sqrt(np.maximum(inside, 0))
    return np.where(inside < 0, e, np.maximum(root, e) if sign > 0 else np.minimum(root, e))


def chance_beyond(excess: Floats, noise: Floats) -> Floats:
    """The chance that noise alone exceeds these values; 1 where the noise is unknown."""
    from scipy.special import ndtr  # scipy takes long to load

    with np.errstate(divide="ignore", invalid="ignore"):
        chance: Floats = ndtr(-excess / noise)
    return np.where(np.isfinite(noise), chance, 1.0)


def discoveries(chance: Floats, fdr: float) -> Ints:
    """The places of the smallest chances such that at most a share `fdr` is expected to be false
    (Benjamini-Hochberg), the smallest first.
    """
    order = np.argsort(chance, kind="stable")
    passed = np.flatnonzero(chance[order] <= fdr * np.arange(1, len(chance) + 1) / len(chance))
    return order[: passed.max() + 1] if len(passed) else order[:0]


def truncation_note(padding: int | None) -> str:
    """What unbiasedness does not cover, for sets that are cut to a padding; empty without one."""
    if padding is None:
        return ""
    return (
        f"Unbiased for people with at most {padding} item{'s' if padding > 1 else ''} (the "
        f"padding). Whoever has more is counted for each of them with {padding} / (number of "
        "items) instead of 1: counts are then too low, and intervals do not cover that."
    )
