"""Fake reports: how far one can move a count, and whether honest reports could give a tally.

Anybody can send reports that no honest device would make; without invitations nothing stops that.
What honest reports obey, whatever people answered, can be compared with what came: the shares of
the parts, the number of items named, sums, and counts that are not negative. That is weak. Who
fakes moderately, or imitates the answers of many people, is not seen (docs/organiser.md has
figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.exact import D
from discreet.mechanism import Mechanism
from discreet.parts import Floats, fixed
from discreet.tally import Tally
from discreet.theory import Decoder

FALSE_ALARM = 1e-3  # the chance, at most, that honest reports give an alarm
_MANY = 2000  # groups, up to which every kind of answer is looked at one by one


# ---- one fake report -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reach:
    """How many people one report can stand for: at an item of every level, and at all items
    together (None where the encoding does not tell what is named together).
    """

    levels: Floats
    together: float | None

    @classmethod
    def of(cls, mechanism: Mechanism) -> Reach:
        """The largest scores of a mechanism's estimates."""
        d, sizes = mechanism.decoder, mechanism.group_sizes
        most = np.abs(_scores(d)).max(axis=0)
        together = None
        if mechanism.encoding.fixed_size:  # as many of a group are named in every report of a part
            together = float((d.tau * sizes).sum(axis=1).max())
        elif mechanism.encoding.kind in ("bits", "each"):  # everything can be named
            together = float((most * sizes).sum(axis=1).max())
        levels = np.where(d.known, most.max(axis=0), np.inf)[list(mechanism.groups)]
        scale = mechanism.scale
        return cls(fixed(scale * levels), None if together is None else scale * together)

    def sentence(self, mechanism: Mechanism) -> str:
        """What it says, for an organiser."""
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
    """What a report adds to the count of an item that it names, and of one that it does not, per
    part and group; the same where the part is silent.
    """
    return d.tau + d.weight * (1 - d.kappa), d.tau - d.weight * d.kappa


# ---- many of them --------------------------------------------------------------------------------


def oddities(tally: Tally, false_alarm: float = FALSE_ALARM) -> list[str]:
    """What honest reports would hardly show, a sentence each; empty for honest reports but for a
    chance of `false_alarm`, whatever people answered and however many they are.
    """
    if not tally.n:
        return []
    tests = [*_balances(tally), *_negatives(tally)]
    families = {test.family for test in tests}
    found = []
    for family in sorted(families):
        same = [test for test in tests if test.family == family]
        level = math.log(len(families) * sum(test.many for test in same) / false_alarm)
        found += [sentence for test in same if (sentence := test.sentence(level))]
    return found


@dataclass(frozen=True, eq=False)
class _Test:
    """Sums over all reports, each of mean 0 (or not below 0, if `lower`) for honest ones: values,
    the sums of second moments, the largest summands.
    """

    family: str
    values: Floats
    moments: Floats
    bounds: Floats
    told: Any  # k -> what is odd
    lower: bool = False

    @property
    def many(self) -> int:
        return len(self.values) * (1 if self.lower else 2)

    def sentence(self, level: float) -> str:
        """Bernstein's inequality: beyond t with a chance of at most e^-level, for
        t^2 = 2 level (V + M t / 3).
        """
        linear = self.bounds * level / 3
        limit = linear + np.sqrt(linear**2 + 2 * level * self.moments)
        over = (-self.values if self.lower else np.abs(self.values)) - limit * (1 + 1e-9)
        if not (over > 0).any():
            return ""
        return self.told(int(np.argmax(over / limit)))


