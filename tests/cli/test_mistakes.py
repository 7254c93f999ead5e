"""Mistakes of the first ten minutes: one sentence each, nothing lost, nothing counted wrongly."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import discreet as d
from discreet.cli import main
from discreet.collector.store import open_store
from discreet.device.client import Client
from discreet.errors import DataError, DesignError, PolicyError

POLICY = """
[[level]]
name = "high"
epsilon = 1
items = ["a", "b"]
[[level]]
name = "low"
epsilon = 2
items = ["c", "d"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Every file of the way from a policy to an estimate."""
    monkeypatch.chdir(tmp_path)
    Path("survey.toml").write_text(POLICY)
    Path("answers.csv").write_text("item\n" + "a\nc\n" * 40)
    run("design", "survey.toml", "-o", "m.json")
    run("perturb", "m.json", "answers.csv", "-o", "r.parquet")
    run("tally", "m.json", "r.parquet", "-o", "t.json")
    run("estimate", "m.json", "t.json", "-o", "e.csv")
    return tmp_path


def run(*arguments, code=0):
    found = CliRunner().invoke(main, [*map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


MISTAKES = {
    "design onto the policy": (["design", "survey.toml", "-o", "survey.toml"], "is also read"),
    "perturb onto the answers": (
        ["perturb", "m.json", "r.parquet", "-o", "r.parquet"],
        "also read",
    ),
    "tally onto the reports": (["tally", "m.json", "r.parquet", "-o", "r.parquet"], "is also read"),
    "tally onto the mechanism": (["tally", "m.json", "r.parquet", "-o", "m.json"], "is also read"),
    "estimate onto the tally": (["estimate", "m.json", "t.json", "-o", "./t.json"], "is also read"),
    "export onto the store": (["export", "x", "--store", "t.json", "-o", "t.json"], "is also read"),
    "export onto its URL": (
        ["export", "x", "--store", "sqlite:///t.json", "-o", "t.json"],
        "is also read",
    ),
    "export onto its log": (
        ["export", "x", "--store", "t", "-o", "y.json", "--survey", "t-wal"],
        "is also read",
    ),
    "a mechanism as a table": (
        ["design", "survey.toml", "-o", "x.csv"],
        "written as JSON; name it ….json",
    ),
    "reports as a table": (["perturb", "m.json", "answers.csv", "-o", "x.csv"], "as Parquet; name"),
    "a tally as a table": (
        ["tally", "m.json", "r.parquet", "-o", "x.CSV"],
        "written as JSON; name it ….json",
    ),
    "a table as a store": (["verify", "--store", "answers.csv"], "file is not a database"),
    "a letter to restore": (["restore", "survey.toml", "--store", "s"], "file is not a database"),
    "two outputs in one": (
        ["estimate", "m.json", "t.json", "-o", "x.csv", "--plot", "./x.csv"],
        "is named for two outputs",
    ),
    "a comparison as JSON": (
        ["compare", "t.json", "x", "-m", "m.json", "-o", "x.json"],
        "x.json must end in .csv or .parquet",
    ),
    "a moving picture": (
        ["simulate", "survey.toml", "answers.csv", "--plot", "x.gif"],
        "x.gif must end in .png or .svg",
    ),
    "an error that is none": (
        ["plan", "survey.toml", "--users", 100, "--target-error", "nan"],
        "the target error = nan must be a share from 1e-9 to 1",
    ),
    "an error that nobody needs": (
        ["plan", "survey.toml", "--users", 100, "--target-error", "1e-300"],
        "the target error = 1e-300 must be a share from 1e-9 to 1",
    ),
    "a popularity for nothing": (
        ["plan", "survey.toml", "--users", 100, "--popularity", "nonsense"],
        "--popularity goes with --padding auto",
    ),
    "an objective for nothing": (
        ["plan", "survey.toml", "--users", 100, "--padding", 3, "--objective", "mse"],
        "--objective goes with --padding auto",
    ),
    "a file twice": (
        ["tally", "m.json", "r.parquet", "./r.parquet", "-o", "x.json"],
        "named twice",
    ),
    "a folder and its file": (["tally", "m.json", ".", "r.parquet", "-o", "x.json"], "named twice"),
    "a tally twice": (["tally", "m.json", "t.json", "t.json", "-o", "x.json"], "is named twice"),
    "estimates as answers": (["perturb", "m.json", "e.csv", "-o", "x.parquet"], "holds estimates"),
    "reports as answers": (["perturb", "m.json", "r.parquet", "-o", "x.parquet"], "holds reports"),
    "a policy as a mechanism": (
        ["tally", "survey.toml", "r.parquet", "-o", "x"],
        "is a policy; make",
    ),
    "answers as a tally": (
        ["estimate", "m.json", "answers.csv"],
        "reports are counted into one with",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(folder, mistake):
    arguments, words = MISTAKES[mistake]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    (line,) = run(*arguments, code=2).stderr.splitlines()
    assert words in line and line.startswith("error: ")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_without_a_command_there_is_help():
    output = run().output
    assert output.startswith("Usage: ") and "\n  design " in output


def test_a_decimal_comma_in_a_csv_policy_is_refused(folder):
    Path("p.csv").write_text("item,epsilon\nx,1,5\ny,2,5\n")
    (line,) = run("design", "p.csv", code=2).stderr.splitlines()
    assert "row 2 has 3 cells, the header has 2" in line and "a decimal number has a point" in line


def test_budgets_of_hundreds_warn_in_words_only(folder):
    Path("p.toml").write_text(POLICY.replace("epsilon = 2", "epsilon = 1000"))
    found = run("design", "p.toml")
    assert "gives almost no protection" in found.output and "RuntimeWarning" not in found.stderr


@pytest.mark.parametrize("name", ["s.sqlite", "a tally.json"])
def test_an_empty_file_is_no_store_to_read(folder, name):
    """Nothing is made beside it; a collector may begin with one."""
    Path(name).touch()
    for command in (["verify", "--store", name], ["restore", name, "--store", "new"]):
        assert "it is an empty file" in run(*command, code=2).stderr
    assert not list(folder.glob("*-lock")) and not Path(name).read_bytes()
    open_store(name).close()
    assert "There are no collections in this store." in run("verify", "--store", name).output


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: d.Policy.from_levels(None), "per level, got None"),
        (lambda: d.Policy.from_levels([5]), "per level, got 5"),
        (lambda: d.Policy.from_levels(["abc"]), 'per level, got "abc"'),
        (lambda: d.Policy.from_levels({"high": (1, ["x"])}), 'per level, got "high"'),
        (lambda: d.Policy.from_levels([("high", 1)]), "per level, got"),
        (lambda: d.Policy.from_levels([("high", 1, ["x"], 1, 2)]), "per level, got"),
        (lambda: d.Policy.from_budgets(None), "{item: epsilon, …}, got None"),
        (lambda: d.Policy.from_budgets([("x", 1)]), "{item: epsilon, …}, got"),
        (lambda: d.Policy.from_levels([("a", 1, ["x"])], pairs=5), "a pair is .* got 5"),
    ],
)
def test_what_is_no_policy_is_one_sentence(wrong, words):
    with pytest.raises(PolicyError, match=words):
        wrong()


def test_in_python():
    policy = d.Policy.from_levels([("a", 1, ["x", "y"])])
    mechanism = d.design(policy)
    with pytest.raises(DesignError, match="design takes a Policy, got str; Policy.load reads"):
        d.design("survey.toml")
    for wrong in (mechanism, [mechanism]):
        with pytest.raises(DesignError, match="takes guarantees, got Mechanism; mechanism.guar"):
            d.compose(wrong)
    assert d.Policy.from_levels(np.array([["a", "1", ["x"]]], object)).items == ("x",)
    assert d.simulate(["x"], mechanism, repeats=np.int64(2)).counts.shape == (2, 2)
    for url in (None, 5, b"http://h", b"http://h:80"):
        with pytest.raises(DataError, match="is not the address of a collector"):
            Client(url)
    with pytest.raises(DataError, match="repeats = 2.5 must be a whole number from 1"):
        d.simulate(["x"], mechanism, repeats=2.5)
    with pytest.raises(DataError, match="simulate takes data and then a mechanism, got Policy"):
        d.simulate([1, 2], policy)
    tally = mechanism.tally(mechanism.perturb_many(["x"] * 9))
    assert sum([tally, tally]).n == 18
    estimate = tally.estimate()
    assert len(estimate) == 2 and "x" in estimate and "z" not in estimate
    assert [row["item"] for row in estimate] == ["x", "y"]
    with pytest.raises(DataError, match="is compared with another, got NoneType"):
        estimate.compare(None)
    sets = d.design(d.Policy.from_levels([("a", 1, ["x", "y"])], kind="set"), padding=2)
    for work in (lambda x: sets.perturb_many([x]), sets.perturb):
        with pytest.raises(DataError, match="takes a set of items"):
            work({"x": False, "y": True})


def test_a_tally_is_read_with_its_mechanism(folder):
    with pytest.raises(DataError, match=r"Tally.load\(path, mechanism\)"):
        d.Tally.load("t.json")
    assert json.loads(Path("t.json").read_text())["n"] == 80


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("http://h", "http://h:80"),
        ("https://H/", "https://h:443"),
        ("http://h:8000", "http://h:08000"),
        ("http://h.", "http://h"),
    ],
)
def test_one_collector_has_one_origin(first, second):
    assert Client(first).origin == Client(second).origin


@pytest.mark.parametrize("url", ["http://h:+80", "http://h: 80", "http://h:x", "http://:80"])
def test_odd_ports_are_no_addresses(url):
    with pytest.raises(DataError, match="is not the address of a collector"):
        Client(url)
