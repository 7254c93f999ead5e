"""Text files: JSON read strictly, and what a file is that was meant to be UTF-8 text with commas
and is not, with what to do about it (the rest of a sentence that begins with its name).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

SPREADSHEET = "is a spreadsheet; save its table as CSV (UTF-8, commas between the columns)"
NOT_UTF_8 = 'is not UTF-8 text (Latin-1, perhaps); save it as UTF-8, in spreadsheets "CSV UTF-8"'
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_STARTS = {
    b"\xff\xfe\0\0": "is UTF-32 text; save it as UTF-8",
    b"\0\0\xfe\xff": "is UTF-32 text; save it as UTF-8",
    b"\xff\xfe": 'is UTF-16 text; save it as UTF-8, in spreadsheets "CSV UTF-8"',
    b"\xfe\xff": 'is UTF-16 text; save it as UTF-8, in spreadsheets "CSV UTF-8"',
    b"PK\x03\x04": SPREADSHEET.replace("a spreadsheet", "a spreadsheet or another zip file"),
    b"\xd0\xcf\x11\xe0": SPREADSHEET,
    b"\x1f\x8b": "is packed with gzip; unpack it",
    b"\xfd7zXZ": "is packed with xz; unpack it",
    b"PAR1": "is a Parquet file, not text; where one is taken its name ends in .parquet",
}
_MARKS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_json(text: str | bytes, **parse: Callable[[str], Any]) -> Any:
    """JSON in which no object has a key twice: of two values every reader takes another one.

    >>> read_json('{"padding": 1, "padding": 5}')
    Traceback (most recent call last):
    ValueError: the key "padding" appears twice
    """
    return json.loads(text, object_pairs_hook=_refuse_duplicate_keys, **parse)  # type: ignore[arg-type]


def parse_document(raw: bytes) -> Any:
    """A document as every language reads it: UTF-8 (a byte-order mark is ignored), numbers as IEEE
    doubles, so 2.0 is 2, no key twice; ValueError or RecursionError for anything else.

    >>> parse_document(b'{"padding": 2.0}')
    {'padding': 2}
    """
    text = raw.decode("utf-8-sig")
    return read_json(text, parse_float=_double, parse_int=_double, parse_constant=_refuse)


def _double(text: str) -> int | float:
    """A number as JavaScript reads it: whole where the nearest double is."""
    number = float(text)
    return int(number) if abs(number) < 2.0**53 and number.is_integer() else number


def _refuse(text: str) -> None:
    raise ValueError(text)  # NaN and Infinity are no JSON


def _refuse_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f'the key "{key}" appears twice')
        table[key] = value
    return table


def wrong_format(head: bytes) -> str | None:
    """What the file with these first bytes is, where it is no UTF-8 text, and what to do.

    >>> wrong_format("item".encode("utf-16"))
    'is UTF-16 text; save it as UTF-8, in spreadsheets "CSV UTF-8"'
    """
    for start, what in _STARTS.items():
        if head.startswith(start):
            return what
    if b"\0" in head[:2]:  # every second byte of English in UTF-16 without a byte-order mark
        return _STARTS[b"\xff\xfe"]
    return "is not text: it has zero bytes" if b"\0" in head else None


def wrong_separator(header: str, wanted: Iterable[str]) -> str | None:
    """What a table with this first line has between its columns, where that is why a wanted column
    is not found, and what to do.

    >>> wrong_separator("item;region", ["item"])
    'has semicolons between its columns; save it with commas'
    """
    if set(wanted) <= set(_cells(header, ",")):
        return None
    for mark, what in _MARKS.items():
        if mark in header and set(wanted) <= set(_cells(header, mark)):
            return f"has {what} between its columns; save it with commas"
    return None


def _cells(header: str, mark: str) -> list[str]:
    return [cell.strip().strip('"') for cell in header.split(mark)]
