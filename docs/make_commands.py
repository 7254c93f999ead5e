"""Writes docs/commands.md from the commands' own help, and the SHA-256 of the participant's page
into docs/collector.md.

tests/test_docs.py checks that both are up to date.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from discreet.cli import main
from discreet.collector.pages import answer_hash

HERE = Path(__file__).parent


def text() -> str:
    """The page."""
    names = main.context_settings["help_option_names"]
    context = click.Context(
        main,
        info_name="discreet",
        max_content_width=110,
        terminal_width=110,
        help_option_names=names,
    )
    parts = ["# Commands\n\nMade by `python docs/make_commands.py` from the commands' own help.\n"]
    for name in (None, *sorted(main.commands)):
        command = main if name is None else main.commands[name]
        inner = (
            context
            if name is None
            else click.Context(command, context, name, terminal_width=110, max_content_width=110)
        )
        parts.append(
            f"## discreet{' ' + name if name else ''}\n\n```text\n{command.get_help(inner)}\n```\n"
        )
    return "\n".join(parts)


def with_hash(page: str) -> str:
    """A page that names the SHA-256 of answer.html."""
    return re.sub(
        r"^\w{6,64}  answer\.html$", f"{answer_hash()}  answer.html", page, flags=re.MULTILINE
    )


if __name__ == "__main__":
    (HERE / "commands.md").write_text(text(), encoding="utf-8")
    (HERE / "collector.md").write_text(
        with_hash((HERE / "collector.md").read_text(encoding="utf-8")), encoding="utf-8"
    )
