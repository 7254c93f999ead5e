"""What the commands say about a mechanism, as plain data: `--json` prints it, `terminal.py` shows
it as tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.arrays import theory
from discreet.arrays.types import Floats, Prior
from discreet.check.exact_sets import LARGEST
from discreet.designs import (
    BASELINES,
    alternatives,
    best_plain,
    default_model,
    design,
    pick_best,
    plains,
    why,
)
from discreet.designs.task import GOALS, DesignOptions
from discreet.estimates.fakes import Reach
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import quoted
from discreet.promises.guarantee import Guarantee
from discreet.promises.paths import acting
from discreet.promises.words import finite
from discreet.show import outlook
from discreet.show.group_sizes import smallest_group
from discreet.show.shapes import (
    CertificateFacts,
    FakeFacts,
    GoalFacts,
    LevelFacts,
    MechanismFacts,
    PlanFacts,
    PlanRow,
)
from discreet.survey import Survey

PUBLISHED = 10_000  # people, for whom results alone and the sizes of groups are worked out
MAX_ROWS = 20  # levels shown one by one; with more, the extremes
MAX_EPSILON = 20  # a larger budget protects nobody: it allows a factor of 500 million on the odds


# ---- the facts -----------------------------------------------------------------------------------


def describe(mechanism: Mechanism, prior: Prior = "uniform", name: str = "") -> MechanismFacts:
    """Describe a mechanism: probabilities, guarantee and expected error per level, beside plain
    LDP.
    """
    policy = mechanism.policy
    others = plains(policy, prior, mechanism.padding)
    shares = _with_shares(prior)
    mine = theory.level_variance(mechanism, shares)
    plain = {name: theory.level_variance(m, shares) for name, m in others.items()}
    best = pick_best(others, prior).model
    guarantee = mechanism.guarantee()
    against = _ratios(mine, plain[best])
    levels: list[LevelFacts] = [
        {
            "level": policy.levels[k].name,
            "items": policy.level_sizes[k],
            "epsilon": policy.levels[k].budget.text,
            "factor": finite(guarantee.factors[k]),
            "variance": mine[k],
            "plain_variance": {name: variance[k] for name, variance in plain.items()},
            "against_best_plain": against[k],
        }
        for k in _select_levels(against)
    ]
    low, high = theory.mse_range(mechanism)
    return {
        "name": name or policy.title,
        "items": policy.m,
        "level_count": len(policy.levels),
        "notion": policy.notion + (" with explicit pairs" if policy.pairs else ""),
        "kind": str(policy.kind),
        "padding": mechanism.padding,
        "strict": policy.strict,
        "model": mechanism.model,
        "prior": mechanism.prior,
        "encoding": mechanism.encoding.name,
        "encoding_told": mechanism.encoding.summary,
        "report_bytes": mechanism.report_size,
        "probabilities": probabilities(mechanism),
        "levels": levels,
        "total_mse": {
            name: {"expected": m.expected_mse(prior), "worst_case": m.worst_case_mse}
            for name, m in {mechanism.model: mechanism, **others}.items()
        },
        "mse_range": [low, high],
        "best_plain": best,
        "ldp_epsilon": finite(guarantee.ldp_epsilon),
        "set_factor": float(guarantee.set_factor) if policy.kind.pads else None,
        "ldp_bound": finite(guarantee.ldp_bound),
        "holds": True,  # or there would be no mechanism
        "caution": guarantee.caution,
        "promises": guarantee.sentences() if len(policy.levels) <= MAX_ROWS else [],
        "certificate": _describe_certificate(mechanism),
        "goals": [],
        "fake": describe_fake(mechanism),
        "published": describe_published(guarantee, PUBLISHED),
        "warnings": [*warnings(policy), *_suggest_hits(mechanism)],
        "fingerprint": mechanism.fingerprint,
    }


def describe_survey(survey: Survey) -> dict[str, Any]:
    """What a survey asks, and what it promises about everything that a person sends."""
    promise = survey.promise()
    return {
        "survey": survey.name,
        "questions": list(survey.questions),
        "answers": survey.answers,
        "factor": finite(promise.factor),
        "drawn": promise.drawn,
        "published": publish(survey, share_evenly(survey, PUBLISHED)),
        "promise": promise.sentence,
        "survey_caution": promise.caution,
        "public": [public.name for public in survey.public],
        "groups": survey.group_count,
        "smallest_group": smallest_group(PUBLISHED, survey.group_count),
        "fingerprint": survey.fingerprint,
    }


def probabilities(mechanism: Mechanism) -> dict[str, list[dict[str, list[float] | str]]]:
    """The chances per part and level, rounded for reading; the file has the exact integers."""
    return {
        "parts": [
            {"chance": _round(p.chance), "own": _round(p.own), "other": _round(p.other)}
            for p in mechanism.parts
        ]
    }


def plan(
    policy: Policy,
    users: int,
    prior: Prior,
    padding: int | None,
    target: float | None,
    chosen: Mechanism,
    goal: str | None = None,
    about: str = "population",
) -> PlanFacts:
    """Forecast the errors of every model and level, as `forecast` does, and what they mean."""
    outlook.check_target(target)
    models = alternatives(policy, prior, padding, goal)
    plain_models = {name: models[name] for name in BASELINES if name in models}
    plain_best = pick_best(plain_models, prior).model
    shares = _with_shares(prior)
    rows = [
        row for m in models.values() for row in forecast_levels(m, users, shares, target, about)
    ]
    mine, plain = chosen.expected_mse(prior), models[plain_best].expected_mse(prior)
    return {
        "name": policy.title,
        "users": users,
        "about": about,
        "prior": prior if isinstance(prior, str) else "given",
        "padding": chosen.padding,
        "target_error": target,
        "rows": rows,
        "total_mse": {name: m.expected_mse(prior) for name, m in models.items()},
        "best": chosen.model,
        "certificate": _describe_certificate(chosen),
        "goals": [],
        "fake": describe_fake(chosen),
        "best_plain": plain_best,
        "gain": 1 - mine / plain if plain else 0.0,
        "why": why(policy, chosen, prior, goal),
        "warnings": warnings(policy),
        "visible": outlook.sentences(chosen, users, shares, about),
        "published": describe_published(chosen.guarantee(), users)
        or nothing_published(chosen.guarantee().ldp_epsilon, users),
        "padding_curve": None,
        "objective": None,
    }


def forecast_levels(
    mechanism: Mechanism, users: int, prior: Prior, target: float | None, about: str
) -> list[PlanRow]:
    """What so many people show with this mechanism, per level: the standard error of a count (of
    those who answered) and of a share (of whom it is `about`), the smallest share that stands out
    from zero with a chance of 80 %, and how many people a target needs.
    """
    policy, rows = mechanism.policy, []
    counts = theory.level_variance(mechanism, prior)
    shares = theory.share_variance(mechanism, prior, about)
    noises = outlook.noises(mechanism, prior, about)
    for k in _select_levels(counts):
        row: PlanRow = {
            "model": mechanism.model,
            "level": policy.levels[k].name,
            "items": policy.level_sizes[k],
            "stderr_count": math.sqrt(counts[k] * users),
            "stderr_share": math.sqrt(shares[k] / users),
            "smallest_share": outlook.visible_share(noises[k], users),
        }
        if target is not None:
            row["users_for_target"] = math.ceil(shares[k] / target**2)
        rows.append(row)
    return rows


def compare_goals(policy: Policy, chosen: Mechanism, options: DesignOptions) -> list[GoalFacts]:
    """Both goals side by side, if the chosen model has them at this prior."""
    prior = options.get("prior", "uniform")
    weighted = any(level.weight != 1 for level in policy.levels)
    if chosen.model not in ("subset", "hits") or prior == "worst" or weighted:
        return []
    plain = theory.level_variance(best_plain(policy, prior, chosen.padding), prior)
    goal, rows = options.get("goal", "fair"), []
    for name in GOALS:
        other: DesignOptions = {**options, "goal": name}
        made = chosen if name == goal else design(policy, **other)
        against = _ratios(theory.level_variance(made, prior), plain)
        row: GoalFacts = {
            "goal": name,
            "chosen": name == goal,
            "total_mse": made.expected_mse(prior),
            "against_best_plain": {
                policy.levels[k].name: float(against[k]) for k in _select_levels(against)
            },
        }
        rows.append(row)
    return rows


def describe_published(guarantee: Guarantee, users: int) -> str:
    """What results alone tell of a person; empty where it is no less than a report does."""
    promise = guarantee.published(users)
    return promise.sentence if promise else ""


def publish(survey: Survey, people: Mapping[str, int], grouped: bool = False) -> str:
    """What the results of all questions tell of a person; or why there is no statement about it.

    `people` says how many answer each question; in the smallest group, if they are `grouped`.
    """
    promise = survey.promise().published(people, grouped=grouped)
    if promise:
        return promise.sentence
    least = min(filter(None, people.values()), default=0)
    return nothing_published(survey.promise().epsilon, least, grouped)


def share_evenly(survey: Survey, users: int) -> dict[str, int]:
    """How many of so many people answer each question, on average."""
    people = max(users * survey.answers // len(survey.listed), 1)
    return {q.name: people for q in survey.listed}


def nothing_published(epsilon: float, people: int, grouped: bool = False) -> str:
    """Why there is no statement about published results."""
    count = f"{people:,} {'person is' if people == 1 else 'people are'} too few"
    why = f"{'In the smallest group ' if grouped else ''}{count} for a statement about"
    if not math.isfinite(epsilon):
        why = "Some pairs of answers are not protected, so there is no statement about"
    return f"{why} what published results alone tell; the promise about the report holds."


def _with_shares(prior: Prior) -> Prior:
    """Figures per level need shares. The prior "worst" has none, so use the uniform ones."""
    return "uniform" if isinstance(prior, str) else prior


def warnings(policy: Policy) -> list[str]:
    """Sentences about settings that are allowed but probably a mistake."""
    sentences = []
    if policy.m == 1 and not policy.kind.lists:
        sentences.append(
            f"{quoted(policy.items[0])} is the only item, so everybody's answer is known before "
            "they give it: a report hides nothing and tells nothing; add the other answers"
        )
    budgets = [(f'level "{level.name}"', level.budget) for level in policy.levels]
    budgets += [
        (f'the pair of "{pair.first}" and "{pair.second}"', pair.budget)
        for pair in policy.pairs
        if pair.budget is not None
    ]
    large = [(what, budget) for what, budget in budgets if MAX_EPSILON < float(budget) < math.inf]
    if large:
        what, budget = max(large, key=lambda row: float(row[1]))
        more = f" (and {len(large) - 1} more above {MAX_EPSILON})" if len(large) > 1 else ""
        sentences.append(
            f"epsilon = {budget.text} in {what}{more} gives almost no protection: it allows a "
            f"factor of e^{float(budget):.3g} on the odds; did you mean a smaller number?"
        )
    if not policy.is_mutual:
        sentences.append(
            "protection is one-way: that somebody does not have a protected answer may become "
            'known; where that is sensitive too, as in a vote, use notion = "min"'
        )
    return sentences + _warn_unused_budget(policy)


def _warn_unused_budget(policy: Policy) -> list[str]:
    """A sentence about the level whose budget exceeds what it can use by the most."""
    less = [(k, acts) for k, acts in enumerate(acting(policy)) if acts is not None]
    if not less:
        return []
    k, acts = max(less, key=lambda row: float(policy.levels[row[0]].budget) - row[1])
    level, more = policy.levels[k], len(less) - 1
    others = f" (and {more} more level{'s' if more > 1 else ''} like it)" if more else ""
    return [
        f'epsilon = {level.budget.text} in level "{level.name}" acts as {acts:.4g}{others}: '
        "the smaller budgets of other levels protect these answers too, so a larger epsilon gains "
        "nothing"
    ]


def _suggest_hits(mechanism: Mechanism) -> list[str]:
    """Suggest `hits` if a mechanism samples one item of a set that it could report whole."""
    padding = mechanism.padding or 0
    if mechanism.model != "subset" or padding < 2 or mechanism.encoding.lists != "sampled":
        return []
    if default_model(mechanism.policy, min(padding, LARGEST)) != "hits":
        return []
    why = "leave --encoding out" if padding <= LARGEST else f"use a padding up to {LARGEST}"
    return [
        "subset reports one sampled item of a set; hits reports the whole set, with much less "
        f"error: {why}"
    ]


def describe_fake(mechanism: Mechanism) -> FakeFacts:
    """How many people one fake report can stand for, at most."""
    reach = Reach.for_mechanism(mechanism)
    finite = [x if math.isfinite(x) else None for x in reach.levels.tolist()]
    return {
        "levels": [
            {"level": mechanism.policy.levels[k].name, "people": finite[k]}
            for k in _select_levels(reach.levels)
        ],
        "together": reach.together,
        "sentence": reach.sentence(mechanism),
    }


def _describe_certificate(mechanism: Mechanism) -> CertificateFacts | None:
    certificate = mechanism.certificate
    if certificate is None:
        return None
    return {
        "value": certificate.value,
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap,
        "note": certificate.note,
        "sentence": certificate.sentence,
    }


def _ratios(mine: Floats, plain: Floats) -> Floats:
    """How the variances compare; 1 if neither has an error, as with a single item."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mine == plain, 1.0, mine / plain)


def _select_levels(values: Floats) -> list[int]:
    """All levels if they are few, otherwise those with the ten smallest and ten largest values."""
    if len(values) <= MAX_ROWS:
        return list(range(len(values)))
    order = np.argsort(values, kind="stable")
    return [int(k) for k in (*order[:10], *order[-10:])]


def _round(values: Sequence[float]) -> list[float] | str:
    return np.round(values, 6).tolist() if np.size(values) <= 400 else "see the file"
