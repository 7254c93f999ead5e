"""Sums of items, such as "any mental illness": how far chance moves the sum of their estimates.

A sum of items has the sum of their scores. Where a report names items independently of each other,
their variances add up. Subsets of fixed size tie items together: who names one leaves less room for
the others, so the variance of the summed score is worked out part by part. Both are exact for
single answers. A list can hold several of the items, and how many do is not told: there the
variance is an upper bound, and a person counts once for each item that they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.classes import ClassDecoder
from discreet.arrays.types import Floats, Ints
from discreet.errors import DataError
from discreet.estimates.formulas import Variance, check_about, joined, luck_of_the_draw
from discreet.estimates.intervals import Shares, freedom, laws, outer, uncut_shares
from discreet.estimates.table import COLUMNS, Table
from discreet.estimates.weights import (
    add_up,
    effect,
    heaviest_weight,
    laws_of_unseen,
    weighted_luck,
)
from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate


def table(
    estimate: Estimate, sums: Mapping[str, Sequence[int]], confidence: float, about: str
) -> Table:
    """One row per sum of items, given by their places, with the columns of an estimate."""
    if not sums:
        return Table(dict.fromkeys(COLUMNS, ()))
    places = [np.array(sum_, int) for sum_ in sums.values()]
    n, lists = estimate.n, estimate.mechanism.policy.kind.lists
    step = np.array([estimate.step[x].max() for x in places])
    counts, both = _laws(estimate, places)
    noises = [noise for noise, _ in both]
    largest = np.array([len(x) if lists else 1 for x in places])  # items per person
    stderr = np.sqrt(noises[0].at(np.clip(np.nan_to_num(counts), 0, largest * n)))
    low, high = outer(counts, noises, step, confidence, False, freedom(estimate))
    check_about(about)
    variances = [noise + luck for noise, luck in both] if about == "population" else noises
    within = np.clip(counts, 0, largest * n)
    ends = outer(within, variances, step, confidence, False, freedom(estimate))
    shares = counts / n, *(np.clip(end / n, 0, largest) for end in ends)
    labels = np.array([*sums], object), np.full(len(sums), "total", object)
    columns = *labels, counts, stderr, low, high, *shares
    return Table(dict(zip(COLUMNS, columns, strict=True)))


def shares_together(
    estimate: Estimate, sums: Mapping[str, Sequence[int]], about: str, confidence: float
) -> Shares:
    """The shares of all items, then of these sums, with intervals that hold for all of them
    together; they may reach below 0 and above 1, to compute with.
    """
    if not sums:
        return uncut_shares(estimate, about, confidence, simultaneous=True)
    places = [np.array(sum_, int) for sum_ in sums.values()]
    summed, both = _laws(estimate, places)
    more = [noise + luck if about == "population" else noise for noise, luck in both]
    counts = np.append(estimate.counts, summed)
    step = np.append(estimate.step, [estimate.step[x].max() for x in places])
    joint_laws = [joined(*pair) for pair in zip(laws(estimate, about), more, strict=True)]
    ends = outer(counts, joint_laws, step, confidence, True, freedom(estimate))
    return Shares(*(x / estimate.n for x in (counts, *ends)))


def named_sum(estimate: Estimate, items: object) -> dict[str, list[int]]:
    """The places of the items of a sum, under a name made of theirs."""
    policy = estimate.mechanism.policy
    listed = [items] if isinstance(items, str) else items
    if not isinstance(listed, Iterable):
        raise DataError(f"a total needs a list of items, got {quoted(items)}")
    places = [policy.place(item) for item in listed]
    if not places or len({*places}) < len(places):
        raise DataError("a total needs at least one item, and each only once")
    return {" + ".join(policy.items[place] for place in places): places}


Laws = list[tuple[Variance, Variance]]


def _laws(estimate: Estimate, places: Sequence[Ints]) -> tuple[Floats, Laws]:
    """The sums; their noise and the luck of the draw, and the same for holders not seen."""
    most = np.array([_most_held(estimate.mechanism, len(x)) for x in places], float)
    weighting = estimate.weighting
    if weighting is not None and weighting.groups:
        factors, parts = zip(*weighting.groups, strict=True)
        each = [_laws(part, places) for part in parts]
        counts, noises = np.array([law[0] for law in each]), [law[1][0][0] for law in each]
        counts, noise, luck = add_up(factors, parts, counts, noises, most, weighting.margins)
        return counts, [(noise, luck)]
    counts = np.array([estimate.counts[x].sum() for x in places])
    at_zero, slope = zip(*(variance(estimate, x) for x in places), strict=True)
    noise, luck = Variance(np.array(at_zero), np.array(slope)), luck_of_the_draw(estimate.n, most)
    if weighting is None:
        return counts, [(noise, luck)]
    heavy = np.array([_mean(weighting.luck.slope, estimate, x) for x in places])
    times, n = effect(estimate), estimate.n
    luck = weighted_luck(heavy, times, n, most)
    per_weight = np.divide(noise.slope, heavy, out=0 * heavy, where=heavy > 0)
    heaviest = heaviest_weight(n, times, weighting.freedom)
    unseen = laws_of_unseen(noise.at_zero, per_weight, heavy, heaviest, counts, times, n, most)
    return counts, [(noise, luck), unseen]


def variance(estimate: Estimate, places: Ints) -> tuple[float, float]:
    """The variance of the sum of these items' estimates: at zero, and its slope in the true sum."""
    if estimate.group_totals is None:
        return _of_independent(estimate, places)
    if isinstance(estimate.mechanism.arrays.decoder, ClassDecoder):
        return _of_classes(estimate, places, estimate.mechanism.arrays.decoder)
    return _of_fixed(estimate, places, estimate.group_totals)


