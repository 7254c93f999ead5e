"""One call of `design`: its arguments, validated, and what the models share."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet import encodings, theory
from discreet.designs.reductions import Levels
from discreet.errors import DesignError
from discreet.exact import D
from discreet.labels import show
from discreet.mechanism import Mechanism
from discreet.parts import Floats
from discreet.policy import Policy, check_padding

MAX_ITEMS = 2**31 - 2


def read_prior(text: str) -> Any:
    """A prior as people write it: uniform, worst, level=share pairs, or a file of shares."""
    if text in ("uniform", "worst"):
        return text
    if text.endswith((".csv", ".json")):
        from discreet.files import read_shares

        return read_shares(text, "prior")
    try:
        pairs = (pair.split("=") for pair in text.split(","))
        return {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        raise DesignError(
            f'prior = "{text}" must be uniform, worst, level=share,… or a CSV/JSON file of shares'
        ) from None


def replace_encoding(task: Task, encoding: str | None) -> Task:
    """The same task with another encoding."""
    return Task(task.policy, task.prior, encoding, task.padding)


class Task:
    """A policy to design for, at a prior."""

    def __init__(
        self, policy: Policy, prior: Any, encoding: str | None, padding: int | None
    ) -> None:
        if encoding is not None and encoding not in encodings.NAMES:
            raise DesignError(
                f"encoding = {show(encoding)} must be one of {', '.join(encodings.NAMES)}"
            )
        if policy.m > MAX_ITEMS:
            raise DesignError(
                f"{policy.m} items are more than the {MAX_ITEMS} that a report can name"
            )
        padding = policy.padding if padding is None else padding
        if policy.pads:
            if padding is None:
                raise DesignError(
                    'input = "set" needs a padding: about the number of items a person has, such '
                    "as padding = 5; `discreet plan --padding auto` finds the best"
                )
            check_padding(padding)
        elif padding is not None:
            where = 'protect = "set"' if policy.takes_sets else 'input = "set"'
            raise DesignError(f"padding = {padding} applies to {where} only; leave it out")
        self.policy = replace(policy, padding=None)  # it is the mechanism's from here on
        self.prior, self.encoding, self.padding = prior, encoding, padding
        self.worst = isinstance(prior, str) and prior == "worst"
        self.prior_name = prior if isinstance(prior, str) else "given"
        self.sizes = np.array(policy.sizes, dtype=float)
        self.weights = np.array([level.weight for level in policy.levels])
        self.eps = np.array([float(budget) for budget in policy.binding])
        at = "uniform" if self.worst else prior
        samples = theory.sample_shares(policy, at, padding)
        self.shares = np.bincount(policy.level_of, weights=samples, minlength=len(self.sizes))
        within = samples - (self.shares / self.sizes)[np.array(policy.level_of)]
        self.even = bool(np.abs(within).max() <= 1e-9)  # whether items of a level have one share
        self.empty = max(0.0, 1 - float(self.shares.sum())) if policy.takes_sets else 0.0

    @property
    def levels(self) -> Levels:
        """What the closed reductions see of the policy."""
        return Levels(self.eps, self.sizes, self.policy.notion)

    @cached_property
    def pair_budgets(self) -> Floats:
        """r of every two levels; only for policies with explicit pairs, which have few levels."""
        t = range(len(self.sizes))
        return np.array([[self.policy.pair_epsilon(i, j) for j in t] for i in t])

    @cached_property
    def smallest(self) -> float:
        """The budget of plain LDP: the smallest that binds any pair."""
        if not self.policy.overrides or self.policy.m == 1:
            return float(self.eps.min())
        binding = self.pair_budgets.copy()
        lone = np.flatnonzero(self.sizes == 1)
        binding[lone, lone] = math.inf  # a lone item has nothing of its level to be told from
        if not np.isfinite(binding).any():
            raise DesignError(
                "no pair of levels is protected, so there is nothing to design; protect at least "
                "one pair"
            )
        return float(self.pair_budgets.min())

    @property
    def protected_pairs(self) -> Floats:
        """The pair budgets; refused where none of them protects anything."""
        assert self.smallest > 0  # asking for it is what refuses
        return self.pair_budgets

    def whole_shares(self, shares: Floats) -> tuple[int, ...]:
        """Shares per group (then of empty samples) as integers that sum to 2^32."""
        whole = np.floor(shares / shares.sum() * D).astype(np.int64)
        whole[int(whole.argmax())] += D - int(whole.sum())
        return tuple(whole.tolist())

    def score(self, mechanism: Mechanism) -> float:
        """What `subset` minimises."""
        return theory.total_mse(mechanism, self.prior, weighted=True)
