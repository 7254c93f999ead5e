"""Tally and perturb on Apache Spark (extra `spark`; PySpark 4, Java 17 or newer).

Arrow batches go through `mapInArrow` to the same functions as locally. Every partition sends one
partial tally per group; they merge in a tree, so that the driver holds O(m) and a worker one batch
and one tally.

`perturb` is for a pipeline on the participants' side of the trust boundary: whoever runs it sees
the answers. Its randomness is drawn anew in every task, so a task that is repeated makes *new*
reports of the same answers. Spark keeps the output of one attempt only, but two actions on the same
DataFrame perturb twice: write the reports once and read them from there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.answers import lists, lookup
from discreet.errors import DataError, DiscreetError, MissingExtra
from discreet.files import parquet_file
from discreet.mechanism import Mechanism
from discreet.reports import (
    By,
    Countings,
    Piece,
    checked_keep,
    columns_of,
    pieces_of,
    read_piece,
    report_files,
)
from discreet.tally import Tally, join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FAN_IN = 16  # partial tallies merged by one task
_TASKS = 4  # tasks per core over the row groups of files
_JAVA = 17
_PARTIAL = "key string, tally binary"


def session(master: str | None = None, name: str = "discreet") -> SparkSession:
    """The active session, or a new one; workers run the Python of this environment. Everything else
    is the user's own setting.
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
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if not found or int(found[1]) < _JAVA:
        raise DiscreetError(
            f"the Spark engine needs Java {_JAVA} or newer, {java} says "
            f"{text.splitlines()[0] if text else 'nothing'}"
        )


def tally(
    dataframe: DataFrame,
    mechanism: Mechanism,
    column: str = "report",
    by: str | Iterable[str] | None = None,
) -> Any:
    """The tally of a column of reports; with `by` a dictionary of tallies, one per value of that
    column, or per tuple of values of several, in one job.

    A column `fingerprint`, where there is one, must name this mechanism; rows that name another are
    refused and counted.
    """
    columns = columns_of(by)
    for name in (column, *columns):
        if name not in dataframe.columns:
            raise DataError(
                f'the data have no column "{name}"; they have {", ".join(dataframe.columns)}'
            )
    return _run(lambda: _tallies(dataframe, mechanism, column, columns), "the reports")


def _tallies(dataframe: DataFrame, mechanism: Mechanism, column: str, by: By) -> Any:
    if mechanism.encoding.number:
        return _one_or_all(_counted(dataframe, mechanism, column, by), by)
    _check_workers(dataframe.sparkSession)
    names = [name for name in (column, *by, "fingerprint") if name in dataframe.columns]
    partial = dataframe.select(*dict.fromkeys(names)).mapInArrow(
        _counter(_text(mechanism), column, by), _PARTIAL
    )
    width = dataframe.rdd.getNumPartitions()
    return _one_or_all(_merged(partial, mechanism, width, by), by)


def _one_or_all(tallies: dict[Any, Tally], by: By) -> Any:
    return tallies if by else tallies[None]


def _counted(dataframe: DataFrame, mechanism: Mechanism, column: str, by: By) -> dict[Any, Tally]:
    """Tickets are numbers: Spark's own engine groups them, no Python runs on its workers, and the
    items come in here, once.
    """
    names = [name for name in (column, *by, "fingerprint") if name in dataframe.columns]
    from pyspark.sql import functions

    seen = functions.count(functions.lit(1)).alias("discreet_count")
    grouped = dataframe.groupBy(*dict.fromkeys(names)).agg(seen)
    groups = Countings(mechanism, by)
    for batch in grouped.toArrow().to_batches():
        groups.add(batch, column, counted="discreet_count")
    return groups.tallies()


