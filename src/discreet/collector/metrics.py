"""Counters in the format of Prometheus, added up over the workers of a machine. They count; they
know nothing of anyone.

Every worker writes small files into one folder: a file of its own, and one for every collection
that it has counted for. A file is eight bytes per number, then the collection's name. A worker
holds a lock on its files for as long as it lives: of those that have died the counters stay, but
not what is so now.
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
from discreet.collector.problems import UPLOAD, refusals_of

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
REFUSALS = tuple(refusals_of(UPLOAD))
_EDGES = [*map(str, BUCKETS), "+Inf"]
_COUNTED = (
    "accepted",
    "duplicate",
    *(f"refused:{reason}" for reason in REFUSALS),
    *(f"le:{edge}" for edge in _EDGES),
    "microseconds",  # the sum of the latencies
    "store errors",
)
_NOW = ("connections", "uploads", "bytes")
_PLACE = {name: k for k, name in enumerate((*_COUNTED, *_NOW, "started"))}
_FIRST = _PLACE[f"le:{_EDGES[0]}"]
_SIZE = 8 * len(_PLACE)
_END = ".counters"


class State(NamedTuple):
    """What the store knows of a collection; `reports` is None where it cannot be read."""

    name: str
    open: bool
    reports: int | None


class _File:
    """The numbers of a living worker, or of one collection there."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self._handle, _ = tempfile.mkstemp(_END, f"{os.getpid()}-", folder)
        fcntl.flock(self._handle, fcntl.LOCK_EX)  # before it has a size, so nobody reads it yet
        content = bytes(_SIZE) + name.encode()
        if os.write(self._handle, content) < len(content):
            raise OSError("there is no room")  # what is mapped must be there
        self._numbers = memoryview(mmap.mmap(self._handle, _SIZE)).cast("q")

    def add(self, what: str | int, count: int = 1) -> None:
        """Count on, by name or by place."""
        self._numbers[_PLACE[what] if isinstance(what, str) else what] += count

    def put(self, what: str, number: int) -> None:
        """Say what is so now."""
        self._numbers[_PLACE[what]] = number

    def close(self) -> None:
        """Give up the lock; the numbers stay."""
        if self._handle >= 0:
            fcntl.flock(self._handle, fcntl.LOCK_UN)  # the map has a handle of its own
            os.close(self._handle)
            self._handle = -1


