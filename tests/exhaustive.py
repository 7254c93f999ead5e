"""Exact enumeration of every report's probability, in rational arithmetic: the real claim, without sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, product

from discreet.exact import D
from discreet.mechanism import Mechanism
from discreet.policy import Budget, Policy

Distribution = dict[object, Fraction]


def factor(policy: Policy, i: int, j: int) -> Fraction | None:
    """e^{r_ij} of two levels to 50 digits, rounded up, computed apart from exact.py."""
    context = Context(prec=60)

    def log(budget: Budget) -> Decimal:
        value = context.divide(Decimal(budget.value.numerator), Decimal(budget.value.denominator))
        return context.ln(value) if budget.is_log else value

    if (i, j) in policy.overrides:
        budget = policy.overrides[i, j]
        if budget is None:
            return None
        r = log(budget)
    else:
        first, second = log(policy.levels[i].budget), log(policy.levels[j].budget)
        r = min(first, second) if policy.notion == "min" else context.divide(context.add(first, second), Decimal(2))
    return Fraction(context.exp(r)) * (1 + Fraction(1, 10**50))  # far closer to e^r than one unit of 2^-32


def single(mechanism: Mechanism) -> Callable[[int], Distribution]:
    """Pr(report | item) for every item, over (part, bits) or the item sent."""
    policy = mechanism.policy
    if mechanism.matrix is not None:
        matrix, groups = mechanism.matrix, [mechanism.matrix.groups[k] for k in policy.level_of]

        def direct(x: int) -> Distribution:
            return {
                y: Fraction(matrix.diagonal[groups[x]] if x == y else matrix.off[groups[x]][groups[y]], D) for y in range(policy.m)
            }

        return direct

    def unary(x: int | None) -> Distribution:
        found: Distribution = {}
        for k, part in enumerate(mechanism.parts):
            a = [Fraction(part.A[level], D) for level in policy.level_of]
            b = [Fraction(part.B[level], part.base) for level in policy.level_of]
            for y in product((0, 1), repeat=policy.m):
                chance = Fraction(part.numerator, D)
                for i, bit in enumerate(y):
                    p = a[i] if i == x else b[i]
                    chance *= p if bit else 1 - p
                found[k, y] = chance
        return found

    return unary  # type: ignore[return-value]


def sets(mechanism: Mechanism) -> Callable[[frozenset[int]], Distribution]:
    """Pr(report | set): padded and sampled; a dummy draws every bit from b (DESIGN "set input")."""
    one = single(mechanism)
    cache = {x: one(x) for x in (*range(mechanism.m), None)}  # type: ignore[arg-type]
    ell = mechanism.padding or 1

    def of(x: frozenset[int]) -> Distribution:
        each = Fraction(1, max(len(x), ell))
        rest = 1 - each * len(x)
        return {y: rest * nothing + sum((each * cache[i][y] for i in x), Fraction(0)) for y, nothing in cache[None].items()}

    return of


def subsets(m: int) -> Iterator[frozenset[int]]:
    for size in range(m + 1):
        yield from (frozenset(c) for c in combinations(range(m), size))


def violations(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Ordered pairs of items that some report tells apart by more than the policy allows (single input)."""
    of, policy = single(mechanism), mechanism.policy
    tables = [of(x) for x in range(policy.m)]
    found = []
    for i, j in product(range(policy.m), repeat=2):
        e = factor(policy, policy.level_of[i], policy.level_of[j])
        if i != j and e is not None and any(tables[i][y] > e * tables[j][y] for y in tables[i]):
            found.append((i, j))
    return found
