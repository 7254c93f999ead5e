"""What everything that one person sends tells: every pair of whole records, in fractions, and what
a device draws.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from checks import assert_binomial, must_fail
from exhaustive import apart, budget, distribution, factor, in_one_unit

import discreet as d
from discreet.device.randomness import SystemRandomness
from discreet.promises.ratios import ratio
from discreet.promises.words import in_words
from discreet.survey import Question
from discreet.survey.crosses import cross, margins
from discreet.survey.promise import whole_factor

AGE = {"young": 2, "old": 1}
ILL = {"HIV": "ln(2)", "flu": 2, "none": 2}
WORK = {"day": 3, "night": 3}


def policy(budgets):
    return d.Policy.from_budgets(budgets)


@cache
def plain(answers, parts=None, model="subset"):
    """Two questions and their cross, in which everyone answers so many; the budgets are divided by
    `parts`, which is the same number unless something is planted.
    """
    settings = {"encoding": "bits"} if model == "subset" else {}
    asked = {"age": policy(AGE), "ill": policy(ILL)}
    parts = parts or answers
    made = {name: d.design(each.divided(parts), model, **settings) for name, each in asked.items()}
    crossed = d.design(cross(*asked.values()).divided(parts), model, **settings)
    listed = [Question(name, each) for name, each in made.items()]
    return d.Survey("s", [*listed, Question("both", crossed, ("age", "ill"))], answers=answers)


@cache
def uneven(answers, parts=None):
    """Three questions with budgets of their own, without a cross."""
    asked = {"age": AGE, "ill": ILL, "work": WORK}
    made = {
        name: d.design(policy(each).divided(parts or answers), "subset", encoding="bits")
        for name, each in asked.items()
    }
    return d.Survey("s", made, answers=answers)


# ---- everything that can be sent -----------------------------------------------------------------


def records(survey):
    """Every whole record: an answer to each question that is not crossed."""
    asked = [question for question in survey.listed if question.of is None]
    for places in product(*(range(question.policy.m) for question in asked)):
        yield tuple(zip((question.name for question in asked), places))


def answer_to(survey, question, record):
    """The item of a question that a record holds; of a crossed one, the pair's."""
    held = dict(record)
    if question.of is None:
        return held[question.name]
    first, second = question.of
    return held[first] * survey.questions[second].m + held[second]


def uniformly(survey):
    """What a device draws: every subset with the same chance, whatever it answers."""
    subsets = list(combinations(range(len(survey.listed)), survey.answers))
    return lambda record: dict.fromkeys(subsets, Fraction(1, len(subsets)))


def law(survey, record, draws):
    """Pr(everything that is sent | a record). Nothing links the frames and their order is random,
    so what is seen is which reports came, on which questions.
    """
    found = Counter()
    for drawn, chance in draws(record).items():
        each = [
            [((place, report), p) for report, p in _reports(survey, place, record).items()]
            for place in drawn
        ]
        for sent in product(*each):
            frames = tuple(sorted(frame for frame, _ in sent))
            found[frames] += chance * math.prod((p for _, p in sent), start=Fraction(1))
    assert sum(found.values()) == 1
    return found


def _reports(survey, place, record):
    question = survey.listed[place]
    return _distribution(question.mechanism, answer_to(survey, question, record))


@cache
def _distribution(mechanism, item):
    return distribution(mechanism.to_document(), item)


def worst(survey, draws, name=None):
    """The largest ratio of two records' chances of the same; of records that differ in the answer
    to one question, if it is named.
    """
    rows = in_one_unit({record: law(survey, record, draws) for record in records(survey)})
    most = Fraction(1)
    for one, other in product(rows, repeat=2):
        changed = {key for (key, x), (_, y) in zip(one, other, strict=True) if x != y}
        if name is None or changed <= {name}:
            never = any(p and not q for p, q in zip(rows[one], rows[other], strict=True))
            most = math.inf if never else max(most, apart(rows[one], rows[other]))
        if most == math.inf:
            break
    return most


def of_the_file(*questions):
    """e^(the largest budget), a rational just above it."""
    return factor(max(budget(str(text)) for budgets in questions for text in budgets.values()))[1]


def assert_within(found, limit):
    assert found <= limit, (float(found), float(limit))


