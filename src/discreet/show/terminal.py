"""Tables for the terminal. Names and labels are escaped, so they are text and never markup."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from discreet.estimates.ordered import mean_sentence
from discreet.estimates.views import VIEWS
from discreet.estimates.weights import SMALL
from discreet.mechanism import Mechanism
from discreet.policy.labels import how_many
from discreet.promises.words import in_words

if TYPE_CHECKING:
    from discreet.estimates.comparison import Comparison
    from discreet.estimates.estimate import Estimate
    from discreet.estimates.simulation import Score
    from discreet.estimates.table import Row
    from discreet.show.facts import LevelFacts, MechanismFacts, PlanFacts

TOTALS_NOTE = (
    "A total adds up items: a person who holds several of them counts once for each, so it can "
    "exceed 100 %."
)
WIDTH = 80  # of an estimate that is printed
MOST = 30  # rows of an estimate that is printed
FEW = 30  # reports that tell the variance of a weighted estimate, below which it is said

OBJECTIVES = {
    "mse": "MSE with undercounting",
    "shrunk": "MSE after shrinking, with undercounting",
    "relative": "relative error of the 20 most frequent items",
}


def console() -> Console:
    """The terminal, or a fixed width if the output is a file or a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for k, head in enumerate(heads):
        table.add_column(escape(head), justify="left" if k == 0 else "right", overflow="fold")
    return table


def _print(out: Console, table: Table) -> None:
    """Print a table. On a narrow terminal the heads wrap first, then the gaps shrink, then the
    cells fold; nothing is cut.
    """
    widths = [_widths(column) for column in table.columns]
    gaps, least = len(widths) - 1, sum(width for width, _ in widths)
    if least + 3 * gaps + 2 > out.width:
        table.padding = 0
    room = out.width - 2 - least - (3 if any(table.padding) else 1) * gaps
    for column, (width, full) in zip(table.columns, widths, strict=True):
        if room >= 0:
            column.width = min(full, width + room)
            room -= column.width - width
    out.print(table)


def _widths(column: Column) -> tuple[int, int]:
    """The width that a column needs if its head wraps, and if nothing wraps."""
    head = Text.from_markup(str(column.header)).plain
    cells = max((cell_len(Text.from_markup(str(cell)).plain) for cell in column.cells), default=0)
    return max(cells, *map(cell_len, head.split() or [""])), max(cells, cell_len(head))


def _print_sentence(out: Console, sentence: str, mark: str = "", style: str = "") -> None:
    """Print a sentence. A terminal wraps it behind its mark; a file or pipe gets one line."""
    if out.is_terminal:
        grid = Table.grid()
        grid.add_row(mark, Text(sentence, style))
        out.print(grid)
    else:
        out.print(Text(mark + sentence, style), soft_wrap=True)


