"""Simulated tallies are those of real reports in distribution: exactly for small surveys, in mean
and variance
for larger ones, in every model and encoding.

Simulations are seeded. Where real reports are compared, the chance of a false alarm is stated per
test.
"""

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from checks import assert_mean, assert_variance, must_fail, z_for
from exhaustive import distribution, part_and_named, sets
from small import KINDS, assert_distribution, blocks, missed, named_in, ragged, small

import discreet as d
from discreet.arrays import theory
from discreet.designs import MODELS
from discreet.errors import DataError
from discreet.estimates.simulation import draw_set_tally, draw_tally


@cache
def mechanism_of(model, budgets=(1, 2, 2), padding=None, encoding=None):
    policy = d.Policy.from_budgets(
        {f"i{k}": e for k, e in enumerate(budgets)},
        kind={None: "single", 0: "each"}.get(padding, "set"),
    )
    return d.design(policy, model, padding=padding or None, encoding=encoding)


# ---- the whole distribution of a tally -----------------------------------------------------------


def as_counts(document, report, items):
    """A report's own tally, flat: reports per part, then counts per part of some items."""
    part, named = part_and_named(document, report)
    k = len(document["parts"])
    mine = (int(o == part and i in named) for o in range(k) for i in items)
    return (*(int(o == part) for o in range(k)), *mine)


def exact_tallies(document, tables, items):
    """Pr(tally of some items) of people with these distributions of reports, in rational
    arithmetic.
    """
    total = {None: Fraction(1)}
    for table in tables:
        own = Counter()
        for report, chance in table.items():
            own[as_counts(document, report, items)] += chance
        grown = {}
        for seen, chance in total.items():
            for mine, more in own.items():
                key = mine
                if seen is not None:
                    key = tuple(a + b for a, b in zip(seen, mine, strict=True))
                grown[key] = grown.get(key, 0) + chance * more
        total = grown
    return {key: chance for key, chance in total.items() if chance}


def flat(tally, items):
    return (*tally.part_n.tolist(), *tally.counts[:, items].reshape(-1).tolist())


def real_tallies(document, rows, n, items):
    """The tallies of surveys of n people each, counted apart from the package's own code."""
    part, named = named_in(document, rows)
    k = len(document["parts"])
    which = part[:, None] == np.arange(k)
    each = which[:, :, None] & (named[:, None, items] > 0)
    flat_ = np.concatenate((which, each.reshape(len(rows), -1)), axis=1).astype(int)
    return [tuple(x) for x in flat_.reshape(-1, n, flat_.shape[1]).sum(axis=1).tolist()]


REPEATS = 4000
SURVEYS = [[0], [5], [1, 6], [0, 3, 3]]


def items_of(kind):
    """Bits and subsets: three items together. Tickets: one, for only single counts are drawn
    exactly.
    """
    return [[0, 1, 3]] if kind != "ticket" else [[0], [1], [3]]


