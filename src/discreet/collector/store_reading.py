"""Reading a store: its collections, their tallies, what may be published, and whether it all adds
up. Every method is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from discreet.arrays.survey_tally import SurveyTally
from discreet.collector.catalogue import Catalogue
from discreet.collector.counts import Counts
from discreet.collector.database import Database
from discreet.collector.publishing import publish_more
from discreet.collector.records import (
    Collection,
    Contents,
    Event,
    NoCollection,
    StoreDamaged,
    StoreDown,
    Unreadable,
)


class StoreReading:
    """What a store tells. Reading and writing may happen in two threads at once."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.catalogue, self.counts = Catalogue(database), Counts(database)
        database.on_drop = self._forget

    def _forget(self) -> None:
        self.catalogue.forget()
        self.counts.forget()

    def reading(self, *names: str, wait: bool = True) -> AbstractContextManager[None]:
        """A consistent view; see `Database.reading`."""
        return self.database.reading(*names, wait=wait)

    def writing(self, patient: bool = False) -> AbstractContextManager[None]:
        """A write transaction; see `Database.writing`."""
        return self.database.writing(patient)

    # ---- collections -----------------------------------------------------------------------------

    def collections(self) -> list[Collection]:
        """All collections that can be read, by name."""
        return self.listing()[0]

    def listing(self) -> tuple[list[Collection], list[Unreadable]]:
        """All collections by name: those that can be read, and those that cannot."""
        with self.reading():
            return self.catalogue.listing()

    def collection(self, name: str) -> Collection:
        """One collection; NoCollection if there is none."""
        with self.reading():
            return self.catalogue.get(name)

    def history(self, name: str) -> list[Event]:
        """When it was closed, reopened or moved, to the minute."""
        with self.reading():
            return self.catalogue.events(self.catalogue.get(name))

    # ---- tallies ---------------------------------------------------------------------------------

    def tally(self, name: str) -> SurveyTally:
        """The tallies of a collection."""
        with self.reading(name):
            return self.counts.tally(self.catalogue.get(name))

    def published(self, name: str) -> SurveyTally:
        """What anyone may see: batches of reports, so that asking again and again does not show
        single reports (see publishing.py). Someone who sends reports of their own can still single
        one out; what protects that report is its own guarantee.
        """
        with self.reading(name):
            shown, due = self._publications(self.catalogue.get(name))
        if due is shown:
            return shown
        with self.writing():
            collection = self.catalogue.get(name, lock=True)
            shown, due = self._publications(collection)
            if due is not shown:
                self.counts.publish(collection, due)
        return due

    def _publications(self, collection: Collection) -> tuple[SurveyTally, SurveyTally]:
        """What anyone has seen, and what they may see now."""
        shown, whole = self.counts.published_tally(collection), self.counts.tally(collection)
        return shown, publish_more(shown, whole, collection.state == "closed")

    def report_counts(self, most: int) -> list[tuple[Collection, int | None]]:
        """The first `most` collections, with how many reports each has; None if it is damaged or is
        just being closed.
        """
        return [(c, self.report_count(c.name)) for c in self.collections()[:most]]

    def report_count(self, name: str) -> int | None:
        """How many reports a collection has; None if it is damaged or is just being closed."""
        try:
            with self.reading(name, wait=False):
                return self.counts.report_count(self.catalogue.get(name))
        except (NoCollection, StoreDamaged, StoreDown):
            return None

    # ---- reports ---------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self, name: str) -> Iterator[tuple[SurveyTally, Iterator[list[bytes]]]]:
        """The tally and, if they were kept, the stored reports, of one moment."""
        with self.reading(name):
            collection = self.catalogue.get(name)
            yield self.counts.tally(collection), self.counts.blocks(collection)

    def reports(self, name: str) -> Iterator[bytes]:
        """The stored reports in the order of their ids, if they were kept, each behind what stands
        before it in its frame.
        """
        with self.snapshot(name) as (_, blocks):
            for block in blocks:
                yield from block

    def find_damage(self, name: str, recount: bool = True) -> list[str]:
        """What does not add up in a collection, in words; with `recount`, its stored reports are
        counted again if they were kept.
        """
        with self.reading(name):
            return self.counts.find_damage(self.catalogue.get(name), recount)

    def contents(self, collection: Collection) -> Contents:
        """Everything of a collection, to be copied inside a transaction of the caller."""
        return Contents(
            collection,
            self.catalogue.document(collection),
            self.counts.tally(collection),
            self.counts.published(collection),
            self.catalogue.events(collection),
            self.counts.tables.stored(collection.key),
        )
