"""The files that are served are their modules, joined by `make js`."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
import test_constants
from constants import CONSTANTS
from nodejs import NODE, node

import discreet as d
from discreet.check.document import fingerprint

ROOT = Path(__file__).parents[2]
JOIN = runpy.run_path(str(ROOT / "js" / "join.py"))
STATIC = JOIN["STATIC"]
# A room imports from the rooms before it. A mechanism draws its own reports, a survey the questio
ROOMS = (
    "errors",
    "words",
    "policy",
    "check",
    "encodings",
    "promises",
    "mechanism",
    "survey",
    "device",
)
ALLOWED = {
    ("mechanism.js", "device/perturb.js"),
    ("survey/survey.js", "device/randomness.js"),
}


@pytest.mark.parametrize("name", JOIN["TARGETS"])
def test_the_served_file_is_its_modules(name):
    joined = (STATIC / f"{name}.js").read_text(encoding="utf-8")
    assert JOIN["join"](STATIC / name) == joined, "run `make js`"


def test_every_file_is_short():
    lines = {
        path.name: len(path.read_text(encoding="utf-8").splitlines())
        for name in JOIN["TARGETS"]
        for path in (STATIC / name).rglob("*.js")
    }
    assert max(lines.values()) <= 400, lines


def test_a_room_imports_only_from_rooms_before_it():
    folder = STATIC / "discreet"
    modules = JOIN["in_order"](folder / "main.js", folder)
    names = [module.path.relative_to(folder).as_posix() for module in modules]
    assert {re.split(r"[/.]", name)[0] for name in names} == {*ROOMS, "main"}
    for module, name in zip(modules[:-1], names):
        room = re.split(r"[/.]", name)[0]
        for target, _ in module.imports:
            other = target.relative_to(folder).as_posix()
            above = ROOMS[: ROOMS.index(room) + 1]
            assert re.split(r"[/.]", other)[0] in above or (name, other) in ALLOWED, name


@pytest.mark.skipif(NODE is None, reason="node is not installed, so modules cannot be run")
def test_the_modules_run_without_being_joined(monkeypatch):
    monkeypatch.setenv("DISCREET_MODULE", str(STATIC / "discreet" / "main.js"))
    assert not any(test_constants.run(CONSTANTS).values())


# ---- a notion is one entry -----------------------------------------------------------------------

ENTRY = "  avg: makeNotion((i, j) => [[i, j]]),\n"
FIRST = "  first: makeNotion((i) => [[i, i]]),\n"


def renamed(document, notion, *epsilons):
    """A mechanism's document under another notion and other budgets, signed again."""
    body = {key: value for key, value in document.items() if key != "fingerprint"}
    levels = [
        {"name": level["name"], "epsilon": epsilon}
        for level, epsilon in zip(body["policy"]["levels"], epsilons, strict=True)
    ]
    body["policy"] = {**body["policy"], "notion": notion, "levels": levels}
    return {**body, "fingerprint": fingerprint(body)}


@pytest.mark.skipif(NODE is None, reason="node is not installed, so modules cannot be run")
def test_a_notion_is_one_entry(tmp_path, monkeypatch):
    """A third notion, the budget of the first of two levels: proved as itself, not as another."""
    shutil.copytree(STATIC / "discreet", tmp_path / "discreet")
    table = tmp_path / "discreet" / "policy" / "notions.js"
    text = table.read_text(encoding="utf-8")
    assert text.count(ENTRY) == 1
    table.write_text(text.replace(ENTRY, ENTRY + FIRST), encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    policy = d.Policy.from_levels([("a", 2, ["u", "v"]), ("b", 2, ["x", "y"])], notion="avg")
    document = d.design(policy).to_document()
    codes = {
        ("first", "2", "2"): "ok",
        ("first", "3", "2"): "ok",
        ("first", "1", "3"): "guarantee",
        ("first", "3", "1"): "guarantee",
        ("second", "2", "2"): "mechanism",  # unknown
    }
    monkeypatch.setenv("DISCREET_MODULE", str(tmp_path / "discreet" / "main.js"))
    verdicts = node("verify.mjs", [{"document": renamed(document, *case)} for case in codes])
    assert [verdict["code"] for verdict in verdicts] == [*codes.values()]


# ---- what the join refuses -----------------------------------------------------------------------

MODULES = {
    "main.js": 'import { twice } from "./a.js";\n\nexport { twice };\n',
    "a.js": 'import { half } from "./b.js";\n\nexport const twice = (x) => x * half;\n',
    "b.js": "// A half.\n\nexport const half = 0.5;\nlet rest = 1;\n",
}
REFUSED = {
    "rest is declared in": {"a.js": MODULES["a.js"] + "const rest = 2;\n"},
    "uses rest of": {"a.js": MODULES["a.js"] + "export const more = (x) => `${rest} ${x}`;\n"},
    "in a circle": {"b.js": 'import { twice } from "./a.js";\n\nexport const half = twice;\n'},
    "does not export": {"b.js": "const half = 0.5;\n"},
    "but not used": {"a.js": MODULES["a.js"].replace("* half", "* 2")},
    "nothing imports": {"c.js": "export const third = 3;\n"},
    "write an import as": {"b.js": 'import b from "./c.js";\nexport const half = b;\n'},
}


def written(folder, files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_modules_are_joined_after_what_they_import(tmp_path):
    joined = JOIN["join"](written(tmp_path / "small", MODULES))
    notice = "// Joined from the modules in small/ by `make js`: change those."
    assert joined == (
        f"{notice}\n\n{'// ---- b.js '.ljust(100, '-')}\n\n// A half.\n\nconst half = 0.5;\n"
        f"let rest = 1;\n\n{'// ---- a.js '.ljust(100, '-')}\n\nconst twice = (x) => x * half;\n\n"
        "export { twice };\n"
    )


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_joined_is_refused(tmp_path, problem):
    folder = written(tmp_path / "small", {**MODULES, **REFUSED[problem]})
    with pytest.raises(SystemExit, match=problem):
        JOIN["join"](folder)


def test_make_js_writes_the_served_files(tmp_path):
    for name in JOIN["TARGETS"]:
        shutil.copytree(STATIC / name, tmp_path / "src/discreet/collector/static" / name)
    (tmp_path / "js").mkdir()
    for name in ("Makefile", "js/join.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run(["make", "js"], cwd=tmp_path, check=True, capture_output=True)
    for name in JOIN["TARGETS"]:
        made = tmp_path / "src/discreet/collector/static" / f"{name}.js"
        assert made.read_bytes() == (STATIC / f"{name}.js").read_bytes()
