"""Mixed designs: an A-optimal experimental design over parts (DESIGN "mixed designs").

Every participant draws one of K parts independently of the answer; information adds up over parts, and
sum_i c_i / I_i is minimised over mixtures. What makes it exact and fast: with s = U + W and z = e^U a level's information is

    I = -e^{-s} z^2 + (1 + e^{-s}) z - 1                if eps >= s,
    I = -e^{-s} z^2 + (e^{eps-s} + e^{-eps}) z - 1      if eps < s,

concave in z, so two parts with one s are never better than one with the mean z; and for any positive weights the maximum
over (s, z) has s at one of the budgets in [e, 2e] or at 2e (between them it is convex or monotone in s). The search for a
new part is therefore a closed form over at most t + 1 values of s, and so is the certificate. Under `avg` all designs share
one curve, so one part is optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from discreet.designs.reductions import Levels, minimise
from discreet.mechanism import Floats
from discreet.theory import Noise

_GAP = 1e-6  # relative optimality gap at which the search stops


@dataclass(frozen=True)
class Mixture:
    """Shares and (U, W) of the parts; `lower_bound` holds for sum_i cost_i / I_i of any mixture."""

    shares: Floats
    U: Floats
    W: Floats
    lower_bound: float

    def designs(self, levels: Levels) -> list[tuple[float, Floats, Floats]]:
        """(share, u, w) of every part, u and w per level."""
        return [(float(k), *levels.spread(u, w)) for k, u, w in zip(self.shares, self.U, self.W, strict=True)]

    def value(self, levels: Levels, cost: Floats) -> float:
        """sum_i cost_i / I_i."""
        return float((cost / (information(levels, self.U, self.W) @ self.shares)).sum())


def polish(levels: Levels, found: Mixture, objective: Callable[[Noise], float]) -> Mixture:
    """Move shares and z of the parts to what counts in the end: the total error at the prior, holders' term included."""
    k, s = len(found.shares), found.U + found.W
    low, high = _range(levels, s)

    def unpack(x: Floats) -> tuple[Floats, Floats]:
        U = np.log(low + np.clip(x[k:], 0, 1) * (high - low))
        return x[:k] / x[:k].sum(), U

    def value(x: Floats) -> float:
        share, U = unpack(x)
        u, w = (np.maximum(part, 1e-12) for part in _spread(levels, U, s - U))
        I = np.expm1(u) * -np.expm1(-w)
        return objective(Noise.combine(share, I, I**2 * (1 / np.expm1(w) - 1 / np.expm1(u))))

    x0 = np.concatenate((found.shares, (np.exp(found.U) - low) / np.where(high > low, high - low, 1)))
    scale = value(x0)
    bounds = [(1e-9, 1.0)] * k + [(0.0, 1.0)] * k
    result = minimize(lambda x: value(x) / scale, x0, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-10})
    share, U = unpack(result.x if result.fun < 1 else x0)
    keep = share > 1e-6
    return Mixture(share[keep] / share[keep].sum(), U[keep], (s - U)[keep], found.lower_bound)


def information(levels: Levels, U: Floats, W: Floats) -> Floats:
    """I of every level (rows) in every part (columns)."""
    u, w = _spread(levels, U, W)
    return np.expm1(u) * -np.expm1(-w)


def _spread(levels: Levels, U: Floats, W: Floats) -> tuple[Floats, Floats]:
    """u and w of every level (rows) in every part (columns)."""
    columns = [levels.spread(u, w) for u, w in zip(U, W, strict=True)]
    return np.stack([u for u, _ in columns], axis=1), np.stack([w for _, w in columns], axis=1)


def _range(levels: Levels, s: Floats) -> tuple[Floats, Floats]:
    """The range of z = e^U for U and W = s - U in [0, e]; under avg s is e and d = U - e/2."""
    return np.exp(np.maximum(s - levels.smallest, 0)), np.exp(np.minimum(s, levels.smallest))


def search(levels: Levels, cost: Floats) -> Mixture:
    """Minimise sum_i cost_i / I_i: add the best new part, re-optimise all, until the certificate says stop."""
    if levels.notion == "avg":
        return _search_avg(levels, cost)
    steps = _Steps(levels)
    s, z, share = steps.start()
    value = bound = 0.0
    for _ in range(60):
        share, s, z = _optimise(levels, cost, share, s, z)
        I = information(levels, np.log(z), s - np.log(z)) @ share
        value = float((cost / I).sum())
        new_s, new_z, highest = steps.best(cost / I**2)
        # convexity: any mixture has at least value - (highest - value); scaling the mixture gives value^2 / highest
        bound = max(bound, value**2 / max(highest, value))
        if bound >= value * (1 - _GAP):
            break
        share, s, z = _merge(np.append(share, 0.0), np.append(s, new_s), np.append(z, new_z), len(share))
    U = np.log(z)
    return Mixture(share, U, s - U, min(bound, value))


