"""Files of reports, plain and counted, in any blocks; what is wrong is one sentence that says
where.
"""

import math
import os
import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import discreet as d
from discreet.arrays.tally import as_rows
from discreet.cli import main
from discreet.data import counting, reports
from discreet.errors import DataError

LABELS = ["HIV", "anemia", "headache", 'say "ah", twice', "größe"]
SINGLE = d.design(
    d.Policy.from_levels([("serious", "ln(4)", LABELS[:1]), ("common", "ln(6)", LABELS[1:])]),
    "opt0",
)
TICKETS = d.design(SINGLE.policy, encoding="ticket")  # of several parts
LAST = len(TICKETS.parts) * TICKETS.encoding.tickets


def report_blocks(path, mechanism):
    return [
        as_rows(mechanism, counting.report_rows(batch.column("report"), mechanism.report_size))[0]
        for piece in reports.split_file(path, mechanism)
        for batch in reports.read_piece(piece, mechanism)
    ]


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


# ---- reports -------------------------------------------------------------------------------------


def read(path, mechanism=SINGLE):
    """The tally of a file of reports."""
    return counting.tally_files([path], mechanism)[None]


def reports_refused(path, mechanism=SINGLE):
    with pytest.raises(DataError) as caught:
        read(path, mechanism)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [("opt0", "bits"), ("opt0", "ticket"), ("subset", "bits"), ("subset", "ticket"), ("grr", None)],
)
def test_reports_round_trip(tmp_path, model, encoding):
    mechanism = d.design(SINGLE.policy, model, encoding=encoding)
    rows = mechanism.perturb_many(np.arange(5000) % 5)
    path = tmp_path / "r.parquet"
    assert (
        reports.write_reports(
            path, mechanism, [rows[:1], rows[1:1700], rows[1700:1700], rows[1700:]]
        )
        == 5000
    )
    back = np.concatenate(report_blocks(path, mechanism))
    assert back.dtype == np.uint8 and np.array_equal(back, rows)
    assert read(path, mechanism) == mechanism.tally(rows)
    schema = pq.read_schema(path)
    assert schema.metadata[reports.FINGERPRINT].decode() == mechanism.fingerprint
    kind = pa.uint32() if encoding == "ticket" else pa.binary(mechanism.report_size)
    assert schema.names == ["report"] and schema.field("report") == pa.field(
        "report", kind, nullable=False
    )


def test_no_reports(tmp_path):
    path = tmp_path / "r.parquet"
    assert reports.write_reports(path, SINGLE, []) == 0
    assert read(path).n == 0


def test_reports_in_small_blocks(tmp_path, monkeypatch):
    rows = SINGLE.perturb_many(np.arange(5000) % 5)
    path = tmp_path / "r.parquet"
    monkeypatch.setattr(reports, "ROW_GROUP", 100)
    reports.write_reports(path, SINGLE, np.split(rows, 100))
    assert pq.ParquetFile(path).num_row_groups > 10
    blocks = report_blocks(path, SINGLE)
    assert len(blocks) > 1 and np.array_equal(np.concatenate(blocks), rows)


def test_rows_of_a_sliced_column():
    rows = SINGLE.perturb_many(np.arange(20) % 5)
    column = pa.array([bytes(row) for row in rows], pa.binary(SINGLE.report_size))
    assert np.array_equal(counting.report_rows(column.slice(3, 9), SINGLE.report_size), rows[3:12])


def test_reports_of_another_mechanism_are_refused(tmp_path):
    path = tmp_path / "r.parquet"
    reports.write_reports(path, SINGLE, [SINGLE.perturb_many([0])])
    assert "another mechanism" in reports_refused(path, d.design(SINGLE.policy))


