"""Closing collections at their date."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import closing

from starlette.concurrency import run_in_threadpool

from discreet.collector import limits
from discreet.collector.logs import log, log_event
from discreet.collector.problems import Problem, unexpected
from discreet.collector.reading import Reader
from discreet.collector.store import Collection, Store, Unreadable
from discreet.errors import DataError


class Expiry:
    """Looks for collections whose date has come and closes them."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store, self._reader = store, reader
        self._unreadable: set[Unreadable] = set()  # already logged
        self._retry_at: dict[int, float] = {}  # of collections that could not be closed, by key

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(limits.WATCH * (1 + os.getpid() % 7 / 7))  # workers take turns
            try:
                await self._look()
            except Problem:
                continue  # already logged
            except Exception as error:  # the next look may succeed
                unexpected(error)

    async def _look(self) -> None:
        collections, unreadable = await self._reader.read(self._store.listing)
        for name, problem in set(unreadable) - self._unreadable:
            log_event("damaged", collection=name, problem=problem)
        self._unreadable = set(unreadable)
        for collection in collections:
            due = self._retry_at.get(collection.key, 0.0) < time.monotonic()
            if not collection.closed_by_organiser and collection.state == "closed" and due:
                await run_in_threadpool(self._close, collection)

    def _close(self, collection: Collection) -> None:
        """Close a collection, with connections of our own: it may take long."""
        try:
            with closing(self._store.another()) as store:
                if store.expire_collection(collection.name):
                    log.info("closed by its date", extra={"facts": {"collection": collection.name}})
        except DataError as error:  # another process reads the store; uploads must not wait for it
            self._retry_at[collection.key] = time.monotonic() + limits.EXPIRE_AGAIN
            log_event("not closed yet", collection=collection.name, problem=str(error))
