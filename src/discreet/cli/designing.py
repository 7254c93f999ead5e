"""Commands before anybody is asked: design, check, plan, simulate."""

from __future__ import annotations

import sys

import click

from discreet.cli.group import (
    apart,
    as_json,
    data_options,
    design_options,
    load_policy,
    load_prior,
    main,
    must_end,
    padding_option,
    print_json,
    prior_option,
    progress,
    steps,
    wishes,
    written_as,
)
from discreet.errors import short_fingerprint


@main.command(epilog="Example:  discreet design survey.toml -o mechanism.json")
@click.argument("policy")
@click.option("-o", "--output", help="Write the mechanism here.")
@padding_option
@design_options
@as_json
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

    apart([output], [policy])
    written_as(".json", "a mechanism is", output)
    loaded, shares = load_policy(policy), load_prior(prior)
    mechanism = design_(loaded, **wishes(model, shares, encoding, padding))
    if output:
        mechanism.save(output)
    facts = summary.describe(mechanism, shares)
    if as_json:
        print_json(facts)
        return
    show.mechanism(mechanism, facts)
    if output:
        click.echo(
            f"Wrote {output}, fingerprint {short_fingerprint(mechanism.fingerprint)}…; anyone can "
            f"verify it: discreet check {output}"
        )


@main.command(epilog="Example:  discreet check mechanism.json --policy survey.toml")
@click.argument("mechanism")
@click.option("--policy", help="Compare with this policy file and name every difference.")
@as_json
def check(mechanism: str, policy: str | None, as_json: bool) -> None:
    """Verify a MECHANISM file exactly; exit code 1 if its guarantee, fingerprint or policy is not
    what it should be.
    """
    from discreet.audit import audit

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
    "--users", type=click.IntRange(min=1), required=True, help="How many people will answer."
)
@click.option(
    "--target-error",
    type=float,
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
    help="For --padding auto: zipf (unless you say otherwise), or the sum of squared item shares.",
)
@click.option(
    "--objective",
    type=click.Choice(["mse", "shrunk", "relative"]),
    help="For --padding auto: the error of the counts (unless you say otherwise), of the shrunk "
    "ones, or of the top 20.",
)
@design_options
@as_json
def plan(
    policy: str,
    users: int,
    target_error: float | None,
    padding: str | None,
    sizes: str | None,
    popularity: str | None,
    objective: str | None,
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

    loaded, shares = load_policy(policy), load_prior(prior)
    known = read_shares(sizes, "sizes") if sizes else None
    length, choice = read_padding(
        loaded, users, padding, known, popularity, objective, model=model, prior=shares
    )
    chosen = design_(loaded, **wishes(model, shares, encoding, length))
    facts = summary.plan(loaded, users, shares, length, target_error, chosen)
    facts["padding_curve"] = choice.curve if choice else None
    facts["objective"] = choice.objective if choice else None
    if as_json:
        print_json(facts)
        return
    show.plan(facts)


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
    help="k of the top-k figures.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="For the same numbers again; simulation only."
)
@data_options
@click.option("--plot", help="Draw the comparison here (.png or .svg).")
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
    """Every model on your own DATA, before you collect: error, top-k figures and interval coverage,
    raw and post-processed.
    """
    from dataclasses import asdict

    from discreet import files, show
    from discreet.designs import alternatives
    from discreet.simulation import compare, joined

    must_end(plot, ".png", ".svg")
    loaded = load_policy(policy)
    models = alternatives(loaded, load_prior(prior), padding)
    with progress(f"Reading {data}", [data]) as advance:
        any_model = next(iter(models.values()))
        blocks = files.read_answers(data, any_model, column, user, advance, indices)
        answers = joined(blocks, loaded)
    scores = []
    with steps("Simulating", len(models)) as advance:
        for name, mechanism in models.items():
            scores += compare(answers, {name: mechanism}, k, repeats, seed, indices=True)
            advance(1)
    if plot:
        from discreet.plots import models as draw

        draw(scores, plot, f"{loaded.name}: {data}", k)
    if as_json:
        print_json({"k": k, "repeats": repeats, "scores": [asdict(score) for score in scores]})
    else:
        show.scores(scores, k, repeats)