def test_truncated_reports_are_refused(tmp_path):
    path = tmp_path / "r.parquet"
    reports.write_reports(path, SINGLE, [SINGLE.perturb_many(np.zeros(1000, int))])
    whole = path.read_bytes()
    for length in (0, 3, 8, 100, len(whole) // 2, len(whole) - 4, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "not a complete Parquet file" in reports_refused(path)
    path.write_text("item\nHIV\n")
    assert "not a complete Parquet file" in reports_refused(path)
    assert "does not exist" in reports_refused(tmp_path / "none.parquet")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_plain_binary_of_other_tools(tmp_path, kind):
    """No fingerprint and any length: what is wrong is refused report by report, and counted."""
    good = [bytes(row) for row in SINGLE.perturb_many(np.arange(50) % 5)]
    path = parquet(
        tmp_path / "r.parquet",
        report=pa.array([*good, b"", b"\x00\x00", None, b"\xe0", *good], kind),
    )
    tally = read(path)
    assert tally.n == 100 and tally.refused == {"length": 3, "tail": 1}
    assert np.array_equal(tally.counts, SINGLE.tally(good + good).counts)


def test_null_reports_are_refused_and_counted(tmp_path):
    good = [bytes(row) for row in SINGLE.perturb_many(np.arange(5))]
    path = parquet(
        tmp_path / "r.parquet", report=pa.array([good[0], None, *good[1:], None], pa.binary(1))
    )
    assert read(path).n == 5 and read(path).refused == {"length": 2}


def test_fixed_size_binary_of_another_size(tmp_path):
    path = parquet(tmp_path / "r.parquet", report=pa.array([b"ab", b"cd"], pa.binary(2)))
    assert read(path).n == 0 and read(path).refused == {"length": 2}


def test_files_without_reports(tmp_path):
    assert 'no column "report"; it has item' in reports_refused(
        parquet(tmp_path / "a.parquet", item=pa.array(["HIV"]))
    )
    for column in (pa.array(["HIV"]), pa.array([1]), pa.array([[b"a"]])):
        assert "must be binary" in reports_refused(parquet(tmp_path / "a.parquet", report=column))


INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]


def test_a_ticket_is_the_number_of_its_little_endian_bytes(tmp_path):
    rows = TICKETS.perturb_many(np.arange(1000) % 5)
    reports.write_reports(tmp_path / "r.parquet", TICKETS, [rows])
    numbers = pq.read_table(tmp_path / "r.parquet").column("report").to_pylist()
    assert numbers == [int.from_bytes(row.tobytes(), "little") for row in rows]
    assert max(numbers) < LAST


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_tickets_in_any_integers(tmp_path, kind):
    """Whole and with nulls; of what no ticket can be, each is refused and counted."""
    least, most = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if str(kind).startswith("u"):
        least, most = 0, 2**kind.bit_width - 1
    good = [k for k in (0, 1, 5, 100, 200, 30_000, LAST - 1) if k <= min(most, LAST - 1)]
    path = parquet(tmp_path / "r.parquet", report=pa.array(good, kind))
    reports = [k.to_bytes(4, "little") for k in good]
    assert read(path, TICKETS) == TICKETS.tally(reports) and read(path, TICKETS).refused == {}
    strange = [k for k in (-1, least, most, 2**32 - 1, 2**32, 2**32 + 5) if least <= k <= most]
    strange = [k for k in strange if not 0 <= k < LAST]
    path = parquet(tmp_path / "r.parquet", report=pa.array([None, *good, *strange, None], kind))
    tally = read(path, TICKETS)
    beyond = sum(0 <= k < 2**32 for k in strange)
    wanted = {"length": 2 + len(strange) - beyond, "ticket": beyond}
    assert tally.refused == {reason: count for reason, count in wanted.items() if count}
    assert np.array_equal(tally.counts, TICKETS.tally(reports).counts)
    assert tally == TICKETS.tally(
        [*reports, *(b"" for _ in range(wanted["length"])), *(b"\xff" * 4 for _ in range(beyond))]
    )


