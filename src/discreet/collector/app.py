"""The HTTP service as an ASGI application. It learns nothing but reports, and keeps no more of them
than it must.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import logging
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from discreet import summary, theory
from discreet.collector import openapi, pages
from discreet.collector.commit import Committer, answered
from discreet.collector.metrics import Metrics
from discreet.collector.store import (
    ID_SIZE,
    Collection,
    NoCollection,
    Store,
    StoreDown,
    Upload,
    open_store,
)
from discreet.designs import best_plain
from discreet.encodings import REASONS, Bytes
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.tally import Tally

log = logging.getLogger("discreet")
_said = -math.inf  # when the log last said that the store is down

MAX_BODY = 8 << 20  # bytes of one request
MAX_WAITING = (
    256 << 20
)  # bytes of all requests that are not answered yet; beyond, people are asked to come back
MOST_DRAINED = 64 << 20  # bytes of a refused request that are still read, and dropped
PATIENCE = 10.0  # seconds without a byte of the body
MOST_PATIENCE = 60.0  # seconds for the whole body
FRESH = 1.0  # seconds for which the state of a collection is believed


@dataclass(frozen=True)
class Settings:
    """What a worker needs to know. The token is never here, but in the environment or a file."""

    store: str
    counters: str  # the folder of the workers' counters
    open_results: bool = False


class Problem(Exception):
    """An answer that is not what was asked for, as application/problem+json (RFC 9457)."""

    def __init__(
        self,
        status: int,
        reason: str,
        detail: str,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.reason, self.detail, self.headers, self.more = (
            status,
            reason,
            detail,
            headers or {},
            more,
        )

    def response(self) -> Response:
        """The answer."""
        body = {
            "type": "about:blank",
            "title": self.reason,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        return _json(body, self.status, self.headers, "application/problem+json")


class Collector:
    """The endpoints, over a store."""

    def __init__(
        self, store: Store, metrics: Metrics, token: str, open_results: bool = False
    ) -> None:
        self.store, self.metrics, self.open_results = store, metrics, open_results
        self._token = hashlib.sha256(token.encode()).digest()
        self._known: dict[str, tuple[Collection, float]] = {}
        self._waiting = 0  # bytes of requests not answered yet
        self._estimates: dict[
            tuple[Any, ...], bytes
        ] = {}  # the last few, by what was asked and how many reports there were
        self._readers = ThreadPoolExecutor(
            2, "read"
        )  # and so two connections to the store, whatever is asked of us
        self._rendering = asyncio.Lock()
        self._plain: dict[str, Any] = {}
        self._descriptions: dict[tuple[str, bool], bytes] = {}
        self.committer = Committer(store)

    # ---- collections -----------------------------------------------------------------------------

    async def find(self, name: str, fresh: bool = False) -> Collection:
        """A collection; its mechanism never changes, its state is looked up when it
        must be fresh.
        """
        known = self._known.get(name)
        if known is not None and not (fresh and time.monotonic() - known[1] > FRESH):
            return known[0]
        try:
            found = await self._read(self.store.collection, name)
        except NoCollection as error:
            raise Problem(
                404, "unknown", f"{error}; see /v1/collections for those there are"
            ) from None
        self._known[name] = found, time.monotonic()
        return found

    async def _read(self, work: Callable[..., Any], *args: Any) -> Any:
        """Ask the store, aside from the event loop."""
        try:
            return await answered(
                asyncio.get_running_loop().run_in_executor(self._readers, work, *args), self.store
            )
        except StoreDown as error:
            raise _down(error) from None

    async def collections(self, request: Request) -> Response:
        """GET /v1/collections"""
        return _json({"collections": [_brief(c) for c in await self._read(self.store.collections)]})

    async def collection(self, request: Request) -> Response:
        """GET /v1/collections/{name}"""
        try:
            found = await self.find(request.path_params["name"], fresh=True)
        except Problem as problem:
            problem.headers.update(_ANYONE)
            raise
        key = (found.name, found.open)
        if key not in self._descriptions:
            self._descriptions[key] = await run_in_threadpool(lambda: _dump(describe(found)))
        return Response(self._descriptions[key], headers=_ANYONE, media_type="application/json")

    # ---- reports ---------------------------------------------------------------------------------

    async def upload(self, name: str, scope: Any, receive: Any, send: Any) -> None:
        """POST /v1/collections/{name}/reports, as plain ASGI: this is what the service does all
        day.
        """
        try:
            accepted, duplicates = await self._upload(name, dict(scope["headers"]), receive)
        except Exception as error:
            if isinstance(error, Problem):
                self.metrics.refused(error.reason)
                error.headers.update(_ANYONE)
            answer = (
                error.response()
                if isinstance(error, Problem)
                else await _unexpected(Request(scope), error)
            )
            await with_headers(answer)(scope, receive, send)
            return
        said = b'{"accepted":%d,"duplicates":%d}' % (accepted, duplicates)
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [*_COUNTED, (b"content-length", b"%d" % len(said))],
            }
        )
        await send({"type": "http.response.body", "body": said})

    async def _upload(
        self, name: str, headers: dict[bytes, bytes], receive: Any
    ) -> tuple[int, int]:
        began, body, read = time.perf_counter(), b"", False
        try:
            collection = await self.find(name)
            _check_headers(headers, collection)
            body, read = await self._body(receive), True
            outcome = await self.committer.submit(frames(collection.mechanism, body))
            if outcome.closed:
                detail = (
                    f'the collection "{collection.name}" is closed and takes no more reports; '
                    "nothing was counted"
                )
                raise Problem(410, "closed", detail)
        except StoreDown as error:
            raise _down(error) from None
        except Problem as problem:
            if not read and problem.reason != "slow":
                await _drain(receive)
            raise
        finally:
            self._waiting -= len(body)
        self.metrics.accepted(outcome.accepted, outcome.duplicates, time.perf_counter() - began)
        return outcome.accepted, outcome.duplicates

    async def _body(self, receive: Any) -> bytes:
        """The whole body; its bytes count as waiting until the caller gives them back."""
        clock = asyncio.get_running_loop().time
        held, deadline = bytearray(), clock() + MOST_PATIENCE
        try:
            async with asyncio.timeout_at(clock() + PATIENCE) as limit:
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientDisconnect
                    chunk = message.get("body", b"")
                    if len(held) + len(chunk) > MAX_BODY:
                        raise _too_large()
                    if self._waiting + len(chunk) > MAX_WAITING:
                        detail = (
                            "too many reports are waiting; send the same ones again in some "
                            "seconds, they are counted once"
                        )
                        raise Problem(503, "busy", detail, {"Retry-After": "2"})
                    held += chunk
                    self._waiting += len(chunk)
                    if not message.get("more_body", False):
                        return bytes(held)
                    limit.reschedule(min(deadline, clock() + PATIENCE))
        except (TimeoutError, ClientDisconnect):
            self._waiting -= len(held)
            raise Problem(
                408, "slow", "the body did not come, or too slowly; send it again"
            ) from None
        except BaseException:
            self._waiting -= len(held)
            raise

    # ---- results ---------------------------------------------------------------------------------

    def check_token(self, request: Request) -> None:
        """401 unless the organiser's token is in the Authorization header; compared in constant
        time.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = hashlib.sha256(token.strip().encode()).digest()
        if not (hmac.compare_digest(given, self._token) and scheme.lower() == "bearer"):
            detail = "this needs the organiser's token in the header Authorization: Bearer …"
            raise Problem(401, "token", detail, {"WWW-Authenticate": 'Bearer realm="discreet"'})

    async def estimate(self, request: Request) -> Response:
        """GET /v1/collections/{name}/estimate"""
        if not self.open_results:
            self.check_token(request)
        collection = await self.find(request.path_params["name"], fresh=True)
        shrunk, level, kind = _wishes(request)
        tally = await self._read(self.store.tally, collection.name)
        which = f"{int(collection.open)}-{int(shrunk)}-{level}-{kind}"
        mark = f'"{collection.mechanism.fingerprint[:16]}-{tally.n}-{which}"'
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers={"ETag": mark})
        async with self._rendering:  # one at a time, and nobody computes what another just has
            body = self._estimates.get((collection.name, mark))
            if body is None:
                body = await run_in_threadpool(self._render, collection, tally, shrunk, level, kind)
                self._estimates[collection.name, mark] = body
                while len(self._estimates) > 8:
                    del self._estimates[next(iter(self._estimates))]
        headers = {"ETag": mark}
        if kind == "csv":
            headers["Content-Disposition"] = 'attachment; filename="estimate.csv"'
        return Response(
            body, headers=headers, media_type="text/csv" if kind == "csv" else "application/json"
        )

    def _render(
        self, collection: Collection, tally: Tally, shrunk: bool, level: float, kind: str
    ) -> bytes:
        table = result(collection, tally, shrunk, level, self._expected(collection.mechanism))
        return as_csv(table["items"]) if kind == "csv" else _dump(table)

    def _expected(self, mechanism: Mechanism) -> Any:
        """Expected variance per person of every level, and the best plain LDP's, from the design;
        computed once.
        """
        if mechanism.fingerprint not in self._plain:
            best = best_plain(mechanism.policy, padding=mechanism.padding)
            self._plain[mechanism.fingerprint] = (
                theory.level_variance(mechanism),
                theory.level_variance(best),
                best.model,
            )
        return self._plain[mechanism.fingerprint]

    # ---- operations and pages --------------------------------------------------------------------

    async def healthz(self, request: Request) -> Response:
        """GET /healthz"""
        await self._read(self.store.ping)
        return _json({"status": "ok"})

    async def counters(self, request: Request) -> Response:
        """GET /metrics"""
        self.check_token(request)
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """GET /openapi.json"""
        return _json(openapi.DOCUMENT, headers=_ANYONE)

    async def index(self, request: Request) -> Response:
        """GET /"""
        found = await self._read(self.store.collections)
        return pages.html(
            pages.index([(c.name, c.mechanism.policy.question, c.open) for c in found])
        )

    async def answer_page(self, request: Request) -> Response:
        """GET /c/{name}: the same file for every collection; it asks the service for the rest."""
        return Response(
            pages.answer_file(),
            media_type="text/html",
            headers={"Content-Security-Policy": pages.answer_policy()},
        )

    async def results_page(self, request: Request) -> Response:
        """GET /c/{name}/results"""
        collection = await self.find(request.path_params["name"])
        return pages.html(
            pages.results(collection.name, collection.mechanism.policy.question, self.open_results)
        )

    async def static(self, request: Request) -> Response:
        """GET /static/{file}"""
        found = pages.static(request.path_params["file"])
        if found is None:
            raise Problem(404, "unknown", "there is no such file")
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "no-cache"})

    async def preflight(self, request: Request) -> Response:
        """OPTIONS of the two public endpoints: any page may fetch a description and send a report,
        without credentials.
        """
        return Response(status_code=204, headers=_PREFLIGHT)

    def application(self) -> Any:
        """The ASGI application."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            try:
                yield
            finally:
                await self.committer.close()
                self._readers.shutdown()
                self.store.close()

        base = "/v1/collections"
        routes = [
            Route(base + "/{name}/reports", self.preflight, methods=["OPTIONS"]),
            Route(base + "/{name}/estimate", self.estimate),
            Route(base + "/{name}", self.collection),
            Route(base + "/{name}", self.preflight, methods=["OPTIONS"]),
            Route(base, self.collections),
            Route("/healthz", self.healthz),
            Route("/metrics", self.counters),
            Route("/openapi.json", self.openapi),
            Route("/", self.index),
            Route("/answer.html", self.answer_page),
            Route("/c/{name}", self.answer_page),
            Route("/c/{name}/results", self.results_page),
            Route("/static/{file}", self.static),
        ]
        app = Starlette(
            routes=routes,
            lifespan=lifespan,
            exception_handlers={Problem: _problem, HTTPException: _http, Exception: _unexpected},
        )
        app.router.redirect_slashes = False

        strict = with_headers(app)

        async def service(scope: Any, receive: Any, send: Any) -> None:
            if (
                scope["type"] == "http"
                and scope["method"] == "POST"
                and (found := _UPLOAD.fullmatch(scope["path"]))
            ):
                await self.upload(found[1], scope, receive, send)
            else:
                await strict(scope, receive, send)

        return service


# ---- one worker's application, from its environment ----------------------------------------------


def from_environment() -> Any:
    """For uvicorn: the application that `discreet serve` has described in the environment."""
    import os

    settings = Settings(**json.loads(os.environ["DISCREET_COLLECTOR"]))
    return build(settings, token())


def build(settings: Settings, secret: str) -> Any:
    """The application of these settings."""
    return Collector(
        open_store(settings.store), Metrics(settings.counters), secret, settings.open_results
    ).application()


def token() -> str:
    """The organiser's token: the environment's DISCREET_TOKEN, or the content of the file
    DISCREET_TOKEN_FILE.
    """
    import os

    secret, where = os.environ.get("DISCREET_TOKEN"), "DISCREET_TOKEN"
    if not secret:
        path = Path(os.environ.get("DISCREET_TOKEN_FILE", "discreet.token"))
        try:
            secret, where = path.read_text(encoding="utf-8"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"the token file {path} cannot be read: "
                f"{getattr(error, 'strerror', 'it is not text')}"
            ) from None
    if len(secret.strip()) < 16:
        raise DataError(
            f"the token in {where} has {len(secret.strip())} characters; it must have at least 16"
        )
    return secret.strip()


# ---- what is said about a collection -------------------------------------------------------------


def _brief(collection: Collection) -> dict[str, Any]:
    policy = collection.mechanism.policy
    return {
        "name": collection.name,
        "question": policy.question,
        "input": policy.input,
        "items": policy.m,
        "state": "open" if collection.open else "closed",
        "fingerprint": collection.mechanism.fingerprint,
    }


def describe(collection: Collection) -> dict[str, Any]:
    """Everything a participant or an auditor needs; `mechanism` is the file that `discreet check`
    verifies.
    """
    mechanism = collection.mechanism
    policy, guarantee = mechanism.policy, mechanism.guarantee()
    promise = guarantee.epsilons
    few = len(policy.levels) <= summary.MAX_ROWS
    return {
        **_brief(collection),
        "keeps": collection.keep,
        "report_bytes": mechanism.report_size,
        "levels": [
            {
                "name": level.name,
                "epsilon": level.budget.text,
                "items": size,
                "factor": math.exp(promise[k]),
            }
            for k, (level, size) in enumerate(zip(policy.levels, policy.sizes, strict=True))
        ],
        "guarantee": {
            "holds": guarantee.holds,
            "ldp_epsilon": guarantee.ldp_epsilon,
            "sentences": guarantee.sentences() if few else [],
        },
        "certificate": mechanism.certificate.sentence if mechanism.certificate else "",
        "mechanism": mechanism.to_document(),
    }


def result(
    collection: Collection, tally: Tally, shrunk: bool, level: float, expected: tuple[Any, Any, str]
) -> dict[str, Any]:
    """The estimate as rows per item, with what plain LDP would have given; no reports, no rows."""
    policy = collection.mechanism.policy
    mine, plain, plain_model = expected
    document: dict[str, Any] = {
        **_brief(collection),
        "n": tally.n,
        "interval": level,
        "levels": [
            {
                "name": entry.name,
                "epsilon": entry.budget.text,
                "expected_stderr": math.sqrt(tally.n * mine[k]),
                "plain_stderr": math.sqrt(tally.n * plain[k]),
            }
            for k, entry in enumerate(policy.levels)
        ],
        "plain_model": plain_model,
        "certificate": collection.mechanism.certificate.sentence
        if collection.mechanism.certificate
        else "",
        "note": "",
        "telling": 0,
        "can_shrink": False,
        "items": [],
    }
    if tally.n:
        estimate = tally.estimate()
        columns = estimate.columns(level)
        columns["plain_stderr"] = np.sqrt(tally.n * plain)[collection.mechanism.level_of].tolist()
        if shrunk and estimate.can_shrink:
            columns |= estimate.extra_columns(shrunk=True, consistent=False, level=level)
        names = list(columns)
        rounded = [
            column if name in ("item", "level") else _rounded(column)
            for name, column in columns.items()
        ]
        document["items"] = [
            dict(zip(names, row, strict=True)) for row in zip(*rounded, strict=True)
        ]
        document["note"] = estimate.truncation_note
        document["telling"] = int((estimate.interval(0.95, simultaneous=True)[0] > 0).sum())
        document["can_shrink"] = estimate.can_shrink
    return document


def _rounded(column: list[float]) -> list[float | None]:
    """To six digits after the point; null where there is no number."""
    rounded = np.round(column, 6)
    if np.isfinite(rounded).all():
        return rounded.tolist()
    return [x if math.isfinite(x) else None for x in rounded.tolist()]


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    """Rows as CSV with a header."""
    import csv

    text = io.StringIO()
    names = (
        list(rows[0])
        if rows
        else ["item", "level", "count", "stderr", "lower", "upper", "share", "plain_stderr"]
    )
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


# ---- uploads -------------------------------------------------------------------------------------


def _check_headers(headers: dict[bytes, bytes], collection: Collection) -> None:
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != "application/octet-stream":
        raise Problem(
            415, "type", f'reports are sent as application/octet-stream, got "{kind[:80]}"'
        )
    mark = headers.get(b"discreet-mechanism")
    if mark != collection.mechanism.fingerprint.encode():
        got = "is missing" if mark is None else "names another mechanism"
        detail = (
            f"the header Discreet-Mechanism {got}; fetch /v1/collections/{collection.name} and "
            "send its fingerprint"
        )
        raise Problem(409 if mark else 400, "mechanism", detail)
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > MAX_BODY:
        raise _too_large()


async def _drain(receive: Any) -> None:
    """Read on what a client still sends before we refuse it, within limits: it may not listen
    before it is done.
    """
    size, more = 0, True
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(PATIENCE):
            while more and size < MOST_DRAINED:
                message = await receive()
                size += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)


def frames(mechanism: Mechanism, body: bytes) -> Upload:
    """A body as checked reports; one bad frame refuses the whole, with its index."""
    size = ID_SIZE + mechanism.report_size
    if not body:
        raise Problem(400, "empty", f"the body is empty; it has one or more frames of {size} bytes")
    whole, rest = divmod(len(body), size)
    if rest:
        detail = (
            f"frame {whole} has {rest} of {size} bytes (a {ID_SIZE}-byte id and a report); "
            "nothing was counted"
        )
        raise Problem(400, "frame", detail, index=whole)
    if whole == 1:
        return Upload(mechanism.policy.name, [body[:ID_SIZE]], _alone(mechanism, body))
    rows = np.frombuffer(body, np.uint8).reshape(-1, size)[:, ID_SIZE:]
    bad = [
        (int(which.argmax()), reason)
        for reason, which in mechanism.coder.refusals(rows)[1].items()
        if which.any()
    ]
    if bad:
        index = min(bad)[0]
        _alone(mechanism, body[index * size : (index + 1) * size], index)
    return Upload(
        mechanism.policy.name, [body[k : k + ID_SIZE] for k in range(0, len(body), size)], rows
    )


def _alone(mechanism: Mechanism, frame: bytes, index: int = 0) -> Bytes:
    """The report of one frame, as a row; most people send one."""
    reason = mechanism.coder.check(frame[ID_SIZE:])
    if reason:
        why = REASONS[reason].format(size=mechanism.report_size)
        raise Problem(
            422, reason, f"frame {index} is not a report: {why}; nothing was counted", index=index
        )
    return np.frombuffer(frame, np.uint8, offset=ID_SIZE).reshape(1, -1)


def _too_large() -> Problem:
    return Problem(
        413, "large", f"a body has at most {MAX_BODY:,} bytes; send the reports in several requests"
    )


def _down(error: StoreDown) -> Problem:
    global _said
    if time.monotonic() - _said > 10:  # once is enough
        _said = time.monotonic()
        log.error("store", extra={"facts": {"problem": str(error)}})
    return Problem(
        503,
        "store",
        "the store cannot be reached just now; send the same reports again in some seconds",
        {"Retry-After": "2"},
    )


def _wishes(request: Request) -> tuple[bool, float, str]:
    """shrunk, level and format of an estimate."""
    query = request.query_params
    unknown = set(query) - {"shrunk", "level", "format"}
    if unknown:
        raise Problem(
            400,
            "query",
            f'the parameter "{min(unknown)[:80]}" is not known; there are shrunk, level and format',
        )
    shrunk = query.get("shrunk", "false")
    if shrunk not in ("true", "false"):
        raise Problem(400, "query", "shrunk must be true or false")
    try:
        level = float(query.get("level", "0.95"))
    except ValueError:
        level = math.nan
    if not 0.5 <= level <= 0.9999:
        raise Problem(400, "query", "level must be between 0.5 and 0.9999")
    kind = query.get("format") or (
        "csv" if "text/csv" in request.headers.get("accept", "") else "json"
    )
    if kind not in ("json", "csv"):
        raise Problem(400, "query", "format must be json or csv")
    return shrunk == "true", level, kind


# ---- answers -------------------------------------------------------------------------------------

_ANYONE = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
_PREFLIGHT = {
    **_ANYONE,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type, Discreet-Mechanism",
    "Access-Control-Max-Age": "600",
}
_UPLOAD = re.compile("/v1/collections/([^/]+)/reports")
STRICT = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
]
_UNLESS_SAID = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", pages.POLICY.encode()),
]


_COUNTED = [
    (b"content-type", b"application/json"),
    *((k.lower().encode(), v.encode()) for k, v in _ANYONE.items()),
    *STRICT,
    *_UNLESS_SAID,
]


def _dump(document: Any) -> bytes:
    return orjson.dumps(document)


def _json(
    document: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    kind: str = "application/json",
) -> Response:
    return Response(_dump(document), status, headers, kind)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = {
        404: "there is nothing here; see /openapi.json",
        405: "this method does not apply here; see /openapi.json",
    }
    text = detail.get(error.status_code, str(error.detail))
    return Problem(error.status_code, "http", text, dict(error.headers or {})).response()


async def _unexpected(_: Request, error: Exception) -> Response:
    log.error("unexpected", extra={"facts": {"problem": type(error).__name__}})
    return Problem(
        500, "unexpected", "something went wrong here; nothing was acknowledged, so send it again"
    ).response()


def with_headers(app: Any) -> Any:
    """Strict headers on every answer."""

    async def wrapped(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        async def strict(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *STRICT,
                    *(pair for pair in _UNLESS_SAID if pair[0] not in given),
                ]
            await send(message)

        await app(scope, receive, strict if scope["type"] == "http" else send)

    return wrapped
