"""`subset`: the best mechanism there is, with its certificate (docs/researcher.md,
"The design and its certificate").
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from discreet import theory
from discreet.designs import boxes as boxes_
from discreet.designs import many, plain, unary
from discreet.designs.boxes import Boxes
from discreet.designs.columns import Design, Master
from discreet.designs.fields import best_field
from discreet.designs.rounding import parts_of, refuse_silence, shrinking
from discreet.designs.task import Task, replace_encoding
from discreet.encodings import Bits, Encoding, Fixed, Ticket
from discreet.errors import DesignError, GuaranteeError, MissingExtra
from discreet.exact import D
from discreet.mechanism import Certificate, Mechanism
from discreet.parts import Floats

FEW = 8  # groups whose columns are searched
_TOO_MANY = f"with more than {FEW} budgets the best mechanism is not known"
_MERGED = 5  # groups that more budgets are merged into, for subsets of fixed size
SMALL = 1000  # items up to which reports are subsets of fixed size, and bits the default
# steps of b of independent bits: their chances are free, so steps cost next to nothing
_FINE = 2**16


def subset(task: Task) -> Mechanism:
    """The best mechanism found for the policy, the prior and the encoding."""
    assert task.smallest > 0  # asking for it refuses a policy without any protected pair
    ticket = task.encoding == "ticket" or (task.encoding is None and task.policy.m > SMALL)
    groups = Groups.of(task)
    few = len(groups.sizes) <= FEW
    if few and not groups.some and groups.eps.max() <= boxes_.LARGEST:
        return _few(task, groups, ticket)
    found = []
    with suppress(DesignError):  # chances that do not fit 32 bits, where a simpler model's may
        found.append(_few(task, groups, ticket) if few else _many(task, ticket))
    if few or not found or not ticket:  # one opt0 with thousands of levels as tickets takes long
        found += _simpler(task, ticket)
    if not ticket and task.policy.m <= SMALL and not few:
        found.append(_few(task, groups.merged(_MERGED), ticket))
    if not found:
        raise DesignError("no design for these budgets fits probabilities over 2^32")
    best = min(found, key=task.score)
    note = groups.boxes(0.0).note if few else _TOO_MANY
    return best.certified(Certificate(task.score(best), None, note))


def _simpler(task: Task, ticket: bool) -> list[Mechanism]:
    """Where the search is not over everything: models that are special cases of what is searched
    for.
    """
    models = [unary.opt0] if ticket or task.policy.takes_sets else [unary.opt0, plain.ss]
    found = []
    for model in models:
        try:
            made = model(replace_encoding(task, "ticket" if ticket else None))
        except (MissingExtra, DesignError):
            continue
        found.append(replace(made, model="subset", certificate=None))
    return found


# ---- groups of levels that are treated alike -----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every level, and budgets (or pair budgets), sizes, shares and
    weights per group.
    """

    task: Task
    of_level: tuple[int, ...]

    @classmethod
    def of(cls, task: Task) -> Groups:
        """Levels with the same budget, weight and share per item together; each its own with
        explicit pairs.
        """
        t = len(task.sizes)
        if task.policy.overrides:
            return cls(task, tuple(range(t)))
        eps = task.eps if task.policy.notion == "avg" else np.minimum(task.eps, 2 * task.eps.min())
        alike = zip(
            eps.tolist(),
            task.weights.tolist(),
            np.round(task.shares / task.sizes, 12).tolist(),
            strict=True,
        )
        places: dict[Any, int] = {}
        return cls(task, tuple(places.setdefault(key, len(places)) for key in alike))

    def merged(self, count: int) -> Groups:
        """At most so many groups: neighbours in budget together, numbered as they appear."""
        rank = np.unique(self.task.eps, return_inverse=True)[1]
        place = rank * count // (rank.max() + 1)
        names: dict[int, int] = {}
        return Groups(self.task, tuple(names.setdefault(int(k), len(names)) for k in place))

    def _sum(self, values: Floats) -> Floats:
        return np.bincount(self.of_level, weights=values)

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
        return self.with_none(self._sum(self.task.shares), self.task.empty)

    @cached_property
    def eps(self) -> Floats:
        """The smallest budget per group; with explicit pairs the smallest of all its pairs."""
        of_level = (
            self.task.pair_budgets.min(axis=1) if self.task.policy.overrides else self.task.eps
        )
        smallest = np.full(len(self.sizes), np.inf)
        np.minimum.at(smallest, np.array(self.of_level), of_level)
        return smallest

    @property
    def some(self) -> bool:
        """Whether only some of the boxes are known: explicit pairs of too many levels."""
        return bool(self.task.policy.overrides) and len(self.pair_budgets) > boxes_.MOST_WITH_PAIRS

    def with_none(self, values: Floats, of_none: float) -> Floats:
        """Values per group, and one for an empty sample where there can be one."""
        return np.append(values, of_none) if self.task.policy.takes_sets else values

    def boxes(self, shrink: float) -> Boxes:
        """Where the columns lie, at budgets shrunk by a share; an empty sample is a group of its
        own.
        """
        task = self.task
        if not task.policy.overrides:
            return boxes_.of_budgets(
                self.with_none(self.eps, self.eps.min()) * (1 - shrink), task.policy.notion
            )
        r = self.pair_budgets * (1 - shrink)
        if len(r) <= boxes_.MOST_WITH_PAIRS:
            return boxes_.of_pairs(r)
        return self._some_boxes(r)

    @cached_property
    def pair_budgets(self) -> Floats:
        """r of every two groups; of an empty sample the smallest of a row."""
        place, r = np.array(self.of_level), self.task.pair_budgets
        table = np.full((len(self.sizes),) * 2, np.inf)
        np.minimum.at(table, (place[:, None], place[None, :]), r)
        if not self.task.policy.takes_sets:
            return table
        low = table.min(axis=1)
        return np.block([[table, low[:, None]], [low[None, :], np.array([[low.min()]])]])

    def _some_boxes(self, r: Floats) -> Boxes:
        """Many levels with explicit pairs: the boxes of `min` at every level's smallest pair, and
        opt0's.
        """
        few = f"explicit pairs of more than {boxes_.MOST_WITH_PAIRS} levels"
        r, _ = boxes_.bounded(r)
        found = boxes_.of_budgets(r.min(axis=1), "min")
        try:
            from discreet.designs import program

            u, w = program.solve(r, np.append(self.sizes, 1)[: len(r)], "opt0")
        except (MissingExtra, DesignError):
            return Boxes(found.hi, found.lo, few)
        return Boxes(np.vstack((found.hi, u)), np.vstack((found.lo, -w)), few)


