"""Files in and out, streamed in blocks; an interrupted output never looks complete.

Answers: CSV or Parquet with a column of items, `user,item` rows or a column of lists for sets, and
FIMI `.dat` lines, plain, `.gz` or `.xz`. Items are labels, also where a file stores them as whole
numbers; they are indices only where that is said.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import texts
from discreet.errors import DataError, DesignError
from discreet.labels import show
from discreet.mechanism import Mechanism

BLOCK = 1 << 20  # people per block, at most
BLOCK_BYTES = 1 << 26  # of their reports, at most
Advance = Callable[[int], None]  # told how many bytes of the input were read
Block = Any  # item indices, or (items, offsets) for sets


class Wanted(NamedTuple):
    """What is read of a data file."""

    column: str = "item"
    user: str = "user"
    indices: bool = False  # the items are indices, not labels
    keep: tuple[str, ...] = ()  # columns to pass on


class Answers(NamedTuple):
    """Answers of some people, with the columns of theirs that were asked for."""

    block: Block
    kept: Any = None  # an Arrow table, one row per person


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
            return texts.read_json(text)
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
    indices: bool = False,
) -> Iterator[Block]:
    """Blocks of answers of a data file, as item indices or as (items, offsets) for sets. Its items
    are labels, or indices where that is said.
    """
    asked = Wanted(column, user, indices)
    return (answers.block for answers in read_people(path, mechanism, asked, advance))


def read_people(
    path: str, mechanism: Mechanism, asked: Wanted, advance: Advance = lambda _: None
) -> Iterator[Answers]:
    """Blocks of answers of a data file, with the columns to keep."""
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
        return _parquet_answers(path, mechanism, asked, advance)
    if kind == ".dat":
        if asked.keep:
            raise DataError(f"{path}: a FIMI file has no columns to keep; use CSV or Parquet")
        return _fimi_answers(path, mechanism, asked.indices, advance)
    if kind not in (".csv", ".txt", ".tsv"):
        what = f" {texts.SPREADSHEET}" if kind in texts.SPREADSHEETS else ""
        raise DataError(
            f"{path}{what}: answers are .csv, .parquet or FIMI .dat files, these also as .gz or .xz"
        )
    return _csv_answers(path, packed, mechanism, asked, advance)


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
        if strange := texts.stranger(stream.peek(1 << 12)):  # type: ignore[attr-defined]
            raise DataError(f"{path} {strange}")
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


def _fimi_answers(
    path: str, mechanism: Mechanism, indices: bool, advance: Advance
) -> Iterator[Answers]:
    """Sets; for single input the line's only item."""
    from discreet.answers import distinct, lookup

    for before, labels, lengths in read_fimi(path, advance, people(mechanism)):
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        if not mechanism.policy.takes_sets and (lengths != 1).any():
            line = int((lengths != 1).argmax())
            raise DataError(
                f"{path}, line {before + line + 1} has {lengths[line]} items; the policy's input "
                "is single"
            )
        try:
            items = lookup(mechanism, labels, indices)
        except DataError as error:
            known = set(map(str, range(mechanism.m))) if indices else mechanism.policy.index
            place = next(k for k, label in enumerate(labels.to_pylist()) if label not in known)
            line = before + int(np.searchsorted(offsets, place, side="right"))
            raise DataError(f"{path}, line {line}: {error}") from None
        yield Answers(distinct(items, offsets) if mechanism.policy.takes_sets else items)


