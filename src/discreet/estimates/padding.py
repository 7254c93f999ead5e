"""Choose the padding of sets: the paper's future work.

The total MSE of a padding is bias^2 + variance. Both follow from how many people have how many
items, and from how concentrated the items are. A person with k > padding items counts padding / k
for each. The variance grows with the square of the padding if one item is sampled, and about with
the padding if all are reported (`hits`). After shrinking, noise on items that nobody has costs next
to nothing, so larger paddings are better than for the raw counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict, Unpack

import numpy as np

from discreet.arrays import theory
from discreet.arrays.types import Floats, Ints, Prior
from discreet.designs import default_model, design, hits, set_subset, sets
from discreet.designs.task import Task
from discreet.encodings.hits import unfit_for_hits
from discreet.errors import DataError, DesignError
from discreet.estimates.estimate import Estimate
from discreet.mechanism import Mechanism
from discreet.policy import Policy

LARGEST = 64  # paddings above this are not tried
# paddings tried for hits, where each is a design of its own: all up to the first, then these
COARSE = (12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64)
OBJECTIVES = ("mse", "shrunk", "relative")
STEPS = (0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 26, 41)  # set sizes are reported as one of these ranges
_MOST_ITEMS = 1_000_000  # of one person


# shares by size, one number per person, or the estimate of a collection with `size_policy`
Sizes: TypeAlias = Mapping[int, float] | Mapping[str, float] | Sequence[int] | Ints | Estimate
# shares of the occurrences per item, their concentration, or "zipf"
Popularity: TypeAlias = str | float | Sequence[float] | Floats


class ChoiceOptions(TypedDict, total=False):
    """What may be said about the design that a padding is chosen for."""

    model: str | None
    prior: Prior
    goal: str | None


@dataclass(frozen=True)
class PaddingChoice:
    """The padding with the smallest expected error, and the curve: the error at paddings[k] is
    expected[k].
    """

    padding: int
    paddings: Ints
    expected: Floats
    objective: str

    @property
    def curve(self) -> dict[int, float]:
        """The expected error by padding."""
        return dict(zip(self.paddings.tolist(), self.expected.tolist(), strict=True))


def read_padding(
    policy: Policy,
    users: int,
    padding: str | None,
    sizes: Sizes | None,
    popularity: str | None = None,
    objective: str | None = None,
    **options: Unpack[ChoiceOptions],
) -> tuple[int | None, PaddingChoice | None]:
    """Read a padding as people write it: a whole number, or `auto` for this many users with these
    sizes. Returns the padding, and the choice if it was made here.
    """
    if padding != "auto":
        for name, value in (("sizes", sizes), ("popularity", popularity), ("objective", objective)):
            if value is not None:
                raise DesignError(f"--{name} goes with --padding auto; leave it out, or say auto")
        if padding is None:
            return None, None
        try:
            return int(padding), None
        except ValueError:
            raise DesignError(f'padding = "{padding}" must be a whole number or auto') from None
    if sizes is None:
        raise DesignError("--padding auto needs --sizes: how many items people have (size,share)")
    concentration: str | float = popularity or "zipf"
    if concentration != "zipf":
        try:
            concentration = float(concentration)
        except ValueError:
            raise DesignError(
                f'popularity = "{popularity}" must be zipf or a number between 0 and 1'
            ) from None
    choice = choose_padding(policy, sizes, users, concentration, objective or "mse", **options)
    return choice.padding, choice


def choose_padding(
    policy: Policy,
    sizes: Sizes,
    users: int,
    popularity: Popularity = "zipf",
    objective: str = "mse",
    k: int = 20,
    model: str | None = None,
    prior: Prior = "uniform",
    goal: str | None = None,
) -> PaddingChoice:
    """The padding that minimises the expected total MSE / n of the counts.

    With `objective` it minimises the error of the counts after shrinking ("shrunk"), or the
    relative error of the top k ("relative"). `sizes` says how many items people have: shares by
    size (a mapping), one number per person, or the Estimate of a collection with `size_policy`.
    `popularity` is the share of the occurrences per item (in any order), their concentration
    sum s^2 as one number, or "zipf" if nothing is known. It decides how much it costs to undercount
    a person.

    >>> policy = Policy.from_levels([("a", 4, [f"i{k}" for k in range(200)])], kind="set")
    >>> choose_padding(policy, {1: 0.2, 5: 0.8}, users=100_000).padding
    5
    """
    if not policy.kind.pads:
        raise DesignError('auto chooses a padding for kind = "set"; others need none')
    if type(users) is not int or users < 1:
        raise DesignError(f"users = {users} must be a whole number from 1")
    if k < 1:
        raise DesignError(f"k = {k} must be at least 1")
    if isinstance(prior, str) and prior == "worst":
        prior, goal = "uniform", "total"  # expected errors are compared
    if objective not in OBJECTIVES:
        raise DesignError(f'objective = "{objective}" must be one of {", ".join(OBJECTIVES)}')
    shares = size_shares(sizes)
    largest = max(1, min(LARGEST, policy.m, int(np.flatnonzero(shares).max(initial=1))))
    noises = _noise_by_padding(policy, model, prior, largest, goal)
    level_sizes = np.array(policy.level_sizes)
    people, expected = _People(shares, np.sort(occurrence_shares(popularity, policy.m))[::-1]), []
    for padding, (absent, slope) in noises.items():
        held, counted = people.held, people.counted(padding)  # shares of people, per item
        V, holder = (float(level_sizes @ x) / policy.m for x in (absent, slope))
        if objective == "mse":
            variance = policy.m * V + float(counted.sum()) * (holder - 1)
            expected.append(users * float(((held - counted) ** 2).sum()) + variance)
        elif objective == "shrunk":
            risks = [
                _risk(users * held, users * counted, users * x, float(y))
                for x, y in zip(absent, slope, strict=True)
            ]
            expected.append(float(level_sizes @ risks) / users)
        else:
            error = np.sqrt((held - counted)[:k] ** 2 + (V + counted[:k] * holder) / users)
            expected.append(float(np.mean(error / np.maximum(held[:k], 1e-12))))
    curve, paddings = np.array(expected), np.array(list(noises))
    return PaddingChoice(int(paddings[curve.argmin()]), paddings, curve, objective)


class _People:
    """How many people hold each item, from shares of people by number of items and shares of
    occurrences per item.

    A person with k items has item i with chance 1 - e^{-k t_i}. Nobody has an item twice, so people
    with many items add less to a frequent one than to the others, and a padding cuts less of it.
    """

    def __init__(self, sizes: Floats, popularity: Floats) -> None:
        self._k = np.flatnonzero(sizes[1:]) + 1 if sizes[1:].any() else np.array([1])
        self._sizes = sizes[self._k] if len(sizes) > 1 else np.zeros(1)
        self._grid = np.geomspace(1e-9, 60, 600)
        self._has = -np.expm1(-self._grid[:, None] * self._k)  # t x k
        share = popularity * float(self._sizes @ self._k)
        most = float(self._sizes.sum())
        reached = self._has @ self._sizes
        self._t = np.interp(np.minimum(share, 0.999 * most), reached, self._grid)
        self.held = np.interp(self._t, self._grid, reached)

    def counted(self, padding: int) -> Floats:
        """The share of people that each item counts, under a padding."""
        kept = self._sizes * np.minimum(1, padding / self._k)
        return np.interp(self._t, self._grid, self._has @ kept)


def _noise_by_padding(
    policy: Policy, model: str | None, prior: Prior, largest: int, goal: str | None
) -> dict[int, tuple[Floats, Floats]]:
    """For every padding, per level: the variance / n of the count of an item that nobody holds, and
    what one holder adds.
    """
    if model == "hits" and (unfit := unfit_for_hits(policy, 2)):
        raise DesignError(f"{unfit}; use the model subset")
    if not _whole_lists(policy, model, prior):
        # the chances hardly depend on the padding; the weight of a sample does
        reference = design(policy, model, prior=prior, padding=largest, goal=goal)
        absent, slope = _noise(reference, prior)
        return {
            ell: (absent * (ell / largest) ** 2, (slope + 1) * ell / largest - 1)
            for ell in range(1, largest + 1)
        }
    noises = {1: _noise(design(policy, prior=prior, padding=1, goal=goal), prior)}
    for ell in range(2, largest + 1):
        if ell in COARSE or ell <= COARSE[0]:
            noises[ell] = _noise_of_lists(Task(policy, prior, None, ell, goal=goal), model)
    return noises


def _noise_of_lists(task: Task, model: str | None) -> tuple[Floats, Floats]:
    """The same where whole lists are reported: of hits, or of picks where these would be taken."""
    counted = hits.noise(task)
    picked = None if model == "hits" else sets.quick_picks(task)
    if picked is None:
        return counted
    mine, sizes = _noise(picked, task.prior), np.array(task.policy.level_sizes)
    return mine if float(sizes @ mine[0]) < float(sizes @ counted[0]) else counted


def _whole_lists(policy: Policy, model: str | None, prior: Prior) -> bool:
    """Whether a design of this model reports whole lists, and not one sampled item."""
    if model == "subset" and not unfit_for_hits(policy, 2):
        return set_subset.unfit(Task(policy, prior, None, 2)) is None
    return (model or default_model(policy, 2)) == "hits"


def _noise(mechanism: Mechanism, prior: Prior) -> tuple[Floats, Floats]:
    slope = mechanism.scale * mechanism.arrays.decoder.slope[list(mechanism.groups)] - 1
    return theory.absent_variance(mechanism, prior), slope


def _risk(held: Floats, counted: Floats, base: float, slope: float) -> float:
    """The mean squared error of posterior means, if the spread of the true counts is known.

    held[i] people hold item i (most first); it counts counted[i] of them, with variance base +
    slope counted[i].
    """
    ranks = np.unique(np.geomspace(1, len(held) + 1, 80).astype(int)) - 1
    items = np.diff(ranks).astype(float)
    truth, mean = (np.add.reduceat(x, ranks[:-1]) / items for x in (held, counted))
    z, weight = np.polynomial.hermite_e.hermegauss(31)
    sd = np.sqrt(np.maximum(base + slope * mean, 1e-9 * base))
    y = mean[:, None] + sd[:, None] * z  # the estimates that every true count may give
    log = -(((y[..., None] - mean) / sd) ** 2) / 2 - np.log(sd) + np.log(items)
    chance = np.exp(log - log.max(axis=-1, keepdims=True))
    posterior = chance @ mean / chance.sum(axis=-1)
    errors = ((posterior - truth[:, None]) ** 2) @ (weight / weight.sum())
    return float(items @ errors / items.sum())


def size_shares(sizes: Sizes) -> Floats:
    """The shares of people by number of items, from index 0."""
    if isinstance(sizes, Estimate):
        if sizes.mechanism.m != len(STEPS):
            raise DataError(
                "this is not the estimate of a collection of set sizes; make one with size_policy"
            )
        # Noise on a large size would weigh heavily, so only clear counts are used.
        clear = np.where(sizes.counts > 3.5 * sizes.stderr, sizes.counts, 0)
        ends = (*STEPS[1:], LARGEST)
        shares = np.concatenate(
            [np.full(b - a, x / (b - a)) for a, b, x in zip(STEPS, ends, clear, strict=True)]
        )
    elif isinstance(sizes, Mapping):
        try:
            pairs = {float(size): float(share) for size, share in sizes.items()}
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                "sizes are shares of people by number of items, such as {1: 0.6, 2: 0.4}"
            ) from None
        if not (
            len(pairs) == len(sizes) > 0
            and not any(isinstance(size, bool) for size in sizes)
            and sum(pairs.values()) < np.inf
            and all(size.is_integer() and 0 <= size <= _MOST_ITEMS for size in pairs)
            and all(0 <= share < np.inf for share in pairs.values())
        ):
            raise DataError(
                f"sizes need whole numbers of items from 0 to {_MOST_ITEMS:,}, each once, with "
                "shares that are not negative"
            )
        shares = np.zeros(int(max(pairs)) + 1)
        for size, share in pairs.items():
            shares[int(size)] = share
    else:
        numbers = np.asarray(sizes)
        if (
            numbers.ndim != 1
            or not len(numbers)
            or numbers.dtype.kind not in "iu"
            or numbers.min() < 0
            or numbers.max() > _MOST_ITEMS
        ):
            raise DataError("sizes are one whole number per person, or shares by number of items")
        shares = np.bincount(numbers).astype(float)
    if shares.sum() <= 0:
        raise DataError("sizes sum to nothing; at least one share must be positive")
    return shares / shares.sum()


def occurrence_shares(popularity: Popularity, m: int) -> Floats:
    """The shares of the occurrences, or shares with the same concentration."""
    if isinstance(popularity, str):
        if popularity != "zipf":
            raise DataError(
                f'popularity = "{popularity}" must be zipf, shares per item, or their concentration'
            )
        s = 1 / np.arange(1, m + 1)
    elif np.ndim(popularity) == 0:
        number = float(np.asarray(popularity))
        if not 0 < number <= 1:
            raise DataError(f"popularity = {popularity} must be a number above 0, up to 1")
        s = _power_law(min(1.0, max(number, 1 / m)), m)
    else:
        s = np.asarray(popularity, dtype=float)
        if s.shape != (m,) or not np.all(s >= 0) or s.sum() <= 0:
            raise DataError(f"popularity has one share per item ({m}), none negative")
    return s / s.sum()


def _power_law(concentration: float, m: int) -> Floats:
    """Shares rank^-a with this sum of squares."""
    ranks, low, high = np.log(np.arange(1, m + 1)), 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        s = np.exp(-middle * ranks)
        low, high = (middle, high) if ((s / s.sum()) ** 2).sum() < concentration else (low, middle)
    return np.exp(-low * ranks)
