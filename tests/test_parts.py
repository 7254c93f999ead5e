"""Parts as floats: the same numbers as the integers, per group and per level, which nobody can
change.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as d
from discreet import exact_hits
from discreet.exact import D
from discreet.parts import HitsPart, Part

ROWS = [("low", 2, ["x", "y"]), ("high", 1, ["z"]), ("more", 2, ["u", "v", "w"])]


# own above, below and equal to other, next to nothing, and silent; with and without an empty sample
CASES = [
    Part((D // 4, D // 2, 3, D, 7), (D // 2, D // 8, 0, D // 3 + 1, 1), (1, 2, 0, 5, 6), none,
         (3, 4, 7, 15, 9), range(5)) for none in (None, D // 5)
]  # fmt: skip


def parts(model=None, **settings):
    return d.design(d.Policy.from_levels(ROWS, **settings), model).parts


@pytest.mark.parametrize("settings", [{}, {"input": "set", "padding": 3}])
def test_levels_have_the_numbers_of_their_groups(settings):
    for part in parts(**settings):
        assert len(part.groups) == 3 and part.groups[0] == part.groups[2]
        for name in ("chance", "own", "other"):
            by_level, by_group = getattr(part, name), getattr(part, f"{name}_group")
            assert by_level.tolist() == [by_group[g] for g in part.groups]
            with pytest.raises(ValueError, match="read-only"):
                by_level[0] = 0.5
            with pytest.raises(ValueError, match="read-only"):
                by_group[0] = 0.5
        assert part.difference == pytest.approx(part.own_group - part.other_group, abs=1e-15)


def test_a_part_is_what_its_document_says():
    sets = {"input": "set", "padding": 3}
    for settings, kind in (({}, Part), ({"model": "subset", **sets}, Part), (sets, HitsPart)):
        for part in parts(**settings):
            row = part.document()
            assert ("none" in row) == (settings.get("model") == "subset")
            other = part.prime if kind is HitsPart else part.bases
            assert kind.from_document(row, other, part.groups) == part
            for key, value in row.items():
                if isinstance(value, list):
                    with pytest.raises(TypeError, match="lists"):
                        kind.from_document({**row, key: 5}, other, part.groups)


@pytest.mark.parametrize("part", CASES, ids=["single", "set"])
def test_a_part_in_floats(part):
    """Every number as a fraction, rounded once at most where it is said to be exact."""
    own, other = (
        [Fraction(*pair) for pair in zip(part.own_, (D,) * 5)],
        [Fraction(*pair) for pair in zip(part.other_, part.bases)],
    )
    assert part.chance_group.tolist() == [x / D for x in part.chance_]
    assert part.own_group.tolist() == [float(x) for x in own]
    assert part.other_group.tolist() == [float(x) for x in other]
    exactly = [float(a - b) for a, b in zip(own, other)]
    assert part.difference.tolist() == pytest.approx(exactly, rel=1e-15)
    assert 0 < part.difference[3] < 1e-9  # the difference of the floats would have 6 digits of it


@pytest.mark.parametrize("part", CASES, ids=["single", "set"])
def test_the_states_of_a_part(part):
    """As exact.py defines them: of a report that names the item, and of one that does not."""
    expected = []
    for chance, own, other, base in zip(part.chance_, part.own_, part.other_, part.bases):
        a, b = Fraction(own, D), Fraction(other, base)
        both = (chance * a / b, chance * (1 - a) / (1 - b)) if own else (Fraction(chance),) * 2
        expected.append((max(both), min(both)))
    if part.none is not None:
        expected.append((Fraction(part.none),) * 2)
    assert part.states == [(D * high, D * low) for high, low in expected]
    for logs, exactly in zip(part.log_states, zip(*expected), strict=True):
        assert logs.tolist() == pytest.approx([math.log(x) for x in exactly], rel=1e-12)
        with pytest.raises(ValueError, match="read-only"):
            logs[0] = 0.5


def test_a_part_of_hits_in_floats():
    for part in parts(input="set", padding=3):
        on = np.array(part.active) == 1
        own, other = exact_hits.own(part.prime, part.chances), Fraction(part.limit, part.prime)
        assert set(part.own_group[on]) == {float(own)} and not part.own_group[~on].any()
        assert set(part.other_group[on]) == {float(other)} and not part.other_group[~on].any()
        assert part.difference[on] == pytest.approx(float(own - other), rel=1e-15)
        assert part.chance_ == (part.none,) * len(on)
        assert part.chance_group.tolist() == [part.none / D] * len(on)
        assert part.other_ == tuple(part.limit if x else 0 for x in on)
        high, low = part.log_states
        assert high[:-1][on] == pytest.approx(np.log(float(max(part.densities[1]))))
        assert low[:-1][on] == pytest.approx(np.log(float(min(part.densities[1]))))
        assert not high[:-1][~on].any() and high[-1] == low[-1] == 0
