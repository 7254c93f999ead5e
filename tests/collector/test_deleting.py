"""A collection that is deleted is gone for good, from either store, and from nothing else."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from checks import must_fail
from click.testing import CliRunner
from collecting import (
    BEARER,
    DEADLINE,
    DISCREET,
    TOKEN,
    frames,
    ids,
    listening,
    long_survey,
    people,
    policy,
    posting,
    serving,
    survey,
    until,
    upload,
    web,
)
from postgres import GROUP

import discreet as d
from discreet.cli import main
from discreet.collector import app, limits
from discreet.collector.copying import backup, copy
from discreet.collector.metrics import Metrics
from discreet.collector.store import NoCollection, Outcome, StoreDown, open_store
from discreet.errors import DataError


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=GROUP)])
def place(request, tmp_path):
    """The URL of an empty store of either kind, in a folder of its own."""
    if request.param == "postgresql":
        return request.getfixturevalue("database")
    (tmp_path / "store").mkdir()
    return str(tmp_path / "store" / "store.sqlite")


@pytest.fixture
def store(place):
    opened = open_store(place)
    yield opened
    opened.close()


def delete(*arguments, **settings):
    return CliRunner().invoke(main, ["delete", *map(str, arguments)], **settings)


def filled(store, name, n=40, keep="reports"):
    """A collection with so many reports, half of them sent one by one; the ids and the rows."""
    made, some = long_survey(name), ids(n)
    rows = people(made, n)
    store.create(made, keep)
    for k in range(n // 2):
        store.add([upload(made, some[k : k + 1], rows[k : k + 1])])
    store.add([upload(made, some[n // 2 :], rows[n // 2 :])])
    return some, rows


def read_unless_gone(path):
    """PostgreSQL removes files of its own at any time; one that is gone holds no byte."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def files_of(place, request):
    """Every byte that the store has on disk, but PostgreSQL's write-ahead log: the guide says what
    that keeps.
    """
    if not place.startswith("postgresql"):
        return b"".join(path.read_bytes() for path in Path(place).parent.iterdir())
    postgres = request.getfixturevalue("postgres")
    postgres.execute("CHECKPOINT")
    files = [p for p in postgres.data.rglob("*") if p.is_file() and "pg_wal" not in p.parts]
    return b"".join(map(read_unless_gone, files))


def assert_gone(place, request, some, rows):
    """Nothing of these ids, halves of them included, and of these reports is in a file."""
    raw = files_of(place, request)
    left = [id_ for id_ in some if id_[:8] in raw or id_[8:] in raw]
    assert not left and not [row for row in rows if row.tobytes() in raw]


@pytest.mark.parametrize("keep", ["counts", "reports"])
def test_no_byte_of_it_is_left_and_all_of_the_others(place, store, request, keep):
    some, rows = filled(store, "gone", keep=keep)
    others, their_rows = filled(store, "stays", keep="reports")
    must_fail(assert_gone, place, request, some, [])
    store.close_collection("gone")
    must_fail(assert_gone, place, request, some, [])  # closing keeps the ids
    store.delete_collection("gone")
    assert_gone(place, request, some, rows)
    must_fail(assert_gone, place, request, others, [])
    must_fail(assert_gone, place, request, [], their_rows)
    assert [c.name for c in store.collections()] == ["stays"]
    assert store.tally("stays").n == 40 and not store.find_damage("stays")
    with pytest.raises(NoCollection):
        store.delete_collection("gone")


def test_an_open_one_is_refused_and_stays(store):
    filled(store, "open")
    for refuse in (store.delete_collection, store.check_deletable):
        with pytest.raises(DataError, match='"open" is open; discreet close it'):
            refuse("open")
    assert store.tally("open").n == 40


def test_its_name_can_be_used_again_and_old_reports_do_not_get_into_the_new_one(place, store):
    """Another collector still knows the old one: what was checked for it is not counted."""
    other = open_store(place)
    made = long_survey("again")
    filled(store, "again")
    old = other.collection("again")
    store.close_collection("again")
    store.delete_collection("again")
    new = store.create(made)
    assert new.key != old.key and other.collection("again").key == new.key
    late = upload(made, ids(3))._replace(key=old.key)
    assert other.add([late]) == [Outcome(0, 0, "replaced")]
    assert other.add([late._replace(key=new.key), late]) == [
        Outcome(3, 0),
        Outcome(0, 0, "replaced"),
    ]
    assert other.tally("again").n == 3
    other.close()


def test_keys_are_never_given_again(store):
    """Who remembers a survey by its key must not find another one there."""
    keys = []
    for kind in ("bits", "fixed", "grr"):
        keys.append(store.create(survey(kind)).key)
        store.close_collection(kind)
        store.delete_collection(kind)
    assert sorted(set(keys)) == keys and store.collections() == []