SURVEYS = {
    "a cross, one answer": (lambda: plain(1), (AGE, ILL)),
    "a cross, two answers": (lambda: plain(2), (AGE, ILL)),
    "a cross, tickets of one item": (lambda: plain(1, model="grr"), (AGE, ILL)),
    "three questions, one answer": (lambda: uneven(1), (AGE, ILL, WORK)),
    "three questions, two answers": (lambda: uneven(2), (AGE, ILL, WORK)),
    "three questions, all answers": (lambda: uneven(3), (AGE, ILL, WORK)),
}
EVERY = pytest.mark.parametrize(("made", "budgets"), SURVEYS.values(), ids=SURVEYS)


@EVERY
def test_any_two_records_are_within_the_promise_and_the_budgets_of_the_file(made, budgets):
    survey = made()
    found = worst(survey, uniformly(survey))
    promise = survey.promise()
    assert_within(found, promise.factor)
    assert_within(promise.factor, of_the_file(*budgets))
    assert found > promise.factor ** Fraction(9, 10)  # and it is no empty promise
    assert promise.epsilon == pytest.approx(math.log(promise.factor))


@EVERY
def test_records_that_differ_in_one_answer_are_within_its_promise(made, budgets):
    survey = made()
    for question in survey.listed:
        if question.of is None:
            found = worst(survey, uniformly(survey), question.name)
            limit = survey.promise().answer_factor(question.name)
            assert_within(found, limit)
            assert 1 < found and limit <= survey.promise().factor


@pytest.mark.parametrize("drawn", [(0,), (1,), (2,)])
def test_the_promise_holds_whatever_was_drawn(drawn):
    """Also for somebody who knows which question it was."""
    survey = plain(1)
    assert_within(worst(survey, lambda record: {drawn: Fraction(1)}), survey.promise().factor)


# ---- twins ---------------------------------------------------------------------------------------


def test_a_question_drawn_twice_is_seen():
    """A device that answers the question of the largest budget a second time."""
    for survey, drawn in ((plain(1), (1, 1)), (uneven(2), (2, 2))):
        found = worst(survey, lambda record, drawn=drawn: {drawn: Fraction(1)})
        must_fail(assert_within, found, survey.promise().factor)


def test_with_replacement_is_seen():
    """A draw that may take a question twice, as somebody could write it in good faith."""
    survey = uneven(2)
    pairs = [tuple(sorted(pair)) for pair in product(range(3), repeat=2)]
    chances = {pair: Fraction(pairs.count(pair), len(pairs)) for pair in pairs}
    must_fail(assert_within, worst(survey, lambda record: chances), survey.promise().factor)


@pytest.mark.parametrize(
    ("made", "budgets"), [(plain, (AGE, ILL)), (uneven, (AGE, ILL, WORK))], ids=["cross", "uneven"]
)
def test_budgets_that_are_not_divided_are_seen(made, budgets):
    """The promise says what is so; the file's budgets do not hold."""
    survey = made(2, parts=1)
    found = worst(survey, uniformly(survey))
    assert_within(found, survey.promise().factor)
    for told in (found, survey.promise().factor):
        must_fail(assert_within, told, of_the_file(*budgets))


@pytest.mark.parametrize("more", [Fraction(1, 2), Fraction(2, 3), Fraction(1)])
def test_a_draw_that_depends_on_an_answer_is_seen(more):
    """People who are ill are asked about it more often: that they were asked tells it."""
    survey = uneven(1)

    def draws(record):
        chance = more if dict(record)["work"] == 0 else Fraction(1, 3)
        rest = (1 - chance) / 2
        return {(0,): rest, (1,): rest, (2,): chance}

    must_fail(assert_within, worst(survey, draws), survey.promise().factor)


# ---- the draw ------------------------------------------------------------------------------------


class Scripted:
    """Random numbers as they are told; beyond the script zeros. Keeps the bounds that were asked
    for.
    """

    def __init__(self, numbers):
        self.numbers, self.bounds = list(numbers), []

    def below(self, bound):
        self.bounds.append(bound)
        return self.numbers.pop(0) if self.numbers else 0


