"""Files of reports, written and read in blocks.

Parquet with a column `report` (tickets are numbers, all other reports binary) and the mechanism's
fingerprint in the metadata. Or a table of `report,count`, which any database can make by grouping.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.arrays.types import Bytes
from discreet.data.files import parquet_file
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.files import written_aside

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    Block = tuple[Bytes, pa.Table | None]  # reports, and other columns of the same people

FINGERPRINT = b"discreet.fingerprint"
ROW_GROUP = 1 << 22  # bytes, at least: what a thread reads at once
RESERVED = ("report", "count", "fingerprint")  # columns with a meaning in a file of reports
By = tuple[str, ...]  # the columns whose values make a group


# ---- writing -------------------------------------------------------------------------------------


def check_with_columns(columns: Iterable[str], column: str) -> list[str]:
    """Names of the columns to write beside the reports, each once. The column of the answers, and
    columns that mean something in a file of reports, are refused.
    """
    names = list(dict.fromkeys(columns))
    if column in names:
        raise DataError(f'keeping the column "{column}" would store the answers beside the reports')
    for name in names:
        if name in RESERVED:
            raise DataError(
                f'the column "{name}" cannot be kept: this name is reserved in a file of reports; '
                "rename it"
            )
    return names


def write_reports(path: str | Path, mechanism: Mechanism, blocks: Iterable[Bytes | Block]) -> int:
    """Write reports as Parquet, block by block, and return how many. A block is an array, or an
    array and an Arrow table of other columns to write beside it, the same columns in every block.
    """
    with reports_file(path, mechanism) as writer:
        for block in blocks:
            writer.add(*(block if isinstance(block, tuple) else (block,)))
    return writer.total


@contextmanager
def reports_file(path: str | Path, mechanism: Mechanism) -> Iterator[ReportWriter]:
    """A file of reports to add blocks to. It is there once all of them are written."""
    with written_aside(path) as aside:
        writer = ReportWriter(aside, mechanism)
        yield writer
        writer.close()


class ReportWriter:
    """Writes blocks of reports; joins small ones until they are large enough for a row group."""

    def __init__(self, path: Path, mechanism: Mechanism) -> None:
        import pyarrow as pa

        self.total = 0
        self._path, self._mechanism = path, mechanism
        number = mechanism.encoding.as_uint32
        self._type = pa.uint32() if number else pa.binary(mechanism.report_size)
        self._held: list[Block] = []
        self._bytes = 0
        self._file: pq.ParquetWriter | None = None

    def add(self, reports: Bytes, others: pa.Table | None = None) -> None:
        """Add reports, and the other columns of the same people."""
        self._held.append((reports, others))
        self._bytes += reports.nbytes
        self.total += len(reports)
        if self._bytes >= ROW_GROUP:
            self._write()

    def close(self) -> None:
        """Write what is left."""
        if self._held or self._file is None:
            self._write()
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        import pyarrow as pa

        reports, others = _join(self._held) if self._held else (np.zeros((0, 1), np.uint8), None)
        self._held, self._bytes = [], 0
        file = self._open([] if others is None else list(others.schema))
        column = pa.Array.from_buffers(
            self._type, len(reports), [None, pa.py_buffer(np.ascontiguousarray(reports))]
        )
        more = [] if others is None else [x.combine_chunks() for x in others.columns]
        file.write_batch(pa.record_batch([column, *more], schema=file.schema))

    def _open(self, fields: list[pa.Field]) -> pq.ParquetWriter:
        """The file; the first block says which other columns it has."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._file is None:
            schema = pa.schema(
                [pa.field("report", self._type, nullable=False), *fields],
                metadata={FINGERPRINT: self._mechanism.fingerprint.encode()},
            )
            plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
            self._file = pq.ParquetWriter(
                str(self._path), schema, data_page_size=ROW_GROUP, **plain
            )
        return self._file


def _join(held: list[Block]) -> Block:
    import pyarrow as pa

    if len(held) == 1:
        return held[0]
    tables = [table for _, table in held if table is not None]
    others = pa.concat_tables(tables) if tables else None
    return np.concatenate([reports for reports, _ in held]), others


# ---- reading -------------------------------------------------------------------------------------


def report_files(paths: Iterable[str], endings: tuple[str, ...] = (".parquet",)) -> list[Path]:
    """List the files at these paths; a folder stands for the files in it and its subfolders."""
    listed: list[Path] = []
    for path in map(Path, paths):
        inside = [path]
        if path.suffix.lower() == ".csv" and ".csv" not in endings:
            raise DataError(
                f"{path} is a CSV file, but reports are Parquet files. discreet perturb makes them "
                "of answers; for a table of report,count add --counted"
            )
        if path.is_dir():  # without hidden files: a writer may not have finished them
            names = {
                p: p.relative_to(path).parts for p in path.rglob("*") if p.suffix.lower() in endings
            }
            inside = sorted(
                p for p, parts in names.items() if not any(x.startswith((".", "_")) for x in parts)
            )
        if not inside:
            raise DataError(f"{path} holds no {' or '.join(endings)} file")
        listed += inside
    refuse_duplicates(listed)
    return listed


