"""What is said where protection is one-way, within blocks, or missing: never more than is true."""

import math

import pytest

import discreet as d
from discreet.device.pins import PromiseError, check_budgets
from discreet.show import facts, terminal

ROWS = [("s", 1, ["a", "b"]), ("t", 1, ["e", "f"]), ("n", None, ["c", "d"])]
GAP = "Some answers are not protected from each other"
WEAK = "This is weak protection"


def made(rows, **settings):
    return d.design(d.Policy.from_levels(rows, **settings))


def one_way(rows, **settings):
    return made(rows, notion="one-way", open=[r[0] for r in rows if r[1] is None], **settings)


def test_an_open_item_that_is_pinned_is_refused():
    """Whoever names an item does not accept that it is open; whoever names none does."""
    survey = d.Survey("one", [one_way([("x", 1, ["x"]), ("o", None, ["HIV", "y"])])])
    check_budgets(survey, 1.0, one_way=True)
    check_budgets(survey, {"x": 1.0}, one_way=True)
    with pytest.raises(PromiseError, match="HIV"):
        check_budgets(survey, {"HIV": 5.0}, one_way=True)
    with pytest.raises(PromiseError, match="one way only"):
        check_budgets(survey, 5.0, one_way=False)
    with pytest.raises(PromiseError, match="above the 0.5"):
        check_budgets(survey, 0.5, one_way=True)


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


def test_a_list_of_items_on_their_own_is_bound_upwards_only():
    """A report names every item that its sender has, so it shows what the sender lacks."""
    rows = [("s", 1, ["a"]), ("t", 2, ["b", "c"])]
    both, way = (made(rows, kind="each", notion=x).guarantee() for x in ("min", "one-way"))
    assert way.set_bound(["a", "b"], ["b"]) == pytest.approx(1)
    assert way.set_bound(["b"], ["a", "b"]) == math.inf
    assert both.set_bound(["b"], ["a", "b"]) == both.set_bound(["a", "b"], ["b"]) < math.inf
    assert "raise their odds that it is yours, against an empty one" in way.list_sentence(["a"])
    assert "anything else may become known" in way.list_sentence(["a"])
    assert "change their odds between it and an empty one" in both.list_sentence(["a"])


@pytest.mark.parametrize(
    ("notion", "said"), [("min", "no more than their sum"), ("one-way", "one way")]
)
def test_what_the_terminal_says_of_items_on_their_own(notion, said, capsys):
    mechanism = made([("s", 1, ["a"]), ("t", 2, ["b", "c"])], kind="each", notion=notion)
    terminal.mechanism(mechanism, facts.describe(mechanism))
    text = " ".join(capsys.readouterr().out.split())
    assert f"every item by its own budget, {'whole sets by ' * (notion == 'min')}{said};" in text


def test_plain_ldp_of_items_on_their_own_is_two_way():
    """The baseline must not profit from what it is compared with."""
    both, way = (
        d.design(d.Policy.from_levels([("s", 1, ["a", "b"])], kind="each", notion=x), "rappor")
        for x in ("min", "one-way")
    )
    assert way.expected_mse() == pytest.approx(both.expected_mse())
    assert d.design(way.policy, "each").expected_mse() < 0.7 * both.expected_mse()


def test_how_far_two_answers_raise_the_odds_is_the_sum():
    one = one_way([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])]).guarantee()
    both = d.compose([one, one])
    assert not both.is_mutual and both.epsilons == both.raise_epsilons
    assert both.raise_epsilons == pytest.approx([2 * x for x in one.raise_epsilons])
    assert both.level_epsilons[0] > 1.9 * both.raise_epsilons[0] > 0
