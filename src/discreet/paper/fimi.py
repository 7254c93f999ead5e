"""Whole FIMI files of item numbers: one line per person, items separated by blanks; plain, .gz or
.xz.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError
from discreet.files import Advance

Ints = NDArray[np.int64]

_LONGEST = 18  # digits of an id that a 64-bit integer certainly holds


@dataclass(frozen=True, eq=False)
class Lines:
    """All item ids in order, how many there are on every line (repeated ones counted), and the
    file's hash.
    """

    ids: Ints
    lengths: Ints
    sha256: str


def read(path: Path, advance: Advance = lambda _: None) -> Lines:
    """The lines of a file; raises DataError with the number of the first that is wrong."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, lambda raw: raw)
    try:
        text = unpack(packed).rstrip() + b"\n"
    except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise DataError(f"{path} cannot be read to its end: {error}") from None
    advance(len(packed))
    if text == b"\n":
        raise DataError(f"{path} is empty; it should hold one line of item ids per person")
    return Lines(*_parsed(path, text), hashlib.sha256(packed).hexdigest())


def _parsed(path: Path, text: bytes) -> tuple[Ints, Ints]:
    letters = np.frombuffer(text, np.uint8)
    digit = (letters >= ord("0")) & (letters <= ord("9"))
    starts = np.flatnonzero(digit & ~np.concatenate(([False], digit[:-1])))
    ends = np.flatnonzero(letters == ord("\n"))
    lengths = np.diff(np.searchsorted(starts, ends), prepend=0)
    blank = np.isin(letters, np.frombuffer(b" \n\r\t", np.uint8))
    if not (digit | blank).all() or not lengths.all() or _longest(starts, digit) > _LONGEST:
        raise _malformed(path, text)
    return np.fromstring(text, np.int64, sep=" "), lengths


def _longest(starts: Ints, digit: Any) -> int:
    """The largest number of digits of an id: each runs to the next place that is no digit."""
    stops = np.flatnonzero(~digit)
    return int((stops[np.searchsorted(stops, starts)] - starts).max())


def _malformed(path: Path, text: bytes) -> DataError:
    """The sentence about the first line that is not one."""
    for number, line in enumerate(text.rstrip().split(b"\n"), 1):
        where = f"{path}, line {number}"
        if not line.strip():
            return DataError(f"{where} is empty; every line holds the items of one person")
        for token in line.split():
            if not token.isdigit() or len(token) > _LONGEST:
                bad = token.decode("ascii", "backslashreplace")[:40]
                return DataError(f'{where}: "{bad}" is not an item id; items are whole numbers')
    return DataError(f"{path} holds a sign that separates nothing; blanks separate items")
