"""The search for the best mixture of columns, piece by piece, and its rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import theory
from discreet.arrays.types import Bools, Floats, sum_by_place
from discreet.check.certificate import FAIR, Certificate
from discreet.designs import scales
from discreet.designs.columns import ColumnSearch, Design
from discreet.designs.fair import Limits
from discreet.designs.groups import Groups
from discreet.designs.rounding import make_parts, refuse_silence, shrink_until_checked
from discreet.designs.task import Task
from discreet.encodings import Encoding
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property

# steps of b of independent bits: their chances are free, so steps cost next to nothing
FINE = 2**16


@dataclass(frozen=True, eq=False)
class Search:
    """The search for one encoding. Every piece is designed at its own shares; together they have
    the sum of the errors. `limits` are the largest errors of the levels.
    """

    task: Task
    groups: Groups
    encoding: Encoding
    limits: Limits | None = None

    @cached_property
    def mechanism(self) -> Mechanism:
        """The best mechanism at the prior, or the minimax one, with its certificate."""
        if self.task.worst and not self.merged:
            return self._minimax()
        mechanism, designs = self.at(self.groups.shares)
        capped = any(design.capped for design in designs)
        return self._certified(mechanism, self.bound(self.groups.shares, designs), capped)

    @property
    def merged(self) -> bool:
        """Whether different budgets share a group."""
        return len(self.groups.sizes) < len(set(Groups.for_task(self.task).of_level))

    @property
    def minimises(self) -> str:
        """What the error that is minimised is of: the items, or of a scale also the mean. A worst
        case is always of the items.
        """
        policy = self.task.policy
        return policy.estimate if policy.rule.ordered and not self.task.worst else "items"

    @cached_property
    def weights(self) -> Floats:
        """How much the error of an item counts, per group; a matrix where the mean counts too."""
        items = self.groups.with_none(self.groups.weights, 0.0)
        if self.minimises == "items":
            return items
        if self.minimises == "mean":
            return scales.mean_weights(items)
        shares, (everyone,) = self.groups.shares, self.groups.pieces
        best = self.problem(shares, 0.0, True, everyone, items).solve(certify=False)
        return scales.both_weights(items, self.task.smallest, best.value + float(items @ shares))

    @cached_property
    def caps(self) -> Floats | None:
        """The largest errors of the groups, as the columns count them: of samples, and with what
        everybody knows of their own answer. None where nothing limits them.
        """
        if self.limits is None:
            return None
        g, limits = self.groups, self.limits
        if self.encoding.fixed_size:
            padding = self.task.padding or 1
            known = g.shares[: len(g.sizes)] / padding
            largest = limits.variance / padding**2
        else:  # what a holder adds is left out there
            known, largest = np.zeros(len(g.sizes)), limits.absent
        summed = sum_by_place(g.of_level, self.task.sizes * largest, len(g.sizes))
        return g.with_none(summed + known, np.inf)

    def problem(
        self,
        shares: Floats,
        shrink: float,
        fixed: bool,
        piece: list[int],
        weights: Floats | None = None,
    ) -> ColumnSearch:
        """The column search of a piece at these shares, with budgets shrunk by a share."""
        g, weights = self.groups, self.weights if weights is None else weights
        sizes = g.with_none(g.sizes, 1.0)
        steps = sizes if fixed else self._steps()
        within = shares[piece] / shares[piece].sum()
        mine = weights[np.ix_(piece, piece)] if weights.ndim == 2 else weights[piece]
        search: ColumnSearch
        if scales.is_long(self.task.policy):
            search = scales.ScaleSearch(self.task, shrink, within, mine)
        else:
            boxes = g.boxes(shrink, piece, lone=fixed)
            search = ColumnSearch(boxes, sizes[piece], within, mine, steps[piece], fixed)
        if self.caps is not None and self.limits is not None:
            search.caps = self.caps[piece] / shares[piece].sum()
            search.tight = self.limits.tight
        return search

    def _steps(self) -> Floats:
        """Steps of b where items are named independently. An open answer is sent as it is, which
        the first of so many steps stands for: then the error is that of who else sent it.
        """
        g = self.groups
        fine = [min(self.encoding.denominator(int(size)), FINE) for size in g.sizes]
        steps = np.where(np.isinf(g.eps) & self.task.one_way, g.sizes + 1, np.array(fine, float))
        return g.with_none(steps, 1.0)

    def value(self, shares: Floats) -> float:
        """The total MSE / n that the design reaches, before it is rounded."""
        fixed = self.encoding.fixed_size
        return self._sum(
            shares, [d.value for d in self.solve(shares, lambda p: p.solve(certify=False), fixed)]
        )

    def _sum(self, shares: Floats, values: list[float]) -> float:
        """The total of the pieces' errors, each of which is per person of the piece."""
        pieces = zip(self.groups.pieces, values, strict=True)
        return sum(float(shares[piece].sum()) * value for piece, value in pieces)

    def solve(
        self, shares: Floats, how: Callable[[ColumnSearch], Design], fixed: bool
    ) -> list[Design]:
        """The design of every piece; pieces that are alike are designed once."""
        solved: dict[bytes, Design] = {}
        designs = []
        for piece in self.groups.pieces:
            problem = self.problem(shares, 0.0, fixed, piece)
            key = b"".join(
                np.round(x, 12).tobytes()
                for x in (problem.H, problem.L, problem.m, problem.x, problem.W, problem.caps)
                if x is not None
            )
            if key not in solved:
                solved[key] = how(problem)
            designs.append(solved[key])
        return designs

    def at(
        self, shares: Floats, warm: list[Design] | None = None
    ) -> tuple[Mechanism, list[Design]]:
        """The best mechanism at these shares, and the designs of the pieces that it was rounded
        from. `warm` are designs at other shares to begin with.
        """
        fixed = self.encoding.fixed_size
        if warm is None:
            designs = self.solve(shares, lambda problem: problem.solve(fixed), fixed)
        else:
            designs = [
                self.problem(shares, 0.0, fixed, piece).solve(False, old.columns)
                for piece, old in zip(self.groups.pieces, warm, strict=True)
            ]
        return shrink_until_checked(lambda shrink: self._rounded(shares, designs, shrink)), designs

    def _rounded(self, shares: Floats, designs: list[Design], shrink: float) -> Mechanism:
        task, g = self.task, self.groups
        fixed, count = self.encoding.fixed_size, len(g.sizes)
        base = np.array([self.encoding.denominator(int(size)) for size in g.sizes], dtype=float)
        chances, owns, others, plain = [], [], [], []
        for piece, design in zip(g.pieces, designs, strict=True):
            problem = self.problem(shares, shrink, fixed, piece)
            columns, mu = problem.adjusted(design)
            chance, own = problem.chances(columns)
            spoken = [group for group in piece if group < count]
            b = columns.b[:, : len(spoken)]
            other = np.where(b < 1, np.rint(b * base[spoken]), 0)
            sent = (b > 0) & (b < 1) & (problem.L[columns.box][:, : len(spoken)] == 0)
            plain.append(sent.any(axis=1) & (not fixed and task.one_way))
            chances.append(_widened(mu[:, None] * chance, piece, len(shares)))
            owns.append(_widened(np.where(other > 0, own[:, : len(spoken)], 0), spoken, count))
            others.append(_widened(other, spoken, count))
        chance, own, other = _with_plain_part(
            np.vstack(chances), np.vstack(owns), np.vstack(others), np.concatenate(plain)
        )
        parts = make_parts(
            task.policy, self.encoding, g.of_level, chance, own, other, g.pair_budgets
        )
        if self.encoding.unfit_size(task.policy.m, len(parts)):
            raise DesignError(
                f"{task.policy.m} items and {len(parts)} parts do not fit into 4 bytes; use bits"
            )
        if not fixed:
            refuse_silence(task.policy, parts)
        return Mechanism(
            task.policy,
            "subset",
            self.encoding,
            g.of_level,
            parts,
            task.whole_shares(shares),
            task.padding,
            task.prior_name,
        )

    def bound(self, shares: Floats, designs: list[Design] | None) -> Certificate:
        """A lower bound for every mechanism at these shares, or why there is none. Its value is
        filled in later.
        """
        if self.task.policy.kind.lists:
            return Certificate(0.0, None, "a set is sampled here, which is not the best for sets")
        if self.merged:
            return Certificate(
                0.0, None, f"{len(self.groups.sizes)} groups of budgets stand for more"
            )
        if not self.task.even:
            return Certificate(0.0, None, "the prior is uneven within levels")
        long = scales.is_long(self.task.policy)
        pieces = self.groups.pieces
        notes = {"" if long else self.groups.boxes(0.0, piece).note for piece in pieces} - {""}
        if notes:
            return Certificate(0.0, None, notes.pop())
        if not all(self.problem(shares, 0.0, True, piece).provable for piece in pieces):
            why = "there are too many columns to look at all of them"
            return Certificate(0.0, None, "the proof takes minutes: certify" if long else why)
        if designs is None or any(design.lower_bound is None for design in designs):
            designs = self.solve(shares, lambda problem: problem.solve(), True)
        bounds = [design.lower_bound for design in designs]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return Certificate(0.0, None, "the search did not come to its end")
        return Certificate(0.0, self._sum(shares, known))

    def _certified(
        self, mechanism: Mechanism, bound: Certificate, capped: bool = False
    ) -> Mechanism:
        notes = [note for note in (FAIR * capped, bound.note) if note]
        if len(set(self.task.weights.tolist())) > 1:
            notes.append("errors weighted as the policy asks")
        if self.minimises != "items":
            what = {"mean": "the mean", "both": "the items and the mean"}
            notes.append(f"the error of {what[self.minimises]}")
        value = self._score(mechanism)
        return mechanism.certified(Certificate(value, bound.lower_bound, "; ".join(notes)))

    def _score(self, mechanism: Mechanism) -> float:
        """The error that was minimised, of the rounded mechanism."""
        if self.minimises != "items":
            return scales.score(mechanism, self.groups.shares, self.weights)
        return self.task.score(mechanism)

    def _minimax(self) -> Mechanism:
        """The design with the smallest largest error over all data.

        The value at shares x is concave in x, and its slope is the error if everybody were in one
        group. The bound at any x bounds every worst case.
        """
        from scipy.optimize import minimize  # takes long to load

        seen: list[tuple[float, Mechanism, Floats, list[Design]]] = []
        g = self.groups
        first = np.array([g.of_level.index(k) for k in range(len(g.sizes))])

        def value(x: Floats) -> tuple[float, Floats]:
            shares = np.maximum(x, 1e-6) / np.maximum(x, 1e-6).sum()
            try:
                mechanism, designs = self.at(shares, seen[-1][3] if seen else None)
            except DesignError:  # shares so uneven that the chances do not fit 32 bits
                return 0.0, np.zeros(len(shares))
            cost = theory.costs(mechanism, self.task.weights)
            slope = g.with_none(cost[first], cost[-1])
            seen.append((float(cost.max()), mechanism, shares, designs))
            return -float(slope @ shares) / unit, -slope / unit

        unit = 1.0
        unit = -value(g.shares)[0] or 1.0
        minimize(
            value,
            g.shares,
            jac=True,
            method="SLSQP",
            bounds=[(1e-6, 1.0)] * len(g.shares),
            constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like}],
            options={"maxiter": 25, "ftol": 1e-7},
        )
        _, best, shares, designs = min(seen, key=lambda row: row[0])
        return self._certified(best, self.bound(shares, designs))


def _widened(values: Floats, columns: list[int], count: int) -> Floats:
    """The values in these columns of `count`, and 0 in the others."""
    wide = np.zeros((len(values), count))
    wide[:, columns] = values
    return wide


def _with_plain_part(
    chance: Floats, own: Floats, other: Floats, plain: Bools
) -> tuple[Floats, Floats, Floats]:
    """The parts in which an open answer is sent as it is, joined to one at the end: its report
    says which answer, and so which group, it is of.
    """
    if not plain.any():
        return chance, own, other
    together = chance[plain].sum(axis=0)
    return (
        np.vstack((chance[~plain], together)),
        np.vstack((own[~plain], together > 0)),
        np.vstack((other[~plain], np.zeros(other.shape[1]))),
    )
