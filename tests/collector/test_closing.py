"""Closing a collection erases the order of its reports and leaves all others alone."""

import threading
import time
from contextlib import closing, suppress

import psycopg
import pytest
from collecting import ids, people, survey, until, upload
from postgres import GROUP

from discreet.collector import limits
from discreet.collector.store import Outcome, StoreDown, open_store

ISOLATIONS = ["read committed", "repeatable read", "serializable"]
pytestmark = GROUP


@pytest.fixture(params=ISOLATIONS)
def strict(request, database):
    """A database with this default isolation, and without durable commits."""
    with psycopg.connect(database, autocommit=True) as db:
        name = db.execute("SELECT current_database()").fetchone()[0]
        db.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{request.param}'")
        db.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    return database


@pytest.fixture
def two(database):
    """Two collections in one database, with ten reports each, and a second connection."""
    with closing(open_store(database)) as store, closing(open_store(database)) as other:
        for name in ("first", "second"):
            store.create(survey("bits", name))
            store.add([upload(survey("bits", name), ids(10))])
        yield store, other


def waits(database):
    """Whether somebody waits for a lock."""
    with psycopg.connect(database) as db:
        return db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0] > 0


def in_thread(work, *arguments):
    """Work that may wait; its outcome is in the list once it is done."""
    done = []

    def run():
        try:
            done.append(work(*arguments))
        except Exception as error:
            done.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


def test_what_every_transaction_assumes(strict):
    """Writers see what was committed before each statement, so that a lock is enough to be alone;
    readers see one moment. The settings of the database are not trusted.
    """
    with closing(open_store(strict)) as store:

        def setting(name):
            return store.database.connection.execute(f"SHOW {name}").fetchone()[0]

        with store.writing():
            assert setting("transaction_isolation") == "read committed"
            assert setting("synchronous_commit") == "on"
            assert setting("lock_timeout") == f"{limits.LOCK_SECONDS:.0f}s"
            assert setting("idle_in_transaction_session_timeout") == f"{limits.LOCK_SECONDS:.0f}s"
        with store.reading():
            assert setting("transaction_isolation") == "repeatable read"
            assert setting("transaction_read_only") == "on"


@pytest.mark.parametrize(
    "setting",
    ["client_encoding = 'LATIN1'", "client_encoding = 'SQL_ASCII'", "bytea_output = 'escape'"],
)
def test_texts_and_bytes_come_back_whatever_the_database_sets(database, setting):
    with psycopg.connect(database, autocommit=True) as db:
        name = db.execute("SELECT current_database()").fetchone()[0]
        db.execute(f"ALTER DATABASE {name} SET {setting}")
    made = survey("bits", "für 日本")
    with closing(open_store(database)) as store:
        store.create(made, "reports")
        store.add([upload(made, ids(9))])
    with closing(open_store(database)) as store:
        (collection,) = store.collections()
        assert collection.survey.fingerprint == made.fingerprint
        assert store.tally(made.name).n == 9 and store.find_damage(made.name) == []
    # twin: a connection that takes what the database sets cannot say the name
    if "encoding" in setting:
        with psycopg.connect(database) as db, suppress(UnicodeEncodeError):
            db.execute("SELECT %s", (made.name,))
            (found,) = db.execute("SELECT name FROM discreet_collection").fetchone()
            assert found != made.name


def test_closing_behind_a_slow_reader_loses_nothing_of_the_others(strict):
    """The reader keeps `close` waiting; what others are told meanwhile is counted."""
    with (
        closing(open_store(strict)) as store,
        closing(open_store(strict)) as other,
        closing(open_store(strict)) as reader,
    ):
        made = {name: survey("bits", name) for name in ("first", "second")}
        for one in made.values():
            store.create(one)
        store.add([upload(made["first"], ids(5))])
        accepted = 0
        with reader.snapshot("first"):
            thread, done = in_thread(store.close_collection, "first")
            until(lambda: waits(strict), "close waits for the reader")
            for _ in range(20):
                (outcome,) = other.add([upload(made["second"], ids(7))])
                accepted += outcome.accepted
        thread.join()
        assert done == [None] and accepted == 140
        assert other.tally("second").n == accepted and other.tally("first").n == 5
        assert other.find_damage("second") == other.find_damage("first") == []


def test_while_one_collection_is_closed_the_others_are_counted_and_read(two, monkeypatch):
    """In the middle of writing one anew. Whoever posts to the closed one is told so at once."""
    store, other = two
    second, seen, write_anew = survey("bits", "second"), [], store.database._write_anew

    def between(*arguments):
        late = [upload(survey("bits", "first"), ids(1)), upload(second, ids(3))]
        told, n = other.add(late), other.tally("second").n
        seen.append((told, n, [size for _, size in other.report_counts(9)]))
        write_anew(*arguments)

    monkeypatch.setattr(store.database, "_write_anew", between)
    store.close_collection("first")
    told = [Outcome(0, 0, "closed"), Outcome(3, 0)]
    assert seen == [(told, 10 + 3 * k, [None, 10 + 3 * k]) for k in range(1, 5)]
    assert store.find_damage("first") == store.find_damage("second") == []


def test_a_reader_of_another_collection_does_not_keep_one_from_closing(two):
    store, other = two
    with other.snapshot("second") as (tally, _):
        store.close_collection("first")
        assert tally.n == 10 and store.collection("first").closed_by_organiser


