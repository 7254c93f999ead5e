"""perturb, tally and estimate from end to end, in this process and in one of their own, with good
data and with bad.
"""

import csv as csv_module
import gzip
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from parts import changed

import discreet as d
from discreet.check.exact import D
from discreet.cli import main
from discreet.data import counting

LABELS = [
    "HIV-Xq7Zk9Wv",
    "anemia-Xq7Zk9Wv",
    "headache-Xq7Zk9Wv",
    "stomach, ache-Xq7Zk9Wv",
    "größe-Xq7Zk9Wv",
]  # the mark must never leave; random bytes do not hit on 8
LEVELS = [("serious", "ln(4)", LABELS[:1]), ("common", "ln(6)", LABELS[1:])]
SINGLE, SETS = d.Policy.from_levels(LEVELS), d.Policy.from_levels(LEVELS, kind="set")
TRUTH = [100, 900, 400, 500, 100]
ANSWERS = np.repeat(np.arange(5), TRUTH)
PEOPLE = [[i] if k % 2 else [i, (i + 1) % 5] for k, i in enumerate(ANSWERS)]
SET_TRUTH = np.bincount([i for x in PEOPLE for i in x], minlength=5).tolist()


def in_parts(policy, padding=None):
    """Independent bits in two parts, made by hand: a quarter of the people as opt0, the rest as
    opt1.
    """
    first, second = (d.design(policy, model, padding=padding) for model in ("opt0", "opt1"))
    none = None if padding is None else D // 4
    rest = None if padding is None else D - D // 4
    parts = (
        changed(first.parts[0], chance=[D // 4] * 2, none=none),
        changed(second.parts[0], chance=[D - D // 4] * 2, none=rest),
    )
    return replace(first, model="subset", parts=parts, certificate=None)


MECHANISMS = {
    "bits": d.design(SINGLE, "opt0"),
    "ticket": d.design(SINGLE, "opt0", encoding="ticket"),
    "bits parts": in_parts(SINGLE),
    "ticket parts": d.design(SINGLE, "subset", encoding="ticket", goal="total"),
    "fixed": d.design(SINGLE, goal="total"),
    "grr": d.design(SINGLE, "grr"),
    "ss": d.design(SINGLE, "ss"),
    "set bits": d.design(SETS, "opt0", padding=2),
    "set ticket": d.design(SETS, "opt0", padding=2, encoding="ticket"),
    "set bits parts": in_parts(SETS, 2),
    "set ticket parts": d.design(SETS, "subset", padding=2, encoding="ticket", goal="total"),
    "set fixed": d.design(SETS, "subset", padding=2, encoding="bits", goal="total"),
    "set hits parts": d.design(SETS, "hits", padding=2, prior=[0.01, *([0.45] * 4)], goal="total"),
    "set each": d.design(replace(SETS, kind="each")),
}


def test_the_mechanisms_here_are_of_every_kind():
    kinds = {name: (m.encoding.kind, len(m.parts) > 1) for name, m in MECHANISMS.items()}
    for name, (kind, several) in kinds.items():
        word = name.removeprefix("set ").split()[0]
        assert kind == {"grr": "fixed", "ss": "fixed"}.get(word, word), name
        assert several == ("parts" in name or "fixed" in name), name


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(
        main, [str(a) for a in arguments], input=stdin, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def refused(folder, *arguments, stdin=None):
    """Exit code 2, nothing on standard output, one sentence on standard error, and no file more
    than before.
    """
    before = tree(folder)
    result = run(*arguments, code=2, stdin=stdin)
    assert result.stdout == ""
    sentence = one_error(result.stderr)
    assert tree(folder) == before
    return sentence


def one_error(stderr):
    (line,) = stderr.splitlines()
    assert line.startswith("error: ") and "Traceback" not in line
    return line


def tree(folder):
    """Every file with its content, hidden ones too; pipes by name only."""
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def command(*arguments):
    return [str(Path(sys.executable).with_name("discreet")), *map(str, arguments)]


def launched(first, *arguments):
    """The command after a line of Python, in the same process."""
    code = f"import os, resource, signal, sys; {first}; os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-I", "-c", code, *command(*arguments)]


def script(*arguments, **settings):
    """The installed command, in a process of its own."""
    return subprocess.run(
        command(*arguments), capture_output=True, timeout=60, check=False, **settings
    )


def strictly(text):
    """JSON as the standard has it: no NaN, no Infinity."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def quoted(label):
    return f'"{label}"' if "," in label else label


def write_csv(path, answers=ANSWERS):
    path.write_text("item\n" + "".join(f"{quoted(LABELS[i])}\n" for i in answers), encoding="utf-8")
    return path


def write_user_rows(path, people=PEOPLE):
    rows = "".join(f"u{k},{quoted(LABELS[i])}\n" for k, x in enumerate(people) for i in x)
    path.write_text("user,item\n" + rows, encoding="utf-8")
    return path


def write_parquet(path, answers=ANSWERS):
    pq.write_table(pa.table({"item": [LABELS[i] for i in answers]}), path)
    return path


def write_indices(path):
    pq.write_table(pa.table({"item": ANSWERS}), path)
    return path


def write_places(path):
    pq.write_table(pa.table({"item": [[int(i) for i in x] for x in PEOPLE]}), path)
    return path


def write_lists(path):
    pq.write_table(pa.table({"item": [[LABELS[i] for i in x] for x in PEOPLE]}), path)
    return path


def packed(opener):
    def write(path):
        raw = path.with_name("raw.csv")
        (write_user_rows if "set" in path.name else write_csv)(raw)
        with opener(path, "wb") as out:
            out.write(raw.read_bytes())
        raw.unlink()
        return path

    return write


FORMATS = {
    "a.csv": write_csv, "a.parquet": write_parquet, "index.parquet": write_indices,
    "a.csv.gz": packed(gzip.open), "a.csv.xz": packed(lzma.open),
}  # fmt: skip
SET_FORMATS = {
    "set.csv": write_user_rows, "set.parquet": write_lists, "set.index.parquet": write_places,
    "set.csv.gz": packed(gzip.open), "set.csv.xz": packed(lzma.open),
}  # fmt: skip
CASES = [(m, f) for m in MECHANISMS for f in (SET_FORMATS if m.startswith("set") else FORMATS)]


@pytest.fixture
def saved(tmp_path):
    """The path of a saved mechanism, by its name here."""

    def save(name):
        path = tmp_path / f"{name.replace(' ', '-')}.survey.json"
        MECHANISMS[name].save(path)
        return path

    return save


@pytest.fixture
def ready(tmp_path, saved):
    """A mechanism, answers, reports and a tally of them."""
    mechanism, data = saved("bits"), write_csv(tmp_path / "a.csv")
    reports, tally = tmp_path / "r.parquet", tmp_path / "t.json"
    run("perturb", mechanism, data, "-o", reports)
    run("tally", mechanism, reports, "-o", tally)
    return mechanism, data, reports, tally


def assert_near(rows, truth):
    """Every estimate within 7 standard errors: a false alarm in 10^11 items."""
    for row in rows:
        assert abs(row["count"] - truth[LABELS.index(row["item"])]) <= 7 * row["stderr"], row


# ---- pipelines -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "data"), CASES)
def test_the_whole_way(tmp_path, saved, name, data):
    """Every encoding and every format: all are counted, near the truth, and no answer is to be
    found anywhere.
    """
    sets = name.startswith("set")
    mechanism, reports, tally = saved(name), tmp_path / "r.parquet", tmp_path / "t.json"
    path = (SET_FORMATS if sets else FORMATS)[data](tmp_path / data)
    by_index = ["--indices"] if "index" in data else []
    first = run("perturb", mechanism, path, "-o", reports, *by_index)
    assert "Wrote 2,000 reports" in first.stdout and first.stderr == ""
    second = run("tally", mechanism, reports, "-o", tally)
    assert "Counted 2,000 reports" in second.stdout and second.stderr == ""
    for output in (
        reports.read_bytes(),
        tally.read_bytes(),
        *(x.output.encode() for x in (first, second)),
    ):
        assert b"Xq7Zk9Wv" not in output
    found = strictly(run("estimate", mechanism, tally, "--json").stdout)
    assert found["n"] == 2000 and len(found["items"]) == 5
    assert_near(found["items"], SET_TRUTH if sets else TRUTH)
    assert bool(found["note"]) == (sets and "each" not in name)  # which cuts nothing
    assert pq.read_metadata(reports).num_rows == 2000
    assert not [x for x in os.listdir(tmp_path) if x.endswith(".part")]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
@pytest.mark.parametrize(
    ("model", "encoding"), [("opt0", "bits"), ("opt0", "ticket"), ("subset", "bits")]
)
def test_fimi_the_whole_way(tmp_path, suffix, model, encoding):
    policy = d.Policy.from_levels([("all", 2, ["11", "22", "33"])], kind="set")
    mechanism = tmp_path / "m.json"
    d.design(policy, model, padding=2, encoding=encoding).save(mechanism)
    path = tmp_path / f"a.dat{suffix}"
    with {"": open, ".gz": gzip.open, ".xz": lzma.open}[suffix](path, "wb") as out:
        out.write(b"11 22\n33\n\n11\n" * 500)
    assert (
        strictly(run("perturb", mechanism, path, "-o", tmp_path / "r.parquet", "--json").stdout)[
            "reports"
        ]
        == 2000
    )
    run("tally", mechanism, tmp_path / "r.parquet", "-o", tmp_path / "t.json")
    found = strictly(run("estimate", mechanism, tmp_path / "t.json", "--json").stdout)
    for row in found["items"]:
        assert (
            abs(row["count"] - {"11": 1000, "22": 500, "33": 500}[row["item"]]) <= 7 * row["stderr"]
        )


@pytest.mark.parametrize("name", ["bits parts", "ticket", "fixed"])
def test_the_whole_way_in_processes_of_their_own(tmp_path, saved, name):
    mechanism, data = saved(name), write_csv(tmp_path / "a.csv")
    reports, tally = tmp_path / "r.parquet", tmp_path / "t.json"
    outputs = [
        script("perturb", mechanism, "-", "-o", reports, input=data.read_bytes()),
        script("tally", mechanism, reports, "-o", tally),
        script("estimate", mechanism, tally, "--json"),
    ]
    assert [(x.returncode, x.stderr) for x in outputs] == [(0, b"")] * 3
    assert_near(strictly(outputs[2].stdout)["items"], TRUTH)
    for output in (reports.read_bytes(), tally.read_bytes(), outputs[0].stdout, outputs[1].stdout):
        assert b"Xq7Zk9Wv" not in output


def test_standard_input(tmp_path, saved):
    text = write_csv(tmp_path / "a.csv").read_text(encoding="utf-8")
    run("perturb", saved("bits"), "-", "-o", tmp_path / "r.parquet", stdin=text)
    assert pq.read_metadata(tmp_path / "r.parquet").num_rows == 2000


def test_other_columns(tmp_path, saved):
    path = tmp_path / "a.csv"
    for name, who, count in (("bits", "012", 3), ("set bits", "112", 2)):
        rows = "".join(f"{x},{LABELS[k % 2]}\n" for k, x in enumerate(who))
        path.write_text(f"who,what\n{rows}")
        output = run(
            "perturb",
            saved(name),
            path,
            "-o",
            tmp_path / "r.parquet",
            "--column",
            "what",
            "--user",
            "who",
            "--json",
        )
        assert strictly(output.stdout) == {
            "reports": count, "bytes_per_report": 1, "output": str(tmp_path / "r.parquet"),
        }  # fmt: skip


NUMBERED = d.Policy.from_levels([("all", 2, ["1", "2", "3"])])


@pytest.mark.parametrize("command", ["perturb", "simulate"])
def test_integers_in_parquet_are_labels(tmp_path, command):
    """Labels "1", "2", "3" and a column of integers: every item got the count of another one."""
    mechanism, data, tally = (tmp_path / name for name in ("m.json", "a.parquet", "t.json"))
    d.design(NUMBERED).save(mechanism)
    pq.write_table(pa.table({"item": np.repeat([1, 2, 3], [10_000, 3_000, 1_000])}), data)
    if command == "simulate":
        policy = tmp_path / "p.json"
        level = {"name": "all", "epsilon": 2, "items": ["1", "2", "3"]}
        policy.write_text(json.dumps({"level": [level]}))
        run("simulate", policy, data, "--repeats", 1)
        assert "item index 3 is out of range" in refused(
            tmp_path, "simulate", policy, data, "--repeats", 1, "--indices"
        )
        return
    run("perturb", mechanism, data, "-o", tmp_path / "r.parquet")
    run("tally", mechanism, tmp_path / "r.parquet", "-o", tally)
    found = strictly(run("estimate", mechanism, tally, "--json").stdout)["items"]
    for row in found:
        truth = {"1": 10_000, "2": 3_000, "3": 1_000}[row["item"]]
        assert abs(row["count"] - truth) <= 7 * row["stderr"]  # a false alarm in 10^11


def test_integers_that_are_no_labels_are_refused_without_indices(tmp_path, saved):
    path = write_indices(tmp_path / "a.parquet")
    sentence = refused(tmp_path, "perturb", saved("bits"), path, "-o", tmp_path / "r.parquet")
    assert "no label of the policy is one; if they are indices" in sentence


@pytest.mark.parametrize("name", ["r.csv", "r.CSV", "r.json", "r.xlsx", "r.parquet.gz"])
def test_reports_are_not_written_as_anything_but_parquet(ready, tmp_path, name):
    mechanism, data, _, _ = ready
    assert f"{name}: reports are written as Parquet" in refused(
        tmp_path, "perturb", mechanism, data, "-o", tmp_path / name
    )


@pytest.mark.parametrize("name", ["bits", "ticket parts", "set fixed"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "stdin"])
def test_groups_of_what_perturb_wrote(tmp_path, saved, name, kind):
    """perturb --with-column, then tally --by: every region for itself, and together all."""
    mechanism, reports = saved(name), tmp_path / "r.parquet"
    sets = name.startswith("set")
    rows = [
        (f"u{k}", LABELS[i], "north" if k % 4 else "the south", str(k % 2))
        for k, x in enumerate(PEOPLE if sets else [[i] for i in ANSWERS])
        for i in x
    ]
    columns = dict(
        zip(("user", "item", "region", "odd"), map(list, zip(*rows, strict=True)), strict=True)
    )
    path = tmp_path / f"a.{'parquet' if kind == 'parquet' else 'csv'}"
    if kind == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        with open(path, "w", newline="", encoding="utf-8") as out:
            csv_module.writer(out).writerows([[*columns], *rows])
    text = path.read_text(encoding="utf-8") if kind == "stdin" else None
    data = "-" if kind == "stdin" else path
    keep = ["--with-column", "region", "--with-column", "odd", "--with-column", "region"]
    run("perturb", mechanism, data, "-o", reports, *keep, stdin=text)
    table = pq.read_table(reports)
    assert table.column_names == ["report", "region", "odd"] and len(table) == 2000
    assert table["odd"].to_pylist() == ["0", "1"] * 1000
    assert b"Xq7Zk9Wv" not in reports.read_bytes()
    facts = strictly(
        run("tally", mechanism, reports, "--by", "region", "-o", tmp_path / "by", "--json").stdout
    )
    assert facts["groups"] == {"the south": 500, "north": 1500}
    crossed = ("--by", "region", "--by", "odd", "--by", "region", "-o", tmp_path / "both")
    found = run("tally", mechanism, reports, *crossed)
    assert f"Counted 2,000 reports into {tmp_path / 'both'}, 3 groups by region and odd." in (
        found.stdout.replace("\n", " ")
    )
    sums = {
        path.stem: d.Tally.load(path, MECHANISMS[name]).n for path in (tmp_path / "both").iterdir()
    }
    assert sums == {"the_south__0": 500, "north__0": 500, "north__1": 1000}
    run("tally", mechanism, reports, "-o", tmp_path / "t.json")
    whole = d.Tally.load(tmp_path / "t.json", MECHANISMS[name])
    parts = [d.Tally.load(x, MECHANISMS[name]) for x in (tmp_path / "by").glob("*.json")]
    assert sum(parts, d.Tally.empty(MECHANISMS[name])) == whole
    odd = np.array(table["odd"].to_pylist()) == "1"
    truth = np.bincount(
        [i for k, x in enumerate(PEOPLE if sets else ANSWERS[:, None]) if k % 4 == 0 for i in x],
        minlength=5,
    )
    (south,) = (x.estimate() for x in parts if x.n == 500)
    assert odd.sum() == 1000 and (np.abs(south.counts - truth) <= 7 * south.stderr).all()


def test_what_must_not_be_kept(ready, tmp_path):
    mechanism, data, _, _ = ready
    command = ("perturb", mechanism, data, "-o", tmp_path / "x.parquet", "--with-column")
    assert "would store the answers beside the reports" in refused(tmp_path, *command, "item")
    assert "would store the answers" in refused(
        tmp_path, *command, "what", "--with-column", "item", "--column", "what"
    )
    assert 'has no column "region"' in refused(tmp_path, *command, "region")
    for name in ("report", "count", "fingerprint"):
        assert f'"{name}" cannot be kept' in refused(tmp_path, *command, name)


def test_perturbing_twice_gives_other_reports(ready, tmp_path):
    mechanism, data, reports, _ = ready
    run("perturb", mechanism, data, "-o", tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() != reports.read_bytes()


# ---- tally ---------------------------------------------------------------------------------------


def test_folders_files_and_tallies_add_up(ready, tmp_path):
    mechanism, data, reports, tally = ready
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("b", "a"):
        run("perturb", mechanism, data, "-o", folder / f"{name}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".a.parquet.part").write_text("half")
    total = tmp_path / "total.json"
    output = run("tally", mechanism, folder, tally, reports, "-o", total, "--json")
    assert strictly(output.stdout) == {"reports": 8000, "refused": {}, "output": str(total)}
    loaded = d.Survey.load(mechanism).mechanism
    parts = [d.Tally.load(tally, loaded)] * 2
    parts += [counting.tally_files([p], loaded)[None] for p in folder.glob("[ab].parquet")]
    assert d.Tally.load(total, loaded) == parts[0] + parts[1] + parts[2] + parts[3]
    run("tally", mechanism, total, tally, "-o", total)  # onto one of its own inputs
    assert d.Tally.load(total, loaded).n == 10_000


def test_refused_reports_are_said(ready, tmp_path):
    mechanism = ready[0]
    path = tmp_path / "other.parquet"
    pq.write_table(
        pa.table({"report": pa.array([b"\x01", b"\x02", b"\xff", b"", None, b"abc"])}), path
    )
    output = run("tally", mechanism, path, "-o", tmp_path / "x.json")
    assert "Counted 2 reports" in output.stdout
    assert sorted(output.stderr.splitlines()) == [
        "Refused 1 that are not reports of this mechanism (tail).",
        "Refused 3 that are not reports of this mechanism (length).",
    ]
    facts = strictly(run("tally", mechanism, path, "-o", tmp_path / "x.json", "--json").stdout)
    assert facts["reports"] == 2 and facts["refused"] == {"length": 3, "tail": 1}
    shutil.copy(tmp_path / "x.json", tmp_path / "z.json")
    run("tally", mechanism, tmp_path / "x.json", tmp_path / "z.json", "-o", tmp_path / "y.json")
    assert json.loads((tmp_path / "y.json").read_text())["refused"] == {"length": 6, "tail": 2}


REFUSED = {  # what is no report, and why
    "bits parts": [("part", b"\x02\x01"), ("tail", b"\x01\x20")],
    "fixed": [("part", b"\x63\x00"), ("tail", b"\x00\x80"), ("size", b"\x00\x1f")],
    "grr": [("tail", b"\x21"), ("size", b"\x00"), ("size", b"\x03")],
    "ticket": [
        ("ticket", b"\xff" * 4),
        ("ticket", MECHANISMS["ticket"].encoding.tickets.to_bytes(4, "little")),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_reason_is_said(tmp_path, saved, name):
    mechanism, path = MECHANISMS[name], tmp_path / "r.parquet"
    good = [row.tobytes() for row in mechanism.perturb_many(ANSWERS[:50])]
    bad = [report for _, report in REFUSED[name]]
    pq.write_table(pa.table({"report": pa.array([*bad, *good, good[0] + b"x"], pa.binary())}), path)
    wanted = {reason: 0 for reason, _ in REFUSED[name]} | {"length": 1}
    for reason, _ in REFUSED[name]:
        wanted[reason] += 1
    output = run("tally", saved(name), path, "-o", tmp_path / "t.json")
    assert "Counted 50 reports" in output.stdout
    assert sorted(output.stderr.splitlines()) == sorted(
        f"Refused {count} that are not reports of this mechanism ({reason})."
        for reason, count in wanted.items()
    )
    tally = d.Tally.load(tmp_path / "t.json", mechanism)
    assert tally == mechanism.tally([*bad, *good, b""]) and tally.refused == wanted


def test_a_silent_level_that_is_named_is_said(blind, tmp_path):
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"report": pa.array([b"\x06", b"\x07", b"\x01", b"\x21"])}), path)
    output = run("tally", blind[0], path, "-o", tmp_path / "x.json", "--json")
    assert strictly(output.stdout)["refused"] == {"silent": 2, "tail": 1}


INTEGERS = [pa.uint32(), pa.int64(), pa.uint64(), pa.binary(4), pa.binary(), pa.large_binary()]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["ticket", "ticket parts", "set ticket parts"])
def test_tickets_of_any_engine_give_the_same_tally(tmp_path, saved, name, kind):
    """Ours are unsigned 32-bit integers; Spark has 64 bits with a sign, others have bytes."""
    mechanism, ours = MECHANISMS[name], tmp_path / "ours.parquet"
    data = (write_user_rows if name.startswith("set") else write_csv)(tmp_path / "a.csv")
    run("perturb", saved(name), data, "-o", ours)
    column = pq.read_table(ours).column("report")
    assert column.type == pa.uint32() and column.null_count == 0
    numbers = column.to_pylist()
    if not pa.types.is_integer(kind):
        numbers = [number.to_bytes(4, "little") for number in numbers]
    pq.write_table(pa.table({"report": pa.array(numbers, kind)}), tmp_path / "theirs.parquet")
    for which in ("ours", "theirs"):
        output = run(
            "tally", saved(name), tmp_path / f"{which}.parquet", "-o", tmp_path / f"{which}.json"
        )
        assert "Counted 2,000 reports" in output.stdout and output.stderr == ""
    tallies = [d.Tally.load(tmp_path / f"{which}.json", mechanism) for which in ("ours", "theirs")]
    assert tallies[0] == tallies[1]


# ---- estimate ------------------------------------------------------------------------------------

COLUMNS = ["item", "level", "count", "stderr", "lower", "upper", "share", "share_low", "share_high"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_tables_are_written(ready, tmp_path, suffix):
    mechanism, _, _, tally = ready
    path = tmp_path / f"est.{suffix}"
    shown = run("estimate", mechanism, tally, "-o", path).stdout
    if suffix == "csv":
        with open(path, encoding="utf-8", newline="") as source:
            rows = [
                {k: v if k in ("item", "level", "about") else float(v) for k, v in r.items()}
                for r in csv_module.DictReader(source)
            ]
    elif suffix == "parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        document = strictly(path.read_text(encoding="utf-8"))
        assert document["n"] == 2000 and document["confidence"] == 0.95
        assert document["fingerprint"] == MECHANISMS["bits"].fingerprint
        rows = document["items"]
    if suffix != "json":
        last = {(row.pop("n"), row.pop("confidence"), row.pop("about")) for row in rows}
        assert last == {(2000, 0.95, "population")}
    assert [row["item"] for row in rows] == LABELS and all(list(row) == COLUMNS for row in rows)
    assert_near(rows, TRUTH)
    estimate = d.Tally.load(tally, MECHANISMS["bits"]).estimate()
    assert [row["count"] for row in rows] == pytest.approx(estimate.counts.tolist(), rel=1e-12)
    assert all(label in shown for label in LABELS) and "2,000 reports" in shown


def test_top_and_level(ready):
    mechanism, _, _, tally = ready
    counts = d.Tally.load(tally, MECHANISMS["bits"]).estimate().counts
    order = [LABELS[i] for i in np.argsort(-counts, kind="stable")]
    first = strictly(run("estimate", mechanism, tally, "--json", "--top", 2).stdout)
    assert [row["item"] for row in first["items"]] == order[:2]
    wide = strictly(run("estimate", mechanism, tally, "--json", "--confidence", 0.999).stdout)
    assert wide["confidence"] == 0.999 and len(wide["items"]) == 5
    for narrow, row in zip(first["items"], wide["items"], strict=False):
        assert row["lower"] < narrow["lower"] < narrow["count"] < narrow["upper"] < row["upper"]
    shown = run("estimate", mechanism, tally, "--top", 1, "--confidence", 0.9).stdout
    assert [label in shown for label in order] == [
        True,
        False,
        False,
        False,
        False,
    ] and "90 % interval" in shown


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml")])
def test_plots_are_drawn(ready, tmp_path, suffix, start):
    mechanism, _, _, tally = ready
    path = tmp_path / f"est.{suffix}"
    run("estimate", mechanism, tally, "--plot", path, "--top", 3)
    assert path.read_bytes().startswith(start) and path.stat().st_size > 3000


@pytest.fixture
def blind(tmp_path):
    """A mechanism whose reports say nothing about the first level, and a tally."""
    one = MECHANISMS["bits"]
    (part,) = one.parts
    quiet = changed(part, own=(0, part.ints.own[1]), other=(0, part.ints.other[1]))
    mechanism = replace(one, parts=(quiet,), certificate=None)
    mechanism.save(tmp_path / "m.json")
    mechanism.tally([b"\x06", b"\x02"] * 20).save(tmp_path / "t.json")
    return tmp_path / "m.json", tmp_path / "t.json"


def test_items_nobody_informs_about_are_written_and_drawn(blind, tmp_path):
    run("estimate", *blind, "-o", tmp_path / "e.json", "--plot", tmp_path / "e.png")
    items = strictly((tmp_path / "e.json").read_text(encoding="utf-8"))["items"]
    assert (
        items[0]["count"] is None and items[0]["stderr"] is None and items[1]["count"] is not None
    )
    run("estimate", *blind, "-o", tmp_path / "e.csv")
    assert (tmp_path / "e.png").stat().st_size > 3000 and (tmp_path / "e.csv").exists()


def test_items_nobody_informs_about_are_printed_as_valid_json(blind):
    items = strictly(run("estimate", *blind, "--json").stdout)["items"]
    assert [row["count"] is None for row in items] == [row["item"] == LABELS[0] for row in items]


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["perturb", "tally", "estimate"])
def test_a_mechanism_that_cannot_be_used(ready, tmp_path, name):
    mechanism, data, reports, tally = ready
    rest = {
        "perturb": [data, "-o", tmp_path / "x"],
        "tally": [reports, "-o", tmp_path / "x"],
        "estimate": [tally],
    }[name]
    assert "does not exist" in refused(tmp_path, name, tmp_path / "none.json", *rest)
    document = json.loads(mechanism.read_text(encoding="utf-8"))
    document["policy"]["items"][0] = "flu"
    mechanism.write_text(json.dumps(document), encoding="utf-8")
    assert "fingerprint" in refused(tmp_path, name, mechanism, *rest)
    for content in ("", "{", "[]", "item\nHIV\n"):
        mechanism.write_text(content)
        assert "not a mechanism file" in refused(tmp_path, name, mechanism, *rest)


BAD_DATA = {
    "unknown.csv": "item\nHIV-Xq7Zk9Wv\nflu\n",
    "empty.csv": "",
    "other.csv": "thing\nHIV-Xq7Zk9Wv\n",
    "cell.csv": "item,b\nHIV-Xq7Zk9Wv,1\n,2\n",
    "ragged.csv": "item,b\nHIV-Xq7Zk9Wv\n",
    "wrong.xlsx": "item\nHIV-Xq7Zk9Wv\n",
    "line.dat": "HIV-Xq7Zk9Wv anemia-Xq7Zk9Wv\n",
    "unknown.dat": "HIV-Xq7Zk9Wv\nflu\n",
    "false.parquet": "item\nHIV-Xq7Zk9Wv\n",
    "false.csv.gz": "item\nHIV-Xq7Zk9Wv\n",
    "false.dat.xz": "HIV-Xq7Zk9Wv\n",
    "blank.csv": "item\nHIV-Xq7Zk9Wv\n\nHIV-Xq7Zk9Wv\n",
    "semicolons.csv": "item;b\nHIV-Xq7Zk9Wv;1\n",
    "late.csv": "item\n"
    + "HIV-Xq7Zk9Wv\n" * 700_000
    + "flu\n",  # after blocks that were already written
}


@pytest.mark.parametrize("name", BAD_DATA)
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_answers_that_cannot_be_used(tmp_path, saved, name, old):
    mechanism, path, output = saved("bits"), tmp_path / name, tmp_path / "r.parquet"
    path.write_text(BAD_DATA[name])
    if old:
        output.write_text("what was here before")
    assert str(path) in refused(tmp_path, "perturb", mechanism, path, "-o", output)


def test_a_row_of_a_label_with_a_line_break_is_one_line(tmp_path, saved):
    path = tmp_path / "a.csv"
    path.write_text('item\n"HIV\n-Xq7Zk9Wv"\n')
    refused(tmp_path, "perturb", saved("bits"), path, "-o", tmp_path / "r.parquet")


@pytest.mark.parametrize("content", ["item\n", "item\n\n"], ids=["header only", "blank line"])
def test_no_answers_no_reports(tmp_path, saved, content):
    path = tmp_path / "a.csv"
    path.write_text(content)
    refused(tmp_path, "perturb", saved("bits"), path, "-o", tmp_path / "r.parquet")


def test_answers_that_are_not_there(tmp_path, saved):
    mechanism, output = saved("bits"), tmp_path / "r.parquet"
    for name in ("none.csv", "none.parquet", "none.dat"):
        assert "none" in refused(tmp_path, "perturb", mechanism, tmp_path / name, "-o", output)
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path, "perturb", mechanism, tmp_path / "folder.csv", "-o", output)


def test_outputs_that_cannot_be_written(ready, tmp_path):
    mechanism, data, reports, tally = ready
    for output in (tmp_path / "none" / "x", tmp_path):
        assert "cannot be written" in refused(tmp_path, "perturb", mechanism, data, "-o", output)
        assert "cannot be written" in refused(tmp_path, "tally", mechanism, reports, "-o", output)
    for name in ("x.csv", "x.json", "x.parquet"):
        assert "cannot be written" in refused(
            tmp_path, "estimate", mechanism, tally, "-o", tmp_path / "none" / name
        )
    assert "cannot be written" in refused(
        tmp_path, "estimate", mechanism, tally, "--plot", tmp_path / "none" / "x.png"
    )


def test_reports_that_cannot_be_used(ready, tmp_path):
    mechanism, _, reports, _ = ready
    output = ["-o", tmp_path / "x.json"]
    assert "does not exist" in refused(
        tmp_path, "tally", mechanism, tmp_path / "none.parquet", *output
    )
    (tmp_path / "empty").mkdir()
    assert "holds no .parquet" in refused(tmp_path, "tally", mechanism, tmp_path / "empty", *output)
    other = tmp_path / "other.json"
    MECHANISMS["grr"].save(other)
    assert "another mechanism" in refused(tmp_path, "tally", other, reports, *output)
    assert "not a tally" in refused(tmp_path, "tally", mechanism, other, *output)
    (tmp_path / "answers.csv").write_text("item\nflu\n")
    said = refused(tmp_path, "tally", mechanism, tmp_path / "answers.csv", *output)
    assert "is a CSV file" in said and "discreet perturb" in said
    reports.write_bytes(reports.read_bytes()[:-10])
    assert "not a complete Parquet file" in refused(tmp_path, "tally", mechanism, reports, *output)


def test_tallies_that_cannot_be_used(ready, tmp_path):
    mechanism, _, _, tally = ready
    other, empty = tmp_path / "other.json", tmp_path / "empty.json"
    MECHANISMS["grr"].save(other)
    d.Tally.empty(MECHANISMS["bits"]).save(empty)
    assert "another mechanism" in refused(tmp_path, "estimate", other, tally)
    assert "no reports" in refused(tmp_path, "estimate", mechanism, empty, "-o", tmp_path / "x.csv")
    assert "not a tally" in refused(tmp_path, "estimate", mechanism, mechanism)
    assert "cannot be read" in refused(tmp_path, "estimate", mechanism, tmp_path / "none.json")
    document = json.loads(tally.read_text())
    document["n"] += 1
    tally.write_text(json.dumps(document))
    assert "damaged" in refused(tmp_path, "estimate", mechanism, tally, "-o", tmp_path / "x.csv")


def test_outputs_of_an_unknown_kind(ready, tmp_path):
    mechanism, _, _, tally = ready
    assert ".csv, .parquet or .json" in refused(
        tmp_path, "estimate", mechanism, tally, "-o", tmp_path / "x.xlsx"
    )
    assert ".png or .svg" in refused(
        tmp_path, "estimate", mechanism, tally, "--plot", tmp_path / "x.pdf"
    )


def test_a_table_is_not_left_when_the_plot_is_refused(ready, tmp_path):
    mechanism, _, _, tally = ready
    refused(
        tmp_path,
        "estimate",
        mechanism,
        tally,
        "-o",
        tmp_path / "x.csv",
        "--plot",
        tmp_path / "x.pdf",
    )


@pytest.mark.parametrize(
    "extra",
    [
        ("--top", 0),
        ("--top", "x"),
        ("--confidence", 0),
        ("--confidence", 1),
        ("--confidence", "nan"),
        ("--bogus",),
    ],
)
def test_options_out_of_range(ready, tmp_path, extra):
    mechanism, _, _, tally = ready
    refused(tmp_path, "estimate", mechanism, tally, *extra)


@pytest.mark.parametrize(
    "arguments",
    [("perturb",), ("tally",), ("estimate",), ("perturb", "m.json", "a.csv"), ("tally", "m.json")],
)
def test_arguments_that_are_missing(tmp_path, arguments):
    refused(tmp_path, *arguments)


def test_bad_input_in_a_process_of_its_own(ready, tmp_path):
    mechanism, data, reports, tally = ready
    data.write_text("item\nHIV-Xq7Zk9Wv\nflu\n")
    reports.write_bytes(reports.read_bytes()[:100])
    tally.write_text("{")
    before = tree(tmp_path)
    for arguments in (
        ("perturb", mechanism, data, "-o", tmp_path / "x.parquet"),
        ("tally", mechanism, reports, "-o", tmp_path / "x.json"),
        ("estimate", mechanism, tally, "-o", tmp_path / "x.csv"),
    ):
        found = script(*arguments)
        assert found.returncode == 2 and found.stdout == b""
        one_error(found.stderr.decode())
    assert tree(tmp_path) == before


# ---- a full disk ---------------------------------------------------------------------------------


# no file may grow beyond 100 bytes, as on a disk that is full
SMALL_FILES = (
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
)


@pytest.mark.parametrize(
    "name", ["perturb", "tally", "est.csv", "est.parquet", "est.json", "est.png", "est.svg"]
)
def test_a_full_disk(ready, tmp_path, name):
    """What was there before stays, nothing half-written is left, and the sentence names the
    file.
    """
    mechanism, data, reports, tally = ready
    target = (
        tmp_path
        / "target"
        / (name if "." in name else {"perturb": "r.parquet", "tally": "t.json"}[name])
    )
    target.parent.mkdir()
    target.write_text("old")
    arguments = {
        "perturb": ("perturb", mechanism, data, "-o", target),
        "tally": ("tally", mechanism, reports, "-o", target),
    }.get(
        name,
        ("estimate", mechanism, tally, "--plot" if name.endswith(("png", "svg")) else "-o", target),
    )
    before = tree(tmp_path)
    found = subprocess.run(
        launched(SMALL_FILES, *arguments), capture_output=True, timeout=60, check=False
    )
    assert found.returncode == 2, found.stderr
    sentence = one_error(found.stderr.decode())
    assert str(target) in sentence and "cannot be written" in sentence
    assert found.stdout == b"" and tree(tmp_path) == before


def test_the_same_without_the_limit_succeeds(ready, tmp_path):
    """The twin: it is the limit that the tests above see."""
    mechanism, data, _, _ = ready
    assert script("perturb", mechanism, data, "-o", tmp_path / "x.parquet").returncode == 0


@pytest.mark.parametrize("name", ["perturb", "tally", "estimate"])
def test_standard_output_that_is_full(ready, tmp_path, name):
    mechanism, data, reports, tally = ready
    rest = {
        "perturb": (data, "-o", tmp_path / "x.parquet"),
        "tally": (reports, "-o", tmp_path / "x.json"),
        "estimate": (tally,),
    }
    with open("/dev/full", "wb") as full:
        found = subprocess.run(
            command(name, mechanism, *rest[name]),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert found.returncode == 2, found.stderr
    one_error(found.stderr.decode())


# ---- Ctrl-C --------------------------------------------------------------------------------------


def opened(pipe, process, deadline):
    """The pipe for writing, once the command has opened it for reading."""
    while True:
        try:
            handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        else:
            os.set_blocking(handle, True)
            return open(handle, "wb", buffering=0)


def interrupted(arguments, pipe, start):
    """Start the command, feed the pipe a little, wait until it writes aside, press Ctrl-C, wait for
    the end.
    """
    folder = pipe.parent / "out"
    folder.mkdir()
    deadline = time.monotonic() + 40
    listening = launched("signal.signal(signal.SIGINT, signal.SIG_DFL)", *arguments)
    process = subprocess.Popen(listening, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with opened(pipe, process, deadline) as feed:
            feed.write(start)
            while not list(folder.glob(".*.part")):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            time.sleep(0.3)  # it is now waiting for more
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=6)
            except subprocess.TimeoutExpired:
                pytest.fail("Ctrl-C had no effect within 6 seconds")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return process.returncode, out, err, sorted(os.listdir(folder))


@pytest.mark.parametrize(
    ("name", "rows"), [("slow.dat", 1), ("slow.dat", 200_000), ("slow.csv", 1)]
)
def test_ctrl_c_leaves_nothing(tmp_path, saved, name, rows):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    start = (b"item\n" if name.endswith("csv") else b"") + b"HIV-Xq7Zk9Wv\n" * rows
    code, out, err, left = interrupted(
        ("perturb", saved("bits"), pipe, "-o", tmp_path / "out" / "r.parquet"), pipe, start
    )
    assert code == 130, err
    assert left == [] and out == b""
    assert (
        err.decode().strip() == "stopped; nothing was left half-written"
    )  # click ends the line of ^C first


def test_a_person_with_several_rows_is_refused_where_everybody_answers_once(tmp_path, saved):
    """Rows of users, one after another, are sets: counted one by one they would answer twice."""
    path = tmp_path / "a.csv"
    path.write_text(f"user,item\np1,{LABELS[0]}\np2,{LABELS[1]}\np2,{LABELS[2]}\n")
    found = run("perturb", saved("bits"), path, "-o", tmp_path / "r.parquet", code=2)
    assert 'the user "p2" has several rows, but kind = "single"' in found.stderr
    path.write_text(f"user,item\np1,{LABELS[0]}\np2,{LABELS[1]}\np3,{LABELS[2]}\n")
    assert (
        "Wrote 3 reports"
        in run("perturb", saved("bits"), path, "-o", tmp_path / "r.parquet").stdout
    )
