"""What a mechanism promises, in numbers and in words.

`holds` is the exact check; the other figures are floats computed from the same integers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import DataError, DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.lazy import cached_property
from discreet.promises import paths, sentences
from discreet.promises.published import Published, published
from discreet.promises.ratios import (
    Factor,
    Pairs,
    factor_up,
    level_factors,
    log,
    log_mean,
    protected_factors,
    realised,
    realised_under,
)
from discreet.promises.sets import AnySetPromises, set_promises

if TYPE_CHECKING:
    from discreet.arrays.leakage import Leakage
    from discreet.arrays.types import Prior
    from discreet.policy.types import Item


# More than 15 public names and 400 lines: all are figures of one promise, which people look up in
# one place, and nearly half of the lines are their examples.
@dataclass(frozen=True)
class Guarantee:
    """The promise of one mechanism, or of several used one after the other on the same items
    (`compose`).

    Items that share their level in every mechanism form a class; for one mechanism classes are the
    policy's levels. The examples below go on from these two:

    >>> from discreet import Policy, design
    >>> levels = [("serious", "ln(4)", ["HIV"]), ("common", "ln(6)", ["flu", "cold", "cough"])]
    >>> guarantee = design(Policy.from_levels(levels)).guarantee()
    >>> guarantee_of_sets = design(Policy.from_levels(levels, kind="set", padding=2)).guarantee()
    """

    mechanisms: tuple[Mechanism, ...]
    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]  # per mechanism, the level of every class
    class_of: tuple[int, ...]  # of every item of the first mechanism

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism) -> Guarantee:
        """The guarantee of one mechanism; `mechanism.guarantee()` is shorter.

        >>> Guarantee.from_mechanism(guarantee.mechanisms[0]) == guarantee
        True
        """
        policy = mechanism.policy
        names = tuple(level.name for level in policy.levels)
        return cls((mechanism,), names, (tuple(range(len(names))),), policy.level_of)

    @property
    def holds(self) -> bool:
        """Whether the exact check agrees; it runs again each time.

        >>> guarantee.holds
        True
        """
        return all(mechanism.check() is None for mechanism in self.mechanisms)

    @property
    def policy(self) -> Policy:
        """The policy of the (first) mechanism.

        >>> guarantee.policy.items
        ('HIV', 'flu', 'cold', 'cough')
        """
        return self.mechanisms[0].policy

    @cached_property
    def sizes(self) -> list[int]:
        """The number of items of every class.

        >>> guarantee.sizes
        [1, 3]
        """
        counts = Counter(self.class_of)
        return [counts[k] for k in range(len(self.names))]

    @property
    def pairs(self) -> Pairs:
        """The promise for every pair of levels.

        >>> [(pair.first, pair.second, pair.allowed) for pair in guarantee.pairs][1]
        ('serious', 'common', 4.0)
        """
        return Pairs(self)

    # ---- pair by pair ----------------------------------------------------------------------------

    def allowed(self, i: int) -> list[float]:
        """r of class i over every class, summed over the mechanisms; infinite where a pair is not
        protected.

        >>> [round(r, 4) for r in guarantee.allowed(1)]
        [1.3863, 1.7918]
        """
        rows = [
            [row[k] for k in place]
            for mechanism, place in self._terms
            for row in [paths.pair_row(mechanism.policy, place[i])]
        ]
        return [math.fsum(column) for column in zip(*rows, strict=True)]

    def realised(self, i: int) -> list[float]:
        """The largest log-ratio of an input of class i over another input of every class: never
        above what is allowed.

        >>> [x <= r for x, r in zip(guarantee.realised(1), guarantee.allowed(1))]
        [True, True]
        """
        return self._sum_ratios(realised, i)

    def realised_either_way(self, i: int) -> list[float]:
        """The larger of `realised` and the log-ratio in the other direction.

        >>> guarantee.realised_either_way(1) >= guarantee.realised(1)
        True
        """
        over, under = self._sum_ratios(realised, i), self._sum_ratios(realised_under, i)
        return [max(pair) for pair in zip(over, under, strict=True)]

    def _sum_ratios(self, of_one: Callable[[Mechanism, int], list[float]], i: int) -> list[float]:
        total = [0.0] * len(self.names)
        for mechanism, place in self._terms:
            row = of_one(mechanism, mechanism.groups[place[i]])
            total = [x + row[mechanism.groups[k]] for x, k in zip(total, place, strict=True)]
        if self.sizes[i] == 1:
            total[i] = 0.0  # there is no other input of this class
        return total

    @property
    def _terms(self) -> Iterable[tuple[Mechanism, tuple[int, ...]]]:
        return zip(self.mechanisms, self.places, strict=True)

    @cached_property
    def level_epsilons(self) -> tuple[float, ...]:
        """Per class: the largest realised log-ratio, either way, between one of its inputs and any
        other input; infinite where a report can show that it is one of the two.

        >>> [round(x, 4) for x in guarantee.level_epsilons]
        [1.3863, 1.7918]
        """
        if len(self.mechanisms) == 1:  # O(t), where the rows below are O(t^2)
            return tuple(map(log, level_factors(self.mechanisms[0])))
        return tuple(max(self.realised_either_way(i)) for i in range(len(self.names)))

    @cached_property
    def raise_epsilons(self) -> tuple[float, ...]:
        """Per class: the largest realised log-ratio of one of its inputs over any other input. It
        bounds by how much a report can raise the odds that an answer is one of the class.

        >>> [x <= y for x, y in zip(guarantee.raise_epsilons, guarantee.level_epsilons)]
        [True, True]
        """
        if len(self.mechanisms) == 1:
            return tuple(map(log, level_factors(self.mechanisms[0], one_way=True)))
        return tuple(max(self.realised(i)) for i in range(len(self.names)))

    @property
    def is_mutual(self) -> bool:
        """Whether every pair of answers is protected in both directions alike.

        >>> guarantee.is_mutual
        True
        """
        return all(mechanism.policy.is_mutual for mechanism in self.mechanisms)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """What a report tells per class: between an answer and any other, or between having an item
        and not having it. Where protection is one-way, of the answer over any other.

        >>> guarantee.epsilons == guarantee.level_epsilons
        True
        """
        if self.policy.kind.lists:
            return self.item_epsilons
        return self.level_epsilons if self.is_mutual else self.raise_epsilons

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """What a person is promised per class, as factors that are never less than the truth, over
        the answers that theirs is protected from. For one mechanism they are exact, from the
        checked integers; for several they come from `epsilons`, with a margin above the error of
        floats. Infinite for open levels.

        >>> [round(float(factor), 5) for factor in guarantee.factors]
        [4.0, 6.0]
        """
        if self.policy.kind.lists:
            rows = [[s.item_factors[k] for k in place] for s, place in self._set_promises]
            one = Fraction(1)
            return tuple(math.prod(row, start=one) for row in zip(*rows, strict=True))
        if len(self.mechanisms) > 1:
            return tuple(factor_up(x, len(self.mechanisms)) for x in self.epsilons)
        (mechanism,) = self.mechanisms
        if paths.has_gaps(mechanism.policy):
            return protected_factors(mechanism, paths.shortest(mechanism.policy))
        return level_factors(mechanism, one_way=not self.is_mutual)

    @cached_property
    def item_epsilons(self) -> tuple[float, ...]:
        """Lists, per class: the largest log-ratio of any report between having and not having one
        of its items.

        >>> [x <= budget for x, budget in zip(guarantee_of_sets.item_epsilons, (1.3863, 1.7918))]
        [True, True]
        """
        return tuple(map(log, self.factors))

    # ---- all answers together --------------------------------------------------------------------

    @property
    def ldp_epsilon(self) -> float:
        """The realised budget of plain LDP; for lists between any two of them. Infinite where a
        report can show that an answer is, or is not, one of some.

        >>> round(guarantee.ldp_epsilon, 4)
        1.7918
        """
        if self.policy.kind.lists:
            if not self.is_mutual:
                return math.inf  # that an item is lacking may become known
            return math.fsum(promises.epsilon for promises, _ in self._set_promises)
        return max(self.level_epsilons)

    @cached_property
    def raise_epsilon(self) -> float:
        """By how much in all a report can raise the odds of a protected answer; for lists that are
        protected item by item one way, of all items together. Open levels do not count. The same
        as `ldp_epsilon` where both directions are protected alike.

        >>> guarantee.raise_epsilon == guarantee.ldp_epsilon
        True
        """
        if self.is_mutual:
            return self.ldp_epsilon
        if self.policy.kind.lists:
            return math.fsum(promises.epsilon for promises, _ in self._set_promises)
        told = (
            epsilon
            for k, epsilon in enumerate(self.raise_epsilons)
            if not all(m.policy.levels[place[k]].budget.is_open for m, place in self._terms)
        )
        return max(told, default=math.inf)

    @cached_property
    def ldp_bound(self) -> float:
        """The budget of plain LDP that the policy implies: Lemma 1's min{max E, 2 min E} for one
        `min` policy; in general the longest of the shortest paths, since a pair may be protected
        through others.

        >>> round(guarantee.ldp_bound, 4)
        1.7918
        """
        if self.policy.kind.lists and not self.is_mutual:
            return math.inf
        return sum(paths.ldp_bound(mechanism.policy) for mechanism in self.mechanisms)

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """Per level what counts against a limit: the log-ratio that is realised for one of its
        answers. For sets no less than the level's budget, which a set may use up, and no less than
        what is realised between two sets where that is above all budgets.

        >>> [round(x, 4) for x in guarantee.budgets]
        [1.3863, 1.7918]
        """
        policy = self._only("a budget per level").policy
        if not policy.kind.lists:
            return self.epsilons
        binding = paths.epsilons(policy)
        excess = policy.kind.pads and self.ldp_epsilon > max(binding) + 1e-9
        least = self.ldp_epsilon if excess else 0.0
        return tuple(max(*both, least) for both in zip(self.epsilons, binding, strict=True))

    @property
    def unprotected(self) -> list[tuple[str, str, float]]:
        """Pairs of levels that the policy leaves out, with the bound that they still have through
        others.

        >>> guarantee.unprotected
        []
        """
        return [
            (policy.levels[i].name, policy.levels[j].name, through[i][j])
            for policy, through, i, j in paths.unprotected(self.mechanisms)
        ]

    def leakage(self, prior: Prior | None = None) -> Leakage:
        """Bounds of prior / posterior: for every prior (per level), or exact for a given one (per
        item).

        >>> [round(float(x), 4) for x in guarantee.leakage().upper]
        [4.0, 6.0]
        """
        from discreet.arrays.leakage import leakage

        return leakage(self, prior)

    # ---- lists -----------------------------------------------------------------------------------

    @property
    def _set_promises(self) -> Iterator[tuple[AnySetPromises, tuple[int, ...]]]:
        return ((set_promises(mechanism), place) for mechanism, place in self._terms)

    @cached_property
    def set_factor(self) -> Fraction:
        """By how much any report can tell any two sets apart; refused where every item is protected
        on its own.

        >>> 1 < guarantee_of_sets.set_factor <= 6
        True
        """
        self._refuse_single()
        factors = (promises.set_factor for promises, _ in self._set_promises)
        return math.prod(factors, start=Fraction(1))

    def list_factor(self, items: Iterable[Item]) -> Fraction:
        """By how much any report can tell these items and any other set apart; where every item is
        protected on its own, these items and none.

        >>> guarantee_of_sets.list_factor(["HIV"]) <= guarantee_of_sets.set_factor
        True
        """
        mechanism, chosen = self._set(items)
        return set_promises(mechanism).list_factor(chosen)

    def set_budget(self, items: Iterable[Item]) -> float:
        """eps_x of a set (paper, Eq. "epsilon_x"), dummies at the smallest budget.

        >>> round(math.exp(guarantee_of_sets.set_budget(["HIV", "flu"])), 4)
        5.0
        """
        mechanism, chosen = self._set(items)
        if mechanism.padding is None:
            raise DesignError(
                'with kind = "each" a set has no budget of its own; the budgets of its items add up'
            )
        budgets = paths.epsilons(mechanism.policy)
        places = max(len(chosen), mechanism.padding)
        mine = [budgets[mechanism.policy.level_of[i]] for i in chosen]
        return log_mean(mine + [min(budgets)] * (places - len(chosen)))

    def set_bound(self, first: Iterable[Item], second: Iterable[Item]) -> float:
        """An upper bound of ln Pr(y | first) / Pr(y | second) over all y (paper, Lemma 2; a dummy's
        bits say nothing).

        >>> bound = guarantee_of_sets.set_bound(["HIV"], ["flu"])
        >>> bound <= guarantee_of_sets.set_budget(["HIV"])
        True
        """
        mechanism, chosen = self._set(first)
        _, others = self._set(second)
        return log(set_promises(mechanism).bound(chosen, others))

    def _set(self, items: Iterable[Item]) -> tuple[Mechanism, list[int]]:
        self._refuse_single()
        mechanism = self._only("the bound of a set")
        if isinstance(items, str):
            raise DataError(f"this needs a set of items, got {items!r}; write [{items!r}]")
        return mechanism, sorted({mechanism.policy.place(item) for item in items})

    def _refuse_single(self) -> None:
        if not self.policy.kind.lists:
            raise DesignError('this mechanism takes single answers; sets need kind = "set"')

    def _only(self, what: str) -> Mechanism:
        if len(self.mechanisms) > 1:
            raise DesignError(f"{what} needs one mechanism, not a composition")
        return self.mechanisms[0]

    def published(self, n: int, delta: float = 1e-8) -> Published | None:
        """The promise against someone who sees only the results of n reports; None if n is too
        small. For results by group, n is that of the smallest group; for several questions, see
        `SurveyPromise.published`.

        >>> guarantee.published(10_000).epsilon < guarantee.ldp_epsilon / 4
        True
        """
        return published(self.ldp_epsilon, n, delta) if self.ldp_epsilon < math.inf else None

    # ---- words -----------------------------------------------------------------------------------

    @cached_property
    def caution(self) -> str:
        """A warning that replaces every reassuring sentence (`sentences.caution` says when); empty
        if none is needed.

        >>> guarantee.caution
        ''
        """
        self._only("a caution")
        return sentences.caution(self)

    @property
    def lead(self) -> str:
        """The first sentence for a participant. It reassures only if that is true.

        >>> guarantee.lead[:66]
        'Your device changes your answer at random before anything is sent.'
        """
        return sentences.lead(self)

    def sentences(self) -> list[str]:
        """The promise in sentences: one per level, one about whole lists, then one per pair that is
        not protected.

        >>> [sentence[-22:] for sentence in guarantee.sentences()]
        ['at most a factor of 4.', 'at most a factor of 6.']
        """
        return sentences.sentences(self)

    def list_promises(self) -> list[str]:
        """The sentence about whole lists; none for single answers and compositions.

        >>> guarantee.list_promises()
        []
        """
        if not self.policy.kind.lists or len(self.mechanisms) > 1:
            return []
        return [promises.sentence() for promises, _ in self._set_promises]

    def list_sentence(self, items: Iterable[Item]) -> str:
        """The promise about the whole list, for a person who has these items.

        >>> guarantee_of_sets.list_sentence(["HIV"])[:46]
        'Your whole list: whoever sees your report can '
        """
        mechanism, chosen = self._set(items)
        return set_promises(mechanism).list_sentence(chosen)

    def __str__(self) -> str:
        alone = len(self.mechanisms) == 1
        return "\n".join([*([self.caution] if alone and self.caution else []), *self.sentences()])

    def _repr_html_(self) -> str:
        from discreet.show import notebook

        return notebook.guarantee(self)
