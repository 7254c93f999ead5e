"""Group commit: uploads that wait at the same time share one transaction, and everyone is answered
once it is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from discreet.collector import limits
from discreet.collector.store import Outcome, Store, StoreDamaged, StoreDown, Upload
from discreet.errors import DataError


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
            outcomes = await self._outcomes([upload for upload, _ in group])
            for (_, future), outcome in zip(group, outcomes, strict=True):
                if future.done():  # whoever has gone away is counted all the same
                    continue
                if isinstance(outcome, Outcome):
                    future.set_result(outcome)
                else:
                    future.set_exception(outcome)
            self._ended = loop.time()
            self._crowd, self._took = len(group) + len(self._waiting), self._ended - began
        self._task = None

    async def _outcomes(self, uploads: list[Upload]) -> Sequence[Outcome | DataError]:
        """What became of uploads that share a transaction. If it fails, each collection is tried
        alone: one that is damaged does not harm the others.
        """
        loop = asyncio.get_running_loop()
        began, names = loop.time(), sorted({upload.collection for upload in uploads})
        try:
            work = loop.run_in_executor(self._thread, self._store.add, uploads)
            reports = sum(len(upload.ids) for upload in uploads)
            return list(await answered(work, self._store, reports))
        except Exception as error:
            failure = _failure(error, names)
        if len(names) == 1 or loop.time() - began >= limits.STORE_SECONDS:  # or it hangs for all
            return [failure] * len(uploads)
        found: dict[int, Outcome | DataError] = {}
        for name in names:
            places = [k for k, upload in enumerate(uploads) if upload.collection == name]
            alone = await self._outcomes([uploads[k] for k in places])
            found.update(zip(places, alone, strict=True))
        return [found[k] for k in range(len(uploads))]

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


def _failure(error: Exception, names: list[str]) -> DataError:
    """What the people who sent these uploads are told, and the log."""
    if isinstance(error, StoreDamaged):
        return error
    why = str(error) if isinstance(error, StoreDown) else f"the store fails: {type(error).__name__}"
    return StoreDown(f'{why} (collection "{names[0]}")' if len(names) == 1 else why)


async def answered(work: asyncio.Future[Any], store: Store, reports: int = 0) -> Any:
    """What the store answers; if it hangs, its connections are cut, which ends the wait with
    StoreDown.
    """
    done, _ = await asyncio.wait({work}, timeout=limits.STORE_SECONDS + reports / limits.STORE_RATE)
    if not done:
        store.abort()
    return await work
