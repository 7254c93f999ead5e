"""The kinds of answer: what a person gives, and what of it is protected."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """One item, a list that is protected as a whole, or a list that is protected item by item.

    >>> Kind("set").lists, Kind("set").pads, Kind("each").pads, Kind("each").alone
    (True, True, False, True)
    """

    SINGLE = "single"
    SET = "set"
    EACH = "each"

    @property
    def lists(self) -> bool:
        """Whether a person answers with a list of items."""
        return self is not Kind.SINGLE

    @property
    def pads(self) -> bool:
        """Whether lists are cut to a padding: not where every item is a question of its own."""
        return self is Kind.SET

    @property
    def alone(self) -> bool:
        """Whether every item is a question of its own, protected by its own budget."""
        return self is Kind.EACH
