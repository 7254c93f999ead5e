"""What a survey is made of, what it refuses, its canonical form and its fingerprint."""

import hashlib
import json
from dataclasses import replace

import pytest

import discreet as d
from discreet.errors import FingerprintError, GuaranteeError, MechanismError, PolicyError
from discreet.survey import About, Public, Question
from discreet.survey.crosses import cross, margins

AGE = d.Policy.from_budgets({"young": 1, "old": 2}, question="How old?")
ILL = d.Policy.from_budgets({"HIV": 1, "flu": 2, "none": 2}, question="What?")
REGION = {"name": "region", "text": "Where?", "items": ["north", "south"]}
GERMAN = {
    "about": {"organiser": "Stadt Gent"},
    "questions": {"age": {"text": "Wie alt?", "items": {"young": "jung", "old": "alt"}}},
    "public": {"region": {"items": {"north": "Norden"}}},
}


@pytest.fixture(scope="module")
def age():
    return d.design(AGE, "opt0")


@pytest.fixture(scope="module")
def ill():
    return d.design(ILL, "opt0")


@pytest.fixture(scope="module")
def both():
    return d.design(cross(AGE, ILL), "opt0")


@pytest.fixture(scope="module")
def whole(age, ill, both):
    """A survey that has everything."""
    return d.Survey(
        "clinic",
        [Question("age", age), Question("ill", ill), Question("both", both, ("age", "ill"))],
        {"organiser": "City of Ghent", "language": "en", "minimum": 60},
        2,
        [REGION],
        {"fr": {"questions": {"ill": {"items": {"flu": "grippe"}}}}, "de": GERMAN},
    )


def signed(body):
    """A document with the fingerprint that anybody can compute, as docs/wire-format.md says."""
    body = json.loads(json.dumps({k: v for k, v in body.items() if k != "fingerprint"}))
    told = json.loads(json.dumps(body))
    for row in told.get("questions", []) if isinstance(told.get("questions"), list) else ():
        for key in ("model", "prior", "certificate"):
            (row.get("mechanism", {}) if isinstance(row, dict) else {}).pop(key, None)
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**body, "fingerprint": hashlib.sha256(text.encode()).hexdigest()}


# ---- what it is made of --------------------------------------------------------------------------


def test_questions_are_a_list_or_a_mapping(age, ill):
    one = d.Survey("s", [age])
    assert list(one.questions) == ["question"] and one.mechanism == one.only.mechanism == age
    assert list(d.Survey("s", [age, ill]).questions) == ["q1", "q2"]
    two = d.Survey("s", {"age": age, "ill": ill})
    assert list(two.questions) == ["age", "ill"] and two.questions["ill"] == ill
    assert two == d.Survey("s", [Question("age", age), Question("ill", ill)])
    assert two != d.Survey("s", {"ill": ill, "age": age})  # in their order
    with pytest.raises(PolicyError, match='the survey has 2 questions; name one: "age", "ill"'):
        _ = two.mechanism
    with pytest.raises(PolicyError, match='"x" is not a question of this survey; it asks "age"'):
        two.question("x")


def test_groups_are_combinations_of_public_answers(whole, age):
    assert whole.group_count == 2 and whole.group([1]) == ("south",)
    assert d.Survey("s", [age]).group_count == 1 and d.Survey("s", [age]).group([]) == ()
    assert whole.public == (Public("region", "Where?", ["north", "south"]),)


# ---- round trip ----------------------------------------------------------------------------------


def test_a_survey_is_its_document_and_its_file(whole, tmp_path):
    document = json.loads(json.dumps(whole.to_document()))
    assert d.Survey.from_document(document) == whole
    path = tmp_path / "s.json"
    whole.save(path)
    again = d.Survey.load(path)
    assert again == whole and again.fingerprint == whole.fingerprint
    assert again.to_document() == document and again.translations == whole.translations
    assert again.about == About(organiser="City of Ghent", language="en", minimum=60)


def test_a_mechanism_file_is_a_survey_with_the_file_s_name(age, tmp_path):
    age.save(tmp_path / "a b.json")
    assert d.Survey.load(tmp_path / "a b.json") == d.Survey("a b", [age])