@pytest.mark.parametrize("number", [-1, -(2**32), 2**32, 2**32 + 5, 2**63 - 1, None])
def test_a_number_that_is_no_ticket_does_not_become_another(tmp_path, number):
    """2^32 + 5 must not be read as 5, nor -1 as the last one; alone, and among good ones."""
    for good in ([], [5], [5, 7, 0]):
        path = parquet(tmp_path / "r.parquet", report=pa.array([*good, number], pa.int64()))
        tally = read(path, TICKETS)
        assert tally.refused == {"length": 1} and tally.n == len(good)
        assert np.array_equal(
            tally.counts, TICKETS.tally([k.to_bytes(4, "little") for k in good]).counts
        )


@pytest.mark.parametrize("kind", [pa.uint32(), pa.int64()], ids=str)
def test_rows_of_a_sliced_column_of_tickets(kind):
    rows = TICKETS.perturb_many(np.arange(20) % 5)
    numbers = [int.from_bytes(row.tobytes(), "little") for row in rows]
    column = pa.array(numbers, kind)
    assert counting.report_rows(column.slice(3, 9), 4).tolist() == numbers[3:12]
    assert len(counting.report_rows(column.slice(3, 0), 4)) == 0
    with_null = pa.array([*numbers[:5], None, *numbers[6:]], kind).slice(3, 9)
    assert counting.report_rows(with_null, 4).tolist() == [*numbers[3:5], 2**32, *numbers[6:12]]


def test_tickets_as_bytes(tmp_path):
    rows = TICKETS.perturb_many(np.arange(100) % 5)
    listed = [row.tobytes() for row in rows]
    for kind in (pa.binary(4), pa.binary(), pa.large_binary()):
        path = parquet(tmp_path / "r.parquet", report=pa.array([*listed, None], kind))
        tally = read(path, TICKETS)
        assert tally.refused == {"length": 1} and tally == TICKETS.tally([*listed, b""])


def test_what_no_ticket_can_stand_in(tmp_path):
    for column in (pa.array(["5"]), pa.array([5.0]), pa.array([[5]]), pa.array([True])):
        path = parquet(tmp_path / "a.parquet", report=column)
        assert "must be an integer or binary, got" in reports_refused(path, TICKETS)


def test_no_tickets(tmp_path):
    for kind in (pa.uint32(), pa.int64(), pa.binary(4)):
        path = parquet(tmp_path / "r.parquet", report=pa.array([], kind))
        assert read(path, TICKETS).n == 0 and read(path, TICKETS).refused == {}


def test_damaged_pages_of_reports(tmp_path):
    path = tmp_path / "r.parquet"
    reports.write_reports(path, SINGLE, [SINGLE.perturb_many(np.zeros(5000, int))])
    raw = bytearray(path.read_bytes())
    raw[4:24] = b"\xff" * 20  # the page's header
    path.write_bytes(raw)
    assert "is damaged" in reports_refused(path)


