"""The SQL of reports and tallies, once for all databases (that of collections is in catalogue.py).
`Database.run` fills in the names of the tables and the marks for values.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet.collector.database import Database
from discreet.collector.records import Stored, StoreDamaged


class ReportTables:
    """The ids, reports, tally and published tally of every collection. Reports that are not yet
    counted into the tally are pending; their table is called `waiting`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def count_ids(self, key: int) -> int:
        """How many ids, and so reports, there are."""
        select = "SELECT count(*) FROM {report} WHERE {own}"
        return int(self._database.run(select, key=key)[0][0])

    def stored(self, key: int) -> Iterator[Stored]:
        """In the order of the ids."""
        select = "SELECT id, report FROM {report} WHERE {own} ORDER BY id"
        yield from self._database.stream(select, key)

    def kept_reports(self, key: int) -> Iterator[bytes]:
        """In the order of the ids, of a collection that keeps its reports."""
        select = "SELECT report FROM {report} WHERE {own} ORDER BY id"
        for (report,) in self._database.stream(select, key):
            if not isinstance(report, bytes):
                raise StoreDamaged("a stored report is damaged; restore a copy of the store")
            yield report

    def insert_tally(self, key: int, tally: bytes) -> None:
        """Of a new collection."""
        self._database.run("INSERT INTO {tally} VALUES ({new_tally})", tally, key=key)

    def tally(self, key: int) -> bytes:
        """Empty if there is none, which is damage."""
        return self._content("SELECT numbers FROM {tally} WHERE {own}", key) or b""

    def write_tally(self, key: int, tally: bytes) -> None:
        """In place of the one before."""
        self._database.run("UPDATE {tally} SET numbers = ? WHERE {own}", tally, key=key)

    def add_pending(self, key: int, reports: bytes) -> None:
        """Keep these reports until they are counted into the tally."""
        self._database.run("INSERT INTO {waiting} VALUES ({new_waiting})", reports, key=key)

    def pending(self, key: int) -> list[bytes]:
        """In no order that means anything."""
        rows = self._database.run("SELECT reports FROM {waiting} WHERE {own}", key=key)
        return [reports for (reports,) in rows]

    def delete_pending(self, key: int) -> None:
        """They are in the tally now."""
        self._database.run("DELETE FROM {waiting} WHERE {own}", key=key)

    def published(self, key: int) -> bytes | None:
        """None if nothing was published."""
        return self._content("SELECT numbers FROM {published} WHERE {own}", key)

    def write_published(self, key: int, tally: bytes) -> None:
        """In place of the one before."""
        self._database.run("DELETE FROM {published} WHERE {own}", key=key)
        self._database.run("INSERT INTO {published} VALUES ({new_published})", tally, key=key)

    def erase(self, key: int) -> None:
        """Delete everything of a collection but its name and its tally."""
        for table in ("{report}", "{waiting}", "{published}"):
            self._database.run(f"DELETE FROM {table} WHERE {{own}}", key=key)
        self._database.run("DELETE FROM {event} WHERE collection = ?", key)

    def _content(self, select: str, key: int) -> bytes | None:
        rows = self._database.run(select, key=key)
        return rows[0][0] if rows else None
