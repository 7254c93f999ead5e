"""Every claim has numbers that make it hold and numbers that make it fail; sampling error alone decides nothing."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest

from discreet.paper import claims, claims_sets, tables
from discreet.paper.experiments import Numbers, Row
from discreet.paper.settings import PAPER_MODELS, Settings
from discreet.paper.verdicts import (
    CLAIMS,
    FAILS,
    HOLDS,
    UNKNOWN,
    Cell,
    Findings,
    below,
    judged,
    markdown,
    pair,
    within,
)

assert claims and claims_sets  # importing them puts their claims on the list
BY_NAME = {claim.name: claim for claim in CLAIMS}


# ---- numbers made by hand -------------------------------------------------------------------------------


def row(values=(), **fields):
    """A row of the default experiment; a single number becomes ten repeats around it."""
    if isinstance(values, float | int):
        values = tuple(values * (1 + 0.001 * np.sin(np.arange(10))))
    base = {
        "data": "retail",
        "model": "opt0",
        "eps": 1.0,
        "levels": 3,
        "share": 0.05,
        "padding": 0,
        "encoding": "bits",
    }
    return Row(**{**base, "metric": "mse", "k": 0, "view": "raw", "values": values, **fields})


def models(values, **fields):
    """Rows of several models in one place; the theory is the value itself."""
    return [row(value, model=model, theory=value, **fields) for model, value in values.items()]


def findings(rows=(), data=None, **changed):
    return Findings(Numbers(rows), {**real(), **changed}, data or {})


@cache
def _real():
    quick = Settings(quick=True)
    fixed = (
        tables.leakage,
        tables.cap,
        tables.toy,
        tables.toy_beyond,
        tables.cost,
        tables.set_budgets,
    )
    made = [*(make() for make in fixed), tables.designs(quick), tables.limit(quick)]
    return {table.name: table.rows for table in made}


def real():
    """The true tables."""
    return deepcopy(_real())


def changed(name, change, **where):
    """A true table with rows changed where the columns have these values."""
    rows = real()[name]
    chosen = [x for x in rows if all(x[key] == value for key, value in where.items())]
    assert chosen
    for x in chosen:
        x.update(
            {key: value(x[key]) if callable(value) else value for key, value in change.items()}
        )
    return findings(**{name: rows})


def data_table(name, here=None, partial=False, file="x.dat"):
    records, users, items = here or (None, None, None)
    mine = {
        "data set": name,
        "records": 10,
        "users": 5,
        "items": 3,
        "records here": records,
        "users here": users,
    }
    return findings(table3=[{**mine, "items here": items, "file": file, "partial": partial}])


def sizes(mean, p90=4.0):
    return {
        "fig8_sizes": [_size("clothing", mean, p90)],
        "fig9_sizes": [_size("kosarak", mean, p90), _size("retail", mean, p90)],
    }


def _size(data, mean, p90):
    return {
        "data": data,
        "title": data,
        "mean": mean,
        "median": mean,
        "90th percentile": p90,
        "largest": 9,
    }


def curve(data, metric, lines):
    """Theory rows: eps -> value at paddings 1, 2, …"""
    return [
        row(data=data, metric=metric, eps=eps, padding=ell, theory=float(value))
        for eps, line in lines.items()
        for ell, value in enumerate(line, 1)
    ]


def both(data, lines):
    return curve(data, "re", lines) + curve(data, "mse", lines)


def synthetic(values, **fields):
    return [x for data in ("power-law", "uniform") for x in models(values, data=data, **fields)]


def around(shift, spread=1.0, **fields):
    """Rows with a known expectation and standard deviation."""
    values = tuple(100 + shift + spread * np.array([-1.0, 1.0] * 5))
    return row(values, data="uniform", expected=(100.0,) * 10, sd=spread, theory=100.0, **fields)


def precision(mine, other, **fields):
    base = {"data": "clothing", "padding": 2, "metric": "precision", **fields}
    return [
        row(x, model=model, **base)
        for model, x in (("opt0", mine), ("oue", other), ("rappor", other))
    ]


def shares(line, metric="mse", eps=1.0):
    """Fig. 6: IDUE / OUE by the share of sensitive items."""
    return [
        x
        for share, ratio in line.items()
        for x in models(
            {"opt0": ratio, "oue": 1.0, "rappor": 1.2},
            levels=2,
            share=share,
            metric=metric,
            eps=eps,
        )
    ]


FALLING, RISING = [5, 3, 1, 2, 4], [1, 2, 3, 4, 5]
GOOD, BAD = {"opt0": 1.0, "oue": 2.0, "rappor": 3.0}, {"opt0": 2.5, "oue": 2.0, "rappor": 3.0}
DESIGNS = "fig3_designs"


def cases():
    """Claim -> numbers that make it hold, numbers that make it fail."""
    found = {
        "leakage bounds": (findings(), changed("table1", {"its highest": 9.0}, notion="MinID-LDP")),
        "twice the smallest budget": (findings(), changed("table1_cap", {"a": 0.7}, level="4 eps")),
        "toy table, RAPPOR and OUE": (findings(), changed("table2", {"Var HIV /n": 1.5}, mechanism="OUE", row="printed")),
        "toy table, IDUE's probabilities": (findings(), changed("table2", {"b HIV": 0.35}, mechanism="IDUE", row="printed")),
        "toy table, IDUE's variances": (
            changed("table2", dict(zip(tables.TOY_COLUMNS, tables.PRINTED["opt0"], strict=True)), mechanism="IDUE", row="computed"),
            findings(),
        ),
        "toy table, printed from rounded probabilities": (
            findings(),
            changed("table2", {"total to": 9.5}, mechanism="IDUE", row="printed"),
        ),
        "toy table, worst case": (findings(), changed("table2", {"total to": 9.9}, mechanism="IDUE", row="computed")),
        "toy table, smaller flips for the others": (
            changed("table2", {"b others": 0.1}, mechanism="IDUE", row="computed"),
            findings(),
        ),
        "toy table, optimal utility": (
            findings(table2_beyond=[x for x in real()["table2_beyond"] if x["mechanism"].startswith("IDUE")]),
            findings(),
        ),
        "toy table, GRR": (findings(), changed("table2_beyond", {"largest": 9.0}, mechanism="GRR at ln 4")),
        "guarantees": (findings(), changed(DESIGNS, {"holds": False}, model="opt0", eps=2.0)),
        "opt0 in the worst case": (findings(), changed(DESIGNS, {"worst case / n": 99.0}, model="opt0", eps=2.0)),
        "experiment is theory": (findings([around(0.5, model=m) for m in PAPER_MODELS]), findings([around(5.0)])),
        "IDUE below RAPPOR and OUE, opt0": (findings(synthetic(GOOD)), findings(synthetic(BAD))),
        "IDUE below RAPPOR and OUE, opt1": (
            findings(synthetic({**GOOD, "opt1": 1.5})),
            findings(synthetic({**GOOD, "opt1": 2.5})),
        ),
        "IDUE below RAPPOR and OUE, opt2": (
            Findings(Numbers(synthetic({**GOOD, "opt2": 1.5}))),
            findings(synthetic({**GOOD, "opt2": 1.5})),  # the true designs: at eps = 4 it is OUE
        ),
        "relatively similar utility": (findings(synthetic({**GOOD, "oue": 1.5})), findings(synthetic({**GOOD, "oue": 2.5}))),
        "opt1 and opt2 above opt0": (
            findings(synthetic({"opt0": 1.0, "opt1": 1.1, "opt2": 1.2})),
            findings(synthetic({"opt0": 1.0, "opt1": 1.1, "opt2": 0.9})),
        ),
        "opt1 and opt2 near-optimal": (changed(DESIGNS, {"worst case / n": 1.0}), findings()),
        "complexity depends on the levels alone": (findings(), changed("fig3_cost", {"variables": 99}, items=41_270)),
        "tickets beside bits": (
            findings([around(0.1), around(-0.1, encoding="ticket")]),
            findings([around(0.0), around(4.0, encoding="ticket")]),
        ),
        "larger error of sensitive items": (findings(), changed(DESIGNS, {"V 1": 0.0}, model="opt0", eps=4.0)),
        "more benefit with fewer sensitive items": (
            findings(shares({0.05: 0.6, 0.2: 0.8, 0.5: 1.0})),
            findings(shares({0.05: 0.6, 0.2: 0.9, 0.5: 0.8})),
        ),
        "OUE outperforms RAPPOR": (findings(shares({0.05: 0.6})), findings(models({"oue": 2.0, "rappor": 1.0}, levels=2))),
        "the limit of few sensitive items": (changed("fig6_limit", {"/ oue at 2 eps": 1.05}), findings()),
        "IDUE-PS keeps the budgets of sets": (findings(), changed("fig7_budgets", {"largest bound - budget": 0.1}, padding=2)),
        "RE, clothing": tuple(findings(models(x, data="clothing", padding=2, metric="re", k=20)) for x in (GOOD, BAD)),
        "raw precision may be worse, clothing": (
            findings(precision(0.3, 0.5, eps=1.0, k=50)),
            findings(precision(0.5, 0.3, eps=2.0, k=10)),
        ),
        "raw precision highest for larger eps and k, clothing": (
            findings(precision(0.6, 0.5, eps=3.0, k=50)),
            findings(precision(0.4, 0.5, eps=3.0, k=50)),
        ),
        "larger k, lower precision, clothing": (
            findings(precision(0.6, 0.6, eps=3.0, k=10) + precision(0.5, 0.5, eps=3.0, k=100)),
            findings(precision(0.4, 0.4, eps=3.0, k=10) + precision(0.5, 0.5, eps=3.0, k=100)),
        ),
        "the best padding differs between data sets": (
            findings(both("clothing", {4.0: RISING}) + both("kosarak", {4.0: FALLING})),
            findings(both("clothing", {4.0: FALLING}) + both("kosarak", {4.0: FALLING})),
        ),
        "variance grows and bias falls with the padding": (
            findings(curve("kosarak", "variance", {1.0: RISING}) + curve("kosarak", "bias", {1.0: RISING[::-1]})),
            findings(curve("kosarak", "variance", {1.0: FALLING}) + curve("kosarak", "bias", {1.0: RISING[::-1]})),
        ),
        "variance dominates at small eps": tuple(
            findings(
                curve("kosarak", "variance", {1.0: [x] * 5, 4.0: [1] * 5}) + curve("kosarak", "bias", {1.0: [2] * 5, 4.0: [2] * 5}),
                **sizes(3.0),
            )
            for x in (9, 1)
        ),
        "padding 5 gains little from eps": tuple(
            findings(both("kosarak", {2.0: [1.0] * 5, 4.0: [1.0] * 4 + [x]})) for x in (0.9, 0.4)
        ),
        "the 90th percentile is not enough": tuple(
            findings(both("kosarak", {1.0: [1.0, 1.0, 1.0, x, 1.0]}), **sizes(3.0)) for x in (2.0, 1.0)
        ),
        "a simple strategy for the padding": tuple(
            findings(both("kosarak", {2.0: RISING, 4.0: line}), **sizes(3.0)) for line in (FALLING, FALLING[::-1][1:] + [9])
        ),
    }  # fmt: skip
    for name in ("Power-law", "Uniform", "Retail", "Kosarak", "Clothing"):
        found[f"data set {name}"] = (data_table(name, (10, 5, 3)), data_table(name, (11, 5, 3)))
    for key in ("retail", "kosarak"):
        for name, fields in (
            (f"MSE, {key}", {}),
            (f"RE, {key}", {"metric": "re", "k": 20}),
            (f"RE for all k, {key}", {"metric": "re", "k": 70}),
        ):
            found[name] = tuple(findings(models(x, data=key, **fields)) for x in (GOOD, BAD))
    for metric in ("mse", "re"):
        found[f"IDUE is OUE above 40 %, {metric.upper()}"] = tuple(
            findings(shares({0.5: x}, metric)) for x in (0.98, 0.8)
        )
    for data, said in (("clothing", 2), ("kosarak", 8)):
        found[f"items per user, {data}"] = (
            findings(**sizes(said + 0.2)),
            findings(**sizes(said + 0.7)),
        )
    for data in ("clothing", "kosarak", "retail"):
        found[f"the best padding grows with eps, {data}"] = (
            findings(both(data, {1.0: RISING, 4.0: FALLING})),
            findings(both(data, {1.0: FALLING, 4.0: RISING})),
        )
    return found


CASES = cases()


def test_every_claim_has_numbers_for_and_against():
    assert sorted(CASES) == sorted(BY_NAME) and len(BY_NAME) == len(CLAIMS)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_claim_holds_and_fails(name):
    good, bad = (BY_NAME[name].report(found) for found in CASES[name])
    assert (good["verdict"], bad["verdict"]) == (HOLDS, FAILS), (good, bad)
    for report in (good, bad):
        assert report["number"] and report["sentence"] and report["where"]
        assert report["margin"] is None or np.isfinite(report["margin"])


@pytest.mark.parametrize("name", [name for name, (good, _) in CASES.items() if good.numbers.rows])
def test_without_numbers_a_claim_cannot_be_shown(name):
    assert BY_NAME[name].judge(findings()).verdict in (
        UNKNOWN,
        FAILS if "opt2" in name else UNKNOWN,
    )


# ---- how verdicts are reached -----------------------------------------------------------------------------


def cell(ratio, t=0.0, theory=None, repeats=10):
    return Cell("here", ratio, t, repeats, theory)


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ([cell(0.9), cell(0.8)], HOLDS),
        ([cell(0.9), cell(1.1, t=9.0)], FAILS),
        ([cell(0.9), cell(1.1, t=1.0)], UNKNOWN),  # within sampling error, and no theory
        ([cell(0.9), cell(1.1, t=1.0, theory=0.95)], HOLDS),
        ([cell(0.9), cell(1.1, t=1.0, theory=1.05)], FAILS),
        (
            [cell(1.1, t=9.0, theory=0.9)],
            FAILS,
        ),  # an experiment that contradicts its theory is not explained away
        ([], UNKNOWN),
    ],
)
def test_sampling_error_alone_decides_nothing(cells, verdict):
    assert below(cells, "x").verdict == verdict
    mirrored = [
        Cell(c.place, 2 - c.ratio, -c.t, c.repeats, None if c.theory is None else 2 - c.theory)
        for c in cells
    ]
    assert below(mirrored, "x", sign=-1).verdict == verdict


def test_more_cells_ask_for_more_evidence():
    assert below([cell(1.1, t=3.0, theory=0.9)], "x").verdict == FAILS
    assert below([cell(1.1, t=3.0, theory=0.9)] + [cell(0.9)] * 99, "x").verdict == HOLDS


def test_comparisons_are_paired():
    noise = np.random.default_rng(1).normal(0, 10, 10)
    mine, other = (
        row(tuple(99 + noise)),
        row(tuple(100 + noise + 0.01 * np.sin(np.arange(10))), model="oue"),
    )
    assert pair(mine, other).t < -100 and pair(mine, other).ratio < 1
    assert pair(row((1.0,)), row((2.0,))).t == 0  # one repeat says nothing about sampling error


def test_false_alarms_are_rare():
    """Two mechanisms that are the same are called different in at most 1 % of claims of 20 cells (here: 400 claims)."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(400):
        cells = [
            pair(row(tuple(rng.normal(100, 5, 10))), row(tuple(rng.normal(100, 5, 10))))
            for _ in range(20)
        ]
        alarms += below(cells, "x").verdict == FAILS
    assert alarms <= 14  # Binomial(400, 0.01) is above it with probability 2e-5


