"""The organiser's token: in the environment or in a file, never in a command or a log."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from discreet.collector import limits
from discreet.errors import DataError

DEFAULT = "discreet.token"


def read() -> str:
    """The token: the environment's DISCREET_TOKEN, or the content of DISCREET_TOKEN_FILE."""
    secret, where = os.environ.get("DISCREET_TOKEN"), "DISCREET_TOKEN"
    if not secret:
        where = _file()
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


def prepare(file: str | None) -> str:
    """See to it that there is a token, in this file if one is named; returns where it is."""
    if file:
        os.environ["DISCREET_TOKEN_FILE"] = file
        os.environ.pop("DISCREET_TOKEN", None)
    made = False
    if not os.environ.get("DISCREET_TOKEN") and not os.environ.get("DISCREET_TOKEN_FILE"):
        made = make(Path(DEFAULT))
    read()
    if os.environ.get("DISCREET_TOKEN"):
        return "the environment"
    where = _file()
    return f"{where} (made now, for you alone to read)" if made else where


def _file() -> str:
    return os.environ.get("DISCREET_TOKEN_FILE") or DEFAULT


def make(path: Path) -> bool:
    """Make a token for the organiser alone unless there is one; returns whether it was made."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise DataError(
            f"the token file {path} cannot be made: {error.strerror}; set DISCREET_TOKEN instead"
        ) from None
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_urlsafe(24) + "\n")
    return True


class Lock:
    """Knows a token by its hash, and compares in constant time."""

    def __init__(self, token: str) -> None:
        self._hash = hashlib.sha256(token.encode()).digest()

    def opens(self, header: str) -> bool:
        """Whether an Authorization header bears the token."""
        scheme, _, token = header.partition(" ")
        given = hashlib.sha256(token.strip().encode()).digest()
        return hmac.compare_digest(given, self._hash) and scheme.lower() == "bearer"
