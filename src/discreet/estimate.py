"""Tally -> Estimate: unbiased counts of people, standard errors, intervals; what clips or shrinks
is a separately named step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.parts import Floats
from discreet.shrink import Shrunk, project, shrink
from discreet.table import Table
from discreet.tally import Tally
from discreet.views import VIEWS

if TYPE_CHECKING:
    from discreet.comparison import Comparison

COLUMNS = ("item", "level", "count", "stderr", "lower", "upper", "share")


@dataclass(frozen=True, eq=False)
class Estimate:
    """Counts of people per item, unbiased, with their errors.

    `variance(c)` is the variance of an estimate whose true count is c: `base` + `slope` c per item.
    For set input the counts are unbiased for people with at most `padding` items; whoever has more
    is counted for each of them with padding / (number of items) instead of 1, which no interval
    covers (`truncation_note`).
    """

    mechanism: Mechanism
    n: int
    counts: Floats
    # variance of the estimate of an item that nobody holds; infinite where nothing is known
    base: Floats
    slope: Floats  # what one holder adds to it
    # the change of an estimate when one report names the item or not: the grain of the estimates
    step: Floats

    @classmethod
    def of(cls, tally: Tally) -> Estimate:
        """The unbiased estimate of a tally."""
        if tally.n == 0:
            raise DataError("there are no reports in this tally, so there is nothing to estimate")
        mechanism, n, scale = tally.mechanism, tally.n, tally.mechanism.scale
        d, group_of = mechanism.decoder, mechanism.group_of
        # sum_o w_o (Y_oi - N_o kappa_o) + sum_o tau_o N_o
        named = (d.weight[:, group_of] * tally.counts).sum(axis=0)
        level = tally.part_n @ (d.tau - d.weight * d.kappa)
        counts = np.where(d.known[group_of], scale * (named + level[group_of]), np.nan)
        used = np.where((tally.part_n > 0)[:, None], np.abs(d.weight), 0).max(axis=0)
        # a lone item is told by the parts alone
        step = scale * np.where(used > 0, used, np.abs(d.tau).max(axis=0))
        base, slope = _variance(tally)
        return cls(
            mechanism,
            n,
            counts,
            base[group_of],
            slope[group_of],
            np.where(d.known, step, np.inf)[group_of],
        )

    @cached_property
    def stderr(self) -> Floats:
        """Standard error of every count, the true count taken as the estimate within [0, n];
        infinite where none is known.
        """
        return np.sqrt(self.variance(np.clip(np.nan_to_num(self.counts), 0, self.n)))

    def variance(self, c: Any) -> Floats:
        """The variance of every estimate if its true count were c."""
        return np.maximum(self.base + self.slope * c, 0)

    @property
    def shares(self) -> Floats:
        """Counts divided by the number of reports."""
        return self.counts / self.n

    def interval(
        self, confidence: float = 0.95, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends of confidence intervals: all true counts c with |estimate - c| <= z
        sd(c) + half a grain.

        The standard deviation is taken at the count that is tested (a score interval), not at the
        estimate, and the half grain is the continuity correction. With `simultaneous` all intervals
        hold together with this probability.
        """
        if not 0 < confidence < 1:
            raise DataError(f"confidence = {confidence} must be between 0 and 1, such as 0.95")
        tail = (1 - confidence) / 2
        if simultaneous:
            tail = -np.expm1(np.log1p(-2 * tail) / len(self.counts)) / 2
        z2 = float(ndtri(tail)) ** 2
        # far out the counts' skewness shows (Cornish-Fisher): a rare bit strays further up than
        # down
        skew = (z2 - 1) / 6 if simultaneous else 0.0
        low, high = self.counts - (0.5 + skew) * self.step, self.counts + self.step / 2
        with np.errstate(invalid="ignore"):
            ends = [self._root(low, z2, -1), self._root(high, z2, +1)]
        known = np.isfinite(self.base)
        return np.where(known, ends[0], -np.inf), np.where(known, ends[1], np.inf)

    def _root(self, e: Floats, z2: float, sign: int) -> Floats:
        """The root of (c - e)^2 = z^2 (base + slope c) on one side; e itself where no count there
        has a variance (small n).
        """
        half = e + z2 * self.slope / 2
        inside = half**2 - e**2 + z2 * self.base
        alone = inside < 0 if sign > 0 else self.base + self.slope * e <= 0
        root = np.where(alone, e, half + sign * np.sqrt(np.maximum(inside, 0)))
        return np.maximum(root, e) if sign > 0 else np.minimum(root, e)

    # ---- named post-processing: est.counts stays unbiased ----------------------------------------

    def shrunk(self, pool: str = "all") -> Shrunk:
        """Empirical Bayes: posterior means, where the spread of true counts is fitted to `all`
        items, per `level`, or (`auto`) to what predicts better.
        """
        if pool not in self._shrunk:
            self._shrunk[pool] = shrink(self, pool)
        return self._shrunk[pool]

    @cached_property
    def _shrunk(self) -> dict[str, Shrunk]:
        return {}

    def consistent(self) -> Floats:
        """The nearest counts, in units of their noise, that are not negative and (single input) sum
        to n.
        """
        return project(
            self.counts, self.stderr**2, None if self.mechanism.policy.takes_sets else self.n
        )

    def top(
        self,
        k: int,
        confidence: float = 0.95,
        ranking: str = "posterior",
        views: Iterable[str] = (),
    ) -> list[dict[str, Any]]:
        """The k items that rank highest, as rows of the table: by posterior mean, which does not
        let a noisy item jump to the top, with the probability `in_top` that each is among the true
        top k; or by `raw` count.
        """
        if k < 1:
            raise DataError(f"k = {k} must be at least 1")
        if ranking not in ("posterior", "raw"):
            raise DataError(f'ranking = "{ranking}" must be posterior or raw')
        table = self.table(confidence, views)
        if ranking == "raw" or not self.can_shrink:
            order = np.argsort(-np.nan_to_num(self.counts, nan=-np.inf), kind="stable")
            return table.take(order[:k]).rows()
        shrunk = self.shrunk()
        more = {"shrunk": shrunk.counts}
        if k < len(table):  # of all items, every one is in the top
            more["in_top"] = shrunk.in_top(k)
        table = Table({**table.columns, **more})
        return table.take(np.argsort(-shrunk.counts, kind="stable")[:k]).rows()

    @property
    def can_shrink(self) -> bool:
        """Whether every item has an estimate and noise, so that a prior can be fitted."""
        return bool((np.isfinite(self.base) & (self.base > 0)).all())

    def above(self, share: float, fdr: float = 0.05) -> list[dict[str, Any]]:
        """Items whose share exceeds a threshold, with at most `fdr` false ones expected among them
        (Benjamini-Hochberg).
        """
        if not (0 <= share < 1 and 0 < fdr < 1):
            raise DataError(f"share = {share} must be in [0, 1) and fdr = {fdr} in (0, 1)")
        limit = share * self.n
        sd = np.sqrt(self.variance(limit))
        with np.errstate(divide="ignore", invalid="ignore"):
            p = ndtr(-(self.counts - self.step / 2 - limit) / sd)
        p = np.where(np.isfinite(self.base), p, 1.0)
        order = np.argsort(p, kind="stable")
        passed = np.flatnonzero(p[order] <= fdr * np.arange(1, len(p) + 1) / len(p))
        return self.table().take(order[: passed.max() + 1]).rows() if len(passed) else []

    @property
    def truncation_note(self) -> str:
        """What unbiasedness does not cover, for set input; empty for single input."""
        ell = self.mechanism.padding
        if ell is None:
            return ""
        return (
            f"Unbiased for people with at most {ell} item{'s' if ell > 1 else ''} (the padding). "
            "Whoever has more is counted for "
            f"each of them with {ell} / (number of items) instead of 1: counts are then too low, "
            "and intervals do not cover that."
        )

    @property
    def views(self) -> list[str]:
        """The views that this estimate has."""
        return [name for name, view in VIEWS.items() if view.fits(self)]

    def compare(
        self, other: Estimate, confidence: float = 0.95, names: tuple[str, str] = ("A", "B")
    ) -> Comparison:
        """This estimate's shares minus another's of the same items, such as another group's or
        another date's.
        """
        from discreet.comparison import Comparison

        return Comparison.of(self, other, confidence, names)

    # ---- the table -------------------------------------------------------------------------------

    def __getitem__(self, item: str | int) -> dict[str, Any]:
        """The row of one item, by label or index, with its 95 % interval."""
        return self.table().take([self.mechanism.policy.place(item)]).rows()[0]

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table().rows())

    def __contains__(self, item: object) -> bool:
        return item in self.mechanism.policy.index

    def to_arrow(self, confidence: float = 0.95, views: Iterable[str] = ()) -> Any:
        """The table as an Arrow table."""
        return self.table(confidence, views).to_arrow()

    def to_pandas(self, confidence: float = 0.95, views: Iterable[str] = ()) -> Any:
        """The table as a pandas frame."""
        return self.table(confidence, views).to_pandas()

    def _repr_html_(self) -> str:
        from discreet import notebook

        return notebook.estimate(self)

    def table(self, confidence: float = 0.95, views: Iterable[str] = ()) -> Table:
        """One row per item: what every command, file, page and picture shows; `views` add columns
        beside the unbiased ones.
        """
        policy = self.mechanism.policy
        levels = np.array([level.name for level in policy.levels], object)
        low, high = self.interval(confidence)
        values = (
            np.array(policy.items, object),
            levels[self.mechanism.level_of],
            self.counts,
            self.stderr,
            low,
            high,
            self.shares,
        )
        columns = dict(zip(COLUMNS, values, strict=True))
        for view in [views] if isinstance(views, str) else views:
            if view not in VIEWS:
                raise DataError(f'the view "{view}" is not known; there are {", ".join(VIEWS)}')
            for name, column in VIEWS[view].columns(self, confidence).items():
                columns[f"{view}_{name}" if name else view] = column
        return Table(columns)

    def save(self, path: str | Path, confidence: float = 0.95, views: Iterable[str] = ()) -> None:
        """Write the table as CSV, Parquet or JSON, by the ending of the path."""
        from discreet.files import write_text

        table = self.table(confidence, views)
        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet", ".json"):
            raise DataError(f"{path}: a table is written as .csv, .parquet or .json")
        if suffix != ".json":
            table.save(path)
            return
        document = {
            "n": self.n,
            "fingerprint": self.mechanism.fingerprint,
            "confidence": confidence,
            "items": table.rows(),
            "note": self.truncation_note,
        }
        write_text(path, json.dumps(document, ensure_ascii=False, indent=1) + "\n")

    def plot(
        self,
        path: str | Path | None = None,
        k: int = 30,
        confidence: float = 0.95,
        view: str | None = None,
        truth: Any = None,
        axes: Any = None,
    ) -> Any:
        """Draw the top items as bars with whiskers, coloured by level, and a view or the truth
        beside them: into a file (PNG, SVG), into given matplotlib axes, or into new ones, as
        notebooks show them. Returns the axes (extra `plot`).
        """
        from discreet.plots import bars

        return bars(self, path, k, confidence, truth, view, axes)


