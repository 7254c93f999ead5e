"""Collections copied from one store into another, of one moment, while the first may be in use: a
backup, a restore, a move between SQLite and PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
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
    move: bool = False,
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Copy these collections, or all; returns how many reports each has. Nothing is copied if the
    target has one of them, or if one does not add up. With `move` they are closed where they were,
    in the same moment: what was acknowledged before is in the copy, and nothing comes after.
    """
    listed = list(names) or [collection.name for collection in source.collections()]
    if not listed:
        raise DataError("there are no collections in that store")
    for name in listed:
        if wrong := source.problems(name):
            raise DataError(f'"{name}" is damaged and is not copied: {wrong[0]}')
    with source.writing() if move else source.reading():
        found = [source._must_find(name, lock=move) for name in listed]
        with target.writing():
            counted = {c.name: _copy_one(source, target, c, advance) for c in found}
        for name, n in counted.items():
            if wrong := target.problems(name):
                raise DataError(f'the copy of "{name}" with {n:,} reports is wrong: {wrong[0]}')
        for collection in found if move else ():
            source._set_closed(collection.key)
    return counted


def _copy_one(source: Store, target: Store, collection: Collection, advance: Advance) -> int:
    name, key = collection.name, collection.key
    if target._find(name) is not None:
        raise DataError(
            f'the store that is copied to has a collection "{name}" already; nothing was copied'
        )
    tally = source._whole_tally(collection)
    numbers = sealed(tally.to_bytes())
    target._insert_collection(name, source._document(key), collection.keep, numbers)
    there = target._must_find(name)
    for block in _batches(source._stored(key)):
        ids = [id_ for id_, _ in block]
        reports = [report for _, report in block] if collection.keep == "reports" else None
        target._insert_reports(there.key, ids, reports)
        advance(len(block))
    if (published := source._read_published(key)) is not None:
        target._write_published(there.key, published)
    if not collection.open:
        target._set_closed(there.key)
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
    aside = path.with_name(f"{path.name}.part")
    _remove(aside)
    target = SqliteStore(aside)
    try:
        found = copy(source, target, names, advance=advance)
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
