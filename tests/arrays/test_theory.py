"""The estimator and its expected error equal the enumeration of every report, for any data."""

from dataclasses import replace
from itertools import product

import exhaustive
import numpy as np
import pytest
from checks import must_fail
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import changed
from strategies import of_kind, policies, with_pairs
from test_fakes import subject

import discreet as d
from discreet.arrays import theory
from discreet.check.exact import D
from discreet.errors import DesignError
from discreet.policy import Policy

KINDS = ("fixed", "bits", "ticket")
CLOSE = 1e-9  # relative: floats computed from integers, with differences taken on the integers
ONE_PART = ("opt0", "opt1", "opt2", "rappor", "oue")


class Enumerated:
    """Chances of every report for every answer, and the scores of a decoder for every report."""

    def __init__(self, mechanism, decoder=None):
        document, decoder = mechanism.to_document(), decoder or mechanism.arrays.decoder
        tables = [exhaustive.distribution(document, x) for x in exhaustive.answers(document)]
        reports = list(dict.fromkeys(y for table in tables for y in table))
        # answers x reports; the last answer is "none" for sets
        self.chance = np.array([[float(table.get(y, 0)) for y in reports] for table in tables])
        of = mechanism.arrays.group_of
        read = [exhaustive.part_and_named(document, y) for y in reports]
        named = np.array([[i in some for i in range(mechanism.m)] for _, some in read])
        part = np.array([o for o, _ in read])
        w, kappa, tau = (getattr(decoder, key)[part][:, of] for key in ("weight", "kappa", "tau"))
        self.scores = w * (named - kappa) + tau  # reports x items
        self.mean = self.chance @ self.scores  # answers x items
        self.square = self.chance @ self.scores**2
        self.variance = self.square - self.mean**2
        self.scale = max(1.0, float(np.abs(self.scores).max()))


def assert_unbiased(found):
    """E[score of item i | answer x] = 1{i = x}, to 1e-12 of the largest score."""
    answers, m = found.mean.shape
    assert found.mean == pytest.approx(np.eye(answers, m), abs=1e-12 * found.scale)


def shares(data, m):
    """Uniform, everybody on one item, or anything else."""
    kind = data.draw(st.sampled_from(["uniform", "one", "any"]))
    if kind == "uniform":
        return np.full(m, 1 / m)
    if kind == "one":
        return np.eye(m)[data.draw(st.integers(0, m - 1))]
    row = data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m).filter(any))
    return np.array(row, dtype=float) / sum(row)


# ---- priors --------------------------------------------------------------------------------------

