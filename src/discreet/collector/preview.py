"""What a link to open results shows where it is posted: the question, and its most frequent answer.

It is made of what is published to anyone, in the survey's language where the results page has it.
"""

from __future__ import annotations

import math
from html import escape

from discreet.arrays.survey_tally import SurveyTally
from discreet.collector import pages
from discreet.survey import Survey

RARE = 0.015  # below this share, "1 in 100" is too coarse
_DECIMAL_COMMA = frozenset({"de"})


def headline(survey: Survey, tally: SurveyTally) -> str:
    """The most frequent answer to the first question, in a sentence; empty while nothing can be
    told from chance.
    """
    mine = tally.question(0)
    if not mine.n:
        return ""
    estimate = mine.estimate()
    if not (estimate.shares(0.95, simultaneous=True).low > 0).any():
        return ""
    share, low, high = estimate.shares(0.95)
    k = int(share.argmax())
    texts = _texts_of(survey)
    return texts["headlineRare" if share[k] < RARE else "headline"].format(
        n=round(100 * share[k]),
        share=_decimal(100 * share[k], texts["language"]),
        what=texts["quoted"].format(what=survey.listed[0].policy.items[k]),
        low=math.floor(100 * low[k]),
        high=math.ceil(100 * high[k]),
    )


def tags(title: str, sentence: str, address: str) -> str:
    """The head's tags for who shows a preview of a page; without a picture."""
    found = {
        "og:type": "website",
        "og:site_name": "discreet",
        "og:title": title,
        "og:description": sentence,
        "og:url": address,
        "twitter:card": "summary",
    }
    lines = [
        f'\n<meta property="{name}" content="{escape(content)}">'
        for name, content in found.items()
        if content
    ]
    return "".join(lines)


def _texts_of(survey: Survey) -> pages.Texts:
    """The texts of the results page in the survey's language, or in English."""
    language = (survey.about.language or "en").split("-")[0]
    known = pages.translations(pages.RESULTS_TEXTS)
    return next((texts for texts in known if texts["language"] == language), known[0])


def _decimal(x: float, language: str) -> str:
    return f"{x:.1f}".replace(".", "," if language in _DECIMAL_COMMA else ".")
