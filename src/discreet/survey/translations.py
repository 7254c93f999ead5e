"""A survey in more languages. Items stay the same items: only what people read changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.errors import PolicyError
from discreet.policy.labels import is_label, is_prose, quoted
from discreet.policy.validation import refuse_duplicates, refuse_look_alikes
from discreet.survey.about import LINES, TEXTS, read_language, read_notice, read_prose

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

_PARTS = ("about", "questions", "public")


@dataclass(frozen=True)
class Wording:
    """A question in another language; what is left out stays as it is."""

    text: str = ""
    items: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, raw: object, where: str, items: Sequence[str]) -> Wording:
        """From {text: …, items: {item: label, …}}, of a question with these items."""
        if not isinstance(raw, Mapping) or set(raw) - {"text", "items"}:
            raise PolicyError(f"{where} is a table with text and items, got {quoted(raw)}")
        text, labels = raw.get("text", ""), raw.get("items", {})
        if not isinstance(text, str) or not is_prose(text):
            raise PolicyError(f"text = {quoted(text)} in {where} must be a text of one line")
        if not isinstance(labels, Mapping):
            raise PolicyError(
                f'items in {where} must be a table, such as {{ flu = "Grippe" }}, got '
                f"{quoted(labels)}"
            )
        for item, label in labels.items():
            if item not in items:
                raise PolicyError(f"{where} translates {quoted(item)}, which is not an item")
            if not isinstance(label, str) or not is_label(label):
                raise PolicyError(
                    f"the label {quoted(label)} in {where} must be a non-empty text without "
                    "control characters and invisible characters"
                )
        shown = [labels.get(item, item) for item in items]
        refuse_duplicates(shown, f"label in {where}")
        refuse_look_alikes(shown, f"label in {where}")
        return cls(text, {item: labels[item] for item in items if item in labels})

    def to_canonical(self) -> JsonObject:
        """What is said, and nothing that is not."""
        text = {"text": self.text} if self.text else {}
        return text | ({"items": dict(self.items)} if self.items else {})


@dataclass(frozen=True)
class Translation:
    """Everything in one more language."""

    about: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, Wording] = field(default_factory=dict)
    public: Mapping[str, Wording] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        raw: object,
        language: str,
        questions: Mapping[str, Sequence[str]],
        public: Mapping[str, Sequence[str]],
    ) -> Translation:
        """From the table of a language; `questions` and `public` are the items by question."""
        read_language(language)
        where = f"the translation {quoted(language)}"
        if isinstance(raw, Translation):
            return raw
        if not isinstance(raw, Mapping) or set(raw) - set(_PARTS):
            raise PolicyError(f"{where} is a table with {', '.join(_PARTS)}, got {quoted(raw)}")
        about = raw.get("about", {})
        if not isinstance(about, Mapping) or set(about) - {*LINES, *TEXTS}:
            raise PolicyError(
                f"about in {where} is a table of {', '.join((*LINES, *TEXTS))}, got {quoted(about)}"
            )
        parts = []
        for key, known in (("questions", questions), ("public", public)):
            rows = raw.get(key, {})
            if not isinstance(rows, Mapping) or set(rows) - set(known):
                raise PolicyError(
                    f"{key} in {where} is a table of wordings by the names "
                    f"{', '.join(map(quoted, known)) or 'of questions, and there are none'}"
                )
            parts.append(
                {
                    name: Wording.read(rows[name], f"{where} of {quoted(name)}", items)
                    for name, items in known.items()
                    if name in rows
                }
            )
        return cls({key: _read_about(key, text, where) for key, text in about.items()}, *parts)

    def to_canonical(self) -> JsonObject:
        """What is said, and nothing that is not."""
        both = {"questions": self.questions, "public": self.public}
        worded = {
            key: {name: wording.to_canonical() for name, wording in rows.items()}
            for key, rows in both.items()
            if rows
        }
        return {**({"about": dict(self.about)} if self.about else {}), **worded}


def _read_about(key: str, raw: object, where: str) -> str:
    """A text of about: what is empty stays as it is, so it is left out."""
    text = read_prose(key, raw)
    if not text:
        raise PolicyError(f"{key} in {where} is empty; leave it out, and it stays as it is")
    return read_notice(text) if key == "notice" else text
