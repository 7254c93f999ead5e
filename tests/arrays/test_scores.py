"""Scores of reports: their sums are the estimate, and their spread is its error."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from checks import must_fail

import discreet as d
from discreet.errors import DataError

ITEMS = [f"i{k}" for k in range(11)]
LEVELS = [("a", 1, ITEMS[:1]), ("b", "1.5", ITEMS[1:5]), ("c", 3, ITEMS[5:])]
MECHANISMS = {
    **{
        f"{model}, {encoding}": ("single", model, {"encoding": encoding})
        for model, encoding in (("subset", "bits"), ("subset", "ticket"))
    },
    **{model: ("single", model, {}) for model in ("subset", "opt0", "opt1", "oue", "grr", "ss")},
    **{model: ("single", model, {}) for model in ("opt2", "rappor")},
    "one-way": ("single", None, {"notion": "one-way", "open": ["c"]}),
    "blocks": ("single", None, {"blocks": True}),
    "scale": ("single", None, {}),
    "hits": ("set", None, {"padding": 3}),
    "sampled": ("set", "opt0", {"padding": 3}),
    "picks": ("set", "subset", {"padding": 2}),
    "sampled, oue": ("set", "oue", {"padding": 2}),
    "each": ("each", None, {}),
    "each, one-way": ("each", None, {"notion": "one-way"}),
}
POLICY = ("notion", "open", "blocks")  # options of the policy, not of the design


@cache
def made(name):
    kind, model, options = MECHANISMS[name]
    if name == "scale":
        return d.design(d.Policy.from_scale(ITEMS, step=1, cap=3))
    asked = {x: value for x, value in options.items() if x in POLICY}
    levels = [(x, None if x in asked.get("open", ()) else eps, items) for x, eps, items in LEVELS]
    policy = d.Policy.from_levels(levels, kind=kind, **asked)
    return d.design(policy, model, **{x: v for x, v in options.items() if x not in POLICY})


def answers(mechanism, n):
    rng = np.random.default_rng(7)
    if not mechanism.policy.kind.lists:
        return rng.integers(0, mechanism.m, n)
    return [rng.choice(mechanism.m, rng.integers(0, 4), replace=False).tolist() for _ in range(n)]


def check_sums(scores, estimate):
    size = np.abs(estimate.counts).max()
    assert np.abs(scores.sum(axis=0) - estimate.counts).max() <= 1e-9 * size


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_scores_sum_to_the_estimate(name):
    mechanism = made(name)
    reports = mechanism.perturb_many(answers(mechanism, 3000))
    scores, estimate = mechanism.scores(reports), mechanism.tally(reports).estimate()
    assert scores.shape == (3000, 11)
    check_sums(scores, estimate)
    must_fail(check_sums, scores[:-1], estimate)
    some = mechanism.scores(reports, ["i4", "i0"])
    assert (some == scores[:, [4, 0]]).all()


def check_spread(scores, estimate):
    """The sample variance of the scores estimates the variance, about the population."""
    n = len(scores)
    middle = scores - scores.mean(axis=0)
    noise = 6 * np.sqrt((middle**4).mean(axis=0) / n) * n  # false alarm 1e-9 per item
    stated = estimate.variance(np.clip(estimate.counts, 0, n), "population")
    assert (np.abs(n * scores.var(axis=0) - stated) <= noise).all()


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_spread_of_the_scores_is_the_error(name):
    mechanism = made(name)
    reports = mechanism.perturb_many(answers(mechanism, 20_000))
    scores, estimate = mechanism.scores(reports), mechanism.tally(reports).estimate()
    check_spread(scores, estimate)
    must_fail(check_spread, 1.5 * scores, estimate)


@pytest.mark.parametrize("name", ["subset, bits", "subset, ticket", "hits", "each", "grr"])
def test_what_is_no_report_has_no_scores(name):
    mechanism = made(name)
    good = [mechanism.perturb([0] if mechanism.policy.kind.lists else 0) for _ in range(2)]
    bad = [b"", good[0] + b"x", b"\xff" * mechanism.report_size]
    scores = mechanism.scores([good[0], *bad, good[1]])
    assert np.isnan(scores[1:4]).all() and np.isfinite(scores[[0, 4]]).all()
    assert (scores[[0, 4]] == mechanism.scores(good)).all()


def test_reports_of_a_new_encoding_are_read_one_by_one(monkeypatch):
    from discreet.arrays.plain import PlainBlocks

    mechanism = made("subset")
    reports = mechanism.perturb_many(answers(mechanism, 50))
    coder, part = PlainBlocks(mechanism), np.zeros(50, np.int64)
    places = np.array([3, 0, 10])
    expected = mechanism.arrays.coder.named(part, reports, places)
    assert (coder.named(part, reports, places) == expected).all()


def test_the_scores_as_arrow_columns():
    mechanism = made("subset, bits")
    reports = mechanism.perturb_many(answers(mechanism, 500))
    scores, some = mechanism.scores(reports), [*map(bytes, reports[:3]), b"", bytes(reports[3])]
    columns = mechanism.scores(some, ["i4", 0], arrow=True)
    assert columns.schema.names == ["i4", "i0"]
    for name, place in (("i4", 4), ("i0", 0)):
        expected = [*scores[:3, place], None, scores[3, place]]
        assert columns.column(name).to_pylist() == expected  # null where there is no report
    with pytest.raises(DataError, match="named twice"):
        mechanism.scores(reports, ["i4", 4], arrow=True)


def test_few_scores_are_worked_out_at_a_time(monkeypatch):
    from discreet.arrays import scores

    mechanism = made("subset, ticket")
    reports = mechanism.perturb_many(answers(mechanism, 100))
    whole = mechanism.scores(reports)
    monkeypatch.setattr(scores, "_BLOCK", 70)
    assert (mechanism.scores(reports) == whole).all()
