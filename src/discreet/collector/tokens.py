"""The organiser's token: in the environment or in a file, never in a command or a log."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from discreet.collector import limits
from discreet.collector.logs import log_event
from discreet.errors import DataError

DEFAULT = "discreet.token"


def read() -> str:
    """Read the token from DISCREET_TOKEN or from the file that DISCREET_TOKEN_FILE names."""
    secret, where = os.environ.get("DISCREET_TOKEN"), "DISCREET_TOKEN"
    if not secret:
        where = file()
        try:
            secret = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "it is not text")
            raise DataError(f"the token file {where} cannot be read: {why}") from None
    secret = secret.strip()
    if len(secret) < limits.TOKEN:
        raise DataError(
            f"the token in {where} has {len(secret)} characters; it must have at least "
            f"{limits.TOKEN}"
        )
    if not (secret.isascii() and secret.isprintable()) or len(set(secret)) < limits.TOKEN_KINDS:
        raise DataError(
            f"the token in {where} is weak: it must be ASCII with at least {limits.TOKEN_KINDS} "
            "different characters; remove the file and a new token is made"
        )
    return secret


class Place(NamedTuple):
    """Where the token is: in a file, or (None) in the environment."""

    file: str | None
    made: bool = False

    def __str__(self) -> str:
        made = " (made now, for you alone to read)" * self.made
        return f"{self.file}{made}" if self.file else "the environment"


def prepare(path: str | None) -> Place:
    """Make a token if there is none, in this file if one is given; return where the token is."""
    if path:
        os.environ["DISCREET_TOKEN_FILE"] = path
        os.environ.pop("DISCREET_TOKEN", None)
    made = False
    if not os.environ.get("DISCREET_TOKEN") and not os.environ.get("DISCREET_TOKEN_FILE"):
        made = make(Path(DEFAULT))
    read()
    return Place(None if os.environ.get("DISCREET_TOKEN") else file(), made)


def file() -> str:
    """The token file, for when the token is not in the environment."""
    return os.environ.get("DISCREET_TOKEN_FILE") or DEFAULT


def make(path: Path) -> bool:
    """Write a new token that only this user can read, unless there is a file; return whether."""
    try:
        _write(path)
    except FileExistsError:
        return False
    except OSError as error:
        raise DataError(
            f"the token file {path} cannot be made: {error.strerror}; set DISCREET_TOKEN instead"
        ) from None
    return True


def renew(path: Path) -> None:
    """Replace the token in this file atomically, keeping the file's owner. A running collector
    uses the new token from the next request on.
    """
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        _write(aside)
        if path.exists():  # root may run this, but the collector's user must read it
            owner = path.stat()
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(aside, owner.st_uid, owner.st_gid)
        os.replace(aside, path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        raise DataError(f"the token file {path} cannot be replaced: {error.strerror}") from None


def _write(path: Path) -> None:
    """Write a new token into a new file."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w") as made:
            made.write(secrets.token_urlsafe(24) + "\n")
            made.flush()
            os.fsync(made.fileno())
    except OSError:  # a full disk: half a token would lock everyone out
        path.unlink()
        raise


class TokenCheck:
    """Checks tokens against the hash of the right one, in constant time. If the token is in a file,
    a changed file is read before the next check.
    """

    def __init__(self, token: str, path: str = "") -> None:
        self._hash, self._path = _hashed(token), path
        self._mark: tuple[int, int, int] | None = None  # the file's state when it was last read

    @classmethod
    def from_environment(cls) -> TokenCheck:
        """Make the lock of the token in the environment or in its file."""
        return cls(read(), "" if os.environ.get("DISCREET_TOKEN") else file())

    def opens(self, header: str) -> bool:
        """Whether an Authorization header has the right token."""
        self._reload()
        scheme, _, token = header.partition(" ")
        return hmac.compare_digest(_hashed(token), self._hash) and scheme.lower() == "bearer"

    def _reload(self) -> None:
        """Read the token again if its file changed; if that fails, the old token still works."""
        mark = _mark(self._path)
        if mark != self._mark:
            self._mark = mark
            try:
                self._hash = _hashed(read())
            except DataError as error:
                log_event("the token file is not valid; the old token works", problem=str(error))


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.strip().encode()).digest()


def _mark(path: str) -> tuple[int, int, int] | None:
    """Inode, size and time of a file, one of which changes with every write; None if there is no
    such file.
    """
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
