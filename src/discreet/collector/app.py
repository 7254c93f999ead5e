"""The HTTP service as an ASGI application. It learns nothing but reports, and keeps no more of them
than it must.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from discreet import wire
from discreet.collector import address, documents, limits, openapi, pages, tokens
from discreet.collector.commit import Committer, answered
from discreet.collector.headers import ANYONE, PREFLIGHT, with_headers
from discreet.collector.metrics import Metrics, State
from discreet.collector.problems import Problem, answer, damaged, down, log, say, unexpected
from discreet.collector.store import (
    Collection,
    Event,
    NoCollection,
    Store,
    StoreDamaged,
    StoreDown,
    Unreadable,
    open_store,
)
from discreet.collector.uploads import Uploads
from discreet.errors import DataError
from discreet.tally import Tally
from discreet.views import VIEWS

_BASE = wire.COLLECTIONS
_REPORTS = re.compile(_BASE + "/([^/]+)/reports")
_PAGE = re.compile(r"/(answer\.html|c/[^/]+(/results)?)?")
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_MOVED = "moved"  # the query of a page that was asked for under another name: once is enough


@dataclass(frozen=True)
class Settings:
    """What a worker needs to know. The token is never here, but in the environment or a file."""

    store: str
    counters: str  # the folder of the workers' counters
    open_results: bool = False
    public_url: str = ""


class Collector:
    """The endpoints, over a store."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        token: str | tokens.Lock,
        open_results: bool = False,
        public_url: str = "",
    ) -> None:
        self.store, self.metrics, self.open_results = store, metrics, open_results
        self.public_url = public_url
        self.committer = Committer(store)
        self.uploads = Uploads(self.find, self.committer, metrics)
        self._lock = token if isinstance(token, tokens.Lock) else tokens.Lock(token)
        self._readers = ThreadPoolExecutor(limits.READERS, "read")
        self._known: dict[str, tuple[Collection, float]] = {}
        self._descriptions: dict[tuple[str, str], tuple[bytes, bytes]] = {}  # as is, and packed
        self._expected: dict[str, documents.Expected] = {}
        self._rendering = asyncio.Lock()
        self._unreadable: set[Unreadable] = set()  # that the log has named
        self._later: dict[int, float] = {}  # when closing a collection is tried again, by key
        # the last few, by what was asked and how many reports there were
        self._estimates: dict[tuple[str, str], bytes] = {}

    # ---- collections -----------------------------------------------------------------------------

    async def find(self, name: str, fresh: bool = False, gone: int | None = None) -> Collection:
        """A collection. Its mechanism never changes; its state is looked up when it must be fresh.
        The one whose key is `gone` was replaced by another of its name.
        """
        known = self._known.get(name)
        if known is not None and known[0].key == gone:
            known = None
        if known is not None and not (fresh and time.monotonic() - known[1] > limits.FRESH):
            return known[0]
        try:
            collection: Collection = await self._read(self.store.collection, name)
        except NoCollection as error:
            self._known.pop(name, None)  # it was deleted
            raise Problem("unknown", f"{error}; see {_BASE} for those there are") from None
        except StoreDamaged as error:
            raise damaged(name, error) from None
        self._known[name] = collection, time.monotonic()
        return collection

    async def _read(self, work: Callable[..., Any], *args: Any) -> Any:
        """Ask the store, aside from the event loop."""
        try:
            return await answered(
                asyncio.get_running_loop().run_in_executor(self._readers, work, *args), self.store
            )
        except StoreDown as error:
            self.metrics.store_failed()
            raise down(error) from None

    async def collections(self, request: Request) -> Response:
        """GET /v1/collections"""
        listed, unreadable = await self._read(self.store.listing)
        document: dict[str, Any] = {"collections": [documents.brief(c) for c in listed]}
        if unreadable:
            document["unreadable"] = [name for name, _ in unreadable]
        return answer(document)

    async def collection(self, request: Request) -> Response:
        """GET /v1/collections/{name}"""
        try:
            collection = await self.find(request.path_params["name"], fresh=True)
        except Problem as problem:
            problem.headers.update(ANYONE)
            raise
        key = collection.mechanism.fingerprint, collection.state
        if key not in self._descriptions:
            self._descriptions[key] = await run_in_threadpool(self._describe, collection)
        plain, packed = self._descriptions[key]
        headers = {**ANYONE, "Vary": "Accept-Encoding"}
        if _packs(request):
            plain, headers["Content-Encoding"] = packed, "gzip"
        return Response(plain, headers=headers, media_type="application/json")

    def _describe(self, collection: Collection) -> tuple[bytes, bytes]:
        plain = orjson.dumps(documents.describe(collection, self.open_results))
        return plain, gzip.compress(plain, mtime=0)

    # ---- results ---------------------------------------------------------------------------------

    def check_token(self, request: Request) -> None:
        """401 unless the organiser's token is in the Authorization header."""
        given = request.headers.get("authorization", "")
        if not self._lock.opens(given):
            if given:
                say("a wrong token was sent")
            detail = "this needs the organiser's token in the header Authorization: Bearer …"
            raise Problem("token", detail, {"WWW-Authenticate": 'Bearer realm="discreet"'})

    async def estimate(self, request: Request) -> Response:
        """GET /v1/collections/{name}/estimate"""
        stranger = self.open_results and "authorization" not in request.headers
        if not stranger:
            self.check_token(request)
        collection = await self.find(request.path_params["name"], fresh=True)
        wish = Wish.of(request)
        look = self.store.published if stranger else self.store.tally
        try:
            tally = await self._read(look, collection.name)
        except StoreDamaged as error:
            raise damaged(collection.name, error) from None
        history = await self._read(self.store.history, collection.name)
        state = f"{collection.state}-{len(history)}"
        mark = f'"{collection.mechanism.fingerprint[:16]}-{state}-{tally.n}-{wish}"'
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers={"ETag": mark})
        async with self._rendering:  # one at a time, and nobody computes what another just has
            body = self._estimates.get((collection.name, mark))
            if body is None:
                body = await run_in_threadpool(self._render, collection, tally, wish, history)
                self._estimates[collection.name, mark] = body
                while len(self._estimates) > limits.ESTIMATES:
                    del self._estimates[next(iter(self._estimates))]
        if wish.kind == "json":
            return Response(body, headers={"ETag": mark}, media_type="application/json")
        name = {"ETag": mark, "Content-Disposition": 'attachment; filename="estimate.csv"'}
        return Response(body, headers=name, media_type="text/csv")

    def _render(
        self, collection: Collection, tally: Tally, wish: Wish, history: list[Event]
    ) -> bytes:
        if wish.kind == "csv":
            return documents.csv(tally, wish.confidence, wish.views)
        mechanism = collection.mechanism
        if mechanism.fingerprint not in self._expected:
            self._expected[mechanism.fingerprint] = documents.Expected(mechanism)
        expected = self._expected[mechanism.fingerprint]
        document = documents.result(
            collection, tally, expected, wish.confidence, wish.views, history
        )
        least = mechanism.policy.about.least if self.open_results else 0
        return orjson.dumps(document | {"least": least})

    # ---- operations and pages --------------------------------------------------------------------

    async def healthz(self, request: Request) -> Response:
        """GET /healthz"""
        await self._read(self.store.ping)
        return answer({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """GET /readyz"""
        await self._read(self.store.can_write)
        return answer({"status": "ok"})

    async def counters(self, request: Request) -> Response:
        """GET /metrics"""
        self.check_token(request)
        try:
            states, ready = await self._read(self._states), True
        except Problem:  # the counters are there all the same, and say so
            states, ready = [], False
        text = self.metrics.text(states, ready)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    def _states(self) -> list[State]:
        """The collections, if the store takes a write, too."""
        self.store.can_write()
        return [State(c.name, c.state == "open", n) for c, n in self.store.sizes(limits.LABELLED)]

    async def openapi(self, request: Request) -> Response:
        """GET /openapi.json"""
        return answer(openapi.DOCUMENT, headers=ANYONE)

    async def index(self, request: Request) -> Response:
        """GET /"""
        listed, unreadable = await self._read(self.store.listing)
        cards = [(c.name, c.mechanism.policy, c.state) for c in listed]
        return pages.html(pages.index(cards, [name for name, _ in unreadable]))

    async def answer_page(self, request: Request) -> Response:
        """GET /c/{name}: the same file for every collection; it asks the service for the rest."""
        headers = {"Content-Security-Policy": pages.answer_policy(), "Vary": "Accept-Encoding"}
        page = pages.answer_file()
        if _packs(request):
            page, headers["Content-Encoding"] = pages.answer_packed(), "gzip"
        return Response(page, media_type="text/html", headers=headers)

    async def results_page(self, request: Request) -> Response:
        """GET /c/{name}/results"""
        collection = await self.find(request.path_params["name"])
        return pages.html(
            pages.results(collection.name, collection.mechanism.policy.question, self.open_results)
        )

    async def static(self, request: Request) -> Response:
        """GET /static/{file}"""
        file = pages.static(request.path_params["file"])
        if file is None:
            raise Problem("unknown", "there is no such file")
        return Response(file[0], media_type=file[1], headers={"Cache-Control": "no-cache"})

    async def preflight(self, request: Request) -> Response:
        """OPTIONS of the two public endpoints: any page may fetch a description and send a report,
        without credentials.
        """
        return Response(status_code=204, headers=PREFLIGHT)

    # ---- the application -------------------------------------------------------------------------

    def application(self) -> Any:
        """The ASGI application."""
        routes = [
            Route(_BASE + "/{name}/reports", self.preflight, methods=["OPTIONS"]),
            Route(_BASE + "/{name}/estimate", self.estimate),
            Route(_BASE + "/{name}", self.collection),
            Route(_BASE + "/{name}", self.preflight, methods=["OPTIONS"]),
            Route(_BASE, self.collections),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
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
            lifespan=self._lifespan,
            exception_handlers={Problem: _problem, HTTPException: _http, Exception: _unexpected},
        )
        app.router.redirect_slashes = False
        strict = with_headers(app)

        async def service(scope: Any, receive: Any, send: Any) -> None:
            posted = scope["type"] == "http" and scope["method"] == "POST"
            if posted and (reports := _REPORTS.fullmatch(scope["path"])):
                await self.uploads(reports[1], scope, receive, send)
            elif scope["type"] == "http" and (there := self._moved(scope)):
                await with_headers(RedirectResponse(there, 308))(scope, receive, send)
            else:
                await strict(scope, receive, send)

        return service

    def _moved(self, scope: Any) -> str:
        """Where a page is that was asked for under another name than the public one."""
        seen = scope["query_string"] == _MOVED.encode()  # a proxy may give us a name of its own
        if not self.public_url or seen or not _PAGE.fullmatch(scope["path"]):
            return ""
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if not address.elsewhere(self.public_url, host):
            return ""
        return f"{self.public_url}{quote(scope['path'])}?{_MOVED}"

    async def _watch(self) -> None:
        """Close what has come to its date, with connections of its own: it may take long."""
        while True:
            await asyncio.sleep(limits.WATCH * (1 + os.getpid() % 7 / 7))  # not all workers at once
            try:
                listed, unreadable = await self._read(self.store.listing)
                for name, problem in set(unreadable) - self._unreadable:
                    say("damaged", collection=name, problem=problem)
                self._unreadable = set(unreadable)
                for found in listed:
                    due = self._later.get(found.key, 0.0) < time.monotonic()
                    if found.open and found.state == "closed" and due:
                        await run_in_threadpool(self._expire, found)
            except Problem:
                continue  # it was said
            except Exception as error:  # the next look may find it mended
                unexpected(error)

    def _expire(self, found: Collection) -> None:
        try:
            with closing(self.store.another()) as store:
                if store.expire_collection(found.name):
                    log.info("closed by its date", extra={"facts": {"collection": found.name}})
        except DataError as error:  # somebody reads the store: it can wait, others cannot
            self._later[found.key] = time.monotonic() + limits.EXPIRE_AGAIN
            say("not closed yet", collection=found.name, problem=str(error))

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[dict[str, Any]]:
        watching = asyncio.create_task(self._watch())
        try:
            yield {"metrics": self.metrics}  # who takes connections counts them there
        finally:
            watching.cancel()
            await self.committer.close()
            self._readers.shutdown()
            self.store.close()
            self.metrics.close()


@dataclass(frozen=True)
class Wish:
    """How an estimate is wanted."""

    confidence: float
    views: tuple[str, ...]
    kind: str  # json or csv

    @classmethod
    def of(cls, request: Request) -> Wish:
        """What the query says, and the Accept header where it does not."""
        query = request.query_params
        unknown = set(query) - {"confidence", "views", "format"}
        if unknown:
            raise Problem(
                "query",
                f'the parameter "{min(unknown)[:80]}" is not known; there are confidence, views '
                "and format",
            )
        views = [name for said in query.getlist("views") for name in said.split(",") if name]
        if not set(views) <= set(VIEWS):
            raise Problem("query", f"views are {', '.join(VIEWS)}, separated by commas")
        try:
            confidence = float(query.get("confidence", "0.95"))
        except ValueError:
            confidence = math.nan
        low, high = limits.CONFIDENCE
        if not low <= confidence <= high:
            raise Problem("query", f"confidence must be between {low} and {high}")
        accepted = "csv" if "text/csv" in request.headers.get("accept", "") else "json"
        kind = query.get("format") or accepted
        if kind not in ("json", "csv"):
            raise Problem("query", "format must be json or csv")
        return cls(confidence, tuple(name for name in VIEWS if name in views), kind)

    def __str__(self) -> str:
        return "-".join((str(self.confidence), *self.views, self.kind))


def _packs(request: Request) -> bool:
    return bool(_GZIP.search(request.headers.get("accept-encoding", "")))


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {
        404: "there is nothing here; see /openapi.json",
        405: "this method does not apply here; see /openapi.json",
    }
    detail = known.get(error.status_code, str(error.detail))
    return Problem("http", detail, dict(error.headers or {}), error.status_code).response()


async def _unexpected(_: Request, error: Exception) -> Response:
    return unexpected(error).response()


# ---- one worker's application, from its environment ----------------------------------------------


def from_environment() -> Any:
    """For uvicorn: the application that `discreet serve` has described in the environment."""
    settings = Settings(**json.loads(os.environ["DISCREET_COLLECTOR"]))
    return build(settings, tokens.Lock.from_environment())


def build(settings: Settings, token: str | tokens.Lock) -> Any:
    """The application of these settings."""
    return Collector(
        open_store(settings.store),
        Metrics(settings.counters),
        token,
        settings.open_results,
        settings.public_url,
    ).application()
