"""A policy that is written comes back as it was."""

import pytest
from hypothesis import given, settings
from strategies import policies, with_pairs

import discreet as d
from discreet.errors import PolicyError

BAD = "<b>&\"'"


def survey(**more):
    items = [f"{BAD} {k}" for k in range(3)]
    return d.Policy.from_levels(
        [(f"serious {BAD}", 1, items[:2]), ("common", 2, items[2:])],
        question=f"Which? {BAD}", **more,
    )  # fmt: skip


@settings(max_examples=40)
@given(policy=policies() | with_pairs())
def test_a_policy_comes_back(tmp_path_factory, policy):
    path = tmp_path_factory.mktemp("policy") / "p.toml"
    policy.save(path)
    assert d.Policy.load(path) == policy


@pytest.mark.parametrize(
    "policy",
    [
        d.Policy.from_budgets({"a, b": 1, 'c "d"': 2, "é\\n": 1}),
        survey(kind="set", padding=4, strict=True),
        survey(kind="each"),
        d.Policy.from_levels([("a", "ln(3)", ["x"], 2.5), ("b", 2, ["y"])], notion="avg"),
        d.Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y"])], pairs=[("a", "b", None)]),
    ],
)
def test_all_of_a_policy_comes_back(tmp_path, policy):
    policy.save(tmp_path / "p.toml")
    assert d.Policy.load(tmp_path / "p.toml") == policy
    turns = list(policy.level_of) != sorted(policy.level_of)
    assert (tmp_path / "p.items.csv").exists() == turns


def test_a_policy_is_written_as_toml(tmp_path):
    with pytest.raises(PolicyError, match="a policy is written as .toml"):
        survey().save(tmp_path / "p.yaml")
