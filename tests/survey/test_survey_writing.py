"""A survey file is written as it is read."""

import tomllib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.templates import TEMPLATES, template
from discreet.errors import PolicyError
from discreet.survey.reading import from_document
from discreet.survey.writing import to_toml

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.decimals(-9, 9, places=3)
values = st.recursive(
    plain | st.lists(plain, max_size=4),
    lambda inner: (
        st.dictionaries(texts, inner, max_size=3)
        | st.lists(st.dictionaries(texts, inner, max_size=2), min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def read(text):
    return tomllib.loads(text, parse_float=Decimal)


@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_written_is_read(document):
    assert read(to_toml(document)) == document


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_survive(name):
    document = read(template(name))
    again = read(to_toml(document))
    assert again == document and from_document(again) == from_document(document)


def test_dates_and_long_lists():
    document = read('[about]\ncloses = 2026-12-01T20:00:00+01:00\nitems = ["a"]')
    document["about"]["items"] = ["a" * 30] * 5
    assert read(to_toml(document)) == document
    assert max(map(len, to_toml(document).splitlines())) < 100


@pytest.mark.parametrize("value", [None, float("nan"), [1, {"a": 2}]])
def test_what_toml_cannot_hold_is_refused(value):
    with pytest.raises(PolicyError):
        to_toml({"key": value})
