"""Boxes: where the columns of any mechanism lie (docs/researcher.md, "The theorem").

A column is the chance of one report for every input. With hi_l and lo_l the largest and smallest ln
q in level l, a column is feasible iff hi_l - lo_c <= r_lc for all levels, so it lies in a box (hi,
lo) and every vector of the box is feasible; extreme columns have every item at hi or lo of a box
that is a vertex of that polytope, up to a common shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.parts import Floats

# of a log-ratio: larger budgets count as this one, so that integers over 2^32 can hold them
LARGEST = 14.0
MOST_WITH_PAIRS = 4  # levels whose polytope's vertices are enumerated


@dataclass(frozen=True)
class Boxes:
    """hi and lo, a row per box and a column per group; `note` says why they are not all there are,
    if so.
    """

    hi: Floats
    lo: Floats
    note: str = ""


def of_budgets(eps: Floats, notion: str) -> Boxes:
    """All boxes of `min` or `avg` for one budget per group."""
    note = f"budgets above {LARGEST:g} count as {LARGEST:g}" if eps.max() > LARGEST else ""
    eps = np.minimum(eps, LARGEST)
    if notion == "avg":
        return Boxes(eps[None, :] / 2, -eps[None, :] / 2, note)
    s = np.unique(np.minimum(eps, 2 * eps.min()))[:, None]
    return Boxes(np.minimum(s, eps), np.maximum(0, s - eps), note)


def of_pairs(r: Floats) -> Boxes:
    """The vertices of hi_l - lo_c <= r_lc, lo_l <= hi_l for few groups; r is infinite where a pair
    is not protected.
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
    A, b = (
        np.array(rows)[:, :-1],
        np.array(limits),
    )  # the last lo is 0: columns are free up to a common shift
    chosen = np.array(list(combinations(range(len(b)), 2 * t - 1)))
    solvable = chosen[
        np.abs(np.linalg.det(A[chosen])) > 0.5
    ]  # a difference system: determinants are 0 or ±1
    points = np.linalg.solve(A[solvable], b[solvable][..., None])[..., 0]
    feasible = (points @ A.T <= b + 1e-9).all(axis=1)
    vertices = np.unique(np.round(points[feasible], 10), axis=0)
    full = np.column_stack((vertices, np.zeros(len(vertices))))
    return Boxes(full[:, :t], full[:, t:], note)


def bounded(r: Floats) -> tuple[Floats, str]:
    """r with a bound on the pairs that no chain of protected pairs connects, and what that leaves
    out.
    """
    paths = r.copy()
    for k in range(len(r)):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k], :])
    note = ""
    if (r[np.isfinite(r)] > LARGEST).any():
        note = f"budgets above {LARGEST:g} count as {LARGEST:g}"
    return np.where(np.isinf(paths), LARGEST, np.minimum(r, LARGEST)), note
