"""Which model a set gets: picks or hits, and `subset` for sets."""

from __future__ import annotations

import math
from functools import lru_cache

from discreet.designs import hits, set_subset
from discreet.designs import subset as subset_
from discreet.designs.block_search import ROUNDS
from discreet.designs.task import Task
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy import Policy

SMALL_REPORT = 16  # bytes that picks may always have; else twice those of hits
_QUICK = {1: 12, 2: 6, 3: 4, 4: 4}  # the padding up to which picks are searched, by budgets


def subset(task: Task) -> Mechanism:
    """`subset` of any kind: for sets of several items picks, and one sampled item where picks are
    not searched (set_subset.unfit).
    """
    if task.policy.kind.pads and set_subset.unfit(task) is None:
        return set_subset.picks(task)
    return subset_.subset(task)


def best_for_sets(task: Task) -> Mechanism:
    """Picks where their expected error is below that of hits and their reports are short; hits
    otherwise.
    """
    counted = hits.hits(task)
    picked = short_picks(task, counted)
    return picked if picked and set_subset.score(task, picked) < task.score(counted) else counted


def short_picks(task: Task, counted: Mechanism) -> Mechanism | None:
    """Picks with reports of at most 16 bytes, or twice those of hits; None where they are not
    searched or do not fit.
    """
    return _search(task, counted.report_size)


def _search(task: Task, size: int, rounds: int = ROUNDS) -> Mechanism | None:
    if set_subset.unfit(task) is not None or (task.padding or 1) > _QUICK[set_subset.levels(task)]:
        return None
    try:
        return set_subset.picks(task, max(SMALL_REPORT, 2 * size), rounds)
    except DesignError:
        return None


def quick_picks(task: Task) -> Mechanism | None:
    """The same beside hits of the usual prime, to choose a padding: after half of the search, so
    that a design may have a little less error. The last ones are kept, because several paddings are
    compared again and again.
    """
    if isinstance(task.prior, str) and task.people is None and task.encoding is None:
        return _quick_picks(task.policy, task.prior, task.padding or 1, task.goal)
    return _search(task, 1 + 2 * ((task.padding or 1) + 2), ROUNDS // 2)


@lru_cache(64)
def _quick_picks(policy: Policy, prior: str, padding: int, goal: str) -> Mechanism | None:
    task = Task(policy, prior, None, padding, goal=goal)
    return _search(task, 1 + 2 * (padding + 2), ROUNDS // 2)


def comparison(task: Task, chosen: Mechanism) -> str:
    """Why this model, in a line, with the error and the bytes of both; empty where there is no
    choice.
    """
    if task.encoding is not None or chosen.encoding.kind not in ("hits", "picks"):
        return ""
    counted = chosen if chosen.encoding.kind == "hits" else hits.hits(task)
    picked = chosen if chosen.encoding.kind == "picks" else short_picks(task, counted)
    if picked is None:
        why = set_subset.unfit(task) or "the search of subset would take long"
        return f"hits, {_bytes(counted)} per report: {why}."
    errors = [set_subset.score(task, mechanism) for mechanism in (picked, counted)]
    if not all(map(math.isfinite, errors)):
        return ""
    told = [
        f"{name} has a total MSE / n of {error:,.4g} with {_bytes(mechanism)} per report"
        for name, error, mechanism in zip(
            ("subset", "hits"), errors, (picked, counted), strict=True
        )
    ]
    return f"Whole lists: {told[0]}, {told[1]}."


def _bytes(mechanism: Mechanism) -> str:
    return f"{mechanism.report_size} bytes"
