"""The table that everything shows: rows, files, and what is not known."""

import csv
import io
import math
import os

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataError
from discreet.estimates.table import Table

ITEMS = np.array(['a,"b"', "ü", "=c"], object)
TABLE = Table({"item": ITEMS, "count": np.array([1.5, math.nan, -math.inf]), "n": np.arange(3)})
KNOWN = {"item": ['a,"b"', "ü", "=c"], "count": [1.5, None, None], "n": [0, 1, 2]}


def test_what_is_not_known_is_none_null_and_an_empty_cell():
    assert TABLE.rows() == [dict(zip(KNOWN, row)) for row in zip(*KNOWN.values())]
    assert TABLE.to_arrow().to_pydict() == KNOWN
    rows = list(csv.reader(io.StringIO(TABLE.csv().decode())))
    assert rows == [
        ["item", "count", "n"],
        ['a,"b"', "1.5", "0"],
        ["ü", "", "1"],
        ["'=c", "", "2"],  # a spreadsheet would run it
    ]


def test_rows_are_taken_in_the_order_that_is_asked_for():
    assert len(TABLE) == 3 and len(TABLE.take([])) == 0
    assert [row["n"] for row in TABLE.take([2, 0]).rows()] == [2, 0]
    assert TABLE.take(np.array([1])).rows() == [{"item": "ü", "count": None, "n": 1}]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.CSV"])
def test_files_hold_the_table(tmp_path, name):
    TABLE.save(tmp_path / name)
    found = (pq.read_table if name.endswith("parquet") else pc.read_csv)(tmp_path / name)
    items = KNOWN["item"] if name.endswith("parquet") else [*KNOWN["item"][:2], "'=c"]
    assert found.to_pydict() == {**KNOWN, "item": items}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\tx", "\rx"])
def test_no_cell_begins_like_a_formula(text):
    assert b"\n" + b"\"'" in Table({"item": [text]}).csv()
    assert Table({"item": [text]}).rows() == [{"item": text}]


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.csv.gz"])
def test_files_of_another_kind_are_refused(tmp_path, name):
    with pytest.raises(DataError, match=r"a table is written as \.csv or \.parquet"):
        TABLE.save(tmp_path / name)
    assert os.listdir(tmp_path) == []
