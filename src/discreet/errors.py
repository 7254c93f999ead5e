"""Everything discreet refuses, as one base exception and small named children.

Each message is one sentence that says what was wrong, what was got and what is allowed; the
attributes say the same to code.
"""

from __future__ import annotations


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose."""


class PolicyError(DiscreetError):
    """A policy that cannot be used: an unknown key, a bad budget, an item named twice."""


class DesignError(DiscreetError):
    """A design that was asked for and cannot be had: an unknown model, a missing padding."""


class MechanismError(DiscreetError):
    """A mechanism file that cannot be read as one."""


class FingerprintError(MechanismError):
    """A mechanism file whose content does not match the fingerprint it carries."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(
            f"the content has fingerprint {got[:16]}… but the file says {expected[:16]}…: it was "
            "changed "
            "after it was made; get it again from the organiser"
        )
        self.expected, self.got = expected, got


class GuaranteeError(DiscreetError):
    """Probabilities that break their policy; such a mechanism cannot be constructed."""

    def __init__(
        self, sentence: str, levels: tuple[str, ...] = (), part: int | None = None
    ) -> None:
        super().__init__(sentence)
        self.levels, self.part = levels, part


class DataError(DiscreetError):
    """Answers, reports or tallies that cannot be used."""


class MissingExtra(DiscreetError):
    """Something that needs an optional dependency which is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs the extra "{extra}": pip install "discreet[{extra}]"')
        self.extra = extra
