"""Commands for files of answers and reports: perturb, tally, scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.cli.group import (
    as_json,
    data_options,
    emit,
    engine_options,
    load_survey,
    main,
    print_json,
    progress,
    question_option,
    refuse_overwrite,
    refuse_wrong_suffix,
    require_suffix,
    split_items,
)
from discreet.errors import DataError
from discreet.policy.labels import how_many

if TYPE_CHECKING:
    from discreet.data.answers import Answers
    from discreet.data.counting import Tallies
    from discreet.mechanism import Mechanism
    from discreet.survey import Survey


@main.command(epilog="Example:  discreet perturb survey.json answers.csv -o reports.parquet")
@click.argument("survey")
@click.argument("data")
@click.option(
    "-o",
    "--output",
    required=True,
    help="Write the reports here: a Parquet file. With Spark, or if the survey has several "
    "questions, a folder.",
)
@data_options
@click.option(
    "--with-column",
    "columns",
    multiple=True,
    metavar="COLUMN",
    help="Also write this column, unchanged, for tally --by. Repeatable.",
)
@engine_options
@as_json
def perturb(
    survey: str,
    data: str,
    output: str,
    column: str,
    user: str,
    indices: bool,
    columns: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Perturb the answers in DATA with secure randomness.

    DATA is CSV, Parquet, FIMI .dat, or - for standard input. With --engine spark, it is a folder of
    Parquet. Run this on the participants' side, because it sees the answers.

    If the survey has several questions, or public ones, DATA needs a column for each of them. The
    command draws the questions for every person. OUTPUT is then a folder with a file per question,
    each in an order of its own.
    """
    from discreet.data.answers import ReadOptions, read_people
    from discreet.data.reports import check_with_columns, write_reports
    from discreet.data.surveys import is_simple

    refuse_overwrite([output], [survey, data])
    whole = load_survey(survey)
    if not is_simple(whole):
        if columns or indices:
            raise DataError(
                "--with-column and --indices are for a survey of one question; this one has a "
                "column for each of its questions, and keeps the public answers"
            )
        _perturb_survey(whole, data, output, engine, master, as_json)
        return
    loaded = whole.mechanism
    others = check_with_columns(columns, column)
    refuse_wrong_suffix(".parquet", "reports are", output)
    if engine == "spark":
        from discreet.data.engines import spark

        count = spark.perturb_files(data, loaded, output, column, master, others, indices)
    else:
        options = ReadOptions(column, user, indices, tuple(others))
        with progress(f"Perturbing {data}", [data]) as advance:
            people = read_people(data, loaded, options, advance)
            blocks = (
                (loaded.perturb_many(answers.block, indices=True), answers.with_columns)
                for answers in _refuse_empty(people, data)
            )
            count = write_reports(output, loaded, blocks)
    facts = {"reports": count, "bytes_per_report": loaded.report_size, "output": output}
    written = f"Wrote {how_many(count)} of {loaded.report_size:,} bytes to {output}."
    emit(as_json, facts, written)


def _perturb_survey(
    survey: Survey, data: str, output: str, engine: str, master: str | None, as_json: bool
) -> None:
    if engine == "spark":
        from discreet.data.engines import spark

        counts = spark.perturb_survey_files(data, survey, output, master)
    else:
        from discreet.data.survey_answers import perturb_survey

        with progress(f"Perturbing {data}", [data]) as advance:
            counts = perturb_survey(data, survey, output, advance)
    listed = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    emit(as_json, {"reports": counts, "output": output}, f"Wrote reports to {output} ({listed}).")


