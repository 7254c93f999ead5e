"""estimate, compare and scores as commands: groups, weights, populations, sums."""

from __future__ import annotations

import csv
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import discreet as d
from discreet.cli import main

LEVELS = [("low", 3, ["cold", "flu"]), ("high", 2, ["burnout, or worse", "HIV"])]
POLICY = d.Policy.from_levels(LEVELS, totals={"airways": ["cold", "flu"]})
TRUTH = {"north": [0.6, 0.2, 0.1, 0.1], "south": [0.1, 0.1, 0.2, 0.6]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports of two regions and two sexes, nine of ten from the north."""
    place = tmp_path_factory.mktemp("survey")
    mechanism, rng = d.design(POLICY), np.random.default_rng(3)
    mechanism.save(place / "m.json")
    region = np.where(rng.random(4000) < 0.9, "north", "south")
    answers = [int(rng.choice(4, p=TRUTH[name])) for name in region]
    table = {
        "report": pa.array([bytes(x) for x in mechanism.perturb_many(answers)], pa.binary()),
        "region": region,
        "sex": rng.choice(["f", "m"], 4000),
        "w": np.where(region == "north", 1 / 3, 7.0),
        "half": np.where(np.arange(4000) == 7, None, 1.0),
    }
    pq.write_table(pa.table(table), place / "r.parquet")
    (place / "region.csv").write_text("region,people\nnorth,3000000\nsouth,7_000_000\n", "utf-8")
    (place / "sex.csv").write_text("sex,people\nf,51\nm,49\n", "utf-8")
    rows = "north,f,1\nnorth,m,2\nsouth,f,3\nsouth,m,4\n"
    (place / "cells.csv").write_text(f"region,sex,people\n{rows}", "utf-8")
    return place


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def call(*arguments, code=0):
        result = CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result.stdout if code == 0 else result.stderr

    return call


def document(run, *arguments):
    return json.loads(run("estimate", "m.json", *arguments, "--json"))


def test_reports_are_counted_first(run):
    run("tally", "m.json", "r.parquet", "-o", "t.json")
    whole, counted = document(run, "t.json"), document(run, "r.parquet")
    assert whole == counted and whole["about"] == "population" and whole["n"] == 4000
    assert [row["item"] for row in whole["totals"]] == ["airways"]


def test_sums_of_items_that_are_named_on_the_command_line(run):
    found = document(run, "r.parquet", "--total", "burnout, or worse,flu", "--total", "HIV")
    names = ["airways", "burnout, or worse + flu", "HIV"]
    assert [row["item"] for row in found["totals"]] == names
    counts = {row["item"]: row["count"] for row in found["items"]}
    wanted = counts["flu"] + counts["burnout, or worse"]
    assert found["totals"][1]["count"] == pytest.approx(wanted)
    shown = run("estimate", "m.json", "r.parquet", "--total", "cold,flu")
    assert "cold + flu" in shown and "Share and interval: of the population" in shown
    assert '"flue" is not an item; did you mean "flu"?' in run(
        "estimate", "m.json", "r.parquet", "--total", "cold,flue", code=2
    )


def test_shares_about_those_who_answered(run):
    wide, narrow = (document(run, "r.parquet", *x) for x in ((), ("--about", "respondents")))
    for one, two in zip(wide["items"], narrow["items"], strict=True):
        assert one["count"] == two["count"] and one["share_low"] <= two["share_low"]
    assert narrow["about"] == "respondents"
    assert "of the same people" in run("estimate", "m.json", "r.parquet", "--about", "respondents")


def test_an_estimate_per_group(run, folder):
    groups = document(run, "r.parquet", "--by", "region")["groups"]
    assert sorted(x["group"]["region"] for x in groups) == ["north", "south"]
    assert sum(x["n"] for x in groups) == 4000
    shown = run("estimate", "m.json", "r.parquet", "--by", "region", "-o", "groups.csv")
    assert "north" in shown and "south" in shown
    with open(folder / "groups.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 5 and list(rows[0])[:3] == ["region", "item", "level"]
    assert {row["region"]: row["n"] for row in rows} == {
        x["group"]["region"]: str(x["n"]) for x in groups
    }
    run("estimate", "m.json", "r.parquet", "--by", "region", "--by", "sex", "-o", "groups.json")
    written = json.loads((folder / "groups.json").read_text("utf-8"))
    assert len(written) == 4 and set(written[0]["group"]) == {"region", "sex"}
    run("tally", "m.json", "r.parquet", "--by", "region", "-o", "tallies")
    again = document(run, "tallies")["groups"]
    assert {x["group"]["group"]: x["items"] for x in again} == {
        x["group"]["region"]: x["items"] for x in groups
    }


def near(found, truth):
    """Within 7 standard errors of the population's shares: a false alarm in 10^11."""
    for row in found["items"]:
        share = truth[POLICY.index[row["item"]]]
        width = (row["share_high"] - row["share_low"]) / 2 / 1.96
        assert abs(row["share"] - share) <= 7 * width, row


def test_a_population_repairs_who_answered(run):
    truth = [0.3 * a + 0.7 * b for a, b in zip(*TRUTH.values(), strict=True)]
    whole = document(run, "r.parquet", "--by", "region", "--population", "region.csv")
    near(whole, truth)
    assert whole["n"] == 4000 and 600 < whole["effective_n"] < 1000
    with pytest.raises(AssertionError):
        near(document(run, "r.parquet"), truth)
    run("tally", "m.json", "r.parquet", "--by", "region", "-o", "tallies")
    assert document(run, "tallies", "--population", "region.csv")["items"] == whole["items"]
    margins = ("--population", "region.csv", "--population", "sex.csv")
    near(document(run, "r.parquet", "--by", "region", "--by", "sex", *margins), truth)
    cells = ("--by", "region", "--by", "sex", "--population", "cells.csv")
    near(document(run, "r.parquet", *cells), truth)
    shown = run("estimate", "m.json", "r.parquet", "--by", "region", "--population", "region.csv")
    assert "4,000 reports, weighted; as good as" in shown


def test_weights_of_a_column(run, folder):
    found = document(run, "r.parquet", "--weights", "w")
    near(found, [0.3 * a + 0.7 * b for a, b in zip(*TRUTH.values(), strict=True)])
    told = run("tally", "m.json", "r.parquet", "--weights", "w", "-o", "weighted.json")
    assert "Counted 4,000 reports by weight into weighted.json; as good as" in told
    assert document(run, "weighted.json")["items"] == found["items"]
    by_group = document(run, "r.parquet", "--weights", "w", "--by", "sex")["groups"]
    assert sum(x["n"] for x in by_group) == 4000
    run("tally", "m.json", "r.parquet", "-o", "plain.json")
    told = run("compare", "plain.json", "weighted.json", "-m", "m.json")
    assert "differ for certain (95 % for all of them together, of the populations)" in told
    for endings, has in (((), False), (("--weights", "w"), True)):
        run("estimate", "m.json", "r.parquet", *endings, "-o", "out.csv")
        (row, *_) = read_csv(folder / "out.csv")
        assert ("effective_n" in row) is has
    assert float(row["effective_n"]) == found["effective_n"]
    assert "this name is reserved" in run(
        "estimate", "m.json", "r.parquet", "--by", "effective_n", code=2
    )


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_comparison_as_a_file_says_of_how_many_and_whom(run, folder):
    run("tally", "m.json", "r.parquet", "--by", "region", "-o", "pair")
    two = ("pair/north.json", "pair/south.json")
    run("compare", *two, "-m", "m.json", "--confidence", 0.9, "-o", "two.csv")
    row = read_csv(folder / "two.csv")[0]
    facts = {x: row[x] for x in ("n_north", "n_south", "confidence", "about")}
    document = json.loads(run("compare", *two, "-m", "m.json", "--json"))
    assert facts == {
        "n_north": str(document["n"]["north"]), "n_south": str(document["n"]["south"]),
        "confidence": "0.9", "about": "population",
    }  # fmt: skip


def test_all_groups_of_a_folder_are_compared(run, folder):
    run("tally", "m.json", "r.parquet", "--by", "region", "--by", "sex", "-o", "four")
    told = run("compare", "four", "-m", "m.json")
    assert "The intervals hold for all 6 pairs together with 95 %" in told
    assert "that of one pair has a confidence of 99.17 %" in told
    pairs = json.loads(run("compare", "four", "-m", "m.json", "--json"))["pairs"]
    assert len(pairs) == 6 and all(pair["confidence"] == 0.95 for pair in pairs)
    first = list(pairs[0]["n"])
    alone = json.loads(run("compare", *(f"four/{x}.json" for x in first), "-m", "m.json", "--json"))
    widths = [
        {row["item"]: row["upper"] - row["lower"] for row in x["items"]} for x in (alone, pairs[0])
    ]
    assert all(widths[0][item] < widths[1][item] for item in widths[0])
    run("compare", "four", "-m", "m.json", "-o", "four.csv")
    rows = read_csv(folder / "four.csv")
    assert len(rows) == 6 * 5 and {*list(rows[0])[:2]} == {"first", "second"}
    assert {(row["first"], row["second"]) for row in rows} == {tuple(x["n"]) for x in pairs}
    assert "name them instead of a folder" in run(
        "compare", "four", "-m", "m.json", "--plot", "x.png", code=2
    )


def test_compare_says_what_it_takes(run, folder):
    run("tally", "m.json", "r.parquet", "--by", "region", "-o", "regions")
    two = ("regions/north.json", "regions/south.json")
    (folder / "empty").mkdir()
    for names, sentence in {
        (): "compare needs two tallies or a folder of them",
        two[:1]: "regions/north.json is one file; name a second tally",
        (*two, "m.json"): "takes two tallies or one folder, not 3 names",
        (two[0], "regions"): "regions is a folder; name two tallies in it, or the folder alone",
        (two[0], two[0]): "are the same file",
        (two[0], "nothing.json"): "nothing.json does not exist; name two tallies",
        ("nothing",): "nothing does not exist; name two tallies",
        (two[0], "r.parquet"): "r.parquet is not a tally",
        (two[0], "m.json"): "m.json is not a tally file",
        ("empty",): "empty has 0 tallies (*.json) and must have from 2 to 20",
    }.items():
        said = run("compare", *names, "-m", "m.json", code=2)
        assert said.startswith("error: ") and said.count("\n") == 1 and sentence in said, said
    told = run("compare", "--help")
    assert "TALLY TALLY | FOLDER" in told and "discreet compare regions\n" in told


def test_a_total_of_lists_says_that_people_count_once_per_item(run, folder):
    lists = d.Policy.from_levels([("all", 8, ["a", "b", "c"])], kind="set")
    mechanism = d.design(lists, padding=2)
    mechanism.save(folder / "lists.json")
    mechanism.tally(mechanism.perturb_many([[0, 1]] * 500)).save(folder / "lists-tally.json")
    note = "a person who holds several of them counts once for each"
    assert note in run("estimate", "lists.json", "lists-tally.json", "--total", "a,b")
    assert note not in run("estimate", "lists.json", "lists-tally.json")
    run("tally", "m.json", "r.parquet", "-o", "plain.json")
    assert note not in run("estimate", "m.json", "plain.json", "--total", "cold,HIV")


def test_small_groups_and_single_heavy_reports_are_told(run, folder):
    mechanism = d.Survey.load(folder / "m.json").mechanism
    names = ["few"] * 10 + ["many"] * 500
    table = {
        "report": pa.array([bytes(x) for x in mechanism.perturb_many([0] * 510)], pa.binary()),
        "size": names,
        "w": [1e6, *[1.0] * 509],
    }
    pq.write_table(pa.table(table), folder / "small.parquet")
    (folder / "size.csv").write_text("size,people\nfew,1\nmany,1\n", "utf-8")
    told = run("estimate", "m.json", "small.parquet", "--by", "size", "--population", "size.csv")
    assert "A group that was added up has 10 reports: below 20, intervals are made wider" in told
    told = run("estimate", "m.json", "small.parquet", "--weights", "w")
    assert "About 1 report carries most of the weight" in told


def weigh(run, folder, weights, code):
    """What the command says of reports with this column of weights."""
    mechanism = d.Mechanism.load(folder / "m.json")
    reports = [bytes(x) for x in mechanism.perturb_many([0] * len(weights))]
    table = pa.table({"report": pa.array(reports, pa.binary()), "w": weights})
    pq.write_table(table, folder / "odd.parquet")
    return run("estimate", "m.json", "odd.parquet", "--weights", "w", code=code)


@pytest.mark.parametrize(
    "weights",
    [
        pa.array([np.float16(1)] * 40),
        pa.array([Decimal("1.5")] * 40),
        pa.array([2**63 + 1] * 40, pa.uint64()),
    ],
    ids=lambda x: str(x.type),
)
def test_weights_of_any_type_of_number(run, folder, weights):
    assert "40 reports, weighted; as good as 40 of equal weight" in weigh(run, folder, weights, 0)


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        (pa.array(["9", "10"] * 20), "has values of type string, not numbers"),
        (pa.array([True, False] * 20), "has values of type bool, not numbers"),
        (pa.array([0] * 40, pa.timestamp("ms")), "has values of type timestamp[ms], not numbers"),
        (pa.array([1] * 40, pa.duration("s")), "has values of type duration[s], not numbers"),
        (pa.array([[1.0]] * 40), "not numbers"),
        (pa.array([1.0] * 39 + [np.nan]), '"w" is no weight: weights are numbers from 0'),
        (pa.array([1.0] * 39 + [np.inf]), '"w" is no weight: weights are numbers from 0'),
    ],
)
def test_a_column_that_is_no_weight_is_one_sentence(run, folder, weights, why):
    said = weigh(run, folder, weights, 2)
    assert why in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("t.json", "--by", "region"), "--by and --weights are for reports, and t.json is a tally"),
        (("tallies", "--weights", "w"), "tallies has tallies of them"),
        (("r.parquet", "--population", "region.csv"), "--population needs groups"),
        (("r.parquet", "--weights", "half"), 'the column "half" has a row without a weight'),
        (
            ("r.parquet", "--weights", "sex"),
            'the column "sex" has values of type string, not numbers',
        ),
        (("r.parquet", "--weights", "none"), 'has no column "none"'),
        (("r.parquet", "--by", "sex", "--population", "region.csv"), 'needs a column "people" and'),
        (("r.parquet", "--by", "region", "--population", "no.csv"), "no.csv cannot be read"),
        (("r.parquet", "--by", "region", "--population", "cells.csv"), "not grouped; leave it out"),
        (("r.parquet", "--by", "region", "--plot", "p.png"), "--plot draws one estimate"),
        (
            ("tallies", "--population", "region.csv", "--population", "sex.csv"),
            "to rake to margins",
        ),
    ],
)
def test_what_cannot_be_estimated(run, arguments, why):
    run("tally", "m.json", "r.parquet", "-o", "t.json")
    run("tally", "m.json", "r.parquet", "--by", "region", "-o", "tallies")
    said = run("estimate", "m.json", *arguments, code=2)
    assert why in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("region,people\nnorth,1\n", 'the population has no people for the group "south"'),
        ("region,people\nnorth,1\nsouth,2\neast,3\n", 'nobody of the group "east" answered'),
        (
            "region,people\nnorth,1\nsouth,-2\n",
            "line 3: people is a number from 0 to 1e15, got '-2'",
        ),
        ("region,people\nnorth,1\nsouth,many\n", "line 3: people is a number from 0"),
        ("region,people\nnorth,1\nnorth,2\n", "line 3: this group appears twice"),
        ("", 'needs a column "people"'),
        ("region,people\nnorth,1\nsouth,7,000,000\n", "line 3 has 4 cells and the head 2"),
        ("region,people,people\nnorth,1,2\nsouth,1,2\n", 'has two columns "people"'),
        ("region,people\nnorth,300.000\nsouth,1\n", "line 2: '300.000' could be a fraction or"),
        ("region,people\nnorth,1\nsouth,1.234.567\n", "line 3: '1.234.567' could be"),
        ("region,people\nnorth,1e308\nsouth,1\n", "people is a number from 0 to 1e15"),
        ("region,people\nnorth,0\nsouth,0\n", "wrong.csv has no people"),
    ],
)
def test_what_is_no_population(run, folder, rows, why):
    (folder / "wrong.csv").write_text(rows, "utf-8")
    arguments = ("r.parquet", "--by", "region", "--population", "wrong.csv")
    assert why in run("estimate", "m.json", *arguments, code=2)