def test_the_canonical_form_holds_what_is_said_and_nothing_else(age, whole):
    body = d.Survey("s", [age]).to_canonical()
    assert set(body) == {"format", "name", "answers", "questions"}
    assert (body["format"], body["name"], body["answers"]) == ("discreet-survey/1", "s", 1)
    (row,) = body["questions"]
    assert set(row) == {"name", "mechanism"} and row["mechanism"] == age.to_canonical()
    body = whole.to_canonical()
    assert set(body) == {
        "format",
        "name",
        "answers",
        "questions",
        "about",
        "public",
        "translations",
    }
    assert body["questions"][2]["of"] == ["age", "ill"]
    assert body["translations"] == {
        "de": GERMAN,
        "fr": {"questions": {"ill": {"items": {"flu": "grippe"}}}},
    }


def test_the_fingerprint_is_the_hash_of_the_sorted_json(age, whole):
    for survey in (d.Survey("s", [age]), whole):
        assert survey.fingerprint == signed(survey.to_canonical())["fingerprint"]
        assert survey.to_document()["fingerprint"] == survey.fingerprint


def test_the_fingerprint_covers_everything_that_people_read_and_that_counts(age, ill, both, whole):
    """And not how the mechanisms were found: one changed word would single out whoever has it."""
    listed = whole.listed
    other = d.design(d.Policy.from_budgets({"young": 1, "old": 2}, question="Age?"), "opt0")
    louder = d.design(d.Policy.from_budgets({"young": 1, "old": 2.5}, question="How old?"), "opt0")

    def changed(**settings):
        known = {
            "name": whole.name,
            "questions": listed,
            "about": whole.about,
            "answers": whole.answers,
            "public": whole.public,
            "translations": whole.translations,
        }
        return d.Survey(**{**known, **settings})

    assert changed() == whole
    plain = [question for question in listed if question.of is None]
    others = [
        changed(name="hospital"),
        changed(answers=1),
        changed(about=replace(whole.about, organiser="Somebody")),
        changed(about=replace(whole.about, minimum=70)),
        changed(questions=listed[::-1]),
        changed(questions=listed[:2]),
        changed(questions=[*listed[:2], Question("pair", both, ("age", "ill"))]),
        changed(questions=[*plain, Question("both", both)]),  # the same words, and no cross
        changed(questions=[Question("age", other), listed[1]]),
        changed(questions=[Question("age", louder), listed[1]]),
        changed(public=[]
                , translations={}),
        changed(public=[{**REGION, "items": ["south", "north"]}]),
        changed(public=[{**REGION, "text": "Where do you work?"}]),
        changed(translations={"de": GERMAN}),
        changed(translations={**whole.translations, "nl": {"about": {"organiser": "Gent"}}}),
    ]  # fmt: skip
    marks = {survey.fingerprint for survey in others}
    assert len(marks) == len(others) and whole.fingerprint not in marks
    found = [replace(q, mechanism=replace(q.mechanism, certificate=None)) for q in listed]
    assert changed(questions=found).fingerprint == whole.fingerprint


# ---- documents that are none ---------------------------------------------------------------------


def test_a_changed_document_does_not_match_its_fingerprint(whole):
    document = whole.to_document()
    for change in ({"answers": 1}, {"name": "x"}, {"public": []}, {"fingerprint": "0" * 64}):
        with pytest.raises(FingerprintError):
            d.Survey.from_document({**document, **change})


def louder(body):
    body["questions"][1]["mechanism"]["parts"][0]["own"][0] += 2**28


CROSS = ["age", "ill", "age"]
CHANGES = {
    "another format": (lambda b: b.update(format="discreet-survey/2"), MechanismError),
    "a key more": (lambda b: b.update(note="x"), MechanismError),
    "no name": (lambda b: b.pop("name"), MechanismError),
    "no questions": (lambda b: b.update(questions=[]), MechanismError),
    "questions in a table": (lambda b: b.update(questions={"a": 1}), MechanismError),
    "a question that is none": (lambda b: b.update(questions=[5]), MechanismError),
    "a question of nothing": (lambda b: b["questions"][0].pop("mechanism"), MechanismError),
    "a key more in a question": (lambda b: b["questions"][0].update(note="x"), MechanismError),
    "a question twice": (lambda b: b["questions"].append(b["questions"][0]), MechanismError),
    "answers as a text": (lambda b: b.update(answers="2"), MechanismError),
    "answers = true": (lambda b: b.update(answers=True), MechanismError),
    "a cross of three": (lambda b: b["questions"][2].update(of=CROSS), MechanismError),
    "a cross of one": (lambda b: b["questions"][2].update(of=["age"]), MechanismError),
    "a cross of itself": (lambda b: b["questions"][2].update(of=CROSS[:1] * 2), MechanismError),
    "a cross the other way round": (
        lambda b: b["questions"][2].update(of=["ill", "age"]),
        MechanismError,
    ),
    "an empty about": (lambda b: b.update(about={}), MechanismError),
    "an unknown word about": (lambda b: b["about"].update(note="x"), MechanismError),
    "no public question": (lambda b: b.update(public=[], translations={}), MechanismError),
    "a public question without text": (lambda b: b["public"][0].pop("text"), MechanismError),
    "a public question with a note": (lambda b: b["public"][0].update(note=1), MechanismError),
    "languages in a list": (lambda b: b.update(translations=["de"]), MechanismError),
    "a label of no item": (
        lambda b: b["translations"]["fr"]["questions"]["ill"]["items"].update(x="y"),
        MechanismError,
    ),
    "a label as it is": (
        lambda b: b["translations"]["fr"].update(about={}),
        MechanismError,
    ),
    "a larger chance": (louder, GuaranteeError),
}  # fmt: skip


