"""Data files in and out: every format says the same, in any blocks; what is wrong is one sentence
that says where.
"""

import gzip
import io
import lzma
import os
import stat
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as d
from discreet.data import answers as reading
from discreet.data import reports
from discreet.errors import DataError
from discreet.policy.files import write_text

LABELS = ["HIV", "anemia", "headache", 'say "ah", twice', "größe"]
SINGLE = d.design(
    d.Policy.from_levels([("serious", "ln(4)", LABELS[:1]), ("common", "ln(6)", LABELS[1:])]),
    "opt0",
)
SETS = d.design(
    d.Policy.from_levels(
        [("serious", "ln(4)", LABELS[:1]), ("common", "ln(6)", LABELS[1:])], kind="set"
    ),
    "opt0",
    padding=2,
)
NUMBERED = d.design(d.Policy.from_levels([("all", 1, ["10", "20", "30", "40"])]), "opt0")
NUMBERED_SETS = d.design(
    d.Policy.from_levels([("all", 1, ["10", "20", "30", "40"])], kind="set"), "opt0", padding=3
)
TICKETS = d.design(SINGLE.policy, encoding="ticket")  # of several parts
LAST = len(TICKETS.parts) * TICKETS.encoding.tickets
ANSWERS = [0, 3, 1, 1, 4, 2, 0, 3]
PEOPLE = [[0], [1, 3], [], [4, 2, 0], [1]]


def single(path, mechanism=SINGLE, **settings):
    """All answers of a file as a list of indices, and the number of blocks."""
    blocks = list(reading.read_answers(str(path), mechanism, **settings))
    assert all(block.dtype == np.int64 and block.ndim == 1 for block in blocks)
    return [int(i) for block in blocks for i in block]


def sets(path, mechanism=SETS, **settings):
    """All answers of a file as sorted lists."""
    found = []
    for items, offsets in reading.read_answers(str(path), mechanism, **settings):
        assert offsets[0] == 0 and offsets[-1] == len(items)
        found += [
            sorted(map(int, items[a:b])) for a, b in zip(offsets[:-1], offsets[1:], strict=True)
        ]
    return found


def refused(path, mechanism=SINGLE, **settings):
    with pytest.raises(DataError) as caught:
        for _ in reading.read_answers(str(path), mechanism, **settings):
            pass
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


def quoted(label):
    return '"' + label.replace('"', '""') + '"' if '"' in label or "," in label else label


def csv(path, labels, header="item", end="\n", start=""):
    path.write_bytes((start + end.join([header, *map(quoted, labels)]) + end).encode())
    return path


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


# ---- CSV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "BOM"])
def test_csv(tmp_path, start, end):
    path = csv(tmp_path / "a.csv", [LABELS[i] for i in ANSWERS], end=end, start=start)
    assert single(path) == ANSWERS
    unfinished = tmp_path / "b.csv"
    unfinished.write_bytes(path.read_bytes().rstrip())
    assert single(unfinished) == ANSWERS


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.txt", "a", "a.b.csv"])
def test_csv_by_other_names(tmp_path, name):
    assert single(csv(tmp_path / name, ["HIV", "anemia"])) == [0, 1]


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_packed_csv(tmp_path, suffix, opener):
    path = tmp_path / f"a.csv{suffix}"
    with opener(path, "wt", encoding="utf-8") as out:
        out.write("item\nHIV\ngröße\n")
    assert single(path) == [0, 4]


def test_other_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('age,illness,note\n7,HIV,\n,anemia,"a, b"\n9,größe,x\n', encoding="utf-8")
    assert single(path, column="illness") == [0, 1, 4]
    assert "age, illness, note" in refused(path) and "--column" in refused(path)


def test_the_first_column_behind_a_byte_order_mark_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\ufeffillness,item\nHIV,nonsense\n", encoding="utf-8")
    assert single(path, column="illness") == [0]


