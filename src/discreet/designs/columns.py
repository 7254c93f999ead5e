"""The best mixture of columns for few groups, with a lower bound on every mechanism
(docs/researcher.md, "The design and its certificate").

A column is a box and a share b_l of the items of every group l that are at the box's top. S = L + b
(H - L) is its mean chance per group, z = x S its probability at the prior x. Scaled to probability
one it informs by b (1-b) ((H-L)/z)^2 within a group and by v v', v = S sqrt(m) / z, between groups.
Over shares mu of columns with sum mu S/z = 1 for every group, the design minimises

    fixed size    f = sum_l W (m-1) / (sum mu A_l) + tr(W (sum mu v v')^-1),
                  A = m/(m-1) b(1-b) ((H-L)/z)^2
    independent   f = sum_l W m / (sum mu A_l),  A = b(1-b) ((H-L)/z)^2

which is convex; columns are generated until none improves it. The total MSE / n at the prior is f -
sum W x. For a scale, whose levels are lone items, W may be a matrix: tr(W G^-1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from discreet.arrays.types import Bools, Floats, Ints
from discreet.designs.boxes import Boxes
from discreet.designs.master import ABOVE, PENALTY, Point, Program, breaks
from discreet.policy.lazy import cached_property

MOST_PRICED = 6_000_000  # columns looked at one by one for a proof
_GAP = 1e-6  # relative gap at which the search stops
_SPARSE = 5e-6  # relative loss that fewer parts may cost
_MOST_KEPT = 120  # columns of the master
_ROUNDS = 60
_CHUNK = 200_000  # columns priced at once
_TOP = 20  # of a chunk that may become columns of the design
_NEVER = 1e-12  # a column of less probability is none


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns, a row each: the number of the box, and b of every group; for long scales the walk of
    the box (scales.py).
    """

    box: Ints
    b: Floats
    walks: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    def __getitem__(self, rows: Ints | Bools | list[int]) -> Columns:
        walks = self.walks[rows] if len(self.walks) else self.walks
        return Columns(self.box[rows], self.b[rows], walks)

    def __add__(self, other: Columns) -> Columns:
        return Columns(np.concatenate((self.box, other.box)), np.concatenate((self.b, other.b)))

    def __len__(self) -> int:
        return len(self.box)


@dataclass(frozen=True, eq=False)
class Prices:
    """The prices of a column: w per group within, Q between groups, nu for the sums over parts; and
    the errors that they are at.
    """

    w: Floats
    Q: Floats
    nu: Floats
    at: Point

    @property
    def f(self) -> float:
        """The error with the weights of the caps, which the prices are of."""
        return self.at.f

    def settled(self, scores: Floats) -> bool:
        """Whether no column improves the error by more than the gap."""
        return bool(scores.max() <= self.f + self.at.value * _GAP)

    def allowed(self, caps: Floats | None) -> float:
        """What the caps allow, by the extra weights: the best with these weights costs as much more
        as that.
        """
        extra = self.at.extra
        return 0.0 if caps is None else float(extra @ np.where(extra > 0, caps, 0.0))

    def bound(self, score: float, caps: Floats | None) -> float:
        """A lower bound of every mechanism's error within the caps, if no column scores more."""
        return self.f**2 / max(self.f, score) - self.allowed(caps)

    def cost(self, caps: Floats | None) -> float:
        """The error, and a penalty for what is above its cap."""
        over = 0.0 if caps is None else max(0.0, float((self.at.F / caps).max()) - 1 - ABOVE)
        return self.at.value * (1 + PENALTY * over)


@dataclass(frozen=True, eq=False)
class Design:
    """Columns with their shares, the total MSE / n, and a lower bound for any mechanism (None if it
    is not proved). If `capped`, some error would be above its cap without it.
    """

    columns: Columns
    shares: Floats
    value: float
    lower_bound: float | None
    capped: bool = False


