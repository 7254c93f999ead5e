"""Ordered questions: what a design is best for, and the search for scales of many points.

The columns of a scale are walks: every point is one step above or below its neighbour, or, with a
cap, the same. There are 2^(t-1) of them, so for many points the best walk for given prices is found
by a dynamic program, and the bound comes from a dual problem (lower.py).
"""

from __future__ import annotations

import numpy as np

from discreet.arrays.types import Floats, Ints
from discreet.designs.boxes import MOST_CAPPED, MOST_POINTS, Boxes
from discreet.designs.columns import Columns, ColumnSearch, Design, Prices
from discreet.designs.task import Task
from discreet.mechanism import Mechanism
from discreet.policy import Policy

_RANDOM = 200  # walks that the search starts from in every round
_IDLE = 2  # rounds without gain after which the search ends
_CLIMBS = 15
MOST_PROVED = 20  # points of a scale whose bound takes some seconds


def is_long(policy: Policy) -> bool:
    """Whether a scale has too many walks to look at all of them."""
    most = MOST_POINTS if policy.cap is None else MOST_CAPPED
    return policy.rule.ordered and policy.m > most


def mean_weights(items: Floats) -> Floats:
    """W of the error of the mean, tr(W J^-1), where the points count 1, 2, 3 and so on. The items
    count a little, so that they can be estimated too.
    """
    return _mean_square(len(items)) + 1e-6 * np.diag(items)


def both_weights(items: Floats, step: float, best: float) -> Floats:
    """W of the error of the items and of the mean: the least error of the mean counts as much as
    `best`, the least of all items together. The truncated geometric mechanism is the best for the
    mean.
    """
    mean = _mean_square(len(items))
    return np.diag(items) + mean * (best / float(np.sum(mean * _geometric(len(items), step))))


def _mean_square(points: int) -> Floats:
    """a a' for the values a of the points, centred at 0: the mean is the sum of a times shares."""
    values = np.arange(float(points)) - (points - 1) / 2
    return np.outer(values, values)


def _geometric(points: int, step: float) -> Floats:
    """J^-1 of the truncated geometric mechanism, everybody equally likely at every point."""
    distance = np.abs(np.subtract.outer(np.arange(points), np.arange(points)))
    kernel = np.exp(-step * distance)
    chances = kernel * np.linalg.solve(kernel, np.ones(points))
    return np.asarray(np.linalg.inv((chances / chances.mean(axis=0)) @ chances.T))


def score(mechanism: Mechanism, shares: Floats, W: Floats) -> float:
    """tr(W J^-1) less what is no error, of a mechanism of lone items."""
    chance = mechanism.arrays.chance
    inverse = np.linalg.inv((chance / (chance @ shares)[:, None]).T @ chance)
    return float(np.sum(inverse * W) - np.diag(W) @ shares)


