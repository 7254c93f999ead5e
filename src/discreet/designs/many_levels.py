"""Designs for many levels, up to one budget per item: items are named independently.

Part o has a box s_o and a scale kappa_o; with H = e^hi, L = e^lo and b_ol the chance that an item
of level l is named,

    chance of the part   lambda_ol = kappa_o (L + b (H - L)),  p_o = sum_l x_l lambda_ol
    information          I_l = sum_o kappa_o^2 b (1-b) (H-L)^2 / p_o

and sum_l cost_l / I_l is minimised subject to sum_o lambda_ol = 1. A local search on budgets in a
few groups finds boxes and scales; every level's chances are then interpolated. A mixture with
public shares lies within this family.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from discreet.arrays.types import Floats, sum_by_place
from discreet.designs.notions import Closed

_GROUPS = 16
_STARTS = ((1.1, 1.27, 1.5), (1.2, 1.35, 2.0))  # boxes: s over the smallest budget
_MOVES = (0.06, 0.03)  # of the useful boxes, relative
_USEFUL = 0.01  # the least probability of a part
_ROOM = 0.002  # of the way from the lowest to the highest chance that a level must be able to go
# shares of a part split in four, so that steps of 1 / q add up to one more closely
_SPLIT = (0.5, 0.25, 0.125, 0.125)


@dataclass(frozen=True, eq=False)
class Scales:
    """The parts: their boxes (s), scales, and the best chances b (parts x budgets) at the budgets
    `eps`.
    """

    s: Floats
    kappa: Floats
    p: Floats  # the parts' probabilities at the prior
    eps: Floats
    b: Floats
    total: float

    def split(self) -> Scales:
        """Split every part in four unequal parts, so that coarse steps add up more closely."""
        share = np.array(_SPLIT)
        kappa, p = (np.outer(x, share).ravel() for x in (self.kappa, self.p))
        s, b = np.repeat(self.s, len(share)), np.repeat(self.b, len(share), axis=0)
        return Scales(s, kappa, p, self.eps, b, self.total)


@dataclass(frozen=True, eq=False)
class Draft:
    """The chance of the part, of the own item, and b as a whole number of steps, per part and
    level.
    """

    chance: Floats
    own: Floats
    other: Floats

    def total(self, cost: Floats, shares: Floats, steps: int) -> float:
        """sum cost / I."""
        b = self.other / steps
        spread = np.where(self.other > 0, b * (1 - b), 1.0)
        gap = np.where(self.other > 0, self.own - b, 0.0)
        p = (self.chance @ shares)[:, None]
        information = (self.chance**2 * gap**2 / spread / p).sum(axis=0)
        return float((cost / np.maximum(information, 1e-300)).sum())


def exponentials(eps: Floats, s: Floats, closed: Closed) -> tuple[Floats, Floats]:
    """H and L of every part (row) and level."""
    hi, lo = closed.box(eps, s)
    return np.exp(hi), np.exp(lo)


# ---- boxes and scales ----------------------------------------------------------------------------


def search(eps: Floats, sizes: Floats, shares: Floats, weights: Floats, closed: Closed) -> Scales:
    """Search the boxes and scales of the parts: locally from several starts, then with the useful
    boxes moved a little.
    """
    cost = sizes * weights
    single = _single(eps, cost, closed)
    e, grouped, x = _grouped(closed.acting(eps), cost, shares)
    low, high = closed.span(e)
    if low == high:  # there is one box only
        return single
    best = _single(e, grouped, closed)
    for start in _STARTS:
        best = min(
            best,
            _local(e, grouped, x, np.clip(np.array(start) * low, low, high), closed),
            key=_total,
        )
    for move in _MOVES:
        for k, up in product(range(len(best.s)), (1 + move, 1 - move)):
            if k < len(best.s):  # a better result may have fewer parts
                s = best.s.copy()
                s[k] = np.clip(s[k] * up, low, high)
                best = min(best, _local(e, grouped, x, s, closed), key=_total)
    return best if len(best.s) > 1 else single


def _total(scales: Scales) -> float:
    return scales.total


def _grouped(e: Floats, cost: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean budgets, costs and shares of neighbours in budget."""
    order = np.argsort(e, kind="stable")
    before = np.cumsum(cost[order]) - cost[order]
    place = np.empty(len(e), np.int64)
    place[order] = np.minimum(before / cost.sum() * _GROUPS, _GROUPS - 1).astype(np.int64)
    place = np.unique(place, return_inverse=True)[1]

    def sums(values: Floats) -> Floats:
        return sum_by_place(place, values, int(place.max()) + 1)

    weight = sums(cost)
    return sums(cost * e) / weight, weight, sums(shares)


