"""Fake reports: how far one reaches, and that honest ones give no alarm."""

import json
import math
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import picked
import pytest
from exhaustive import distribution, hits_patterns, part_and_named, sets, subsets
from scipy.stats import binom
from small import PARTS, build, small

import discreet as d
from discreet.designs.set_subset import picks
from discreet.designs.task import Task
from discreet.estimates import fakes
from discreet.policy import Policy

THREE = [("a", 1, ["x", "y"]), ("b", 1.5, ["z"]), ("c", 2, ["u", "v"])]
VECTORS = Path(__file__).parents[1] / "vectors" / "v2" / "mechanisms.json"
KINDS = {
    **{f"{kind} {padding or ''}": partial(small, kind, padding=padding)
       for kind in ("fixed", "bits", "ticket") for padding in (None, 2)},
    "subset": lambda: d.design(Policy.from_levels(THREE)),
    "opt0": lambda: d.design(Policy.from_levels(THREE), "opt0"),
    "grr": lambda: d.design(Policy.from_levels(THREE), "grr"),
    "each": lambda: d.design(Policy.from_levels(THREE, kind="each")),
    **{name: partial(lambda x: vector(x), name) for name in ("four-hits", "six-hits")},
}  # fmt: skip


def vector(name):
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))
    return d.Mechanism.from_document(next(x["document"] for x in cases if x["name"] == name))


@cache
def subject(kind):
    """The mechanism; for every answer, be it a set, the law of its reports; what each counts."""
    mechanism = KINDS[kind]()
    document, most = mechanism.to_document(), mechanism.padding or mechanism.m
    few = [x for x in subsets(mechanism.m) if len(x) <= most]
    if mechanism.encoding.kind == "hits":
        law = hits_patterns(document)
        laws = {x: law(x) for x in few}
    elif mechanism.policy.kind.lists:
        law = sets(document)
        laws = {x: law(x) for x in few}
    else:
        laws = {frozenset([x]): distribution(document, x) for x in range(mechanism.m)}
    tallies = {}
    for y in {y for law in laws.values() for y in law}:
        o, named = y if isinstance(y, tuple) else part_and_named(document, y)
        part_n, counts = np.zeros(len(mechanism.parts), int), mechanism.tally([]).counts.copy()
        part_n[o] += 1
        counts[o, list(named)] += 1
        tallies[y] = d.Tally(mechanism, part_n, counts, {})
    return mechanism, laws, tallies


@pytest.mark.parametrize("kind", KINDS)
def test_the_reach_is_that_of_the_worst_report(kind):
    """By trying every report that can be sent: alone, and what all items get together."""
    mechanism, _, tallies = subject(kind)
    reach = fakes.Reach.for_mechanism(mechanism)
    alone = np.array([tally.estimate().counts for tally in tallies.values()])
    for k, found in enumerate(reach.levels):
        items = [i for i, level in enumerate(mechanism.policy.level_of) if level == k]
        assert np.abs(alone[:, items]).max() == pytest.approx(found, rel=1e-9)
    if reach.together is None:
        assert mechanism.encoding.kind in ("ticket", "hits")
    else:
        assert alone.sum(axis=1).max() == pytest.approx(reach.together, rel=1e-9)


def test_the_reach_of_the_health_survey():
    from discreet.data.examples import example

    mechanism = d.design(example("health-survey"), goal="total")
    assert fakes.Reach.for_mechanism(mechanism).sentence(mechanism) == (
        'One fake report can move an item by up to 6.9 ("serious"), 4.4 ("moderate") and 2.4 '
        '("common") people, all together by 1.0.'
    )


@pytest.mark.parametrize(
    ("count", "words"),
    [(0.04, "0.0"), (9.94, "9.9"), (9.999, "10.0"), (10, "10"), (1234.4, "1,234"),
     (np.inf, "any number of")],
)  # fmt: skip
def test_how_people_are_counted(count, words):
    assert fakes._people(count) == words


