"""Commands for the collections in a store: export, verify, backup, restore, move, close, reopen,
delete.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from discreet.cli.group import (
    as_json,
    emit,
    main,
    print_json,
    refuse_overwrite,
    refuse_wrong_suffix,
    steps,
    store_option,
)
from discreet.errors import DataError
from discreet.policy.labels import how_many

if TYPE_CHECKING:
    from discreet.arrays.survey_tally import SurveyTally
    from discreet.collector.store import Store


@main.command(epilog="Example:  discreet export health-survey -o tally.json --survey survey.json")
@click.argument("name")
@store_option
@click.option(
    "-o",
    "--output",
    required=True,
    help="Write the tally to this file (JSON). If there are several questions or public ones, "
    "write a folder with a file per question and group.",
)
@click.option("--survey", "survey_file", help="Also write the survey to this file.")
@click.option(
    "--reports",
    "reports_file",
    help="Also write the stored reports, if they were kept: to this file (Parquet), or a folder.",
)
@as_json
def export(
    name: str,
    store: str,
    output: str,
    survey_file: str | None,
    reports_file: str | None,
    as_json: bool,
) -> None:
    """Write the tally of the collection NAME to a file.

    This is the same tally that `discreet tally` makes. Only you can read the files.
    """
    from discreet.collector.store import sqlite_path
    from discreet.data.surveys import save_tallies, write_contents

    place = sqlite_path(store)
    beside = [f"{place}-{end}" for end in ("wal", "shm", "lock")]
    refuse_overwrite([output, survey_file, reports_file], [place, *beside])
    refuse_wrong_suffix(".json", "a survey is", survey_file)
    old = os.umask(0o077)
    try:
        with _open(store) as opened, opened.snapshot(name) as (tally, blocks):
            if len(tally.survey.listed) == 1 and not tally.survey.public:
                refuse_wrong_suffix(".json", "a tally is", output)
                refuse_wrong_suffix(".parquet", "reports are", reports_file)
            if reports_file:
                write_contents(reports_file, tally.survey, blocks)
        save_tallies(tally, output)
        if survey_file:
            tally.survey.save(survey_file)
    finally:
        os.umask(old)
    if as_json:
        print_json({"name": name, "n": tally.n, "fingerprint": tally.survey.fingerprint})
    else:
        click.echo(f"Wrote {output}: {how_many(tally.n)}")


@main.command(epilog="Example:  discreet verify --store discreet.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@store_option
@as_json
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Check that the collections NAME (or all) are consistent.

    Compares checksums, and ids with counts, and counts kept reports again. The exit code is 1 if
    something is wrong.

    Consistent reports can still be fake. ODD marks counts that probably did not come from honest
    devices (a false alarm in at most one of 1,000 collections).
    """
    with _open(store) as opened:
        collections, unreadable = opened.listing()
        unread = {name: [problem] for name, problem in unreadable if name in (names or [name])}
        listed = names or sorted([*unread, *(collection.name for collection in collections)])
        problems = {name: unread.get(name) or opened.find_damage(name) for name in listed}
        tallies = {name: opened.tally(name) for name in listed if not problems[name]}
        history = {name: opened.history(name) for name in listed if name not in unread}
    counted = {name: tally.n for name, tally in tallies.items()}
    odd = {name: _odd(tally) for name, tally in tallies.items()}
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


def _odd(tally: SurveyTally) -> list[str]:
    """What honest devices would hardly send, question by question."""
    from discreet.estimates.fakes import oddities

    several = len(tally.survey.listed) > 1
    return [
        (f"{question.name}: " if several else "") + sentence
        for k, question in enumerate(tally.survey.listed)
        for sentence in oddities(tally.question(k))
    ]


