"""A lower bound on every mechanism for any pair budgets of lone items, in polynomial time
(docs/researcher.md, "A bound for scales").

Let A q >= 0 for every column q, x the shares of people and J = sum mu q q', so that J x = 1. For
any symmetric N >= 0 and any nu with C = (nu x' + x nu') / 2 - A'NA positive semidefinite,
<C, J> <= sum nu, and so

    tr(W J^-1) >= T^2 / sum nu,    T = tr (W^1/2 C W^1/2)^1/2.

N and nu come from a barrier method for min tr(W X^-1) with X x = 1 and A X A' >= 0. Nothing of it
is trusted, because any N and nu give a bound.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays.types import Floats, Ints

_TOLERANCE = 1e-6  # relative gap at which the barrier method stops
_NEWTON = 30


def lower_bound(r: Floats, x: Floats, W: Floats, J: Floats) -> float:
    """A bound of tr(W J^-1) for every mechanism with these pair budgets; J is that of a good
    mechanism, to begin with. -inf where the numbers are too far apart to find one.
    """
    n, A = len(r), _rows(r)
    spread = np.eye(n) - x[:, None]
    inner = np.ones((n, n)) + np.tanh(r[r > 0].min() / 5) ** 2 / n * spread.T @ spread
    i, j = np.triu_indices(n)
    first, second = np.triu_indices(len(A))
    basis = np.zeros((len(i), n, n))
    basis[range(len(i)), i, j] = basis[range(len(i)), j, i] = 1
    B = (A @ basis @ A.T)[:, first, second].T  # A X A' as a function of X's numbers
    sums = (basis @ x).T
    v = (0.9 * J + 0.1 * inner)[i, j]
    best, f = -np.inf, float(np.sum(W * np.linalg.inv(J)))
    tau = f / len(B)
    while True:
        try:
            with np.errstate(all="ignore"):
                v, nu = _newton(v, tau, basis, B, sums, W, (i, j), f)
        except np.linalg.LinAlgError:  # the steps of a scale are too small for floats
            return best
        f = float(np.sum(W * np.linalg.inv(np.tensordot(v, basis, 1))))
        N = np.zeros((len(A),) * 2)
        N[first, second] = tau / (B @ v)
        best = max(best, dual_value(A, (N + N.T) / 2, nu, x, W))
        if f - best <= _TOLERANCE * f or tau * len(B) < 1e-9 * f:
            return best
        tau /= 5


def dual_value(A: Floats, N: Floats, nu: Floats, x: Floats, W: Floats) -> float:
    """The bound of any N >= 0 and nu. If C is not quite semidefinite, a multiple of the identity is
    added and paid for, by tr J <= sum 1 / x.
    """
    C = (np.outer(nu, x) + np.outer(x, nu)) / 2 - A.T @ np.maximum(N, 0) @ A
    add = max(0.0, -1.01 * float(np.linalg.eigvalsh(C)[0]))
    total = float(nu.sum() + add * (1 / x).sum())
    if not np.isfinite(add) or total <= 0:
        return -np.inf
    values, vectors = np.linalg.eigh(W)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    inner = np.linalg.eigvalsh(root @ (C + add * np.eye(len(x))) @ root)
    return float(np.sqrt(np.maximum(inner, 0)).sum()) ** 2 / total * (1 - 1e-9)


def _rows(r: Floats) -> Floats:
    """q_j - e^{-r_ij} q_i >= 0 for the pairs that no chain of others implies."""
    n, rows = len(r), []
    for i in range(n):
        for j in range(n):
            via = r[i] + r[:, j]
            via[[i, j]] = np.inf
            if i != j and via.min(initial=np.inf) > r[i, j] + 1e-9:
                row = np.zeros(n)
                row[j], row[i] = 1, -np.exp(-r[i, j])
                rows.append(row)
    return np.array(rows)


def _newton(
    v: Floats,
    tau: float,
    basis: Floats,
    B: Floats,
    sums: Floats,
    W: Floats,
    places: tuple[Ints, Ints],
    f: float,
) -> tuple[Floats, Floats]:
    """Minimise tr(W X^-1) - tau sum ln (A X A') subject to X x = 1."""
    i, j = places
    twice, n = np.where(i == j, 1.0, 2.0), len(sums)
    nu = np.zeros(n)
    for _ in range(_NEWTON):
        X = np.tensordot(v, basis, 1)
        inverse = np.asarray(np.linalg.inv(X), np.float64)
        M, slack = inverse @ W @ inverse, B @ v
        ratio = B / slack[:, None]
        gradient = -M[i, j] * twice - tau * ratio.sum(axis=0)

        hessian = _curve(M, inverse, i, j) + _curve(inverse, M, i, j)
        hessian = (hessian + hessian.T) * np.outer(twice, twice) / 4 + tau * ratio.T @ ratio
        system = np.block([[hessian, sums.T], [sums, np.zeros((n, n))]])
        solution = np.linalg.solve(system, np.append(-gradient, 1 - sums @ v))
        move, nu = solution[: len(v)], solution[len(v) :]
        step = min(1.0, 0.9 / max(float((-(B @ move) / slack).max()), 1e-9))
        least = np.linalg.eigvalsh(X)[0]
        while np.linalg.eigvalsh(X + step * np.tensordot(move, basis, 1))[0] <= 1e-3 * least:
            step /= 2
        v = v + step * move
        if step == 1 and -(gradient @ move) < 1e-7 * tau * len(B) + 1e-13 * f:
            break
    return v, nu


def _curve(Y: Floats, Z: Floats, i: Ints, j: Ints) -> Floats:
    return Y[np.ix_(i, i)] * Z[np.ix_(j, j)] + Y[np.ix_(i, j)] * Z[np.ix_(j, i)]
