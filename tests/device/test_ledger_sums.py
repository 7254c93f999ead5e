"""What earlier answers about the same items add up to, and in which words."""

import math

import pytest

import discreet as d
from discreet.device.ledger import LEAVING, OverlapError, new_entry, refuse_unless_agreed


def asked(name, **settings):
    """A question about the same items; its budget is 0.5."""
    levels = [("a", 0.5, ["HIV", "flu"])]
    return d.Survey(name, [d.design(d.Policy.from_levels(levels, **settings))])


def refused(first, second):
    """The refusal of a second answer after a first one."""
    earlier = {**new_entry("https://a", first, first.only), "state": LEAVING}
    mine = [new_entry("https://a", second, second.only)]
    with pytest.raises(OverlapError) as caught:
        refuse_unless_agreed([earlier, *mine], mine, second, None, 0)
    return caught.value


def test_budgets_below_one_add_up():
    told = refused(asked("one"), asked("two"))
    sums = [math.fsum(2 * [asked("one").mechanism.guarantee().epsilons[0]])]
    assert [told.epsilon] == pytest.approx(sums) and told.epsilon < 1.01
    assert told.whole is None and "budget 1)" in str(told)


@pytest.mark.parametrize("kind", ["single", "each"])
@pytest.mark.parametrize(
    ("first", "second", "one_way"),
    [({}, {}, False), ({"notion": "one-way"}, {}, True), ({}, {"notion": "one-way"}, True)],
)
def test_one_answer_that_is_protected_one_way_only_is_said(kind, first, second, one_way):
    """Whichever of the two it is."""
    told = refused(asked("one", kind=kind, **first), asked("two", kind=kind, **second))
    assert ("raise the odds" in str(told)) == one_way
    assert ("that it is not may become known" in str(told)) == one_way
    assert ("whole lists" in str(told)) == (kind == "each")
    unlimited = "whole lists without any limit" in str(told)
    assert unlimited == (one_way and kind == "each") and "any number" not in str(told)
