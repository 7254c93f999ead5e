"""The collections of a store: the SQL of their table, once for all databases, and their surveys,
which are read and checked once.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime

from discreet.collector.database import Database, Row, refuse_old_documents
from discreet.collector.records import (
    KEEPS,
    Collection,
    Event,
    Move,
    NoCollection,
    StoreDamaged,
    Unreadable,
)
from discreet.policy.labels import quoted
from discreet.survey import Survey

_SELECT = "SELECT key, name, keep, open, moving FROM {collection} "
_SET_OPEN = "UPDATE {collection} SET open = ? WHERE key = ?"


class Catalogue:
    """Finds collections and writes down what becomes of them, inside a transaction of the caller.
    It follows orders: what is allowed stands in rules.py.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._run = database, database.run
        # by key; a collection never changes its survey
        self._surveys: dict[int, Survey] = {}
        # why a survey cannot be read, by key and its document's checksum
        self._unreadable: dict[tuple[int, int], str] = {}

    def forget(self) -> None:
        """Read the surveys again when they are next needed."""
        self._surveys.clear()

    def ping(self) -> None:
        """Read something."""
        self._run("SELECT count(*) FROM {collection}")

    # ---- finding ---------------------------------------------------------------------------------

    def listing(self) -> tuple[list[Collection], list[Unreadable]]:
        """All collections by name: those that can be read, and those that cannot."""
        readable: list[Collection] = []
        unreadable: list[Unreadable] = []
        for row in self._run(_SELECT + "ORDER BY name"):
            try:
                readable.append(self._collection(row))
            except StoreDamaged as error:
                unreadable.append(Unreadable(str(row[1]), str(error)))
        return readable, unreadable

    def find(self, name: str, lock: bool = False, only_open: bool = False) -> Collection | None:
        """One collection, locked until the transaction ends if asked; with `only_open`, one that is
        closed is neither given nor locked.
        """
        if "\0" in name:  # no collection has such a name, and PostgreSQL has no such text
            return None
        condition = f"WHERE name = ?{' AND open' if only_open else ''}"
        rows = self._run(_SELECT + condition + (self._database.row_lock if lock else ""), name)
        return self._collection(rows[0]) if rows else None

    def get(self, name: str, lock: bool = False) -> Collection:
        """The same; NoCollection if there is none."""
        collection = self.find(name, lock)
        if collection is None:
            raise NoCollection(f'there is no collection "{name}"')
        return collection

    def is_known_to_be_over(self, key: int | None) -> bool:
        """Whether we remember a collection of this key and its date has come."""
        survey = self._surveys.get(key or 0)
        return survey is not None and survey.about.state(_now()) == "closed"

    def document(self, collection: Collection) -> str:
        """Its survey, as it is stored."""
        return self._read_document(collection.key)

    def _read_document(self, key: int) -> str:
        return str(self._run("SELECT document FROM {collection} WHERE key = ?", key)[0][0])

    def _collection(self, row: Row) -> Collection:
        key, name, keep, is_open, moving = row
        if not isinstance(name, str) or not isinstance(moving, str) or keep not in KEEPS:
            raise StoreDamaged(
                f"the collection {quoted(name)} is damaged; restore a copy of the store"
            )
        survey = self._surveys.get(key)
        if survey is None:  # checked when it is first read, like any other survey
            survey = self._surveys[key] = self._read_survey(key, name)
        return Collection(key, name, survey, keep, not is_open, Move(*moving.split()))

    def _read_survey(self, key: int, name: str) -> Survey:
        document = self._read_document(key)
        mark = key, zlib.crc32(document.encode())
        if mark not in self._unreadable:
            try:
                return _parse(name, document)
            except StoreDamaged as error:
                self._unreadable[mark] = str(error)
        raise StoreDamaged(self._unreadable[mark])

    # ---- changing --------------------------------------------------------------------------------

    def insert(self, name: str, document: str, keep: str) -> Collection | None:
        """A new collection, open and without a tally; None if the name is taken."""
        key = self._database.insert_collection(name, document, keep)
        return None if key is None else self.get(name, lock=True)

    def open(self, collection: Collection) -> None:
        """Let it take reports."""
        self._run(_SET_OPEN, True, collection.key)

    def close(self, collection: Collection) -> None:
        """Let it take no more reports."""
        self._run(_SET_OPEN, False, collection.key)

    def set_move(self, collection: Collection, move: Move) -> None:
        """Write down how far a move is with it."""
        moving = " ".join(filter(None, move))
        self._run("UPDATE {collection} SET moving = ? WHERE key = ?", moving, collection.key)

    def note(self, collection: Collection, what: str) -> None:
        """Write down what was done with it, to the minute."""
        self.insert_event(collection, Event(_now().strftime("%Y-%m-%dT%H:%MZ"), what))

    def insert_event(self, collection: Collection, event: Event) -> None:
        """Write down what was done with it, and when."""
        insert = "INSERT INTO {event} (collection, time, what) VALUES (?, ?, ?)"
        self._run(insert, collection.key, *event)

    def events(self, collection: Collection) -> list[Event]:
        """What was done with it, in order."""
        select = "SELECT time, what FROM {event} WHERE collection = ? ORDER BY key"
        return [Event(*row) for row in self._run(select, collection.key)]

    def remove(self, collection: Collection) -> None:
        """Remove a collection that was erased; its key is never given again."""
        self._database.remove_tables(collection.key)
        self._run("DELETE FROM {collection} WHERE key = ?", collection.key)


def _parse(name: str, document: str) -> Survey:
    """The survey of a stored document; StoreDamaged if it is none."""
    refuse_old_documents([(name, document)])
    try:
        survey = Survey.from_document(json.loads(document))
    except Exception as error:  # whatever a damaged document holds
        raise StoreDamaged(
            f'the survey "{name}" cannot be read ({error}); restore a copy of the store'
        ) from None
    if survey.name != name:
        raise StoreDamaged(
            f'the collection "{name}" holds the survey "{survey.name}"; bring back a copy of the '
            "store"
        )
    return survey


def _now() -> datetime:
    return datetime.now(UTC)
