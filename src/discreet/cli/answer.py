"""The command of a participant: answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from discreet.cli.group import (
    as_json,
    main,
    print_json,
)
from discreet.errors import DataError
from discreet.policy.labels import quoted
from discreet.survey.about import moment

if TYPE_CHECKING:
    from discreet.device.answers import Answers
    from discreet.device.client import Asked, Prepared, Receipt
    from discreet.policy import Policy
    from discreet.survey import Public, Question, Survey


@main.command(epilog="Example:  discreet answer http://127.0.0.1:8000/c/health-survey#FINGERPRINT")
@click.argument("url")
@click.argument("items", nargs=-1, metavar="")
@click.option("--policy", help="Answer only if the collection is the survey in this file.")
@click.option(
    "--max-epsilon",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if no item's budget is above this.",
)
@click.option(
    "--one-way",
    is_flag=True,
    help="With --max-epsilon or --max-total: accept protection that is one-way.",
)
@click.option(
    "--agree", is_flag=True, help="Accept the summed budget of questions about the same items."
)
@click.option(
    "--max-total",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if the sum of all budgets you ever answered is at most this.",
)
@click.option(
    "--question", is_flag=True, help="Only show the question, its promises and its answers."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before sending.")
@as_json
def answer(
    url: str,
    items: tuple[str, ...],
    policy: str | None,
    max_epsilon: float | None,
    one_way: bool,
    agree: bool,
    max_total: float | None,
    question: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Answer the survey at URL.

    This command asks for your answer, perturbs it here, and sends only the perturbed report.

    Do not put the answer on the command line: other users and the shell's history could see it.

    A script writes the answer to standard input and uses --yes. It writes one item per line; for a
    set, a single line with - means that none applies. If the survey has several questions, it
    writes a line "name: answer" for every question and every public one. Only answers to the drawn
    questions are used.

    A ledger remembers what was sent. If a report may not have arrived, it is sent again first.
    """
    from discreet.device.client import Client, invitation

    if items:
        raise DataError(
            "other users and the shell's history can see an answer on the command line; leave it "
            "out, and discreet asks you for it"
        )
    server, name, pinned = invitation(url)
    client = Client(server, max_total=max_total, waiting=_Waiting())
    if _is_interactive() and pinned is None and policy is None:
        click.echo("The link has no fingerprint, so it could lead to any question.", err=True)
    collection = client.collection(
        name,
        max_epsilon=max_epsilon,
        fingerprint=pinned,
        one_way=one_way,
    )
    if policy:
        _refuse_unlike(collection.survey, policy)
    survey, interactive = collection.survey, _is_interactive()
    unsent = None if question else client.unsent(collection)
    if unsent is not None and not as_json:
        click.echo("A report that you sent last time may not have arrived; sending it again.")
    if unsent is not None:
        receipt = client.send(unsent)
        if len(unsent.frames) == survey.answers:
            _receipt(receipt, as_json, repeated=True)
            return
    if question or interactive:
        if not as_json:  # a link of one's own shows in the address
            click.echo(f"Answers go to {server}")
        _show_survey(collection, as_json, everything=question)
    if question:
        return
    if collection.state != "open":
        opens = f"opens on {moment(survey.about.opens)}"
        state = opens if collection.state == "upcoming" else "is closed; it takes no more answers"
        raise DataError(f'"{name}" {state}')
    if not interactive and not yes:
        raise DataError("standard input holds the answer, so nothing can be asked: say --yes")
    given = _ask(survey, client.draw(collection)) if interactive else _read_answers(survey)
    prepared = client.prepare(collection, given, agree=agree)
    if not yes:
        _confirm(survey, given, prepared)
    _receipt(client.send(prepared), as_json, prepared.repeated)


def _refuse_unlike(survey: Survey, path: str) -> None:
    """Refuse a survey that is not the one in this file."""
    from discreet.device.pins import PromiseError
    from discreet.survey.audit import unlike
    from discreet.survey.reading import load

    differences = unlike(survey, load(path))
    if differences:
        raise PromiseError(
            f'"{survey.name}" is not the survey you named: {differences[0]}; do not answer, and '
            "ask who invited you"
        )


def _confirm(survey: Survey, given: Answers, prepared: Prepared) -> None:
    """Show what will be sent, and ask."""
    for frame in prepared.frames:
        question = survey.question(frame.question)
        answer = given.get(frame.question)
        if isinstance(answer, set) and not prepared.repeated:
            click.echo(question.mechanism.guarantee().list_sentence(answer))
        about = f" on {quoted(frame.question)}" if survey.has_several else ""
        click.echo(
            f"This report{about} will be sent: {frame.content.hex()}"
            + (" (drawn earlier; it does not depend on this answer)" if prepared.repeated else "")
        )
    them = "them? They" if len(prepared.frames) > 1 else "it? It"
    click.confirm(f"Send {them} cannot be taken back", abort=True)


