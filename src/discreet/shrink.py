"""Better numbers from the same reports: named post-processing, which costs no privacy.

`shrink` is empirical Bayes: the noise of every estimate is known (it differs by level), the mixture
of the true counts is fitted to all estimates by maximum likelihood, and the posterior mean is
reported. A mixture fitted to few items is a few spikes that say nothing of the next item, so every
item may also be of a kind of its own, of which only its own estimate tells. `project` is the
nearest point, in units of the noise, among counts that are not negative (and sum to n for single
input).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit, ndtr

from discreet.errors import DataError
from discreet.parts import Floats

if TYPE_CHECKING:
    from discreet.estimate import Estimate

_CLEAR = 12.0  # estimates this many standard errors above zero stand for themselves
_FEW = 100  # items up to which nobody's count rests on the fitted mixture by more than half
_GAP = 0.05  # of the log-likelihood, in all, at which the fit of the mixture stops
_CHUNK = 4096  # items whose posteriors are computed at once


@dataclass(frozen=True, eq=False)
class Mixture:
    """The fitted distribution of true counts over items: weights on a grid. `gap` bounds how far
    its log-likelihood is from the maximum.
    """

    grid: Floats
    weights: Floats
    log_likelihood: float
    gap: float


# ---- the fit -------------------------------------------------------------------------------------


def fit(y: Floats, base: Floats, slope: Floats, n: int) -> Mixture:
    """The nonparametric maximum-likelihood mixture of true counts, given estimates with known
    variance base + slope c.

    Constrained Newton steps on the support and the peaks of the gradient (Wang 2007): a mixture's
    log-likelihood is concave in the weights, and N log(largest gradient) bounds its distance from
    the maximum.
    """
    grid = _grid(np.sqrt(base), y, n)
    rows = _bins(y, base, slope)
    L = _likelihood(rows, grid)
    w = rows.weight
    total = float(w.sum())
    weights = np.full(len(grid), 1 / len(grid))
    for _ in range(30):  # EM first: a good start costs little
        weights *= (w / (L @ weights)) @ L / total
    value = float(w @ np.log(L @ weights))
    gap = np.inf
    for _ in range(200):
        S = L / (L @ weights)[:, None]
        gradient = (w @ S) / total
        gap = total * float(np.log(gradient.max()))
        if gap < _GAP:
            break
        peaks = (
            np.r_[True, gradient[1:] >= gradient[:-1]] & np.r_[gradient[:-1] > gradient[1:], True]
        )
        support = np.flatnonzero((weights > 1e-12) & (gradient > 0.9) | peaks)
        aim = np.zeros(len(grid))
        aim[support] = _newton(S[:, support], w)
        weights, value = _line_search(L, w, weights, aim, value)
    return Mixture(grid, weights, value, max(gap, 0.0))


def _newton(S: Floats, w: Floats) -> Floats:
    """Weights >= 0 with sum 1 that minimise the quadratic model sum_i w_i (S_i x - 2)^2."""
    root = np.sqrt(w)
    _, R = np.linalg.qr(np.column_stack((S * root[:, None], 2 * root)))
    penalty = 1e3 * np.sqrt(w.sum())
    k = S.shape[1]
    x, _ = nnls(np.vstack((R[:, :k], np.full(k, penalty))), np.append(R[:, k], penalty))
    return x / x.sum()


def _line_search(
    L: Floats, w: Floats, old: Floats, aim: Floats, value: float
) -> tuple[Floats, float]:
    step = 1.0
    while step > 1e-6:
        new = old + step * (aim - old)
        with np.errstate(divide="ignore"):
            reached = float(w @ np.log(L @ new))
        if reached > value:
            return new, reached
        step /= 2
    new = old * ((w / (L @ old)) @ L) / w.sum()  # an EM step never falls
    return new, float(w @ np.log(L @ new))


@dataclass(frozen=True)
class _Rows:
    """Estimates that are alike, joined: their mean, variance and number."""

    y: Floats
    base: Floats
    slope: Floats
    weight: Floats


def _bins(y: Floats, base: Floats, slope: Floats) -> _Rows:
    """Join estimates within 1/20 of a standard error whose noise is the same within 2 %."""
    sd = np.sqrt(base)
    clear = y > _CLEAR * sd
    kind = np.round(np.log(base) / 0.02).astype(np.int64)
    place = np.where(
        clear, np.round(np.log(np.where(clear, y, 1.0)) / 0.002) + 10**6, np.round(y / sd * 20)
    ).astype(np.int64)
    _, inverse, count = np.unique(
        np.stack((kind, place)), axis=1, return_inverse=True, return_counts=True
    )
    y, base, slope = (np.bincount(inverse.ravel(), weights=x) / count for x in (y, base, slope))
    return _Rows(y, base, slope, count.astype(float))


def _grid(sd: Floats, y: Floats, n: int) -> Floats:
    """Candidate counts: steps of 1/5 of the smallest noise, then growing by 1.6 % as far as any
    estimate reaches.
    """
    step, top = float(sd.min()) / 5, min(float(n), max(float((y + 2 * sd).max()), float(sd.max())))
    linear = np.arange(0, min(_CLEAR * 5 + 2, top / step + 2)) * step
    more = int(np.ceil(np.log(max(top / linear[-1], 1)) / np.log(1.016)))
    grid = np.concatenate((linear, linear[-1] * 1.016 ** np.arange(1, more + 1)))
    return np.unique(np.minimum(grid, n))


def _likelihood(rows: _Rows, grid: Floats, scaled: bool = True) -> Floats:
    """Density of every row at every grid point (scaled: up to a factor per row, so that none
    vanishes); a clear estimate points at its nearest grid point.
    """
    var = np.maximum(rows.base[:, None] + rows.slope[:, None] * grid, 1e-9 * rows.base[:, None])
    exponent = -((rows.y[:, None] - grid) ** 2) / (2 * var) - np.log(var) / 2
    L = np.exp(exponent - exponent.max(axis=1, keepdims=True) if scaled else exponent)
    clear = np.flatnonzero(rows.y > _CLEAR * np.sqrt(rows.base))
    L[clear] = 0
    L[clear, np.abs(rows.y[clear, None] - grid).argmin(axis=1)] = 1
    return L + 1e-300


# ---- the posterior -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Posterior means and standard deviations of the counts, within [0, n].

    The posterior of an item has two parts. With chance 1 - `own` it is Bayes' rule under the fitted
    mixture `mixtures[pool_of[i]]`; with chance `own` the item is of a kind of its own, and all that
    is known is its estimate: normal, clipped to [0, n], so that its quantiles are the ends of the
    raw interval. `own` grows as the items of the pool get fewer and as the mixture explains the
    estimate worse (`_own`). So with few items the numbers are those of the raw estimate within
    [0, n], whose intervals hold for every item whatever the others are and whose squared error is
    never above raw; with many they are those of the mixture.
    """

    estimate: Estimate
    mixtures: tuple[Mixture, ...]
    pool_of: Any
    own: Floats
    counts: Floats
    sd: Floats

    @property
    def shares(self) -> Floats:
        """Counts divided by the number of reports."""
        return self.counts / self.estimate.n

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of credible intervals, whole numbers within [0, n] that enclose the
        count; from the smoothed mixture, whose atoms alone would make them too short.
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

    def _reach(self, q: float, half: float, which: Any, cdf: Floats, grid: Floats, raw: Any) -> Any:
        """Where the posteriors reach q: between where their two parts do, by bisection; where the
        mixture does if hardly anything is left of the other part.
        """
        found = _where(cdf, grid, q)
        both = np.flatnonzero(self.own[which] > 1e-6)
        if not len(both):
            return found
        y, base, slope = _columns(self.estimate, which[both])
        edge, own = y + half * self.estimate.step[which[both]], self.own[which[both]]
        cdf, raw = cdf[both], raw[both]
        low, high = np.minimum(found[both], raw), np.maximum(found[both], raw)
        for _ in range(self.estimate.n.bit_length() + 10):  # the ends will be whole numbers
            middle = (low + high) / 2
            sd = np.sqrt(np.maximum(base + slope * middle, 1e-9 * base))
            reached = (1 - own) * _at(cdf, grid, middle) + own * ndtr((middle - edge) / sd) >= q
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        found[both] = low if half < 0 else high
        return found

    def exceeds(self, threshold: float) -> Floats:
        """Posterior probability that the true count is above a threshold, per item."""
        if threshold < 0:
            return np.ones(len(self.counts))
        below = self._each(lambda cdf, grid: _at(cdf, grid, threshold))
        above = (1 - self.own) * (1 - below) + self.own * self._own_exceeds(threshold)
        return np.clip(above, 0, 1)  # sums of chances end near 1

    def _own_exceeds(self, threshold: float) -> Floats:
        return ndtr((self.estimate.counts - threshold) / _stderr(self.estimate))

    def in_top(self, k: int) -> Floats:
        """Posterior probability that an item is among the true top k: above the threshold that k
        items are expected to pass.
        """
        if k >= len(self.counts):
            return np.ones(len(self.counts))
        low, high = 0.0, float(self.estimate.n)
        for _ in range(25):
            middle = (low + high) / 2
            low, high = (middle, high) if self._expected_above(middle) > k else (low, middle)
        return self.exceeds(high)

    def _expected_above(self, threshold: float) -> float:
        """How many items are expected above a threshold: the sum of `exceeds`."""
        return float(self.own @ self._own_exceeds(threshold)) + sum(
            share - float(_at(cdf[None], grid, threshold)[0]) for share, cdf, grid in self._together
        )

    @cached_property
    def _together(self) -> list[tuple[float, Floats, Floats]]:
        """Per mixture: how many items are expected to be of it, the sum of their posterior
        distribution functions, and its grid.
        """
        found = []
        for k, mixture in enumerate(self._smooth):
            mine, total = np.flatnonzero((self.pool_of == k) & (self.own < 1)), 0.0
            for chunk in _chunks(mine):
                total = total + (1 - self.own[chunk]) @ self._cdf(mixture, chunk)
            share = float((1 - self.own[mine]).sum())
            found.append((share, total + np.zeros(len(mixture.grid)), mixture.grid))
        return found

    @cached_property
    def _smooth(self) -> list[Mixture]:
        return [smooth(mixture, self.estimate) for mixture in self.mixtures]

    def _cdf(self, mixture: Mixture, which: Any) -> Floats:
        """Posterior distribution functions on the grid, a row per item."""
        return np.cumsum(posterior(mixture, *_columns(self.estimate, which)), axis=1)

    def _each(self, of: Any) -> Floats:
        """Apply `of(posterior distribution functions, grid)` to all items, chunk by chunk."""
        out = np.empty(self.estimate.mechanism.m)
        for k, mixture in enumerate(self._smooth):
            for chunk in _chunks(np.flatnonzero(self.pool_of == k)):
                out[chunk] = of(self._cdf(mixture, chunk), mixture.grid)
        return out