def test_folders_of_reports(tmp_path):
    for name in (
        "b.parquet",
        "a.parquet",
        ".hidden.parquet",
        "_temporary.parquet",
        "_SUCCESS",
        "notes.txt",
    ):
        (tmp_path / name).touch()
    assert reports.report_files([str(tmp_path)]) == [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert reports.report_files([str(tmp_path / "x.parquet")]) == [tmp_path / "x.parquet"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no \.parquet file"):
        reports.report_files([str(tmp_path / "empty")])


def test_reports_that_stop_in_the_middle_leave_nothing(tmp_path):
    def blocks():
        yield SINGLE.perturb_many([0, 1])
        raise DataError("the answers end here")

    path = tmp_path / "r.parquet"
    path.write_text("old")
    with pytest.raises(DataError, match="end here"):
        reports.write_reports(path, SINGLE, blocks())
    assert os.listdir(tmp_path) == ["r.parquet"] and path.read_text() == "old"


# ---- counted by a database -----------------------------------------------------------------------


def many(mechanism, n=4000):
    """Reports with regions, so that there is something to group."""
    rows = mechanism.perturb_many(np.arange(n) % 5)
    return rows, np.array(["north", "south", None], object)[np.arange(n) % 3]


def table_of(mechanism, rows, regions):
    if mechanism.encoding.as_uint32:
        column = pa.array(rows.view("<u4")[:, 0], pa.uint32())
    else:
        column = pa.array([row.tobytes() for row in rows], pa.binary())
    return pa.table({"report": column, "region": pa.array(regions, pa.string())})


@pytest.mark.parametrize("mechanism", [SINGLE, TICKETS], ids=["bits", "ticket"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_duckdb_counts_where_the_data_lie(tmp_path, mechanism, ending):
    """Plain SQL groups, we decode, and it is the local tally to the last count."""
    rows, regions = many(mechanism)
    pq.write_table(table_of(mechanism, rows, regions), tmp_path / "reports.parquet")
    report = "report" if mechanism.encoding.as_uint32 or ending == "parquet" else "hex(report)"
    for by in (None, "region"):
        names = "report, region" if by else "report"
        duckdb.sql(f"""
            COPY (SELECT {report} AS report{", region" if by else ""}, count(*) AS count
                  FROM '{tmp_path}/reports.parquet' GROUP BY {names})
            TO '{tmp_path}/counted.{ending}'
        """)
        counted = counting.tally_files(
            [tmp_path / f"counted.{ending}"], mechanism, by, counted=True
        )
        plain = counting.tally_files([tmp_path / "reports.parquet"], mechanism, by)
        missing = None if ending == "parquet" else ""  # CSV has no null
        if by and ending == "csv":
            plain[missing] = plain.pop(None)
        assert counted == plain
    assert (
        mechanism.tally(rows)
        == counting.tally_files([tmp_path / "reports.parquet"], mechanism)[None]
    )


@pytest.mark.parametrize("mechanism", [SINGLE, TICKETS], ids=["bits", "ticket"])
def test_sqlite_counts_where_the_data_lie(tmp_path, mechanism):
    rows, _ = many(mechanism)
    as_stored = (
        rows.view("<u4")[:, 0].tolist() if mechanism.encoding.as_uint32 else [*map(bytes, rows)]
    )
    with closing(sqlite3.connect(tmp_path / "survey.sqlite")) as db:
        db.execute("CREATE TABLE reports (report)")
        db.executemany("INSERT INTO reports VALUES (?)", [(x,) for x in as_stored])
        counted = db.execute("SELECT report, count(*) FROM reports GROUP BY report").fetchall()
    found, counts = zip(*counted)
    assert len(found) < len(rows)
    listed = np.array(found) if mechanism.encoding.as_uint32 else list(found)
    assert mechanism.tally(listed, counts) == mechanism.tally(rows)


def test_counted_by_the_command(tmp_path):
    rows, regions = many(TICKETS)
    pq.write_table(table_of(TICKETS, rows, regions), tmp_path / "reports.parquet")
    TICKETS.save(tmp_path / "m.json")
    duckdb.sql(f"""COPY (SELECT report, count(*) AS count FROM '{tmp_path}/reports.parquet'
                   GROUP BY report) TO '{tmp_path}/counted.csv'""")
    run = CliRunner().invoke
    arguments = ["tally", str(tmp_path / "m.json"), str(tmp_path / "counted.csv"), "--counted"]
    result = run(main, [*arguments, "-o", str(tmp_path / "t.json")])
    assert result.exit_code == 0, result.output
    assert d.Tally.load(tmp_path / "t.json", TICKETS) == TICKETS.tally(rows)
    result = run(main, [*arguments, "--engine", "spark", "-o", str(tmp_path / "t.json")])
    assert result.exit_code == 2 and "already grouped" in result.output


def test_a_counted_table_is_not_taken_for_reports(tmp_path):
    path = parquet(tmp_path / "c.parquet", report=pa.array([1], pa.uint32()), count=[5])
    assert "say --counted" in reports_refused(path, TICKETS)
    assert counting.tally_files([path], TICKETS, counted=True)[None].n == 5


COUNTED = {
    "no count": ({"report": [1]}, 'no column "count"'),
    "text": ({"report": [1], "count": ["5"]}, '"count" must be an integer'),
    "null": ({"report": [1, 2], "count": pa.array([5, None], pa.int64())}, "without a number"),
    "negative": ({"report": [1, 2], "count": [5, -1]}, "from 0"),
    "no report": ({"count": [5]}, 'no column "report"'),
}


@pytest.mark.parametrize(("columns", "sentence"), COUNTED.values(), ids=COUNTED.keys())
def test_counted_tables_that_are_none(tmp_path, columns, sentence):
    path = parquet(tmp_path / "c.parquet", **columns)
    with pytest.raises(DataError, match=sentence) as caught:
        counting.tally_files([path], TICKETS, counted=True)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "report,count\n1,x\n", "report,count\nzz,1\n", "report\n1\n", "report,count\n1,-3\n"],
    ids=repr,
)
@pytest.mark.parametrize("mechanism", [SINGLE, TICKETS], ids=["bits", "ticket"])
def test_counted_csv_that_is_none(tmp_path, mechanism, text):
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        counting.tally_files([path], mechanism, counted=True)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    with pytest.raises(DataError, match="does not exist"):
        counting.tally_files([tmp_path / "none.csv"], mechanism, counted=True)


def test_row_groups_are_counted_in_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "ROW_GROUP", 64)
    rows, _ = many(TICKETS)
    path = tmp_path / "r.parquet"
    reports.write_reports(path, TICKETS, np.array_split(rows, 40))
    pieces = reports.split_file(path, TICKETS)
    assert len(pieces) > 4 and [g for p in pieces for g in p.groups] == list(range(40))
    seen = []
    for threads in (1, 4):
        found = counting.tally_files([path, path], TICKETS, advance=seen.append, threads=threads)
        assert found == {None: TICKETS.tally(np.concatenate([rows, rows]))}
    assert sum(seen) == 4 * sum(piece.size for piece in pieces)


def test_one_bad_file_among_many_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "ROW_GROUP", 64)
    rows, _ = many(TICKETS)
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for path in paths:
        reports.write_reports(path, TICKETS, np.array_split(rows, 40))
    raw = bytearray(paths[1].read_bytes())
    raw[4:24] = b"\xff" * 20  # the head of the first page
    paths[1].write_bytes(raw)
    with pytest.raises(DataError, match="is damaged") as caught:
        counting.tally_files(paths, TICKETS, threads=2)
    assert str(caught.value).startswith(str(paths[1]))


