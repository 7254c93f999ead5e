"""The estimator, and the expected variance, bias and MSE of its estimates, before anything is
collected.

Every report gives every item a score, and an estimate is the sum of the scores
(docs/researcher.md, "Parts, estimator, variance"):

    c_i = sum_o w_og (Y_oi - N_o kappa_og) + sum_o tau_og N_o

for item i of group g, Y_oi the reports of part o that name it and N_o all of that part. The scores
are unbiased for any data and best at the shares of participants that the mechanism was designed
for. Because the chance of a part depends on the answer, N_o carries information: nothing here is
conditional on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import DesignError
from discreet.exact import D
from discreet.mechanism import Mechanism
from discreet.parts import Floats
from discreet.policy import Policy

# ---- priors --------------------------------------------------------------------------------------


def item_shares(policy: Policy, prior: Any, padding: int | None = None) -> Floats:
    """The prior as a share of people per item: "uniform", or given per item or per level (a list or
    a mapping).

    Uniform set input: everybody has as many items as the padding, any of them.
    """
    m, t = policy.m, len(policy.levels)
    if isinstance(prior, str):
        if prior != "uniform":
            raise DesignError(
                f'prior = "{prior}" must be uniform, worst, or a share per item or per level'
            )
        return np.full(m, min(1.0, (padding or 1) / m))
    if isinstance(prior, Mapping):
        prior = _in_order(policy, prior)
    try:
        values = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise DesignError(
            "prior must be uniform, worst, or numbers: a share per item or per level"
        ) from None
    if values.shape not in {(m,), (t,)}:
        raise DesignError(
            f"prior has {values.size} shares; it needs one per item ({m}) or per level ({t})"
        )
    if not np.all(np.isfinite(values)) or values.min() < 0 or values.sum() <= 0:
        raise DesignError("prior must be finite shares that are not negative and not all zero")
    if values.shape != (m,):
        values = (values / np.array(policy.sizes))[np.array(policy.level_of)]
    if not policy.takes_sets:
        if abs(values.sum() - 1) > 1e-3:
            raise DesignError(
                f"prior sums to {values.sum():.6g}; the shares of single answers sum to 1"
            )
        return values / values.sum()
    if values.max() > 1:
        raise DesignError(f"prior has a share of {values.max():.6g}; the largest possible is 1")
    return values


def _in_order(policy: Policy, prior: Mapping[str, float]) -> list[float]:
    names = [level.name for level in policy.levels]
    for keys in (names, policy.items):
        if set(prior) <= set(keys):
            return [prior.get(key, 0.0) for key in keys]
    stranger = next(key for key in prior if key not in names and key not in policy.index)
    raise DesignError(f'prior names "{stranger}", which is neither an item nor a level')


def sample_shares(policy: Policy, prior: Any, padding: int | None) -> Floats:
    """Shares of the samples per item, for people with at most `padding` items each; what is left
    are empty samples.
    """
    shares = item_shares(policy, prior, padding) / (padding or 1)
    return shares / max(1.0, float(shares.sum()))


def reported_shares(mechanism: Mechanism, prior: Any) -> Floats:
    """The share of reports that speak of each item as one's own; nobody has more items than the
    padding.
    """
    policy, padding = mechanism.policy, mechanism.padding
    if padding is None:
        return item_shares(policy, prior)
    return sample_shares(policy, prior, padding) * (padding / mechanism.scale)


# ---- the estimator -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Decoder:
    """w, kappa and tau per part and group; and what one person's scores are, squared, on average.

    `spread[o, g]`: of an item of group g if part o was used by somebody with an answer of another
    group. `same[g]` and `own[g]`: over all parts, if the answer is another item of the group, or
    the item itself.
    """

    chance: Floats  # parts x groups (the last column: an empty sample, with set input)
    weight: Floats  # w
    kappa: Floats
    tau: Floats
    spread: Floats
    same: Floats
    own: Floats
    known: Any  # whether a group's items can be estimated at all

    @classmethod
    def of(cls, mechanism: Mechanism) -> Decoder:
        """The best unbiased estimator at the mechanism's shares (docs/researcher.md has the
        derivation).
        """
        return _decoder(mechanism)

    def base(self, part_n: Floats, totals: Floats) -> Floats:
        """Per group: the variance of an item that nobody holds, for so many reports of every part
        and samples per group.
        """
        g = len(self.same)
        extra = self.same - (self.chance[:, :g] * self.spread).sum(axis=0)
        return np.where(self.known, part_n @ self.spread + totals[:g] * extra, np.inf)

    @property
    def slope(self) -> Floats:
        """Per group: what one sample more at an item adds to its estimate's second moment."""
        return self.own - self.same


