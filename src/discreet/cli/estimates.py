"""Commands for results: estimate, compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.cli.group import (
    about_option,
    as_json,
    load_survey,
    main,
    options,
    print_json,
    question_option,
    refuse_overwrite,
    require_suffix,
    split_items,
    view_options,
)
from discreet.errors import DataError
from discreet.estimates.views import VIEWS
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.estimates.comparison import Comparison
    from discreet.policy import Policy
    from discreet.survey import Survey

_MOST_GROUPS = 20  # groups of which every two are compared

_result_options = options(
    click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="The confidence of the intervals.",
    ),
    about_option,
)


@main.command(epilog="Example:  discreet estimate survey.json tally.json -o est.csv --top 10")
@click.argument("survey")
@click.argument("tally")
@question_option
@click.option("-o", "--output", help="Write the table to this file (.csv, .parquet or .json).")
@click.option("--plot", help="Draw the top items into this file (.png or .svg).")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The number of items to show.",
)
@_result_options
@click.option(
    "--total",
    "totals",
    multiple=True,
    metavar="ITEM,…",
    help="Also the sum of these items, separated by commas. Repeatable.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Of reports: an estimate per value of this column. Repeatable.",
)
@click.option("--weights", metavar="COLUMN", help="Of reports: weight them by this column.")
@click.option(
    "--population",
    "populations",
    multiple=True,
    metavar="FILE",
    help="A CSV of the columns of --by and `people`: add the groups up so that each counts as "
    "often as it is in the population. Repeat it for margins.",
)
@view_options
@click.option(
    "--ranking",
    type=click.Choice(["posterior", "raw"]),
    default="posterior",
    show_default=True,
    help="How to rank the top items.",
)
@as_json
def estimate(
    survey: str,
    tally: str,
    question: str | None,
    output: str | None,
    plot: str | None,
    top: int,
    confidence: float,
    about: str,
    totals: tuple[str, ...],
    by: tuple[str, ...],
    weights: str | None,
    populations: tuple[str, ...],
    ranking: str,
    as_json: bool,
    **wanted: bool,
) -> None:
    """Turn TALLY into counts of people and shares, with intervals.

    TALLY is a tally, a folder of tallies by group, or files of reports to count first. With
    --question it can also be the folder that perturb, tally or export wrote for a survey. Counts
    are about the people who answered, and unbiased. Shares are about the population that these
    people were drawn from.
    """
    from discreet.arrays.grouped_tallies import group_name
    from discreet.cli.grouping import read_estimates
    from discreet.data.surveys import of_question
    from discreet.estimates import saving
    from discreet.show import terminal

    refuse_overwrite([output, plot], [survey, tally, *populations])
    whole = load_survey(survey)
    asked = whole.question(question)
    loaded = asked.mechanism
    require_suffix(output, ".csv", ".parquet", ".json")
    require_suffix(plot, ".png", ".svg")
    sums = {**_margins(whole, asked.name), **_sums(loaded.policy, totals)}
    views = [name for name in VIEWS if wanted[name]]
    counted = of_question(tally, whole, asked.name)
    columns, estimates, odd = read_estimates(loaded, counted, by, weights, populations)
    if plot and len(estimates) > 1:
        raise DataError("--plot draws one estimate; add the groups up with --population")
    if output:
        saving.save(estimates, output, columns, confidence, views, about, sums)
    documents = []
    for group, estimate in estimates.items():
        if plot:
            estimate.plot(plot, top, confidence, views[0] if views else None)
        rows = estimate.top(top, confidence, ranking, views, about)
        if as_json:
            named = {"group": dict(zip(columns, group, strict=True))} if columns else {}
            facts = saving.facts(estimate, rows, confidence, about, sums)
            documents.append({**named, **facts, "odd": odd})
            continue
        if columns:
            click.echo(click.style(group_name(group), bold=True))
        summed = saving.all_totals(estimate, confidence, about, sums).rows()
        terminal.estimate(estimate, rows, confidence, about, summed)
        if estimate.truncation_note:
            click.echo(estimate.truncation_note)
    if as_json:
        print_json({"groups": documents} if columns else documents[0])
        return
    for sentence in odd:
        click.echo(f"Odd: {sentence}; see docs/organiser.md on fake reports.")


@main.command(
    epilog="""Example:  discreet compare north.json south.json -m survey.json

    \b
    For every pair of groups:
      discreet tally survey.json reports.parquet --by region -o regions
      discreet compare regions"""
)
@click.argument("files", nargs=-1, metavar="TALLY TALLY | FOLDER")
@click.option(
    "-m",
    "--survey",
    "mechanisms",
    multiple=True,
    default=("survey.json",),
    show_default=True,
    help="The survey file that the tallies were made with. Repeat it if they were made with two.",
)
@_result_options
@click.option(
    "--top", type=click.IntRange(min=1), default=20, show_default=True, help="The number of rows."
)
@click.option("-o", "--output", help="Write the whole table to this file (.csv or .parquet).")
@click.option("--plot", help="Draw the largest differences into this file (.png or .svg).")
@as_json
def compare(
    files: tuple[str, ...],
    mechanisms: tuple[str, ...],
    confidence: float,
    about: str,
    top: int,
    output: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare the shares of two groups, of two dates, or of all groups in a folder.

    TALLY is a file of counts (.json) that `discreet tally` or `discreet export` wrote. FOLDER has 2
    to 20 of them, one for each group, as `discreet tally --by` writes them. All are about the same
    question.

    For two tallies, it shows the shares of the first minus those of the second, with intervals that
    hold for all items together. For a folder, it compares every pair of groups, with intervals that
    hold for all pairs together.
    """
    from discreet.estimates import saving
    from discreet.show import terminal

    require_suffix(output, ".csv", ".parquet")
    require_suffix(plot, ".png", ".svg")
    paths = _tallies(files)
    refuse_overwrite([output, plot], [*paths, *mechanisms])
    if plot and len(paths) > 2:
        raise DataError(
            "--plot draws the differences of two tallies; name them instead of a folder"
        )
    comparisons = _comparisons(paths, mechanisms, confidence, about)
    if output:
        saving.save_comparisons(comparisons, output, confidence, named=len(files) == 1)
    if plot:
        comparisons[0].plot(plot, top)
    documents = []
    for comparison in comparisons:
        rows = comparison.table().take(comparison.ranked[:top]).rows()
        n = dict(zip(comparison.names, (comparison.first.n, comparison.second.n), strict=True))
        facts = {"n": n, "confidence": confidence, "about": about, "sentence": comparison.sentence}
        documents.append({**facts, "note": comparison.note, "items": rows})
        if not as_json:
            terminal.comparison(comparison, rows)
    if as_json:
        print_json({"pairs": documents} if len(files) == 1 else documents[0])
    elif len(comparisons) > 1:
        click.echo(
            f"The intervals hold for all {len(comparisons)} pairs together with "
            f"{100 * confidence:g} %; that of one pair has a confidence of "
            f"{100 * comparisons[0].confidence:.4g} %."
        )


