"""Both stores: what they count, what they keep, what they refuse, and what they still know
afterwards.
"""

import fcntl
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner
from collecting import (
    DISCREET,
    KINDS,
    ids,
    long_survey,
    mechanism,
    people,
    policy,
    spoiled,
    survey,
    until,
    upload,
)
from postgres import GROUP

import discreet as d
from discreet.cli import main
from discreet.collector import limits
from discreet.collector import postgres as postgres_store
from discreet.collector import sqlite as sqlite_store
from discreet.collector.checksums import checked, with_checksum
from discreet.collector.copying import backup
from discreet.collector.database import failing_as_store_down, refuse_old_documents
from discreet.collector.store import (
    NoCollection,
    Outcome,
    StoreDamaged,
    StoreDown,
    open_store,
    without_password,
)
from discreet.errors import DataError, DiscreetError
from discreet.estimates.fakes import oddities
from discreet.survey import about
from discreet.survey.about import About

STORES = ["sqlite", pytest.param("postgresql", marks=GROUP)]


@pytest.fixture(params=STORES)
def place(request, tmp_path):
    """The URL of an empty store of either kind."""
    return (
        str(tmp_path / "store.sqlite")
        if request.param == "sqlite"
        else request.getfixturevalue("database")
    )


@pytest.fixture
def store(place):
    opened = open_store(place)
    yield opened
    opened.close()


def ask(place, query):
    """What the database itself says, past the store; `report` stands for the table's name in
    either, or for those of all collections.
    """
    if place.startswith("postgresql"):
        with psycopg.connect(place, autocommit=True) as db:
            query = re.sub(
                r"(?<![(\w])(report|tally|collection|waiting)\b(?= *(WHERE|ORDER|SET|;|\)|$))",
                lambda found: named(db, found[1]),
                query,
            )
            found = db.execute(query)
            return (
                [tuple(bytes(x) if isinstance(x, memoryview) else x for x in row) for row in found]
                if found.description
                else []
            )
    db = sqlite3.connect(place)
    try:
        with db:
            return db.execute(query).fetchall()
    finally:
        db.close()


def named(db, table):
    """A table of PostgreSQL; one that every collection has for itself, of all collections."""
    listed = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ %s"
    tables = db.execute(listed, (rf"^discreet_{table}(_\d+)?$",)).fetchall()
    if len(tables) == 1:
        return tables[0][0]
    return f"({' UNION ALL '.join(f'SELECT * FROM {name}' for (name,) in tables)}) AS {table}"


def first_wins(uploads):
    """What must be counted: the first report of every id, per collection; and the outcome of every
    upload.
    """
    known, outcomes = {}, []
    for up in uploads:
        mine = known.setdefault(up.collection, {})
        fresh = 0
        for id_, row in zip(up.ids, up.contents, strict=True):
            if id_ not in mine:
                mine[id_] = row
                fresh += 1
        outcomes.append(Outcome(fresh, len(up.ids) - fresh))
    return known, outcomes


# ---- collections ---------------------------------------------------------------------------------


def test_a_collection_is_made_once(store):
    made = store.create(survey())
    assert (made.name, made.keep, made.closed_by_organiser, made.survey) == (
        "bits",
        "counts",
        False,
        survey(),
    )
    store.add([upload(survey(), ids(3))])
    assert store.create(survey()) == made
    assert store.tally("bits").n == 3 and store.collections() == [made] == [
        store.collection("bits")
    ]


def test_another_survey_under_the_same_name_is_refused(store):
    store.create(survey("bits", "survey"))
    with pytest.raises(
        DataError,
        match='a collection "survey" with another survey .its probabilities .*another name',
    ):
        store.create(survey("ticket", "survey"))
    with pytest.raises(DataError, match=r'item "high 0" has epsilon 2.*another name'):
        store.create(d.Survey("survey", [d.design(policy(eps=2.0), "opt0")]))
    assert store.collection("survey").survey == survey("bits", "survey")


def test_what_is_kept_cannot_be_changed(store):
    store.create(survey("bits"), "counts")
    store.create(survey("ticket"), "reports")
    for kind, other in (("bits", "reports"), ("ticket", "counts")):
        with pytest.raises(DataError, match=f'"{kind}" was made to keep .*cannot keep {other} now'):
            store.create(survey(kind), other)


def test_a_store_keeps_counts_or_reports_and_nothing_else(store):
    with pytest.raises(DataError, match='keep = "answers" must be one of counts, reports'):
        store.create(survey(), "answers")
    assert store.collections() == []


def test_collections_are_listed_by_name_and_unknown_ones_are_refused(store):
    names = ["b", "a", "ü 漢 'quoted\" %s ;--", "c"]
    for name in names:
        store.create(survey("bits", name))
    assert [c.name for c in store.collections()] == sorted(names, key=str.encode)
    assert store.collection(names[2]).survey == survey("bits", names[2])
    for use in (
        store.collection,
        store.tally,
        store.close_collection,
        lambda name: next(store.reports(name)),
    ):
        with pytest.raises(NoCollection, match='there is no collection "none"'):
            use("none")


def test_a_name_that_no_collection_can_have_is_just_unknown(store):
    with pytest.raises(NoCollection):
        store.collection("a\0b")


def test_several_collections_do_not_mix(store):
    same = ids(5)
    for name in ("first", "second"):
        store.create(survey("grr", name))
    rows = people(survey("grr"), 5)
    assert (
        store.add([upload(survey("grr", name), same, rows) for name in ("first", "second")])
        == [Outcome(5, 0)] * 2
    )
    assert store.tally("first").question(0) == store.tally("second").question(0)


# ---- counting ------------------------------------------------------------------------------------


def test_the_same_id_is_counted_once_and_the_first_report_wins(store):
    made = survey("grr")
    store.create(made, "reports")
    first, second = (np.array([[2**k, 0]], np.uint8) for k in (1, 2))
    (id_,) = ids(1)
    both = np.concatenate((first, second))
    assert store.add([upload(made, [id_, id_], both)]) == [Outcome(1, 1)]  # twice in one upload
    assert store.add([upload(made, [id_], second)] * 2) == [Outcome(0, 1)] * 2  # later
    (other,) = ids(1)
    assert store.add([upload(made, [other], first), upload(made, [other], second)]) == [
        Outcome(1, 0),
        Outcome(0, 1),
    ]
    assert store.tally("grr").question(0) == made.mechanism.tally(np.concatenate((first, first)))
    assert list(store.reports("grr")) == [first.tobytes()] * 2


def test_duplicates_are_told_apart_per_upload(store):
    store.create(survey())
    a, b, c = ids(3)
    store.add([upload(survey(), [a])])
    found = store.add([upload(survey(), some) for some in ([b, a], [b, c, c], [c], [a, a])])
    assert found == [Outcome(1, 1), Outcome(1, 2), Outcome(0, 1), Outcome(0, 2)]
    assert store.tally("bits").n == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_pending_report_of_another_mechanism_is_damage(store, kind):
    """Uploads are checked when they are read. If a wrong report is pending all the same, counting
    notices it, and the stored tally stays as it was.
    """
    made = survey(kind)
    collection = store.create(made)
    store.add([upload(made, ids(2))])
    with store.writing():
        store.counts.count_pending(collection)
    before = store.counts.tables.tally(collection.key)
    rows = people(made, 3)
    for reason, report in spoiled(kind, rows[1].tobytes()):
        if reason == "length":
            continue  # rows have one length
        rows[1] = np.frombuffer(report, np.uint8)
        store.add([upload(made, ids(3), rows)])
        with pytest.raises(StoreDamaged, match="not reports of this survey"):
            store.tally(kind)
        with pytest.raises(StoreDamaged, match="not reports of this survey"):
            store.close_collection(kind)
        (damage,) = store.find_damage(kind)
        assert "not reports of this survey" in damage
        assert store.counts.tables.tally(collection.key) == before
        with store.writing():
            store.counts.tables.delete_pending(collection.key)
        assert store.tally(kind).n == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_tally_is_that_of_the_distinct_reports(store, kind):
    """Twelve transactions of several uploads, ids repeated at random in every way, against a
    dictionary.
    """
    made, other = survey(kind), survey("bits", "other")
    store.create(made, "reports")
    store.create(other)
    rng = np.random.default_rng(5)
    pool = [rng.bytes(16) for _ in range(150)]
    done, outcomes = [], []
    for turn in range(12):
        some = []
        for k in range(int(rng.integers(1, 4))):
            which = other if rng.random() < 0.2 else made
            chosen = [pool[j] for j in rng.integers(len(pool), size=int(rng.integers(1, 30)))]
            some.append(upload(which, chosen, people(which, len(chosen), seed=100 * turn + k)))
        done += some
        outcomes += store.add(some)
    known, expected = first_wins(done)
    assert outcomes == expected
    assert store.tally(kind).question(0) == made.mechanism.tally(list(known[kind].values()))
    assert store.tally("other").question(0) == other.mechanism.tally(list(known["other"].values()))
    assert list(store.reports(kind)) == [known[kind][id_] for id_ in sorted(known[kind])]


