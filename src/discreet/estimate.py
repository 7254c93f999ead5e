"""Tally -> Estimate: unbiased counts of people, standard errors, intervals; what clips or shrinks is a separately named step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from discreet import theory
from discreet.errors import DataError
from discreet.mechanism import Floats, Mechanism
from discreet.shrink import Shrunk, project, shrink
from discreet.tally import Tally


@dataclass(frozen=True, eq=False)
class Estimate:
    """Counts of people per item, unbiased, with their errors.

    `variance(c)`, the variance of an estimate whose true count is c, is the parabola a0 + a1 c + a2 c^2 per item. For set
    input the counts are unbiased for people with at most `padding` items; whoever has more is counted for each of them
    with padding / (number of items) instead of 1, which no interval covers (`truncation_note`).
    """

    mechanism: Mechanism
    n: int
    counts: Floats
    a0: Floats
    a1: Floats
    a2: Floats
    step: Floats  # the change of an estimate when one report changes its bit: the grain of the estimates

    @classmethod
    def of(cls, tally: Tally) -> Estimate:
        """The unbiased estimate of a tally."""
        if tally.n == 0:
            raise DataError("there are no reports in this tally, so there is nothing to estimate")
        return _direct(tally) if tally.mechanism.direct else _unary(tally)

    @cached_property
    def stderr(self) -> Floats:
        """Standard error of every count, the true count taken as the estimate within [0, n]; infinite where none is known."""
        return np.sqrt(self._variance(np.clip(np.nan_to_num(self.counts), 0, self.n)))

    def _variance(self, c: Floats) -> Floats:
        return np.maximum(self.a0 + self.a1 * c + self.a2 * c**2, 0)

    @property
    def shares(self) -> Floats:
        """Counts divided by the number of reports."""
        return self.counts / self.n

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends of confidence intervals: all true counts c with |estimate - c| <= z sd(c) + half a grain.

        The standard deviation is taken at the count that is tested (a score interval), not at the estimate, and the half
        grain is the continuity correction. With `simultaneous` all intervals hold together with this probability.
        """
        if not 0 < level < 1:
            raise DataError(f"level = {level} must be between 0 and 1, such as 0.95")
        tail = (1 - level) / 2
        z2 = float(ndtri(-np.expm1(np.log1p(-2 * tail) / len(self.counts)) / 2 if simultaneous else tail)) ** 2
        # far out the counts' skewness shows (Cornish-Fisher): a rare bit strays further up than down
        skew = (z2 - 1) / 6 if simultaneous else 0.0
        low, high = self.counts - (0.5 + skew) * self.step, self.counts + self.step / 2
        with np.errstate(invalid="ignore"):
            ends = [self._root(low, z2, -1), self._root(high, z2, +1)]
        known = np.isfinite(self.a0)
        return np.where(known, ends[0], -np.inf), np.where(known, ends[1], np.inf)

    def _root(self, e: Floats, z2: float, sign: int) -> Floats:
        """The root of (c - e)^2 = z^2 (a0 + a1 c + a2 c^2) on one side; e itself where no count there has a variance (small n)."""
        lead, half = 1 - z2 * self.a2, e + z2 * self.a1 / 2
        inside = half**2 - lead * (e**2 - z2 * self.a0)
        alone = inside < 0 if sign > 0 else self.a0 + self.a1 * e + self.a2 * e**2 <= 0
        return np.where(alone, e, (half + sign * np.sqrt(np.maximum(inside, 0))) / lead)

    # ---- named post-processing: est.counts stays unbiased ---------------------------------------------

    def shrunk(self, prior: str = "one") -> Shrunk:
        """Empirical Bayes: posterior means under a prior fitted to all items (`one`, per `level`, or `auto`)."""
        if prior not in self._shrunk:
            self._shrunk[prior] = shrink(self, prior)
        return self._shrunk[prior]

    @cached_property
    def _shrunk(self) -> dict[str, Shrunk]:
        return {}

    def consistent(self) -> Floats:
        """The nearest counts, in units of their noise, that are not negative and (single input) sum to n."""
        return project(self.counts, self.stderr**2, self.n if self.mechanism.padding is None else None)

    def top(self, k: int, level: float = 0.95, ranking: str = "posterior") -> list[dict[str, Any]]:
        """The k items that rank highest, as rows of the table: by posterior mean, which does not let a noisy item jump to the
        top, with the probability `in_top` that each is among the true top k; or by `raw` count.
        """
        if k < 1:
            raise DataError(f"k = {k} must be at least 1")
        if ranking not in ("posterior", "raw"):
            raise DataError(f'ranking = "{ranking}" must be posterior or raw')
        rows = self.rows(level)
        if ranking == "raw" or not self.can_shrink:
            order = np.argsort(-np.nan_to_num(self.counts, nan=-np.inf), kind="stable")[:k]
            return [rows[i] for i in order]
        shrunk = self.shrunk()
        order = np.argsort(-shrunk.counts, kind="stable")[:k]
        chance = shrunk.in_top(min(k, len(rows)))
        return [{**rows[i], "shrunk": float(shrunk.counts[i]), "in_top": float(chance[i])} for i in order]

    @property
    def can_shrink(self) -> bool:
        """Whether every item has an estimate and noise, so that a prior can be fitted."""
        return bool((np.isfinite(self.a0) & (self.a0 > 0)).all())

    def above(self, share: float, fdr: float = 0.05) -> list[dict[str, Any]]:
        """Items whose share exceeds a threshold, with at most `fdr` false ones expected among them (Benjamini-Hochberg)."""
        if not (0 <= share < 1 and 0 < fdr < 1):
            raise DataError(f"share = {share} must be in [0, 1) and fdr = {fdr} in (0, 1)")
        limit = share * self.n
        sd = np.sqrt(self._variance(np.full(len(self.counts), limit)))
        with np.errstate(divide="ignore", invalid="ignore"):
            p = ndtr(-(self.counts - self.step / 2 - limit) / sd)
        p = np.where(np.isfinite(self.a0), p, 1.0)
        order = np.argsort(p, kind="stable")
        passed = np.flatnonzero(p[order] <= fdr * np.arange(1, len(p) + 1) / len(p))
        rows = self.rows()
        return [rows[i] for i in order[: passed.max() + 1]] if len(passed) else []

    @property
    def truncation_note(self) -> str:
        """What unbiasedness does not cover, for set input; empty for single input."""
        ell = self.mechanism.padding
        if ell is None:
            return ""
        return (
            f"Unbiased for people with at most {ell} item{'s' if ell > 1 else ''} (the padding). Whoever has more is counted for "
            f"each of them with {ell} / (number of items) instead of 1: counts are then too low, and intervals do not cover that."
        )

    # ---- tables ---------------------------------------------------------------------------------------

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per item: item, level, count, stderr, lower, upper, share."""
        columns = self.columns(level)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        """The table by columns."""
        policy = self.mechanism.policy
        low, high = self.interval(level)
        return {
            "item": list(policy.items),
            "level": [policy.levels[k].name for k in policy.level_of],
            "count": self.counts.tolist(),
            "stderr": self.stderr.tolist(),
            "lower": low.tolist(),
            "upper": high.tolist(),
            "share": self.shares.tolist(),
        }

    def extra_columns(self, shrunk: bool, consistent: bool, level: float = 0.95) -> dict[str, list[Any]]:
        """Post-processed columns, beside the unbiased ones."""
        columns: dict[str, list[Any]] = {}
        if shrunk:
            found = self.shrunk()
            low, high = found.interval(level)
            values = (found.counts, found.stderr, low, high)
            columns |= {f"shrunk{name}": x.tolist() for name, x in zip(("", "_sd", "_lower", "_upper"), values, strict=True)}
        if consistent:
            columns["consistent"] = self.consistent().tolist()
        return columns

    def save(self, path: str | Path, level: float = 0.95, shrunk: bool = False, consistent: bool = False) -> None:
        """Write the table as CSV, Parquet or JSON, by the ending of the path."""
        from discreet.files import write_table, write_text

        columns = self.columns(level) | self.extra_columns(shrunk, consistent, level)
        if Path(path).suffix.lower() == ".json":
            table = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
            for row in table:
                row.update((key, None) for key, value in row.items() if isinstance(value, float) and not np.isfinite(value))
            text = {"n": self.n, "fingerprint": self.mechanism.fingerprint, "interval": level, "items": table}
            write_text(path, json.dumps({**text, "note": self.truncation_note}, ensure_ascii=False, indent=1) + "\n")
        else:
            write_table(path, columns)

    def plot(self, path: str | Path, k: int = 30, shrunk: bool = False) -> None:
        """Draw the top items as bars with whiskers, coloured by level, raw and shrunk side by side (PNG, SVG; extra `plot`)."""
        from discreet.plots import bars

        bars(self, path, k, shrunk=shrunk)


def _unary(tally: Tally) -> Estimate:
    """Parts combined by their information (DESIGN "mixed designs"): c = n sum_k I_k Z_k / sum_k n_k I_k."""
    mechanism, n = tally.mechanism, tally.n
    level_of, ell = mechanism.level_of, mechanism.padding or 1
    a, b, diff = (np.stack([getattr(p, key) for p in mechanism.parts], axis=1) for key in ("a", "b", "difference"))
    spread = b * (1 - b)
    share = tally.part_n / n
    # I_k Z_k = (a - b) / (b (1 - b)) (count - n_k b): no division by a - b, so a part that informs nothing adds nothing
    weight, information = diff / spread, diff**2 / spread
    total = (information @ share)[level_of]
    residual = tally.counts.T - tally.part_n * b[level_of]
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = ell * (weight[level_of] * residual).sum(axis=1) / total
        step = ell * np.where(tally.part_n > 0, weight, 0).max(axis=1)[level_of] / total
    noise = theory.Noise.combine(share, information, information**2 * _extra(a, b, diff))
    V, h, s = noise.V[level_of], noise.h[level_of], noise.s[level_of]
    # Var = n ell^2 (V + h pi + (1 + s)(pi - pi/ell) + s (pi/ell - pi^2)) with pi = c / (n ell): a parabola in c
    linear = h + (1 + s) * (1 - 1 / ell) + s / ell
    return Estimate(mechanism, n, counts, n * ell**2 * V, ell * linear, -s / n, step)


def _extra(a: Floats, b: Floats, diff: Floats) -> Floats:
    """q - p = (1 - a - b) / (a - b); 0 where nothing is learnt."""
    return (1 - a - b) / np.where(diff > 0, diff, np.inf)


def _direct(tally: Tally) -> Estimate:
    """Class totals first, then every item (DESIGN "direct encoding"), without an m x m inverse."""
    mechanism, n = tally.mechanism, tally.n
    assert mechanism.matrix is not None
    D, O = mechanism.matrix.D, mechanism.matrix.O
    sizes = theory.group_sizes(mechanism.matrix, mechanism.sizes)
    groups = np.array(mechanism.matrix.groups)[mechanism.level_of]
    seen = tally.counts[0]
    sent = np.bincount(groups, weights=seen, minlength=len(D))
    delta, zero = D - np.diag(O), np.zeros(mechanism.m)
    if (delta == 0).any() or np.linalg.matrix_rank(theory.group_mass(D, O, sizes)) < len(D):
        unknown = np.full(mechanism.m, np.inf)  # a matrix that tells nothing apart
        return Estimate(mechanism, n, zero * np.nan, unknown, zero, zero, unknown)
    r = theory.direct_weights(D, O, sizes)
    counts = (seen - (r @ sent)[groups]) / delta[groups]
    totals = np.maximum(np.bincount(groups, weights=counts, minlength=len(D)), 0)
    totals *= n / totals.sum()
    noise = theory.direct_noise(D, O, sizes)
    own = (noise.own - np.diag(noise.other))[groups]
    return Estimate(mechanism, n, counts, (noise.other @ totals)[groups], own, zero, 1 / delta[groups])
