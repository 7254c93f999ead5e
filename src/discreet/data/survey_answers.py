"""A table with the answers to a survey, a column per question: read in blocks, checked, drawn and
perturbed. Reports on different questions stand in different files, in orders of their own, so that
no place in a file says which reports are of one person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from discreet.arrays.answers import lists, lookup
from discreet.arrays.draws import draw_questions, shuffled
from discreet.arrays.randomness import Keystream
from discreet.arrays.types import Bytes, Ints
from discreet.data.files import Advance, open_stream, parquet_file
from discreet.data.reports import reports_file
from discreet.data.surveys import question_files
from discreet.errors import DataError
from discreet.policy.labels import quoted
from discreet.survey import Question, Survey

if TYPE_CHECKING:
    import pyarrow as pa

Block: TypeAlias = "tuple[Bytes, pa.Table | None]"  # reports, and the public answers beside them
Codes = Ints | tuple[Ints, Ints]  # the answers to a question: item indices, or (items, offsets)

BLOCK = 1 << 18  # people per block
_CSV_BYTES = 1 << 22  # read at once
_BETWEEN = "|"  # the items of a list, in CSV


def perturb_survey(
    path: str, survey: Survey, folder: str, advance: Advance = lambda _: None
) -> dict[str, int]:
    """Perturb a table (CSV or Parquet) that has a column per question, public ones too. For every
    person the questions that they answer are drawn; a file of reports per question is written into
    the folder. Returns how many reports each has.
    """
    people = 0
    for table in _tables(path, survey, lambda _: None):  # every answer, before anything is written
        read_answers(survey, table)
        people += len(table)
    if not people:
        raise DataError(f"{path} has no answers, so there is nothing to perturb")
    Path(folder).mkdir(parents=True, exist_ok=True)
    names = question_files(survey.questions)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                reports_file(Path(folder) / f"{names[question.name]}.parquet", question.mechanism)
            )
            for question in survey.listed
        ]
        for table in _tables(path, survey, advance):
            for writer, block in zip(writers, perturb_table(survey, table), strict=True):
                writer.add(*block)
    totals = [writer.total for writer in writers]
    return dict(zip(survey.questions, totals, strict=True))


def perturb_table(survey: Survey, table: pa.Table, threads: int | None = None) -> list[Block]:
    """Draw the questions of every person in a table, and perturb the answers to them: the reports
    on every question, with the public answers, in random order.
    """
    answers, source = read_answers(survey, table), Keystream()
    chosen = draw_questions(survey, len(table), source)
    openly = table.select([public.name for public in survey.public])
    blocks: list[Block] = []
    for place, question in enumerate(survey.listed):
        who = shuffled(np.flatnonzero(chosen[:, place]), source)
        codes = _codes(survey, question, answers, who)
        reports = question.mechanism.perturb_many(codes, threads, indices=True)
        blocks.append((reports, openly.take(who) if survey.public else None))
    return blocks


def read_answers(survey: Survey, table: pa.Table) -> Mapping[str, Codes]:
    """The answers by the names of the questions. DataError unless all of them are items."""
    for public in survey.public:
        _check_public(table, public.name, public.items)
    asked = [question for question in survey.listed if question.of is None]
    return {question.name: _read_column(question, table[question.name]) for question in asked}


def _check_public(table: pa.Table, name: str, items: tuple[str, ...]) -> None:
    strange = {*table[name].unique().to_pylist()} - {*items}
    if strange:
        raise DataError(
            f'the column "{name}" holds {quoted(next(iter(strange)))}, which is not an answer to '
            "this public question"
        )


def _read_column(question: Question, column: pa.ChunkedArray) -> Codes:
    """Labels, or lists of them; text holds the items of a list between vertical bars."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.combine_chunks()
    mechanism = question.mechanism
    try:
        if not mechanism.policy.kind.lists:
            return lookup(mechanism, values)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = pc.split_pattern(values, _BETWEEN)
        if values.null_count:  # an empty field of a CSV is somebody who has no item
            values = pc.fill_null(values, pa.scalar([], values.type))
        return lists(mechanism, values)
    except DataError:  # it may quote an answer
        raise DataError(
            f'the column "{question.name}" holds something that is not an item of its question'
        ) from None


def _codes(survey: Survey, question: Question, answers: Mapping[str, Codes], who: Ints) -> Codes:
    """The answers of these people to a question; those to a crossed one are cells."""
    if question.of is None:
        codes = answers[question.name]
        return _sets(*codes, who) if isinstance(codes, tuple) else codes[who]
    first, second = (answers[name] for name in question.of)
    if isinstance(first, tuple) or isinstance(second, tuple):
        raise AssertionError("only questions with one answer are crossed")
    return first[who] * survey.questions[question.of[1]].m + second[who]


def _sets(items: Ints, offsets: Ints, who: Ints) -> tuple[Ints, Ints]:
    """The sets of these people."""
    sizes = np.diff(offsets)[who]
    ends = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(ends[-1]) + np.repeat(offsets[who] - ends[:-1], sizes)
    return items[places], ends


# ---- tables --------------------------------------------------------------------------------------


def _tables(path: str, survey: Survey, advance: Advance) -> Iterator[pa.Table]:
    """The columns that a survey needs, in blocks."""
    import pyarrow as pa

    names = column_names(survey)
    if path.lower().endswith(".parquet"):
        with parquet_file(path) as file:
            _check_columns(path, file.schema_arrow.names, names)
            bytes_per_row = Path(path).stat().st_size / max(1, file.metadata.num_rows)
            for batch in file.iter_batches(BLOCK, columns=names):
                yield pa.Table.from_batches([batch])
                advance(round(len(batch) * bytes_per_row))
    elif path.lower().endswith(".csv"):
        yield from _csv_tables(path, names, advance)
    else:
        raise DataError(f"{path}: the answers to a survey are a .csv or a .parquet file")


def _csv_tables(path: str, names: list[str], advance: Advance) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.csv as pc

    options = pc.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    with open_stream(path, "", advance) as stream:
        try:
            blocks = pc.ReadOptions(block_size=_CSV_BYTES)
            with pc.open_csv(stream, blocks, convert_options=options) as reader:
                _check_columns(path, reader.schema.names, names)
                for batch in reader:
                    yield pa.Table.from_batches([batch]).select(names)
        except pa.ArrowInvalid:  # it may quote a row
            raise DataError(
                f"{path} is not a table: every line must have as many fields as the first, which "
                "names the columns"
            ) from None


def column_names(survey: Survey) -> list[str]:
    """The columns of a table of answers: the questions, then the public ones."""
    asked = [question.name for question in survey.listed if question.of is None]
    return [*asked, *(public.name for public in survey.public)]


def _check_columns(path: str, there: list[str], names: list[str]) -> None:
    missing = [name for name in names if name not in there]
    if missing:
        raise DataError(
            f'{path} has no column "{missing[0]}"; a survey needs a column for each of its '
            f"questions: {', '.join(names)}"
        )