SIX = [("a", 1, ["x", "y"]), ("b", 2, ["z"]), ("c", 3, ["u", "v", "w"])]
SINGLE, SETS = (Policy.from_levels(SIX, kind=what) for what in ("single", "set"))


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("uniform", [1 / 6] * 6),
        ([0.5, 0.2, 0.3], [0.25, 0.25, 0.2, 0.1, 0.1, 0.1]),
        ([0, 0.1, 0.2, 0.3, 0.4, 0], [0, 0.1, 0.2, 0.3, 0.4, 0]),
        ({"a": 0.4, "c": 0.6}, [0.2, 0.2, 0, 0.2, 0.2, 0.2]),
        ({"x": 0.4, "w": 0.6}, [0.4, 0, 0, 0, 0, 0.6]),
        ({"c": 0.3, "b": 0.2, "a": 0.5}, [0.25, 0.25, 0.2, 0.1, 0.1, 0.1]),
        (dict(zip("wvuzyx", [0.1, 0, 0.2, 0.3, 0, 0.4])), [0.4, 0, 0.3, 0.2, 0, 0.1]),
        ([0.5009, 0.2, 0.3], np.array([0.25045, 0.25045, 0.2, 0.1, 0.1, 0.1]) / 1.0009),
        ([0.4991, 0.2, 0.3], np.array([0.24955, 0.24955, 0.2, 0.1, 0.1, 0.1]) / 0.9991),
    ],
    ids=str,
)
def test_a_prior_is_a_share_per_item(prior, expected):
    """Per level, shared by its items; what is nearly 1 in all is made 1."""
    assert theory.item_shares(SINGLE, prior) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("policy", "prior", "sentence"),
    [
        (SINGLE, "best", 'prior = "best" must be uniform, worst'),
        (SINGLE, ["x"] * 6, "must be uniform, worst, or numbers"),
        (SINGLE, object(), "must be uniform, worst, or numbers"),
        (SINGLE, [0.25] * 4, r"has 4 shares; it needs one per item \(6\) or per level \(3\)"),
        (SINGLE, [[0.5, 0.2, 0.3]], "has 3 shares"),
        (SINGLE, [0.5, 0.6, -0.1], "not negative and not all zero"),
        (SINGLE, [0, 0, 0], "not negative and not all zero"),
        (SINGLE, [np.nan, 0.5, 0.5], "must be finite"),
        (SINGLE, [np.inf, 0.5, 0.5], "must be finite"),
        (SINGLE, [0.5011, 0.2, 0.3], "prior sums to 1.0011; the shares of single"),
        (SINGLE, [0.4989, 0.2, 0.3], "prior sums to 0.9989; the shares of single"),
        (SINGLE, {"a": 0.5, "x": 0.5, "t": 0}, 'prior names "t", which is neither'),
        (SETS, [0.5] * 5 + [1.001], "has a share of 1.001; the largest possible is 1"),
        (SETS, [0, 1.5, 0], "has a share of 1.5; the largest possible is 1"),
    ],
)
def test_what_is_no_prior(policy, prior, sentence):
    with pytest.raises(DesignError, match=sentence):
        theory.item_shares(policy, prior)


@pytest.mark.parametrize(
    ("prior", "padding", "people", "samples"),
    [
        ("uniform", None, [1 / 6] * 6, [1 / 6] * 6),
        ("uniform", 2, [1 / 3] * 6, [1 / 6] * 6),
        ("uniform", 9, [1] * 6, [1 / 9] * 6),
        ([1, 0.5, 0.3, 0, 0, 0], 2, [1, 0.5, 0.3, 0, 0, 0], [0.5, 0.25, 0.15, 0, 0, 0]),
        ([1, 1, 1, 0, 0, 0], 2, [1, 1, 1, 0, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0, 0, 0]),
        ([1, 0, 3], 2, [0.5, 0.5, 0, 1, 1, 1], [0.125, 0.125, 0, 0.25, 0.25, 0.25]),
    ],
)
def test_samples_are_shared_by_the_places_of_a_set(prior, padding, people, samples):
    """Shares of people are of every item by itself; those of samples are 1 in all at most."""
    assert theory.item_shares(SETS, prior, padding) == pytest.approx(people, abs=1e-12)
    assert theory.sample_shares(SETS, prior, padding) == pytest.approx(samples, abs=1e-12)


def test_what_speaks_of_an_item_is_a_sample_a_place_or_everybody():
    """One sampled item, all of a set (hits), every item on its own, or the single answer."""
    people = np.array([1, 0.5, 0.3, 0, 0, 0])
    item = Policy.from_levels(SIX, kind="each")
    for mechanism, expected in (
        (d.design(SETS, "subset", padding=2, encoding="bits"), people / 2),
        (d.design(SETS, "hits", padding=2), people),
        (d.design(item), people),
    ):
        assert theory.reported_shares(mechanism, people) == pytest.approx(expected, abs=1e-12)
    single = theory.reported_shares(d.design(SINGLE), people / 1.8)
    assert single == pytest.approx(people / 1.8, abs=1e-12)


# ---- single answers ------------------------------------------------------------------------------


