"""From a policy to a mechanism: the models. To add one, write a function of a Task and name it in
the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from threadpoolctl import threadpool_limits

from discreet.arrays.types import Prior
from discreet.designs import each, hits, plain, sets, unary
from discreet.designs.set_subset import shares_by_size
from discreet.designs.task import Task
from discreet.encodings.hits import unfit_for_hits
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy

_MODELS: dict[str, Callable[[Task], Mechanism]] = {
    "subset": sets.subset,
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
BASELINES = (
    "ss",
    "grr",
    "rappor",
    "oue",
    "strict",
)  # plain LDP; "strict" is whole lists at one budget
_FOR_SETS, _FOR_SINGLES = ("hits", "each"), ("grr", "ss")  # only for these
_OF_ITEMS = {"each": each.each, "rappor": each.rappor}  # every item a question of its own


def design(
    policy: Policy,
    model: str | None = None,
    prior: Prior = "uniform",
    encoding: str | None = None,
    padding: int | None = None,
    certify: bool = False,
    goal: str | None = None,
    sizes: Mapping[int, float] | None = None,
) -> Mechanism:
    """Design the mechanism of a model for a policy, and check it exactly.

    `model` is subset (the default for single answers; its certificate says how close it is to the
    best possible), hits (for sets, notion `min`), each (for sets in which every item is protected
    on its own), opt0, opt1, opt2 (the paper's), rappor, oue, grr or ss (plain LDP). The default is
    `default_model`. For sets it is subset where its error is below that of hits and its reports
    have at most 16 bytes, or at most twice those of hits.

    `prior` is the expected share of participants: uniform, worst (for the smallest worst case), or
    given per item or level. `encoding` is bits or ticket (4 bytes). By default subset sends bits up
    to 1,000 items and tickets beyond; the other models send bits. `padding`, for sets, replaces the
    policy's. `certify` proves how close a design is to the best possible, even if that takes
    minutes: for sets, and for scales of more than 20 points. `sizes`, for sets, are shares of
    people by number of items, such as {1: 0.6, 2: 0.4}: subset is then best for these.

    `goal` is what subset and hits minimise: "fair" (the least total error such that no level is
    counted worse than under plain LDP) or "total" (the least total error). It is fair unless the
    policy has weights or the prior is worst; those are for the total. The other models keep their
    own objective.

    >>> policy = Policy.from_levels([("serious", "ln(4)", ["HIV"]),
    ...     ("common", "ln(6)", ["anemia", "headache", "stomachache", "toothache"])])
    >>> mechanism = design(policy)
    >>> round(mechanism.expected_mse(), 3), mechanism.certificate.gap < 1e-6
    (3.686, True)
    >>> total = design(policy, goal="total")
    >>> round(total.expected_mse(), 3), total.certificate.sentence
    (3.568, 'the best possible for this guarantee and prior')
    >>> round(design(policy, "opt0").worst_case_mse, 4)
    8.5675
    """
    if not isinstance(policy, Policy):
        raise DesignError(
            f"design takes a Policy, got {type(policy).__name__}; Policy.load reads a file, "
            "Policy.from_levels makes one"
        )
    people = None if sizes is None else shares_by_size(sizes, padding or policy.padding)
    task = Task(policy, prior, encoding, padding, certify, goal, people)
    if model is None and default_model(policy, task.padding, encoding) == "hits":
        with threadpool_limits(1, "blas"):
            return sets.best_for_sets(task)
    return _make(task, default_model(policy, task.padding, encoding) if model is None else model)


def why(
    policy: Policy, chosen: Mechanism, prior: Prior = "uniform", goal: str | None = None
) -> str:
    """Why a mechanism for sets is of its model, in a line; empty where there is no choice."""
    if default_model(policy, chosen.padding) != "hits":
        return ""
    with threadpool_limits(1, "blas"):
        return sets.comparison(Task(policy, prior, None, chosen.padding, goal=goal), chosen)


def _make(task: Task, model: str) -> Mechanism:
    """The mechanism of a model for a task whose policy and options are validated."""
    policy = task.policy
    if model not in _MODELS:
        raise DesignError(f'model = "{model}" does not exist; the models are {", ".join(MODELS)}')
    by_item = policy.kind.alone
    models = _OF_ITEMS if by_item else _MODELS
    if model not in models or (model == "each" and not by_item):
        raise DesignError(
            f'model = "{model}" does not fit kind = "{policy.kind}"; the models that do are '
            f"{', '.join(allowed(policy, task.padding))}"
        )
    # the matrices are small, so threads would only slow each other down
    with threadpool_limits(1, "blas"):
        return models[model](task)


def default_model(policy: Policy, padding: int | None, encoding: str | None = None) -> str:
    """The best model for a policy.

    It is `each` if every item is protected on its own. It is `hits`, or picks where they are better
    (sets.py), for sets of two and more items, where that applies and no encoding is asked for.
    Otherwise it is `subset`.
    """
    if policy.kind.alone:
        return "each"
    several = padding is not None and padding > 1 and encoding is None
    return "hits" if several and not unfit_for_hits(policy, padding) else "subset"


def alternatives(
    policy: Policy,
    prior: Prior = "uniform",
    padding: int | None = None,
    goal: str | None = None,
) -> dict[str, Mechanism]:
    """The mechanism of every model that the policy's kind allows, by name."""
    padding = policy.padding if padding is None else padding
    task = Task(policy, prior, None, padding, goal=goal)
    mechanisms = {name: _make(task, name) for name in allowed(policy, padding)}
    return mechanisms | _strict(policy, prior, padding)


def allowed(policy: Policy, padding: int | None = None) -> tuple[str, ...]:
    """The models that the policy and the padding allow."""
    if policy.kind.alone:
        return tuple(_OF_ITEMS)
    others = _FOR_SINGLES if policy.kind.lists else _FOR_SETS
    unfit = ("each", "hits") if unfit_for_hits(policy, padding) else ("each",)
    return tuple(name for name in _MODELS if name not in (*others, *unfit))


def best_plain(policy: Policy, prior: Prior = "uniform", padding: int | None = None) -> Mechanism:
    """The plain-LDP mechanism with the smallest expected error: what you would use without
    levels.
    """
    return pick_best(plains(policy, prior, padding), prior)


def plains(
    policy: Policy, prior: Prior = "uniform", padding: int | None = None
) -> dict[str, Mechanism]:
    """Every plain-LDP mechanism that the policy's kind allows, by name."""
    padding = policy.padding if padding is None else padding
    names = [name for name in BASELINES if name in allowed(policy, padding)]
    task = Task(policy, prior, None, padding)
    mechanisms = {name: _make(task, name) for name in names}
    return mechanisms | _strict(policy, prior, padding)


def _strict(policy: Policy, prior: Prior, padding: int | None) -> dict[str, Mechanism]:
    """Whole lists at the smallest budget: the baseline that shows what levels gain for sets."""
    if unfit_for_hits(policy, padding):
        return {}
    task = Task(replace(policy, strict=True), prior, None, padding)
    with threadpool_limits(1, "blas"):
        mechanism = sets.best_for_sets(task)
    return {"strict": replace(mechanism, model="strict", certificate=None)}


def pick_best(mechanisms: Mapping[str, Mechanism], prior: Prior = "uniform") -> Mechanism:
    """The mechanism with the smallest expected error."""
    return min(mechanisms.values(), key=lambda mechanism: mechanism.expected_mse(prior))
