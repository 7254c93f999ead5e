"""How verdicts are reached: sampling error alone decides nothing."""

import numpy as np
import pytest
from paper_evidence import GOOD, evidence, models, row

from discreet.paper import fig4
from discreet.paper.run import TARGETS
from discreet.paper.verdicts import (
    FAILS,
    HOLDS,
    UNKNOWN,
    Cell,
    Claims,
    Verdict,
    below,
    markdown,
    pair,
    printed,
    within,
)


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
        # an experiment that contradicts its theory is not explained away
        ([cell(1.1, t=9.0, theory=0.9)], FAILS),
        ([], UNKNOWN),
    ],
)
def test_sampling_error_alone_decides_nothing(cells, verdict):
    assert below(cells, "x").verdict == verdict
    flip = [cell(2 - c.ratio, -c.t, None if c.theory is None else 2 - c.theory) for c in cells]
    assert below(flip, "x", sign=-1).verdict == verdict


def test_more_cells_ask_for_more_evidence():
    odd = cell(1.1, t=3.0, theory=0.9)
    assert below([odd], "x").verdict == FAILS
    assert below([odd] + [cell(0.9)] * 99, "x").verdict == HOLDS


def test_comparisons_are_paired():
    noise = np.random.default_rng(1).normal(0, 10, 10)
    mine, wave = row(tuple(99 + noise)), 0.01 * np.sin(np.arange(10))
    other = row(tuple(100 + noise + wave), model="oue")
    assert pair(mine, other).t < -100 and pair(mine, other).ratio < 1
    # one repeat says nothing about sampling error
    assert pair(row((1.0,)), row((2.0,))).t == 0


def test_false_alarms_are_rare():
    """Two mechanisms that are the same are called different in at most 1 % of claims of 20 cells
    (here: 400 claims).
    """
    rng = np.random.default_rng(7)

    def same():
        return row(tuple(rng.normal(100, 5, 10)))

    claims = [[pair(same(), same()) for _ in range(20)] for _ in range(400)]
    alarms = sum(below(cells, "x").verdict == FAILS for cells in claims)
    assert alarms <= 14  # Binomial(400, 0.01) is above it with probability 2e-5


def test_within_names_the_furthest():
    found = within({"a": 1.01, "b": 0.93}, 0.05, "x")
    assert found.verdict == FAILS and "at b" in found.note


def test_printed_numbers_are_compared_as_rounded():
    assert printed({"x": (0.33, 0.3349, 0.005)}).verdict == HOLDS
    found = printed({"x": (0.33, 0.3351, 0.005), "y": (1.0, 1.0, 0.005)})
    assert found.verdict == FAILS and found.number.startswith("1 of 2") and "0.33" in found.note


def test_partial_data_are_named_in_every_claim_about_them():
    data = {"kosarak": {"partial": "Kosarak is partial here."}, "retail": {"partial": ""}}
    found = evidence(models(GOOD, data="kosarak") + models(GOOD, data="retail"), data)
    notes = {claim.name: claim.report(found)["note"] for claim in fig4.TARGET.claims}
    assert notes["MSE, kosarak"] == "Kosarak is partial here." and notes["MSE, retail"] == ""


def test_claims_are_of_the_data_of_their_list_unless_named():
    claims = Claims("fig0", ("retail",))
    for name, more in (("a", {}), ("b", {"data": ()})):
        claims.add(name, "here", "It is so.", **more)(lambda found: Verdict(HOLDS, "1"))
    assert [(x.name, x.target, x.data) for x in claims] == [
        ("a", "fig0", ("retail",)),
        ("b", "fig0", ()),
    ]


def test_every_claim_has_a_name_of_its_own():
    names = [claim.name for target in TARGETS.values() for claim in target.claims]
    assert len(names) == len(set(names)) == 54


def test_the_report_is_a_table_with_every_claim():
    targets = (TARGETS["table1"], TARGETS["table2"])
    reports = [claim.report(evidence()) for target in targets for claim in target.claims]
    text = markdown(reports, "A run.")
    assert text.count("\n| ") == len(reports) + 1 and "A run." in text
    head = text.split("\n")[2]
    assert head.startswith(f"holds: {sum(x['verdict'] == HOLDS for x in reports)}, does not hold: ")
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == 7
