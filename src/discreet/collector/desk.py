"""The organiser's desk at /desk: surveys are written, tried, published, watched, closed and deleted
without a terminal. Drafts live in the browser; the store learns of a survey when it is published.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.collector import desk_pages, desk_rehearsals, limits
from discreet.collector.commit import Committer
from discreet.collector.desk_designer import Designer
from discreet.collector.desk_drafts import Designed, Misplaced, describe, plain, read, read_table
from discreet.collector.desk_requests import read_content, read_keep, read_number
from discreet.collector.desk_session import (
    PATH,
    Session,
    Sessions,
    WrongTokens,
    check_origin,
    check_reader,
    set_cookie,
)
from discreet.collector.desk_surveys import DeskSurveys
from discreet.collector.estimate_requests import EstimateRequests
from discreet.collector.logs import Recent, log, log_event
from discreet.collector.problems import Problem, answer
from discreet.collector.reading import Reader
from discreet.collector.store import NoCollection, Store, StoreDamaged
from discreet.collector.tokens import TokenCheck
from discreet.data.templates import TEMPLATES, summary, template
from discreet.errors import DiscreetError
from discreet.policy.sensitivity import SENSITIVITIES, STEPS
from discreet.survey import Survey

Answer = Callable[[Request, Session], Awaitable[Response]]
_PEOPLE = 10**9


class Desk:
    """The endpoints under /desk. Everything but the empty pages needs a session."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        committer: Committer,
        results: EstimateRequests,
        lock: TokenCheck,
        open_results: bool = False,
        public_url: str = "",
        temporary: bool = False,
    ) -> None:
        self._store, self._reader = store, reader
        self._surveys = DeskSurveys(store, reader, results, open_results, public_url)
        self._sessions, self._wrong = Sessions(lock), WrongTokens()
        self._open_results, self._public_url = open_results, public_url
        self._temporary = temporary
        self._rehearsals = desk_rehearsals.Rehearsals(store, committer)
        self._designer = Designer()
        self._designing = asyncio.Lock()  # one at a time: the next one is mostly the same

    def routes(self) -> list[Route]:
        """Where everything is."""
        of = self._surveys
        reading = {
            "/start": self._start,
            "/surveys": of.listing,
            "/log": self._log,
            "/surveys/{name}": of.show,
            "/surveys/{name}/estimate": of.estimate,
            "/surveys/{name}/results": of.results_page,
            "/surveys/{name}/poster": of.poster,
            "/surveys/{name}/code.{kind}": of.code,
            "/surveys/{name}/export": of.export,
            "/surveys/{name}/backup": of.backup,
        }
        changing = {
            "/open": self._open,
            "/draft": self._draft,
            "/surveys": self._publish,
            "/rehearsals": self._rehearse,
            "/surveys/{name}/close": of.close,
            "/surveys/{name}/reopen": of.reopen,
            "/surveys/{name}/delete": of.delete,
        }
        return [
            Route(PATH, desk_pages.desk),
            Route(PATH + "/preview/c/{name}", desk_pages.preview),
            Route(PATH + "/login", self._log_in, methods=["POST"]),
            Route(PATH + "/logout", self._log_out, methods=["POST"]),
            *(Route(PATH + path, self._for_reading(work)) for path, work in reading.items()),
            *(
                Route(PATH + path, self._for_changing(work), methods=["POST"])
                for path, work in changing.items()
            ),
        ]

    def _for_reading(self, work: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            check_reader(request)
            return await work(request, self._sessions.find(request))

        return respond

    def _for_changing(self, work: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            check_origin(request, self._public_url)
            return await work(request, self._sessions.find(request))

        return respond

    def close(self) -> None:
        """End the process that designs."""
        self._designer.close()

    # ---- logging in ------------------------------------------------------------------------------

    async def _log_in(self, request: Request) -> Response:
        secure = check_origin(request, self._public_url)
        address = request.client.host if request.client else ""
        token = (await read_content(request, limits.LOGIN_SIZE)).get("token")
        cookie = self._sessions.begin(token, secure) if isinstance(token, str) else None
        if cookie is None:  # the right token always opens: nobody can lock the organiser out
            self._wrong.check(address)
            self._wrong.add(address)
            log_event("a wrong token was sent")
            raise Problem("session", "this is not the organiser's token")
        log.info("logged in at the desk")
        return Response(status_code=204, headers={"Set-Cookie": set_cookie(cookie, secure)})

    async def _log_out(self, request: Request) -> Response:
        secure = check_origin(request, self._public_url)
        return Response(status_code=204, headers={"Set-Cookie": set_cookie("", secure)})

    # ---- drafts ----------------------------------------------------------------------------------

    async def _start(self, request: Request, session: Session) -> Response:
        """What the page needs to begin: words for sensitivities, and templates."""
        return answer(
            {
                "sensitivities": [word._asdict() for word in SENSITIVITIES],
                "steps": [word._asdict() for word in STEPS],
                "templates": [
                    {"name": name, "about": summary(name), "toml": template(name)}
                    for name in TEMPLATES
                ],
                "open_results": self._open_results,
                "public_url": self._public_url,
                "rehearsed": limits.REHEARSED,
            }
        )

    async def _open(self, request: Request, session: Session) -> Response:
        """The content of a survey file that is given as TOML."""
        try:
            content = await read_content(request)
            return answer({"document": await run_in_threadpool(lambda: plain(read_table(content)))})
        except Misplaced as error:
            raise Problem("draft", str(error)) from None

    async def _draft(self, request: Request, session: Session) -> Response:
        """The forecast of a draft, or what is wrong with it and where."""
        content = await read_content(request)
        people = read_number(content, "people", 1_000, _PEOPLE)
        try:
            draft = await self._read(request, content)
        except Misplaced as error:
            return answer({"problem": {"where": error.where, "detail": str(error)}})
        keep = read_keep(content)
        said = await run_in_threadpool(describe, draft, people, keep, self._open_results)
        return answer({**said, "taken": await self._is_taken(draft.survey)})

    async def _read(self, request: Request, content: dict[str, object]) -> Designed:
        async with self._designing:
            if await request.is_disconnected():  # a newer draft is on its way
                raise Problem("slow", "nobody waits for this any more")
            return await run_in_threadpool(lambda: read(read_table(content), self._designer.design))

    async def _is_taken(self, survey: Survey) -> bool:
        """Whether another survey has its name."""
        try:
            there = await self._reader.read(self._store.collection, survey.name)
        except (NoCollection, StoreDamaged):
            return False
        return bool(there.survey.fingerprint != survey.fingerprint)

    async def _designed(self, request: Request, content: dict[str, object]) -> Survey:
        """The survey of a request; Problem if it is not the one that was shown."""
        try:
            survey = (await self._read(request, content)).survey
        except Misplaced as error:
            raise Problem("draft", str(error)) from None
        if content.get("fingerprint", survey.fingerprint) != survey.fingerprint:
            detail = "the survey has changed since it was shown; look at it again"
            raise Problem("refused", detail)
        return survey

    async def _publish(self, request: Request, session: Session) -> Response:
        if self._temporary:
            detail = (
                "this collector only rehearses, and its store is deleted when it stops; to "
                "publish, start discreet serve without --rehearse"
            )
            raise Problem("refused", detail)
        content = await read_content(request)
        survey, keep = await self._designed(request, content), read_keep(content)
        made = await self._surveys.change(survey.name, lambda store: store.create(survey, keep))
        log.info("published", extra={"facts": {"collection": survey.name}})
        return answer(self._surveys.facts(made, 0, session, request), 201)

    async def _rehearse(self, request: Request, session: Session) -> Response:
        content = await read_content(request)
        people = read_number(content, "people", 500, limits.REHEARSED)
        designed = await self._designed(request, content)
        try:
            survey = desk_rehearsals.rehearse(designed)
        except DiscreetError as error:  # the longer name
            raise Problem("draft", str(error)) from None
        made = await self._surveys.change(
            survey.name, lambda store: desk_rehearsals.begin(store, survey)
        )
        await self._rehearsals.send(survey, people)
        return answer(self._surveys.facts(made, 0, session, request), 201)

    # ---- the log ---------------------------------------------------------------------------------

    async def _log(self, request: Request, session: Session) -> Response:
        """The last lines of this worker's log."""
        return answer({"lines": [json.loads(line) for line in Recent.lines]})