def chances(draw):
    """Pr(what is drawn), from every sequence of uniform numbers that it may ask for."""
    found, todo = Counter(), [()]
    while todo:
        numbers = todo.pop()
        source = Scripted(numbers)
        drawn = draw(source)
        if len(source.bounds) > len(numbers):
            todo += [(*numbers, k) for k in range(source.bounds[len(numbers)])]
        else:
            found[drawn] += Fraction(1, math.prod(source.bounds))
    return found


def survey_of(count, answers):
    (made,) = uneven(1).listed[:1]
    listed = [Question(f"q{k}", made.mechanism) for k in range(count)]
    return d.Survey("s", listed, answers=answers)


@pytest.mark.parametrize(("count", "answers"), [(1, 1), (3, 1), (3, 3), (4, 2), (5, 3)])
def test_every_subset_has_the_same_chance_exactly(count, answers):
    found = chances(survey_of(count, answers).draw)
    subsets = list(combinations(range(count), answers))
    assert found == dict.fromkeys(subsets, Fraction(1, len(subsets)))


def test_a_draw_that_is_not_uniform_is_seen_exactly():
    """The first question of a place drawn from all, the second from the rest in order."""

    def careless(source):
        first = source.below(4)
        return tuple(sorted((first, [k for k in range(4) if k != first][source.below(2)])))

    assert len(set(chances(careless).values())) > 1


def drawn(survey, n):
    source = SystemRandomness()
    return Counter(survey.draw(source) for _ in range(n))


def test_devices_draw_every_subset_equally_often():
    """30,000 devices: catches a shift of 0.013 in the chance of a pair."""
    n, survey = 30_000, survey_of(5, 2)
    found, pairs = drawn(survey, n), list(combinations(range(5), 2))
    assert set(found) == set(pairs)
    counts, even = np.array([found[pair] for pair in pairs]), np.full(len(pairs), 1 / len(pairs))
    assert_binomial(counts, n, even)
    skewed = Counter(pair if pair != (0, 1) else (3, 4) for pair in found.elements())
    must_fail(assert_binomial, np.array([skewed[pair] for pair in pairs]), n, even)


# ---- what is said --------------------------------------------------------------------------------


def test_a_survey_of_one_question_promises_what_its_question_does():
    made = d.design(policy(ILL), "opt0")
    survey, guarantee = d.Survey("s", [made]), made.guarantee()
    promise = survey.promise()
    assert promise.holds and promise.drawn == ""
    assert (promise.sentences(), promise.lead) == (guarantee.sentences(), guarantee.lead)
    assert promise.caution == guarantee.caution


def test_what_is_drawn_and_the_whole_come_before_every_question():
    sentences = plain(2).promise().sentences()
    assert sentences[0] == "Your device draws 2 of the 3 questions; the other is not asked."
    assert (
        "everything you send" in sentences[1]
        and f"{float(plain(2).promise().factor):.3g}" in sentences[1]
    )
    assert [line.partition(":")[0] for line in sentences[2:]].count("both") >= 1
    assert uneven(3).promise().drawn == ""
    assert plain(1).promise().drawn.endswith("; the other 2 are not asked.")


def test_weak_protection_of_the_whole_is_said_even_if_no_question_is_weak():
    """Each question has a budget of 4; all three together are as weak as one of 12."""
    made = d.design(policy(dict.fromkeys("ab", 4)), "opt0")
    assert made.guarantee().caution == ""
    one, three = (d.Survey("s", [made] * 3, answers=h).promise() for h in (1, 3))
    assert one.caution == "" and "weak protection" in three.caution
    assert "weak protection" in three.lead


def test_an_answer_that_a_cross_tells_about_too_is_said():
    """Both may be drawn: two reports tell of one answer, and its own report is not all."""
    promise = plain(2).promise()
    for name in ("age", "ill"):
        factor = promise.answer_factor(name)
        assert factor > whole_factor(plain(2).question(name).mechanism)
        sentence = promise.answer_sentence(name)
        assert sentence.endswith(f"any other by at most a factor of {in_words(factor)}.")
        assert f"{name}: {sentence}" in promise.sentences()
    assert uneven(2).promise().answer_sentence("age") == ""
    assert plain(1).promise().answer_sentence("age") == ""  # one report, of either


