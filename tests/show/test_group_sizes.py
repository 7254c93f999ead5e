"""How large the smallest group of public answers will be, and what is said of it."""

import numpy as np
import pytest
from checks import assert_bernoulli, must_fail
from click.testing import CliRunner
from collecting import REGION, several

import discreet as d
from discreet.cli import main
from discreet.show.group_sizes import sentence, smallest_group

DRAWS = 2000


@pytest.mark.parametrize(
    ("people", "groups"), [(400, 100), (2_000, 7), (90_000, 100), (40_000, 3), (10_000, 2)]
)
def test_the_smallest_group_is_as_often_below_as_above(people, groups):
    """Of so many draws; by one person either way, for groups are whole and not independent."""
    rng = np.random.default_rng(people)
    drawn = rng.multinomial(people, np.full(groups, 1 / groups), size=DRAWS).min(axis=1)
    found, width = smallest_group(people, groups), 2 + 0.02 * np.sqrt(people / groups)

    def check(size):
        assert_between((drawn < size - width).mean(), (drawn < size + width).mean())

    check(found)
    must_fail(check, people / groups)
    must_fail(check, found - 5 * width - np.sqrt(people / groups))


def assert_between(low, high):
    """One half is between these shares of DRAWS, but for 5 standard errors of chance."""
    luck = 5 * 0.5 / np.sqrt(DRAWS)
    assert low <= 0.5 + luck and high >= 0.5 - luck, (low, high)


def test_the_tolerance_is_that_of_one_half():
    assert_bernoulli(DRAWS / 2 + 5 * 0.5 * np.sqrt(DRAWS) - 1, DRAWS, 0.5)


def test_one_group_is_everybody_and_many_groups_are_empty():
    assert smallest_group(12_345, 1) == 12_345
    assert smallest_group(100, 10_000) == 0
    assert smallest_group(10**15, 10_000) == pytest.approx(10**11, rel=1e-4)


def test_the_sentence_says_what_is_hidden():
    made = several()  # 6 groups, one of four questions each
    told = sentence(made, 10_000)
    assert '"region", "shift"' in told and "10,000 people answer, your smallest of 6" in told
    assert f"about {smallest_group(10_000, 6):,} people" in told and "token" not in told
    assert f"{smallest_group(2_500, 6):,} answers to each question" in told
    assert "Below 50 answers a group is shown to nobody without the token." in sentence(made, 800)


@pytest.mark.parametrize("questions", [1, 2])
def test_design_and_plan_say_how_small_groups_will_be(tmp_path, questions):
    import json

    level = [{"name": "l", "epsilon": 1, "items": ["a", "b"]}]
    asked = [{"name": f"q{k}", "level": level} for k in range(questions)]
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"name": "s", "question": asked, "public": [REGION]}))
    smallest = smallest_group(10_000, len(REGION["items"]))
    told = CliRunner().invoke(main, ["design", str(path)], catch_exceptions=False).output
    assert f"groups will have about {smallest:,} people" in " ".join(told.split())
    facts = CliRunner().invoke(main, ["design", str(path), "--json"]).stdout
    assert json.loads(facts)["smallest_group"] == smallest
    made = d.Survey.design(str(path))
    command = ["plan", str(path), "--users", "300"]
    told = CliRunner().invoke(main, command, catch_exceptions=False).output
    assert " ".join(sentence(made, 300).split()) in " ".join(told.split())
