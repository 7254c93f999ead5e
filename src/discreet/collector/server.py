"""Runs the collector: sockets, workers, signals, limits on slow clients, logs without personal
data.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.supervisors import Multiprocess

from discreet.collector import limits, scratch
from discreet.collector.app import Settings, from_environment
from discreet.collector.headers import STRICT, with_headers
from discreet.collector.problems import RETRY, Problem
from discreet.collector.store import StoreDown
from discreet.errors import DataError


class Patient(HttpToolsProtocol):
    """uvicorn's protocol with the limits it lacks.

    - The head of a request must be small and come within some seconds.
    - Upgrades are refused.
    - An answer that is given before the body is complete ends the connection.
    - In a crowd, connections on which nothing is being done make room.
    """

    since = 0.0  # when it was last heard of; of an unfinished body, when its head was complete
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes seen since the last request was complete
    _in_head = False  # whether a head has begun and is not complete
    _refused = False  # nothing more is read from this connection
    _unread: asyncio.TimerHandle | None = None  # while the client reads nothing of its answer

    def connection_made(self, transport: Any) -> None:
        """A new connection owes us a request; in a crowd another one gives way to it."""
        super().connection_made(transport)
        self._count()
        self.since = self.loop.time()
        if len(self.connections) > limits.CONNECTIONS:
            self._make_room()
        self._expect()

    def _make_room(self) -> None:
        """Close a connection on which nothing is being done: one of the address that holds most of
        them. Idle ones go first, then unfinished bodies and answers that nobody reads, each time
        the one that waits longest.

        Behind a proxy all have one address. There it is the order that protects people: their
        bodies are complete within moments, so that the oldest unfinished ones are somebody else's.
        """
        others = (x for x in self.connections if isinstance(x, Patient) and x is not self)
        waiting = [x for x in others if x.is_idle() or x.is_unfinished() or x.is_unread()]
        many = Counter(x.client and x.client[0] for x in waiting)
        if waiting:
            min(
                waiting,
                key=lambda x: (-many[x.client and x.client[0]], not x.is_idle(), x.since),
            ).give_way()

    def _crowded(self) -> bool:
        if len(self.connections) <= limits.CONNECTIONS:
            return False
        here = sum(not x.transport.is_closing() for x in self.connections)
        return here > limits.CONNECTIONS

    def is_idle(self) -> bool:
        """Whether nothing is being done for this connection."""
        return self._between() and not self.transport.is_closing()

    def is_unfinished(self) -> bool:
        """Whether we wait for the rest of a body."""
        cycle = self.cycle
        return (
            cycle is not None
            and cycle.more_body
            and not cycle.response_started
            and not self.pipeline
            and not self.transport.is_closing()
        )

    def is_unread(self) -> bool:
        """Whether the client has stopped to read what it asked for."""
        return self._unread is not None and not self.transport.is_closing()

    def pause_writing(self) -> None:
        """The client does not read as fast as we write; it is given up if it does not read on."""
        super().pause_writing()
        self._unread = self.loop.call_later(limits.UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._read_on()

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def give_way(self) -> None:
        """Close the connection; whoever has begun to send a body is asked to come back."""
        if self.is_unread():
            self.transport.abort()  # to close it would wait until all is read
            return
        if self.is_unfinished():
            self.cycle.disconnected = True  # the application must not answer as well
            self.cycle.message_event.set()
            self._answer(Problem("busy", _COME_BACK, RETRY))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Between requests, only the beginning of the next one may come: not slowly, and not too
        much of it.
        """
        if self._refused:
            self._drop(len(data))
            return
        if not self.is_unfinished():
            self.since = self.loop.time()
        begun = self._in_head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._between() or (begun and self._in_head):
            self._head += len(data)
            if self._head > limits.HEAD_SIZE:
                self._refuse_head()
            elif self._timer is None and self._between():
                self._expect()

    def _refuse_head(self) -> None:
        """Say that it is too large. Read on for a moment and drop what comes: to close while more
        is on its way would reset the connection, and the answer would be lost.
        """
        self._refused = True
        if self._between():
            self._answer(_large_head())
            self._forget()
            self.transport.write_eof()
            self._timer = self.loop.call_later(limits.LINGER, self.transport.close)
        else:  # an earlier request is not answered yet, and this must not look like its answer
            self.transport.close()

    def _drop(self, size: int) -> None:
        self._head += size
        if self._head > limits.DROPPED:
            self.transport.close()

    def on_message_begin(self) -> None:
        """The first bytes of a request are here."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is here. The parser does not read the body of a request that asks for an
        upgrade; its bytes would be taken for requests. So such a request is refused and is the
        last one.
        """
        self._forget()
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
        """Anyone can ask for one; it is answered, and not a line of the log."""

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered like everything else, unless an earlier request is not
        answered yet: this must not look like its answer.
        """
        if self._between():
            self._answer(Problem("http", "this is not a request in HTTP/1.1"))
        self.transport.close()

    def _answer(self, problem: Problem) -> None:
        """Answer past the application, as the last thing on this connection."""
        response = problem.response()
        head = [(b"connection", b"close"), *response.raw_headers, *STRICT]
        lines = [STATUS_LINE[problem.status][:-2], *(name + b": " + value for name, value in head)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to wait for."""
        self._forget()
        self._read_on()
        super().connection_lost(exc)
        self._count()

    def _count(self) -> None:
        if metrics := self.app_state.get("metrics"):
            metrics.connected(len(self.connections))

    def _between(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        self._timer = self.loop.call_later(limits.HEAD_SECONDS, self.transport.close)

    def _forget(self) -> None:
        self._head, self._in_head = 0, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _LastIfUnread:
    """An application whose answer ends the connection if the body is not complete by then. Client
    and server could disagree on whether the rest still comes: after `Expect: 100-continue` it may
    or may not. Then one person's request would become part of another one's body.
    """

    cycle: RequestResponseCycle

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if self.cycle.more_body:
                self.cycle.keep_alive = False
            await send(message)

        await self._app(scope, receive, sending)


def _always(problem: Callable[[], Problem]) -> Any:
    """An application that answers everything with this problem, and closes the connection."""

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        said = problem()
        said.headers["Connection"] = "close"
        await said.response()(scope, receive, send)

    return with_headers(refuse)


_COME_BACK = "too many are connected; come back in some seconds"


def _large_head() -> Problem:
    detail = f"the head of a request has at most {limits.HEAD_SIZE:,} bytes; send fewer headers"
    return Problem("http", detail, status=431)


_CROWDED = _always(lambda: Problem("busy", _COME_BACK, RETRY))
_UPGRADE = _always(
    lambda: Problem("http", "no other protocol is spoken here; leave out the Upgrade header")
)
_LARGE_HEAD = _always(_large_head)


class JsonLines(logging.Formatter):
    """One JSON object per line: the minute, the level, the event and its facts; of an exception
    only its type.
    """

    def format(self, record: logging.LogRecord) -> str:
        """A line."""
        facts = {
            "time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
        }
        facts |= {"event": record.getMessage() if record.name.startswith("discreet") else "server"}
        facts |= getattr(record, "facts", {})
        if record.name.startswith("uvicorn"):
            facts["message"] = record.getMessage().splitlines()[0][:200]
        if record.exc_info and record.exc_info[0]:
            facts["exception"] = record.exc_info[0].__name__
        return json.dumps(facts, ensure_ascii=False)


class Seldom(logging.Filter):
    """Lets the same words pass once in a while only: anyone can send what is no request."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is said."""
        words, now = str(record.msg)[:80], time.monotonic()
        if now - self._said.get(words, -limits.SILENCE) < limits.SILENCE:
            return False
        self._said[words] = now
        return True


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "discreet.collector.server.JsonLines"}},
    "filters": {"seldom": {"()": "discreet.collector.server.Seldom"}},
    "handlers": {
        "err": {"class": "logging.StreamHandler", "formatter": "json"},
        "seldom": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["seldom"]},
    },
    "loggers": {
        "discreet": {"handlers": ["err"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["seldom"], "level": "WARNING", "propagate": False},
    },
}