@pytest.mark.parametrize(
    ("levels", "together", "words"),
    [
        ([3], None, '3.0 ("l0") people.'),
        ([2, 30], 4.0, '30 ("l1") and 2.0 ("l0") people, all together by 4.0.'),
        ([1, 2, 3, 4], 0.0, '4.0 ("l3"), 3.0 ("l2"), 2.0 ("l1") and 1.0 ("l0") people, all '
         "together by 0.0."),
        ([5, 4, 6, 2, 3], None, '6.0 ("l2") and 2.0 ("l3") people.'),
        ([2, 2], None, '2.0 ("l0") and 2.0 ("l1") people.'),
    ],
)  # fmt: skip
def test_the_sentence_of_a_reach(levels, together, words):
    """The furthest first; of five levels or more only the furthest and the nearest."""
    rows = [(f"l{k}", 1 + k, [f"i{k}"]) for k in range(len(levels))]
    mechanism = d.design(Policy.from_levels(rows), "grr")
    found = fakes.Reach(np.array(levels, float), together).sentence(mechanism)
    assert found == f"One fake report can move an item by up to {words}"


@pytest.mark.parametrize("kind", KINDS)
def test_balances_are_zero_on_average_and_vary_as_said(kind):
    """Over all reports, for every answer: the mean is 0, the second moment at most the one that the
    test counts with (and for single answers it is reached), no summand larger than the bound.
    """
    mechanism, laws, tallies = subject(kind)
    told = 0
    for _, a, b in fakes._linear(mechanism):
        values = {y: summed(tally, a, b) for y, tally in tallies.items()}
        seconds = []
        for law in laws.values():
            assert sum(float(p) * values[y] for y, p in law.items()) == pytest.approx(0, abs=1e-7)
            seconds.append(sum(float(p) * values[y] ** 2 for y, p in law.items()))
        if not fakes._sums_of_independent(mechanism, b):
            continue
        moment, bound = fakes._moments(mechanism, a, b)
        assert max(seconds) <= moment * (1 + 1e-9) + 1e-12
        if not mechanism.policy.kind.lists:
            assert max(seconds) == pytest.approx(moment, rel=1e-9, abs=1e-12)
        if mechanism.encoding.fixed_size:
            assert max(map(abs, values.values())) <= bound * (1 + 1e-9)
        told += moment > 1e-9
    # what is always 0 tells nothing (one part, or as many as there are groups), and what is no
    # sum of independent terms is not looked at
    assert bool(told) == (kind in ("fixed ", "subset", "opt0", "four-hits", "six-hits"))


@pytest.mark.parametrize(
    "rows",
    [
        [("a", 1, ["x", "y", "z", "u", "v"])],
        [("a", 1, ["x", "y"]), ("b", 2, ["z", "u", "v"])],
        [("a", 1, ["x", "y"]), ("b", "1.3", ["z", "u"]), ("c", 2, ["v", "w"])],
    ],
)
def test_balances_of_classes_are_zero_on_average_and_vary_as_said(rows):
    """Over all reports of picks, for every list up to the padding: how often each cut is used, and
    its parts. The second moment is the largest over all lists, and no summand is above the bound.
    """
    policy = Policy.from_levels(rows, kind="set")
    mechanism = picks(Task(policy, "uniform", None, 2, goal="total"))
    document = mechanism.to_document()
    reports = picked.reports(document)
    tests = [fakes._balances(mechanism.tally([picked.pack(document, *y)])) for y in reports]
    values = np.array([test.values for (test,) in tests])
    (test, *_) = tests[0]
    seconds = np.zeros(values.shape[1])
    for x in picked.subsets(range(mechanism.m)):
        law = picked.law(document, x)
        chances = np.array([float(law.get(y, 0)) for y in reports])
        assert chances @ values == pytest.approx(0, abs=1e-9)
        if len(x) <= mechanism.padding:
            seconds = np.maximum(seconds, chances @ values**2)
    assert seconds == pytest.approx(test.moments, rel=1e-7)
    assert np.abs(values).max(axis=0) == pytest.approx(test.bounds, rel=1e-9)
    cuts = mechanism.arrays.decoder.cuts
    wanted = [f"reports of the parts of cut {c}" for c in range(1, len(cuts) + 1) if len(cuts) > 1]
    told = [test.describe(k) for k in range(len(test.moments))]
    assert all(any(text in line for line in told) for text in wanted)
    assert any("reports of part " in line for line in told)


