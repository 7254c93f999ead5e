"""Simulate whole experiments, exact in distribution, without n x m work (docs/researcher.md,
"Theory and simulation"). Only this module takes a seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np

from discreet.arrays.answers import places, ragged
from discreet.arrays.tally import Tally
from discreet.arrays.types import Answers, Floats, Ints
from discreet.errors import DataError
from discreet.estimates.estimate import Estimate
from discreet.estimates.views import VIEWS
from discreet.mechanism import Mechanism
from discreet.policy import Policy

if TYPE_CHECKING:
    import pandas as pd

# answers as `perturb_many` takes them, or true counts: a number per item, or numbers by label
Data: TypeAlias = Answers | Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Simulation:
    """Repeated experiments on the same data: the true counts, and a row of estimates per repeat.

    >>> import discreet as d
    >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]), "rappor")
    >>> simulation = d.simulate({"a": 700, "b": 300}, mechanism, repeats=5, seed=1)
    >>> simulation.truth.tolist(), simulation.n, len(simulation.estimates)
    ([700.0, 300.0], 1000, 5)
    """

    mechanism: Mechanism
    truth: Floats
    n: int
    counts: Floats  # repeats x items
    estimates: tuple[Estimate, ...]

    @property
    def mse(self) -> Floats:
        """The total squared error / n of every repeat; its mean is near the expected error.

        >>> import discreet as d
        >>> mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]), "rappor")
        >>> simulation = d.simulate({"a": 700, "b": 300}, mechanism, repeats=2000, seed=1)
        >>> bool(abs(simulation.mse.mean() / mechanism.expected_mse() - 1) < 0.2)
        True
        """
        return ((self.counts - self.truth) ** 2).sum(axis=1) / self.n


def simulate(
    data: Data,
    mechanism: Mechanism,
    n: int | None = None,
    repeats: int = 10,
    seed: int | None = None,
    indices: bool = False,
) -> Simulation:
    """Draw experiments.

    `data` are answers as `perturb_many` takes them. For single answers they may also be true
    counts: one number per item, or numbers by label.

    >>> import discreet as d
    >>> policy = d.Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z"])])
    >>> d.simulate([500, 300, 200], d.design(policy), repeats=3, seed=1).counts.shape
    (3, 3)
    """
    if not isinstance(mechanism, Mechanism):
        raise DataError(
            f"simulate takes data and then a mechanism, got {type(mechanism).__name__}; "
            "design(policy) makes one"
        )
    if isinstance(repeats, bool) or not isinstance(repeats, int | np.integer) or repeats < 1:
        raise DataError(f"repeats = {repeats} must be a whole number from 1")
    if seed is not None and seed < 0:
        raise DataError(f"seed = {seed} must not be negative")
    rng = np.random.default_rng(seed)
    if not mechanism.policy.kind.lists:
        truth = _true_counts(data, mechanism, indices)
        total = int(truth.sum())
        tallies = (draw_tally(mechanism, truth, total, rng) for _ in range(repeats))
    else:
        items, offsets = ragged(mechanism, data, indices)
        total = len(offsets) - 1
        truth = np.bincount(items, minlength=mechanism.m)
        tallies = (draw_set_tally(mechanism, items, offsets, rng) for _ in range(repeats))
    if n is not None and n != total:
        raise DataError(f"n = {n}, but the data have {total} people")
    estimates = tuple(tally.estimate() for tally in tallies)
    return Simulation(
        mechanism, truth.astype(float), total, np.stack([e.counts for e in estimates]), estimates
    )


def draw_tally(mechanism: Mechanism, truth: Ints, n: int, rng: np.random.Generator) -> Tally:
    """Draw the tally of n people: truth[i] of them are sampled at item i, the rest at none."""
    return Tally(mechanism, *mechanism.arrays.coder.draw_held(truth, n, rng))


def draw_set_tally(
    mechanism: Mechanism, items: Ints, offsets: Ints, rng: np.random.Generator
) -> Tally:
    """Draw the tally of people with these sets."""
    return Tally(mechanism, *mechanism.arrays.coder.draw_sets(items, offsets, rng))


def _true_counts(data: Data, mechanism: Mechanism, indices: bool) -> Ints:
    """How many people hold every item, from counts, counts by label, or answers."""
    m = mechanism.m
    if isinstance(data, Iterator):
        data = list(data)
    if _is_labelled(data):  # as value_counts() gives them
        data = dict(zip(data.index, data.tolist(), strict=True))
    if isinstance(data, Mapping):
        held, data = data, np.zeros(m)
        for item, count in held.items():
            data[mechanism.policy.place(item)] = count if isinstance(count, int | float) else np.nan
    elif not _are_numbers(data):
        return np.bincount(places(mechanism, data, indices), minlength=m)
    bad = DataError(
        f"true counts are {m} whole numbers that are not negative, one per item; answers are labels"
    )
    try:
        truth = np.asarray(list(data) if isinstance(data, Iterable) else data)
    except ValueError:
        raise bad from None
    if truth.shape != (m,) or truth.dtype.kind not in "iuf" or not np.isfinite(truth).all():
        raise bad
    if (truth < 0).any() or (truth != np.floor(truth)).any() or sum(map(int, truth)) >= 2**62:
        raise bad
    return truth.astype(np.int64)


def _is_labelled(data: object) -> TypeGuard[pd.Series]:
    """Whether the data are a pandas Series of numbers by label."""
    if not type(data).__module__.startswith("pandas") or getattr(data, "ndim", 0) != 1:
        return False
    index, kind = getattr(data, "index", None), getattr(data, "dtype", np.dtype(object)).kind
    return index is not None and index.dtype.kind == "O" and kind in "iuf"


def _are_numbers(data: object) -> bool:
    """Whether the data are counts, which are numbers; answers are text."""
    if isinstance(data, list | tuple):
        return not any(isinstance(x, str) for x in data)
    if not hasattr(data, "__len__"):
        return True  # the caller refuses it, with a sentence about counts
    return np.asarray(data).dtype.kind not in "OUSTV" and not isinstance(data, str)


def join_blocks(blocks: Iterable[Ints | tuple[Ints, Ints]], policy: Policy) -> Data:
    """Join blocks of answers into data for `simulate`: counts per item, or one ragged array."""
    listed = list(blocks)
    if not listed:
        raise DataError("there are no answers in the data")
    if not policy.kind.lists:
        return np.bincount(np.concatenate(listed), minlength=policy.m)
    lengths = np.concatenate([np.diff(offsets) for _, offsets in listed])
    items = np.concatenate([items for items, _ in listed])
    return items, np.concatenate(([0], np.cumsum(lengths)))


# ---- comparison of models on the user's own data -------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How accurate one view of a model's estimates is, with standard errors over repeats."""

    model: str
    view: str
    mse: float  # total squared error / n
    mse_error: float
    relative_error: float  # mean of |estimate - truth| / truth over the true top k
    precision: float  # share of the true top k among the k ranked highest
    precision_error: float
    coverage: float  # of 95 % intervals; NaN where the view has none


