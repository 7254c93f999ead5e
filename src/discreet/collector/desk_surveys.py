"""The desk's endpoints of surveys that are published: watched, closed, reopened, deleted, and given
away as files.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from discreet.collector import desk_files, desk_pages, desk_rehearsals, documents, limits
from discreet.collector.desk_requests import guarded, read_content
from discreet.collector.desk_session import PATH, Session
from discreet.collector.estimate_requests import EstimateRequests
from discreet.collector.logs import log
from discreet.collector.problems import Json, Problem, answer
from discreet.collector.reading import Reader
from discreet.collector.store import Collection, Event, Store
from discreet.device.wire import page_path
from discreet.show import invitations
from discreet.survey import Survey

T = TypeVar("T")


class DeskSurveys:
    """What the desk does with surveys in the store."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        results: EstimateRequests,
        open_results: bool,
        public_url: str,
    ) -> None:
        self._store, self._reader, self._results = store, reader, results
        self._open_results, self._public_url = open_results, public_url

    async def listing(self, request: Request, session: Session) -> Response:
        """All surveys, with how many reports each has."""
        counted = await self._reader.read(self._store.report_counts, limits.LISTED)
        _, unreadable = await self._reader.read(self._store.listing)
        listed: list[Json] = [self.facts(c, n, session, request) for c, n in counted]
        return answer({"surveys": listed, "unreadable": [name for name, _ in unreadable]})

    async def show(self, request: Request, session: Session) -> Response:
        """Everything about one survey."""
        collection, n, history = await self._find(request)
        survey, promise = collection.survey, collection.survey.promise()
        facts = self.facts(collection, n, session, request)
        link = str(facts["invitation"])
        return answer(
            {
                **facts,
                "promise": promise.sentences()[:12],
                "caution": promise.caution,
                "about": survey.about.to_canonical(),
                "history": [event._asdict() for event in history],
                "button": invitations.link_button(link, desk_files.title(survey)),
                "moved": bool(collection.move.step),
            }
        )

    async def _find(self, request: Request) -> tuple[Collection, int | None, list[Event]]:
        name = request.path_params["name"]

        def look(store: Store) -> tuple[Collection, int | None, list[Event]]:
            return store.collection(name), store.report_count(name), store.history(name)

        return await guarded(name, self._reader.read(look, self._store))

    def facts(
        self, collection: Collection, n: int | None, session: Session, request: Request
    ) -> dict[str, Json]:
        """A line of the list. Fewer reports than the survey's minimum are not counted here, so that
        a glance over a shoulder tells nothing.
        """
        about = collection.survey.about
        name = quote(collection.name, safe="")
        return {
            **documents.brief(collection),
            "n": n if n is not None and n >= about.least else None,
            "least": about.least,
            "damaged": n is None,
            "keeps": collection.keep,
            "opens": about.opens,
            "closes": about.closes,
            "invitation": self._link(collection.survey, session, request),
            "results": f"{PATH}/surveys/{name}/results",
            "open_results": self._open_results,
        }

    def _link(self, survey: Survey, session: Session, request: Request) -> str:
        here = f"{'https' if session.secure else request.url.scheme}://{request.url.netloc}"
        return f"{self._public_url or here}{page_path(survey.name)}#{survey.fingerprint}"

    async def close(self, request: Request, session: Session) -> Response:
        """Take no more reports."""
        name = request.path_params["name"]
        await self.change(name, lambda store: store.close_collection(name))
        return await self.show(request, session)

    async def reopen(self, request: Request, session: Session) -> Response:
        """Take reports again."""
        name = request.path_params["name"]
        await self.change(name, lambda store: store.reopen_collection(name))
        return await self.show(request, session)

    async def delete(self, request: Request, session: Session) -> Response:
        """Delete a closed survey whose name was typed, or a rehearsal."""
        name = request.path_params["name"]
        content = await read_content(request)
        collection, _, _ = await self._find(request)
        if collection.survey.about.rehearsal:
            await self.change(name, lambda store: desk_rehearsals.remove(store, name))
        elif content.get("name") != name:
            raise Problem("refused", "type the survey's name to delete it")
        else:
            await self.change(name, lambda store: store.delete_collection(name))
        log.info("deleted", extra={"facts": {"collection": name}})
        return Response(status_code=204)

    # ---- results, files, the log -----------------------------------------------------------------

    async def estimate(self, request: Request, session: Session) -> Response:
        """The estimate, as the organiser sees it."""
        return await self._results.respond(request, False)

    async def results_page(self, request: Request, session: Session) -> Response:
        """The results page, which needs no token here."""
        collection, _, _ = await self._find(request)
        return desk_pages.results(collection)

    async def poster(self, request: Request, session: Session) -> Response:
        """A page to print."""
        survey = (await self._find(request))[0].survey
        return desk_files.poster(survey, self._link(survey, session, request))

    async def code(self, request: Request, session: Session) -> Response:
        """The link as a QR code."""
        kind = request.path_params["kind"]
        if kind not in ("png", "svg"):
            raise Problem("unknown", "a code is code.png or code.svg")
        survey = (await self._find(request))[0].survey
        return desk_files.code(self._link(survey, session, request), kind)

    async def export(self, request: Request, session: Session) -> Response:
        """The counts as a ZIP file."""
        collection, _, _ = await self._find(request)
        return await guarded(collection.name, desk_files.export(self._store, collection))

    async def backup(self, request: Request, session: Session) -> Response:
        """A copy of the survey in a store of its own."""
        name = (await self._find(request))[0].name
        return await guarded(name, desk_files.backup(self._store, name))

    # ---- the store -------------------------------------------------------------------------------

    async def change(self, name: str, work: Callable[[Store], T]) -> T:
        """Do something in the store, with connections of our own: it may take long."""

        def do() -> T:
            with closing(self._store.another()) as store:
                return work(store)

        return await guarded(name, run_in_threadpool(do))
