"""Means and cumulative shares of ordered questions."""

import math

import numpy as np
import pytest
from checks import must_fail

import discreet as d
from discreet.arrays.weighted import WeightedTally
from discreet.errors import DataError, DesignError, PolicyError
from discreet.estimates.weights import post_stratify, rake

POINTS = ["never", "rarely", "often", "always", "ever"]
SHARES = np.array([0.1, 0.2, 0.4, 0.2, 0.1])


def drawn(mechanism, n, rng):
    answers = rng.choice(len(POINTS), n, p=SHARES)
    reports = mechanism.perturb_many([POINTS[k] for k in answers])
    return answers, mechanism.tally(reports).estimate()


@pytest.mark.parametrize("model", ["subset", "opt0", "oue"])
@pytest.mark.parametrize("about", ["population", "respondents"])
def test_the_error_of_a_mean_is_the_stated_one(model, about):
    """60 samples: the standardised errors have variance 1 but for 5 standard errors of a variance
    (5 sqrt(2 / 60) = 0.91), and mean 0 but for 5 / sqrt(60); the answers are drawn with a seed, the
    reports are not.
    """
    mechanism, rng = d.design(d.Policy.from_scale(POINTS, step=1), model), np.random.default_rng(7)
    scores = []
    for _ in range(60):
        answers, estimate = drawn(mechanism, 2000, rng)
        row = estimate.mean(about=about)
        truth = SHARES @ np.arange(1, 6) if about == "population" else (answers + 1).mean()
        scores.append((row["mean"] - truth) / row["stderr"])
    assert abs(np.mean(scores)) < 5 / math.sqrt(60)
    assert abs(np.mean(np.square(scores)) - 1) < 5 * math.sqrt(2 / 60)
    assert not abs(np.mean(np.square(np.multiply(scores, 2))) - 1) < 5 * math.sqrt(2 / 60)


@pytest.mark.parametrize("model", ["ss", "grr"])
def test_no_mean_is_told_where_its_error_is_not_known(model):
    mechanism = d.design(d.Policy.from_scale(POINTS, step=1), model)
    _, estimate = drawn(mechanism, 200, np.random.default_rng(1))
    with pytest.raises(DataError, match="is not known for model"):
        estimate.mean()
    assert "Mean:" not in str(estimate)


@pytest.mark.parametrize(
    "arguments",
    [{"values": ["a"] * 5}, {"values": "abcde"}, {"values": [1, 2]}, {"values": [math.nan] * 5},
     {"values": [1e308] * 5}, {"confidence": "x"}, {"confidence": 1}],
)  # fmt: skip
def test_bad_arguments_of_a_mean_get_a_sentence(arguments):
    mechanism = d.design(d.Policy.from_scale(POINTS, step=1))
    _, estimate = drawn(mechanism, 20, np.random.default_rng(1))
    with pytest.raises(DataError):
        estimate.mean(**arguments)


def test_a_mean_is_of_an_ordered_question():
    mechanism = d.design(d.Policy.from_budgets({"a": 1, "b": 1}))
    with pytest.raises(DataError, match="ordered question"):
        mechanism.tally(mechanism.perturb_many(["a"])).estimate().mean()


# ---- weights -------------------------------------------------------------------------------------


def weighted_crowd(model, step):
    """Few heavy people, far from the middle of the scale, and many light ones in the middle: what
    every report adds to the mean, the weights, and the reports.
    """
    mechanism, rng = (
        d.design(d.Policy.from_scale(POINTS, step=step), model),
        np.random.default_rng(3),
    )
    heavy, light = rng.choice([0, 4], 4_000), np.full(16_000, 2)
    reports = mechanism.perturb_many(np.concatenate([heavy, light]))
    scores = mechanism.scores(reports) @ (np.arange(1, 6) - 3)
    return mechanism, reports, scores, np.repeat([9.0, 1.0], [4_000, 16_000])


def check_error(row, scores, weights, groups):
    """The stated error is that of the scores, which are drawn group by group: within five standard
    errors of a sum of squares.
    """
    middles = [np.average(scores[x], weights=weights[x]) for x in groups]
    squares = [(weights[x] * (scores[x] - m)) ** 2 for x, m in zip(groups, middles, strict=True)]
    every, total = np.concatenate(squares), weights.sum() ** 2
    noise = 5 * np.sqrt(len(every)) * every.std() / total
    assert abs(row["stderr"] ** 2 - every.sum() / total) < noise
    assert row["mean"] == pytest.approx(3 + np.average(scores, weights=weights))


