"""Counting uploads into the tally of a collection, and reading what was counted.

A tally is large if there are many items, and one report must not write it anew: reports are pending
in a table of their own, and are counted into the tally when there are enough of them. Every reader
counts the pending ones, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.tally import Tally, TallyBuilder
from discreet.collector import limits
from discreet.collector.checksums import checked, with_checksum
from discreet.collector.database import Database
from discreet.collector.records import Collection, Outcome, StoreDamaged, Upload
from discreet.collector.tables import ReportTables
from discreet.errors import DataError
from discreet.mechanism import Mechanism


class Counts:
    """Ids, reports and tallies of collections, inside a transaction of the caller."""

    def __init__(self, database: Database) -> None:
        self._database, self.tables = database, ReportTables(database)
        self._pending_bytes: dict[int, int] = {}  # by key, as far as this process knows

    def forget(self) -> None:
        """Look at the pending reports again before the next ones are added."""
        self._pending_bytes.clear()

    # ---- writing ---------------------------------------------------------------------------------

    def begin(self, collection: Collection, tally: Tally) -> None:
        """Give a new collection this tally."""
        self.tables.insert_tally(collection.key, with_checksum(tally.to_bytes()))

    def add(self, collection: Collection, uploads: Sequence[Upload]) -> list[Outcome]:
        """Count the uploads. The first report of every id counts, all others are duplicates."""
        rows = (
            uploads[0].rows
            if len(uploads) == 1
            else np.concatenate([upload.rows for upload in uploads])
        )
        place: dict[bytes, int] = {}  # the row of every id's first report
        for k, id_ in enumerate(id_ for upload in uploads for id_ in upload.ids):
            place.setdefault(id_, k)
        ids = sorted(place)
        kept = [rows[place[id_]].tobytes() for id_ in ids] if collection.keep == "reports" else None
        old = self._database.insert_reports(collection.key, ids, kept)
        fresh = [k for id_, k in place.items() if id_ not in old]
        if len(fresh) < len(rows):
            rows = rows[fresh]
        if len(rows):
            self._add_pending(collection, rows)
        if len(fresh) == sum(len(upload.ids) for upload in uploads):
            return [Outcome(len(upload.ids), 0) for upload in uploads]
        return _outcomes(uploads, old)

    def _add_pending(self, collection: Collection, rows: NDArray[np.uint8]) -> None:
        """Keep these reports for later; sorted, so that nothing says which came first. An Upload
        is checked when it is read (uploads.py), and the counting in `tally` notices damage.
        """
        key, mechanism = collection.key, collection.mechanism
        before = self._pending_bytes.get(key)
        if before is None:  # another process may have left some
            before = self._check_pending(collection)
        reports = b"".join(sorted(row.tobytes() for row in rows))
        self.tables.add_pending(key, with_checksum(reports))
        pending = self._pending_bytes[key] = before + rows.size
        marks = pending // mechanism.report_size * mechanism.m
        if (
            pending >= max(limits.PENDING_SIZE, _tally_size(mechanism))
            or marks >= limits.PENDING_MARKS
        ):
            self.count_pending(collection)

    def _check_pending(self, collection: Collection) -> int:
        """How many bytes are pending; StoreDamaged if they or the tally are not as they were
        written. Nothing is acknowledged into a collection before this was looked at.
        """
        self.counted_tally(collection)
        return len(self._pending(collection))

    def count_pending(self, collection: Collection) -> None:
        """Count the pending reports into the tally."""
        self._write_tally(collection, self.tally(collection))
        self.tables.delete_pending(collection.key)
        self._pending_bytes[collection.key] = 0

    def _write_tally(self, collection: Collection, tally: Tally) -> None:
        """Without the pending reports."""
        self.tables.write_tally(collection.key, with_checksum(tally.to_bytes()))

    def publish(self, collection: Collection, tally: Tally) -> None:
        """Let anyone see this tally."""
        self.tables.write_published(collection.key, with_checksum(tally.to_bytes()))

    def erase(self, collection: Collection) -> None:
        """Leave an empty tally and nothing else."""
        self._write_tally(collection, Tally.empty(collection.mechanism))
        self.tables.erase(collection.key)

    # ---- reading ---------------------------------------------------------------------------------

    def tally(self, collection: Collection) -> Tally:
        """The whole tally, with the pending reports; StoreDamaged if one of them is not a report
        of this mechanism, so that it never reaches a stored tally.
        """
        mechanism = collection.mechanism
        try:
            tally, pending = self.counted_tally(collection), self._pending(collection)
            if not pending:
                return tally
            rows = np.frombuffer(pending, np.uint8).reshape(-1, mechanism.report_size)
            added = mechanism.tally(rows, threads=1)
            if added.refused:
                raise StoreDamaged(
                    "some pending reports are not reports of this mechanism; bring back a copy of "
                    "the store"
                )
        except StoreDamaged:
            self._pending_bytes.pop(collection.key, None)  # so that the next writer looks, too
            raise
        return tally + added

    def counted_tally(self, collection: Collection) -> Tally:
        """The tally without the pending reports."""
        return _read_tally(self.tables.tally(collection.key), collection.mechanism)

    def published(self, collection: Collection) -> bytes | None:
        """What was published, as it is stored; None if nothing was."""
        return self.tables.published(collection.key)

    def published_tally(self, collection: Collection) -> Tally:
        """What was published; empty if nothing was."""
        raw = self.published(collection)
        if raw is None:
            return Tally.empty(collection.mechanism)
        return _read_tally(raw, collection.mechanism)

    def report_count(self, collection: Collection) -> int:
        """How many reports there are; the pending ones are not tallied for it."""
        pending = len(self._pending(collection)) // collection.mechanism.report_size
        return self.counted_tally(collection).n + pending

    def _pending(self, collection: Collection) -> bytes:
        """The pending reports, one after the other."""
        pending = b"".join(map(checked, self.tables.pending(collection.key)))
        if len(pending) % collection.mechanism.report_size:
            raise StoreDamaged("the pending reports are damaged; bring back a copy of the store")
        return pending

    def blocks(self, collection: Collection) -> Iterator[NDArray[np.uint8]]:
        """The stored reports in the order of their ids, many at a time."""
        if collection.keep != "reports":
            raise DataError(
                f'the collection "{collection.name}" keeps counts only; its reports were never '
                "stored"
            )
        reports, width = self.tables.kept_reports(collection.key), collection.mechanism.report_size
        while block := list(islice(reports, limits.BLOCK)):
            yield np.frombuffer(b"".join(block), np.uint8).reshape(-1, width)

    def find_damage(self, collection: Collection, recount: bool = True) -> list[str]:
        """What does not add up, in words; with `recount`, its stored reports are counted again if
        they were kept.
        """
        try:
            tally = self.tally(collection)
        except StoreDamaged as error:
            return [str(error)]
        ids, damage = self.tables.count_ids(collection.key), []
        if ids != tally.n:
            damage.append(f"it has the ids of {ids:,} reports, but {tally.n:,} are counted")
        if not collection.mechanism.arrays.coder.adds_up(tally.part_n, tally.counts):
            damage.append("its counts cannot be those of so many reports")
        if recount and collection.keep == "reports":
            builder = TallyBuilder(collection.mechanism)
            for block in self.blocks(collection):
                builder.add(block)
            if builder.tally() != tally:
                damage.append("its stored reports, counted again, give another tally")
        return damage


def _outcomes(uploads: Sequence[Upload], old: set[bytes]) -> list[Outcome]:
    """What became of each upload, if these ids were there before."""
    seen, outcomes = set(old), []
    for upload in uploads:
        before = len(seen)
        seen.update(upload.ids)
        accepted = len(seen) - before
        outcomes.append(Outcome(accepted, len(upload.ids) - accepted))
    return outcomes


def _tally_size(mechanism: Mechanism) -> int:
    """Bytes of a tally: 8 per part and item, and per part."""
    return 8 * len(mechanism.parts) * (mechanism.m + 1)


def _read_tally(raw: bytes, mechanism: Mechanism) -> Tally:
    size = _tally_size(mechanism)
    numbers = raw if len(raw) == size else checked(raw)  # the first version had no checksum
    if len(numbers) != size:
        raise StoreDamaged("the stored tally is damaged; bring back a copy of the store")
    return Tally.from_bytes(numbers, mechanism)
