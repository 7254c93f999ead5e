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

import numpy as np

from discreet.arrays.types import Bools, Floats, Ints, Prior, sum_by_place
from discreet.check.exact import D
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy

# ---- priors --------------------------------------------------------------------------------------


def item_shares(policy: Policy, prior: Prior, padding: int | None = None) -> Floats:
    """The share of people per item under a prior: "uniform", or given per item or per level (a list
    or a mapping).

    With uniform sets, everybody has as many items as the padding, each equally likely.
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
        values = (values / np.array(policy.level_sizes))[np.array(policy.level_of)]
    if not policy.kind.lists:
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
    unknown = next(key for key in prior if key not in names and key not in policy.index)
    raise DesignError(f'prior names "{unknown}", which is neither an item nor a level')


def sample_shares(policy: Policy, prior: Prior, padding: int | None) -> Floats:
    """Shares of the samples per item, for people with at most `padding` items each. The rest are
    empty samples.
    """
    shares = item_shares(policy, prior, padding) / (padding or 1)
    return shares / max(1.0, float(shares.sum()))


def reported_shares(mechanism: Mechanism, prior: Prior) -> Floats:
    """The share of reports that speak of each item as the sender's own, if nobody has more items
    than the padding.
    """
    policy, padding = mechanism.policy, mechanism.padding
    if padding is None:
        return item_shares(policy, prior)
    return sample_shares(policy, prior, padding) * (padding / mechanism.scale)


# ---- the estimator -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Decoder:
    """The weights w, kappa and tau per part and group, and the mean squared score of one person.

    `spread[o, g]` is that of an item of group g, if the person used part o and their answer is in
    another group. `same[g]` and `own[g]` are over all parts, if the answer is another item of the
    group, or the item itself.
    """

    chance: Floats  # parts x groups (the last column: an empty sample, for sets)
    weight: Floats  # w
    kappa: Floats
    tau: Floats
    spread: Floats
    same: Floats
    own: Floats
    estimable: Bools  # whether a group's items can be estimated at all

    @classmethod
    def for_mechanism(cls, mechanism: Mechanism) -> Decoder:
        """The best unbiased estimator at the mechanism's shares (docs/researcher.md derives it)."""
        return _best_decoder(mechanism)

    def variance_at_zero(self, part_n: Floats | Ints, totals: Floats) -> Floats:
        """The variance of an item that nobody holds, per group, for part_n reports of every part
        and totals[g] samples of group g.
        """
        g = len(self.same)
        extra = self.same - (self.chance[:, :g] * self.spread).sum(axis=0)
        return np.where(self.estimable, part_n @ self.spread + totals[:g] * extra, np.inf)

    @property
    def slope(self) -> Floats:
        """What one more sample at an item adds to its estimate's second moment, per group."""
        return self.own - self.same

    def item_variance(self, mechanism: Mechanism, prior: Prior) -> Floats:
        """Var / n of every item's estimate for given shares of participants."""
        shares = reported_shares(mechanism, prior)
        scale, group_of = mechanism.scale, mechanism.arrays.group_of
        totals = _by_group(mechanism, shares)
        # a holder speaks of the item with chance 1 / scale, whose square is subtracted
        return scale**2 * (
            self.variance_at_zero(self.chance @ totals, totals)[group_of]
            + shares * (self.slope[group_of] - 1 / scale)
        )

    def absent_variance(self, mechanism: Mechanism, prior: Prior) -> Floats:
        """Var / n of the estimate of an item that nobody holds, per level."""
        totals = _by_group(mechanism, reported_shares(mechanism, prior))
        at_zero = self.variance_at_zero(self.chance @ totals, totals)
        return mechanism.scale**2 * at_zero[list(mechanism.groups)]

    def costs(self, mechanism: Mechanism, weights: Floats) -> Floats:
        """The weighted total MSE / n if everybody's answer is in one level, per level; then, for
        sets, if nobody has an item.
        """
        return _costs(mechanism, self, weights)

    def set_error(self, mechanism: Mechanism, sets: Sequence[Sequence[int]]) -> SetError:
        """Bias and variance per item for given sets of item indices."""
        counts: dict[int, Floats] = {}
        for items in sets:
            counts.setdefault(len(items), np.zeros(mechanism.m))[list(items)] += 1
        return self.set_error_by_size(mechanism, counts, len(sets))

    def set_error_by_size(
        self, mechanism: Mechanism, counts: Mapping[int, Floats], n: int
    ) -> SetError:
        """The same from the count of every item among the people with k items, for every k."""
        scale, group_of = mechanism.scale, mechanism.arrays.group_of
        bias, samples, squares = (np.zeros(mechanism.m) for _ in range(3))
        for k, holders in counts.items():
            counted = float(mechanism.arrays.counted(k))
            bias += holders * (counted - 1)
            samples += holders * counted / scale
            squares += holders * (counted / scale) ** 2
        return SetError(bias, scale**2 * sampled_variance(mechanism, group_of, samples, squares, n))


