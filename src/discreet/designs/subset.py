"""`subset`: the best mechanism there is, with its certificate (docs/researcher.md,
"The design and its certificate").
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from discreet.check.certificate import FAIR, Certificate
from discreet.designs import boxes as boxes_
from discreet.designs import many_levels, plain, unary
from discreet.designs.fair import Limits, fair
from discreet.designs.fields import best_field
from discreet.designs.groups import FEW, Groups
from discreet.designs.notions import CLOSED
from discreet.designs.rounding import make_parts, refuse_silence, shrink_until_checked
from discreet.designs.search import FINE, Search
from discreet.designs.task import Task, replace_encoding
from discreet.encodings import Bits, Encoding, Fixed, Ticket
from discreet.errors import DesignError, GuaranteeError, MissingExtra
from discreet.mechanism import Mechanism

_TOO_MANY = f"with more than {FEW} budgets the best mechanism is not known"
_MERGED = 5  # for subsets of fixed size, more budgets are merged into this many groups
SMALL = 1000  # items up to which reports are subsets of fixed size, and bits the default


def subset(task: Task) -> Mechanism:
    """The best mechanism for the policy, the prior and the encoding, with its certificate."""
    task.refuse_unprotected()
    mean_alone = task.policy.rule.ordered and task.policy.estimate == "mean"
    if not task.fair or mean_alone or len(task.sizes) == 1:
        return _design(task, None)
    return fair(task, subset, lambda limits: _design(task, limits))


def _design(task: Task, limits: Limits | None) -> Mechanism:
    """The best mechanism within limits of the levels' errors, where there are any."""
    ticket = task.encoding == "ticket" or (task.encoding is None and task.policy.m > SMALL)
    if ticket and task.policy.rule.ordered:
        raise DesignError(
            'encoding = "ticket" is for many items, and a scale has few; leave it out'
        )
    groups = Groups.for_task(task)
    few = groups.few
    if task.one_way and not few:
        return _design_few(task, groups.merged(FEW), ticket, limits)
    finite = task.closed is None or groups.eps.max() <= boxes_.LARGEST
    if few and finite and not groups.misses_boxes:
        return _design_few(task, groups, ticket, limits)
    mechanisms = []
    with suppress(DesignError):  # chances that do not fit 32 bits, where a simpler model's may
        made = _design_few(task, groups, ticket, limits) if few else _design_many(task, ticket)
        mechanisms.append(made)
    # opt0 with thousands of levels as tickets takes long
    if few or not mechanisms or not ticket:
        mechanisms += _simpler_models(task, ticket)
    if not ticket and task.policy.m <= SMALL and not few:
        mechanisms.append(_design_few(task, groups.merged(_MERGED), ticket, limits))
    if not mechanisms:
        raise DesignError("no design for these budgets fits probabilities over 2^32")
    if limits is not None:
        mechanisms = [x for x in mechanisms if limits.keeps(x)] or [limits.plain]
    best = min(mechanisms, key=task.score)
    note = groups.boxes(0.0, groups.pieces[0]).note if few else _TOO_MANY
    notes = [note] if limits is None else [FAIR, note]
    return best.certified(Certificate(task.score(best), None, "; ".join(notes)))


def _simpler_models(task: Task, ticket: bool) -> list[Mechanism]:
    """Simpler models, for where the search does not cover everything. Each is a special case of
    what is searched for.
    """
    models = [unary.opt0] if ticket or task.policy.kind.lists else [unary.opt0, plain.ss]
    mechanisms = []
    for model in models:
        try:
            made = model(replace_encoding(task, "ticket" if ticket else None))
        except (MissingExtra, DesignError):
            continue
        mechanisms.append(replace(made, model="subset", certificate=None))
    return mechanisms


# ---- few groups: columns -------------------------------------------------------------------------


def _design_few(task: Task, groups: Groups, ticket: bool, limits: Limits | None) -> Mechanism:
    """Search the columns of few groups, for the best encoding."""
    m = task.policy.m
    if not ticket:
        table = task.closed is None and not task.policy.kind.lists  # with zeros: not by bits
        encoding = Fixed() if m <= SMALL or table else Bits()
        return Search(task, groups, encoding, limits).mechanism
    field = best_field(m, lambda field: Search(task, groups, field, limits).value(groups.shares))
    return Search(task, groups, field, limits).mechanism


# ---- many levels ---------------------------------------------------------------------------------


def _design_many(task: Task, ticket: bool) -> Mechanism:
    """Design with one group per level."""
    groups = Groups(task, tuple(range(len(task.sizes))))
    closed = task.closed or CLOSED["min"]  # of every level's smallest pair budget
    eps, t = np.minimum(groups.eps, boxes_.LARGEST), len(task.sizes)
    scales = many_levels.search(eps, groups.sizes, groups.shares[:t], groups.weights, closed)

    def chances(encoding: Encoding, shrink: float) -> many_levels.Draft:
        budgets, steps = eps * (1 - shrink), min(encoding.denominator(1), FINE)
        parts = scales.split() if ticket else scales
        draft = many_levels.fit(parts, groups.with_none(budgets, budgets.min()), closed, steps)
        if draft is None:
            raise GuaranteeError("the scales of the parts do not fit every budget")
        return replace(draft, other=draft.other * (encoding.denominator(1) // steps))

    def error(field: Ticket) -> float:
        cost = groups.with_none(groups.sizes * groups.weights, 0.0)
        try:
            return chances(field, 0.0).total(cost, groups.shares, field.q)
        except GuaranteeError:
            return math.inf

    encoding = best_field(task.policy.m, error) if ticket else Bits()

    def rounded(shrink: float) -> Mechanism:
        c = chances(encoding, shrink)
        parts = make_parts(
            task.policy, encoding, groups.of_level, c.chance, c.own[:, :t], c.other[:, :t]
        )
        refuse_silence(task.policy, parts)
        shares = task.whole_shares(groups.shares)
        return Mechanism(
            task.policy,
            "subset",
            encoding,
            groups.of_level,
            parts,
            shares,
            task.padding,
            task.prior_name,
        )

    return shrink_until_checked(rounded)
