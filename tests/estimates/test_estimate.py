"""Estimates: exact on perfect input, unbiased for any data, with the errors of theory and
intervals that
hold what they say.

Simulations are seeded, so nothing fails by chance; the tolerances are those of a test that would
fail once
in a million runs or less (5 standard errors; `z_for`: 1e-7 over all comparisons).
"""

import csv
import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from checks import assert_mean, assert_variance, must_fail, z_for
from policies import three_levels
from scipy.special import ndtr, ndtri
from small import KINDS, blocks, build, expected_tally, ragged, small

import discreet as d
from discreet.arrays import theory
from discreet.arrays.tally import Tally
from discreet.errors import DataError
from discreet.estimates.comparison import Comparison
from discreet.estimates.table import COLUMNS

UNARY = ("opt0", "opt1", "opt2", "rappor", "oue")
SINGLE = [("subset", None), ("opt0", "ticket"), ("grr", None), ("ss", None),
          *((model, None) for model in UNARY)]  # fmt: skip
SETS = [("subset", "bits"), ("oue", "ticket"), *((m, None) for m in UNARY)]
single = pytest.mark.parametrize(("model", "encoding"), SINGLE)


@cache
def mechanism_of(model, encoding=None, padding=None, m=24, eps=(1.0, 1.2, 2.0)):
    """Levels whose items take turns; `small`: the hand-made one with three parts."""
    if model == "small":
        return small(encoding, "parts", padding)
    policy = d.Policy.from_budgets(
        {f"i{k}": eps[k % len(eps)] for k in range(m)}, kind="set" if padding else "single"
    )
    return d.design(policy, model, encoding=encoding, padding=padding)


