"""The participant's side: what it verifies, what it sends, what it remembers, and what makes it
refuse.
"""

import json
import math
import os
import resource
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from collecting import DEADLINE, DISCREET, KINDS, listening, mechanism, policy, survey
from parts import make_part
from pretending import entries, single

import discreet as d
from discreet.check.exact import D
from discreet.cli import answer as answer_command
from discreet.cli import main
from discreet.collector import app
from discreet.collector.metrics import Metrics
from discreet.collector.store import open_store
from discreet.device import client as module
from discreet.device import ledger, network
from discreet.device.client import Client, PromiseError, Receipt, invitation
from discreet.device.ledger import Ledger, LedgerError, OverlapError, TotalError
from discreet.encodings import Bits
from discreet.errors import ClientError, DataError, FingerprintError, GuaranteeError, MechanismError
from discreet.promises.words import in_words
from discreet.survey import Survey

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A real collector of every kind of question, with its store."""
    folder = tmp_path_factory.mktemp("real")
    store = open_store(str(folder / "store"))
    for kind in KINDS:
        store.create(survey(kind), "reports")
    collector = app.Collector(store, Metrics(folder), "a-token-of-the-organiser")
    with listening(collector.application()) as url:
        yield SimpleNamespace(url=url, store=str(folder / "store"))


def stored(real, name):
    store = open_store(real.store)
    try:
        return list(store.reports(name))
    finally:
        store.close()


def signed(content):
    content = {key: value for key, value in content.items() if key != "fingerprint"}
    return {**content, "fingerprint": Survey.fingerprint_body(content)}


def inner(document):
    """The mechanism in the document of a survey of one question."""
    return document["questions"][0]["mechanism"]


def only(sent):
    """The frame of a survey of one question, prepared or sent."""
    (frame,) = sent.frames
    return frame


def answer_of(kind):
    return {"high 0", "low 5"} if kind in ("set", "hits", "picks", "each") else "high 0"


# ---- answering -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_perturbed_sent_and_counted_once(real, home, kind):
    before = stored(real, kind)
    client = Client(real.url)
    asked = client.collection(kind)
    assert (asked.name, asked.survey, asked.state) == (kind, survey(kind), "open")
    prepared = client.prepare(asked, answer_of(kind))
    assert stored(real, kind) == before  # nothing has left yet
    assert asked.mechanism.coder.refusal(prepared.report) is None
    receipt = client.send(prepared)
    assert receipt == Receipt(1, 0) and repr(receipt) == "Receipt(accepted=1, duplicates=0)"
    assert only(receipt) == only(prepared)
    assert client.send(prepared) == Receipt(0, 1)
    after = stored(real, kind)
    assert len(after) == len(before) + 1 and prepared.report in after
    (entry,) = entries(home)
    assert (entry["id"], entry["report"], entry["state"]) == (
        only(prepared).id.hex(),
        prepared.report.hex(),
        "counted",
    )


def test_a_report_is_remembered_before_anybody_sees_it(fake, home):
    """Drawing again and again until one likes the report is impossible: choosing among draws would
    tell more than the factor.
    """
    server = fake(survey("bits"))
    first = Client(server.url).prepare(Client(server.url).collection("bits"), "high 0")
    assert [entry["state"] for entry in entries(home)] == ["shown"] and not server.posts
    for answer in ("high 0", "low 5") * 20:  # another process, another answer
        client = Client(server.url)
        again = client.prepare(client.collection("bits"), answer)
        assert (only(again), again.repeated) == (only(first), True)
    assert client.send(again) == Receipt(1, 0)
    assert server.posts == [only(first).id + first.report]
    assert [entry["state"] for entry in entries(home)] == ["counted"]


def test_a_report_is_in_no_line_of_a_log_by_accident(fake, home):
    made = survey("bits")
    client = Client(fake(made).url)
    prepared = client.prepare(client.collection(made.name), made.only.policy.items[0])
    (frame,) = prepared.frames
    for shown in (repr(prepared), repr(frame), repr(client.send(prepared))):
        assert repr(frame.report) not in shown and repr(frame.content) not in shown
        assert frame.report.hex() not in shown


def test_bytes_that_are_no_report_are_neither_written_down_nor_sent(fake, home, monkeypatch):
    """It cannot happen; if it did, nothing must leave."""
    server = fake(survey("bits"))
    client = Client(server.url)
    asked = client.collection("bits")
    for wrong in (b"\0", b"\xff\xff"):  # too short, and an item that is none
        monkeypatch.setattr(d.Mechanism, "perturb", lambda *_, wrong=wrong: wrong)
        with pytest.raises(LedgerError, match="the report is not one of this mechanism: "):
            client.send(client.prepare(asked, "high 0"))
    assert not home.exists() and server.posts == []


def test_without_a_ledger_every_preparation_is_another_draw(fake, home):
    """The twin: what the ledger prevents would be seen."""
    client = Client(fake(survey("bits")).url)
    drawn = set()
    for _ in range(40):
        drawn.add(client.prepare(client.collection("bits"), "high 0").report)
        home.unlink()
    assert len(drawn) > 1


def test_what_was_only_shown_has_told_nobody_anything(fake, home):
    server = fake(single("one", "a", "b"), single("two", "a", "c"), single("three", "a", "d"))
    client = Client(server.url)
    shown = client.prepare(client.collection("one"), "a")
    own = shown.asked.mechanism.guarantee().ldp_epsilon
    client.answer("two", "a", max_total=own)  # no consent, and no budget spent
    for late in (shown, None):  # and now what leaves counts for what was shown
        with pytest.raises(OverlapError):
            client.send(late) if late else client.prepare(client.collection("one"), "b")
    with pytest.raises(TotalError):
        client.prepare(client.collection("one"), "b", agree=True, max_total=1.5 * own)
    agreed = client.prepare(client.collection("one"), "b", agree=True)
    assert agreed.report == shown.report and client.send(agreed) == Receipt(1, 0)


def test_a_report_whose_ledger_was_removed_is_written_down_again(fake, home):
    server = fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    home.unlink()
    client.send(prepared)
    assert [(e["id"], e["state"]) for e in entries(home)] == [(only(prepared).id.hex(), "counted")]


def test_the_same_collection_gets_the_same_report_whatever_is_answered(fake, home):
    made = survey("grr")
    server = fake(made)
    client = Client(server.url)
    for answer in ("high 0", "low 5", "high 0", 3):
        client.answer("grr", answer)
    assert len(server.posts) == 4 and len(set(server.posts)) == 1 and len(server.posts[0]) == 16 + 2
    assert client.prepare(client.collection("grr"), "low 1").repeated and len(entries(home)) == 1
    with pytest.raises(DataError, match="^the answer is not an item of this question"):
        client.answer("grr", "none")


def test_what_is_sent_is_a_function_of_the_report_alone(fake, home, monkeypatch):
    """With the report and its id fixed, another answer changes no byte: of the requests, and of the
    ledger.
    """
    made, seen = survey("set"), []
    monkeypatch.setattr(ledger.os, "urandom", lambda n: b"i" * n)
    fixed = made.mechanism.perturb({"high 0"})
    monkeypatch.setattr(d.Mechanism, "perturb", lambda *_: fixed)
    for answer in ({"high 0"}, {"low 1", "low 2", "middle 0"}, set()):
        server = fake(made)
        Client(server.url).answer("set", answer)
        requests = [
            (method, path, {**headers, "Host": ""}, body)
            for method, path, headers, body in server.seen
        ]
        seen.append((requests, home.read_text().replace(server.url, "")))
        home.unlink()
    assert seen[0] == seen[1] == seen[2]
    (_, get_path, get_headers, _), (_, post_path, post_headers, body) = seen[0][0]
    assert (get_path, post_path) == ("/v1/collections/set", "/v1/collections/set/reports")
    assert body == b"i" * 16 + fixed
    assert set(get_headers) == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}
    assert set(post_headers) == set(get_headers) | {
        "Content-Type",
        "Content-Length",
        "Discreet-Survey",
    }
    assert (post_headers["User-Agent"], post_headers["Discreet-Survey"]) == (
        "discreet",
        made.fingerprint,
    )


def test_a_report_is_random(fake, home):
    """Its twin: with nothing fixed, reports and ids differ (120 drawn bits: two of three are equal
    with a chance below 1e-20).
    """
    made = d.Survey("bits", [d.design(policy(sizes=(40, 40, 40)), "opt0")])
    server = fake(made)
    for _ in range(3):
        Client(server.url).answer("bits", "high 0")
        home.unlink()
    assert (
        len({body[:16] for body in server.posts}) == 3 == len({body[16:] for body in server.posts})
    )


def test_a_report_that_could_not_be_sent_is_sent_the_next_time(fake, home, clock):
    server = fake(survey("bits"))
    client = Client(server.url)
    asked = client.collection("bits")
    server.script.extend([(503, {}, b"")] * 1000)
    with pytest.raises(ClientError, match="cannot be used: it answers 503; try again later"):
        client.send(client.prepare(asked, "high 0"))
    assert [entry["state"] for entry in entries(home)] == ["leaving"]
    server.script.clear()
    assert Client(server.url).answer("bits", "low 1") == Receipt(1, 0)
    assert len(set(server.posts)) == 1
    assert [entry["state"] for entry in entries(home)] == ["counted"]


@pytest.mark.parametrize(
    "said",
    [
        b"{}",
        b"[]",
        b"null",
        b'{"accepted": 0, "duplicates": 0}',
        b'{"accepted": 2, "duplicates": 0}',
    ],
)
def test_a_receipt_must_say_that_the_report_is_there(fake, home, said):
    server = fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    server.script.append((200, {}, said))
    with pytest.raises(ClientError, match="did not acknowledge the report"):
        client.send(prepared)
    assert [entry["state"] for entry in entries(home)] == ["leaving"]


# ---- the server is not trusted -------------------------------------------------------------------


def test_a_pinned_policy_must_be_the_collection_s(fake):
    made = survey("bits")
    client = Client(fake(made).url)
    assert client.collection("bits", policy=made.mechanism.policy).survey == made
    assert client.collection("bits", policy=made).survey == made
    for other, sentence in (
        (policy(eps=0.5), 'item "high 0" has epsilon 1, not 0.5'),
        (policy(sizes=(2, 3, 7)), 'item "low 6" is missing'),
        (policy(sizes=(2, 3, 5)), 'item "low 5" is not in the policy'),
        (policy(notion="avg"), 'notion is "min", not "avg"'),
        (policy(kind="set"), 'kind is "single", not "set"'),
    ):
        with pytest.raises(
            PromiseError, match=f'"bits" is not what you named: {sentence}; do not answer'
        ):
            client.collection("bits", policy=other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pinned_budget_bounds_what_is_promised(fake, kind):
    made = survey(kind)
    client = Client(fake(made).url)
    epsilons = (
        made.mechanism.policy.effective_budgets
        if made.mechanism.policy.kind.lists
        else made.mechanism.guarantee().epsilons
    )
    most = max(map(float, epsilons))
    assert client.collection(kind, max_epsilon=most).survey == made
    with pytest.raises(PromiseError, match="above the .* you allow; do not answer"):
        client.collection(kind, max_epsilon=most - 1e-3)


def test_a_budget_can_be_pinned_per_item(fake):
    made = survey("bits")
    client = Client(fake(made).url)
    levels = [float(x) for x in made.mechanism.guarantee().level_epsilons]
    each = {
        item: levels[k]
        for item, k in zip(made.mechanism.policy.items, made.mechanism.policy.level_of)
    }
    assert client.collection("bits", max_epsilon=each).survey == made
    with pytest.raises(PromiseError, match='"middle 1" has budget'):
        client.collection("bits", max_epsilon=each | {"middle 1": 0.5})
    client.collection("bits", max_epsilon={"high 0": levels[0]})


@pytest.mark.parametrize("label", ["HIGH 0", "high  0", "ｈigh 0"])
def test_a_budget_pinned_for_an_item_cannot_be_evaded_by_writing_it_otherwise(fake, label):
    client = Client(fake(survey("bits")).url)
    with pytest.raises((PromiseError, DataError)):
        client.collection("bits", max_epsilon={label: 0.1})


def test_a_pinned_budget_is_a_number(fake):
    client = Client(fake(survey("bits")).url)
    with pytest.raises((PromiseError, DataError)):
        client.collection("bits", max_epsilon=math.nan)


def test_a_pinned_fingerprint_must_be_the_collection_s(fake):
    made = survey("bits")
    client = Client(fake(made).url)
    assert client.collection("bits", fingerprint=made.fingerprint).survey == made
    with pytest.raises(PromiseError, match="the invitation is for fingerprint"):
        client.collection("bits", fingerprint=survey("ticket").fingerprint)


def tampered():
    """Documents that a dishonest server could serve, and how each is noticed."""
    parts, bits, grr, ticket = (
        survey(kind).to_document() for kind in ("fixed", "bits", "grr", "ticket")
    )

    def changed(base, change, sign=True, whole=False):
        copy = json.loads(json.dumps(base))
        change(copy if whole else inner(copy))
        return signed(copy) if sign else copy

    def louder(raw):
        raw["parts"][0]["own"][0] += 2**28

    def certain(raw):
        groups = len(raw["shares"])
        raw["parts"][0].update(own=[2**32] * groups, other=[0] * groups)

    for kind, raw in (("bits", bits), ("grr", grr), ("ticket", ticket)):
        yield f"{kind}: a larger own, signed", changed(raw, louder), GuaranteeError
        yield f"{kind}: a larger own", changed(raw, louder, sign=False), FingerprintError
        yield f"{kind}: certain", changed(raw, certain), GuaranteeError

    def moved(raw):
        """The chance of one part given to another: whose answer it is would show in the part."""
        raw["parts"][1]["chance"][0] += raw["parts"][0]["chance"][0] - 1
        raw["parts"][0]["chance"][0] = 1

    yield "a part that one level never uses", changed(parts, moved), GuaranteeError
    yield (
        "chances beyond one",
        changed(parts, lambda raw: raw["parts"][0]["chance"].__setitem__(0, 2**32)),
        GuaranteeError,
    )
    yield (
        "another number of named items",
        changed(grr, lambda raw: raw["parts"][0]["other"].__setitem__(0, 11)),
        GuaranteeError,
    )
    yield (
        "a field that is none",
        changed(ticket, lambda raw: raw["encoding"].update(q=210)),
        MechanismError,
    )
    yield (
        "a certificate in other words",
        changed(bits, lambda raw: raw["certificate"].update(value="1e3")),
        MechanismError,
    )
    yield (
        "format 1",
        changed(bits, lambda raw: raw.update(format="discreet-mechanism/1")),
        MechanismError,
    )
    yield (
        "a smaller budget claimed",
        changed(parts, lambda raw: raw["policy"]["levels"][2].update(epsilon="0.1")),
        GuaranteeError,
    )
    yield (
        "shares beyond one",
        changed(parts, lambda raw: raw["shares"].__setitem__(0, 2**32)),
        MechanismError,
    )
    yield (
        "a weight",
        changed(parts, lambda raw: raw["policy"]["levels"][0].update(weight="1")),
        MechanismError,
    )
    yield "another key", changed(parts, lambda raw: raw.update(note="hello")), MechanismError
    yield "no policy", changed(parts, lambda raw: raw.pop("policy")), MechanismError
    for name, change in {
        "a survey of format 2": lambda raw: raw.update(format="discreet-survey/2"),
        "another key beside the questions": lambda raw: raw.update(note="hello"),
        "no questions": lambda raw: raw.update(questions=[]),
        "questions that are no list": lambda raw: raw.update(questions={}),
        "two answers to one question": lambda raw: raw.update(answers=2),
        "a question twice": lambda raw: raw.update(questions=raw["questions"] * 2),
        "a question without a name": lambda raw: raw["questions"][0].pop("name"),
        "a cross of nothing": lambda raw: raw["questions"][0].update(of=["a", "b"]),
    }.items():
        yield name, changed(parts, change, whole=True), MechanismError
    yield "no parts", changed(parts, lambda raw: raw.update(parts=[])), d.DiscreetError
    yield "nothing", {}, d.DiscreetError


@pytest.mark.parametrize(
    ("raw", "error"), [pytest.param(*rest, id=name) for name, *rest in tampered()]
)
def test_a_tampered_mechanism_is_refused_before_anything_is_sent(fake, home, raw, error):
    server = fake()
    server.documents["bits"] = raw
    with pytest.raises(error):
        Client(server.url).answer("bits", "high 0")
    assert server.posts == [] and not home.exists()


GARBAGE = [
    b"",
    b"hello",
    b"\xff\xfe",
    b"5",
    b"null",
    b"[]",
    b"{}",
    b'{"survey": 5, "state": "open"}',
    b'{"survey": {}}',
]


@pytest.mark.parametrize("said", GARBAGE)
def test_an_answer_that_is_no_collection_is_refused(fake, said):
    server = fake()
    server.script.append((200, {}, said))
    with pytest.raises(
        d.DiscreetError, match="does not answer like a collector; check the address|fingerprint"
    ):
        Client(server.url).collection("bits")
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_is_nested_too_deeply_is_refused(fake, status):
    server = fake()
    server.script.append(
        (status, {}, b"[" * 60_000 + b"]" * 60_000 if status == 200 else b"[" * 60_000)
    )
    with pytest.raises(ClientError):
        Client(server.url).collection("bits")


def test_an_answer_without_end_is_not_read(fake, monkeypatch):
    monkeypatch.setattr(network, "_LARGEST", 1000)
    server = fake()
    server.script.append((200, {}, b"[" + b" " * 1000 + b"]"))
    with pytest.raises(ClientError, match="sends a longer answer than any collector"):
        Client(server.url).collection("bits")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(fake, home, status):
    elsewhere, server = fake(survey("bits")), fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    away = (status, {"Location": f"{elsewhere.url}/v1/collections/bits"}, b"")
    server.script.extend([away, away])
    with pytest.raises(ClientError, match=f"the collector refused: it answers {status}"):
        client.send(prepared)
    with pytest.raises(ClientError, match=f"it answers {status}"):
        client.collection("bits")
    assert elsewhere.seen == []


# ---- retries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_collector_is_asked_again_with_the_same_bytes(fake, clock, status):
    server = fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    server.script.extend(
        [
            (status, {"Retry-After": "7"}, b"{}"),
            (status, {}, b"{}"),
            (status, {"Retry-After": "3600"}, b"{}"),
        ]
    )
    assert client.send(prepared) == Receipt(1, 0)
    assert len(server.posts) == 4 and set(server.posts) == {only(prepared).id + prepared.report}
    first, second, third = clock.pauses
    assert (
        first >= 7 and 0.25 <= second <= 7 and third == 20
    )  # as asked, our own, and not whatever is asked


def test_pauses_grow_and_differ(fake, clock):
    server = fake(survey("bits"))
    server.script.extend([(503, {}, b"")] * 5)
    Client(server.url).collection("bits")
    assert (
        all(2**k / 4 <= pause <= 2**k / 2 for k, pause in enumerate(clock.pauses))
        and len(clock.pauses) == 5
    )


def test_dropped_connections_are_tried_again_with_the_same_bytes(fake, clock):
    """The first time the report was counted and only the answer was lost: then it is a duplicate,
    which is as good.
    """
    server = fake(survey("bits"))
    client = Client(server.url)
    asked = client.collection("bits")
    server.script.extend([None, None, (200, {}, b'{"accepted": 0, "duplicates": 1}')])
    assert client.send(client.prepare(asked, "high 0")) == Receipt(0, 1)
    assert len(server.posts) == 3 and len(set(server.posts)) == 1 and len(clock.pauses) == 2


def test_an_answer_that_was_cut_off_is_asked_for_again(fake, clock):
    server = fake(survey("bits"))
    _, _, whole = server.answer("GET", "/v1/collections/bits")
    server.script.append(
        (200, {"Content-Length": str(len(whole)), "Connection": "close"}, whole[:200])
    )
    assert Client(server.url).collection("bits").survey == survey("bits") and len(clock.pauses) == 1


def test_a_collector_that_stays_away_is_given_up_after_a_while(clock):
    told = []
    client = Client("http://127.0.0.1:9", patience=30, waiting=told.append)
    with pytest.raises(
        ClientError,
        match="at http://127.0.0.1:9 cannot be used: Connection refused; try again later",
    ):
        client.collection("bits")
    assert 4 <= len(clock.pauses) and sum(clock.pauses) <= 30
    assert told == ["Connection refused"] * len(clock.pauses)


def test_the_command_says_once_that_it_waits(clock):
    found = CliRunner().invoke(main, ["answer", "http://127.0.0.1:9/c/bits"])
    waits, error = found.stderr.splitlines()
    assert waits == "The collector is not ready (Connection refused); trying for a minute."
    assert found.exit_code == 2 and error.startswith("error: ") and len(clock.pauses) > 4


@pytest.mark.parametrize("status", [400, 401, 404, 409, 410, 413, 415, 422])
def test_a_refusal_is_told_and_not_repeated(fake, clock, status):
    server = fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    server.script.append((status, {}, b'{"detail": "this is why"}'))
    with pytest.raises(ClientError, match="^the collector refused: this is why$"):
        client.send(prepared)
    assert len(server.posts) == 1 and clock.pauses == []


SAID = "no\x1b[2J\r\n  such \u202ename\u200b\x9b1m " + "x" * 999


def test_what_a_server_says_is_cleaned_before_it_is_shown(fake):
    """Also a detail that is none, and a fingerprint that is an escape sequence."""
    server = fake(survey("bits"))
    server.script.append((404, {}, json.dumps({"detail": SAID}).encode()))
    with pytest.raises(ClientError) as caught:
        Client(server.url).collection("bits")
    told = str(caught.value).removeprefix("the collector refused: ")
    assert told.startswith("no\ufffd[2J such \ufffdname\ufffd\ufffd1m xxx") and told.isprintable()
    assert len(told) == 300
    for detail in ("", "\n", 5, ["\x1b"], {"\x1b": 1}, None):
        server.script.append((404, {}, json.dumps({"detail": detail}).encode()))
        with pytest.raises(ClientError, match="it answers 404$"):
            Client(server.url).collection("bits")
    server.documents["bits"]["fingerprint"] = "\x1b[2J\u202e" * 9
    with pytest.raises(FingerprintError) as caught:
        Client(server.url).collection("bits")
    assert str(caught.value).isprintable()


def test_an_answer_that_is_no_http_is_cleaned(clock):
    """Its first line is part of what Python's own client complains of."""

    def speak(listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall("\x1b]0;owned\x07\x1b[2J\u202e\r\n\r\n".encode())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=speak, args=(listener,))
        thread.start()
        with pytest.raises(ClientError, match="owned") as caught:
            Client(f"http://127.0.0.1:{listener.getsockname()[1]}", patience=2).collection("x")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text", ["a\nb", "a\x1b[2Jb", "a\x9b1m", "a\u202eb", "a\u200bb", "a\u2028"]
)
@pytest.mark.parametrize(
    "where",
    [
        *("question", "name", "items", "levels", "note"),
        *("question's name", "organiser", "public", "translations"),
    ],
)
def test_a_verified_survey_cannot_steer_the_terminal(fake, where, text):
    """Whatever people read of it: refused, with a sentence that is fit for a terminal itself."""
    made = survey("bits")
    changed = made.to_document()
    told = inner(changed)
    if where == "items":
        told["policy"]["items"][0] = text
    elif where == "levels":
        told["policy"]["levels"][0]["name"] = text
    elif where == "note":
        told["certificate"] = {"value": "1", "lower_bound": "", "note": text}
    elif where == "question":
        told["policy"]["question"] = text
    elif where == "name":
        changed["name"] = text
    elif where == "question's name":
        changed["questions"][0]["name"] = text
    elif where == "organiser":
        changed["about"] = {"organiser": text}
    elif where == "public":
        changed["public"] = [{"name": "region", "text": "Where?", "items": ["north", text]}]
    else:
        changed["translations"] = {"de": {"questions": {"question": {"text": text}}}}
    server = fake(made)
    server.documents["bits"] = signed(changed)
    with pytest.raises(MechanismError) as caught:
        Client(server.url).collection("bits")
    assert str(caught.value).isprintable()