def _at(cdf: Floats, grid: Floats, x: Any) -> Floats:
    """Every row at x (its own, or one for all), linear between the points of the grid; 0 before the
    first.
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
    """Posterior means under one fitted mixture for `all` items, one per `level`, or (`auto`)
    what predicts held-out items better; with few items they are near the raw counts in [0, n].
    """
    if pool not in ("all", "level", "auto"):
        raise DataError(f'pool = "{pool}" must be all, level or auto')
    if not estimate.can_shrink:
        raise DataError(
            "some items have no estimate or no noise, so their mixture cannot be fitted; use the "
            "raw counts"
        )
    if pool == "auto":
        pool = max(("all", "level"), key=lambda kind: _held_out(estimate, _pool_of(estimate, kind)))
    pool_of = _pool_of(estimate, pool)
    m = estimate.mechanism.m
    own, mean, square, mixtures = np.empty(m), np.empty(m), np.empty(m), []
    for k in range(pool_of.max() + 1):
        mine = np.flatnonzero(pool_of == k)
        fitted = fit(*_columns(estimate, mine), estimate.n)
        mixtures.append(fitted)
        for chunk in _chunks(mine):
            y, base, slope = _columns(estimate, chunk)
            post, surprise = _bayes(fitted, y, base, slope)
            mean[chunk], square[chunk] = post @ fitted.grid, post @ fitted.grid**2
            clear = y > _CLEAR * np.sqrt(base)
            own[chunk] = np.where(clear, 1.0, _own(surprise, len(mine)))
    alone = _clipped(estimate.counts, _stderr(estimate), estimate.n)
    counts = (1 - own) * mean + own * alone[0]
    sd = np.sqrt(np.maximum((1 - own) * square + own * alone[1] - counts**2, 0))
    return Shrunk(estimate, tuple(mixtures), pool_of, own, np.clip(counts, 0, estimate.n), sd)


def _own(surprise: Floats, items: int) -> Floats:
    """The chance that an item is of a kind of its own, given how much better its estimate is
    explained that way (the log of the ratio), and among how many items the mixture was fitted.

    Before the estimate is seen the odds are (100 / m)^6. Up to 100 items they are at least even, so
    that every 95 % interval covers with at least 1 - 5 % / (1 / 2) = 90 %, whatever the other items
    are; at 1,000 items they are one in a million, and the mixture is left alone.
    """
    return expit(surprise + 6 * np.log(_FEW / items))


def _stderr(estimate: Estimate) -> Floats:
    """Standard errors, not quite zero where everyone seems to hold an item."""
    return np.maximum(estimate.stderr, 1e-6 * np.sqrt(estimate.base))


def _clipped(y: Floats, sd: Floats, n: int) -> tuple[Floats, Floats]:
    """Mean and mean square of a normal variable clipped to [0, n]."""

    def above(x: Floats) -> tuple[Floats, Floats]:  # of its excess over a limit
        z = x / sd
        density = sd * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return x * ndtr(z) + density, (x**2 + sd**2) * ndtr(z) + x * density

    (first, second), (over, over2) = above(y), above(y - n)
    return first - over, second - over2 - 2 * n * over


def _pool_of(estimate: Estimate, kind: str) -> Any:
    level_of = estimate.mechanism.level_of.astype(np.int64)
    return level_of if kind == "level" else level_of * 0


def _columns(estimate: Estimate, which: Any) -> tuple[Floats, Floats, Floats]:
    return estimate.counts[which], estimate.base[which], estimate.slope[which]


def _held_out(estimate: Estimate, pool_of: Any) -> float:
    """Log-likelihood of every second item under a mixture fitted to the others, both ways."""
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
            rows = _bins(*_columns(estimate, test))
            total += float(
                rows.weight
                @ np.log(_likelihood(rows, fitted.grid, scaled=False) @ fitted.weights + 1e-300)
            )
    return total


def posterior(mixture: Mixture, y: Floats, base: Floats, slope: Floats) -> Floats:
    """Posterior weights on the mixture's grid, a row per estimate."""
    return _bayes(mixture, y, base, slope)[0]


