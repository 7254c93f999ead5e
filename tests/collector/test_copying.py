"""Backup, restore and move: nothing that was acknowledged is lost, on either store."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from collecting import survey, upload
from postgres import GROUP

from discreet.arrays.survey_tally import SurveyTally
from discreet.cli import main
from discreet.collector.catalogue import Catalogue
from discreet.collector.checksums import with_checksum
from discreet.collector.copying import backup, copy
from discreet.collector.moving import move
from discreet.collector.records import NO_MOVE
from discreet.collector.store import StoreDown, open_store
from discreet.errors import DataError

pytestmark = GROUP


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where the first store is."""
    if request.param == "sqlite":
        return str(tmp_path / "first.sqlite")
    return request.getfixturevalue("database")


@pytest.fixture(params=["sqlite", "postgresql"])
def other(request, tmp_path):
    """Where the second store is; one database is enough, so they are not both PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "second.sqlite")
    return request.getfixturevalue("database")


def ids(n, k=0):
    """Ids that can be sent again."""
    return [bytes([k]) + j.to_bytes(15, "big") for j in range(n)]


def filled(place, closed=True):
    """Two collections: counts of one that is open, reports of one that may be closed."""
    store = open_store(place)
    store.create(survey("bits"))
    store.create(survey("ticket"), "reports")
    for k in range(3):
        store.add([upload(survey("bits"), ids(50, k))])
        store.add([upload(survey("ticket"), ids(40, k))])
    store.published("bits")
    if closed:
        store.close_collection("ticket")
    return store


def content(store):
    """All that a store says."""
    found = {}
    for c in store.collections():
        kept = list(store.reports(c.name)) if c.keep == "reports" else None
        shown = store.published(c.name).n
        with store.reading():
            known = [id_ for id_, _ in store.counts.tables.stored(c.key)]
        found[c.name] = (
            c.survey,
            c.keep,
            c.closed_by_organiser,
            store.tally(c.name),
            kept,
            shown,
            known,
        )
    return found


def same(first, second):
    assert first.keys() == second.keys()
    for name, values in first.items():
        assert all(a == b for a, b in zip(values, second[name], strict=True)), name


def test_a_backup_has_everything(place, tmp_path):
    store = filled(place)
    told = []
    assert backup(store, tmp_path / "b.sqlite", advance=told.append) == {"bits": 150, "ticket": 120}
    assert sum(told) == 270
    assert [x.name for x in tmp_path.iterdir() if "b.sqlite" in x.name] == ["b.sqlite"]
    assert (tmp_path / "b.sqlite").stat().st_mode & 0o777 == 0o600
    again = open_store(str(tmp_path / "b.sqlite"), create=False)
    same(content(store), content(again))
    # a report that is in it is a duplicate there, a new one is counted
    twice = upload(survey("bits"), ids(50, 0))
    assert again.add([twice])[0].duplicates == 50
    assert again.add([upload(survey("bits"), ids(5, 9))])[0].accepted == 5
    assert store.tally("bits").n == 150
    again.close()
    store.close()


@pytest.mark.parametrize("work", [copy, move])
def test_from_one_kind_of_store_to_the_other(tmp_path, database, work):
    for first, second in ((str(tmp_path / "a.sqlite"), database), (database, str(tmp_path / "b"))):
        source, target = open_store(first), open_store(second)
        if first != database:
            filled(first).close()
        before = content(source)
        assert work(source, target) == {"bits": 150, "ticket": 120}
        same(before, content(target))
        assert [c.closed_by_organiser for c in source.collections()] == [work is move, True]
        if work is move:
            assert source.add([upload(survey("bits"), ids(1, 99))])[0].state == "closed"
        source.close()
        target.close()


def test_some_collections_only(tmp_path):
    store, target = filled(str(tmp_path / "a")), open_store(str(tmp_path / "b"))
    assert copy(store, target, ["ticket"]) == {"ticket": 120}
    assert [c.name for c in target.collections()] == ["ticket"]
    with pytest.raises(DataError, match='there is no collection "none"'):
        copy(store, target, ["none"])
    with pytest.raises(DataError, match='has a collection "ticket" already; nothing was copied'):
        copy(store, target)  # "bits" would be new
    assert [c.name for c in target.collections()] == ["ticket"]
    store.close()
    target.close()


def test_a_move_that_fails_leaves_everything_as_it_was(tmp_path, monkeypatch):
    """Never open in both: closed first, opened again if the copy cannot be made."""
    store, target = filled(str(tmp_path / "a"), closed=False), open_store(str(tmp_path / "b"))
    seen = []

    def failing(*arguments):
        other = open_store(str(tmp_path / "a"))
        seen.extend(c.closed_by_organiser for c in other.collections())
        other.close()
        raise DataError("no room")

    monkeypatch.setattr(type(target.database), "insert_reports", failing)
    with pytest.raises(DataError, match="no room"):
        move(store, target)
    assert seen == [True, True]
    assert [c.closed_by_organiser for c in store.collections()] == [False, False]
    assert target.collections() == []
    store.close()
    target.close()


def test_what_was_not_closed_is_not_called_reopened(tmp_path, monkeypatch):
    """The second cannot be closed: it was not touched, and nothing else is written down of it."""
    store, target = filled(str(tmp_path / "a"), closed=False), open_store(str(tmp_path / "b"))
    first, second = (c.name for c in store.collections())
    end = store.stop_collection

    def failing(name, *mark):
        if name == second:
            raise StoreDown("no")
        return end(name, *mark)

    monkeypatch.setattr(store, "stop_collection", failing)
    with pytest.raises(StoreDown, match="no"):
        move(store, target)
    assert [event.what for event in store.history(first)] == ["closed", "reopened"]
    assert store.history(second) == []
    assert not any(c.closed_by_organiser for c in store.collections())
    store.close()
    target.close()


def test_a_move_that_fails_does_not_reopen_what_others_ended(tmp_path, monkeypatch):
    """One was shown to somebody meanwhile, the other closed by somebody else before we came."""
    store, target = filled(str(tmp_path / "a"), closed=False), open_store(str(tmp_path / "b"))
    first, second = (c.name for c in store.collections())
    end = store.stop_collection

    def meanwhile(name, *mark):
        if name == second:
            end(name)
        return end(name, *mark)

    def failing(*arguments):
        other = open_store(str(tmp_path / "a"))
        with other.writing():
            ended = other.catalogue.get(first)
            shown = with_checksum(SurveyTally(ended.survey).to_bytes())
            other.counts.tables.write_published(ended.key, shown)
        other.close()
        raise DataError("no room")

    monkeypatch.setattr(store, "stop_collection", meanwhile)
    monkeypatch.setattr(type(target.database), "insert_reports", failing)
    with pytest.raises(DataError, match="no room"):
        move(store, target)
    assert [c.closed_by_organiser for c in store.collections()] == [True, True]
    assert [[e.what for e in store.history(x)] for x in (first, second)] == [["closed"]] * 2
    monkeypatch.undo()
    store.reopen_collection(second)
    monkeypatch.setattr(store, "stop_collection", meanwhile)
    move(store, target)  # and one that does not fail leaves it closed there, too
    assert [c.closed_by_organiser for c in target.collections()] == [True, True]
    store.close()
    target.close()


def test_one_store_has_one_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled("a", closed=False).close()
    for target in ("a", "./a", "sqlite:///a", f"sqlite:////{tmp_path}/a"):
        told = CliRunner().invoke(main, ["move", target, "--store", "a"])
        assert told.exit_code == 2 and "are the same" in told.stderr
    store = open_store("a")
    for collection in store.collections():
        assert not collection.closed_by_organiser and store.history(collection.name) == []
    store.close()


def test_a_collection_made_meanwhile_is_not_added_to(tmp_path, database, monkeypatch):
    """Somebody creates it between our look and our insert: nothing is copied, nothing committed."""
    store, target = filled(str(tmp_path / "a")), open_store(database)
    other = open_store(database)
    find = Catalogue.find

    def late(self, name, lock=False):
        found = find(self, name, lock)
        if self is target.catalogue and name == "bits" and found is None:
            other.create(survey("bits"))
        return found

    monkeypatch.setattr(Catalogue, "find", late)
    with pytest.raises(DataError, match='has a collection "bits" already; nothing was copied'):
        copy(store, target)
    monkeypatch.undo()
    assert target.tally("bits").n == 0 and target.find_damage("bits") == []
    assert other.add([upload(survey("bits"), ids(50, 0))])[0].accepted == 50
    for opened in (store, target, other):
        opened.close()


def test_a_closed_collection_opens_again_until_its_end_was_shown(place):
    store = filled(place)
    store.reopen_collection("ticket")
    assert store.add([upload(survey("ticket"), ids(3, 77))])[0].accepted == 3
    store.close_collection("ticket")
    assert store.published("ticket").n == 123  # anyone has seen how it ended
    with pytest.raises(DataError, match="have been published"):
        store.reopen_collection("ticket")
    assert store.collection("ticket").closed_by_organiser
    store.close()


def test_what_does_not_add_up_is_not_copied(tmp_path):
    store, target = filled(str(tmp_path / "a")), open_store(str(tmp_path / "b"))
    db = sqlite3.connect(tmp_path / "a", isolation_level=None)
    db.execute("DELETE FROM report WHERE id = (SELECT min(id) FROM report)")
    db.close()
    for work in (copy, move):
        with pytest.raises(DataError, match="is damaged and is not copied"):
            work(store, target)
    assert target.collections() == [] and not store.collection("bits").closed_by_organiser
    store.close()
    target.close()


def test_kept_reports_are_counted_again_before_they_are_copied(tmp_path):
    """One report stands where another was: as many ids, another tally."""
    store, target = filled(str(tmp_path / "a")), open_store(str(tmp_path / "b"))
    db = sqlite3.connect(tmp_path / "a", isolation_level=None)
    few = "(SELECT {}(report) FROM report WHERE report IS NOT NULL)"
    db.execute(f"UPDATE report SET report = {few.format('max')} WHERE report = {few.format('min')}")
    db.close()
    for work in (copy, move):
        with pytest.raises(DataError, match='"ticket" is damaged .* give another tally'):
            work(store, target)
    assert target.collections() == []
    store.close()
    target.close()


def test_what_is_acknowledged_before_a_backup_is_in_it(place, tmp_path):
    """While reports pour in, several backups: each holds all that was acknowledged before it began,
    and adds up.
    """
    made = survey("bits")
    store = open_store(place)
    store.create(made)
    done, stop = [0], threading.Event()

    def pour():
        own = open_store(place)
        while not stop.is_set():
            own.add([upload(made, [os.urandom(16) for _ in range(7)])])
            done[0] += 7
        own.close()

    thread = threading.Thread(target=pour)
    thread.start()
    try:
        for k in range(6):
            before = done[0]
            (n,) = backup(store, tmp_path / f"{k}.sqlite").values()
            assert before <= n <= done[0] + 7
            again = open_store(str(tmp_path / f"{k}.sqlite"), create=False)
            assert again.tally("bits").n == n and again.find_damage("bits") == []
            again.close()
    finally:
        stop.set()
        thread.join()
    assert done[0] > 0 and store.tally("bits").n == done[0]
    store.close()


def test_a_move_loses_nothing_that_was_acknowledged(place, tmp_path):
    """Whoever was told that her report is counted is in the new store; after that nobody is told so
    by the old one.
    """
    made = survey("bits")
    store, target = open_store(place), open_store(str(tmp_path / "new"))
    store.create(made)
    accepted, begun = [0], threading.Event()

    def pour():
        own = open_store(place)
        while True:
            (found,) = own.add([upload(made, [os.urandom(16) for _ in range(3)])])
            if found.state == "closed":
                break
            accepted[0] += found.accepted
            begun.set()
        own.close()

    thread = threading.Thread(target=pour)
    thread.start()
    begun.wait(20)
    found = move(store, target)
    thread.join()
    assert found == {"bits": accepted[0]} and target.tally("bits").n == accepted[0]
    assert (
        not target.collection("bits").closed_by_organiser
        and store.collection("bits").closed_by_organiser
    )
    store.close()
    target.close()


def test_a_plain_copy_loses_reports(tmp_path):
    """The twin: what `backup` is for."""
    store = filled(str(tmp_path / "a"), closed=False)
    shutil.copy(tmp_path / "a", tmp_path / "copied")
    db = sqlite3.connect(tmp_path / "copied")
    tables = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'report'").fetchone()[0]
    found = db.execute("SELECT count(*) FROM report").fetchone()[0] if tables else 0
    db.close()
    assert found < 150 + 120
    store.close()


# ---- the commands --------------------------------------------------------------------------------


def run(*arguments, code=0):
    found = CliRunner().invoke(main, [*map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


def test_the_commands(tmp_path, monkeypatch, other):
    monkeypatch.chdir(tmp_path)
    store = filled("discreet.sqlite")
    before = content(store)
    store.close()
    said = run("backup", "-o", "b.sqlite").output
    assert said.splitlines() == [
        "bits: 150 reports in b.sqlite, verified.",
        "ticket: 120 reports in b.sqlite, verified.",
    ]
    (line,) = run("backup", "-o", "b.sqlite", code=2).stderr.splitlines()
    assert "b.sqlite exists already" in line
    found = json.loads(run("restore", "b.sqlite", "bits", "--store", other, "--json").output)
    assert found == {"reports": {"bits": 150}}
    (line,) = run("restore", "b.sqlite", "--store", other, code=2).stderr.splitlines()
    assert 'has a collection "bits" already; nothing was copied' in line
    run("move", other, "ticket")
    again = open_store(other)
    same(before, content(again))
    again.close()
    (line,) = run("move", "discreet.sqlite", code=2).stderr.splitlines()
    assert "are the same" in line
    (line,) = run("restore", "nothing.sqlite", code=2).stderr.splitlines()
    assert "nothing.sqlite does not exist" in line
    Path("c.sqlite").write_text("x")
    run("backup", "-o", "c.sqlite", code=2)
    assert Path("c.sqlite").read_text() == "x"


def test_an_empty_store_is_said_to_be_empty(tmp_path):
    open_store(str(tmp_path / "a")).close()
    found = run("backup", "-o", tmp_path / "b", "--store", tmp_path / "a", code=2)
    assert "there are no collections" in found.stderr and not (tmp_path / "b").exists()


# ---- a move that is cut off ----------------------------------------------------------------------

MOVING = """
import json, os, signal, sys
from contextlib import contextmanager
from discreet.collector.moving import move
from discreet.collector.store import StoreDown, open_store
import discreet as d

