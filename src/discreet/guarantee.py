"""What a mechanism promises, in numbers and in words.

`holds` is the exact check; the other figures are floats computed from the same integers, for people
to read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet import exact, theory
from discreet.errors import DataError, DesignError
from discreet.mechanism import Mechanism
from discreet.parts import Floats, Part
from discreet.policy import Budget, Policy
from discreet.sets import Promises, log

WEAK = 100  # a factor between two answers above which nobody is told that they are safe


@dataclass(frozen=True)
class PairPromise:
    """Two levels: the factor that the policy allows between any two of their inputs, and the one
    that is realised.
    """

    first: str
    second: str
    allowed: float
    realised: float


@dataclass(frozen=True)
class Leakage:
    """Bounds of Pr(x) / Pr(x | y) over all reports y (paper, Table "leakage"): per level, or per
    item for a given prior.
    """

    lower: Floats
    upper: Floats


class Pairs(Sequence[PairPromise]):
    """Every unordered pair of levels, computed when it is asked for: 16,470 levels have 1.4 x 10^8
    pairs.
    """

    def __init__(self, guarantee: Guarantee) -> None:
        self._guarantee = guarantee
        self._t = len(guarantee.names)

    def __len__(self) -> int:
        return self._t * (self._t + 1) // 2

    def __iter__(self) -> Iterator[PairPromise]:
        for i in range(self._t):
            yield from self._row(i)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        i = 0
        while k >= self._t - i:
            k -= self._t - i
            i += 1
        return self._row(i)[k]

    def _row(self, i: int) -> list[PairPromise]:
        g = self._guarantee
        allowed, realised = _exp(g.allowed(i)), _exp(g.realised(i))
        return [
            PairPromise(g.names[i], g.names[j], float(allowed[j]), float(realised[j]))
            for j in range(i, self._t)
        ]


@dataclass(frozen=True)
class Guarantee:
    """The promise of one mechanism, or of several used one after the other on the same items
    (`compose`).

    Items that share their level in every mechanism form a class; for one mechanism classes are the
    policy's levels.
    """

    mechanisms: tuple[Mechanism, ...]
    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]  # per mechanism, the level of every class
    class_of: tuple[int, ...]  # of every item of the first mechanism

    @classmethod
    def of(cls, mechanism: Mechanism) -> Guarantee:
        """The guarantee of one mechanism."""
        policy = mechanism.policy
        names = tuple(level.name for level in policy.levels)
        return cls((mechanism,), names, (tuple(range(len(names))),), policy.level_of)

    @property
    def holds(self) -> bool:
        """Whether the exact check agrees, now."""
        return all(mechanism.check() is None for mechanism in self.mechanisms)

    @property
    def policy(self) -> Policy:
        """The (first) policy."""
        return self.mechanisms[0].policy

    @cached_property
    def sizes(self) -> Any:
        """Number of items of every class."""
        return np.bincount(self.class_of, minlength=len(self.names))

    @property
    def pairs(self) -> Pairs:
        """The promise for every pair of levels."""
        return Pairs(self)

    # ---- pair by pair ----------------------------------------------------------------------------

    def allowed(self, i: int) -> Floats:
        """r between class i and every class, summed over the mechanisms; infinite where a pair is
        not protected.
        """
        return sum(
            (_pair_budgets(m.policy, place[i])[list(place)] for m, place in self._terms),
            np.zeros(len(self.names)),
        )

    def realised(self, i: int) -> Floats:
        """The largest log-ratio, either way, between an input of class i and another of every
        class.
        """
        row = np.zeros(len(self.names))
        for mechanism, place in self._terms:
            groups = np.array(mechanism.groups)[list(place)]
            high, low = _states(mechanism)
            mine = groups[i]
            row += np.maximum(
                high[:, [mine]] - low[:, groups], high[:, groups] - low[:, [mine]]
            ).max(axis=0)
        if self.sizes[i] == 1:
            row[i] = 0.0  # there is no other input of this class
        return row

    @property
    def _terms(self) -> Iterable[tuple[Mechanism, tuple[int, ...]]]:
        return zip(self.mechanisms, self.places, strict=True)

    @cached_property
    def level_epsilons(self) -> Floats:
        """Per class: the largest realised log-ratio between one of its inputs and any
        other input.
        """
        if len(self.mechanisms) == 1:
            return _level_epsilons(self.mechanisms[0])  # O(t), where the rows below are O(t^2)
        return np.array([self.realised(i).max() for i in range(len(self.names))])

    @property
    def epsilons(self) -> Floats:
        """What a person is promised per class: between an answer and any other, or having an item
        and not having it.
        """
        return self.item_epsilons if self.policy.takes_sets else self.level_epsilons

    @cached_property
    def factors(self) -> tuple[Fraction, ...]:
        """What a person is promised per class as a factor, never less than the truth: exactly that
        of the checked integers for one mechanism, for several from `epsilons` with a margin above
        the floats' own error.
        """
        if self.policy.takes_sets:
            each = [[s.item_factors[k] for k in place] for s, place in self._of_sets]
            one = Fraction(1)
            return tuple(math.prod(row, start=one) for row in zip(*each, strict=True))
        if len(self.mechanisms) == 1:
            return _level_factors(self.mechanisms[0])
        return tuple(Fraction(math.exp(min(x, 700)) * MARGIN) for x in self.epsilons.tolist())

    @property
    def _of_sets(self) -> Iterator[tuple[Promises, tuple[int, ...]]]:
        return ((mechanism.encoding.promises(mechanism), place) for mechanism, place in self._terms)

    @cached_property
    def set_factor(self) -> Fraction:
        """Set input: by how much any report can tell any two sets apart; refused where every item
        is protected on its own.
        """
        self._refuse_single()
        each = (promises.set_factor for promises, _ in self._of_sets)
        return math.prod(each, start=Fraction(1))

    def list_factor(self, items: Iterable[Any]) -> Fraction:
        """The same for these items and any other set; where every item is protected on its own,
        for these and no item.
        """
        mechanism, chosen = self._set(items)
        return mechanism.encoding.promises(mechanism).list_factor(chosen)

    def list_sentence(self, items: Iterable[Any]) -> str:
        """What a person who has these items is told of her whole list."""
        mechanism, chosen = self._set(items)
        return mechanism.encoding.promises(mechanism).list_sentence(chosen, in_words)

    @property
    def ldp_epsilon(self) -> float:
        """The realised budget of plain LDP, for sets between any two of them."""
        if self.policy.takes_sets:
            return math.fsum(promises.epsilon for promises, _ in self._of_sets)
        return float(self.level_epsilons.max())

    @cached_property
    def budgets(self) -> Floats:
        """Per level what counts against a limit: the log-ratio that is realised for one of its
        answers. For sets no less than the level's budget, which a set may use up, and no less than
        what is realised between two sets where that is above all budgets.
        """
        policy = self._only("a budget per level").policy
        if not policy.takes_sets:
            return self.epsilons
        binding = _epsilons(policy)
        excess = policy.pads and self.ldp_epsilon > binding.max() + 1e-9
        least = np.full_like(binding, self.ldp_epsilon) if excess else binding
        return np.maximum.reduce([self.epsilons, binding, least])

    @cached_property
    def caution(self) -> str:
        """A warning in place of any sentence that reassures: where one report can change the odds
        between two answers by more than WEAK, or a pair of answers is not protected at all. Empty
        where neither is so.
        """
        self._only("a caution")
        if any(paths[i, j] == math.inf for _, paths, i, j in self._open):
            return (
                "Some answers are not protected from each other: whoever sees your report may know "
                "which of them is yours."
            )
        if max(self.factors) > WEAK:
            between = "having and not having an answer" if self.policy.takes_sets else "two answers"
            return _weak(between, in_words(max(self.factors)))
        if self.policy.pads and self.set_factor > WEAK:
            return _weak("two lists of answers", in_words(self.set_factor))
        if self.policy.takes_sets and not self.policy.pads and self.ldp_epsilon > math.log(WEAK):
            return (
                "Each answer is protected on its own, but a list of several answers is not: "
                "whoever sees your report may be almost sure of the list as a whole."
            )
        return ""

    @property
    def lead(self) -> str:
        """What a participant reads first; it reassures only where that is true."""
        safe = (
            "From one report nobody, not even the organiser, can tell for sure what you answered; "
            "the reports of many people together still give good counts."
        )
        change = "Your device changes your answer at random before anything is sent."
        return f"{change} {self.caution or safe}"

    @cached_property
    def ldp_bound(self) -> float:
        """The budget of plain LDP that the policy implies: Lemma 1's min{max E, 2 min E} for one
        `min` policy; in general the longest of the shortest paths, since a pair may be protected
        through others.
        """
        return float(sum(_ldp_bound(mechanism.policy) for mechanism in self.mechanisms))

    @property
    def unprotected(self) -> list[tuple[str, str, float]]:
        """Pairs of levels that the policy leaves out, with the bound that they still have through
        others.
        """
        return [
            (policy.levels[i].name, policy.levels[j].name, float(paths[i, j]))
            for policy, paths, i, j in self._open
        ]

    @property
    def _open(self) -> Iterator[tuple[Policy, Floats, int, int]]:
        """The same by places, each with the shortest paths of its policy."""
        for mechanism in self.mechanisms:
            policy = mechanism.policy
            if not policy.overrides:
                continue
            paths, names = _shortest(policy), [level.name for level in policy.levels]
            for pair in policy.pairs:
                i, j = names.index(pair.first), names.index(pair.second)
                if pair.budget is None and (i != j or policy.sizes[i] > 1):
                    yield policy, paths, i, j

    # ---- leakage ---------------------------------------------------------------------------------

    def leakage(self, prior: Any = None) -> Leakage:
        """Bounds of prior / posterior: for every prior (per level), or exact for a given one (per
        item).
        """
        if self.policy.takes_sets:
            raise DesignError(
                "the leakage is of single answers; what a report tells of sets is in set_factor "
                "and list_factor"
            )
        if prior is None:
            return Leakage(_exp(-self.level_epsilons), _exp(self.level_epsilons))
        mechanism = self._only("the leakage for a given prior")
        shares = theory.item_shares(mechanism.policy, prior)
        return _leakage(mechanism, shares)

    # ---- sets ------------------------------------------------------------------------------------

    def set_budget(self, items: Iterable[Any]) -> float:
        """eps_x of a set (paper, Eq. "epsilon_x"), dummies at the smallest budget."""
        mechanism, chosen = self._set(items)
        if mechanism.padding is None:
            raise DesignError(
                'with protect = "item" a set has no budget of its own; the budgets of its items '
                "add up"
            )
        eps = _epsilons(mechanism.policy)
        eta = len(chosen) / max(len(chosen), mechanism.padding)
        with np.errstate(divide="ignore"):
            mine = eps[mechanism.level_of[chosen]] + np.log(eta / max(len(chosen), 1))
            terms = np.append(mine, eps.min() + np.log(1 - eta))
        return float(np.logaddexp.reduce(terms))

    def set_bound(self, first: Iterable[Any], second: Iterable[Any]) -> float:
        """An upper bound of ln Pr(y | first) / Pr(y | second) over all y (paper, Lemma 2; a dummy's
        bits say nothing).
        """
        mechanism, x = self._set(first)
        _, x2 = self._set(second)
        return log(mechanism.encoding.promises(mechanism).bound(x, x2))

    def _set(self, items: Iterable[Any]) -> tuple[Mechanism, list[int]]:
        self._refuse_single()
        mechanism = self._only("the bound of a set")
        if isinstance(items, str):
            raise DataError(f"a set of items is asked for, got {items!r}; write [{items!r}]")
        return mechanism, sorted({mechanism.policy.place(item) for item in items})

    def _refuse_single(self) -> None:
        if not self.policy.takes_sets:
            raise DesignError('this mechanism takes single answers; sets need input = "set"')

    @cached_property
    def item_epsilons(self) -> Floats:
        """Set input, per class: the largest log-ratio of any report between having and not having
        one of its items.
        """
        return np.array([log(factor) for factor in self.factors])

    def _only(self, what: str) -> Mechanism:
        if len(self.mechanisms) > 1:
            raise DesignError(f"{what} is of one mechanism, not of a composition")
        return self.mechanisms[0]

    def __str__(self) -> str:
        alone = len(self.mechanisms) == 1
        return "\n".join([*([self.caution] if alone and self.caution else []), *self.sentences()])

    def _repr_html_(self) -> str:
        from discreet import notebook

        return notebook.guarantee(self)

    # ---- words -----------------------------------------------------------------------------------

    def of_lists(self) -> list[str]:
        """What is told of whole lists, where people answer with them and no mechanism is composed
        with another.
        """
        if not self.policy.takes_sets or len(self.mechanisms) > 1:
            return []
        return [promises.sentence(in_words) for promises, _ in self._of_sets]

    def sentences(self) -> list[str]:
        """What a participant is told: one sentence per level, then what is not protected."""
        policy, found = self.policy, []
        member: dict[int, list[str]] = {}
        for item, k in zip(policy.items, self.class_of, strict=True):
            if len(member.setdefault(k, [])) < 3:
                member[k].append(f'"{item}"')
        sets = policy.takes_sets
        factors = self.factors
        for k, name in enumerate(self.names):
            more = int(self.sizes[k]) - len(member[k])
            who = ", ".join(member[k]) + (f" and {more} more" if more else "")
            if sets:
                promise = (
                    "having or not having it changes the chance of any report by at most a "
                    f"factor of {in_words(factors[k])}"
                )
            else:
                promise = (
                    "whoever sees your report can change their odds between this answer and any "
                    "other "
                    f"by at most a factor of {in_words(factors[k])}"
                )
            found.append(f"{name} ({who}): {promise}.")
        found += self.of_lists()
        for policy, paths, i, j in self._open:
            first, second = policy.levels[i].name, policy.levels[j].name
            what = (
                f'answers of "{first}" and answers of "{second}"'
                if first != second
                else f'two answers of "{first}"'
            )
            still = (
                f"only through others, by a factor of at most {_through(policy, paths, i, j)}"
                if paths[i, j] < math.inf
                else "not at all"
            )
            found.append(
                f"The organiser chose not to protect which of {what} is yours: they are kept "
                f"apart {still}."
            )
        return found


def _weak(between: str, factor: str) -> str:
    return (
        f"This is weak protection: one report can change the odds between {between} by up to a "
        f"factor of {factor}, so whoever sees yours may be almost sure what you answered."
    )


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Sequential composition (paper, Theorem "composition"): the pair budgets of mechanisms over
    the same items add up.
    """
    terms = list(guarantees) if isinstance(guarantees, Iterable) else [guarantees]
    if not terms:
        raise DesignError("there is nothing to compose; give at least one guarantee")
    for term in terms:
        if not isinstance(term, Guarantee):
            raise DesignError(
                f"compose takes guarantees, got {type(term).__name__}; mechanism.guarantee() is one"
            )
    first = terms[0].policy
    for other in terms[1:]:
        if other.policy.input != first.input:
            raise DesignError("guarantees of single and of set input cannot be composed")
        if set(other.policy.items) != set(first.items):
            stranger = next(iter(set(other.policy.items) ^ set(first.items)))
            raise DesignError(
                f'guarantees compose over the same items; "{stranger}" is not in both'
            )
    mechanisms = tuple(m for g in terms for m in g.mechanisms)
    keys = zip(
        *([m.policy.level_of[m.policy.index[item]] for item in first.items] for m in mechanisms),
        strict=True,
    )
    classes: dict[tuple[int, ...], int] = {}
    class_of = tuple(classes.setdefault(key, len(classes)) for key in keys)
    names = tuple(
        " + ".join(m.policy.levels[k].name for m, k in zip(mechanisms, key, strict=True))
        for key in classes
    )
    return Guarantee(mechanisms, names, tuple(zip(*classes, strict=True)), class_of)