def counts_like(m, n):
    """A third of the items held by nobody, a third by one in a thousand (at least one person), the
    rest by the others.
    """
    truth = np.zeros(m, np.int64)
    third = m // 3
    truth[third : 2 * third] = max(1, n // 1000)
    rest = n - truth.sum()
    truth[2 * third :] = rest // (m - 2 * third)
    truth[-1] += n - truth.sum()
    return truth


def data_of(kind, m, n):
    """n people: uniform, by Zipf's law (sensitive items first), or everybody on the most sensitive
    item.
    """
    weights = {
        "uniform": np.ones(m), "zipf": 1 / np.arange(1, m + 1), "one": np.eye(m)[0],
    }.get(kind)  # fmt: skip
    if weights is None:
        return counts_like(m, n)
    truth = np.floor(n * weights / weights.sum()).astype(np.int64)
    truth[0] += n - truth.sum()
    return truth


# ---- perfect input -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 1000, 10**11])
@pytest.mark.parametrize(
    ("model", "encoding", "padding"),
    [*((*x, None) for x in SINGLE),
     *((x, "bits", ell) for x in ("subset", "opt0") for ell in (1, 5)),
     *((*x, 2) for x in SETS), *product(["small"], KINDS, (None, 2))],
)  # fmt: skip
def test_expected_counts_in_truth_out(model, encoding, padding, n):
    mechanism = mechanism_of(model, encoding, padding)
    m = mechanism.m
    for truth in (counts_like(m, n) if n > 1 else np.eye(m)[-1], np.eye(m)[0] * n):
        estimate = expected_tally(mechanism, truth, n).estimate()
        np.testing.assert_allclose(estimate.counts, truth, rtol=1e-9, atol=1e-9 * n)
        wrong = truth + 1e-6 * n
        must_fail(np.testing.assert_allclose, estimate.counts, wrong, rtol=1e-9, atol=1e-9 * n)


def conditioned(tally):
    """The tally as if the parts had come as often as expected: a decoder that conditions on their
    numbers.
    """
    d_ = tally.mechanism.arrays.decoder
    expected = tally.n * (d_.chance @ (np.array(tally.mechanism.shares) / 2**32))
    scale = expected / np.maximum(tally.part_n, 1)
    return Tally(tally.mechanism, expected, tally.counts * scale[:, None])


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_that_conditions_on_the_parts_is_biased(kind, padding):
    """The twin of unbiasedness: right for the data that it expects and for no other.

    Parts are likelier for one level than for the other, so their numbers tell something.
    """
    mechanism, n = mechanism_of("small", kind, padding), 10_000
    truth = data_of("one", 7, n)
    tally = expected_tally(mechanism, truth, n)
    np.testing.assert_allclose(tally.estimate().counts, truth, atol=1e-6)
    assert np.abs(conditioned(tally).estimate().counts - truth).max() > n / 20
    repeats = 40  # and with real reports: missed by more than 20 standard errors
    rows = mechanism.perturb_many(
        np.zeros(n * repeats, np.int64) if padding is None else ragged([{0}], n * repeats)
    )
    tallies = [mechanism.tally(block) for block in blocks(rows, n)]
    if padding:
        variance = theory.set_error(mechanism, [[0]] * n).variance
    else:
        variance = n * theory.item_variance(mechanism, truth / n)
    right = np.stack([x.estimate().counts for x in tallies])
    assert_mean(right, truth, variance, z_for(7))  # false alarm 1e-7
    wrong = np.stack([conditioned(x).estimate().counts for x in tallies])
    must_fail(assert_mean, wrong, truth, variance, z_for(7))


def test_estimates_of_fixed_sizes_sum_to_the_number_of_reports():
    """Report by report, whatever is reported; independent bits do not (the twin)."""
    for mechanism in (*(mechanism_of(x) for x in ("subset", "grr", "ss")), small("fixed")):
        for n in (1, 7, 5000):
            people = np.arange(n) % mechanism.m
            estimate = mechanism.tally(mechanism.perturb_many(people)).estimate()
            assert estimate.counts.sum() == pytest.approx(n, rel=1e-9)
    for mechanism in (mechanism_of("opt0"), small("bits"), small("ticket")):
        estimate = mechanism.tally(mechanism.perturb_many(np.zeros(5000, int))).estimate()
        assert abs(estimate.counts.sum() - 5000) > 1e-3


# ---- what nothing is known about -----------------------------------------------------------------


def blind():
    """A part of bits that ignores one level, and a tally of it."""
    mechanism = build("bits", [((1, 1), (0, 0.6), (0, 0.3))])
    unknown = mechanism.arrays.group_of == 0
    tally = mechanism.tally(mechanism.perturb_many(np.arange(400) % 7))
    return tally, unknown


def test_an_item_that_no_part_speaks_of_has_no_estimate():
    tally, unknown = blind()
    assert unknown.any() and not unknown.all()
    estimate = tally.estimate()
    assert (estimate.stderr[unknown] == np.inf).all() and np.isnan(estimate.counts[unknown]).all()
    assert np.isfinite(estimate.stderr[~unknown]).all()
    assert np.isfinite(estimate.counts[~unknown]).all()
    for simultaneous in (False, True):
        low, high = estimate.interval(0.95, simultaneous)
        assert (low[unknown] == -np.inf).all() and (high[unknown] == np.inf).all()
        assert np.isfinite(low[~unknown]).all() and np.isfinite(high[~unknown]).all()
    known = (~unknown).sum()
    top = estimate.top(len(unknown), ranking="raw")
    assert all(np.isfinite(row["count"]) for row in top[:known])
    assert all(row["count"] is None for row in top[known:])
    assert not estimate.can_shrink
    assert not any(row["level"] == "4" for row in estimate.above(0.0))


def test_what_informs_on_nothing_has_no_estimate():
    """Legal, however useless: items are named with the same chance whoever answers; no part tells
    the totals.
    """
    useless = build("bits", [((1, 1), (0.5, 0.5), (0.5, 0.5))])
    for mechanism in (useless, small("fixed", "one"), small("fixed", "one", 2)):
        answers = [0] * 100 if mechanism.padding is None else [{0}] * 100
        estimate = mechanism.tally(mechanism.perturb_many(answers)).estimate()
        assert (estimate.stderr == np.inf).all() and np.isnan(estimate.counts).all()
        assert (estimate.interval()[1] == np.inf).all()


def test_a_part_that_nobody_drew_leaves_estimates_finite():
    """All 50 reports of part 1, which says nothing of level 0: its total is still told by the
    parts.
    """
    mechanism = small("fixed")
    part_n, counts = np.array([0, 50, 0]), np.zeros((3, 7), np.int64)
    counts[1, [1, 2]] = 25
    estimate = Tally(mechanism, part_n, counts).estimate()
    assert np.isfinite(estimate.counts).all() and np.isfinite(estimate.stderr).all()
    assert estimate.counts.sum() == pytest.approx(50)
    low, high = estimate.interval()
    assert (low <= high).all()


def test_nothing_to_estimate_is_one_sentence(toy):
    for model in ("subset", "opt0"):
        with pytest.raises(DataError, match="no reports"):
            d.design(toy, model).tally([]).estimate()


@pytest.mark.parametrize(
    ("model", "encoding", "padding"),
    [
        *((*x, None) for x in SINGLE),
        *((*x, 2) for x in SETS),
        *product(["small"], KINDS, (None, 2)),
    ],
)
def test_one_person(model, encoding, padding):
    mechanism = mechanism_of(model, encoding, padding)
    for held in range(mechanism.m):
        estimate = mechanism.tally([mechanism.perturb({held} if padding else held)]).estimate()
        low, high = estimate.interval()
        assert estimate.n == 1
        assert np.isfinite(estimate.counts).all() and np.isfinite(estimate.stderr).all()
        assert (low <= high).all() and (estimate.stderr >= 0).all()


@pytest.mark.parametrize("model", ["subset", "grr", "ss", *UNARY])
def test_one_item(model):
    """Independent bits: outside 1 - 1e-9 intervals with a chance of about 1e-9."""
    mechanism = d.design(d.Policy.from_levels([("only", 1, ["x"])]), model)
    estimate = mechanism.tally(mechanism.perturb_many([0] * 1000)).estimate()
    if mechanism.encoding.fixed_size:
        assert estimate.counts.tolist() == [1000] and estimate.stderr.tolist() == [0]
    else:
        low, high = estimate.interval(1 - 1e-9)
        assert low[0] <= 1000 <= high[0]


@pytest.mark.parametrize("eps", [9, 12])
def test_intervals_of_a_lone_item_cover_at_large_budgets(eps):
    """A level of one item under subsets of fixed size is told by the parts alone; 95 % intervals
    hold it.
    """
    policy = d.Policy.from_levels([("s", eps, ["x"]), ("c", eps + 0.5, list("vwyz"))])
    for truth in ([1000, 0, 0, 0, 0], [900, 100, 0, 0, 0], [0, 1000, 0, 0, 0]):
        simulation = d.simulate(truth, d.design(policy), repeats=200, seed=1)
        assert covered(simulation)[:, 0].mean() >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / 200)