def _best_decoder(mechanism: Mechanism) -> Decoder:
    arrays = mechanism.arrays
    sizes = arrays.group_sizes.astype(float)
    groups, fixed = len(sizes), mechanism.encoding.fixed_size
    own, kappa, gap, chance = arrays.own, arrays.other, arrays.difference, arrays.chance
    probability = chance @ (np.array(mechanism.shares, dtype=float) / D)
    # a part that only groups without any expected share use
    probability = np.where(probability > 0, probability, chance.mean(axis=1) / D)
    mine = chance[:, :groups]
    noise = kappa * (1 - kappa)
    score = (
        np.where(noise > 0, mine * gap / np.where(noise > 0, noise, 1), 0) / probability[:, None]
    )
    reach = (score * mine * gap).sum(axis=0)
    estimable = reach > 0
    weight = np.where(estimable, score / np.where(estimable, reach, 1), 0)
    plain = (gap == 1) & (kappa == 0)  # sent as it is: that part alone tells it without noise
    sent = (mine * plain).sum(axis=0)
    weight = np.where(sent > 0, plain / np.where(sent > 0, sent, 1), weight)
    estimable = estimable | (sent > 0)
    tau = np.zeros_like(weight)
    if fixed:
        weight *= 1 - 1 / sizes
        totals = _totals(chance, probability)
        tau = totals[:, :groups] / sizes
        estimable = (estimable | (sizes == 1)) & np.isfinite(tau).all(axis=0)
        tau = np.where(estimable, tau, 0)
    high, low = (weight * (1 - kappa) + tau) ** 2, (tau - weight * kappa) ** 2
    near = (kappa * sizes - own) / np.maximum(sizes - 1, 1) if fixed else kappa
    spread = kappa * high + (1 - kappa) * low
    same = (mine * (near * high + (1 - near) * low)).sum(axis=0)
    same = np.where(sizes > 1, same, (mine * spread).sum(axis=0))
    second = (mine * (own * high + (1 - own) * low)).sum(axis=0)
    return Decoder(chance, weight, kappa, tau, spread, same, second, estimable)


def _totals(chance: Floats, probability: Floats) -> Floats:
    """The scores of group totals, R G^-1 with R = chance / probability and G = sum_o p R R'; NaN
    where the parts do not determine them.
    """
    R = chance / probability[:, None]
    G = chance.T @ R
    if np.linalg.matrix_rank(G, hermitian=True, tol=1e-13 * np.trace(G)) < len(G):
        return np.full_like(R, np.nan)
    return np.linalg.solve(G, R.T).T.astype(np.float64, copy=False)


# ---- a mechanism's figures -----------------------------------------------------------------------


def item_variance(mechanism: Mechanism, prior: Prior = "uniform") -> Floats:
    """Var / n of every item's estimate for given shares of participants."""
    return mechanism.arrays.decoder.item_variance(mechanism, prior)


def _by_group(mechanism: Mechanism, shares: Floats) -> Floats:
    """Shares of the samples per group, then of empty samples.

    Where a report speaks of several items, the empty share is what is left of 1: the part does not
    depend on the items.
    """
    arrays = mechanism.arrays
    totals = sum_by_place(arrays.group_of, shares, len(arrays.group_sizes))
    return np.append(totals, 1 - totals.sum()) if mechanism.policy.kind.lists else totals


def costs(mechanism: Mechanism, weights: Floats | None = None) -> Floats:
    """The weighted total MSE / n if everybody's answer is in one level, per level; then, for sets,
    if nobody has an item. For any data the total is a mean of these.

    For sets it is an upper bound, attained by people with many items.
    """
    weights = np.ones(len(mechanism.arrays.level_sizes)) if weights is None else weights
    return mechanism.arrays.decoder.costs(mechanism, weights)


