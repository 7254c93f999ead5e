"""Bad input: the OpenAPI description taken at its word by schemathesis, and 50,000 mutated
bodies.
"""

import asyncio
import gc
import json
import os
import sqlite3
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import schemathesis
from collecting import KINDS, TOKEN, people, spoiled, survey
from hypothesis import strategies as st
from schemathesis.engine import events, from_schema
from schemathesis.specs.openapi import media_types

from discreet.collector import app, documents
from discreet.collector.metrics import Metrics
from discreet.collector.store import open_store
from discreet.encodings import REASONS

# ---- the description -----------------------------------------------------------------------------

CHECKS = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "use_after_free",
    "ensure_resource_availability",
}
OPERATIONS = {
    "GET /healthz", "GET /readyz", "GET /metrics",
    "GET /v1/collections", "GET /v1/collections/{name}",
    "GET /v1/collections/{name}/estimate", "POST /v1/collections/{name}/reports",
}  # fmt: skip


def settings(examples):
    """All phases and all checks. A body of any bytes fits the description, so that one operation
    may also refuse it; so may one that asks for a question or for groups, whose names only the
    survey knows.
    """
    refusing = {"positive_data_acceptance": {"expected-statuses": ["2xx", 400, 404, 409, 410, 422]}}
    return schemathesis.Config.from_dict(
        {
            "seed": 1,
            "headers": {"Authorization": f"Bearer {TOKEN}"},
            "generation": {"max-examples": examples, "deterministic": True, "database": "none"},
            "operations": [
                {"include-operation-id": ["report", "estimate"], "checks": refusing},
            ],
        }
    )


def collector(folder, kinds, keep="counts", open_results=False):
    store = open_store(str(folder / "store"))
    for kind in kinds:
        store.create(survey(kind), keep)
    return app.Collector(store, Metrics(folder), TOKEN, open_results)


def refuses_what_it_describes(case, response):
    """Whether an estimate is refused that names neither a question nor groups."""
    valid = case.meta is not None and case.meta.generation.mode.is_positive
    named = {"question", "by"} & set(case.query or {})
    estimate = case.operation.path.endswith("/estimate")
    return estimate and valid and not named and response.status_code == 400


def attack(service, examples):
    """Run schemathesis in this process: how often every check passed, what failed, and how every
    operation answered.
    """
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", service.application(), config=settings(examples)
    )
    passed, failed, seen = Counter(), [], defaultdict(Counter)
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            failed.append(f"not even answered: {event}")  # an exception that came through
        elif isinstance(event, events.ScenarioFinished):
            for key, checks in event.recorder.checks.items():
                case = event.recorder.cases[key].value
                seen[case.operation.label][
                    event.recorder.interactions[key].response.status_code
                ] += 1
                if refuses_what_it_describes(case, event.recorder.interactions[key].response):
                    failed.append(f"refused: {case.as_curl_command()}")
                for check in checks:
                    if check.status == "failure":
                        failed.append(
                            f"{case.operation.label}: {check.failure_info.failure} "
                            f"{case.as_curl_command()}"
                        )
                    else:
                        passed[check.name] += 1
    service.store.close()
    return passed, failed, seen


@pytest.fixture
def bodies():
    """Besides any bytes, bodies are often whole frames of 18 bytes, which may be reports of
    "bits".
    """
    frames = st.lists(
        st.binary(min_size=17, max_size=17).map(lambda raw: raw + b"\x03"), max_size=4
    ).map(b"".join)
    schemathesis.openapi.media_type(
        "application/octet-stream", st.one_of(st.binary(max_size=80), frames)
    )
    yield
    media_types.unregister_all()


def test_the_service_is_as_it_is_described(tmp_path, bodies):
    passed, failed, seen = attack(collector(tmp_path, ("bits",)), 40)
    assert not failed, "\n\n".join(failed)
    assert set(seen) == OPERATIONS and sum(map(Counter.total, seen.values())) > 200
    assert set(seen["POST /v1/collections/{name}/reports"]) >= {200, 400, 404, 409, 415}
    assert set(passed) >= CHECKS


def test_open_results_are_as_they_are_described(tmp_path, bodies):
    """The security of an estimate is optional in the description, so this is the same
    description.
    """
    _, failed, _ = attack(collector(tmp_path, KINDS, open_results=True), 3)
    assert not failed, "\n\n".join(failed)


