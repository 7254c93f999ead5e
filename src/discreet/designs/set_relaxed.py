"""What any column of a mechanism for sets can tell at most, and a lower bound of every mechanism
from it (docs/researcher.md, "How far sets are from the best possible").

People are told apart by their class: how many items of every level they have. Of a column, u_c is
the mean chance in class c, and a_lc how much it tells of the items of level l there. With the box
[low, high] of the chances in a class, sum_l (a_lc / spread_lc)^2 <= (high - u)(u - low). For any
prices phi, psi (per class and level) and nu (per class) whose psi and nu sum to 0,

    MSE / n >= N^2 / M + sum_l ((E j_l)^2 / m_l - E j_l),   N = sum phi within + psi j,
    M >= sum_l ((phi_l a_l)^2 + m_l (psi_l u)^2) - nu u     for every column of mean 1.

The prices hold the classes' shares. M is proved for all columns at once: the largest value in a
direction tau is the root of a function of one variable, and is convex in tau; so boxes of
directions are parted until their corners bound them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.arrays.types import Bools, Floats, Ints
from discreet.policy.lazy import cached_property

_CLIMB, _NEWTON, _BISECT = 200, 60, 60
_SAFE = 1e-11  # relative, added to every root; more until it is seen to be above
_PRECISE = 1e-3  # how near a proof comes to the largest score that is met
_POINTS = 200_000  # corners that are looked at in a box of chances
_CORNERS = 20_000  # at once


@dataclass(frozen=True, eq=False)
class ClassPrices:
    """What the classes' places are worth: per class and level phi and psi, per class nu."""

    phi: Floats
    psi: Floats
    nu: Floats


@dataclass(frozen=True, eq=False)
class ClassColumns:
    """Columns of mean 1: the chance of every class, and what is told of the levels' items in it."""

    u: Floats  # columns x classes
    told: Floats  # columns x classes x levels

    def take(self, which: Ints | Bools) -> ClassColumns:
        """Some of them."""
        return ClassColumns(self.u[which], self.told[which])

    def plus(self, other: ClassColumns) -> ClassColumns:
        """And others."""
        return ClassColumns(np.append(self.u, other.u, 0), np.append(self.told, other.told, 0))


@dataclass(frozen=True, eq=False)
class ClassBox:
    """The chances that a column can have in every class, if its smallest is 1."""

    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """Of every class."""
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Floats:
        """Of every class."""
        return (self.high - self.low) / 2


