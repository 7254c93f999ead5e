"""Policies from files: TOML, JSON or CSV. What a policy may hold is checked by `Policy`."""

from __future__ import annotations

import csv
import math
import re
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import DiscreetError, PolicyError
from discreet.policy import sniff
from discreet.policy.budgets import OPEN, Budget, Level, Pair
from discreet.policy.labels import quoted
from discreet.policy.policy import Policy
from discreet.policy.scales import SCALE_KEYS, read_scale
from discreet.policy.totals import read_totals
from discreet.policy.validation import refuse_duplicates

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

_BUDGETS = "budgets by item"  # of a CSV file; no key that anybody writes
SURVEY_KEYS = ("name", "about", "answers", "public", "translations")  # beside those of a question
KEYS = {  # of a question
    _BUDGETS,
    "question",
    "kind",
    "notion",
    "padding",
    "strict",
    "sizes",
    "users",
    "level",
    "pair",
    "items_file",
    "last",
    "totals",
    "blocks",
    "scale",
    "cap",
    "estimate",
    "items",
}
_LEVEL_KEYS = {"name", "epsilon", "items", "weight", "open"}
_PAIR_KEYS = {"levels", "epsilon", "protected", "one_way"}


def load(path: str | Path) -> Policy:
    """From a TOML or JSON policy file, or a CSV with the columns `item` and `epsilon`; "-" is TOML
    on standard input. Of a survey of one question, the question.
    """
    table, folder = read_table(path)
    try:
        return from_document(table, folder)
    except PolicyError as error:
        raise PolicyError(f"{shown_name(path)}: {error}") from None


def read_table(path: str | Path) -> tuple[JsonObject, Path]:
    """The keys and values of a file, and the folder that its paths are relative to."""
    path = Path(path)
    text = _read(path)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        items, budgets = _columns(path, text, ("item", "epsilon"))
        refuse_duplicates(items, "item")
        return {_BUDGETS: dict(zip(items, budgets, strict=True))}, path.parent
    try:
        if suffix == ".json":
            document = sniff.read_json(text, parse_float=Decimal)
        else:
            document = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        with suppress(ValueError, RecursionError):
            _refuse_others(path, sniff.read_json(text))
        kind = "JSON" if suffix == ".json" else "TOML"
        raise PolicyError(f"{shown_name(path)} is not {kind}: {error}") from None
    _refuse_others(path, document)
    if not isinstance(document, dict):
        raise PolicyError(f"{shown_name(path)}: the file must be a table of keys and values")
    return document, path.parent


def from_document(document: object, folder: Path | None) -> Policy:
    """From the content of a policy file (the keys that docs/policy.md lists)."""
    if isinstance(document, dict) and isinstance(document.get("question"), list):
        raise PolicyError(
            f"this is a survey of {len(document['question'])} questions; Survey.design reads it"
        )
    keys = SURVEY_KEYS if isinstance(document, dict) else ()
    if isinstance(document, dict):
        document = {key: value for key, value in document.items() if key not in keys}
    return read_question(document, folder, "the policy")


def read_question(document: object, folder: Path | None, what: str) -> Policy:
    """From the table of one question."""
    table = known_table(document, KEYS, what)
    if _BUDGETS in table:
        return Policy.from_budgets(table[_BUDGETS])
    keys = ("question", "kind", "notion", "padding", "strict", "blocks", "last")
    settings: JsonObject = {key: table[key] for key in keys if key in table}
    settings["pairs"] = tuple(_pair(row) for row in _rows(table, "pair"))
    settings["totals"] = read_totals(table.get("totals", {}))
    if "scale" in table:
        return read_scale(table, settings)
    surplus = next((key for key in SCALE_KEYS if key in table), None)
    if surplus:
        raise PolicyError(
            f"{surplus} goes with scale, the budget per step of an ordered question; write items "
            "into a [[level]]"
        )
    members = None
    if "items_file" in table:
        if not isinstance(table["items_file"], str):
            raise PolicyError(
                f"items_file = {quoted(table['items_file'])} must be the path of a CSV file"
            )
        path = (folder or Path()) / table["items_file"]
        members = _columns(path, _read(path), ("item", "level"))
    auto = settings.get("padding") == "auto"
    if auto:
        del settings["padding"]
    built = build(
        [known_table(row, _LEVEL_KEYS, "a level") for row in _rows(table, "level")],
        members,
        settings,
    )
    for key in ("sizes", "users"):
        if auto != (key in table):
            raise PolicyError(
                f'{key} {"is missing; it goes" if auto else "goes"} with padding = "auto"'
            )
    return (
        replace(built, padding=_auto_padding(built, table["sizes"], table["users"]))
        if auto
        else built
    )


