"""What is promised, in numbers and in words, equals what enumeration of every report finds."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
import pytest
from exhaustive import distribution, sets, subsets
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small
from strategies import of_kind, policies, with_pairs

import discreet as d
from discreet.arrays.leakage import leakage_bounds
from discreet.check.exact import D
from discreet.errors import DataError, DesignError
from discreet.policy import Budget, Pair, Policy
from discreet.promises import paths, words
from discreet.promises.paths import acting

CLOSE = 1e-7  # relative: logarithms of ratios of floats, 2^-53 over probabilities of 2^-32 or more
EVERY = [
    ("fixed", "subset", 20), ("bits", "subset", 6), ("ticket", "subset", 6), ("fixed", "grr", 10),
    ("fixed", "ss", 10), ("bits", "opt0", 10), ("bits", "opt1", 6), ("bits", "opt2", 6),
    ("bits", "rappor", 6), ("bits", "oue", 6), ("ticket", "opt0", 6),
]  # fmt: skip
every = pytest.mark.parametrize(("kind", "model", "examples"), EVERY)


def over(x, y):
    """x / y; infinite if only y is 0, and 0 if both are: then neither of the two sends it."""
    return x / y if y else math.inf if x else 0


def log_ratios(mechanism, either_way=True):
    """By level and level: the largest log-ratio of any report between two different inputs; or
    only of the first over the second.
    """
    policy, document = mechanism.policy, mechanism.to_document()
    tables = [distribution(document, x) for x in range(policy.m)]
    worst = np.zeros((len(policy.levels), len(policy.levels)))
    for i, j in product(range(policy.m), repeat=2):
        if i != j:
            ratio = max(over(tables[i][y], tables[j][y]) for y in tables[i])
            for a, b in ((i, j), (j, i)) if either_way else ((i, j),):
                place = policy.level_of[a], policy.level_of[b]
                worst[place] = max(worst[place], math.log(ratio))
    return worst


# ---- pairs ---------------------------------------------------------------------------------------


@every
def test_realised_ratios_equal_enumeration(kind, model, examples):
    @settings(max_examples=examples)
    @given(policy=policies(max_items=4))
    def run(policy):
        compare(of_kind(kind, policy, model))

    run()


@settings(max_examples=20)
@given(policy=with_pairs(max_items=4))
def test_realised_ratios_with_explicit_pairs_equal_enumeration(policy):
    compare(d.design(policy))


def compare(mechanism):
    """Every figure of pairs of levels against enumeration."""
    policy, guarantee, worst = mechanism.policy, mechanism.guarantee(), log_ratios(mechanism)
    raised = log_ratios(mechanism, either_way=False)
    t = len(policy.levels)
    for i in range(t):
        assert guarantee.realised_either_way(i) == pytest.approx(worst[i], rel=CLOSE, abs=CLOSE)
        assert guarantee.realised(i) == pytest.approx(raised[i], rel=CLOSE, abs=CLOSE)
        assert guarantee.allowed(i) == pytest.approx([policy.pair_epsilon(i, j) for j in range(t)])
        assert (worst[i] <= np.array(guarantee.allowed(i)) + CLOSE).all()
    assert guarantee.level_epsilons == pytest.approx(worst.max(axis=1), rel=CLOSE, abs=CLOSE)
    assert guarantee.epsilons == pytest.approx(worst.max(axis=1), rel=CLOSE, abs=CLOSE)
    assert guarantee.ldp_epsilon == pytest.approx(worst.max(), rel=CLOSE, abs=CLOSE)
    assert guarantee.ldp_epsilon <= guarantee.ldp_bound * (1 + CLOSE) + CLOSE
    assert guarantee.holds
    listed = {
        (p.first, p.second): (math.log(p.allowed), math.log(p.realised)) for p in guarantee.pairs
    }
    assert len(listed) == len(guarantee.pairs) == t * (t + 1) // 2
    for (first, second), found in listed.items():
        i, j = int(first[1:]), int(second[1:])
        expected = policy.pair_epsilon(i, j), worst[i, j]
        assert found == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


def test_several_parts_are_the_worst_part(toy):
    mechanism = d.design(toy)
    assert len(mechanism.parts) > 1
    worst = log_ratios(mechanism)
    assert mechanism.guarantee().level_epsilons == pytest.approx(worst.max(axis=1), rel=CLOSE)
    assert worst[0].max() == pytest.approx(math.log(4), rel=1e-6)


def test_the_enumeration_sees_other_probabilities(toy):
    """The twin: the realised ratios of another budget are not these."""
    other = Policy.from_levels(
        [("serious", "ln(4.01)", ["HIV"]), ("common", "ln(6)", list(toy.items[1:]))]
    )
    assert d.design(toy, "oue").guarantee().realised(0) != pytest.approx(
        log_ratios(d.design(other, "oue"))[0], rel=CLOSE
    )


@given(
    st.lists(st.sampled_from([0.5, 1, 1.2, 2, 5]), min_size=1, max_size=5), st.sampled_from([1, 2])
)
def test_lemma_1(eps, size):
    """min{max E, 2 min E}, max E over budgets that bind a pair: a lone loosest item binds none."""
    rows = [(f"L{k}", e, [f"{k}.{i}" for i in range(size)]) for k, e in enumerate(eps)]
    guarantee = d.design(Policy.from_levels(rows), "rappor").guarantee()
    lemma = min(max(eps), 2 * min(eps))
    assert guarantee.ldp_bound <= lemma + 1e-12
    binding = max((min(x, y) for k, x in enumerate(eps) for y in eps[k + (size == 1) :]), default=0)
    assert guarantee.ldp_bound == pytest.approx(min(binding, 2 * min(eps)))
    if size == 2:
        assert guarantee.ldp_bound == pytest.approx(lemma)


def test_the_bound_of_avg_and_of_paths():
    rows = [("a", 1, ["x", "y"]), ("b", 3, ["z"])]
    assert d.design(Policy.from_levels(rows, notion="avg"), "oue").guarantee().ldp_bound == 2
    rows = [("a", 1, ["x"]), ("b", 3, ["z", "w"])]
    free = Policy.from_levels(rows, pairs=(Pair("b", "b", None),))
    assert d.design(free, "oue").guarantee().ldp_bound == 2  # z - x - w
    none = Policy.from_levels(rows, pairs=(Pair("b", "a", None),))
    assert d.design(none, "oue").guarantee().ldp_bound == math.inf


def test_pairs_are_lazy():
    """16,000 levels have 128 million pairs; the first and any one of them cost a row."""
    policy = Policy.from_budgets({f"i{k}": f"1.{k:05d}" for k in range(1, 16_001)})
    pairs = d.design(policy, "oue").guarantee().pairs
    assert len(pairs) == 16_000 * 16_001 // 2
    first = list(islice(pairs, 3))
    assert [(p.first, p.second) for p in first] == [
        ("1.00001", "1.00001"),
        ("1.00001", "1.00002"),
        ("1.00001", "1.00003"),
    ]
    assert pairs[:3] == first and pairs[1] == first[1]
    assert pairs[16_000].first == pairs[16_000].second == "1.00002"
    assert pairs[-1].first == pairs[len(pairs) - 1].second == "1.16"
    assert all(p.realised <= p.allowed * (1 + CLOSE) for p in first)
    with pytest.raises(IndexError):
        pairs[len(pairs)]


@pytest.mark.parametrize("what", ["pairs", "set_budget", "leakage_bounds", "sentences"])
def test_huge_budgets(what):
    rows = [("a", 1000, ["x", "y"]), ("b", 1000, ["z", "w"])]
    if what == "set_budget":
        guarantee = d.design(Policy.from_levels(rows, kind="set"), "rappor", padding=2).guarantee()
        assert guarantee.set_budget(["x"]) == pytest.approx(1000)
        return
    policy = Policy.from_levels(rows, pairs=(Pair("a", "a", None),))
    if what == "leakage_bounds":
        assert leakage_bounds(policy, "ldp").lower == pytest.approx(0)
        return
    guarantee = d.design(
        Policy.from_levels(rows) if what == "pairs" else policy, "rappor"
    ).guarantee()
    assert len(list(guarantee.pairs)) == 3 if what == "pairs" else len(guarantee.sentences()) == 3


# ---- leakage -------------------------------------------------------------------------------------


def leakage_by_enumeration(mechanism, prior):
    """The smallest and largest Pr(x) / Pr(x | y) = Pr(y) / Pr(y | x), per item x, over all y."""
    document = mechanism.to_document()
    tables = [distribution(document, x) for x in range(mechanism.m)]
    marginal = {
        y: sum(p * float(table[y]) for p, table in zip(prior, tables, strict=True))
        for y in tables[0]
    }
    ratios = [[marginal[y] / float(table[y]) for y in table] for table in tables]
    return np.array([min(r) for r in ratios]), np.array([max(r) for r in ratios])


@every
def test_leakage_equals_enumeration(kind, model, examples):
    """Exact for bits, a bound for tickets; always within what holds for every prior."""

    @settings(max_examples=examples)
    @given(policy=policies(max_items=4, max_size=3), data=st.data())
    def run(policy, data):
        mechanism, m = of_kind(kind, policy, model), policy.m
        weights = data.draw(st.lists(st.integers(1, 9), min_size=m, max_size=m))
        prior = np.array(weights, dtype=float) / sum(weights)
        lower, upper = leakage_by_enumeration(mechanism, prior)
        found, bounds = mechanism.guarantee().leakage(prior), mechanism.guarantee().leakage()
        if kind == "ticket":
            assert (found.upper >= upper * (1 - CLOSE)).all()
            assert (found.lower <= lower * (1 + CLOSE)).all()
        else:
            assert found.upper == pytest.approx(upper, rel=CLOSE)
            assert found.lower == pytest.approx(lower, rel=CLOSE)
        level_of = np.array(policy.level_of)
        assert (upper <= bounds.upper[level_of] * (1 + CLOSE)).all()
        assert (lower >= bounds.lower[level_of] * (1 - CLOSE)).all()
        if policy.notion == "min":
            table = leakage_bounds(policy, "minid")
            assert (upper <= table.upper * (1 + CLOSE)).all()
            assert (lower >= table.lower * (1 - CLOSE)).all()

    run()


def test_the_enumeration_of_leakage_sees_another_prior(toy):
    """The twin: what leaks depends on the prior, by far more than the tolerance."""
    for model in ("subset", "opt0"):
        mechanism = d.design(toy, model)
        lower, upper = leakage_by_enumeration(mechanism, [0.2] * 5)
        found = mechanism.guarantee().leakage([0.21, 0.19, 0.2, 0.2, 0.2])
        assert found.upper != pytest.approx(upper, rel=1e3 * CLOSE)
        assert found.lower != pytest.approx(lower, rel=1e3 * CLOSE)


def test_leakage_of_a_prior_with_zeros(toy):
    """An answer nobody gives is still bounded; an answer everybody gives leaks nothing."""
    for model in ("opt0", "subset"):
        leak = d.design(toy, model).guarantee().leakage([1, 0, 0, 0, 0])
        assert leak.lower[0] == leak.upper[0] == pytest.approx(1)
        assert leak.upper[1] > 1 > leak.lower[1]


def test_the_papers_table(toy):
    low, high = math.log(4), math.log(6)
    for notion in ("ldp", "pldp"):
        bounds = leakage_bounds(toy, notion)
        assert bounds.lower == pytest.approx(
            [math.exp(-low)] * 5
        ) and bounds.upper == pytest.approx([math.exp(low)] * 5)
    bounds = leakage_bounds(toy, "minid")
    assert bounds.upper == pytest.approx([4, 6, 6, 6, 6]) and bounds.lower == pytest.approx(
        1 / bounds.upper
    )
    wide = Policy.from_levels([("a", 1, ["x"]), ("b", 5, ["y"])])
    assert leakage_bounds(wide, "minid").upper == pytest.approx([math.e, math.exp(2)])  # 2 min E
    distance = np.abs(np.subtract.outer(range(5), range(5))) / 2
    prior = [0.1, 0.2, 0.3, 0.25, 0.15]
    bounds = leakage_bounds(toy, "gi", prior, distance)
    for sign, found in ((-1, bounds.lower), (1, bounds.upper)):
        expected = [
            sum(prior[j] * math.exp(sign * low * distance[i][j]) for j in range(5))
            for i in range(5)
        ]
        assert found == pytest.approx(expected, rel=1e-12)
    assert high > low


def test_leakage_errors(toy):
    with pytest.raises(DesignError, match="needs a distance"):
        leakage_bounds(toy, "gi")
    with pytest.raises(DesignError, match="ldp, pldp, gi, minid"):
        leakage_bounds(toy, "dp")
    guarantee = d.design(toy, "opt0").guarantee()
    with pytest.raises(DesignError, match="not a composition"):
        d.compose([guarantee, guarantee]).leakage("uniform")


# ---- sets ----------------------------------------------------------------------------------------

SETS = Policy.from_levels([("a", "ln(2)", ["x"]), ("b", "ln(5)", ["y", "z"])], kind="set")


@pytest.mark.parametrize(
    ("items", "padding", "factor"),
    [
        ((), 2, 2),
        (("x",), 1, 2),
        (("y",), 1, 5),
        (("x", "y"), 2, (2 + 5) / 2),
        (("y",), 2, 5 / 2 + 2 / 2),  # eta = 1/2, the dummy at ln 2
        (("x", "y", "z"), 2, (2 + 5 + 5) / 3),  # more items than the padding: eta = 1
        (("y", 2), 4, (2 / 4) * 5 + (2 / 4) * 2),
        (("y", "y", 1), 1, 5),  # a set
    ],
)
def test_set_budget_by_hand(items, padding, factor):
    guarantee = d.design(SETS, "opt0", padding=padding).guarantee()
    assert guarantee.set_budget(items) == pytest.approx(math.log(factor), rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("bits", "opt0"),
        ("bits", "oue"),
        ("bits", "subset"),
        ("fixed", "subset"),
        ("ticket", "subset"),
    ],
)
@pytest.mark.parametrize("padding", [1, 2, 4])
def test_set_bound_and_item_epsilons_against_enumeration(kind, model, padding):
    """Lemma 2 is a bound; the promise per item covers every set with and without it."""
    mechanism = of_kind(kind, SETS, model, padding=padding)
    guarantee, of = mechanism.guarantee(), sets(mechanism.to_document())
    tables = {x: of(x) for x in subsets(3)}
    for x, y in product(tables, repeat=2):
        worst = math.log(max(tables[x][r] / tables[y][r] for r in tables[x]))
        assert worst <= guarantee.set_bound(x, y) + CLOSE
        if not x & y and len(mechanism.parts) == 1:  # then it is tight
            assert worst == pytest.approx(guarantee.set_bound(x, y), abs=CLOSE)
        assert worst <= min(guarantee.set_budget(x), guarantee.set_budget(y)) + CLOSE
        changed = x ^ y
        if len(changed) == 1:
            assert worst <= guarantee.item_epsilons[SETS.level_of[min(changed)]] + CLOSE
    allowed = [float(level.budget) for level in SETS.levels]
    assert (np.array(guarantee.item_epsilons) <= np.array(allowed) + CLOSE).all()
    assert guarantee.epsilons is guarantee.item_epsilons


def test_set_errors(toy):
    with pytest.raises(DesignError, match="takes single answers"):
        d.design(toy, "opt0").guarantee().set_budget(["HIV"])
    guarantee = d.design(SETS, "opt0", padding=1).guarantee()
    for bad, sentence in (
        (["q"], '"q" is not an item'),
        ([3], "from 0 to 2"),
        ([-1], "out of range"),
        ([True], "got True"),
    ):
        with pytest.raises(DataError, match=sentence):
            guarantee.set_budget(bad)
    with pytest.raises(DataError, match='did you mean "headache"'):
        toy.place("headahce")


# ---- composition ---------------------------------------------------------------------------------


def test_a_composition_names_the_items_of_its_first_policy():
    """The second has them in another order and in other levels."""
    first = Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y", "z"])])
    second = Policy.from_levels([("c", 1, ["z", "y"]), ("e", 3, ["x"])])
    both = d.compose([d.design(policy, "grr").guarantee() for policy in (first, second)])
    assert both.policy == first
    assert [text.split(":")[0] for text in both.sentences()] == [
        'a + e ("x")', 'b + c ("y", "z")'
    ]  # fmt: skip


def test_budgets_of_a_set_that_differ_by_more_than_floats_hold():
    rows = [("a", 1, ["x"]), ("b", 1000, ["y", "z"])]
    guarantee = d.design(Policy.from_levels(rows, kind="set"), "oue", padding=2).guarantee()
    assert guarantee.set_budget(["x", "y"]) == pytest.approx(1000 - math.log(2))


def test_composition_adds_up(toy):
    mechanisms = [d.design(toy, model) for model in ("opt0", "subset", "ss")]
    guarantees = [m.guarantee() for m in mechanisms]
    both = d.compose(guarantees)
    assert both.holds and both.names == ("serious + serious + serious", "common + common + common")
    for i in range(2):
        assert both.allowed(i) == pytest.approx(np.sum([g.allowed(i) for g in guarantees], axis=0))
        assert both.realised(i) == pytest.approx(
            np.sum([g.realised(i) for g in guarantees], axis=0)
        )
    assert both.ldp_bound == pytest.approx(sum(g.ldp_bound for g in guarantees))
    assert both.ldp_epsilon <= both.ldp_bound * (1 + CLOSE)
    nested = d.compose([d.compose(guarantees[:2]), guarantees[2]])
    assert nested == both
    assert d.compose(guarantees[:1]).realised(0) == pytest.approx(guarantees[0].realised(0))


def test_composition_of_two_reports_by_enumeration():
    """Two reports: at most what is promised; reached when both mechanisms are the same."""
    policy = Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y", "z"])])
    twice = d.design(policy, "opt0")
    worst = 2 * log_ratios(twice)
    both = d.compose([twice.guarantee()] * 2)
    for i in range(2):
        assert both.realised(i) == pytest.approx(worst[i], rel=CLOSE)


def test_classes_are_refined_and_order_does_not_matter():
    """Items of one class share their level in every policy, wherever they stand."""
    one = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])])
    two = Policy.from_levels([("q", 3, ["w", "z"]), ("p", 0.5, ["y"]), ("r", 0.25, ["x"])])
    composed = d.compose([d.design(one, "oue").guarantee(), d.design(two, "oue").guarantee()])
    assert composed.names == ("a + r", "a + p", "b + q")
    assert composed.class_of == (0, 1, 2, 2) and composed.sizes == [1, 1, 2]
    expected = {("x", "y"): 1 + 0.25, ("x", "z"): 1 + 0.25, ("y", "z"): 1 + 0.5, ("z", "w"): 2 + 3}
    for (first, second), budget in expected.items():
        i, j = (composed.class_of[one.index[item]] for item in (first, second))
        assert composed.allowed(i)[j] == composed.allowed(j)[i] == pytest.approx(budget)
        assert composed.realised(i)[j] <= budget + CLOSE
    assert composed.realised(0)[0] == 0.0  # a class of one item has no other input


def test_composition_of_sets():
    guarantees = [d.design(SETS, model, padding=2).guarantee() for model in ("opt0", "oue")]
    both = d.compose(guarantees)
    assert both.item_epsilons == pytest.approx(
        np.sum([g.item_epsilons for g in guarantees], axis=0)
    )
    with pytest.raises(DesignError, match="not a composition"):
        both.set_budget(["x"])


def test_composition_errors(toy):
    single_ = d.design(toy, "opt0").guarantee()
    with pytest.raises(DesignError, match="nothing to compose"):
        d.compose([])
    other = Policy.from_levels([("serious", 1, ["HIV"])])
    with pytest.raises(DesignError, match=r'"[a-z]+" is not in both'):
        d.compose([single_, d.design(other, "opt0").guarantee()])
    rows = [("all", 1, list(toy.items))]
    with pytest.raises(DesignError, match="single answers and of lists"):
        d.compose(
            [
                single_,
                d.design(Policy.from_levels(rows, kind="set"), "opt0", padding=1).guarantee(),
            ]
        )


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["subset", "opt0", "oue", "grr", "ss"])
@settings(max_examples=15)
@given(policy=policies(max_levels=4, max_size=5, max_items=9))
def test_one_sentence_per_level_rounded_up(model, policy):
    guarantee = d.design(policy, model).guarantee()
    sentences = guarantee.sentences()
    assert len(sentences) == len(policy.levels)
    for k, (level, sentence) in enumerate(zip(policy.levels, sentences, strict=True)):
        assert (
            sentence.startswith(f"{level.name} (")
            and f'"{k}.0"' in sentence
            and sentence.endswith(".")
        )
        more = policy.level_sizes[k] - 3
        assert (f"and {more} more" in sentence) == (more > 0)
        told = float(re.search(r"factor of ([\d,.]+)\.$", sentence)[1].replace(",", ""))
        factor = math.exp(guarantee.level_epsilons[k])
        assert factor <= told * (1 + CLOSE)
        assert told <= max(factor + 0.01, factor * (1 + 1e-3)) + 1e-9


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (1, "1"),
        (1.0001, "1.01"),
        (3.99, "3.99"),
        (3.991, "4"),
        (4, "4"),
        (999.99, "999.99"),
        (999.991, "1,000"),
        (1000, "1,000"),
        (1000.1, "1,001"),
        (12345, "12,345"),
        (999_999_999, "999,999,999"),
        (10**9, "1.0 × 10^9"),
        (Fraction(10**9) + Fraction(1, 10**30), "1.1 × 10^9"),
        (991 * 10**7, "1.0 × 10^10"),
        (2 * 10**300, "2.0 × 10^300"),
        (Fraction(10**9_000), "1.0 × 10^9000"),  # longer than text of a number may be
        (Fraction(10**9_000 - 1), "1.0 × 10^9000"),
        (Fraction(31 * 10**8_999 + 1), "3.2 × 10^9000"),
    ],
)
def test_factors_are_rounded_up(factor, told):
    assert words.in_words(factor) == told


@pytest.mark.parametrize(
    "factor",
    [
        *(4.000000005, 1000.0000005, 1.0000000005, 1 + 1e-12, 4 + 1e-12, 1 + 2**-52),
        *(math.nextafter(4, 5), math.nextafter(100, 101), 1000 + 2**-43),
        *(Fraction(4) + Fraction(1, 10**40), Fraction(1000) + Fraction(1, 10**40)),
    ],
)
def test_factors_are_never_rounded_down(factor):
    """Not even in the last digit, and not by much."""
    told = Fraction(words.in_words(factor).replace(",", ""))
    assert factor <= told <= Fraction(factor) + (Fraction(1, 100) if factor < 1000 else 1)


def exactly(mechanism):
    """Per level, the largest ratio of any report between two inputs, in integers."""
    states = []
    for part in mechanism.parts:
        rows = {}
        for item, level in enumerate(mechanism.policy.level_of):
            g = mechanism.groups[level]
            c, a, b = part.ints.chance[g], part.ints.own[g], part.ints.other[g]
            base = part.denominators[g]
            rows[item] = (
                {Fraction(c * D)}
                if not a
                else {Fraction(c * a * base, b), Fraction(c * (D - a) * base, base - b)}
            )
        if mechanism.policy.kind.lists:
            rows["none"] = {Fraction(part.ints.none * D)}
        states.append(rows)
    found = [Fraction(1)] * len(mechanism.policy.levels)
    for rows in states:
        for item, level in enumerate(mechanism.policy.level_of):
            for other in rows.keys() - {item}:
                high = max(max(rows[item]) / min(rows[other]), max(rows[other]) / min(rows[item]))
                found[level] = max(found[level], high)
    return found


@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
def test_promised_factors_are_those_of_the_integers(kind):
    for what in ("parts", "one", "groups"):
        mechanism = small(kind, what, None)
        guarantee = mechanism.guarantee()
        assert list(guarantee.factors) == exactly(mechanism)
        floats = [float(x) for x in guarantee.factors]
        assert floats == pytest.approx(np.exp(guarantee.epsilons).tolist(), rel=1e-12)


def test_a_factor_that_is_a_whole_number_is_told_as_one(toy):
    """Generalised randomised response over five items at ln(4) reports the answer in one of two
    cases: 4 exactly, though e^ln(4) in floats is more.
    """
    policy = Policy.from_levels([("all", "ln(4)", list("abcde"))])
    part = {"chance": [D], "own": [D // 2], "other": [1]}
    body = {
        "format": "discreet-mechanism/3",
        "policy": policy.to_canonical(),
        "model": "grr",
        "prior": "uniform",
        "encoding": {"kind": "fixed"},
        "padding": 0,
        "groups": [0],
        "shares": [D],
        "parts": [part],
    }
    guarantee = d.Mechanism.from_canonical(body).guarantee()
    assert guarantee.factors == (Fraction(4),)
    assert guarantee.sentences()[0].endswith("by at most a factor of 4.")
    body["parts"] = [{**part, "own": [D // 2 - 1]}]  # and a little less is told as 4, too
    assert d.Mechanism.from_canonical(body).guarantee().sentences()[0].endswith("a factor of 4.")
    once = d.Mechanism.from_canonical(body).guarantee()
    assert d.compose([once, once]).sentences()[0].endswith("a factor of 16.")


def test_a_promise_is_never_one_unless_nothing_is_told():
    """Chances that differ by 2^-32 change the odds: by at most 1.01, and not by at most 1."""
    policy = Policy.from_levels([("all", "ln(4)", list("abc"))])
    body = d.design(policy, "rappor").to_canonical()
    body["parts"][0] |= {"own": [D // 2 + 1], "other": [D // 2]}
    guarantee = d.Mechanism.from_canonical(body).guarantee()
    assert guarantee.sentences()[0].endswith("by at most a factor of 1.01.")
    body["parts"][0] |= {"own": [D // 2]}
    assert d.Mechanism.from_canonical(body).guarantee().sentences()[0].endswith("a factor of 1.")


def test_sets_are_told_about_having(toy):
    sentences = d.design(SETS, "opt0", padding=2).guarantee().sentences()
    assert len(sentences) == 3
    assert all(
        "having or not having it changes the chance of any report by at most" in s
        for s in sentences[:2]
    )
    assert sentences[2].startswith("Whole lists: whoever sees your report can change their odds")
    assert "answer and any other" in d.design(toy, "opt0").guarantee().sentences()[0]


def test_what_is_not_protected_is_said():
    rows = [("a", "ln(2)", ["x"]), ("b", 2, ["y", "z"]), ("c", 2, ["w"])]
    pairs = (Pair("b", "b", None), Pair("a", "b", Budget.parse("ln(3)")), Pair("c", "c", None))
    guarantee = d.design(Policy.from_levels(rows, pairs=pairs), "opt0").guarantee()
    sentences = guarantee.sentences()
    assert len(sentences) == 4  # c has one item: there is no pair to leave out
    assert guarantee.unprotected == [("b", "b", pytest.approx(math.log(9)))]  # through a
    assert sentences[3] == (
        'The organiser chose not to protect which of two answers of "b" is yours: '
        "they are kept apart only through others, by a factor of at most 9."
    )
    free = [Pair("c", x, None) for x in "ab"]
    guarantee = d.design(Policy.from_levels(rows, pairs=tuple(free)), "opt0").guarantee()
    assert [s.rsplit(": ", 1)[1] for s in guarantee.sentences()[3:]] == [
        "they are kept apart not at all."
    ] * 2


def test_lists_have_sentences_and_factors_of_their_own():
    whole = d.design(SETS, padding=2).guarantee()
    assert str(whole).splitlines() == whole.sentences()
    told = words.in_words(whole.list_factor(["x", "y"]))
    assert whole.list_sentence(["x", "y"]).endswith(
        f"any other list by at most a factor of {told}."
    )
    with pytest.raises(DataError, match="needs a set of items"):
        whole.list_factor("x")
    apart = d.design(replace(SETS, kind="each")).guarantee()
    x, y = apart.factors
    assert apart.list_factor(["x", "y", "z"]) == x * y * y
    assert apart.ldp_epsilon == pytest.approx(math.log(2) + 2 * math.log(5), rel=1e-6)
    assert apart.list_sentence(["x"]).endswith("an empty one by at most a factor of 2.")
    assert apart.list_sentence([]).startswith("You ticked nothing.")
    for asked in (lambda: apart.set_factor, lambda: apart.set_budget(["x"])):
        with pytest.raises(DesignError, match='kind = "each"'):
            asked()
    assert apart.set_bound(["x", "y"], ["y", "z"]) == pytest.approx(math.log(10), rel=1e-6)


def test_the_bound_of_plain_ldp_is_never_below_what_is_realised_of_sets():
    """A lone item has other sets of its level beside it: itself with others, and none."""
    for rows in (
        [("a", 1, ["x"]), ("b", 5, ["z"])],
        [("a", 1, ["x"])],
        [("a", 1, ["x", "y"]), ("b", 1.5, ["z"])],
    ):
        for change in ({}, {"notion": "avg"}, {"strict": True}, {"kind": "each"}):
            policy = Policy.from_levels(rows, **{"kind": "set", **change})
            padding = None if "kind" in change else 2
            guarantee = d.design(policy, padding=padding).guarantee()
            assert guarantee.ldp_epsilon <= guarantee.ldp_bound * (1 + 1e-9)
            with pytest.raises(DesignError, match="leakage is defined for single answers"):
                guarantee.leakage()
    each = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 1.5, ["z"])], kind="each")
    assert d.design(each).guarantee().ldp_bound == 3.5


def test_pairs_of_items_on_their_own_are_allowed_both_budgets():
    policy = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z"])], kind="each")
    for pair in d.design(policy).guarantee().pairs:
        assert pair.realised <= pair.allowed * (1 + 1e-12)
    allowed = [pair.allowed for pair in d.design(policy).guarantee().pairs]
    assert allowed == pytest.approx([math.exp(2), math.exp(3), math.exp(4)])


# ---- what is said to people ----------------------------------------------------------------------

WEAK = (
    "This is weak protection: one report can change the odds between {} by up to a factor of {}, so"
)
APART = [("a", 1, ["x", "y"]), ("b", 1, ["z", "w"])]


@pytest.mark.parametrize(
    ("rows", "settings", "caution"),
    [
        ([("a", "ln(100)", ["x", "y"])], {}, ""),
        ([("a", "ln(101)", ["x", "y"])], {}, WEAK.format("two answers", 101)),
        ([("a", 1, ["x"]), ("b", 20, ["y", "z"])], {}, ""),  # 20 acts as 2
        (APART, {"pairs": [("a", "b", None)]}, "Some answers are not protected from each other:"),
        # not protected as such, and still by a factor of e^2 through another level
        ([*APART, ("c", 1, ["u"])], {"pairs": [("a", "b", None)]}, ""),
        ([("a", 1, ["x"]), ("b", 1, ["y", "z"])], {"pairs": [("a", "a", None)]}, ""),
        ([("a", 2, "xyz")], {"kind": "set", "padding": 2}, ""),
        (
            [("a", 6, "xyz")],
            {"kind": "set", "padding": 1},
            WEAK.format("having and not having an answer", "403.43"),
        ),
        (
            [("a", "ln(105)", "uvwxyz")],
            {"kind": "set", "padding": 6},
            WEAK.format("two lists of answers", "105"),
        ),
        ([("a", 1, "xy")], {"kind": "each"}, ""),
        (
            [("a", 1, "vwxyz")],
            {"kind": "each"},
            "Each answer is protected on its own, but a list of several answers is not",
        ),
        (
            [("a", 5, "xy")],
            {"kind": "each"},
            WEAK.format("having and not having an answer", "148.42"),
        ),
    ],
)
def test_nobody_is_reassured_where_it_is_not_true(rows, settings, caution):
    rows = [(name, epsilon, list(items)) for name, epsilon, items in rows]
    model = "hits" if "two lists" in caution else None  # whose items tell less than whole lists
    guarantee = d.design(Policy.from_levels(rows, **settings), model).guarantee()
    told = guarantee.caution
    assert told.startswith(caution) and bool(told) == bool(caution)
    safe = "nobody, not even the organiser, can tell for sure what you answered"
    assert (safe in guarantee.lead) == (not caution) and told in guarantee.lead
    assert str(guarantee).startswith(told or guarantee.sentences()[0])


def test_a_caution_is_of_one_mechanism():
    one = d.design(Policy.from_levels([("a", 6, ["x", "y"])])).guarantee()
    both = d.compose([one, one])
    assert str(both) == "\n".join(both.sentences())
    with pytest.raises(DesignError, match="needs one mechanism"):
        _ = both.caution


def longest_path(policy, k):
    """What the budget of level k can act as, by Bellman and Ford over single inputs."""
    inputs = range(policy.m)
    at = policy.level_of
    distances = []
    for start in (i for i in inputs if at[i] == k):
        far = [0.0 if i == start else math.inf for i in inputs]
        for _ in inputs:
            for i in inputs:
                for j in inputs:
                    if i != j:
                        far[j] = min(far[j], far[i] + policy.pair_epsilon(at[i], at[j]))
        distances.append(max(far[i] for i in inputs if i != start))
    return max(distances)


@pytest.mark.parametrize("notion", ["min", "avg"])
@pytest.mark.parametrize("pairs", [(), [("a", "b", 3)], [("a", "c", None)], [("b", "b", 0.5)]])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 1, 1), (1, 2, 2), (1, 1, 3)])
def test_a_budget_acts_as_the_longest_path(notion, pairs, sizes):
    rows = [
        (name, epsilon, [f"{name}{k}" for k in range(size)])
        for name, epsilon, size in zip("abc", (1, 2.5, 7), sizes, strict=True)
    ]
    policy = Policy.from_levels(rows, notion=notion, pairs=pairs)
    for k, acts in enumerate(acting(policy)):
        expected = min(float(policy.levels[k].budget), longest_path(policy, k))
        assert (float(policy.levels[k].budget) if acts is None else acts) == pytest.approx(expected)
    longest = max(longest_path(policy, k) for k in range(3))
    assert d.design(policy).guarantee().ldp_bound == pytest.approx(longest)


def test_a_budget_without_another_input_acts_as_itself():
    """Of an item that is a question of its own, and of the only item; beside others 2.5 acts as 2,
    twice the smallest.
    """
    rows = [("a", 1, ["x"]), ("b", 2.5, ["y", "z"])]
    assert acting(Policy.from_levels(rows, kind="each")) == [None, None]
    assert acting(Policy.from_levels(rows[:1])) == [None]
    assert acting(Policy.from_levels(rows)) == [None, 2]
    assert acting(Policy.from_levels(rows, kind="set")) == [None, 2]


# ---- paths, sets and compositions that were wrong once -------------------------------------------


def test_paths_through_several_levels_are_found_both_ways():
    rows = [(name, 1, [name.lower()]) for name in "ABCE"]
    open_ = [("A", "B", None), ("A", "E", None), ("C", "E", None)]
    policy = Policy.from_levels(rows, pairs=open_)
    table = paths.shortest(policy)
    assert [list(row) for row in zip(*table)] == [list(row) for row in table]
    assert table[0][3] == 3.0  # from A over C and B to E
    by_hand = np.array([[policy.pair_epsilon(i, j) for j in range(4)] for i in range(4)])
    for _ in range(4):  # Bellman and Ford: as many steps as there are levels
        by_hand = np.minimum(by_hand, (by_hand[:, :, None] + by_hand[None, :, :]).min(axis=1))
    assert np.array(table) == pytest.approx(by_hand)
    guarantee = d.design(policy, "grr").guarantee()
    assert guarantee.ldp_bound == 3.0 and guarantee.caution == ""


@pytest.mark.parametrize("notion", ["min", "avg"])
@pytest.mark.parametrize("budgets", [(1, 1, 2), (1, 3, 2), (2, 0.5, 0.75), (3, 3, 3)], ids=str)
def test_the_factor_through_others_is_that_of_the_shortest_path(notion, budgets):
    """From a over c to b, rounded up to hundredths."""
    rows = [(name, budget, [name.upper()]) for name, budget in zip("abc", budgets, strict=True)]
    policy = Policy.from_levels(rows, notion=notion, pairs=[("a", "b", None)])
    guarantee = d.design(policy, "grr").guarantee()
    path = policy.pair_epsilon(0, 2) + policy.pair_epsilon(2, 1)
    assert guarantee.unprotected == [("a", "b", pytest.approx(path))]
    factor = math.ceil(100 * math.exp(path)) / 100
    assert guarantee.sentences()[-1].endswith(f"by a factor of at most {factor:g}.")


def test_steps_too_small_to_be_told_from_none_leave_the_factor():
    """To stay at the first level costs 1e-20, which a sum of floats forgets."""
    rows = [("a", 1, ["x", "y"]), ("b", 1, ["z"]), ("c", 1, ["w"])]
    policy = Policy.from_levels(rows, pairs=[("a", "a", "1e-20"), ("a", "b", None)])
    words = paths.through_others(policy, paths.shortest(policy), 0, 1)
    assert words == f"{math.ceil(100 * math.exp(2)) / 100:g}"


@pytest.mark.parametrize(("budget", "words"), [(354, "× 10^307"), (356, "more than any number")])
def test_factors_beyond_every_float_are_said_in_words(budget, words):
    rows = [(name, budget, [name.upper()]) for name in "abc"]
    policy = Policy.from_levels(rows, pairs=[("a", "b", None)])
    assert paths.through_others(policy, paths.shortest(policy), 0, 1).endswith(words)


def test_many_open_pairs_are_looked_at_once(monkeypatch):
    rows = [(f"L{k}", 1, [f"i{k}"]) for k in range(30)]
    open_ = [(f"L{i}", f"L{j}", None) for i in range(30) for j in range(i) if i - j > 2]
    guarantee = d.design(Policy.from_levels(rows, pairs=open_), "grr").guarantee()
    asked, shortest = [], paths.shortest
    monkeypatch.setattr(paths, "shortest", lambda policy: asked.append(policy) or shortest(policy))
    assert guarantee.caution == "" and len(asked) <= 2  # for the pairs, and for what is protected
    assert len(guarantee.unprotected) == len(open_) and len(asked) <= 3


def test_levels_of_sets_say_nothing_of_an_empty_sample():
    """Between items alone, whatever an empty sample does."""
    policy = Policy.from_levels([("a", 3, ["x"]), ("b", 4, ["y", "z"])], kind="set")
    for model in ("opt0", "oue", "subset"):
        guarantee = d.design(policy, model, padding=2).guarantee()
        worst = [max(guarantee.realised(k)) for k in range(2)]
        assert guarantee.level_epsilons == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("count", [1, 2, 100, 300])
def test_the_factors_of_a_composition_are_never_too_small(count):
    mechanism = d.design(Policy.from_levels([("a", 4, ["x", "y"]), ("b", 5, ["z"])]))
    once = mechanism.guarantee().factors
    together = d.compose([mechanism.guarantee()] * count).factors
    assert all(many >= one**count for one, many in zip(once, together, strict=True))


@pytest.mark.parametrize(
    ("items", "cap", "distances"),
    [
        ("ab", None, ["1 step"]),
        ("abc", None, ["1 step", "2 steps"]),
        ("abcdef", None, ["1 step", "2 steps", "5 steps"]),
        ("abcdef", 3, ["1 step", "2 steps", "3 steps"]),
        ("abcdef", 2, ["1 step", "2 steps"]),
        ("abcdef", 1, ["1 step"]),
    ],
)
def test_a_scale_is_told_by_neighbours_two_steps_and_the_largest_distance(items, cap, distances):
    policy = d.Policy.from_scale(list(items), step=1, cap=cap)
    (first, *_) = d.design(policy).guarantee().sentences()
    found = " ".join(d.design(policy).guarantee().sentences())
    assert [f"{steps} away" in found for steps in distances] == [True] * len(distances)
    assert found.count(" away") == len(distances)
    assert (" away or more" in found) == (cap is not None)
    assert "1 step away" in first and "a factor of 2.72" in first
