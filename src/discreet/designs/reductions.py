"""opt0, opt1 and opt2 under `min` and `avg`: the paper's optimum by one or two scalars
(docs/researcher.md, "opt0 is convex").

With u = ln(a/b) and w = ln((1-b)/(1-a)) the privacy constraint is u_i + w_j <= r_ij and opt0's
objective, max_k [ sum_i m_i p_i (1 + q_i) + q_k - p_k ] with p = 1/(e^u - 1) and q = 1/(e^w - 1),
is convex and decreasing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.parts import Floats

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Levels:
    """What a solver sees of a policy: budgets and sizes as floats, and the notion."""

    eps: Floats
    sizes: Floats
    notion: str

    @property
    def smallest(self) -> float:
        """The smallest budget."""
        return float(self.eps.min())

    def spread(self, U: float, W: float) -> tuple[Floats, Floats]:
        """u and w of every level for two scalars (under avg: U - W = 2 d)."""
        if self.notion == "avg":
            d = (U - W) / 2
            return self.eps / 2 + d, self.eps / 2 - d
        return np.minimum(U, self.eps - W), np.minimum(W, self.eps - U)


def minimise(f: Callable[[float], float], low: float, high: float, steps: int = 80) -> float:
    """The minimum of a convex function of one variable, by golden section (80 steps reach the last
    digits).
    """
    x1, x2 = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    f1, f2 = f(x1), f(x2)
    for _ in range(steps):
        if f1 <= f2:
            high, x2, f2 = x2, x1, f1
            x1 = high - _GOLDEN * (high - low)
            f1 = f(x1)
        else:
            low, x1, f1 = x1, x2, f2
            x2 = low + _GOLDEN * (high - low)
            f2 = f(x2)
    return (low + high) / 2


# ---- opt0 ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bracket:
    """One bracket of opt0's objective, k fixed, with its (negative) gradient: value, -dF/du,
    -dF/dw.
    """

    value: float
    g: Floats
    h: Floats


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
    tight, loose = int(levels.eps.argmin()), int(levels.eps.argmax())
    sizes, e = levels.sizes, levels.smallest

    def active(U: float, W: float) -> int:
        # q_k - p_k falls with the budget where u > w and rises where u < w, so its maximum is at an
        # extreme level.
        return tight if U >= W else loose

    if levels.notion == "avg":

        def value(d: float) -> float:
            return bracket(sizes, *levels.spread(2 * d, 0), active(d, 0)).value

        d = minimise(value, -e / 2 * (1 - 1e-12), e / 2 * (1 - 1e-12))
        U, W = e / 2 + d, e / 2 - d
    else:
        U, W = _centres_of_gravity(levels, active)
    u, w = levels.spread(U, W)
    first, second = (bracket(sizes, u, w, k) for k in (tight, loose))
    bound = _certify(levels, u, w, first, second)
    return u, w, max(first.value, second.value), bound


def _centres_of_gravity(
    levels: Levels, active: Callable[[float, float], int]
) -> tuple[float, float]:
    """Minimise a convex function of (U, W): cut the feasible polygon through its centre of gravity,
    0.63 x each time.
    """
    e = levels.smallest
    polygon = [(0.0, e), (e, 0.0), (e, e)]  # U + W >= e: below it every level could still gain
    best, at = np.inf, (e / 2, e / 2)
    for _ in range(130):
        centre = _centroid(polygon)
        if centre is None:
            break
        U, W = centre
        here = bracket(levels.sizes, *levels.spread(U, W), active(U, W))
        if here.value < best:
            best, at = here.value, (U, W)
        free = levels.eps >= U + W
        dU = float(-here.g[free].sum() + here.h[~free].sum())
        dW = float(-here.h[free].sum() + here.g[~free].sum())
        polygon = _cut(polygon, dU, dW, dU * U + dW * W)
        if len(polygon) < 3:
            break
    return at


def _centroid(polygon: list[tuple[float, float]]) -> tuple[float, float] | None:
    x0, y0 = polygon[0]
    area = cx = cy = 0.0
    for (x1, y1), (x2, y2) in pairwise(polygon[1:]):
        cross = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        area += cross
        cx += cross * (x1 + x2 - 2 * x0)
        cy += cross * (y1 + y2 - 2 * y0)
    if abs(area) < 1e-30 * (abs(x0) + abs(y0)) ** 2:
        return None
    return x0 + cx / (3 * area), y0 + cy / (3 * area)


def _cut(
    polygon: list[tuple[float, float]], dU: float, dW: float, level: float
) -> list[tuple[float, float]]:
    """Keep the side of the polygon where dU U + dW W <= level."""
    kept = []
    for k, point in enumerate(polygon):
        before = polygon[k - 1]
        s0, s1 = dU * before[0] + dW * before[1] - level, dU * point[0] + dW * point[1] - level
        if (s0 <= 0) != (s1 <= 0):
            r = s0 / (s0 - s1)
            kept.append(
                (before[0] + r * (point[0] - before[0]), before[1] + r * (point[1] - before[1]))
            )
        if s1 <= 0:
            kept.append(point)
    return kept


def _certify(levels: Levels, u: Floats, w: Floats, first: Bracket, second: Bracket) -> float:
    """A lower bound of the optimum, whatever found (u, w): every convex mix of brackets lies above
    its tangent at (u, w), and the tangent's minimum over all u_i + w_j <= r_ij, u, w >= 0 is a
    linear program solved exactly.
    """

    def bound(theta: float) -> float:
        g, h = (theta * x + (1 - theta) * y for x, y in ((first.g, second.g), (first.h, second.h)))
        value = theta * first.value + (1 - theta) * second.value
        return value + float(g @ u + h @ w) - _largest(levels, g, h)

    if first.value == second.value or abs(first.value - second.value) < 1e-4 * first.value:
        mixed = minimise(lambda theta: -bound(theta), 0.0, 1.0, steps=40)
        return max(bound(mixed), bound(0.0), bound(1.0))
    return bound(1.0 if first.value > second.value else 0.0)


def _largest(levels: Levels, g: Floats, h: Floats) -> float:
    """max of g.u + h.w over the feasible (u, w), g, h >= 0: attained at a corner of the reduction's
    strips.
    """
    e = levels.smallest
    if levels.notion == "avg":
        return float(
            max((g + h) @ levels.eps / 2 + d * (g.sum() - h.sum()) for d in (-e / 2, e / 2))
        )
    order = np.argsort(levels.eps)
    eps, g, h = levels.eps[order], g[order], h[order]
    s = np.append(np.clip(eps, e, 2 * e), 2 * e)
    below = np.searchsorted(eps, s, side="left")  # levels with eps < s are bound by it

    def prefix(x: Floats) -> Floats:
        return np.concatenate(([0.0], np.cumsum(x)))[below]

    g_low, h_low, ge, he = prefix(g), prefix(h), prefix(g * eps), prefix(h * eps)
    g_high, h_high = g.sum() - g_low, h.sum() - h_low
    corners = [
        g_high * U - g_low * (s - U) + ge + h_high * (s - U) - h_low * U + he
        for U in (s - e, np.full_like(s, e))
    ]
    return float(np.max(corners))


# ---- opt1, opt2 ----------------------------------------------------------------------------------


def opt1(levels: Levels) -> tuple[Floats, Floats]:
    """RAPPOR's structure a + b = 1 (paper, Eq. "opt_tau"): u = w = tau."""
    eps, e = levels.eps, levels.smallest
    if levels.notion == "avg":
        return eps / 2, eps / 2

    def tau(T: float) -> Floats:
        return np.minimum(T, eps - T)

    T = minimise(
        lambda T: float(levels.sizes @ (1 / (4 * np.sinh(tau(T) / 2) ** 2))), e / 2, e * (1 - 1e-12)
    )
    return tau(T), tau(T)


