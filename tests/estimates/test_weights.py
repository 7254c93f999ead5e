"""Weighted estimates: against brute force on scores, and what they repair."""

from __future__ import annotations

import numpy as np
import pytest
from checks import must_fail

import discreet as d
from discreet.arrays.weighted import WeightedTally, load_tally
from discreet.errors import DataError
from discreet.estimates.weights import SMALL, post_stratify, rake, unexplained

LEVELS = [("a", 2, ["x", "y"]), ("b", 3, ["z", "w"])]
POLICY = d.Policy.from_levels(LEVELS)
TICKET = {"encoding": "ticket"}
ENCODINGS = {"fixed": ("subset", {}), "bits": ("opt0", {}), "ticket": ("subset", TICKET)}


def made(name):
    model, options = ENCODINGS[name]
    return d.design(POLICY, model, **options)


def weighed(mechanism, n=4000, seed=1):
    rng = np.random.default_rng(seed)
    reports = mechanism.perturb_many(rng.integers(0, 4, n))
    weights = rng.gamma(2, 1, n)
    return reports, weights, WeightedTally.count(mechanism, reports, weights)


def check_brute_force(mechanism, reports, weights, tally):
    n, scores = len(reports), mechanism.scores(reports)
    relative = weights * n / weights.sum()
    estimate = tally.estimate()
    sums = relative @ scores
    np.testing.assert_allclose(estimate.counts, sums, rtol=1e-6, atol=1e-4)
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert tally.n == n and tally.effective_n == pytest.approx(effective, rel=1e-6)
    # linearised, as any survey package has it; 6 standard errors of a sample variance
    terms = relative[:, None] ** 2 * (scores - sums / n) ** 2
    noise = 6 * np.sqrt(n) * terms.std(axis=0)
    stated = estimate.variance(estimate.counts, "population")
    assert (np.abs(terms.sum(axis=0) - stated) < noise).all()
    both = estimate.total(["x", "z"])
    summed = relative @ scores[:, [0, 2]].sum(axis=1)
    assert both["count"] == pytest.approx(summed, rel=1e-6)


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_weighted_estimate_is_the_sum_of_weighted_scores(name):
    mechanism = made(name)
    reports, weights, tally = weighed(mechanism)
    check_brute_force(mechanism, reports, weights, tally)
    must_fail(check_brute_force, mechanism, reports, weights[::-1], tally)


@pytest.mark.parametrize("eps", [2, 6])
@pytest.mark.parametrize("chances", [(0, 1), (1, 0), (0.1, 0.9), (0.5, 0.5)])
def test_the_heavy_ones_may_lack_what_the_others_hold(eps, chances):
    """The luck of the draw is mostly about the heavy people, whether they hold the item or not."""
    mechanism = d.design(d.Policy.from_levels([("a", eps, ["x", "y", "z"])]))
    rng, n = np.random.default_rng(2), 4_000
    heavy = rng.random(n) < 0.02
    answers = np.where(rng.random(n) < np.where(heavy, *chances), 0, 1)
    answers[rng.random(n) < 0.2] = 2  # a rare item has no sample variance to compare with
    reports, weights = mechanism.perturb_many(answers), np.where(heavy, 40.0, 1.0)
    tally = WeightedTally.count(mechanism, reports, weights)
    check_brute_force(mechanism, reports, weights, tally)
    estimate = tally.estimate()
    share, low, high = (column[0] for column in estimate.shares())
    spread = np.sqrt(estimate.variance(estimate.counts, "population")[0]) / n
    assert low < share - 1.6 * spread and share + 1.6 * spread < high


