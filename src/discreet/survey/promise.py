"""What a survey promises about everything that one person sends, from the promises of its
questions.

A device answers h of the questions, drawn whatever the answers are, and the reports are independent
given the answers. So for two whole records the chance of everything that is sent differs by at most
the largest product of the factors of h questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted
from discreet.promises.guarantee import Guarantee
from discreet.promises.published import Published, together
from discreet.promises.ratios import Factor, factor_against, level_factors, log
from discreet.promises.sentences import SAFE, WEAK
from discreet.promises.words import in_words
from discreet.survey.crosses import margins
from discreet.survey.survey import Survey


@dataclass(frozen=True)
class SurveyPromise:
    """The promise of a survey.

    >>> from discreet import Policy, Survey, design
    >>> age = design(Policy.from_budgets({"young": "ln(2)", "old": "ln(2)"}))
    >>> strain = design(Policy.from_budgets({"burnout": "ln(2)", "noise": 1, "none": 1}))
    >>> promise = Survey("clinic", {"age": age, "strain": strain}).promise()
    """

    survey: Survey

    @property
    def holds(self) -> bool:
        """Whether the exact check agrees for every question; it runs again each time.

        >>> promise.holds
        True
        """
        return all(mechanism.check() is None for mechanism in self.survey.questions.values())

    @property
    def factor(self) -> Factor:
        """By how much everything that one person sends can tell two whole records apart; infinite
        where one of the questions can show that something is not the answer.

        >>> round(float(promise.factor), 4)
        2.7183
        """
        return self._together(whole_factor)

    def answer_factor(self, name: str) -> Factor:
        """The same for records that differ in the answer to one question: crossed questions tell of
        it, too.

        >>> round(float(promise.answer_factor("age")), 4)
        2.0
        """
        self.survey.question(name)
        return self._product(
            whole_factor(q.mechanism)
            for q in self.survey.listed
            if q.name == name or name in (q.of or ())
        )

    def answer_sentence(self, name: str) -> str:
        """What everything that is sent tells of the answer to one question; empty where that is no
        more than the question's own report tells.

        >>> promise.answer_sentence("age")
        ''
        """
        factor = self.answer_factor(name)
        own = whole_factor(self.survey.question(name).mechanism)
        more = self.survey.answers > 1 and factor > own
        if not more and not self._crossed_tells_more(name):
            return ""
        return (
            "Another question of this survey tells about this answer too: whoever sees everything "
            f"you send can change their odds between it and any other by at most {_factor(factor)}."
        )

    def _crossed_tells_more(self, name: str) -> bool:
        """Whether a crossed report can tell more of an answer than the promise of its level: a
        mechanism may keep less than its budgets allow, and another one use all of them.
        """
        own = self.survey.question(name)
        for q in self.survey.listed:
            if q.of is None or name not in q.of:
                continue
            first, second = (self.survey.question(one).policy for one in q.of)
            cells = margins(first, second, q.of.index(name))
            level_of = q.policy.level_of
            levels = [frozenset(level_of[cell] for cell in places) for places in cells]
            counts = Counter(level for mine in levels for level in mine)
            promised = own.mechanism.guarantee().factors
            for level, mine in set(zip(own.policy.level_of, levels, strict=True)):
                others = [k for k, count in counts.items() if count > (k in mine)]
                largest = max(factor_against(q.mechanism, one, others) for one in mine)
                if largest > promised[level] and in_words(largest) != in_words(promised[level]):
                    return True
        return False

    def _together(self, factor: Callable[[Mechanism], Factor]) -> Factor:
        return self._product(map(factor, self.survey.questions.values()))

    def _product(self, factors: Iterable[Factor]) -> Factor:
        """Of the largest, as many as one device answers."""
        largest = sorted(factors, reverse=True)[: self.survey.answers]
        return math.inf if math.inf in largest else math.prod(largest, start=Fraction(1))

    @property
    def epsilon(self) -> float:
        """The same as a budget of plain LDP.

        >>> round(promise.epsilon, 4)
        1.0
        """
        return log(self.factor)

    def published(
        self, people: Mapping[str, int], delta: float = 1e-8, grouped: bool = False
    ) -> Published | None:
        """What someone learns who sees only the results of all questions; None where that is no
        less than what the reports tell.

        `people` says how many reports there are per question; for results by group, in the smallest
        group, and `grouped` says so.

        >>> promise.published({"age": 50_000, "strain": 50_000}).epsilon < promise.epsilon / 4
        True
        """
        reports = [(log(whole_factor(q.mechanism)), people[q.name]) for q in self.survey.listed]
        return together(reports, self.survey.answers, delta, grouped)

    @property
    def caution(self) -> str:
        """A warning that replaces every reassuring sentence; empty if none is needed.

        >>> promise.caution
        ''
        """
        if len(self.survey.listed) == 1:
            return self._guarantee(0).caution
        cautions = [
            f"{q.name}: {caution}"
            for k, q in enumerate(self.survey.listed)
            if (caution := self._guarantee(k).caution)
        ]
        together = self._together(_raised_factor)
        if together > WEAK and (self.survey.answers > 1 or not cautions):
            change = "change the odds between two records"
            if together < self.factor:  # the odds against an answer have no limit
                change = "raise the odds of your answers"
            cautions.append(
                f"This is weak protection: everything you send together can {change} by up to "
                f"{_factor(together)}."
            )
        return " ".join(cautions)

    def _guarantee(self, k: int) -> Guarantee:
        return self.survey.listed[k].mechanism.guarantee()

    @property
    def sentence(self) -> str:
        """One sentence about everything that a person sends.

        >>> promise.sentence[-28:]
        'by at most a factor of 2.72.'
        """
        if self.factor == math.inf:
            return (
                "What everything you send can tell has no limit: of some answers it may become "
                "known that they are yours, or that they are not. Each question says which."
                f"{self._openly}"
            )
        return (
            "Whoever sees everything you send can change their odds between your answers and any "
            f"others by at most {_factor(self.factor)}.{self._openly}"
        )

    @property
    def _openly(self) -> str:
        """Public answers are outside every promise."""
        if not self.survey.public:
            return ""
        names = " and ".join(quoted(public.name) for public in self.survey.public)
        return f" Answers to {names} are sent as they are; this does not cover them."

    @property
    def lead(self) -> str:
        """The first sentence for a participant. It reassures only if that is true.

        >>> promise.lead[:67]
        'Your device changes your answers at random before anything is sent.'
        """
        if len(self.survey.listed) == 1:
            return self._guarantee(0).lead
        change = "Your device changes your answers at random before anything is sent."
        return f"{change} {self.caution or SAFE}"

    @property
    def drawn(self) -> str:
        """What the device draws; empty if everyone answers everything.

        >>> promise.drawn
        'Your device draws 1 of the 2 questions; the other is not asked.'
        """
        asked, there = self.survey.answers, len(self.survey.listed)
        if asked == there:
            return ""
        rest = "the other is" if there - asked == 1 else f"the other {there - asked} are"
        return f"Your device draws {asked} of the {there} questions; {rest} not asked."

    def sentences(self) -> list[str]:
        """The promise in sentences: about everything, then about every question.

        >>> len(promise.sentences())
        5
        """
        if len(self.survey.listed) == 1:
            return [*self._guarantee(0).sentences(), *filter(None, [self._openly.strip()])]
        each = [
            f"{q.name}: {sentence}"
            for k, q in enumerate(self.survey.listed)
            for sentence in (*self._guarantee(k).sentences(), self.answer_sentence(q.name))
            if sentence
        ]
        return [*([self.drawn] if self.drawn else []), self.sentence, *each]


def _factor(factor: Factor) -> str:
    return f"a factor of {in_words(factor)}"


def whole_factor(mechanism: Mechanism) -> Factor:
    """By how much a report can tell any two answers apart, never less than the truth."""
    guarantee = mechanism.guarantee()
    if mechanism.policy.kind.pads:
        return guarantee.set_factor
    if mechanism.policy.kind.lists:
        if not guarantee.is_mutual:  # that an item is lacking may become known
            return math.inf
        each = zip(guarantee.factors, mechanism.policy.level_sizes, strict=True)
        return math.prod((Fraction(f) ** size for f, size in each), start=Fraction(1))
    return max(level_factors(mechanism))


def _raised_factor(mechanism: Mechanism) -> Factor:
    """By how much a report can raise the odds of protected answers, where only that has a limit;
    otherwise `whole_factor`.
    """
    guarantee = mechanism.guarantee()
    if guarantee.is_mutual:
        return whole_factor(mechanism)
    finite = [
        (factor, size)
        for factor, size in zip(guarantee.factors, mechanism.policy.level_sizes, strict=True)
        if factor < math.inf
    ]
    if mechanism.policy.kind.lists:
        return math.prod((Fraction(f) ** size for f, size in finite), start=Fraction(1))
    return max((factor for factor, _ in finite), default=Fraction(1))