def opt2(levels: Levels) -> tuple[Floats, Floats]:
    """OUE's structure a = 1/2 (paper, Eq. "opt_b"): b of every level from one scalar."""
    eps, e = levels.eps, levels.smallest
    # b is kept as z = 1/2 - b with its own formulas, because b approaches 1/2 for small budgets.
    if levels.notion == "avg":

        def z(
            x: float,
        ) -> Floats:  # x = 1 - e^{-d}: b = max(e^{-eps/2} e^{-d} / 2, 1 - e^{eps/2} e^{-d} / 2)
            return (
                np.minimum(
                    -np.expm1(-eps / 2) + x * np.exp(-eps / 2),
                    np.expm1(eps / 2) - x * np.exp(eps / 2),
                )
                / 2
            )

        low, high = -np.expm1(e / 2), -np.expm1(-e / 2)
    else:

        def z(x: float) -> Floats:  # x = 1/2 - B: b = max(B, (1 - B) e^-eps, 1 - e^eps B)
            lower = -np.expm1(-eps) / 2 - x * np.exp(-eps)
            upper = np.expm1(eps) / 2 - x * np.exp(eps)
            return np.minimum(x, np.minimum(lower, upper))

        low, high = 0.0, -np.expm1(-e) / 2

    def objective(x: float) -> float:
        gap = z(x)
        return float(levels.sizes @ (1 / gap**2)) if gap.min() > 0 else np.inf

    best = z(minimise(objective, low, high))
    # u = ln(a/b) = -ln(1 - 2z), w = ln((1-b)/(1-a)) = ln(1 + 2z)
    return -np.log1p(-2 * best), np.log1p(2 * best)
