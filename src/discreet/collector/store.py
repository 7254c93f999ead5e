"""Where collections live: one interface, two implementations (SQLite, PostgreSQL).

A store keeps, per collection, its mechanism, the ids of the reports it has counted and their tally;
the reports themselves only where the organiser asked for them (`keep = "reports"`). The ids and the
tally change in one transaction, so a report is counted once or not at all, whatever happens.
Nothing says when a report came or from whom.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.about import moment
from discreet.collector import limits
from discreet.errors import DataError
from discreet.labels import is_label
from discreet.mechanism import FORMAT, Mechanism
from discreet.tally import Counting, Tally

KEEPS = ("counts", "reports")
_FIRST_FORMAT = "discreet-mechanism/1"


class StoreDamaged(DataError):
    """What the store holds does not add up; nothing is served from it."""


class StoreDown(DataError):
    """The store cannot be used just now: nothing was counted; try again."""


class NoCollection(DataError):
    """There is no collection of this name."""


@dataclass(frozen=True)
class Collection:
    """A question that is or was asked."""

    key: int
    name: str
    mechanism: Mechanism
    keep: str
    open: bool  # whether nobody has closed it; its own times are looked at in `state`
    moving: str = ""  # what a move between two stores has done with it (see copying.py)

    @property
    def state(self) -> str:
        """Now: "upcoming", "open" or "closed"."""
        return self.mechanism.policy.about.state(_now()) if self.open else "closed"


class Unreadable(NamedTuple):
    """A collection whose mechanism cannot be read, and why."""

    name: str
    problem: str


class Upload(NamedTuple):
    """Checked reports of one request: their ids and the reports, row by row."""

    collection: str
    ids: list[bytes]
    rows: NDArray[np.uint8]
    # of the collection it was checked for: one of the same name may have come in its place
    key: int | None = None


class Event(NamedTuple):
    """Something that the organiser, or the calendar, did with a collection."""

    time: str
    what: str


class Outcome(NamedTuple):
    """What became of an upload. A collection that is not open takes nothing, nor does one that was
    "replaced": the upload was checked for another collection of the same name.
    """

    accepted: int
    duplicates: int
    state: str = "open"


class Store(ABC):
    """Collections with their tallies. Reading and writing may happen in two threads at once, but
    only one of them writes.
    """

    def __init__(self) -> None:
        # by key; a collection never changes its mechanism
        self._mechanisms: dict[int, Mechanism] = {}
        self._waiting: dict[int, int] = {}  # bytes that wait, by key, as far as we know
        # why a mechanism cannot be read, by key and its document's checksum
        self._unreadable: dict[tuple[int, int], str] = {}

    # ---- collections -----------------------------------------------------------------------------

    def create(self, mechanism: Mechanism, keep: str = "counts") -> Collection:
        """The collection of this mechanism, made if it is new; another mechanism under the same
        name is refused.
        """
        if keep not in KEEPS:
            raise DataError(f'keep = "{keep}" must be one of {", ".join(KEEPS)}')
        name = checked_name(mechanism.policy.name)
        document = json.dumps(mechanism.to_document(), ensure_ascii=False)
        with self.writing():
            found = self._find(name)
            if found is None:
                self._insert_collection(
                    name, document, keep, sealed(Tally.empty(mechanism).to_bytes())
                )
                found = self._find(name)
        assert found is not None
        if found.mechanism.fingerprint != mechanism.fingerprint:
            differences = found.mechanism.policy.differences(mechanism.policy) or [
                "its probabilities differ"
            ]
            raise DataError(
                f'the store has a collection "{name}" with another mechanism ({differences[0]}); '
                "people have answered under that "
                "promise: give the new one another name"
            )
        if found.keep != keep:
            raise DataError(
                f'the collection "{name}" was made with --keep {found.keep}; it cannot be changed '
                f"to {keep}"
            )
        return found

    def collections(self) -> list[Collection]:
        """All collections that can be read, by name."""
        return self.listing()[0]

    def listing(self) -> tuple[list[Collection], list[Unreadable]]:
        """All collections by name: those that can be read, and those that cannot."""
        found: list[Collection] = []
        unreadable: list[Unreadable] = []
        with self.reading():
            for row in self._rows():
                try:
                    found.append(self._collection(*row))
                except StoreDamaged as error:
                    unreadable.append(Unreadable(row[1], str(error)))
        return found, unreadable

    def collection(self, name: str) -> Collection:
        """One collection; NoCollection if there is none."""
        with self.reading():
            return self._must_find(name)

    def close_collection(self, name: str) -> None:
        """Take no more reports; the ids and reports are put in the order of the ids. What was
        interrupted is done when it is called again.
        """
        key = self.collection(name).key
        self._end(name)
        try:
            self.tidy(key)
        except StoreDown as error:
            raise StoreDown(
                f'"{name}" is closed and takes no more reports, but the order in which they came '
                f"is not erased yet: {error}; close it again"
            ) from None

    def _end(self, name: str, move: str = "") -> bool:
        """Take no more reports, because of the move of this id if there is one; whether it was us.
        One that an interrupted move has closed is open in the end, unless it is closed again.
        """
        with self.writing():
            found = self._must_find(name, lock=True)
            self._fold(found)
            if found.open:
                self._set_open(found.key, False)
                self._note(found.key, "closed")
            left = found.moving.startswith("leaving")
            if move:
                to_open = found.open or (left and "open" in found.moving.split())
                mark = f"leaving {'open' if to_open else 'closed'} {move}"
                self._set_moving(found.key, mark)
            elif left:
                self._set_moving(found.key, "")
            return found.open

    def expire_collection(self, name: str) -> bool:
        """Close a collection whose own time is over; whether it was us. That it is closed is
        written last: what was interrupted is done again. StoreDown at once if it must wait for
        somebody who reads: others are being counted.
        """
        with self.writing():
            found = self._must_find(name, lock=True)
            if not found.open:
                return False
            self._fold(found)
        self.tidy(found.key, wait=False)
        with self.writing():
            found = self._must_find(name, lock=True)
            if found.open:
                self._set_open(found.key, False)
                self._note(found.key, "closed by its date")
            return found.open

    def reopen_collection(self, name: str) -> None:
        """Take reports again, unless its time is over, its final results were published or it was
        moved.
        """
        with self.writing():
            found = self._must_find(name, lock=True)
            if found.moving.startswith("moved"):
                raise DataError(
                    f'"{name}" was moved to another store and goes on there; if that move was '
                    "interrupted, move again to finish it"
                )
            if found.moving.startswith("arriving"):
                raise DataError(
                    f'a move that was interrupted left this copy of "{name}"; move again from the '
                    "store where it was, or reopen it there"
                )
            about = found.mechanism.policy.about
            if about.state(_now()) == "closed":
                raise DataError(
                    f'"{name}" closed on {moment(about.closes)}, as everybody was told; a new '
                    "question needs a new name"
                )
            if not found.open and self._read_published(found.key) is not None:
                raise DataError(
                    f'the results of "{name}" were shown to anyone who asked; a new question needs '
                    "a new name"
                )
            if not found.open:
                self._set_open(found.key, True)
                self._set_moving(found.key, "")
                self._note(found.key, "reopened")

    def history(self, name: str) -> list[Event]:
        """When it was closed, reopened or moved, to the minute."""
        with self.reading():
            return self._events(self._must_find(name).key)

    def _note(self, key: int, what: str) -> None:
        self._insert_event(key, Event(_now().strftime("%Y-%m-%dT%H:%MZ"), what))

    def check_deletable(self, name: str) -> None:
        """DataError while it takes reports."""
        with self.reading():
            _must_be_closed(self._must_find(name))

    def delete_collection(self, name: str) -> None:
        """Forget a closed collection for good. What was interrupted is done when it is called
        again: its name goes last.
        """
        with self.writing():
            found = self._must_find(name, lock=True)
            _must_be_closed(found)
            self._write_numbers(found.key, sealed(Tally.empty(found.mechanism).to_bytes()))
            self._erase(found.key)
        try:
            self.tidy(found.key)
        except StoreDown as error:
            raise StoreDown(
                f'"{name}" is empty, but the files of the store still hold what it had: {error}; '
                "delete it again"
            ) from None
        with self.writing():
            _must_be_closed(self._must_find(name, lock=True))
            self._remove(found.key)

    # ---- reports ---------------------------------------------------------------------------------

    def add(self, uploads: Sequence[Upload]) -> list[Outcome]:
        """Count uploads in one transaction; when this returns they are durable."""
        outcomes = [Outcome(0, 0, "closed")] * len(uploads)
        over = {key for key in {upload.key for upload in uploads} if self._is_over(key)}
        names = {upload.collection for upload in uploads if upload.key not in over}
        with self.writing():
            for name in sorted(names):  # always locked in the same order
                # One that is closed is not locked: it may be written anew just now.
                locked = self._find(name, lock=True, only_open=True)
                if locked is None:
                    continue
                places = []
                for k, upload in enumerate(uploads):
                    if upload.collection == name and upload.key in (None, locked.key):
                        places.append(k)
                    elif upload.collection == name and upload.key not in over:
                        outcomes[k] = Outcome(0, 0, "replaced")
                if not places:
                    continue
                state = locked.state
                found = (
                    self._count(locked, [uploads[k] for k in places])
                    if state == "open"
                    else [Outcome(0, 0, state)] * len(places)
                )
                for k, outcome in zip(places, found, strict=True):
                    outcomes[k] = outcome
        return outcomes

    def _is_over(self, key: int | None) -> bool:
        """Whether we know a collection of this key and its date has come."""
        mechanism = self._mechanisms.get(key or 0)
        return mechanism is not None and mechanism.policy.about.state(_now()) == "closed"

    def _count(self, collection: Collection, uploads: list[Upload]) -> list[Outcome]:
        rows = (
            uploads[0].rows
            if len(uploads) == 1
            else np.concatenate([upload.rows for upload in uploads])
        )
        place: dict[bytes, int] = {}  # the row of every id's first report
        for k, id_ in enumerate(id_ for upload in uploads for id_ in upload.ids):
            place.setdefault(id_, k)
        ids = sorted(place)
        kept = [rows[place[id_]].tobytes() for id_ in ids] if collection.keep == "reports" else None
        known = self._insert_reports(collection.key, ids, kept)
        fresh = [k for id_, k in place.items() if id_ not in known]
        if len(fresh) < len(rows):
            rows = rows[fresh]
        if len(rows):
            self._append(collection, rows)
        if len(fresh) == sum(len(upload.ids) for upload in uploads):
            return [Outcome(len(upload.ids), 0) for upload in uploads]
        counted = set(known)
        outcomes = []
        for upload in uploads:
            accepted = 0
            for id_ in upload.ids:
                if id_ not in counted:
                    counted.add(id_)
                    accepted += 1
            outcomes.append(Outcome(accepted, len(upload.ids) - accepted))
        return outcomes

    # A tally is large where there are many items, and one report must not write it anew: reports
    # wait in a table of their own, and are counted into the tally when enough of them do. Whoever
    # reads counts those that wait.

    def _append(self, collection: Collection, rows: NDArray[np.uint8]) -> None:
        """Let these reports wait; in no order that says who came first."""
        key, mechanism = collection.key, collection.mechanism
        if any(which.any() for which in mechanism.coder.refusals(rows)[1].values()):
            raise DataError("an upload held reports that are not of this mechanism")
        before = self._waiting.get(key)
        if before is None:  # some may be left from before
            before = self._check_waiting(collection)
        self._wait(key, sealed(b"".join(sorted(row.tobytes() for row in rows))))
        waiting = self._waiting[key] = before + rows.size
        whole = 8 * len(mechanism.parts) * (mechanism.m + 1)
        marks = waiting // mechanism.report_size * mechanism.m
        if waiting >= max(limits.FOLD_SIZE, whole) or marks >= limits.FOLD_MARKS:
            self._fold(collection)

    def _check_waiting(self, collection: Collection) -> int:
        """How many bytes wait; StoreDamaged if they or the tally are not as they were written.
        Nothing is acknowledged into a collection before this was looked at.
        """
        self._tally_of(self._read_numbers(collection.key), collection.mechanism)
        waiting = sum(len(unsealed(raw)) for raw in self._who_waits(collection.key))
        if waiting % collection.mechanism.report_size:
            raise _waiting_damaged()
        return waiting

    def _fold(self, collection: Collection) -> None:
        """Count those that wait into the tally."""
        tally = self._whole_tally(collection)
        self._write_numbers(collection.key, sealed(tally.to_bytes()))
        self._forget_who_waits(collection.key)
        self._waiting[collection.key] = 0

    def _whole_tally(self, collection: Collection) -> Tally:
        try:
            return self._tally_with_waiting(collection)
        except StoreDamaged:
            self._waiting.pop(collection.key, None)  # whoever counts next looks, too
            raise

    def _tally_with_waiting(self, collection: Collection) -> Tally:
        mechanism = collection.mechanism
        tally = self._tally_of(self._read_numbers(collection.key), mechanism)
        waiting = b"".join(map(unsealed, self._who_waits(collection.key)))
        if not waiting:
            return tally
        if len(waiting) % mechanism.report_size:
            raise _waiting_damaged()
        rows = np.frombuffer(waiting, np.uint8).reshape(-1, mechanism.report_size)
        return tally + mechanism.tally(rows, threads=1)

    def published(self, name: str) -> Tally:
        """What may be shown to anyone: nothing before there are some reports, and then it moves in
        steps, so that asking again and again does not show single reports. Who sends reports of his
        own can still single one out: what protects it is its own guarantee.
        """
        with self.reading(name):
            found = self._must_find(name)
            shown, whole = self._published_tally(found), self._whole_tally(found)
        if not _due(shown, whole, found):
            return shown
        with self.writing():
            found = self._must_find(name, lock=True)
            shown, whole = self._published_tally(found), self._whole_tally(found)
            if _due(shown, whole, found):
                self._write_published(found.key, sealed(whole.to_bytes()))
                shown = whole
        return shown

    def _published_tally(self, collection: Collection) -> Tally:
        raw = self._read_published(collection.key)
        if raw is None:
            return Tally.empty(collection.mechanism)
        return self._tally_of(raw, collection.mechanism)

    def problems(self, name: str, recount: bool = True) -> list[str]:
        """What does not add up in a collection, in words; with `recount` its stored reports, where
        they were kept, are counted again.
        """
        with self.reading(name):
            return self._problems(self._must_find(name), recount)

    def _problems(self, found: Collection, recount: bool = True) -> list[str]:
        try:
            tally = self._whole_tally(found)
        except StoreDamaged as error:
            return [str(error)]
        ids, wrong = self._id_count(found.key), []
        if ids != tally.n:
            wrong.append(f"it has the ids of {ids:,} reports, but {tally.n:,} are counted")
        if tally.refused:
            wrong.append("some of the reports that wait are none of its mechanism")
        if not found.mechanism.coder.adds_up(tally.part_n, tally.counts):
            wrong.append("its counts cannot be those of so many reports")
        if recount and found.keep == "reports":
            counting = Counting(found.mechanism)
            for block in self._blocks(found):
                counting.add(block)
            if counting.tally() != tally:
                wrong.append("its stored reports, counted again, give another tally")
        return wrong

    @contextmanager
    def snapshot(self, name: str) -> Iterator[tuple[Tally, Iterator[NDArray[np.uint8]]]]:
        """The tally and, where they were kept, the stored reports, of one moment."""
        with self.reading(name):
            found = self._must_find(name)
            yield self._whole_tally(found), self._blocks(found)

    def _blocks(self, collection: Collection) -> Iterator[NDArray[np.uint8]]:
        if collection.keep != "reports":
            raise DataError(
                f'the collection "{collection.name}" keeps counts only; its reports were never '
                "stored"
            )
        reports = (report for _, report in self._stored(collection.key))
        width = collection.mechanism.report_size
        while block := list(islice(reports, limits.BLOCK)):
            yield np.frombuffer(b"".join(block), np.uint8).reshape(-1, width)

    @staticmethod
    def _tally_of(raw: bytes, mechanism: Mechanism) -> Tally:
        size = 8 * len(mechanism.parts) * (mechanism.m + 1)
        numbers = raw if len(raw) == size else unsealed(raw)  # the first version had no checksum
        if len(numbers) != size:
            raise StoreDamaged("the stored tally is damaged; bring back a copy of the store")
        return Tally.from_bytes(numbers, mechanism)

    def tally(self, name: str) -> Tally:
        """The tally of a collection."""
        with self.reading(name):
            return self._whole_tally(self._must_find(name))

    def sizes(self, most: int) -> list[tuple[Collection, int | None]]:
        """The first so many collections, with how many reports each has; None where it is damaged
        or just being closed. Those that wait are not tallied for it.
        """
        return [(c, self._size(c)) for c in self.collections()[:most]]

    def _size(self, collection: Collection) -> int | None:
        try:
            with self.reading(collection.name, wait=False):
                return self._quick_size(self._must_find(collection.name))
        except (NoCollection, StoreDamaged, StoreDown):
            return None

    def _quick_size(self, collection: Collection) -> int:
        tally = self._tally_of(self._read_numbers(collection.key), collection.mechanism)
        waiting = sum(len(unsealed(raw)) for raw in self._who_waits(collection.key))
        return tally.n + waiting // collection.mechanism.report_size

    def reports(self, name: str) -> Iterator[bytes]:
        """The stored reports in the order of their ids, where they were kept."""
        with self.snapshot(name) as (_, blocks):
            for block in blocks:
                yield from (row.tobytes() for row in block)

    # ---- what the two implementations do ---------------------------------------------------------

    @abstractmethod
    def writing(self, patient: bool = False) -> Any:
        """A write transaction: committed durably at the end, rolled back on any error; StoreDown if
        the store fails. Be `patient` with one that computes for long and keeps nobody waiting.
        """

    @abstractmethod
    def reading(self, *names: str, wait: bool = True) -> Any:
        """A consistent view, on a connection of its own; StoreDown if the store fails. Name the
        collections whose ids, reports or counts you read, and whether to wait for one that is being
        closed.
        """

    @abstractmethod
    def _rows(
        self, name: str | None = None, lock: bool = False, only_open: bool = False
    ) -> list[tuple[Any, ...]]:
        """(key, name, keep, open, moving) of all collections or of one, which is then locked until
        the transaction ends if asked; with `only_open` one that is closed is not there.
        """

    @abstractmethod
    def _document(self, key: int) -> str: ...

    @abstractmethod
    def _insert_collection(self, name: str, document: str, keep: str, numbers: bytes) -> bool:
        """Whether it was new."""

    @abstractmethod
    def _set_open(self, key: int, is_open: bool) -> None: ...

    @abstractmethod
    def _set_moving(self, key: int, moving: str) -> None: ...

    @abstractmethod
    def _insert_event(self, key: int, event: Event) -> None: ...

    @abstractmethod
    def _events(self, key: int) -> list[Event]:
        """In the order in which they happened."""

    @abstractmethod
    def _insert_reports(
        self, key: int, ids: list[bytes], reports: list[bytes] | None
    ) -> set[bytes]:
        """Store distinct ids in order, with their reports; returns those that were
        there already.
        """

    @abstractmethod
    def _read_numbers(self, key: int) -> bytes: ...

    @abstractmethod
    def _write_numbers(self, key: int, numbers: bytes) -> None: ...

    @abstractmethod
    def _wait(self, key: int, reports: bytes) -> None:
        """Keep these reports until they are counted into the tally."""

    @abstractmethod
    def _who_waits(self, key: int) -> list[bytes]: ...

    @abstractmethod
    def _forget_who_waits(self, key: int) -> None: ...

    @abstractmethod
    def _read_published(self, key: int) -> bytes | None: ...

    @abstractmethod
    def _write_published(self, key: int, numbers: bytes) -> None: ...

    @abstractmethod
    def _erase(self, key: int) -> None:
        """Delete ids, reports, those that wait and what was published."""

    @abstractmethod
    def _remove(self, key: int) -> None:
        """Delete the collection itself and its tally; its key is never given again, because other
        processes remember whose it was.
        """

    @abstractmethod
    def _id_count(self, key: int) -> int: ...

    @abstractmethod
    def _stored(self, key: int) -> Iterator[tuple[bytes, bytes]]:
        """Ids in order, with the reports where they were kept."""

    @abstractmethod
    def ping(self) -> None:
        """StoreDown unless the store answers."""

    @abstractmethod
    def can_write(self) -> None:
        """StoreDown unless something can be written, now."""

    @abstractmethod
    def tidy(self, *keys: int, wait: bool = True) -> None:
        """Leave no trace of the order in which the reports of these collections came, where the
        database would keep one. StoreDown if somebody reads them for longer than we wait.
        """

    @abstractmethod
    def another(self) -> Store:
        """The same store, with connections of its own."""

    @abstractmethod
    def abort(self) -> None:
        """Make whoever waits for the store fail with StoreDown, from another thread: it hangs."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    # ---- shared ----------------------------------------------------------------------------------

    def _find(self, name: str, lock: bool = False, only_open: bool = False) -> Collection | None:
        rows = (
            [] if "\0" in name else self._rows(name, lock, only_open)
        )  # no collection has such a name, and PostgreSQL has no such text
        return self._collection(*rows[0]) if rows else None

    def _must_find(self, name: str, lock: bool = False) -> Collection:
        found = self._find(name, lock)
        if found is None:
            raise NoCollection(f'there is no collection "{name}"')
        return found

    def _collection(self, key: int, name: str, keep: str, is_open: Any, moving: str) -> Collection:
        mechanism = self._mechanisms.get(key)
        if mechanism is None:  # checked when it is first read, like any other mechanism
            mechanism = self._mechanisms[key] = self._read_mechanism(key, name)
        return Collection(key, name, mechanism, keep, bool(is_open), moving)

    def _read_mechanism(self, key: int, name: str) -> Mechanism:
        document = self._document(key)
        mark = key, zlib.crc32(document.encode())
        if mark not in self._unreadable:
            try:
                return _parsed(name, document)
            except StoreDamaged as error:
                self._unreadable[mark] = str(error)
        raise StoreDamaged(self._unreadable[mark])


