"""What a mechanism promises, in numbers and in words.

`holds` is the exact check; the other figures are floats computed from the same integers, for people to read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet import theory
from discreet.errors import DataError, DesignError
from discreet.mechanism import Floats, Mechanism
from discreet.policy import Policy, show


@dataclass(frozen=True)
class PairPromise:
    """Two levels: the factor that the policy allows between any two of their inputs, and the one that is realised."""

    first: str
    second: str
    allowed: float
    realised: float


@dataclass(frozen=True)
class Leakage:
    """Bounds of Pr(x) / Pr(x | y) over all reports y (paper, Table "leakage"): per level, or per item for a given prior."""

    lower: Floats
    upper: Floats


class Pairs(Sequence[PairPromise]):
    """Every unordered pair of levels, computed when it is asked for: 16,470 levels have 1.4 x 10^8 pairs."""

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
        return [PairPromise(g.names[i], g.names[j], float(allowed[j]), float(realised[j])) for j in range(i, self._t)]


@dataclass(frozen=True)
class Guarantee:
    """The promise of one mechanism, or of several used one after the other on the same items (`compose`).

    Items that share their level in every mechanism form a class; for one mechanism classes are the policy's levels.
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

    # ---- pair by pair -------------------------------------------------------------------------------

    def allowed(self, i: int) -> Floats:
        """r between class i and every class, summed over the mechanisms; infinite where a pair is not protected."""
        return sum((_pair_budgets(m.policy, place[i])[list(place)] for m, place in self._terms), np.zeros(len(self.names)))

    def realised(self, i: int) -> Floats:
        """The largest log-ratio, either way, between an input of class i and another of every class."""
        row = np.zeros(len(self.names))
        for ratios, place in zip(self._ratios, self.places, strict=True):
            row += ratios(place[i])[list(place)]
        if self.sizes[i] == 1:
            row[i] = 0.0  # there is no other input of this class
        return row

    @cached_property
    def _ratios(self) -> list[Callable[[int], Floats]]:
        return [_log_ratios(mechanism) for mechanism in self.mechanisms]

    @property
    def _terms(self) -> Iterable[tuple[Mechanism, tuple[int, ...]]]:
        return zip(self.mechanisms, self.places, strict=True)

    @cached_property
    def level_epsilons(self) -> Floats:
        """Per class: the largest realised log-ratio between one of its inputs and any other input."""
        if len(self.mechanisms) == 1 and not self.mechanisms[0].direct:
            return _unary_epsilons(self.mechanisms[0])  # O(t), where the rows below are O(t^2)
        return np.array([self.realised(i).max() for i in range(len(self.names))])

    @property
    def ldp_epsilon(self) -> float:
        """The realised budget of plain LDP."""
        return float(self.level_epsilons.max())

    @cached_property
    def ldp_bound(self) -> float:
        """The budget of plain LDP that the policy implies: Lemma 1's min{max E, 2 min E} for one `min` policy; in general
        the longest of the shortest paths, since a pair may be protected through others.
        """
        return float(sum(_ldp_bound(mechanism.policy) for mechanism in self.mechanisms))

    @property
    def unprotected(self) -> list[tuple[str, str, float]]:
        """Pairs of levels that the policy leaves out, with the bound that they still have through others."""
        found = []
        for mechanism in self.mechanisms:
            policy = mechanism.policy
            paths = _shortest(policy) if policy.pairs else None
            for pair in policy.pairs:
                if pair.budget is None and paths is not None:
                    names = [level.name for level in policy.levels]
                    i, j = names.index(pair.first), names.index(pair.second)
                    if i != j or policy.sizes[i] > 1:
                        found.append((pair.first, pair.second, float(paths[i, j])))
        return found

    # ---- leakage ------------------------------------------------------------------------------------

    def leakage(self, prior: Any = None) -> Leakage:
        """Bounds of prior / posterior: for every prior (per level), or exact for a given one (per item)."""
        if prior is None:
            return Leakage(_exp(-self.level_epsilons), _exp(self.level_epsilons))
        mechanism = self._only("the leakage for a given prior")
        shares = theory.item_shares(mechanism.policy, prior)
        return _direct_leakage(mechanism, shares) if mechanism.direct else _unary_leakage(mechanism, shares)

    # ---- sets ---------------------------------------------------------------------------------------

    def set_budget(self, items: Iterable[Any]) -> float:
        """eps_x of a set (paper, Eq. "epsilon_x"), dummies at the smallest budget."""
        mechanism, chosen = self._set(items)
        eps = np.array([float(mechanism.policy.levels[k].budget) for k in mechanism.level_of[chosen]])
        assert mechanism.padding is not None
        eta = len(chosen) / max(len(chosen), mechanism.padding)
        dummy = min(float(level.budget) for level in mechanism.policy.levels)
        with np.errstate(divide="ignore"):
            terms = np.append(eps + np.log(eta / max(len(chosen), 1)), dummy + np.log(1 - eta))
        return float(np.logaddexp.reduce(terms))

    def set_bound(self, first: Iterable[Any], second: Iterable[Any]) -> float:
        """An upper bound of ln Pr(y | first) / Pr(y | second) over all y (paper, Lemma 2; a dummy's bits say nothing)."""
        mechanism, x = self._set(first)
        _, x2 = self._set(second)
        ell = mechanism.padding or 1
        worst = -math.inf
        for part in mechanism.parts:
            alpha, beta = (part.a / part.b)[mechanism.level_of], ((1 - part.a) / (1 - part.b))[mechanism.level_of]
            eta, eta2 = (len(s) / max(len(s), ell) for s in (x, x2))
            top = eta * (alpha[x].mean() if len(x) else 0) + 1 - eta
            bottom = eta2 * (beta[x2].mean() if len(x2) else 0) + 1 - eta2
            worst = max(worst, math.log(top / bottom))
        return worst

    def _set(self, items: Iterable[Any]) -> tuple[Mechanism, list[int]]:
        mechanism = self._only("the bound of a set")
        if mechanism.padding is None:
            raise DesignError('this mechanism takes single answers; sets need input = "set"')
        return mechanism, sorted({item_index(mechanism.policy, item) for item in items})

    @cached_property
    def item_epsilons(self) -> Floats:
        """Set input, per class: the largest log-ratio of any report between having and not having one of its items."""
        total = np.zeros(len(self.names))
        for mechanism, place in self._terms:
            worst = np.zeros(len(mechanism.sizes))
            for part in mechanism.parts:
                worst = np.maximum(worst, np.maximum(part.u + part.w.max(), part.w + part.u.max()))
            total += worst[list(place)]
        return total

    def _only(self, what: str) -> Mechanism:
        if len(self.mechanisms) > 1:
            raise DesignError(f"{what} is of one mechanism, not of a composition")
        return self.mechanisms[0]

    # ---- words --------------------------------------------------------------------------------------

    def sentences(self) -> list[str]:
        """What a participant is told: one sentence per level, then what is not protected."""
        policy, found = self.policy, []
        member: dict[int, list[str]] = {}
        for item, k in zip(policy.items, self.class_of, strict=True):
            if len(member.setdefault(k, [])) < 3:
                member[k].append(f'"{item}"')
        sets = policy.input == "set"
        factors = _exp(self.item_epsilons if sets else self.level_epsilons)
        for k, name in enumerate(self.names):
            more = int(self.sizes[k]) - len(member[k])
            who = ", ".join(member[k]) + (f" and {more} more" if more else "")
            if sets:
                promise = f"having or not having it changes the chance of any report by at most a factor of {_number(factors[k])}"
            else:
                promise = (
                    "whoever sees your report can change their odds between this answer and any other "
                    f"by at most a factor of {_number(factors[k])}"
                )
            found.append(f"{name} ({who}): {promise}.")
        for first, second, bound in self.unprotected:
            what = f'answers of "{first}" and answers of "{second}"' if first != second else f'two answers of "{first}"'
            still = (
                f"only through others, by a factor of at most {_number(float(_exp(bound)))}" if bound < math.inf else "not at all"
            )
            found.append(f"The organiser chose not to protect which of {what} is yours: they are kept apart {still}.")
        return found


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Sequential composition (paper, Theorem "composition"): the pair budgets of mechanisms over the same items add up."""
    terms = list(guarantees)
    if not terms:
        raise DesignError("there is nothing to compose; give at least one guarantee")
    first = terms[0].policy
    for other in terms[1:]:
        if other.policy.input != first.input:
            raise DesignError("guarantees of single and of set input cannot be composed")
        if set(other.policy.items) != set(first.items):
            stranger = next(iter(set(other.policy.items) ^ set(first.items)))
            raise DesignError(f'guarantees compose over the same items; "{stranger}" is not in both')
    mechanisms = tuple(m for g in terms for m in g.mechanisms)
    keys = zip(*([m.policy.level_of[m.policy.index[item]] for item in first.items] for m in mechanisms), strict=True)
    classes: dict[tuple[int, ...], int] = {}
    class_of = tuple(classes.setdefault(key, len(classes)) for key in keys)
    names = tuple(" + ".join(m.policy.levels[k].name for m, k in zip(mechanisms, key, strict=True)) for key in classes)
    return Guarantee(mechanisms, names, tuple(zip(*classes, strict=True)), class_of)


def item_index(policy: Policy, item: Any) -> int:
    """The place of an item given by label (str) or index (int)."""
    if isinstance(item, str):
        place = policy.index.get(item)
        if place is None:
            import difflib

            near = difflib.get_close_matches(item, policy.items[:100_000], n=1)
            raise DataError(f"{show(item)} is not an item" + (f"; did you mean {show(near[0])}?" if near else ""))
        return place
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise DataError(f"an item is a label (text) or an index (whole number), got {item!r}")
    if not 0 <= item < policy.m:
        raise DataError(f"item index {item} is out of range; it must be from 0 to {policy.m - 1}")
    return int(item)


# ---- other notions (the paper's table) --------------------------------------------------------------


def leakage_bounds(policy: Policy, notion: str, prior: Any = "uniform", distance: Any = None) -> Leakage:
    """Bounds of Pr(x) / Pr(x | y) per item under a notion: "ldp" and "pldp" at the smallest budget, "gi" (also CLDP) with
    the smallest budget per unit of `distance` (an m x m array), "minid" with the policy's budgets.
    """
    eps = np.array([float(policy.levels[k].budget) for k in policy.level_of])
    if notion in ("ldp", "pldp"):
        eps = np.full(policy.m, eps.min())
    elif notion == "minid":
        eps = np.minimum(eps, 2 * eps.min())
    elif notion == "gi":
        if distance is None:
            raise DesignError('notion "gi" needs a distance between every two items')
        shares, scaled = theory.item_shares(policy, prior), eps.min() * np.asarray(distance, dtype=float)
        return Leakage(np.exp(-scaled) @ shares, np.exp(scaled) @ shares)
    else:
        raise DesignError(f'notion = "{notion}" must be one of ldp, pldp, gi, minid')
    return Leakage(_exp(-eps), _exp(eps))


# ---- helpers ----------------------------------------------------------------------------------------


def _exp(x: Any) -> Any:
    """e^x, infinite where it is beyond every float."""
    with np.errstate(over="ignore"):
        return np.exp(x)


def _pair_budgets(policy: Policy, i: int) -> Floats:
    eps = _epsilons(policy)
    row = np.minimum(eps, eps[i]) if policy.notion == "min" else (eps + eps[i]) / 2
    for (a, b), budget in policy.overrides.items():
        if a == i:
            row[b] = math.inf if budget is None else float(budget)
    return row


def _epsilons(policy: Policy) -> Floats:
    return np.array([float(level.budget) for level in policy.levels])


def _log_ratios(mechanism: Mechanism) -> Callable[[int], Floats]:
    """A function of a level: the largest |log-ratio| between one of its inputs and another input of every level."""
    if mechanism.matrix is None:
        alpha, gamma = (np.stack([getattr(part, key) for part in mechanism.parts]) for key in ("u", "w"))

        def unary(i: int) -> Floats:
            return np.maximum(alpha[:, [i]] + gamma, gamma[:, [i]] + alpha).max(axis=0)

        return unary
    table = _direct_ratios(mechanism)
    groups = np.array(mechanism.matrix.groups)
    return lambda i: table[groups[i]][groups]


def _unary_epsilons(mechanism: Mechanism) -> Floats:
    worst = np.zeros(len(mechanism.sizes))
    for part in mechanism.parts:
        worst = np.maximum(worst, part.u + _of_others(part.w, mechanism.sizes))
        worst = np.maximum(worst, part.w + _of_others(part.u, mechanism.sizes))
    return worst if mechanism.m > 1 else np.zeros(1)


def _of_others(values: Floats, sizes: Any) -> Floats:
    """Per level: the largest value of another input's level (the level itself if it has a second item)."""
    top = int(values.argmax())
    result = np.full(len(values), values[top])
    if sizes[top] == 1 and len(values) > 1:
        result[top] = np.delete(values, top).max()
    return result


