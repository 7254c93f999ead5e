"""Real Spark, local[2], started once: the same counts as the local engine, to the last one."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from checks import assert_bernoulli, must_fail
from click.testing import CliRunner
from collecting import REGION
from policies import three_levels
from test_survey_answers import CLEAR, people, sample

import discreet as d
from discreet.arrays.tally import Tally
from discreet.cli import main
from discreet.data import counting
from discreet.errors import DataError, DiscreetError

pytest.importorskip("pyspark", reason="pyspark is not installed; the Spark tests are skipped")
if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
    pytest.skip("there is no Java; the Spark tests are skipped", allow_module_level=True)
pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

from discreet.data.engines import spark as engine  # noqa: E402

SINGLE = three_levels(1.0, sizes=(3, 4, 30))
SETS = three_levels(1.0, sizes=(3, 4, 30), kind="set")
MAKERS = {  # called when a test needs them: only one worker runs these tests, all collect them
    "bits": lambda: d.design(SINGLE, "opt0"),
    "fixed": lambda: d.design(SINGLE),
    "ticket": lambda: d.design(SINGLE, encoding="ticket"),
    "grr": lambda: d.design(SINGLE, "grr"),
    "sets, fixed": lambda: d.design(SETS, "subset", padding=2),
    "sets, hits": lambda: d.design(SETS, padding=3),
    "sets, each": lambda: d.design(three_levels(1.0, sizes=(3, 4, 30), kind="each")),
    "sets, ticket": lambda: d.design(SETS, "opt0", padding=2, encoding="ticket"),
    "sets, picks": lambda: d.design(
        three_levels(1.0, sizes=(3, 4, 9), kind="set"), "subset", padding=2
    ),
    "one-way": lambda: d.design(
        d.Policy.from_levels(
            [("high", 1, ["a", "b"]), ("open", None, ["c", "d", "e"])],
            notion="one-way",
            open=["open"],
        )
    ),
    "scale": lambda: d.design(d.Policy.from_scale(["none", "some", "much", "all"], 1)),
    "blocks": lambda: d.design(
        d.Policy.from_levels([("x", 1, ["a", "b", "c"]), ("y", 2, ["d", "e"])], blocks=True)
    ),
}
every = pytest.mark.parametrize("name", MAKERS)


@cache
def made_of(name):
    mechanism = MAKERS[name]()
    assert name not in ("fixed", "ticket", "sets, fixed") or len(mechanism.parts) > 1
    return mechanism


@cache
def long():
    """No two of its reports are the same."""
    return d.design(three_levels(1.0, sizes=(30, 40, 130)), "opt0")


@pytest.fixture(scope="module")
def spark():
    found = engine.session("local[2]", "discreet-tests")
    found.sparkContext.setLogLevel("OFF")
    found.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "700")
    yield found
    found.stop()


def answers(mechanism, n, seed=1):
    rng = np.random.default_rng(seed)
    if not mechanism.policy.kind.lists:
        return rng.integers(0, mechanism.m, n)
    return [
        set(rng.choice(mechanism.m, rng.integers(0, 5), replace=False).tolist()) for _ in range(n)
    ]


def number(report):
    return int.from_bytes(bytes(report), "little")


def frame(spark, reports, **columns):
    rows = [bytes(r) if r is not None else None for r in reports]
    return spark.createDataFrame(pa.table({"report": pa.array(rows, pa.binary()), **columns}))


@every
def test_the_same_counts_as_locally(spark, name):
    mechanism = made_of(name)
    reports = mechanism.perturb_many(answers(mechanism, 5000))
    local = mechanism.tally(reports)
    data = frame(spark, reports)
    for partitions in (1, 3, 40) if name == "fixed" else (1, 3):  # 40 merge in a tree
        assert engine.tally(data.repartition(partitions), mechanism) == local


def test_skewed_and_empty_partitions(spark):
    mechanism = made_of("ticket")
    reports = mechanism.perturb_many(answers(mechanism, 3000))
    keys = pa.array([0] * 2900 + [1] * 100)
    data = frame(spark, reports, k=keys).repartition(8, "k")  # two partitions hold all rows
    assert engine.tally(data, mechanism) == mechanism.tally(reports)
    assert engine.tally(data.where("k = 7"), mechanism) == Tally.empty(mechanism)


@pytest.mark.parametrize("name", ["ticket", "fixed", "bits"])
def test_bad_rows_are_counted_by_reason_as_locally(spark, name):
    mechanism = made_of(name)
    good = [bytes(r) for r in mechanism.perturb_many(answers(mechanism, 50))]
    one = good[0]
    bad = {
        "ticket": {"ticket": b"\xff" * 4},
        "fixed": {
            "part": b"\xc8" + one[1:],
            "tail": one[:-1] + b"\x80",
            "size": one[:1] + b"\xff" * 4 + b"\x1f",
        },
        "bits": {"tail": one[:-1] + b"\x20"},
    }[name]
    rows = [*good, None, b"", one[:-1], *bad.values()]
    found = engine.tally(frame(spark, rows), mechanism)
    assert found == mechanism.tally([b"" if r is None else r for r in rows])
    assert found.n == 50 and dict(found.refused) == {"length": 3} | dict.fromkeys(bad, 1)
    marks = pa.array([mechanism.fingerprint] * 48 + ["0" * 64, None])
    assert dict(engine.tally(frame(spark, good, fingerprint=marks), mechanism).refused) == {
        "fingerprint": 2
    }


def test_tickets_are_numbers_of_64_bits_here(spark, tmp_path):
    """Ours are unsigned 32-bit integers, which Spark reads as bigint; what cannot be one is
    refused.
    """
    from discreet.data.counting import tally_files
    from discreet.data.reports import write_reports

    mechanism = made_of("ticket")
    rows = mechanism.perturb_many(answers(mechanism, 500))
    ours = tmp_path / "ours.parquet"
    write_reports(ours, mechanism, [rows])
    assert pq.read_schema(ours).field("report").type == pa.uint32()
    read = spark.read.parquet(str(ours))
    assert read.schema["report"].dataType.simpleString() == "bigint"
    local = mechanism.tally(rows)
    assert engine.tally(read, mechanism) == local
    assert engine.tally_files([str(ours)], mechanism) == {None: local}
    strange = [None, -1, -(2**40), 2**32, 2**32 + 5, 2**63 - 1, 2**32 - 1]
    column = pa.array([*map(number, rows), *strange], pa.int64())
    data = spark.createDataFrame(pa.table({"report": column}))
    found = engine.tally(data.repartition(3), mechanism)
    assert dict(found.refused) == {"length": 6, "ticket": 1} and found.n == 500
    assert np.array_equal(found.counts, local.counts)
    data.write.parquet(str(tmp_path / "theirs"))
    assert engine.tally_files([str(tmp_path / "theirs")], mechanism) == {None: found}
    assert tally_files((tmp_path / "theirs").glob("*.parquet"), mechanism) == {None: found}


@pytest.mark.parametrize("name", ["fixed", "ticket"])
def test_groups_of_several_columns_are_crossed(spark, tmp_path, name):
    """On both engines and on both ways through Spark the same."""
    from discreet.data.counting import tally_files
    from discreet.data.reports import write_reports

    mechanism = made_of(name)
    reports = mechanism.perturb_many(answers(mechanism, 600))
    region = pa.array(["north", "south", None] * 200)
    odd = pa.array([0, 1] * 300)
    kept = pa.table({"region": region, "odd": odd})
    write_reports(tmp_path / "r.parquet", mechanism, [(reports, kept)])
    by = ["region", "odd"]
    found = engine.tally_files([str(tmp_path / "r.parquet")], mechanism, by)
    places = {("north", "south", None)[k % 3]: k for k in range(3)}
    assert found == {
        (where, k % 2): mechanism.tally(
            reports[[i for i in range(600) if i % 3 == places[where] and i % 2 == k % 2]]
        )
        for where in places
        for k in range(2)
    }
    assert found == tally_files([tmp_path / "r.parquet"], mechanism, by)
    data = spark.read.parquet(str(tmp_path / "r.parquet"))
    assert found == engine.tally(data, mechanism, by=by)


def test_groups_in_one_job(spark, tmp_path):
    mechanism = made_of("fixed")
    reports = mechanism.perturb_many(answers(mechanism, 900))
    regions = ["north", "south", None] * 300
    found = engine.tally(frame(spark, reports, region=pa.array(regions)), mechanism, by="region")
    for k, region in enumerate(("north", "south", None)):
        assert found[region] == mechanism.tally(reports[k::3])
    total = found["north"] + found["south"] + found[None]
    assert total == mechanism.tally(reports)


def test_a_column_of_people_makes_no_groups(spark, monkeypatch):
    mechanism = made_of("fixed")
    data = frame(spark, mechanism.perturb_many(answers(mechanism, 90)), user=pa.array(range(90)))
    monkeypatch.setattr(counting, "MOST_GROUPS", 89)
    with pytest.raises(DataError, match='"user" makes more than 89 groups'):
        engine.tally(data, mechanism, by="user")
    monkeypatch.undo()
    assert len(engine.tally(data, mechanism, by="user")) == 90


# ---- perturb -------------------------------------------------------------------------------------


def data_of(spark, mechanism, n):
    given = answers(mechanism, n)
    labels = mechanism.policy.items
    if not mechanism.policy.kind.lists:
        column = pa.array([labels[i] for i in given])
    else:
        column = pa.array([[labels[i] for i in x] for x in given], pa.list_(pa.string()))
    return given, spark.createDataFrame(
        pa.table({"item": column, "region": pa.array(["a", "b"] * (n // 2))})
    )


@every
def test_perturbed_on_spark_and_tallied_locally(spark, name, tmp_path):
    mechanism = made_of(name)
    given, data = data_of(spark, mechanism, 4000)
    made = engine.perturb(data.repartition(5), mechanism, with_columns=["region"])
    assert made.columns == ["region", "report", "fingerprint"]
    made.write.parquet(str(tmp_path / "r"))
    stored = spark.read.parquet(str(tmp_path / "r"))
    on_spark = engine.tally(stored, mechanism)
    table = pq.read_table(tmp_path / "r")
    reports = table["report"].to_pylist()
    if mechanism.encoding.as_uint32:
        assert table.schema.field("report").type == pa.int64()
        reports = [k.to_bytes(4, "little") for k in reports]
    assert on_spark == mechanism.tally(reports) and on_spark.n == 4000
    assert on_spark.refused == {}
    assert not {"item"} & set(table.column_names)
    estimate = on_spark.estimate()
    truth = np.bincount(
        [i for x in given for i in x] if mechanism.policy.kind.lists else given,
        minlength=mechanism.m,
    )
    if mechanism.padding is None:
        # 37 items: a false alarm of 7e-8
        assert (np.abs(estimate.counts - truth) < 6 * estimate.stderr).all()


def test_the_sampler_on_spark_bit_by_bit(spark):
    """Everyone holds item 0: every bit, first and last included, has its probability; a shifted one
    must fail. 37 bits within 6 standard errors: a false alarm of 7e-8.
    """
    mechanism = made_of("bits")
    n = 40_000
    data = spark.createDataFrame(
        pa.table({"item": pa.array([mechanism.policy.items[0]] * n)})
    ).repartition(4)
    tally = engine.tally(engine.perturb(data, mechanism), mechanism)
    a, b = mechanism.a[mechanism.arrays.level_of], mechanism.b[mechanism.arrays.level_of]
    for i, count in enumerate(tally.counts[0]):
        assert_bernoulli(int(count), n, a[0] if i == 0 else b[i], z=6)
    must_fail(lambda: assert_bernoulli(int(tally.counts[0][-1]), n, b[-1] + 0.06, z=6))


def test_repetition_makes_new_reports(spark, tmp_path):
    """Two actions perturb twice, so the docs say: write once. What was written stays as it is."""
    mechanism = long()
    _, data = data_of(spark, mechanism, 200)
    made = engine.perturb(data, mechanism)
    first, second = ([bytes(row["report"]) for row in made.collect()] for _ in range(2))
    assert not set(first) & set(second)  # 200 random bits: nothing correlated, nothing reused
    made.write.parquet(str(tmp_path / "r"))
    twice = [
        sorted(bytes(row["report"]) for row in spark.read.parquet(str(tmp_path / "r")).collect())
        for _ in range(2)
    ]
    assert twice[0] == twice[1] and len(twice[0]) == 200


@pytest.mark.slow
def test_a_task_that_fails_and_is_retried(tmp_path):
    """local[2,3] retries: the first attempt of a partition perturbs some rows and dies; the output
    has every person once.
    """
    script = tmp_path / "retry.py"
    script.write_text(
        "import sys, os\n"
        "import pyarrow as pa\n"
        "import discreet as d\n"
        "from discreet.data.engines import spark as engine\n"
        "m = d.Survey.load(sys.argv[1]).mechanism\n"
        "spark = engine.session('local[2,3]')\n"
        "spark.sparkContext.setLogLevel('OFF')\n"
        "spark.conf.set('spark.sql.execution.arrow.maxRecordsPerBatch', '100')\n"
        "items = pa.array([m.policy.items[0]] * 1000)\n"
        "data = spark.createDataFrame(pa.table({'item': items})).repartition(2)\n"
        "flag = sys.argv[2]\n"
        "def flaky(batches):\n"
        "    for k, batch in enumerate(batches):\n"
        "        yield batch\n"
        "        if k == 2 and not os.path.exists(flag):\n"
        "            open(flag, 'w').close()\n"
        "            raise RuntimeError('made to fail')\n"
        "made = engine.perturb(data, m).mapInArrow(flaky, 'report binary, fingerprint string')\n"
        "made.write.parquet(sys.argv[3])\n"
        "print('rows', engine.tally(spark.read.parquet(sys.argv[3]), m).n)\n"
        "spark.stop()\n"
    )
    long().save(tmp_path / "m.json")
    done = subprocess.run(
        [
            sys.executable,
            str(script),
            str(tmp_path / "m.json"),
            str(tmp_path / "flag"),
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "flag").exists() and "rows 1000" in done.stdout
    reports = pq.read_table(tmp_path / "out")["report"].to_pylist()
    assert len(set(reports)) == 1000  # nothing was sent twice


def test_tickets_of_folders_within_folders_and_files_of_two_shapes(spark, tmp_path):
    """Spark alone would not look into folders, and would take one file's columns for all."""
    from discreet.data.counting import tally_files
    from discreet.data.reports import report_files, write_reports

    mechanism, other = made_of("ticket"), made_of("sets, ticket")
    (tmp_path / "r" / "monday").mkdir(parents=True)
    write_reports(
        tmp_path / "r" / "a.parquet", mechanism, [mechanism.perturb_many(answers(mechanism, 300))]
    )
    rows = mechanism.perturb_many(answers(mechanism, 70))
    marks = np.where(np.arange(70) < 50, mechanism.fingerprint, other.fingerprint)
    numbers = pa.array(rows.view("<u4")[:, 0].astype("int64"))
    pq.write_table(
        pa.table({"report": numbers, "fingerprint": pa.array(marks.tolist())}),
        tmp_path / "r" / "monday" / "b.parquet",
    )
    expected = tally_files(report_files([str(tmp_path / "r")]), mechanism)
    assert expected[None].n == 350 and expected[None].refused == {"fingerprint": 20}
    assert engine.tally_files([str(tmp_path / "r")], mechanism) == expected