def compare_single(mechanism, prior):
    """Everything that theory says of single answers."""
    found, policy = Enumerated(mechanism), mechanism.policy
    assert_unbiased(found)
    variance = found.variance  # of item i's score, given x
    expected = prior @ variance
    level_of = np.array(policy.level_of)
    assert theory.item_variance(mechanism, prior) == pytest.approx(expected, rel=CLOSE)
    assert theory.total_mse(mechanism, prior) == pytest.approx(expected.sum(), rel=CLOSE)
    assert mechanism.expected_mse() == pytest.approx(variance.sum(axis=1).mean(), rel=CLOSE)
    totals = variance.sum(axis=1)
    per_level = [totals[level_of == k].mean() for k in range(len(policy.levels))]
    assert theory.costs(mechanism) == pytest.approx(per_level, rel=CLOSE)
    assert totals == pytest.approx(np.array(per_level)[level_of], rel=CLOSE)
    assert theory.mse_range(mechanism) == pytest.approx((totals.min(), totals.max()), rel=CLOSE)
    assert mechanism.worst_case_mse == pytest.approx(totals.max(), rel=CLOSE)
    means = [expected[level_of == k].mean() for k in range(len(policy.levels))]
    assert theory.level_variance(mechanism, prior) == pytest.approx(means, rel=CLOSE)
    compare_decoder(mechanism, found)


def compare_decoder(mechanism, found):
    """own, same and spread: squares of scores, given the answer."""
    decoder, of = mechanism.arrays.decoder, mechanism.arrays.group_of
    m = mechanism.m
    for x, i in product(range(m), repeat=2):
        square = found.square[x, i]
        if x == i:
            expected = decoder.own[of[i]]
        elif of[x] == of[i]:
            expected = decoder.same[of[i]]
        else:
            expected = decoder.chance[:, of[x]] @ decoder.spread[:, of[i]]
        assert square == pytest.approx(expected, rel=CLOSE, abs=CLOSE)
    if len(found.chance) > m:
        nothing = decoder.chance[:, -1] @ decoder.spread
        assert found.square[-1] == pytest.approx(nothing[of], rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize(("kind", "examples"), [("fixed", 40), ("bits", 10), ("ticket", 8)])
def test_figures_of_subset_equal_enumeration(kind, examples):
    @settings(max_examples=examples)
    @given(policy=policies(max_items=5 if kind == "fixed" else 4, max_size=3), data=st.data())
    def run(policy, data):
        compare_single(of_kind(kind, policy), shares(data, policy.m))

    run()


@settings(max_examples=20)
@given(policy=with_pairs(max_items=4), data=st.data())
def test_figures_with_explicit_pairs_equal_enumeration(policy, data):
    compare_single(d.design(policy), shares(data, policy.m))


@pytest.mark.parametrize("kind", ["bits", "ticket"])
@settings(max_examples=16)
@given(policy=policies(max_items=4), data=st.data())
def test_figures_of_the_papers_models_equal_enumeration(kind, policy, data):
    model = data.draw(st.sampled_from(ONE_PART))
    compare_single(of_kind(kind, policy, model), shares(data, policy.m))


@pytest.mark.parametrize("model", ["grr", "ss"])
@settings(max_examples=15)
@given(policy=policies(max_items=5), data=st.data())
def test_figures_of_plain_subsets_equal_enumeration(model, policy, data):
    compare_single(d.design(policy, model), shares(data, policy.m))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", [[0.5, 0.5, 0, 0, 0], [0.01, 0.24, 0.25, 0.25, 0.25], "worst"])
def test_any_prior_is_unbiased(kind, prior, toy):
    """Made for one prior, the estimates are right for all data."""
    mechanism = of_kind(kind, toy, prior=prior)
    for data in (np.full(5, 0.2), np.eye(5)[0], np.eye(5)[4]):
        compare_single(mechanism, data)


def test_the_scores_are_best_at_the_prior(toy):
    """No other shares give a smaller error at the prior that they are for; far ones a larger."""
    mechanism = d.design(toy)
    best = theory.total_mse(mechanism)
    for first in (0.01, 0.19, 0.21, 0.9):
        other = replace(mechanism, shares=(round(first * D), D - round(first * D)))
        assert best < theory.total_mse(other)
        assert_unbiased(Enumerated(other))
    assert best < theory.total_mse(other) * 0.99


def test_the_enumeration_sees_other_probabilities(toy):
    """The twin: a budget 0.1 % larger has another variance, by far more than the tolerance."""
    rows = [("serious", "ln(4.004)", ["HIV"]), ("common", "ln(6)", list(toy.items[1:]))]
    for model in ("subset", "oue", "grr"):
        found = theory.item_variance(d.design(Policy.from_levels(rows), model))
        mine = Enumerated(d.design(toy, model)).variance.mean(axis=0)
        assert found != pytest.approx(mine, rel=1e4 * CLOSE)


def conditional(mechanism):
    """A decoder that divides by the part counts: what a mixture with public shares would do."""
    decoder = mechanism.arrays.decoder
    chance, gap = decoder.chance, np.array([part.by_group.difference for part in mechanism.parts])
    p = chance.mean(axis=1)  # of every part, for people spread evenly over the groups
    speaks = np.abs(gap) > 1e-12
    information = np.where(
        speaks, gap**2 / np.where(speaks, decoder.kappa * (1 - decoder.kappa), 1), 0
    )
    omega = information * p[:, None]
    omega = omega / omega.sum(axis=0)
    weight = np.where(speaks, omega / np.where(speaks, gap, 1), 0) / p[:, None]
    return replace(decoder, weight=weight, tau=np.zeros_like(weight))


@pytest.mark.parametrize("kind", ["bits", "ticket"])
def test_a_decoder_that_conditions_on_part_counts_is_biased(kind):
    """N_o carries information, because the chance of a part depends on the answer."""
    policy = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])])
    mechanism = of_kind(kind, policy)
    assert len(mechanism.parts) > 1
    assert_unbiased(Enumerated(mechanism))
    wrong = Enumerated(mechanism, conditional(mechanism))
    must_fail(assert_unbiased, wrong)
    assert np.abs(wrong.mean - np.eye(4)).max() > 0.01
    one = of_kind(kind, policy, "opt0")  # one part: there is nothing to condition on
    assert_unbiased(Enumerated(one, conditional(one)))


