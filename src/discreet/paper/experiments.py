"""Experiments as tidy rows of numbers: one experiment is one mechanism on one data set, repeated.

Levels are assigned to the items at random, anew for every repeat and the same for all mechanisms,
so that comparisons are paired: the mechanism's levels stay in order, and the items are shuffled
over its places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from discreet.arrays.tally import Tally
from discreet.arrays.theory import sampled_variance
from discreet.arrays.types import Floats, Ints
from discreet.data.answers import Block
from discreet.designs import design
from discreet.estimates.simulation import draw_set_tally, draw_tally, top_errors
from discreet.mechanism import Mechanism
from discreet.paper.boxed import boxed
from discreet.paper.datasets import Dataset
from discreet.paper.settings import FACTORS, SHARES, Setup
from discreet.policy import Budget, Level, Policy
from discreet.policy.kinds import Kind
from discreet.policy.lazy import cached_property

_BLOCK = 1 << 15  # people whose real reports are made at once


@dataclass(frozen=True)
class Experiment:
    """One mechanism on one data set. Without repeats there is only the theory."""

    data: str
    model: str  # a model of `design`, or "boxed"
    eps: float
    repeats: int
    ks: tuple[int, ...] = ()
    padding: int = 0  # 0: single answers
    encoding: str = "bits"
    factors: tuple[float, ...] = FACTORS
    shares: tuple[float, ...] = SHARES
    shrunk: bool = False  # also the posterior means

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies its random draws: everything but what is computed from them."""
        place = (self.data, self.model, self.eps, self.padding, self.encoding)
        return (*place, *self.factors, *self.shares)


def grid(
    models: Iterable[str], epsilons: Iterable[float], encodings: Iterable[str], *, data: str,
    repeats: int, ks: tuple[int, ...] = (), padding: int = 0,
    factors: tuple[float, ...] = FACTORS, shares: tuple[float, ...] = SHARES, shrunk: bool = False,
) -> list[Experiment]:  # fmt: skip
    """Every model at every eps in every encoding."""
    places = [(model, eps) for model in models for eps in epsilons]
    return [
        Experiment(data, model, eps, repeats, ks, padding, encoding, factors, shares, shrunk)
        for encoding in encodings
        for model, eps in places
    ]


