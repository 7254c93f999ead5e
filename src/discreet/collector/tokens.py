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
from discreet.errors import DataError

DEFAULT = "discreet.token"


def read() -> str:
    """The token: the environment's DISCREET_TOKEN, or the content of DISCREET_TOKEN_FILE."""
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
            "different characters; remove the file and one is made"
        )
    return secret


class Place(NamedTuple):
    """Where the token is: a file, unless it is in the environment."""

    file: str | None
    made: bool = False

    def __str__(self) -> str:
        made = " (made now, for you alone to read)" * self.made
        return f"{self.file}{made}" if self.file else "the environment"


def prepare(path: str | None) -> Place:
    """See to it that there is a token, in this file if one is named; returns where it is."""
    if path:
        os.environ["DISCREET_TOKEN_FILE"] = path
        os.environ.pop("DISCREET_TOKEN", None)
    made = False
    if not os.environ.get("DISCREET_TOKEN") and not os.environ.get("DISCREET_TOKEN_FILE"):
        made = make(Path(DEFAULT))
    read()
    return Place(None if os.environ.get("DISCREET_TOKEN") else file(), made)


def file() -> str:
    """Where the token is, unless it is in the environment."""
    return os.environ.get("DISCREET_TOKEN_FILE") or DEFAULT


def make(path: Path) -> bool:
    """Make a token for the organiser alone unless there is one; returns whether it was made."""
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
    """Put a new token in the place of the one in this file, at once and for the same owner; a
    collector that runs takes it with the next request.
    """
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        _write(aside)
        if path.exists():  # root may do this for the collector's user, who must read it
            owner = path.stat()
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(aside, owner.st_uid, owner.st_gid)
        os.replace(aside, path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        raise DataError(f"the token file {path} cannot be replaced: {error.strerror}") from None


def _write(path: Path) -> None:
    """A new token in a new file."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w") as made:
            made.write(secrets.token_urlsafe(24) + "\n")
            made.flush()
            os.fsync(made.fileno())
    except OSError:  # no room: half a token would lock everybody out
        path.unlink()
        raise


class Lock:
    """Knows a token by its hash, and compares in constant time. Where the token is in a file, a
    change of it is seen when a token is next asked for.
    """

    def __init__(self, token: str, path: str = "") -> None:
        self._hash, self._path = _hashed(token), path
        self._mark: tuple[int, int, int] | None = None  # of the file, when it was last read

    @classmethod
    def from_environment(cls) -> Lock:
        """The lock of the environment's token, or of the one in its file."""
        return cls(read(), "" if os.environ.get("DISCREET_TOKEN") else file())

    def opens(self, header: str) -> bool:
        """Whether an Authorization header bears the token."""
        self._look_again()
        scheme, _, token = header.partition(" ")
        return hmac.compare_digest(_hashed(token), self._hash) and scheme.lower() == "bearer"

    def _look_again(self) -> None:
        """The token of a changed file, if it is one; else the one before still opens."""
        mark = _mark(self._path)
        if mark != self._mark:
            self._mark = mark
            try:
                self._hash = _hashed(read())
            except DataError as error:
                from discreet.collector.problems import say

                say("the token file changed, and the token before it is kept", problem=str(error))


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.strip().encode()).digest()


def _mark(path: str) -> tuple[int, int, int] | None:
    """What changes when a file is written anew; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
