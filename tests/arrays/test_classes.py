"""The estimator of picks by enumeration: unbiased for every set of at most s items, and second
moments of every set; what a tally tells of its own error.
"""

from functools import cache

import numpy as np
import picked
import pytest

import discreet as d
from discreet.arrays import theory
from discreet.arrays.people import People, mean_size
from discreet.designs.set_subset import picks
from discreet.designs.task import Task

CASES = {
    "one level": ((5,), (1,), 2),
    "two levels": ((2, 3), (1, 2), 2),
    "three levels": ((2, 2, 2), (1, "1.3", 2), 2),
    "padding above a level": ((2, 3), (1, 2), 3),
    "a lone item": ((1, 4), ("0.7", 2), 2),
}
ONE_BLOCK = [f"{name}, one block" for name in CASES if name != "one level"]
EVERY = [*CASES, *ONE_BLOCK]


@cache
def designed(name):
    sizes, budgets, padding = CASES[name.removesuffix(", one block")]
    levels = [
        (f"l{i}", e, [f"i{i}-{k}" for k in range(n)])
        for i, (n, e) in enumerate(zip(sizes, budgets, strict=True))
    ]
    policy = d.Policy.from_levels(levels, kind="set")
    return picks(Task(policy, "uniform", None, padding, goal="total"), several=name in CASES)


@cache
def table(name):
    """The scores of every report, and the chances of all reports for every set."""
    mechanism = designed(name)
    document = mechanism.to_document()
    reports = picked.reports(document)
    scores = mechanism.scores([picked.pack(document, *y) for y in reports])
    laws = {}
    for x in picked.subsets(range(mechanism.m)):
        law = picked.law(document, x)
        laws[x] = np.array([float(law.get(y, 0)) for y in reports])
    return scores, laws


def held(mechanism, x):
    return np.isin(np.arange(mechanism.m), list(x)).astype(float)