@single
def test_counts_beyond_32_bits(model, encoding):
    """10^11 people: exact to rounding, errors by theory, tallies add up."""
    mechanism, n = mechanism_of(model, encoding), 10**11
    truth = counts_like(mechanism.m, n)
    expected = expected_tally(mechanism, truth, n)
    tally = Tally(
        mechanism,
        np.rint(expected.part_n).astype(np.int64),
        np.rint(expected.counts).astype(np.int64),
    )
    estimate = (tally + tally).estimate()
    assert estimate.n == 2 * tally.n and tally.counts.max() > 2**32
    np.testing.assert_allclose(estimate.counts, 2 * truth, rtol=1e-9, atol=300)
    np.testing.assert_allclose(
        estimate.stderr**2, 2 * n * theory.item_variance(mechanism, truth / n), rtol=1e-6
    )
    assert (estimate.interval()[1] > estimate.interval()[0]).all()


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 10**6])
@pytest.mark.parametrize(
    ("model", "encoding", "padding"),
    [*((*x, None) for x in SINGLE), *((*x, 2) for x in SETS),
     ("subset", None, 1), ("opt0", None, 3),
     *product(["small"], KINDS, (None, 2))],
)  # fmt: skip
def test_stderr_at_the_truth_is_theorys(model, encoding, padding, n):
    mechanism = mechanism_of(model, encoding, padding)
    truth = counts_like(mechanism.m, n)
    estimate = expected_tally(mechanism, truth, n).estimate()
    np.testing.assert_allclose(
        estimate.stderr**2, n * theory.item_variance(mechanism, truth / n), rtol=1e-8
    )
    np.testing.assert_allclose(
        estimate.stderr**2, estimate.variance_at_zero + estimate.slope * truth, rtol=1e-8
    )
    if padding:  # people with one item each: the data that theory's other form takes
        seen = truth // max(1, n // 100)
        sets = [[i] for i, c in enumerate(seen) for _ in range(c)]
        error = theory.set_error(mechanism, sets)
        again = expected_tally(mechanism, seen, len(sets)).estimate()
        np.testing.assert_allclose(again.stderr**2, error.variance, rtol=1e-8)
        assert not error.bias.any()


