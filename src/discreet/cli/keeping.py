"""Commands on what a store holds: export, verify, backup, restore, move, close, reopen, delete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from discreet.cli.group import (
    apart,
    as_json,
    main,
    print_json,
    say,
    steps,
    store_option,
    written_as,
)
from discreet.errors import DataError
from discreet.labels import how_many


@main.command(
    epilog="Example:  discreet export health-survey -o tally.json --mechanism mechanism.json"
)
@click.argument("name")
@store_option
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
    from discreet.collector.store import sqlite_path

    place = sqlite_path(store)
    beside = [f"{place}-{end}" for end in ("wal", "shm", "lock")]
    apart([output, mechanism_file, reports_file], [place, *beside])
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
@store_option
@as_json
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Whether what a store holds of the collections NAME (or all) adds up: checksums, ids against
    counts, kept reports counted again; exit code 1 if not.

    What adds up may still be fake: ODD says what honest reports would hardly show (a false alarm at
    most once in 1,000 collections).
    """
    from discreet.fakes import oddities

    with _opened(store) as opened:
        found, unreadable = opened.listing()
        unread = {name: [problem] for name, problem in unreadable if name in (names or [name])}
        listed = names or sorted([*unread, *(collection.name for collection in found)])
        problems = {name: unread.get(name) or opened.problems(name) for name in listed}
        tallies = {name: opened.tally(name) for name in listed if not problems[name]}
        history = {name: opened.history(name) for name in listed if name not in unread}
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
        for event in history.get(name, ()):
            click.echo(f"   {name}: {event.what} {event.time}")
    if not listed and not as_json:
        click.echo("There are no collections in this store.")
    if any(problems.values()):
        sys.exit(1)


@main.command(epilog="Example:  discreet backup -o 2026-11-16.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@store_option
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
@store_option
@as_json
def restore(backup: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Bring the collections NAME (or all) of the file BACKUP into a store that does not have
    them.
    """
    _into(backup, store, names, False, as_json)


@main.command(epilog="Example:  discreet move postgresql://db.example.org/surveys")
@click.argument("target")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@store_option
@as_json
def move(target: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Move the collections NAME (or all) to the store TARGET, a file or postgresql://…

    They are closed in the old store first, so that no report gets lost between the two, and stay
    closed there. If a move is interrupted, give the same command again: it finishes.
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
@store_option
@as_json
def close_(name: str, store: str, as_json: bool) -> None:
    """Close the collection NAME: it takes no more reports, its counts stay."""
    with _opened(store) as opened:
        opened.close_collection(name)
        n = opened.tally(name).n
    facts = {"name": name, "state": "closed", "reports": n}
    say(as_json, facts, f"{name} is closed with {how_many(n)}.")


@main.command(epilog="Example:  discreet reopen health-survey")
@click.argument("name")
@store_option
@as_json
def reopen(name: str, store: str, as_json: bool) -> None:
    """Open the closed collection NAME again, unless its date has come, its final results have been
    published or it was moved to another store.
    """
    with _opened(store) as opened:
        opened.reopen_collection(name)
        n, state = opened.tally(name).n, opened.collection(name).state
    facts = {"name": name, "state": state, "reports": n}
    again = "takes reports again" if state == "open" else "is not closed any more"
    say(as_json, facts, f"{name} {again}; it has {n:,}.")


@main.command(epilog="Example:  discreet delete health-survey --store discreet.sqlite")
@click.argument("name")
@store_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask before it is deleted.")
@as_json
def delete(name: str, store: str, yes: bool, as_json: bool) -> None:
    """Delete the closed collection NAME for good: its ids, its tally, its reports.

    Backups, and what a database server or a disk keeps of its own, are not reached.
    """
    with _opened(store) as opened:
        opened.check_deletable(name)
        n = opened.tally(name).n
        if not yes and not sys.stdin.isatty():
            raise DataError(f'deleting "{name}" cannot be taken back; say --yes if it is meant')
        if not yes:
            asked = f"Delete {name} with {how_many(n)}? It cannot be taken back"
            click.confirm(asked, abort=True, err=True)
        opened.delete_collection(name)
    facts = {"name": name, "state": "deleted", "reports": n}
    say(as_json, facts, f"{name} is deleted with {how_many(n)}.")


@contextmanager
def _opened(store: str) -> Iterator[Any]:
    from discreet.collector.store import open_store

    opened = open_store(store, create=False)
    try:
        yield opened
    finally:
        opened.close()
