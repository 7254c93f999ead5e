"""Files that are written whole or not at all: an interrupted output never looks complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import DataError


@contextmanager
def written_aside(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write to; renamed to `path` when the block succeeds, removed when it
    does not.
    """
    import tempfile  # loaded when there is something to write

    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"{path} cannot be written: it is a folder or a device; name a file")
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from None
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        umask = os.umask(0)
        os.umask(umask)
        aside.chmod(0o666 & ~umask)
        with open(aside, "rb") as done:
            os.fsync(done.fileno())
        aside.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            aside.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write a whole text file, all or nothing."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")