def _merged(partial: DataFrame, mechanism: Mechanism, width: int, by: By) -> dict[Any, Tally]:
    """The sums of `width` partitions of partial tallies, merged in a tree down to a few
    per group.
    """
    while width > _FAN_IN:
        width = -(-width // _FAN_IN)
        partial = partial.repartition(width).mapInArrow(_merger(_text(mechanism)), _PARTIAL)
    tallies: dict[Any, Tally] = {} if by else {None: Tally.empty(mechanism)}
    for row in partial.collect():
        join(tallies, {_key(row["key"]): Tally.from_bytes(bytes(row["tally"]), mechanism)})
    return tallies


def perturb(
    dataframe: DataFrame,
    mechanism: Mechanism,
    column: str = "item",
    keep: Iterable[str] = (),
    indices: bool = False,
) -> DataFrame:
    """A DataFrame of reports with their mechanism's fingerprint; of the other columns only those in
    `keep`, never the answers. Items are labels, also where they are whole numbers; indices only
    where that is said.
    """
    kept = checked_keep(keep, column)
    for name in (column, *kept):
        if name not in dataframe.columns:
            raise DataError(
                f'the data have no column "{name}"; they have {", ".join(dataframe.columns)}'
            )
    _check_workers(dataframe.sparkSession)
    fields = "".join(
        f"`{field.name}` {field.dataType.simpleString()}, "
        for field in dataframe.schema.fields
        if field.name in kept
    )
    order = [field.name for field in dataframe.schema.fields if field.name in kept]
    chosen = dataframe.select(column, *order)
    kind = "bigint" if mechanism.encoding.number else "binary"  # Spark has no unsigned integers
    return chosen.mapInArrow(
        _perturber(_text(mechanism), order, indices), f"{fields}report {kind}, fingerprint string"
    )


# ---- files ---------------------------------------------------------------------------------------


def tally_files(
    paths: list[str],
    mechanism: Mechanism,
    by: str | Iterable[str] | None = None,
    master: str | None = None,
) -> dict[Any, Tally]:
    """Tallies of files or folders of Parquet, or of URLs that Spark can read; the key is None
    without `by`.

    Paths of a file system that the workers share are read by the workers themselves, row group by
    row group: Spark only hands out the work, and the reports never pass through the JVM. Anything
    else goes through Spark's own reader.
    """
    what, pieces, columns = ", ".join(paths), None, columns_of(by)
    if all(os.path.exists(path) for path in paths):
        pieces = _pieces(paths, mechanism, columns)
    if pieces is None:
        return _run(lambda: _read_by_spark(session(master), paths, mechanism, columns), what)
    if mechanism.encoding.number:
        return _run(lambda: _tickets_of(session(master), pieces, mechanism, columns), what)
    return _run(lambda: _tally_pieces(session(master), pieces, mechanism, columns), what)


def _tickets_of(
    spark: SparkSession, pieces: list[Piece], mechanism: Mechanism, by: By
) -> dict[Any, Tally]:
    """Spark takes the columns of one file for those of all: one job for the files of each shape."""
    shapes: dict[tuple[bool, str], list[str]] = {}
    for path in dict.fromkeys(str(piece.path) for piece in pieces):
        with parquet_file(path) as file:
            schema = file.schema_arrow
        shape = "fingerprint" in schema.names, str(schema.field("report").type)
        shapes.setdefault(shape, []).append(path)
    tallies: dict[Any, Tally] = {} if by else {None: Tally.empty(mechanism)}
    for paths in shapes.values():
        join(tallies, _read_by_spark(spark, paths, mechanism, by))
    return tallies


def _read_by_spark(
    spark: SparkSession, paths: list[str], mechanism: Mechanism, by: By
) -> dict[Any, Tally]:
    found = tally(spark.read.parquet(*paths), mechanism, by=by)
    return found if by else {None: found}


def _pieces(paths: list[str], mechanism: Mechanism, by: By) -> list[Piece] | None:
    """Row groups of these files; None where only Spark can read them (`by` is a folder's name:
    region=north/).
    """
    listed = []
    for path in report_files(paths):
        try:
            pieces = pieces_of(path.absolute(), mechanism, by)
        except DataError:
            if not by:
                raise
            return None
        listed += [piece._replace(metadata=None) for piece in pieces]
    return listed


def _tally_pieces(
    spark: SparkSession, pieces: list[Piece], mechanism: Mechanism, by: By
) -> dict[Any, Tally]:
    if not pieces:
        return {} if by else {None: Tally.empty(mechanism)}
    _check_workers(spark)
    width = min(len(pieces), _TASKS * spark.sparkContext.defaultParallelism)
    places = spark.range(0, len(pieces), 1, width)
    partial = places.mapInArrow(_reader(_text(mechanism), pieces, by), _PARTIAL)
    return _merged(partial, mechanism, width, by)


def perturb_files(
    path: str,
    mechanism: Mechanism,
    output: str,
    column: str = "item",
    master: str | None = None,
    keep: Iterable[str] = (),
    indices: bool = False,
) -> int:
    """Perturb a folder of Parquet into a new folder of Parquet, in one action; returns the number
    of reports.
    """

    def write() -> int:
        spark = session(master)
        made = perturb(spark.read.parquet(path), mechanism, column, keep, indices)
        made.write.mode("errorifexists").parquet(output)
        return spark.read.parquet(output).count()

    return int(_run(write, path))


def _check_workers(spark: SparkSession) -> None:
    """One clear sentence if the Python of the workers cannot import discreet."""

    def look(batches: Iterable[Any]) -> Iterator[Any]:  # nothing of this module is used in here
        import importlib.util
        import sys

        import pyarrow as pa

        for _ in batches:
            there = importlib.util.find_spec("discreet") is not None
            yield pa.RecordBatch.from_pydict({"there": [there], "python": [sys.executable]})

    key = spark.sparkContext.applicationId
    if key not in _CHECKED:
        (row,) = spark.range(0, 1, 1, 1).mapInArrow(look, "there boolean, python string").collect()
        if not row["there"]:
            raise DiscreetError(
                f"the Python of Spark's workers, {row['python']}, has no discreet; install it "
                "there, or name one that has it in PYSPARK_PYTHON before the session is made"
            )
        _CHECKED.add(key)


_CHECKED: set[str] = set()  # applications whose workers have discreet


def _run(work: Callable[[], Any], what: str) -> Any:
    """Spark's errors as one sentence: what failed on a worker, or what Spark says first."""
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


# ---- what runs on the workers --------------------------------------------------------------------


def _counter(text: str, column: str, by: By) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        groups = Countings(_mechanism(text), by)
        for batch in batches:
            groups.add(batch, column)
        yield from _rows(groups.tallies(threads=1))

    return run


def _reader(text: str, pieces: list[Piece], by: By) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        mechanism = _mechanism(text)
        groups = Countings(mechanism, by)
        for place in (k for batch in batches for k in batch.column("id").to_pylist()):
            for batch in read_piece(pieces[place], mechanism, by):
                groups.add(batch)
        yield from _rows(groups.tallies(threads=1))

    return run


def _merger(text: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        mechanism, found = _mechanism(text), {}  # type: tuple[Mechanism, dict[Any, Tally]]
        for batch in batches:
            for key, raw in zip(
                batch.column("key").to_pylist(), batch.column("tally").to_pylist(), strict=True
            ):
                join(found, {_key(key): Tally.from_bytes(raw, mechanism)})
        yield from _rows(found)

    return run


def _perturber(
    text: str, keep: list[str], indices: bool
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        mechanism = _mechanism(text)
        for batch in batches:
            read = lists if mechanism.policy.takes_sets else lookup
            answers = read(mechanism, batch.column(0), indices)
            reports = mechanism.perturb_many(answers, threads=1, indices=True)
            if mechanism.encoding.number:
                column = pa.array(reports.view("<u4")[:, 0].astype("int64"))
            else:
                column = pa.array(map(bytes, reports), pa.binary(), size=len(reports))
            mark = pa.array([mechanism.fingerprint] * len(reports), pa.string())
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(name) for name in keep), column, mark],
                [*keep, "report", "fingerprint"],
            )

    return run


def _text(mechanism: Mechanism) -> str:
    return json.dumps(mechanism.to_document())


@lru_cache(maxsize=4)
def _mechanism(text: str) -> Mechanism:
    """Checked once per worker, like any other mechanism."""
    return Mechanism.from_document(json.loads(text))


def _key(text: str) -> Any:
    """A group as `_rows` wrote it: JSON has no tuples."""
    found = json.loads(text)
    return tuple(found) if isinstance(found, list) else found


def _rows(found: dict[Any, Tally]) -> Iterator[Any]:
    import pyarrow as pa

    keys = pa.array([json.dumps(key) for key in found], pa.string())
    tallies = pa.array([tally_.to_bytes() for tally_ in found.values()], pa.binary())
    yield pa.RecordBatch.from_arrays([keys, tallies], ["key", "tally"])