def _parsed(name: str, document: str) -> Mechanism:
    """The mechanism of a stored document; StoreDamaged if it is none."""
    refuse_old_documents([(name, document)])
    try:
        return Mechanism.from_document(json.loads(document))
    except Exception as error:  # whatever is found in a damaged document
        raise StoreDamaged(
            f'the mechanism of "{name}" cannot be read ({error}); bring back a copy of the store'
        ) from None


def refuse_old_documents(rows: Iterable[tuple[str, str]]) -> None:
    """StoreDamaged if one of these (name, document) has a format that this discreet cannot read;
    looked at before a store is migrated.
    """
    for name, document in rows:
        try:
            found = json.loads(document)["format"]
        except (ValueError, TypeError, KeyError):
            continue  # it is damaged, not of another version
        if found == _FIRST_FORMAT:
            raise StoreDamaged(
                f'"{name}" was made by discreet 0.1: finish it with that version, or export it '
                "there"
            )
        if found != FORMAT:
            raise StoreDamaged(
                f'"{name}" has the format "{found}", this discreet reads "{FORMAT}": finish it '
                "with the version that made it"
            )


def _waiting_damaged() -> StoreDamaged:
    return StoreDamaged("the reports that wait are damaged; bring back a copy of the store")


def _now() -> datetime:
    return datetime.now(UTC)


