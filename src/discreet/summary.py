"""What the commands say about a mechanism, as plain data: `--json` prints it, the terminal shows it
as tables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet import theory
from discreet.designs import BASELINES, alternatives, best_of, default_model, plains
from discreet.errors import DesignError
from discreet.exact_hits import LARGEST
from discreet.fakes import Reach
from discreet.guarantee import acting
from discreet.labels import show
from discreet.mechanism import Mechanism
from discreet.policy import Policy

MAX_ROWS = 20  # levels shown one by one; with more, the extremes
MAX_EPSILON = 20  # a budget above this protects nobody: a factor of 500 million on the odds


def describe(mechanism: Mechanism, prior: Any = "uniform") -> dict[str, Any]:
    """A mechanism: probabilities, guarantee and expected error per level, beside plain LDP."""
    policy = mechanism.policy
    others = plains(policy, prior, mechanism.padding)
    at = (
        "uniform" if isinstance(prior, str) else prior
    )  # per-level figures need shares; worst has none of its own
    mine = theory.level_variance(mechanism, at)
    plain = {name: theory.level_variance(m, at) for name, m in others.items()}
    best = best_of(others, prior).model
    guarantee = mechanism.guarantee()
    levels = []
    against = _ratios(mine, plain[best])
    for k in _shown(against):
        levels.append(
            {
                "level": policy.levels[k].name,
                "items": policy.sizes[k],
                "epsilon": policy.levels[k].budget.text,
                "factor": float(guarantee.factors[k]),
                "variance": mine[k],
                "plain_variance": {name: v[k] for name, v in plain.items()},
                "against_best_plain": against[k],
            }
        )
    low, high = theory.mse_range(mechanism)
    return {
        "name": policy.name,
        "items": policy.m,
        "level_count": len(policy.levels),
        "notion": policy.notion + (" with explicit pairs" if policy.pairs else ""),
        "input": policy.input,
        "padding": mechanism.padding,
        "protect": policy.protect if policy.takes_sets else None,
        "strict": policy.strict,
        "model": mechanism.model,
        "prior": mechanism.prior,
        "encoding": mechanism.encoding.name,
        "encoding_told": mechanism.encoding.told,
        "report_bytes": mechanism.report_size,
        "probabilities": probabilities(mechanism),
        "levels": levels,
        "total_mse": {
            name: {"expected": m.expected_mse(prior), "worst_case": m.worst_case_mse}
            for name, m in {mechanism.model: mechanism, **others}.items()
        },
        "mse_range": [low, high],
        "best_plain": best,
        "ldp_epsilon": guarantee.ldp_epsilon,
        "set_factor": float(guarantee.set_factor) if policy.pads else None,
        "ldp_bound": guarantee.ldp_bound if math.isfinite(guarantee.ldp_bound) else None,
        "holds": guarantee.holds,
        "caution": guarantee.caution,
        "promises": guarantee.sentences() if len(policy.levels) <= MAX_ROWS else [],
        "certificate": _certificate(mechanism),
        "fake": fake(mechanism),
        "warnings": [*warnings(policy), *_instead_of_hits(mechanism)],
        "fingerprint": mechanism.fingerprint,
    }


def probabilities(mechanism: Mechanism) -> dict[str, Any]:
    """Chances per part and level, rounded for reading; the file has the integers."""
    return {
        "parts": [
            {"chance": _round(p.chance), "own": _round(p.own), "other": _round(p.other)}
            for p in mechanism.parts
        ]
    }


def plan(
    policy: Policy,
    users: int,
    prior: Any,
    padding: int | None,
    target: float | None,
    chosen: Mechanism,
) -> dict[str, Any]:
    """Per model and level: standard error as a count and as a share, what can be told from zero,
    users for a target.
    """
    if target is not None and not 1e-9 <= target <= 1:
        raise DesignError(f"the target error = {target} must be a share from 1e-9 to 1")
    models = alternatives(policy, prior, padding)
    plain_models = {name: models[name] for name in BASELINES if name in models}
    best_plain = best_of(plain_models, prior).model
    at = "uniform" if isinstance(prior, str) else prior
    rows = []
    for name, mechanism in models.items():
        variance, absent = (
            theory.level_variance(mechanism, at),
            theory.absent_variance(mechanism, at),
        )
        for k in _shown(variance):
            row = {
                "model": name,
                "level": policy.levels[k].name,
                "items": policy.sizes[k],
                "stderr_count": math.sqrt(variance[k] * users),
                "stderr_share": math.sqrt(variance[k] / users),
                "smallest_share": 1.959964 * math.sqrt(absent[k] / users),
            }
            if target is not None:
                row["users_for_target"] = math.ceil(variance[k] / target**2)
            rows.append(row)
    mine, plain = chosen.expected_mse(prior), models[best_plain].expected_mse(prior)
    return {
        "name": policy.name,
        "users": users,
        "prior": prior if isinstance(prior, str) else "given",
        "padding": chosen.padding,
        "target_error": target,
        "rows": rows,
        "total_mse": {name: m.expected_mse(prior) for name, m in models.items()},
        "best": chosen.model,
        "certificate": _certificate(chosen),
        "fake": fake(chosen),
        "best_plain": best_plain,
        "gain": 1 - mine / plain if plain else 0.0,
        "warnings": warnings(policy),
    }


def warnings(policy: Policy) -> list[str]:
    """What is allowed and hardly meant, a sentence each."""
    found = []
    if policy.m == 1 and not policy.takes_sets:
        found.append(
            f"{show(policy.items[0])} is the only item, so everybody's answer is known before they "
            "give it: a report hides nothing and tells nothing; add the other answers"
        )
    budgets = [(f'level "{level.name}"', level.budget) for level in policy.levels]
    budgets += [
        (f'the pair of "{pair.first}" and "{pair.second}"', pair.budget)
        for pair in policy.pairs
        if pair.budget is not None
    ]
    large = [(what, budget) for what, budget in budgets if float(budget) > MAX_EPSILON]
    if large:
        what, budget = max(large, key=lambda row: float(row[1]))
        more = f" (and {len(large) - 1} more above {MAX_EPSILON})" if len(large) > 1 else ""
        found.append(
            f"epsilon = {budget.text} in {what}{more} asks for next to no protection: it allows a "
            f"factor of e^{float(budget):.3g} on the odds; was a smaller number meant?"
        )
    return found + _beyond_reach(policy)


def _beyond_reach(policy: Policy) -> list[str]:
    """Budgets that cannot be used up, as a sentence about the largest difference."""
    less = [(k, acts) for k, acts in enumerate(acting(policy)) if acts is not None]
    if not less:
        return []
    k, acts = max(less, key=lambda row: float(policy.levels[row[0]].budget) - row[1])
    level, more = policy.levels[k], len(less) - 1
    others = f" (and {more} more level{'s' if more > 1 else ''} likewise)" if more else ""
    return [
        f'epsilon = {level.budget.text} in level "{level.name}" acts as {acts:.4g}{others}: '
        "answers are also protected through the smaller budgets of others, so a larger epsilon "
        "gains nothing"
    ]


def _instead_of_hits(mechanism: Mechanism) -> list[str]:
    """What a set costs that is sampled although it could be reported whole."""
    padding = mechanism.padding or 0
    if mechanism.model != "subset" or padding < 2:
        return []
    if default_model(mechanism.policy, min(padding, LARGEST)) != "hits":
        return []
    why = "leave --encoding out" if padding <= LARGEST else f"use a padding up to {LARGEST}"
    return [
        "subset reports one sampled item of a set; hits, which report all of them, have far less "
        f"error: {why}"
    ]


def fake(mechanism: Mechanism) -> dict[str, Any]:
    """How many people one fake report can stand for, at most."""
    reach = Reach.of(mechanism)
    finite = [x if math.isfinite(x) else None for x in reach.levels.tolist()]
    return {
        "levels": [
            {"level": mechanism.policy.levels[k].name, "people": finite[k]}
            for k in _shown(reach.levels)
        ],
        "together": reach.together,
        "sentence": reach.sentence(mechanism),
    }


def _certificate(mechanism: Mechanism) -> dict[str, Any] | None:
    c = mechanism.certificate
    if c is None:
        return None
    return {
        "value": c.value,
        "lower_bound": c.lower_bound,
        "gap": c.gap,
        "note": c.note,
        "sentence": c.sentence,
    }


def _ratios(mine: Any, plain: Any) -> Any:
    """How the variances compare; 1 where there is no error at all, as with a single item."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mine == plain, 1.0, mine / plain)


def _shown(values: Any) -> list[int]:
    """All levels while they are few, otherwise the ten smallest and the ten largest by a figure."""
    if len(values) <= MAX_ROWS:
        return list(range(len(values)))
    order = np.argsort(values, kind="stable")
    return [int(k) for k in (*order[:10], *order[-10:])]


def _round(values: Any) -> Any:
    return np.round(values, 6).tolist() if np.size(values) <= 400 else "see the file"