def listen(host: str, port: int, patience: float = 0.0) -> socket.socket:
    """A listening socket, or one sentence why not.

    An address that is in use is tried again for `patience` seconds: the workers of a collector that
    was killed listen for a moment longer.
    """
    end, said = time.monotonic() + patience, False
    while True:
        try:
            return _listening(host, port)
        except (OSError, UnicodeError, OverflowError) as error:
            if getattr(error, "errno", None) != errno.EADDRINUSE or time.monotonic() >= end:
                words = getattr(error, "strerror", None) or str(error)
                raise DataError(
                    f"cannot listen on {host} port {port}: {words}; choose another with --host and "
                    "--port"
                ) from None
        if not said:
            said = True
            words = f"port {port} is in use; trying again for {patience:.0f} seconds"
            print(words, file=sys.stderr, flush=True)
        time.sleep(0.1)


def _listening(host: str, port: int) -> socket.socket:
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, proto)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(limits.BACKLOG)  # now, because only then the address is ours
    except BaseException:
        found.close()
        raise
    found.set_inheritable(True)
    return found


def run(
    store: str,
    sock: socket.socket,
    workers: int = 1,
    open_results: bool = False,
    public_url: str = "",
) -> None:
    """Serve until SIGTERM or Ctrl-C; what was acknowledged is durable, what is in flight is
    finished first.
    """
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # what is left of the signal once everything is finished
    with scratch.folder("counters") as counters:
        settings = Settings(store, counters, open_results, public_url)
        os.environ["DISCREET_COLLECTOR"] = json.dumps(asdict(settings))
        config = uvicorn.Config(
            "discreet.collector.server:application",
            factory=True,
            workers=workers,
            http=Patient,
            ws="none",
            lifespan="on",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_config=LOGGING,
            log_level="warning",
            timeout_keep_alive=limits.IDLE,
            timeout_graceful_shutdown=limits.GRACE,
            timeout_worker_healthcheck=limits.WORKER_SECONDS,
        )
        if workers > 1:
            supervisor = Multiprocess(config, sockets=[sock])
            supervisor.run()
            if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
                sys.exit(1)  # the log says why
        else:
            uvicorn.Server(config).run(sockets=[sock])


def _pause() -> None:
    """A second in which we can be stopped: uvicorn's own handlers would only note it."""
    old = {
        number: signal.signal(number, lambda *_: os._exit(0))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    time.sleep(limits.RESTART)
    for number, handler in old.items():
        signal.signal(number, handler)


def application() -> Any:
    """One worker's application; the worker goes when its supervisor does."""
    sys.setswitchinterval(limits.SWITCH)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()
    try:
        while True:
            try:
                return from_environment()
            except StoreDown as error:  # we are wanted as soon as it is back
                logging.getLogger("discreet").error(
                    "store", extra={"facts": {"problem": str(error)}}
                )
                _pause()
    except DataError as error:
        logging.getLogger("discreet").error(
            "cannot start", extra={"facts": {"problem": str(error)}}
        )
        sys.exit(STARTUP_FAILURE)