def _costs(mechanism: Mechanism, d: Decoder, weights: Floats) -> Floats:
    groups = np.array(mechanism.groups)
    mass = np.bincount(groups, weights=weights * mechanism.arrays.level_sizes)
    count = len(mass)
    with np.errstate(invalid="ignore"):
        everyone = (d.spread @ np.where(d.estimable, mass, 0)) @ d.chance
        everyone[:count] += mass * (d.same - (d.chance[:, :count] * d.spread).sum(axis=0))
    if not d.estimable.all():
        everyone = np.full_like(everyone, np.inf)
    kind = mechanism.policy.kind
    if kind.lists and not kind.pads:  # anybody may have all items of a level
        more = weights * mechanism.arrays.level_sizes * (d.slope[groups] - 1)
        return np.append(everyone[groups] + np.maximum(more, 0).sum(), everyone[count:])
    # up to `padding` items, each with a small chance, whose square is left out; or one for sure
    items, square = (mechanism.padding, 0.0) if mechanism.padding else (1, 1.0)
    levels = everyone[groups] + items / mechanism.scale * weights * (d.slope[groups] - square)
    return mechanism.scale**2 * np.append(levels, everyone[count:])


def total_mse(mechanism: Mechanism, prior: Prior = "uniform", weighted: bool = False) -> float:
    """Expected total MSE / n; with `weighted` every level's error counts with its weight."""
    weights = np.array([lv.weight if weighted else 1.0 for lv in mechanism.policy.levels])
    if isinstance(prior, str) and prior == "worst":
        return float(costs(mechanism, weights).max())
    return float(weights[mechanism.arrays.level_of] @ item_variance(mechanism, prior))


def mse_range(mechanism: Mechanism) -> tuple[float, float]:
    """The smallest and the largest total MSE / n over all data sets; for sets, bounds of the
    variance.
    """
    per_level = costs(mechanism)
    low = float(per_level.min())
    return (low - mechanism.padding if mechanism.padding else low), float(per_level.max())


def level_variance(mechanism: Mechanism, prior: Prior = "uniform") -> Floats:
    """Mean over a level's items of Var / n, per level."""
    t = len(mechanism.arrays.level_sizes)
    totals = sum_by_place(mechanism.arrays.level_of, item_variance(mechanism, prior), t)
    return totals / mechanism.arrays.level_sizes


def share_variance(
    mechanism: Mechanism, prior: Prior = "uniform", about: str = "population"
) -> Floats:
    """n Var of the share of an item, the mean over a level's items, per level. About the population
    it includes the luck of who was drawn, p (1 - p); about the respondents it does not.
    """
    noise = level_variance(mechanism, prior)
    if about == "respondents":
        return noise
    held = item_shares(mechanism.policy, prior, mechanism.padding)
    luck = sum_by_place(mechanism.arrays.level_of, held * (1 - held), len(noise))
    return noise + luck / mechanism.arrays.level_sizes


def absent_variance(mechanism: Mechanism, prior: Prior = "uniform") -> Floats:
    """Var / n of the estimate of an item that nobody holds, per level. It decides which shares can
    be told from zero.
    """
    return mechanism.arrays.decoder.absent_variance(mechanism, prior)


# ---- set input on given data ---------------------------------------------------------------------


@dataclass(frozen=True)
class SetError:
    """The expected error of sets on given data, per item, in people (not divided by n)."""

    bias: Floats
    variance: Floats

    @property
    def mse(self) -> float:
        """Total MSE, in squared counts."""
        return float((self.bias**2 + self.variance).sum())


def set_error(mechanism: Mechanism, sets: Sequence[Sequence[int]]) -> SetError:
    """Bias and variance per item for given sets of item indices."""
    _refuse_single(mechanism)
    return mechanism.arrays.decoder.set_error(mechanism, sets)


def set_error_by_size(mechanism: Mechanism, counts: Mapping[int, Floats], n: int) -> SetError:
    """The same from the count of every item among the people with k items, for every size k."""
    _refuse_single(mechanism)
    return mechanism.arrays.decoder.set_error_by_size(mechanism, counts, n)


def _refuse_single(mechanism: Mechanism) -> None:
    if not mechanism.policy.kind.lists:
        raise DesignError("this mechanism takes single answers; its error is expected_mse()")


def sampled_variance(
    mechanism: Mechanism, group_of: Ints, samples: Floats, squares: Floats, n: int
) -> Floats:
    """The variance of every item's count of samples.

    `samples` is the sum over n people of their chance to speak of the item, `squares` the sum of
    the squared chances. The group of every item is given, because an experiment may place levels
    elsewhere than the policy does.
    """
    d = mechanism.arrays.decoder
    totals = sum_by_place(group_of, samples, len(mechanism.arrays.group_sizes))
    if mechanism.policy.kind.lists:
        totals = np.append(totals, n - totals.sum())
    return (
        d.variance_at_zero(d.chance @ totals, totals)[group_of]
        + samples * d.slope[group_of]
        - squares
    )