LOOSE = (((3, 1), (0.5, 3), (2, 1)), ((1.5, 3), (2, 1)))  # budgets, and items with them
CROSSED = [
    LOOSE,
    (((1, 2),), ((2, 1), (1, 2))),
    (((2, 1), (1, 1)), ((2, 2),)),  # a cross of which only the other answer is told more
    (((3, 1), (1, 1)), ((1.5, 3), (3, 1), (1, 1))),
    (((0.5, 1), (1, 1), (2, 2)), ((3, 1), (0.5, 2))),
]


@cache
def drawn_alone(first, second):
    """Two questions and their cross, of which everyone answers one."""
    asked = [
        d.Policy.from_levels(
            [(f"l{k}", e, [f"{tag}{k}{j}" for j in range(n)]) for k, (e, n) in enumerate(rows)]
        )
        for tag, rows in (("a", first), ("b", second))
    ]
    made = [d.design(each) for each in (*asked, cross(*asked))]
    names = [Question("age", made[0]), Question("ill", made[1])]
    return d.Survey("s", [*names, Question("both", made[2], ("age", "ill"))])


def told_by_the_cross(survey, axis):
    """Per answer the largest factor between a cell of it and one of another answer."""
    mechanism = survey.question("both").mechanism
    policies = [survey.question(name).policy for name in ("age", "ill")]
    groups = [mechanism.groups[k] for k in mechanism.policy.level_of]
    cells = margins(*policies, axis)
    return [
        max(
            ratio(high, low)
            for part in mechanism.parts
            for cell in mine
            for other in sum(cells[:k] + cells[k + 1 :], [])
            for x, y in [(part.states[groups[cell]], part.states[groups[other]])]
            for high, low in ((x[0], y[1]), (y[0], x[1]))
        )
        for k, mine in enumerate(cells)
    ]


@pytest.mark.parametrize(("first", "second"), CROSSED)
def test_a_cross_that_tells_more_than_the_question_itself_is_said(first, second):
    """A mechanism may keep less than its budgets allow, and the cross, drawn in its place, all."""
    survey = drawn_alone(first, second)
    for axis, name in enumerate(("age", "ill")):
        own = survey.question(name)
        promised = [own.mechanism.guarantee().factors[k] for k in own.policy.level_of]
        told = told_by_the_cross(survey, axis)
        more = [(x, y) for x, y in zip(told, promised, strict=True) if x > y]
        differs = any(in_words(x) != in_words(y) for x, y in more)
        sentence = survey.promise().answer_sentence(name)
        assert bool(sentence) == differs
        if sentence:
            assert max(told) <= survey.promise().answer_factor(name)
    assert drawn_alone(*LOOSE).promise().answer_sentence("age")


def test_public_answers_are_outside_the_promise():
    public = [{"name": name, "text": "?", "items": ["a", "b"]} for name in ("region", "shift")]
    made = {name: d.design(policy(each)) for name, each in (("age", AGE), ("ill", ILL))}
    words = 'Answers to "region" and "shift" are sent as they are; this does not cover them.'
    assert d.Survey("s", made, public=public).promise().sentence.endswith(f". {words}")
    assert words in d.Survey("s", [made["age"]], public=public).promise().sentences()
    assert "as they are" not in " ".join(d.Survey("s", made).promise().sentences())


# ---- what results alone tell ---------------------------------------------------------------------


@pytest.mark.parametrize("answers", [1, 2])
def test_results_of_all_questions_together(answers):
    """As many of the largest budgets as a device answers, the cross included, each but for its part
    of delta; the smallest group counts, question by question.
    """
    survey = plain(answers)
    people = {"age": 40_000, "ill": 20_000, "both": 30_000}
    each = [
        q.mechanism.guarantee().published(people[q.name], 1e-8 / answers).epsilon
        for q in survey.listed
    ]
    found = survey.promise().published(people)
    assert found.epsilon == pytest.approx(sum(sorted(each)[-answers:]))
    assert (found.n, found.questions, found.delta) == (20_000, 3, 1e-8)
    assert "the results of all 3 questions (at least 20,000 people each), once" in found.sentence
    assert "between your answers and any others by a factor of at most" in found.sentence
    groups = survey.promise().published({**people, "ill": 2_000}, grouped=True)
    assert groups.n == 2_000
    assert (
        "only these results by group of all 3 questions (at least 2,000 people" in groups.sentence
    )
    assert survey.promise().published(dict.fromkeys(people, 30)) is None