def test_within_names_the_furthest():
    assert (
        within({"a": 1.01, "b": 0.93}, 0.05, "x").verdict == FAILS
        and "at b" in within({"a": 1.01, "b": 0.93}, 0.05, "x").note
    )


def test_partial_data_are_named_in_every_claim_about_them():
    data = {"kosarak": {"partial": "Kosarak is partial here."}, "retail": {"partial": ""}}
    found = findings(models(GOOD, data="kosarak") + models(GOOD, data="retail"), data)
    notes = {report["claim"]: report["note"] for report in judged(["fig4"], found)}
    assert notes["MSE, kosarak"] == "Kosarak is partial here." and notes["MSE, retail"] == ""


def test_what_is_not_there_cannot_be_shown():
    name = "data set Kosarak"
    assert BY_NAME[name].judge(data_table("Kosarak")).verdict == UNKNOWN
    assert BY_NAME[name].judge(data_table("Kosarak", (1, 1, 1), partial=True)).verdict == UNKNOWN


def test_opt2_that_is_oue_gains_nothing():
    note = (
        BY_NAME["IDUE below RAPPOR and OUE, opt2"]
        .judge(findings(synthetic({**GOOD, "opt2": 1.5})))
        .note
    )
    assert "From eps = 4 on the optimum of opt2 is OUE itself" in note


