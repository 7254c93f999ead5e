"""`goal = "fair"`: the least total error such that no level is counted worse than under plain LDP.

Plain LDP of the same kind is the same model with all items in one level, at the smallest budget
that binds any pair: `ss` for single answers, independent items for bits of many items and for
tickets, hits for sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import theory
from discreet.arrays.types import Floats
from discreet.check.certificate import Certificate
from discreet.designs.task import Task
from discreet.mechanism import Mechanism, denominators
from discreet.policy import Policy

SAME = 1e-6  # relative: an error this much above plain LDP's is not worse
_TRIES = 4
_MOST = 0.05  # above it, aiming lower does not help

Model = Callable[[Task], Mechanism]


@dataclass(frozen=True, eq=False)
class Limits:
    """The errors that no level may exceed: those of plain LDP. The search aims below them by the
    share `tight`, for what rounding adds.
    """

    plain: Mechanism
    variance: Floats  # Var / n of an item, per level
    absent: Floats  # the same of a sampled item that nobody holds
    task: Task
    tight: float = 0.0

    @classmethod
    def for_model(cls, task: Task, model: Model) -> Limits:
        """The limits of a model for a task."""
        made = design_plain(task, model)
        variance = theory.level_variance(made, task.prior)
        absent = theory.absent_variance(made, task.prior) / made.scale**2
        return cls(made, variance, absent, task)

    def excess(self, mechanism: Mechanism) -> float:
        """How much the worst level is above its limit, relative."""
        variance = theory.level_variance(mechanism, self.task.prior)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(variance <= self.variance, 0.0, variance / self.variance - 1)
        return float(ratio.max())

    def keeps(self, mechanism: Mechanism) -> bool:
        """Whether no level is counted worse than under plain LDP."""
        return self.excess(mechanism) <= SAME


def fair(task: Task, model: Model, design: Callable[[Limits], Mechanism]) -> Mechanism:
    """The mechanism that `design` makes within the limits of a model; plain LDP if it cannot."""
    limits = Limits.for_model(task, model)
    for _ in range(_TRIES):
        made = design(limits)
        excess = limits.excess(made)
        if excess <= SAME:
            return made
        if excess > _MOST:
            break
        limits = replace(limits, tight=limits.tight + 1.1 * excess)
    certificate = made.certificate or Certificate(0.0, None)
    same = replace(limits.plain, model=made.model)
    return same.certified(replace(certificate, value=task.score(same)))


def design_plain(task: Task, model: Model) -> Mechanism:
    """Plain LDP of the kind of a model, as a mechanism of the task's policy."""
    policy = task.policy
    flat = Policy.from_levels([("all", task.smallest, policy.items)], kind=str(policy.kind))
    prior = theory.item_shares(policy, task.prior, task.padding).tolist()
    alone = model(Task(flat, prior, task.encoding, task.padding, goal="total"))
    groups = (0,) * len(policy.levels)
    over = denominators(alone.encoding, groups, policy)
    parts = tuple(alone.encoding.part(part.document(), over, groups) for part in alone.parts)
    return replace(alone, policy=policy, groups=groups, parts=parts, prior=task.prior_name)