def _show_survey(collection: Asked, as_json: bool, everything: bool) -> None:
    """Show the organiser and what is promised; of one question, or if `everything` is wanted, the
    questions and their answers, too. Otherwise they are shown when they are asked.
    """
    survey, promise = collection.survey, collection.survey.promise()
    if as_json:
        facts = {"about": survey.about.to_canonical(), "state": collection.state}
        facts |= {"caution": promise.caution, "promises": promise.sentences()}
        asked = [
            {"name": q.name, "question": q.policy.question, "items": _shown(q.policy)}
            for q in survey.listed
            if q.of is None
        ]
        openly = [public.to_canonical() for public in survey.public]
        print_json({**facts, "questions": asked, "public": openly})
        return
    for key, line in survey.about.rows():
        click.echo(f"{key}: {line}")
    if len(survey.listed) == 1:
        click.echo(survey.only.policy.title)
    warning = [f"Warning: {promise.caution}"] if promise.caution else []
    click.echo("\n".join([*warning, *(f"  • {line}" for line in promise.sentences())]))
    if everything:
        for public in survey.public:
            click.echo(f"{public.name}: {public.text} This answer is sent as it is.")
            _list_items(public.items)
    if len(survey.listed) == 1:
        _list_items(_shown(survey.only.policy))
    elif everything:
        for q in survey.listed:
            if q.of is not None:
                both = " and ".join(map(quoted, q.of))
                click.echo(f"{q.name}: the answers to {both} in one report")
                continue
            click.echo(f"{q.name}: {q.policy.title}")
            _list_items(_shown(q.policy))


def _shown(policy: Policy) -> list[str]:
    return [policy.items[place] for place in policy.shown]


def _list_items(items: Sequence[str]) -> None:
    click.echo("\n".join(f"{k:>5}  {item}" for k, item in enumerate(items, 1)))


def _receipt(receipt: Receipt, as_json: bool, repeated: bool) -> None:
    if as_json:
        facts = {"accepted": receipt.accepted, "duplicates": receipt.duplicates}
        sent = [
            {"question": f.question, "id": f.id.hex(), "report": f.report.hex()}
            for f in receipt.frames
        ]
        print_json({**facts, "reports": sent, "repeated": repeated})
        return
    if repeated:
        click.echo("Sent the report that was drawn earlier; it does not depend on this answer.")
    click.echo("Counted." if receipt.accepted else "It was already counted; it counts once.")


class _Waiting:
    """Says once, not at every attempt, that the collector is not ready."""

    said = False

    def __call__(self, why: str) -> None:
        if not self.said:
            click.echo(f"The collector is not ready ({why}); trying for a minute.", err=True)
        self.said = True


def _is_interactive() -> bool:
    """Whether a person sits at a terminal and can be asked."""
    return sys.stdin.isatty()


def _ask(survey: Survey, drawn: Sequence[Question]) -> Answers:
    """Ask the public questions, then those that were drawn."""
    answers: dict[str, str | set[str]] = {}
    for public in survey.public:
        answers[public.name] = _ask_openly(public)
    names = dict.fromkeys(name for q in drawn for name in q.of or (q.name,))
    for k, name in enumerate(names, 1):
        policy = survey.question(name).policy
        if survey.has_several:
            click.echo(f"{k} of {len(names)}: {policy.title}" if len(names) > 1 else policy.title)
            _list_items(_shown(policy))
        answers[name] = _ask_one(policy)
    return answers


def _ask_openly(public: Public) -> str:
    click.echo(f"{public.text} This answer is sent as it is.")
    _list_items(public.items)
    return _chosen(str(click.prompt("Your answer, by number or in words")).strip(), public.items)


def _chosen(text: str, items: Sequence[str]) -> str:
    """An item, by its number in the list or its label."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if text in items or not 1 <= number <= len(items):
        return text
    return items[number - 1]


def _ask_one(policy: Policy) -> str | set[str]:
    """Ask for the answer: a number in the list or a label; for a set, one per line."""

    def one(text: str) -> str:
        return policy.items[policy.place(_chosen(text, _shown(policy)))]

    if not policy.kind.lists:
        return one(str(click.prompt("Your answer, by number or in words")).strip())
    chosen: set[str] = set()
    ask = "One answer, by number or in words (empty to finish, - if none applies)"
    while text := str(click.prompt(ask, default="", show_default=False)).strip():
        if text == "-":
            return set()
        chosen.add(one(text))
    if not chosen:
        raise DataError("there is no answer; type - if none applies")
    return chosen


def _read_answers(survey: Survey) -> Answers:
    """Read the answers from standard input: one item per line, or where a survey has several
    questions "name: item".
    """
    from discreet.device.answers import asked_names

    lines = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    if len(survey.listed) == 1 and not survey.public:
        return {survey.only.name: _read_one(survey.only.policy, lines)}
    given: dict[str, list[str]] = {}
    known = asked_names(survey)
    for number, line in enumerate(lines, 1):
        name, mark, item = (piece.strip() for piece in line.partition(":"))
        if not mark:
            raise DataError(f'line {number} of standard input is not "name: answer"')
        if name not in known:  # it is not repeated, because it may be the answer
            names = ", ".join(map(quoted, known))
            raise DataError(f"line {number} of standard input names no question; it asks {names}")
        given.setdefault(name, []).append(item)
    openly = {public.name for public in survey.public}
    answers: dict[str, str | set[str]] = {}
    for name, items in given.items():
        if name in openly:
            if len(items) > 1:
                raise DataError(f"{quoted(name)} takes one answer, got {len(items)} lines")
            answers[name] = items[0]
        else:
            answers[name] = _read_one(survey.question(name).policy, items)
    return answers


def _read_one(policy: Policy, lines: list[str]) -> str | set[str]:
    """The answer to one question from its lines. An error does not repeat it: a script's errors are
    often kept in a log.
    """
    if not policy.kind.lists and len(lines) != 1:
        raise DataError(f"this question takes one item on one line, got {len(lines)} lines")
    if not lines:
        raise DataError("standard input is empty; write a single line with - if none applies")
    chosen = set() if policy.kind.lists and lines == ["-"] else set(lines)
    if not chosen <= set(policy.items):
        raise DataError(
            "an answer on standard input is not an item of this question; --question lists the "
            "items"
        )
    return chosen if policy.kind.lists else lines[0]
