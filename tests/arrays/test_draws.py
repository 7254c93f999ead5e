"""Draws for many people: exactly uniform, by enumeration of every run of the generator."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from checks import assert_bernoulli, assert_binomial
from collecting import several

from discreet.arrays.draws import draw_questions, shuffled
from discreet.arrays.randomness import Keystream


class Scripted:
    """A generator that says these numbers in turn, to every person one."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def below(self, bounds):
        numbers = np.array(self.steps.pop(0), np.uint64)
        assert (numbers < bounds).all()
        return numbers


@pytest.mark.parametrize("answers", [1, 2, 3, 4])
def test_every_subset_of_questions_is_drawn_equally_often(answers):
    survey = several(answers=answers)
    runs = list(product(*(range(4 - k) for k in range(answers))))
    chosen = draw_questions(survey, len(runs), Scripted(*zip(*runs, strict=True)))
    subsets = Counter(tuple(np.flatnonzero(row)) for row in chosen)
    assert set(subsets) == set(combinations(range(4), answers))
    assert len(set(subsets.values())) == 1


def test_draws_are_secure_and_uniform():
    survey, people = several(answers=2), 60_000
    chosen = draw_questions(survey, people, Keystream())
    assert (chosen.sum(axis=1) == 2).all()
    for place in range(4):
        assert_bernoulli(int(chosen[:, place].sum()), people, 1 / 2)
    assert_bernoulli(int((chosen[:, 0] & chosen[:, 3]).sum()), people, 1 / 6)
    # a twin that must fail: everybody draws the same
    with pytest.raises(AssertionError):
        assert_bernoulli(int(np.repeat(chosen[:1], people, axis=0)[:, 0].sum()), people, 1 / 2)


def test_an_order_says_nothing_about_who_is_who():
    rows = np.arange(5, 9)
    orders = Counter(tuple(shuffled(rows, Keystream())) for _ in range(4800))
    assert all(sorted(order) == [5, 6, 7, 8] for order in orders)
    assert len(orders) == 24
    assert_binomial([*orders.values()], 4800, np.full(24, 1 / 24))