def _most_held(mechanism: Mechanism, count: int) -> int:
    """How many of `count` items one report can speak of as the sender's own."""
    if not mechanism.policy.kind.lists or mechanism.encoding.lists == "sampled":
        return 1
    return min(count, mechanism.padding or count)


def _of_independent(estimate: Estimate, places: Ints) -> tuple[float, float]:
    """The sum of the items' variances. The slope is the mean of theirs, weighted by their counts.

    A list that is counted as a whole may hold several: the square of a sum of k terms is at most k
    times the sum of their squares.
    """
    mechanism, d = estimate.mechanism, estimate.mechanism.arrays.decoder
    slope = _mean(estimate.slope, estimate, places)
    if mechanism.encoding.lists == "counted":
        own = d.own[mechanism.arrays.group_of]
        several = _most_held(mechanism, len(places)) - 1
        slope += effect(estimate) * several * mechanism.scale * _mean(own, estimate, places)
    return float(estimate.variance_at_zero[places].sum()), slope


def _mean(values: Floats, estimate: Estimate, places: Ints) -> float:
    """The mean of the values of these items, weighted by their counts."""
    weights = np.maximum(np.nan_to_num(estimate.counts[places]), 0)
    return float(np.average(values[places], weights=weights if weights.sum() > 0 else None))


def _of_classes(estimate: Estimate, places: Ints, d: ClassDecoder) -> tuple[float, float]:
    """By the mean squared score of a person who holds none of the items, and the most that holding
    some of them adds, per item, whatever else they have.
    """
    mechanism, times = estimate.mechanism, effect(estimate)
    assert estimate.group_totals is not None
    counts = np.bincount(
        mechanism.arrays.group_of[places], minlength=len(mechanism.arrays.group_sizes)
    )
    at_zero, more = d.sum_moments(mechanism, counts, estimate.group_totals)
    return times * at_zero, times * (more - 1)


def _of_fixed(estimate: Estimate, places: Ints, totals: Floats) -> tuple[float, float]:
    """By the mean squared score of a person inside and outside of the sum, per group."""
    mechanism, n = estimate.mechanism, estimate.n
    scale, times = mechanism.scale, effect(estimate)
    group_of = mechanism.arrays.group_of[places]
    counts = np.bincount(group_of, minlength=len(mechanism.arrays.group_sizes))
    held = np.bincount(group_of, weights=estimate.counts[places], minlength=len(counts)) / scale
    inside = np.clip(np.append(held, 0)[: len(totals)], 0, totals)
    outside = totals - inside
    own, other = (_mean_square(estimate, counts, own) for own in (True, False))
    possible = np.append(counts, 0)[: len(totals)] > 0
    mine = float(np.average(own, weights=inside if inside.sum() > 0 else possible))
    theirs = float(np.average(other, weights=outside)) if outside.sum() > 0 else 0.0
    return times * scale**2 * n * theirs, times * (scale * (mine - theirs) - 1)


def _mean_square(estimate: Estimate, counts: Ints, inside: bool) -> Floats:
    """The mean squared summed score of a person whose answer is in each group (then of an empty
    sample), inside the sum or outside of it; `counts`: items of the sum per group.
    """
    arrays = estimate.mechanism.arrays
    d, sizes = arrays.decoder, arrays.group_sizes.astype(float)
    named = np.round(arrays.other * sizes)  # items of a group that a part's reports name
    # groups that the answer is not in: a random subset of each
    few = np.maximum(sizes - 1, 1)
    spread = d.weight**2 * counts * arrays.other * (1 - arrays.other) * (sizes - counts) / few
    level = (d.tau * counts).sum(axis=1)
    # the answer's own group: whether it is named, then a random subset of the others
    rest, others = np.maximum(counts - inside, 0), np.maximum(sizes - 1, 1)
    mean, square = np.zeros_like(spread), np.zeros_like(spread)
    for own in (0, 1):
        chance = arrays.own if own else 1 - arrays.own
        near = (named - own) / others
        number = own * inside + rest * near
        noise = rest * near * (1 - near) * (others - rest) / np.maximum(others - 1, 1)
        score = d.weight * (number - counts * arrays.other)
        mean += chance * score
        square += chance * (score**2 + d.weight**2 * noise)
    away = spread.sum(axis=1, keepdims=True) - spread
    speaks = arrays.own > 0
    mean, square = np.where(speaks, mean, 0), np.where(speaks, square, spread)
    second_moment = square + away + 2 * level[:, None] * mean + level[:, None] ** 2
    groups = (d.chance[:, : len(sizes)] * second_moment).sum(axis=0)
    if d.chance.shape[1] == len(sizes):
        return groups
    empty = d.chance[:, -1] @ (spread.sum(axis=1) + level**2)
    return np.append(groups, empty)
