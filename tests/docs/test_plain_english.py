"""What people read first is in plain English: short sentences, common words, and none of the turns
that made earlier texts hard.
"""

import re
import statistics
from pathlib import Path

import pytest
from checks import must_fail
from click.testing import CliRunner
from readability import grade, sentences, words

from discreet.cli import main

ROOT = Path(__file__).parents[2]
NAMES = (
    *("index", "why", "when-not", "tutorial", "gallery", "faq", "differences", "organiser"),
    *("policy", "budgets", "surveys", "collector", "deploying", "statistics", "counting", "spark"),
    *("participant", "auditor", "peers"),
)
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in NAMES)]
LONGEST, GRADE = 15, 9  # words per sentence, on average; the school year whose pupils read it
DIALECT = re.compile(
    r"\b(she|her|hers|whoever asks|what is told|nobody stood there|unless you say otherwise"
    r"|shown to nobody|opens nothing|hardly made by|is judged afterwards)\b",
    re.IGNORECASE,
)


def prose(page):
    """The sentences of a page, without code, tables, headings and links; a line per paragraph."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "x", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    kept = [line for line in text.splitlines() if not line.startswith(("|", "#", "<!--", "["))]
    text = re.sub(r"^\s*([-*]|\d+\.)\s+", "\n\n", "\n".join(kept), flags=re.MULTILINE)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text.replace("*", "")))
    return "\n".join(part for part in paragraphs if len(part.split()) > 3)


def check(text):
    found = [len(words(sentence)) for sentence in sentences(text)]
    assert statistics.mean(found) <= LONGEST
    assert grade(text) <= GRADE
    assert DIALECT.findall(text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_easy_to_read(page):
    check(prose(page.read_text(encoding="utf-8")))


def test_a_page_that_is_hard_is_seen():
    page = prose((ROOT / "README.md").read_text(encoding="utf-8"))
    must_fail(check, f"{page}\nShe answers.")
    must_fail(check, page.replace(". ", "; "))  # one sentence where there were several
    must_fail(check, prose("Input-discriminative mechanisms necessitate heterogeneous evaluation."))


@pytest.mark.parametrize("name", sorted(main.commands))
def test_no_help_text_has_the_old_turns(name):
    printed = CliRunner().invoke(main, [name, "--help"]).output
    assert printed.startswith("Usage:") and DIALECT.findall(printed) == []
