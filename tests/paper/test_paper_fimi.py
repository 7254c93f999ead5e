"""FIMI files of item numbers: every packing, and what is wrong in one sentence."""

import gzip
import hashlib
import lzma

import numpy as np
import pytest

from discreet.errors import DataError
from discreet.paper import fimi

LINES = "5 7 5\n9\n7 5 100000000000\n"


@pytest.mark.parametrize("ending", [".dat", ".dat.gz", ".dat.xz"])
def test_lines_are_read_from_every_packing(tmp_path, ending):
    opener = {".dat": open, ".dat.gz": gzip.open, ".dat.xz": lzma.open}[ending]
    path = tmp_path / f"retail{ending}"
    with opener(path, "wt") as file:
        file.write(LINES)
    read = []
    found = fimi.read(path, read.append)
    assert found.ids.tolist() == [5, 7, 5, 9, 7, 5, 100000000000]
    assert found.lengths.tolist() == [3, 1, 3]
    assert sum(read) == path.stat().st_size
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1 2\n3 x 4\n", 'line 2: "x" is not an item id'),
        ("1 2\n-3\n", 'line 2: "-3" is not an item id'),
        ("1,2\n", 'line 1: "1,2" is not'),
        ("1\n2.5\n", 'line 2: "2.5" is not'),
        ("1\n99999999999999999999\n", 'line 2: "99999999999999999999" is not'),
        ("1\n1_0\n", 'line 2: "1_0" is not'),
        ("1\n\xe9\n", "line 2: "),
        ("1\n\n2\n", "line 2 is empty"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("1\r2\n", "line feed"),
    ],
    ids=repr,
)
def test_malformed_files_are_one_sentence_with_the_line(tmp_path, text, match):
    path = tmp_path / "retail.dat"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=match) as caught:
        fimi.read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_blank_end_of_a_file_is_no_person(tmp_path):
    path = tmp_path / "retail.dat"
    path.write_text("1 2\r\n3\t4 \n\n")
    assert fimi.read(path).lengths.tolist() == [2, 2]


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_file_that_is_cut_off_is_one_sentence(tmp_path, ending):
    path = tmp_path / f"retail.dat{ending}"
    text = "\n".join(map(str, np.random.default_rng(1).integers(0, 10**9, 2000))).encode()
    path.write_bytes((gzip if ending == ".gz" else lzma).compress(text)[:-500])
    with pytest.raises(DataError, match="cannot be read to its end"):
        fimi.read(path)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        fimi.read(tmp_path / "retail.dat")