def test_a_body_that_was_too_slow_is_sent_again(fake, clock):
    server = fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    server.script.append((408, {}, b'{"detail": "the body did not arrive in time; send it again"}'))
    assert client.send(prepared) == Receipt(1, 0)


@pytest.mark.parametrize("said", ["-5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "1e99", ""])
def test_a_strange_retry_after_is_not_believed(fake, clock, said):
    server = fake(survey("bits"))
    server.script.append((503, {"Retry-After": said}, b""))
    Client(server.url).collection("bits")
    assert 0.25 <= clock.pauses[0] <= 0.5


def test_a_retry_after_of_superscript_digits_is_not_believed(fake, clock):
    server = fake(survey("bits"))
    server.script.append((503, {"Retry-After": "²"}, b""))
    Client(server.url).collection("bits")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("0", 0), ("7", 7), ("007", 7), ("9" * 11, 10**11 - 1), ("9" * 12, 0), (None, 0), ("", 0),
        ("+7", 0), ("7.0", 0), (" 7", 0), ("٧", 0), ("²", 0),
    ],
)  # fmt: skip
def test_headers_that_are_whole_numbers(said, found):
    """At most eleven plain digits; anything else is as if nothing was said."""
    assert network._whole(said) == found


# ---- questions about the same items --------------------------------------------------------------


