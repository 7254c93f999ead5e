"""Count files of reports: one tally, or one per value of a column."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.rows import as_times
from discreet.arrays.survey_tally import tally_size
from discreet.arrays.tally import Tally, TallyBuilder
from discreet.arrays.threads import run_blocks
from discreet.arrays.types import Ints
from discreet.data.files import Advance
from discreet.data.reports import By, Piece, name_in_errors, read_piece, split_file
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.arrays.types import Bytes

# The value of a column, the tuple of values of several, or None if nothing is grouped
Group = Hashable
Tallies = dict[Group, Tally]
MOST_GROUPS = 10_000  # as many as a survey's public questions can make
MOST_BYTES = 2 << 30  # of the tallies of all groups


def as_columns(by: str | Iterable[str] | None) -> By:
    """The columns to group by, each once: none, one or several."""
    if by is None:
        return ()
    return (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))


def check_group_count(count: int, mechanism: Mechanism, by: By) -> None:
    """Refuse more groups than fit into memory: somebody named a column of people, not of groups."""
    most = min(MOST_GROUPS, max(1, MOST_BYTES // tally_size(mechanism)))
    if count > most:
        names, plural = " and ".join(map(quoted, by)), len(by) > 1
        raise DataError(
            f"the column{'s' * plural} {names} make{'' if plural else 's'} more than {most:,} "
            f"groups, each with a tally of {mechanism.m:,} items, and they would not fit; "
            "group by fewer values"
        )


class TalliesByValue:
    """Tallies by the value of a column, begun as values appear. Several columns make tuples of
    values; without a column there is one tally, under None.
    """

    def __init__(self, mechanism: Mechanism, by: By = ()) -> None:
        self.mechanism, self.by = mechanism, by
        self._builders: dict[Group, TallyBuilder] = {} if by else {None: TallyBuilder(mechanism)}
        self._lock = threading.Lock()

    def builder(self, group: Group) -> TallyBuilder:
        """The builder of a group's tally."""
        with self._lock:
            if group not in self._builders:
                check_group_count(len(self._builders) + 1, self.mechanism, self.by)
                self._builders[group] = TallyBuilder(self.mechanism)
            return self._builders[group]

    def add(self, batch: pa.RecordBatch, column: str = "report", counts: str | None = None) -> None:
        """Count an Arrow record batch, each row once or as often as the column `counts` says. If
        there is a column `fingerprint`, rows that name another mechanism are refused and counted.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.by:
            self._add(None, batch, column, counts)
            return
        codes = np.zeros(len(batch), np.int64)
        values: list[list[Group]] = []  # of every column; None stands for null and NaN
        for name in self.by:
            encoded = batch.column(name).dictionary_encode()
            indices = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
            keys = [None if key != key else key for key in encoded.dictionary.to_pylist()]
            values.append([*keys, None])
            codes = codes * len(values[-1]) + indices % len(values[-1])  # -1 is the last
        for code in np.unique(codes).tolist():
            rows = batch.filter(pa.array(codes == code))
            self._add(_decode_group(code, values), rows, column, counts)

    def _add(self, group: Group, batch: pa.RecordBatch, column: str, counts: str | None) -> None:
        import pyarrow.compute as pc

        builder, size = self.builder(group), self.mechanism.report_size
        if "fingerprint" in batch.schema.names:
            ours = pc.equal(batch.column("fingerprint"), self.mechanism.fingerprint)
            ours = ours.fill_null(False)
            others = batch.filter(pc.invert(ours))
            refused = int(_read_counts(others, counts).sum()) if counts else len(others)
            builder.refuse("fingerprint", refused)
            batch = batch.filter(ours)
        reports = report_rows(batch.column(column), size)
        builder.add(*builder.fitting(reports, _read_counts(batch, counts) if counts else None))

    def tallies(self, threads: int | None = None) -> Tallies:
        """The finished tallies."""
        tallies = {}
        while self._builders:  # one after the other, so that each builder's memory is freed
            group, builder = self._builders.popitem()
            tallies[group] = builder.tally(threads)
        return dict(reversed(tallies.items()))


def _decode_group(code: int, values: list[list[Group]]) -> Group:
    """The value, or the tuple of values, that a code stands for."""
    group = []
    for column in reversed(values):
        code, place = divmod(code, len(column))
        group.append(column[place])
    return group[0] if len(group) == 1 else tuple(reversed(group))


def _read_counts(batch: pa.RecordBatch, column: str) -> Ints:
    values = batch.column(column)
    if values.null_count:
        raise DataError(f'the column "{column}" has a row without a number')
    return as_times(values.to_numpy(zero_copy_only=False), len(values))


def tally_files(
    paths: Iterable[Path],
    mechanism: Mechanism,
    by: str | Iterable[str] | None = None,
    advance: Advance = lambda _: None,
    counted: bool = False,
    threads: int | None = None,
) -> Tallies:
    """Tally files of reports, or of `report,count` tables if `counted`: one tally per value of the
    column `by`, or per tuple of values of several columns; under None without `by`. Threads read
    and count the row groups.
    """
    columns = as_columns(by)
    groups, lock = TalliesByValue(mechanism, columns), threading.Lock()
    counts = "count" if counted else None

    def count(piece: Piece) -> None:
        for batch in read_piece(piece, mechanism, columns, counted):
            with name_in_errors(piece.path):
                groups.add(batch, counts=counts)
        with lock:
            advance(piece.size)

    pieces = [piece for path in paths for piece in split_file(path, mechanism, columns, counted)]
    run_blocks(lambda k, _: count(pieces[k]), len(pieces), 1, threads, fewest=2)
    return groups.tallies(threads)


def report_rows(column: pa.Array, size: int) -> Bytes | Ints | list[bytes]:
    """An Arrow column of reports: as an n x size array if every value has this size, otherwise as a
    list (null becomes empty). Numbers are tickets, 32 bits unsigned, or 64 bits signed from engines
    that have no unsigned integers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    n, first = len(column), column.offset
    if pa.types.is_integer(column.type):
        if column.null_count:  # no ticket is as large as 2^32
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