def _single(e: Floats, cost: Floats, closed: Closed) -> Scales:
    """The best single part: everybody uses it, and its scale decides the chances b."""
    from scipy.optimize import minimize  # takes long to load

    low, high = closed.span(e)

    def scale(s: float, share: float) -> tuple[float, Floats, Floats]:
        H, L = (x[0] for x in exponentials(e, np.array([s]), closed))
        return float((1 / H).max()) ** (1 - share) * float((1 / L).min()) ** share, H, L

    def total(z: Floats) -> float:
        kappa, H, L = scale(float(np.clip(z[0], low, high)), float(np.clip(z[1], 0.001, 0.999)))
        info = (1 - kappa * L) * (kappa * H - 1)  # kappa^2 d^2 b (1 - b)
        return float(np.log((cost / info).sum())) if info.min() > 0 else 99.0

    grid = [
        np.array([s, share])
        for s in np.linspace(low, high, 21)
        for share in np.linspace(0.1, 0.9, 17)
    ]
    best = minimize(
        total, min(grid, key=total), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10}
    )
    s, share = float(np.clip(best.x[0], low, high)), float(np.clip(best.x[1], 0.001, 0.999))
    kappa, H, L = scale(s, share)
    b = np.clip((1 / kappa - L) / np.maximum(H - L, 1e-12), 0, 1)
    return Scales(np.array([s]), np.array([kappa]), np.ones(1), e, b[None], float(np.exp(best.fun)))


def _local(e: Floats, cost: Floats, x: Floats, s: Floats, closed: Closed) -> Scales:
    """Search the scales of given boxes locally, from a start with public shares. Parts that are
    hardly used are left out.
    """
    from scipy.optimize import minimize  # takes long to load

    H, L = exponentials(e, s, closed)
    d = np.maximum(H - L, 1e-12)
    parts, t = H.shape
    # kappa between the bounds that leave a chance b for every level
    middle = np.sqrt((1 / H).max(axis=1) * (1 / L).min(axis=1))
    b = np.clip((1 / middle[:, None] - L) / d, 0.02, 0.98)
    start = np.concatenate((middle / parts, (middle[:, None] / parts * b).ravel()))
    sums = np.hstack((L.T, np.concatenate([np.diag(row) for row in d], axis=1)))
    room = np.hstack((np.repeat(0.995 * np.eye(parts), t, axis=0), -np.eye(parts * t)))

    def objective(z: Floats) -> tuple[float, Floats]:
        kappa, beta = z[:parts, None], z[parts:].reshape(parts, t)
        p = np.maximum((kappa * L + beta * d) @ x, 1e-12)[:, None]
        free = beta * (kappa - beta)
        info = np.maximum((d**2 * free / p).sum(axis=0), 1e-12)
        total = float((cost / info).sum())
        slope = -cost / info**2 * d**2
        by_p = -(slope * free).sum(axis=1, keepdims=True) / p**2
        by_kappa = (slope * beta / p).sum(axis=1) + by_p[:, 0] * (L @ x)
        by_beta = slope * (kappa - 2 * beta) / p + by_p * d * x
        return np.log(total), np.concatenate((by_kappa, by_beta.ravel())) / total

    solution = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(1e-9, None)] * len(start),
        constraints=[
            {"type": "eq", "fun": lambda z: sums @ z - 1, "jac": lambda z: sums},
            {"type": "ineq", "fun": lambda z: room @ z, "jac": lambda z: room},
        ],
        options={"maxiter": 150, "ftol": 1e-8},
    )
    kappa, beta = solution.x[:parts], solution.x[parts:].reshape(parts, t)
    p = (kappa[:, None] * L + beta * d) @ x
    useful = p > _USEFUL
    if not useful.all() and useful.any():
        return _local(e, cost, x, s[useful], closed)
    total = float(np.exp(solution.fun)) if np.abs(sums @ solution.x - 1).max() < 1e-6 else np.inf
    return Scales(s, kappa, p, e, beta / kappa[:, None], total)


