"""Rehearsals from the desk: simulated people answer a copy of a survey, which has another name and
fingerprint and other mechanisms, so that nothing of it can be counted with real reports.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from discreet.collector import limits, uploads
from discreet.collector.commit import Committer
from discreet.collector.logs import log_event
from discreet.collector.problems import Problem
from discreet.collector.rehearsal import made_up_contents, rehearse
from discreet.collector.store import Collection, NoCollection, Store
from discreet.device.wire import ID_SIZE
from discreet.errors import DataError
from discreet.survey import Survey

__all__ = ["Rehearsals", "begin", "rehearse", "remove"]

_STEPS, _PAUSE = 25, 0.1  # people come little by little, so that one sees the counts grow


def begin(store: Store, survey: Survey) -> Collection:
    """A new collection of a rehearsal, in the place of an earlier one."""
    with suppress(NoCollection):
        remove(store, survey.name)
    return store.create(survey)


def remove(store: Store, name: str) -> None:
    """Delete a rehearsal; DataError if it is a real survey."""
    if not store.collection(name).survey.about.rehearsal:
        raise DataError(f'"{name}" is a real survey, not a rehearsal; give yours another name')
    store.stop_collection(name)
    store.delete_collection(name)


class Rehearsals:
    """Sends the reports of simulated people, as uploads of their own, while the service runs."""

    def __init__(self, store: Store, committer: Committer) -> None:
        self._store, self._committer = store, committer
        self._running: set[asyncio.Task[None]] = set()

    async def send(self, survey: Survey, people: int) -> None:
        """Begin to send the reports of so many people."""
        contents = await run_in_threadpool(made_up_contents, survey, people)
        key = (await run_in_threadpool(self._store.collection, survey.name)).key
        task = asyncio.create_task(self._send(survey, contents, key))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _send(self, survey: Survey, contents: list[bytes], key: int) -> None:
        step = min(limits.FRAMES, max(20, -(-len(contents) // _STEPS)))
        try:
            for start in range(0, len(contents), step):
                some = contents[start : start + step]
                body = b"".join(secrets.token_bytes(ID_SIZE) + content for content in some)
                upload = uploads.frames(survey, body)._replace(key=key)
                if (await self._committer.submit(upload)).state != "open":
                    return  # it was removed meanwhile
                await asyncio.sleep(_PAUSE)
        except (DataError, Problem) as error:
            log_event("a rehearsal stopped", collection=survey.name, problem=str(error))