def _search_avg(levels: Levels, cost: Floats) -> Mixture:
    e = levels.smallest

    def value(d: float) -> float:
        u, w = levels.spread(2 * d, 0)
        return float((cost / (np.expm1(u) * -np.expm1(-w))).sum())

    d = minimise(value, -e / 2 * (1 - 1e-9), e / 2 * (1 - 1e-9))
    # every mixture is at most as informative as the one part with the mean of e^d, so this minimum is the optimum;
    # the bound is the tangent's minimum over z = e^d, in which 1/I of a concave I is convex
    z, span = np.exp(d), np.exp([-e / 2, e / 2])
    half = np.cosh(levels.eps / 2)
    I = -(z**2) + 2 * half * z - 1
    slope = float((-cost / I**2 * (2 * half - 2 * z)).sum())
    bound = value(d) + min(float(slope * (x - z)) for x in span)
    return Mixture(np.ones(1), np.array([e / 2 + d]), np.array([e / 2 - d]), min(bound, value(d)))


class _Steps:
    """The closed-form search for the part with the largest sum_i c_i I_i(s, z)."""

    def __init__(self, levels: Levels) -> None:
        self.order = np.argsort(levels.eps)
        self.eps = levels.eps[self.order]
        self.e = e = levels.smallest
        self.s = np.unique(np.append(self.eps[(self.eps >= e) & (self.eps < 2 * e)], 2 * e))
        self.below = np.searchsorted(self.eps, self.s, side="left")

    def start(self) -> tuple[Floats, Floats, Floats]:
        """OUE at the smallest budget, which informs every level."""
        return np.array([self.e]), np.array([(np.exp(self.e) + 1) / 2]), np.ones(1)

    def best(self, c: Floats) -> tuple[float, float, float]:
        """(s, z, value) of the maximum over all feasible parts."""
        c = c[self.order]

        def prefix(x: Floats) -> Floats:
            return np.concatenate(([0.0], np.cumsum(x)))[self.below]

        total = float(c.sum())
        decay = np.exp(-self.s)
        linear = (total - prefix(c)) * (1 + decay) + prefix(c * np.exp(self.eps)) * decay + prefix(c * np.exp(-self.eps))
        z = np.clip(linear / (2 * total * decay), np.exp(self.s - self.e), np.exp(self.e))
        values = -total * decay * z**2 + linear * z - total
        k = int(values.argmax())
        return float(self.s[k]), float(z[k]), float(values[k])


def _merge(share: Floats, s: Floats, z: Floats, new: int) -> tuple[Floats, Floats, Floats]:
    """Start the new part at a small share; if its s is there already, move that part toward its z."""
    twins = np.flatnonzero(np.isclose(s[:new], s[new], rtol=1e-12))
    if len(twins):
        k = int(twins[0])
        z = z.copy()
        z[k] = (z[k] + z[new]) / 2
        return share[:new], s[:new], z[:new]
    share = share * 0.9
    share[new] = 0.1
    return share, s, z


def _optimise(levels: Levels, cost: Floats, share: Floats, s: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
    """Re-optimise shares and z of the parts at hand (a smooth convex problem in (share, share z)); drop empty parts."""
    k = len(share)
    low, high = _range(levels, s)

    def unpack(x: Floats) -> tuple[Floats, Floats]:
        weights = np.maximum(x[:k], 0)
        return weights / weights.sum(), low + np.clip(x[k:], 0, 1) * (high - low)

    def value(x: Floats) -> tuple[float, Floats]:
        shares, zs = unpack(x)
        U = np.log(zs)
        I_k = information(levels, U, s - U)
        I = I_k @ shares
        slope = -cost / I**2
        by_share = slope @ I_k
        decay = np.exp(-s)
        bound_ = levels.eps[:, None] < s
        linear = np.where(bound_, np.exp(levels.eps[:, None] - s) + np.exp(-levels.eps)[:, None], 1 + decay)
        by_z = (slope @ (linear - 2 * decay * zs)) * shares * (high - low)
        total = float((cost / I).sum())
        gradient = np.concatenate(((by_share - by_share @ shares) / np.maximum(x[:k], 0).sum(), by_z))
        return total / scale, gradient / scale

    span = np.where(high > low, high - low, 1.0)
    x0 = np.concatenate((share, (z - low) / span))
    scale = 1.0
    scale = value(x0)[0]
    result = minimize(
        value, x0, jac=True, method="L-BFGS-B", bounds=[(1e-12, 1.0)] * k + [(0.0, 1.0)] * k,
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    shares, zs = unpack(result.x if result.fun <= 1 else x0)
    keep = shares > 1e-7
    return shares[keep] / shares[keep].sum(), s[keep], zs[keep]
