"""The check that stands between any solver and any mechanism, in exact integer arithmetic.

Nothing here uses floating point, a solver or numpy: this file is meant to be audited. Probabilities are
integers: a = A / D and b = B / Q with D = 2^32 and Q = D (bits) or Q = P = 2^31 - 1 (compact).
Budgets are turned into rationals that are *at most* e^epsilon, so what passes here holds for the budget.

What is proved, for every two inputs of levels i and j and every report y (paper, Def. 2):

    Pr(y | i) <= e^{r_ij} Pr(y | j)

unary:  0 < b <= a < 1 and  A_i (Q - B_j) <= e^{r_ij} B_i (D - A_j)     (paper, Eq. "constraint")
direct: rows sum to D, and every two entries of a column are within the pair budget of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from discreet.policy import Budget, Policy

D = 2**32
P = 2**31 - 1
_BITS = 80  # of the fraction of an irrational bound: 2^48 times finer than a probability
_CEILING = Fraction(45)  # every ratio of two probabilities here is below 2^64 < e^45


@dataclass(frozen=True)
class Violation:
    """Where a guarantee fails; `levels` are two places in the policy's order, or none."""

    sentence: str
    levels: tuple[int, ...] = ()
    part: int | None = None


def exp_lower(x: Fraction) -> Fraction:
    """A rational at most e^x for x >= 0: the Taylor series with every term rounded down."""
    numerator, denominator = x.numerator, x.denominator
    total = term = 1 << _BITS
    k = 0
    while term:
        k += 1
        term = term * numerator // (denominator * k)
        total += term
    return Fraction(total, 1 << _BITS)