@pytest.mark.parametrize("name", ["item", "share", "n", "about", "report"])
def test_columns_whose_names_mean_something_make_no_groups(run, name):
    said = run("estimate", "m.json", "r.parquet", "--by", name, code=2)
    assert f'the column "{name}" cannot make groups: this name is reserved' in said


@pytest.mark.parametrize(
    ("totals", "why"),
    [
        (["cold,cold"], "--total cold,cold names an item twice"),
        (["cold,flu", "cold,flu"], "or is given twice"),
        ([""], '"" is not an item'),
    ],
)
def test_what_is_no_sum(run, totals, why):
    options = [x for text in totals for x in ("--total", text)]
    assert why in run("estimate", "m.json", "r.parquet", *options, code=2)


def write_groups(folder, columns):
    mechanism = d.Survey.load(folder / "m.json").mechanism
    count = len(next(iter(columns.values())))
    reports = [bytes(x) for x in mechanism.perturb_many([0] * count)]
    table = {"report": pa.array(reports, pa.binary()), **columns}
    pq.write_table(pa.table(table), folder / "groups.parquet")


def test_groups_that_look_the_same_when_written_are_not_joined(run, folder):
    """Joined by a comma they would be one, and half of the people gone."""
    write_groups(folder, {"x": ["a, b"] * 20 + ["a"] * 20, "y": ["c"] * 20 + ["b, c"] * 20})
    (folder / "xy.csv").write_text('x,y,people\n"a, b",c,10\na,"b, c",90\n', "utf-8")
    found = document(run, "groups.parquet", "--by", "x", "--by", "y", "--population", "xy.csv")
    assert found["n"] == 40 and found["effective_n"] == pytest.approx(40 / 1.64, rel=1e-3)
    write_groups(folder, {"x": [""] * 20 + [None] * 20})
    (folder / "x.csv").write_text('x,people\n"",10\n', "utf-8")
    arguments = ("estimate", "m.json", "groups.parquet", "--by", "x")
    said = run(*arguments, "--population", "x.csv", code=2)
    assert '20 reports have no value in the column "x"; fill it in, or leave them out' in said
    assert "(no value)\n20 reports" in run(*arguments)


