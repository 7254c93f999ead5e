"""Tally and perturb on Apache Spark (extra `spark`; PySpark 4, Java 17 or newer).

Arrow batches go through `mapInArrow` to the same functions as on one machine. Every partition sends
one partial tally per group. The partial tallies merge in a tree, so the driver holds O(m), and a
worker one batch and one tally.

`perturb` is for a pipeline on the participants' side of the trust boundary: whoever runs it sees
the answers. Every task draws new randomness, so a repeated task makes *new* reports of the same
answers. Spark keeps the output of one attempt only, but two actions on the same DataFrame perturb
twice. So write the reports once, and read them from there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from discreet.arrays.grouped_tallies import add_by_group
from discreet.arrays.tally import Tally
from discreet.data.counting import Tallies, TalliesByValue, as_columns, check_group_count
from discreet.data.engines import spark_workers
from discreet.data.reports import By, Piece, check_with_columns, report_files, split_file
from discreet.data.survey_answers import column_names
from discreet.data.surveys import question_files
from discreet.errors import DataError, DiscreetError, MissingExtra
from discreet.mechanism import Mechanism
from discreet.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")
_FAN_IN = 16  # partial tallies merged by one task
_TASKS = 4  # tasks per core over the row groups of files
_JAVA = 17


def session(master: str | None = None, name: str = "discreet") -> SparkSession:
    """The active session, or a new one whose workers run the Python of this environment. All other
    settings are yours.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("the Spark engine", "spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if not (master or "").startswith("sc://"):
        _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if (master or "").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    if "SPARK_HOME" not in os.environ and not os.environ.get("SPARK_CONF_DIR"):
        builder = builder.config("spark.ui.enabled", "false").config(
            "spark.ui.showConsoleProgress", "false"
        )
    return builder.getOrCreate()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        raise DiscreetError(
            f"the Spark engine needs Java {_JAVA} or newer, and none was found; install one or "
            "set JAVA_HOME"
        )
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if not version or int(version[1]) < _JAVA:
        raise DiscreetError(
            f"the Spark engine needs Java {_JAVA} or newer, {java} says "
            f"{text.splitlines()[0] if text else 'nothing'}"
        )


@overload
def tally(
    dataframe: DataFrame, mechanism: Mechanism, column: str = ..., by: None = None
) -> Tally: ...
@overload
def tally(
    dataframe: DataFrame, mechanism: Mechanism, column: str = ..., *, by: str | Iterable[str]
) -> Tallies: ...
def tally(
    dataframe: DataFrame,
    mechanism: Mechanism,
    column: str = "report",
    by: str | Iterable[str] | None = None,
) -> Tally | Tallies:
    """Tally a column of reports. With `by`, get a dictionary of tallies in one job: one per value
    of that column, or per tuple of values of several.

    If there is a column `fingerprint`, rows that name another mechanism are refused and counted.
    """
    columns = as_columns(by)
    _check_columns(dataframe, (column, *columns))
    tallies = _run(lambda: _tally_column(dataframe, mechanism, column, columns), "the reports")
    return tallies if columns else tallies[None]


def _check_columns(dataframe: DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if name not in dataframe.columns:
            raise DataError(
                f'the data have no column "{name}"; they have {", ".join(dataframe.columns)}'
            )


def _tally_column(dataframe: DataFrame, mechanism: Mechanism, column: str, by: By) -> Tallies:
    wanted = dict.fromkeys((column, *by, "fingerprint"))
    names = [name for name in wanted if name in dataframe.columns]
    if mechanism.encoding.as_uint32 and not _worker_python(dataframe.sparkSession)["there"]:
        return _group_tickets(dataframe, mechanism, column, by, names)
    _check_workers(dataframe.sparkSession)
    partial = dataframe.select(*names).mapInArrow(
        spark_workers.count_reports(mechanism, column, by), spark_workers.PARTIAL_TALLIES
    )
    return _merge(partial, mechanism, dataframe.rdd.getNumPartitions(), by)


def _group_tickets(
    dataframe: DataFrame, mechanism: Mechanism, column: str, by: By, names: list[str]
) -> Tallies:
    """Count tickets where the workers have no discreet. Tickets are numbers, so Spark's own engine
    groups them, and each distinct ticket is decoded once, here.
    """
    from pyspark.sql import functions

    count = functions.count(functions.lit(1)).alias("discreet_count")
    groups = TalliesByValue(mechanism, by)
    for batch in dataframe.groupBy(*names).agg(count).toArrow().to_batches():
        groups.add(batch, column, counts="discreet_count")
    return groups.tallies()


def _merge(partial: DataFrame, mechanism: Mechanism, width: int, by: By) -> Tallies:
    """Add up the partial tallies of `width` partitions, in a tree until only a few are left."""
    while width > _FAN_IN:
        width = -(-width // _FAN_IN)
        partial = partial.repartition(width).mapInArrow(
            spark_workers.merge_tallies(mechanism, by), spark_workers.PARTIAL_TALLIES
        )
    tallies = TalliesByValue(mechanism, by).tallies()
    for row in partial.collect():
        group = spark_workers.parse_group(row["key"])
        add_by_group(tallies, {group: Tally.from_bytes(bytes(row["tally"]), mechanism)})
        check_group_count(len(tallies), mechanism, by)
    return tallies


def perturb(
    dataframe: DataFrame,
    mechanism: Mechanism,
    column: str = "item",
    with_columns: Iterable[str] = (),
    indices: bool = False,
) -> DataFrame:
    """Make a DataFrame of reports, with the fingerprint of their mechanism and the columns in
    `with_columns`, never the answers. Items are labels, even if they are whole numbers, unless you
    set `indices`.
    """
    others = check_with_columns(with_columns, column)
    _check_columns(dataframe, (column, *others))
    _check_workers(dataframe.sparkSession)
    fields = [field for field in dataframe.schema.fields if field.name in others]
    order = [field.name for field in fields]
    types = "".join(f"`{field.name}` {field.dataType.simpleString()}, " for field in fields)
    kind = "bigint" if mechanism.encoding.as_uint32 else "binary"  # Spark has no unsigned integers
    return dataframe.select(column, *order).mapInArrow(
        spark_workers.perturb_answers(mechanism, order, indices),
        f"{types}report {kind}, fingerprint string",
    )


# ---- files ---------------------------------------------------------------------------------------


def tally_files(
    paths: list[str],
    mechanism: Mechanism,
    by: str | Iterable[str] | None = None,
    master: str | None = None,
) -> Tallies:
    """Tally files or folders of Parquet, or URLs that Spark can read: one tally per value of `by`;
    under None without `by`.

    If the files are on a file system that the workers share, the workers read them row group by row
    group: Spark only hands out the work, and the reports never pass through the JVM. Spark's own
    reader reads everything else.
    """
    what, pieces, columns = ", ".join(paths), None, as_columns(by)
    if all(os.path.exists(path) for path in paths):
        pieces = _split_files(paths, mechanism, columns)
    if pieces is None:
        return _run(lambda: _read_by_spark(session(master), paths, mechanism, columns), what)
    return _run(lambda: _tally_pieces(session(master), pieces, mechanism, columns), what)


def _read_by_spark(spark: SparkSession, paths: list[str], mechanism: Mechanism, by: By) -> Tallies:
    dataframe = spark.read.parquet(*paths)
    _check_columns(dataframe, ("report", *by))
    return _tally_column(dataframe, mechanism, "report", by)


def _split_files(paths: list[str], mechanism: Mechanism, by: By) -> list[Piece] | None:
    """The row groups of these files. None if only Spark can read them, because `by` is the name of
    a folder (region=north/).
    """
    listed = []
    for path in report_files(paths):
        try:
            pieces = split_file(path.absolute(), mechanism, by)
        except DataError:
            if not by:
                raise
            return None
        listed += [piece._replace(metadata=None) for piece in pieces]
    return listed


def _tally_pieces(
    spark: SparkSession, pieces: list[Piece], mechanism: Mechanism, by: By
) -> Tallies:
    if not pieces:
        return TalliesByValue(mechanism, by).tallies()
    _check_workers(spark)
    width = min(len(pieces), _TASKS * spark.sparkContext.defaultParallelism)
    partial = spark.range(0, len(pieces), 1, width).mapInArrow(
        spark_workers.count_pieces(mechanism, pieces, by), spark_workers.PARTIAL_TALLIES
    )
    return _merge(partial, mechanism, width, by)


def perturb_files(
    path: str,
    mechanism: Mechanism,
    output: str,
    column: str = "item",
    master: str | None = None,
    with_columns: Iterable[str] = (),
    indices: bool = False,
) -> int:
    """Perturb a folder of Parquet into a new folder of Parquet, in one action, and return the
    number of reports.
    """

    def write() -> int:
        spark = session(master)
        reports = perturb(spark.read.parquet(path), mechanism, column, with_columns, indices)
        reports.write.mode("errorifexists").parquet(output)
        return spark.read.parquet(output).count()

    return _run(write, path)


def perturb_survey(dataframe: DataFrame, survey: Survey) -> DataFrame:
    """Draw the questions of every person, and make a DataFrame of their reports: the file name of
    the question, the public answers, the report, the fingerprint of its mechanism. The data have a
    column per question. One action draws once: write the reports, and read them from there.
    """
    names = column_names(survey)
    _check_columns(dataframe, names)
    _check_workers(dataframe.sparkSession)
    openly = "".join(f"`{public.name}` string, " for public in survey.public)
    return dataframe.select(*(f"`{name}`" for name in names)).mapInArrow(
        spark_workers.perturb_people(survey),
        f"question string, {openly}report binary, fingerprint string",
    )


def perturb_survey_files(
    path: str, survey: Survey, output: str, master: str | None = None
) -> dict[str, int]:
    """Perturb a folder of Parquet with the answers to a survey into a new folder, which has a
    folder of Parquet per question, in one action. Returns how many reports each question has.
    """

    def write() -> dict[str, int]:
        spark = session(master)
        reports = perturb_survey(spark.read.parquet(path), survey)
        reports.write.mode("errorifexists").partitionBy("question").parquet(output)
        counted = {
            row["question"]: row["count"]
            for row in spark.read.parquet(output).groupBy("question").count().collect()
        }
        files = question_files(survey.questions)
        return {name: counted.get(file, 0) for name, file in files.items()}

    return _run(write, path)


def _check_workers(spark: SparkSession) -> None:
    """Say so in one sentence if the Python of the workers cannot import discreet."""
    worker = _worker_python(spark)
    if not worker["there"]:
        raise DiscreetError(
            f"the Python of Spark's workers, {worker['python']}, has no discreet; install it "
            "there, or name one that has it in PYSPARK_PYTHON before the session is made"
        )


def _worker_python(spark: SparkSession) -> dict[str, Any]:
    """Which Python the workers run, and whether discreet is there. Each application is asked
    once.
    """

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib.util  # the worker may lack discreet, so nothing of this module is used
        import sys

        import pyarrow as pa

        for _ in batches:
            there = importlib.util.find_spec("discreet") is not None
            yield pa.RecordBatch.from_pydict({"there": [there], "python": [sys.executable]})

    key = spark.sparkContext.applicationId
    if key not in _WORKERS:
        (row,) = spark.range(0, 1, 1, 1).mapInArrow(look, "there boolean, python string").collect()
        _WORKERS[key] = row.asDict()
    return _WORKERS[key]


_WORKERS: dict[str, dict[str, Any]] = {}  # by application


def _run(work: Callable[[], _T], what: str) -> _T:
    """Turn an error of Spark into one sentence: a worker's own, or the first line."""
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
    except ImportError:
        raise MissingExtra("the Spark engine", "spark") from None

    try:
        return work()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        own = re.search(r"discreet\.errors\.\w+: (.*)", text)
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        raise DataError(f"{what}: {own[1].strip() if own else first.strip()[:200]}") from None
