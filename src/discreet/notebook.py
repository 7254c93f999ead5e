"""What notebooks show of a policy, a mechanism, a guarantee, an estimate and a comparison: short
HTML, also for thousands of items. All texts are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import short_fingerprint
from discreet.guarantee import in_words

if TYPE_CHECKING:
    from discreet.comparison import Comparison
    from discreet.estimate import Estimate
    from discreet.guarantee import Guarantee
    from discreet.mechanism import Mechanism
    from discreet.policy import Policy

SHOWN = 12  # rows; what is more is counted
_LEFT, _RIGHT = ("text-align:left", "text-align:right")
_BAR = "display:inline-block;height:.8em;background:#2471a3;vertical-align:baseline"


def policy(found: Policy) -> str:
    """Levels with budgets, and what is in them."""
    kind = "sets of answers" if found.takes_sets else "single answers"
    lines = [f"<b>{escape(found.name)}</b>: {found.m:,} items, {kind}, notion {found.notion}"]
    if found.question:
        lines.append(f"<i>{escape(found.question)}</i>")
    rows = [
        (level.name, level.budget.text, f"{size:,}", _examples(found, k))
        for k, (level, size) in enumerate(zip(found.levels, found.sizes, strict=True))
        if k < SHOWN
    ]
    heads = ("level", "epsilon", "items", "such as")
    return _page(lines, _table(heads, rows, len(found.levels), texts=(0, 3)))


def mechanism(found: Mechanism) -> str:
    """How it was found, its report, and per level the promise and the noise."""
    from discreet import theory

    levels, noise = found.policy.levels, theory.level_variance(found)
    factors = found.guarantee().factors
    size = found.report_size
    lines = [
        f"<b>{escape(found.policy.name)}</b>: model {found.model}, a report has {size:,} "
        f"byte{'s' if size != 1 else ''}; guarantee checked exactly"
    ]
    if found.certificate:
        lines.append(f"Its expected error: {escape(found.certificate.sentence)}.")
    rows = [
        (level.name, f"{many:,}", level.budget.text, in_words(factor), f"{variance:.4g}")
        for level, many, factor, variance, _ in zip(
            levels, found.policy.sizes, factors, noise, range(SHOWN), strict=False
        )
    ]
    heads = ("level", "items", "epsilon", "promised factor", "variance / person")
    lines_after = [f"Fingerprint <code>{short_fingerprint(found.fingerprint)}…</code>"]
    return _page(lines, _table(heads, rows, len(levels), texts=(0,)), lines_after)


def guarantee(found: Guarantee) -> str:
    """The promises in words."""
    few = len(found.names) <= SHOWN
    told = found.sentences() if few else found.sentences()[:SHOWN]
    more = "" if few else f"<li>and {len(found.names) - SHOWN:,} more levels: .pairs</li>"
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in told)
    held = "holds, checked exactly" if found.holds else "DOES NOT HOLD"
    line = f"<b>Guarantee</b> ({held}): plain LDP with epsilon {found.ldp_epsilon:.4g}"
    return _page([line], f"<ul>{listed}{more}</ul>")


def estimate(found: Estimate) -> str:
    """The foremost items with intervals and bars."""
    order = np.argsort(-np.nan_to_num(found.counts, nan=-np.inf), kind="stable")[:SHOWN]
    rows = found.table().take(order).rows()
    most = max([row["count"] or 0 for row in rows] + [1])
    cells = [
        (
            row["item"],
            row["level"],
            _number(row["count"]),
            f"{_number(row['lower'])} to {_number(row['upper'])}",
            _Bar(max(0.0, (row["count"] or 0) / most)),
        )
        for row in rows
    ]
    name = escape(found.mechanism.policy.name)
    heads = ("item", "level", "people", "95 % interval", "")
    notes = [escape(found.truncation_note)] if found.truncation_note else []
    table = _table(heads, cells, len(found.counts), texts=(0, 1, 4))
    return _page([f"<b>{name}</b>: {found.n:,} reports"], table, notes)


def comparison(found: Comparison) -> str:
    """The sentence, and the foremost differences."""
    first, second = found.names
    rows = [
        (
            row["item"],
            *(_percent(row[f"share_{name}"]) for name in found.names),
            _percent(row["difference"], signed=True),
            f"{_percent(row['lower'], signed=True)} to {_percent(row['upper'], signed=True)}",
            "differs" if row["differs"] else "",
        )
        for row in found.table().take(found.ranked[:SHOWN]).rows()
    ]
    heads = ("item", first, second, "difference", f"{100 * found.confidence:g} %, all together", "")
    table = _table(heads, rows, len(found.differences), texts=(0, 5))
    return _page([escape(found.sentence)], table, [escape(found.note)] if found.note else [])


class _Bar(float):
    """A share of the longest bar."""


def _page(lines: Iterable[str], table: str, after: Iterable[str] = ()) -> str:
    paragraphs = ["".join(f"<p>{line}</p>" for line in part) for part in (lines, after)]
    return f"<div>{paragraphs[0]}{table}{paragraphs[1]}</div>"


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], total: int, texts: Sequence[int]
) -> str:
    """Rows with escaped cells; what is not shown is counted in a last one."""
    sides = [_LEFT if k in texts else _RIGHT for k in range(len(heads))]
    top = "".join(
        f'<th style="{side}">{escape(head)}</th>' for head, side in zip(heads, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{side}">{_cell(cell)}</td>' for cell, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    if total > len(rows):
        rest = f"and {total - len(rows):,} more"
        body += f'<tr><td colspan="{len(heads)}" style="{_LEFT}">{rest}</td></tr>'
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Any) -> str:
    if isinstance(cell, _Bar):
        return f'<span style="{_BAR};width:{10 * cell:.2f}em"></span>'
    return escape(str(cell))


def _examples(found: Policy, level: int) -> str:
    items = [item for item, k in zip(found.items, found.level_of, strict=True) if k == level]
    return ", ".join(items[:3]) + (", …" if len(items) > 3 else "")


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:,.0f}"


def _percent(x: float | None, signed: bool = False) -> str:
    return "–" if x is None else f"{100 * x:{'+' if signed else ''}.2f} %"
