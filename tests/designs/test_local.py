"""The local search for explicit pairs of many levels: beside all boxes where there are few levels,
and what it designs where there are many.
"""

import math
import random

import numpy as np
import ordered
import pytest

import discreet as d
from discreet.designs.boxes import Boxes
from discreet.designs.columns import ColumnSearch
from discreet.designs.local import LocalSearch
from discreet.designs.vertices import all_boxes


def random_table(seed):
    """Budgets of every two of 4 or 5 levels; of odd seeds some are missing."""
    rng = np.random.default_rng(seed)
    t = 4 + seed % 2
    r = np.round(rng.uniform(0.4, 3, (t, t)), 3)
    if seed % 4 < 2:
        r = np.minimum(r, r.T)
    if seed % 2:
        r = np.where(rng.random((t, t)) < 0.3, math.inf, r)
        r[0] = 1  # one piece
    return r, rng.choice([1.0, 1, 2, 4, 10], t)


def pick_best(boxes, sizes):
    one = np.ones(len(sizes))
    return (
        ColumnSearch(boxes, sizes, sizes / sizes.sum(), one, sizes, fixed=True).solve(False).value
    )


@pytest.mark.parametrize("seed", range(6))
def test_it_is_near_the_best_where_all_boxes_are_known(seed):
    r, sizes = random_table(seed)
    best = pick_best(all_boxes(r, sizes), sizes)
    search = LocalSearch(r, sizes, sizes / sizes.sum(), np.ones(len(sizes)))
    found = pick_best(search.boxes(), sizes)
    assert best * (1 - 1e-6) <= found <= 1.01 * best


def test_a_search_that_does_not_climb_is_seen():
    """The twin: the first boxes alone are not enough."""
    for seed in (2, 3):
        r, sizes = random_table(seed)
        search = LocalSearch(r, sizes, sizes / sizes.sum(), np.ones(len(sizes)))
        first = Boxes(*search._first_boxes())
        assert pick_best(first, sizes) > 1.02 * pick_best(all_boxes(r, sizes), sizes)


def test_eight_levels_without_a_solver(monkeypatch):
    """It beats what the smallest budget of each level allows, keeps the budgets, and is honest."""
    draw = random.Random(3)
    budgets = [[draw.choice((0.5, 1, 2, 3, None)) for _ in range(8)] for _ in range(8)]
    for k in range(8):
        budgets[k][k] = 1 + k / 4
    policy = ordered.table(budgets, [1, 2, 1, 3, 1, 2, 1, 1])
    monkeypatch.setitem(__import__("sys").modules, "cvxpy", None)
    mechanism = d.design(policy, "subset")
    assert mechanism.check() is None
    assert mechanism.certificate.lower_bound is None
    assert "explicit pairs of more than 6 levels" in mechanism.certificate.note
    smallest = [min(x for x in row if x is not None) for row in budgets]
    rows = [(f"l{k}", e, [f"{k}.{i}" for i in range(n)])
            for k, (e, n) in enumerate(zip(smallest, policy.level_sizes, strict=True))]  # fmt: skip
    simple = d.design(d.Policy.from_levels(rows, notion="one-way"), "subset")
    assert mechanism.expected_mse() < 0.8 * simple.expected_mse()