def _decoder(mechanism: Mechanism) -> Decoder:
    parts, sizes = mechanism.parts, mechanism.group_sizes.astype(float)
    groups, fixed = len(sizes), mechanism.encoding.fixed_size
    own, kappa, gap = (
        np.array([getattr(p, key) for p in parts])
        for key in ("own_group", "other_group", "difference")
    )
    chance = np.array([p.chance_group for p in parts])
    if mechanism.policy.takes_sets:
        chance = np.column_stack((chance, [(p.none or 0) / D for p in parts]))
    probability = chance @ (np.array(mechanism.shares, dtype=float) / D)
    mine = chance[:, :groups]
    noise = kappa * (1 - kappa)
    score = (
        np.where(noise > 0, mine * gap / np.where(noise > 0, noise, 1), 0) / probability[:, None]
    )
    reach = (score * mine * gap).sum(axis=0)
    known = reach > 0
    weight = np.where(known, score / np.where(known, reach, 1), 0)
    tau = np.zeros_like(weight)
    if fixed:
        weight *= 1 - 1 / sizes
        totals = _totals(chance, probability)
        tau = totals[:, :groups] / sizes
        known = (known | (sizes == 1)) & np.isfinite(tau).all(axis=0)
        tau = np.where(known, tau, 0)
    high, low = (weight * (1 - kappa) + tau) ** 2, (tau - weight * kappa) ** 2
    near = (kappa * sizes - own) / np.maximum(sizes - 1, 1) if fixed else kappa
    spread = kappa * high + (1 - kappa) * low
    same = (mine * (near * high + (1 - near) * low)).sum(axis=0)
    same = np.where(sizes > 1, same, (mine * spread).sum(axis=0))
    second = (mine * (own * high + (1 - own) * low)).sum(axis=0)
    return Decoder(chance, weight, kappa, tau, spread, same, second, known)


def _totals(chance: Floats, probability: Floats) -> Floats:
    """Scores of group totals, R G^-1 with R = chance / probability and G = sum_o p R R'; NaN where
    the parts do not tell.
    """
    R = chance / probability[:, None]
    G = chance.T @ R
    if np.linalg.matrix_rank(G, hermitian=True, tol=1e-13 * np.trace(G)) < len(G):
        return np.full_like(R, np.nan)
    return np.linalg.solve(G, R.T).T


# ---- a mechanism's figures -----------------------------------------------------------------------


def item_variance(mechanism: Mechanism, prior: Any = "uniform") -> Floats:
    """Var / n of every item's estimate for given shares of participants."""
    shares = reported_shares(mechanism, prior)
    d, scale, group_of = mechanism.decoder, mechanism.scale, mechanism.group_of
    totals = _by_group(mechanism, shares)
    # a holder speaks of the item with chance 1 / scale, whose square is subtracted
    return scale**2 * (
        d.base(d.chance @ totals, totals)[group_of] + shares * (d.slope[group_of] - 1 / scale)
    )


def _by_group(mechanism: Mechanism, shares: Floats) -> Floats:
    """Shares of the samples per group, then of empty ones (what is left of 1, where a report speaks
    of several items: its part does not depend on them).
    """
    totals = np.bincount(mechanism.group_of, weights=shares, minlength=len(mechanism.group_sizes))
    return np.append(totals, 1 - totals.sum()) if mechanism.policy.takes_sets else totals