def test_equal_weights_change_nothing():
    mechanism = made("fixed")
    reports, _, _ = weighed(mechanism, 500)
    plain = mechanism.tally(reports).estimate()
    same = WeightedTally.count(mechanism, reports, np.full(500, 7.5)).estimate()
    np.testing.assert_allclose(same.counts, plain.counts, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(same.stderr, plain.stderr, rtol=1e-9)
    for about in ("population", "respondents"):
        for mine, theirs in zip(same.shares(about=about), plain.shares(about=about), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    for column in ("share_low", "share_high"):
        assert same.total([0, 2])[column] == pytest.approx(plain.total([0, 2])[column], rel=1e-9)
    assert same.weighting.effective_n == pytest.approx(500)


def test_a_weighted_tally_is_read_back(tmp_path):
    mechanism = made("ticket")
    _, _, tally = weighed(mechanism, 300)
    tally.save(tmp_path / "t.json")
    again = load_tally(tmp_path / "t.json", mechanism)
    assert (again.n, again.sums, again.squares) == (tally.n, tally.sums, tally.squares)
    mechanism.tally([]).save(tmp_path / "plain.json")
    assert load_tally(tmp_path / "plain.json", mechanism).n == 0
    text = (tmp_path / "t.json").read_text("utf-8")
    (tmp_path / "t.json").write_text(text.replace('"n": 300', '"n": 0', 1), "utf-8")
    with pytest.raises(DataError, match="do not belong together"):
        load_tally(tmp_path / "t.json", mechanism)


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ([1, 2], "there are 2 weights for 3 reports"),
        ([1, -1, 2], "weights are numbers from 0"),
        ([1, float("nan"), 2], "weights are numbers from 0"),
        ([0, 0, 0], "all weights are 0"),
        (["a", 1, 2], "weights are numbers"),
        (["1", "2", "3"], "weights are numbers"),  # numpy would read them
        ([True, False, True], "weights are numbers"),
        (np.array(["2026", "2027", "2028"], "datetime64[Y]"), "weights are numbers"),
        (np.array([1, "2", 3.0], object), "weights are numbers"),
        ([1, None, 2], "weights are numbers from 0"),
    ],
)
def test_what_is_no_weight(weights, why):
    mechanism = made("fixed")
    with pytest.raises(DataError, match=why):
        WeightedTally.count(mechanism, mechanism.perturb_many([0, 1, 2]), weights)


# ---- groups --------------------------------------------------------------------------------------

TRUTH = {"north": [0.6, 0.2, 0.1, 0.1], "south": [0.1, 0.1, 0.2, 0.6]}
PEOPLE = {"north": 3_000_000.0, "south": 7_000_000.0}
WHOLE = np.array([0.3 * a + 0.7 * b for a, b in zip(*TRUTH.values(), strict=True)])


def by_region(mechanism, rng, n=1000):
    """Nine of ten who answer live in the north."""
    sizes = {"north": int(0.9 * n), "south": n - int(0.9 * n)}
    return {
        name: mechanism.tally(mechanism.perturb_many(rng.choice(4, size, p=TRUTH[name]), threads=1))
        for name, size in sizes.items()
    }


def inside(estimates):
    shares = [estimate.shares() for estimate in estimates]
    return np.mean([(s.low <= WHOLE) & (s.high >= WHOLE) for s in shares], axis=0)


def check_repaired(estimates):
    """95 % intervals hold: 6 standard errors below is a false alarm of 1e-9 per item."""
    assert (inside(estimates) >= 0.95 - 6 * np.sqrt(0.05 * 0.95 / len(estimates))).all()


def test_groups_that_answered_too_seldom_are_weighted_up():
    mechanism, rng = made("fixed"), np.random.default_rng(5)
    groups = [by_region(mechanism, rng) for _ in range(300)]
    repaired = [
        post_stratify({name: tally.estimate() for name, tally in tallies.items()}, PEOPLE)
        for tallies in groups
    ]
    check_repaired(repaired)
    must_fail(check_repaired, [sum(tallies.values()).estimate() for tallies in groups])
    assert repaired[0].n == 1000
    f = {"north": 0.3 / 0.9, "south": 0.7 / 0.1}
    effective = 1000**2 / (900 * f["north"] ** 2 + 100 * f["south"] ** 2)
    assert repaired[0].weighting.effective_n == pytest.approx(effective)
    widths = np.mean([e.shares().high - e.shares().low for e in repaired], axis=0)
    spread = np.std([e.shares().share for e in repaired], axis=0)
    assert (widths < 2 * 1.96 * spread * 1.35).all()  # and they are not much wider than needed


