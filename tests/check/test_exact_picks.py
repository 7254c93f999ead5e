"""The check of picks against enumeration: every set, every report, in fractions; and every refusal
happens.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random

import picked
import pytest

import discreet as d
from discreet.check import exact, exact_picks
from discreet.check.exact import D
from discreet.check.exact_sets import TOTAL
from discreet.check.parts import PicksPart
from discreet.designs.set_subset import picks
from discreet.designs.task import Task
from discreet.encodings import Picks
from discreet.errors import DesignError, GuaranteeError
from discreet.promises.sets import set_promises

# sizes of the levels, budgets, padding, strict
CASES = {
    "one level": ((4,), (1,), 2, False),
    "one level of three": ((5,), ("0.5",), 3, False),
    "two levels": ((2, 3), (1, 2), 2, False),
    "two levels, padding 3": ((2, 4), (1, "1.5"), 3, False),
    "a lone item": ((1, 4), ("0.7", 2), 2, False),
    "strict": ((2, 3), (1, 2), 2, True),
    "three levels": ((2, 2, 2), (1, "1.3", 2), 2, False),
    "padding above a level": ((2, 3), (1, 2), 3, False),
    "as many items as places": ((1, 3), (1, 2), 4, False),
}


def policy_of(sizes, budgets, strict=False):
    levels = [
        (f"l{i}", e, [f"i{i}-{k}" for k in range(n)])
        for i, (n, e) in enumerate(zip(sizes, budgets, strict=True))
    ]
    return d.Policy.from_levels(levels, kind="set", strict=strict)


# the same policies, with cuts of one block alone and with one of several
ONE_BLOCK = [f"{name}, one block" for name in ("two levels", "a lone item", "three levels")]


@cache
def designed(name):
    sizes, budgets, padding, strict = CASES[name.removesuffix(", one block")]
    task = Task(policy_of(sizes, budgets, strict), "uniform", None, padding, goal="total")
    return picks(task, several=name in CASES)


def test_there_are_cuts_of_one_block_and_of_several():
    for name in (*CASES, *ONE_BLOCK):
        blocks = {len(part.m) for part in designed(name).parts}
        levels = len(set(CASES[name][1])) if name in CASES and name != "strict" else 1
        assert blocks == {levels}, name


def verdict(mechanism, parts):
    ints = [part.ints for part in parts]
    return exact_picks.check(mechanism.policy, mechanism.groups, ints)


def changed(part, **ints):
    return replace(part, ints=part.ints._replace(**ints))


# ---- what is proved, by enumeration --------------------------------------------------------------


@pytest.mark.parametrize("name", [*CASES, *ONE_BLOCK])
def test_every_set_and_every_report(name):
    """Chances sum to 1; any two sets keep their budgets, and use them; items keep theirs."""
    mechanism = designed(name)
    document = mechanism.to_document()
    for x in picked.subsets(range(mechanism.m)):
        table = picked.law(document, x)
        assert sum(table.values()) == 1 and min(table.values()) > 0
    used = picked.worst_sets(document)
    assert used <= 1 + 1e-12
    assert used > 0.99 or name == "as many items as places"
    assert picked.holds(document)


@pytest.mark.parametrize("name", [*CASES, *ONE_BLOCK])
def test_the_factor_of_an_item_is_the_worst_case_of_every_part(name):
    mechanism = designed(name)
    document, promises = mechanism.to_document(), set_promises(mechanism)
    for part, worst in zip(mechanism.parts, picked.worst_items_by_part(document), strict=True):
        told = promises.group_factors(part)
        assert [told[g] for g in mechanism.groups] == worst


@pytest.mark.parametrize("name", ["two levels", "two levels, padding 3", "two levels, one block"])
def test_the_factors_of_sets_hold_for_every_two(name):
    mechanism = designed(name)
    document, promises = mechanism.to_document(), set_promises(mechanism)
    laws = {x: picked.law(document, x) for x in picked.subsets(range(mechanism.m))}
    worst = Fraction(1)
    for x, p in laws.items():
        mine = Fraction(1)
        for z, q in laws.items():
            ratio = max(max(p[y] / q[y], q[y] / p[y]) for y in p)
            mine = max(mine, ratio)
            assert max(p[y] / q[y] for y in p) <= promises.bound(sorted(x), sorted(z))
        assert mine <= promises.list_factor(sorted(x))
        worst = max(worst, mine)
    assert worst == promises.set_factor


def moved(mechanism, rng):
    """The mechanism with some of the mass of a bunch given to another one of the same row."""
    cut = rng.choice(exact_picks.cuts([part.ints for part in mechanism.parts]))
    row = rng.choice([k for k, row in enumerate(mechanism.parts[cut[0]].ints.rows) if row])
    places = [(o, r) for o in cut for r in range(len(mechanism.parts[o].ints.rows[row]))]
    (o, r), (p, q) = rng.sample(places, 2)
    rows = {x: [list(map(list, row)) for row in mechanism.parts[x].ints.rows] for x in {o, p}}
    mass = rows[o][row][r][0] * rng.choice((3, 30, 999)) // 1000
    rows[o][row][r][0] -= mass
    rows[p][row][q][0] += mass
    return [
        changed(part, rows=rows[x]) if x in rows else part for x, part in enumerate(mechanism.parts)
    ]


@pytest.mark.parametrize("name", ["one level", "two levels", "strict", *ONE_BLOCK[:2]])
def test_moved_masses_are_judged_as_the_enumeration_judges_them(name):
    """In both directions: nothing that leaks passes, and nothing private is refused."""
    mechanism, rng, refused = designed(name), Random(1), 0
    document = mechanism.to_document()
    for _ in range(12):
        parts = moved(mechanism, rng)
        wrong = verdict(mechanism, parts) is not None
        tampered = {**document, "parts": [part.document() for part in parts]}
        assert wrong != picked.holds(tampered)
        refused += wrong
    assert 0 < refused


# ---- refusals ------------------------------------------------------------------------------------

HALF = TOTAL // 2


def tiny(rows=None, sizes=(1,), chance=D, blocks=(1,)):
    """One part that names one of three items, likelier the own one."""
    rows = rows or [[(TOTAL, 0)], [(HALF, 0), (HALF, 1)]]
    return exact_picks.PickChances(chance, blocks, sizes, rows)


def check_tiny(*parts, epsilon=2):
    policy = d.Policy.from_levels([("a", epsilon, ["x", "y", "z"])], kind="set")
    return exact_picks.check(policy, (0,), parts)


def test_the_tiny_part_is_fine():
    """Named: 1/2 against 1/3; not named: 1/4 against 1/3."""
    assert exact_picks.densities((3,), tiny()) == {
        (0,): {(0,): 1},
        (1,): {(0,): Fraction(3, 4), (1,): Fraction(3, 2)},
    }
    assert check_tiny(tiny()) is None
    assert check_tiny(tiny(), epsilon="ln(2)") is None
    assert check_tiny(tiny(), epsilon="ln(1.99)") is not None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sizes": (3,)}, "a size is 3 and must be from 0 to 2"),
        ({"sizes": (-1,)}, "a size is -1 and must be from 0 to 2"),
        ({"chance": 0}, "a positive number"),
        ({"chance": D - 1}, "do not sum to 2^32"),
        ({"rows": [[(TOTAL, 0)], [(TOTAL - 1, 0, 1)]]}, "row 1 do not sum to 2^52"),
        ({"rows": [[(TOTAL, 0)], [(TOTAL, 0)]]}, "row 1 must hold each of its 2 vectors once"),
        ({"rows": [[(TOTAL, 0)], []]}, "row 1 must hold each of its 2 vectors once"),
        ({"rows": [[(TOTAL, 0, 1)], [(TOTAL, 0, 1)]]}, "row 0 must hold each of its 1 vectors"),
        ({"rows": [[(TOTAL, 0)], [(TOTAL, 0), (0, 1)]]}, "must have positive masses"),
        ({"rows": [[(TOTAL, 0)], [(TOTAL + 1, 0), (-1, 1)]]}, "must have positive masses"),
        ({"rows": [[(TOTAL, 0)], [(HALF, 1), (HALF, 0, 1)]]}, "each of its 2 vectors once"),
        ({"rows": [[(TOTAL, 0)], [(HALF, -1), (HALF, 0, 1)]]}, "each of its 2 vectors once"),
        ({"rows": [[(TOTAL, 0)], [(HALF // 100, 0), (TOTAL - HALF // 100, 1)]]}, "told apart"),
    ],
)
def test_what_is_wrong_with_a_part(change, sentence):
    assert sentence in check_tiny(tiny()._replace(**change)).sentence


def test_parts_of_a_cut_share_its_chance_and_its_masses():
    half = [[(HALF, 0)], [(HALF // 2, 0), (HALF // 2, 1)]]
    assert check_tiny(tiny(half), tiny(half)) is None
    assert "cut's chance" in check_tiny(tiny(half), tiny(half, chance=5)).sentence
    assert "row 0" in check_tiny(tiny(half), tiny()).sentence
    assert "do not sum to 2^32" in check_tiny().sentence


def test_rows_that_nobody_can_have_are_empty():
    """Three items and a padding of 4: nobody has four of three."""
    rows = [[(TOTAL, 0)], *([(TOTAL, 0, 1)] for _ in range(2)), [(TOTAL, 0)], []]
    assert check_tiny(tiny(rows)) is None
    found = check_tiny(tiny([*rows[:4], [(TOTAL, 0)]]))
    assert "row 4" in found.sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, None),
        ({"chance": 1.0}, "something else than whole numbers"),
        ({"sizes": (True,)}, "something else than whole numbers"),
        ({"blocks": ("1", 0)}, "something else than whole numbers"),
        ({"rows": [[(1.0, 0)], [(1, 1)]]}, "something else than whole numbers"),
        ({"blocks": (1,)}, "a number for each of 2 groups"),
        ({"blocks": (0, 0)}, "a number for each of 2 groups"),
        ({"blocks": (2, 0)}, "a number for each of 2 groups"),
        ({"blocks": (1, 2)}, "one of sizes for every block"),
        ({"blocks": (2, 1), "sizes": (1, 1)}, "in their order"),
        ({"sizes": (1, 1)}, "one of sizes for every block"),
        ({"sizes": ()}, "one of sizes for every block"),
        ({"rows": [[(1, 0)]]}, "needs 2 rows"),
        ({"rows": [[(1, 0)]] * 3}, "needs 2 rows"),
        ({"blocks": (1, 2), "sizes": (1, 1), "rows": [[(1, 0)]] * 2}, "needs 3 rows"),
        ({"rows": [[(1, 0)], [(1,)]]}, "a bunch is a mass, then the places"),
    ],
)
def test_what_are_no_numbers_of_a_part(change, sentence):
    good = tiny(blocks=(1, 0))
    for parts in ([good._replace(**change)], [good, good._replace(**change)]):
        found = exact_picks.malformed(2, 1, parts)
        assert found is None if sentence is None else sentence in found


def test_the_budget_of_the_active_levels_counts():
    """The cut that names only the second level may use its budget; with the first it may not."""
    mechanism = designed("two levels, one block")
    cuts = exact_picks.cuts([part.ints for part in mechanism.parts])
    assert (0, 1) in {mechanism.parts[cut[0]].active for cut in cuts}
    strict = replace(mechanism.policy, strict=True)
    found = exact_picks.check(strict, (0, 1), [part.ints for part in mechanism.parts])
    assert "two sets are told apart" in found.sentence
    with pytest.raises(GuaranteeError):
        replace(mechanism, policy=strict)


def test_only_items_that_are_not_active_can_break_an_item_promise_of_one_block(monkeypatch):
    """A cut of one loud level beside an item with a small budget: sets may, the item may not."""
    policy = policy_of((3, 4), ("0.4", 3))
    task = Task(policy, "uniform", None, 2, goal="total")
    mechanism = picks(task, several=False)
    held = [max(set_promises(mechanism).group_factors(part)[0] for part in mechanism.parts)]
    assert held[0] <= exact.factor(policy.levels[0].budget)
    # the same without the rows for other items
    from discreet.designs import set_subset

    cut_task = set_subset._cut_task
    monkeypatch.setattr(set_subset, "_cut_task", lambda *args: replace(cut_task(*args), out=None))
    free = set_subset._Mix.for_task(task, None)
    assert free._passes(task, [0, 1], [0.0, 0.0]) is None


def test_picks_are_for_sets_under_min_alone():
    mechanism = designed("two levels")
    for change in ({"notion": "avg"}, {"pairs": (d.policy.Pair("l0", "l1", 2),)}):
        with pytest.raises(DesignError, match='picks are for kind = "set", notion = "min"'):
            replace(mechanism, policy=replace(mechanism.policy, **change))
    with pytest.raises(DesignError, match="needs 3 rows"):
        replace(mechanism, padding=1)
    for size in (1, mechanism.encoding.size + 1):
        with pytest.raises(DesignError, match="the bytes of a report"):
            replace(mechanism, encoding=Picks(size))


def test_a_part_from_elsewhere_is_refused():
    mechanism = designed("two levels")
    first, *rest = mechanism.parts
    for part in (replace(first, group_sizes=(3, 2)), replace(first, groups=(0, 0))):
        with pytest.raises(DesignError, match="another mechanism"):
            replace(mechanism, parts=(part, *rest))
    assert isinstance(first, PicksPart)


def many_blocks(blocks, padding=1):
    """One part of so many blocks of two items, each of which names one, whatever one has."""
    sizes = (1,) * blocks
    people = exact_picks.classes(blocks, padding) if blocks * padding < 5000 else []
    m = (2,) * blocks
    counts = [len(exact_picks.possible(m, sizes, j)) for j in people]
    rows = [[(TOTAL, *range(count))] if count else [] for count in counts]
    return exact_picks.PickChances(D, tuple(range(1, blocks + 1)), sizes, rows)


@pytest.mark.parametrize(("blocks", "padding", "soon"), [(25, 1, True), (60, 1, False)])
def test_what_would_take_long_to_check_is_refused(blocks, padding, soon):
    found = exact_picks.malformed(blocks, padding, [many_blocks(blocks, padding)])
    assert (found is None) if soon else ("take too long to check" in found)
    few = many_blocks(2, 3)
    assert exact_picks.malformed(2, 3, [few] * 256) is None  # as many parts as there may be
    found = exact_picks.malformed(2, 64, [few])
    assert "take too long to check" in found
