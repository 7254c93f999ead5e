"""Estimator and errors of picks (check/exact_picks.py), whose parts depend on the *class* of a
person: the number j_b of own active items of every block b.

Within a cut, N_o reports of part o, Y_oi of which name item i of block b, with k = kappa m for the
block's m items:

    c_i = sum_o w_ob (Y_oi - N_o kappa_ob) + sum_o tau_ob N_o

An own item of the block is named in part o with chance p_o(j) kappa + (1 - j_b/m) d_ob(j), another
one with p_o(j) kappa - (j_b/m) d_ob(j). So c_i is unbiased for every set of at most s items if and
only if for all classes j

    sum_o w_ob d_ob(j) = 1  (0 < j_b < m)    and    sum_o tau_ob p_o(j) = j_b/m

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
from discreet.policy.lazy import cached_property

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
    blocks: Ints  # of every group, from 1; 0 where its items are not active
    m: Ints  # per block
    classes: Ints  # classes x blocks
    chance: float
    law: Floats  # of the classes, at the mechanism's shares
    law_of_named: Floats  # classes x parts x vectors of named own items, which are classes too
    used: Floats  # classes x parts: p_o(j)
    kappa: Floats  # blocks x parts
    weight: Floats
    tau: Floats
    own: Floats  # blocks x classes: E[g^2 | j] of an item that one has; without any, as `other`
    other: Floats  # of one that one does not have; if one has all, as with one less
    cost: Floats  # per block the sum over its items at these classes; infinite if it is not solved

    def per_group(self, values: Floats) -> Floats:
        """The values of the groups' blocks; 0 where the items are not active."""
        return np.concatenate((np.zeros((1, *values.shape[1:])), values))[self.blocks]

    def per_block(self, values: Floats | Ints) -> Floats:
        """The sums of values of groups over the blocks."""
        return np.asarray(values @ np.eye(len(self.m) + 1)[self.blocks, 1:])

    def place(self, j: Ints) -> Ints:
        """The places of these classes, the rows of j, which there are."""
        digits = (int(self.classes.max()) + 1) ** np.arange(len(self.m))[::-1]
        return np.searchsorted(self.classes @ digits, j @ digits)

    def holders(self, law: Floats, block: int) -> Floats:
        """The law of the classes of those who hold an item of a block."""
        more = law * self.classes[:, block]
        if more.sum() > 0:
            return more / more.sum()
        return np.eye(len(law))[self.place(np.eye(len(self.m), dtype=np.int64)[block])]

    def squared_sum(self, v: Floats, v2: Floats, mine: Floats, mine2: Floats) -> Floats:
        """E[(sum of v_i g_i)^2 | j] over some active items with these sums of v and v^2 per block,
        and with those of the own ones among them: given n, both parts of a subset are uniform.
        """
        mean, noise = np.zeros(self.law_of_named.shape), np.zeros(self.law_of_named.shape)
        for b, m in enumerate(self.m):
            j, n = self.classes[:, None, None, b], self.classes[None, None, :, b]
            k = np.rint(self.kappa[b] * m)[None, :, None]
            rest, rest2 = v[b] - mine[b], v2[b] - mine2[b]
            weight, tau = self.weight[b, None, :, None], self.tau[b, None, :, None]
            named = mine[b] * n / np.maximum(j, 1) + rest * (k - n) / np.maximum(m - j, 1)
            mean += weight * (named - v[b] * self.kappa[b, None, :, None]) + v[b] * tau
            spread = _drawn_variance(j, n, mine[b], mine2[b])
            noise += weight**2 * (spread + _drawn_variance(m - j, k - n, rest, rest2))
        return (self.law_of_named * (mean**2 + noise)).sum(axis=(1, 2))

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


def _drawn_variance(size: Ints, count: Ints | Floats, v: float, v2: float) -> Floats:
    """Of the sum of v over a uniform subset of so many of `size` items with these sums."""
    few = np.maximum(size, 1)
    spread = count * (size - count) / (few * np.maximum(size - 1, 1))
    return np.maximum(spread, 0) * np.maximum(v2 - v * v / few, 0)


