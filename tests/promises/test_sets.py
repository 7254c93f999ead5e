"""Whole sets by enumeration: every set, every report, exact fractions, every closed formula."""

import copy
import random
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path

import exhaustive
import pytest
from exhaustive import TOTAL, D, apart, hits_patterns, in_one_unit, item_factors, sets, subsets

pytestmark = pytest.mark.xdist_group("vectors")  # they share the good mechanisms
HITS = [
    "four-hits", "five-hits", "five-hits-three", "five-hits-alike", "six-hits", "six-hits-halves",
    "six-strict-hits", "three-hits",
]  # fmt: skip
EACH = ["toy-each", "toy-each-oue", "four-each", "one-item-each"]
BITS = [
    "three-set-bits", "four-set-bits", "five-cut-bits", "six-strict-bits", "five-strict-bits",
]  # fmt: skip
OTHERS = [
    "two-silent-set", "three-set-subset", "three-set-ss", "five-strict-ss", "three-set-ticket",
    "six-strict-ticket",
]  # fmt: skip
STRICT = [name for name in (*HITS, *BITS, *OTHERS) if "strict" in name]
REACHED = ["five-hits", "five-hits-alike", "six-strict-hits"]  # with items enough for both ends


@pytest.fixture(scope="module")
def vectors():
    """The modules of tests/vectors: how mechanisms are made, and their second implementation."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(Path(__file__).parents[1] / "vectors"))
    import building
    import good
    import reference

    yield building, good, reference
    patch.undo()


@pytest.fixture(scope="module")
def reference(vectors):
    return vectors[2]


@pytest.fixture(scope="module")
def good(vectors):
    return vectors[1].good_mechanisms()


@pytest.fixture(scope="module")
def rows(good):
    """Of a mechanism, the chances of all reports given every set, in one unit."""
    return cache(lambda name: in_one_unit(laws(good[name])))


def laws(document):
    """Of every set: the chance of every report, of hits of every pattern."""
    law = hits_patterns if document["encoding"]["kind"] == "hits" else sets
    of = law(document)
    return {x: of(x) for x in subsets(len(document["policy"]["items"]))}


def levels(document):
    return range(len(document["policy"]["levels"]))


# ---- chances -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*HITS, *EACH, *BITS, *OTHERS])
def test_probabilities_sum_to_one(name, good):
    for law in laws(good[name]).values():
        assert sum(law.values()) == 1
        assert min(law.values()) > 0


@pytest.mark.parametrize(("name", "prime", "padding"), [("LEVELS", 5, 2), ("HALVES", 7, 1)])
def test_step_by_step_reports_of_one_pattern_have_one_chance(name, prime, padding, vectors):
    """So that patterns are enough; also for more items than a polynomial has coefficients."""
    building, good, reference = vectors
    policy = getattr(good, name)
    cuts = {tuple(int(k >= cut) for k in levels({"policy": policy})): "1" for cut in (0, 1)}
    document = building.hits(policy, prime, padding, dict.fromkeys(cuts, "1/2"))
    of, exact = sets(document), hits_patterns(document)
    counts = [exhaustive.pattern_counts(document, part) for part in document["parts"]]
    for x in subsets(len(policy["items"])):
        table, patterns = of(x), exact(x)
        assert len(table) == 2 * prime ** (padding + 2)
        for report, p in table.items():
            o, named = exhaustive.part_and_named(document, report)
            named = frozenset(named)
            assert p == patterns[o, named] / counts[o][named]
    for report in table:
        refused, o, named = reference.meaning(document, report)
        assert (refused, (o, named)) == ("", exhaustive.part_and_named(document, report))


def test_up_to_as_many_items_as_coefficients_are_independent(good):
    part = good["four-hits"]["parts"][0]
    items, limit = (0, 1, 2, 3), part["limit"]
    for y, count in exhaustive.counted(11, 4, limit, items).items():
        assert count == limit ** len(y) * (11 - limit) ** (4 - len(y))
    fewer = exhaustive.counted(11, 3, limit, items)  # one coefficient less: no more
    assert any(c != limit ** len(y) * (11 - limit) ** (4 - len(y)) / 11 for y, c in fewer.items())


@pytest.mark.parametrize("name", HITS)
def test_the_density_is_what_the_check_says(name, good, reference):
    document = good[name]
    of, nothing = hits_patterns(document), hits_patterns(document)(frozenset())
    groups = exhaustive.groups_of(document)
    for x in subsets(len(groups)):
        if len(x) > document["padding"]:
            continue
        for (o, named), p in of(x).items():
            part = document["parts"][o]
            own = [i for i in x if part["active"][groups[i]]]
            f = reference.density(document, part)[len(own), len(named.intersection(own))]
            assert p == f * nothing[o, named]


# ---- what is counted -----------------------------------------------------------------------------


def means(document, part, o, law):
    """How often every item, and every two, are named in reports of the part."""
    share, m = Fraction(part["chance"], D), len(document["policy"]["items"])
    one = [sum(p for (k, y), p in law.items() if k == o and i in y) / share for i in range(m)]
    two = {
        (i, j): sum(p for (k, y), p in law.items() if k == o and i in y and j in y) / share
        for i, j in combinations(range(m), 2)
    }
    return one, two


@pytest.mark.parametrize("name", HITS)
def test_own_items_are_named_more_often_and_others_as_if_nobody_had_them(name, good):
    """Others: exactly b, and any two of them without correlation."""
    document, s = good[name], good[name]["padding"]
    groups = exhaustive.groups_of(document)
    for x, law in laws(document).items():
        for o, part in enumerate(document["parts"]):
            one, two = means(document, part, o, law)
            b, (tau, high, middle, _) = (
                Fraction(part["limit"], document["encoding"]["prime"]),
                part["rows"][0],
            )
            a = Fraction(middle if tau else high, TOTAL)
            active = [bool(part["active"][g]) for g in groups]
            for i, on in enumerate(active):
                if not on:
                    assert one[i] == 0
                elif i not in x:
                    assert one[i] == b
                else:
                    expected = b + (a - b) * min(1, Fraction(s, len(x)))
                    assert abs(one[i] - expected) < 1e-15
            for (i, j), both in two.items():
                if active[i] and active[j] and not {i, j} & x:
                    assert both == b * b


def test_one_coefficient_less_correlates_others(good):
    """Three own items and two others need five: with four, the others are not independent."""
    document = copy.deepcopy(good["five-hits-alike"])
    part, x = document["parts"][0], frozenset([0, 1, 2])
    own = dict(exhaustive.own_hits(document, part, x))
    for d, independent in ((5, True), (4, False)):
        counts = exhaustive.counted(7, d, part["limit"], (0, 1, 2, 3, 4))
        assert sum(counts.values()) == 7**d
        same = {h: sum(c for y, c in counts.items() if y & x == h) for h in own}
        law = {y: own[y & x] * Fraction(c, same[y & x]) for y, c in counts.items()}
        both = sum(p for y, p in law.items() if {3, 4} <= y)
        assert (both == Fraction(part["limit"], 7) ** 2) == independent


# ---- sets ----------------------------------------------------------------------------------------


def beyond(document, table):
    """Two sets that some report tells apart by more than both of their budgets allow."""
    above = {x: exhaustive.set_budget(document, x)[1] for x in table}
    return [
        (x, y, ratio)
        for x in table
        for y in table
        if (ratio := apart(table[x], table[y])) > min(above[x], above[y])
    ]


@pytest.mark.parametrize("name", [*HITS, *BITS, *OTHERS])
def test_any_two_sets_are_within_the_smaller_of_their_budgets(name, good, rows):
    assert not beyond(good[name], rows(name))


@pytest.mark.parametrize("name", STRICT)
def test_strict_is_one_budget_for_all_sets(name, good, rows, reference):
    least = reference.strictest(good[name]["policy"])[0]
    table = rows(name)
    assert max(apart(table[x], table[y]) for x in table for y in table) <= least
    assert reference.set_factor(good[name]) <= least
    free = copy.deepcopy(good[name])
    free["policy"]["strict"] = False
    assert all(reference.level_bound(free["policy"], k)[0] >= least for k in levels(free))


@pytest.mark.parametrize("name", [*HITS, *BITS, *OTHERS])
def test_set_factors_and_list_factors_are_never_exceeded(name, good, rows, reference):
    document, table = good[name], rows(name)
    stated, most, equal = reference.set_factor(document), Fraction(1), 0
    for x in table:
        worst = max(max(apart(table[x], row), apart(row, table[x])) for row in table.values())
        told = reference.list_factor(document, sorted(x))
        assert worst <= told <= stated
        most, equal = max(most, worst), equal + (worst == told)
    if name in HITS:
        assert equal > 0  # of some lists nothing less could be said
    assert (most == stated) == (name in REACHED) or name not in HITS


# ---- items ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*HITS, *EACH, *BITS])
def test_item_factors_are_exact(name, good, rows, reference):
    document = good[name]
    assert item_factors(document, rows(name)) == [
        reference.item_factor(document, k) for k in levels(document)
    ]


@pytest.mark.parametrize("name", OTHERS)
def test_item_factors_of_fixed_sizes_and_tickets_are_a_bound(name, good, rows, reference):
    document = good[name]
    for k, found in enumerate(item_factors(document, rows(name))):
        assert 1 < found <= reference.item_factor(document, k)


@pytest.mark.parametrize("name", EACH)
def test_factors_of_items_on_their_own_multiply(name, good, rows, reference):
    document, table = good[name], rows(name)
    empty = table[frozenset()]
    for x, row in table.items():
        told = reference.list_factor(document, sorted(x))
        assert max(apart(row, empty), apart(empty, row)) == told


def any_hits(seed):
    """Any rows, private or not: levels, some active, more or fewer items than places."""
    draw = random.Random(seed)
    s, of = draw.choice([1, 2, 2, 3]), draw.choice([[0], [0, 0, 0], [0, 1], [0, 1, 0, 1], [0] * 5])
    of = draw.choice([of, [0, 0, 0, 1], [0, 0, 1, 1, 0], [0, 1, 1, 1, 1]])
    prime, count, parts = draw.choice([7] if len(of) > 4 else [5, 7]), max(of) + 1, 1 + seed % 2
    document = {
        "policy": {"kind": "set", "level_of": of, "items": list(map(str, range(len(of)))),
                   "levels": [{"name": str(k), "epsilon": "1"} for k in range(count)]},
        "encoding": {"kind": "hits", "prime": prime}, "padding": s, "groups": list(range(count)),
        "parts": [],
    }  # fmt: skip
    for _ in range(parts):
        rows_ = []
        for j in range(1, s + 1):
            tau = draw.randint(0, j)
            weights = [draw.random() ** 3 + 0.01 for _ in range(3)]
            weights[0] *= tau < j
            weights[2] *= tau > 0
            high, low = (round(TOTAL * x / sum(weights)) for x in (weights[0], weights[2]))
            rows_.append([tau, high, TOTAL - high - low, low])
        active = [1] * count if count == 1 else draw.choice([[1, 1], [1, 0], [0, 1]])
        limit = draw.randint(1, prime - 1)
        document["parts"].append(
            {"chance": D // parts, "active": active, "limit": limit, "rows": rows_}
        )
    return document


def test_item_factors_of_any_hits_are_exact(reference):
    for seed in range(150):
        document = any_hits(seed)
        table = in_one_unit(laws(document))
        told = [reference.item_factor(document, k) for k in levels(document)]
        assert item_factors(document, table) == told, seed
        for x in table if seed % 5 == 0 else ():
            worst = max(max(apart(table[x], row), apart(row, table[x])) for row in table.values())
            told = reference.list_factor(document, sorted(x))
            assert worst <= told <= reference.set_factor(document), (seed, x)


def any_bits(seed):
    """Any chances, also of items that are named less often by whoever has them."""
    draw = random.Random(seed)
    of = draw.choice([[0], [0, 0], [0, 1], [0, 0, 1], [0, 1, 1, 1], [0, 0, 1, 2]])
    count, parts = max(of) + 1, draw.randint(1, 2)
    first = [draw.randint(D // 4, 3 * D // 4) if parts == 2 else D for _ in range(count + 1)]
    document = {
        "policy": {"kind": "set", "level_of": of, "items": list(map(str, range(len(of)))),
                   "levels": [{"name": str(k), "epsilon": "1"} for k in range(count)]},
        "encoding": {"kind": "bits"}, "padding": draw.randint(1, 5), "groups": list(range(count)),
        "parts": [],
    }  # fmt: skip
    for chances in (first, [D - x for x in first])[:parts]:
        speaks = [draw.random() < 0.85 for _ in range(count)]
        own, other = ([draw.randint(D // 8, 7 * D // 8) * x for x in speaks] for _ in range(2))
        document["parts"].append(
            {"chance": chances[:-1], "own": own, "other": other, "none": chances[-1]}
        )
    return document


def test_item_factors_of_any_bits_are_exact(reference):
    for seed in range(80):
        document = any_bits(seed)
        told = [reference.item_factor(document, k) for k in levels(document)]
        assert item_factors(document, in_one_unit(laws(document))) == told, seed


# ---- twins that must fail ------------------------------------------------------------------------


def test_mass_moved_in_a_row_without_slack_is_found(good, reference):
    for part, j in ((0, 2), (1, 1), (1, 2)):
        document = copy.deepcopy(good["five-hits"])
        row = document["parts"][part]["rows"][j - 1]
        row[1] += TOTAL // 100
        row[3 if row[0] else 2] -= TOTAL // 100
        assert beyond(document, in_one_unit(laws(document)))
        assert not reference.holds(document)


def active_first(document, part, x):
    """The steps swapped: what is not active leaves before the set is made smaller."""
    of = exhaustive.groups_of(document)
    active = sorted(i for i in x if part["active"][of[i]])
    kept = list(combinations(active, min(len(active), document["padding"])))
    yield from ((frozenset(some), Fraction(1, len(kept))) for some in kept)


def test_looking_at_activity_before_sampling_is_found(good):
    """Three sensitive items and one other: its part would tell it as if it were alone."""
    document = good["six-hits-halves"]
    of = hits_patterns(document, active_first)
    found = beyond(document, in_one_unit({x: of(x) for x in subsets(6)}))
    x, y, ratio = max(found, key=lambda row: row[2] / exhaustive.set_budget(document, row[0])[1])
    assert sorted(document["policy"]["level_of"][i] for i in x) == [0, 0, 0, 1]
    allowed = min(exhaustive.set_budget(document, z)[0] for z in (x, y))
    assert allowed == pytest.approx(3.886, abs=0.001)
    assert ratio > 1.05 * allowed


def test_an_item_beyond_its_budget_is_found_though_sets_are_within(vectors):
    """The case of the vectors: refused for the sake of one item alone."""
    import bad

    document, reference = bad.good_but_for_an_item(3), vectors[2]
    table = in_one_unit(laws(document))
    assert not beyond(document, table)
    found = item_factors(document, table)
    assert found == [reference.item_factor(document, k) for k in levels(document)]
    budgets = [reference.level_bound(document["policy"], k)[0] for k in levels(document)]
    assert found[0] > 1.5 * budgets[0] and found[1] < budgets[1]
    assert reference.verdict(document) == "guarantee"


def test_a_level_strict_in_name_only_is_found(good, reference):
    for name in ("five-hits", "five-cut-bits"):
        document = copy.deepcopy(good[name])
        document["policy"]["strict"] = True
        assert beyond(document, in_one_unit(laws(document)))
        assert not reference.holds(document)


# ---- discreet ------------------------------------------------------------------------------------


def test_discreet_states_what_enumeration_finds(good, rows):
    import discreet

    for name in (*HITS, *EACH, *BITS):
        guarantee = discreet.Mechanism.from_document(good[name]).guarantee()
        assert [*guarantee.factors] == item_factors(good[name], rows(name)), name


def test_discreet_and_the_reference_state_the_same(good, reference):
    import discreet

    for name, document in good.items():
        if document["policy"]["kind"] == "single":
            continue
        items, each = document["policy"]["items"], document["encoding"]["kind"] == "each"
        guarantee = discreet.Mechanism.from_document(document).guarantee()
        told = [reference.item_factor(document, k) for k in levels(document)]
        assert [*guarantee.factors] == told, name
        if not each:
            assert guarantee.set_factor == reference.set_factor(document), name
        m = len(items)
        for some in {(), (0,), (m - 1,), tuple(range(min(m, 3))), tuple(range(0, m, 2))}:
            found = guarantee.list_factor([items[i] for i in some])
            assert found == reference.list_factor(document, list(some)), (name, some)
