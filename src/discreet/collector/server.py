"""Runs the collector: sockets, workers, signals, limits on slow clients, logs without personal
data.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from discreet.collector import limits
from discreet.collector.app import Settings, from_environment
from discreet.collector.headers import STRICT, with_headers
from discreet.collector.problems import RETRY, Problem
from discreet.collector.store import StoreDown
from discreet.errors import DataError


class Patient(HttpToolsProtocol):
    """uvicorn's protocol with two limits it lacks: the head of a request must be complete in some
    seconds, and small.
    """

    since = 0.0  # when it was last heard of
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes seen since the last request was complete

    def connection_made(self, transport: Any) -> None:
        """A new connection owes us a request; in a crowd it takes the place of one that is idle."""
        super().connection_made(transport)
        self._count()
        self.since = self.loop.time()
        if len(self.connections) > limits.CONNECTIONS:
            self._make_room()
        self._expect()

    def _make_room(self) -> None:
        """Close a connection between two requests: of the address that has most of them, the one
        that has been so longest.
        """
        others = (x for x in self.connections if isinstance(x, Patient) and x is not self)
        idle = [x for x in others if x.is_idle()]
        many = Counter(x.client and x.client[0] for x in idle)
        if idle:
            longest = min(idle, key=lambda x: (-many[x.client and x.client[0]], x.since))
            longest.transport.close()

    def _crowded(self) -> bool:
        if len(self.connections) <= limits.CONNECTIONS:
            return False
        here = sum(not x.transport.is_closing() for x in self.connections)
        return here > limits.CONNECTIONS

    def is_idle(self) -> bool:
        """Whether nothing is being done for this connection."""
        return self._between() and not self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        """Between requests, only the beginning of the next one may come: not slowly, and not too
        much of it.
        """
        self.since = self.loop.time()
        super().data_received(data)
        if not self._between() or self.transport.is_closing():
            return
        self._head += len(data)
        if self._head > limits.HEAD_SIZE:
            self.transport.close()
        elif self._timer is None:
            self._expect()

    def on_headers_complete(self) -> None:
        """The request is here; when there is a crowd, it is asked to come back."""
        self._forget()
        self.app = _CROWDED if self._crowded() else self.config.loaded_app
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered like everything else."""
        problem = Problem("http", "this is not a request in HTTP/1.1").response()
        head = [(b"connection", b"close"), *problem.raw_headers, *STRICT]
        lines = [b"HTTP/1.1 400 Bad Request", *(name + b": " + value for name, value in head)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(problem.body)]))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to wait for."""
        self._forget()
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
        self._head = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _crowd(scope: Any, receive: Any, send: Any) -> None:
    detail = "too many are connected; come back in some seconds"
    problem = Problem("busy", detail, {**RETRY, "Connection": "close"})
    await problem.response()(scope, receive, send)


_CROWDED = with_headers(_crowd)


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


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or one sentence why not."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, proto)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
        except BaseException:
            found.close()
            raise
        found.set_inheritable(True)
        return found
    except (OSError, UnicodeError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"cannot listen on {host} port {port}: {words}; choose another with --host and --port"
        ) from None


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
    with tempfile.TemporaryDirectory(prefix="discreet-") as counters:
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
