"""What a packager, a reader and a reporter look for is there, and says the same everywhere."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import discreet
from discreet.cli import main

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pythons():
    return re.search(r"^PYTHONS \?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[
        1
    ].split()


def workflow():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))


def test_the_workflow_runs_the_command_of_the_readme_on_every_python():
    jobs = workflow()["jobs"]
    assert {"run": ".ci/run"} in jobs["test"]["steps"]
    assert "CI=true make test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    matrix = jobs["test"]["strategy"]["matrix"]["python"]
    assert re.findall(r'"(3\.\d+)"', matrix)[: len(pythons())] == pythons()
    named = [x.rpartition(" ")[2] for x in PROJECT["classifiers"] if " 3." in x]
    assert named and set(named) <= set(pythons())  # those that whole runs were seen on


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == discreet.__version__ == PROJECT["version"]
    assert cited["license"] == PROJECT["license"]


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_every_link_between_them_leads_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_version_says_which_formats_it_speaks():
    said = CliRunner().invoke(main, ["--version"]).output
    assert said.startswith(f"discreet, version {discreet.__version__}\n")
    from discreet.arrays.tally import FORMAT as TALLY
    from discreet.mechanism.body import FORMAT as MECHANISM
    from discreet.survey.survey import FORMAT as SURVEY

    for name in (SURVEY, MECHANISM, TALLY):
        assert name in said
