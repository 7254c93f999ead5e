"""`hits`: counted hits for sets of two and more items (exact_hits.py has the law,
docs/researcher.md, "Sets: counted hits", the idea).

A part has a cut: levels from that budget on are active. For every number j of active items the
density is high, min(e^U, R_j e^-W), where many of them are named and low, max(e^-W, e^U / R_j),
where few are, and one value lies between; U, W and the chance b of a hit are searched for. The
parts are mixed with public shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

from discreet import exact_hits, theory
from discreet.designs.task import Task
from discreet.encodings.hits import Hits, unfit_for_hits
from discreet.errors import DesignError, GuaranteeError
from discreet.exact_hits import TOTAL
from discreet.mechanism import Certificate, Mechanism
from discreet.parts import Floats, HitsPart

SMALL_PRIME, LARGE_PRIME = 65_521, 2**31 - 1  # coefficients of 2 and of 4 bytes
MOST_CUTS = 8  # budgets that parts begin at; with more, some stand for their neighbours
_LARGEST_BUDGET = 20.0  # larger ones count as this: next to nothing is noise then
_COARSE_LIMIT = 100  # of 65,521: below it the chance of a hit would be too coarse
_SAFETY = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # of what is learnt, until it passes
_NEGLIGIBLE = 1e-4  # shares of parts that are not worth it


def hits(task: Task) -> Mechanism:
    """Counted hits for a policy, a prior and a padding."""
    unfit = unfit_for_hits(task.policy, task.padding)
    if unfit:
        raise DesignError(f"{unfit}; use the model subset")
    if task.encoding is not None:
        raise DesignError(
            f'encoding = "{task.encoding}" does not apply to hits, whose reports are polynomials; '
            "leave it out, or use the model subset"
        )
    try:
        mechanism = Mixed.of(task).mechanism(task)
    except GuaranteeError:  # budgets so large that only one for all items fits
        mechanism = Mixed.of(task, flat=True).mechanism(task)
    note = "for sets no bound of every mechanism is known"
    return mechanism.certified(Certificate(task.score(mechanism), None, note))


def noise(task: Task) -> tuple[Floats, Floats]:
    """Per level, without the integers: the variance / n of the count of an item that nobody holds,
    and what one holder adds.
    """
    return Mixed.of(task).noise(task.eps)


# ---- one part ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """A part in floats: scalars U, W, the chance b of a hit, delta, what an own item adds, and the
    budget that active items are taken to have.
    """

    U: float
    W: float
    b: float
    delta: float
    active: float

    @property
    def information(self) -> float:
        """1 / variance of the estimate of an absent item, per report."""
        return self.delta**2 / (self.b * (1 - self.b))


def _bounds(e1: float, ec: float, s: int) -> Floats:
    """R_j for j = 0, …, s."""
    j = np.arange(s + 1)
    return (j * math.exp(ec) + (s - j) * math.exp(e1)) / s


def _laws(b: Floats, s: int) -> Iterator[Floats]:
    """Pr(N = n) of Bin(j, b) for j = 1, …, s: b x (j + 1)."""
    p = np.zeros((len(b), s + 1))
    p[:, 0] = 1
    for j in range(1, s + 1):
        p[:, 1 : j + 1] = p[:, 1 : j + 1] * (1 - b[:, None]) + p[:, :j] * b[:, None]
        p[:, 0] *= 1 - b
        yield p[:, : j + 1]


def _beyond(p: Floats) -> Floats:
    """Pr(N > n), and so on for other sums."""
    found = np.zeros_like(p)
    found[:, :-1] = np.cumsum(p[:, :0:-1], axis=1)[:, ::-1]
    return found


def _levels(U: Floats, W: Floats, bound: float) -> tuple[Floats, Floats, Floats]:
    """The high and the low density of a row, and the share of the high one."""
    high, low = np.minimum(np.exp(U), bound * np.exp(-W)), np.maximum(np.exp(-W), np.exp(U) / bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        return high, low, np.where(high > low, (1 - low) / (high - low), 0.5)


def _deltas(U: Floats, W: Floats, b: Floats, bounds: Floats) -> Floats:
    """The largest delta of every row (j = 1, …, s) at every point; 0 where there is none.

    What the top q of Bin(j, b) are worth, E[(N - j b); top q], is the least of j + 1 lines in q.
    """
    found = np.empty((len(bounds) - 1, len(b)))
    for j, p in enumerate(_laws(b, len(bounds) - 1), 1):
        high, low, q = _levels(U, W, bounds[j])
        slope = np.arange(j + 1) - j * b[:, None]
        worth = (_beyond(p * slope) + (q[:, None] - _beyond(p)) * slope).min(axis=1)
        found[j - 1] = np.where((high > 1) & (low < 1), high - low, 0) * worth / j
    return found


def _cost(points: Floats, bounds: Floats, kappa: float) -> tuple[Floats, Floats]:
    """Variance per report of an absent item and kappa times what a holder adds, and delta, at
    points (U, W, b).
    """
    U, W, b = points.T
    delta = np.minimum(_deltas(U, W, b, bounds).min(axis=0), 1 - b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cost = b * (1 - b) / delta**2 + kappa * (1 - 2 * b - delta) / delta
    return np.where(delta > 1e-12, cost, np.inf), delta


@lru_cache(maxsize=4096)
def best_cut(e1: float, ec: float, s: int, kappa: float) -> Cut:
    """The best part where levels from the budget ec on are active. Whole sets alone may allow more
    than the items' own budgets do: then active items are taken to have less, down to the smallest.
    """
    for top in np.linspace(min(ec, 2 * e1), e1, 1 if ec == e1 else 11):
        cut = _best_cut(e1, float(top), s, kappa)
        f: Any = _densities(cut, _bounds(e1, cut.active, s))  # in floats: the exact check follows
        held, lacked = exact_hits.item_factors(f, s + 1, 0 if ec == e1 else s + 1)
        if held <= math.exp(ec) and lacked <= math.exp(e1):
            break
    return cut


def _densities(cut: Cut, bounds: Floats) -> list[list[float]]:
    """f_j(N) for j = 0, …, s."""
    U, W, b = (np.array([x]) for x in (cut.U, cut.W, cut.b))
    deltas, found = _deltas(U, W, b, bounds)[:, 0], [[1.0]]
    for j, p in enumerate(_laws(b, len(bounds) - 1), 1):
        high, low, q = (float(x[0]) for x in _levels(U, W, bounds[j]))
        # the share of every N that is high
        share = np.clip((q - _beyond(p)[0]) / np.maximum(p[0], 1e-300), 0, 1)
        scale = cut.delta / deltas[j - 1]
        found.append((1 + (low + (high - low) * share - 1) * scale).tolist())
    return found


def _best_cut(e1: float, ec: float, s: int, kappa: float) -> Cut:
    """There are several local optima: from the best point of a grid for every b, and the best of
    "any hit" (tau = 0, often the optimum), smaller and smaller grids.
    """
    bounds = _bounds(e1, ec, s)
    grid = np.arange(1, 13) * (e1 / 12)
    least = 1 / (4 * s * math.exp(e1))
    hit = np.concatenate((np.geomspace(least, 0.12, 10), np.linspace(0.16, 0.6, 6)))
    points = np.stack(np.meshgrid(hit, grid, grid, indexing="ij"), axis=-1)[..., [1, 2, 0]]
    rows = points.reshape(-1, 3)
    cost = _cost(rows, bounds, kappa)[0].reshape(len(hit), -1)
    first = rows.reshape(len(hit), -1, 3)[np.arange(len(hit)), cost.argmin(axis=1)]
    any_hit = _any_hit(e1, bounds)
    best = any_hit[[_cost(any_hit, bounds, kappa)[0].argmin()]]
    found = _closer(np.concatenate((first, best)), e1, bounds, kappa)
    cost, delta = _cost(found, bounds, kappa)
    at = int(cost.argmin())
    if not math.isfinite(cost[at]):
        raise DesignError(
            f"the smallest budget, {e1:g}, is too small for hits with a padding of {s}; use a "
            "larger one or a smaller padding"
        )
    u, w, b = found[at].tolist()
    return Cut(u, w, b, float(delta[at]), ec)


def _any_hit(e1: float, bounds: Floats) -> Floats:
    """Points where the density depends only on whether any own item is named."""
    u = np.linspace(0.02, 1, 50) * e1
    w = np.clip(math.log(bounds[1]) - u, 1e-6, e1)
    share = -np.expm1(-w) / (np.exp(u) - np.exp(-w))
    return np.stack((u, w, -np.expm1(np.log1p(-share) / (len(bounds) - 1))), axis=1)


def _closer(starts: Floats, e1: float, bounds: Floats, kappa: float) -> Floats:
    """The best points that smaller and smaller grids around these find; after some steps only from
    the best few.
    """
    best, reach, factor = starts, e1 / 12, 0.5
    near = np.stack(np.meshgrid(*[np.linspace(-1, 1, 5)] * 3, indexing="ij"), axis=-1)
    near = near.reshape(-1, 3)
    for step in range(24):
        points = best[:, None, :] + near * [reach, reach, 0]
        points[..., 2] = np.clip(points[..., 2] * np.exp(factor * near[:, 2]), 1e-7, 0.95)
        points[..., :2] = np.clip(points[..., :2], 1e-6, e1)
        cost = _cost(points.reshape(-1, 3), bounds, kappa)[0].reshape(len(best), -1)
        best = points[np.arange(len(best)), cost.argmin(axis=1)]
        if step == 5:
            best = best[np.argsort(cost.min(axis=1))[:4]]
        reach, factor = reach * 0.65, factor * 0.65
    return best


# ---- the parts together --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixed:
    """A design in floats: the budgets that parts begin at, ascending, the parts, their shares."""

    e1: float
    padding: int
    begins: Floats
    cuts: tuple[Cut, ...]
    shares: Floats

    @classmethod
    def of(cls, task: Task, flat: bool = False) -> Mixed:
        """The best shares of the best parts; flat: as if all items had the smallest budget."""
        assert task.padding is not None
        s, eps = task.padding, np.minimum(task.eps, _LARGEST_BUDGET)
        eps = np.full_like(eps, eps.min()) if flat else eps
        e1 = float(eps.min())
        begins = _begins(np.minimum(eps, 2 * e1))
        held = theory.item_shares(task.policy, "uniform" if task.worst else task.prior, s)
        of_item = np.minimum(eps, 2 * e1)[np.array(task.policy.level_of)]
        cuts = []
        for begin in begins:
            kappa = min(1.0, float(held[of_item >= begin].mean()))
            cuts.append(best_cut(e1, float(begin), s, round(kappa, 9)))
        shares = _mixed(task, begins, cuts, held)
        keep = shares > _NEGLIGIBLE
        keep[0] = True  # every item needs a part that names it
        kept = tuple(cut for cut, on in zip(cuts, keep, strict=True) if on)
        return cls(e1, s, begins[keep], kept, shares[keep] / shares[keep].sum())

    def noise(self, eps: Floats) -> tuple[Floats, Floats]:
        """For budgets: the variance per report of an item that nobody holds, and what a holder
        adds.
        """
        absent, more = _noise(self.cuts, self.shares)
        place = _places(self.begins, eps) - 1
        return absent[place], more[place]

    def mechanism(self, task: Task) -> Mechanism:
        """The integers: what is learnt is reduced until the exact check agrees."""
        many = _places(self.begins, task.eps)
        order: dict[int, int] = {}
        groups = tuple(order.setdefault(int(k), len(order)) for k in many)
        whole = task.whole_shares(self.shares)
        smallest = min(cut.b for cut in self.cuts)
        small = task.policy.m < SMALL_PRIME and smallest * SMALL_PRIME >= _COARSE_LIMIT
        encoding = Hits(SMALL_PRIME if small else LARGE_PRIME)
        shares = np.bincount(groups, weights=task.shares)
        whole_shares = task.whole_shares(np.append(shares, task.empty))
        prime, name = encoding.prime, task.prior_name

        def part(place: int, cut: Cut, safety: float) -> HitsPart:
            limit = min(max(1, round(cut.b * prime)), prime - 1)
            active = tuple(int(k > place) for k in order)
            rows = _rows(cut, limit, prime, self, safety)
            return HitsPart(whole[place], active, limit, rows, prime, groups)

        for safety in _SAFETY:
            parts = tuple(part(place, cut, safety) for place, cut in enumerate(self.cuts))
            with suppress(GuaranteeError):
                return Mechanism(
                    task.policy, "hits", encoding, groups, parts, whole_shares, self.padding, name
                )
        raise GuaranteeError(f"no hits with a padding of {self.padding} keep these budgets")


def _places(begins: Floats, eps: Floats) -> Floats:
    """How many parts name the items with these budgets: at least the first does."""
    return np.searchsorted(begins, eps * (1 + 1e-12), side="right")


def _begins(eps: Floats) -> Floats:
    """The budgets that parts begin at: all, or some where there are too many."""
    distinct = np.unique(eps)
    if len(distinct) <= MOST_CUTS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, MOST_CUTS).round().astype(int)]


def _noise(cuts: Sequence[Cut], shares: Floats) -> tuple[Floats, Floats]:
    """For an item that the first 1, 2, … parts name: variance per report of an item that nobody
    holds, and what a holder adds.
    """
    information, b, delta = (
        np.array([getattr(cut, key) for cut in cuts]) for key in ("information", "b", "delta")
    )
    known = np.cumsum(shares * information)
    return 1 / known, np.cumsum(shares * information**2 * (1 - 2 * b) / delta) / known**2 - 1


def _mixed(task: Task, begins: Floats, cuts: list[Cut], held: Floats) -> Floats:
    """The shares with the smallest expected error, or the smallest worst case."""
    count = len(cuts)
    if count == 1:
        return np.ones(1)
    last = _places(begins, task.eps) - 1  # of every level
    weight = task.weights * task.sizes
    shares = np.bincount(task.policy.level_of, weights=held) * task.weights

    def error(part: Floats) -> float:
        part = np.maximum(part, 1e-9) / np.maximum(part, 1e-9).sum()
        absent, more = (x[last] for x in _noise(cuts, part))
        total = float((weight * absent).sum())
        if task.worst:
            return total + (task.padding or 1) * max(0.0, float((task.weights * (more + 1)).max()))
        return total + float((shares * more).sum())

    # for absent items alone the problem is convex, and these steps never go up
    information = np.array([cut.information for cut in cuts])
    part = np.full(count, 1 / count)
    for _ in range(1000):
        slope = weight / np.cumsum(part * information)[last] ** 2
        part *= np.sqrt(information * (slope @ (last[:, None] >= np.arange(count))))
        part /= part.sum()
    unit = error(part)
    found = [part, *np.eye(count)]
    for start in (part, np.full(count, 1 / count)):
        better = minimize(
            lambda x: error(x) / unit,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * count,
            constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1}],
        )
        found.append(np.maximum(better.x, 0))
    best = min(found, key=error)
    return best / best.sum()


# ---- integers ------------------------------------------------------------------------------------


def _rows(
    cut: Cut, limit: int, prime: int, draft: Mixed, safety: float
) -> tuple[tuple[int, ...], ...]:
    """The rows of a part whose chance of a hit is limit / prime, all with the same chance of an own
    item to within 2^-52.
    """
    b = np.array([limit / prime])
    bounds = _bounds(draft.e1, cut.active, draft.padding)
    U, W = np.array([cut.U]), np.array([cut.W])
    deltas = _deltas(U, W, b, bounds)[:, 0]
    delta = min(deltas.min(), 1 - b[0]) * (1 - safety)
    target = Fraction(limit, prime) + Fraction(delta)
    rows = []
    for j, p in enumerate(_laws(b, draft.padding), 1):
        high, low, q = (float(x[0]) for x in _levels(U, W, bounds[j]))
        tau = int(np.flatnonzero(_beyond(p)[0] <= q)[0])
        rows.append(_row(prime, limit, j, tau, (high, low, q), delta / deltas[j - 1], target))
    return tuple(rows)


def _row(
    prime: int,
    limit: int,
    j: int,
    tau: int,
    levels: tuple[float, float, float],
    scale: float,
    target: Fraction,
) -> tuple[int, ...]:
    """tau and the masses of its three classes: the densities scaled towards 1, then mass moved
    between the outer classes until an own item is named with the chance wanted.
    """
    high, low, q = levels
    weights = exact_hits.weights(prime, limit, j)
    parted = exact_hits.classes(prime, limit, j, (tau, 0, 0, 0))
    chance = [Fraction(whole, prime**j) for _, whole, _ in parted]
    middle = low + (high - low) * (q - float(chance[0])) / float(chance[1])
    density = [1 + (f - 1) * scale for f in (high, middle, low)]
    masses = [round(Fraction(f) * p * TOTAL) for f, p in zip(density, chance, strict=True)]
    outer = [k for k in range(3) if parted[k][1]]
    first, last = outer[0], outer[-1]
    masses[1] += TOTAL - sum(masses)
    means = [
        Fraction(sum(n * weights[n] for n in ns), whole) if whole else Fraction(0)
        for _, whole, ns in parted
    ]
    have = sum(mass * mean for mass, mean in zip(masses, means, strict=True))
    moved = round((target * j * TOTAL - have) / (means[first] - means[last]))
    masses[first] += moved
    masses[last] -= moved
    return tau, *masses
