"""How many items people have, and which classes they are in (check/exact_picks.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays.theory import item_shares
from discreet.arrays.types import Floats, Ints, Prior, sum_by_place
from discreet.check.exact import D
from discreet.check.exact_picks import classes
from discreet.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class People:
    """How many items people have, and which: shares of people with 0, …, s items, and the share of
    all items that each group has.
    """

    sizes: Floats
    groups: Floats

    @classmethod
    def at_prior(cls, mechanism: Mechanism, prior: Prior) -> People:
        """Everybody has as many items as the shares of a prior say on average, rounded to either
        side.
        """
        s = mechanism.padding or 1
        held = item_shares(mechanism.policy, prior, s)
        group_of = mechanism.arrays.group_of
        return cls(mean_size(float(held.sum()), s), parted(group_of, held))

    @classmethod
    def at_shares(cls, mechanism: Mechanism) -> People:
        """Those that the estimates of a mechanism are best for."""
        count, s = len(mechanism.group_sizes), mechanism.padding or 1
        shares = np.array(mechanism.shares, float) / D
        sizes = shares[count:] * s / (s - np.arange(s))
        sizes = np.append(sizes, max(0.0, 1 - sizes.sum()))
        total = shares[:count].sum()
        even = np.array(mechanism.group_sizes, float)
        return cls(sizes / sizes.sum(), shares[:count] / total if total else even / even.sum())

    def shares(self) -> Floats:
        """The shares in the mechanism: of all s places of everybody, those with an item of every
        group, and the empty ones of people with 0, …, s - 1 items.
        """
        s = len(self.sizes) - 1
        empty = self.sizes[:s] * (s - np.arange(s)) / s
        return np.append(self.groups * (1 - empty.sum()), empty)

    def law(self, sizes: Sequence[int], blocks: Sequence[int] | Ints) -> Floats:
        """The shares of people of every class (exact_picks.classes; of those that there are) of a
        cut with these blocks of groups.
        """
        count, everyone, s = int(max(blocks)), sum(sizes), len(self.sizes) - 1
        m = sum_by_place(blocks, np.array(sizes), count + 1)
        # drawn without replacement, as if the blocks had the share of all items that people have
        held = everyone * sum_by_place(blocks, self.groups, count + 1)
        held[0] = everyone - held[1:].sum()
        every = np.array([j for j in classes(count, s) if all(j <= m[1:])])
        law = np.zeros(len(every))
        for size, share in enumerate(self.sizes):
            if share > 0:
                idle = min(size, everyone) - every.sum(axis=1)
                drawn = np.where((idle >= 0) & (idle <= m[0]), 1.0, 0.0)
                ways = np.prod([_choose(x, j) for x, j in zip(held[1:], every.T, strict=True)], 0)
                found = drawn * ways * _choose(held[0], np.maximum(idle, 0))
                if not found.sum() > 0:  # nobody can have so many items of these groups
                    found = np.eye(len(law))[np.argmax(drawn)]
                law += share * found / found.sum()
        return law / law.sum()


def mean_size(mean: float, s: int) -> Floats:
    """The law of sizes next to a mean."""
    mean = min(mean, float(s))
    low, sizes = math.floor(mean), np.zeros(s + 1)
    sizes[low] = 1 - (mean - low)
    if low < s:
        sizes[low + 1] = mean - low
    return sizes


def parted(group_of: Ints, held: Floats) -> Floats:
    """The share of all items that each group has."""
    shares = sum_by_place(group_of, held, int(group_of.max()) + 1)
    return shares / shares.sum()


def _choose(n: float, k: Ints) -> Floats:
    """The binomial coefficients of any number n; 0 where k - 1 is above it."""
    steps = np.arange(int(k.max(initial=0)))
    return np.append(1.0, np.cumprod(np.maximum(n - steps, 0) / (steps + 1)))[k]