@pytest.mark.parametrize(
    ("populations", "by"),
    [
        (["x.csv", "x.csv"], '"x"'),
        (["x.csv", "again.csv"], '"x"'),
        (["x.csv", "y.csv", "xy.csv"], '"x"'),
        (["xy.csv", "yx.csv"], '"x", "y"'),
    ],
)
def test_a_population_is_told_once(run, folder, populations, by):
    """Two files on the same columns may differ, and the last would win."""
    write_groups(folder, {"x": ["a", "b"] * 20, "y": ["c", "d"] * 20})
    (folder / "x.csv").write_text("x,people\na,1\nb,1\n", "utf-8")
    (folder / "again.csv").write_text("x,people\na,2\nb,1\n", "utf-8")
    (folder / "y.csv").write_text("y,people\nc,1\nd,1\n", "utf-8")
    (folder / "xy.csv").write_text("x,y,people\na,c,1\nb,d,1\n", "utf-8")
    (folder / "yx.csv").write_text("y,x,people\nc,a,1\nd,b,1\n", "utf-8")
    options = [x for path in populations for x in ("--population", path)]
    arguments = ("estimate", "m.json", "groups.parquet", "--by", "x", "--by", "y", *options)
    assert f"both give the people by {by}; keep one" in run(*arguments, code=2)


