"""Experiments and their theory: exact where possible, otherwise within sampling errors."""

import itertools

import numpy as np
import pytest
from checks import assert_bernoulli, assert_mean, assert_variance, must_fail, z_for
from paper_evidence import experiment, survey

from discreet.arrays.theory import set_error
from discreet.paper import experiments
from discreet.paper.experiments import Numbers, Profile, Row, make_mechanism, merge, observe
from discreet.paper.settings import SHARES, Setup

MODELS = ["opt0", "subset"]


@pytest.mark.parametrize("padding", [1, 2, 4, 8])
@pytest.mark.parametrize("model", MODELS)
def test_the_theory_of_sets_is_that_of_the_library(padding, model):
    """Bias and variance from the ragged array equal theory.set_error, item by item."""
    data = survey()
    mechanism = make_mechanism(experiment(model=model, padding=padding), 12)
    sets = [data.items[a:b].tolist() for a, b in itertools.pairwise(data.offsets)]
    known, profile = set_error(mechanism, sets), Profile.measure(data, padding)
    mine = profile.variance(mechanism, mechanism.arrays.level_of)
    np.testing.assert_allclose(profile.bias, known.bias, atol=1e-9)
    np.testing.assert_allclose(mine, known.variance, rtol=1e-12)
    given = profile.given(mechanism, mechanism.arrays.level_of)[0]
    assert given == pytest.approx(known.mse / data.n, rel=1e-12)


@pytest.mark.parametrize("encoding", ["bits", "ticket"])
@pytest.mark.parametrize("model", MODELS)
def test_the_theory_of_single_answers_is_that_of_the_library(model, encoding):
    data = survey(single=True)
    mechanism = make_mechanism(experiment(model=model, encoding=encoding), 12)
    given = Profile.measure(data, 0).given(mechanism, mechanism.arrays.level_of)[0]
    assert given == pytest.approx(mechanism.expected_mse((data.first / data.n).tolist()), rel=1e-9)


# every pair of 13 items goes to every pair of places equally often
AFFINE = [(a * np.arange(13) + b) % 13 for a in range(1, 13) for b in range(13)]


@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("model", MODELS)
def test_the_theory_over_assignments_is_their_mean(model, padding):
    """Total MSE / n, and every item's variance given its group, a sum over one other item at a
    time: all assignments have the mean of AFFINE.
    """
    profile = Profile.measure(survey(m=13), padding)
    mechanism = make_mechanism(experiment(model=model, padding=padding), 13)

    def check(places, but=0.0):
        level_of = [mechanism.arrays.level_of[place] for place in places]
        each = np.stack([profile.variance(mechanism, x) for x in level_of])
        groups = np.stack([np.array(mechanism.groups)[x] for x in level_of])
        for group in range(len(mechanism.arrays.group_sizes)):
            mean = (each * (groups == group)).sum(axis=0) / (groups == group).sum(axis=0)
            known = profile.mean_variance(mechanism, group)
            np.testing.assert_allclose(mean, known * (1 + but), rtol=1e-10)
        mses = [profile.given(mechanism, x)[0] for x in level_of]
        assert profile.theory(mechanism, (3,))[0] == pytest.approx(np.mean(mses), rel=1e-12)

    check(AFFINE)
    must_fail(check, AFFINE, but=1e-3)
    if model == "subset":  # the parts of its reports tell something of the other items
        must_fail(check, AFFINE[:13])


@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("model", MODELS)
def test_expected_relative_errors_are_those_of_draws(model, padding):
    mine = experiment(model=model, padding=padding, repeats=400, ks=(3, 12))
    found = experiments.run(mine, survey(n=4000), Setup(seed=4))
    for row in (row for row in found if row.metric == "re"):
        sd = np.std(row.values, ddof=1)
        assert_mean(row.values, row.theory, sd**2, z=5)
        must_fail(assert_mean, row.values, row.theory * 1.25, sd**2, z=5)


def check_estimates(counts, mechanism, data, padding):
    """Means and variances of all estimates are the theory's."""
    profile = Profile.measure(data, padding)
    variance = profile.variance(mechanism, mechanism.arrays.level_of)
    assert_mean(counts, profile.truth + profile.bias, variance, z_for(2 * data.m))
    assert_variance(counts, variance, z_for(2 * data.m))


