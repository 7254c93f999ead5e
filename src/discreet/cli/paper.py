"""The command that repeats the paper's evaluation: reproduce."""

from __future__ import annotations

import click

from discreet.cli.group import (
    as_json,
    main,
    print_json,
    steps,
)


@main.command(epilog="Example:  discreet reproduce all --data data --out paper   (or: table2 fig3)")
@click.argument("names", nargs=-1, metavar="[all|table1|table2|table3|fig3|…|fig9]...")
@click.option(
    "--data",
    help="Folder with retail.dat, kosarak.dat and clothing_rated.dat (plain, .gz or .xz).",
)
@click.option(
    "--out", required=True, help="Folder for the figures, numbers, captions and verdicts."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=2020,
    show_default=True,
    help="The same seed gives the same numbers.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Experiments per point.  [default: 10, or 2 with --quick]",
)
@click.option("--quick", is_flag=True, help="Use fewer points and repeats; takes seconds.")
@click.option(
    "--through-reports",
    is_flag=True,
    help="Perturb, encode and tally every report, in both encodings. Slow, and without a seed.",
)
@as_json
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
    """Repeat the paper's evaluation.

    Makes its tables and figures, and judges whether each claim holds. table1, table2 and fig3 need
    no data.
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
        progress=steps,
    )
    if as_json:
        print_json(
            {
                "out": out,
                "files": outcome.files,
                "claims": outcome.claims,
                "run": outcome.provenance,
            }
        )
        return
    for claim in outcome.claims:
        click.echo(f"{claim['verdict']:<21} {claim['claim']}: {claim['number']}")
    click.echo(
        f"Wrote {len(outcome.files)} files to {out}; claims.md has the sentences, margins and "
        f"notes. {outcome.provenance['note']}"
    )