def cut_decoder(parts: Sequence[PicksPart], places: Sequence[int], people: People) -> CutDecoder:
    """Solve for the scores of the parts of one cut."""
    mine = [parts[o] for o in places]
    first, every = mine[0], mine[0].classes
    at = {j: place for place, j in enumerate(every)}
    law = people.law(first.group_sizes, first.ints.blocks)
    used = np.array([[float(part.means[j][0]) for part in mine] for j in every])
    of_named = np.zeros((len(every), len(mine), len(every)))
    for o, part in enumerate(mine):
        for j, row in part.laws.items():
            for n, p in row.items():
                of_named[at[j], o, at[n]] = float(p)
    blocks = [_block_scores(mine, every, b, used, law @ used) for b in range(len(first.m))]
    for b, m in enumerate(first.m):
        other = blocks[b].other
        for j, place in at.items():
            if j[b] == m:
                other[place] = other[at[*j[:b], m - 1, *j[b + 1 :]]]
    kappa, weight, tau, own, other, cost = (np.array(x) for x in zip(*blocks, strict=True))
    return CutDecoder(
        np.array(places), np.array(first.ints.blocks), np.array(first.m), np.array(every),
        first.ints.chance / D, law, of_named, used, kappa, weight, tau, own, other, cost,
    )  # fmt: skip


class _Scores(NamedTuple):
    kappa: Floats
    weight: Floats
    tau: Floats
    own: Floats
    other: Floats
    cost: float


