"""Commands for before you collect: design, check, plan, simulate."""

from __future__ import annotations

import sys

import click

from discreet.cli.group import (
    as_json,
    data_options,
    design_options,
    given_options,
    load_policy,
    load_prior,
    main,
    padding_option,
    print_json,
    prior_option,
    progress,
    refuse_overwrite,
    refuse_wrong_suffix,
    require_suffix,
    steps,
)
from discreet.errors import DesignError, short_fingerprint


@main.command(epilog="Example:  discreet design survey.toml -o mechanism.json")
@click.argument("policy")
@click.option("-o", "--output", help="Write the mechanism to this file.")
@click.option("--certify", is_flag=True, help="Prove how good it is, even if that takes minutes.")
@padding_option
@design_options
@as_json
def design(
    policy: str,
    output: str | None,
    certify: bool,
    model: str | None,
    prior: str | None,
    encoding: str | None,
    padding: int | None,
    as_json: bool,
) -> None:
    """Design a mechanism for the file POLICY.

    Shows its probabilities, guarantee and expected error.
    """
    from discreet.designs import design as design_
    from discreet.show import facts, terminal

    refuse_overwrite([output], [policy])
    refuse_wrong_suffix(".json", "a mechanism is", output)
    loaded, shares = load_policy(policy), load_prior(prior)
    options = given_options(model, shares, encoding, padding)
    options["certify"] = certify
    mechanism = design_(loaded, **options)
    if output:
        mechanism.save(output)
    described = facts.describe(mechanism, shares)
    if as_json:
        print_json(described)
        return
    terminal.mechanism(mechanism, described)
    if output:
        click.echo(
            f"Wrote {output}, fingerprint {short_fingerprint(mechanism.fingerprint)}…\n"
            f"Anyone can verify it: discreet check {output}"
        )


@main.command(epilog="Example:  discreet check mechanism.json --policy survey.toml")
@click.argument("mechanism")
@click.option("--policy", help="Compare with this policy file, and list every difference.")
@as_json
def check(mechanism: str, policy: str | None, as_json: bool) -> None:
    """Verify the file MECHANISM exactly.

    The exit code is 1 if its guarantee, fingerprint or policy is wrong.
    """
    from discreet.promises.audit import audit

    findings = audit(mechanism, load_policy(policy) if policy else None)
    if as_json:
        print_json(
            {
                "holds": not findings.problems,
                "problems": findings.problems,
                "caution": findings.caution,
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
            if findings.caution:
                click.echo(f"Warning: {findings.caution}")
            for sentence in findings.promises:
                click.echo(f"  • {sentence}")
            if findings.certificate:
                click.echo(f"Expected error, as the designer says: {findings.certificate}.")
    if findings.problems:
        sys.exit(1)


@main.command(epilog="Example:  discreet plan survey.toml --users 100000 --target-error 0.005")
@click.argument("policy")
@click.option(
    "--users",
    type=click.IntRange(min=1),
    required=True,
    help="The number of people who will answer.",
)
@click.option(
    "--target-error",
    type=float,
    help="The standard error that you want, as a share of the users.",
)
@click.option(
    "--solve",
    type=click.Choice(["epsilon"]),
    help="Find the budgets that --target-error needs: those of the policy, all multiplied by one "
    "number.",
)
@click.option(
    "--padding",
    help="For sets: the padding length, or auto to choose it for --users people with --sizes.",
)
@click.option(
    "--sizes",
    help="For --padding auto: a CSV (size,share) or JSON file with the share of people per set "
    "size.",
)
@click.option(
    "--popularity",
    help="For --padding auto: zipf (default), or the sum of squared item shares.",
)
@click.option(
    "--objective",
    type=click.Choice(["mse", "shrunk", "relative"]),
    help="For --padding auto: minimise the error of the counts (default), of the shrunk counts, or "
    "of the top 20.",
)
@design_options
@as_json
def plan(
    policy: str,
    users: int,
    target_error: float | None,
    solve: str | None,
    padding: str | None,
    sizes: str | None,
    popularity: str | None,
    objective: str | None,
    model: str | None,
    prior: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Say what so many people will show, and forecast the error per level and model."""
    from discreet.data.files import read_shares
    from discreet.designs import design as design_
    from discreet.estimates.padding import read_padding
    from discreet.show import facts, terminal
    from discreet.show.outlook import solve_budgets

    loaded, shares = load_policy(policy), load_prior(prior)
    solved = None
    if solve:
        if target_error is None:
            raise DesignError("--solve epsilon needs --target-error, such as 0.01")
        if padding and not padding.isdecimal():
            raise DesignError(f'--solve epsilon needs --padding as a number, got "{padding}"')
        options = given_options(model, shares, encoding, int(padding) if padding else None)
        solved = loaded = solve_budgets(loaded, users, target_error, **options)
    size_shares = read_shares(sizes, "sizes") if sizes else None
    length, choice = read_padding(
        loaded, users, padding, size_shares, popularity, objective, model=model, prior=shares
    )
    chosen = design_(loaded, **given_options(model, shares, encoding, length))
    planned = facts.plan(loaded, users, shares, length, target_error, chosen)
    planned["padding_curve"] = choice.curve if choice else None
    planned["objective"] = choice.objective if choice else None
    budgets = {level.name: level.budget.text for level in solved.levels} if solved else {}
    if as_json:
        print_json({**planned, "solved": budgets} if solved else {**planned})
        return
    if solved:
        named = ", ".join(f"{name}: {epsilon}" for name, epsilon in budgets.items())
        click.echo(f"Budgets for a standard error of {target_error:g} at every level: {named}.")
    terminal.plan(planned)


@main.command(
    epilog="Example:  discreet simulate survey.toml answers.csv --repeats 20 --plot models.png"
)
@click.argument("policy")
@click.argument("data")
@padding_option
@prior_option
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
    help="The k of the top-k figures.",
)
@click.option("--seed", type=click.IntRange(min=0), help="The same seed gives the same numbers.")
@data_options
@click.option("--plot", help="Draw the comparison into this file (.png or .svg).")
@as_json
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
    """Try every model on your own DATA, before you collect.

    Shows the error, top-k figures and the coverage of the intervals, raw and post-processed.
    """
    from dataclasses import asdict

    from discreet.data.answers import read_answers
    from discreet.designs import alternatives
    from discreet.estimates.simulation import compare, join_blocks
    from discreet.show import terminal

    require_suffix(plot, ".png", ".svg")
    loaded = load_policy(policy)
    models = alternatives(loaded, load_prior(prior), padding)
    with progress(f"Reading {data}", [data]) as advance:
        any_model = next(iter(models.values()))
        blocks = read_answers(data, any_model, column, user, advance, indices)
        answers = join_blocks(blocks, loaded)
    scores = []
    with steps("Simulating", len(models)) as advance:
        for name, mechanism in models.items():
            scores += compare(answers, {name: mechanism}, k, repeats, seed, indices=True)
            advance(1)
    if plot:
        from discreet.show.plots import models as draw

        draw(scores, plot, f"{loaded.name}: {data}", k)
    if as_json:
        print_json({"k": k, "repeats": repeats, "scores": [asdict(score) for score in scores]})
    else:
        terminal.scores(scores, k, repeats)