# ---- other notions (the paper's table) -----------------------------------------------------------


def leakage_bounds(
    policy: Policy, notion: str, prior: Any = "uniform", distance: Any = None
) -> Leakage:
    """Bounds of Pr(x) / Pr(x | y) per item under a notion: "ldp" and "pldp" at the smallest budget,
    "gi" (also CLDP) with the smallest budget per unit of `distance` (an m x m array), "minid" with
    the policy's budgets.
    """
    eps = _epsilons(policy)[np.array(policy.level_of)]
    if notion in ("ldp", "pldp"):
        eps = np.full(policy.m, eps.min())
    elif notion == "minid":
        eps = np.minimum(eps, 2 * eps.min())
    elif notion == "gi":
        if distance is None:
            raise DesignError('notion "gi" needs a distance between every two items')
        shares, scaled = (
            theory.item_shares(policy, prior),
            eps.min() * np.asarray(distance, dtype=float),
        )
        return Leakage(np.exp(-scaled) @ shares, np.exp(scaled) @ shares)
    else:
        raise DesignError(f'notion = "{notion}" must be one of ldp, pldp, gi, minid')
    return Leakage(_exp(-eps), _exp(eps))


# ---- helpers -------------------------------------------------------------------------------------


def _exp(x: Any) -> Any:
    """e^x, infinite where it is beyond every float."""
    with np.errstate(over="ignore"):
        return np.exp(x)


