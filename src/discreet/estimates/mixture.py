"""The spread of true counts over items: a mixture fitted to all estimates by maximum likelihood,
and Bayes' rule under it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from discreet.arrays.types import Floats

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate

CLEAR = 12.0  # estimates this many standard errors above zero stand for themselves
_GAP = 0.05  # the fit stops when its whole log-likelihood is this near the maximum


@dataclass(frozen=True, eq=False)
class Mixture:
    """The fitted distribution of true counts over items, as weights on a grid.

    `gap` bounds how far its log-likelihood is from the maximum.
    """

    grid: Floats
    weights: Floats
    log_likelihood: float
    gap: float


def fit(y: Floats, base: Floats, slope: Floats, n: int) -> Mixture:
    """Fit the nonparametric maximum-likelihood mixture of true counts to estimates with the
    variance base + slope c.

    The steps are constrained Newton steps on the support and the peaks of the gradient (Wang 2007).
    The log-likelihood is concave in the weights, and N log(largest gradient) bounds its distance
    from the maximum.
    """
    grid = _grid(np.sqrt(base), y, n)
    rows = join_similar(y, base, slope)
    L = likelihood(rows, grid)
    w = rows.weight
    total = float(w.sum())
    weights = np.full(len(grid), 1 / len(grid))
    for _ in range(30):  # EM first: it is a cheap, good start
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
class Rows:
    """Similar estimates, joined: their mean, variance and number."""

    y: Floats
    variance_at_zero: Floats
    slope: Floats
    weight: Floats


def join_similar(y: Floats, base: Floats, slope: Floats) -> Rows:
    """Join estimates within 1/20 of a standard error whose noise is the same within 2 %."""
    sd = np.sqrt(base)
    clear = y > CLEAR * sd
    kind = np.round(np.log(base) / 0.02).astype(np.int64)
    place = np.where(
        clear, np.round(np.log(np.where(clear, y, 1.0)) / 0.002) + 10**6, np.round(y / sd * 20)
    ).astype(np.int64)
    _, inverse, count = np.unique(
        np.stack((kind, place)), axis=1, return_inverse=True, return_counts=True
    )
    y, base, slope = (np.bincount(inverse.ravel(), weights=x) / count for x in (y, base, slope))
    return Rows(y, base, slope, count.astype(float))


def _grid(sd: Floats, y: Floats, n: int) -> Floats:
    """Candidate counts: steps of 1/5 of the smallest noise, then steps that grow by 1.6 %, up to
    the largest estimate.
    """
    step, top = float(sd.min()) / 5, min(float(n), max(float((y + 2 * sd).max()), float(sd.max())))
    linear = np.arange(0, min(CLEAR * 5 + 2, top / step + 2)) * step
    more = int(np.ceil(np.log(max(top / linear[-1], 1)) / np.log(1.016)))
    grid = np.concatenate((linear, linear[-1] * 1.016 ** np.arange(1, more + 1)))
    return np.unique(np.minimum(grid, n))


def likelihood(rows: Rows, grid: Floats, scaled: bool = True) -> Floats:
    """The density of every row at every grid point. A clear estimate points at its nearest one.

    With `scaled` the densities are up to a factor per row, so that none vanishes.
    """
    var = np.maximum(
        rows.variance_at_zero[:, None] + rows.slope[:, None] * grid,
        1e-9 * rows.variance_at_zero[:, None],
    )
    exponent = -((rows.y[:, None] - grid) ** 2) / (2 * var) - np.log(var) / 2
    L = np.exp(exponent - exponent.max(axis=1, keepdims=True) if scaled else exponent)
    clear = np.flatnonzero(rows.y > CLEAR * np.sqrt(rows.variance_at_zero))
    L[clear] = 0
    L[clear, np.abs(rows.y[clear, None] - grid).argmin(axis=1)] = 1
    return L + 1e-300


def posterior(mixture: Mixture, y: Floats, base: Floats, slope: Floats) -> Floats:
    """Posterior weights on the mixture's grid, a row per estimate."""
    return apply_bayes(mixture, y, base, slope)[0]


def apply_bayes(mixture: Mixture, y: Floats, base: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Posterior weights, and how much the best count explains an estimate better than the mixture
    does (the difference of log-likelihoods).
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
    """Spread every atom over counts that the data cannot tell apart: a kernel of `width` times the
    typical noise, on counts >= 0.
    """
    sd = float(
        np.sqrt(np.median(estimate.variance_at_zero[np.isfinite(estimate.variance_at_zero)]))
    )
    tau = width * sd
    grid = mixture.grid
    cell = np.gradient(grid)
    kernel = np.exp(-((grid[:, None] - grid[None, :]) ** 2) / (2 * tau**2)) * cell[:, None]
    weights = (kernel / kernel.sum(axis=0)) @ mixture.weights
    return Mixture(grid, weights, mixture.log_likelihood, mixture.gap)
