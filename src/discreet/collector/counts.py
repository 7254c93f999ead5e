"""Counting uploads into the tally of a collection, and reading what was counted.

A tally is large if there are many items, and one report must not write it anew: reports are pending
in a table of their own, and are counted into the tally when there are enough of them. Every reader
counts the pending ones, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from discreet.arrays.survey_tally import SurveyTally, runs, tally_size
from discreet.arrays.types import Bytes
from discreet.collector import limits
from discreet.collector.checksums import checked, with_checksum
from discreet.collector.database import Database
from discreet.collector.records import Collection, Outcome, StoreDamaged, Upload
from discreet.collector.tables import ReportTables
from discreet.device.wire import public_part
from discreet.errors import DataError
from discreet.survey import Survey


class Counts:
    """Ids, reports and tallies of collections, inside a transaction of the caller."""

    def __init__(self, database: Database) -> None:
        self._database, self.tables = database, ReportTables(database)
        self._pending_bytes: dict[int, int] = {}  # by key, as far as this process knows

    def forget(self) -> None:
        """Look at the pending reports again before the next ones are added."""
        self._pending_bytes.clear()

    # ---- writing ---------------------------------------------------------------------------------

    def begin(self, collection: Collection, tally: SurveyTally) -> None:
        """Give a new collection this tally."""
        self.tables.insert_tally(collection.key, with_checksum(tally.to_bytes()))

    def add(self, collection: Collection, uploads: Sequence[Upload]) -> list[Outcome]:
        """Count the uploads. The first report of every id counts, all others are duplicates."""
        first: dict[bytes, bytes] = {}  # what stands behind every id for the first time
        for upload in uploads:
            for id_, content in zip(upload.ids, upload.contents, strict=True):
                first.setdefault(id_, content)
        ids = sorted(first)
        kept = [first[id_] for id_ in ids] if collection.keep == "reports" else None
        old = self._database.insert_reports(collection.key, ids, kept)
        fresh = [content for id_, content in first.items() if id_ not in old]
        if fresh:
            self._add_pending(collection, fresh)
        if len(fresh) == sum(len(upload.ids) for upload in uploads):
            return [Outcome(len(upload.ids), 0) for upload in uploads]
        return _outcomes(uploads, old)

    def _add_pending(self, collection: Collection, contents: list[bytes]) -> None:
        """Keep these reports for later; sorted, so that nothing says which came first. An Upload
        is checked when it is read (uploads.py), and the counting in `tally` notices damage.
        """
        key, survey = collection.key, collection.survey
        before = self._pending_bytes.get(key)
        if before is None:  # another process may have left some
            before = self._check_pending(collection)
        reports = b"".join(sorted(contents))
        self.tables.add_pending(key, with_checksum(reports))
        pending = self._pending_bytes[key] = before + len(reports)
        worth = min(_largest_tally(survey), limits.PENDING_MOST)
        if pending >= max(limits.PENDING_SIZE, worth) or _marks(survey, pending) >= limits.MARKS:
            self.count_pending(collection)

    def _check_pending(self, collection: Collection) -> int:
        """How many bytes are pending; StoreDamaged if they or the tally are not as they were
        written. Nothing is acknowledged into a collection before this was looked at.
        """
        self.counted_tally(collection)
        pending = self._pending(collection)
        _rows(collection.survey, pending)
        return len(pending)

    def count_pending(self, collection: Collection) -> None:
        """Count the pending reports into the tally."""
        self._write_tally(collection, self.tally(collection))
        self.tables.delete_pending(collection.key)
        self._pending_bytes[collection.key] = 0

    def _write_tally(self, collection: Collection, tally: SurveyTally) -> None:
        """Without the pending reports."""
        self.tables.write_tally(collection.key, with_checksum(tally.to_bytes()))

    def publish(self, collection: Collection, tally: SurveyTally) -> None:
        """Let anyone see this tally."""
        self.tables.write_published(collection.key, with_checksum(tally.to_bytes()))

    def erase(self, collection: Collection) -> None:
        """Leave an empty tally and nothing else."""
        self._write_tally(collection, SurveyTally(collection.survey))
        self.tables.erase(collection.key)

    # ---- reading ---------------------------------------------------------------------------------

    def tally(self, collection: Collection) -> SurveyTally:
        """The whole tally, with the pending reports; StoreDamaged if one of them is not a report
        of this survey, so that it never reaches a stored tally.
        """
        try:
            tally, pending = self.counted_tally(collection), self._pending(collection)
            if not pending:
                return tally
            added = _count_reports(collection.survey, pending)
        except StoreDamaged:
            self._pending_bytes.pop(collection.key, None)  # so that the next writer looks, too
            raise
        return tally + added

    def counted_tally(self, collection: Collection) -> SurveyTally:
        """The tally without the pending reports."""
        return _read_tally(self.tables.tally(collection.key), collection.survey)

    def published(self, collection: Collection) -> bytes | None:
        """What was published, as it is stored; None if nothing was."""
        return self.tables.published(collection.key)

    def published_tally(self, collection: Collection) -> SurveyTally:
        """What was published; empty if nothing was."""
        raw = self.published(collection)
        if raw is None:
            return SurveyTally(collection.survey)
        return _read_tally(raw, collection.survey)

    def report_count(self, collection: Collection) -> int:
        """How many reports there are; the pending ones are not tallied for it."""
        pending = _rows(collection.survey, self._pending(collection))
        return self.counted_tally(collection).n + sum(len(rows) for _, rows in pending)

    def _pending(self, collection: Collection) -> bytes:
        """The pending reports, one after the other."""
        return b"".join(map(checked, self.tables.pending(collection.key)))

    def blocks(self, collection: Collection) -> Iterator[list[bytes]]:
        """The stored reports in the order of their ids, many at a time, each behind what stands
        before it in its frame.
        """
        if collection.keep != "reports":
            raise DataError(
                f'the collection "{collection.name}" keeps counts only; its reports were never '
                "stored"
            )
        reports = self.tables.kept_reports(collection.key)
        while block := list(islice(reports, limits.BLOCK)):
            yield block

    def _recounted(self, collection: Collection) -> SurveyTally:
        """The tally of the stored reports."""
        tally = SurveyTally(collection.survey)
        for block in self.blocks(collection):
            try:
                tally += SurveyTally.count(collection.survey, block)
            except DataError as error:
                raise StoreDamaged(
                    f"its stored reports are damaged ({error}); restore a copy of the store"
                ) from None
        return tally

    def find_damage(self, collection: Collection, recount: bool = True) -> list[str]:
        """What does not add up, in words; with `recount`, its stored reports are counted again if
        they were kept.
        """
        try:
            return self._find_damage(collection, recount)
        except StoreDamaged as error:
            return [str(error)]

    def _find_damage(self, collection: Collection, recount: bool) -> list[str]:
        tally, _ = self.tally(collection), self.published_tally(collection)
        ids, damage = self.tables.count_ids(collection.key), []
        if ids != tally.n:
            damage.append(f"it has the ids of {ids:,} reports, but {tally.n:,} are counted")
        if not tally.adds_up():
            damage.append("its counts cannot be those of so many reports")
        again = recount and collection.keep == "reports"
        if again and self._recounted(collection) != tally:
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


def _largest_tally(survey: Survey) -> int:
    """Bytes of the tallies of all questions and groups."""
    each = sum(tally_size(question.mechanism) for question in survey.listed)
    return each * survey.group_count


def _marks(survey: Survey, pending: int) -> int:
    """Items that are read when so many bytes of reports are counted, about."""
    return max(pending // q.mechanism.report_size * q.mechanism.m for q in survey.listed)


_DAMAGED = "the pending reports are damaged; restore a copy of the store"


def _rows(survey: Survey, pending: bytes) -> list[tuple[int, Bytes]]:
    """Pending reports by question; StoreDamaged if they are cut off."""
    try:
        return [*runs(survey, pending)]
    except DataError:
        raise StoreDamaged(_DAMAGED) from None


def _count_reports(survey: Survey, contents: bytes) -> SurveyTally:
    """The tallies of reports one after the other; StoreDamaged if one is none."""
    try:
        added = SurveyTally.count_joined(survey, contents)
    except DataError:
        raise StoreDamaged(_DAMAGED) from None
    public = [len(public.items) for public in survey.public]
    strange = any(
        k >= most
        for slot in added.slots
        for k, most in zip(slot[public_part(survey)], public, strict=True)
    )
    if added.refused or strange:
        raise StoreDamaged(
            "some pending reports are not reports of this survey; restore a copy of the store"
        )
    return added


def _read_tally(raw: bytes, survey: Survey) -> SurveyTally:
    try:
        return SurveyTally.from_bytes(checked(raw), survey)
    except StoreDamaged:
        raise
    except DataError:
        raise StoreDamaged("the stored tally is damaged; restore a copy of the store") from None