def merge(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Replace experiments with the same draws by one that computes what all of them need."""
    by_key: dict[tuple[object, ...], Experiment] = {}
    for one in experiments:
        old = by_key.get(one.key, one)
        ks, shrunk = tuple(sorted({*old.ks, *one.ks})), old.shrunk or one.shrunk
        by_key[one.key] = replace(one, ks=ks, shrunk=shrunk, repeats=max(old.repeats, one.repeats))
    return list(by_key.values())


@dataclass(frozen=True)
class Row:
    """One number of one cell, a value per repeat.

    `theory` is its expectation over assignments and noise, None where there is no formula. Of raw
    total MSEs `expected` is the expectation given the assignment of every repeat, and `sd` the
    standard deviation of one value given it.
    """

    data: str
    model: str
    eps: float
    levels: int  # how many budgets there are
    share: float  # of the items at the smallest of them
    padding: int
    encoding: str
    # "mse" (total / n), its "bias" (squared) and "variance" in theory; top k: "re", "precision"
    metric: str
    k: int
    view: str  # "raw", or "shrunk": posterior means and their ranking
    values: tuple[float, ...]
    theory: float | None = None
    expected: tuple[float, ...] = ()
    sd: float = 0.0

    @property
    def mean(self) -> float:
        """The mean over repeats, or the theory if there are none."""
        if self.values:
            return float(np.mean(self.values))
        return float("nan") if self.theory is None else self.theory

    @property
    def stderr(self) -> float:
        """The standard error of the mean."""
        count = len(self.values)
        return float(np.std(self.values, ddof=1)) / count**0.5 if count > 1 else 0.0


class Numbers:
    """Rows, to select from."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    def select(self, **want: object) -> list[Row]:
        """The rows whose fields have these values (a tuple or list: one of them), in order."""
        wanted = {k: tuple(x) if isinstance(x, tuple | list) else (x,) for k, x in want.items()}
        return [row for row in self.rows if all(getattr(row, k) in x for k, x in wanted.items())]


# ---- one experiment ------------------------------------------------------------------------------


def run(
    experiment: Experiment, data: Dataset, setup: Setup, threads: int | None = None
) -> list[Row]:
    """The rows of an experiment."""
    # but for subset the noise does not depend on the padding: theory alone needs one design for all
    same = experiment.padding and not experiment.repeats and experiment.model != "subset"
    mechanism = make_mechanism(replace(experiment, padding=1) if same else experiment, data.m)
    profile = Profile.measure(data, experiment.padding)
    values, given = _repeats(experiment, mechanism, data, profile, setup, threads)
    expected, relative = profile.theory(mechanism, experiment.ks)
    squared = float((profile.bias**2).sum() / data.n)
    formulas = {("mse", 0): expected, ("bias", 0): squared, ("variance", 0): expected - squared}
    formulas |= {("re", k): value for k, value in relative.items()}
    rows = []
    for (metric, k, view), cell in values.items():
        row = Row(
            data.key, experiment.model, experiment.eps, len(experiment.shares),
            experiment.shares[0], experiment.padding, experiment.encoding, metric, k, view,
            tuple(cell),
            formulas.get((metric, k)) if view == "raw" else None,
        )  # fmt: skip
        if given and (metric, view) == ("mse", "raw"):
            means, sds = zip(*given, strict=True)
            row = replace(row, expected=means, sd=float(np.mean(sds)))
        rows.append(row)
    return rows


_Values = dict[tuple[str, int, str], list[float]]  # by metric, k and view


def _repeats(
    experiment: Experiment, mechanism: Mechanism, data: Dataset, profile: Profile, setup: Setup,
    threads: int | None,
) -> tuple[_Values, list[tuple[float, float]]]:  # fmt: skip
    """A value per repeat; and, given its assignment, the mean and the standard deviation of its
    total MSE.
    """
    values: _Values = {("mse", 0, "raw"): [], **{("re", k, "raw"): [] for k in experiment.ks}}
    given = []
    for repeat in range(experiment.repeats):
        place = setup.rng("levels", data.key, repeat).permutation(data.m)
        rng = None if setup.through_reports else setup.rng("draw", *experiment.key, repeat)
        estimate = observe(mechanism, data, place, rng, threads).estimate()
        truth = np.empty(data.m)
        truth[place] = profile.truth
        views = {"raw": estimate.counts}
        if experiment.shrunk:
            views["shrunk"] = estimate.shrunk().counts
        for view, counts in views.items():
            mse = float(((counts - truth) ** 2).sum() / data.n)
            values.setdefault(("mse", 0, view), []).append(mse)
            errors = top_errors(counts, truth, experiment.ks)
            for k, (error, precision) in zip(experiment.ks, errors, strict=True):
                values.setdefault(("re", k, view), []).append(error)
                values.setdefault(("precision", k, view), []).append(precision)
        given.append(profile.given(mechanism, mechanism.arrays.level_of[place]))
    if experiment.padding:
        values |= {("bias", 0, "raw"): [], ("variance", 0, "raw"): []}
    return values, given


def observe(
    mechanism: Mechanism, data: Dataset, place: Ints, rng: np.random.Generator | None,
    threads: int | None = None,
) -> Tally:  # fmt: skip
    """The tally of all people, item i standing at place[i]: drawn exactly in distribution, or (no
    generator) of real reports.
    """
    edges = range(0, data.n, _BLOCK)
    if mechanism.padding is None:
        truth = np.zeros(data.m, np.int64)
        truth[place] = data.first
        if rng is not None:
            return draw_tally(mechanism, truth, data.n, rng)
        answers = np.repeat(np.arange(data.m), truth)
        return _tally_reports(mechanism, (answers[x : x + _BLOCK] for x in edges), threads)
    items = place[data.items]
    if rng is not None:
        return draw_set_tally(mechanism, items, data.offsets, rng)
    pieces = (data.offsets[x : x + _BLOCK + 1] for x in edges)
    blocks = ((items[piece[0] : piece[-1]], piece - piece[0]) for piece in pieces)
    return _tally_reports(mechanism, blocks, threads)


def _tally_reports(mechanism: Mechanism, blocks: Iterable[Block], threads: int | None) -> Tally:
    """Perturb, encode and tally every report."""
    total = Tally.empty(mechanism)
    for block in blocks:
        reports = mechanism.perturb_many(block, threads, indices=True)
        total = total + mechanism.tally(reports, threads=threads)
    return total


# ---- mechanisms ----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def make_policy(
    m: int, eps: float, factors: tuple[float, ...], shares: tuple[float, ...], kind: str
) -> Policy:
    """m items in levels of these shares (the last takes what rounding leaves), in order."""
    sizes = [max(1, round(m * share)) for share in shares[:-1]]
    budgets = (Budget.parse(round(eps * factor, 9)) for factor in factors)
    levels = tuple(Level(f"level {k}", budget) for k, budget in enumerate(budgets, 1))
    level_of = np.repeat(np.arange(len(levels)), [*sizes, m - sum(sizes)])
    return Policy(tuple(map(str, range(m))), tuple(level_of.tolist()), levels, kind=Kind(kind))


