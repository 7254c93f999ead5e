"""Real reports of mechanisms with ordered budgets come with the chances of the coder's own law:
from the device, one by one, and from arrays.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import ordered
import pytest
from checks import must_fail
from small import assert_distribution, missed, ragged, seen_in

ONE_BY_ONE, AT_ONCE = 6_000, 60_000
NAMES = [*ordered.POLICIES, *ordered.PLAIN]


def answers(mechanism):
    """The first item, the last, and one between; of lists also nothing and everything."""
    m = mechanism.m
    held = [(0,), (m // 2,), (m - 1,)]
    return [*held, (), tuple(range(m))] if mechanism.policy.kind.lists else held


def law_of(mechanism, held):
    """Pr(report) of what is held; reports that it never sends have 0."""
    return {y: mechanism.coder.law(y, held) for y in ordered.all_reports(mechanism)}


def assert_law(seen, law):
    """By chi-square; a report that is always sent is always sent."""
    certain = [y for y, p in law.items() if p == 1]
    if certain:
        assert set(seen) == set(certain)
    else:
        assert_distribution(seen, law)


def wrong(law, other, share):
    """Another answer's report, now and then."""
    return {y: (1 - share) * p + share * other[y] for y, p in law.items()}


def check_with_twin(seen, mechanism, held):
    """Reports have the law of what is held; and not one with a little of another answer's."""
    n, law = sum(seen.values()), law_of(mechanism, held)
    assert_law(seen, law)
    others = [x for x in answers(mechanism) if x != held]
    twins = 0
    for share in (Fraction(1, 4), Fraction(1, 10)):
        for other in others:
            planted = wrong(law, law_of(mechanism, other), share)
            if planted != law and missed(n, planted, law) < 1e-6:
                must_fail(assert_distribution, seen, planted)
                twins += 1
    assert twins, "too few reports to see anything"


@pytest.mark.parametrize("name", NAMES)
def test_one_by_one(name):
    mechanism = ordered.mechanisms()[name]
    for held in answers(mechanism):
        items = [mechanism.policy.items[i] for i in held]
        answer = items if mechanism.policy.kind.lists else items[0]
        seen = Counter(mechanism.perturb(answer) for _ in range(ONE_BY_ONE))
        check_with_twin(seen, mechanism, held)


@pytest.mark.parametrize("name", NAMES)
def test_many_at_once(name):
    mechanism = ordered.mechanisms()[name]
    for held in answers(mechanism):
        if mechanism.policy.kind.lists:
            rows = mechanism.perturb_many(ragged([held], AT_ONCE))
        else:
            rows = mechanism.perturb_many(np.full(AT_ONCE, held[0]))
        check_with_twin(seen_in(rows), mechanism, held)


def test_a_zero_that_is_sent_is_seen():
    """The twin of certainty: one report that nobody with this answer sends."""
    mechanism = ordered.mechanisms()["one-way (1, 4)"]
    law = law_of(mechanism, (0,))
    seen = Counter(mechanism.perturb("0.0") for _ in range(100))
    assert_law(seen, law)
    never = next(y for y, p in law.items() if not p)
    must_fail(assert_law, seen + Counter([never]), law)


@pytest.mark.parametrize("name", ["one-way (2, 2, 3)", "seven-open-ticket", "blocks 3 x 3"])
def test_counts_of_real_reports_are_unbiased(name):
    """Estimates of 5,000 people per item lie within 5 standard errors, by the exact variance."""
    mechanism, each = ordered.mechanisms()[name], 5_000
    truth = np.full(mechanism.m, each)
    rows = mechanism.perturb_many(np.repeat(np.arange(mechanism.m), each))
    estimate = mechanism.tally(rows).estimate()
    variance = np.zeros(mechanism.m)
    reports = ordered.all_reports(mechanism)
    scores = ordered.scored(mechanism, reports)
    for i in range(mechanism.m):
        law = np.array([float(mechanism.coder.law(y, (i,))) for y in reports])
        variance += each * (law @ scores**2 - (law @ scores) ** 2)
    assert (np.abs(estimate.counts - truth) <= 5 * np.sqrt(variance) + 1e-6).all()
    with pytest.raises(AssertionError):
        assert (np.abs(estimate.counts - 1.5 * truth) <= 5 * np.sqrt(variance) + 1e-6).all()