def mechanism(mechanism: Mechanism, facts: MechanismFacts) -> None:
    """Print a mechanism, as `facts.describe` describes it."""
    out = console()
    sets = f"sets of answers, padding {facts['padding']}" + (", strict" if facts["strict"] else "")
    if facts["kind"] == "each":
        sets = "sets of answers, each protected on its own"
    answers = "single answers" if facts["kind"] == "single" else sets
    out.print(
        f"[bold]{escape(facts['name'])}[/bold]: {facts['items']:,} items in "
        f"{facts['level_count']:,} levels, "
        f"{answers}, notion {facts['notion']}"
    )
    _print_warnings(out, facts["warnings"])
    size = facts["report_bytes"]
    out.print(
        f"model [bold]{facts['model']}[/bold] at the {facts['prior']} prior; "
        f"a report has {size:,} byte{'s' if size != 1 else ''} ({facts['encoding']}: "
        f"{facts['encoding_told']})"
    )
    if facts["certificate"]:
        out.print(f"Its expected error: {escape(facts['certificate']['sentence'])}.")
    _print_probabilities(out, mechanism)
    best = facts["best_plain"]
    table = _table(
        "level",
        "items",
        "epsilon",
        "promised factor",
        "variance / person",
        f"with {best}",
        "against plain LDP",
    )
    for row in facts["levels"]:
        table.add_row(
            escape(row["level"]),
            f"{row['items']:,}",
            row["epsilon"],
            "no limit" if row["factor"] is None else in_words(row["factor"]),
            f"{row['variance']:.4g}",
            f"{row['plain_variance'][best]:.4g}",
            _verdict(row),
        )
    _print(out, table)
    worse = [row["level"] for row in facts["levels"] if row["against_best_plain"] >= 1.005]
    if worse and len(worse) < len(facts["levels"]):
        losers = escape(", ".join(worse))
        out.print(
            f"[yellow]The other levels gain at the expense of {losers}[/yellow]; a weight in the "
            "policy changes that."
        )
    table = _table("total MSE / n", "expected", "worst case")
    for name, total in facts["total_mse"].items():
        label = f"[bold]{name}[/bold]" if name == facts["model"] else f"{name} (plain LDP)"
        table.add_row(label, f"{total['expected']:.4g}", f"{total['worst_case']:.4g}")
    _print(out, table)
    _print_guarantee(out, facts)
    _print_sentence(out, facts["fake"]["sentence"])
    if facts["published"]:
        _print_sentence(out, facts["published"])


def _verdict(row: LevelFacts) -> str:
    """How a level's variance compares with plain LDP."""
    ratio = row["against_best_plain"]
    if ratio < 0.995:
        return f"{1 / ratio:.2f} x better"
    return "the same" if ratio < 1.005 else f"[yellow]{ratio:.2f} x worse[/yellow]"


def _print_warnings(out: Console, warnings: Sequence[str]) -> None:
    for sentence in warnings:
        _print_sentence(out, f"Warning: {sentence}", style="yellow")


def _print_probabilities(out: Console, mechanism: Mechanism) -> None:
    from discreet.show.facts import MAX_ROWS

    policy = mechanism.policy
    if len(policy.levels) > MAX_ROWS:
        return
    table = _table("part", *(f"{level.name}: part, own, other" for level in policy.levels))
    for k, part in enumerate(mechanism.parts):
        cells = [
            f"{chance:.4f}, {own:.4f}, {other:.4f}" if own else f"{chance:.4f}, silent"
            for chance, own, other in zip(part.chance, part.own, part.other, strict=True)
        ]
        table.add_row(str(k), *cells)
    _print(out, table)
    out.print(
        "Each cell: the chance that an answer of this level uses the part; then the chances that "
        "the report names it, and any other item."
    )


def _print_guarantee(out: Console, facts: MechanismFacts) -> None:
    bound = facts["ldp_bound"]
    limit = "there is no bound" if bound is None else f"at most {bound:.4g} by the policy"
    epsilon = facts["ldp_epsilon"]
    overall = f"plain LDP with epsilon {epsilon or 0:.4g} ({limit}), and"
    if epsilon is None:
        overall = "no limit between some answers, and"
    if facts["kind"] == "each":
        overall = "every item by its own budget, whole sets by no more than their sum;"
    out.print(f"Guarantee, checked exactly: {overall} for each level:")
    if facts["caution"]:
        _print_warnings(out, [facts["caution"]])
    for sentence in facts["promises"] or [
        "(too many levels to list; see --json or mechanism.guarantee().pairs)"
    ]:
        _print_sentence(out, sentence, mark="  • ")