class Relaxed:
    """The problem for levels of so many items and such budgets, and shares of people with 0, 1, …
    items (any of them, equally likely).
    """

    def __init__(self, items: Sequence[int], budgets: Sequence[float], sizes: Floats) -> None:
        s, every = len(sizes) - 1, sum(items)
        classes = [
            c
            for c in itertools.product(*(range(min(s, m) + 1) for m in items))
            if sum(c) <= s and sizes[sum(c)] > 0
        ]
        ways = [math.prod(map(comb, items, c)) / comb(every, sum(c)) for c in classes]
        held = np.array(classes, float)
        number = held.sum(axis=1)
        factors = np.exp(np.array(budgets, float))
        self.items = np.array(items, float)
        self.shares = np.array(ways) * sizes[number.astype(int)]
        self.smallest = float(factors.min())
        self.factors = (held @ factors + (s - number) * self.smallest) / s  # of every class
        self.within = held * (1 - held / self.items)
        self.spread = np.sqrt(self.within / np.maximum(self.items - 1, 1))
        self.mean = self.shares @ held
        self.beside = held - self.mean

    @cached_property
    def boxes(self) -> tuple[ClassBox, ...]:
        """Those that matter: between two of them columns are mixtures."""
        most = self.smallest**2
        spreads = {float(e) for e in self.factors if e < most * (1 - 1e-12)} | {most}
        return tuple(
            ClassBox(np.maximum(1, S / self.factors), np.minimum(S, self.factors))
            for S in sorted(spreads)
        )

    def directions(self, prices: ClassPrices, columns: ClassColumns) -> tuple[Floats, Floats]:
        """In which directions columns are worth what they are worth."""
        phi, psi = prices.phi, prices.psi
        return (
            np.einsum("ncl,cl->nl", columns.told, phi),
            np.sqrt(self.items) * (columns.u @ psi),
        )

    def scores(self, prices: ClassPrices, columns: ClassColumns) -> Floats:
        """What every column is worth."""
        tau, other = self.directions(prices, columns)
        return (tau**2).sum(axis=1) + (other**2).sum(axis=1) - columns.u @ prices.nu

    def lower_bound(self, prices: ClassPrices, most: float) -> float:
        """Of the MSE / n of every mechanism, if no column is worth more than `most`."""
        gain = float((prices.phi * self.within).sum() + (prices.psi * self.beside).sum())
        return gain * abs(gain) / most + float((self.mean**2 / self.items - self.mean).sum())

    def centred(self, prices: ClassPrices) -> ClassPrices:
        """The same with psi and nu that sum to 0, as the bound needs them."""
        share = self.shares
        return ClassPrices(
            prices.phi,
            prices.psi - share[:, None] * prices.psi.sum(axis=0),
            prices.nu - share * prices.nu.sum(),
        )

    # ---- the best columns ----

    def along(self, prices: ClassPrices, box: ClassBox, tau: Floats, other: Floats) -> ClassColumns:
        """The best column in every direction."""
        gain, cost = self._linear(prices, tau, other)
        root = self._root(box, gain, cost)
        x = root[:, None] * self.shares + cost
        length = np.sqrt(4 * gain + x * x)
        length = np.where(length > 0, length, 1)
        u = box.middle - box.radius * x / length
        told = (2 * box.radius / length)[:, :, None] * tau[:, None, :] * prices.phi * self.spread**2
        mean = u @ self.shares
        return ClassColumns(u / mean[:, None], told / mean[:, None, None])

    def climb(
        self, prices: ClassPrices, box: ClassBox, tau: Floats, other: Floats
    ) -> tuple[ClassColumns, Floats]:
        """From every direction to a column that no direction improves; with its score."""
        last = np.full(len(tau), -np.inf)
        for _ in range(_CLIMB):
            columns = self.along(prices, box, tau, other)
            score = self.scores(prices, columns)
            if (score <= last + 1e-10 * np.abs(score)).all():
                break
            last = score
            tau, other = self.directions(prices, columns)
        return columns, score

    def worth(self, prices: ClassPrices, box: ClassBox, tau: Floats, other: Floats) -> Floats:
        """The largest value of any column in every direction: never too small."""
        gain, cost = self._linear(prices, tau, other)
        root = self._root(box, gain, cost)
        margin = _SAFE * (1 + np.abs(root))
        root = root + margin
        while (short := self._excess(box, gain, cost, root) > 0).any():
            margin = np.where(short, 4 * margin, margin)
            root = np.where(short, root + margin, root)
        return root

    def _linear(self, prices: ClassPrices, tau: Floats, other: Floats) -> tuple[Floats, Floats]:
        gain = tau**2 @ ((prices.phi * self.spread) ** 2).T
        cost = prices.nu - 2 * (other * np.sqrt(self.items)) @ prices.psi.T
        return gain, cost

    def _excess(self, box: ClassBox, gain: Floats, cost: Floats, root: Floats) -> Floats:
        """Positive where a column is worth more than the root."""
        x = root[:, None] * self.shares + cost
        excess: Floats = np.sqrt(4 * gain + x * x) @ box.radius - x @ box.middle
        return excess

    def _root(self, box: ClassBox, gain: Floats, cost: Floats) -> Floats:
        """Newton's method from the left: the excess falls and is convex."""
        root = (-cost / self.shares).min(axis=1)
        for _ in range(_NEWTON):
            x = root[:, None] * self.shares + cost
            length = np.sqrt(4 * gain + x * x)
            slope = (x * self.shares / np.where(length > 0, length, 1)) @ box.radius
            slope -= box.middle @ self.shares
            step = -(length @ box.radius - x @ box.middle) / slope
            root = root + np.maximum(step, 0)
            if (step <= 1e-13 * (1 + np.abs(root))).all():
                break
        return root

    # ---- the proof ----

    def most(self, prices: ClassPrices) -> tuple[float, ClassColumns]:
        """A number that no column's score exceeds, and the best column that was met."""
        prices = self.centred(prices)
        bound, best, best_columns = 0.0, -np.inf, None
        for box in self.boxes:
            if box.radius.max() < 1e-12:
                continue
            above, at = self._best_in_box(prices, box, best)
            bound = max(bound, above)
            columns, score = self.climb(prices, box, *at)
            if score[0] > best or best_columns is None:
                best, best_columns = float(score[0]), columns
        assert best_columns is not None
        return max(bound, best), best_columns

    def _best_in_box(
        self, prices: ClassPrices, box: ClassBox, best: float
    ) -> tuple[float, tuple[Floats, Floats]]:
        """The same of one box of chances, by parting the directions."""
        t = len(self.items)
        first, side = self._ends(prices, box)
        lows, spent, bound, top = first[None], 0, -np.inf, -np.inf
        at = first
        while len(lows):
            points, place = _different(lows, side)
            value = np.concatenate(
                [
                    self.worth(prices, box, some[:, :t], some[:, t:]) - (some**2).sum(axis=1)
                    for some in np.array_split(points, 1 + len(points) // _CORNERS)
                ]
            )
            spent += len(points)
            if value.max() > top:
                top, at = float(value.max()), points[int(value.argmax())]
            above = value[place].max(axis=1) + (side**2).sum() / 4
            goal = max(best, top)
            goal += _PRECISE * abs(goal)
            open_ = above > goal
            if spent > _POINTS:
                open_[:] = False
            bound = max(bound, float(above[~open_].max(initial=-np.inf)))
            lows, side = _halved(lows[open_], side)
        return bound, (at[None, :t], at[None, t:])

    def _ends(self, prices: ClassPrices, box: ClassBox) -> tuple[Floats, Floats]:
        """Where the best column's direction lies: the low ends, and the lengths."""
        high = np.array([self._far(box, x) for x in (np.abs(prices.phi) * self.spread).T])
        other = [(self._reach(box, -x), self._reach(box, x)) for x in self._scaled(prices).T]
        ends = np.array([[0.0, x] for x in high] + [[-a, b] for a, b in other])
        return ends[:, 0], ends[:, 1] - ends[:, 0]

    def _scaled(self, prices: ClassPrices) -> Floats:
        scaled: Floats = np.sqrt(self.items) * prices.psi
        return scaled

    def _far(self, box: ClassBox, worth: Floats) -> float:
        """The largest |phi a| of a column: a root from above."""
        gain = (worth / 2)[None] ** 2
        zero = np.zeros_like(gain)
        root = self._root(box, gain, zero)
        margin = 1e-9 * (1 + root)
        while (self._excess(box, gain, zero, root + margin) > 0).any():
            margin = 4 * margin
        return float((root + margin)[0])

    def _reach(self, box: ClassBox, worth: Floats) -> float:
        """The largest mean of u worth, for a column of mean 1: at an end of every class."""
        low, high = 0.0, float(np.abs(worth / self.shares).max()) + 1e-12
        for _ in range(_BISECT):
            middle = (low + high) / 2
            rest = worth - middle * self.shares
            if np.maximum(rest * box.low, rest * box.high).sum() > 0:
                low = middle
            else:
                high = middle
        return high


def _different(lows: Floats, side: Floats) -> tuple[Floats, Ints]:
    """The corners of boxes of one size, each once, and which are those of every box."""
    unit = np.where(side > 0, side, 1)
    steps = np.rint((lows - lows.min(axis=0)) / unit).astype(np.int64)
    corners = np.array(list(itertools.product((0, 1), repeat=len(side))))
    grid = (steps[:, None, :] + corners).reshape(-1, len(side))
    some, place = np.unique(grid, axis=0, return_inverse=True)
    return lows.min(axis=0) + some * side, place.reshape(len(lows), -1)


def _halved(lows: Floats, side: Floats) -> tuple[Floats, Floats]:
    """Every box parted along its longest sides."""
    parted = side > 0.6 * side.max()
    half = np.where(parted, side / 2, side)
    moves = itertools.product(*((0, 1) if on else (0,) for on in parted))
    return (lows[:, None, :] + np.array(list(moves)) * half).reshape(-1, len(side)), half