def _bayes(mixture: Mixture, y: Floats, base: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Posterior weights, and by how much the log-likelihood of the count that explains an estimate
    best exceeds that of the mixture.
    """
    var = np.maximum(base[:, None] + slope[:, None] * mixture.grid, 1e-9 * base[:, None])
    exponent = -((y[:, None] - mixture.grid) ** 2) / (2 * var) - np.log(var) / 2
    best = exponent.max(axis=1)
    with np.errstate(divide="ignore"):
        exponent += np.log(mixture.weights)
    top = exponent.max(axis=1)
    post = np.exp(exponent - top[:, None])
    total = post.sum(axis=1)
    return post / total[:, None], best - top - np.log(total)


def smooth(mixture: Mixture, estimate: Estimate, width: float = 0.5) -> Mixture:
    """Spread every atom over what the data cannot tell apart: a kernel of `width` times the typical
    noise, on counts >= 0.
    """
    sd = float(np.sqrt(np.median(estimate.base[np.isfinite(estimate.base)])))
    tau = width * sd
    grid = mixture.grid
    cell = np.gradient(grid)
    kernel = np.exp(-((grid[:, None] - grid[None, :]) ** 2) / (2 * tau**2)) * cell[:, None]
    weights = (kernel / kernel.sum(axis=0)) @ mixture.weights
    return Mixture(grid, weights, mixture.log_likelihood, mixture.gap)


def _chunks(places: Any) -> Any:
    return (places[first : first + _CHUNK] for first in range(0, len(places), _CHUNK))


# ---- the projection ------------------------------------------------------------------------------


def project(counts: Floats, variance: Floats, n: float | None) -> Floats:
    """argmin sum (c - counts)^2 / variance over c >= 0 (and sum c = n): c = max(0, counts - mu
    variance), mu found by sorting.
    """
    if n is None:
        return np.maximum(counts, 0)
    known = np.isfinite(variance)
    y, v = counts[known], np.maximum(variance[known], 1e-300)
    order = np.argsort(-(y / v), kind="stable")
    sums, total = np.cumsum(y[order]), np.cumsum(v[order])
    mu = (sums - n) / total
    last = int(np.flatnonzero(y[order] / v[order] > mu).max())
    out = np.zeros(len(counts))
    out[known] = np.maximum(y - mu[last] * v, 0)
    return out