def test_labels_that_look_like_numbers_are_labels(tmp_path):
    """Tokens in data files are labels (DESIGN 4): "10" is the item called 10, not the eleventh."""
    path = csv(tmp_path / "a.csv", ["40", "10", "30"])
    assert single(path, NUMBERED) == [3, 0, 2]
    assert '"0" is not an item' in refused(csv(path, ["0"]), NUMBERED)


def test_labels_that_look_like_null_or_truth_are_labels(tmp_path):
    labels = ["NA", "null", "nan", "true", "1.0", "2020-01-01", "N/A", "None"]
    mechanism = d.design(d.Policy.from_levels([("all", 1, labels)]), "opt0")
    path = csv(tmp_path / "a.csv", labels)
    assert single(path, mechanism) == list(range(8))


def test_quoted_labels_with_line_breaks_are_refused_in_one_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('item\n"HIV\nanemia"\n')
    refused(path)


@pytest.mark.parametrize("cell", ["", '""'], ids=["empty", "quoted"])
def test_empty_cells_are_refused(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text(f"item,other\nHIV,1\n{cell},2\n")
    assert ", row 2 is blank or has no item" in refused(path)


BLANK = {
    "one column": "item\nHIV\n\nanemia\n",
    "two columns": "item,other\nHIV,1\n\nanemia,2\n",
    "Windows": "item,other\r\nHIV,1\r\n\r\nanemia,2\r\n",
    "at the end": "item\nHIV\n\n",
    "user rows": "user,item\na,HIV\n\nb,HIV\n",
}


@pytest.mark.parametrize("kind", BLANK)
def test_blank_rows_do_not_vanish(tmp_path, monkeypatch, kind):
    """Somebody may have stood there. From a file and from a pipe, in single and set input."""
    mechanism = SETS if kind == "user rows" else SINGLE
    path = tmp_path / "a.csv"
    path.write_bytes(BLANK[kind].encode())
    assert ", row 2 is blank or has no item; delete it" in refused(path, mechanism)
    monkeypatch.setattr(sys, "stdin", _Stdin(BLANK[kind].encode()))
    assert "-, row 2 is blank or has no item; delete it" in refused("-", mechanism)


def test_the_row_of_a_blank_line_is_its_own_in_any_block(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 3)
    path = csv(tmp_path / "a.csv", ["HIV"] * 7 + [""] + ["HIV"])
    assert ", row 8 is blank" in refused(path)


def test_a_blank_first_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\nitem\nHIV\n")
    assert "the first line is blank; it must name the columns" in refused(path)


def test_spaces_around_a_label_are_not_removed_silently(tmp_path):
    assert 'did you mean "anemia"' in refused(csv(tmp_path / "a.csv", ["HIV", "anemia "]))


def test_an_unknown_item_is_named_with_its_rows_and_the_nearest_label(tmp_path):
    sentence = refused(csv(tmp_path / "a.csv", ["HIV", "anemia", "headake"]))
    assert (
        sentence.endswith(': "headake" is not an item; did you mean "headache"?')
        and "rows 1 to 3" in sentence
    )
    assert "did you mean" not in refused(csv(tmp_path / "a.csv", ["zzz"]))


@pytest.mark.parametrize(
    "content", ["item,b\nHIV\n", "item\nHIV,anemia\n", "item,b\nHIV,1\nanemia,2,3\n"]
)
def test_malformed_rows(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert "is not a table" in refused(path)


def test_empty_and_headless_files(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("")
    assert refused(path) == f"{path} is empty"
    path.write_text("HIV\nanemia\n")
    assert 'no column "item"; it has HIV' in refused(path)
    path.write_text("item\n")
    assert single(path) == []


@pytest.mark.parametrize("text", ["item\ngröße\n", "größe,item\n1,HIV\n"], ids=["cell", "header"])
def test_text_that_is_not_utf_8(tmp_path, monkeypatch, text):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("latin-1"))
    assert "is not UTF-8 text (Latin-1, perhaps); save it as UTF-8" in refused(path)
    monkeypatch.setattr(sys, "stdin", _Stdin(text.encode("latin-1")))
    assert "is not UTF-8 text" in refused("-")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.dat"])
def test_text_in_wide_characters(tmp_path, monkeypatch, encoding, name):
    path = tmp_path / name
    raw = "item\nHIV\n".encode(encoding)
    with (gzip.open if name.endswith(".gz") else open)(path, "wb") as out:
        out.write(raw)
    assert "save it as UTF-8" in refused(path) or encoding == "utf-32"
    assert encoding != "utf-16" or "is UTF-16 text" in refused(path)
    monkeypatch.setattr(sys, "stdin", _Stdin(raw))
    refused("-")


@pytest.mark.parametrize(
    ("mark", "what"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")]
)
def test_other_marks_between_the_columns(tmp_path, monkeypatch, mark, what):
    """Also where the rows have commas of their own, as numbers of a German spreadsheet."""
    text = f'"item"{mark}size\nHIV{mark}1,5\nanemia{mark}2\n'
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert refused(path) == f"{path} has {what} between its columns; save it with commas"
    monkeypatch.setattr(sys, "stdin", _Stdin(text.encode()))
    assert what in refused("-")
    path.write_text("item,a;b\nHIV,1\n")
    assert single(path) == [0]


def test_packed_files_of_another_name(tmp_path):
    """A spreadsheet, a Parquet file and a packed one that are called .csv."""
    path = tmp_path / "a.csv"
    for start, what in (
        (b"PK\x03\x04", "is a spreadsheet or another zip file"),
        (b"\xd0\xcf\x11\xe0", "is a spreadsheet"),
        (gzip.compress(b"item\nHIV\n", mtime=0), "is packed with gzip"),
        (lzma.compress(b"item\nHIV\n"), "is packed with xz"),
    ):
        path.write_bytes(start + b"\x00\x01\xff rest")
        assert what in refused(path)
    parquet(path, item=pa.array(["HIV"]))
    assert "is a Parquet file" in refused(path)


@pytest.mark.parametrize("columns", ["item,item", "item,user,item"])
def test_a_column_named_twice_is_refused(tmp_path, columns):
    path = tmp_path / "a.csv"
    path.write_text(columns + "\n" + ",".join(["HIV"] * (columns.count(",") + 1)) + "\n")
    refused(path)


def test_files_that_cannot_be_opened(tmp_path):
    for name in ("none.csv", "none.dat", "none.parquet"):
        refused(tmp_path / name)
    for name in ("folder.csv", "folder.dat", "folder.parquet"):
        (tmp_path / name).mkdir()
        refused(tmp_path / name)


@pytest.mark.parametrize("name", ["a.xlsx", "a.json", "a.zip", "a.parq", "a.dat.zip", "a.xlsx.gz"])
def test_other_kinds_of_files_are_refused(tmp_path, name):
    path = csv(tmp_path / name, ["HIV"])
    assert ".csv, .parquet or FIMI .dat" in refused(path)
    assert ("is a spreadsheet; save its table as CSV" in refused(path)) == ("xlsx" in name)


# ---- Parquet -------------------------------------------------------------------------------------

TEXT = {
    "string": pa.array([LABELS[i] for i in ANSWERS]),
    "large_string": pa.array([LABELS[i] for i in ANSWERS], pa.large_string()),
    "dictionary": pa.array([LABELS[i] for i in ANSWERS]).dictionary_encode(),
}


@pytest.mark.parametrize("column", TEXT.values(), ids=TEXT.keys())
def test_parquet_labels(tmp_path, column):
    path = parquet(tmp_path / "a.parquet", other=pa.array(range(8)), item=column)
    assert single(path) == ANSWERS


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()], ids=str
)
def test_parquet_integers_are_labels(tmp_path, kind):
    """DESIGN 4. "1", "2", "3" and the integers 1, 2, 3: the item called 1 is the first one, at
    index 0; it was counted as the second.
    """
    mechanism = d.design(d.Policy.from_levels([("all", 1, ["1", "2", "3"])]))
    column = pa.array([1, 2, 3, 1], kind)
    path = parquet(tmp_path / "a.parquet", item=column)
    assert single(path, mechanism) == [0, 1, 2, 0]
    assert single(path, mechanism) == single(csv(tmp_path / "a.csv", "1231"), mechanism)
    coded = parquet(tmp_path / "c.parquet", item=column.dictionary_encode())
    assert single(coded, mechanism) == [0, 1, 2, 0]
    wrong = parquet(tmp_path / "b.parquet", item=pa.array([1, 0], kind))
    assert '"0" is not an item; if they are indices, say --indices' in refused(wrong, mechanism)


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63)])
def test_integers_are_compared_as_they_are_written(tmp_path, value):
    mechanism = d.design(d.Policy.from_levels([("all", 1, ["01", "x", str(value)])]))
    path = parquet(tmp_path / "a.parquet", item=pa.array([value], pa.int64()))
    assert single(path, mechanism) == [2]
    path = parquet(tmp_path / "a.parquet", item=pa.array([1], pa.int64()))
    assert '"1" is not an item' in refused(path, mechanism)


