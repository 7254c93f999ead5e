"""Public questions: asked and sent openly, and results are counted by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.errors import PolicyError
from discreet.policy.labels import is_label, is_prose, quoted
from discreet.policy.validation import refuse_duplicates, refuse_look_alikes

MOST_ITEMS = 255  # of a public question: the chosen one is a byte of the frame
# columns of files of reports, of tables of results, and of populations
RESERVED = (
    "report", "count", "fingerprint", "question", "people",
    "item", "level", "stderr", "lower", "upper", "share", "share_low", "share_high",
    "n", "confidence", "about", "effective_n",
    "shrunk", "shrunk_sd", "shrunk_lower", "shrunk_upper", "consistent",
)  # fmt: skip


@dataclass(frozen=True)
class Public:
    """A question whose answer is sent as it is, such as a region or an age group.

    >>> Public("region", "Where do you work?", ["north", "south"]).items
    ('north', 'south')
    """

    name: str
    text: str
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        where = f"the public question {quoted(self.name)}"
        if self.name in RESERVED:
            raise PolicyError(
                f"{where} has the name of a column of every table of reports or results; call it "
                "something else"
            )
        if not isinstance(self.text, str) or not is_prose(self.text):
            raise PolicyError(f"text = {quoted(self.text)} of {where} must be a text of one line")
        items: object = self.items
        if isinstance(items, str) or not isinstance(items, Sequence):
            raise PolicyError(f"items = {quoted(items)} of {where} must be a list of labels")
        object.__setattr__(self, "items", tuple(items))
        if not 2 <= len(self.items) <= MOST_ITEMS:
            raise PolicyError(
                f"{where} has {len(self.items)} items; it must have from 2 to {MOST_ITEMS}"
            )
        for item in self.items:
            if not isinstance(item, str) or not is_label(item):
                raise PolicyError(
                    f"item {quoted(item)} of {where} must be a non-empty text without control "
                    "characters and invisible characters"
                )
        refuse_duplicates(self.items, "item")
        refuse_look_alikes(self.items, "item")

    @classmethod
    def read(cls, raw: object) -> Public:
        """Itself, or from a table of a survey file."""
        if isinstance(raw, Public):
            return raw
        if not isinstance(raw, Mapping) or set(raw) - {"name", "text", "items"}:
            raise PolicyError(
                f"a public question is a table with name, text and items, got {quoted(raw)}"
            )
        if "name" not in raw or "items" not in raw:
            raise PolicyError("a public question needs a name and items")
        return cls(raw["name"], raw.get("text", raw["name"]), raw["items"])

    def place(self, answer: str) -> int:
        """The place of an answer, given by its label."""
        if answer not in self.items:
            listed = ", ".join(map(quoted, self.items[:10])) + (", …" * (len(self.items) > 10))
            raise PolicyError(f'"{self.name}" has the answers {listed}')
        return self.items.index(answer)

    def to_canonical(self) -> dict[str, object]:
        """As the survey's document holds it."""
        return {"name": self.name, "text": self.text, "items": list(self.items)}
