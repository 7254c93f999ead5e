"""Which items rank highest, and which exceed a share, as rows of an estimate's table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import DataError
from discreet.estimates import formulas
from discreet.estimates.table import Row, Table

if TYPE_CHECKING:
    from discreet.estimates.estimate import Estimate


def top(
    estimate: Estimate, k: int, confidence: float, ranking: str, views: Iterable[str], about: str
) -> list[Row]:
    """The k items that rank highest, by posterior mean or raw count."""
    if k < 1:
        raise DataError(f"k = {k} must be at least 1")
    if ranking not in ("posterior", "raw"):
        raise DataError(f'ranking = "{ranking}" must be posterior or raw')
    table = estimate.table(confidence, views, about)
    if ranking == "raw" or not estimate.can_shrink:
        order = np.argsort(-np.nan_to_num(estimate.counts, nan=-np.inf), kind="stable")
        return table.take(order[:k]).rows()
    shrunk = estimate.shrunk()
    more = {"shrunk": shrunk.counts}
    if k < len(table):  # if k is all items, each of them is in the top
        more["in_top"] = shrunk.in_top(k)
    table = Table({**table.columns, **more})
    return table.take(np.argsort(-shrunk.counts, kind="stable")[:k]).rows()


def above(estimate: Estimate, share: float, fdr: float, about: str) -> list[Row]:
    """The items whose share exceeds a threshold, with a bound on the share of wrong ones."""
    if not (0 <= share < 1 and 0 < fdr < 1):
        raise DataError(f"share = {share} must be in [0, 1) and fdr = {fdr} in (0, 1)")
    limit = share * estimate.n
    noise = np.sqrt(estimate.variance(limit, about))
    chance = formulas.chance_beyond(estimate.counts - estimate.step / 2 - limit, noise)
    return estimate.table(about=about).take(formulas.discoveries(chance, fdr)).rows()
