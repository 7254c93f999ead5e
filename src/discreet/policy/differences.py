"""What differs between two policies, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.policy.policy import Policy

_COMPARED = ("notion", "cap", "kind", "question", "strict", "last")


def differences(mine: Policy, other: Policy) -> list[str]:
    """A sentence for everything in which `other` differs; empty when the promise is the same."""
    sentences = [
        f"{key} is {quoted(getattr(other, key))}, not {quoted(getattr(mine, key))}"
        for key in _COMPARED
        if getattr(mine, key) != getattr(other, key)
    ]
    if None not in (mine.padding, other.padding) and mine.padding != other.padding:
        sentences.append(f"padding is {other.padding}, not {mine.padding}")
    sentences += _items(mine, other)
    if not sentences and mine.items != other.items:
        sentences.append("the items are in another order")
    if not sentences and not mine.rule.complete and _blocks_differ(mine, other):
        sentences.append("the levels group the items in another way")
    if not sentences and (mine.pairs or other.pairs) and _pairs_differ(mine, other):
        sentences.append("the explicit pair budgets differ")
    return sentences


def _items(mine: Policy, other: Policy) -> list[str]:
    """Items that are missing, have another budget, or are not mine."""
    sentences = []
    theirs = {
        item: other.levels[k].budget for item, k in zip(other.items, other.level_of, strict=True)
    }
    for item, k in zip(mine.items, mine.level_of, strict=True):
        budget, own = theirs.pop(item, None), mine.levels[k].budget
        if budget is None:
            sentences.append(f"item {quoted(item)} is missing")
        elif budget != own:
            sentences.append(f"item {quoted(item)} has epsilon {budget.text}, not {own.text}")
    return sentences + [f"item {quoted(item)} is not in the policy" for item in theirs]


def _blocks_differ(mine: Policy, other: Policy) -> bool:
    """Whether two items share a level in one policy alone, where that decides what is protected."""
    level_of = dict(zip(mine.items, mine.level_of, strict=True))
    both = {(level_of[item], k) for item, k in zip(other.items, other.level_of, strict=True)}
    return not len(both) == len(mine.levels) == len(other.levels)


def _pairs_differ(mine: Policy, other: Policy) -> bool:
    """Whether some pair of items has an explicit budget in one policy and not in the other,
    whatever the levels are called. With `strict` too: the smallest of them may be the budget of
    every pair.
    """
    level_of = dict(zip(mine.items, mine.level_of, strict=True))
    both = {(level_of[item], k) for item, k in zip(other.items, other.level_of, strict=True)}
    silent = object()
    return any(
        mine.explicit.get((i, j), silent) != other.explicit.get((k, l), silent)
        for i, k in both
        for j, l in both
    )
