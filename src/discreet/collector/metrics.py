"""Counters in the format of Prometheus, added up over the workers of a machine. They hold counts
and no personal data.

Every worker writes small files into one folder: one for itself, and one for every collection that
it has counted for. A file is eight bytes per number, then the collection's name. A worker holds a
lock on its files while it lives. The counters of dead workers are still added up; their gauges
(connections, waiting uploads) are not.

Why not prometheus_client: its multi-process mode takes seven times as long per upload, knows no
dead workers unless it is told, and kills the worker (SIGBUS) when the disk is full, because it maps
files that have no blocks yet.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from discreet.collector import limits
from discreet.collector.problems import UPLOAD, list_refusals

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
REFUSALS = tuple(list_refusals(UPLOAD))
_EDGES = [*map(str, BUCKETS), "+Inf"]
_COUNTERS = (
    "accepted",
    "duplicate",
    *(f"refused:{reason}" for reason in REFUSALS),
    *(f"le:{edge}" for edge in _EDGES),
    "microseconds",  # the sum of the latencies
    "store errors",
)
_LIVE_GAUGES = ("connections", "uploads", "bytes")
_PLACE = {name: k for k, name in enumerate((*_COUNTERS, *_LIVE_GAUGES, "started"))}
_FIRST_BUCKET = _PLACE[f"le:{_EDGES[0]}"]
_SIZE = 8 * len(_PLACE)
_SUFFIX = ".counters"


class State(NamedTuple):
    """A collection in the store; `reports` is None if they cannot be read."""

    name: str
    open: bool
    reports: int | None


class _File:
    """The numbers of one worker: for one collection, or for no collection in particular."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self._handle, _ = tempfile.mkstemp(_SUFFIX, f"{os.getpid()}-", folder)
        fcntl.flock(self._handle, fcntl.LOCK_EX)  # while it is empty, which readers skip
        content = bytes(_SIZE) + name.encode()
        if os.write(self._handle, content) < len(content):
            raise OSError("the disk is full")  # writing to a map without blocks would kill us
        self._numbers = memoryview(mmap.mmap(self._handle, _SIZE)).cast("q")

    def add(self, what: str | int, count: int = 1) -> None:
        """Add to a number, by name or by place."""
        self._numbers[_PLACE[what] if isinstance(what, str) else what] += count

    def put(self, what: str, number: int) -> None:
        """Set a number."""
        self._numbers[_PLACE[what]] = number

    def close(self) -> None:
        """Release the lock; the numbers stay."""
        if self._handle >= 0:
            fcntl.flock(self._handle, fcntl.LOCK_UN)  # the map has its own handle
            os.close(self._handle)
            self._handle = -1


