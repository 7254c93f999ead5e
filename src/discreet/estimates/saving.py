"""Estimates as files: one table, or one with a row per group and item."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError
from discreet.estimates import ordered, totals
from discreet.estimates.table import Row, Table
from discreet.policy.files import write_text

if TYPE_CHECKING:
    from discreet.estimates.comparison import Comparison
    from discreet.estimates.estimate import Estimate

LAST = ("n", "confidence", "about")  # columns of a file that say the same in every row
WEIGHTED = "effective_n"  # one more, of weighted estimates
ENDINGS = (".csv", ".parquet", ".json")
Group = tuple[object, ...]  # the values of the columns of a group


def facts(
    estimate: Estimate,
    rows: Sequence[Row],
    confidence: float = 0.95,
    about: str = "population",
    sums: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """What is said of an estimate as JSON, with these rows of its items."""
    weighting = estimate.weighting
    return {
        "n": estimate.n,
        **({} if weighting is None else {WEIGHTED: round(weighting.effective_n, 1)}),
        "fingerprint": estimate.mechanism.fingerprint,
        "confidence": confidence,
        "about": about,
        "items": list(rows),
        "totals": all_totals(estimate, confidence, about, sums).rows(),
        **mean_facts(estimate, confidence, about),
        "note": estimate.truncation_note,
    }


def mean_facts(estimate: Estimate, confidence: float, about: str) -> dict[str, Row]:
    """The mean of a scale; nothing for other questions."""
    if not ordered.has_mean(estimate):
        return {}
    return {"mean": ordered.mean(estimate, None, confidence, about)}


def all_totals(
    estimate: Estimate,
    confidence: float,
    about: str,
    sums: Mapping[str, Sequence[int]] | None = None,
) -> Table:
    """The sums of items that have a name in the policy, those up to each point of a scale, and
    these.
    """
    policy = estimate.mechanism.policy
    named = {total.name: [policy.index[item] for item in total.items] for total in policy.totals}
    all_ = {**named, **ordered.cumulative(policy), **(sums or {})}
    return totals.table(estimate, all_, confidence, about)


def save(
    estimates: Mapping[Group, Estimate],
    path: str | Path,
    columns: Sequence[str] = (),
    confidence: float = 0.95,
    views: Iterable[str] = (),
    about: str = "population",
    sums: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Write estimates as CSV, Parquet or JSON, by the ending of the path; several of them with the
    columns of their groups in front. Totals come after the items.
    """
    suffix, chosen = Path(path).suffix.lower(), list(views)
    if suffix not in ENDINGS:
        raise DataError(f"{path}: a table is written as .csv, .parquet or .json")
    if suffix == ".json":
        documents = [
            {
                **({"group": dict(zip(columns, group, strict=True))} if columns else {}),
                **facts(e, e.table(confidence, chosen, about).rows(), confidence, about, sums),
            }
            for group, e in estimates.items()
        ]
        document = documents if columns else documents[0]
        write_text(path, json.dumps(document, ensure_ascii=False, indent=1, default=str) + "\n")
        return
    grouped(estimates, columns, confidence, chosen, about, sums).save(path)


def grouped(
    estimates: Mapping[Group, Estimate],
    columns: Sequence[str],
    confidence: float,
    views: Iterable[str],
    about: str = "population",
    sums: Mapping[str, Sequence[int]] | None = None,
) -> Table:
    """One table of all groups, with the columns of a group in front of every row."""
    chosen = list(views)
    tables = [
        table(e, confidence, chosen, about, sums, _named(columns, group))
        for group, e in estimates.items()
    ]
    return tables[0].followed_by(*tables[1:])


def _named(columns: Sequence[str], group: Group) -> dict[str, str | None]:
    """The values of a group as texts; None where there is no value."""
    return {c: None if x is None else str(x) for c, x in zip(columns, group, strict=True)}


def save_comparisons(
    comparisons: Sequence[Comparison], path: str | Path, confidence: float, named: bool
) -> None:
    """Write comparisons as CSV or Parquet. `named`: the two groups stand in columns, so that
    several pairs fit into one table; otherwise in the heads.
    """
    tables = []
    for comparison in comparisons:
        names = ("first", "second") if named else comparison.names
        columns = dict(comparison.table().columns)
        heads = [*columns]
        shares = dict(zip(heads[2:4], (f"share_{name}" for name in names), strict=True))
        front = dict(zip(names, comparison.names, strict=True)) if named else {}
        sizes = (comparison.first.n, comparison.second.n)
        back = {
            **dict(zip((f"n_{name}" for name in names), sizes, strict=True)),
            "confidence": confidence,
            "about": comparison.about,
        }
        rows = Table({shares.get(head, head): columns[head] for head in heads})
        tables.append(rows.beside(front, back))
    tables[0].followed_by(*tables[1:]).save(path)


def table(
    estimate: Estimate,
    confidence: float,
    views: Iterable[str],
    about: str = "population",
    sums: Mapping[str, Sequence[int]] | None = None,
    front: Mapping[str, str | None] | None = None,
) -> Table:
    """The items, then totals, with the columns of a file: what stands in front, and LAST; of
    weighted estimates also how many reports of equal weight would be as good.
    """
    rows = estimate.table(confidence, views, about)
    rows = rows.followed_by(all_totals(estimate, confidence, about, sums))
    last: dict[str, object] = dict(zip(LAST, (estimate.n, confidence, about), strict=True))
    if estimate.weighting is not None:
        last[WEIGHTED] = round(estimate.weighting.effective_n, 1)
    return rows.beside(front or {}, last)