def test_a_decoder_without_totals_is_biased(toy):
    """Subsets of fixed size tell the totals of levels by the part alone."""
    mechanism = d.design(toy)
    decoder = mechanism.arrays.decoder
    must_fail(assert_unbiased, Enumerated(mechanism, replace(decoder, tau=0 * decoder.tau)))


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_that_nobody_holds(kind):
    policy = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])])
    mechanism, prior = of_kind(kind, policy), [0.3, 0, 0.7, 0]
    assert theory.absent_variance(mechanism, prior) == pytest.approx(
        theory.item_variance(mechanism, prior)[[1, 3]], rel=CLOSE
    )


@pytest.mark.parametrize("model", ["subset", "opt0"])
def test_weighted_total(model):
    policy = Policy.from_levels([("a", 1, ["x", "y"], 3), ("b", 2, ["z", "w"], 0.5)])
    mechanism = d.design(policy, model)
    variance = theory.level_variance(mechanism)
    total = 3 * 2 * variance[0] + 0.5 * 2 * variance[1]
    assert theory.total_mse(mechanism, weighted=True) == pytest.approx(total, rel=CLOSE)
    weighted = theory.costs(mechanism, np.array([3, 0.5]))
    assert weighted.mean() == pytest.approx(total, rel=CLOSE)  # half of the people in each level


