"""Reading the store without blocking the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from discreet.collector import limits
from discreet.collector.commit import answered
from discreet.collector.metrics import Metrics
from discreet.collector.problems import Problem, damaged, down
from discreet.collector.store import Collection, NoCollection, Store, StoreDamaged, StoreDown
from discreet.device import wire

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Reader:
    """Reads the store in threads of its own, and remembers collections for a moment."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store, self._metrics = store, metrics
        self._threads = ThreadPoolExecutor(limits.READERS, "read")
        self._collections: dict[str, tuple[Collection, float]] = {}  # and when each was read

    async def read(self, work: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
        """Call `work` in a thread; Problem if the store is down."""
        call = asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
        try:
            result: Result = await answered(call, self._store)
        except StoreDown as error:
            self._metrics.store_failed()
            raise down(error) from None
        return result

    async def find(self, name: str, fresh: bool = False, gone: int | None = None) -> Collection:
        """Find a collection; Problem if there is none. With `fresh` its state is at most a second
        old; its survey never changes. The collection whose key is `gone` was deleted: then the
        store is asked for another one of the same name.
        """
        collection, read_at = self._collections.get(name, (None, 0.0))
        is_current = not fresh or time.monotonic() - read_at <= limits.FRESH
        if collection is not None and collection.key != gone and is_current:
            return collection
        try:
            collection = await self.read(self._store.collection, name)
        except NoCollection as error:
            self._collections.pop(name, None)
            raise Problem("unknown", f"{error}; see {wire.COLLECTIONS} for the list") from None
        except StoreDamaged as error:
            raise damaged(name, error) from None
        self._collections[name] = collection, time.monotonic()
        return collection

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()
