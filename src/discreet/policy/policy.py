"""What must be protected, and how much: items, levels, budgets and the notion that binds them.

A policy is public, frozen and hashable, and validated once, when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import PolicyError
from discreet.policy.budgets import OPEN, Budget, Level, Pair
from discreet.policy.differences import differences
from discreet.policy.kinds import Kind
from discreet.policy.labels import quoted
from discreet.policy.lazy import cached_property
from discreet.policy.notions import NOTIONS, Notion, PairBudget
from discreet.policy.places import find_integer_like, find_place
from discreet.policy.totals import Total, read_totals
from discreet.policy.validation import check_policy, read_last, refuse_unknown

if TYPE_CHECKING:
    from discreet.policy.types import BudgetLike, JsonObject


# More than 15 public names and 400 lines: seven are fields, four make a policy, and the others are
# what the checks, designs and pages ask of it.
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
    kind: Kind = Kind.SINGLE  # given as a text too
    padding: int | None = None
    question: str = ""
    strict: bool = False  # any two sets are protected by the smallest budget there is
    totals: tuple[Total, ...] = ()  # given as {name: [items], …} too
    cap: int | None = None  # of a scale: steps beyond which a distance counts as this one
    estimate: str = "both"  # of a scale: what the design is best for (items, mean or both)
    last: tuple[str, ...] = ()  # items that people are shown after the others

    def __post_init__(self) -> None:
        for name in ("items", "level_of", "levels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        pairs = self.pairs if isinstance(self.pairs, Iterable) else [self.pairs]
        object.__setattr__(self, "pairs", tuple(map(Pair.read, pairs)))
        object.__setattr__(self, "last", read_last(self.last))
        object.__setattr__(self, "totals", read_totals(self.totals))
        refuse_unknown("kind", self.kind, tuple(Kind))
        object.__setattr__(self, "kind", Kind(self.kind))
        check_policy(self)

    # ---- how to make one -------------------------------------------------------------------------

    @classmethod
    def from_levels(cls, levels: Iterable[Sequence[Any]], **settings: Any) -> Policy:
        """From `(name, epsilon, items)` or `(name, epsilon, items, weight)` per level. `open` names
        the open levels, whose epsilon is None; `blocks=True` protects answers of one level from
        each other only.

        >>> Policy.from_levels([("private", 1, ["a"]), ("common", 3, ["b", "c"])], kind="each").kind
        <Kind.EACH: 'each'>
        >>> levels = [("ill", 1, ["HIV"]), ("healthy", None, ["nothing"])]
        >>> Policy.from_levels(levels, notion="one-way", open=["healthy"]).open_levels
        (1,)
        """
        listed = list(levels) if isinstance(levels, Iterable) else [levels]
        for row in listed:
            listing = hasattr(row, "__len__") and not isinstance(row, str | bytes | Mapping)
            if not listing or len(row) not in (3, 4):
                raise PolicyError(
                    "from_levels takes (name, epsilon, items) or (name, epsilon, items, weight) "
                    f"per level, got {quoted(row)}"
                )
        from discreet.policy import reading

        keys = ("name", "epsilon", "items", "weight")
        rows = [dict(zip(keys, row, strict=False)) for row in listed]
        return reading.build(reading.mark_open(rows, settings.pop("open", ())), None, settings)

    @classmethod
    def from_scale(
        cls,
        items: Iterable[str],
        step: BudgetLike = 1,
        cap: BudgetLike | None = None,
        estimate: str = "both",
        **settings: Any,
    ) -> Policy:
        """An ordered question: neighbouring answers are protected by the budget `step`, and answers
        that are k steps apart by k times as much, at most by `cap`.

        >>> policy = Policy.from_scale(["never", "rarely", "often", "always"], step=1, cap=2)
        >>> [policy.pair_epsilon(0, j) for j in (1, 2, 3)]
        [1.0, 2.0, 2.0]
        """
        from discreet.policy import scales

        return scales.build_scale(items, step, cap, {"estimate": estimate, **settings})

    @classmethod
    def from_budgets(cls, budgets: Mapping[str, BudgetLike], **settings: Any) -> Policy:
        """From one budget per item; items with equal budgets share a level named after it.

        >>> Policy.from_budgets({"a": 1, "b": "1.5", "c": 1}).level_of
        (0, 1, 0)
        """
        if not hasattr(budgets, "items") or not hasattr(budgets, "keys"):
            raise PolicyError(f"from_budgets takes {{item: epsilon, …}}, got {quoted(budgets)}")
        parsed = {item: Budget.parse(eps, f"item {quoted(item)}") for item, eps in budgets.items()}
        places: dict[Budget, int] = {}
        level_of = tuple(places.setdefault(budget, len(places)) for budget in parsed.values())
        levels = tuple(Level(budget.text, budget) for budget in places)
        from discreet.policy import reading

        return cls(tuple(parsed), level_of, levels, **reading.with_blocks(settings))

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """From a TOML or JSON policy file, or a CSV with the columns `item` and `epsilon`; "-"
        reads TOML from standard input.

        >>> Policy.load("src/discreet/data/health-survey.toml").m
        41
        """
        from discreet.policy import reading

        return reading.load(path)

    @classmethod
    def from_document(cls, document: object, folder: Path | None = None) -> Policy:
        """From the content of a policy file (docs/policy.md lists the keys).

        >>> Policy.from_document({"level": [{"name": "all", "epsilon": 1, "items": ["a", "b"]}]}).m
        2
        """
        from discreet.policy import reading

        return reading.from_document(document, folder)

    # ---- what is in it ---------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The words of the question.

        >>> Policy.from_budgets({"a": 1, "b": 2}, question="Which one?").title
        'Which one?'
        """
        return self.question or "question"

    @property
    def m(self) -> int:
        """The number of items.

        >>> Policy.from_budgets({"a": 1, "b": 2}).m
        2
        """
        return len(self.items)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The place of every label.

        >>> Policy.from_budgets({"a": 1, "b": 2}).index
        {'a': 0, 'b': 1}
        """
        return {label: place for place, label in enumerate(self.items)}

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """The number of items of every level.

        >>> Policy.from_budgets({"a": 1, "b": 2, "c": 1}).level_sizes
        (2, 1)
        """
        counts = [0] * len(self.levels)
        for place in self.level_of:
            counts[place] += 1
        return tuple(counts)

    @cached_property
    def integer_like_label(self) -> str | None:
        """The first label that looks like a whole number: then an int alone could be a label or an
        index, and is refused.

        >>> Policy.from_budgets({"none": 1, "2": 1}).integer_like_label
        '2'
        """
        return find_integer_like(self.items)

    def place(self, item: object, indices: bool = False) -> int:
        """The place of an item given by label (str) or index (int). An int is refused where it may
        be meant as a label, unless `indices` says that it is an index.

        >>> Policy.from_budgets({"a": 1, "b": 2}).place("b")
        1
        """
        return find_place(self, item, indices)

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """The places of the items in the order in which people see them: as in the file, those of
        `last` after the others.

        >>> Policy.from_budgets({"none": 1, "a": 1, "b": 2}, last=["none"]).shown
        (1, 2, 0)
        """
        late = {item: k for k, item in enumerate(self.last)}
        return tuple(sorted(range(self.m), key=lambda k: (late.get(self.items[k], -1), k)))

    def divided(self, parts: int) -> Policy:
        """The same question with every budget divided by a whole number, exactly.

        >>> Policy.from_budgets({"a": 1, "b": "ln(4)"}).divided(2).smallest
        Budget('0.5')
        """
        if parts == 1:
            return self
        levels = tuple(replace(level, budget=level.budget.divided(parts)) for level in self.levels)
        pairs = tuple(
            replace(pair, budget=pair.budget and pair.budget.divided(parts)) for pair in self.pairs
        )
        return replace(self, levels=levels, pairs=pairs)

    # ---- budgets ---------------------------------------------------------------------------------

    @cached_property
    def smallest(self) -> Budget:
        """The smallest budget of any level or explicit pair.

        >>> Policy.from_budgets({"a": 1, "b": 2}).smallest
        Budget('1')
        """
        pairs = [pair.budget for pair in self.pairs if pair.budget is not None]
        return min([level.budget for level in self.levels] + pairs, key=float)

    @cached_property
    def open_levels(self) -> tuple[int, ...]:
        """The places of the open levels, which get no promise.

        >>> Policy.from_budgets({"a": 1, "b": 2}).open_levels
        ()
        """
        return tuple(k for k, level in enumerate(self.levels) if level.budget.is_open)

    @property
    def rule(self) -> Notion:
        """The policy's notion, from the table of notions.

        >>> Policy.from_scale(["low", "middle", "high"], step=1).rule.ordered
        True
        """
        return NOTIONS[self.notion]

    @cached_property
    def is_mutual(self) -> bool:
        """Whether every pair of levels is protected in both directions alike.

        >>> Policy.from_budgets({"a": 1, "b": 2}, notion="one-way").is_mutual
        False
        """
        return self.rule.mutual and not any(pair.one_way for pair in self.pairs)

    @cached_property
    def effective_budgets(self) -> tuple[Budget, ...]:
        """The budget that binds every level: its own, or the smallest of all if `strict`.

        >>> Policy.from_budgets({"a": 1, "b": 2}, kind="set", strict=True).effective_budgets
        (Budget('1'), Budget('1'))
        """
        return tuple(self.smallest if self.strict else level.budget for level in self.levels)

    @property
    def pair_budgets(self) -> Mapping[tuple[int, int], Budget | None]:
        """The explicit pair budgets that bind as such: none if `strict`, where every pair has the
        smallest budget of all.

        >>> Policy.from_budgets({"a": 1, "b": 2}, pairs=[("1", "2", 3)]).pair_budgets[0, 1]
        Budget('3')
        """
        return {} if self.strict else self.explicit

    @property
    def explicit(self) -> Mapping[tuple[int, int], Budget | None]:
        """Explicit pair budgets by the levels' places, in both orders unless one way only; None
        where a pair is not protected.

        >>> Policy.from_budgets({"a": 1, "b": 2}, pairs=[("1", "2", None)]).explicit
        {(0, 1): None, (1, 0): None}
        """
        return dict(self._explicit)  # a copy: the check must not read what a caller can change

    @cached_property
    def _explicit(self) -> Mapping[tuple[int, int], Budget | None]:
        place = {level.name: k for k, level in enumerate(self.levels)}
        both: dict[tuple[int, int], Budget | None] = {}
        for pair in self.pairs:
            i, j = place[pair.first], place[pair.second]
            both[i, j] = pair.budget
            if not pair.one_way:
                both[j, i] = pair.budget
        return both

    def pair_budget(self, i: int, j: int) -> PairBudget:
        """r of an answer of level i over one of level j: half the least of the sums of these
        budgets; None where the two levels are not protected from each other.

        >>> Policy.from_budgets({"a": 1, "b": 2}, notion="avg").pair_budget(0, 1)
        ((Budget('1'), Budget('2')),)
        """
        if not self.strict and (i, j) in self._explicit:
            explicit = self._explicit[i, j]
            return None if explicit is None else ((explicit, explicit),)
        return self.rule.pair(self.effective_budgets, i, j, self.cap)

    def pair_epsilon(self, i: int, j: int) -> float:
        """The same as a float; infinite where the pair is not protected.

        >>> Policy.from_budgets({"a": 1, "b": 2}, notion="avg").pair_epsilon(0, 1)
        1.5
        """
        sums = self.pair_budget(i, j)
        if sums is None:
            return math.inf
        return min(math.fsum(map(float, budgets)) / 2 for budgets in sums)

    # ---- files and comparison --------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the policy as a TOML file that `load` reads.

        >>> import tempfile
        >>> policy, path = Policy.from_budgets({"a": 1, "b": 2}), tempfile.mkdtemp() + "/p.toml"
        >>> policy.save(path)
        >>> Policy.load(path) == policy
        True
        """
        from discreet.policy.writing import save

        save(self, path)

    def to_canonical(self) -> JsonObject:
        """The policy as strings and integers only: what a mechanism file holds and its fingerprint
        covers. Weights belong to the design, not to the promise, and are left out.

        >>> Policy.from_budgets({"a": 1, "b": "ln(4)"}).to_canonical()["levels"]
        [{'name': '1', 'epsilon': '1'}, {'name': 'ln(4)', 'epsilon': 'ln(4)'}]
        """
        return {
            "question": self.question,
            "kind": str(self.kind),
            **({"strict": self.strict} if self.kind.pads else {}),
            "notion": self.notion,
            **({"cap": self.cap or 0} if self.rule.ordered else {}),
            "items": list(self.items),
            "level_of": list(self.level_of),
            "levels": [{"name": level.name, "epsilon": level.budget.text} for level in self.levels],
            "pairs": [
                {
                    "levels": [pair.first, pair.second],
                    "epsilon": pair.budget.text if pair.budget else "",
                    **({"one_way": True} if pair.one_way else {}),
                }
                for pair in self.pairs
            ],
            **({"totals": totals} if (totals := self._canonical_totals()) else {}),
            **({"last": list(self.last)} if self.last else {}),
        }

    def _canonical_totals(self) -> list[JsonObject]:
        return [{"name": total.name, "items": list(total.items)} for total in self.totals]

    @classmethod
    def from_canonical(cls, raw: JsonObject) -> Policy:
        """The reverse of `to_canonical`; raises PolicyError on anything else.

        >>> policy = Policy.from_budgets({"a": 1, "b": 2})
        >>> Policy.from_canonical(policy.to_canonical()) == policy
        True
        """
        try:
            levels = tuple(
                Level(
                    row["name"], OPEN if row["epsilon"] == "open" else Budget.parse(row["epsilon"])
                )
                for row in raw["levels"]
            )
            pairs = tuple(
                Pair(
                    row["levels"][0],
                    row["levels"][1],
                    Budget.parse(row["epsilon"]) if row["epsilon"] else None,
                    row.get("one_way", False),
                )
                for row in raw["pairs"]
            )
            level_of = tuple(raw["level_of"])
            items = tuple(raw["items"])
            of_sets = ("strict",) if raw["kind"] == Kind.SET else ()
            texts = {key: raw[key] for key in ("question", "kind", "notion", *of_sets)}
            last = tuple(raw.get("last", ()))
            totals = tuple(Total(row["name"], tuple(row["items"])) for row in raw.get("totals", ()))
            cap = raw["cap"] or None if raw["notion"] == "scale" else None
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise PolicyError(f"the policy in the file is not complete: {error!r}") from None
        more: JsonObject = {"pairs": pairs, "last": last, "totals": totals, "cap": cap}
        return cls(items, level_of, levels, **more, **texts)

    def differences(self, other: Policy) -> list[str]:
        """One sentence per difference from `other`; empty if the promise is the same.

        >>> Policy.from_budgets({"a": 1, "b": 2}).differences(Policy.from_budgets({"a": 1, "b": 3}))
        ['item "b" has epsilon 3, not 2']
        """
        return differences(self, other)

    def _repr_html_(self) -> str:
        from discreet.show import notebook

        return notebook.policy(self)
