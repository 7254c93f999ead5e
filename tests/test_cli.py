"""The commands: what they print, what they write, and exit code 0, 1 (a check failed) or 2 (bad input, one sentence)."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

import discreet as d
from discreet.cli import main
from discreet.designs import MODELS
from discreet.mechanism import fingerprint

TOY = Path(str(files("discreet") / "data" / "toy.toml"))
COMMANDS = ("design", "check", "plan", "demo")
SETS = 'input = "set"\n[[level]]\nname = "a"\nepsilon = 1\nitems = ["x", "y", "z"]\n'


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(
        main, [str(a) for a in arguments], input=stdin, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def refused(*arguments, stdin=None):
    """Exit code 2, nothing on standard output, one sentence on standard error."""
    result = run(*arguments, code=2, stdin=stdin)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def script(*arguments, **settings):
    """The installed command, in a process of its own."""
    command = [str(Path(sys.executable).with_name("discreet")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **settings)


@pytest.fixture
def saved(tmp_path):
    """A saved mechanism of several parts, and its document."""
    path = tmp_path / "mechanism.json"
    mechanism = d.design(d.Policy.load(TOY), "mixed")
    mechanism.save(path)
    return path, mechanism.to_canonical()


def resigned(path, document):
    document = {key: value for key, value in document.items() if key != "fingerprint"}
    path.write_text(
        json.dumps({**document, "fingerprint": fingerprint(document)}), encoding="utf-8"
    )
    return path


# ---- design -------------------------------------------------------------------------------------------


def test_design_writes_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = run("design", TOY, "-o", "m.json").stdout
    mechanism = d.Mechanism.load("m.json")
    assert mechanism == d.design(d.Policy.load(TOY))
    assert (
        f"fingerprint {mechanism.fingerprint[:16]}" in output and "discreet check m.json" in output
    )
    for word in (
        "toy-survey",
        "direct",
        "uniform",
        "serious",
        "common",
        "ln(4)",
        "3.587",
        "rappor (plain LDP)",
        "paid by serious",
    ):
        assert word in output
    for sentence in mechanism.guarantee().sentences():
        assert sentence in output


@pytest.mark.parametrize("name", ["m" * 120, "[x]m"])
def test_the_next_command_can_be_copied(tmp_path, name):
    path = tmp_path / f"{name}.json"
    assert f"discreet check {path}" in run("design", TOY, "-o", path).stdout


@pytest.mark.parametrize("model", MODELS)
def test_design_of_every_model_as_json(tmp_path, model):
    facts = json.loads(
        run("design", TOY, "--model", model, "--json", "-o", tmp_path / "m.json").stdout
    )
    mechanism = d.Mechanism.load(tmp_path / "m.json")
    assert facts["model"] == mechanism.model == ("direct" if model == "auto" else model)
    assert facts["fingerprint"] == mechanism.fingerprint and facts["holds"] is True
    assert facts["total_mse"][mechanism.model]["expected"] == pytest.approx(
        mechanism.expected_mse()
    )
    assert [row["level"] for row in facts["levels"]] == ["serious", "common"]
    assert facts["levels"][0]["factor"] <= 4 * (1 + 1e-9)
    run("design", TOY, "--model", model)


def test_design_of_every_prior(tmp_path):
    shares = {"serious": 0.1, "common": 0.9}
    (tmp_path / "p.csv").write_text(
        "level,share\nserious,0.1\n\ncommon, 0.9\n", encoding="utf-8-sig"
    )
    (tmp_path / "p.json").write_text(json.dumps(shares))
    (tmp_path / "list.json").write_text("[0.1, 0.225, 0.225, 0.225, 0.225]")
    expected = d.design(d.Policy.load(TOY), prior=shares)
    for prior in (
        "serious=0.1,common=0.9",
        "serious = 0.1, common = 0.9",
        tmp_path / "p.csv",
        tmp_path / "p.json",
    ):
        facts = json.loads(run("design", TOY, "--prior", prior, "--json").stdout)
        assert facts["fingerprint"] == expected.fingerprint and facts["prior"] == "given"
    assert (
        json.loads(run("design", TOY, "--prior", tmp_path / "list.json", "--json").stdout)["prior"]
        == "given"
    )
    worst = json.loads(run("design", TOY, "--prior", "worst", "--json").stdout)
    assert (
        worst["prior"] == "worst"
        and worst["fingerprint"] == d.design(d.Policy.load(TOY), prior="worst").fingerprint
    )
    assert "at the worst prior" in run("design", TOY, "--prior", "worst").stdout


def test_design_of_sets_and_encodings(tmp_path):
    path = tmp_path / "sets.toml"
    path.write_text(SETS)
    facts = json.loads(
        run("design", path, "--padding", 2, "--encoding", "compact", "--json").stdout
    )
    assert (facts["padding"], facts["encoding"], facts["report_bytes"], facts["model"]) == (
        2,
        "compact",
        12,
        "mixed",
    )
    assert "sets of answers, padding 2" in run("design", path, "--padding", 2).stdout
    assert "needs a padding" in refused("design", path)


def test_many_levels_are_not_all_printed(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("item,epsilon\n" + "".join(f"i{k},1.{k:03d}\n" for k in range(1, 300)))
    assert len(run("design", path, "--model", "opt0").stdout.splitlines()) < 60
    assert len(json.loads(run("design", path, "--model", "opt0", "--json").stdout)["levels"]) == 20


def test_a_policy_from_standard_input():
    text = TOY.read_text(encoding="utf-8")
    found = json.loads(run("design", "-", "--json", stdin=text).stdout)
    assert found["fingerprint"] == json.loads(run("design", TOY, "--json").stdout)["fingerprint"]
    assert "standard input is not TOML" in refused("design", "-", stdin="level = [")
    assert "standard input is empty" in refused("plan", "-", "--users", 10, stdin="")


# ---- check --------------------------------------------------------------------------------------------


def test_check_ok(saved):
    path, _ = saved
    mechanism = d.Mechanism.load(path)
    output = run("check", path).stdout
    assert output.startswith(
        f"OK: the guarantee holds exactly; fingerprint {mechanism.fingerprint}\n"
    )
    assert all(sentence in output for sentence in mechanism.guarantee().sentences())
    facts = json.loads(run("check", path, "--json").stdout)
    assert facts == {
        "holds": True, "problems": [], "promises": mechanism.guarantee().sentences(), "fingerprint": mechanism.fingerprint,
    }  # fmt: skip
    assert run("check", path, "--policy", TOY).stdout == output


@pytest.mark.parametrize("model", ["opt0", "mixed", "direct", "grr", "oue"])
def test_check_names_the_pair_that_fails(tmp_path, model):
    """A fingerprint that fits does not help: the inequality is checked on the raw file."""
    document = d.design(d.Policy.load(TOY), model).to_canonical()
    if "matrix" in document:
        last = len(document["matrix"]["diagonal"]) - 1
        document["matrix"]["diagonal"][last] += 4 * 2**24
        row = document["matrix"]["off"][last]
        if last:  # four others: the serious one and three of the same level
            document["matrix"]["off"][last] = [row[0] - 2**24, row[1] - 2**24]
        else:
            row[0] -= 2**24
    else:
        document["parts"][0]["a"][1] += 2**28
    result = run("check", resigned(tmp_path / "m.json", document), code=1)
    (line,) = result.stdout.splitlines()
    assert line.startswith("FAILED: the guarantee does not hold: the pair of levels (")
    assert '"serious"' in line or '"common"' in line
    facts = json.loads(run("check", tmp_path / "m.json", "--json", code=1).stdout)
    assert facts["holds"] is False and facts["promises"] == [] and len(facts["problems"]) == 1


def test_check_of_degenerate_probabilities(saved):
    path, document = saved
    document["parts"][0]["a"][0] = document["parts"][0]["b"][0] = 2**32
    assert (
        "break 0 < b <= a < 1 [levels serious]"
        in run("check", resigned(path, document), code=1).stdout
    )


def test_check_of_a_wrong_fingerprint(saved):
    path, document = saved
    for wrong in ("0" * 64, None, 5):
        path.write_text(json.dumps({**document, "fingerprint": wrong}))
        assert (
            "FAILED: the content does not match the fingerprint"
            in run("check", path, code=1).stdout
        )
    path.write_text(json.dumps(document))
    assert "does not match the fingerprint" in run("check", path, code=1).stdout


def test_check_against_a_policy(saved, tmp_path):
    path, _ = saved
    text = TOY.read_text(encoding="utf-8")
    other = tmp_path / "other.toml"
    other.write_text(
        text.replace("ln(4)", "ln(3)").replace('"anemia"', '"cold"').replace("doctor", "nurse")
    )
    lines = run("check", path, "--policy", other, code=1).stdout.splitlines()
    assert lines == [
        'FAILED: not the policy given: question is "What did you see a doctor for?", not "What did you see a nurse for?"',
        'FAILED: not the policy given: item "HIV" has epsilon ln(4), not ln(3)',
        'FAILED: not the policy given: item "cold" is missing',
        'FAILED: not the policy given: item "anemia" is not in the policy',
    ]
    assert (
        len(json.loads(run("check", path, "--policy", other, "--json", code=1).stdout)["problems"])
        == 4
    )
    assert "does not exist" in refused("check", path, "--policy", tmp_path / "missing.toml")


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff", b"[]", b'{"policy": 1, "x": NaN}', b'{"policy": {}}']
)
def test_check_of_unreadable_files(tmp_path, content):
    path = tmp_path / "m.json"
    if content is not None:
        path.write_bytes(content)
    refused("check", path)


@pytest.mark.parametrize("change", [{"note": "hello"}, {"padding": ""}])
def test_check_and_load_agree(saved, change):
    """A file that no participant's device would load must not be OK for the auditor."""
    path, document = saved
    resigned(path, {**document, **change})
    with pytest.raises(d.DiscreetError):
        d.Mechanism.load(path)
    assert CliRunner().invoke(main, ["check", str(path)]).exit_code != 0


