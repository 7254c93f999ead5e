"""All boxes for any table of ordered pair budgets (docs/researcher.md, "Any order of budgets").

The columns of a table r are the same as those of its closure d, the shortest paths between two
different answers. A column is positive on a support: with a level, every level that it has a finite
budget over. On its support the tight pairs of an extreme column connect all ends of the levels, so
that it is a spanning tree of tight pairs; trees are visited one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from discreet.arrays.types import Bools, Floats
from discreet.designs.boxes import Boxes, limited

MOST_LEVELS, MOST_LONE = 6, 9  # levels, and levels of one item each, whose boxes are enumerated
_MOST_TREES = 20_000
_SHAKE = 1e-6  # of the budgets, so that no two trees have the same values

Tree = tuple[tuple[int, int], ...]  # tight pairs: the first point is above the second
Point = tuple[int, str]  # of a level: "h" and "l" its ends, "v" a lone item, "u" its end above 0


def closure(r: Floats, sizes: Floats) -> Floats:
    """The shortest paths between two different items of every two levels; infinite within a level
    of one item.
    """
    t = len(r)
    level = np.repeat(np.arange(t), np.minimum(sizes, 2).astype(int))
    paths = r[level][:, level].copy()
    np.fill_diagonal(paths, 0.0)
    for k in range(len(level)):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k], :])
    np.fill_diagonal(paths, np.inf)
    shortest = np.full((t, t), np.inf)
    np.minimum.at(shortest, (level[:, None], level[None, :]), paths)
    return shortest


def components(r: Floats) -> list[list[int]]:
    """The levels that finite budgets connect, in either direction."""
    left, components = set(range(len(r))), []
    near = np.isfinite(r) | np.isfinite(r.T)
    while left:
        seen, todo = set(), [min(left)]
        while todo:
            k = todo.pop()
            if k not in seen:
                seen.add(k)
                todo += np.flatnonzero(near[k]).tolist()
        left -= seen
        components.append(sorted(seen))
    return components


def few_enough(sizes: Floats) -> bool:
    """Whether the boxes of so many levels can be enumerated."""
    return len(sizes) <= (MOST_LONE if (sizes == 1).all() else MOST_LEVELS)


def all_boxes(r: Floats, sizes: Floats) -> Boxes | None:
    """All boxes of a connected table; None if they are too many."""
    r, note = limited(r)
    d, rows = closure(r, sizes), []
    for support in _supports(d):
        points, budgets = _points(d, sizes, support)
        values = _vertices(budgets)
        if values is None:
            return None
        H, L = np.zeros((2, len(values), len(sizes)))
        for (level, end), column in zip(points, np.exp(values).T, strict=True):
            if end != "l":
                H[:, level] = column
            if end in "lv":
                L[:, level] = column
        rows.append(np.hstack((H, L)))
    both: Floats = np.unique(np.round(np.vstack(rows), 10), axis=0)
    return Boxes(both[:, : len(sizes)], both[:, len(sizes) :], note)


def _supports(d: Floats) -> list[Bools]:
    """Where a column can be positive: what some levels reach, if it hangs together. Of strongly
    connected levels without a way out, one at a time.
    """
    t = len(d)
    reach = np.isfinite(d) | np.eye(t, dtype=bool)
    strong = [tuple(np.flatnonzero(reach[k] & reach[:, k])) for k in range(t)]
    parts = sorted(set(strong))
    sinks = [
        part for part in parts if set(np.flatnonzero(reach[list(part)].any(axis=0))) == {*part}
    ]
    rest = [part for part in parts if part not in sinks]
    supports = {tuple(np.isin(np.arange(t), part)) for part in sinks}
    for count in range(1, len(rest) + 1):
        for chosen in combinations(rest, count):
            on: Bools = np.asarray(reach[[k for part in chosen for k in part]].any(axis=0))
            if len(components(d[np.ix_(on, on)])) == 1:
                supports.add(tuple(on))
    return [np.array(support) for support in sorted(supports)]


def _points(d: Floats, sizes: Floats, support: Bools) -> tuple[list[Point], Floats]:
    """The unknown logarithms of a support, and the largest difference of every two of them."""
    points: list[Point] = []
    for level in np.flatnonzero(support).tolist():
        if sizes[level] == 1:
            points.append((level, "v"))
        elif np.isfinite(d[support, level]).any():
            points += [(level, "h"), (level, "l")]
        else:  # nothing keeps the other items of the level from 0
            points.append((level, "u"))
    budgets = np.full((len(points),) * 2, np.inf)
    for (a, (level, end)), (b, (other, over)) in permutations(enumerate(points), 2):
        if level == other:
            budgets[a, b] = d[level, level] if end == "h" else 0.0
        elif end in "hvu" and over in "lv":
            budgets[a, b] = d[level, other]
    return points, budgets


def _vertices(budgets: Floats) -> Floats | None:
    """All values, up to a shift, whose tight pairs connect all points; None if there are too
    many. Budgets are shaken a little, so that every vertex has one tree; from each, one pair after
    the other gives way to the next that becomes tight.
    """
    n = len(budgets)
    if n == 1:
        return np.zeros((1, 1))
    noise = np.random.default_rng(1).random(budgets.shape)
    shaken = np.where(np.isfinite(budgets), budgets + _SHAKE * noise, np.inf)
    start = _first_tree(shaken)
    seen, todo, rows = {start}, [start], []
    while todo:
        tree = todo.pop()
        rows.append(_values(tree, budgets))
        for new in _neighbours(tree, shaken):
            if new not in seen:
                seen.add(new)
                todo.append(new)
        if len(seen) > _MOST_TREES:
            return None
    values = np.array(rows)
    return np.unique(np.round(values - values.min(axis=1, keepdims=True), 9), axis=0)


def _first_tree(budgets: Floats) -> Tree:
    """A tree of tight pairs, from a feasible point: what is not connected yet slides until a pair
    is tight.
    """
    n = len(budgets)
    values = _feasible(budgets)
    done, tree = np.arange(n) == 0, []
    while not done.all():
        gap = budgets - (values[:, None] - values[None, :])
        up = np.where(~done[:, None] & done, gap, np.inf)
        down = np.where(done[:, None] & ~done, gap, np.inf)
        slack, sign = (up, 1) if up.min() < np.inf else (down, -1)
        first, second = map(int, np.unravel_index(slack.argmin(), slack.shape))
        values[~done] += sign * slack[first, second]
        tree.append((first, second))
        done[[first, second]] = True
    return tuple(sorted(tree))


def _feasible(budgets: Floats) -> Floats:
    """Values whose differences keep every budget: the shortest paths to all points together."""
    values = np.zeros(len(budgets))
    for _ in budgets:
        values = np.minimum(values, (budgets + values[None, :]).min(axis=1))
    return values


def _neighbours(tree: Tree, budgets: Floats) -> Iterator[Tree]:
    values = _values(tree, budgets)
    slack = budgets - (values[:, None] - values[None, :])
    for pair in tree:
        side = _side(tree, pair, len(budgets))
        gap = np.where(~side[:, None] & side, slack, np.inf)  # this side goes down
        if gap.min() < np.inf:  # otherwise it goes down for ever: a smaller support
            first, second = map(int, np.unravel_index(gap.argmin(), gap.shape))
            yield tuple(sorted([x for x in tree if x != pair] + [(first, second)]))


def _values(tree: Tree, budgets: Floats) -> Floats:
    """The values at which these pairs are tight."""
    values = {tree[0][0]: 0.0}
    while len(values) <= len(tree):
        for a, b in tree:
            if a in values and b not in values:
                values[b] = values[a] - budgets[a, b]
            elif b in values and a not in values:
                values[a] = values[b] + budgets[a, b]
    return np.array([values[k] for k in range(len(values))])


def _side(tree: Tree, pair: tuple[int, int], n: int) -> Bools:
    """The points that hang together with the first of a pair, without it."""
    side = np.arange(n) == pair[0]
    for _ in tree:
        for a, b in tree:
            if (a, b) != pair and side[a] != side[b]:
                side[a] = side[b] = True
    return side
