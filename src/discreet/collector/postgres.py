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
from discreet.collector.store import (
    Event,
    Store,
    StoreDown,
    failing_as,
    refuse_old_documents,
    unknown_version,
)
from discreet.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import psycopg

# Every collection has four tables of its own, so that one can be locked, written anew and dropped
# without the others; _KEY stands for its key. A migration uses this text: never change it, add a
# new one.
_OWN_TABLES = """
    CREATE TABLE discreet_report_KEY (id BYTEA PRIMARY KEY, report BYTEA);
    CREATE TABLE discreet_waiting_KEY (reports BYTEA NOT NULL);
    CREATE TABLE discreet_tally_KEY (numbers BYTEA NOT NULL);
    ALTER TABLE discreet_tally_KEY ALTER COLUMN numbers SET STORAGE EXTERNAL;
    CREATE TABLE discreet_published_KEY (numbers BYTEA NOT NULL);
"""
_ORDERS = {"report": "id", "waiting": "reports", "tally": "numbers", "published": "numbers"}

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
    f"""
    LOCK TABLE discreet_collection, discreet_report, discreet_waiting, discreet_tally,
        discreet_published IN ACCESS EXCLUSIVE MODE;
    ALTER TABLE discreet_collection ADD COLUMN moving TEXT NOT NULL DEFAULT '';
    DO $$
    DECLARE own TEXT; name TEXT; columns TEXT;
    BEGIN
        FOR own IN SELECT key::text FROM discreet_collection LOOP
            EXECUTE replace($tables${_OWN_TABLES}$tables$, '_KEY', '_' || own);
            FOR name, columns IN VALUES ('report', 'id, report'), ('waiting', 'reports'),
                    ('tally', 'numbers'), ('published', 'numbers') LOOP
                EXECUTE format('INSERT INTO discreet_%s_%s SELECT %s FROM discreet_%s '
                    'WHERE collection = %s ORDER BY 1', name, own, columns, name, own);
            END LOOP;
        END LOOP;
    END $$;
    DROP TABLE discreet_report, discreet_waiting, discreet_tally, discreet_published;
    """,
)
_LOCK = 0x64697363  # of migrations
_GLANCE = 0.1  # seconds that a reader waits who can do without


