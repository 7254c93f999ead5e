"""Two groups, two dates: what differs for certain, and how often that is wrong."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

import discreet as d
from discreet.cli import main
from discreet.errors import DataError

ITEMS = [f"i{k}" for k in range(12)]
POLICY = d.Policy.from_levels([("a", 1, ITEMS[:3]), ("b", 2, ITEMS[3:])])
TURNED = d.Policy.from_levels([("c", 3, ITEMS[::-1])])


def drawn(truth, mechanism=None, seed=1):
    return d.simulate(truth, mechanism or d.design(POLICY), repeats=1, seed=seed).estimates[0]


def people(*more):
    return dict.fromkeys(ITEMS, 1000) | dict(more)


def test_a_large_difference_is_found_and_told():
    first, second = drawn(people(("i5", 60_000))), drawn(people(), seed=2)
    found = first.compare(second, names=("north", "south"))
    assert found.differs[5] and found.ranked[0] == 5
    low, high = found.interval
    true = 60_000 / 71_000 - 1000 / 12_000
    assert low[5] <= true <= high[5]
    assert found.sentence.startswith(f"{found.differs.sum()} of 12 items differ for certain (95 % ")
    assert '"i5" is more frequent in north, by ' in found.sentence
    other = second.compare(first, names=("south", "north"))
    assert other.differences == pytest.approx(-found.differences)
    assert [other.interval[0], other.interval[1]] == [
        pytest.approx(-high), pytest.approx(-low)
    ]  # fmt: skip
    assert '"i5" is more frequent in north, by ' in other.sentence


def test_without_a_difference_that_is_said():
    found = drawn(people()).compare(drawn(people(), seed=2))
    assert not found.differs.any()
    assert found.sentence.startswith("No difference between A and B is certain (95 % for all 12 ")
    assert "percentage points to show." in found.sentence


def test_items_are_compared_by_label_whatever_the_mechanism():
    """Other levels, another order, another size."""
    mechanism = d.design(TURNED)
    first, second = drawn(people(("i0", 9000))), drawn(people(("i0", 9000)), mechanism, 3)
    found = first.compare(second)
    assert found.shares[1][0] == second["i0"]["share"] and not found.differs.any()
    assert found.table().rows()[0]["item"] == "i0"


@pytest.mark.parametrize("n", [300, 30_000])
def test_all_intervals_together_hold_as_often_as_said(n):
    """400 comparisons of groups with different shares: with 95 % or more for all items together
    fewer than 352 have a chance below 10^-6; 60 % intervals would fail.
    """
    rng, mechanism = np.random.default_rng(8), d.design(POLICY)
    truths = [rng.multinomial(n, rng.dirichlet(np.full(12, 0.4))) for _ in range(2)]
    true = truths[0] / n - truths[1] / n
    sides = [d.simulate(truth, mechanism, repeats=400, seed=k) for k, truth in enumerate(truths)]
    held = {0.95: 0, 0.6: 0}
    for a, b in zip(*(side.estimates for side in sides), strict=True):
        for confidence in held:
            low, high = a.compare(b, confidence).interval
            held[confidence] += bool(((low <= true) & (true <= high)).all())
    least = int(binom.ppf(1e-6, 400, 0.95))
    assert least == 355 or 345 < least < 360
    assert held[0.95] >= least > held[0.6]


def test_what_is_not_known_is_not_told():
    one = d.Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y", "z"])])
    silent = d.design(one)
    found = drawn([5, 5, 5], silent).compare(drawn([5, 5, 5], silent, 2))
    low, high = found.interval
    assert (low >= -1).all() and (high <= 1).all() and not found.differs.any()


def test_what_cannot_be_compared():
    first = drawn(people())
    other = drawn([1, 1], d.design(d.Policy.from_levels([("a", 1, ["x", "y"])])))
    with pytest.raises(DataError, match='not about the same items: "i0" is only in A; compare'):
        first.compare(other)
    with pytest.raises(DataError, match="confidence = 2 must be between 0 and 1"):
        first.compare(first, 2)
    with pytest.raises(DataError, match='need different names, got "x" twice'):
        first.compare(first, names=("x", "x"))


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    for name, policy in (("mechanism", POLICY), ("other", TURNED)):
        made = d.design(policy)
        made.save(f"{name}.json")
        for k, weight in enumerate((1, 20)):
            share = np.where(np.array(policy.items) == "i5", weight, 1.0)
            held = rng.choice(12, 20_000, p=share / share.sum())
            made.tally(made.perturb_many(held)).save(f"{name}{k}.json")
    return tmp_path


def run(*arguments, code=0):
    found = CliRunner().invoke(main, ["compare", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


def test_the_command(folder):
    """A twelfth and two thirds of 20,000 people: over 40 standard errors apart."""
    output = run("mechanism0.json", "mechanism1.json").output
    assert "mechanism0: 20,000 reports; mechanism1: 20,000 reports" in output
    assert '"i5" is more frequent in mechanism1' in " ".join(output.split())
    again = run("mechanism0.json", "other1.json", "-m", "mechanism.json", "-m", "other.json",
                "--json", "-o", "t.csv", "--plot", "t.png", "--top", 3)  # fmt: skip
    facts = json.loads(again.output)
    assert facts["n"] == {"mechanism0": 20_000, "other1": 20_000} and len(facts["items"]) == 3
    assert facts["items"][0]["item"] == "i5" and facts["items"][0]["differs"] is True
    assert (folder / "t.csv").read_text().count("\n") == 13
    assert (folder / "t.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mechanism0.json", "mechanism0.json"), "are the same file"),
        (("mechanism0.json", "other1.json"), "other1.json is a tally of another mechanism"),
        (("mechanism0.json", "nothing.json"), "nothing.json cannot be read"),
        (("mechanism0.json", "mechanism.json"), "mechanism.json is not a tally file"),
        (("mechanism0.json", "mechanism1.json", "-m", "none.json"), "none.json does not exist"),
        (("mechanism0.json", "mechanism1.json", "-o", "t.txt"), "must end in .csv or .parquet"),
        (("mechanism0.json", "mechanism1.json", "--plot", "t.pdf"), "must end in .png or .svg"),
    ],
)
def test_what_the_command_refuses(folder, arguments, words):
    (line,) = run(*arguments, code=2).stderr.splitlines()
    assert words in line