class ScaleSearch(ColumnSearch):
    """The search without a list of all walks. Columns are boxes whose two ends are the same."""

    def __init__(self, task: Task, shrink: float, shares: Floats, weights: Floats) -> None:
        points = task.policy.m
        self.step, self.cap = task.smallest * (1 - shrink), task.policy.cap
        self.proves = task.certify or points <= MOST_PROVED
        one = np.ones((1, points))
        super().__init__(Boxes(one, one), one[0], shares, weights, one[0], fixed=True)
        self._rng = np.random.default_rng(0)

    @property
    def provable(self) -> bool:
        """The bound needs no list of columns, but time."""
        return self.proves

    def rebuilt(self, columns: Columns) -> Columns:
        """Take over the walks of another search, at this one's step."""
        self.H = self.L = self._chances(columns.walks)
        return Columns(np.arange(len(self.H)), np.zeros_like(self.H), columns.walks)

    def _chances(self, walks: Ints) -> Floats:
        """The columns of these walks."""
        return np.exp(self.step * (walks - walks.max(axis=1, keepdims=True)))

    def _best(self, prices: Floats) -> Ints:
        """For every row of prices the walk with the largest mean price (Dinkelbach's method)."""
        n, t = prices.shape
        reach = t - 1 if self.cap is None else self.cap
        heights = np.exp(self.step * (np.arange(reach + 1) - reach))
        walks, rate = np.zeros((n, t), np.int64), np.full(n, -1e300)
        for _ in range(50):
            chance = heights[walks]
            new = (prices * chance).sum(axis=1) / (chance @ self.x)
            if (new <= rate + 1e-12 * np.abs(rate)).all():
                break
            rate = new
            walks = self._best_walks(prices - rate[:, None] * self.x, heights)
        return walks

    def _best_walks(self, worth: Floats, heights: Floats) -> Ints:
        """The walk with the largest sum of worth times height, from the last point backwards."""
        n, t = worth.shape
        value = worth[:, -1:] * heights
        choices = np.full((t, n, len(heights)), -1, np.int8)
        for i in range(t - 2, -1, -1):
            best = np.full_like(value, -np.inf)
            best[:, 1:] = value[:, :-1]  # down
            if self.cap is not None:
                choices[i][value > best] = 0
                best = np.maximum(best, value)
            choices[i, :, :-1][value[:, 1:] > best[:, :-1]] = 1
            best[:, :-1] = np.maximum(best[:, :-1], value[:, 1:])
            value = worth[:, [i]] * heights + best
        walks = np.zeros((n, t), np.int64)
        walks[:, 0] = value.argmax(axis=1)
        for i in range(t - 1):
            walks[:, i + 1] = walks[:, i] + choices[i, np.arange(n), walks[:, i]]
        return walks

    def _score(self, walks: Ints, p: Prices) -> Floats:
        chance = self._chances(walks)
        z = chance @ self.x
        worth = ((chance @ p.Q) * chance).sum(axis=1) / z**2 - chance @ p.nu / z
        return np.asarray(worth + p.nu.sum())

    def _climb(self, walks: Ints, p: Prices) -> tuple[Ints, Floats]:
        """The score is convex in a column, so that the best walk of its tangent is no worse."""
        old = self._score(walks, p)
        for _ in range(_CLIMBS):
            chance = self._chances(walks)
            chance /= (chance @ self.x)[:, None]
            better = self._best(2 * chance @ p.Q - p.nu)
            score = self._score(better, p)
            walks = np.where((score > old)[:, None], better, walks)
            gain, old = (score - old).max(), np.maximum(score, old)
            if gain < 1e-9 * p.f:
                break
        return walks, old

    def _starts_from(self, walks: Ints) -> Ints:
        """The walks in use, each with one step the other way, and random ones."""
        turned = [walks]
        for walk in walks:
            steps = np.diff(walk)
            flips = np.where(np.eye(len(steps), dtype=bool), -steps, steps)
            turned.append(np.hstack((np.zeros((len(flips), 1), int), flips.cumsum(axis=1))))
        all_ = np.vstack(turned)
        if self.cap is not None:
            all_ = all_[np.ptp(all_, axis=1) <= self.cap]
        prices = self._rng.normal(size=(_RANDOM, len(self.m)))
        return np.unique(np.vstack((all_, self._best(prices))), axis=0)

    def solve(self, certify: bool = True, warm: Columns | None = None) -> Design:
        """Generate walks until none improves the design."""
        t = len(self.m)
        prices = np.vstack((np.eye(t), -np.eye(t), self._rng.normal(size=(3 * t, t))))
        walks = np.unique(self._best(prices), axis=0)
        if warm is not None:
            walks = np.unique(np.vstack((walks, warm.walks)), axis=0)
        mu = np.full(len(walks), 1 / len(walks))
        with np.errstate(all="ignore"):
            walks, mu, p = self._generate(walks, mu)
            if self._must_cap(p):
                self.capped = True
                walks, mu, _ = self._generate(walks, mu)
        keep = mu > 1e-6
        kept, mu = self._basic(self._columns(walks[keep]), mu[keep])
        columns = self.rebuilt(kept)
        mu, p = self.master(columns, mu)
        offset = float(np.diag(self.W) @ self.x)
        bound = None
        if certify and self.proves:
            from discreet.designs.lower import lower_bound

            v, W = self.information(columns)[1], self.W + np.diag(p.at.extra)
            weighted = lower_bound(self.pair_budgets, self.x, W, (v.T * mu) @ v)
            if np.isfinite(weighted):
                bound = min(weighted - p.allowed(self.caps), p.at.value) - offset
        return Design(columns, mu, p.at.value - offset, bound, self.capped)

    def _columns(self, walks: Ints) -> Columns:
        return self.rebuilt(Columns(np.zeros(0, int), np.zeros((0, len(self.m))), walks))

    def _generate(self, walks: Ints, mu: Floats) -> tuple[Ints, Floats, Prices]:
        """Add walks until none improves the design."""
        best, idle, t = np.inf, 0, len(self.m)
        for _ in range(80):
            mu, p = self.master(self._columns(walks), mu)
            used = mu > 1e-7 * mu.max()
            cost = p.cost(self.caps if self.capped else None)
            idle = 0 if cost < best * (1 - 1e-7) else idle + 1
            best = min(best, cost)
            better, score = self._climb(self._starts_from(walks[used]), p)
            gain = score > p.f + 2.5e-7 * p.at.value
            if not gain.any() or idle > _IDLE:
                break
            order = np.argsort(-score)[: min(60, int(gain.sum()))]
            fresh = np.unique(better[order], axis=0)
            known = {row.tobytes() for row in (walks - walks.min(axis=1, keepdims=True))}
            fresh = np.array(
                [w for w in fresh if (w - w.min()).tobytes() not in known], dtype=np.int64
            ).reshape(-1, t)
            if not len(fresh):
                break
            walks = np.vstack((walks[used], fresh))
            mu = np.append(mu[used], np.full(len(fresh), 1e-3))
        return walks, mu, p

    @property
    def pair_budgets(self) -> Floats:
        """r of every two points."""
        t = len(self.m)
        steps = np.abs(np.subtract.outer(np.arange(t), np.arange(t)))
        return self.step * (steps if self.cap is None else np.minimum(steps, self.cap))
