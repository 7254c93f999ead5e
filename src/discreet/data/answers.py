"""Answers, read from a file in blocks.

A file is CSV or Parquet with a column of items; for sets, `user,item` rows or a column of lists; or
FIMI `.dat` lines. CSV and FIMI may be packed (`.gz`, `.xz`). Items are labels, even if the file
stores them as whole numbers, unless you set `indices`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.arrays.answers import distinct, lists, lookup
from discreet.arrays.types import Ints
from discreet.data.files import Advance, Stream, open_stream, parquet_file, read_fimi
from discreet.data.users import SetsByUser, refuse_repeats
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy import sniff

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20  # people per block, at most
BLOCK_BYTES = 1 << 26  # bytes of reports per block, at most
Block = Ints | tuple[Ints, Ints]  # item indices, or (items, offsets) for sets


class ReadOptions(NamedTuple):
    """Which columns to read, and how to read the items."""

    column: str = "item"
    user: str = "user"
    indices: bool = False  # the items are indices, not labels
    with_columns: tuple[str, ...] = ()  # other columns to pass on


class Answers(NamedTuple):
    """A block of answers, and the other columns of the same people, one row each."""

    block: Block
    with_columns: pa.Table | None = None


def read_answers(
    path: str,
    mechanism: Mechanism,
    column: str = "item",
    user: str = "user",
    advance: Advance = lambda _: None,
    indices: bool = False,
) -> Iterator[Block]:
    """Read the answers in a file, block by block: item indices, or (items, offsets) for sets. The
    items in the file are labels, unless you set `indices`.
    """
    options = ReadOptions(column, user, indices)
    return (answers.block for answers in read_people(path, mechanism, options, advance))


def read_people(
    path: str, mechanism: Mechanism, options: ReadOptions, advance: Advance = lambda _: None
) -> Iterator[Answers]:
    """Read the answers in a file, block by block, together with `options.with_columns`."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in (".gz", ".xz") else ""
    kind = suffixes[-1] if suffixes and path != "-" else ".csv"
    if kind == ".parquet":
        return _parquet_answers(path, mechanism, options, advance)
    if kind == ".dat":
        if options.with_columns:
            raise DataError(f"{path}: a FIMI file has no columns to keep; use CSV or Parquet")
        return _fimi_answers(path, mechanism, options.indices, advance)
    if kind not in (".csv", ".txt", ".tsv"):
        what = f" {sniff.SPREADSHEET}" if kind in sniff.SPREADSHEETS else ""
        raise DataError(
            f"{path}{what}: answers are .csv, .parquet or FIMI .dat files, these also as .gz or .xz"
        )
    return _csv_answers(path, packed, mechanism, options, advance)