def test_an_upload_larger_than_one_query_with_old_and_new_ids(store):
    store.create(survey())
    some = ids(3000)
    assert store.add([upload(survey(), some[:1700])]) == [Outcome(1700, 0)]
    assert store.add([upload(survey(), some)]) == [Outcome(1300, 1700)]
    assert store.tally("bits").n == 3000


def test_counts_beyond_32_bits(store):
    made = survey("grr")
    collection = store.create(made)
    key = collection.key
    store.add([upload(made, ids(1), np.array([[8, 0]], np.uint8))])
    with store.writing():
        store.counts.count_pending(collection)
        numbers = np.frombuffer(checked(store.counts.tables.tally(key)), "<i8") << 40
        store.counts.tables.write_tally(key, with_checksum(numbers.tobytes()))
    store.add([upload(made, ids(1), np.array([[8, 0]], np.uint8))])
    assert store.tally("grr").n == 2**40 + 1 == store.tally("grr").question(0).counts[0, 3]


ADDING = """
import sys, numpy as np, discreet as d
from discreet.collector.store import Upload, open_store
place, made, me = sys.argv[1], d.Survey.load(sys.argv[2]), int(sys.argv[3])
made.mechanism.tally(made.mechanism.perturb_many([0]))  # the kernels are loaded
pool = [np.random.default_rng(k).bytes(16) for k in range(600)]
mine = [pool[k] for k in np.random.default_rng([7, me]).permutation(600)]
store = open_store(place)
print("ready", flush=True)
for line in sys.stdin:
    start = int(line)
    accepted = 0
    for k in range(start, start + 50, 10):
        rows = made.mechanism.perturb_many(np.zeros(10, np.int64))
        contents = [row.tobytes() for row in rows]
        (outcome,) = store.add([Upload("ticket", mine[k : k + 10], contents)])
        assert outcome.accepted + outcome.duplicates == 10
        accepted += outcome.accepted
    print(accepted, flush=True)
store.close()
"""


def test_two_processes_count_every_id_once(place, store, tmp_path):
    """Both add overlapping ids in their own order and with their own reports, side by side in every
    one of ten rounds.
    """
    made = survey("ticket")
    store.create(made, "reports")
    made.save(tmp_path / "m.json")
    start = [sys.executable, "-c", ADDING, place, str(tmp_path / "m.json")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([*start, "0"], **pipes) as one,
        subprocess.Popen([*start, "1"], **pipes) as two,
    ):
        assert [process.stdout.readline() for process in (one, two)] == ["ready\n"] * 2
        accepted = []
        for first in range(0, 500, 50):
            for process in (one, two):
                print(first, file=process.stdin, flush=True)
            accepted.append([int(process.stdout.readline()) for process in (one, two)])
    distinct = len(
        {int(k) for me in (0, 1) for k in np.random.default_rng([7, me]).permutation(600)[:500]}
    )
    assert (np.sum(accepted, axis=0) > 0).all() and (
        np.sum(accepted, axis=0) < 500
    ).all()  # each met what the other had sent
    assert np.sum(accepted) == distinct == store.tally("ticket").n
    assert store.tally("ticket").question(0) == made.mechanism.tally(list(store.reports("ticket")))


def test_a_reader_in_another_thread_sees_whole_transactions(store):
    made = survey("grr")
    store.create(made)
    seen, done, errors = [], threading.Event(), []

    def read():
        try:
            while not done.is_set():
                seen.append(store.tally("grr").n)
        except Exception as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: seen, "a reader")
    for _ in range(30):
        store.add([upload(made, ids(7))])
    done.set()
    reader.join()
    assert not errors and all(n % 7 == 0 for n in seen) and seen == sorted(seen)


# ---- closing -------------------------------------------------------------------------------------


def test_a_closed_collection_takes_nothing_and_an_open_one_does(place, store):
    closed, still_open = survey("bits", "closed"), survey("bits", "open")
    store.create(closed)
    store.create(still_open)
    before = ids(4)
    store.add([upload(closed, before)])
    store.close_collection("closed")
    some = [upload(closed, ids(2)), upload(still_open, ids(3)), upload(closed, before)]
    assert store.add(some) == [
        Outcome(0, 0, "closed"),
        Outcome(3, 0),
        Outcome(0, 0, "closed"),
    ]
    assert (store.tally("closed").n, store.tally("open").n) == (4, 3)
    assert (
        store.collection("closed").closed_by_organiser and store.create(closed).closed_by_organiser
    )
    assert ask(place, "SELECT count(*) FROM report") == [(7,)]
    store.close_collection("closed")  # again: nothing changes


def test_an_upload_to_nowhere_takes_nothing(store):
    assert store.add([upload(survey(), ids(1))]) == [Outcome(0, 0, "closed")]
    assert store.add([]) == []


# ---- what it keeps -------------------------------------------------------------------------------


def files_of(place, postgres):
    """Every byte that the store has on disk; PostgreSQL's write-ahead log is the server's own, and
    the docs say what it keeps.
    """
    if postgres is not None:
        postgres.execute("CHECKPOINT")
        files = [p for p in postgres.data.rglob("*") if p.is_file() and "pg_wal" not in p.parts]
    else:
        files = list(Path(place).parent.glob("*"))
    return [path.read_bytes() for path in files]


def test_reports_are_on_disk_only_where_they_were_asked_for(place, store, request):
    """Looking for the raw bytes in all files; those of the kept ones are found, so they
    would be. While a collection is open, the newest wait to be counted.
    """
    postgres = request.getfixturevalue("postgres") if place.startswith("postgresql") else None
    kept, gone = long_survey("kept"), long_survey("gone")
    store.create(kept, "reports")
    store.create(gone, "counts")
    rows = {made.name: people(made, 8, seed=3) for made in (kept, gone)}
    for made in (kept, gone):
        for k in range(0, 8, 2):
            store.add([upload(made, ids(2), rows[made.name][k : k + 2])])
    store.close_collection("gone")
    raw = files_of(place, postgres)
    assert all(any(row.tobytes() in content for content in raw) for row in rows["kept"])
    assert not any(row.tobytes() in content for row in rows["gone"] for content in raw)
    assert ask(place, "SELECT count(report), count(*) FROM report") == [(8, 16)]
    with pytest.raises(DataError, match='"gone" keeps counts only; its reports were never stored'):
        next(store.reports("gone"))


def test_there_is_no_place_for_an_address_or_a_time(place, store):
    """The whole schema, column by column: a new one must be thought about here."""
    store.create(survey())
    own = {"collection"} if place.endswith("sqlite") else set()  # or a table of its own
    if place.startswith("postgresql"):
        found = ask(
            place,
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public'",
        )
    else:
        found = ask(
            place,
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
            "WHERE t.type = 'table'",
        )
    tables = {}
    for table, column in found:
        name = re.sub(r"^discreet_|_1$", "", table)
        tables.setdefault(name, set()).add(column)
    assert tables.pop("schema", {"version"}) == {"version"}
    assert tables == {
        "collection": {"key", "name", "document", "keep", "open", "moving"},
        "tally": {"numbers"} | own,
        "published": {"numbers"} | own,
        "report": {"id", "report"} | own,
        "event": {"key", "collection", "time", "what"},  # of what the organiser did
        "waiting": {"reports"} | own | ({"place"} if own else set()),
    }


def arrivals(place, order):
    """A closed collection whose reports came one by one in this order."""
    store = open_store(place)
    store.create(survey())
    for id_ in order:
        store.add([upload(survey(), [id_])])
    store.close_collection("bits")
    store.close()


def test_rows_of_a_closed_collection_are_in_the_order_of_the_ids(place):
    some = ids(60)
    arrivals(place, some)
    order = " ORDER BY ctid" if place.startswith("postgresql") else ""
    assert [row[0] for row in ask(place, "SELECT id FROM report" + order)] == sorted(some)
    if not order:  # nor is there a hidden number that grows with every row
        with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
            ask(place, "SELECT rowid FROM report")


def test_the_bytes_of_a_closed_sqlite_file_do_not_tell_who_came_first(tmp_path):
    """The same ids in two orders of arrival leave the same layout."""
    some = ids(60)
    layouts = []
    for name, order in (("a", some), ("b", some[::-1])):
        arrivals(str(tmp_path / name), order)
        raw = (tmp_path / name).read_bytes()
        assert all(raw.count(id_) == 1 for id_ in some)
        layouts.append(sorted(some, key=raw.index))
        assert not (tmp_path / f"{name}-wal").exists()
    assert layouts[0] == layouts[1]


