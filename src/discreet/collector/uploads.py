"""POST /v1/collections/{name}/reports. Plain ASGI, because most requests are uploads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Protocol

import numpy as np
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from discreet.arrays.survey_tally import runs
from discreet.collector import limits
from discreet.collector.commit import Committer
from discreet.collector.headers import ANYONE, RECEIPT, with_headers
from discreet.collector.metrics import Metrics
from discreet.collector.problems import RETRY, Problem, damaged, down, unexpected
from discreet.collector.store import Collection, Outcome, StoreDamaged, StoreDown, Upload
from discreet.device import wire
from discreet.device.wire import ID_SIZE, front_size, public_part, question_place
from discreet.encodings import REASONS
from discreet.survey import Survey
from discreet.survey.about import moment

_FEW = 8  # frames that are checked one by one
_HEADER = wire.HEADER.lower().encode()


class FindCollection(Protocol):
    """Finds a collection by name, but not the one whose key is `gone`; with `fresh`, as it was in
    the store at most a second ago.
    """

    async def __call__(
        self, name: str, *, fresh: bool = False, gone: int | None = None
    ) -> Collection:
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
            if headers.get(_HEADER) != collection.survey.fingerprint.encode():
                # it may have been deleted, and another one published under its name
                collection = await self._find(name, fresh=True)
            _check_headers(headers, collection)
            body, read = await self._body(receive), True
            upload = frames(collection.survey, body)._replace(key=collection.key)
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
    if mark != collection.survey.fingerprint.encode():
        reason, got = ("survey", "is that of another survey") if mark else ("header", "is missing")
        detail = (
            f"the header {wire.HEADER} {got}; fetch {wire.collection_path(collection.name)} and "
            "send its fingerprint"
        )
        raise Problem(reason, detail)
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.BODY_SIZE:
        raise _too_large()


def _not_open(collection: Collection, state: str) -> Problem:
    name = f'the collection "{collection.name}"'
    if state == "upcoming":
        opens = moment(collection.survey.about.opens)
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


def frames(survey: Survey, body: bytes) -> Upload:
    """Split a body into frames and check every report; one bad frame refuses the whole body, with
    its index.
    """
    sizes = [ID_SIZE + front_size(survey) + q.mechanism.report_size for q in survey.listed]
    if not body:
        wanted = f"{min(sizes)}" if len({*sizes}) == 1 else f"{min(sizes)} to {max(sizes)}"
        raise Problem("empty", f"the body is empty; send one or more frames of {wanted} bytes")
    starts = _starts(survey, body, sizes)
    if len(starts) - 1 > limits.FRAMES:
        raise _too_large()
    ids = [body[k : k + ID_SIZE] for k in starts[:-1]]
    contents = [body[k + ID_SIZE : end] for k, end in pairwise(starts)]
    if len(ids) < _FEW:  # faster than arrays for one report, as devices send it
        for index, content in enumerate(contents):
            _check_content(survey, content, index)
    else:
        _check_together(survey, contents)
    return Upload(survey.name, ids, contents)


def _starts(survey: Survey, body: bytes, sizes: list[int]) -> Sequence[int]:
    """Where every frame begins, and where the last one ends."""
    if len(sizes) == 1:
        whole, rest = divmod(len(body), sizes[0])
        if rest:
            raise _cut(whole, rest, sizes[0])
        return range(0, len(body) + 1, sizes[0])
    starts = [0]
    while (at := starts[-1]) < len(body):
        number = body[at + ID_SIZE] if at + ID_SIZE < len(body) else 0
        if number >= len(sizes):
            index, most = len(starts) - 1, len(sizes) - 1
            detail = (
                f"frame {index} is about question {number}; the questions are 0 to {most}; nothing "
                "was counted"
            )
            raise Problem("question", detail, index=index)
        if at + sizes[number] > len(body):
            raise _cut(len(starts) - 1, len(body) - at, sizes[number])
        starts.append(at + sizes[number])
        if len(starts) - 1 > limits.FRAMES:
            raise _too_large()
    return starts


def _cut(index: int, got: int, size: int) -> Problem:
    detail = (
        f"frame {index} has {got} of {size} bytes (a {ID_SIZE}-byte id and a report); nothing was "
        "counted"
    )
    return Problem("frame", detail, index=index)


def _check_content(survey: Survey, content: bytes, index: int) -> None:
    """Problem unless this is a report of the survey, behind public answers that there are."""
    mechanism = survey.listed[question_place(survey, content)].mechanism
    for public, place in zip(survey.public, content[public_part(survey)], strict=True):
        if place >= len(public.items):
            detail = (
                f'frame {index} has answer {place} to the public question "{public.name}", which '
                f"has {len(public.items)}; nothing was counted"
            )
            raise Problem("public", detail, index=index)
    reason = mechanism.coder.refusal(content[front_size(survey) :])
    if reason:
        why = REASONS[reason].format(size=mechanism.report_size)
        detail = f"frame {index} is not a report: {why}; nothing was counted"
        raise Problem(reason, detail, index=index)


def _check_together(survey: Survey, contents: list[bytes]) -> None:
    """The same for many: arrays find whether one is wrong, and then which is the first."""
    front, most = front_size(survey), [len(public.items) for public in survey.public]
    for question, rows in runs(survey, b"".join(contents)):
        coder = survey.listed[question].mechanism.arrays.coder
        _, refused = coder.refusals(rows[:, front:])
        strange = (rows[:, public_part(survey)] >= np.array(most, int)).any()
        if strange or any(which.any() for which in refused.values()):
            for index, content in enumerate(contents):
                _check_content(survey, content, index)