def _pair_budgets(policy: Policy, i: int) -> Floats:
    eps = _epsilons(policy)
    if policy.takes_sets and not policy.pads:
        return eps + eps[i]  # one item is not had and the other is: every item on its own
    row = np.minimum(eps, eps[i]) if policy.notion == "min" else (eps + eps[i]) / 2
    for (a, b), budget in policy.overrides.items():
        if a == i:
            row[b] = math.inf if budget is None else float(budget)
    return row


def _epsilons(policy: Policy) -> Floats:
    return np.array([float(budget) for budget in policy.binding])


def _states(mechanism: Mechanism) -> tuple[Floats, Floats]:
    """ln of the largest and smallest state, parts x groups (the last column: an empty sample, with
    set input).
    """
    states = [part.log_states for part in mechanism.parts]
    return np.stack([high for high, _ in states]), np.stack([low for _, low in states])


def _level_epsilons(mechanism: Mechanism) -> Floats:
    """Per level: the largest log-ratio, either way, between one of its inputs and any other (of
    sets: of one item).
    """
    high, low = _states(mechanism)
    sizes = mechanism.group_sizes
    high, low = high[:, : len(sizes)], low[:, : len(sizes)]
    if sizes.sum() == 1:
        return np.zeros(1)
    worst = np.maximum(high + _of_others(-low, sizes), _of_others(high, sizes) - low).max(axis=0)
    return worst[list(mechanism.groups)]


