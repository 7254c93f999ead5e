"""The views: what every one of them must keep, and that a new one is everywhere at once."""

import numpy as np
import pytest
from click.testing import CliRunner

import discreet as d
from discreet import cli
from discreet.collector import openapi
from discreet.errors import DataError
from discreet.estimates import views
from discreet.estimates.simulation import all_views as scored
from discreet.estimates.views import VIEWS

POLICY = d.Policy.from_budgets(dict(zip("abcdef", (1, 1, 2, 2, 2, 2), strict=True)))


@pytest.fixture(scope="module")
def estimate():
    mechanism = d.design(POLICY)
    return mechanism.tally(mechanism.perturb_many(list("abcdef") * 50 + ["f"] * 700)).estimate()


def test_a_view_stands_beside_the_unbiased_counts(estimate):
    plain, table = estimate.table(0.9), estimate.table(0.9, VIEWS)
    for name, column in plain.columns.items():
        np.testing.assert_array_equal(table.columns[name], column)
    shrunk = estimate.shrunk()
    low, high = shrunk.interval(0.9)
    more = {
        "shrunk": shrunk.counts,
        "shrunk_sd": shrunk.sd,
        "shrunk_lower": low,
        "shrunk_upper": high,
        "consistent": estimate.consistent(),
    }
    assert list(table.columns) == [*plain.columns, *more]
    for name, column in more.items():
        np.testing.assert_array_equal(table.columns[name], column)


def test_an_unknown_view_is_refused(estimate):
    with pytest.raises(DataError, match="there are shrunk, consistent"):
        estimate.table(views=["smooth"])


def test_views_that_do_not_fit_are_not_scored(estimate):
    assert list(scored(estimate)) == ["raw", *VIEWS]
    lone = d.design(d.Policy.from_budgets({"a": 1}))
    assert list(scored(lone.tally(lone.perturb_many(["a"] * 3)).estimate())) == [
        "raw",
        "consistent",
    ]


def test_every_view_is_an_option_and_in_the_description():
    text = CliRunner().invoke(cli.main, ["estimate", "-h"]).output
    path = openapi.DOCUMENT["paths"]["/v1/collections/{name}/estimate"]["get"]
    (parameter,) = [p for p in path["parameters"] if p["name"] == "views"]
    for name, view in VIEWS.items():
        assert f"--{name}" in text and view.about[:30] in " ".join(text.split())
        assert name in parameter["schema"]["items"]["enum"]


def test_a_new_view_is_one_entry(estimate, monkeypatch):
    halves = views.View(
        "half of every count", lambda _: True, lambda e, _: {"": e.counts / 2, "sd": e.stderr / 2}
    )
    monkeypatch.setitem(VIEWS, "half", halves)
    columns = estimate.table(views=["half"]).columns
    np.testing.assert_array_equal(columns["half"], estimate.counts / 2)
    assert "half_sd" in columns and scored(estimate)["half"][1] is None
