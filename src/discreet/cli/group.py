"""What the commands share: error messages, options, reading and printing."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from discreet import __version__
from discreet.errors import DataError, DiscreetError, missing_extra
from discreet.estimates.views import VIEWS

if TYPE_CHECKING:
    from discreet.arrays.types import Prior
    from discreet.designs.task import DesignOptions
    from discreet.policy import Policy
    from discreet.survey import Survey

Function = Callable[..., None]  # a command's
Decorator = Callable[[Function], Function]

# what it reads and writes, newest of each
FORMATS = ("discreet-survey/1", "discreet-mechanism/3", "discreet-tally/2", "discreet-proof/1")
MODEL_HELP = (
    "subset (default), hits (for sets of many items), each (default for kind = "
    '"each"), opt0, opt1, opt2 '
    "(the paper's), or plain LDP: rappor, oue, grr, ss."
)


_ENDINGS = (
    *(".csv", ".tsv", ".txt", ".json", ".toml", ".dat", ".xlsx", ".arrow", ".parquet"),
    *(".gz", ".xz", ".zip", ".png", ".svg", ".html", ".sqlite"),
)


class _Group(click.Group):
    """Turns errors into one sentence on standard error and exit code 2, Ctrl-C into 130."""

    def main(  # type: ignore[override]  # click's own returns too, which nobody needs here
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: object
    ) -> NoReturn:
        try:
            code = super().main(args, prog_name, **{**extra, "standalone_mode": False})  # type: ignore[call-overload]
        except DiscreetError as error:
            sentence = str(error)
        except ModuleNotFoundError as error:
            explained = missing_extra(error)
            if explained is error:
                raise
            sentence = str(explained)
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
            _discard_output()
            sys.exit(0)
        except OSError as error:
            _discard_output()
            sentence = f"the output cannot be written: {error.strerror or error}"
        except (KeyboardInterrupt, click.Abort):
            click.echo("stopped; nothing was left half-written", err=True)
            sys.exit(130)
        else:
            sys.exit(code if isinstance(code, int) else 0)
        click.echo(f"error: {' '.join(sentence.split())}", err=True)
        sys.exit(2)


def _discard_output() -> None:
    """Send the rest of standard output nowhere: nobody reads it, or the disk is full."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(
    __version__,
    "-V",
    "--version",
    prog_name="discreet",
    message=f"%(prog)s, version %(version)s\nformats: {', '.join(FORMATS)}",
)
def main() -> None:
    """Private counts that protect each answer as much as it needs."""