# ---- every level's chances -----------------------------------------------------------------------


def fit(scales: Scales, eps: Floats, closed: Closed, steps: int) -> Draft | None:
    """The chances of every level for given scales, with b a multiple of 1 / steps. None where the
    scales do not allow it.

    The chances at the searched budgets are interpolated. Then they move along the direction that
    costs least (b by p / reach), until the chances of the parts sum to one.
    """
    H, L = exponentials(eps, scales.s, closed)
    kappa, p = scales.kappa[:, None], scales.p[:, None]
    # every level keeps room on both sides, so that it speaks in at least one part
    room = max(_ROOM, 0.8 / steps) * (kappa * (H - L)).sum(axis=0)
    least = 1 / ((kappa * H).sum(axis=0) - room).min()
    most = 1 / ((kappa * L).sum(axis=0) + room).max()
    if least >= most:
        return None
    # budgets beyond those searched may need all scales a little smaller or larger
    kappa = kappa * np.clip(1.0, least * (1 + 1e-9), most * (1 - 1e-9))
    reach = kappa * np.maximum(H - L, 1e-12)
    rest = 1 - (kappa * L).sum(axis=0)
    order = np.argsort(scales.eps)
    b = np.stack([np.interp(closed.acting(eps), scales.eps[order], row[order]) for row in scales.b])
    for _ in range(5):  # again where a chance was cut off at 0 or 1
        missing = rest - (reach * b).sum(axis=0)
        free = np.where(missing > 0, b < 1, b > 0) * p
        b = np.clip(b + free / reach * missing / np.maximum(free.sum(axis=0), 1e-300), 0, 1)
    return _exact_sums(_rounded(b, reach, steps), steps, kappa, H, L)


def _rounded(b: Floats, reach: Floats, steps: int) -> Floats:
    """Round b to whole numbers of steps. The next, smaller part makes up for the error of one."""
    count, carry = np.empty_like(b), np.zeros(b.shape[1])
    for o in np.argsort(-reach.max(axis=1), kind="stable"):
        count[o] = np.clip(np.round((b[o] + carry / reach[o]) * steps), 0, steps)
        carry += reach[o] * (b[o] - count[o] / steps)
    return count


def _exact_sums(count: Floats, steps: int, kappa: Floats, H: Floats, L: Floats) -> Draft:
    """Make the sums exactly one: add what is missing to the low state, or take the excess from the
    high state, of the part where it matters least. A part in which a level says nothing may have
    any chance between its two states.
    """
    b = count / steps
    high, low = (np.broadcast_to(kappa * x, b.shape).copy() for x in (H, L))
    chance = b * high + (1 - b) * low
    missing = 1 - chance.sum(axis=0)
    place = (b * (1 - b) * (high - low)).argmax(axis=0)
    levels = np.arange(b.shape[1])
    mine = np.clip(b[place, levels], 1e-12, 1 - 1e-12)
    low[place, levels] += np.where(missing > 0, missing / (1 - mine), 0)
    high[place, levels] += np.where(missing < 0, missing / mine, 0)
    chance = b * high + (1 - b) * low
    speaks = (count > 0) & (b < 1)
    own = np.where(speaks, b * high / chance, 0)
    return Draft(chance, own, np.where(speaks, count, 0))