def test_a_reader_of_the_collection_keeps_close_from_claiming_too_much(database, monkeypatch):
    monkeypatch.setattr(limits, "LOCK_SECONDS", 1.0)
    with closing(open_store(database)) as store, closing(open_store(database)) as reader:
        store.create(survey())
        store.add([upload(survey(), ids(5))])
        with reader.snapshot("bits") as (tally, _):
            with pytest.raises(StoreDown, match="is closed .* not erased yet: .*close it again"):
                store.close_collection("bits")
            assert store.collection("bits").closed_by_organiser and tally.n == 5
        store.close_collection("bits")
        assert store.tally("bits").n == 5


def test_two_that_close_at_once_do_not_wait_for_each_other(two, database, monkeypatch):
    """One is in the middle of counting those that wait when the other writes its tables anew."""
    store, other = two
    pending, running = store.counts.tables.pending, []

    def between(key):
        if not running:
            running.append(in_thread(other.close_collection, "second"))
            until(lambda: running[0][1] or waits(database), "the other is done, or waits")
        return pending(key)

    monkeypatch.setattr(store.counts.tables, "pending", between)
    store.close_collection("first")
    thread, done = running[0]
    thread.join()
    assert done == [None]
    assert [store.tally(name).n for name in ("first", "second")] == [10, 10]


def test_many_close_reopen_and_add_at_once(two):
    store, other = two
    accepted = {"first": 10, "second": 10}

    def close_often(mine, name):
        for _ in range(20):
            mine.close_collection(name)
            mine.reopen_collection(name)
            (found,) = mine.add([upload(survey("bits", name), ids(1))])
            accepted[name] += found.accepted

    for names in (("first", "second"), ("first", "first")):
        running = [in_thread(close_often, *pair) for pair in zip((store, other), names)]
        for thread, _ in running:
            thread.join()
        assert [done for _, done in running] == [[None]] * 2
    assert {name: store.tally(name).n for name in accepted} == accepted
    assert store.find_damage("first") == store.find_damage("second") == []


def test_a_reader_may_compute_for_longer_than_a_writer_may_be_idle(two):
    """An export or a recount computes between two blocks. A writer would keep others waiting."""
    store, _ = two
    store.database.connection.execute("SET idle_in_transaction_session_timeout = '100ms'")
    with store.snapshot("first") as (tally, _):
        time.sleep(0.5)
        assert store.counts.tables.count_ids(store.catalogue.get("first").key) == tally.n == 10
    with pytest.raises(StoreDown, match="idle-in-transaction"), store.writing():
        time.sleep(0.5)
    store.database.connection.execute("SET idle_in_transaction_session_timeout = '100ms'")
    with store.writing(patient=True):  # for a copy, which nobody waits for
        time.sleep(0.5)
    assert store.tally("first").n == 10


def test_a_reader_that_begins_while_a_collection_is_written_anew_sees_all_of_it(two, database):
    """Its view is not older than the new table, which would look empty to it."""
    _, other = two
    with psycopg.connect(database) as db:
        (table,) = db.execute(
            "SELECT min(relname) FROM pg_class WHERE relkind = 'r' AND relname ~ '_report'"
        ).fetchone()
        db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        thread, done = in_thread(other.tally, "first")
        until(lambda: waits(database), "the reader waits")
        db.execute(f"CREATE TEMPORARY TABLE aside AS SELECT * FROM {table}")
        db.execute(f"TRUNCATE {table}")
        db.execute(f"INSERT INTO {table} SELECT * FROM aside")
        db.commit()
    thread.join()
    assert done[0].n == 10 and other.find_damage("first") == []


def rows_in_file(path):
    """The rows of a table's file, dead ones too: every page counts its own in its head."""
    raw = path.read_bytes()
    lower = [int.from_bytes(raw[k + 12 : k + 14], "little") for k in range(0, len(raw), 8192)]
    return sum((end - 24) // 4 for end in lower)


def test_a_closed_collection_has_no_old_rows_whatever_the_others_do(two, database, postgres):
    """No dead row is left in its tables; those that live were written by one transaction, in the
    order of the ids. Another collection goes on meanwhile.
    """
    store, other = two
    first = store.collection("first")
    rows = people(first.survey, 30)

    def in_files():
        postgres.execute("CHECKPOINT")
        tables = [f"discreet_{x}_{first.key}" for x in ("report", "tally", "waiting", "published")]
        with psycopg.connect(database) as db:
            path = "SELECT pg_relation_filepath(%s)"
            files = [db.execute(path, (table,)).fetchone()[0] for table in tables]
        return [rows_in_file(postgres.data / file) for file in files]

    for k in range(30):
        store.add([upload(first.survey, ids(1), rows[k : k + 1])])
        other.add([upload(survey("bits", "second"), ids(1))])
        if k % 3 == 0:
            with store.writing():
                store.counts.count_pending(first)
    report, tally, waiting, _ = in_files()
    assert report == 40 and tally > 1 and waiting > 0  # so they would be seen
    store.close_collection("first")
    other.add([upload(survey("bits", "second"), ids(1))])
    assert in_files() == [40, 1, 0, 0]
    with psycopg.connect(database) as db:
        listed = f"SELECT id, xmin::text FROM discreet_report_{first.key} ORDER BY ctid"
        found = db.execute(listed, binary=True).fetchall()
    assert [id_ for id_, _ in found] == sorted(id_ for id_, _ in found)
    assert len(found) == 40 and len({transaction for _, transaction in found}) == 1
