"""`discreet reproduce`: every file, the same bytes for the same seed, both ways to run, and bad
input in one sentence.
"""

import gzip
import json
import lzma

import numpy as np
import pytest
from click.testing import CliRunner
from paper_evidence import fimi_lines

from discreet.cli import main
from discreet.paper import run as paper_run
from discreet.paper.run import TARGETS
from discreet.paper.verdicts import HOLDS

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.xdist_group("paper")  # they share one run


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Tests share the machine; two processes have a test of their own."""
    monkeypatch.setattr(paper_run, "cores", lambda: 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "retail.dat").write_text(fimi_lines(900, 120, 9, 1))
    (folder / "kosarak_first100k.dat.gz").write_bytes(
        gzip.compress(fimi_lines(900, 150, 12, 2).encode())
    )
    (folder / "clothing_rated.dat.xz").write_bytes(
        lzma.compress(fimi_lines(900, 110, 4, 3).encode())
    )
    return folder


def reproduce(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


@pytest.fixture(scope="module")
def quick(data, tmp_path_factory):
    """One quick run of everything."""
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper_run, "cores", lambda: 1)
        result = reproduce("all", "--data", data, "--out", out, "--quick")
    assert result.exit_code == 0, result.output
    return out, result.output


def test_a_run_writes_every_table_figure_and_claim(quick):
    out, printed = quick
    figures = [f"fig{k}" for k in range(3, 10)]
    beyond = [f"{name}_beyond" for name in ("fig3", "fig4", "fig6", "fig7", "fig9")]
    small = [
        "table1_cap",
        "table2_beyond",
        "fig3_designs",
        "fig3_box",
        "fig3_cost",
        "fig6_limit",
        "fig7_budgets",
        "fig8_sizes",
        "fig9_sizes",
    ]
    expected = {
        f"{name}.{end}" for name in figures + beyond for end in ("png", "svg", "csv", "txt")
    }
    expected |= {
        f"{name}.{end}" for name in ["table1", "table2", "table3", *small] for end in ("csv", "md")
    }
    expected |= {"claims.md", "claims.json", "run.json"}
    assert {path.name for path in out.iterdir()} == expected
    assert all(path.stat().st_size > 50 for path in out.iterdir())
    assert "Quick run" in printed and f"Wrote {len(expected)} files" in printed


def test_every_claim_is_reported_with_number_and_verdict(quick):
    out, printed = quick
    reports = json.loads((out / "claims.json").read_text())
    names = [claim.name for target in TARGETS.values() for claim in target.claims]
    assert [one["claim"] for one in reports] == names
    assert all(one["number"] and one["sentence"] and one["verdict"] for one in reports)
    text = (out / "claims.md").read_text()
    for one in reports:
        assert one["claim"] in text and one["claim"] in printed
    verdicts = {one["claim"]: one["verdict"] for one in reports}
    assert verdicts["twice the smallest budget"] == verdicts["MSE, retail"] == HOLDS


def test_partial_data_and_quick_runs_are_named_in_titles_and_captions(quick):
    out, _ = quick
    for name in ("fig4", "fig5", "fig9"):
        assert "Kosarak (partial: the first 100,000 users)" in (
            out / f"{name}.svg"
        ).read_text().replace("\n", " ")
        assert "Kosarak is partial here" in (out / f"{name}.txt").read_text()
    for path in out.glob("*.txt"):
        assert "Quick run: 2 repeats" in path.read_text(), path
    for path in out.glob("*.svg"):
        assert "(quick run, 2 repeats)" in path.read_text(), path
    notes = {one["claim"]: one["note"] for one in json.loads((out / "claims.json").read_text())}
    assert "Kosarak is partial here" in notes["MSE, kosarak"]


def test_a_csv_has_the_numbers_of_its_figure(quick):
    out, _ = quick
    head, *rows = (out / "fig4.csv").read_text().splitlines()
    fields = "data,model,eps,levels,share,padding,encoding,metric,k,view"
    assert head == f"{fields},repeats,mean,stderr,theory,values"
    assert len(rows) == 2 * 3 * 2 * 2  # data, models, eps, metrics
    for line in rows:
        cells = line.split(",")
        values = [float(x) for x in cells[-1].split()]
        assert len(values) == int(cells[10]) == 2
        assert float(cells[11]) == pytest.approx(np.mean(values)) and float(
            cells[12]
        ) == pytest.approx(np.std(values, ddof=1) / 2**0.5)
    assert {line.split(",")[1] for line in rows} == {
        "rappor",
        "oue",
        "opt0",
    }  # nothing that is not the paper's
    assert (
        "subset" not in (out / "fig6.csv").read_text()
        and "subset" in (out / "fig6_beyond.csv").read_text()
    )
    assert (
        "shrunk" not in (out / "fig7.csv").read_text()
        and "shrunk" in (out / "fig7_beyond.csv").read_text()
    )


def test_a_run_says_where_its_numbers_come_from(quick, data):
    out, _ = quick
    facts = json.loads((out / "run.json").read_text())
    import hashlib

    assert facts["settings"] == {
        "seed": 2020,
        "repeats": 2,
        "quick": True,
        "through_reports": False,
    }
    for key, name in (
        ("retail", "retail.dat"),
        ("kosarak", "kosarak_first100k.dat.gz"),
        ("clothing", "clothing_rated.dat.xz"),
    ):
        assert (
            facts["data"][key]["sha256"] == hashlib.sha256((data / name).read_bytes()).hexdigest()
        )
    assert {"python", "numpy", "scipy", "matplotlib"} <= set(facts["versions"]) and facts[
        "discreet"
    ]


def contents(folder, *endings):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in endings}


def test_the_same_seed_gives_the_same_bytes(quick, data, tmp_path):
    out, _ = quick
    for folder, seed, names in (
        (tmp_path / "again", 2020, ("table3", "fig4", "fig8")),
        (tmp_path / "other", 7, ("table3", "fig8")),
    ):
        assert (
            reproduce(*names, "--data", data, "--out", folder, "--quick", "--seed", seed).exit_code
            == 0
        )
    first = contents(out, ".csv", ".svg", ".png", ".txt")
    again = contents(tmp_path / "again", ".csv", ".svg", ".png", ".txt")
    assert len(again) == 14 and again == {name: first[name] for name in again}
    other = contents(tmp_path / "other", ".csv")
    assert (
        other["fig8.csv"] != again["fig8.csv"]
        and other["fig8_sizes.csv"] == again["fig8_sizes.csv"]
    )
    theory = [
        [line.split(",")[13] for line in x["fig8.csv"].decode().splitlines()]
        for x in (other, again)
    ]
    assert theory[0] == theory[1]  # which has no seed


def test_reports_are_really_made_in_both_encodings(data, tmp_path, monkeypatch):
    from discreet.arrays import perturb

    made = []
    many = perturb.perturb_many
    monkeypatch.setattr(
        perturb,
        "perturb_many",
        lambda mechanism, *given: made.append(mechanism) or many(mechanism, *given),
    )
    result = reproduce(
        "fig8", "--data", data, "--out", tmp_path, "--quick", "--through-reports", "--repeats", "1"
    )
    assert result.exit_code == 0, result.output
    assert {mechanism.encoding.name for mechanism in made} == {"bits", "ticket"} and len(
        made
    ) == 2 * 4 * 2  # eps, paddings, encodings
    assert (
        "cannot be seeded" in result.output
        and "cannot be seeded" in (tmp_path / "fig8.txt").read_text()
    )
    tickets = (tmp_path / "fig8_ticket.csv").read_text().splitlines()[1:]
    assert tickets and all(",ticket," in line for line in tickets)
    assert all(",bits," in line for line in (tmp_path / "fig8.csv").read_text().splitlines()[1:])
    assert "From tickets" in (tmp_path / "fig8_ticket.txt").read_text()


def test_json_is_for_machines(tmp_path):
    result = reproduce("table2", "--out", tmp_path, "--json")
    facts = json.loads(result.output)
    assert (
        result.exit_code == 0
        and "table2.csv" in facts["files"]
        and facts["run"]["settings"]["seed"] == 2020
    )
    assert {one["from"] for one in facts["claims"]} == {"table2"}


# ---- bad input -----------------------------------------------------------------------------------


def sentence(result):
    """The one sentence of a refusal."""
    assert result.exit_code == 2 and result.stdout == "", result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_a_missing_file_says_where_it_is_found_and_what_runs_without_it(data, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "retail.dat").write_text(fimi_lines(20, 10, 3, 1))
    said = sentence(reproduce("fig4", "--data", tmp_path / "some", "--out", tmp_path / "out"))
    assert "kosarak.dat" in said and "fimi.uantwerpen.be" in said
    assert "table1, table2, table3, fig3, fig6, fig7, fig8 run without it" in said
    said = sentence(reproduce("fig7", "--data", tmp_path / "some", "--out", tmp_path / "out"))
    assert (
        "RentTheRunway" in said
        and "Kaggle" in said
        and "fig3, fig4, fig5, fig6, fig9 run without it" in said
    )
    said = sentence(reproduce("all", "--out", tmp_path / "out"))
    assert "--data" in said and "retail.dat" in said
    assert not (tmp_path / "out").exists()  # refused before anything is made
    for name in ("table1", "table3"):
        assert reproduce(name, "--out", tmp_path / "out").exit_code == 0


def test_a_malformed_line_is_named(data, tmp_path):
    (tmp_path / "clothing_rated.dat").write_text("1 2\n3 four\n")
    said = sentence(reproduce("fig8", "--data", tmp_path, "--out", tmp_path / "out"))
    assert "clothing_rated.dat, line 2" in said and '"four"' in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fig33"], "did you mean fig3"),
        (["tabel1"], "did you mean table1"),
        (["fig2"], "did you mean fig"),
        (["nothing"], "there are all, table1, table2"),
        (["fig3", "--repeats", "0"], "repeats"),
        (["fig3", "--seed", "-1"], "seed"),
        (["fig3", "--data", "/no/such/folder"], "is not a folder"),
    ],
    ids=str,
)
def test_bad_arguments_are_one_sentence(tmp_path, arguments, said):
    assert said in sentence(reproduce(*arguments, "--out", tmp_path / "out"))


def test_an_output_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in sentence(reproduce("table1", "--out", tmp_path / "file"))
    assert "cannot be written" in sentence(
        reproduce("table1", "--out", tmp_path / "file" / "inside")
    )
    assert "cannot be written" in sentence(reproduce("table1", "--out", "/proc/none"))


def test_without_matplotlib_there_are_tables_and_a_sentence(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert '[plot]"' in sentence(reproduce("fig3", "--out", tmp_path / "out"))
    assert reproduce("table1", "--out", tmp_path / "out").exit_code == 0
