"""Copy collections from one store into another, as they are at one moment, while the first may be
in use: a backup, a restore, a move between SQLite and PostgreSQL.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from discreet.collector import limits
from discreet.collector.sqlite import SqliteStore
from discreet.collector.store import Collection, Store, StoreDown, sealed
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
    return _copy(source, target, _listed(source, names), advance)


def _copy(
    source: Store, target: Store, names: Sequence[str], advance: Advance, move: str = ""
) -> dict[str, int]:
    """Copy, for a move if it has an id."""
    with source.reading(*names):
        found = [_checked(source, name) for name in names]
        with target.writing(patient=True):
            counted = {c.name: _copy_one(source, target, c, advance, move) for c in found}
            for name in counted:
                if wrong := target._problems(target._must_find(name)):
                    raise DataError(f'the copy of "{name}" does not add up: {wrong[0]}')
    return counted


# ---- moving --------------------------------------------------------------------------------------
#
# A move writes down how far it is, so that it can be cut off anywhere and repeated. `moving` of a
# collection holds the step, whether the collection is to be open in the end, and the move's id:
#
#   1. source: closed,             "leaving open ID"  (or "leaving closed ID")
#   2. target: a copy, closed,     "arriving open ID"
#   3. source:                     "moved open ID"    from here on it is never opened again
#   4. target: open,               ""
#
# The target is opened only after step 3 is durable, so a collection is never open in both.


def move(
    source: Store,
    target: Store,
    names: Sequence[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Close these collections, or all, where they are, and copy them, open again, into another
    store: every report that was acknowledged before is in the copy, and none comes after. They are
    never open in both.

    If it fails, they are opened again where they were, unless their final results were published or
    their date came meanwhile. If it is killed, or cut off after that was decided, move again: the
    next move finishes it.
    """
    names, this = _listed(source, names), secrets.token_hex(8)
    with source.reading(*names):
        found = [_checked(source, name) for name in names]
    staying = [c.name for c in found if not c.moving.startswith("moved")]
    with target.reading():
        for collection in found:
            _check_moved_here(collection, target)
    closed: dict[str, bytes | None] = {}  # by us, with what had been published of them
    try:
        if staying:
            _leave(source, staying, this, closed)
            _copy(source, target, staying, advance, this)
            _mark_moved(source, staying, this)
    except BaseException:
        _stay(source, staying, this, closed)
        raise
    try:
        _arrive(source, target, names)
    except StoreDown as error:
        raise StoreDown(
            f"everything is copied, but it is not open there yet: {error}; move again to finish"
        ) from None
    return {name: target.tally(name).n for name in names}


def _check_moved_here(collection: Collection, target: Store) -> None:
    """DataError if an earlier move has brought it to another store than this one."""
    if not collection.moving.startswith("moved"):
        return
    there = target._find(collection.name)
    if there is None or there.mechanism != collection.mechanism or not _fits(collection, there):
        raise DataError(f'"{collection.name}" was moved to another store already')


def _fits(here: Collection, there: Collection) -> bool:
    """Whether the same move has left the one and brought the other."""
    return not there.moving.startswith("arriving") or _move_of(there) == _move_of(here)


def _move_of(collection: Collection) -> list[str]:
    """Whether it opens in the end, and the move's id."""
    return collection.moving.split()[1:]


def _leave(source: Store, names: Sequence[str], this: str, closed: dict[str, bytes | None]) -> None:
    """Step 1. One that an interrupted move has closed is open in the end, too."""
    for name in names:
        with source.reading(name):
            shown = source._read_published(source._must_find(name).key)
        if source._end(name, this):
            closed[name] = shown
    if closed:
        source.tidy(*(source.collection(name).key for name in closed))


def _stay(source: Store, names: Sequence[str], this: str, closed: dict[str, bytes | None]) -> None:
    """Take step 1 back where it was ours, unless step 3 is done."""
    with source.writing():
        for name in sorted(names):
            there = source._find(name, lock=True)
            if there is None or not there.moving.startswith("leaving") or there.open:
                continue
            if _move_of(there)[1:] != [this] or (name not in closed and "open" in there.moving):
                continue
            source._set_moving(there.key, "")
            if name in closed and not _has_ended(source, there, closed[name]):
                source._set_open(there.key, True)
                source._note(there.key, "reopened")


def _mark_moved(source: Store, names: Sequence[str], this: str) -> None:
    """Step 3."""
    with source.writing():
        for name in sorted(names):
            found = source._must_find(name, lock=True)
            if found.open or not found.moving.startswith("leaving") or this not in found.moving:
                raise DataError(
                    f'"{name}" was opened or moved by somebody else meanwhile; nothing was moved'
                )
            source._set_moving(found.key, " ".join(("moved", *_move_of(found))))
            source._note(found.key, "moved")


def _arrive(source: Store, target: Store, names: Sequence[str]) -> None:
    """Step 4; what has arrived already stays as it is."""
    with target.writing():
        for name in sorted(names):
            there = target._must_find(name, lock=True)
            if there.moving.startswith("arriving"):
                target._set_open(there.key, "open" in there.moving.split())
                target._set_moving(there.key, "")
                target._note(there.key, "moved")


def _has_ended(source: Store, collection: Collection, shown: bytes | None) -> bool:
    """Whether its date has come, or more of it was published meanwhile: then it stays closed."""
    over = collection.mechanism.policy.about.state(datetime.now(UTC)) == "closed"
    return over or source._read_published(collection.key) != shown


# ---- copying -------------------------------------------------------------------------------------


def _listed(source: Store, names: Sequence[str]) -> list[str]:
    """These names, or those of all collections."""
    found, unreadable = source.listing()
    if unreadable and not names:
        raise DataError(f"{unreadable[0].problem}; name the collections that are to be copied")
    listed = list(dict.fromkeys(names)) or [c.name for c in found]
    if not listed:
        raise DataError("there are no collections in that store")
    return listed


def _checked(source: Store, name: str) -> Collection:
    collection = source._must_find(name)
    if wrong := source._problems(collection):
        raise DataError(f'"{name}" is damaged and is not copied: {wrong[0]}')
    return collection


def _copy_one(
    source: Store, target: Store, collection: Collection, advance: Advance, move: str
) -> int:
    name, key = collection.name, collection.key
    tally = source._whole_tally(collection)
    numbers = sealed(tally.to_bytes())
    known = target._find(name)
    if known and move and _was_left_by_a_move(known, collection):
        target._erase(known.key)
        target._remove(known.key)
        known = None
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
    if move:
        target._set_moving(there.key, " ".join(("arriving", *_move_of(collection))))
    return tally.n


def _was_left_by_a_move(known: Collection, collection: Collection) -> bool:
    """Whether it is a copy of the same collection that a move has not opened."""
    arriving = not known.open and known.moving.startswith("arriving")
    return arriving and known.mechanism == collection.mechanism


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
