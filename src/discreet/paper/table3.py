"""Table III: the data sets, beside the files at hand."""

from __future__ import annotations

from discreet.paper.datasets import EXTRAS, PUBLISHED, Data, Dataset
from discreet.paper.settings import Setup
from discreet.paper.tables import PaperTable, Rows
from discreet.paper.target import Target
from discreet.paper.verdicts import FAILS, HOLDS, UNKNOWN, Claims, Evidence, Verdict

CLAIMS = Claims("table3")
_COUNTS = ("records", "users", "items")


def data_sets(data: Data) -> PaperTable:
    """The paper's data sets beside those at hand."""
    rows: Rows = []
    for key, paper in PUBLISHED.items():
        counts = dict(zip(_COUNTS, (paper.records, paper.users, paper.items), strict=True))
        rows.append({"data set": paper.name, **counts, **_here(data.get(key))})
    for key in EXTRAS:
        if key in data:
            rows.append({"data set": data[key].title, **dict.fromkeys(_COUNTS), **_here(data[key])})
            rows[-1]["partial"] = True
    caption = "The paper's Table III beside the files that were used."
    return PaperTable("table3", "Synthetic and real-world data sets", caption, rows)


def _here(mine: Dataset | None) -> dict[str, object]:
    return {
        "records here": mine.records if mine else None,
        "users here": mine.n if mine else None,
        "items here": mine.m if mine else None,
        "file": mine.source if mine else "not there",
        "partial": bool(mine and mine.partial),
    }


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [data_sets(data)]


def _claim(name: str) -> None:
    sentence = f"{name} has the records, users and items of Table III."

    @CLAIMS.add(f"data set {name}", "Sec. VI, Table III", sentence)
    def judge(evidence: Evidence) -> Verdict:
        row = next(x for x in evidence.tables["table3"] if x["data set"] == name)
        if row["users here"] is None:
            return Verdict(UNKNOWN, "the file is not there")
        number = ", ".join(f"{row[f'{what} here']:,} {what}" for what in _COUNTS)
        if row["partial"]:
            note = f"The file at hand ({row['file']}) is not the whole data set."
            return Verdict(UNKNOWN, number, None, note)
        off = [what for what in _COUNTS if row[what] != row[f"{what} here"]]
        if not off:
            return Verdict(HOLDS, number)
        differences = "; ".join(f"{what}: {row[what]:,} in the table" for what in off)
        return Verdict(FAILS, number, None, differences + _unrated(evidence, name))


def _unrated(evidence: Evidence, name: str) -> str:
    """Which file has the records of the table."""
    rows = evidence.tables["table3"]
    whole = next((x for x in rows if x["file"].startswith("clothing_all")), None)
    if not whole or name != "Clothing":
        return "."
    here = f"{whole['file']}: {whole['records here']:,} records"
    return (
        f". The records of the table go with {whole['users here']:,} users ({here}), its users "
        "with the records that have a rating."
    )


for _published in PUBLISHED.values():
    _claim(_published.name)

TARGET = Target(CLAIMS, uses=(*PUBLISHED, *EXTRAS), tables=_tables)