def _direct_ratios(mechanism: Mechanism) -> Floats:
    """The largest |log-ratio| of any report between two different inputs of every two groups."""
    assert mechanism.matrix is not None
    D, O = mechanism.matrix.D, mechanism.matrix.O
    sizes = theory.group_sizes(mechanism.matrix, mechanism.sizes)
    k = len(D)
    table = np.zeros((k, k))
    for c in range(k):
        for d in range(k):
            if c == d and sizes[c] == 1:
                continue
            seen = [D[c] / O[d, c], D[d] / O[c, d]]
            for e in range(k):  # an item of group e that is neither of the two inputs
                if sizes[e] > (e == c) + (e == d):
                    seen.append(O[c, e] / O[d, e])
            table[c, d] = np.abs(np.log(seen)).max()
    return table


def _ldp_bound(policy: Policy) -> float:
    if policy.m == 1:
        return 0.0
    if policy.pairs:
        paths = _shortest(policy)
        lone = np.array(policy.sizes) == 1
        paths[np.diag_indices_from(paths)] = np.where(lone, 0.0, np.diag(paths))
        return float(paths.max())
    eps = np.sort(np.repeat(_epsilons(policy), np.minimum(policy.sizes, 2)))
    if policy.notion == "min":
        return float(min(eps[-2], 2 * eps[0]))  # max E: the largest budget that two different inputs share
    return float((eps[-1] + eps[-2]) / 2)