@single
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_solve_their_equation(model, encoding, level):
    """|estimate - c| = z sd(c) + half a grain at both ends, and for many people they are estimate
    +- z stderr.
    """
    mechanism, n = mechanism_of(model, encoding), 10**4
    estimate = d.simulate(counts_like(24, n), mechanism, repeats=1, seed=1).estimates[0]
    z = -ndtri((1 - level) / 2)
    for end in estimate.interval(level):
        sd = np.sqrt(estimate.variance(end))
        np.testing.assert_allclose(
            np.abs(estimate.counts - end), z * sd + estimate.step / 2, rtol=1e-9
        )
        np.testing.assert_allclose(np.abs(estimate.counts - end), z * estimate.stderr, rtol=0.2)
    wide = estimate.interval(level, simultaneous=True)
    assert (wide[0] < estimate.interval(level)[0]).all()
    assert (wide[1] > estimate.interval(level)[1]).all()


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan")])
def test_a_level_is_between_0_and_1(level):
    estimate = expected_tally(mechanism_of("opt0"), counts_like(24, 1000), 1000).estimate()
    with pytest.raises(DataError, match=r"between 0 and 1"):
        estimate.interval(level)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part_n", [(1, 0, 0), (0, 1, 0), (5, 1, 0), (1, 1, 1), (0, 0, 4)])
def test_the_grain_is_the_largest_weight_of_the_parts_that_were_used(kind, part_n):
    """One report is enough; where no part that was used speaks of an item, its total's score."""
    mechanism = small(kind)
    decoder, counts = mechanism.arrays.decoder, np.zeros((3, 7), np.int64)
    for o, part in enumerate(mechanism.parts):
        for g, many in enumerate(part.ints.other):
            some = np.flatnonzero(mechanism.arrays.group_of == g)[:many]
            counts[o, some] = part_n[o] if kind == "fixed" else 0
    step = Tally(mechanism, np.array(part_n), counts).estimate().step
    for i, g in enumerate(mechanism.arrays.group_of):
        weights = [abs(decoder.weight[o, g]) for o in range(3) if part_n[o]]
        assert step[i] == pytest.approx(max(weights) or np.abs(decoder.tau[:, g]).max(), rel=1e-12)


Z2 = ndtri(0.975) ** 2


def by_hand(counts, base=100.0, slope=0.0, step=0.0, n=1000):
    """An estimate of items with these numbers."""
    m = len(counts)
    policy = d.Policy.from_levels([("l", 1, [f"i{k}" for k in range(m)])])
    rows = (np.broadcast_to(np.asarray(x, dtype=float), m).copy() for x in (base, slope, step))
    return d.Estimate(d.design(policy), n, np.array(counts, dtype=float), *rows)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("m", [1, 2, 50])
def test_intervals_that_hold_together_solve_their_equation(level, m):
    """Each at level^(1/m); further out by the skewness, (z^2 - 1) / 6 grains."""
    estimate = by_hand(np.linspace(-50, 400, m), 900, 0.5, 8)
    z = -ndtri((1 - level ** (1 / m)) / 2)
    low, high = estimate.interval(level, simultaneous=True)
    for end in (low, high):
        away = np.abs(estimate.counts - end) - (0.5 + (z**2 - 1) / 6) * 8
        np.testing.assert_allclose(away, z * np.sqrt(900 + 0.5 * end), rtol=1e-9)


@pytest.mark.parametrize(
    ("count", "base", "slope", "low", "high"),
    [
        (2, 1, -1, 2, 2),  # a variance of 1 - c: none at 2, and too little below it
        (15, 1, -0.1, 15, 15),  # 1 - c / 10: a little less than none at 15
        (-30, 2, 0.1, -30, -30),  # 2 + c / 10: none at -30, and too little above it
        (-21, 2, 0.1, -21, -21),  # a little less than none
        (0, 0, 0, 0, 0),
        (0, 0.1, 0, -np.sqrt(Z2 / 10), np.sqrt(Z2 / 10)),  # a little is not none
        (0, 0, 1, 0, Z2),  # none at 0, enough above it
    ],
)
def test_an_end_without_variance_is_the_estimate(count, base, slope, low, high):
    """With few people: no count on that side is as near as its standard deviation allows."""
    ends = [end[0] for end in by_hand([count], base, slope).interval()]
    assert ends == pytest.approx([low, high], abs=1e-9)


def test_a_variance_is_never_negative():
    estimate = by_hand([50, -50, 5000], 10, [-1, 1, 0])
    assert estimate.variance(50).tolist() == [0, 60, 10]
    assert estimate.stderr.tolist() == [0, np.sqrt(10), np.sqrt(10)]  # at 50, at 0, and at n


def with_lone_items(padding=None):
    """Items 0 and 2 alone in their levels, and a level of three; the parts tell the totals."""
    parts = [((0.5, 0.3, 0.1), (0, 0.7, 0), (0, 1, 0)), ((0.2, 0.2, 0.5), (0, 0.5, 0), (0, 1, 0)),
             ((0.1, 0.4, 0.2), (0, 0, 0), (0, 0, 0)),
             ((0.2, 0.1, 0.2), (0, 0.8, 0), (0, 2, 0))]  # fmt: skip
    return build("fixed", parts, (0, 1, 2, 1, 1), padding, (0.2, 0.1, 0.3, 0.4))


