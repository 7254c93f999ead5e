"""Whole experiments, exact in distribution, without n x m work (docs/researcher.md, "Theory and
simulation"). A seed exists only here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.answers import places, ragged
from discreet.errors import DataError
from discreet.estimate import Estimate
from discreet.mechanism import Mechanism
from discreet.parts import Floats
from discreet.policy import Policy
from discreet.tally import Tally
from discreet.views import VIEWS


@dataclass(frozen=True, eq=False)
class Simulation:
    """Repeated experiments on the same data: true counts, and one row of estimates per repeat."""

    mechanism: Mechanism
    truth: Floats
    n: int
    counts: Floats  # repeats x items
    estimates: tuple[Estimate, ...]

    @property
    def mse(self) -> Floats:
        """Total squared error / n of every repeat."""
        return ((self.counts - self.truth) ** 2).sum(axis=1) / self.n


def simulate(
    data: Any,
    mechanism: Mechanism,
    n: int | None = None,
    repeats: int = 10,
    seed: int | None = None,
    indices: bool = False,
) -> Simulation:
    """Draw experiments: `data` are answers as `perturb_many` takes them, or (single input) the true
    count of every item: as many numbers as there are items, or counts by label.

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
    if not mechanism.policy.takes_sets:
        truth = _counts(data, mechanism, indices)
        total = int(truth.sum())
        tallies = (draw_tally(mechanism, truth, total, rng) for _ in range(repeats))
    else:
        items, offsets = ragged(mechanism, data, indices)
        total = len(offsets) - 1
        truth = np.bincount(items, minlength=mechanism.m)
        tallies = (draw_set_tally(mechanism, items, offsets, rng) for _ in range(repeats))
    if n is not None and n != total:
        raise DataError(f"n = {n}, but the data are of {total} people")
    estimates = tuple(tally.estimate() for tally in tallies)
    return Simulation(
        mechanism, truth.astype(float), total, np.stack([e.counts for e in estimates]), estimates
    )


def draw_tally(mechanism: Mechanism, truth: Any, n: int, rng: np.random.Generator) -> Tally:
    """The tally of n people of whom truth[i] are sampled at item i (the rest, for sets,
    at none).
    """
    return Tally(mechanism, *mechanism.coder.draw_held(truth, n, rng))


def draw_set_tally(
    mechanism: Mechanism, items: Any, offsets: Any, rng: np.random.Generator
) -> Tally:
    """The tally of people with these sets: what everyone reports of their own is drawn, then what
    all reports count up to.
    """
    return Tally(mechanism, *mechanism.coder.draw_sets(items, offsets, rng))


def _counts(data: Any, mechanism: Mechanism, indices: bool) -> Any:
    """How many people hold every item: of counts, of counts by label, or of answers."""
    m = mechanism.m
    if isinstance(data, Iterator):
        data = list(data)
    if type(data).__module__.startswith("pandas") and data.ndim == 1:
        labelled = getattr(data, "index", None) is not None and data.index.dtype.kind == "O"
        if labelled and data.dtype.kind in "iuf":  # as value_counts() gives them
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


def _are_numbers(data: Any) -> bool:
    """Whether these are counts: numbers, as answers are text."""
    if isinstance(data, list | tuple):
        return not any(isinstance(x, str) for x in data)
    if not hasattr(data, "__len__"):
        return True  # and none that could be counts
    return np.asarray(data).dtype.kind not in "OUSTV" and not isinstance(data, str)


def joined(blocks: Iterable[Any], policy: Policy) -> Any:
    """Blocks of answers as what `simulate` takes: counts per item, or one ragged array of sets."""
    found = list(blocks)
    if not found:
        raise DataError("there are no answers in the data")
    if not policy.takes_sets:
        return np.bincount(np.concatenate(found), minlength=policy.m)
    lengths = np.concatenate([np.diff(offsets) for _, offsets in found])
    return np.concatenate([items for items, _ in found]), np.concatenate(([0], np.cumsum(lengths)))


# ---- comparison of models on the user's own data -------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How well one view of one model's estimates does, with standard errors over repeats."""

    model: str
    view: str
    mse: float  # total squared error / n
    mse_error: float
    relative_error: float  # mean of |estimate - truth| / truth over the true top k
    precision: float  # share of the true top k among the k ranked highest
    precision_error: float
    coverage: float  # of 95 % intervals; NaN where the view has none


def views(estimate: Estimate) -> dict[str, tuple[Floats, tuple[Floats, Floats] | None]]:
    """Counts and 95 % intervals of every view that the estimate has."""
    found: dict[str, tuple[Floats, tuple[Floats, Floats] | None]] = {
        "raw": (estimate.counts, estimate.interval())
    }
    for name in estimate.views:
        columns = VIEWS[name].columns(estimate, 0.95)
        ends = (columns["lower"], columns["upper"]) if "lower" in columns else None
        found[name] = columns[""], ends
    return found


def top_errors(counts: Floats, truth: Floats, ks: Sequence[int]) -> list[tuple[float, float]]:
    """For every k: the mean of |count - truth| / truth over the true top k, and the precision of
    the k ranked highest.
    """
    best, ranked = np.argsort(-truth, kind="stable"), np.argsort(-counts, kind="stable")
    relative = np.abs(counts - truth)[best] / np.maximum(truth[best], 1)
    # items as frequent as the k-th are as good
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
    found = {}
    for view, (counts, interval) in views(estimate).items():
        found[view] = (
            float(((counts - truth) ** 2).sum() / estimate.n),
            *top_errors(counts, truth, [k])[0],
            float(np.mean((interval[0] <= truth) & (truth <= interval[1])))
            if interval
            else float("nan"),
        )
    return found


def compare(
    data: Any,
    mechanisms: Mapping[str, Mechanism],
    k: int = 20,
    repeats: int = 10,
    seed: int | None = None,
    indices: bool = False,
) -> list[Score]:
    """Every mechanism on the same data (see `simulate`), every view of its estimates."""
    scores = []
    for name, mechanism in mechanisms.items():
        result = simulate(data, mechanism, None, repeats, seed, indices)
        rows = [
            measure(estimate, result.truth, min(k, mechanism.m)) for estimate in result.estimates
        ]
        for view in rows[0]:
            values = np.array([row[view] for row in rows])
            mean, error = values.mean(axis=0), np.full(values.shape[1], np.nan)
            if repeats > 1:  # of one experiment nothing is known
                error = values.std(axis=0, ddof=1) / np.sqrt(repeats)
            scores.append(Score(name, view, mean[0], error[0], mean[1], mean[2], error[2], mean[3]))
    return scores
