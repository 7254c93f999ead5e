"""What so many people will show, and the budgets that a wanted error needs."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from checks import must_fail

import discreet as d
from discreet.arrays import theory
from discreet.errors import DesignError
from discreet.show import facts, outlook

POLICY = d.Policy.from_levels([("low", 3, ["a", "b", "c"]), ("high", 1, ["x", "y"])])


def check_spread(mechanism, prior, about, n=200, repeats=3000):
    """The shares of samples drawn from a population are as far from its shares as is forecast."""
    rng = np.random.default_rng(5)
    truth = theory.item_shares(mechanism.policy, prior)
    answers = rng.choice(mechanism.m, (repeats, n), p=truth)
    reports = mechanism.perturb_many(answers.ravel(), indices=True)
    found = [
        mechanism.tally(reports[k * n : (k + 1) * n], threads=1).estimate().counts / n
        for k in range(repeats)
    ]
    squares = n * (np.array(found) - truth) ** 2
    of = np.array(mechanism.policy.level_of)
    for k, forecast in enumerate(theory.share_variance(mechanism, prior, about)):
        mine = squares[:, of == k].mean(axis=1)
        assert abs(mine.mean() - forecast) < 5 * mine.std() / repeats**0.5


@pytest.mark.parametrize("prior", ["uniform", [0.5, 0.2, 0.1, 0.1, 0.1]])
def test_the_error_of_a_share_knows_of_the_luck_of_the_draw(prior):
    # at such budgets the noise is small: luck is most of the error
    policy = d.Policy.from_levels([("low", 5, ["a", "b", "c"]), ("high", 4, ["x", "y"])])
    mechanism = d.design(policy)
    check_spread(mechanism, prior, "population")
    must_fail(check_spread, mechanism, prior, "respondents")


def seen(mechanism, place, share, n, repeats=300):
    """How often an item with this share stands out from zero."""
    rng = np.random.default_rng(8)
    truth = np.full(mechanism.m, (1 - share) / (mechanism.m - 1))
    truth[place] = share
    found = 0
    for _ in range(repeats):
        reports = mechanism.perturb_many(rng.choice(mechanism.m, n, p=truth))
        found += mechanism.tally(reports).estimate().shares().low[place] > 0
    return found / repeats


def check_visible(mechanism, place, share, n):
    # 80 %, by 6 standard errors of 2.3 points
    assert abs(seen(mechanism, place, share, n) - 0.8) < 0.14


@pytest.mark.parametrize("level", [0, 1])
def test_a_visible_share_stands_out_four_times_in_five(level):
    mechanism, n = d.design(POLICY), 1000
    share = outlook.visible_share(outlook.noises(mechanism, "uniform")[level], n)
    place = (0, 3)[level]
    check_visible(mechanism, place, share, n)
    must_fail(check_visible, mechanism, place, 0.5 * share, n)


@pytest.mark.parametrize("items", [1, 5, 1000])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_the_people_that_it_takes_see_the_share(items, share):
    for noise in outlook.noises(d.design(POLICY), "uniform"):
        people = outlook.users_needed(noise, share, items)
        assert outlook.visible_share(noise, people, items) <= share * (1 + 1e-9)
        assert outlook.visible_share(noise, people - 1, items) > share


def test_of_many_items_together_only_larger_shares_are_seen():
    (noise, *_) = outlook.noises(d.design(POLICY), "uniform")
    alone, together = (outlook.visible_share(noise, 1000, items) for items in (1, 5))
    sure = (NormalDist().inv_cdf(1 - (1 - 0.95**0.2) / 2) + 0.84) / (1.96 + 0.84)
    assert together / alone == pytest.approx(sure, rel=0.02)


def found_different(mechanism, difference, users, repeats=300):
    """How often `compare` is certain of a difference of the last item between two halves."""
    rng, m, found = np.random.default_rng(9), mechanism.m, 0
    shares = []
    for share in (0.1, 0.1 + difference):
        truth = np.full(m, (1 - share) / (m - 1))
        truth[-1] = share
        shares.append(truth)
    for _ in range(repeats):
        one, two = (
            mechanism.tally(mechanism.perturb_many(rng.choice(m, users // 2, p=x))).estimate()
            for x in shares
        )
        found += one.compare(two).differs[-1]
    return found / repeats


def test_a_visible_difference_is_called_certain_four_times_in_five():
    mechanism = d.design(d.Policy.from_levels([("all", 2, [f"i{k}" for k in range(20)])]))
    (noise,) = outlook.noises(mechanism, "uniform")
    difference = outlook.visible_difference(noise, 8000, 20)
    assert abs(found_different(mechanism, difference, 8000) - 0.8) < 0.14
    assert found_different(mechanism, 0.6 * difference, 8000) < 0.6


def test_the_sentences():
    mechanism = d.design(POLICY)
    told, noises = outlook.sentences(mechanism, 5000), outlook.noises(mechanism, "uniform")
    for sentence, name, noise in zip(told, ("low", "high"), noises, strict=True):
        share = outlook.visible_share(noise, 5000)
        points = outlook.visible_difference(noise, 5000, 5)
        assert sentence == (
            f'With 5,000 people you may miss (more than 1 time in 5) anything "{name}" '
            f"rarer than {100 * share:.2g} %; a difference between two groups of 2,500 shows from "
            f"{100 * points:.2g} points on."
        )
    one = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]))
    assert outlook.sentences(one, 5000)[0].startswith(
        "With 5,000 people you may miss (more than 1 time in 5) anything rarer than"
    )
    assert "no difference between two groups of 30 will show" in outlook.sentences(mechanism, 60)[1]


def test_rarer_items_are_missed_more_than_once_in_five_but_not_always():
    mechanism, n = d.design(POLICY), 1000
    share = outlook.visible_share(outlook.noises(mechanism, "uniform")[1], n)
    # 300 repeats: 6 standard errors are 0.14 of a chance of 0.8, and 0.17 of one of a half
    assert 0.5 - 0.17 < seen(mechanism, 3, 0.7 * share, n) < 0.8


def test_too_few_people_are_told_what_to_do():
    mechanism = d.design(POLICY)
    *_, advice = outlook.sentences(mechanism, 60)
    assert 'to see 5 % of "high" takes about' in advice and "--solve epsilon" in advice
    people = int(advice.split("about ")[1].split(".")[0].replace(",", ""))
    assert outlook.visible_share(outlook.noises(mechanism, "uniform")[1], people) < 0.055
    assert 'anything "high", however common it is' in outlook.sentences(mechanism, 2)[1]


def test_budgets_are_scaled_together():
    pairs = [("low", "high", 2), ("low", "low", None)]
    policy = d.Policy.from_levels(
        [("low", "ln(4)", ["a", "b"]), ("high", 1, ["x", "y"])], pairs=pairs
    )
    twice = outlook.scaled(policy, 2)
    assert [level.budget.text for level in twice.levels] == ["2.77258", "2"]
    assert [pair.budget and pair.budget.text for pair in twice.pairs] == ["4", None]


def test_rounded_budgets_compare_as_before():
    """A budget twice the smallest acts in full, and one a little larger does not."""
    policy = d.Policy.from_levels([("low", 2, ["a", "b"]), ("high", 1, ["x", "y"])])
    for factor in (0.86349, 0.12345, 3.33333, 0.0123456):
        found = outlook.scaled(policy, factor)
        low, high = (Fraction(level.budget.text) for level in found.levels)
        assert low == 2 * high and float(high) == pytest.approx(factor, rel=0.005)
        assert facts.warnings(found) == []
    assert facts.warnings(d.Policy.from_levels([("low", 1.73, ["a", "b"]), ("high", 0.863, ["x"])]))


def test_the_smallest_budgets_that_reach_a_target():
    solved = outlook.solve_budgets(POLICY, 3000, 0.02)
    error = math.sqrt(theory.share_variance(d.design(solved)).max() / 3000)
    less = outlook.scaled(solved, 0.97)
    assert error <= 0.02 < math.sqrt(theory.share_variance(d.design(less)).max() / 3000)
    assert max(float(x.budget) for x in outlook.solve_budgets(POLICY, 10**9, 0.5).levels) <= 0.01
    with pytest.raises(DesignError, match="give a standard error of 0.001 with 10 people"):
        outlook.solve_budgets(POLICY, 10, 0.001)
    with pytest.raises(DesignError, match="give a standard error of 0.02 with 300 people"):
        outlook.solve_budgets(POLICY, 300, 0.02)  # the draw alone moves a share of 20 % by 0.023
    noise = outlook.solve_budgets(POLICY, 300, 0.02, about="respondents")
    assert theory.level_variance(d.design(noise)).max() / 300 <= 0.02**2
    with pytest.raises(DesignError, match="the target error = 2 must be a share"):
        outlook.solve_budgets(POLICY, 10, 2)
