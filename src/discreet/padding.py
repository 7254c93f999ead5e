"""Choosing the padding length of set input: the paper's future work.

The total MSE of a padding is bias^2 + variance. Both need only how many people have how many items,
and how concentrated the items are: a person with k > padding items is counted with padding / k for
each. The variance grows with the padding: with its square where one item is sampled, about as the
padding itself where all are reported (`hits`). After shrinking, noise on items that nobody has
costs next to nothing, so larger paddings are better than for the raw counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import theory
from discreet.answers import ragged
from discreet.designs import default_model, design, hits
from discreet.designs.task import Task
from discreet.encodings.hits import unfit_for_hits
from discreet.errors import DataError, DesignError
from discreet.estimate import Estimate
from discreet.mechanism import Mechanism
from discreet.parts import Floats
from discreet.policy import Policy
from discreet.randomness import Keystream
from discreet.tally import Tally

LARGEST = 64  # paddings above this are not tried
# of hits, where every padding is a design of its own: all up to the first, then these
COARSE = (12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64)
OBJECTIVES = ("mse", "shrunk", "relative")
STEPS = (0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 26, 41)  # set sizes are reported as one of these ranges
_PILOT_PADDING = 4
_MOST_ITEMS = 1_000_000  # of one person


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
    policy: Policy,
    users: int,
    padding: str | None,
    sizes: Any,
    popularity: str | None = None,
    objective: str | None = None,
    **wishes: Any,
) -> tuple[int | None, PaddingChoice | None]:
    """A padding as people write it: a whole number, or `auto` for so many users with these sizes,
    and then the choice that was made; `wishes` are a model and a prior.
    """
    if padding != "auto":
        for name, said in (("sizes", sizes), ("popularity", popularity), ("objective", objective)):
            if said is not None:
                raise DesignError(f"--{name} goes with --padding auto; leave it out, or say auto")
        if padding is None:
            return None, None
        try:
            return int(padding), None
        except ValueError:
            raise DesignError(f'padding = "{padding}" must be a whole number or auto') from None
    if sizes is None:
        raise DesignError("--padding auto needs --sizes: how many items people have (size,share)")
    known: Any = popularity or "zipf"
    if known != "zipf":
        try:
            known = float(known)
        except ValueError:
            raise DesignError(
                f'popularity = "{popularity}" must be zipf or a number between 0 and 1'
            ) from None
    choice = choose_padding(policy, sizes, users, known, objective or "mse", **wishes)
    return choice.padding, choice


def choose_padding(
    policy: Policy,
    sizes: Any,
    users: int,
    popularity: Any = "zipf",
    objective: str = "mse",
    k: int = 20,
    model: str | None = None,
    prior: Any = "uniform",
) -> PaddingChoice:
    """The padding that minimises the expected total MSE / n of the counts, or (`objective`) of the
    counts after shrinking ("shrunk"), or the relative error of the top k ("relative").

    `sizes`: how many items people have: shares by size (a mapping), one number per person, or the
    Estimate of a collection with `size_policy`. `popularity`: shares of the occurrences per item
    (any order), their concentration sum s^2 as one number, or "zipf" where nothing is known. It
    matters: how much a person who is undercounted costs depends on it.

    >>> policy = Policy.from_levels([("a", 4, [f"i{k}" for k in range(200)])], input="set")
    >>> choose_padding(policy, {1: 0.2, 5: 0.8}, users=100_000).padding
    5
    """
    if not policy.pads:
        raise DesignError(
            'a padding is chosen for input = "set" with protect = "set"; others need none'
        )
    if type(users) is not int or users < 1:
        raise DesignError(f"users = {users} must be a whole number from 1")
    if k < 1:
        raise DesignError(f"k = {k} must be at least 1")
    if isinstance(prior, str) and prior == "worst":
        prior = "uniform"  # what is compared are expected errors
    if objective not in OBJECTIVES:
        raise DesignError(f'objective = "{objective}" must be one of {", ".join(OBJECTIVES)}')
    shares = size_shares(sizes)
    largest = max(1, min(LARGEST, policy.m, int(np.flatnonzero(shares).max(initial=1))))
    noises, many = _noises(policy, model, prior, largest), np.array(policy.sizes)
    people, expected = _People(shares, np.sort(_popularity(popularity, policy.m))[::-1]), []
    for padding, (absent, slope) in noises.items():
        held, counted = people.held, people.counted(padding)  # shares of people, per item
        V, holder = (float(many @ x) / policy.m for x in (absent, slope))
        if objective == "mse":
            variance = policy.m * V + float(counted.sum()) * (holder - 1)
            expected.append(users * float(((held - counted) ** 2).sum()) + variance)
        elif objective == "shrunk":
            risks = [
                _risk(users * held, users * counted, users * x, float(y))
                for x, y in zip(absent, slope, strict=True)
            ]
            expected.append(float(many @ risks) / users)
        else:
            error = np.sqrt((held - counted)[:k] ** 2 + (V + counted[:k] * holder) / users)
            expected.append(float(np.mean(error / np.maximum(held[:k], 1e-12))))
    curve, paddings = np.array(expected), np.array(list(noises))
    return PaddingChoice(int(paddings[curve.argmin()]), paddings, curve, objective)


class _People:
    """Who holds what, from shares of people by number of items and of occurrences per item.

    Whoever has k items has item i with chance 1 - e^{-k t_i}: nobody has it twice, so people with
    many items add less to a frequent one than to the others, and what a padding leaves out is less
    of it.
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
        """The share of people that each item is counted with."""
        kept = self._sizes * np.minimum(1, padding / self._k)
        return np.interp(self._t, self._grid, self._has @ kept)


