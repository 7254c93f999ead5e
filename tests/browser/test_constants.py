"""What both languages spell is the same: the JavaScript module against vectors/v2/constants.json.

`test_vectors.py` holds Python to the same file.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from constants import CONSTANTS, at_the_limits, everything, one, promised
from nodejs import NODE, node

HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors" / "v2"
CHECKS = ("names", "models", "keys", "limits", "reasons", "promises", "twins", "uploads", "ledger")
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
    return [{"document": documents[case["mechanism"]], "report": case["report"]} for case in first]


def run(constants):
    """Per check, None or what went wrong."""
    payload = {
        "constants": constants,
        "everything": everything(),
        "limits": at_the_limits(),
        "promised": promised(),
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
    wrong = {name for name, error in run(json.loads(text)).items() if error}
    assert wrong == {*CHECKS} - {"promises"}  # whose sentences are in the documents' list
