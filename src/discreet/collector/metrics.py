"""Counters in the format of Prometheus, added up over the workers of a machine. They count; they
know nothing of anyone.
"""

from __future__ import annotations

import mmap
import os
import struct
from bisect import bisect_left
from pathlib import Path

from discreet.collector.problems import UPLOAD, refusals_of

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
REFUSALS = tuple(refusals_of(UPLOAD))
_EDGES = [*map(str, BUCKETS), "+Inf"]
_NAMES = (
    "accepted",
    "duplicate",
    *(f"refused:{reason}" for reason in REFUSALS),
    *(f"le:{edge}" for edge in _EDGES),
)
_PLACE = {name: k for k, name in enumerate(_NAMES)}
_FIRST = _PLACE[f"le:{_EDGES[0]}"]
_SIZE = 8 * (len(_NAMES) + 1)  # the last number is the sum of the latencies in microseconds


class Metrics:
    """One worker's counters, in a small file that the other workers can read; `folder` is theirs
    together.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        path = self._folder / f"{os.getpid()}.counters"
        path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._numbers = memoryview(mmap.mmap(file.fileno(), _SIZE)).cast("q")

    def _add(self, place: int, count: int) -> None:
        self._numbers[place] += count

    def accepted(self, accepted: int, duplicates: int, seconds: float) -> None:
        """An upload that was counted."""
        self._add(_PLACE["accepted"], accepted)
        self._add(_PLACE["duplicate"], duplicates)
        self._add(_FIRST + bisect_left(BUCKETS, seconds), 1)
        self._add(len(_NAMES), round(seconds * 1e6))

    def refused(self, reason: str) -> None:
        """An upload that was not."""
        self._add(_PLACE[f"refused:{reason}"], 1)

    def text(self) -> str:
        """All workers' counters, those of workers that have died included."""
        total = [0] * (len(_NAMES) + 1)
        for path in self._folder.glob("*.counters"):
            raw = path.read_bytes()
            if len(raw) == _SIZE:
                total = [
                    a + b for a, b in zip(total, struct.unpack(f"={len(total)}q", raw), strict=True)
                ]
        lines = []
        for name, meaning in (
            ("accepted", "Reports counted."),
            ("duplicate", "Reports that had been counted before."),
        ):
            lines += [
                f"# HELP discreet_reports_{name}_total {meaning}",
                f"# TYPE discreet_reports_{name}_total counter",
            ]
            lines.append(f"discreet_reports_{name}_total {total[_PLACE[name]]}")
        lines += [
            "# HELP discreet_uploads_refused_total Uploads refused whole.",
            "# TYPE discreet_uploads_refused_total counter",
        ]
        lines += [
            f'discreet_uploads_refused_total{{reason="{r}"}} {total[_PLACE[f"refused:{r}"]]}'
            for r in REFUSALS
        ]
        lines += [
            "# HELP discreet_upload_seconds Time until an upload was durable.",
            "# TYPE discreet_upload_seconds histogram",
        ]
        running = 0
        for edge in _EDGES:
            running += total[_PLACE[f"le:{edge}"]]
            lines.append(f'discreet_upload_seconds_bucket{{le="{edge}"}} {running}')
        lines += [
            f"discreet_upload_seconds_sum {total[-1] / 1e6}",
            f"discreet_upload_seconds_count {running}",
        ]
        return "\n".join(lines) + "\n"
