"""What a link to results shows where it is posted: nothing that not everybody may see."""

import re
from html import unescape

import numpy as np
import pytest
from checks import must_fail
from collecting import BEARER
from test_collector import serve

import discreet as d
from discreet.collector import limits, preview

__all__ = ["serve"]
ITEMS = ["HIV", "flu & <b>", "a “cold”"]


def made(name="asked", language="", least=None):
    policy = d.Policy.from_levels(
        [("serious", 2, ITEMS[:1]), ("common", 3, ITEMS[1:])], question='Which <i> of "these"?'
    )
    about = {
        **({"language": language} if language else {}),
        **({"minimum": least} if least else {}),
    }
    return d.Survey(name, [d.design(policy)], about=about)


def frames(survey, item, n):
    mechanism = survey.mechanism
    reports = mechanism.perturb_many(np.full(n, item), indices=True)
    return b"".join(np.random.default_rng().bytes(16) + bytes(x) for x in reports)


def tags(service, name="asked"):
    """The tags of a results page."""
    page = service.get(f"/c/{name}/results")
    assert page.status_code == 200
    found = re.findall(r'<meta property="([^"]*)" content="([^"]*)">', page.text)
    return {key: unescape(value) for key, value in found}


def test_of_closed_results_a_link_shows_nothing(serve):
    survey = made()
    service = serve(survey)
    service.post(survey, frames(survey, 1, 500))
    page = service.get("/c/asked/results")
    assert "og:" not in page.text and "most frequent" not in page.text


def test_of_open_results_a_link_shows_what_everybody_sees(serve):
    """Below the minimum the question alone; then the most frequent answer of what is published."""
    survey = made()
    service = serve(survey, open_results=True)
    front = {"og:type": "website", "og:site_name": "discreet", "og:title": 'Which <i> of "these"?',
             "twitter:card": "summary"}  # fmt: skip
    assert tags(service) == front
    service.post(survey, frames(survey, 1, 49))
    assert tags(service) == front
    service.post(survey, frames(survey, 1, 951))
    found = service.get("/v1/collections/asked/estimate").json()
    assert found["n"] >= 50 and found["telling"]
    top = max(found["items"], key=lambda row: row["count"])
    check_headline(tags(service)["og:description"], top)
    must_fail(
        check_headline, tags(service)["og:description"], {**top, "share": top["share"] - 0.02}
    )
    shown = tags(service)
    rest = found["n"]
    service.post(survey, frames(survey, 0, 20))  # these are not published yet
    assert service.get("/v1/collections/asked/estimate").json()["n"] == rest
    assert tags(service) == shown
    token = service.get("/c/asked/results", headers=BEARER).text
    assert token == service.get("/c/asked/results").text  # the token changes nothing


def check_headline(sentence, top):
    about, low, high = map(int, re.findall(r"(?<=About )\d+|\d+(?= to)|(?<=to )\d+", sentence))
    assert about == round(100 * top["share"])
    assert low <= 100 * top["share_low"] < low + 1 and high - 1 < 100 * top["share_high"] <= high
    assert (
        sentence.endswith("\u00a0%), the most frequent answer.") and f"“{top['item']}”" in sentence
    )


@pytest.mark.parametrize(
    ("language", "words"),
    [("de", ("Etwa", "häufigste")), ("ar", ("نحو", "تكرار")), ("fr", ("About", "frequent"))],
)
def test_it_speaks_the_language_of_the_survey(language, words):
    survey = made(language=language)
    mechanism = survey.mechanism
    reports = mechanism.perturb_many(np.full(2000, 2), indices=True)
    from discreet.arrays.survey_tally import SurveyTally

    sentence = preview.headline(survey, SurveyTally.count(survey, list(map(bytes, reports))))
    assert all(word in sentence for word in words) and "a “cold”" in sentence
    assert preview.headline(survey, SurveyTally.count(survey, [])) == ""


def test_the_address_is_there_where_it_is_known(serve):
    service = serve(made(), open_results=True)
    service.collector.public_url = "https://survey.example.org"
    answer = service.get("/c/asked/results", headers={"Host": "survey.example.org"})
    assert (
        '<meta property="og:url" content="https://survey.example.org/c/asked/results">'
        in answer.text
    )


def test_it_is_computed_once_per_tally(serve, monkeypatch):
    survey = made()
    service = serve(survey, open_results=True)
    service.post(survey, frames(survey, 1, 500))
    calls, real = [], preview.headline
    monkeypatch.setattr(preview, "headline", lambda *x: (calls.append(x), real(*x))[1])
    first = tags(service)
    assert tags(service) == first and len(calls) == 1
    assert len(service.collector.results._rendered) <= limits.ESTIMATES
