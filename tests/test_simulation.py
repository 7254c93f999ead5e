"""Simulated tallies are those of real reports in distribution: exactly for small surveys, in all second moments for larger ones."""

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from checks import assert_bernoulli, assert_mean, must_fail, z_for
from exhaustive import sets, single

import discreet as d
from discreet.errors import DataError
from discreet.report import split
from discreet.simulation import draw_set_tally, draw_tally


@cache
def mechanism_of(model, budgets=(1, 2, 2), padding=None):
    policy = d.Policy.from_budgets(
        {f"i{k}": e for k, e in enumerate(budgets)}, input="set" if padding else "single"
    )
    return d.design(policy, model, padding=padding)


# ---- the whole distribution of a tally -----------------------------------------------------------


def as_counts(mechanism, y):
    """A report's own tally, flat: reports per part, then counts per part and item."""
    if mechanism.direct:
        return (1, *(int(k == y) for k in range(mechanism.m)))
    part, bits = y
    k = len(mechanism.parts)
    return (
        *(int(p == part) for p in range(k)),
        *(bit * int(p == part) for p in range(k) for bit in bits),
    )


def exact_tallies(mechanism, tables):
    """Pr(tally) of people with these distributions of reports, in rational arithmetic."""
    total = {None: Fraction(1)}
    for table in tables:
        grown = {}
        for seen, chance in total.items():
            for y, more in table.items():
                mine = as_counts(mechanism, y)
                key = (
                    mine if seen is None else tuple(a + b for a, b in zip(seen, mine, strict=True))
                )
                grown[key] = grown.get(key, 0) + chance * more
        total = grown
    return total


def flat(tally):
    return (*tally.part_n.tolist(), *tally.counts.reshape(-1).tolist())


def real_tallies(mechanism, rows, n):
    """The tallies of surveys of n people each, counted apart from the tally's kernels."""
    if mechanism.direct:
        found = [as_counts(mechanism, y) for y in rows.view("<u4")[:, 0].tolist()]
    else:
        part, body = split(mechanism, rows)
        bits = np.unpackbits(body, axis=1, bitorder="little")[:, : mechanism.m]
        found = [as_counts(mechanism, y) for y in zip(part.tolist(), bits.tolist(), strict=True)]
    each = np.array(found).reshape(-1, n, len(found[0])).sum(axis=1)
    return [tuple(x) for x in each.tolist()]


def check_distribution(seen, exact):
    """Every tally that is likely enough has its frequency; the rare ones together; none is impossible."""
    n, counts = len(seen), Counter(seen)
    assert not set(counts) - set(exact)
    likely = [key for key, p in exact.items() if n * p * (1 - p) > 60]
    rest = float(1 - sum(exact[key] for key in likely))
    z = z_for(len(likely) + 1)
    assert_bernoulli([counts[key] for key in likely], n, [float(exact[key]) for key in likely], z)
    if n * rest * (1 - rest) > 60:
        assert_bernoulli(n - sum(counts[key] for key in likely), n, rest, z)
    assert len(likely) > 2