@pytest.mark.parametrize(("change", "error"), CHANGES.values(), ids=CHANGES)
def test_a_document_that_discreet_would_not_write_is_refused_though_signed(whole, change, error):
    body = json.loads(json.dumps(whole.to_canonical()))
    assert d.Survey.from_document(signed(body)) == whole  # the twin
    change(body)
    with pytest.raises(error):
        d.Survey.from_document(signed(body))


# ---- what does not fit together ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", " ", " s", "s ", "a\nb", "a\x1bb", "a\u202eb", "\u200b", "x" * 201, 5, None]
)
def test_names_are_visible_lines(age, ill, name):
    for make in (
        lambda: d.Survey(name, [age]),
        lambda: d.Survey("s", {name: age, "ill": ill}),
        lambda: d.Survey("s", [age], public=[{**REGION, "name": name}]),
    ):
        with pytest.raises(PolicyError):
            make()
    d.Survey("x" * 200, {"y" * 200: age})


def test_a_question_s_name_has_no_colon_and_a_survey_s_may(age):
    """A line of a script is "name: answer"."""
    assert d.Survey("a: b", [age]).name == "a: b"
    for make in (
        lambda: d.Survey("s", {"a:b": age}),
        lambda: d.Survey("s", [age], public=[{**REGION, "name": "a:b"}]),
    ):
        with pytest.raises(PolicyError, match='"a:b" of a question must not have a colon'):
            make()


@pytest.mark.parametrize("other", ["age", "Age", "ａge", "\u0430ge"])
def test_names_that_look_alike_are_refused(age, ill, other):
    """Of questions, of public ones, and of one and the other."""
    if other != "age":
        with pytest.raises(PolicyError):
            d.Survey("s", {"age": age, other: ill})
    with pytest.raises(PolicyError):
        d.Survey("s", [Question("age", age), Question(other, ill)])
    with pytest.raises(PolicyError):
        d.Survey("s", {"age": age}, public=[{**REGION, "name": other}])


@pytest.mark.parametrize("answers", [0, -1, 3, 1.0, "1", True, None, "all", "auto"])
def test_answers_are_from_one_to_the_number_of_questions(age, ill, answers):
    with pytest.raises(PolicyError, match="must be a whole number from 1 to 2"):
        d.Survey("s", {"age": age, "ill": ill}, answers=answers)


def test_there_are_one_to_a_hundred_questions(age):
    assert len(d.Survey("s", [age] * 100, answers=100).listed) == 100
    for many in (0, 101):
        with pytest.raises(PolicyError, match=f"1 to 100 questions, .* got {many}"):
            d.Survey("s", [age] * many)


def test_a_question_is_a_mechanism(age):
    for wrong in ([AGE], [5], [None], 5, [Question("a", AGE)]):
        with pytest.raises(PolicyError, match=r"a question is a mechanism, .*design\(policy\)"):
            d.Survey("s", wrong)


def openly(*sizes):
    return [
        {"name": f"p{k}", "text": "Which?", "items": [f"i{j}" for j in range(size)]}
        for k, size in enumerate(sizes)
    ]


