"""From a Tally to an Estimate: unbiased counts of people, standard errors and intervals. Clipping
and shrinking are separate steps with names of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.tally import Tally
from discreet.arrays.types import Floats
from discreet.errors import DataError
from discreet.estimates import formulas, intervals, ordered, saving, totals
from discreet.estimates import ranking as ranking_
from discreet.estimates.intervals import Shares
from discreet.estimates.table import COLUMNS, Row, Table
from discreet.estimates.views import VIEWS
from discreet.estimates.weights import Weighting
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.axes import Axes

    from discreet.estimates.comparison import Comparison
    from discreet.estimates.shrink import Shrunk


# More than 15 public methods, because this is the object that users end with: counts, errors,
# views, tables and pictures are one call away, and each method is a few lines.
@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased counts of people per item, with their errors.

    `variance(c)` is the variance of an estimate whose true count is c: `variance_at_zero` +
    `slope` c per item. For sets, the counts are unbiased for people with at most `padding` items.
    A person with more counts padding / (number of items) for each of them instead of 1, and no
    interval covers that (`truncation_note`).

    The examples of the methods go on from this one:

    >>> import discreet as d
    >>> policy = d.Policy.from_levels([("all", "ln(9)", ["a", "b"])])
    >>> mechanism = d.design(policy, "rappor")  # own bits are 1 with chance 3/4, others with 1/4
    >>> tally = mechanism.tally([bytes([1]), bytes([2])], counts=[700, 300])
    >>> estimate = tally.estimate()
    >>> estimate.counts.round().tolist()  # 2 x count - n / 2
    [900.0, 100.0]
    """

    mechanism: Mechanism
    n: int
    counts: Floats
    # the variance of the estimate of an item that nobody holds; infinite where it is unknown
    variance_at_zero: Floats
    slope: Floats  # what one holder adds to it
    # how much an estimate changes if one more report names the item
    step: Floats
    # samples per group, or people per class, where fixed sizes tell them
    group_totals: Floats | None = None
    weighting: Weighting | None = None  # None where every report counts the same

    @classmethod
    def from_tally(cls, tally: Tally) -> Estimate:
        """The unbiased estimate of a tally; `tally.estimate()` is the short way to write it.

        >>> Estimate.from_tally(tally).counts.round().tolist()
        [900.0, 100.0]
        """
        if tally.n == 0:
            raise DataError("there are no reports in this tally, so there is nothing to estimate")
        group_of = tally.mechanism.arrays.group_of
        counts, step = formulas.unbiased_counts(tally)
        base, slope = formulas.group_variance(tally)
        totals = formulas.group_totals(tally)
        return cls(tally.mechanism, tally.n, counts, base[group_of], slope[group_of], step, totals)

    @cached_property
    def stderr(self) -> Floats:
        """The standard error of every count, with the estimate, clipped to [0, n], as the true
        count. Infinite where it is unknown.

        >>> estimate.stderr.round(1).tolist()
        [27.4, 27.4]
        """
        return np.sqrt(self.variance(np.clip(np.nan_to_num(self.counts), 0, self.n)))

    def variance(self, c: Floats | float, about: str = "respondents") -> Floats:
        """The variance of every estimate if its true count is c. With about="population", c / n is
        the true share of the population.

        >>> estimate.variance(0).round(1).tolist()  # n b (1 - b) / (a - b)^2
        [750.0, 750.0]
        """
        return intervals.variance(self, about).at(c)

    def shares(
        self, confidence: float = 0.95, about: str = "population", simultaneous: bool = False
    ) -> Shares:
        """The share of every item, with confidence intervals (score intervals with a continuity
        correction), cut at 0 and 1.

        They are about the population that the people were drawn from, each with the same chance:
        who happened to be asked is part of the error. With about="respondents", they are about
        the people who answered. With `simultaneous`, all of them hold together with this
        probability. Where chance puts a count below 0 or above n, the interval is that of 0 or n.

        >>> share, low, high = estimate.shares()
        >>> share.round(2).tolist(), low.round(3).tolist(), high.round(3).tolist()
        ([0.9, 0.1], [0.841, 0.044], [0.956, 0.159])
        >>> estimate.shares(about="respondents").low.round(3).tolist()  # a little narrower
        [0.845, 0.045]
        """
        return intervals.shares(self, about, confidence, simultaneous)

    def interval(
        self, confidence: float = 0.95, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """The lower and upper ends of confidence intervals (score intervals with a continuity
        correction). With `simultaneous`, all of them hold together with this probability.

        >>> low, high = estimate.interval(0.95)
        >>> low.round().tolist(), high.round().tolist()
        ([845.0, 45.0], [955.0, 155.0])
        """
        return intervals.counts(self, "respondents", confidence, simultaneous)

    def total(
        self, items: Iterable[str | int], confidence: float = 0.95, about: str = "population"
    ) -> Row:
        """The sum of several items: a row like those of the table, with the error of the sum. With
        lists, a person counts once for each of the items, and the error is an upper bound.

        >>> both = estimate.total(["a", "b"])
        >>> both["item"], round(both["count"]), round(both["stderr"], 1)
        ('a + b', 1000, 38.7)
        """
        return totals.table(self, totals.named_sum(self, items), confidence, about).rows()[0]

    def mean(
        self,
        values: Sequence[float] | None = None,
        confidence: float = 0.95,
        about: str = "population",
    ) -> Row:
        """The mean of an ordered question, with its standard error and interval. The points count
        1, 2, 3 and so on, unless `values` are given.

        >>> scale = d.design(d.Policy.from_scale(["little", "fairly", "very"], step=2))
        >>> answers = scale.tally(scale.perturb_many(["little"] * 500 + ["very"] * 500))
        >>> 1.5 < answers.estimate().mean()["mean"] < 2.5
        True
        """
        return ordered.mean(self, values, confidence, about)

    # ---- named post-processing: est.counts stays unbiased ----------------------------------------

    def shrunk(self, pool: str = "all") -> Shrunk:
        """Posterior means (empirical Bayes), always within [0, n].

        The spread of true counts is fitted to `all` items, per `level`, or (`auto`) in the way
        that predicts better.

        >>> estimate = mechanism.tally([bytes([1]), bytes([2])], counts=[800, 200]).estimate()
        >>> estimate.shrunk().counts.round().tolist()
        [1000.0, 0.0]
        """
        from discreet.estimates.shrink import shrink  # scipy takes long to load

        if pool not in self._shrunk:
            self._shrunk[pool] = shrink(self, pool)
        return self._shrunk[pool]

    @cached_property
    def _shrunk(self) -> dict[str, Shrunk]:
        return {}

    def consistent(self) -> Floats:
        """The nearest counts, in units of their noise, that are not negative. For single answers
        they also sum to n.

        >>> estimate = mechanism.tally([bytes([1]), bytes([2])], counts=[800, 200]).estimate()
        >>> estimate.consistent().round().tolist()  # the counts are 1100 and -100
        [1000.0, 0.0]
        """
        from discreet.estimates.shrink import project

        return project(
            self.counts, self.stderr**2, None if self.mechanism.policy.kind.lists else self.n
        )

    def top(
        self,
        k: int,
        confidence: float = 0.95,
        ranking: str = "posterior",
        views: Iterable[str] = (),
        about: str = "population",
    ) -> list[Row]:
        """The k items that rank highest, as rows of the table.

        The ranking is by posterior mean, which does not let a noisy item jump to the top; `in_top`
        is the probability that an item is among the true top k. Or rank by `raw` count.

        >>> [(row["item"], round(row["count"])) for row in estimate.top(2)]
        [('a', 900), ('b', 100)]
        """
        return ranking_.top(self, k, confidence, ranking, views, about)

    @property
    def can_shrink(self) -> bool:
        """Whether a prior can be fitted: every item has an estimate and noise.

        >>> estimate.can_shrink
        True
        """
        return bool((np.isfinite(self.variance_at_zero) & (self.variance_at_zero > 0)).all())

    def above(self, share: float, fdr: float = 0.05, about: str = "population") -> list[Row]:
        """The items whose share exceeds a threshold, as rows of the table. At most a share `fdr`
        of them is expected to be wrong (Benjamini-Hochberg).

        >>> [row["item"] for row in estimate.above(0.5)]
        ['a']
        """
        return ranking_.above(self, share, fdr, about)

    @property
    def truncation_note(self) -> str:
        """What unbiasedness does not cover, for sets; empty for single answers.

        >>> policy = d.Policy.from_levels([("all", 2, ["tea", "coffee", "water"])], kind="set")
        >>> mechanism = d.design(policy, "opt0", padding=2)
        >>> mechanism.tally([bytes([1])]).estimate().truncation_note.partition(".")[0]
        'Unbiased for people with at most 2 items (the padding)'
        """
        return formulas.truncation_note(self.mechanism.padding)

    @property
    def views(self) -> list[str]:
        """The names of the views that this estimate has.

        >>> estimate.views
        ['shrunk', 'consistent']
        """
        return [name for name, view in VIEWS.items() if view.fits(self)]

    def compare(
        self,
        other: Estimate,
        confidence: float = 0.95,
        names: tuple[str, str] = ("A", "B"),
        about: str = "population",
    ) -> Comparison:
        """Compare this estimate's shares with another's of the same items, such as another group
        or another date: of the populations, or with about="respondents" of those who answered.

        >>> other = mechanism.tally([bytes([1]), bytes([2])], counts=[600, 400]).estimate()
        >>> estimate.compare(other).differences.round(2).tolist()
        [0.2, -0.2]
        """
        from discreet.estimates.comparison import Comparison

        return Comparison.between(self, other, confidence, names, about)

    # ---- the table -------------------------------------------------------------------------------

    def __getitem__(self, item: str | int) -> Row:
        """The row of one item, by label or index, with its 95 % interval."""
        return self.table().take([self.mechanism.policy.place(item)]).rows()[0]

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.table().rows())

    def __contains__(self, item: object) -> bool:
        return item in self.mechanism.policy.index

    def to_arrow(self, confidence: float = 0.95, views: Iterable[str] = ()) -> pa.Table:
        """The table as an Arrow table.

        >>> estimate.to_arrow().column("item").to_pylist()
        ['a', 'b']
        """
        return self.table(confidence, views).to_arrow()

    def to_pandas(self, confidence: float = 0.95, views: Iterable[str] = ()) -> pd.DataFrame:
        """The table as a pandas frame.

        >>> estimate.to_pandas()["count"].round().tolist()
        [900.0, 100.0]
        """
        return self.table(confidence, views).to_pandas()

    def __str__(self) -> str:
        from discreet.show import terminal

        return terminal.estimate_text(self)

    def _repr_html_(self) -> str:
        from discreet.show import notebook

        return notebook.estimate(self)

    def table(
        self, confidence: float = 0.95, views: Iterable[str] = (), about: str = "population"
    ) -> Table:
        """One row per item, the table that every command, file, page and picture shows. `views` add
        columns beside the unbiased ones. `about` says what the shares are about.

        >>> list(estimate.table(views=["consistent"]).columns)[-4:]
        ['share', 'share_low', 'share_high', 'consistent']
        """
        policy = self.mechanism.policy
        levels = np.array([level.name for level in policy.levels], object)
        labels = np.array(policy.items, object), levels[self.mechanism.arrays.level_of]
        shares = self.shares(confidence, about)
        numbers = self.counts, self.stderr, *self.interval(confidence), *shares
        columns = dict(zip(COLUMNS, (*labels, *numbers), strict=True))
        for view in [views] if isinstance(views, str) else views:
            if view not in VIEWS:
                raise DataError(f'the view "{view}" is not known; there are {", ".join(VIEWS)}')
            for name, column in VIEWS[view].columns(self, confidence).items():
                columns[f"{view}_{name}" if name else view] = column
        return Table(columns)

    def totals(self, confidence: float = 0.95, about: str = "population") -> Table:
        """The sums of items that have a name in the policy: rows like those of the items.

        >>> policy = d.Policy.from_levels([("all", 2, ["tea", "mate", "water"])],
        ...                               totals={"hot": ["tea", "mate"]})
        >>> tally = d.design(policy).tally(d.design(policy).perturb_many(["tea"] * 500))
        >>> list(tally.estimate().totals().columns["item"])
        ['hot']
        """
        return saving.all_totals(self, confidence, about)

    def save(
        self,
        path: str | Path,
        confidence: float = 0.95,
        views: Iterable[str] = (),
        about: str = "population",
    ) -> None:
        """Write the table as CSV, Parquet or JSON, by the ending of the path.

        >>> import discreet as d, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     estimate.save(path := pathlib.Path(folder, "estimate.csv"))
        ...     path.read_text().splitlines()[0].rpartition('"share",')[2]
        '"share_low","share_high","n","confidence","about"'
        """
        saving.save({(): self}, path, (), confidence, views, about)

    def plot(
        self,
        path: str | Path | None = None,
        k: int = 30,
        confidence: float = 0.95,
        view: str | None = None,
        truth: Floats | None = None,
        axes: Axes | None = None,
    ) -> Axes:
        """Draw the top items as bars with whiskers, coloured by level, with a view or the truth
        beside them. Draws into a file (PNG, SVG), into given matplotlib axes, or into new ones for
        a notebook. Returns the axes (extra `plot`).

        >>> [label.get_text() for label in estimate.plot().get_yticklabels()]
        ['a', 'b']
        """
        from discreet.show.plots import bars

        return bars(self, path, k, confidence, truth, view, axes)
