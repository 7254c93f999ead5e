"""One call of `design`: its arguments, validated, and the numbers that all models need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

import numpy as np

from discreet import encodings
from discreet.arrays import theory
from discreet.arrays.types import Floats, Prior, sum_by_place
from discreet.check.exact import D
from discreet.designs.notions import CLOSED, Closed
from discreet.designs.reductions import Levels
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import quoted
from discreet.policy.lazy import cached_property
from discreet.policy.validation import check_padding

MAX_ITEMS = 2**31 - 2
GOALS = ("fair", "total")


class DesignOptions(TypedDict, total=False):
    """The options of `design`."""

    model: str | None
    prior: Prior
    encoding: str | None
    padding: int | None
    certify: bool
    goal: str | None
    sizes: Mapping[int, float] | None


def read_prior(text: str) -> Prior:
    """Read a prior as people write it: uniform, worst, level=share pairs, or a file of shares."""
    if text in ("uniform", "worst"):
        return text
    if text.endswith((".csv", ".json")):
        from discreet.data.files import read_shares

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
    return Task(task.policy, task.prior, encoding, task.padding, task.certify, task.goal)


class Task:
    """A policy to design for, at a prior."""

    def __init__(
        self,
        policy: Policy,
        prior: Prior,
        encoding: str | None,
        padding: int | None,
        certify: bool = False,
        goal: str | None = None,
        people: Floats | None = None,
    ) -> None:
        if encoding is not None and encoding not in encodings.NAMES:
            raise DesignError(
                f"encoding = {quoted(encoding)} must be one of {', '.join(encodings.NAMES)}"
            )
        if policy.m > MAX_ITEMS:
            raise DesignError(
                f"{policy.m} items are more than the {MAX_ITEMS} that a report can name"
            )
        padding = policy.padding if padding is None else padding
        if policy.kind.pads:
            if padding is None:
                raise DesignError(
                    'kind = "set" needs a padding: about the number of items a person has, such '
                    "as padding = 5; `discreet plan --padding auto` finds the best"
                )
            check_padding(padding)
        elif padding is not None:
            raise DesignError(f'padding = {padding} applies to kind = "set" only; leave it out')
        if people is not None and isinstance(prior, str) and prior == "uniform":
            prior = np.full(policy.m, min(1.0, float(people @ np.arange(len(people))) / policy.m))
        # the mechanism has the padding from here on
        self.policy = policy if policy.padding is None else replace(policy, padding=None)
        self.prior, self.encoding, self.padding = prior, encoding, padding
        self.certify = certify  # also where the proof takes minutes
        self.people = people  # shares of people with 0, 1, …, padding items, where they are known
        self.worst = isinstance(prior, str) and prior == "worst"
        self.prior_name = prior if isinstance(prior, str) else "given"
        self.sizes = np.array(policy.level_sizes, dtype=float)
        self.weights = np.array([level.weight for level in policy.levels])
        self.eps = np.array([float(budget) for budget in policy.effective_budgets])
        at = "uniform" if self.worst else prior
        samples = theory.sample_shares(policy, at, padding)
        self.goal = _goal(goal, bool((self.weights != 1).any()), self.worst)
        self.shares = sum_by_place(policy.level_of, samples, len(self.sizes))
        within = samples - (self.shares / self.sizes)[np.array(policy.level_of)]
        # whether all items of a level have the same share
        self.even = bool(np.abs(within).max() <= 1e-9)
        self.empty = max(0.0, 1 - float(self.shares.sum())) if policy.kind.lists else 0.0

    @property
    def fair(self) -> bool:
        """Whether no level may be counted worse than under plain LDP."""
        return self.goal == "fair"

    @property
    def closed(self) -> Closed | None:
        """The closed forms of the notion. None with explicit pairs and for other notions: then the
        table of pair budgets decides.
        """
        return None if self.policy.pair_budgets else CLOSED.get(self.policy.notion)

    @property
    def one_way(self) -> bool:
        """Whether every answer is protected by its own budget alone, whatever the other is."""
        return not self.policy.rule.mutual and not self.policy.pair_budgets

    @property
    def levels(self) -> Levels:
        """The part of the policy that the closed reductions need."""
        return Levels(self.eps, self.sizes, self.policy.notion)

    @cached_property
    def pair_budgets(self) -> Floats:
        """r of every two levels. Only needed where there is no closed form; levels are few then."""
        t = range(len(self.sizes))
        return np.array([[self.policy.pair_epsilon(i, j) for j in t] for i in t])

    @cached_property
    def smallest(self) -> float:
        """The budget of plain LDP: the smallest that binds any pair. Refused if none does."""
        if self.closed is not None or self.one_way or self.policy.m == 1:
            return float(self.eps.min())
        self.refuse_unprotected()
        return float(self.pair_budgets.min())

    def refuse_unprotected(self) -> None:
        """Raise DesignError if the policy protects no pair of answers."""
        if self.closed is not None or self.one_way or self.policy.m == 1:
            return
        binding = self.pair_budgets.copy()
        lone = np.flatnonzero(self.sizes == 1)
        binding[lone, lone] = math.inf  # a lone item has no other item in its level
        if not np.isfinite(binding).any():
            raise DesignError(
                "no pair of levels is protected, so there is nothing to design; protect at least "
                "one pair"
            )

    @property
    def protected_pairs(self) -> Floats:
        """The pair budgets. Refuses a policy without any protected pair."""
        self.refuse_unprotected()
        return self.pair_budgets

    def whole_shares(self, shares: Floats) -> tuple[int, ...]:
        """Turn shares per group, then of empty samples, into integers that sum to 2^32."""
        whole = np.floor(shares / shares.sum() * D).astype(np.int64)
        whole[int(whole.argmax())] += D - int(whole.sum())
        return tuple(whole.tolist())

    def score(self, mechanism: Mechanism) -> float:
        """The error that `subset` minimises."""
        return theory.total_mse(mechanism, self.prior, weighted=True)


def _goal(goal: str | None, weighted: bool, worst: bool) -> str:
    """The goal that was given, or `fair` where it applies."""
    if goal is not None and goal not in GOALS:
        raise DesignError(f"goal = {quoted(goal)} must be one of {', '.join(GOALS)}")
    if goal == "fair" and weighted:
        raise DesignError(
            'goal = "fair" does not apply to a policy with weights, which say themselves how much '
            'a level counts; leave out the weights, or use goal = "total"'
        )
    if goal == "fair" and worst:
        raise DesignError(
            'goal = "fair" compares the levels\' errors at a prior, and prior = "worst" has none; '
            "leave out the goal (the total of the worst case is minimised), or use another prior"
        )
    return goal or ("total" if weighted or worst else "fair")
