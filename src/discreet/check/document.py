"""The mechanism's document: read strictly, written canonically, with its fingerprint."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import MechanismError
from discreet.policy import sniff
from discreet.policy.labels import cleaned, quoted

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

# how the mechanism was found: no promise and no count depends on it
_OUTSIDE_FINGERPRINT = ("model", "prior", "certificate")
_DEEPEST = 100  # lists within lists, as in discreet.js: the stack must not end first


def canonical_json(document: JsonObject) -> bytes:
    """JSON with sorted keys, no blanks, UTF-8: RFC 8785 restricted to strings, integers, lists and
    objects.
    """
    try:
        text = json.dumps(
            document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        raise MechanismError(
            "the mechanism holds a text or a number that no mechanism has"
        ) from None


def covered(document: JsonObject) -> JsonObject:
    """A mechanism's document without `model`, `prior` and `certificate`."""
    return {key: value for key, value in document.items() if key not in _OUTSIDE_FINGERPRINT}


def fingerprint(document: JsonObject) -> str:
    """SHA-256 of the canonical JSON of what a document's fingerprint covers, in hexadecimal."""
    import hashlib  # loaded with OpenSSL, when there is something to compare

    return hashlib.sha256(canonical_json(covered(document))).hexdigest()


def read_bytes(raw: bytes) -> JsonObject:
    """The content of a mechanism file, as every language reads it; its values are validated
    later.
    """
    try:
        document = sniff.parse_document(raw)
    except (ValueError, RecursionError) as error:
        why = f": {cleaned(str(error))}" if "twice" in str(error) else ""
        raise MechanismError(f"this is not a mechanism file, which is JSON{why}") from None
    if not isinstance(document, dict):
        raise MechanismError("this is not a mechanism file, which is a JSON object")
    return document


def refuse_strange(value: object, depth: int = _DEEPEST) -> None:
    """Raise MechanismError unless there are only texts, whole numbers below 2^53, lists and objects
    in it, and not too many of them within each other.
    """
    if not depth and isinstance(value, dict | list):
        raise MechanismError(f"the mechanism is nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            refuse_strange(key, depth - 1)
            refuse_strange(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            if type(inner) is not int or abs(inner) >= 2**53:
                refuse_strange(inner, depth - 1)
    elif (type(value) is int and abs(value) >= 2**53) or not isinstance(value, str | int | None):
        raise MechanismError(f"the mechanism holds {quoted(value)}, which no mechanism does")


def read_document(path: str | Path) -> JsonObject:
    """The raw content of a mechanism file, unchecked."""
    path = Path(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except FileNotFoundError:
        raise MechanismError(f"{path} does not exist") from None
    except OSError as error:
        raise MechanismError(f"{path} cannot be read: {error.strerror}") from None
    try:
        document = read_bytes(raw)
    except MechanismError as error:
        if b"[[level]]" in raw:
            raise MechanismError(
                f"{path} is a policy; make a mechanism of it with: discreet design {path} -o "
                "survey.json"
            ) from None
        raise MechanismError(f"{path}: {error}") from None
    if not {"policy", "questions"} & document.keys():
        raise MechanismError(f'{path} is not a survey file; make one with "discreet design"')
    return document


def is_document(path: str | Path) -> bool:
    """Whether a file says that it is a mechanism or a survey, true or not."""
    try:
        document = json.loads(Path(path).read_bytes()) if str(path).endswith(".json") else None
    except (OSError, ValueError, RecursionError):
        return False
    kind = str(document.get("format", "")) if isinstance(document, dict) else ""
    return kind.startswith(("discreet-mechanism", "discreet-survey"))