def test_a_renamed_question_is_refused_until_agreed(fake, home):
    made = survey("bits")
    server = fake(made)
    server.documents["renamed"] = survey("bits", "renamed").to_document()
    client = Client(server.url)
    client.answer("bits", "high 0")
    asked = client.collection("renamed")
    with pytest.raises(
        OverlapError, match="you already gave an earlier answer about the same items"
    ) as caught:
        client.prepare(asked, "high 0")
    twice = d.compose([made.mechanism.guarantee(), made.mechanism.guarantee()])
    assert (
        caught.value.epsilon
        == pytest.approx(twice.ldp_epsilon)
        == pytest.approx(2 * made.mechanism.guarantee().ldp_epsilon)
    )
    assert in_words(math.exp(twice.ldp_epsilon)) in str(caught.value)
    assert len(server.posts) == 1 and len(entries(home)) == 1
    assert client.send(client.prepare(asked, "high 0", agree=True)) == Receipt(1, 0)
    assert len(set(server.posts)) == 2 and len(entries(home)) == 2


def test_a_nudged_probability_is_another_question(fake):
    """The same name and items, one number of the mechanism a little smaller: asked again in
    vain.
    """
    made = survey("bits")
    server = fake(made)
    client = Client(server.url)
    client.answer("bits", "high 0")
    nudged = made.to_document()
    inner(nudged)["parts"][0]["own"][0] -= 1
    server.documents["bits"] = signed(nudged)
    with pytest.raises(OverlapError):
        client.answer("bits", "high 0")
    assert len(server.posts) == 1