def plan(facts: PlanFacts) -> None:
    """Print a forecast, as `facts.plan` makes it."""
    out = console()
    out.print(
        f"[bold]{escape(facts['name'])}[/bold]: forecast for {facts['users']:,} people, at the "
        f"{facts['prior']} prior"
    )
    _print_warnings(out, facts["warnings"])
    for sentence in facts["visible"]:
        _print_sentence(out, sentence, mark="  • ")
    heads = [
        "model",
        "level",
        "std. error (people)",
        "std. error (share)",
        "detectable share",
    ]
    table = _table(*heads, *(["users for the target"] if facts["target_error"] else []))
    last = None
    for row in facts["rows"]:
        name = row["model"] if row["model"] != last else ""
        last = row["model"]
        cells = [
            name,
            escape(row["level"]),
            f"{row['stderr_count']:,.1f}",
            f"{row['stderr_share']:.3%}",
            f"{row['smallest_share']:.3%}",
        ]
        table.add_row(*cells, *([f"{row['users_for_target']:,}"] if facts["target_error"] else []))
    _print(out, table)
    _print_sentence(
        out,
        "Detectable share: an estimate above it is not 0 by chance (1.96 standard errors of an "
        "item that nobody has). A true share as large as this is seen about every other time.",
    )
    _print_padding(out, facts)
    gain = facts["gain"]
    compare = f"{gain:.1%} below" if gain >= 0 else f"{-gain:.1%} above"
    out.print(
        f"Chosen: [bold]{facts['best']}[/bold]; its total MSE is {compare} that of the best "
        f"plain-LDP model, {facts['best_plain']}."
    )
    if facts["certificate"]:
        out.print(f"Its expected error: {escape(facts['certificate']['sentence'])}.")
    _print_sentence(out, facts["fake"]["sentence"])
    if facts["published"]:
        _print_sentence(out, facts["published"])


def _print_padding(out: Console, facts: PlanFacts) -> None:
    """Say why a padding was chosen, if it was."""
    curve, padding, objective = facts["padding_curve"], facts["padding"], facts["objective"]
    if curve is None or padding is None or objective is None:
        return
    near = [f"{ell}: {value:,.4g}" for ell, value in curve.items() if abs(ell - padding) <= 3]
    out.print(
        f"Padding [bold]{padding}[/bold] has the smallest expected {OBJECTIVES[objective]} "
        f"({', '.join(near)})."
    )


def estimate(
    estimate: Estimate,
    rows: Sequence[Row],
    confidence: float = 0.95,
    about: str = "population",
    totals: Sequence[Row] = (),
    truth: Mapping[str, int] | None = None,
    out: Console | None = None,
) -> None:
    """Print rows of an estimate and totals, beside the truth if it is known."""
    out = out or console()
    more = [name for name in (*VIEWS, "in_top") if rows and name in rows[0]]
    if rows and "shrunk_lower" not in rows[0]:  # it ranks, and was not asked for
        more = [name for name in more if name != "shrunk"]
    heads = [
        *({"in_top": "in the top"}.get(name, name) for name in more),
        *(["truth"] if truth else []),
    ]
    trust = f"{100 * confidence:.4g} % interval"
    table = _table("item", "level", "people", "std. error", "share", trust, *heads)
    for row in [*rows, *totals]:
        cells = [
            escape(str(row["item"])),
            escape(str(row["level"])),
            _people(row["count"]),
            _people(row["stderr"]),
            _share(row["share"], 1),
            f"{_share(row['share_low'], 1)} to {_share(row['share_high'], 1)}",
        ]
        for name in more:
            value = row.get(name)
            cells.append(_share(value) if name == "in_top" else _people(value))
        if truth:
            true, low, high = truth[str(row["item"])], row["lower"], row["upper"]
            outside = low is not None and high is not None and not low <= true <= high
            cells.append(f"{true:,}" + (" [yellow](outside)[/yellow]" if outside else ""))
        table.add_row(*cells)
    weighting = estimate.weighting
    weighed = (
        ""
        if weighting is None
        else (f", weighted; as good as {weighting.effective_n:,.0f} of equal weight")
    )
    out.print(f"{how_many(estimate.n)}{weighed}")
    _print(out, table)
    if mean := mean_sentence(estimate, confidence, about):
        _print_sentence(out, mean)
    people = "those who answered" if weighting is None else "as many as answered, by weight"
    whom = "the population they were drawn from" if about == "population" else "the same people"
    if weighting is not None and weighting.freedom < FEW:
        carry = max(1, round(weighting.freedom))
        few = f"{how_many(carry)} {'carries' if carry == 1 else 'carry'}"
        _print_sentence(
            out,
            f"About {few} most of the weight, so the errors are hardly known and the intervals "
            "wide; trim the weights or join small groups.",
            style="yellow",
        )
    if weighting is not None and 0 < weighting.smallest_group < SMALL:
        _print_sentence(
            out,
            f"A group that was added up has {how_many(weighting.smallest_group)}: below {SMALL}, "
            "intervals are made wider than their confidence asks for; join small groups.",
            style="yellow",
        )
    if totals and estimate.mechanism.policy.kind.lists:
        _print_sentence(out, TOTALS_NOTE, style="dim")
    _print_sentence(out, f"People: of {people}. Share and interval: of {whom}.", style="dim")


