"""The server's side: reports -> Tally. Tallies add up, exactly, in any order."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.encodings import Bytes
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.texts import read_json
from discreet.threads import run_blocks

if TYPE_CHECKING:
    from discreet.estimate import Estimate

FORMAT = "discreet-tally/2"


@dataclass(frozen=True, eq=False)
class Tally:
    """Number of reports of every part, and how many name every item; `refused` counts what was not
    a report, by reason.
    """

    mechanism: Mechanism
    part_n: NDArray[np.int64]  # reports per part
    counts: NDArray[np.int64]  # parts x items
    refused: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, mechanism: Mechanism) -> Tally:
        """The tally of no reports."""
        k = len(mechanism.parts)
        return cls(mechanism, np.zeros(k, np.int64), np.zeros((k, mechanism.m), np.int64))

    @classmethod
    def of(
        cls, mechanism: Mechanism, reports: Any, counts: Any = None, threads: int | None = None
    ) -> Tally:
        """Count reports: an n x report_size array of uint8, a list of bytes, or tickets as whole
        numbers. With `counts` every report stands for so many: what any database that can group
        has already counted.
        """
        counting = Counting(mechanism)
        rows, times = counting.fitting(reports, counts)
        counting.expect(len(rows))

        def work(first: int, last: int) -> None:
            counting.add(rows[first:last], None if times is None else times[first:last])

        run_blocks(work, len(rows), _step(mechanism, len(rows)), threads)
        return counting.tally(threads)

    @property
    def n(self) -> int:
        """Number of reports counted."""
        return int(self.part_n.sum())

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if other.mechanism.fingerprint != self.mechanism.fingerprint:
            raise DataError(
                "tallies of different mechanisms cannot be added; their fingerprints differ"
            )
        refused = dict(Counter(self.refused) + Counter(other.refused))
        return Tally(
            self.mechanism, self.part_n + other.part_n, self.counts + other.counts, refused
        )

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and self.mechanism.fingerprint == other.mechanism.fingerprint
            and np.array_equal(self.part_n, other.part_n)
            and np.array_equal(self.counts, other.counts)
            and dict(self.refused) == dict(other.refused)
        )

    def estimate(self) -> Estimate:
        """Unbiased counts of people with standard errors."""
        from discreet.estimate import Estimate

        return Estimate.of(self)

    # ---- bytes and files -------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The numbers as little-endian int64, part_n then counts; what was refused behind them as
        JSON. For who knows the mechanism: no fingerprint is in it.
        """
        numbers = np.concatenate((self.part_n, self.counts.ravel())).astype("<i8").tobytes()
        return numbers + (json.dumps(dict(self.refused)).encode() if self.refused else b"")

    @classmethod
    def from_bytes(cls, raw: bytes, mechanism: Mechanism) -> Tally:
        """The tally that `to_bytes` wrote."""
        empty = cls.empty(mechanism)
        k, size = len(empty.part_n), 8 * (empty.part_n.size + empty.counts.size)
        numbers = np.frombuffer(raw[:size], "<i8").astype(np.int64)
        refused = json.loads(raw[size:]) if raw[size:] else {}
        return cls(mechanism, numbers[:k], numbers[k:].reshape(empty.counts.shape), refused)

    def save(self, path: str | Path) -> None:
        """Write the tally with its mechanism's fingerprint."""
        from discreet.files import write_text

        document = {
            "format": FORMAT,
            "fingerprint": self.mechanism.fingerprint,
            "n": self.n,
            "part_n": self.part_n.tolist(),
            "counts": self.counts.tolist(),
            "refused": dict(self.refused),
        }
        write_text(path, json.dumps(document) + "\n")

    @classmethod
    def load(cls, path: str | Path, *mechanisms: Mechanism) -> Tally:
        """Read a tally of this mechanism, or of one of these; anything else is refused with a
        sentence.
        """
        try:
            raw = Path(path).read_bytes()
            document = read_json(raw.decode())
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            if raw.lstrip().startswith(b"{"):
                raise DataError(
                    f"{path} is a damaged tally: its JSON is cut off or was changed; bring back a "
                    "copy, or count the reports again"
                ) from None
            raise DataError(
                f"{path} is not a tally, which is JSON; reports are counted into one with: "
                f"discreet tally mechanism.json {path} -o tally.json"
            ) from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise DataError(f'{path} is not a tally file; make one with "discreet tally"')
        if not mechanisms:
            raise DataError("a tally is read with its mechanism: Tally.load(path, mechanism)")
        known = {mechanism.fingerprint: mechanism for mechanism in mechanisms}
        if document.get("fingerprint") not in known:
            raise DataError(f"{path} is a tally of another mechanism; its fingerprint differs")
        mechanism = known[document["fingerprint"]]
        try:
            part_n, counts, refused = (
                document["part_n"],
                document["counts"],
                dict(document["refused"]),
            )
            numbers = [
                document["n"],
                *part_n,
                *refused.values(),
                *(x for row in counts for x in row),
            ]
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{path} is damaged: a part of it is missing") from None
        if any(type(x) is not int or not 0 <= x < 2**62 for x in numbers):
            raise DataError(f"{path} is damaged: its counts are not whole numbers from 0")
        shape = cls.empty(mechanism).counts.shape
        ok = len(part_n) == len(counts) == shape[0] and all(len(row) == shape[1] for row in counts)
        ok = ok and sum(part_n) == document["n"]
        if not ok or not mechanism.coder.adds_up(np.array(part_n), np.array(counts)):
            raise DataError(f"{path} is damaged: its counts do not belong together")
        return cls(mechanism, np.array(part_n, np.int64), np.array(counts, np.int64), refused)


