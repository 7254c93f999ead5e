"""Estimates: exact on perfect input, unbiased, with the errors of theory and intervals that hold what they say."""

import csv
import json
from functools import cache
from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from checks import assert_mean, assert_variance, must_fail, z_for
from conftest import three_levels
from scipy.special import ndtri

import discreet as d
from discreet import theory
from discreet.errors import DataError
from discreet.exact import D
from discreet.mechanism import Matrix, Mechanism
from discreet.tally import Tally

UNARY = ("mixed", "opt0", "opt1", "opt2", "rappor", "oue")
ALL = (*UNARY, "direct", "grr")
DIRECT = ("direct", "grr")  # single answers only, and no encoding


@cache
def mechanism_of(model, encoding=None, padding=None, m=24, eps=(1.0, 1.2, 2.0)):
    """Levels whose items take turns."""
    policy = d.Policy.from_budgets(
        {f"i{k}": eps[k % len(eps)] for k in range(m)}, input="set" if padding else "single"
    )
    return d.design(policy, model, encoding=encoding, padding=padding)


def expected_tally(mechanism, truth, n, part_n=None):
    """The counts that people of whom truth[i] are counted at item i (sets of at most `padding` items) give on average."""
    truth, level_of = np.asarray(truth, dtype=float), mechanism.level_of
    if mechanism.direct:
        groups = np.array(mechanism.matrix.groups)[level_of]
        P = mechanism.matrix.O[np.ix_(groups, groups)]
        np.fill_diagonal(P, mechanism.matrix.D[groups])
        return Tally(mechanism, np.array([n]), (truth @ P)[None, :])
    part_n = (
        n * np.array([p.share for p in mechanism.parts])
        if part_n is None
        else np.asarray(part_n, dtype=float)
    )
    ell = mechanism.padding or 1
    counts = [
        k * (p.b[level_of] + p.difference[level_of] * truth / n / ell)
        for k, p in zip(part_n, mechanism.parts, strict=True)
    ]
    return Tally(mechanism, part_n, np.stack(counts))


