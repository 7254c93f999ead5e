"""Post-processing: the fit is the maximum, the posterior is Bayes', the projection is the nearest
point.

Everything is seeded: nothing fails by chance.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import three_levels
from small import build

import discreet as d
from discreet.errors import DataError
from discreet.estimates import mixture, shrink

RNG = np.random.default_rng(11)


def noisy(truth, sd, rng):
    """Estimates with known, different noise."""
    truth, sd = np.broadcast_arrays(np.asarray(truth, float), sd)
    y = truth + sd * rng.standard_normal(len(truth))
    return y, sd**2, np.zeros(len(truth))


def estimates(truth, model="subset", eps=1.0, repeats=1, seed=0, policy=None):
    policy = policy or three_levels(
        eps, sizes=(len(truth) // 20, len(truth) // 20, len(truth) - 2 * (len(truth) // 20))
    )
    return d.simulate(truth, d.design(policy, model), repeats=repeats, seed=seed).estimates


# ---- the fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", ["two values", "one value", "spread"])
def test_the_fit_is_the_maximum_up_to_its_gap(truth):
    """Thousands of EM steps, which only climb, must not climb past the stated gap."""
    rng = np.random.default_rng(3)
    counts = {
        "two values": np.repeat([0, 400], 300),
        "one value": np.full(600, 150),
        "spread": rng.integers(0, 1000, 600),
    }[truth]
    data = noisy(counts, np.where(np.arange(600) % 3, 60.0, 150.0), rng)
    prior = mixture.fit(*data, 10**6)
    assert prior.weights.sum() == pytest.approx(1) and prior.weights.min() >= 0
    rows = mixture.join_similar(*data)
    L, w = mixture.likelihood(rows, prior.grid), rows.weight

    def value(x):
        return float(w @ np.log(L @ x))

    assert value(prior.weights) == pytest.approx(prior.log_likelihood)
    assert prior.gap < 0.05
    x = np.full(len(prior.grid), 1 / len(prior.grid))
    for _ in range(20_000):
        x *= (w / (L @ x)) @ L / w.sum()
    assert value(x) <= prior.log_likelihood + prior.gap + 1e-9
    assert value(x) >= prior.log_likelihood - 1  # and EM gets near: the comparison means something


def test_bins_change_nothing_that_matters():
    rng = np.random.default_rng(4)
    data = noisy(rng.choice([0, 300, 2000], 3000, p=[0.9, 0.08, 0.02]), 100.0, rng)
    rows = mixture.join_similar(*data)
    assert len(rows.y) < 600 and rows.weight.sum() == 3000
    assert rows.weight @ rows.y == pytest.approx(data[0].sum())


def test_the_posterior_mean_is_close_to_the_oracle():
    """Two values and two noises: within 10 % of the mean squared error of someone who knows the
    prior.
    """
    rng = np.random.default_rng(5)
    truth = rng.choice([0.0, 500.0], 4000, p=[0.9, 0.1])
    sd = np.where(np.arange(4000) % 2, 120.0, 300.0)
    y, base, slope = noisy(truth, sd, rng)
    fitted = mixture.fit(y, base, slope, 10**6)
    mean = mixture.posterior(fitted, y, base, slope) @ fitted.grid
    odds = 0.1 / 0.9 * np.exp((y**2 - (y - 500) ** 2) / (2 * base))
    oracle = 500 * odds / (1 + odds)
    assert ((mean - truth) ** 2).mean() < 1.1 * ((oracle - truth) ** 2).mean()
    assert ((mean - truth) ** 2).mean() < 0.2 * ((y - truth) ** 2).mean()


def test_noise_that_grows_with_the_count_is_taken_into_account():
    """Variance base + slope c: the posterior is Bayes' rule with it, worked out by hand; the twin
    ignores the slope.
    """
    rng = np.random.default_rng(7)
    truth = rng.choice([0.0, 300.0], 4000, p=[0.8, 0.2])
    base, slope = np.full(4000, 60.0**2), np.full(4000, 60.0)
    y = truth + np.sqrt(base + slope * truth) * rng.standard_normal(4000)
    fitted = mixture.fit(y, base, slope, 10**6)
    mean = mixture.posterior(fitted, y, base, slope) @ fitted.grid
    high = base + slope * 300
    odds = 0.2 / 0.8 * np.exp(y**2 / (2 * base) - (y - 300) ** 2 / (2 * high))
    odds *= np.sqrt(base / high)
    oracle = 300 * odds / (1 + odds)
    assert ((mean - truth) ** 2).mean() < 1.1 * ((oracle - truth) ** 2).mean()
    two = mixture.Mixture(np.array([0.0, 300.0]), np.array([0.8, 0.2]), 0.0, 0.0)
    np.testing.assert_allclose(
        mixture.posterior(two, y, base, slope) @ two.grid, oracle, rtol=1e-9, atol=1e-9
    )
    blind = mixture.posterior(two, y, base, 0 * slope) @ two.grid
    assert ((blind - truth) ** 2).sum() > 1.01 * ((oracle - truth) ** 2).sum()


def test_ignoring_the_noise_levels_is_worse():
    """The twin: the same fit with one average noise for all items."""
    rng = np.random.default_rng(6)
    truth = rng.choice([0.0, 500.0], 4000, p=[0.9, 0.1])
    y, base, slope = noisy(truth, np.where(np.arange(4000) % 2, 60.0, 400.0), rng)
    right = mixture.fit(y, base, slope, 10**6)
    flat = np.full(4000, base.mean())
    wrong = mixture.fit(y, flat, slope, 10**6)
    good = mixture.posterior(right, y, base, slope) @ right.grid
    bad = mixture.posterior(wrong, y, flat, slope) @ wrong.grid
    assert ((good - truth) ** 2).sum() < 0.7 * ((bad - truth) ** 2).sum()


def mixture_alone(surprise, items):
    """What `_own` was before: no item is of a kind of its own, and the mixture is believed."""
    return 0 * surprise


# ---- shrunk estimates ----------------------------------------------------------------------------

M, N = 400, 50_000
SHUFFLE = RNG.permutation(M)  # sensitive items are as frequent as others
DATA = {
    "uniform": RNG.multinomial(N, np.full(M, 1 / M)),
    "power law": RNG.multinomial(N, 1 / np.arange(1, M + 1) / (1 / np.arange(1, M + 1)).sum())[
        SHUFFLE
    ],
    "two spikes": RNG.multinomial(N, np.r_[0.25, 0.25, np.full(M - 2, 0.5 / (M - 2))])[SHUFFLE],
    "all but one empty": np.r_[N, np.zeros(M - 1, int)],
}


@pytest.mark.parametrize("eps", [1.0, 4.0])
@pytest.mark.parametrize("name", DATA)
def test_shrunk_is_right_on_synthetic_data(name, eps):
    truth = DATA[name]
    raw, better, inside = [], [], []
    for estimate in estimates(truth, eps=eps, repeats=6):
        shrunk = estimate.shrunk()
        low, high = shrunk.interval()
        assert shrunk.counts.min() >= 0 and low.min() >= 0 and high.max() <= N
        assert (
            (low == np.floor(low)).all() and (high == np.ceil(high)).all() and (low <= high).all()
        )
        raw.append(((estimate.counts - truth) ** 2).sum())
        better.append(((shrunk.counts - truth) ** 2).sum())
        inside.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(better) < (0.5 if eps == 1 else 1.0) * np.mean(
        raw
    )  # at eps = 4 there is little noise left to remove
    assert np.mean(inside) >= 0.93


def test_atoms_alone_make_intervals_too_short(monkeypatch):
    """The twin of the coverage test: without smoothing it fails (of the mixture alone; the items'
    own kinds would hide some of it).
    """
    monkeypatch.setattr(shrink, "_own", mixture_alone)
    truth = DATA["power law"]
    plain, smoothed = [], []
    for estimate in estimates(truth, eps=4.0, repeats=4):
        for found, smooth in ((smoothed, mixture.smooth), (plain, lambda prior, _: prior)):
            with monkeypatch.context() as patch:
                patch.setattr(shrink, "smooth", smooth)
                low, high = shrink.shrink(estimate).interval()
            top = np.argsort(-estimate.counts)[:50]
            found.append(((low <= truth) & (truth <= high))[top].mean())
    assert np.mean(plain) < 0.85 < 0.9 <= np.mean(smoothed)


def test_one_mixture_per_level_where_levels_differ():
    """Sensitive items are all rare, the others all frequent: a spread per level wins, and `auto`
    finds it.
    """
    policy = d.Policy.from_levels(
        [("rare", 1, [f"r{i}" for i in range(150)]), ("frequent", 2, [f"f{i}" for i in range(150)])]
    )
    truth = np.r_[np.full(150, 10), np.full(150, 600)]
    scores = {"all": [], "level": [], "auto": []}
    for estimate in d.simulate(truth, d.design(policy, "oue"), repeats=5, seed=2).estimates:
        for kind, found in scores.items():
            found.append(((estimate.shrunk(kind).counts - truth) ** 2).sum())
    assert np.mean(scores["level"]) < 0.7 * np.mean(scores["all"])
    assert np.mean(scores["auto"]) == pytest.approx(np.mean(scores["level"]))


def test_auto_keeps_one_mixture_where_levels_are_alike():
    estimate = estimates(DATA["power law"], repeats=1)[0]
    assert len(estimate.shrunk("auto").mixtures) == 1


def test_many_items_are_handled():
    """opt0: the same post-processing, and no search for a ticket's field."""
    m = 100_000
    policy = d.Policy.from_levels(
        [("a", 1, [f"a{i}" for i in range(5_000)]), ("b", 2, [f"b{i}" for i in range(m - 5_000)])]
    )
    truth = np.random.default_rng(1).multinomial(
        500_000, 1 / np.arange(1, m + 1) / (1 / np.arange(1, m + 1)).sum()
    )
    estimate = estimates(truth, "opt0", policy=policy)[0]
    shrunk = estimate.shrunk()
    assert ((shrunk.counts - truth) ** 2).sum() < 0.05 * ((estimate.counts - truth) ** 2).sum()


