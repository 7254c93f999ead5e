"""How many items people have, and how many of them are active in a cut (check/exact_picks.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays.theory import item_shares
from discreet.arrays.types import Floats, Ints, Prior, sum_by_place
from discreet.check.exact import D
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

    def law(self, sizes: Sequence[int], active: Sequence[int]) -> Floats:
        """The shares of people with 0, 1, … active items, s at most."""
        M, m = sum(sizes), sum(x for x, on in zip(sizes, active, strict=True) if on)
        part = M * float(self.groups @ np.array(active, float))
        law = np.zeros(min(len(self.sizes) - 1, m) + 1)
        for k, share in enumerate(self.sizes):
            if share > 0:
                drawn = _drawn(M, m, part, k)
                law[: len(drawn)] += share * drawn
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


def _drawn(M: int, m: int, part: float, k: int) -> Floats:
    """The law of the number of active items of k that are drawn without replacement from M, as if
    `part` of these were active instead of m.
    """
    law = np.zeros(min(k, m) + 1)
    for j in range(max(0, k - (M - m)), min(k, m, M) + 1):
        law[j] = max(0.0, _choose(part, j) * _choose(M - part, k - j))
    if not law.sum() > 0:  # nobody can have k items of these groups
        law[min(m, max(0, k - (M - m)))] = 1.0
    return law / law.sum()


def _choose(n: float, k: int) -> float:
    return math.prod((n - i) / (i + 1) for i in range(k))