def test_another_server_is_another_question(fake):
    made = survey("bits")
    first, second = fake(made), fake(made)
    Client(first.url).answer("bits", "high 0")
    for url in (second.url, first.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(OverlapError):
            Client(url).answer("bits", "high 0")
    assert second.posts == []


def test_the_address_of_one_server_may_be_written_in_several_ways(fake):
    server = fake(survey("bits"))
    Client(server.url).answer("bits", "high 0")
    assert (
        Client(server.url.replace("http", "HTTP") + "/")
        .prepare(Client(server.url).collection("bits"), "low 1")
        .repeated
    )


@pytest.mark.parametrize(
    "label",
    [
        *("hiv", "HIV ", " H I V", "ＨＩＶ", "Hiv", "h  i v", "H\u200dIV"),
        *(
            "HIV\ufe0f",
            "H\u180bIV",
            "H\U000e0100IV",
            "\u041dIV",
            "H\u0406V",
            "h\u0456\u03bd",
            "\u0397\u0399V",
        ),
    ],
)
def test_a_label_written_otherwise_is_the_same_item(fake, label):
    before = "H I V" if " " in label.strip() else "HIV"
    server = fake(single("first", before, "b"), single("second", label, "c"))
    client = Client(server.url)
    client.answer("first", "b")
    with pytest.raises(OverlapError) as caught:
        client.answer("second", "c")
    assert caught.value.item == label


def test_other_items_are_another_matter(fake, home):
    server = fake(single("first", "a", "b"), single("second", "c", "d"))
    client = Client(server.url)
    client.answer("first", "a")
    assert client.answer("second", "c") == Receipt(1, 0) and len(entries(home)) == 2


def test_budgets_add_up_item_by_item(fake):
    """Three questions; the item about which most would be told is in all of them, though not the
    one with the largest budget.
    """
    server = fake(
        single("one", "a", "b", eps=1),
        single("two", "A", "c", eps=2),
        single("three", "a ", "b", "e", eps=0.5),
    )
    client = Client(server.url)
    spent = {
        name: float(client.collection(name).mechanism.guarantee().ldp_epsilon)
        for name in ("one", "two", "three")
    }
    client.answer("one", "a")
    client.answer("two", "c", agree=True)
    with pytest.raises(OverlapError, match="2 earlier answers") as caught:
        client.answer("three", "e")
    assert (caught.value.item, caught.value.epsilon) == ("a ", pytest.approx(sum(spent.values())))


def test_the_sum_is_at_least_what_composition_promises(fake):
    """Same items, two different surveys: compose() knows the pairs and may be smaller, never
    larger.
    """
    first, second = survey("bits", "first"), survey("grr", "second")
    server = fake(first, second)
    client = Client(server.url)
    client.answer("first", "high 0")
    with pytest.raises(OverlapError) as caught:
        client.answer("second", "high 0")
    first, second = first.mechanism, second.mechanism
    both = d.compose([first.guarantee(), second.guarantee()])
    each = zip(first.guarantee().level_epsilons, second.guarantee().level_epsilons)
    assert caught.value.epsilon == pytest.approx(max(map(sum, each)))
    assert caught.value.epsilon >= both.ldp_epsilon - 1e-12


def test_sets_and_single_answers_add_up(fake):
    sets, one = survey("set"), survey("bits")
    client = Client(fake(sets, one).url)
    client.answer("set", {"high 0"})
    with pytest.raises(OverlapError) as caught:
        client.answer("bits", "high 0")
    each = zip(sets.mechanism.guarantee().item_epsilons, one.mechanism.guarantee().level_epsilons)
    assert caught.value.epsilon == pytest.approx(max(map(sum, each)))


def test_what_was_agreed_is_not_stretched(fake):
    """Between the agreement and the sending another answer was given: that was not part of it."""
    server = fake(*(single(name, "a", "b") for name in ("one", "two", "three")))
    client = Client(server.url)
    prepared = client.prepare(client.collection("three"), "a")
    agreed = client.prepare(client.collection("two"), "a", agree=True)
    client.answer("one", "a")
    for late in (prepared, agreed):
        with pytest.raises(OverlapError, match="an earlier answer"):
            client.send(late)
    assert len(server.posts) == 1


def test_a_cap_counts_all_items_where_each_is_protected_on_its_own(fake, home):
    """Whatever is ticked: what is refused must not depend on the answer."""
    made = survey("each")
    guarantee = made.mechanism.guarantee()
    total = sum(float(guarantee.epsilons[k]) for k in made.mechanism.policy.level_of)
    assert guarantee.ldp_epsilon == pytest.approx(total)
    client = Client(fake(made).url)
    for answer in ((), {"high 0"}):
        with pytest.raises(TotalError):
            client.answer("each", answer, max_total=0.99 * total)
    client.answer("each", {"high 0"}, max_total=1.01 * total)


def test_a_limit_of_the_budgets_is_of_those_that_the_policy_names(fake, home):
    """An item of a set is told by less than its budget, its list by more."""
    made = survey("hits")
    assert (
        max(made.mechanism.guarantee().epsilons)
        < 1.9
        < 2
        == float(made.mechanism.policy.effective_budgets[2])
    )
    client = Client(fake(made).url)
    with pytest.raises(PromiseError, match="has budget 2 in this collection, above the 1.9"):
        client.collection("hits", max_epsilon=1.9)
    assert client.collection("hits", max_epsilon=2).state == "open"


def test_a_cap_counts_what_is_told_of_a_whole_list(fake, home):
    """No item is told by more than its own factor, and the list by more than any of them."""
    made = survey("hits")
    guarantee = made.mechanism.guarantee()
    between = (max(guarantee.epsilons) + guarantee.ldp_epsilon) / 2
    assert max(guarantee.epsilons) < between < guarantee.ldp_epsilon
    client = Client(fake(made).url)
    with pytest.raises(TotalError):
        client.answer("hits", {"high 0"}, max_total=between)
    client.answer("hits", {"high 0"}, max_total=guarantee.ldp_epsilon)


def test_a_cap_on_the_sum_holds_whatever_is_agreed_to(fake, home):
    """It does not ask what the collections are about: these share no item."""
    server = fake(*(single(name, name + " x", name + " y") for name in ("one", "two", "three")))
    client = Client(server.url)
    own = client.collection("one").mechanism.guarantee().ldp_epsilon
    with pytest.raises(TotalError, match="^this answer has the budget .* even if you agree$"):
        client.answer("one", "one x", agree=True, max_total=own / 2)
    client.answer("one", "one x", max_total=own)
    with pytest.raises(TotalError, match="^this answer and an earlier answer together") as caught:
        client.answer("two", "two x", agree=True, max_total=1.99 * own)
    assert (caught.value.epsilon, caught.value.limit) == (pytest.approx(2 * own), 1.99 * own)
    capped = Client(server.url, max_total=1.99 * own)
    with pytest.raises(TotalError):  # the smaller cap counts
        capped.answer("two", "two x", agree=True, max_total=99)
    assert len(server.posts) == 1 and len(entries(home)) == 1
    assert capped.answer("one", "one y") == Receipt(1, 0)  # the same report tells nothing new
    late = client.prepare(client.collection("two"), "two x", max_total=2 * own)
    client.answer("three", "three x", max_total=2 * own)
    with pytest.raises(TotalError, match="2 earlier answers"):
        client.send(late)
    states = {entry["name"]: entry["state"] for entry in entries(home)}
    assert states == {"one": "counted", "two": "shown", "three": "counted"}


def one_way(name, *levels):
    rows = [(str(k), epsilon, [f"{name} {k}"]) for k, epsilon in enumerate(levels)]
    opened = [row[0] for row in rows if row[1] is None]
    return d.Survey(name, [d.design(d.Policy.from_levels(rows, notion="one-way", open=opened))])


def test_a_cap_counts_one_way_answers_by_name_only(fake, home):
    """Either way there is no limit; of raised odds 1, 1 and 2 add up to 4."""
    two_way = single("both", "both x", "both y")
    own = two_way.mechanism.guarantee().ldp_epsilon
    named = [one_way("first", 1, None), one_way("second", 1, 2), two_way]
    client = Client(fake(*named).url)
    assert [s.mechanism.guarantee().raise_epsilon for s in named] == pytest.approx(
        [1, 2, own], rel=1e-6
    )
    with pytest.raises(TotalError, match=r"budget inf, .*raised odds have 1: accept that"):
        client.answer("first", "first 0", max_total=9)
    with pytest.raises(TotalError, match=r"budget 1, above the 0\.9 .*even if you agree$"):
        client.answer("first", "first 0", max_total=0.9, one_way=True)
    client.answer("first", "first 0", max_total=1.01, one_way=True)
    with pytest.raises(TotalError, match="budget 3, above the 2.9"):
        client.answer("second", "second 0", max_total=2.9, one_way=True)
    client.answer("second", "second 0", max_total=3.01, one_way=True)
    with pytest.raises(TotalError, match="budget inf"):  # the first answer has no limit either way
        client.answer("both", "both x", max_total=99)
    late = client.collection("both", one_way=True)
    with pytest.raises(TotalError):
        client.prepare(late, "both x", max_total=2.99 + own)
    assert client.send(client.prepare(late, "both x", max_total=3.01 + own)).accepted == 1
    budgets = {entry["name"]: entry["budgets"] for entry in entries(home)}
    assert budgets["first"]["whole"] is None and budgets["second"]["whole"] == pytest.approx(2)
    assert [x["raised"] for x in budgets.values()] == pytest.approx([1, 2, own])


def test_a_level_that_is_not_open_and_has_a_gap_has_no_limit_of_raised_odds():
    rows = [("a", 1, ["a", "x"]), ("b", 1, ["b"]), ("c", None, ["c"])]
    policy = d.Policy.from_levels(
        rows, notion="one-way", open=["c"], pairs=[("a", "b", None, True)]
    )
    assert d.design(policy).guarantee().raise_epsilon == math.inf
    each = d.design(d.Policy.from_levels(rows[:2], notion="one-way", kind="each"))
    assert each.guarantee().raise_epsilon == pytest.approx(3)
    assert each.guarantee().ldp_epsilon == math.inf


@pytest.mark.parametrize("cap", [0, -1, math.nan, True, "1"])
def test_a_cap_is_a_positive_number(fake, cap):
    client = Client(fake(survey("bits")).url)
    with pytest.raises(DataError, match="max_total is a positive number"):
        Client(client.url, max_total=cap)
    with pytest.raises(DataError, match="max_total is a positive number"):
        client.prepare(client.collection("bits"), "high 0", max_total=cap)


# ---- the ledger ----------------------------------------------------------------------------------


def test_the_ledger_is_for_its_owner_alone(fake, tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    old = os.umask(0)
    try:
        Client(fake(survey("bits")).url).answer("bits", "high 0")
    finally:
        os.umask(old)
    folder = tmp_path / "data" / "discreet"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "ledger.json": 0o600,
        "ledger.json.lock": 0o600,
    }
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger().path == tmp_path / ".local" / "share" / "discreet" / "ledger.json"


def test_the_ledger_holds_what_was_told_and_no_time(fake, home):
    made = survey("bits")
    server = fake(made)
    Client(server.url).answer("bits", "high 0")
    (entry,) = entries(home)
    body = server.posts[0]
    assert entry == {
        "origin": server.url,
        "name": "bits",
        "fingerprint": made.fingerprint,
        "question": "question",
        "id": body[:16].hex(),
        "report": body[16:].hex(),
        "told": [],
        "items": list(made.mechanism.policy.items),
        "state": "counted",
        "budgets": {
            "levels": [float(x) for x in made.mechanism.guarantee().level_epsilons],
            "levelOf": list(made.mechanism.policy.level_of),
            "whole": made.mechanism.guarantee().ldp_epsilon,
            "raised": made.mechanism.guarantee().ldp_epsilon,
            "oneWay": False,
        },
    }


def damages():
    """Everything that can be wrong in one entry, and files that are no ledgers."""
    good = {
        "origin": "http://x",
        "name": "n",
        "fingerprint": "f",
        "question": "q",
        "id": "00" * 16,
        "report": "00",
        "items": ["a"],
        "told": [],
        "state": "counted",
        "budgets": {"levels": [1.0], "levelOf": [0], "whole": 1.0, "raised": 1.0, "oneWay": False},
    }
    for key in good:
        yield f"no {key}", {k: v for k, v in good.items() if k != key}
        for value in (None, 5, [], {}, [5]):
            if not (key in ("items", "told") and value == []):
                yield f"{key} = {value}", {**good, key: value}
    for levels, level_of in (
        ([], [0]),
        ([1.0], [1]),
        ([1.0], [-1]),
        ([1.0], [0, 0]),
        ([1.0], [0.0]),
        (["1"], [0]),
        ([-1.0], [0]),
    ):
        yield (
            f"budgets {levels} {level_of}",
            {
                **good,
                "budgets": {
                    "levels": levels,
                    "levelOf": level_of,
                    "whole": 1.0,
                    "raised": 1.0,
                    "oneWay": False,
                },
            },
        )
    for key, value in (
        ("items", "a"),
        ("items", {"a": 1}),
        ("id", "00 " * 16),
        ("id", "00"),
        ("report", ""),
        ("report", "AB"),
        ("told", "a"),
        ("state", "lost"),
        ("state", "drawn"),  # and it has a report already
    ):
        yield f"{key} {value}", {**good, key: value}
    yield "counted and no report", {**good, "id": "", "report": ""}
    yield (
        "no items",
        {
            **good,
            "items": [],
            "budgets": {
                "levels": [1.0],
                "levelOf": [],
                "whole": 1.0,
                "raised": 1.0,
                "oneWay": False,
            },
        },
    )
    yield (
        "levels are true",
        {
            **good,
            "budgets": {
                "levels": [True],
                "levelOf": [0],
                "whole": 1.0,
                "raised": 1.0,
                "oneWay": False,
            },
        },
    )
    yield (
        "levels are a table",
        {
            **good,
            "budgets": {
                "levels": {"0": 1.0},
                "levelOf": [0],
                "whole": 1.0,
                "raised": 1.0,
                "oneWay": False,
            },
        },
    )
    yield (
        "nan",
        {
            **good,
            "budgets": {
                "levels": [math.nan],
                "levelOf": [0],
                "whole": 1.0,
                "raised": 1.0,
                "oneWay": False,
            },
        },
    )
    budgets = good["budgets"]
    for key in ("whole", "raised"):
        for whole in (math.nan, math.inf, -1.0, True, "1"):  # None: no limit
            yield f"{key} is {whole}", {**good, "budgets": {**budgets, key: whole}}
    for one_way in (None, 1, "no"):
        yield f"one way is {one_way}", {**good, "budgets": {**budgets, "oneWay": one_way}}
    for key in budgets:
        rest = {name: value for name, value in budgets.items() if name != key}
        yield f"no {key} in the budgets", {**good, "budgets": rest}
    yield "no hex", {**good, "report": "xy"}


WRECKS = [(name, json.dumps({"entries": [entry]}).encode()) for name, entry in damages()]
WRECKS += [
    (repr(raw), raw)
    for raw in (
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"entries": 5}',
        b'{"entries": {"a": 1}}',
        b'{"entries": {}}',
        b'{"entries": ""}',
        b'{"entries": []}'.replace(b"}", b', "more": 1}'),
        b'{"entry": []}',
        b'"entries"',
        b"\xff",
        b"[" * 9999,
    )
]


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name[:40]) for name, raw in WRECKS])
def test_with_a_damaged_ledger_nothing_is_sent(fake, home, raw):
    home.write_bytes(raw)
    server = fake(survey("bits"))
    with pytest.raises(LedgerError, match="nothing is sent"):
        Client(server.url).answer("bits", "high 0")
    assert server.posts == [] and home.read_bytes() == raw


