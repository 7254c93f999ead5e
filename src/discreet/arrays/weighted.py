"""Weighted tallies: reports that count more or less, in exact integers.

A weight becomes a whole number out of 2^45 for the largest weight (less for many millions of
reports), and a report is counted that many times; once more with the squares of the weights, which
the error needs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.tally import FORMAT as PLAIN
from discreet.arrays.tally import MOST, Tally, read_tally_document
from discreet.arrays.types import Floats, Ints, Reports
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.files import write_text

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate

FORMAT = "discreet-weighted-tally/1"
POWERS = (0, 1, 2, 4)  # of the weights that are counted: reports, sums, squares, and their squares


@dataclass(frozen=True, eq=False)
class WeightedTally:
    """Tallies of the weights and of their squares, and the number of reports.

    >>> import discreet as d
    >>> mechanism = d.design(d.Policy.from_levels([("all", "ln(9)", ["a", "b"])]), "rappor")
    >>> reports = [bytes([1])] * 300 + [bytes([2])] * 300
    >>> tally = WeightedTally.count(mechanism, reports, [3.0] * 300 + [1.5] * 300)
    >>> tally.n, round(tally.effective_n), tally.estimate().shares().share.round(2).tolist()
    (600, 540, [0.83, 0.17])
    """

    sums: Tally
    squares: Tally
    n: int
    effective_n: float  # how many reports of equal weight would be as good
    freedom: float  # how many would know their own variance as well

    @classmethod
    def count(cls, mechanism: Mechanism, reports: Reports, weights: object) -> WeightedTally:
        """Count reports, each with its weight."""
        reports = reports if isinstance(reports, np.ndarray) else list(reports)
        values = check_weights(weights)
        if len(values) != len(reports):
            raise DataError(f"there are {len(values):,} weights for {len(reports):,} reports")
        largest, unit = float(values.max(initial=0)), unit_for(len(values))
        times = [as_times(values, largest, power, unit) for power in POWERS]
        return cls.from_powers([Tally.count(mechanism, reports, x) for x in times], unit)

    @classmethod
    def from_powers(cls, tallies: Sequence[Tally], unit: int) -> WeightedTally:
        """From the tallies of the POWERS of the weights, in these units."""
        ones, sums, squares, fourths = tallies
        n, w, w2, w4 = (tally.n / unit for tally in (ones, sums, squares, fourths))
        if n and not w2:
            raise DataError("all weights are 0, so nobody counts")
        effective, freedom = (w**2 / w2, w2**2 / w4 if w4 else 1.0) if n else (0.0, 0.0)
        return cls(sums, squares, round(n), effective, freedom)

    def save(self, path: str | Path) -> None:
        """Write the weighted tally with its mechanism's fingerprint."""
        numbers = {"n": self.n, "effective_n": self.effective_n, "freedom": self.freedom}
        tallies = {"sums": self.sums.to_document(), "squares": self.squares.to_document()}
        write_text(path, json.dumps({"format": FORMAT, **numbers, **tallies}) + "\n")

    def estimate(self) -> Estimate:
        """The weighted estimate. Its errors account for the weights."""
        from discreet.estimates.weights import estimate_weighted

        return estimate_weighted(self)


def load_tally(path: str | Path, *mechanisms: Mechanism) -> Tally | WeightedTally:
    """Read a tally or a weighted tally of one of these mechanisms. Any other file is refused."""
    document = read_tally_document(path, FORMAT, PLAIN)
    if document["format"] == PLAIN:
        return Tally.from_document(document, path, *mechanisms)
    sums, squares = (
        Tally.from_document(document.get(name), path, *mechanisms) for name in ("sums", "squares")
    )
    n, effective, freedom = (document.get(name) for name in ("n", "effective_n", "freedom"))
    same = sums.mechanism is squares.mechanism
    if type(n) is int and type(effective) is type(freedom) is float and same:
        limits = 0 < effective <= n * (1 + 1e-6) and 0 < freedom <= n * (1 + 1e-6)
        if limits and n < MOST and min(sums.n, squares.n) > 0:
            return WeightedTally(sums, squares, n, effective, freedom)
    raise DataError(f"{path} is damaged: its counts do not belong together")


def check_weights(weights: object, zero: bool = False) -> Floats:
    """Weights as an array of numbers, none of them negative; all of them 0 only where `zero` says
    that there are more.
    """
    given = np.asarray(weights)
    texts = given.dtype.kind == "O" and any(isinstance(x, str | bytes | bool) for x in given.flat)
    if given.dtype.kind not in "iufO" or texts:
        raise DataError("weights are numbers, one for each report")
    try:
        values = given.astype(float)
    except (TypeError, ValueError):
        raise DataError("weights are numbers, one for each report") from None
    if values.ndim != 1 or not np.isfinite(values).all() or values.min(initial=0) < 0:
        raise DataError("weights are numbers from 0, one for each report")
    if values.size and not zero and not values.max() > 0:
        raise DataError("all weights are 0, so nobody counts")
    return values


def unit_for(n: int) -> int:
    """What the largest weight of n reports becomes: their sum stays below 2^62."""
    return int(2 ** max(16, min(45, 61 - n.bit_length())))


def as_times(weights: Floats, largest: float, power: int, unit: int) -> Ints:
    """A power of the weights as whole numbers, `unit` for the largest."""
    return np.round((weights / (largest or 1.0)) ** power * unit).astype(np.int64)
