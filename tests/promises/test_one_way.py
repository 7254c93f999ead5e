"""What is said where protection is one-way, within blocks, or missing: never more than is true."""

import math

import pytest

import discreet as d
from discreet.device.client import PromiseError, _check_budgets

ROWS = [("s", 1, ["a", "b"]), ("t", 1, ["e", "f"]), ("n", None, ["c", "d"])]
GAP = "Some answers are not protected from each other"
WEAK = "This is weak protection"


def made(rows, **settings):
    return d.design(d.Policy.from_levels(rows, **settings))


def one_way(rows, **settings):
    return made(rows, notion="one-way", open=[r[0] for r in rows if r[1] is None], **settings)


def test_an_open_item_that_is_pinned_is_refused():
    """Whoever names an item does not accept that it is open; whoever names none does."""
    mechanism = one_way([("x", 1, ["x"]), ("o", None, ["HIV", "y"])])
    _check_budgets(mechanism, 1.0, one_way=True)
    _check_budgets(mechanism, {"x": 1.0}, one_way=True)
    with pytest.raises(PromiseError, match="HIV"):
        _check_budgets(mechanism, {"HIV": 5.0}, one_way=True)
    with pytest.raises(PromiseError, match="one way only"):
        _check_budgets(mechanism, 5.0, one_way=False)
    with pytest.raises(PromiseError, match="above the 0.5"):
        _check_budgets(mechanism, 0.5, one_way=True)


@pytest.mark.parametrize("both", [True, False])
def test_a_gap_of_one_way_pairs_is_said(both):
    guarantee = one_way(ROWS, pairs=[("s", "t", None, not both)]).guarantee()
    assert guarantee.epsilons[0] == math.inf
    assert "any other that it is protected from" in guarantee.sentences()[0]
    assert GAP in guarantee.caution and 'Answers of "n" are not protected' in guarantee.caution


def test_without_a_gap_nothing_is_said_of_one():
    guarantee = one_way(ROWS).guarantee()
    assert "against any other, by at most a factor of 2.72" in guarantee.sentences()[0]
    assert GAP not in guarantee.caution and WEAK not in guarantee.caution


def test_a_block_of_one_answer_shows_it():
    guarantee = made([("s", 1, ["a", "b"]), ("u", 1, ["g"])], blocks=True).guarantee()
    assert guarantee.factors[1] == math.inf
    assert guarantee.sentences()[1] == 'u ("g"): your report may show this answer as it is.'


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda e: made([("s", e, ["a", "b"])], kind="each", notion="one-way"),
        lambda e: made([("s", e, ["a", "b"]), ("t", e, ["c", "d"])], blocks=True),
        lambda e: one_way([("s", e, ["a", "b"]), ("t", None, ["c", "d"])]),
    ],
    ids=["each", "blocks", "open"],
)
def test_weak_protection_is_said_beside_all_else(mechanism):
    assert WEAK in mechanism(10).guarantee().caution
    assert mechanism(1).guarantee().caution and WEAK not in mechanism(1).guarantee().caution


def test_plain_ldp_of_items_on_their_own_is_two_way():
    """The baseline must not profit from what it is compared with."""
    both, way = (
        d.design(d.Policy.from_levels([("s", 1, ["a", "b"])], kind="each", notion=x), "rappor")
        for x in ("min", "one-way")
    )
    assert way.expected_mse() == pytest.approx(both.expected_mse())
    assert d.design(way.policy, "each").expected_mse() < 0.7 * both.expected_mse()
