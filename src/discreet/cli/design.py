"""Commands for before you collect: design, check, plan, simulate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from discreet.cli.group import (
    about_option,
    as_json,
    data_options,
    design_options,
    given_options,
    goal_option,
    load_policy,
    load_prior,
    main,
    padding_option,
    print_json,
    prior_option,
    progress,
    question_option,
    refuse_overwrite,
    refuse_wrong_suffix,
    require_suffix,
    steps,
    working,
)
from discreet.cli.planning import plan_survey
from discreet.errors import DesignError, short_fingerprint

if TYPE_CHECKING:
    from discreet.arrays.types import Prior
    from discreet.designs.task import DesignOptions
    from discreet.show.shapes import MechanismFacts
    from discreet.survey import Survey
    from discreet.survey.reading import SurveyFile


@main.command(epilog="Example:  discreet design survey.toml -o survey.json")
@click.argument("survey")
@click.option("-o", "--output", help="Write the designed survey to this file.")
@click.option(
    "--certify",
    is_flag=True,
    help="Prove how close the design is to the best possible, even if that takes minutes.",
)
@padding_option
@design_options
@as_json
def design(
    survey: str,
    output: str | None,
    certify: bool,
    model: str | None,
    prior: str | None,
    goal: str | None,
    encoding: str | None,
    padding: int | None,
    as_json: bool,
) -> None:
    """Design the mechanisms of the questions in the file SURVEY.

    Shows their probabilities, guarantees and expected errors.
    """
    from discreet.designs.proofs import save_proofs
    from discreet.designs.surveys import design_survey, read_draft
    from discreet.show import facts, surveys, terminal

    refuse_overwrite([output], [survey])
    refuse_wrong_suffix(".json", "a survey is", output)
    shares = load_prior(prior)
    options = given_options(model, shares, encoding, padding, goal)
    options["certify"] = certify
    draft = read_draft(survey)
    proofs = None
    with working("Searching for the best mechanism …"):
        made = design_survey(draft, **options)
        described = _describe(draft, made, shares, options)
        if output:
            made.save(output)
            proofs = save_proofs(made, output)
    if as_json:
        whole = facts.describe_survey(made)
        asked = [{"question": q.name, **d} for q, d in zip(made.listed, described, strict=True)]
        print_json({**described[0], **whole} if len(asked) == 1 else {**whole, "asked": asked})
        return
    if len(made.listed) > 1:
        surveys.survey(made, facts.describe_survey(made)["published"])
    elif made.public:
        surveys.groups(made)
    for question, each in zip(made.listed, described, strict=True):
        if len(made.listed) > 1:
            click.echo()
        terminal.mechanism(question.mechanism, each)
    if output:
        click.echo(
            f"Wrote {output}, fingerprint {short_fingerprint(made.fingerprint)}…\n"
            f"Anyone can verify it: discreet check {output}"
            + (f" --proof {proofs}" if proofs else "")
        )


def _describe(
    draft: SurveyFile, made: Survey, shares: Prior, options: DesignOptions
) -> list[MechanismFacts]:
    """The facts of every question, with what each goal would come to."""
    from discreet.show import facts

    described = []
    for question in made.listed:
        several = len(made.listed) > 1
        told = facts.describe(question.mechanism, shares, question.name if several else made.name)
        policy = draft.policies[question.name].divided(made.answers)
        if several:
            told["published"] = ""  # the survey's sentence speaks of all questions together
        told["goals"] = facts.compare_goals(policy, question.mechanism, options)
        described.append(told)
    return described


@main.command(epilog="Example:  discreet check survey.json --policy survey.toml")
@click.argument("survey")
@click.option("--policy", help="Compare with the survey in this file, and list every difference.")
@click.option("--proof", help="Verify the lower bounds too, from what design --certify wrote.")
@as_json
def check(survey: str, policy: str | None, proof: str | None, as_json: bool) -> None:
    """Verify the file SURVEY, or a mechanism, exactly.

    The exit code is 1 if a guarantee, the fingerprint, the policy or a proof is wrong.
    """
    from discreet.survey.audit import audit

    findings = audit(survey, policy)
    proved = []
    if proof and not findings.problems:
        from discreet.designs.proofs import verify_proofs

        proved = verify_proofs(survey, proof, findings.problems)
    if as_json:
        print_json(
            {
                "holds": not findings.problems,
                "problems": findings.problems,
                "caution": findings.caution,
                "promises": findings.promises,
                "certificate": findings.certificate,
                "proved": proved,
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
            for sentence in proved:
                click.echo(f"Proved again: {sentence}")
    if findings.problems:
        sys.exit(1)


@main.command(epilog="Example:  discreet plan survey.toml --users 100000 --target-error 0.005")
@click.argument("survey")
@question_option
@click.option(
    "--users",
    type=click.IntRange(1, 10**15),
    required=True,
    help="The number of people who will answer.",
)
@click.option(
    "--target-error",
    type=float,
    help="The standard error of a share that you want.",
)
@about_option
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
    survey: str,
    question: str | None,
    users: int,
    target_error: float | None,
    about: str,
    solve: str | None,
    padding: str | None,
    sizes: str | None,
    popularity: str | None,
    objective: str | None,
    model: str | None,
    prior: str | None,
    goal: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Forecast what --users people will show: in words, and as errors per level and model.

    For a survey of several questions, it first compares how many questions each person could
    answer, then forecasts every question. --question forecasts one of them, as if all --users
    people answered that question alone, with its whole budgets.
    """
    from rich.markup import escape

    from discreet.data.files import read_shares
    from discreet.designs import design as design_
    from discreet.designs.surveys import read_draft
    from discreet.estimates.padding import read_padding
    from discreet.show import facts, forecasts, group_sizes, layout
    from discreet.show.outlook import solve_budgets

    draft, shares = read_draft(survey), load_prior(prior)
    if len(draft.policies) > 1 and question is None:
        if solve or padding or sizes:
            raise DesignError("--solve, --padding and --sizes work on one question; add --question")
        options = given_options(model, shares, encoding, None, goal)
        plan_survey(draft, users, options, target_error, about, as_json)
        return
    loaded = draft.question(question)
    solved = None
    if solve:
        if target_error is None:
            raise DesignError("--solve epsilon needs --target-error, such as 0.01")
        if padding and not padding.isdecimal():
            raise DesignError(f'--solve epsilon needs --padding as a number, got "{padding}"')
        known = int(padding) if padding else None
        options = given_options(model, shares, encoding, known, goal)
        solved = loaded = solve_budgets(loaded, users, target_error, about=about, **options)
    size_shares = read_shares(sizes, "sizes") if sizes else None
    length, choice = read_padding(
        loaded,
        users,
        padding,
        size_shares,
        popularity,
        objective,
        model=model,
        prior=shares,
        goal=goal,
    )
    options = given_options(model, shares, encoding, length, goal)
    with working("Searching for the best mechanism …"):
        chosen = design_(loaded, **options)
        planned = facts.plan(loaded, users, shares, length, target_error, chosen, goal, about)
    planned["name"] = question or draft.name
    planned["goals"] = facts.compare_goals(loaded, chosen, options)
    planned["padding_curve"] = choice.curve if choice else None
    planned["objective"] = choice.objective if choice else None
    budgets = {level.name: level.budget.text for level in solved.levels} if solved else {}
    if as_json:
        print_json({**planned, "solved": budgets} if solved else {**planned})
        return
    if solved:
        named = ", ".join(f"{name}: {epsilon}" for name, epsilon in budgets.items())
        click.echo(
            f"Budgets for a standard error of {target_error:g} at every level, of shares of the "
            f"{about}: {named}."
        )
    forecasts.plan(planned)
    if draft.public and question is None:
        told = group_sizes.describe_least(draft.public, draft.about.least, users)
        layout.print_sentence(layout.console(), escape(told))


@main.command(
    epilog="Example:  discreet simulate survey.toml answers.csv --repeats 20 --plot models.png"
)
@click.argument("policy")
@click.argument("data")
@padding_option
@prior_option
@goal_option
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
    goal: str | None,
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
    models = alternatives(loaded, load_prior(prior), padding, goal)
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

        draw(scores, plot, f"{loaded.title}: {data}", k)
    if as_json:
        print_json({"k": k, "repeats": repeats, "scores": [asdict(score) for score in scores]})
    else:
        terminal.scores(scores, k, repeats)
