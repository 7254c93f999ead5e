"""What is said about a collection: in a list, to a participant or an auditor, and its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from discreet.arrays import theory
from discreet.arrays.tally import Tally
from discreet.collector import limits
from discreet.collector.store import Collection, Event
from discreet.designs import best_plain
from discreet.estimates import saving
from discreet.estimates.estimate import Estimate
from discreet.estimates.fakes import Reach, oddities
from discreet.estimates.ordered import mean_sentence
from discreet.estimates.table import COLUMNS, Table
from discreet.estimates.views import VIEWS
from discreet.mechanism import Mechanism
from discreet.promises.paths import acting
from discreet.promises.words import finite
from discreet.show import facts

ABOUT = "population"  # whom results are about


def brief(collection: Collection) -> dict[str, Any]:
    """A line of the list of collections."""
    policy = collection.mechanism.policy
    return {
        "name": collection.name,
        "question": policy.question,
        "kind": str(policy.kind),
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
    few = len(policy.levels) <= facts.MAX_ROWS
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
                "factor": finite(factor),
            }
            for level, acts, size, factor in zip(
                policy.levels,
                acting(policy),
                policy.level_sizes,
                guarantee.factors,
                strict=True,
            )
        ],
        "guarantee": {
            "holds": guarantee.holds,
            "caution": guarantee.caution,
            "ldp_epsilon": finite(guarantee.ldp_epsilon),
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
        self.fake = Reach.for_mechanism(mechanism).sentence(mechanism)
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
    estimate = tally.estimate() if tally.n else None
    document: dict[str, Any] = {
        **brief(collection),
        "n": tally.n,
        "confidence": confidence,
        "about": ABOUT,
        "levels": expected.levels(mechanism, tally.n),
        "plain_model": expected.plain_model,
        "certificate": _certificate(mechanism),
        "fake": expected.fake,
        "odd": oddities(tally, estimate=estimate),
        "history": [event._asdict() for event in history],
        "note": "",
        "telling": 0,
        "views": [],
        "items": [],
        "totals": [],
    }
    if estimate is not None:
        document |= {
            "items": estimate.table(confidence, _fitting(estimate, views)).rows(),
            "totals": estimate.totals(confidence).rows(),
            "note": " ".join(
                filter(None, (estimate.truncation_note, mean_sentence(estimate, confidence, ABOUT)))
            ),
            "telling": int((estimate.shares(0.95, simultaneous=True).low > 0).sum()),
            "views": [{"name": name, "about": VIEWS[name].about} for name in estimate.views],
        }
    return document


def csv(tally: Tally, confidence: float, views: Sequence[str]) -> bytes:
    """The same table as `discreet estimate -o` writes; of no reports, its head."""
    if not tally.n:
        return Table(dict.fromkeys((*COLUMNS, *saving.LAST), ())).csv()
    estimate = tally.estimate()
    return saving.table(estimate, confidence, _fitting(estimate, views)).csv()


def _fitting(estimate: Estimate, views: Sequence[str]) -> list[str]:
    """Those of these views that the estimate has; it may get the others with more reports."""
    return [name for name in views if name in estimate.views]


def _certificate(mechanism: Mechanism) -> str:
    return mechanism.certificate.sentence if mechanism.certificate else ""
