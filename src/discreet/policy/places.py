"""The places of items: which one a label or an index means, and what is said where it is none."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from discreet.errors import DataError
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.policy.policy import Policy

_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_MOST_COMPARED = 100_000  # labels among which the nearest to a wrong one is looked for


def find_integer_like(labels: Iterable[str]) -> str | None:
    """The first label that looks like a whole number."""
    return next((label for label in labels if _WHOLE.fullmatch(label)), None)


def find_place(policy: Policy, item: object, indices: bool) -> int:
    """The place of a label or an index; `Policy.place` says which of the two an item is."""
    if isinstance(item, str) and not indices:
        place = policy.index.get(item)
        if place is None:
            import difflib  # loaded when there is something to compare

            near = difflib.get_close_matches(item, policy.items[:_MOST_COMPARED], n=1)
            hint = f"; did you mean {quoted(near[0])}?" if near else ""
            raise DataError(f"{quoted(item)} is not an item{hint}")
        return place
    if isinstance(item, bool) or not hasattr(item, "__index__") or hasattr(item, "__len__"):
        if indices:
            raise DataError(f"an index is a whole number, got {item!r}")
        raise DataError(f"an item is a label (text) or an index (whole number), got {item!r}")
    if policy.integer_like_label is not None and not indices:
        raise DataError(
            f"{item} may be a label or an index, because {quoted(policy.integer_like_label)} is "
            f'a label; write "{item}" for the label, policy.items[{item}] for the item at that '
            "index"
        )
    index = operator.index(item)
    if not 0 <= index < policy.m:
        raise DataError(f"item index {item} is out of range; it must be from 0 to {policy.m - 1}")
    return index