def test_bad_pools_and_unknown_items_are_refused():
    estimate = estimates(DATA["uniform"])[0]
    with pytest.raises(DataError, match="all, level or auto"):
        estimate.shrunk("both")
    blind = build("bits", [((1, 1), (0, 0.6), (0, 0.3))])
    with pytest.raises(DataError, match="no estimate"):
        blind.tally(blind.perturb_many([0, 1, 2])).estimate().shrunk()


def test_an_item_without_noise_is_refused():
    lone = d.design(d.Policy.from_levels([("a", 1, ["x"])]), "grr")
    with pytest.raises(DataError, match="no noise"):
        lone.tally([lone.perturb("x")]).estimate().shrunk()


# ---- few items -----------------------------------------------------------------------------------

CELLS = {
    "zipf of 12": (np.diff(np.floor(np.cumsum(np.r_[0, 644.5 / np.arange(1, 13)]))), 1, "subset"),
    "three answers": (np.array([545, 273, 182]), 1, "oue"),
    "linear of 5": (np.array([333, 267, 200, 133, 67]), 1, "subset"),
    "zipf of 41": (np.floor(2330 / np.arange(1, 42)), 3, "oue"),
    "one of 100 leads": (np.r_[200, np.full(99, 8)], 1, "subset"),
}
REPEATS, Z = 160, 4.76  # a normal variable exceeds Z with chance 1e-6