def mark_open(rows: list[JsonObject], names: object) -> list[JsonObject]:
    """The rows of levels; those that are named have no epsilon."""
    if isinstance(names, str) or not isinstance(names, Sequence | set | frozenset):
        raise PolicyError(f"open = {quoted(names)} must be a list of names of levels")
    known = {row["name"] for row in rows if isinstance(row["name"], str)}
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise PolicyError(f"open names the level {quoted(name)}, which does not exist")
    return [{**row, "open": True} if row["name"] in names else row for row in rows]


def _auto_padding(policy: Policy, sizes: object, users: object) -> int:
    """The padding with the smallest expected error for people's set sizes (`sizes` = {1 = 0.2, 5 =
    0.8}) and their number.
    """
    from discreet.estimates.padding import choose_padding

    if type(users) is not int or users < 1:
        raise PolicyError(f"users = {quoted(users)} must be a whole number from 1")
    if not isinstance(sizes, dict) or not all(
        isinstance(x, int | Decimal) and not isinstance(x, bool) for x in sizes.values()
    ):
        raise PolicyError(
            f"sizes = {quoted(sizes)} must be a table of shares by number of items, such as "
            f"{{ 1 = 0.2, 5 = 0.8 }}"
        )
    try:
        return choose_padding(
            policy, {size: float(share) for size, share in sizes.items()}, users
        ).padding
    except DiscreetError as error:
        raise PolicyError(f'padding = "auto": {error}') from None


def build(
    rows: list[JsonObject],
    members: tuple[list[str], list[str]] | None,
    settings: JsonObject,
) -> Policy:
    """From the rows of levels; `members` are the items and their levels where the rows do not list
    them.
    """
    levels = []
    for row in rows:
        name = row.get("name")
        if name is not None and not isinstance(name, str):
            raise PolicyError(f"name = {quoted(name)} of a level must be a non-empty text")
        where = f"level {quoted(name)}"
        is_open = row.get("open", False)
        if not isinstance(is_open, bool):
            raise PolicyError(f"open = {quoted(is_open)} in {where} must be true or false")
        for key in ("name", "epsilon"):
            if key not in row and not (is_open and key == "epsilon"):
                raise PolicyError(f"{key} is missing in {where if name else 'a level'}")
        if is_open and row.get("epsilon") not in (None, OPEN):
            raise PolicyError(f"{where} is open, so it has no epsilon; leave one of them out")
        budget = OPEN if is_open else Budget.parse(row["epsilon"], where)
        levels.append(Level(name, budget, _weight(row.get("weight", 1))))  # type: ignore[arg-type]
    settings = with_blocks(settings)
    if members is None:
        items, level_of = _from_lists(rows)
    else:
        items, level_of = _from_members(rows, *members)
    return Policy(tuple(items), tuple(level_of), tuple(levels), **settings)


def with_blocks(settings: JsonObject) -> JsonObject:
    """`blocks = true` is a notion."""
    if "blocks" not in settings:
        return settings
    rest = {key: value for key, value in settings.items() if key != "blocks"}
    if not isinstance(settings["blocks"], bool):
        raise PolicyError(f"blocks = {quoted(settings['blocks'])} must be true or false")
    if settings["blocks"] and rest.setdefault("notion", "blocks") != "blocks":
        raise PolicyError(f'blocks = true and notion = "{rest["notion"]}" do not go together')
    return rest


def _weight(raw: object) -> object:
    """A number of any kind as a float; whatever else it is, the policy refuses it."""
    if isinstance(raw, bool) or not isinstance(raw, Real | Decimal):
        return raw
    try:
        number = float(raw)
    except OverflowError:  # an integer of hundreds of digits
        return raw
    return number if math.isfinite(number) else raw


def _from_lists(rows: list[JsonObject]) -> tuple[list[str], list[int]]:
    items: list[str] = []
    level_of: list[int] = []
    home: dict[str, int] = {}
    for k, row in enumerate(rows):
        listed = row.get("items")
        if isinstance(listed, str) or not isinstance(listed, Sequence) or not listed:
            raise PolicyError(
                f"items = {quoted(listed)} in level {quoted(row['name'])} must be a non-empty list "
                "of labels"
            )
        for item in listed:
            if isinstance(item, str) and home.setdefault(item, k) != k:
                raise PolicyError(
                    f"item {quoted(item)} is in two levels: {quoted(rows[home[item]]['name'])} and "
                    f"{quoted(row['name'])}"
                )
        items += listed
        level_of += [k] * len(listed)
    return items, level_of


