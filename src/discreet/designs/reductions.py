"""opt0, opt1 and opt2 in closed form: the paper's optimum by one or two scalars
(docs/researcher.md, "opt0 is convex").

With u = ln(a/b) and w = ln((1-b)/(1-a)) the privacy constraint is u_i + w_j <= r_ij and opt0's
objective, max_k [ sum_i m_i p_i (1 + q_i) + q_k - p_k ] with p = 1/(e^u - 1) and q = 1/(e^w - 1),
is convex and decreasing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.convex import minimise
from discreet.designs.notions import CLOSED, Closed, Slopes


@dataclass(frozen=True)
class Levels:
    """The part of a policy that a solver needs: budgets and sizes as floats, and the notion."""

    eps: Floats
    sizes: Floats
    notion: str

    @property
    def closed(self) -> Closed:
        """The closed forms of the notion."""
        return CLOSED[self.notion]

    @property
    def smallest(self) -> float:
        """The smallest budget."""
        return float(self.eps.min())


class Bracket(NamedTuple):
    """One bracket of opt0's objective, k fixed, with its (negative) gradient."""

    value: float
    g: Floats  # -dF/du
    h: Floats  # -dF/dw


def bracket(sizes: Floats, u: Floats, w: Floats, k: int) -> Bracket:
    """The k-th bracket of opt0's objective at (u, w)."""
    p, q = 1 / np.expm1(u), 1 / np.expm1(w)
    value = float(sizes @ (p * (1 + q)) + q[k] - p[k])
    g = sizes * p * (1 + p) * (1 + q)
    h = sizes * p * q * (1 + q)
    g[k] -= p[k] * (1 + p[k])
    h[k] += q[k] * (1 + q[k])
    return Bracket(value, g, h)


def opt0(levels: Levels) -> tuple[Floats, Floats, float, float]:
    """u, w, the worst-case objective and a lower bound of it that any feasible design obeys."""
    eps, sizes, closed = levels.eps, levels.sizes, levels.closed
    tight, loose = int(eps.argmin()), int(eps.argmax())

    def objective(u: Floats, w: Floats) -> Slopes:
        # q_k - p_k falls with the budget where u > w and rises where u < w, so its maximum is at an
        # extreme level; of the smallest budget u and w are the two scalars themselves
        return bracket(sizes, u, w, tight if u[tight] >= w[tight] else loose)

    u, w = closed.spread(eps, *closed.best_scalars(eps, objective))
    first, second = (bracket(sizes, u, w, k) for k in (tight, loose))
    bound = _certify(levels, u, w, first, second)
    return u, w, max(first.value, second.value), bound


def _certify(levels: Levels, u: Floats, w: Floats, first: Bracket, second: Bracket) -> float:
    """A lower bound of the optimum, whatever found (u, w): every convex mix of brackets lies above
    its tangent at (u, w), and the tangent's minimum over all u_i + w_j <= r_ij, u, w >= 0 is a
    linear program solved exactly.
    """

    def bound(theta: float) -> float:
        g, h = (theta * x + (1 - theta) * y for x, y in ((first.g, second.g), (first.h, second.h)))
        value = theta * first.value + (1 - theta) * second.value
        return value + float(g @ u + h @ w) - levels.closed.largest(levels.eps, g, h)

    if first.value == second.value or abs(first.value - second.value) < 1e-4 * first.value:
        mixed = minimise(lambda theta: -bound(theta), 0.0, 1.0, steps=40)
        return max(bound(mixed), bound(0.0), bound(1.0))
    return bound(1.0 if first.value > second.value else 0.0)


def opt1(levels: Levels) -> tuple[Floats, Floats]:
    """RAPPOR's structure a + b = 1 (paper, Eq. "opt_tau"): u = w = tau."""
    tau = levels.closed.symmetric(levels.eps, levels.sizes)
    return tau, tau


def opt2(levels: Levels) -> tuple[Floats, Floats]:
    """OUE's structure a = 1/2 (paper, Eq. "opt_b"): b of every level from one scalar."""
    gap, low, high = levels.closed.half(levels.eps)

    def objective(x: float) -> float:
        z = gap(x)
        return float(levels.sizes @ (1 / z**2)) if z.min() > 0 else np.inf

    best = gap(minimise(objective, low, high))
    # u = ln(a/b) = -ln(1 - 2z), w = ln((1-b)/(1-a)) = ln(1 + 2z)
    return -np.log1p(-2 * best), np.log1p(2 * best)
