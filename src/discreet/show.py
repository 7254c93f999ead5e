"""Tables for the terminal. What users wrote (names, labels) is escaped: it is text,
never markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from discreet.guarantee import in_words
from discreet.labels import how_many
from discreet.mechanism import Mechanism
from discreet.views import VIEWS

if TYPE_CHECKING:
    from discreet.comparison import Comparison


def console() -> Console:
    """The terminal; a fixed width where the output is a file or a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=140)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for k, head in enumerate(heads):
        table.add_column(escape(head), justify="left" if k == 0 else "right")
    return table


def mechanism(found: Mechanism, facts: dict[str, Any]) -> None:
    """A mechanism as `summary.describe` tells it."""
    out = console()
    sets = f"sets of answers, padding {facts['padding']}" + (", strict" if facts["strict"] else "")
    if facts["protect"] == "item":
        sets = "sets of answers, each protected on its own"
    answers = "single answers" if facts["input"] == "single" else sets
    out.print(
        f"[bold]{escape(facts['name'])}[/bold]: {facts['items']:,} items in "
        f"{facts['level_count']:,} levels, "
        f"{answers}, notion {facts['notion']}"
    )
    _warnings(out, facts)
    size = facts["report_bytes"]
    out.print(
        f"model [bold]{facts['model']}[/bold] at the {facts['prior']} prior; "
        f"a report has {size:,} byte{'s' if size != 1 else ''} ({facts['encoding']}: "
        f"{facts['encoding_told']})"
    )
    if facts["certificate"]:
        out.print(f"Its expected error: {escape(facts['certificate']['sentence'])}.")
    _probabilities(out, found)
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
        ratio = row["against_best_plain"]
        verdict = (
            f"{1 / ratio:.2f} x better"
            if ratio < 0.995
            else "the same"
            if ratio < 1.005
            else f"[yellow]{ratio:.2f} x worse[/yellow]"
        )
        table.add_row(
            escape(row["level"]),
            f"{row['items']:,}",
            row["epsilon"],
            in_words(row["factor"]),
            f"{row['variance']:.4g}",
            f"{row['plain_variance'][best]:.4g}",
            verdict,
        )
    out.print(table)
    worse = [row["level"] for row in facts["levels"] if row["against_best_plain"] >= 1.005]
    if worse and len(worse) < len(facts["levels"]):
        payers = escape(", ".join(worse))
        out.print(
            f"[yellow]The gain of the other levels is paid by {payers}[/yellow]; a weight in the "
            "policy changes that."
        )
    table = _table("total MSE / n", "expected", "worst case")
    for name, total in facts["total_mse"].items():
        label = f"[bold]{name}[/bold]" if name == facts["model"] else f"{name} (plain LDP)"
        table.add_row(label, f"{total['expected']:.4g}", f"{total['worst_case']:.4g}")
    out.print(table)
    _guarantee(out, facts)
    out.print(escape(facts["fake"]["sentence"]), soft_wrap=True)


def _warnings(out: Console, facts: dict[str, Any]) -> None:
    for sentence in facts["warnings"]:
        out.print(f"[yellow]Warning: {escape(sentence)}[/yellow]", soft_wrap=True)


def _probabilities(out: Console, found: Mechanism) -> None:
    from discreet.summary import MAX_ROWS

    policy = found.policy
    if len(policy.levels) > MAX_ROWS:
        return
    table = _table("part", *(f"{level.name}: part, own, other" for level in policy.levels))
    for k, part in enumerate(found.parts):
        cells = [
            f"{chance:.4f}, {own:.4f}, {other:.4f}" if own else f"{chance:.4f}, silent"
            for chance, own, other in zip(part.chance, part.own, part.other, strict=True)
        ]
        table.add_row(str(k), *cells)
    out.print(table)
    out.print(
        "An answer of a level uses a part with the first chance; the report then names it with the "
        "second, and any other item with the third."
    )


def _guarantee(out: Console, facts: dict[str, Any]) -> None:
    bound = facts["ldp_bound"]
    limit = "there is no bound" if bound is None else f"at most {bound:.4g} by the policy"
    overall = f"plain LDP with epsilon {facts['ldp_epsilon']:.4g} ({limit}), and"
    if facts["protect"] == "item":
        overall = "every item by its own budget, whole sets by no more than their sum;"
    out.print(f"Guarantee, checked exactly: {overall} for each level:")
    if facts["caution"]:
        out.print(f"[yellow]Warning: {escape(facts['caution'])}[/yellow]", soft_wrap=True)
    for sentence in facts["promises"] or [
        "(too many levels to list; see --json or mechanism.guarantee().pairs)"
    ]:
        out.print(f"  • {sentence}", markup=False, soft_wrap=True)