def test_weights_count_in_groups_too(run, folder):
    rng = np.random.default_rng(1)
    weights = np.exp(rng.normal(0, 1.2, 400))
    write_groups(folder, {"x": ["a", "b"] * 200, "w": weights})
    (folder / "x.csv").write_text("x,people\na,1\nb,1\n", "utf-8")
    arguments = ("groups.parquet", "--by", "x", "--weights", "w", "--population", "x.csv")
    found = document(run, *arguments)
    kish = [weights[k::2].sum() ** 2 / (weights[k::2] ** 2).sum() for k in (0, 1)]
    assert found["effective_n"] == pytest.approx(4 / sum(1 / x for x in kish), rel=1e-3)
    light = np.where(np.arange(400) % 2, 1e6, 10.0)
    write_groups(folder, {"x": ["a", "b"] * 200, "w": light})
    groups = document(run, "groups.parquet", "--by", "x", "--weights", "w")["groups"]
    assert [x["effective_n"] for x in groups] == [200, 200]
    write_groups(folder, {"x": ["a", "b"] * 200, "w": [1.0, 0.0] * 200})
    arguments = ("groups.parquet", "--by", "x", "--weights", "w")
    assert "b: all weights are 0" in run("estimate", "m.json", *arguments, code=2)


def test_a_folder_of_tallies_and_reports_is_refused(run, folder):
    (folder / "mixed").mkdir(exist_ok=True)
    run("tally", "m.json", "r.parquet", "-o", "mixed/t.json")
    (folder / "mixed" / "r.parquet").write_bytes((folder / "r.parquet").read_bytes())
    assert "holds tallies and reports" in run("estimate", "m.json", "mixed", code=2)
    pq.write_table(
        pa.table({"report": pa.array([], pa.binary()), "x": pa.array([], pa.string())}),
        folder / "no.parquet",
    )
    said = run("estimate", "m.json", "no.parquet", "--by", "x", "-o", "no.csv", code=2)
    assert "there are no reports in no.parquet" in said
    run("tally", "m.json", "r.parquet", "--weights", "w", "-o", "weighted.json")
    said = run("tally", "m.json", "weighted.json", "-o", "sum.json", code=2)
    assert "is a weighted tally; it can be estimated, not added up" in said