@lru_cache(maxsize=16)
def make_mechanism(experiment: Experiment, m: int) -> Mechanism:
    """The checked mechanism of an experiment."""
    kind, padding = "set" if experiment.padding else "single", experiment.padding or None
    policy = make_policy(m, experiment.eps, experiment.factors, experiment.shares, kind)
    if experiment.model == "boxed":
        return boxed(policy, experiment.encoding, padding)
    encoding = experiment.encoding
    # the paper compares total errors
    return design(policy, experiment.model, encoding=encoding, padding=padding, goal="total")


# ---- theory --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Profile:
    """What the theory needs of the data: per item the mean over people of pi and of pi^2, pi the
    chance to be sampled there.
    """

    n: int
    ell: int
    truth: Floats
    pi: Floats
    pi2: Floats

    @classmethod
    def measure(cls, data: Dataset, padding: int) -> Profile:
        """The profile of single answers (padding 0), or of sets."""
        if not padding:
            share = data.first / data.n
            return cls(data.n, 1, data.first.astype(float), share, share)
        chance = np.repeat(1 / np.maximum(data.sizes, padding), data.sizes)
        pi, pi2 = (np.bincount(data.items, x, data.m) / data.n for x in (chance, chance**2))
        return cls(data.n, padding, data.counts.astype(float), pi, pi2)

    @cached_property
    def bias(self) -> Floats:
        """Of every item's estimate, in people: who has more than ell items is undercounted."""
        return self.n * self.ell * self.pi - self.truth

    def variance(self, mechanism: Mechanism, level_of: NDArray[np.int32]) -> Floats:
        """Of every item's estimate, in people squared, the level of every item given."""
        group_of = np.array(mechanism.groups)[level_of]
        samples, squares = self.n * self.pi, self.n * self.pi2
        return self.ell**2 * sampled_variance(mechanism, group_of, samples, squares, self.n)

    def mean_variance(self, mechanism: Mechanism, group: int) -> Floats:
        """The same of items of one group, its mean over the assignments of all the others."""
        absent, sizes = _absent(mechanism)[:, group], mechanism.arrays.group_sizes
        places = sizes - (np.arange(len(sizes)) == group)  # where the others can stand
        other = float(places @ absent[: len(sizes)]) / max(1, mechanism.m - 1)
        samples = float(self.pi.sum())
        base = self.pi * absent[group] + (samples - self.pi) * other
        if mechanism.padding:
            base += (1 - samples) * absent[-1]
        slope = mechanism.arrays.decoder.slope[group]
        return self.n * self.ell**2 * (base + self.pi * slope - self.pi2)

    def given(self, mechanism: Mechanism, level_of: NDArray[np.int32]) -> tuple[float, float]:
        """The expected total MSE / n for an assignment, and its standard deviation (of normal,
        independent errors).
        """
        variance = self.variance(mechanism, level_of)
        mse = float((variance + self.bias**2).sum() / self.n)
        spread = (2 * variance**2 + 4 * self.bias**2 * variance).sum()
        return mse, float(np.sqrt(spread) / self.n)

    def theory(self, mechanism: Mechanism, ks: Iterable[int]) -> tuple[float, dict[int, float]]:
        """Over all assignments: the expected total MSE / n, which is exact, and the expected
        relative error of every top k. That takes normal errors, and of subset, whose variances
        depend on where the other items stand, their mean (1 % off at most on the paper's data).
        """
        top = np.argsort(-self.truth, kind="stable")
        mse, relative = 0.0, np.zeros(len(top))
        for group, weight in enumerate(mechanism.arrays.group_sizes / mechanism.m):
            variance = self.mean_variance(mechanism, group)
            mse += weight * float((variance + self.bias**2).sum() / self.n)
            distance = _mean_distance(self.bias, np.sqrt(variance))
            relative += weight * distance[top] / np.maximum(self.truth[top], 1)
        return mse, {k: float(relative[:k].mean()) for k in ks}


def _absent(mechanism: Mechanism) -> Floats:
    """The variance of an item that nobody holds, by its group (columns), per sample of every group
    (rows; the last of sets: an empty sample).
    """
    decoder = mechanism.arrays.decoder
    samples = np.eye(decoder.chance.shape[1])
    return np.stack([decoder.variance_at_zero(decoder.chance @ one, one) for one in samples])


def _mean_distance(mean: Floats, sd: Floats) -> Floats:
    """E|X| of a normal X."""
    z = mean / sd
    return sd * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * (1 - 2 * ndtr(-z))