def test_public_questions_are_at_most_eight_with_ten_thousand_groups(age):
    assert d.Survey("s", [age], public=openly(*[2] * 8)).group_count == 256
    assert d.Survey("s", [age], public=openly(100, 100)).group_count == 10_000
    with pytest.raises(PolicyError, match="9 public questions make 512 groups; at most 8"):
        d.Survey("s", [age], public=openly(*[2] * 9))
    with pytest.raises(PolicyError, match="10,100 groups; at most 8 questions and 10,000"):
        d.Survey("s", [age], public=openly(101, 100))


PUBLIC = {
    "one item": {"items": ["a"]},
    "no item": {"items": []},
    "too many items": {"items": [f"i{k}" for k in range(256)]},
    "a text of items": {"items": "ab"},
    "an item twice": {"items": ["a", "a"]},
    "items that look alike": {"items": ["HIV", "\u041dIV"]},
    "an item that nobody sees": {"items": ["a", "\u200b"]},
    "an item that is a number": {"items": ["a", 1]},
    "a text of two lines": {"text": "a\nb"},
    "a text that is none": {"text": 5},
    "a budget": {"epsilon": 1},
}


@pytest.mark.parametrize("change", PUBLIC.values(), ids=PUBLIC)
def test_a_public_question_has_two_to_255_items_and_a_line_of_text(age, change):
    with pytest.raises(PolicyError):
        d.Survey("s", [age], public=[{**REGION, **change}])
    d.Survey("s", [age], public=openly(255))


@pytest.mark.parametrize("missing", ["name", "items"])
def test_a_public_question_needs_a_name_and_items(age, missing):
    row = {key: value for key, value in REGION.items() if key != missing}
    with pytest.raises(PolicyError, match="needs a name and items"):
        d.Survey("s", [age], public=[row])


# ---- crosses -------------------------------------------------------------------------------------


def test_a_cross_has_every_pair_with_the_smaller_budget(both):
    policy = both.policy
    assert policy.items == tuple(f"{a} × {b}" for a in AGE.items for b in ILL.items)
    named = {item: policy.levels[k].budget.text for item, k in zip(policy.items, policy.level_of)}
    assert named == {
        "young × HIV": "1", "young × flu": "1", "young × none": "1",
        "old × HIV": "1", "old × flu": "2", "old × none": "2",
    }  # fmt: skip
    assert margins(AGE, ILL, 0) == [[0, 1, 2], [3, 4, 5]]
    assert margins(AGE, ILL, 1) == [[0, 3], [1, 4], [2, 5]]


def test_a_cross_is_of_the_items_and_budgets_of_its_questions(age, ill, both):
    plain = [Question("age", age), Question("ill", ill)]
    assert d.Survey("s", [*plain, Question("both", both, ("age", "ill"))]).listed[2].of
    rows = dict.fromkeys(both.policy.items, 2.0)
    others = {
        "larger budgets": d.design(d.Policy.from_budgets(rows), "opt0"),
        "other items": d.design(cross(AGE, d.Policy.from_budgets({"HIV": 1, "flu": 2})), "opt0"),
        "another order": d.design(cross(ILL, AGE), "opt0"),
        "a set": d.design(replace(cross(AGE, ILL), kind="set"), "opt0", padding=1),
    }
    for other in others.values():
        with pytest.raises(PolicyError, match='"both" is not the cross of its two questions'):
            d.Survey("s", [*plain, Question("both", other, ("age", "ill"))])


@pytest.mark.parametrize(
    "of", [("age", "age"), ("age", "x"), ("both", "age"), ("age",), (), ("age", "region")]
)
def test_a_cross_names_two_questions_that_are_not_crossed(age, ill, both, of):
    listed = [Question("age", age), Question("ill", ill), Question("both", both, of)]
    with pytest.raises(PolicyError, match="it must name two questions of the survey that are not"):
        d.Survey("s", listed, public=[REGION])


def test_only_single_questions_under_one_of_two_notions_are_crossed():
    rows = [("a", 1, ["x", "y"]), ("b", 2, ["z"])]
    plain = d.Policy.from_levels(rows)
    for wrong in (
        d.Policy.from_levels(rows, kind="set"),
        d.Policy.from_levels(rows, kind="each"),
        d.Policy.from_levels(rows, notion="one-way"),
        d.Policy.from_levels(rows, pairs=[("a", "b", 3)]),
        d.Policy.from_scale(["x", "y", "z"], step=1),
    ):
        for pair in ((plain, wrong), (wrong, plain)):
            with pytest.raises(PolicyError, match="can be crossed"):
                cross(*pair)
    average = d.Policy.from_levels(rows, notion="avg")
    assert cross(average, average).notion == "avg"
    with pytest.raises(PolicyError, match='one notion, got "min" and "avg"'):
        cross(plain, average)


