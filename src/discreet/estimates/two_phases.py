"""Collect sets without knowing their sizes: a random first group decides the padding, privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays.answers import ragged
from discreet.arrays.randomness import Keystream
from discreet.arrays.tally import Tally
from discreet.arrays.types import Answers, Bools, Ints
from discreet.designs import design
from discreet.errors import DataError, DesignError
from discreet.estimates.estimate import Estimate
from discreet.estimates.padding import (
    STEPS,
    PaddingChoice,
    choose_padding,
    occurrence_shares,
    size_shares,
)
from discreet.mechanism import Mechanism
from discreet.policy import Policy

_PILOT_PADDING = 4


def size_policy(policy: Policy) -> Policy:
    """The policy of the first phase: people report only how many items they have, under the
    smallest budget that binds any pair.
    """
    ends = [step - 1 for step in STEPS[1:]]
    labels = [str(a) if a == b else f"{a} to {b}" for a, b in zip(STEPS[:-1], ends, strict=True)]
    return Policy.from_levels(
        [("size", policy.smallest, [*labels, f"{STEPS[-1]} or more"])],
        question="How many of the items do you have?",
    )


def size_answers(lengths: Sequence[int] | Ints) -> Ints:
    """The answers to `size_policy` of people with these numbers of items."""
    return np.searchsorted(STEPS, lengths, side="right") - 1


@dataclass(frozen=True, eq=False)
class TwoPhases:
    """The result of two phases: the padding, the mechanism of the second phase, and its tally."""

    choice: PaddingChoice
    mechanism: Mechanism
    tally: Tally
    pilot_users: int


def two_phases(
    policy: Policy,
    answers: Answers,
    pilot: float = 0.2,
    model: str | None = None,
    encoding: str | None = None,
    indices: bool = False,
    objective: str = "mse",
    goal: str | None = None,
) -> TwoPhases:
    """Collect sets without knowing their sizes: a random first group decides the padding, the
    others answer with it.

    Everyone sends one report, so no budget is spent twice. One half of the first group reports its
    set size under the smallest budget that binds any pair. The other half reports its set with a
    padding of 4, which shows how concentrated the items are.
    """
    if not 0 < pilot < 1:
        raise DesignError(f"pilot = {pilot} must be a share of the participants between 0 and 1")
    first = design(policy, model, padding=_PILOT_PADDING, encoding=encoding, goal=goal)
    items, offsets = ragged(first, answers, indices)
    n = len(offsets) - 1
    draw = Keystream().uint32(n) / 2**32  # the groups do not depend on the answers
    groups = [
        _people(items, offsets, rows)
        for rows in (draw < pilot / 2, (draw >= pilot / 2) & (draw < pilot), draw >= pilot)
    ]
    (_, size_offsets), sampled, rest = groups
    users = len(rest[1]) - 1
    if len(size_offsets) < 2 or len(sampled[1]) < 2 or users < 1:
        raise DataError(f"{n} people are too few for two phases")
    counter = design(size_policy(policy))
    held = size_answers(np.diff(size_offsets))
    sizes = counter.tally(counter.perturb_many(held, indices=True)).estimate()
    tally = first.tally(first.perturb_many(sampled, indices=True))
    try:
        shares = size_shares(sizes)
    except DataError:  # too few people to see any size: use the pilot's padding
        shares = np.eye(_PILOT_PADDING + 1)[_PILOT_PADDING]
    per_person = float(shares @ np.minimum(np.arange(len(shares)), _PILOT_PADDING))
    popularity = concentration(tally.estimate(), per_person)
    by_size = dict(enumerate(shares))
    choice = choose_padding(policy, by_size, users, popularity, objective, model=model, goal=goal)
    mechanism = design(policy, model, padding=choice.padding, encoding=encoding, goal=goal)
    reports = mechanism.perturb_many(rest, indices=True)
    return TwoPhases(choice, mechanism, mechanism.tally(reports), n - users)


def concentration(estimate: Estimate, per_person: float) -> float:
    """An estimate of sum s_i^2, where s_i are the shares of the occurrences, `per_person` of which
    there are on average.

    It is a mean of the squared counts less their noise and of what Zipf's law gives, weighted by
    the noise of the sum and by Zipf's own value.
    """
    m, n = estimate.mechanism.m, estimate.n * max(per_person, 0.1)
    measured = float((estimate.counts**2 - estimate.stderr**2).sum()) / n**2
    noise = float(np.sqrt(2 * (estimate.stderr**4).sum())) / n**2
    guess = float((occurrence_shares("zipf", m) ** 2).sum())
    weight = guess**2 / (guess**2 + noise**2)
    return max(weight * measured + (1 - weight) * guess, 1 / m)


def _people(items: Ints, offsets: Ints, rows: Bools) -> tuple[Ints, Ints]:
    lengths = np.diff(offsets)
    return items[np.repeat(rows, lengths)], np.concatenate(([0], np.cumsum(lengths[rows])))