def summed(tally, a, b):
    named = np.zeros_like(b)
    np.add.at(named.T, tally.mechanism.arrays.group_of, tally.counts.T)
    return float(tally.part_n @ a + (named * b).sum())


def test_a_balance_with_another_chance_is_not_zero():
    """The twin: to the sums of another mechanism the same reports are odd."""
    _, laws, tallies = subject("fixed ")
    shifted = build("fixed", [((0.5, 0.3), *PARTS["fixed"][0][1:]), *PARTS["fixed"][1:]])
    means = [
        abs(sum(float(p) * summed(tallies[y], a, b) for y, p in law.items()))
        for _, a, b in fakes._linear(shifted)
        for law in laws.values()
    ]
    assert max(means) > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_counts_vary_as_said(kind):
    """The second moment of an item that is not held, over all answers without it."""
    mechanism, laws, tallies = subject(kind)
    tally = next(iter(tallies.values()))
    items, *levels = fakes._negatives(tally, tally.estimate())
    scores = {y: tally.estimate().counts / mechanism.scale for y, tally in tallies.items()}
    groups = {y: np.bincount(mechanism.arrays.group_of, row) for y, row in scores.items()}
    of_item = mechanism.arrays.group_of
    looked = [(items, scores, range(mechanism.m)), *((x, groups, of_item) for x in levels)]
    for test, rows, of in looked:
        for k in range(len(test.moments)):
            seconds = [
                sum(float(p) * rows[y][k] ** 2 for y, p in law.items())
                for x, law in laws.items()
                if all(of[i] != k for i in x)
            ]
            assert max(seconds, default=0) <= test.moments[k] * (1 + 1e-9)
            assert max(abs(row[k]) for row in rows.values()) <= test.bounds[k] * (1 + 1e-9)
    assert bool(levels) == mechanism.encoding.fixed_size


def test_a_level_with_odd_counts_is_called_by_its_name():
    mechanism, _, tallies = subject("fixed ")
    tally = next(iter(tallies.values()))
    _, levels = fakes._negatives(tally, tally.estimate())
    for level, g in zip(mechanism.policy.levels, mechanism.groups):
        assert levels.describe(g).startswith(f'the items of "{level.name}" have counts of ')


@pytest.mark.parametrize(("n", "p"), [*product((1, 10, 100, 10_000), (0.001, 0.1, 0.5, 0.9))])
def test_the_limit_is_exceeded_as_rarely_as_said(n, p):
    """A sum of n centred coins, by the exact binomial law, both ways."""
    for level in (1.0, 5.0, 10.0, 20.0):
        args = np.array([n * p * (1 - p)]), np.array([max(p, 1 - p)])

        def odd(k, level=level, args=args):
            test = fakes._Test("x", np.array([k - n * p]), *args, lambda _: "odd")
            return bool(test.sentence(level))

        high = next((k for k in range(math.ceil(n * p), n + 1) if odd(k)), n + 1)
        low = next((k for k in range(math.floor(n * p), -1, -1) if odd(k)), -1)
        assert binom.sf(high - 1, n, p) <= math.exp(-level)
        assert binom.cdf(low, n, p) <= math.exp(-level)
        one = fakes._Test("x", np.array([low - n * p]), *args, lambda _: "odd", lower=True)
        assert one.sentence(level) == "odd" or low < 0


GRID = [*product((1.0, 5.0, 20.0), (0.5, 30.0, 4000.0), (0.1, 1.0, 50.0))]


def limit_of(level, moment, bound):
    """Bernstein: the t with t^2 = 2 level (V + M t / 3), by bisection."""
    low, high = 0.0, 1e6
    while high - low > 1e-12 * high:
        t = (low + high) / 2
        low, high = (t, high) if t**2 < 2 * level * (moment + bound * t / 3) else (low, t)
    return low


def is_odd(value, level, moment, bound, lower=False):
    arrays = (np.array([x]) for x in (value, moment, bound))
    return bool(fakes._Test("x", *arrays, lambda _: "odd", lower).sentence(level))


