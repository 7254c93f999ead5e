"""Fake reports: how far one can move a count, and whether honest reports could give a tally.

Anybody can send reports that no honest device would make; without invitations nothing stops that.
Honest reports obey some rules whatever people answered: the shares of the parts, the number of
items named, sums, and counts that are not negative. The tests here compare a tally with these
rules. They are weak: they miss moderate fakes and fakes that imitate the answers of many people
(docs/organiser.md has figures).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays.classes import ClassDecoder
from discreet.arrays.tally import Tally
from discreet.arrays.theory import Decoder
from discreet.arrays.types import Floats, Ints, read_only
from discreet.check.exact import D
from discreet.estimates.estimate import Estimate
from discreet.mechanism import Mechanism

FALSE_ALARM = 1e-3  # the chance, at most, that honest reports give an alarm
_MANY_GROUPS = 2000  # up to this number, every kind of answer is examined one by one


# ---- one fake report -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reach:
    """How many people one report can count for: at an item of every level, and at all items
    together (None where the encoding does not say which items a report can name together).
    """

    levels: Floats
    together: float | None

    @classmethod
    def for_mechanism(cls, mechanism: Mechanism) -> Reach:
        """The largest scores of a mechanism's estimates."""
        d, sizes = mechanism.arrays.decoder, mechanism.arrays.group_sizes
        most = np.abs(_scores(d)).max(axis=0)
        together = None
        if isinstance(d, ClassDecoder):
            together = d.most_together(sizes)
        elif (
            mechanism.encoding.fixed_size
        ):  # every report of a part names the same number of a group
            together = float((d.tau * sizes).sum(axis=1).max())
        elif mechanism.encoding.independent:  # a report can name every item
            together = float((most * sizes).sum(axis=1).max())
        levels = np.where(d.estimable, most.max(axis=0), np.inf)[list(mechanism.groups)]
        scale = mechanism.scale
        return cls(read_only(scale * levels), None if together is None else scale * together)

    def sentence(self, mechanism: Mechanism) -> str:
        """The reach in words, for an organiser."""
        names = [level.name for level in mechanism.policy.levels]
        order = np.argsort(-self.levels, kind="stable")
        each = [
            f'{_people(self.levels[k])} ("{names[k]}")'
            for k in (order if len(order) < 5 else order[[0, -1]])
        ]
        listed = each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"
        all_ = "" if self.together is None else f", all together by {_people(self.together)}"
        return f"One fake report can move an item by up to {listed} people{all_}."


def _people(count: float) -> str:
    if not np.isfinite(count):
        return "any number of"
    return f"{count:,.0f}" if count >= 10 else f"{count:.1f}"


def _scores(d: Decoder) -> tuple[Floats, Floats]:
    """What a report adds to the count of an item that it names, and to one that it does not, per
    part and group. The two are equal where the part is silent.
    """
    return d.tau + d.weight * (1 - d.kappa), d.tau - d.weight * d.kappa


# ---- many fake reports ---------------------------------------------------------------------------


def oddities(
    tally: Tally, false_alarm: float = FALSE_ALARM, estimate: Estimate | None = None
) -> list[str]:
    """Signs that reports did not come from honest devices, one sentence each.

    For honest reports the list is empty with a chance of at least 1 - `false_alarm`, whatever and
    however many people answered. Give the tally's `estimate` if you have it.
    """
    if not tally.n:
        return []
    tests = [*_balances(tally), *_negatives(tally, estimate or tally.estimate())]
    families = {test.family for test in tests}
    sentences = []
    for family in sorted(families):
        same = [test for test in tests if test.family == family]
        level = math.log(len(families) * sum(test.comparisons for test in same) / false_alarm)
        sentences += [sentence for test in same if (sentence := test.sentence(level))]
    return sentences


