"""Open files and read them in blocks, with progress."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from discreet.arrays.types import Ints
from discreet.errors import DataError, DesignError
from discreet.policy import sniff

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Advance = Callable[[int], None]  # called with the number of bytes read since the last call
Stream = io.BufferedReader | gzip.GzipFile | lzma.LZMAFile


def read_shares(path: str, what: str) -> Mapping[str, float]:
    """Read names and their shares from a JSON object, or from a CSV with a header and two
    columns. The values of JSON are validated later.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if path.endswith(".json"):
            return sniff.read_json(text)
        rows = [line.rsplit(",", 1) for line in text.splitlines() if line.strip()]
        return {name.strip(): float(share) for name, share in rows[1:]}
    except OSError as error:
        raise DesignError(f"{what} {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DesignError(
            f"{what} {path} must be a CSV with a header and two columns, or a JSON object, of "
            "shares"
        ) from None


def parquet_file(path: str | Path, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a Parquet file for streaming; it never loads a whole row group at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} is not a complete Parquet file: {str(error).splitlines()[0][:120]}"
        ) from None


class _ProgressReader(io.RawIOBase):
    """A binary file that reports how many bytes were read."""

    def __init__(self, raw: BinaryIO, advance: Advance) -> None:
        self._raw, self._advance = raw, advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._raw.readinto(buffer) or 0  # type: ignore[attr-defined]
        self._advance(count)
        return count


@contextmanager
def open_stream(path: str, packed: str, advance: Advance) -> Iterator[Stream]:
    """Open a file, or standard input for "-", and unpack it if `packed` is .gz or .xz."""
    try:
        raw: BinaryIO = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    with raw:
        stream: io.BufferedReader = io.BufferedReader(_ProgressReader(raw, advance), 1 << 20)
        try:
            with _unpack(stream, packed) as plain:
                yield plain
        except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
            raise DataError(f"{path} cannot be read to its end: {error}") from None


def _unpack(stream: io.BufferedReader, packed: str) -> Stream:
    if packed == ".gz":
        return gzip.GzipFile(fileobj=stream)
    return lzma.LZMAFile(stream) if packed == ".xz" else stream


def read_fimi(
    path: str, advance: Advance = lambda _: None, lines_per_block: int = 1 << 20
) -> Iterator[tuple[int, pa.StringArray, Ints]]:
    """Read FIMI lines in blocks: one line per person, items separated by blanks. Each block is the
    number of lines before it, all its items in order, and the number of items on each line.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    before = 0
    with open_stream(path, Path(path).suffix.lower(), advance) as stream:
        if wrong := sniff.wrong_format(stream.peek(1 << 12)):
            raise DataError(f"{path} {wrong}")
        while lines := list(islice(stream, lines_per_block)):
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