def join(tallies: dict[Any, Tally], more: Mapping[Any, Tally]) -> None:
    """Add tallies by group to those there are."""
    for group, tally in more.items():
        tallies[group] = tallies[group] + tally if group in tallies else tally


def group_name(group: Any) -> str:
    """A group as people read it: the value of its column, or its values where there are several.

    >>> group_name("north"), group_name(("north", 30))
    ('north', 'north, 30')
    """
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def save_groups(tallies: Mapping[Any, Tally], folder: str | Path) -> None:
    """One file per group."""
    names = {group: re.sub(r"[^\w.-]", "_", group_name(group)) for group in tallies}
    seen: dict[str, Any] = {}
    for group, name in names.items():
        if name in seen:
            raise DataError(
                f'the groups "{group_name(seen[name])}" and "{group_name(group)}" would have the '
                "same file name; rename one"
            )
        seen[name] = group
    Path(folder).mkdir(parents=True, exist_ok=True)
    left = sorted(path.stem for path in Path(folder).glob("*.json") if path.stem not in seen)
    if left:
        raise DataError(
            f"{folder} holds the tally of another group, {left[0]}.json: who adds up the folder "
            "would count people twice; empty it or name another folder"
        )
    for group, tally in tallies.items():
        tally.save(Path(folder) / f"{names[group]}.json")