def test_workers_without_discreet_get_one_sentence_and_tickets_do_not_need_it(
    spark, tmp_path, monkeypatch
):
    """A Python of workers that has pyarrow but not discreet, as PYSPARK_PYTHON may name one."""
    packages = Path(pa.__file__).parent.parent
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    monkeypatch.setattr(engine, "_WORKERS", {})
    tickets, bits = made_of("ticket"), made_of("bits")
    rows = tickets.perturb_many([0, 1, 2] * 100)
    numbers = spark.createDataFrame(pa.table({"report": rows.view("<u4")[:, 0].astype("int64")}))
    assert engine.tally(numbers, tickets) == tickets.tally(rows)
    data = frame(spark, bits.perturb_many([0, 1, 2] * 100))
    for work in (lambda: engine.tally(data, bits), lambda: engine.perturb(data, bits, "report")):
        with pytest.raises(DiscreetError, match=f"workers, {sys.executable}, has no discreet"):
            work()


# ---- commands and bad input ----------------------------------------------------------------------


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_commands_on_both_engines(spark, tmp_path):
    mechanism = made_of("ticket")
    mechanism.save(tmp_path / "m.json")
    given = answers(mechanism, 600)
    labels = pa.array([mechanism.policy.items[i] for i in given])
    (tmp_path / "a").mkdir()
    pq.write_table(pa.table({"item": labels[:400]}), tmp_path / "a" / "1.parquet")
    pq.write_table(pa.table({"item": labels[400:]}), tmp_path / "a" / "2.parquet")
    output = run(
        "perturb", tmp_path / "m.json", tmp_path / "a", "-o", tmp_path / "r", "--engine", "spark"
    )
    assert "600 reports" in output
    for name in ("spark", "local"):
        run(
            "tally",
            tmp_path / "m.json",
            tmp_path / "r",
            "-o",
            tmp_path / f"{name}.json",
            "--engine",
            name,
        )
    assert json.loads((tmp_path / "spark.json").read_text()) == json.loads(
        (tmp_path / "local.json").read_text()
    )
    reports = pq.read_table(tmp_path / "r").append_column("region", pa.array(["x y", "z"] * 300))
    pq.write_table(
        reports.replace_schema_metadata(None), tmp_path / "g.parquet"
    )  # or Spark believes its own old schema
    for name in ("spark", "local"):
        facts = json.loads(
            run(
                "tally",
                tmp_path / "m.json",
                tmp_path / "g.parquet",
                "--by",
                "region",
                "-o",
                tmp_path / f"by-{name}",
                "--engine",
                name,
                "--json",
            )
        )
        assert facts["groups"] == {"x y": 300, "z": 300}
    for file in ("x_y.json", "z.json"):
        assert (tmp_path / "by-spark" / file).read_text() == (
            tmp_path / "by-local" / file
        ).read_text()
    assert "error: " in run(
        "perturb",
        tmp_path / "m.json",
        tmp_path / "a",
        "-o",
        tmp_path / "r",
        "--engine",
        "spark",
        code=2,
    )
    towns = ("tally", tmp_path / "m.json", tmp_path / "g.parquet", "--by", "town")
    for engine_ in ((), ("--engine", "spark")):
        run(*towns, "-o", tmp_path / "t", *engine_, code=2)