def counts_like(m, n):
    """A third of the items held by nobody, a third by one in a thousand (at least one person), the rest by the others."""
    truth = np.zeros(m, np.int64)
    third = m // 3
    truth[third : 2 * third] = max(1, n // 1000)
    rest = n - truth.sum()
    truth[2 * third :] = rest // (m - 2 * third)
    truth[-1] += n - truth.sum()
    return truth


# ---- perfect input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 1000, 10**11])
@pytest.mark.parametrize(
    ("model", "encoding", "padding"),
    [*product(UNARY, ("bits", "compact"), (None, 1, 2, 5)), *product(DIRECT, (None,), (None,))],
)
def test_expected_counts_in_truth_out(model, encoding, padding, n):
    mechanism = mechanism_of(model, encoding, padding)
    truth = counts_like(mechanism.m, n) if n > 1 else np.eye(mechanism.m)[-1]
    estimate = expected_tally(mechanism, truth, n).estimate()
    np.testing.assert_allclose(estimate.counts, truth, rtol=1e-9, atol=1e-9 * n)
    must_fail(
        np.testing.assert_allclose, estimate.counts, truth + 1e-6 * n, rtol=1e-9, atol=1e-9 * n
    )


@pytest.mark.parametrize("padding", [None, 2])
def test_any_split_over_the_parts_gives_the_truth(padding):
    """Unbiased given any number of people per part that informs on the item."""
    mechanism = mechanism_of("mixed", None, padding)
    assert len(mechanism.parts) > 1
    truth = counts_like(mechanism.m, 10_000)
    informed = np.stack([p.difference > 0 for p in mechanism.parts])
    for split in ([5000, 5000], [9999, 1], [1, 9999], [10_000, 0], [0, 10_000]):
        part_n = np.array(split + [0] * (len(mechanism.parts) - 2))
        estimate = expected_tally(mechanism, truth, 10_000, part_n).estimate()
        known = informed[part_n > 0].any(axis=0)[mechanism.level_of]
        np.testing.assert_allclose(estimate.counts[known], truth[known], rtol=1e-9, atol=1e-5)
        assert np.isfinite(estimate.stderr[known]).all()


# ---- what nothing is known about ------------------------------------------------------------------------


def blind():
    """A mixed mechanism and a tally of only the part that ignores the sensitive level."""
    mechanism = d.design(three_levels(1.0, (3, 1, 7)), "mixed")
    part = next(k for k, p in enumerate(mechanism.parts) if (p.difference == 0).any())
    unknown = (mechanism.parts[part].difference == 0)[mechanism.level_of]
    part_n = np.zeros(len(mechanism.parts), np.int64)
    part_n[part] = 400
    counts = np.zeros((len(part_n), mechanism.m), np.int64)
    counts[part] = 150
    return Tally(mechanism, part_n, counts), unknown


def test_an_item_nobody_informed_on_has_no_estimate():
    tally, unknown = blind()
    assert unknown.any() and not unknown.all()
    estimate = tally.estimate()
    assert (estimate.stderr[unknown] == np.inf).all()
    assert (
        np.isfinite(estimate.stderr[~unknown]).all()
        and np.isfinite(estimate.counts[~unknown]).all()
    )
    for simultaneous in (False, True):
        low, high = estimate.interval(0.95, simultaneous)
        assert (low[unknown] == -np.inf).all() and (high[unknown] == np.inf).all()
        assert np.isfinite(low[~unknown]).all() and np.isfinite(high[~unknown]).all()
    known = (~unknown).sum()
    top = estimate.top(len(unknown), ranking="raw")
    assert all(np.isfinite(row["count"]) for row in top[:known])
    assert not any(np.isfinite(row["count"]) for row in top[known:])


def test_a_direct_matrix_that_informs_nothing_has_no_estimate():
    """Legal, however useless: every item is sent with the same probability whatever is held."""
    policy = d.Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])])
    mechanism = Mechanism(policy, "direct", "item", (), Matrix((0, 0), (D // 4,), ((D // 4,),)))
    estimate = mechanism.tally(mechanism.perturb_many([0] * 100)).estimate()
    assert (estimate.stderr == np.inf).all()
    assert (estimate.interval()[1] == np.inf).all()


def test_nothing_to_estimate_is_one_sentence(toy):
    for model in ("mixed", "direct"):
        with pytest.raises(DataError, match="no reports"):
            d.design(toy, model).tally([]).estimate()


@pytest.mark.parametrize(
    ("model", "padding"), [*product(UNARY, (None, 2)), *product(DIRECT, (None,))]
)
def test_one_person(model, padding):
    mechanism = mechanism_of(model, None, padding)
    estimate = mechanism.tally([mechanism.perturb({0} if padding else 0)]).estimate()
    low, high = estimate.interval()
    assert estimate.n == 1
    known = np.isfinite(estimate.counts)
    assert (known == np.isfinite(estimate.stderr)).all()
    assert (low <= high).all() and (estimate.stderr[known] > 0).all()


@pytest.mark.parametrize("model", ALL)
def test_one_item(model):
    mechanism = d.design(d.Policy.from_levels([("only", 1, ["x"])]), model)
    estimate = mechanism.tally(mechanism.perturb_many([0] * 1000)).estimate()
    low, high = estimate.interval(1 - 1e-9)
    assert low[0] <= 1000 <= high[0]
    if mechanism.direct:
        assert estimate.counts.tolist() == [1000] and estimate.stderr.tolist() == [0]


@pytest.mark.parametrize("model", ALL)
def test_counts_beyond_32_bits(model):
    """10^11 people: exact to rounding, errors by theory, tallies add up."""
    mechanism, n = mechanism_of(model), 10**11
    truth = counts_like(mechanism.m, n)
    expected = expected_tally(mechanism, truth, n)
    tally = Tally(
        mechanism,
        np.rint(expected.part_n).astype(np.int64),
        np.rint(expected.counts).astype(np.int64),
    )
    estimate = (tally + tally).estimate()
    assert estimate.n == 2 * tally.n and tally.counts.max() > 2**32
    np.testing.assert_allclose(estimate.counts, 2 * truth, rtol=1e-9, atol=200)
    np.testing.assert_allclose(
        estimate.stderr**2, 2 * n * theory.item_variance(mechanism, truth / n), rtol=1e-6
    )
    assert (estimate.interval()[1] > estimate.interval()[0]).all()


# ---- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 10**6])
@pytest.mark.parametrize(
    ("model", "padding"), [*product(UNARY, (None, 1, 3)), *product(DIRECT, (None,))]
)
def test_stderr_at_the_truth_is_theorys(model, padding, n):
    mechanism = mechanism_of(model, None, padding)
    truth = counts_like(mechanism.m, n)
    estimate = expected_tally(mechanism, truth, n).estimate()
    np.testing.assert_allclose(
        estimate.stderr**2, n * theory.item_variance(mechanism, truth / n), rtol=1e-9
    )
    if padding:  # people with one item each: the data that theory's other form takes
        seen = truth // max(1, n // 100)
        sets = [[i] for i, c in enumerate(seen) for _ in range(c)]
        error = theory.set_error(mechanism, sets)
        again = expected_tally(mechanism, seen, len(sets)).estimate()
        np.testing.assert_allclose(again.stderr**2, error.variance, rtol=1e-9)
        assert not error.bias.any()


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_solve_their_equation(model, level):
    """|estimate - c| = z sd(c) + half a grain at both ends, and for many people they are estimate +- z stderr."""
    mechanism, n = mechanism_of(model), 10**4
    estimate = mechanism.tally(
        mechanism.perturb_many(np.repeat(np.arange(24), counts_like(24, n)))
    ).estimate()
    z = -ndtri((1 - level) / 2)
    for end in estimate.interval(level):
        sd = np.sqrt(estimate._variance(end))
        np.testing.assert_allclose(
            np.abs(estimate.counts - end), z * sd + estimate.step / 2, rtol=1e-9
        )
        np.testing.assert_allclose(np.abs(estimate.counts - end), z * estimate.stderr, rtol=0.2)
    wide = estimate.interval(level, simultaneous=True)
    assert (wide[0] < estimate.interval(level)[0]).all() and (
        wide[1] > estimate.interval(level)[1]
    ).all()


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan")])
def test_a_level_is_between_0_and_1(level):
    estimate = expected_tally(mechanism_of("opt0"), counts_like(24, 1000), 1000).estimate()
    with pytest.raises(DataError, match=r"between 0 and 1"):
        estimate.interval(level)


# ---- coverage -------------------------------------------------------------------------------------------

REPEATS = 500  # x 24 items: five standard errors are 0.01


def covered(simulation, scale=1.0, **options):
    """Which intervals hold the truth, repeats x items; `scale` shrinks them."""
    truth, held = simulation.truth, []
    for estimate in simulation.estimates:
        low, high = estimate.interval(0.95, **options)
        low, high = (estimate.counts + scale * (end - estimate.counts) for end in (low, high))
        held.append((low <= truth) & (truth <= high))
    return np.stack(held)


def assert_coverage(held, exact):
    """At least 95 %, and with many people no more, within five standard errors of a mean over repeats and items."""
    error = 5 * np.sqrt(0.95 * 0.05 / held.size)
    assert error < 0.0101
    mean = held.mean()
    assert mean >= 0.95 - error and (not exact or mean <= 0.95 + error), mean
    third = held.shape[1] // 3  # nobody, rare and frequent: each group too
    error *= np.sqrt(3)
    for group in (held[:, :third], held[:, third : 2 * third], held[:, 2 * third :]):
        assert group.mean() >= 0.95 - error, group.mean()


@pytest.mark.parametrize("n", [100, 1000, 10**4, 10**6])
@pytest.mark.parametrize("model", ALL)
def test_intervals_cover_what_they_say(model, n):
    simulation = d.simulate(counts_like(24, n), mechanism_of(model), repeats=REPEATS, seed=n)
    assert_coverage(covered(simulation), exact=n >= 10**4)
    if n >= 1000:
        must_fail(assert_coverage, covered(simulation, 0.9), exact=False)


@pytest.mark.parametrize("n", [120, 3000])
@pytest.mark.parametrize("model", ["mixed", "opt0", "oue"])
def test_intervals_of_sets_cover_what_they_say(model, n):
    """Of people with at most `padding` items."""
    mechanism = mechanism_of(model, None, 2)
    kinds = [
        set(),
        {8},
        {16, 17},
        {18, 19},
        {20, 21},
        {22},
        {16, 23},
        {9, 16},
        {10, 11},
        {12, 17},
        {13, 18},
        {14, 15},
    ]
    simulation = d.simulate(kinds * (n // 12), mechanism, repeats=REPEATS, seed=n)
    assert_coverage(covered(simulation), exact=False)
    must_fail(assert_coverage, covered(simulation, 0.85), exact=False)


@pytest.mark.parametrize("n", [1000, 10**5])
@pytest.mark.parametrize("model", ALL)
def test_simultaneous_intervals_hold_together(model, n):
    simulation = d.simulate(counts_like(24, n), mechanism_of(model), repeats=500, seed=n + 1)
    error = 5 * np.sqrt(0.95 * 0.05 / 500)
    assert covered(simulation, simultaneous=True).all(axis=1).mean() >= 0.95 - error
    assert covered(simulation, 0.8, simultaneous=True).all(axis=1).mean() < 0.95 - error
    assert (
        covered(simulation).all(axis=1).mean() < 0.95 - error
    )  # separate intervals do not hold together


# ---- unbiased, with the expected error ------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL)
def test_estimates_of_real_reports_are_unbiased_with_the_expected_error(model):
    mechanism, n, repeats = mechanism_of(model), 500, 200
    truth = counts_like(24, n)
    rows = mechanism.perturb_many(np.tile(np.repeat(np.arange(24), truth), repeats))
    counts = np.stack(
        [
            mechanism.tally(rows[k * n : (k + 1) * n], threads=1).estimate().counts
            for k in range(repeats)
        ]
    )
    variance = n * theory.item_variance(mechanism, truth / n)
    assert_mean(counts, truth, variance, z_for(24))
    must_fail(assert_mean, counts + 12 * np.sqrt(variance / repeats), truth, variance, z_for(24))
    assert_variance(counts, variance, z_for(24))
    total = ((counts - truth) ** 2).sum(axis=1) / n
    assert_mean(
        total, mechanism.expected_mse(truth / n), total.var(ddof=1), 7
    )  # skewed: 7 standard errors, not 5


@pytest.mark.parametrize("model", ALL)
def test_estimates_of_simulations_are_unbiased_with_the_expected_error(model):
    mechanism, n, repeats = mechanism_of(model), 10**5, 1000
    truth = counts_like(24, n)
    simulation = d.simulate(truth, mechanism, repeats=repeats, seed=8)
    variance = n * theory.item_variance(mechanism, truth / n)
    assert_mean(simulation.counts, truth, variance)
    assert_variance(simulation.counts, variance)
    expected = mechanism.expected_mse(truth / n)
    spread = simulation.mse.var(ddof=1)
    assert_mean(simulation.mse, expected, spread)
    must_fail(assert_mean, simulation.mse, expected * 1.2, spread)
    # what a tally says of its own error is right too; it is taken at the estimate within [0, n], which costs a little
    own = np.mean([(e.stderr**2).sum() for e in simulation.estimates]) / n
    assert own == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@pytest.mark.parametrize("model", UNARY)
def test_the_bias_of_large_sets_is_theorys(model, encoding):
    mechanism, repeats = mechanism_of(model, encoding, 2), 250
    sets = [[0, 5], [1, 2, 3, 23], [5], [], [4, 5, 6], [0, 1, 2, 3, 4, 5, 22, 23]] * 80
    error = theory.set_error(mechanism, sets)
    truth = np.bincount([i for x in sets for i in x], minlength=24)
    assert error.bias.min() < -30
    simulation = d.simulate(sets, mechanism, repeats=repeats, seed=3)
    items, lengths = np.array([i for x in sets for i in x]), [len(x) for x in sets]
    rows = mechanism.perturb_many(
        (np.tile(items, repeats), np.concatenate(([0], np.cumsum(np.tile(lengths, repeats)))))
    )
    n = len(sets)
    real = np.stack(
        [
            mechanism.tally(rows[k * n : (k + 1) * n], threads=1).estimate().counts
            for k in range(repeats)
        ]
    )
    for counts in (simulation.counts, real):
        assert_mean(counts, truth + error.bias, error.variance, z_for(24))
        assert_variance(counts, error.variance, z_for(24))
        must_fail(assert_mean, counts, truth, error.variance, z_for(24))
    assert "at most 2 items" in simulation.estimates[0].truncation_note
    assert d.simulate([10] * 24, mechanism_of("opt0"), repeats=1).estimates[0].truncation_note == ""


# ---- tables and pictures --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def estimate():
    return expected_tally(mechanism_of("mixed"), counts_like(24, 5000), 5000).estimate()


def test_rows_and_top(estimate):
    rows = estimate.rows()
    assert [row["item"] for row in rows] == list(estimate.mechanism.policy.items)
    assert list(rows[0]) == ["item", "level", "count", "stderr", "lower", "upper", "share"]
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
            else:
                np.testing.assert_equal(float(mine[key]), value)


@pytest.mark.parametrize("kind", ["known", "blind"])
def test_tables_read_back(tmp_path, estimate, kind):
    if kind == "blind":
        estimate = blind()[0].estimate()
    expected = estimate.rows(0.9)
    estimate.save(tmp_path / "e.csv", 0.9)
    with open(tmp_path / "e.csv", encoding="utf-8", newline="") as file:
        same_table(list(csv.DictReader(file)), expected)
    estimate.save(tmp_path / "e.parquet", 0.9)
    same_table(pq.read_table(tmp_path / "e.parquet").to_pylist(), expected)
    estimate.save(tmp_path / "e.JSON", 0.9)
    document = json.loads(
        (tmp_path / "e.JSON").read_text(encoding="utf-8"),
        parse_constant=lambda x: pytest.fail(f"{x} is not JSON"),
    )
    assert (document["n"], document["interval"], document["fingerprint"]) == (
        estimate.n,
        0.9,
        estimate.mechanism.fingerprint,
    )
    finite = [
        {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}
        for row in expected
    ]
    assert document["items"] == finite
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
    mechanism = d.design(three_levels(1.0, (50, 50, 1903)), "opt0")
    truth = counts_like(2003, 10**6)
    np.testing.assert_allclose(
        expected_tally(mechanism, truth, 10**6).estimate().counts, truth, rtol=1e-9, atol=1e-3
    )
