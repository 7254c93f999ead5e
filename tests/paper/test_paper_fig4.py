"""Fig. 4: real-world data, single items."""

from paper_evidence import (
    BAD,
    GOOD,
    check_claims,
    check_unknown_without_numbers,
    evidence,
    models,
    survey,
)

from discreet.paper import fig4
from discreet.paper.settings import Setup

CASES = {
    f"{name}, {key}": tuple(evidence(models(x, data=key, **fields)) for x in (GOOD, BAD))
    for name, fields in (("MSE", {}), ("RE", {"metric": "re", "k": 20}))
    for key in ("retail", "kosarak")
}


def test_claims_hold_and_fail():
    check_claims(fig4.TARGET, CASES)
    check_unknown_without_numbers(fig4.TARGET, CASES)


def test_a_quick_run_shrinks_the_first_data_set_only():
    data = {key: survey() for key in ("retail", "kosarak", "kosarak-short")}
    for quick, wanted in ((False, set(data)), (True, {"retail"})):
        found = fig4.experiments(Setup(quick=quick), data)
        assert {x.data for x in found if x.shrunk} == wanted
        assert {x.data for x in found} == set(data)
        assert not any(x.shrunk for x in found if x.model == "rappor")
        assert {x.ks for x in found} == {(10, 12)}  # all that twelve items allow


def test_the_other_part_of_kosarak_is_judged_with_the_first():
    found = evidence(models(GOOD, data="kosarak") + models(BAD, data="kosarak-short"))
    claim = next(x for x in fig4.TARGET.claims if x.name == "MSE, kosarak")
    assert claim.report(found)["verdict"] == "does not hold"
    assert claim.data == ("kosarak", "kosarak-short")
