"""Files of scores: a column per item, a row per report, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from discreet.arrays.scores import as_arrow, item_places, score
from discreet.arrays.types import Ints
from discreet.data.counting import report_rows
from discreet.data.files import Advance
from discreet.data.reports import RESERVED, By, name_in_errors, read_piece, split_file
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.files import written_aside
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    import pyarrow as pa


class Scored(NamedTuple):
    """What was written: the reports with scores, and the refused ones."""

    reports: int
    refused: int


def write_scores(
    paths: Iterable[Path],
    mechanism: Mechanism,
    output: str | Path,
    items: Iterable[str | int] | None = None,
    columns: Iterable[str] = (),
    advance: Advance = lambda _: None,
) -> Scored:
    """Write the scores of these items (all of them by default) as Parquet, beside columns of the
    files of reports. What is not a report of the mechanism is left out and counted.
    """
    import pyarrow.parquet as pq

    total = refused = 0
    with written_aside(output) as aside:
        writer = None
        for batch, bad in _score_files(paths, mechanism, items, columns, advance):
            if writer is None:
                writer = pq.ParquetWriter(str(aside), batch.schema, compression="zstd")
            writer.write_batch(batch)
            total, refused = total + len(batch), refused + bad
        if writer is None or not total:
            raise DataError("there are no reports in these files, so there is nothing to score")
        writer.close()
    return Scored(total, refused)


def read_scores(
    paths: Iterable[str | Path],
    mechanism: Mechanism,
    items: Iterable[str | int] | None = None,
    columns: Iterable[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The scores of files of reports, a batch after the other, so that files may be larger than
    memory: these columns of the files, then a column per item. What is not a report of the
    mechanism is left out.
    """
    listed = [Path(path) for path in paths]
    return (batch for batch, _ in _score_files(listed, mechanism, items, columns))


def _score_files(
    paths: Iterable[Path],
    mechanism: Mechanism,
    items: Iterable[str | int] | None,
    columns: Iterable[str],
    advance: Advance = lambda _: None,
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of scores, all of one schema, and how many rows of each were refused."""
    places, others = item_places(mechanism, items), tuple(dict.fromkeys(columns))
    if len(set(places.tolist())) < len(places):
        raise DataError("an item is named twice; name each once")
    for name in others:
        if name in RESERVED:
            raise DataError(f"the column {quoted(name)} cannot be kept: this name is reserved")
        if name in {mechanism.policy.items[place] for place in places}:
            raise DataError(
                f"the column {quoted(name)} cannot be kept: an item has this name; rename it"
            )
    schema = None
    for path in paths:
        for batch, bad in _score_file(path, mechanism, places, others, advance):
            schema = schema or batch.schema
            with name_in_errors(path):
                same = batch.cast(schema)
            yield same, bad


def _score_file(
    path: Path, mechanism: Mechanism, places: Ints, others: By, advance: Advance
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of scores, and how many rows of each were refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    step = max(1, (1 << 22) // len(places))
    for piece in split_file(path, mechanism, others):
        for whole in read_piece(piece, mechanism, others):
            for first in range(0, len(whole), step):
                batch = whole.slice(first, step)
                before = len(batch)
                if "fingerprint" in batch.schema.names:
                    ours = pc.equal(batch.column("fingerprint"), mechanism.fingerprint)
                    batch = batch.filter(ours.fill_null(False))
                reports = report_rows(batch.column("report"), mechanism.report_size)
                scores, good = score(mechanism, reports, places)
                kept = batch.select(list(others)).filter(pa.array(good))
                scored = as_arrow(mechanism, scores[good], places)
                columns = [*kept.columns, *scored.columns]
                names = [*others, *scored.schema.names]
                yield pa.record_batch(columns, names=names), before - int(good.sum())
        advance(piece.size)
