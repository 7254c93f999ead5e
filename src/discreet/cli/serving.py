"""Commands of who runs a collector: serve, export, verify, backup, restore, move, close, reopen,
delete, token.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from discreet.about import moment
from discreet.cli.group import (
    apart,
    as_json,
    design_options,
    load_prior,
    main,
    padding_option,
    print_json,
    steps,
    wishes,
    written_as,
)
from discreet.errors import DataError
from discreet.labels import how_many
from discreet.wire import page_of

_store = click.option(
    "--store",
    envvar="DISCREET_STORE",
    default="discreet.sqlite",
    show_default=True,
    help="A file (SQLite) or postgresql://…",
)


@main.command(epilog="Example:  discreet serve survey.toml --port 8000")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@_store
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
) -> None:
    """Collect reports for every FILE, a mechanism or a policy, until Ctrl-C. Needs the extra
    "serve".
    """
    import tempfile
    import threading

    from discreet import rehearsal
    from discreet.designs import from_file
    from discreet.errors import MissingExtra

    try:
        from discreet.collector import address, server, tokens
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
            aside = tempfile.TemporaryDirectory(prefix="discreet-rehearsal-")
            store = f"{context.with_resource(aside)}/rehearsal.sqlite"
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
    sock = server.listen(host, port)
    shown = "127.0.0.1" if address.is_any(host) else f"[{host}]" if ":" in host else host
    here = f"http://{shown}:{sock.getsockname()[1]}"
    base = known or here
    for mechanism in mechanisms:
        link = base + page_of(mechanism.policy.name)
        click.echo(
            f"{mechanism.policy.name}\n  invitation  {link}#{mechanism.fingerprint}\n  results    "
            f" {link}/results"
        )
        for key in ("opens", "closes"):
            if time := getattr(mechanism.policy.about, key):
                click.echo(f"  {key:<10}  {moment(time)}")
        if states[mechanism.policy.name] == "closed":
            click.echo("  It is closed: nobody can answer it any more.")
    if not open_results:
        click.echo(f"The organiser's token is in {token}.")
    if known:
        click.echo(f"Listening on {here}.")
    else:
        click.echo("These links are for this machine; --public-url makes ones that you can send.")
    if rehearse:
        click.echo(f"A rehearsal: {rehearse:,} simulated people arrive; nothing here is real.")
    click.echo("Collecting; stop with Ctrl-C.")
    sys.stdout.flush()
    for mechanism in mechanisms if rehearse else ():
        given = rehearsal.answers(mechanism.policy, rehearse or 0)
        people = sock.getsockname()[:2], mechanism, given
        threading.Thread(target=rehearsal.arrive, args=people, daemon=True).start()
    server.run(store, sock, workers, open_results, known)


@main.command(
    epilog="Example:  discreet export health-survey -o tally.json --mechanism mechanism.json"
)
@click.argument("name")
@_store
@click.option("-o", "--output", required=True, help="Write the tally here (JSON).")
@click.option("--mechanism", "mechanism_file", help="Also write the mechanism here.")
@click.option(
    "--reports",
    "reports_file",
    help="Also write the stored reports here (Parquet), where they were kept.",
)
@as_json
def export(
    name: str,
    store: str,
    output: str,
    mechanism_file: str | None,
    reports_file: str | None,
    as_json: bool,
) -> None:
    """The tally of the collection NAME, as `discreet tally` would have made it. The files are for
    you alone to read.
    """
    apart([output, mechanism_file, reports_file], [store])
    written_as(".json", "a tally is", output)
    written_as(".json", "a mechanism is", mechanism_file)
    written_as(".parquet", "reports are", reports_file)
    old = os.umask(0o077)
    try:
        with _opened(store) as opened, opened.snapshot(name) as (tally, blocks):
            if reports_file:
                from discreet.reports import write_reports

                write_reports(reports_file, tally.mechanism, blocks)
        tally.save(output)
        if mechanism_file:
            tally.mechanism.save(mechanism_file)
    finally:
        os.umask(old)
    if as_json:
        print_json({"name": name, "n": tally.n, "fingerprint": tally.mechanism.fingerprint})
    else:
        click.echo(f"Wrote {output}: {how_many(tally.n)}")


@main.command(epilog="Example:  discreet verify --store discreet.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@as_json
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Whether what a store holds of the collections NAME (or all) adds up: checksums, ids against
    counts, kept reports counted again; exit code 1 if not.

    What adds up may still be fake: ODD says what honest reports would hardly show (a false alarm at
    most once in 1,000 collections).
    """
    from discreet.fakes import oddities

    with _opened(store) as opened:
        listed = names or [collection.name for collection in opened.collections()]
        problems = {name: opened.problems(name) for name in listed}
        tallies = {name: opened.tally(name) for name in listed if not problems[name]}
        history = {name: opened.history(name) for name in listed}
    counted = {name: tally.n for name, tally in tallies.items()}
    odd = {name: oddities(tally) for name, tally in tallies.items()}
    if as_json:
        happened = {name: [e._asdict() for e in events] for name, events in history.items()}
        print_json({"problems": problems, "reports": counted, "odd": odd, "history": happened})
    for name, wrong in problems.items() if not as_json else ():
        for problem in wrong:
            click.echo(f"FAILED {name}: {problem}")
        if not wrong:
            click.echo(f"OK {name}: {how_many(counted[name])}")
            for sentence in odd[name]:
                click.echo(f"ODD {name}: {sentence}")
        for event in history[name]:
            click.echo(f"   {name}: {event.what} {event.time}")
    if not listed and not as_json:
        click.echo("There are no collections in this store.")
    if any(problems.values()):
        sys.exit(1)


