"""Statistical assertions whose tolerance is the standard error, in the unit of what is asserted."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

ALARM = 1e-7  # of a test that makes many comparisons: a few hundred such tests stay below 1e-4


def z_for(comparisons: int) -> float:
    """Standard errors that all of so many comparisons stay within, but for a false alarm of 1e-7.

    By Bonferroni; at least 5.
    """
    return max(5.0, float(-ndtri(ALARM / 2 / comparisons)))


def detectable(n, p, z=5.0):
    """The shift of p that n draws catch: 5 standard errors beyond z, so missed 3 times in 10^7."""
    return (z + 5) * np.sqrt(np.asarray(p) * (1 - np.asarray(p)) / n)


def assert_bernoulli(k, n, p, z=5.0):
    """k of n draws came out 1, each with probability p: within z standard errors.

    z = 5: false alarm 6e-7. Catches a shift d of p with n = 100 p (1 - p) / d^2 draws: then it is
    10 standard errors, and 5 remain after chance. Arrays are compared entry by entry; give
    z = z_for(entries) for them. Needs p to be 0 or 1 (then it is exact) or n p (1 - p) to be at
    least 50; there the true tail is four times as heavy still (2.4e-6 at z = 5, more at larger z):
    use assert_binomial where cells are rare or many.
    """
    k, n, p = (np.asarray(x, dtype=float) for x in (k, n, p))
    variance = n * p * (1 - p)
    assert ((variance >= 50) | (variance == 0)).all(), "too few draws for this check"
    away = (
        np.abs(k - n * p) - z * np.sqrt(variance) - 1e-9 * n * p
    )  # the last: rounding of the product
    worst = int(np.argmax(away))
    assert away.max() <= 0, (
        f"entry {worst}: {k.flat[worst]} of {n.flat[min(worst, n.size - 1)]}, "
        f"off by {away.max():.4g} beyond {z} se"
    )


def assert_binomial(k, n, p):
    """The same by the tails of the binomial law itself, however rare a bit is: all entries together
    but for a false alarm of 1e-7. Of many comparisons of rare bits the normal law makes 3e-6.
    """
    k, p = np.asarray(k, dtype=float), np.asarray(p, dtype=float)
    tail = np.minimum(binom.cdf(k, n, p), binom.sf(k - 1, n, p))
    worst = int(np.argmin(tail))
    assert tail[worst] >= ALARM / 2 / len(k), (
        f"entry {worst}: {k[worst]:.0f} of {n} with chance {p[worst]:.4g}"
    )


def assert_mean(values, mean, variance, z=5.0):
    """Means over rows of independent `values` of known variance: within z standard errors.

    Catches 10 of them.
    """
    values = np.asarray(values, dtype=float)
    score = (values.mean(axis=0) - mean) / np.sqrt(np.asarray(variance) / len(values))
    assert np.max(np.abs(score)) <= z, f"mean off by {np.max(np.abs(score)):.2f} standard errors"


def assert_variance(values, variance, z=5.0):
    """Sample variances over rows of nearly normal `values`: within z standard errors.

    One is about variance * sqrt(2 / rows). By the cube root of the chi-square (Wilson-Hilferty),
    which is normal far into the tails. Catches a variance that is wrong by the factor
    1 +- 12 sqrt(2 / rows).
    """
    values = np.asarray(values, dtype=float)
    free = 2 / (9 * (len(values) - 1))
    score = (np.cbrt(values.var(axis=0, ddof=1) / np.asarray(variance)) - (1 - free)) / sqrt(free)
    assert np.max(np.abs(score)) <= z, (
        f"variance off by {np.max(np.abs(score)):.2f} standard errors"
    )


def assert_uncorrelated(x, p, z=None):
    """Every two columns of the n x m bits are uncorrelated, column j being Bernoulli(p_j).

    The sum of (x_j - p_j)(x_k - p_k) has variance n p_j q_j p_k q_k when the two are independent,
    whatever the other columns do. Catches a correlation of 10 / sqrt(n) (more columns: a little
    more).
    """
    n, m = x.shape
    p = np.asarray(p, dtype=float)
    residual = (x - p) / np.sqrt(p * (1 - p))
    score = np.abs(residual.T @ residual)[np.triu_indices(m, 1)] / sqrt(n)
    z = z_for(len(score)) if z is None else z
    assert score.max() <= z, (
        f"pair {int(np.argmax(score))}: correlated by {score.max():.2f} > {z:.2f} standard errors"
    )


def must_fail(check, *args, **kwargs):
    """The twin of a check: what it must see."""
    try:
        check(*args, **kwargs)
    except AssertionError:
        return
    raise AssertionError(f"{getattr(check, '__name__', check)} did not see what it must see")
