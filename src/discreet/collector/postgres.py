"""The store for several collectors on several machines: PostgreSQL through psycopg 3."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.collector import limits
from discreet.collector.store import Event, Store, StoreDown, failing_as, unknown_version
from discreet.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import psycopg

# Every entry brings a store from the version before it to its own; entries are never changed, only
# added.
MIGRATIONS = (
    """
    CREATE TABLE discreet_collection (
        key INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL UNIQUE, document TEXT NOT NULL,
        keep TEXT NOT NULL, open BOOLEAN NOT NULL
    );
    CREATE TABLE discreet_tally (
        collection INTEGER PRIMARY KEY REFERENCES discreet_collection (key), numbers BYTEA NOT NULL
    );
    ALTER TABLE discreet_tally ALTER COLUMN numbers SET STORAGE EXTERNAL;
    CREATE TABLE discreet_report (
        collection INTEGER NOT NULL, id BYTEA NOT NULL, report BYTEA,
        CONSTRAINT discreet_report_id PRIMARY KEY (collection, id)
    );
    """,
    """
    CREATE TABLE discreet_waiting (collection INTEGER NOT NULL, reports BYTEA NOT NULL);
    CREATE INDEX discreet_waiting_collection ON discreet_waiting (collection);
    CREATE TABLE discreet_published (collection INTEGER PRIMARY KEY, numbers BYTEA NOT NULL);
    """,
    """
    CREATE TABLE discreet_event (
        key INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection INTEGER NOT NULL,
        time TEXT NOT NULL, what TEXT NOT NULL
    );
    """,
)
_LOCK = 0x64697363  # of migrations
_TIDY = 0x74696479  # of writing tables anew


class PostgresStore(Store):
    """Tables whose names begin with discreet_. Collectors take turns at the lock of a
    collection.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("a PostgreSQL store", "serve") from None
        super().__init__()
        self._url, self._errors = url, (psycopg.Error, OSError)
        self._local = threading.local()
        self._open: list[psycopg.Connection[Any]] = []
        try:
            self._migrate()
        except StoreDown as error:
            raise StoreDown(f"the PostgreSQL store cannot be opened: {error}") from None

    def _migrate(self) -> None:
        with self.writing():
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS discreet_schema (version INTEGER NOT NULL)"
            )
            row = self._db.execute("SELECT max(version) FROM discreet_schema").fetchone()
            version = (row and row[0]) or 0
            if version > len(MIGRATIONS):
                raise unknown_version(version, len(MIGRATIONS))
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                self._db.execute(script.encode())
                self._db.execute("INSERT INTO discreet_schema VALUES (%s)", (number,))

    @property
    def _db(self) -> psycopg.Connection[Any]:
        """This thread's connection; the role's own synchronous_commit is not trusted."""
        import psycopg

        db: psycopg.Connection[Any] | None = getattr(self._local, "db", None)
        if db is None:
            db = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=limits.CONNECT_SECONDS,
                application_name="discreet",
            )
            db.execute("SET synchronous_commit = on")
            db.execute(f"SET lock_timeout = '{limits.LOCK_SECONDS:.0f}s'")
            db.execute(
                f"SET idle_in_transaction_session_timeout = '{limits.LOCK_SECONDS:.0f}s'"
            )  # a collector that froze does not stop the others
            self._local.db = db
            self._open.append(db)
        return db

    def _forget(self) -> None:
        db: psycopg.Connection[Any] | None = getattr(self._local, "db", None)
        if db is not None:
            self._local.db = None
            self._open.remove(db)
            self._mechanisms.clear()  # one of them may have been rolled back
            self._waiting.clear()
            db.close()

    def _left(self) -> bool:
        """Whether an idle connection has something to read: that the server has gone."""
        db: psycopg.Connection[Any] | None = getattr(self._local, "db", None)
        if db is None or db.closed:
            return db is not None
        poll = select.poll()
        poll.register(db.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction; its connection is dropped on any error, and before if the server has left
        meanwhile.
        """
        with failing_as(self._errors):
            if self._left():
                self._forget()
            try:
                with self._db.transaction():
                    yield
            except BaseException:
                self._forget()
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A snapshot; never while the tables are written anew, which an old one would see empty."""
        with failing_as(self._errors):
            if self._left():
                self._forget()
            try:
                self._db.execute("SELECT pg_advisory_lock_shared(%s)", (_TIDY,))
                self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    yield
                finally:
                    if not self._db.closed:
                        self._db.execute("ROLLBACK")
                        self._db.execute("SELECT pg_advisory_unlock_shared(%s)", (_TIDY,))
            except StoreDown:
                self._forget()
                raise
            except DataError:  # an answer, not a failure
                raise
            except BaseException:
                self._forget()
                raise

    def _rows(self, name: str | None = None, lock: bool = False) -> list[tuple[Any, ...]]:
        query = "SELECT key, name, keep, open FROM discreet_collection"
        if name is None:
            return self._db.execute(f"{query} ORDER BY name").fetchall()
        return self._db.execute(
            f"{query} WHERE name = %s{' FOR NO KEY UPDATE' if lock else ''}", (name,)
        ).fetchall()

    def _document(self, key: int) -> str:
        row = self._db.execute(
            "SELECT document FROM discreet_collection WHERE key = %s", (key,)
        ).fetchone()
        assert row is not None
        return row[0]

    def _insert_collection(self, name: str, document: str, keep: str, numbers: bytes) -> bool:
        row = self._db.execute(
            "INSERT INTO discreet_collection (name, document, keep, open) VALUES (%s, %s, %s, "
            "true) "
            "ON CONFLICT DO NOTHING RETURNING key",
            (name, document, keep),
        ).fetchone()
        if row:
            self._db.execute("INSERT INTO discreet_tally VALUES (%s, %s)", (row[0], numbers))
        return row is not None

    def _set_open(self, key: int, is_open: bool) -> None:
        self._db.execute("UPDATE discreet_collection SET open = %s WHERE key = %s", (is_open, key))

    def _insert_reports(
        self, key: int, ids: list[bytes], reports: list[bytes] | None
    ) -> set[bytes]:
        if reports is None:
            new = self._db.execute(
                "INSERT INTO discreet_report (collection, id) SELECT %s, unnest(%b::bytea[]) ON "
                "CONFLICT DO NOTHING RETURNING id",
                (key, ids),
                binary=True,
            )
        else:
            new = self._db.execute(
                "INSERT INTO discreet_report SELECT %s, * FROM unnest(%b::bytea[], %b::bytea[]) "
                "ON CONFLICT DO NOTHING RETURNING id",
                (key, ids, reports),
                binary=True,
            )
        return set() if new.rowcount == len(ids) else set(ids) - {row[0] for row in new}

    def _insert_event(self, key: int, event: Event) -> None:
        insert = "INSERT INTO discreet_event (collection, time, what) VALUES (%s, %s, %s)"
        self._db.execute(insert, (key, *event))

    def _events(self, key: int) -> list[Event]:
        query = "SELECT time, what FROM discreet_event WHERE collection = %s ORDER BY key"
        return [Event(*row) for row in self._db.execute(query, (key,))]

    def _read_numbers(self, key: int) -> bytes:
        row = self._db.execute(
            "SELECT numbers FROM discreet_tally WHERE collection = %s", (key,), binary=True
        ).fetchone()
        assert row is not None
        return row[0]

    def _write_numbers(self, key: int, numbers: bytes) -> None:
        self._db.execute(
            "UPDATE discreet_tally SET numbers = %b WHERE collection = %s", (numbers, key)
        )

    def _wait(self, key: int, reports: bytes) -> None:
        self._db.execute("INSERT INTO discreet_waiting VALUES (%s, %b)", (key, reports))

    def _who_waits(self, key: int) -> list[bytes]:
        query = "SELECT reports FROM discreet_waiting WHERE collection = %s"
        return [row[0] for row in self._db.execute(query, (key,), binary=True)]

    def _forget_who_waits(self, key: int) -> None:
        self._db.execute("DELETE FROM discreet_waiting WHERE collection = %s", (key,))

    def _read_published(self, key: int) -> bytes | None:
        query = "SELECT numbers FROM discreet_published WHERE collection = %s"
        row = self._db.execute(query, (key,), binary=True).fetchone()
        return row and row[0]

    def _write_published(self, key: int, numbers: bytes) -> None:
        self._db.execute(
            "INSERT INTO discreet_published VALUES (%s, %b) "
            "ON CONFLICT (collection) DO UPDATE SET numbers = EXCLUDED.numbers",
            (key, numbers),
        )

    def _erase(self, key: int) -> None:
        for table in ("report", "waiting", "published", "event"):
            self._db.execute(f"DELETE FROM discreet_{table} WHERE collection = %s".encode(), (key,))

    def _remove(self, key: int) -> None:
        self._db.execute("DELETE FROM discreet_tally WHERE collection = %s", (key,))
        self._db.execute("DELETE FROM discreet_collection WHERE key = %s", (key,))

    def _id_count(self, key: int) -> int:
        query = "SELECT count(*) FROM discreet_report WHERE collection = %s"
        row = self._db.execute(query, (key,)).fetchone()
        assert row is not None
        return int(row[0])

    def _stored(self, key: int) -> Iterator[tuple[bytes, bytes]]:
        with self._db.cursor(name="reports", binary=True) as rows:
            rows.itersize = limits.BLOCK
            yield from rows.execute(
                "SELECT id, report FROM discreet_report WHERE collection = %s ORDER BY id", (key,)
            )

    def ping(self) -> None:
        """StoreDown unless the server answers."""
        with self.reading():
            self._db.execute("SELECT 1 FROM discreet_schema").fetchone()

    def can_write(self) -> None:
        """StoreDown unless something can be written, now, and there is room for more: rows that do
        not fit into the least working memory go to a temporary file on the database's disk.
        """
        with self.writing():
            self._db.execute("SET LOCAL work_mem = '64kB'")
            self._db.execute("SELECT count(*) FROM generate_series(1, %s)", (limits.ROOM // 24,))
            self._db.execute("UPDATE discreet_schema SET version = version WHERE version = 1")

    def tidy(self, wait: bool = True) -> None:
        """Rows, dead ones too, lie in order of arrival, with their transaction's number: write all
        tables anew, each in the order of its content, at once.
        """
        tables = {"report": "collection, id", "waiting": "collection, reports", "tally": "1"}
        tables["published"] = "1"
        with self.writing():
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (_TIDY,))
            for name, order in tables.items():
                table, aside = f"discreet_{name}", f"discreet_tidy_{name}"
                self._db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
                self._db.execute(
                    f"CREATE TEMPORARY TABLE {aside} ON COMMIT DROP AS SELECT * FROM "
                    f"{table}".encode()
                )
                self._db.execute(f"TRUNCATE {table}".encode())
                self._db.execute(
                    f"INSERT INTO {table} SELECT * FROM {aside} ORDER BY {order}".encode()
                )

    def another(self) -> PostgresStore:
        """The same database."""
        return PostgresStore(self._url)

    def abort(self) -> None:
        """Cut the connections: a server that hangs would not hear anything else."""
        for db in list(self._open):
            with suppress(Exception), socket.socket(fileno=os.dup(db.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._open:
            self._open.pop().close()
        self._local = threading.local()