def people_per_block(mechanism: Mechanism) -> int:
    """How many answers to perturb at once."""
    return min(BLOCK, max(1024, BLOCK_BYTES // mechanism.report_size))


# ---- FIMI ----------------------------------------------------------------------------------------


def _fimi_answers(
    path: str, mechanism: Mechanism, indices: bool, advance: Advance
) -> Iterator[Answers]:
    """Each line is a set; for single answers it is one item."""
    for before, labels, lengths in read_fimi(path, advance, people_per_block(mechanism)):
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        if not mechanism.policy.kind.lists and (lengths != 1).any():
            line = int((lengths != 1).argmax())
            raise DataError(
                f"{path}, line {before + line + 1} has {lengths[line]} items; the policy's kind "
                "is single"
            )
        try:
            items = lookup(mechanism, labels, indices)
        except DataError as error:
            allowed = set(map(str, range(mechanism.m))) if indices else mechanism.policy.index
            place = next(k for k, label in enumerate(labels.to_pylist()) if label not in allowed)
            line = before + int(np.searchsorted(offsets, place, side="right"))
            raise DataError(f"{path}, line {line}: {error}") from None
        yield Answers(distinct(items, offsets) if mechanism.policy.kind.lists else items)


# ---- CSV and Parquet -----------------------------------------------------------------------------


def _csv_answers(
    path: str, packed: str, mechanism: Mechanism, options: ReadOptions, advance: Advance
) -> Iterator[Answers]:
    import pyarrow as pa
    import pyarrow.csv as pc

    columns = (options.column, options.user, *options.with_columns)
    settings = {
        # a blank line is a row without an item, so it must not be skipped but refused
        "parse_options": pc.ParseOptions(ignore_empty_lines=False),
        "convert_options": pc.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=True,
            null_values=[""],
        ),
    }
    with open_stream(path, packed, advance) as stream:
        _check_text(path, stream.peek(1 << 12), options)
        try:
            if os.path.isfile(path):
                reader = pc.open_csv(stream, pc.ReadOptions(block_size=1 << 22), **settings)
                yield from _table_answers(path, reader.schema, reader, mechanism, options)
                return
            # a pipe: wait for it here, where Ctrl-C still works, and give Arrow whole lines
            tables = (pc.read_csv(io.BytesIO(block), **settings) for block in _whole_lines(stream))
            first = next(tables, None)
            if first is None:
                raise DataError(f"{path} is empty")
            batches = (batch for table in chain((first,), tables) for batch in table.to_batches())
            yield from _table_answers(path, first.schema, batches, mechanism, options)
        except pa.ArrowInvalid as error:
            message = str(error).splitlines()[0]
            if "Empty CSV" in message:
                raise DataError(f"{path} is empty") from None
            if "invalid UTF8" in message:
                raise DataError(f"{path} {sniff.NOT_UTF_8}") from None
            raise DataError(f"{path} is not a table: {message[:160]}") from None


def _check_text(path: str, head: bytes, options: ReadOptions) -> None:
    """Refuse a file whose beginning is not UTF-8 text with commas."""
    if wrong := sniff.wrong_format(head):
        raise DataError(f"{path} {wrong}")
    line, end, _ = head.partition(b"\n")
    try:
        header = line.decode("utf-8-sig").strip("\r")
    except UnicodeDecodeError:
        if end:  # otherwise the line may have been cut in the middle of a character
            raise DataError(f"{path} {sniff.NOT_UTF_8}") from None
        return
    if end and not header.strip():
        raise DataError(f"{path}: the first line is blank; it must name the columns")
    if wrong := sniff.wrong_separator(header, [options.column]):
        raise DataError(f"{path} {wrong}")


def _whole_lines(stream: Stream) -> Iterator[bytes]:
    """Split a stream into blocks of whole CSV records, each with the header in front. A line break
    inside quotes does not end a record.
    """
    header, rest, at_end = stream.readline(), b"", False
    while header and not at_end:
        block = stream.read(1 << 22)
        at_end, rest = not block, rest + block
        cut = len(rest) if at_end else rest.rfind(b"\n") + 1
        while cut and rest.count(b'"', 0, cut) % 2 and not at_end:
            cut = rest.rfind(b"\n", 0, cut - 1) + 1
        if cut or at_end:
            yield header + rest[:cut]
            rest = rest[cut:]


def _parquet_answers(
    path: str, mechanism: Mechanism, options: ReadOptions, advance: Advance
) -> Iterator[Answers]:
    import pyarrow as pa

    with parquet_file(path) as file:
        size, rows = os.path.getsize(path), max(1, file.metadata.num_rows)

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for batch in file.iter_batches(people_per_block(mechanism), use_threads=False):
                    yield batch
                    advance(size * len(batch) // rows)
            except (pa.ArrowInvalid, OSError) as error:
                raise DataError(f"{path} is damaged: {str(error).splitlines()[0][:120]}") from None

        yield from _table_answers(path, file.schema_arrow, batches(), mechanism, options)


def _table_answers(
    path: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    mechanism: Mechanism,
    options: ReadOptions,
) -> Iterator[Answers]:
    """Read a table: a column of items, a column of lists, or `user,item` rows."""
    names = [name.lstrip("\ufeff") for name in schema.names]
    in_lists = _check_columns(path, schema, names, mechanism, options)
    place = names.index(options.column)
    by_user = SetsByUser()
    start, size, last_user = 0, people_per_block(mechanism), None
    for batch in (x.slice(k, size) for x in batches for k in range(0, len(x), size)):
        values = batch.column(place)
        if values.null_count:
            row = start + int(values.is_null().to_numpy(zero_copy_only=False).argmax()) + 1
            raise DataError(f"{path}, row {row} {_missing_answer(in_lists, mechanism)}")
        try:
            others = _other_columns(batch, names, options.with_columns)
            if in_lists:
                yield Answers(lists(mechanism, values, options.indices), others)
            elif not mechanism.policy.kind.lists:
                if options.user in names:
                    last_user = refuse_repeats(batch.column(names.index(options.user)), last_user)
                yield Answers(lookup(mechanism, values, options.indices), others)
            else:
                users = batch.column(names.index(options.user))
                items = lookup(mechanism, values, options.indices)
                for sets, rows in by_user.add(users, items, others):
                    yield Answers(sets, rows)
        except DataError as error:
            raise DataError(f"{path}, rows {start + 1} to {start + len(batch)}: {error}") from None
        start += len(batch)
    for sets, rows in by_user.finish():
        yield Answers(sets, rows)


def _check_columns(
    path: str, schema: pa.Schema, names: list[str], mechanism: Mechanism, options: ReadOptions
) -> bool:
    """Refuse a table without the columns that are needed; return whether its items are in lists."""
    import pyarrow as pa

    if {"stderr", "lower", "upper"} <= {*names}:
        raise DataError(
            f"{path} holds estimates, not answers; a file of answers has one row per person"
        )
    if names[:1] == ["report"] and options.column not in names:
        raise DataError(f"{path} holds reports, which are perturbed already; count them with tally")
    others = [(name, "--with-column") for name in options.with_columns]
    for name, option in ((options.column, "--column"), *others):
        if name not in names:
            raise DataError(
                f'{path} has no column "{name}"; it has {", ".join(names)}; name another with '
                f"{option}"
            )
        if names.count(name) > 1:
            raise DataError(f'{path} has {names.count(name)} columns "{name}"; keep one')
    for name in options.with_columns:
        if pa.types.is_nested(schema.field(names.index(name)).type):
            raise DataError(f'{path}: column "{name}" cannot be kept: it has several values a row')
    kind = schema.field(names.index(options.column)).type
    in_lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    single = not mechanism.policy.kind.lists
    if single and in_lists:
        raise DataError(
            f'{path}: column "{options.column}" holds lists, but the policy\'s kind is single'
        )
    if not single and not in_lists and options.user not in names:
        raise DataError(
            f'{path}: sets need a column of lists, or rows of "{options.user}" and '
            f'"{options.column}"; there is no column "{options.user}"'
        )
    return bool(in_lists)


def _missing_answer(in_lists: bool, mechanism: Mechanism) -> str:
    """The end of a sentence about a row without an answer."""
    if in_lists:
        return "has no list; write an empty list for someone who has no item"
    if mechanism.policy.kind.lists:
        return "is blank or has no item; delete it, or use lists for people who have no item"
    return "is blank or has no item; delete it if this person did not answer"


def _other_columns(
    batch: pa.RecordBatch, names: list[str], wanted: tuple[str, ...]
) -> pa.Table | None:
    """The columns to pass on, as a table."""
    import pyarrow as pa

    if not wanted:
        return None
    columns = [batch.column(names.index(name)) for name in wanted]
    plain = [x.cast(x.type.value_type) if pa.types.is_dictionary(x.type) else x for x in columns]
    return pa.table(dict(zip(wanted, plain, strict=True)))