def few(name, repeats):
    """Repeats of a cell of few items: its truth and estimates."""
    truth, levels, model = CELLS[name]
    truth, m = truth.astype(int), len(truth)
    policy = (
        d.Policy.from_levels([("a", 1, [f"i{k}" for k in range(m)])])
        if levels == 1
        else three_levels(1.0, sizes=(m // 10, m // 10, m - 2 * (m // 10)))
    )
    return truth, estimates(truth, model, repeats=repeats, seed=5, policy=policy)


def judged(truth, drawn):
    """Whether coverage over items is at least 93 %, that of the largest 90 %, and the squared error
    not above raw's, as far as the repeats can tell.

    The coverage of the largest item has binomial errors; over items, no larger ones than if all of
    a repeat were covered or missed together. Each fails by chance at most once in a million draws
    (and the draws are seeded).
    """
    every, largest, more = [], [], []
    for estimate in drawn:
        shrunk = shrink.shrink(estimate)
        low, high = shrunk.interval()
        inside = (low <= truth) & (truth <= high)
        every.append(inside.mean())
        largest.append(inside[truth.argmax()])
        more.append(((shrunk.counts - truth) ** 2).sum() - ((estimate.counts - truth) ** 2).sum())
    root = len(drawn) ** 0.5
    return (
        np.mean(every) >= 0.93 - Z * (0.93 * 0.07) ** 0.5 / root,
        np.mean(largest) >= 0.9 - Z * (0.9 * 0.1) ** 0.5 / root,
        np.mean(more) <= Z * np.std(more) / root + 1e-6,
    )


@pytest.mark.parametrize("name", CELLS)
def test_few_items_are_honest(name, monkeypatch):
    """And the twin is not: the mixture alone, as it was."""
    truth, drawn = few(name, REPEATS)
    assert judged(truth, drawn) == (True, True, True)
    monkeypatch.setattr(shrink, "_own", mixture_alone)
    assert not all(judged(truth, drawn))


def test_few_items_rest_on_themselves_and_many_on_the_mixture():
    """Even odds at 100 items is what the promise of 90 % for every item is made of."""
    surprise = np.array([0.0, 3.0])
    assert (shrink._own(surprise, 3) > 0.99999).all()
    assert shrink._own(surprise, 100) == pytest.approx([0.5, 1 / (1 + np.exp(-3))])
    assert (shrink._own(surprise, 1000) < 1e-4).all()
    truth, (estimate, *_) = few("three answers", 1)
    low, high = estimate.interval()
    ends = estimate.shrunk().interval()
    np.testing.assert_allclose(ends[0], np.floor(np.clip(low, 0, truth.sum())), atol=1)
    np.testing.assert_allclose(ends[1], np.ceil(np.clip(high, 0, truth.sum())), atol=1)


@pytest.mark.parametrize(("y", "sd", "n"), [(5, 3, 100), (-4, 3, 10), (99, 40, 100), (130, 9, 100)])
def test_moments_of_a_clipped_normal(y, sd, n):
    """Against the sum over 200,001 points of 8 standard deviations either side."""
    z = np.linspace(-8, 8, 200_001)
    weight, x = np.exp(-(z**2) / 2), np.clip(y + sd * z, 0, n)
    first, second = shrink._clipped(np.array([y]), np.array([sd]), n)
    assert first[0] == pytest.approx(weight @ x / weight.sum(), rel=1e-6)
    assert second[0] == pytest.approx(weight @ x**2 / weight.sum(), rel=1e-6)


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("name", CELLS)
def test_a_count_lies_within_its_own_interval(name, confidence):
    """Also where the estimate is far outside [0, n], and where the interval is narrow."""
    truth, drawn = few(name, 5)
    n = truth.sum()
    for estimate in drawn:
        strange = estimate.counts.copy()
        strange[0], strange[-1] = 40 * n, -40 * n
        for shrunk in (estimate.shrunk(), shrink.shrink(replace(estimate, counts=strange))):
            low, high = shrunk.interval(confidence)
            assert (low >= 0).all() and (high <= n).all()
            assert (low <= shrunk.counts).all() and (shrunk.counts <= high).all()


@pytest.mark.parametrize("model", ["subset", "oue", "grr", "opt0"])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_a_handful_of_people_is_handled(model, n):
    """Variances that vanish, estimates far outside [0, n]: numbers without warnings, and the count
    within its interval.
    """
    for sizes in ((1, 1, 1), (1, 1, 4)):
        truth = np.r_[n, np.zeros(sum(sizes) - 1, int)]
        policy = three_levels(3.0, sizes=sizes)
        for estimate in estimates(truth, model, repeats=20, seed=n, policy=policy):
            if estimate.can_shrink:
                shrunk = estimate.shrunk()
                low, high = shrunk.interval()
                assert (0 <= low).all() and (high <= n).all() and np.isfinite(shrunk.sd).all()
                assert (low <= shrunk.counts).all() and (shrunk.counts <= high).all()
                assert (shrunk.in_top(1) >= 0).all() and (shrunk.in_top(1) <= 1).all()


@pytest.mark.parametrize("name", CELLS)
def test_the_posterior_is_one_for_intervals_and_chances(name):
    """Beyond the ends is what the ends leave (the raw part's half grain and whole numbers leave
    less), the expected number above a threshold is the sum, and all items are in the top of all.
    """
    _, (estimate, *_) = few(name, 1)
    shrunk = estimate.shrunk()
    _, high = shrunk.interval(0.9)
    for item, end in enumerate(high):
        assert shrunk.exceeds(end)[item] <= 0.06
    assert (shrunk.exceeds(-1.0) == 1).all()
    for threshold in (0.0, 50.0, 333.3, estimate.n):
        assert shrunk._expected_above(threshold) == pytest.approx(shrunk.exceeds(threshold).sum())
    assert (shrunk.in_top(len(high)) == 1).all()
    assert shrunk.in_top(2).sum() == pytest.approx(2, abs=0.05)


# ---- projection ----------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 50)), min_size=1, max_size=12),
    st.floats(0.5, 200),
)
def test_the_projection_meets_its_optimality_conditions(rows, n):
    y, v = (np.array(column) for column in zip(*rows))
    c = shrink.project(y, v, n)
    assert c.min() >= 0
    assert c.sum() == pytest.approx(n, rel=1e-9)
    slope = (c - y) / v  # equal on the support, at least that elsewhere (Karush-Kuhn-Tucker)
    held = c > 1e-9 * n
    assert np.ptp(slope[held]) <= 1e-6 * (1 + np.abs(slope).max())
    assert (slope[~held] >= slope[held].min() - 1e-6 * (1 + np.abs(slope).max())).all()


def test_consistent_counts():
    estimate = estimates(DATA["power law"])[0]
    counts = estimate.consistent()
    assert counts.min() == 0 and counts.sum() == pytest.approx(N)
    assert ((counts - DATA["power law"]) ** 2).sum() < (
        (estimate.counts - DATA["power law"]) ** 2
    ).sum()
    policy = d.Policy.from_levels([("a", 1, list("xyz"))], kind="set")
    sets = d.simulate(
        [{0}, {1, 2}, set()] * 50, d.design(policy, padding=2), repeats=1, seed=1
    ).estimates[0]
    assert (sets.consistent() == np.maximum(sets.counts, 0)).all()  # sets need not sum to n


# ---- top and above -------------------------------------------------------------------------------


def test_the_posterior_ranking_beats_the_raw_one_where_noise_differs():
    m, k = 3000, 10
    rng, weights = np.random.default_rng(9), 1 / np.arange(1, m + 1)
    truth = rng.multinomial(100_000, weights / weights.sum())[rng.permutation(m)]
    policy, best = three_levels(1.0, sizes=(150, 150, 2700)), set(np.argsort(-truth)[:k])
    hits = {"raw": 0, "posterior": 0}
    for estimate in estimates(truth, "opt0", policy=policy, repeats=5):
        for ranking in hits:
            found = {policy.index[row["item"]] for row in estimate.top(k, ranking=ranking)}
            hits[ranking] += len(found & best)
    assert hits["posterior"] > 1.2 * hits["raw"]


def test_the_chances_to_be_in_the_top_add_up_and_are_calibrated():
    truth = DATA["power law"]
    best = set(np.argsort(-truth, kind="stable")[:10])
    chances, hits = [], []
    for estimate in estimates(truth, eps=3.0, repeats=8):
        chance = estimate.shrunk().in_top(10)
        assert chance.sum() == pytest.approx(10, abs=0.5)
        chances.append(chance.sum())
        hits.append(sum(chance[i] for i in best))
    rows = estimates(truth, eps=3.0)[0].top(10)
    assert all(0 <= row["in_top"] <= 1 for row in rows) and rows[0]["in_top"] > 0.9
    assert np.mean(hits) > 6  # most of the chance is on the true ones


def test_above_controls_false_discoveries():
    """At most 5 % false ones among the items said to exceed a share; the twin that compares raw
    counts has far more.
    """
    truth = np.r_[np.full(40, 900), np.full(360, 35)]
    share = 150 / truth.sum()
    false, naive, found = [], [], 0
    for estimate in estimates(truth, eps=2.0, repeats=40):
        rows = estimate.above(share, fdr=0.05)
        wrong = [row for row in rows if truth[estimate.mechanism.policy.index[row["item"]]] <= 150]
        false.append(len(wrong) / max(len(rows), 1))
        over = estimate.counts > share * estimate.n
        naive.append((over & (truth <= 150)).sum() / max(over.sum(), 1))
        found += len(rows)
    error = np.std(false, ddof=1) / 40**0.5
    assert np.mean(false) <= 0.05 + 5 * error
    assert np.mean(naive) > 0.2
    assert found > 40 * 10
    assert estimates(np.r_[np.full(400, 100)], eps=1.0)[0].above(0.5) == []


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda e: e.top(0), "at least 1"),
        (lambda e: e.top(3, ranking="best"), "posterior or raw"),
        (lambda e: e.above(1.5), "share = 1.5"),
        (lambda e: e.above(0.1, fdr=0), "fdr = 0"),
    ],
)
def test_bad_arguments_get_a_sentence(call, match):
    with pytest.raises(DataError, match=match):
        call(estimates(DATA["uniform"])[0])
