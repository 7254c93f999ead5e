"""Group commit: uploads that wait at the same time share one transaction, and everyone is answered
once it is durable.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from discreet.collector import limits
from discreet.collector.store import Outcome, Store, StoreDown, Upload


class Committer:
    """One writer per process; while it commits, the next uploads gather. What waits is bounded by
    the caller.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "commit")
        self._waiting: list[tuple[Upload, asyncio.Future[Outcome]]] = []
        self._task: asyncio.Task[None] | None = None
        self._enough = asyncio.Event()
        self._crowd, self._took, self._ended = (
            1,
            0.0,
            0.0,
        )  # of the last transaction: who waited then, how long, until when

    async def submit(self, upload: Upload) -> Outcome:
        """Count an upload; returns when it is durable. After StoreDown nobody knows: the same ids
        must be sent again.
        """
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((upload, future))
        if len(self._waiting) >= self._crowd:
            self._enough.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await self._gather()
            group, began = self._take(), loop.time()
            try:
                work = loop.run_in_executor(
                    self._thread, self._store.add, [upload for upload, _ in group]
                )
                outcomes = await answered(
                    work, self._store, sum(len(upload.ids) for upload, _ in group)
                )
            except Exception as error:
                down = (
                    error
                    if isinstance(error, StoreDown)
                    else StoreDown(f"the store cannot be used: {type(error).__name__}")
                )
                for _, future in group:
                    if not future.done():
                        future.set_exception(down)
            else:
                for (_, future), outcome in zip(group, outcomes, strict=True):
                    if not future.done():  # whoever has gone away is counted all the same
                        future.set_result(outcome)
            self._ended = loop.time()
            self._crowd, self._took = len(group) + len(self._waiting), self._ended - began
        self._task = None

    async def _gather(self) -> None:
        """Those who were just answered often come back at once: let them share the next
        transaction, for as long as one takes.
        """
        pause = min(limits.GATHERING, self._ended + self._took - asyncio.get_running_loop().time())
        if len(self._waiting) < self._crowd and pause > 0:
            self._enough.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._enough.wait()

    def _take(self) -> list[tuple[Upload, asyncio.Future[Outcome]]]:
        """Whoever waits longest, then the smallest uploads: who sends much does not make those who
        send one report wait.
        """
        size = [len(upload.ids) for upload, _ in self._waiting]
        order = [0, *sorted(range(1, len(size)), key=size.__getitem__)]
        chosen: set[int] = set()
        total = 0
        for k in order:
            if chosen and total + size[k] > limits.GROUP:
                break
            chosen.add(k)
            total += size[k]
        group = [self._waiting[k] for k in order if k in chosen]
        self._waiting = [x for k, x in enumerate(self._waiting) if k not in chosen]
        return group

    async def close(self) -> None:
        """Finish what waits."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()


async def answered(work: asyncio.Future[Any], store: Store, reports: int = 0) -> Any:
    """What the store answers; if it hangs, its connections are cut, which ends the wait with
    StoreDown.
    """
    done, _ = await asyncio.wait({work}, timeout=limits.STORE_SECONDS + reports / limits.STORE_RATE)
    if not done:
        store.abort()
    return await work
