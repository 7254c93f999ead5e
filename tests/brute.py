"""The best mechanism of a few items by brute force: a convex program over all extreme columns."""

import itertools
import math

import numpy as np
import pytest

cp = pytest.importorskip("cvxpy")


def extreme_columns(r):
    """The extreme rays of {q >= 0, q_i <= e^r_ij q_j} over items, by brute force.

    On its support, the tight pairs of an extreme column connect all items: so try every support,
    and on it every tree of pairs with a budget, tight.
    """
    n, rays = len(r), set()
    for support in itertools.chain.from_iterable(
        itertools.combinations(range(n), k) for k in range(1, n + 1)
    ):
        outside = [j for j in range(n) if j not in support]
        if np.isfinite(r[np.ix_(support, outside)]).any():
            continue  # somebody would be told apart from an item that never sends it
        inner = r[np.ix_(support, support)]
        edges = [*zip(*(x.tolist() for x in np.nonzero(np.isfinite(inner))), strict=True)]
        for tree in itertools.combinations(edges, len(support) - 1):
            logs = along(tree, inner)
            if logs is not None and all(logs[i] - logs[j] <= inner[i, j] + 1e-9 for i, j in edges):
                column = np.zeros(n)
                column[list(support)] = np.exp(logs)
                rays.add(tuple(np.round(column / column.sum(), 12)))
    return np.array(sorted(rays))


def along(tree, r):
    """ln q with every pair of the tree tight; None where it does not reach all items."""
    logs = {0: 0.0}
    while len(logs) < len(r):
        fresh = {i: logs[j] + r[i, j] for i, j in tree if j in logs and i not in logs}
        fresh |= {j: logs[i] - r[i, j] for i, j in tree if i in logs and j not in logs}
        if not fresh:
            return None
        logs |= fresh
    return [logs[i] for i in range(len(r))]


def smallest_error(r, prior, most=None):
    """The smallest total MSE / n of any mechanism: a convex program over all extreme columns. With
    `most`, no item has a larger error than that.
    """
    columns = extreme_columns(r)
    columns = columns / (columns @ prior)[:, None]
    mu = cp.Variable(len(columns), nonneg=True)
    information = sum(mu[k] * np.outer(q, q) for k, q in enumerate(columns))
    cost, rules = cp.tr_inv(information), [columns.T @ mu == 1]
    if most is not None:
        units = np.eye(len(r))
        rules += [
            cp.matrix_frac(units[i], information) <= most[i] + prior[i] for i in range(len(r))
        ]
    cp.Problem(cp.Minimize(cost), rules).solve(solver=cp.CLARABEL)
    return float(cost.value) - 1  # what everybody knows of their own answer


def smallest_error_of_small_budgets(r):
    """The same at a uniform prior, where all chances are nearly 1 and solvers see no difference:
    with q = 1 + s d the information is 11' + s^2 sum mu d d', and d 1 = 0.
    """
    columns = extreme_columns(r)
    difference = columns / columns.mean(axis=1, keepdims=True) - 1
    s, n = np.abs(difference).max(), len(r)
    d = difference / s
    across = np.linalg.svd(np.ones((1, n)))[2][1:].T  # a basis of what sums to 0
    mu = cp.Variable(len(d), nonneg=True)
    cost = cp.tr_inv(sum(mu[k] * np.outer(q, q) for k, q in enumerate(d @ across)))
    cp.Problem(cp.Minimize(cost), [cp.sum(mu) == 1, d.T @ mu == 0]).solve(solver=cp.CLARABEL)
    return float(cost.value) / s**2 + 1 / n - 1


def budgets_of(policy):
    """r of every two items; infinite where there is no budget, and of an item with itself."""
    of = policy.level_of
    r = np.array([[policy.pair_epsilon(i, j) for j in of] for i in of])
    np.fill_diagonal(r, math.inf)
    return r
