"""Simulated people: how they answer, and that nothing of theirs is counted with real reports."""

import httpx
import numpy as np
import pytest
from collecting import serving, until

import discreet as d
from discreet.cli import demo
from discreet.collector import rehearsal
from discreet.data.examples import example, made_up_answers
from discreet.errors import DataError
from discreet.survey.about import About


def test_answers_are_the_same_every_time_and_follow_a_power_law():
    given = made_up_answers(example("health-survey"), demo.USERS)
    again = made_up_answers(example("health-survey"), demo.USERS)
    assert len(given) == demo.USERS == 100_000 and (given == again).all()
    counts = np.sort(np.bincount(given, minlength=41))[::-1]
    assert len(counts) == 41
    share = 1 / np.arange(1, 42) ** 0.8
    expected = demo.USERS * share / share.sum()
    np.testing.assert_allclose(counts, expected, atol=5 * expected.max() ** 0.5)
    assert np.bincount(given).argmax() != 0  # the first item is not the most popular one


def test_people_who_may_name_several_name_some_or_none():
    survey = d.Policy.from_levels([("all", 1, [str(k) for k in range(30)])], kind="set")
    given = made_up_answers(survey, 2_000)
    sizes = {len(items) for items in given}
    assert len(given) == 2_000 and {0, 1, 4} <= sizes and max(sizes) <= 30
    assert all(items == sorted(set(items)) for items in given)


def test_a_rehearsal_has_a_name_and_a_fingerprint_of_its_own():
    about = About(organiser="us", opens="2999-01-01T00:00:00Z")
    mechanism = d.design(d.Policy.from_levels([("all", 1, ["a", "b"])]))
    made = d.Survey("survey", [mechanism], about)
    tried = rehearsal.rehearse(made)
    assert tried.name == "survey-rehearsal" and tried.mechanism.parts == mechanism.parts
    assert tried.about == About(organiser="us", rehearsal=True)
    assert tried.fingerprint != made.fingerprint
    with pytest.raises(DataError):
        _ = mechanism.tally(mechanism.perturb_many(["a"])) + tried.mechanism.tally(
            tried.mechanism.perturb_many(["a"])
        )


def test_a_comparison_with_a_rehearsal_says_so():
    made = d.Survey("survey", [d.design(d.Policy.from_levels([("a", 1, ["x", "y", "z"])]))])
    real, tried = (
        m.tally(m.perturb_many(["x", "y"] * 50)).estimate()
        for m in (made.mechanism, rehearsal.rehearse(made).mechanism)
    )
    assert real.compare(real, names=("now", "then")).note == ""
    found = real.compare(tried, names=("now", "then")).note
    assert found == "then is a rehearsal: its people are simulated."


def test_a_rehearsal_is_served_apart(tmp_path):
    """No store is left behind, and the environment's, where real people may be, is not touched."""
    example("toy").save(tmp_path / "toy.toml")
    real = f"import os; os.environ['DISCREET_STORE'] = {str(tmp_path / 'real.sqlite')!r}"
    name = "toy-rehearsal"
    with serving(
        tmp_path, "toy.toml", "--rehearse", 150, "--open-results", before=real
    ) as server, httpx.Client(base_url=server.url) as client:  # fmt: skip
        assert "150 simulated people" in server.output and f"/c/{name}#" in server.output
        assert client.get(f"/v1/collections/{name}").json()["rehearsal"] is True

        def arrived():
            found = client.get(f"/v1/collections/{name}/estimate").json()
            return found["rehearsal"] and found["n"] >= 100  # shown in steps of 50

        until(arrived, "the simulated people have come")
    assert list(server.temporary.iterdir()) == []
    assert not (tmp_path / "real.sqlite").exists()