def test_integers_where_no_label_is_one(tmp_path):
    """An index is asked for by name."""
    path = parquet(tmp_path / "a.parquet", item=pa.array(ANSWERS))
    assert "no label of the policy is one; if they are indices (0 is the first item), say " in (
        refused(path)
    )
    lists = parquet(tmp_path / "b.parquet", item=pa.array(PEOPLE, pa.list_(pa.int32())))
    assert "say --indices" in refused(lists, SETS)
    assert single(path, indices=True) == ANSWERS
    assert sets(lists, indices=True) == [sorted(x) for x in PEOPLE]


@pytest.mark.parametrize("mechanism", [SINGLE, NUMBERED], ids=["words", "numbers"])
def test_indices_by_name_in_every_format(tmp_path, fimi, mechanism):
    """Whatever the labels look like."""
    given = [0, 3, 1, 1, 2]
    paths = [
        parquet(tmp_path / "a.parquet", item=pa.array(given, pa.uint16())),
        parquet(tmp_path / "b.parquet", item=pa.array(list(map(str, given)))),
        csv(tmp_path / "a.csv", list(map(str, given))),
        fimi("\n".join(map(str, given))),
    ]
    for path in paths:
        assert single(path, mechanism, indices=True) == given
    for text in ("HIV", "1.0", "", "1 2", "١", "9" * 30, "-1", str(mechanism.m)):
        assert refused(csv(tmp_path / "a.csv", ["0", f'"{text}"']), mechanism, indices=True)
    assert "line 2: item index 40 is out of range" in refused(
        fimi("1\n40\n"), mechanism, indices=True
    )
    assert 'line 3: "x" is not an index' in refused(fimi("1\n2\nx\n"), mechanism, indices=True)


