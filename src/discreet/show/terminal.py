"""Tables for the terminal. Names and labels are escaped, so they are text and never markup."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape

from discreet.estimates.ordered import mean_sentence
from discreet.estimates.views import VIEWS
from discreet.estimates.weights import SMALL
from discreet.mechanism import Mechanism
from discreet.policy.labels import how_many
from discreet.promises.words import in_words
from discreet.show.layout import (
    console,
    make_table,
    print_sentence,
    print_table,
    print_warnings,
)

if TYPE_CHECKING:
    from discreet.estimates.comparison import Comparison
    from discreet.estimates.estimate import Estimate
    from discreet.estimates.simulation import Score
    from discreet.estimates.table import Row
    from discreet.show.shapes import GoalFacts, LevelFacts, MechanismFacts

TOTALS_NOTE = (
    "A total adds up items: a person who holds several of them counts once for each, so it can "
    "exceed 100 %."
)
WIDTH, MOST = 80, 30  # columns and rows of an estimate that is printed
COLUMNS = 5  # levels that a row of the goals shows one by one
FEW = 30  # reports that tell the variance of a weighted estimate, below which it is said


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
    print_warnings(out, facts["warnings"])
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
    table = make_table(
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
    print_table(out, table)
    worse = [row["level"] for row in facts["levels"] if row["against_best_plain"] >= 1.005]
    if worse and len(worse) < len(facts["levels"]):
        losers = escape(", ".join(worse))
        remedy = "the goal fair prevents" if facts["goals"] else "a weight in the policy changes"
        out.print(
            f"[yellow]The other levels gain at the expense of {losers}[/yellow]; {remedy} that."
        )
    print_goals(out, facts["goals"])
    table = make_table("total MSE / n", "expected", "worst case")
    for name, total in facts["total_mse"].items():
        label = f"[bold]{name}[/bold]" if name == facts["model"] else f"{name} (plain LDP)"
        table.add_row(label, f"{total['expected']:.4g}", f"{total['worst_case']:.4g}")
    print_table(out, table)
    _print_guarantee(out, facts)
    print_sentence(out, facts["fake"]["sentence"])
    if facts["published"]:
        print_sentence(out, facts["published"])


def print_goals(out: Console, goals: Sequence[GoalFacts]) -> None:
    """Print what each goal would come to, for every level, or the worst and the best of many."""
    if not goals:
        return
    names = list(goals[0]["against_best_plain"])
    few = len(names) <= COLUMNS
    table = make_table(
        "goal",
        "total MSE / n",
        *(f"{name}, of plain LDP" for name in names if few),
        *(() if few else ("worst level, of plain LDP", "best level")),
    )
    for row in goals:
        ratios = list(row["against_best_plain"].values())
        shown = ratios if few else [max(ratios), min(ratios)]
        label = f"[bold]{row['goal']}[/bold]" if row["chosen"] else row["goal"]
        table.add_row(label, f"{row['total_mse']:.4g}", *(f"{ratio:.2f}" for ratio in shown))
    print_table(out, table)


def _verdict(row: LevelFacts) -> str:
    """How a level's variance compares with plain LDP."""
    ratio = row["against_best_plain"]
    if ratio == 0:
        return "no error"
    if ratio < 0.995:
        return f"{1 / ratio:.2f} x better"
    return "the same" if ratio < 1.005 else f"[yellow]{ratio:.2f} x worse[/yellow]"


def _print_probabilities(out: Console, mechanism: Mechanism) -> None:
    from discreet.show.facts import MAX_ROWS

    policy = mechanism.policy
    if len(policy.levels) > MAX_ROWS:
        return
    table = make_table("part", *(f"{level.name}: part, own, other" for level in policy.levels))
    for k, part in enumerate(mechanism.parts):
        cells = [
            f"{chance:.4f}, {own:.4f}, {other:.4f}" if own else f"{chance:.4f}, silent"
            for chance, own, other in zip(part.chance, part.own, part.other, strict=True)
        ]
        table.add_row(str(k), *cells)
    print_table(out, table)
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
        sums = "whole sets by no more than their sum" if epsilon is not None else "one way"
        overall = f"every item by its own budget, {sums};"
    out.print(f"Guarantee, checked exactly: {overall} for each level:")
    if facts["caution"]:
        print_warnings(out, [facts["caution"]])
    for sentence in facts["promises"] or [
        "(too many levels to list; see --json or mechanism.guarantee().pairs)"
    ]:
        print_sentence(out, sentence, mark="  • ")


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
    table = make_table("item", "level", "people", "std. error", "share", trust, *heads)
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
    print_table(out, table)
    if mean := mean_sentence(estimate, confidence, about):
        print_sentence(out, mean)
    people = "those who answered" if weighting is None else "as many as answered, by weight"
    whom = "the population they were drawn from" if about == "population" else "the same people"
    if weighting is not None and weighting.freedom < FEW:
        carry = max(1, round(weighting.freedom))
        few = f"{how_many(carry)} {'carries' if carry == 1 else 'carry'}"
        print_sentence(
            out,
            f"About {few} most of the weight, so the errors are hardly known and the intervals "
            "wide; trim the weights or join small groups.",
            style="yellow",
        )
    if weighting is not None and 0 < weighting.smallest_group < SMALL:
        print_sentence(
            out,
            f"A group that was added up has {how_many(weighting.smallest_group)}: below {SMALL}, "
            "intervals are made wider than their confidence asks for; join small groups.",
            style="yellow",
        )
    if totals and estimate.mechanism.policy.kind.lists:
        print_sentence(out, TOTALS_NOTE, style="dim")
    print_sentence(out, f"People: of {people}. Share and interval: of {whom}.", style="dim")


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
    table = make_table("item", "level", first, second, "difference", trust, "")
    for row in rows:
        shares = [_share(row[f"share_{name}"], 2) for name in comparison.names]
        ends = f"{_points(row['lower'])} to {_points(row['upper'])}"
        differs = "[bold]differs[/bold]" if row["differs"] else ""
        names = escape(str(row["item"])), escape(str(row["level"]))
        table.add_row(*names, *shares, _points(row["difference"]), ends, differs)
    print_table(out, table)
    print_sentence(out, " ".join(filter(None, (comparison.sentence, comparison.note))))


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
    table = make_table(
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
    print_table(out, table)
    best = min(scores, key=lambda score: score.mse)
    out.print(
        f"Smallest error: [bold]{best.model}[/bold], {best.view}. "
        + (
            f"Means of {repeats} experiments; ± is one standard error."
            if repeats > 1
            else "One experiment; use --repeats to see how far chance moves it."
        )
    )
