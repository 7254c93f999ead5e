"""Fig. 3: the designs land on the known numbers; claims about designs and experiments."""

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

from discreet.paper import fig3
from discreet.paper.experiments import Numbers
from discreet.paper.settings import PAPER_MODELS, Setup
from discreet.paper.verdicts import Evidence


def synthetic(values):
    return [x for data in ("power-law", "uniform") for x in models(values, data=data)]


def around(shift, spread=1.0, theory=100.0, **fields):
    """Rows with a known expectation and standard deviation."""
    values = tuple(theory + shift + spread * np.array([-1.0, 1.0] * 5))
    known = {"expected": (theory,) * 10, "sd": spread, "theory": theory}
    return row(values, data="uniform", **known, **fields)


def test_the_designs_land_on_the_known_numbers():
    """DESIGN "numbers to land on"."""
    rows = fig3.designs(Setup()).rows
    value = {(x["eps"], x["model"]): x["worst case / n"] for x in rows}
    known = {
        1.0: (391.77, 369.27, 239.72, 250.67, 304.09),
        2.0: (92.07, 73.41, 48.49, 57.10, 69.56),
        3.0: (36.97, 23.06, 15.93, 21.91, 23.06),
    }
    for eps, numbers in known.items():
        found = [value[eps, model] for model in PAPER_MODELS]
        assert found == pytest.approx(numbers, abs=0.006)


def test_the_price_of_the_box_grows_with_the_domain():
    rows = fig3.box(Setup(quick=True)).rows
    prices = [x["eps 2"] for x in rows]
    assert prices[0] == pytest.approx(50.357 / 48.490 - 1, abs=5e-5)
    assert all(x < y for x, y in zip(prices, prices[1:], strict=False))


DESIGNS, OUTPERFORMS = "fig3_designs", "IDUE below RAPPOR and OUE, opt"
TICKET = {"encoding": "ticket"}
CASES = {
    "guarantees": (evidence(), changed(DESIGNS, {"holds": False}, model="opt0", eps=2.0)),
    "opt0 in the worst case": (
        evidence(),
        changed(DESIGNS, {"worst case / n": 99.0}, model="opt0", eps=2.0),
    ),
    "experiment is theory": (
        evidence([around(0.5, model=model) for model in PAPER_MODELS]),
        evidence([around(5.0)]),
    ),
    f"{OUTPERFORMS}0": (evidence(synthetic(GOOD)), evidence(synthetic(BAD))),
    f"{OUTPERFORMS}1": (
        evidence(synthetic({**GOOD, "opt1": 1.5})),
        evidence(synthetic({**GOOD, "opt1": 2.5})),
    ),
    f"{OUTPERFORMS}2": (
        Evidence(Numbers(synthetic({**GOOD, "opt2": 1.5}))),
        evidence(synthetic({**GOOD, "opt2": 1.5})),  # the true designs: at eps = 4 it is OUE
    ),
    "relatively similar utility": (
        evidence(synthetic({**GOOD, "oue": 1.5})),
        evidence(synthetic({**GOOD, "oue": 2.5})),
    ),
    "opt1 and opt2 above opt0": (
        evidence(synthetic({"opt0": 1.0, "opt1": 1.1, "opt2": 1.2})),
        evidence(synthetic({"opt0": 1.0, "opt1": 1.1, "opt2": 0.9})),
    ),
    "opt1 and opt2 near-optimal": (changed(DESIGNS, {"worst case / n": 1.0}), evidence()),
    "complexity depends on the levels alone": (
        evidence(),
        changed("fig3_cost", {"variables": 99}, items=41_270),
    ),
    "tickets beside bits": (
        evidence([around(0.1), around(-0.1, theory=104.0, **TICKET)]),
        evidence([around(0.0), around(4.0, **TICKET)]),  # beyond sampling error
        evidence([around(0.0), around(0.0, theory=106.0, **TICKET)]),  # in theory
    ),
    "larger error of sensitive items": (
        evidence(),
        changed(DESIGNS, {"V 1": 0.0}, model="opt0", eps=4.0),
    ),
}


def test_claims_hold_and_fail():
    check_claims(fig3.TARGET, CASES)
    check_unknown_without_numbers(fig3.TARGET, CASES, but=[f"{OUTPERFORMS}2"])


def test_opt2_that_is_oue_gains_nothing():
    found = evidence(synthetic({**GOOD, "opt2": 1.5}))
    note = judge(fig3.TARGET, f"{OUTPERFORMS}2")(found).note
    assert "From eps = 4 on the optimum of opt2 is OUE itself" in note