def test_parquet_indices_far_out(tmp_path):
    for kind, value in ((pa.uint64(), 2**64 - 1), (pa.int64(), -1), (pa.int64(), -(2**63))):
        path = parquet(tmp_path / "a.parquet", item=pa.array([0, value], kind))
        assert f"item index {value} is out of range" in refused(path, indices=True)


LISTS = {
    "labels": pa.array([[LABELS[i] for i in x] for x in PEOPLE], pa.list_(pa.string())),
    "large": pa.array([[LABELS[i] for i in x] for x in PEOPLE], pa.large_list(pa.large_string())),
}


@pytest.mark.parametrize("column", LISTS.values(), ids=LISTS.keys())
def test_parquet_lists(tmp_path, column):
    path = parquet(tmp_path / "a.parquet", item=column)
    assert sets(path) == [sorted(x) for x in PEOPLE]
    assert "kind is single" in refused(path, SINGLE)


def test_parquet_lists_of_integers_are_labels(tmp_path):
    column = pa.array([[10, 30], [], [40, 10, 40]], pa.list_(pa.int64()))
    path = parquet(tmp_path / "a.parquet", item=column)
    assert sets(path, NUMBERED_SETS) == [[0, 2], [], [0, 3]]


def test_repeated_items_of_a_list_count_once(tmp_path):
    column = pa.array([["anemia", "anemia", "HIV"], [], ["headache"] * 2])
    assert sets(parquet(tmp_path / "a.parquet", item=column)) == [[0, 1], [], [2]]


