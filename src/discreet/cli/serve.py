"""Commands for running a collector: serve, token."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from discreet.cli.group import (
    as_json,
    design_options,
    emit,
    given_options,
    load_prior,
    main,
    padding_option,
    print_json,
    store_option,
)
from discreet.device.wire import page_path
from discreet.errors import DataError
from discreet.survey.about import moment

if TYPE_CHECKING:
    from discreet.survey import Survey


class CollectionFacts(TypedDict):
    """A collection that is served: its links and times."""

    name: str
    state: str
    invitation: str
    results: str
    opens: str | None
    closes: str | None


class ServerFacts(TypedDict):
    """What `serve` announces."""

    listening: str
    desk: str
    token_file: str | None
    open_results: bool
    frame_ancestors: list[str]
    simulated_people: int
    certificate: str | None
    collections: list[CollectionFacts]


@main.command(epilog="Example:  discreet serve survey.toml --port 8000")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Put TLS in front, unless it is this machine's own.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--public-url",
    envvar="DISCREET_PUBLIC_URL",
    help="The address that people open, such as https://survey.example.org. Invitations use it, "
    "and requests under other names are redirected to it.",
)
@click.option(
    "--lan",
    is_flag=True,
    help="For trying out: let phones of your network answer, over TLS with a certificate that this "
    "machine makes. Their browsers will warn.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="The number of processes.",
)
@click.option(
    "--keep-reports",
    is_flag=True,
    help="Store every report, not just the counts.",
)
@click.option(
    "--open-results",
    is_flag=True,
    help="Let anyone see the estimates, without the organiser's token.",
)
@click.option(
    "--frame-ancestors",
    multiple=True,
    metavar="ORIGIN",
    help="Let this website (https://www.example.org) show the participant's page in a frame. "
    "Repeatable. The website can then cover the page and sees who takes part; a link does not have "
    "these dangers (docs/organiser.md).  [default: none]",
)
@click.option(
    "--rehearse",
    type=click.IntRange(1, 1_000_000),
    metavar="PEOPLE",
    help="Try it out: this many simulated people answer a copy of the survey, marked as a "
    "rehearsal. Its store is deleted at the end, unless you name one with --store.",
)
@click.option(
    "--token-file",
    help="The file of the organiser's token, created if it is missing.  [default: DISCREET_TOKEN "
    "or discreet.token]",
)
@padding_option
@design_options
@as_json
def serve(
    files: tuple[str, ...],
    store: str,
    host: str,
    port: int,
    public_url: str | None,
    lan: bool,
    workers: int,
    keep_reports: bool,
    open_results: bool,
    frame_ancestors: tuple[str, ...],
    rehearse: int | None,
    token_file: str | None,
    model: str | None,
    prior: str | None,
    goal: str | None,
    encoding: str | None,
    padding: int | None,
    as_json: bool,
) -> None:
    """Collect reports for each FILE, a survey (as you wrote it, or designed).

    Without FILE, you write your surveys at the desk, a page that only the token opens. Surveys that
    the store has already go on. Runs until Ctrl-C. Needs the extra "serve".
    """
    import threading

    from discreet.collector import lan as lan_
    from discreet.collector import limits, rehearsal, scratch, server, tokens
    from discreet.collector.store import checked_name
    from discreet.designs.surveys import survey_from_file
    from discreet.show import address

    if rehearse and not files:
        raise DataError("a rehearsal needs a survey file; without one, rehearse at the desk")
    if lan and (public_url or host != "127.0.0.1"):
        raise DataError("--lan takes this machine's own address; leave out --host and --public-url")
    own, certificate = lan_.own_address() if lan else "", None
    public = address.public(public_url) if public_url else ""
    framing = address.framing(frame_ancestors)
    shares = load_prior(prior) if prior else None
    options = given_options(model, shares, encoding, padding, goal)
    surveys = [survey_from_file(path, options) for path in files]
    temporary = False
    if rehearse:
        surveys = [rehearsal.rehearse(survey) for survey in surveys]
        context = click.get_current_context()
        source = context.get_parameter_source("store")
        if source is not click.core.ParameterSource.COMMANDLINE:  # keep real stores clean
            aside = context.with_resource(scratch.folder("rehearsal"))
            store, temporary = f"{aside}/rehearsal.sqlite", True
    for survey in surveys:
        checked_name(survey.name)
    token = tokens.prepare(token_file)
    states = _create(store, surveys, "reports" if keep_reports else "counts")
    sock = server.listen("0.0.0.0" if lan else host, port, limits.LISTEN_SECONDS)
    if lan:
        public = f"https://{own}:{sock.getsockname()[1]}"
        aside = click.get_current_context().with_resource(scratch.folder("lan"))
        certificate = lan_.make_certificate(str(aside), own)
    shown = "127.0.0.1" if address.is_any(host) else f"[{host}]" if ":" in host else host
    here = public if lan else f"http://{shown}:{sock.getsockname()[1]}"
    facts: ServerFacts = {
        "listening": here,
        "desk": f"{public or here}/desk",
        "token_file": token.file,
        "open_results": open_results,
        "frame_ancestors": list(framing),
        "simulated_people": rehearse or 0,
        "certificate": certificate.sha256 if certificate else None,
        "collections": [
            _describe(survey, states[survey.name], public or here) for survey in surveys
        ],
    }
    if as_json:
        print_json(facts)
    else:
        _announce(facts, public != "", token)
    sys.stdout.flush()
    for survey in surveys if rehearse else ():
        people = sock.getsockname()[:2], survey, rehearse or 0, certificate
        threading.Thread(target=rehearsal.arrive, args=people, daemon=True).start()
    server.run(store, sock, workers, open_results, public, certificate, framing, temporary)


def _create(store: str, surveys: Iterable[Survey], keep: str) -> dict[str, str]:
    """Create the collections that the store does not have yet; their states by name."""
    from discreet.collector.store import open_store

    opened, states = open_store(store), {}
    try:
        for survey in surveys:
            name = survey.name
            states[name] = opened.create(survey, keep).state
            if problems := opened.find_damage(name, recount=False):
                raise DataError(
                    f'the collection "{name}" is damaged: {problems[0]}; see discreet verify'
                )
    finally:
        opened.close()
    return states


def _describe(survey: Survey, state: str, base: str) -> CollectionFacts:
    link = base + page_path(survey.name)
    return {
        "name": survey.name,
        "state": state,
        "invitation": f"{link}#{survey.fingerprint}",
        "results": f"{link}/results",
        "opens": survey.about.opens or None,
        "closes": survey.about.closes or None,
    }


def _announce(facts: ServerFacts, public: bool, token: object) -> None:
    for collection in facts["collections"]:
        click.echo(collection["name"])
        click.echo(f"  invitation  {collection['invitation']}")
        click.echo(f"  results     {collection['results']}")
        if collection["opens"]:
            click.echo(f"  opens       {moment(collection['opens'])}")
        if collection["closes"]:
            click.echo(f"  closes      {moment(collection['closes'])}")
        if collection["state"] == "closed":
            click.echo("  It is closed: nobody can answer it any more.")
    if not facts["collections"]:
        click.echo("No survey is named: write one at the desk. Surveys in the store go on.")
    click.echo(f"The organiser's desk is at {facts['desk']}")
    click.echo(f"The organiser's token is in {token}.")
    if facts["certificate"]:
        _announce_lan(facts)
    elif public:
        click.echo(f"Listening on {facts['listening']}.")
    else:
        click.echo("These links work on this machine; --public-url makes links that you can send.")
    if sites := facts["frame_ancestors"]:
        click.echo(
            f"In a frame at {', '.join(sites)}: that website can cover the page, and it sees who "
            "takes part (docs/organiser.md)."
        )
    if people := facts["simulated_people"]:
        click.echo(f"A rehearsal: {people:,} simulated people answer; nothing here is real.")
    click.echo("Collecting; stop with Ctrl-C.")


def _announce_lan(facts: ServerFacts) -> None:
    from discreet.show import invitations

    for collection in facts["collections"]:
        click.echo(invitations.terminal(collection["invitation"]))
    click.echo(
        "For trying out: phones in this network open these links. Their browsers warn that they do "
        "not know the certificate, because this machine has just made it. Its SHA-256:\n"
        f"  {facts['certificate']}\n"
        "A real survey needs a real certificate: docs/deploying.md."
    )


@main.command(epilog="Example:  discreet token --new")
@click.option("--new", is_flag=True, help="Replace it. A running collector takes the new one.")
@click.option(
    "--add",
    is_flag=True,
    help="Make a new one and keep the old one, too, until --retire: for several organisers.",
)
@click.option("--retire", is_flag=True, help="End the older of two tokens.")
@click.option(
    "--token-file",
    help="The file of the token, as for serve.  [default: DISCREET_TOKEN or discreet.token]",
)
@as_json
def token(new: bool, add: bool, retire: bool, token_file: str | None, as_json: bool) -> None:
    """Say where the organiser's token is, or replace it.

    After you replace it, the old token stops working. With --add, both work.
    """
    from discreet.collector import tokens

    if new + add + retire > 1:
        raise DataError("--new, --add and --retire are three things; choose one")
    if os.environ.get("DISCREET_TOKEN") and not token_file:
        if new or add or retire:
            raise DataError(
                "the token is in the environment (DISCREET_TOKEN); change it there and start the "
                "collector again"
            )
        where = tokens.prepare(None)
    else:
        path = token_file or tokens.file()
        if new:
            tokens.renew(Path(path))
        if add:
            tokens.add(Path(path))
        if retire and not tokens.retire(Path(path)):
            raise DataError(f"there is only one token in {path}; --new replaces it")
        where = tokens.prepare(path)
    sentence = f"The organiser's {'new ' * (new or add)}token is in {where}."
    if add:
        sentence += " The old token works, too, until you run discreet token --retire."
    if retire:
        sentence += " The older token has stopped working."
    facts = {"token_file": where.file, "new": new or add, "tokens": len(tokens.read_all())}
    emit(as_json, facts, sentence)
