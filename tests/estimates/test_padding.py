"""The padding that is chosen is the one with the smallest error, and the two phases spend nobody's
budget twice.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import discreet as d
from discreet.arrays import perturb, theory
from discreet.arrays.randomness import BitSource
from discreet.errors import DataError, DesignError, PolicyError
from discreet.estimates import padding
from discreet.estimates import two_phases as phases
from discreet.estimates.padding import STEPS, choose_padding, size_shares
from discreet.estimates.two_phases import concentration, size_answers, size_policy, two_phases


def people(rng, n, m, mean, skew=1.0, most=None):
    """Sets of Poisson size up to `most`, items by a power law, as (items, offsets)."""
    chance = 1 / np.arange(1, m + 1) ** skew
    sizes = np.minimum(rng.poisson(mean, n), most or m // 2)
    sets = [rng.choice(m, k, replace=False, p=chance / chance.sum()) for k in sizes]
    return np.concatenate([*sets, np.empty(0, int)]).astype(np.int64), np.cumsum([0, *sizes])


@pytest.fixture
def seeded(monkeypatch):
    """Reports from a seed, which only a test can have: nothing fails by chance."""
    rng = np.random.default_rng(12)

    class Seeded(BitSource):
        def fill(self, buffer):
            flat = buffer.view(np.uint8).reshape(-1)
            flat[:] = rng.integers(0, 256, len(flat), dtype=np.uint8)

    monkeypatch.setattr(perturb, "Keystream", Seeded)
    monkeypatch.setattr(phases, "Keystream", Seeded)


def policy(m, eps):
    few = m // 10
    return d.Policy.from_levels(
        [
            ("high", eps, [f"h{i}" for i in range(few)]),
            ("low", 2 * eps, [f"l{i}" for i in range(m - few)]),
        ],
        kind="set",
    )


@pytest.mark.parametrize(
    ("mean", "eps", "skew"),
    [(1, 1, 1), (4, 3, 1), (8, 4, 0.5), (8, 4, 1.2), (3, 0.5, 1), (15, 6, 1)],
)
@pytest.mark.parametrize("model", ["opt1", "opt0"])
def test_the_choice_is_within_ten_percent_of_the_best(model, mean, eps, skew):
    items, offsets = people(np.random.default_rng(1), 4000, 60, mean, skew)
    chosen, lengths = policy(60, eps), np.diff(offsets)
    size_of = np.repeat(lengths, lengths)
    counts = {
        int(k): np.bincount(items[size_of == k], minlength=60).astype(float)
        for k in np.unique(size_of)
    }
    base = d.design(chosen, model, padding=2)
    error = [
        theory.set_error_by_size(replace(base, padding=ell), counts, len(lengths)).mse
        for ell in range(1, 40)
    ]
    shares = np.bincount(items, minlength=60) / len(items)
    choice = choose_padding(chosen, lengths, len(lengths), popularity=shares, model=model)
    assert error[choice.padding - 1] <= 1.1 * min(error)
    assert choice.expected[choice.padding - 1] == choice.expected.min()
    by_number = choose_padding(
        chosen, lengths, len(lengths), popularity=float((shares**2).sum()), model=model
    )
    assert abs(by_number.padding - choice.padding) <= 1


def test_more_people_or_budget_want_a_longer_padding():
    sizes = {1: 0.3, 2: 0.4, 3: 0.3}
    by_users = [
        choose_padding(policy(20, 2), sizes, users).padding for users in (100, 10_000, 10_000_000)
    ]
    by_budget = [choose_padding(policy(50, eps), sizes, 10_000).padding for eps in (0.5, 2, 5)]
    assert by_users == sorted(by_users) and by_users[0] < by_users[-1] == 3
    assert by_budget == sorted(by_budget) and by_budget[0] < by_budget[-1]
    assert (
        choose_padding(policy(20, 2), sizes, 10_000, objective="relative", k=5).objective
        == "relative"
    )


CLOSE = 1e-4  # who holds what is read off a grid


@pytest.mark.parametrize("users", [1, 50, 10_000])
@pytest.mark.parametrize("model", ["opt1", None])
def test_the_error_is_what_users_lose_and_their_noise(users, model):
    """Everybody has 3 of 40 items, all alike: a padding of L counts L / 3 of each, and what is lost
    is squared and grows with the users; the variance does not.
    """
    curve = choose_padding(policy(40, 1), {3: 1.0}, users, np.ones(40), model=model).curve
    assert list(curve) == [1, 2, 3]
    for ell, found in curve.items():
        mechanism = d.design(policy(40, 1), model, padding=ell if model is None else 3)
        share = 3 / 40 * ell / 3
        slope = mechanism.scale * mechanism.arrays.decoder.slope[list(mechanism.groups)] - 1
        absent, slope = theory.absent_variance(mechanism), slope
        if model:  # one design, for what a sample stands for
            absent, slope = absent * (ell / 3) ** 2, (slope + 1) * ell / 3 - 1
        sizes = np.array([4, 36])
        variance = sizes @ absent + share * (sizes @ (slope - 1))
        lost = users * 40 * (3 / 40 - share) ** 2
        assert found == pytest.approx(lost + variance, rel=CLOSE if model else 0.02)


def test_the_relative_error_of_the_top():
    """With any number of people only what is lost is left; of those who lose nothing the error
    falls with the square root of their number.
    """

    def curve(users, k=20, popularity=None):
        shares = np.ones(40) if popularity is None else popularity
        return choose_padding(
            policy(40, 1), {3: 1.0}, users, shares, "relative", k, model="subset"
        ).curve

    many = curve(10**15)
    assert [many[ell] for ell in (1, 2)] == pytest.approx([2 / 3, 1 / 3], rel=CLOSE)
    assert curve(4000)[3] == pytest.approx(curve(1000)[3] / 2, rel=1e-9)
    uneven = np.r_[np.full(5, 4.0), np.ones(35)]  # the first five are four times as frequent
    assert curve(1000, 5, uneven)[3] < curve(1000, 6, uneven)[3] < curve(1000, 40, uneven)[3]
    assert curve(1000, 20) == curve(1000)


@pytest.mark.parametrize(
    ("sizes", "largest"), [({0: 1}, 1), ({0: 1, 2: 0}, 1), ({5: 1}, 5), ({70: 1}, 40), ({9: 1}, 9)]
)
def test_paddings_up_to_the_largest_set_are_tried(sizes, largest):
    """But no more than there are items; nobody with items needs a padding of one."""
    choice = choose_padding(policy(40, 1), sizes, 100, model="opt0")
    assert choice.paddings.tolist() == [*range(1, largest + 1)]
    assert choice.padding == choice.paddings[np.argmin(choice.expected)]
    assert choice.objective == "mse"


def test_no_padding_above_64_is_tried():
    assert choose_padding(policy(100, 1), {90: 1}, 100, model="opt0").paddings[-1] == 64


@pytest.mark.parametrize("popularity", [np.ones(30), 1 / np.arange(1, 31)])
def test_who_holds_what(popularity):
    """Items are held as often as they occur, and counted as the sizes of their holders allow."""
    sizes = np.array([0.2, 0.3, 0, 0, 0.5])  # nothing, one item, four items
    shares = popularity / popularity.sum()
    people = padding._People(sizes, shares)
    expected = shares * (0.3 + 4 * 0.5)
    most = 0.999 * 0.8
    assert people.held == pytest.approx(np.minimum(expected, most), rel=CLOSE)
    assert people.counted(4) == pytest.approx(people.held, rel=CLOSE)
    one = people.counted(1)
    for held, counted in zip(people.held, one):
        low, high = 0.0, 60.0  # solve 0.3 (1 - e^-t) + 0.5 (1 - e^-4t) = held
        for _ in range(60):
            t = (low + high) / 2
            value = 0.3 * -np.expm1(-t) + 0.5 * -np.expm1(-4 * t)
            low, high = (t, high) if value < held else (low, t)
        assert counted == pytest.approx(0.3 * -np.expm1(-t) + 0.125 * -np.expm1(-4 * t), rel=1e-3)
    nobody = padding._People(np.ones(1), shares)
    assert not nobody.held.any() and not nobody.counted(1).any()


@pytest.mark.parametrize(
    ("padding_", "found"), [(None, (None, None)), ("3", (3, None)), ("17", (17, None))]
)
def test_a_padding_as_people_write_it(padding_, found):
    assert padding.read_padding(policy(20, 1), 100, padding_, None) == found


def test_automatic_padding_as_people_write_it():
    chosen, sizes = policy(40, 1), {1: 0.2, 3: 0.8}
    for users in (100, 10_000):
        ell, choice = padding.read_padding(chosen, users, "auto", sizes)
        assert choice.curve == choose_padding(chosen, sizes, users).curve and ell == choice.padding
    settings = {"popularity": "0.1", "objective": "relative", "model": "subset"}
    _, choice = padding.read_padding(chosen, 100, "auto", sizes, **settings)
    assert choice.curve == choose_padding(chosen, sizes, 100, 0.1, "relative", model="subset").curve
    _, zipf = padding.read_padding(chosen, 100, "auto", sizes, "zipf")
    assert zipf.curve == choose_padding(chosen, sizes, 100).curve != choice.curve


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("x", None), 'padding = "x" must be a whole number or auto'),
        (("3", {1: 1}), "--sizes goes with --padding auto"),
        ((None, None, "zipf"), "--popularity goes with --padding auto"),
        (("3", None, None, "mse"), "--objective goes with --padding auto"),
        (("auto", None), "--padding auto needs --sizes"),
        (("auto", {1: 1}, "flat"), 'popularity = "flat" must be zipf or a number'),
    ],
)
def test_paddings_that_people_cannot_write(arguments, sentence):
    with pytest.raises(DesignError, match=sentence):
        padding.read_padding(policy(20, 1), 100, *arguments)


def test_sizes_in_every_form():
    assert size_shares({1: 1, 3: 3}).tolist() == [0, 0.25, 0, 0.75]
    assert size_shares({"2": 5}).tolist() == [0, 0, 1]
    assert size_shares(np.array([0, 2, 2, 2])).tolist() == [0.25, 0, 0.75]


@pytest.mark.parametrize(
    "sizes",
    [
        *({}, {-1: 1}, {1: -1}, {"many": 1}, {1: float("nan")}, {3: 0}, {10**12: 1}),
        *({1.5: 0.5, 1.9: 0.5}, {float("nan"): 1}, {float("inf"): 1}, {True: 1}),
        *({"1": 1, "1.0": 1}, {10**400: 1}, {1: 10**400}, {1: 1e308, 2: 1e308}),
        *([], [1.5], "2", [[1]], [10**12]),
    ],
)
def test_bad_sizes_get_a_sentence(sizes):
    with pytest.raises(DataError, match="sizes"):
        choose_padding(policy(20, 1), sizes, 100)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"users": 0}, "users = 0"),
        ({"objective": "best"}, "one of mse, shrunk, relative"),
        ({"popularity": "flat"}, "zipf, shares per item"),
        ({"popularity": [1, 2]}, "one share per item"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, match):
    with pytest.raises(d.DiscreetError, match=match):
        choose_padding(policy(20, 1), {1: 1}, **{"users": 100, **arguments})
    with pytest.raises(DesignError, match='for kind = "set"'):
        choose_padding(d.Policy.from_levels([("a", 1, ["x"])]), {1: 1}, 100)


def test_set_sizes_are_collected_under_the_smallest_budget():
    sizes = size_policy(policy(20, 0.7))
    assert (
        sizes.levels[0].budget == d.policy.Budget.parse(0.7)
        and sizes.m == len(STEPS)
        and sizes.kind == "single"
    )
    assert sizes.items[6] == "6 to 7" and sizes.items[-1] == "41 or more"
    assert size_answers([0, 1, 5, 6, 7, 8, 40, 41, 999]).tolist() == [0, 1, 5, 6, 6, 7, 10, 11, 11]


@pytest.mark.parametrize("model", ["subset", "opt0"])
def test_two_phases_use_everyone_once_and_find_a_good_padding(model, seeded):
    """Seeded. Of 100 runs with secure randomness all chose the best padding or one beside it."""
    m = 10
    items, offsets = people(np.random.default_rng(2), 20_000, m, 2)
    chosen = policy(m, 4)
    found = two_phases(chosen, (items, offsets), pilot=0.3, model=model)
    assert found.pilot_users + found.tally.n == 20_000
    assert abs(found.pilot_users - 6_000) < 5 * (20_000 * 0.3 * 0.7) ** 0.5
    best = choose_padding(
        chosen,
        np.diff(offsets),
        found.tally.n,
        popularity=np.bincount(items, minlength=m) / len(items),
        model=model,
    )
    assert found.mechanism.model == model
    assert found.choice.padding in range(best.padding - 1, best.padding + 3)
    assert found.mechanism.padding == found.choice.padding
    estimate, truth = (
        found.tally.estimate(),
        np.bincount(items, minlength=m) * found.tally.n / 20_000,
    )
    assert np.corrcoef(estimate.counts, truth)[0, 1] > 0.9


def test_two_phases_make_one_report_per_person(monkeypatch):
    """Counted where reports are made: a person in two groups would spend her budget twice."""
    made, real = [], perturb.perturb_many

    def counted(mechanism, answers, *settings):
        made.append(len(real(mechanism, answers, *settings)))
        return real(mechanism, answers, *settings)

    monkeypatch.setattr(perturb, "perturb_many", counted)
    found = two_phases(policy(10, 4), people(np.random.default_rng(4), 3_000, 10, 2), pilot=0.4)
    assert len(made) == 3 and sum(made) == 3_000
    assert made[2] == found.tally.n and made[0] + made[1] == found.pilot_users


def test_the_concentration_is_estimated_and_falls_back_on_zipf():
    policy_ = policy(200, 4)
    rng = np.random.default_rng(3)
    mechanism = d.design(policy_, "subset", padding=1)
    truth = rng.multinomial(
        50_000, 1 / np.arange(1, 201) ** 1.3 / (1 / np.arange(1, 201) ** 1.3).sum()
    )
    sets = np.repeat(np.arange(200), truth), np.arange(50_001)
    clear = d.simulate(sets, mechanism, repeats=1, seed=1).estimates[0]
    assert concentration(clear, 1.0) == pytest.approx(((truth / 50_000) ** 2).sum(), rel=0.1)
    few = np.repeat(np.arange(200), 1), np.arange(201)
    vague = d.simulate(
        few, d.design(policy(200, 0.1), "subset", padding=1), repeats=1, seed=1
    ).estimates[0]
    zipf = ((1 / np.arange(1, 201)) ** 2).sum() / (1 / np.arange(1, 201)).sum() ** 2
    assert concentration(vague, 1.0) == pytest.approx(zipf, rel=0.2)


@pytest.mark.parametrize("per_person", [0.05, 0.5, 1.0, 2.5, 4.0])
def test_the_concentration_is_of_all_occurrences(per_person):
    """By hand, with and without noise: squares over the square of all occurrences, of which nobody
    has fewer than a tenth; then Zipf's law by its share of the uncertainty.
    """
    mechanism, n = d.design(policy(20, 4), "subset", padding=1), 1_000
    counts, same = np.array([700.0, 200.0, 100.0] + [0.0] * 17), np.ones(20)
    zipf = 1 / np.arange(1, 21)
    guess = float((zipf**2).sum() / zipf.sum() ** 2)
    everything = n * max(per_person, 0.1)
    for variance in (0.0, 900.0):
        estimate = d.Estimate(mechanism, n, counts, variance * same, 0 * same, 0 * same)
        seen = (np.sum(counts**2) - 20 * variance) / everything**2
        noise = np.sqrt(2 * 20 * variance**2) / everything**2
        weight = guess**2 / (guess**2 + noise**2)
        wanted = max(weight * seen + (1 - weight) * guess, 1 / 20)
        assert concentration(estimate, per_person) == pytest.approx(wanted, rel=1e-9)


def test_items_that_nobody_has_may_have_a_share_of_nothing():
    some = choose_padding(policy(20, 2), {1: 0.5, 3: 0.5}, 1_000, [1] * 5 + [0] * 15)
    assert some.padding in (1, 2, 3)
    for shares in ([1] * 19 + [-1], [0] * 20):
        with pytest.raises(DataError, match="one share per item"):
            choose_padding(policy(20, 2), {1: 1}, 1_000, shares)


@pytest.mark.parametrize("pilot", [0, 1, -0.1])
def test_bad_pilots_get_a_sentence(pilot):
    with pytest.raises(DesignError, match="pilot"):
        two_phases(policy(20, 1), [{0}, {1}], pilot=pilot)


def test_too_few_people_for_two_phases():
    with pytest.raises(DataError, match="too few"):
        two_phases(policy(20, 1), [{0}], pilot=0.5)


# ---- in the policy file --------------------------------------------------------------------------

SETS = """
name = "pages"
kind = "set"
padding = "auto"
{more}
[[level]]
name = "private"
epsilon = 2
items = ["health", "debts"]
[[level]]
name = "other"
epsilon = 4
items = ["news", "sports", "weather"]
"""


def load(tmp_path, more):
    path = tmp_path / "pages.toml"
    path.write_text(SETS.replace("{more}", more), encoding="utf-8")
    return d.Policy.load(path)


def test_auto_in_the_policy_file_is_the_padding_that_choose_padding_finds(tmp_path):
    policy = load(tmp_path, "sizes = { 1 = 0.2, 3 = 0.8 }\nusers = 100_000")
    assert policy.padding == d.choose_padding(policy, {1: 0.2, 3: 0.8}, 100_000).padding == 3
    assert d.design(policy).padding == 3
    assert load(tmp_path, "sizes = { 1 = 1.0 }\nusers = 100").padding == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("users = 10", "sizes is missing"),
        ("sizes = { 1 = 1 }", "users is missing"),
        ("sizes = { 1 = 1 }\nusers = 0", "users = 0 must be"),
        ("sizes = 3\nusers = 10", "sizes = 3 must be a table"),
        ('sizes = { 1 = "x" }\nusers = 10', "must be a table of shares"),
        ("sizes = { two = 1 }\nusers = 10", "sizes are shares"),
        ("sizes = { 1 = 0 }\nusers = 10", "sum to nothing"),
    ],
)
def test_what_auto_needs(tmp_path, more, words):
    with pytest.raises(PolicyError, match=words) as error:
        load(tmp_path, more)
    assert str(error.value).count("\n") == 0


def test_sizes_and_users_go_with_auto_only(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(SETS.replace("{more}", "users = 10").replace('"auto"', "2"), encoding="utf-8")
    with pytest.raises(PolicyError, match='users goes with padding = "auto"'):
        d.Policy.load(path)


# ---- hits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "eps", "most"),
    [
        (2, 1, 3),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((6, 2, 20), (10, 4, 20))),
    ],
)
def test_the_padding_of_whole_lists_is_near_the_best(mean, eps, most):
    """Against the exact error of every padding on the same people."""
    items, offsets = people(np.random.default_rng(4), 4000, 60, mean, most=most)
    chosen, lengths = policy(60, eps), np.diff(offsets)
    sets = [items[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    error = {
        ell: theory.set_error(d.design(chosen, padding=ell), sets).mse for ell in range(1, most + 1)
    }
    shares = np.bincount(items, minlength=60) / len(items)
    choice = choose_padding(chosen, lengths, len(lengths), popularity=shares)
    assert error[choice.padding] <= 1.15 * min(error.values())
    at_best = choice.curve[choice.padding] * len(lengths)
    assert at_best == pytest.approx(error[choice.padding], rel=0.25)


def test_paddings_of_hits_are_all_up_to_twelve_and_some_beyond():
    choice = choose_padding(policy(40, 2), {30: 1.0}, 10_000, model="hits")
    assert choice.paddings.tolist() == [*range(1, 13), 14, 16, 18, 20, 24, 28]
    assert set(choice.curve) == set(choice.paddings.tolist())


def test_after_shrinking_a_larger_padding_is_better():
    """Noise on items that nobody has is removed, what was left out is not (SPEC 8)."""
    chosen = policy(1000, 1)
    raw, shrunk = (
        choose_padding(chosen, dict.fromkeys(range(1, 7), 1 / 6), 80_000, objective=x, model="hits")
        for x in ("mse", "shrunk")
    )
    assert raw.padding + 2 < shrunk.padding
    assert shrunk.expected.min() < 0.3 * raw.expected.min()


def test_the_expected_error_after_shrinking_is_what_shrinking_gives():
    rng = np.random.default_rng(8)
    items, offsets = people(rng, 20_000, 400, 3, most=5)
    items = rng.permutation(400)[items]  # the most frequent ones are in no level of their own
    chosen, lengths = policy(400, 1), np.diff(offsets)
    shares = np.bincount(items, minlength=400) / len(items)
    settings = {"popularity": shares, "objective": "shrunk", "model": "hits"}
    choice = choose_padding(chosen, lengths, len(lengths), **settings)
    for ell in (2, 4):
        made = d.design(chosen, "hits", padding=ell)
        runs = d.simulate((items, offsets), made, repeats=6, seed=2)
        found = [((e.shrunk().counts - runs.truth) ** 2).sum() / runs.n for e in runs.estimates]
        assert np.mean(found) == pytest.approx(choice.curve[ell], rel=0.35)


@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_the_error_of_posterior_means_of_two_items(noise):
    """Of two items one is held by 3 people and one by nobody: the integral of the variance of the
    posterior over all estimates.
    """
    counts = np.array([3.0, 0.0])

    def at(y):
        seen = [math.exp(-((y - x) ** 2) / (2 * noise)) / 2 for x in counts]
        return 9 * seen[0] * seen[1] / sum(seen) / math.sqrt(2 * math.pi * noise)

    expected, _ = quad(at, -20, 23)
    assert padding._risk(counts, counts, noise, 0.0) == pytest.approx(expected, rel=1e-3)


def test_a_power_law_has_the_concentration_that_was_asked_for():
    for wanted in (1 / 50, 0.1, 0.6, 0.999):
        s = padding.occurrence_shares(wanted, 50)
        assert (s**2).sum() == pytest.approx(wanted, rel=1e-6) and s.sum() == pytest.approx(1)


# ---- the first phase spends what binds -----------------------------------------------------------


def test_the_first_phase_spends_the_smallest_budget_that_binds():
    """Level 4, its pairs 0.5: a set size told at 4 would break the promise of 0.5."""
    pairs = (d.policy.Pair("a", "a", 0.5), d.policy.Pair("a", "b", None))
    chosen = d.Policy.from_levels(
        [("a", 4, ["x", "y"]), ("b", 3, ["z"])], kind="set", padding=2, pairs=pairs
    )
    counter = d.design(size_policy(chosen)).guarantee()
    assert counter.ldp_epsilon <= 0.5
    assert (
        d.design(size_policy(replace(chosen, pairs=()))).guarantee().ldp_epsilon > 2.9
    )  # the twin


def test_padding_is_not_chosen_where_items_are_asked_one_by_one():
    with pytest.raises(DesignError, match='kind = "set"'):
        choose_padding(replace(policy(20, 1), kind="each"), {2: 1.0}, 100)


def test_two_phases_of_few_people_keep_the_padding_of_the_pilot(seeded):
    """No set size stands out of so much noise; everybody's report is used all the same."""
    found = two_phases(policy(20, 1), [{"h0", "l1"}, {"l2"}] * 200)
    assert found.choice.padding <= 4 and found.tally.n + found.pilot_users == 400


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"users": 1.5}, "whole number from 1"),
        ({"objective": "relative", "k": 0}, "k = 0"),
        ({"popularity": float("nan")}, "popularity = nan"),
        ({"popularity": -0.5}, "popularity = -0.5"),
        ({"popularity": 1.5}, "popularity = 1.5"),
        ({"prior": "nonsense"}, "nonsense"),
    ],
)
def test_odd_arguments_get_a_sentence(arguments, sentence):
    with pytest.raises((DesignError, DataError), match=sentence):
        choose_padding(policy(20, 1), {2: 1.0}, **{"users": 100, **arguments})


def test_hits_are_not_chosen_for_where_they_cannot_be_designed():
    with pytest.raises(DesignError, match="use the model subset"):
        choose_padding(replace(policy(20, 1), notion="avg"), {2: 1.0}, 100, model="hits")
    at_worst = choose_padding(policy(20, 1), {2: 1.0}, 100, prior="worst")
    assert at_worst.padding == choose_padding(policy(20, 1), {2: 1.0}, 100).padding