def test_what_was_interrupted_is_done_when_it_is_called_again(tmp_path, monkeypatch):
    """While another program reads, the file cannot be written anew: the name stays until it is."""
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.3)
    path = tmp_path / "store.sqlite"
    store = open_store(str(path))
    some, rows = filled(store, "gone")
    store.close_collection("gone")
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM report").fetchone()
    with pytest.raises(StoreDown, match='"gone" is empty, but the files .*; delete it again'):
        store.delete_collection("gone")
    assert store.tally("gone").n == 0 and not store.find_damage("gone")
    reader.close()
    store.delete_collection("gone")
    assert_gone(str(path), None, some, rows)
    assert not store.collections()
    store.close()


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_asks_first(place, store):
    filled(store, "survey")
    told = delete("survey", "--store", place, "--yes")
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.startswith('error: "survey" is open') and told.stderr.count("\n") == 1
    store.close_collection("survey")
    told = delete("survey", "--store", place)
    assert told.exit_code == 2 and "cannot be taken back; say --yes" in told.stderr
    assert store.tally("survey").n == 40
    for command, state in (("reopen", "open"), ("close", "closed")):
        told = CliRunner().invoke(main, [command, "survey", "--store", place, "--json"])
        assert json.loads(told.stdout) == {"name": "survey", "state": state, "reports": 40}
    told = delete("survey", "--store", place, "--yes")
    assert (told.exit_code, told.stdout) == (0, "survey is deleted with 40 reports.\n")
    filled(store, "another")
    store.close_collection("another")
    told = delete("another", "--store", place, "--yes", "--json")
    assert json.loads(told.stdout) == {"name": "another", "state": "deleted", "reports": 40}
    told = delete("survey", "--store", place, "--yes")
    assert told.exit_code == 2 and 'there is no collection "survey"' in told.stderr


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 130, 1), ("y\n", 0, 0)])
def test_on_a_terminal_it_waits_for_a_yes(tmp_path, answer, code, left):
    store = open_store(str(tmp_path / "discreet.sqlite"))
    filled(store, "survey", 2)
    store.close_collection("survey")
    store.close()
    ours, theirs = os.openpty()
    try:
        os.write(ours, answer.encode())
        command = [sys.executable, "-c", "from discreet.cli import main; main()"]
        done = subprocess.run(
            [*command, "delete", "survey"],
            cwd=tmp_path,
            stdin=theirs,
            capture_output=True,
            timeout=DEADLINE,
            text=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code and "Delete survey with 2 reports?" in done.stderr
    store = open_store(str(tmp_path / "discreet.sqlite"))
    assert len(store.collections()) == left
    store.close()


def test_a_collector_that_runs_says_that_it_is_gone(tmp_path):
    made = survey("fixed")
    made.save(tmp_path / "m.json")
    with serving(tmp_path, tmp_path / "m.json") as server, web(server) as client:
        assert client.post(**posting(made, frames(made, 2))).json()["accepted"] == 2
        for command in (["close", "fixed"], ["delete", "fixed", "--yes"]):
            done = [DISCREET, *command]
            subprocess.run(done, cwd=tmp_path, check=True, timeout=DEADLINE, capture_output=True)
        late = client.post(**posting(made, frames(made, 1)))
        assert (late.status_code, late.json()["title"]) == (410, "closed")
        until(lambda: client.get("/v1/collections/fixed").status_code == 404, "it is not there")
        assert client.get("/v1/collections/fixed/estimate", headers=BEARER).status_code == 404
        assert client.post(**posting(made, frames(made, 1))).status_code == 404
        assert client.get("/v1/collections").json() == {"collections": []}
        assert server.stop() == 0
    assert server.log == ""


def same_name(eps):
    return d.Survey("same", [d.design(policy(eps=eps), "opt0")])


@pytest.mark.parametrize("same", [True, False])
def test_what_was_deleted_and_restored_takes_reports_at_once(place, tmp_path, same):
    """Nobody asks for its description in between. One with another survey refuses them."""
    old, new = (
        d.Survey("same", [d.design(policy(eps=eps), "opt0")]) for eps in (1.0, 1.0 if same else 1.5)
    )
    store = open_store(place)
    store.create(old)
    collector = app.Collector(store, Metrics(tmp_path), TOKEN)
    with listening(collector.application()) as url, httpx.Client(base_url=url) as client:
        assert client.post(**posting(old, frames(old, 2))).json()["accepted"] == 2
        with closing(open_store(place)) as other:
            backup(other, tmp_path / "copy.sqlite")
            other.close_collection("same")
            other.delete_collection("same")
            if same:
                with closing(open_store(str(tmp_path / "copy.sqlite"))) as saved:
                    copy(saved, other)
            else:
                other.create(new)
        sent = client.post(**posting(old, frames(old, 3)))
        assert sent.status_code == (200 if same else 409), sent.text
        assert client.post(**posting(new, frames(new, 1))).json()["accepted"] == 1
        with closing(open_store(place)) as other:
            assert other.tally("same").n == (6 if same else 1)


def test_a_new_collection_of_the_same_name_is_described_as_it_is(tmp_path):
    old, new = (same_name(eps) for eps in (1.0, 1.5))
    store = open_store(str(tmp_path / "store"))
    store.create(old)
    collector = app.Collector(store, Metrics(tmp_path), TOKEN)
    with listening(collector.application()) as url, httpx.Client(base_url=url) as client:
        path = "/v1/collections/same"
        assert client.get(path).json()["fingerprint"] == old.fingerprint
        with closing(open_store(str(tmp_path / "store"))) as other:
            other.close_collection("same")
            other.delete_collection("same")
            other.create(new)

        def described():
            return client.get(path).json()["fingerprint"] == new.fingerprint

        until(described, "the new one is described")


def test_the_watch_for_dates_goes_on_after_whatever_happens(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "WATCH", 0.01)
    store = open_store(str(tmp_path / "store"))
    looks, real = [], store.listing

    def listing():
        looks.append(1)
        if len(looks) == 1:
            raise RuntimeError("damaged")
        return real()

    monkeypatch.setattr(store, "listing", listing)
    collector = app.Collector(store, Metrics(tmp_path), TOKEN)
    with listening(collector.application()):
        until(lambda: len(looks) > 3, "the watch goes on")
