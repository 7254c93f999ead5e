"""The search for picks of several levels (block_columns.py): columns until none improves the
weights. What is found depends on the last bits of the linear algebra; the exact check judges it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays.types import Bools, Floats, Ints
from discreet.designs.block_columns import (
    BlockColumns,
    BlockPrices,
    BlockProgram,
    BlockTables,
    BlockTask,
    first_tables,
)

ROUNDS = 110
_SOON = 10  # classes up to which two searches are tried: one may end beside the best
_TOLERANCE = 2e-4  # of the cost, that a round must gain
_NEAR, _ODD = 11, 9  # candidates per round: near tables in use, and in random directions
_STALLS = 3  # rounds with many more random directions before the search ends
_LOSS = 3e-4  # of the cost, for fewer columns
_TOLD = 1e-3  # scaled singular value below which columns are added that tell the classes apart
_STEPS = 30  # of the interior point of candidates
_TRIES, _WEIGHED = 6, 40  # of how much the blocks count, with new columns, and at last without
_TURN, _FURTHEST = 4.0, 16.0  # how much more a block counts whose cost is above its limit
_BELOW = 1e-3  # of a limit, that is aimed for: rounding may add to it


@dataclass(frozen=True, eq=False)
class BlockDesign:
    """Columns with their weights, and the total of the squared scores, as the blocks count."""

    columns: BlockColumns
    mu: Floats
    cost: float
    counts: Floats
    least: Floats | float = 0.0  # of the weights

    def total(self) -> float:
        """The total of the squared scores, if all items count alike."""
        return float(self.again(self.counts)[1].sum())

    def again(self, counts: Floats) -> tuple[BlockDesign, Floats]:
        """The same columns with the best weights, and the costs of the blocks, if these count so
        much.
        """
        at = self.columns.weigh(counts, self.mu - self.least, least=self.least)
        found = replace(self, mu=at.mu, cost=at.cost, counts=counts)
        return found, self.columns.costs(at)


def best_blocks(
    task: BlockTask, fits: int | None = None, limits: Floats | None = None, rounds: int = ROUNDS
) -> BlockDesign:
    """Search columns, in so many rounds; `fits` is the most bytes of the subsets, `limits` what the
    squared scores of the items of every block may be in all. Blocks above it count more, until
    they are below it.
    """
    tables = BlockTables(BlockProgram(task), task.grid(fits))
    seeds = (1, 2) if len(task.prior) <= _SOON else (1,)
    found = [_searched(_BlockSearch(tables, seed), limits, rounds) for seed in seeds]
    return min(found, key=BlockDesign.total)


def _searched(search: _BlockSearch, limits: Floats | None, rounds: int) -> BlockDesign:
    if limits is None:
        search.run(rounds)
        return _told_apart(_fewer(search.found()))
    search.run(rounds // 2)
    for _ in range(_TRIES):
        counts = _turned(search.counts, search.costs() / limits)
        if np.allclose(counts, search.counts, rtol=_TURN * _BELOW):
            break
        search.counts = counts
        search.run(rounds // 8, 0.0)
    return _within(_told_apart(_fewer(search.found())), limits)


def _turned(counts: Floats, over: Floats) -> Floats:
    """How much the blocks count next, where their costs are these shares of their limits."""
    turned = np.clip((over / (1 - _BELOW)) ** _TURN, 1 / _FURTHEST, _FURTHEST)
    return np.maximum(1.0, counts * turned)


def _within(found: BlockDesign, limits: Floats) -> BlockDesign:
    """The same columns, weighed such that all blocks are within their limits."""
    for _ in range(_WEIGHED):
        found, costs = found.again(found.counts)
        counts = _turned(found.counts, costs / limits)
        if (costs <= limits).all() and np.allclose(counts, found.counts, rtol=_BELOW):
            break
        found = replace(found, counts=counts)
    return found


class _BlockSearch:
    """The columns so far, their weights, and how much the blocks count."""

    def __init__(self, tables: BlockTables, seed: int) -> None:
        self.tables, self.task = tables, tables.task
        self.counts = np.ones(len(self.task.m))
        self.rng = np.random.default_rng(seed)
        self.first = first_tables(self.task)
        root = 1 + math.sqrt(self.task.smallest)
        few = sorted({tables.nearest(share / root) for share in (0.15, 0.5, 1.0)})
        f = np.tile(self.first, (len(few), 1))
        self.columns = BlockColumns.scaled(tables, np.repeat(few, len(self.first)), f)
        self.mu = np.full(len(f), 1 / len(f))

    def found(self) -> BlockDesign:
        """What has been found."""
        at = self.columns.weigh(self.counts, self.mu)
        return BlockDesign(self.columns, at.mu, at.cost, self.counts)

    def costs(self) -> Floats:
        """The squared scores of the items of every block."""
        return self.columns.costs(self.columns.weigh(self.counts, self.mu))

    def run(self, rounds: int, ridge: float = 0.03) -> None:
        """Alternate between the best weights and the best new columns; the ridge goes to 0. Where
        no column is better, more random directions are tried before it ends.
        """
        task, since, stalls, odd, rough = self.task, 0, 0, _ODD, ridge > 0
        unit = 0.5 * task.s / math.sinh(math.log(task.R.max()) / 2) ** 2
        smooth, before, costs, best = None, math.inf, list[float](), math.inf
        for step in range(rounds):
            at = self.columns.weigh(self.counts, self.mu, ridge, unit, 1e-4 if ridge else 1e-8)
            self.mu, cost = at.mu, at.cost
            now = BlockPrices.of_weights(self.tables, self.counts, at)
            steady = smooth is not None and cost < 1.5 * before
            smooth = smooth.between(now) if smooth is not None and steady else now
            before = cost
            new = self._candidates(smooth, odd, step < 6, 1e-3 if rough else 1e-6)
            worth = now.scores(new)
            top = float(worth.max(initial=-math.inf))
            rough = ridge > 0 and top > 1.1 * cost
            if not ridge:
                costs.append(cost)
                slow = len(costs) > 8 and costs[-9] < cost * (1 + _TOLERANCE)
                gained = cost < best * (1 - _TOLERANCE)
                if top <= cost * (1 + _TOLERANCE) or slow:
                    stalls = 1 if gained else stalls + 1
                    best, odd = cost, 4 * _ODD
                    if stalls > _STALLS:
                        break
                elif stalls and gained:
                    stalls, best, costs = 0, cost, [cost]
                elif not stalls:
                    odd = _ODD
            since, unit = since + 1, cost / sum(task.m)
            if top < 1.5 * cost or since >= 12:
                ridge /= 8 if top < 1.02 * cost else 4 if top < 1.2 * cost else 2
                since = 0
            if step > 0.6 * rounds:
                ridge /= 8
            ridge = 0.0 if ridge < 1e-7 else ridge
            self._replace(new, worth, cost, step)

    def _candidates(self, prices: BlockPrices, odd: int, first: bool, goal: float) -> BlockColumns:
        """The best columns near tables in use at the sizes where these are worth most, and near the
        directions of columns in use with random signs.
        """
        heavy = np.argsort(-self.mu)[:60]
        heavy = heavy[self.mu[heavy] > 1e-4]
        used = self.columns.take(heavy)
        tables = np.concatenate((used.f, self.first)) if first else used.f
        place, which = self._promising(prices.everywhere(tables))
        near = prices.turns(BlockColumns.scaled(self.tables, place, tables[which]))
        chosen = self.rng.integers(len(heavy), size=odd)
        anywhere = self.rng.integers(len(self.tables.sizes), size=odd)
        there = np.where(self.rng.random(odd) < 0.5, used.place[chosen], anywhere)
        turn = prices.turns(used)[chosen]
        turn = turn * np.where(self.rng.random(turn.shape) < 0.3, -1, 1)
        turn = turn * np.exp(0.5 * self.rng.normal(size=turn.shape))
        place, turns = np.append(place, there), np.concatenate((near, turn))
        f = best_near(prices, place, turns, goal)
        kept = self.tables.keeps(place, f)
        return BlockColumns.scaled(self.tables, place[kept], f[kept])

    @staticmethod
    def _promising(worth: Floats) -> tuple[Ints, Ints]:
        """Where to begin: the best table of the best sizes, then what is worth most, but no table
        more than three times.
        """
        best = np.argsort(-worth.max(axis=1))[: (_NEAR + _ODD) // 2]
        found = dict.fromkeys((int(a), int(worth[a].argmax())) for a in best)
        times: dict[int, int] = {}
        for i in np.argsort(-worth, axis=None)[: 8 * (_NEAR + _ODD)].tolist():
            a, which = divmod(i, worth.shape[1])
            if len(found) >= _NEAR:
                break
            if (a, which) not in found and times.get(which, 0) < 3:
                times[which] = times.get(which, 0) + 1
                found[a, which] = None
        place, tables = np.array(list(found)).T
        return place, tables

    def _replace(self, new: BlockColumns, worth: Floats, cost: float, step: int) -> None:
        """Drop columns without weight, and add the new ones that are worth it."""
        keep = self.mu > (1e-6 if step > 2 else 1e-9)
        if keep.sum() > 2:
            self.columns, self.mu = self.columns.take(keep), self.mu[keep]
        different: dict[tuple[int, float], int] = {}
        for i in np.argsort(-worth).tolist():
            if worth[i] > cost * (1 + 1e-7):
                key = int(new.place[i]), round(float(worth[i] / cost), 6)
                different.setdefault(key, i)
        if different:
            self.columns = self.columns.plus(new.take(np.array(list(different.values()))))
            self.mu = np.append(self.mu, np.full(len(different), 1e-3))


def best_near(
    prices: BlockPrices, place: Ints, turns: Floats, goal: float, follow: float = 0.1,
    steps: int = _STEPS,
) -> Floats:  # fmt: skip
    """The best tables at these sizes near these values of the forms: all at once, by a primal-dual
    interior point (Mehrotra). The sum of squares is followed linearly, from a relative gap of
    `follow` on by the tables themselves.
    """
    from scipy.linalg.lapack import dpotrf, dpotrs  # takes long to load

    tables, program = prices.tables, prices.tables.program
    A, count = program.A, len(place)
    forms, there, rows = prices.forms(place), tables.exists[place], tables.in_force[place]
    N, of_rows = A.shape[1], rows.sum(axis=1)
    paid, norm = tables.chance[place] * prices.price, np.zeros((count, N))
    norm[:, 2:] = tables.prior[place]
    idle = np.concatenate((np.zeros((count, 2)), ~there), axis=1)

    def objective(turns: Floats) -> Floats:
        values = 2 * np.einsum("nf,nfc->nc", turns, forms) - paid
        return np.concatenate((np.zeros((count, 2)), values), axis=1)

    x = np.ones((count, N))
    spread = tables.task.smallest**0.45
    x[:, 0], x[:, 1] = 1 / spread, spread
    worth, gap = objective(turns), np.ones(count)
    slack = np.where(rows, (A @ x.T).T, 1.0)
    scale = (np.abs(worth).sum(axis=1) + 1e-30) / of_rows
    dual = np.where(rows, 0.1 * scale[:, None] / slack, 0.0)
    for step in range(steps):
        if step >= 3:
            now = np.einsum("nfc,nc->nf", forms, x[:, 2:])
            turns = np.where((gap < follow)[:, None], now, turns)
            worth = objective(turns)
        hessian = (program.squares @ (dual / slack).T).T.reshape(count, N, N)
        diagonal = hessian[:, np.arange(N), np.arange(N)]
        hessian[:, np.arange(N), np.arange(N)] += idle + 1e-12 * diagonal
        factors = [dpotrf(one.T, 1, 0, 1)[0] for one in hessian]

        def solved(values: Floats, factors: list[Floats] = factors) -> Floats:
            return np.array([dpotrs(L, row, 1)[0] for L, row in zip(factors, values, strict=True)])

        along = solved(norm)
        length = (norm * along).sum(axis=1)

        def move(
            aim: Floats, along: Floats = along, length: Floats = length, worth: Floats = worth,
            slack: Floats = slack, dual: Floats = dual,
        ) -> tuple[Floats, ...]:  # fmt: skip
            """The step towards slack * dual = aim, and how far one can go."""
            up = solved(worth + (A.T @ np.where(rows, aim / slack, 0.0).T).T)
            dx = up - ((norm * up).sum(axis=1) / length)[:, None] * along
            ds = np.where(rows, (A @ dx.T).T, 0.0)
            dz = np.where(rows, (aim - slack * dual - dual * ds) / slack, 0.0)
            lost = np.divide(-dz, dual, out=np.zeros_like(dz), where=dual > 0)
            ends = (np.maximum(y.max(axis=1), 1e-9) for y in (-ds / slack, lost))
            return dx, ds, dz, *(np.minimum(1, 0.98 / y)[:, None] for y in ends)

        mean = (slack * dual).sum(axis=1) / of_rows
        _, ds, dz, far, deep = move(np.zeros_like(slack))
        ahead = ((slack + far * ds) * (dual + deep * dz)).sum(axis=1) / of_rows
        aim = np.clip(ahead / mean, 1e-4, 1) ** 3 * mean
        dx, ds, dz, far, deep = move(np.where(rows, aim[:, None] - ds * dz, 0.0))
        x = x + far * dx
        slack, dual = np.where(rows, slack + far * ds, 1.0), dual + deep * dz
        gap = (slack * dual).sum(axis=1) / np.abs((worth * x).sum(axis=1))
        if step > 8 and np.median(gap) < goal:
            break
    return np.where(there, x[:, 2:], 1.0)


def _fewer(found: BlockDesign) -> BlockDesign:
    """Fewer columns at next to no loss: each is made exact at the prices in the end, equal ones are
    joined, and those that matter least go.
    """
    tables = found.columns.tables
    kept = found.mu > 1e-5
    columns = found.columns.take(kept)
    at = columns.weigh(found.counts, found.mu[kept])
    prices = BlockPrices.of_weights(tables, found.counts, at)
    turns = prices.turns(columns)
    f = best_near(prices, columns.place, turns, 1e-11, follow=0.0, steps=45)
    good = tables.keeps(columns.place, f)
    exact = BlockColumns.scaled(tables, columns.place, np.where(good[:, None], f, columns.f))
    again = exact.weigh(found.counts, at.mu)
    if again.cost > at.cost * 1.0005:
        exact = exact.plus(columns)
        again = exact.weigh(found.counts, np.append(again.mu, at.mu))
    which, mu = _different(exact, again.mu)
    best = replace(found, columns=exact.take(which), mu=mu, cost=again.cost)
    limit = min(at.cost, again.cost) * (1 + _LOSS)
    for least in (1e-6, 1e-5, 1e-4, 3e-4, 6e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2):
        heavy = best.mu > least
        if heavy.all() or heavy.sum() < len(tables.task.prior):
            continue
        some = best.columns.take(heavy)
        try:
            new = some.weigh(found.counts, best.mu[heavy])
        except np.linalg.LinAlgError:  # the rest does not tell all classes apart
            break
        whole = np.abs(new.mu @ some.u - 1).max() < 1e-9
        if new.cost > limit or not whole or some.least_told(new.mu) < 0.3 * _TOLD:
            break
        best = replace(found, columns=some, mu=new.mu, cost=new.cost)
    return best


def _different(columns: BlockColumns, mu: Floats) -> tuple[Ints, Floats]:
    """The heaviest of columns that are equal, with the weight of all of them."""
    there = columns.tables.exists[columns.place]
    low = np.where(there, columns.f, np.inf).min(axis=1)[:, None]
    shape = np.round(np.where(there, columns.f / low, 0.0), 5)
    equal: dict[tuple[int, bytes], list[int]] = {}
    for i in np.argsort(-mu).tolist():
        equal.setdefault((int(columns.place[i]), shape[i].tobytes()), []).append(i)
    first = np.array([mine[0] for mine in equal.values()])
    return first, np.array([mu[mine].sum() for mine in equal.values()])


def _told_apart(found: BlockDesign) -> BlockDesign:
    """With columns of little weight, per class and block, where the others alone hardly tell all
    classes apart: then the decoder exists after rounding, too.
    """
    if found.columns.least_told(found.mu) >= _TOLD:
        return found
    tables, task = found.columns.tables, found.columns.tables.task
    place = tables.nearest(0.25, 1)
    blocks = [task.named[:, b] > 0 for b in range(len(task.m)) if tables.sizes[place, b]]
    likelier: list[Bools] = list(blocks)
    for mine in (task.class_of == c for c in range(len(task.prior))):
        likelier += [mine, *(mine & which for which in blocks if (mine & which).any())]
    f = np.array([np.where(which, task.smallest, 1.0) for which in likelier])
    more = BlockColumns.scaled(tables, np.full(len(f), place), f)
    both = found.columns.plus(more)
    least = np.append(np.zeros(len(found.mu)), np.full(len(f), 5e-5))
    mu = np.append(found.mu, np.full(len(f), 1e-6)) + least
    return replace(found, columns=both, mu=mu, least=least).again(found.counts)[0]
