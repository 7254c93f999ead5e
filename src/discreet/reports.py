"""Files of reports, streamed: Parquet with one column (a ticket is a number, everything else
binary) and the mechanism's fingerprint in the metadata; or already counted, `report,count`, as any
database that can group writes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError
from discreet.files import Advance, parquet_file, written_aside
from discreet.mechanism import Mechanism
from discreet.tally import Counting, Tally, as_times
from discreet.threads import run_blocks

FINGERPRINT = b"discreet.fingerprint"
ROW_GROUP = 1 << 22  # bytes, at least: what a thread reads at once
Rows = NDArray[np.uint8] | tuple[NDArray[np.uint8], Any]
_TAKEN = ("report", "count", "fingerprint")  # columns with a meaning in a file of reports


# ---- writing -------------------------------------------------------------------------------------


def checked_keep(keep: Iterable[str], column: str) -> list[str]:
    """Names of columns to write beside the reports, each once; never that of the answers, nor those
    that mean something in a file of reports.
    """
    names = list(dict.fromkeys(keep))
    if column in names:
        raise DataError(f'keeping the column "{column}" would store the answers beside the reports')
    for name in names:
        if name in _TAKEN:
            raise DataError(
                f'the column "{name}" cannot be kept: in a file of reports that is a name of its '
                "own; rename it"
            )
    return names


def write_reports(path: str | Path, mechanism: Mechanism, blocks: Iterable[Rows]) -> int:
    """Write reports as Parquet, block by block; returns how many. A block is an array, or an array
    and an Arrow table of columns to keep beside it, the same for all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.uint32() if mechanism.encoding.number else pa.binary(mechanism.report_size)
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    total = 0
    with written_aside(path) as aside:
        found = _larger(x if isinstance(x, tuple) else (x, None) for x in blocks)
        first = next(found, None)
        beside = [] if first is None or first[1] is None else list(first[1].schema)
        schema = pa.schema(
            [pa.field("report", kind, nullable=False), *beside],
            metadata={FINGERPRINT: mechanism.fingerprint.encode()},
        )
        with pq.ParquetWriter(str(aside), schema, data_page_size=ROW_GROUP, **plain) as writer:
            for rows, kept in chain([] if first is None else [first], found):
                buffer = pa.py_buffer(np.ascontiguousarray(rows))
                column = pa.Array.from_buffers(kind, len(rows), [None, buffer])
                more = [] if kept is None else [x.combine_chunks() for x in kept.columns]
                writer.write_batch(pa.record_batch([column, *more], schema=schema))
                total += len(rows)
    return total


def _larger(
    blocks: Iterable[tuple[NDArray[np.uint8], Any]],
) -> Iterator[tuple[NDArray[np.uint8], Any]]:
    """The same rows in blocks that are worth a row group."""
    held: list[tuple[NDArray[np.uint8], Any]] = []
    for block in blocks:
        held.append(block)
        if sum(rows.nbytes for rows, _ in held) >= ROW_GROUP:
            yield held[0] if len(held) == 1 else _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(held: list[tuple[NDArray[np.uint8], Any]]) -> tuple[NDArray[np.uint8], Any]:
    import pyarrow as pa

    kept = [table for _, table in held if table is not None]
    return np.concatenate([rows for rows, _ in held]), pa.concat_tables(kept) if kept else None


# ---- counting ------------------------------------------------------------------------------------


def report_files(paths: Iterable[str], endings: tuple[str, ...] = (".parquet",)) -> list[Path]:
    """The files named, folders opened."""
    listed: list[Path] = []
    for path in map(Path, paths):
        inside = [path]
        if path.is_dir():  # with its subfolders, but nothing that a writer has not finished
            names = {
                p: p.relative_to(path).parts for p in path.rglob("*") if p.suffix.lower() in endings
            }
            inside = sorted(
                p for p, parts in names.items() if not any(x.startswith((".", "_")) for x in parts)
            )
        if not inside:
            raise DataError(f"{path} holds no {' or '.join(endings)} file")
        listed += inside
    once(listed)
    return listed


def once(paths: Iterable[str | Path]) -> None:
    """Refuse a file that is named twice: its reports would count twice."""
    seen: set[Path] = set()
    for path in map(Path, paths):
        if path.resolve() in seen:
            raise DataError(f"{path} is named twice; its reports would count twice")
        seen.add(path.resolve())


By = tuple[str, ...]  # the columns whose values make a group


def columns_of(by: str | Iterable[str] | None) -> By:
    """The columns to count by, each once; none, one or several may be named."""
    if by is None:
        return ()
    return (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))


