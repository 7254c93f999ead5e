"""Lower bounds of every mechanism for sets (docs/researcher.md, "How far sets are
from the best possible").

`one_level`: everybody has exactly s of m items, any of them, and all have one budget. By symmetry
the best columns are the orbit of one family A of sets, and its error is tau (tau / v - 1), where
tau = s (m - s) / m and v is the largest squared covariance of A with the items, times
((E - 1) / (1 + (E - 1) Pr(A)))^2, E = e^eps. The covariance is at most that of all of A's variance,
and two disjoint sets are never both in A with a negative chance: the smaller of the two limits.

`one_by_one`: every item has a promise of its own. The chance of a report changes by at most e^eps
if one item does, so the variance of its estimate is at least that of randomised response
(Chapman and Robbins), for every set.

Several budgets, or sizes that vary: no formula is known; `certify` searches a proof (set_proof.py).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from discreet.arrays.types import Floats
from discreet.check.certificate import FAIR, Certificate
from discreet.designs.set_proof import LEAST_BUDGET, Proof, prove, verify
from discreet.designs.task import Task
from discreet.policy import Policy

NO_BOUND = "for sets of several budgets, or of sizes that vary, no formula for a bound is known"
_HINT = "; certify searches a proof"
_ANY = "the best possible of all mechanisms, whether they count a level worse or not"
_MARGIN = 1 - 1e-9  # for the rounding of the formulas below
_GRAPHS = 600  # items up to which all numbers of edges are tried
_CLASSES, _LEVELS = 200, 3  # the search of a proof takes too long beyond
_LARGEST_BUDGET = 300.0  # larger ones bind nothing beside twice the smallest


def certificate(task: Task, value: float, *notes: str) -> Certificate:
    """How good a design for sets is, with what is known of the best possible."""
    bound, proof, why = _bound(task), None, ""
    if bound is None and (problem := _problem(task)) is None:
        why = NO_BOUND
    elif bound is None and problem is not None and task.certify:
        bound, proof = _proved(*problem)
        why = _ANY if FAIR in notes else ""
    elif bound is None:
        why = NO_BOUND + _HINT
    return Certificate(value, bound, "; ".join(filter(None, (*notes, why))), proof)


def _bound(task: Task) -> float | None:
    """The lower bound of a task for sets; None where no formula is known."""
    s, even = task.padding or 0, np.ptp(task.eps) == 0 and np.ptp(task.weights) == 0
    known = isinstance(task.prior, str) and task.prior == "uniform" and task.people is None
    if not (even and known and 0 < s < task.policy.m):
        return None
    return float(task.weights[0]) * one_level(task.policy.m, s, float(task.eps[0]))


def budgets_with_sizes(policy: Policy) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The budgets that differ, ascending, and how many items have each."""
    items: dict[float, int] = {}
    for budget, size in zip(policy.effective_budgets, policy.level_sizes, strict=True):
        binds = min(float(budget), _LARGEST_BUDGET)
        items[binds] = items.get(binds, 0) + size
    budgets = tuple(sorted(items))
    return tuple(items[x] for x in budgets), budgets


def _problem(task: Task) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]] | None:
    """What a proof is of: items, budgets, shares of people by size; None where none is searched."""
    s, m = task.padding or 0, task.policy.m
    uniform = task.people is not None or (isinstance(task.prior, str) and task.prior == "uniform")
    even = task.even and np.ptp(task.shares / task.sizes) < 1e-12
    if not (uniform and even and 0 < s < m and (task.weights == 1).all()):
        return None
    items, budgets = budgets_with_sizes(task.policy)
    small = budgets[0] < LEAST_BUDGET
    if small or len(items) > _LEVELS or math.comb(s + len(items), s) > _CLASSES:
        return None
    sizes = np.eye(s + 1)[s] if task.people is None else task.people
    return items, budgets, tuple(sizes.tolist())


@lru_cache(16)
def _proved(
    items: tuple[int, ...], budgets: tuple[float, ...], sizes: tuple[float, ...]
) -> tuple[float, Proof]:
    """Kept, because hits and picks are compared and have the same bound."""
    proof = prove(items, budgets, np.array(sizes))
    return verify(proof), proof


def one_level(m: int, s: int, eps: float) -> float:
    """No unbiased mechanism has a smaller total MSE / n if everybody has exactly s of m items."""
    s = min(s, m - s)  # the items that one does not have tell the same
    if not s:
        return 0.0
    bound = _by_disjoint_sets(m, s, eps)
    if s == 2 and m <= _GRAPHS:
        bound = max(bound, _by_graphs(m, eps))
    return max(0.0, bound) * _MARGIN


def one_by_one(sizes: Floats, eps: Floats, weights: Floats, absent: Floats | None = None) -> float:
    """The same where every item has a promise of its own, in both directions; or in one, with the
    shares of people who do not have an item of each level.
    """
    if absent is not None:
        return float((sizes * weights * absent) @ (1 / np.expm1(eps))) * _MARGIN
    return float((sizes * weights) @ (np.exp(-eps) / np.expm1(-eps) ** 2)) * _MARGIN


def _by_disjoint_sets(m: int, s: int, eps: float) -> float:
    """Theorem 2: the largest R such that the error is tau ((m - 1) / R - 1)."""
    gain, tau, share = math.expm1(min(eps, 300.0)), s * (m - s) / m, s / m
    if 1 / (gain + 2) >= share:
        return tau * ((m - 1) / math.sinh(eps / 2) ** 2 - 1)
    both = s * (s - 1) / ((m - s) * (m - s - 1)) if m - s > 1 else 0.0
    rest, odds = 1 - both, s / (m - s)
    turn = gain * both - 2 * rest
    p = min(share, both / turn) if turn > 0 else share
    R = (rest * p * p + both * p) / (odds + both) * (gain / (1 + gain * p)) ** 2
    return tau * ((m - 1) / R - 1)


def _by_graphs(m: int, eps: float) -> float:
    """s = 2, the exact optimum: a family of pairs is a graph, and of all graphs with e edges the
    quasi-star or the quasi-complete one has the largest sum of squared degrees (Ahlswede, Katona).
    """
    pairs = math.comb(m, 2)
    edges = np.arange(1, pairs, dtype=float)
    gain, p = math.expm1(min(eps, 300.0)), edges / pairs
    squares = np.maximum(
        _complete(edges),
        _complete(pairs - edges) + m * (m - 1.0) ** 2 - 4 * (m - 1) * (pairs - edges),
    )
    reach = (squares - 4 * edges**2 / m) / pairs**2 * (gain / (1 + gain * p)) ** 2
    tau = 2 * (m - 2) / m
    return float(tau * (tau / reach.max() - 1))


def _complete(edges: Floats) -> Floats:
    """The sum of squared degrees of a complete graph with one more vertex joined to some of it."""
    k = np.floor((1 + np.sqrt(1 + 8 * edges)) / 2)
    k -= k * (k - 1) / 2 > edges  # the root may have been rounded up
    left = edges - k * (k - 1) / 2
    return left * k**2 + (k - left) * (k - 1) ** 2 + left**2
