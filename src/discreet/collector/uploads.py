"""POST /v1/collections/{name}/reports. Plain ASGI, because most requests are uploads."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol

import numpy as np
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from discreet.arrays.types import Bytes
from discreet.collector import limits
from discreet.collector.commit import Committer
from discreet.collector.headers import ANYONE, RECEIPT, with_headers
from discreet.collector.metrics import Metrics
from discreet.collector.problems import RETRY, Problem, damaged, down, unexpected
from discreet.collector.store import Collection, Outcome, StoreDamaged, StoreDown, Upload
from discreet.device import wire
from discreet.device.wire import ID_SIZE
from discreet.encodings import REASONS
from discreet.mechanism import Mechanism
from discreet.policy.about import moment

_HEADER = wire.HEADER.lower().encode()


class FindCollection(Protocol):
    """Finds a collection by name, but not the one whose key is `gone`."""

    async def __call__(self, name: str, *, gone: int | None = None) -> Collection:
        """Find it; Problem if there is none."""


class Uploads:
    """Reads bodies within limits, checks every frame, and hands the reports to the committer."""

    def __init__(self, find: FindCollection, committer: Committer, metrics: Metrics) -> None:
        self._find, self._committer, self._metrics = find, committer, metrics
        self.waiting = 0  # bytes of requests not answered yet
        self._names: set[str] = set()  # of collections that are or were in the store

    async def __call__(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an upload once its reports are durable, or refuse all of it."""
        try:
            outcome = await self._take(name, dict(scope["headers"]), receive)
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected(error)
            self._metrics.refused(name if name in self._names else "", problem.reason)
            problem.headers.update(ANYONE)
            await with_headers(problem.response())(scope, receive, send)
            return
        body = b'{"accepted":%d,"duplicates":%d}' % (outcome.accepted, outcome.duplicates)
        head = [*RECEIPT, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    async def _take(self, name: str, headers: dict[bytes, bytes], receive: Receive) -> Outcome:
        began, body, read = time.perf_counter(), b"", False
        try:
            collection = await self._find(name)
            self._names.add(name)
            _check_headers(headers, collection)
            body, read = await self._body(receive), True
            upload = frames(collection.mechanism, body)._replace(key=collection.key)
            outcome = await self._submit(upload)
            if outcome.state == "replaced":  # deleted, then restored or created again
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

    async def _body(self, receive: Receive) -> bytes:
        """Read the whole body. Its bytes count as waiting until the caller subtracts them."""
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
            detail = "the body did not arrive in time; send it again"
            raise Problem("slow", detail) from None
        except BaseException:
            self._hold(-len(held))
            raise

    def _check_room(self, held: int, more: int) -> None:
        if held + more > limits.BODY_SIZE:
            raise _too_large()
        if self.waiting + more > limits.WAITING:
            detail = (
                "too many reports are waiting; send the same reports again in a few seconds, each "
                "is counted once"
            )
            raise Problem("busy", detail, RETRY)


def _check_headers(headers: dict[bytes, bytes], collection: Collection) -> None:
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != wire.BINARY:
        raise Problem("type", f'reports are sent as {wire.BINARY}, got "{kind[:80]}"')
    mark = headers.get(_HEADER)
    if mark != collection.mechanism.fingerprint.encode():
        reason, got = (
            ("mechanism", "is that of another mechanism") if mark else ("header", "is missing")
        )
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
        return Problem("early", f"{name} opens on {opens}; nothing was counted, send it again then")
    detail = (
        f"{name} is closed and takes no more reports; nothing of this upload was counted now, and "
        "reports that were counted before stay counted"
    )
    return Problem("closed", detail)


def _too_large() -> Problem:
    most = f"{limits.BODY_SIZE:,} bytes and {limits.FRAMES:,} reports"
    detail = f"a body has at most {most}; send the reports in several requests"
    return Problem("large", detail)


async def _drain(receive: Receive) -> None:
    """Read and drop the rest of a body, within limits: many clients read the answer only after
    they have sent everything.
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
    """Split a body into reports and check each one; one bad frame refuses the whole body, with its
    index.
    """
    size, name = ID_SIZE + mechanism.report_size, mechanism.policy.name
    if not body:
        raise Problem("empty", f"the body is empty; send one or more frames of {size} bytes")
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
        return Upload(name, [body[:ID_SIZE]], _check_frame(mechanism, body))
    rows = np.frombuffer(body, np.uint8).reshape(-1, size)[:, ID_SIZE:]
    _, refused = mechanism.arrays.coder.refusals(rows)
    bad = [which.argmax() for which in refused.values() if which.any()]
    if bad:
        index = int(min(bad))
        _check_frame(mechanism, body[index * size : (index + 1) * size], index)
    ids = [body[k : k + ID_SIZE] for k in range(0, len(body), size)]
    return Upload(name, ids, rows)


def _check_frame(mechanism: Mechanism, frame: bytes, index: int = 0) -> Bytes:
    """The report of one frame, as a row. Faster than arrays for one report, as devices send it."""
    reason = mechanism.coder.check(frame[ID_SIZE:])
    if reason:
        why = REASONS[reason].format(size=mechanism.report_size)
        detail = f"frame {index} is not a report: {why}; nothing was counted"
        raise Problem(reason, detail, index=index)
    return np.frombuffer(frame, np.uint8, offset=ID_SIZE).reshape(1, -1)