@main.command(epilog="Example:  discreet backup -o 2026-11-16.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@click.option("-o", "--output", required=True, help="Write the backup here, a new SQLite file.")
@as_json
def backup(names: tuple[str, ...], store: str, output: str, as_json: bool) -> None:
    """Copy the collections NAME (or all), as they are at one moment, while reports may arrive.

    A plain copy of a store in use loses reports that were acknowledged. The backup is a store
    itself, without any trace of the order in which reports came.
    """
    from discreet.collector import copying

    with _opened(store) as opened, steps("copying", _many(opened, names)) as advance:
        found = copying.backup(opened, output, names, advance)
    _say_copied(found, output, as_json)


@main.command(epilog="Example:  discreet restore 2026-11-16.sqlite --store discreet.sqlite")
@click.argument("backup")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@as_json
def restore(backup: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Bring the collections NAME (or all) of the file BACKUP into a store that does not have
    them.
    """
    _into(backup, store, names, False, as_json)


@main.command(epilog="Example:  discreet move postgresql://db.example.org/surveys")
@click.argument("target")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@as_json
def move(target: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Move the collections NAME (or all) to the store TARGET, a file or postgresql://…

    Where they were they are closed first, so that no report gets lost between the two.
    """
    _into(store, target, names, True, as_json)


def _into(source: str, target: str, names: tuple[str, ...], move: bool, as_json: bool) -> None:
    from discreet.collector import copying
    from discreet.collector.store import open_store, sqlite_path, without_password

    if source == target or os.path.realpath(sqlite_path(source)) == os.path.realpath(
        sqlite_path(target)
    ):
        raise DataError(f"{without_password(source)} and the store to copy to are the same")
    with _opened(source) as old:
        total, new = _many(old, names), open_store(target)
        try:
            with steps("copying", total) as advance:
                found = (copying.move if move else copying.copy)(old, new, names, advance)
        finally:
            new.close()
    _say_copied(found, target, as_json)


def _many(store: Any, names: Iterable[str]) -> int:
    """The reports of these collections, or of all."""
    listed = names or [collection.name for collection in store.collections()]
    return sum(store.tally(name).n for name in listed)


def _say_copied(found: dict[str, int], where: str, as_json: bool) -> None:
    from discreet.collector.store import without_password

    if as_json:
        print_json({"reports": found})
        return
    for name, n in found.items():
        click.echo(f"{name}: {how_many(n)} in {without_password(where)}, and it adds up.")


@main.command("close", epilog="Example:  discreet close health-survey")
@click.argument("name")
@_store
def close_(name: str, store: str) -> None:
    """Close the collection NAME: it takes no more reports, its counts stay."""
    with _opened(store) as opened:
        opened.close_collection(name)
        click.echo(f"{name} is closed with {how_many(opened.tally(name).n)}.")


@main.command(epilog="Example:  discreet reopen health-survey")
@click.argument("name")
@_store
def reopen(name: str, store: str) -> None:
    """Open the closed collection NAME again, as long as its end was shown to nobody."""
    with _opened(store) as opened:
        opened.reopen_collection(name)
        click.echo(f"{name} takes reports again; it has {opened.tally(name).n:,}.")


@main.command(epilog="Example:  discreet delete health-survey --store discreet.sqlite")
@click.argument("name")
@_store
@click.option("--yes", "-y", is_flag=True, help="Do not ask before it is deleted.")
def delete(name: str, store: str, yes: bool) -> None:
    """Delete the closed collection NAME for good: its ids, its tally, its reports.

    Backups, and what a database server or a disk keeps of its own, are not reached.
    """
    with _opened(store) as opened:
        opened.check_deletable(name)
        n = opened.tally(name).n
        if not yes and not sys.stdin.isatty():
            raise DataError(f'deleting "{name}" cannot be taken back; say --yes if it is meant')
        if not yes:
            click.confirm(f"Delete {name} with {how_many(n)}? It cannot be taken back", abort=True)
        opened.delete_collection(name)
    click.echo(f"{name} is deleted with {how_many(n)}.")


@main.command(epilog="Example:  discreet token --new")
@click.option("--new", is_flag=True, help="Replace it; a collector that runs takes the new one.")
@click.option(
    "--token-file", help="Where it is; by default DISCREET_TOKEN or discreet.token, as for serve."
)
def token(new: bool, token_file: str | None) -> None:
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
    click.echo(f"The organiser's {'new ' * new}token is in {where}.")


@contextmanager
def _opened(store: str) -> Iterator[Any]:
    from discreet.collector.store import open_store

    opened = open_store(store, create=False)
    try:
        yield opened
    finally:
        opened.close()
