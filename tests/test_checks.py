"""The statistical assertions accept what is right and reject what is wrong by the shift
they state.
"""

import numpy as np
import pytest
from checks import (
    assert_bernoulli,
    assert_binomial,
    assert_mean,
    assert_uncorrelated,
    assert_variance,
    detectable,
    must_fail,
    z_for,
)
from scipy.stats import binom, chi2, norm

N = 10_000


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.97])
def test_bernoulli_accepts_five_standard_errors_and_rejects_the_shift_it_states(p):
    se = np.sqrt(N * p * (1 - p))
    for sign in (-1, 1):
        assert_bernoulli(N * p + sign * 4.99 * se, N, p)
        must_fail(assert_bernoulli, N * p + sign * 5.01 * se, N, p)
    d = np.sqrt(100 * p * (1 - p) / N)  # n = 100 p (1 - p) / d^2
    assert d == pytest.approx(detectable(N, p))
    for shifted in (x for x in (p - d, p + d) if 0 < x < 1):
        allowed = binom.cdf(N * p + 5 * se, N, shifted) - binom.cdf(N * p - 5 * se, N, shifted)
        assert allowed < 1e-4  # 3e-7 but for the skewness of rare bits


def test_bernoulli_false_alarms_are_as_rare_as_stated():
    k, se = np.arange(N + 1), np.sqrt(N * 0.25)
    assert binom.pmf(k[np.abs(k - N / 2) > 5 * se], N, 0.5).sum() < 7e-7


def test_bernoulli_looks_at_every_entry():
    good = np.full(50, N // 2)
    assert_bernoulli(good, N, 0.5)
    for place in (0, 25, 49):
        bad = good.copy()
        bad[place] += 251
        must_fail(assert_bernoulli, bad, N, 0.5)
        must_fail(assert_bernoulli, bad, np.full(50, N), np.full(50, 0.5))


def test_bernoulli_is_exact_without_chance_and_refuses_too_few_draws():
    assert_bernoulli([0, N], N, [0, 1])
    must_fail(assert_bernoulli, [0, N - 1], N, [0, 1])
    must_fail(assert_bernoulli, 5, 10, 0.5)


def test_binomial_false_alarms_are_as_rare_as_stated():
    """A rare bit among a thousand that are as expected: both ends of what is allowed."""
    p, k = 0.005, np.arange(N + 1)
    limit = 1e-7 / 2 / 1000
    allowed = k[(binom.cdf(k, N, p) >= limit) & (binom.sf(k - 1, N, p) >= limit)]
    for end, beyond in ((allowed[0], -1), (allowed[-1], 1)):
        rest = np.full(999, N // 2)
        chances = np.array([p, *[0.5] * 999])
        assert_binomial([end, *rest], N, chances)
        must_fail(assert_binomial, [end + beyond, *rest], N, chances)


def test_more_comparisons_need_more_standard_errors():
    assert z_for(1) == pytest.approx(5.327, abs=1e-3)
    for many in (10, 10**4, 10**6):
        assert many * 2 * norm.sf(z_for(many)) == pytest.approx(1e-7)


def test_mean_and_variance():
    values = np.random.default_rng(1).normal(3.0, 2.0, (4000, 5))
    se = 2 / np.sqrt(4000)
    assert_mean(values, 3.0, 4.0)
    must_fail(assert_mean, values + 10 * se * (np.arange(5) == 4), 3.0, 4.0)
    assert_variance(values, 4.0)
    must_fail(assert_variance, values, 4.0 * (1 + 12 * np.sqrt(2 / 4000)))
    must_fail(assert_variance, values, 4.0 / (1 + 12 * np.sqrt(2 / 4000)))
    few = np.ones((31, 1))  # the ends allowed are those of the chi-square
    few[0] = 0
    for tail in (chi2.isf(norm.sf(5), 30), chi2.ppf(norm.sf(5), 30)):
        assert_variance(few, few.var(ddof=1) * 30 / tail, 5.2)
        must_fail(assert_variance, few, few.var(ddof=1) * 30 / tail, 4.8)


def test_uncorrelated():
    p = np.array([0.1, 0.3, 0.5, 0.5, 0.8])
    rng = np.random.default_rng(2)
    x = rng.random((N, 5)) < p
    assert_uncorrelated(x, p)
    linked = x.copy()
    copied = rng.random(N) < 12 / np.sqrt(
        N
    )  # a correlation of 0.12 between the two columns of equal p
    linked[copied, 3] = linked[copied, 2]
    must_fail(assert_uncorrelated, linked, p)
    must_fail(assert_uncorrelated, linked[:, ::-1], p[::-1])


def test_must_fail_fails_when_the_check_passes():
    with pytest.raises(AssertionError, match="did not see"):
        must_fail(assert_bernoulli, N // 2, N, 0.5)
