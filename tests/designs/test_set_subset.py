"""The design of picks: the errors it must reach, when it is chosen, what it leaves to others."""

import numpy as np
import pytest

import discreet as d
from discreet.designs import set_subset, sets
from discreet.designs.task import Task
from discreet.errors import DesignError


def policy_of(sizes, budgets, **settings):
    levels = [
        (f"l{i}", e, [f"i{i}-{k}" for k in range(n)])
        for i, (n, e) in enumerate(zip(sizes, budgets, strict=True))
    ]
    return d.Policy.from_levels(levels, kind="set", **settings)


EVEN = dict.fromkeys(range(6), 1 / 6)

# sizes, budgets, padding, sizes of people, total MSE / n of the reference
REACHED = [
    ((100,), ("0.5",), 5, None, 8658.41),
    ((100,), (1,), 5, None, 1916.62),
    ((100,), (2,), 5, None, 350.48),
    ((100,), (4,), 5, None, 42.18),
    ((100,), (1,), 5, EVEN, 1800.06),
    ((100,), (2,), 5, EVEN, 289.41),
    ((100,), (4,), 5, EVEN, 27.73),
    ((5, 15), (1, 2), 3, None, 126.5),
    ((2, 3), (1, 2), 2, None, 16.37),
    ((10, 90), (1, 2), 2, None, 426.5),
    ((2, 2, 2), (1, "1.3", 2), 2, None, 22.6),
]

# the same with cuts of one block alone
OF_ONE_BLOCK = [
    ((5, 15), (1, 2), 3, 148.58),
    ((2, 3), (1, 2), 2, 20.74),
    ((5, 5, 90), (1, "1.2", 2), 3, 690.30),
]


@pytest.mark.parametrize(("sizes", "budgets", "padding", "people", "goal"), REACHED)
def test_the_errors_that_it_must_reach(sizes, budgets, padding, people, goal):
    mechanism = d.design(
        policy_of(sizes, budgets), "subset", padding=padding, sizes=people, goal="total"
    )
    assert mechanism.encoding.kind == "picks"
    assert mechanism.certificate.value <= goal * 1.002
    if people is None:
        assert mechanism.certificate.value == pytest.approx(mechanism.expected_mse(), rel=1e-9)


@pytest.mark.parametrize(("sizes", "budgets", "padding", "goal"), OF_ONE_BLOCK)
def test_the_errors_of_cuts_of_one_block(sizes, budgets, padding, goal):
    task = Task(policy_of(sizes, budgets), "uniform", None, padding, goal="total")
    mechanism = set_subset.picks(task, several=False)
    assert set_subset.score(task, mechanism) <= goal * 1.002
    assert {len(part.m) for part in mechanism.parts} == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "budgets", "padding", "goal"),
    [
        ((10, 90), (1, 2), 5, 1080), ((10, 90), (2, 4), 5, 184), ((50, 50), (1, 2), 5, 1800),
        ((5, 5, 90), (1, "1.2", 2), 3, 615), ((5, 5, 90), (1, "1.2", 2), 2, 402),
        ((10, 90), (1, 2), 4, 855),
    ],
)  # fmt: skip
def test_the_errors_of_several_levels(sizes, budgets, padding, goal):
    mechanism = d.design(policy_of(sizes, budgets), padding=padding, goal="total")
    assert mechanism.model == "subset" and mechanism.expected_mse() <= goal
    assert {len(part.m) for part in mechanism.parts} == {len(sizes)}


def test_several_blocks_are_searched_where_there_are_few_classes():
    cases = {((3, 4), 5): 21, ((3, 4), 6): 28, ((9,), 2): np.inf, ((3, 4, 5), 3): 20}
    for (sizes, padding), classes in cases.items():
        policy = policy_of(sizes, range(1, len(sizes) + 1))
        task = Task(policy, "uniform", None, padding, goal="total")
        wanted = classes if len(sizes) < 3 else 10  # three budgets count as two
        assert set_subset.classes_of_blocks(task) == wanted


def test_reports_of_several_blocks_are_as_short_as_they_must_be():
    """Twelve bytes say something of 10 and 90 items; with fourteen they say more."""
    task = Task(policy_of((10, 90), (1, 2)), "uniform", None, 2, goal="total")
    errors = []
    for most in (12, 14):
        mechanism = set_subset.picks(task, most)
        assert mechanism.report_size <= most
        errors.append(set_subset.score(task, mechanism))
    assert errors[1] < errors[0] < 500


def test_a_search_of_blocks_is_the_same_each_time():
    task = Task(policy_of((2, 3), (1, 2)), "uniform", None, 2, goal="total")
    assert set_subset.picks(task) == set_subset.picks(task)


def test_strict_is_one_level():
    strict = d.design(policy_of((10, 90), (1, 2), strict=True), "subset", padding=5)
    assert strict.expected_mse() == pytest.approx(1916.62, rel=1e-3)
    assert strict.certificate.lower_bound == pytest.approx(1727.04, rel=1e-5)


