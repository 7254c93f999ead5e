"""Models of one part of independent items, from u = ln(a/b) and w = ln((1-b)/(1-a)): the paper's
and plain LDP's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays.types import Floats, sum_by_place
from discreet.check.certificate import Certificate
from discreet.check.parts import Part
from discreet.designs import plain, reductions
from discreet.designs.fields import best_field
from discreet.designs.rounding import unary
from discreet.designs.task import Task
from discreet.encodings import Bits, Encoding
from discreet.mechanism import Mechanism

Unary = tuple[Floats, Floats]  # u and w, per level or one for all


def one_part(model: str, solve: Callable[[Task], Unary]) -> Callable[[Task], Mechanism]:
    """The model of one part whose u and w `solve` gives."""

    def make(task: Task) -> Mechanism:
        u, w = solve(task)
        t = len(task.sizes)
        groups = tuple(range(t)) if len(u) == t else (0,) * t
        shares = sum_by_place(groups, task.shares, len(u))
        whole = task.whole_shares(np.append(shares, task.empty) if task.padding else shares)

        def make_with(encoding: Encoding) -> Mechanism:
            def of_parts(parts: tuple[Part, ...]) -> Mechanism:
                prior = task.prior_name
                return Mechanism(
                    task.policy, model, encoding, groups, parts, whole, task.padding, prior
                )

            return unary(of_parts, task.policy, encoding, groups, u, w)

        if task.encoding != "ticket":
            return make_with(Bits())
        # the steps of b cost at first order here, so more fields are tried
        field = best_field(task.policy.m, lambda q: task.score(make_with(q)), growth=1.1)
        return make_with(field)

    return make


def opt0(task: Task) -> Mechanism:
    """The paper's optimum: one pair (a, b) per level with the least worst case, proved for that
    objective.
    """
    if task.closed is not None:
        u, w, value, bound = reductions.opt0(task.levels)
    else:
        from discreet.designs import program

        u, w = program.solve(task.protected_pairs, task.sizes, "opt0")
        value, bound = program.certify(task.protected_pairs, task.sizes, u, w)
    note = "the best single pair (a, b) per level by the worst case of one answer: "
    note += f"{value:.6g}, proved to be at least {bound:.6g}"
    mechanism = one_part("opt0", lambda _: (u, w))(task)
    return mechanism.certified(Certificate(task.score(mechanism), None, note))


def _reduced(model: str) -> Callable[[Task], Unary]:
    def solve(task: Task) -> Unary:
        if task.closed is None:
            from discreet.designs import program

            return program.solve(task.protected_pairs, task.sizes, model)
        return (reductions.opt1 if model == "opt1" else reductions.opt2)(task.levels)

    return solve


opt1 = one_part("opt1", _reduced("opt1"))
opt2 = one_part("opt2", _reduced("opt2"))
rappor = one_part("rappor", plain.rappor)
oue = one_part("oue", plain.oue)
