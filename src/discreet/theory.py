"""Expected variance, bias and MSE of the estimates, before anything is collected.

Figures are per participant (divided by n), in the exact form of DESIGN "mixed designs", "direct encoding" and "set input";
for one unary part they are the paper's Eq. "MSE_c". `shares` are the shares of participants who hold each item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import DesignError
from discreet.mechanism import Floats, Matrix, Mechanism
from discreet.policy import Policy

# ---- priors -----------------------------------------------------------------------------------------


def item_shares(policy: Policy, prior: Any) -> Floats:
    """The prior as a share per item: "uniform", or shares given per item or per level (a list or a mapping)."""
    m, t = policy.m, len(policy.levels)
    if isinstance(prior, str):
        if prior != "uniform":
            raise DesignError(f'prior = "{prior}" must be uniform, worst, or a share per item or per level')
        return np.full(m, 1 / m)
    if isinstance(prior, Mapping):
        prior = _in_order(policy, prior)
    try:
        values = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise DesignError("prior must be uniform, worst, or numbers: a share per item or per level") from None
    if values.shape not in {(m,), (t,)}:
        raise DesignError(f"prior has {values.size} shares; it needs one per item ({m}) or per level ({t})")
    if not np.all(np.isfinite(values)) or values.min() < 0 or values.sum() <= 0:
        raise DesignError("prior must be finite shares that are not negative and not all zero")
    if values.shape != (m,):
        values = (values / np.array(policy.sizes))[np.array(policy.level_of)]
    if policy.input == "single":
        if abs(values.sum() - 1) > 1e-3:
            raise DesignError(f"prior sums to {values.sum():.6g}; the shares of single answers sum to 1")
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


@dataclass(frozen=True)
class Shares:
    """Per level, sums over its items of E[pi], E[pi^2] and E[pi]^2, pi a participant's chance to be sampled there.

    Single input: pi is 0 or 1. `worst` stands for the data set with the largest error.
    """

    mean: Floats
    square: Floats
    mean2: Floats
    worst: bool = False

    @classmethod
    def of(cls, policy: Policy, prior: Any, padding: int | None) -> Shares:
        """For people with at most `padding` items each."""
        t = len(policy.levels)
        if isinstance(prior, str) and prior == "worst":
            return cls(np.zeros(t), np.zeros(t), np.zeros(t), worst=True)
        ell = padding or 1
        pi, level_of = item_shares(policy, prior) / ell, np.array(policy.level_of)
        mean, mean2 = (np.bincount(level_of, weights=x, minlength=t) for x in (pi, pi**2))
        return cls(mean, mean / ell, mean2)


# ---- unary ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    """Per level: variance V per participant, and h and s, the extra per holder (DESIGN "mixed designs")."""

    V: Floats
    h: Floats
    s: Floats

    @classmethod
    def combine(cls, share: Floats, information: Floats, extra: Floats) -> Noise:
        """Of parts (columns): I = (a-b)^2 / (b(1-b)) and I^2 (1-a-b) / (a-b); infinite V where nothing is learnt."""
        total = information @ share
        with np.errstate(divide="ignore", invalid="ignore"):
            # omega^2 / lambda = share I_k^2 / I^2
            h, s = (extra @ share) / total**2, (information**2 @ share) / total**2 - 1
            V = 1 / total
        dead = total == 0
        return cls(V, np.where(dead, 0.0, h), np.where(dead, 0.0, np.maximum(s, 0.0)))

    def variance(self, pi: Floats, pi2: Floats, level_of: Any) -> Floats:
        """Var / (n ell^2) per item, from the means over participants of pi and pi^2 (DESIGN "set input")."""
        V, h, s = self.V[level_of], self.h[level_of], self.s[level_of]
        return V + h * pi + (1 + s) * (pi - pi2) + s * (pi2 - pi**2)


def noise(mechanism: Mechanism) -> Noise:
    """The noise of a unary mechanism."""
    parts = mechanism.parts
    a, b, diff = (np.stack([getattr(p, key) for p in parts], axis=1) for key in ("a", "b", "difference"))
    spread = b * (1 - b)
    share = np.array([part.share for part in parts])
    return Noise.combine(share, diff**2 / spread, diff**3 * (1 - a - b) / spread**2)


def unary_total(noise_: Noise, sizes: Any, weights: Floats, shares: Shares, padding: int | None) -> float:
    """Weighted total MSE / n of a unary mechanism."""
    V, h, s = weights * noise_.V, weights * noise_.h, weights * noise_.s
    base, ell = float((sizes * V).sum()), padding or 1
    if not shares.worst:
        extra = h * shares.mean + (weights + s) * (shares.mean - shares.square) + s * (shares.square - shares.mean2)
        return ell**2 * (base + float(extra.sum()))
    if padding is None:
        return base + _worst_holders(h, s, sizes)
    # At most: h pi + (1 + s)(pi - pi2) + s (pi2 - pi^2) <= h pi + (1 + s) pi (1 - pi), as pi2 >= pi^2.
    # People may have fewer items, down to none: a slack level takes the rest of the shares for nothing.
    slack = [np.append(x, y) for x, y in ((h, 0.0), (weights + s, 0.0), (sizes, 1.0))]
    return ell**2 * (base + _worst_holders(*slack))


def _worst_holders(h: Floats, s: Floats, sizes: Any) -> float:
    """max over shares x >= 0, sum x = 1, of sum_i [ h_i x_i + s_i x_i (1 - x_i) ]: water-filling on the slope."""
    top = h + s  # slope at 0
    high = float(top.max())
    low = high - 2 * float(s.max()) - 1
    curved = s > 1e-15
    half = np.where(curved, 2 * s, 1.0)
    for _ in range(60):
        slope = (low + high) / 2
        x = np.where(curved, np.maximum(top - slope, 0) / half, np.where(top > slope, np.inf, 0.0))
        low, high = (slope, high) if float((sizes * x).sum()) > 1 else (low, slope)
    x = np.where(curved, np.maximum(top - high, 0) / half, 0.0)
    rest = 1 - float((sizes * x).sum())  # goes to levels whose gain is linear and at the water line
    return float((sizes * (top * x - s * x * x)).sum()) + rest * high


# ---- direct -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DirectNoise:
    """Var / n of an estimate of group g: `own[g]` per holder, `other[g, c]` per participant of group c who lacks it."""

    own: Floats
    other: Floats

    def costs(self, sizes: Any, weights: Floats) -> Floats:
        """Weighted total MSE / n if every participant is of group c."""
        return (weights * sizes) @ self.other + weights * (self.own - _diagonal(self.other))


def group_sizes(matrix: Matrix, sizes: Any) -> Floats:
    """Number of items of every group of levels."""
    return np.bincount(np.array(matrix.groups), weights=sizes)


def group_mass(D: Floats, O: Floats, sizes: Any) -> Floats:
    """Pr(the item sent is of group d | input of group c)."""
    return O * sizes + np.eye(len(sizes)) * (D - _diagonal(O))[..., None]


def direct_weights(D: Floats, O: Floats, sizes: Any) -> Floats:
    """r of the unbiased estimate: item j of group g is the sum over reports y of (1{y=j} - r[g, group of y]) / (D_g - O_gg)."""
    return np.linalg.solve(group_mass(D, O, sizes), O).swapaxes(-1, -2)


def direct_noise(D: Floats, O: Floats, sizes: Any) -> DirectNoise:
    """The variance that one participant adds to every estimate; also for a stack of matrices."""
    r, delta = direct_weights(D, O, sizes), D - _diagonal(O)
    # second[g, c] = sum_d r[g, d]^2 Pr(group d | input c)
    second = r**2 @ group_mass(D, O, sizes).swapaxes(-1, -2)
    keep = 1 - 2 * _diagonal(r)
    own = (D * keep + _diagonal(second)) / delta**2 - 1
    other = (O.swapaxes(-1, -2) * keep[..., None] + second) / delta[..., None] ** 2
    return DirectNoise(own, other)


def _diagonal(matrix: Floats) -> Floats:
    return np.diagonal(matrix, axis1=-2, axis2=-1)


# ---- a mechanism's figures ----------------------------------------------------------------------------


def total_mse(mechanism: Mechanism, prior: Any = "uniform", weighted: bool = False) -> float:
    """Expected total MSE / n; with `weighted` every level's error counts by its weight."""
    weights = np.array([lv.weight if weighted else 1.0 for lv in mechanism.policy.levels])
    if mechanism.matrix is None:
        shares = Shares.of(mechanism.policy, prior, mechanism.padding)
        return unary_total(noise(mechanism), mechanism.sizes, weights, shares, mechanism.padding)
    if isinstance(prior, str) and prior == "worst":
        return float(_input_costs(mechanism, weights).max())
    return float((weights[mechanism.level_of] * item_variance(mechanism, prior)).sum())


