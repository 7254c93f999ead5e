"""opt0 within the authors' box a >= 1/2 >= b, to be set beside the global optimum.

In u = ln(a/b), w = ln((1-b)/(1-a)) the box is u >= g(w) and w >= g(u) with g(x) = ln(2 - e^-x).
Given U = max u and W = max w the policy allows u_k <= min(U, eps_k - W) and
w_k <= min(W, eps_k - U) (designs/reductions.py). Within the box a level's largest u and its
largest w are still reached together, and every bracket of the objective falls in both: two scalars
remain. The box is not convex in (u, w), so they are searched on a grid that zooms in.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays.types import Floats
from discreet.check.certificate import Certificate
from discreet.designs.reductions import Levels
from discreet.designs.task import Task
from discreet.designs.unary import one_part
from discreet.mechanism import Mechanism
from discreet.policy import Policy

_GRID = 81  # points per side
_ZOOMS = 12  # each keeps a fifth of the side
_STARTS = 5  # the best points of the first grid, zoomed in one by one


def boxed(policy: Policy, encoding: str = "bits", padding: int | None = None) -> Mechanism:
    """The mechanism of opt0 with every a >= 1/2 and every b <= 1/2 (up to the rounding toward
    privacy), for the notion `min`.
    """
    task = Task(policy, "uniform", encoding, padding)
    u, w, value = optimum(task.levels)
    mechanism = one_part("opt0", lambda _: (u, w))(task)
    note = f"opt0 within a >= 1/2 >= b, by the worst case: {value:.6g}"
    return mechanism.certified(Certificate(task.score(mechanism), None, note))


def optimum(levels: Levels) -> tuple[Floats, Floats, float]:
    """u, w and the worst-case objective of opt0 within the box, for the notion `min`."""
    e = levels.smallest
    side = np.linspace(0, e, _GRID + 1)[1:]
    U, W = (x.ravel() for x in np.meshgrid(side, side))
    values = _objective(levels, U, W)
    best = (math.inf, 0.0, 0.0)
    for start in np.argsort(values, kind="stable")[:_STARTS]:
        best = min(best, _zoom(levels, float(U[start]), float(W[start]), float(e / _GRID)))
    u, w = _largest(levels, np.array([best[1]]), np.array([best[2]]))
    return u[0], w[0], best[0]


def _zoom(levels: Levels, U: float, W: float, reach: float) -> tuple[float, float, float]:
    e, value = levels.smallest, math.inf
    for _ in range(_ZOOMS):
        sides = (
            np.clip(np.linspace(x - 2 * reach, x + 2 * reach, 21), 1e-9 * e, e) for x in (U, W)
        )
        us, ws = (x.ravel() for x in np.meshgrid(*sides))
        values = _objective(levels, us, ws)
        k = int(values.argmin())
        U, W, value, reach = float(us[k]), float(ws[k]), float(values[k]), reach / 5
    return value, U, W


def _largest(levels: Levels, U: Floats, W: Floats) -> tuple[Floats, Floats]:
    """The largest u and w of every level (columns) for every (U, W) (rows); not positive where
    there are none.
    """
    u, w = (
        np.minimum(U[:, None], levels.eps - W[:, None]),
        np.minimum(W[:, None], levels.eps - U[:, None]),
    )
    return np.minimum(u, _limit(w)), np.minimum(w, _limit(u))


def _limit(x: Floats) -> Floats:
    """The largest y with x >= ln(2 - e^-y): -ln(2 - e^x), infinite from ln 2 on."""
    room = 2 - np.exp(np.minimum(x, math.log(2)))
    with np.errstate(divide="ignore"):
        return np.where(room > 1e-15, -np.log(room), np.inf)


def _objective(levels: Levels, U: Floats, W: Floats) -> Floats:
    """opt0's worst case: sum_i m_i p_i (1 + q_i) + max_k (q_k - p_k)."""
    u, w = _largest(levels, U, W)
    dead = np.minimum(u, w).min(axis=1) <= 1e-12
    u, w = np.where(dead[:, None], 1.0, u), np.where(dead[:, None], 1.0, w)
    p, q = 1 / np.expm1(u), 1 / np.expm1(w)
    return np.where(dead, np.inf, (p * (1 + q)) @ levels.sizes + (q - p).max(axis=1))
