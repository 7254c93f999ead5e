"""Move collections from one store to another: no report is lost, and none is counted in both.

A move writes down how far it is, so that it can be cut off anywhere and repeated. `move` of a
collection holds the step, whether the collection is open in the end, and the move's id:

  1. source: closed,             "leaving open ID"  (or "leaving closed ID")
  2. target: a copy, closed,     "arriving open ID"
  3. source:                     "moved open ID"    from here on it is never opened again
  4. target: open,               no move

The target is opened only after step 3 is durable, so a collection is never open in both.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from discreet.collector.copying import Advance, choose_names, copy_together, sound_collection
from discreet.collector.records import NO_MOVE, Collection, StoreDown
from discreet.collector.store import Store
from discreet.errors import DataError


def move(
    source: Store,
    target: Store,
    names: Sequence[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, int]:
    """Close these collections, or all, in the source, and copy them, open again, into the target:
    every report that was acknowledged before is in the copy, and none comes after. They are never
    open in both.

    If the move fails, they are opened again in the source, unless their final results were
    published or their date came meanwhile. If it is killed, or cut off after that was decided, move
    again: the next move finishes it.
    """
    names, move_id = choose_names(source, names), secrets.token_hex(8)
    with source.reading(*names):
        collections = [sound_collection(source, name) for name in names]
    staying = [c.name for c in collections if c.move.step != "moved"]
    with target.reading():
        for collection in collections:
            _check_moved_here(collection, target)
    closed: dict[str, bytes | None] = {}  # by this move, with what had been published of them
    try:
        if staying:
            _leave(source, staying, move_id, closed)
            copy_together(source, target, staying, advance, for_move=True)
            _mark_moved(source, staying, move_id)
    except BaseException:
        _stay(source, staying, move_id, closed)
        raise
    try:
        _arrive(target, names)
    except StoreDown as error:
        raise StoreDown(
            f"everything is copied, but it is not open there yet: {error}; move again to finish"
        ) from None
    return {name: target.tally(name).n for name in names}


def _check_moved_here(collection: Collection, target: Store) -> None:
    """DataError if an earlier move has brought it to another store than this one."""
    if collection.move.step != "moved":
        return
    copy = target.catalogue.find(collection.name)
    if (
        copy is None
        or copy.survey != collection.survey
        or (copy.move.step == "arriving" and copy.move[1:] != collection.move[1:])
    ):
        raise DataError(f'"{collection.name}" was moved to another store already')


def _leave(
    source: Store, names: Sequence[str], move_id: str, closed: dict[str, bytes | None]
) -> None:
    """Step 1. A collection that an interrupted move has closed is open in the end, too."""
    for name in names:
        with source.reading(name):
            published = source.counts.published(source.catalogue.get(name))
        if source.stop_collection(name, move_id):
            closed[name] = published
    if closed:
        keys = [source.collection(name).key for name in closed]
        source.database.erase_arrival_order(*keys)


def _stay(
    source: Store, names: Sequence[str], move_id: str, closed: dict[str, bytes | None]
) -> None:
    """Take step 1 back where this move has done it, unless step 3 is done."""
    with source.writing():
        for name in sorted(names):
            collection = source.catalogue.find(name, lock=True)
            if collection is None or not _is_left_by(collection, move_id):
                continue
            if name not in closed and collection.move.goal == "open":
                continue  # an earlier move has closed it, and the next one opens it
            source.catalogue.set_move(collection, NO_MOVE)
            if name in closed and not _has_ended(source, collection, closed[name]):
                source.catalogue.open(collection)
                source.catalogue.note(collection, "reopened")


def _mark_moved(source: Store, names: Sequence[str], move_id: str) -> None:
    """Step 3."""
    with source.writing():
        for name in sorted(names):
            collection = source.catalogue.get(name, lock=True)
            if not _is_left_by(collection, move_id):
                raise DataError(
                    f'"{name}" was opened or moved by somebody else meanwhile; nothing was moved'
                )
            source.catalogue.set_move(collection, collection.move._replace(step="moved"))
            source.catalogue.note(collection, "moved")


def _arrive(target: Store, names: Sequence[str]) -> None:
    """Step 4; a collection that has arrived already stays as it is."""
    with target.writing():
        for name in sorted(names):
            collection = target.catalogue.get(name, lock=True)
            if collection.move.step == "arriving":
                if collection.move.goal == "open":
                    target.catalogue.open(collection)
                target.catalogue.set_move(collection, NO_MOVE)
                target.catalogue.note(collection, "moved")


def _is_left_by(collection: Collection, move_id: str) -> bool:
    """Whether this move has closed it, and it was not opened since."""
    leaving = (collection.move.step, collection.move.id) == ("leaving", move_id)
    return collection.closed_by_organiser and leaving


def _has_ended(source: Store, collection: Collection, published: bytes | None) -> bool:
    """Whether its date has come, or more of it was published meanwhile: then it stays closed."""
    over = collection.state_by_its_times == "closed"
    return over or source.counts.published(collection) != published