def test_check_of_a_hostile_number(tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"policy": ' + "9" * 5000 + "}")
    refused("check", path)


# ---- plan and demo ------------------------------------------------------------------------------------


def test_plan():
    output = run("plan", TOY, "--users", 100_000, "--target-error", 0.005).stdout
    for word in (
        "toy-survey",
        "100,000 people",
        "direct",
        "oue",
        "serious",
        "users for the target",
        "Best: direct",
    ):
        assert word in output
    assert "users for the target" not in run("plan", TOY, "--users", 100).stdout


def test_plan_as_json():
    users, target = 50_000, 0.004
    facts = json.loads(
        run("plan", TOY, "--users", users, "--target-error", target, "--json").stdout
    )
    policy = d.Policy.load(TOY)
    assert (
        {row["model"] for row in facts["rows"]} == set(MODELS) - {"auto"} == set(facts["total_mse"])
    )
    for row in facts["rows"]:
        mechanism = d.design(policy, row["model"])
        k = ["serious", "common"].index(row["level"])
        variance = d.theory.level_variance(mechanism)[k]
        assert row["stderr_count"] == pytest.approx((variance * users) ** 0.5)
        assert row["stderr_share"] == pytest.approx((variance / users) ** 0.5)
        needed = row["users_for_target"]  # enough, and one fewer is not
        assert (
            (variance / needed) ** 0.5
            <= target * (1 + 1e-12)
            < (variance / (needed - 1)) ** 0.5 * (1 + 1e-9)
        )
    assert facts["best"] == "direct" and facts["best_plain"] == "grr"
    assert facts["gain"] == pytest.approx(
        1 - facts["total_mse"]["direct"] / facts["total_mse"]["grr"]
    )
    assert (
        "users_for_target"
        not in json.loads(run("plan", TOY, "--users", 9, "--json").stdout)["rows"][0]
    )


def test_plan_of_sets_leaves_out_direct(tmp_path):
    (tmp_path / "sets.toml").write_text(SETS)
    facts = json.loads(
        run("plan", tmp_path / "sets.toml", "--users", 1000, "--padding", 2, "--json").stdout
    )
    assert (
        "direct" not in facts["total_mse"]
        and "grr" not in facts["total_mse"]
        and facts["padding"] == 2
    )


def test_demo():
    output = run("demo", "--no-serve").stdout
    for word in (
        "41 conditions",
        "HIV",
        "Forecast for 100,000 people",
        "below the best plain-LDP mechanism",
        "toy-survey",
    ):
        assert word in output


# ---- help and bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_an_example(command, flag):
    lines = run(command, flag).stdout.splitlines()
    assert any(line.strip().startswith(f"Example:  discreet {command}") for line in lines)


def test_the_list_of_commands_is_tested():
    assert set(COMMANDS) <= set(main.commands)
    for name, command in main.commands.items():
        assert (command.epilog or "").startswith(f"Example:  discreet {name}"), name
    output = run("-h").stdout
    assert all(name in output for name in main.commands)
    assert d.__version__ in run("--version").stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["design", "missing.toml"], ["missing.toml does not exist"]),
        (["design", TOY, "--model", "opt9"], ['model = "opt9" does not exist', ", ".join(MODELS)]),
        (
            ["plan", TOY, "--users", 10, "--model", "opt9"],
            ['model = "opt9" does not exist', ", ".join(MODELS)],
        ),
        (["design", TOY, "--prior", "best"], ["prior", "best", "uniform, worst"]),
        (["design", TOY, "--prior", "serious=much"], ["serious=much"]),
        (["design", TOY, "--prior", "flu=1"], ['"flu"', "neither an item nor a level"]),
        (["design", TOY, "--prior", "serious=0.2,common=0.2"], ["sums to 0.4"]),
        (["design", TOY, "--prior", "missing.csv"], ["missing.csv cannot be read"]),
        (["design", TOY, "--prior", "missing.json"], ["missing.json cannot be read"]),
        (["design", TOY, "--encoding", "bytes"], ['encoding = "bytes"', "bits, compact"]),
        (["design", TOY, "--model", "grr", "--encoding", "bits"], ["does not apply to grr"]),
        (["design", TOY, "--padding", 3], ["padding = 3", "set"]),
        (["design", TOY, "-o", "missing/m.json"], ["missing/m.json cannot be written"]),
        (["check", "missing.json"], ["missing.json does not exist"]),
        (["check", TOY], ["is not a mechanism file"]),
    ],
    ids=lambda value: " ".join(map(str, value[:1] + value[2:])) if isinstance(value, list) else "",
)
def test_bad_input_gets_one_sentence(tmp_path, monkeypatch, arguments, parts):
    monkeypatch.chdir(tmp_path)
    line = refused(*arguments)
    assert all(part in line for part in parts), line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["design"],
        ["dezign"],
        ["design", TOY, "--x"],
        ["plan", TOY],
        ["plan", TOY, "--users", 0],
        ["plan", TOY, "--target-error", 0],
    ],
    ids=str,
)
def test_bad_usage_is_code_2(arguments):
    assert "rror" in run(*arguments, code=2).stderr


