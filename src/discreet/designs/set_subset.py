"""`subset` for sets: picks, subsets of fixed sizes whose chance depends on how many own items they
name (check/exact_picks.py has the law, docs/researcher.md the idea).

set_search.py finds the best columns of cuts of one block; here these are mixed with public shares.
block_search.py finds those of one cut in which every budget is a block of its own, where there are
few classes of people. The better one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from operator import le
from typing import cast

import numpy as np

from discreet.arrays import theory
from discreet.arrays.classes import ClassDecoder
from discreet.arrays.people import People, mean_size
from discreet.arrays.types import Floats, sum_by_place
from discreet.check.certificate import FAIR
from discreet.check.exact_picks import PickChances, Vector, classes
from discreet.check.parts import PicksPart
from discreet.designs.block_columns import BlockTask
from discreet.designs.block_search import ROUNDS, best_blocks
from discreet.designs.fair import SAME
from discreet.designs.set_bound import certificate
from discreet.designs.set_columns import CutTask
from discreet.designs.set_rounding import FloatCut
from discreet.designs.set_search import CutDesign, best_cut
from discreet.designs.task import Task
from discreet.encodings.picks import Layout, Picks, unfit_for_picks
from discreet.errors import DesignError, GuaranteeError
from discreet.mechanism import Mechanism
from discreet.mechanism.shape import MAX_PARTS

MOST_ITEMS, MOST_PADDING, MOST_LEVELS = 1024, 12, 4  # the search takes too long beyond
MOST_CLASSES = 21  # of people, up to which cuts of several blocks are searched
_LARGEST_BUDGET = 20.0  # larger budgets count as this one, at which there is hardly any noise
_MARGIN = 1 - 1e-9  # off every factor: the integers must keep it
_MIXES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # with a report that says nothing
_NEGLIGIBLE = 1e-3  # cuts with smaller shares are left out
_STEPS = 4000  # towards the best shares of the cuts


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


def picks(
    task: Task, most_bytes: int | None = None, rounds: int = ROUNDS, several: bool = True
) -> Mechanism:
    """Design picks for a policy, a prior and a padding; `most_bytes` limits their reports,
    `several` says whether cuts of several blocks are searched, and `rounds` how long.
    """
    if reason := unfit(task):
        raise DesignError(reason)
    made = _Mix.for_task(task, most_bytes).mechanism(task)
    if several and made is not None and classes_of_blocks(task) <= MOST_CLASSES:
        other = _of_blocks(task, made, most_bytes, rounds)
        made = min(filter(None, (made, other)), key=lambda mechanism: score(task, mechanism))
    if made is None:
        raise DesignError("no picks keep these budgets")
    held = task.fair and np.ptp(task.eps) > 0
    return made.certified(certificate(task, score(task, made), FAIR * bool(held)))


def classes_of_blocks(task: Task) -> float:
    """How many classes of people there are if every budget is a block of its own; infinite where
    there is one budget.
    """
    blocks = len(_budgets(task))
    return comb((task.padding or 1) + blocks, blocks) if blocks > 1 else math.inf


def _of_blocks(
    task: Task, plain: Mechanism, most_bytes: int | None, rounds: int
) -> Mechanism | None:
    """Picks of one cut in which every budget is a block. With the goal fair, no level's error is
    above that of `plain`; None where none is found.
    """
    if not task.fair:
        return _Mix.of_blocks(task, most_bytes, None, rounds).mechanism(task)
    limits = _level_errors(task, plain)
    made = _Mix.of_blocks(task, most_bytes, limits, rounds).mechanism(task)
    if made is None or (_level_errors(task, made) > limits * (1 + SAME)).any():
        return None
    return made


def _level_errors(task: Task, mechanism: Mechanism) -> Floats:
    """The same of an item of every level; all of a level are alike."""
    return _errors(task, mechanism)[_firsts(task)]


def _firsts(task: Task) -> list[int]:
    """The first item of every level."""
    return [task.policy.level_of.index(k) for k in range(len(task.eps))]


def score(task: Task, mechanism: Mechanism) -> float:
    """The expected error, at the sizes of sets that people have where they are known."""
    if task.people is None or not isinstance(mechanism.arrays.decoder, ClassDecoder):
        return task.score(mechanism)
    return float(_errors(task, mechanism).sum())


def _errors(task: Task, mechanism: Mechanism) -> Floats:
    """Var / n of every item's estimate, at the sizes of sets that people have."""
    decoder = cast(ClassDecoder, mechanism.arrays.decoder)
    held = theory.item_shares(task.policy, task.prior, task.padding)
    return decoder.variance(mechanism, People.at_shares(mechanism), held)


def levels(task: Task) -> int:
    """The number of budgets that differ, among which cuts of one block choose."""
    return 1 if task.fair else len(_budgets(task))


def _budgets(task: Task) -> list[float]:
    """The budgets that differ, ascending: above twice the smallest none can be used."""
    smallest = min(float(task.eps.min()), _LARGEST_BUDGET)
    return sorted({min(float(e), 2 * smallest, _LARGEST_BUDGET) for e in task.eps})


@dataclass(frozen=True, eq=False)
class _Setting:
    """What is known of a task: the groups of levels with one budget, and people."""

    people: People
    groups: tuple[int, ...]  # of every level
    sizes: tuple[int, ...]  # of every group
    factors: tuple[float, ...]  # e^budget of every group
    s: int

    @classmethod
    def of_task(cls, task: Task, budgets: list[float]) -> _Setting:
        """Levels with the same of these budgets are one group."""
        s = task.padding or 1
        order: dict[float, int] = {}
        groups = tuple(order.setdefault(min(float(e), budgets[-1]), len(order)) for e in task.eps)
        sizes = sum_by_place(groups, task.sizes, len(order)).astype(int).tolist()
        return cls(_people(task, groups, s), groups, tuple(sizes), tuple(map(math.exp, order)), s)