def test_sums_of_groups_hold_too():
    mechanism, rng = made("fixed"), np.random.default_rng(6)
    rows = []
    for _ in range(300):
        tallies = by_region(mechanism, rng)
        whole = post_stratify({k: t.estimate() for k, t in tallies.items()}, PEOPLE)
        rows.append(whole.total(["x", "w"]))
    share = WHOLE[[0, 3]].sum()
    held = np.mean([row["share_low"] <= share <= row["share_high"] for row in rows])
    assert held >= 0.95 - 6 * np.sqrt(0.05 * 0.95 / 300)
    mean = np.mean([row["share"] for row in rows])
    assert abs(mean - share) < 6 * np.std([row["share"] for row in rows]) / np.sqrt(300)


def test_groups_and_populations_that_do_not_fit():
    mechanism = made("fixed")
    estimate = mechanism.tally(mechanism.perturb_many([0, 1])).estimate()
    with pytest.raises(DataError, match="there are no reports in these groups"):
        post_stratify({}, {})
    with pytest.raises(DataError, match='no people for the group "a", which answered'):
        post_stratify({"a": estimate}, {"b": 1})
    with pytest.raises(DataError, match='nobody of the group "b" answered'):
        post_stratify({"a": estimate}, {"a": 1, "b": 1})
    other = made("bits").tally(made("bits").perturb_many([0])).estimate()
    with pytest.raises(DataError, match="the groups answered different mechanisms"):
        post_stratify({"a": estimate, "b": other}, {"a": 1, "b": 1})


def test_raking_meets_all_margins():
    sizes = {("n", "f"): 10, ("n", "m"): 40, ("s", "f"): 30, ("s", "m"): 5}
    region = {("n", None): 300.0, ("s", None): 700.0}
    sex = {(None, "f"): 510.0, (None, "m"): 490.0}
    people = rake(sizes, [region, sex])
    for margin in (region, sex):
        for key, wanted in margin.items():
            mine = [x for group, x in people.items()
                    if all(k in (None, g) for k, g in zip(key, group, strict=True))]  # fmt: skip
            assert sum(mine) == pytest.approx(wanted / 1000)
    odds = [people["n", "f"] * people["s", "m"] / (people["n", "m"] * people["s", "f"])]
    assert odds[0] == pytest.approx(10 * 5 / (40 * 30))  # how they go together stays as it was


REGION = {("n", None): 1.0, ("s", None): 1.0}
AGE = {(None, "old"): 1.0, (None, "young"): 1.0}
CELLS = [(region, age) for region in ("n", "s") for age in ("old", "young")]


def raked_coverage(repeats=150, n=400, plain=False):
    """Item a is held in two opposite cells of four: the margins explain nothing of it. How often
    the interval holds, and the total with an item that nobody holds.
    """
    mechanism = d.design(d.Policy.from_levels([("all", 8, ["a", "b", "c"])]), "rappor")
    rng, held = np.random.default_rng(4), np.zeros(2)
    for _ in range(repeats):
        cell = rng.integers(0, 4, n)
        reports = mechanism.perturb_many(np.where((cell == 0) | (cell == 3), 0, 1), threads=1)
        estimates = {
            group: mechanism.tally(reports[cell == k], threads=1).estimate()
            for k, group in enumerate(CELLS)
        }
        people = rake({group: e.n for group, e in estimates.items()}, [REGION, AGE])
        whole = post_stratify(estimates, dict(people) if plain else people)
        row, share = whole.total(["a", "c"]), whole.shares()
        held[0] += share.low[0] <= 0.5 <= share.high[0]
        held[1] += row["share_low"] <= 0.5 <= row["share_high"]
    return held / repeats


