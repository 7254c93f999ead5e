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
    """The newest token that works."""
    return read_all()[0]


def read_all() -> list[str]:
    """The tokens that work, the newest first: the lines of DISCREET_TOKEN, or of the file that
    DISCREET_TOKEN_FILE names. There are two while one is being replaced.
    """
    text, where = os.environ.get("DISCREET_TOKEN"), "DISCREET_TOKEN"
    if not text:
        where = file()
        try:
            text = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "it is not text")
            raise DataError(f"the token file {where} cannot be read: {why}") from None
    lines = [line.strip() for line in text.strip().split("\n")]
    if len(lines) > limits.TOKENS:
        raise DataError(
            f"there are {len(lines)} tokens in {where}, one per line; at most {limits.TOKENS} work "
            "at the same time: remove the old ones"
        )
    for line in lines:
        _check(line, where)
    return lines


def _check(secret: str, where: str) -> None:
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
        _write(path, _new())
    except FileExistsError:
        return False
    except OSError as error:
        raise DataError(
            f"the token file {path} cannot be made: {error.strerror}; set DISCREET_TOKEN instead"
        ) from None
    return True


def renew(path: Path) -> None:
    """Replace the token in this file. A running collector uses the new one from the next request
    on.
    """
    _replace(path, _new())


def add(path: Path) -> None:
    """Write a new token into this file, above the one that is there: both work."""
    live = _read_file(path)
    if len(live) >= limits.TOKENS:
        raise DataError(
            f"{len(live)} tokens work already; end the older one first: discreet token --retire"
        )
    _replace(path, _new(), *live)


def retire(path: Path) -> bool:
    """Remove the older token from this file; returns whether there was one."""
    newest, *older = _read_file(path)
    if older:
        _replace(path, newest)
    return bool(older)


def _read_file(path: Path) -> list[str]:
    prepare(str(path))
    return read_all()


def _replace(path: Path, *tokens: str) -> None:
    """Replace the content of a token file atomically, keeping the file's owner."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        _write(aside, *tokens)
        if path.exists():  # root may run this, but the collector's user must read it
            owner = path.stat()
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(aside, owner.st_uid, owner.st_gid)
        os.replace(aside, path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        raise DataError(f"the token file {path} cannot be replaced: {error.strerror}") from None


def _new() -> str:
    return secrets.token_urlsafe(24)


def _write(path: Path, *tokens: str) -> None:
    """Write tokens into a new file, one per line."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w") as made:
            made.writelines(f"{token}\n" for token in tokens)
            made.flush()
            os.fsync(made.fileno())
    except OSError:  # a full disk: half a token would lock everyone out
        path.unlink()
        raise


class TokenCheck:
    """Checks tokens against the hashes of those that work, in constant time. If they are in a file,
    a changed file is read before the next check.
    """

    def __init__(self, *tokens: str, path: str = "") -> None:
        self._hashes, self._path = [_hashed(token) for token in tokens], path
        self._mark: tuple[int, int, int] | None = None  # the file's state when it was last read

    @classmethod
    def from_environment(cls) -> TokenCheck:
        """Make the lock of the tokens in the environment or in their file."""
        return cls(*read_all(), path="" if os.environ.get("DISCREET_TOKEN") else file())

    def opens(self, header: str) -> bool:
        """Whether an Authorization header has a token that works."""
        scheme, _, token = header.partition(" ")
        return self.find(token) is not None and scheme.lower() == "bearer"

    def find(self, token: str) -> bytes | None:
        """The hash of this token if it works."""
        hashed, right = _hashed(token), None
        for live in self.hashes():
            if hmac.compare_digest(hashed, live):
                right = live
        return right

    def hashes(self) -> list[bytes]:
        """The hashes of the tokens that work, now. If the file is not valid, the tokens that it
        held before still work.
        """
        mark = _mark(self._path)
        if mark != self._mark:
            self._mark = mark
            try:
                self._hashes = [_hashed(token) for token in read_all()]
            except DataError as error:
                log_event("the token file is not valid; the old token works", problem=str(error))
        return self._hashes


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.strip().encode(errors="surrogatepass")).digest()


def _mark(path: str) -> tuple[int, int, int] | None:
    """Inode, size and time of a file, one of which changes with every write; None if there is no
    such file.
    """
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