# ---- few groups: columns -------------------------------------------------------------------------


def _few(task: Task, groups: Groups, ticket: bool) -> Mechanism:
    m = task.policy.m
    if not ticket:
        return _Search(task, groups, Fixed() if m <= SMALL else Bits()).mechanism
    field = best_field(m, lambda field: _Search(task, groups, field).value(groups.shares))
    return _Search(task, groups, field).mechanism


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for one encoding."""

    task: Task
    groups: Groups
    encoding: Encoding

    @cached_property
    def mechanism(self) -> Mechanism:
        """The best mechanism at the prior, or the minimax one, with its certificate."""
        if self.task.worst and not self.merged:
            return self._minimax()
        found, design = self.at(self.groups.shares)
        return self._certified(found, self.bound(self.groups.shares, design))

    @property
    def merged(self) -> bool:
        """Whether different budgets share a group."""
        return len(self.groups.sizes) < len(set(Groups.of(self.task).of_level))

    def problem(self, shares: Floats, shrink: float, fixed: bool) -> Master:
        """What the column search sees."""
        g = self.groups
        sizes = g.with_none(g.sizes, 1.0)
        if fixed:
            steps = sizes
        else:
            steps = np.array([float(self._steps(size)) for size in g.sizes])
            steps = g.with_none(steps, 1.0)
        weights = g.with_none(g.weights, 0.0)
        return Master(g.boxes(shrink), sizes, shares, weights, steps, fixed)

    def _steps(self, size: float) -> int:
        return min(self.encoding.base(int(size)), _FINE)

    def value(self, shares: Floats) -> float:
        """The total MSE / n that the design reaches, before it is rounded."""
        return self.problem(shares, 0.0, self.encoding.fixed_size).solve(certify=False).value

    def at(self, shares: Floats, warm: Design | None = None) -> tuple[Mechanism, Design]:
        """The best mechanism at given shares, and the design it was rounded from; `warm`: at other
        shares.
        """
        fixed = self.encoding.fixed_size
        problem = self.problem(shares, 0.0, fixed)
        design = problem.solve(fixed and warm is None, warm.columns if warm else None)
        return shrinking(lambda shrink: self._rounded(shares, design, shrink)), design

    def _rounded(self, shares: Floats, design: Design, shrink: float) -> Mechanism:
        task, g = self.task, self.groups
        problem = self.problem(shares, shrink, self.encoding.fixed_size)
        mu, _ = problem.master(design.columns, design.shares)
        part, own = problem.chances(design.columns)
        count, b = len(g.sizes), design.columns.b[:, : len(g.sizes)]
        base = np.array([self.encoding.base(int(size)) for size in g.sizes], dtype=float)
        other = np.where(b < 1, np.rint(b * base), 0)
        parts = parts_of(
            task.policy, self.encoding, g.of_level, mu[:, None] * part, own[:, :count], other
        )
        if self.encoding.problem(task.policy.m, len(parts)):
            raise DesignError(
                f"{task.policy.m} items and {len(parts)} parts do not fit into 4 bytes; use bits"
            )
        if not self.encoding.fixed_size:
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

    def bound(self, shares: Floats, design: Design | None) -> Certificate:
        """A lower bound of every mechanism at these shares, or why there is none; the value is not
        known yet.
        """
        notes = []
        if self.task.policy.takes_sets:
            return Certificate(
                0.0, None, "set input is sampled here, which is not the best for sets"
            )
        if self.merged:
            return Certificate(
                0.0, None, f"{len(self.groups.sizes)} groups of budgets stand for more"
            )
        if not self.task.even:
            return Certificate(0.0, None, "the prior is uneven within levels")
        note = self.groups.boxes(0.0).note
        if note:
            return Certificate(0.0, None, note)
        problem = self.problem(shares, 0.0, fixed=True)
        if not problem.provable:
            return Certificate(0.0, None, "there are too many columns to look at all of them")
        if design is None or design.lower_bound is None:
            design = problem.solve()
        if self.task.policy.overrides and not np.isfinite(self.task.pair_budgets).all():
            notes.append(f"among mechanisms with log-ratios up to {boxes_.LARGEST:g}")
        return Certificate(0.0, design.lower_bound, "; ".join(notes))

    def _certified(self, mechanism: Mechanism, bound: Certificate) -> Mechanism:
        notes = [bound.note] if bound.note else []
        if len(set(self.task.weights.tolist())) > 1:
            notes.append("errors weighted as the policy asks")
        value = self.task.score(mechanism)
        return mechanism.certified(Certificate(value, bound.lower_bound, "; ".join(notes)))

    def _minimax(self) -> Mechanism:
        """The design whose largest error over all data is smallest: the value at shares x is
        concave in x, its slope the error if everybody were of one group; the bound at any x is a
        bound of every worst case.
        """
        seen: list[tuple[float, Mechanism, Floats, Design]] = []
        g = self.groups
        first = np.array([g.of_level.index(k) for k in range(len(g.sizes))])

        def value(x: Floats) -> tuple[float, Floats]:
            shares = np.maximum(x, 1e-6) / np.maximum(x, 1e-6).sum()
            try:
                mechanism, design = self.at(shares, seen[-1][3] if seen else None)
            except DesignError:  # shares so uneven that the chances do not fit 32 bits
                return 0.0, np.zeros(len(shares))
            cost = theory.costs(mechanism, self.task.weights)
            slope = g.with_none(cost[first], cost[-1])
            seen.append((float(cost.max()), mechanism, shares, design))
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
        _, best, shares, design = min(seen, key=lambda row: row[0])
        return self._certified(best, self.bound(shares, design))


# ---- many levels ---------------------------------------------------------------------------------


def _many(task: Task, ticket: bool) -> Mechanism:
    """One group per level."""
    groups = Groups(task, tuple(range(len(task.sizes))))
    notion = "min" if task.policy.overrides else task.policy.notion
    eps, t = np.minimum(groups.eps, boxes_.LARGEST), len(task.sizes)
    scales = many.search(eps, groups.sizes, groups.shares[:t], groups.weights, notion)

    def chances(encoding: Encoding, shrink: float) -> many.Draft:
        budgets, steps = eps * (1 - shrink), min(encoding.base(1), _FINE)
        parts = scales.split() if ticket else scales
        found = many.fit(parts, groups.with_none(budgets, budgets.min()), notion, steps)
        if found is None:
            raise GuaranteeError("the scales of the parts do not fit every budget")
        return replace(found, other=found.other * (encoding.base(1) // steps))

    def error(field: Ticket) -> float:
        cost = groups.with_none(groups.sizes * groups.weights, 0.0)
        try:
            return chances(field, 0.0).total(cost, groups.shares, field.q)
        except GuaranteeError:
            return math.inf

    encoding = best_field(task.policy.m, error) if ticket else Bits()

    def rounded(shrink: float) -> Mechanism:
        c = chances(encoding, shrink)
        parts = parts_of(
            task.policy, encoding, groups.of_level, c.chance, c.own[:, :t], c.other[:, :t]
        )
        refuse_silence(task.policy, parts)
        shares = task.whole_shares(groups.shares)
        return Mechanism(
            task.policy,
            "subset",
            encoding,
            groups.of_level,
            parts,
            shares,
            task.padding,
            task.prior_name,
        )

    return shrinking(rounded)


assert _FINE <= D
