"""Everything discreet refuses, as one base exception and small named children.

Each message is one sentence that says what was wrong, what was got and what is allowed; the
attributes say the same to code.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

_COMPARED = 32  # digits of a fingerprint that people compare: nobody finds two that share them


def short_fingerprint(fingerprint: str) -> str:
    """The digits of a fingerprint that people compare, in groups of four.

    >>> short_fingerprint("0123456789abcdef" * 4)
    '0123 4567 89ab cdef 0123 4567 89ab cdef'
    """
    return " ".join(fingerprint[k : k + 4] for k in range(0, _COMPARED, 4)).strip()


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose."""


class PolicyError(DiscreetError):
    """A policy that cannot be used: an unknown key, a bad budget, an item named twice."""


class DesignError(DiscreetError):
    """A design that was asked for and cannot be had: an unknown model, a missing padding."""


class MechanismError(DiscreetError):
    """A mechanism file that cannot be read as one."""


class FingerprintError(MechanismError):
    """A mechanism file whose content does not match the fingerprint it carries."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(
            f"the content has fingerprint {short_fingerprint(got)}… but the file says "
            f"{short_fingerprint(expected)}…: it was changed after it was made; get it again from "
            "the organiser"
        )
        self.expected, self.got = expected, got


class GuaranteeError(DiscreetError):
    """Probabilities that break their policy; such a mechanism cannot be constructed."""

    def __init__(
        self, sentence: str, levels: tuple[str, ...] = (), part: int | None = None
    ) -> None:
        super().__init__(sentence)
        self.levels, self.part = levels, part


class DataError(DiscreetError):
    """Answers, reports or tallies that cannot be used."""


class ClientError(DiscreetError):
    """The collector cannot be reached, or does not answer as one."""


class MissingExtra(DiscreetError, ImportError):
    """Something that needs an optional dependency which is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        source = _installed_from()
        super().__init__(f'{what} needs the extra "{extra}": pip install "{source}[{extra}]"')
        self.extra = extra


_PURPOSES = {"count": "work on designs, files and counts", "serve": "the collector"}
_EXTRAS = {  # of the modules that rooms below the device side load first
    **dict.fromkeys(("numpy", "scipy", "numba", "pyarrow", "threadpoolctl", "rich"), "count"),
    **dict.fromkeys(("starlette", "uvicorn", "orjson"), "serve"),
}


def missing_extra(error: ModuleNotFoundError) -> Exception:
    """The sentence that says what to install, or the error itself if that is not known."""
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    return MissingExtra(_PURPOSES[extra], extra) if extra else error


def require(extra: str, *modules: str) -> None:
    """Raise MissingExtra unless all of these modules of an extra are installed; none is loaded."""
    if not all(map(find_spec, modules)):
        raise MissingExtra(_PURPOSES[extra], extra)


def _installed_from() -> str:
    """What pip can install this package from again: the folder or file it came from (PEP 610), or
    its name.
    """
    from importlib import metadata  # these take longer to load than all of the device side
    from urllib.parse import unquote, urlsplit

    try:
        recorded = metadata.distribution("discreet").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        recorded = None
    url = urlsplit(json.loads(recorded)["url"] if recorded else "")
    path = Path(unquote(url.path))
    if url.scheme != "file" or not ((path / "pyproject.toml").is_file() or path.is_file()):
        return "discreet"
    return "." if path == Path.cwd() else str(path)
