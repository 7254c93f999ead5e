"""A survey file as TOML, from its content: the keys that `reading` reads, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from discreet.errors import PolicyError
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

_BARE = re.compile("[A-Za-z0-9_-]+")
_LINE = 100  # characters of a list in one line


def to_toml(document: JsonObject) -> str:
    """The text of a survey file with this content.

    >>> print(to_toml({"name": "a", "about": {"organiser": "Ghent"}, "level": [{"epsilon": 1}]}))
    name = "a"
    <BLANKLINE>
    [about]
    organiser = "Ghent"
    <BLANKLINE>
    [[level]]
    epsilon = 1
    <BLANKLINE>
    """
    return "\n".join(_table(document, "")).strip("\n") + "\n"


def _table(table: Mapping[str, object], path: str) -> Iterator[str]:
    """The lines of a table: its plain values first, then the tables in it."""
    inner = [key for key, value in table.items() if _is_table(value) or _are_tables(value)]
    yield from (f"{_key(key)} = {_value(v)}" for key, v in table.items() if key not in inner)
    for key in inner:
        value, name = table[key], f"{path}{_key(key)}"
        if isinstance(value, Mapping):
            yield from ("", f"[{name}]", *_table(value, f"{name}."))
        elif isinstance(value, Sequence):
            for row in value:
                yield from ("", f"[[{name}]]", *_table(row, f"{name}."))


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_tables(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return is_list and all(map(_is_table, value))  # type: ignore[call-overload]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    """Texts of TOML are escaped as those of JSON, but for one control character."""
    if isinstance(value, date | Decimal):  # a datetime is a date, too
        return value.isoformat() if isinstance(value, date) else str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        cells = [_value(cell) for cell in value]
        line = f"[{', '.join(cells)}]"
        return line if len(line) <= _LINE else "\n".join(["[", *(f"  {c}," for c in cells), "]"])
    if isinstance(value, Mapping):
        raise PolicyError(f"a table in a list of other values cannot be written: {quoted(value)}")
    if value is None or (isinstance(value, float) and value != value):
        raise PolicyError(f"{quoted(value)} cannot be written in a survey file; leave the key out")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