class Countings:
    """Countings by the value of a column, made as values appear; by the values of several columns
    as tuples; without a column one, of None.
    """

    def __init__(self, mechanism: Mechanism, by: By = ()) -> None:
        self.mechanism, self.by = mechanism, by
        self._found: dict[Any, Counting] = {} if by else {None: Counting(mechanism)}
        self._lock = threading.Lock()

    def of(self, key: Any) -> Counting:
        """The counting of a value."""
        with self._lock:
            if key not in self._found:
                self._found[key] = Counting(self.mechanism)
            return self._found[key]

    def add(self, batch: Any, column: str = "report", counted: str | None = None) -> None:
        """Count an Arrow record batch; a column `fingerprint`, where there is one, must name this
        mechanism, and rows that name another are refused and counted.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.by:
            self._add(None, batch, column, counted)
            return
        group = np.zeros(len(batch), np.int64)
        values: list[list[Any]] = []  # of every column; what has none, or no number, is None
        for name in self.by:
            found = batch.column(name).dictionary_encode()
            codes = pc.fill_null(found.indices, -1).to_numpy(zero_copy_only=False)
            known = [None if key != key else key for key in found.dictionary.to_pylist()]
            values.append([*known, None])
            group = group * len(values[-1]) + codes % len(values[-1])  # -1 is the last
        for code in np.unique(group).tolist():
            some = batch.filter(pa.array(group == code))
            self._add(_group_of(code, values), some, column, counted)

    def _add(self, key: Any, batch: Any, column: str, counted: str | None) -> None:
        import pyarrow.compute as pc

        counting, size = self.of(key), self.mechanism.report_size
        if "fingerprint" in batch.schema.names:
            ours = pc.equal(batch.column("fingerprint"), self.mechanism.fingerprint)
            ours = ours.fill_null(False)
            others = batch.filter(pc.invert(ours))
            many = int(_times(others, counted).sum()) if counted else len(others)
            counting.refuse("fingerprint", many)
            batch = batch.filter(ours)
        reports = rows_of(batch.column(column), size)
        counting.add(*counting.fitting(reports, _times(batch, counted) if counted else None))

    def tallies(self, threads: int | None = None) -> dict[Any, Tally]:
        """What was counted."""
        tallies = {}
        while self._found:  # one after the other: what it counted in is let go
            key, counting = self._found.popitem()
            tallies[key] = counting.tally(threads)
        return dict(reversed(tallies.items()))


def _group_of(code: int, values: list[list[Any]]) -> Any:
    """The value, or the tuple of values, that a code stands for."""
    found = []
    for known in reversed(values):
        code, place = divmod(code, len(known))
        found.append(known[place])
    return found[0] if len(found) == 1 else tuple(reversed(found))


def _times(batch: Any, counted: str) -> NDArray[np.int64]:
    values = batch.column(counted)
    if values.null_count:
        raise DataError(f'the column "{counted}" has a row without a number')
    return as_times(values.to_numpy(zero_copy_only=False), len(values))


def tally_files(
    paths: Iterable[Path],
    mechanism: Mechanism,
    by: str | Iterable[str] | None = None,
    advance: Advance = lambda _: None,
    counted: bool = False,
    threads: int | None = None,
) -> dict[Any, Tally]:
    """Tallies of files of reports, or of `report,count` tables, per value of the column `by`, or
    per combination of values of several; the key is None without. Row groups are read and counted
    in threads.
    """
    columns = columns_of(by)
    groups, lock = Countings(mechanism, columns), threading.Lock()
    count = "count" if counted else None

    def work(piece: Piece) -> None:
        for batch in read_piece(piece, mechanism, columns, counted):
            with _named(piece.path):
                groups.add(batch, counted=count)
        with lock:
            advance(piece.size)

    pieces = [piece for path in paths for piece in pieces_of(path, mechanism, columns, counted)]
    run_blocks(lambda k, _: work(pieces[k]), len(pieces), 1, threads, fewest=2)
    return groups.tallies(threads)


# ---- reading -------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Row groups of a Parquet file, or a whole CSV file; `size` is its share of the bytes."""

    path: Path
    groups: list[int] | None  # None: CSV
    size: int
    metadata: Any = None  # of the file, where it was read already


def pieces_of(path: Path, mechanism: Mechanism, by: By = (), counted: bool = False) -> list[Piece]:
    """What threads share of a file, checked: each some megabytes."""
    if counted and path.suffix.lower() == ".csv":
        return [Piece(path, None, os.path.getsize(path) if path.is_file() else 0)]
    with parquet_file(path) as file:
        check_reports(path, file, mechanism, by, counted)
        metadata = file.metadata
    pieces: list[Piece] = []
    held, size = [], 0
    for k in range(metadata.num_row_groups):
        held.append(k)
        size += metadata.row_group(k).total_byte_size
        if size >= 4 * ROW_GROUP or k + 1 == metadata.num_row_groups:
            pieces.append(Piece(path, held, size, metadata))
            held, size = [], 0
    return pieces


