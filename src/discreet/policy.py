"""What must be protected, and how much: items, levels, budgets and the notion that binds them.

A policy is public, frozen and hashable. Everything about it is validated here, once.
"""

from __future__ import annotations

import csv
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

from discreet import texts
from discreet.about import About
from discreet.errors import DataError, DiscreetError, PolicyError
from discreet.labels import is_label, is_prose, is_text, looks, show

NOTIONS = ("min", "avg")
INPUTS = ("single", "set")
PROTECTS = ("set", "item")
MAX_LEVELS_WITH_PAIRS = 200

_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_LN = re.compile(r"\s*ln\(\s*([0-9./]+)\s*\)\s*")
# characters of a budget; its canonical text is held to the same limit, so it can be read back
_LONGEST = 100
_KEYS = {
    "name",
    "question",
    "input",
    "notion",
    "padding",
    "protect",
    "strict",
    "sizes",
    "users",
    "level",
    "pair",
    "items_file",
    "about",
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

    def __post_init__(self) -> None:
        """Refuse what cannot be written and read back: files hold the text."""
        fine = isinstance(self.value, Fraction) and isinstance(self.is_log, bool)
        if not fine or self.value <= self.is_log:
            raise PolicyError(
                f"a budget is a positive number, or ln(k) with k > 1, got {show(self.value)}"
            )
        text = self.text
        if len(text) > _LONGEST or (not self.is_log and Fraction(text) != self.value):
            raise PolicyError(
                f"epsilon = {show(self.value)} cannot be kept exactly; write it with fewer digits"
            )

    @classmethod
    def parse(cls, raw: object, where: str = "") -> Budget:
        """Read a number (also numpy's: the shortest decimal, as it is printed) or "ln(k)"; `where`
        completes the sentence if it is neither.
        """
        where = f" in {where}" if where else ""
        bad = PolicyError(
            f'epsilon = {show(raw)}{where} must be a positive number or "ln(k)" with k > 1'
        )
        if isinstance(raw, Budget):
            return raw
        if isinstance(raw, bool) or not isinstance(raw, Real | Decimal | str):
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
        try:
            return cls(value, bool(log))
        except PolicyError:
            raise long from None

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
    """An explicit pair budget between two levels; with None the pair is not protected.

    >>> Pair("serious", "common", 2.5)
    Pair(first='serious', second='common', budget=Budget('2.5'))
    """

    first: str
    second: str
    budget: Budget | None  # given as a number or "ln(k)" too

    def __post_init__(self) -> None:
        for name in (self.first, self.second):
            if not isinstance(name, str):
                raise PolicyError(f"a pair names two levels, got {show(name)} for one")
        if self.budget is not None:
            where = f"the pair {show([self.first, self.second])}"
            object.__setattr__(self, "budget", Budget.parse(self.budget, where))

    @classmethod
    def of(cls, raw: object) -> Pair:
        """Itself, or from (level, level, epsilon); None for epsilon where it is not protected."""
        if isinstance(raw, Pair):
            return raw
        if not isinstance(raw, tuple | list) or len(raw) != 3:
            raise PolicyError(
                f"a pair is (level, level, epsilon), with None for a pair that is not protected, "
                f"got {show(raw)}"
            )
        return cls(*raw)


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
    protect: str = "set"  # what of a set of items is protected: all of it at once, or every item
    strict: bool = False  # any two sets are protected by the smallest budget there is
    about: About = field(default_factory=About)  # given as a dictionary too

    # ---- construction ----------------------------------------------------------------------------

    @classmethod
    def from_levels(cls, levels: Iterable[Sequence[Any]], **settings: Any) -> Policy:
        """From `(name, epsilon, items)` or `(name, epsilon, items, weight)` per level."""
        listed = list(levels) if isinstance(levels, Iterable) else [levels]
        for row in listed:
            listing = hasattr(row, "__len__") and not isinstance(row, str | bytes | Mapping)
            if not listing or len(row) not in (3, 4):
                raise PolicyError(
                    "from_levels takes (name, epsilon, items) or (name, epsilon, items, weight) "
                    f"per level, got {show(row)}"
                )
        keys = ("name", "epsilon", "items", "weight")
        return _build([dict(zip(keys, row, strict=False)) for row in listed], None, settings)

    @classmethod
    def from_budgets(cls, budgets: Mapping[str, Any], **settings: Any) -> Policy:
        """From one budget per item; items with equal budgets share a level named after it.

        >>> Policy.from_budgets({"a": 1, "b": "1.5", "c": 1}).level_of
        (0, 1, 0)
        """
        if not hasattr(budgets, "items") or not hasattr(budgets, "keys"):
            raise PolicyError(f"from_budgets takes {{item: epsilon, …}}, got {show(budgets)}")
        parsed = {item: Budget.parse(eps, f"item {show(item)}") for item, eps in budgets.items()}
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
                document = texts.read_json(text, parse_float=Decimal)
            else:
                document = tomllib.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            with suppress(ValueError, RecursionError):
                _refuse_others(path, texts.read_json(text))
            kind = "JSON" if suffix == ".json" else "TOML"
            raise PolicyError(f"{_name(path)} is not {kind}: {error}") from None
        _refuse_others(path, document)
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
        keys = ("question", "input", "notion", "padding", "protect", "strict")
        settings: dict[str, Any] = {key: table[key] for key in keys if key in table}
        settings["name"] = table.get("name", default_name)
        settings["pairs"] = tuple(_pair(row) for row in _rows(table, "pair"))
        settings["about"] = About.read(table.get("about", {}))
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
        for name in ("items", "level_of", "levels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        pairs = self.pairs if isinstance(self.pairs, Iterable) else [self.pairs]
        object.__setattr__(self, "pairs", tuple(map(Pair.of, pairs)))
        object.__setattr__(self, "about", About.read(self.about))
        if not self.items:
            raise PolicyError("the policy has no items; add a [[level]] with items")
        for label in self.items:
            if not isinstance(label, str) or not is_label(label):
                raise PolicyError(
                    f"item {show(label)} must be a non-empty text without control characters "
                    "and characters that nobody sees"
                )
        _refuse_duplicates(self.items, "item")
        places = range(len(self.levels))
        if len(self.level_of) != len(self.items) or any(
            type(k) is not int or k not in places for k in self.level_of
        ):
            raise PolicyError("level_of must give every item the place of one of the levels")
        _refuse_duplicates([level.name for level in self.levels], "level")
        for level in self.levels:
            if type(level) is not Level or type(level.budget) is not Budget:
                raise PolicyError(
                    f"a level is Level(name, Budget, weight), got {show(level)}; "
                    'Budget.parse(1) and Budget.parse("ln(4)") make budgets'
                )
            if not isinstance(level.name, str) or not is_label(level.name):
                raise PolicyError(
                    f"name = {show(level.name)} of a level must be a non-empty text without "
                    "control characters and characters that nobody sees"
                )
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
        for key, value, fine in (
            ("name", self.name, is_text),
            ("question", self.question, is_prose),
        ):
            if not isinstance(value, str) or not fine(value):
                raise PolicyError(
                    f"{key} = {show(value)} must be a text of one line, without control "
                    "characters and characters that nobody sees"
                )
        if not is_label(self.name):
            raise PolicyError(f"name = {show(self.name)} must not be empty")
        _refuse_twins(self.items, "item")
        _refuse_twins([level.name for level in self.levels], "level")
        self._check_sets()
        self._check_pairs()

    def _check_sets(self) -> None:
        """What is said of sets fits the input, and together."""
        _choice("protect", self.protect, PROTECTS)
        if not isinstance(self.strict, bool):
            raise PolicyError(f"strict = {show(self.strict)} must be true or false")
        said = {"padding": self.padding, "strict": self.strict, "protect": self.protect}
        if self.input == "single":
            for key, usual in (("padding", None), ("strict", False), ("protect", "set")):
                if said[key] != usual:
                    raise PolicyError(
                        f'{key} = {show(said[key])} applies to input = "set" only; leave it out'
                    )
            return
        if self.protect == "item":
            without = {"padding": self.padding, "strict": self.strict, "[[pair]]": self.pairs}
            surplus = next((key for key, value in without.items() if value), None)
            if surplus:
                raise PolicyError(
                    f'{surplus} applies to whole sets, and protect = "item" protects every item '
                    "on its own; leave one of them out"
                )
        if self.padding is not None:
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

    @property
    def pads(self) -> bool:
        """Whether sets are cut to a padding: not where every item is a question of its own."""
        return self.takes_sets and self.protect == "set"

    @cached_property
    def smallest(self) -> Budget:
        """The smallest budget that binds anything: of a level, or of an explicit pair."""
        pairs = [pair.budget for pair in self.pairs if pair.budget is not None]
        return min([level.budget for level in self.levels] + pairs, key=float)

    @cached_property
    def binding(self) -> tuple[Budget, ...]:
        """The budget that binds every level: its own, or the smallest of all if `strict`."""
        return tuple(self.smallest if self.strict else level.budget for level in self.levels)

    @cached_property
    def number(self) -> str | None:
        """The first label that looks like a whole number, if there is one: then an int alone is
        neither a label nor an index.
        """
        return next((label for label in self.items if _WHOLE.fullmatch(label)), None)

    def place(self, item: Any, indices: bool = False) -> int:
        """The place of an item given by label (str) or index (int); an int is refused where it may
        be meant as a label, unless `indices` says that it is none.
        """
        if isinstance(item, str) and not indices:
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
            if indices:
                raise DataError(f"an index is a whole number, got {item!r}")
            raise DataError(f"an item is a label (text) or an index (whole number), got {item!r}")
        if self.number is not None and not indices:
            raise DataError(
                f"{item} may be a label or an index, because {show(self.number)} is a label; write "
                f'"{item}" for the label, policy.items[{item}] for the item at that index'
            )
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

    @property
    def overrides(self) -> Mapping[tuple[int, int], Budget | None]:
        """The explicit pair budgets that bind as such: none if `strict`, where every pair has the
        smallest budget of all.
        """
        return {} if self.strict else self.explicit

    @cached_property
    def explicit(self) -> Mapping[tuple[int, int], Budget | None]:
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
        first, second = float(self.binding[i]), float(self.binding[j])
        return min(first, second) if self.notion == "min" else (first + second) / 2

    def save(self, path: str | Path) -> None:
        """Write the policy as a TOML file that `load` reads."""
        from discreet.writing import save

        save(self, path)

    def _repr_html_(self) -> str:
        from discreet import notebook

        return notebook.policy(self)

    def to_canonical(self) -> dict[str, Any]:
        """The policy as strings and integers only: what a mechanism file holds and its fingerprint
        covers. Weights are of the design, not of the promise, and are not in it.
        """
        of_sets = {"protect": self.protect, "strict": self.strict} if self.takes_sets else {}
        return {
            "name": self.name,
            "question": self.question,
            "input": self.input,
            **of_sets,
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
            **({"about": about} if (about := self.about.to_canonical()) else {}),
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
            of_sets = ("protect", "strict") if raw["input"] == "set" else ()
            said = {key: raw[key] for key in ("name", "question", "input", "notion", *of_sets)}
            about = About.read(raw.get("about", {}))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise PolicyError(f"the policy in the file is not complete: {error!r}") from None
        return cls(items, level_of, levels, pairs=pairs, about=about, **said)

    def differences(self, other: Policy) -> list[str]:
        """Sentences that name everything in which `other` differs; empty when the promise is the
        same.
        """
        found = []
        for key in ("notion", "input", "question", "protect", "strict"):
            if getattr(self, key) != getattr(other, key):
                found.append(
                    f"{key} is {show(getattr(other, key))}, not {show(getattr(self, key))}"
                )
        if None not in (self.padding, other.padding) and self.padding != other.padding:
            found.append(f"padding is {other.padding}, not {self.padding}")
        found += self.about.differences(other.about)
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
        are called. With `strict` too: the smallest of them may be the budget of every pair.
        """
        mine = dict(zip(self.items, self.level_of, strict=True))
        both = {(mine[item], k) for item, k in zip(other.items, other.level_of, strict=True)}
        silent = object()
        return any(
            self.explicit.get((i, j), silent) != other.explicit.get((k, l), silent)
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
        budget = Budget.parse(row["epsilon"], where)
        levels.append(Level(name, budget, _weight(row.get("weight", 1))))  # type: ignore[arg-type]
    if members is None:
        items, level_of = _from_lists(rows)
    else:
        items, level_of = _from_members(rows, *members)
    return Policy(tuple(items), tuple(level_of), tuple(levels), **settings)


def _weight(raw: Any) -> Any:
    """A number of any kind as a float; whatever else it is, the policy refuses it."""
    if isinstance(raw, bool) or not isinstance(raw, Real | Decimal):
        return raw
    try:
        number = float(raw)
    except OverflowError:  # an integer of hundreds of digits
        return raw
    return number if math.isfinite(number) else raw


def _from_lists(rows: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    items: list[str] = []
    level_of: list[int] = []
    home: dict[str, int] = {}
    for k, row in enumerate(rows):
        listed = row.get("items")
        if isinstance(listed, str) or not isinstance(listed, Sequence) or not listed:
            raise PolicyError(
                f"items = {show(listed)} in level {show(row['name'])} must be a non-empty list "
                "of labels"
            )
        for item in listed:
            if isinstance(item, str) and home.setdefault(item, k) != k:
                raise PolicyError(
                    f"item {show(item)} is in two levels: {show(rows[home[item]]['name'])} and "
                    f"{show(row['name'])}"
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
                f"level {show(row['name'])} lists items, but items_file names the items already"
            )
    place = {row["name"]: k for k, row in enumerate(rows)}
    unknown = next((name for name in names if name not in place), None)
    if unknown is not None:
        raise PolicyError(
            f"items_file names the level {show(unknown)}; the policy has "
            f"{', '.join(show(name)[1:-1] for name in place)}"
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
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except FileNotFoundError:
        raise PolicyError(f"{path} does not exist") from None
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}") from None
    if strange := texts.stranger(raw[:1024]):
        raise PolicyError(f"{_name(path)} {strange}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError(f"{_name(path)} {texts.NOT_UTF_8}") from None
    if not text.strip():
        raise PolicyError(f"{_name(path)} is empty")
    return text.replace("\r\n", "\n")


def _refuse_others(path: Path, document: object) -> None:
    """Of the files that discreet writes, say which one it is."""
    kind = str(document.get("format", "")) if isinstance(document, dict) else ""
    if found := re.match(r"discreet-(\w+)", kind):
        raise PolicyError(
            f"{_name(path)} is a {found[1]}, not a policy; give the policy file that it was made "
            "from"
        )


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _columns(path: Path, text: str, wanted: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Two columns of a CSV file by name."""
    reader = csv.reader(text.splitlines())
    try:
        header, *rows = ([cell.strip() for cell in row] for row in reader if row)
    except csv.Error as error:
        raise PolicyError(f"{path} is not a table: line {reader.line_num}: {error}") from None
    if strange := texts.separated(text.partition("\n")[0], wanted):
        raise PolicyError(f"{path} {strange}")
    for name in wanted:
        if name not in header:
            raise PolicyError(f'{path} has no column "{name}"; it has {", ".join(header)}')
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


def _refuse_twins(labels: Sequence[str], what: str) -> None:
    """Two labels that people cannot tell apart."""
    known: dict[str, int] = {}
    for k, label in enumerate(labels):
        for look in looks(label):
            first = labels[known.setdefault(look, k)]
            if first != label:
                codes = sorted({c for c in {*first} ^ {*label} if not c.isascii()})
                told = ", ".join(f"U+{ord(c):04X}" for c in codes[:4])
                raise PolicyError(
                    f"the {what}s {show(first)} and {show(label)} look the same"
                    + (f" (they differ in {told})" if told else "")
                    + f": case, blanks and look-alike letters do not make another {what}"
                )