# ---- translations --------------------------------------------------------------------------------


TRANSLATIONS = {
    "a language that is none": {"deutsch": {}},
    "the survey's own": {"en": {}},
    "another part": {"de": {"levels": {}}},
    "a text": {"de": "Wie alt?"},
    "times about it": {"de": {"about": {"opens": "2027-01-01T00:00:00Z"}}},
    "an organiser of two lines": {"de": {"about": {"organiser": "a\nb"}}},
    "a question that there is not": {"de": {"questions": {"x": {"text": "?"}}}},
    "a crossed question": {"de": {"questions": {"both": {"text": "?"}}}},
    "a public one as another": {"de": {"questions": {"region": {"text": "?"}}}},
    "a public one that there is not": {"de": {"public": {"x": {"text": "?"}}}},
    "an item that there is not": {"de": {"questions": {"age": {"items": {"x": "y"}}}}},
    "an item that is no label": {"de": {"questions": {"age": {"items": {"old": ""}}}}},
    "a label that nobody sees": {"de": {"questions": {"age": {"items": {"old": "\u200b"}}}}},
    "one label for two items": {
        "de": {"questions": {"age": {"items": {"old": "x", "young": "x"}}}}
    },
    "the label of another item": {"de": {"questions": {"age": {"items": {"old": "young"}}}}},
    "labels that look alike": {
        "de": {"questions": {"age": {"items": {"old": "HIV", "young": "H\u0406V"}}}}
    },
    "a text of two lines": {"de": {"questions": {"age": {"text": "a\nb"}}}},
    "a note": {"de": {"questions": {"age": {"note": "x"}}}},
    "a budget": {"de": {"questions": {"age": {"epsilon": 1}}}},
}


@pytest.mark.parametrize("given", TRANSLATIONS.values(), ids=TRANSLATIONS)
def test_a_translation_changes_words_and_nothing_else(whole, given):
    with pytest.raises(PolicyError):
        d.Survey("s", whole.listed, {"language": "en"}, 1, [REGION], given)


def test_a_translation_keeps_the_items(whole):
    assert whole.translations["de"].questions["age"].items == {"young": "jung", "old": "alt"}
    assert whole.translations["fr"].questions["ill"].text == ""
    assert whole.questions["age"].policy.items == ("young", "old")


# ---- differences ---------------------------------------------------------------------------------


def test_differences_are_told_of_the_other_one(age, ill, whole):
    assert whole.differences(whole) == []
    mine = d.Survey("mine", {"age": age, "ill": ill})
    theirs = d.design(d.Policy.from_budgets({"young": 1, "old": 3}, question="How old?"), "opt0")
    other = d.Survey("other", {"age": theirs, "ill": ill}, {"organiser": "us"}, 2, [REGION])
    assert mine.differences(other) == [
        'name is "other", not "mine"',
        "answers is 2, not 1",
        'organiser is "us", not ""',
        '"age": item "old" has epsilon 3, not 2',
        "the public questions differ",
    ]
    fewer = d.Survey("other", {"age": age})
    assert mine.differences(fewer) == [
        'name is "other", not "mine"',
        'the questions are "age", not "age", "ill"',
    ]


def test_a_crossed_question_is_another_one(age, ill, both):
    plain = [Question("age", age), Question("ill", ill)]
    crossed = d.Survey("s", [*plain, Question("both", both, ("age", "ill"))])
    asked = d.Survey("s", [*plain, Question("both", both)])
    assert crossed.differences(asked) == ['"both" crosses other questions']


def test_posters_have_what_is_translated(age, ill):
    """Of one question its words; of several the survey's name, with who asks."""
    about = {"organiser": "Stadt"}
    words = {"question": {"text": "Wie alt?"}}
    one = d.Survey("s", [age], translations={"de": {"questions": words}, "fr": {"about": about}})
    assert one.poster_words() == {"de": ("Wie alt?", []), "fr": ("s", ["Stadt"])}
    said = {"de": {"questions": {"age": {"text": "Wie alt?"}}}, "fr": {"about": about}}
    several = d.Survey("s", {"age": age, "ill": ill}, translations=said)
    assert several.poster_words() == {"fr": ("s", ["Stadt"])}