@pytest.mark.parametrize(("model", "step"), [("subset", 2), ("subset", 6), ("oue", 3)])
def test_the_error_of_a_weighted_mean(model, step):
    """By a weight per report, and by groups whose people are known."""
    mechanism, reports, scores, weights = weighted_crowd(model, step)
    ours = WeightedTally.count(mechanism, reports, weights).estimate().mean()
    check_error(ours, scores, weights, [slice(None)])
    must_fail(check_error, {**ours, "stderr": 1.1 * ours["stderr"]}, scores, weights, [slice(None)])
    groups = {"a": slice(0, 4_000), "b": slice(4_000, None)}
    estimates = {name: mechanism.tally(reports[x]).estimate() for name, x in groups.items()}
    whole = post_stratify(estimates, {"a": 36_000, "b": 16_000})
    check_error(whole.mean(), scores, weights, [*groups.values()])
    if step == 6:  # little noise: the luck of the draw is what is left out
        must_fail(check_error, whole.mean(about="respondents"), scores, weights, [*groups.values()])


def test_raking_adds_what_the_margins_do_not_explain():
    """The cells of a cross differ along the diagonal: half of what is far from the margins' fit is
    luck. Where the margins explain the cells, nothing is added.
    """
    mechanism = d.design(d.Policy.from_scale(POINTS, step=6))
    cells = [("n", "y"), ("n", "o"), ("s", "y"), ("s", "o")]
    margins = [
        {("n", None): 1, ("s", None): 1},
        {(None, "y"): 1, (None, "o"): 1},
    ]
    for answers, added in (([0, 4, 4, 0], 4 / 4_000), ([0, 4, 0, 4], 0.0)):
        estimates = {
            cell: mechanism.tally(mechanism.perturb_many([x] * 1_000)).estimate()
            for cell, x in zip(cells, answers, strict=True)
        }
        raked = post_stratify(estimates, rake(dict.fromkeys(cells, 1_000), margins)).mean()
        known = post_stratify(estimates, dict.fromkeys(cells, 1_000.0)).mean()
        extra = raked["stderr"] ** 2 - known["stderr"] ** 2
        assert extra == pytest.approx(added, abs=0.1 * 4 / 4_000)


def test_values_of_one_s_own():
    mechanism = d.design(d.Policy.from_scale(POINTS, step=3))
    _, estimate = drawn(mechanism, 500, np.random.default_rng(1))
    usual, twice = estimate.mean(), estimate.mean(values=[2, 4, 6, 8, 10])
    assert twice["mean"] == pytest.approx(2 * usual["mean"])
    assert twice["stderr"] == pytest.approx(2 * usual["stderr"])


def test_cumulative_shares_are_totals():
    _, estimate = drawn(
        d.design(d.Policy.from_scale(POINTS, step=2)), 500, np.random.default_rng(1)
    )
    rows = estimate.totals().rows()
    assert [row["item"] for row in rows] == ["up to rarely", "up to often", "up to always"]
    assert rows[1]["count"] == pytest.approx(estimate.counts[:3].sum())


def test_a_name_that_is_taken_stays_what_it_is():
    policy = d.Policy.from_scale(list("abcd"), step=2, totals={"up to b": ["a"]})
    mechanism = d.design(policy)
    rows = mechanism.tally(mechanism.perturb_many(["a"] * 50)).estimate().totals().rows()
    assert [row["item"] for row in rows] == ["up to b", "up to c"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: d.Policy.from_scale({"a", "b"}),
        lambda: d.Policy.from_scale("abc"),
        lambda: d.Policy.from_scale([]),
        lambda: d.Policy.from_scale(["a"]),
        lambda: d.Policy.from_scale([f"i{k}" for k in range(51)]),
        lambda: d.Policy.from_scale(["a", "b"], step=0),
        lambda: d.Policy.from_scale(["a", "b", "c"], cap=1.5),
        lambda: d.Policy.from_scale(["a", "b"], notion="min"),
        lambda: d.Policy.from_scale(["a", "b"], blocks=True),
        lambda: d.Policy.from_scale(["a", "b"], kind="set", padding=1),
        lambda: d.Policy.from_scale(["a", "b"], estimate="median"),
        lambda: d.Policy.from_levels([("a", 1, ["x"])], open=[[]]),
        lambda: d.Policy.from_levels([("a", None, ["x"])], notion="one-way", open=["a"]),
        lambda: d.Policy.from_levels([("a", 1, ["x"])], notion="one-way", open=["a"]),
        lambda: d.Policy.from_levels([("a", None, ["x"]), ("b", 1, ["y"])], open=["a"]),
        lambda: d.Policy.from_budgets({"a": 1, "b": 2}, blocks="yes"),
    ],
)
def test_what_is_no_policy_gets_a_sentence(call):
    with pytest.raises((PolicyError, DesignError)):
        call()


def test_sentences_about_scales_say_what_to_write():
    with pytest.raises(PolicyError, match="a scale has 2 to 50 items, in their order, got none"):
        d.Policy.from_scale([])
    with pytest.raises(PolicyError, match="one of min, avg, one-way, blocks; .* scale = 1 instead"):
        d.Policy.from_levels([("a", 1, ["x", "y"])], notion="scales")


def test_blocks_of_budgets():
    assert d.Policy.from_budgets({"a": 1, "b": 2}, blocks=True).notion == "blocks"