REPEATS = 6000
SURVEYS = [[0], [2], [1, 2], [0, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("people", SURVEYS, ids=str)
@pytest.mark.parametrize("model", ["mixed", "opt0", "direct", "grr"])
def test_tallies_of_single_answers_have_the_exact_distribution(model, people):
    mechanism = mechanism_of(model)
    of = single(mechanism)
    exact = exact_tallies(mechanism, [of(x) for x in people])
    assert sum(exact.values()) == 1
    rng, truth = np.random.default_rng(4), np.bincount(people, minlength=3)
    simulated = [flat(draw_tally(mechanism, truth, len(people), rng)) for _ in range(REPEATS)]
    check_distribution(simulated, exact)
    check_distribution(
        real_tallies(mechanism, mechanism.perturb_many(np.tile(people, REPEATS)), len(people)),
        exact,
    )
    other = exact_tallies(
        mechanism, [of((x + 1) % 3) for x in people]
    )  # the twin: someone else's answers
    must_fail(check_distribution, simulated, other)


@pytest.mark.parametrize("model", ["mixed", "opt0"])
def test_tallies_of_sets_have_the_exact_distribution(model):
    mechanism = mechanism_of(model, padding=2)
    of, people = sets(mechanism), [{0, 1, 2}, {1}]
    exact = exact_tallies(mechanism, [of(frozenset(x)) for x in people])
    exact = {key: chance for key, chance in exact.items() if chance}
    rng = np.random.default_rng(6)
    items, offsets = np.array([0, 1, 2, 1]), np.array([0, 3, 4])
    simulated = [flat(draw_set_tally(mechanism, items, offsets, rng)) for _ in range(REPEATS)]
    check_distribution(simulated, exact)
    rows = mechanism.perturb_many(
        (np.tile(items, REPEATS), np.concatenate(([0], np.cumsum(np.tile([3, 1], REPEATS)))))
    )
    check_distribution(real_tallies(mechanism, rows, 2), exact)
    other = exact_tallies(mechanism, [of(frozenset({0})), of(frozenset({1}))])
    must_fail(check_distribution, simulated, other)


# ---- second moments ------------------------------------------------------------------------------


def matrix_of(mechanism):
    groups = np.array(mechanism.matrix.groups)[mechanism.level_of]
    P = mechanism.matrix.O[np.ix_(groups, groups)]
    np.fill_diagonal(P, mechanism.matrix.D[groups])
    return P


def check_moments(counts, mean, covariance):
    """Means and all covariances; the error of a covariance is sqrt((C_jj C_kk + C_jk^2) / repeats)."""
    m = len(mean)
    assert_mean(counts, mean, np.diag(covariance), z_for(m))
    centred = counts - mean
    got, v = centred.T @ centred / len(counts), np.diag(covariance)
    score = (got - covariance) / np.sqrt((np.outer(v, v) + covariance**2) / len(counts))
    # products of normals: a little heavier than the normal tail
    assert np.abs(score).max() <= z_for(m * m) + 1.5, np.abs(score).max()


@pytest.mark.parametrize("model", ["direct", "grr"])
def test_counts_of_direct_reports_have_the_exact_covariance(model):
    """C_jk = sum_i c_i (P_ij [j = k] - P_ij P_ik), with groups of 1, 2 and 4 items that are not neighbours."""
    mechanism = mechanism_of(model, (3, 1, 2, 3, 2, 3, 3))
    P, truth, repeats = matrix_of(mechanism), np.array([40, 0, 25, 3, 60, 0, 12]), 2500
    mean = truth @ P
    covariance = np.diag(mean) - (P * truth[:, None]).T @ P
    rng = np.random.default_rng(9)
    simulated = np.stack([draw_tally(mechanism, truth, 140, rng).counts[0] for _ in range(repeats)])
    assert (simulated.sum(axis=1) == 140).all()
    sent = (
        mechanism.perturb_many(np.tile(np.repeat(np.arange(7), truth), repeats))
        .view("<u4")
        .reshape(repeats, 140)
    )
    real = np.stack([np.bincount(row, minlength=7) for row in sent])
    for counts in (simulated, real):
        check_moments(counts, mean, covariance)
        must_fail(check_moments, counts[:, ::-1], mean, covariance)  # the twins: in another order,
        must_fail(check_moments, counts, mean, 1.8 * covariance)  # too wide,
    # as if items were independent: seen in the seeded draws (some 10 standard errors, against the 7.6 allowed)
    must_fail(check_moments, simulated, mean, np.diag(np.diag(covariance)))


@pytest.mark.parametrize("model", ["opt0", "mixed"])
def test_counts_of_unary_reports_have_the_exact_moments(model):
    """Over all parts: items vary together only because people are split over parts of different b."""
    mechanism = mechanism_of(model, (3, 1, 2, 3, 2, 3, 3))
    truth, n, repeats = np.array([40, 0, 25, 3, 60, 0, 12]), 140, 2500
    share = np.array([p.share for p in mechanism.parts])
    a, b = (
        np.stack([getattr(p, key)[mechanism.level_of] for p in mechanism.parts]) for key in "ab"
    )
    # p[x, k, j]: the chance of bit j for someone with item x in part k
    p = np.where(np.eye(7, dtype=bool)[:, None, :], a[None], b[None])
    overall = np.einsum("k,xkj->xj", share, p)
    both = np.einsum("k,xki,xkj->xij", share, p, p)
    both[:, np.arange(7), np.arange(7)] = overall
    mean = truth @ overall
    covariance = np.einsum("x,xij->ij", truth, both - overall[:, :, None] * overall[:, None, :])
    rng = np.random.default_rng(10)
    simulated = np.stack(
        [draw_tally(mechanism, truth, n, rng).counts.sum(axis=0) for _ in range(repeats)]
    )
    rows = mechanism.perturb_many(np.tile(np.repeat(np.arange(7), truth), repeats))
    bits = np.unpackbits(split(mechanism, rows)[1], axis=1, bitorder="little")[:, :7]
    real = bits.reshape(repeats, n, 7).sum(axis=1)
    for counts in (simulated, real):
        check_moments(counts, mean, covariance)
        must_fail(check_moments, counts, mean, 1.8 * covariance)
        must_fail(check_moments, counts[:, ::-1], mean, covariance)


# ---- the interface -------------------------------------------------------------------------------

COUNTS = [500, 300, 200]


@pytest.mark.parametrize("model", ["mixed", "opt0", "direct", "grr"])
def test_a_seed_gives_the_same_numbers(model):
    mechanism = mechanism_of(model)
    first, again, other = (
        d.simulate(COUNTS, mechanism, repeats=3, seed=s).counts for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() and (first[0] != first[1]).any()
    free = [d.simulate(COUNTS, mechanism, repeats=3).counts for _ in range(2)]
    assert (free[0] != free[1]).any()


def test_a_seed_gives_the_same_numbers_for_sets():
    mechanism = mechanism_of("mixed", padding=2)
    data = [{0, 1}, {2}, set(), {0, 1, 2}] * 50
    first, again, other = (d.simulate(data, mechanism, repeats=3, seed=s).counts for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_what_a_simulation_says():
    simulation = d.simulate(iter(COUNTS), mechanism_of("mixed"), n=1000, repeats=4, seed=1)
    assert simulation.n == 1000 and simulation.truth.tolist() == COUNTS
    assert simulation.counts.shape == (4, 3) and len(simulation.estimates) == 4
    np.testing.assert_allclose(
        simulation.mse, ((simulation.counts - COUNTS) ** 2).sum(axis=1) / 1000
    )
    as_floats = d.simulate(np.array(COUNTS, dtype=float), mechanism_of("mixed"), repeats=4, seed=1)
    np.testing.assert_array_equal(as_floats.counts, simulation.counts)
    both = d.simulate([{0, 1}, ["i1"], set()], mechanism_of("opt0", padding=2), repeats=2, seed=1)
    assert both.n == 3 and both.truth.tolist() == [1, 2, 0]


@pytest.mark.parametrize("model", ["mixed", "direct"])
def test_one_person_and_many(model):
    mechanism = mechanism_of(model)
    assert d.simulate([0, 0, 1], mechanism, repeats=2, seed=1).n == 1
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
        (["1", "2", "3"], {}, "whole numbers"),
        ("123", {}, "whole numbers"),
        (None, {}, "whole numbers"),
        (3, {}, "whole numbers"),
        ([0, 0, 0], {}, "no reports"),
        (COUNTS, {"n": 999}, "n = 999, but the data are of 1000 people"),
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
        d.simulate(data, mechanism_of("mixed"), **options)
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
        d.simulate(data, mechanism_of("mixed", padding=2))


def test_n_of_sets_must_be_their_number():
    with pytest.raises(DataError, match="n = 77"):
        d.simulate([{0}, {1}], mechanism_of("mixed", padding=2), n=77)


def test_more_people_than_an_int64_holds_are_one_sentence():
    with pytest.raises(DataError):
        d.simulate([2**62] * 3, mechanism_of("mixed"), repeats=1)
