"""The best shares of given columns, by a primal-dual interior-point method.

With the information A and v of every column (columns.py), the error of group l is

    F_l = c_l / (sum mu A_l) + (G^-1)_ll,    G = sum mu v v',    c = m - 1 (fixed size) or m

and the shares mu >= 0 with sum mu lam = 1 minimise tr(W F). With caps, F_l <= cap_l. Columns that
cannot keep the caps yet pay for it, so that there always is a solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays.types import Floats, Ints

_ROUNDS = 100
_EXACT = 1e-10  # relative gap at which the method stops
PENALTY = 1e4  # of an error above its cap, relative to the whole error
ABOVE = 1e-9  # relative: an error this much above its cap is kept


@dataclass(frozen=True, eq=False)
class Point:
    """The errors at some shares, for the weights W + diag(extra)."""

    F: Floats  # per group
    f: float  # in all, weighted
    value: float  # in all, by W alone
    w: Floats  # what information within a group is worth
    M: Floats  # between groups
    extra: Floats
    gradient: Floats  # of f, per column
    slopes: Floats  # of every F, columns x groups
    hessian: Floats


@dataclass(frozen=True, eq=False)
class Program:
    """Shares of columns with this information; `within` is c, and infinite caps are none."""

    A: Floats
    v: Floats
    lam: Floats
    W: Floats
    within: Floats
    fixed: bool
    caps: Floats | None = None

    def at(self, mu: Floats, extra: Floats) -> Point:
        """The errors and their derivatives."""
        A, v, W = self.A, self.v, self.W + np.diag(extra)
        on = np.diag(self.W) * self.within > 0
        a = np.where(on, mu @ A, 1.0)
        unit = np.where(on, self.within, 0)
        cost, F = np.diag(W) * unit, unit / a
        f, w, M = float((cost / a).sum()), cost / a**2, np.zeros_like(W)
        gradient, hessian = -(A @ w), (A * (2 * cost / a**3)) @ A.T
        slopes = -A * (unit / a**2)
        if self.fixed:
            between = (v.T * mu) @ v
            # far below what matters, and no step can end at a singular matrix
            ridge = 1e-15 * np.trace(between)
            inverse = np.linalg.inv(between + ridge * np.eye(len(between)))
            M = inverse @ W @ inverse
            F = F + np.diag(inverse)
            f += float(np.sum(inverse * W))
            worth = v @ M
            gradient = gradient - (worth * v).sum(axis=1)
            hessian = hessian + 2 * (worth @ v.T) * (v @ inverse @ v.T)
            slopes = slopes - (v @ inverse) ** 2
        return Point(F, f, f - float(extra @ F), w, M, extra, gradient, slopes, hessian)

    def solve(self, mu: Floats) -> tuple[Floats, Floats, Point]:
        """The best shares, found from these; the prices of the sums, and the errors there."""
        n, t = self.lam.shape
        mu = np.maximum(mu, 1e-3 / n)
        caps = np.full(t, np.inf) if self.caps is None else self.caps
        capped = np.flatnonzero(np.isfinite(caps))
        cap, k = caps[capped], len(capped)
        start = self.at(mu, np.zeros(t))
        unit = start.f
        slack, nu = np.full(n, 0.1) / mu / n, np.zeros(t)
        # how much all errors together may exceed their caps, relative, and what that costs
        over = max(0.0, float((start.F[capped] / cap - 1).max(initial=0))) + 0.1
        room, y, z = 1 + over - start.F[capped] / cap, np.full(k, 0.01), PENALTY
        for _ in range(_ROUNDS):
            p = self.at(mu, _spread(y * unit / cap, capped, t))
            gap = float(mu @ slack + y @ room + (over * z if k else 0.0))
            missing, outside = 1 - mu @ self.lam, p.F[capped] / cap - 1 - over + room
            far = max(float(np.abs(missing).max()), 1e-2 * float(np.abs(outside).max(initial=0)))
            if gap < _EXACT * p.value / unit and far < 1e-12:
                break
            aim, D = 0.1 * gap / (n + k + (k > 0)), p.slopes[:, capped] / cap
            system = np.block(
                [
                    [p.hessian / unit + np.diag(slack / mu), -self.lam],
                    [-self.lam.T, -1e-14 * np.eye(t)],
                ]
            )
            right = np.append(self.lam @ nu - p.gradient / unit + aim / mu, -missing)
            if k:
                left = np.vstack((D, np.zeros((t, k))))
                corner = np.block(
                    [
                        [-np.diag(room / y), -np.ones((k, 1))],
                        [-np.ones((1, k)), np.array([[z / over]])],
                    ]
                )
                left = np.hstack((left, np.zeros((n + t, 1))))
                system = np.block([[system, left], [left.T, corner]])
                short = PENALTY - float(y.sum()) - z
                right = np.concatenate((right, room - outside - aim / y, [aim / over - z - short]))
            try:
                step = np.linalg.solve(system, right)
            except np.linalg.LinAlgError:  # no further progress at this precision
                break
            d_mu, d_nu, d_y = step[:n], step[n : n + t], step[n + t : n + t + k]
            d_slack = (aim - slack * d_mu) / mu - slack
            d_room = (aim - room * d_y) / y - room
            d_over, d_z = (float(step[-1]), short - float(d_y.sum())) if k else (0.0, 0.0)
            far = _longest((mu, d_mu), (room, d_room), (over, d_over))
            deep = _longest((slack, d_slack), (y, d_y), (z, d_z))
            mu, room, over = mu + far * d_mu, room + far * d_room, over + far * d_over
            slack, nu = slack + deep * d_slack, nu + deep * d_nu
            y, z = y + deep * d_y, z + deep * d_z
        return mu, nu * unit, self.at(mu, _spread(y * unit / cap, capped, t))


def breaks(F: Floats, caps: Floats) -> bool:
    """Whether an error is above its cap."""
    return bool((F / caps).max() > 1 + ABOVE)


def _spread(values: Floats, places: Ints, count: int) -> Floats:
    wide = np.zeros(count)
    wide[places] = values
    return wide


def _longest(*moves: tuple[Floats | float, Floats | float]) -> float:
    """The longest step, up to 1, that leaves all values positive."""
    most = max(float(np.max(-np.asarray(d) / x, initial=0)) for x, d in moves)
    return min(1.0, 0.95 / max(most, 1e-9))