@GROUP
def test_the_transaction_numbers_of_a_closed_postgresql_table_do_not_tell_who_came_first(postgres):
    some = ids(50)
    layouts = []
    for order in (some, some[::-1]):
        url = postgres.fresh()
        arrivals(url, order)
        layouts.append(
            [
                row[0]
                for row in ask(url, "SELECT id, xmin::text::bigint AS x FROM report ORDER BY x, id")
            ]
        )
        postgres.drop(url)
    assert layouts[0] == layouts[1]


def test_new_files_are_for_their_owner_alone(tmp_path):
    old = os.umask(0)
    try:
        store = open_store(str(tmp_path / "store"))
        store.create(survey())
        store.add([upload(survey(), ids(1))])
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert set(modes) == {"store", "store-wal", "store-shm", "store-lock"} and set(
        modes.values()
    ) == {0o600}


# ---- failures ------------------------------------------------------------------------------------


def break_tally(place):
    """From now on nothing can be counted; returns how to mend it."""
    if place.startswith("postgresql"):
        ask(
            place,
            "CREATE FUNCTION burn() RETURNS trigger AS "
            "$$ BEGIN RAISE EXCEPTION 'disk on fire'; END $$ LANGUAGE plpgsql",
        )
        ask(
            place,
            "CREATE TRIGGER fire BEFORE INSERT ON discreet_waiting_1 "
            "FOR EACH ROW EXECUTE FUNCTION burn()",
        )
        return lambda: ask(place, "DROP TRIGGER fire ON discreet_waiting_1")
    ask(
        place,
        "CREATE TRIGGER fire BEFORE INSERT ON waiting "
        "BEGIN SELECT RAISE(ABORT, 'disk on fire'); END",
    )
    return lambda: ask(place, "DROP TRIGGER fire")


def test_a_transaction_that_fails_leaves_nothing_and_the_store_goes_on(place, store):
    made = survey()
    store.create(made, "reports")
    store.add([upload(made, ids(2))])
    mend = break_tally(place)
    late = [upload(made, ids(3)), upload(made, ids(1))]
    for _ in range(2):
        with pytest.raises(StoreDown, match="the store cannot be used: disk on fire$"):
            store.add(late)
    assert ask(place, "SELECT count(*) FROM report") == [(2,)] and store.tally("bits").n == 2
    mend()
    assert store.add(late) == [Outcome(3, 0), Outcome(1, 0)]
    assert store.tally("bits").question(0) == made.mechanism.tally(list(store.reports("bits")))


def test_ping_says_whether_the_store_answers(place, store):
    store.ping()
    table = "discreet_collection" if place.startswith("postgresql") else "collection"
    for query, fails in (
        (f"ALTER TABLE {table} RENAME TO away", True),
        (f"ALTER TABLE away RENAME TO {table}", False),
    ):
        ask(place, query)
        if fails:
            with pytest.raises(StoreDown):
                store.ping()
    store.ping()


@GROUP
def test_a_postgresql_that_was_restarted_is_used_again(postgres, database):
    store = open_store(database)
    store.create(survey())
    late = [upload(survey(), ids(2))]
    postgres.stop("immediate")
    try:
        for use in (lambda: store.add(late), store.ping, store.collections):
            with pytest.raises(StoreDown, match="the store cannot be used: "):
                use()
    finally:
        postgres.start()
    assert store.add(late) == [Outcome(2, 0)]
    store.close()


@GROUP
def test_a_postgresql_connection_that_was_cut_is_not_used_again(postgres, database):
    store = open_store(database)
    store.create(survey())
    ours = (
        "FROM pg_stat_activity WHERE application_name = 'discreet' AND datname = current_database()"
    )
    with psycopg.connect(database, autocommit=True) as db:
        db.execute(f"SELECT pg_terminate_backend(pid) {ours}")
        until(lambda: db.execute(f"SELECT count(*) {ours}").fetchone()[0] == 0, "cut")
    assert store.add([upload(survey(), ids(2))]) == [Outcome(2, 0)]
    store.close()


def test_a_sqlite_file_that_another_program_holds_is_down_not_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.05)
    store = open_store(str(tmp_path / "store"))
    store.create(survey())
    late = [upload(survey(), ids(2))]
    other = sqlite3.connect(tmp_path / "store", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreDown, match="database is locked"):
        store.add(late)
    other.execute("ROLLBACK")
    other.close()
    assert store.add(late) == [Outcome(2, 0)]
    store.close()


def test_what_was_counted_is_there_after_a_new_start(place):
    made = survey("fixed")
    some, rows = ids(20), people(made, 20)
    for start in range(0, 20, 5):
        store = open_store(place)
        store.create(made)
        store.add([upload(made, some[start : start + 5], rows[start : start + 5])])
        store.close()
    store = open_store(place)
    assert store.add([upload(made, some, rows)]) == [Outcome(0, 20)]
    assert store.tally("fixed").question(0) == made.mechanism.tally(rows)
    store.close()


# ---- opening -------------------------------------------------------------------------------------


def modules(place):
    return postgres_store if place.startswith("postgresql") else sqlite_store


def version(place):
    query = (
        "SELECT max(version) FROM discreet_schema"
        if place.startswith("postgresql")
        else "PRAGMA user_version"
    )
    return ask(place, query)[0][0]


def test_a_store_of_a_newer_discreet_is_refused(place):
    open_store(place).close()
    newer = (
        "INSERT INTO discreet_schema VALUES (99)"
        if place.startswith("postgresql")
        else "PRAGMA user_version = 99"
    )
    ask(place, newer)
    with pytest.raises(
        DataError, match="schema version 99, this discreet knows up to 4; use the newer discreet"
    ):
        open_store(place)


def test_an_older_store_is_migrated_with_what_it_holds(place, monkeypatch):
    arrivals(place, ids(3))
    assert version(place) == 4
    old = modules(place).MIGRATIONS
    monkeypatch.setattr(
        modules(place),
        "MIGRATIONS",
        (*old, "CREATE TABLE extra (x INTEGER); INSERT INTO extra VALUES (7);"),
    )
    for _ in range(2):  # once
        store = open_store(place)
        assert store.tally("bits").n == 3 and version(place) == 5
        assert ask(place, "SELECT x FROM extra") == [(7,)]
        store.close()


