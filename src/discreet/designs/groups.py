"""Groups of levels that are treated alike, and the pieces that finite budgets connect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from discreet.arrays.types import Floats, sum_by_place
from discreet.designs import boxes as boxes_
from discreet.designs import vertices
from discreet.designs.boxes import Boxes
from discreet.designs.local import MOST_LEVELS, LocalSearch
from discreet.designs.notions import CLOSED
from discreet.designs.task import Task
from discreet.errors import DesignError, MissingExtra
from discreet.policy.lazy import cached_property

FEW = 8  # groups whose columns are searched
_LEAST_SHARE = 1e-6  # of a group that nobody is expected in, so that it can be counted all the same


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every level; budgets (or pair budgets), sizes, shares and weights per group."""

    task: Task
    of_level: tuple[int, ...]

    @classmethod
    def for_task(cls, task: Task) -> Groups:
        """Group levels with the same budget, weight and share per item. Every level is its own
        group where pair budgets are not those of the levels' budgets alone.
        """
        t = len(task.sizes)
        if task.closed is None and not task.one_way:
            return cls(task, tuple(range(t)))
        acting = task.eps if task.closed is None else task.closed.acting(task.eps)
        alike = zip(
            acting.tolist(),
            task.weights.tolist(),
            np.round(task.shares / task.sizes, 12).tolist(),
            strict=True,
        )
        places: dict[tuple[float, float, float], int] = {}
        return cls(task, tuple(places.setdefault(key, len(places)) for key in alike))

    def merged(self, count: int) -> Groups:
        """At most `count` groups: neighbours in budget together, numbered as they appear. Open
        levels stay apart.
        """
        rank = np.unique(self.task.eps, return_inverse=True)[1]
        is_open = np.isinf(self.task.eps)
        finite = int(rank[~is_open].max()) + 1
        place = np.where(is_open, count, rank * count // finite)
        names: dict[int, int] = {}
        return Groups(self.task, tuple(names.setdefault(int(k), len(names)) for k in place))

    def _sum(self, values: Floats) -> Floats:
        return sum_by_place(self.of_level, values, max(self.of_level) + 1)

    @cached_property
    def sizes(self) -> Floats:
        """Number of items per group."""
        return self._sum(self.task.sizes)

    @cached_property
    def weights(self) -> Floats:
        """Mean weight of an item per group."""
        return self._sum(self.task.sizes * self.task.weights) / self.sizes

    @cached_property
    def shares(self) -> Floats:
        """Shares of the samples per group, then of empty ones for sets."""
        shares = self.with_none(self._sum(self.task.shares), self.task.empty)
        if self.task.closed is not None or self.task.policy.kind.lists:
            return shares
        positive = np.maximum(shares, _LEAST_SHARE)
        return positive / positive.sum()

    @cached_property
    def eps(self) -> Floats:
        """The smallest budget per group; with explicit pairs, the smallest of all its pairs."""
        direct = self.task.closed is not None or self.task.one_way
        of_level = self.task.eps if direct else self.task.pair_budgets.min(axis=1)
        smallest = np.full(len(self.sizes), np.inf)
        np.minimum.at(smallest, np.array(self.of_level), of_level)
        return smallest

    def with_none(self, values: Floats, of_none: float) -> Floats:
        """Values per group, and one for an empty sample where there can be one."""
        return np.append(values, of_none) if self.task.policy.kind.lists else values

    @cached_property
    def pair_budgets(self) -> Floats:
        """r of every two groups, in this order; of an empty sample the smallest of a row or
        column.
        """
        task, place = self.task, np.array(self.of_level)
        if task.closed is not None or task.one_way:  # the smallest budget of a group decides
            order = np.argsort(task.eps, kind="stable")
            first = order[np.unique(place[order], return_index=True)[1]].tolist()
            table = np.array([[task.policy.pair_epsilon(i, j) for j in first] for i in first])
        else:
            table = np.full((len(self.sizes),) * 2, np.inf)
            np.minimum.at(table, (place[:, None], place[None, :]), task.pair_budgets)
        if not self.task.policy.kind.lists:
            return table
        over, under = table.min(axis=1), table.min(axis=0)
        return np.block([[table, over[:, None]], [under[None, :], np.array([[table.min()]])]])

    # ---- pieces and boxes ------------------------------------------------------------------------

    @cached_property
    def pieces(self) -> list[list[int]]:
        """The groups that finite budgets connect: each piece is designed on its own, because its
        answers need not be hidden from those of another.
        """
        everyone = [list(range(len(self.with_none(self.sizes, 1.0))))]
        task = self.task
        if task.closed is not None or task.policy.kind.lists or task.one_way:
            return everyone
        return vertices.components(self.pair_budgets)

    @property
    def few(self) -> bool:
        """Whether the columns of every piece are searched, because there are few groups."""
        if self.task.policy.rule.ordered:
            return True
        lists = self.task.policy.kind.lists
        closed = self.task.closed is not None or self.task.one_way or lists
        return max(map(len, self.pieces)) - lists <= (FEW if closed else MOST_LEVELS)

    @property
    def misses_boxes(self) -> bool:
        """Whether some boxes are not enumerated: explicit pairs of too many levels."""
        task = self.task
        if task.closed is not None or task.one_way or task.policy.rule.ordered:
            return False
        if task.policy.kind.lists:
            return len(self.pair_budgets) > boxes_.MOST_WITH_PAIRS
        return any(self.boxes(0.0, piece).note == _MISSED for piece in self.pieces)

    def boxes(self, shrink: float, piece: list[int], lone: bool = True) -> Boxes:
        """The boxes of a piece's columns at budgets shrunk by a share. An empty sample is a group
        of its own. Without `lone`, an item that is alone in its group is treated as one of several:
        where items are named independently, it must speak for itself.
        """
        task = self.task
        if task.closed is not None:
            eps = self.with_none(self.eps, self.eps.min())
            return boxes_.boxes_for_budgets(eps * (1 - shrink), task.closed)
        if task.one_way:
            return boxes_.one_way_boxes(self.eps * (1 - shrink))
        r = self.pair_budgets[np.ix_(piece, piece)]
        if task.policy.kind.lists:
            few, r = len(r) <= boxes_.MOST_WITH_PAIRS, r * (1 - shrink)
            return boxes_.boxes_for_pairs(r) if few else self._some_boxes(r, piece)
        whole = self._whole_boxes(tuple(piece), lone) or self._found_boxes(tuple(piece), lone)
        return replace(whole, H=whole.H ** (1 - shrink), L=whole.L ** (1 - shrink))

    @lru_cache(64)  # noqa: B019 (they take seconds, and the groups of a design are few)
    def _whole_boxes(self, piece: tuple[int, ...], lone: bool) -> Boxes | None:
        """All boxes at the whole budgets, whose logarithms shrink as the budgets do."""
        policy = self.task.policy
        if policy.rule.ordered:
            return boxes_.scale_boxes(policy.m, self.task.smallest, policy.cap)
        sizes = self.sizes[list(piece)] if lone else np.maximum(self.sizes[list(piece)], 2)
        if not vertices.few_enough(sizes):
            return None
        return vertices.all_boxes(self.pair_budgets[np.ix_(piece, piece)], sizes)

    def _some_boxes(self, r: Floats, piece: list[int]) -> Boxes:
        """Some boxes for many levels of sets with explicit pairs: those of `min` at every level's
        smallest pair, and opt0's.
        """
        r, _ = boxes_.bounded(r)
        smallest = np.minimum(r.min(axis=1), r.min(axis=0))
        of_min = boxes_.boxes_for_budgets(smallest, CLOSED["min"])
        try:
            from discreet.designs import program

            sizes = np.append(self.sizes, 1)[piece]
            u, w = program.solve(r, sizes, "opt0")
        except (MissingExtra, DesignError):
            return replace(of_min, note=_MISSED)
        H, L = np.vstack((of_min.H, np.exp(u))), np.vstack((of_min.L, np.exp(-w)))
        return Boxes(H, L, _MISSED)

    @lru_cache(64)  # noqa: B019 (they take seconds)
    def _found_boxes(self, piece: tuple[int, ...], lone: bool) -> Boxes:
        """The boxes that a local search finds for many levels with explicit pairs."""
        of = list(piece)
        sizes = self.sizes[of] if lone else np.maximum(self.sizes[of], 2)
        shares = self.shares[of] / self.shares[of].sum()
        r = self.pair_budgets[np.ix_(of, of)]
        return replace(LocalSearch(r, sizes, shares, self.weights[of]).boxes(), note=_MISSED)


_MISSED = f"explicit pairs of more than {vertices.MOST_LEVELS} levels"
