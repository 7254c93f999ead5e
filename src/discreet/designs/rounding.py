"""From a solver's floats to integers that pass the exact check: rounded toward privacy, and pulled in until they do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet import exact
from discreet.errors import DesignError
from discreet.exact import D, P
from discreet.mechanism import Floats, Matrix, Part
from discreet.policy import Policy

_STEPS = [0.0] + [2.0**-k for k in range(44, 3, -2)]


def parts_of(policy: Policy, designs: Sequence[tuple[float, Floats, Floats]], encoding: str) -> tuple[Part, ...]:
    """Parts from (share, u, w) per part. Smaller u and w are more private, so they shrink until the check agrees."""
    base = P if encoding == "compact" else D
    shares = np.maximum(1, np.floor(np.array([share for share, _, _ in designs]) * D)).astype(np.int64)
    shares[int(shares.argmax())] += D - int(shares.sum())
    for step in _STEPS:
        found = [
            Part(int(share), *_integers(u * (1 - step), w * (1 - step), base), base)
            for share, (_, u, w) in zip(shares, designs, strict=True)
        ]
        if exact.check_unary(policy, [(part.numerator, part.A, part.B) for part in found], base) is None:
            break
    else:
        raise DesignError("the budgets are too small to be told apart from 0 with probabilities over 2^32")
    informed = np.max([part.difference for part in found], axis=0)
    if informed.min() < 2.0**-31:
        level = policy.levels[int(informed.argmin())]
        raise DesignError(
            f'level "{level.name}" with epsilon {level.budget.text} learns nothing at probabilities over 2^32; '
            "use a budget of at least 1e-6"
        )
    return tuple(found)


def _integers(u: Floats, w: Floats, base: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A rounded down and B rounded up: both a/b and (1-b)/(1-a) can only fall."""
    silent = np.minimum(u, w) < 1e-9  # nothing is learnt: a = b, at any interior value
    u, w = np.where(silent, 1.0, u), np.where(silent, 1.0, w)
    top, bottom = -np.expm1(-w), np.expm1(u) - np.expm1(-w)
    b = top / bottom
    a = np.exp(u) * b
    B = np.clip(np.ceil(b * base), 1, base - 1).astype(np.int64)
    A = np.clip(np.floor(a * D), 1, D - 1).astype(np.int64)
    B = np.where(silent, base // 2, B)
    least = -(-B.astype(object) * D // base)  # the smallest A with a >= b
    A = np.where(silent | (least > A), least, A)
    return tuple(int(x) for x in A), tuple(int(x) for x in B)


def matrix_of(policy: Policy, groups: Sequence[int], sizes: Floats, D_: Floats, O_: Floats) -> Matrix:
    """An integer matrix; mixing with the flat matrix pulls every ratio toward 1 until the check agrees."""
    m = int(sizes.sum())
    count = [int(size) for size in sizes]
    for step in (*_STEPS, 0.25, 0.5, 1.0):
        mixed = (1 - step) * O_ + step / m
        off = [[max(1, int(np.ceil(x * D))) for x in row] for row in mixed]
        for c in range(len(count)):
            off[c][c] = off[c][c] if count[c] > 1 else 0
        diagonal = [D - sum(k * x for k, x in zip(count, row, strict=True)) + row[c] for c, row in enumerate(off)]
        if exact.check_direct(policy, groups, diagonal, off) is None:
            return Matrix(tuple(groups), tuple(diagonal), tuple(map(tuple, off)))
    raise DesignError(f"{m} items are too many for a direct mechanism with probabilities over 2^32; use mixed")
