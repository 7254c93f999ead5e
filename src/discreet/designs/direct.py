"""Direct encoding: a mapping matrix that respects the levels (DESIGN "direct encoding", the paper's "direct way").

Pr(y = j | x = i) = D_c for j = i and O_cd otherwise, c and d the groups of i and j. In logarithms the privacy constraints
are linear; the objective is smooth and tiny, so a few starts around GRR, which is feasible, suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from discreet.mechanism import Floats

MAX_GROUPS = 5
STARTS = 3


def groups_of(eps: Floats) -> list[int]:
    """A group per level: one each while they are few, otherwise neighbours in budget together."""
    distinct, place = np.unique(np.minimum(eps, 2 * eps.min()), return_inverse=True)
    if len(distinct) > MAX_GROUPS:
        place = place * MAX_GROUPS // len(distinct)
    # number the groups by first appearance, so that every group is there
    names: dict[int, int] = {}
    return [names.setdefault(int(k), len(names)) for k in place]


def grr(eps: float, sizes: Floats) -> tuple[Floats, Floats]:
    """Generalised randomised response at one budget, written as a matrix of groups."""
    q = 1 / (np.expm1(eps) + sizes.sum())
    k = len(sizes)
    return np.full(k, np.exp(eps) * q), np.full((k, k), q)


def search(r: Floats, sizes: Floats, smallest: float, objective: Callable[[Floats, Floats], Floats]) -> tuple[Floats, Floats]:
    """The best matrix (D, O) of a few starts; r[c, d] are the groups' pair budgets, `objective` takes stacks of matrices."""
    layout = _Layout(sizes)
    constraints = layout.constraints(r)
    best = grr(smallest, sizes)
    start, scale = layout.pack(*best), float(objective(*best))
    value = 0.0
    step = 1e-30j * np.eye(len(start))

    def logarithm(x: Floats) -> float:
        try:
            ratio = float(objective(*layout.unpack(x))) / scale
        except np.linalg.LinAlgError:  # an infeasible iterate
            return 14.0
        return float(np.log(ratio)) if 0 < ratio < 1e6 else 14.0

    def slope(x: Floats) -> Floats:
        """By complex steps, all variables at once: exact to the last digits."""
        try:
            values = objective(*layout.unpack(x + step))
        except np.linalg.LinAlgError:
            return np.zeros(len(x))
        return values.imag / 1e-30 / values.real

    rng = np.random.default_rng(0)  # of the search, not of anybody's answer
    for k in range(STARTS):
        x0 = start + (0 if k == 0 else rng.normal(0, 0.3 * min(smallest, 1), len(start)))
        with np.errstate(all="ignore"):
            found = minimize(
                logarithm, x0, jac=slope, method="SLSQP", constraints=constraints, bounds=[(-60, 0)] * len(start),
                options={"maxiter": 200, "ftol": 1e-11},
            )  # fmt: skip
            candidate = layout.normalised(found.x)
            reached = logarithm(layout.pack(*candidate)) if candidate[0].min() > 0 else np.inf
        if reached < value:
            best, value = candidate, reached
    return best


class _Layout:
    """The free logarithms: D of every group, then O of every pair of groups that exists."""

    def __init__(self, sizes: Floats) -> None:
        self.sizes, self.k = sizes, len(sizes)
        exists = ~np.eye(self.k, dtype=bool) | (sizes > 1)
        self.c, self.d = np.nonzero(exists)
        self.count = sizes[self.d] - (self.c == self.d)  # how often an entry stands in its row

    def pack(self, D: Floats, O: Floats) -> Floats:
        return np.log(np.concatenate((D, O[self.c, self.d])))

    def unpack(self, x: Floats) -> tuple[Floats, Floats]:
        O = np.zeros((*x.shape[:-1], self.k, self.k), dtype=x.dtype)
        O[..., self.c, self.d] = np.exp(x[..., self.k :])
        return np.exp(x[..., : self.k]), O

    def column(self, d: int) -> list[tuple[int, int]]:
        """(group of the input, place of the variable) of a column: the item's own row first."""
        return [(d, d)] + [(int(self.c[v]), self.k + int(v)) for v in np.flatnonzero(self.d == d)]

    def constraints(self, r: Floats) -> list[dict[str, object]]:
        rows, limits = [], []
        for d in range(self.k):
            column = self.column(d)
            for c1, v1 in column:
                for c2, v2 in column:
                    if v1 != v2 and np.isfinite(r[c1, c2]):
                        row = np.zeros(self.k + len(self.c))
                        row[v1], row[v2] = -1, 1
                        rows.append(row)
                        limits.append(r[c1, c2])
        A, b = np.array(rows).reshape(len(rows), -1), np.array(limits)
        found: list[dict[str, object]] = [{"type": "eq", "fun": self.surplus, "jac": self.slope}]
        if rows:
            found.append({"type": "ineq", "fun": lambda x: A @ x + b, "jac": lambda x: A})
        return found

    def surplus(self, x: Floats) -> Floats:
        """Row sums minus one."""
        return np.exp(x[: self.k]) + np.bincount(self.c, self.count * np.exp(x[self.k :]), self.k) - 1

    def slope(self, x: Floats) -> Floats:
        jacobian = np.zeros((self.k, len(x)))
        jacobian[range(self.k), range(self.k)] = np.exp(x[: self.k])
        jacobian[self.c, self.k + np.arange(len(self.c))] = self.count * np.exp(x[self.k :])
        return jacobian

    def normalised(self, x: Floats) -> tuple[Floats, Floats]:
        """Rows that sum to one; a ratio that overshoots by the solver's tolerance is left to the rounding."""
        _, O = self.unpack(x)
        O = O / (1 + self.surplus(x))[:, None]
        return 1 - (O * self.sizes).sum(1) + np.diag(O), O


def group_budgets(r: Floats, groups: Sequence[int]) -> Floats:
    """The smallest pair budget of any two levels of two groups."""
    place = np.array(groups)
    smallest = np.full((place.max() + 1,) * 2, np.inf)
    np.minimum.at(smallest, (place[:, None], place[None, :]), r)
    return smallest
