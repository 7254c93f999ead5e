"""Every item a question of its own (protect = "item"): randomised response, u = w = epsilon."""

from __future__ import annotations

import numpy as np

from discreet.designs.rounding import refuse_silence, unary
from discreet.designs.task import Task
from discreet.encodings import Each
from discreet.errors import DesignError
from discreet.mechanism import Certificate, Mechanism
from discreet.parts import Floats


def each(task: Task) -> Mechanism:
    """Every item at its own level's budget: the least variance of an unbiased count of one item."""
    alike: dict[float, int] = {}
    groups = tuple(alike.setdefault(e, len(alike)) for e in task.eps.tolist())
    made = _asked(task, "each", groups, np.array(list(alike)))
    note = "every item is asked on its own; whole sets are not protected as one"
    return made.certified(Certificate(task.score(made), None, note))


def rappor(task: Task) -> Mechanism:
    """Every item at the smallest budget: what one would use without levels."""
    return _asked(task, "rappor", (0,) * len(task.eps), np.array([task.smallest]))


def _asked(task: Task, model: str, groups: tuple[int, ...], eps: Floats) -> Mechanism:
    if task.encoding == "ticket":
        raise DesignError(
            'encoding = "ticket" names items of one answer, and protect = "item" asks every item; '
            "leave it out"
        )
    parts = unary(task.policy, Each(), groups, eps, eps)
    refuse_silence(task.policy, parts)
    shares = np.append(np.bincount(groups, weights=task.shares), task.empty)
    return Mechanism(
        task.policy, model, Each(), groups, parts, task.whole_shares(shares), None, task.prior_name
    )
