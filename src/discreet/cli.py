"""The command line: parse, call, print. Exit code 0, 1 (a check failed) or 2 (bad input, one sentence)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet import __version__
from discreet.errors import DataError, DesignError, DiscreetError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.mechanism import Mechanism
    from discreet.policy import Policy

MODEL_HELP = "auto, mixed, direct, opt0, opt1, opt2, rappor, oue or grr."


class _Group(click.Group):
    """Turns errors into one sentence on standard error and exit code 2, Ctrl-C into 130."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": True})
        except DiscreetError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("stopped; nothing was left half-written", err=True)
            sys.exit(130)
        except MemoryError:
            click.echo("error: not enough memory for this; use fewer items or smaller blocks", err=True)
            sys.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, "-V", "--version", prog_name="discreet")
def main() -> None:
    """Private counts that protect each answer as much as it needs."""


def _design_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--padding", type=int, help="Padding length, for set input."),
        click.option("--encoding", help="Of unary models: bits (default) or compact."),
        click.option("--prior", default="uniform", help="uniform, worst, level=share,…, or a CSV/JSON file of shares."),
        click.option("--model", default="auto", help=MODEL_HELP),
    ):
        command = option(command)
    return command


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


# ---- design -------------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet design survey.toml -o mechanism.json --model mixed")
@click.argument("policy")
@click.option("-o", "--output", help="Write the mechanism here.")
@_design_options
@_as_json
def design(
    policy: str, output: str | None, model: str, prior: str, encoding: str | None, padding: int | None, as_json: bool
) -> None:
    """Design a mechanism for POLICY: probabilities, guarantee, expected error."""
    from discreet import summary

    loaded, shares = _policy(policy), _prior(prior)
    mechanism = _designed(loaded, model, shares, encoding, padding)
    if output:
        mechanism.save(output)
    facts = summary.describe(mechanism, shares)
    if as_json:
        _print_json(facts)
        return
    console = _console()
    _show_mechanism(console, mechanism, facts)
    if output:
        console.print(f"Wrote {output}, fingerprint {mechanism.fingerprint[:16]}…; anyone can verify it: discreet check {output}")


def _designed(policy: Policy, model: str, prior: Any, encoding: str | None, padding: int | None) -> Mechanism:
    from discreet.designs import design

    return design(policy, model, prior=prior, encoding=encoding, padding=padding)


def _show_mechanism(console: Console, mechanism: Mechanism, facts: dict[str, Any]) -> None:
    answers = "single answers" if facts["input"] == "single" else f"sets of answers, padding {facts['padding']}"
    console.print(
        f"[bold]{facts['name']}[/bold]: {facts['items']:,} items in {facts['level_count']:,} levels, "
        f"{answers}, notion {facts['notion']}"
    )
    size = facts["report_bytes"]
    console.print(
        f"model [bold]{facts['model']}[/bold] at the {facts['prior']} prior; "
        f"a report has {size:,} byte{'s' if size != 1 else ''} ({facts['encoding']})"
    )
    if facts["certificate"]:
        console.print(f"{facts['certificate']['note']}{_gap(facts['certificate'])}")
    _show_probabilities(console, mechanism)
    best = facts["best_plain"]
    table = _table("level", "items", "epsilon", "promised factor", "variance / person", f"with {best}", "against plain LDP")
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
            row["level"], f"{row['items']:,}", row["epsilon"], f"{row['factor']:.4g}", f"{row['variance']:.4g}",
            f"{row['plain_variance'][best]:.4g}", verdict,
        )  # fmt: skip
    console.print(table)
    worse = [row["level"] for row in facts["levels"] if row["against_best_plain"] >= 1.005]
    if worse:
        console.print(
            f"[yellow]The gain of the other levels is paid by {', '.join(worse)}[/yellow]; a weight in the policy changes that."
        )
    table = _table("total MSE / n", "expected", "worst case")
    for name, total in facts["total_mse"].items():
        label = f"[bold]{name}[/bold]" if name == facts["model"] else f"{name} (plain LDP)"
        table.add_row(label, f"{total['expected']:.4g}", f"{total['worst_case']:.4g}")
    console.print(table)
    _show_guarantee(console, facts)


