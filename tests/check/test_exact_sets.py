"""The check of counted hits and of items asked one by one: what it proves is enumerated in
test_sets.py; here, that it looks at every number, and that each of its refusals can happen.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product

import numpy as np
import pytest
from parts import changed

import discreet as d
from discreet.check import exact, exact_sets
from discreet.check.exact_sets import TOTAL
from discreet.errors import DesignError, GuaranteeError

LEVELS = [("a", 1, ["a1", "a2"]), ("b", "1.2", ["b1", "b2"]), ("c", 2, [f"c{k}" for k in range(9)])]


@cache
def designed(padding=5, **settings):
    return d.design(
        d.Policy.from_levels(LEVELS, kind="set", **settings), "hits", padding=padding, goal="total"
    )


def with_row(mechanism, o, j, row):
    """The mechanism with another row of a part, unchecked."""
    part = mechanism.parts[o]
    rows = [row if k == j else old for k, old in enumerate(part.ints.rows, 1)]
    return [changed(p, rows=rows) if p is part else p for p in mechanism.parts]


def verdict(mechanism, parts):
    chances = [part.ints for part in parts]
    prime = mechanism.encoding.prime
    return exact_sets.check(mechanism.policy, mechanism.groups, prime, chances)


def test_a_design_passes_and_its_rows_are_equally_telling():
    mechanism = designed()
    assert len(mechanism.parts) > 1 and mechanism.check() is None
    for part in mechanism.parts:
        chances = [exact_sets.own(part.prime, part.ints, j) for j in range(1, 6)]
        assert max(chances) - min(chances) < Fraction(1, 2**50)
        assert float(chances[0]) == max(part.by_group.own)


def test_mass_moved_in_a_row_is_seen():
    """A hundredth of the mass moved from low to high in any row that has no slack (SPEC 9)."""
    mechanism, seen = designed(), 0
    for o, part in enumerate(mechanism.parts):
        for j, (tau, *masses) in enumerate(part.ints.rows, 1):
            first, *_, last = [k for k in range(3) if masses[k]]
            for share, moved in ((100, list(masses)), (20, list(masses))):
                moved[first] += TOTAL // share
                moved[last] -= TOTAL // share
                if min(moved) >= 0:
                    seen += verdict(mechanism, with_row(mechanism, o, j, (tau, *moved))) is not None
    assert seen >= 12


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((-1, TOTAL, 0, 0), "tau from 0 to 1"),
        ((2, TOTAL, 0, 0), "tau from 0 to 1"),
        ((0, TOTAL + 1, -1, 0), "masses from 0"),
        ((0, TOTAL // 2, TOTAL // 2 + 1, 0), "sum to 2^52"),
        ((0, TOTAL // 2, TOTAL // 2, 0), None),  # the density of the two classes is 1 at T = P / 2
        ((0, TOTAL // 2, 0, TOTAL // 2), "every class that can happen a mass, and no other"),
        ((1, TOTAL // 2, 0, TOTAL // 2), "every class that can happen a mass, and no other"),
        ((0, TOTAL, 0, 0), "every class that can happen a mass, and no other"),
    ],
)
def test_what_is_wrong_with_a_row(row, sentence):
    policy = d.Policy.from_levels([("a", 1, ["x", "y"])], kind="set")
    part = exact_sets.HitChances(2**32, [1], 6, [row])
    found = exact_sets.check(policy, (0,), 13, [part])
    if sentence is None:  # 6 of 13 is nearly a half, and so is what a mass of a half says
        assert found is None
    else:
        assert sentence in found.sentence and found.part == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"limit": 0}, "strictly between 0 and"),
        ({"limit": 65521}, "strictly between 0 and"),
        ({"chance": 0}, "sum to 2^32"),
        ({"chance": 5}, "sum to 2^32"),
    ],
)
def test_what_is_wrong_with_a_part(change, sentence):
    mechanism = designed()
    parts = [changed(mechanism.parts[0], **change), *mechanism.parts[1:]]
    assert sentence in verdict(mechanism, parts).sentence


@pytest.mark.parametrize("none", [-5, 0])
def test_shares_of_parts_that_sum_to_one_must_be_positive(none):
    mechanism = designed()
    first, second = mechanism.parts
    parts = [changed(first, chance=none), changed(second, chance=2**32 - none)]
    assert "not positive" in verdict(mechanism, parts).sentence


def test_a_part_may_be_as_rare_as_a_number_allows():
    mechanism = designed()
    whole = mechanism.parts[0]
    rare = [changed(whole, chance=exact.D - 1), changed(whole, chance=1)]
    assert verdict(mechanism, rare) is None


def test_the_budget_of_the_active_levels_counts():
    """The part that names only c may use c's budget; the same numbers with a active may not."""
    mechanism = designed()
    assert mechanism.parts[1].ints.active == (0, 1)
    wider = [mechanism.parts[0], changed(mechanism.parts[1], active=(1, 1))]
    assert "two sets are told apart" in verdict(mechanism, wider).sentence