def check_raked(**options):
    """6 standard errors of 150 repeats below 95 %."""
    assert (raked_coverage(**options) >= 0.95 - 6 * np.sqrt(0.05 * 0.95 / 150)).all()


def test_raking_states_the_error_of_what_the_margins_do_not_explain():
    check_raked()
    must_fail(check_raked, plain=True)  # as if the cells were known: it covers 34 %


def test_what_the_main_effects_explain_is_no_error():
    margins = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], float)
    added = np.array([[0.1, 0.5], [0.3, 0.5], [0.4, 0.5], [0.6, 0.5]])  # 0.3 by region, 0.2 by age
    people = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(unexplained(added, margins, people), 0, atol=1e-12)
    crossed = unexplained(np.array([[1.0], [0], [0], [1]]), margins, np.ones(4))
    np.testing.assert_allclose(crossed[:, 0], [0.5, -0.5, -0.5, 0.5])


@pytest.mark.parametrize(
    ("number", "told"),
    [("3", "not '3'"), (float("inf"), "not inf"), (float("nan"), "not nan"), (-1, "not -1"),
     (True, "not True"), (None, "not None")],
)  # fmt: skip
def test_people_are_numbers(number, told):
    mechanism = made("fixed")
    estimate = mechanism.tally(mechanism.perturb_many([0, 1])).estimate()
    why = 'the people of the group "a" must be a number from 0 to 1e'
    with pytest.raises(DataError, match=why) as error:
        post_stratify({"a": estimate}, {"a": number})
    assert str(error.value).endswith(told)
    with pytest.raises(DataError, match='the people of the group "b" must be a number'):
        post_stratify({"a": estimate}, {"a": 1, "b": number})
    with pytest.raises(DataError, match='the people of the group "a" must be a number'):
        rake({("a",): 3}, [{("a",): number}])
    assert post_stratify({"a": estimate}, {"a": np.int64(3)}).n == 2


@pytest.mark.parametrize(
    ("sizes", "margins", "why"),
    [
        ({("a",): 3}, [{}], "a margin has no people"),
        ({("a",): 3}, [{("a",): 0.0}], "a margin has no people"),
        ({("a",): 3}, [], "at least one margin"),
        ({}, [{("a",): 1.0}], "raking needs groups that answered"),
        ({("a",): 3}, [{("a", None): 1.0}], 'group "a" has 2 columns and the groups .* have 1'),
    ],
)
def test_margins_are_of_the_groups(sizes, margins, why):
    with pytest.raises(DataError, match=why):
        rake(sizes, margins)


def test_margins_that_do_not_fit():
    sizes = {("n", "f"): 10, ("s", "m"): 5}
    region, sex = {("n", None): 300.0, ("s", None): 700.0}, {(None, "f"): 510.0, (None, "m"): 490.0}
    with pytest.raises(DataError, match="no weights agree with all of these margins"):
        rake(sizes, [region, sex])
    with pytest.raises(DataError, match='no people for the group "s", which answered'):
        rake(sizes, [{("n", None): 1.0}])
    with pytest.raises(DataError, match='nobody of the group "e" answered'):
        rake(sizes, [{**region, ("e", None): 5.0}])


# ---- few heavy reports ---------------------------------------------------------------------------


def test_more_confidence_is_never_a_narrower_interval():
    """Two people carry nearly all of the weight."""
    mechanism = d.design(d.Policy.from_levels([("all", 8, ["a", "b"])]), "rappor")
    reports = mechanism.perturb_many([0] * 998 + [1] * 2)
    weights = np.array([1.0] * 998 + [1000.0] * 2)
    estimate = WeightedTally.count(mechanism, reports, weights).estimate()
    widths = []
    for confidence in (0.5, 0.9, 0.95, 0.99, 0.999999):
        for together in (False, True):
            share, low, high = estimate.shares(confidence, simultaneous=together)
            assert (low <= np.clip(share, 0, 1)).all() and (np.clip(share, 0, 1) <= high).all()
        widths.append(high - low)
    assert (np.diff(widths, axis=0) >= -1e-12).all()
    assert estimate.weighting.freedom < 3


