"""The experiments as tidy rows of numbers: one task is one mechanism on one data set, repeated.

Levels are assigned to the items at random, anew for every repeat and the same for all mechanisms, so that comparisons are paired:
the mechanism's levels stay in order, and the items are shuffled over its places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from discreet.designs import design
from discreet.mechanism import Floats, Mechanism
from discreet.paper.boxed import boxed
from discreet.paper.datasets import Dataset
from discreet.paper.settings import FACTORS, PAPER_MODELS, SHARES, THREE_MODELS, TWO, Settings
from discreet.policy import Budget, Level, Policy
from discreet.simulation import draw_set_tally, draw_tally, top_errors
from discreet.tally import Tally

_BLOCK = 1 << 15  # people whose real reports are made at once


@dataclass(frozen=True)
class Task:
    """One mechanism on one data set. Without repeats there is only the theory."""

    data: str
    model: str  # a model of `design`, or "boxed"
    eps: float
    repeats: int
    ks: tuple[int, ...] = ()
    padding: int = 0  # 0: single input
    encoding: str = "bits"
    factors: tuple[float, ...] = FACTORS
    shares: tuple[float, ...] = SHARES
    shrunk: bool = False  # also the posterior means

    @property
    def key(self) -> tuple[object, ...]:
        """What names its random draws: all but what is computed from them."""
        return (
            self.data,
            self.model,
            self.eps,
            self.padding,
            self.encoding,
            *self.factors,
            *self.shares,
        )


@dataclass(frozen=True)
class Row:
    """One number of one cell, a value per repeat.

    `theory` is its expectation over assignments and noise, None where there is no formula. Of raw total MSEs `expected` is the
    expectation given the assignment of every repeat, and `sd` the standard deviation of one value given it.
    """

    data: str
    model: str
    eps: float
    levels: int  # how many budgets there are
    share: float  # of the items at the smallest of them
    padding: int
    encoding: str
    metric: str  # "mse" (total / n), its "bias" (squared) and "variance" in theory, "re" or "precision" (of the top k)
    k: int
    view: str  # "raw", or "shrunk": posterior means and their ranking
    values: tuple[float, ...]
    theory: float | None = None
    expected: tuple[float, ...] = ()
    sd: float = 0.0

    @property
    def mean(self) -> float:
        """Over repeats; without any, the theory."""
        if self.values:
            return float(np.mean(self.values))
        return float("nan") if self.theory is None else self.theory

    @property
    def stderr(self) -> float:
        """Of the mean."""
        count = len(self.values)
        return float(np.std(self.values, ddof=1)) / count**0.5 if count > 1 else 0.0


class Numbers:
    """Rows that can be asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    def select(self, **want: Any) -> list[Row]:
        """The rows whose fields have these values (a tuple or list: one of them), in order."""
        wanted = {key: tuple(x) if isinstance(x, tuple | list) else (x,) for key, x in want.items()}
        return [
            row
            for row in self.rows
            if all(getattr(row, key) in values for key, values in wanted.items())
        ]


# ---- what is run ----------------------------------------------------------------------------------------


def tasks_of(name: str, settings: Settings, data: Mapping[str, Dataset]) -> list[Task]:
    """The tasks behind a figure and its panels beyond the paper."""
    s, r = settings, settings.repeats
    found: list[Task] = []

    def add(models: Iterable[str], epsilons: Iterable[float], **rest: Any) -> None:
        epsilons = list(epsilons)
        for encoding in (rest.pop("encoding"),) if "encoding" in rest else s.encodings:
            found.extend(
                Task(model=model, eps=eps, encoding=encoding, **rest)
                for model in models
                for eps in epsilons
            )

    if name == "fig3":
        for key in ("power-law", "uniform"):
            add((*PAPER_MODELS, "subset", "boxed"), s.epsilons, data=key, repeats=r)
            add(("opt0",), s.epsilons, data=key, repeats=r, encoding="ticket")
    elif name in ("fig4", "fig5"):
        for key in singles(data):
            add(("rappor",), s.epsilons, data=key, repeats=r, ks=_fit(s.tops, data[key]))
            shrunk = key in shrunk_singles(s, data)
            add(
                ("oue", "opt0", "subset"),
                s.epsilons,
                data=key,
                repeats=r,
                ks=_fit(s.tops, data[key]),
                shrunk=shrunk,
            )
    elif name == "fig6":
        for share in s.sensitive:
            rest: dict[str, Any] = {
                "repeats": r,
                "ks": _fit((50,), data["retail"]),
                "factors": TWO,
                "shares": (share, 1 - share),
            }
            add((*THREE_MODELS, "subset"), s.some_epsilons, data="retail", **rest)
    elif name == "fig7":
        rest = {
            "data": "clothing",
            "repeats": r,
            "ks": _fit(s.tops, data["clothing"]),
            "padding": 2,
        }
        add(("rappor",), s.epsilons, **rest)
        add(("oue", "opt0", "subset"), s.epsilons, shrunk=True, **rest)
    elif name in ("fig8", "fig9"):
        for key in padded(name, data):
            grid = s.paddings(float(data[key].sizes.mean()))
            ks = _fit((20 if name == "fig8" else 100,), data[key])
            for ell in range(1, grid[-1] + 1):
                encoding = {} if ell in grid else {"encoding": "bits"}
                add(
                    ("opt0",),
                    s.padding_epsilons,
                    data=key,
                    repeats=r if ell in grid else 0,
                    ks=ks,
                    padding=ell,
                    **encoding,
                )
    return list(dict.fromkeys(found))


