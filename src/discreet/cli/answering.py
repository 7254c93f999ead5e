"""Commands around the participant: invite, page, answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from discreet.about import moment
from discreet.cli.group import (
    as_json,
    load_policy,
    main,
    print_json,
    say,
)
from discreet.errors import DataError

if TYPE_CHECKING:
    from discreet.client import Receipt
    from discreet.policy import Policy


@main.command(epilog="Example:  discreet invite https://host/c/survey#FINGERPRINT -o poster.html")
@click.argument("url")
@click.option(
    "-o", "--output", multiple=True, help="Write the code (.png, .svg) or a page to print (.html)."
)
@as_json
def invite(url: str, output: tuple[str, ...], as_json: bool) -> None:
    """The invitation URL as a QR code for phones, here and as files, once it was tried: the
    collection is there, open, and the one that the URL names. Needs the extra "serve".
    """
    from urllib.parse import urlsplit

    from discreet import invitations
    from discreet.client import Client, invitation
    from discreet.collector import address

    server, name, pinned = invitation(url)
    if pinned is None:
        raise DataError(
            "the invitation names no fingerprint, so people could be shown any question; use the "
            "whole link that serve prints"
        )
    address.public(server)
    found = Client(server, patience=5).collection(name, fingerprint=pinned)
    if found.state == "closed":
        raise DataError(f'"{name}" is closed; nobody can answer it')
    policy, guarantee = found.mechanism.policy, found.mechanism.guarantee()
    for path in output:
        title = policy.question or policy.name
        promises, about = guarantee.sentences(), policy.about.rows()
        invitations.save(url, path, title, guarantee.lead, promises, about)
    here = address.is_here(urlsplit(server).hostname or "")
    if as_json:
        facts = {"url": url, "state": found.state, "this_machine_only": here}
        facts["caution"] = guarantee.caution
        print_json({**facts, "output": list(output)})
        return
    click.echo(invitations.terminal(url), nl=False)
    click.echo(url)
    if guarantee.caution:
        click.echo(f"Warning: {guarantee.caution}", err=True)
    if here:
        click.echo("This link is for this machine only; serve --public-url makes one for phones.")


@main.command(epilog="Example:  discreet page -o answer.html")
@click.option("-o", "--output", required=True, help="Write the page here.")
@as_json
def page(output: str, as_json: bool) -> None:
    """The participant's page as one static file, to be hosted anywhere; prints its SHA-256."""
    from discreet.collector.pages import answer_file, answer_hash
    from discreet.files import write_text

    write_text(output, answer_file().decode())
    facts = {"sha256": answer_hash(), "output": output}
    say(as_json, facts, f"{answer_hash()}  {output}")


