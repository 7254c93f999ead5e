"""The page that compares libraries shows the programs that were measured, and what they gave."""

import ast
import csv
import re
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import task
from benchmarks.task import data, sections

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
TEXTS = {who: (task.HERE / name).read_text(encoding="utf-8") for who, name in task.PROGRAMS.items()}


def words(text):
    """The strings in lists, in order: the labels."""
    lists = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.List))
    return [x.value for found in lists for x in found.elts if isinstance(x, ast.Constant)]


def tables(text):
    """Tables as lists of their lines."""
    return [found.splitlines() for found in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)]


def test_the_blocks_are_the_programs():
    blocks = re.findall(r"```python\n(.*?)```\n", PAGE, flags=re.DOTALL)
    assert blocks == list(TEXTS.values())
    assert task.filled(PAGE, {}) == PAGE
    assert task.filled(PAGE.replace("import numpy as np", "import numpy"), {}) == PAGE
    with pytest.raises(ValueError, match="the page has no <!-- discreet_.py -->"):
        task.filled("", {})


def test_the_tables_are_those_of_the_benchmarks():
    measured, gets = tables(PAGE)
    others = tables((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"))
    assert measured in others and gets in others
    assert [line.strip("| ").split(" | ") for line in gets[2:]] == task.GETS
    lines = [sum(map(sections.lines, sections.split(text).values())) for text in TEXTS.values()]
    cells = [cell.split(" (")[0] for cell in measured[2].split(" | ")[1:4]]
    assert cells == [str(count) for count in lines]


@pytest.mark.parametrize("who", task.PROGRAMS)
def test_all_have_the_same_labels_and_sections(who):
    assert words(TEXTS[who]) == data.LABELS
    names = ["imports", "the survey", "perturb and count", "counts with intervals", "plot"]
    assert list(sections.split(TEXTS[who])) == names


def test_lines_are_counted():
    text = 'import a\n\n# one\nx = 1  # more\n    # only a comment\ny = [\n    "b",\n]\n'
    assert {name: sections.lines(part) for name, part in sections.split(text).items()} == {
        "imports": 1,
        "one": 4,
    }


def test_our_program_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    answers = data.answers()
    data.write(Path("answers.csv"), answers)
    runpy.run_path(str(task.HERE / task.PROGRAMS["discreet"]))
    with Path("counts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    truth = Counter(answers)
    assert [row["item"] for row in rows] == data.LABELS and len(answers) == 50_000
    for row in rows:  # 20 of them within 6 standard errors: a false alarm of 4e-8
        assert abs(float(row["count"]) - truth[row["item"]]) < 6 * float(row["stderr"])
    assert Path("counts.png").read_bytes().startswith(b"\x89PNG")