@pytest.mark.parametrize(("level", "moment", "bound"), GRID)
def test_the_limit_is_bernsteins(level, moment, bound):
    """No more and no less: a millionth below it nothing is odd, a millionth above it is."""
    t = limit_of(level, moment, bound)
    for sign, lower in product((1, -1), (False, True)):
        assert not is_odd(sign * t * (1 - 1e-6), level, moment, bound, lower)
        assert is_odd(sign * t * (1 + 1e-6), level, moment, bound, lower) == (not lower or sign < 0)


def test_what_is_always_zero_is_never_odd():
    assert not is_odd(0.0, 5.0, 0.0, 0.0) and not is_odd(0.0, 5.0, 0.0, 0.0, lower=True)


def test_the_worst_by_its_own_limit_is_told():
    """Of three: one that is far beyond a wide limit, one that is further beyond a narrow one."""
    limits = np.array([limit_of(5, v, 1) for v in (1e6, 10, 10)])
    for lower, sign in ((False, 1), (False, -1), (True, -1)):
        values = sign * limits * [2, 3, 0.5]
        args = np.array([1e6, 10, 10]), np.ones(3), "entry {}".format, lower
        assert fakes._Test("x", values, *args).sentence(5) == "entry 1"


def test_the_false_alarm_is_shared_by_all_that_is_looked_at(monkeypatch):
    """Two families of 3 two-sided and 2 + 1 one-sided sums: each sum's chance of an alarm is
    1e-3 / 2 / 6 and 1e-3 / 2 / 3; the sentences come family by family.
    """
    tally = next(iter(subject("subset")[2].values()))
    levels = math.log(2 * 6 / 1e-3), math.log(2 * 3 / 1e-3)

    def found(factor):
        tests = [
            fakes._Test("b", np.array([0.0, factor * limit_of(levels[0], 30, 1), 0]),
                        np.full(3, 30.0), np.ones(3), "b{}".format),
            fakes._Test("a", np.array([0.0, -factor * limit_of(levels[1], 9, 2)]), np.full(2, 9.0),
                        np.full(2, 2.0), "a{}".format, lower=True),
            fakes._Test("a", np.array([1e9]), np.ones(1), np.ones(1), "c{}".format, lower=True),
        ]  # fmt: skip
        monkeypatch.setattr(fakes, "_balances", lambda _: tests[:1])
        monkeypatch.setattr(fakes, "_negatives", lambda *_: tests[1:])
        return fakes.oddities(tally)

    assert found(1 - 1e-6) == [] and found(1 + 1e-6) == ["a1", "b1"]


SURVEY = Policy.from_levels(
    [("serious", 1, [f"s{k}" for k in range(5)]), ("common", 2, [f"c{k}" for k in range(30)])]
)
SOME = {
    "subset": lambda: d.design(SURVEY),
    "opt0": lambda: d.design(SURVEY, "opt0"),
    "ticket": lambda: d.design(SURVEY, encoding="ticket"),
    "hits": lambda: d.design(lists_of_survey(), "hits", padding=3),
    "picks": lambda: d.design(lists_of_survey(), "subset", padding=3),
}


def lists_of_survey():
    rows = enumerate(SURVEY.levels)
    items = list(SURVEY.items)
    return d.Policy.from_levels(
        [(level.name, 1 + k, items[5 * k : 5 + 30 * k]) for k, level in rows], kind="set"
    )


def given(mechanism, rng, n):
    popular = rng.permutation(mechanism.m)[np.minimum(rng.zipf(1.3, (n, 3)) - 1, mechanism.m - 1)]
    if not mechanism.policy.kind.lists:
        return popular[:, 0]
    held = [sorted({*row}) for row in popular.tolist()]
    return np.concatenate(held), np.cumsum([0, *map(len, held)])


@pytest.mark.parametrize("kind", SOME)
def test_honest_reports_give_no_alarm(kind):
    """40 collections, each with a chance of at most 10^-6 / 40."""
    mechanism, rng = SOME[kind](), np.random.default_rng(5)
    for n in (1, 30, 1000, 10_000) * 10:
        tally = mechanism.tally(mechanism.perturb_many(given(mechanism, rng, n)))
        assert fakes.oddities(tally, 1e-6 / 40) == []