# ---- what an attack found ------------------------------------------------------------------------


def test_groups_without_a_value_lose_nobody(tmp_path):
    """NaN is no number, and equal to nothing, not even itself."""
    rows, _ = many(TICKETS, 999)
    region = np.where(np.arange(999) % 3 == 0, np.nan, np.arange(999) % 3)
    column = pa.array(rows.view("<u4")[:, 0], pa.uint32())
    path = parquet(tmp_path / "r.parquet", report=column, region=pa.array(region))
    found = counting.tally_files([path], TICKETS, "region")
    assert {key: tally.n for key, tally in found.items()} == {None: 333, 1.0: 333, 2.0: 333}


def test_few_of_many_groups_make_no_histograms(tmp_path):
    rows, _ = many(TICKETS, 600)
    column = pa.array(rows.view("<u4")[:, 0], pa.uint32())
    groups = np.arange(600) % 200
    path = parquet(tmp_path / "r.parquet", report=column, group=pa.array(groups))
    found = counting.tally_files([path], TICKETS, "group")
    assert all(found[k] == TICKETS.tally(rows[groups == k]) for k in range(200))
    groups_ = counting.TalliesByValue(TICKETS, ("group",))
    groups_.add(pq.read_table(path).to_batches()[0])
    assert not any(builder._all for builder in groups_._builders.values())


