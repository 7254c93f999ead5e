"""The lines in front of a table of results: what its columns are, and about whom it speaks.

Each begins with "#". pandas reads the file with comment="#", R with comment.char="#"; both know
that a "#" inside quotes is a part of a label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from discreet.estimates.views import VIEWS
from discreet.survey import Question, Survey


def explanation(
    survey: Survey,
    question: Question,
    by: Sequence[str],
    n: int,
    confidence: float,
    views: Sequence[str],
) -> bytes:
    """What a reader of the CSV must know, as lines of comments."""
    title = question.policy.question or question.name
    sure = f"{100 * confidence:.4g} %"
    rehearsal = "A rehearsal: simulated people answered; nothing here is real."
    groups = f"{', '.join(by)}: the group of a row. Groups without numbers are left out."
    lines = [
        f"{title} (survey {survey.name}, question {question.name})",
        "To read this file: pandas.read_csv(FILE, comment='#'), or in R read.csv(FILE, "
        "comment.char='#').",
        *([rehearsal] if survey.about.rehearsal else []),
        f"{n:,} reports. Each is a mixture of an answer and chance, so every number has an error.",
        *([groups] if by else []),
        "item, level: an answer and its level of protection. Rows of the level total are sums of "
        "answers.",
        "count, stderr, lower, upper: people among those who answered, the standard error, and "
        f"the {sure} interval. Chance may put them below zero.",
        f"share, share_low, share_high: a fraction from 0 to 1 with its {sure} interval, of the "
        "population that people were drawn from, if everyone in it had the same chance to answer.",
        "Intervals hold for one row each, not for all rows together.",
        *(f"{name}, {name}_…: another view of the counts, {VIEWS[name].about}." for name in views),
        "n, confidence, about: the reports that a row counts, the confidence of its intervals, "
        "and whom its shares are about.",
        f"Fingerprint of the survey: {survey.fingerprint}",
    ]
    return "".join(f"# {_plain(line)}\n" for line in lines).encode()


def _plain(line: str) -> str:
    """A line that no spreadsheet takes for a formula, wherever it cuts it."""
    return re.sub(r"([,;]\s*)(?=[=+@-])", r"\1'", " ".join(line.split()))
