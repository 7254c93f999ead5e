"""The service in this process: every endpoint, every refusal, group commit and back-pressure."""

import asyncio
import csv
import hashlib
import io
import json
import os
import re
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest
from checks import must_fail
from collecting import (
    BEARER,
    DEADLINE,
    KINDS,
    TOKEN,
    assert_strict,
    body,
    frames,
    ids,
    people,
    spoiled,
    survey,
    until,
    upload,
)
from postgres import GROUP

import discreet as d
from discreet.arrays.survey_tally import SurveyTally
from discreet.collector import app, documents, limits, logs, tokens
from discreet.collector.headers import ANYONE
from discreet.collector.metrics import Metrics
from discreet.collector.problems import RETRY, Problem
from discreet.collector.store import Collection, StoreDown, open_store
from discreet.designs import BASELINES
from discreet.encodings import REASONS
from discreet.errors import DataError
from discreet.estimates import saving
from discreet.estimates.table import COLUMNS
from discreet.estimates.views import VIEWS
from discreet.show import outlook


class Service:
    """The application over a store, in this process: its lifespan runs, requests go through
    httpx.
    """

    def __init__(self, folder, *surveys, keep="counts", open_results=False, url=None):
        self.path = url or str(folder / "store")
        store = open_store(self.path)
        for made in surveys:
            store.create(made, keep)
        (folder / "counters").mkdir(exist_ok=True)
        self.collector = app.Collector(store, Metrics(folder / "counters"), TOKEN, open_results)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.run(self._begin())

    async def _begin(self):
        self.app = self.collector.application()
        self._in, started, self._stopped = asyncio.Queue(), asyncio.Event(), asyncio.Event()

        async def send(message):
            {"lifespan.startup.complete": started, "lifespan.shutdown.complete": self._stopped}[
                message["type"]
            ].set()

        self._life = asyncio.create_task(
            self.app({"type": "lifespan", "state": {}}, self._in.get, send)
        )
        await self._in.put({"type": "lifespan.startup"})
        await started.wait()
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://collector")

    async def _end(self):
        await self.client.aclose()
        await self._in.put({"type": "lifespan.shutdown"})
        await self._stopped.wait()
        await self._life

    def close(self):
        self.run(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def begin(self, coroutine):
        """Start something; its result can be waited for."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine):
        return self.begin(coroutine).result(DEADLINE)

    def request(self, method, path, **settings):
        return self.run(self.client.request(method, path, **settings))

    def get(self, path, **settings):
        return self.request("GET", path, **settings)

    def sending(self, made, content, **headers):
        """The request of an upload, not sent yet."""
        marks = {
            "Content-Type": "application/octet-stream",
            "Discreet-Survey": made.fingerprint,
        } | headers
        marks = {name: value for name, value in marks.items() if value is not None}
        return self.client.post(
            f"/v1/collections/{made.name}/reports", content=content, headers=marks
        )

    def post(self, made, content, **headers):
        return self.run(self.sending(made, content, **headers))

    def n(self, name):
        """Reports counted, as another process sees them."""
        store = open_store(self.path)
        try:
            return store.tally(name).n
        finally:
            store.close()

    def counters(self):
        text = self.get("/metrics", headers=BEARER).text
        return {
            line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if line[0] != "#"
        }

    def refusals(self):
        """By reason, over all collections."""
        found = Counter()
        for key, n in self.counters().items():
            if n and "refused" in key:
                found[re.search(r'reason="(\w+)"', key)[1]] += n
        return dict(found)


@pytest.fixture
def serve(tmp_path):
    """Makes services that end with the test."""
    made = []

    def make(*kinds, **settings):
        made.append(
            Service(
                tmp_path,
                *(survey(kind) if isinstance(kind, str) else kind for kind in kinds),
                **settings,
            )
        )
        return made[-1]

    yield make
    for service in made:
        service.close()


def assert_problem(answer, status, title, sentence):
    """A refusal as RFC 9457 has it, with a sentence for a person, under the strict headers."""
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    ), answer.text
    found = answer.json()
    assert (found["type"], found["title"], found["status"]) == ("about:blank", title, status)
    assert re.search(sentence, found["detail"]), found["detail"]
    assert_strict(answer)
    return found


# ---- what is public ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_is_all_that_a_participant_needs(serve, kind):
    made = survey(kind)
    found = serve(kind).get(f"/v1/collections/{kind}").json()
    assert d.Survey.from_document(found["survey"]) == made
    assert (found["name"], found["title"], found["questions"], found["answers"]) == (
        kind,
        "Which one?",
        1,
        1,
    )
    assert (found["state"], found["fingerprint"], found["keeps"]) == (
        "open",
        made.fingerprint,
        "counts",
    )
    (asked,), only = found["asked"], made.mechanism
    assert (asked["name"], asked["question"], asked["items"], asked["of"]) == (
        "question",
        "Which one?",
        only.m,
        [],
    )
    assert (asked["report_bytes"], asked["kind"]) == (only.report_size, str(only.policy.kind))
    guarantee = only.guarantee()
    promised = guarantee.epsilons
    assert asked["certificate"] == (only.certificate.sentence if only.certificate else "")
    levels = found["survey"]["questions"][0]["mechanism"]["policy"]["levels"]
    assert all("weight" not in level for level in levels)
    assert [level["name"] for level in asked["levels"]] == ["high", "middle", "low"]
    assert [(level["epsilon"], level["items"]) for level in asked["levels"]] == [
        ("1", 2),
        ("1.2", 3),
        ("2", 6),
    ]
    np.testing.assert_allclose(
        [level["factor"] for level in asked["levels"]], np.exp(promised), rtol=1e-12
    )
    assert found["guarantee"] == {
        "holds": True,
        "caution": guarantee.caution,
        "ldp_epsilon": pytest.approx(guarantee.ldp_epsilon, rel=1e-12),
        "sentences": guarantee.sentences(),
    }


def test_collections_are_listed(serve):
    service = serve("set", "bits", keep="reports")
    found = service.get("/v1/collections").json()["collections"]
    assert [(c["name"], c["title"], c["questions"], c["state"]) for c in found] == [
        ("bits", "Which one?", 1, "open"),
        ("set", "Which one?", 1, "open"),
    ]
    assert found[0].items() <= service.get("/v1/collections/bits").json().items()
    assert service.get("/v1/collections/bits").json()["keeps"] == "reports"


def test_a_name_is_found_however_it_is_written_in_the_address(serve):
    made = survey("bits", "ü & 100 % 'x'?#;")
    service = serve(made)
    path = "/v1/collections/%C3%BC%20%26%20100%20%25%20%27x%27%3F%23%3B"
    assert service.get(path).json()["fingerprint"] == made.fingerprint
    marks = {"Content-Type": "application/octet-stream", "Discreet-Survey": made.fingerprint}
    assert (
        service.request("POST", path + "/reports", content=frames(made, 2), headers=marks).json()[
            "accepted"
        ]
        == 2
    )


def test_health_is_the_store_s_health(serve, monkeypatch):
    service = serve("bits")
    assert service.get("/healthz").json() == {"status": "ok"}

    def down():
        raise StoreDown("the store cannot be used: gone")

    monkeypatch.setattr(service.collector.store, "ping", down)
    answer = service.get("/healthz")
    assert_problem(answer, 503, "store", "the store cannot be reached just now")
    assert answer.headers["retry-after"] == "2"


def test_a_store_that_is_down_is_said_so_everywhere(serve, monkeypatch):
    service = serve("bits", open_results=True)

    def down(*_):
        raise StoreDown("the store cannot be used: gone")

    for name in ("ping", "listing", "collection", "tally", "add"):
        monkeypatch.setattr(service.collector.store, name, down)
    for path in (
        "/",
        "/healthz",
        "/v1/collections",
        "/v1/collections/bits",
        "/v1/collections/bits/estimate",
        "/c/bits/results",
    ):
        assert_problem(
            service.get(path), 503, "store", "send the same reports again in a few seconds"
        )
    answer = service.post(survey(), frames(survey(), 1))
    assert_problem(answer, 503, "store", "send the same reports again in a few seconds")
    assert answer.headers["retry-after"] == "2" and service.refusals() == {"store": 1}


def test_what_nobody_expected_is_a_problem_too(serve, monkeypatch):
    service = serve("bits")

    def broken():
        raise RuntimeError("the answer was HIV")

    monkeypatch.setattr(service.collector.store, "listing", broken)
    answer = service.get("/v1/collections")
    assert_problem(answer, 500, "unexpected", "nothing was acknowledged, so send it again")
    assert "HIV" not in answer.text


# ---- reports -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_counted_once_and_durable_when_answered(serve, kind):
    made, service = survey(kind), serve(kind)
    rows, some = people(made, 40), ids(40)
    assert service.post(made, body(some[:1], rows[:1])).json() == {"accepted": 1, "duplicates": 0}
    assert service.post(made, body(some[:25], rows[:25])).json() == {
        "accepted": 24,
        "duplicates": 1,
    }
    answer = service.post(made, body(some[20:] + some[:2], np.concatenate((rows[20:], rows[:2]))))
    assert answer.json() == {"accepted": 15, "duplicates": 7}
    assert_strict(answer)
    other = open_store(service.path)
    assert other.tally(kind).question(0) == made.mechanism.tally(rows)
    other.close()


def test_a_body_may_come_in_pieces_and_its_type_may_have_parameters(serve):
    made, service = survey("fixed"), serve("fixed")
    content = frames(made, 9)

    async def pieces():
        for k in range(0, len(content), 7):
            yield content[k : k + 7]

    kind = "Application/Octet-Stream; charset=binary"
    assert service.post(made, pieces(), **{"Content-Type": kind}).json() == {
        "accepted": 9,
        "duplicates": 0,
    }


def refusals():
    """Every way in which an upload of two frames can be wrong."""
    bits, seen = survey("bits"), set()
    good = frames(bits, 2)
    for kind in KINDS:
        made = survey(kind)
        content = frames(made, 2)
        for k, (reason, report) in enumerate(spoiled(kind, content[-made.mechanism.report_size :])):
            if reason != "length":  # which is that of a frame, here
                seen.add(reason)
                sentence = f"frame 1 is not a report: {REASONS[reason]}; nothing was counted"
                bad = content[: -made.mechanism.report_size] + report
                yield pytest.param(
                    made, bad, {}, 422, reason, sentence, 1, id=f"{kind}: {reason} {k}"
                )
    assert seen == set(REASONS) - {"length"}
    size = 16 + bits.mechanism.report_size
    again = "fetch /v1/collections/bits and send its fingerprint"
    for content, headers, status, title, sentence, index in (
        (
            b"",
            {},
            400,
            "empty",
            f"the body is empty; send one or more frames of {size} bytes",
            None,
        ),
        (
            good[:-1],
            {},
            400,
            "frame",
            f"frame 1 has {size - 1} of {size} bytes .*; nothing was counted",
            1,
        ),
        (good + b"x", {}, 400, "frame", f"frame 2 has 1 of {size} bytes", 2),
        (good[:5], {}, 400, "frame", f"frame 0 has 5 of {size} bytes", 0),
        (
            good,
            {"Content-Type": "text/plain"},
            415,
            "type",
            'as application/octet-stream, got "text/plain"',
            None,
        ),
        (
            good,
            {"Content-Type": None},
            415,
            "type",
            'as application/octet-stream, got ""',
            None,
        ),
        (
            good,
            {"Discreet-Survey": None},
            400,
            "header",
            f"Discreet-Survey is missing; {again}",
            None,
        ),
        (
            good,
            {"Discreet-Survey": "0" * 64},
            409,
            "survey",
            f"is that of another survey; {again}",
            None,
        ),
        (
            good,
            {"Discreet-Survey": bits.fingerprint.upper()},
            409,
            "survey",
            "is that of another survey",
            None,
        ),
        (
            good,
            {"Content-Length": str(1 << 40)},
            413,
            "large",
            "at most 8,388,608 bytes and 10,000 reports; send the reports in",
            None,
        ),
    ):
        yield pytest.param(
            bits,
            content,
            headers,
            status,
            title,
            sentence,
            index,
            id=f"{title}-{len(content)}-{status}",
        )


@pytest.mark.parametrize(
    ("made", "content", "headers", "status", "title", "sentence", "index"), list(refusals())
)
def test_a_wrong_upload_is_refused_whole_with_a_sentence(
    serve, made, content, headers, status, title, sentence, index
):
    service = serve(made)
    answer = service.post(made, content, **headers)
    assert assert_problem(answer, status, title, sentence).get("index") == index
    assert (
        service.n(made.name) == 0
        and service.refusals() == {title: 1}
        and service.collector.uploads.waiting == 0
    )


def test_the_first_bad_frame_is_named_whatever_its_reason(serve):
    """Frame 3 has a wrong part, frame 1 a bit too many: 1 is first."""
    made, service = survey("fixed"), serve("fixed")
    size = 16 + made.mechanism.report_size
    content = bytearray(frames(made, 5))
    content[3 * size + 16] = 200
    content[2 * size - 1] |= 0x80
    assert_problem(service.post(made, bytes(content)), 422, "tail", "frame 1 is not")
    content[size + 16] = 77  # both at once, in the same frame
    found = assert_problem(service.post(made, bytes(content)), 422, "part", "frame 1 is not")
    assert found["index"] == 1 and service.n("fixed") == 0


def test_unknown_collections_and_addresses(serve):
    service = serve("bits", open_results=True)
    unknown = 'there is no collection "none"; see /v1/collections for the list'
    for path in (
        "/v1/collections/none",
        "/v1/collections/none/estimate",
        "/c/none/results",
        "/v1/collections/none%00",
    ):
        assert_problem(service.get(path), 404, "unknown", "there is no collection .none")
    assert_problem(service.post(survey("bits", "none"), b"x"), 404, "unknown", unknown)
    for path in (
        "/none",
        "/v1",
        "/v1/collections/",
        "/v1/collections/bits/",
        "/v1/collections/bits/none",
        "/healthz/",
    ):
        assert_problem(service.get(path), 404, "http", "there is nothing here; see /openapi.json")
    for path in ("/static/none.css", "/static/..%2Fapp.py", "/static/answer.html"):
        assert service.get(path).status_code == 404
    for method, path in (
        ("GET", "/v1/collections/bits/reports"),
        ("POST", "/v1/collections"),
        ("DELETE", "/v1/collections/bits"),
    ):
        answer = service.request(method, path)
        assert_problem(answer, 405, "http", "this method does not apply here")
        assert answer.headers["allow"]
    assert service.refusals() == {"unknown": 1}


def test_every_answer_has_strict_headers(serve):
    service = serve("bits", open_results=True)
    api = (
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/v1/collections",
        "/v1/collections/bits",
        "/v1/collections/bits/estimate",
    )
    for path in (
        *api,
        "/",
        "/c/bits",
        "/c/bits/results",
        "/answer.html",
        "/static/style.css",
        "/static/none",
        "/none",
    ):
        for method in ("GET", "HEAD", "OPTIONS", "PUT"):
            assert_strict(service.request(method, path))
    assert_strict(service.post(survey(), frames(survey(), 1)))


# ---- other origins -------------------------------------------------------------------------------

PUBLIC = {"/v1/collections/bits": "GET", "/v1/collections/bits/reports": "POST"}


def test_other_pages_may_fetch_a_description_and_send_a_report(serve):
    service = serve("bits")
    asks = {
        "Origin": "https://elsewhere",
        "Access-Control-Request-Headers": "content-type,discreet-survey",
    }
    for path, method in PUBLIC.items():
        answer = service.request(
            "OPTIONS", path, headers=asks | {"Access-Control-Request-Method": method}
        )
        assert answer.status_code == 204 and answer.headers["access-control-allow-origin"] == "*"
        assert method in answer.headers["access-control-allow-methods"]
        assert (
            answer.headers["access-control-allow-headers"].lower()
            == "content-type, discreet-survey"
        )
        assert "access-control-allow-credentials" not in answer.headers
    made = survey()
    answers = [
        service.get("/v1/collections/bits"),
        service.post(made, frames(made, 1)),
        service.post(made, b""),
        service.post(made, b"x", **{"Discreet-Survey": "0"}),
        service.post(survey("bits", "none"), b"x"),
    ]
    assert [a.headers.get("access-control-allow-origin") for a in answers] == ["*"] * 5


def test_other_pages_may_read_why_a_description_is_refused(serve):
    assert (
        serve("bits").get("/v1/collections/none").headers.get("access-control-allow-origin") == "*"
    )


def test_other_pages_may_do_nothing_else(serve):
    service = serve("bits", open_results=True)
    asks = {"Origin": "https://elsewhere", "Access-Control-Request-Method": "GET"}
    for path in (
        "/",
        "/healthz",
        "/metrics",
        "/v1/collections",
        "/v1/collections/bits/estimate",
        "/c/bits",
        "/c/bits/results",
    ):
        for answer in (
            service.get(path, headers=asks | BEARER),
            service.request("OPTIONS", path, headers=asks),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert service.request("OPTIONS", path, headers=asks).status_code == 405


# ---- the organiser's token -----------------------------------------------------------------------

NOT_THE_TOKEN = [
    None,
    "",
    "Bearer",
    "Bearer ",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN.upper()}",
    f"Basic {TOKEN}",
    TOKEN,
    f"Bearer{TOKEN}",
    f"Token {TOKEN}",
    f"Bearer {TOKEN} {TOKEN}",
    "Bearer \xff\xfe",
    f"Bearer, {TOKEN}",
]


@pytest.mark.parametrize("given", NOT_THE_TOKEN)
def test_results_and_metrics_need_the_token(serve, given):
    service = serve("bits")
    headers = {} if given is None else {"Authorization": given.encode("latin-1")}
    for path in ("/metrics", "/v1/collections/bits/estimate", "/v1/collections/none/estimate"):
        answer = service.get(path, headers=headers)
        assert_problem(
            answer, 401, "token", "needs the organiser's token in the header Authorization: Bearer"
        )
        assert answer.headers["www-authenticate"] == 'Bearer realm="discreet"'


def test_the_token_counts_in_the_header_only(serve):
    service = serve("bits")
    for scheme in ("Bearer", "bearer", "BEARER"):
        answer = service.get(
            "/v1/collections/bits/estimate", headers={"Authorization": f"{scheme} {TOKEN}"}
        )
        assert answer.status_code == 200
    for query in ("token", "access_token", "Authorization", "bearer"):
        answer = service.get(f"/v1/collections/bits/estimate?{query}={TOKEN}")
        assert answer.status_code == 401 and TOKEN not in answer.text
        assert service.get("/metrics", headers={"Cookie": f"{query}={TOKEN}"}).status_code == 401


def test_the_token_is_compared_in_constant_time_whatever_is_given(serve, monkeypatch):
    """Two hashes of one length are compared, also when the scheme is wrong already."""
    compared = []

    def compare(a, b):
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(tokens.hmac, "compare_digest", compare)
    service = serve("bits")
    for given in NOT_THE_TOKEN[1:]:
        service.get("/metrics", headers={"Authorization": given.encode("latin-1")})
    assert len(compared) == len(NOT_THE_TOKEN) - 1
    assert {(len(a), b) for a, b in compared} == {(32, hashlib.sha256(TOKEN.encode()).digest())}


def test_open_results_need_no_token_but_metrics_do(serve):
    service = serve("bits", open_results=True)
    assert service.get("/v1/collections/bits/estimate").status_code == 200
    assert service.get("/metrics").status_code == 401


def test_the_token_is_in_the_environment_or_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_TOKEN", raising=False)
    monkeypatch.delenv("DISCREET_TOKEN_FILE", raising=False)
    with pytest.raises(
        DataError, match=r"the token file discreet.token cannot be read: No such file"
    ):
        tokens.read()
    assert tokens.make(Path("discreet.token")) and not tokens.make(Path("discreet.token"))
    made = tokens.read()
    assert len(made) >= 24 and Path("discreet.token").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("DISCREET_TOKEN_FILE", "other")
    for content, sentence in (
        (b"short\n", "has 5 characters; it must have at least 16"),
        (b"", "has 0"),
        (b"\xff" * 20, "it is not text"),
    ):
        Path("other").write_bytes(content)
        with pytest.raises(DataError, match=sentence):
            tokens.read()
    Path("other").write_text(f"  {TOKEN}\n")
    assert tokens.read() == TOKEN
    monkeypatch.setenv("DISCREET_TOKEN", "from-the-environment")
    assert tokens.read() == "from-the-environment"


@pytest.mark.parametrize("given", ["x", "   "])
def test_a_short_token_in_the_environment_is_refused(monkeypatch, given):
    monkeypatch.setenv("DISCREET_TOKEN", given)
    with pytest.raises(DataError, match="at least 16"):
        tokens.read()


# ---- estimates -----------------------------------------------------------------------------------


def estimate(service, name, **query):
    answer = service.get(f"/v1/collections/{name}/estimate", params=query, headers=BEARER)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_that_of_the_tally(serve, kind):
    made, service = survey(kind), serve(kind)
    rows = people(made, 2000)
    service.post(made, body(ids(2000), rows))
    expected = made.mechanism.tally(rows).estimate()
    fit = [name for name, view in VIEWS.items() if view.fits(expected)]
    for confidence, views in ((0.95, ["shrunk"]), (0.8, list(VIEWS))):
        query = {"confidence": confidence, "views": ",".join(views)}
        found = estimate(service, kind, **query).json()
        assert (found["n"], found["confidence"], found["state"]) == (2000, confidence, "open")
        assert found["note"] == expected.truncation_note
        table = expected.table(confidence, [name for name in views if name in fit])
        assert found["items"] == table.rows()
        written = saving.table(expected, confidence, [name for name in views if name in fit])
        assert estimate(service, kind, format="csv", **query).content == written.csv()
    assert found["views"] == [{"name": name, "about": VIEWS[name].about} for name in fit]
    assert found["telling"] == int((expected.shares(0.95, simultaneous=True).low > 0).sum())
    assert "shrunk" not in estimate(service, kind).json()["items"][0]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("fixed", "the best possible for this guarantee and prior"),
        ("ticket parts", r"[\d.]+ % above the best possible for this guarantee and prior"),
        ("set", r"not certified \(a set is sampled here, .+\)"),
        (
            "hits",
            r"not certified \(for sets of several budgets, or of sizes that vary, no formula .+\)",
        ),
        ("bits", r"not certified \(the best single pair \(a, b\) .+\)"),
        ("grr", ""),
    ],
)
def test_the_certificate_is_said_with_and_without_reports(serve, kind, sentence):
    made, service = survey(kind), serve(kind)
    told = service.get(f"/v1/collections/{kind}").json()
    said = told["asked"][0]["certificate"]
    assert re.fullmatch(sentence, said), said
    for _ in range(2):
        assert estimate(service, kind).json()["certificate"] == said
        service.post(made, frames(made, 3))
    loaded = d.Survey.from_document(told["survey"]).mechanism
    assert loaded.certificate == made.mechanism.certificate


def test_what_plain_ldp_would_have_given_is_said(serve):
    """The best of the baselines at the smallest budget, per level and per item; n persons'
    variance.
    """
    made, service = survey("bits"), serve("bits")
    service.post(made, frames(made, 500))
    found = estimate(service, "bits").json()
    plain = min(
        (d.design(made.mechanism.policy, name) for name in BASELINES[:4]),
        key=lambda m: m.expected_mse(),
    )
    assert found["plain_model"] == plain.model
    from discreet.arrays import theory

    for k, level in enumerate(found["levels"]):
        assert level["plain_stderr"] == pytest.approx(
            np.sqrt(500 * theory.level_variance(plain)[k])
        )
        assert level["expected_stderr"] == pytest.approx(
            np.sqrt(500 * theory.level_variance(made.mechanism)[k])
        )


@pytest.mark.parametrize("kind", KINDS)
def test_of_nothing_and_of_one_report_there_is_little_to_say(serve, kind):
    made, service = survey(kind), serve(kind)
    found = estimate(service, kind, views="shrunk").json()
    assert (found["n"], found["items"], found["telling"], found["views"]) == (0, [], 0, [])
    assert all(level["expected_stderr"] == 0 for level in found["levels"])
    assert estimate(service, kind, format="csv").text.splitlines() == [
        ",".join(f'"{name}"' for name in (*COLUMNS, *saving.LAST))
    ]
    service.post(made, frames(made, 1))
    found = estimate(service, kind, views="shrunk").json()
    assert found["n"] == 1 and len(found["items"]) == made.mechanism.m


def test_what_few_reports_show_is_said(serve):
    """The smallest share that is seen in all items together, and how many reports show a tenth."""
    made, service = survey("bits"), serve("bits")
    found = estimate(service, "bits").json()
    noises = outlook.noises(made.mechanism, "uniform")
    m = made.mechanism.m
    assert found["visible"] is None and found["common"] == 0.1
    assert found["needed"] == max(outlook.users_needed(noise, 0.1, m) for noise in noises)
    service.post(made, frames(made, 3))
    assert estimate(service, "bits").json()["visible"] is None
    service.post(made, frames(made, 2000))
    seen = min(outlook.visible_share(noise, 2003, m) for noise in noises)
    assert estimate(service, "bits").json()["visible"] == pytest.approx(seen)


def possible(made):
    """Reports that can be sent: those of 2000 people and, of independent bits, all and none of
    every part.
    """
    found = {row.tobytes() for row in people(made, 2000)}
    if made.mechanism.encoding.kind == "bits":
        for k in range(len(made.mechanism.parts)):
            front = bytes([k]) if len(made.mechanism.parts) > 1 else b""
            all_ = (
                b"\xff\x07" if made.mechanism.parts[k].ints.own[0] else b"\xfc\x07"
            )  # "high": items 0 and 1
            found |= {front + b"\0\0", front + all_}
    assert made.mechanism.tally(found).refused == {}
    return sorted(found)[:: -(-len(found) // 400)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_report_proves_nothing_of_anyone(kind):
    made = survey(kind)
    reports = possible(made)
    collection = Collection(1, kind, made, "counts", closed_by_organiser=False)
    expected, wanted = documents.Expected(made.mechanism), documents.ResultTable(made.only, 0, ())
    found = [
        documents.result(collection, SurveyTally.count(made, [report]), expected, wanted, 0.95, [])
        for report in reports
    ]
    assert [result["telling"] for result in found] == [0] * len(reports)
    rows = [row for result in found for row in result["items"] if row["count"] is not None]
    assert rows and all(row["lower"] <= row["count"] <= row["upper"] for row in rows)


def test_csv_holds_the_same_numbers(serve):
    made, service = survey("fixed"), serve("fixed")
    service.post(made, frames(made, 300))
    rows = estimate(service, "fixed", views="shrunk").json()["items"]
    answer = estimate(service, "fixed", format="csv", views="shrunk")
    assert (
        answer.headers["content-type"].startswith("text/csv")
        and "attachment" in answer.headers["content-disposition"]
    )
    table = list(csv.DictReader(io.StringIO(answer.text)))
    for row, told in zip(rows, table, strict=True):
        assert [*row, *saving.LAST] == list(told)
        for key, value in row.items():
            assert told[key] == value if isinstance(value, str) else float(told[key]) == value
    asked = service.get(
        "/v1/collections/fixed/estimate?views=shrunk", headers=BEARER | {"Accept": "text/csv"}
    )
    assert asked.content == answer.content


HARD = ['a,b "c"', "'d';e", "ü漢", "=1+1", " f ", "# C#"]


def hard_labels(serve):
    """A survey whose labels are hard for CSV, with ten reports."""
    policy = d.Policy.from_levels([("le,vel", 1, HARD[:2]), ("x", 2, HARD[2:])])
    made = d.Survey("hard", [d.design(policy, "opt0")])
    service = serve(made)
    service.post(made, frames(made, 10))
    return made, service


def test_an_explained_table_is_read_as_it_says(serve):
    """By pandas and by hand: the same numbers, after lines that say what they are."""
    made, service = hard_labels(serve)
    plain = estimate(service, "hard", format="csv", views="shrunk").content
    told = estimate(service, "hard", format="csv", views="shrunk", explained="true").content
    assert told.endswith(plain)
    lines = told.removesuffix(plain).decode().splitlines()
    assert all(line.startswith("# ") for line in lines)
    text = "\n".join(lines)
    assert "10 reports" in text and made.fingerprint in text and "95 % interval" in text
    assert "population" in text and "shrunk" in text and "comment='#'" in text
    known = {column.strip('"') for column in plain.decode().splitlines()[0].split(",")}
    named = {word.strip(" ,:") for line in lines for word in line.partition(":")[0].split()}
    assert {*COLUMNS, *saving.LAST} <= named & known
    table = pd.read_csv(io.BytesIO(told), comment="#")
    expected = pd.read_csv(io.BytesIO(plain))
    pd.testing.assert_frame_equal(table, expected)
    assert list(table["item"]) == [*HARD[:3], "'=1+1", *HARD[4:]]
    must_fail(
        pd.testing.assert_frame_equal,
        pd.read_csv(io.BytesIO(told.replace(b'"', b"")), comment="#", on_bad_lines="skip"),
        expected,
    )


def test_no_cell_of_an_explanation_is_a_formula():
    """A spreadsheet cuts the lines at commas, semicolons or tabs."""
    from discreet.collector.explanation import _plain

    for text in ("Which?,=HYPERLINK(1)", "a; +1", "a\t,\n@b", "x,-2,=3"):
        cells = re.split("[,;\t]", "# " + _plain(text))
        assert not any(cell.strip().startswith(("=", "+", "-", "@")) for cell in cells), cells
    assert _plain("0 to 1, -3 is none") == "0 to 1, '-3 is none" and _plain("a = b") == "a = b"


def test_labels_that_are_hard_for_csv_survive(serve):
    _, service = hard_labels(serve)
    labels = [*HARD]
    table = list(
        csv.DictReader(
            io.StringIO(estimate(service, "hard", format="csv").content.decode(), newline="")
        )
    )
    labels[3] = "'=1+1"  # never a formula
    assert [(row["item"], row["level"]) for row in table] == list(
        zip(labels, ["le,vel"] * 2 + ["x"] * 4)
    )


def test_an_estimate_is_not_sent_twice(serve):
    made, service = survey("bits"), serve("bits")
    service.post(made, frames(made, 10))
    path, seen = "/v1/collections/bits/estimate", set()
    for query in ("", "?views=shrunk", "?confidence=0.9", "?format=csv"):
        mark = service.get(path + query, headers=BEARER).headers["etag"]
        again = service.get(path + query, headers=BEARER | {"If-None-Match": mark})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", mark)
        assert_strict(again)
        seen.add(mark)
    assert len(seen) == 4
    service.post(made, frames(made, 1))
    assert service.get(path, headers=BEARER | {"If-None-Match": mark}).status_code == 200
    assert service.get(path, headers={"If-None-Match": mark}).status_code == 401


def test_a_large_estimate_is_compressed_for_who_takes_it(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    service.post(made, frames(made, 10))
    path = "/v1/collections/bits/estimate"
    small = service.get(path, headers=BEARER | {"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers
    monkeypatch.setattr(limits, "COMPRESSED", 100)
    for accepted, encoding in (("gzip", "gzip"), ("gzip;q=0", None), ("identity", None)):
        found = service.get(path, headers=BEARER | {"Accept-Encoding": accepted})
        assert found.headers.get("content-encoding") == encoding
        assert found.headers["vary"] == "Accept-Encoding" and found.json() == small.json()
        assert found.headers["etag"] == small.headers["etag"]


def test_an_estimate_is_computed_once_per_tally(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    calls, result = [], documents.result
    monkeypatch.setattr(documents, "result", lambda *args: calls.append(args[1].n) or result(*args))
    for n in (3, 5):
        service.post(made, frames(made, n))
        assert len({estimate(service, "bits").content for _ in range(3)}) == 1
    assert calls == [3, 8]


def test_plain_ldp_is_designed_once_per_mechanism(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    calls, design = [], documents.best_plain
    monkeypatch.setattr(
        documents, "best_plain", lambda *args, **more: calls.append(1) or design(*args, **more)
    )
    for query in ("", "?views=shrunk", "?format=csv", ""):
        service.post(made, frames(made, 5))
        path = f"/v1/collections/bits/estimate{query}"
        assert service.get(path, headers=BEARER).status_code == 200
    assert len(calls) == 1


def test_estimates_that_are_kept_are_few(serve):
    service = serve("bits", open_results=True)
    for k in range(100):
        query = f"confidence={0.5 + k / 1000}"
        assert service.get(f"/v1/collections/bits/estimate?{query}").status_code == 200
    assert len(service.collector.results._rendered) == limits.ESTIMATES


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("confidence=0.4", "confidence must be between 0.5 and 0.9999"),
        ("confidence=1", "confidence must be between"),
        ("confidence=nan", "confidence must be between"),
        ("confidence=x", "confidence must be between"),
        ("confidence=", "confidence must be between"),
        ("views=raw", "views are shrunk, consistent, separated by commas"),
        ("views=shrunk,x", "views are shrunk, consistent"),
        ("format=xml", "format must be json or csv"),
        ("confidence=0.9&confidence=0.9", "confidence is given more than once; give it once"),
        ("views=shrunk&views=consistent", "views is given more than once; give it once"),
        ("explained=1&format=csv", "explained must be true or false"),
        ("format=csv&format=json", "format is given more than once; give it once"),
        (
            "top=5",
            'the parameter "top" is unknown; the parameters are confidence, views, format, '
            "explained, question and by",
        ),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(serve, query, sentence):
    assert_problem(
        serve("bits").get(f"/v1/collections/bits/estimate?{query}", headers=BEARER),
        400,
        "query",
        sentence,
    )


# ---- metrics -------------------------------------------------------------------------------------


def test_metrics_say_what_happened(serve):
    made, service = survey("bits"), serve("bits")
    content = frames(made, 5)
    service.post(made, content)
    service.post(made, content + frames(made, 2))
    service.post(made, b"")
    service.post(made, b"x")
    found = service.counters()
    assert (
        found['discreet_reports_accepted_total{collection="bits"}'],
        found['discreet_reports_duplicate_total{collection="bits"}'],
    ) == (7, 5)
    assert service.refusals() == {"empty": 1, "frame": 1}
    assert (
        found["discreet_upload_seconds_count"]
        == 2
        == found['discreet_upload_seconds_bucket{le="+Inf"}']
    )
    buckets = [value for key, value in found.items() if "bucket" in key]
    assert buckets == sorted(buckets) and 0 < found["discreet_upload_seconds_sum"] < DEADLINE


def test_one_problem_does_not_change_the_next():
    """Headers are added to an answer, never to what others share."""
    first = Problem("busy", "wait", RETRY)
    first.headers.update(ANYONE)
    assert Problem("store", "wait", RETRY).headers == {"Retry-After": "2"} == dict(RETRY)


def test_many_readers_need_few_connections(serve):
    """Whatever is asked at once: files are counted here, PostgreSQL would count connections."""
    service = serve("bits", open_results=True)

    def files():
        return sum(
            "store" in os.readlink(path)
            for path in Path("/proc/self/fd").iterdir()
            if path.is_symlink()
        )

    paths = (
        "/healthz",
        "/v1/collections",
        "/v1/collections/bits",
        "/v1/collections/bits/estimate",
        "/",
    ) * 20
    answers = [service.begin(service.client.get(path)) for path in paths]
    assert {answer.result(DEADLINE).status_code for answer in answers} == {200}
    assert (
        0 < files() <= 1 + 4 * 3
    )  # the lock, then two readers, the writer and the one that opened it; file, log and index each


# ---- group commit and back-pressure --------------------------------------------------------------


class Gate:
    """Holds the store's transactions until it is opened; remembers them."""

    def __init__(self, service):
        self.entered, self.open, self.groups = threading.Event(), threading.Event(), []
        self._add, store = service.collector.store.add, service.collector.store
        store.add = self

    def __call__(self, uploads):
        self.groups.append([len(up.ids) for up in uploads])
        self.entered.set()
        assert self.open.wait(DEADLINE)
        return self._add(uploads)


def waiting(service):
    """Uploads that gather for the next transaction."""
    return len(service.collector.committer._waiting)


def test_uploads_that_wait_share_a_transaction(serve):
    made, service = survey("bits"), serve("bits")
    gate = Gate(service)
    shared = frames(made, 1)
    first = service.begin(service.sending(made, shared))
    assert gate.entered.wait(DEADLINE)
    rest = [service.begin(service.sending(made, frames(made, k) + shared)) for k in range(1, 21)]
    until(lambda: waiting(service) == 20, "twenty uploads wait")
    assert not any(answer.done() for answer in (first, *rest))  # nobody is told before it is so
    gate.open.set()
    assert first.result(DEADLINE).json() == {"accepted": 1, "duplicates": 0}
    assert [answer.result(DEADLINE).json()["accepted"] for answer in rest] == list(range(1, 21))
    assert sorted(gate.groups[1]) == list(range(2, 22)) and len(gate.groups) == 2
    assert (
        service.n("bits") == 1 + sum(range(1, 21))
        and service.counters()['discreet_reports_duplicate_total{collection="bits"}'] == 20
    )


def groups_of(serve, sizes):
    """The transactions in which uploads of these sizes are counted that wait for a first one."""
    made, service = survey("bits"), serve("bits")
    gate = Gate(service)
    calls = [service.begin(service.sending(made, frames(made, 1)))]
    assert gate.entered.wait(DEADLINE)
    for k, size in enumerate(sizes):
        calls.append(service.begin(service.sending(made, frames(made, size))))
        until(lambda k=k: waiting(service) == k + 1, "it waits")
    gate.open.set()
    assert all(answer.result(DEADLINE).status_code == 200 for answer in calls)
    return gate.groups


def test_a_transaction_is_not_larger_than_it_should_be(serve, monkeypatch):
    monkeypatch.setattr(limits, "GROUP", 10)
    assert groups_of(serve, [4] * 8) == [[1], [4, 4], [4, 4], [4, 4], [4, 4]]


def test_who_sends_much_does_not_make_others_wait(serve, monkeypatch):
    """The oldest upload, then the smallest: a large one is not starved either."""
    monkeypatch.setattr(limits, "GROUP", 10)
    assert groups_of(serve, [9, 9, 9, 1, 1, 1]) == [[1], [9, 1], [9, 1], [9, 1]]


def test_a_body_has_so_many_reports_at_most(serve, monkeypatch):
    monkeypatch.setattr(limits, "FRAMES", 3)
    made, service = survey("bits"), serve("bits")
    assert service.post(made, frames(made, 3)).status_code == 200
    assert_problem(service.post(made, frames(made, 4)), 413, "large", "3 reports; send the")
    assert service.n("bits") == 3


def test_readiness_is_whether_a_report_could_be_counted(serve, monkeypatch):
    service = serve("bits")
    assert service.get("/readyz").json() == {"status": "ok"}

    def full():
        raise StoreDown("the store cannot be used: database or disk is full")

    monkeypatch.setattr(service.collector.store, "can_write", full)
    assert service.get("/readyz").status_code == 503
    assert service.get("/healthz").status_code == 200  # alive, and it can still be read


def test_wrong_tokens_are_in_the_log_but_not_what_they_were(serve, caplog, monkeypatch):
    monkeypatch.setattr(logs, "_logged", {})
    service = serve("bits")
    for k in range(20):
        headers = {"Authorization": f"Bearer guess number {k}"}
        assert service.get("/v1/collections/bits/estimate", headers=headers).status_code == 401
    said = [r.getMessage() for r in caplog.records if r.name == "discreet"]
    assert said == ["a wrong token was sent"] and "guess" not in caplog.text


@pytest.mark.parametrize("token", ["aaaaaaaaaaaaaaaaaaaa", "pässwörterpässwörter", "x\x07" * 12])
def test_weak_tokens_are_refused(monkeypatch, token):
    monkeypatch.setenv("DISCREET_TOKEN", token)
    with pytest.raises(DataError, match="is weak"):
        tokens.read()


@pytest.mark.parametrize(
    "error", [StoreDown("the store cannot be used: gone"), ValueError("nobody expected it")]
)
def test_a_transaction_that_fails_is_told_to_all_and_the_next_one_works(serve, error):
    made, service = survey("bits"), serve("bits")
    gate, contents = Gate(service), [frames(made, 2) for _ in range(3)]
    real = gate._add

    def fail(_):
        raise error

    gate._add = fail
    gate.open.set()
    together = [service.begin(service.sending(made, content)) for content in contents]
    for answer in together:
        assert_problem(answer.result(DEADLINE), 503, "store", "send the same reports again")
    gate._add = real
    assert [service.post(made, content).json()["accepted"] for content in contents] == [2, 2, 2]
    assert service.refusals() == {"store": 3} and service.collector.uploads.waiting == 0


def test_uploads_of_several_collections_share_a_transaction(serve):
    service = serve("bits", "grr")
    gate = Gate(service)
    first = service.begin(service.sending(survey("bits"), frames(survey("bits"), 1)))
    assert gate.entered.wait(DEADLINE)
    rest = [
        service.begin(service.sending(survey(k), frames(survey(k), 3)))
        for k in ("bits", "grr", "bits")
    ]
    until(lambda: waiting(service) == 3, "three uploads wait")
    other = open_store(service.path)
    other.close_collection("grr")
    other.close()
    gate.open.set()
    assert [answer.result(DEADLINE).status_code for answer in (first, *rest)] == [
        200,
        200,
        410,
        200,
    ]
    assert (service.n("bits"), service.n("grr")) == (7, 0)


def test_when_too_much_waits_people_are_asked_to_come_back(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    size = 16 + made.mechanism.report_size
    monkeypatch.setattr(limits, "WAITING", 10 * size)
    gate = Gate(service)
    first = service.begin(service.sending(made, frames(made, 7)))
    assert gate.entered.wait(DEADLINE)
    late = frames(made, 4)
    answer = service.post(made, late)
    assert_problem(
        answer, 503, "busy", "send the same reports again in a few seconds, each is counted once"
    )
    assert (
        answer.headers["retry-after"] == "2"
        and answer.headers["access-control-allow-origin"] == "*"
    )
    small = service.begin(service.sending(made, frames(made, 3)))  # what fits is still taken
    until(lambda: waiting(service) == 1, "the small one waits")
    assert service.collector.uploads.waiting == 10 * size
    gate.open.set()
    assert (first.result(DEADLINE).status_code, small.result(DEADLINE).status_code) == (200, 200)
    assert service.post(made, late).json() == {"accepted": 4, "duplicates": 0}
    assert service.refusals() == {"busy": 1} and service.collector.uploads.waiting == 0


@pytest.mark.parametrize("said", [True, False], ids=["content-length", "chunked"])
def test_a_body_has_a_largest_size(serve, monkeypatch, said):
    made, service = survey("bits"), serve("bits")
    size = 16 + made.mechanism.report_size
    monkeypatch.setattr(limits, "BODY_SIZE", 5 * size)
    content, taken = frames(made, 6), []

    async def pieces(content):
        for k in range(0, len(content), size):
            taken.append(k)
            yield content[k : k + size]

    answer = service.post(made, content if said else pieces(content))
    assert_problem(answer, 413, "large", "a body has at most 90 bytes and 10,000 reports; send the")
    assert taken == [] if said else len(taken) == 6
    assert service.collector.uploads.waiting == 0 and service.n("bits") == 0
    assert (
        service.post(made, content[:-size] if said else pieces(content[:-size])).json()["accepted"]
        == 5
    )


def test_no_more_of_an_endless_body_is_held_than_allowed(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    monkeypatch.setattr(limits, "BODY_SIZE", 100_000)
    most = 0

    async def endless():
        nonlocal most
        while True:
            most = max(most, service.collector.uploads.waiting)
            yield b"x" * 1000

    assert service.post(made, endless()).status_code == 413
    assert most <= 100_000 and service.collector.uploads.waiting == 0


class ByHand:
    """One POST spoken to the application message by message."""

    def __init__(self, service, made, **headers):
        marks = {
            "content-type": "application/octet-stream",
            "discreet-survey": made.fingerprint,
        } | headers
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": f"/v1/collections/{made.name}/reports",
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in marks.items()],
        }
        self.sent, self.service, self.messages = [], service, asyncio.Queue()
        self.call = service.begin(self._run())

    async def _run(self):
        async def send(message):
            self.sent.append(message)

        await self.service.app(self.scope, self.messages.get, send)

    def tell(self, **message):
        self.service.run(self.messages.put({"type": "http.request", "more_body": True} | message))

    def status(self):
        self.call.result(DEADLINE)
        return self.sent[0]["status"]


def test_bytes_that_wait_are_given_back_whoever_goes_away(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    content = frames(made, 4)

    def half():
        call = ByHand(service, made)
        call.tell(body=content[:30])
        until(lambda: service.collector.uploads.waiting == 30, "half of it is here")
        return call

    call = half()
    call.tell(type="http.disconnect")
    assert call.status() == 408 and service.collector.uploads.waiting == 0
    call = half()
    call.call.cancel()
    until(lambda: service.collector.uploads.waiting == 0, "a cancelled call gives its bytes back")
    monkeypatch.setattr(limits, "BODY_PAUSE", 0.01)
    call = ByHand(service, made)
    call.tell(body=content[:30])
    assert call.status() == 408 and service.collector.uploads.waiting == 0
    assert (
        json.loads(call.sent[1]["body"])["detail"]
        == "the body did not arrive in time; send it again"
    )
    assert service.refusals() == {"slow": 2} and service.n("bits") == 0


def test_a_body_that_drips_is_given_up(serve, monkeypatch):
    """Every byte comes in time, the whole does not."""
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    made, service = survey("bits"), serve("bits")
    call = ByHand(service, made)
    end = time.monotonic() + DEADLINE
    while not call.call.done() and time.monotonic() < end:
        call.tell(body=b"x")
    assert call.status() == 408 and service.collector.uploads.waiting == 0


def test_whoever_goes_away_while_the_store_works_is_counted(serve):
    made, service = survey("bits"), serve("bits")
    gate = Gate(service)
    content = frames(made, 3)
    call = ByHand(service, made)
    call.tell(body=content, more_body=False)
    assert gate.entered.wait(DEADLINE)
    second = ByHand(service, made)
    second.tell(body=frames(made, 2), more_body=False)
    until(lambda: waiting(service) == 1, "the second waits")
    call.call.cancel()
    second.call.cancel()
    until(lambda: service.collector.uploads.waiting == 0, "nothing waits")
    gate.open.set()
    until(lambda: service.n("bits") == 5, "both are counted")
    assert service.post(made, content).json() == {"accepted": 0, "duplicates": 3}


def test_what_waits_is_finished_before_the_service_ends(tmp_path):
    made = survey("bits")
    service = Service(tmp_path, made)
    gate = Gate(service)
    answers = [service.begin(service.sending(made, frames(made, 2))) for _ in range(5)]
    until(
        lambda: gate.entered.is_set() and waiting(service) + len(gate.groups[0]) == 5,
        "five uploads are under way",
    )
    ending = service.begin(service.collector.committer.close())
    gate.open.set()
    ending.result(DEADLINE)
    assert [answer.result(DEADLINE).json()["accepted"] for answer in answers] == [2] * 5
    service.close()
    assert service.n("bits") == 10


# ---- other processes change the store ------------------------------------------------------------


def test_closing_is_noticed_at_once(serve, monkeypatch):
    made, service = survey("bits"), serve("bits")
    content = frames(made, 3)
    service.post(made, content)
    mark = estimate(service, "bits").headers["etag"]
    other = open_store(service.path)
    other.close_collection("bits")
    other.close()
    sentence = 'the collection "bits" is closed and takes no more reports; nothing of this upload'
    assert_problem(service.post(made, frames(made, 2)), 410, "closed", sentence)
    assert_problem(service.post(made, content), 410, "closed", sentence)
    monkeypatch.setattr(limits, "FRESH", 0.0)
    assert (
        service.get("/v1/collections/bits").json()["state"]
        == "closed"
        == estimate(service, "bits").json()["state"]
    )
    assert estimate(service, "bits").headers["etag"] != mark
    assert service.get("/v1/collections").json()["collections"][0]["state"] == "closed"
    assert (
        service.n("bits") == 3
        and service.refusals() == {"closed": 2}
        and service.collector.uploads.waiting == 0
    )


def test_a_collection_made_later_by_another_process_is_found(serve):
    service, made = serve("bits"), survey("grr")
    assert service.post(made, frames(made, 1)).status_code == 404
    other = open_store(service.path)
    other.create(made)
    assert service.post(made, frames(made, 2)).json()["accepted"] == 2
    assert len(service.get("/v1/collections").json()["collections"]) == 2
    other.add([upload(made, ids(3))])
    assert estimate(service, "grr").json()["n"] == 5
    other.close()


@GROUP
def test_over_postgresql_it_is_the_same_service(serve, database):
    made, service = survey("fixed"), serve("fixed", url=database, keep="reports")
    rows, some = people(made, 50), ids(50)
    assert service.post(made, body(some[:30], rows[:30])).json() == {
        "accepted": 30,
        "duplicates": 0,
    }
    assert service.post(made, body(some, rows)).json() == {"accepted": 20, "duplicates": 30}
    assert_problem(service.post(made, body(some, rows)[:-1]), 400, "frame", "frame 49")
    found = estimate(service, "fixed").json()
    assert found["items"] == made.mechanism.tally(rows).estimate().table().rows()
    other = open_store(database)
    other.close_collection("fixed")
    other.close()
    assert_problem(service.post(made, frames(made, 1)), 410, "closed", "closed")
    assert service.get("/healthz").status_code == 200 and service.n("fixed") == 50


@GROUP
def test_over_postgresql_a_strange_name_is_unknown(serve, database):
    assert serve("bits", url=database).get("/v1/collections/%00").status_code == 404


def test_strangers_see_results_in_steps_and_the_organiser_all(serve):
    made, service = survey("bits"), serve("bits", open_results=True)
    told = service.get("/v1/collections/bits").json()
    assert (told["open_results"], told["least"], told["step"]) == (True, 50, 50)
    path = "/v1/collections/bits/estimate"
    for count, shown in ((1, 0), (48, 0), (1, 50), (49, 50), (1, 100)):
        service.post(made, frames(made, count))
        found = service.get(path).json()
        assert (found["n"], found["least"]) == (shown, 50)
        assert (found["items"] == []) == (shown == 0)
    service.post(made, frames(made, 3))
    assert service.get(path, headers=BEARER).json()["n"] == 103
    assert service.get(path, headers={"Authorization": "Bearer guess"}).status_code == 401
    closed = serve("grr").get("/v1/collections/grr").json()
    assert (closed["open_results"], closed["least"]) == (False, 0)
