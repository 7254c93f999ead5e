"""What is said about a collection: in a list, to a participant or an auditor, and its results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from discreet.arrays import theory
from discreet.arrays.survey_tally import SurveyTally
from discreet.arrays.tally import Tally
from discreet.collector.explanation import explanation
from discreet.collector.store import Collection, Event
from discreet.designs import best_plain
from discreet.estimates import saving
from discreet.estimates.estimate import Estimate
from discreet.estimates.fakes import Reach, oddities
from discreet.estimates.ordered import mean_sentence
from discreet.estimates.saving import all_totals
from discreet.estimates.table import COLUMNS, Table
from discreet.estimates.views import VIEWS
from discreet.mechanism import Mechanism
from discreet.promises.paths import acting
from discreet.promises.words import finite
from discreet.show import facts, outlook
from discreet.survey import Question, Survey

ABOUT = "population"  # whom results are about
COMMON = 0.1  # the share for which it is said how many reports show it
MOST_SURE = 1_000  # items that are named because they stand out from zero


def brief(collection: Collection) -> dict[str, Any]:
    """A line of the list of collections."""
    survey = collection.survey
    return {
        "name": collection.name,
        "title": title(collection),
        "questions": len(survey.listed),
        "answers": survey.answers,
        "state": collection.state,
        "rehearsal": survey.about.rehearsal,
        "fingerprint": survey.fingerprint,
    }


def title(collection: Collection) -> str:
    """What a survey is called on pages: its question, or where there are several its name."""
    listed = collection.survey.listed
    return (listed[0].policy.question if len(listed) == 1 else "") or collection.name


def describe(collection: Collection, open_results: bool = False) -> dict[str, Any]:
    """Everything a participant or an auditor needs; `survey` is the file that `discreet check`
    verifies.
    """
    survey = collection.survey
    promise = survey.promise()
    few = sum(len(q.policy.levels) for q in survey.listed) <= facts.MAX_ROWS
    return {
        **brief(collection),
        "keeps": collection.keep,
        "open_results": open_results,
        "least": survey.about.least if open_results else 0,
        "step": survey.about.least if open_results else 0,
        "guarantee": {
            "holds": True,  # or there would be no survey
            "caution": promise.caution,
            "ldp_epsilon": finite(promise.epsilon),
            "sentences": promise.sentences() if few else [],
        },
        "asked": [_describe_question(question) for question in survey.listed],
        "survey": survey.to_document(),
    }


def _describe_question(question: Question) -> dict[str, Any]:
    mechanism, policy = question.mechanism, question.policy
    return {
        "name": question.name,
        "question": policy.question,
        "of": list(question.of or ()),
        "kind": str(policy.kind),
        "items": policy.m,
        "report_bytes": mechanism.report_size,
        "certificate": _certificate(mechanism),
        "levels": [
            {
                "name": level.name,
                "epsilon": level.budget.text,
                "acts_as": acts,
                "items": size,
                "factor": finite(factor),
            }
            for level, acts, size, factor in zip(
                policy.levels,
                acting(policy),
                policy.level_sizes,
                mechanism.guarantee().factors,
                strict=True,
            )
        ],
    }


class Expected:
    """What the design lets us expect per person and level, beside the best plain LDP mechanism."""

    def __init__(self, mechanism: Mechanism) -> None:
        best = best_plain(mechanism.policy, padding=mechanism.padding)
        self.plain_model = best.model
        self.fake = Reach.for_mechanism(mechanism).sentence(mechanism)
        self._acting = acting(mechanism.policy)
        self._variances = theory.level_variance(mechanism), theory.level_variance(best)
        noises = [x for x in outlook.noises(mechanism, "uniform") if math.isfinite(x.absent)]
        self._noises = sorted(noises, key=lambda noise: noise.absent)
        self._items = mechanism.m

    def visible(self, n: int) -> float | None:
        """The smallest share that so many reports show, of an item of the level that is counted
        best; None where they show nothing.
        """
        if not n or not self._noises:
            return None
        share = outlook.visible_share(self._noises[0], n, self._items)
        return share if share < 1 else None

    def needed(self) -> int | None:
        """How many reports show an item of any level that COMMON of all people have."""
        if not self._noises:
            return None
        return outlook.users_needed(self._noises[-1], COMMON, self._items)

    def levels(self, mechanism: Mechanism, n: int) -> list[dict[str, Any]]:
        """Per level the standard error to expect of n reports, here and with plain LDP."""
        return [
            {
                "name": level.name,
                "epsilon": level.budget.text,
                "acts_as": acts,
                "expected_stderr": math.sqrt(n * mine),
                "plain_stderr": math.sqrt(n * plain),
            }
            for level, acts, mine, plain in zip(
                mechanism.policy.levels, self._acting, *self._variances, strict=True
            )
        ]


class ResultTable(NamedTuple):
    """Which table of results: of a question, and by which public questions."""

    question: Question
    place: int
    by: tuple[int, ...]  # places of public questions


def result(
    collection: Collection,
    tally: SurveyTally,
    expected: Expected,
    wanted: ResultTable,
    confidence: float,
    views: Sequence[str],
    history: Sequence[Event] = (),
    published: bool = False,
) -> dict[str, Any]:
    """The estimate as rows per item, with what plain LDP would have given; no reports, no rows.
    In a `published` one, groups without numbers are hidden.
    """
    question, survey = wanted.question, collection.survey
    mine = tally.question(wanted.place)
    estimate = mine.estimate() if mine.n else None
    document: dict[str, Any] = {
        **brief(collection),
        "asked": [
            {
                "name": q.name,
                "question": q.policy.question,
                "of": list(q.of or ()),
                "n": tally.question(k).n,
            }
            for k, q in enumerate(survey.listed)
        ],
        "question": question.name,
        "public": [public.to_canonical() for public in survey.public],
        "by": [survey.public[k].name for k in wanted.by],
        "language": survey.about.language,
        "translations": {k: t.to_canonical() for k, t in survey.translations.items()},
        "confidence": confidence,
        "about": ABOUT,
        "ordered": question.policy.rule.ordered,
        "levels": expected.levels(question.mechanism, mine.n),
        "plain_model": expected.plain_model,
        "common": COMMON,
        "needed": expected.needed(),
        "certificate": _certificate(question.mechanism),
        "fake": expected.fake,
        "odd": oddities(mine, estimate=estimate),
        "history": [event._asdict() for event in history],
        "visible": expected.visible(mine.n),
        **_rows(mine, estimate, confidence, views),
        "groups": [],
    }
    if wanted.by:
        document["groups"] = [
            {
                "group": dict(zip(document["by"], _labels(survey, wanted.by, key), strict=True)),
                "hidden": group.n == 0,
                "visible": expected.visible(group.n),
                **_rows(group, of_group, confidence, views),
                "margins": _margins(survey, question, of_group, confidence),
            }
            for key, group in _groups(survey, tally, wanted, published).items()
            for of_group in [group.estimate() if group.n else None]
        ]
    document["margins"] = _margins(survey, question, estimate, confidence)
    return document


def _rows(
    tally: Tally, estimate: Estimate | None, confidence: float, views: Sequence[str]
) -> dict[str, Any]:
    if estimate is None:
        nothing: list[Any] = []
        return {
            "n": tally.n,
            "items": nothing,
            "totals": [],
            "note": "",
            "telling": 0,
            "sure": [],
            "views": [],
        }
    mean = mean_sentence(estimate, confidence, ABOUT)
    telling = (estimate.shares(0.95, simultaneous=True).low > 0).nonzero()[0]
    policy = tally.mechanism.policy
    return {
        "n": tally.n,
        "items": estimate.table(confidence, _fitting(estimate, views)).rows(),
        "totals": estimate.totals(confidence).rows(),
        "note": " ".join(filter(None, (estimate.truncation_note, mean))),
        "telling": len(telling),
        "sure": [policy.items[k] for k in telling[:MOST_SURE]],
        "views": [{"name": name, "about": VIEWS[name].about} for name in estimate.views],
    }


def _groups(
    survey: Survey, tally: SurveyTally, wanted: ResultTable, published: bool
) -> dict[tuple[int, ...], Tally]:
    """The groups of a table. Without the token, all that there can be: that a group has an answer
    is told by none of those that are hidden.
    """
    counted = tally.groups(wanted.place, wanted.by)
    if not published:
        return counted
    every = product(*(range(len(survey.public[k].items)) for k in wanted.by))
    nobody = Tally.empty(wanted.question.mechanism)
    return {key: counted.get(key, nobody) for key in every}


def _labels(survey: Survey, by: tuple[int, ...], key: tuple[int, ...]) -> tuple[str, ...]:
    """The public answers of a group."""
    return tuple(survey.public[k].items[x] for k, x in zip(by, key, strict=True))


def _margins(
    survey: Survey, question: Question, estimate: Estimate | None, confidence: float
) -> list[dict[str, Any]]:
    """The answers to each crossed question as sums of cells, with the exact error of the sums."""
    if estimate is None:
        return []
    return [
        {"question": name, "items": sum_cells(estimate, answers, confidence)}
        for name, answers in survey.margins(question.name).items()
    ]


def sum_cells(
    estimate: Estimate, answers: Mapping[str, Sequence[str]], confidence: float
) -> list[dict[str, Any]]:
    """A row per answer, which is a sum of cells."""
    index = estimate.mechanism.policy.index
    sums = {answer: [index[cell] for cell in cells] for answer, cells in answers.items()}
    return all_totals(estimate, confidence, ABOUT, sums).rows()


def published(survey: Survey, tally: SurveyTally, by: tuple[int, ...]) -> str:
    """What the results of all questions tell whoever sees nothing else: of the groups that are
    shown, or of everybody. Empty without reports.
    """
    if not tally.n:
        return ""
    people = {
        q.name: min((x.n for x in tally.groups(k, by).values() if x.n), default=0)
        if by
        else tally.question(k).n
        for k, q in enumerate(survey.listed)
    }
    return facts.publish(survey, people, grouped=bool(by))


def csv(
    survey: Survey,
    tally: SurveyTally,
    wanted: ResultTable,
    confidence: float,
    views: Sequence[str],
    explained: bool = False,
) -> bytes:
    """The same table as `discreet estimate -o` writes; of no reports, its head. With lines of
    explanation in front where that is asked for.
    """
    if explained:
        n, by = tally.question(wanted.place).n, [survey.public[k].name for k in wanted.by]
        lines = explanation(survey, wanted.question, by, n, confidence, views)
        return lines + csv(survey, tally, wanted, confidence, views)
    mine = tally.question(wanted.place)
    if wanted.by:
        groups = {
            _labels(survey, wanted.by, key): group
            for key, group in tally.groups(wanted.place, wanted.by).items()
            if group.n
        }
        estimates: dict[tuple[object, ...], Estimate] = {
            key: group.estimate() for key, group in groups.items()
        }
        columns = [survey.public[k].name for k in wanted.by]
        if estimates:
            common = [v for v in views if all(v in e.views for e in estimates.values())]
            return saving.grouped(estimates, columns, confidence, common, ABOUT).csv()
    if not mine.n or wanted.by:
        return Table(dict.fromkeys((*COLUMNS, *saving.LAST), ())).csv()
    estimate = mine.estimate()
    return saving.table(estimate, confidence, _fitting(estimate, views)).csv()


def _fitting(estimate: Estimate, views: Sequence[str]) -> list[str]:
    """Those of these views that the estimate has; it may get the others with more reports."""
    return [name for name in views if name in estimate.views]


def _certificate(mechanism: Mechanism) -> str:
    return mechanism.certificate.sentence if mechanism.certificate else ""
