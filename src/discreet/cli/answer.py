"""Commands for participants and their invitations: invite, page, answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from discreet.cli.group import (
    as_json,
    emit,
    load_policy,
    main,
    print_json,
)
from discreet.errors import DataError, MissingExtra
from discreet.policy.about import moment

if TYPE_CHECKING:
    from discreet.device.client import Asked, Receipt
    from discreet.policy import Policy


@main.command(epilog="Example:  discreet invite https://host/c/survey#FINGERPRINT -o poster.html")
@click.argument("url")
@click.option(
    "-o",
    "--output",
    multiple=True,
    help="Write the code (.png, .svg) or a page to print (.html). Repeatable.",
)
@as_json
def invite(url: str, output: tuple[str, ...], as_json: bool) -> None:
    """Show the invitation URL as a QR code for phones.

    Tries the URL first: the collection must exist, match the fingerprint and not be closed. The
    code and the files need the extra "serve".
    """
    from urllib.parse import urlsplit

    from discreet.device.client import Client, invitation
    from discreet.show import address, invitations

    server, name, pinned = invitation(url)
    if pinned is None:
        raise DataError(
            "the invitation has no fingerprint, so people could be shown any question; use the "
            "whole link that serve prints"
        )
    address.public(server)
    collection = Client(server, patience=5).collection(name, fingerprint=pinned)
    if collection.state == "closed":
        raise DataError(f'"{name}" is closed; nobody can answer it')
    policy, guarantee = collection.mechanism.policy, collection.mechanism.guarantee()
    for path in output:
        title = policy.question or policy.name
        promises, about = guarantee.sentences(), policy.about.rows()
        invitations.save(url, path, title, guarantee.lead, promises, about)
    here = address.is_here(urlsplit(server).hostname or "")
    if as_json:
        facts = {"url": url, "state": collection.state, "this_machine_only": here}
        facts["caution"] = guarantee.caution
        print_json({**facts, "output": list(output)})
        return
    try:
        click.echo(invitations.terminal(url), nl=False)
    except MissingExtra as error:
        click.echo(f"Only the link: {error}", err=True)
    click.echo(url)
    if guarantee.caution:
        click.echo(f"Warning: {guarantee.caution}", err=True)
    if here:
        click.echo("This link works on this machine only; serve --public-url makes one for phones.")


@main.command(epilog="Example:  discreet page -o answer.html")
@click.option("-o", "--output", required=True, help="Write the page to this file.")
@as_json
def page(output: str, as_json: bool) -> None:
    """Write the participant's page as one static file.

    You can host it anywhere. Prints its SHA-256.
    """
    from discreet.collector.pages import answer_file, answer_hash
    from discreet.policy.files import write_text

    write_text(output, answer_file().decode())
    facts = {"sha256": answer_hash(), "output": output}
    emit(as_json, facts, f"{answer_hash()}  {output}")


@main.command(epilog="Example:  discreet answer http://127.0.0.1:8000/c/health-survey#FINGERPRINT")
@click.argument("url")
@click.argument("items", nargs=-1, metavar="")
@click.option("--policy", help="Answer only if the collection has the policy in this file.")
@click.option(
    "--max-epsilon",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if no item's budget is above this.",
)
@click.option(
    "--one-way", is_flag=True, help="With --max-epsilon: accept protection that is one-way."
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

    Do not put the answer on the command line: other users and the shell's history could see it. A
    script writes it to standard input and uses --yes, one item per line; for a set, a single line
    with - means that none applies.

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
        policy=load_policy(policy) if policy else None,
        max_epsilon=max_epsilon,
        fingerprint=pinned,
        one_way=one_way,
    )
    survey = collection.mechanism.policy
    interactive = _is_interactive()
    unsent = None if question else client.unsent(collection)
    if unsent is not None:
        if not as_json:
            click.echo("The report that you sent last time may not have arrived; sending it again.")
        _receipt(client.send(unsent), as_json, repeated=True)
        return
    if question or interactive:
        _show_question(collection, as_json)
    if question:
        return
    if collection.state != "open":
        opens = f"opens on {moment(survey.about.opens)}"
        state = opens if collection.state == "upcoming" else "is closed; it takes no more answers"
        raise DataError(f'"{name}" {state}')
    if not interactive and not yes:
        raise DataError("standard input holds the answer, so nothing can be asked: say --yes")
    given = _ask(survey) if interactive else _read_answer(survey)
    for item in given if isinstance(given, set) else [given]:
        survey.place(item)  # raises with a sentence for the person at this terminal
    prepared = client.prepare(collection, given, agree=agree)
    if not yes and isinstance(given, set) and not prepared.repeated:
        click.echo(collection.mechanism.guarantee().list_sentence(given))
    if not yes:
        click.echo(
            f"This report will be sent: {prepared.report.hex()}"
            + (" (drawn earlier; it does not depend on this answer)" if prepared.repeated else "")
        )
        click.confirm("Send it? It cannot be taken back", abort=True)
    _receipt(client.send(prepared), as_json, prepared.repeated)


def _show_question(collection: Asked, as_json: bool) -> None:
    """Show the organiser, the question, its promises and its answers."""
    survey, guarantee = collection.mechanism.policy, collection.mechanism.guarantee()
    promises = guarantee.sentences()
    if as_json:
        facts = {"about": survey.about.to_canonical(), "state": collection.state}
        facts["caution"] = guarantee.caution
        facts |= {"question": survey.question, "promises": promises, "items": list(survey.items)}
        print_json(facts)
        return
    for key, line in survey.about.rows():
        click.echo(f"{key}: {line}")
    warning = [f"Warning: {guarantee.caution}"] if guarantee.caution else []
    listed = [f"  • {promise}" for promise in promises]
    click.echo("\n".join([survey.question, *warning, *listed]))
    click.echo("\n".join(f"{k:>5}  {item}" for k, item in enumerate(survey.items, 1)))


def _receipt(receipt: Receipt, as_json: bool, repeated: bool) -> None:
    if as_json:
        facts = {"accepted": receipt.accepted, "duplicates": receipt.duplicates}
        sent = {"id": receipt.id.hex(), "report": receipt.report.hex(), "repeated": repeated}
        print_json({**facts, **sent})
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


def _ask(policy: Policy) -> str | set[str]:
    """Ask for the answer: a number in the list or a label; for a set, one per line."""

    def one(text: str) -> str:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if text not in policy.index and 1 <= number <= policy.m:
            return policy.items[number - 1]
        return policy.items[policy.place(text)]

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


def _read_answer(policy: Policy) -> str | set[str]:
    """Read the answer from standard input, one item per line."""
    lines = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    if policy.kind.lists:
        if not lines:
            raise DataError("standard input is empty; write a single line with - if none applies")
        return set() if lines == ["-"] else set(lines)
    if len(lines) != 1:
        raise DataError(f"this question takes one item on one line, got {len(lines)} lines")
    return lines[0]