def test_what_cannot_be_told_is_infinite(toy):
    """A level that is silent everywhere: no estimate, no finite error, and nothing breaks."""
    good = of_kind("bits", toy, "opt0")
    part = changed(
        good.parts[0], own=(good.parts[0].ints.own[0], 0), other=(good.parts[0].ints.other[0], 0)
    )
    mechanism = replace(good, parts=[part], certificate=None)
    assert mechanism.arrays.decoder.estimable.tolist() == [True, False]
    assert np.isinf(theory.item_variance(mechanism)).tolist() == [False] + [True] * 4
    assert mechanism.expected_mse() == mechanism.worst_case_mse == np.inf


# ---- sets ----------------------------------------------------------------------------------------


def set_chances(policy, padding, held):
    """How a person's sample falls: items, then nothing."""
    row = np.zeros(policy.m + 1)
    row[list(held)] = 1 / max(len(held), padding)
    row[-1] = 1 - row.sum()
    return row


@pytest.mark.parametrize(("kind", "model"), [*[(k, "subset") for k in KINDS], ("bits", "opt0")])
@pytest.mark.parametrize("padding", [1, 2, 3])
@settings(max_examples=5)
@given(policy=policies(max_levels=2, max_items=3, kind="set"), data=st.data())
def test_set_error_equals_enumeration(kind, model, padding, policy, data):
    """Bias and variance over people with given sets, empty and too large ones included."""
    mechanism = of_kind(kind, policy, model, padding=padding)
    found = Enumerated(mechanism)
    assert_unbiased(found)
    compare_decoder(mechanism, found)
    every = st.sampled_from(list(exhaustive.subsets(policy.m)))
    people = data.draw(st.lists(every, min_size=1, max_size=5))
    bias, variance = np.zeros(policy.m), np.zeros(policy.m)
    for held in people:
        row = set_chances(policy, padding, held)
        mean = row @ found.mean
        bias += padding * mean - np.isin(range(policy.m), list(held))
        variance += padding**2 * (row @ found.square - mean**2)
    error = theory.set_error(mechanism, [sorted(held) for held in people])
    assert error.bias == pytest.approx(bias, rel=CLOSE, abs=1e-11 * found.scale)
    assert error.variance == pytest.approx(variance, rel=CLOSE)
    assert error.mse == pytest.approx((error.bias**2 + variance).sum(), rel=CLOSE)
    prior = np.array([[i in held for i in range(policy.m)] for held in people]).mean(axis=0)
    if prior.any() and max(map(len, people)) <= padding:  # then the shares say it all
        each = variance / len(people)
        assert theory.item_variance(mechanism, prior) == pytest.approx(each, rel=CLOSE)
        assert theory.total_mse(mechanism, prior) == pytest.approx(each.sum(), rel=CLOSE)
        low, high = theory.mse_range(mechanism)
        assert low * (1 - CLOSE) - CLOSE <= each.sum() <= high * (1 + CLOSE)


def test_bias_is_only_of_sets_larger_than_the_padding():
    policy = Policy.from_levels([("a", 1, list("xyz"))], kind="set")
    mechanism = d.design(policy, padding=2)
    assert theory.set_error(mechanism, [[0], [0, 1], []]).bias.tolist() == [0, 0, 0]
    assert theory.set_error(mechanism, [[0, 1, 2]] * 3).bias == pytest.approx([3 * (2 / 3 - 1)] * 3)


@pytest.mark.parametrize("model", ["subset", "rappor", "oue", "opt0"])
@pytest.mark.parametrize("padding", [1, 2, 3])
def test_the_range_of_sets_holds_all_data(model, padding):
    for eps, sizes in ((0.5, ("x", "yz")), (2, ("x", "yz")), (1, ("x",))):
        rows = [(name, eps * k, list(name)) for k, name in zip((1, 2.5), sizes)]
        policy = Policy.from_levels(rows, kind="set")
        mechanism = d.design(policy, model, padding=padding)
        low, high = theory.mse_range(mechanism)
        assert high == mechanism.worst_case_mse
        choices = [sorted(held) for held in exhaustive.subsets(policy.m) if len(held) <= padding]
        for people in product(choices, repeat=2):
            found = theory.set_error(mechanism, people).variance.sum() / 2
            assert low * (1 - CLOSE) <= found <= high * (1 + CLOSE), people