def _negatives(tally: Tally) -> list[_Test]:
    """Counts of items, and of levels where subsets of fixed size tell them, that are below zero."""
    mechanism, n = tally.mechanism, tally.n
    d, group_of = mechanism.decoder, mechanism.group_of
    counts = tally.estimate().counts / mechanism.scale
    # what a holder adds to the mean outweighs what she adds to the noise
    moment = np.maximum(_largest(d), d.same)
    bound = np.abs(_scores(d)).max(axis=(0, 1))
    known = np.flatnonzero(d.known[group_of])
    policy, scale = mechanism.policy, mechanism.scale

    def item(k: int) -> str:
        return (
            f'"{policy.items[known[k]]}" has a count of {scale * counts[known[k]]:,.0f}, which '
            "honest reports would hardly give"
        )

    of = group_of[known]
    tests = [_Test("items", counts[known], n * moment[of], bound[of], item, lower=True)]
    if not mechanism.encoding.fixed_size or not d.known.all():
        return tests
    sizes = mechanism.group_sizes
    totals = tally.part_n @ (d.tau * sizes)
    moment = (d.chance.T @ (d.tau * sizes) ** 2).max(axis=0)
    bound = np.abs(d.tau * sizes).max(axis=0)

    def group(g: int) -> str:
        names = [lv.name for lv, h in zip(policy.levels, mechanism.groups, strict=True) if h == g]
        return (
            f'the items of "{names[0]}" have counts of {scale * totals[g]:,.0f} in all, which '
            "honest reports would hardly give"
        )

    return [*tests, _Test("levels", totals, n * moment, bound, group, lower=True)]


def _largest(d: Decoder) -> Floats:
    """Per group: the second moment of an item's score, at most over all answers of other groups."""
    if d.chance.shape[1] <= _MANY:
        return (d.chance.T @ d.spread).max(axis=0)
    return np.minimum(d.spread.max(axis=0), d.chance.max(axis=1) @ d.spread)


def _balances(tally: Tally) -> list[_Test]:
    """Sums that are 0 on average whatever people answer, since the counts are unbiased."""
    mechanism = tally.mechanism
    named = np.zeros((len(mechanism.parts), len(mechanism.group_sizes)))
    np.add.at(named.T, mechanism.group_of, tally.counts.T)  # items of a group, in all
    what, rows = [], []
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

    def told(k: int) -> str:
        far = "more" if values[k] > 0 else "fewer"
        return f"there are far {far} {what[k]} than honest reports would have"

    return [_Test("balances", values, moments, bounds, told)]


def _sums_of_independent(mechanism: Mechanism, b: Floats) -> bool:
    """Whether such a sum is one of independent terms with a known largest one: items of one report
    are not named independently in tickets and hits, nor across parts.
    """
    alone = len(mechanism.parts) == 1 and mechanism.encoding.kind in ("bits", "each")
    return mechanism.encoding.fixed_size or alone or not b.any()


def _linear(mechanism: Mechanism) -> Iterator[tuple[str, Floats, Floats]]:
    """Sums a_o + sum_g b_og (items of g named) of mean 0: how often a part is used, and that single
    answers are one per person.
    """
    d, sizes, parts = mechanism.decoder, mechanism.group_sizes, len(mechanism.parts)
    chance = d.chance[:, : len(sizes)]
    sets = mechanism.policy.takes_sets  # then compared with who has nothing
    usual = d.chance[:, -1] if sets else d.chance @ (np.array(mechanism.shares, dtype=float) / D)
    for o in range(parts):
        this = (np.arange(parts) == o).astype(float)
        yield f"reports of part {o + 1}", *_scored(d, sizes, this - usual[o], usual[o] - chance[o])
    if not sets:
        yield "answers in all", *_scored(d, sizes, -np.ones(parts), np.ones(len(sizes)))


def _scored(d: Decoder, sizes: Any, a: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """a_o + sum_g c_g (estimated samples of group g), written in the same way."""
    return a + (d.tau - d.weight * d.kappa) @ (sizes * coefficients), d.weight * coefficients


def _moments(mechanism: Mechanism, a: Floats, b: Floats) -> tuple[float, float]:
    """Of a sum a_o + sum_g b_og (items of g named) of mean 0, for an honest report: the second
    moment at most over all answers, and the largest summand (of one named item, where those are
    independent).
    """
    d, sizes = mechanism.decoder, mechanism.group_sizes
    centre = a + (b * d.kappa) @ sizes
    if mechanism.encoding.fixed_size or not b.any():
        return float((d.chance.T @ centre**2).max()), float(np.abs(centre).max())
    (part,) = mechanism.parts  # of single answers, named independently
    (b,), (kappa,), own = b, d.kappa, part.own_group
    noise = b**2 * kappa * (1 - kappa) @ sizes
    # the own item's variance differs; the mean is 0 for every answer
    second = noise + b**2 * (own * (1 - own) - kappa * (1 - kappa))
    return float(second.max()), float(np.abs(centre).max() + np.abs(b).max())