@pytest.mark.parametrize(
    ("name", "broken", "sees"),
    [
        (
            "describe",
            lambda collection, _: {"name": collection.name},
            "response violates schema|'question' is a required",
        ),
        ("brief", lambda collection: {}["x"], "not even answered"),
    ],
)
def test_schemathesis_sees_what_it_must_see(tmp_path, monkeypatch, name, broken, sees):
    monkeypatch.setattr(documents, name, broken)
    _, failed, _ = attack(collector(tmp_path, ("bits",)), 3)
    assert any(part.lower() in message.lower() for message in failed for part in sees.split("|")), (
        failed
    )


# ---- mutated bodies ------------------------------------------------------------------------------

N = 50_000
POOL = 3000  # ids: so few that most come again


class Bodies:
    """Bodies of one survey: some whole, most of them damaged in one way or another."""

    def __init__(self, kind, seed):
        self.kind, self.made, self.rng = kind, survey(kind), np.random.default_rng(seed)
        self.rows = people(self.made, 2000, seed)
        self.ids = self.rng.integers(0, 256, (POOL, 16), np.uint8)
        self.ways = [
            self.whole,
            self.whole,
            self.truncated,
            self.extended,
            self.flipped,
            self.flipped_id,
            self.wrong_word,
        ]
        self.ways += [
            self.wrong_part,
            self.spoilt,
            self.repeated,
            self.swapped,
            bytes,
            self.random,
            self.random_frames,
        ]

    def frames(self):
        k = int(self.rng.integers(1, 6))
        ids, rows = (
            self.ids[self.rng.integers(POOL, size=k)],
            self.rows[self.rng.integers(len(self.rows), size=k)],
        )
        return np.concatenate((ids, rows), axis=1)

    def next(self):
        return self.ways[int(self.rng.integers(len(self.ways)))]()

    def whole(self):
        return self.frames().tobytes()

    def truncated(self):
        raw = self.frames().tobytes()
        return raw[: int(self.rng.integers(len(raw)))]

    def extended(self):
        return self.frames().tobytes() + self.rng.bytes(int(self.rng.integers(1, 40)))

    def flipped(self):
        """One bit of the last report, wherever."""
        frames = self.frames()
        frames[-1, int(self.rng.integers(16, frames.shape[1]))] ^= 1 << int(self.rng.integers(8))
        return frames.tobytes()

    def flipped_id(self):
        frames = self.frames()
        frames[-1, int(self.rng.integers(16))] ^= 1 << int(self.rng.integers(8))
        return frames.tobytes()

    def wrong_word(self):
        """A number at the edge or beyond it: the last ticket and around."""
        frames, encoding = self.frames(), self.made.mechanism.encoding
        last = (
            len(self.made.mechanism.parts) * encoding.tickets
            if encoding.as_uint32
            else self.made.mechanism.m
        )
        edge = int(self.rng.choice([last - 1, last, last + 1, 2**32 - 1, 2**31, 0]))
        place = frames.shape[1] - 4
        word = np.frombuffer(edge.to_bytes(4, "little"), np.uint8)
        frames[int(self.rng.integers(len(frames))), place : place + 4] = word[
            : frames.shape[1] - place
        ]
        return frames.tobytes()

    def spoilt(self):
        """One thing wrong with the last report, of every kind that there is."""
        raw, size = self.whole(), self.made.mechanism.report_size
        found = [x for reason, x in spoiled(self.kind, raw[-size:]) if reason != "length"]
        return raw[:-size] + found[int(self.rng.integers(len(found)))]

    def wrong_part(self):
        frames = self.frames()
        frames[int(self.rng.integers(len(frames))), 16] = int(self.rng.integers(256))
        return frames.tobytes()

    def repeated(self):
        return self.frames().tobytes() * int(self.rng.integers(2, 5))

    def swapped(self):
        """Out of step by some bytes."""
        raw, k = self.frames().tobytes(), int(self.rng.integers(1, 18))
        return raw[k:] + raw[:k]

    def random(self):
        return self.rng.bytes(int(self.rng.integers(1, 200)))

    def random_frames(self):
        return self.rng.bytes((16 + self.made.mechanism.report_size) * int(self.rng.integers(1, 4)))


