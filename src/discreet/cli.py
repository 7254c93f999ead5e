"""The command line: parse, call, print. Exit code 0, 1 (a check failed) or 2 (bad input, one
sentence).
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet import __version__
from discreet.about import moment
from discreet.errors import DataError, DiscreetError
from discreet.labels import how_many
from discreet.views import VIEWS

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism
    from discreet.policy import Policy

MODEL_HELP = (
    "subset (the best possible, unless you say otherwise), hits (for sets, the default there), "
    'each (for sets with protect = "item"), opt0, opt1, opt2 (the paper\'s), rappor, oue, grr or '
    "ss (plain LDP)."
)

_NOT_PARQUET = (".csv", ".tsv", ".txt", ".json", ".dat", ".xlsx", ".arrow", ".gz", ".xz")


class _Group(click.Group):
    """Turns errors into one sentence on standard error and exit code 2, Ctrl-C into 130."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except DiscreetError as error:
            sentence = str(error)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except click.ClickException as error:
            hint = (
                f"; see {error.ctx.command_path} -h"
                if isinstance(error, click.UsageError) and error.ctx
                else ""
            )
            sentence = error.format_message().rstrip(".") + hint
        except MemoryError:
            sentence = "there is not enough memory for this"
        except BrokenPipeError:
            _say_no_more()
            sys.exit(0)
        except OSError as error:
            _say_no_more()
            sentence = f"the output cannot be written: {error.strerror or error}"
        except (KeyboardInterrupt, click.Abort):
            click.echo("stopped; nothing was left half-written", err=True)
            sys.exit(130)
        else:
            sys.exit(code if isinstance(code, int) else 0)
        click.echo(f"error: {' '.join(sentence.split())}", err=True)
        sys.exit(2)


def _say_no_more() -> None:
    """Nobody reads standard output, or it is full: what is still to be written goes nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(__version__, "-V", "--version", prog_name="discreet")
def main() -> None:
    """Private counts that protect each answer as much as it needs."""


def _apart(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Refuse an output that would replace what is read."""
    read = {os.path.realpath(path) for path in inputs if path and path != "-"}
    for path in outputs:
        if path and os.path.realpath(path) in read:
            raise DataError(f"{path} is also read; write to another file")