def test_files_of_many_row_groups_with_bad_rows_and_unfinished_parts(spark, tmp_path):
    """The workers read the files themselves: every row group once, subfolders too, and nothing a
    writer has not finished.
    """
    mechanism = made_of("fixed")
    reports = [bytes(r) for r in mechanism.perturb_many(answers(mechanism, 900))] + [
        b"",
        b"short",
        None,
    ]
    mark = {"discreet.fingerprint": mechanism.fingerprint}
    for place, rows in (
        ("a.parquet", reports[:500]),
        ("sub/b.parquet", reports[500:]),
        ("_temporary/c.parquet", reports[:7]),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        table = pa.table({"report": pa.array(rows, pa.binary())}).replace_schema_metadata(mark)
        pq.write_table(table, tmp_path / place, row_group_size=37)
    found = engine.tally_files([str(tmp_path)], mechanism)[None]
    assert found == mechanism.tally([r or b"" for r in reports])
    assert found.n == 900 and found.refused == {"length": 3}


@pytest.mark.parametrize("kind", [pa.binary(), pa.int64(), pa.uint32()], ids=str)
def test_groups_that_are_folders_go_through_spark(spark, tmp_path, kind):
    mechanism = made_of("ticket")
    reports = mechanism.perturb_many(answers(mechanism, 300))
    for k, region in enumerate(("north", "south")):
        (tmp_path / f"region={region}").mkdir()
        rows = pa.array(
            [(bytes if kind == pa.binary() else number)(r) for r in reports[k::2]], kind
        )
        pq.write_table(pa.table({"report": rows}), tmp_path / f"region={region}" / "x.parquet")
    found = engine.tally_files([str(tmp_path)], mechanism, by="region")
    assert found == {
        "north": mechanism.tally(reports[::2]),
        "south": mechanism.tally(reports[1::2]),
    }


def test_corrupt_and_strange_files(spark, tmp_path):
    mechanism, other = made_of("ticket"), made_of("bits")
    mechanism.save(tmp_path / "m.json")
    from discreet.data.reports import write_reports

    write_reports(tmp_path / "other.parquet", other, [other.perturb_many([0, 1])])
    text = run(
        "tally",
        tmp_path / "m.json",
        tmp_path / "other.parquet",
        "-o",
        tmp_path / "t.json",
        "--engine",
        "spark",
        code=2,
    )
    assert "another mechanism" in text
    write_reports(tmp_path / "cut.parquet", mechanism, [mechanism.perturb_many([0] * 500)])
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-20])
    text = run(
        "tally",
        tmp_path / "m.json",
        tmp_path / "cut.parquet",
        "-o",
        tmp_path / "t.json",
        "--engine",
        "spark",
        code=2,
    )
    assert text.count("\n") == 1 and "Traceback" not in text and not (tmp_path / "t.json").exists()
    pq.write_table(pa.table({"item": pa.array(["nobody"])}), tmp_path / "a.parquet")
    text = run(
        "perturb",
        tmp_path / "m.json",
        tmp_path / "a.parquet",
        "-o",
        tmp_path / "r",
        "--engine",
        "spark",
        code=2,
    )
    assert '"nobody" is not an item' in text and text.count("\n") == 1


