"""The closed forms of a notion: its boxes, and what opt0, opt1 and opt2 come down to
(docs/researcher.md, "opt0 is convex").

A notion without an entry in `CLOSED`, and every policy with explicit pairs, is designed from its
table of pair budgets.

With u = ln(a/b) and w = ln((1-b)/(1-a)) the privacy constraint is u_i + w_j <= r_ij.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.convex import Point, find_root, minimise, minimise_in_polygon

Gap = Callable[[float], Floats]  # 1/2 - b of every level, from one scalar
Slopes = tuple[float, Floats, Floats]  # a value, -d/du and -d/dw of every level


class Closed(ABC):
    """A notion whose best designs follow from one or two scalars."""

    # ---- boxes: the largest and smallest log-chances of a column ---------------------------------

    @abstractmethod
    def acting(self, eps: Floats) -> Floats:
        """The effective size of every budget: other answers may protect a pair better."""

    @abstractmethod
    def span(self, eps: Floats) -> Point:
        """The least and the largest scalar s of a box."""

    @abstractmethod
    def box(self, eps: Floats, s: Floats) -> tuple[Floats, Floats]:
        """hi and lo of every level (column), for every s (row)."""

    @abstractmethod
    def corners(self, eps: Floats) -> Floats:
        """The s of the boxes that are vertices."""

    # ---- one pair (a, b) per level ---------------------------------------------------------------

    @abstractmethod
    def spread(self, eps: Floats, U: float, W: float) -> tuple[Floats, Floats]:
        """u and w of every level for two scalars."""

    @abstractmethod
    def best_scalars(self, eps: Floats, objective: Callable[[Floats, Floats], Slopes]) -> Point:
        """The U and W that minimise a convex function of (u, w)."""

    @abstractmethod
    def largest(self, eps: Floats, g: Floats, h: Floats) -> float:
        """The maximum of g.u + h.w over the feasible (u, w), for g, h >= 0."""

    @abstractmethod
    def symmetric(self, eps: Floats, sizes: Floats) -> Floats:
        """opt1's u = w = tau (paper, Eq. "opt_tau")."""

    @abstractmethod
    def half(self, eps: Floats) -> tuple[Gap, float, float]:
        """opt2's 1/2 - b of every level from one scalar, and the ends of that scalar. Not b itself,
        which approaches 1/2 for small budgets.
        """


class Min(Closed):
    """r_ij = min(eps_i, eps_j)."""

    def acting(self, eps: Floats) -> Floats:
        """Two answers are also protected through a third one of the smallest budget (Lemma 1)."""
        return np.minimum(eps, 2 * eps.min())

    def span(self, eps: Floats) -> Point:
        """The least and the largest scalar s of a box."""
        return float(eps.min()), float(min(2 * eps.min(), eps.max()))

    def box(self, eps: Floats, s: Floats) -> tuple[Floats, Floats]:
        """hi and lo of every level (column), for every s (row)."""
        s = np.minimum(s, 2 * eps.min())[:, None]  # beyond it the smallest budget has no box
        return np.minimum(s, eps), np.maximum(0, s - eps)

    def corners(self, eps: Floats) -> Floats:
        """The s of the boxes that are vertices."""
        return np.unique(self.acting(eps))

    def spread(self, eps: Floats, U: float, W: float) -> tuple[Floats, Floats]:
        """The largest u and w below U and W."""
        return np.minimum(U, eps - W), np.minimum(W, eps - U)

    def best_scalars(self, eps: Floats, objective: Callable[[Floats, Floats], Slopes]) -> Point:
        """The U and W that minimise a convex function of (u, w)."""
        e = float(eps.min())

        def slopes(U: float, W: float) -> tuple[float, float, float]:
            value, g, h = objective(*self.spread(eps, U, W))
            free = eps >= U + W
            dU = float(-g[free].sum() + h[~free].sum())
            dW = float(-h[free].sum() + g[~free].sum())
            return value, dU, dW

        # U + W >= e: below it every level could still gain
        return minimise_in_polygon(slopes, [(0.0, e), (e, 0.0), (e, e)])

    def largest(self, eps: Floats, g: Floats, h: Floats) -> float:
        """A linear program, attained at a corner of the strips between two budgets."""
        order, e = np.argsort(eps), float(eps.min())
        eps, g, h = eps[order], g[order], h[order]
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

    def symmetric(self, eps: Floats, sizes: Floats) -> Floats:
        """One scalar: tau = min(T, eps - T)."""
        e = float(eps.min())

        def error(T: float) -> float:
            return float(sizes @ (1 / (4 * np.sinh(np.minimum(T, eps - T) / 2) ** 2)))

        T = minimise(error, e / 2, e * (1 - 1e-12))
        return np.minimum(T, eps - T)

    def half(self, eps: Floats) -> tuple[Gap, float, float]:
        """x = 1/2 - B: b = max(B, (1 - B) e^-eps, 1 - e^eps B)."""

        def gap(x: float) -> Floats:
            lower = -np.expm1(-eps) / 2 - x * np.exp(-eps)
            upper = np.expm1(eps) / 2 - x * np.exp(eps)
            return np.minimum(x, np.minimum(lower, upper))

        return gap, 0.0, float(-np.expm1(-eps.min()) / 2)


class Average(Closed):
    """r_ij = (eps_i + eps_j) / 2: every level has one box, and one scalar d shifts all of them."""

    def acting(self, eps: Floats) -> Floats:
        """Every budget as it is."""
        return eps

    def span(self, eps: Floats) -> Point:
        """There is one box: s is not used."""
        return 0.0, 0.0

    def box(self, eps: Floats, s: Floats) -> tuple[Floats, Floats]:
        """hi and lo of every level (column), the same for every s (row)."""
        half = np.broadcast_to(eps / 2, (len(s), len(eps)))
        return half, -half

    def corners(self, eps: Floats) -> Floats:
        """One box."""
        return np.zeros(1)

    def spread(self, eps: Floats, U: float, W: float) -> tuple[Floats, Floats]:
        """U - W = 2 d."""
        d = (U - W) / 2
        return eps / 2 + d, eps / 2 - d

    def best_scalars(self, eps: Floats, objective: Callable[[Floats, Floats], Slopes]) -> Point:
        """The U and W that minimise a convex function of (u, w)."""
        half = float(eps.min()) / 2
        reach = half * (1 - 1e-12)

        def slope(d: float) -> float:
            _, g, h = objective(*self.spread(eps, 2 * d, 0.0))
            return float(h.sum() - g.sum())

        d = find_root(slope, -reach, reach)
        return half + d, half - d

    def largest(self, eps: Floats, g: Floats, h: Floats) -> float:
        """At one of the ends of d."""
        half = float(eps.min()) / 2
        return float(max((g + h) @ eps / 2 + d * (g.sum() - h.sum()) for d in (-half, half)))

    def symmetric(self, eps: Floats, sizes: Floats) -> Floats:
        """Half of every budget."""
        return eps / 2

    def half(self, eps: Floats) -> tuple[Gap, float, float]:
        """x = 1 - e^{-d}: b = max(e^{-eps/2} e^{-d} / 2, 1 - e^{eps/2} e^{-d} / 2)."""

        def gap(x: float) -> Floats:
            lower = -np.expm1(-eps / 2) + x * np.exp(-eps / 2)
            upper = np.expm1(eps / 2) - x * np.exp(eps / 2)
            return np.minimum(lower, upper) / 2

        e = eps.min()
        return gap, float(-np.expm1(e / 2)), float(-np.expm1(-e / 2))


CLOSED: dict[str, Closed] = {"min": Min(), "avg": Average()}
