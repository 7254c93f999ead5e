"""Boxes: where the columns of any mechanism lie (docs/researcher.md, "The theorem").

A column is the chance of one report for every answer. Let H_l and L_l be the largest and smallest
chance in level l. A column is feasible if and only if H_l <= e^{r_lc} L_c for all levels. So it
lies in a box (H, L), and every vector of the box is feasible. Extreme columns have every item at H
or L of a box that is a vertex of that cone, up to a common factor. Both are 0 for levels that never
send the report; L alone is 0 where a report that names an answer can come from nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.notions import Closed

# larger log-ratios count as this one, so that integers over 2^32 can hold them
LARGEST = 14.0
MOST_WITH_PAIRS = 4  # groups of sets whose polytope's vertices are enumerated
MOST_POINTS = 15  # of a scale whose columns are all looked at; with a cap:
MOST_CAPPED = 11


@dataclass(frozen=True, eq=False)
class Boxes:
    """H and L, a row per box and a column per group. If boxes are missing, `note` says why."""

    H: Floats
    L: Floats
    note: str = ""


def boxes_for_budgets(eps: Floats, closed: Closed) -> Boxes:
    """All boxes of a notion with closed forms, for one budget per group."""
    eps, note = limited(eps)
    hi, lo = closed.box(eps, closed.corners(eps))
    return Boxes(np.exp(hi), np.exp(lo), note)


def limited(eps: Floats) -> tuple[Floats, str]:
    """Budgets up to the largest that integers can hold, and a note if there are larger ones."""
    large = eps[np.isfinite(eps)].max(initial=0) > LARGEST
    note = f"budgets above {LARGEST:g} count as {LARGEST:g}" if large else ""
    return np.where(np.isfinite(eps), np.minimum(eps, LARGEST), eps), note


def one_way_boxes(eps: Floats) -> Boxes:
    """r_lc = eps_l, infinite for an open group: one box [1, e^eps] with open answers at 1, and the
    open answers themselves.
    """
    eps, note = limited(eps)
    is_open = np.isinf(eps)
    units = np.eye(len(eps))[is_open]
    H = np.vstack((np.exp(np.where(is_open, 0, eps)), units))
    return Boxes(H, np.vstack((np.ones(len(eps)), np.zeros_like(units))), note)


def scale_boxes(points: int, step: float, cap: int | None) -> Boxes:
    """All columns of a scale: walks that go up or down by one step at every point. With a cap they
    stay within so many steps and may rest; then they use the whole range, and every run between
    two rests touches its top or bottom.
    """
    moves = (-1, 1) if cap is None else (-1, 0, 1)
    steps = np.array(list(product(moves, repeat=points - 1)), dtype=np.int8)
    walk = np.cumsum(np.hstack((np.zeros((len(steps), 1), int), steps)), axis=1)
    low, high = walk.min(axis=1, keepdims=True), walk.max(axis=1, keepdims=True)
    if cap is not None:
        rests = steps == 0
        run = np.cumsum(np.hstack((np.zeros((len(steps), 1), int), rests)), axis=1)
        touches, range_ = (walk == low) | (walk == high), (high - low)[:, 0]
        fine = np.where(rests.any(axis=1), range_ == cap, range_ <= cap)
        for k in range(points):
            mine = run == k
            fine &= ~rests.any(axis=1) | ~mine.any(axis=1) | (touches & mine).any(axis=1)
        walk, high = walk[fine], high[fine]
    chances = np.exp(step * (walk - high))
    return Boxes(chances, chances)


# ---- sets: explicit pairs of few groups, all finite ----------------------------------------------


def boxes_for_pairs(r: Floats) -> Boxes:
    """The vertices of hi_l - lo_c <= r_lc, lo_l <= hi_l, for few groups of a set. r is infinite
    where a pair is not protected.
    """
    r, note = bounded(r)
    t = len(r)
    rows, limits = [], []
    for l in range(t):
        for c in range(t):
            row = np.zeros(2 * t)
            row[l], row[t + c] = 1, -1
            rows.append(row)
            limits.append(r[l, c])
        row = np.zeros(2 * t)
        row[l], row[t + l] = -1, 1
        rows.append(row)
        limits.append(0.0)
    # the last lo is 0: columns are free up to a common shift
    A, b = np.array(rows)[:, :-1], np.array(limits)
    chosen = np.array(list(combinations(range(len(b)), 2 * t - 1)))
    # a difference system: determinants are 0 or ±1
    solvable = chosen[np.abs(np.linalg.det(A[chosen])) > 0.5]
    points: Floats = np.linalg.solve(A[solvable], b[solvable][..., None])[..., 0]
    feasible = (points @ A.T <= b + 1e-9).all(axis=1)
    vertices = np.unique(np.round(points[feasible], 10), axis=0)
    full = np.exp(np.column_stack((vertices, np.zeros(len(vertices)))))
    return Boxes(full[:, :t], full[:, t:], note)


def bounded(r: Floats) -> tuple[Floats, str]:
    """r with a bound for the pairs that no chain of protected pairs connects, and a note about what
    the bound leaves out.
    """
    paths = r.copy()
    for k in range(len(r)):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k], :])
    note = limited(r)[1]
    return np.where(np.isinf(paths), LARGEST, np.minimum(r, LARGEST)), note