@dataclass(frozen=True, eq=False)
class _Test:
    """Sums over all reports: their values, the sums of second moments, the largest summands.

    For honest reports every sum has mean 0, or with `lower` a mean of at least 0.
    """

    family: str
    values: Floats
    moments: Floats
    bounds: Floats
    describe: Callable[[int], str]  # what is odd about the k-th sum
    lower: bool = False

    @property
    def comparisons(self) -> int:
        return len(self.values) * (1 if self.lower else 2)

    def sentence(self, level: float) -> str:
        """What is odd about the largest sum beyond its limit t; empty if none is beyond it.

        Bernstein's inequality: the chance of more than t is at most e^-level for
        t^2 = 2 level (V + M t / 3).
        """
        linear = self.bounds * level / 3
        limit = linear + np.sqrt(linear**2 + 2 * level * self.moments)
        over = (-self.values if self.lower else np.abs(self.values)) - limit * (1 + 1e-9)
        if not (over > 0).any():
            return ""
        return self.describe(int(np.argmax(over / limit)))


def _negatives(tally: Tally, estimate: Estimate) -> list[_Test]:
    """Tests for counts below zero: of items, and of levels if subsets have a fixed size."""
    mechanism, n = tally.mechanism, tally.n
    d, group_of = mechanism.arrays.decoder, mechanism.arrays.group_of
    counts = estimate.counts / mechanism.scale
    # a holder adds more to the mean than to the noise
    largest = d.largest if isinstance(d, ClassDecoder) else _largest(d)
    moment = np.maximum(largest, d.same)
    bound = np.abs(_scores(d)).max(axis=(0, 1))
    places = np.flatnonzero(d.estimable[group_of])
    policy, scale = mechanism.policy, mechanism.scale

    def item(k: int) -> str:
        return (
            f'"{policy.items[places[k]]}" has a count of {scale * counts[places[k]]:,.0f}, which '
            "honest reports would hardly give"
        )

    group = group_of[places]
    tests = [_Test("items", counts[places], n * moment[group], bound[group], item, lower=True)]
    if not mechanism.encoding.fixed_size or not d.estimable.all() or isinstance(d, ClassDecoder):
        return tests
    sizes = mechanism.arrays.group_sizes
    totals = tally.part_n @ (d.tau * sizes)
    moment = (d.chance.T @ (d.tau * sizes) ** 2).max(axis=0)
    bound = np.abs(d.tau * sizes).max(axis=0)

    def level(g: int) -> str:
        names = [lv.name for lv, h in zip(policy.levels, mechanism.groups, strict=True) if h == g]
        return (
            f'the items of "{names[0]}" have counts of {scale * totals[g]:,.0f} in all, which '
            "honest reports would hardly give"
        )

    return [*tests, _Test("levels", totals, n * moment, bound, level, lower=True)]


def _largest(d: Decoder) -> Floats:
    """The largest second moment of an item's score over all answers of other groups, per group."""
    if d.chance.shape[1] <= _MANY_GROUPS:
        return (d.chance.T @ d.spread).max(axis=0)
    return np.minimum(d.spread.max(axis=0), d.chance.max(axis=1) @ d.spread)


def _balances(tally: Tally) -> list[_Test]:
    """Tests for sums that are 0 on average, whatever people answer: the counts are unbiased."""
    mechanism = tally.mechanism
    groups, size = mechanism.arrays.group_of, len(mechanism.arrays.group_sizes)
    # items of a group, in all
    named = np.array([np.bincount(groups, counts, size) for counts in tally.counts])
    what, rows = [], []
    if isinstance(mechanism.arrays.decoder, ClassDecoder):
        return _class_balances(tally, mechanism.arrays.decoder)
    for name, a, b in _linear(mechanism):
        if not _sums_of_independent(mechanism, b):
            continue
        moment, bound = _moments(mechanism, a, b)
        if moment > 1e-9:  # else it is 0 for all reports
            what.append(name)
            rows.append((tally.part_n @ a + (named * b).sum(), tally.n * moment, bound))
    if not rows:
        return []
    values, moments, bounds = np.array(rows).T
    return [_Test("balances", values, moments, bounds, _far(values, what))]