def test_integers_on_spark_are_labels_and_indices_by_name(spark, tmp_path):
    """As in every other file of answers, and the columns to keep with them."""
    mechanism = d.design(d.Policy.from_levels([("all", 2, ["1", "2", "3"])]), "opt0")
    mechanism.save(tmp_path / "m.json")
    table = pa.table({"item": np.repeat([1, 2], [3000, 1000]), "region": ["a", "b"] * 2000})
    pq.write_table(table, tmp_path / "a.parquet")
    command = ("perturb", tmp_path / "m.json", tmp_path / "a.parquet", "--engine", "spark")
    for name, more, expected in (("labels", [], 0), ("indices", ["--indices"], 1)):
        run(*command, "-o", tmp_path / name, "--with-column", "region", *more)
        groups = engine.tally(spark.read.parquet(str(tmp_path / name)), mechanism, by="region")
        assert {key: tally.n for key, tally in groups.items()} == {"a": 2000, "b": 2000}
        estimate = sum(groups.values(), d.Tally.empty(mechanism)).estimate()
        truth = np.roll([3000, 1000, 0], expected)
        assert (np.abs(estimate.counts - truth) <= 7 * estimate.stderr).all()  # 10^-11 each
    _, words = data_of(spark, made_of("ticket"), 10)
    numbers = words.selectExpr("1 AS item")
    with pytest.raises(Exception, match="no label of the policy is one; if they are indices"):
        engine.perturb(numbers, made_of("ticket")).count()