def plan(facts: dict[str, Any]) -> None:
    """A forecast as `summary.plan` tells it."""
    out = console()
    out.print(
        f"[bold]{escape(facts['name'])}[/bold]: what {facts['users']:,} people would tell, at the "
        f"{facts['prior']} prior"
    )
    _warnings(out, facts)
    heads = [
        "model",
        "level",
        "std. error (people)",
        "std. error (share)",
        "smallest share told from 0",
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
        table.add_row(
            *cells,
            *([f"{row['users_for_target']:,}"] if facts["target_error"] else []),
            end_section=False,
        )
    out.print(table)
    if facts.get("padding_curve"):
        curve = facts["padding_curve"]
        near = [
            f"{ell}: {value:,.4g}"
            for ell, value in curve.items()
            if abs(ell - facts["padding"]) <= 3
        ]
        what = {
            "mse": "MSE with undercounting",
            "shrunk": "MSE after shrinking, with undercounting",
            "relative": "relative error of the 20 most frequent items",
        }[facts["objective"]]
        out.print(
            f"Padding [bold]{facts['padding']}[/bold] has the smallest expected {what} "
            f"({', '.join(near)})."
        )
    gain = facts["gain"]
    compare = f"{gain:.1%} below" if gain >= 0 else f"{-gain:.1%} above"
    out.print(
        f"Chosen: [bold]{facts['best']}[/bold]; its total MSE is {compare} that of the best "
        f"plain-LDP model, {facts['best_plain']}."
    )
    if facts["certificate"]:
        out.print(f"Its expected error: {escape(facts['certificate']['sentence'])}.")
    out.print(escape(facts["fake"]["sentence"]))


def estimate(
    n: int, rows: list[dict[str, Any]], confidence: float, truth: dict[str, int] | None = None
) -> None:
    """Rows of an estimate, beside the truth where it is known."""
    out = console()
    more = [name for name in (*VIEWS, "in_top") if rows and name in rows[0]]
    heads = [
        *({"in_top": "in the top"}.get(name, name) for name in more),
        *(["truth"] if truth else []),
    ]
    table = _table(
        "item", "level", "people", "std. error", f"{confidence:.0%} interval", "share", *heads
    )
    for row in rows:
        cells = [
            escape(row["item"]),
            escape(row["level"]),
            _people(row["count"]),
            _people(row["stderr"]),
            f"{_people(row['lower'])} to {_people(row['upper'])}",
            _share(row["share"], 2),
        ]
        cells += [_share(row[name]) if name == "in_top" else _people(row[name]) for name in more]
        if truth:
            known = row["lower"] is not None
            inside = not known or row["lower"] <= truth[row["item"]] <= row["upper"]
            cells.append(
                f"{truth[row['item']]:,}" + ("" if inside else " [yellow](outside)[/yellow]")
            )
        table.add_row(*cells)
    out.print(f"{how_many(n)}")
    out.print(table)


def comparison(found: Comparison, rows: list[dict[str, Any]]) -> None:
    """The foremost differences, and what can be said."""
    out = console()
    first, second = found.names
    out.print(
        f"{escape(first)}: {how_many(found.first.n)}; {escape(second)}: {how_many(found.second.n)}"
    )
    trust = f"{found.confidence:.0%}, all items together"
    table = _table("item", "level", first, second, "difference", trust, "")
    for row in rows:
        shares = [_share(row[f"share_{name}"], 2) for name in found.names]
        ends = f"{100 * row['lower']:+.2f} to {100 * row['upper']:+.2f}"
        difference = "–" if row["difference"] is None else f"{100 * row['difference']:+.2f}"
        sure = "[bold]differs[/bold]" if row["differs"] else ""
        table.add_row(escape(row["item"]), escape(row["level"]), *shares, difference, ends, sure)
    out.print(table)
    out.print(escape(" ".join(filter(None, (found.sentence, found.note)))), soft_wrap=True)


def _people(count: float | None) -> str:
    return "–" if count is None else f"{count:,.0f}"


def _share(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{share:.{digits}%}"


def scores(found: Any, k: int, repeats: int) -> None:
    """Models compared on the user's data."""
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
    for score in found:
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
    out.print(table)
    best = min(found, key=lambda score: score.mse)
    out.print(
        f"Smallest error: [bold]{best.model}[/bold], {best.view}. "
        + (
            f"Means of {repeats} experiments; ± is one standard error."
            if repeats > 1
            else "One experiment; how far chance moves it is not known (--repeats)."
        )
    )
