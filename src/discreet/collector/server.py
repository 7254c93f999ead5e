"""Runs the collector: sockets, workers, signals, limits on slow clients, logs without personal data."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from discreet.collector.app import Settings
from discreet.errors import DataError

HEADER_SECONDS = 10.0  # for the head of a request
HEADER_BYTES = 32 << 10
GRACE = 30  # seconds for requests in flight when we are asked to stop
CONNECTIONS = 1000


class Patient(HttpToolsProtocol):
    """uvicorn's protocol with two limits it lacks: the head of a request must be complete in some seconds, and small."""

    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes seen since the last request was complete

    def connection_made(self, transport: Any) -> None:
        """A new connection owes us a request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Between requests, only the beginning of the next one may come, and not slowly."""
        if self._between():
            self._head += len(data)
            if self._timer is None:
                self._expect()
        super().data_received(data)
        if self._between() and self._head > HEADER_BYTES and not self.transport.is_closing():
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The request is here."""
        self._forget()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to wait for."""
        self._forget()
        super().connection_lost(exc)

    def _between(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _forget(self) -> None:
        self._head = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class JsonLines(logging.Formatter):
    """One JSON object per line: the minute, the level, the event and its facts; of an exception only its type."""

    def format(self, record: logging.LogRecord) -> str:
        """A line."""
        facts = {"time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(record.created)), "level": record.levelname.lower()}
        facts |= {"event": record.getMessage() if record.name.startswith("discreet") else "server"}
        facts |= getattr(record, "facts", {})
        if record.name.startswith("uvicorn"):
            facts["message"] = record.getMessage().splitlines()[0][:200]
        if record.exc_info and record.exc_info[0]:
            facts["exception"] = record.exc_info[0].__name__
        return json.dumps(facts, ensure_ascii=False)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "discreet.collector.server.JsonLines"}},
    "handlers": {"err": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        "discreet": {"handlers": ["err"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["err"], "level": "WARNING", "propagate": False},
    },
}


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or one sentence why not."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, proto)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.set_inheritable(True)
        return found
    except (OSError, UnicodeError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot listen on {host} port {port}: {words}; choose another with --host and --port") from None


def token_file(path: Path) -> bool:
    """Make a token for the organiser alone unless there is one; returns whether it was made."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise DataError(f"the token file {path} cannot be made: {error.strerror}; set DISCREET_TOKEN instead") from None
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_urlsafe(24) + "\n")
    return True


def run(store: str, sock: socket.socket, workers: int = 1, open_results: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C; what was acknowledged is durable, what is in flight is finished first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # what is left of the signal once everything is finished
    with tempfile.TemporaryDirectory(prefix="discreet-") as counters:
        settings = Settings(store, counters, open_results)
        os.environ["DISCREET_COLLECTOR"] = json.dumps(asdict(settings))
        config = uvicorn.Config(
            "discreet.collector.server:application", factory=True, workers=workers, http=Patient, ws="none", lifespan="on",
            access_log=False, server_header=False, proxy_headers=False, log_config=LOGGING, log_level="warning",
            limit_concurrency=CONNECTIONS, timeout_keep_alive=20, timeout_graceful_shutdown=GRACE,
        )  # fmt: skip
        if workers > 1:
            Multiprocess(config, sockets=[sock]).run()
        else:
            uvicorn.Server(config).run(sockets=[sock])


def application() -> Any:
    """One worker's application; the worker goes when its supervisor does."""
    from discreet.collector.app import from_environment

    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()
    try:
        return from_environment()
    except DataError as error:
        logging.getLogger("discreet").error("cannot start", extra={"facts": {"problem": str(error)}})
        sys.exit(3)