def test_a_survey_is_drawn_and_perturbed_on_the_workers(spark, tmp_path):
    """With budgets at which a report is the answer: everybody answers two of four questions, drawn
    uniformly; answers, public ones and files belong together; both engines count the same.
    """
    made, table, n = sample(answers=2, eps=4 * CLEAR), people(6000), 6000
    made.save(tmp_path / "s.json")
    (tmp_path / "in").mkdir()
    for k in range(3):
        pq.write_table(table.slice(2000 * k, 2000), tmp_path / "in" / f"{k}.parquet")
    s, out = str(tmp_path / "s.json"), str(tmp_path / "out")
    command = ["perturb", s, str(tmp_path / "in"), "-o", out, "--engine", "spark", "--json"]
    told = CliRunner().invoke(main, [*command, "--master", "local[2]"], catch_exceptions=False)
    counts = json.loads(told.stdout)["reports"]
    assert list(counts) == list(made.questions) and sum(counts.values()) == 2 * n
    for count in counts.values():
        assert_bernoulli(count, n, 2 / 4)
    must_fail(assert_bernoulli, counts["age"], n, 1 / 4)
    rows = {row: table.filter(pc.equal(table["region"], row)) for row in REGION["items"]}
    for name, column in (("age", "young"), ("ill", "HIV")):
        for engine_name in ("local", "spark"):
            to = str(tmp_path / f"{name}-{engine_name}")
            more = ["--engine", engine_name, "--master", "local[2]", "--by", "region"]
            command = ["tally", s, out, "--question", name, "-o", to, *more]
            told = CliRunner().invoke(main, command, catch_exceptions=False)
            assert told.exit_code == 0, told.output
        for region, mine in rows.items():
            local, other = (
                d.Tally.load(tmp_path / f"{name}-{x}" / f"{region}.json", made.questions[name])
                for x in ("local", "spark")
            )
            assert local == other and local.n <= len(mine)
            assert_bernoulli(local.n, len(mine), 2 / 4)
            held = pc.sum(pc.equal(mine[name], column)).as_py()
            found = local.estimate()[column]["count"]
            assert_bernoulli(round(found), held, 2 / 4)
            must_fail(assert_bernoulli, round(found), len(mine), 2 / 4)


def test_what_must_not_be_kept_and_missing_columns(spark):
    mechanism = made_of("ticket")
    _, data = data_of(spark, mechanism, 10)
    with pytest.raises(DataError, match="would store the answers"):
        engine.perturb(data, mechanism, with_columns=["item"])
    with pytest.raises(DataError, match='no column "page"'):
        engine.perturb(data, mechanism, column="page")
    with pytest.raises(DataError, match='no column "report"'):
        engine.tally(data, mechanism)


def test_it_explains_itself_without_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DiscreetError, match="needs Java 17 or newer, and none was found"):
        engine._check_java()
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin") if Path("/bin/sh").exists() else None
    with pytest.raises(DiscreetError, match=r"11\.0\.2"):
        engine._check_java()
