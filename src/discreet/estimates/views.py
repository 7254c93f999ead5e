"""The views of an estimate: named post-processing, which costs no privacy.

A view in this list becomes an option of `discreet estimate`, columns of every table, a choice on
the results page and a line of `discreet simulate`. This module imports nothing heavy, because the
command line reads the list to know its options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from discreet.arrays.types import Floats
    from discreet.estimates.estimate import Estimate


class View(NamedTuple):
    """A description; whether an estimate has the view; its columns at a confidence.

    The column "" has the counts; `sd`, `lower` and `upper` are there if the view knows them.
    """

    about: str
    fits: Callable[[Estimate], bool]
    columns: Callable[[Estimate, float], dict[str, Floats]]


def _shrunk(estimate: Estimate, confidence: float) -> dict[str, Floats]:
    shrunk = estimate.shrunk()
    low, high = shrunk.interval(confidence)
    return {"": shrunk.counts, "sd": shrunk.sd, "lower": low, "upper": high}


VIEWS = {
    "shrunk": View(
        "posterior means (empirical Bayes) with credible intervals",
        lambda estimate: estimate.can_shrink,
        _shrunk,
    ),
    "consistent": View(
        "the nearest counts that are not negative and (single answers) sum to n",
        lambda estimate: True,
        lambda estimate, _: {"": estimate.consistent()},
    ),
}
