"""Commands on files of answers, reports and tallies: perturb, tally, estimate, compare."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from discreet.cli.group import (
    apart,
    as_json,
    data_options,
    engine_options,
    load_mechanism,
    main,
    must_end,
    print_json,
    progress,
    say,
    view_options,
    written_as,
)
from discreet.errors import DataError
from discreet.labels import how_many
from discreet.views import VIEWS


@main.command(epilog="Example:  discreet perturb mechanism.json answers.csv -o reports.parquet")
@click.argument("mechanism")
@click.argument("data")
@click.option(
    "-o", "--output", required=True, help="Write the reports here (Parquet; with Spark a folder)."
)
@data_options
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Write this column beside the reports, as it is, for tally --by; also several times.",
)
@engine_options
@as_json
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

    apart([output], [mechanism, data])
    loaded = load_mechanism(mechanism)
    kept = checked_keep(keep, column)
    written_as(".parquet", "reports are", output)
    if engine == "spark":
        from discreet.engines import spark

        count = spark.perturb_files(data, loaded, output, column, master, kept, indices)
    else:
        asked = files.Wanted(column, user, indices, tuple(kept))
        with progress(f"Perturbing {data}", [data]) as advance:
            people = files.read_people(data, loaded, asked, advance)
            blocks = (
                (loaded.perturb_many(some.block, indices=True), some.kept)
                for some in _some(people, data)
            )
            count = write_reports(output, loaded, blocks)
    facts = {"reports": count, "bytes_per_report": loaded.report_size, "output": output}
    written = f"Wrote {how_many(count)} of {loaded.report_size:,} bytes to {output}."
    say(as_json, facts, written)


@main.command(epilog="Example:  discreet tally mechanism.json reports.parquet more/ -o tally.json")
@click.argument("mechanism")
@click.argument("reports", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    help="Write the tally here (JSON); with --by a folder, one file per group.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="One tally per value of this column; several times: per combination of their values.",
)
@click.option(
    "--counted",
    is_flag=True,
    help="REPORTS are tables of report,count (Parquet or CSV), grouped by a database.",
)
@engine_options
@as_json
def tally(
    mechanism: str,
    reports: tuple[str, ...],
    output: str,
    by: tuple[str, ...],
    counted: bool,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Count REPORTS: Parquet files or folders of them, or tallies (.json) to add up."""
    from discreet.reports import columns_of, once, report_files, tally_files
    from discreet.tally import Tally, group_name, join, save_groups

    by = columns_of(by)
    saved = [path for path in reports if path.endswith(".json")]
    once(saved)
    apart([output], [mechanism, *(path for path in reports if path not in saved)])
    if not by:
        written_as(".json", "a tally is", output)
    loaded = load_mechanism(mechanism)
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
        apart([output], map(str, paths))
        with progress("Counting reports", paths) as advance:
            join(tallies, tally_files(paths, loaded, by, advance, counted))
    if by:
        save_groups(tallies, output)
    else:
        tallies[None].save(output)
    whole = sum(tallies.values(), Tally.empty(loaded))
    total, refused = whole.n, dict(whole.refused)
    if as_json:
        groups = {"groups": {group_name(group): t.n for group, t in tallies.items()}} if by else {}
        print_json({"reports": total, "refused": refused, "output": output, **groups})
        return
    click.echo(
        f"Counted {how_many(total)} into {output}"
        + (f", {len(tallies)} groups by {' and '.join(by)}." if by else ".")
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
@view_options
@click.option(
    "--ranking",
    type=click.Choice(["posterior", "raw"]),
    default="posterior",
    show_default=True,
    help="Of the top items.",
)
@as_json
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

    apart([output, plot], [mechanism, tally])
    loaded = load_mechanism(mechanism)
    must_end(output, ".csv", ".parquet", ".json")
    must_end(plot, ".png", ".svg")
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
        print_json({**facts, "note": found.truncation_note, "odd": odd})
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
@as_json
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
    apart([output, plot], [a, b, *mechanisms])
    must_end(output, ".csv", ".parquet")
    must_end(plot, ".png", ".svg")
    known = [load_mechanism(path) for path in mechanisms]
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
        print_json({**facts, "items": rows})
    else:
        show.comparison(found, rows)


def _names(a: str, b: str) -> tuple[str, str]:
    """What two files are called in a table."""
    first, second = Path(a).stem, Path(b).stem
    return (first, second) if first != second else (a, b)


def _some(blocks: Iterable[Any], data: str) -> Iterator[Any]:
    """The same blocks; raises at the end, before the output gets its name, if there were none."""
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise DataError(f"{data} has no answers, so there is nothing to perturb")
