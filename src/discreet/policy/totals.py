"""Sums of items that have a name, such as "any mental illness"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from discreet.errors import PolicyError
from discreet.policy.labels import quoted


class Total(NamedTuple):
    """A name, and the items that it sums."""

    name: str
    items: tuple[str, ...]


def read_totals(raw: object) -> tuple[Total, ...]:
    """From {name: [items], …}, or from pairs of a name and items.

    >>> read_totals({"hot": ["tea", "coffee"]})
    (Total(name='hot', items=('tea', 'coffee')),)
    """
    pairs = raw.items() if isinstance(raw, Mapping) else raw
    if not isinstance(pairs, Iterable) or isinstance(pairs, str):
        raise PolicyError(f"totals are {{name: [items], …}}, got {quoted(raw)}")
    totals = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise PolicyError(f"a total is a name and its items, got {quoted(pair)}")
        name, items = pair
        if not isinstance(items, list | tuple) or not all(isinstance(x, str) for x in items):
            raise PolicyError(f"the total {quoted(name)} is a list of items, got {quoted(items)}")
        totals.append(Total(name, tuple(items)))
    return tuple(totals)
