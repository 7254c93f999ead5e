"""What must be protected, and how much: items, levels, budgets and the notion that binds them.

A policy is public, frozen and hashable. Everything about it is validated here, once.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.errors import DataError, DiscreetError, PolicyError

NOTIONS = ("min", "avg")
INPUTS = ("single", "set")
MAX_LEVELS_WITH_PAIRS = 200

_LN = re.compile(r"\s*ln\(\s*([0-9./]+)\s*\)\s*")
# characters of a budget; its canonical text is held to the same limit, so it can be read back
_LONGEST = 100
_KEYS = {
    "name",
    "question",
    "input",
    "notion",
    "padding",
    "sizes",
    "users",
    "level",
    "pair",
    "items_file",
}
_LEVEL_KEYS = {"name", "epsilon", "items", "weight"}
_PAIR_KEYS = {"levels", "epsilon", "protected"}


@dataclass(frozen=True)
class Budget:
    """A privacy budget, kept exactly: a decimal as written, or the logarithm of a rational.

    >>> Budget.parse("ln(4)"), float(Budget.parse("ln(4)"))
    (Budget('ln(4)'), 1.3862943611198906)
    >>> Budget.parse(1.2).value
    Fraction(6, 5)
    """

    value: Fraction  # epsilon itself, or k where epsilon = ln(k)
    is_log: bool = False

    @classmethod
    def parse(cls, raw: object, where: str = "") -> Budget:
        """Read a number or "ln(k)"; `where` completes the sentence if it is neither."""
        where = f" in {where}" if where else ""
        bad = PolicyError(
            f'epsilon = {show(raw)}{where} must be a positive number or "ln(k)" with k > 1'
        )
        if isinstance(raw, Budget):
            return raw
        if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal | str):
            raise bad
        long = PolicyError(
            f"epsilon{where} is too long to be kept exactly; write it with fewer digits"
        )
        try:
            text = str(raw)
        except ValueError:  # an integer of thousands of digits
            raise long from None
        if len(text) > _LONGEST:
            raise long
        log = _LN.fullmatch(text)
        try:
            if log:
                value = Fraction(log[1])
                ok = value > 1
            else:
                number = Decimal(text)
                ok = number.is_finite() and number > 0 and abs(number.adjusted()) < 30
                value = Fraction(number) if ok else Fraction(0)
        except (ValueError, ZeroDivisionError, InvalidOperation):
            raise bad from None
        if not ok:
            raise bad
        budget = cls(value, bool(log))
        if len(budget.text) > _LONGEST:
            raise long
        return budget

    @property
    def text(self) -> str:
        """The canonical way to write it, which `parse` reads back."""
        if self.is_log:
            return f"ln({self.value})"
        exact = Context(prec=100).divide(
            Decimal(self.value.numerator), Decimal(self.value.denominator)
        )
        return format(exact.normalize(Context(prec=100)), "f")

    def __float__(self) -> float:
        if not self.is_log:
            return float(self.value)
        return math.log(self.value.numerator) - math.log(self.value.denominator)

    def __repr__(self) -> str:
        return f"Budget({self.text!r})"


@dataclass(frozen=True)
class Level:
    """A group of items with one budget; `weight` is how much its error counts in the design."""

    name: str
    budget: Budget
    weight: float = 1.0


@dataclass(frozen=True)
class Pair:
    """An explicit pair budget between two levels; without a budget the pair is not protected."""

    first: str
    second: str
    budget: Budget | None


@dataclass(frozen=True)
class Policy:
    """Items, their levels and budgets, and the notion that turns two budgets into a pair budget.

    >>> policy = Policy.from_levels([("serious", "ln(4)", ["HIV"]),
    ...                              ("common", "ln(6)", ["anemia", "headache"])])
    >>> policy.m, policy.index["anemia"], policy.levels[policy.level_of[1]].name
    (3, 1, 'common')
    """

    items: tuple[str, ...]
    level_of: tuple[int, ...]
    levels: tuple[Level, ...]
    notion: str = "min"
    pairs: tuple[Pair, ...] = ()
    input: str = "single"
    padding: int | None = None
    name: str = "survey"
    question: str = ""

    # ---- construction ----------------------------------------------------------------------------

    @classmethod
    def from_levels(cls, levels: Iterable[Sequence[Any]], **settings: Any) -> Policy:
        """From `(name, epsilon, items)` or `(name, epsilon, items, weight)` per level."""
        rows = [
            dict(zip(("name", "epsilon", "items", "weight")[: len(row)], row, strict=True))
            for row in levels
        ]
        return _build(rows, None, settings)

    @classmethod
    def from_budgets(cls, budgets: Mapping[str, Any], **settings: Any) -> Policy:
        """From one budget per item; items with equal budgets share a level named after it.

        >>> Policy.from_budgets({"a": 1, "b": "1.5", "c": 1}).level_of
        (0, 1, 0)
        """
        parsed = {item: Budget.parse(eps, f'item "{item}"') for item, eps in budgets.items()}
        places: dict[Budget, int] = {}
        level_of = tuple(places.setdefault(budget, len(places)) for budget in parsed.values())
        levels = tuple(Level(budget.text, budget) for budget in places)
        return cls(tuple(parsed), level_of, levels, **settings)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """From a TOML or JSON policy file, or a CSV with the columns `item` and `epsilon`; "-" is
        TOML on standard input.
        """
        path = Path(path)
        text = _read(path)
        suffix = path.suffix.lower()
        if suffix == ".csv":
            items, budgets = _columns(path, text, ("item", "epsilon"))
            _refuse_duplicates(items, "item")
            return cls.from_budgets(dict(zip(items, budgets, strict=True)), name=path.stem)
        try:
            if suffix == ".json":
                document = json.loads(text, parse_float=Decimal)
            else:
                document = tomllib.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            kind = "JSON" if suffix == ".json" else "TOML"
            raise PolicyError(f"{_name(path)} is not {kind}: {error}") from None
        try:
            return cls.from_document(
                document, path.parent, "survey" if str(path) == "-" else path.stem
            )
        except PolicyError as error:
            raise PolicyError(f"{_name(path)}: {error}") from None

    @classmethod
    def from_document(
        cls, document: object, folder: Path | None = None, default_name: str = "survey"
    ) -> Policy:
        """From the content of a policy file (the keys that docs/policy.md lists)."""
        table = _table(document, _KEYS, "the policy")
        settings: dict[str, Any] = {
            key: table[key] for key in ("question", "input", "notion", "padding") if key in table
        }
        settings["name"] = table.get("name", default_name)
        settings["pairs"] = tuple(_pair(row) for row in _rows(table, "pair"))
        members = None
        if "items_file" in table:
            if not isinstance(table["items_file"], str):
                raise PolicyError(
                    f"items_file = {show(table['items_file'])} must be the path of a CSV file"
                )
            path = (folder or Path()) / table["items_file"]
            members = _columns(path, _read(path), ("item", "level"))
        auto = settings.get("padding") == "auto"
        if auto:
            del settings["padding"]
        built = _build(
            [_table(row, _LEVEL_KEYS, "a level") for row in _rows(table, "level")],
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

    def __post_init__(self) -> None:
        for name in ("items", "level_of", "levels", "pairs"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.items:
            raise PolicyError("the policy has no items; add a [[level]] with items")
        for label in self.items:
            if not isinstance(label, str) or not is_label(label):
                raise PolicyError(
                    f"item {show(label)} must be a non-empty text without control characters"
                )
        _refuse_duplicates(self.items, "item")
        _refuse_duplicates([level.name for level in self.levels], "level")
        for level in self.levels:
            if not isinstance(level.name, str) or not is_label(level.name):
                raise PolicyError(f"name = {show(level.name)} of a level must be a non-empty text")
            ok = isinstance(level.weight, int | float) and not isinstance(level.weight, bool)
            if not (ok and 0 < level.weight <= 1e12):
                raise PolicyError(
                    f'weight = {show(level.weight)} in level "{level.name}" must be a positive '
                    "number"
                )
        for level, size in zip(self.levels, self.sizes, strict=True):
            if size == 0:
                raise PolicyError(
                    f'level "{level.name}" has no items; give it some or leave it out'
                )
        _choice("notion", self.notion, NOTIONS)
        _choice("input", self.input, INPUTS)
        for key, value in (("name", self.name), ("question", self.question)):
            if not isinstance(value, str) or not (key == "question" or is_text(value)):
                raise PolicyError(f"{key} = {show(value)} must be a text")
        if not without_joiners(self.name).strip():
            raise PolicyError(f"name = {show(self.name)} must not be empty")
        self._check_padding()
        self._check_pairs()

    def _check_padding(self) -> None:
        if self.padding is None:
            return
        if self.input == "single":
            raise PolicyError(
                f'padding = {show(self.padding)} applies to input = "set" only; leave it out'
            )
        check_padding(self.padding)

    def _check_pairs(self) -> None:
        names = {level.name for level in self.levels}
        seen: dict[frozenset[str], Pair] = {}
        for pair in self.pairs:
            for name in (pair.first, pair.second):
                if name not in names:
                    raise PolicyError(f"pair names the level {show(name)}, which does not exist")
            other = seen.setdefault(frozenset((pair.first, pair.second)), pair)
            if other.budget != pair.budget:
                raise PolicyError(
                    f'the pair ("{pair.first}", "{pair.second}") is given twice with different '
                    "budgets"
                )
        if self.pairs and len(self.levels) > MAX_LEVELS_WITH_PAIRS:
            raise PolicyError(
                f"explicit pair budgets are for at most {MAX_LEVELS_WITH_PAIRS} levels, got "
                f"{len(self.levels)}; "
                "merge levels with equal budgets"
            )

    # ---- what is in it ---------------------------------------------------------------------------

    @property
    def m(self) -> int:
        """Number of items."""
        return len(self.items)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The place of every label."""
        return {label: place for place, label in enumerate(self.items)}

    @property
    def takes_sets(self) -> bool:
        """Whether a person answers with a set of items."""
        return self.input == "set"

    def place(self, item: Any) -> int:
        """The place of an item given by label (str) or index (int)."""
        if isinstance(item, str):
            place = self.index.get(item)
            if place is None:
                import difflib

                near = difflib.get_close_matches(item, self.items[:100_000], n=1)
                raise DataError(
                    f"{show(item)} is not an item"
                    + (f"; did you mean {show(near[0])}?" if near else "")
                )
            return place
        if isinstance(item, bool) or not hasattr(item, "__index__") or hasattr(item, "__len__"):
            raise DataError(f"an item is a label (text) or an index (whole number), got {item!r}")
        if not 0 <= item < self.m:
            raise DataError(f"item index {item} is out of range; it must be from 0 to {self.m - 1}")
        return int(item)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of items of every level."""
        counts = [0] * len(self.levels)
        for place in self.level_of:
            counts[place] += 1
        return tuple(counts)

    @cached_property
    def overrides(self) -> Mapping[tuple[int, int], Budget | None]:
        """Explicit pair budgets by the levels' places, both orders; None where a pair is not
        protected.
        """
        place = {level.name: k for k, level in enumerate(self.levels)}
        both: dict[tuple[int, int], Budget | None] = {}
        for pair in self.pairs:
            i, j = place[pair.first], place[pair.second]
            both[i, j] = both[j, i] = pair.budget
        return both

    def pair_epsilon(self, i: int, j: int) -> float:
        """r_ij of two levels as a float; infinite where the pair is not protected."""
        if (i, j) in self.overrides:
            budget = self.overrides[i, j]
            return math.inf if budget is None else float(budget)
        first, second = float(self.levels[i].budget), float(self.levels[j].budget)
        return min(first, second) if self.notion == "min" else (first + second) / 2

    def to_canonical(self) -> dict[str, Any]:
        """The policy as strings and integers only: what a mechanism file holds and its fingerprint
        covers. Weights are of the design, not of the promise, and are not in it.
        """
        return {
            "name": self.name,
            "question": self.question,
            "input": self.input,
            "notion": self.notion,
            "items": list(self.items),
            "level_of": list(self.level_of),
            "levels": [{"name": level.name, "epsilon": level.budget.text} for level in self.levels],
            "pairs": [
                {
                    "levels": [pair.first, pair.second],
                    "epsilon": pair.budget.text if pair.budget else "",
                }
                for pair in self.pairs
            ],
        }

    @classmethod
    def from_canonical(cls, raw: Any) -> Policy:
        """The reverse of `to_canonical`; raises PolicyError on anything else."""
        try:
            levels = tuple(
                Level(row["name"], Budget.parse(row["epsilon"])) for row in raw["levels"]
            )
            pairs = tuple(
                Pair(
                    row["levels"][0],
                    row["levels"][1],
                    Budget.parse(row["epsilon"]) if row["epsilon"] else None,
                )
                for row in raw["pairs"]
            )
            level_of = tuple(raw["level_of"])
            items = tuple(raw["items"])
            texts = {key: raw[key] for key in ("name", "question", "input", "notion")}
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise PolicyError(f"the policy in the file is not complete: {error!r}") from None
        places = range(len(levels))
        if len(level_of) != len(items) or any(
            type(k) is not int or k not in places for k in level_of
        ):
            raise PolicyError("the policy in the file does not give every item one of its levels")
        return cls(items, level_of, levels, pairs=pairs, **texts)

    def differences(self, other: Policy) -> list[str]:
        """Sentences that name everything in which `other` differs; empty when the promise is the
        same.
        """
        found = []
        for key in ("notion", "input", "question"):
            if getattr(self, key) != getattr(other, key):
                found.append(
                    f"{key} is {show(getattr(other, key))}, not {show(getattr(self, key))}"
                )
        theirs = {
            item: other.levels[k].budget
            for item, k in zip(other.items, other.level_of, strict=True)
        }
        for item, k in zip(self.items, self.level_of, strict=True):
            budget = theirs.pop(item, None)
            if budget is None:
                found.append(f"item {show(item)} is missing")
            elif budget != self.levels[k].budget:
                found.append(
                    f"item {show(item)} has epsilon {budget.text}, not {self.levels[k].budget.text}"
                )
        found += [f"item {show(item)} is not in the policy" for item in theirs]
        if not found and self.items != other.items:
            found.append("the items are in another order")
        if not found and (self.pairs or other.pairs) and self._pairs_differ(other):
            found.append("the explicit pair budgets differ")
        return found

    def _pairs_differ(self, other: Policy) -> bool:
        """Whether some pair of items has an explicit budget here and not there, whatever the levels
        are called.
        """
        mine = dict(zip(self.items, self.level_of, strict=True))
        both = {(mine[item], k) for item, k in zip(other.items, other.level_of, strict=True)}
        silent = object()
        return any(
            self.overrides.get((i, j), silent) != other.overrides.get((k, l), silent)
            for i, k in both
            for j, l in both
        )


def check_padding(padding: object) -> int:
    """The padding length, or a PolicyError."""
    if isinstance(padding, bool) or not isinstance(padding, int) or not 1 <= padding <= 65_536:
        raise PolicyError(f"padding = {show(padding)} must be a whole number from 1 to 65536")
    return padding


def _auto_padding(policy: Policy, sizes: object, users: object) -> int:
    """The padding with the smallest expected error for people's set sizes (`sizes` = {1 = 0.2, 5 =
    0.8}) and their number.
    """
    from discreet.padding import choose_padding

    if type(users) is not int or users < 1:
        raise PolicyError(f"users = {show(users)} must be a whole number from 1")
    if not isinstance(sizes, dict) or not all(
        isinstance(x, int | Decimal) and not isinstance(x, bool) for x in sizes.values()
    ):
        raise PolicyError(
            f"sizes = {show(sizes)} must be a table of shares by number of items, such as "
            f"{{ 1 = 0.2, 5 = 0.8 }}"
        )
    try:
        return choose_padding(
            policy, {size: float(share) for size, share in sizes.items()}, users
        ).padding
    except DiscreetError as error:
        raise PolicyError(f'padding = "auto": {error}') from None


def _build(
    rows: list[dict[str, Any]],
    members: tuple[list[str], list[str]] | None,
    settings: dict[str, Any],
) -> Policy:
    levels = []
    for row in rows:
        name = row.get("name")
        if name is not None and not isinstance(name, str):
            raise PolicyError(f"name = {show(name)} of a level must be a non-empty text")
        where = f"level {show(name)}"
        for key in ("name", "epsilon"):
            if key not in row:
                raise PolicyError(f"{key} is missing in {where if name else 'a level'}")
        weight: Any = row.get("weight", 1)
        whole = isinstance(weight, int | Decimal) and not isinstance(weight, bool)
        if whole and abs(weight) < 10**300:
            weight = float(weight)
        levels.append(Level(name, Budget.parse(row["epsilon"], where), weight))  # type: ignore[arg-type]
    if members is None:
        items, level_of = _from_lists(rows)
    else:
        items, level_of = _from_members(rows, *members)
    return Policy(tuple(items), tuple(level_of), tuple(levels), **settings)


def _from_lists(rows: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    items: list[str] = []
    level_of: list[int] = []
    home: dict[str, int] = {}
    for k, row in enumerate(rows):
        listed = row.get("items")
        if isinstance(listed, str) or not isinstance(listed, Sequence) or not listed:
            raise PolicyError(
                f'items = {show(listed)} in level "{row["name"]}" must be a non-empty list of '
                "labels"
            )
        for item in listed:
            if isinstance(item, str) and home.setdefault(item, k) != k:
                raise PolicyError(
                    f'item "{item}" is in two levels: "{rows[home[item]]["name"]}" and '
                    f'"{row["name"]}"'
                )
        items += listed
        level_of += [k] * len(listed)
    return items, level_of


def _from_members(
    rows: list[dict[str, Any]], items: list[str], names: list[str]
) -> tuple[list[str], list[int]]:
    for row in rows:
        if "items" in row:
            raise PolicyError(
                f'level "{row["name"]}" lists items, but items_file names the items already'
            )
    place = {row["name"]: k for k, row in enumerate(rows)}
    unknown = next((name for name in names if name not in place), None)
    if unknown is not None:
        raise PolicyError(
            f"items_file names the level {show(unknown)}; the policy has "
            f"{', '.join(map(str, place))}"
        )
    return items, [place[name] for name in names]


def _pair(row: object) -> Pair:
    table = _table(row, _PAIR_KEYS, "a pair")
    names = table.get("levels")
    if not (
        isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)
    ):
        raise PolicyError(f"levels = {show(names)} in a pair must be a list of two level names")
    protected = table.get("protected", True)
    if not isinstance(protected, bool):
        raise PolicyError(f"protected = {show(protected)} in a pair must be true or false")
    if protected == ("epsilon" not in table):
        raise PolicyError(
            f"the pair {show(names)} needs either an epsilon or protected = false, and not both"
        )
    return Pair(
        names[0],
        names[1],
        Budget.parse(table["epsilon"], f"the pair {names}") if protected else None,
    )


def _table(raw: object, allowed: set[str], what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise PolicyError(f"{what} must be a table of keys and values, got {show(raw)}")
    for key in raw:
        if key not in allowed:
            raise PolicyError(
                f"unknown key {show(key)} in {what}; known are {', '.join(sorted(allowed))}"
            )
    return raw


def _rows(table: dict[str, Any], key: str) -> list[Any]:
    rows = table.get(key, [])
    if not isinstance(rows, list):
        raise PolicyError(f"{key} must be written [[{key}]], once per {key}")
    return rows


def _read(path: Path) -> str:
    try:
        text = (sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()).decode(
            "utf-8-sig"
        )
    except FileNotFoundError:
        raise PolicyError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{_name(path)} is not UTF-8 text") from None
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}") from None
    if not text.strip():
        raise PolicyError(f"{_name(path)} is empty")
    return text.replace("\r\n", "\n")


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _columns(path: Path, text: str, wanted: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Two columns of a CSV file by name."""
    reader = csv.reader(text.splitlines())
    try:
        header, *rows = ([cell.strip() for cell in row] for row in reader if row)
    except csv.Error as error:
        raise PolicyError(f"{path} is not a table: line {reader.line_num}: {error}") from None
    for name in wanted:
        if name not in header:
            raise PolicyError(f'{path} has no column "{name}"; it has {", ".join(header)}')
    first, second = (header.index(name) for name in wanted)
    try:
        return [row[first] for row in rows], [row[second] for row in rows]
    except IndexError:
        short = next(k for k, row in enumerate(rows) if len(row) <= max(first, second))
        raise PolicyError(
            f"{path}: row {short + 2} has {len(rows[short])} cells, not {len(header)}"
        ) from None