@pytest.mark.parametrize("kind", SOME)
def test_many_greedy_fakes_are_seen(kind):
    """The twin: two reports of three name the same item, in the part where that counts most."""
    mechanism, rng = SOME[kind](), np.random.default_rng(6)
    n, item = 20_000, 0
    honest = mechanism.tally(mechanism.perturb_many(given(mechanism, rng, n)))
    best = int(np.argmax(np.maximum(*fakes._scores(mechanism.arrays.decoder))[:, 0]))
    many = 20_000  # the part may be as rare as 1 in 400: none of these use it with chance e^-50
    own = (np.zeros(many, int), np.arange(many + 1))
    reports = mechanism.perturb_many(own if mechanism.policy.kind.lists else [item] * many)
    alone = (mechanism.tally(reports[k : k + 1]) for k in range(many))
    greedy = next(t for t in alone if t.part_n[best] and t.counts[best, item])
    times = 2 * n
    fake = d.Tally(mechanism, times * greedy.part_n, times * greedy.counts, {})
    assert fakes.oddities(honest, 1e-6) == []  # by default: 1e-3
    found = fakes.oddities(honest + fake)
    assert found and all("honest reports would" in sentence for sentence in found)


def test_what_is_said_of_a_balance():
    """Every sum of 4000 equal reports, for every report: its value, its moment, more or fewer."""
    mechanism, _, tallies = subject("fixed ")
    kept = [
        (name, a, b, moment, bound)
        for name, a, b in fakes._linear(mechanism)
        for moment, bound in [fakes._moments(mechanism, a, b)]
        if moment > 1e-9
    ]
    words = set()
    for one in tallies.values():
        tally = d.Tally(mechanism, 4000 * one.part_n, 4000 * one.counts, {})
        (test,) = fakes._balances(tally)
        assert test.family == "balances" and not test.lower
        for k, (name, a, b, moment, bound) in enumerate(kept):
            value = summed(tally, a, b)
            assert test.values[k] == pytest.approx(value, abs=1e-6)
            assert (test.moments[k], test.bounds[k]) == (4000 * moment, bound)
            if abs(value) > 1:
                far = "more" if value > 0 else "fewer"
                words.add(far)
                said = f"there are far {far} {name} than honest reports would have"
                assert test.describe(k) == said
    assert words == {"more", "fewer"}
    assert {name for name, *_ in kept} >= {f"reports of part {o}" for o in (1, 2, 3)}


def test_counts_far_below_zero_are_told():
    """An item that is never named, and a level of which none is."""
    mechanism = SOME["opt0"]()
    tally = d.Tally(mechanism, np.array([50_000]), np.full((1, 35), 50_000 // 3), {})
    tally.counts[0, 7] = 0
    (found,) = [x for x in fakes.oddities(tally) if x.startswith('"')]
    count = tally.estimate().counts[7]
    assert count < -1000
    assert found == f'"c2" has a count of {count:,.0f}, which honest reports would hardly give'


@pytest.mark.parametrize("kind", ["fixed ", "bits ", "subset", "each", "fixed 2"])
def test_the_bound_of_many_groups_is_one(kind, monkeypatch):
    """The short way for many groups is never below what every kind of answer gives."""
    decoder = subject(kind)[0].arrays.decoder
    exactly = (decoder.chance.T @ decoder.spread).max(axis=0)
    assert fakes._largest(decoder).tolist() == exactly.tolist()
    monkeypatch.setattr(fakes, "_MANY_GROUPS", decoder.chance.shape[1] - 1)
    short = fakes._largest(decoder)
    assert (short >= exactly * (1 - 1e-12)).all()
    assert (short <= decoder.spread.max(axis=0) * (1 + 1e-12)).all()
    if len(decoder.chance) == 1:
        assert short == pytest.approx(exactly)
    monkeypatch.setattr(fakes, "_MANY_GROUPS", decoder.chance.shape[1])
    assert fakes._largest(decoder).tolist() == exactly.tolist()


def test_no_reports_are_not_odd():
    assert fakes.oddities(d.Tally.empty(d.design(SURVEY))) == []