@pytest.mark.parametrize(
    "content",
    ["share", "level,share\nserious\n", "level,share\nserious,x\n", "[1, ", '{"serious": []}'],
)
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_bad_priors(tmp_path, content, suffix):
    path = tmp_path / f"p.{suffix}"
    path.write_text(content)
    assert "prior" in refused("design", TOY, "--prior", path)


@pytest.mark.parametrize("label", ["[/b]", "[red]", "[other]"])
@pytest.mark.parametrize("place", ["item", "level", "name"])
def test_labels_are_printed_as_they_are(tmp_path, label, place):
    names = {"item": "x", "level": "all", "name": "survey", place: label}
    path = tmp_path / "p.toml"
    text = 'name = "{name}"\n[[level]]\nname = "{level}"\nepsilon = 1\nitems = ["{item}", "y"]\n'
    path.write_text(text.format(**names))
    assert label in run("design", path).stdout


def test_standard_input_that_is_not_text():
    assert "standard input" in refused("design", "-", stdin=b'name = "\xff"')


# ---- the installed command ------------------------------------------------------------------------------


def test_the_script(tmp_path):
    path = tmp_path / "m.json"
    made = script("design", "-", "-o", path, "--json", input=TOY.read_bytes())
    assert made.returncode == 0 and made.stderr == b""
    assert json.loads(made.stdout)["fingerprint"] == d.Mechanism.load(path).fingerprint
    assert script("check", path).stdout.startswith(b"OK")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["policy"]["levels"][0]["epsilon"] = "ln(2)"
    resigned(path, document)
    failed = script("check", path)
    assert failed.returncode == 1 and b'"serious"' in failed.stdout and failed.stderr == b""


def test_the_script_on_bad_input(tmp_path):
    for arguments in (
        ["design", tmp_path / "missing.toml"],
        ["check", tmp_path],
        ["design", TOY, "--model", "x"],
    ):
        result = script(*arguments)
        assert result.returncode == 2 and result.stdout == b""
        (line,) = result.stderr.decode().splitlines()
        assert line.startswith("error: ")


def test_the_script_prints_everywhere():
    """Also where the locale says nothing about UTF-8."""
    result = script("design", TOY, env={**os.environ, "LC_ALL": "C"})
    assert result.returncode == 0 and "factor of 4" in result.stdout.decode()