def test_an_item_is_told_by_no_more_than_its_budget_though_sets_are():
    """Of many items a large padding lets whole sets say more than an item's own budget: the search
    steps back, and the check refuses what it would have found.
    """
    from discreet.designs import cuts, hits
    from discreet.designs.task import Task

    policy = d.Policy.from_levels(
        [("a", 3, [f"a{k}" for k in range(5)]), ("c", 6, [f"c{k}" for k in range(90)])], kind="set"
    )
    task = Task(policy, "uniform", None, 20)
    free = cuts._best_cut(3.0, 6.0, 20, 20 / 95)
    draft = replace(
        hits.MixedParts.for_task(task), cuts=(hits.MixedParts.for_task(task).cuts[0], free)
    )
    with pytest.raises(GuaranteeError):
        draft.mechanism(task)
    kept = d.design(policy, padding=20).guarantee().factors
    assert all(
        x <= exact.factor(level.budget) for x, level in zip(kept, policy.levels, strict=True)
    )


def test_strict_is_one_budget_for_everything():
    mechanism, strict = designed(), designed(strict=True)
    assert len(strict.parts) == 1 and strict.guarantee().set_factor <= exact.exp_lower(Fraction(1))
    assert mechanism.guarantee().set_factor > exact.exp_lower(Fraction(1)) * 2
    with pytest.raises(GuaranteeError):
        replace(mechanism, policy=strict.policy)


def test_hits_are_for_sets_under_min_alone():
    mechanism, pairs = designed(), (d.policy.Pair("a", "b", 2),)
    for change in ({"notion": "avg"}, {"pairs": pairs}):
        with pytest.raises(DesignError, match='notion = "min" and no explicit pairs'):
            replace(mechanism, policy=replace(mechanism.policy, **change))
    with pytest.raises(DesignError, match="from 1 to 64"):
        replace(mechanism, padding=65)
    with pytest.raises(DesignError, match="needs 4 rows"):
        replace(mechanism, padding=4)


# ---- the numbers of a part, by enumeration -------------------------------------------------------

