"""What is counted, per collection and for the service, over all workers; and that nobody can add a
name to it.
"""

import os
import re
import signal

import pytest
from checks import must_fail
from collecting import BEARER, frames, posting, serving, survey, until, web

from discreet.collector import limits
from discreet.collector.metrics import Metrics, State
from discreet.collector.problems import ESTIMATE, UPLOAD, list_refusals
from discreet.encodings import REASONS

ODD = 'a "quoted" \\ name\nof two lines, with ü{}'
LABEL = r'\w+="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"(\w+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.e+-]+|\+Inf)")


def read(text):
    """The samples by name and labels, as Prometheus reads them; each must belong to a family."""
    kinds = dict(re.findall(r"# HELP (\w+) .+\n# TYPE \1 (\w+)\n", text))
    found = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name = re.sub(r"_(bucket|sum|count)$", "", match[1])
        assert name in kinds or match[1] in kinds, line
        labels = tuple(
            (key, re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value))
            for key, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")
        )
        assert (match[1], labels) not in found, f"twice: {line}"
        found[match[1], labels] = float(match[3])
    return found


def of(found, name, **labels):
    return found[name, tuple(labels.items())]


def labelled(found):
    """The names of collections that have a label."""
    return {dict(labels)["collection"] for _, labels in found if "collection" in dict(labels)}


@pytest.fixture
def metrics(tmp_path):
    made = Metrics(tmp_path)
    yield made
    made.close()


def test_names_are_escaped_and_read_back(metrics):
    metrics.accepted(ODD, 3, 1, 0.01)
    found = read(metrics.text([State(ODD, True, 3), State("plain", False, 0)]))
    assert labelled(found) == {"", ODD, "plain"}
    assert of(found, "discreet_reports_accepted_total", collection=ODD) == 3
    assert of(found, "discreet_collection_reports", collection=ODD) == 3
    assert of(found, "discreet_collection_open", collection=ODD) == 1
    assert of(found, "discreet_collection_open", collection="plain") == 0
    assert of(found, "discreet_reports_duplicate_total", collection="plain") == 0


def test_a_text_that_is_not_escaped_is_seen(metrics, monkeypatch):
    """The twin: the reader of these tests is strict."""
    monkeypatch.setattr("discreet.collector.metrics._labels", lambda **x: f'{{collection="{ODD}"}}')
    metrics.accepted(ODD, 3, 1, 0.01)
    must_fail(read, metrics.text())


def test_every_reason_is_counted_for_its_collection(metrics):
    reasons = list_refusals(UPLOAD)
    for times, reason in enumerate(reasons):
        for _ in range(times):
            metrics.refused("one", reason)
        metrics.refused("two", reason)
    found = read(metrics.text())
    for times, reason in enumerate(reasons):
        name = "discreet_uploads_refused_total"
        assert of(found, name, collection="one", reason=reason) == times
        assert of(found, name, collection="two", reason=reason) == 1
        assert of(found, name, collection="", reason=reason) == 0
    assert {reasons[reason].status for reason in REASONS} == {422}
    assert "query" not in reasons and "query" in list_refusals(ESTIMATE)


def assert_adds_up(text, dead):
    found = read(text)
    assert of(found, "discreet_reports_accepted_total", collection="survey") == 66
    assert of(found, "discreet_reports_duplicate_total", collection="survey") == 3
    assert of(found, "discreet_uploads_refused_total", collection="survey", reason="busy") == 3
    assert of(found, "discreet_upload_seconds_sum") == 0.132
    for edge, count in (("0.025", 1), ("0.05", 2), ("0.1", 3), ("+Inf", 3)):
        assert of(found, "discreet_upload_seconds_bucket", le=edge) == count
    assert of(found, "discreet_store_errors_total") == 3
    assert of(found, "discreet_worker_restarts_total") == dead
    for name, each in (("connections", 5), ("uploads_waiting", 2), ("uploads_waiting_bytes", 700)):
        assert of(found, f"discreet_{name}") == each * (3 - dead)


def test_workers_add_up_and_of_dead_ones_only_what_they_counted(tmp_path):
    workers = [Metrics(tmp_path) for _ in range(3)]
    for number, worker in zip((11, 22, 33), workers):
        worker.accepted("survey", number, 1, 0.002 * number)
        worker.refused("survey", "busy")
        worker.store_failed()
        worker.connected(9)
        worker.connected(5)
        worker.waiting(3, 1000)
        worker.waiting(-1, -300)
    (tmp_path / "44-x.counters").write_bytes(b"half")  # a worker that has just begun
    assert_adds_up(workers[0].text(), dead=0)
    for dead, worker in enumerate(workers, 1):
        worker.close()
        assert_adds_up(workers[-1].text(), dead)
    must_fail(assert_adds_up, workers[0].text(), 2)


def test_beyond_so_many_collections_they_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LABELLED", 3)
    metrics = Metrics(tmp_path)
    for k in range(10):
        metrics.accepted(f"c{k}", 1, 0, 0.01)
        metrics.refused(f"c{k}", "frame")
    found = read(metrics.text())
    assert labelled(found) == {"", "c0", "c1", "c2"}
    assert of(found, "discreet_reports_accepted_total", collection="") == 7
    assert of(found, "discreet_uploads_refused_total", collection="", reason="frame") == 7
    assert len(list(tmp_path.iterdir())) == 4
    metrics.close()


