"""Files in and out, streamed in blocks; an interrupted output never looks complete.

Answers: CSV or Parquet with a column of items, `user,item` rows or a column of lists for sets, and
FIMI `.dat` lines, plain, `.gz` or `.xz`.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError, DesignError
from discreet.mechanism import Mechanism

BLOCK = 1 << 20  # people per block, at most
BLOCK_BYTES = 1 << 26  # of their reports, at most
Advance = Callable[[int], None]  # told how many bytes of the input were read
Block = Any  # item indices, or (items, offsets) for sets


# ---- output --------------------------------------------------------------------------------------


@contextmanager
def written_aside(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write to; renamed to `path` when the block succeeds, removed when it
    does not.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"{path} cannot be written: it is a folder or a device; name a file")
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from None
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        umask = os.umask(0)
        os.umask(umask)
        aside.chmod(0o666 & ~umask)
        with open(aside, "rb") as done:
            os.fsync(done.fileno())
        aside.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            aside.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write a whole text file, all or nothing."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def read_shares(path: str, what: str) -> Any:
    """A mapping of names to shares from a JSON object, or from a CSV with a header and two
    columns.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if path.endswith(".json"):
            return json.loads(text)
        rows = [line.rsplit(",", 1) for line in text.splitlines() if line.strip()]
        return {name.strip(): float(share) for name, share in rows[1:]}
    except OSError as error:
        raise DesignError(f"{what} {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DesignError(
            f"{what} {path} must be a CSV with a header and two columns, or a JSON object, of "
            "shares"
        ) from None


def parquet_file(path: str | Path, metadata: Any = None) -> Any:
    """A Parquet file, to be streamed: not read by whole row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} is not a whole Parquet file: {str(error).splitlines()[0][:120]}"
        ) from None


# ---- answers -------------------------------------------------------------------------------------


def read_answers(
    path: str,
    mechanism: Mechanism,
    column: str = "item",
    user: str = "user",
    advance: Advance = lambda _: None,
) -> Iterator[Block]:
    """Blocks of answers of a data file, as item indices or as (items, offsets) for sets."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    packed = suffixes[-1] if suffixes and suffixes[-1] in (".gz", ".xz") else ""
    kind = (
        suffixes[-2]
        if packed and len(suffixes) > 1
        else suffixes[-1]
        if suffixes and not packed
        else ""
    ) or ".csv"
    if path == "-":
        kind = ".csv"
    if kind == ".parquet":
        return _parquet_answers(path, mechanism, column, user, advance)
    if kind == ".dat":
        return _fimi_answers(path, mechanism, advance)
    if kind not in (".csv", ".txt", ".tsv"):
        raise DataError(
            f"{path}: answers are .csv, .parquet or FIMI .dat files, these also as .gz or .xz"
        )
    return _csv_answers(path, packed, mechanism, column, user, advance)


class _Counted(io.RawIOBase):
    """A binary file that tells how far it was read."""

    def __init__(self, raw: BinaryIO, advance: Advance) -> None:
        self._raw, self._advance = raw, advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        self._advance(count or 0)
        return count or 0


@contextmanager
def _opened(path: str, packed: str, advance: Advance) -> Iterator[BinaryIO]:
    try:
        raw: Any = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    with raw:
        counted = io.BufferedReader(_Counted(raw, advance), 1 << 20)
        try:
            opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(packed, lambda file, _: file)
            with opener(counted, "rb") as plain:
                yield plain
        except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
            raise DataError(f"{path} cannot be read to its end: {error}") from None


