"""The docs are true: commands are documented as they are, links lead somewhere, examples load."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import discreet as d

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def test_the_commands_page_is_up_to_date():
    sys.path.insert(0, str(ROOT / "docs"))
    import make_commands

    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == make_commands.text()
    page = (ROOT / "docs" / "collector.md").read_text(encoding="utf-8")
    assert make_commands.with_hash(page) == page and make_commands.answer_hash() in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_example_policies_of_the_docs_load(tmp_path):
    for page in PAGES:
        for k, block in enumerate(
            re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        ):
            if "[[level]]" in block:
                path = tmp_path / f"{page.stem}{k}.toml"
                path.write_text(block, encoding="utf-8")
                assert d.design(d.Policy.load(path)).guarantee().holds


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == d.__version__
    assert f"## {d.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_address_or_machine_path_is_in_the_constraints():
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
