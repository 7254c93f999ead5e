"""Better numbers from the same reports: named post-processing, which costs no privacy.

`shrink` is empirical Bayes. The noise of every estimate is known (it differs by level). The mixture
of the true counts is fitted to all estimates, and the posterior mean is reported. A mixture fitted
to few items is a few spikes that say nothing about the next item. So every item may also be of a
kind of its own, about which only its own estimate says something. `project` finds the nearest
counts, in units of the noise, that are not negative (and sum to n for single answers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr

from discreet.arrays.types import Floats, Ints
from discreet.errors import DataError
from discreet.estimates.mixture import (
    CLEAR,
    Mixture,
    apply_bayes,
    fit,
    join_similar,
    likelihood,
    posterior,
    smooth,
)
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate

_FEW = 100  # items up to which no count rests on the fitted mixture by more than half
_CHUNK = 4096  # items whose posteriors are computed at once


# ---- the posterior -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Posterior means and standard deviations of the counts, within [0, n].

    The posterior of an item has two parts. With chance 1 - `own` it is Bayes' rule under the fitted
    mixture `mixtures[pool_of[i]]`. With chance `own` the item is of a kind of its own, and only its
    estimate counts: normal, clipped to [0, n], so that its quantiles are the ends of the raw
    interval. `own` is larger if the pool has fewer items, and if the mixture explains the estimate
    worse (`_own`).

    So with few items the numbers are near the raw estimate clipped to [0, n]: the intervals hold
    for every item, whatever the others are, and the squared error is never above raw. With many
    items the numbers are those of the mixture.
    """

    estimate: Estimate
    mixtures: tuple[Mixture, ...]
    pool_of: Ints
    own: Floats
    counts: Floats
    sd: Floats

    @property
    def shares(self) -> Floats:
        """The counts divided by the number of reports."""
        return self.counts / self.estimate.n

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """The lower and upper ends of credible intervals: whole numbers within [0, n] around the
        count. They use the smoothed mixture; its atoms alone would make them too short.
        """
        tail = (1 - confidence) / 2
        raw = self.estimate.interval(confidence)
        ends = [np.clip(end, 0, self.estimate.n) for end in raw]
        for k, mixture in enumerate(self._smooth):
            for chunk in _chunks(np.flatnonzero((self.pool_of == k) & (self.own < 1))):
                cdf = self._cdf(mixture, chunk)
                for end, q, half in zip(ends, (tail, 1 - tail), (-0.5, 0.5), strict=True):
                    end[chunk] = self._reach(q, half, chunk, cdf, mixture.grid, end[chunk])
        return np.floor(np.minimum(ends[0], self.counts)), np.ceil(np.maximum(ends[1], self.counts))

    def _reach(
        self, q: float, half: float, which: Ints, cdf: Floats, grid: Floats, raw: Floats
    ) -> Floats:
        """The counts at which the posteriors reach q.

        They lie between the counts at which the two parts reach q: bisection finds them. Where the
        second part hardly matters, they are those of the mixture.
        """
        counts = _where(cdf, grid, q)
        both = np.flatnonzero(self.own[which] > 1e-6)
        if not len(both):
            return counts
        y, base, slope = _columns(self.estimate, which[both])
        edge, own = y + half * self.estimate.step[which[both]], self.own[which[both]]
        cdf, raw = cdf[both], raw[both]
        low, high = np.minimum(counts[both], raw), np.maximum(counts[both], raw)
        for _ in range(self.estimate.n.bit_length() + 10):  # the ends will be whole numbers
            middle = (low + high) / 2
            sd = np.sqrt(np.maximum(base + slope * middle, 1e-9 * base))
            reached = (1 - own) * _at(cdf, grid, middle) + own * ndtr((middle - edge) / sd) >= q
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        counts[both] = low if half < 0 else high
        return counts

    def exceeds(self, threshold: float) -> Floats:
        """The posterior probability that the true count is above a threshold, per item."""
        if threshold < 0:
            return np.ones(len(self.counts))
        below = self._each(lambda cdf, grid: _at(cdf, grid, threshold))
        above = (1 - self.own) * (1 - below) + self.own * self._own_exceeds(threshold)
        return np.clip(above, 0, 1)  # rounding may leave a sum just above 1

    def _own_exceeds(self, threshold: float) -> Floats:
        return ndtr((self.estimate.counts - threshold) / _stderr(self.estimate))

    def in_top(self, k: int) -> Floats:
        """The posterior probability that an item is among the true top k: that it is above the
        threshold which k items are expected to pass.
        """
        if k >= len(self.counts):
            return np.ones(len(self.counts))
        low, high = 0.0, float(self.estimate.n)
        for _ in range(25):
            middle = (low + high) / 2
            low, high = (middle, high) if self._expected_above(middle) > k else (low, middle)
        return self.exceeds(high)

    def _expected_above(self, threshold: float) -> float:
        """The expected number of items above a threshold: the sum of `exceeds`."""
        return float(self.own @ self._own_exceeds(threshold)) + sum(
            share - float(_at(cdf[None], grid, threshold)[0]) for share, cdf, grid in self._together
        )

    @cached_property
    def _together(self) -> list[tuple[float, Floats, Floats]]:
        """For every mixture: the expected number of its items, the sum of their posterior
        distribution functions, and its grid.
        """
        sums = []
        for k, mixture in enumerate(self._smooth):
            mine = np.flatnonzero((self.pool_of == k) & (self.own < 1))
            total = np.zeros(len(mixture.grid))
            for chunk in _chunks(mine):
                total += (1 - self.own[chunk]) @ self._cdf(mixture, chunk)
            share = float((1 - self.own[mine]).sum())
            sums.append((share, total, mixture.grid))
        return sums

    @cached_property
    def _smooth(self) -> list[Mixture]:
        return [smooth(mixture, self.estimate) for mixture in self.mixtures]

    def _cdf(self, mixture: Mixture, which: Ints) -> Floats:
        """Posterior distribution functions on the grid, a row per item."""
        return np.cumsum(posterior(mixture, *_columns(self.estimate, which)), axis=1)

    def _each(self, compute: Callable[[Floats, Floats], Floats]) -> Floats:
        """Apply `compute(posterior distribution functions, grid)` to all items, in chunks."""
        out = np.empty(self.estimate.mechanism.m)
        for k, mixture in enumerate(self._smooth):
            for chunk in _chunks(np.flatnonzero(self.pool_of == k)):
                out[chunk] = compute(self._cdf(mixture, chunk), mixture.grid)
        return out


