"""Texts that people read; the vectors hold both languages to the same rules (test_vectors.py)."""

import unicodedata

import pytest

from discreet.policy import labels


@pytest.mark.parametrize(
    ("text", "label", "prose"),
    [
        ("HIV", True, True),
        ("", False, True),
        ("  ", False, True),
        ("\u200d", False, True),
        ("a\u00a0b", False, True),
        ("a\tb", False, False),
        ("a\u202eb", False, False),
        ("می\u200cخواهم", True, True),
        ("\u3164", False, False),
    ],
)
def test_what_may_stand_in_a_text(text, label, prose):
    assert (labels.is_label(text), labels.is_prose(text)) == (label, prose)
    assert labels.is_visible(text) == bool(text.strip("\u200d \u3164")) or not prose


def test_what_a_stranger_says_is_cleaned():
    assert labels.cleaned(" a\n\x1b[31mb ") == "a \ufffd[31mb"
    long = labels.cleaned("x" * 999)
    assert len(long) == 300 and long.endswith("…")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("HIV", "hiv ", True),
        ("HIV", "Н\u0406V", True),
        ("ß", "SS", True),
        ("café", unicodedata.normalize("NFD", "café"), True),
        ("cold", "gold", False),
    ],
)
def test_labels_that_look_the_same(first, second, same):
    assert bool({*labels.looks(first)} & {*labels.looks(second)}) == same


def test_a_value_is_shown_short_and_without_control_characters():
    assert labels.quoted("a\x07") == '"a\\x07"' and labels.quoted(True) == "true"
    assert len(labels.quoted("x" * 500)) == 78