def test_a_full_disk_refuses_no_report(metrics, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda handle, content: len(content) // 2)
    metrics.accepted("survey", 4, 0, 0.01)
    found = read(metrics.text())
    assert labelled(found) == {""}
    assert of(found, "discreet_reports_accepted_total", collection="") == 4


# ---- of a real service ---------------------------------------------------------------------------


def scrape(client):
    answer = client.get("/metrics", headers=BEARER)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


def test_a_service_says_what_happened_to_each_collection(tmp_path):
    one, two = survey("fixed"), survey("grr")
    for made in (one, two):
        made.save(tmp_path / f"{made.name}.json")
    with serving(tmp_path, tmp_path / "fixed.json", tmp_path / "grr.json") as server:
        with web(server) as client:
            before = read(scrape(client))
            content = frames(one, 5)
            client.post(**posting(one, content))
            client.post(**posting(one, content + frames(one, 2)))
            client.post(**posting(two, b""))
            client.post(**posting(two, frames(two, 1)))
            found, text = read(scrape(client)), scrape(client)
            connections = web(server), web(server)
            for other in connections:
                other.get("/healthz")
            assert of(read(scrape(client)), "discreet_connections") == 3
            for other in connections:
                other.close()
            until(
                lambda: of(read(scrape(client)), "discreet_connections") == 1,
                "they are not counted",
            )
        assert server.stop() == 0
    kept = "discreet_collection_reports"
    for name, accepted, duplicates in (("fixed", 7, 5), ("grr", 1, 0)):
        assert of(before, kept, collection=name) == 0
        assert of(before, "discreet_reports_accepted_total", collection=name) == 0
        assert of(found, kept, collection=name) == accepted
        assert of(found, "discreet_reports_accepted_total", collection=name) == accepted
        assert of(found, "discreet_reports_duplicate_total", collection=name) == duplicates
        assert of(found, "discreet_collection_open", collection=name) == 1
    refused = {
        labels: n for (name, labels), n in found.items() if name == "discreet_uploads_refused_total"
    }
    assert {labels: n for labels, n in refused.items() if n} == {
        (("collection", "grr"), ("reason", "empty")): 1
    }
    assert (of(found, "discreet_uploads_waiting"), of(found, "discreet_ready")) == (0, 1)
    assert of(found, "discreet_uploads_waiting_bytes") == 0
    assert abs(of(found, "process_start_time_seconds") - os.stat(server.files[0]).st_ctime) < 60
    assert "127.0.0.1" not in text and not re.search(r"[0-9a-f]{32}", text)


def test_nobody_can_add_a_name(tmp_path):
    """Whoever sends to names that are not there is counted without a name, in no file of its
    own.
    """
    made = survey("fixed")
    made.save(tmp_path / "m.json")
    with serving(tmp_path, tmp_path / "m.json") as server, web(server) as client:
        for k in range(50):
            where = posting(made, frames(made, 1)) | {"url": f"/v1/collections/x{k}/reports"}
            assert client.post(**where).status_code == 404
        found = read(scrape(client))
        assert labelled(found) == {"", "fixed"}
        name = "discreet_uploads_refused_total"
        assert of(found, name, collection="", reason="unknown") == 50
        assert len(list(server.temporary.rglob("*.counters"))) == 1
        client.post(**posting(made, frames(made, 1)))
        assert len(list(server.temporary.rglob("*.counters"))) == 2


def test_a_worker_that_dies_is_one_restart_and_its_counts_stay(tmp_path):
    made = survey("fixed")
    made.save(tmp_path / "m.json")
    with serving(tmp_path, tmp_path / "m.json", "--workers", 2) as server:

        def pids():
            return {int(p.stem.split("-")[0]) for p in server.temporary.rglob("*.counters")}

        until(lambda: len(pids()) == 2, "two workers")
        with web(server) as client:
            client.post(**posting(made, frames(made, 6)))
        died = min(pids())
        os.kill(died, signal.SIGKILL)
        until(lambda: len(pids()) == 3, "another worker")

        def scraped():
            with web(server) as client:
                return read(scrape(client))

        until(
            lambda: of(scraped(), "discreet_worker_restarts_total") == 1, "the dead worker is seen"
        )
        assert of(scraped(), "discreet_reports_accepted_total", collection="fixed") == 6


def test_without_a_store_the_counters_say_so(tmp_path):
    made = survey("fixed")
    made.save(tmp_path / "m.json")
    with serving(tmp_path, tmp_path / "m.json") as server, web(server) as client:
        client.post(**posting(made, frames(made, 2)))
        os.rename(tmp_path / "discreet.sqlite", tmp_path / "elsewhere")
        assert client.post(**posting(made, frames(made, 1))).status_code == 503
        found = read(scrape(client))
        assert of(found, "discreet_ready") == 0
        assert of(found, "discreet_reports_accepted_total", collection="fixed") == 2
        assert of(found, "discreet_store_errors_total") >= 1
        assert ("discreet_collection_reports", (("collection", "fixed"),)) not in found
        os.rename(tmp_path / "elsewhere", tmp_path / "discreet.sqlite")
