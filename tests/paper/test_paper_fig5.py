"""Fig. 5: the same experiments by k."""

from paper_evidence import (
    BAD,
    GOOD,
    check_claims,
    check_unknown_without_numbers,
    evidence,
    models,
    survey,
)

from discreet.paper import fig4, fig5
from discreet.paper.settings import Setup

CASES = {
    f"RE for all k, {key}": tuple(
        evidence(models(x, data=key, metric="re", k=70)) for x in (GOOD, BAD)
    )
    for key in ("retail", "kosarak")
}


def test_claims_hold_and_fail():
    check_claims(fig5.TARGET, CASES)
    check_unknown_without_numbers(fig5.TARGET, CASES)


def test_its_experiments_are_those_of_fig4():
    data, setup = {"retail": survey(), "kosarak": survey()}, Setup()
    assert fig5.TARGET.experiments(setup, data) == fig4.TARGET.experiments(setup, data)
    (figure,) = fig5.TARGET.figures(setup, data)
    assert [len(row) for row in figure.panels] == [3, 3]  # data sets, by eps