def test_scores_are_written(run, folder):
    told = run("scores", "m.json", "r.parquet", "-o", "s.parquet", "--with-column", "region")
    assert told == "Wrote the scores of 4,000 reports to s.parquet.\n"
    table = pq.read_table(folder / "s.parquet")
    assert table.column_names == ["region", *POLICY.items]
    whole = document(run, "r.parquet")
    for row in whole["items"]:
        assert sum(table.column(row["item"]).to_pylist()) == pytest.approx(row["count"], rel=1e-9)
    run("scores", "m.json", "r.parquet", "-o", "few.parquet", "--items", "burnout, or worse,HIV")
    few = pq.read_table(folder / "few.parquet")
    assert few.column_names == ["burnout, or worse", "HIV"]
    assert few.column("HIV").equals(table.column("HIV"))
    made = ("scores", "m.json", "r.parquet", "-o")
    assert "is also read" in run(*made, "r.parquet", code=2)
    for name in ("s.csv", "s.xyz", "s"):
        assert f"{name} must end in .parquet" in run(*made, name, code=2)
    assert 'no column "x"' in run(*made, "x.parquet", "--with-column", "x", code=2)
    assert "name is reserved" in run(*made, "x.parquet", "--with-column", "report", code=2)
    assert '"" is not an item' in run(*made, "x.parquet", "--items", "", code=2)
    assert "an item is named twice" in run(*made, "x.parquet", "--items", "HIV,HIV", code=2)


