"""What is said about a collection: in a list, to a participant or an auditor, and its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from discreet import summary, theory
from discreet.collector import limits
from discreet.collector.store import Collection, Event
from discreet.designs import best_plain
from discreet.estimate import COLUMNS, Estimate
from discreet.fakes import Reach, oddities
from discreet.guarantee import acting
from discreet.mechanism import Mechanism
from discreet.table import Table
from discreet.tally import Tally
from discreet.views import VIEWS


def brief(collection: Collection) -> dict[str, Any]:
    """A line of the list of collections."""
    policy = collection.mechanism.policy
    return {
        "name": collection.name,
        "question": policy.question,
        "input": policy.input,
        "items": policy.m,
        "state": collection.state,
        "rehearsal": policy.about.rehearsal,
        "fingerprint": collection.mechanism.fingerprint,
    }


def describe(collection: Collection, open_results: bool = False) -> dict[str, Any]:
    """Everything a participant or an auditor needs; `mechanism` is the file that `discreet check`
    verifies.
    """
    mechanism = collection.mechanism
    policy, guarantee = mechanism.policy, mechanism.guarantee()
    few = len(policy.levels) <= summary.MAX_ROWS
    return {
        **brief(collection),
        "keeps": collection.keep,
        "open_results": open_results,
        "least": policy.about.least if open_results else 0,
        "step": limits.STEP if open_results else 0,
        "report_bytes": mechanism.report_size,
        "levels": [
            {
                "name": level.name,
                "epsilon": level.budget.text,
                "acts_as": acts,
                "items": size,
                "factor": float(factor),
            }
            for level, acts, size, factor in zip(
                policy.levels,
                acting(policy),
                policy.sizes,
                guarantee.factors,
                strict=True,
            )
        ],
        "guarantee": {
            "holds": guarantee.holds,
            "caution": guarantee.caution,
            "ldp_epsilon": guarantee.ldp_epsilon,
            "sentences": guarantee.sentences() if few else [],
        },
        "certificate": _certificate(mechanism),
        "mechanism": mechanism.to_document(),
    }


class Expected:
    """What the design lets us expect per person and level, beside the best plain LDP mechanism."""

    def __init__(self, mechanism: Mechanism) -> None:
        best = best_plain(mechanism.policy, padding=mechanism.padding)
        self.plain_model = best.model
        self.fake = Reach.of(mechanism).sentence(mechanism)
        self._acting = acting(mechanism.policy)
        self._variances = theory.level_variance(mechanism), theory.level_variance(best)

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


def result(
    collection: Collection,
    tally: Tally,
    expected: Expected,
    confidence: float,
    views: Sequence[str],
    history: Sequence[Event] = (),
) -> dict[str, Any]:
    """The estimate as rows per item, with what plain LDP would have given; no reports, no rows."""
    mechanism = collection.mechanism
    document: dict[str, Any] = {
        **brief(collection),
        "n": tally.n,
        "confidence": confidence,
        "levels": expected.levels(mechanism, tally.n),
        "plain_model": expected.plain_model,
        "certificate": _certificate(mechanism),
        "fake": expected.fake,
        "odd": oddities(tally),
        "history": [event._asdict() for event in history],
        "note": "",
        "telling": 0,
        "views": [],
        "items": [],
    }
    if tally.n:
        estimate = tally.estimate()
        document |= {
            "items": estimate.table(confidence, _fitting(estimate, views)).rows(),
            "note": estimate.truncation_note,
            "telling": int((estimate.interval(0.95, simultaneous=True)[0] > 0).sum()),
            "views": [{"name": name, "about": VIEWS[name].about} for name in estimate.views],
        }
    return document


def csv(tally: Tally, confidence: float, views: Sequence[str]) -> bytes:
    """The same table as `discreet estimate -o` writes; of no reports, its head."""
    if not tally.n:
        return Table(dict.fromkeys(COLUMNS, ())).csv()
    estimate = tally.estimate()
    return estimate.table(confidence, _fitting(estimate, views)).csv()


def _fitting(estimate: Estimate, views: Sequence[str]) -> list[str]:
    """Those of these views that the estimate has; it may get the others with more reports."""
    return [name for name in views if name in estimate.views]


def _certificate(mechanism: Mechanism) -> str:
    return mechanism.certificate.sentence if mechanism.certificate else ""
