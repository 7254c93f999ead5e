"""Table II: the toy example as printed, as computed, and beyond the paper."""

import pytest
from paper_evidence import changed, check_claims, evidence, real

from discreet.paper import table2


def test_table2_is_the_papers():
    rows = {(row["mechanism"], row["row"]): row for row in table2.toy().rows}
    computed = {who: rows[who, "computed"] for who in ("RAPPOR", "OUE", "IDUE")}
    assert computed["RAPPOR"]["total to"] == pytest.approx(10)
    assert computed["OUE"]["total to"] == pytest.approx(9 + 8 / 9)
    idue = computed["IDUE"]
    totals = [idue[key] for key in table2.TOTALS]
    assert totals == pytest.approx([8.387, 8.5675], abs=6e-4)
    flips = [idue[key] for key in table2.FLIPS]
    assert flips == pytest.approx([0.40795, 0.32700, 0.32700, 0.27756], abs=6e-6)
    rounded = rows["IDUE", table2.ROUNDED]
    assert rounded["Var HIV /n"] == pytest.approx(3.2707, abs=5e-5)
    assert rounded["Var others /n"] == pytest.approx(1.3254, abs=5e-5)


def test_beyond_it_are_plain_ldp_and_the_best_there_is():
    found = {row["mechanism"]: row for row in table2.beyond().rows}
    for model, known in (("opt0", 8.4229), ("grr", 4.8889), ("ss", 4.8889), ("subset", 3.5680)):
        row = found[table2.BEYOND[model]]
        assert row[table2.UNIFORM] == pytest.approx(known, abs=6e-4), model
        assert row["smallest"] <= row[table2.UNIFORM] <= row["largest"]


def test_claims_hold_and_fail():
    printed, mine = (
        {"mechanism": "IDUE", "row": "printed"},
        {"mechanism": "IDUE", "row": "computed"},
    )
    as_printed = dict(zip(table2.COLUMNS, table2.PRINTED["opt0"], strict=True))
    only_paper = [x for x in real()["table2_beyond"] if x["mechanism"].startswith("IDUE")]
    grr = table2.BEYOND["grr"]
    cases = {
        "toy table, RAPPOR and OUE": (
            evidence(),
            changed("table2", {"Var HIV /n": 1.5}, mechanism="OUE", row="printed"),
        ),
        "toy table, IDUE's probabilities": (
            evidence(),
            changed("table2", {"b HIV": 0.35}, **printed),
        ),
        "toy table, IDUE's variances": (changed("table2", as_printed, **mine), evidence()),
        "toy table, printed from rounded probabilities": (
            evidence(),
            changed("table2", {"total to": 9.5}, **printed),
        ),
        "toy table, worst case": (evidence(), changed("table2", {"total to": 9.9}, **mine)),
        "toy table, smaller flips for the others": (
            changed("table2", {"b others": 0.1}, **mine),
            evidence(),
        ),
        "toy table, optimal utility": (evidence(table2_beyond=only_paper), evidence()),
        "toy table, GRR": (evidence(), changed("table2_beyond", {"largest": 9.0}, mechanism=grr)),
    }
    check_claims(table2.TARGET, cases)
