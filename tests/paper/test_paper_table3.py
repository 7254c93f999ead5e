"""Table III: what is missing and what is partial is named."""

from paper_evidence import check_claims, evidence, judge

from discreet.paper import datasets, table3
from discreet.paper.datasets import PUBLISHED
from discreet.paper.settings import Setup
from discreet.paper.verdicts import UNKNOWN


def data_table(name, here=(None, None, None), partial=False, file="x.dat"):
    counts = ("records", "users", "items")
    row = {"data set": name, **dict(zip(counts, (10, 5, 3), strict=True))}
    row |= {f"{what} here": x for what, x in zip(counts, here, strict=True)}
    return [{**row, "file": file, "partial": partial}]


def test_table3_names_what_is_missing_and_what_is_partial(tmp_path):
    path = tmp_path / "retail.dat"
    path.write_text("5 7 5\n9\n7 5 100000000000\n")
    data = {key: datasets.load(key, path) for key in ("retail", "clothing-all")}
    data["uniform"] = datasets.synthetic("uniform", Setup())
    table = table3.data_sets(data)
    rows = {row["data set"]: row for row in table.rows}
    kosarak = rows["Kosarak"]
    assert kosarak["users here"] is None and kosarak["file"] == "not there"
    told = (kosarak["records"], kosarak["users"], kosarak["items"])
    assert told == (8_019_015, 990_002, 41_270)
    assert rows["Retail"]["partial"] and not rows["Uniform"]["partial"]
    line = "| Retail | 908,576 | 88,162 | 16,470 | 7 | 3 | 4 | retail.dat | True |"
    assert line in table.markdown()
    extra = rows[data["clothing-all"].title]
    assert extra["records"] is None and extra["users here"] == 3 and extra["partial"]


def test_claims_hold_and_fail():
    names = [told.name for told in PUBLISHED.values()]
    cases = {
        f"data set {name}": (
            evidence(table3=data_table(name, (10, 5, 3))),
            evidence(table3=data_table(name, (11, 5, 3))),
        )
        for name in names
    }
    check_claims(table3.TARGET, cases)


def test_what_is_not_there_or_partial_cannot_be_shown():
    decide = judge(table3.TARGET, "data set Kosarak")
    for rows in (data_table("Kosarak"), data_table("Kosarak", (1, 1, 1), partial=True)):
        assert decide(evidence(table3=rows)).verdict == UNKNOWN


def test_the_file_with_the_records_of_the_table_is_named():
    rows = data_table("Clothing", (9, 5, 3))
    rows += data_table("Clothing (another file)", (10, 6, 3), True, "clothing_all.dat")
    note = judge(table3.TARGET, "data set Clothing")(evidence(table3=rows)).note
    assert note.startswith("records: 10 in the table. The records of the table go with 6 users")
