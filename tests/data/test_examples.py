"""The policies that come with discreet."""

from importlib.resources import files

import pytest

import discreet as d
from discreet.data.examples import example

NAMES = sorted(
    path.name.removesuffix(".toml")
    for path in (files("discreet") / "data").iterdir()
    if path.name.endswith(".toml")
)


def test_the_templates_are_these():
    assert NAMES == ["health-survey", "toy", "workplace"]


@pytest.mark.parametrize("name", NAMES)
def test_every_template_gives_a_certified_mechanism(name):
    mechanism = d.design(example(name))
    assert mechanism.certificate.gap < 1e-5 and mechanism.guarantee().caution == ""


def test_who_prefers_not_to_say_is_protected_like_who_has_something_to_hide():
    policy = example("workplace")
    level = {item: policy.levels[k].name for item, k in zip(policy.items, policy.level_of)}
    assert level["prefer not to say"] == level["burnout"] == "serious"
    assert level["something else"] == level["nothing"] == "ordinary"