def _of_others(values: Floats, sizes: Any) -> Floats:
    """Per part (row) and group: the largest value of another input's group (the group itself if it
    has a second item).
    """
    rows, top = np.arange(len(values)), values.argmax(axis=1)
    best = np.broadcast_to(values[rows, top][:, None], values.shape).copy()
    alone = (sizes[top] == 1) & (values.shape[1] > 1)
    without = values.copy()
    without[rows, top] = -np.inf
    best[rows[alone], top[alone]] = without.max(axis=1)[alone]
    return best


def _ldp_bound(policy: Policy) -> float:
    if policy.takes_sets and not policy.pads:
        return float(_epsilons(policy) @ np.array(policy.sizes))
    return float(_longest(policy).max())


def acting(policy: Policy) -> list[float | None]:
    """Per level what its budget acts as, where it cannot be used up; else None. With budgets 1 and
    2.5 under `min`, two answers of the second level are each within 1 of one of the first, so 2.5
    acts as 2.
    """
    alone = policy.takes_sets and not policy.pads  # every item is a question of its own
    if alone or (policy.m == 1 and not policy.takes_sets):
        return [None] * len(policy.levels)
    both = zip(_epsilons(policy).tolist(), _longest(policy).tolist(), strict=True)
    return [acts if acts < budget - 1e-9 else None for budget, acts in both]