def old_store(place, number, *documents):
    """A store of an older version with collections of these documents; past the code of today."""
    scripts = modules(place).MIGRATIONS[:number]
    if place.startswith("postgresql"):
        with psycopg.connect(place) as db:
            db.execute("CREATE TABLE discreet_schema (version INTEGER NOT NULL)")
            for k, script in enumerate(scripts, 1):
                db.execute(script)
                db.execute("INSERT INTO discreet_schema VALUES (%s)", (k,))
            insert = (
                "INSERT INTO discreet_collection (name, document, keep, open) "
                "VALUES (%s, %s, 'reports', true)"
            )
            for document in documents:
                db.execute(insert, (document.get("name", "grr"), json.dumps(document)))
        return
    with closing(sqlite3.connect(place)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(";".join(scripts) + f"; PRAGMA user_version = {number}")
        insert = "INSERT INTO collection (name, document, keep, open) VALUES (?, ?, 'reports', 1)"
        for document in documents:
            db.execute(insert, (document.get("name", "grr"), json.dumps(document)))


def fill_old(place, number, key, made, some, rows):
    """Reports in an older store: some counted, the rest waiting where that version knew it."""
    half = len(some) // 2 if number > 1 else len(some)
    tally = made.mechanism.tally(rows[:half]).to_bytes()
    server = place.startswith("postgresql")
    start, mark = ("discreet_", "%s") if server else ("", "?")
    with psycopg.connect(place) if server else closing(sqlite3.connect(place)) as db, db:
        insert = f"INSERT INTO {start}tally VALUES ({mark}, {mark})"
        db.execute(insert, (key, with_checksum(tally)))
        for id_, row in zip(some, rows, strict=True):
            insert = f"INSERT INTO {start}report VALUES ({mark}, {mark}, {mark})"
            db.execute(insert, (key, id_, row.tobytes()))
        if number > 1:
            columns = "" if server else ", place"
            values = [key, with_checksum(rows[half:].tobytes()), *([] if server else [b"x"])]
            marks = ", ".join([mark] * len(values))
            insert = f"INSERT INTO {start}waiting (collection, reports{columns}) VALUES ({marks})"
            db.execute(insert, values)
            insert = f"INSERT INTO {start}published VALUES ({mark}, {mark})"
            db.execute(insert, (key, with_checksum(tally)))


def everything(place):
    """All that a database holds, as bytes: the file and its log, or a dump of the tables."""
    if not place.startswith("postgresql"):
        files = [Path(place), Path(f"{place}-wal")]
        return [path.read_bytes() for path in files if path.exists() and path.stat().st_size]
    with psycopg.connect(place) as db:
        query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^discreet_'"
        tables = sorted(name for (name,) in db.execute(query))
        return [(name, db.execute(f"SELECT * FROM {name}").fetchall()) for name in tables]


@pytest.mark.parametrize("crashed", [False, True])
def test_a_store_of_discreet_0_1_is_refused_and_left_alone(place, tmp_path, crashed):
    """Its other collections would be readable; it is still whole for the version that made it."""
    old = {**survey("grr").mechanism.to_document(), "format": "discreet-mechanism/1"}
    old_store(place, 1, survey().to_document(), old)
    if crashed and not place.startswith("postgresql"):  # a log is left beside the file
        with closing(sqlite3.connect(place)) as db:
            db.execute("UPDATE collection SET open = 0")
            db.commit()
            for end in ("", "-wal"):
                shutil.copy(f"{place}{end}", f"{place}2{end}")
        place += "2"
    before = everything(place)
    words = "made by discreet 0.1: finish it with that version, or export it there"
    for _ in range(2):
        with pytest.raises(DataError, match=f'"grr" was {words}'):
            open_store(place)
    told = CliRunner().invoke(main, ["verify", "--store", place])
    assert told.exit_code == 2 and words in told.stderr
    assert everything(place) == before and version(place) == 1


@pytest.mark.parametrize("damaged", ["{", "[]", "5", "{}"])
def test_a_damaged_document_does_not_hide_an_old_one(damaged):
    current = ("new", json.dumps(survey().to_document()))
    refuse_old_documents([("broken", damaged), current])
    for old, told in (("discreet-mechanism/1", "made by discreet 0.1"), ("x/9", 'format "x/9"')):
        with pytest.raises(StoreDamaged, match=f'^"old" .*{told}'):
            refuse_old_documents([("broken", damaged), current, ("old", f'{{"format": "{old}"}}')])


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": "discreet-mechanism/1"}', "made by discreet 0.1"),
        ('{"format": "discreet-mechanism/9"}', "with the version that made it"),
        ("tampered", "fingerprint"),
    ],
)
def test_a_collection_that_cannot_be_read_is_listed_and_harms_no_other(
    place, tmp_path, document, words
):
    made, other = survey(), survey("grr")
    with closing(open_store(place)) as store:
        for one in (made, other):
            store.create(one)
            store.add([upload(one, ids(4))])
        if document == "tampered":
            changed = made.to_document()
            changed["questions"][0]["mechanism"]["parts"][0]["own"][0] += 2**28
            document = json.dumps(changed)
    ask(place, f"UPDATE collection SET document = '{document}' WHERE name = 'bits'")
    with closing(open_store(place)) as store:
        for _ in range(2):
            (good,), (bad,) = store.listing()
            assert good.name == "grr" and bad.name == "bits" and words in bad.reason
        assert store.collections() == [good]
        assert store.report_counts(9) == [(good, 4)]
        for use in (store.collection, store.tally, store.close_collection, store.find_damage):
            with pytest.raises(StoreDamaged, match=words):
                use("bits")
        assert store.add([upload(other, ids(2))]) == [Outcome(2, 0)]
        with pytest.raises(DataError, match="name the collections that are to be copied"):
            backup(store, tmp_path / "all.sqlite")
        assert backup(store, tmp_path / "one.sqlite", ["grr"]) == {"grr": 6}
        store.close_collection("grr")
    told = CliRunner().invoke(main, ["verify", "--store", place])
    assert told.exit_code == 1 and "FAILED bits: " in told.output and words in told.output
    assert "OK grr: 6 reports" in told.output


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_store_of_an_older_version_goes_on_with_all_it_has(place, number):
    made, other = survey(), survey("ticket")
    old_store(place, number, made.to_document(), other.to_document())
    some, rows = ids(20), people(made, 20)
    fill_old(place, number, 1, made, some, rows)
    fill_old(place, number, 2, other, ids(6), people(other, 6))
    store = open_store(place)
    assert version(place) == 4 and [c.key for c in store.collections()] == [1, 2]
    assert (
        store.tally("bits").question(0) == made.mechanism.tally(rows)
        and store.tally("ticket").n == 6
    )
    assert store.find_damage("bits") == store.find_damage("ticket") == []
    assert store.add([upload(made, some, rows)]) == [Outcome(0, 20)]
    more = people(made, 8)
    store.add([upload(made, ids(8), more)])
    store.close_collection("bits")
    assert store.tally("bits").question(0) == made.mechanism.tally(rows) + made.mechanism.tally(
        more
    )
    assert store.create(survey("grr")).key == 3
    store.close()


@pytest.mark.parametrize("kind", ["bits", "ticket", "fixed"])
def test_reports_wait_and_are_counted_into_the_tally(place, store, monkeypatch, kind):
    """However many wait, whoever reads counts all; another process folds what this one left."""
    monkeypatch.setattr(limits, "PENDING_SIZE", 50)
    made = survey(kind)
    store.create(made)
    rows, folded = people(made, 300), 0
    for k in range(0, 300, 3):
        store.add([upload(made, ids(3), rows[k : k + 3])])
        waiting = b"".join(r for (r,) in ask(place, "SELECT reports FROM waiting"))
        folded += not waiting
        assert store.tally(kind).question(0) == made.mechanism.tally(rows[: k + 3])
    assert 0 < folded < 100
    store.close()
    again = open_store(place)
    again.add([upload(made, ids(1), rows[:1])])
    assert again.tally(kind).question(0) == made.mechanism.tally(rows) + made.mechanism.tally(
        rows[:1]
    )
    again.close_collection(kind)
    assert ask(place, "SELECT count(*) FROM waiting") == [(0,)]
    assert again.tally(kind).question(0) == made.mechanism.tally(rows) + made.mechanism.tally(
        rows[:1]
    )
    again.close()


