"""Table I and Lemma 1."""

import pytest
from paper_evidence import changed, check_claims, evidence

from discreet.paper import table1


def test_table1_is_the_papers():
    rows = table1.leakage().rows
    bounds = {(x["notion"], x["item"]): (x["lower bound"], x["upper bound"]) for x in rows}
    for notion in ("LDP", "PLDP"):
        for item in ("HIV", "anemia"):
            assert bounds[notion, item] == pytest.approx((1 / 4, 4))
    assert bounds["MinID-LDP", "HIV"] == pytest.approx((1 / 4, 4))
    assert bounds["MinID-LDP", "anemia"] == pytest.approx((1 / 6, 6))
    near, far = 1 / 5 + 4 / 5 / 4, 1 / 5 + 4 / 5 * 4
    assert bounds["GI or CLDP", "HIV"] == pytest.approx((near, far))
    assert all(x["its lowest"] >= x["lower bound"] - 1e-9 for x in rows)
    assert all(x["its highest"] <= x["upper bound"] + 1e-9 for x in rows)


def test_claims_hold_and_fail():
    high = changed("table1", {"its highest": 9.0}, notion="MinID-LDP")
    low = changed("table1", {"its lowest": 0.1}, notion="LDP")
    cases = {
        "leakage bounds": (evidence(), high, low),
        "twice the smallest budget": (
            evidence(),
            changed("table1_cap", {"a": 0.7}, level="4 eps"),
            changed("table1_cap", {"LDP epsilon": 2.1}),
        ),
    }
    check_claims(table1.TARGET, cases)
