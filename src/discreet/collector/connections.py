"""The limits on connections that uvicorn lacks: slow or large headers, crowds, unread answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from discreet.collector import limits
from discreet.collector.headers import STRICT, with_headers
from discreet.collector.problems import RETRY, Problem


class TimedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the limits it lacks.

    - The headers of a request must be small and complete within some seconds.
    - Upgrades are refused.
    - An answer sent before the body is complete ends the connection.
    - When there are too many connections, inactive ones are closed.
    """

    # when the client last sent something; of an unfinished body, when its headers were complete
    since = 0.0
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes read since the last complete request
    _in_head = False  # whether headers have begun and are not complete
    _refused = False  # whether the rest of this connection is dropped
    _unread: asyncio.TimerHandle | None = None  # while the client reads nothing of its answer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request. If there are too many connections, close another one."""
        super().connection_made(transport)
        self._update_gauge()
        self.since = self.loop.time()
        if len(self.connections) > limits.CONNECTIONS:
            self._make_room()
        self._start_head_timer()

    def _make_room(self) -> None:
        """Close an inactive connection of the address that has most of them. Idle connections go
        first, then unfinished bodies and unread answers; among equals, the oldest.

        Behind a proxy all connections have the same address. There the order protects people:
        their bodies are complete within moments, so the oldest unfinished ones are an attacker's.
        """
        others = (x for x in self.connections if isinstance(x, TimedProtocol) and x is not self)
        inactive = [x for x in others if x.is_idle() or x.is_unfinished() or x.is_unread()]
        per_address = Counter(x.client and x.client[0] for x in inactive)
        if inactive:
            min(
                inactive,
                key=lambda x: (-per_address[x.client and x.client[0]], not x.is_idle(), x.since),
            ).give_way()

    def _crowded(self) -> bool:
        if len(self.connections) <= limits.CONNECTIONS:
            return False
        remaining = sum(not x.transport.is_closing() for x in self.connections)
        return remaining > limits.CONNECTIONS

    def is_idle(self) -> bool:
        """Whether no request is in progress on this connection."""
        return self._between_requests() and not self.transport.is_closing()

    def is_unfinished(self) -> bool:
        """Whether the rest of a body is missing."""
        cycle = self.cycle
        return (
            cycle is not None
            and cycle.more_body
            and not cycle.response_started
            and not self.pipeline
            and not self.transport.is_closing()
        )

    def is_unread(self) -> bool:
        """Whether the client has stopped reading its answer."""
        return self._unread is not None and not self.transport.is_closing()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write: abort unless it continues in time."""
        super().pause_writing()
        self._unread = self.loop.call_later(limits.UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._stop_unread_timer()

    def _stop_unread_timer(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def give_way(self) -> None:
        """Close the connection. A client that is sending a body is asked to try again."""
        if self.is_unread():
            self.transport.abort()  # close() would wait until the client has read everything
            return
        if self.is_unfinished():
            self.cycle.disconnected = True  # the application must not answer as well
            self.cycle.message_event.set()
            self._answer(Problem("busy", _TRY_AGAIN, RETRY))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Read bytes; the headers of the next request must be complete in time and small."""
        if self._refused:
            self._drop(len(data))
            return
        if not self.is_unfinished():
            self.since = self.loop.time()
        begun = self._in_head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._between_requests() or (begun and self._in_head):
            self._head += len(data)
            if self._head > limits.HEAD_SIZE:
                self._refuse_head()
            elif self._timer is None and self._between_requests():
                self._start_head_timer()

    def _refuse_head(self) -> None:
        """Answer that the headers are too large, then read and drop for a moment: closing while
        more bytes arrive would reset the connection and lose the answer.
        """
        self._refused = True
        if self._between_requests():
            self._answer(_large_head())
            self._end_head()
            self.transport.write_eof()
            self._timer = self.loop.call_later(limits.LINGER, self.transport.close)
        else:  # the client would take it for the answer to an earlier request
            self.transport.close()

    def _drop(self, size: int) -> None:
        self._head += size
        if self._head > limits.DROPPED:
            self.transport.close()

    def on_message_begin(self) -> None:
        """The first bytes of a request have arrived."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The headers are complete. A request for an upgrade is refused and ends the connection:
        the parser does not read its body, so the body's bytes would be taken for requests.
        """
        self._end_head()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        app = _CROWDED if self._crowded() else self.config.loaded_app
        if self.parser.should_upgrade():
            app, self._refused = _UPGRADE, True
        elif size > limits.HEAD_SIZE:
            app, self._refused = _LARGE_HEAD, True
        self.app = last = _LastIfUnread(app)
        super().on_headers_complete()
        last.cycle = self.cycle

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: anyone can ask for an upgrade, and the answer says enough."""

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP with a problem, unless an earlier request is not answered
        yet: the client would take it for that answer.
        """
        if self._between_requests():
            self._answer(Problem("http", "this is not a request in HTTP/1.1"))
        self.transport.close()

    def _answer(self, problem: Problem) -> None:
        """Write an answer without the application, as the last one on this connection."""
        response = problem.response()
        head = [(b"connection", b"close"), *response.raw_headers, *STRICT]
        lines = [STATUS_LINE[problem.status][:-2], *(name + b": " + value for name, value in head)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._end_head()
        self._stop_unread_timer()
        super().connection_lost(exc)
        self._update_gauge()

    def _update_gauge(self) -> None:
        if metrics := self.app_state.get("metrics"):
            metrics.connected(len(self.connections))

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_head_timer(self) -> None:
        self._timer = self.loop.call_later(limits.HEAD_SECONDS, self.transport.close)

    def _end_head(self) -> None:
        self._head, self._in_head = 0, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _LastIfUnread:
    """Ends the connection if the application answers before the body is complete. After
    `Expect: 100-continue` the client may or may not send the rest; if both sides disagree, one
    person's request becomes part of another one's body.
    """

    cycle: RequestResponseCycle

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_last(message: Message) -> None:
            if self.cycle.more_body:
                self.cycle.keep_alive = False
            await send(message)

        await self._app(scope, receive, send_last)


def _refuse_all(make_problem: Callable[[], Problem]) -> ASGIApp:
    """An application that answers every request with this problem and closes the connection."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        problem = make_problem()
        problem.headers["Connection"] = "close"
        await problem.response()(scope, receive, send)

    return with_headers(refuse)


_TRY_AGAIN = "too many connections; try again in a few seconds"


def _large_head() -> Problem:
    detail = f"the headers of a request have at most {limits.HEAD_SIZE:,} bytes; send fewer"
    return Problem("http", detail, status=431)


_CROWDED = _refuse_all(lambda: Problem("busy", _TRY_AGAIN, RETRY))
_UPGRADE = _refuse_all(
    lambda: Problem("http", "only HTTP/1.1 is spoken here; leave out the Upgrade header")
)
_LARGE_HEAD = _refuse_all(_large_head)