def _at(cdf: Floats, grid: Floats, x: Floats | float) -> Floats:
    """Every row at x (one per row, or one for all), linear between the points of the grid; 0 before
    the first.
    """
    k = np.searchsorted(grid[1:-1], x, side="right")
    row, part = np.arange(len(cdf)), np.minimum((x - grid[k]) / (grid[k + 1] - grid[k]), 1)
    return np.where(part < 0, 0, cdf[row, k] + part * (cdf[row, k + 1] - cdf[row, k]))


def _where(cdf: Floats, grid: Floats, q: float) -> Floats:
    """Where every row reaches q, linear between the points of the grid."""
    k = np.clip((cdf <= q).sum(axis=1) - 1, 0, len(grid) - 2)
    row = np.arange(len(cdf))
    low, step = cdf[row, k], cdf[row, k + 1] - cdf[row, k]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(step > 0, np.clip((q - low) / step, 0, 1), 0.0)
    return grid[k] + part * (grid[k + 1] - grid[k])


def shrink(estimate: Estimate, pool: str = "all") -> Shrunk:
    """Posterior means under one fitted mixture for `all` items, one per `level`, or (`auto`) the
    choice that predicts held-out items better. With few items they are near the raw counts,
    clipped to [0, n].
    """
    if pool not in ("all", "level", "auto"):
        raise DataError(f'pool = "{pool}" must be all, level or auto')
    if not estimate.can_shrink:
        raise DataError(
            "some items have no estimate or no noise, so their mixture cannot be fitted; use the "
            "raw counts"
        )
    if pool == "auto":
        pool = max(("all", "level"), key=lambda kind: _held_out(estimate, _pools(estimate, kind)))
    pool_of = _pools(estimate, pool)
    m = estimate.mechanism.m
    own, mean, square, mixtures = np.empty(m), np.empty(m), np.empty(m), []
    for k in range(pool_of.max() + 1):
        mine = np.flatnonzero(pool_of == k)
        fitted = fit(*_columns(estimate, mine), estimate.n)
        mixtures.append(fitted)
        for chunk in _chunks(mine):
            y, base, slope = _columns(estimate, chunk)
            post, surprise = apply_bayes(fitted, y, base, slope)
            mean[chunk], square[chunk] = post @ fitted.grid, post @ fitted.grid**2
            clear = y > CLEAR * np.sqrt(base)
            own[chunk] = np.where(clear, 1.0, _own(surprise, len(mine)))
    alone = _clipped(estimate.counts, _stderr(estimate), estimate.n)
    counts = (1 - own) * mean + own * alone[0]
    sd = np.sqrt(np.maximum((1 - own) * square + own * alone[1] - counts**2, 0))
    return Shrunk(estimate, tuple(mixtures), pool_of, own, np.clip(counts, 0, estimate.n), sd)


