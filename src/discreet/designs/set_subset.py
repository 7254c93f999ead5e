"""`subset` for sets: picks, subsets of fixed size whose chance depends on how many own items they
name (check/exact_picks.py has the law, docs/researcher.md the idea).

set_search.py finds the best columns of every cut. Here the cuts are mixed with public shares, and
their floats become integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.arrays import theory
from discreet.arrays.classes import ClassDecoder
from discreet.arrays.people import People, mean_size
from discreet.arrays.types import Floats, sum_by_place
from discreet.check.certificate import FAIR
from discreet.check.exact_picks import PickChances, possible
from discreet.check.exact_sets import TOTAL
from discreet.check.parts import PicksPart
from discreet.designs.set_bound import certificate
from discreet.designs.set_columns import CutTask
from discreet.designs.set_search import ROUNDS, CutDesign, best_cut
from discreet.designs.task import Task
from discreet.encodings.picks import Layout, Picks, unfit_for_picks
from discreet.errors import DesignError, GuaranteeError
from discreet.mechanism import Mechanism

MOST_ITEMS, MOST_PADDING, MOST_LEVELS = 1024, 12, 4  # the search takes too long beyond
_LARGEST_BUDGET = 20.0  # larger budgets count as this one, at which there is hardly any noise
_MARGIN = 1 - 1e-9  # off every factor: the integers must keep it
_MIXES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # with a report that says nothing
_NEGLIGIBLE = 1e-3  # cuts with smaller shares are left out
_STEPS = 4000  # towards the best shares of the cuts
_RARE = 1e-9  # numbers of own items with a smaller chance join a run


def unfit(task: Task) -> str | None:
    """Why picks are not searched for a task; None where they are."""
    if reason := unfit_for_picks(task.policy, task.padding):
        return reason
    s = task.padding or 1
    if s == 1:
        return "with a padding of 1 there is one item, which subset reports as a single answer"
    if task.encoding is not None:
        return f'encoding = "{task.encoding}" names one sampled item'
    if task.policy.m > MOST_ITEMS or s > MOST_PADDING or levels(task) > MOST_LEVELS:
        return (
            f"picks are searched up to {MOST_ITEMS:,} items, a padding of {MOST_PADDING} and "
            f"{MOST_LEVELS} budgets"
        )
    if task.policy.m < 2:
        return "there is only one item"
    if task.worst or not task.even or np.ptp(task.weights) > 0:
        return "picks are designed for the expected error, all items of a level alike, no weights"
    return None


def picks(task: Task, most_bytes: int | None = None, rounds: int = ROUNDS) -> Mechanism:
    """Design picks for a policy, a prior and a padding; `most_bytes` limits their reports, and
    `rounds` the search.
    """
    if reason := unfit(task):
        raise DesignError(reason)
    mechanism = _Mix.for_task(task, most_bytes, rounds).mechanism(task)
    held = task.fair and np.ptp(task.eps) > 0
    return mechanism.certified(certificate(task, score(task, mechanism), FAIR * bool(held)))


def score(task: Task, mechanism: Mechanism) -> float:
    """The expected error, at the sizes of sets that people have where they are known."""
    decoder = mechanism.arrays.decoder
    if task.people is None or not isinstance(decoder, ClassDecoder):
        return task.score(mechanism)
    held = theory.item_shares(task.policy, task.prior, task.padding)
    return float(decoder.variance(mechanism, People.at_shares(mechanism), held).sum())


def levels(task: Task) -> int:
    """The number of budgets that differ."""
    return len(_budgets(task))


def _budgets(task: Task) -> list[float]:
    """The budgets that differ, ascending: above twice the smallest none can be used. With the goal
    fair, the smallest alone.
    """
    smallest = min(float(task.eps.min()), _LARGEST_BUDGET)
    if task.fair:  # as in hits: any other cut counts the most sensitive items worse
        return [smallest]
    return sorted({min(float(e), 2 * smallest, _LARGEST_BUDGET) for e in task.eps})


@dataclass(frozen=True, eq=False)
class _Mix:
    """A design in floats: the budget of every group, the cuts, and their shares."""

    people: People
    groups: tuple[int, ...]  # of every level
    active: tuple[tuple[int, ...], ...]  # of every cut, per group
    cuts: tuple[CutDesign, ...]
    shares: Floats

    @classmethod
    def for_task(cls, task: Task, most_bytes: int | None, rounds: int = ROUNDS) -> _Mix:
        """The best shares of the best cuts: intervals of budgets."""
        s, budgets = task.padding or 1, _budgets(task)
        rank = [budgets.index(min(float(e), budgets[-1])) for e in task.eps]
        order: dict[int, int] = {}
        groups = tuple(order.setdefault(r, len(order)) for r in rank)
        ranks = list(order)  # of every group
        sizes = _group_sizes(task, groups)
        people = _people(task, groups, s)
        E = [math.exp(b) for b in budgets]
        spans = [(a, b) for a in range(len(E)) for b in range(a, len(E))]
        actives, cuts = [], []
        for first, last in spans:
            active = tuple(int(first <= r <= last) for r in ranks)
            rest = [E[r] for r in range(len(E)) if not first <= r <= last]
            cut = _cut_task(people, sizes, active, s, E[0], E[first], rest)
            actives.append(active)
            cuts.append(best_cut(cut, None if most_bytes is None else most_bytes - 1, rounds))
        shares = _best_shares(np.array(sizes, float), np.array(actives, float), cuts)
        kept = shares > _NEGLIGIBLE
        return cls(
            people, groups,
            tuple(x for x, on in zip(actives, kept, strict=True) if on),
            tuple(x for x, on in zip(cuts, kept, strict=True) if on),
            shares[kept] / shares[kept].sum(),
        )  # fmt: skip

    def mechanism(self, task: Task) -> Mechanism:
        """The mechanism in integers: mixed with a report that says nothing, until the check agrees.
        Every cut is made by itself first, because one may need more than another.
        """
        passing = (
            next((mix for mix in _MIXES if self._passes(task, [c], [mix]) is not None), None)
            for c in range(len(self.cuts))
        )
        mixes = [mix for mix in passing if mix is not None]
        if len(mixes) == len(self.cuts):
            made = self._passes(task, list(range(len(self.cuts))), mixes)
            if made is not None:
                return made
        raise DesignError("no picks keep these budgets")

    def _passes(self, task: Task, which: list[int], mixes: list[float]) -> Mechanism | None:
        """The mechanism of these cuts alone; None if the check refuses it."""
        sizes = tuple(_group_sizes(task, self.groups))
        shares = task.whole_shares(self.shares[which] / self.shares[which].sum())
        parts = []
        for c, mix, chance in zip(which, mixes, shares, strict=True):
            for k, rows in _integers(self.cuts[c], mix, task.padding or 1):
                ints = PickChances(chance, self.active[c], k, rows)
                parts.append(PicksPart(ints, sizes, self.groups))
        encoding = Picks(1 + max(Layout.of_part(part).size for part in parts))
        whole = task.whole_shares(self.people.shares())
        with suppress(GuaranteeError):
            return Mechanism(
                task.policy, "subset", encoding, self.groups, tuple(parts), whole, task.padding,
                task.prior_name,
            )  # fmt: skip
        return None


def _group_sizes(task: Task, groups: tuple[int, ...]) -> list[int]:
    return [int(x) for x in sum_by_place(groups, task.sizes, max(groups) + 1)]


def shares_by_size(sizes: Mapping[int, float], padding: int | None) -> Floats:
    """Shares of people with 0, 1, …, padding items; larger sets are cut to the padding."""
    numbers = [*sizes, *sizes.values()]
    whole = all(type(size) is int and size >= 0 for size in sizes)
    if padding is None:
        raise DesignError('sizes are for kind = "set" with a padding; leave them out')
    if not (whole and all(0 <= x < math.inf for x in numbers) and sum(sizes.values()) > 0):
        raise DesignError(
            "sizes are shares of people by number of items, such as {1: 0.6, 2: 0.4}, not all zero"
        )
    people = np.zeros(padding + 1)
    for size, share in sizes.items():
        people[min(size, padding)] += share
    return people / people.sum()


def _people(task: Task, groups: tuple[int, ...], s: int) -> People:
    """How many items people are expected to have, and of which groups."""
    held = theory.item_shares(task.policy, "uniform" if task.worst else task.prior, s)
    of_group = sum_by_place([groups[k] for k in task.policy.level_of], held, max(groups) + 1)
    sizes = mean_size(float(held.sum()), s) if task.people is None else task.people
    return People(sizes, of_group / of_group.sum())


def _cut_task(
    people: People, sizes: list[int], active: tuple[int, ...], s: int, smallest: float,
    of_active: float, rest: list[float],
) -> CutTask:  # fmt: skip
    law = people.law(sizes, active)
    m = sum(size for size, on in zip(sizes, active, strict=True) if on)
    j = np.arange(len(law))
    R = (j * of_active + (s - j) * smallest) / s * _MARGIN
    others = sum(sizes) - m
    out = min(rest) * _MARGIN if rest and others and sum(sizes) > s else None
    return CutTask(m, s, R, smallest * _MARGIN, out, law)


def _best_shares(sizes: Floats, active: Floats, cuts: list[CutDesign]) -> Floats:
    """The public chances of the cuts with the smallest total: multiplicative steps of a convex
    problem.
    """
    told = active * np.array([cut.task.m / cut.cost for cut in cuts])[:, None]  # of an item
    part = np.full(len(cuts), 1 / len(cuts))
    for _ in range(_STEPS):
        slope = (sizes * told / (part @ told) ** 2).sum(axis=1)
        part *= np.sqrt(slope)
        part /= part.sum()
    return part


# ---- integers ------------------------------------------------------------------------------------


@dataclass
class _Run:
    """Numbers of own items with (nearly) one density: the last, their chance, the density."""

    last: int
    chance: float
    density: float


def _integers(cut: CutDesign, mix: float, s: int) -> list[tuple[int, list[list[tuple[int, int]]]]]:
    """The size and the rows of every part; masses of all parts of a row sum to 2^52."""
    used = cut.mu > 1e-7
    sizes, f, mu = cut.sizes[used].tolist(), cut.f[used], cut.mu[used]
    share, total = mu / mu.sum(), float(mu.sum())
    rows: list[list[list[tuple[int, int]]]] = [[] for _ in sizes]
    for j in range(s + 1):
        runs = [
            _runs(cut.task.m, k, j, share[o] * ((1 - mix) * f[o] * total + mix), float(share[o]))
            for o, k in enumerate(sizes)
        ]
        whole = sum(run.chance * run.density for row in runs for run in row)
        made = [
            [(run.last, max(1, round(run.chance * run.density / whole * TOTAL))) for run in row]
            for row in runs
        ]
        _balance(made)
        for o, row in enumerate(made):
            rows[o].append(row)
    return list(zip(sizes, rows, strict=True))


def _runs(m: int, k: int, j: int, f: Floats, share: float) -> list[_Run]:
    """Numbers of nearly the same density, or of next to no chance, form one run: so no mass is too
    small to be rounded.
    """
    runs: list[_Run] = []
    for n in possible(m, k, j):
        chance = comb(j, n) * comb(m - j, k - n) / comb(m, k)
        density = float(f[j, n])
        if runs and (abs(density / runs[-1].density - 1) < 1e-9 or chance * share < _RARE):
            runs[-1].last, runs[-1].chance = n, runs[-1].chance + chance
        elif runs and runs[-1].chance * share < _RARE:
            runs[-1] = _Run(n, runs[-1].chance + chance, density)
        else:
            runs.append(_Run(n, chance, density))
    return runs


def _balance(rows: list[list[tuple[int, int]]]) -> None:
    """The largest mass takes what is left to 2^52."""
    left = TOTAL - sum(mass for row in rows for _, mass in row)
    if not any(rows):
        return
    mass, o, r = max((mass, o, r) for o, row in enumerate(rows) for r, (_, mass) in enumerate(row))
    rows[o][r] = (rows[o][r][0], mass + left)
