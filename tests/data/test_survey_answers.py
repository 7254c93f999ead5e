"""Files with the answers to a survey: every person's questions are drawn, and nothing links the
reports of one person.
"""

import json
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from checks import assert_bernoulli, must_fail
from click.testing import CliRunner
from collecting import REGION, SHIFT

import discreet as d
from discreet.arrays import theory
from discreet.arrays.weighted import WeightedTally
from discreet.cli import main
from discreet.data.reports import FINGERPRINT, write_reports
from discreet.data.reports import RESERVED as RESERVED_IN_REPORTS
from discreet.errors import DataError, PolicyError
from discreet.estimates.views import VIEWS
from discreet.survey.public import RESERVED, Public

CLEAR = 18  # a budget at which a report is the answer, but for one in millions


def sample(answers=1, eps=2):
    """Three questions, one of them with lists, a cross, and two public questions."""
    content = {
        "name": "s",
        "answers": answers,
        "question": [
            {"name": "age", "level": [{"name": "a", "epsilon": eps, "items": ["young", "old"]}]},
            {
                "name": "ill",
                "level": [
                    {"name": "serious", "epsilon": eps / 2, "items": ["HIV"]},
                    {"name": "mild", "epsilon": eps, "items": ["flu", "cold"]},
                ],
            },
            {
                "name": "used",
                "kind": "set",
                "padding": 2,
                "level": [{"name": "u", "epsilon": eps, "items": ["bus", "bike", "car"]}],
            },
        ],
        "cross": [{"of": ["age", "ill"]}],
        "public": [REGION, SHIFT],
    }
    return d.Survey.design(content)


def people(n, seed=3):
    """Answers as a table: every answer with its share, and sets of 0 to 3 items."""
    rng = np.random.default_rng(seed)
    items = np.array(["bus", "bike", "car"])
    return pa.table(
        {
            "name": pa.array([f"person {k}" for k in range(n)]),  # a column that nobody asked for
            "age": pa.array(rng.choice(["young", "old"], n, p=[0.3, 0.7]).tolist()),
            "ill": pa.array(rng.choice(["HIV", "flu", "cold"], n, p=[0.2, 0.5, 0.3]).tolist()),
            "used": pa.array([items[rng.random(3) < 0.4].tolist() for _ in range(n)]),
            "region": pa.array(rng.choice(REGION["items"], n).tolist()),
            "shift": pa.array(rng.choice(SHIFT["items"], n).tolist()),
        }
    )


def as_csv(table, path):
    used = pa.array(["|".join(items) for items in table["used"].to_pylist()])
    place = table.schema.get_field_index("used")
    arrow_csv.write_csv(table.set_column(place, "used", used), path)


def run(*arguments, code=0):
    answer = CliRunner().invoke(main, [str(x) for x in arguments])
    assert answer.exit_code == code, answer.output
    return answer


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.json"
    made = sample()
    made.save(path)
    return made, path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_everybody_answers_one_question_and_the_counts_are_right(survey, tmp_path, ending):
    (made, path), table, n = survey, people(24_000), 24_000
    data, out, tallies = (tmp_path / x for x in (f"answers.{ending}", "reports", "tallies"))
    as_csv(table, data) if ending == "csv" else pq.write_table(table, data)
    told = json.loads(run("perturb", path, data, "-o", out, "--json").stdout)["reports"]
    assert list(told) == list(made.questions) == ["age", "ill", "used", "age × ill"]
    assert sum(told.values()) == n
    for count in told.values():
        assert_bernoulli(count, n, 1 / 4)
    for name, question in made.questions.items():
        file = pq.ParquetFile(out / f"{name.replace(' × ', '___')}.parquet")
        assert file.schema_arrow.names == ["report", "region", "shift"]
        assert file.schema_arrow.metadata[FINGERPRINT].decode() == question.fingerprint
    run("tally", path, out, "-o", tallies, "--by", "region")
    truth = table["region"].value_counts().to_pylist()
    groups = {row["values"]: row["counts"] for row in truth}
    counted = {
        region: d.Tally.load(tallies / "age" / f"{region}.json", made.questions["age"])
        for region in groups
    }
    assert sum(tally.n for tally in counted.values()) == told["age"]
    for region, size in groups.items():
        assert_bernoulli(counted[region].n, size, 1 / 4)
    run("tally", path, out, "-o", tmp_path / "whole")
    for name, share in (("age", 0.3), ("ill", 0.2), ("age × ill", 0.06)):
        file = tmp_path / "whole" / f"{name.replace(' × ', '___')}.json"
        estimate = d.Tally.load(file, made.questions[name]).estimate()
        item = {"age": "young", "ill": "HIV", "age × ill": "young × HIV"}[name]
        row = estimate[item]
        luck = np.hypot(row["stderr"], np.sqrt(told[name] * share * (1 - share)))
        assert abs(row["count"] - told[name] * share) < 5 * luck