Ends: TypeAlias = tuple[Floats, Floats]  # lower, upper


def all_views(estimate: Estimate) -> dict[str, tuple[Floats, Ends | None]]:
    """The counts and 95 % intervals of every view that the estimate has, by name."""
    by_name: dict[str, tuple[Floats, Ends | None]] = {"raw": (estimate.counts, estimate.interval())}
    for name in estimate.views:
        columns = VIEWS[name].columns(estimate, 0.95)
        ends = (columns["lower"], columns["upper"]) if "lower" in columns else None
        by_name[name] = columns[""], ends
    return by_name


def top_errors(counts: Floats, truth: Floats, ks: Sequence[int]) -> list[tuple[float, float]]:
    """The mean of |count - truth| / truth over the true top k, and the precision of the k ranked
    highest, for every k.
    """
    best, ranked = np.argsort(-truth, kind="stable"), np.argsort(-counts, kind="stable")
    relative = np.abs(counts - truth)[best] / np.maximum(truth[best], 1)
    # an item as frequent as the k-th is as good
    return [
        (
            float(relative[:k].mean()),
            float(np.mean(truth[ranked[:k]] >= max(truth[best[k - 1]], 1))),
        )
        for k in ks
    ]


def measure(
    estimate: Estimate, truth: Floats, k: int
) -> dict[str, tuple[float, float, float, float]]:
    """(MSE / n, relative error, precision, coverage) of every view."""
    by_view = {}
    for view, (counts, interval) in all_views(estimate).items():
        by_view[view] = (
            float(((counts - truth) ** 2).sum() / estimate.n),
            *top_errors(counts, truth, [k])[0],
            float(np.mean((interval[0] <= truth) & (truth <= interval[1])))
            if interval
            else float("nan"),
        )
    return by_view


def compare(
    data: Data,
    mechanisms: Mapping[str, Mechanism],
    k: int = 20,
    repeats: int = 10,
    seed: int | None = None,
    indices: bool = False,
) -> list[Score]:
    """Simulate every mechanism on the same data, and score every view of its estimates."""
    scores = []
    for name, mechanism in mechanisms.items():
        result = simulate(data, mechanism, None, repeats, seed, indices)
        rows = [
            measure(estimate, result.truth, min(k, mechanism.m)) for estimate in result.estimates
        ]
        for view in rows[0]:
            values = np.array([row[view] for row in rows])
            mean, error = values.mean(axis=0), np.full(values.shape[1], np.nan)
            if repeats > 1:  # one experiment says nothing about the error
                error = values.std(axis=0, ddof=1) / np.sqrt(repeats)
            scores.append(Score(name, view, mean[0], error[0], mean[1], mean[2], error[2], mean[3]))
    return scores