def people(mechanism: Mechanism) -> int:
    """How many answers are perturbed at once."""
    return min(BLOCK, max(1024, BLOCK_BYTES // mechanism.report_size))


def read_fimi(
    path: str, advance: Advance = lambda _: None, block: int = BLOCK
) -> Iterator[tuple[int, Any, Any]]:
    """Blocks of FIMI lines, one line per person, items separated by blanks: the number of lines
    before the block, all items in order (an Arrow array of text), and how many are on each line.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    packed = Path(path).suffix.lower()
    before = 0
    with _opened(path, packed, advance) as stream:
        while lines := list(islice(stream, block)):
            text = pa.array([line.decode("utf-8", "replace") for line in lines], pa.string())
            text = pc.utf8_trim_whitespace(text)
            if pc.any(pc.match_substring(text, "\r")).as_py():
                raise DataError(f"{path}: lines must end in a line feed, not a carriage return")
            lists = pc.utf8_split_whitespace(text)
            items = lists.flatten()
            lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
            blank = pc.equal(text, "").to_numpy(zero_copy_only=False)  # split into one empty item
            if blank.any():
                items = items.filter(pc.not_equal(items, ""))
            yield before, items, np.where(blank, 0, lengths).astype(np.int64)
            before += len(lines)


def _fimi_answers(path: str, mechanism: Mechanism, advance: Advance) -> Iterator[Block]:
    """Sets; for single input the line's only item."""
    from discreet.perturb import distinct, lookup

    for before, labels, lengths in read_fimi(path, advance, people(mechanism)):
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        if not mechanism.policy.takes_sets and (lengths != 1).any():
            line = int((lengths != 1).argmax())
            raise DataError(
                f"{path}, line {before + line + 1} has {lengths[line]} items; the policy's input "
                "is single"
            )
        try:
            items = lookup(mechanism, labels)
        except DataError as error:
            known = mechanism.policy.index
            place = next(k for k, label in enumerate(labels.to_pylist()) if label not in known)
            line = before + int(np.searchsorted(offsets, place, side="right"))
            raise DataError(f"{path}, line {line}: {error}") from None
        yield distinct(items, offsets) if mechanism.policy.takes_sets else items


def _csv_answers(
    path: str, packed: str, mechanism: Mechanism, column: str, user: str, advance: Advance
) -> Iterator[Block]:
    import pyarrow as pa
    import pyarrow.csv as pc

    with _opened(path, packed, advance) as stream:
        try:
            convert = pc.ConvertOptions(
                column_types={column: pa.string(), user: pa.string()},
                strings_can_be_null=True,
                null_values=[""],
            )
            if os.path.isfile(path):
                reader = pc.open_csv(
                    stream, read_options=pc.ReadOptions(block_size=1 << 22), convert_options=convert
                )
                yield from _table_answers(path, reader.schema, reader, mechanism, column, user)
            else:  # a pipe: wait for it here, where Ctrl-C is heard, and give Arrow whole lines
                tables = (
                    pc.read_csv(io.BytesIO(block), convert_options=convert)
                    for block in _whole_lines(stream)
                )
                first = next(tables, None)
                if first is None:
                    raise DataError(f"{path} is empty")
                batches = (
                    batch for table in chain((first,), tables) for batch in table.to_batches()
                )
                yield from _table_answers(path, first.schema, batches, mechanism, column, user)
        except pa.ArrowInvalid as error:
            message = str(error).splitlines()[0]
            empty = "Empty CSV" in message
            raise DataError(
                f"{path} is empty" if empty else f"{path} is not a table: {message[:160]}"
            ) from None


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole CSV records, each with the header in front; a line break within quotes does
    not end a record.
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
    path: str, mechanism: Mechanism, column: str, user: str, advance: Advance
) -> Iterator[Block]:
    import pyarrow as pa

    file = parquet_file(path)
    with file:
        size, rows = os.path.getsize(path), max(1, file.metadata.num_rows)

        def batches() -> Iterator[Any]:
            try:
                for batch in file.iter_batches(people(mechanism), use_threads=False):
                    yield batch
                    advance(size * len(batch) // rows)
            except (pa.ArrowInvalid, OSError) as error:
                raise DataError(f"{path} is damaged: {str(error).splitlines()[0][:120]}") from None

        yield from _table_answers(path, file.schema_arrow, batches(), mechanism, column, user)


def _table_answers(
    path: str, schema: Any, batches: Iterable[Any], mechanism: Mechanism, column: str, user: str
) -> Iterator[Block]:
    """From the batches of a table: a column of items, of lists, or `user,item` rows."""
    import pyarrow as pa

    from discreet.perturb import lookup, ragged

    names = [name.lstrip("\ufeff") for name in schema.names]
    if column not in names:
        raise DataError(
            f'{path} has no column "{column}"; it has {", ".join(names)}; name another with '
            "--column"
        )
    if names.count(column) > 1:
        raise DataError(f'{path} has {names.count(column)} columns "{column}"; keep one')
    kind = schema.field(names.index(column)).type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    single = not mechanism.policy.takes_sets
    if single and lists:
        raise DataError(f'{path}: column "{column}" holds lists, but the policy\'s input is single')
    if not single and not lists and user not in names:
        raise DataError(
            f'{path}: sets need a column of lists, or rows of "{user}" and "{column}"; there is '
            f'no column "{user}"'
        )
    grouped = _Grouped(path)
    start = 0
    some = people(mechanism)
    for batch in (x.slice(k, some) for x in batches for k in range(0, len(x), some)):
        values = batch.column(names.index(column))
        try:
            if lists:
                yield ragged(mechanism, values)
            elif single:
                yield lookup(mechanism, values)
            else:
                yield from grouped.add(batch.column(names.index(user)), lookup(mechanism, values))
        except DataError as error:
            raise DataError(f"{path}, rows {start + 1} to {start + len(batch)}: {error}") from None
        start += len(batch)
    yield from grouped.rest()


class _Grouped:
    """Turns `user,item` rows into sets; the rows of a user stand together, which is checked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen: set[int] = set()
        self.user: Any = None
        self.items: list[NDArray[np.int64]] = []

    def add(self, users: Any, items: NDArray[np.int64]) -> Iterator[Block]:
        """The sets that are complete after these rows."""
        from discreet.perturb import distinct

        if users.null_count:
            raise DataError("a row has no user")
        names = users.to_numpy(zero_copy_only=False)
        if not len(names):
            return
        starts = np.flatnonzero(np.concatenate(([True], names[1:] != names[:-1])))
        pieces = np.split(items, starts[1:])
        done: list[NDArray[np.int64]] = []
        for first, piece in zip(starts, pieces, strict=True):
            if names[first] != self.user:
                if self.user is not None:
                    done.append(np.concatenate(self.items))
                if hash(names[first]) in self.seen:
                    raise DataError(
                        f"the rows of user {names[first]!r} do not stand together; sort the file "
                        "by user"
                    )
                self.seen.add(hash(names[first]))
                self.user, self.items = names[first], []
            self.items.append(piece)
        if done:
            yield distinct(np.concatenate(done), np.cumsum([0] + [len(x) for x in done]))

    def rest(self) -> Iterator[Block]:
        """The last user's set."""
        from discreet.perturb import distinct

        if self.user is not None:
            last = np.concatenate(self.items)
            yield distinct(last, np.array([0, len(last)]))