def verdict(made, raw):
    """What must be answered: status, reason, index of the first bad frame; one report at a time."""
    size = 16 + made.mechanism.report_size
    if not raw:
        return 400, "empty", None
    if len(raw) % size:
        return 400, "frame", len(raw) // size
    for k in range(len(raw) // size):
        reason = made.mechanism.coder.refusal(raw[k * size + 16 : (k + 1) * size])
        if reason:
            return 422, reason, k
    return 200, None, None


async def post(application, made, raw):
    """One request, spoken by hand; its status and its document."""
    sent, pieces = [], [raw]

    async def receive():
        return {"type": "http.request", "body": pieces.pop(), "more_body": False}

    async def send(message):
        sent.append(message)

    await application(
        {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "root_path": "",
            "path": f"/v1/collections/{made.name}/reports",
            "query_string": b"",
            "headers": [
                (b"content-type", b"application/octet-stream"),
                (b"discreet-survey", made.fingerprint.encode()),
                (b"content-length", str(len(raw)).encode()),
            ],
        },
        receive,
        send,
    )
    return sent[0]["status"], json.loads(sent[1]["body"])


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_of_fifty_thousand_mutated_bodies_just_the_good_ones_count(tmp_path):
    """Every answer is what Coder.check says of its frames; only the good ones are stored.

    Hundred requests at a time, so that they share transactions. Memory: a block kept per request
    would be 40,000 of them.
    """
    service = collector(tmp_path, KINDS, keep="reports")
    application = service.application()
    makers = {kind: Bodies(kind, seed) for seed, kind in enumerate(KINDS)}
    good, blocks = {kind: bytearray() for kind in KINDS}, []
    counted, statuses, reasons = Counter(), Counter(), Counter()

    async def batch(kinds):
        asked = [(kind, makers[kind].next()) for kind in kinds]
        answers = await asyncio.gather(
            *(post(application, makers[kind].made, raw) for kind, raw in asked)
        )
        for (kind, raw), (status, document) in zip(asked, answers, strict=True):
            made = makers[kind].made
            got = (status, document.get("title"), document.get("index"))
            assert got == verdict(made, raw), (kind, raw, document)
            statuses[status, kind] += 1
            reasons[document.get("title")] += 1
            if status == 200:
                assert document["accepted"] + document["duplicates"] == len(raw) // (
                    16 + made.mechanism.report_size
                )
                counted[kind] += document["accepted"]
                good[kind] += raw

    async def everything():
        for k in range(0, N, 100):
            await batch([KINDS[j % len(KINDS)] for j in range(k, k + 100)])
            if k in (N // 5, N - 100):
                gc.collect()
                blocks.append((sys.getallocatedblocks(), resident()))
        await service.committer.close()

    asyncio.run(everything())
    assert service.uploads.waiting == 0
    assert all(statuses[status, kind] > 100 for status in (200, 400) for kind in KINDS)
    assert all(statuses[422, kind] > 100 for kind in KINDS)
    # the rarest, a silent group that is named, comes some 130 times
    # and "order" is of picks, which tests/encodings/test_picks.py damages
    assert all(reasons[reason] > 20 for reason in set(REASONS) - {"length", "order"}), reasons
    db = sqlite3.connect(tmp_path / "store")
    for kind in KINDS:
        made, size = makers[kind].made, 16 + makers[kind].made.mechanism.report_size
        possible = {}
        for k in range(0, len(good[kind]), size):
            possible.setdefault(bytes(good[kind][k : k + 16]), set()).add(
                bytes(good[kind][k + 16 : k + size])
            )
        query = (
            "SELECT id, report FROM report r JOIN collection c ON c.key = r.collection "
            "WHERE c.name = ?"
        )
        stored = dict(db.execute(query, (kind,)).fetchall())
        assert set(stored) == set(possible) and counted[kind] == len(stored)
        assert all(stored[id_] in possible[id_] for id_ in stored)
        assert service.store.tally(kind).question(0) == made.mechanism.tally(list(stored.values()))
    db.close()
    service.store.close()
    (before, small), (after, large) = blocks
    assert after - before < 4000, f"{after - before} blocks more after {N} bodies"
    assert large - small < 64 << 20, f"{(large - small) >> 20} MiB more after {N} bodies"
