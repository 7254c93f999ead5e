"""The search of one cut of picks: columns until none improves the weights (set_columns.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from discreet.arrays.types import Floats, Ints
from discreet.designs.set_columns import (
    CutColumns,
    CutTask,
    ShareProgram,
    Tables,
    Weighed,
    keeps_others,
    price,
    scores,
    weigh,
)

ROUNDS, _TOLERANCE = 80, 1e-4
_LOSS = 2e-4  # of the cost, for fewer columns
_TOLD = 1e-3  # scaled singular value below which columns are added that tell the classes apart
_POOL = 60  # columns beyond the first that are kept


@dataclass(frozen=True, eq=False)
class CutDesign:
    """The columns of a cut with their weights, and the total of the squared scores."""

    task: CutTask
    sizes: Ints
    f: Floats
    mu: Floats
    cost: float


def best_cut(task: CutTask, fits: int | None = None, rounds: int = ROUNDS) -> CutDesign:
    """Search the columns of a cut, in so many rounds; `fits` is the most bytes of a subset, if they
    are limited.
    """
    best = privset(task.m, task.s, task.smallest)
    tables = Tables.for_sizes(task, _sizes(task, best, fits))
    search = _Search(tables, best)
    weighed = search.run(rounds)
    kept = _with_all_classes(tables, *_fewer(weighed))
    columns, at = kept
    return CutDesign(task, tables.sizes[columns.place], columns.f, at.mu, at.cost)


def subset_bytes(m: int, k: int) -> int:
    """Bytes of a subset of k of m items (encodings/picks.py)."""
    return min(-(-m // 8), -(-k * (m - 1).bit_length() // 8))


def privset(m: int, s: int, factor: float) -> int:
    """The best size of a subset of m items and s dummies that is likelier by a factor if it names
    any own item or dummy (PrivSet, Wang et al. 2018): a good place to begin.
    """
    errors = []
    for k in range(1, m):
        miss = comb(m, k) / comb(m + s, k)
        named = factor * k * s / (m + s) / (factor - (factor - 1) * miss)
        a, b = named / s, (k - named) / m
        if a > b:
            errors.append(((s * a * (1 - a) + (m - s) * b * (1 - b)) / (a - b) ** 2, k))
    return min(errors)[1] if errors else 1


def _sizes(task: CutTask, best: int, fits: int | None) -> list[int]:
    """The sizes that are tried; 0 names nothing, and only its chance speaks."""
    m = task.m
    if m == 1:
        return [0]
    top = max(3, math.ceil(m / (1 + math.sqrt(task.smallest))))
    some = (*range(1, 26), *np.geomspace(26, max(27, top), 12))
    sizes = {min(m - 1, round(k)) for k in some if k <= top}
    sizes |= set(range(max(0, best - task.s), min(best, m - 1) + 1))
    return sorted({0} | {k for k in sizes if fits is None or subset_bytes(m, k) <= fits})


class _Search:
    """The columns so far, their weights, and where they came from."""

    def __init__(self, tables: Tables, best: int) -> None:
        self.tables, self.task, self.best = tables, tables.task, best
        self.programs: dict[int, ShareProgram] = {}
        self.rng = np.random.default_rng(1)
        place, f = zip(*self._start(), strict=True)
        self.columns = CutColumns.scaled(tables, np.array(place), np.array(f))
        self.first = len(place)
        self.mu = np.full(self.first, 1 / self.first)

    def _start(self) -> list[tuple[int, Floats]]:
        """CutColumns of one class, columns of any hit, and PrivSet with its dummies left out."""
        task, J, count = self.task, self.task.J, len(self.tables.sizes)
        one = np.ones((J + 1, J + 1))
        j, n = np.arange(J + 1)[:, None], np.arange(J + 1)[None, :]
        sizes = self.tables.sizes.tolist()
        near = min(range(count), key=lambda a: abs(sizes[a] - max(1, self.best)))
        few = ({1, 3, 6, 12, count - 1} if J < 8 else {near, count - 1}) - {0}
        columns = [(0, one)]
        for a in sorted(x for x in few if x < count) or [0]:
            for spread in (task.spreads[0], task.spreads[-1]):
                ends = [tuple(x[:, None] for x in task.bounds(float(spread)))]
                ends.append(ends[0])
                if task.out is not None:  # mild ones, which hold whatever other items do
                    ends.append((one, one * min(task.out, task.smallest)))
                for low, high in ends[1:]:
                    columns.append((a, np.where(n > 0, high, low) * one))
                    for c in range(J + 1):
                        columns.append((a, np.where(j == c, high, low) * one))
                        if c:
                            columns.append((a, np.where((j == c) & (n > 0), high, low) * one))
        for a, k in enumerate(sizes):
            if 0 <= self.best - k <= task.s:
                dummies, E = self.best - k, task.smallest
                missed = [comb(c, dummies) / comb(task.s, dummies) for c in range(J + 1)]
                level = 1 + (E - 1) * (1 - np.array(missed))[:, None]
                columns.append((a, np.where(n > 0, E, level) * one))
        return [(a, f) for a, f in columns if keeps_others(task, f, self.tables.chance[a])]

    def run(self, rounds: int) -> tuple[CutColumns, Weighed]:
        """Alternate between the best weights and the best new columns; the ridge goes to 0."""
        task = self.task
        ridge, last = 0.03, False
        unit = 0.5 * task.s / math.sinh(math.log(task.R.max()) / 2) ** 2
        for _ in range(rounds):
            at = weigh(self.columns, self.mu, ridge, unit, 1e-5 if ridge else 1e-8)
            new = self._better(at)
            worth = scores(new, at)
            top = float(worth.max())
            if not ridge and (top <= at.cost * (1 + _TOLERANCE) or last):
                break
            ridge /= 8 if top < 1.02 * at.cost else 4 if top < 1.2 * at.cost else 2
            ridge = 0.0 if ridge < 1e-7 else ridge
            unit = at.cost / task.m
            self._replace(at, new.take(worth > at.cost * (1 + 1e-7)))
        else:
            at = weigh(self.columns, self.mu)
            return self.columns, at
        if ridge:
            at = weigh(self.columns, at.mu)
        return self.columns, at

    def _replace(self, at: Weighed, new: CutColumns) -> None:
        """Drop columns without weight, and add the new ones."""
        self.mu = at.mu
        if len(at.mu) > self.first + _POOL:
            keep = (at.mu > 1e-6) | (np.arange(len(at.mu)) < self.first)
            self.columns, self.mu = self.columns.take(keep), at.mu[keep]
        self.columns = self.columns.plus(new)
        self.mu = np.append(self.mu, np.full(len(new.place), 1e-3))

    def _better(self, at: Weighed) -> CutColumns:
        """The best columns near the directions of the heaviest ones and near one at random."""
        m = self.task.m
        forms = np.stack(
            (math.sqrt(m) * self.columns.x @ at.told, math.sqrt(m) * self.columns.u @ at.level), 1
        )
        heavy = np.argsort(-at.mu)[:3]
        chance = self.rng.normal(size=2) * np.abs(forms[heavy[0]]).max()
        candidates: list[tuple[float, int, Floats]] = []
        for start in (*forms[heavy], chance):
            score, f = price(self.tables, at, start)
            best = np.unravel_index(np.argsort(-score, axis=None)[:8], score.shape)
            candidates += [
                (float(score[a, b]), int(a), f[a, b]) for a, b in zip(*best, strict=True)
            ]
        candidates.sort(key=lambda row: -row[0])
        different: dict[tuple[int, float], tuple[int, Floats]] = {}
        for score_, a, column in candidates:
            different.setdefault((a, round(score_ / at.cost, 7)), (a, column))
        best_ones = list(different.values())[:12]
        place = np.array([a for a, _ in best_ones])
        f = np.array([self._repaired(at, a, column) for a, column in best_ones])
        return CutColumns.scaled(self.tables, place, f)

    def _repaired(self, at: Weighed, a: int, f: Floats) -> Floats:
        """The column, or one that keeps the factor of other items, near the same directions."""
        task, chance = self.task, self.tables.chance[a]
        if keeps_others(task, f, chance):
            return f
        if a not in self.programs:
            self.programs[a] = ShareProgram(task, chance)
        told = math.sqrt(task.m / self.tables.noise[a]) * at.told[:, None] * self.tables.told[a]
        level = math.sqrt(task.m) * at.level[:, None]
        for _ in range(3):
            first, second = float((chance * f * told).sum()), float((chance * f * level).sum())
            form = 2 * first * told + 2 * second * level - at.price[:, None]
            new = self.programs[a].best(form)
            if new is None:
                break
            f = new
        return f if keeps_others(task, f, chance) else np.ones_like(f)


def _fewer(weighed: tuple[CutColumns, Weighed]) -> tuple[CutColumns, Weighed]:
    """Fewer columns at next to no loss: equal ones are joined, and those that matter least go."""
    columns, at = weighed
    mu, first = at.mu.copy(), dict[tuple[int, bytes], int]()
    for i in np.argsort(-mu).tolist():
        key = (int(columns.place[i]), np.round(columns.f[i], 8).tobytes())
        other = first.setdefault(key, i)
        if other != i:
            mu[other], mu[i] = mu[other] + mu[i], 0.0
    best = np.flatnonzero(mu > 1e-6)
    weights, value = mu[best], at.cost
    for least in (1e-6, 1e-5, 1e-4, 5e-4, 2e-3, 5e-3, 1e-2):
        kept = best[weights > least]
        if len(kept) < 2 or len(kept) == len(best):
            continue
        some = columns.take(kept)
        try:
            new = weigh(some, mu[kept])
        except np.linalg.LinAlgError:  # the rest does not tell all classes apart
            continue
        if new.cost > at.cost * (1 + _LOSS) or np.abs(new.mu @ some.u - 1).max() > 1e-9:
            continue
        best, weights, value = kept, new.mu, new.cost
    return columns.take(best), replace(at, mu=weights, cost=value)


def _with_all_classes(
    tables: Tables, columns: CutColumns, at: Weighed
) -> tuple[CutColumns, Weighed]:
    """With columns of little weight, one per class, where the others alone do not tell all classes
    apart: then the decoder exists after rounding, too.
    """
    task = tables.task
    root = np.sqrt(at.mu)[:, None]
    if all(_full(x * root) for x in (columns.u, columns.x[:, task.inner])):
        return columns, at
    J, a = task.J, int(columns.place[at.mu.argmax()])
    j, n = np.arange(J + 1)[:, None], np.arange(J + 1)[None, :]
    top = min(task.smallest, task.out or task.smallest, float(task.R.min()))
    f = np.array([np.where((j == c) & ((n > 0) | (j == 0)), top, 1.0) for c in range(J + 1)])
    both = columns.plus(CutColumns.scaled(tables, np.full(len(f), a), f))
    least = np.append(np.zeros(len(at.mu)), np.full(len(f), 1e-4))
    return both, weigh(both, np.append(at.mu, np.full(len(f), 1e-6)), least=least)


def _full(A: Floats) -> bool:
    if not A.size:
        return True
    if len(A) < A.shape[1] or not np.abs(A).max(axis=0).min() > 0:
        return False
    values = np.linalg.svd(A / np.abs(A).max(axis=0), compute_uv=False)
    return bool(values[-1] > _TOLD)