def costs(mechanism: Mechanism, weights: Floats | None = None) -> Floats:
    """Weighted total MSE / n if all that is reported is of a level, per level (then: nothing); for
    sets an upper bound, attained by people with many items. What the total is for any data is a
    mean of these.
    """
    d, groups = mechanism.decoder, np.array(mechanism.groups)
    weights = np.ones(len(mechanism.sizes)) if weights is None else weights
    mass = np.bincount(groups, weights=weights * mechanism.sizes)
    count = len(mass)
    with np.errstate(invalid="ignore"):
        everyone = (d.spread @ np.where(d.known, mass, 0)) @ d.chance
        everyone[:count] += mass * (d.same - (d.chance[:, :count] * d.spread).sum(axis=0))
    if not d.known.all():
        everyone = np.full_like(everyone, np.inf)
    if mechanism.policy.takes_sets and not mechanism.policy.pads:  # anybody may have all of a level
        more = weights * mechanism.sizes * (d.slope[groups] - 1)
        return np.append(everyone[groups] + np.maximum(more, 0).sum(), everyone[count:])
    # at most so many items, each with a small chance, whose square is left out; or one for sure
    many, square = (mechanism.padding, 0.0) if mechanism.padding else (1, 1.0)
    levels = everyone[groups] + many / mechanism.scale * weights * (d.slope[groups] - square)
    return mechanism.scale**2 * np.append(levels, everyone[count:])


def total_mse(mechanism: Mechanism, prior: Any = "uniform", weighted: bool = False) -> float:
    """Expected total MSE / n; with `weighted` every level's error counts by its weight."""
    weights = np.array([lv.weight if weighted else 1.0 for lv in mechanism.policy.levels])
    if isinstance(prior, str) and prior == "worst":
        return float(costs(mechanism, weights).max())
    return float(weights[mechanism.level_of] @ item_variance(mechanism, prior))


def mse_range(mechanism: Mechanism) -> tuple[float, float]:
    """The smallest and the largest total MSE / n over all data sets (for sets: bounds of the
    variance).
    """
    found = costs(mechanism)
    low = float(found.min())
    return (low - mechanism.padding if mechanism.padding else low), float(found.max())


def level_variance(mechanism: Mechanism, prior: Any = "uniform") -> Floats:
    """Mean over a level's items of Var / n, per level."""
    t = len(mechanism.sizes)
    return (
        np.bincount(mechanism.level_of, weights=item_variance(mechanism, prior), minlength=t)
        / mechanism.sizes
    )


def absent_variance(mechanism: Mechanism, prior: Any = "uniform") -> Floats:
    """Var / n of the estimate of an item that nobody holds, per level: what decides which shares
    can be told from zero.
    """
    d, totals = mechanism.decoder, _by_group(mechanism, reported_shares(mechanism, prior))
    return mechanism.scale**2 * d.base(d.chance @ totals, totals)[list(mechanism.groups)]


# ---- set input on given data ---------------------------------------------------------------------


@dataclass(frozen=True)
class SetError:
    """Expected error of set input on given data: per item, as counts of people (not
    divided by n).
    """

    bias: Floats
    variance: Floats

    @property
    def mse(self) -> float:
        """Total MSE as counts squared."""
        return float((self.bias**2 + self.variance).sum())


def set_error(mechanism: Mechanism, sets: Sequence[Sequence[int]]) -> SetError:
    """Bias and variance per item for given sets of item indices."""
    counts: dict[int, Floats] = {}
    for items in sets:
        counts.setdefault(len(items), np.zeros(mechanism.m))[list(items)] += 1
    return set_error_by_size(mechanism, counts, len(sets))


def set_error_by_size(mechanism: Mechanism, counts: Mapping[int, Floats], n: int) -> SetError:
    """The same from the count of every item among the people with k items, for every size k."""
    if not mechanism.policy.takes_sets:
        raise DesignError("this mechanism takes single answers; its error is expected_mse()")
    scale, group_of = mechanism.scale, mechanism.group_of
    bias, samples, squares = (np.zeros(mechanism.m) for _ in range(3))
    for k, holders in counts.items():
        counted = float(mechanism.counted(k))
        bias += holders * (counted - 1)
        samples += holders * counted / scale
        squares += holders * (counted / scale) ** 2
    return SetError(bias, scale**2 * sampled_variance(mechanism, group_of, samples, squares, n))


def sampled_variance(
    mechanism: Mechanism, group_of: Any, samples: Floats, squares: Floats, n: int
) -> Floats:
    """The variance of every item's count of reported items: per item the sum over n people of their
    chance to speak of it, and of its square. The group of every item is given: in an experiment the
    levels may stand elsewhere than in the policy.
    """
    d = mechanism.decoder
    totals = np.bincount(group_of, weights=samples, minlength=len(mechanism.group_sizes))
    if mechanism.policy.takes_sets:
        totals = np.append(totals, n - totals.sum())
    return d.base(d.chance @ totals, totals)[group_of] + samples * d.slope[group_of] - squares
