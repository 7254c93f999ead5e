"""A proof of a lower bound for sets of several budgets, or of sizes that vary: prices that a search
finds here, and that anybody verifies in seconds (set_relaxed.py).

The search may end early or miss columns: then the bound is lower, and never false, because it is
verified as a reader of the proof would do it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.set_relaxed import ClassColumns, ClassPrices, Relaxed
from discreet.designs.weighing import Term, Weights, best_weights
from discreet.errors import DiscreetError

FORMAT = "discreet-proof/1"
LEAST_BUDGET = 1e-9  # below it chances are all the same to a float
Proof = dict[str, Any]  # as it is in a file
_RIDGES = (0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 1e-5, 0.0)
_NEAR = 1e-4  # a column that is worth less than this above the others changes nothing
_MISSED = 1e-3  # the same of one that only the proof meets
_ROUNDS = 40
_COUNTED = 2  # levels up to which prices of the numbers of items, psi, are sought
_KEPT = 300
_MARGIN = 1 - 1e-9  # for the rounding of the last formula
_KEYS = ("items", "budgets", "sizes", "phi", "psi", "nu")


def prove(
    items: Sequence[int], budgets: Sequence[float], sizes: Floats, seconds: float = 60
) -> Proof:
    """The best proof that is found in about so many seconds of processor time."""
    problem = Relaxed(items, budgets, sizes)
    prices = _PriceSearch(problem).run(seconds)
    return {
        "format": FORMAT,
        "items": list(items),
        "budgets": [float(x) for x in budgets],
        "sizes": [float(x) for x in sizes],
        "phi": prices.phi.tolist(),
        "psi": prices.psi.tolist(),
        "nu": prices.nu.tolist(),
    }


def verify(proof: Mapping[str, Any]) -> float:
    """The lower bound that a proof proves. It holds whatever the prices in the proof are."""
    problem, prices = _read(proof)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        most, _ = problem.most(prices)
        bound = problem.lower_bound(problem.centred(prices), most) if most > 0 else np.nan
    if not np.isfinite(bound):  # a comparison with it would say nothing
        raise DiscreetError("this is not a proof: its prices are too large or too small to compute")
    return bound * _MARGIN


def _read(proof: Mapping[str, Any]) -> tuple[Relaxed, ClassPrices]:
    """The problem and the prices; raises DiscreetError if they are not a proof's."""
    if proof.get("format") != FORMAT or set(proof) != {"format", *_KEYS}:
        raise DiscreetError(f'this is not a proof: it needs format = "{FORMAT}" and {_KEYS}')
    try:
        items, budgets, sizes, phi, psi, nu = (np.array(proof[key], float) for key in _KEYS)
        whole = [int(x) for x in items]
        fits = (
            (items == whole).all() and (items > 0).all() and len(items) == len(budgets)
            and (sizes >= 0).all() and abs(sizes.sum() - 1) < 1e-6 and len(sizes) <= 1 + sum(whole)
            and (budgets >= LEAST_BUDGET).all() and len(sizes) > 1
        )  # fmt: skip
        problem = Relaxed(whole, budgets.tolist(), sizes / sizes.sum()) if fits else None
    except (TypeError, ValueError, OverflowError):
        problem = None
    if problem is None:
        raise DiscreetError("this is not a proof: items, budgets and sizes do not fit together")
    shape = problem.within.shape
    finite = all(np.isfinite(x).all() for x in (budgets, phi, psi, nu))
    if not finite or phi.shape != shape or psi.shape != shape or nu.shape != shape[:1]:
        raise DiscreetError(
            f"this is not a proof: its prices are not finite, or not of {shape[0]} classes and "
            f"{shape[1]} levels"
        )
    return problem, ClassPrices(phi, psi, nu)