def _from_members(
    rows: list[JsonObject], items: list[str], names: list[str]
) -> tuple[list[str], list[int]]:
    for row in rows:
        if "items" in row:
            raise PolicyError(
                f"level {quoted(row['name'])} lists items, but items_file names the items already"
            )
    place = {row["name"]: k for k, row in enumerate(rows)}
    unknown = next((name for name in names if name not in place), None)
    if unknown is not None:
        raise PolicyError(
            f"items_file names the level {quoted(unknown)}; the policy has "
            f"{', '.join(quoted(name)[1:-1] for name in place)}"
        )
    return items, [place[name] for name in names]


def _pair(row: object) -> Pair:
    table = known_table(row, _PAIR_KEYS, "a pair")
    names = table.get("levels")
    if not (
        isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)
    ):
        raise PolicyError(f"levels = {quoted(names)} in a pair must be a list of two level names")
    protected = table.get("protected", True)
    if not isinstance(protected, bool):
        raise PolicyError(f"protected = {quoted(protected)} in a pair must be true or false")
    if protected == ("epsilon" not in table):
        raise PolicyError(
            f"the pair {quoted(names)} needs either an epsilon or protected = false, and not both"
        )
    return Pair(
        names[0],
        names[1],
        Budget.parse(table["epsilon"], f"the pair {names}") if protected else None,
        table.get("one_way", False),
    )


def known_table(raw: object, allowed: set[str], what: str) -> JsonObject:
    """A table that has no other keys than these."""
    if not isinstance(raw, dict):
        raise PolicyError(f"{what} must be a table of keys and values, got {quoted(raw)}")
    for key in raw:
        if key not in allowed:
            known = ", ".join(sorted(allowed - {_BUDGETS}))
            raise PolicyError(f"unknown key {quoted(key)} in {what}; known are {known}")
    return raw


def _rows(table: JsonObject, key: str) -> list[JsonObject]:
    rows = table.get(key, [])
    if not isinstance(rows, list):
        raise PolicyError(f"{key} must be written [[{key}]], once per {key}")
    return rows


def _read(path: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except FileNotFoundError:
        raise PolicyError(f"{path} does not exist") from None
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}") from None
    if strange := sniff.wrong_format(raw[:1024]):
        raise PolicyError(f"{shown_name(path)} {strange}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError(f"{shown_name(path)} {sniff.NOT_UTF_8}") from None
    if not text.strip():
        raise PolicyError(f"{shown_name(path)} is empty")
    return text.replace("\r\n", "\n")


def _refuse_others(path: Path, document: object) -> None:
    """Of the files that discreet writes, say which one it is."""
    kind = str(document.get("format", "")) if isinstance(document, dict) else ""
    if ours := re.match(r"discreet-(\w+)", kind):
        raise PolicyError(
            f"{shown_name(path)} is a {ours[1]}, not a policy; give the policy file that it was "
            "made from"
        )


def shown_name(path: str | Path) -> str:
    """What messages call a file."""
    return "standard input" if str(path) == "-" else str(path)


def _columns(path: Path, text: str, wanted: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Two columns of a CSV file by name."""
    reader = csv.reader(text.splitlines())
    try:
        header, *rows = ([cell.strip() for cell in row] for row in reader if row)
    except csv.Error as error:
        raise PolicyError(f"{path} is not a table: line {reader.line_num}: {error}") from None
    if strange := sniff.wrong_separator(text.partition("\n")[0], wanted):
        raise PolicyError(f"{path} {strange}")
    for name in wanted:
        if name not in header:
            raise PolicyError(f'{path} has no column "{name}"; it has {", ".join(header)}')
        if header.count(name) > 1:
            raise PolicyError(f'{path} has {header.count(name)} columns "{name}"; keep one of them')
    first, second = (header.index(name) for name in wanted)
    for k, row in enumerate(rows):
        if len(row) > len(header):
            raise PolicyError(
                f"{path}: row {k + 2} has {len(row)} cells, the header has {len(header)}; a comma "
                "within a cell needs quotes, and a decimal number has a point"
            )
    try:
        return [row[first] for row in rows], [row[second] for row in rows]
    except IndexError:
        short = next(k for k, row in enumerate(rows) if len(row) <= max(first, second))
        raise PolicyError(
            f"{path}: row {short + 2} has {len(rows[short])} cells, not {len(header)}"
        ) from None