@main.command(epilog="Example:  discreet tally survey.json reports.parquet more/ -o tally.json")
@click.argument("survey")
@click.argument("reports", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    help="Write the tally here: a JSON file, or with --by a folder with a file per group.",
)
@question_option
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Make one tally per value of this column. Repeat it for combinations of values.",
)
@click.option(
    "--weights",
    metavar="COLUMN",
    help="Count every report with the weight in this column.",
)
@click.option(
    "--counted",
    is_flag=True,
    help="REPORTS are tables of report,count (Parquet or CSV) that a database grouped.",
)
@engine_options
@as_json
def tally(
    survey: str,
    reports: tuple[str, ...],
    output: str,
    question: str | None,
    by: tuple[str, ...],
    weights: str | None,
    counted: bool,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Count REPORTS into a tally.

    REPORTS are Parquet files, folders of them, or tallies (.json) to add up. If the survey has
    several questions, REPORTS is the folder that perturb wrote, and OUTPUT is a folder.
    """
    from discreet.arrays.grouped_tallies import add_by_group
    from discreet.arrays.tally import Tally
    from discreet.data.counting import as_columns
    from discreet.data.reports import refuse_duplicates
    from discreet.data.surveys import of_question

    by = as_columns(by)
    whole = load_survey(survey)
    if question is not None:
        whole.question(question)
        reports = tuple(of_question(path, whole, question) for path in reports)
    saved = [path for path in reports if path.endswith(".json")]
    refuse_duplicates(saved)
    refuse_overwrite([output], [survey, *(path for path in reports if path not in saved)])
    if question is None and len(whole.listed) > 1:
        if saved or weights or counted or len(reports) > 1:
            raise DataError(
                "a survey of several questions is counted from one folder of reports; name one of "
                "its questions with --question for anything else"
            )
        _tally_survey(whole, reports[0], output, by, engine, master, as_json)
        return
    if not by:
        refuse_wrong_suffix(".json", "a tally is", output)
    loaded = whole.question(question).mechanism
    if weights is not None:
        if saved or by or counted or engine == "spark":
            raise DataError(
                "--weights counts files of reports on this machine into one tally: without --by, "
                "--counted, --engine spark and tallies"
            )
        _tally_weighted(loaded, reports, output, weights, as_json)
        return
    if saved and by:
        raise DataError("tallies cannot be split by a column; give files of reports")
    rest = [path for path in reports if path not in saved]
    if counted and engine == "spark":
        raise DataError("--counted needs no engine: the reports are already grouped")
    if rest and engine == "spark":
        from discreet.data.engines import spark

        tallies = spark.tally_files(rest, loaded, by, master)
    else:
        tallies = _count_here(loaded, rest, by, counted, output)
    for path in saved:
        saved_tally: Tallies = {None: Tally.load(path, loaded)}
        add_by_group(tallies, saved_tally)
    _save(tallies, loaded, by, output, as_json)


def _count_here(
    mechanism: Mechanism, paths: list[str], by: tuple[str, ...], counted: bool, output: str
) -> Tallies:
    from discreet.data.counting import tally_files
    from discreet.data.reports import report_files

    files = report_files(paths, (".parquet", ".csv") if counted else (".parquet",))
    refuse_overwrite([output], map(str, files))
    with progress("Counting reports", files) as advance:
        return tally_files(files, mechanism, by, advance, counted)


def _save(
    tallies: Tallies, mechanism: Mechanism, by: tuple[str, ...], output: str, as_json: bool
) -> None:
    """Write the tallies, and say how many reports were counted and refused."""
    from discreet.arrays.grouped_tallies import group_name, save_groups
    from discreet.arrays.tally import Tally

    if by:
        save_groups(tallies, output)
    else:
        tallies[None].save(output)
    added = sum(tallies.values(), Tally.empty(mechanism))
    total, refused = added.n, dict(added.refused)
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


def _tally_survey(
    survey: Survey,
    folder: str,
    output: str,
    by: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    from discreet.data.counting import tally_files
    from discreet.data.surveys import save_survey_tallies, tally_survey

    def count(files: list[str], mechanism: Mechanism, by: tuple[str, ...]) -> Tallies:
        if engine == "spark":
            from discreet.data.engines import spark

            return spark.tally_files(files, mechanism, by, master)
        with progress("Counting reports", files) as advance:
            return tally_files(map(Path, files), mechanism, by or None, advance)

    counted = tally_survey(folder, survey, by, count)
    save_survey_tallies(counted, output)
    totals = {name: sum(t.n for t in tallies.values()) for name, tallies in counted.items()}
    listed = ", ".join(f"{name}: {count:,}" for name, count in totals.items())
    emit(as_json, {"reports": totals, "output": output}, f"Counted into {output} ({listed}).")


def _tally_weighted(
    mechanism: Mechanism, reports: tuple[str, ...], output: str, column: str, as_json: bool
) -> None:
    from discreet.data.reports import report_files
    from discreet.data.weights import tally_weighted

    paths = report_files(reports)
    refuse_overwrite([output], map(str, paths))
    with progress("Counting reports", paths) as advance:
        tally = tally_weighted(paths, mechanism, column, None, advance)[None]
    tally.save(output)
    facts = {"reports": tally.n, "effective": round(tally.effective_n, 1), "output": output}
    sentence = (
        f"Counted {how_many(tally.n)} by weight into {output}; as good as "
        f"{tally.effective_n:,.0f} of equal weight."
    )
    emit(as_json, {**facts, "refused": dict(tally.squares.refused)}, sentence)


@main.command(epilog="Example:  discreet scores survey.json reports.parquet -o scores.parquet")
@click.argument("survey")
@click.argument("reports", nargs=-1, required=True)
@question_option
@click.option("-o", "--output", required=True, help="Write the scores here: a Parquet file.")
@click.option(
    "--items", metavar="ITEM,…", help="Only these items, separated by commas.  [default: all]"
)
@click.option(
    "--with-column",
    "columns",
    multiple=True,
    metavar="COLUMN",
    help="Also write this column of the reports, unchanged. Repeatable.",
)
@as_json
def scores(
    survey: str,
    reports: tuple[str, ...],
    question: str | None,
    output: str,
    items: str | None,
    columns: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write what each of the REPORTS adds to the estimate of each item.

    A column per item, a row per report; the sum of a column is the item's estimate. With them, any
    tool can weight, group and regress.
    """
    from discreet.data.reports import report_files
    from discreet.data.scores import write_scores
    from discreet.data.surveys import of_question

    refuse_overwrite([output], [survey, *reports])
    require_suffix(output, ".parquet")
    whole = load_survey(survey)
    asked = whole.question(question)
    loaded = asked.mechanism
    paths = report_files([of_question(path, whole, asked.name) for path in reports])
    refuse_overwrite([output], map(str, paths))
    chosen = None if items is None else split_items(items, loaded.policy)
    with progress("Scoring reports", paths) as advance:
        scored = write_scores(paths, loaded, output, chosen, columns, advance)
    sentence = f"Wrote the scores of {how_many(scored.reports)} to {output}."
    emit(as_json, {**scored._asdict(), "output": output}, sentence)
    if scored.refused and not as_json:
        click.echo(f"Refused {scored.refused:,} that are not reports of this mechanism.", err=True)


def _refuse_empty(blocks: Iterable[Answers], data: str) -> Iterator[Answers]:
    """Pass the blocks on; raise at the end, before the output gets its name, if there were none."""
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise DataError(f"{data} has no answers, so there is nothing to perturb")
