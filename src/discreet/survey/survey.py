"""What people are invited to. Its fingerprint is what an invitation pins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from discreet.check.document import Fingerprinted, covered, fingerprint, read_document
from discreet.errors import MechanismError, PolicyError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import is_label, quoted
from discreet.policy.lazy import cached_property
from discreet.policy.validation import refuse_duplicates, refuse_look_alikes
from discreet.survey.about import About
from discreet.survey.crosses import cross, margins
from discreet.survey.public import Public
from discreet.survey.translations import Translation

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject
    from discreet.survey.promise import SurveyPromise

FORMAT = "discreet-survey/1"
ONLY = "question"  # the name of a question that nobody named
MOST_QUESTIONS, MOST_PUBLIC, MOST_GROUPS = 100, 8, 10_000
_NAME = 200  # characters of a name


class Draws(Protocol):
    """Where random numbers come from."""

    def below(self, bound: int) -> int:
        """A uniform whole number from 0 to bound - 1."""


@dataclass(frozen=True)
class Question:
    """One question of a survey; a crossed one is `of` two others."""

    name: str
    mechanism: Mechanism
    of: tuple[str, str] | None = None

    @property
    def policy(self) -> Policy:
        """What is asked."""
        return self.mechanism.policy


class Questions(Mapping[str, Mechanism]):
    """The mechanisms of a survey by the names of its questions, in order."""

    def __init__(self, listed: Iterable[Question]) -> None:
        self._by_name = {question.name: question.mechanism for question in listed}

    def __getitem__(self, name: str) -> Mechanism:
        if name not in self._by_name:
            known = ", ".join(map(quoted, self._by_name))
            raise PolicyError(f"{quoted(name)} is not a question of this survey; it asks {known}")
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


# More than 15 public names and 400 lines: the document, its checks and its verbs are read together
# by whoever audits what an invitation pins.
@dataclass(frozen=True)
class Survey(Fingerprinted):
    """One or more questions, how many of them each device answers, and what is asked openly.

    >>> from discreet import Policy, design
    >>> age = design(Policy.from_budgets({"young": "ln(2)", "old": "ln(2)"}))
    >>> strain = design(Policy.from_budgets({"burnout": "ln(2)", "noise": 1, "none": 1}))
    >>> region = {"name": "region", "text": "Where do you work?", "items": ["north", "south"]}
    >>> survey = Survey("clinic", {"age": age, "strain": strain}, public=[region])
    >>> survey.promise().drawn
    'Your device draws 1 of the 2 questions; the other is not asked.'

    Formal guarantee, computed exactly from the checked integers of the questions: for any two whole
    records of answers, whatever the device draws, the probability of everything that is sent
    differs by at most the factor `promise().factor`. Public answers are sent as they are.
    """

    title: ClassVar[str] = "survey"

    name: str
    listed: tuple[Question, ...] = field(repr=False)
    about: About
    answers: int
    public: tuple[Public, ...]
    translations: Mapping[str, Translation] = field(hash=False)

    def __init__(
        self,
        name: str,
        questions: Mapping[str, Mechanism] | Iterable[Mechanism | Question],
        about: About | Mapping[str, object] | None = None,
        answers: int = 1,
        public: Iterable[Public | Mapping[str, object]] = (),
        translations: Mapping[str, object] | None = None,
    ) -> None:
        listed = _listed(questions)
        asked = {q.name: q.policy.items for q in listed if q.of is None}
        openly = tuple(map(Public.read, public))
        for key, value in (
            ("name", name),
            ("listed", listed),
            ("about", About.read({} if about is None else about)),
            ("answers", answers),
            ("public", openly),
        ):
            object.__setattr__(self, key, value)
        _check(self)
        read = {
            language: Translation.read(raw, language, asked, {p.name: p.items for p in openly})
            for language, raw in sorted((translations or {}).items())
        }
        if self.about.language in read:
            raise PolicyError(
                f"the survey is in {quoted(self.about.language)} already; translations are into "
                "other languages"
            )
        object.__setattr__(self, "translations", read)

    # ---- what is in it ---------------------------------------------------------------------------

    @property
    def has_several(self) -> bool:
        """Whether there are several questions, crossed ones among them.

        >>> survey.has_several
        True
        """
        return len(self.listed) > 1

    @cached_property
    def questions(self) -> Questions:
        """The mechanisms by the names of their questions.

        >>> list(survey.questions)
        ['age', 'strain']
        """
        return Questions(self.listed)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of a survey of one question.

        >>> survey.mechanism
        Traceback (most recent call last):
        discreet.errors.PolicyError: the survey has 2 questions; name one: "age", "strain"
        """
        return self.only.mechanism

    @property
    def only(self) -> Question:
        """The question of a survey that has one.

        >>> survey.only
        Traceback (most recent call last):
        discreet.errors.PolicyError: the survey has 2 questions; name one: "age", "strain"
        """
        if self.has_several:
            names = ", ".join(quoted(question.name) for question in self.listed)
            raise PolicyError(f"the survey has {len(self.listed)} questions; name one: {names}")
        return self.listed[0]

    def question(self, name: str | None = None) -> Question:
        """A question by its name; without a name the only one.

        >>> survey.question("age").policy.m
        2
        """
        if name is None:
            return self.only
        self.questions[name]  # raises with the names that there are
        return next(question for question in self.listed if question.name == name)

    def margins(self, name: str) -> dict[str, dict[str, list[str]]]:
        """Of a crossed question: for both of its questions, the cells that each answer sums up.
        `estimate.total` of these cells has the exact error of their sum. Of any other question
        nothing.

        >>> from discreet.survey.crosses import cross
        >>> both = Question("both", design(cross(age.policy, strain.policy)), ("age", "strain"))
        >>> Survey("s", [*survey.listed, both]).margins("both")["age"]["old"]
        ['old × burnout', 'old × noise', 'old × none']
        """
        question = self.question(name)
        if question.of is None:
            return {}
        first, second = (self.question(one).policy for one in question.of)
        items = question.policy.items
        return {
            one: {
                answer: [items[cell] for cell in cells]
                for answer, cells in zip(policy.items, margins(first, second, axis), strict=True)
            }
            for axis, (one, policy) in enumerate(zip(question.of, (first, second), strict=True))
        }

    def poster_words(self) -> dict[str, tuple[str, list[str]]]:
        """By language, what a survey is called on paper and the lines about who asks; only what is
        translated.

        >>> survey.poster_words()
        {}
        """
        only = self.listed[0].name if len(self.listed) == 1 else None
        titles = {}
        for language, said in self.translations.items():
            words = said.questions.get(only) if only else None
            title = words.text if words and words.text else ""
            if title or said.about:
                titles[language] = (title or self.name, [*said.about.values()])
        return titles

    @property
    def group_count(self) -> int:
        """The number of combinations of public answers.

        >>> survey.group_count
        2
        """
        return math.prod(len(public.items) for public in self.public)

    def group(self, places: Iterable[int]) -> tuple[str, ...]:
        """The labels of public answers, given by their places.

        >>> survey.group([1])
        ('south',)
        """
        return tuple(public.items[k] for public, k in zip(self.public, places, strict=True))

    def draw(self, randomness: Draws) -> tuple[int, ...]:
        """The questions that one device answers, by their places: a uniform subset, independent of
        every answer. It is drawn once and remembered before anything is shown.

        >>> from discreet.device.randomness import SystemRandomness
        >>> len(survey.draw(SystemRandomness()))
        1
        """
        rest = list(range(len(self.listed)))
        return tuple(sorted(rest.pop(randomness.below(len(rest))) for _ in range(self.answers)))

    def promise(self) -> SurveyPromise:
        """What is promised about everything that one person sends, and about one answer.

        >>> round(float(survey.promise().factor), 4)
        2.7183
        """
        from discreet.survey.promise import SurveyPromise

        return SurveyPromise(self)

    def differences(self, other: Survey) -> list[str]:
        """One sentence per difference from `other`; empty if it asks and promises the same.

        >>> survey.differences(survey)
        []
        """
        sentences = [
            f"{key} is {quoted(theirs)}, not {quoted(mine)}"
            for key in ("name", "answers")
            if (mine := getattr(self, key)) != (theirs := getattr(other, key))
        ]
        sentences += self.about.differences(other.about)
        if list(self.questions) != list(other.questions):
            ours, theirs = (", ".join(map(quoted, s.questions)) for s in (self, other))
            return [*sentences, f"the questions are {theirs}, not {ours}"]
        for mine, theirs in zip(self.listed, other.listed, strict=True):
            wanted = replace(mine.policy, padding=mine.mechanism.padding)
            both = theirs.mechanism.differences(wanted)
            where = f"{quoted(mine.name)}: " if self.has_several else ""
            sentences += [where + sentence for sentence in both]
            if mine.of != theirs.of:
                sentences.append(f"{quoted(mine.name)} crosses other questions")
        if self.public != other.public:
            sentences.append("the public questions differ")
        if self.translations != other.translations:
            sentences.append("the translations differ")
        return sentences

    # ---- file ------------------------------------------------------------------------------------

    @classmethod
    def design(cls, source: object, **options: Any) -> Survey:
        """Design every question of a survey file, or of its content. The budgets in the file are
        for the whole survey: a question of a survey in which everyone answers h questions is
        designed at its budgets divided by h.

        >>> Survey.design("src/discreet/data/health-survey.toml").name
        'health-survey'
        """
        from discreet.designs.surveys import design_survey

        return design_survey(source, **options)

    def to_canonical(self) -> JsonObject:
        """Everything in the file but the fingerprint: strings and integers only.

        >>> survey.to_canonical()["format"]
        'discreet-survey/1'
        """
        questions = [
            {"name": q.name, **({"of": list(q.of)} if q.of else {}), "mechanism": body}
            for q in self.listed
            for body in [q.mechanism.to_canonical()]
        ]
        document: JsonObject = {"format": FORMAT, "name": self.name, "answers": self.answers}
        document["questions"] = questions
        if about := self.about.to_canonical():
            document["about"] = about
        if self.public:
            document["public"] = [public.to_canonical() for public in self.public]
        if self.translations:
            document["translations"] = {k: t.to_canonical() for k, t in self.translations.items()}
        return document

    @staticmethod
    def fingerprint_body(body: JsonObject) -> str:
        """The fingerprint of a survey's content: how its mechanisms were found is left out.

        >>> Survey.fingerprint_body(survey.to_canonical()) == survey.fingerprint
        True
        """
        rows = body.get("questions")
        if isinstance(rows, list):
            body = {**body, "questions": [_covered(row) for row in rows]}
        return fingerprint(body)

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        """Read a survey file, compare the fingerprint, and check every guarantee exactly. A
        mechanism file is a survey of one question that has the name of the file.

        >>> Survey.load("README.md")
        Traceback (most recent call last):
        discreet.errors.MechanismError: README.md: this is not a mechanism file, which is JSON
        """
        document = read_document(path)
        if "policy" in document:
            return cls(Path(path).stem, [Mechanism.from_document(document)])
        return cls.from_document(document)

    @classmethod
    def from_canonical(cls, body: JsonObject) -> Survey:
        """From the content without its fingerprint, which is not compared: for `discreet check`.

        >>> Survey.from_canonical(survey.to_canonical()) == survey
        True
        """
        if body.get("format") != FORMAT:
            raise MechanismError(f'format = {quoted(body.get("format"))} must be "{FORMAT}"')
        try:
            questions = [
                Question(
                    row["name"],
                    Mechanism.from_canonical(row["mechanism"]),
                    (row["of"][0], row["of"][1]) if "of" in row else None,
                )
                for row in body["questions"]
            ]
            more = (body.get("about"), body["answers"], body.get("public", ()))
            return cls(body["name"], questions, *more, body.get("translations"))
        except PolicyError as error:
            raise MechanismError(f"the survey is wrong: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise MechanismError(f"the survey is not complete: {error!r}") from None

    def _repr_html_(self) -> str:
        from discreet.show import notebook

        return notebook.survey(self)


def _covered(row: object) -> object:
    """A question without how its mechanism was found."""
    if not isinstance(row, dict) or not isinstance(row.get("mechanism"), dict):
        return row
    return {**row, "mechanism": covered(row["mechanism"])}


def _listed(
    questions: Mapping[str, Mechanism] | Iterable[Mechanism | Question],
) -> tuple[Question, ...]:
    """Questions from mechanisms: by name, or in a list and then without names."""
    if isinstance(questions, Mapping):
        return tuple(Question(name, mechanism) for name, mechanism in questions.items())
    listed = list(questions) if isinstance(questions, Iterable) else [questions]
    named = []
    for k, question in enumerate(listed, 1):
        if isinstance(question, Mechanism):
            question = Question(ONLY if len(listed) == 1 else f"q{k}", question)
        if not isinstance(question, Question) or not isinstance(question.mechanism, Mechanism):
            raise PolicyError(
                f"a question is a mechanism, got {quoted(question)}; design(policy) makes one"
            )
        named.append(question)
    return tuple(named)


def _check(survey: Survey) -> None:
    """Raise PolicyError unless everything in a survey fits together."""
    if not 1 <= len(survey.listed) <= MOST_QUESTIONS:
        raise PolicyError(
            f"a survey has 1 to {MOST_QUESTIONS} questions, crossed ones included, got "
            f"{len(survey.listed)}"
        )
    _check_names(survey)
    if type(survey.answers) is not int or not 1 <= survey.answers <= len(survey.listed):
        raise PolicyError(
            f"answers = {quoted(survey.answers)} must be a whole number from 1 to "
            f"{len(survey.listed)}, the number of questions"
        )
    if len(survey.public) > MOST_PUBLIC or survey.group_count > MOST_GROUPS:
        raise PolicyError(
            f"{len(survey.public)} public questions make {survey.group_count:,} groups; at most "
            f"{MOST_PUBLIC} questions and {MOST_GROUPS:,} groups can be counted"
        )
    for question in survey.listed:
        if question.of is not None:
            _check_cross(survey, question)


def _check_names(survey: Survey) -> None:
    names = [*(q.name for q in survey.listed), *(public.name for public in survey.public)]
    for name in [survey.name, *names]:
        fine = isinstance(name, str) and is_label(name) and len(name) <= _NAME
        if not fine or name != name.strip():
            raise PolicyError(
                f"name = {quoted(name)} must be a non-empty text of at most {_NAME} characters, "
                "without control characters and invisible characters"
            )
    for name in names:
        if ":" in name:
            raise PolicyError(f"the name {quoted(name)} of a question must not have a colon")
    refuse_duplicates(names, "question")
    refuse_look_alikes(names, "question")


def _check_cross(survey: Survey, question: Question) -> None:
    by_name = {q.name: q for q in survey.listed if q.of is None}
    unknown = [name for name in question.of or () if name not in by_name]
    if unknown or len(set(question.of or ())) != 2:
        raise PolicyError(
            f"{quoted(question.name)} crosses {quoted(list(question.of or ()))}; it must name two "
            "questions of the survey that are not crossed themselves"
        )
    first, second = (by_name[name].policy for name in question.of or ())
    expected = cross(first, second, question.policy.question)
    differences = question.policy.differences(expected)
    if differences:
        raise PolicyError(
            f"{quoted(question.name)} is not the cross of its two questions: {differences[0]}"
        )