def test_set_errors_need_set_input(toy):
    with pytest.raises(DesignError, match="takes single answers"):
        theory.set_error(d.design(toy, "opt0"), [[0]])


# ---- sets that are reported whole ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["four-hits", "six-hits", "each"])
def test_figures_of_whole_sets_equal_enumeration(kind):
    """Every set within the padding: one person's scores by the law of their reports."""
    mechanism, laws, tallies = subject(kind)
    scores = {y: tally.estimate().counts for y, tally in tallies.items()}
    nobody = theory.absent_variance(mechanism, np.full(mechanism.m, 1e-12))
    low, high = theory.mse_range(mechanism)
    for held, law in laws.items():
        chances = np.array([float(p) for p in law.values()])
        rows = np.array([scores[y] for y in law])
        mean, here = chances @ rows, np.isin(range(mechanism.m), sorted(held))
        variance = chances @ rows**2 - mean**2
        assert mean == pytest.approx(here.astype(float), abs=1e-7)
        error = theory.set_error(mechanism, [sorted(held)])
        assert not error.bias.any() and error.variance == pytest.approx(variance, rel=1e-6)
        assert nobody[mechanism.arrays.level_of][~here] == pytest.approx(variance[~here], rel=1e-6)
        if held:
            found = theory.item_variance(mechanism, here.astype(float))
            assert found == pytest.approx(variance, rel=1e-6)
        assert low - 1e-6 <= variance.sum() <= high + 1e-6
    if kind == "each":
        assert high == pytest.approx(variance.sum(), rel=1e-6)  # the last: who has everything


@pytest.mark.parametrize("weights", [None, np.array([3.0, 0.5])])
def test_the_worst_set_of_items_asked_one_by_one(weights):
    """Having an item of the first level adds to the error, having one of the second takes away:
    at worst people have all of the first and none of the second.
    """
    rows = [("a", 3, ["x", "y"]), ("b", 3, ["z", "u", "v"])]
    made = d.design(Policy.from_levels(rows, kind="each"))
    own, other = (D // 2, D // 4 * 3), (D // 8, D // 2)
    ints = {"chance": (D, D), "own": own, "other": other}
    part = replace(changed(made.parts[0], **ints), denominators=(D, D), groups=(0, 1))
    mechanism = replace(made, groups=(0, 1), parts=[part], shares=(D // 2, D // 2, 0),
                        certificate=None)  # fmt: skip
    a, b = (np.array(x) / D for x in (own, other))
    with_, without = a * (1 - a) / (a - b) ** 2, b * (1 - b) / (a - b) ** 2
    assert with_[0] > without[0] and with_[1] < without[1]
    many = np.array([2, 3]) * (1 if weights is None else weights)
    found = theory.costs(mechanism, weights)
    assert found == pytest.approx([many @ np.maximum(with_, without)] * 2 + [many @ without])


def test_the_number_of_people_and_their_sizes_say_all_that_sets_do():
    mechanism = d.design(Policy.from_levels(SIX, kind="set"), "subset", padding=2, encoding="bits")
    people = [[], [0], [5], [0, 1], [2, 3], [0, 3, 4], [1, 2, 4, 5]]
    counts = {k: np.zeros(6) for k in (1, 2, 3, 4)}
    for items in filter(None, people):
        counts[len(items)][items] += 1
    found = theory.set_error_by_size(mechanism, counts, len(people))
    whole = theory.set_error(mechanism, people)
    assert found.bias == pytest.approx(whole.bias) and found.variance == pytest.approx(
        whole.variance
    )
    lost = [sum((2 / len(x) - 1) for x in people if i in x and len(x) > 2) for i in range(6)]
    assert whole.bias == pytest.approx(lost)