def test_lists_are_read_alike_from_csv_and_parquet(tmp_path):
    made = sample(answers="all", eps=4 * CLEAR)
    made.save(tmp_path / "s.json")
    table = people(400)
    as_csv(table, tmp_path / "a.csv")
    pq.write_table(table, tmp_path / "a.parquet")
    for data in ("a.csv", "a.parquet"):
        run("perturb", tmp_path / "s.json", tmp_path / data, "-o", tmp_path / f"{data}.d")
        reports = pq.read_table(tmp_path / f"{data}.d" / "used.parquet")["report"].to_pylist()
        found = made.questions["used"].tally(reports).estimate()
        sets = table["used"].to_pylist()
        padded = [min(1, 2 / max(1, len(x))) for x in sets]  # of three items two are kept
        for item in ("bus", "bike", "car"):
            expected = sum(share for x, share in zip(sets, padded, strict=True) if item in x)
            assert abs(found[item]["count"] - expected) < 40  # 5 standard errors of who is cut
        assert found.n == 400


def test_rows_of_different_questions_are_not_linked_by_their_places(tmp_path):
    """At budgets that hide nothing the reports are the answers: their order shows who is who."""
    made = sample(answers="all", eps=4 * CLEAR)
    made.save(tmp_path / "s.json")
    n = 4000
    age = ["young", "old"] * (n // 2)
    table = people(n).set_column(1, "age", pa.array(age))
    same = pa.array(["flu" if x == "young" else "cold" for x in age])
    table = table.set_column(2, "ill", same)
    pq.write_table(table, tmp_path / "a.parquet")
    run("perturb", tmp_path / "s.json", tmp_path / "a.parquet", "-o", tmp_path / "r")
    columns = {}
    for name, item in (("age", "young"), ("ill", "flu")):
        reports = pq.read_table(tmp_path / "r" / f"{name}.parquet")["report"].to_pylist()
        scores = made.questions[name].scores(reports, [item])[:, 0]
        columns[name] = scores > 0.5
        # a budget of 9 for HIV: one of 8,000 says so though nobody has it
        assert abs(columns[name].sum() - n // 2) < 10
    alike = int((columns["age"] == columns["ill"]).sum())
    assert_bernoulli(alike, n, 1 / 2)
    must_fail(lambda: assert_bernoulli(int((columns["age"] == columns["age"]).sum()), n, 1 / 2))


def spoiled():
    table = people(20)

    def changed(name, values):
        return table.set_column(table.schema.get_field_index(name), name, pa.array(values))

    secret = ["young"] * 19 + ["secret answer"]
    yield (
        "an unknown answer",
        changed("age", secret),
        'the column "age" holds something that is not',
    )
    yield "a missing answer", changed("age", ["young"] * 19 + [None]), 'the column "age"'
    yield "a list of unknown", changed("used", [["bus"]] * 19 + [["secret answer"]]), '"used"'
    yield "a number", changed("ill", list(range(20))), 'the column "ill" holds something'
    strange = [*["north"] * 19, "west coast"]
    yield "a strange region", changed("region", strange), 'holds "west coast", which is not an'
    yield "no column", table.drop_columns(["shift"]), 'has no column "shift"; a survey needs'
    yield "nobody", table.slice(0, 0), "has no answers, so there is nothing to perturb"


@pytest.mark.parametrize(("table", "sentence"), [pytest.param(*x[1:], id=x[0]) for x in spoiled()])
def test_wrong_answers_are_refused_unrepeated_before_anything_is_written(
    survey, tmp_path, table, sentence
):
    pq.write_table(table, tmp_path / "a.parquet")
    answer = run("perturb", survey[1], tmp_path / "a.parquet", "-o", tmp_path / "r", code=2)
    assert sentence in " ".join(answer.stderr.split()) and "secret" not in answer.output
    assert not (tmp_path / "r").exists()


def test_a_table_that_is_none_is_refused_without_its_rows(survey, tmp_path):
    as_csv(people(5), tmp_path / "a.csv")
    with open(tmp_path / "a.csv", "a") as file:
        file.write("secret answer,young\n")
    (tmp_path / "a.txt").write_text("x")
    for name, sentence in (
        ("a.csv", "is not a table: every line must have as many fields as the first"),
        ("a.txt", "the answers to a survey are a .csv or a .parquet file"),
        ("none.csv", "cannot be read"),
        ("none.parquet", "does not exist"),
    ):
        answer = run("perturb", survey[1], tmp_path / name, "-o", tmp_path / "r", code=2)
        assert sentence in " ".join(answer.stderr.split()) and "secret" not in answer.output
    answer = run(
        "perturb", survey[1], tmp_path / "a.csv", "-o", tmp_path / "r", "--indices", code=2
    )
    assert "--with-column and --indices are for a survey of one question" in answer.stderr


def test_folders_of_reports_that_lack_a_question_are_refused(survey, tmp_path):
    pq.write_table(people(40), tmp_path / "a.parquet")
    run("perturb", survey[1], tmp_path / "a.parquet", "-o", tmp_path / "r")
    (tmp_path / "r" / "ill.parquet").unlink()
    answer = run("tally", survey[1], tmp_path / "r", "-o", tmp_path / "t", code=2)
    assert re.search(r'has no\s+ill.parquet, the reports on "ill"', answer.stderr)


def test_public_questions_do_not_take_the_names_of_columns():
    public = {"name": "report", "text": "Which?", "items": ["a", "b"]}
    with pytest.raises(PolicyError, match="the name of a column of every table of reports"):
        d.Survey("s", sample().questions, public=[public])


def test_a_crossed_answer_is_the_cell_of_its_two(survey, tmp_path):
    made = sample(answers="all", eps=4 * CLEAR)
    made.save(tmp_path / "s.json")
    table = people(300)
    pq.write_table(table, tmp_path / "a.parquet")
    run("perturb", tmp_path / "s.json", tmp_path / "a.parquet", "-o", tmp_path / "r")
    reports = pq.read_table(tmp_path / "r" / "age___ill.parquet")["report"].to_pylist()
    found = made.questions["age × ill"].tally(reports).estimate()
    pairs = list(zip(table["age"].to_pylist(), table["ill"].to_pylist(), strict=True))
    variance = theory.level_variance(made.questions["age × ill"], "uniform").max()
    for cell in made.questions["age × ill"].policy.items:  # false alarms: 1e-9 per cell
        error = found[cell]["count"] - pairs.count(tuple(cell.split(" × ")))
        assert abs(error) < 6 * math.sqrt(300 * variance) < 2


def test_an_error_is_one_of_data():
    from discreet.data.survey_answers import read_answers

    with pytest.raises(DataError, match='the column "age" holds something'):
        read_answers(sample(), people(3).set_column(1, "age", pa.array(["x", "y", "z"])))


def written_columns(tmp_path):
    """The columns of everything that discreet writes about answers to one question."""
    mechanism = sample().questions["age"]
    people = mechanism.perturb_many(["young", "old"] * 200)
    weighted = WeightedTally.count(mechanism, people, np.linspace(1, 2, 400))
    for estimate in (mechanism.tally(people).estimate(), weighted.estimate()):
        estimate.save(tmp_path / "e.csv", views=[v for v in VIEWS if v in estimate.views])
        yield from (tmp_path / "e.csv").read_text().splitlines()[0].replace('"', "").split(",")
    write_reports(tmp_path / "r.parquet", mechanism, [people])
    yield from pq.read_schema(tmp_path / "r.parquet").names
    yield from RESERVED_IN_REPORTS


def test_no_column_that_is_written_can_be_a_public_question(tmp_path):
    columns = set(written_columns(tmp_path))
    assert {"item", "effective_n", "shrunk_upper", "consistent", "report"} <= columns
    assert columns <= set(RESERVED)
    assert set(RESERVED) - columns == {"question", "people"}  # of a folder of Spark, a population
    for name in RESERVED:
        with pytest.raises(PolicyError, match="call it something else"):
            Public(name, "Which?", ["a", "b"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A survey, the folder of its reports, and those of its tallies, whole and by region."""
    place, survey = tmp_path_factory.mktemp("folders"), sample()
    survey.save(place / "s.json")
    pq.write_table(people(4000), place / "answers.parquet")
    run("perturb", place / "s.json", place / "answers.parquet", "-o", place / "reports")
    run("tally", place / "s.json", place / "reports", "-o", place / "whole")
    run("tally", place / "s.json", place / "reports", "-o", place / "groups", "--by", "region")
    return place, survey


@pytest.mark.parametrize("name", ["age", "ill", "used", "age × ill"])
def test_an_estimate_of_a_question_takes_the_folder_of_the_survey(folders, name):
    """Whichever command made the folder, the numbers are those of the question's own file."""
    place, _ = folders
    stem = name.replace(" × ", "___")

    def estimated(path, *more):
        out = run("estimate", place / "s.json", path, "--question", name, *more, "--json").output
        return json.loads(out)

    expected = estimated(place / "whole" / f"{stem}.json")
    assert expected["n"] > 500
    for folder in ("whole", "reports"):
        found = estimated(place / folder)
        assert (found["n"], found["items"]) == (expected["n"], expected["items"])
    groups = estimated(place / "groups")["groups"]
    assert sum(group["n"] for group in groups) == expected["n"] and len(groups) == 3
    assert groups == estimated(place / "groups" / stem)["groups"]
    by = estimated(place / "reports", "--by", "region")["groups"]
    rows = {row["group"]["region"]: row["items"] for row in by}
    assert rows == {row["group"]["group"]: row["items"] for row in groups}


def test_an_estimate_of_a_crossed_question_has_its_margins(folders, tmp_path):
    """Sums of cells, with the errors of sums and not of cells that were independent."""
    place, survey = folders
    name, s = "age × ill", place / "s.json"
    command = ["estimate", s, place / "whole", "--question", name]
    found = json.loads(run(*command, "-o", tmp_path / "t.csv", "--json").stdout)
    totals = {row["item"]: row for row in found["totals"]}
    assert [*totals] == ["age: young", "age: old", "ill: HIV", "ill: flu", "ill: cold"]
    cells = {row["item"]: row for row in found["items"]}
    mechanism = survey.questions[name]
    estimate = d.Tally.load(place / "whole" / "age___ill.json", mechanism).estimate()
    for question, answers in survey.margins(name).items():
        for answer, items in answers.items():
            row = totals[f"{question}: {answer}"]
            assert row["count"] == pytest.approx(sum(cells[item]["count"] for item in items))
            assert row["stderr"] == pytest.approx(estimate.total(items)["stderr"])
            apart = np.hypot.reduce([cells[item]["stderr"] for item in items])
            assert row["stderr"] != pytest.approx(apart, rel=1e-3)  # cells are not independent
        whole = sum(totals[f"{question}: {answer}"]["count"] for answer in answers)
        assert whole == pytest.approx(sum(row["count"] for row in cells.values()))
    written = arrow_csv.read_csv(tmp_path / "t.csv").to_pylist()
    assert [row["item"] for row in written[-5:]] == [*totals]
    by = ["estimate", s, place / "reports", "--question", name, "--by", "region", "--json"]
    for group in json.loads(run(*by).stdout)["groups"]:
        assert [row["item"] for row in group["totals"]] == [*totals]
    assert survey.margins("age") == {}


def test_tallies_and_scores_of_a_question_take_the_folder_too(folders, tmp_path):
    place, survey = folders
    s, reports = place / "s.json", place / "reports"
    run("tally", s, reports, "--question", "ill", "-o", tmp_path / "ill.json")
    one = d.Tally.load(tmp_path / "ill.json", survey.questions["ill"])
    assert one == d.Tally.load(place / "whole" / "ill.json", survey.questions["ill"])
    run("tally", s, place / "whole", "--question", "ill", "-o", tmp_path / "again.json")
    assert d.Tally.load(tmp_path / "again.json", survey.questions["ill"]) == one
    run("scores", s, reports, "--question", "ill", "-o", tmp_path / "scores.parquet")
    assert pq.read_table(tmp_path / "scores.parquet").num_rows == one.n
    told = run("estimate", s, reports, code=2).output
    assert "the survey has 4 questions; name one" in told
    told = run("estimate", s, reports, "--question", "none", code=2).output
    assert '"none" is not a question of this survey' in told
