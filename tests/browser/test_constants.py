"""What both languages spell is the same: the JavaScript module against vectors/v2/constants.json.

`test_vectors.py` holds Python to the same file. Cautions and reasons of refusal are compared with
Python's own.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from constants import (
    CONSTANTS,
    at_the_limits,
    everything,
    one,
    promised,
    surveying,
    surveys_at_the_limits,
    whole_survey,
)
from nodejs import NODE, node

import discreet as d
from discreet.encodings import REASONS
from discreet.mechanism import Mechanism
from discreet.survey import Question
from discreet.survey.crosses import cross

HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors" / "v2"
CHECKS = (
    "names",
    "models",
    "keys",
    "limits",
    "surveys",
    "reasons",
    "promises",
    "cautions",
    "surveys in words",
    "twins",
    "uploads",
    "ledger",
)
OPEN = [("a", 1, ["x", "y"]), ("b", 1, ["z", "w"])]
SHOWN = ("b", None, ["z", "w"])
CAUTIOUS = [  # per caution, a policy that needs it; first one that needs none
    ([("a", "ln(100)", ["x", "y"])], {}, ""),
    (OPEN, {"pairs": [("a", "b", None)]}, "Some answers are not protected"),
    ([("a", "ln(101)", ["x", "y"])], {}, "between two answers"),
    ([("a", 6, ["x", "y", "z"])], {"kind": "set", "padding": 1}, "having and not having"),
    ([("a", "ln(105)", [*"uvwxyz"])], {"kind": "set", "padding": 6}, "two lists of answers"),
    ([("a", 1, [*"vwxyz"])], {"kind": "each"}, "Each answer is protected on its own"),
    (OPEN, {"blocks": True}, "which group of answers yours is in"),
    (OPEN, {"kind": "each", "notion": "one-way"}, "That you do not have something"),
    ([OPEN[0], SHOWN], {"notion": "one-way", "open": ["b"]}, 'Answers of "b" are not protected'),
    (
        [OPEN[0], SHOWN, ("c", None, ["u"])],
        {"notion": "one-way", "open": ["b", "c"]},
        'Answers of "b" and "c"',
    ),
    ([("a", 6, ["x"]), SHOWN], {"notion": "one-way", "open": ["b"]}, "weak protection"),
    ([("a", 6, ["x", "y"])], {"kind": "each"}, "having and not having"),
]
pytestmark = [
    pytest.mark.skipif(
        NODE is None, reason="node is not installed, so the JavaScript module cannot be run"
    ),
    pytest.mark.xdist_group("constants"),
]


def refusals():
    """Of every reason, the first report in the vectors that is refused for it."""
    reports, mechanisms = (
        json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("reports", "mechanisms")
    )
    documents = {case["name"]: case["document"] for case in mechanisms}
    first = [
        next(case for case in reports if case.get("refused") == reason)
        for reason in CONSTANTS["reasons"]
    ]
    found = []
    for case in first:
        document = documents[case["mechanism"]]
        size = Mechanism.from_document(document).report_size
        why = REASONS[case["refused"]].format(size=size)
        found.append({"document": document, "report": case["report"], "why": why})
    return found


@cache
def cautions():
    """Documents, and the caution that Python gives."""
    found = []
    for levels, settings, words in CAUTIOUS:
        model = "hits" if "lists" in words else None  # whose items tell less than whole lists
        mechanism = d.design(d.Policy.from_levels(levels, **settings), model)
        caution = mechanism.guarantee().caution
        assert words in caution and bool(words) == bool(caution)
        found.append((mechanism.to_document(), caution))
    return found


SURVEYS = [  # (questions, answers): the factor is one of each number of digits, and none at all
    ([[("a", "ln(2)", ["x", "y"])], [("a", 1, ["u", "v"])]], 1),
    ([[("a", "ln(2)", ["x", "y"])], [("a", 1, ["u", "v"])]], 2),
    ([[("a", "ln(2)", ["x", "y"])], [("a", 1, ["u", "v"])], [("a", 2, ["w", "z"])]], 1),
    ([[("a", 3, ["x", "y"])], [("a", 4, ["u", "v"])], [("a", 4, ["w", "z"])]], 3),
    ([OPEN, [("a", "ln(101)", ["u", "v"])]], 2),
]


@cache
def in_words():
    """Surveys, and what Python says of everything that one person sends: the sentence, what is
    drawn, and the caution.
    """
    found = []
    for rows, answers in SURVEYS:
        made = [d.design(d.Policy.from_levels(levels)) for levels in rows]
        found.append(d.Survey("words", made, answers=answers))
    one_way = d.Policy.from_levels(OPEN, notion="one-way")
    found.append(d.Survey("words", [d.design(one_way), *found[0].questions.values()]))
    found += crossed_surveys()
    for document, _ in cautions():
        found.append(d.Survey("words", [Mechanism.from_document(document)]))
        both = [Mechanism.from_document(document), *found[0].questions.values()]
        found.append(d.Survey("words", both, answers=2))
    promises = [(survey, survey.promise()) for survey in found]
    each = [[p.answer_sentence(q.name) for q in survey.listed] for survey, p in promises]
    sentences = " ".join(f"{p.sentence} {p.drawn} {p.caution}" for _, p in promises)
    sentences += " ".join(sentence for one in each for sentence in one)
    for part in ("by at most a factor of", "has no limit: of some answers", "the other is not",
                 "the other 2 are not", "everything you send together can change",
                 "between it and any other by", "not cover them"):  # fmt: skip
        assert part in sentences, part
    return [
        (survey.to_document(), p.sentence, p.drawn, p.caution, *sentences)
        for (survey, p), sentences in zip(promises, each, strict=True)
    ]


LOOSE = (
    [("a", 3, ["a"]), ("b", 0.5, ["b", "c", "d"]), ("e", 2, ["e"])],
    [("x", 1.5, ["x", "y", "z"]), ("u", 2, ["u"])],
)
TIGHT = [("a", 2, ["a"]), ("b", 1, ["b"])], [("x", 2, ["x", "y"])]


def crossed_surveys():
    """Questions, their cross, and public ones: answered together, and one of them alone."""
    one, other = (d.Policy.from_budgets(dict.fromkeys(pair, 1)) for pair in ("xy", "uv"))
    asked = [Question("one", d.design(one)), Question("other", d.design(other))]
    asked.append(Question("both", d.design(cross(one, other)), ("one", "other")))
    for answers in (2, 1):
        openly = [{"name": f"open {k}", "text": "?", "items": ["p", "q"]} for k in range(answers)]
        yield d.Survey("words", asked, answers=answers, public=openly)
    for first, second in LOOSE, TIGHT:  # a cross that tells more than a question itself, or not
        one, other = (d.Policy.from_levels(levels) for levels in (first, second))
        asked = [Question("one", d.design(one)), Question("other", d.design(other))]
        asked.append(Question("both", d.design(cross(one, other)), ("one", "other")))
        yield d.Survey("words", asked)


def run(constants, said=lambda caution: caution):
    """Per check, None or what went wrong; `said` changes the cautions that are expected."""
    payload = {
        "constants": constants,
        "everything": everything(),
        "asking": surveying(everything()),
        "whole": whole_survey(),
        "surveyLimits": surveys_at_the_limits(),
        "surveyWords": [(document, *(said(x) for x in words)) for document, *words in in_words()],
        "limits": at_the_limits(),
        "promised": promised(),
        "cautions": [(document, said(caution)) for document, caution in cautions()],
        "refusals": refusals(),
        "ticket": one(encoding={"kind": "ticket", "q": 3, "t": 2}),
    }
    return node("constants.mjs", payload)


@cache
def found():
    return run(CONSTANTS)


@pytest.mark.parametrize("name", CHECKS)
def test_the_module_spells_what_python_spells(name):
    assert found()[name] is None


def test_all_checks_are_listed():
    assert tuple(found()) == CHECKS


def test_another_spelling_is_seen():
    """The twin: one word changed in every kind of constant."""
    text = json.dumps(CONSTANTS)
    for old, new in (
        ('"worst"', '"worse"'),
        ("[a-z][a-z0-9]", "[a-z][a-z]"),
        ('"lower_bound"', '"bound"'),
        ("9007199254740991", "9007199254740990"),
        ('"silent"', '"quiet"'),
        ("application/octet-stream", "application/binary"),
        ('"levelOf"', '"level_of"'),
        ("discreet-survey/1", "discreet-survey/2"),
        ('"\\u0391\\u0410"', '"\\u0391\\u0411"'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    reports = run(json.loads(text), lambda said: said.replace("answer", "item"))
    wrong = {name for name, error in reports.items() if error}
    assert wrong == {*CHECKS} - {"promises"}  # whose sentences are in the documents' list
