"""What a store asks of a database. A new SQL database is a subclass of `Database` in a file of its
own: how it connects, its transactions, its schema, and the statements that differ.
"""

from __future__ import annotations

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

from discreet.collector.records import StoreDamaged, StoreDown
from discreet.errors import DataError
from discreet.survey import FORMAT

_FIRST_FORMAT = "discreet-mechanism/1"
Value = int | str | bytes | None
Row = tuple[Any, ...]


class Connection(Protocol):
    """What all drivers have in common."""

    def close(self) -> None:
        """End it; an open transaction is rolled back."""


C = TypeVar("C", bound=Connection)


class Database(ABC):
    """Transactions and a dialect of SQL. Threads may read and write at the same time, but only one
    of them writes.
    """

    mark = "?"  # for a value
    row_lock = ""  # added to a SELECT, locks its rows until the transaction ends

    def __init__(self, url: str, create: bool = True) -> None:
        """Open and migrate it; make it if it is not there, unless `create` is false."""
        self.url = url
        # Called when a connection is dropped: what we remember of it may have been rolled back.
        self.on_drop: Callable[[], None] = lambda: None
        self._translated: dict[tuple[str, int | None], str] = {}  # by statement and key

    def another(self) -> Self:
        """The same database, with connections of its own."""
        return type(self)(self.url)

    @abstractmethod
    def abort(self) -> None:
        """Make every thread that waits for the database fail with StoreDown. Called from another
        thread, when the database hangs.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections of all threads."""

    # ---- transactions ----------------------------------------------------------------------------

    @abstractmethod
    def writing(self, patient: bool = False) -> AbstractContextManager[None]:
        """A write transaction: committed durably at the end, rolled back on any error; StoreDown if
        the database fails. A `patient` one may compute for long; it must keep no one waiting.
        """

    @abstractmethod
    def reading(self, *names: str, wait: bool = True) -> AbstractContextManager[None]:
        """A consistent view, on a connection of its own; StoreDown if the database fails. Name the
        collections whose ids, reports or counts you read. `wait` says whether to wait for one that
        is being closed.
        """

    @abstractmethod
    def can_write(self) -> None:
        """StoreDown unless something can be written, now."""

    @abstractmethod
    def erase_arrival_order(self, *keys: int, wait: bool = True) -> None:
        """Leave no trace of the order in which the reports of these collections came, where the
        database would keep one. StoreDown if another program reads them for longer than we wait.
        """

    # ---- statements ------------------------------------------------------------------------------

    def run(self, statement: str, *values: Value, key: int | None = None) -> list[Row]:
        """Run a statement and return its rows. `?` stands for a value, and {tally} for
        the name that the table has here; `key` is that of the collection it is about.
        """
        return self._execute(self._translate(statement, key), values)

    def stream(self, statement: str, key: int) -> Iterator[Row]:
        """The same for rows that need not fit into memory."""
        return self._stream(self._translate(statement, key))

    def _translate(self, statement: str, key: int | None) -> str:
        """The statement in this dialect; made once, because every upload runs the same few."""
        text = self._translated.get((statement, key))
        if text is None:
            text = statement.format_map(self._names(key)).replace("?", self.mark)
            self._translated[statement, key] = text
        return text

    @abstractmethod
    def _names(self, key: int | None) -> Mapping[str, str]:
        """What stands for the fields of a statement:

        {collection}, {event}, {report}, {waiting}, {tally}, {published}: the tables;
        {own}: the condition for the rows of this collection in one of the last four;
        {new_waiting}, {new_tally}, {new_published}: the values of a new row, `?` for its content.
        """

    @abstractmethod
    def _execute(self, statement: str, values: Sequence[Value]) -> list[Row]: ...

    @abstractmethod
    def _stream(self, statement: str) -> Iterator[Row]: ...

    @abstractmethod
    def insert_collection(self, name: str, document: str, keep: str) -> int | None:
        """Insert an open collection, with tables of its own where it has any; returns its key, or
        None if there is one of this name. A key is never given twice, not even after the collection
        was deleted: other processes remember whose it was.
        """

    @abstractmethod
    def insert_reports(self, key: int, ids: list[bytes], reports: list[bytes] | None) -> set[bytes]:
        """Insert distinct ids in order, with their reports if they are kept; returns the ids that
        were there already.
        """

    @abstractmethod
    def remove_tables(self, key: int) -> None:
        """Remove what is left of an erased collection beside its row in {collection}."""


class ThreadedDatabase(Database, Generic[C]):
    """A database with one connection per thread."""

    def __init__(self, url: str, create: bool = True) -> None:
        super().__init__(url, create)
        self._local = threading.local()
        self._open: list[C] = []

    @property
    def connection(self) -> C:
        """This thread's connection."""
        connection = self._current
        if connection is None:
            connection = self._local.connection = self._connect()
            self._open.append(connection)
        return connection

    @property
    def _current(self) -> C | None:
        """This thread's connection, if it has one."""
        connection: C | None = getattr(self._local, "connection", None)
        return connection

    @abstractmethod
    def _connect(self) -> C: ...

    def drop_connection(self) -> None:
        """Drop this thread's connection after a failure: whatever it had begun is rolled back."""
        connection = self._current
        if connection is not None:
            self._local.connection = None
            self._open.remove(connection)
            self.on_drop()
            self._end(connection)

    def _end(self, connection: C) -> None:
        connection.close()

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._open:
            self._open.pop().close()
        self._local = threading.local()


# ---- versions ------------------------------------------------------------------------------------


def check_version(version: int, newest: int, run: Callable[[str], Iterable[Row]]) -> None:
    """Refuse a store that this discreet cannot migrate, before a byte is changed; `run` gives the
    rows of a statement.
    """
    if version > newest:
        raise DataError(
            f"the store has schema version {version}, this discreet knows up to {newest}; use the "
            "newer discreet"
        )
    if 0 < version < newest:
        refuse_old_documents(run("SELECT name, document FROM {collection} ORDER BY name"))


def refuse_old_documents(rows: Iterable[Row]) -> None:
    """StoreDamaged if one of these (name, document) has a format that this discreet cannot read."""
    for name, document in rows:
        try:
            written = json.loads(document)["format"]
        except (ValueError, TypeError, KeyError):
            continue  # it is damaged, not of another version
        if written == _FIRST_FORMAT:
            raise StoreDamaged(
                f'"{name}" was made by discreet 0.1: finish it with that version, or export it '
                "there"
            )
        if written != FORMAT:
            raise StoreDamaged(
                f'"{name}" has the format "{written}", this discreet reads "{FORMAT}": finish it '
                "with the version that made it"
            )


# ---- failures ------------------------------------------------------------------------------------


@contextmanager
def failing_as_store_down(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Raise the database's errors as StoreDown, with the first line of their text only."""
    try:
        yield
    except errors as error:
        lines = str(error).strip().splitlines()
        reason = without_password(lines[0]) if lines else type(error).__name__
        raise StoreDown(f"the store cannot be used: {reason}") from error


def without_password(text: str) -> str:
    """The same text; if it holds the address of a database, without the password."""
    text = re.sub(r"(//[^:/@\s]*):[^@\s]*@", r"\1:…@", text)
    return re.sub(r"(password\s*=\s*)\S+", r"\1…", text, flags=re.IGNORECASE)
