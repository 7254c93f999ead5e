"""Collections copied from one store into another, of one moment, while the first may be in use: a
backup, a restore, a move between SQLite and PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from discreet.collector import limits
from discreet.collector.sqlite import SqliteStore
from discreet.collector.store import Collection, Store, sealed
from discreet.errors import DataError

Advance = Callable[[int], None]


def copy(
    source: Store,
    target: Store,
    names: Sequence[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Copy these collections, or all, as they are at one moment; returns how many reports each has.
    Nothing is copied if the target has one of them, or if one does not add up, here or there.
    """
    with target.writing():
        with source.reading():
            found = _listed(source, names)
            counted = {c.name: _copy_one(source, target, c, advance) for c in found}
        for name in counted:
            if wrong := target._problems(target._must_find(name)):
                raise DataError(f'the copy of "{name}" does not add up: {wrong[0]}')
    return counted


def move(
    source: Store,
    target: Store,
    names: Sequence[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Close these collections, or all, where they are, and copy them, open again, into another
    store: what was acknowledged before is in the copy, and nothing comes after. They are never open
    in both. If it fails they are opened again where they were, unless their end was shown or their
    date came meanwhile; if it is killed they stay closed there (`reopen_collection`), and nothing
    is lost.
    """
    with source.reading():
        found = _listed(source, names)
    were_open = [collection.name for collection in found if collection.open]
    closed: dict[str, bytes | None] = {}  # by us, with what had been shown of them
    try:
        for name in were_open:
            with source.reading():
                shown = source._read_published(source._must_find(name).key)
            if source._end(name):
                closed[name] = shown
        if were_open:
            source.tidy()
        counted = copy(source, target, [collection.name for collection in found], advance)
        with target.writing():
            for name in closed:
                key = target._must_find(name).key
                target._set_open(key, True)
                target._note(key, "moved")
    except BaseException:
        with source.writing():
            for name, shown in closed.items():
                there = source._find(name, lock=True)
                if there and not there.open and not _has_ended(source, there, shown):
                    source._set_open(there.key, True)
                    source._note(there.key, "reopened")
        raise
    return counted


def _has_ended(source: Store, collection: Collection, shown: bytes | None) -> bool:
    """Whether its date has come, or more was shown of it meanwhile: then it stays closed."""
    over = collection.mechanism.policy.about.state(datetime.now(UTC)) == "closed"
    return over or source._read_published(collection.key) != shown


def _listed(source: Store, names: Sequence[str]) -> list[Collection]:
    rows = [source._must_find(name) for name in names]
    found = rows or [source._collection(*row) for row in source._rows()]
    if not found:
        raise DataError("there are no collections in that store")
    for collection in found:
        if wrong := source._problems(collection):
            raise DataError(f'"{collection.name}" is damaged and is not copied: {wrong[0]}')
    return found


def _copy_one(source: Store, target: Store, collection: Collection, advance: Advance) -> int:
    name, key = collection.name, collection.key
    tally = source._whole_tally(collection)
    numbers = sealed(tally.to_bytes())
    known = target._find(name) is not None
    if known or not target._insert_collection(
        name, source._document(key), collection.keep, numbers
    ):
        raise DataError(
            f'the store that is copied to has a collection "{name}" already; nothing was copied'
        )
    there = target._must_find(name, lock=True)
    for block in _batches(source._stored(key)):
        ids = [id_ for id_, _ in block]
        reports = [report for _, report in block] if collection.keep == "reports" else None
        target._insert_reports(there.key, ids, reports)
        advance(len(block))
    if (published := source._read_published(key)) is not None:
        target._write_published(there.key, published)
    for event in source._events(key):
        target._insert_event(there.key, event)
    if not collection.open:
        target._set_open(there.key, False)
    return tally.n


def _batches(rows: Iterator[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    while block := list(islice(rows, limits.BLOCK)):
        yield block


def backup(
    source: Store,
    path: str | Path,
    names: Sequence[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Copy collections into a new SQLite file, for its owner alone; it is there whole or not at
    all.
    """
    path = Path(path)
    if path.exists():
        raise DataError(f"{path} exists already; a backup is written to a new file")
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    _remove(aside)
    target = SqliteStore(aside)
    try:
        found = copy(source, target, names, advance)
        target.close()
        os.link(aside, path)  # refuses to replace what came meanwhile
    except FileExistsError:
        raise DataError(f"{path} exists already; a backup is written to a new file") from None
    finally:
        target.close()
        _remove(aside)
    return found


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-lock"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{end}")
