"""The recipes of docs/statistics.md: regression on scores, and by the likelihood of reports."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from checks import must_fail
from scipy.optimize import minimize
from scipy.special import expit, logit

import discreet as d

N, REPEATS = 4000, 60


@pytest.fixture(scope="module")
def yes_no():
    return d.design(d.Policy.from_levels([("all", 2, ["yes", "no"])]))


def laws(mechanism, reports):
    known = {bytes(r): None for r in reports}
    for r in known:
        known[r] = [float(mechanism.coder.law(r, [k])) for k in (0, 1)]
    return np.array([known[bytes(r)] for r in reports]).T


def fit(z, yes, no):
    def surprise(beta):
        return -np.log(no + (yes - no) * expit(z @ beta)).sum()

    beta = minimize(surprise, np.zeros(z.shape[1]), method="BFGS").x
    p = expit(z @ beta)
    slopes = z * ((yes - no) * p * (1 - p) / (no + (yes - no) * p))[:, None]
    return beta, np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))


def check_unbiased(estimates, errors, truth):
    """The mean over repeats within 6 of its standard errors; stated errors as large as seen."""
    estimates, errors = np.array(estimates), np.array(errors)
    off = (estimates.mean(axis=0) - truth) / (estimates.std(axis=0) / np.sqrt(len(estimates)))
    assert (np.abs(off) < 6).all()
    # the sample deviation of 60 is off by 9 %: 6 of them
    assert (np.abs(errors.mean(axis=0) / estimates.std(axis=0) - 1) < 0.55).all()


def test_least_squares_on_scores(yes_no):
    rng, estimates, errors = np.random.default_rng(1), [], []
    truth = np.array([0.1, 0.6])
    for _ in range(REPEATS):
        x = rng.random(N)
        answers = np.where(rng.random(N) < truth[0] + truth[1] * x, 0, 1)
        scores = yes_no.scores(yes_no.perturb_many(answers), ["yes"])[:, 0]
        line = sm.OLS(scores, sm.add_constant(x)).fit(cov_type="HC1")
        estimates.append(line.params)
        errors.append(line.bse)
    check_unbiased(estimates, errors, truth)
    must_fail(check_unbiased, estimates, errors, truth + [0, 0.15])


def test_logistic_regression_by_the_likelihood_of_reports(yes_no):
    rng, estimates, errors = np.random.default_rng(2), [], []
    truth = np.array([-0.5, 0.8])
    for _ in range(REPEATS):
        z = sm.add_constant(rng.normal(size=N))
        answers = np.where(rng.random(N) < expit(z @ truth), 0, 1)
        beta, error = fit(z, *laws(yes_no, yes_no.perturb_many(answers)))
        estimates.append(beta)
        errors.append(error)
    check_unbiased(estimates, errors, truth)
    must_fail(check_unbiased, estimates, errors, truth + [0.2, 0])


def test_with_an_intercept_alone_it_is_the_closed_form(yes_no):
    """Forced response: P(yes) = other + (own - other) p, so p = (share of yes - other) / (own -
    other), and the likelihood's fit is its logit, with the delta method's error.
    """
    reports = yes_no.perturb_many([0] * 1200 + [1] * 2800)
    (beta,), (error,) = fit(np.ones((4000, 1)), *laws(yes_no, reports))
    estimate = yes_no.tally(reports).estimate()
    share = estimate["yes"]["share"]
    assert beta == pytest.approx(logit(share), abs=1e-3)
    sd = np.sqrt(estimate.variance(estimate.counts, "population")[0]) / 4000
    assert error == pytest.approx(sd / (share * (1 - share)), rel=0.02)


# ---- the textbook's randomized response ----------------------------------------------------------


def check_textbook(mechanism, yes, n, forced_yes, forced_no):
    """Forced response: with these chances people say yes or no whatever is true, else the truth.
    The chance of a yes is L = forced_yes + (1 - forced_yes - forced_no) p, so p is estimated by
    (L - forced_yes) / (1 - forced_yes - forced_no), with the variance L (1 - L) / n over the square
    of that denominator (Boruch 1971; Fox and Tracy 1986).
    """
    estimate = mechanism.tally([bytes([1]), bytes([2])], counts=[yes, n - yes]).estimate()
    seen, truthful = yes / n, 1 - forced_yes - forced_no
    share = (seen - forced_yes) / truthful
    assert estimate.counts[0] / n == pytest.approx(share, rel=1e-12)
    error = np.sqrt(seen * (1 - seen) / n) / truthful
    stated = np.sqrt(estimate.variance(estimate.counts, "population")[0]) / n
    assert stated == pytest.approx(error, rel=1e-9)
    return estimate, share, stated


@pytest.mark.parametrize(("yes", "n"), [(300, 1000), (420, 1000), (7, 11), (55_000, 100_000)])
@pytest.mark.parametrize("epsilon", ["ln(7/3)", "ln(4)", "ln(9)"])
def test_one_question_is_warners_design(yes, n, epsilon):
    """Warner (1965): with chance p the question is "are you?", else "are you not?". A yes is seen
    with L = p share + (1 - p) (1 - share): share = (L + p - 1) / (2 p - 1), with the variance
    L (1 - L) / (n (2 p - 1)^2).
    """
    mechanism = d.design(d.Policy.from_levels([("all", epsilon, ["yes", "no"])]), "grr")
    p = float(mechanism.parts[0].own[0])
    assert np.log(p / (1 - p)) == pytest.approx(float(mechanism.policy.levels[0].budget), abs=1e-6)
    estimate, share, stated = check_textbook(mechanism, yes, n, 1 - p, 1 - p)
    seen = yes / n
    assert share == pytest.approx((seen + p - 1) / (2 * p - 1), rel=1e-9)
    assert stated**2 == pytest.approx(seen * (1 - seen) / (n * (2 * p - 1) ** 2), rel=1e-9)
    # the two terms of his (5): the luck of the draw, and the noise of the spinner
    noise = p * (1 - p) / (n * (2 * p - 1) ** 2)
    assert estimate.variance(0)[0] / n**2 == pytest.approx(noise, rel=1e-9)
    assert stated**2 == pytest.approx(share * (1 - share) / n + noise, rel=1e-9)
    must_fail(check_textbook, mechanism, yes, n, 1 - p + 0.001, 1 - p)


def check_published(seen):
    """The first example of the manual of R's RRreg (vignette of 2018-06-03): Warner's design with
    p = 0.2, 1,000 people, "pi 0.266667, StdErr 0.025311". Its estimate is that of 640 yes; asked
    the reversed question with chance 0.8, 360 reports are true to the answer. RRreg divides by
    n - 1.
    """
    mechanism = d.design(d.Policy.from_levels([("all", "ln(4)", ["yes", "no"])]), "grr")
    estimate = mechanism.tally([bytes([1]), bytes([2])], counts=[seen, 1000 - seen]).estimate()
    stated = np.sqrt(estimate.variance(estimate.counts, "population")[0]) / 1000
    assert f"{estimate['yes']['share']:.6f}" == "0.266667"
    assert f"{stated * np.sqrt(1000 / 999):.6f}" == "0.025311"


def test_the_published_example_of_rrreg():
    check_published(360)
    must_fail(check_published, 361)


@pytest.mark.parametrize(("yes", "n"), [(300, 1000), (420, 1000), (6, 11)])
@pytest.mark.parametrize("epsilon", [1, 2])
def test_a_bit_is_a_forced_response(yes, n, epsilon):
    """The bit of an item, where the two forced answers are not equally likely."""
    mechanism = d.design(d.Policy.from_levels([("all", epsilon, ["yes", "no"])]), "oue")
    (part,) = mechanism.parts
    forced = float(part.other[0]), 1 - float(part.own[0])
    assert forced[0] != pytest.approx(forced[1], abs=0.1)
    check_textbook(mechanism, yes, n, *forced)
    must_fail(check_textbook, mechanism, yes, n, *forced[::-1])
