"""The views of an estimate: named post-processing, which costs no privacy.

A view that is added here is an option of `discreet estimate`, columns of every table, a choice on
the results page and a line of `discreet simulate`. Nothing heavy is imported: the command line
reads this list to know its options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from discreet.estimate import Estimate
    from discreet.parts import Floats


class View(NamedTuple):
    """What it is; whether an estimate has it; its columns at a confidence: "" are the counts, and
    `sd`, `lower` and `upper` go with them where the view knows them.
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
        "the nearest counts that are not negative and (single input) sum to n",
        lambda estimate: True,
        lambda estimate, _: {"": estimate.consistent()},
    ),
}
