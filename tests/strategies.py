"""Policies for property tests, and small mechanisms of every encoding."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from unittest.mock import patch

from hypothesis import assume
from hypothesis import strategies as st

from discreet import Policy, design
from discreet.designs import fields
from discreet.encodings import Ticket
from discreet.policy import Budget, Pair

search = sys.modules["discreet.designs.subset"]  # the room; its name is also a function's
budgets = st.sampled_from(["ln(4)", "ln(6)", "ln(3/2)", 1, 1.2, 2, 0.05, 0.7, 3.5, 8])
FIELD = Ticket(5, 2)  # 125 tickets a part: small enough to look at all of them


@st.composite
def policies(draw, max_levels=3, max_size=2, max_items=5, notions=("min", "avg"), **settings):
    """Small policies: every combination of budgets, sizes and notions."""
    t = draw(st.integers(1, max_levels))
    sizes = [draw(st.integers(1, max_size)) for _ in range(t)]
    while sum(sizes) > max_items:
        sizes[sizes.index(max(sizes))] -= 1
    rows = [
        (f"L{k}", draw(budgets), [f"{k}.{i}" for i in range(size)]) for k, size in enumerate(sizes)
    ]
    return Policy.from_levels(rows, notion=draw(st.sampled_from(notions)), **settings)


@st.composite
def with_pairs(draw, **settings):
    """The same with explicit pair budgets; a pair may be unprotected, but never all of them."""
    plain = draw(policies(**settings))
    names = [level.name for level in plain.levels]
    every = [(a, b) for k, a in enumerate(names) for b in names[k:]]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    own = st.sampled_from([None, "ln(2)", "ln(9)", "0.4", "1.7", "3"])
    pairs = [Pair(a, b, text and Budget.parse(text)) for a, b in chosen for text in [draw(own)]]
    if len(pairs) == len(every) and all(pair.budget is None for pair in pairs):
        pairs[0] = Pair(pairs[0].first, pairs[0].second, Budget.parse("ln(2)"))
    policy = replace(plain, pairs=tuple(pairs))
    lone = [size == 1 for size in policy.level_sizes]
    t = range(len(lone))
    bound = [(i, j) for i in t for j in t[i:] if not (i == j and lone[i])]
    assume(not bound or any(policy.pair_epsilon(i, j) < math.inf for i, j in bound))
    return policy


def small_tickets(policy, model="subset", field=FIELD, **arguments):
    """A design that sends tickets of a small field, whatever it costs. Like the others here it is
    for the total: fair designs of independent items often have one part only.
    """
    arguments = {"goal": "total", **arguments}
    with patch.object(fields, "fields", lambda m, growth=1.5: iter([field])):
        return design(policy, model, encoding="ticket", **arguments)


def small_bits(policy, model="subset", **arguments):
    """A design that sends independent bits, where `subset` would send subsets of fixed size."""
    arguments = {"goal": "total", **arguments}
    with patch.object(search, "SMALL", 0):
        return design(policy, model, encoding="bits", **arguments)


def of_kind(kind, policy, model="subset", **arguments):
    """A design of one encoding: fixed, bits or ticket."""
    make = {"fixed": small_subsets, "bits": small_bits, "ticket": small_tickets}[kind]
    return make(policy, model, **{"goal": "total", **arguments})


def small_subsets(policy, model="subset", **arguments):
    """Of sets, one sampled item."""
    sampled = {"encoding": "bits"} if policy.kind == "set" and model == "subset" else {}
    return design(policy, model, **sampled, **arguments)