def sqrt_lower(x: Fraction) -> Fraction:
    """A rational at most the square root of x >= 0; exact for squares of rationals with small denominators."""
    root = Fraction(isqrt(x.numerator), isqrt(x.denominator))
    if root * root == x:
        return root
    return Fraction(isqrt((x.numerator << 2 * _BITS) // x.denominator), 1 << _BITS)


def factor(budget: Budget) -> Fraction:
    """A rational at most e^epsilon; exactly k for the budget ln(k)."""
    return budget.value if budget.is_log else exp_lower(min(budget.value, _CEILING))


class Factors:
    """Rationals at most e^{eps_i} and e^{r_ij}, of a policy's levels."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.of_level = [factor(level.budget) for level in policy.levels]

    def pair(self, i: int, j: int) -> Fraction | None:
        """A rational at most e^{r_ij}; None where the pair is not protected."""
        if (i, j) in self.policy.overrides:
            budget = self.policy.overrides[i, j]
            return None if budget is None else factor(budget)
        first, second = self.of_level[i], self.of_level[j]
        return min(first, second) if self.policy.notion == "min" else sqrt_lower(first * second)


# ---- unary ------------------------------------------------------------------------------------------


def check_unary(policy: Policy, parts: Sequence[tuple[int, Sequence[int], Sequence[int]]], q: int) -> Violation | None:
    """Check (share, A, B) of every part, B over q; None when the guarantee holds for all of them."""
    if not parts or any(type(share) is not int or share <= 0 for share, _, _ in parts):
        return Violation("every part needs a share that is a positive integer")
    if sum(share for share, _, _ in parts) != D:
        return Violation("the shares of the parts do not sum to 2^32")
    factors = Factors(policy)
    for k, (_, a, b) in enumerate(parts):
        found = _check_part(factors, a, b, q)
        if found:
            return Violation(found.sentence, found.levels, k)
    return None


def _check_part(factors: Factors, a: Sequence[int], b: Sequence[int], q: int) -> Violation | None:
    t = len(factors.of_level)
    if len(a) != t or len(b) != t or any(type(x) is not int for x in (*a, *b)):
        return Violation(f"a part needs {t} integers a and {t} integers b, one per level")
    for i in range(t):
        # Without this the inequality below can hold as 0 <= 0 while privacy is broken.
        if not (0 < b[i] < q and 0 < a[i] < D and b[i] * D <= a[i] * q):
            return Violation(f"a = {a[i]}/{D}, b = {b[i]}/{q} break 0 < b <= a < 1", (i,))
    return (_check_every_pair if factors.policy.pairs else _check_extremes)(factors, a, b, q)


def _check_every_pair(factors: Factors, a: Sequence[int], b: Sequence[int], q: int) -> Violation | None:
    for i in range(len(a)):
        for j in range(len(a)):
            e = factors.pair(i, j)
            if e is not None and a[i] * (q - b[j]) * e.denominator > e.numerator * b[i] * (D - a[j]):
                return _broken(factors.policy, i, j)
    return None


def _check_extremes(factors: Factors, a: Sequence[int], b: Sequence[int], q: int) -> Violation | None:
    """The same as every pair, in O(t): with alpha = a/b and gamma = (1-b)/(1-a), a pair asks for
    alpha_i gamma_j <= min(e_i, e_j), or (alpha_i^2/e_i)(gamma_j^2/e_j) <= 1, so only the largest ones matter.
    """
    e, policy = factors.of_level, factors.policy
    if policy.notion == "avg":
        i = _largest([(x * x * f.denominator, y * y * f.numerator) for x, y, f in zip(a, b, e, strict=True)])
        j = _largest([((q - y) ** 2 * f.denominator, (D - x) ** 2 * f.numerator) for x, y, f in zip(a, b, e, strict=True)])
        high, low = (a[i] * (q - b[j])) ** 2, (b[i] * (D - a[j])) ** 2
        return _broken(policy, i, j) if high > e[i] * e[j] * low else None
    i = _largest(list(zip(a, b, strict=True)))
    j = _largest([(q - y, D - x) for x, y in zip(a, b, strict=True)])
    for k, f in enumerate(e):
        if a[k] * (q - b[j]) * f.denominator > f.numerator * b[k] * (D - a[j]):
            return _broken(policy, k, j)
        if a[i] * (q - b[k]) * f.denominator > f.numerator * b[i] * (D - a[k]):
            return _broken(policy, i, k)
    return None


def _largest(ratios: list[tuple[int, int]]) -> int:
    """The place of the largest of ratios (numerator, positive denominator)."""
    best = 0
    for k, (numerator, denominator) in enumerate(ratios):
        if numerator * ratios[best][1] > ratios[best][0] * denominator:
            best = k
    return best


def _broken(policy: Policy, i: int, j: int) -> Violation:
    first, second = policy.levels[i].name, policy.levels[j].name
    return Violation(f'the pair of levels ("{first}", "{second}") is told apart by more than its pair budget', (i, j))


# ---- direct -----------------------------------------------------------------------------------------


def check_direct(policy: Policy, groups: Sequence[int], diagonal: Sequence[int], off: Sequence[Sequence[int]]) -> Violation | None:
    """Check the mapping matrix: `groups` gives every level its group, `diagonal[c]` is the probability of sending
    the item itself, `off[c][d]` of sending a given other item of group d, for an input of group c.
    """
    count = len(diagonal)
    shaped = len(groups) == len(policy.levels) and set(groups) == set(range(count)) and len(off) == count
    shaped = shaped and all(type(group) is int for group in groups)
    if not shaped or any(len(row) != count for row in off):
        return Violation("the matrix does not have a row and a column for every group of levels")
    sizes = [0] * count
    for group, size in zip(groups, policy.sizes, strict=True):
        sizes[group] += size
    for c in range(count):
        for d in range(count):
            exists = c != d or sizes[c] > 1
            if type(off[c][d]) is not int or (off[c][d] <= 0 if exists else off[c][d] != 0):
                return Violation(f"entry ({c}, {d}) of the matrix must be {'positive' if exists else '0'}", ())
        row = sum(sizes[d] * off[c][d] for d in range(count)) - off[c][c] + diagonal[c]
        if type(diagonal[c]) is not int or diagonal[c] <= 0 or row != D:
            return Violation(f"row {c} of the matrix does not sum to 2^32")
    bound = _group_factors(policy, groups, count)
    for d in range(count):  # a column: the item's own row, then one row of every group of other inputs
        column = [(d, diagonal[d])] + [(c, off[c][d]) for c in range(count) if c != d or sizes[c] > 1]
        for k, (c1, high) in enumerate(column):
            for l, (c2, low) in enumerate(column):
                e = bound[c1][c2]
                if k != l and e is not None and high * e.denominator > e.numerator * low:
                    return _broken(policy, groups.index(c1), groups.index(c2))
    return None


def _group_factors(policy: Policy, groups: Sequence[int], count: int) -> list[list[Fraction | None]]:
    """The smallest factor of any two levels of two groups."""
    factors = Factors(policy)
    if not policy.pairs:
        e: list[Fraction | None] = [None] * count
        for group, f in zip(groups, factors.of_level, strict=True):
            old = e[group]
            e[group] = f if old is None else min(f, old)
        full = [f for f in e if f is not None]
        return [[min(x, y) if policy.notion == "min" else sqrt_lower(x * y) for y in full] for x in full]
    bound: list[list[Fraction | None]] = [[None] * count for _ in range(count)]
    for i, c in enumerate(groups):
        for j, d in enumerate(groups):
            e_ij, old = factors.pair(i, j), bound[c][d]
            if e_ij is not None and (old is None or e_ij < old):
                bound[c][d] = e_ij
    return bound
