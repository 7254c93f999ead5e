"""Where collections live. Other rooms import from here.

A store keeps, per collection, its survey, the ids of the reports it has counted and their tally;
the reports themselves only if the organiser asked for them (`keep = "reports"`). The ids and the
tally change in one transaction, so a report is counted once or not at all, whatever happens.
Nothing says when a report came or from whom.

    store.py          what becomes of collections and uploads, transaction by transaction
    store_reading.py  what a store tells
    rules.py          what is allowed in which state
    catalogue.py      collections as objects         counts.py  tallies and pending reports
    tables.py         their SQL                      database.py, sqlite.py, postgres.py: dialects
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from discreet.arrays.survey_tally import SurveyTally
from discreet.collector import limits, rules
from discreet.collector.database import Database, without_password
from discreet.collector.postgres import PostgresDatabase
from discreet.collector.records import (
    KEEPS,
    NO_MOVE,
    Collection,
    Contents,
    Event,
    Move,
    NoCollection,
    Outcome,
    Stored,
    StoreDamaged,
    StoreDown,
    Unreadable,
    Upload,
    checked_name,
)
from discreet.collector.sqlite import SqliteDatabase, sqlite_path
from discreet.collector.store_reading import StoreReading
from discreet.errors import DataError
from discreet.survey import Survey

__all__ = [
    "KEEPS", "Collection", "Event", "NoCollection", "Outcome", "Store", "StoreDamaged", "StoreDown",
    "Unreadable", "Upload", "checked_name", "open_store", "sqlite_path", "without_password",
]  # fmt: skip

DATABASES: dict[str, type[Database]] = {
    "sqlite": SqliteDatabase,
    "postgresql": PostgresDatabase,
    "postgres": PostgresDatabase,
}


def open_store(url: str, create: bool = True) -> Store:
    """The store of a URL: a path or sqlite:///path, or postgresql://…. A file that is not there is
    made, unless `create` is false.
    """
    scheme, mark, _ = url.partition("://")
    database = DATABASES.get(scheme if mark else "sqlite")
    if database is None:
        raise DataError(
            f'the store "{scheme}://…" is not known; give a path for SQLite or postgresql://…'
        )
    return Store(database(url, create))


# More than 15 public methods, because a caller never combines two: each is a whole transaction.
# Reading is a class of its own, and rules and SQL are not here.
class Store(StoreReading):
    """Collections with their tallies: everything that commands and the service do with them is one
    method, here or in StoreReading. Only one thread writes.
    """

    def another(self) -> Store:
        """The same store, with connections of its own."""
        return Store(self.database.another())

    def close(self) -> None:
        """Close the connections of all threads."""
        self.database.close()

    def abort(self) -> None:
        """Make every thread that waits for the store fail with StoreDown; for one that hangs."""
        self.database.abort()

    def ping(self) -> None:
        """StoreDown unless the store answers."""
        with self.reading():
            self.catalogue.ping()

    def can_write(self) -> None:
        """StoreDown unless something can be written, now."""
        self.database.can_write()

    # ---- the life of a collection ----------------------------------------------------------------

    def create(self, survey: Survey, keep: str = "counts") -> Collection:
        """The collection of this survey, made if it is new; another survey under the same name is
        refused.
        """
        rules.check_keep(keep)
        rules.check_size(survey)
        name = checked_name(survey.name)
        document = json.dumps(survey.to_document(), ensure_ascii=False)
        with self.writing():
            collection = self.catalogue.find(name)
            if collection is None:
                collection = self.catalogue.insert(name, document, keep)
                if collection is None:  # someone else was faster
                    collection = self.catalogue.get(name)
                else:
                    self.counts.begin(collection, SurveyTally(survey))
        rules.check_same(collection, survey, keep)
        return collection

    def close_collection(self, name: str) -> None:
        """Take no more reports, and put the ids and reports in the order of the ids. If this was
        interrupted, calling it again finishes it.
        """
        key = self.collection(name).key
        self.stop_collection(name)
        try:
            self.database.erase_arrival_order(key)
        except StoreDown as error:
            raise StoreDown(
                f'"{name}" is closed and takes no more reports, but the order in which they came '
                f"is not erased yet: {error}; close it again"
            ) from None

    def stop_collection(self, name: str, move_id: str = "") -> bool:
        """Take no more reports, for the move of this id if there is one; the order of arrival is
        not erased yet. Returns whether this call closed it.
        """
        with self.writing():
            collection = self.catalogue.get(name, lock=True)
            self.counts.count_pending(collection)
            was_open = not collection.closed_by_organiser
            if was_open:
                self._close(collection, "closed")
            if move_id:
                self.catalogue.set_move(collection, rules.leaving_move(collection, move_id))
            elif collection.move.step == "leaving":
                self.catalogue.set_move(collection, NO_MOVE)
            return was_open

    def expire_collection(self, name: str) -> bool:
        """Close a collection whose own time is over; returns whether this call closed it. That it
        is closed is written last, so that an interrupted call is done again. StoreDown at once if
        this had to wait for a reader: other collections are being counted.
        """
        with self.writing():
            collection = self.catalogue.get(name, lock=True)
            if collection.closed_by_organiser:
                return False
            self.counts.count_pending(collection)
        self.database.erase_arrival_order(collection.key, wait=False)
        with self.writing():
            collection = self.catalogue.get(name, lock=True)
            if collection.closed_by_organiser:
                return False
            self._close(collection, "closed by its date")
            return True

    def _close(self, collection: Collection, what: str) -> None:
        self.catalogue.close(collection)
        self.catalogue.note(collection, what)

    def reopen_collection(self, name: str) -> None:
        """Take reports again, unless its time is over, its final results have been published or it
        was moved.
        """
        with self.writing():
            collection = self.catalogue.get(name, lock=True)
            published = self.counts.published(collection)
            rules.check_reopening(collection, published is not None)
            if collection.closed_by_organiser:
                self.catalogue.open(collection)
                self.catalogue.set_move(collection, NO_MOVE)
                self.catalogue.note(collection, "reopened")

    def check_deletable(self, name: str) -> None:
        """DataError while it takes reports."""
        with self.reading():
            rules.check_deletable(self.catalogue.get(name))

    def delete_collection(self, name: str) -> None:
        """Delete a closed collection for good. Its name goes last: if this was interrupted, calling
        it again finishes it.
        """
        with self.writing():
            collection = self.catalogue.get(name, lock=True)
            rules.check_deletable(collection)
            self.counts.erase(collection)
        try:
            self.database.erase_arrival_order(collection.key)
        except StoreDown as error:
            raise StoreDown(
                f'"{name}" is empty, but the files of the store still hold what it had: {error}; '
                "delete it again"
            ) from None
        with self.writing():
            rules.check_deletable(self.catalogue.get(name, lock=True))
            self.catalogue.remove(collection)

    # ---- reports ---------------------------------------------------------------------------------

    def add(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Count uploads in one transaction; when this returns they are durable."""
        outcomes = [Outcome(0, 0, "closed")] * len(uploads)
        keys = {upload.key for upload in uploads}
        over = {key for key in keys if self.catalogue.is_known_to_be_over(key)}
        names = {upload.collection for upload in uploads if upload.key not in over}
        with self.writing():
            for name in sorted(names):  # always locked in the same order
                # A closed one is not locked: its tables may be written anew just now.
                collection = self.catalogue.find(name, lock=True, only_open=True)
                if collection is None:
                    continue
                places = []
                for k, upload in enumerate(uploads):
                    if upload.collection == name and upload.key in (None, collection.key):
                        places.append(k)
                    elif upload.collection == name and upload.key not in over:
                        outcomes[k] = Outcome(0, 0, "replaced")
                counted = self._count(collection, [uploads[k] for k in places])
                for k, outcome in zip(places, counted, strict=True):
                    outcomes[k] = outcome
        return outcomes

    def _count(self, collection: Collection, uploads: list[Upload]) -> list[Outcome]:
        state = collection.state
        if uploads and state == "open":
            return self.counts.add(collection, uploads)
        return [Outcome(0, 0, state)] * len(uploads)

    # ---- copies ----------------------------------------------------------------------------------

    def insert_copy(self, contents: Contents, move: Move, advance: Callable[[int], None]) -> None:
        """Insert a collection of another store, inside a transaction of the caller; `advance` is
        told how many reports were inserted. DataError if there is a collection of this name, unless
        an interrupted move has left it and this is a move, too.
        """
        original, tables = contents.collection, self.counts.tables
        copy = self.catalogue.find(original.name)
        if copy and move.step and rules.is_left_by_a_move(copy, original):
            tables.erase(copy.key)
            self.catalogue.remove(copy)
            copy = None
        made = None
        if copy is None:
            made = self.catalogue.insert(original.name, contents.document, original.keep)
        if made is None:
            raise DataError(
                f'the store that is copied to has a collection "{original.name}" already; nothing '
                "was copied"
            )
        self.counts.begin(made, contents.tally)
        for batch in _batches(contents.reports):
            ids = [id_ for id_, _ in batch]
            reports = [report for _, report in batch if report is not None]
            self.database.insert_reports(made.key, ids, reports if made.keep == "reports" else None)
            advance(len(batch))
        if contents.published is not None:
            tables.write_published(made.key, contents.published)
        for event in contents.events:
            self.catalogue.insert_event(made, event)
        if original.closed_by_organiser:
            self.catalogue.close(made)
        self.catalogue.set_move(made, move)


def _batches(rows: Iterator[Stored]) -> Iterator[list[Stored]]:
    while block := list(islice(rows, limits.BLOCK)):
        yield block
