"""Parts as floats: the same numbers as the integers, per group and per level, which nobody can
change.
"""

from fractions import Fraction

import numpy as np
import pytest

import discreet as d
from discreet import exact_hits
from discreet.parts import HitsPart, Part

ROWS = [("low", 2, ["x", "y"]), ("high", 1, ["z"]), ("more", 2, ["u", "v", "w"])]


def parts(**settings):
    return d.design(d.Policy.from_levels(ROWS, **settings)).parts


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
    for settings, kind in (({}, Part), ({"input": "set", "padding": 3}, HitsPart)):
        for part in parts(**settings):
            row = part.document()
            other = part.prime if kind is HitsPart else part.bases
            assert kind.from_document(row, other, part.groups) == part
            for key, value in row.items():
                if isinstance(value, list):
                    with pytest.raises(TypeError, match="lists"):
                        kind.from_document({**row, key: 5}, other, part.groups)


def test_a_part_of_hits_in_floats():
    for part in parts(input="set", padding=3):
        on = np.array(part.active) == 1
        own, other = exact_hits.own(part.prime, part.chances), Fraction(part.limit, part.prime)
        assert set(part.own_group[on]) == {float(own)} and not part.own_group[~on].any()
        assert set(part.other_group[on]) == {float(other)} and not part.other_group[~on].any()
        assert part.difference[on] == pytest.approx(float(own - other), rel=1e-15)
        assert part.chance_ == (part.none,) * len(on)
        high, low = part.log_states
        assert high[:-1][on] == pytest.approx(np.log(float(max(part.densities[1]))))
        assert low[:-1][on] == pytest.approx(np.log(float(min(part.densities[1]))))
        assert not high[:-1][~on].any() and high[-1] == low[-1] == 0
