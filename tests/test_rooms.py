"""The map of the rooms in CONTRIBUTING.md is the tree: every room is on it, looks only up, and has
a test file of its name.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
MAP = re.findall(
    r"^  (\w+)(\.py|/) ",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)
ROOMS = [name for name, _ in MAP]
TESTS = {"__init__": "init"}  # where the test file has another name than the room
UNTESTED = {"data"}  # example policies: the tests of other rooms load them


def files_of(room):
    folder = SOURCE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{room}.py"]


# ---- who imports whom ----------------------------------------------------------------------------


def run_on_import(statements):
    """The statements that run when a module is imported: not of functions, not for types only."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        types_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            if not (types_only and field == "body"):
                yield from run_on_import(getattr(node, field, []))


def imports(source, package):
    """The full names that a module of this package imports."""
    folders = package.split(".")
    for node in run_on_import(ast.parse(source).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folders[: len(folders) + 1 - node.level] if node.level else []
            home = ".".join(filter(None, [*above, node.module]))
            yield from (f"{home}.{alias.name}" for alias in node.names)


def rooms_used(source, package="discreet"):
    """The rooms that a module imports; a public name stands for the room where it lives."""
    found = set()
    for name in imports(source, package):
        first, _, rest = name.partition(".")
        room = rest.partition(".")[0] or "__init__"
        if first == "discreet" and room != "__version__":  # which is there before any room is
            found.add(discreet._HOMES.get(room, room))
    return found


def looks_down(source, room, package="discreet"):
    """The rooms that a file of a room imports although they are not above it."""
    return sorted(rooms_used(source, package) - {*ROOMS[: ROOMS.index(room) + 1]})


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_from_rooms_above_them(room):
    """Late imports inside functions are the conveniences that may look down."""
    found = {}
    for path in files_of(room):
        package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
        found[path.name] = looks_down(path.read_text(encoding="utf-8"), room, package)
    assert not {name: rooms for name, rooms in found.items() if rooms}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from discreet.theory import total_mse", ["theory"]),
        ("from discreet import theory", ["theory"]),
        ("from discreet import exact, theory, tally", ["tally", "theory"]),
        ("from discreet import (\n    exact,\n    theory,\n)", ["theory"]),
        ("from discreet.paper import fimi", ["paper"]),
        ("from discreet.paper.fimi import read", ["paper"]),
        ("import discreet.theory", ["theory"]),
        ("import numpy, discreet.paper.fimi as read", ["paper"]),
        ("import discreet", ["__init__"]),
        ("from discreet import *", ["*"]),
        ("from discreet import Tally", ["tally"]),
        ("from . import theory", ["theory"]),
        ("from .paper import fimi", ["paper"]),
        ("try:\n    from discreet import theory\nexcept ImportError:\n    pass", ["theory"]),
        ("try:\n    pass\nexcept ImportError:\n    from discreet import theory", ["theory"]),
        ("if True:\n    pass\nelse:\n    from discreet import theory", ["theory"]),
        ("class A:\n    from discreet import theory", ["theory"]),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import discreet.theory", ["theory"]),
        ("if TYPE_CHECKING:\n    pass\nfrom discreet import theory", ["theory"]),
    ],
)
def test_imports_from_below_are_seen(source, expected):
    """The twin: of these rooms, only `exact` stands above `mechanism`."""
    assert looks_down(source, "mechanism") == expected


@pytest.mark.parametrize(
    "source",
    [
        "from discreet import exact, policy",
        "from discreet.encodings import ticket\nimport discreet.errors\nimport numpy.theory",
        "from discreet import __version__, Policy, mechanism",
        "from .errors import DataError",
        "def late():\n    from discreet import theory",
        "class A:\n    async def late(self):\n        import discreet.theory",
        "if TYPE_CHECKING:\n    from discreet import theory",
        "if typing.TYPE_CHECKING:\n    if True:\n        from discreet.theory import Decoder",
    ],
)
def test_imports_from_above_and_late_ones_are_allowed(source):
    assert looks_down(source, "mechanism") == []


def test_a_relative_import_is_of_the_files_own_folder():
    assert rooms_used("from .ticket import Ticket", "discreet.encodings") == {"encodings"}
    assert rooms_used("from ..theory import Decoder", "discreet.encodings") == {"theory"}
    assert rooms_used("from .. import theory, tally", "discreet.encodings") == {"theory", "tally"}


# ---- the map -------------------------------------------------------------------------------------


def test_the_map_is_the_tree():
    entries = [path for path in SOURCE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    tree = [(path.stem, "/" if path.is_dir() else path.suffix) for path in entries]
    assert sorted(MAP) == sorted(tree)


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in UNTESTED])
def test_every_room_has_a_test_file_of_its_name(room):
    assert (ROOT / "tests" / f"test_{TESTS.get(room, room)}.py").exists()


def classes_of(source):
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def test_a_name_is_of_one_class():
    """But for the paper's, which speaks of the same things in the paper's words."""
    paths = [path for room in ROOMS if room != "paper" for path in files_of(room)]
    names = Counter(name for path in paths for name in classes_of(path.read_text(encoding="utf-8")))
    assert [name for name, count in names.items() if count > 1] == []


def test_classes_are_found_wherever_they_are():
    source = "class A: pass\ndef f():\n    class B: pass\nclass C:\n    class A: pass"
    assert Counter(classes_of(source)) == {"A": 2, "B": 1, "C": 1}
