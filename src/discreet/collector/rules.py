"""What may be done with a collection in which state. No SQL."""

from __future__ import annotations

from discreet.arrays.survey_tally import tally_size
from discreet.collector import limits
from discreet.collector.records import KEEPS, Collection, Move
from discreet.errors import DataError
from discreet.survey import Survey
from discreet.survey.about import moment


def check_keep(keep: str) -> None:
    """DataError unless this is something that a store can keep."""
    if keep not in KEEPS:
        raise DataError(f'keep = "{keep}" must be one of {", ".join(KEEPS)}')


def check_same(collection: Collection, survey: Survey, keep: str) -> None:
    """DataError if the collection asks something else or keeps something else."""
    if collection.survey.fingerprint != survey.fingerprint:
        differences = collection.survey.differences(survey) or ["its probabilities differ"]
        raise DataError(
            f'the store has a collection "{collection.name}" with another survey '
            f"({differences[0]}); people have answered under that promise: give the new one "
            "another name"
        )
    if collection.keep != keep:
        raise DataError(
            f'the collection "{collection.name}" was made to keep {collection.keep}; it cannot '
            f"keep {keep} now"
        )


def check_deletable(collection: Collection) -> None:
    """DataError unless the collection is closed."""
    if collection.state != "closed":
        raise DataError(
            f'"{collection.name}" is {collection.state}; discreet close it before it is deleted'
        )


def check_reopening(collection: Collection, is_published: bool) -> None:
    """DataError if the collection may not take reports again: it was moved, its time is over, or
    its final results have been published.
    """
    name, about = collection.name, collection.survey.about
    if collection.move.step == "moved":
        raise DataError(
            f'"{name}" was moved to another store and goes on there; if that move was '
            "interrupted, move again to finish it"
        )
    if collection.move.step == "arriving":
        raise DataError(
            f'a move that was interrupted left this copy of "{name}"; move again from the '
            "store where it was, or reopen it there"
        )
    if collection.state_by_its_times == "closed":
        raise DataError(
            f'"{name}" closed on {moment(about.closes)}, as announced; ask again under a new name'
        )
    if collection.closed_by_organiser and is_published:
        raise DataError(
            f'the final results of "{name}" have been published; ask again under a new name'
        )


def leaving_move(collection: Collection, move_id: str) -> Move:
    """The first step of a move. A collection that an interrupted move has closed ends up open,
    unless the organiser has closed it since.
    """
    move = collection.move
    reopens = move.step == "leaving" and move.goal == "open"
    goal = "open" if reopens or not collection.closed_by_organiser else "closed"
    return Move("leaving", goal, move_id)


def is_left_by_a_move(copy: Collection, original: Collection) -> bool:
    """Whether this is a copy of the same collection that a move has not opened yet."""
    arriving = copy.closed_by_organiser and copy.move.step == "arriving"
    return arriving and copy.survey == original.survey


def check_size(survey: Survey) -> None:
    """Refuse a survey whose tallies would not fit into memory: one per question and group."""
    groups, questions = survey.group_count, len(survey.listed)
    size = sum(tally_size(question.mechanism) for question in survey.listed) * groups
    if size > limits.TALLY_SIZE:
        raise DataError(
            f"the tallies of {groups:,} groups and {questions} questions could take "
            f"{size / 2**30:.3g} GiB, and at most {limits.TALLY_SIZE / 2**30:.3g} fit; ask fewer "
            "public questions, with fewer answers"
        )
