"""The files of mechanisms and surveys: read strictly, written canonically, with a fingerprint."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from discreet.errors import FingerprintError, MechanismError
from discreet.policy import sniff
from discreet.policy.files import write_text
from discreet.policy.labels import cleaned, quoted
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

# how the mechanism was found: no promise and no count depends on it
_OUTSIDE_FINGERPRINT = ("model", "prior", "certificate")
_DEEPEST = 100  # lists within lists, as in discreet.js: the stack must not end first


class Fingerprinted(ABC):
    """What is kept in a file with its fingerprint: a mechanism or a survey.

    >>> from discreet import Mechanism, Policy, design
    >>> mechanism = design(Policy.from_budgets({"a": 1, "b": 2}))
    """

    title: ClassVar[str]  # in messages

    @abstractmethod
    def to_canonical(self) -> JsonObject:
        """Everything in the file but the fingerprint: strings and integers only."""

    @classmethod
    @abstractmethod
    def from_canonical(cls, body: JsonObject) -> Self:
        """From the content without its fingerprint, which is not compared."""

    @staticmethod
    def fingerprint_body(body: JsonObject) -> str:
        """The fingerprint of this content, whatever it holds."""
        return fingerprint(body)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the canonical JSON of everything that people read, and that
        promise and counts depend on. Design metadata is left out; otherwise one changed word would
        give every invitee a unique fingerprint.

        >>> len(mechanism.fingerprint)
        64
        """
        return self.fingerprint_body(self.to_canonical())

    def to_document(self) -> JsonObject:
        """The content of the file.

        >>> Mechanism.from_document(mechanism.to_document()) == mechanism
        True
        """
        return {**self.to_canonical(), "fingerprint": self.fingerprint}

    @classmethod
    def from_document(cls, document: JsonObject) -> Self:
        """From the content of a file.

        >>> document = {**mechanism.to_document(), "padding": 7}
        >>> Mechanism.from_document(document)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        discreet.errors.FingerprintError: ...
        """
        body = {key: value for key, value in document.items() if key != "fingerprint"}
        refuse_strange(body)
        got = cls.fingerprint_body(body)
        if document.get("fingerprint") != got:
            raise FingerprintError(cleaned(str(document.get("fingerprint"))), got)
        made = cls.from_canonical(body)
        made.check_written_as(body)
        return made

    def check_written_as(self, body: JsonObject) -> None:
        """Raise unless these are the very bytes that discreet would write: no other key, no false
        for a 0.

        >>> mechanism.check_written_as(mechanism.to_canonical())
        """
        if canonical_json(self.to_canonical()) != canonical_json(body):
            raise MechanismError(
                f"the {self.title} has keys or values that discreet would not write; it is refused"
            )

    def save(self, path: str | Path) -> None:
        """Write the file with its fingerprint, aside first and then renamed.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/survey.json"
        >>> mechanism.save(path)
        >>> Mechanism.load(path) == mechanism
        True
        """
        write_text(path, json.dumps(self.to_document(), ensure_ascii=False) + "\n")


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
