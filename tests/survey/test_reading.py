"""Survey files: what they say, how it is designed, and every sentence about a mistake in one."""

import json
import tomllib
from dataclasses import replace

import pytest

import discreet as d
from discreet.designs.surveys import compare, read_draft
from discreet.errors import DesignError, PolicyError
from discreet.survey import About, Public
from discreet.survey.audit import audit, unlike
from discreet.survey.reading import from_document, load

FILE = """
name = "work 2027"
answers = 2

[about]
organiser = "City of Ghent"
language = "en"

[[question]]
name = "age"
text = "How old are you?"
[[question.level]]
name = "age"
epsilon = 2
items = ["young", "old"]

[[question]]
name = "strain"
text = "What strains you?"
last = ["nothing"]
[[question.level]]
name = "serious"
epsilon = "ln(4)"
items = ["burnout", "nothing"]
[[question.level]]
name = "mild"
epsilon = 2
items = ["noise"]

[[question]]
name = "tools"
kind = "set"
padding = 2
[[question.level]]
name = "all"
epsilon = 1.5
items = ["hammer", "saw", "drill"]

[[cross]]
of = ["age", "strain"]

[[public]]
name = "region"
text = "Where do you work?"
items = ["north", "south"]

[[public]]
name = "shift"
items = ["day", "night"]

[translations.de]
about = { organiser = "Stadt Gent" }
[translations.de.questions.age]
text = "Wie alt?"
items = { young = "jung" }
"""
MODEL = {"model": "opt0"}