def _block_scores(
    parts: Sequence[PicksPart], every: Sequence[tuple[int, ...]], b: int, used: Floats,
    share: Floats,
) -> _Scores:  # fmt: skip
    """Those of the items of one block, and their second moments per class."""
    m, j = parts[0].m[b], np.array(every)[:, b, None]
    named = np.array([[float(part.means[c][1][b]) for part in parts] for c in every])
    learnt = np.array(
        [
            [float(part.learnt(c, b)) / (c[b] * (m - c[b])) for part in parts]
            for c in every
            if 0 < c[b] < m
        ]
    ).reshape(-1, len(parts))
    kappa = np.array([part.ints.sizes[b] / m for part in parts])
    spread = np.maximum(share, 1e-12)
    noise = spread * kappa * (1 - kappa)
    weight = _least(learnt, np.where(noise > 0, noise, 1.0), np.ones(len(learnt)))
    tau = _least(used, spread, j[:, 0] / m)
    solved = bool(np.isfinite(weight).all() and np.isfinite(tau).all())
    if not solved:
        weight, tau = np.zeros((2, len(parts)))
    high, low = (weight * (1 - kappa) + tau) ** 2, (tau - weight * kappa) ** 2
    mine, others = named / np.maximum(j, 1), (kappa * m * used - named) / np.maximum(m - j, 1)
    own = (mine * high + (used - mine) * low).sum(axis=1)
    other = (others * high + (used - others) * low).sum(axis=1)
    cost = float(share @ (m * (weight**2 * kappa * (1 - kappa) + tau**2))) if solved else math.inf
    return _Scores(kappa, weight, tau, np.where(j[:, 0] > 0, own, other), other, cost)


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
        told = np.array([cut.per_group(cut.chance * cut.m / cut.cost) for cut in cuts])
        total = told.sum(axis=0)
        estimable = total > 0
        chance = np.array([cut.chance for cut in cuts])[:, None]
        mixed = np.where(estimable, told / np.where(estimable, total, 1), 0) / chance
        weight, tau, kappa = np.zeros((3, len(parts), len(total)))
        for cut, by in zip(cuts, mixed, strict=True):
            for scores, values in ((weight, cut.weight), (tau, cut.tau)):
                scores[cut.parts] = cut.per_group(values).T * by
            kappa[cut.parts] = cut.per_group(cut.kappa).T
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
        for cut, times, law in zip(self.cuts, self._times, laws, strict=True):
            for b, (own, other) in enumerate(zip(cut.own, cut.other, strict=True)):
                mine = np.where(cut.blocks == b + 1, times, 0)
                absent += mine * float(law @ other)
                more += mine * float(cut.holders(law, b) @ (own - other))
        return np.where(self.estimable, absent, np.inf), more

    @cached_property
    def _times(self) -> Floats:
        """By which the second moments of a cut are multiplied, cuts x groups."""
        return self.mixed**2 * np.array([cut.chance for cut in self.cuts])[:, None]

    def laws(self, people: People, mechanism: Mechanism) -> list[Floats]:
        """The laws of the classes, per cut."""
        return [people.law(mechanism.group_sizes, cut.blocks) for cut in self.cuts]

    @property
    def largest(self) -> Floats:
        """The largest second moment of an item that one does not have, over all classes."""
        most = [cut.per_group(cut.other.max(axis=1)) for cut in self.cuts]
        return (self._times * most).sum(axis=0).astype(np.float64, copy=False)

    def most_together(self, sizes: Ints) -> float:
        """The largest sum of all scores of one report: of the likeliest items of its subsets, or of
        the others.
        """
        most = 0.0
        for cut, mixed in zip(self.cuts, self.mixed, strict=True):
            ends = np.zeros((2, len(cut.parts)))
            for b, m in enumerate(cut.m):
                v = np.sort(np.repeat(mixed, np.where(cut.blocks == b + 1, sizes, 0)))
                if not v.any():
                    continue
                k = np.rint(cut.kappa[b] * m).astype(np.int64)
                sums = np.append(0.0, np.cumsum(v))
                named = np.array([sums[-1] - sums[m - k], sums[k]])
                ends += np.sort(cut.weight[b] * named, axis=0)
                ends += (cut.tau[b] - cut.weight[b] * cut.kappa[b]) * sums[-1]
            most = max(most, float(np.abs(ends).max()))
        return most

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
        """The weighted total of the variances of one person's scores, for every way to have at most
        s items of the groups; if these are too many, one bound of all. The scores of a larger set
        are at most those of a set of s items, but less is subtracted, because each of its items
        counts s / |x|: as little as for a person with all items.
        """
        if not self.estimable.all():
            return np.array([np.inf])
        of_group = np.bincount(mechanism.groups, weights * mechanism.policy.level_sizes)
        heavy = np.zeros(len(of_group))  # the largest weight of a group's items
        np.maximum.at(heavy, list(mechanism.groups), weights)
        ways = _compositions(mechanism.group_sizes, mechanism.padding or 1)
        totals = []
        for cut, times in zip(self.cuts, self._times, strict=True):
            gain = times * heavy
            base = cut.per_block(times * of_group) @ cut.other
            more = cut.own - cut.other
            if ways is None:
                most = np.array([gain[cut.blocks == b + 1].max() for b in range(len(cut.m))])
                added = (most * cut.classes * np.maximum(more, 0).T).sum(axis=1)
                totals.append(np.array([(base + added).max()]))
                continue
            at = cut.place(cut.per_block(ways).astype(np.int64))
            totals.append(base[at] + (cut.per_block(ways * gain) * more[:, at].T).sum(axis=1))
        if ways is None:
            return np.asarray(sum(totals))
        s = mechanism.padding or 1
        kept = np.where(ways.sum(axis=1) < s, 1.0, min(1.0, s / mechanism.m))
        return np.asarray(sum(totals) - kept * (ways @ np.minimum(heavy, weights.min())))

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
        kept = min(size, s)
        for cut, times in zip(self.cuts, self._times, strict=True):
            mine = cut.per_block(sum_by_place(group_of, held, len(times))).astype(np.int64)
            idle, own, other = size - int(mine.sum()), np.zeros(len(mine)), np.zeros(len(mine))
            for place, j in enumerate(cut.classes):
                rest = kept - int(j.sum())
                if rest < 0 or (j > mine).any():
                    continue
                ways = math.prod(map(math.comb, mine.tolist(), j.tolist())) * math.comb(idle, rest)
                chance, hold = ways / math.comb(size, kept), j / np.maximum(mine, 1)
                other += chance * cut.other[:, place]
                own += chance * (hold * cut.own[:, place] + (1 - hold) * cut.other[:, place])
            moments = [(times * cut.per_group(x))[group_of] for x in (own, other)]
            total += np.where(held > 0, *moments)
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
            sums = cut.per_block(mixed * counts), cut.per_block(mixed**2 * counts)
            none = cut.squared_sum(*sums, *np.zeros((2, len(cut.m))))
            at_zero += cut.chance * float(law @ none)
            for k, row in enumerate(own):
                there = (cut.classes >= cut.per_block(row * (mixed > 0))).all(axis=1)
                if there.any():
                    mine = cut.per_block(row * mixed), cut.per_block(row * mixed**2)
                    some = cut.squared_sum(*sums, *mine)
                    most[k] += cut.chance * float((some - none)[there].max())
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