@pytest.mark.parametrize("padding", [None, 1, 2])
@pytest.mark.parametrize("truth", [(30, 10, 50, 20, 10), (0, 40, 60, 10, 10), (5, 0, 100, 0, 5)])
def test_the_variance_of_a_lone_item_moves_everybody_else(truth, padding):
    """Its count is its group's total: people who do not hold it hold something else, in the
    proportions that the tally shows.
    """
    mechanism, n, truth = with_lone_items(padding), 120, np.array(truth)
    scale = padding or 1  # one of so many places of a set is reported
    if padding is None:
        truth[1] += n - truth.sum()
    estimate = expected_tally(mechanism, truth, n).estimate()
    np.testing.assert_allclose(estimate.counts, truth, atol=1e-9)
    for lone in (0, 2):
        for held in (0, 1, truth[lone], 60, n):
            samples = truth.copy() / scale
            samples[lone] = 0
            samples *= (n - held / scale) / (n - truth[lone] / scale)
            samples[lone] = held / scale
            expected = n * theory.item_variance(mechanism, samples * scale / n)[lone]
            assert estimate.variance(held)[lone] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("padding", [None, 1])
def test_where_everybody_seems_to_hold_a_lone_item_others_are_anybody(padding):
    """Nobody is left to show the proportions: a mean over all levels, and over nothing held."""
    mechanism, n = with_lone_items(padding), 120
    decoder = mechanism.arrays.decoder
    truth = np.array([n, 0, 0, 0, 0])
    for almost in (0, n * 1e-10):
        tally = expected_tally(mechanism, truth - [almost, -almost, 0, 0, 0], n)
        estimate = tally.estimate()
        squares = decoder.tau[:, 0] ** 2  # of what one report adds: a lone item is not drawn
        expected = n * np.mean([squares @ chance for chance in decoder.chance.T])
        assert estimate.variance(0)[0] == pytest.approx(expected, rel=1e-6)
        assert estimate.variance(n)[0] == pytest.approx(
            n * theory.item_variance(mechanism, truth / n)[0], rel=1e-6
        )
    shown = expected_tally(mechanism, truth - [n * 1e-6, -n * 1e-6, 0, 0, 0], n).estimate()
    elsewhere = n * theory.item_variance(mechanism, np.eye(5)[1])[0]
    assert shown.variance(0)[0] == pytest.approx(elsewhere, rel=1e-6)


def test_the_views_that_an_estimate_has():
    assert by_hand([100, 200, 300]).views == ["shrunk", "consistent"]
    assert by_hand([100, 200, 300], [100, np.inf, 100]).views == ["consistent"]