class Metrics:
    """One worker's counters; all workers share the `folder`."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._own = _File(self._folder)
        self._own.put("started", int(time.time()))
        self._named: dict[str, _File] = {}

    def _file(self, name: str) -> _File:
        """The file of a collection. Names come from the store, never from a request. Only the first
        `limits.LABELLED` collections have a file; the others are counted together, without a name.
        """
        file = self._named.get(name)
        if file is None:
            if not name or len(self._named) >= limits.LABELLED:
                return self._own
            try:
                file = self._named[name] = _File(self._folder, name)
            except OSError:  # a full disk must not fail an upload that is already durable
                return self._own
        return file

    def accepted(self, name: str, accepted: int, duplicates: int, seconds: float) -> None:
        """Count an upload that was accepted, and how long it took."""
        file = self._file(name)
        file.add("accepted", accepted)
        file.add("duplicate", duplicates)
        self._own.add(_FIRST_BUCKET + bisect_left(BUCKETS, seconds))
        self._own.add("microseconds", round(seconds * 1e6))

    def refused(self, name: str, reason: str) -> None:
        """Count an upload that was refused; the name is empty if there is no such collection."""
        self._file(name).add(f"refused:{reason}")

    def store_failed(self) -> None:
        """Count a request that failed because of the store."""
        self._own.add("store errors")

    def waiting(self, uploads: int, size: int) -> None:
        """Add to the number of waiting uploads and their bytes, or subtract."""
        self._own.add("uploads", uploads)
        self._own.add("bytes", size)

    def connected(self, connections: int) -> None:
        """Set the number of open connections."""
        self._own.put("connections", connections)

    def close(self) -> None:
        """Mark this worker as ended: its counters stay, its gauges no longer count."""
        for file in (self._own, *self._named.values()):
            file.close()

    # ---- all workers together --------------------------------------------------------------------

    def _files(self) -> Iterator[tuple[str, list[int], bool]]:
        """Every file: the name of its collection, its numbers, whether its worker is alive."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            with suppress(FileNotFoundError), path.open("rb") as file:
                raw, alive = file.read(), False
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    alive = True
                if len(raw) >= _SIZE:  # else the worker has just created it
                    numbers = list(struct.unpack(f"={len(_PLACE)}q", raw[:_SIZE]))
                    yield raw[_SIZE:].decode(), numbers, alive

    def text(self, states: Iterable[State] = (), ready: bool = True) -> str:
        """The counters of all workers, and the state of these collections."""
        totals: dict[str, list[int]] = {"": [0] * len(_PLACE)}
        live, dead, started = [0] * len(_LIVE_GAUGES), 0, int(time.time())
        for name, numbers, alive in self._files():
            before = totals.get(name, [0] * len(_PLACE))
            totals[name] = [a + b for a, b in zip(before, numbers, strict=True)]
            if not name:
                dead += not alive
                started = min(started, numbers[_PLACE["started"]])
                if alive:
                    live = [a + numbers[_PLACE[b]] for a, b in zip(live, _LIVE_GAUGES, strict=True)]
        states = list(states)
        for state in states:
            totals.setdefault(state.name, [0] * len(_PLACE))
        lines = [*_collection_counters(totals), *_collection_gauges(states)]
        for (name, meaning), value in zip(_GAUGES, (*live, started, int(ready)), strict=True):
            lines += _family(name, "gauge", meaning, [("", value)])
        for (name, meaning), value in zip(
            _TOTALS, (dead, totals[""][_PLACE["store errors"]]), strict=True
        ):
            lines += _family(name, "counter", meaning, [("", value)])
        return "\n".join([*lines, *_latencies(totals[""])]) + "\n"


_GAUGES = (
    ("discreet_connections", "Open connections."),
    ("discreet_uploads_waiting", "Uploads that are not durable yet."),
    ("discreet_uploads_waiting_bytes", "Bytes of uploads that are not answered yet."),
    ("process_start_time_seconds", "Start of the collector, in seconds since 1970."),
    ("discreet_ready", "Whether the store takes reports now: 1 or 0."),
)
_TOTALS = (
    ("discreet_worker_restarts_total", "Workers that ended and were replaced."),
    ("discreet_store_errors_total", "Requests that failed because of the store."),
)


def _family(
    name: str, kind: str, meaning: str, samples: Iterable[tuple[str, float]]
) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    yield from (f"{name}{labels} {value}" for labels, value in samples)


def _labels(**labels: str) -> str:
    """Labels, escaped as the format demands."""
    escaped = (
        (name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in labels.items()
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def _collection_counters(totals: dict[str, list[int]]) -> Iterator[str]:
    """Reports and refusals by collection; the empty name has those of no collection."""
    ordered = sorted(totals.items())
    for what, meaning in (
        ("accepted", "Reports counted."),
        ("duplicate", "Reports that were already counted."),
    ):
        samples = [(_labels(collection=name), n[_PLACE[what]]) for name, n in ordered]
        yield from _family(f"discreet_reports_{what}_total", "counter", meaning, samples)
    refused = [
        (_labels(collection=name, reason=reason), n[_PLACE[f"refused:{reason}"]])
        for name, n in ordered
        for reason in REFUSALS
    ]
    yield from _family(
        "discreet_uploads_refused_total", "counter", "Uploads refused whole.", refused
    )


def _collection_gauges(states: list[State]) -> Iterator[str]:
    labelled = [(_labels(collection=state.name), state) for state in states]
    reports = [(label, s.reports) for label, s in labelled if s.reports is not None]
    yield from _family("discreet_collection_reports", "gauge", "Reports in the store.", reports)
    is_open = [(label, int(s.open)) for label, s in labelled]
    meaning = "Whether the collection takes reports: 1 or 0."
    yield from _family("discreet_collection_open", "gauge", meaning, is_open)


def _latencies(total: list[int]) -> Iterator[str]:
    name, running = "discreet_upload_seconds", 0
    yield from _family(name, "histogram", "Time until an upload was durable.", [])
    for edge in _EDGES:
        running += total[_PLACE[f"le:{edge}"]]
        yield f"{name}_bucket{_labels(le=edge)} {running}"
    yield f"{name}_sum {total[_PLACE['microseconds']] / 1e6}"
    yield f"{name}_count {running}"