def _must_be_closed(collection: Collection) -> None:
    if collection.state != "closed":
        raise DataError(
            f'"{collection.name}" is {collection.state}; discreet close it before it is deleted'
        )


def _due(shown: Tally, whole: Tally, collection: Collection) -> bool:
    """Whether it is time to show the whole: a step further, or the last one of all."""
    further = whole.n - shown.n
    step = 1 if collection.state == "closed" else limits.STEP
    return whole.n >= collection.mechanism.policy.about.least and further >= step


def checked_name(name: str) -> str:
    """The same name, if it can be a collection's: it stands in its address."""
    if "/" in name or name in (".", "..") or not is_label(name) or len(name) > limits.NAME:
        raise DataError(
            "a collection's name stands in its address: no slash, no control character, at most "
            f"{limits.NAME} characters, got {name!r}; give the policy another name"
        )
    return name


def open_store(url: str, create: bool = True) -> Store:
    """The store of a URL: a path or sqlite:///path, or postgresql://…; a file that is not there is
    made, if asked to.
    """
    if url.startswith(("postgresql://", "postgres://")):
        from discreet.collector.postgres import PostgresStore

        return PostgresStore(url)
    from discreet.collector.sqlite import SqliteStore

    scheme, _, rest = url.partition("://")
    if rest and scheme != "sqlite":
        raise DataError(
            f'the store "{scheme}://…" is not known; give a path for SQLite or postgresql://…'
        )
    path = sqlite_path(url)
    if not create and not Path(path).exists():
        raise DataError(
            f"the store {path} does not exist; name the one that discreet serve used with --store"
        )
    lock = f"{os.path.realpath(path)}-lock"
    if not create and not Path(path).stat().st_size and not Path(lock).exists():
        raise DataError(f"the store {path} cannot be opened: it is an empty file")
    return SqliteStore(path)