@pytest.mark.parametrize("fdr", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("about", ["population", "respondents"])
@pytest.mark.parametrize("share", [0, 0.05, 0.2])
def test_items_above_a_share_by_benjamini_and_hochberg(share, fdr, about):
    """By the definition: the largest k such that k items have p <= fdr k / m."""
    rng = np.random.default_rng(5)
    base, slope, step = rng.uniform(50, 5000, 40), rng.uniform(0, 2, 40), rng.uniform(0, 60, 40)
    estimate = by_hand(rng.normal(120, 150, 40), base, slope, step)
    luck = 1000 * share * (1 - share) if about == "population" else 0
    sd = np.sqrt(base + slope * share * 1000 + luck)
    p = ndtr((share * 1000 + step / 2 - estimate.counts) / sd)
    many = max((k for k in range(41) if (p <= fdr * k / 40).sum() >= k), default=0)
    expected = [f"i{k}" for k in np.argsort(p)[:many]]
    assert [row["item"] for row in estimate.above(share, fdr, about)] == expected
    assert 0 < many < 40
    assert estimate.above(share) == estimate.above(share, 0.05, "population")


def test_nothing_above():
    """Nor what is not known, however large it looks."""
    assert by_hand([0, 10, -30]).above(0.1) == []
    unknown = by_hand([900, 900], [100, np.inf])
    assert [row["item"] for row in unknown.above(0.1)] == ["i0"]
    exactly = by_hand([500, 501], 0.0)  # without noise: p is 0 / 0 at the limit, 0 above it
    assert [row["item"] for row in exactly.above(0.5, about="respondents")] == ["i1"]


@pytest.mark.parametrize(("share", "fdr"), [(-0.1, 0.05), (1, 0.05), (0.1, 0), (0.1, 1)])
def test_what_is_no_threshold(share, fdr):
    with pytest.raises(DataError, match=f"share = {share} must be in .* and fdr = {fdr} in"):
        by_hand([1, 2]).above(share, fdr)


def test_the_top_by_what_is_likely():
    """A noisy item does not jump to the top; `raw` lets it."""
    few = np.random.default_rng(1).normal(0, 10, 97)  # items that nobody has
    estimate = by_hand([90, 80, 70, *few], [10_000, *[100] * 99])
    shrunk = estimate.shrunk()
    order = np.argsort(-shrunk.counts)
    top = estimate.top(2)
    assert [row["item"] for row in top] == [f"i{k}" for k in order[:2]] == ["i1", "i2"]
    assert [row["shrunk"] for row in top] == shrunk.counts[order[:2]].tolist()
    assert [row["in_top"] for row in top] == shrunk.in_top(2)[order[:2]].tolist()
    assert [row["item"] for row in estimate.top(2, ranking="raw")] == ["i0", "i1"]
    assert "in_top" in estimate.top(99)[0] and "in_top" not in estimate.top(100)[0]
    assert "shrunk" in estimate.top(100)[0] and len(estimate.top(1)) == 1
    with pytest.raises(DataError, match='ranking = "best" must be posterior or raw'):
        estimate.top(2, ranking="best")
    assert estimate.shrunk("all") is shrunk and estimate.shrunk("level") is not shrunk
    for base in (0, np.inf):  # without noise, or without an estimate, by count
        other = by_hand([1, 5, 3], [100, base, 100])
        assert not other.can_shrink and "shrunk" not in other.top(2)[0]
    assert estimate.can_shrink


def test_an_estimate_is_a_table_of_its_items():
    estimate = by_hand([100, 200, 300])
    assert len(estimate) == 3 and [row["item"] for row in estimate] == ["i0", "i1", "i2"]
    assert "i1" in estimate and "x" not in estimate
    assert estimate["i1"] == estimate[1] == estimate.table(0.95).rows()[1]
    assert estimate.table().rows() == estimate.table(0.95).rows() != estimate.table(0.9).rows()
    assert estimate.to_arrow().to_pylist() == estimate.table().rows()
    assert estimate.to_arrow(0.9).to_pylist() == estimate.table(0.9).rows()
    frame = estimate.to_pandas(0.9)
    assert frame["upper"].tolist() == [row["upper"] for row in estimate.table(0.9).rows()]
    assert estimate.to_pandas().to_dict("records") == estimate.table(0.95).rows()
    with pytest.raises(DataError, match='the view "best" is not known; there are'):
        estimate.table(views=["shrunk", "best"])
    one = estimate.table(views="shrunk").rows()
    assert one == estimate.table(views=["shrunk"]).rows() and set(one[0]) > set(estimate["i1"])
    assert "<" in estimate._repr_html_()


def test_two_estimates_are_compared():
    one, two = by_hand([100, 200, 300]), by_hand([90, 260, 300], n=2000)
    for given, all_ in (
        ((), (0.95, ("A", "B"))),
        ((0.9,), (0.9, ("A", "B"))),
        ((0.9, ("men", "women")), (0.9, ("men", "women"))),
    ):
        found, expected = one.compare(two, *given), Comparison.between(one, two, *all_)
        assert found.table().rows() == expected.table().rows() and found.names == all_[1]


def test_consistent_counts_sum_to_the_people_only_if_everyone_gave_one_answer():
    counts = [700, 500, -100]
    single = by_hand(counts)
    assert single.consistent().sum() == pytest.approx(1000) and single.consistent().min() >= 0
    # moved by their variances, 100 to 400: 200 people too many are 40 and 160
    noisy = by_hand(counts, [100, 400, 100])
    assert noisy.consistent() == pytest.approx([660, 340, 0])
    policy = d.Policy.from_levels([("l", 1, ["i0", "i1", "i2"])], kind="set")
    several = replace(single, mechanism=d.design(policy, padding=2))
    assert several.consistent() == pytest.approx([700, 500, 0])


# ---- unbiased, with the expected error, and covered ----------------------------------------------


def covered(simulation, scale=1.0, **options):
    """Which intervals hold the truth, repeats x items; `scale` shrinks them."""
    truth, held = simulation.truth, []
    for estimate in simulation.estimates:
        low, high = estimate.interval(0.95, **options)
        low, high = (estimate.counts + scale * (end - estimate.counts) for end in (low, high))
        held.append((low <= truth) & (truth <= high))
    return np.stack(held)


def assert_coverage(held, exact):
    """At least 95 %, and with many people no more, within five standard errors of a mean over
    repeats.
    """
    repeats = len(held)
    error = 5 * max(held.mean(axis=1).std(ddof=1), np.sqrt(0.95 * 0.05 / held.shape[1]))
    error /= np.sqrt(repeats)
    mean = held.mean()
    assert mean >= 0.95 - error and (not exact or mean <= 0.95 + error), mean
    z = -ndtri(2e-7 / held.shape[1])  # every item by itself
    assert held.mean(axis=0).min() >= 0.95 - z * np.sqrt(0.95 * 0.05 / repeats)


def assert_together(held):
    """All intervals of a repeat hold the truth in 95 % of them, within five standard errors."""
    assert held.all(axis=1).mean() >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / len(held))


