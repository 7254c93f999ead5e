"""What results alone tell: the closed form against the exact divergence of the clones, an older
bound, and all histograms of small mechanisms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import product

import numpy as np
import pytest
from checks import must_fail
from scipy.stats import binom

import discreet as d
from discreet.errors import DataError
from discreet.promises.published import Published, published, together

import exhaustive  # isort: skip


def clones_delta(eps0, n, eps):
    """The exact hockey-stick divergence of Feldman, McMillan and Talwar's clones (Theorem 3.2 with
    its proof): C ~ Bin(n - 1, e^-eps0) clones, A ~ Bin(C, 1/2) of the first kind, and the person
    is of the first kind with chance e^eps0 / (e^eps0 + 1), or of the second.
    """
    own = math.exp(eps0) / (math.exp(eps0) + 1)
    total = 0.0
    clones = np.arange(n)
    mass = binom.pmf(clones, n - 1, math.exp(-eps0))
    for c, p in zip(clones.tolist(), mass.tolist(), strict=True):
        if p < 1e-18:
            continue
        a = binom.pmf(np.arange(c + 1), c, 0.5)
        first = np.zeros(c + 2)
        first[1:] += own * a
        first[:-1] += (1 - own) * a
        second = first[::-1]
        total += p * np.maximum(first - math.exp(eps) * second, 0).sum()
    return total


def check_covers_the_clones(eps0, n, delta, shrink=1.0):
    bound = published(eps0, n, delta)
    assert clones_delta(eps0, n, shrink * bound.epsilon) <= delta


@pytest.mark.parametrize("eps0", [0.5, 1, 2])
@pytest.mark.parametrize(("n", "delta"), [(2000, 1e-6), (4000, 1e-8)])
def test_the_closed_form_is_above_the_exact_divergence(eps0, n, delta):
    check_covers_the_clones(eps0, n, delta)
    must_fail(check_covers_the_clones, eps0, n, delta, 0.2)


def blanket(eps0, n, delta):
    """Balle, Bell, Gascon and Nissim, "The Privacy Blanket of the Shuffle Model" (2019): delta is
    at most E[(L_1 + … + L_M)+] / (gamma n) with M ~ Bin(n, gamma) and L of mean 1 - e^eps within
    gamma (e^eps + 1)(e^eps0 - e^-eps0); Hoeffding's inequality bounds the expectation.
    """
    gamma = math.exp(-eps0)  # the least that any such mechanism shares with its blanket
    m = np.arange(1, n + 1)
    mass = binom.pmf(m, n, gamma)

    def bound(eps):
        a, b = math.expm1(eps), gamma * (math.exp(eps) + 1) * 2 * math.sinh(eps0)
        return (mass * np.exp(-2 * m * (a / b) ** 2)).sum() * b**2 / (4 * a) / (gamma * n)

    low, high = 1e-6, eps0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > delta else (low, middle)
    return high


def test_it_is_of_the_size_that_an_older_bound_has():
    """Two proofs that share nothing; the older is the smaller one at such budgets."""
    for eps0, n in ((0.5, 10_000), (1, 10_000), (2, 100_000)):
        mine, other = published(eps0, n, 1e-6).epsilon, blanket(eps0, n, 1e-6)
        assert other < mine < 5 * other and mine < eps0 / 3


def histogram_epsilon(mechanism, n, delta):
    """The least epsilon for which histograms of n reports keep (epsilon, delta): one person's
    answer changes, the others hold any one answer. By enumeration.
    """
    document = mechanism.to_document()
    laws = [
        {r: float(p) for r, p in exhaustive.distribution(document, item).items()}
        for item in range(mechanism.m)
    ]
    worst = 0.0
    for other in range(mechanism.m):
        rest = Counter()
        rest[()] = 1.0
        for _ in range(n - 1):
            more = Counter()
            for (seen, p), (report, q) in product(rest.items(), laws[other].items()):
                more[tuple(sorted((*seen, report)))] += p * q
            rest = more
        mine = []
        for law in laws:
            found = Counter()
            for (seen, p), (report, q) in product(rest.items(), law.items()):
                found[tuple(sorted((*seen, report)))] += p * q
            mine.append(found)
        for first, second in product(mine, mine):
            low, high = 0.0, 10.0
            for _ in range(40):
                eps = (low + high) / 2
                excess = sum(max(0.0, p - math.exp(eps) * second[h]) for h, p in first.items())
                low, high = (eps, high) if excess > delta else (low, eps)
            worst = max(worst, high)
    return worst


def test_histograms_of_a_real_mechanism_tell_less_than_a_report():
    """And no more than the clones allow: exactly, for eight people."""
    mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]), "grr")
    seen, delta = histogram_epsilon(mechanism, 8, 0.05), 0.05
    assert seen < 1
    low, high = 0.0, 1.0
    for _ in range(40):
        eps = (low + high) / 2
        low, high = (eps, high) if clones_delta(1, 8, eps) > delta else (low, eps)
    assert seen <= high + 1e-9


def test_what_it_says():
    guarantee = d.design(d.Policy.from_levels([("all", 1, ["a", "b", "c"])])).guarantee()
    found = guarantee.published(100_000)
    assert found.delta == 1e-8 and found.epsilon < 0.1 and found.n == 100_000
    assert "the results of 100,000 people, once, and none of their reports" in found.sentence
    assert "by a factor of at most 1.08 (but for a chance of 1e-08)" in found.sentence
    assert "keeps no reports" in found.sentence
    assert guarantee.published(100) is None  # too few for the bound
    assert published(math.inf, 10**9, 1e-8) is None


def test_the_length_of_a_table_is_a_number_of_people():
    assert published(1.0, np.int64(100_000), 1e-8) == published(1.0, 100_000, 1e-8)


@pytest.mark.parametrize(
    ("n", "delta"), [(0, 1e-8), (True, 1e-8), (10**16, 1e-8), (1.5, 1e-8), (100, 0), (100, 1)]
)
def test_what_is_no_number_of_people_or_chance(n, delta):
    with pytest.raises(DataError, match="must be"):
        published(1.0, n, delta)


@pytest.mark.parametrize("epsilon", [0.001, 0.5, math.log(12.32), math.log(123.2)])
def test_the_factor_is_never_rounded_down(epsilon):
    sentence = Published(epsilon, 1e-8, 10**6).sentence
    told = float(re.search(r"factor of at most ([\d.,]+) \(", sentence)[1].replace(",", ""))
    assert told >= math.exp(epsilon)


# ---- everything that is shown together -----------------------------------------------------------


def counts_law(chance, n, first):
    """How often "yes" is reported by n people: one of them answers yes or not, the others no."""
    rest = binom.pmf(np.arange(n), n - 1, 1 - chance)
    own = chance if first else 1 - chance
    return np.convolve(rest, [1 - own, own])


def least_epsilon(first, second, delta):
    """The least epsilon for which these two laws keep (epsilon, delta), both ways."""
    low, high = 0.0, 20.0
    for _ in range(60):
        eps = (low + high) / 2
        excess = max(
            np.maximum(x - math.exp(eps) * y, 0).sum()
            for x, y in ((first, second), (second, first))
        )
        low, high = (eps, high) if excess > delta else (low, eps)
    return high


def shown(questions, delta):
    """The same of the results of several yes-or-no questions, each (budget, people), which all
    show an answer of the same person.
    """
    laws = []
    for first in (True, False):
        law = np.ones(1)
        for budget, n in questions:
            chance = math.exp(budget) / (math.exp(budget) + 1)
            law = np.multiply.outer(law, counts_law(chance, n, first)).ravel()
        laws.append(law)
    return least_epsilon(*laws, delta)


def test_several_questions_tell_more_than_one_of_them():
    """The joint law of both counts, against the sum; one question alone says too little as soon as
    many questions are shown.
    """
    questions = [(0.5, 800), (0.3, 400)]
    found = together(questions, 2, 1e-3)
    assert shown(questions, 1e-3) <= found.epsilon
    assert shown(questions, 1e-3) > max(shown([x], 1e-3) for x in questions)
    many = together(questions * 3, 6, 1e-3)
    assert many.epsilon > 2.9 * found.epsilon and many.questions == 6
    assert together(questions, 1, 1e-3).epsilon == published(0.5, 800, 1e-3).epsilon


def test_results_by_group_tell_what_the_smallest_group_tells():
    whole, group = shown([(1.0, 4000)], 1e-6), shown([(1.0, 1000)], 1e-6)
    assert group > 1.9 * whole  # a statement of the whole would be half the truth
    found = together([(1.0, 1000)], 1, 1e-6, grouped=True)
    assert found.epsilon == published(1.0, 1000, 1e-6).epsilon >= group
    assert "only these results by group (at least 1,000 people in each), once" in found.sentence
    assert "nothing else: results at other dates or of other surveys" in found.sentence


def test_what_is_too_few_counts_with_all_that_a_report_tells():
    few = together([(1.0, 10_000), (0.2, 20)], 2, 1e-6)
    assert few.epsilon == published(1.0, 10_000, 5e-7).epsilon + 0.2 and few.n == 20
    assert together([(1.0, 20), (0.2, 20)], 2, 1e-6) is None
    assert together([(math.inf, 10**6), (0.2, 10**6)], 2, 1e-6) is None
    assert together([(1.0, 0)], 1, 1e-6) is None  # nobody answered
    unasked = together([(1.0, 10_000), (0.2, 0)], 1, 1e-6)
    assert unasked.epsilon == published(1.0, 10_000, 1e-6).epsilon
    with pytest.raises(DataError, match="must be between 0 and 1"):
        together([(1.0, 10_000)], 2, 1.5)
