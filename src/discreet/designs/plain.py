"""Plain LDP: the same items, all at the smallest budget; the choice without this package."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.types import Floats
from discreet.designs.rounding import SHRINKS, make_parts, shrink_until_checked
from discreet.encodings import Fixed
from discreet.errors import DesignError
from discreet.mechanism import Mechanism

if TYPE_CHECKING:
    from discreet.designs.task import Task


def rappor(task: Task) -> tuple[Floats, Floats]:
    """u and w of symmetric unary encoding: a + b = 1."""
    half = np.full(1, task.smallest / 2)
    return half, half


def oue(task: Task) -> tuple[Floats, Floats]:
    """u and w of optimised unary encoding: a = 1/2."""
    e = task.smallest
    low = math.log(2) - math.log1p(math.exp(-e))
    return np.full(1, e - low), np.full(1, low)


def grr(task: Task) -> Mechanism:
    """Generalised randomised response: a subset of one item."""
    return _subset(task, "grr", 1)


def ss(task: Task) -> Mechanism:
    """Subset selection (Ye and Barg): a subset of the best size k, next to m / (1 + e^eps)."""
    m, e = task.policy.m, min(task.smallest, 14.0)
    middle = m / (1 + math.exp(e))
    sizes = {min(max(1, int(k)), max(1, m - 1)) for k in (math.floor(middle), math.ceil(middle))}
    return _subset(task, "ss", min(sizes, key=lambda k: _error(m, k, e)))


def _error(m: int, k: int, e: float) -> float:
    """Total MSE / n of subsets of k items."""
    own = k * math.exp(e) / (k * math.exp(e) + m - k)
    b = k / m
    return (m - 1) ** 2 / m * b * (1 - b) / (own - b) ** 2 if m > 1 else 0.0


def _subset(task: Task, model: str, k: int) -> Mechanism:
    policy = task.policy
    if policy.kind.lists:
        raise DesignError(
            f"{model} names items of one answer and cannot take sets; use oue or opt0 with a "
            "padding"
        )
    if task.encoding == "ticket":
        raise DesignError(
            f'encoding = "ticket" does not apply to {model}, whose subsets have a fixed size; '
            "leave it out"
        )
    m, groups = policy.m, (0,) * len(task.sizes)
    one, shares = np.ones((1, 1)), task.whole_shares(np.ones(1))

    def rounded(shrink: float) -> Mechanism:
        e = min(task.smallest, 20.0) * (1 - shrink)
        own = np.array([[k * math.exp(e) / (k * math.exp(e) + m - k)]])
        parts = make_parts(policy, Fixed(), groups, one, own, np.array([[k if m > 1 else 0]]))
        return Mechanism(policy, model, Fixed(), groups, parts, shares, None, task.prior_name)

    return shrink_until_checked(rounded, (0.0, *SHRINKS))