@pytest.mark.parametrize("name", EVERY)
def test_unbiased_for_every_set_of_at_most_as_many_items_as_the_padding(name):
    """Larger sets count padding / size for each of their items."""
    mechanism, (scores, laws) = designed(name), table(name)
    for x, law in laws.items():
        expected = held(mechanism, x) * min(1, mechanism.padding / max(len(x), 1))
        assert law @ scores == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_second_moments_of_every_set(name):
    mechanism, (scores, laws) = designed(name), table(name)
    for x, law in laws.items():
        error = theory.set_error(mechanism, [sorted(x)])
        counted = held(mechanism, x) * min(1, mechanism.padding / max(len(x), 1))
        assert error.variance == pytest.approx(law @ scores**2 - counted**2, rel=1e-9)
        assert error.bias == pytest.approx(counted - held(mechanism, x), abs=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_expected_errors_are_means_over_all_sets(name):
    mechanism, (scores, laws) = designed(name), table(name)
    full = [law for x, law in laws.items() if len(x) == mechanism.padding]
    mean = np.mean([law @ scores**2 for law in full], axis=0).sum() - mechanism.padding
    assert mechanism.expected_mse() == pytest.approx(mean, rel=1e-9)
    s, m = mechanism.padding, mechanism.m
    counted = {x: len(x) * min(1, s / max(len(x), 1)) ** 2 for x in laws}
    worst = max((law @ scores**2).sum() - counted[x] for x, law in laws.items())
    small = max((law @ scores**2).sum() - counted[x] for x, law in laws.items() if len(x) <= s)
    assert worst <= mechanism.worst_case_mse * (1 + 1e-9)
    assert mechanism.worst_case_mse <= small + s * (1 - min(1, s / m)) + 1e-9
    assert mechanism.expected_mse() <= mechanism.certificate.value * (1 + 1e-9)


def classes_of(mechanism, x):
    """The class of one person, per cut."""
    group_of, found = mechanism.arrays.group_of, []
    for cut in mechanism.arrays.decoder.cuts:
        blocks = mechanism.parts[cut.parts[0]].ints.blocks
        mine = [blocks[group_of[i]] for i in x]
        j = [mine.count(b + 1) for b in range(len(cut.m))]
        found.append((cut.classes == j).all(axis=1).astype(float))
    return np.concatenate(found)


@pytest.mark.parametrize("name", EVERY)
def test_the_squares_of_a_sum_are_bounded_and_those_of_who_holds_none_exact(name):
    mechanism, (scores, laws) = designed(name), table(name)
    decoder, group_of = mechanism.arrays.decoder, mechanism.arrays.group_of
    reached = 0.0
    for places in picked.subsets(range(mechanism.m)):
        if not places:
            continue
        counts = np.bincount(group_of[list(places)], minlength=len(mechanism.group_sizes))
        for x, law in laws.items():
            if len(x) > mechanism.padding:
                continue
            none, more = decoder.sum_moments(mechanism, counts, classes_of(mechanism, x))
            square, mine = law @ scores[:, list(places)].sum(axis=1) ** 2, len(x & places)
            if mine:
                assert square <= none + mine * more + 1e-9
                reached = max(reached, (square - none) / (mine * more)) if more > 1e-6 else reached
            else:
                assert none == pytest.approx(square, rel=1e-9)
    assert 0.99 < reached <= 1 + 1e-9


@pytest.mark.parametrize("name", ["two levels", "padding above a level", *ONE_BLOCK[:1]])
@pytest.mark.parametrize("sets", [[()], [(0,)], [(0, 1), (2, 4), ()]])
def test_a_tally_tells_its_own_error_whatever_people_have(name, sets):
    """The expected tally gives the variance of these sets, though the design expects others: the
    mean over the items of a group exactly.
    """
    mechanism, (_, laws) = designed(name), table(name)
    document, n = mechanism.to_document(), 3_000_000
    part_n = np.zeros(len(mechanism.parts))
    counts = np.zeros((len(mechanism.parts), mechanism.m))
    for (o, named), *chances in zip(
        picked.reports(document), *(laws[frozenset(x)] for x in sets), strict=True
    ):
        part_n[o] += n * np.mean(chances)
        counts[o, list(named)] += n * np.mean(chances)
    tally = d.Tally(mechanism, part_n, counts)
    at_zero, slope = mechanism.arrays.decoder.observed(tally)
    group_of, truth = mechanism.arrays.group_of, sum(held(mechanism, x) for x in sets)
    exact = theory.set_error(mechanism, sets).variance / len(sets)
    found = (at_zero / n)[group_of] + slope[group_of] * truth / len(sets)
    for g in range(len(mechanism.group_sizes)):
        mine = group_of == g
        assert found[mine].mean() == pytest.approx(exact[mine].mean(), rel=1e-6)
    assert found == pytest.approx(exact, rel=0.15)


def test_cuts_that_cannot_be_told_apart_estimate_nothing():
    """One part for everybody says nothing of any class."""
    from dataclasses import replace

    from discreet.check.exact_sets import TOTAL

    mechanism = designed("one level")
    part = mechanism.parts[0]
    silent = replace(part, ints=part.ints._replace(sizes=(0,), rows=[[(TOTAL, 0)]] * 3))
    alone = replace(mechanism, parts=[silent], encoding=type(mechanism.encoding)(1))
    assert not alone.encoding.unbiased(alone) and mechanism.encoding.unbiased(mechanism)
    assert not alone.arrays.decoder.estimable.any()
    assert alone.expected_mse() == np.inf


# ---- classes of people ---------------------------------------------------------------------------


def test_the_law_of_active_items_is_that_of_drawing_without_replacement():
    people = People(np.array([0, 0, 0.25, 0.75]), np.array([0.2, 0.8]))
    law = people.law((2, 8), (1, 0))
    two, three = (np.array(x) for x in ([28, 16, 1], [56, 56, 8]))
    assert law == pytest.approx(0.25 * two / 45 + 0.75 * three / 120)
    both = people.law(
        (2, 8), (1, 2)
    )  # of (0, 0), (0, 1), (0, 2), (0, 3), (1, 0), …, (2, 0), (2, 1)
    two, three = np.zeros((2, 9))
    two[[2, 5, 7]], three[[3, 6, 8]] = [28, 16, 1], [56, 56, 8]
    assert both == pytest.approx(0.25 * two / 45 + 0.75 * three / 120)


def test_nobody_has_more_items_than_there_are():
    """Who has four items of three has all of them."""
    assert People(np.eye(5)[4], np.array([0.5, 0.5])).law((1, 2), (1, 2))[-1] == 1


def test_shares_give_the_people_back():
    mechanism = designed("two levels")
    people = People.at_shares(mechanism)
    assert people.sizes == pytest.approx([0, 0, 1], abs=1e-9)
    assert people.groups == pytest.approx([0.4, 0.6], abs=1e-9)
    mixed = People(np.array([0.25, 0.25, 0.5]), np.array([0.1, 0.9]))
    shares = mixed.shares()
    assert shares.sum() == pytest.approx(1) and shares[2:] == pytest.approx([0.25, 0.125])
    assert mean_size(2.25, 3) == pytest.approx([0, 0, 0.75, 0.25])
    assert mean_size(9, 3) == pytest.approx([0, 0, 0, 1])
