"""What a question tells about, under every label that people read; what is pinned and added up."""

import math

import pytest

import discreet as d
from discreet.device.ledger import LEAVING, OverlapError, new_entry, refuse_unless_agreed
from discreet.device.pins import PromiseError, check_budgets, unlike
from discreet.errors import DataError, PolicyError
from discreet.survey import Question
from discreet.survey.crosses import cross
from discreet.survey.told import told_by, told_openly, translated_labels

AGE = d.Policy.from_budgets({"young": 1, "old": 2}, question="How old?")
ILL = d.Policy.from_budgets({"HIV": 1, "flu": 2, "none": 2}, question="What?")
REGION = {"name": "region", "text": "Where?", "items": ["north", "south"]}
GERMAN = {
    "questions": {"age": {"items": {"young": "jung"}}, "ill": {"items": {"flu": "Grippe"}}},
    "public": {"region": {"items": {"north": "Norden"}}},
}


def survey(answers=2, translations=None, name="clinic"):
    """Two questions and their cross, designed at the budgets of the policies themselves."""
    questions = [
        Question("age", d.design(AGE, "opt0")),
        Question("ill", d.design(ILL, "opt0")),
        Question("both", d.design(cross(AGE, ILL), "opt0"), ("age", "ill")),
    ]
    about = {"language": "en"}
    return d.Survey(name, questions, about, answers, [REGION], translations or {"de": GERMAN})


@pytest.fixture(scope="module")
def whole():
    return survey()


def test_every_label_of_every_language_is_told(whole):
    assert translated_labels(whole, "age") == [["young", "jung"], ["old"]]
    assert told_openly(whole) == ["north", "Norden", "south"]
    told = told_by(whole, whole.question("ill"), [1.0, 2.0])
    assert dict(told.by_label()) == {"HIV": 1.0, "flu": 2.0, "Grippe": 2.0, "none": 2.0}


def test_a_cross_tells_of_both_questions_by_its_most_telling_cells(whole):
    """The budget of a cell is the smaller of the two; that of an item the largest of its cells."""
    told = told_by(whole, whole.question("both"), [1.0, 2.0])
    assert dict(told.by_label()) == {
        "young": 1.0, "jung": 1.0, "old": 2.0, "HIV": 1.0, "flu": 2.0, "Grippe": 2.0, "none": 2.0,
    }  # fmt: skip


def test_the_same_item_in_another_language_is_the_same_item(whole):
    """Four surveys with one translation each could otherwise ask for one item four times."""
    german = d.Policy.from_budgets({"grippe": 1, "nichts": 1}, question="Was?")
    other = d.Survey("Klinik", [d.design(german)])
    earlier = {**new_entry("https://a", whole, whole.question("ill")), "state": LEAVING}
    mine = [new_entry("https://a", other, other.only)]
    with pytest.raises(OverlapError, match="grippe"):
        refuse_unless_agreed([earlier, *mine], mine, other, None, 0)


@pytest.mark.parametrize("item", ["flu", "Grippe", "GRIPPE"])
def test_a_pinned_item_counts_all_questions_that_one_device_answers(whole, item):
    """Asked for itself and in a cross, whatever the language it is named in."""
    guarantees = [whole.question(name).mechanism.guarantee() for name in ("ill", "both")]
    most = math.fsum(max(g.budgets) for g in guarantees)
    check_budgets(whole, {item: most}, one_way=False)
    with pytest.raises(PromiseError, match="above"):
        check_budgets(whole, {item: most - 1e-3}, one_way=False)
    single = max(max(g.budgets) for g in guarantees)
    check_budgets(survey(answers=1), {item: single}, one_way=False)
    with pytest.raises(PromiseError, match="above"):
        check_budgets(survey(answers=1), {item: single - 1e-3}, one_way=False)


def test_an_item_that_is_not_asked_about_and_no_item_at_all_are_refused(whole):
    with pytest.raises(PromiseError, match='"cold", for which you pinned a budget, is not an item'):
        check_budgets(whole, {"cold": 5}, one_way=False)
    with pytest.raises(DataError, match="names no item"):
        check_budgets(whole, {}, one_way=False)
    with pytest.raises(DataError, match="positive number"):
        check_budgets(whole, {"HIV": 0}, one_way=False)


@pytest.mark.parametrize("item", ["north", "Norden", "Region"])
def test_an_item_that_is_asked_openly_keeps_no_budget(whole, item):
    with pytest.raises(PromiseError, match='is asked openly in the question "region"'):
        check_budgets(whole, {item: 100}, one_way=False)


def test_a_policy_is_not_like_a_survey_that_asks_openly(whole):
    made = d.design(AGE, "opt0")
    assert unlike(d.Survey("s", [made]), AGE) == []
    openly = d.Survey("s", [made], public=[REGION])
    assert unlike(openly, AGE) == ['it also asks "region" openly']


def test_one_limit_is_for_everything_that_is_sent_together(whole):
    most = math.fsum(sorted(q.mechanism.guarantee().ldp_epsilon for q in whole.listed)[-2:])
    check_budgets(whole, most, one_way=False)
    with pytest.raises(PromiseError, match="all answers to this survey together"):
        check_budgets(whole, most - 1e-3, one_way=False)


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"purpose": ""}, "purpose in .* is empty; leave it out"),
        ({"notice": "ftp://x"}, "must be the address of a page"),
    ],
)
def test_a_translation_says_something_about_the_survey(about, sentence):
    with pytest.raises(PolicyError, match=sentence):
        survey(translations={"de": {"about": about}})


# ---- warnings about everything together ----------------------------------------------------------


def strong(notion, answers=2, epsilon=3):
    """Questions whose answers together are weak; no question is weak on its own."""
    levels = [("a", epsilon, ["x", "y"]), ("b", epsilon if notion == "min" else None, ["z"])]
    is_open = {"open": ["b"]} if notion == "one-way" else {}
    made = [d.design(d.Policy.from_levels(levels, notion=notion, **is_open)) for _ in range(2)]
    return d.Survey("both", made, answers=answers)


@pytest.mark.parametrize(
    ("notion", "words"),
    [("min", "change the odds between two records"), ("one-way", "raise the odds of your answers")],
)
def test_answers_that_are_weak_together_are_said(notion, words):
    caution = strong(notion).promise().caution
    assert f"everything you send together can {words} by up to a factor of 40" in caution
    assert "everything" not in strong(notion, answers=1).promise().caution
    assert "everything" not in strong(notion, epsilon=2).promise().caution


def test_weak_questions_do_not_hide_that_all_are_weak_together():
    levels = [("a", 5, ["x", "y"])]
    made = [d.design(d.Policy.from_levels(levels)) for _ in range(2)]
    caution = d.Survey("both", made, answers=2).promise().caution
    assert "everything you send together" in caution and "148" in caution