def estimate_text(result: Estimate) -> str:
    """The table of an estimate as text: the largest counts, and totals."""
    # as a terminal, so that sentences wrap; without colours, because text goes anywhere
    out = Console(
        file=io.StringIO(), width=WIDTH, highlight=False, force_terminal=True, color_system=None
    )
    order = np.argsort(-np.nan_to_num(result.counts, nan=-np.inf), kind="stable")[:MOST]
    estimate(result, result.table().take(order).rows(), totals=result.totals().rows(), out=out)
    rest = len(result) - len(order)
    if rest > 0:
        out.print(f"and {rest:,} more: .table(), .to_pandas() or .save(path)")
    return str(out.file.getvalue()).rstrip()  # type: ignore[attr-defined]


def comparison(comparison: Comparison, rows: Sequence[Mapping[str, object]]) -> None:
    """Print the largest differences, and the conclusion."""
    out = console()
    first, second = comparison.names
    counts = [how_many(estimate.n) for estimate in (comparison.first, comparison.second)]
    out.print(f"{escape(first)}: {counts[0]}; {escape(second)}: {counts[1]}")
    trust = f"{comparison.confidence:.0%}, all items together"
    table = _table("item", "level", first, second, "difference", trust, "")
    for row in rows:
        shares = [_share(row[f"share_{name}"], 2) for name in comparison.names]
        ends = f"{_points(row['lower'])} to {_points(row['upper'])}"
        differs = "[bold]differs[/bold]" if row["differs"] else ""
        names = escape(str(row["item"])), escape(str(row["level"]))
        table.add_row(*names, *shares, _points(row["difference"]), ends, differs)
    _print(out, table)
    _print_sentence(out, " ".join(filter(None, (comparison.sentence, comparison.note))))


def _people(count: object) -> str:
    return "–" if count is None else f"{count:,.0f}"


def _share(share: object, digits: int = 0) -> str:
    return "–" if share is None else f"{share:.{digits}%}"


def _points(share: object) -> str:
    """A difference of shares in percentage points."""
    return "–" if share is None else f"{share:+.2%}".removesuffix("%")


def scores(scores: Sequence[Score], k: int, repeats: int) -> None:
    """Print how models compare on your data."""
    out = console()
    table = _table(
        "model",
        "view",
        "total MSE / n",
        "±",
        f"rel. error, top {k}",
        f"precision, top {k}",
        "coverage of 95 %",
    )
    last = None
    for score in scores:
        cover, error, miss = (
            "–" if x != x else f"{x:{how}}"
            for x, how in (
                (score.coverage, ".1%"),
                (score.mse_error, ".2g"),
                (score.precision_error, ".2f"),
            )
        )
        name = score.model if score.model != last else ""
        last = score.model
        table.add_row(
            name,
            score.view,
            f"{score.mse:,.4g}",
            error,
            f"{score.relative_error:.3f}",
            f"{score.precision:.2f} ± {miss}",
            cover,
        )
    _print(out, table)
    best = min(scores, key=lambda score: score.mse)
    out.print(
        f"Smallest error: [bold]{best.model}[/bold], {best.view}. "
        + (
            f"Means of {repeats} experiments; ± is one standard error."
            if repeats > 1
            else "One experiment; use --repeats to see how far chance moves it."
        )
    )