def _longest(policy: Policy) -> Floats:
    """Per level the longest of the shortest paths of pair budgets from one of its inputs to any
    other input (Lemma 1's min{max E, 2 min E} is the largest for one `min` policy).
    """
    sets = policy.takes_sets  # then an item has another input of its level: itself with others
    lone = (np.array(policy.sizes) == 1) & (not sets)
    if policy.overrides:
        paths = _shortest(policy)
        paths[np.diag_indices_from(paths)] = np.where(lone, 0.0, np.diag(paths))
        return paths.max(axis=1)
    eps = _epsilons(policy)
    if policy.m == 1 and not sets:
        return np.zeros(1)
    others = _of_others(eps[None, :], np.where(lone, 1, 2))[0]  # the largest budget of another one
    if policy.notion == "min":
        return np.minimum(np.minimum(eps, others), 2 * eps.min())
    return (eps + others) / 2


def _shortest(policy: Policy) -> Floats:
    """The shortest path of pair budgets between two different inputs of every two levels."""
    t = len(policy.levels)
    edges = np.stack([_pair_budgets(policy, i) for i in range(t)])
    paths = edges.copy()
    for k in range(t):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k], :])
    return paths


def _leakage(mechanism: Mechanism, shares: Floats) -> Leakage:
    """Pr(y) / Pr(y | x) at its extremes over all reports y: in every group the likeliest (or the
    least likely) items are named, the item x itself or not. For tickets, whose subsets are fewer, a
    bound.
    """
    lower, upper = np.full(mechanism.m, np.inf), np.zeros(mechanism.m)
    members = [np.flatnonzero(mechanism.group_of == g) for g in range(len(mechanism.group_sizes))]
    fixed = mechanism.encoding.fixed_size
    for part in mechanism.parts:
        for bound, keep, top in ((upper, np.maximum, True), (lower, np.minimum, False)):
            sums, best = (
                [],
                [],
            )  # per group: of x named and not named, by item; over all of its items, at the extreme
            for g, places in enumerate(members):
                named, unnamed = _likelihoods(part, g)
                count = part.other_[g] if fixed else None
                of_named = _named_shares(shares[places], count, largest=(named > unnamed) == top)
                mass = shares[places].sum()
                sums.append([mass * unnamed + (named - unnamed) * x for x in of_named])
                best.append(
                    (np.max if top else np.min)(sums[-1]) if part.own_[g] else mass * unnamed
                )
            for g, places in enumerate(members):
                others = sum(best) - best[g]
                for own, mine in zip(_likelihoods(part, g), sums[g], strict=True):
                    bound[places] = keep(
                        bound[places], (others + (mine if part.own_[g] else best[g])) / own
                    )
    return Leakage(lower, upper)


