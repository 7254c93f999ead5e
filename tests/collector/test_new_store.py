"""A store for another SQL database is one short class and a line: DuckDB, as a trial."""

from contextlib import contextmanager

import duckdb
import pytest
from collecting import ids, people, survey, upload

from discreet.collector import store as stores
from discreet.collector.copying import copy
from discreet.collector.database import ThreadedDatabase, failing_as_store_down
from discreet.collector.moving import move
from discreet.collector.store import Outcome, StoreDown, open_store
from discreet.errors import DataError

TABLES = """
    CREATE SEQUENCE keys;
    CREATE SEQUENCE times;
    CREATE TABLE collection (key INTEGER DEFAULT nextval('keys'), name TEXT UNIQUE, document TEXT,
        keep TEXT, open BOOLEAN DEFAULT true, moving TEXT DEFAULT '');
    CREATE TABLE event (key INTEGER DEFAULT nextval('times'), collection INTEGER, time TEXT,
        what TEXT);
    CREATE TABLE report (collection INTEGER, id BLOB, report BLOB, UNIQUE (collection, id));
    CREATE TABLE waiting (collection INTEGER, reports BLOB);
    CREATE TABLE tally (collection INTEGER, numbers BLOB);
    CREATE TABLE published (collection INTEGER, numbers BLOB);
"""


class DuckDatabase(ThreadedDatabase):
    """In memory, for one thread."""

    def _connect(self):
        connection = duckdb.connect()
        connection.execute(TABLES)
        return connection

    @contextmanager
    def writing(self, patient=False):
        with failing_as_store_down((duckdb.Error,)):
            self.connection.execute("BEGIN")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                self.connection.execute("ROLLBACK")
                self.on_drop()
                raise

    def reading(self, *names, wait=True):
        return self.writing()

    def can_write(self):
        pass

    def erase_arrival_order(self, *keys, wait=True):
        pass

    def abort(self):
        self.connection.interrupt()

    def _names(self, key):
        tables = ("collection", "event", "report", "waiting", "tally", "published")
        return {table: table for table in tables} | {
            "own": f"collection = {key}", **{f"new_{table}": f"{key}, ?" for table in tables}
        }  # fmt: skip

    def _execute(self, statement, values):
        return self.connection.execute(statement, values).fetchall()

    def _stream(self, statement):
        yield from self._execute(statement, ())

    def insert_collection(self, name, document, keep):
        insert = "INSERT INTO collection (name, document, keep) VALUES (?, ?, ?)"
        rows = self._execute(
            f"{insert} ON CONFLICT DO NOTHING RETURNING key", (name, document, keep)
        )
        return rows[0][0] if rows else None

    def insert_reports(self, key, ids, reports):
        insert = "INSERT INTO report VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"
        rows = zip(ids, reports or [None] * len(ids), strict=True)
        return {id_ for id_, report in rows if not self._execute(insert, (key, id_, report))}

    def remove_tables(self, key):
        self._execute("DELETE FROM tally WHERE collection = ?", (key,))


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setitem(stores.DATABASES, "duckdb", DuckDatabase)
    opened = open_store("duckdb://memory")
    yield opened
    opened.close()


@pytest.mark.parametrize("keep", ["counts", "reports"])
def test_a_store_is_a_dialect_and_its_name(store, keep, tmp_path):
    made, rows = survey(), people(survey(), 60)
    store.create(made, keep)
    sent = upload(made, ids(60), rows)
    assert store.add([sent]) == [Outcome(60, 0)] and store.add([sent]) == [Outcome(0, 60)]
    assert store.tally("bits") == store.published("bits")
    assert store.tally("bits").question(0) == made.mechanism.tally(rows)
    assert store.find_damage("bits") == [] and store.report_counts(1)[0][1] == 60
    target = open_store(str(tmp_path / "target"))
    assert copy(store, target) == {"bits": 60}
    with pytest.raises(DataError, match='has a collection "bits" already'):
        move(store, target)
    target.close_collection("bits")
    target.delete_collection("bits")
    assert move(store, target) == {"bits": 60}
    assert store.collection("bits").state == "closed" and target.collection("bits").state == "open"
    assert [event.what for event in store.history("bits")] == [
        "closed",
        "reopened",
        "closed",
        "moved",
    ]
    with pytest.raises(DataError, match="was moved to another store"):
        store.reopen_collection("bits")
    store.delete_collection("bits")
    assert store.collections() == [] and store.create(made).key == 2
    target.close()


def test_what_the_database_says_is_one_sentence(store):
    with pytest.raises(StoreDown, match="the store cannot be used: .*nowhere"), store.writing():
        store.database.run("SELECT 1 FROM nowhere")
