"""The bounds of every mechanism for sets: never above the optimum over all families of sets."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import discreet as d
from discreet.designs.set_bound import _by_disjoint_sets, _by_graphs, one_by_one, one_level

EPSILONS = (0.25, 0.5, 1, 1.5, 2, 3, 4, 6)
SMALL = [(4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (5, 3), (6, 1), (6, 2), (6, 4), (7, 1), (7, 6)]


@cache
def profile(m, s):
    """Of all families of so many sets, the largest squared covariance with the items."""
    sets = list(combinations(range(m), s))
    n = len(sets)
    inside = np.array([[i in x for i in range(m)] for x in sets], float) - s / m
    best: dict[int, float] = {}
    for start in range(0, 2**n, 1 << 15):
        family = (np.arange(start, min(2**n, start + (1 << 15)))[:, None] >> np.arange(n)) & 1
        squares = ((family @ inside / n) ** 2).sum(axis=1)
        sizes = family.sum(axis=1)
        for k in np.unique(sizes).tolist():
            best[k] = max(best.get(k, 0.0), float(squares[sizes == k].max()))
    return n, best


def optimum(m, s, eps):
    """The least total MSE / n over all families: by symmetry, of every mechanism."""
    n, best = profile(m, s)
    E, tau = math.exp(eps), s * (m - s) / m
    v = max(x * ((E - 1) / (1 + (E - 1) * k / n)) ** 2 for k, x in best.items())
    return tau * (tau / v - 1)


@pytest.mark.parametrize(("m", "s"), SMALL)
def test_never_above_the_optimum_over_all_families(m, s):
    for eps in EPSILONS:
        bound, best = one_level(m, s, eps), optimum(m, s, eps)
        assert bound <= best * (1 + 1e-12)
        if min(s, m - s) <= 2 and m > 4:
            assert bound == pytest.approx(best, rel=1e-8) or min(s, m - s) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("m", "s"), [(6, 3), (7, 2), (7, 5)])
def test_never_above_the_optimum_over_all_larger_families(m, s):
    test_never_above_the_optimum_over_all_families(m, s)


def test_a_sharper_formula_would_be_above():
    """The twin: with R a tenth smaller the bound is beyond the optimum somewhere."""
    above = 0
    for m, s in SMALL:
        for eps in EPSILONS:
            tau = min(s, m - s) * (m - min(s, m - s)) / m
            sharper = (one_level(m, s, eps) + tau) / 0.9 - tau
            above += sharper > optimum(m, s, eps)
    assert above > 10


TABLE = [(100, 5, 0.5, 7364.44), (100, 5, 1, 1727.04), (100, 5, 2, 335.74), (100, 5, 4, 41.92),
         (100, 10, 4, 130.39), (20, 3, 2, 33.15), (1000, 5, 1, 18298.11), (1000, 5, 4, 372.86),
         (100, 2, 0.5, 3399.153),
         (100, 2, 1, 766.203), (100, 2, 2, 142.368), (100, 2, 4, 12.834)]  # fmt: skip


@pytest.mark.parametrize(("m", "s", "eps", "bound"), TABLE)
def test_the_table(m, s, eps, bound):
    assert one_level(m, s, eps) == pytest.approx(bound, rel=2e-4)
    assert one_level(m, m - s, eps) == one_level(m, s, eps)


def test_graphs_are_sharper_than_disjoint_sets():
    for m in (5, 30, 100):
        for eps in EPSILONS:
            assert _by_graphs(m, eps) >= _by_disjoint_sets(m, 2, eps) * (1 - 1e-12)


def policy(m, eps, kind="set", **settings):
    return d.Policy.from_levels([("all", eps, [f"i{k}" for k in range(m)])], kind=kind, **settings)


@pytest.mark.parametrize("model", ["hits", "subset"])
def test_certificates_of_one_budget(model):
    made = d.design(policy(20, 1), model, padding=3)
    assert made.certificate.lower_bound == pytest.approx(175.88, rel=1e-4)
    assert made.certificate.value >= made.certificate.lower_bound
    assert "above the best possible" in made.certificate.sentence


def test_no_formula_for_other_priors_or_several_budgets():
    several = d.Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "u"])], kind="set")
    for made in (
        d.design(several, "hits", padding=2),
        d.design(policy(6, 1), "hits", [0.1] * 6, padding=2),
        d.design(policy(6, 1), "hits", "worst", padding=2),
        d.design(policy(6, 1), "subset", padding=2, sizes={1: 1, 2: 1}),
        d.design(policy(3, 1), "hits", padding=3),
    ):
        assert made.certificate.lower_bound is None
        assert "no formula" in made.certificate.note


# ---- items asked one by one ----------------------------------------------------------------------


@pytest.mark.parametrize("notion", ["min", "one-way"])
@pytest.mark.parametrize("prior", ["uniform", [0.01] * 5 + [0.3] * 5, [1.0] * 10])
def test_each_is_the_best_possible(notion, prior):
    levels = [("a", "0.5", [f"a{k}" for k in range(5)]), ("b", 2, [f"b{k}" for k in range(5)])]
    asked = d.Policy.from_levels(levels, kind="each", notion=notion)
    certificate = d.design(asked, prior=prior).certificate
    assert certificate.sentence.startswith("the best possible")
    assert "whatever people have" in certificate.note


def test_the_bound_of_items_is_that_of_randomised_response():
    E = np.exp([0.5, 2.0])
    one = np.ones(2)
    assert one_by_one(one, np.array([0.5, 2.0]), one) == pytest.approx((E / (E - 1) ** 2).sum())
    absent = np.array([0.9, 0.4])
    one_way = one_by_one(one, np.array([0.5, 2.0]), one, absent)
    assert one_way == pytest.approx((absent / (E - 1)).sum())
