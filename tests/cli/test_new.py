"""`discreet new` asks, forecasts and writes a survey file that `serve` and `plan` read."""

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import discreet as d
from discreet.cli import main
from discreet.data.templates import TEMPLATES, summary, template
from discreet.designs.surveys import read_draft


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, lines=(): CliRunner().invoke(
        main, ["new", *arguments], input="".join(f"{line}\n" for line in lines)
    )


ONE = ["pain", "City of Ghent", "", "Where does it hurt?", "n"]
ANSWERS = ["HIV", "", "", "", "back", "back", "head", ""]


def test_it_asks_forecasts_and_writes(run):
    told = run(
        lines=[*ONE, *ANSWERS, "n", "Where do you live?", "region", "north", "south", *[""] * 3]
    )
    assert told.exit_code == 0, told.output
    document = tomllib.loads(Path("survey.toml").read_text())
    assert document == {
        "name": "pain",
        "question": "Where does it hurt?",
        "about": {"organiser": "City of Ghent"},
        "level": [
            {"name": "very sensitive", "epsilon": "ln(3)", "items": ["HIV"]},
            {"name": "hardly sensitive", "epsilon": "ln(9)", "items": ["back", "head"]},
        ],
        "public": [{"name": "region", "text": "Where do you live?", "items": ["north", "south"]}],
    }
    assert "With 1,000 people you may miss" in told.stdout
    assert "is there already" in told.stderr  # "back" a second time
    assert d.Survey.design("survey.toml").public[0].name == "region"


def test_several_questions_and_several_answers(run):
    second = ["What do you take?", "y", "3", "", "", "", "aspirin", "tea", ""]
    told = run("--users", "5000", lines=[*ONE, *ANSWERS, "y", *second, "n", ""])
    assert told.exit_code == 0, told.output
    draft = read_draft("survey.toml")
    assert list(draft.questions) == ["question 1", "question 2"]
    assert str(draft.questions["question 2"].kind) == "set"
    assert draft.questions["question 2"].padding == 3
    assert "With 2,500 people" in told.stdout


def test_a_question_needs_two_answers(run):
    told = run(lines=[*ONE, "one", "", "", "", "", *ANSWERS, "n", "", "100"])
    assert told.exit_code == 0 and "needs at least two answers" in told.stderr
    assert "one" not in read_draft("survey.toml").question().items


@pytest.mark.parametrize("lines", [[], ONE[:2], ONE, [*ONE, "HIV"]])
def test_without_a_terminal_the_end_of_the_input_is_said(run, lines):
    told = run(lines=lines)
    assert told.exit_code == 2 and not Path("survey.toml").exists()
    (error,) = [line for line in told.stderr.splitlines() if line.startswith("error:")]
    assert "the input ended before" in error and "--template" in error


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_surveys(run, name):
    told = run("--template", name, "-o", "mine.toml")
    assert told.exit_code == 0, told.output
    assert Path("mine.toml").read_text() == template(name)
    draft = read_draft("mine.toml")
    assert draft.name == name and draft.about.purpose and summary(name) in template(name)
    assert "may miss" in told.stdout and "discreet serve mine.toml" in told.stdout


def test_mistakes_are_one_sentence(run):
    Path("survey.toml").write_text("")
    for arguments, why in [
        ((), "survey.toml exists already"),
        (("--template", "nothing", "-o", "a.toml"), 'template "nothing" is unknown'),
        (("--template", "health", "-o", "a.json"), "must end in"),
        (("--template", "health", "-o", "no/where.toml"), "cannot be written"),
    ]:
        told = run(*arguments)
        assert told.exit_code == 2 and why in told.stderr and told.stderr.count("\n") == 1
    assert Path("survey.toml").read_text() == ""
