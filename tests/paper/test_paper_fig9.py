"""Fig. 9: the padding on Kosarak, and the paper's advice."""

from paper_evidence import (
    FALLING,
    RISING,
    both,
    check_claims,
    check_unknown_without_numbers,
    curve,
    evidence,
    judge,
    sizes,
    survey,
)

from discreet.paper import fig9
from discreet.paper.settings import Setup
from discreet.paper.verdicts import HOLDS


def trade(variance, bias, **tables):
    rows = curve("kosarak", "variance", variance) + curve("kosarak", "bias", bias)
    return evidence(rows, **tables)


def grows(data):
    return tuple(
        evidence(both(data, {1.0: first, 4.0: last}))
        for first, last in ((RISING, FALLING), (FALLING, RISING))
    )


def of_kosarak(lines, **tables):
    return evidence(both("kosarak", lines), **tables)


GROWS, STRATEGY = "the best padding grows with eps, kosarak", "a simple strategy for the padding"
FLAT = [2] * 5
CASES = {
    "items per user, kosarak": (evidence(**sizes(8.2)), evidence(**sizes(8.7))),
    GROWS: grows("kosarak"),
    "the best padding grows with eps, retail": grows("retail"),
    "the best padding differs between data sets": tuple(
        evidence(both("clothing", {4.0: line}) + both("kosarak", {4.0: FALLING}))
        for line in (RISING, FALLING)
    ),
    "variance grows and bias falls with the padding": (
        trade({1.0: RISING}, {1.0: RISING[::-1]}),
        trade({1.0: FALLING}, {1.0: RISING[::-1]}),
    ),
    "variance dominates at small eps": tuple(
        trade({1.0: [x] * 5, 4.0: [1] * 5}, {1.0: FLAT, 4.0: FLAT}, **sizes(3.0)) for x in (9, 1)
    ),
    "padding 5 gains little from eps": tuple(
        of_kosarak({2.0: [1.0] * 5, 4.0: [1.0] * 4 + [x]}) for x in (0.9, 0.4)
    ),
    "the 90th percentile is not enough": tuple(
        of_kosarak({1.0: [1.0, 1.0, 1.0, x, 1.0]}, **sizes(3.0)) for x in (2.0, 1.0)
    ),
    STRATEGY: tuple(
        of_kosarak({2.0: RISING, 4.0: line}, **sizes(3.0)) for line in (FALLING, [4, 2, 1.5, 1, 9])
    ),
}


def test_claims_hold_and_fail():
    check_claims(fig9.TARGET, CASES)
    check_unknown_without_numbers(fig9.TARGET, CASES)


def test_a_larger_survey_is_a_note_and_no_verdict():
    rows = both("kosarak", {2.0: RISING, 4.0: FALLING})
    rows += both("kosarak-x10", {2.0: RISING[::-1], 4.0: FALLING})
    verdict = judge(fig9.TARGET, STRATEGY)(evidence(rows, **sizes(3.0)))
    assert verdict.verdict == HOLDS and "best 5 at eps 2" in verdict.note
    assert "With everyone ten times it does not work" in verdict.note
    grown = judge(fig9.TARGET, GROWS)(evidence(rows))
    assert "with everyone ten times, by RE at eps 2: 5, 4: 3" in grown.note


def test_panels_beyond_the_figure_are_those_of_the_data_at_hand():
    data, setup = {"kosarak": survey()}, Setup()
    assert len(fig9.TARGET.figures(setup, data)) == 1
    data |= {"retail": survey(), "kosarak-x10": survey()}
    own, beyond = fig9.TARGET.figures(setup, data)
    assert len(own.panels) == 1 and len(beyond.panels) == 2