@pytest.fixture
def written(tmp_path):
    def write(text=FILE, name="file.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "file.toml"
    path.write_text(FILE)
    return d.Survey.design(path)


# ---- what a file says ----------------------------------------------------------------------------


def test_a_file_says_everything(written):
    draft = load(written())
    assert (draft.name, draft.answers, draft.named) == ("work 2027", 2, True)
    assert list(draft.questions) == ["age", "strain", "tools"]
    assert list(draft.policies) == ["age", "strain", "tools", "age × strain"]
    assert draft.crosses == {"age × strain": ("age", "strain")}
    assert draft.about == About(organiser="City of Ghent", language="en")
    assert draft.public == (
        Public("region", "Where do you work?", ["north", "south"]),
        Public("shift", "shift", ["day", "night"]),
    )
    age, strain, tools = draft.questions.values()
    assert (age.question, age.items) == ("How old are you?", ("young", "old"))
    assert (tools.kind, tools.padding, tools.question) == ("set", 2, "")
    assert [strain.items[k] for k in strain.shown] == ["burnout", "noise", "nothing"]
    assert draft.translations["de"]["questions"]["age"] == {
        "text": "Wie alt?",
        "items": {"young": "jung"},
    }


def test_json_says_the_same(written):
    table = tomllib.loads(FILE)
    assert load(written(json.dumps(table), "file.json")) == load(written())
    assert from_document(table) == load(written())


def test_a_cross_may_have_a_name(written):
    path = written(FILE.replace('of = ["age", "strain"]', 'of = ["age", "strain"]\nname = "both"'))
    assert load(path).crosses == {"both": ("age", "strain")}


def test_a_policy_file_is_a_survey_of_one_question_with_the_file_s_name(written):
    level = "[[level]]\nname = 'x'\nepsilon = 1\nitems = ['a', 'b']\n"
    for text in (level, f'question = "?"\n{level}'):
        draft = load(written(text, "my poll.toml"))
        assert (draft.name, draft.named, draft.answers) == ("my poll", False, 1)
        assert list(draft.questions) == ["question"] and draft.question().items == ("a", "b")
    more = f'name = "poll"\nquestion = "?"\nabout = {{ organiser = "us" }}\n{level}'
    draft = load(written(more))
    assert (draft.name, draft.named, draft.about.organiser) == ("poll", True, "us")


# ---- how it is designed --------------------------------------------------------------------------


def test_budgets_of_a_file_are_for_the_whole_survey(survey, written):
    """Every question is designed at its budgets divided by the number of answers, exactly."""
    draft = load(written())
    assert survey.answers == 2 and list(survey.questions) == list(draft.policies)
    for name, policy in draft.policies.items():
        asked = survey.questions[name].policy
        assert asked.differences(policy.divided(2)) == [] and asked.differences(policy) != []
    texts = {x.name: x.budget.text for x in survey.questions["strain"].policy.levels}
    assert texts == {"serious": "ln(4)/2", "mild": "1"}
    assert survey.promise().factor <= 7.389056098930651
    assert survey.listed[3].of == ("age", "strain") and survey.group_count == 4
    assert survey.translations["de"].questions["age"].items == {"young": "jung"}


@pytest.mark.parametrize(("said", "answers"), [("1", 1), ("3", 3), ('"all"', 4), ('"auto"', None)])
def test_answers_are_a_number_all_or_auto(written, said, answers):
    path = written(FILE.replace("answers = 2", f"answers = {said}"))
    made = d.Survey.design(path, **MODEL)
    rows = compare(read_draft(path), MODEL)
    best = min(rows, key=lambda row: row.total).answers
    assert [row.answers for row in rows] == [1, 2, 3, 4]
    assert made.answers == (best if answers is None else answers)
    for name, policy in load(path).policies.items():
        assert made.questions[name].policy.differences(policy.divided(made.answers)) == []


def test_no_answers_are_one(written):
    assert load(written(FILE.replace("answers = 2", ""))).answers == 1


def test_more_answers_than_questions_are_refused(written):
    path = written(FILE.replace("answers = 2", "answers = 5"))
    with pytest.raises(DesignError, match="answers = 5 must be from 1 to 4"):
        d.Survey.design(path)


def test_what_an_answer_costs_is_less_for_few_of_small_budgets(written):
    """Drawing one question is better than splitting a small budget; at large ones it is not."""

    def total(eps):
        rows = [row(f"q{k}", *"abcd", epsilon=eps) for k in range(3)]
        return [found.total for found in compare(from_document({"question": rows}), MODEL)]

    small, large = total(0.5), total(12)
    assert small[0] < small[1] < small[2] and large[2] < large[0]


# ---- mistakes ------------------------------------------------------------------------------------


def row(name, *items, epsilon=1):
    return {"name": name, "level": [{"name": "l", "epsilon": epsilon, "items": [*items]}]}


ONE, TWO = row("age", "a", "b"), row("ill", "c", "d")
NAMELESS = {key: value for key, value in ONE.items() if key != "name"}
MISTAKES = [
    ({"question": []}, "the survey has no questions"),
    ({"question": [NAMELESS]}, r"every \[\[question\]\] needs a name"),
    ({"question": [5]}, r"every \[\[question\]\] needs a name"),
    ({"question": [{**ONE, "name": 5}]}, r"every \[\[question\]\] needs a name"),
    ({"question": [ONE, ONE]}, 'question "age" is named twice'),
    ({"question": [ONE], "level": []}, r"level stands beside \[\[question\]\]"),
    ({"question": [ONE], "kind": "set"}, r"kind stands beside \[\[question\]\]"),
    ({"question": [{**ONE, "question": "?"}]}, "needs its wording under the key text"),
    ({"question": [{**ONE, "answers": 1}]}, 'unknown key "answers" in the question "age"'),
    ({"question": [row("age", "a", "b", epsilon=-1)]}, 'the question "age": .*-1'),
    ({"question": [ONE], "cross": {"of": ["age", "ill"]}}, r"written \[\[cross\]\]"),
    ({"question": [ONE, TWO], "cross": [{"of": ["age"]}]}, "two different questions"),
    ({"question": [ONE, TWO], "cross": [{"of": ["age", "age"]}]}, "two different questions"),
    ({"question": [ONE, TWO], "cross": [{"of": ["age", "x"]}]}, 'questions of "age", "ill"'),
    ({"question": [ONE, TWO], "cross": [{"of": "age"}]}, "two different questions"),
    ({"question": [ONE, TWO], "cross": [{}]}, "a cross needs of = "),
    ({"question": [ONE, TWO], "cross": [{"of": ["age", "ill"], "epsilon": 1}]}, "a cross needs of"),
    (
        {"question": [ONE, TWO], "cross": [{"of": ["age", "ill"], "name": "age"}]},
        "must be a name of its own",
    ),
    (
        {"question": [ONE, TWO], "cross": [{"of": ["age", "ill"]}, {"of": ["age", "ill"]}]},
        "must be a name of its own",
    ),
    ({"question": [ONE], "public": "region"}, r"public must be written \[\[public\]\]"),
    ({"question": [ONE], "public": [5]}, "a public question is a table"),
    (
        {"public": [{"name": "x", "items": ["a", "b"]}]},
        r"public questions only, .*; add a \[\[question\]\]",
    ),
    ({"question": [{**ONE, "x": 1}]}, "unknown key \"x\" .* name, notion, padding, pair, scale,"),
    ({"level": [], "x": 1}, 'unknown key "x" in the survey; known are about, answers, .*question'),
    ({"question": [ONE], "public": [{"name": "x"}]}, "needs a name and items"),
    ({"question": [ONE], "translations": ["de"]}, "must be tables by language"),
    ({"question": [ONE], "about": {"name": "x"}}, 'unknown key "name" in about'),
    *(
        ({"question": [ONE], "answers": answers}, 'whole number from 1, "all" or "auto"')
        for answers in (0, -1, 1.0, "2", True, "ALL", [], None)
    ),
]  # fmt: skip


@pytest.mark.parametrize(("table", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(table, sentence):
    with pytest.raises(PolicyError, match=sentence) as caught:
        from_document(table)
    assert "\n" not in str(caught.value)


def test_a_mistake_says_in_which_file(written):
    path = written(FILE.replace("answers = 2", "answers = 0"))
    with pytest.raises(PolicyError, match=r"file.toml: answers = 0"):
        load(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "shift"', 'name = "age"', "age"),
        ('name = "shift"', 'name = "AGE"', "AGE"),
        ('name = "tools"', 'name = "to:ols"', "must not have a colon"),
        ("epsilon = 1.5", "epsilon = 3", None),
        ('young = "jung"', 'junger = "jung"', "which is not an item"),
        ("[translations.de]", "[translations.en]", 'the survey is in "en" already'),
        ('items = ["day", "night"]', 'items = ["day"]', "it must have from 2 to 255"),
        ('of = ["age", "strain"]', 'of = ["age", "tools"]', "can be crossed"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_designed(written, old, new, sentence):
    assert old in FILE
    text = FILE.replace(old, new)
    if "translations.en" in new:
        text = text.replace("[translations.de.", "[translations.en.")
    if sentence is None:  # the twin
        assert d.Survey.design(written(text), **MODEL).name == "work 2027"
        return
    with pytest.raises(PolicyError, match=sentence):
        d.Survey.design(written(text), **MODEL)


# ---- the auditor ---------------------------------------------------------------------------------


def test_a_survey_is_the_one_of_its_file(survey, written, tmp_path):
    survey.save(tmp_path / "s.json")
    found = audit(str(tmp_path / "s.json"), written())
    assert found.problems == [] and found.promises == survey.promise().sentences()
    assert unlike(survey, load(written())) == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "work 2027"', 'name = "work 2028"', 'name is "work 2027", not "work 2028"'),
        ("answers = 2", "answers = 3", "answers is 2, not 3"),
        ("answers = 2", 'answers = "all"', "answers is 2, not 4"),
        ("City of Ghent", "Antwerp", 'organiser is "City of Ghent", not "Antwerp"'),
        ("epsilon = 1.5", "epsilon = 3", 'tools: item "hammer" has epsilon 0.75, not 1.5'),
        ('["age", "strain"]', '["strain", "age"]', "the questions are "),
        ('["north", "south"]', '["south", "north"]', "the public questions differ"),
        ('"jung"', '"klein"', "the translations differ"),
        ("How old are you?", "How old?", 'age: question is "How old are you?", not "How old?"'),
        ('name = "strain"', 'name = "stress"', "the questions are "),
    ],
)
def test_a_survey_is_not_that_of_another_file(survey, written, old, new, sentence):
    text = FILE.replace(old, new)
    if new.endswith('"stress"'):
        text = text.replace('"strain"]', '"stress"]')
    found = unlike(survey, load(written(text)))
    assert found and any(sentence in line for line in found), found


def test_a_survey_with_auto_is_that_of_its_file(written):
    path = written(FILE.replace("answers = 2", 'answers = "auto"'))
    assert unlike(d.Survey.design(path, **MODEL), load(path)) == []


def test_budgets_that_were_not_divided_are_found(survey, written):
    """A survey that claims the file's budgets and spends them twice."""
    undivided = d.Survey.design(written(FILE.replace("answers = 2", "answers = 1")))
    cheating = d.Survey(
        survey.name, undivided.listed, survey.about, 2, survey.public, survey.translations
    )
    found = unlike(cheating, load(written()))
    assert any('item "young" has epsilon 2, not 1' in line for line in found), found


def test_a_changed_survey_file_is_found(survey, tmp_path):
    document = survey.to_document()
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**document, "answers": 3}))
    assert "does not match the fingerprint" in audit(str(path)).problems[0]
    louder = json.loads(json.dumps(document))
    louder["questions"][1]["mechanism"]["parts"][0]["own"][0] += 2**28
    path.write_text(json.dumps(louder))
    assert any(line.startswith("strain: ") for line in audit(str(path)).problems)


def test_the_name_of_a_file_is_not_compared(survey, written):
    """Only one that stands in it."""
    text = FILE.replace('name = "work 2027"\n', "")
    assert unlike(survey, load(written(text))) == []
    named = replace(load(written(text)), name="other", named=True)
    assert unlike(survey, named) == ['name is "work 2027", not "other"']
