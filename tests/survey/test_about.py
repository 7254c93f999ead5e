"""Who asks, what for, and from when to when."""

import json
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

import discreet as d
from discreet.errors import PolicyError
from discreet.survey import reading
from discreet.survey.about import LEAST, About, moment

BELGIUM = timezone(timedelta(hours=1))
ALL = About(
    organiser="City of Ghent",
    contact="survey@example.org",
    purpose="To plan.\n\nNothing else.",
    consent="I may be counted.",
    language="nl-BE",
    opens="2026-11-20T09:00:00+01:00",
    closes=datetime(2026, 12, 1, 20, tzinfo=BELGIUM),
    minimum=200,
)
TOML = """
question = "Which?"
[about]
organiser = "City of Ghent"
contact = "survey@example.org"
purpose = \"\"\"
To plan.

Nothing else.
\"\"\"
consent = "I may be counted."
language = "nl-BE"
opens = 2026-11-20T09:00:00+01:00
closes = 2026-12-01T20:00:00+01:00
minimum = 200
[[level]]
name = "all"
epsilon = 1
items = ["a", "b"]
"""


def survey(**about):
    return d.Survey("us", [d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]))], about)


def test_a_survey_file_says_it(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(TOML, encoding="utf-8")
    assert reading.load(path).about == d.Survey.design(path).about == ALL
    assert (ALL.opens, ALL.closes) == ("2026-11-20T08:00:00Z", "2026-12-01T19:00:00Z")
    d.Survey.design(path).save(tmp_path / "designed.json")
    assert d.Survey.load(tmp_path / "designed.json").about == ALL
    document = {"about": ALL.to_canonical(), "level": [{"name": "x", "epsilon": 1, "items": ["a"]}]}
    (tmp_path / "survey.json").write_text(json.dumps(document), encoding="utf-8")
    assert reading.load(tmp_path / "survey.json").about == ALL


def test_it_is_pinned_by_the_fingerprint_and_named_as_a_difference():
    plain, told, other = survey(), survey(organiser="us"), survey(organiser="them")
    assert len({plain.fingerprint, told.fingerprint, other.fingerprint}) == 3
    assert d.Survey.from_document(told.to_document()) == told
    assert "about" not in plain.to_document()
    assert told.differences(other) == ['organiser is "them", not "us"']
    assert told.differences(told) == []


@pytest.mark.parametrize(
    ("now", "state"),
    [
        ("2026-11-20T07:59:59Z", "upcoming"),
        ("2026-11-20T08:00:00Z", "open"),
        ("2026-12-01T18:59:59Z", "open"),
        ("2026-12-01T19:00:00Z", "closed"),
        ("2026-12-01T19:00:00+01:00", "open"),
    ],
)
def test_its_times_open_and_close_it(now, state):
    assert ALL.state(datetime.fromisoformat(now)) == state
    assert About().state(datetime.fromisoformat(now)) == "open"


def test_what_there_is_to_read():
    rows = ALL.rows()
    assert ("purpose", "Nothing else.") in rows and ("closes", "2026-12-01 19:00 UTC") in rows
    assert About().rows() == [] and [key for key, _ in About(rehearsal=True).rows()] == [
        "rehearsal"
    ]
    assert moment("2026-12-01T19:00:30Z") == "2026-12-01 19:00:30 UTC" and moment("") == ""
    assert (About().least, ALL.least) == (LEAST, 200)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"organizer": "us"}, 'unknown key "organizer" in about; known are closes, consent'),
        ({"organiser": 1}, "organiser = 1 must be a line of at most 200 characters"),
        ({"organiser": "u\ns"}, "organiser"),
        ({"organiser": "x" * 201}, "at most 200"),
        ({"purpose": "\u200d"}, "purpose"),
        ({"consent": "x" * 4001}, "at most 4,000"),
        ({"consent": "a\x1bb"}, "consent"),
        ({"language": "English"}, 'language tag such as "en"'),
        ({"notice": "example.org"}, "must be the address of a page"),
        ({"language": ["en"]}, "language"),
        ({"language": []}, "language"),
        ({"language": 0}, "language"),
        ({"opens": "2026-11-20"}, "must be a date and a time with an offset from UTC"),
        ({"opens": date(2026, 11, 20)}, "opens = 2026-11-20 must be a date and a time"),
        ({"closes": datetime(2026, 11, 20, 9)}, "closes"),
        ({"closes": "soon"}, 'closes = "soon"'),
        ({"closes": datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)}, "closes"),
        ({"closes": datetime(1, 1, 1, tzinfo=BELGIUM)}, "closes"),
        ({"closes": datetime(999, 1, 1, tzinfo=UTC)}, "closes"),
        ({"opens": "2026-12-01T20:00:00Z", "closes": "2026-12-01T20:00:00Z"}, "must be after"),
        ({"minimum": 49}, "whole number from 50"),
        ({"minimum": True}, "minimum = true"),
        ({"minimum": 60.0}, "minimum"),
        ({"rehearsal": 1}, "rehearsal = 1 must be true or false"),
    ],
)
def test_what_is_refused(about, words):
    with pytest.raises(PolicyError) as caught:
        About.read(about)
    assert words in str(caught.value)


def test_about_is_a_table():
    with pytest.raises(PolicyError, match="about must be a table"):
        About.read("us")
