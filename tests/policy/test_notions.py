"""A notion gives every pair budget; its closed formula is the longest way between two answers."""

import math

import pytest

import discreet as d
from discreet.policy.notions import NOTIONS

PAIR = {"min": min, "avg": lambda x, y: (x + y) / 2, "one-way": lambda x, y: x}
BUDGETS = [(1.5,), (1, 1.25), (1, 3), (0.5, 0.75, 4), (4, 0.5, 3, 0.75), (3, 3, 1)]


def made(notion, budgets, sizes):
    names = "abcd"
    rows = [
        (name, budget, [f"{name}{k}" for k in range(size)])
        for name, budget, size in zip(names, budgets, sizes)
    ]
    return d.Policy.from_levels(rows, notion=notion)


def longest_path(policy):
    """Between any two different items, the least sum of pair budgets on a way through others."""
    levels = policy.level_of
    steps = [[policy.pair_epsilon(i, j) if x != y else 0.0 for y, j in enumerate(levels)]
             for x, i in enumerate(levels)]  # fmt: skip
    for k in range(policy.m):
        steps = [[min(x, row[k] + y) for x, y in zip(row, steps[k])] for row in steps]
    return max(map(max, steps))


def test_every_notion_is_tried():
    assert {*PAIR, "blocks", "scale"} == {*NOTIONS}


def test_blocks_protect_within_a_level_alone():
    policy = d.Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])], blocks=True)
    table = [[policy.pair_epsilon(i, j) for j in range(2)] for i in range(2)]
    assert table == [[1, math.inf], [math.inf, 2]]


@pytest.mark.parametrize(("cap", "far"), [(None, 2), (1, 1), (0.5, 0.5), (2, 2)])
def test_a_scale_has_a_budget_per_step(cap, far):
    policy = d.Policy.from_scale(list("abcde"), step=0.5, cap=cap)
    assert [policy.pair_epsilon(0, j) for j in range(5)] == [
        math.inf, *(min(0.5 * j, far) for j in range(1, 5))
    ]  # fmt: skip
    assert policy.pair_epsilon(4, 2) == policy.pair_epsilon(2, 4)


def test_an_open_level_is_promised_nothing():
    rows = [("a", 1, ["x", "y"]), ("b", None, ["z"])]
    policy = d.Policy.from_levels(rows, notion="one-way", open=["b"])
    assert (policy.pair_epsilon(0, 1), policy.pair_epsilon(1, 0)) == (1, math.inf)
    assert policy.open_levels == (1,) and not policy.is_mutual


def test_a_pair_may_be_one_way():
    rows = [("a", 2, ["x", "y"]), ("b", 2, ["z"])]
    policy = d.Policy.from_levels(rows, pairs=[("a", "b", 0.5, True)])
    assert (policy.pair_epsilon(0, 1), policy.pair_epsilon(1, 0)) == (0.5, 2)


@pytest.mark.parametrize("budgets", BUDGETS, ids=str)
@pytest.mark.parametrize("notion", PAIR)
def test_pair_budgets_of_a_notion(notion, budgets):
    policy = made(notion, budgets, (2, 2, 2, 2))
    for i, own in enumerate(budgets):
        for j, other in enumerate(budgets):
            assert policy.pair_epsilon(i, j) == pytest.approx(PAIR[notion](own, other), rel=1e-12)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (1, 2, 1, 1), (2, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("budgets", BUDGETS, ids=str)
@pytest.mark.parametrize("notion", PAIR)
def test_the_closed_formula_is_the_longest_shortest_path(notion, budgets, sizes):
    policy = made(notion, budgets, sizes)
    bound = d.design(policy, "oue").guarantee().ldp_bound
    assert bound == pytest.approx(longest_path(policy), rel=1e-12)
