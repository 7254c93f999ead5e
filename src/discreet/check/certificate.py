"""How good a design is, with its proof; no promise and no count depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from discreet.policy.labels import is_text

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,29})(\.[0-9]{0,29}[1-9])?")
_DIGITS = 12  # of a decimal in the file
# the first note of a design that plain LDP's errors limit; part of what it is the best of
FAIR = "no level counted worse than under plain LDP"


@dataclass(frozen=True)
class Certificate:
    """How good a design is: the total MSE / n it reaches at its prior, and a lower bound of any
    mechanism's.

    The bound holds for every mechanism with the same guarantee and every unbiased additive
    estimate; it is None where none was proved, and `note` says why.
    """

    value: float
    lower_bound: float | None
    note: str = ""
    # what proves the bound, where it is a proof and no formula: beside the file, never in it
    proof: JsonObject | None = field(default=None, compare=False, repr=False)

    @property
    def gap(self) -> float | None:
        """How far the value is above the lower bound, relative to it."""
        if self.lower_bound is None:
            return None
        if self.lower_bound <= 0:  # a bound that says nothing, unless there is no error at all
            return 0.0 if self.value < 1e-12 else None
        return max(0.0, self.value / self.lower_bound - 1)

    @property
    def sentence(self) -> str:
        """The certificate in words."""
        if self.gap is None:
            return "not certified" + (f" ({self.note})" if self.note else "")
        if self.gap < 5e-7:
            text = "the best possible"
        elif self.gap < 1e-5:
            text = "less than 0.001 % above the best possible"
        else:
            text = f"{_percent(self.gap)} above the best possible"
        text += " for this guarantee and prior"
        note = self.note
        if note.startswith(FAIR):
            text, note = f"{text}, with {FAIR}", note.removeprefix(FAIR).removeprefix("; ")
        return text + (f" ({note})" if note else "")

    def to_canonical(self) -> dict[str, str]:
        """Texts only: plain decimals of at most twelve digits."""
        bound = "" if self.lower_bound is None else _decimal(max(0.0, self.lower_bound))
        if bound and _number(bound) > _number(_decimal(self.value)):  # by the floats' own error
            bound = _decimal(self.value)
        return {"value": _decimal(self.value), "lower_bound": bound, "note": self.note}

    @classmethod
    def from_canonical(cls, raw: JsonObject) -> Certificate:
        """The reverse; raises ValueError on any other spelling."""
        if set(raw) != {"value", "lower_bound", "note"} or not all(
            isinstance(x, str) for x in raw.values()
        ):
            raise ValueError("certificate")
        note = raw["note"]
        if len(note) > 400 or (note and not is_text(note)):
            raise ValueError("note of the certificate")
        value, bound = _number(raw["value"]), None
        if raw["lower_bound"]:
            bound = _number(raw["lower_bound"])
            if bound > value:
                raise ValueError("the certificate claims less error than its own lower bound")
        return cls(value, bound, note)


def _percent(gap: float) -> str:
    return f"{100 * gap:.2g} %" if gap < 0.1 else f"{100 * gap:.1f} %"


def _decimal(x: float) -> str:
    """A plain decimal without exponent, of at most twelve digits."""
    text = format(Decimal(f"{x:.{_DIGITS}g}"), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if _DECIMAL.fullmatch(text) else "0"


def _number(text: str) -> float:
    digits = text.replace(".", "").strip("0")
    if not _DECIMAL.fullmatch(text) or len(digits) > _DIGITS:
        raise ValueError("number of the certificate")
    return float(text)
