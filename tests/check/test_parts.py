"""Parts as floats: the same numbers as the integers, per group and per level, which nobody can
change.
"""

from fractions import Fraction

import numpy as np
import pytest
from parts import make_part

import discreet as d
from discreet.check import exact_sets
from discreet.check.exact import D
from discreet.check.parts import HitsPart, Part, PicksPart
from discreet.designs.set_subset import picks
from discreet.designs.task import Task

ROWS = [("low", 2, ["x", "y"]), ("high", 1, ["z"]), ("more", 2, ["u", "v", "w"])]


# own above, below and equal to other, next to nothing, and silent; with and without an empty sample
CASES = [
    make_part((D // 4, D // 2, 3, D, 7), (D // 2, D // 8, 0, D // 3 + 1, 1), (1, 2, 0, 5, 6), none,
         (3, 4, 7, 15, 9), range(5)) for none in (None, D // 5)
]  # fmt: skip


def parts(model=None, encoding=None, **settings):
    return d.design(d.Policy.from_levels(ROWS, **settings), model, encoding=encoding).parts


@pytest.mark.parametrize("settings", [{}, {"kind": "set", "padding": 3}])
def test_levels_have_the_numbers_of_their_groups(settings):
    for part in parts(**settings):
        assert len(part.groups) == 3 and part.groups[0] == part.groups[2]
        for name in ("chance", "own", "other"):
            by_level, by_group = getattr(part, name), getattr(part.by_group, name)
            assert by_level == tuple(by_group[g] for g in part.groups)
        assert part.by_group.difference == pytest.approx(
            np.subtract(part.by_group.own, part.by_group.other), abs=1e-15
        )


def test_a_part_is_what_its_document_says():
    sets = {"kind": "set", "padding": 3}
    for settings, kind in (
        ({}, Part),
        ({"model": "subset", "encoding": "bits", **sets}, Part),
        ({"model": "hits", **sets}, HitsPart),
        ({"model": "subset", **sets}, PicksPart),
    ):
        for part in parts(**settings):
            row = part.document()
            assert ("none" in row) == ("encoding" in settings)
            other = {Part: "denominators", HitsPart: "prime", PicksPart: "group_sizes"}[kind]
            other = getattr(part, other)
            assert kind.from_document(row, other, part.groups) == part
            for key, value in row.items():
                if isinstance(value, list):
                    with pytest.raises(TypeError, match="lists"):
                        kind.from_document({**row, key: 5}, other, part.groups)


@pytest.mark.parametrize("part", CASES, ids=["single", "set"])
def test_a_part_in_floats(part):
    """Every number as a fraction, rounded once at most where it is said to be exact."""
    own, other = (
        [Fraction(*pair) for pair in zip(part.ints.own, (D,) * 5)],
        [Fraction(*pair) for pair in zip(part.ints.other, part.denominators)],
    )
    assert part.by_group.chance == tuple(x / D for x in part.ints.chance)
    assert part.by_group.own == tuple(float(x) for x in own)
    assert part.by_group.other == tuple(float(x) for x in other)
    assert part.by_group.none == (part.ints.none or 0) / D
    exactly = [float(a - b) for a, b in zip(own, other)]
    assert part.by_group.difference == pytest.approx(exactly, rel=1e-15)
    # the difference of the floats would have 6 digits of it
    assert 0 < part.by_group.difference[3] < 1e-9


@pytest.mark.parametrize("part", CASES, ids=["single", "set"])
def test_the_states_of_a_part(part):
    """As exact.py defines them: of a report that names the item, and of one that does not."""
    expected = []
    for chance, own, other, base in zip(
        part.ints.chance, part.ints.own, part.ints.other, part.denominators
    ):
        a, b = Fraction(own, D), Fraction(other, base)
        both = (chance * a / b, chance * (1 - a) / (1 - b)) if own else (Fraction(chance),) * 2
        expected.append((max(both), min(both)))
    if part.ints.none is not None:
        expected.append((Fraction(part.ints.none),) * 2)
    assert part.states == [(D * high, D * low) for high, low in expected]


def test_a_part_of_hits_in_floats():
    for part in parts("hits", kind="set", padding=3):
        active = part.ints.active
        own, other = exact_sets.own(part.prime, part.ints), Fraction(part.ints.limit, part.prime)
        rates = part.by_group
        assert rates.own == tuple(float(own) * on for on in active)
        assert rates.other == tuple(float(other) * on for on in active)
        assert rates.difference == pytest.approx([float(own - other) * on for on in active])
        assert rates.chance == (part.ints.chance / D,) * len(active)
        assert rates.none == part.ints.chance / D
        single, silent = part.densities[1], (Fraction(1), Fraction(1))
        speaking = (max(single), min(single))
        assert part.states == [*(speaking if on else silent for on in active), silent]


@pytest.mark.parametrize("several", [False, True])
def test_a_part_of_picks_in_floats(several):
    """For somebody with a single item, whose chance of the part is that of the cut and the part."""
    policy = d.Policy.from_levels(ROWS, kind="set")
    for part in picks(Task(policy, "uniform", None, 3, goal="total"), several=several).parts:
        cut, rates, blocks = Fraction(part.ints.chance, D), part.by_group, part.ints.blocks
        assert len(part.m) == (2 if several else 1)
        assert rates.none == pytest.approx(float(cut * part.means[(0,) * len(part.m)][0]))
        for g, block in enumerate(blocks):
            one = tuple(int(b + 1 == block) for b in range(len(part.m)))
            chance, named = part.means[one]
            row = part.densities[one].values()
            assert part.states[g] == (max(row), min(row))
            assert rates.chance[g] == pytest.approx(float(cut * chance))
            own = rest = Fraction(0)
            if block:
                m, k = part.m[block - 1], part.ints.sizes[block - 1]
                own = named[block - 1] / chance
                rest = (k - own) / (m - 1) if m > 1 else rest
            assert rates.own[g] == pytest.approx(float(own))
            assert rates.other[g] == pytest.approx(float(rest))
            assert rates.difference[g] == pytest.approx(float(own - rest))
        none = part.densities[(0,) * len(part.m)].values()
        assert part.states[-1] == (max(none), min(none))
        assert {j: sum(law.values()) for j, law in part.laws.items()} == {
            j: chance for j, (chance, _) in part.means.items()
        }
