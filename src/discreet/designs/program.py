"""The general program for explicit pair budgets and incomplete policy graphs: a geometric program
over the levels.

In A = e^u, B = e^w, P >= 1/(A - 1), Q >= 1/(B - 1) every bracket of opt0's objective is a
posynomial (docs/researcher.md, "opt0 is convex"), so its global optimum is found; the tangent bound
below certifies it without trusting the solver.
"""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.reductions import bracket
from discreet.errors import DesignError, MissingExtra

# of u and w: a level free of all pairs must not make the solver run away; b stays above 2^-32
CAP = 18.0


def solve(r: Floats, sizes: Floats, model: str) -> tuple[Floats, Floats]:
    """u and w of opt0, opt1 or opt2 for pair budgets r (infinite: not protected)."""
    cp = _cvxpy()
    return (
        _opt2(cp, r, sizes)
        if model == "opt2"
        else _geometric(cp, r, sizes, symmetric=model == "opt1")
    )


def _geometric(cp: ModuleType, r: Floats, sizes: Floats, symmetric: bool) -> tuple[Floats, Floats]:
    t = len(sizes)
    A, P = cp.Variable(t, pos=True), cp.Variable(t, pos=True)
    B, Q = (A, P) if symmetric else (cp.Variable(t, pos=True), cp.Variable(t, pos=True))
    top = np.exp(min(CAP, float(np.where(np.isfinite(r), r, CAP).max())))
    constraints = [1 / A + 1 / cp.multiply(P, A) <= 1, top >= A]
    if not symmetric:
        constraints += [1 / B + 1 / cp.multiply(Q, B) <= 1, top >= B]
    constraints += [A[i] * B[j] <= float(np.exp(r[i, j])) for i, j in np.argwhere(np.isfinite(r))]
    if symmetric:
        objective = cp.sum(cp.multiply(sizes / sizes.sum(), P + cp.power(P, 2)))
    else:
        value = cp.Variable(pos=True)
        objective = value
        for k in range(t):
            others = sizes.copy()
            others[k] -= 1
            # posynomial brackets: a zero coefficient is left out, not multiplied by
            terms = [others[i] * P[i] for i in range(t) if others[i] > 0]
            terms += [sizes[i] * P[i] * Q[i] for i in range(t)] + [Q[k]]
            constraints.append(cp.sum(cp.hstack(terms)) <= value)
    _minimise(cp, objective, constraints, gp=True)
    return np.log(A.value), np.log(B.value)


def _opt2(cp: ModuleType, r: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    y = cp.Variable(len(sizes))  # 1/2 - b, in units of what OUE has at the smallest budget
    unit = np.tanh(r.min() / 2) / 2
    constraints = [
        float(np.exp(-r[i, j])) * (0.5 + unit * y[j]) + unit * y[i] <= 0.5
        for i, j in np.argwhere(np.isfinite(r))
    ]  # e^r b_i + b_j >= 1, divided by e^r
    constraints += [y >= 1e-6, y <= (0.5 - np.exp(-CAP)) / unit]
    objective = cp.sum(cp.multiply(sizes / sizes.sum(), cp.power(y, -2)))
    _minimise(cp, objective, constraints, gp=False)
    z = unit * y.value
    return -np.log1p(-2 * z), np.log1p(2 * z)


def _minimise(cp: ModuleType, objective: object, constraints: list[object], gp: bool) -> None:
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `certify` judges the answer, not the solver
        try:
            problem.solve(solver=cp.CLARABEL, gp=gp)
        except cp.error.SolverError as error:
            raise DesignError(
                f"the solver found no design for these pair budgets: {error}"
            ) from None
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise DesignError(f"the solver found no design for these pair budgets: {problem.status}")


def certify(r: Floats, sizes: Floats, u: Floats, w: Floats) -> tuple[float, float]:
    """opt0's objective at (u, w), and a lower bound of it anywhere: every bracket lies above its
    tangent at (u, w), and the smallest value of the largest tangent is a linear program.
    """
    from scipy.optimize import linprog  # takes long to load

    t = len(sizes)
    pairs = np.argwhere(np.isfinite(r))
    privacy = np.zeros((len(pairs), 2 * t + 1))
    privacy[range(len(pairs)), pairs[:, 0]] = 1
    privacy[range(len(pairs)), t + pairs[:, 1]] = 1
    tangents, limits = np.zeros((t, 2 * t + 1)), np.zeros(t)
    for k in range(t):
        b = bracket(sizes, u, w, k)
        tangents[k] = np.concatenate((-b.g, -b.h, [-1]))
        limits[k] = -b.value - b.g @ u - b.h @ w
    scale = max(1.0, float(np.abs(limits).max()))
    tangents[:, :-1] /= scale
    top = min(CAP, float(np.where(np.isfinite(r), r, CAP).max()))
    bound = linprog(
        np.eye(1, 2 * t + 1, 2 * t)[0],
        np.vstack((privacy, tangents)),
        np.concatenate((r[pairs[:, 0], pairs[:, 1]], limits / scale)),
        bounds=[(0, top)] * (2 * t) + [(None, None)],
    )
    p, q = 1 / np.expm1(u), 1 / np.expm1(w)
    value = float(sizes @ (p * (1 + q)) + (q - p).max())
    return value, min(value, float(bound.fun) * scale) if bound.status == 0 else 0.0


def _cvxpy() -> ModuleType:
    try:
        import cvxpy
    except ImportError:
        raise MissingExtra("a policy with explicit pair budgets", "solver") from None
    return cvxpy