def _likelihoods(part: Part, g: int) -> tuple[float, float]:
    """Of a report that names the answer of a group, and of one that does not, up to a common
    factor.
    """
    chance, own, other = (
        float(x[g]) for x in (part.chance_group, part.own_group, part.other_group)
    )
    if not part.own_[g]:
        return chance, chance
    return chance * own / other, chance * (1 - own) / (1 - other)


def _named_shares(shares: Floats, count: int | None, largest: bool) -> tuple[Floats, Floats]:
    """The largest or smallest sum of shares that can be named with every item, and without it: of
    `count` items, or of any number.
    """
    if count is None:
        return (
            (shares.sum() + 0 * shares, shares.sum() - shares) if largest else (shares, 0 * shares)
        )
    order = np.argsort(-shares if largest else shares, kind="stable")
    sums = np.concatenate(([0.0], np.cumsum(shares[order])))
    rank = np.empty(len(shares), np.int64)
    rank[order] = np.arange(len(shares))
    k = max(count, 1)
    included = np.where(rank < k, sums[k], sums[k - 1] + shares)
    excluded = np.where(rank < k, sums[min(k + 1, len(shares))] - shares, sums[k])
    return included, excluded


# ---- factors, rounded up -------------------------------------------------------------------------

MARGIN = 1 + 1e-12  # of a factor that floats were added up for: above their error, for ever so many


