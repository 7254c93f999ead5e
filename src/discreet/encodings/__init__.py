"""How a report names items. To add an encoding: one file here, its name in this table."""

from __future__ import annotations

from typing import Any

from discreet.encodings import base
from discreet.encodings.base import REASONS
from discreet.encodings.bits import Bits
from discreet.encodings.each import Each
from discreet.encodings.fixed import Fixed
from discreet.encodings.hits import Hits
from discreet.encodings.picks import Picks
from discreet.encodings.ticket import Ticket
from discreet.errors import MechanismError

__all__ = [
    "KINDS",
    "NAMES",
    "REASONS",
    "Bits",
    "Coder",
    "Each",
    "Encoding",
    "Fixed",
    "Hits",
    "Picks",
    "Ticket",
    "from_document",
]

Encoding = base.Encoding[Any]  # one of these, whatever its parts
Coder = base.Coder[Any]

_ALL: tuple[type[Encoding], ...] = (Fixed, Bits, Ticket, Hits, Picks, Each)
KINDS = {kind.kind: kind for kind in _ALL}
NAMES = ("bits", "ticket")  # what a user chooses between; the others follow from the model


def from_document(raw: object) -> Encoding:
    """The encoding that a mechanism file describes."""
    if not isinstance(raw, dict) or raw.get("kind") not in KINDS:
        raise MechanismError(f"encoding must be one of {', '.join(KINDS)} with its parameters")
    numbers = {key: value for key, value in raw.items() if key != "kind"}
    if any(type(value) is not int for value in numbers.values()):
        raise MechanismError("the parameters of an encoding are whole numbers")
    try:
        return KINDS[raw["kind"]](**numbers)
    except TypeError:
        raise MechanismError(
            f'these are not the parameters of the encoding "{raw["kind"]}"'
        ) from None