@dataclass(frozen=True, eq=False)
class _Mix:
    """A design in floats: the cuts, their blocks, and their shares."""

    setting: _Setting
    blocks: tuple[tuple[int, ...], ...]  # of every cut, per group
    cuts: tuple[FloatCut, ...]
    shares: Floats

    @classmethod
    def for_task(cls, task: Task, most_bytes: int | None) -> _Mix:
        """The best shares of the best cuts of one block: intervals of budgets. With the goal fair,
        all items at the smallest one: any other cut counts the most sensitive items worse.
        """
        budgets = _budgets(task)
        setting = _Setting.of_task(task, budgets[:1] if task.fair else budgets)
        E = sorted(setting.factors)
        blocks, cuts = [], []
        for low, high in combinations_with_replacement(E, 2):
            active = tuple(int(low <= e <= high) for e in setting.factors)
            blocks.append(active)
            fits = None if most_bytes is None else most_bytes - 1
            cuts.append(best_cut(_cut_task(setting, active), fits))
        shares = _best_shares(np.array(setting.sizes, float), np.array(blocks, float), cuts)
        kept = np.flatnonzero(shares > _NEGLIGIBLE).tolist()
        return cls(
            setting, tuple(blocks[c] for c in kept), tuple(_floats(cuts[c]) for c in kept),
            shares[kept] / shares[kept].sum(),
        )  # fmt: skip

    @classmethod
    def of_blocks(
        cls, task: Task, most_bytes: int | None, limits: Floats | None, rounds: int = ROUNDS
    ) -> _Mix:
        """One cut in which every group is a block; `limits` are the errors of items per level."""
        setting = _Setting.of_task(task, _budgets(task))
        blocks = tuple(range(1, len(setting.sizes) + 1))
        every = [j for j in classes(len(blocks), setting.s) if all(map(le, j, setting.sizes))]
        law = setting.people.law(setting.sizes, blocks)
        factors = np.array(setting.factors) * _MARGIN
        design = BlockTask(setting.sizes, setting.s, factors, np.array(every), law)
        most = None if limits is None else _squares(task, setting, limits)
        found = best_blocks(design, None if most_bytes is None else most_bytes - 1, most, rounds)
        f = [dict(zip(design.cells, row, strict=True)) for row in found.columns.f.tolist()]
        cut = FloatCut(setting.sizes, setting.s, found.columns.sizes, f, found.mu)
        return cls(setting, (blocks,), (cut,), np.ones(1))

    def mechanism(self, task: Task) -> Mechanism | None:
        """The mechanism in integers: mixed with a report that says nothing, until the check agrees;
        None if it never does. Every cut is made by itself first, because one may need more than
        another.
        """
        mixes, made = [], None
        for c in range(len(self.cuts)):
            for mix in _MIXES:
                made = self._passes(task, [c], [mix])
                if made is not None:
                    mixes.append(mix)
                    break
            else:
                return None
        if len(mixes) > 1:
            made = self._passes(task, list(range(len(mixes))), mixes)
        return made

    def _passes(self, task: Task, which: list[int], mixes: list[float]) -> Mechanism | None:
        """The mechanism of these cuts alone; None if the check refuses it."""
        setting = self.setting
        shares = task.whole_shares(self.shares[which] / self.shares[which].sum())
        parts = []
        for c, mix, chance in zip(which, mixes, shares, strict=True):
            for sizes, rows in self.cuts[c].rows(mix):
                ints = PickChances(chance, self.blocks[c], sizes, rows)
                parts.append(PicksPart(ints, setting.sizes, setting.groups))
        if len(parts) > MAX_PARTS:
            return None
        encoding = Picks(1 + max(Layout.of_part(part).size for part in parts))
        whole = task.whole_shares(setting.people.shares())
        with suppress(GuaranteeError):
            return Mechanism(
                task.policy, "subset", encoding, setting.groups, tuple(parts), whole,
                task.padding, task.prior_name,
            )  # fmt: skip
        return None


def _squares(task: Task, setting: _Setting, limits: Floats) -> Floats:
    """The squared scores of all items of every group, where no error of a level is above these."""
    held = theory.item_shares(task.policy, task.prior, task.padding)
    worst = np.full(len(setting.sizes), np.inf)
    np.minimum.at(worst, list(setting.groups), limits + held[_firsts(task)])
    return worst * setting.sizes


def _floats(cut: CutDesign) -> FloatCut:
    J = range(cut.task.J + 1)
    cells: list[tuple[Vector, Vector]] = [((j,), (n,)) for j in J for n in range(j + 1)]
    f = [{(j, n): float(x[j[0], n[0]]) for j, n in cells} for x in cut.f]
    return FloatCut((cut.task.m,), cut.task.s, [(k,) for k in cut.sizes.tolist()], f, cut.mu)


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


def _cut_task(setting: _Setting, active: tuple[int, ...]) -> CutTask:
    law, s = setting.people.law(setting.sizes, active), setting.s
    groups = list(zip(active, setting.sizes, setting.factors, strict=True))
    m, smallest = sum(size for on, size, _ in groups if on), min(setting.factors)
    j = np.arange(len(law))
    of_active = min(e for on, _, e in groups if on)
    R = (j * of_active + (s - j) * smallest) / s * _MARGIN
    rest = [e for on, _, e in groups if not on]
    out = min(rest) * _MARGIN if rest and sum(setting.sizes) > s else None
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