@pytest.mark.parametrize("people", SURVEYS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_tallies_of_single_answers_have_the_exact_distribution(kind, people):
    """Simulated (seeded) and real: at most 3 chi-squares of real reports, false alarm 3e-7."""
    mechanism = small(kind)
    document, n = mechanism.to_document(), len(people)
    tables = {x: distribution(document, x) for x in range(7)}
    rng, truth = np.random.default_rng(4), np.bincount(people, minlength=7)
    drawn = [draw_tally(mechanism, truth, n, rng) for _ in range(REPEATS)]
    rows = mechanism.perturb_many(np.tile(people, REPEATS))
    for items in items_of(kind):
        exact = exact_tallies(document, [tables[x] for x in people], items)
        simulated = Counter(flat(tally, items) for tally in drawn)
        assert_distribution(simulated, exact)
        assert_distribution(Counter(real_tallies(document, rows, n, items)), exact)
        # the twin: everybody of the other level than the first
        wrong_format = tables[1 if people[0] in (0, 3, 6) else 0]
        other = exact_tallies(document, [wrong_format] * n, items)
        assert missed(REPEATS, other, exact) < 1e-6
        must_fail(assert_distribution, simulated, other)


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_of_sets_have_the_exact_distribution(kind):
    """Simulated (seeded) and real, false alarm 3e-7."""
    mechanism, people = small(kind, "parts", 2), [{0, 1, 3}, {1}]
    document = mechanism.to_document()
    of = sets(document)
    rng, (items, offsets) = np.random.default_rng(6), ragged(people)
    drawn = [draw_set_tally(mechanism, items, offsets, rng) for _ in range(REPEATS)]
    rows = mechanism.perturb_many(ragged(people, REPEATS))
    for some in items_of(kind):
        exact = exact_tallies(document, [of(frozenset(x)) for x in people], some)
        simulated = Counter(flat(tally, some) for tally in drawn)
        assert_distribution(simulated, exact)
        assert_distribution(Counter(real_tallies(document, rows, 2, some)), exact)
        other = exact_tallies(document, [of(frozenset({0})), of(frozenset({3, 6}))], some)
        assert missed(REPEATS, other, exact) < 1e-6
        must_fail(assert_distribution, simulated, other)


# ---- mean and variance, every model and encoding -------------------------------------------------

SINGLE = [model for model in MODELS if model not in ("hits", "each")]  # the last two: never sets
BUDGETS = tuple((1.0, 2.0, 1.2, 2.0, 2.0)[k % 5] for k in range(11))
EVERY = [
    *((model, None, None) for model in SINGLE), *((model, None, 2) for model in SINGLE[:-2]),
    ("hits", None, 1), ("hits", None, 2), ("hits", None, 5), ("each", None, 0),
    ("opt0", "ticket", None), ("oue", "ticket", 2), *(("small", kind, None) for kind in KINDS),
    *(("small", kind, 2) for kind in KINDS),
]  # fmt: skip


@pytest.mark.parametrize(("model", "encoding", "padding"), EVERY)
def test_simulated_and_real_estimates_have_the_mean_and_variance_of_theory(
    model, encoding, padding
):
    """Four comparisons of real reports with 1e-7 each: false alarm 4e-7."""
    if model == "small":
        mechanism = small(encoding, "parts", padding)
    else:
        mechanism = mechanism_of(model, BUDGETS, padding, encoding)
    m, n, repeats = mechanism.m, 600, 250
    if padding is not None:
        people = [set(), {0, 1, m - 1}, {0}, {1, 3}, {m - 1}, {0, m - 1}] * (n // 6)
        truth = np.array([sum(k in x for x in people) for k in range(m)])
        error = theory.set_error(mechanism, [sorted(x) for x in people])
        mean, variance, data = truth + error.bias, error.variance, people
        rows = mechanism.perturb_many(ragged(people, repeats))
    else:
        people = np.array([k % 4 for k in range(n // 2)] + [m - 1] * (n // 2))
        data = mean = np.bincount(people, minlength=m)
        variance = n * theory.item_variance(mechanism, mean / n)
        rows = mechanism.perturb_many(np.tile(people, repeats))
    simulated = d.simulate(data, mechanism, repeats=repeats, seed=5).counts
    real = np.stack([mechanism.tally(x).estimate().counts for x in blocks(rows, n)])
    z = z_for(m)
    for values in (real, simulated):
        assert_mean(values, mean, variance, z)
        assert_variance(values, variance, z)
        total = ((values - mean) ** 2).sum(axis=1)
        # skewed, and its spread is measured: 7, not 5
        assert_mean(total, variance.sum(), total.var(ddof=1), 7)
    both = real.var(axis=0, ddof=1) + simulated.var(axis=0, ddof=1)
    assert_mean(real - simulated, 0, both, z + 0.5)  # its spread is measured
    # the twins: a shift, and a spread, that so many repeats see
    away = (z + 5.5) * np.sqrt(variance / repeats)
    must_fail(assert_mean, real + away, mean, variance, z)
    must_fail(assert_mean, real + 2 * away - simulated, 0, both, z + 0.5)
    must_fail(assert_variance, real, variance / (1 + 16 * np.sqrt(2 / repeats)), z)


# ---- the interface -------------------------------------------------------------------------------

COUNTS = [500, 300, 200]


@pytest.mark.parametrize("model", SINGLE)
def test_a_seed_gives_the_same_numbers(model):
    mechanism = mechanism_of(model)
    first, again, other = (
        d.simulate(COUNTS, mechanism, repeats=3, seed=s).counts for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() and (first[0] != first[1]).any()
    free = [d.simulate(COUNTS, mechanism, repeats=3).counts for _ in range(2)]
    assert (free[0] != free[1]).any()


@pytest.mark.parametrize(("model", "padding"), [("subset", 2), ("hits", 2), ("each", 0)])
def test_a_seed_gives_the_same_numbers_for_sets(model, padding):
    mechanism = mechanism_of(model, padding=padding)
    data = [{0, 1}, {2}, set(), {0, 1, 2}] * 50
    first, again, other = (d.simulate(data, mechanism, repeats=3, seed=s).counts for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_what_a_simulation_says():
    simulation = d.simulate(iter(COUNTS), mechanism_of("subset"), n=1000, repeats=4, seed=1)
    assert simulation.n == 1000 and simulation.truth.tolist() == COUNTS
    assert simulation.counts.shape == (4, 3) and len(simulation.estimates) == 4
    np.testing.assert_allclose(
        simulation.mse, ((simulation.counts - COUNTS) ** 2).sum(axis=1) / 1000
    )
    as_floats = d.simulate(np.array(COUNTS, dtype=float), mechanism_of("subset"), repeats=4, seed=1)
    np.testing.assert_array_equal(as_floats.counts, simulation.counts)
    both = d.simulate([{0, 1}, ["i1"], set()], mechanism_of("opt0", padding=2), repeats=2, seed=1)
    assert both.n == 3 and both.truth.tolist() == [1, 2, 0]


@pytest.mark.parametrize("model", SINGLE)
def test_one_person(model):
    assert d.simulate([0, 0, 1], mechanism_of(model), repeats=2, seed=1).n == 1


@pytest.mark.parametrize(("model", "encoding"), [("opt0", None), ("opt0", "ticket")])
def test_many_people(model, encoding):
    """Subsets of fixed size are drawn report by report, so they are not tried here."""
    mechanism = mechanism_of(model, encoding=encoding)
    many = d.simulate([10**11, 0, 10**10], mechanism, repeats=2, seed=1)
    assert many.n == 11 * 10**10
    assert np.abs(many.counts - many.truth).max() < 10 * max(e.stderr.max() for e in many.estimates)


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        ([1, 2], {}, "true counts are 3 whole numbers"),
        ([1, 2, 3, 4], {}, "true counts are 3 whole numbers"),
        ([[1, 2, 3]], {}, "true counts are 3 whole numbers"),
        ([1, -2, 3], {}, "not negative"),
        ([1, 2.5, 3], {}, "whole numbers"),
        ([1, float("nan"), 3], {}, "whole numbers"),
        ([True, False, True], {}, "whole numbers"),
        (["1", "2", "3"], {}, '"1" is not an item'),
        ("123", {}, "sequence of items"),
        (None, {}, "whole numbers"),
        (3, {}, "whole numbers"),
        ([0, 0, 0], {}, "no reports"),
        (COUNTS, {"n": 999}, "n = 999, but the data have 1000 people"),
        pytest.param([[1, 2], [3]], {}, "whole numbers"),
        pytest.param([1, float("inf"), 3], {}, "whole numbers"),
        pytest.param([1, 1e30, 3], {}, "whole numbers"),
        pytest.param(COUNTS, {"repeats": 0}, "repeats = 0"),
        pytest.param(COUNTS, {"repeats": -1}, "repeats = -1"),
        pytest.param(COUNTS, {"seed": -1}, "seed = -1"),
    ],
    ids=str,
)
def test_bad_input_is_one_sentence(data, options, match):
    with pytest.raises(DataError, match=match) as caught:
        d.simulate(data, mechanism_of("subset"), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ([1, 2, 3], "set of items"),
        ([{0, 3}], "item index 3 is out of range"),
        ([{"i9"}], '"i9" is not an item'),
        ([{True}], "label"),
        (None, "sequence of sets"),
        ([], "no reports"),
    ],
    ids=str,
)
def test_bad_sets_are_one_sentence(data, match):
    with pytest.raises(DataError, match=match):
        d.simulate(data, mechanism_of("subset", padding=2))


def test_n_of_sets_must_be_their_number():
    with pytest.raises(DataError, match="n = 77"):
        d.simulate([{0}, {1}], mechanism_of("subset", padding=2), n=77)


def test_more_people_than_an_int64_holds_are_one_sentence():
    with pytest.raises(DataError):
        d.simulate([2**62] * 3, mechanism_of("subset"), repeats=1)