def test_scores_leave_out_what_is_no_report(run, folder):
    mechanism = d.Survey.load(folder / "m.json").mechanism
    reports = [mechanism.perturb(0), b"x" * 9, mechanism.perturb(1)]
    pq.write_table(pa.table({"report": pa.array(reports, pa.binary())}), folder / "odd.parquet")
    result = CliRunner().invoke(main, ["scores", "m.json", "odd.parquet", "-o", "odd-s.parquet"])
    assert "Wrote the scores of 2 reports" in result.stdout
    assert "Refused 1 that are not reports of this mechanism." in result.stderr
    assert pq.read_table(folder / "odd-s.parquet").num_rows == 2
    pq.write_table(pa.table({"report": pa.array([], pa.binary())}), folder / "none.parquet")
    said = run("scores", "m.json", "none.parquet", "-o", "none-s.parquet", code=2)
    assert "there are no reports in these files" in said
    assert not (folder / "none-s.parquet").exists()


def test_what_so_many_people_show(run, folder):
    POLICY.save(folder / "survey.toml")
    told = run("plan", "survey.toml", "--users", 2000)
    assert 'you may miss (more than 1 time in 5) anything "high" rarer than' in told
    assert "a difference between two groups of 1,000 shows from" in told
    few = run("plan", "survey.toml", "--users", 20)
    assert "20 people are too few for a statement" in few
    assert "These are few people for such budgets" in few
    planned = json.loads(run("plan", "survey.toml", "--users", 100_000, "--json"))
    assert len(planned["visible"]) == 2
    assert "Whoever sees only the results of 100,000 people" in planned["published"]


