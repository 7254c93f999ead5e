"""Scores of files of reports, as batches and as a file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checks import must_fail

import discreet as d
from discreet.data import scores
from discreet.data.scores import read_scores, write_scores
from discreet.errors import DataError

MECHANISM = d.design(d.Policy.from_levels([("all", 2, ["a", "b", "c"])]))


@pytest.fixture
def files(tmp_path):
    """Two files, and all their reports; the second has a row that is no report."""
    reports = [bytes(x) for x in MECHANISM.perturb_many(np.arange(900) % 3)]
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    for path, part in zip(paths, (reports[:400], [*reports[400:], b"none"]), strict=True):
        table = {"report": pa.array(part, pa.binary()), "region": ["north"] * len(part)}
        pq.write_table(pa.table(table), path, row_group_size=100)
    return paths, reports


def check_whole(batches, reports):
    table = pa.Table.from_batches(batches)
    assert table.schema.names == ["region", "c", "a"] and table["region"].to_pylist()[0] == "north"
    expected = MECHANISM.scores(reports, ["c", "a"])
    assert len(table) == len(reports)
    assert (np.column_stack([table["c"], table["a"]]) == expected).all()


def test_files_are_scored_a_batch_after_the_other(files):
    paths, reports = files
    batches = [*read_scores(paths, MECHANISM, ["c", "a"], ["region"])]
    assert len(batches) >= 2 and max(map(len, batches)) < 900
    check_whole(batches, reports)
    must_fail(check_whole, batches[1:], reports)


def test_nothing_is_read_before_it_is_wanted(files, monkeypatch):
    """A batch at a time is in memory: the second file can be missing until it is its turn."""
    paths, _ = files
    batches = read_scores([paths[0], paths[1].with_name("gone.parquet")], MECHANISM)
    assert len(next(batches)) > 0
    with pytest.raises(DataError, match="gone"):
        list(batches)


def test_the_file_has_the_same(files, tmp_path):
    paths, reports = files
    told = write_scores(paths, MECHANISM, tmp_path / "s.parquet", ["c", "a"], ["region"])
    assert told == scores.Scored(900, 1)
    check_whole(pq.read_table(tmp_path / "s.parquet").to_batches(), reports)
