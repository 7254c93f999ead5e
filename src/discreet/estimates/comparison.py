"""Compare two estimates of the same items, such as two groups or two dates: what differs, and what
may be chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.types import Bools, Floats, Ints
from discreet.errors import DataError
from discreet.estimates.formulas import check_about, check_confidence
from discreet.estimates.intervals import Shares
from discreet.estimates.table import Table
from discreet.estimates.totals import shares_together
from discreet.policy.labels import quoted
from discreet.policy.lazy import cached_property
from discreet.survey.about import REHEARSAL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from discreet.estimates.estimate import Estimate

NAMED = 3  # differences that the sentence names


@dataclass(frozen=True, eq=False)
class Comparison:
    """The shares of the first estimate minus those of the second, with intervals that hold for all
    items together.

    They are about the two populations, of which the people who answered are random samples: the
    intervals cover the noise of the reports and the luck of the draw. Where the same people answer
    twice, they are wider than needed. With about="respondents" they cover the noise alone, and say
    nothing about those who did not answer.

    The examples of the methods go on from this one:

    >>> import discreet as d
    >>> mechanism = d.design(d.Policy.from_levels([("all", "ln(9)", ["a", "b"])]), "rappor")
    >>> one, two = (
    ...     mechanism.tally([bytes([1]), bytes([2])], counts=counts).estimate()
    ...     for counts in ([6000, 4000], [4000, 6000])
    ... )
    >>> comparison = one.compare(two, names=("north", "south"))
    >>> comparison.differences.round(2).tolist(), comparison.differs.tolist()
    ([0.4, -0.4], [True, True])
    """

    first: Estimate
    second: Estimate
    confidence: float
    names: tuple[str, str]
    about: str = "population"

    @classmethod
    def between(
        cls,
        first: Estimate,
        second: Estimate,
        confidence: float = 0.95,
        names: tuple[str, str] = ("A", "B"),
        about: str = "population",
    ) -> Comparison:
        """Compare two estimates; `Estimate.compare` is the short way to write it.

        Refuses estimates of different items.

        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["tea", "coffee"])]), "rappor")
        >>> estimate = mechanism.tally([bytes([1]), bytes([2])], counts=[600, 400]).estimate()
        >>> Comparison.between(estimate, estimate).differences.tolist()
        [0.0, 0.0]
        """
        from discreet.estimates.estimate import Estimate

        if not isinstance(second, Estimate):
            raise DataError(f"an estimate is compared with another, got {type(second).__name__}")
        mine, other = (set(e.mechanism.policy.items) for e in (first, second))
        if mine != other:
            odd = min(mine ^ other)
            where = names[0] if odd in mine else names[1]
            raise DataError(
                f"the two are not about the same items: {quoted(odd)} is only in {where}; compare "
                "collections with the same answers"
            )
        if len(set(names)) < 2:
            raise DataError(f"the two need different names, got {quoted(names[0])} twice")
        check_confidence(confidence)
        check_about(about)
        return cls(first, second, confidence, names, about)

    @cached_property
    def _order(self) -> Ints:
        """The place in the second estimate of every item of the first; then the sums."""
        index = self.second.mechanism.policy.index
        places = [index[item] for item in self.first.mechanism.policy.items]
        return np.array([*places, *range(len(places), len(places) + len(self._totals))])

    @cached_property
    def _totals(self) -> tuple[str, ...]:
        """The names of the sums of items that both policies have."""
        mine, other = (
            {total.name: {*total.items} for total in e.mechanism.policy.totals}
            for e in (self.first, self.second)
        )
        return tuple(name for name, items in mine.items() if other.get(name) == items)

    def _sums(self, estimate: Estimate) -> dict[str, list[int]]:
        """The places of the items of every sum."""
        policy = estimate.mechanism.policy
        items = {total.name: total.items for total in policy.totals}
        return {name: [policy.index[item] for item in items[name]] for name in self._totals}

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the rows: the items, then the named sums that both policies have.

        >>> comparison.labels
        ('a', 'b')
        """
        return *self.first.mechanism.policy.items, *self._totals

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """The shares of both estimates, in the order of the first.

        >>> [shares.round(2).tolist() for shares in comparison.shares]
        [[0.7, 0.3], [0.3, 0.7]]
        """
        a, b = self._ends
        return a.share, b.share

    @cached_property
    def _ends(self) -> tuple[Shares, Shares]:
        """The shares of both estimates with intervals that hold together."""
        a, b = (
            shares_together(e, self._sums(e), self.about, self.confidence)
            for e in (self.first, self.second)
        )
        return a, Shares(*(column[self._order] for column in b))

    @property
    def differences(self) -> Floats:
        """The shares of the first minus those of the second.

        >>> comparison.differences.round(2).tolist()
        [0.4, -0.4]
        """
        return self.shares[0] - self.shares[1]

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """The lower and upper ends of the differences, for all items together.

        The ends of the two estimates' own intervals are combined (Zou and Donner's MOVER). An
        interval that reaches further up than down stays that way.

        >>> low, high = comparison.interval
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([0.37, -0.43], [0.43, -0.37])
        """
        (a, low_a, high_a), (b, low_b, high_b) = self._ends
        with np.errstate(invalid="ignore"):
            low = (a - b) - np.hypot(a - low_a, high_b - b)
            high = (a - b) + np.hypot(high_a - a, b - low_b)
        return np.clip(np.nan_to_num(low, nan=-1.0), -1, 1), np.clip(
            np.nan_to_num(high, nan=1.0), -1, 1
        )

    @property
    def differs(self) -> Bools:
        """Whether an item's share is certainly larger or smaller, at the confidence asked for.

        >>> few, more = (
        ...     mechanism.tally([bytes([1]), bytes([2])], counts=counts).estimate()
        ...     for counts in ([6, 4], [4000, 6000])
        ... )
        >>> few.compare(more).differs.tolist()  # ten people could differ by chance
        [False, False]
        """
        low, high = self.interval
        return (low > 0) | (high < 0)

    @cached_property
    def ranked(self) -> Ints:
        """The places of all items: those that differ first, then by the size of the difference.

        >>> policy = d.Policy.from_levels([("all", "ln(9)", ["tea", "coffee", "water"])])
        >>> mechanism = d.design(policy, "rappor")
        >>> one, two = (
        ...     mechanism.tally([bytes([1]), bytes([2]), bytes([4])], counts=counts).estimate()
        ...     for counts in ([3000, 4000, 3000], [3000, 2000, 5000])
        ... )
        >>> [policy.items[place] for place in one.compare(two).ranked]
        ['coffee', 'water', 'tea']
        """
        size = np.abs(np.nan_to_num(self.differences))
        return np.lexsort((-size, ~self.differs))

    @property
    def _whom(self) -> str:
        return "of the populations" if self.about == "population" else "of those who answered"

    @property
    def _things(self) -> str:
        return "items and totals" if self._totals else "items"

    @property
    def sentence(self) -> str:
        """What the comparison shows, and what it does not, in words.

        >>> print(comparison.sentence.partition(": ")[0])
        2 of 2 items differ for certain (95 % for all of them together, of the populations)
        """
        first, second = self.names
        sure, low, high = self.differs, *self.interval
        trust, whom = f"{100 * self.confidence:g} %", self._whom
        if not sure.any():
            width = float(np.median(np.maximum(high - self.differences, self.differences - low)))
            return (
                f"No difference between {first} and {second} is certain ({trust} for all "
                f"{len(sure):,} {self._things} together, {whom}): each could be chance. A typical "
                f"item would have to differ by about {100 * width:.2g} percentage points to show."
            )
        sentences = []
        for k in self.ranked[: min(NAMED, int(sure.sum()))]:
            ends = sorted((abs(low[k]), abs(high[k])))
            more = first if low[k] > 0 else second
            sentences.append(
                f"{quoted(self.labels[k])} is more frequent in {more}, by {100 * ends[0]:.2g} to "
                f"{100 * ends[1]:.2g} percentage points"
            )
        rest = int(sure.sum()) - len(sentences)
        more = f"; and {rest:,} more" if rest else ""
        return (
            f"{int(sure.sum()):,} of {len(sure):,} {self._things} differ for certain ({trust} for "
            f"all of them together, {whom}): {'; '.join(sentences)}{more}."
        )

    @property
    def note(self) -> str:
        """What no interval covers: simulated people, and sets cut at a padding. Empty otherwise.

        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])], kind="each"))
        >>> estimate = mechanism.tally([bytes([1]), bytes([2])]).estimate()
        >>> estimate.compare(estimate).note
        ''
        """
        mechanisms = [e.mechanism for e in (self.first, self.second)]
        notes = [
            f"{name} is a rehearsal: its people are simulated."
            for name, mechanism in zip(self.names, mechanisms, strict=True)
            if mechanism.policy.question.startswith(REHEARSAL)
        ]
        paddings = dict.fromkeys(mechanism.padding for mechanism in mechanisms)
        if any(paddings):
            lengths = " and ".join(str(x or "none") for x in paddings)
            notes.append(
                f"People with more items than the padding ({lengths}) are counted with less than 1 "
                "for each: where lists are longer in one of the two, that alone looks like a "
                "difference."
            )
        return " ".join(notes)

    def table(self) -> Table:
        """One row per item, in the order of the first estimate, then one per named sum of items.

        >>> row = one.compare(two, names=("2026", "2027")).table().rows()[0]
        >>> row["item"], round(row["share_2026"], 2), round(row["share_2027"], 2), row["differs"]
        ('a', 0.7, 0.3, True)
        """
        policy = self.first.mechanism.policy
        levels = [policy.levels[k].name for k in policy.level_of]
        low, high = self.interval
        return Table(
            {
                "item": np.array(self.labels, object),
                "level": np.array([*levels, *("total" for _ in self._totals)], object),
                f"share_{self.names[0]}": self.shares[0],
                f"share_{self.names[1]}": self.shares[1],
                "difference": self.differences,
                "lower": low,
                "upper": high,
                "differs": self.differs,
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame.

        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]), "rappor")
        >>> estimate = mechanism.tally([bytes([1]), bytes([2])]).estimate()
        >>> list(estimate.compare(estimate).to_pandas().columns[:4])
        ['item', 'level', 'share_A', 'share_B']
        """
        return self.table().to_pandas()

    def plot(self, path: str | Path | None = None, k: int = 30, axes: Axes | None = None) -> Axes:
        """Draw the k largest differences with their intervals. Returns the matplotlib axes (extra
        `plot`).

        >>> import tempfile
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]), "rappor")
        >>> estimate = mechanism.tally([bytes([1]), bytes([2])]).estimate()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     axes = estimate.compare(estimate).plot(f"{folder}/differences.svg")
        >>> axes.get_title()
        'A and B: 2 and 2 reports'
        """
        from discreet.show.plots import differences

        return differences(self, path, k, axes)

    def _repr_html_(self) -> str:
        from discreet.show import notebook

        return notebook.comparison(self)
