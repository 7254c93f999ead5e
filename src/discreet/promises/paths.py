"""What the pair budgets imply together: a pair of answers is also protected through other answers,
by the sum of the budgets on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache

from discreet.check import exact
from discreet.mechanism import Mechanism
from discreet.policy import Budget, Policy
from discreet.promises.words import MARGIN, in_words, root_in_words

Paths = tuple[tuple[float, ...], ...]  # per ordered pair of levels


def epsilons(policy: Policy) -> list[float]:
    """The budget that binds every level."""
    return [float(budget) for budget in policy.effective_budgets]


def pair_row(policy: Policy, i: int) -> list[float]:
    """r of an answer of level i over one of every level; infinite where it is not protected."""
    if policy.kind.alone:  # one item is not had and the other is: both count
        budgets = epsilons(policy)
        return [budget + budgets[i] for budget in budgets]
    return [policy.pair_epsilon(i, j) for j in range(len(policy.levels))]


@lru_cache(4)
def shortest(policy: Policy) -> Paths:
    """The shortest path of pair budgets between two different inputs of every two levels."""
    paths = [pair_row(policy, i) for i in range(len(policy.levels))]
    for k in range(len(paths)):
        through = paths[k]
        paths = [[min(x, row[k] + y) for x, y in zip(row, through, strict=True)] for row in paths]
    return tuple(map(tuple, paths))


def longest(policy: Policy) -> list[float]:
    """Per level the longest of the shortest paths from one of its inputs to any other input (Lemma
    1's min{max E, 2 min E} is the largest for one `min` policy).
    """
    # in a set an item has another input of its level: itself with others
    lone = [size == 1 and not policy.kind.lists for size in policy.level_sizes]
    reach = policy.rule.reach
    if policy.pair_budgets or reach is None:
        return [
            max(0.0 if i == j and alone else path for j, path in enumerate(row))
            for i, (row, alone) in enumerate(zip(shortest(policy), lone, strict=True))
        ]
    budgets = epsilons(policy)
    if policy.m == 1 and not policy.kind.lists:
        return [0.0]
    least = min(budgets)
    order = sorted(range(len(budgets)), key=budgets.__getitem__, reverse=True)
    first, second = order[0], order[-1 if len(order) == 1 else 1]
    return [
        reach(own, budgets[second if k == first and lone[k] else first], least)
        for k, own in enumerate(budgets)
    ]


def has_gaps(policy: Policy) -> bool:
    """Whether some answers are left without any protection from each other, apart from open
    levels: not even through others.
    """
    complete = policy.rule.complete
    if policy.strict or (complete and all(pair.budget is not None for pair in policy.pairs)):
        return False
    lone = [size == 1 and not policy.kind.lists for size in policy.level_sizes]
    return any(
        path == math.inf and (i != j or not lone[i]) and not policy.levels[i].budget.is_open
        for i, row in enumerate(shortest(policy))
        for j, path in enumerate(row)
    )


def ldp_bound(policy: Policy) -> float:
    """The budget of plain LDP that a policy implies."""
    if policy.kind.alone:
        each = zip(epsilons(policy), policy.level_sizes, strict=True)
        return math.fsum(budget * size for budget, size in each)
    return max(longest(policy))


def acting(policy: Policy) -> list[float | None]:
    """Per level what its budget acts as, where it cannot be used up; else None. With budgets 1 and
    2.5 under `min`, two answers of the second level are each within 1 of one of the first, so 2.5
    acts as 2.
    """
    alone = policy.kind.alone  # every item is a question of its own
    if alone or (policy.m == 1 and not policy.kind.lists):
        return [None] * len(policy.levels)
    both = zip(epsilons(policy), longest(policy), strict=True)
    return [acts if acts < budget - 1e-9 else None for budget, acts in both]


def through_others(policy: Policy, paths: Paths, i: int, j: int) -> str:
    """In words, at most what tells two levels apart through others: the budgets along the shortest
    path (`shortest`), each as a rational at least e^r.
    """
    if paths[i][j] > math.log(1e308):
        return in_words(math.inf)
    square, here = Fraction(1), i
    for _ in policy.levels:
        row = pair_row(policy, here)
        ways = [edge + paths[k][j] for k, edge in enumerate(row)]
        following = min(range(len(ways)), key=ways.__getitem__)
        if row[j] <= ways[following]:
            return root_in_words(square * _square_up(policy, here, j))
        square *= _square_up(policy, here, following)
        here = following
    return in_words(math.exp(paths[i][j]) * MARGIN)  # budgets too small to be told from none


def _square_up(policy: Policy, i: int, j: int) -> Fraction:
    """At least e^{2 r} of two levels."""
    sums = policy.pair_budget(i, j)
    assert sums is not None  # a path goes along pairs that are protected
    return min(math.prod(map(factor_up, budgets), start=Fraction(1)) for budgets in sums)


def factor_up(budget: Budget) -> Fraction:
    """A rational at least e^epsilon, for an epsilon up to 710; exactly k for the budget ln(k)."""
    if budget.is_log:
        exactly = budget.root == 1
        return exact.factor(budget) + (0 if exactly else Fraction(1, 2**80))
    # of the Taylor sum's 2,000 terms each is less than 2^-80 e^x too small
    return exact.exp_lower(budget.value) * (1 + Fraction(1, 2**60))


def unprotected(mechanisms: Iterable[Mechanism]) -> Iterator[tuple[Policy, Paths, int, int]]:
    """The pairs of levels that a policy leaves out, by place, with the policy and its paths."""
    for policy in (mechanism.policy for mechanism in mechanisms):
        if not policy.pair_budgets:
            continue
        through, names = shortest(policy), [level.name for level in policy.levels]
        for pair in policy.pairs:
            i, j = names.index(pair.first), names.index(pair.second)
            left = pair.budget is None and not pair.one_way
            if left and (i != j or policy.level_sizes[i] > 1):
                yield policy, through, i, j
