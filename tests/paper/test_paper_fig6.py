"""Fig. 6: shares of sensitive items."""

from paper_evidence import (
    changed,
    check_claims,
    check_unknown_without_numbers,
    evidence,
    models,
    survey,
)

from discreet.paper import fig6
from discreet.paper.settings import Setup


def shares(line, metric="mse"):
    """IDUE / OUE by the share of sensitive items."""
    found = []
    for share, ratio in line.items():
        values = {"opt0": ratio, "oue": 1.0, "rappor": 1.2}
        found += models(values, levels=2, share=share, metric=metric)
    return found


CASES = {
    "more benefit with fewer sensitive items": (
        evidence(shares({0.05: 0.6, 0.2: 0.8, 0.5: 1.0})),
        evidence(shares({0.05: 0.6, 0.2: 0.9, 0.5: 0.8})),
    ),
    "IDUE is OUE above 40 %, MSE": (
        evidence(shares({0.05: 0.6, 0.5: 0.98})),
        evidence(shares({0.5: 0.8})),
    ),
    "IDUE is OUE above 40 %, RE": (
        evidence(shares({0.05: 0.6, 0.5: 0.98}, "re")),
        evidence(shares({0.5: 0.8}, "re")),
    ),
    "OUE outperforms RAPPOR": (
        evidence(shares({0.05: 0.6})),
        evidence(models({"oue": 2.0, "rappor": 1.0}, levels=2)),
    ),
    "the limit of few sensitive items": (
        changed("fig6_limit", {"/ oue at 2 eps": 1.05}),
        evidence(),
    ),
}


def test_claims_hold_and_fail():
    check_claims(fig6.TARGET, CASES)
    check_unknown_without_numbers(fig6.TARGET, CASES)


def test_experiments_have_two_budgets():
    found = fig6.TARGET.experiments(Setup(), {"retail": survey()})
    assert {x.factors for x in found} == {(1.0, 2.0)} and all(sum(x.shares) == 1 for x in found)
    assert {x.shares[0] for x in found} == set(Setup().sensitive)
    assert {x.ks for x in found} == {(12,)}


def test_opt0_comes_closer_to_the_larger_budget_with_fewer_sensitive_items():
    rows = fig6.limit(Setup(quick=True)).rows
    for eps in (2.0, 4.0):
        ratios = [x["/ rappor at 2 eps"] for x in rows if x["eps"] == eps]
        assert ratios == sorted(ratios, reverse=True) and 1 < ratios[-1] < 1.1
