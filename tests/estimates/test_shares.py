"""Shares of a population: exact coverage where counts are binomial, and comparisons of samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from checks import must_fail
from scipy.stats import binom

import discreet as d
from discreet.arrays.weighted import WeightedTally
from discreet.errors import DataError
from discreet.estimates.formulas import Variance, luck_of_the_draw, score_interval

ITEMS = [f"i{k}" for k in range(6)]
SHARES = (0, 0.002, 0.01, 0.1, 0.3, 0.5, 0.9, 0.97, 1)
ONE_PART = {  # a report is of one part, and an item is named with a chance of its own
    "oue": ("single", "oue"),
    "rappor": ("single", "rappor"),
    "ss": ("single", "ss"),
    "each": ("each", None),
    "sampled": ("set", "oue"),
}


def made(name, eps):
    kind, model = ONE_PART[name]
    policy = d.Policy.from_levels([("all", eps, ITEMS)], kind=kind)
    return d.design(policy, model, **({"padding": 2} if kind == "set" else {}))


def coverage(mechanism, n, share, about="population", together=False):
    """The chance that the interval holds the share of the population, by summing over the number
    of reports that name the item, which is binomial.
    """
    arrays, scale = mechanism.arrays, mechanism.scale
    named = np.arange(n + 1)
    first = [0] if mechanism.policy.kind.lists else 0
    some = mechanism.tally([mechanism.perturb(first)] * n).estimate()
    decoder = arrays.decoder
    counts = scale * (
        decoder.weight[0, 0] * (named - n * decoder.kappa[0, 0]) + decoder.tau[0, 0] * n
    )
    same = np.ones(n + 1)
    law = Variance(some.variance_at_zero[0] * same, some.slope[0] * same)
    if about == "population":
        law = law + luck_of_the_draw(n, same)
    confidence = 0.95
    if together:  # as one of so many
        law, counts = Variance(law.at_zero[:6], law.slope[:6], law.bend), counts
        ends = [
            score_interval(np.full(6, c), law, some.step[:6], 0.95, True) for c in counts.tolist()
        ]
        low, high = (np.array([end[k][0] for end in ends]) for k in (0, 1))
    else:
        low, high = score_interval(counts, law, some.step[0] * same, confidence, False)
    own, other = arrays.own[0, 0], arrays.other[0, 0]
    near = (6 * other - own) / 5 if mechanism.encoding.fixed_size else other
    chance = share / scale * own + (1 - share / scale) * near
    inside = (np.clip(low / n, 0, 1) <= share + 1e-12) & (share <= np.clip(high / n, 0, 1) + 1e-12)
    return binom.pmf(named, n, chance)[inside].sum()


def check_coverage(mechanism, n, about="population"):
    assert min(coverage(mechanism, n, share, about) for share in SHARES) >= 0.945


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("eps", [0.5, 2, 8])
@pytest.mark.parametrize("name", ONE_PART)
def test_intervals_of_shares_hold_exactly(name, eps, n):
    check_coverage(made(name, eps), n)


@pytest.mark.parametrize("name", ["oue", "each"])
def test_intervals_about_respondents_are_not_about_the_population(name):
    must_fail(check_coverage, made(name, 4), 400, "respondents")


@pytest.mark.parametrize("eps", [1, 8])
@pytest.mark.parametrize("name", ["ss", "each"])
def test_intervals_that_hold_together(name, eps):
    """Each of six misses at most a sixth of 5 % (Bonferroni), at any share."""
    mechanism = made(name, eps)
    for share in (0, 0.03, 0.5, 0.97, 1):
        assert coverage(mechanism, 60, share, together=True) >= 1 - 0.06 / 6


def test_the_shares_of_an_estimate_are_those_intervals():
    mechanism = made("rappor", 2)
    estimate = mechanism.tally([bytes([1]), bytes([6])], counts=[30, 20]).estimate()
    law = Variance(estimate.variance_at_zero, estimate.slope) + luck_of_the_draw(50, np.ones(6))
    for together in (False, True):
        within = np.clip(estimate.counts, 0, 50)
        low, high = score_interval(within, law, estimate.step, 0.9, together)
        shares = estimate.shares(0.9, simultaneous=together)
        assert (shares.low == np.clip(low / 50, 0, 1)).all()
        assert (shares.high == np.clip(high / 50, 0, 1)).all()
        assert (shares.share == estimate.counts / 50).all()
    among = estimate.shares(0.9, about="respondents")
    low, high = replace(estimate, counts=within).interval(0.9)
    assert (among.low == np.clip(low / 50, 0, 1)).all()
    assert (among.high == np.clip(high / 50, 0, 1)).all()
    far = replace(estimate, counts=estimate.counts - 1000)
    none = replace(estimate, counts=0 * estimate.counts)
    assert (far.shares().high == none.shares().high).all() and (far.shares().high > 0.05).all()
    with pytest.raises(DataError, match="about = 'people' must be population or respondents"):
        estimate.shares(about="people")
    with pytest.raises(DataError, match="confidence = 1 must be"):
        estimate.shares(1)


def certain(about, pairs=200, n=300):
    """Of so many pairs of samples from one population, how many differ "for certain"."""
    mechanism = made("rappor", 10)  # with hardly any noise it is all luck
    truth, rng = [0.4, 0.2, 0.2, 0.1, 0.1, 0], np.random.default_rng(3)
    found = 0
    for _ in range(pairs):
        one, two = (
            mechanism.tally(mechanism.perturb_many(rng.choice(6, n, p=truth))).estimate()
            for _ in range(2)
        )
        found += one.compare(two, about=about).differs.any()
    return found


def check_samples_of_one_population(about):
    # at most 5 %: more than 32 of 200 have a chance of 1e-9
    assert certain(about) <= 32


def test_samples_of_one_population_do_not_differ():
    check_samples_of_one_population("population")
    must_fail(check_samples_of_one_population, "respondents")


def test_a_comparison_says_whom_it_is_about():
    mechanism = made("oue", 2)
    estimate = mechanism.tally([bytes([1])] * 50).estimate()
    assert "together, of the populations)" in estimate.compare(estimate).sentence
    among = estimate.compare(estimate, about="respondents")
    assert "together, of those who answered)" in among.sentence
    with pytest.raises(DataError, match="about = 'x' must be"):
        estimate.compare(estimate, about="x")


def test_printing_an_estimate_shows_the_table():
    mechanism = made("oue", 2)
    estimate = mechanism.tally([bytes([1])] * 50).estimate()
    lines = str(estimate).splitlines()
    assert lines[0] == "50 reports" and "95 % interval" in lines[2]
    assert any(line.split()[:3] == ["i0", "all", f"{estimate.counts[0]:,.0f}"] for line in lines)


@pytest.mark.parametrize("long", [False, True])
def test_a_printed_estimate_fits_80_columns(long):
    items = [f"answer {k} " + "with a long name " * (5 * long) for k in range(3)]
    policy = d.Policy.from_levels([("a level", 2, items)], totals={"all of them": items[:2]})
    mechanism = d.design(policy, "rappor")
    reports = mechanism.perturb_many([0, 1, 2] * 700_000)
    weights = np.array([1e6, 1e6, *[1.0] * 2_099_998])
    for estimate in (
        mechanism.tally(reports).estimate(),
        WeightedTally.count(mechanism, reports, weights).estimate(),
    ):
        lines = str(estimate).splitlines()
        assert max(map(len, lines)) <= 80
        assert "\x1b" not in str(estimate)
        assert any("2,100,000 reports" in line for line in lines)
