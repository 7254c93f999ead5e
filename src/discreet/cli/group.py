"""What the commands share: how errors are said, options, reading and printing."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet import __version__
from discreet.errors import DataError, DiscreetError
from discreet.views import VIEWS

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism
    from discreet.policy import Policy


MODEL_HELP = (
    "subset (the best possible, unless you say otherwise), hits (for sets, the default there), "
    'each (for sets with protect = "item"), opt0, opt1, opt2 (the paper\'s), rappor, oue, grr or '
    "ss (plain LDP)."
)


_ENDINGS = (
    *(".csv", ".tsv", ".txt", ".json", ".toml", ".dat", ".xlsx", ".arrow", ".parquet"),
    *(".gz", ".xz", ".zip", ".png", ".svg", ".html", ".sqlite"),
)


class _Group(click.Group):
    """Turns errors into one sentence on standard error and exit code 2, Ctrl-C into 130."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except DiscreetError as error:
            sentence = str(error)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except click.ClickException as error:
            hint = (
                f"; see {error.ctx.command_path} -h"
                if isinstance(error, click.UsageError) and error.ctx
                else ""
            )
            sentence = error.format_message().rstrip(".") + hint
        except MemoryError:
            sentence = "there is not enough memory for this"
        except BrokenPipeError:
            _say_no_more()
            sys.exit(0)
        except OSError as error:
            _say_no_more()
            sentence = f"the output cannot be written: {error.strerror or error}"
        except (KeyboardInterrupt, click.Abort):
            click.echo("stopped; nothing was left half-written", err=True)
            sys.exit(130)
        else:
            sys.exit(code if isinstance(code, int) else 0)
        click.echo(f"error: {' '.join(sentence.split())}", err=True)
        sys.exit(2)


def _say_no_more() -> None:
    """Nobody reads standard output, or it is full: what is still to be written goes nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(__version__, "-V", "--version", prog_name="discreet")
def main() -> None:
    """Private counts that protect each answer as much as it needs."""


def apart(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Refuse an output that would replace what is read, or another output."""
    read = {os.path.realpath(path) for path in inputs if path and path != "-"}
    written = set()
    for path in filter(None, outputs):
        place = os.path.realpath(path)
        if place in read:
            raise DataError(f"{path} is also read; write to another file")
        if place in written:
            raise DataError(f"{path} is named for two outputs; write to two files")
        written.add(place)


def written_as(ending: str, what: str, output: str | None) -> None:
    """Refuse an output that is named after another format than it is written in."""
    suffix = Path(output or "").suffix.lower()
    if suffix in _ENDINGS and suffix != ending:
        written = {".json": "JSON", ".parquet": "Parquet"}[ending]
        raise DataError(f"{output}: {what} written as {written}; name it …{ending}")


def must_end(path: str | None, *endings: str) -> None:
    """Refuse an output that no format is known for, before any work is done."""
    if path and not path.lower().endswith(endings):
        raise DataError(f"{path} must end in {', '.join(endings[:-1])} or {endings[-1]}")


def options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Options that several commands share, as one decorator."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


prior_option = click.option(
    "--prior",
    help="uniform (unless you say otherwise), worst, level=share,…, or a CSV/JSON file of shares.",
)
padding_option = click.option("--padding", type=int, help="Padding length, for set input.")
design_options = options(
    click.option("--model", help=MODEL_HELP),
    prior_option,
    click.option(
        "--encoding",
        help="bits, or ticket: 4 bytes, the default of subset for more than 1,000 items.",
    ),
)
data_options = options(
    click.option("--column", default="item", show_default=True, help="Column of the items."),
    click.option(
        "--user",
        default="user",
        show_default=True,
        help="Column of the users, for sets as user,item rows.",
    ),
    click.option(
        "--indices",
        is_flag=True,
        help="The items are indices (0 is the policy's first item); otherwise they are labels.",
    ),
)
engine_options = options(
    click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        show_default=True,
        help="Where it runs.",
    ),
    click.option(
        "--master",
        help="Spark master, such as local[4]; by default the one of your Spark configuration.",
    ),
)
view_options = options(
    *(click.option(f"--{name}", is_flag=True, help=f"Also {v.about}.") for name, v in VIEWS.items())
)
store_option = click.option(
    "--store",
    envvar="DISCREET_STORE",
    default="discreet.sqlite",
    show_default=True,
    help="A file (SQLite) or postgresql://…",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


# ---- what they read and print --------------------------------------------------------------------


def load_policy(path: str) -> Policy:
    """Of a file."""
    from discreet.policy import Policy

    return Policy.load(path)


def load_mechanism(path: str) -> Mechanism:
    """Of a file, checked."""
    from discreet.mechanism import Mechanism

    return Mechanism.load(path)


def progress(label: str, paths: Iterable[Any]) -> Any:
    """A bar over the bytes of the inputs."""
    return steps(label, sum(Path(path).stat().st_size for path in paths if Path(path).is_file()))


@contextmanager
def steps(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, once the work takes over two seconds."""
    import time

    if not sys.stderr.isatty() or not total:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    began, bar = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task, done = bar.add_task(label, total=total), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if time.monotonic() - began > 2:
            bar.start()
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        bar.stop()


def load_prior(text: str | None) -> Any:
    """What --prior says."""
    from discreet.designs.task import read_prior

    return read_prior(text or "uniform")


def wishes(
    model: str | None, prior: Any, encoding: str | None, padding: int | None
) -> dict[str, Any]:
    """What was asked of the design; the rest is as `design` has it."""
    said = {"model": model, "prior": prior, "encoding": encoding, "padding": padding}
    return {name: value for name, value in said.items() if value is not None}


def say(as_json: bool, facts: dict[str, Any], sentence: str) -> None:
    """A result for people, or for machines."""
    print_json(facts) if as_json else click.echo(sentence)


def print_json(facts: Any) -> None:
    """For --json."""
    click.echo(json.dumps(_plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """For JSON: numpy numbers as Python's, null for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
