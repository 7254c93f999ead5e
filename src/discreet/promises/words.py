"""Factors as people read them: rounded up, so that the promise stays true."""

from __future__ import annotations

import math
from fractions import Fraction

MARGIN = 1 + 1e-12  # of a factor that floats were added up for: above their error, for ever so many


def in_words(x: float | Fraction) -> str:
    """A factor as people read it: rounded up, exactly, so that the promise stays true. A float is
    the decimal that it is written as, and nothing is forgiven: whoever computed it in floats has
    added their error before.
    """
    if x == math.inf:
        return "more than any number"
    return root_in_words((x if isinstance(x, Fraction) else Fraction(repr(float(x)))) ** 2)


def finite(x: float | Fraction) -> float | None:
    """A number as JSON holds it: None where there is no limit."""
    return float(x) if x < math.inf else None


def root_in_words(square: Fraction) -> str:
    """The same for the root of a number: under `avg`, only the square of e^r is rational."""
    hundredths = _root_up(10_000 * square)
    if hundredths < 100_000:
        return f"{hundredths / 100:g}"
    whole = _root_up(square)
    if whole < 10**9:
        return f"{whole:,}"
    power = int(0.30102999 * (whole.bit_length() - 1))  # just below; str() refuses so many digits
    while whole >= 10 ** (power + 1):
        power += 1
    lead = -(-whole // 10 ** (power - 1))  # two digits, rounded up
    lead, power = (10, power + 1) if lead == 100 else (lead, power)
    return f"{lead // 10}.{lead % 10} × 10^{power}"


def _root_up(square: Fraction) -> int:
    """The least whole number whose square is as large."""
    least = math.ceil(square)
    root = math.isqrt(least)
    return root + (root * root < least)
