"""Commands of an organiser who invites people: invite, page."""

from __future__ import annotations

import click

from discreet.cli.group import (
    as_json,
    emit,
    main,
    print_json,
)
from discreet.errors import DataError, MissingExtra


@main.command(epilog="Example:  discreet invite https://host/c/survey#FINGERPRINT -o poster.html")
@click.argument("url")
@click.option(
    "-o",
    "--output",
    multiple=True,
    help="Write the code (.png, .svg) or a page to print (.html). Repeatable.",
)
@click.option(
    "--button",
    is_flag=True,
    help="Print a link button for your website: HTML without a script.",
)
@as_json
def invite(url: str, output: tuple[str, ...], button: bool, as_json: bool) -> None:
    """Show the invitation URL as a QR code for phones.

    Tries the URL first: the collection must exist, match the fingerprint and not be closed. The
    code and the files need the extra "serve".
    """
    from urllib.parse import urlsplit

    from discreet.device.client import Client, invitation
    from discreet.show import address, invitations

    server, name, pinned = invitation(url)
    if pinned is None:
        raise DataError(
            "the invitation has no fingerprint, so people could be shown any question; use the "
            "whole link that serve prints"
        )
    address.public(server)
    collection = Client(server, patience=5).collection(name, fingerprint=pinned)
    if collection.state == "closed":
        raise DataError(f'"{name}" is closed; nobody can answer it')
    survey, promise = collection.survey, collection.survey.promise()
    title = survey.only.policy.title if len(survey.listed) == 1 else survey.name
    html = invitations.link_button(url, title)
    for path in output:
        said = title, promise.lead, promise.sentences(), survey.about.rows()
        invitations.save(url, path, *said, survey.poster_words())
    here = address.is_here(urlsplit(server).hostname or "")
    if as_json:
        facts = {"url": url, "state": collection.state, "this_machine_only": here}
        facts["caution"] = promise.caution
        print_json({**facts, "output": list(output), "button": html})
        return
    if button:
        click.echo(html)
    else:
        _show_code(url)
    if promise.caution:
        click.echo(f"Warning: {promise.caution}", err=True)
    if here:
        only = "This link works on this machine only; serve --public-url makes one for phones."
        click.echo(only, err=button)


def _show_code(url: str) -> None:
    from discreet.show import invitations

    try:
        click.echo(invitations.terminal(url), nl=False)
    except MissingExtra as error:
        click.echo(f"Only the link: {error}", err=True)
    click.echo(url)


@main.command(epilog="Example:  discreet page -o answer.html")
@click.option("-o", "--output", required=True, help="Write the page to this file.")
@as_json
def page(output: str, as_json: bool) -> None:
    """Write the participant's page as one static file.

    You can host it anywhere. Prints its SHA-256.
    """
    from discreet.collector.pages import answer_file, answer_hash
    from discreet.policy.files import write_text

    write_text(output, answer_file().decode())
    facts = {"sha256": answer_hash(), "output": output}
    emit(as_json, facts, f"{answer_hash()}  {output}")
