"""What the report of a question tells about: its items, under every label that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from discreet.survey.crosses import margins

if TYPE_CHECKING:
    from discreet.survey.public import Public
    from discreet.survey.survey import Question, Survey
    from discreet.survey.translations import Wording


class Told(NamedTuple):
    """Labels, and the budget of the item that each of them names."""

    labels: list[str]
    levels: list[float]
    level_of: list[int]

    def by_label(self) -> list[tuple[str, float]]:
        """Every label with its budget."""
        pairs = zip(self.labels, self.level_of, strict=True)
        return [(label, self.levels[k]) for label, k in pairs]


def told_by(survey: Survey, question: Question, levels: Sequence[float]) -> Told:
    """What a question tells about, if its levels have these budgets. A crossed question is about
    the items of both of its questions. A label counts in every language: otherwise four surveys
    with one translation could ask for one item four times.
    """
    policy = question.policy
    if question.of is None:
        return _spread(translated_labels(survey, question.name), levels, policy.level_of)
    first, second = question.of
    policies = survey.question(first).policy, survey.question(second).policy
    budgets = [
        max(levels[policy.level_of[place]] for place in cells)
        for axis in (0, 1)
        for cells in margins(*policies, axis)
    ]
    labels = [*translated_labels(survey, first), *translated_labels(survey, second)]
    return _spread(labels, budgets, range(len(budgets)))


def _spread(
    labels: Sequence[Sequence[str]], levels: Sequence[float], level_of: Sequence[int]
) -> Told:
    places = [k for item, k in zip(labels, level_of, strict=True) for _ in item]
    return Told([label for item in labels for label in item], list(levels), places)


def translated_labels(survey: Survey, name: str) -> list[list[str]]:
    """The labels of every item of a question, in the languages of the survey: its own first."""
    translations = survey.translations.values()
    items = survey.question(name).policy.items
    return [_labels(item, [t.questions.get(name) for t in translations]) for item in items]


def told_openly(survey: Survey, *public: Public) -> list[str]:
    """The labels of all public answers, or of these questions'."""
    translations = survey.translations.values()
    return [
        label
        for public in public or survey.public
        for item in public.items
        for label in _labels(item, [t.public.get(public.name) for t in translations])
    ]


def _labels(item: str, wordings: Sequence[Wording | None]) -> list[str]:
    shown: list[Mapping[str, str]] = [wording.items for wording in wordings if wording]
    return list(dict.fromkeys([item, *(items.get(item, item) for items in shown)]))
