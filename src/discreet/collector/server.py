"""Runs the collector: sockets, workers, signals."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from discreet.collector import limits, scratch
from discreet.collector.app import Settings, from_environment
from discreet.collector.connections import TimedProtocol
from discreet.collector.lan import OwnCertificate
from discreet.collector.logs import LOGGING, log
from discreet.collector.store import StoreDown
from discreet.errors import DataError


def listen(host: str, port: int, patience: float = 0.0) -> socket.socket:
    """Open a listening socket, or raise a DataError that says why not.

    A port that is in use is tried again for `patience` seconds: the workers of a killed collector
    hold it for a moment longer.
    """
    end, announced = time.monotonic() + patience, False
    while True:
        try:
            return _listening(host, port)
        except (OSError, UnicodeError, OverflowError) as error:
            if getattr(error, "errno", None) != errno.EADDRINUSE or time.monotonic() >= end:
                reason = getattr(error, "strerror", None) or str(error)
                raise DataError(
                    f"cannot listen on {host} port {port}: {reason}; choose another with --host "
                    "and --port"
                ) from None
        if not announced:
            announced = True
            message = f"port {port} is in use; trying again for {patience:.0f} seconds"
            print(message, file=sys.stderr, flush=True)
        time.sleep(0.1)


def _listening(host: str, port: int) -> socket.socket:
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind, proto)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(limits.BACKLOG)  # now: another process could bind the same port until then
    except BaseException:
        sock.close()
        raise
    sock.set_inheritable(True)
    return sock


def run(
    store: str,
    sock: socket.socket,
    workers: int = 1,
    open_results: bool = False,
    public_url: str = "",
    certificate: OwnCertificate | None = None,
    frame_ancestors: tuple[str, ...] = (),
    temporary: bool = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C. Requests in flight are finished first; every acknowledged
    report is durable.
    """
    # uvicorn raises the signal again after it has finished everything
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with scratch.folder("counters") as counters:
        settings = Settings(store, counters, open_results, public_url, frame_ancestors, temporary)
        os.environ["DISCREET_COLLECTOR"] = json.dumps(asdict(settings))
        config = uvicorn.Config(
            "discreet.collector.server:application",
            factory=True,
            workers=workers,
            http=TimedProtocol,
            ws="none",
            lifespan="on",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_config=LOGGING,
            log_level="warning",
            ssl_certfile=certificate.cert if certificate else None,
            ssl_keyfile=certificate.key if certificate else None,
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
    """Wait a second in which a signal stops us at once: uvicorn's handlers would only note it."""
    handlers = {
        number: signal.signal(number, lambda *_: os._exit(0))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    time.sleep(limits.RESTART)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def application() -> ASGIApp:
    """Make one worker's application. The worker ends when its supervisor does."""
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
            except StoreDown as error:  # start as soon as the store is back
                log.error("store", extra={"facts": {"problem": str(error)}})
                _pause()
    except DataError as error:
        log.error("cannot start", extra={"facts": {"problem": str(error)}})
        sys.exit(STARTUP_FAILURE)
