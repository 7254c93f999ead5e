"""The map of the rooms in CONTRIBUTING.md is the tree: every room is on it, looks only up, and has
tests in a folder of its name. Imports inside functions count too, but for the listed conveniences.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = re.findall(r"^  (\w+)(\.py|/) ", TEXT, flags=re.MULTILINE)
ROOMS = [name for name, _ in MAP]
_BLOCK = TEXT.partition("These methods look down on purpose")[2].split("```")[1]
CONVENIENCES = set(
    re.findall(r"(?<!\w)(?:[A-Z]\w+\.)?_?\w+(?=  |$| \()", _BLOCK, flags=re.MULTILINE)
)
DEVICE = ROOMS[: ROOMS.index("device") + 1]
NO_ROOMS = ("__pycache__", "py.typed", "conftest.py")  # the last is for examples in docstrings
TESTS = {
    "__init__": "init",
    "__main__": "main",
}  # where the test file has another name than the room


def files_of(room):
    folder = SOURCE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{room}.py"]


# ---- who imports whom ----------------------------------------------------------------------------


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(nodes, where=()):
    """Every statement that can run, with the names of the classes and functions it stands in."""
    for node in nodes:
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield node, where
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            if not (is_for_types(node) and field == "body"):
                inner = (*where, node.name) if named else where
                yield from statements(getattr(node, field, []), inner)


def imports(source, package):
    """The full names that a module of this package imports, and from within what."""
    folders = package.split(".")
    for node, where in statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ".".join(where)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folders[: len(folders) + 1 - node.level] if node.level else []
            home = ".".join(filter(None, [*above, node.module]))
            yield from ((f"{home}.{alias.name}", ".".join(where)) for alias in node.names)


def room_of(name):
    """The room of a full name; a public name stands for the room where it lives."""
    room = name.removeprefix("discreet").removeprefix(".").partition(".")[0] or "__init__"
    return discreet._HOMES.get(room, room).partition(".")[0]


def rooms_used(source, package="discreet"):
    """Room and place of every import of one of our own rooms."""
    for name, where in imports(source, package):
        ours = name == "discreet" or name.startswith("discreet.")
        if ours and name != "discreet.__version__":  # which is there before any room is
            yield room_of(name), where


def looks_down(source, room, package="discreet"):
    """The rooms that a file of a room imports although they are not above it."""
    above = {*ROOMS[: ROOMS.index(room) + 1]}
    used = rooms_used(source, package)
    return sorted({r for r, where in used if r not in above and where not in CONVENIENCES})


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_from_rooms_above_them(room):
    found = {}
    for path in files_of(room):
        package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
        found[path.name] = looks_down(path.read_text(encoding="utf-8"), room, package)
    assert not {name: rooms for name, rooms in found.items() if rooms}


def test_every_listed_convenience_is_one():
    """And is short: it imports, and calls."""
    seen = {}
    for room in ROOMS:
        for path in files_of(room):
            source = path.read_text(encoding="utf-8")
            above = {*ROOMS[: ROOMS.index(room) + 1]}
            down = {where for r, where in rooms_used(source) if r not in above and where}
            for node, where in statements(ast.parse(source).body):
                name = ".".join((*where, getattr(node, "name", None) or ""))
                if name in down:
                    seen[name] = [x for x in node.body if not isinstance(x, ast.Expr)]
    assert set(seen) == CONVENIENCES
    long = {name: len(body) for name, body in seen.items() if len(body) > 2}
    assert set(long) <= {"_auto_padding"}, long


@pytest.mark.parametrize("room", DEVICE)
def test_the_device_side_imports_the_standard_library_alone(room):
    allowed = {*sys.stdlib_module_names, "discreet"}
    for path in files_of(room):
        package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
        names = {name.partition(".")[0] for name, _ in imports(path.read_text("utf-8"), package)}
        assert names <= allowed, (path, names - allowed)


def test_the_device_side_stops_at_the_device():
    """The twin: below it other packages are used."""
    below = [path.read_text("utf-8") for room in ("arrays", "cli") for path in files_of(room)]
    names = {name.partition(".")[0] for text in below for name, _ in imports(text, "discreet")}
    assert {"numpy", "click"} <= names - set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from discreet.arrays.theory import total_mse", ["arrays"]),
        ("from discreet import arrays", ["arrays"]),
        ("from discreet import check, arrays, estimates", ["arrays", "estimates"]),
        ("from discreet import (\n    check,\n    arrays,\n)", ["arrays"]),
        ("from discreet.paper import fimi", ["paper"]),
        ("from discreet.paper.fimi import read", ["paper"]),
        ("import discreet.arrays.theory", ["arrays"]),
        ("import numpy, discreet.paper.fimi as read", ["paper"]),
        ("import discreet", ["__init__"]),
        ("from discreet import *", ["*"]),
        ("from discreet import Tally", ["arrays"]),
        ("from . import arrays", ["arrays"]),
        ("from .paper import fimi", ["paper"]),
        ("try:\n    from discreet import arrays\nexcept ImportError:\n    pass", ["arrays"]),
        ("try:\n    pass\nexcept ImportError:\n    from discreet import arrays", ["arrays"]),
        ("if True:\n    pass\nelse:\n    from discreet import arrays", ["arrays"]),
        ("class A:\n    from discreet import arrays", ["arrays"]),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import discreet.arrays.theory", ["arrays"]),
        ("if TYPE_CHECKING:\n    pass\nfrom discreet import arrays", ["arrays"]),
        ("def late():\n    from discreet import arrays", ["arrays"]),
        ("class A:\n    async def late(self):\n        import discreet.arrays.theory", ["arrays"]),
        ("class Mechanism:\n    def other(self):\n        import discreet.arrays", ["arrays"]),
        ("def tally(self):\n    import discreet.arrays", ["arrays"]),
    ],
)
def test_imports_from_below_are_seen(source, expected):
    """The twin: of these rooms, only `check` stands above `mechanism`."""
    assert looks_down(source, "mechanism") == expected


@pytest.mark.parametrize(
    "source",
    [
        "from discreet import check, policy",
        "from discreet.encodings import ticket\nimport discreet.errors\nimport numpy.theory",
        "from discreet import __version__, Policy, mechanism",
        "from .errors import DataError",
        "class Mechanism:\n    def tally(self):\n        from discreet.arrays.tally import Tally",
        "if TYPE_CHECKING:\n    from discreet import arrays",
        "if typing.TYPE_CHECKING:\n    if True:\n        from discreet.arrays import theory",
    ],
)
def test_imports_from_above_for_types_and_of_conveniences_are_allowed(source):
    assert looks_down(source, "mechanism") == []


def test_a_relative_import_is_of_the_files_own_folder():
    def used(source):
        return {room for room, _ in rooms_used(source, "discreet.encodings")}

    assert used("from .ticket import Ticket") == {"encodings"}
    assert used("from ..arrays import theory") == {"arrays"}
    assert used("from .. import arrays, data") == {"arrays", "data"}


# ---- the map -------------------------------------------------------------------------------------


def test_the_map_is_the_tree():
    entries = [path for path in SOURCE.iterdir() if path.name not in NO_ROOMS]
    tree = [(path.stem, "/" if path.is_dir() else path.suffix) for path in entries]
    assert sorted(MAP) == sorted(tree)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_tests_of_its_name(room):
    tests = ROOT / "tests"
    if (SOURCE / room).is_dir():
        assert list((tests / room).glob("test_*.py"))
    else:
        assert (tests / f"test_{TESTS.get(room, room)}.py").exists()


# ---- short files and small classes ---------------------------------------------------------------


def too_long(source, most=400):
    """How long a file is that is too long, unless a comment in it says why."""
    lines = source.splitlines()
    if len(lines) > most and not re.search(r"^(#|//) More than .*400 lines", source, re.MULTILINE):
        yield f"{len(lines)} lines"


def too_many(source, most=15):
    """The classes with more public methods, unless a comment above says why."""
    lines, functions = source.splitlines(), (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            public = [x for x in node.body if isinstance(x, functions) and x.name[0] != "_"]
            first = min([node.lineno, *(x.lineno for x in node.decorator_list)]) - 1
            above = "\n".join(lines[max(0, first - 4) : first])
            if len(public) > most and "# More than 15" not in above:
                yield node.name


JOINED = ("discreet.js", "answer.js", "desk.js", "results.js")  # made of the modules


@pytest.mark.parametrize("pattern", ["*.py", "*.js"])
def test_files_are_short_and_classes_small_or_say_why(pattern):
    paths = [path for path in SOURCE.rglob(pattern) if path.name not in JOINED]
    assert len(paths) > 40
    sources = {str(path): path.read_text(encoding="utf-8") for path in paths}
    assert [name for name, text in sources.items() if any(too_long(text))] == []
    if pattern == "*.py":
        assert [name for text in sources.values() for name in too_many(text)] == []


def test_what_is_too_long_is_seen():
    """The twin."""
    assert list(too_long("x = 1\n" * 401)) == ["401 lines"] and not list(too_long("x = 1\n" * 400))
    reason = "# More than 400 lines: a list\n"
    assert not list(too_long(reason + "x = 1\n" * 401))
    methods = "".join(f"    def m{k}(self): pass\n" for k in range(16))
    assert list(too_many("class A:\n" + methods)) == ["A"]
    assert not list(too_many("# More than 15 public names: a list\n@final\nclass A:\n" + methods))
    assert not list(too_many("class A:\n" + methods.replace("m15", "_m15")))


# ---- the walks -----------------------------------------------------------------------------------


def steps(text):
    """The files of the walks, and the names to look for in them."""
    walks = text.partition("## Two walks")[2].partition("\n## ")[0]
    rows = re.findall(r"^  (\S+\.(?:py|js)) +([^:]+):", walks, flags=re.MULTILINE)
    return [(path, re.findall(r"\b(?!then\b)\w+", names)) for path, names in rows]


def is_defined(name, text):
    """As a function or a class of either language, or as a method of JavaScript, private or not."""
    method = rf"^  (async |get |static )*#?{name}\(.*{{$"
    return re.search(rf"\b(def|class|function) {name}\b|{method}", text, re.MULTILINE)


def missing(path, names):
    """Which of these names the file does not define; all of them if there is no such file."""
    file = SOURCE / path if not path.startswith("static/") else SOURCE / "collector" / path
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [name for name in names if not is_defined(name, text)]


@pytest.mark.parametrize(("path", "names"), steps(TEXT))
def test_every_step_of_the_walks_is_there(path, names):
    assert names and missing(path, names) == []


def test_a_step_that_is_gone_is_seen():
    assert len(steps(TEXT)) == 33
    assert steps("## Two walks\n\n  a/b.py   one, then two: why\n") == [("a/b.py", ["one", "two"])]
    assert missing("collector/counts.py", ["add", "fold"]) == ["fold"]
    # what is only called there is defined elsewhere
    assert missing("static/answer/main.js", ["openQuestion", "describe"]) == ["describe"]
    assert missing("collector/nowhere.py", ["add"]) == missing("static/no.js", ["add"]) == ["add"]


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