def refuse_overwrite(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Refuse an output file that is also an input, or that is named for two outputs."""
    read = {os.path.realpath(path) for path in inputs if path and path != "-"}
    written = set()
    for path in filter(None, outputs):
        place = os.path.realpath(path)
        if place in read:
            raise DataError(f"{path} is also read; write to another file")
        if place in written:
            raise DataError(f"{path} is named for two outputs; write to two files")
        written.add(place)


def refuse_wrong_suffix(ending: str, what: str, output: str | None) -> None:
    """Refuse an output whose name promises another format."""
    suffix = Path(output or "").suffix.lower()
    if suffix in _ENDINGS and suffix != ending:
        written = {".json": "JSON", ".parquet": "Parquet"}[ending]
        raise DataError(f"{output}: {what} written as {written}; name it …{ending}")


def require_suffix(path: str | None, *endings: str) -> None:
    """Refuse an output with an unknown format, before any work is done."""
    if path and not path.lower().endswith(endings):
        *some, last = endings
        raise DataError(f"{path} must end in {', '.join(some)}{' or ' if some else ''}{last}")


def options(*decorators: Decorator) -> Decorator:
    """Combine options that several commands share into one decorator."""

    def add(command: Function) -> Function:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


prior_option = click.option(
    "--prior",
    help="How common you expect the answers to be: uniform (default), worst, level=share,…, or a "
    "CSV or JSON file of shares.",
)
about_option = click.option(
    "--about",
    type=click.Choice(["population", "respondents"]),
    default="population",
    show_default=True,
    help="What shares are about: the population, or only the people who answered.",
)
question_option = click.option(
    "--question", metavar="NAME", help="The question, if the survey has several."
)
goal_option = click.option(
    "--goal",
    help="fair (default): no level is counted worse than under plain LDP; or total: the least "
    "total error.",
)
padding_option = click.option("--padding", type=int, help="For sets: the padding length.")
design_options = options(
    click.option("--model", help=MODEL_HELP),
    prior_option,
    goal_option,
    click.option(
        "--encoding",
        help="bits, or ticket (4 bytes; default of subset for more than 1,000 items).",
    ),
)
data_options = options(
    click.option("--column", default="item", show_default=True, help="The column of items."),
    click.option(
        "--user",
        default="user",
        show_default=True,
        help="The column of users, for sets as user,item rows.",
    ),
    click.option(
        "--indices",
        is_flag=True,
        help="Items are indices (0 is the policy's first item), not labels.",
    ),
)
engine_options = options(
    click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        show_default=True,
        help="Run on this machine, or on Spark.",
    ),
    click.option(
        "--master",
        help="Spark master, such as local[4].  [default: your Spark configuration]",
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
    help="The store: a SQLite file or postgresql://…",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


# ---- reading and printing ------------------------------------------------------------------------


def load_policy(path: str) -> Policy:
    """Read a policy file."""
    from discreet.policy import Policy

    return Policy.load(path)


def load_survey(path: str) -> Survey:
    """Read a survey file or a mechanism file, and check it."""
    from discreet.survey import Survey

    return Survey.load(path)


def split_items(text: str, policy: Policy) -> list[str]:
    """The items named in an option, separated by commas; a label may have commas itself."""
    pieces, items = text.split(","), []
    while pieces:
        ends = range(len(pieces), 0, -1)
        joined = (",".join(pieces[:end]).strip() for end in ends)
        end, item = next(
            ((end, x) for end, x in zip(ends, joined, strict=True) if x in policy.index),
            (1, pieces[0].strip()),
        )
        policy.place(item)  # says what is nearest, if it is not an item
        items.append(item)
        pieces = pieces[end:]
    return items


def progress(
    label: str, paths: Iterable[str | Path]
) -> AbstractContextManager[Callable[[int], None]]:
    """Show a progress bar over the bytes of the input files."""
    return steps(label, sum(Path(path).stat().st_size for path in paths if Path(path).is_file()))


@contextmanager
def working(label: str) -> Iterator[None]:
    """Say what is being done on a terminal, once it takes more than two seconds."""
    if not sys.stderr.isatty():
        yield
        return
    from threading import Timer

    from rich.console import Console

    status = Console(stderr=True).status(label)
    timer = Timer(2, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


@contextmanager
def steps(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, once the work takes more than two seconds."""
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


def load_prior(text: str | None) -> Prior:
    """Read the value of --prior."""
    from discreet.designs.task import read_prior

    return read_prior(text or "uniform")


def given_options(
    model: str | None,
    prior: Prior | None,
    encoding: str | None,
    padding: int | None,
    goal: str | None,
) -> DesignOptions:
    """The options of a design that were given."""
    options: DesignOptions = {}
    if model is not None:
        options["model"] = model
    if prior is not None:
        options["prior"] = prior
    if encoding is not None:
        options["encoding"] = encoding
    if padding is not None:
        options["padding"] = padding
    if goal is not None:
        options["goal"] = goal
    return options


def emit(as_json: bool, facts: Mapping[str, object], sentence: str) -> None:
    """Print a result as JSON, or as a sentence."""
    print_json(facts) if as_json else click.echo(sentence)


def print_json(facts: Mapping[str, object]) -> None:
    """Print facts as JSON."""
    click.echo(json.dumps(_plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: object) -> object:
    """Make a value fit for JSON: numpy numbers become Python's, and NaN and infinity null."""
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
