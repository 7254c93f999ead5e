"""The command `new`: asks what is to be asked, says what it will show, writes a survey file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.group import main, require_suffix
from discreet.errors import DataError
from discreet.policy.labels import is_label, is_prose
from discreet.policy.sensitivity import SENSITIVITIES

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject


@main.command(epilog="Example:  discreet new --template workplace")
@click.option("-o", "--output", default="survey.toml", show_default=True, help="The file to write.")
@click.option(
    "--template",
    "template_name",
    metavar="NAME",
    help="Write this example and ask nothing: health, workplace, student-life or "
    "product-telemetry.",
)
@click.option(
    "--users",
    type=click.IntRange(1, 10**9),
    help="The number of people who will answer, for the forecast.  [default: asks; 1,000]",
)
def new(output: str, template_name: str | None, users: int | None) -> None:
    """Ask for questions, answers and how sensitive they are, and write a survey file.

    Then forecasts what the survey will show. A script can write the replies to standard input, one
    per line.
    """
    require_suffix(output, ".toml")
    if Path(output).exists():
        raise DataError(f"{output} exists already; name another file with -o")
    if template_name:
        from discreet.data.templates import template

        text = template(template_name)
    else:
        from discreet.survey.writing import to_toml

        text = to_toml(_ask_survey())
    people = users or (1000 if template_name else _ask_number("How many people will answer?", 1000))
    shown = _forecast(text, people)
    _write(output, text)
    click.echo("\n".join([*shown, *_next(output, people)]))


def _forecast(text: str, people: int) -> list[str]:
    """The forecast in lines of text; PolicyError if the text is not a survey."""
    import tomllib
    from decimal import Decimal

    from discreet.show.forecast import forecast
    from discreet.survey.reading import from_document

    _, told = forecast(from_document(tomllib.loads(text, parse_float=Decimal)), people)
    several, lines = len(told["questions"]) > 1, []
    for question in told["questions"]:
        lines += [f"{question['name']}:"] * several
        lines += [f"  • {line}" for line in (*question["sentences"], *question["warnings"])]
    return [*lines, told["caution"] or told["promise"]]


def _next(output: str, people: int) -> list[str]:
    steps = {
        f"discreet plan {output} --users {people}": "what so many people will show",
        f"discreet serve {output} --rehearse 500": "try it with simulated people",
        f"discreet serve {output} --lan": "try it from phones of your network",
        f"discreet serve {output}": "collect answers",
    }
    width = max(map(len, steps))
    listed = [f"  {command:{width}}  {what}" for command, what in steps.items()]
    return [f"Wrote {output}. Change it as you like, then:", *listed]


def _write(output: str, text: str) -> None:
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise DataError(f"{output} cannot be written: {error.strerror}") from None


# ---- asking --------------------------------------------------------------------------------------


def _ask_survey() -> JsonObject:
    """Ask for everything; the content of a survey file."""
    document: JsonObject = {"name": _ask("A short name, a part of the link", "my-survey")}
    about = {
        "organiser": _ask("Who asks? (empty: not said)", ""),
        "purpose": _ask("What for? (empty: not said)", ""),
    }
    if any(about.values()):
        document["about"] = {key: text for key, text in about.items() if text}
    questions = [_ask_question()]
    while _confirm("Another question? Each person answers one of them"):
        questions.append(_ask_question())
    if len(questions) == 1:
        document |= questions[0]
    else:
        document["question"] = _named(questions)
    public = _ask_public()
    return document | ({"public": public} if public else {})


def _named(questions: Sequence[JsonObject]) -> list[JsonObject]:
    """The same as questions of a survey that has several."""
    rows = []
    for k, question in enumerate(questions):
        rest = {key: value for key, value in question.items() if key != "question"}
        rows.append({"name": f"question {k + 1}", "text": question["question"], **rest})
    return rows


def _ask_question() -> JsonObject:
    question: JsonObject = {"question": _ask("The question")}
    if _confirm("May people choose several answers?"):
        question["kind"] = "set"
        question["padding"] = _ask_number("About how many will a person choose?", 2)
    taken: set[str] = set()
    levels: list[JsonObject] = []
    while not levels:
        click.echo("Now the answers, the most sensitive ones first. An empty line goes on.")
        for word in SENSITIVITIES:
            said = f"whoever sees a report changes odds by a factor of {word.factor} at most"
            click.echo(f"{word.name} ({word.when}; {said}):")
            items = _ask_items(taken)
            if items:
                levels.append({"name": word.name, "epsilon": word.epsilon, "items": items})
        if len(taken) < 2:
            click.echo("A question needs at least two answers.", err=True)
            levels, taken = [], set()
    return question | {"level": levels}


def _ask_items(taken: set[str]) -> list[str]:
    """Answers, one per line, until an empty one; they are added to those that are taken."""
    items: list[str] = []
    while item := _ask("  answer", ""):
        if not is_label(item) or item in taken:
            why = "is there already" if item in taken else "has invisible characters"
            click.echo(f"  That answer {why}; write another one.", err=True)
            continue
        items.append(item)
        taken.add(item)
    return items


def _ask_public() -> list[JsonObject]:
    """Public questions, if any."""
    public: list[JsonObject] = []
    click.echo("You can ask something openly, such as a region, and count by it. It is not hidden.")
    while text := _ask("A question that is answered openly (empty: none)", ""):
        name = _ask("  its name, a column of the results", f"group-{len(public) + 1}")
        items = _ask_items(set())
        if len(items) < 2:
            click.echo("  A public question needs at least two answers.", err=True)
            continue
        public.append({"name": name, "text": text, "items": items})
    return public


def _ask(what: str, default: str | None = None) -> str:
    """A line of text; asks again for one that nobody can read."""
    while True:
        text = str(_prompt(what, default)).strip()
        if is_prose(text):
            return text
        click.echo("That has invisible characters; write it again.", err=True)


def _ask_number(what: str, default: int) -> int:
    return int(str(_prompt(what, default, click.IntRange(1, 10**9))))


def _confirm(what: str) -> bool:
    return bool(_prompt(f"{what} (yes or no)", False, click.BOOL, "no"))


def _prompt(
    what: str,
    default: object,
    kind: click.ParamType[Any] | None = None,
    shown: str | bool | None = None,
) -> object:
    if shown is None:
        shown = default not in ("", None)
    try:
        return click.prompt(what, default=default, type=kind, show_default=shown)
    except click.Abort:
        if _is_terminal():  # Ctrl-C
            raise
        raise DataError(
            f'the input ended before "{what}" was answered; run discreet new in a terminal, or '
            "write an example with --template NAME"
        ) from None


def _is_terminal() -> bool:
    try:
        return sys.stdin.isatty()
    except ValueError:  # it is closed
        return False