NULLS = {
    "a null item": (SINGLE, pa.array(["HIV", None])),
    "a null index": (SINGLE, pa.array([0, None], pa.int64())),
    "a null in a dictionary": (SINGLE, pa.array(["HIV", None]).dictionary_encode()),
    "only nulls": (SINGLE, pa.nulls(3)),
    "a null list": (SETS, pa.array([["HIV"], None])),
    "a null in a list": (SETS, pa.array([["HIV", None]])),
}


@pytest.mark.parametrize(("mechanism", "column"), NULLS.values(), ids=NULLS.keys())
def test_nulls_are_refused(tmp_path, mechanism, column):
    refused(parquet(tmp_path / "a.parquet", item=column), mechanism)


ODD = {
    "decimals": (SINGLE, pa.array([0.0, 1.0])),
    "booleans": (SINGLE, pa.array([True, False])),
    "binary that is no text": (SINGLE, pa.array([b"\xff\xfe"])),
    "structs": (SINGLE, pa.array([{"a": 1}])),
    "dates": (SINGLE, pa.array([0], pa.date32())),
    "lists of decimals": (SETS, pa.array([[0.0]])),
    "lists of lists": (SETS, pa.array([[["HIV"]]])),
    "maps": (SETS, pa.array([[("HIV", 1)]], pa.map_(pa.string(), pa.int64()))),
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_of_another_type_are_refused(tmp_path, kind):
    mechanism, column = ODD[kind]
    refused(parquet(tmp_path / "a.parquet", item=column), mechanism)


def test_fixed_size_lists(tmp_path):
    column = pa.array([[0, 1], [2, 3]], pa.list_(pa.int64(), 2))
    path = parquet(tmp_path / "a.parquet", item=column)
    try:
        assert sets(path) == [[0, 1], [2, 3]]
    except DataError as error:
        assert "lists" in str(error)


def test_parquet_without_the_column_or_the_end(tmp_path):
    path = parquet(tmp_path / "a.parquet", thing=pa.array(["HIV"]))
    assert 'no column "item"; it has thing' in refused(path)
    assert single(path, column="thing") == [0]
    whole = path.read_bytes()
    for length in (0, 4, 11, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "not a complete Parquet file" in refused(path)


def test_a_parquet_file_with_damaged_pages(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"item": ["HIV"] * 5000}),
        path,
        compression="none",
        use_dictionary=False,
        write_page_checksum=False,
    )
    raw = bytearray(path.read_bytes())
    raw[4:64] = b"\xff" * 60
    path.write_bytes(raw)
    refused(path)


def test_an_unknown_item_of_parquet_is_named_with_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 3)
    path = parquet(tmp_path / "a.parquet", item=pa.array(["HIV"] * 7 + ["anaemia"] + ["HIV"]))
    sentence = refused(path)
    assert "rows 7 to 9" in sentence and 'did you mean "anemia"' in sentence


# ---- user, item rows -----------------------------------------------------------------------------

ROWS = [
    ("ann", "HIV"),
    ("ann", "anemia"),
    ("bob", "größe"),
    ("cy", "headache"),
    ("cy", "HIV"),
    ("cy", "HIV"),
    ("di", "anemia"),
]
GROUPED = [[0, 1], [4], [0, 2], [1]]


