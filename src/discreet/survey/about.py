"""The organiser, the purpose and the dates: what a participant reads before the question, and what
the fingerprint covers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from discreet.errors import PolicyError
from discreet.policy.labels import is_prose, is_visible, quoted

REHEARSAL = (
    "Rehearsal: "  # before every question of one, so that its reports are of another mechanism
)
LEAST = 50  # reports before anyone without the token is shown anything, unless more are asked for
LINE, TEXT, MOST = 200, 4_000, 10**9  # characters of a line and of a text; the largest minimum
LINES = ("organiser", "contact", "notice")
TEXTS = ("purpose", "consent")
_LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class About:
    """Everything may be left out; times are in UTC.

    >>> About(organiser="City of Ghent", closes="2026-12-01T20:00:00+01:00").closes
    '2026-12-01T19:00:00Z'
    """

    organiser: str = ""
    contact: str = ""  # an address, a telephone number, a page
    notice: str = ""  # the address of a privacy notice
    purpose: str = ""  # may have several lines, as may the consent
    consent: str = ""  # what people agree to by sending
    language: str = ""  # of the question and its items, such as "en" or "pt-BR"
    opens: str = ""  # read from a datetime or a text with an offset from UTC
    closes: str = ""
    minimum: int = 0  # reports before results are shown to anyone; 0 is the collector's own
    rehearsal: bool = False  # simulated people answer, to try things out: nothing in it is real

    def __post_init__(self) -> None:
        for key in (*LINES, *TEXTS):
            object.__setattr__(self, key, read_prose(key, getattr(self, key)))
        for key in ("opens", "closes"):
            object.__setattr__(self, key, _time(key, getattr(self, key)))
        if self.language != "":
            read_language(self.language)
        if self.notice:
            read_notice(self.notice)
        if self.opens and self.closes and self.opens >= self.closes:
            raise PolicyError(f"closes = {self.closes} must be after opens = {self.opens}")
        if type(self.minimum) is not int or not (
            self.minimum == 0 or LEAST <= self.minimum <= MOST
        ):
            raise PolicyError(
                f"minimum = {quoted(self.minimum)} must be a whole number from {LEAST} to "
                f"{MOST:,}: with fewer reports nothing is shown to anyone"
            )
        if not isinstance(self.rehearsal, bool):
            raise PolicyError(f"rehearsal = {quoted(self.rehearsal)} must be true or false")

    @classmethod
    def read(cls, raw: object) -> About:
        """Itself, or from the table `about` of a survey file, or from `to_canonical`."""
        if isinstance(raw, About):
            return raw
        if not isinstance(raw, Mapping):
            raise PolicyError(f"about must be a table of keys and values, got {quoted(raw)}")
        keys = [field.name for field in fields(cls)]
        unknown = next((key for key in raw if key not in keys), None)
        if unknown is not None:
            raise PolicyError(
                f"unknown key {quoted(unknown)} in about; known are {', '.join(sorted(keys))}"
            )
        return cls(**raw)

    def to_canonical(self) -> dict[str, str | int]:
        """What is said, and nothing that is not."""
        return {f.name: said for f in fields(self) if (said := getattr(self, f.name))}

    def differences(self, other: About) -> list[str]:
        """A sentence for every key in which `other` differs."""
        return [
            f"{key} is {quoted(theirs)}, not {quoted(mine)}"
            for key in (f.name for f in fields(self))
            if (mine := getattr(self, key)) != (theirs := getattr(other, key))
        ]

    @property
    def least(self) -> int:
        """Reports before anyone without the token is shown anything."""
        return self.minimum or LEAST

    def state(self, now: datetime) -> str:
        """What its times say: "upcoming", "open" or "closed"."""
        moment = now.astimezone(UTC).strftime(_TIME)
        if self.closes and moment >= self.closes:
            return "closed"
        return "upcoming" if moment < self.opens else "open"

    def rows(self) -> list[tuple[str, str]]:
        """What there is to read, for a terminal: heading and text, line by line."""
        lines = {
            "organiser": self.organiser,
            "contact": self.contact,
            "privacy notice": self.notice,
            "purpose": self.purpose,
            "by sending you agree": self.consent,
            "opens": moment(self.opens),
            "closes": moment(self.closes),
            "results": self.minimum
            and f"once {self.minimum:,} reports are in; before that, only the organiser can see "
            "them",
            "rehearsal": "nothing here is real; simulated people answer" * self.rehearsal,
        }
        return [(key, line) for key, text in lines.items() if text for line in text.split("\n")]


def moment(time: str) -> str:
    """A time for people: to the minute where the seconds say nothing."""
    return time.replace("T", " ").removesuffix("Z").removesuffix(":00") + " UTC" if time else ""


def read_language(tag: object) -> str:
    """A language tag, or PolicyError."""
    if not isinstance(tag, str) or not _LANGUAGE.fullmatch(tag):
        raise PolicyError(
            f'language = {quoted(tag)} must be a language tag such as "en" or "pt-BR"'
        )
    return tag


def read_notice(text: str) -> str:
    """The address of a page, or PolicyError."""
    if not text.startswith(("https://", "http://")):
        raise PolicyError(f"notice = {quoted(text)} must be the address of a page, https://…")
    return text


def read_prose(key: str, text: object) -> str:
    """A line, or for some keys several."""
    lines = key in TEXTS
    if isinstance(text, str):
        text = text.replace("\r\n", "\n").strip() if lines else text.strip()
        parts = text.split("\n") if lines else [text]
        fine = all(map(is_prose, parts)) and (not text or is_visible(text))
        if fine and len(text) <= (TEXT if lines else LINE):
            return str(text)
    allowed = f"a text of at most {TEXT:,}" if lines else f"a line of at most {LINE}"
    raise PolicyError(
        f"{key} = {quoted(text)} must be {allowed} characters, without control characters and "
        "invisible characters"
    )


def _time(key: str, raw: object) -> str:
    bad = PolicyError(
        f"{key} = {quoted(raw)} must be a date and a time with an offset from UTC, such as "
        "2026-12-01T20:00:00+01:00"
    )
    if raw == "":
        return ""
    try:
        time = datetime.fromisoformat(raw) if isinstance(raw, str) else raw
        if not isinstance(time, datetime) or time.tzinfo is None or time.microsecond:
            raise bad
        time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad from None
    if time.year < 1970:
        raise bad
    return time.strftime(_TIME)
