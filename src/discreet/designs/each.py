"""Every item a question of its own (kind = "each"): randomised response, u = w = epsilon. One-way,
who has an item always names it, and who does not with chance e^-epsilon (Mangat 1994).
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import theory
from discreet.arrays.types import Floats, sum_by_place
from discreet.check.certificate import Certificate
from discreet.check.exact import D
from discreet.check.parts import Part
from discreet.designs.rounding import SHRINKS, make_parts, shrink_until_checked, unary
from discreet.designs.set_bound import one_by_one
from discreet.designs.task import Task
from discreet.encodings import Each
from discreet.errors import DesignError
from discreet.mechanism import Mechanism


def each(task: Task) -> Mechanism:
    """Every item at its own level's budget: the least variance of any unbiased count."""
    alike: dict[float, int] = {}
    groups = tuple(alike.setdefault(e, len(alike)) for e in task.eps.tolist())
    made = _ask_each(task, "each", groups, np.array(list(alike)), task.policy.is_mutual)
    absent = None if task.policy.is_mutual else 1 - _held(task) * (not task.worst)
    bound = one_by_one(task.sizes, task.eps, task.weights, absent)
    return made.certified(Certificate(task.score(made), bound, _NOTE))


_NOTE = (
    "whatever people have: no unbiased mechanism with the same promise for every item has less "
    "error; whole sets are not protected as one"
)


def _held(task: Task) -> Floats:
    """The expected share of people with an item, per level."""
    held = theory.item_shares(task.policy, "uniform" if task.worst else task.prior)
    return sum_by_place(task.policy.level_of, held, len(task.sizes)) / task.sizes


def rappor(task: Task) -> Mechanism:
    """Every item at the smallest budget: the choice without levels."""
    return _ask_each(task, "rappor", (0,) * len(task.eps), np.array([task.smallest]), mutual=True)


def _ask_each(
    task: Task, model: str, groups: tuple[int, ...], eps: Floats, mutual: bool
) -> Mechanism:
    if task.encoding == "ticket":
        raise DesignError(
            'encoding = "ticket" names items of one answer, and kind = "each" asks every item; '
            "leave it out"
        )
    shares = np.append(sum_by_place(groups, task.shares, len(eps)), task.empty)
    whole = task.whole_shares(shares)

    def make(parts: tuple[Part, ...]) -> Mechanism:
        return Mechanism(task.policy, model, Each(), groups, parts, whole, None, task.prior_name)

    if not mutual:
        one = np.ones((1, len(eps) + 1))
        own = np.ones((1, len(eps)))
        return shrink_until_checked(
            lambda shrink: make(
                make_parts(
                    task.policy,
                    Each(),
                    groups,
                    one,
                    own,
                    np.ceil(D * np.exp(-eps[None] * (1 - shrink))).clip(1, D - 1),
                )
            ),
            (0.0, *SHRINKS),
        )
    return unary(make, task.policy, Each(), groups, eps, eps)