COVERED = [("subset", None), ("subset", "ticket"), ("opt0", None), ("opt0", "ticket"),
           ("small", "bits"), ("small", "fixed"), ("small", "ticket"), ("grr", None), ("ss", None),
           ("oue", None)]  # fmt: skip


@pytest.mark.parametrize("n", [100, 1000, 10**5])
@pytest.mark.parametrize(("model", "encoding"), COVERED)
def test_estimates_are_unbiased_with_the_stated_error_and_intervals_cover(model, encoding, n):
    mechanism = mechanism_of(model, encoding)
    m, fixed = mechanism.m, mechanism.encoding.fixed_size
    repeats = (60 if n == 10**5 else 150) if fixed else 400
    for kind in ("third", "uniform", "zipf", "one") if n == 1000 or not fixed else ("third", "one"):
        truth = data_of(kind, m, n)
        simulation = d.simulate(truth, mechanism, repeats=repeats, seed=n)
        variance = n * theory.item_variance(mechanism, truth / n)
        assert_mean(simulation.counts, truth, variance, z_for(m))
        away = (z_for(m) + 5) * np.sqrt(variance / repeats)
        must_fail(assert_mean, simulation.counts + away, truth, variance, z_for(m))
        if n > 100:  # nearly normal
            assert_variance(simulation.counts, variance, z_for(m))
            must_fail(assert_variance, simulation.counts, 4 * variance, z_for(m))
            spread = simulation.mse.var(ddof=1)
            expected = mechanism.expected_mse(truth / n)
            assert_mean(simulation.mse, expected, spread, 7)  # skewed: 7, not 5
            more = expected + 12 * np.sqrt(spread / repeats)
            must_fail(assert_mean, simulation.mse, more, spread, 7)
            # what a tally says of its own error is right too; it is taken at the estimate within
            # [0, n]
            own = np.mean([(e.stderr**2).sum() for e in simulation.estimates]) / n
            assert own == pytest.approx(expected, rel=0.06)
        assert_coverage(covered(simulation), exact=n == 10**5)
        must_fail(assert_coverage, covered(simulation, 0.6), exact=False)
        assert_together(covered(simulation, simultaneous=True))
        if m > 20:  # separate intervals do not hold together
            must_fail(assert_together, covered(simulation))


KINDS_OF_SETS = [set(), {1}, {2, 3}, {3, 4}, {5, 6}, {6}, {0, 1}, {2, 5}]


@pytest.mark.parametrize("n", [120, 4000])
@pytest.mark.parametrize(("model", "encoding"), [("subset", None), *(
    ("small", kind) for kind in KINDS), ("opt0", None), ("oue", "ticket")])  # fmt: skip
