"""Survey files to begin with, for `discreet new` and the desk."""

from __future__ import annotations

from importlib.resources import files

from discreet.errors import DataError

TEMPLATES = ("health", "workplace", "student-life", "product-telemetry")


def template(name: str) -> str:
    """The text of a template, a survey file.

    >>> template("health").splitlines()[1]
    'name = "health"'
    """
    if name not in TEMPLATES:
        raise DataError(f'template "{name}" is unknown; choose one of {", ".join(TEMPLATES)}')
    place = files("discreet") / "data" / "templates" / f"{name}.toml"
    return place.read_text(encoding="utf-8")


def summary(name: str) -> str:
    """What a template is about, from its first line.

    >>> summary("product-telemetry")[:40]
    'Product telemetry: which functions peopl'
    """
    return template(name).partition("\n")[0].removeprefix("# ")