def in_words(x: float | Fraction) -> str:
    """A factor as people read it: rounded up, exactly, so that the promise stays true. A float is
    the decimal that it is written as, and nothing is forgiven: whoever computed it in floats has
    added their error before.
    """
    if x == math.inf:
        return "more than any number"
    return _root_in_words((x if isinstance(x, Fraction) else Fraction(repr(float(x)))) ** 2)


def _root_in_words(square: Fraction) -> str:
    """The same for the root of a number: under `avg`, e^r itself is none."""
    hundredths = _root_up(10_000 * square)
    if hundredths < 100_000:
        return f"{hundredths / 100:g}"
    whole = _root_up(square)
    if whole < 10**9:
        return f"{whole:,}"
    power = len(str(whole)) - 1
    lead = -(-whole // 10 ** (power - 1))  # two digits, rounded up
    lead, power = (10, power + 1) if lead == 100 else (lead, power)
    return f"{lead // 10}.{lead % 10} × 10^{power}"


def _root_up(square: Fraction) -> int:
    """The least whole number whose square is as large."""
    least = math.ceil(square)
    root = math.isqrt(least)
    return root + (root * root < least)


def _level_factors(mechanism: Mechanism) -> tuple[Fraction, ...]:
    """Per level, e to the power of what `_level_epsilons` says, from the integers themselves."""
    sizes = mechanism.group_sizes.tolist()
    worst = [Fraction(1)] * len(sizes)
    if sum(sizes) == 1:
        return tuple(worst)
    for part in mechanism.parts:
        states = part.states
        highest = _first_two([high for high, _ in states], sizes, largest=True)
        lowest = _first_two([low for _, low in states], sizes, largest=False)
        for g in range(len(worst)):
            high, low = states[g]
            worst[g] = max(worst[g], high / _but(lowest, g), _but(highest, g) / low)
    return tuple(worst[g] for g in mechanism.groups)


Ends = list[tuple[Fraction, int]]


def _first_two(values: list[Fraction], sizes: list[int], largest: bool) -> Ends:
    """The extreme value with its group, then that of another input: the same, if it has two."""
    order = sorted(range(len(values)), key=values.__getitem__, reverse=largest)[:2]
    first = order[0]
    second = first if sizes[first] > 1 else order[-1]
    return [(values[first], first), (values[second], second)]


def _but(ends: Ends, g: int) -> Fraction:
    """The extreme value over the inputs that are not this one of group g."""
    return ends[0][0] if ends[0][1] != g else ends[1][0]


def _through(policy: Policy, paths: Floats, i: int, j: int) -> str:
    """In words, at most what tells two levels apart through others: the budgets along the shortest
    path, each as a rational at least e^r.
    """
    if _exp(paths[i, j]) == math.inf:
        return in_words(math.inf)
    edges = [_pair_budgets(policy, k) for k in range(len(policy.levels))]
    square, here = Fraction(1), i
    for _ in policy.levels:
        ways = edges[here] + paths[:, j]
        following = int(ways.argmin())
        if edges[here][j] <= ways[following]:
            return _root_in_words(square * _square_up(policy, here, j))
        square *= _square_up(policy, here, following)
        here = following
    return in_words(float(_exp(paths[i, j])) * MARGIN)  # budgets too small to be told from none


def _square_up(policy: Policy, i: int, j: int) -> Fraction:
    """At least e^{2 r} of two levels."""
    given = policy.overrides.get((i, j))
    if given is not None:
        return _factor_up(given) ** 2
    first, second = policy.binding[i], policy.binding[j]
    if policy.notion == "avg":
        return _factor_up(first) * _factor_up(second)
    return _factor_up(min(first, second, key=float)) ** 2


def _factor_up(budget: Budget) -> Fraction:
    """A rational at least e^epsilon, for an epsilon up to 710; exactly k for the budget ln(k)."""
    if budget.is_log:
        return budget.value
    # of the Taylor sum's 2,000 terms each is less than 2^-80 e^x too small
    return exact.exp_lower(budget.value) * (1 + Fraction(1, 2**60))