@pytest.mark.parametrize("kind", ["bits", "fixed"])
@pytest.mark.parametrize("why", ["as much as the tally", "as many marks as allowed", "the limit"])
def test_reports_are_counted_when_enough_of_them_wait(place, store, monkeypatch, kind, why):
    """As many bytes as the tally has (8 per part and item, and per part), or as the limit says, if
    that is more; or as many marks as are read in a moment.
    """
    made = survey(kind)
    tally, size = len(made.mechanism.parts) * (made.mechanism.m + 1) * 8, made.mechanism.report_size
    enough = {"as much as the tally": -(-tally // size), "as many marks as allowed": 5}.get(
        why, 2 * tally
    )
    least = (enough - 1) * size + 1  # one byte more than one report less has
    monkeypatch.setattr(limits, "PENDING_SIZE", least if why == "the limit" else 0)
    marks = 5 * made.mechanism.m if why == "as many marks as allowed" else 10**9
    monkeypatch.setattr(limits, "MARKS", marks)
    key = store.create(made).key
    rows = people(made, 2 * enough)
    for mine in (rows[:enough], rows[enough:]):  # and again from nothing
        store.add([upload(made, ids(enough - 1), mine[:-1])])
        with store.reading():
            assert len(store.counts.tables.pending(key)) == 1
        store.add([upload(made, ids(1), mine[-1:])])
        with store.reading():
            assert store.counts.tables.pending(key) == []
    assert store.tally(kind).question(0) == made.mechanism.tally(rows)


def test_a_report_that_waits_cut_off_is_damage(place, store):
    """Also if its checksum is right; nothing more is acknowledged into that collection."""
    made = survey("fixed")
    key = store.create(made).key
    with store.writing():
        store.counts.tables.add_pending(key, with_checksum(bytes(made.mechanism.report_size + 1)))
    for use in (
        lambda: store.add([upload(made, ids(1))]),
        lambda: store.tally("fixed"),
        lambda: store.close_collection("fixed"),
    ):
        with pytest.raises(StoreDamaged, match="the pending reports are damaged"):
            use()
    assert ask(place, "SELECT count(*) FROM report") == [(0,)]


def test_what_waits_does_not_say_who_came_first(place, store):
    made = survey()
    store.create(made)
    rows = people(made, 40)
    store.add([upload(made, ids(40), rows)])
    (waiting,) = [checked(bytes(r)) for (r,) in ask(place, "SELECT reports FROM waiting")]
    assert waiting == b"".join(sorted(row.tobytes() for row in rows)) != rows.tobytes()


def test_one_report_of_many_items_writes_little(tmp_path):
    """The bytes of the write-ahead log per report: not the tally of 16,470 items, 132 KiB."""
    path = tmp_path / "store.sqlite"
    store = open_store(str(path))
    policy = d.Policy.from_levels([("l", 2, [f"i{k}" for k in range(16_470)])])
    made = d.Survey("many", [d.design(policy)])
    store.create(made)
    db = store.database.connection
    rows = people(made, 41)
    store.add([upload(made, ids(1), rows[:1])])
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for k in range(1, 41):
        store.add([upload(made, ids(1), rows[k : k + 1])])
    assert (tmp_path / "store.sqlite-wal").stat().st_size / 40 < 20_000
    assert store.tally(made.name).question(0) == made.mechanism.tally(rows)
    store.close()


def test_a_migration_that_fails_changes_nothing(place, monkeypatch):
    arrivals(place, ids(3))
    with monkeypatch.context() as patch:
        old = modules(place).MIGRATIONS
        patch.setattr(
            modules(place),
            "MIGRATIONS",
            (*old, "CREATE TABLE extra (x INTEGER); SELECT nonsense FROM nowhere;"),
        )
        with pytest.raises(DataError, match="cannot be opened: .*nowhere"):
            open_store(place)
    store = open_store(place)
    assert store.tally("bits").n == 3 and version(place) == 4
    store.close()
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        ask(place, "SELECT x FROM extra")


def test_stores_opened_by_many_at_once_are_made_once(place):
    found, errors = [], []

    def work():
        try:
            found.append(open_store(place))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in found:
        store.close()
    assert not errors and len(found) == 6 and version(place) == 4


@pytest.mark.parametrize(
    "content", [b"this is a letter, not a database\n" * 200, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "letter"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(f"the store {path} cannot be opened: ")):
        open_store(str(path))
    assert path.read_bytes() == content


def test_another_program_s_database_is_refused(tmp_path):
    path = tmp_path / "other"
    ask(str(path), "CREATE TABLE report (x INTEGER)")
    with pytest.raises(DataError, match="cannot be opened: .*already exists"):
        open_store(str(path))
    assert ask(str(path), "SELECT count(*) FROM sqlite_schema") == [(1,)]


@pytest.mark.parametrize("start", [1024, 4096, 8192])
def test_a_damaged_file_gives_a_sentence_whenever_it_is_noticed(tmp_path, start):
    path = tmp_path / "store"
    store = open_store(str(path))
    store.create(survey())
    store.add([upload(survey(), ids(300))])
    store.close()
    raw = bytearray(path.read_bytes())
    raw[start:] = np.random.default_rng(1).bytes(len(raw) - start)
    path.write_bytes(raw)

    def use():
        store = open_store(str(path))
        try:
            store.create(survey())
            store.add([upload(survey(), ids(200))])
        finally:
            store.close()

    with pytest.raises((DataError, StoreDown), match="cannot be"):
        use()


STRANGE = {  # values that a damaged SQLite file holds; its columns take any type
    "report": ("report", "'text'", "7", "1.5", "NULL", "zeroblob(3)"),
    "numbers": ("tally", "'text'", "7", "1.5", "zeroblob(3)", "CAST(X'ff00ff' AS TEXT)"),
    "reports": ("waiting", "'text'", "7", "1.5", "zeroblob(3)"),
    "published.numbers": ("published", "'text'", "7", "zeroblob(3)"),
    "keep": ("collection", "'text'", "zeroblob(3)"),
    "document": ("collection", "zeroblob(3)", "CAST(X'ff00ff' AS TEXT)"),
    "name": ("collection", "'twp'", "zeroblob(3)", "CAST(X'ff00ff' AS TEXT)"),
    "moving": ("collection", "zeroblob(3)"),
}


@pytest.mark.parametrize("column", STRANGE)
def test_strange_values_in_a_damaged_file_are_sentences(tmp_path, column):
    """`verify` fails, nothing but a sentence is raised, and no other collection suffers."""
    table, *values = STRANGE[column]
    made, other = survey("grr", "two"), survey("bits", "one")
    for k, value in enumerate(values):
        place = str(tmp_path / f"{k}.sqlite")
        with closing(open_store(place)) as store:
            collection = store.create(made, "reports")
            store.add([upload(made, ids(30))])
            with store.writing():
                store.counts.count_pending(collection)
                store.counts.tables.write_published(
                    collection.key, store.counts.tables.tally(collection.key)
                )
            store.add([upload(made, ids(5))])
            store.create(other)
            store.add([upload(other, ids(3))])
        field = column.rpartition(".")[2]
        mine = "name = 'two'" if table == "collection" else "collection = 1"
        one = f"(SELECT max({field}) FROM {table} WHERE {mine})"
        ask(place, f"UPDATE {table} SET {field} = {value} WHERE {mine} AND {field} = {one}")
        with closing(open_store(place)) as store:
            with suppress(DataError):
                assert store.find_damage("two"), (column, value)
            for use in (store.tally, store.published, store.history, store.close_collection):
                with suppress(DataError):
                    use("two")
            with suppress(DataError):
                list(store.reports("two"))
            store.listing()
            store.report_counts(10)
            assert store.tally("one").n == 3 and store.find_damage("one") == []
            assert store.add([upload(other, ids(2))]) == [Outcome(2, 0)]
        told = CliRunner().invoke(main, ["verify", "--store", place])
        assert told.exit_code == 1 and "FAILED" in told.output, (column, value)
        assert told.exception is None or isinstance(told.exception, SystemExit)


def test_a_damaged_schema_is_one_sentence(tmp_path):
    """SQLite quotes it, and then the quotation may be no text."""
    path = tmp_path / "store.sqlite"
    open_store(str(path)).close()
    raw = path.read_bytes()
    name = b"tablereportreport"
    assert name in raw and b"CREATE TABLE report" in raw
    raw = raw.replace(name, b"tablerep\xacrtreport").replace(b"CREATE TABLE report", b"x" * 19)
    path.write_bytes(raw)
    with pytest.raises(DataError, match="cannot be opened: "):
        open_store(str(path))


def test_a_missing_folder_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match=f"the folder {tmp_path}/none does not exist"):
        open_store(f"{tmp_path}/none/store")
    with pytest.raises(DataError, match="cannot be opened: Is a directory"):
        open_store(str(tmp_path))


def test_the_urls_of_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url, path in (
        ("a", "a"),
        ("sqlite:///b", "b"),
        (f"sqlite:///{tmp_path}/c", "c"),
        (f"{tmp_path}/d", "d"),
    ):
        open_store(url).close()
        assert (tmp_path / path).is_file(), url
    for url in ("mysql://host/x", "http://host/x"):
        with pytest.raises(
            DataError, match=f'the store "{url.split(":")[0]}://…" is not known; give a path'
        ):
            open_store(url)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_postgresql_that_is_not_there_is_refused_without_its_password(tmp_path, scheme):
    with pytest.raises(DataError, match="the PostgreSQL store cannot be opened: ") as caught:
        open_store(f"{scheme}://me:sesame@/x?host={tmp_path}")
    assert "sesame" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_stored_survey_is_checked_when_it_is_read(place):
    """Whoever can write into the store still cannot make the service promise what does not hold."""
    arrivals(place, ids(1))
    document = json.loads(ask(place, "SELECT document FROM collection")[0][0])
    document["questions"][0]["mechanism"]["parts"][0]["own"][0] += 2**28
    ask(place, f"UPDATE collection SET document = '{json.dumps(document)}'")
    store = open_store(place)
    with pytest.raises(d.DiscreetError, match="fingerprint"):
        store.collection("bits")
    store.close()


@pytest.mark.parametrize("name", ["a/b", ".", "..", "x" * 201])
def test_a_name_that_no_address_can_hold_is_refused(store, name):
    with pytest.raises(DiscreetError, match="stands in its address|at most 200 characters"):
        store.create(survey("bits", name))
    assert store.collections() == []


# ---- what an attack found ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("store.sqlite", "removed"),
        ("store.sqlite", "moved"),
        ("store.sqlite", "replaced"),
        ("store.sqlite-wal", "removed"),
        ("store.sqlite-wal", "moved"),
    ],
)
def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path, what, how):
    made = survey()
    store = open_store(str(tmp_path / "store.sqlite"))
    store.create(made)
    store.add([upload(made, ids(1))])
    path = tmp_path / what
    if how == "removed":
        path.unlink()
    else:
        path.rename(tmp_path / "elsewhere")
    if how == "replaced":
        path.write_bytes((tmp_path / "elsewhere").read_bytes())
    with pytest.raises(StoreDown):
        store.add([upload(made, ids(1))])
    store.close()