def _own(surprise: Floats, items: int) -> Floats:
    """The chance that an item is of a kind of its own.

    `surprise` is how much better that explains its estimate (the log of the ratio), `items` the
    number of items that the mixture was fitted to. Before the estimate is seen, the odds are
    (100 / m)^6. Up to 100 items they are at least even, so that every 95 % interval covers with at
    least 1 - 5 % / (1 / 2) = 90 %, whatever the other items are. At 1,000 items they are one in a
    million, and only the mixture counts.
    """
    return expit(surprise + 6 * np.log(_FEW / items))


def _stderr(estimate: Estimate) -> Floats:
    """Standard errors, kept above zero where everyone seems to hold an item."""
    return np.maximum(estimate.stderr, 1e-6 * np.sqrt(estimate.variance_at_zero))


def _clipped(y: Floats, sd: Floats, n: int) -> tuple[Floats, Floats]:
    """Mean and mean square of a normal variable clipped to [0, n]."""

    def above(x: Floats) -> tuple[Floats, Floats]:  # the moments of its excess over a limit
        z = x / sd
        density = sd * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return x * ndtr(z) + density, (x**2 + sd**2) * ndtr(z) + x * density

    (first, second), (over, over2) = above(y), above(y - n)
    return first - over, second - over2 - 2 * n * over


def _pools(estimate: Estimate, kind: str) -> Ints:
    level_of = estimate.mechanism.arrays.level_of.astype(np.int64)
    return level_of if kind == "level" else level_of * 0


def _columns(estimate: Estimate, which: Ints) -> tuple[Floats, Floats, Floats]:
    return estimate.counts[which], estimate.variance_at_zero[which], estimate.slope[which]


def _held_out(estimate: Estimate, pool_of: Ints) -> float:
    """The log-likelihood of every second item under a mixture fitted to the others, both ways."""
    total = 0.0
    for k in range(pool_of.max() + 1):
        mine = np.flatnonzero(pool_of == k)
        for fold in range(2):
            train, test = (
                mine[np.arange(len(mine)) % 2 != fold],
                mine[np.arange(len(mine)) % 2 == fold],
            )
            if not len(train):
                return -np.inf  # a level too small to be learnt from
            fitted = fit(*_columns(estimate, train), estimate.n)
            rows = join_similar(*_columns(estimate, test))
            total += float(
                rows.weight
                @ np.log(likelihood(rows, fitted.grid, scaled=False) @ fitted.weights + 1e-300)
            )
    return total


def _chunks(places: Ints) -> Iterator[Ints]:
    return (places[first : first + _CHUNK] for first in range(0, len(places), _CHUNK))


# ---- the projection ------------------------------------------------------------------------------


def project(counts: Floats, variance: Floats, n: float | None) -> Floats:
    """The c >= 0, with sum n if n is given, that minimises sum (c - counts)^2 / variance.

    It is max(0, counts - mu variance), and sorting gives mu.
    """
    if n is None:
        return np.maximum(counts, 0)
    finite = np.isfinite(variance)
    y, v = counts[finite], np.maximum(variance[finite], 1e-300)
    order = np.argsort(-(y / v), kind="stable")
    sums, total = np.cumsum(y[order]), np.cumsum(v[order])
    mu = (sums - n) / total
    last = int(np.flatnonzero(y[order] / v[order] > mu).max())
    out = np.zeros(len(counts))
    out[finite] = np.maximum(y - mu[last] * v, 0)
    return out
