"""Sums of items: their variance by enumeration of all reports, and what follows for intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import exhaustive
import numpy as np
import pytest
from checks import must_fail

import discreet as d
from discreet.errors import DataError
from discreet.estimates import totals

ITEMS = ["cold", "flu", "burnout", "HIV"]
TWO = [("low", 2, ITEMS[:2]), ("high", 1, ITEMS[2:])]
LONE = [("low", 2, ITEMS[:3]), ("high", 1, ITEMS[3:])]
SUMS = [list(x) for k in range(1, 5) for x in combinations(range(4), k)]
PEOPLE = [3, 5, 4, 2]  # who hold each item


def single(levels, model, **options):
    return d.design(d.Policy.from_levels(levels), model, **options)


SINGLE = {
    "bits": lambda: single(TWO, "opt0"),
    "parts of bits": lambda: single(TWO, "subset", encoding="bits"),
    "fixed": lambda: single([("all", 1, ITEMS)], "ss"),
    "parts": lambda: single(TWO, "subset"),
    "a lone item": lambda: single(LONE, "subset"),
    "ticket": lambda: single(TWO, "subset", encoding="ticket"),
}


def enumerated(mechanism):
    """Per item that people hold: the chance of every report, and its scores (reports x items)."""
    document, found = mechanism.to_document(), []
    for item in range(4):
        law = exhaustive.distribution(document, item)
        reports = list(law)
        scores = mechanism.scores(reports)
        for k in range(0, len(scores), 97):  # what a report counts for, on its own
            alone = mechanism.tally([reports[k]]).estimate().counts
            assert scores[k] == pytest.approx(alone, abs=1e-9)
        found.append((np.array([float(p) for p in law.values()]), scores))
    return found


def exact_variance(laws, sum_):
    """The variance of the sum for PEOPLE: the scores of reports add up."""
    total = 0.0
    for item, (chances, scores) in enumerate(laws):
        score = scores[:, sum_].sum(axis=1)
        mean = chances @ score
        assert mean == pytest.approx(float(item in sum_), abs=1e-9)
        total += PEOPLE[item] * (chances @ score**2 - mean**2)
    return total


def at_truth(mechanism):
    """An estimate that happens to be the truth."""
    truth, n = np.array(PEOPLE, float), sum(PEOPLE)
    group_of = mechanism.arrays.group_of
    expected = mechanism.arrays.chance[:, group_of] @ truth
    estimate = mechanism.tally([some_report(mechanism)] * n).estimate()
    if estimate.group_totals is not None:
        return replace(estimate, counts=truth, group_totals=np.bincount(group_of, weights=truth))
    absent = mechanism.arrays.decoder.variance_at_zero(expected, np.zeros(4))[group_of]
    return replace(estimate, counts=truth, variance_at_zero=absent)


def some_report(mechanism):
    return mechanism.perturb(0)


def check_variance(estimate, sum_, exact):
    at_zero, slope = totals.variance(estimate, np.array(sum_))
    assert at_zero + slope * sum(PEOPLE[k] for k in sum_) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("name", SINGLE)
def test_the_variance_of_a_sum_is_exact(name):
    mechanism = SINGLE[name]()
    estimate, laws = at_truth(mechanism), enumerated(mechanism)
    for sum_ in SUMS:
        check_variance(estimate, sum_, exact_variance(laws, sum_))
    if estimate.group_totals is not None:  # adding up variances is wrong for subsets
        independent = replace(estimate, group_totals=None)
        must_fail(check_variance, independent, [0, 1], exact_variance(laws, [0, 1]))


def check_bound(mechanism, people, sum_):
    """The stated variance about the population is at least that of the summed scores."""
    reports = mechanism.perturb_many(people)
    estimate = mechanism.tally(reports).estimate()
    scores = mechanism.scores(reports)[:, sum_].sum(axis=1)
    n, row = len(people), estimate.total(sum_)
    counts, ((noise, luck),) = totals._laws(estimate, [np.array(sum_)])
    stated = (noise + luck).at(counts)[0]
    sample = n * scores.var()
    spread = 6 * np.sqrt(((scores - scores.mean()) ** 4).mean() / n) * n  # false alarm 1e-9
    assert row["count"] == pytest.approx(scores.sum(), rel=1e-9, abs=1e-6)
    assert sample <= stated + spread
    return sample, stated, spread


def test_the_variance_of_a_sum_is_that_of_the_summed_scores():
    """Over a population: of single answers, and of one sampled item, it is no bound but exact."""
    rng = np.random.default_rng(4)
    people = rng.choice(4, 20_000, p=[0.1, 0.2, 0.3, 0.4])
    for name in ("bits", "parts", "a lone item", "ticket"):
        sample, stated, spread = check_bound(SINGLE[name](), people, [1, 2])
        assert abs(sample - stated) <= spread
    lists = [sorted({int(x) for x in rng.choice(4, 2)}) for _ in range(20_000)]
    policy = d.Policy.from_levels(TWO, kind="set")
    for model in ("opt0", "subset"):
        mechanism = d.design(policy, model, padding=2, encoding="bits")
        sample, stated, spread = check_bound(mechanism, lists, [1, 2])
        assert abs(sample - stated) <= spread
    for model in ("hits", "subset"):  # whole lists
        check_bound(d.design(policy, model, padding=2), lists, [0, 1, 2])
    check_bound(d.design(d.Policy.from_levels(TWO, kind="each")), lists, [0, 1, 2])


def test_a_total_is_a_row_of_the_table():
    mechanism = SINGLE["fixed"]()
    estimate = mechanism.tally(mechanism.perturb_many([0, 1, 2, 3] * 100)).estimate()
    one, row = estimate.total(["flu"]), estimate["flu"]
    assert list(one) == list(row) and one["level"] == "total" and one["item"] == "flu"
    assert one["count"] == row["count"] and one["stderr"] == pytest.approx(row["stderr"])
    everyone = estimate.total(ITEMS)
    assert everyone["count"] == pytest.approx(400)
    assert everyone["stderr"] == pytest.approx(0, abs=1e-4)
    wide = estimate.total(["cold", "flu"], 0.99)
    narrow = estimate.total(["cold", "flu"])
    assert wide["share_low"] < narrow["share_low"] < narrow["share"] < narrow["share_high"]
    among = estimate.total(["cold", "flu"], about="respondents")
    assert narrow["share_low"] < among["share_low"] == pytest.approx(among["lower"] / 400)
    for wrong in ([], ["flu", "flu"]):
        with pytest.raises(DataError, match="a total needs at least one item, and each only once"):
            estimate.total(wrong)
    with pytest.raises(DataError, match='"flue" is not an item; did you mean "flu"'):
        estimate.total(["flue"])


def test_totals_with_a_name_are_in_every_table(tmp_path):
    policy = d.Policy.from_levels(TWO, totals={"airways": ["cold", "flu"]})
    mechanism = d.design(policy)
    estimate = mechanism.tally(mechanism.perturb_many([0, 1, 2, 3] * 100)).estimate()
    (row,) = estimate.totals(0.9).rows()
    assert row == {**estimate.total(["cold", "flu"], 0.9), "item": "airways"}
    estimate.save(tmp_path / "e.json", 0.9)
    estimate.save(tmp_path / "e.csv", 0.9)
    assert json.loads((tmp_path / "e.json").read_text("utf-8"))["totals"] == [row]
    last = (tmp_path / "e.csv").read_text("utf-8").splitlines()[-1]
    assert last.startswith('"airways","total",') and last.endswith(',400,0.9,"population"')
    assert "airways" in str(estimate)


def check_sum_covers(estimates, items, share):
    rows = [estimate.total(items) for estimate in estimates]
    inside = sum(row["share_low"] <= share <= row["share_high"] for row in rows)
    assert inside >= 0.95 * len(rows) - 6 * np.sqrt(0.05 * 0.95 * len(rows))  # false alarm 1e-9


def test_intervals_of_sums_hold():
    mechanism, rng = single(LONE, "subset"), np.random.default_rng(9)
    truth = [0.1, 0.2, 0.3, 0.4]
    drawn = [
        mechanism.tally(mechanism.perturb_many(rng.choice(4, 200, p=truth))).estimate()
        for _ in range(300)
    ]
    for items, share in ((["cold", "flu"], 0.3), (["burnout", "HIV"], 0.7)):
        check_sum_covers(drawn, items, share)
    must_fail(check_sum_covers, drawn, ["cold", "flu"], 0.6)