def test_a_flipped_bit_in_a_tally_is_not_served(place, store):
    made = survey()
    collection = store.create(made)
    store.add([upload(made, ids(200))])
    with store.writing():
        store.counts.count_pending(collection)
        raw = store.counts.tables.tally(collection.key)
    for k in range(0, 8 * len(raw), 97):
        bad = bytearray(raw)
        bad[k // 8] ^= 1 << k % 8
        with store.writing():
            store.counts.tables.write_tally(collection.key, bytes(bad))
        with pytest.raises(StoreDamaged, match="is damaged"):
            store.tally("bits")
        with pytest.raises(StoreDamaged), store.writing():
            store.counts.count_pending(collection)
    with store.writing():
        store.counts.tables.write_tally(collection.key, raw)
    assert store.tally("bits").n == 200


def test_an_empty_file_is_not_taken_for_a_new_store(tmp_path):
    path = tmp_path / "store.sqlite"
    open_store(str(path)).close()
    path.write_bytes(b"")
    with pytest.raises(DataError, match="is empty, but it had data before"):
        open_store(str(path))
    (tmp_path / "store.sqlite-lock").unlink()
    open_store(str(path)).close()


def test_an_export_is_of_one_moment(place, store):
    made = survey()
    store.create(made, "reports")
    store.add([upload(made, ids(50), people(made, 50))])
    other = open_store(place)
    with store.snapshot("bits") as (tally, blocks):
        if not place.startswith("postgresql"):  # there, a reader locks nobody out either
            other.add([upload(made, ids(7), people(made, 7))])
        assert made.mechanism.tally([row for block in blocks for row in block]) == tally.question(0)
    other.close()


def test_a_reader_keeps_close_from_claiming_too_much(tmp_path, monkeypatch):
    """While another program reads, the log cannot be emptied: that is said, and done later."""
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.3)
    path = tmp_path / "store.sqlite"
    made = survey()
    store = open_store(str(path))
    store.create(made)
    store.add([upload(made, ids(5))])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM report").fetchone()
    words = "is closed .* not erased yet: another program reads the store .*; close it again"
    with pytest.raises(StoreDown, match=words):
        store.close_collection("bits")
    assert store.collection("bits").closed_by_organiser
    reader.close()
    store.close_collection("bits")
    assert Path(f"{path}-wal").stat().st_size == 0 and store.tally("bits").n == 5
    store.close()


def test_closing_on_a_full_disk_says_what_is_done_and_what_is_not(tmp_path):
    """The order can only be erased where there is room to write the store anew."""
    path, made = tmp_path / "store.sqlite", survey()
    store = open_store(str(path))
    store.create(made)
    store.add([upload(made, ids(5000))])
    ask(str(path), "PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size > 100_000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        with pytest.raises(StoreDown, match='"bits" is closed .* not erased yet: .*close it again'):
            store.close_collection("bits")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.collection("bits").closed_by_organiser and store.tally("bits").n == 5000
    store.close_collection("bits")
    assert store.find_damage("bits") == []
    store.close()


def test_closing_leaves_nothing_of_the_old_tally_in_postgresql(postgres, database):
    """Old versions of a row give back single reports; after closing there are none."""
    made = survey()
    store = open_store(database)
    collection = store.create(made)
    for _ in range(5):
        store.add([upload(made, ids(1))])
        with store.writing():
            store.counts.count_pending(collection)
    with psycopg.connect(database, autocommit=True) as db:
        inside = f"SELECT max(ctid)::text FROM discreet_tally_{collection.key}"
        assert db.execute(inside).fetchone() != ("(0,1)",)  # versions were written before it
        store.close_collection("bits")
        assert db.execute(inside).fetchone() == ("(0,1)",)
    store.close()


def test_a_password_is_in_no_sentence():
    for text in (
        "postgresql://me:secret@host/db",
        'connection to "postgres://a:secret@b" failed',
        "invalid dsn: password=secret host=x",
    ):
        assert "secret" not in without_password(text)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("the disk is gone\nCONTEXT: postgresql://a:secret@host/x"), "the disk is gone"),
        (OSError("  no postgresql://a:secret@host/x \n"), "no postgresql://a:…@host/x"),
        (sqlite3.OperationalError(), "OperationalError"),
        (OSError("\n \n"), "OSError"),
    ],
)
def test_a_store_that_fails_is_down_for_its_first_words(error, told):
    with (
        pytest.raises(StoreDown, match=f"^the store cannot be used: {told}$") as caught,
        failing_as_store_down((OSError, sqlite3.Error)),
    ):
        raise error
    assert caught.value.__cause__ is error
    with (
        pytest.raises(KeyError),
        failing_as_store_down((OSError, sqlite3.Error)),
    ):  # nobody else's errors
        raise KeyError


def test_writing_can_be_asked_for(place, store):
    store.can_write()
    if place.startswith("postgresql"):
        ask(place, "ALTER TABLE discreet_schema RENAME TO away")
    else:
        os.chmod(place, 0o400)
        store.database.drop_connection()
    if os.geteuid() or place.startswith("postgresql"):
        with pytest.raises(StoreDown):
            store.can_write()


@pytest.mark.parametrize("keep", ["counts", "reports"])
def test_a_store_says_whether_it_adds_up(place, store, keep):
    made = survey()
    collection = store.create(made, keep)
    store.add([upload(made, ids(30), people(made, 30))])
    assert store.find_damage("bits") == []
    with store.writing():
        store.counts.count_pending(collection)
    (raw,) = ask(place, "SELECT numbers FROM tally")[0]
    good = np.frombuffer(checked(bytes(raw)), "<i8").copy()
    for k, change, words in ((0, 1, "but 31 are counted"), (3, 100, "cannot be those")):
        numbers = good.copy()
        numbers[k] += change
        with store.writing():
            store.counts.tables.write_tally(collection.key, with_checksum(numbers.tobytes()))
        assert any(words in problem for problem in store.find_damage("bits"))
        assert any("give another" in x for x in store.find_damage("bits")) == (keep == "reports")
        assert not any("give another" in x for x in store.find_damage("bits", recount=False))
    with store.writing():
        store.counts.tables.write_tally(collection.key, b"c" + bytes(4) + good.tobytes())
    assert store.find_damage("bits") == [
        "the stored data is damaged: the checksum differs; restore a copy of the store"
    ]


def test_verify_by_the_command(tmp_path):
    place = str(tmp_path / "store.sqlite")
    store = open_store(place)
    collection = store.create(survey())
    store.add([upload(survey(), ids(12))])
    run = CliRunner().invoke
    result = run(main, ["verify", "--store", place])
    assert (result.exit_code, result.output) == (0, "OK bits: 12 reports\n")
    ask(place, "DELETE FROM report WHERE id = (SELECT min(id) FROM report)")
    result = run(main, ["verify", "bits", "--store", place])
    assert result.exit_code == 1 and "FAILED bits: it has the ids of 11 reports" in result.output
    survey().save(tmp_path / "m.json")
    result = run(main, ["serve", str(tmp_path / "m.json"), "--store", place, "--port", "0"])
    assert result.exit_code == 2 and "is damaged" in result.output
    assert not collection.closed_by_organiser
    store.close()


def test_verify_says_what_is_odd(tmp_path):
    """Stored well, and hardly honest: one report, over and over, with ids of its own each time."""
    place, made = str(tmp_path / "store.sqlite"), survey()
    store = open_store(place)
    store.create(made)
    (report,) = made.mechanism.perturb_many(["high 0"])
    store.add([upload(made, ids(3000), np.tile(report, (3000, 1)))])
    result = CliRunner().invoke(main, ["verify", "--store", place])
    assert result.exit_code == 0 and result.output.startswith("OK bits: 3,000 reports\nODD bits: ")
    result = CliRunner().invoke(main, ["verify", "--store", place, "--json"])
    assert json.loads(result.output)["odd"]["bits"] == oddities(store.tally("bits").question(0))
    store.close()


def test_what_anyone_sees_moves_in_steps(place, store, monkeypatch):
    """Nothing below the least number, then only every so many reports; the last few of a closed
    collection are for the organiser alone, unless they are so many.
    """
    monkeypatch.setattr(about, "LEAST", 10)
    made = survey()
    store.create(made)
    rows, seen = people(made, 38), []
    for k in range(38):
        store.add([upload(made, ids(1), rows[k : k + 1])])
        shown = store.published("bits")
        assert shown.question(0) == made.mechanism.tally(rows[: shown.n])
        seen.append(shown.n)
    assert seen == [0] * 9 + [10] * 10 + [20] * 10 + [30] * 9
    again = open_store(place)  # a restart does not show the last ones either
    assert again.published("bits").n == 30 and again.tally("bits").n == 38
    again.close_collection("bits")
    assert again.published("bits").n == 30
    assert again.tally("bits").question(0) == made.mechanism.tally(rows)
    again.close()


