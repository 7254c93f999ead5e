"""Choosing the padding length of set input: the paper's future work.

The total MSE of a padding ell is bias^2 + variance. Both need only how many people have how many
items, and how concentrated the items are: a person with k > ell items is counted with ell / k for
each, so the item with a share s_i of all occurrences misses s_i sum_k N_k (k - ell)+ people, and
sum s_i^2 (the concentration) turns that into a squared error. The variance grows with ell^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import perturb, theory
from discreet.designs import design
from discreet.errors import DataError, DesignError
from discreet.estimate import Estimate
from discreet.mechanism import Floats, Mechanism
from discreet.policy import Policy
from discreet.randomness import Keystream
from discreet.tally import Tally

LARGEST = 64  # paddings above this are not tried
STEPS = (0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 26, 41)  # set sizes are reported as one of these ranges
_PILOT_PADDING = 4


@dataclass(frozen=True)
class PaddingChoice:
    """The padding with the smallest expected error, and the curve: expected[k] is the error at
    paddings[k].
    """

    padding: int
    paddings: NDArray[np.int64]
    expected: Floats
    objective: str

    @property
    def curve(self) -> dict[int, float]:
        """Expected error by padding."""
        return dict(zip(self.paddings.tolist(), self.expected.tolist(), strict=True))


def read_padding(
    policy: Policy, users: int, padding: str | None, sizes: Any, popularity: str
) -> tuple[int | None, PaddingChoice | None]:
    """A padding as people write it: a whole number, or `auto` for so many users with these sizes,
    and then the choice that was made.
    """
    if padding is None:
        return None, None
    if padding != "auto":
        try:
            return int(padding), None
        except ValueError:
            raise DesignError(f'padding = "{padding}" must be a whole number or auto') from None
    if sizes is None:
        raise DesignError("--padding auto needs --sizes: how many items people have (size,share)")
    known: Any = popularity
    if popularity != "zipf":
        try:
            known = float(popularity)
        except ValueError:
            raise DesignError(
                f'popularity = "{popularity}" must be zipf or a number between 0 and 1'
            ) from None
    choice = choose_padding(policy, sizes, users, popularity=known)
    return choice.padding, choice


def choose_padding(
    policy: Policy,
    sizes: Any,
    users: int,
    popularity: Any = "zipf",
    objective: str = "mse",
    k: int = 20,
    model: str = "subset",
    prior: Any = "uniform",
) -> PaddingChoice:
    """The padding that minimises the expected total MSE / n (or, `objective="relative"`, the
    relative error of the top k).

    `sizes`: how many items people have: shares by size (a mapping), one number per person, or the
    Estimate of a collection with `size_policy`. `popularity`: shares of the occurrences per item
    (any order), their concentration sum s^2 as one number, or "zipf" where nothing is known. It
    matters: how much a person who is undercounted costs depends on it.

    >>> policy = Policy.from_levels([("a", 4, [f"i{k}" for k in range(200)])], input="set")
    >>> choose_padding(policy, {1: 0.2, 5: 0.8}, users=100_000).padding
    5
    """
    if not policy.takes_sets:
        raise DesignError('choose_padding is for input = "set"; single answers need no padding')
    if users < 1:
        raise DesignError(f"users = {users} must be at least 1")
    if objective not in ("mse", "relative"):
        raise DesignError(f'objective = "{objective}" must be mse or relative')
    shares = size_shares(sizes)
    paddings = np.arange(1, max(1, min(LARGEST, int(np.flatnonzero(shares).max(initial=1)))) + 1)
    # the variance of an empty item per sample does not depend on the padding, but for its square
    reference = design(policy, model, prior=prior, padding=int(paddings[-1]))
    absent = theory.absent_variance(reference, prior) / int(paddings[-1]) ** 2
    s = _popularity(popularity, policy.m)
    places = np.arange(len(shares))
    mean_V = float(np.array(policy.sizes) @ absent) / policy.m
    expected: list[float] = []
    for ell in paddings:
        missing = float(
            shares @ np.maximum(places - ell, 0)
        )  # occurrences per person that are not counted
        variance = ell**2 * (policy.m * mean_V + 1)  # the holders' term is about one per person
        if objective == "mse":
            expected.append(float(users * missing**2 * (s**2).sum() + variance))
        else:
            top = np.sort(s)[::-1][:k] * float(shares @ places)  # share of people who hold each
            error = np.sqrt((missing * np.sort(s)[::-1][:k]) ** 2 + ell**2 * mean_V / users)
            expected.append(float(np.mean(error / np.maximum(top, 1e-12))))
    curve = np.array(expected)
    return PaddingChoice(int(paddings[curve.argmin()]), paddings, curve, objective)


def size_shares(sizes: Any) -> Floats:
    """Shares of people by number of items, from index 0."""
    if isinstance(sizes, Estimate):
        if sizes.mechanism.m != len(STEPS):
            raise DataError(
                "this is not the estimate of a collection of set sizes; make one with size_policy"
            )
        # Noise on a large size would weigh heavily, so only what stands out of the noise counts.
        clear = np.where(sizes.counts > 3.5 * sizes.stderr, sizes.counts, 0)
        ends = (*STEPS[1:], LARGEST)
        shares = np.concatenate(
            [np.full(b - a, x / (b - a)) for a, b, x in zip(STEPS, ends, clear, strict=True)]
        )
    elif isinstance(sizes, Mapping):
        try:
            pairs = {int(size): float(share) for size, share in sizes.items()}
        except (TypeError, ValueError):
            raise DataError(
                "sizes are shares of people by number of items, such as {1: 0.6, 2: 0.4}"
            ) from None
        if not pairs or min(pairs) < 0 or not all(0 <= share < np.inf for share in pairs.values()):
            raise DataError(
                "sizes need whole numbers of items that are not negative, with shares that are "
                "not negative"
            )
        shares = np.zeros(max(pairs) + 1)
        for size, share in pairs.items():
            shares[size] = share
    else:
        numbers = np.asarray(sizes)
        if (
            numbers.ndim != 1
            or not len(numbers)
            or numbers.dtype.kind not in "iu"
            or numbers.min() < 0
        ):
            raise DataError("sizes are one whole number per person, or shares by number of items")
        shares = np.bincount(numbers).astype(float)
    if shares.sum() <= 0:
        raise DataError("sizes sum to nothing; at least one share must be positive")
    return shares / shares.sum()


def _popularity(popularity: Any, m: int) -> Floats:
    """Shares of the occurrences, or something with the same concentration."""
    if isinstance(popularity, str):
        if popularity != "zipf":
            raise DataError(
                f'popularity = "{popularity}" must be zipf, shares per item, or their concentration'
            )
        s = 1 / np.arange(1, m + 1)
    elif np.ndim(popularity) == 0:
        concentration = min(1.0, max(float(popularity), 1 / m))
        s = np.full(max(1, round(1 / concentration)), 1.0)
    else:
        s = np.asarray(popularity, dtype=float)
        if s.shape != (m,) or not np.all(s >= 0) or s.sum() <= 0:
            raise DataError(f"popularity has one share per item ({m}), none negative")
    return s / s.sum()


# ---- two phases, privately -----------------------------------------------------------------------


def size_policy(policy: Policy) -> Policy:
    """The policy of the first phase: a person reports only how many items she has, under the
    smallest budget.
    """
    smallest = min(policy.levels, key=lambda level: float(level.budget))
    ends = [step - 1 for step in STEPS[1:]]
    labels = [str(a) if a == b else f"{a} to {b}" for a, b in zip(STEPS[:-1], ends, strict=True)]
    return Policy.from_levels(
        [("size", smallest.budget, [*labels, f"{STEPS[-1]} or more"])],
        name=f"{policy.name}: how many",
        question="How many of the items do you have?",
    )


def size_answers(lengths: Any) -> NDArray[np.int64]:
    """The answers to `size_policy` of people with these numbers of items."""
    return np.searchsorted(STEPS, lengths, side="right") - 1


@dataclass(frozen=True, eq=False)
class TwoPhases:
    """What the two phases found: the padding, the mechanism of the second phase, and its tally."""

    choice: PaddingChoice
    mechanism: Mechanism
    tally: Tally
    pilot_users: int


def two_phases(
    policy: Policy,
    answers: Any,
    pilot: float = 0.2,
    model: str = "subset",
    encoding: str | None = None,
    indices: bool = False,
) -> TwoPhases:
    """Collect sets without knowing their sizes: a random first group decides the padding, the
    others answer with it.

    Everyone sends one report. Of the first group one half reports its set size under the smallest
    budget, the other half its set with a padding of 4, which tells how concentrated the items are.
    No one answers twice, so no budget is spent twice.
    """
    if not 0 < pilot < 1:
        raise DesignError(f"pilot = {pilot} must be a share of the participants between 0 and 1")
    first = design(policy, model, padding=_PILOT_PADDING, encoding=encoding)
    items, offsets = perturb.ragged(first, answers, indices)
    n = len(offsets) - 1
    draw = Keystream().uint32(n) / 2**32  # who is in which group does not depend on the answers
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
    shares = size_shares(sizes)
    per_person = float(shares @ np.minimum(np.arange(len(shares)), _PILOT_PADDING))
    choice = choose_padding(
        policy, sizes, users, popularity=concentration(tally.estimate(), per_person), model=model
    )
    mechanism = design(policy, model, padding=choice.padding, encoding=encoding)
    reports = mechanism.perturb_many(rest, indices=True)
    return TwoPhases(choice, mechanism, mechanism.tally(reports), n - users)


def concentration(estimate: Estimate, per_person: float) -> float:
    """An estimate of sum s_i^2, s_i the shares of the occurrences, of which there are `per_person`
    on average: the squared counts less their noise, weighed against what Zipf's law would give
    (taken as known within itself) by the noise of the sum.
    """
    m, n = estimate.mechanism.m, estimate.n * max(per_person, 0.1)
    found = float((estimate.counts**2 - estimate.stderr**2).sum()) / n**2
    noise = float(np.sqrt(2 * (estimate.stderr**4).sum())) / n**2
    guess = float((_popularity("zipf", m) ** 2).sum())
    weight = guess**2 / (guess**2 + noise**2)
    return max(weight * found + (1 - weight) * guess, 1 / m)


def _people(items: Any, offsets: Any, rows: Any) -> tuple[Any, Any]:
    lengths = np.diff(offsets)
    return items[np.repeat(rows, lengths)], np.concatenate(([0], np.cumsum(lengths[rows])))