def singles(data: Mapping[str, Dataset]) -> list[str]:
    """The data sets of fig4 and fig5."""
    return [key for key in ("retail", "kosarak", "kosarak-short") if key in data]


def shrunk_singles(settings: Settings, data: Mapping[str, Dataset]) -> list[str]:
    """Those of them whose estimates are shrunk too; a quick run takes the first."""
    return singles(data)[:1] if settings.quick else singles(data)


def padded(name: str, data: Mapping[str, Dataset]) -> list[str]:
    """The data sets whose padding is varied: the figure's own, then those of its panels beyond the paper."""
    own = "clothing" if name == "fig8" else "kosarak"
    more = ("kosarak-x10", "retail") if name == "fig9" else ()
    return [key for key in (own, *more) if key in data]


def _fit(ks: Sequence[int], data: Dataset) -> tuple[int, ...]:
    """The k that the domain allows."""
    return tuple(k for k in ks if k <= data.m) or (data.m,)


# ---- one task -------------------------------------------------------------------------------------------


def run(task: Task, data: Dataset, settings: Settings, threads: int | None = None) -> list[Row]:
    """The rows of a task."""
    # but for subset the noise does not depend on the padding, so that theory alone needs one design for all of them
    same = task.padding and not task.repeats and task.model != "subset"
    mechanism = mechanism_of(replace(task, padding=1) if same else task, data.m)
    profile = Profile.of(data, task.padding)
    expected, relative = profile.theory(mechanism, task.ks)
    found: dict[tuple[str, int, str], list[float]] = {}
    given, sds = [], []
    for repeat in range(task.repeats):
        place = settings.rng("levels", data.key, repeat).permutation(data.m)
        rng = None if settings.through_reports else settings.rng("draw", *task.key, repeat)
        estimate = observe(mechanism, data, place, rng, threads).estimate()
        truth = np.empty(data.m)
        truth[place] = profile.truth
        views = {
            "raw": estimate.counts,
            **({"shrunk": estimate.shrunk().counts} if task.shrunk else {}),
        }
        for view, counts in views.items():
            found.setdefault(("mse", 0, view), []).append(
                float(((counts - truth) ** 2).sum() / data.n)
            )
            for k, (error, precision) in zip(
                task.ks, top_errors(counts, truth, task.ks), strict=True
            ):
                found.setdefault(("re", k, view), []).append(error)
                found.setdefault(("precision", k, view), []).append(precision)
        mean, sd = profile.given(mechanism, mechanism.level_of[place])
        given.append(mean)
        sds.append(sd)
    if not task.repeats:
        found = {("mse", 0, "raw"): [], **{("re", k, "raw"): [] for k in task.ks}}
    if task.padding:
        found |= {("bias", 0, "raw"): [], ("variance", 0, "raw"): []}
    squared = float((profile.bias**2).sum() / data.n)
    formulas = {"mse": expected, "bias": squared, "variance": expected - squared}
    rows = []
    for (metric, k, view), values in found.items():
        formula = (
            (relative.get(k) if metric == "re" else formulas.get(metric)) if view == "raw" else None
        )
        row = Row(
            data.key, task.model, task.eps, len(task.shares), task.shares[0], task.padding, task.encoding, metric, k, view,
            tuple(values), formula,
        )  # fmt: skip
        if sds and (metric, view) == ("mse", "raw"):
            row = replace(row, expected=tuple(given), sd=float(np.mean(sds)))
        rows.append(row)
    return rows


def observe(
    mechanism: Mechanism,
    data: Dataset,
    place: Any,
    rng: np.random.Generator | None,
    threads: int | None = None,
) -> Tally:
    """The tally of all people, item i standing at place[i]: drawn exactly in distribution, or (no generator) of real reports."""
    if mechanism.padding is None:
        truth = np.zeros(data.m, np.int64)
        truth[place] = data.first
        if rng is not None:
            return draw_tally(mechanism, truth, data.n, rng)
        answers = np.repeat(np.arange(data.m), truth)
        return _reported(
            mechanism,
            (answers[first : first + _BLOCK] for first in range(0, data.n, _BLOCK)),
            threads,
        )
    items = place[data.items]
    if rng is not None:
        return draw_set_tally(mechanism, items, data.offsets, rng)
    edges = range(0, data.n, _BLOCK)
    pieces = (data.offsets[first : first + _BLOCK + 1] for first in edges)
    return _reported(
        mechanism, ((items[piece[0] : piece[-1]], piece - piece[0]) for piece in pieces), threads
    )


def _reported(mechanism: Mechanism, blocks: Iterable[Any], threads: int | None) -> Tally:
    total = Tally.empty(mechanism)
    for block in blocks:
        total = total + mechanism.tally(mechanism.perturb_many(block, threads), threads)
    return total


