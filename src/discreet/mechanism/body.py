"""A mechanism as the strings and integers of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet import encodings
from discreet.check.certificate import Certificate
from discreet.errors import DesignError, MechanismError, PolicyError
from discreet.mechanism.shape import denominators
from discreet.policy import Policy
from discreet.policy.labels import quoted
from discreet.policy.validation import check_padding

if TYPE_CHECKING:
    from discreet.mechanism.mechanism import Mechanism
    from discreet.policy.types import JsonObject

FORMAT = "discreet-mechanism/3"
_NOT_COMPLETE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


def write_body(mechanism: Mechanism) -> JsonObject:
    """Everything in the file but the fingerprint."""
    document: JsonObject = {
        "format": FORMAT,
        "policy": mechanism.policy.to_canonical(),
        "model": mechanism.model,
        "prior": mechanism.prior,
        "encoding": mechanism.encoding.document(),
        "padding": mechanism.padding or 0,
        "groups": list(mechanism.groups),
        "shares": list(mechanism.shares),
        "parts": [part.document() for part in mechanism.parts],
    }
    if mechanism.certificate:
        document["certificate"] = mechanism.certificate.to_canonical()
    return document


def read_body(body: JsonObject, make: type[Mechanism]) -> Mechanism:
    """The mechanism that a file describes; raises MechanismError unless its pieces fit, and
    GuaranteeError unless its promise holds.
    """
    if body.get("format") != FORMAT:
        raise MechanismError(f'format = {quoted(body.get("format"))} must be "{FORMAT}"')
    try:
        policy = Policy.from_canonical(body["policy"])
        padding = check_padding(body["padding"]) if body["padding"] else None
        encoding = encodings.from_document(body["encoding"])
        groups = tuple(body["groups"])
        over = denominators(encoding, groups, policy)
        parts = tuple(encoding.part(row, over, groups) for row in body["parts"])
        certificate = None
        if "certificate" in body:
            certificate = Certificate.from_canonical(body["certificate"])
        shares, prior = tuple(body["shares"]), body["prior"]
        return make(
            policy, body["model"], encoding, groups, parts, shares, padding, prior, certificate
        )
    except PolicyError as error:
        raise MechanismError(f"the mechanism's policy is wrong: {error}") from None
    except DesignError as error:
        raise MechanismError(f"the mechanism's pieces do not fit: {error}") from None
    except _NOT_COMPLETE as error:
        raise MechanismError(f"the mechanism is not complete: {error!r}") from None