def _csv_answers(
    path: str, packed: str, mechanism: Mechanism, asked: Wanted, advance: Advance
) -> Iterator[Answers]:
    import pyarrow as pa
    import pyarrow.csv as pc

    wanted = (asked.column, asked.user, *asked.keep)
    with _opened(path, packed, advance) as stream:
        _check_text(path, stream.peek(1 << 12), asked)  # type: ignore[attr-defined]
        try:
            options = {
                # a blank line is a row without an item, not nothing: it is refused like one
                "parse_options": pc.ParseOptions(ignore_empty_lines=False),
                "convert_options": pc.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()),
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            }
            if os.path.isfile(path):
                reader = pc.open_csv(stream, pc.ReadOptions(block_size=1 << 22), **options)
                yield from _table_answers(path, reader.schema, reader, mechanism, asked)
            else:  # a pipe: wait for it here, where Ctrl-C is heard, and give Arrow whole lines
                tables = (
                    pc.read_csv(io.BytesIO(block), **options) for block in _whole_lines(stream)
                )
                first = next(tables, None)
                if first is None:
                    raise DataError(f"{path} is empty")
                batches = (
                    batch for table in chain((first,), tables) for batch in table.to_batches()
                )
                yield from _table_answers(path, first.schema, batches, mechanism, asked)
        except pa.ArrowInvalid as error:
            message = str(error).splitlines()[0]
            if "Empty CSV" in message:
                raise DataError(f"{path} is empty") from None
            if "invalid UTF8" in message:
                raise DataError(f"{path} {texts.NOT_UTF_8}") from None
            raise DataError(f"{path} is not a table: {message[:160]}") from None


def _check_text(path: str, head: bytes, asked: Wanted) -> None:
    """Refuse what is no UTF-8 text with commas, as far as its beginning tells."""
    if strange := texts.stranger(head):
        raise DataError(f"{path} {strange}")
    line, end, _ = head.partition(b"\n")
    try:
        header = line.decode("utf-8-sig").strip("\r")
    except UnicodeDecodeError:
        if end:  # otherwise it may be cut within a character
            raise DataError(f"{path} {texts.NOT_UTF_8}") from None
        return
    if end and not header.strip():
        raise DataError(f"{path}: its first line, which names the columns, is blank")
    if strange := texts.separated(header, [asked.column]):
        raise DataError(f"{path} {strange}")


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
    path: str, mechanism: Mechanism, asked: Wanted, advance: Advance
) -> Iterator[Answers]:
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

        yield from _table_answers(path, file.schema_arrow, batches(), mechanism, asked)


def _table_answers(
    path: str, schema: Any, batches: Iterable[Any], mechanism: Mechanism, asked: Wanted
) -> Iterator[Answers]:
    """From the batches of a table: a column of items, of lists, or `user,item` rows."""
    from discreet.answers import lists, lookup

    names = [name.lstrip("\ufeff") for name in schema.names]
    in_lists = _check_columns(path, schema, names, mechanism, asked)
    place = names.index(asked.column)
    grouped = _Grouped(path)
    start, some, last = 0, people(mechanism), None
    for batch in (x.slice(k, some) for x in batches for k in range(0, len(x), some)):
        values = batch.column(place)
        if values.null_count:
            row = start + int(values.is_null().to_numpy(zero_copy_only=False).argmax()) + 1
            raise DataError(f"{path}, row {row} {_missing(in_lists, mechanism)}")
        try:
            kept = _kept(batch, names, asked.keep)
            if in_lists:
                yield Answers(lists(mechanism, values, asked.indices), kept)
            elif not mechanism.policy.takes_sets:
                if asked.user in names:
                    last = _refuse_repeats(batch.column(names.index(asked.user)), last)
                yield Answers(lookup(mechanism, values, asked.indices), kept)
            else:
                users = batch.column(names.index(asked.user))
                yield from grouped.add(users, lookup(mechanism, values, asked.indices), kept)
        except DataError as error:
            raise DataError(f"{path}, rows {start + 1} to {start + len(batch)}: {error}") from None
        start += len(batch)
    yield from grouped.rest()


