"""From floats to integers that keep the budgets: what the rounding costs."""

import numpy as np
import ordered
import pytest
from ordered import leveled

from discreet.designs import rounding
from discreet.designs.groups import Groups
from discreet.designs.search import Search
from discreet.designs.task import Task
from discreet.encodings import Fixed

PAIR = [("l1", "l8", 3, True)]
# budgets far apart: some chances are few of 2^32, and neighbours must keep a small budget
CASES = {
    "one-way": leveled((2, 1, 90, 1, 90), (0.7099, 0.0023, 0.0272, 0.0026, 3.3185)),
    "one-way, six": leveled((30, 3, 5, 90, 1, 30), (7.0285, 0.003, 2.4557, 2.9881, 0.8, 0.7)),
    "one-way, small": leveled(
        (90, 1, 3, 1, 30, 90), (4.1258, 0.0994, 1.5383, 0.0265, 3.9857, 0.0032)
    ),
    "avg": leveled((1, 90, 2, 1), (6.1791, 2.9052, 5.8931, 0.0029), "avg"),
    "nine levels": leveled((2,) * 9, [0.5 + k / 2 for k in range(9)], "min", pairs=PAIR),
    "scale": ordered.scale(11, 2),
}
LOSS = 1e-4  # relative; budgets that shrink by a share of 1e-5 cost about twice that


def both(policy):
    """The total error of the design in floats, and of its integers."""
    task = Task(policy, "uniform", None, None, goal="total")
    groups = Groups.for_task(task)
    search = Search(task, groups, Fixed())
    mechanism, designs = search.at(groups.shares)
    return search._sum(groups.shares, [design.value for design in designs]), task.score(mechanism)


@pytest.mark.parametrize("name", CASES)
def test_rounding_costs_next_to_nothing(name):
    floats, integers = both(CASES[name])
    assert integers == pytest.approx(floats, rel=LOSS)


@pytest.mark.parametrize("name", ["one-way, six"])
def test_nearest_integers_would_cost_much(name, monkeypatch):
    """The twin: without moving small numbers the budgets must shrink by a share of 1e-2 or more."""
    monkeypatch.setattr(
        rounding, "_kept", lambda whole, own, share, r: (rounding._summed(whole), own)
    )
    floats, integers = both(CASES[name])
    assert integers > floats * (1 + 100 * LOSS)


def test_small_chances_are_raised_until_every_budget_holds():
    """Two lone answers at 1: beside 1000 of 2^32 there must be 368, and 2^32 stays the sum."""
    whole = np.array([[1000, 1], [2**32 - 1000, 2**32 - 1]])
    nothing, r = np.zeros((2, 2)), np.array([[np.inf, 1.0], [1.0, np.inf]])
    found, _ = rounding._kept(whole, nothing, nothing, r)
    assert found.sum(axis=0).tolist() == [2**32, 2**32]
    assert found[0].tolist() == [1000, 368]
    assert (found[:, 0] <= np.e * found[:, 1]).all() and (found[:, 1] <= np.e * found[:, 0]).all()