def refuse_duplicates(paths: Iterable[str | Path]) -> None:
    """Refuse a file that is named twice: its reports would count twice."""
    seen: set[Path] = set()
    for path in map(Path, paths):
        if path.resolve() in seen:
            raise DataError(f"{path} is named twice; its reports would count twice")
        seen.add(path.resolve())


class Piece(NamedTuple):
    """A few row groups of a Parquet file, or a whole CSV file. `size` is in bytes."""

    path: Path
    groups: list[int] | None  # None for CSV
    size: int
    metadata: pq.FileMetaData | None = None  # saves reading it again


def split_file(path: Path, mechanism: Mechanism, by: By = (), counted: bool = False) -> list[Piece]:
    """Check a file, and split it into pieces of a few megabytes for threads to share."""
    if counted and path.suffix.lower() == ".csv":
        return [Piece(path, None, os.path.getsize(path) if path.is_file() else 0)]
    with parquet_file(path) as file:
        _check_schema(path, file.schema_arrow, mechanism, by, counted)
        metadata = file.metadata
    pieces: list[Piece] = []
    groups, size = [], 0
    for k in range(metadata.num_row_groups):
        groups.append(k)
        size += metadata.row_group(k).total_byte_size
        if size >= 4 * ROW_GROUP or k + 1 == metadata.num_row_groups:
            pieces.append(Piece(path, groups, size, metadata))
            groups, size = [], 0
    return pieces


def read_piece(
    piece: Piece, mechanism: Mechanism, by: By = (), counted: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read the record batches of a piece."""
    wanted = ("report", *(["count"] if counted else []), *by, "fingerprint")
    if piece.groups is None:
        yield from _read_csv(piece.path, mechanism, by)
        return
    with parquet_file(piece.path, piece.metadata) as file, name_in_errors(piece.path):
        names = [name for name in wanted if name in file.schema_arrow.names]
        rows = max(1024, min(1 << 20, (1 << 24) // mechanism.report_size))
        yield from file.iter_batches(rows, piece.groups, columns=names, use_threads=False)


def _read_csv(path: Path, mechanism: Mechanism, by: By) -> Iterator[pa.RecordBatch]:
    """Read a CSV of `report,count`. A ticket is a number, any other report is hexadecimal."""
    import pyarrow as pa
    import pyarrow.csv as pc

    number = mechanism.encoding.as_uint32
    types = {"report": pa.int64() if number else pa.string(), "count": pa.int64()}
    types["fingerprint"] = pa.string()
    types |= dict.fromkeys(by, pa.string())
    convert = pc.ConvertOptions(column_types=types)
    with name_in_errors(path):
        try:
            reader = pc.open_csv(path, pc.ReadOptions(block_size=1 << 24), convert_options=convert)
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        with reader:
            _check_names(path, reader.schema.names, by, counted=True)
            for batch in reader:
                yield batch if number else _decode_hex(batch)


def _decode_hex(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    place = batch.schema.get_field_index("report")
    try:
        raw = [bytes.fromhex(text or "") for text in batch.column(place).to_pylist()]
    except ValueError:
        raise DataError('the column "report" must hold reports in hexadecimal') from None
    return batch.set_column(place, "report", pa.array(raw, pa.binary()))


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Turn errors about a file's content into one sentence that names the file."""
    import pyarrow as pa

    try:
        yield
    except DataError as error:
        if str(error).startswith(str(path)):
            raise
        raise DataError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged: {str(error).splitlines()[0][:120]}") from None


def _check_schema(
    path: Path, schema: pa.Schema, mechanism: Mechanism, by: By, counted: bool
) -> None:
    """Refuse a Parquet file that has no column of reports, or reports of another mechanism."""
    import pyarrow as pa

    _check_names(path, schema.names, by, counted)
    kind = schema.field("report").type
    binary = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    if not (binary or (mechanism.encoding.as_uint32 and pa.types.is_integer(kind))):
        allowed = "an integer or binary" if mechanism.encoding.as_uint32 else "binary"
        raise DataError(f'{path}: column "report" must be {allowed}, got {kind}')
    if counted and not pa.types.is_integer(schema.field("count").type):
        raise DataError(
            f'{path}: column "count" must be an integer, got {schema.field("count").type}'
        )
    if "fingerprint" in schema.names:
        kind = schema.field("fingerprint").type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(f'{path}: column "fingerprint" must be text, got {kind}')
    mark = (schema.metadata or {}).get(FINGERPRINT)
    if mark is not None and mark.decode("ascii", "replace") != mechanism.fingerprint:
        raise DataError(f"{path} has reports of another mechanism; its fingerprint differs")


def _check_names(path: Path, names: list[str], by: By, counted: bool) -> None:
    for name in ("report", *(["count"] if counted else []), *by):
        if name not in names:
            raise DataError(f'{path} has no column "{name}"; it has {", ".join(names) or "none"}')
    for name in (*RESERVED, *by):
        if names.count(name) > 1:
            raise DataError(f'{path} has {names.count(name)} columns "{name}"; keep one')
    if "count" in names and not counted and "count" not in by:
        raise DataError(
            f'{path} has a column "count": if its reports are counted already, say --counted'
        )
