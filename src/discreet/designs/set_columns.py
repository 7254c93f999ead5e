"""One cut of picks in floats: columns, the best weights of some of them, and the best new ones.

A column is a size k and the density f_j(n) of a k-subset that names n of the j active items which a
person has (check/exact_picks.py). Scaled to chance 1 at the prior, u_j is the chance that a person
of class j uses it, and d_j what it tells of an own item. Weights mu of columns cost

    f(mu) = m 1' I^-1 1 + m g' G^-1 g,    I = sum mu d d' / (kappa (1 - kappa)),  G = sum mu u u',

g_j = j / m, kappa = k / m, with sum mu u_j = 1 for every class: the total of all squared scores of
the best decoder (arrays/classes.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.arrays.types import Bools, Floats, Ints
from discreet.designs.weighing import Term, best_weights
from discreet.policy.lazy import cached_property

_NARROW = 6


@dataclass(frozen=True, eq=False)
class CutTask:
    """A cut to design: m active items; a person with j of them may be told apart by a factor R_j
    from anybody, and by `smallest` if they have none. `out`: the smallest factor of an item that is
    not active, None if there is no such item or no set that is too large.
    """

    m: int
    s: int
    R: Floats
    smallest: float
    out: float | None
    prior: Floats

    @property
    def J(self) -> int:
        """The most active items that count."""
        return len(self.prior) - 1

    @cached_property
    def spreads(self) -> Floats:
        """The ratios of the largest to the smallest density that the best columns can have."""
        most = self.smallest**2
        inner = {float(r) for r in self.R if r < most}
        return np.array(sorted(inner | {float(min(most, self.R.max() ** 2)), self.smallest}))

    @cached_property
    def soft(self) -> Floats:
        """The prior, with something for every class."""
        return 0.9 * self.prior + 0.1 / (self.J + 1)

    @cached_property
    def inner(self) -> slice:
        """The classes in which an item can be told: not those of none or of all."""
        return slice(1, self.J + (self.m > self.J))

    def bounds(self, spread: float) -> tuple[Floats, Floats]:
        """The smallest and the largest density of every class, where the smallest of all is 1."""
        return np.maximum(1, spread / self.R), np.minimum(spread, self.R)


@dataclass(frozen=True, eq=False)
class Tables:
    """Per size k, class j and number n: the chance of n in a uniform subset, and what n tells."""

    task: CutTask
    sizes: Ints
    chance: Floats
    told: Floats

    @classmethod
    def for_sizes(cls, task: CutTask, sizes: list[int]) -> Tables:
        """The tables of these sizes."""
        m, J = task.m, task.J
        chance = np.zeros((len(sizes), J + 1, J + 1))
        told = np.zeros_like(chance)
        for a, k in enumerate(sizes):
            for j in range(J + 1):
                for n in range(max(0, k + j - m), min(j, k) + 1):
                    chance[a, j, n] = comb(j, n) * comb(m - j, k - n) / comb(m, k)
                    if 0 < j < m:
                        told[a, j, n] = (n - j * k / m) / (j * (1 - j / m))
        return cls(task, np.array(sizes), chance, told)

    @cached_property
    def noise(self) -> Floats:
        """kappa (1 - kappa); 1 where nothing is named."""
        kappa = self.sizes / self.task.m
        return np.where(kappa > 0, kappa * (1 - kappa), 1.0)


@dataclass(frozen=True, eq=False)
class CutColumns:
    """Some columns: the places of their sizes in the tables, and their densities, scaled."""

    tables: Tables
    place: Ints
    f: Floats

    @classmethod
    def scaled(cls, tables: Tables, place: Ints, f: Floats) -> CutColumns:
        """The same densities, such that everybody together has chance 1."""
        used = (tables.chance[place] * f).sum(axis=2) @ tables.task.prior
        return cls(tables, place, f / used[:, None, None])

    @cached_property
    def u(self) -> Floats:
        """The chance of every class."""
        return (self.tables.chance[self.place] * self.f).sum(axis=2)

    @cached_property
    def x(self) -> Floats:
        """What is learnt, in units of the noise."""
        learnt = (self.tables.chance * self.tables.told)[self.place] * self.f
        return learnt.sum(axis=2) / np.sqrt(self.tables.noise[self.place])[:, None]

    def take(self, which: Ints | Bools) -> CutColumns:
        """Some of them."""
        return CutColumns(self.tables, self.place[which], self.f[which])

    def plus(self, other: CutColumns) -> CutColumns:
        """And others."""
        place = np.concatenate((self.place, other.place))
        return CutColumns(self.tables, place, np.concatenate((self.f, other.f)))


@dataclass(frozen=True, eq=False)
class Weighed:
    """The best weights of some columns, their cost, and the prices of what they tell."""

    mu: Floats
    cost: float
    told: Floats  # y = I^-1 1, 0 for classes in which nothing is told
    level: Floats  # q = G^-1 g
    price: Floats  # of the chance of every class


def weigh(
    columns: CutColumns, mu: Floats, ridge: float = 0.0, unit: float = 1.0,
    goal: float = 1e-8, least: Floats | float = 0.0,
) -> Weighed:  # fmt: skip
    """The best weights of some columns, none below `least` (weighing.py)."""
    task, U = columns.tables.task, columns.u
    X, C = columns.x[:, task.inner], U.shape[1]
    m, soft = task.m, task.soft
    terms = (
        Term(X, np.ones(X.shape[1]), m, ridge / unit / soft[task.inner]),
        Term(U, np.arange(C) / m, m, 0.1 * ridge / soft),
    )
    best = best_weights(U, terms, mu, ridge / soft, goal, least)
    told = np.zeros(C)
    told[task.inner] = best.solved[0]
    return Weighed(best.mu, best.cost, told, best.solved[1], best.price)


def price(tables: Tables, at: Weighed, start: Floats) -> tuple[Floats, Floats]:
    """For every size and spread the best column near some directions, and its score (sizes x
    spreads): for fixed directions the best one has two densities per class, where a linear form of
    n passes a threshold (Dinkelbach); then the directions follow it.
    """
    task, chance = tables.task, tables.chance[:, None]
    low, high = (
        np.array(ends)[None, :, :, None]
        for ends in zip(*(task.bounds(S) for S in task.spreads.tolist()), strict=True)
    )
    weight = chance * task.prior[:, None]
    told = np.sqrt(task.m / tables.noise)[:, None, None] * at.told[:, None] * tables.told
    level = np.broadcast_to((math.sqrt(task.m) * at.level)[:, None], told.shape[1:])
    best = np.full((len(tables.sizes), len(task.spreads)), -np.inf)
    columns = np.ones((*best.shape, *told.shape[1:]))
    turn = np.broadcast_to(start, (*best.shape, 2))
    for _ in range(_NARROW):
        form = 2 * turn[..., :1, None] * told[:, None] + 2 * turn[..., 1:, None] * level
        form = form - at.price[:, None]
        ratio = np.zeros(best.shape)
        for _ in range(15):
            f = np.where(form > ratio[..., None, None] * task.prior[:, None], high, low)
            new = (chance * f * form).sum(axis=(2, 3)) / (weight * f).sum(axis=(2, 3))
            settled = np.abs(new - ratio).max() <= 1e-10 * (1 + np.abs(new).max())
            if settled:
                break
            ratio = new
        f = f / (weight * f).sum(axis=(2, 3))[..., None, None]
        used = chance * f
        turn = np.stack(
            ((used * told[:, None]).sum(axis=(2, 3)), (used * level).sum(axis=(2, 3))), axis=-1
        )
        score = (turn**2).sum(axis=-1) - (used * at.price[:, None]).sum(axis=(2, 3))
        better = score > best + 1e-9 * np.abs(np.where(np.isfinite(best), best, 0))
        best, columns = np.where(better, score, best), np.where(better[..., None, None], f, columns)
        if not better.any():
            break
    return best + at.price.sum(), columns


def scores(columns: CutColumns, at: Weighed) -> Floats:
    """How much every column is worth at these prices; above the cost, it improves the weights."""
    m = columns.tables.task.m
    return (
        m * ((columns.x @ at.told) ** 2 + (columns.u @ at.level) ** 2)
        - columns.u @ at.price
        + at.price.sum()
    )


# ---- the factor of items that are not active -----------------------------------------------------


def keeps_others(task: CutTask, f: Floats, chance: Floats) -> bool:
    """Whether an item that is not active changes the chance of no report by more than `out`, beside
    s others (exact_picks.item_factors).
    """
    if task.out is None:
        return True
    s, J = task.s, task.J
    j, n = np.arange(J + 1)[:, None], np.arange(J + 1)[None, :]
    named, away = np.zeros_like(f), np.zeros_like(f)
    named[1:, 1:], away[1:] = f[:-1, :-1], f[:-1]
    mean = (1 + s - j) * f + n * named + np.maximum(j - n, 0) * away
    under = mean <= (s + 1) * task.out * f * (1 + 1e-12)
    over = mean * task.out >= (s + 1) * f * (1 - 1e-12)
    return bool((under & over)[chance > 0].all())


class ShareProgram:
    """All columns of one size that also keep the factor of other items: a linear program in the
    smallest and the largest density, and all densities.
    """

    def __init__(self, task: CutTask, chance: Floats) -> None:
        from scipy.sparse import csr_matrix  # takes long to load

        self.chance, self.prior = chance, task.prior
        self.cells = [(j, n) for j in range(task.J + 1) for n in range(j + 1) if chance[j, n] > 0]
        at = {cell: i for i, cell in enumerate(self.cells, 2)}
        rows: list[dict[int, float]] = [{1: 1.0, 0: -(task.smallest**2)}]
        for (j, n), i in at.items():
            R = float(task.R[j])
            rows += [{i: 1.0, 1: -1.0}, {i: -1.0, 0: 1.0}, {i: 1.0, 0: -R}, {i: -R, 1: 1.0}]
            rows += _swapped(task, at, j, n, i)
        matrix = np.zeros((len(rows), 2 + len(at)))
        for r, entries in enumerate(rows):
            for column, value in entries.items():
                matrix[r, column] = value
        self.matrix = csr_matrix(matrix)
        self.norm = np.array([[0, 0, *(chance[c] * task.prior[c[0]] for c in self.cells)]])

    def best(self, form: Floats) -> Floats | None:
        """The column with the largest sum of a linear form; None if the solver fails."""
        from scipy.optimize import linprog  # takes long to load

        worth = np.array([0, 0, *(-self.chance[c] * form[c] for c in self.cells)])
        program = linprog(
            worth, self.matrix, np.zeros(self.matrix.shape[0]), self.norm, [1.0],
            bounds=(0, None), method="highs-ds",
        )  # fmt: skip
        if program.status:
            return None
        f = np.full(self.chance.shape, program.x[0])
        for cell, value in zip(self.cells, program.x[2:], strict=True):
            f[cell] = value
        return f


def _swapped(
    task: CutTask, at: dict[tuple[int, int], int], j: int, n: int, i: int
) -> list[dict[int, float]]:
    """Rows: the mean over what another item takes the place of keeps the factor, either way."""
    s, out = task.s, task.out or 1.0
    mean = {i: float(1 + s - j)}
    for cell, times in (((j - 1, n - 1), n), ((j - 1, n), j - n)):
        if times:
            mean[at[cell]] = mean.get(at[cell], 0.0) + times
    less = {**mean, i: mean[i] - (s + 1) * out}
    more = {column: -value for column, value in mean.items()}
    return [less, {**more, i: more[i] + (s + 1) / out}]
