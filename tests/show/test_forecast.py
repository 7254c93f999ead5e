"""The forecast of a whole survey agrees with the forecasts of its questions."""

import tomllib

import pytest

from discreet.data.templates import template
from discreet.show import outlook
from discreet.show.forecast import forecast
from discreet.survey.reading import from_document


def test_it_says_what_the_people_who_draw_a_question_will_show():
    draft = from_document(tomllib.loads(template("workplace")))
    made, told = forecast(draft, 1001)
    strain = told["questions"][0]
    assert [q["people"] for q in told["questions"]] == [500, 500]
    assert strain["sentences"] == outlook.sentences(made.listed[0].mechanism, 500)
    assert [level["factor"] for level in strain["levels"]] == pytest.approx([3, 9], rel=1e-6)
    assert told["fingerprint"] == made.fingerprint and told["groups"] == 3


def test_more_people_see_smaller_shares_and_nobody_sees_none():
    draft = from_document(tomllib.loads(template("health")))
    few, many = (
        [level["sees"] for level in forecast(draft, users)[1]["questions"][0]["levels"]]
        for users in (1, 10**6)
    )
    assert few == [1.0, 1.0, 1.0] and all(0 < share < 0.01 for share in many)
