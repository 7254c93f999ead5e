"""Group commit: uploads that wait at the same time share one transaction, and all are answered once
it is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from discreet.collector import limits
from discreet.collector.store import Outcome, Store, StoreDamaged, StoreDown, Upload
from discreet.errors import DataError

T = TypeVar("T")


class Committer:
    """One writer per process; while it commits, the next uploads gather. The caller limits how many
    wait.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "commit")
        self._waiting: list[tuple[Upload, asyncio.Future[Outcome]]] = []
        self._task: asyncio.Task[None] | None = None
        self._enough = asyncio.Event()
        # of the last transaction: how many uploads waited then, how long it took, when it ended
        self._crowd, self._took, self._ended = 1, 0.0, 0.0

    async def submit(self, upload: Upload) -> Outcome:
        """Count an upload; returns when it is durable. After StoreDown it is counted or not: send
        the same ids again.
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
                if future.done():  # the sender has gone away, and is counted all the same
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
        alone, so that a damaged one does not harm the others.
        """
        loop = asyncio.get_running_loop()
        began, names = loop.time(), sorted({upload.collection for upload in uploads})
        try:
            work = loop.run_in_executor(self._thread, self._store.add, uploads)
            reports = sum(len(upload.ids) for upload in uploads)
            return await answered(work, self._store, reports)
        except Exception as error:
            failure = _failure(error, names)
        if len(names) == 1 or loop.time() - began >= limits.STORE_SECONDS:  # or it hangs for all
            return [failure] * len(uploads)
        outcomes: dict[int, Outcome | DataError] = {}
        for name in names:
            places = [k for k, upload in enumerate(uploads) if upload.collection == name]
            alone = await self._outcomes([uploads[k] for k in places])
            outcomes.update(zip(places, alone, strict=True))
        return [outcomes[k] for k in range(len(uploads))]

    async def _gather(self) -> None:
        """Clients that were just answered often send again at once: wait for them, so that they
        share the next transaction, but no longer than the last transaction took.
        """
        pause = min(limits.GATHERING, self._ended + self._took - asyncio.get_running_loop().time())
        if len(self._waiting) < self._crowd and pause > 0:
            self._enough.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._enough.wait()

    def _take(self) -> list[tuple[Upload, asyncio.Future[Outcome]]]:
        """Take the upload that waits longest, then the smallest ones: large uploads do not keep
        single reports waiting.
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
        """Count the uploads that wait, then end."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()


def _failure(error: Exception, names: list[str]) -> DataError:
    """The error for the senders of these uploads, and for the log."""
    if isinstance(error, StoreDamaged):
        return error
    why = str(error) if isinstance(error, StoreDown) else f"the store fails: {type(error).__name__}"
    return StoreDown(f'{why} (collection "{names[0]}")' if len(names) == 1 else why)


async def answered(work: asyncio.Future[T], store: Store, reports: int = 0) -> T:
    """What the store answers. If it hangs, its connections are cut, which ends the wait with
    StoreDown.
    """
    timeout = limits.STORE_SECONDS + reports / limits.STORE_RATE
    done, _ = await asyncio.wait({work}, timeout=timeout)
    if not done:
        store.abort()
    return await work