SEVERAL = """
name = "work"
answers = 1
[[question]]
name = "strain"
text = "What strained you most?"
[[question.level]]
name = "serious"
epsilon = 1
items = ["burnout", "harassment"]
[[question.level]]
name = "other"
epsilon = 2
items = ["noise", "cold", "nothing"]
[[question]]
name = "size"
text = "How large is your firm?"
[[question.level]]
name = "all"
epsilon = 2
items = ["small", "medium", "large"]
"""


def test_a_survey_says_who_reaches_a_target(run, folder):
    (folder / "several.toml").write_text(SEVERAL)
    asked = ("plan", "several.toml", "--users", 2000)
    found = json.loads(run(*asked, "--target-error", 0.02, "--json"))
    assert found["people_per_question"] == 1000 and found["target_error"] == 0.02
    draft = d.designs.surveys.read_draft(str(folder / "several.toml"))
    for name, policy in draft.policies.items():
        mechanism = d.design(policy)
        variances = d.arrays.theory.share_variance(mechanism)
        for row, level, variance in zip(
            found["forecast"][name], policy.levels, variances, strict=True
        ):
            assert row["level"] == level.name
            assert row["stderr_share"] == pytest.approx((variance / 1000) ** 0.5)
            people = row["users_for_target"] / 2  # half of them draw the question
            assert (variance / people) ** 0.5 <= 0.02 < (variance / (people - 2)) ** 0.5
    told = run(*asked, "--target-error", 0.02)
    needed = found["forecast"]["strain"][0]["users_for_target"]
    assert "users for the target" in told and f"{needed:,}" in told
    assert "users for the target" not in run(*asked)
    looser = json.loads(run(*asked, "--target-error", 0.02, "--about", "respondents", "--json"))
    assert (
        looser["forecast"]["size"][0]["users_for_target"]
        < (found["forecast"]["size"][0]["users_for_target"])
    )
    said = run(*asked, "--target-error", 2, code=2)
    assert "the target error = 2.0 must be a share" in said


def test_budgets_for_a_wanted_error(run, folder):
    POLICY.save(folder / "survey.toml")
    wanted = ("--users", 3000, "--target-error", 0.01)
    found = json.loads(run("plan", "survey.toml", *wanted, "--solve", "epsilon", "--json"))
    budgets = {name: float(text) for name, text in found["solved"].items()}
    assert budgets["low"] / budgets["high"] == pytest.approx(1.5, rel=0.01)
    for factor, fits in ((1, True), (0.97, False)):
        levels = [(name, factor * budgets[name], items) for name, _, items in LEVELS]
        mechanism = d.design(d.Policy.from_levels(levels))
        error = max(np.sqrt(d.arrays.theory.share_variance(mechanism) / 3000))
        assert (error <= 0.01) == fits
    told = run("plan", "survey.toml", *wanted, "--solve", "epsilon")
    assert told.startswith(
        "Budgets for a standard error of 0.01 at every level, of shares of the population: low: "
    )
    looser = run("plan", "survey.toml", *wanted, "--solve", "epsilon", "--about", "respondents")
    assert "of shares of the respondents: low: " in looser and looser != told
    said = run("plan", "survey.toml", "--users", 10, "--solve", "epsilon", code=2)
    assert "--solve epsilon needs --target-error" in said
    wanted = ("--users", 10, "--target-error", 0.0001, "--solve", "epsilon")
    assert "no budgets up to 16 that compare like these give" in run(
        "plan", "survey.toml", *wanted, code=2
    )