made = d.design(d.Policy.from_levels([("level", 1.0, ["a", "b"])]), "opt0")
made.tally(made.perturb_many([0]))  # the kernels are loaded


def run(first, second, kind, last):
    source, target = open_store(first), open_store(second)
    commits = []

    def end(store):
        if kind.startswith("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        store.database.drop_connection()
        raise StoreDown("the connection was cut")

    def cutting(store):
        writing = store.database.writing

        @contextmanager
        def cut(*arguments, **settings):
            with writing(*arguments, **settings):
                yield
                commits.append(store)
                if len(commits) == last and kind.endswith("before"):
                    end(store)
            if len(commits) == last and kind.endswith("after"):
                end(store)

        store.database.writing = cut

    cutting(source)
    cutting(target)
    try:
        move(source, target)
    except StoreDown:
        return 255
    return len(commits)


for line in sys.stdin:
    child = os.fork()
    if not child:
        os._exit(run(*json.loads(line)))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def moving():
    """Move in a process of its own that is cut off at a commit: its exit code, or how many commits
    there were.
    """
    start = [sys.executable, "-c", MOVING]
    with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mover:

        def run(first, second, kind="never", last=0):
            print(json.dumps([first, second, kind, last]), file=mover.stdin, flush=True)
            return int(mover.stdout.readline())

        yield run


@pytest.mark.parametrize("kind", ["kill before", "kill after", "cut before", "cut after"])
@pytest.mark.parametrize(
    "way",
    [
        "sqlite to sqlite",
        "sqlite to postgresql",
        pytest.param("postgresql to sqlite", marks=pytest.mark.slow),
    ],
)
def test_a_move_that_was_cut_off_anywhere_is_finished_by_the_next(
    tmp_path, request, moving, kind, way
):
    """At every commit, before it or after: never open in both stores, and the next move brings all
    that was acknowledged.
    """
    filled(str(tmp_path / "x")).close()
    total = moving(str(tmp_path / "x"), str(tmp_path / "y"))
    assert total > 3
    for last in range(1, total + 1):
        first, second = (
            request.getfixturevalue("postgres").fresh()
            if name == "postgresql"
            else str(tmp_path / f"{last}-{k}")
            for k, name in enumerate(way.split(" to "))
        )
        source = filled(first)
        before = content(source)
        source.close()
        assert moving(first, second, kind, last) == (-9 if "kill" in kind else 255)
        source, target = open_store(first), open_store(second)
        there = {c.name: not c.closed_by_organiser for c in target.collections()}
        here = {c.name: not c.closed_by_organiser for c in source.collections()}
        assert not any(here[name] and there.get(name) for name in here), last
        extra = 0
        if here["bits"]:  # it goes on where it was, until it is moved again
            extra = source.add([upload(survey("bits"), ids(9, 200))])[0].accepted
        for name, arrived in there.items():
            if not arrived and name == "bits":
                with pytest.raises(DataError, match="a move that was interrupted left this copy"):
                    target.reopen_collection(name)
        assert move(source, target) == {"bits": 150 + extra, "ticket": 120}
        assert {c.name: not c.closed_by_organiser for c in source.collections()} == {
            "bits": False,
            "ticket": False,
        }
        assert all(not target.find_damage(name) for name in here)
        after = content(target)
        assert target.tally("bits").n == 150 + extra
        if not extra:
            same(before, after)
        assert not after["bits"][2] and after["ticket"][2]
        for name in here:
            with pytest.raises(DataError, match="was moved to another store"):
                source.reopen_collection(name)
            assert [event.what for event in target.history(name)][-1] == "moved"
        move(source, target)  # once more: nothing happens
        same(after, content(target))
        source.close()
        target.close()
        for url in (first, second):
            if url.startswith("postgresql"):
                request.getfixturevalue("postgres").drop(url)


def test_only_a_copy_that_a_move_left_is_replaced(tmp_path):
    """A collection of the same name that is somebody's own stays, whatever its state."""
    made = survey("bits")
    store, target = filled(str(tmp_path / "a"), closed=False), open_store(str(tmp_path / "b"))
    target.create(made)
    target.add([upload(made, ids(4, 50))])
    target.close_collection("bits")
    with pytest.raises(DataError, match='has a collection "bits" already; nothing was copied'):
        move(store, target)
    assert target.tally("bits").n == 4 and not store.collection("bits").closed_by_organiser
    assert store.collection("bits").move == NO_MOVE == store.collection("ticket").move
    store.close()
    target.close()


def test_what_was_moved_elsewhere_is_not_moved_again(tmp_path):
    store, target = filled(str(tmp_path / "a")), open_store(str(tmp_path / "b"))
    move(store, target)
    another = open_store(str(tmp_path / "c"))
    with pytest.raises(DataError, match='"bits" was moved to another store already'):
        move(store, another)
    assert another.collections() == [] and not target.collection("bits").closed_by_organiser
    for opened in (store, target, another):
        opened.close()


def test_what_is_reopened_in_the_middle_of_a_move_is_not_opened_twice(tmp_path, monkeypatch):
    store, target = filled(str(tmp_path / "a")), open_store(str(tmp_path / "b"))

    def meanwhile(*arguments):
        with closing(open_store(str(tmp_path / "a"))) as other:
            if other.collection("bits").closed_by_organiser:
                with other.writing():  # as `reopen`, which its results would refuse
                    bits = other.catalogue.get("bits")
                    other.catalogue.open(bits)
                    other.catalogue.set_move(bits, NO_MOVE)

    with pytest.raises(DataError, match='"bits" was opened or moved by somebody else meanwhile'):
        move(store, target, advance=meanwhile)
    assert (
        not store.collection("bits").closed_by_organiser
        and target.collection("bits").closed_by_organiser
    )
    assert move(store, target)["bits"] == 150
    assert (
        not target.collection("bits").closed_by_organiser
        and store.collection("bits").closed_by_organiser
    )
    store.close()
    target.close()


def test_what_was_moved_elsewhere_in_the_middle_of_a_move_is_not_opened_again(tmp_path):
    """The move that fails takes back its own steps, and not those of another one."""
    store, target = filled(str(tmp_path / "a")), open_store(str(tmp_path / "b"))
    another = open_store(str(tmp_path / "c"))

    def meanwhile(*arguments):
        with closing(open_store(str(tmp_path / "a"))) as other:
            if other.collection("bits").move.step == "leaving":
                assert move(other, another, ["bits"]) == {"bits": 150}

    with pytest.raises(DataError, match='"bits" was opened or moved by somebody else meanwhile'):
        move(store, target, ["bits"], advance=meanwhile)
    assert store.collection("bits").closed_by_organiser
    assert store.collection("bits").move.step == "moved"
    assert not another.collection("bits").closed_by_organiser
    assert target.collection("bits").closed_by_organiser
    for opened in (store, target, another):
        opened.close()


def test_a_close_after_an_interrupted_move_is_kept(tmp_path, moving):
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    filled(first).close()
    moving(first, second, "kill after", 2)
    store, target = open_store(first), open_store(second)
    assert store.collection("bits").move[:2] == ("leaving", "open")
    store.close_collection("bits")
    move(store, target)
    assert (
        target.collection("bits").closed_by_organiser
        and store.collection("bits").closed_by_organiser
    )
    store.close()
    target.close()
