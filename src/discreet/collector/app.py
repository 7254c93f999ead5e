"""The HTTP service as an ASGI application. It receives reports only, and stores no more of them
than it must.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.collector import documents, limits, openapi, pages, preview, tokens
from discreet.collector.commit import Committer
from discreet.collector.desk import Desk
from discreet.collector.estimate_requests import EstimateRequests
from discreet.collector.expiry import Expiry
from discreet.collector.headers import ANYONE, PREFLIGHT, accepts_gzip, with_headers
from discreet.collector.logs import log_event
from discreet.collector.metrics import Metrics, State
from discreet.collector.problems import Json, Problem, answer, unexpected
from discreet.collector.reading import Reader
from discreet.collector.store import Collection, Store, open_store
from discreet.collector.uploads import Uploads
from discreet.device import wire
from discreet.show import address

_BASE = wire.COLLECTIONS
_REPORTS = re.compile(_BASE + "/([^/]+)/reports")
_PAGE = re.compile(r"/(answer\.html|desk|c/[^/]+(/results)?)?")
_MOVED = "moved"  # the query of a redirected page, so that it is redirected only once


@dataclass(frozen=True)
class Settings:
    """What a worker needs to start. The token is never here: it is in the environment or a file."""

    store: str
    counters: str  # the folder of the workers' counters
    open_results: bool = False
    public_url: str = ""
    frame_ancestors: tuple[str, ...] = ()
    temporary: bool = False  # the store is deleted at the end


class Collector:
    """The endpoints, over a store."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        token: str | tokens.TokenCheck,
        open_results: bool = False,
        public_url: str = "",
        frame_ancestors: tuple[str, ...] = (),
        temporary: bool = False,
    ) -> None:
        self.store, self.metrics, self.open_results = store, metrics, open_results
        self.public_url = public_url
        self._answer_policy = pages.answer_policy(frame_ancestors)
        self.reader = Reader(store, metrics)
        self.results = EstimateRequests(store, self.reader, open_results)
        self.committer = Committer(store)
        self.uploads = Uploads(self.reader.find, self.committer, metrics)
        self._lock = token if isinstance(token, tokens.TokenCheck) else tokens.TokenCheck(token)
        parts = store, self.reader, self.committer, self.results, self._lock
        self.desk = Desk(*parts, open_results, public_url, temporary)
        # plain and compressed, by fingerprint and state
        self._descriptions: dict[tuple[str, str], tuple[bytes, bytes]] = {}

    # ---- collections -----------------------------------------------------------------------------

    async def collections(self, request: Request) -> Response:
        """GET /v1/collections"""
        listed, unreadable = await self.reader.read(self.store.listing)
        document: dict[str, Json] = {"collections": [documents.brief(c) for c in listed]}
        if unreadable:
            document["unreadable"] = [name for name, _ in unreadable]
        return answer(document)

    async def collection(self, request: Request) -> Response:
        """GET /v1/collections/{name}"""
        try:
            collection = await self.reader.find(request.path_params["name"], fresh=True)
        except Problem as problem:
            problem.headers.update(ANYONE)
            raise
        key = collection.survey.fingerprint, collection.state
        if key not in self._descriptions:
            self._descriptions[key] = await run_in_threadpool(self._describe, collection)
        body, compressed = self._descriptions[key]
        headers = {**ANYONE, "Vary": "Accept-Encoding"}
        if accepts_gzip(request):
            body, headers["Content-Encoding"] = compressed, "gzip"
        return Response(body, headers=headers, media_type="application/json")

    def _describe(self, collection: Collection) -> tuple[bytes, bytes]:
        body = orjson.dumps(documents.describe(collection, self.open_results))
        return body, gzip.compress(body, mtime=0)

    # ---- for the organiser -----------------------------------------------------------------------

    def _check_token(self, request: Request) -> None:
        """Problem (401) unless the organiser's token is in the Authorization header."""
        header = request.headers.get("authorization", "")
        if not self._lock.opens(header):
            if header:
                log_event("a wrong token was sent")
            detail = "this needs the organiser's token in the header Authorization: Bearer …"
            raise Problem("token", detail, {"WWW-Authenticate": 'Bearer realm="discreet"'})

    async def estimate(self, request: Request) -> Response:
        """GET /v1/collections/{name}/estimate"""
        published = self.open_results and "authorization" not in request.headers
        if not published:
            self._check_token(request)
        return await self.results.respond(request, published)

    async def counters(self, request: Request) -> Response:
        """GET /metrics"""
        self._check_token(request)
        try:
            states, ready = await self.reader.read(self._states), True
        except Problem:  # the workers' counters can still be read
            states, ready = [], False
        text = self.metrics.text(states, ready)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    def _states(self) -> list[State]:
        """The state of every collection; StoreDown unless the store takes a write."""
        self.store.can_write()
        counts = self.store.report_counts(limits.LABELLED)
        return [State(c.name, c.state == "open", n) for c, n in counts]

    # ---- for programs ----------------------------------------------------------------------------

    async def healthz(self, request: Request) -> Response:
        """GET /healthz"""
        await self.reader.read(self.store.ping)
        return answer({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """GET /readyz"""
        await self.reader.read(self.store.can_write)
        return answer({"status": "ok"})

    async def openapi(self, request: Request) -> Response:
        """GET /openapi.json"""
        return answer(openapi.DOCUMENT, headers=ANYONE)

    async def preflight(self, request: Request) -> Response:
        """OPTIONS of the two public endpoints: any page may fetch a description and send a report,
        without credentials.
        """
        return Response(status_code=204, headers=PREFLIGHT)

    # ---- pages -----------------------------------------------------------------------------------

    async def index(self, request: Request) -> Response:
        """GET /"""
        listed, unreadable = await self.reader.read(self.store.listing)
        cards = [(c.name, documents.title(c), c.survey.about.rehearsal, c.state) for c in listed]
        return pages.html(pages.index(cards, [name for name, _ in unreadable]))

    async def answer_page(self, request: Request) -> Response:
        """GET /c/{name}: the same file for every collection; its script fetches the rest."""
        headers = {"Content-Security-Policy": self._answer_policy, "Vary": "Accept-Encoding"}
        page = pages.answer_file()
        if accepts_gzip(request):
            page, headers["Content-Encoding"] = pages.answer_compressed(), "gzip"
        return Response(page, media_type="text/html", headers=headers)

    async def results_page(self, request: Request) -> Response:
        """GET /c/{name}/results"""
        collection = await self.reader.find(request.path_params["name"], fresh=True)
        title, tags = documents.title(collection), ""
        if self.open_results:
            address = f"{self.public_url}{wire.page_path(collection.name)}/results"
            sentence = await self.results.headline(collection)
            tags = preview.tags(title, sentence, address if self.public_url else "")
        page = pages.results(collection.name, title, self.open_results, tags)
        headers = {"Content-Security-Policy": pages.RESULTS_POLICY}
        return Response(page, headers=headers, media_type="text/html")

    async def static(self, request: Request) -> Response:
        """GET /static/{file}"""
        file = pages.static(request.path_params["file"])
        if file is None:
            raise Problem("unknown", "there is no such file")
        return Response(file[0], media_type=file[1], headers={"Cache-Control": "no-cache"})

    # ---- the application -------------------------------------------------------------------------

    def application(self) -> ASGIApp:
        """Make the ASGI application."""
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
            *self.desk.routes(),
        ]
        app = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={Problem: _problem, HTTPException: _http, Exception: _unexpected},
        )
        app.router.redirect_slashes = False
        others = with_headers(app)

        async def service(scope: Scope, receive: Receive, send: Send) -> None:
            is_post = scope["type"] == "http" and scope["method"] == "POST"
            if is_post and (reports := _REPORTS.fullmatch(scope["path"])):
                await self.uploads(reports[1], scope, receive, send)
            elif scope["type"] == "http" and (url := self._redirect(scope)):
                await with_headers(RedirectResponse(url, 308))(scope, receive, send)
            else:
                await others(scope, receive, send)

        return service

    def _redirect(self, scope: Scope) -> str:
        """The public URL of a page that was requested under another host name, or nothing."""
        again = scope["query_string"] == _MOVED.encode()  # a proxy may send its own host name
        if not self.public_url or again or not _PAGE.fullmatch(scope["path"]):
            return ""
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if not address.elsewhere(self.public_url, host):
            return ""
        return f"{self.public_url}{quote(scope['path'])}?{_MOVED}"

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[dict[str, Metrics]]:
        watching = asyncio.create_task(Expiry(self.store, self.reader).run())
        try:
            yield {"metrics": self.metrics}  # for the protocol, which counts connections
        finally:
            watching.cancel()
            self.desk.close()
            await self.committer.close()
            self.reader.close()
            self.store.close()
            self.metrics.close()


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    details = {
        404: "there is nothing here; see /openapi.json",
        405: "this method does not apply here; see /openapi.json",
    }
    detail = details.get(error.status_code, str(error.detail))
    return Problem("http", detail, dict(error.headers or {}), error.status_code).response()


async def _unexpected(_: Request, error: Exception) -> Response:
    return unexpected(error).response()


# ---- one worker's application, from its environment ----------------------------------------------


def from_environment() -> ASGIApp:
    """Make the application that `discreet serve` has described in the environment, for uvicorn."""
    settings = Settings(**json.loads(os.environ["DISCREET_COLLECTOR"]))
    return Collector(
        open_store(settings.store),
        Metrics(settings.counters),
        tokens.TokenCheck.from_environment(),
        settings.open_results,
        settings.public_url,
        tuple(settings.frame_ancestors),
        settings.temporary,
    ).application()
