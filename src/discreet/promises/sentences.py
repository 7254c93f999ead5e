"""What a participant reads: the promise in words, and a warning where the promise is weak."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from discreet.promises import paths
from discreet.promises.ratios import Factor, factor_up, level_factors
from discreet.promises.words import in_words

if TYPE_CHECKING:
    from discreet.policy import Policy
    from discreet.promises.guarantee import Guarantee

WEAK = 100  # a factor between two answers above which nobody is told that they are safe
SAFE = (
    "From one report nobody, not even the organiser, can tell for sure what you answered. "
    "Many reports together still give good counts."
)
_NAMED = 3  # items of a level that are named


def caution(guarantee: Guarantee) -> str:
    """A warning that replaces every sentence that reassures; empty where none is needed.

    It is needed where one report can change the odds between two answers by more than WEAK, or
    where a pair of answers is not protected at all, or only one way.
    """
    policy = guarantee.policy
    kind, cautions = policy.kind, []
    if not policy.rule.complete:
        cautions.append(
            "It may become known which group of answers yours is in; it is protected within its "
            "group only."
        )
    elif kind.alone and not policy.is_mutual:
        cautions.append("That you do not have something may become known.")
    elif paths.has_gaps(policy):
        cautions.append(
            "Some answers are not protected from each other: whoever sees your report may know "
            "which of them is yours."
        )
    if policy.open_levels:
        names = " and ".join(f'"{policy.levels[k].name}"' for k in policy.open_levels)
        cautions.append(
            f"Answers of {names} are not protected: your report may show such an answer as it is. "
            "That one of the other answers is not yours may become known."
        )
    largest = _largest(guarantee)
    if largest > WEAK:
        between = "having and not having an answer" if kind.lists else "two answers"
        cautions.append(_weak(between, in_words(largest)))
    if cautions:
        return " ".join(cautions)
    if kind.pads and guarantee.set_factor > WEAK:
        return _weak("two lists of answers", in_words(guarantee.set_factor))
    if kind.alone and guarantee.ldp_epsilon > math.log(WEAK):
        return (
            "Each answer is protected on its own, but a list of several answers is not: "
            "whoever sees your report may be almost sure of the list as a whole."
        )
    return ""


def _largest(guarantee: Guarantee) -> Factor:
    """The largest factor between two answers that has a limit, also of how far odds can fall."""
    promised = [factor for factor in guarantee.factors if factor < math.inf]
    both = [] if guarantee.policy.kind.lists else level_factors(guarantee.mechanisms[0])
    return max([*promised, *(factor for factor in both if factor < math.inf)], default=1.0)


def _weak(between: str, factor: str) -> str:
    return (
        f"This is weak protection: one report can change the odds between {between} by up to a "
        f"factor of {factor}, so whoever sees yours may be almost sure what you answered."
    )


def lead(guarantee: Guarantee) -> str:
    """What a participant reads first; it reassures only where that is true."""
    change = "Your device changes your answer at random before anything is sent."
    return f"{change} {guarantee.caution or SAFE}"


def sentences(guarantee: Guarantee) -> list[str]:
    """One sentence per level, one of whole lists, then one per pair that is not protected. A scale
    has one per distance instead.
    """
    if guarantee.policy.rule.ordered and len(guarantee.mechanisms) == 1:
        return _distances(guarantee.policy)
    return [*_levels(guarantee), *guarantee.list_promises(), *_unprotected(guarantee)]


def _levels(guarantee: Guarantee) -> list[str]:
    policy = guarantee.policy
    members: dict[int, list[str]] = {}
    for item, k in zip(policy.items, guarantee.class_of, strict=True):
        if len(members.setdefault(k, [])) < _NAMED:
            members[k].append(f'"{item}"')
    promise, lowers = _promise(guarantee)
    lines = []
    for k, (name, factor) in enumerate(zip(guarantee.names, guarantee.factors, strict=True)):
        more = guarantee.sizes[k] - len(members[k])
        who = ", ".join(members[k]) + (f" and {more} more" if more else "")
        if factor == math.inf:
            lines.append(f"{name} ({who}): your report may show this answer as it is.")
        else:
            lines.append(f"{name} ({who}): {promise} {in_words(factor)}{lowers(k)}.")
    return lines


def _promise(guarantee: Guarantee) -> tuple[str, Callable[[int], str]]:
    """What is said of a level before and after its factor."""
    policy = guarantee.policy
    if policy.kind.lists:
        if guarantee.is_mutual:
            return (
                "having or not having it changes the chance of any report by at most a factor of",
                lambda k: "",
            )
        return (
            "having it raises the chance of any report by at most a factor of",
            lambda k: "; that you do not have it may become known",
        )
    if not guarantee.is_mutual and paths.has_gaps(policy):
        return (
            "whoever sees your report can raise their odds that this is your answer, against any "
            "other that it is protected from, by at most a factor of",
            lambda k: _lowered(math.inf, 1),
        )
    if not guarantee.is_mutual:
        return (
            "whoever sees your report can raise their odds that this is your answer, against any "
            "other, by at most a factor of",
            lambda k: _lowered(guarantee.level_epsilons[k], len(guarantee.mechanisms)),
        )
    others = "any other"
    if not policy.rule.complete:
        others = "any other of this group"
    elif paths.has_gaps(policy):
        others = "any other that it is protected from"
    return (
        f"whoever sees your report can change their odds between this answer and {others} by at "
        "most a factor of",
        lambda k: "",
    )


def _lowered(epsilon: float, terms: int) -> str:
    """By how much the odds of an answer can fall, where only their rise has its own limit."""
    if epsilon == math.inf:
        return "; that it is not may become known"
    return f", and lower them by at most a factor of {in_words(factor_up(epsilon, terms))}"


def _distances(policy: Policy) -> list[str]:
    """One sentence for neighbours, for two steps, and for the largest distance that counts."""
    most = policy.m - 1 if policy.cap is None else policy.cap
    step = paths.factor_up(policy.levels[0].budget)
    lines = []
    for steps in sorted({1, min(2, most), most}):
        far = f"{steps} step{'s' if steps > 1 else ''} away"
        if steps == policy.cap:
            far += " or more"
        lines.append(
            "Whoever sees your report can change their odds between your answer and one that is "
            f"{far} by at most a factor of {in_words(step**steps)}."
        )
    return lines


def _unprotected(guarantee: Guarantee) -> list[str]:
    lines = []
    for policy, through, i, j in paths.unprotected(guarantee.mechanisms):
        first, second = policy.levels[i].name, policy.levels[j].name
        what = (
            f'answers of "{first}" and answers of "{second}"'
            if first != second
            else f'two answers of "{first}"'
        )
        still = (
            "only through others, by a factor of at most "
            f"{paths.through_others(policy, through, i, j)}"
            if through[i][j] < math.inf
            else "not at all"
        )
        lines.append(
            f"The organiser chose not to protect which of {what} is yours: they are kept "
            f"apart {still}."
        )
    return lines
