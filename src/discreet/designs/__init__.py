"""From a policy to a mechanism: the models. To add one: a function of a Task, and its name in the
table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from discreet.designs import each, hits, plain, unary
from discreet.designs.subset import subset
from discreet.designs.task import Task
from discreet.encodings.hits import unfit_for_hits
from discreet.errors import DesignError
from discreet.mechanism import Mechanism, is_document
from discreet.policy import Policy

_MODELS: dict[str, Callable[[Task], Mechanism]] = {
    "subset": subset,
    "hits": hits.hits,
    "each": each.each,
    "opt0": unary.opt0,
    "opt1": unary.opt1,
    "opt2": unary.opt2,
    "rappor": unary.rappor,
    "oue": unary.oue,
    "grr": plain.grr,
    "ss": plain.ss,
}
MODELS = tuple(_MODELS)
BASELINES = ("ss", "grr", "rappor", "oue", "strict")  # plain LDP; the last: hits, strictly
_FOR_SETS, _FOR_SINGLES = ("hits", "each"), ("grr", "ss")  # only
_OF_ITEMS = {"each": each.each, "rappor": each.rappor}  # every item a question of its own


def design(
    policy: Policy,
    model: str | None = None,
    prior: Any = "uniform",
    encoding: str | None = None,
    padding: int | None = None,
) -> Mechanism:
    """The mechanism of a model for a policy, checked exactly.

    `model`: subset (the best possible for single answers), hits (for sets, notion `min`), each (for
    sets of which every item is protected on its own), opt0, opt1, opt2 (the paper's), rappor, oue,
    grr, ss (plain LDP); by default the one that fits best (`default_model`).
    `prior`: the shares of participants that are expected: uniform, worst (the smallest worst case),
    or given per item or level. `encoding`: bits or ticket (4 bytes); by default subset sends bits
    up to 1,000 items and tickets beyond, the others bits. `padding`: for set input, instead of the
    policy's.

    >>> policy = Policy.from_levels([("serious", "ln(4)", ["HIV"]),
    ...     ("common", "ln(6)", ["anemia", "headache", "stomachache", "toothache"])])
    >>> mechanism = design(policy)
    >>> round(mechanism.expected_mse(), 3), mechanism.certificate.sentence
    (3.568, 'the best possible for this guarantee and prior')
    >>> round(design(policy, "opt0").worst_case_mse, 4)
    8.5675
    """
    if not isinstance(policy, Policy):
        raise DesignError(
            f"design takes a Policy, got {type(policy).__name__}; Policy.load reads a file, "
            "Policy.from_levels makes one"
        )
    task = Task(policy, prior, encoding, padding)
    model = default_model(policy, task.padding, encoding) if model is None else model
    if model not in _MODELS:
        raise DesignError(f'model = "{model}" does not exist; the models are {", ".join(MODELS)}')
    by_item = policy.takes_sets and not policy.pads
    models = _OF_ITEMS if by_item else _MODELS
    if model not in models or (model == "each" and not by_item):
        raise DesignError(
            f'model = "{model}" does not fit protect = "{policy.protect}"; the models that do are '
            f"{', '.join(allowed(policy, task.padding))}"
        )
    # the matrices are small: threads only get in each other's way
    with threadpool_limits(1, "blas"):
        return models[model](task)


def default_model(policy: Policy, padding: int | None, encoding: str | None = None) -> str:
    """What is best for a policy: `each` where every item is protected on its own, `hits` for sets
    of two and more items where it applies and no other encoding is asked for, else `subset`.
    """
    if policy.takes_sets and not policy.pads:
        return "each"
    many = padding is not None and padding > 1 and encoding is None
    return "hits" if many and not unfit_for_hits(policy, padding) else "subset"


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
    padding = policy.padding if padding is None else padding
    found = {name: design(policy, name, prior, None, padding) for name in allowed(policy, padding)}
    return found | _strict(policy, prior, padding)


def allowed(policy: Policy, padding: int | None = None) -> tuple[str, ...]:
    """The models that the policy and the padding allow."""
    if policy.takes_sets and not policy.pads:
        return tuple(_OF_ITEMS)
    others = _FOR_SINGLES if policy.takes_sets else _FOR_SETS
    unfit = ("each", "hits") if unfit_for_hits(policy, padding) else ("each",)
    return tuple(name for name in _MODELS if name not in (*others, *unfit))


def best_plain(policy: Policy, prior: Any = "uniform", padding: int | None = None) -> Mechanism:
    """The plain-LDP mechanism with the smallest expected error: what one would use
    without levels.
    """
    return best_of(plains(policy, prior, padding), prior)


def plains(
    policy: Policy, prior: Any = "uniform", padding: int | None = None
) -> dict[str, Mechanism]:
    """Every plain-LDP mechanism that the policy's input allows, by name."""
    padding = policy.padding if padding is None else padding
    names = [name for name in BASELINES if name in allowed(policy, padding)]
    found = {name: design(policy, name, prior, None, padding) for name in names}
    return found | _strict(policy, prior, padding)


def _strict(policy: Policy, prior: Any, padding: int | None) -> dict[str, Mechanism]:
    """What levels bring for sets is seen against hits at the smallest budget."""
    if unfit_for_hits(policy, padding):
        return {}
    found = design(replace(policy, strict=True), "hits", prior, None, padding)
    return {"strict": replace(found, model="strict", certificate=None)}


def best_of(mechanisms: Mapping[str, Mechanism], prior: Any = "uniform") -> Mechanism:
    """The one with the smallest expected error."""
    return min(mechanisms.values(), key=lambda mechanism: mechanism.expected_mse(prior))
