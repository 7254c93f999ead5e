"""Fig. 8 and what it shares with fig. 9: experiments, curves and claims against the padding."""

from paper_evidence import (
    FALLING,
    RISING,
    both,
    check_claims,
    check_unknown_without_numbers,
    evidence,
    row,
    sizes,
    survey,
)

from discreet.paper import fig8, paddings
from discreet.paper.experiments import Numbers
from discreet.paper.settings import Setup

GROWS = "the best padding grows with eps, clothing"
CASES = {
    "items per user, clothing": (evidence(**sizes(2.2)), evidence(**sizes(2.7))),
    GROWS: (
        evidence(both("clothing", {1.0: RISING, 4.0: FALLING})),
        evidence(both("clothing", {1.0: FALLING, 4.0: RISING})),
    ),
}


def test_claims_hold_and_fail():
    check_claims(fig8.TARGET, CASES)
    check_unknown_without_numbers(fig8.TARGET, CASES)


def test_curves_are_of_one_k():
    """fig7 has other k at one padding of the same data: they are no point of the curve."""
    other = row(data="clothing", metric="re", eps=4.0, padding=3, k=100, theory=9.0)
    numbers = Numbers([*both("clothing", {4.0: FALLING}), other])
    known = {4.0: dict(enumerate(map(float, FALLING), 1))}
    assert paddings.curves(numbers, "clothing", "re") == known
    assert paddings.best(numbers, "clothing", "re") == {4.0: 3}


def test_every_padding_has_its_theory_and_some_an_experiment():
    data, setup = {"clothing": survey()}, Setup(through_reports=True)
    found = fig8.TARGET.experiments(setup, data)
    tried = setup.paddings(float(data["clothing"].sizes.mean()))
    assert {x.padding for x in found} == set(range(1, tried[-1] + 1))
    assert {x.padding for x in found if x.repeats} == set(tried)
    assert {x.padding for x in found if x.encoding == "ticket"} == set(tried)


def test_regret_is_over_the_best():
    assert paddings.regret({1: 4.0, 2: 2.0, 3: 3.0}, 1) == 2.0
    assert paddings.regret({1: 4.0, 2: 2.0, 3: 3.0}, 9) == 1.5  # the last tried


def test_sizes_are_those_of_the_people():
    data = survey()
    (found,) = paddings.sizes("fig8", ("clothing", "retail"), {"clothing": data}).rows
    assert found["mean"] == data.sizes.mean() and found["largest"] == data.sizes.max() == 6