# ---- mechanisms -----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def policy_of(
    m: int, eps: float, factors: tuple[float, ...], shares: tuple[float, ...], kind: str
) -> Policy:
    """m items in levels of these shares (the last takes what rounding leaves), in order."""
    sizes = [max(1, round(m * share)) for share in shares[:-1]]
    levels = tuple(
        Level(f"level {k + 1}", Budget.parse(round(eps * factor, 9)))
        for k, factor in enumerate(factors)
    )
    level_of = np.repeat(np.arange(len(levels)), [*sizes, m - sum(sizes)])
    return Policy(tuple(map(str, range(m))), tuple(level_of.tolist()), levels, input=kind)


@lru_cache(maxsize=16)
def mechanism_of(task: Task, m: int) -> Mechanism:
    """The checked mechanism of a task."""
    policy = policy_of(m, task.eps, task.factors, task.shares, "set" if task.padding else "single")
    if task.model == "boxed":
        return boxed(policy, task.encoding, task.padding or None)
    return design(policy, task.model, encoding=task.encoding, padding=task.padding or None)


# ---- theory ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Profile:
    """What the theory needs of the data: per item the mean over people of pi and of pi^2, pi the chance to be sampled there."""

    n: int
    ell: int
    truth: Floats
    pi: Floats
    pi2: Floats

    @classmethod
    def of(cls, data: Dataset, padding: int) -> Profile:
        """Of single answers (padding 0), or of sets."""
        if not padding:
            share = data.first / data.n
            return cls(data.n, 1, data.first.astype(float), share, share)
        chance = np.repeat(1 / np.maximum(data.sizes, padding), data.sizes)
        pi, pi2 = (
            np.bincount(data.items, weights=x, minlength=data.m) / data.n
            for x in (chance, chance**2)
        )
        return cls(data.n, padding, data.counts.astype(float), pi, pi2)

    @cached_property
    def bias(self) -> Floats:
        """Of every item's estimate, in people: who has more than ell items is undercounted."""
        return self.n * self.ell * self.pi - self.truth

    def variance(self, mechanism: Mechanism, level_of: Any) -> Floats:
        """Of every item's estimate, in people squared, the level of every item given."""
        group_of, base = np.array(mechanism.groups)[level_of], _bases(mechanism)
        samples = np.bincount(group_of, weights=self.pi, minlength=base.shape[1])
        if mechanism.padding:
            samples = np.append(samples, 1 - samples.sum())
        return self._of_item(mechanism, (samples @ base)[group_of], group_of)

    def _mean_variance(self, mechanism: Mechanism, group: int) -> Floats:
        """The same for items of one group, on average over the assignments of all the others."""
        base, sizes = _bases(mechanism)[:, group], mechanism.group_sizes
        others = np.where(np.arange(len(sizes)) == group, sizes - 1, sizes) / max(
            1, mechanism.m - 1
        )
        samples = float(self.pi.sum())
        mean = self.pi * base[group] + (samples - self.pi) * float(others @ base[: len(sizes)])
        if mechanism.padding:
            mean += (1 - samples) * base[-1]
        return self._of_item(mechanism, mean, group)

    def _of_item(self, mechanism: Mechanism, base: Floats, group_of: Any) -> Floats:
        slope = mechanism.decoder.slope[group_of]
        return self.n * self.ell**2 * (base + self.pi * slope - self.pi2)

    def given(self, mechanism: Mechanism, level_of: Any) -> tuple[float, float]:
        """The expected total MSE / n for an assignment, and its standard deviation (of normal, independent errors)."""
        variance = self.variance(mechanism, level_of)
        spread = 2 * variance**2 + 4 * self.bias**2 * variance
        return float((variance + self.bias**2).sum() / self.n), float(
            np.sqrt(spread.sum()) / self.n
        )

    def theory(self, mechanism: Mechanism, ks: Iterable[int]) -> tuple[float, dict[int, float]]:
        """The expected total MSE / n, and the expected relative error of every top k (normal errors), over all assignments."""
        top = np.argsort(-self.truth, kind="stable")
        mse, relative = 0.0, np.zeros(len(top))
        for group, weight in enumerate(mechanism.group_sizes / mechanism.m):
            variance = self._mean_variance(mechanism, group)
            mse += weight * float((variance + self.bias**2).sum() / self.n)
            relative += (
                weight
                * _mean_distance(self.bias, np.sqrt(variance))[top]
                / np.maximum(self.truth[top], 1)
            )
        return mse, {k: float(relative[:k].mean()) for k in ks}


def _bases(mechanism: Mechanism) -> Floats:
    """The variance of an item that nobody holds, by its group (columns), per sample of every group (rows; then: empty)."""
    decoder = mechanism.decoder
    samples = np.eye(decoder.chance.shape[1])
    return np.stack([decoder.base(decoder.chance @ one, one) for one in samples])


def _mean_distance(mean: Floats, sd: Floats) -> Floats:
    """E|X| of a normal X."""
    z = mean / sd
    return sd * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * (1 - 2 * ndtr(-z))