def test_raw_precision_within_sampling_error_is_not_shown():
    rng, fields = (
        np.random.default_rng(2),
        {"data": "clothing", "padding": 2, "metric": "precision", "k": 10},
    )
    rows = [
        row(tuple(rng.normal(x, 0.1, 10)), model=model, **fields)
        for model, x in (("opt0", 0.45), ("oue", 0.5))
    ]
    assert BY_NAME["raw precision may be worse, clothing"].judge(findings(rows)).verdict in (
        UNKNOWN,
        FAILS,
    )


def test_a_larger_survey_is_a_note_and_no_verdict():
    claim = BY_NAME["a simple strategy for the padding"]
    rows = both("kosarak", {2.0: RISING, 4.0: FALLING}) + both(
        "kosarak-x10", {2.0: RISING[::-1], 4.0: FALLING}
    )
    verdict = claim.judge(findings(rows, **sizes(3.0)))
    assert (
        verdict.verdict == HOLDS
        and "With everyone ten times it does not work" in verdict.note
        and "best 5 at eps 2" in verdict.note
    )
    grows = BY_NAME["the best padding grows with eps, kosarak"].judge(findings(rows))
    assert "with everyone ten times, by RE at eps 2: 5, 4: 3" in grows.note


def test_curves_are_of_one_k():
    """fig7 has other k at one padding of the same data: they must not be taken for a point of the curve."""
    rows = both("clothing", {4.0: FALLING}) + [
        row(data="clothing", metric="re", eps=4.0, padding=3, k=100, theory=9.0)
    ]
    assert claims_sets.curves(Numbers(rows), "clothing", "re") == {
        4.0: dict(enumerate(map(float, FALLING), 1))
    }
    assert claims_sets.best(Numbers(rows), "clothing", "re") == {4.0: 3}


def test_the_report_is_a_table_with_every_claim():
    reports = judged(["table1", "table2"], findings())
    text = markdown(reports, "A run.")
    assert text.count("\n| ") == len(reports) + 1 and "A run." in text
    head = text.split("\n")[2]
    assert head.startswith(f"holds: {sum(x['verdict'] == HOLDS for x in reports)}, does not hold: ")
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == 7