def sqlite_path(url: str) -> str:
    """The file that a store's URL names, if it names one."""
    return url.removeprefix("sqlite://").removeprefix("/") if "://" in url else url


def unknown_version(found: int, known: int) -> DataError:
    """For a store that a newer discreet has migrated."""
    return DataError(
        f"the store has schema version {found}, this discreet knows up to {known}; use the newer "
        "discreet"
    )


def sealed(numbers: bytes) -> bytes:
    """The same bytes behind their checksum."""
    return b"c" + zlib.crc32(numbers).to_bytes(4, "little") + numbers


def unsealed(raw: bytes) -> bytes:
    """The bytes behind a checksum, if they are those that were written."""
    if raw[:1] != b"c" or zlib.crc32(raw[5:]).to_bytes(4, "little") != raw[1:5]:
        raise StoreDamaged(
            "what is stored is damaged: its checksum is another; bring back a copy of the store"
        )
    return raw[5:]


@contextmanager
def failing_as(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """The database's errors as StoreDown, without its own words beyond the first line."""
    try:
        yield
    except errors as error:
        words = str(error).strip().splitlines()
        said = without_password(words[0]) if words else type(error).__name__
        raise StoreDown(f"the store cannot be used: {said}") from error


def without_password(text: str) -> str:
    """The same text, if it holds the address of a database, without the password."""
    text = re.sub(r"(//[^:/@\s]*):[^@\s]*@", r"\1:…@", text)
    return re.sub(r"(password\s*=\s*)\S+", r"\1…", text, flags=re.IGNORECASE)