def _noises(
    policy: Policy, model: str | None, prior: Any, largest: int
) -> dict[int, tuple[Floats, Floats]]:
    """By padding, per level: the variance / n of the count of an item that nobody holds, and what
    one holder adds.
    """
    if model == "hits" and (unfit := unfit_for_hits(policy, 2)):
        raise DesignError(f"{unfit}; use the model subset")
    if (model or default_model(policy, 2)) != "hits":
        # the chances hardly depend on the padding; what a sample stands for does
        reference = design(policy, model, prior=prior, padding=largest)
        absent, slope = _noise(reference, prior)
        return {
            ell: (absent * (ell / largest) ** 2, (slope + 1) * ell / largest - 1)
            for ell in range(1, largest + 1)
        }
    found = {1: _noise(design(policy, prior=prior, padding=1), prior)}
    for ell in range(2, largest + 1):
        if ell in COARSE or ell <= COARSE[0]:
            found[ell] = hits.noise(Task(policy, prior, None, ell))
    return found


def _noise(mechanism: Mechanism, prior: Any) -> tuple[Floats, Floats]:
    slope = mechanism.scale * mechanism.decoder.slope[list(mechanism.groups)] - 1
    return theory.absent_variance(mechanism, prior), slope


def _risk(held: Floats, counted: Floats, base: float, slope: float) -> float:
    """The mean squared error of posterior means, if the spread of the true counts is known: of
    items that so many hold (most first), counted as so many with variance base + slope counted.
    """
    ranks = np.unique(np.geomspace(1, len(held) + 1, 80).astype(int)) - 1
    many = np.diff(ranks).astype(float)
    truth, mean = (np.add.reduceat(x, ranks[:-1]) / many for x in (held, counted))
    z, weight = np.polynomial.hermite_e.hermegauss(31)
    sd = np.sqrt(np.maximum(base + slope * mean, 1e-9 * base))
    y = mean[:, None] + sd[:, None] * z  # what may be seen of every true count
    log = -(((y[..., None] - mean) / sd) ** 2) / 2 - np.log(sd) + np.log(many)
    chance = np.exp(log - log.max(axis=-1, keepdims=True))
    posterior = chance @ mean / chance.sum(axis=-1)
    errors = ((posterior - truth[:, None]) ** 2) @ (weight / weight.sum())
    return float(many @ errors / many.sum())


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


def _popularity(popularity: Any, m: int) -> Floats:
    """Shares of the occurrences, or something with the same concentration."""
    if isinstance(popularity, str):
        if popularity != "zipf":
            raise DataError(
                f'popularity = "{popularity}" must be zipf, shares per item, or their concentration'
            )
        s = 1 / np.arange(1, m + 1)
    elif np.ndim(popularity) == 0:
        if not 0 < float(popularity) <= 1:
            raise DataError(f"popularity = {popularity} must be a number above 0, up to 1")
        s = _power_law(min(1.0, max(float(popularity), 1 / m)), m)
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


# ---- two phases, privately -----------------------------------------------------------------------


def size_policy(policy: Policy) -> Policy:
    """The policy of the first phase: a person reports only how many items she has, under the
    smallest budget that binds anything.
    """
    ends = [step - 1 for step in STEPS[1:]]
    labels = [str(a) if a == b else f"{a} to {b}" for a, b in zip(STEPS[:-1], ends, strict=True)]
    return Policy.from_levels(
        [("size", policy.smallest, [*labels, f"{STEPS[-1]} or more"])],
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
    model: str | None = None,
    encoding: str | None = None,
    indices: bool = False,
    objective: str = "mse",
) -> TwoPhases:
    """Collect sets without knowing their sizes: a random first group decides the padding, the
    others answer with it.

    Everyone sends one report. Of the first group one half reports its set size under the smallest
    budget that binds anything, the other half its set with a padding of 4, which tells how
    concentrated the items are.
    No one answers twice, so no budget is spent twice.
    """
    if not 0 < pilot < 1:
        raise DesignError(f"pilot = {pilot} must be a share of the participants between 0 and 1")
    first = design(policy, model, padding=_PILOT_PADDING, encoding=encoding)
    items, offsets = ragged(first, answers, indices)
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
    try:
        shares = size_shares(sizes)
    except DataError:  # so few people that no size stands out of the noise: the pilot's padding
        shares = np.eye(_PILOT_PADDING + 1)[_PILOT_PADDING]
    per_person = float(shares @ np.minimum(np.arange(len(shares)), _PILOT_PADDING))
    known = concentration(tally.estimate(), per_person)
    choice = choose_padding(policy, dict(enumerate(shares)), users, known, objective, model=model)
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
