"""The server's side: reports become a Tally. Tallies add up exactly, in any order."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays.base import BlockCoder, Gathered
from discreet.arrays.rows import as_rows, as_times
from discreet.arrays.threads import run_blocks
from discreet.arrays.types import Bytes, Ints, Reports
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.sniff import read_json

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate

FORMAT = "discreet-tally/2"
MOST = 2**62  # reports that a tally can hold


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of reports of every part, and how many of them name every item.

    `refused` counts the rows that are not reports, by reason.

    >>> import discreet as d
    >>> policy = d.Policy.from_levels([("all", "ln(9)", ["tea", "coffee", "water"])])
    >>> mechanism = d.design(policy, "rappor")  # a report has one bit per item
    >>> tea, tea_and_coffee, no_report = bytes([1]), bytes([3]), bytes([255])
    >>> tally = mechanism.tally([tea, tea_and_coffee, no_report])
    >>> tally.n, tally.counts.tolist(), tally.refused
    (2, [[2, 1, 0]], {'tail': 1})
    """

    mechanism: Mechanism
    part_n: Ints  # reports per part
    counts: Ints  # parts x items
    refused: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, mechanism: Mechanism) -> Tally:
        """The tally of no reports, to add others to.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> one = mechanism.tally([bytes([1])])
        >>> Tally.empty(mechanism).n, Tally.empty(mechanism) + one == one
        (0, True)
        """
        k = len(mechanism.parts)
        return cls(mechanism, np.zeros(k, np.int64), np.zeros((k, mechanism.m), np.int64))

    @classmethod
    def count(
        cls,
        mechanism: Mechanism,
        reports: Reports,
        counts: object = None,
        threads: int | None = None,
    ) -> Tally:
        """Count reports: an n x report_size array of uint8, a list of bytes, or tickets as whole
        numbers.

        With `counts`, report i stands for counts[i] reports. A database that can group has these
        numbers.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> Tally.count(mechanism, [bytes([1]), bytes([3]), bytes([1])]).counts.tolist()
        [[3, 1]]
        >>> Tally.count(mechanism, [bytes([1]), bytes([3])], counts=[20, 10]).counts.tolist()
        [[30, 10]]
        """
        builder = TallyBuilder(mechanism)
        rows, times = builder.fitting(reports, counts)
        builder.expect(len(rows))

        def work(first: int, last: int) -> None:
            builder.add(rows[first:last], None if times is None else times[first:last])

        run_blocks(work, len(rows), _step(mechanism, len(rows)), threads)
        return builder.tally(threads)

    @property
    def n(self) -> int:
        """The number of reports counted.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> mechanism.tally([bytes([0]), bytes([2])]).n
        2
        """
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
        """Unbiased counts of people with standard errors.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", "ln(9)", ["a", "b"])]), "rappor")
        >>> tally = mechanism.tally([bytes([1]), bytes([2])], counts=[700, 300])
        >>> tally.estimate().counts.round().tolist()  # a bit is named with chance 3/4 or 1/4
        [900.0, 100.0]
        """
        from discreet.estimates.estimate import Estimate

        return Estimate.from_tally(self)

    # ---- bytes and files -------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The numbers as little-endian int64, part_n then counts; then `refused` as JSON.

        The bytes do not name the mechanism: keep it beside them.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> list(mechanism.tally([bytes([1]), bytes([3])]).to_bytes()[::8])  # n, tea, coffee
        [2, 2, 1]
        """
        numbers = np.concatenate((self.part_n, self.counts.ravel())).astype("<i8").tobytes()
        return numbers + (json.dumps(dict(self.refused)).encode() if self.refused else b"")

    @classmethod
    def from_bytes(cls, raw: bytes, mechanism: Mechanism) -> Tally:
        """Read the tally that `to_bytes` wrote.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> tally = mechanism.tally([bytes([1]), bytes([3])])
        >>> Tally.from_bytes(tally.to_bytes(), mechanism) == tally
        True
        """
        empty = cls.empty(mechanism)
        k, size = len(empty.part_n), 8 * (empty.part_n.size + empty.counts.size)
        if len(raw) < size:
            raise DataError(f"these are {len(raw)} bytes and no tally of this mechanism ({size})")
        numbers = np.frombuffer(raw[:size], "<i8").astype(np.int64)
        refused = json.loads(raw[size:]) if raw[size:] else {}
        return cls(mechanism, numbers[:k], numbers[k:].reshape(empty.counts.shape), refused)

    def save(self, path: str | Path) -> None:
        """Write the tally with its mechanism's fingerprint.

        >>> import discreet as d, tempfile
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> tally = mechanism.tally([bytes([1]), bytes([3])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tally.save(f"{folder}/tally.json")
        ...     Tally.load(f"{folder}/tally.json", mechanism) == tally
        True
        """
        from discreet.policy.files import write_text

        write_text(path, json.dumps(self.to_document()) + "\n")

    def to_document(self) -> dict[str, Any]:
        """The content of a tally file.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> mechanism.tally([bytes([1]), bytes([3])]).to_document()["counts"]
        [[2, 1]]
        """
        return {
            "format": FORMAT,
            "fingerprint": self.mechanism.fingerprint,
            "n": self.n,
            "part_n": self.part_n.tolist(),
            "counts": self.counts.tolist(),
            "refused": dict(self.refused),
        }

    @classmethod
    def load(cls, path: str | Path, *mechanisms: Mechanism) -> Tally:
        """Read a tally of this mechanism, or of one of these. Any other file is refused.

        >>> import discreet as d, tempfile
        >>> one, two = (
        ...     d.design(d.Policy.from_levels([("all", 1, items)]), "rappor")
        ...     for items in (["tea", "coffee"], ["cat", "dog"])
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     one.tally([bytes([1])]).save(f"{folder}/tally.json")
        ...     Tally.load(f"{folder}/tally.json", one, two).mechanism.policy.items
        ('tea', 'coffee')
        """
        return cls.from_document(read_tally_document(path, FORMAT), path, *mechanisms)

    @classmethod
    def from_document(
        cls, document: object, path: str | Path = "it", *mechanisms: Mechanism
    ) -> Tally:
        """From the content of a tally file; `path` is for messages.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> tally = mechanism.tally([bytes([1]), bytes([3])])
        >>> Tally.from_document(tally.to_document(), "tally.json", mechanism) == tally
        True
        """
        if not isinstance(document, dict):
            raise DataError(f"{path} is damaged: a part of it is missing")
        if not mechanisms:
            raise DataError("a tally is read with its mechanism: Tally.load(path, mechanism)")
        by_fingerprint = {mechanism.fingerprint: mechanism for mechanism in mechanisms}
        if document.get("fingerprint") not in by_fingerprint:
            raise DataError(f"{path} is a tally of another mechanism; its fingerprint differs")
        mechanism = by_fingerprint[document["fingerprint"]]
        try:
            part_n, counts = document["part_n"], document["counts"]
            refused, n = dict(document["refused"]), document["n"]
            numbers = [n, *part_n, *refused.values(), *(x for row in counts for x in row)]
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{path} is damaged: a part of it is missing") from None
        if any(type(x) is not int or not 0 <= x < MOST for x in numbers):
            raise DataError(f"{path} is damaged: its counts are not whole numbers from 0")
        shape = cls.empty(mechanism).counts.shape
        ok = len(part_n) == len(counts) == shape[0] and all(len(row) == shape[1] for row in counts)
        ok = ok and sum(part_n) == n
        if not ok or not mechanism.arrays.coder.adds_up(np.array(part_n), np.array(counts)):
            raise DataError(f"{path} is damaged: its counts do not belong together")
        return cls(mechanism, np.array(part_n, np.int64), np.array(counts, np.int64), refused)


def read_tally_document(path: str | Path, *formats: str) -> dict[str, Any]:
    """The document in a file of one of these formats; its numbers are not checked yet."""
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
            f"discreet tally survey.json {path} -o tally.json"
        ) from None
    written_format = document.get("format") if isinstance(document, dict) else None
    if written_format not in formats and str(written_format).startswith("discreet-weighted"):
        raise DataError(f"{path} is a weighted tally; it can be estimated, not added up")
    if written_format not in formats:
        raise DataError(f'{path} is not a tally file; make one with "discreet tally"')
    return document


Block = tuple[Bytes, Ints | None]  # rows, and how often each was seen


class TallyBuilder:
    """Counts reports as they come, from any number of threads. `tally` gives the result.

    The mechanism bounds the memory: every thread has the counts of a tally, or a histogram of
    tickets (5 bytes per possible ticket, 320 MiB at most).
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._coder: BlockCoder | None = None
        self._n: int | None = None
        self._total = 0
        # the first rows of a stream wait here until they are worth a table
        self._held: list[Block] | None = []
        self._all: list[Gathered] = []
        self._free: list[Gathered] = []
        self._refused: Counter[str] = Counter()
        self._lock = threading.Lock()

    def expect(self, n: int) -> None:
        """Say how many rows there will be, before the first. Then no rows are held back."""
        self._n, self._held = n, None

    def add(self, rows: Bytes, times: Ints | None = None) -> None:
        """Count these rows, each once or times[i] times."""
        for block in self._release(rows, times):
            self._gather(*block)

    def _gather(self, rows: Bytes, times: Ints | None) -> None:
        with self._lock:
            if self._coder is None:
                self._coder = self.mechanism.arrays.coder_for(self._n or self._total)
            coder = self._coder
            if not self._free:
                self._free.append(coder.start(self._n))
                self._all.append(self._free[-1])
            mine = self._free.pop()
        refused = coder.gather(mine, rows, times)
        with self._lock:
            self._refused.update(refused)
            self._free.append(mine)

    def _release(self, rows: Bytes, times: Ints | None) -> list[Block]:
        """The blocks to count now. The first rows of a stream of unknown length are held back,
        because a small group is not worth a histogram.
        """
        with self._lock:
            self._total += len(rows) if times is None else int(times.sum())
            if self._total >= MOST:
                raise DataError("there are more reports than can be counted, 2^62")
            if self._held is None:
                return [(rows, times)]
            self._held.append((rows, times))
            arrays = self.mechanism.arrays
            small = arrays.coder_for(self._total) is not arrays.coder
            if small or not arrays.coder.worth_a_table(self._total):
                return []
            held, self._held = self._held, None
            return held

    def fitting(self, reports: Reports, counts: object = None) -> Block:
        """The reports of the right length as rows, and how often each was seen. The others are
        refused.
        """
        rows, good = as_rows(self.mechanism, reports)
        if counts is None:
            self.refuse("length", len(good) - len(rows))
            return rows, None
        times = as_times(counts, len(good))
        self.refuse("length", int(times[~good].sum()))
        return rows, times[good]

    def refuse(self, reason: str, count: int) -> None:
        """Note that `count` rows are not reports."""
        with self._lock:
            self._refused[reason] += count

    def tally(self, threads: int | None = None) -> Tally:
        """The tally of all rows. Add nothing after this."""
        if self._held:
            self._n = self._total
            for block in self._held:
                self._gather(*block)
            self._held = None
        coder = self._coder or self.mechanism.arrays.coder
        total = coder.settle(self._all, threads)
        return Tally(self.mechanism, total.part_n, total.counts, dict(+self._refused))


def _step(mechanism: Mechanism, n: int) -> int:
    """Rows per block: enough work that reading off the counters and adding tallies cost little."""
    least, most = mechanism.arrays.coder.block
    return max(256, least, min(most, -(-n // 8)))
