"""What both languages spell is the same: the JavaScript module against vectors/v2/constants.json.

`test_vectors.py` holds Python to the same file. Cautions and reasons of refusal are compared with
Python's own.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from constants import CONSTANTS, at_the_limits, everything, one, promised
from nodejs import NODE, node

import discreet as d
from discreet.encodings import REASONS
from discreet.mechanism import Mechanism

HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors" / "v2"
CHECKS = (
    "names",
    "models",
    "keys",
    "limits",
    "reasons",
    "promises",
    "cautions",
    "twins",
    "uploads",
    "ledger",
)
OPEN = [("a", 1, ["x", "y"]), ("b", 1, ["z", "w"])]
CAUTIOUS = [  # per caution, a policy that needs it; first one that needs none
    ([("a", "ln(100)", ["x", "y"])], {}, ""),
    (OPEN, {"pairs": [("a", "b", None)]}, "Some answers are not protected"),
    ([("a", "ln(101)", ["x", "y"])], {}, "between two answers"),
    ([("a", 6, ["x", "y", "z"])], {"kind": "set", "padding": 1}, "having and not having"),
    ([("a", "ln(105)", [*"uvwxyz"])], {"kind": "set", "padding": 6}, "two lists of answers"),
    ([("a", 1, [*"vwxyz"])], {"kind": "each"}, "Each answer is protected on its own"),
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
        mechanism = d.design(d.Policy.from_levels(levels, **settings))
        caution = mechanism.guarantee().caution
        assert words in caution and bool(words) == bool(caution)
        found.append((mechanism.to_document(), caution))
    return found


def run(constants, said=lambda caution: caution):
    """Per check, None or what went wrong; `said` changes the cautions that are expected."""
    payload = {
        "constants": constants,
        "everything": everything(),
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
        ('"\\u0391\\u0410"', '"\\u0391\\u0411"'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    reports = run(json.loads(text), lambda caution: caution.replace("answer", "item"))
    wrong = {name for name, error in reports.items() if error}
    assert wrong == {*CHECKS} - {"promises"}  # whose sentences are in the documents' list
