"""PostgreSQL through psycopg 3, for several collectors on several machines."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from discreet.collector import limits
from discreet.collector.database import (
    Row,
    ThreadedDatabase,
    Value,
    check_version,
    failing_as_store_down,
)
from discreet.collector.records import StoreDown
from discreet.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Row]

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
_GLANCE = 0.1  # seconds that a reader waits for what it can do without


class PostgresDatabase(ThreadedDatabase["Connection"]):
    """Tables whose names begin with discreet_. Collectors take turns at the lock of a collection.

    Locks are always taken in this order, so that nobody waits in a circle: the rows of
    discreet_collection by name, then a collection's report table, then its other tables.
    """

    mark, row_lock = "%s", " FOR NO KEY UPDATE"

    def __init__(self, url: str, create: bool = True) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("a PostgreSQL store", "serve") from None
        super().__init__(url, create)
        self._errors = (psycopg.Error, OSError)
        try:
            self._migrate()
        except StoreDown as error:
            raise StoreDown(f"the PostgreSQL store cannot be opened: {error}") from None

    def _migrate(self) -> None:
        with self.writing():
            db = self.connection
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            db.execute("CREATE TABLE IF NOT EXISTS discreet_schema (version INTEGER NOT NULL)")
            row = db.execute("SELECT max(version) FROM discreet_schema").fetchone()
            version = (row and row[0]) or 0
            check_version(version, len(MIGRATIONS), self.run)
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                db.execute(script.encode())
                db.execute("INSERT INTO discreet_schema VALUES (%s)", (number,))

    # ---- connections -----------------------------------------------------------------------------

    def _connect(self) -> Connection:
        """What the server or the role sets by default is not trusted: in another isolation a
        transaction would not see what was committed before it got a lock, and in another encoding
        names could not be written.
        """
        import psycopg

        db = psycopg.connect(
            self.url,
            autocommit=True,
            connect_timeout=limits.CONNECT_SECONDS,
            application_name="discreet",
            client_encoding="UTF8",
        )
        db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        db.execute("SET synchronous_commit = on")
        db.execute(f"SET lock_timeout = '{limits.LOCK_SECONDS:.0f}s'")
        db.execute(
            f"SET idle_in_transaction_session_timeout = '{limits.LOCK_SECONDS:.0f}s'"
        )  # a collector that froze does not stop the others
        return db

    def _drop_if_server_left(self) -> None:
        """An idle connection has something to read only if the server has gone."""
        db = self._current
        if db is None:
            return
        poll = select.poll()
        if not db.closed:
            poll.register(db.fileno(), select.POLLIN)
        if db.closed or poll.poll(0):
            self.drop_connection()

    def abort(self) -> None:
        """Cut the connections: a server that hangs would not hear anything else."""
        for db in list(self._open):
            with suppress(Exception), socket.socket(fileno=os.dup(db.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    # ---- transactions ----------------------------------------------------------------------------

    @contextmanager
    def writing(self, patient: bool = False) -> Iterator[None]:
        """A transaction; its connection is dropped on any error, and before if the server has left
        meanwhile.
        """
        with failing_as_store_down(self._errors):
            self._drop_if_server_left()
            try:
                with self.connection.transaction():
                    if patient:
                        self.connection.execute(_idle_limit(limits.READ_SECONDS))
                    yield
            except BaseException:
                self.drop_connection()
                raise

    @contextmanager
    def reading(self, *names: str, wait: bool = True) -> Iterator[None]:
        """A snapshot. It may be idle for longer than a writer, who keeps others waiting."""
        with failing_as_store_down(self._errors):
            self._drop_if_server_left()
            try:
                self._begin_reading(names, limits.READ_LOCK_SECONDS if wait else _GLANCE)
                try:
                    yield
                finally:
                    if not self.connection.closed:
                        self.connection.execute("ROLLBACK")
            except StoreDown:
                self.drop_connection()
                raise
            except DataError:  # an answer, not a failure
                raise
            except BaseException:
                self.drop_connection()
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
                self.connection.execute("".join((begin, *locks)).encode())
            except psycopg.errors.UndefinedTable:
                self.connection.execute("ROLLBACK")
                continue
            if self._keys(names) == keys:
                return
            self.connection.execute("ROLLBACK")

    def _keys(self, names: tuple[str, ...]) -> list[int]:
        select = "SELECT key FROM {collection} WHERE name = ?"
        return [key for name in names if "\0" not in name for (key,) in self.run(select, name)]

    def can_write(self) -> None:
        """StoreDown unless something can be written, now, and there is room for more: rows that do
        not fit into the least working memory go to a temporary file on the database's disk.
        """
        with self.writing():
            db = self.connection
            db.execute("SET LOCAL work_mem = '64kB'")
            db.execute("SELECT count(*) FROM generate_series(1, %s)", (limits.ROOM // 24,))
            db.execute("UPDATE discreet_schema SET version = version WHERE version = 1")

    def erase_arrival_order(self, *keys: int, wait: bool = True) -> None:
        """Rows, dead ones too, lie in order of arrival, with their transaction's number: write the
        tables of these collections anew, each in the order of its content. No one else waits.
        """
        for key in keys:
            with self.writing():
                self.run(f"SELECT 1 FROM {{collection}} WHERE key = ?{self.row_lock}", key)
                tables = ", ".join(f"{{{table}}}" for table in _ORDERS)
                self.run(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE", key=key)
                for table, order in _ORDERS.items():
                    self._write_anew(key, f"{{{table}}}", order)

    def _write_anew(self, key: int, table: str, order: str) -> None:
        aside = f"{table}_tidy"
        create = f"CREATE TEMPORARY TABLE {aside} ON COMMIT DROP AS SELECT * FROM {table}"
        self.run(create, key=key)
        self.run(f"TRUNCATE {table}", key=key)
        self.run(f"INSERT INTO {table} SELECT * FROM {aside} ORDER BY {order}", key=key)

    # ---- statements ------------------------------------------------------------------------------

    def _names(self, key: int | None) -> Mapping[str, str]:
        """Every collection has tables of its own: all of their rows are its rows."""
        return {
            "collection": "discreet_collection",
            "event": "discreet_event",
            **{table: f"discreet_{table}_{key}" for table in _ORDERS},
            **{f"new_{table}": "?" for table in _ORDERS},
            "own": "TRUE",
        }

    def _execute(self, statement: str, values: Sequence[Value]) -> list[Row]:
        cursor = self.connection.execute(statement.encode(), values, binary=True)
        result = cursor.pgresult  # `description` would make an object of every column
        return cursor.fetchall() if result and result.nfields else []

    def _stream(self, statement: str) -> Iterator[Row]:
        with self.connection.cursor(name="reports", binary=True) as rows:
            rows.itersize = limits.BLOCK
            yield from rows.execute(statement.encode())

    def insert_collection(self, name: str, document: str, keep: str) -> int | None:
        """With its own tables; no key is given twice, because the table counts them itself."""
        row = self.connection.execute(
            "INSERT INTO discreet_collection (name, document, keep, open) VALUES (%s, %s, %s, "
            "true) "
            "ON CONFLICT DO NOTHING RETURNING key",
            (name, document, keep),
        ).fetchone()
        if row is None:
            return None
        self.connection.execute(_OWN_TABLES.replace("_KEY", f"_{row[0]}").encode())
        return int(row[0])

    def insert_reports(self, key: int, ids: list[bytes], reports: list[bytes] | None) -> set[bytes]:
        """In one statement."""
        columns, values = "(id) SELECT unnest(%b::bytea[])", [ids]
        if reports is not None:
            columns, values = "SELECT * FROM unnest(%b::bytea[], %b::bytea[])", [ids, reports]
        insert = f"INSERT INTO discreet_report_{key} {columns} ON CONFLICT DO NOTHING RETURNING id"
        new = self.connection.execute(insert.encode(), values, binary=True)
        return set() if new.rowcount == len(ids) else set(ids) - {id_ for (id_,) in new}

    def remove_tables(self, key: int) -> None:
        """Drop the tables of the collection."""
        for table in _ORDERS:
            self.run(f"DROP TABLE {{{table}}}", key=key)


def _idle_limit(seconds: float) -> bytes:
    return f"SET LOCAL idle_in_transaction_session_timeout = '{seconds:.0f}s'".encode()
