"""Picks of several levels in floats: one cut in which every level is a block of its own
(check/exact_picks.py).

A column is the sizes k of the subsets, and a table: the density f_j(n) of a report that names n of
the own items of a person of class j. Scaled to chance 1 at the prior, u_j is the chance that a
person of class j uses it, and d_jb what it tells of an own item of block b. Weights mu of columns
cost

    sum_b v_b m_b (1' I_b^-1 1 + g_b' G^-1 g_b),   I_b = sum mu d_b d_b' / (kappa_b (1 - kappa_b)),

G = sum mu u u', g_b = j_b / m_b, kappa_b = k_b / m_b, with sum mu u_j = 1 for every class: the
total of all squared scores of the best decoder (arrays/classes.py). What a table may be is the same
for all sizes, but for which n there are; so tables are tried at all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.types import Bools, Floats, Ints
from discreet.check.exact_picks import Vector, added, possible, ways, weight
from discreet.designs.weighing import Term, Weights, best_weights
from discreet.policy.lazy import cached_property

_FINE, _COARSE = 11, 10  # sizes of a block that are tried: 0, 1, ..., then so many geometric ones


@dataclass(frozen=True, eq=False)
class BlockTask:
    """What is designed: the items of every block, the padding, the factors that the blocks' items
    may use, and the shares of people of every class.
    """

    m: Vector
    s: int
    factors: Floats
    every: Ints  # classes x blocks
    prior: Floats

    @property
    def smallest(self) -> float:
        """The smallest factor."""
        return float(self.factors.min())

    @cached_property
    def R(self) -> Floats:
        """By how much people of a class may be told apart from anybody."""
        rest = self.s - self.every.sum(axis=1)
        return (self.every @ self.factors + rest * self.smallest) / self.s

    @cached_property
    def soft(self) -> Floats:
        """The prior, with something for every class."""
        return 0.9 * self.prior + 0.1 / len(self.prior)

    @cached_property
    def inner(self) -> list[Ints]:
        """Per block the classes in which an item can be told: not those of none or of all."""
        return [
            np.flatnonzero((j > 0) & (j < m)) for j, m in zip(self.every.T, self.m, strict=True)
        ]

    @cached_property
    def cells(self) -> list[tuple[Vector, Vector]]:
        """The classes j, and the vectors n of named own items."""
        return [
            (j, n)
            for j in map(tuple, self.every.tolist())
            for n in product(*(range(x + 1) for x in j))
        ]

    @cached_property
    def class_of(self) -> Ints:
        """The class of every cell."""
        at = {j: place for place, j in enumerate(map(tuple, self.every.tolist()))}
        return np.array([at[j] for j, _ in self.cells])

    @cached_property
    def named(self) -> Ints:
        """n of every cell."""
        return np.array([n for _, n in self.cells])

    def grid(self, fits: int | None) -> Ints:
        """The sizes that are tried, of at most so many bytes."""
        axes = []
        for m in self.m:
            top = m - 1 if m <= 6 else max(3, math.ceil(m / (1 + 0.7 * math.sqrt(self.smallest))))
            some = (*range(_FINE), *np.geomspace(_FINE, max(_FINE + 1, top), _COARSE))
            axes.append(sorted({min(m - 1, round(k)) for k in some if k <= top}))
        sizes = np.array(list(product(*axes)))
        bits = np.minimum(sizes * [max(1, (m - 1).bit_length()) for m in self.m], self.m)
        return sizes if fits is None else sizes[bits.sum(axis=1) <= 8 * fits]


# ---- which tables keep the promises --------------------------------------------------------------

Entries = dict[int, float]
Row = tuple[Entries, tuple[int, ...]]  # and the cells that it needs


class BlockProgram:
    """All tables that keep the promises: A x >= 0 for x = (LO, HI, f of every cell). A row is in
    force where the cells that it needs exist.
    """

    def __init__(self, task: BlockTask) -> None:
        from scipy.sparse import csr_matrix  # takes long to load

        self.task, self.at = task, {cell: i for i, cell in enumerate(task.cells)}
        rows: list[Row] = [({0: task.smallest**2, 1: -1.0}, ())]
        for i in range(len(task.cells)):
            rows += [*self._sets(i), *self._lists(i), *self._larger(i)]
        matrix = np.zeros((len(rows), 2 + len(task.cells)))
        self.needs = np.zeros((len(rows), len(task.cells)), bool)
        for place, (entries, cells) in enumerate(rows):
            matrix[place, list(entries)] = list(entries.values())
            self.needs[place, list(cells)] = True
        matrix /= np.abs(matrix).max(axis=1)[:, None]
        self.A = csr_matrix(matrix)
        # A' diag(w) A is linear in w
        products = [
            (r, i * matrix.shape[1] + j, row[i] * row[j])
            for r, row in enumerate(matrix)
            for i in np.flatnonzero(row)
            for j in np.flatnonzero(row)
        ]
        of_row, at, values = zip(*products, strict=True)
        shape = matrix.shape[1] ** 2, len(rows)
        self.squares = csr_matrix((values, (at, of_row)), shape=shape)

    def _sets(self, i: int) -> Iterator[Row]:
        """Any two sets: f within LO and HI, f <= R LO, HI <= R f."""
        R, f = float(self.task.R[self.task.class_of[i]]), i + 2
        for entries in ({f: 1.0, 0: -1.0}, {f: -1.0, 1: 1.0}, {f: -1.0, 0: R}, {f: R, 1: -1.0}):
            yield entries, (i,)

    def _lists(self, i: int) -> Iterator[Row]:
        """An item more or less, where that is at most s, and the set promise does not say it."""
        task, (j, n) = self.task, self.task.cells[i]
        for b, E in enumerate(task.factors.tolist()):
            for h in (0, 1):
                o = self.at.get((added(j, b, -1), added(n, b, -h)))
                if o is not None and min(task.R[task.class_of[[i, o]]]) > E * (1 + 1e-12):
                    yield {i + 2: -1.0, o + 2: E}, (i, o)
                    yield {i + 2: E, o + 2: -1.0}, (i, o)

    def _larger(self, i: int) -> Iterator[Row]:
        """An item more than s: it takes the place of one of s, or stays out, all alike."""
        task, (j, n), s = self.task, self.task.cells[i], self.task.s
        if sum(j) < s or sum(task.m) == s:
            return
        for b, E in enumerate(task.factors.tolist()):
            for h in (0, 1) if j[b] < task.m[b] else ():
                mean: Entries = {}
                joined, named = added(j, b, 1), added(n, b, h)
                for c in range(len(j)):
                    for times, out in ((n[c], 1), (j[c] - n[c], 0)):
                        if times:
                            o = self.at[added(joined, c, -1), added(named, c, -out)]
                            mean[o + 2] = mean.get(o + 2, 0.0) + times
                cells = (i, *(o - 2 for o in mean))
                most = max(task.R[task.class_of[o]] for o in cells[1:])
                if min(task.R[task.class_of[i]], most) > E * (1 + 1e-12):
                    less = {o: -times for o, times in mean.items()}
                    less[i + 2] = less.get(i + 2, 0.0) - 1 + (s + 1) * E
                    mean[i + 2] = mean.get(i + 2, 0.0) + 1 - (s + 1) / E
                    yield less, cells
                    yield mean, cells


# ---- columns -------------------------------------------------------------------------------------


class BlockTables:
    """Per sizes k and cell: the chance of n in uniform subsets, and what n tells of every block."""

    def __init__(self, program: BlockProgram, sizes: Ints) -> None:
        self.task, self.program, self.sizes = program.task, program, sizes
        task, K = self.task, len(sizes)
        self.chance = np.ones((K, len(task.cells)))
        self.told = np.zeros((K, len(task.cells), len(task.m)))  # in units of the noise
        for b, m in enumerate(task.m):
            j, n, k = task.every[task.class_of, b], task.named[:, b], sizes[:, b]
            table = np.zeros((m, int(j.max()) + 1, int(j.max()) + 1))
            for x in np.unique(k).tolist():
                for c in range(table.shape[1]):
                    for (a,) in possible((m,), (x,), (c,)):
                        table[x, c, a] = weight((m,), (x,), (c,), (a,)) / ways((m,), (c,))
            self.chance *= table[k[:, None], j, n]
            kappa = k / m
            noise = np.where(kappa > 0, kappa * (1 - kappa), 1.0)
            inside = (j > 0) & (j < m)
            unit = np.where(inside, j * (1 - j / m), 1.0) * np.sqrt(noise)[:, None]
            self.told[:, :, b] = np.where(inside, n - j * kappa[:, None], 0.0) / unit
        self.exists = self.chance > 0
        self.prior = self.chance * task.prior[task.class_of]
        missing = (~self.exists).astype(np.float32) @ program.needs.T.astype(np.float32)
        self.in_force = missing == 0  # rows of the program

    @cached_property
    def narrow(self) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """The chances, and what they tell of every block, in half the memory."""
        told = [(self.chance * x).astype(np.float32) for x in np.moveaxis(self.told, 2, 0)]
        return self.chance.astype(np.float32), told

    def nearest(self, share: float, least: int = 0) -> int:
        """The sizes next to this share of the items, and to so many."""
        wanted = np.array([min(m - 1, max(least, share * m)) for m in self.task.m])
        return int(np.abs(self.sizes - wanted).sum(axis=1).argmin())

    def keeps(self, place: Ints, f: Floats) -> Bools:
        """Whether these tables keep the promises, at these places of the sizes."""
        there = self.exists[place]
        low = np.where(there, f, np.inf).min(axis=1)
        high = np.where(there, f, -np.inf).max(axis=1)
        left = (self.program.A @ np.column_stack((low, high, f)).T).T / low[:, None]
        return np.asarray(np.where(self.in_force[place], left, 0.0).min(axis=1) >= -1e-9)


@dataclass(frozen=True, eq=False)
class BlockColumns:
    """Some columns: the places of their sizes in the tables, and their densities, scaled."""

    tables: BlockTables
    place: Ints
    f: Floats

    @classmethod
    def scaled(cls, tables: BlockTables, place: Ints, f: Floats) -> BlockColumns:
        """The same densities, such that everybody together has chance 1."""
        return cls(tables, place, f / (tables.prior[place] * f).sum(axis=1)[:, None])

    @cached_property
    def u(self) -> Floats:
        """The chance of every class."""
        return self._by_class(self.tables.chance[self.place] * self.f)

    @cached_property
    def x(self) -> list[Floats]:
        """What is learnt of every block, per class, in units of the noise."""
        used, told = self.tables.chance[self.place] * self.f, self.tables.told[self.place]
        return [self._by_class(used * told[:, :, b]) for b in range(told.shape[2])]

    def _by_class(self, cells: Floats) -> Floats:
        starts = np.flatnonzero(np.diff(self.tables.task.class_of, prepend=-1))
        return np.add.reduceat(cells, starts, axis=1)

    @property
    def sizes(self) -> list[Vector]:
        """The sizes of every column."""
        return [tuple(row) for row in self.tables.sizes[self.place].tolist()]

    def take(self, which: Ints | Bools) -> BlockColumns:
        """Some of them."""
        return BlockColumns(self.tables, self.place[which], self.f[which])

    def plus(self, other: BlockColumns) -> BlockColumns:
        """And others."""
        place = np.concatenate((self.place, other.place))
        return BlockColumns(self.tables, place, np.concatenate((self.f, other.f)))

    def weigh(
        self, counts: Floats, mu: Floats, ridge: float = 0.0, unit: float = 1.0,
        goal: float = 1e-8, least: Floats | float = 0.0,
    ) -> Weights:  # fmt: skip
        """The best weights, none below `least` (weighing.py), if the blocks count so much."""
        task = self.tables.task
        terms = [
            Term(x[:, mine], np.ones(len(mine)), m * v, ridge / unit / task.soft[mine])
            for x, mine, m, v in zip(self.x, task.inner, task.m, counts, strict=True)
        ]
        terms += [
            Term(self.u, j / m, m * v, 0.1 * ridge / task.soft)
            for j, m, v in zip(task.every.T, task.m, counts, strict=True)
        ]
        return best_weights(self.u, terms, mu, ridge / task.soft, goal, least)

    def costs(self, at: Weights) -> Floats:
        """The squared scores of the items of every block at some weights."""
        task, blocks = self.tables.task, len(self.tables.task.m)
        told = np.array([y.sum() for y in at.solved[:blocks]])
        solved = zip(task.every.T, at.solved[blocks:], strict=True)
        return np.array(task.m) * told + np.array([float(j @ y) for j, y in solved])

    def least_told(self, mu: Floats) -> float:
        """How well the columns tell the classes apart: the least scaled singular value."""
        root, least = np.sqrt(mu)[:, None], math.inf
        inner = [x[:, mine] for x, mine in zip(self.x, self.tables.task.inner, strict=True)]
        for rows in (self.u, *inner):
            if rows.size:
                scale = np.abs(rows * root).max(axis=0)
                if len(rows) < rows.shape[1] or not scale.min() > 0:
                    return 0.0
                values = np.linalg.svd(rows * root / scale, compute_uv=False)
                least = min(least, float(values[-1]))
        return least


class BlockPrices:
    """What a column is worth: the sum of the squares of linear forms, two per block, less a linear
    one. Above the cost of the weights, it improves them.
    """

    def __init__(
        self, tables: BlockTables, counts: Floats, told: Floats, level: Floats, price: Floats
    ) -> None:
        task = tables.task
        self.tables, self.counts, self.values = tables, counts, (told, level, price)
        root = np.sqrt(counts * task.m)
        self.told, self.level = (told * root)[task.class_of], (level * root)[task.class_of]
        self.price, self.total = price[task.class_of], float(price.sum())

    @classmethod
    def of_weights(cls, tables: BlockTables, counts: Floats, at: Weights) -> BlockPrices:
        """At the best weights of some columns."""
        task, blocks = tables.task, len(tables.task.m)
        told = np.zeros((len(task.prior), blocks))
        for b, mine in enumerate(task.inner):
            told[mine, b] = at.solved[b]
        return cls(tables, counts, told, np.stack(at.solved[blocks:], axis=1), at.price)

    def between(self, other: BlockPrices) -> BlockPrices:
        """Half of each."""
        means = ((a + b) / 2 for a, b in zip(self.values, other.values, strict=True))
        return BlockPrices(self.tables, self.counts, *means)

    def forms(self, place: Ints) -> Floats:
        """The linear forms of the densities, columns x forms x cells."""
        told = (self.tables.told[place] * self.told).transpose(0, 2, 1)
        level = np.broadcast_to(self.level.T, told.shape)
        return np.concatenate((told, level), axis=1) * self.tables.chance[place][:, None, :]

    def turns(self, columns: BlockColumns) -> Floats:
        """The values of the forms."""
        return np.einsum("nfc,nc->nf", self.forms(columns.place), columns.f)

    def scores(self, columns: BlockColumns) -> Floats:
        """What every column is worth."""
        paid = (self.tables.chance[columns.place] * columns.f) @ self.price
        return (self.turns(columns) ** 2).sum(axis=1) - paid + self.total

    def everywhere(self, f: Floats) -> Floats:
        """What every table is worth at all sizes: sizes x tables."""
        tables, prior = self.tables, self.tables.task.prior[self.tables.task.class_of]
        chance, told = tables.narrow

        def form(values: Floats) -> NDArray[np.float32]:
            return (values * f).T.astype(np.float32)

        used = chance @ form(prior)
        worth = -(chance @ form(self.price)) / used
        for b, of_block in enumerate(told):
            worth += (of_block @ form(self.told[:, b]) / used) ** 2
            worth += (chance @ form(self.level[:, b]) / used) ** 2
        return np.asarray(worth + self.total, float)


def first_tables(task: BlockTask) -> Floats:
    """Tables of two densities, which are always allowed: likelier if any own item is named, or one
    of a block, or for a class.
    """
    n, one = task.named, np.ones(len(task.cells))
    likelier = [n.sum(axis=1) > 0, *(n[:, b] > 0 for b in range(n.shape[1]))]
    for place in range(len(task.prior)):
        mine = task.class_of == place
        likelier += [mine, *(mine & which for which in likelier[: n.shape[1] + 1])]
    found = [one, *(np.where(which, task.smallest, 1.0) for which in likelier)]
    return np.unique(np.array(found), axis=0)
