"""SQLite: the store is one file with a write-ahead log; every commit is on disk before it is
acknowledged.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from discreet.collector import limits
from discreet.collector.database import (
    Row,
    ThreadedDatabase,
    Value,
    check_version,
    failing_as_store_down,
)
from discreet.collector.records import StoreDown
from discreet.device.wire import ID_SIZE
from discreet.errors import DataError

_ERRORS = (sqlite3.Error, OSError, UnicodeDecodeError)  # the last: damage that SQLite quotes
_GLANCE = 0.2  # seconds: a reader who looks at results is done by then

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
_TABLES = {
    name: name for name in ("collection", "event", "report", "waiting", "tally", "published")
}


class SqliteDatabase(ThreadedDatabase[sqlite3.Connection]):
    """A file that several workers of one machine may share. Rows lie in the order of their random
    ids.
    """

    def __init__(self, url: str, create: bool = True) -> None:
        super().__init__(url, create)
        path = sqlite_path(url)
        self.path = Path(path)  # as it was given, for sentences
        # SQLite keeps its log beside the file itself, not beside a link to it; so do we our lock
        self._real = os.path.realpath(path)
        self._place: tuple[int, int] | None = None  # of the file that we opened
        self._log: int | None = None  # of its write-ahead log
        if not create:
            self._refuse_new()
        if not self.path.parent.is_dir():
            raise DataError(
                f"the store {self.path} cannot be made: the folder {self.path.parent} does not "
                "exist"
            )
        try:
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if self.path.exists() and self.path.stat().st_size:
                self._look()
            self._turn = os.open(f"{self._real}-lock", os.O_CREAT | os.O_RDWR, 0o600)
            # For its owner alone. Only SQLite ever opens a file that is there: if we opened and
            # closed it, all locks that this process has on it would go (POSIX), and with them
            # reports.
            with suppress(FileExistsError):
                os.close(os.open(self._real, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._migrate()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise DataError(f"the store {self.path} cannot be opened: {error}") from None
        except OSError as error:
            raise DataError(f"the store {self.path} cannot be opened: {error.strerror}") from None
        except StoreDown as error:
            raise DataError(f"the store {self.path} cannot be opened: {error}") from None

    def _refuse_new(self) -> None:
        """DataError unless there was a store here."""
        if not self.path.exists():
            raise DataError(
                f"the store {self.path} does not exist; name the one that discreet serve used with "
                "--store"
            )
        if not self.path.stat().st_size and not Path(f"{self._real}-lock").exists():
            raise DataError(f"the store {self.path} cannot be opened: it is an empty file")

    def _look(self) -> None:
        """Refuse a file that is no database, or a store of another version, before a byte is
        changed.
        """
        place = f"file:{quote(self._real)}?mode=ro"
        with closing(sqlite3.connect(place, timeout=limits.LOCK_SECONDS, uri=True)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            check_version(version, len(MIGRATIONS), lambda x: db.execute(x.format_map(_TABLES)))

    def _migrate(self) -> None:
        with self.writing():
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            if not version and os.pread(self._turn, 1, 0):
                raise DataError(
                    f"the store {self.path} is empty, but it had data before: restore a copy, or "
                    f"remove {self.path}-lock to start with an empty store"
                )
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                for statement in filter(str.strip, script.split(";")):
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA user_version = {number}")
        os.pwrite(self._turn, b"a store was made here\n", 0)

    # ---- connections -----------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._real,
            timeout=limits.LOCK_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # damaged text is noticed by whoever reads it, and keeps nobody from the other rows
        db.text_factory = lambda raw: raw.decode(errors="replace")
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
        return db

    def _end(self, connection: sqlite3.Connection) -> None:
        if not self._open:  # the log may go with the last connection
            self._log = None
        with suppress(sqlite3.Error):
            connection.rollback()  # an open cursor would keep the locks of a closed connection
        connection.close()

    def abort(self) -> None:
        """Interrupt what runs; waiting for a lock ends by itself."""
        for connection in list(self._open):
            connection.interrupt()

    def close(self) -> None:
        """Close the connections of all threads; the last one empties the log."""
        super().close()
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1

    # ---- transactions ----------------------------------------------------------------------------

    @contextmanager
    def writing(self, patient: bool = False) -> Iterator[None]:
        """One writer at a time: workers queue at a file lock, where they wait less long than SQLite
        would let them.
        """
        with failing_as_store_down(_ERRORS):
            self._take_turn()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self.connection.execute("COMMIT")
                self._check_place()
            except BaseException:
                self.drop_connection()
                raise
            finally:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _check_place(self) -> None:
        """Check that the file of this name holds what was just committed, for the next reader."""
        place, log = None, None
        with suppress(FileNotFoundError):
            file, log = os.stat(self.path), os.stat(f"{self._real}-wal").st_ino
            place = file.st_dev, file.st_ino
        self._place, self._log = self._place or place, self._log or log
        if place is None or (place, log) != (self._place, self._log):
            raise StoreDown(
                f"the file {self.path} was moved or removed while it was in use; put it back and "
                "restart the collector, which acknowledges no report until then"
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
        with failing_as_store_down(_ERRORS):
            try:
                self.connection.execute("BEGIN")
                yield
                self.connection.execute("COMMIT")
            except StoreDown:
                self.drop_connection()
                raise
            except DataError:  # an answer, not a failure
                self.connection.execute("ROLLBACK")
                raise
            except BaseException:
                self.drop_connection()
                raise

    def can_write(self) -> None:
        """StoreDown unless something can be written, now, and there is room for more: a log that
        was emptied takes some pages even on a full disk.
        """
        folder = self.path.resolve().parent
        with failing_as_store_down(_ERRORS), tempfile.TemporaryFile(dir=folder) as room:
            room.write(bytes(limits.ROOM))
            room.flush()
            os.fsync(room.fileno())
        with self.writing():
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            self.connection.execute(f"PRAGMA user_version = {version}")

    def erase_arrival_order(self, *keys: int, wait: bool = True) -> None:
        """The log, and the rows within a page, are in order of arrival: write the whole file anew,
        in the order of the ids. Other writers wait meanwhile.
        """
        with failing_as_store_down(_ERRORS):
            self._take_turn()
            try:
                self.connection.execute("VACUUM")
                patience = limits.LOCK_SECONDS if wait else _GLANCE
                self.connection.execute(f"PRAGMA busy_timeout = {1000 * patience:.0f}")
                if self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    raise StoreDown("another program reads the store (stop it first)")
            finally:
                try:
                    timeout = f"{1000 * limits.LOCK_SECONDS:.0f}"
                    self.connection.execute(f"PRAGMA busy_timeout = {timeout}")
                finally:
                    fcntl.flock(self._turn, fcntl.LOCK_UN)

    # ---- statements ------------------------------------------------------------------------------

    def _names(self, key: int | None) -> Mapping[str, str]:
        """All collections share the tables. Pending reports lie in a random order."""
        return _TABLES | {
            "own": f"collection = {key}",
            "new_waiting": f"{key}, randomblob(16), ?",
            "new_tally": f"{key}, ?",
            "new_published": f"{key}, ?",
        }

    def _execute(self, statement: str, values: Sequence[Value]) -> list[Row]:
        return self.connection.execute(statement, values).fetchall()

    def _stream(self, statement: str) -> Iterator[Row]:
        yield from self.connection.execute(statement)

    def insert_collection(self, name: str, document: str, keep: str) -> int | None:
        """The tally of a deleted collection stays, so that its key is not given again. A write
        transaction has locked everything: the name is free if the caller has found it so.
        """
        return self.connection.execute(
            "INSERT INTO collection VALUES "
            "((SELECT coalesce(max(collection), 0) + 1 FROM tally), ?, ?, ?, 1, '')",
            (name, document, keep),
        ).lastrowid

    def insert_reports(self, key: int, ids: list[bytes], reports: list[bytes] | None) -> set[bytes]:
        """Almost always all are new: try that first, and look for old ones only if it fails."""
        self.connection.execute("SAVEPOINT try")
        if self._try_insert(key, ids, reports) == len(ids):
            self.connection.execute("RELEASE try")
            return set()
        self.connection.execute("ROLLBACK TO try")
        old: set[bytes] = set()
        for start in range(0, len(ids), 500):
            batch = ids[start : start + 500]
            marks = ",".join("?" * len(batch))
            select = f"SELECT id FROM report WHERE collection = ? AND id IN ({marks})"
            old.update(id_ for (id_,) in self.connection.execute(select, [key, *batch]))
        fresh = [k for k, id_ in enumerate(ids) if id_ not in old]
        self._try_insert(key, [ids[k] for k in fresh], reports and [reports[k] for k in fresh])
        self.connection.execute("RELEASE try")
        return old

    def _try_insert(self, key: int, ids: list[bytes], reports: list[bytes] | None) -> int:
        """Returns how many were new. Questions have reports of their own sizes."""
        if reports is None:
            return self._insert_equal(key, ids, None)
        by_size: dict[int, list[int]] = {}
        for k, report in enumerate(reports):
            by_size.setdefault(len(report), []).append(k)
        return sum(
            self._insert_equal(key, [ids[k] for k in places], [reports[k] for k in places])
            for places in by_size.values()
        )

    def _insert_equal(self, key: int, ids: list[bytes], reports: list[bytes] | None) -> int:
        """The same of reports of one size, in one statement: with one each, Python would hand over
        its lock at every row.
        """
        if not ids:
            return 0
        values = {"rows": len(ids), "key": key, "ids": b"".join(ids)}
        columns = f":key, substr(:ids, {ID_SIZE} * i + 1, {ID_SIZE}), NULL"
        if reports is not None:
            size = len(reports[0])
            columns = columns.replace("NULL", f"substr(:reports, {size} * i + 1, {size})")
            values["reports"] = b"".join(reports)
        places = (
            "WITH RECURSIVE k (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < :rows)"
        )
        return self.connection.execute(
            f"INSERT OR IGNORE INTO report {places} SELECT {columns} FROM k", values
        ).rowcount

    def remove_tables(self, key: int) -> None:
        """An empty tally stays, so that the key is not given again."""
        self.connection.execute("UPDATE tally SET numbers = x'' WHERE collection = ?", (key,))


def sqlite_path(url: str) -> str:
    """The file that a store's URL names, if it names one."""
    return url.removeprefix("sqlite://").removeprefix("/") if "://" in url else url
