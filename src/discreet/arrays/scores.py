"""Scores: what every report adds to the estimate of every item.

An estimate is the sum of the scores of its reports (`theory.py`). One row per report is what other
people's tools need: sums by group, weights, regressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.rows import as_rows
from discreet.arrays.types import Bools, Bytes, Floats, Ints
from discreet.errors import DataError
from discreet.mechanism import Mechanism

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22  # scores worked out at a time


def item_places(mechanism: Mechanism, items: Iterable[str | int] | None) -> Ints:
    """The places of these items, given by label or index; None: of all items."""
    if items is None:
        return np.arange(mechanism.m)
    listed = [items] if isinstance(items, str) else items
    if not isinstance(listed, Iterable):
        raise DataError(f"items are labels or indices, got {items!r}")
    return np.array([mechanism.policy.place(item) for item in listed], np.int64)


def scores(
    mechanism: Mechanism, reports: object, items: Iterable[str | int] | None, arrow: bool
) -> Floats | pa.RecordBatch:
    """The scores of reports (reports x items), as an array or as Arrow columns."""
    places = item_places(mechanism, items)
    scores_, _ = score(mechanism, reports, places)
    return as_arrow(mechanism, scores_, places) if arrow else scores_


def score(mechanism: Mechanism, reports: object, places: Ints) -> tuple[Floats, Bools]:
    """The scores of reports (reports x places), and which are reports of the mechanism at all.

    Scores are NaN for what is no report, and for items of which the mechanism says nothing.
    """
    rows, good = as_rows(mechanism, reports)
    scores = np.full((len(good), len(places)), np.nan)
    step, where = max(1, _BLOCK // max(1, len(places))), np.flatnonzero(good)
    for first in range(0, len(rows), step):
        block, mine = rows[first : first + step], where[first : first + step]
        part, refused = mechanism.arrays.coder.refusals(block)
        fine = ~np.any([np.zeros(len(block), bool), *refused.values()], axis=0)
        scores[mine[fine]] = _score(mechanism, part[fine], block[fine], places)
        good[mine] = fine
    return scores, good


def as_arrow(mechanism: Mechanism, scores: Floats, places: Ints) -> pa.RecordBatch:
    """The scores as a column per item; null where there are none."""
    import pyarrow as pa

    names = [mechanism.policy.items[place] for place in places]
    if len({*names}) < len(names):
        raise DataError("an item is named twice, which two columns cannot be; name each once")
    return pa.record_batch([pa.array(x, from_pandas=True) for x in scores.T], names=names)


def _score(mechanism: Mechanism, part: Ints, rows: Bytes, places: Ints) -> Floats:
    coder, d = mechanism.arrays.coder, mechanism.arrays.decoder
    group = mechanism.arrays.group_of[places]
    weight = np.where(d.estimable, mechanism.scale * d.weight, np.nan)[:, group]
    level = mechanism.scale * (d.tau - d.weight * d.kappa)[:, group]
    return level[part] + weight[part] * coder.named(part, rows, places)