def test_design_takes_the_better_one_if_its_reports_are_short():
    small = d.design(policy_of((12,), (1,)), padding=3)
    counted = d.design(policy_of((12,), (1,)), "hits", padding=3)
    assert (small.model, counted.model) == ("subset", "hits")
    assert small.expected_mse() < counted.expected_mse()
    large = d.design(policy_of((900,), (1,)), padding=3)
    assert large.model == "hits"  # subsets of 900 items do not fit 22 bytes at this budget
    named = d.design(policy_of((900,), (1,)), "subset", padding=3)
    assert named.report_size > 2 * large.report_size


def test_reports_of_the_choice_are_short():
    for m, s in ((40, 2), (150, 4), (300, 3)):
        chosen = d.design(policy_of((m,), (2,)), padding=s)
        counted = d.design(policy_of((m,), (2,)), "hits", padding=s)
        assert chosen.report_size <= max(16, 2 * counted.report_size)
        assert chosen.expected_mse() <= counted.expected_mse()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"padding": 1}, "there is one item"),
        ({"encoding": "bits"}, "one sampled item"),
        ({"prior": "worst"}, "expected error"),
        ({"prior": [0.9] + [0.01] * 9}, "expected error"),
        ({"padding": 13}, "a padding of 12"),
    ],
)
def test_what_picks_leave_to_the_sampled_item(change, why):
    """`subset` is then what it was: one item of a set is sampled."""
    given = {"prior": "uniform", "encoding": None, "padding": 3, **change}
    policy = policy_of((10,), (1,))
    task = Task(policy, given["prior"], given["encoding"], given["padding"])
    assert why in set_subset.unfit(task)
    assert sets.subset(task).encoding.lists == "sampled"
    with pytest.raises(DesignError):
        set_subset.picks(task)


def test_other_notions_pairs_and_weights_are_not_covered():
    avg = policy_of((3, 4), (1, 2), notion="avg")
    assert "notion" in set_subset.unfit(Task(avg, "uniform", None, 2))
    levels = [("a", 1, ["x", "y"], 2.0), ("b", 2, ["z"])]
    weighted = d.Policy.from_levels(levels, kind="set")
    assert "no weights" in set_subset.unfit(Task(weighted, "uniform", None, 2))
    assert d.design(avg, padding=2).encoding.lists == "sampled"


def test_budgets_above_twice_the_smallest_act_as_that():
    capped, higher = (
        d.design(policy_of((3, 4), (1, e)), "subset", padding=2).expected_mse() for e in (2, 5)
    )
    assert higher == pytest.approx(capped, rel=1e-3)


def test_sizes_are_shares_of_people():
    policy = policy_of((8,), (1,))
    few = d.design(policy, "subset", padding=3, sizes={0: 1, 1: 3})
    assert few.to_document()["shares"][1:] == pytest.approx([2**30, 2**31, 0], abs=2)
    for wrong in ({}, {1: -1}, {1: float("inf")}, {0.5: 1}, {True: 1}, {2: 0}):
        with pytest.raises(DesignError, match="sizes are shares of people"):
            d.design(policy, padding=3, sizes=wrong)
    with pytest.raises(DesignError, match="leave them out"):
        d.design(d.Policy.from_budgets({"a": 1, "b": 1}), sizes={1: 1})


def test_why_says_both_with_their_bytes():
    from discreet.designs import why

    policy = policy_of((12,), (1,))
    sentence = why(policy, d.design(policy, padding=3))
    assert "subset has a total MSE / n of" in sentence and "hits has a total MSE / n of" in sentence
    assert sentence.count("bytes per report") == 2
    large = policy_of((2000,), (1,))
    assert "picks are searched up to" in why(large, d.design(large, padding=3))
    assert why(policy_of((4,), (1,)), d.design(policy_of((4,), (1,)), padding=1)) == ""


def test_public_chances_of_cuts_are_best():
    """No other shares of the same cuts have less error."""
    task = Task(policy_of((2, 3), (1, 2)), "uniform", None, 2, goal="total")
    mix = set_subset._Mix.for_task(task, None)
    sizes, active = np.array([2.0, 3.0]), np.array(mix.blocks, float)
    assert len(mix.cuts) > 1
    costs = []
    for c in range(len(mix.cuts)):
        made = (mix._passes(task, [c], [share]) for share in set_subset._MIXES)
        costs.append(next(filter(None, made)).arrays.decoder.cuts[0].cost[0])
    told = active * np.array([cut.m[0] for cut in mix.cuts])[:, None] / np.array(costs)[:, None]

    def error(shares):
        return float((sizes / (shares @ told)).sum())

    best = error(mix.shares)
    for k in range(len(mix.shares)):
        moved = 0.99 * mix.shares + 0.01 * np.eye(len(mix.shares))[k]
        assert error(moved) >= best * (1 - 1e-6)


@pytest.mark.parametrize("budget", [5, 6, 8, 20])
@pytest.mark.parametrize("padding", [1, 2])
def test_two_items_have_a_design_at_large_budgets(budget, padding):
    """With so few classes, fewer columns may not tell them all apart."""
    policy = d.Policy.from_budgets({"a": budget, "b": budget}, kind="set")
    assert d.design(policy, padding=padding).check() is None
