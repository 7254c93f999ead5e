"""What notebooks show of a policy, a mechanism, a guarantee, an estimate and a comparison.

Short HTML, even for thousands of items. All texts are escaped. The tables are real ones, which rich
does not make: it prints its notebook output as preformatted text, so a screen reader reads no rows
and columns. Colours come from the page, so they suit a dark one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from discreet.errors import MissingExtra, short_fingerprint
from discreet.promises.words import in_words

if TYPE_CHECKING:
    from discreet.estimates.comparison import Comparison
    from discreet.estimates.estimate import Estimate
    from discreet.mechanism import Mechanism
    from discreet.policy import Policy
    from discreet.promises.guarantee import Guarantee
    from discreet.survey import Survey

MAX_ROWS = 12  # the other rows are counted
_LEFT, _RIGHT = ("text-align:left", "text-align:right")
_BAR = "display:inline-block;height:.8em;background:currentColor;opacity:.5"


def policy(policy: Policy) -> str:
    """The levels with their budgets and examples of their items."""
    kind = "sets of answers" if policy.kind.lists else "single answers"
    lines = [f"<b>{escape(policy.title)}</b>: {policy.m:,} items, {kind}, notion {policy.notion}"]
    rows = [
        (level.name, level.budget.text, f"{size:,}", _examples(policy, k))
        for k, (level, size) in enumerate(zip(policy.levels, policy.level_sizes, strict=True))
        if k < MAX_ROWS
    ]
    heads = ("level", "epsilon", "items", "such as")
    return _page(lines, _table(heads, rows, len(policy.levels), texts=(0, 3)))


def mechanism(mechanism: Mechanism) -> str:
    """The model, the size of a report, and for each level the promise and the noise.

    The noise needs numpy. An auditor without it sees the promise, and what to install.
    """
    levels, size = mechanism.policy.levels, mechanism.report_size
    lines_after = [f"Fingerprint <code>{short_fingerprint(mechanism.fingerprint)}…</code>"]
    try:
        noise = _variances(mechanism)
    except MissingExtra as error:
        noise = ["–"] * len(levels)
        lines_after.append(escape(str(error)))
    lines = [
        f"<b>{escape(mechanism.policy.title)}</b>: model {mechanism.model}, a report has {size:,} "
        f"byte{'s' if size != 1 else ''}; guarantee checked exactly"
    ]
    if mechanism.certificate:
        lines.append(f"Its expected error: {escape(mechanism.certificate.sentence)}.")
    rows = [
        (level.name, f"{items:,}", level.budget.text, in_words(factor), variance)
        for level, items, factor, variance, _ in zip(
            levels,
            mechanism.policy.level_sizes,
            mechanism.guarantee().factors,
            noise,
            range(MAX_ROWS),
            strict=False,
        )
    ]
    heads = ("level", "items", "epsilon", "promised factor", "variance / person")
    return _page(lines, _table(heads, rows, len(levels), texts=(0,)), lines_after)


def survey(survey: Survey) -> str:
    """The questions, and the promise about everything that a person sends."""
    promise = survey.promise()
    asked = f"{len(survey.listed)} question{'s' * (len(survey.listed) != 1)}"
    lines = [f"<b>{escape(survey.name)}</b>: {asked}", *filter(None, [escape(promise.drawn)])]
    rows = [
        (q.name, q.policy.title, f"{q.policy.m:,}", f"{q.mechanism.report_size:,}")
        for q in survey.listed[:MAX_ROWS]
    ]
    heads = ("name", "question", "items", "bytes")
    after = [escape(promise.caution or promise.sentence)]
    after.append(f"Fingerprint <code>{short_fingerprint(survey.fingerprint)}…</code>")
    return _page(lines, _table(heads, rows, len(survey.listed), texts=(0, 1)), after)


def guarantee(guarantee: Guarantee) -> str:
    """The promises in words."""
    rest = len(guarantee.names) - MAX_ROWS
    sentences = guarantee.sentences()[:MAX_ROWS] if rest > 0 else guarantee.sentences()
    more = f"<li>and {rest:,} more levels: .pairs</li>" if rest > 0 else ""
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    holds = "holds, checked exactly" if guarantee.holds else "DOES NOT HOLD"
    epsilon = (
        f"{guarantee.ldp_epsilon:.4g}" if guarantee.ldp_epsilon < math.inf else "without limit"
    )
    line = f"<b>Guarantee</b> ({holds}): plain LDP with epsilon {epsilon}"
    return _page([line], f"<ul>{listed}{more}</ul>")


def estimate(estimate: Estimate) -> str:
    """The largest counts with intervals and bars."""
    import numpy as np  # late: the other pages work without it

    order = np.argsort(-np.nan_to_num(estimate.counts, nan=-np.inf), kind="stable")[:MAX_ROWS]
    rows = estimate.table().take(order).rows()
    most = max([row["count"] or 0 for row in rows] + [1])
    cells = [
        (
            row["item"],
            row["level"],
            _number(row["count"]),
            _percent(row["share"]),
            f"{_percent(row['share_low'])} to {_percent(row['share_high'])}",
            _Bar(max(0.0, (row["count"] or 0) / most)),
        )
        for row in rows
    ]
    name = escape(estimate.mechanism.policy.title)
    heads = ("item", "level", "people", "share", "95 % interval", "")
    notes = [escape(estimate.truncation_note)] if estimate.truncation_note else []
    table = _table(heads, cells, len(estimate.counts), texts=(0, 1, 5))
    note = "People: of those who answered. Share: of the population they were drawn from."
    return _page([f"<b>{name}</b>: {estimate.n:,} reports"], table, [note, *notes])


def comparison(comparison: Comparison) -> str:
    """The conclusion, and the largest differences."""
    first, second = comparison.names
    rows = [
        (
            row["item"],
            *(_percent(row[f"share_{name}"]) for name in comparison.names),
            _percent(row["difference"], signed=True),
            f"{_percent(row['lower'], signed=True)} to {_percent(row['upper'], signed=True)}",
            "differs" if row["differs"] else "",
        )
        for row in comparison.table().take(comparison.ranked[:MAX_ROWS]).rows()
    ]
    trust = f"{100 * comparison.confidence:g} %, all together"
    heads = ("item", first, second, "difference", trust, "")
    table = _table(heads, rows, len(comparison.differences), texts=(0, 5))
    notes = [escape(comparison.note)] if comparison.note else []
    return _page([escape(comparison.sentence)], table, notes)


class _Bar(float):
    """A share of the longest bar."""


def _page(lines: Iterable[str], table: str, after: Iterable[str] = ()) -> str:
    paragraphs = ["".join(f"<p>{line}</p>" for line in part) for part in (lines, after)]
    return f"<div>{paragraphs[0]}{table}{paragraphs[1]}</div>"


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str | _Bar]], total: int, texts: Sequence[int]
) -> str:
    """A table of escaped cells, the columns `texts` to the left and numbers to the right. A last
    row counts the rows that are not shown.
    """
    sides = [_LEFT if k in texts else _RIGHT for k in range(len(heads))]
    top = "".join(
        f'<th scope="col" style="{side}">{escape(head)}</th>' if head else "<td></td>"
        for head, side in zip(heads, sides, strict=True)
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


def _cell(cell: str | _Bar) -> str:
    if isinstance(cell, _Bar):
        return f'<span style="{_BAR};width:{10 * cell:.2f}em"></span>'
    return escape(cell)


def _variances(mechanism: Mechanism) -> list[str]:
    """The variance of one person's contribution per level; MissingExtra without numpy."""
    from discreet.arrays import theory

    return [f"{variance:.4g}" for variance in theory.level_variance(mechanism)]


def _examples(policy: Policy, level: int) -> str:
    items = [item for item, k in zip(policy.items, policy.level_of, strict=True) if k == level]
    return ", ".join(items[:3]) + (", …" if len(items) > 3 else "")


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:,.0f}"


def _percent(x: float | None, signed: bool = False) -> str:
    return "–" if x is None else f"{100 * x:{'+' if signed else ''}.2f} %"