def test_one_damaged_entry_among_others_is_seen():
    whole = dict(damages())["no origin"] | {"origin": "http://x"}
    for _, bad in damages():
        for entries_ in ([whole, bad], [bad, whole]):
            with pytest.raises(LedgerError, match="is damaged, so nothing is sent"):
                Ledger()._entries(json.dumps({"entries": entries_}))
    for entries_ in ([], [whole], [whole, whole]):
        assert Ledger()._entries(json.dumps({"entries": entries_})) == entries_


def test_a_ledger_that_is_whole_is_not_damaged(fake, home):
    """The twin of the damages: the entry they were made of is taken."""
    good = dict(damages())["no origin"] | {"origin": "http://x"}
    home.write_text(json.dumps({"entries": [good]}))
    server = fake(survey("bits"))
    assert Client(server.url).answer("bits", "high 0") == Receipt(1, 0) and entries(home)[0] == good


@pytest.mark.parametrize("place", ["under a file", "a folder"])
def test_with_a_ledger_that_cannot_be_used_nothing_is_sent(fake, tmp_path, place):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "ledger.json" if place == "under a file" else tmp_path
    server = fake(survey("bits"))
    with pytest.raises(LedgerError, match="nothing is sent without it"):
        Client(server.url, Ledger(path)).answer("bits", "high 0")
    assert server.posts == []