def _variance(tally: Tally) -> tuple[Floats, Floats]:
    """The variance of an estimate per group: of an item that nobody holds, and what one holder
    adds.

    Subsets of fixed size tell the totals of the groups, and with them how many reports of every
    part are to be expected; a rare part that nobody happened to use is not forgotten that way.
    """
    mechanism, n, scale = tally.mechanism, tally.n, tally.mechanism.scale
    d, sizes = mechanism.decoder, mechanism.group_sizes
    # a holder is sampled with chance 1 / scale: c / scale samples, and c / scale^2 is subtracted
    if not mechanism.encoding.fixed_size or not d.known.all():
        return scale**2 * d.base(tally.part_n, np.zeros(len(sizes))), scale * d.slope - 1
    totals = np.maximum(sizes * (tally.part_n @ d.tau), 0)
    if mechanism.policy.takes_sets:
        totals = np.append(totals, max(n - totals.sum(), 0))
    totals *= n / totals.sum()
    expected = d.chance @ totals
    base, slope = d.base(expected, totals), d.slope
    # a lone item's count is its group's total, so everything else moves with it
    others = expected[:, None] - (d.chance * totals)[:, : len(sizes)]
    with np.errstate(divide="ignore", invalid="ignore"):
        elsewhere = (others * d.spread).sum(axis=0) / (n - totals[: len(sizes)])
    everyone = (d.spread.T @ d.chance).mean(axis=1)  # where nobody seems to be elsewhere
    elsewhere = np.where(totals[: len(sizes)] < n * (1 - 1e-9), elsewhere, everyone)
    if len(d.chance.T) == 1:
        elsewhere = np.zeros(1)
    lone = sizes == 1
    base, slope = np.where(lone, n * elsewhere, base), np.where(lone, d.own - elsewhere, slope)
    return scale**2 * base, scale * slope - 1
