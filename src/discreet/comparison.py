"""Two estimates of the same items, of two groups or two dates: what differs, and what may be
chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DataError
from discreet.labels import show
from discreet.parts import Floats
from discreet.table import Table

if TYPE_CHECKING:
    from discreet.estimate import Estimate

TOLD = 3  # differences that the sentence names


@dataclass(frozen=True, eq=False)
class Comparison:
    """Shares of the first estimate minus those of the second, with intervals that hold for all
    items together.

    They cover the noise of the reports, which are of different people, or of the same people with
    reports of their own each time. They are about the people who answered: who did not, and why, is
    not in them.
    """

    first: Estimate
    second: Estimate
    confidence: float
    names: tuple[str, str]

    @classmethod
    def of(
        cls,
        first: Estimate,
        second: Estimate,
        confidence: float = 0.95,
        names: tuple[str, str] = ("A", "B"),
    ) -> Comparison:
        """Refuses estimates of other items."""
        from discreet.estimate import Estimate

        if not isinstance(second, Estimate):
            raise DataError(f"an estimate is compared with another, got {type(second).__name__}")
        mine, other = (set(e.mechanism.policy.items) for e in (first, second))
        if mine != other:
            odd = min(mine ^ other)
            where = names[0] if odd in mine else names[1]
            raise DataError(
                f"the two are not about the same items: {show(odd)} is only in {where}; compare "
                "collections with the same answers"
            )
        if len(set(names)) < 2:
            raise DataError(f"the two need different names, got {show(names[0])} twice")
        if not 0 < confidence < 1:
            raise DataError(f"confidence = {confidence} must be between 0 and 1, such as 0.95")
        return cls(first, second, confidence, names)

    @cached_property
    def _order(self) -> Any:
        """The place in the second of every item of the first."""
        index = self.second.mechanism.policy.index
        return np.array([index[item] for item in self.first.mechanism.policy.items])

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Of the first and of the second, in the order of the first."""
        return self.first.shares, self.second.shares[self._order]

    @property
    def differences(self) -> Floats:
        """First minus second."""
        return self.shares[0] - self.shares[1]

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the differences, for all items together.

        The ends of the two estimates' own intervals are combined (Zou and Donner's MOVER): an
        interval that reaches further up than down stays so.
        """
        a, b = self.shares
        ends = [
            [end / e.n for end in e.interval(self.confidence, simultaneous=True)]
            for e in (self.first, self.second)
        ]
        low_a, high_a = ends[0]
        low_b, high_b = (end[self._order] for end in ends[1])
        with np.errstate(invalid="ignore"):
            low = (a - b) - np.hypot(a - low_a, high_b - b)
            high = (a - b) + np.hypot(high_a - a, b - low_b)
        return np.clip(np.nan_to_num(low, nan=-1.0), -1, 1), np.clip(
            np.nan_to_num(high, nan=1.0), -1, 1
        )

    @property
    def differs(self) -> Any:
        """Whether an item's share is larger or smaller for certain."""
        low, high = self.interval
        return (low > 0) | (high < 0)

    @cached_property
    def ranked(self) -> Any:
        """Items that differ first, then by how large the difference looks."""
        size = np.abs(np.nan_to_num(self.differences))
        return np.lexsort((-size, ~self.differs))

    @property
    def sentence(self) -> str:
        """What can be said, and what cannot."""
        first, second = self.names
        sure, low, high = self.differs, *self.interval
        many, trust = len(sure), f"{100 * self.confidence:g} %"
        if not sure.any():
            width = float(np.median(np.maximum(high - self.differences, self.differences - low)))
            return (
                f"No difference between {first} and {second} is certain ({trust} for all "
                f"{many:,} items together): each could be chance. A typical item would have to "
                f"differ by about {100 * width:.2g} percentage points to show."
            )
        items = self.first.mechanism.policy.items
        told = []
        for k in self.ranked[: min(TOLD, int(sure.sum()))]:
            ends = sorted((abs(low[k]), abs(high[k])))
            more = first if low[k] > 0 else second
            told.append(
                f"{show(items[k])} is more frequent in {more}, by {100 * ends[0]:.2g} to "
                f"{100 * ends[1]:.2g} percentage points"
            )
        rest = int(sure.sum()) - len(told)
        more = f"; and {rest:,} more" if rest else ""
        return (
            f"{int(sure.sum()):,} of {many:,} items differ for certain ({trust} for all of them "
            f"together): {'; '.join(told)}{more}."
        )

    @property
    def note(self) -> str:
        """What no interval covers: simulated people, sets that are cut at a padding; else empty."""
        mechanisms = [e.mechanism for e in (self.first, self.second)]
        notes = [
            f"{name} is a rehearsal: its people are simulated."
            for name, mechanism in zip(self.names, mechanisms, strict=True)
            if mechanism.policy.about.rehearsal
        ]
        paddings = dict.fromkeys(mechanism.padding for mechanism in mechanisms)
        if any(paddings):
            told = " and ".join(str(x or "none") for x in paddings)
            notes.append(
                f"People with more items than the padding ({told}) are counted with less than 1 "
                "for each: where lists are longer in one of the two, that alone looks like a "
                "difference."
            )
        return " ".join(notes)

    def table(self) -> Table:
        """One row per item, in the order of the first."""
        policy = self.first.mechanism.policy
        levels = np.array([level.name for level in policy.levels], object)
        low, high = self.interval
        return Table(
            {
                "item": np.array(policy.items, object),
                "level": levels[self.first.mechanism.level_of],
                f"share_{self.names[0]}": self.shares[0],
                f"share_{self.names[1]}": self.shares[1],
                "difference": self.differences,
                "lower": low,
                "upper": high,
                "differs": self.differs,
            }
        )

    def to_pandas(self) -> Any:
        """The table as a pandas frame."""
        return self.table().to_pandas()

    def plot(self, path: str | Path | None = None, k: int = 30, axes: Any = None) -> Any:
        """Draw the k foremost differences with their intervals; returns the matplotlib axes (extra
        `plot`).
        """
        from discreet.plots import differences

        return differences(self, path, k, axes)

    def _repr_html_(self) -> str:
        from discreet import notebook

        return notebook.comparison(self)