# More than 400 lines: master, pricing, proof and search are one algorithm over the same arrays, and
# are read side by side.
class ColumnSearch:
    """Searches the best mixture of columns for given boxes, sizes, shares of people and weights per
    group (or a matrix of weights). b of a group is a multiple of 1 / steps. `caps` limit the
    errors of the groups; they are looked at once the best without them breaks one.
    """

    def __init__(
        self,
        boxes: Boxes,
        sizes: Floats,
        shares: Floats,
        weights: Floats,
        steps: Floats,
        fixed: bool,
    ) -> None:
        # the largest errors F of the groups, and the share by which the design stays below them
        self.caps: Floats | None = None
        self.tight, self.capped = 0.0, False
        self.H, self.L = boxes.H, boxes.L
        self.m, self.x = sizes, shares
        self.W = np.diag(weights) if weights.ndim == 1 else weights
        self.steps, self.fixed = steps, fixed
        self.cost = np.diag(self.W) * (sizes - fixed)
        self.scale = sizes / np.maximum(sizes - 1, 1) if fixed else np.ones(len(sizes))

    def rebuilt(self, columns: Columns) -> Columns:
        """The columns of another search for the same boxes at other budgets."""
        return columns

    def chances(self, columns: Columns) -> tuple[Floats, Floats]:
        """Chance of the part per group, for a share of one; and of the own item."""
        H, L = self.H[columns.box], self.L[columns.box]
        S = L + columns.b * (H - L)
        own = np.where(L > 0, columns.b * H / np.where(S > 0, S, 1), columns.b > 0)
        return S / (S @ self.x)[:, None], own

    def information(self, columns: Columns) -> tuple[Floats, Floats, Floats]:
        """A, v and the mean chances of every column, at probability one."""
        d = self.H[columns.box] - self.L[columns.box]
        S = self.L[columns.box] + columns.b * d
        z = (S @ self.x)[:, None]
        return (
            self.scale * columns.b * (1 - columns.b) * (d / z) ** 2,
            S / z * np.sqrt(self.m),
            S / z,
        )

    # ---- the master: shares of given columns -----------------------------------------------------

    def master(self, columns: Columns, mu: Floats) -> tuple[Floats, Prices]:
        """The best shares of these columns, and the prices."""
        information = self.information(columns)
        caps = None
        if self.capped and self.caps is not None:
            caps = self.caps * (1 - self.tight)
        program = Program(*information, self.W, self.m - self.fixed, self.fixed, caps)
        mu, nu, at = program.solve(mu)
        root = np.sqrt(self.m)
        return mu, Prices(at.w * self.scale, at.M * root * root[:, None], -nu, at)

    # ---- pricing: the best new column ------------------------------------------------------------

    def _total(self, columns: Columns, p: Prices) -> Floats:
        """The score of every column times z^2, without the constant sum nu."""
        d = self.H[columns.box] - self.L[columns.box]
        S = self.L[columns.box] + columns.b * d
        within = (p.w * d**2 * columns.b * (1 - columns.b)).sum(axis=1)
        return within + ((S @ p.Q) * S).sum(axis=1) - (S @ self.x) * (S @ p.nu)

    def _improve(self, columns: Columns, p: Prices, l: int) -> tuple[Columns, Floats]:
        """Every column with its best b of group l, and its score.

        In b_l alone the score is a quadratic over a square, whose slope changes sign once. So the
        best step is next to that place or at an end; where L = 0 it may be the first step.
        """
        d = (self.H - self.L)[columns.box, l]
        b, x, nu = columns.b[:, l], self.x[l], p.nu[l]
        S = self.L[columns.box] + columns.b * (self.H - self.L)[columns.box]
        without = S.copy()
        without[:, l] -= d * b
        z, y = without @ self.x, without @ p.nu
        square = d**2 * (p.Q[l, l] - p.w[l] - x * nu)
        linear = d**2 * p.w[l] + 2 * d * (without @ p.Q[:, l]) - x * d * y - nu * d * z
        rest = self._total(columns, p) - square * b**2 - linear * b
        bottom = 2 * square * z - linear * x * d
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = np.nan_to_num(
                (2 * rest * x * d - linear * z) / bottom, nan=0.0, posinf=1.0, neginf=0.0
            )
        steps = self.steps[l]
        near = np.clip(turn, 0, 1) * steps
        tried = (
            np.stack(
                (
                    np.floor(near),
                    np.ceil(near),
                    np.zeros_like(near),
                    np.ones_like(near),
                    np.full_like(near, steps),
                )
            )
            / steps
        )
        chance = z + x * d * tried
        value = (square * tried**2 + linear * tried + rest) / chance**2
        value = np.where(chance > _NEVER, value, -np.inf)
        best = value.argmax(axis=0)
        rows = np.arange(len(b))
        new = columns.b.copy()
        new[:, l] = np.where(d > 1e-12, tried[best, rows], 0.0)
        return Columns(columns.box, new), value[best, rows] + p.nu.sum()

    def _ascend(self, columns: Columns, p: Prices) -> tuple[Columns, Floats]:
        """Coordinate ascent of the score from every column."""
        old = np.full(len(columns), -np.inf)
        for _ in range(30):
            for l in range(len(self.m)):
                columns, score = self._improve(columns, p, l)
            if (score <= old + 1e-12 * np.abs(score)).all():
                break
            old = score
        return columns, score

    def adjusted(self, design: Design) -> tuple[Columns, Floats]:
        """The columns of a design for slightly other budgets, with their best shares. Where errors
        are capped, columns that are hardly used any more are left out: they would not survive the
        rounding.
        """
        self.capped = design.capped
        columns = self.rebuilt(design.columns)
        mu, _ = self.master(columns, design.shares)
        while self.capped and mu.min() < 10 * self._least:
            columns = self.rebuilt(columns[mu >= 10 * self._least])
            mu, _ = self.master(columns, mu[mu >= 10 * self._least])
        return columns, mu

    # ---- all columns, for a proof ----------------------------------------------------------------

    @cached_property
    def _ranges(self) -> tuple[Floats, Ints]:
        """Per box the number of steps of every group whose chances differ, and the group with most
        of them: its b is not enumerated, because its best step is known in closed form.
        """
        ranges = np.where(self.H - self.L > _NEVER, self.steps + 1, 1.0)
        largest = ranges.argmax(axis=1)
        ranges[np.arange(len(ranges)), largest] = 1
        return ranges, largest

    @property
    def provable(self) -> bool:
        """Whether there are few enough columns to price all of them."""
        return self.fixed and bool(self._ranges[0].prod(axis=1).sum() <= MOST_PRICED)

    def _all_columns(self) -> Iterator[tuple[Columns, int]]:
        """All columns in chunks, with the group whose b is left at 0. Boxes of few columns come
        together.
        """
        ranges, largest = self._ranges
        kinds, kind_of = np.unique(
            np.column_stack((ranges, largest)).astype(np.int64), axis=0, return_inverse=True
        )
        for kind, (*lengths, l) in enumerate(kinds.tolist()):
            boxes, count = np.flatnonzero(kind_of.ravel() == kind), int(np.prod(lengths))
            together = max(1, _CHUNK // count)
            for first, start in product(range(0, len(boxes), together), range(0, count, _CHUNK)):
                place = np.arange(start, min(start + _CHUNK, count))
                b = np.stack(np.unravel_index(place, lengths), axis=1) / self.steps
                some = boxes[first : first + together]
                rows = np.tile(b, (len(some), 1)).reshape(-1, len(self.m))
                yield Columns(np.repeat(some, len(place)), rows), l

    def _price_all(self, p: Prices) -> tuple[Columns, Floats]:
        """The best columns of every chunk, over all columns."""
        priced: list[tuple[Columns, Floats]] = []
        for chunk, largest in self._all_columns():
            columns, score = self._improve(chunk, p, largest)
            top = np.argsort(-score)[:_TOP]
            priced.append((columns[top], score[top]))
        columns = priced[0][0]
        for more, _ in priced[1:]:
            columns = columns + more
        return columns, np.concatenate([score for _, score in priced])

    # ---- the search ------------------------------------------------------------------------------

    def _starts(self) -> Columns:
        """For every box: the subsets of groups that speak, all of them while the groups are few."""
        t = len(self.m)
        if t <= 5:
            speaking = np.array(list(product((0, 1), repeat=t)))
        else:
            speaking = np.vstack((np.eye(t), np.tri(t), np.tri(t)[::-1], np.zeros((1, t)))).astype(
                int
            )
        usual = 1 / (1 + np.sqrt(self.H / np.maximum(self.L, _NEVER)))
        b = np.clip(np.round(usual * self.steps), 1, self.steps) / self.steps
        b = np.where(self.H - self.L > _NEVER, b, 0)
        rows = (speaking[None] * b[:, None]).reshape(-1, t)
        box = np.repeat(np.arange(len(self.H)), len(speaking))
        if (self.L == 0).any():  # also with all of such a group at the top: it may have to be there
            full = np.where((self.L == 0) & (self.H > 0), 1.0, np.nan)[box]
            rows, box = np.vstack((rows, np.where(np.isnan(full), rows, full))), np.tile(box, 2)
        columns = _distinct(Columns(box, rows))
        H, L = self.H[columns.box], self.L[columns.box]
        return columns[(L + columns.b * (H - L)) @ self.x > _NEVER]

    def _sample(self, start: Columns, most: int) -> Columns:
        """About `most` starts: all those of evenly chosen boxes, the first box among them."""
        boxes = max(1, most * len(self.H) // len(start))
        chosen = np.unique(np.linspace(0, len(self.H) - 1, boxes).astype(np.int64))
        return start[np.isin(start.box, chosen)]

    def solve(self, certify: bool = True, warm: Columns | None = None) -> Design:
        """Generate columns until none improves the design.

        With `certify`, prove it if all columns can be priced. `warm` are columns of a similar
        problem to begin with.
        """
        with np.errstate(all="ignore"):  # a step that leads to a chance of 0 is not taken
            return self._solve(certify, warm)

    def _solve(self, certify: bool, warm: Columns | None) -> Design:
        start = self._starts()
        columns, reserve = self._sample(start, 3 * _MOST_KEPT), self._sample(start, _MOST_KEPT)
        if warm is not None:
            columns = _distinct(columns + warm)
        mu, bound = np.full(len(columns), 1 / len(columns)), None
        proving = certify and self.provable
        rounds = 0
        while rounds < _ROUNDS:
            mu, p = self.master(columns, mu)
            rounds += 1
            used = mu > self._least / 10 * mu.max()
            better, score = self._ascend(_distinct(columns[used] + start), p)
            if p.settled(score) and self._must_cap(p):
                self.capped, rounds = True, 0
                continue
            if proving and p.settled(score):
                better, score = self._price_all(p)
                proved = p.bound(float(score.max()), self.caps)
                bound = proved if bound is None else max(bound, proved)
            fresh = self._new_columns(better, score, p, columns)
            if not len(fresh) and self._must_cap(p):
                self.capped, rounds = True, 0
                continue
            if p.settled(score) or not len(fresh):
                break
            # unused columns keep the prices from swinging, so they stay while there is room
            if len(columns) > _MOST_KEPT:
                columns = columns[used] + reserve
                mu = np.append(mu[used], np.full(len(reserve), 1e-3))
            columns = columns + fresh
            mu = np.concatenate((mu, np.full(len(fresh), 1e-3)))
        kept = mu > self._least
        columns, mu, p = self._sparse(columns[kept], mu[kept], p)
        offset = float(np.diag(self.W) @ self.x)
        value = p.at.value
        lower = None if bound is None else min(bound, value) - offset
        return Design(columns, mu, value - offset, lower, self.capped)

    def _must_cap(self, p: Prices) -> bool:
        """Whether the best without caps breaks one."""
        return self.caps is not None and not self.capped and breaks(p.at.F, self.caps)

    @property
    def _least(self) -> float:
        """The share below which a column is not used. One that a rare group alone can send has at
        most the share of its people.
        """
        return 1e-6 * (float(self.x.min()) if (self.L == 0).any() else 1.0)

    def _sparse(self, columns: Columns, mu: Floats, p: Prices) -> tuple[Columns, Floats, Prices]:
        """Fewer columns with the same information: a basic solution first, then without the columns
        that matter least, while that costs next to nothing.
        """
        columns, mu = self._basic(columns, mu)
        limit = p.at.value * (1 + _SPARSE)
        best = (columns, *self.master(columns, mu))
        for least in (1e-5, 1e-4, 1e-3, 3e-3, 1e-2):
            kept = best[1] > least
            if kept.sum() < len(self.m) or kept.all():
                continue
            fewer = best[0][kept]
            shares, prices = self.master(fewer, best[1][kept])
            sums = shares @ self.information(fewer)[2]
            if not (prices.at.value <= limit and np.abs(sums - 1).max() < 1e-9):
                break
            if self.capped and self.caps is not None and breaks(prices.at.F, self.caps):
                break
            best = (fewer, shares, prices)
        return best

    def _basic(self, columns: Columns, mu: Floats) -> tuple[Columns, Floats]:
        """As few columns as A, G and the sums have numbers, with the same A, G and sums."""
        from scipy.optimize import linprog  # takes long to load

        A, v, lam = self.information(columns)
        first, second = np.triu_indices(len(self.m) if self.fixed else 0)
        facts = np.hstack((A[:, self.cost > 0], v[:, first] * v[:, second], lam)).T
        if facts.shape[1] <= len(facts):
            return columns, mu
        wanted = facts @ mu
        scale = np.maximum(np.abs(wanted), 1e-300)[:, None]
        cost = np.random.default_rng(1).random(len(mu))  # arbitrary: it only picks a vertex
        basic = linprog(cost, A_eq=facts / scale, b_eq=wanted / scale[:, 0], method="highs-ds")
        if basic.status != 0:
            return columns, mu
        kept = basic.x > 1e-9
        return columns[kept], basic.x[kept]

    def _new_columns(self, columns: Columns, score: Floats, p: Prices, old: Columns) -> Columns:
        """The best columns that are not among the old ones."""
        order = np.argsort(-score, kind="stable")
        order = order[score[order] > p.f + p.at.value * _GAP / 4]
        keys = {_key(old, k) for k in range(len(old))}
        kept = []
        for k in order:
            if _key(columns, k) not in keys:
                keys.add(_key(columns, k))
                kept.append(k)
            if len(kept) == min(4 * len(self.H), _MOST_KEPT // 4):
                break
        return columns[kept]


def _key(columns: Columns, k: int) -> tuple[float, ...]:
    return (float(columns.box[k]), *np.round(columns.b[k], 12))


def _distinct(columns: Columns) -> Columns:
    rows = np.column_stack((columns.box, np.round(columns.b, 12)))
    return columns[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
