"""What someone learns who sees only published results, and no report (amplification by shuffling).

A different claim from the promise about a report: it needs many others who answer as honestly, and
somebody who adds the reports up and keeps none. The bound is a closed form of Feldman, McMillan
and Talwar ("Hiding Among the Clones", 2021, and "Stronger Privacy Amplification by Shuffling",
2023); the tests compare it with the exact divergence of the clones of 2021, which is larger than
that of 2023, and with the older "privacy blanket".
"""

from __future__ import annotations

import math
from operator import index
from typing import NamedTuple

from discreet.errors import DataError
from discreet.promises.ratios import factor_up
from discreet.promises.words import in_words

_MOST = 10**15  # people


class Published(NamedTuple):
    """The budget that binds results of n reports, but for a chance of delta."""

    epsilon: float
    delta: float
    n: int

    @property
    def sentence(self) -> str:
        """What it means, and what it needs."""
        factor = in_words(factor_up(self.epsilon, 1))
        return (
            f"Whoever sees only the results of {self.n:,} people, once, and none of their reports "
            f"can change their odds between any two answers of yours by a factor of at most "
            f"{factor} (but for a chance of {self.delta:g}). This needs the others to answer "
            "honestly, and a collector that keeps no reports; without them, the promise about your "
            "report is what protects you."
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
    if not isinstance(delta, int | float) or not 0 < delta < 1:
        raise DataError(f"delta = {delta} must be between 0 and 1, such as 1e-8")
    if n <= 16 * math.log(2 / delta) or epsilon > math.log(n / (16 * math.log(2 / delta))):
        return None
    root = math.sqrt(2 * math.log(4 / delta) / ((math.exp(epsilon) + 1) * n))
    bound = math.log1p(math.expm1(epsilon) * (4 * root + 4 / n))
    return Published(min(bound, epsilon), delta, n)
