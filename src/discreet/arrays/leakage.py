"""How far a report can change what is believed about an answer: bounds of prior / posterior (the
paper's Table "leakage").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from discreet.arrays.theory import item_shares
from discreet.arrays.types import Floats, Prior
from discreet.check.parts import Part
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.promises.guarantee import Guarantee


@dataclass(frozen=True)
class Leakage:
    """Bounds of Pr(x) / Pr(x | y) over all reports y: per level, or per item for a given prior."""

    lower: Floats
    upper: Floats


def leakage(guarantee: Guarantee, prior: Prior | None = None) -> Leakage:
    """Bounds for every prior, per level; or the exact bounds for a given prior, per item."""
    if guarantee.policy.kind.lists:
        raise DesignError(
            "leakage is defined for single answers; for sets, see set_factor and list_factor"
        )
    if prior is None:
        epsilons = np.array(guarantee.level_epsilons)
        return Leakage(_exp(-epsilons), _exp(epsilons))
    if len(guarantee.mechanisms) > 1:
        raise DesignError("the leakage for a given prior needs one mechanism, not a composition")
    (mechanism,) = guarantee.mechanisms
    return _for_prior(mechanism, item_shares(mechanism.policy, prior))


def leakage_bounds(
    policy: Policy, notion: str, prior: Prior = "uniform", distance: Floats | None = None
) -> Leakage:
    """Bounds of Pr(x) / Pr(x | y) per item under a notion: "ldp" and "pldp" at the smallest budget,
    "gi" (also CLDP) with the smallest budget per unit of `distance` (an m x m array), "minid" with
    the policy's budgets.
    """
    eps = np.array([float(x) for x in policy.effective_budgets])[list(policy.level_of)]
    if notion in ("ldp", "pldp"):
        eps = np.full(policy.m, eps.min())
    elif notion == "minid":
        eps = np.minimum(eps, 2 * eps.min())
    elif notion == "gi":
        if distance is None:
            raise DesignError('notion "gi" needs a distance between every two items')
        shares, scaled = (
            item_shares(policy, prior),
            eps.min() * np.asarray(distance, dtype=float),
        )
        return Leakage(np.exp(-scaled) @ shares, np.exp(scaled) @ shares)
    else:
        raise DesignError(f'notion = "{notion}" must be one of ldp, pldp, gi, minid')
    return Leakage(_exp(-eps), _exp(eps))


def _exp(x: Floats) -> Floats:
    """e^x, infinite where it is beyond every float."""
    with np.errstate(over="ignore"):
        return np.exp(x)


def _for_prior(mechanism: Mechanism, shares: Floats) -> Leakage:
    """The extremes of Pr(y) / Pr(y | x) over all reports y.

    They name the likeliest, or the least likely, items of every group, with or without the item x.
    For tickets, which have fewer subsets, this is a bound.
    """
    lower, upper = np.full(mechanism.m, np.inf), np.zeros(mechanism.m)
    members = [
        np.flatnonzero(mechanism.arrays.group_of == g) for g in range(len(mechanism.group_sizes))
    ]
    fixed = mechanism.encoding.fixed_size
    for part in cast(tuple[Part, ...], mechanism.parts):
        for bound, keep, top in ((upper, np.maximum, True), (lower, np.minimum, False)):
            # per group: the sums by item, with x named and not named; their extreme over all items
            sums: list[list[Floats]] = []
            best: list[float] = []
            for g, places in enumerate(members):
                named, unnamed = _likelihoods(part, g)
                count = part.ints.other[g] if fixed else None
                of_named = _named_shares(shares[places], count, largest=(named > unnamed) == top)
                mass = shares[places].sum()
                sums.append([mass * unnamed + (named - unnamed) * x for x in of_named])
                best.append(
                    (np.max if top else np.min)(sums[-1]) if part.ints.own[g] else mass * unnamed
                )
            for g, places in enumerate(members):
                others = sum(best) - best[g]
                for own, mine in zip(_likelihoods(part, g), sums[g], strict=True):
                    bound[places] = keep(
                        bound[places], (others + (mine if part.ints.own[g] else best[g])) / own
                    )
    return Leakage(lower, upper)


def _likelihoods(part: Part, g: int) -> tuple[float, float]:
    """The likelihood of a report that names the answer, and of one that does not, up to a common
    factor.
    """
    chance, own, other = (
        float(x[g]) for x in (part.by_group.chance, part.by_group.own, part.by_group.other)
    )
    if not part.ints.own[g]:
        return chance, chance
    return chance * own / other, chance * (1 - own) / (1 - other)


def _named_shares(shares: Floats, count: int | None, largest: bool) -> tuple[Floats, Floats]:
    """The largest, or smallest, sum of shares that a report can name with every item and without
    it: of `count` items, or of any number.
    """
    if count is None:
        return (
            (shares.sum() + 0 * shares, shares.sum() - shares) if largest else (shares, 0 * shares)
        )
    order = np.argsort(-shares if largest else shares, kind="stable")
    sums = np.concatenate(([0.0], np.cumsum(shares[order])))
    rank = np.empty(len(shares), np.int64)
    rank[order] = np.arange(len(shares))
    k = max(count, 1)
    included = np.where(rank < k, sums[k], sums[k - 1] + shares)
    excluded = np.where(rank < k, sums[min(k + 1, len(shares))] - shares, sums[k])
    return included, excluded
