"""Uploads that share a transaction: what fails for one collection is counted for the others."""

import asyncio
import logging
from contextlib import closing

import httpx
import pytest
from collecting import TOKEN, frames, ids, listening, posting, survey, upload
from postgres import GROUP

from discreet.collector import app, limits, logs
from discreet.collector.commit import Committer
from discreet.collector.metrics import Metrics
from discreet.collector.store import Outcome, StoreDamaged, StoreDown, open_store


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=GROUP)])
def store(request, tmp_path):
    """Three collections with a report each; the tally of "bad" is damaged."""
    place = (
        str(tmp_path / "store.sqlite")
        if request.param == "sqlite"
        else request.getfixturevalue("database")
    )
    with closing(open_store(place)) as opened:
        for name in ("bad", "good", "other"):
            opened.create(survey("bits", name))
            opened.add([upload(survey("bits", name), ids(1))])
        with opened.writing():
            opened.counts.tables.write_tally(opened.catalogue.get("bad").key, b"c" + bytes(100))
        opened.counts._pending_bytes.clear()  # as in a process that has just started
        yield opened


def at_once(store, *uploads):
    """What becomes of uploads that come together."""

    async def run():
        committer = Committer(store)
        sent = [committer.submit(one) for one in uploads]
        try:
            return await asyncio.gather(*sent, return_exceptions=True)
        finally:
            await committer.close()

    return asyncio.run(run())


def test_one_damaged_collection_takes_no_other_down(store):
    sent = [upload(survey("bits", name), ids(2)) for name in ("good", "bad", "other", "bad")]
    good, bad, other, again = at_once(store, *sent)
    assert (good, other) == (Outcome(2, 0), Outcome(2, 0))
    assert isinstance(bad, StoreDamaged) and isinstance(again, StoreDamaged)
    assert store.tally("good").n == store.tally("other").n == 3
    with store.reading("bad"):
        assert store.counts.tables.count_ids(store.catalogue.get("bad").key) == 1


def test_a_collection_that_the_database_cannot_write_is_named(store, monkeypatch):
    """Not what we read, but a statement fails; with the others, and then alone."""
    insert, bad = store.database.insert_reports, store.collection("bad").key

    def failing(key, *rest):
        if key == bad:
            raise OSError("a bad block")
        return insert(key, *rest)

    monkeypatch.setattr(store.database, "insert_reports", failing)
    good, failed = at_once(
        store, *(upload(survey("bits", name), ids(2)) for name in ("good", "bad"))
    )
    assert good == Outcome(2, 0)
    assert isinstance(failed, StoreDown) and '(collection "bad")' in str(failed)


def test_a_store_that_hangs_is_not_asked_again_for_every_collection(store, monkeypatch):
    monkeypatch.setattr(limits, "STORE_SECONDS", 0.0)
    asked = []

    def add(uploads):
        asked.append(len(uploads))
        raise StoreDown("it hangs")

    monkeypatch.setattr(store, "add", add)
    found = at_once(store, *(upload(survey("bits", name), ids(1)) for name in ("good", "other")))
    assert [str(error) for error in found] == ["it hangs"] * 2 and asked == [2]


def test_people_are_told_which_collection_is_damaged_and_so_is_the_log(store, tmp_path, caplog):
    logs._logged.clear()
    collector = app.Collector(store.another(), Metrics(tmp_path), TOKEN)
    with (
        caplog.at_level(logging.ERROR, "discreet"),
        listening(collector.application()) as url,
        httpx.Client(base_url=url) as client,
    ):
        for name, status in (("bad", 503), ("good", 200), ("bad", 503)):
            made = survey("bits", name)
            sent = client.post(**posting(made, frames(made, 1)))
            assert sent.status_code == status, sent.text
            if status == 503:
                assert sent.json()["title"] == "damaged" and sent.headers["retry-after"]
                assert 'the collection "bad" is damaged' in sent.json()["detail"]
        seen = client.get(
            "/v1/collections/bad/estimate", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        assert (seen.status_code, seen.json()["title"]) == (503, "damaged")
        assert client.get("/v1/collections").status_code == 200
    said = [r.facts["collection"] for r in caplog.records if r.message == "damaged"]
    assert said == ["bad"]


def test_pages_list_what_cannot_be_read_and_the_watch_goes_on(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(limits, "WATCH", 0.01)
    logs._logged.clear()
    store = open_store(str(tmp_path / "store"))
    for name in ("torn <b>", "good"):
        store.create(survey("bits", name))
    with store.writing():
        store.database.connection.execute(
            "UPDATE collection SET document = '{' WHERE name = 'torn <b>'"
        )
    store.catalogue._surveys.clear()
    collector = app.Collector(store, Metrics(tmp_path), TOKEN)
    with (
        caplog.at_level(logging.ERROR, "discreet"),
        listening(collector.application()) as url,
        httpx.Client(base_url=url) as client,
    ):
        listed = client.get("/v1/collections").json()
        assert [c["name"] for c in listed["collections"]] == ["good"]
        assert listed["unreadable"] == ["torn <b>"]
        page = client.get("/")
        assert page.status_code == 200 and "torn &lt;b&gt;" in page.text
        assert "unreadable" in page.text
        assert client.get("/v1/collections/torn <b>").json()["title"] == "damaged"
        made = survey("bits", "good")
        assert client.post(**posting(made, frames(made, 1))).status_code == 200
        with closing(store.another()) as other:
            other.close_collection("good")
    assert {r.facts["collection"] for r in caplog.records} == {"torn <b>"}
