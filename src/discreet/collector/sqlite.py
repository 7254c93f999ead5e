"""The store in one file: SQLite, write-ahead log, every commit on disk before it is
acknowledged.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.collector import limits
from discreet.collector.store import (
    Event,
    Store,
    StoreDown,
    failing_as,
    refuse_old_documents,
    unknown_version,
)
from discreet.errors import DataError
from discreet.wire import ID_SIZE

_ERRORS = (sqlite3.Error, OSError)
_GLANCE = 0.2  # seconds in which whoever looks at results is done

# Every entry brings a store from the version before it to its own; entries are never changed, only
# added.
MIGRATIONS = (
    """
    CREATE TABLE collection (
        key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, document TEXT NOT NULL,
        keep TEXT NOT NULL, open INTEGER NOT NULL
    );
    CREATE TABLE tally (
        collection INTEGER PRIMARY KEY REFERENCES collection (key), numbers BLOB NOT NULL
    );
    CREATE TABLE report (
        collection INTEGER NOT NULL REFERENCES collection (key), id BLOB NOT NULL, report BLOB,
        PRIMARY KEY (collection, id)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE waiting (
        collection INTEGER NOT NULL REFERENCES collection (key), place BLOB NOT NULL,
        reports BLOB NOT NULL, PRIMARY KEY (collection, place)
    ) WITHOUT ROWID;
    CREATE TABLE published (
        collection INTEGER PRIMARY KEY REFERENCES collection (key), numbers BLOB NOT NULL
    );
    """,
    """
    CREATE TABLE event (
        key INTEGER PRIMARY KEY, collection INTEGER NOT NULL REFERENCES collection (key),
        time TEXT NOT NULL, what TEXT NOT NULL
    );
    """,
    """
    ALTER TABLE collection ADD COLUMN moving TEXT NOT NULL DEFAULT '';
    """,
)


class SqliteStore(Store):
    """A file that several workers of one machine may share. Rows lie in the order of their random
    ids.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)  # as it was given, for sentences
        # SQLite keeps its log beside the file itself, not beside a link to it; so do we our lock
        self._real = os.path.realpath(path)
        self._place: tuple[int, int] | None = None  # of the file that we opened
        self._log: int | None = None  # of its write-ahead log
        if not self.path.parent.is_dir():
            raise DataError(
                f"the store {self.path} cannot be made: the folder {self.path.parent} does not "
                "exist"
            )
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        try:
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if self.path.exists() and self.path.stat().st_size:
                self._look()
            self._turn = os.open(f"{self._real}-lock", os.O_CREAT | os.O_RDWR, 0o600)
            # For its owner alone. A file that is there is never opened but by SQLite: closing it
            # would drop all locks that this process has on it (POSIX), and with them reports.
            with suppress(FileExistsError):
                os.close(os.open(self._real, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._migrate()
        except sqlite3.DatabaseError as error:
            raise DataError(f"the store {self.path} cannot be opened: {error}") from None
        except OSError as error:
            raise DataError(f"the store {self.path} cannot be opened: {error.strerror}") from None
        except StoreDown as error:
            raise DataError(f"the store {self.path} cannot be opened: {error}") from None

    def _look(self) -> None:
        """Refuse what is no database, or a store of another version, before a byte is changed."""
        place = f"file:{quote(self._real)}?mode=ro"
        with closing(sqlite3.connect(place, timeout=limits.LOCK_SECONDS, uri=True)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > len(MIGRATIONS):
                raise unknown_version(version, len(MIGRATIONS))
            if 0 < version < len(MIGRATIONS):
                rows = db.execute("SELECT name, document FROM collection ORDER BY name").fetchall()
                refuse_old_documents(rows)

    def _migrate(self) -> None:
        with self.writing():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if not version and os.pread(self._turn, 1, 0):
                raise DataError(
                    f"the store {self.path} is empty, but there was one here: bring back a copy, "
                    f"or remove {self.path}-lock to begin anew"
                )
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                for statement in filter(str.strip, script.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {number}")
        os.pwrite(self._turn, b"a store was made here\n", 0)

    @property
    def _db(self) -> sqlite3.Connection:
        """This thread's connection."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = sqlite3.connect(
                self._real,
                timeout=limits.LOCK_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                db.execute(f"PRAGMA page_size = {limits.PAGE}")  # of a new file
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA secure_delete = ON")  # what was counted is not left behind
                db.execute("PRAGMA cache_size = -16384")
                db.execute("PRAGMA temp_store = MEMORY")  # for the journal of a savepoint
            except BaseException:  # it is no database
                db.close()
                raise
            self._local.db = db
            self._open.append(db)
        return db

    def _forget(self) -> None:
        """Drop this thread's connection after a failure: whatever it had begun is rolled back."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is not None:
            self._local.db = None
            self._open.remove(db)
            if not self._open:  # the log may go with the last connection
                self._log = None
            self._mechanisms.clear()  # one of them may have been rolled back
            self._waiting.clear()
            with suppress(sqlite3.Error):
                db.rollback()  # a cursor that is left open would keep a closed connection's locks
            db.close()

    @contextmanager
    def writing(self, patient: bool = False) -> Iterator[None]:
        """One writer at a time: workers queue at a file lock, where they wait less long than SQLite
        would let them.
        """
        with failing_as(_ERRORS):
            self._take_turn()
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
                self._check_place()
            except BaseException:
                self._forget()
                raise
            finally:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _check_place(self) -> None:
        """What was just committed is in the file of this name, and will be found there again."""
        place, log = None, None
        with suppress(FileNotFoundError):
            found, log = os.stat(self.path), os.stat(f"{self._real}-wal").st_ino
            place = found.st_dev, found.st_ino
        self._place, self._log = self._place or place, self._log or log
        if place is None or (place, log) != (self._place, self._log):
            raise StoreDown(
                f"the file {self.path} was moved or removed while it was in use; nothing is "
                "acknowledged until it is back and the collector is started again"
            )

    def _take_turn(self) -> None:
        """Wait for the file lock, but not for ever: another process may hang with it."""
        end, pause = time.monotonic() + limits.LOCK_SECONDS, 0.0002
        while True:
            try:
                return fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.002)

    @contextmanager
    def reading(self, *names: str, wait: bool = True) -> Iterator[None]:
        """A snapshot."""
        with failing_as(_ERRORS):
            try:
                self._db.execute("BEGIN")
                yield
                self._db.execute("COMMIT")
            except StoreDown:
                self._forget()
                raise
            except DataError:  # an answer, not a failure
                self._db.execute("ROLLBACK")
                raise
            except BaseException:
                self._forget()
                raise

    def _rows(
        self, name: str | None = None, lock: bool = False, only_open: bool = False
    ) -> list[tuple[Any, ...]]:
        """A write transaction has locked everything."""
        query = "SELECT key, name, keep, open, moving FROM collection"
        if name is None:
            return self._db.execute(f"{query} ORDER BY name").fetchall()
        query += f" WHERE name = ?{' AND open' if only_open else ''}"
        return self._db.execute(query, (name,)).fetchall()

    def _document(self, key: int) -> str:
        return self._db.execute("SELECT document FROM collection WHERE key = ?", (key,)).fetchone()[
            0
        ]

    def _insert_collection(self, name: str, document: str, keep: str, numbers: bytes) -> bool:
        row = self._db.execute(
            "INSERT INTO collection VALUES "
            "((SELECT coalesce(max(collection), 0) + 1 FROM tally), ?, ?, ?, 1, '')",
            (name, document, keep),
        )
        self._db.execute("INSERT INTO tally VALUES (?, ?)", (row.lastrowid, numbers))
        return True

    def _set_open(self, key: int, is_open: bool) -> None:
        self._db.execute("UPDATE collection SET open = ? WHERE key = ?", (is_open, key))

    def _set_moving(self, key: int, moving: str) -> None:
        self._db.execute("UPDATE collection SET moving = ? WHERE key = ?", (moving, key))

    def _insert_event(self, key: int, event: Event) -> None:
        self._db.execute("INSERT INTO event VALUES (NULL, ?, ?, ?)", (key, *event))

    def _events(self, key: int) -> list[Event]:
        query = "SELECT time, what FROM event WHERE collection = ? ORDER BY key"
        return [Event(*row) for row in self._db.execute(query, (key,))]

    def _insert_reports(
        self, key: int, ids: list[bytes], reports: list[bytes] | None
    ) -> set[bytes]:
        """Almost always all are new: try that first, and look for the others only when it was not
        so.
        """
        self._db.execute("SAVEPOINT try")
        if self._try_insert(key, ids, reports) == len(ids):
            self._db.execute("RELEASE try")
            return set()
        self._db.execute("ROLLBACK TO try")
        known: set[bytes] = set()
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            marks = ",".join("?" * len(some))
            known.update(
                id_
                for (id_,) in self._db.execute(
                    f"SELECT id FROM report WHERE collection = ? AND id IN ({marks})", [key, *some]
                )
            )
        fresh = [k for k, id_ in enumerate(ids) if id_ not in known]
        self._try_insert(key, [ids[k] for k in fresh], reports and [reports[k] for k in fresh])
        self._db.execute("RELEASE try")
        return known

    def _try_insert(self, key: int, ids: list[bytes], reports: list[bytes] | None) -> int:
        """How many were new. One statement whatever their number: for many, Python would hand over
        its lock at every row.
        """
        if not ids:
            return 0
        values: dict[str, Any] = {"many": len(ids), "key": key, "ids": b"".join(ids)}
        columns = f":key, substr(:ids, {ID_SIZE} * i + 1, {ID_SIZE}), NULL"
        if reports is not None:
            size = len(reports[0])
            columns = columns.replace("NULL", f"substr(:reports, {size} * i + 1, {size})")
            values["reports"] = b"".join(reports)
        places = (
            "WITH RECURSIVE k (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < :many)"
        )
        return self._db.execute(
            f"INSERT OR IGNORE INTO report {places} SELECT {columns} FROM k", values
        ).rowcount

    def _read_numbers(self, key: int) -> bytes:
        query = "SELECT numbers FROM tally WHERE collection = ?"
        row = self._db.execute(query, (key,)).fetchone()
        return row[0] if row else b""  # which is damage

    def _write_numbers(self, key: int, numbers: bytes) -> None:
        self._db.execute("UPDATE tally SET numbers = ? WHERE collection = ?", (numbers, key))

    def _wait(self, key: int, reports: bytes) -> None:
        self._db.execute("INSERT INTO waiting VALUES (?, randomblob(16), ?)", (key, reports))

    def _who_waits(self, key: int) -> list[bytes]:
        rows = self._db.execute("SELECT reports FROM waiting WHERE collection = ?", (key,))
        return [reports for (reports,) in rows]

    def _forget_who_waits(self, key: int) -> None:
        self._db.execute("DELETE FROM waiting WHERE collection = ?", (key,))

    def _read_published(self, key: int) -> bytes | None:
        query = "SELECT numbers FROM published WHERE collection = ?"
        row = self._db.execute(query, (key,)).fetchone()
        return row and row[0]

    def _write_published(self, key: int, numbers: bytes) -> None:
        self._db.execute("INSERT OR REPLACE INTO published VALUES (?, ?)", (key, numbers))

    def _erase(self, key: int) -> None:
        for table in ("report", "waiting", "published", "event"):
            self._db.execute(f"DELETE FROM {table} WHERE collection = ?", (key,))

    def _remove(self, key: int) -> None:
        """An empty tally stays, so that its key is not given again."""
        self._db.execute("DELETE FROM collection WHERE key = ?", (key,))
        self._write_numbers(key, b"")

    def _id_count(self, key: int) -> int:
        query = "SELECT count(*) FROM report WHERE collection = ?"
        return int(self._db.execute(query, (key,)).fetchone()[0])

    def _stored(self, key: int) -> Iterator[tuple[bytes, bytes]]:
        yield from self._db.execute(
            "SELECT id, report FROM report WHERE collection = ? ORDER BY id", (key,)
        )

    def ping(self) -> None:
        """StoreDown unless the file can be read."""
        with self.reading():
            self._db.execute("SELECT count(*) FROM collection").fetchone()

    def can_write(self) -> None:
        """StoreDown unless something can be written, now, and there is room for more: a log that
        was emptied takes some pages on a full disk, too.
        """
        with failing_as(_ERRORS), tempfile.TemporaryFile(dir=self.path.resolve().parent) as room:
            room.write(bytes(limits.ROOM))
            room.flush()
            os.fsync(room.fileno())
        with self.writing():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            self._db.execute(f"PRAGMA user_version = {version}")

    def tidy(self, *keys: int, wait: bool = True) -> None:
        """The log, and the rows within a page, are in order of arrival: write the whole file anew,
        in the order of the ids. Others wait meanwhile.
        """
        with failing_as(_ERRORS):
            self._take_turn()
            try:
                self._db.execute("VACUUM")
                patience = limits.LOCK_SECONDS if wait else _GLANCE
                self._db.execute(f"PRAGMA busy_timeout = {1000 * patience:.0f}")
                if self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    raise StoreDown("another program reads the store (stop it first)")
            finally:
                try:
                    self._db.execute(f"PRAGMA busy_timeout = {1000 * limits.LOCK_SECONDS:.0f}")
                finally:
                    fcntl.flock(self._turn, fcntl.LOCK_UN)

    def another(self) -> SqliteStore:
        """The same file."""
        return SqliteStore(self.path)

    def abort(self) -> None:
        """Interrupt what runs; waiting for a lock ends by itself."""
        for db in list(self._open):
            db.interrupt()

    def close(self) -> None:
        """Close the connections of all threads; the last one empties the log."""
        while self._open:
            self._open.pop().close()
        self._local = threading.local()
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1
