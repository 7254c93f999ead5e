"""The docs are true: commands are documented as they are, links lead somewhere, the map
of the rooms is the tree.
"""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import discreet as d

ROOT = Path(__file__).parent.parent
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


def test_every_room_is_on_the_map():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [
        p
        for p in (ROOT / "src" / "discreet").iterdir()
        if p.name not in ("__pycache__", "py.typed")
    ]
    missing = [p.name for p in rooms if f"{p.name}{'/' if p.is_dir() else ''}" not in text]
    assert missing == []


def test_rooms_import_only_from_rooms_above_them():
    """The order of the map; late imports inside functions are the conveniences that may
    look down.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    order = re.findall(r"^  (\w+)(?:\.py|/)", text, flags=re.MULTILINE)
    for place, room in enumerate(order):
        folder = ROOT / "src" / "discreet" / room
        for path in folder.glob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]:
            source = path.read_text(encoding="utf-8").split("if TYPE_CHECKING:")[
                0
            ] + path.read_text(encoding="utf-8")
            for line in source.splitlines():
                if line.startswith("    "):
                    continue
                for used in re.findall(r"^from discreet\.(\w+)", line) + re.findall(
                    r"^from discreet import (\w+)", line
                ):
                    assert (
                        used == room or used in ("errors", *order[:place]) or used == "__version__"
                    ), (room, used)


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
