"""From a policy to a mechanism: the models. To add one: a function of a Task, and its name in the
table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from threadpoolctl import threadpool_limits

from discreet.designs import plain, unary
from discreet.designs.subset import subset
from discreet.designs.task import Task
from discreet.errors import DesignError
from discreet.mechanism import Mechanism, is_document
from discreet.policy import Policy

_MODELS: dict[str, Callable[[Task], Mechanism]] = {
    "subset": subset,
    "opt0": unary.opt0,
    "opt1": unary.opt1,
    "opt2": unary.opt2,
    "rappor": unary.rappor,
    "oue": unary.oue,
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

    `model`: subset (the best possible), opt0, opt1, opt2 (the paper's), rappor, oue, grr, ss (plain
    LDP). `prior`: the shares of participants that subset expects: uniform, worst (the smallest
    worst case), or given per item or level. `encoding`: bits or ticket (4 bytes); by default subset
    sends bits up to 1,000 items and tickets beyond, the others bits. `padding`: for set input,
    instead of the policy's.

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
    # the matrices are small: threads only get in each other's way
    with threadpool_limits(1, "blas"):
        return _MODELS[model](Task(policy, prior, encoding, padding))


def from_file(path: str, **wishes: Any) -> Mechanism:
    """The mechanism of a file: itself, or designed from a policy as `design` is asked to."""
    if not is_document(path):
        return design(Policy.load(path), **wishes)
    if wishes:
        raise DesignError(f"{path} is a mechanism: {', '.join(wishes)} is for policies")
    return Mechanism.load(path)


def alternatives(
    policy: Policy, prior: Any = "uniform", padding: int | None = None
) -> dict[str, Mechanism]:
    """Every model that the policy's input allows, by name, for comparison."""
    return {name: design(policy, name, prior, None, padding) for name in allowed(policy)}


def allowed(policy: Policy) -> tuple[str, ...]:
    """The models that the policy's input allows."""
    return SETS if policy.takes_sets else MODELS


def best_plain(policy: Policy, prior: Any = "uniform", padding: int | None = None) -> Mechanism:
    """The plain-LDP mechanism with the smallest expected error: what one would use
    without levels.
    """
    return best_of(plains(policy, prior, padding), prior)


def plains(
    policy: Policy, prior: Any = "uniform", padding: int | None = None
) -> dict[str, Mechanism]:
    """Every plain-LDP mechanism that the policy's input allows, by name."""
    names = [name for name in BASELINES if name in allowed(policy)]
    return {name: design(policy, name, prior, None, padding) for name in names}


def best_of(mechanisms: Mapping[str, Mechanism], prior: Any = "uniform") -> Mechanism:
    """The one with the smallest expected error."""
    return min(mechanisms.values(), key=lambda mechanism: mechanism.expected_mse(prior))
