"""Draws for many people at once: the questions that each of them answers, and an order that says
nothing about who is who.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.randomness import BitSource
from discreet.arrays.types import Ints
from discreet.survey import Survey

Table: TypeAlias = NDArray[np.bool_]


def draw_questions(survey: Survey, people: int, source: BitSource) -> Table:
    """Per person and question, whether it is drawn: a uniform subset for each person (the first
    steps of a Fisher-Yates shuffle), independent of every answer.
    """
    total = len(survey.listed)
    rest = np.tile(np.arange(total), (people, 1))
    everybody, chosen = np.arange(people), np.zeros((people, total), bool)
    for k in range(survey.answers):
        left: NDArray[Any] = np.full(people, total - k, np.uint64)
        place = k + source.below(left).astype(np.int64)
        drawn = rest[everybody, place]
        rest[everybody, place] = rest[:, k]
        chosen[everybody, drawn] = True
    return chosen


def shuffled(rows: Ints, source: BitSource) -> Ints:
    """The same rows in random order: reports in files must not be linked by their places."""
    keys = source.uint32(2 * len(rows)).view(np.uint64)
    return rows[np.argsort(keys, kind="stable")]
