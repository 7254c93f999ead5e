"""Commands of who runs a collector: serve, token."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.about import moment
from discreet.cli.group import (
    as_json,
    design_options,
    load_prior,
    main,
    padding_option,
    print_json,
    say,
    store_option,
    wishes,
)
from discreet.errors import DataError
from discreet.wire import page_of

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism


@main.command(epilog="Example:  discreet serve survey.toml --port 8000")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; put TLS in front of anything but loopback.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--public-url",
    envvar="DISCREET_PUBLIC_URL",
    help="The address that people open, such as https://survey.example.org; invitations have it, "
    "and pages asked for under another name lead there.",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes."
)
@click.option(
    "--keep",
    type=click.Choice(["counts", "reports"]),
    default="counts",
    show_default=True,
    help="What is stored.",
)
@click.option(
    "--open-results",
    is_flag=True,
    help="Anyone may see the estimates; otherwise the organiser's token is needed.",
)
@click.option(
    "--rehearse",
    type=click.IntRange(1, 1_000_000),
    metavar="PEOPLE",
    help="Try it out: so many simulated people answer a copy of the survey that is marked as a "
    "rehearsal, in a store of its own that is gone at the end (unless --store names one).",
)
@click.option(
    "--token-file",
    help="The organiser's token; by default DISCREET_TOKEN or discreet.token, made if need be.",
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
    workers: int,
    keep: str,
    open_results: bool,
    rehearse: int | None,
    token_file: str | None,
    model: str | None,
    prior: str | None,
    encoding: str | None,
    padding: int | None,
    as_json: bool,
) -> None:
    """Collect reports for every FILE, a mechanism or a policy, until Ctrl-C. Needs the extra
    "serve".
    """
    import threading

    from discreet import rehearsal
    from discreet.designs import from_file
    from discreet.errors import MissingExtra

    try:
        from discreet.collector import address, limits, scratch, server, tokens
        from discreet.collector.store import checked_name, open_store
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("discreet"):
            raise
        raise MissingExtra("the collector", "serve") from None
    known = address.public(public_url) if public_url else ""
    asked = wishes(model, prior and load_prior(prior), encoding, padding)
    mechanisms = [from_file(path, **asked) for path in files]
    if rehearse:
        mechanisms = [rehearsal.of(mechanism) for mechanism in mechanisms]
        context = click.get_current_context()
        source = context.get_parameter_source("store")
        if source is not click.core.ParameterSource.COMMANDLINE:  # no trace where real people are
            aside = context.with_resource(scratch.folder("rehearsal"))
            store = f"{aside}/rehearsal.sqlite"
    for mechanism in mechanisms:
        checked_name(mechanism.policy.name)
    token = tokens.prepare(token_file)
    opened, states = open_store(store), {}
    try:
        for mechanism in mechanisms:
            states[mechanism.policy.name] = opened.create(mechanism, keep).state
            wrong = opened.problems(mechanism.policy.name, recount=False)
            if wrong:
                raise DataError(
                    f'the collection "{mechanism.policy.name}" is damaged: {wrong[0]}; see '
                    "discreet verify"
                )
    finally:
        opened.close()
    sock = server.listen(host, port, limits.LISTEN_SECONDS)
    shown = "127.0.0.1" if address.is_any(host) else f"[{host}]" if ":" in host else host
    here = f"http://{shown}:{sock.getsockname()[1]}"
    facts: dict[str, Any] = {"listening": here, "token_file": token.file}
    facts |= {"open_results": open_results, "simulated_people": rehearse or 0}
    facts["collections"] = [
        _facts_of(mechanism, states[mechanism.policy.name], known or here)
        for mechanism in mechanisms
    ]
    if as_json:
        print_json(facts)
    else:
        _announce(facts, known != "", token)
    sys.stdout.flush()
    for mechanism in mechanisms if rehearse else ():
        given = rehearsal.answers(mechanism.policy, rehearse or 0)
        people = sock.getsockname()[:2], mechanism, given
        threading.Thread(target=rehearsal.arrive, args=people, daemon=True).start()
    server.run(store, sock, workers, open_results, known)


def _facts_of(mechanism: Mechanism, state: str, base: str) -> dict[str, Any]:
    """A collection that is served: its links and times."""
    policy, link = mechanism.policy, base + page_of(mechanism.policy.name)
    links = {"invitation": f"{link}#{mechanism.fingerprint}", "results": f"{link}/results"}
    times = {"opens": policy.about.opens or None, "closes": policy.about.closes or None}
    return {"name": policy.name, "state": state, **links, **times}


def _announce(facts: dict[str, Any], public: bool, token: object) -> None:
    for one in facts["collections"]:
        click.echo(one["name"])
        for key in ("invitation", "results"):
            click.echo(f"  {key:<10}  {one[key]}")
        for key in ("opens", "closes"):
            if one[key]:
                click.echo(f"  {key:<10}  {moment(one[key])}")
        if one["state"] == "closed":
            click.echo("  It is closed: nobody can answer it any more.")
    if not facts["open_results"]:
        click.echo(f"The organiser's token is in {token}.")
    if public:
        click.echo(f"Listening on {facts['listening']}.")
    else:
        click.echo("These links are for this machine; --public-url makes ones that you can send.")
    if many := facts["simulated_people"]:
        click.echo(f"A rehearsal: {many:,} simulated people arrive; nothing here is real.")
    click.echo("Collecting; stop with Ctrl-C.")


@main.command(epilog="Example:  discreet token --new")
@click.option("--new", is_flag=True, help="Replace it; a collector that runs takes the new one.")
@click.option(
    "--token-file", help="Where it is; by default DISCREET_TOKEN or discreet.token, as for serve."
)
@as_json
def token(new: bool, token_file: str | None, as_json: bool) -> None:
    """Say where the organiser's token is, or replace it: the old one opens nothing more."""
    from discreet.collector import tokens

    if os.environ.get("DISCREET_TOKEN") and not token_file:
        if new:
            raise DataError(
                "the token is in the environment (DISCREET_TOKEN); change it there and start the "
                "collector again"
            )
        where = tokens.prepare(None)
    else:
        path = token_file or tokens.file()
        if new:
            tokens.renew(Path(path))
        where = tokens.prepare(path)
    sentence = f"The organiser's {'new ' * new}token is in {where}."
    say(as_json, {"token_file": where.file, "new": new}, sentence)