ROWS = [(0, TOTAL // 2, TOTAL // 2, 0), (1, TOTAL // 4, TOTAL // 2, TOTAL // 4),
        (2, TOTAL // 2, TOTAL // 8, TOTAL * 3 // 8)]  # fmt: skip
PART = exact_sets.HitChances(2**32, [1], 2, ROWS)


@pytest.mark.parametrize("j", [1, 2, 3])
def test_densities_by_all_values_of_the_own_items(j):
    """Prime 5, limit 2: of all 5^j values so many name N; a class has its mass; an item its
    chance.
    """
    values = Counter(sum(v < 2 for v in row) for row in product(range(5), repeat=j))
    assert exact_sets.weights(5, 2, j) == [values[n] for n in range(j + 1)]
    law = [Fraction(values[n], 5**j) * x for n, x in enumerate(exact_sets.densities(5, PART)[j])]
    tau, *masses = ROWS[j - 1]
    expected = [Fraction(mass, TOTAL) for mass in masses]
    assert [sum(law[tau + 1 :]), law[tau], sum(law[:tau])] == expected
    assert exact_sets.own(5, PART, j) == sum(n * p for n, p in enumerate(law)) / j
    assert exact_sets.own(5, PART) == exact_sets.own(5, PART, 1)


def some_densities(s, seed, loud=None):
    """Any, or all 1 but in one row."""
    rng = np.random.default_rng(seed)
    rows = [[Fraction(int(x), 100) for x in rng.integers(50, 200, j + 1)] for j in range(s + 1)]
    if loud:
        rows = [[Fraction(1)] * (j + 1) for j in range(s + 1)]
        rows[loud] = [Fraction(1, 9), *rows[loud][2:], Fraction(9)]
    rows[0] = [Fraction(1)]
    return rows


def test_the_extremes_of_densities():
    f = [[Fraction(1)], [Fraction(2), Fraction(3)], [Fraction(1, 2), Fraction(4), Fraction(1)]]
    assert [exact_sets.extremes(f, most) for most in (0, 1, 2)] == [(1, 1), (3, 1), (4, 0.5)]


CROWDS = [
    (s, active, others, loud)
    for s in (1, 2, 3)
    for active in range(1, 5)
    for others in range(4)
    for loud in (None, *range(1, s + 1))
    if loud is None or active + others in (s, s + 1)
]


@pytest.mark.parametrize(("s", "active", "others", "loud"), CROWDS)
def test_the_factor_of_an_item_by_all_sets(s, active, others, loud):
    """Every set, every item that is not in it, every report: with and without the item."""
    f, items = some_densities(s, 7 * active + others, loud), range(active + others)
    worst = {True: Fraction(1), False: Fraction(1)}

    def law(held, named):
        cuts = [held] if len(held) <= s else combinations(held, s)
        found = [
            f[sum(i < active for i in cut)][sum(i in named for i in cut if i < active)]
            for cut in cuts
        ]
        return sum(found) / len(found)

    for size in range(min(len(items), s + 2)):
        for held, i in product(combinations(items, size), items):
            if i in held:
                continue
            for named in chain(*(combinations(range(active), k) for k in range(active + 1))):
                ratio = law((*held, i), named) / law(held, named)
                worst[i < active] = max(worst[i < active], ratio, 1 / ratio)
    assert exact_sets.item_factors(f, active, others) == (worst[True], worst[False])


@pytest.mark.parametrize(
    ("rows", "smallest", "of_active"),
    [
        ([["1/2", 3]], 3, 6),  # the smallest budget binds who has nothing active, 3 / 1
        ([["1/4", 2]], 4, 8),  # here 1 / (1/4)
        ([["1/2", 2], [1, 1, 1]], 2, 6),  # with one of two active, half of each: 4 = (2 + 6) / 2
        ([[1, 1], ["1/2", 1, 2]], 2, 4),
    ],
)
def test_any_two_sets_are_held_to_their_budgets_exactly(rows, smallest, of_active):
    """At the bound they pass; a millionth less of either budget, and they do not."""
    f = [[Fraction(1)], *([Fraction(x) for x in row] for row in rows)]
    less = 1 - Fraction(1, 10**6)
    assert exact_sets._sets_hold(f, Fraction(smallest), Fraction(of_active))
    assert not exact_sets._sets_hold(f, smallest * less, Fraction(of_active))
    assert not exact_sets._sets_hold(f, Fraction(smallest), of_active * less)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, None),
        ({"chance": 1.0}, "something else than whole numbers"),
        ({"limit": True}, "something else than whole numbers"),
        ({"active": (1, "0")}, "something else than whole numbers"),
        ({"rows": [(0, 1, 2, 3), (0, 1, 2, 3.0)]}, "something else than whole numbers"),
        ({"active": (1,)}, "0 or 1 for each of 2 groups"),
        ({"active": (1, 0, 1)}, "0 or 1 for each of 2 groups"),
        ({"active": (0, 0)}, "0 or 1 for each of 2 groups"),
        ({"active": (1, 2)}, "0 or 1 for each of 2 groups"),
        ({"rows": [(0, 1, 2, 3)]}, "needs 2 rows of four numbers"),
        ({"rows": [(0, 1, 2, 3)] * 3}, "needs 2 rows of four numbers"),
        ({"rows": [(0, 1, 2, 3), (0, 1, 2)]}, "needs 2 rows of four numbers"),
    ],
)
def test_what_are_no_numbers_of_a_part(change, sentence):
    good = exact_sets.HitChances(2**32, (1, 0), 6, [(0, 1, 2, 3)] * 2)
    for parts in ([good._replace(**change)], [good, good._replace(**change)]):
        found = exact_sets.malformed(2, 2, parts)
        assert found is None if sentence is None else sentence in found


def test_a_mechanism_without_parts_promises_nothing():
    assert "sum to 2^32" in exact_sets.check(designed().policy, (0, 1, 2), 13, []).sentence