class Metrics:
    """One worker's counters; `folder` is that of all workers together."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._own = _File(self._folder)
        self._own.put("started", int(time.time()))
        self._named: dict[str, _File] = {}

    def _of(self, name: str) -> _File:
        """Where to count for a collection. Names come from the store, never from who asks; beyond
        so many they are counted together, without a name.
        """
        found = self._named.get(name)
        if found is None:
            if not name or len(self._named) >= limits.LABELLED:
                return self._own
            try:
                found = self._named[name] = _File(self._folder, name)
            except OSError:  # a full disk: what was acknowledged is not refused for it
                return self._own
        return found

    def accepted(self, name: str, accepted: int, duplicates: int, seconds: float) -> None:
        """An upload to this collection that was counted."""
        file = self._of(name)
        file.add("accepted", accepted)
        file.add("duplicate", duplicates)
        self._own.add(_FIRST + bisect_left(BUCKETS, seconds))
        self._own.add("microseconds", round(seconds * 1e6))

    def refused(self, name: str, reason: str) -> None:
        """An upload that was not; no name where there is no such collection."""
        self._of(name).add(f"refused:{reason}")

    def store_failed(self) -> None:
        """A request that the store could not serve."""
        self._own.add("store errors")

    def waiting(self, uploads: int, size: int) -> None:
        """So many more uploads, and bytes of them, wait (or fewer)."""
        self._own.add("uploads", uploads)
        self._own.add("bytes", size)

    def connected(self, connections: int) -> None:
        """So many connections are open."""
        self._own.put("connections", connections)

    def close(self) -> None:
        """The worker ends: its counters stay, what is so now does not."""
        for file in (self._own, *self._named.values()):
            file.close()

    # ---- what all workers say together -----------------------------------------------------------

    def _files(self) -> Iterator[tuple[str, list[int], bool]]:
        """Every file: its collection's name, its numbers, whether its worker lives."""
        for path in self._folder.glob(f"*{_END}"):
            with suppress(FileNotFoundError), path.open("rb") as file:
                raw, lives = file.read(), False
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    lives = True
                if len(raw) >= _SIZE:  # else the worker has just begun it
                    numbers = list(struct.unpack(f"={len(_PLACE)}q", raw[:_SIZE]))
                    yield raw[_SIZE:].decode(), numbers, lives

    def text(self, states: Iterable[State] = (), ready: bool = True) -> str:
        """All workers' counters, and the collections as the store has them."""
        totals: dict[str, list[int]] = {"": [0] * len(_PLACE)}
        now, dead, started = [0] * len(_NOW), 0, int(time.time())
        for name, numbers, lives in self._files():
            before = totals.get(name, [0] * len(_PLACE))
            totals[name] = [a + b for a, b in zip(before, numbers, strict=True)]
            if not name:
                dead += not lives
                started = min(started, numbers[_PLACE["started"]])
                if lives:
                    now = [a + numbers[_PLACE[b]] for a, b in zip(now, _NOW, strict=True)]
        known = list(states)
        for state in known:
            totals.setdefault(state.name, [0] * len(_PLACE))
        lines = [*_of_collections(totals), *_of_states(known)]
        for (name, meaning), value in zip(_GAUGES, (*now, started, int(ready)), strict=True):
            lines += _family(name, "gauge", meaning, [("", value)])
        for (name, meaning), value in zip(
            _TOTALS, (dead, totals[""][_PLACE["store errors"]]), strict=True
        ):
            lines += _family(name, "counter", meaning, [("", value)])
        return "\n".join([*lines, *_latencies(totals[""])]) + "\n"


_GAUGES = (
    ("discreet_connections", "Connections that are open now."),
    ("discreet_uploads_waiting", "Uploads that wait until they are durable."),
    ("discreet_uploads_waiting_bytes", "Bytes of uploads that are not answered yet."),
    ("process_start_time_seconds", "When the collector was started, in seconds since 1970."),
    ("discreet_ready", "Whether a report could be counted now: 1 or 0."),
)
_TOTALS = (
    ("discreet_worker_restarts_total", "Workers that ended and were replaced."),
    ("discreet_store_errors_total", "Requests that the store could not serve."),
)


def _family(
    name: str, kind: str, meaning: str, samples: Iterable[tuple[str, float]]
) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    yield from (f"{name}{labels} {value}" for labels, value in samples)


def _labels(**labels: str) -> str:
    """Labels, escaped as Prometheus asks."""
    said = (
        (name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in labels.items()
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in said) + "}"


def _of_collections(totals: dict[str, list[int]]) -> Iterator[str]:
    """What was counted and refused, by collection; without a name, what belongs to none."""
    ordered = sorted(totals.items())
    for what, meaning in (
        ("accepted", "Reports counted."),
        ("duplicate", "Reports that had been counted before."),
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


def _of_states(states: list[State]) -> Iterator[str]:
    labelled = [(_labels(collection=state.name), state) for state in states]
    there = [(label, s.reports) for label, s in labelled if s.reports is not None]
    yield from _family("discreet_collection_reports", "gauge", "Reports in the store.", there)
    is_open = [(label, int(s.open)) for label, s in labelled]
    meaning = "Whether it takes reports: 1 or 0."
    yield from _family("discreet_collection_open", "gauge", meaning, is_open)


def _latencies(total: list[int]) -> Iterator[str]:
    name, running = "discreet_upload_seconds", 0
    yield from _family(name, "histogram", "Time until an upload was durable.", [])
    for edge in _EDGES:
        running += total[_PLACE[f"le:{edge}"]]
        yield f"{name}_bucket{_labels(le=edge)} {running}"
    yield f"{name}_sum {total[_PLACE['microseconds']] / 1e6}"
    yield f"{name}_count {running}"