@main.command(epilog="Example:  discreet backup -o 2026-11-16.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@store_option
@click.option("-o", "--output", required=True, help="Write the backup to this new SQLite file.")
@as_json
def backup(names: tuple[str, ...], store: str, output: str, as_json: bool) -> None:
    """Copy the collections NAME (or all), as they are at one moment.

    Reports may keep arriving. Do not copy the file of a store in use: you would lose acknowledged
    reports. The backup is a store too, without any trace of the order in which reports came.
    """
    from discreet.collector import copying

    with _open(store) as opened, steps("copying", _count_reports(opened, names)) as advance:
        counts = copying.backup(opened, output, names, advance)
    _say_copied(counts, output, as_json)


@main.command(epilog="Example:  discreet restore 2026-11-16.sqlite --store discreet.sqlite")
@click.argument("backup")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@store_option
@as_json
def restore(backup: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Copy the collections NAME (or all) from the file BACKUP.

    The store must not have them yet.
    """
    _copy(backup, store, names, False, as_json)


@main.command(epilog="Example:  discreet move postgresql://db.example.org/surveys")
@click.argument("target")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@store_option
@as_json
def move(target: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Move the collections NAME (or all) to the store TARGET.

    TARGET is a file or postgresql://… The old store closes them first, so that no report is lost on
    the way, and keeps them closed. If a move is interrupted, run the same command again to finish
    it.
    """
    _copy(store, target, names, True, as_json)


def _copy(source: str, target: str, names: tuple[str, ...], move: bool, as_json: bool) -> None:
    from discreet.collector import copying, moving
    from discreet.collector.store import open_store, sqlite_path, without_password

    if source == target or os.path.realpath(sqlite_path(source)) == os.path.realpath(
        sqlite_path(target)
    ):
        raise DataError(f"{without_password(source)} and the store to copy to are the same")
    with _open(source) as old:
        total, new = _count_reports(old, names), open_store(target)
        try:
            with steps("copying", total) as advance:
                counts = (moving.move if move else copying.copy)(old, new, names, advance)
        finally:
            new.close()
    _say_copied(counts, target, as_json)


def _count_reports(store: Store, names: Iterable[str]) -> int:
    """The number of reports in these collections, or in all."""
    listed = names or [collection.name for collection in store.collections()]
    return sum(store.tally(name).n for name in listed)


def _say_copied(counts: Mapping[str, int], where: str, as_json: bool) -> None:
    from discreet.collector.store import without_password

    if as_json:
        print_json({"reports": counts})
        return
    for name, n in counts.items():
        click.echo(f"{name}: {how_many(n)} in {without_password(where)}, verified.")


@main.command("close", epilog="Example:  discreet close health-survey")
@click.argument("name")
@store_option
@as_json
def close_(name: str, store: str, as_json: bool) -> None:
    """Close the collection NAME. It takes no more reports, and keeps its counts."""
    with _open(store) as opened:
        opened.close_collection(name)
        n = opened.tally(name).n
    facts = {"name": name, "state": "closed", "reports": n}
    emit(as_json, facts, f"{name} is closed with {how_many(n)}.")


@main.command(epilog="Example:  discreet reopen health-survey")
@click.argument("name")
@store_option
@as_json
def reopen(name: str, store: str, as_json: bool) -> None:
    """Open the closed collection NAME again.

    This is refused if its closing date has passed, its final results have been published, or it was
    moved to another store.
    """
    with _open(store) as opened:
        opened.reopen_collection(name)
        n, state = opened.tally(name).n, opened.collection(name).state
    facts = {"name": name, "state": state, "reports": n}
    again = "takes reports again" if state == "open" else "is no longer closed"
    emit(as_json, facts, f"{name} {again}; it has {n:,}.")


@main.command(epilog="Example:  discreet delete health-survey --store discreet.sqlite")
@click.argument("name")
@store_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask before deleting.")
@as_json
def delete(name: str, store: str, yes: bool, as_json: bool) -> None:
    """Delete the closed collection NAME for good.

    Deletes its ids, its tally and its reports. This does not reach backups, or copies that a
    database server or a disk keeps.
    """
    with _open(store) as opened:
        opened.check_deletable(name)
        n = opened.tally(name).n
        if not yes and not sys.stdin.isatty():
            raise DataError(f'deleting "{name}" cannot be taken back; say --yes if you mean it')
        if not yes:
            question = f"Delete {name} with {how_many(n)}? It cannot be taken back"
            click.confirm(question, abort=True, err=True)
        opened.delete_collection(name)
    facts = {"name": name, "state": "deleted", "reports": n}
    emit(as_json, facts, f"{name} is deleted with {how_many(n)}.")


@contextmanager
def _open(store: str) -> Iterator[Store]:
    from discreet.collector.store import open_store

    opened = open_store(store, create=False)
    try:
        yield opened
    finally:
        opened.close()
