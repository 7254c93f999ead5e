"""Weights: people who answered count more or less, so that together they look like the population.

A weighted estimate is the sum of weight times score. Its noise has the variance of the squared
weights, so reports are tallied twice: by weight and by squared weight. Where the weights are those
of groups (post-stratification, raking), the estimates of the groups are added up instead, which
also takes out the chance of how many of each group answered.

Weights are public: they must not depend on what a person answered.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.arrays.types import Floats
from discreet.data.weights import MOST_PEOPLE as MOST
from discreet.data.weights import Population
from discreet.errors import DataError
from discreet.estimates.formulas import Variance
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.arrays.weighted import WeightedTally
    from discreet.estimates.estimate import Estimate

Key = TypeVar("Key", bound=Hashable)  # a group: a name, or a tuple of values

SMALL = 20  # reports of a group, or heavy reports, below which their noise is far from normal
_BORROW = 5  # people of a small group who count as much as its own answers tell


@dataclass(frozen=True, eq=False)
class Weighting:
    """What weights do to an estimate: how many equally weighted answers would be as good, and the
    luck of the draw. `groups` are the factors and estimates that were added up, where they were.
    """

    effective_n: float
    freedom: float  # reports that tell the variance: few where a few weigh most
    luck: Variance
    groups: tuple[tuple[float, Estimate], ...] = ()
    margins: Floats | None = None  # of raked groups: groups x cells of margins, 1 for its own
    # the noise and the luck of the draw if holders beyond those who were seen are heavy
    unseen: tuple[Variance, Variance] | None = None

    @property
    def smallest_group(self) -> int:
        """The reports of the smallest group that was added up; 0 where no groups were."""
        return min((estimate.n for _, estimate in self.groups), default=0)


def estimate_weighted(tally: WeightedTally) -> Estimate:
    """The estimate of a weighted tally. Weights are taken relative to their mean, so that counts
    are of as many people as answered.
    """
    from discreet.estimates.estimate import Estimate

    n, plain = tally.n, Estimate.from_tally(tally.squares)
    effect = n / tally.effective_n
    mine = Estimate.from_tally(tally.sums)
    counts, square = mine.counts * (n / mine.n), n * effect / plain.n
    at_zero = plain.variance_at_zero * square
    # the mean weight of those who hold the item; of few holders, towards that of everyone
    few = np.sqrt(at_zero)
    with np.errstate(invalid="ignore"):
        heavy = (np.maximum(plain.counts * square, 0) + few * effect) / (
            np.maximum(counts, 0) + few
        )
    heavy = np.where(np.isfinite(heavy), heavy, effect)
    luck = weighted_luck(heavy, effect, n, 1.0)
    heaviest = heaviest_weight(n, effect, tally.freedom)
    unseen = laws_of_unseen(at_zero, plain.slope, heavy, heaviest, counts, effect, n, 1.0)
    totals = None if mine.group_totals is None else mine.group_totals * (n / mine.n)
    return replace(
        mine,
        n=n,
        counts=counts,
        variance_at_zero=at_zero,
        slope=plain.slope * heavy,
        # one of few heavy reports moves the sum visibly
        step=mine.step * (heaviest if tally.freedom < SMALL else math.sqrt(effect)),
        group_totals=totals,
        weighting=Weighting(tally.effective_n, tally.freedom, luck, unseen=unseen),
    )


def weighted_luck(heavy: Floats, effect: float, n: int, most: Floats | float) -> Variance:
    """The luck of the draw where holders have this mean weight, and everyone this effect: sum of
    w^2 (x - p)^2. It bends up where those who lack the item are the heavy ones.
    """
    return Variance(0 * heavy, most * heavy, (2 * heavy - effect) / n)


def heaviest_weight(n: int, effect: float, freedom: float) -> float:
    """A typical weight of those who move the estimate most: the root of sum w^4 / sum w^2, where
    the mean weight is 1. It is 1 if all weights are equal.
    """
    return math.sqrt(max(n * effect / freedom, 1.0))


def laws_of_unseen(
    at_zero: Floats,
    slope: Floats,
    heavy: Floats,
    heaviest: float,
    counts: Floats,
    effect: float,
    n: int,
    most: Floats | float,
) -> tuple[Variance, Variance]:
    """The noise and the luck of the draw if the true count differs from the estimate because heavy
    people were drawn too often or too seldom.

    The sum of w^2 over the holders is A(c) = heavy c if the holders who were seen are typical. If
    chance left the heavy ones out, their weight is far too low. Of all ways to explain a count of c
    instead of the estimate, the likeliest puts the difference on the heavy reports: it adds
    `heaviest` per person, A(c) = A + heaviest (c - estimate). `slope` is what one unit of A adds to
    the noise. With equal weights both laws are the same.
    """
    seen = np.clip(np.nan_to_num(counts), 0, most * n)
    beyond = (heavy - heaviest) * seen  # A(c) = beyond + heaviest c
    noise = Variance(at_zero + slope * beyond, slope * heaviest)
    bend = max(2 * heaviest - effect, 0.0) / n
    luck = Variance(most * beyond, most * heaviest - 2 * beyond / n, bend + 0 * heavy)
    return noise, luck


# ---- groups whose numbers of people are known ----------------------------------------------------


def post_stratify(estimates: Mapping[Key, Estimate], people: Mapping[Key, float]) -> Estimate:
    """Add up the estimates of groups, each weighted by its size in the population.

    >>> import discreet as d
    >>> mechanism = d.design(d.Policy.from_levels([("all", "ln(9)", ["a", "b"])]), "rappor")
    >>> north, south = (
    ...     mechanism.tally([bytes([1]), bytes([2])], counts=counts).estimate()
    ...     for counts in ([700, 300], [100, 100])
    ... )
    >>> both = post_stratify({"north": north, "south": south}, {"north": 5e6, "south": 5e6})
    >>> both.n, both.shares().share.round(2).tolist()  # the mean of 90 % and 50 %
    (1200, [0.7, 0.3])
    """
    from discreet.estimates.estimate import Estimate

    _check_groups(estimates, people)
    population = sum(people[name] for name in estimates)
    each = [*estimates.values()]
    n = sum(e.n for e in each)
    factors = [people[name] / population * n / e.n for name, e in estimates.items()]
    margins = people.columns([*estimates]) if isinstance(people, Raked) else None
    counts, noise, luck = add_up(
        factors,
        each,
        np.array([e.counts for e in each]),
        [Variance(e.variance_at_zero, e.slope) for e in each],
        np.ones(len(each[0])),
        margins,
    )
    square = [f**2 * e.n * effect(e) for f, e in zip(factors, each, strict=True)]
    fourth = [
        x**2 / (e.weighting.freedom if e.weighting else e.n)
        for x, e in zip(square, each, strict=True)
    ]
    weighting = Weighting(
        n**2 / sum(square),
        sum(square) ** 2 / sum(fourth),
        luck,
        tuple(zip(factors, each, strict=True)),
        margins,
    )
    step = np.sqrt(sum(square) / n) * np.max([e.step for e in each], axis=0)
    for f, e in zip(factors, each, strict=True):
        if e.n < SMALL:  # one report of a small group moves the sum visibly
            step = np.maximum(step, f * e.step)
    made = each[0].mechanism
    return Estimate(made, n, counts, noise.at_zero, noise.slope, step, weighting=weighting)


def effect(estimate: Estimate) -> float:
    """What unequal weights multiply the variance by."""
    return estimate.n / estimate.weighting.effective_n if estimate.weighting else 1.0


def add_up(
    factors: Sequence[float],
    estimates: Sequence[Estimate],
    counts: Floats,
    noises: Sequence[Variance],
    most: Floats,
    margins: Floats | None = None,
) -> tuple[Floats, Variance, Variance]:
    """The sum of counts of groups (groups x items), each times its factor; its noise, and the luck
    of the draw, as functions of the sum. If the sum were another, all groups' shares would differ
    by the same number.

    With `margins`, the people of the groups were raked: only the margins are known, and how people
    fall on the groups within them is luck too. It moves the sum by what the margins do not explain
    of the groups' shares (the linearised variance of raking, Deville and Särndal 1992).
    """
    f, k = (np.array(x, float)[:, None] for x in (factors, [e.n for e in estimates]))
    effects = np.array([effect(e) for e in estimates])[:, None]
    n = float(k.sum())
    total = (f * counts).sum(axis=0)
    share = np.clip(np.nan_to_num(total) / n, 0, most)
    own = np.nan_to_num(counts) / k - share  # a small group's share is hardly known
    own = np.clip(own * k / (k + _BORROW * effects), -share, most - share)
    at_zero, slope = (np.array([getattr(v, x) for v in noises]) for x in ("at_zero", "slope"))
    noise = Variance(
        (f**2 * (at_zero + k * slope * own)).sum(axis=0), (f**2 * k * slope).sum(axis=0) / n
    )
    weight = f**2 * k * effects
    luck = Variance(
        (weight * own * (most - own)).sum(axis=0),
        (weight * (most - 2 * own)).sum(axis=0) / n,
        float(weight.sum()) / n**2,
    )
    if margins is not None:
        shares = np.clip(np.nan_to_num(counts) / k, 0, most)
        left = unexplained(shares, margins, (f * k)[:, 0])
        luck += Variance((weight * left**2).sum(axis=0), 0 * share)
    return total, noise, luck


def unexplained(shares: Floats, margins: Floats, people: Floats) -> Floats:
    """What is left of the groups' shares (groups x items) after the main effects of the margins,
    by least squares weighted by the people.
    """
    root = np.sqrt(people)[:, None]
    effects, *_ = np.linalg.lstsq(root * margins, root * shares, rcond=None)
    return shares - margins @ effects


def people_per_group(
    sizes: Mapping[tuple[str, ...], int], populations: Sequence[Population]
) -> dict[tuple[str, ...], float]:
    """The people that every group stands for: as they are known, or raked to margins."""
    whole = [p for p in populations if None not in next(iter(p))]
    if whole and len(populations) == 1:
        return {tuple(x or "" for x in group): people for group, people in whole[0].items()}
    return rake(sizes, populations)


class Raked(dict[tuple[str, ...], float]):
    """People per group that agree with known margins. How many people each group has is itself
    estimated, so `post_stratify` adds that to the error.
    """

    def __init__(self, people: Mapping[tuple[str, ...], float], margins: Sequence[Population]):
        super().__init__(people)
        self.margins = tuple(margins)

    def columns(self, groups: Sequence[Any]) -> Floats:
        """Groups x cells of all margins: 1 where the group is of the cell."""
        cells = [
            np.array([[_cell(group, margin) == key for key in margin] for group in groups], float)
            for margin in self.margins
        ]
        return np.concatenate(cells, axis=1)


def rake(sizes: Mapping[tuple[str, ...], int], margins: Sequence[Population]) -> Raked:
    """People per group such that the sums agree with known margins (iterative proportional
    fitting). `sizes` has the number of answers per tuple of values. A margin gives the people for
    some of the columns, None in place of the others; only how they compare matters.
    """
    _check_margins(sizes, margins)
    for margin in margins:
        for group in sizes:
            if not margin[_cell(group, margin)] > 0:
                raise DataError(_no_people(_cell(group, margin)))
    fitted = {group: float(size) for group, size in sizes.items()}
    shares = [{key: x / sum(margin.values()) for key, x in margin.items()} for margin in margins]
    for _ in range(1000):
        worst = 0.0
        for margin in shares:
            sums: dict[tuple[str | None, ...], float] = dict.fromkeys(margin, 0.0)
            cell = {group: _cell(group, margin) for group in fitted}
            for group, people in fitted.items():
                sums[cell[group]] += people
            for key, wanted in margin.items():
                if wanted > 0 and sums[key] <= 0:
                    raise DataError(_nobody(key))
            for group in fitted:
                factor = margin[cell[group]] / (sums[cell[group]] or 1.0)
                worst = max(worst, abs(factor - 1))
                fitted[group] *= factor
        if worst < 1e-10:
            return Raked(fitted, margins)
    raise DataError(
        "no weights agree with all of these margins: too few combinations of the groups answered; "
        "join small groups, or leave a margin out"
    )


def _cell(group: tuple[str, ...], margin: Population) -> tuple[str | None, ...]:
    pattern = next(iter(margin))
    cell = tuple(x if kept is not None else None for x, kept in zip(group, pattern, strict=True))
    if cell not in margin:
        raise DataError(_no_people(cell))
    return cell


def _no_people(group: object) -> str:
    return (
        f"the population has no people for the group {_named(group)}, which answered; check how "
        "it is spelled"
    )


def _nobody(group: object) -> str:
    return (
        f"nobody of the group {_named(group)} answered, so nobody can stand for its people; join "
        "it with another group"
    )


def _named(group: object) -> str:
    values = group if isinstance(group, tuple) else (group,)
    return quoted(", ".join(str(value) for value in values if value is not None))


def _check_people(people: Mapping[Any, Any]) -> None:
    for group, number in people.items():
        real = isinstance(number, Real) and not isinstance(number, bool)
        if not real or not 0 <= float(number) <= MOST:
            raise DataError(
                f"the people of the group {_named(group)} must be a number from 0 to {MOST:g}, not "
                f"{number!r}"
            )


def _check_margins(sizes: Mapping[tuple[str, ...], int], margins: Sequence[Population]) -> None:
    """Refuse margins that do not say something of every group."""
    if not sizes or not margins:
        raise DataError("raking needs groups that answered and at least one margin")
    length = len(next(iter(sizes)))
    for margin in margins:
        _check_people(margin)
        if not margin or not sum(margin.values()) > 0:
            raise DataError("a margin has no people; give the people of every value")
        for key in margin:
            if len(key) != length:
                raise DataError(
                    f"the margin's group {_named(key)} has {len(key)} columns and the groups that "
                    f"answered have {length}; write None for a column without a value"
                )
    patterns = [tuple(x is None for x in next(iter(margin))) for margin in margins]
    if len({*patterns}) < len(patterns):
        raise DataError("two margins have the same columns; keep one")


def _check_groups(estimates: Mapping[Key, Estimate], people: Mapping[Key, float]) -> None:
    if not estimates:
        raise DataError("there are no reports in these groups, so there is nothing to add up")
    _check_people(people)
    for group in estimates:
        if not people.get(group, 0) > 0:
            raise DataError(_no_people(group))
    for group, number in people.items():
        if number > 0 and group not in estimates:
            raise DataError(_nobody(group))
    prints = {estimate.mechanism.fingerprint for estimate in estimates.values()}
    if len(prints) > 1:
        raise DataError("the groups answered different mechanisms; add up those of one")
