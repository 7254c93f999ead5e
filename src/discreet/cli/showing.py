"""Commands that show discreet at work: reproduce, demo."""

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
    for one in outcome.claims:
        click.echo(f"{one['verdict']:<21} {one['claim']}: {one['number']}")
    click.echo(
        f"Wrote {len(outcome.files)} files to {out}; claims.md has the sentences, margins and "
        f"notes. {outcome.provenance['note']}"
    )


@main.command(epilog="Example:  discreet demo")
@click.option("--no-serve", is_flag=True, help="End before the collector is started.")
def demo(no_serve: bool) -> None:
    """The whole flow on a health survey, then the paper's own five answers, then a live collector
    until Ctrl-C.
    """
    from discreet.demo import run

    run(serve=not no_serve)