def _class_balances(tally: Tally, decoder: ClassDecoder) -> list[_Test]:
    """Tests of the reports per part: every cut has its chance, and of the parts of one cut what no
    mixture of classes of people explains has mean 0.
    """
    what, rows = [], []
    for c, cut in enumerate(decoder.cuts):
        inside = np.zeros(len(tally.part_n))
        inside[cut.parts] = 1
        if cut.chance < 1:
            what.append(f"reports of the parts of cut {c + 1}")
            rows.append((inside - cut.chance, cut.chance * (1 - cut.chance)))
        fits = np.linalg.pinv(cut.used) @ cut.used  # onto what classes of people can explain
        for place, odd in zip(cut.parts.tolist(), np.eye(len(fits)) - fits, strict=True):
            sums = np.zeros(len(tally.part_n))
            sums[cut.parts] = odd
            moment = cut.chance * float((cut.used @ odd**2).max())
            if moment > 1e-9:  # else it is 0 for all reports
                what.append(f"reports of part {place + 1}")
                rows.append((sums, moment))
    if not rows:
        return []
    values = np.array([tally.part_n @ sums for sums, _ in rows])
    moments = np.array([tally.n * moment for _, moment in rows])
    bounds = np.array([np.abs(sums).max() for sums, _ in rows])
    return [_Test("balances", values, moments, bounds, _far(values, what))]


def _far(values: Floats, what: list[str]) -> Callable[[int], str]:
    def describe(k: int) -> str:
        far = "more" if values[k] > 0 else "fewer"
        return f"there are far {far} {what[k]} than honest reports would have"

    return describe


def _sums_of_independent(mechanism: Mechanism, b: Floats) -> bool:
    """Whether such a sum has independent terms of a known largest size.

    Tickets, hits and several parts do not name the items of one report independently.
    """
    alone = len(mechanism.parts) == 1 and mechanism.encoding.independent
    return mechanism.encoding.fixed_size or alone or not b.any()


def _linear(mechanism: Mechanism) -> Iterator[tuple[str, Floats, Floats]]:
    """Sums a_o + sum_g b_og (items of g named) of mean 0: how often a part is used, and that every
    person gives one single answer.
    """
    d, sizes, parts = mechanism.arrays.decoder, mechanism.arrays.group_sizes, len(mechanism.parts)
    chance = d.chance[:, : len(sizes)]
    sets = mechanism.policy.kind.lists  # then compared with people who have nothing
    usual = d.chance[:, -1] if sets else d.chance @ (np.array(mechanism.shares, dtype=float) / D)
    for o in range(parts):
        this = (np.arange(parts) == o).astype(float)
        yield f"reports of part {o + 1}", *_scored(d, sizes, this - usual[o], usual[o] - chance[o])
    if not sets:
        yield "answers in all", *_scored(d, sizes, -np.ones(parts), np.ones(len(sizes)))


def _scored(d: Decoder, sizes: Ints, a: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """a_o + sum_g c_g (estimated samples of group g), written in the same way."""
    return a + (d.tau - d.weight * d.kappa) @ (sizes * coefficients), d.weight * coefficients


def _moments(mechanism: Mechanism, a: Floats, b: Floats) -> tuple[float, float]:
    """The largest second moment of a sum a_o + sum_g b_og (items of g named) of mean 0 over all
    answers of an honest report, and its largest summand (of one item, if items are independent).
    """
    d, sizes = mechanism.arrays.decoder, mechanism.arrays.group_sizes
    centre = a + (b * d.kappa) @ sizes
    if mechanism.encoding.fixed_size or not b.any():
        return float((d.chance.T @ centre**2).max()), float(np.abs(centre).max())
    # one part of single answers, named independently
    (b,), (kappa,), (own,) = b, d.kappa, mechanism.arrays.own
    noise = b**2 * kappa * (1 - kappa) @ sizes
    # the own item's variance differs; the mean is 0 for every answer
    second = noise + b**2 * (own * (1 - own) - kappa * (1 - kappa))
    return float(second.max()), float(np.abs(centre).max() + np.abs(b).max())