def heavy_coverage(n, ratio, repeats=200):
    """Half of the population is of a class that answers seldom, and its class is its answer."""
    mechanism = d.design(d.Policy.from_levels([("all", 8, ["a", "b"])]), "rappor")
    rng, held = np.random.default_rng(2), 0
    for _ in range(repeats):
        heavy = rng.random(n) < 1 / (1 + ratio)
        heavy[0] = True
        reports = mechanism.perturb_many(np.where(heavy, 0, 1))
        weights = np.where(heavy, float(ratio), 1.0)
        shares = WeightedTally.count(mechanism, reports, weights).estimate().shares()
        held += shares.low[0] <= 0.5 <= shares.high[0]
    return held / repeats


@pytest.mark.parametrize(("n", "ratio"), [(300, 20), (1000, 100)])
def test_few_heavy_reports_make_wide_intervals(n, ratio):
    assert heavy_coverage(n, ratio) >= 0.95 - 6 * np.sqrt(0.05 * 0.95 / 200)


def upper_end():
    """20 of 2,000 people have half of the weight; 30 % of the others hold item a."""
    mechanism = d.design(d.Policy.from_levels([("all", 16, ["a", "b"])]), "rappor")
    reports = [bytes([1])] * 594 + [bytes([2])] * 1386 + [bytes([2])] * 20  # as they answered
    weights = np.array([1.0] * 1980 + [99.0] * 20)
    estimate = WeightedTally.count(mechanism, reports, weights).estimate()
    return estimate.shares().high[0], estimate.total(["a"])["share_high"]


def check_room(ends):
    """If p of the heavy people hold the item, none of 20 does with a chance of (1 - p)^20: 5 % for
    p = 0.139. An interval of 95 % must reach the share of the population with that p.
    """
    assert (np.array(ends) >= 0.5 * 0.3 + 0.5 * (1 - 0.05 ** (1 / 20))).all()


def test_heavy_people_may_hold_what_none_of_them_was_seen_to_hold():
    ends = upper_end()
    check_room(ends)
    must_fail(check_room, [end - 0.05 for end in ends])
    assert max(ends) < 0.35  # and not without end: 0.15, and half of what 20 people leave open


def test_one_of_few_heavy_reports_is_the_grain_of_the_sum():
    mechanism = made("bits")
    reports = mechanism.perturb_many(np.zeros(1000, int))
    plain = mechanism.tally(reports).estimate()
    for few, visible in ((2, True), (SMALL - 1, True), (2 * SMALL, False)):
        weights = np.array([1.0] * (1000 - few) + [1e4] * few)
        estimate = WeightedTally.count(mechanism, reports, weights).estimate()
        moved = plain.step * 1e4 * 1000 / weights.sum()  # by one more heavy report
        assert (estimate.step >= moved * 0.999).all() == visible


# ---- small groups --------------------------------------------------------------------------------


def test_one_report_of_a_small_group_is_the_grain_of_the_sum():
    mechanism, rng = made("fixed"), np.random.default_rng(3)

    def whole(few):
        groups = {
            name: mechanism.tally(mechanism.perturb_many(rng.integers(0, 4, n))).estimate()
            for name, n in (("many", 980), ("few", few))
        }
        return post_stratify(groups, {"many": 1, "few": 1}), groups["few"]

    for few in (3, 10, SMALL - 1):
        found, group = whole(few)
        assert (found.step >= 0.5 * (980 + few) / few * group.step * (1 - 1e-12)).all()
        assert found.weighting.smallest_group == few
    found, group = whole(SMALL)
    assert (found.step < 0.5 * (980 + SMALL) / SMALL * group.step).all()
