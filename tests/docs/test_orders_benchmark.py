"""What the accuracy benchmark sets beside one-way protection and scales: the mechanisms keep the
same guarantee, use all of it, and have the errors that are known of them.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from ordered import leveled

import discreet as d

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import orders

CASES = [(1, 4, 1), (2, 3, 0.5), (3, 2, 2)]


def raised(chance, sensitive):
    """The largest ratio of a sensitive answer's chance over any other answer's."""
    ratios = []
    for row in chance:
        for i in range(sensitive):
            others = np.delete(row, i)
            ratios += [np.inf if row[i] and not other else row[i] / other if row[i] else 0
                       for other in others]  # fmt: skip
    return max(ratios)


def bits_law(sensitive, open_, eps, own):
    """Pr(report | answer) of uRAP, every report of all bits."""
    other, shown = orders.urap(eps, own)
    m = sensitive + open_
    set_ = np.where(np.eye(m, dtype=bool), [[own]] * sensitive + [[shown]] * open_, 0.0)
    set_[:sensitive][set_[:sensitive] == 0] = other
    reports = np.array(list(product((0, 1), repeat=m)))
    return np.array([np.where(y[:, None], set_, 1 - set_).prod(axis=0) for y in reports])


@pytest.mark.parametrize(("sensitive", "open_", "eps"), CASES)
def test_the_others_keep_the_same_one_way_guarantee_and_use_it(sensitive, open_, eps):
    laws = [
        orders.urr(sensitive, open_, eps),
        *(bits_law(sensitive, open_, eps, own) for own in (orders.rappor(eps), 0.5)),
    ]
    for chance in laws:
        assert chance.sum(axis=0) == pytest.approx(np.ones(sensitive + open_))
        assert raised(chance, sensitive) == pytest.approx(np.exp(eps))


@pytest.mark.parametrize("step", [0.5, 2])
def test_the_geometric_mechanism_keeps_a_budget_per_step(step):
    chance = orders.geometric(5, step)
    assert chance.sum(axis=0) == pytest.approx(np.ones(5))
    ratios = np.log(chance[:, :-1] / chance[:, 1:])
    assert np.abs(ratios).max() == pytest.approx(step)


@pytest.mark.parametrize(
    ("sensitive", "open_", "eps", "value"),
    [(5, 95, 0.5, 62.8), (5, 95, 1, 12.5), (11, 30, 1, 49.7)],
)
def test_urr_has_its_known_error(sensitive, open_, eps, value):
    """tr of (chance p^-1 chance')^-1 less 1, everybody equally likely."""
    chance = orders.urr(sensitive, open_, eps)
    information = (chance / chance.mean(axis=1)[:, None]).T @ chance
    assert np.trace(np.linalg.inv(information)) - 1 == pytest.approx(value, abs=0.05)


@pytest.mark.parametrize(("points", "step", "value"), [(5, 0.5, 49.72), (11, 1, 7.312)])
def test_the_geometric_mechanism_has_its_known_error(points, step, value):
    found, _ = orders.errors(
        orders.by_matrix(orders.geometric(points, step)), np.full(points, 1000), 400
    )
    spread = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - value) < 5 * spread
    assert abs(found.mean() - 1.5 * value) > 5 * spread


def test_draws_have_the_expected_error():
    """Ours and theirs within 5 standard errors; the twin is another epsilon."""
    truth = np.full(9, 500)
    mechanism = d.design(leveled((3, 6), (1, None)))
    policy = mechanism.policy
    for draw, chance in (
        (orders.by_matrix(orders.urr(3, 6, 1)), orders.urr(3, 6, 1)),
        (orders.by_bits(3, 1, 0.5), None),
        (orders.by_design(policy), None),
    ):
        found, _ = orders.errors(draw, truth, 200)
        spread = 5 * found.std() / np.sqrt(len(found))
        if chance is not None:
            information = (chance / chance.mean(axis=1)[:, None]).T @ chance
            value = np.trace(np.linalg.inv(information)) - 1
        elif draw.__qualname__.startswith("by_bits"):
            other, shown = orders.urap(1, 0.5)
            noise = (0.25 / 9 + other * (1 - other) * 8 / 9) / (0.5 - other) ** 2
            value = 3 * noise + 6 / 9 * (1 - shown) / shown
        else:
            value = mechanism.expected_mse()
        assert abs(found.mean() - value) < spread
        assert abs(found.mean() - 2 * value) > spread
