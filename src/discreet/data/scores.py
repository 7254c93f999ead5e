"""Files of scores: a column per item, a row per report, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from discreet.arrays.scores import places_of, score
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

    places, others = places_of(mechanism, items), tuple(dict.fromkeys(columns))
    if len(set(places.tolist())) < len(places):
        raise DataError("an item is named twice; name each once")
    for name in others:
        if name in RESERVED:
            raise DataError(f"the column {quoted(name)} cannot be kept: this name is reserved")
        if name in {mechanism.policy.items[place] for place in places}:
            raise DataError(
                f"the column {quoted(name)} cannot be kept: an item has this name; rename it"
            )
    total = refused = 0
    with written_aside(output) as aside:
        writer = None
        for path in paths:
            for batch, bad in _score_file(path, mechanism, places, others, advance):
                if writer is None:
                    writer = pq.ParquetWriter(str(aside), batch.schema, compression="zstd")
                with name_in_errors(path):
                    writer.write_batch(batch.cast(writer.schema))
                total, refused = total + len(batch), refused + bad
        if writer is None or not total:
            raise DataError("there are no reports in these files, so there is nothing to score")
        writer.close()
    return Scored(total, refused)


def _score_file(
    path: Path, mechanism: Mechanism, places: Ints, others: By, advance: Advance
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of scores, and how many rows of each were refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [mechanism.policy.items[place] for place in places]
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
                columns = [*kept.columns, *(pa.array(x) for x in scores[good].T)]
                yield pa.record_batch(columns, names=[*others, *names]), before - int(good.sum())
        advance(piece.size)
