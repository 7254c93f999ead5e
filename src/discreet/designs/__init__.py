"""From a policy to a mechanism: the models, and the choice between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet import theory
from discreet.designs import direct as _direct
from discreet.designs import mixed as _mixed
from discreet.designs import reductions
from discreet.designs.reductions import Levels
from discreet.designs.rounding import matrix_of, parts_of
from discreet.errors import DesignError
from discreet.mechanism import ENCODINGS, MAX_ITEMS, Certificate, Floats, Mechanism
from discreet.policy import Policy, check_padding

MODELS = ("auto", "mixed", "direct", "opt0", "opt1", "opt2", "rappor", "oue", "grr")
BASELINES = ("grr", "rappor", "oue")
_WORST = "worst-case total MSE / n"
_SPREAD = "sum of weight x variance per participant"
_TOTAL = "weighted total MSE / n at the prior"


def design(
    policy: Policy,
    model: str = "auto",
    prior: Any = "uniform",
    encoding: str | None = None,
    padding: int | None = None,
) -> Mechanism:
    """The mechanism of a model for a policy, checked exactly.

    `model`: auto (the better of mixed and direct), mixed, direct, opt0, opt1, opt2, rappor, oue, grr.
    `prior`: the shares of participants that mixed, direct and auto expect: uniform, worst, or given per item or level.
    `encoding` of unary models: bits (default) or compact; auto then means mixed. `padding`: for set input, instead of the
    policy's.

    >>> policy = Policy.from_levels([("serious", "ln(4)", ["HIV"]),
    ...     ("common", "ln(6)", ["anemia", "headache", "stomachache", "toothache"])])
    >>> design(policy).model, round(design(policy).expected_mse(), 3), round(design(policy, "opt0").worst_case_mse, 4)
    ('direct', 3.587, 8.5675)
    """
    if model not in MODELS:
        raise DesignError(f'model = "{model}" does not exist; the models are {", ".join(MODELS)}')
    task = _Task(policy, prior, encoding, padding)
    return task.auto() if model == "auto" else task.make(model)


def alternatives(policy: Policy, prior: Any = "uniform", padding: int | None = None) -> dict[str, Mechanism]:
    """Every model that the policy's input allows, by name, for comparison."""
    task = _Task(policy, prior, None, padding)
    return {name: task.make(name) for name in MODELS if name != "auto" and task.allows(name)}


