"""Writes docs/commands.md from the commands' own help; tests/test_docs.py checks that it is up to date."""

from __future__ import annotations

from pathlib import Path

import click

from discreet.cli import main


def text() -> str:
    """The page."""
    names = main.context_settings["help_option_names"]
    context = click.Context(main, info_name="discreet", max_content_width=110, terminal_width=110, help_option_names=names)
    parts = ["# Commands\n\nMade by `python docs/make_commands.py` from the commands' own help.\n"]
    for name in (None, *sorted(main.commands)):
        command = main if name is None else main.commands[name]
        inner = context if name is None else click.Context(command, context, name, terminal_width=110, max_content_width=110)
        parts.append(f"## discreet{' ' + name if name else ''}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "commands.md").write_text(text(), encoding="utf-8")