@pytest.mark.parametrize("limit", ["groups", "bytes"])
def test_a_column_of_people_makes_no_groups(tmp_path, monkeypatch, limit):
    """Every group has a tally, so they are counted before memory runs out; as many as that fit."""
    rows, _ = many(TICKETS, 600)
    column = pa.array(rows.view("<u4")[:, 0], pa.uint32())
    path = parquet(tmp_path / "r.parquet", report=column, user=pa.array(range(600)))
    if limit == "groups":
        monkeypatch.setattr(counting, "MOST_GROUPS", 599)
    else:
        monkeypatch.setattr(counting, "MOST_BYTES", 600 * counting.tally_size(TICKETS) - 1)
    with pytest.raises(DataError, match='the column "user" makes more than 599 groups, each with'):
        counting.tally_files([path], TICKETS, "user")
    with pytest.raises(DataError, match='the columns "user" and "group" make more than 599'):
        counting.check_group_count(600, TICKETS, ("user", "group"))
    monkeypatch.undo()
    assert len(counting.tally_files([path], TICKETS, "user")) == 600


ODD = {
    "count twice": "report,count,count\n5,3,3\n",
    "report twice": "report,report,count\n5,5,3\n",
    "a number for a fingerprint": "report,count,fingerprint\n5,2,1\n",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_tables_are_a_sentence_or_refused(tmp_path, text):
    path = tmp_path / "c.csv"
    path.write_text(text)
    if "fingerprint" in text:
        assert counting.tally_files([path], TICKETS, counted=True)[None].refused == {
            "fingerprint": 2
        }
        return
    with pytest.raises(DataError, match="keep one"):
        counting.tally_files([path], TICKETS, counted=True)


def test_counts_of_several_files_do_not_overflow(tmp_path):
    one = {"report": pa.array([5], pa.uint32()), "count": [2**62 - 1000]}
    paths = [parquet(tmp_path / f"{k}.parquet", **one) for k in range(3)]
    assert counting.tally_files(paths[:1], TICKETS, counted=True)[None].n == 2**62 - 1000
    with pytest.raises(DataError, match="more reports than can be counted"):
        counting.tally_files(paths, TICKETS, counted=True)


def test_groups_of_several_columns_are_crossed(tmp_path):
    """Every combination for itself, what has no value among them; and together all."""
    rows = SINGLE.perturb_many([k % SINGLE.m for k in range(600)])
    region = [("north", "south", None)[k % 3] for k in range(600)]
    age = [(30.0, math.nan)[k % 2] for k in range(600)]
    kept = pa.table({"region": region, "age": pa.array(age, from_pandas=False)})
    reports.write_reports(tmp_path / "r.parquet", SINGLE, [(rows, kept)])
    paths = [tmp_path / "r.parquet"]
    found = counting.tally_files(paths, SINGLE, ["region", "age"])
    known = {(r, None if a != a else a) for r, a in zip(region, age)}
    assert found.keys() == known and len(known) == 6
    for group, tally in found.items():
        mine = [k for k in range(600) if (region[k], None if age[k] != age[k] else 30.0) == group]
        assert tally == SINGLE.tally(rows[mine])
    by_region = counting.tally_files(paths, SINGLE, "region")
    assert by_region == counting.tally_files(paths, SINGLE, ["region"])
    assert sum(found.values(), d.Tally.empty(SINGLE)) == SINGLE.tally(rows)
    with pytest.raises(DataError, match='has no column "town"'):
        counting.tally_files(paths, SINGLE, ["region", "town"])
