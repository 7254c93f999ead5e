"""From a policy to a mechanism: the models. To add one: a function of a Task, and its name in the table below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.designs import plain, reductions
from discreet.designs.rounding import unary
from discreet.designs.subset import best_field, subset
from discreet.designs.task import Task
from discreet.encodings import Bits, Ticket
from discreet.errors import DesignError
from discreet.mechanism import Certificate, Floats, Mechanism
from discreet.policy import Policy

Unary = tuple[Floats, Floats]  # u = ln(a/b) and w = ln((1-b)/(1-a)), per level or of all


def _one_part(model: str, solve: Callable[[Task], Unary]) -> Callable[[Task], Mechanism]:
    """A model with one part of independent items, from its u and w."""

    def make(task: Task) -> Mechanism:
        u, w = solve(task)
        t = len(task.sizes)
        groups = tuple(range(t)) if len(u) == t else (0,) * t
        shares = np.bincount(groups, weights=task.shares)
        whole = task.whole_shares(np.append(shares, task.empty) if task.padding else shares)

        def of(encoding: Bits | Ticket) -> Mechanism:
            parts = unary(task.policy, encoding, groups, u, w)
            return Mechanism(
                task.policy, model, encoding, groups, parts, whole, task.padding, task.prior_name
            )

        if task.encoding != "ticket":
            return of(Bits())
        return of(best_field(task.policy.m, lambda field: task.score(of(field))))

    return make


def _opt0(task: Task) -> Mechanism:
    """The paper's optimum, found and certified for its own objective: the worst case of one pair (a, b) per level."""
    if not task.policy.pairs:
        u, w, value, bound = reductions.opt0(task.levels)
    else:
        from discreet.designs import program

        task.smallest  # noqa: B018  refuses a policy without any protected pair
        u, w = program.solve(task.pair_budgets, task.sizes, "opt0")
        value, bound = program.certify(task.pair_budgets, task.sizes, u, w)
    note = f"among one pair (a, b) per level, by the worst case: {value:.6g}, proven lower bound {bound:.6g}"
    found = _one_part("opt0", lambda _: (u, w))(task)
    return found.certified(Certificate(task.score(found), None, note))


def _reduced(model: str) -> Callable[[Task], Unary]:
    def solve(task: Task) -> Unary:
        if task.policy.pairs:
            from discreet.designs import program

            task.smallest  # noqa: B018
            return program.solve(task.pair_budgets, task.sizes, model)
        return (reductions.opt1 if model == "opt1" else reductions.opt2)(task.levels)

    return solve


_MODELS: dict[str, Callable[[Task], Mechanism]] = {
    "subset": subset,
    "opt0": _opt0,
    "opt1": _one_part("opt1", _reduced("opt1")),
    "opt2": _one_part("opt2", _reduced("opt2")),
    "rappor": _one_part("rappor", plain.rappor),
    "oue": _one_part("oue", plain.oue),
    "grr": plain.grr,
    "ss": plain.ss,
}
MODELS = tuple(_MODELS)
BASELINES = ("ss", "grr", "rappor", "oue")  # plain LDP
SETS = tuple(name for name in MODELS if name not in ("grr", "ss"))  # models that take sets


def design(
    policy: Policy,
    model: str = "subset",
    prior: Any = "uniform",
    encoding: str | None = None,
    padding: int | None = None,
) -> Mechanism:
    """The mechanism of a model for a policy, checked exactly.

    `model`: subset (the best possible), opt0, opt1, opt2 (the paper's), rappor, oue, grr, ss (plain LDP).
    `prior`: the shares of participants that subset expects: uniform, worst (the smallest worst case), or given per item or
    level. `encoding`: bits or ticket (4 bytes); by default subset sends bits up to 1,000 items and tickets beyond, the
    others bits. `padding`: for set input, instead of the policy's.

    >>> policy = Policy.from_levels([("serious", "ln(4)", ["HIV"]),
    ...     ("common", "ln(6)", ["anemia", "headache", "stomachache", "toothache"])])
    >>> mechanism = design(policy)
    >>> round(mechanism.expected_mse(), 3), mechanism.certificate.sentence
    (3.568, 'the best possible for this guarantee and prior')
    >>> round(design(policy, "opt0").worst_case_mse, 4)
    8.5675
    """
    if model not in _MODELS:
        raise DesignError(f'model = "{model}" does not exist; the models are {", ".join(MODELS)}')
    return _MODELS[model](Task(policy, prior, encoding, padding))


def alternatives(
    policy: Policy, prior: Any = "uniform", padding: int | None = None
) -> dict[str, Mechanism]:
    """Every model that the policy's input allows, by name, for comparison."""
    return {name: design(policy, name, prior, None, padding) for name in allowed(policy)}


def allowed(policy: Policy) -> tuple[str, ...]:
    """The models that the policy's input allows."""
    return SETS if policy.takes_sets else MODELS


def best_plain(policy: Policy, prior: Any = "uniform", padding: int | None = None) -> Mechanism:
    """The plain-LDP mechanism with the smallest expected error: what one would use without levels."""
    names = [name for name in BASELINES if name in allowed(policy)]
    found = [design(policy, name, prior, None, padding) for name in names]
    return min(found, key=lambda mechanism: mechanism.expected_mse(prior))
