"""Policies whose budgets are of ordered pairs, mechanisms for them, and all that they can send."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations, product
from pathlib import Path

import exhaustive
import numpy as np

import discreet as d

VECTORS = Path(__file__).parent / "vectors" / "v2" / "mechanisms.json"


def leveled(sizes, budgets, notion="one-way", **settings):
    """A policy of levels l0, l1, …; a budget of None: the level is open."""
    rows = [
        (f"l{k}", epsilon, [f"{k}.{i}" for i in range(size)])
        for k, (size, epsilon) in enumerate(zip(sizes, budgets, strict=True))
    ]
    opened = [name for name, epsilon, _ in rows if epsilon is None]
    return d.Policy.from_levels(rows, notion=notion, open=opened, **settings)


def scale(points, step=1, cap=None):
    return d.Policy.from_scale([f"p{k}" for k in range(points)], step, cap, estimate="items")


def table(budgets, sizes):
    """The policy of r_lc, None where it is infinite: open levels, and one-way pairs for the rest.

    >>> table([[1, 2], [None, None]], (2, 3)).open_levels
    (1,)
    """
    own = [row[k] for k, row in enumerate(budgets)]
    pairs = [
        (f"l{i}", f"l{j}", r, True)
        for i, row in enumerate(budgets)
        for j, r in enumerate(row)
        if i != j and r != own[i]
    ]
    return leveled(sizes, own, pairs=pairs)


MIXED = [[1, 2, 0.5], [None, None, 1.5], [None, None, None]]
POLICIES = {
    "one-way (1, 4)": leveled((1, 4), ("ln(4)", None)),
    "one-way (2, 2, 3)": leveled((2, 2, 3), (1, 2, None)),
    "one-way, none open": leveled((2, 1, 3), (1, 2, 4)),
    "blocks 3 x 3": leveled((3, 3, 3), (1, 1, 1), "blocks"),
    "scale of 5": scale(5),
    "scale of 5, cap 2": scale(5, 1, 2),
    "mixed": table(MIXED, (2, 1, 3)),
    "each": leveled((1, 3), (1, 2), kind="each"),
}
PLAIN = ("five-open-speaking-ticket", "seven-open-ticket", "six-mixed-ticket")


@cache
def mechanisms():
    """One of every policy, as it is designed; and tickets of small primes with a plain part."""
    documents = {case["name"]: case["document"] for case in json.loads(VECTORS.read_text("utf-8"))}
    made = {
        name: d.design(policy) if policy.kind.lists else d.design(policy, "subset")
        for name, policy in POLICIES.items()
    }
    return made | {name: d.Mechanism.from_document(documents[name]) for name in PLAIN}


def all_reports(mechanism):
    """Every report that is not refused."""
    document, m = mechanism.to_document(), mechanism.m
    if mechanism.encoding.kind == "ticket":
        numbers = range(len(mechanism.parts) * mechanism.encoding.tickets)
        rows = [number.to_bytes(4, "little") for number in numbers]
    elif mechanism.encoding.kind == "fixed":
        groups = exhaustive.members(document)
        rows = [
            exhaustive.packed(document, o, [i for some in named for i in some])
            for o, part in enumerate(document["parts"])
            for named in product(*(combinations(g, k) for g, k in zip(groups, part["other"])))
        ]
    else:
        subsets = [named for k in range(m + 1) for named in combinations(range(m), k)]
        rows = [
            exhaustive.packed(document, o, named)
            for o in range(len(mechanism.parts))
            for named in subsets
        ]
    return [row for row in rows if mechanism.coder.refusal(row) is None]


def scored(mechanism, reports):
    """What every report adds to the estimates, reports x items."""
    return np.asarray(mechanism.scores(np.frombuffer(b"".join(reports), np.uint8).reshape(
        len(reports), -1)))  # fmt: skip
