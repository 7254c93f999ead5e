"""A survey while it is being written: read, judged, designed, forecast. Nothing of it is stored."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from discreet.collector import documents
from discreet.collector.problems import Json
from discreet.collector.store import Collection, checked_name
from discreet.errors import DiscreetError
from discreet.policy.reading import read_question
from discreet.show import forecast, group_sizes
from discreet.survey import Survey
from discreet.survey.about import About, moment
from discreet.survey.public import Public
from discreet.survey.writing import to_toml

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

_DEEPEST = 16  # tables and lists within each other; a survey file has 5


class Misplaced(DiscreetError):
    """What is wrong with a draft, and where: "about.notice", "question.0", "public.1", "name"."""

    def __init__(self, where: str, sentence: str) -> None:
        super().__init__(sentence)
        self.where = where


class Designed(NamedTuple):
    """A draft that is valid: its file, and what will be asked."""

    toml: str
    survey: Survey


def read_table(content: Mapping[str, object]) -> JsonObject:
    """The survey file of a request: a text (`toml`), or its content (`document`)."""
    text, document = content.get("toml"), content.get("document")
    if isinstance(text, str):
        if _LONG_KEY.search(text):
            raise Misplaced("file", "this is no survey file: a key has more than 8 parts")
        try:
            document = tomllib.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise Misplaced("file", f"this is not TOML: {error}") from None
    if not isinstance(document, dict):
        raise Misplaced("file", "a request has a survey file: toml (a text) or document")
    if _is_deep(document):
        raise Misplaced("file", f"this is no survey file: it is nested more than {_DEEPEST} deep")
    return document


# tomllib takes seconds for keys of hundreds of parts. Nothing here is read twice: every part ends
# where no other one can
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{8}}")


def _is_deep(document: object) -> bool:
    rows: list[object] = [document]
    for _ in range(_DEEPEST):
        tables = [x for row in rows if isinstance(row, dict) for x in row.values()]
        lists = [x for row in rows if isinstance(row, list) for x in row]
        rows = [x for x in (*tables, *lists) if isinstance(x, dict | list)]
    return bool(rows)


def parse_body(body: bytes) -> dict[str, object]:
    """The JSON object of a request. Decimal numbers stay as they are written."""
    try:
        content = json.loads(body, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Misplaced("", "the body must be a JSON object")
    return content


def _refuse(name: str) -> object:
    raise ValueError(name)


def read(table: JsonObject, design: Callable[[str], Survey]) -> Designed:
    """Have the survey of a draft designed; Misplaced says what is wrong and where."""
    try:
        _refuse_paths(table)
        toml = to_toml(table)
        survey = design(toml)
        checked_name(survey.name)
    except Misplaced:
        raise
    except DiscreetError as error:
        raise _misplaced(table, error) from None
    if survey.about.rehearsal:
        raise Misplaced("about.rehearsal", "only a rehearsal has this; leave it out, and try it")
    if survey.about.state(datetime.now(UTC)) == "closed":
        over = moment(survey.about.closes)
        raise Misplaced("about.closes", f"it would have closed on {over}; choose a later date")
    return Designed(toml, survey)


def _refuse_paths(table: JsonObject) -> None:
    """A draft comes over the network: it may not name files of this machine."""
    rows = table.get("question")
    for k, row in enumerate((table, *(rows if isinstance(rows, list) else ()))):
        if isinstance(row, dict) and "items_file" in row:
            where = f"question.{k - 1}" if k else "question.0"
            sentence = "items_file names a file; write the items into the levels instead"
            raise Misplaced(where, sentence)


def _misplaced(table: JsonObject, error: DiscreetError) -> Misplaced:
    """Where a draft is wrong: the first part that is wrong by itself, and what is wrong there."""
    for where, read_part in _parts(table):
        try:
            read_part()
        except DiscreetError as wrong:
            return Misplaced(where, str(wrong))
        except (TypeError, AttributeError):  # what is no text, no list, no table
            return Misplaced(where, str(error))
    if "answers" in str(error).partition("=")[0]:
        return Misplaced("answers", str(error))
    return Misplaced("translations" if "translat" in str(error) else "", str(error))


def _parts(table: JsonObject) -> Iterator[tuple[str, Callable[[], object]]]:
    """The parts of a survey file, each with what reads it alone."""
    about = table.get("about", {})
    for key, value in about.items() if isinstance(about, dict) else ():
        yield f"about.{key}", partial(About.read, {key: value})
    # both dates are right, but not together
    yield "about.closes" if isinstance(about, dict) else "about", partial(About.read, about)
    public = table.get("public", [])
    for k, row in enumerate(public if isinstance(public, list) else ()):
        yield f"public.{k}", partial(Public.read, row)
    rows = table.get("question")
    whole = ("name", "about", "answers", "public", "translations", "cross")
    only = {key: value for key, value in table.items() if key not in whole}
    for k, row in enumerate(rows if isinstance(rows, list) else [only]):
        yield f"question.{k}", partial(_read_alone, row)
    if "name" in table:
        yield "name", partial(checked_name, table["name"])


def _read_alone(row: JsonObject) -> None:
    own = {key: value for key, value in row.items() if key not in ("name", "text")}
    read_question({**own, "question": row["text"]} if "text" in row else own, None, "a question")


# ---- what is said about it -----------------------------------------------------------------------


def describe(draft: Designed, people: int, keep: str, open_results: bool) -> dict[str, Json]:
    """What the desk shows of a valid draft: its file, the forecast, and for the preview what the
    collector would tell a participant, as if it were open.
    """
    survey = draft.survey
    groups = group_sizes.sentence(survey, people) if survey.public else ""
    return {
        "toml": draft.toml,
        "forecast": forecast.tell(survey, people),  # type: ignore[dict-item]
        "groups": groups,
        "preview": preview(survey, keep, open_results),
        "problem": None,
    }


def preview(survey: Survey, keep: str, open_results: bool) -> dict[str, Json]:
    """The description of the survey before there is a collection, and as if it were open."""
    described = documents.describe(Collection(0, survey.name, survey, keep, False), open_results)
    return {**described, "state": "open"}


def plain(value: object) -> Json:
    """The content of a survey file for a browser: times as text, numbers as JavaScript has them; a
    number that it would round is a text.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(x) for key, x in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(x) for x in value]
    if isinstance(value, Decimal):
        near = float(value)
        return near if Decimal(repr(near)) == value else str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    return value  # type: ignore[return-value]