def _input_costs(mechanism: Mechanism, weights: Floats) -> Floats:
    """Weighted total MSE / n of a direct mechanism if every participant is of a level's group, per level."""
    assert mechanism.matrix is not None
    matrix, groups = mechanism.matrix, np.array(mechanism.matrix.groups)
    noise_ = direct_noise(matrix.D, matrix.O, group_sizes(matrix, mechanism.sizes))
    everyone = np.bincount(groups, weights=weights * mechanism.sizes) @ noise_.other
    return everyone[groups] + weights * (noise_.own - np.diag(noise_.other))[groups]


def mse_range(mechanism: Mechanism) -> tuple[float, float]:
    """The smallest and the largest total MSE / n over all data sets (for sets: bounds of the variance)."""
    worst = total_mse(mechanism, "worst")
    if mechanism.direct:
        return float(_input_costs(mechanism, np.ones(len(mechanism.sizes))).min()), worst
    noise_ = noise(mechanism)
    base = float((mechanism.sizes * noise_.V).sum())
    if mechanism.padding is not None:
        return mechanism.padding**2 * (base + min(0.0, float(noise_.h.min()))), worst
    # h x + s x (1 - x) is concave in x, so its minimum is at a vertex: everyone holds one item
    return base + float(noise_.h.min()), worst


