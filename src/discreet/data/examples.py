"""The policies that come with discreet, and made-up answers to any policy."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from discreet.policy import Policy

_TYPICAL = 4  # items of a made-up person who may name several, on average


def example(name: str) -> Policy:
    """A policy that comes with discreet: "health-survey", "workplace" or "toy".

    >>> example("toy").items[0]
    'HIV'
    """
    return Policy.load(Path(str(files("discreet") / "data" / f"{name}.toml")))


def made_up_answers(policy: Policy, people: int) -> Sequence[Any]:
    """Make up answers with a power law: an index per person, or a list of them. The answers have a
    fixed seed; perturbation never has one.

    >>> len(made_up_answers(example("toy"), 100))
    100
    """
    rng = np.random.default_rng(2020)
    popularity = 1 / np.arange(1, policy.m + 1) ** 0.8
    order = rng.permutation(policy.m)

    def draw(count: int) -> Any:
        return rng.choice(order, count, p=popularity / popularity.sum())

    if not policy.kind.lists:
        return draw(people)
    sizes = np.minimum(rng.poisson(_TYPICAL, people), policy.m)
    items = draw(int(sizes.sum()))
    return [sorted({*map(int, part)}) for part in np.split(items, np.cumsum(sizes)[:-1])]
