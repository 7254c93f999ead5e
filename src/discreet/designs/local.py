"""Boxes for explicit pairs of more levels than can be enumerated (vertices.py): a local search.

For given numbers of named items the score of a column is convex in its box (H, L). So the box that
is best for the score's tangent, a linear program over all boxes, is no worse. From there the best
numbers of named items follow in closed form, and so on until nothing moves. What is found is good
and not proved to be the best.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.boxes import Boxes, limited
from discreet.designs.columns import Columns, ColumnSearch, Prices
from discreet.designs.vertices import closure

MOST_LEVELS = 12  # levels for which the search takes some seconds
_ROUNDS = 30
_IDLE = 3  # rounds without gain after which the search ends
_TRIES = 12  # climbs per round from used columns, and as many from random ones
_CLIMBS = 12
_GAP = 1e-6  # relative gain of a column that is worth while
_FAR = 1e6  # a limit for an end of a box that no budget limits

Box = tuple[Floats, Floats]  # H and L, a row each


class LocalSearch(ColumnSearch):
    """The search for the boxes that matter, in any table of ordered pair budgets."""

    def __init__(self, r: Floats, sizes: Floats, shares: Floats, weights: Floats) -> None:
        r, self.note = limited(r)
        self.factors = np.exp(closure(r, sizes))
        one = np.ones((1, len(sizes)))
        super().__init__(Boxes(one, one), sizes, shares, weights, sizes, fixed=True)
        self._rng = np.random.default_rng(0)
        self._rows = self._constraints()

    def boxes(self) -> Boxes:
        """The boxes of the columns that a good design uses."""
        H, L = self._first_boxes()
        best, idle = np.inf, 0
        with np.errstate(all="ignore"):
            for _ in range(_ROUNDS):
                weights = np.diag(self.W)
                search = ColumnSearch(Boxes(H, L), self.m, self.x, weights, self.steps, fixed=True)
                design = search.solve(certify=False)
                _, p = search.master(design.columns, design.shares)
                idle = 0 if p.f < best * (1 - _GAP) else idle + 1
                best = min(best, p.f)
                used = np.unique(design.columns.box)
                more_H, more_L, score = self._improved(search, design.columns, p)
                gain = score > p.f * (1 + _GAP)
                H = np.vstack((H[used], more_H[gain]))
                L = np.vstack((L[used], more_L[gain]))
                if idle > _IDLE or (not gain.any() and idle > 0):
                    break
        return Boxes(*_distinct(H, L), self.note)

    # ---- one round -------------------------------------------------------------------------------

    def _improved(
        self, search: ColumnSearch, used: Columns, p: Prices
    ) -> tuple[Floats, Floats, Floats]:
        """Climb from used columns, mixed in pairs and shaken, and from random ones."""
        t, rng = len(self.m), self._rng
        first, second = rng.integers(len(used), size=(2, _TRIES))
        share = rng.random((_TRIES, 1))
        shake = np.exp(rng.normal(size=(_TRIES, t)) * rng.choice((0, 0.3, 1), (_TRIES, 1)))
        mixed = [
            (share * ends[used.box[first]] + (1 - share) * ends[used.box[second]]) * shake
            for ends in (search.H, search.L)
        ]
        flipped = np.where(used.b[first] > 0, 0, self._some_b(_TRIES))
        b = np.where(rng.random((_TRIES, t)) < 0.3, flipped, used.b[first])
        middle = np.exp(1.5 * rng.normal(size=(_TRIES, t)))
        speaks = rng.random((_TRIES, t)) < 0.7
        H = np.vstack((mixed[0], 1.3 * middle))
        L = np.vstack((mixed[1], middle / 1.3))
        return self._climb((H, L), np.vstack((b, np.where(speaks, self._some_b(_TRIES), 0))), p)

    def _some_b(self, count: int) -> Floats:
        """Random shares of named items; 0 where a level is one item."""
        named = np.maximum(1, np.round(self._rng.random((count, len(self.m))) * self.m * 0.6))
        return np.where(self.m > 1, named / self.m, 0.0)

    def _climb(self, start: Box, b: Floats, p: Prices) -> tuple[Floats, Floats, Floats]:
        """From every column to the best one for its tangent, while that is better."""
        (H, L), n = start, len(b)
        best_H, best_L, best = H.copy(), L.copy(), np.full(n, -np.inf)
        moving = np.arange(n)
        for _ in range(_CLIMBS):
            tops = {k: self._best_box(H[k], L[k], b[k], p) for k in moving.tolist()}
            ends = [self._widened(*top, b[k]) for k, top in tops.items() if top]
            moving = np.array([k for k, top in tops.items() if top], dtype=int)
            if not len(moving):
                break
            self.H, self.L = np.array([h for h, _ in ends]), np.array([l for _, l in ends])
            columns, score = self._ascend(Columns(np.arange(len(moving)), b[moving]), p)
            better = score > best[moving] + 1e-10 * np.abs(score)
            moving = moving[better]
            H[moving], L[moving], b[moving] = self.H[better], self.L[better], columns.b[better]
            best_H[moving], best_L[moving], best[moving] = H[moving], L[moving], score[better]
        return best_H, best_L, best

    def _best_box(self, H: Floats, L: Floats, b: Floats, p: Prices) -> Box | None:
        """The box that is best for the tangent of the score at this column."""
        S = L + b * (H - L)
        z = S @ self.x
        if not z > 0:
            return None
        between = 2 * p.Q @ S / z - p.nu
        within = 2 * p.w * b * (1 - b) * (H - L) / z
        return self._program(between * b + within, between * (1 - b) - within, b)

    # ---- boxes by linear programs ----------------------------------------------------------------

    def _constraints(self) -> Floats:
        """Rows of H_l <= e^{d_lc} L_c and L_l <= H_l, over H and then L."""
        t, rows = len(self.m), []
        for l, c in np.argwhere(np.isfinite(self.factors)):
            row = np.zeros(2 * t)
            row[l], row[t + c] = 1, -self.factors[l, c]
            rows.append(row)
        return np.vstack((np.reshape(rows, (-1, 2 * t)), np.hstack((-np.eye(t), np.eye(t)))))

    def _program(self, of_H: Floats, of_L: Floats, b: Floats) -> Box | None:
        """The feasible box of probability one with the largest of_H H + of_L L."""
        from scipy.optimize import linprog  # takes long to load

        t = len(self.m)
        lone = np.hstack((np.eye(t), -np.eye(t)))[self.m == 1]
        equal = np.vstack((np.concatenate((self.x * b, self.x * (1 - b))), lone))
        solution = linprog(
            -np.concatenate((of_H, of_L)),
            self._rows,
            np.zeros(len(self._rows)),
            equal,
            np.eye(1, len(equal))[0],
            method="highs-ds",
        )
        return (solution.x[:t], solution.x[t:]) if solution.status == 0 else None

    def _widened(self, H: Floats, L: Floats, b: Floats) -> Box:
        """Ends that no item is at, as far out as the others allow, so that b can move."""
        H, L = H.copy(), L.copy()
        for l in self._rng.permutation(np.flatnonzero(self.m > 1)):
            if b[l] == 0 and L[l] > 0:
                near = np.isfinite(self.factors[l])
                H[l] = max(L[l], (L * self.factors[l])[near].min(initial=_FAR * L[l]))
            if b[l] == 1 and H[l] > 0:
                L[l] = min(H[l], (H / self.factors[:, l]).max())
        return H, L

    def _first_boxes(self) -> Box:
        """The constant column, the widest box of every level, so that each can be estimated, and
        the best boxes for random prices.
        """
        t = len(self.m)
        apart = np.eye(t)[self.m > 1]
        prices = np.vstack((np.eye(t), -np.eye(t), self._rng.normal(size=(2 * t, t)))) * self.x
        programs = [
            *((level, -level, np.where(level > 0, 1 / self.m, 0)) for level in apart),
            *((price, price - 0.3 * self.x, self._some_b(1)[0]) for price in prices),
        ]
        solutions = [(self._program(of_H, of_L, b), b) for of_H, of_L, b in programs]
        boxes = [self._widened(*box, b) for box, b in solutions if box is not None]
        one = np.ones(t)
        return _distinct(
            np.array([one, *(H for H, _ in boxes)]), np.array([one, *(L for _, L in boxes)])
        )


def _distinct(H: Floats, L: Floats) -> Box:
    """Every box once, its largest chance 1."""
    both = np.hstack((H, L)) / H.max(axis=1, keepdims=True)
    both = both[np.sort(np.unique(np.round(both, 9), axis=0, return_index=True)[1])]
    return both[:, : H.shape[1]], both[:, H.shape[1] :]
