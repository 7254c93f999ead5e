"""The best weights of columns that are given: a convex problem by a primal-dual interior point.

Weights mu of columns, with mu U = 1 in every class, cost

    f(mu) = sum over terms of weight * g' (R' diag(mu) R)^-1 g,

R the rows of a term, g its goal. A ridge forgives classes a little, more where they are rare: it
keeps the prices from swinging while columns are still missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays.types import Floats

_NEWTON = 150


@dataclass(frozen=True, eq=False)
class Term:
    """A part of the cost: what every column tells of every class, and what is wanted."""

    rows: Floats
    goal: Floats
    weight: float
    ridge: Floats | float = 0.0

    def solved(self, mu: Floats) -> tuple[Floats, Floats]:
        """The inverse of the information at these weights, and its product with the goal."""
        information = (self.rows.T * mu) @ self.rows
        least = 1e-13 * np.trace(information) + self.ridge
        inverse = np.linalg.inv(information + np.diag(np.zeros(len(self.goal)) + least))
        return np.asarray(inverse, float), inverse @ self.goal


@dataclass(frozen=True, eq=False)
class Weights:
    """The best weights, their cost, the solution of every term, and the price of every class."""

    mu: Floats
    cost: float
    solved: tuple[Floats, ...]
    price: Floats


def best_weights(
    U: Floats, terms: Sequence[Term], mu: Floats, forgiven: Floats | float = 0.0,
    goal: float = 1e-8, least: Floats | float = 0.0,
) -> Weights:  # fmt: skip
    """The best weights, none below `least`, from a first guess; `forgiven` is the ridge of the
    classes' constraints.
    """
    n, C = U.shape
    mu = np.maximum(mu, 1e-5 / n)
    scale = _derivatives(terms, mu + least)[0]
    slack, nu = 0.1 / mu / n, np.zeros(C)
    soft = np.zeros(C) + forgiven
    for _ in range(_NEWTON):
        cost, gradient, hessian, solved = _derivatives(terms, mu + least)
        gap, miss = float(mu @ slack), 1 - (mu + least) @ U - soft * nu
        if gap < goal * cost / scale and np.abs(miss).max() < 1e-11:
            break
        system = np.block(
            [[hessian / scale + np.diag(slack / mu), -U], [-U.T, -np.diag(1e-14 + soft)]]
        )
        aim = 0.1 * gap / n
        try:
            step = np.linalg.solve(system, np.append(U @ nu - gradient / scale + aim / mu, -miss))
        except np.linalg.LinAlgError:
            break
        move, turn = step[:n], step[n:]
        rise = (aim - slack * move) / mu - slack
        far, deep = (
            min(1.0, 0.95 / max(float((-d / x).max()), 1e-9))
            for d, x in ((move, mu), (rise, slack))
        )
        mu, nu, slack = mu + far * move, nu + deep * turn, slack + deep * rise
    return Weights(mu + least, cost, solved, -nu * scale)


def _derivatives(
    terms: Sequence[Term], mu: Floats
) -> tuple[float, Floats, Floats, tuple[Floats, ...]]:
    """The cost, its gradient and Hessian, and the solution of every term."""
    cost, gradient, hessian = 0.0, np.zeros(len(mu)), np.zeros((len(mu), len(mu)))
    solved = []
    for term in terms:
        inverse, y = term.solved(mu)
        a = term.rows @ y
        cost += term.weight * float(term.goal @ y)
        gradient -= term.weight * a * a
        hessian += 2 * term.weight * (a[:, None] * a) * (term.rows @ inverse @ term.rows.T)
        solved.append(y)
    return cost, gradient, hessian, tuple(solved)
