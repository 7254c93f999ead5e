"""Answers as notebooks have them: what every form means, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as d
from discreet.arrays.answers import places, ragged
from discreet.errors import DataError

LEVELS = [("serious", 1, ["HIV", "cancer"]), ("common", 2, ["cold", "flu"])]
SINGLE = d.design(d.Policy.from_levels(LEVELS))
SETS = d.design(d.Policy.from_levels(LEVELS, kind="set"), padding=2)
NUMBERS = d.design(d.Policy.from_levels([("all", 1, ["10", "20", "30"])]))
LABELS = ["cold", "HIV", "cold", "flu"]
PLACES = [2, 0, 2, 3]

SINGLE_FORMS = {
    "pandas": pd.Series(LABELS),
    "pandas with an index": pd.Series(LABELS, index=[7, 3, 3, 1]),
    "pandas string": pd.Series(LABELS, dtype="string"),
    "pandas Arrow string": pd.Series(LABELS, dtype=pd.ArrowDtype(pa.string())),
    "pandas categories": pd.Series(LABELS, dtype="category"),
    "pandas Categorical": pd.Categorical(LABELS),
    "pandas Index": pd.Index(LABELS),
    "pandas slice": pd.Series(["flu", *LABELS])[1:],
    "pandas places": pd.Series(PLACES),
    "pandas frame": pd.DataFrame({"answer": LABELS}),
    "polars": pl.Series(LABELS),
    "polars categories": pl.Series(LABELS, dtype=pl.Categorical),
    "polars enum": pl.Series(LABELS, dtype=pl.Enum(["HIV", "cancer", "cold", "flu"])),
    "polars places": pl.Series(PLACES),
    "polars frame": pl.DataFrame({"answer": LABELS}),
    "numpy text": np.array(LABELS),
    "numpy objects": np.array(LABELS, object),
    "tuple": tuple(LABELS),
    "Arrow view": pa.array(LABELS, pa.string_view()),
}


@pytest.mark.parametrize("form", SINGLE_FORMS)
def test_single_answers(form):
    assert places(SINGLE, SINGLE_FORMS[form]).tolist() == PLACES
    assert SINGLE.perturb_many(SINGLE_FORMS[form]).shape == (4, SINGLE.report_size)


@pytest.mark.parametrize(
    "make", [iter, lambda x: (a for a in x), lambda x: dict.fromkeys(x).keys()]
)
def test_generators(make):
    assert places(SINGLE, make(["flu", "HIV"])).tolist() == [3, 0]
    assert [x.tolist() for x in ragged(SETS, make([("flu", "HIV"), ()]))] == [[0, 3], [0, 2, 2]]


TICKS = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0]], bool)
NAMES = ["HIV", "cancer", "cold", "flu"]
LISTS = [["flu", "HIV"], [], ["cold", "cancer", "cold"]]
SET_FORMS = {
    "pandas lists": pd.Series(LISTS),
    "pandas tuples": pd.Series([tuple(x) for x in LISTS]),
    "pandas arrays": pd.Series([np.array(x, object) for x in LISTS]),
    "pandas frame of lists": pd.DataFrame({"have": LISTS}),
    "polars lists": pl.Series(LISTS),
    "polars frame of lists": pl.DataFrame({"have": LISTS}),
    "true and false": TICKS,
    "ones and zeros": TICKS.astype(np.int8),
    "pandas ticks": pd.DataFrame(TICKS, columns=NAMES),
    "pandas ticks of another order": pd.DataFrame(TICKS[:, ::-1], columns=NAMES[::-1]),
    "pandas ones and zeros": pd.DataFrame(TICKS.astype(int), columns=NAMES),
    "polars ticks": pl.DataFrame(TICKS, schema=NAMES),
}


@pytest.mark.parametrize("form", SET_FORMS)
def test_sets(form):
    items, offsets = ragged(SETS, SET_FORMS[form])
    assert (items.tolist(), offsets.tolist()) == ([0, 3, 1, 2], [0, 2, 2, 4])
    assert SETS.perturb_many(SET_FORMS[form]).shape == (3, SETS.report_size)


def test_ticks_of_some_items():
    """A frame may leave items out that nobody was asked about; one of a single item is a tick."""
    items, offsets = ragged(SETS, pd.DataFrame({"flu": [True, False, True], "HIV": [False] * 3}))
    assert (items.tolist(), offsets.tolist()) == ([3, 3], [0, 1, 1, 2])
    assert ragged(SETS, pl.DataFrame({"flu": [True, False]}))[1].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (pd.DataFrame({"age": [1], "answer": ["flu"]}), 'has 2 columns .*"age", "answer"'),
        (pd.Series(["flu", None]), "an item is missing"),
        (pd.Series([1.5, 2]), "decimal numbers"),
        (pd.Series(["flu", 3]), "several kinds"),
        (pd.Series([True]), "true and false"),
        (pd.Series(["flue"]), '"flue" is not an item; did you mean "flu"'),
        (pd.Series([4]), "item index 4 is out of range"),
        (pl.Series(["flu", None]), "an item is missing"),
        (pl.Series([[1, 2]]), "items are labels or whole numbers"),
        (pd.to_datetime(pd.Series(["2020-01-01"])), "got timestamp.*such as 2020-01-01"),
        (np.ma.masked_array([0, 1], mask=[0, 1]), "the array masks some answers"),
        ({"flu": 3}, "sequence of items, one per person, got dict"),
        ({"flu", "HIV"}, "sequence of items, one per person, got set"),
        (b"flu", "sequence of items, one per person, got bytes"),
        (np.array([["flu"]]), r"got ndarray of shape \(1, 1\)"),
        (7, "sequence of items, one per person, got int"),
    ],
)
def test_what_are_no_single_answers(answers, words):
    with pytest.raises(DataError, match=words):
        SINGLE.perturb_many(answers)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (TICKS[:, :3], "a column for each of the 4 items, got 3 columns"),
        (2 * TICKS.astype(int), "true and false .or 1 and 0. and nothing else"),
        (TICKS * 0.5, "true and false"),
        (pd.DataFrame({"flu": [True], "age": [True]}), '"age" is not an item'),
        (pd.DataFrame({"flu": [2], "HIV": [0]}), "and nothing else"),
        (pd.DataFrame({"flu": [True, None], "HIV": [True, True]}), "and nothing else"),
        (pd.Series(["flu"]), "Arrow list array"),
        (pd.Series([["flu"], None]), "null"),
        (["flu"], "takes a set of items per person, got str"),
        ({"flu": ["x"]}, "sequence of sets of items, one set per person, got dict"),
    ],
)
def test_what_are_no_sets(answers, words):
    with pytest.raises(DataError, match=words):
        SETS.perturb_many(answers)


def test_whole_numbers_that_are_labels_are_not_taken_for_places():
    for column in (pd.Series([10, 20]), pl.Series([10, 20])):
        with pytest.raises(DataError, match="may be labels or indices"):
            places(NUMBERS, column)
    assert places(NUMBERS, pd.Series([1, 2]), indices=True).tolist() == [1, 2]
    assert places(NUMBERS, pd.Series(["10", "30"])).tolist() == [0, 2]


# ---- simulations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        [1, 0, 2, 1],
        (1.0, 0.0, 2.0, 1.0),
        *(pd.Series([1, 0, 2, 1]), pl.Series([1, 0, 2, 1]), np.array([1, 0, 2, 1])),
        iter([1, 0, 2, 1]),
        {"cold": 2, "HIV": 1, "flu": 1},
        pd.Series(LABELS).value_counts(),
        pd.Series([1, 2, 1], index=["HIV", "cold", "flu"]),
        *(LABELS, np.array(LABELS), pd.Series(LABELS), pl.Series(LABELS), pa.array(LABELS)),
        iter(LABELS),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_simulation_takes_counts_and_labels(data):
    found = d.simulate(data, SINGLE, repeats=2, seed=1)
    assert (found.n, found.truth.tolist()) == (4, [1, 0, 2, 1])


def test_a_simulation_of_sets_takes_frames():
    found = d.simulate(pd.DataFrame(TICKS, columns=NAMES), SETS, repeats=1, seed=1)
    assert (found.n, found.truth.tolist()) == (3, [1, 1, 1, 1])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"cold": 1, "flue": 2}, '"flue" is not an item'),
        ({"cold": "many"}, "whole numbers"),
        ({"cold": -1}, "whole numbers"),
        (["cold", "flue"], '"flue" is not an item'),
        (pl.Series([1, 2, 3]), "whole numbers"),
        (pa.array([1, 2, 3]), "whole numbers"),
        (pd.Series([1, 2, 3]), "whole numbers"),
    ],
)
def test_what_no_simulation_takes(data, words):
    with pytest.raises(DataError, match=words):
        d.simulate(data, SINGLE, repeats=1)