def _options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Options that several commands share, as one decorator."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_prior_option = click.option(
    "--prior",
    help="uniform (unless you say otherwise), worst, level=share,…, or a CSV/JSON file of shares.",
)
_padding_option = click.option("--padding", type=int, help="Padding length, for set input.")
_design_options = _options(
    click.option("--model", help=MODEL_HELP),
    _prior_option,
    click.option(
        "--encoding",
        help="bits, or ticket: 4 bytes, the default of subset for more than 1,000 items.",
    ),
)
_data_options = _options(
    click.option("--column", default="item", show_default=True, help="Column of the items."),
    click.option(
        "--user",
        default="user",
        show_default=True,
        help="Column of the users, for sets as user,item rows.",
    ),
    click.option(
        "--indices",
        is_flag=True,
        help="The items are indices (0 is the policy's first item); otherwise they are labels.",
    ),
)
_engine_options = _options(
    click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        show_default=True,
        help="Where it runs.",
    ),
    click.option(
        "--master",
        help="Spark master, such as local[4]; by default the one of your Spark configuration.",
    ),
)
_view_options = _options(
    *(click.option(f"--{name}", is_flag=True, help=f"Also {v.about}.") for name, v in VIEWS.items())
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


# ---- design --------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet design survey.toml -o mechanism.json")
@click.argument("policy")
@click.option("-o", "--output", help="Write the mechanism here.")
@_padding_option
@_design_options
@_as_json
def design(
    policy: str,
    output: str | None,
    model: str | None,
    prior: str | None,
    encoding: str | None,
    padding: int | None,
    as_json: bool,
) -> None:
    """Design a mechanism for POLICY: probabilities, guarantee, expected error."""
    from discreet import show, summary
    from discreet.designs import design as design_

    _apart([output], [policy])
    loaded, shares = _policy(policy), _prior(prior)
    mechanism = design_(loaded, **_wishes(model, shares, encoding, padding))
    if output:
        mechanism.save(output)
    facts = summary.describe(mechanism, shares)
    if as_json:
        _print_json(facts)
        return
    show.mechanism(mechanism, facts)
    if output:
        click.echo(
            f"Wrote {output}, fingerprint {mechanism.fingerprint[:16]}…; anyone can verify it: "
            f"discreet check {output}"
        )


def _wishes(
    model: str | None, prior: Any, encoding: str | None, padding: int | None
) -> dict[str, Any]:
    """What was asked of the design; the rest is as `design` has it."""
    said = {"model": model, "prior": prior, "encoding": encoding, "padding": padding}
    return {name: value for name, value in said.items() if value is not None}


# ---- check ---------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet check mechanism.json --policy survey.toml")
@click.argument("mechanism")
@click.option("--policy", help="Compare with this policy file and name every difference.")
@_as_json
def check(mechanism: str, policy: str | None, as_json: bool) -> None:
    """Verify a MECHANISM file exactly; exit code 1 if its guarantee, fingerprint or policy is not
    what it should be.
    """
    from discreet.audit import audit

    findings = audit(mechanism, _policy(policy) if policy else None)
    if as_json:
        _print_json(
            {
                "holds": not findings.problems,
                "problems": findings.problems,
                "promises": findings.promises,
                "certificate": findings.certificate,
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
            if findings.certificate:
                click.echo(f"Expected error, as the designer says: {findings.certificate}.")
    if findings.problems:
        sys.exit(1)


# ---- plan ----------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet plan survey.toml --users 100000 --target-error 0.005")
@click.argument("policy")
@click.option(
    "--users", type=click.IntRange(min=1), required=True, help="How many people will answer."
)
@click.option(
    "--target-error",
    type=click.FloatRange(min=0, min_open=True, max=1),
    help="A standard error, as a share of the users.",
)
@click.option(
    "--padding",
    help="Padding length, for set input; auto chooses it for --users people with --sizes.",
)
@click.option(
    "--sizes",
    help="For --padding auto: a CSV (size,share) or JSON file of the shares of people by set size.",
)
@click.option(
    "--popularity",
    default="zipf",
    help="For --padding auto: zipf, or the sum of squared item shares.",
)
@click.option(
    "--objective",
    type=click.Choice(["mse", "shrunk", "relative"]),
    default="mse",
    show_default=True,
    help="For --padding auto: the error of the counts, of the shrunk ones, or of the top 20.",
)
@_design_options
@_as_json
def plan(
    policy: str,
    users: int,
    target_error: float | None,
    padding: str | None,
    sizes: str | None,
    popularity: str,
    objective: str,
    model: str | None,
    prior: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Expected error per level and model, before anything is collected."""
    from discreet import show, summary
    from discreet.designs import design as design_
    from discreet.files import read_shares
    from discreet.padding import read_padding

    loaded, shares = _policy(policy), _prior(prior)
    known = read_shares(sizes, "sizes") if sizes else None
    length, choice = read_padding(loaded, users, padding, known, popularity, objective)
    chosen = design_(loaded, **_wishes(model, shares, encoding, length))
    facts = summary.plan(loaded, users, shares, length, target_error, chosen)
    facts["padding_curve"] = choice.curve if choice else None
    facts["objective"] = objective
    if as_json:
        _print_json(facts)
        return
    show.plan(facts)


# ---- perturb, tally, estimate --------------------------------------------------------------------


@main.command(epilog="Example:  discreet perturb mechanism.json answers.csv -o reports.parquet")
@click.argument("mechanism")
@click.argument("data")
@click.option(
    "-o", "--output", required=True, help="Write the reports here (Parquet; with Spark a folder)."
)
@_data_options
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Write this column beside the reports, as it is, for tally --by; also several times.",
)
@_engine_options
@_as_json
def perturb(
    mechanism: str,
    data: str,
    output: str,
    column: str,
    user: str,
    indices: bool,
    keep: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Perturb the answers in DATA (CSV, Parquet, FIMI .dat; - is standard input) with secure
    randomness.

    For a pipeline on the participants' side: whoever runs it sees the answers. With --engine spark
    DATA is a folder of Parquet.
    """
    from discreet import files
    from discreet.reports import checked_keep, write_reports

    _apart([output], [mechanism, data])
    loaded = _mechanism(mechanism)
    kept = checked_keep(keep, column)
    if Path(output).suffix.lower() in _NOT_PARQUET:
        raise DataError(f"{output}: reports are written as Parquet; name it ….parquet")
    if engine == "spark":
        from discreet.engines import spark

        count = spark.perturb_files(data, loaded, output, column, master, kept, indices)
    else:
        asked = files.Wanted(column, user, indices, tuple(kept))
        with _progress(f"Perturbing {data}", [data]) as advance:
            people = files.read_people(data, loaded, asked, advance)
            blocks = (
                (loaded.perturb_many(some.block, indices=True), some.kept)
                for some in _some(people, data)
            )
            count = write_reports(output, loaded, blocks)
    facts = {"reports": count, "bytes_per_report": loaded.report_size, "output": output}
    _print_json(facts) if as_json else click.echo(
        f"Wrote {how_many(count)} of {loaded.report_size:,} bytes to {output}."
    )


@main.command(epilog="Example:  discreet tally mechanism.json reports.parquet more/ -o tally.json")
@click.argument("mechanism")
@click.argument("reports", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    help="Write the tally here (JSON); with --by a folder, one file per group.",
)
@click.option("--by", help="One tally per value of this column, as one job.")
@click.option(
    "--counted",
    is_flag=True,
    help="REPORTS are tables of report,count (Parquet or CSV), grouped by a database.",
)
@_engine_options
@_as_json
def tally(
    mechanism: str,
    reports: tuple[str, ...],
    output: str,
    by: str | None,
    counted: bool,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Count REPORTS: Parquet files or folders of them, or tallies (.json) to add up."""
    from discreet.reports import once, report_files, tally_files
    from discreet.tally import Tally, join, save_groups

    saved = [path for path in reports if path.endswith(".json")]
    once(saved)
    _apart([output], [mechanism, *(path for path in reports if path not in saved)])
    loaded = _mechanism(mechanism)
    if saved and by:
        raise DataError("tallies cannot be split by a column; give files of reports")
    tallies: dict[Any, Tally] = {} if by else {None: Tally.empty(loaded)}
    for path in saved:
        join(tallies, {None: Tally.load(path, loaded)})
    rest = [path for path in reports if path not in saved]
    if counted and engine == "spark":
        raise DataError("--counted needs no engine: the reports are grouped already")
    if rest and engine == "spark":
        from discreet.engines import spark

        join(tallies, spark.tally_files(rest, loaded, by, master))
    elif rest:
        paths = report_files(rest, (".parquet", ".csv") if counted else (".parquet",))
        _apart([output], map(str, paths))
        with _progress("Counting reports", paths) as advance:
            join(tallies, tally_files(paths, loaded, by, advance, counted))
    if by:
        save_groups(tallies, output, by)
    else:
        tallies[None].save(output)
    whole = sum(tallies.values(), Tally.empty(loaded))
    total, refused = whole.n, dict(whole.refused)
    if as_json:
        groups = {"groups": {str(group): t.n for group, t in tallies.items()}} if by else {}
        _print_json({"reports": total, "refused": refused, "output": output, **groups})
        return
    click.echo(
        f"Counted {how_many(total)} into {output}"
        + (f", {len(tallies)} groups by {by}." if by else ".")
    )
    for reason, count in refused.items():
        click.echo(
            f"Refused {count:,} that are not reports of this mechanism ({reason}).", err=True
        )


_confidence = click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)


@main.command(epilog="Example:  discreet estimate mechanism.json tally.json -o est.csv --top 10")
@click.argument("mechanism")
@click.argument("tally")
@click.option("-o", "--output", help="Write the table here (.csv, .parquet or .json).")
@click.option("--plot", help="Draw the top items here (.png or .svg).")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many items to show.",
)
@_confidence
@_view_options
@click.option(
    "--ranking",
    type=click.Choice(["posterior", "raw"]),
    default="posterior",
    show_default=True,
    help="Of the top items.",
)
@_as_json
def estimate(
    mechanism: str,
    tally: str,
    output: str | None,
    plot: str | None,
    top: int,
    confidence: float,
    ranking: str,
    as_json: bool,
    **wanted: bool,
) -> None:
    """Turn TALLY into unbiased counts of people with standard errors and intervals."""
    from discreet import show
    from discreet.fakes import oddities
    from discreet.tally import Tally

    _apart([output, plot], [mechanism, tally])
    loaded = _mechanism(mechanism)
    for path, endings in ((output, (".csv", ".parquet", ".json")), (plot, (".png", ".svg"))):
        if path and not path.lower().endswith(endings):
            raise DataError(f"{path} must end in {', '.join(endings[:-1])} or {endings[-1]}")
    counted = Tally.load(tally, loaded)
    found, odd = counted.estimate(), oddities(counted)
    views = [name for name in VIEWS if wanted[name]]
    if output:
        found.save(output, confidence, views)
    if plot:
        found.plot(plot, top, confidence, views[0] if views else None)
    rows = found.top(top, confidence, ranking, views)
    if as_json:
        facts = {"n": found.n, "confidence": confidence, "items": rows}
        _print_json({**facts, "note": found.truncation_note, "odd": odd})
        return
    show.estimate(found.n, rows, confidence)
    for sentence in odd:
        click.echo(f"Odd: {sentence}; see docs/organiser.md on fake reports.")
    if found.truncation_note:
        click.echo(found.truncation_note)


@main.command(epilog="Example:  discreet compare 2025.json 2026.json -m mechanism.json")
@click.argument("a")
@click.argument("b")
@click.option(
    "-m",
    "--mechanism",
    "mechanisms",
    multiple=True,
    default=("mechanism.json",),
    show_default=True,
    help="The mechanism of the tallies; twice, where they have two.",
)
@_confidence
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Rows.")
@click.option("-o", "--output", help="Write the whole table here (.csv or .parquet).")
@click.option("--plot", help="Draw the foremost differences (.png or .svg); extra plot.")
@_as_json
def compare(
    a: str,
    b: str,
    mechanisms: tuple[str, ...],
    confidence: float,
    top: int,
    output: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """What differs between the tallies A and B, of two groups or two dates: shares of A minus
    shares of B, with intervals that hold for all items together.
    """
    from discreet import show
    from discreet.tally import Tally

    if os.path.realpath(a) == os.path.realpath(b):
        raise DataError(f"{a} and {b} are the same file; name the tallies of two groups or dates")
    _apart([output, plot], [a, b, *mechanisms])
    known = [_mechanism(path) for path in mechanisms]
    estimates = [Tally.load(path, *known).estimate() for path in (a, b)]
    names = _names(a, b)
    found = estimates[0].compare(estimates[1], confidence, names)
    if output:
        found.table().save(output)
    if plot:
        found.plot(plot, top)
    rows = found.table().take(found.ranked[:top]).rows()
    if as_json:
        n = dict(zip(names, (e.n for e in estimates), strict=True))
        facts = {"n": n, "confidence": confidence, "sentence": found.sentence, "note": found.note}
        _print_json({**facts, "items": rows})
    else:
        show.comparison(found, rows)


def _names(a: str, b: str) -> tuple[str, str]:
    """What two files are called in a table."""
    first, second = Path(a).stem, Path(b).stem
    return (first, second) if first != second else (a, b)


# ---- simulate ------------------------------------------------------------------------------------


@main.command(
    epilog="Example:  discreet simulate survey.toml answers.csv --repeats 20 --plot models.png"
)
@click.argument("policy")
@click.argument("data")
@_padding_option
@_prior_option
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Experiments per model.",
)
@click.option(
    "--top",
    "k",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="k of the top-k figures.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="For the same numbers again; simulation only."
)
@_data_options
@click.option("--plot", help="Draw the comparison here (.png or .svg).")
@_as_json
def simulate(
    policy: str,
    data: str,
    padding: int | None,
    prior: str | None,
    repeats: int,
    k: int,
    seed: int | None,
    column: str,
    user: str,
    indices: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Every model on your own DATA, before you collect: error, top-k figures and interval coverage,
    raw and post-processed.
    """
    from dataclasses import asdict

    from discreet import files, show
    from discreet.designs import alternatives
    from discreet.simulation import compare, joined

    loaded = _policy(policy)
    models = alternatives(loaded, _prior(prior), padding)
    with _progress(f"Reading {data}", [data]) as advance:
        any_model = next(iter(models.values()))
        blocks = files.read_answers(data, any_model, column, user, advance, indices)
        answers = joined(blocks, loaded)
    scores = []
    with _steps("Simulating", len(models)) as advance:
        for name, mechanism in models.items():
            scores += compare(answers, {name: mechanism}, k, repeats, seed, indices=True)
            advance(1)
    if plot:
        from discreet.plots import models as draw

        draw(scores, plot, f"{loaded.name}: {data}", k)
    if as_json:
        _print_json({"k": k, "repeats": repeats, "scores": [asdict(score) for score in scores]})
    else:
        show.scores(scores, k, repeats)


# ---- collector -----------------------------------------------------------------------------------

_store = click.option(
    "--store",
    envvar="DISCREET_STORE",
    default="discreet.sqlite",
    show_default=True,
    help="A file (SQLite) or postgresql://…",
)


@main.command(epilog="Example:  discreet serve survey.toml --port 8000")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@_store
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; put TLS in front of anything but loopback.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--public-url",
    envvar="DISCREET_PUBLIC_URL",
    help="The address that people open, such as https://survey.example.org; invitations have it, "
    "and pages asked for under another name lead there.",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes."
)
@click.option(
    "--keep",
    type=click.Choice(["counts", "reports"]),
    default="counts",
    show_default=True,
    help="What is stored.",
)
@click.option(
    "--open-results",
    is_flag=True,
    help="Anyone may see the estimates; otherwise the organiser's token is needed.",
)
@click.option(
    "--rehearse",
    type=click.IntRange(1, 1_000_000),
    metavar="PEOPLE",
    help="Try it out: so many simulated people answer a copy of the survey that is marked as a "
    "rehearsal, in a store of its own that is gone at the end (unless --store names one).",
)
@click.option(
    "--token-file",
    help="The organiser's token; by default DISCREET_TOKEN or discreet.token, made if need be.",
)
@_padding_option
@_design_options
def serve(
    files: tuple[str, ...],
    store: str,
    host: str,
    port: int,
    public_url: str | None,
    workers: int,
    keep: str,
    open_results: bool,
    rehearse: int | None,
    token_file: str | None,
    model: str | None,
    prior: str | None,
    encoding: str | None,
    padding: int | None,
) -> None:
    """Collect reports for every FILE, a mechanism or a policy, until Ctrl-C. Needs the extra
    "serve".
    """
    import tempfile
    import threading

    from discreet import rehearsal
    from discreet.designs import from_file
    from discreet.errors import MissingExtra

    try:
        from discreet.collector import address, server, tokens
        from discreet.collector.store import checked_name, open_store
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("discreet"):
            raise
        raise MissingExtra("the collector", "serve") from None
    known = address.public(public_url) if public_url else ""
    wishes = _wishes(model, prior and _prior(prior), encoding, padding)
    mechanisms = [from_file(path, **wishes) for path in files]
    if rehearse:
        mechanisms = [rehearsal.of(mechanism) for mechanism in mechanisms]
        context = click.get_current_context()
        source = context.get_parameter_source("store")
        if source is not click.core.ParameterSource.COMMANDLINE:  # no trace where real people are
            aside = tempfile.TemporaryDirectory(prefix="discreet-rehearsal-")
            store = f"{context.with_resource(aside)}/rehearsal.sqlite"
    for mechanism in mechanisms:
        checked_name(mechanism.policy.name)
    token = tokens.prepare(token_file)
    opened, states = open_store(store), {}
    try:
        for mechanism in mechanisms:
            states[mechanism.policy.name] = opened.create(mechanism, keep).state
            wrong = opened.problems(mechanism.policy.name, recount=False)
            if wrong:
                raise DataError(
                    f'the collection "{mechanism.policy.name}" is damaged: {wrong[0]}; see '
                    "discreet verify"
                )
    finally:
        opened.close()
    sock = server.listen(host, port)
    shown = "127.0.0.1" if address.is_any(host) else f"[{host}]" if ":" in host else host
    here = f"http://{shown}:{sock.getsockname()[1]}"
    base = known or here
    for mechanism in mechanisms:
        link = f"{base}/c/{_quoted(mechanism.policy.name)}"
        click.echo(
            f"{mechanism.policy.name}\n  invitation  {link}#{mechanism.fingerprint}\n  results    "
            f" {link}/results"
        )
        for key in ("opens", "closes"):
            if time := getattr(mechanism.policy.about, key):
                click.echo(f"  {key:<10}  {moment(time)}")
        if states[mechanism.policy.name] == "closed":
            click.echo("  It is closed: nobody can answer it any more.")
    if not open_results:
        click.echo(f"The organiser's token is in {token}.")
    if known:
        click.echo(f"Listening on {here}.")
    else:
        click.echo("These links are for this machine; --public-url makes ones that you can send.")
    if rehearse:
        click.echo(f"A rehearsal: {rehearse:,} simulated people arrive; nothing here is real.")
    click.echo("Collecting; stop with Ctrl-C.")
    sys.stdout.flush()
    for mechanism in mechanisms if rehearse else ():
        given = rehearsal.answers(mechanism.policy, rehearse or 0)
        people = sock.getsockname()[:2], mechanism, given
        threading.Thread(target=rehearsal.arrive, args=people, daemon=True).start()
    server.run(store, sock, workers, open_results, known)


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


@main.command(
    epilog="Example:  discreet export health-survey -o tally.json --mechanism mechanism.json"
)
@click.argument("name")
@_store
@click.option("-o", "--output", required=True, help="Write the tally here (JSON).")
@click.option("--mechanism", "mechanism_file", help="Also write the mechanism here.")
@click.option(
    "--reports",
    "reports_file",
    help="Also write the stored reports here (Parquet), where they were kept.",
)
@_as_json
def export(
    name: str,
    store: str,
    output: str,
    mechanism_file: str | None,
    reports_file: str | None,
    as_json: bool,
) -> None:
    """The tally of the collection NAME, as `discreet tally` would have made it. The files are for
    you alone to read.
    """
    _apart([output, mechanism_file, reports_file], [store])
    old = os.umask(0o077)
    try:
        with _opened(store) as opened, opened.snapshot(name) as (tally, blocks):
            if reports_file:
                from discreet.reports import write_reports

                write_reports(reports_file, tally.mechanism, blocks)
        tally.save(output)
        if mechanism_file:
            tally.mechanism.save(mechanism_file)
    finally:
        os.umask(old)
    if as_json:
        _print_json({"name": name, "n": tally.n, "fingerprint": tally.mechanism.fingerprint})
    else:
        click.echo(f"Wrote {output}: {how_many(tally.n)}")


@main.command(epilog="Example:  discreet verify --store discreet.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@_as_json
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Whether what a store holds of the collections NAME (or all) adds up: checksums, ids against
    counts, kept reports counted again; exit code 1 if not.

    What adds up may still be fake: ODD says what honest reports would hardly show (a false alarm at
    most once in 1,000 collections).
    """
    from discreet.fakes import oddities

    with _opened(store) as opened:
        listed = names or [collection.name for collection in opened.collections()]
        problems = {name: opened.problems(name) for name in listed}
        tallies = {name: opened.tally(name) for name in listed if not problems[name]}
        history = {name: opened.history(name) for name in listed}
    counted = {name: tally.n for name, tally in tallies.items()}
    odd = {name: oddities(tally) for name, tally in tallies.items()}
    if as_json:
        happened = {name: [e._asdict() for e in events] for name, events in history.items()}
        _print_json({"problems": problems, "reports": counted, "odd": odd, "history": happened})
    for name, wrong in problems.items() if not as_json else ():
        for problem in wrong:
            click.echo(f"FAILED {name}: {problem}")
        if not wrong:
            click.echo(f"OK {name}: {how_many(counted[name])}")
            for sentence in odd[name]:
                click.echo(f"ODD {name}: {sentence}")
        for event in history[name]:
            click.echo(f"   {name}: {event.what} {event.time}")
    if any(problems.values()):
        sys.exit(1)


@main.command(epilog="Example:  discreet backup -o 2026-11-16.sqlite")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@click.option("-o", "--output", required=True, help="Write the backup here, a new SQLite file.")
@_as_json
def backup(names: tuple[str, ...], store: str, output: str, as_json: bool) -> None:
    """Copy the collections NAME (or all), as they are at one moment, while reports may arrive.

    A plain copy of a store in use loses reports that were acknowledged. The backup is a store
    itself, without any trace of the order in which reports came.
    """
    from discreet.collector import copying

    with _opened(store) as opened, _steps("copying", _many(opened, names)) as advance:
        found = copying.backup(opened, output, names, advance)
    _say_copied(found, output, as_json)


@main.command(epilog="Example:  discreet restore 2026-11-16.sqlite --store discreet.sqlite")
@click.argument("backup")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@_as_json
def restore(backup: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Bring the collections NAME (or all) of the file BACKUP into a store that does not have
    them.
    """
    _into(backup, store, names, False, as_json)


@main.command(epilog="Example:  discreet move postgresql://db.example.org/surveys")
@click.argument("target")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_store
@_as_json
def move(target: str, names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Move the collections NAME (or all) to the store TARGET, a file or postgresql://…

    Where they were they are closed first, so that no report gets lost between the two.
    """
    _into(store, target, names, True, as_json)


def _into(source: str, target: str, names: tuple[str, ...], move: bool, as_json: bool) -> None:
    from discreet.collector import copying
    from discreet.collector.store import open_store, without_password

    if source == target or os.path.realpath(source) == os.path.realpath(target):
        raise DataError(f"{without_password(source)} and the store to copy to are the same")
    with _opened(source) as old:
        total, new = _many(old, names), open_store(target)
        try:
            with _steps("copying", total) as advance:
                found = (copying.move if move else copying.copy)(old, new, names, advance)
        finally:
            new.close()
    _say_copied(found, target, as_json)


def _many(store: Any, names: Iterable[str]) -> int:
    """The reports of these collections, or of all."""
    listed = names or [collection.name for collection in store.collections()]
    return sum(store.tally(name).n for name in listed)


def _say_copied(found: dict[str, int], where: str, as_json: bool) -> None:
    from discreet.collector.store import without_password

    if as_json:
        _print_json({"reports": found})
        return
    for name, n in found.items():
        click.echo(f"{name}: {how_many(n)} in {without_password(where)}, and it adds up.")


@main.command("close", epilog="Example:  discreet close health-survey")
@click.argument("name")
@_store
def close_(name: str, store: str) -> None:
    """Close the collection NAME: it takes no more reports, its counts stay."""
    with _opened(store) as opened:
        opened.close_collection(name)
        click.echo(f"{name} is closed with {how_many(opened.tally(name).n)}.")


@main.command(epilog="Example:  discreet reopen health-survey")
@click.argument("name")
@_store
def reopen(name: str, store: str) -> None:
    """Open the closed collection NAME again, as long as its end was shown to nobody."""
    with _opened(store) as opened:
        opened.reopen_collection(name)
        click.echo(f"{name} takes reports again; it has {opened.tally(name).n:,}.")


@main.command(epilog="Example:  discreet delete health-survey --store discreet.sqlite")
@click.argument("name")
@_store
@click.option("--yes", "-y", is_flag=True, help="Do not ask before it is deleted.")
def delete(name: str, store: str, yes: bool) -> None:
    """Delete the closed collection NAME for good: its ids, its tally, its reports.

    Backups, and what a database server or a disk keeps of its own, are not reached.
    """
    with _opened(store) as opened:
        opened.check_deletable(name)
        n = opened.tally(name).n
        if not yes and not sys.stdin.isatty():
            raise DataError(f'deleting "{name}" cannot be taken back; say --yes if it is meant')
        if not yes:
            click.confirm(f"Delete {name} with {how_many(n)}? It cannot be taken back", abort=True)
        opened.delete_collection(name)
    click.echo(f"{name} is deleted with {how_many(n)}.")


@main.command(epilog="Example:  discreet token --new")
@click.option("--new", is_flag=True, help="Replace it; a collector that runs takes the new one.")
@click.option(
    "--token-file",
    envvar="DISCREET_TOKEN_FILE",
    default="discreet.token",
    show_default=True,
    help="Where it is.",
)
def token(new: bool, token_file: str) -> None:
    """Say where the organiser's token is, or replace it: the old one opens nothing more."""
    from discreet.collector import tokens

    if os.environ.get("DISCREET_TOKEN"):
        if new:
            raise DataError(
                "the token is in the environment (DISCREET_TOKEN); change it there and start the "
                "collector again"
            )
        where = tokens.prepare(None)
    else:
        if new:
            tokens.renew(Path(token_file))
        where = tokens.prepare(token_file)
    click.echo(f"The organiser's {'new ' * new}token is in {where}.")


@contextmanager
def _opened(store: str) -> Iterator[Any]:
    from discreet.collector.store import open_store

    opened = open_store(store, create=False)
    try:
        yield opened
    finally:
        opened.close()


@main.command(epilog="Example:  discreet invite https://host/c/survey#FINGERPRINT -o poster.html")
@click.argument("url")
@click.option(
    "-o", "--output", multiple=True, help="Write the code (.png, .svg) or a page to print (.html)."
)
def invite(url: str, output: tuple[str, ...]) -> None:
    """The invitation URL as a QR code for phones, here and as files, once it was tried: the
    collection is there, open, and the one that the URL names. Needs the extra "serve".
    """
    from urllib.parse import urlsplit

    from discreet import invitations
    from discreet.client import Client, invitation
    from discreet.collector import address

    server, name, pinned = invitation(url)
    if pinned is None:
        raise DataError(
            "the invitation names no fingerprint, so people could be shown any question; use the "
            "whole link that serve prints"
        )
    address.public(server)
    found = Client(server, patience=5).collection(name, fingerprint=pinned)
    if found.state == "closed":
        raise DataError(f'"{name}" is closed; nobody can answer it')
    policy, promises = found.mechanism.policy, found.mechanism.guarantee().sentences()
    for path in output:
        title = policy.question or policy.name
        invitations.save(url, path, title, promises, policy.about.rows())
    click.echo(invitations.terminal(url), nl=False)
    click.echo(url)
    if address.is_here(urlsplit(server).hostname or ""):
        click.echo("This link is for this machine only; serve --public-url makes one for phones.")


@main.command(epilog="Example:  discreet page -o answer.html")
@click.option("-o", "--output", required=True, help="Write the page here.")
def page(output: str) -> None:
    """The participant's page as one static file, to be hosted anywhere; prints its SHA-256."""
    from discreet.collector.pages import answer_file, answer_hash
    from discreet.files import write_text

    write_text(output, answer_file().decode())
    click.echo(f"{answer_hash()}  {output}")


@main.command(epilog="Example:  discreet answer http://127.0.0.1:8000/c/health-survey#FINGERPRINT")
@click.argument("url")
@click.argument("items", nargs=-1, metavar="")
@click.option("--policy", help="Answer only if the collection's policy is this file's.")
@click.option(
    "--max-epsilon",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if no item's budget is above this.",
)
@click.option(
    "--agree", is_flag=True, help="Agree to the summed budget of questions about the same items."
)
@click.option(
    "--max-total",
    type=click.FloatRange(min=0, min_open=True),
    help="Answer only if the budgets of all you ever answered do not sum to more.",
)
@click.option("--question", is_flag=True, help="Only show the question, its promises and answers.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before sending.")
@_as_json
def answer(
    url: str,
    items: tuple[str, ...],
    policy: str | None,
    max_epsilon: float | None,
    agree: bool,
    max_total: float | None,
    question: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Answer at URL: the answer is asked for, verified and perturbed here, and the report is sent.

    The answer never stands on the command line, where other users and the shell's history could see
    it. A script gives it on standard input with --yes, one item per line; for a set, a line with -
    alone says that none applies. It stays in this process; only the perturbed report leaves it.
    What was sent is remembered in a ledger.
    """
    from discreet.client import Client, invitation

    if items:
        raise DataError(
            "an answer on the command line is seen by others and kept in the shell's history; "
            "leave it out, and you are asked for it"
        )
    server, name, pinned = invitation(url)
    client = Client(server, max_total=max_total)
    if _person() and pinned is None and policy is None:
        click.echo("The link names no fingerprint: any question could be behind it.", err=True)
    collection = client.collection(
        name,
        policy=_policy(policy) if policy else None,
        max_epsilon=max_epsilon,
        fingerprint=pinned,
    )
    asked = collection.mechanism.policy
    asks = _person()
    if question or asks:
        promises = collection.mechanism.guarantee().sentences()
        if as_json:
            shown = {"about": asked.about.to_canonical(), "state": collection.state}
            shown |= {"question": asked.question, "promises": promises, "items": list(asked.items)}
            _print_json(shown)
        else:
            for key, line in asked.about.rows():
                click.echo(f"{key}: {line}")
            click.echo("\n".join([asked.question, *(f"  • {promise}" for promise in promises)]))
            click.echo("\n".join(f"{k:>5}  {item}" for k, item in enumerate(asked.items, 1)))
        if question:
            return
    if collection.state != "open":
        opens = f"opens on {moment(asked.about.opens)}"
        told = opens if collection.state == "upcoming" else "is closed; it takes no more answers"
        raise DataError(f'"{name}" {told}')
    if not asks and not yes:
        raise DataError("standard input holds the answer, so nothing can be asked: say --yes")
    given = _ask(asked) if asks else _read_answer(asked)
    prepared = client.prepare(collection, given, agree=agree)
    if not yes and asked.takes_sets and not prepared.repeated:
        click.echo(collection.mechanism.guarantee().list_sentence(given))
    if not yes:
        click.echo(
            f"This report will be sent: {prepared.report.hex()}"
            + (" (drawn before, whatever you answer now)" if prepared.repeated else "")
        )
        click.confirm("Send it? It cannot be taken back", abort=True)
    receipt = client.send(prepared)
    if as_json:
        facts = {"accepted": receipt.accepted, "duplicates": receipt.duplicates}
        _print_json({**facts, "id": receipt.id.hex(), "report": receipt.report.hex()})
    else:
        click.echo(
            "Counted." if receipt.accepted else "It had been counted before; it is counted once."
        )


def _person() -> bool:
    """Whether someone sits there who can be asked."""
    return sys.stdin.isatty()


def _ask(policy: Policy) -> Any:
    """The answer, typed: a number of the list or a label; for a set one per line."""

    def one(text: str) -> str:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if text not in policy.index and 1 <= number <= policy.m:
            return policy.items[number - 1]
        return policy.items[policy.place(text)]

    if not policy.takes_sets:
        return one(str(click.prompt("Your answer, by number or in words")).strip())
    chosen: set[str] = set()
    ask = "One answer, by number or in words; nothing more to end; - if none applies"
    while text := str(click.prompt(ask, default="", show_default=False)).strip():
        if text == "-":
            return set()
        chosen.add(one(text))
    if not chosen:
        raise DataError("no answer was given; - says that none applies")
    return chosen


def _read_answer(policy: Policy) -> Any:
    """The answer on standard input: one item per line."""
    lines = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    if policy.takes_sets:
        if not lines:
            raise DataError("standard input is empty; a line with - alone says that none applies")
        return set() if lines == ["-"] else set(lines)
    if len(lines) != 1:
        raise DataError(f"this question takes one item, one line, got {len(lines)} lines")
    return lines[0]


# ---- reproduce -----------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet reproduce all --data data --out paper   (or: table2 fig3)")
@click.argument("names", nargs=-1, metavar="[all|table1|table2|table3|fig3|…|fig9]...")
@click.option(
    "--data", help="Folder of retail.dat, kosarak.dat and clothing_rated.dat (plain, .gz or .xz)."
)
@click.option(
    "--out", required=True, help="Folder for the figures, numbers, captions and verdicts."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=2020,
    show_default=True,
    help="For the same numbers again.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Experiments per point; by default 10, with --quick 2.",
)
@click.option("--quick", is_flag=True, help="Fewer points and repeats, in seconds.")
@click.option(
    "--through-reports",
    is_flag=True,
    help="Perturb, encode and tally every report, in both encodings (slow; no seed).",
)
@_as_json
def reproduce(
    names: tuple[str, ...],
    data: str | None,
    out: str,
    seed: int,
    repeats: int | None,
    quick: bool,
    through_reports: bool,
    as_json: bool,
) -> None:
    """Make the paper's tables and figures again, and say of each of its claims whether it holds.

    table1, table2 and fig3 need no data.
    """
    from discreet.paper.run import reproduce as run

    outcome = run(
        names,
        data,
        out,
        seed=seed,
        repeats=repeats,
        quick=quick,
        through_reports=through_reports,
        progress=_steps,
    )
    if as_json:
        _print_json(
            {
                "out": out,
                "files": outcome.files,
                "claims": outcome.claims,
                "run": outcome.provenance,
            }
        )
        return
    for one in outcome.claims:
        click.echo(f"{one['verdict']:<21} {one['claim']}: {one['number']}")
    click.echo(
        f"Wrote {len(outcome.files)} files to {out}; claims.md has the sentences, margins and "
        f"notes. {outcome.provenance['note']}"
    )


# ---- demo ----------------------------------------------------------------------------------------


@main.command(epilog="Example:  discreet demo")
@click.option("--no-serve", is_flag=True, help="End before the collector is started.")
def demo(no_serve: bool) -> None:
    """The whole flow on a health survey, then the paper's own five answers, then a live collector
    until Ctrl-C.
    """
    from discreet.demo import run

    run(serve=not no_serve)


# ---- helpers -------------------------------------------------------------------------------------


def _some(blocks: Iterable[Any], data: str) -> Iterator[Any]:
    """The same blocks; raises at the end, before the output gets its name, if there were none."""
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise DataError(f"{data} has no answers, so there is nothing to perturb")


def _policy(path: str) -> Policy:
    from discreet.policy import Policy

    return Policy.load(path)


def _mechanism(path: str) -> Mechanism:
    from discreet.mechanism import Mechanism

    return Mechanism.load(path)


def _progress(label: str, paths: Iterable[Any]) -> Any:
    """A bar over the bytes of the inputs."""
    return _steps(label, sum(Path(path).stat().st_size for path in paths if Path(path).is_file()))


@contextmanager
def _steps(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, once the work takes over two seconds."""
    import time

    if not sys.stderr.isatty() or not total:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    began, bar = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task, done = bar.add_task(label, total=total), 0

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


def _prior(text: str | None) -> Any:
    from discreet.designs.task import read_prior

    return read_prior(text or "uniform")


def _print_json(facts: Any) -> None:
    click.echo(json.dumps(_plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """For JSON: numpy numbers as Python's, null for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
