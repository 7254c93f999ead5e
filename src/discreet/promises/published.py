"""What someone learns who sees only published results, and no report (amplification by shuffling).

A different claim from the promise about a report: it needs many others who answer as honestly, and
somebody who adds the reports up and keeps none. The bound is a closed form of Feldman, McMillan
and Talwar ("Hiding Among the Clones", 2021, and "Stronger Privacy Amplification by Shuffling",
2023); the tests compare it with the exact divergence of the clones of 2021, which is larger than
that of 2023, and with the older "privacy blanket".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import NamedTuple

from discreet.errors import DataError
from discreet.promises.ratios import factor_up
from discreet.promises.words import in_words

_MOST = 10**15  # people


class Published(NamedTuple):
    """The budget that binds results of n reports, but for a chance of delta. Of a survey, n is the
    number of reports in the smallest group of any question.
    """

    epsilon: float
    delta: float
    n: int
    questions: int = 1
    grouped: bool = False

    @property
    def sentence(self) -> str:
        """What it means, what it covers, and what it needs."""
        factor = in_words(factor_up(self.epsilon, 1))
        one = self.questions == 1
        between = "any two answers of yours" if one else "your answers and any others"
        beyond = "results at other dates or of other surveys that you answered"
        if not self.grouped:
            beyond = f"results by group, {beyond.removeprefix('results ')}"
        return (
            f"Whoever sees only {self._results}, once, and none of their reports can change their "
            f"odds between {between} by a factor of at most {factor} (but for a chance of "
            f"{self.delta:g}). This covers nothing else: {beyond} tell more. It needs the others "
            "to answer honestly, and a collector that keeps no reports; without them, the promise "
            "about your report is what protects you."
        )

    @property
    def _results(self) -> str:
        """Which results they are."""
        of = "" if self.questions == 1 else f" of all {self.questions} questions"
        if self.grouped:
            return f"these results by group{of} (at least {self.n:,} people in each)"
        return (
            f"the results{of} (at least {self.n:,} people each)"
            if of
            else (f"the results of {self.n:,} people")
        )


def published(epsilon: float, n: int, delta: float) -> Published | None:
    """The bound for n reports that each keep plain LDP with this epsilon; None where n is too small
    for it, or nothing bounds a report.

    >>> round(published(2.0, 100_000, 1e-8).epsilon, 2)
    0.16
    """
    try:
        n = 0 if isinstance(n, bool) else index(n)  # numpy's whole numbers too
    except TypeError:
        raise DataError(f"n = {n!r:.40} must be a whole number of people") from None
    if not 1 <= n <= _MOST:
        raise DataError(f"n = {n!r:.40} must be a whole number of people from 1 to 10^15")
    _check(delta)
    if n <= 16 * math.log(2 / delta) or epsilon > math.log(n / (16 * math.log(2 / delta))):
        return None
    root = math.sqrt(2 * math.log(4 / delta) / ((math.exp(epsilon) + 1) * n))
    bound = math.log1p(math.expm1(epsilon) * (4 * root + 4 / n))
    return Published(min(bound, epsilon), delta, n)


def together(
    reports: Sequence[tuple[float, int]], answers: int, delta: float, grouped: bool = False
) -> Published | None:
    """The bound for the results of several questions: per question the budget of a report and how
    many there are, in the smallest group. None if they tell as much as the reports.

    A device answers so many of them, drawn whatever the answers are, with independent reports. So
    the largest budgets add up, each but for an equal part of delta.
    """
    _check(delta)
    filled = [(epsilon, n) for epsilon, n in reports if n]
    pairs = [(epsilon, published(epsilon, n, delta / answers)) for epsilon, n in filled]
    known = sum(sorted((epsilon for epsilon, _ in filled), reverse=True)[:answers])
    most = sorted((x.epsilon if x else epsilon for epsilon, x in pairs), reverse=True)[:answers]
    if not filled or not sum(most) < known:
        return None
    least = min(n for _, n in filled)
    return Published(sum(most), delta, least, len(reports), grouped)


def _check(delta: float) -> None:
    if not isinstance(delta, int | float) or not 0 < delta < 1:
        raise DataError(f"delta = {delta} must be between 0 and 1, such as 1e-8")