def _refuse_repeats(users: Any, last: Any) -> Any:
    """Refuse a user with several rows, one after another; the last user."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(users):
        return last
    before = pa.concat_arrays([pa.array([last], users.type), users.slice(0, len(users) - 1)])
    again = users.filter(pc.equal(users, before))  # a user who is not named is nobody's repeat
    if len(again):
        raise DataError(
            f"the user {show(again[0].as_py())} has several rows, and the input is single: "
            'everybody answers once; input = "set" takes several items of a person'
        )
    return users[-1].as_py()


def _check_columns(
    path: str, schema: Any, names: list[str], mechanism: Mechanism, asked: Wanted
) -> bool:
    """Refuse a table without the columns that are asked for; whether its items are in lists."""
    import pyarrow as pa

    if {"stderr", "lower", "upper"} <= {*names}:
        raise DataError(f"{path} holds estimates, not answers: one row per person is read")
    if names[:1] == ["report"] and asked.column not in names:
        raise DataError(f"{path} holds reports, which are perturbed already; count them with tally")
    for name, option in ((asked.column, "--column"), *((name, "--keep") for name in asked.keep)):
        if name not in names:
            raise DataError(
                f'{path} has no column "{name}"; it has {", ".join(names)}; name another with '
                f"{option}"
            )
        if names.count(name) > 1:
            raise DataError(f'{path} has {names.count(name)} columns "{name}"; keep one')
    for name in asked.keep:
        if pa.types.is_nested(schema.field(names.index(name)).type):
            raise DataError(f'{path}: column "{name}" cannot be kept: it has several values a row')
    kind = schema.field(names.index(asked.column)).type
    in_lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    single = not mechanism.policy.takes_sets
    if single and in_lists:
        raise DataError(
            f'{path}: column "{asked.column}" holds lists, but the policy\'s input is single'
        )
    if not single and not in_lists and asked.user not in names:
        raise DataError(
            f'{path}: sets need a column of lists, or rows of "{asked.user}" and '
            f'"{asked.column}"; there is no column "{asked.user}"'
        )
    return bool(in_lists)


def _missing(in_lists: bool, mechanism: Mechanism) -> str:
    """The rest of a sentence about a row without an answer."""
    if in_lists:
        return "has no list; write an empty list for someone who has no item"
    if mechanism.policy.takes_sets:
        return "is blank or has no item; remove it, or use lists for people who have no item"
    return "is blank or has no item; remove it if this person did not answer"


def _kept(batch: Any, names: list[str], keep: tuple[str, ...]) -> Any:
    """The columns to keep of a batch, as a table."""
    import pyarrow as pa

    if not keep:
        return None
    columns = [batch.column(names.index(name)) for name in keep]
    plain = [x.cast(x.type.value_type) if pa.types.is_dictionary(x.type) else x for x in columns]
    return pa.table(dict(zip(keep, plain, strict=True)))


class _Grouped:
    """Turns `user,item` rows into sets; the rows of a user stand together, which is checked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen: set[int] = set()
        self.user: Any = None
        self.items: list[NDArray[np.int64]] = []
        self.kept: Any = None  # the current user's row of the columns to keep

    def add(self, users: Any, items: NDArray[np.int64], kept: Any = None) -> Iterator[Answers]:
        """The sets that are complete after these rows."""
        from discreet.answers import distinct

        if users.null_count:
            raise DataError("a row has no user")
        names = users.to_numpy(zero_copy_only=False)
        if not len(names):
            return
        starts = np.flatnonzero(np.concatenate(([True], names[1:] != names[:-1])))
        goes_on = names[0] == self.user
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
        rows = None if kept is None else self._rows(kept, starts, goes_on)
        if done:
            sets = distinct(np.concatenate(done), np.cumsum([0] + [len(x) for x in done]))
            yield Answers(sets, rows)

    def _rows(self, kept: Any, starts: NDArray[np.int64], goes_on: bool) -> Any:
        """One row of kept columns for every set that is complete; the rows of a user must agree."""
        import pyarrow as pa

        before = [] if self.kept is None else [self.kept]
        whole = pa.concat_tables([*(before if goes_on else []), kept])
        first = starts + len(before) if goes_on else starts
        first = np.concatenate(([0], first[1:]))  # of a user that goes on, her first row of all
        inside = np.ones(len(whole), dtype=bool)
        inside[first] = False
        for name in whole.column_names:
            codes = whole[name].combine_chunks().dictionary_encode("encode").indices.to_numpy()
            if (inside[1:] & (codes[1:] != codes[:-1])).any():
                raise DataError(f'the rows of a user differ in "{name}", which cannot be kept then')
        rows = pa.concat_tables([*([] if goes_on else before), whole.take(first)])
        self.kept = rows.slice(len(rows) - 1)
        return rows.slice(0, len(rows) - 1)

    def rest(self) -> Iterator[Answers]:
        """The last user's set."""
        from discreet.answers import distinct

        if self.user is not None:
            last = np.concatenate(self.items)
            yield Answers(distinct(last, np.array([0, len(last)])), self.kept)
