"""The functions that Spark's workers run on Arrow batches. They travel to the workers, so they hold
the mechanism as text; a worker checks it once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.arrays.answers import lists, lookup
from discreet.arrays.grouped_tallies import add_by_group
from discreet.arrays.tally import Tally
from discreet.data.counting import Group, Tallies, TalliesByValue, check_group_count
from discreet.data.reports import By, Piece, read_piece
from discreet.data.survey_answers import perturb_table
from discreet.data.surveys import question_files
from discreet.mechanism import Mechanism
from discreet.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa

    Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PARTIAL_TALLIES = "key string, tally binary"  # the columns that counting and merging make


def count_reports(mechanism: Mechanism, column: str, by: By) -> Work:
    """Count a column of reports into partial tallies."""
    text = _as_text(mechanism)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = TalliesByValue(_parse(text), by)
        for batch in batches:
            groups.add(batch, column)
        yield _as_batch(groups.tallies(threads=1))

    return work


def count_pieces(mechanism: Mechanism, pieces: list[Piece], by: By) -> Work:
    """Read the pieces whose numbers come in the column `id`, and count them."""
    text = _as_text(mechanism)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mechanism = _parse(text)
        groups = TalliesByValue(mechanism, by)
        for place in (k for batch in batches for k in batch.column("id").to_pylist()):
            for batch in read_piece(pieces[place], mechanism, by):
                groups.add(batch)
        yield _as_batch(groups.tallies(threads=1))

    return work


def merge_tallies(mechanism: Mechanism, by: By) -> Work:
    """Add up partial tallies, group by group."""
    text = _as_text(mechanism)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mechanism = _parse(text)
        tallies: Tallies = {}
        for batch in batches:
            keys, raws = batch.column("key").to_pylist(), batch.column("tally").to_pylist()
            for key, raw in zip(keys, raws, strict=True):
                add_by_group(tallies, {parse_group(key): Tally.from_bytes(raw, mechanism)})
                check_group_count(len(tallies), mechanism, by)
        yield _as_batch(tallies)

    return work


def perturb_answers(mechanism: Mechanism, with_columns: list[str], indices: bool) -> Work:
    """Perturb the answers in the first column, and pass the columns `with_columns` on."""
    text = _as_text(mechanism)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        mechanism = _parse(text)
        for batch in batches:
            read = lists if mechanism.policy.kind.lists else lookup
            answers = read(mechanism, batch.column(0), indices)
            reports = mechanism.perturb_many(answers, threads=1, indices=True)
            if mechanism.encoding.as_uint32:
                column = pa.array(reports.view("<u4")[:, 0].astype("int64"))
            else:
                column = pa.array(map(bytes, reports), pa.binary(), size=len(reports))
            mark = pa.array([mechanism.fingerprint] * len(reports), pa.string())
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(name) for name in with_columns), column, mark],
                [*with_columns, "report", "fingerprint"],
            )

    return work


def perturb_people(survey: Survey) -> Work:
    """Draw the questions of every person, and perturb the answers to them."""
    text = json.dumps(survey.to_document())

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        survey = _parse_survey(text)
        files = question_files(survey.questions)
        for batch in batches:
            blocks = perturb_table(survey, pa.Table.from_batches([batch]), threads=1)
            for question, (reports, openly) in zip(survey.listed, blocks, strict=True):
                fixed = [files[question.name], question.mechanism.fingerprint]
                name, mark = (pa.array([x] * len(reports), pa.string()) for x in fixed)
                raw = pa.array(map(bytes, reports), pa.binary(), size=len(reports))
                told = [] if openly is None else [x.combine_chunks() for x in openly.columns]
                yield pa.RecordBatch.from_arrays(
                    [name, *told, raw, mark],
                    ["question", *(p.name for p in survey.public), "report", "fingerprint"],
                )

    return work


@lru_cache(maxsize=4)
def _parse_survey(text: str) -> Survey:
    """Checked once per worker."""
    return Survey.from_document(json.loads(text))


def _as_text(mechanism: Mechanism) -> str:
    return json.dumps(mechanism.to_document())


@lru_cache(maxsize=4)
def _parse(text: str) -> Mechanism:
    """Checked once per worker, like any other mechanism."""
    return Mechanism.from_document(json.loads(text))


def parse_group(text: str) -> Group:
    """A group as `_as_batch` wrote it. JSON has no tuples, so they come back from lists."""
    group = json.loads(text)
    return tuple(group) if isinstance(group, list) else group


def _as_batch(tallies: Tallies) -> pa.RecordBatch:
    import pyarrow as pa

    keys = pa.array([json.dumps(group) for group in tallies], pa.string())
    raws = pa.array([tally.to_bytes() for tally in tallies.values()], pa.binary())
    return pa.RecordBatch.from_arrays([keys, raws], ["key", "tally"])