def test_the_violation_names_the_strictest_active_group_and_the_part():
    mechanism = designed()
    assert mechanism.groups == (0, 0, 1)
    for active, group in (((1, 1), 0), ((1, 0), 0)):
        wider = [mechanism.parts[0], changed(mechanism.parts[1], active=active)]
        found = verdict(mechanism, wider)
        assert (found.groups, found.part) == ((group,), 1)
    tight = [("a", 3, ["a1", "a2"]), ("c", "0.5", [f"c{k}" for k in range(9)])]
    policy = d.Policy.from_levels(tight, kind="set")
    chances = [part.ints for part in mechanism.parts]
    found = exact_sets.check(policy, (0, 1), mechanism.encoding.prime, chances)
    assert (found.groups, found.part) == ((1,), 0)


# ---- items asked one by one ----------------------------------------------------------------------


@cache
def asked():
    return d.design(d.Policy.from_levels(LEVELS, kind="each"))


def test_every_item_has_its_own_budget():
    mechanism = asked()
    for level, factor in zip(mechanism.policy.levels, mechanism.guarantee().factors, strict=True):
        allowed = exact.factor(level.budget)
        assert allowed * (1 - Fraction(1, 10**6)) < factor <= allowed


@pytest.mark.parametrize("key", ["own", "other"])
@pytest.mark.parametrize("g", [0, 1, 2])
def test_an_item_may_not_be_told_by_a_millionth_more(key, g):
    mechanism = asked()
    (part,) = mechanism.parts
    for sign in (1, -1):
        moved = list(getattr(part.ints, key))
        moved[g] += sign * 2**12
        if (key == "own" and sign < 0) or (key == "other" and sign > 0):
            replace(mechanism, parts=[changed(part, **{key: moved})])  # tells less
        else:
            with pytest.raises(GuaranteeError) as caught:
                replace(mechanism, parts=[changed(part, **{key: moved})])
            assert caught.value.levels == (mechanism.policy.levels[g].name,)


def test_the_factor_of_an_item_asked_on_its_own():
    """The larger of naming it and not naming it, both ways round."""

    def part(own, other):
        return exact.Chances((exact.D,), (own,), (other,), exact.D)

    quarter = exact.D // 4
    assert exact_sets.each_factor(part(3 * quarter, quarter), 0, one_way=False) == 3
    assert exact_sets.each_factor(part(quarter, 3 * quarter), 0, one_way=False) == 3
    assert exact_sets.each_factor(part(2 * quarter, quarter), 0, one_way=False) == 2
    assert exact_sets.each_factor(part(3 * quarter, 2 * quarter), 0, one_way=False) == 2
    assert exact_sets.each_factor(part(exact.D, quarter), 0, one_way=True) == 4
    assert exact_sets.each_factor(part(3 * quarter, 2 * quarter), 0, one_way=True) == Fraction(3, 2)


def test_each_is_held_to_the_budget_exactly():
    """ln(3): odds of 3 pass, one unit more does not, and the level of the group is named."""
    policy = d.Policy.from_levels([("a", "ln(9)", ["x"]), ("b", "ln(3)", ["y"])], kind="each")
    quarter, D = exact.D // 4, exact.D
    for own, group in ((3 * quarter, None), (3 * quarter + 1, (1,))):
        part = exact.Chances((D, D), (3 * quarter, own), (quarter, quarter), D)
        found = exact_sets.check_each(policy, (0, 1), (D, D), [part])
        assert found is None if group is None else (found.groups, found.part) == (group, 0)
    silent = exact.Chances((D, D), (3 * quarter, 0), (quarter, 0), D)
    short = exact.Chances((D, D - 1), (3 * quarter,) * 2, (quarter,) * 2, D)
    for part in (silent, short, short._replace(chance=(D, D), none=D - 1)):
        assert "only part" in exact_sets.check_each(policy, (0, 1), (D, D), [part]).sentence
    none = silent._replace(own=(0, D), other=(0, quarter))
    found = exact_sets.check_each(policy, (0, 1), (D, D), [none])
    assert "strictly between" in found.sentence and (found.groups, found.part) == ((1,), 0)


def test_each_is_one_part_that_speaks():
    mechanism = asked()
    (part,) = mechanism.parts
    with pytest.raises(DesignError, match="has one part"):
        replace(mechanism, parts=[part, part])
    for change in ({"own": (0, 0, 0), "other": (0, 0, 0)}, {"none": 2**32 - 1}):
        with pytest.raises(GuaranteeError):
            replace(mechanism, parts=[changed(part, **change)])
    with pytest.raises(DesignError, match="do not go together"):
        replace(mechanism, padding=3)
    with pytest.raises(DesignError, match='kind = "each"'):
        replace(mechanism, policy=replace(mechanism.policy, kind="set"), padding=3)
