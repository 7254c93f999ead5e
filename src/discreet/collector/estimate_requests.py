"""GET /v1/collections/{name}/estimate: the query, the computation, and a cache of answers."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import math
from dataclasses import dataclass

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from discreet.arrays.survey_tally import SurveyTally
from discreet.collector import documents, limits, preview
from discreet.collector.headers import accepts_gzip
from discreet.collector.problems import Problem, damaged
from discreet.collector.reading import Reader
from discreet.collector.store import Collection, Event, NoCollection, Store, StoreDamaged
from discreet.estimates.views import VIEWS
from discreet.mechanism import Mechanism
from discreet.survey import Survey


@dataclass(frozen=True)
class EstimateQuery:
    """The parameters of an estimate request."""

    confidence: float
    views: tuple[str, ...]
    kind: str  # json or csv
    question: str | None = None
    by: tuple[str, ...] = ()  # names of public questions
    explained: bool = False  # whether lines of explanation stand in front of the CSV

    @classmethod
    def from_request(cls, request: Request) -> EstimateQuery:
        """Read the query string; the Accept header decides if there is no `format`."""
        query = request.query_params
        unknown = set(query) - {"confidence", "views", "format", "question", "by", "explained"}
        if unknown:
            raise Problem(
                "query",
                f'the parameter "{min(unknown)[:80]}" is unknown; the parameters are confidence, '
                "views, format, explained, question and by",
            )
        for name in set(query) - {"by"}:
            if len(query.getlist(name)) > 1:
                raise Problem("query", f"{name} is given more than once; give it once")
        views = [name for name in query.get("views", "").split(",") if name]
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
        explained = query.get("explained", "false")
        if explained not in ("true", "false"):  # JSON holds the explanation in any case
            raise Problem("query", "explained must be true or false")
        chosen = tuple(name for name in VIEWS if name in views)
        by = tuple(query.getlist("by"))
        if len(set(by)) < len(by):
            raise Problem("query", "by names a public question more than once; name each once")
        return cls(confidence, chosen, kind, query.get("question"), by, explained == "true")

    def wanted(self, survey: Survey) -> documents.ResultTable:
        """The table that is asked for; of a survey, the first question if none is named."""
        names = [question.name for question in survey.listed]
        if self.question is not None and self.question not in names:
            raise Problem("query", f"question must be one of {', '.join(names)}")
        place = names.index(self.question) if self.question is not None else 0
        public = [public.name for public in survey.public]
        if not set(self.by) <= set(public):
            listed = ", ".join(public) or "none: this survey asks nothing openly"
            raise Problem("query", f"by names public questions, which are {listed}")
        by = tuple(public.index(name) for name in self.by)
        return documents.ResultTable(survey.listed[place], place, by)

    def __str__(self) -> str:
        form = f"{self.kind}-explained" if self.explained else self.kind
        text = "-".join((str(self.confidence), *self.views, form))
        if self.question is None and not self.by:
            return text
        more = "\0".join((self.question or "", *self.by))
        return f"{text}-{hashlib.sha256(more.encode()).hexdigest()[:16]}"


class EstimateRequests:
    """Computes every estimate once: per tally, and what depends on the mechanism alone, once per
    mechanism.
    """

    def __init__(self, store: Store, reader: Reader, open_results: bool) -> None:
        self._store, self._reader, self._open_results = store, reader, open_results
        self._expected: dict[str, documents.Expected] = {}  # by fingerprint
        self._rendered: dict[tuple[str, str], bytes] = {}  # the last few, by name and ETag
        self._rendering = asyncio.Lock()

    async def respond(self, request: Request, published: bool) -> Response:
        """Answer with the estimate of all reports, or of those that are `published` to anyone."""
        collection = await self._reader.find(request.path_params["name"], fresh=True)
        query = EstimateQuery.from_request(request)
        wanted = query.wanted(collection.survey)
        try:
            tally, history = await self._reader.read(self._read, collection.name, published)
        except StoreDamaged as error:
            raise damaged(collection.name, error) from None
        except NoCollection as error:  # it was deleted meanwhile
            raise Problem("unknown", str(error)) from None
        # the key: a survey that was deleted and published again starts anew
        state = f"{collection.key}-{collection.state}-{len(history)}"
        whom = "anyone" if published else "organiser"  # who sees small groups, too
        etag = f'"{collection.survey.fingerprint[:16]}-{state}-{tally.n}-{whom}-{query}"'
        headers = {"ETag": etag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        async with self._rendering:  # one at a time: the next request may want the same
            body = self._rendered.get((collection.name, etag))
            if body is None:
                body = await run_in_threadpool(
                    self._render, collection, tally, query, wanted, history, published
                )
                self._keep((collection.name, etag), body)
            if len(body) > limits.COMPRESSED and accepts_gzip(request):
                body = await self._compressed((collection.name, etag), body)
                headers["Content-Encoding"] = "gzip"
        if query.kind == "json":
            return Response(body, headers=headers, media_type="application/json")
        headers["Content-Disposition"] = 'attachment; filename="estimate.csv"'
        return Response(body, headers=headers, media_type="text/csv")

    async def headline(self, collection: Collection) -> str:
        """The most frequent answer of what is published, in a sentence; empty without one."""
        try:
            tally, _ = await self._reader.read(self._read, collection.name, True)
        except (StoreDamaged, NoCollection):
            return ""
        mark = f"{collection.survey.fingerprint[:16]}-{collection.key}-{tally.n}-headline"
        async with self._rendering:
            body = self._rendered.get((collection.name, mark))
            if body is None:
                found = await run_in_threadpool(preview.headline, collection.survey, tally)
                body = found.encode()
                self._keep((collection.name, mark), body)
        return body.decode()

    async def _compressed(self, key: tuple[str, str], body: bytes) -> bytes:
        """The same answer with gzip: a large one is a fifth of its size, for slow connections."""
        small = key[0], f"{key[1]}-gzip"
        if small not in self._rendered:
            self._keep(small, await run_in_threadpool(gzip.compress, body, 4, mtime=0))
        return self._rendered[small]

    def _keep(self, key: tuple[str, str], body: bytes) -> None:
        """Keep an answer, and forget the oldest."""
        self._rendered[key] = body
        while len(self._rendered) > limits.ESTIMATES:
            del self._rendered[next(iter(self._rendered))]

    def _read(self, name: str, published: bool) -> tuple[SurveyTally, list[Event]]:
        tally = self._store.published(name) if published else self._store.tally(name)
        return tally, self._store.history(name)

    def _render(
        self,
        collection: Collection,
        tally: SurveyTally,
        query: EstimateQuery,
        wanted: documents.ResultTable,
        history: list[Event],
        published: bool,
    ) -> bytes:
        about = collection.survey.about
        if query.kind == "csv":
            return documents.csv(
                collection.survey,
                tally,
                wanted,
                query.confidence,
                query.views,
                query.explained,
            )
        mechanism = wanted.question.mechanism
        expected = self._expected_errors(mechanism)
        document = documents.result(
            collection,
            tally,
            expected,
            wanted,
            query.confidence,
            query.views,
            history,
            published,
        )
        least = about.least if self._open_results else 0
        # what was shown again and again, in steps, tells more than the last of it
        once = collection.state == "closed" and not self._open_results
        sentence = documents.published(collection.survey, tally, wanted.by) if once else ""
        return orjson.dumps(document | {"least": least, "published": sentence})

    def _expected_errors(self, mechanism: Mechanism) -> documents.Expected:
        """Designs the plain-LDP mechanisms of the comparison, so once per mechanism."""
        if mechanism.fingerprint not in self._expected:
            self._expected[mechanism.fingerprint] = documents.Expected(mechanism)
        return self._expected[mechanism.fingerprint]
