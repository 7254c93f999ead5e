"""One part of counted hits, in floats: the best densities and chance of a hit for a cut.

A part has a cut: levels from that budget on are active. For every number j of active items the
density is high, min(e^U, R_j e^-W), where many of them are named, and low, max(e^-W, e^U / R_j),
where few are; one value lies between. U, W and the chance b of a hit are searched for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from discreet.arrays.types import Floats
from discreet.check import exact_sets
from discreet.check.exact_sets import Densities
from discreet.errors import DesignError


@dataclass(frozen=True)
class Cut:
    """A part in floats: the scalars U and W, the chance b of a hit, what an own item adds to it
    (delta), and the budget that active items are taken to have.
    """

    U: float
    W: float
    b: float
    delta: float
    active: float

    @property
    def information(self) -> float:
        """1 / variance of the estimate of an absent item, per report."""
        return self.delta**2 / (self.b * (1 - self.b))


def row_bounds(e1: float, ec: float, s: int) -> Floats:
    """R_j for j = 0, …, s."""
    j = np.arange(s + 1)
    return (j * math.exp(ec) + (s - j) * math.exp(e1)) / s


def binomial_laws(b: Floats, s: int) -> Iterator[Floats]:
    """Pr(N = n) of Bin(j, b) for j = 1, …, s: b x (j + 1)."""
    p = np.zeros((len(b), s + 1))
    p[:, 0] = 1
    for j in range(1, s + 1):
        p[:, 1 : j + 1] = p[:, 1 : j + 1] * (1 - b[:, None]) + p[:, :j] * b[:, None]
        p[:, 0] *= 1 - b
        yield p[:, : j + 1]


def tail_sums(p: Floats) -> Floats:
    """The sum over all larger n: Pr(N > n) for a law p."""
    sums = np.zeros_like(p)
    sums[:, :-1] = np.cumsum(p[:, :0:-1], axis=1)[:, ::-1]
    return sums


def high_and_low(U: Floats, W: Floats, bound: float) -> tuple[Floats, Floats, Floats]:
    """The high and the low density of a row, and the share of the high one."""
    high, low = np.minimum(np.exp(U), bound * np.exp(-W)), np.maximum(np.exp(-W), np.exp(U) / bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        return high, low, np.where(high > low, (1 - low) / (high - low), 0.5)


def largest_deltas(U: Floats, W: Floats, b: Floats, bounds: Floats) -> Floats:
    """The largest delta of every row (j = 1, …, s) at every point; 0 where there is none.

    The worth of the top q of Bin(j, b), E[(N - j b); top q], is the least of j + 1 lines in q.
    """
    deltas = np.empty((len(bounds) - 1, len(b)))
    for j, p in enumerate(binomial_laws(b, len(bounds) - 1), 1):
        high, low, q = high_and_low(U, W, bounds[j])
        slope = np.arange(j + 1) - j * b[:, None]
        worth = (tail_sums(p * slope) + (q[:, None] - tail_sums(p)) * slope).min(axis=1)
        deltas[j - 1] = np.where((high > 1) & (low < 1), high - low, 0) * worth / j
    return deltas


def _cost(points: Floats, bounds: Floats, kappa: float) -> tuple[Floats, Floats]:
    """The cost of points (U, W, b), and delta.

    The cost is the variance per report of an absent item, plus kappa times what a holder adds.
    """
    U, W, b = points.T
    delta = np.minimum(largest_deltas(U, W, b, bounds).min(axis=0), 1 - b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cost = b * (1 - b) / delta**2 + kappa * (1 - 2 * b - delta) / delta
    return np.where(delta > 1e-12, cost, np.inf), delta


@lru_cache(maxsize=4096)
def best_cut(e1: float, ec: float, s: int, kappa: float) -> Cut:
    """The best part if levels from the budget ec on are active.

    The bounds of whole sets may allow more than the items' own budgets do. Then active items are
    taken to have a smaller budget, down to the smallest of all.
    """
    others = 0 if ec == e1 else s + 1
    for top in np.linspace(min(ec, 2 * e1), e1, 1 if ec == e1 else 11):
        cut = _best_cut(e1, float(top), s, kappa)
        densities = _densities(cut, row_bounds(e1, cut.active, s))
        # in floats: the exact check follows
        held, lacked = exact_sets.item_factors(cast(Densities, densities), s + 1, others)
        if held <= math.exp(ec) and lacked <= math.exp(e1):
            break
    return cut


def _densities(cut: Cut, bounds: Floats) -> list[list[float]]:
    """f_j(N) for j = 0, …, s."""
    U, W, b = (np.array([x]) for x in (cut.U, cut.W, cut.b))
    deltas, rows = largest_deltas(U, W, b, bounds)[:, 0], [[1.0]]
    for j, p in enumerate(binomial_laws(b, len(bounds) - 1), 1):
        high, low, q = (float(x[0]) for x in high_and_low(U, W, bounds[j]))
        # the share of every N that is high
        share = np.clip((q - tail_sums(p)[0]) / np.maximum(p[0], 1e-300), 0, 1)
        scale = cut.delta / deltas[j - 1]
        rows.append((1 + (low + (high - low) * share - 1) * scale).tolist())
    return rows


def _best_cut(e1: float, ec: float, s: int, kappa: float) -> Cut:
    """Search with smaller and smaller grids, because there are several local optima.

    The search starts from the best point of a grid for every b, and from the best of "any hit"
    (tau = 0, often the optimum).
    """
    bounds = row_bounds(e1, ec, s)
    grid = np.arange(1, 13) * (e1 / 12)
    least = 1 / (4 * s * math.exp(e1))
    hit = np.concatenate((np.geomspace(least, 0.12, 10), np.linspace(0.16, 0.6, 6)))
    points = np.stack(np.meshgrid(hit, grid, grid, indexing="ij"), axis=-1)[..., [1, 2, 0]]
    rows = points.reshape(-1, 3)
    cost = _cost(rows, bounds, kappa)[0].reshape(len(hit), -1)
    first = rows.reshape(len(hit), -1, 3)[np.arange(len(hit)), cost.argmin(axis=1)]
    any_hit = _any_hit(e1, bounds)
    best = any_hit[[_cost(any_hit, bounds, kappa)[0].argmin()]]
    nearest = _refine(np.concatenate((first, best)), e1, bounds, kappa)
    cost, delta = _cost(nearest, bounds, kappa)
    at = int(cost.argmin())
    if not math.isfinite(cost[at]):
        raise DesignError(
            f"the smallest budget, {e1:g}, is too small for hits with a padding of {s}; use a "
            "larger one or a smaller padding"
        )
    u, w, b = nearest[at].tolist()
    return Cut(u, w, b, float(delta[at]), ec)


def _any_hit(e1: float, bounds: Floats) -> Floats:
    """Points where the density depends only on whether any own item is named."""
    u = np.linspace(0.02, 1, 50) * e1
    w = np.clip(math.log(bounds[1]) - u, 1e-6, e1)
    share = -np.expm1(-w) / (np.exp(u) - np.exp(-w))
    return np.stack((u, w, -np.expm1(np.log1p(-share) / (len(bounds) - 1))), axis=1)


def _refine(starts: Floats, e1: float, bounds: Floats, kappa: float) -> Floats:
    """The best points of smaller and smaller grids around these; after six steps only around the
    best four.
    """
    best, reach, factor = starts, e1 / 12, 0.5
    near = np.stack(np.meshgrid(*[np.linspace(-1, 1, 5)] * 3, indexing="ij"), axis=-1)
    near = near.reshape(-1, 3)
    for step in range(24):
        points = best[:, None, :] + near * [reach, reach, 0]
        points[..., 2] = np.clip(points[..., 2] * np.exp(factor * near[:, 2]), 1e-7, 0.95)
        points[..., :2] = np.clip(points[..., :2], 1e-6, e1)
        cost = _cost(points.reshape(-1, 3), bounds, kappa)[0].reshape(len(best), -1)
        best = points[np.arange(len(best)), cost.argmin(axis=1)]
        if step == 5:
            best = best[np.argsort(cost.min(axis=1))[:4]]
        reach, factor = reach * 0.65, factor * 0.65
    return best