def test_intervals_of_sets_cover_what_they_say(model, encoding, n):
    """Of people with at most `padding` items; the estimates are unbiased, with theory's
    variance.
    """
    mechanism = mechanism_of(model, encoding, 2)
    people = KINDS_OF_SETS * (n // 8)
    simulation = d.simulate(people, mechanism, repeats=150, seed=n)
    error = theory.set_error(mechanism, [sorted(x) for x in people])
    assert not error.bias.any()
    z = z_for(mechanism.m)
    assert_mean(simulation.counts, simulation.truth, error.variance, z)
    if n > 1000:
        assert_variance(simulation.counts, error.variance, z)
    assert_coverage(covered(simulation), exact=False)
    must_fail(assert_coverage, covered(simulation, 0.6), exact=False)
    assert_together(covered(simulation, simultaneous=True))


@pytest.mark.parametrize(("model", "encoding"), SETS[:3])
def test_the_bias_of_large_sets_is_theorys(model, encoding):
    """Simulated (seeded), and through real reports: false alarm 2e-7."""
    mechanism, repeats = mechanism_of(model, encoding, 2), 150
    sets = [[0, 5], [1, 2, 3, 23], [5], [], [4, 5, 6], [0, 1, 2, 3, 4, 5, 22, 23]] * 80
    error = theory.set_error(mechanism, sets)
    truth = np.bincount([i for x in sets for i in x], minlength=24)
    assert error.bias.min() < -30
    simulation = d.simulate(sets, mechanism, repeats=repeats, seed=3)
    rows = mechanism.perturb_many(ragged(sets, repeats))
    real = np.stack([mechanism.tally(x).estimate().counts for x in blocks(rows, len(sets))])
    for counts in (simulation.counts, real):
        assert_mean(counts, truth + error.bias, error.variance, z_for(24))
        assert_variance(counts, error.variance, z_for(24))
    must_fail(assert_mean, simulation.counts, truth, error.variance, 5)
    assert "at most 2 items (the" in simulation.estimates[0].truncation_note
    one = mechanism_of("subset", None, 1).tally(mechanism_of("subset", None, 1).perturb_many([{0}]))
    assert "at most 1 item (the" in one.estimate().truncation_note
    assert d.simulate([10] * 24, mechanism_of("opt0"), repeats=1).estimates[0].truncation_note == ""


# ---- tables and pictures -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def estimate():
    return expected_tally(mechanism_of("subset"), counts_like(24, 5000), 5000).estimate()


def test_rows_and_top(estimate):
    rows = estimate.table().rows()
    assert [row["item"] for row in rows] == list(estimate.mechanism.policy.items)
    assert list(rows[0]) == [*COLUMNS]
    assert rows[-1]["level"] == "2" and rows[-1]["share"] == rows[-1]["count"] / 5000
    top = estimate.top(3, ranking="raw")
    assert [row["count"] for row in top] == sorted(estimate.counts)[::-1][:3]
    assert len(estimate.top(1000)) == 24
    with pytest.raises(DataError, match="k = 0 must be at least 1"):
        estimate.top(0)


def same_table(got, expected):
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert list(mine) == list(theirs)
        for key, value in theirs.items():
            if isinstance(value, str):
                assert mine[key] == value
            elif value is None:  # null in Parquet, an empty cell in CSV
                assert mine[key] in (None, "")
            else:
                assert float(mine[key]) == value


@pytest.mark.parametrize("kind", ["known", "blind"])
def test_tables_read_back(tmp_path, estimate, kind):
    if kind == "blind":
        estimate = blind()[0].estimate()
    expected = estimate.table(0.9).rows()
    last = {"n": estimate.n, "confidence": 0.9, "about": "population"}
    written = [{**row, **last} for row in expected]
    estimate.save(tmp_path / "e.csv", 0.9)
    with open(tmp_path / "e.csv", encoding="utf-8", newline="") as file:
        same_table(list(csv.DictReader(file)), written)
    estimate.save(tmp_path / "e.parquet", 0.9)
    same_table(pq.read_table(tmp_path / "e.parquet").to_pylist(), written)
    estimate.save(tmp_path / "e.JSON", 0.9)
    document = json.loads(
        (tmp_path / "e.JSON").read_text(encoding="utf-8"),
        parse_constant=lambda x: pytest.fail(f"{x} is not JSON"),
    )
    assert (document["n"], document["confidence"], document["fingerprint"]) == (
        estimate.n,
        0.9,
        estimate.mechanism.fingerprint,
    )
    assert document["items"] == expected
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(DataError, match=r"\.csv, \.parquet or \.json"):
        estimate.save(tmp_path / "e.xlsx")


@pytest.mark.parametrize("kind", ["known", "blind"])
def test_plots(tmp_path, estimate, kind):
    if kind == "blind":
        estimate = blind()[0].estimate()
    for name, magic in (
        ("e.png", b"\x89PNG\r\n\x1a\n"),
        ("e.svg", b"<?xml"),
        ("E.PNG", b"\x89PNG"),
    ):
        estimate.plot(tmp_path / name, k=24)
        data = (tmp_path / name).read_bytes()
        assert data.startswith(magic) and len(data) > 5000
    with pytest.raises(DataError, match=r"\.png or \.svg"):
        estimate.plot(tmp_path / "e.pdf")
    assert len(list(tmp_path.iterdir())) == 3


def test_many_items():
    """m of thousands and not a multiple of 64: perfect input, real reports."""
    truth = counts_like(2003, 10**6)
    for encoding in (None, "ticket"):
        mechanism = d.design(three_levels(1.0, (50, 50, 1903)), "opt0", encoding=encoding)
        np.testing.assert_allclose(
            expected_tally(mechanism, truth, 10**6).estimate().counts, truth, rtol=1e-9, atol=1e-3
        )
