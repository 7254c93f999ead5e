"""POST /v1/collections/{name}/reports, as plain ASGI: this is what the service does all day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import numpy as np
from starlette.requests import ClientDisconnect

from discreet import wire
from discreet.about import moment
from discreet.collector import limits
from discreet.collector.commit import Committer
from discreet.collector.headers import ANYONE, COUNTED, with_headers
from discreet.collector.metrics import Metrics
from discreet.collector.problems import RETRY, Problem, damaged, down, unexpected
from discreet.collector.store import Collection, Outcome, StoreDamaged, StoreDown, Upload
from discreet.encodings import REASONS, Bytes
from discreet.mechanism import Mechanism
from discreet.wire import ID_SIZE

_HEADER = wire.HEADER.lower().encode()


class Uploads:
    """Reads bodies within limits, checks every frame, hands them to the committer."""

    def __init__(
        self,
        find: Callable[..., Awaitable[Collection]],
        committer: Committer,
        metrics: Metrics,
    ) -> None:
        self._find, self._committer, self._metrics = find, committer, metrics
        self.waiting = 0  # bytes of requests not answered yet
        self._found: set[str] = set()  # names that are in the store, or were

    async def __call__(self, name: str, scope: Any, receive: Any, send: Any) -> None:
        """Answered once the reports are durable, or refused whole."""
        try:
            outcome = await self._take(name, dict(scope["headers"]), receive)
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected(error)
            self._metrics.refused(name if name in self._found else "", problem.reason)
            problem.headers.update(ANYONE)
            await with_headers(problem.response())(scope, receive, send)
            return
        said = b'{"accepted":%d,"duplicates":%d}' % (outcome.accepted, outcome.duplicates)
        head = [*COUNTED, (b"content-length", b"%d" % len(said))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": said})

    async def _take(self, name: str, headers: dict[bytes, bytes], receive: Any) -> Outcome:
        began, body, read = time.perf_counter(), b"", False
        try:
            collection = await self._find(name)
            self._found.add(name)
            _check_headers(headers, collection)
            body, read = await self._body(receive), True
            upload = frames(collection.mechanism, body)._replace(key=collection.key)
            outcome = await self._submit(upload)
            if outcome.state == "replaced":  # it was deleted, and restored or made anew
                collection = await self._find(name, gone=collection.key)
                _check_headers(headers, collection)
                outcome = await self._submit(upload._replace(key=collection.key))
            if outcome.state != "open":
                raise _not_open(collection, outcome.state)
        except StoreDown as error:
            self._metrics.store_failed()
            raise down(error) from None
        except StoreDamaged as error:
            raise damaged(name, error) from None
        except Problem as problem:
            if not read and problem.reason != "slow":
                await _drain(receive)
            raise
        finally:
            self._hold(-len(body))
        took = time.perf_counter() - began
        self._metrics.accepted(name, outcome.accepted, outcome.duplicates, took)
        return outcome

    async def _submit(self, upload: Upload) -> Outcome:
        self._metrics.waiting(1, 0)
        try:
            return await self._committer.submit(upload)
        finally:
            self._metrics.waiting(-1, 0)

    def _hold(self, size: int) -> None:
        self.waiting += size
        self._metrics.waiting(0, size)

    async def _body(self, receive: Any) -> bytes:
        """The whole body; its bytes count as waiting until the caller gives them back."""
        clock = asyncio.get_running_loop().time
        held, deadline = bytearray(), clock() + limits.BODY_SECONDS
        try:
            async with asyncio.timeout_at(clock() + limits.BODY_PAUSE) as limit:
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientDisconnect
                    chunk = message.get("body", b"")
                    self._check_room(len(held), len(chunk))
                    held += chunk
                    self._hold(len(chunk))
                    if not message.get("more_body", False):
                        return bytes(held)
                    limit.reschedule(min(deadline, clock() + limits.BODY_PAUSE))
        except (TimeoutError, ClientDisconnect):
            self._hold(-len(held))
            detail = "the body did not come, or too slowly; send it again"
            raise Problem("slow", detail) from None
        except BaseException:
            self._hold(-len(held))
            raise

    def _check_room(self, held: int, more: int) -> None:
        if held + more > limits.BODY_SIZE:
            raise _too_large()
        if self.waiting + more > limits.WAITING:
            detail = (
                "too many reports are waiting; send the same ones again in some seconds, they are "
                "counted once"
            )
            raise Problem("busy", detail, RETRY)


def _check_headers(headers: dict[bytes, bytes], collection: Collection) -> None:
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != wire.BINARY:
        raise Problem("type", f'reports are sent as {wire.BINARY}, got "{kind[:80]}"')
    mark = headers.get(_HEADER)
    if mark != collection.mechanism.fingerprint.encode():
        reason, got = ("mechanism", "names another mechanism") if mark else ("header", "is missing")
        detail = (
            f"the header {wire.HEADER} {got}; fetch {wire.path_of(collection.name)} and "
            "send its fingerprint"
        )
        raise Problem(reason, detail)
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.BODY_SIZE:
        raise _too_large()


def _not_open(collection: Collection, state: str) -> Problem:
    name = f'the collection "{collection.name}"'
    if state == "upcoming":
        opens = moment(collection.mechanism.policy.about.opens)
        return Problem("early", f"{name} opens on {opens}; nothing was counted, send it then")
    detail = (
        f"{name} is closed and takes no more reports; of this upload nothing was counted now, and "
        "what was counted before stays"
    )
    return Problem("closed", detail)


def _too_large() -> Problem:
    most = f"{limits.BODY_SIZE:,} bytes and {limits.FRAMES:,} reports"
    detail = f"a body has at most {most}; send the reports in several requests"
    return Problem("large", detail)


async def _drain(receive: Any) -> None:
    """Read on what a client still sends before we refuse it, within limits: it may not listen
    before it is done.
    """
    size, more = 0, True
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(limits.BODY_PAUSE):
            while more and size < limits.DRAINED:
                message = await receive()
                size += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)


# ---- frames --------------------------------------------------------------------------------------


def frames(mechanism: Mechanism, body: bytes) -> Upload:
    """A body as checked reports; one bad frame refuses the whole, with its index."""
    size, name = ID_SIZE + mechanism.report_size, mechanism.policy.name
    if not body:
        raise Problem("empty", f"the body is empty; it has one or more frames of {size} bytes")
    whole, rest = divmod(len(body), size)
    if rest:
        detail = (
            f"frame {whole} has {rest} of {size} bytes (a {ID_SIZE}-byte id and a report); "
            "nothing was counted"
        )
        raise Problem("frame", detail, index=whole)
    if whole > limits.FRAMES:
        raise _too_large()
    if whole == 1:
        return Upload(name, [body[:ID_SIZE]], _alone(mechanism, body))
    rows = np.frombuffer(body, np.uint8).reshape(-1, size)[:, ID_SIZE:]
    bad = [which.argmax() for which in mechanism.coder.refusals(rows)[1].values() if which.any()]
    if bad:
        index = int(min(bad))
        _alone(mechanism, body[index * size : (index + 1) * size], index)
    ids = [body[k : k + ID_SIZE] for k in range(0, len(body), size)]
    return Upload(name, ids, rows)


def _alone(mechanism: Mechanism, frame: bytes, index: int = 0) -> Bytes:
    """The report of one frame, as a row; most people send one."""
    reason = mechanism.coder.check(frame[ID_SIZE:])
    if reason:
        why = REASONS[reason].format(size=mechanism.report_size)
        detail = f"frame {index} is not a report: {why}; nothing was counted"
        raise Problem(reason, detail, index=index)
    return np.frombuffer(frame, np.uint8, offset=ID_SIZE).reshape(1, -1)