def _show_probabilities(console: Console, mechanism: Mechanism) -> None:
    policy = mechanism.policy
    if len(policy.levels) > 20:
        return
    if mechanism.matrix is not None:
        matrix, names = mechanism.matrix, [level.name for level in policy.levels]
        table = _table(
            "answer of level", "sent as itself", *(f"as a given other of {matrix_name}" for matrix_name in _group_names(mechanism))
        )
        for k, name in enumerate(names):
            c = matrix.groups[k]
            table.add_row(name, f"{matrix.D[c]:.5f}", *(f"{x:.5f}" if x else "–" for x in matrix.O[c]))
    else:
        table = _table("part", "share of people", *(f"{level.name} a / b" for level in policy.levels))
        for k, part in enumerate(mechanism.parts):
            table.add_row(str(k), f"{part.share:.4f}", *(f"{a:.5f} / {b:.5f}" for a, b in zip(part.a, part.b, strict=True)))
    console.print(table)


def _group_names(mechanism: Mechanism) -> list[str]:
    assert mechanism.matrix is not None
    groups = mechanism.matrix.groups
    names = [level.name for level in mechanism.policy.levels]
    return [", ".join(n for n, g in zip(names, groups, strict=True) if g == c) for c in range(max(groups) + 1)]


def _show_guarantee(console: Console, facts: dict[str, Any]) -> None:
    bound = facts["ldp_bound"]
    limit = "there is no bound" if bound is None else f"at most {bound:.4g} by the policy"
    console.print(f"Guarantee, checked exactly: plain LDP with epsilon {facts['ldp_epsilon']:.4g} ({limit}), and for each level:")
    for sentence in facts["promises"] or ["(too many levels to list; see --json or mechanism.guarantee().pairs)"]:
        console.print(f"  • {sentence}", highlight=False, soft_wrap=True)


def _gap(certificate: dict[str, Any]) -> str:
    if certificate["lower_bound"] is None:
        return ""
    return (
        f" ({certificate['objective']} {certificate['value']:.6g}, "
        f"proven lower bound {certificate['lower_bound']:.6g}, gap {certificate['gap']:.1e})"
    )


# ---- check --------------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet check mechanism.json --policy survey.toml")
@click.argument("mechanism")
@click.option("--policy", help="Compare with this policy file and name every difference.")
@_as_json
def check(mechanism: str, policy: str | None, as_json: bool) -> None:
    """Verify a MECHANISM file exactly; exit code 1 if its guarantee, fingerprint or policy is not what it should be."""
    from discreet.audit import audit

    findings = audit(mechanism, _policy(policy) if policy else None)
    if as_json:
        _print_json(
            {
                "holds": not findings.problems,
                "problems": findings.problems,
                "promises": findings.promises,
                "fingerprint": findings.fingerprint,
            }
        )
    else:
        for problem in findings.problems:
            click.echo(f"FAILED: {problem}")
        if not findings.problems:
            click.echo(f"OK: the guarantee holds exactly; fingerprint {findings.fingerprint}")
            for sentence in findings.promises:
                click.echo(f"  • {sentence}")
    if findings.problems:
        sys.exit(1)


