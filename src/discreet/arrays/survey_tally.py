"""The tallies of a survey: one for every question, and for every group of public answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from discreet.arrays.tally import Tally
from discreet.arrays.types import Bytes
from discreet.device.wire import front_size, question_place
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.survey import Survey

Slot = bytes  # what stands before a report: the question's number, and the public answers
ANY = 255  # in place of a public answer, where groups were added up; no public question has so many


@dataclass(frozen=True, eq=False)
class SurveyTally:
    """What reports of a survey add up to; tallies add up.

    >>> import discreet as d
    >>> policy = d.Policy.from_levels([("all", "ln(9)", ["tea", "coffee"])])
    >>> survey = d.Survey("drinks", [d.design(policy, "rappor")])
    >>> tally = SurveyTally.count(survey, [bytes([1]), bytes([3])])
    >>> tally.n, tally.question(0).counts.tolist()
    (2, [[2, 1]])
    """

    survey: Survey
    slots: Mapping[Slot, Tally] = field(default_factory=dict)  # without empty ones

    @classmethod
    def count(cls, survey: Survey, contents: Iterable[bytes]) -> SurveyTally:
        """Count reports, each behind what stands before it in a frame.

        >>> SurveyTally.count(tally.survey, [bytes([1])]).n
        1
        """
        return cls.count_joined(survey, b"".join(sorted(contents)))

    @classmethod
    def count_joined(cls, survey: Survey, contents: bytes) -> SurveyTally:
        """The same of contents one after the other; DataError if they do not end with one.

        >>> SurveyTally.count_joined(tally.survey, bytes([1, 3])).n
        2
        """
        rows: dict[int, list[Bytes]] = {}
        for question, block in runs(survey, contents):
            rows.setdefault(question, []).append(block)
        slots: dict[Slot, Tally] = {}
        for question, blocks in rows.items():
            mechanism = survey.listed[question].mechanism
            for slot, reports in _by_slot(np.concatenate(blocks), front_size(survey)):
                slots[slot] = mechanism.tally(reports, threads=1)
        return cls(survey, slots)

    @property
    def n(self) -> int:
        """The number of reports counted.

        >>> tally.n
        2
        """
        return sum(tally.n for tally in self.slots.values())

    @property
    def refused(self) -> int:
        """How many rows were no reports.

        >>> tally.refused
        0
        """
        return sum(sum(tally.refused.values()) for tally in self.slots.values())

    def question(self, place: int) -> Tally:
        """The tally of a question, of all groups together.

        >>> tally.question(0).n
        2
        """
        empty = Tally.empty(self.survey.listed[place].mechanism)
        return sum((tally for _, tally in self._of(place)), empty)

    def groups(
        self, place: int, by: Iterable[int] = (), partly: bool = False
    ) -> dict[tuple[int, ...], Tally]:
        """The tallies of a question by the answers to the public questions at the places `by`; by
        all of them if none is named. What was added up over one of these belongs to no group,
        unless `partly`.

        >>> tally.groups(0)[()].n
        2
        """
        chosen = tuple(by) or tuple(range(len(self.survey.public)))
        by_group: dict[tuple[int, ...], Tally] = {}
        for slot, tally in self._of(place):
            group = slot[len(self.survey.listed) > 1 :]
            key = tuple(group[k] for k in chosen)
            if ANY in key and not partly:
                continue
            by_group[key] = by_group[key] + tally if key in by_group else tally
        return dict(sorted(by_group.items()))

    def _of(self, place: int) -> Iterator[tuple[Slot, Tally]]:
        several = len(self.survey.listed) > 1
        for slot, tally in self.slots.items():
            if not several or slot[0] == place:
                yield slot, tally

    def __add__(self, other: object) -> SurveyTally:
        if not isinstance(other, SurveyTally):
            return NotImplemented
        if other.survey.fingerprint != self.survey.fingerprint:
            raise DataError("tallies of different surveys cannot be added")
        slots = dict(self.slots)
        for slot, tally in other.slots.items():
            slots[slot] = slots[slot] + tally if slot in slots else tally
        return SurveyTally(self.survey, slots)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SurveyTally)
            and self.survey.fingerprint == other.survey.fingerprint
            and self._filled() == other._filled()
        )

    def _filled(self) -> dict[Slot, Tally]:
        return {slot: tally for slot, tally in self.slots.items() if tally.n}

    def adds_up(self) -> bool:
        """Whether the counts can be those of so many reports.

        >>> tally.adds_up()
        True
        """
        return all(
            tally.mechanism.arrays.coder.adds_up(tally.part_n, tally.counts)
            for tally in self.slots.values()
        )

    # ---- bytes -----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Every slot with the numbers of its tally, in order.

        >>> SurveyTally.from_bytes(tally.to_bytes(), tally.survey) == tally
        True
        """
        filled = sorted(self._filled().items())
        return b"".join(slot + tally.to_bytes() for slot, tally in filled)

    @classmethod
    def from_bytes(cls, raw: bytes, survey: Survey) -> SurveyTally:
        """Read what `to_bytes` wrote; DataError if that is something else.

        >>> SurveyTally.from_bytes(b"", tally.survey).n
        0
        """
        front, at, slots = front_size(survey), 0, {}
        while at < len(raw):
            slot = raw[at : at + front]
            place = question_place(survey, slot)
            fits = len(slot) == front and place < len(survey.listed) and slot not in slots
            size = tally_size(survey.listed[place].mechanism) if fits else 0
            numbers = raw[at + front : at + front + size]
            if not fits or len(numbers) != size:
                raise DataError("the stored tally is damaged")
            slots[slot] = Tally.from_bytes(numbers, survey.listed[place].mechanism)
            at += front + size
        return cls(survey, slots)


def tally_size(mechanism: Mechanism) -> int:
    """Bytes of a tally: 8 per part and item, and per part."""
    return 8 * len(mechanism.parts) * (mechanism.m + 1)


def runs(survey: Survey, contents: bytes) -> Iterator[tuple[int, Bytes]]:
    """Contents one after the other, cut into rows: runs of reports on one question, with what
    stands before them. DataError if they do not end with a whole one.
    """
    data, at = np.frombuffer(contents, np.uint8), 0
    several, front = survey.has_several, front_size(survey)
    while at < len(data):
        question = int(data[at]) if several else 0
        if question >= len(survey.listed):
            raise DataError(f"question {question} is not one of this survey")
        width = front + survey.listed[question].mechanism.report_size
        count = (len(data) - at) // width
        if several:  # up to the first row of another question
            numbers = data[at : at + count * width : width]
            others = np.flatnonzero(numbers != question)
            count = int(others[0]) if len(others) else count
        if count == 0 or (not several and count * width < len(data) - at):
            raise DataError("the reports do not end with a whole one")
        yield question, data[at : at + count * width].reshape(count, width)
        at += count * width


def _by_slot(rows: Bytes, front: int) -> Iterator[tuple[Slot, Bytes]]:
    """The reports behind every different front."""
    if not front:
        yield b"", rows
        return
    fronts, place = np.unique(rows[:, :front], axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(place.ravel(), minlength=len(fronts)))
    for k, slot in enumerate(fronts):
        mine = order[ends[k - 1] if k else 0 : ends[k]]
        yield slot.tobytes(), rows[mine, front:]