def _tallies(files: tuple[str, ...]) -> list[str]:
    """Two tallies, or those in a folder."""
    if not files:
        raise DataError(
            "compare needs two tallies or a folder of them: discreet compare north.json south.json"
        )
    if len(files) > 2:
        raise DataError(
            f"compare takes two tallies or one folder, not {len(files)} names; put the tallies "
            "into a folder and name the folder"
        )
    for path in files:
        if not Path(path).exists():
            raise DataError(f"{path} does not exist; name two tallies (.json) or a folder of them")
    if len(files) == 1:
        return _groups_in(*files)
    first, second = files
    for path in files:
        if Path(path).is_dir():
            raise DataError(f"{path} is a folder; name two tallies in it, or the folder alone")
    if os.path.realpath(first) == os.path.realpath(second):
        raise DataError(
            f"{first} and {second} are the same file; name the tallies of two groups or dates"
        )
    return [*files]


def _groups_in(folder: str) -> list[str]:
    """The tallies in a folder."""
    if not Path(folder).is_dir():
        raise DataError(
            f"{folder} is one file; name a second tally to compare it with, or a folder"
        )
    paths = sorted(map(str, Path(folder).glob("*.json")))
    if not 2 <= len(paths) <= _MOST_GROUPS:
        raise DataError(
            f"{folder} has {len(paths)} tallies (*.json) and must have from 2 to {_MOST_GROUPS}; "
            "`discreet tally --by` writes one for each group"
        )
    return paths


def _comparisons(
    paths: Sequence[str], mechanisms: Sequence[str], confidence: float, about: str
) -> list[Comparison]:
    """Every two of these tallies, such that the intervals of all pairs hold together
    (Bonferroni's inequality).
    """
    from discreet.arrays.weighted import load_tally

    loaded = [
        mechanism for path in mechanisms for mechanism in load_survey(path).questions.values()
    ]
    estimates = {path: load_tally(path, *loaded).estimate() for path in paths}
    pairs = [*combinations(paths, 2)]
    each = confidence if len(pairs) == 1 else 1 - (1 - confidence) / len(pairs)
    return [estimates[x].compare(estimates[y], each, _names(x, y), about) for x, y in pairs]


def _margins(survey: Survey, name: str) -> dict[str, list[int]]:
    """Of a crossed question, the places of the cells of every answer to its two questions."""
    index = survey.question(name).policy.index
    return {
        f"{question}: {answer}": [index[cell] for cell in cells]
        for question, answers in survey.margins(name).items()
        for answer, cells in answers.items()
    }


def _sums(policy: Policy, texts: tuple[str, ...]) -> dict[str, list[int]]:
    """The places of the items of every sum that was asked for, under a name made of theirs."""
    sums: dict[str, list[int]] = {}
    for items in (split_items(text, policy) for text in texts):
        name = " + ".join(items)
        if len({*items}) < len(items) or name in sums:
            raise DataError(f"--total {','.join(items)} names an item twice, or is given twice")
        if any(total.name == name for total in policy.totals):
            raise DataError(f"the policy has a total {quoted(name)} already; it is in the table")
        sums[name] = [policy.index[item] for item in items]
    return sums


def _names(a: str, b: str) -> tuple[str, str]:
    """What two files are called in a table."""
    first, second = Path(a).stem, Path(b).stem
    return (first, second) if first != second else (a, b)