# ---- plan ---------------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet plan survey.toml --users 100000 --target-error 0.005")
@click.argument("policy")
@click.option("--users", type=click.IntRange(min=1), required=True, help="How many people will answer.")
@click.option(
    "--target-error", type=click.FloatRange(min=0, min_open=True, max=1), help="A standard error, as a share of the users."
)
@_design_options
@_as_json
def plan(
    policy: str,
    users: int,
    target_error: float | None,
    model: str,
    prior: str,
    encoding: str | None,
    padding: int | None,
    as_json: bool,
) -> None:
    """Expected error per level and model, before anything is collected."""
    from discreet import summary

    loaded, shares = _policy(policy), _prior(prior)
    chosen = _designed(loaded, model, shares, encoding, padding)
    facts = summary.plan(loaded, users, shares, padding, target_error, chosen)
    if as_json:
        _print_json(facts)
        return
    console = _console()
    console.print(f"[bold]{facts['name']}[/bold]: what {users:,} people would tell, at the {facts['prior']} prior")
    heads = ["model", "level", "std. error (people)", "std. error (share)", "smallest share told from 0"]
    table = _table(*heads, *(["users for the target"] if target_error else []))
    last = None
    for row in facts["rows"]:
        name = row["model"] if row["model"] != last else ""
        last = row["model"]
        cells = [name, row["level"], f"{row['stderr_count']:,.1f}", f"{row['stderr_share']:.3%}", f"{row['smallest_share']:.3%}"]
        table.add_row(*cells, *([f"{row['users_for_target']:,}"] if target_error else []), end_section=False)
    console.print(table)
    gain = facts["gain"]
    compare = f"{gain:.1%} below" if gain >= 0 else f"{-gain:.1%} above"
    console.print(
        f"Best: [bold]{facts['best']}[/bold]; its total MSE is {compare} that of the best plain-LDP model, {facts['best_plain']}."
    )


# ---- perturb, tally, estimate ---------------------------------------------------------------------------


@main.command(epilog="Example:  discreet perturb mechanism.json answers.csv -o reports.parquet")
@click.argument("mechanism")
@click.argument("data")
@click.option("-o", "--output", required=True, help="Write the reports here (Parquet).")
@click.option("--column", default="item", show_default=True, help="Column of the items.")
@click.option("--user", default="user", show_default=True, help="Column of the users, for sets as user,item rows.")
@_as_json
def perturb(mechanism: str, data: str, output: str, column: str, user: str, as_json: bool) -> None:
    """Perturb the answers in DATA (CSV, Parquet, FIMI .dat; - is standard input) with secure randomness.

    For a pipeline on the participants' side: whoever runs it sees the answers.
    """
    from discreet import files

    loaded = _mechanism(mechanism)
    with _progress(f"Perturbing {data}", [data]) as advance:
        blocks = files.read_answers(data, loaded, column, user, advance)
        count = files.write_reports(output, loaded, (loaded.perturb_many(block) for block in blocks))
    if count == 0:
        raise DataError(f"{data} has no answers; {output} holds no report")
    facts = {"reports": count, "bytes_per_report": loaded.report_size, "output": output}
    _print_json(facts) if as_json else click.echo(f"Wrote {count:,} reports of {loaded.report_size:,} bytes to {output}.")


@main.command(epilog="Example:  discreet tally mechanism.json reports.parquet more/ -o tally.json")
@click.argument("mechanism")
@click.argument("reports", nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="Write the tally here (JSON).")
@_as_json
def tally(mechanism: str, reports: tuple[str, ...], output: str, as_json: bool) -> None:
    """Count the bits of REPORTS: Parquet files or folders of them, or tallies (.json) to add up."""
    from discreet import files
    from discreet.tally import Tally

    loaded = _mechanism(mechanism)
    total = Tally.empty(loaded)
    saved = [path for path in reports if path.endswith(".json")]
    for path in saved:
        total = total + Tally.load(path, loaded)
    paths = files.report_files(path for path in reports if path not in saved)
    with _progress("Counting reports", paths) as advance:
        for file in paths:
            for block in files.read_reports(file, loaded, advance):
                total = total + loaded.tally(block)
    total.save(output)
    facts = {"reports": total.n, "refused": dict(total.refused), "output": output}
    if as_json:
        _print_json(facts)
        return
    click.echo(f"Counted {total.n:,} reports into {output}.")
    for reason, count in total.refused.items():
        click.echo(f"Refused {count:,} that are not reports of this mechanism ({reason}).", err=True)


