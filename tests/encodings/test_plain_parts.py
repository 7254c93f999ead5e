"""Answers that are sent as they are: in the last part of tickets, which holds nothing else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.check.exact import D
from discreet.encodings import Bits
from discreet.encodings.base import is_plain
from discreet.errors import GuaranteeError
from discreet.mechanism import Mechanism

VECTORS = Path(__file__).parents[1] / "vectors" / "v2" / "mechanisms.json"
ALONE = "in the last part of tickets alone"
NOTHING_ELSE = "holds nothing else"


def made(name):
    """A mechanism whose last part is plain: for open levels only, and silent for the others."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))
    mechanism = Mechanism.from_document(
        next(case["document"] for case in cases if case["name"] == name)
    )
    last = mechanism.parts[-1].ints
    assert is_plain(last) and 0 in last.own
    return mechanism


def changed(mechanism, *rows, **more):
    """The same mechanism with other parts."""
    encoding = more.get("encoding", mechanism.encoding)
    other = [encoding.denominator(size) for size in mechanism.group_sizes]
    parts = [encoding.part(row, tuple(other), mechanism.groups) for row in rows]
    return replace(mechanism, parts=tuple(parts), certificate=None, **more)


def altered(row, **numbers):
    """A part with other numbers for its groups."""
    listed = {key: list(row[key]) for key in ("chance", "own", "other")}
    for key, (group, number) in numbers.items():
        listed[key][group] = number
    return listed


def test_a_part_is_plain_if_it_shows_an_answer_of_any_group():
    last = made("five-open-ticket").parts[-1].ints
    assert is_plain(last)
    assert not is_plain(last._replace(own=[0] * len(last.own)))
    assert not is_plain(last._replace(other=[1] * len(last.other)))
    assert not is_plain(last._replace(own=[own - 1 for own in last.own]))


def test_a_plain_part_is_the_last_one():
    mechanism = made("five-open-ticket")
    rows = [part.document() for part in mechanism.parts]
    assert changed(mechanism, *rows) == replace(mechanism, certificate=None)
    with pytest.raises(GuaranteeError, match=ALONE):
        changed(mechanism, *rows[::-1])


def test_a_plain_part_is_of_tickets():
    mechanism = made("five-open-ticket")
    silent = {"chance": None, "own": [0] * 2, "other": [0] * 2}
    last = mechanism.parts[-1].document()
    first = {**silent, "chance": [D - chance for chance in last["chance"]]}
    with pytest.raises(GuaranteeError, match=ALONE):
        changed(mechanism, first, last, encoding=Bits())


@pytest.mark.parametrize("numbers", [{"own": D, "other": 1}, {"own": D // 2}, {"own": D}])
def test_a_plain_part_holds_nothing_else(numbers):
    """Neither for a group that cannot use it, nor with another number for one that can."""
    mechanism = made("five-open-ticket")
    *rows, last = (part.document() for part in mechanism.parts)
    unused = last["chance"].index(0)
    wrong = altered(last, **{key: (unused, number) for key, number in numbers.items()})
    with pytest.raises(GuaranteeError, match=NOTHING_ELSE):
        changed(mechanism, *rows, wrong)