class PostgresStore(Store):
    """Tables whose names begin with discreet_. Collectors take turns at the lock of a collection.

    Locks are always taken in this order, so that nobody waits in a circle: the rows of
    discreet_collection by name, then a collection's report table, then its other tables.
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
            if 0 < version < len(MIGRATIONS):
                query = "SELECT name, document FROM discreet_collection ORDER BY name"
                refuse_old_documents(self._db.execute(query).fetchall())
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                self._db.execute(script.encode())
                self._db.execute("INSERT INTO discreet_schema VALUES (%s)", (number,))

    @property
    def _db(self) -> psycopg.Connection[Any]:
        """This thread's connection. What the server or the role sets by default is not trusted: in
        another isolation a transaction would not see what was committed before it got a lock.
        """
        import psycopg

        db: psycopg.Connection[Any] | None = getattr(self._local, "db", None)
        if db is None:
            db = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=limits.CONNECT_SECONDS,
                application_name="discreet",
            )
            db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
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
    def writing(self, patient: bool = False) -> Iterator[None]:
        """A transaction; its connection is dropped on any error, and before if the server has left
        meanwhile.
        """
        with failing_as(self._errors):
            if self._left():
                self._forget()
            try:
                with self._db.transaction():
                    if patient:
                        self._db.execute(_idle_limit(limits.READ_SECONDS))
                    yield
            except BaseException:
                self._forget()
                raise

    @contextmanager
    def reading(self, *names: str, wait: bool = True) -> Iterator[None]:
        """A snapshot. It may be idle for longer than a writer, who keeps others waiting."""
        with failing_as(self._errors):
            if self._left():
                self._forget()
            try:
                self._begin_reading(names, limits.READ_LOCK_SECONDS if wait else _GLANCE)
                try:
                    yield
                finally:
                    if not self._db.closed:
                        self._db.execute("ROLLBACK")
            except StoreDown:
                self._forget()
                raise
            except DataError:  # an answer, not a failure
                raise
            except BaseException:
                self._forget()
                raise

    def _begin_reading(self, names: tuple[str, ...], patience: float) -> None:
        """Begin a transaction that sees all of these collections. Their tables are locked before
        the snapshot is taken: a table that is written anew later looks empty to an older snapshot.
        """
        import psycopg

        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        begin += _idle_limit(limits.READ_SECONDS).decode()
        begin += f"; SET LOCAL lock_timeout = '{1000 * patience:.0f}ms'"
        while True:  # once, unless one of them is deleted or made meanwhile
            keys = self._keys(names)
            locks = [f"; LOCK TABLE discreet_report_{key} IN ACCESS SHARE MODE" for key in keys]
            try:
                self._db.execute("".join((begin, *locks)).encode())
            except psycopg.errors.UndefinedTable:
                self._db.execute("ROLLBACK")
                continue
            if self._keys(names) == keys:
                return
            self._db.execute("ROLLBACK")

    def _keys(self, names: tuple[str, ...]) -> list[int]:
        return [key for name in names if "\0" not in name for key, *_ in self._rows(name)]

    def _rows(
        self, name: str | None = None, lock: bool = False, only_open: bool = False
    ) -> list[tuple[Any, ...]]:
        query = "SELECT key, name, keep, open, moving FROM discreet_collection"
        if name is None:
            return self._db.execute(f"{query} ORDER BY name".encode()).fetchall()
        query += f" WHERE name = %s{' AND open' if only_open else ''}"
        query += " FOR NO KEY UPDATE" if lock else ""
        return self._db.execute(query.encode(), (name,)).fetchall()

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
            self._db.execute(_OWN_TABLES.replace("_KEY", f"_{row[0]}").encode())
            self._on(row[0], "INSERT INTO discreet_tally_KEY VALUES (%b)", numbers)
        return row is not None

    def _on(self, key: int, query: str, *values: Any) -> psycopg.Cursor[Any]:
        """Run a query on the tables of one collection; _KEY in it stands for the key."""
        query = query.replace("_KEY", f"_{key}")
        return self._db.execute(query.encode(), values, binary=True)

    def _set_open(self, key: int, is_open: bool) -> None:
        self._db.execute("UPDATE discreet_collection SET open = %s WHERE key = %s", (is_open, key))

    def _set_moving(self, key: int, moving: str) -> None:
        update = "UPDATE discreet_collection SET moving = %s WHERE key = %s"
        self._db.execute(update, (moving, key))

    def _insert_reports(
        self, key: int, ids: list[bytes], reports: list[bytes] | None
    ) -> set[bytes]:
        rest = "ON CONFLICT DO NOTHING RETURNING id"
        if reports is None:
            column = "(id) SELECT unnest(%b::bytea[])"
            new = self._on(key, f"INSERT INTO discreet_report_KEY {column} {rest}", ids)
        else:
            columns = "SELECT * FROM unnest(%b::bytea[], %b::bytea[])"
            new = self._on(key, f"INSERT INTO discreet_report_KEY {columns} {rest}", ids, reports)
        return set() if new.rowcount == len(ids) else set(ids) - {row[0] for row in new}

    def _insert_event(self, key: int, event: Event) -> None:
        insert = "INSERT INTO discreet_event (collection, time, what) VALUES (%s, %s, %s)"
        self._db.execute(insert, (key, *event))

    def _events(self, key: int) -> list[Event]:
        query = "SELECT time, what FROM discreet_event WHERE collection = %s ORDER BY key"
        return [Event(*row) for row in self._db.execute(query, (key,))]

    def _read_numbers(self, key: int) -> bytes:
        row = self._on(key, "SELECT numbers FROM discreet_tally_KEY").fetchone()
        return row[0] if row else b""  # which is damage

    def _write_numbers(self, key: int, numbers: bytes) -> None:
        self._on(key, "UPDATE discreet_tally_KEY SET numbers = %b", numbers)

    def _wait(self, key: int, reports: bytes) -> None:
        self._on(key, "INSERT INTO discreet_waiting_KEY VALUES (%b)", reports)

    def _who_waits(self, key: int) -> list[bytes]:
        return [row[0] for row in self._on(key, "SELECT reports FROM discreet_waiting_KEY")]

    def _forget_who_waits(self, key: int) -> None:
        self._on(key, "DELETE FROM discreet_waiting_KEY")

    def _read_published(self, key: int) -> bytes | None:
        row = self._on(key, "SELECT numbers FROM discreet_published_KEY").fetchone()
        return row and row[0]

    def _write_published(self, key: int, numbers: bytes) -> None:
        self._on(key, "DELETE FROM discreet_published_KEY")
        self._on(key, "INSERT INTO discreet_published_KEY VALUES (%b)", numbers)

    def _erase(self, key: int) -> None:
        for table in ("report", "waiting", "published"):
            self._on(key, f"DELETE FROM discreet_{table}_KEY")
        self._db.execute("DELETE FROM discreet_event WHERE collection = %s", (key,))

    def _remove(self, key: int) -> None:
        for table in _ORDERS:
            self._on(key, f"DROP TABLE discreet_{table}_KEY")
        self._db.execute("DELETE FROM discreet_collection WHERE key = %s", (key,))

    def _id_count(self, key: int) -> int:
        row = self._on(key, "SELECT count(*) FROM discreet_report_KEY").fetchone()
        assert row is not None
        return int(row[0])

    def _stored(self, key: int) -> Iterator[tuple[bytes, bytes]]:
        with self._db.cursor(name="reports", binary=True) as rows:
            rows.itersize = limits.BLOCK
            query = f"SELECT id, report FROM discreet_report_{key:d} ORDER BY id"
            yield from rows.execute(query.encode())

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

    def tidy(self, *keys: int, wait: bool = True) -> None:
        """Rows, dead ones too, lie in order of arrival, with their transaction's number: write the
        tables of these collections anew, each in the order of its content. Nobody else waits.
        """
        for key in keys:
            with self.writing():
                lock = "SELECT 1 FROM discreet_collection WHERE key = %s FOR NO KEY UPDATE"
                self._db.execute(lock, (key,))
                tables = ", ".join(f"discreet_{table}_KEY" for table in _ORDERS)
                self._on(key, f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
                for table, order in _ORDERS.items():
                    self._write_anew(key, f"discreet_{table}_KEY", order)

    def _write_anew(self, key: int, table: str, order: str) -> None:
        aside = f"{table}_tidy"
        create = f"CREATE TEMPORARY TABLE {aside} ON COMMIT DROP AS SELECT * FROM {table}"
        self._on(key, create)
        self._on(key, f"TRUNCATE {table}")
        self._on(key, f"INSERT INTO {table} SELECT * FROM {aside} ORDER BY {order}")

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


def _idle_limit(seconds: float) -> bytes:
    return f"SET LOCAL idle_in_transaction_session_timeout = '{seconds:.0f}s'".encode()