def test_why_a_ledger_cannot_be_read(home):
    home.mkdir()
    with pytest.raises(LedgerError, match="cannot be read: Is a directory; nothing is sent"):
        Ledger()._text()
    home.rmdir()
    home.write_bytes(b"\xff\xfe")
    with pytest.raises(LedgerError, match="cannot be read: it is not text; nothing is sent"):
        Ledger()._text()


@contextmanager
def full_disk():
    """No file can grow in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_with_a_full_disk_nothing_is_sent_and_the_ledger_stays(fake, home):
    server = fake(survey("bits"), single("other", "x", "y"))
    client = Client(server.url)
    client.answer("other", "x")
    prepared = client.prepare(client.collection("bits"), "high 0")
    before = home.read_bytes()
    with full_disk(), pytest.raises(d.DiscreetError, match="cannot be written: File too large"):
        client.send(prepared)
    assert len(server.posts) == 1 and home.read_bytes() == before
    assert sorted(path.name for path in home.parent.iterdir()) == [
        "ledger.json",
        "ledger.json.lock",
    ]
    assert client.send(prepared) == Receipt(1, 0)


def test_a_full_disk_is_a_ledger_error(fake):
    client = Client(fake(survey("bits")).url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    with full_disk(), pytest.raises(LedgerError, match="nothing is sent without it"):
        client.send(prepared)


def test_whoever_is_second_sends_the_first_one_s_report(fake, home):
    """Two processes that prepared at the same time: one report leaves, whoever sends first."""
    server = fake(survey("bits"))
    one, two = Client(server.url), Client(server.url)
    prepared = [
        client.prepare(client.collection("bits"), answer)
        for client, answer in ((one, "high 0"), (two, "low 5"))
    ]
    two.send(prepared[1])
    one.send(prepared[0])
    assert (
        set(server.posts) == {only(prepared[1]).id + prepared[1].report} and len(entries(home)) == 1
    )


def test_two_processes_at_once_send_one_report(real, home):
    before = len(stored(real, "ticket"))
    commands = [
        [str(DISCREET), "answer", f"{real.url}/c/ticket", "--yes", "--json"] for _ in range(2)
    ]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    processes = [subprocess.Popen(command, text=True, **pipes) for command in commands]
    for process, answer in zip(processes, ("high 0\n", "low 5\n")):
        process.stdin.write(answer)
        process.stdin.flush()
    outputs = [process.communicate(timeout=DEADLINE) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    receipts = [json.loads(output) for output, _ in outputs]
    assert sorted((r["accepted"], r["duplicates"]) for r in receipts) == [(0, 1), (1, 0)]
    assert len(stored(real, "ticket")) == before + 1 and len(entries(home)) == 1


# ---- discreet answer -----------------------------------------------------------------------------


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(
        main, ["answer", *map(str, arguments)], input=stdin, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    return result


def told(url, *items, code=0):
    """What a script does: the answer on standard input, one item per line."""
    options = [item for item in items if str(item).startswith("--") or not isinstance(item, str)]
    lines = [item for item in items if item not in options]
    return run(url, *options, "--yes", stdin="".join(f"{x}\n" for x in lines), code=code)


def refused(url, *items):
    """Exit code 2 and one sentence."""
    (line,) = told(url, *items, code=2).stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def person(monkeypatch):
    """Someone at the keyboard."""
    monkeypatch.setattr(answer_command, "_is_interactive", lambda: True)


def test_an_answer_is_never_taken_from_the_command_line(fake, home):
    server = fake(survey("bits"))
    (line,) = run(f"{server.url}/c/bits", "high 0", "-y", code=2).stderr.splitlines()
    assert "other users and the shell's history can see an answer" in line and "high 0" not in line
    assert server.seen == [] and not home.exists()


@pytest.mark.parametrize("typed", ["high 0", "1"])
def test_the_command_lists_asks_shows_and_sends(fake, home, person, typed):
    made = survey("bits")
    server = fake(made)
    url = f"{server.url}/c/bits#{made.fingerprint}"
    output = run(url, stdin=f"{typed}\ny\n").stdout
    (body,) = server.posts
    assert output.startswith(f"Answers go to {server.url}\nWhich one?\n")
    assert all(sentence in output for sentence in made.mechanism.guarantee().sentences())
    assert all(item in output for item in made.mechanism.policy.items)
    assert f"This report will be sent: {body[16:].hex()}\n" in output
    assert "\nSend it? It cannot be taken back [y/N]" in output
    assert output.endswith("Counted.\n")
    server.script.extend(
        [
            server.answer("GET", "/v1/collections/bits"),
            (200, {}, b'{"accepted": 0, "duplicates": 1}'),
        ]
    )
    output = run(url, "--yes", stdin="low 5\n").stdout
    assert output.endswith("It was already counted; it counts once.\n")
    assert server.posts == [body, body]
    again = run(url, stdin="low 5\nn\n", code=130).stdout
    assert f"{body[16:].hex()} (drawn earlier; it does not depend on this answer)\n" in again


@pytest.mark.parametrize("said", ["n\n", "\n", ""])
def test_without_a_yes_nothing_is_sent_and_the_draw_is_kept(fake, home, person, said):
    server = fake(survey("bits"))
    result = run(f"{server.url}/c/bits", stdin=f"high 0\n{said}", code=130)
    assert "stopped; nothing was left half-written" in result.stderr
    assert server.posts == [] and [entry["state"] for entry in entries(home)] == ["shown"]


def test_the_command_for_machines(fake, home):
    server = fake(survey("grr"))
    found = json.loads(told(f"{server.url}/c/grr", "high 0", "--json").stdout)
    (body,) = server.posts
    assert found == {
        "accepted": 1,
        "duplicates": 0,
        "reports": [
            {"question": "question", "id": body[:16].hex(), "report": body[16:].hex()},
        ],
        "repeated": False,
    }
    (line,) = run(f"{server.url}/c/grr", stdin="high 0\n", code=2).stderr.splitlines()
    assert "say --yes" in line


def test_the_command_takes_sets(fake, home, monkeypatch):
    server = fake(survey("set"))
    url = f"{server.url}/c/set"
    for items in (("high 0", "low 5"), ("-",), ("low 1", "low 1")):
        told(url, *items)
        home.unlink()
    monkeypatch.setattr(answer_command, "_is_interactive", lambda: True)
    for typed in ("1\nlow 5\n\ny\n", "-\ny\n"):
        run(url, stdin=typed)
        home.unlink()
    assert len(server.posts) == 5
    for body in server.posts:
        assert survey("set").mechanism.coder.refusal(body[16:]) is None


def test_the_command_perturbs_the_answer_it_was_given(fake, monkeypatch):
    given = []
    perturb = d.Mechanism.perturb
    monkeypatch.setattr(
        d.Mechanism, "perturb", lambda self, answer: given.append(answer) or perturb(self, answer)
    )
    server = fake(survey("set"), single("one", "x", "y"))
    told(f"{server.url}/c/set", "high 0", "low 5")
    told(f"{server.url}/c/one", "x")
    told(f"{server.url}/c/set", "-")
    assert given == [{"high 0", "low 5"}, "x", set()]


@pytest.mark.parametrize(("epsilon", "weak"), [(6, True), (1, False)])
def test_the_command_says_that_protection_is_weak(fake, epsilon, weak):
    policy = d.Policy.from_levels([("a", epsilon, ["x", "y", "z"])])
    made = d.Survey("weak", [d.design(policy)])
    shown = run(f"{fake(made).url}/c/weak", "--question").stdout
    assert ("Warning: This is weak protection" in shown) == weak


def test_the_question_can_be_looked_at(fake):
    made = survey("bits")
    server = fake(made)
    url = f"{server.url}/c/bits"
    output = run(url, "--question").stdout
    assert output.startswith(f"Answers go to {server.url}\nWhich one?\n") and all(
        sentence in output for sentence in made.mechanism.guarantee().sentences()
    )
    found = json.loads(run(url, "--question", "--json").stdout)
    assert found == {
        "about": {},
        "state": "open",
        "caution": "",
        "promises": made.mechanism.guarantee().sentences(),
        "public": [],
        "questions": [
            {
                "name": "question",
                "question": "Which one?",
                "items": list(made.mechanism.policy.items),
            }
        ],
    }
    assert server.posts == []


def test_the_command_refuses_with_a_sentence(fake, home, tmp_path, clock):
    made = survey("bits")
    server = fake(made, survey("set"))
    url = f"{server.url}/c/bits"
    # errors of scripts are kept in logs: they do not repeat an answer, nor what it is like
    for wrong in ("hihg 0", "high 0 ", "high 0: hihg 0"):
        said = refused(url, wrong)
        assert "an answer on standard input is not an item of this question" in said
        assert "hihg" not in said and "high 0" not in said
    assert "one item on one line, got 2 lines" in refused(url, "high 0", "low 1")
    assert "one item on one line, got 0 lines" in refused(url)
    assert "a single line with -" in refused(f"{server.url}/c/set")
    assert "fingerprint" in refused(f"{url}#{'0' * 64}", "high 0")
    assert "above the 0.5 you allow; do not answer" in refused(url, "high 0", "--max-epsilon", 0.5)
    assert "max-epsilon" in refused(url, "high 0", "--max-epsilon", 0)
    pin = tmp_path / "policy.toml"
    pin.write_text(
        'question = "Which one?"\n[[level]]\nname = "a"\nepsilon = 1\nitems = ["high 0", "x"]\n'
    )
    assert "is not the survey you named: item" in refused(url, "high 0", "--policy", pin)
    assert "there is no such collection" in refused(f"{server.url}/c/none", "high 0")
    assert server.posts == [] and not home.exists()
    told(url, "high 0")
    assert "you already gave an earlier answer" in refused(f"{server.url}/c/set", "high 0")
    told(f"{server.url}/c/set", "high 0", "--agree")
    assert len(server.posts) == 2


def test_the_command_on_a_real_collector_that_has_closed(tmp_path, home):
    made = single("closed", "a", "b")
    store = open_store(str(tmp_path / "store"))
    store.create(made)
    store.close_collection("closed")
    collector = app.Collector(store, Metrics(tmp_path), "a-token-of-the-organiser")
    with listening(collector.application()) as url:
        line = refused(f"{url}/c/closed#{made.fingerprint}", "a")
    assert line == 'error: "closed" is closed; it takes no more answers'


# ---- addresses -----------------------------------------------------------------------------------

MARK = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (f"http://host/c/survey#{MARK}", ("http://host", "survey", MARK)),
        (f"https://host:8443/c/survey#fingerprint={MARK}", ("https://host:8443", "survey", MARK)),
        ("http://host/deep/er/c/a%20b%2Fc", ("http://host/deep/er", "a b/c", None)),
        ("http://[::1]:8000/v1/collections/%C3%BC", ("http://[::1]:8000", "ü", None)),
        ("http://host/c/survey#", ("http://host", "survey", None)),
        ("http://host/c/who%27s%20in", ("http://host", "who's in", None)),
        ("http://host/c/who's%20in", ("http://host", "who's in", None)),
        ("http://host/c/für alle", ("http://host", "für alle", None)),
    ],
)
def test_an_invitation_names_server_collection_and_fingerprint(url, found):
    assert invitation(url) == found


@pytest.mark.parametrize(
    "url",
    [
        "",
        "survey",
        "host/c/survey",
        "ftp://host/c/survey",
        "http:///c/survey",
        "http://host",
        "http://host/c/",
        "http://host/c/a/b",
    ],
)
def test_what_is_no_invitation_is_refused(url):
    with pytest.raises(
        DataError, match="is not an invitation; it looks like https://host/c/survey#fingerprint"
    ):
        invitation(url)


@pytest.mark.parametrize(
    "own",
    [
        "http://host/c/survey?for=anna",
        "http://host/c/survey?",
        "http://host/c/%73urvey",
        "http://host/c/f%c3%bcr",
        "http://host/c/f%C3%BCr alle",
        "http://host/c/a%2fb",
        "http://host/c/survey/",
        "http://host//c/survey",
        "http://host/deep//er/c/survey",
        "http://anna@host/c/survey",
        "http://anna:1@host/c/survey",
        "http://host/c/%ff",
    ],
)
def test_a_link_that_could_be_somebody_s_own_is_refused(own):
    with pytest.raises(PromiseError, match="has more in it than .* compare the whole link"):
        invitation(f"{own}#{MARK}")


@pytest.mark.parametrize(
    "mark", [MARK[:-1], MARK + "0", MARK.upper(), "x" * 64, "fingerprint=", "name=x"]
)
def test_a_fingerprint_in_an_invitation_is_whole_or_refused(mark):
    """A mark that was cut off must not become no mark."""
    if mark == "fingerprint=":
        assert invitation(f"http://host/c/survey#{mark}")[2] is None
    else:
        with pytest.raises(DataError, match="is not a fingerprint: it has 64 characters"):
            invitation(f"http://host/c/survey#{mark}")


@pytest.mark.parametrize("url", ["host", "ftp://host", "http://", "/c/survey"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(
        DataError, match="is not the address of a collector; it begins with http:// or https://"
    ):
        Client(url)


@pytest.mark.parametrize("use", [Client, invitation])
def test_a_broken_address_is_refused(use):
    with pytest.raises(DataError):
        use("http://[::1/c/survey")


# ---- dates ---------------------------------------------------------------------------------------


def test_a_question_is_over_when_it_says_so_whatever_the_collector_says(fake, home):
    now = datetime.now(UTC).replace(microsecond=0)
    over, just = (
        d.Survey(name, [mechanism("bits")], {"closes": now - timedelta(minutes=minutes)})
        for name, minutes in (("over", 70), ("just", 30))
    )
    client = Client(fake(over, just, survey("bits")).url)
    assert client.collection("over").state == "closed"
    assert client.collection("just").state == "open"  # clocks may differ
    server = fake(survey("bits"))
    early = {"name": "bits", "state": "upcoming", "survey": server.documents["bits"]}
    server.script.append((200, {}, json.dumps(early).encode()))
    with pytest.raises(ClientError, match="a survey without a date has not opened yet"):
        Client(server.url).collection("bits")


# ---- pins that bind ------------------------------------------------------------------------------


def told_in_clear():
    """Sets, budget 1, whose one pair is not protected: nearly every report is the answer itself."""
    policy = d.Policy.from_levels([("a", 1, ["x", "y", "z"])], pairs=[("a", "a", None)], kind="set")
    part = make_part((D,), (D - 1,), (1,), D, (D,), (0,))
    made = d.Mechanism(policy, "opt0", Bits(), (0,), (part,), (D // 2, D // 2), padding=1)
    return d.Survey("clear", [made])


def far_apart():
    """An honest one: the smaller budget binds less than it reads, because `avg` adds half of 6."""
    rows = [("a", 0.5, ["x", "y"]), ("b", 6, ["z", "u"])]
    policy = d.Policy.from_levels(rows, notion="avg", kind="set")
    return d.Survey("avg", [d.design(policy, padding=1)])


@pytest.mark.parametrize(
    ("made", "limit"),
    [
        (told_in_clear, 1),
        (told_in_clear, 20),
        (far_apart, 2.5),
        (far_apart, {"x": 0.5}),
    ],
)
def test_a_limit_is_of_what_is_told(fake, made, limit):
    """Nominal budgets said nothing of pairs that are not protected, nor of lists."""
    made = made()
    client = Client(fake(made).url)
    with pytest.raises(PromiseError, match="above the .* you allow; do not answer"):
        client.collection(made.name, max_epsilon=limit)
    enough = max(made.mechanism.guarantee().budgets)
    assert (
        enough
        >= max(
            made.mechanism.guarantee().ldp_epsilon,
            *map(float, made.mechanism.policy.effective_budgets),
        )
        - 1e-9
    )
    assert client.collection(made.name, max_epsilon=enough).survey == made


def test_a_limit_of_lists_protected_item_by_item_is_of_the_items(fake):
    made = survey("each")
    client = Client(fake(made).url)
    assert made.mechanism.guarantee().ldp_epsilon > 2
    assert client.collection("each", max_epsilon=2).state == "open"


def test_a_link_of_one_s_own_is_refused(fake):
    made = survey("bits")
    server = fake(made)
    server.documents["for you"] = made.to_document()
    client = Client(server.url)
    with pytest.raises(
        PromiseError, match='link is for "for you", but .* called "bits".*whole link'
    ):
        client.collection("for you", fingerprint=made.fingerprint)


def test_a_padding_that_was_pinned_is_compared(fake):
    made = survey("hits")
    client = Client(fake(made).url)
    assert (
        client.collection("hits", policy=replace(made.mechanism.policy, padding=2)).state == "open"
    )
    with pytest.raises(PromiseError, match="padding is 2, not 3"):
        client.collection("hits", policy=replace(made.mechanism.policy, padding=3))


@pytest.mark.parametrize("kind", ["hits", "each", "set"])
def test_consent_for_lists_is_to_the_sum_of_whole_lists_too(fake, home, kind):
    made, other = survey(kind), survey(kind, "again")
    client = Client(fake(made, other).url)
    client.answer(kind, {"high 0"})
    with pytest.raises(OverlapError) as caught:
        client.answer("again", {"low 5"})
    whole = 2 * made.mechanism.guarantee().ldp_epsilon
    assert caught.value.whole == pytest.approx(whole) and caught.value.whole > caught.value.epsilon
    assert (
        f"about whole lists by a factor of at most {in_words(math.exp(whole) * (1 + 1e-12))};"
        in str(caught.value)
    )


def test_consent_for_an_answer_is_to_one_sum(fake, home):
    client = Client(fake(survey("bits"), survey("bits", "again")).url)
    client.answer("bits", "high 0")
    with pytest.raises(OverlapError) as caught:
        client.answer("again", "high 0")
    assert caught.value.whole is None and "whole lists" not in str(caught.value)


# ---- what was on its way -------------------------------------------------------------------------


def test_nobody_has_agreed_to_anything_who_was_not_asked():
    silent = module.Prepared(None, (), False)
    assert (silent.agreed, silent.max_total) == (0, None)


def test_what_was_on_its_way_is_sent_again(fake, home):
    made = survey("bits")
    server = fake(made)
    client = Client(server.url, patience=0.1)
    asked = client.collection("bits")
    assert client.unsent(asked) is None
    prepared = client.prepare(asked, "high 0")
    assert client.unsent(asked) is None  # nothing has left
    server.script.extend([None] * 40)
    with pytest.raises(ClientError):
        client.send(prepared)
    server.script.clear()
    unsent = client.unsent(asked)
    assert only(unsent) == only(prepared)
    assert client.send(unsent) == Receipt(1, 0) and client.unsent(asked) is None
    assert len(set(server.posts)) == 1 and entries(home)[0]["state"] == "counted"


def test_an_answer_that_was_killed_on_its_way_is_sent_by_the_next_call(fake, home, tmp_path):
    """A real process, killed when the collector has its report and has not said so."""
    made = survey("bits")
    server = fake(made)
    arrived = threading.Event()
    answer = server.answer

    def silent(method, path):
        if method == "POST":
            arrived.set()
            time.sleep(DEADLINE)
        return answer(method, path)

    server.answer = silent
    url = f"{server.url}/c/bits#{made.fingerprint}"
    killed = subprocess.Popen(
        [DISCREET, "answer", url, "--yes"],
        env={**os.environ, "DISCREET_LEDGER": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    killed.stdin.write(b"high 0\n")
    killed.stdin.close()
    assert arrived.wait(DEADLINE)
    killed.kill()
    killed.wait()
    assert entries(home)[0]["state"] == "leaving"
    server.answer = answer
    found = CliRunner().invoke(main, ["answer", url, "--yes"], input="low 5\n")
    assert found.exit_code == 0, found.output
    assert "may not have arrived; sending it again" in found.output and "Counted." in found.output
    assert len(server.posts) == 2 and len(set(server.posts)) == 1
    assert entries(home)[0]["state"] == "counted"
    found = CliRunner().invoke(main, ["answer", url, "--yes", "--json"], input="low 5\n")
    facts = json.loads(found.output)
    assert facts["reports"][0]["report"] == entries(home)[0]["report"] and facts["repeated"] is True


def test_whoever_sends_a_report_that_was_drawn_before_is_told(fake, home):
    """Drawn for one answer and not sent; the next call sends it, whatever it is given."""
    made = survey("bits")
    server = fake(made)
    client = Client(server.url)
    drawn = client.prepare(client.collection("bits"), "high 0")
    url = f"{server.url}/c/bits#{made.fingerprint}"
    found = CliRunner().invoke(main, ["answer", url, "--yes"], input="low 5\n")
    assert found.exit_code == 0 and server.posts == [only(drawn).id + drawn.report]
    assert (
        "Sent the report that was drawn earlier; it does not depend on this answer." in found.output
    )


@pytest.mark.parametrize(
    ("raw", "fine"),
    [
        (b'\xef\xbb\xbf{"accepted": 1.0, "duplicates": 0e0}', True),
        (b'{"accepted": 1, "duplicates": 0, "more": ' + b"9" * 5000 + b"}", True),
        (b'{"accepted": 1, "duplicates": 0, "more": NaN}', False),
        (b'{"accepted": 1, "accepted": 1, "duplicates": 0}', False),
        ('{"accepted": 1, "duplicates": 0}'.encode("utf-16"), False),
        (b'{"accepted": 1, "duplicates": 0, "more": "\xed\xa0\x80"}', False),
    ],
)
def test_an_answer_is_read_as_browsers_read_it(fake, raw, fine):
    server = fake(survey("bits"))
    client = Client(server.url)
    prepared = client.prepare(client.collection("bits"), "high 0")
    server.script.append((200, {}, raw))
    if fine:
        assert client.send(prepared) == Receipt(1, 0)
    else:
        with pytest.raises(ClientError, match="does not answer like a collector"):
            client.send(prepared)