def user_rows(path, rows, header="user,item"):
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def test_user_rows(tmp_path):
    assert sets(user_rows(tmp_path / "a.csv", ROWS)) == GROUPED
    path = user_rows(tmp_path / "b.csv", ROWS, "who,what")
    assert sets(path, column="what", user="who") == GROUPED
    users, items = zip(*ROWS, strict=True)
    assert (
        sets(parquet(tmp_path / "a.parquet", user=pa.array(users), item=pa.array(items))) == GROUPED
    )


def test_users_may_be_numbers(tmp_path):
    path = parquet(
        tmp_path / "a.parquet", user=pa.array([7, 7, 8]), item=pa.array(["HIV", "anemia", "HIV"])
    )
    assert sets(path) == [[0, 1], [0]]
    assert sets(user_rows(tmp_path / "a.csv", [("7", "HIV"), ("07", "HIV")])) == [[0], [0]]


@pytest.mark.parametrize("block", range(1, 9))
def test_runs_of_a_user_across_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(reading, "BLOCK", block)
    users, items = zip(*ROWS, strict=True)
    assert (
        sets(parquet(tmp_path / "a.parquet", user=pa.array(users), item=pa.array(items))) == GROUPED
    )


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_a_user_whose_rows_stand_apart_is_refused(tmp_path, monkeypatch, block):
    monkeypatch.setattr(reading, "BLOCK", block)
    users, items = zip(*ROWS, ("ann", "HIV"), strict=True)
    sentence = refused(
        parquet(tmp_path / "a.parquet", user=pa.array(users), item=pa.array(items)), SETS
    )
    assert "'ann'" in sentence and "sort the file" in sentence


def test_user_rows_that_cannot_be_grouped(tmp_path):
    assert "no user" in refused(user_rows(tmp_path / "a.csv", [("", "HIV")]), SETS)
    assert 'no column "user"' in refused(csv(tmp_path / "b.csv", ["HIV"]), SETS)
    assert ", row 2 is blank" in refused(
        user_rows(tmp_path / "c.csv", [("a", "HIV"), ("a", "")]), SETS
    )
    assert "not an item" in refused(user_rows(tmp_path / "d.csv", [("a", "flu")]), SETS)


def test_no_user_rows(tmp_path):
    assert sets(user_rows(tmp_path / "a.csv", [])) == []


# ---- FIMI ----------------------------------------------------------------------------------------

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


@pytest.fixture(params=OPENERS)
def fimi(request, tmp_path):
    """Writes FIMI lines, plain or packed."""

    def write(text):
        path = tmp_path / f"a.dat{request.param}"
        with OPENERS[request.param](path, "wb") as out:
            out.write(text.encode())
        return path

    return write


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"], ids=repr)
def test_fimi(fimi, end):
    path = fimi(end.join(["10 30", "20", "", "40  10\t20", "30 30"]) + end)
    assert sets(path, NUMBERED_SETS) == [[0, 2], [1], [], [0, 1, 3], [2]]
    assert sets(fimi("10 30\n20"), NUMBERED_SETS) == [[0, 2], [1]]


def test_fimi_of_single_answers(fimi):
    assert single(fimi("10\n30\n"), NUMBERED) == [0, 2]
    assert "line 2 has 2 items" in refused(fimi("10\n20 30\n"), NUMBERED)
    assert "line 3 has 0 items" in refused(fimi("10\n20\n\n30\n"), NUMBERED)


def test_fimi_strangers_are_named_with_their_line(fimi):
    assert 'line 3: "400" is not an item; did you mean "40"?' in refused(
        fimi("10\n20 30\n10 400\n"), NUMBERED_SETS
    )
    refused(fimi("10\n\x00\x01\n"), NUMBERED_SETS)