def test_nothing_is_lost_when_a_collection_is_closed_under_load(place):
    """Closing waits for who is being counted, and counts all of them."""
    made = survey()
    store, other = open_store(place), open_store(place)
    store.create(made)
    accepted, done = [], threading.Event()

    def work():
        while not done.is_set():
            (outcome,) = store.add([upload(made, ids(5))])
            if outcome.state == "closed":
                return
            accepted.append(outcome.accepted)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while len(accepted) < 5:
            time.sleep(0.005)
        other.close_collection("bits")
    finally:
        done.set()
        thread.join()
    assert other.tally("bits").n == sum(accepted) and other.find_damage("bits") == []
    store.close()
    other.close()


def test_who_comes_while_a_collection_is_closed_waits_and_is_told(place):
    """In the middle of closing, between counting those that wait and forgetting them."""
    made = survey()
    store, closing = open_store(place), open_store(place)
    store.create(made)
    store.add([upload(made, ids(10))])
    outcomes, late = [], upload(made, ids(7))
    thread = threading.Thread(target=lambda: outcomes.extend(store.add([late])))
    tables = closing.counts.tables
    write = tables.write_tally

    def between(*numbers):
        write(*numbers)
        thread.start()
        thread.join(0.5)  # it must still wait

    tables.write_tally = between
    closing.close_collection("bits")
    thread.join()
    assert outcomes == [Outcome(0, 0, "closed")]
    assert closing.tally("bits").n == 10 and closing.find_damage("bits") == []
    store.close()
    closing.close()


def test_a_reader_sees_one_moment(place, monkeypatch):
    """Folding between two statements of a reader changes nothing for it."""
    made = survey()
    store, reader = open_store(place), open_store(place)
    collection = store.create(made, "reports")
    store.add([upload(made, ids(10))])
    with reader.snapshot("bits") as (tally, blocks):
        store.add([upload(made, ids(5))])
        with store.writing():
            store.counts.count_pending(collection)
        assert tally.n == 10 == sum(map(len, blocks))
    assert reader.tally("bits").n == 15
    store.close()
    reader.close()


def test_asking_for_nothing_costs_nobody_anything(place, store):
    """An unknown name is an answer, not a failure: no connection and no survey is dropped."""
    made = survey()
    store.create(made)
    store.add([upload(made, ids(1))])
    known, waits = dict(store.catalogue._surveys), dict(store.counts._pending_bytes)
    for look in (store.collection, store.tally, store.find_damage, store.published):
        with pytest.raises(NoCollection):
            look("nobody")
    assert store.catalogue._surveys == known and store.counts._pending_bytes == waits and known
    assert store.tally("bits").n == 1


def test_damaged_reports_that_wait_are_seen(place, store):
    made = survey()
    store.create(made)
    store.add([upload(made, ids(3))])
    for query in (
        "UPDATE waiting SET reports = substr(reports, 1, 3)",
        "UPDATE tally SET numbers = substr(numbers, 1, 8)",
    ):
        ask(place, query)
        assert "damaged" in store.find_damage("bits")[0]
        with pytest.raises(StoreDamaged):
            store.tally("bits")


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE waiting SET reports = substr(reports, 1, 3)",
        "UPDATE tally SET numbers = substr(numbers, 1, 8)",
        "UPDATE tally SET numbers = substr(numbers, 1, 30)",
        "DELETE FROM tally",
    ],
)
def test_nothing_is_acknowledged_into_a_damaged_collection(place, query):
    """Not even by a process that has just started, before it counts those that wait."""
    made = survey()
    with closing(open_store(place)) as store:
        some = ids(3)
        collection = store.create(made)
        store.add([upload(made, some[:2])])
        with store.writing():
            store.counts.count_pending(collection)  # so that there is a tally to damage
        store.add([upload(made, some[2:])])
    ask(place, query)
    with closing(open_store(place)) as store:
        for _ in range(2):
            with pytest.raises(StoreDamaged, match="damaged"):
                store.add([upload(made, ids(1))])
    assert ask(place, "SELECT count(*) FROM report") == [(3,)]


def test_damage_that_a_reader_meets_is_looked_for_by_the_next_writer(place, store):
    made = survey()
    collection = store.create(made)
    store.add([upload(made, ids(3))])
    with store.writing():
        store.counts.count_pending(collection)
    ask(place, "UPDATE tally SET numbers = substr(numbers, 1, 8)")
    with pytest.raises(StoreDamaged):
        store.tally("bits")
    with pytest.raises(StoreDamaged):
        store.add([upload(made, ids(1))])


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("page_size", limits.PAGE), ("journal_mode", "wal"), ("synchronous", 2),
        ("secure_delete", 1), ("cache_size", -16384), ("temp_store", 2),
        ("busy_timeout", 1000 * limits.LOCK_SECONDS),
    ],
)  # fmt: skip
def test_every_connection_to_sqlite_has_the_settings(tmp_path, setting, value):
    """On disk before it is acknowledged (2: FULL), nothing left of what was deleted, no file for
    what is temporary (2: in memory).
    """
    store = open_store(str(tmp_path / "store.sqlite"))
    for _ in range(2):
        assert store.database.connection.execute(f"PRAGMA {setting}").fetchone() == (value,)
        store.database.drop_connection()  # the next one is new
    store.close()


def test_what_hangs_can_be_aborted(tmp_path):
    """Asked to while it runs, as another thread would; the store is used again afterwards."""
    store = open_store(str(tmp_path / "store.sqlite"))
    store.create(survey())
    numbers = "WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k LIMIT 300000)"
    store.database.connection.set_progress_handler(store.abort, 1000)
    with pytest.raises(StoreDown, match="interrupted"), store.reading():
        store.database.connection.execute(f"{numbers} SELECT sum(i) FROM k").fetchone()
    assert store.tally("bits").n == 0
    store.close()


def test_whoever_writes_holds_the_lock_beside_the_file(tmp_path, monkeypatch):
    """Workers queue there; one that does not get its turn in time has written nothing."""
    path = tmp_path / "store.sqlite"
    store = open_store(str(path))
    key = store.create(survey()).key
    with open(f"{path}-lock") as lock:
        with store.writing(), pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free again
        monkeypatch.setattr(limits, "LOCK_SECONDS", 0)
        for use in (
            lambda: store.add([upload(survey(), ids(1))]),
            lambda: store.database.erase_arrival_order(key),
        ):
            with pytest.raises(StoreDown):
                use()
        assert store.tally("bits").n == 0  # who reads needs no turn
    monkeypatch.undo()
    store.add([upload(survey(), ids(1))])
    store.database.erase_arrival_order(key)
    with open(f"{path}-lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert store.tally("bits").n == 1
    store.close()


@pytest.mark.parametrize("error", [StoreDown("x"), DataError("x"), KeyError("x")], ids=repr)
@pytest.mark.parametrize("how", ["reading", "writing"])
def test_no_transaction_swallows_an_error(tmp_path, error, how):
    """And the store goes on with one connection, whatever became of the last."""
    store = open_store(str(tmp_path / "store.sqlite"))
    store.create(survey())
    for _ in range(2):
        with pytest.raises(type(error)) as caught, getattr(store, how)():
            raise error
        assert caught.value is error
        dropped = how == "writing" or type(error) is not DataError
        assert (
            len(store.database._open) == (not dropped) and (store.database._log is None) == dropped
        )
        store.add([upload(survey(), ids(2))])
        assert len(store.database._open) == 1
    assert store.tally("bits").n == 4
    store.close()


def test_a_cursor_that_is_left_open_keeps_nobody_out(tmp_path, monkeypatch):
    """What failed in the middle of reading rows is still held by its error."""
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.3)
    place, made = str(tmp_path / "store"), survey()
    with closing(open_store(place)) as store, closing(open_store(place)) as other:
        store.create(made)
        store.add([upload(made, ids(300))])
        cursors = []

        def fail():
            with store.writing():
                cursors.append(store.database.connection.execute("SELECT id FROM report"))
                next(cursors[0])
                raise StoreDamaged("in the middle")

        with pytest.raises(StoreDamaged):
            fail()
        assert cursors and other.add([upload(made, ids(2))]) == [Outcome(2, 0)]