def read_piece(
    piece: Piece, mechanism: Mechanism, by: By = (), counted: bool = False
) -> Iterator[Any]:
    """Its record batches."""
    wanted = ("report", *(["count"] if counted else []), *by, "fingerprint")
    if piece.groups is None:
        yield from _read_csv(piece.path, mechanism, by)
        return
    with parquet_file(piece.path, piece.metadata) as file, _named(piece.path):
        names = [name for name in wanted if name in file.schema_arrow.names]
        some = max(1024, min(1 << 20, (1 << 24) // mechanism.report_size))
        yield from file.iter_batches(some, piece.groups, columns=names, use_threads=False)


def _read_csv(path: Path, mechanism: Mechanism, by: By) -> Iterator[Any]:
    """Batches of a CSV of `report,count`: a ticket as a number, everything else in hexadecimal."""
    import pyarrow as pa
    import pyarrow.csv as pc

    number = mechanism.encoding.number
    types = {"report": pa.int64() if number else pa.string(), "count": pa.int64()}
    types["fingerprint"] = pa.string()
    types |= dict.fromkeys(by, pa.string())
    wanted = pc.ConvertOptions(column_types=types)
    with _named(path):
        try:
            reader = pc.open_csv(path, pc.ReadOptions(block_size=1 << 24), convert_options=wanted)
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        with reader:
            _check_columns(path, reader.schema.names, by, counted=True)
            for batch in reader:
                yield batch if number else _from_hex(batch)


def _from_hex(batch: Any) -> Any:
    import pyarrow as pa

    place = batch.schema.get_field_index("report")
    try:
        raw = [bytes.fromhex(text or "") for text in batch.column(place).to_pylist()]
    except ValueError:
        raise DataError('the column "report" must hold reports in hexadecimal') from None
    return batch.set_column(place, "report", pa.array(raw, pa.binary()))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of Arrow, and our own about a file's content, as one sentence that names the file."""
    import pyarrow as pa

    try:
        yield
    except DataError as error:
        if str(error).startswith(str(path)):
            raise
        raise DataError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged: {str(error).splitlines()[0][:120]}") from None


def check_reports(
    path: Path, file: Any, mechanism: Mechanism, by: By = (), counted: bool = False
) -> None:
    """Refuse a Parquet file without a column of reports, or whose metadata name another
    mechanism.
    """
    import pyarrow as pa

    schema = file.schema_arrow
    _check_columns(path, schema.names, by, counted)
    kind = schema.field("report").type
    binary = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    if not (binary or (mechanism.encoding.number and pa.types.is_integer(kind))):
        wanted = "an integer or binary" if mechanism.encoding.number else "binary"
        raise DataError(f'{path}: column "report" must be {wanted}, got {kind}')
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


def _check_columns(path: Path, names: list[str], by: By, counted: bool) -> None:
    for name in ("report", *(["count"] if counted else []), *by):
        if name not in names:
            raise DataError(f'{path} has no column "{name}"; it has {", ".join(names) or "none"}')
    for name in ("report", "count", "fingerprint", *by):
        if names.count(name) > 1:
            raise DataError(f'{path} has {names.count(name)} columns "{name}"; keep one')
    if "count" in names and not counted and "count" not in by:
        raise DataError(
            f'{path} has a column "count": if its reports are counted already, say --counted'
        )


def rows_of(column: Any, size: int) -> Any:
    """An Arrow column of reports as an n x size array where every value has this size, else as a
    list (null: empty). Numbers are tickets: unsigned 32-bit integers, or what an engine without
    them has instead.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    n, first = len(column), column.offset
    if pa.types.is_integer(column.type):
        if column.null_count:  # no ticket is that large
            wide = column if pa.types.is_uint64(column.type) else column.cast(pa.int64())
            column = pc.fill_null(wide, pa.scalar(2**32, wide.type))
        return column.to_numpy(zero_copy_only=False)
    if n and not column.null_count:
        if pa.types.is_fixed_size_binary(column.type) and column.type.byte_width == size:
            return np.frombuffer(column.buffers()[1], np.uint8)[
                first * size : (first + n) * size
            ].reshape(-1, size)
        if pa.types.is_binary(column.type):
            offsets = np.frombuffer(column.buffers()[1], np.int32)[first : first + n + 1]
            if (np.diff(offsets) == size).all():
                return np.frombuffer(column.buffers()[2], np.uint8)[
                    offsets[0] : offsets[-1]
                ].reshape(-1, size)
    return [b"" if value is None else value for value in column.to_pylist()]