@pytest.mark.parametrize("padding", [0, 2], ids=["single", "sets"])
@pytest.mark.parametrize("encoding", ["bits", "ticket"])
@pytest.mark.parametrize("model", MODELS)
def test_drawn_and_reported_experiments_agree(model, encoding, padding):
    """Both ways have the exact means and variances of every item's estimate; the twins are seen."""
    data, place = survey(single=padding == 0), np.arange(12)
    same = {"model": model, "encoding": encoding, "padding": padding}
    mechanism, other = (make_mechanism(experiment(eps=eps, **same), 12) for eps in (1.5, 0.9))
    for rng in (np.random.default_rng(8), None):  # drawn exactly in distribution; real reports
        drawn = (observe(mechanism, data, place, rng, 1).estimate().counts for _ in range(700))
        counts = np.stack(list(drawn))
        check_estimates(counts, mechanism, data, padding)
        # the twins: other items, another budget, a bias
        must_fail(check_estimates, counts[:, ::-1], mechanism, data, padding)
        must_fail(check_estimates, counts, other, data, padding)
        biased = counts + 0.5 * np.sqrt(counts.var(axis=0))
        must_fail(check_estimates, biased, mechanism, data, padding)


@pytest.mark.parametrize("encoding", ["bits", "ticket"])
@pytest.mark.parametrize("through_reports", [True, False])
def test_rows_have_the_mse_of_the_theory(encoding, through_reports):
    """A whole experiment, as the command runs it: every total MSE within sampling error of its
    expectation given the assignment.
    """
    setup = Setup(seed=1, through_reports=through_reports)
    mine = experiment(encoding=encoding, repeats=40, ks=(3,))
    rows = experiments.run(mine, survey(n=3000, single=True), setup)
    mse = next(row for row in rows if row.metric == "mse")

    def check(factor):
        error = mse.sd / len(mse.values) ** 0.5
        z = (np.mean(mse.values) * factor - np.mean(mse.expected)) / error
        # 40 sums of 12 squares over their own spread: the lower tail is long, 8 is 1e-7 (5.5: 4e-5)
        assert abs(z) < 8, z

    check(1.0)
    must_fail(check, 2.5)


def test_levels_are_shares_of_the_items_and_assigned_at_random():
    policy = experiments.make_policy(16_470, 1.0, (1.0, 1.2, 2.0), SHARES, "single")
    assert policy.level_sizes == (824, 824, 14_822)
    assert [level.budget.text for level in policy.levels] == ["1", "1.2", "2"]
    seeds = (Setup(seed=s).rng("levels", "retail", 0) for s in range(4000))
    places = np.stack([rng.permutation(20) for rng in seeds])
    assert_bernoulli(np.count_nonzero(places[:, 0] < 5), 4000, 0.25)


def test_the_same_people_are_compared_and_repeats_differ():
    data, setup = survey(), Setup(seed=9)
    mine = experiment(ks=(3,), shrunk=True)
    first, again = (experiments.run(mine, data, setup) for _ in range(2))
    assert first == again
    assert first != experiments.run(mine, data, Setup(seed=10))
    mse = next(row for row in first if row.metric == "mse" and row.view == "raw")
    assert len(set(mse.values)) == 3 and mse.stderr > 0
    oue = experiments.run(experiment(model="oue"), data, setup)[0]
    # OUE does not care who is assigned what
    assert oue.metric == "mse" and len(set(oue.expected)) == 1 < len(set(mse.expected))


def test_theory_alone_is_that_of_the_experiment():
    """Without repeats one design serves all paddings; subset's depends on the padding."""
    data, setup = survey(), Setup()
    for model in MODELS:
        both = (experiment(model=model, padding=3, repeats=r, ks=(3,)) for r in (0, 1))
        known, tried = ({(x.metric, x.k): x for x in experiments.run(e, data, setup)} for e in both)
        assert set(known) == {("mse", 0), ("re", 3), ("bias", 0), ("variance", 0)}
        for key, row in known.items():
            assert row.values == () and row.mean == pytest.approx(tried[key].theory, rel=1e-9)


def test_experiments_that_share_draws_are_run_once():
    one, two = experiment(padding=2, ks=(20,)), experiment(padding=2, ks=(10, 50), shrunk=True)
    three = experiment(padding=3, ks=(1,))
    joined = experiment(padding=2, ks=(10, 20, 50), shrunk=True)
    assert merge([one, two, three]) == [joined, three]


def test_a_grid_is_every_model_at_every_eps_in_every_encoding():
    found = experiments.grid(("oue", "opt0"), (1.0, 2.0), ("bits", "ticket"), data="x", repeats=1)
    assert len({(x.model, x.eps, x.encoding) for x in found}) == len(found) == 8


def test_rows_are_selected_by_any_of_their_fields():
    place = (3, 0.05, 0, "bits", "mse", 0, "raw", (1.0, 3.0))
    rows = [Row("a", "oue", eps, *place) for eps in (1.0, 2.0)]
    assert Numbers(rows).select(eps=1.0) == rows[:1]
    assert Numbers(rows).select(eps=(1.0, 2.0), model="oue") == rows
    assert (rows[0].mean, rows[0].stderr) == (2.0, 1.0)