@main.command(epilog="Example:  discreet answer http://127.0.0.1:8000/c/health-survey#FINGERPRINT")
@click.argument("url")
@click.argument("items", nargs=-1, metavar="")
@click.option("--policy", help="Answer only if the collection's policy is this file's.")
@click.option(
    "--max-epsilon",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if no item's budget is above this.",
)
@click.option(
    "--agree", is_flag=True, help="Agree to the summed budget of questions about the same items."
)
@click.option(
    "--max-total",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if the budgets of all you ever answered do not sum to more.",
)
@click.option("--question", is_flag=True, help="Only show the question, its promises and answers.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before sending.")
@as_json
def answer(
    url: str,
    items: tuple[str, ...],
    policy: str | None,
    max_epsilon: float | None,
    agree: bool,
    max_total: float | None,
    question: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Answer at URL: the answer is asked for, verified and perturbed here, and the report is sent.

    The answer never stands on the command line, where other users and the shell's history could see
    it. A script gives it on standard input with --yes, one item per line; for a set, a line with -
    alone says that none applies. It stays in this process; only the perturbed report leaves it.
    What was sent is remembered in a ledger; a report that may not have arrived is sent again before
    anything else.
    """
    from discreet.client import Client, invitation

    if items:
        raise DataError(
            "an answer on the command line is seen by others and kept in the shell's history; "
            "leave it out, and you are asked for it"
        )
    server, name, pinned = invitation(url)
    client = Client(server, max_total=max_total, waiting=_Waiting())
    if _person() and pinned is None and policy is None:
        click.echo("The link names no fingerprint: any question could be behind it.", err=True)
    collection = client.collection(
        name,
        policy=load_policy(policy) if policy else None,
        max_epsilon=max_epsilon,
        fingerprint=pinned,
    )
    asked = collection.mechanism.policy
    asks = _person()
    unsent = None if question else client.unsent(collection)
    if unsent is not None:
        if not as_json:
            click.echo("The report that you sent last time may not have arrived; sending it again.")
        _receipt(client.send(unsent), as_json, repeated=True)
        return
    if question or asks:
        guarantee = collection.mechanism.guarantee()
        promises = guarantee.sentences()
        if as_json:
            shown = {"about": asked.about.to_canonical(), "state": collection.state}
            shown["caution"] = guarantee.caution
            shown |= {"question": asked.question, "promises": promises, "items": list(asked.items)}
            print_json(shown)
        else:
            for key, line in asked.about.rows():
                click.echo(f"{key}: {line}")
            warning = [f"Warning: {guarantee.caution}"] if guarantee.caution else []
            listed = [f"  • {promise}" for promise in promises]
            click.echo("\n".join([asked.question, *warning, *listed]))
            click.echo("\n".join(f"{k:>5}  {item}" for k, item in enumerate(asked.items, 1)))
        if question:
            return
    if collection.state != "open":
        opens = f"opens on {moment(asked.about.opens)}"
        told = opens if collection.state == "upcoming" else "is closed; it takes no more answers"
        raise DataError(f'"{name}" {told}')
    if not asks and not yes:
        raise DataError("standard input holds the answer, so nothing can be asked: say --yes")
    given = _ask(asked) if asks else _read_answer(asked)
    prepared = client.prepare(collection, given, agree=agree)
    if not yes and asked.takes_sets and not prepared.repeated:
        click.echo(collection.mechanism.guarantee().list_sentence(given))
    if not yes:
        click.echo(
            f"This report will be sent: {prepared.report.hex()}"
            + (" (drawn before, whatever you answer now)" if prepared.repeated else "")
        )
        click.confirm("Send it? It cannot be taken back", abort=True)
    _receipt(client.send(prepared), as_json, prepared.repeated)


def _receipt(receipt: Receipt, as_json: bool, repeated: bool) -> None:
    if as_json:
        facts = {"accepted": receipt.accepted, "duplicates": receipt.duplicates}
        sent = {"id": receipt.id.hex(), "report": receipt.report.hex(), "repeated": repeated}
        print_json({**facts, **sent})
        return
    if repeated:
        click.echo("The report that was drawn before was sent, whatever you answered now.")
    click.echo(
        "Counted." if receipt.accepted else "It had been counted before; it is counted once."
    )


class _Waiting:
    """Says once, not at every attempt, that the collector is waited for."""

    said = False

    def __call__(self, why: str) -> None:
        if not self.said:
            click.echo(f"The collector cannot be used yet ({why}); trying for a minute.", err=True)
        self.said = True


def _person() -> bool:
    """Whether someone sits there who can be asked."""
    return sys.stdin.isatty()


def _ask(policy: Policy) -> Any:
    """The answer, typed: a number of the list or a label; for a set one per line."""

    def one(text: str) -> str:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if text not in policy.index and 1 <= number <= policy.m:
            return policy.items[number - 1]
        return policy.items[policy.place(text)]

    if not policy.takes_sets:
        return one(str(click.prompt("Your answer, by number or in words")).strip())
    chosen: set[str] = set()
    ask = "One answer, by number or in words; nothing more to end; - if none applies"
    while text := str(click.prompt(ask, default="", show_default=False)).strip():
        if text == "-":
            return set()
        chosen.add(one(text))
    if not chosen:
        raise DataError("no answer was given; - says that none applies")
    return chosen


def _read_answer(policy: Policy) -> Any:
    """The answer on standard input: one item per line."""
    lines = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    if policy.takes_sets:
        if not lines:
            raise DataError("standard input is empty; a line with - alone says that none applies")
        return set() if lines == ["-"] else set(lines)
    if len(lines) != 1:
        raise DataError(f"this question takes one item, one line, got {len(lines)} lines")
    return lines[0]
