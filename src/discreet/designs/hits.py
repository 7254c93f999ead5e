"""`hits`: counted hits for sets of two and more items (exact_sets.py has the law,
docs/researcher.md, "Sets: counted hits", the idea).

cuts.py finds the best part for every cut. Here the parts are mixed with public shares, and their
floats become integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.arrays import theory
from discreet.arrays.types import Floats, Ints, sum_by_place
from discreet.check import exact_sets
from discreet.check.certificate import FAIR
from discreet.check.exact_sets import TOTAL, HitChances
from discreet.check.parts import HitsPart
from discreet.designs.cuts import (
    Cut,
    best_cut,
    binomial_laws,
    high_and_low,
    largest_deltas,
    row_bounds,
    tail_sums,
)
from discreet.designs.set_bound import certificate
from discreet.designs.task import Task
from discreet.encodings.hits import Hits, unfit_for_hits
from discreet.errors import DesignError, GuaranteeError
from discreet.mechanism import Mechanism

SMALL_PRIME, LARGE_PRIME = 65_521, 2**31 - 1  # coefficients of 2 and of 4 bytes
MOST_CUTS = 8  # budgets that parts begin at; if there are more, neighbours share one
_LARGEST_BUDGET = 20.0  # larger budgets count as this one, at which there is hardly any noise
_COARSE_LIMIT = 100  # of 65,521: below this the chance of a hit would be too coarse
_SAFETY = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # taken off delta until the check agrees
_NEGLIGIBLE = 1e-4  # parts with smaller shares are left out


def hits(task: Task) -> Mechanism:
    """Design counted hits for a policy, a prior and a padding."""
    unfit = unfit_for_hits(task.policy, task.padding)
    if unfit:
        raise DesignError(f"{unfit}; use the model subset")
    if task.encoding is not None:
        raise DesignError(
            f'encoding = "{task.encoding}" does not apply to hits, whose reports are polynomials; '
            "leave it out, or use the model subset"
        )
    flat = _flat(task)
    try:
        mechanism = MixedParts.for_task(task, flat).mechanism(task)
    except GuaranteeError:  # budgets so large that only one for all items fits
        mechanism = MixedParts.for_task(task, flat=True).mechanism(task)
    return mechanism.certified(certificate(task, task.score(mechanism), FAIR * flat))


def noise(task: Task) -> tuple[Floats, Floats]:
    """The variance / n of the count of an item that nobody holds, and what one holder adds, per
    level. In floats, without making the mechanism.
    """
    return MixedParts.for_task(task, _flat(task)).noise(task.eps)


def _flat(task: Task) -> bool:
    """Whether all items get the smallest budget. Only the first part names the items of that
    budget, so any share of another part counts them worse than plain LDP does.
    """
    return task.fair and len(set(task.eps.tolist())) > 1


# ---- the parts together --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixedParts:
    """A design in floats: the parts, the budgets they begin at (ascending), and their shares."""

    e1: float
    padding: int
    begins: Floats
    cuts: tuple[Cut, ...]
    shares: Floats

    @classmethod
    def for_task(cls, task: Task, flat: bool = False) -> MixedParts:
        """The best shares of the best parts. With `flat`, all items have the smallest budget."""
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
        shares = _best_shares(task, begins, cuts, held)
        keep = shares > _NEGLIGIBLE
        keep[0] = True  # every item needs a part that names it
        kept = tuple(cut for cut, on in zip(cuts, keep, strict=True) if on)
        return cls(e1, s, begins[keep], kept, shares[keep] / shares[keep].sum())

    def noise(self, eps: Floats) -> tuple[Floats, Floats]:
        """The variance per report of an item that nobody holds, and what a holder adds, for items
        with these budgets.
        """
        absent, more = _noise(self.cuts, self.shares)
        place = _parts_naming(self.begins, eps) - 1
        return absent[place], more[place]

    def mechanism(self, task: Task) -> Mechanism:
        """The mechanism in integers. delta is reduced until the exact check agrees."""
        naming = _parts_naming(self.begins, task.eps)
        order: dict[int, int] = {}
        groups = tuple(order.setdefault(int(k), len(order)) for k in naming)
        whole = task.whole_shares(self.shares)
        smallest = min(cut.b for cut in self.cuts)
        small = task.policy.m < SMALL_PRIME and smallest * SMALL_PRIME >= _COARSE_LIMIT
        encoding = Hits(SMALL_PRIME if small else LARGE_PRIME)
        shares = sum_by_place(groups, task.shares, len(order))
        whole_shares = task.whole_shares(np.append(shares, task.empty))
        prime, name = encoding.prime, task.prior_name

        def part(place: int, cut: Cut, safety: float) -> HitsPart:
            limit = min(max(1, round(cut.b * prime)), prime - 1)
            active = tuple(int(k > place) for k in order)
            rows = _rows(cut, limit, prime, self, safety)
            return HitsPart(HitChances(whole[place], active, limit, rows), prime, groups)

        for safety in _SAFETY:
            parts = tuple(part(place, cut, safety) for place, cut in enumerate(self.cuts))
            with suppress(GuaranteeError):
                return Mechanism(
                    task.policy, "hits", encoding, groups, parts, whole_shares, self.padding, name
                )
        raise GuaranteeError(f"no hits with a padding of {self.padding} keep these budgets")


def _parts_naming(begins: Floats, eps: Floats) -> Ints:
    """How many parts name the items with these budgets: at least the first does."""
    return np.searchsorted(begins, eps * (1 + 1e-12), side="right")


def _begins(eps: Floats) -> Floats:
    """The budgets that parts begin at: all of them, or MOST_CUTS evenly chosen ones."""
    distinct = np.unique(eps)
    if len(distinct) <= MOST_CUTS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, MOST_CUTS).round().astype(int)]


def _noise(cuts: Sequence[Cut], shares: Floats) -> tuple[Floats, Floats]:
    """The variance per report of an item that nobody holds, and what a holder adds, for items that
    the first 1, 2, … parts name.
    """
    information, b, delta = (
        np.array([getattr(cut, key) for cut in cuts]) for key in ("information", "b", "delta")
    )
    total = np.cumsum(shares * information)
    return 1 / total, np.cumsum(shares * information**2 * (1 - 2 * b) / delta) / total**2 - 1


def _best_shares(task: Task, begins: Floats, cuts: list[Cut], held: Floats) -> Floats:
    """The shares with the smallest expected error, or the smallest worst case."""
    count = len(cuts)
    if count == 1:
        return np.ones(1)
    last = _parts_naming(begins, task.eps) - 1  # of every level
    weight = task.weights * task.sizes
    level_of = task.policy.level_of
    shares = sum_by_place(level_of, held, len(task.weights)) * task.weights

    def error(part: Floats) -> float:
        part = np.maximum(part, 1e-9) / np.maximum(part, 1e-9).sum()
        absent, more = (x[last] for x in _noise(cuts, part))
        total = float((weight * absent).sum())
        if task.worst:
            return total + (task.padding or 1) * max(0.0, float((task.weights * (more + 1)).max()))
        return total + float((shares * more).sum())

    # for absent items alone the problem is convex, and these steps never increase the error
    information = np.array([cut.information for cut in cuts])
    part = np.full(count, 1 / count)
    for _ in range(1000):
        slope = weight / np.cumsum(part * information)[last] ** 2
        part *= np.sqrt(information * (slope @ (last[:, None] >= np.arange(count))))
        part /= part.sum()
    from scipy.optimize import minimize  # takes long to load

    unit = error(part)
    candidates = [part, *np.eye(count)]
    for start in (part, np.full(count, 1 / count)):
        better = minimize(
            lambda x: error(x) / unit,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * count,
            constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1}],
        )
        candidates.append(np.maximum(better.x, 0))
    best = min(candidates, key=error)
    return best / best.sum()


# ---- integers ------------------------------------------------------------------------------------


def _rows(
    cut: Cut, limit: int, prime: int, draft: MixedParts, safety: float
) -> tuple[tuple[int, ...], ...]:
    """The rows of a part whose chance of a hit is limit / prime, all with the same chance of an own
    item to within 2^-52.
    """
    b = np.array([limit / prime])
    bounds = row_bounds(draft.e1, cut.active, draft.padding)
    U, W = np.array([cut.U]), np.array([cut.W])
    deltas = largest_deltas(U, W, b, bounds)[:, 0]
    delta = min(deltas.min(), 1 - b[0]) * (1 - safety)
    target = Fraction(limit, prime) + Fraction(delta)
    rows = []
    for j, p in enumerate(binomial_laws(b, draft.padding), 1):
        high, low, q = (float(x[0]) for x in high_and_low(U, W, bounds[j]))
        tau = int(np.flatnonzero(tail_sums(p)[0] <= q)[0])
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
    """tau and the masses of its three classes.

    The densities are scaled towards 1. Then mass moves between the outer classes until an own item
    is named with the target chance.
    """
    high, low, q = levels
    weights = exact_sets.weights(prime, limit, j)
    parted = exact_sets.classes(prime, limit, j, (tau, 0, 0, 0))
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