class _Task:
    """One call of `design`: its arguments, validated, and what the models share."""

    def __init__(self, policy: Policy, prior: Any, encoding: str | None, padding: int | None) -> None:
        if encoding is not None and encoding not in ENCODINGS:
            raise DesignError(f'encoding = "{encoding}" must be one of {", ".join(ENCODINGS)}')
        if policy.m > MAX_ITEMS:
            raise DesignError(f"{policy.m} items are more than the {MAX_ITEMS} that a report can name")
        padding = policy.padding if padding is None else padding
        if policy.input == "set":
            if padding is None:
                raise DesignError('input = "set" needs a padding: about the number of items a person has')
            check_padding(padding)
        elif padding is not None:
            raise DesignError(f'padding = {padding} applies to input = "set" only; leave it out')
        policy = replace(policy, padding=None)  # it is the mechanism's from here on
        self.policy, self.prior, self.encoding, self.padding = policy, prior, encoding, padding
        self.prior_name = prior if isinstance(prior, str) else "given"
        self.shares = theory.Shares.of(policy, prior, padding)
        self.sizes = np.array(policy.sizes, dtype=float)
        self.weights = np.array([level.weight for level in policy.levels])
        self.levels = Levels(np.array([float(lv.budget) for lv in policy.levels]), self.sizes, policy.notion)

    def allows(self, model: str) -> bool:
        return self.policy.input == "single" or model not in ("direct", "grr")

    def score(self, mechanism: Mechanism) -> float:
        """What mixed, direct and auto minimise."""
        return theory.total_mse(mechanism, self.prior, weighted=True)

    def auto(self) -> Mechanism:
        """The better of mixed and direct at the prior; the certificate's note says why."""
        mixed = self.make("mixed")
        if not self.allows("direct") or self.encoding is not None:
            return mixed
        score = self.score(mixed)
        if self.hopeless(score):
            return _noted(mixed, "auto: even GRR at the loosest budget is worse than mixed, so direct was not tried")
        direct = self.make("direct")
        other = self.score(direct)
        return _noted(direct if other < score else mixed, f"auto: mixed has {score:.4g}, direct {other:.4g}")

    def hopeless(self, score: float) -> bool:
        """Whether even GRR at the loosest budget of any pair is worse: then no direct mechanism is worth the search."""
        if self.policy.pairs:
            return False
        loosest = self.levels.eps.max()
        if self.policy.notion == "min":
            loosest = min(loosest, 2 * self.levels.smallest)
        m = np.array([self.sizes.sum()])
        D, O = _direct.grr(loosest, m)
        return bool(theory.direct_noise(D, O, m).costs(m, np.array([self.weights.min()]))[0] > score)

    def make(self, model: str) -> Mechanism:
        if model in ("direct", "grr"):
            if not self.allows(model):
                raise DesignError(f"{model} sends one item and cannot take set input; use mixed or opt0 with a padding")
            if self.encoding is not None:
                raise DesignError(f'encoding = "{self.encoding}" does not apply to {model}, which sends an item; leave it out')
            return self.direct() if model == "direct" else self.grr()
        return self.mixed() if model == "mixed" else self.one_part(model)

    @cached_property
    def pair_budgets(self) -> Floats:
        """r of every two levels; only for policies with explicit pairs, which have few levels."""
        t = range(len(self.sizes))
        return np.array([[self.policy.pair_epsilon(i, j) for j in t] for i in t])

    @cached_property
    def smallest(self) -> float:
        """The budget of plain LDP: the smallest that binds any pair."""
        smallest = float(self.pair_budgets.min()) if self.policy.pairs else self.levels.smallest
        if not math.isfinite(smallest):
            raise DesignError("no pair of levels is protected, so there is nothing to design; protect at least one pair")
        return smallest

    # ---- unary --------------------------------------------------------------------------------------

    def unary(self, model: str, designs: Sequence[tuple[float, Floats, Floats]], certificate: Certificate | None) -> Mechanism:
        encoding = self.encoding or "bits"
        parts = parts_of(self.policy, designs, encoding)
        return Mechanism(self.policy, model, encoding, parts, None, self.padding, self.prior_name, certificate)

    def one_part(self, model: str) -> Mechanism:
        u, w, certificate = self.solve(model)
        return self.unary(model, [(1.0, u, w)], certificate)

    def solve(self, model: str) -> tuple[Floats, Floats, Certificate | None]:
        """u and w of a model with one part."""
        ones, e = np.ones(len(self.sizes)), self.smallest
        if model == "rappor":
            return e / 2 * ones, e / 2 * ones, None
        if model == "oue":
            low = math.log(2) - math.log1p(math.exp(-e))
            return (e - low) * ones, low * ones, None
        if model == "opt0":
            u, w, value, bound, note = self.opt0()
            return u, w, Certificate(_WORST, value, bound, note)
        if self.policy.pairs:
            from discreet.designs import program

            return *program.solve(self.pair_budgets, self.sizes, model), None
        return *(reductions.opt1 if model == "opt1" else reductions.opt2)(self.levels), None

    def opt0(self) -> tuple[Floats, Floats, float, float, str]:
        if not self.policy.pairs:
            return *reductions.opt0(self.levels), "reduction to two scalars; bound by its tangent"
        from discreet.designs import program

        u, w = program.solve(self.pair_budgets, self.sizes, "opt0")
        value, bound = program.certify(self.pair_budgets, self.sizes, u, w)
        return u, w, value, bound, "geometric program; bound by its tangents"

    def mixed(self) -> Mechanism:
        """The A-optimal mixture, its shares and parts then moved to the prior; never worse than opt0."""
        opt0 = self.one_part("opt0")
        if self.policy.pairs:
            return _renamed(opt0, "explicit pair budgets: mixed is opt0, for its two-scalar reduction does not hold here")
        cost = self.weights * self.sizes
        found = _mixed.search(self.levels, cost)
        fitted = _mixed.polish(self.levels, found, self.objective)
        note = f"A-optimal mixture of {len(fitted.shares)} parts, then fitted to the prior"
        certificate = Certificate(_SPREAD, fitted.value(self.levels, cost), found.lower_bound, note)
        mechanism = self.unary("mixed", fitted.designs(self.levels), certificate)
        if self.score(mechanism) <= self.score(opt0):
            return mechanism
        return _renamed(opt0, "no mixture beats opt0 at this prior, so mixed is opt0")

    def objective(self, noise: theory.Noise) -> float:
        """The weighted total at the prior, for noise that does not belong to a mechanism yet."""
        return theory.unary_total(noise, self.sizes, self.weights, self.shares, self.padding)

    # ---- direct -------------------------------------------------------------------------------------

    def matrix(self, model: str, groups: list[int], D: Floats, O: Floats, note: str = "") -> Mechanism:
        sizes = np.bincount(groups, weights=self.sizes)
        mechanism = Mechanism(self.policy, model, "item", (), matrix_of(self.policy, groups, sizes, D, O), None, self.prior_name)
        if not note:
            return mechanism
        return replace(mechanism, certificate=Certificate(_TOTAL, self.score(mechanism), None, note))

    def grr(self) -> Mechanism:
        groups = [0] * len(self.sizes)
        return self.matrix("grr", groups, *_direct.grr(self.smallest, np.array([self.sizes.sum()])))

    def direct(self) -> Mechanism:
        """The best matrix found; never worse than grr."""
        grr = self.grr()
        if self.policy.m == 1:
            return _renamed(grr, "one item: there is nothing to hide", "direct")
        groups = _direct.groups_of(self.levels.eps)
        sizes = np.bincount(groups, weights=self.sizes)
        if self.policy.pairs:
            r = _direct.group_budgets(self.pair_budgets, groups)
        else:
            e = np.array([self.levels.eps[np.array(groups) == g].min() for g in range(len(sizes))])
            r = np.minimum.outer(e, e) if self.policy.notion == "min" else np.add.outer(e, e) / 2
        weights = np.bincount(groups, weights=self.sizes * self.weights) / sizes
        shares = None if self.shares.worst else np.bincount(groups, weights=self.shares.mean)

        def objective(D: Floats, O: Floats) -> Floats:
            costs = theory.direct_noise(D, O, sizes).costs(sizes, weights)
            if shares is not None:
                return costs @ shares
            return np.take_along_axis(costs, costs.real.argmax(-1)[..., None], -1)[..., 0]

        note = f"the best of {_direct.STARTS} starts around GRR; not proven to be the optimum"
        found = self.matrix("direct", groups, *_direct.search(r, sizes, self.smallest, objective), note)
        if self.score(found) <= self.score(grr):
            return found
        return _renamed(grr, "no matrix beats GRR at this prior, so direct is GRR", "direct")


def _renamed(mechanism: Mechanism, note: str, model: str = "mixed") -> Mechanism:
    old = mechanism.certificate or Certificate(_TOTAL, mechanism.expected_mse(), None)
    return replace(mechanism, model=model, certificate=replace(old, note=note))


def _noted(mechanism: Mechanism, note: str) -> Mechanism:
    assert mechanism.certificate is not None
    return replace(mechanism, certificate=replace(mechanism.certificate, note=f"{mechanism.certificate.note}; {note}"))
