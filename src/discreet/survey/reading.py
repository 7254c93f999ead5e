"""Surveys from files: what will be asked, before mechanisms are designed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import PolicyError
from discreet.policy import Policy
from discreet.policy.labels import quoted
from discreet.policy.reading import (
    KEYS,
    SURVEY_KEYS,
    known_table,
    read_question,
    read_table,
    shown_name,
)
from discreet.survey.about import About
from discreet.survey.crosses import cross
from discreet.survey.public import Public
from discreet.survey.survey import ONLY

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

AUTO, ALL = "auto", "all"
_ROW_KEYS = {*KEYS, "name", "text"} - {"question"}  # of a [[question]]


@dataclass(frozen=True)
class SurveyFile:
    """The content of a survey file. The budgets of its policies are for the whole survey."""

    name: str
    questions: Mapping[str, Policy]
    crosses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    about: About = field(default_factory=About)
    answers: int | str = 1  # a number, "all" or "auto"
    public: tuple[Public, ...] = ()
    translations: Mapping[str, object] = field(default_factory=dict)
    named: bool = True  # in the file itself; otherwise the name is that of the file

    @property
    def policies(self) -> dict[str, Policy]:
        """Everything that may be drawn, crossed questions included."""
        crossed = {
            name: cross(self.questions[one], self.questions[two])
            for name, (one, two) in self.crosses.items()
        }
        return {**self.questions, **crossed}

    def question(self, name: str | None = None) -> Policy:
        """A question by its name, with its whole budgets; without a name the only one."""
        names = ", ".join(map(quoted, self.policies))
        if name is None and len(self.policies) > 1:
            raise PolicyError(f"the survey has {len(self.policies)} questions; name one: {names}")
        if name is not None and name not in self.policies:
            raise PolicyError(f"{quoted(name)} is not a question of this survey; it asks {names}")
        return self.policies[name or next(iter(self.policies))]


def load(path: str | Path) -> SurveyFile:
    """From a TOML or JSON survey file; "-" is TOML on standard input. A policy file is a survey of
    one question.
    """
    table, folder = read_table(path)
    name = "survey" if str(path) == "-" else Path(path).stem
    try:
        return from_document(table, folder, name)
    except PolicyError as error:
        raise PolicyError(f"{shown_name(path)}: {error}") from None


def from_document(
    table: JsonObject, folder: Path | None = None, name: str = "survey"
) -> SurveyFile:
    """From the content of a survey file."""
    whole: JsonObject = {key: table[key] for key in SURVEY_KEYS if key in table}
    rest = {key: value for key, value in table.items() if key not in SURVEY_KEYS}
    crossed = rest.pop("cross", [])
    if isinstance(rest.get("question"), list):
        questions = _questions(rest, folder)
    elif "public" in whole and not rest:
        raise PolicyError(
            "the survey has public questions only, whose answers are sent as they are; add a "
            "[[question]] whose answers are protected"
        )
    else:
        known_table(table, {*KEYS, *SURVEY_KEYS, "cross"}, "the survey")
        questions = {ONLY: read_question(rest, folder, "the survey")}
    translations = whole.get("translations", {})
    if not isinstance(translations, Mapping):
        raise PolicyError(f"translations = {quoted(translations)} must be tables by language")
    public = whole.get("public", [])
    if not isinstance(public, Sequence) or isinstance(public, str):
        raise PolicyError("public must be written [[public]], once per public question")
    return SurveyFile(
        whole.get("name", name),
        questions,
        _crosses(crossed, questions),
        About.read(whole.get("about", {})),
        _answers(whole.get("answers", 1)),
        tuple(map(Public.read, public)),
        translations,
        "name" in whole,
    )


def _questions(rest: JsonObject, folder: Path | None) -> dict[str, Policy]:
    surplus = next((key for key in rest if key != "question"), None)
    if surplus is not None:
        raise PolicyError(
            f"{surplus} stands beside [[question]]; write it into the question that it is about"
        )
    questions: dict[str, Policy] = {}
    for row in rest["question"]:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise PolicyError(f"every [[question]] needs a name, got {quoted(row)}")
        name = row["name"]
        if name in questions:
            raise PolicyError(f"question {quoted(name)} is named twice")
        if "question" in row:
            raise PolicyError(f"the question {quoted(name)} needs its wording under the key text")
        where = f"the question {quoted(name)}"
        known_table(row, _ROW_KEYS, where)
        own = {key: value for key, value in row.items() if key not in ("name", "text")}
        text = {"question": row["text"]} if "text" in row else {}
        try:
            questions[name] = read_question({**own, **text}, folder, where)
        except PolicyError as error:
            raise PolicyError(f"{where}: {error}") from None
    if not questions:
        raise PolicyError("the survey has no questions; add a [[question]]")
    return questions


def _crosses(rows: object, questions: Mapping[str, Policy]) -> dict[str, tuple[str, str]]:
    if not isinstance(rows, list):
        raise PolicyError("cross must be written [[cross]], once per crossed question")
    crosses: dict[str, tuple[str, str]] = {}
    for row in rows:
        if not isinstance(row, dict) or set(row) - {"of", "name"} or "of" not in row:
            raise PolicyError(f'a cross needs of = ["age", "strain"], got {quoted(row)}')
        of = row["of"]
        fine = isinstance(of, list) and len(of) == 2 and of[0] != of[1]
        if not fine or any(name not in questions for name in of):
            known = ", ".join(map(quoted, questions))
            raise PolicyError(
                f"of = {quoted(of)} of a cross must be two different questions of {known}"
            )
        name = row.get("name", f"{of[0]} × {of[1]}")
        if not isinstance(name, str) or name in crosses or name in questions:
            raise PolicyError(f"name = {quoted(name)} of a cross must be a name of its own")
        crosses[name] = (of[0], of[1])
    return crosses


def _answers(raw: object) -> int | str:
    if raw in (AUTO, ALL) or (type(raw) is int and raw >= 1):
        return raw
    raise PolicyError(f'answers = {quoted(raw)} must be a whole number from 1, "{ALL}" or "{AUTO}"')
