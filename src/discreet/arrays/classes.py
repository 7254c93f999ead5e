"""Estimator and errors of picks (check/exact_picks.py), whose parts depend on the *class* of a
person: the number j of active items that they have.

Within a cut of m active items, N_o reports of part o, Y_oi of which name item i, k = kappa m:

    c_i = sum_o w_o (Y_oi - N_o kappa_o) + sum_o tau_o N_o

An own active item is named in part o with chance p_o(j) kappa + (1 - j/m) d_o(j), another one with
p_o(j) kappa - (j/m) d_o(j). So c_i is unbiased for every set of at most s items if and only if

    sum_o w_o d_o(j) = 1  (0 < j < m)    and    sum_o tau_o p_o(j) = j/m  (0 <= j <= min(s, m))

Both are solved from the integers, with the least noise at the mechanism's shares; rounding costs no
unbiasedness. A cut's scores are divided by its chance, and cuts that name the same item are mixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from discreet.arrays.people import People, parted
from discreet.arrays.theory import Decoder, SetError, item_shares
from discreet.arrays.types import Floats, Ints, Prior, sum_by_place
from discreet.check import exact_picks
from discreet.check.exact import D
from discreet.check.parts import PicksPart
from discreet.mechanism import Mechanism

if TYPE_CHECKING:
    from discreet.arrays.tally import Tally

_SMALLEST = 1e-6  # scaled singular value below which a cut's parts do not tell the classes apart
_STEPS = 300  # of the fit of the classes of people
_COMPOSITIONS = 20_000  # classes of the groups that are tried for the worst case


# ---- one cut -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CutDecoder:
    """The scores of one cut, and their second moments per class, before the chance of the cut."""

    parts: Ints  # their places
    m: int
    chance: float
    law: Floats  # of the classes, at the mechanism's shares
    law_of_named: Floats  # classes x parts x numbers of named own items
    used: Floats  # classes x parts: p_o(j)
    kappa: Floats
    weight: Floats
    tau: Floats
    own: Floats  # E[g^2 | j] of an item that one has; of class 0, that of class 1
    other: Floats  # of one that one does not have; of class m, that of class m - 1
    cost: float  # the sum over all active items at these classes; infinite if it cannot be solved

    def holders(self, law: Floats) -> Floats:
        """The law of the classes of those who hold an active item."""
        more = law * np.arange(len(law))
        return more / more.sum() if more.sum() > 0 else np.eye(len(law))[min(1, len(law) - 1)]

    def squared_sum(self, v: float, v2: float, mine: float, mine2: float) -> Floats:
        """E[(sum of v_i g_i)^2 | j] over some active items with these sums of v and v^2, and with
        those of the own ones among them: given n named own items, both parts of a subset are
        uniform.
        """
        m, J = self.m, len(self.law) - 1
        j, n = np.arange(J + 1)[:, None, None], np.arange(J + 1)[None, None, :]
        k = np.rint(self.kappa * m)[None, :, None]
        mean = mine * n / np.maximum(j, 1) + (v - mine) * (k - n) / np.maximum(m - j, 1)
        noise = _drawn_variance(j, n, mine, mine2)
        noise = noise + _drawn_variance(m - j, k - n, v - mine, v2 - mine2)
        weight, tau = self.weight[None, :, None], self.tau[None, :, None]
        level = v * (tau - weight * self.kappa[None, :, None])
        squares = (weight * mean + level) ** 2 + weight**2 * noise
        return (self.law_of_named * squares).sum(axis=(1, 2))

    def fitted(self, part_n: Floats) -> Floats:
        """The law of the classes behind these reports per part, by maximum likelihood, as far as
        the reports tell it: so many steps of EM from the mechanism's shares.
        """
        law = 0.9 * self.law + 0.1 / len(self.law)
        if part_n.sum() > 0:
            share = part_n / part_n.sum()
            for _ in range(_STEPS):
                law *= self.used @ (share / np.maximum(law @ self.used, 1e-300))
        return law / law.sum()


class _Score(NamedTuple):
    law: Floats
    of_named: Floats
    used: Floats
    kappa: Floats
    weight: Floats
    tau: Floats


def _drawn_variance(size: Ints, count: Ints | Floats, v: float, v2: float) -> Floats:
    """Of the sum of v over a uniform subset of so many of `size` items with these sums."""
    few = np.maximum(size, 1)
    spread = count * (size - count) / (few * np.maximum(size - 1, 1))
    return np.maximum(spread, 0) * np.maximum(v2 - v * v / few, 0)


def cut_decoder(parts: Sequence[PicksPart], places: Sequence[int], people: People) -> CutDecoder:
    """Solve for the scores of the parts of one cut."""
    mine = [parts[o] for o in places]
    m, s = mine[0].m, len(mine[0].ints.rows) - 1
    J = min(s, m)
    law = people.law(mine[0].sizes, mine[0].active)
    used = np.array([[float(part.means[j][0]) for part in mine] for j in range(J + 1)])
    named = np.array([[float(part.means[j][1]) for part in mine] for j in range(J + 1)])
    learnt = np.array(
        [
            [
                float((part.means[j][1] - part.means[j][0] * j * part.ints.size / m) * m)
                / (j * (m - j))
                for part in mine
            ]
            for j in range(1, min(J, m - 1) + 1)
        ]
    ).reshape(-1, len(mine))
    of_named = np.zeros((J + 1, len(mine), J + 1))
    for o, part in enumerate(mine):
        for j, row in enumerate(part.laws[: J + 1]):
            for n, p in row.items():
                of_named[j, o, n] = float(p)
    kappa = np.array([part.ints.size / m for part in mine])
    share = np.maximum(law @ used, 1e-12)
    noise = share * kappa * (1 - kappa)
    weight = _least(learnt, np.where(noise > 0, noise, 1.0), np.ones(len(learnt)))
    tau = _least(used, share, np.arange(J + 1) / m)
    solved = bool(np.isfinite(weight).all() and np.isfinite(tau).all())
    high, low = (weight * (1 - kappa) + tau) ** 2, (tau - weight * kappa) ** 2
    j_ = np.arange(J + 1)[:, None]
    mine_named, rest = named / np.maximum(j_, 1), kappa * m * used - named
    others = rest / np.maximum(m - j_, 1)
    own = (mine_named * high + (used - mine_named) * low).sum(axis=1)
    other = (others * high + (used - others) * low).sum(axis=1)
    own[0] = own[min(1, J)]
    if m == J:
        other[m] = other[m - 1]
    cost = float(law @ (used @ (m * (weight**2 * kappa * (1 - kappa) + tau**2))))
    score = _Score(law, of_named, used, kappa, weight, tau)
    return CutDecoder(
        np.array(places), m, mine[0].ints.chance / D, *score, own, other,
        cost if solved else math.inf,
    )  # fmt: skip


def _least(A: Floats, noise: Floats, wanted: Floats) -> Floats:
    """The x with A x = wanted and the smallest sum of noise x^2; NaN where A does not determine
    it.
    """
    if not len(A):
        return np.zeros(len(noise))
    scaled = A / np.sqrt(noise)
    scale = np.abs(scaled).max(axis=1, keepdims=True)
    if len(A) > len(noise) or not scale.min() > 0:
        return np.full(len(noise), np.nan)
    u, values, v = np.linalg.svd(scaled / scale, full_matrices=False)
    if values[-1] < _SMALLEST * values[0]:
        return np.full(len(noise), np.nan)
    inner = v.T @ ((u.T @ (wanted / scale[:, 0])) / values)
    return (inner / np.sqrt(noise)).astype(np.float64, copy=False)


# ---- a mechanism ---------------------------------------------------------------------------------


# More than 400 lines: decoder, laws and variances share the same classes.
@dataclass(frozen=True, eq=False)
class ClassDecoder(Decoder):
    """The scores of all cuts. The second moments depend on the classes of people, so that `same`
    and `own` are those at the mechanism's shares.
    """

    cuts: tuple[CutDecoder, ...]
    mixed: Floats  # cuts x groups: by which the scores of a cut are multiplied

    @classmethod
    def for_mechanism(cls, mechanism: Mechanism) -> ClassDecoder:
        """The best unbiased estimator at the mechanism's shares."""
        parts = cast(tuple[PicksPart, ...], mechanism.parts)
        people = People.at_shares(mechanism)
        places = exact_picks.cuts([part.ints for part in parts])
        cuts = tuple(cut_decoder(parts, cut, people) for cut in places)
        active = np.array([parts[cut[0]].active for cut in places], float)
        told = np.array([cut.chance * cut.m / cut.cost for cut in cuts])[:, None] * active
        total = told.sum(axis=0)
        estimable = total > 0
        chance = np.array([cut.chance for cut in cuts])[:, None]
        mixed = np.where(total > 0, told / np.where(total > 0, total, 1), 0) / chance
        of_part = np.empty(len(parts), np.int64)
        scores = np.zeros((3, len(parts)))
        for c, cut in enumerate(cuts):
            of_part[cut.parts] = c
            finite = (np.where(np.isfinite(x), x, 0) for x in (cut.weight, cut.tau))
            scores[:, cut.parts] = [*finite, cut.kappa]
        weight, tau = scores[0][:, None] * mixed[of_part], scores[1][:, None] * mixed[of_part]
        kappa = scores[2][:, None] * active[of_part]
        high, low = (weight * (1 - kappa) + tau) ** 2, (tau - weight * kappa) ** 2
        spread, none = kappa * high + (1 - kappa) * low, np.zeros(len(total))
        chances = mechanism.arrays.chance
        made = cls(chances, weight, kappa, tau, spread, none, none, estimable, cuts, mixed)
        same, more = made.moments([cut.law for cut in cuts])
        return replace(made, same=same, own=same + more)

    def moments(self, laws: Sequence[Floats]) -> tuple[Floats, Floats]:
        """E[g^2] of an item that nobody holds, per group, at these laws of the classes per cut;
        and what one holder adds to the sum.
        """
        absent, more = np.zeros(self.mixed.shape[1]), np.zeros(self.mixed.shape[1])
        for cut, mixed, law in zip(self.cuts, self.mixed, laws, strict=True):
            times = np.where(mixed > 0, mixed**2 * cut.chance, 0)
            if times.any():
                absent += times * float(law @ cut.other)
                more += times * float(cut.holders(law) @ (cut.own - cut.other))
        return np.where(self.estimable, absent, np.inf), more

    def laws(self, people: People, mechanism: Mechanism) -> list[Floats]:
        """The laws of the classes, per cut."""
        parts = cast(tuple[PicksPart, ...], mechanism.parts)
        sizes = mechanism.group_sizes
        return [people.law(sizes, parts[cut.parts[0]].active) for cut in self.cuts]

    @property
    def largest(self) -> Floats:
        """The largest second moment of an item that one does not have, over all classes."""
        times = np.where(self.mixed > 0, self.mixed**2, 0) * self._chances[:, None]
        return times.T @ np.array([cut.other.max() for cut in self.cuts])

    def most_together(self, sizes: Ints) -> float:
        """The largest sum of all scores of one report: of the likeliest items of its subset."""
        most = 0.0
        for cut, mixed in zip(self.cuts, self.mixed, strict=True):
            v = np.sort(np.repeat(mixed, np.where(mixed > 0, sizes, 0)))
            k = np.rint(cut.kappa * cut.m).astype(np.int64)
            sums = np.append(0.0, np.cumsum(v))
            named = np.where(cut.weight > 0, sums[-1] - sums[len(v) - k], sums[k])
            total = cut.weight * named + (cut.tau - cut.weight * cut.kappa) * sums[-1]
            most = max(most, float(np.abs(total).max()))
        return most

    @property
    def _chances(self) -> Floats:
        return np.array([cut.chance for cut in self.cuts])

    # ---- what theory.py asks ---------------------------------------------------------------------

    def item_variance(self, mechanism: Mechanism, prior: Prior) -> Floats:
        """Var / n of every item's estimate at a prior."""
        held = item_shares(mechanism.policy, prior, mechanism.padding)
        held = held * min(1.0, (mechanism.padding or 1) / max(float(held.sum()), 1e-300))
        return self.variance(mechanism, People.at_prior(mechanism, prior), held)

    def variance(self, mechanism: Mechanism, people: People, held: Floats) -> Floats:
        """The same for given people, of whom so many hold each item."""
        absent, more = self.moments(self.laws(people, mechanism))
        group = mechanism.arrays.group_of
        return absent[group] + held * (more[group] - 1)

    def absent_variance(self, mechanism: Mechanism, prior: Prior) -> Floats:
        """Var / n of the estimate of an item that nobody holds, per level."""
        absent, _ = self.moments(self.laws(People.at_prior(mechanism, prior), mechanism))
        return absent[list(mechanism.groups)]

    def costs(self, mechanism: Mechanism, weights: Floats) -> Floats:
        """The weighted total of the squared scores of one person, for every way to have at most s
        items of the groups; if these are too many, one bound of all.
        """
        if not self.estimable.all():
            return np.array([np.inf])
        of_group = np.bincount(mechanism.groups, weights * mechanism.policy.level_sizes)
        heavy = np.zeros(len(of_group))  # the largest weight of a group's items
        np.maximum.at(heavy, list(mechanism.groups), weights)
        ways = _compositions(mechanism.group_sizes, mechanism.padding or 1)
        totals = []
        for cut, mixed in zip(self.cuts, self.mixed, strict=True):
            times = mixed**2 * cut.chance
            active = mixed > 0
            gain = times * heavy
            if ways is None:
                base = float(times @ of_group) * cut.other
                j = np.arange(len(cut.law))
                totals.append(
                    np.array([(base + j * gain.max() * np.maximum(cut.own - cut.other, 0)).max()])
                )
                continue
            j = ways @ active.astype(np.int64)
            totals.append(
                float(times @ of_group) * cut.other[j] + (ways @ gain) * (cut.own - cut.other)[j]
            )
        items = 0.0 if ways is None else ways @ np.minimum(heavy, weights.min())
        return np.asarray(sum(totals) - items)

    def set_error(self, mechanism: Mechanism, sets: Sequence[Sequence[int]]) -> SetError:
        """Bias and variance per item for given sets, exactly."""
        s, m = mechanism.padding or 1, mechanism.m
        bias, squares = np.zeros(m), np.zeros(m)
        second = np.zeros(m)
        group_of = mechanism.arrays.group_of
        for items in sets:
            counted = min(1.0, s / max(len(items), 1))
            held = np.zeros(m)
            held[list(items)] = 1
            bias += held * (counted - 1)
            squares += held * counted**2
            second += self._second(mechanism, held, group_of, s)
        return SetError(bias, second - squares)

    def set_error_by_size(
        self, mechanism: Mechanism, counts: Mapping[int, Floats], n: int
    ) -> SetError:
        """The same from the count of every item among the people with k items, for every k: as if
        those of one size had any items of a group, and took groups as often as these people do.
        """
        s, group_of = mechanism.padding or 1, mechanism.arrays.group_of
        bias, squares, second = (np.zeros(mechanism.m) for _ in range(3))
        rest = float(n)
        for k, holders in counts.items():
            counted, people = float(mechanism.arrays.counted(k)), float(holders.sum()) / max(k, 1)
            if not people > 0:
                continue
            rest -= people
            sizes = np.eye(s + 1)[min(k, s)]
            absent, more = self.moments(
                self.laws(People(sizes, parted(group_of, holders)), mechanism)
            )
            bias += holders * (counted - 1)
            second += people * absent[group_of] + holders * counted * more[group_of]
            squares += holders * counted**2
        none = [np.eye(len(cut.law))[0] for cut in self.cuts]
        second += max(rest, 0.0) * self.moments(none)[0][group_of]
        return SetError(bias, second - squares)

    def _second(self, mechanism: Mechanism, held: Floats, group_of: Ints, s: int) -> Floats:
        """E[g^2] of every item for a person with this set."""
        total, size = np.zeros(len(held)), int(held.sum())
        for cut, mixed in zip(self.cuts, self.mixed, strict=True):
            active = (mixed > 0)[group_of]
            mine = int(held[active].sum())
            kept = min(size, s)
            own = other = 0.0
            ways = math.comb(size, kept)
            for j in range(max(0, kept - (size - mine)), min(kept, mine) + 1):
                chance = math.comb(mine, j) * math.comb(size - mine, kept - j) / ways
                hold = j / mine if mine else 0.0
                other += chance * cut.other[j]
                own += chance * (hold * cut.own[j] + (1 - hold) * cut.other[j])
            times = (mixed**2 * cut.chance)[group_of] * active
            total += times * np.where(held > 0, own, other)
        return total

    # ---- what estimates ask ----------------------------------------------------------------------

    def observed(self, tally: Tally) -> tuple[Floats, Floats]:
        """The variance of an estimate per group, from the tally alone: of an item that nobody
        holds, and what one holder adds.

        The sum of the squared scores is unbiased for the second moments whatever people have. Its
        mean over a group's items is that of items with the group's mean count.
        """
        mechanism, group_of = tally.mechanism, tally.mechanism.arrays.group_of
        count = self.mixed.shape[1]
        _, more = self.moments(self.fitted(tally.part_n))
        level = self.tau - self.weight * self.kappa
        named = np.stack([sum_by_place(group_of, row.astype(float), count) for row in tally.counts])
        sizes = mechanism.arrays.group_sizes
        squares = ((level + self.weight) ** 2 * named).sum(axis=0)
        squares += (level**2 * (tally.part_n[:, None] * sizes - named)).sum(axis=0)
        counts = (self.weight * named).sum(axis=0) + (tally.part_n @ level) * sizes
        at_zero = (squares - more * np.clip(counts, 0, None)) / sizes
        least = 1e-3 * squares / sizes
        return np.where(self.estimable, np.maximum(at_zero, least), np.inf), more - 1

    def fitted(self, part_n: Ints | Floats) -> list[Floats]:
        """The laws of the classes behind these reports, per cut."""
        return _fitted(self, np.asarray(part_n, float).tobytes())

    def sum_moments(
        self, mechanism: Mechanism, counts: Ints, people: Floats
    ) -> tuple[float, float]:
        """Of a sum of so many items of each group: the sum of the squared scores of these people,
        per cut and class, if nobody holds one; and the most that holding some adds, per item.
        """
        ways = _compositions(counts.tolist(), mechanism.padding or 1)
        own = np.eye(len(counts), dtype=np.int64)[counts > 0] if ways is None else ways
        own = own[own.sum(axis=1) > 0]
        at_zero, first, most = 0.0, 0, np.zeros(len(own))
        for cut, mixed in zip(self.cuts, self.mixed, strict=True):
            law = people[first : first + len(cut.law)]
            first += len(cut.law)
            v, v2 = mixed * counts, mixed**2 * counts
            none = cut.squared_sum(float(v.sum()), float(v2.sum()), 0.0, 0.0)
            at_zero += cut.chance * float(law @ none)
            for k, row in enumerate(own):
                held = int(row @ (mixed > 0))
                if held < len(none):
                    mine = float(row @ mixed), float(row @ mixed**2)
                    some = cut.squared_sum(float(v.sum()), float(v2.sum()), *mine)
                    most[k] += cut.chance * float((some - none)[held:].max())
        return at_zero, float((most / own.sum(axis=1)).max())


@lru_cache(maxsize=8)  # an estimate asks twice
def _fitted(decoder: ClassDecoder, part_n: bytes) -> list[Floats]:
    """The laws of the classes, for these reports per part."""
    return [cut.fitted(np.frombuffer(part_n)[cut.parts]) for cut in decoder.cuts]


def _compositions(sizes: Sequence[int], s: int) -> Ints | None:
    """Every way to have at most s items of groups of these sizes; None if there are too many."""
    if math.comb(s + len(sizes), s) > _COMPOSITIONS:
        return None
    rows: list[list[int]] = [[]]
    for size in sizes:
        rows = [[*row, x] for row in rows for x in range(min(size, s - sum(row)) + 1)]
    return np.array(rows, np.int64)