def _shortest(policy: Policy) -> Floats:
    """The shortest path of pair budgets between two different inputs of every two levels."""
    t = len(policy.levels)
    edges = np.stack([_pair_budgets(policy, i) for i in range(t)])
    paths = edges.copy()
    for k in range(t):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k], :])
    return paths


def _unary_leakage(mechanism: Mechanism, shares: Floats) -> Leakage:
    """Upper: the item's own bit is 0 and all others are 1; lower: the reverse. Exact, by the likelihoods of Lemma 2."""
    lower, upper = np.full(mechanism.m, np.inf), np.zeros(mechanism.m)
    for part in mechanism.parts:
        alpha = (part.a / part.b)[mechanism.level_of]
        beta = ((1 - part.a) / (1 - part.b))[mechanism.level_of]
        upper = np.maximum(upper, shares + (shares @ alpha - shares * alpha) / beta)
        lower = np.minimum(lower, shares + (shares @ beta - shares * beta) / alpha)
    return Leakage(lower, upper)


def _direct_leakage(mechanism: Mechanism, shares: Floats) -> Leakage:
    """Pr(y) / Pr(y | x) for y = x and for the likeliest and the least likely other y of every group."""
    assert mechanism.matrix is not None
    D, O = mechanism.matrix.D, mechanism.matrix.O
    groups = np.array(mechanism.matrix.groups)[mechanism.level_of]
    mass = np.bincount(groups, weights=shares, minlength=len(D))
    marginal = (mass @ O)[groups] + shares * (D - np.diag(O))[groups]
    lower, upper = marginal / D[groups], marginal / D[groups]
    for d in range(len(D)):
        members = np.flatnonzero(groups == d)
        order = members[np.argsort(marginal[members])]
        lower = np.fmin(lower, _others(marginal, order) / O[groups, d].clip(1e-300))
        upper = np.fmax(upper, _others(marginal, order[::-1]) / O[groups, d].clip(1e-300))
    return Leakage(lower, upper)


def _others(marginal: Floats, order: Any) -> Floats:
    """Pr(y) of the first item in order, or of the second for the input that is the first; NaN where there is none."""
    value = np.full(len(marginal), marginal[order[0]])
    value[order[0]] = marginal[order[1]] if len(order) > 1 else np.nan
    return value


def _number(x: float) -> str:
    """A factor as people read it: rounded up, so that the promise stays true."""
    if x == math.inf:
        return "more than any number"
    x *= 1 - 1e-12  # the floats' own error must not turn 4 into 4.01
    return f"{math.ceil(x):,}" if x >= 1000 else f"{math.ceil(x * 100) / 100:g}"