def item_variance(mechanism: Mechanism, prior: Any = "uniform") -> Floats:
    """Var / n of every item's estimate for given shares of participants."""
    shares = item_shares(mechanism.policy, prior)
    if mechanism.matrix is not None:
        groups = np.array(mechanism.matrix.groups)[mechanism.level_of]
        noise_ = direct_noise(mechanism.matrix.D, mechanism.matrix.O, group_sizes(mechanism.matrix, mechanism.sizes))
        totals = np.bincount(groups, weights=shares)
        same = np.diag(noise_.other)
        return (noise_.other @ totals)[groups] + shares * (noise_.own - same)[groups]
    ell = mechanism.padding or 1
    pi = shares / ell
    return ell**2 * noise(mechanism).variance(pi, pi / ell, mechanism.level_of)


def level_variance(mechanism: Mechanism, prior: Any = "uniform") -> Floats:
    """Mean over a level's items of Var / n, per level."""
    t = len(mechanism.sizes)
    return np.bincount(mechanism.level_of, weights=item_variance(mechanism, prior), minlength=t) / mechanism.sizes


def absent_variance(mechanism: Mechanism, prior: Any = "uniform") -> Floats:
    """Var / n of the estimate of an item that nobody holds, per level: what decides which shares can be told from zero."""
    if mechanism.matrix is None:
        return (mechanism.padding or 1) ** 2 * noise(mechanism).V
    matrix, groups = mechanism.matrix, np.array(mechanism.matrix.groups)
    totals = np.bincount(groups[mechanism.level_of], weights=item_shares(mechanism.policy, prior))
    noise_ = direct_noise(matrix.D, matrix.O, group_sizes(matrix, mechanism.sizes))
    return (noise_.other @ totals)[groups]


# ---- set input on given data ----------------------------------------------------------------------------


@dataclass(frozen=True)
class SetError:
    """Expected error of set input on given data: per item, as counts of people (not divided by n)."""

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
    if mechanism.padding is None:
        raise DesignError("this mechanism takes single answers; its error is expected_mse()")
    ell = mechanism.padding
    bias, pi, pi2 = (np.zeros(mechanism.m) for _ in range(3))
    for k, holders in counts.items():
        chance = 1 / max(k, ell)
        bias += holders * (ell * chance - 1)
        pi += holders * chance / n
        pi2 += holders * chance**2 / n
    return SetError(bias, n * ell**2 * noise(mechanism).variance(pi, pi2, mechanism.level_of))
