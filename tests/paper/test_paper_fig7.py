"""Fig. 7: item sets."""

import numpy as np
import pytest
from paper_evidence import (
    BAD,
    GOOD,
    changed,
    check_claims,
    check_unknown_without_numbers,
    evidence,
    judge,
    models,
    row,
)

from discreet.paper import fig7
from discreet.paper.verdicts import FAILS, UNKNOWN

PLACE = {"data": "clothing", "padding": 2, "metric": "precision"}
WORSE = "raw precision may be worse, clothing"


def precision(mine, other, **fields):
    values = {"opt0": mine, "oue": other, "rappor": other}
    return [row(x, model=model, **PLACE, **fields) for model, x in values.items()]


def at_both_ends(few, many):
    few, many = precision(few, few, eps=3.0, k=10), precision(many, many, eps=3.0, k=100)
    return evidence(few + many)


CASES = {
    "IDUE-PS keeps the budgets of sets": (
        evidence(),
        changed("fig7_budgets", {"largest bound - budget": 0.1}, padding=2),
        changed("fig7_budgets", {"a, b differ by": 0.1}, padding=2),
    ),
    "RE, clothing": tuple(
        evidence(models(x, data="clothing", padding=2, metric="re", k=20)) for x in (GOOD, BAD)
    ),
    WORSE: (
        evidence(precision(0.3, 0.5, eps=1.0, k=50)),
        evidence(precision(0.5, 0.3, eps=2.0, k=10)),
    ),
    "raw precision highest for larger eps and k, clothing": (
        evidence(precision(0.6, 0.5, eps=3.0, k=50)),
        evidence(precision(0.4, 0.5, eps=3.0, k=50)),
    ),
    "larger k, lower precision, clothing": (at_both_ends(0.6, 0.5), at_both_ends(0.4, 0.5)),
}


def test_claims_hold_and_fail():
    check_claims(fig7.TARGET, CASES)
    check_unknown_without_numbers(fig7.TARGET, CASES)


def test_raw_precision_within_sampling_error_is_not_shown():
    rng = np.random.default_rng(2)
    rows = [
        row(tuple(rng.normal(x, 0.1, 10)), model=model, k=10, **PLACE)
        for model, x in (("opt0", 0.45), ("oue", 0.5))
    ]
    assert judge(fig7.TARGET, WORSE)(evidence(rows)).verdict in (UNKNOWN, FAILS)


def test_idue_ps_has_the_probabilities_of_idue():
    rows = fig7.set_budgets().rows
    assert [x["padding"] for x in rows] == [1, 2, 5]
    assert all(x["a, b differ by"] == 0 and x["largest bound - budget"] <= 1e-9 for x in rows)
    assert rows[0]["pairs of sets"] == pytest.approx(20 * 19)  # kinds of up to three items
