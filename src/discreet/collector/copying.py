"""Copy collections from one store into another, as they are at one moment, while the first may be
in use: a backup, a restore, a move between SQLite and PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from discreet.collector.records import NO_MOVE, Collection
from discreet.collector.sqlite import SqliteDatabase
from discreet.collector.store import Store
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
    return copy_together(source, target, choose_names(source, names), advance)


def copy_together(
    source: Store, target: Store, names: Sequence[str], advance: Advance, for_move: bool = False
) -> dict[str, int]:
    """Copy all of these collections in one transaction, and check what was written. A copy for a
    move is marked as arriving.
    """
    counts = {}
    with source.reading(*names):
        collections = [sound_collection(source, name) for name in names]
        with target.writing(patient=True):
            for collection in collections:
                contents = source.contents(collection)
                move = collection.move._replace(step="arriving") if for_move else NO_MOVE
                target.insert_copy(contents, move, advance)
                counts[collection.name] = contents.tally.n
            for name in counts:
                if damage := target.counts.find_damage(target.catalogue.get(name)):
                    raise DataError(f'the copy of "{name}" does not add up: {damage[0]}')
    return counts


def choose_names(source: Store, names: Sequence[str]) -> list[str]:
    """These names, or those of all collections."""
    readable, unreadable = source.listing()
    if unreadable and not names:
        raise DataError(f"{unreadable[0].reason}; name the collections that are to be copied")
    chosen = list(dict.fromkeys(names)) or [c.name for c in readable]
    if not chosen:
        raise DataError("there are no collections in that store")
    return chosen


def sound_collection(source: Store, name: str) -> Collection:
    """The collection, inside a transaction of the caller; DataError if it does not add up."""
    collection = source.catalogue.get(name)
    if damage := source.counts.find_damage(collection):
        raise DataError(f'"{name}" is damaged and is not copied: {damage[0]}')
    return collection


def backup(
    source: Store,
    path: str | Path,
    names: Sequence[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Copy collections into a new SQLite file, for its owner alone; the file is there whole or not
    at all.
    """
    path = Path(path)
    if path.exists():
        raise DataError(f"{path} exists already; a backup is written to a new file")
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    _remove(aside)
    target = Store(SqliteDatabase(str(aside)))
    try:
        counts = copy(source, target, names, advance)
        target.close()
        os.link(aside, path)  # refuses to replace a file that came meanwhile
    except FileExistsError:
        raise DataError(f"{path} exists already; a backup is written to a new file") from None
    finally:
        target.close()
        _remove(aside)
    return counts


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-lock"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{end}")