def _refuse_duplicates(labels: Sequence[Any], what: str) -> None:
    if len(set(labels)) == len(labels):
        return
    seen: set[Any] = set()
    for label in labels:
        if label in seen:
            raise PolicyError(f"{what} {show(label)} is named twice")
        seen.add(label)


def _choice(key: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise PolicyError(f"{key} = {show(value)} must be one of {', '.join(allowed)}")


def is_label(text: str) -> bool:
    """Something to see, without control characters."""
    return bool(without_joiners(text).strip()) and is_text(text)


def is_text(text: str) -> bool:
    """Without control and formatting characters; the joiners are fine. By categories, as browsers
    know them, and without the format controls of Egyptian hieroglyphs, whose category depends on
    the version of Unicode.
    """
    plain = without_joiners(text)
    return (plain.isascii() and plain.isprintable()) or not any(map(_is_control, plain))


def _is_control(c: str) -> bool:
    code = ord(c)
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF or 0x13430 <= code <= 0x1345F:
        return True
    return c != " " and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs")


def without_joiners(text: str) -> str:
    """Without the two invisible characters that Persian, Indic scripts and emoji are
    spelled with.
    """
    return text.replace("\u200c", "").replace("\u200d", "")


def show(value: object) -> str:
    """A value as the user wrote it, short."""
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:
        text = "a number of thousands of digits"
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:100])
    return text if len(text) <= 80 else text[:77] + "…"