class Counting:
    """Counts reports as they come, from any number of threads; `tally` reads it off at the end.

    Memory is bounded by the mechanism: per thread the counts of a tally, or of tickets a histogram
    (5 bytes per ticket that there is, 320 MiB at most).
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._n: int | None = None
        self._total = 0
        # of a stream: what is held back until it is worth a table
        self._held: list[tuple[Bytes, NDArray[np.int64] | None]] | None = []
        self._all: list[Any] = []
        self._free: list[Any] = []
        self._refused: Counter[str] = Counter()
        self._lock = threading.Lock()

    def expect(self, n: int) -> None:
        """Say how many rows there will be, before the first; nothing is held back then."""
        self._n, self._held = n, None

    def add(self, rows: Bytes, times: NDArray[np.int64] | None = None) -> None:
        """Count these rows, each once or so many times."""
        for some in self._enough(rows, times):
            self._gather(*some)

    def _gather(self, rows: Bytes, times: NDArray[np.int64] | None) -> None:
        coder = self.mechanism.coder
        with self._lock:
            if not self._free:
                self._free.append(coder.start(self._n))
                self._all.append(self._free[-1])
            mine = self._free.pop()
        refused = coder.gather(mine, rows, times)
        with self._lock:
            self._refused.update(refused)
            self._free.append(mine)

    def _enough(self, rows: Bytes, times: NDArray[np.int64] | None) -> list[Any]:
        """What is to be counted now. The first reports of a stream of unknown length are held back:
        a group of few is not worth a histogram. The total is watched over.
        """
        many = len(rows) if times is None else int(times.sum())
        with self._lock:
            self._total += many
            if self._total >= 2**62:
                raise DataError("there are more reports than can be counted, 2^62")
            if self._held is None:
                return [(rows, times)]
            self._held.append((rows, times))
            if not self.mechanism.coder.worth_a_table(self._total):
                return []
            held, self._held = self._held, None
            return held

    def fitting(self, reports: Any, counts: Any = None) -> tuple[Bytes, Any]:
        """Those of these reports that have the right length, as rows, and how often each was seen;
        the others are refused.
        """
        rows, good = as_rows(self.mechanism, reports)
        if counts is None:
            self.refuse("length", len(good) - len(rows))
            return rows, None
        times = as_times(counts, len(good))
        self.refuse("length", int(times[~good].sum()))
        return rows, times[good]

    def refuse(self, reason: str, count: int) -> None:
        """So many were not reports."""
        with self._lock:
            self._refused[reason] += count

    def tally(self, threads: int | None = None) -> Tally:
        """What was counted; nothing is added after this."""
        if self._held:
            self._n = self._total
            for some in self._held:
                self._gather(*some)
            self._held = None
        part_n, counts = self.mechanism.coder.settle(self._all, threads)
        return Tally(self.mechanism, part_n, counts, dict(+self._refused))


def as_rows(mechanism: Mechanism, reports: Any) -> tuple[Bytes, NDArray[np.bool_]]:
    """Reports that have the right length as rows of an n x report_size array, and which ones
    they are.
    """
    size = mechanism.report_size
    if isinstance(reports, bytes | bytearray | memoryview):
        raise DataError(
            "reports are a list of bytes or an array with one row per report; put a single one in "
            "a list"
        )
    if isinstance(reports, np.ndarray):
        if mechanism.encoding.number and reports.ndim == 1 and reports.dtype.kind in "iu":
            if reports.dtype == np.uint32:
                rows = np.ascontiguousarray(reports, "<u4").view(np.uint8).reshape(-1, 4)
                return rows, np.ones(len(reports), bool)
            good = (reports >= 0) & (reports < 2**32)
            return reports[good].astype("<u4").view(np.uint8).reshape(-1, 4), good
        if reports.dtype != np.uint8 or reports.ndim != 2:
            raise DataError(
                f"an array of reports is n x {size} of uint8, got {reports.ndim} dimensions of "
                f"{reports.dtype}"
            )
        fits = reports.shape[1] == size
        rows = reports if fits else np.empty((0, size), np.uint8)
        return rows, np.full(len(reports), fits)
    if isinstance(reports, Iterable) and not isinstance(reports, str):
        listed = [_bytes(report) for report in reports]
        good = np.array([len(report) == size for report in listed], bool)
        joined = b"".join(report for report in listed if len(report) == size)
        return np.frombuffer(joined, np.uint8).reshape(-1, size), good
    raise DataError(
        "reports are a list of bytes or an array with one row per report, got "
        f"{type(reports).__name__}"
    )


def as_times(counts: Any, n: int) -> NDArray[np.int64]:
    """How many times each of n reports was seen, validated."""
    times = np.asarray(counts)
    if times.shape != (n,) or (n and times.dtype.kind not in "iu"):
        raise DataError(f"counts are one whole number for each of the {n:,} reports")
    if n and (int(times.min()) < 0 or float(times.astype(float).sum()) >= 2**62):
        raise DataError("counts are whole numbers from 0, and their sum is below 2^62")
    return times.astype(np.int64)


def _bytes(report: Any) -> bytes:
    if isinstance(report, bytes | bytearray | memoryview) or (
        isinstance(report, np.ndarray) and report.dtype == np.uint8
    ):
        return bytes(report)
    raise DataError(f"a report is bytes, got {type(report).__name__}")


def _step(mechanism: Mechanism, n: int) -> int:
    """Rows per block: some milliseconds of work, so that reading off the counters and adding
    tallies hardly show.
    """
    least, most = mechanism.coder.block
    return max(256, least, min(most, -(-n // 8)))