def test_empty_fimi(fimi):
    assert sets(fimi(""), NUMBERED_SETS) == []


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("kind", ["dat", "csv"])
def test_truncated_and_false_packed_files(tmp_path, suffix, kind):
    path = tmp_path / f"a.{kind}{suffix}"
    rng = np.random.default_rng(1)
    lines = [str(x) for x in rng.choice([10, 20, 30, 40], 40_000)]
    with OPENERS[suffix](path, "wb") as out:
        out.write("\n".join((["item"] if kind == "csv" else []) + lines).encode())
    whole = path.read_bytes()
    assert len(single(path, NUMBERED)) == 40_000
    for length in (len(whole) - 1, len(whole) - 9, len(whole) // 2, 12, 3):
        path.write_bytes(whole[:length])
        refused(path, NUMBERED)
    path.write_bytes(b"10\n20\n")
    refused(path, NUMBERED)


def test_a_packed_file_with_a_flipped_byte(tmp_path):
    for suffix in (".gz", ".xz"):
        path = tmp_path / f"a.dat{suffix}"
        with OPENERS[suffix](path, "wb") as out:
            out.write(b"10\n20\n30\n" * 1000)
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 0x55
        path.write_bytes(raw)
        refused(path, NUMBERED)


# ---- columns to keep -----------------------------------------------------------------------------


def kept(path, mechanism, *names):
    """The kept columns of all people, in order; as many rows as there are people."""
    asked = reading.ReadOptions(with_columns=names)
    blocks = list(reading.read_people(str(path), mechanism, asked))
    for found in blocks:
        n = len(found.block[1]) - 1 if mechanism.policy.kind.lists else len(found.block)
        assert len(found.with_columns) == n and found.with_columns.column_names == list(names)
    return pa.concat_tables(x.with_columns for x in blocks).to_pydict()


def keeping_refused(path, mechanism, *names):
    with pytest.raises(DataError) as caught:
        list(reading.read_people(str(path), mechanism, reading.ReadOptions(with_columns=names)))
    return str(caught.value)


def test_kept_columns_stay_beside_their_answers(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("region,item,age\nnorth,HIV,07\n,anemia,8\nsouth,HIV,x\n", encoding="utf-8")
    assert kept(path, SINGLE, "age", "region") == {
        "age": ["07", "8", "x"], "region": ["north", None, "south"],
    }  # fmt: skip
    columns = {"item": pa.array(LABELS), "age": pa.array([1, 2, None, 4, 5], pa.int8())}
    columns["town"] = pa.array(["x", "y", "x", "x", None]).dictionary_encode()
    path = parquet(tmp_path / "a.parquet", **columns)
    for block in (1, 2, 100):
        monkeypatch.setattr(reading, "BLOCK", block)
        assert kept(path, SINGLE, "age", "town") == {
            "age": [1, 2, None, 4, 5], "town": ["x", "y", "x", "x", None],
        }  # fmt: skip


@pytest.mark.parametrize("block", range(1, 9))
def test_kept_columns_of_user_rows_are_of_the_user(tmp_path, monkeypatch, block):
    monkeypatch.setattr(reading, "BLOCK", block)
    users, items = zip(*ROWS, strict=True)
    homes = {"ann": "north", "bob": None, "cy": "south", "di": "north"}
    columns = {"user": pa.array(users), "item": pa.array(items)}
    path = parquet(tmp_path / "a.parquet", **columns, home=pa.array([homes[x] for x in users]))
    assert kept(path, SETS, "home") == {"home": ["north", None, "south", "north"]}
    assert sets(path) == GROUPED
    for k in (1, 5):  # the second row of ann, the last of cy
        told = [homes[x] for x in users]
        told[k] = "west"
        path = parquet(tmp_path / "b.parquet", **columns, home=pa.array(told))
        assert 'differ in "home"' in keeping_refused(path, SETS, "home")


def test_columns_that_cannot_be_kept(tmp_path, fimi):
    path = parquet(tmp_path / "a.parquet", item=pa.array(["HIV"]), pages=pa.array([[1]]))
    assert "several values a row" in keeping_refused(path, SINGLE, "pages")
    assert (
        'no column "town"; it has item, pages; name another with --with-column'
        in keeping_refused(path, SINGLE, "town")
    )
    assert "no columns to keep" in keeping_refused(fimi("10\n"), NUMBERED, "town")


# ---- standard input and blocks -------------------------------------------------------------------


class _Stdin:
    def __init__(self, raw):
        self.buffer = io.BytesIO(raw)


def test_standard_input_is_csv(monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Stdin("item\nHIV\ngröße\n".encode()))
    assert single("-") == [0, 4]
    monkeypatch.setattr(sys, "stdin", _Stdin(b"user,item\na,HIV\na,anemia\nb,HIV\n"))
    assert sets("-") == [[0, 1], [0]]
    monkeypatch.setattr(sys, "stdin", _Stdin(b""))
    assert refused("-").endswith("is empty")


def test_files_larger_than_a_block_are_the_same_as_whole(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    answers = rng.integers(0, 4, 1000)
    people = [rng.choice(4, rng.integers(0, 4), replace=False).tolist() for _ in range(1000)]
    labels = NUMBERED.policy.items
    paths = {
        "dat": tmp_path / "a.dat",
        "parquet": parquet(tmp_path / "a.parquet", item=pa.array([labels[i] for i in answers])),
        "csv": csv(tmp_path / "a.csv", [labels[i] for i in answers]),
    }
    paths["dat"].write_text("".join(f"{labels[i]}\n" for i in answers))
    lists = {
        "dat": tmp_path / "s.dat",
        "parquet": parquet(
            tmp_path / "s.parquet", item=pa.array([[int(labels[i]) for i in x] for x in people])
        ),
    }
    lists["dat"].write_text("".join(" ".join(labels[i] for i in x) + "\n" for x in people))
    whole = [sorted(x) for x in people]
    for block in (1, 7, 999, 1000, 1001, reading.BLOCK):
        monkeypatch.setattr(reading, "BLOCK", block)
        assert all(single(path, NUMBERED) == answers.tolist() for path in paths.values())
        assert all(sets(path, NUMBERED_SETS) == whole for path in lists.values())
        for path in (paths["dat"], paths["parquet"], lists["dat"], lists["parquet"]):
            mechanism = NUMBERED if path in paths.values() else NUMBERED_SETS
            assert len(list(reading.read_answers(str(path), mechanism))) == -(-1000 // block)


def test_csv_of_several_blocks(tmp_path):
    answers = np.random.default_rng(3).integers(0, 4, 2_000_000)
    path = tmp_path / "a.csv"
    path.write_text("item\n" + "".join(np.array(["10\n", "20\n", "30\n", "40\n"], object)[answers]))
    blocks = list(reading.read_answers(str(path), NUMBERED))
    assert len(blocks) > 1 and np.array_equal(np.concatenate(blocks), answers)


@pytest.mark.parametrize("name", ["a.csv", "a.dat", "a.parquet"])
def test_progress_reaches_the_size_of_the_file(tmp_path, name):
    path = tmp_path / name
    if name == "a.parquet":
        parquet(path, item=pa.array(["10"] * 1000))
    else:
        path.write_text("item\n" * (name == "a.csv") + "10\n" * 1000)
    seen = []
    for _ in reading.read_answers(str(path), NUMBERED, advance=seen.append):
        pass
    assert abs(sum(seen) - path.stat().st_size) <= 1


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o027])
def test_permissions_follow_the_umask(tmp_path, umask):
    old = os.umask(umask)
    try:
        write_text(tmp_path / "out.txt", "text")
        reports.write_reports(tmp_path / "r.parquet", SINGLE, [])
        assert os.umask(umask) == umask
    finally:
        os.umask(old)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
