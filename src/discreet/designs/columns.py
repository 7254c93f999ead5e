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
sum W x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from discreet.designs.boxes import Boxes
from discreet.parts import Floats

MOST_PRICED = 6_000_000  # columns looked at one by one for a proof
_GAP = 1e-6  # relative gap at which the search stops
_SPARSE = 5e-6  # relative loss that fewer parts may cost
_MOST_KEPT = 120  # columns of the master
_ROUNDS = 60
_CHUNK = 200_000  # columns priced at once


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns by box and b, a row each."""

    box: Floats
    b: Floats

    def __getitem__(self, rows: Any) -> Columns:
        return Columns(self.box[rows], self.b[rows])

    def __add__(self, other: Columns) -> Columns:
        return Columns(np.concatenate((self.box, other.box)), np.concatenate((self.b, other.b)))

    def __len__(self) -> int:
        return len(self.box)


@dataclass(frozen=True, eq=False)
class Prices:
    """What a column is worth: w per group within, Q between groups, nu for the sums over parts, f
    in all.
    """

    w: Floats
    Q: Floats
    nu: Floats
    f: float


@dataclass(frozen=True, eq=False)
class Design:
    """Columns with their shares, the total MSE / n, and a lower bound of it for any mechanism
    (None: not proved).
    """

    columns: Columns
    shares: Floats
    value: float
    lower_bound: float | None


class Master:
    """Boxes, sizes, shares of people and weights per group; b of a group is a multiple of 1 /
    steps.
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
        self.H, self.L = np.exp(boxes.hi), np.exp(boxes.lo)
        self.m, self.x, self.W = sizes, shares, weights
        self.steps, self.fixed = steps, fixed
        self.cost = weights * (sizes - fixed)
        self.scale = sizes / np.maximum(sizes - 1, 1) if fixed else np.ones(len(sizes))

    def chances(self, columns: Columns) -> tuple[Floats, Floats]:
        """Chance of the part per group, for a share of one; and of the own item."""
        H, L = self.H[columns.box], self.L[columns.box]
        S = L + columns.b * (H - L)
        return S / (S @ self.x)[:, None], columns.b * H / S

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

    def derivatives(
        self, A: Floats, v: Floats, mu: Floats
    ) -> tuple[float, Floats, Floats, Floats, Floats]:
        """f, w, M = G^-1 W G^-1, and f's gradient and Hessian in mu."""
        on = self.cost > 0
        a = np.where(on, mu @ A, 1.0)
        w, curve = np.where(on, self.cost / a**2, 0), np.where(on, 2 * self.cost / a**3, 0)
        f, M = float(np.where(on, self.cost / a, 0).sum()), np.zeros((len(self.m),) * 2)
        gradient, hessian = -(A @ w), (A * curve) @ A.T
        if self.fixed:
            between = (v.T * mu) @ v
            # far below what matters, and no step can end at a singular matrix
            ridge = 1e-15 * np.trace(between)
            inverse = np.linalg.inv(between + ridge * np.eye(len(between)))
            M = (inverse * self.W) @ inverse
            f += float(np.diag(inverse) @ self.W)
            between = v @ M
            gradient = gradient - (between * v).sum(axis=1)
            hessian = hessian + 2 * (between @ v.T) * (v @ inverse @ v.T)
        return f, w, M, gradient, hessian

    def master(self, columns: Columns, mu: Floats) -> tuple[Floats, Prices]:
        """The best shares of the columns at hand and their prices: a primal-dual interior-point
        method.
        """
        A, v, lam = self.information(columns)
        n, t = lam.shape
        mu = np.maximum(mu, 1e-3 / n)
        unit = self.derivatives(A, v, mu)[0]
        slack, nu = np.full(n, 0.1) / mu / n, np.zeros(t)
        for _ in range(100):
            f, w, M, gradient, hessian = self.derivatives(A, v, mu)
            gradient, hessian = gradient / unit, hessian / unit
            gap, missing = float(mu @ slack), 1 - mu @ lam
            if gap < 1e-10 * f / unit and np.abs(missing).max() < 1e-12:
                break
            system = np.block([[hessian + np.diag(slack / mu), -lam], [-lam.T, -1e-14 * np.eye(t)]])
            aim = 0.1 * gap / n
            try:
                step = np.linalg.solve(system, np.append(lam @ nu - gradient + aim / mu, -missing))
            except np.linalg.LinAlgError:  # no further progress at this precision
                break
            d_mu, d_nu = step[:n], step[n:]
            d_slack = (aim - slack * d_mu) / mu - slack
            far = min(1.0, 0.95 / max(float((-d_mu / mu).max()), 1e-9))
            deep = min(1.0, 0.95 / max(float((-d_slack / slack).max()), 1e-9))
            mu, nu, slack = mu + far * d_mu, nu + deep * d_nu, slack + deep * d_slack
        root = np.sqrt(self.m)
        return mu, Prices(w * self.scale, M * root * root[:, None], -nu * unit, f)

    # ---- pricing: the best new column ------------------------------------------------------------

    def total(self, columns: Columns, p: Prices) -> Floats:
        """The score of every column times z^2, without the constant sum nu."""
        d = self.H[columns.box] - self.L[columns.box]
        S = self.L[columns.box] + columns.b * d
        within = (p.w * d**2 * columns.b * (1 - columns.b)).sum(axis=1)
        return within + ((S @ p.Q) * S).sum(axis=1) - (S @ self.x) * (S @ p.nu)

    def scores(self, columns: Columns, p: Prices) -> Floats:
        """What every column is worth; at the optimum none is worth more than f."""
        S = self.L[columns.box] + columns.b * (self.H - self.L)[columns.box]
        return self.total(columns, p) / (S @ self.x) ** 2 + p.nu.sum()

    def improve(self, columns: Columns, p: Prices, l: int) -> tuple[Columns, Floats]:
        """Every column with its best b of group l, and its score: in b_l alone the score is a
        quadratic over a square, whose slope changes sign once, so the best step is next to that
        place or at an end.
        """
        d = (self.H - self.L)[columns.box, l]
        b, x, nu = columns.b[:, l], self.x[l], p.nu[l]
        S = self.L[columns.box] + columns.b * (self.H - self.L)[columns.box]
        without = S.copy()
        without[:, l] -= d * b
        z, y = without @ self.x, without @ p.nu
        square = d**2 * (p.Q[l, l] - p.w[l] - x * nu)
        linear = d**2 * p.w[l] + 2 * d * (without @ p.Q[:, l]) - x * d * y - nu * d * z
        rest = self.total(columns, p) - square * b**2 - linear * b
        bottom = 2 * square * z - linear * x * d
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = np.nan_to_num(
                (2 * rest * x * d - linear * z) / bottom, nan=0.0, posinf=1.0, neginf=0.0
            )
        steps = self.steps[l]
        near = np.clip(turn, 0, 1) * steps
        tried = (
            np.stack(
                (np.floor(near), np.ceil(near), np.zeros_like(near), np.full_like(near, steps))
            )
            / steps
        )
        value = (square * tried**2 + linear * tried + rest) / (z + x * d * tried) ** 2
        best = value.argmax(axis=0)
        rows = np.arange(len(b))
        new = columns.b.copy()
        new[:, l] = np.where(d > 1e-12, tried[best, rows], 0.0)
        return Columns(columns.box, new), value[best, rows] + p.nu.sum()

    def ascend(self, columns: Columns, p: Prices) -> tuple[Columns, Floats]:
        """Coordinate ascent of the score from every column."""
        old = np.full(len(columns), -np.inf)
        for _ in range(30):
            for l in range(len(self.m)):
                columns, score = self.improve(columns, p, l)
            if (score <= old + 1e-12 * np.abs(score)).all():
                break
            old = score
        return columns, score

    # ---- all columns, for a proof ----------------------------------------------------------------

    @property
    def largest(self) -> int:
        """The group whose b is not enumerated: its best step is known in closed form."""
        return int(self.steps.argmax())

    @property
    def provable(self) -> bool:
        """Whether all columns can be looked at."""
        return (
            self.fixed
            and np.prod(self.steps + 1) / (self.steps.max() + 1) * len(self.H) <= MOST_PRICED
        )

    def every(self) -> Iterator[Columns]:
        """All columns, but for the largest group, in chunks."""
        t, ranges = len(self.m), [int(n) + 1 for n in self.steps]
        ranges[self.largest] = 1
        count = int(np.prod(ranges))
        for box, start in product(range(len(self.H)), range(0, count, _CHUNK)):
            place = np.arange(start, min(start + _CHUNK, count))
            b = np.stack(np.unravel_index(place, ranges), axis=1) / self.steps
            yield Columns(np.full(len(place), box), b.reshape(len(place), t))

    def price_all(self, p: Prices) -> tuple[Columns, Floats]:
        """The best columns of every chunk, over all columns."""
        found: list[tuple[Columns, Floats]] = []
        for chunk in self.every():
            columns, score = self.improve(chunk, p, self.largest)
            top = np.argsort(-score)[:3]
            found.append((columns[top], score[top]))
        columns = found[0][0]
        for more, _ in found[1:]:
            columns = columns + more
        return columns, np.concatenate([score for _, score in found])

    # ---- the search ------------------------------------------------------------------------------

    def starts(self) -> Columns:
        """For every box: the subsets of groups that speak, all of them while the groups are few."""
        t = len(self.m)
        if t <= 5:
            speaking = np.array(list(product((0, 1), repeat=t)))
        else:
            speaking = np.vstack((np.eye(t), np.tri(t), np.tri(t)[::-1], np.zeros((1, t)))).astype(
                int
            )
        usual = 1 / (1 + np.sqrt(self.H / self.L))
        b = np.clip(np.round(usual * self.steps), 1, self.steps) / self.steps
        rows = (speaking[None] * b[:, None]).reshape(-1, t)
        return _distinct(Columns(np.repeat(np.arange(len(self.H)), len(speaking)), rows))

    def some(self, start: Columns, most: int) -> Columns:
        """All starts of some of the boxes, the first among them: about so many."""
        boxes = max(1, most * len(self.H) // len(start))
        chosen = np.unique(np.linspace(0, len(self.H) - 1, boxes).astype(np.int64))
        return start[np.isin(start.box, chosen)]

    def solve(self, certify: bool = True, warm: Columns | None = None) -> Design:
        """Generate columns until none improves the design; with `certify`, prove it where all can
        be looked at. `warm`: columns of a similar problem to begin with.
        """
        with np.errstate(all="ignore"):  # a step may reach for a chance of 0; it is not taken
            return self._solve(certify, warm)

    def _solve(self, certify: bool, warm: Columns | None) -> Design:
        start = self.starts()
        columns, reserve = self.some(start, 3 * _MOST_KEPT), self.some(start, _MOST_KEPT)
        if warm is not None:
            columns = _distinct(columns + warm)
        mu, bound = np.full(len(columns), 1 / len(columns)), None
        proving = certify and self.provable
        for _ in range(_ROUNDS):
            mu, p = self.master(columns, mu)
            used = mu > 1e-7 * mu.max()
            better, score = self.ascend(_distinct(columns[used] + start), p)
            if proving and score.max() <= p.f * (1 + _GAP):
                better, score = self.price_all(p)
                proved = p.f**2 / max(p.f, float(score.max()))
                bound = proved if bound is None else max(bound, proved)
            fresh = self.fresh(better, score, p.f, columns)
            if score.max() <= p.f * (1 + _GAP) or not len(fresh):
                break
            # columns that are not used keep the prices from swinging: they stay while there is room
            if len(columns) > _MOST_KEPT:
                columns = columns[used] + reserve
                mu = np.append(mu[used], np.full(len(reserve), 1e-3))
            columns = columns + fresh
            mu = np.concatenate((mu, np.full(len(fresh), 1e-3)))
        columns, mu, p = self.sparse(columns[mu > 1e-6], mu[mu > 1e-6], p)
        offset = float(self.W @ self.x)
        lower = None if bound is None else min(bound, p.f) - offset
        return Design(columns, mu, p.f - offset, lower)

    def sparse(self, columns: Columns, mu: Floats, p: Prices) -> tuple[Columns, Floats, Prices]:
        """Fewer columns with the same information: a basic solution of what fixes it, then without
        those that matter least, as long as that costs next to nothing.
        """
        columns, mu = self._basic(columns, mu)
        limit = p.f * (1 + _SPARSE)
        best = (columns, *self.master(columns, mu))
        for least in (1e-5, 1e-4, 1e-3, 3e-3, 1e-2):
            kept = best[1] > least
            if kept.sum() < len(self.m) or kept.all():
                continue
            fewer = best[0][kept]
            shares, prices = self.master(fewer, best[1][kept])
            sums = shares @ self.information(fewer)[2]
            if not (prices.f <= limit and np.abs(sums - 1).max() < 1e-9):
                break
            best = (fewer, shares, prices)
        return best

    def _basic(self, columns: Columns, mu: Floats) -> tuple[Columns, Floats]:
        """As few columns as there are numbers in A, G and the sums, which they give exactly."""
        A, v, lam = self.information(columns)
        first, second = np.triu_indices(len(self.m) if self.fixed else 0)
        facts = np.hstack((A[:, self.cost > 0], v[:, first] * v[:, second], lam)).T
        if facts.shape[1] <= len(facts):
            return columns, mu
        wanted = facts @ mu
        scale = np.maximum(np.abs(wanted), 1e-300)[:, None]
        cost = np.random.default_rng(1).random(len(mu))  # any: it only picks a vertex
        found = linprog(cost, A_eq=facts / scale, b_eq=wanted / scale[:, 0], method="highs-ds")
        if found.status != 0:
            return columns, mu
        kept = found.x > 1e-9
        return columns[kept], found.x[kept]

    def fresh(self, columns: Columns, score: Floats, f: float, old: Columns) -> Columns:
        """The best columns that are not there yet."""
        order = np.argsort(-score, kind="stable")
        order = order[score[order] > f * (1 + _GAP / 4)]
        known = {_key(old, k) for k in range(len(old))}
        kept = []
        for k in order:
            if _key(columns, k) not in known:
                known.add(_key(columns, k))
                kept.append(k)
            if len(kept) == min(4 * len(self.H), _MOST_KEPT // 4):
                break
        return columns[kept]


def _key(columns: Columns, k: int) -> tuple[float, ...]:
    return (float(columns.box[k]), *np.round(columns.b[k], 12))


def _distinct(columns: Columns) -> Columns:
    rows = np.column_stack((columns.box, np.round(columns.b, 12)))
    return columns[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