class _PriceSearch:
    """Columns so far, and the best weights of them; their prices are a proof."""

    def __init__(self, problem: Relaxed) -> None:
        self.problem = problem
        # with more levels, what the numbers of items tell would make a proof take minutes
        self.counted = len(problem.items) <= _COUNTED
        self.columns = _first(problem)
        self.mu = np.full(len(self.columns.u), 1 / len(self.columns.u))
        self.best: tuple[float, ClassPrices] = (-np.inf, self._prices(self._weigh(0.03)))

    def run(self, seconds: float) -> ClassPrices:
        """Until nothing improves the weights, or the time is over."""
        end = time.process_time() + seconds
        for ridge in _RIDGES:
            for _ in range(_ROUNDS):
                if time.process_time() > end:
                    break
                at = self._weigh(ridge)
                self.mu = at.mu
                prices = self._prices(at)
                top = float(self.problem.scores(prices, self.columns).max())
                if not self._add(prices, top) and not self._missed(prices, top):
                    break
        self._missed(self._prices(self._weigh(0.0)), np.inf)
        return self.best[1]

    def _missed(self, prices: ClassPrices, top: float) -> bool:
        """Keep prices if they prove more; whether the proof met a column that every climb missed,
        which is added.
        """
        problem = self.problem
        most, met = problem.most(prices)
        bound = problem.lower_bound(prices, most)
        if bound > self.best[0]:
            self.best = (bound, prices)
        if missed := float(problem.scores(prices, met)[0]) > top * (1 + _MISSED):
            self._join(met)
        return missed

    def _weigh(self, ridge: float) -> Weights:
        problem, u = self.problem, self.columns.u
        soft = 0.9 * problem.shares + 0.1 / len(problem.shares)
        terms = []
        for level in range(len(problem.items)):
            inner = problem.spread[:, level] > 0
            rows, share = self.columns.told[:, inner, level], soft[inner]
            scale = float(problem.spread[inner, level].max(initial=0)) ** 2
            goal = problem.within[inner, level]
            terms.append(Term(rows, goal, 1.0, ridge * scale / share))
            if self.counted:
                beside = problem.beside[:, level]
                terms.append(Term(u, beside, 1 / float(problem.items[level]), 0.1 * ridge / soft))
        return best_weights(u, terms, self.mu, ridge / soft, 1e-5 if ridge else 1e-8)

    def _prices(self, at: Weights) -> ClassPrices:
        problem = self.problem
        phi, psi = np.zeros_like(problem.within), np.zeros_like(problem.within)
        terms = 1 + self.counted
        for level, items in enumerate(problem.items):
            phi[problem.spread[:, level] > 0, level] = at.solved[terms * level]
            if self.counted:
                psi[:, level] = at.solved[terms * level + 1] / items
        return problem.centred(ClassPrices(phi, psi, at.price))

    def _add(self, prices: ClassPrices, top: float) -> bool:
        """Columns that climbs from the best so far reach, and that are worth more than those."""
        problem = self.problem
        tau, other = problem.directions(prices, self.columns)
        chosen = np.argsort(-problem.scores(prices, self.columns))[:6]
        t, size = len(problem.items), np.abs(tau).max() + 1e-300
        starts = np.append(tau[chosen], np.eye(t) * size, 0)
        others = np.append(other[chosen], np.zeros((t, t)), 0)
        added = False
        for box in problem.boxes:
            if box.radius.max() < 1e-12:
                continue
            columns, score = problem.climb(prices, box, starts, others)
            good = np.flatnonzero(score > top * (1 + _NEAR))
            good = good[np.argsort(-score[good])]
            kept: list[int] = []
            for i in good:
                if all(np.abs(columns.u[i] - columns.u[k]).max() > 1e-4 for k in kept):
                    kept.append(int(i))
            if kept:
                self._join(columns.take(np.array(kept)))
                added = True
        self._forget(prices)
        return added

    def _join(self, columns: ClassColumns) -> None:
        self.columns = self.columns.plus(columns)
        self.mu = np.append(self.mu, np.full(len(columns.u), 1e-6))

    def _forget(self, prices: ClassPrices) -> None:
        """Keep the columns that are used, and the first few, which make every weighing possible."""
        if len(self.mu) > 2 * _KEPT:
            order = np.argsort(-self.problem.scores(prices, self.columns))[:_KEPT]
            kept = np.zeros(len(self.mu), bool)
            kept[order] = True
            kept |= self.mu > 1e-7
            kept[: len(_first(self.problem).u)] = True
            self.columns, self.mu = self.columns.take(kept), self.mu[kept]


def _first(problem: Relaxed) -> ClassColumns:
    """One that tells nothing; and per class those that tell something of it alone."""
    C, t = problem.within.shape
    box = max(problem.boxes, key=lambda box: float(box.radius @ problem.shares))
    u, told = [np.ones(C)], [np.zeros((C, t))]
    for c in range(C):
        for level in np.flatnonzero(problem.spread[c] > 0):
            some = np.zeros((C, t))
            some[c, level] = box.radius[c] * problem.spread[c, level]
            u.append(box.middle)
            told.append(some)
        for end in (box.low, box.high):
            some = box.middle.copy()
            some[c] = end[c]
            u.append(some)
            told.append(np.zeros((C, t)))
    chances, all_told = np.array(u), np.array(told)
    mean = chances @ problem.shares
    return ClassColumns(chances / mean[:, None], all_told / mean[:, None, None])
