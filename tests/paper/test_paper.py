"""A run as a function: names, data, processes, and what it returns."""

import re

import pytest
from paper_evidence import fimi_lines

from discreet.errors import DataError
from discreet.paper import datasets
from discreet.paper import run as paper_run
from discreet.paper.run import TARGETS, Run, choose_targets, reproduce, without
from discreet.paper.settings import Setup
from discreet.paper.workers import Workers

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Tests share the machine; two processes have a test of their own."""
    monkeypatch.setattr(paper_run, "cores", lambda: 1)


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "data"
    found.mkdir()
    for name, m, largest in (("retail", 60, 9), ("kosarak", 70, 12), ("clothing_rated", 55, 4)):
        (found / f"{name}.dat").write_text(fimi_lines(300, m, largest, m))
    return found


def test_names_are_in_the_papers_order():
    everything = tuple(TARGETS)
    assert everything[:4] == ("table1", "table2", "table3", "fig3") and len(everything) == 10
    assert (
        choose_targets([])
        == choose_targets(["all"])
        == choose_targets(["fig3", "all"])
        == everything
    )
    assert choose_targets(["fig9", "table1", "fig3", "fig3"]) == ("table1", "fig3", "fig9")
    with pytest.raises(DataError, match=r'"fig33" is no table or figure .* did you mean fig3'):
        choose_targets(["fig33"])


def test_one_call_does_everything(folder, tmp_path):
    bars = []

    class Bar:
        def __init__(self, what, steps):
            self.what, self.steps, self.done = what, steps, 0
            bars.append(self)

        def __enter__(self):
            return self.advance

        def __exit__(self, *_):
            pass

        def advance(self, count):
            self.done += count

    out = tmp_path / "out"
    found = reproduce(["fig8"], str(folder), str(out), quick=True, progress=Bar)
    assert sorted(found.files) == sorted(path.name for path in out.iterdir())
    assert [one["from"] for one in found.claims] == ["fig8"] * 2
    assert found.provenance["settings"]["repeats"] == 2  # a quick run's
    assert [bar.what for bar in bars] == ["Reading the data", "Running the experiments"]
    assert all(bar.done == bar.steps > 0 for bar in bars)
    again = reproduce(["fig8"], str(folder), str(tmp_path / "again"), quick=True, repeats=2)
    assert again == found


def test_small_data_are_shown_with_the_k_that_they_have(tmp_path):
    """Fewer items than the k of the paper's figures: no panel is empty, which would be refused."""
    for name, m in (("retail", 15), ("kosarak", 16), ("clothing_rated", 18)):
        (tmp_path / f"{name}.dat").write_text(fimi_lines(60, m, 4, m))
    names = ["fig4", "fig6", "fig7", "fig8"]
    found = reproduce(names, str(tmp_path), str(tmp_path / "out"), quick=True, repeats=1)
    assert {f"{name}.png" for name in names} <= set(found.files)


def test_the_numbers_do_not_depend_on_the_number_of_processes(folder, tmp_path):
    setup = Setup(repeats=2, quick=True)
    run = Run(["fig6", "fig8"], str(folder), str(tmp_path / "out"), setup)
    data = run.load()
    tasks = run.tasks(data)
    rows = []
    for jobs in (1, 2):
        with Workers(jobs, data, setup) as workers:
            done = []
            rows.append(workers.run(tasks, done.append))
            assert sum(done) == len(tasks)
            run.finish(data, rows[-1], workers)
        assert (tmp_path / "out" / "fig8.svg").read_text().startswith("<?xml")
    assert rows[0] == rows[1] and len(rows[0]) > 100


def test_the_whole_kosarak_is_used_where_it_is(folder, tmp_path, monkeypatch):
    whole = datasets.load("kosarak", folder / "kosarak.dat")
    told = datasets.PUBLISHED["kosarak"]
    mine = datasets.Published(told.name, whole.records, whole.n, whole.m, told.stems)
    monkeypatch.setitem(datasets.PUBLISHED, "kosarak", mine)
    for name in ("kosarak_first100k", "kosarak_short_505k"):
        (folder / f"{name}.dat").write_text("1\n")
    run = Run(["table3", "fig9"], str(folder), str(tmp_path / "out"), Setup())
    assert run.paths["kosarak"].name == "kosarak.dat" and "kosarak-short" not in run.paths
    data = run.load()
    assert data["kosarak"].title == "Kosarak" and datasets.TENFOLD not in data


def test_a_part_of_kosarak_is_shown_ten_times(folder, tmp_path):
    for setup, there in ((Setup(), True), (Setup(quick=True), False)):
        run = Run(["fig9"], str(folder), str(tmp_path / "out"), setup)
        data = run.load()
        assert (datasets.TENFOLD in data) == there and {"kosarak", "retail"} <= set(data)


def test_what_runs_without_a_file_is_true(tmp_path):
    """Every name that the sentence lists can be prepared without that file, and no other."""
    files = {key: told for key, told in datasets.PUBLISHED.items() if told.stems}
    out = str(tmp_path / "out")
    for key in files:
        folder = tmp_path / key
        folder.mkdir()
        for other, also in files.items():
            if other != key:
                (folder / f"{also.stems[0]}.dat").write_text("1 2\n")
        said = str(datasets.missing(key, folder, without(key)))
        rest = re.search(r"; ([\w, ]+) run without it", said)[1].split(", ")
        assert Run(rest, str(folder), out, Setup()).names == tuple(rest)
        for name in set(TARGETS) - set(rest):
            with pytest.raises(DataError, match="run without it"):
                Run([name], str(folder), out, Setup())