def test_a_link_to_a_sqlite_file_is_the_same_store(tmp_path):
    """Both names share the lock, and the log is found beside the file."""
    made, real, link = survey(), tmp_path / "disk" / "store", tmp_path / "link"
    real.parent.mkdir()
    link.symlink_to(real)
    with closing(open_store(str(link))) as store, closing(open_store(str(real))) as other:
        store.create(made)
        assert store.add([upload(made, ids(2))]) == [Outcome(2, 0)]
        assert other.add([upload(made, ids(3))]) == [Outcome(3, 0)]
        assert store.tally("bits").n == 5
        assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]
        link.unlink()
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreDown, match="was moved or removed while it was in use"):
            store.add([upload(made, ids(1))])


# ---- opening and closing by the calendar ---------------------------------------------------------


def timed(name="timed", **hours):
    """A survey that opens or closes so many hours from now."""
    now = datetime.now(UTC).replace(microsecond=0)
    told = {key: now + timedelta(hours=n) for key, n in hours.items()}
    return d.Survey(name, [mechanism("bits")], about=told)


def test_a_collection_takes_reports_between_its_times_only(store):
    early, now = timed("early", opens=1), timed("now", opens=-2, closes=1)
    late = timed("late", opens=-2, closes=-1)
    for made in (early, now, late):
        store.create(made)
    assert [store.collection(name).state for name in ("early", "now", "late")] == [
        "upcoming",
        "open",
        "closed",
    ]
    found = store.add([upload(made, ids(2)) for made in (early, now, late)])
    assert found == [Outcome(0, 0, "upcoming"), Outcome(2, 0), Outcome(0, 0, "closed")]
    assert [store.tally(name).n for name in ("early", "now", "late")] == [0, 2, 0]


def test_an_upload_for_a_question_that_is_over_is_told_so_whatever_has_its_name_now(store):
    """One that was replaced before its end is told to look again."""
    late, old = timed("late", opens=-2, closes=-1), timed("open", closes=1)
    over, before = (store.create(made).key for made in (late, old))
    for name in ("late", "open"):
        store.close_collection(name)
        store.delete_collection(name)
    new = [survey("bits", name) for name in ("late", "open")]
    keys = [store.create(made).key for made in new]
    uploads = [
        upload(late, ids(2))._replace(key=over),
        upload(old, ids(2))._replace(key=before),
        *(upload(made, ids(3))._replace(key=key) for made, key in zip(new, keys)),
    ]
    told = [Outcome(0, 0, "closed"), Outcome(0, 0, "replaced"), Outcome(3, 0), Outcome(3, 0)]
    assert store.add(uploads) == told
    assert store.add(uploads[:1]) == told[:1]
    assert [store.tally(name).n for name in ("late", "open")] == [3, 3]


def test_a_collection_whose_time_is_over_is_closed_for_good(place, monkeypatch):
    """What a kill interrupts is done again: that it is closed is written last."""
    made = timed(closes=1)
    store = open_store(place)
    store.create(made)
    store.add([upload(made, ids(3))])
    monkeypatch.setattr(About, "state", lambda self, now: "closed")
    assert not store.collection("timed").closed_by_organiser and store.history("timed") == []
    with monkeypatch.context() as broken:
        broken.setattr(
            store.database,
            "erase_arrival_order",
            lambda *keys, wait: (_ for _ in ()).throw(StoreDown("killed")),
        )
        with pytest.raises(StoreDown, match="killed"):
            store.expire_collection("timed")
    assert not store.collection("timed").closed_by_organiser and store.tally("timed").n == 3
    for _ in range(2):  # another worker may come to it, too
        store.expire_collection("timed")
        assert store.collection("timed").closed_by_organiser
        assert [event.what for event in store.history("timed")] == ["closed by its date"]
    with pytest.raises(DataError, match="as announced; ask again under a new name"):
        store.reopen_collection("timed")
    store.close()


def test_closing_and_reopening_is_written_down(store):
    made = survey()
    store.create(made)
    for _ in range(2):  # a second time nothing happens, and nothing is written
        store.close_collection("bits")
    store.reopen_collection("bits")
    store.reopen_collection("bits")
    store.close_collection("bits")
    history = store.history("bits")
    assert [event.what for event in history] == ["closed", "reopened", "closed"]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\dZ", event.time) for event in history)


def test_a_move_that_was_interrupted_is_remembered_until_it_is_closed_again(store):
    """Whether it was open before the move: only then it is open after it."""

    def moves():
        return [" ".join(filter(None, x.move)) for x in store.collections()]

    for name in ("open", "shut"):
        store.create(survey("bits", name))
    store.close_collection("shut")
    assert store.stop_collection("open", "one") and not store.stop_collection("shut", "one")
    assert moves() == ["leaving open one", "leaving closed one"]
    assert not store.stop_collection("open", "two") and not store.stop_collection(
        "shut", "two"
    )  # a second attempt
    assert moves() == ["leaving open two", "leaving closed two"]
    assert not store.stop_collection("open") and all(
        x.closed_by_organiser for x in store.collections()
    )
    assert moves() == ["", "leaving closed two"]
    store.stop_collection("open", "three")
    store.reopen_collection("shut")
    assert moves() == ["leaving closed three", ""]
    assert [x.what for x in store.history("open")] == ["closed"]


def test_what_was_published_in_the_end_is_not_opened_again(store):
    made = survey()
    store.create(made)
    store.add([upload(made, ids(100))])
    assert store.published("bits").n == 100
    store.reopen_collection("bits")  # it is open: nothing happens
    store.close_collection("bits")
    with pytest.raises(DataError, match="have been published; ask again under a new name"):
        store.reopen_collection("bits")
    assert store.collection("bits").closed_by_organiser


def test_only_a_closed_collection_may_be_deleted(store):
    store.create(survey())
    for use in (store.check_deletable, store.delete_collection):
        with pytest.raises(DataError, match='"bits" is open; discreet close it before'):
            use("bits")
    store.close_collection("bits")
    store.check_deletable("bits")
    store.delete_collection("bits")
    assert store.collections() == []


def test_a_survey_s_own_minimum_is_kept(store):
    made = d.Survey("patient", [mechanism("bits")], about={"minimum": 60})
    store.create(made)
    store.add([upload(made, ids(59))])
    assert store.published("patient").n == 0
    store.add([upload(made, ids(1))])
    assert store.published("patient").n == 60


def locks(path):
    """How many locks this process has on a file, as the system knows them."""
    mine = f" {os.getpid()} ", f":{os.stat(path).st_ino} "
    lines = Path("/proc/locks").read_text().splitlines()
    return sum(all(word in line for word in mine) and " POSIX " in line for line in lines)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system does not list its locks")
def test_nothing_that_we_do_drops_the_locks_on_the_file(tmp_path):
    """Whoever closes a file by hand drops all locks of the process (POSIX): another process would
    then believe that it is alone, and remove the log with what was acknowledged.
    """
    path = tmp_path / "store"
    store, made = open_store(str(path)), timed(closes=1)
    store.create(made)
    store.add([upload(made, ids(3))])
    before = locks(path)
    assert before > 0
    for work in (store.another, lambda: open_store(str(path), create=False)):
        with closing(work()) as other:
            assert other.tally("timed").n == 3
        assert locks(path) >= before
    subprocess.run([DISCREET, "verify", "--store", path], check=True, capture_output=True)
    store.add([upload(made, ids(3))])
    assert store.tally("timed").n == 6
    os.close(os.open(path, os.O_RDONLY))  # the twin
    assert locks(path) < before
    store.close()


def test_a_log_that_was_replaced_is_noticed(tmp_path):
    """The file is the same, but what is written now would not be found again."""
    path, made = tmp_path / "store", survey()
    store = open_store(str(path))
    store.create(made)
    store.add([upload(made, ids(3))])
    log = Path(f"{path}-wal")
    aside = log.read_bytes()
    log.unlink()
    log.write_bytes(aside)
    with pytest.raises(StoreDown, match="was moved or removed while it was in use"):
        store.add([upload(made, ids(3))])
    store.close()


def test_a_reader_does_not_hold_up_the_others_when_a_collection_is_over(tmp_path, monkeypatch):
    """Closing by its date gives up at once and is tried again; whoever closes is told once."""
    monkeypatch.setattr(limits, "LOCK_SECONDS", 600)  # who waited would not come back
    place = str(tmp_path / "store")
    store, reader = open_store(place), open_store(place)
    made, other = timed(closes=1), survey()
    for one in (made, other):
        store.create(one)
    store.add([upload(made, ids(3))])
    monkeypatch.setattr(About, "state", lambda self, now: "closed")
    with reader.reading():
        reader.counts.counted_tally(reader.catalogue.get("timed"))
        with pytest.raises(StoreDown, match="another program reads the store"):
            store.expire_collection("timed")
    assert store.expire_collection("timed") is True
    assert store.expire_collection("timed") is False
    store.close()
    reader.close()