@main.command(epilog="Example:  discreet estimate mechanism.json tally.json -o est.csv --plot est.png --top 10")
@click.argument("mechanism")
@click.argument("tally")
@click.option("-o", "--output", help="Write the table here (.csv, .parquet or .json).")
@click.option("--plot", help="Draw the top items here (.png or .svg).")
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="How many items to show.")
@click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True, help="Of the intervals."
)
@_as_json
def estimate(mechanism: str, tally: str, output: str | None, plot: str | None, top: int, level: float, as_json: bool) -> None:
    """Turn TALLY into unbiased counts of people with standard errors and intervals."""
    from discreet.tally import Tally

    loaded = _mechanism(mechanism)
    found = Tally.load(tally, loaded).estimate()
    if output:
        found.save(output, level)
    if plot:
        found.plot(plot, top)
    rows = found.top(top, level)
    if as_json:
        _print_json({"n": found.n, "interval": level, "items": rows, "note": found.truncation_note})
        return
    console = _console()
    _show_estimate(console, found.n, rows, level)
    if found.truncation_note:
        console.print(found.truncation_note)


def _show_estimate(console: Console, n: int, rows: list[dict[str, Any]], level: float, truth: dict[str, int] | None = None) -> None:
    table = _table("item", "level", "people", "std. error", f"{level:.0%} interval", "share", *(["truth"] if truth else []))
    for row in rows:
        interval = f"{row['lower']:,.0f} to {row['upper']:,.0f}"
        cells = [row["item"], row["level"], f"{row['count']:,.0f}", f"{row['stderr']:,.0f}", interval, f"{row['share']:.2%}"]
        if truth:
            inside = row["lower"] <= truth[row["item"]] <= row["upper"]
            cells.append(f"{truth[row['item']]:,}" + ("" if inside else " [yellow](outside)[/yellow]"))
        table.add_row(*cells)
    console.print(f"{n:,} reports")
    console.print(table)


# ---- demo ---------------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet demo")
def demo() -> None:
    """The whole flow on a health survey, then the paper's own five answers."""
    from discreet.demo import run

    run(_console(), _show_mechanism, _show_estimate)


# ---- helpers ------------------------------------------------------------------------------------------


def _policy(path: str) -> Policy:
    from discreet.errors import PolicyError
    from discreet.policy import Policy

    if path != "-":
        return Policy.load(path)
    import tomllib
    from decimal import Decimal

    try:
        return Policy.from_document(tomllib.loads(sys.stdin.read(), parse_float=Decimal))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"standard input is not TOML: {error}") from None


def _mechanism(path: str) -> Mechanism:
    from discreet.mechanism import Mechanism

    return Mechanism.load(path)


@contextmanager
def _progress(label: str, paths: Iterable[Any]) -> Iterator[Callable[[int], None]]:
    """A bar over the bytes of the inputs, on a terminal, once the work takes over two seconds."""
    import time

    sizes = [Path(path).stat().st_size for path in paths if Path(path).is_file()]
    if not sys.stderr.isatty() or not sizes:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    began, bar = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task, done = bar.add_task(label, total=sum(sizes)), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if time.monotonic() - began > 2:
            bar.start()
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        bar.stop()


def _prior(text: str) -> Any:
    """uniform, worst, inline level=share pairs, or a file of shares."""
    if text in ("uniform", "worst"):
        return text
    path = Path(text)
    try:
        if path.suffix == ".json":
            return json.loads(path.read_text())
        if path.suffix == ".csv":
            rows = [line.rsplit(",", 1) for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
            return {name.strip(): float(share) for name, share in rows[1:]}
        return {name.strip(): float(share) for name, share in (pair.split("=") for pair in text.split(","))}
    except OSError as error:
        raise DesignError(f"prior {text} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DesignError(f'prior = "{text}" must be uniform, worst, level=share,… or a CSV/JSON file of shares') from None


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def _table(*heads: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for k, head in enumerate(heads):
        table.add_column(head, justify="left" if k == 0 else "right")
    return table


def _print_json(facts: Any) -> None:
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
