"""What a policy may hold. Every policy is validated here, once, when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.errors import PolicyError
from discreet.policy.budgets import Budget, Level, Pair
from discreet.policy.labels import is_label, is_prose, looks, quoted
from discreet.policy.notions import NOTIONS

if TYPE_CHECKING:
    from discreet.policy.policy import Policy

MAX_LEVELS_WITH_PAIRS = 200
MOST_POINTS = 50  # of a scale
ESTIMATES = ("items", "mean", "both")  # what the design of a scale is best for
_LARGEST_PADDING = 65_536
_LARGEST_WEIGHT = 1e12


def check_policy(policy: Policy) -> None:
    """Raise PolicyError unless everything in a policy is allowed and fits together."""
    _check_items(policy)
    _check_levels(policy)
    if policy.notion not in NOTIONS:  # who writes levels is not offered a scale, which has none
        named = ", ".join(name for name, rule in NOTIONS.items() if not rule.ordered)
        raise PolicyError(
            f"notion = {quoted(policy.notion)} must be one of {named}; an ordered question has "
            "scale = 1 instead"
        )
    _check_texts(policy)
    refuse_look_alikes(policy.items, "item")
    refuse_look_alikes([level.name for level in policy.levels], "level")
    _check_sets(policy)
    _check_pairs(policy)
    _check_notion(policy)
    _check_totals(policy)


def _check_items(policy: Policy) -> None:
    if not policy.items:
        raise PolicyError("the policy has no items; add a [[level]] with items")
    for label in policy.items:
        if not isinstance(label, str) or not is_label(label):
            raise PolicyError(
                f"item {quoted(label)} must be a non-empty text without control characters "
                "and invisible characters"
            )
    refuse_duplicates(policy.items, "item")
    places = range(len(policy.levels))
    if len(policy.level_of) != len(policy.items) or any(
        type(k) is not int or k not in places for k in policy.level_of
    ):
        raise PolicyError("level_of must give every item the place of one of the levels")


def _check_levels(policy: Policy) -> None:
    for level in policy.levels:
        _check_level(level)
    refuse_duplicates([level.name for level in policy.levels], "level")
    for level, size in zip(policy.levels, policy.level_sizes, strict=True):
        if size == 0:
            raise PolicyError(f'level "{level.name}" has no items; give it some or leave it out')


def _check_level(level: Level) -> None:
    if type(level) is not Level or type(level.budget) is not Budget:
        raise PolicyError(
            f"a level is Level(name, Budget, weight), got {quoted(level)}; "
            'Budget.parse(1) and Budget.parse("ln(4)") make budgets'
        )
    if not isinstance(level.name, str) or not is_label(level.name):
        raise PolicyError(
            f"name = {quoted(level.name)} of a level must be a non-empty text without "
            "control characters and invisible characters"
        )
    ok = isinstance(level.weight, int | float) and not isinstance(level.weight, bool)
    if not (ok and 0 < level.weight <= _LARGEST_WEIGHT):
        raise PolicyError(
            f'weight = {quoted(level.weight)} in level "{level.name}" must be a positive number'
        )


def _check_texts(policy: Policy) -> None:
    if not isinstance(policy.question, str) or not is_prose(policy.question):
        raise PolicyError(
            f"question = {quoted(policy.question)} must be a text of one line, without control "
            "characters and invisible characters"
        )
    refuse_duplicates(policy.last, "item of last")
    for item in policy.last:
        if item not in policy.index:
            raise PolicyError(f"last names {quoted(item)}, which is not an item")
    if policy.last and policy.rule.ordered:
        raise PolicyError("last does not go with a scale, whose points are shown in their order")


def read_last(raw: object) -> tuple[str, ...]:
    """The items that people are shown after the others."""
    fine = isinstance(raw, list | tuple) and all(isinstance(item, str) for item in raw)
    if not fine:
        raise PolicyError(f"last = {quoted(raw)} must be a list of items")
    return tuple(raw)  # type: ignore[arg-type]


def _check_sets(policy: Policy) -> None:
    """Padding, strict and pairs fit the kind of answer, and each other."""
    if not isinstance(policy.strict, bool):
        raise PolicyError(f"strict = {quoted(policy.strict)} must be true or false")
    if not policy.kind.lists:
        for key, value in (("padding", policy.padding), ("strict", policy.strict or None)):
            if value is not None:
                raise PolicyError(
                    f'{key} = {quoted(value)} applies to kind = "set" only; leave it out'
                )
    if policy.kind.alone:
        without = {"padding": policy.padding, "strict": policy.strict, "[[pair]]": policy.pairs}
        surplus = next((key for key, value in without.items() if value), None)
        if surplus:
            raise PolicyError(
                f'{surplus} applies to whole sets, and kind = "each" protects every item '
                "on its own; leave one of them out"
            )
    if policy.padding is not None:
        check_padding(policy.padding)


def _check_totals(policy: Policy) -> None:
    if policy.totals and policy.kind.lists:
        raise PolicyError(
            f'totals are for kind = "single": with "{policy.kind}" a person may hold several items '
            "of a total, and the sum is not a number of people; leave them out"
        )
    names = [total.name for total in policy.totals]
    for name in names:
        if not isinstance(name, str) or not is_label(name):
            raise PolicyError(
                f"the name {quoted(name)} of a total must be a non-empty text without control "
                "characters and invisible characters"
            )
    refuse_duplicates([*policy.items, *names], "item or total")
    if names:
        refuse_look_alikes([*policy.items, *names], "item or total")
    for total in policy.totals:
        if not total.items:
            raise PolicyError(f"the total {quoted(total.name)} has no items; name some")
        refuse_duplicates(total.items, "item of a total")
        for item in total.items:
            if item not in policy.index:
                raise PolicyError(
                    f"the total {quoted(total.name)} names {quoted(item)}, which is not an item"
                )


def _check_pairs(policy: Policy) -> None:
    names = {level.name for level in policy.levels}
    seen: dict[tuple[str, str], Pair] = {}
    for pair in policy.pairs:
        for name in (pair.first, pair.second):
            if name not in names:
                raise PolicyError(f"pair names the level {quoted(name)}, which does not exist")
        if pair.one_way and pair.first == pair.second:
            raise PolicyError(
                f'the pair ("{pair.first}", "{pair.second}") is of one level and cannot be one way'
            )
        ways = [(pair.first, pair.second), *([] if pair.one_way else [(pair.second, pair.first)])]
        for way in ways:
            if seen.setdefault(way, pair).budget != pair.budget:
                raise PolicyError(
                    f'the pair ("{pair.first}", "{pair.second}") is given twice with different '
                    "budgets"
                )
    if policy.pairs and len(policy.levels) > MAX_LEVELS_WITH_PAIRS:
        raise PolicyError(
            f"explicit pair budgets are for at most {MAX_LEVELS_WITH_PAIRS} levels, got "
            f"{len(policy.levels)}; merge levels with equal budgets"
        )


def _check_notion(policy: Policy) -> None:
    """Open levels, one-way pairs, blocks and scales where they can be kept."""
    rule, kind = policy.rule, policy.kind
    levels = [level.name for level in policy.levels if level.budget.is_open]
    if levels and (rule.mutual or kind.lists):
        raise PolicyError(
            f'level {quoted(levels[0])} is open, which goes with notion = "one-way" and kind = '
            '"single" only; give it an epsilon'
        )
    if levels and len(levels) == len(policy.levels) and not policy.pairs:
        raise PolicyError("every level is open, so nothing is protected; give one an epsilon")
    one_way = any(pair.one_way for pair in policy.pairs)
    if kind.pads and (one_way or not rule.for_lists):
        what = "one_way pairs" if one_way else f'notion = "{policy.notion}"'
        raise PolicyError(
            f'{what} cannot protect whole lists; use notion = "min" or "avg", or kind = "each" '
            "with one-way, which protects every item on its own"
        )
    if kind.alone and (rule.ordered or not rule.complete):
        raise PolicyError(
            f'notion = "{policy.notion}" is about two answers, and kind = "each" protects every '
            "item on its own; leave one of them out"
        )
    if not rule.complete and len(policy.levels) > MAX_LEVELS_WITH_PAIRS:
        raise PolicyError(
            f"blocks are at most {MAX_LEVELS_WITH_PAIRS} levels, got {len(policy.levels)}"
        )
    if rule.ordered:
        _check_scale(policy)
    elif policy.cap is not None or policy.estimate != "both":
        raise PolicyError("cap and estimate are for a scale; leave them out")


def _check_scale(policy: Policy) -> None:
    lone = policy.level_of == tuple(range(policy.m))
    same = len({level.budget for level in policy.levels}) == 1
    named = tuple(level.name for level in policy.levels) == policy.items
    if not (lone and same and named) or policy.pairs:
        raise PolicyError(
            "a scale has one level per item, in their order and of one budget, and no pairs; "
            "write scale = 1 and items = [...], or use Policy.from_scale"
        )
    if not 2 <= policy.m <= MOST_POINTS:
        raise PolicyError(f"a scale has 2 to {MOST_POINTS} items, got {policy.m}")
    if policy.cap is not None and (type(policy.cap) is not int or not 1 <= policy.cap < policy.m):
        raise PolicyError(
            f"cap = {quoted(policy.cap)} must be a whole number of steps from 1 to {policy.m - 1}"
        )
    refuse_unknown("estimate", policy.estimate, ESTIMATES)


def check_padding(padding: object) -> int:
    """The padding length, or a PolicyError."""
    whole = isinstance(padding, int) and not isinstance(padding, bool)
    if not whole or not 1 <= padding <= _LARGEST_PADDING:  # type: ignore[operator]
        raise PolicyError(
            f"padding = {quoted(padding)} must be a whole number from 1 to {_LARGEST_PADDING}"
        )
    return padding  # type: ignore[return-value]


def refuse_duplicates(labels: Sequence[object], what: str) -> None:
    """Raise PolicyError where a label is named twice."""
    if len(set(labels)) == len(labels):
        return
    seen: set[object] = set()
    for label in labels:
        if label in seen:
            raise PolicyError(f"{what} {quoted(label)} is named twice")
        seen.add(label)


def refuse_unknown(key: str, value: object, allowed: Sequence[str]) -> None:
    """Raise PolicyError unless a value is one of those allowed."""
    if value not in allowed:
        raise PolicyError(f"{key} = {quoted(value)} must be one of {', '.join(allowed)}")


def refuse_look_alikes(labels: Sequence[str], what: str) -> None:
    """Raise PolicyError where people cannot tell two labels apart."""
    first_with: dict[str, int] = {}
    for k, label in enumerate(labels):
        for look in looks(label):
            first = labels[first_with.setdefault(look, k)]
            if first != label:
                letters = sorted({c for c in {*first} ^ {*label} if not c.isascii()})
                codes = ", ".join(f"U+{ord(c):04X}" for c in letters[:4])
                raise PolicyError(
                    f"the {what}s {quoted(first)} and {quoted(label)} look the same"
                    + (f" (they differ in {codes})" if codes else "")
                    + f": case, blanks and look-alike letters do not make another {what}"
                )
