"""What a store hands out and takes in, and how it fails: plain values, no database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from discreet.arrays.survey_tally import SurveyTally
from discreet.collector import limits
from discreet.errors import DataError
from discreet.policy.labels import is_label
from discreet.survey import Survey

KEEPS = ("counts", "reports")
Stored = tuple[bytes, bytes | None]  # an id, with its report if that is kept


class StoreDamaged(DataError):
    """What the store holds does not add up; nothing is served from it."""


class StoreDown(DataError):
    """The store cannot be used just now: nothing was counted; try again."""


class NoCollection(DataError):
    """There is no collection of this name."""


class Move(NamedTuple):
    """How far a move between two stores is with a collection (see moving.py); all empty if no move
    is under way.
    """

    step: str = ""  # "leaving", "arriving" or "moved"
    goal: str = ""  # "open" or "closed": how the collection ends up in the new store
    id: str = ""


NO_MOVE = Move()


@dataclass(frozen=True)
class Collection:
    """A survey that is or was asked."""

    key: int
    name: str
    survey: Survey
    keep: str
    # by a person or by the watch that closes what is over; `state` also looks at its own times
    closed_by_organiser: bool
    move: Move = NO_MOVE

    @property
    def state(self) -> str:
        """Now: "upcoming", "open" or "closed"."""
        return "closed" if self.closed_by_organiser else self.state_by_its_times

    @property
    def state_by_its_times(self) -> str:
        """The same, if no one had closed it."""
        return self.survey.about.state(datetime.now(UTC))


class Unreadable(NamedTuple):
    """A collection whose survey cannot be read, and why."""

    name: str
    reason: str


class Upload(NamedTuple):
    """Checked reports of one request: their ids, and what stands behind each."""

    collection: str
    ids: list[bytes]
    contents: list[bytes]
    # of the collection it was checked for: another one may have taken its name since
    key: int | None = None


class Event(NamedTuple):
    """Something that the organiser, or the calendar, did with a collection."""

    time: str
    what: str


class Outcome(NamedTuple):
    """What became of an upload. A collection that is not open takes nothing. Neither does one that
    was "replaced": the upload was checked for another collection of the same name.
    """

    accepted: int
    duplicates: int
    state: str = "open"


class Contents(NamedTuple):
    """Everything that a store holds of a collection, to be copied into another store."""

    collection: Collection
    document: str  # of the survey, as it is stored
    tally: SurveyTally
    published: bytes | None
    events: list[Event]
    reports: Iterator[Stored]  # in the order of the ids


def checked_name(name: str) -> str:
    """The same name, if a collection can have it: the name is part of the address."""
    if "/" in name or name in (".", "..") or not is_label(name) or len(name) > limits.NAME:
        raise DataError(
            "a collection's name stands in its address: no slash, no control character, at most "
            f"{limits.NAME} characters, got {name!r}; give the survey another name"
        )
    return name
