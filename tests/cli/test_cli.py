"""The commands: what they print, what they write, and exit code 0, 1 (a check failed) or 2 (bad
input, one sentence).
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

import discreet as d
from discreet.arrays import theory
from discreet.check.document import fingerprint
from discreet.cli import main
from discreet.designs import BASELINES, MODELS
from discreet.errors import short_fingerprint
from discreet.mechanism import Mechanism
from discreet.policy import policy
from discreet.survey import Survey

TOY = Path(str(files("discreet") / "data" / "toy.toml"))
COMMANDS = ("design", "check", "plan", "demo")
SINGLE = [model for model in MODELS if model not in ("hits", "each")]
SETS = 'kind = "set"\n[[level]]\nname = "a"\nepsilon = 1\nitems = ["x", "y", "z"]\n'


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


def test_every_command_speaks_json():
    """But the demonstration, which is to be looked at, and `new`, which asks."""
    silent = [
        name
        for name, command in main.commands.items()
        if not any("--json" in option.opts for option in command.params)
    ]
    assert silent == ["demo", "new"]


@pytest.mark.parametrize(
    ("text", "policies"),
    [(TOY.read_text(encoding="utf-8"), 2), ("padding = 2\n" + SETS, 7)],
    ids=["single", "padded"],
)
def test_a_design_validates_its_policy_once_and_checks_each_mechanism_once(
    tmp_path, monkeypatch, text, policies
):
    """Also the mechanisms of plain LDP that stand beside it. A fair design is held against plain
    LDP, which has a policy of its own; and the policies of tasks have no padding, so where it is in
    the file they are others: for the two goals, and for plain LDP.
    """
    calls = Counter()

    def counted(owner, name):
        real = getattr(owner, name)

        def call(*arguments):
            calls[name] += 1
            return real(*arguments)

        monkeypatch.setattr(owner, name, call)

    counted(policy, "check_policy")
    counted(Mechanism, "check")
    counted(Mechanism, "__post_init__")
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    run("design", path)
    assert calls["check_policy"] == policies
    assert calls["check"] == calls["__post_init__"] > 1


def script(*arguments, **settings):
    """The installed command, in a process of its own."""
    command = [str(Path(sys.executable).with_name("discreet")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **settings)


@pytest.fixture
def saved(tmp_path):
    """A saved mechanism of several parts, and its document."""
    path = tmp_path / "survey.json"
    mechanism = d.design(d.Policy.load(TOY))
    assert len(mechanism.parts) > 1
    mechanism.save(path)
    return path, mechanism.to_canonical()


def resigned(path, document):
    document = {key: value for key, value in document.items() if key != "fingerprint"}
    path.write_text(
        json.dumps({**document, "fingerprint": fingerprint(document)}), encoding="utf-8"
    )
    return path


# ---- design --------------------------------------------------------------------------------------


def test_design_writes_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = run("design", TOY, "-o", "m.json").stdout
    survey = d.Survey.load("m.json")
    mechanism = survey.mechanism
    assert mechanism == d.design(d.Policy.load(TOY)) and survey.name == "toy-survey"
    assert (
        f"fingerprint {short_fingerprint(survey.fingerprint)}…" in output
        and "discreet check m.json" in output
    )
    for word in (
        "toy-survey",
        "subset",
        "uniform",
        "a report has 2 bytes (bits: subsets of fixed size)",
        "Its expected error: the best possible for this guarantee and prior, with no level counted",
        "serious",
        "common",
        "ln(4)",
        "3.686",
        "rappor (plain LDP)",
        "serious, of plain LDP",
    ):
        assert word in output
    for sentence in mechanism.guarantee().sentences():
        assert sentence in output


@pytest.mark.parametrize("name", ["m" * 120, "[x]m"])
def test_the_next_command_can_be_copied(tmp_path, name):
    path = tmp_path / f"{name}.json"
    assert f"discreet check {path}" in run("design", TOY, "-o", path).stdout


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ("[1, 50]", "epsilon = 50 in level"),
        ("[1]", "is the only item"),
        ("[1, 2]", 'epsilon = 2 in level "l1" acts as 1'),
        ("[2, 2]", None),
    ],
)
def test_design_and_plan_warn(tmp_path, levels, words):
    """Of a budget that protects nobody or cannot be used up, and of a question with one answer."""
    path = tmp_path / "p.toml"
    path.write_text(
        "".join(
            f'[[level]]\nname = "l{k}"\nepsilon = {eps}\nitems = ["x{k}"]\n'
            for k, eps in enumerate(json.loads(levels))
        )
    )
    for command in (("design", path), ("plan", path, "--users", 100)):
        found = json.loads(run(*command, "--json").stdout)["warnings"]
        shown = run(*command).stdout
        assert ("Warning: " in shown) == bool(words) == bool(found)
        assert not words or (words in found[0] and f"Warning: {found[0]}" in shown)


@pytest.mark.parametrize(("epsilon", "weak"), [(6, True), (1, False)])
def test_design_and_check_say_that_protection_is_weak(tmp_path, epsilon, weak):
    """A report of epsilon 6 can change odds by a factor of 404."""
    path, made = tmp_path / "p.toml", tmp_path / "s.json"
    path.write_text(f'[[level]]\nname = "a"\nepsilon = {epsilon}\nitems = ["x", "y", "z"]\n')
    shown = {
        "design": run("design", path, "-o", made).stdout,
        "check": run("check", made).stdout,
    }
    for text in shown.values():
        assert ("Warning: This is weak protection" in " ".join(text.split())) == weak
    assert bool(json.loads(run("check", made, "--json").stdout)["caution"]) == weak


@pytest.mark.parametrize(
    "command", [("design",), ("plan", "--users", 9), ("check", "--policy")], ids=lambda x: x[0]
)
def test_a_mechanism_is_not_a_policy(saved, command):
    path, _ = saved
    rest = [path] if command[0] == "check" else []
    assert f"{path} is a mechanism, not a policy" in refused(command[0], *rest, *command[1:], path)


@pytest.mark.parametrize("model", SINGLE)
def test_design_of_every_model_as_json(tmp_path, model):
    facts = json.loads(
        run("design", TOY, "--model", model, "--json", "-o", tmp_path / "m.json").stdout
    )
    survey = d.Survey.load(tmp_path / "m.json")
    mechanism = survey.mechanism
    assert facts["model"] == mechanism.model == model
    assert facts["fingerprint"] == survey.fingerprint and facts["holds"] is True
    assert facts["total_mse"][mechanism.model]["expected"] == pytest.approx(
        mechanism.expected_mse()
    )
    assert [row["level"] for row in facts["levels"]] == ["serious", "common"]
    assert facts["levels"][0]["factor"] <= 4 * (1 + 1e-9)
    run("design", TOY, "--model", model)


@pytest.mark.parametrize("model", SINGLE)
def test_the_certificate_is_the_same_wherever_it_is_said(tmp_path, model):
    """As numbers and a sentence in JSON, as the sentence for people; by design, plan and check."""
    path = tmp_path / "m.json"
    shown = run("design", TOY, "--model", model, "-o", path).stdout
    certificate = d.Survey.load(path).mechanism.certificate
    assert bool(certificate) == (model in ("subset", "opt0"))
    facts = json.loads(run("design", TOY, "--model", model, "--json").stdout)["certificate"]
    planned = json.loads(run("plan", TOY, "--users", 9, "--model", model, "--json").stdout)
    checked = json.loads(run("check", path, "--json").stdout)["certificate"]
    texts = (
        shown,
        run("plan", TOY, "--users", 9, "--model", model).stdout,
        run("check", path).stdout,
    )
    assert planned["certificate"] == facts and planned["best"] == model
    if certificate is None:
        assert facts is None and checked == ""
        assert not any("xpected error" in text for text in texts)
        return
    assert facts == {
        "value": certificate.value,
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap,
        "note": certificate.note,
        "sentence": certificate.sentence,
    }
    assert facts["value"] == pytest.approx(d.Survey.load(path).mechanism.expected_mse(), rel=1e-11)
    assert checked == certificate.sentence
    assert all(f": {certificate.sentence}." in " ".join(text.split()) for text in texts)


def test_what_is_certified_and_what_is_not(tmp_path):
    total = ("--goal", "total", "--json")
    facts = json.loads(run("design", TOY, *total).stdout)["certificate"]
    assert facts["lower_bound"] <= facts["value"] and 0 <= facts["gap"] < 1e-5
    assert "best possible for this guarantee and prior" in facts["sentence"]
    ticket = json.loads(run("design", TOY, "--encoding", "ticket", *total).stdout)["certificate"]
    assert ticket["lower_bound"] == pytest.approx(facts["lower_bound"])
    assert ticket["gap"] == pytest.approx(ticket["value"] / ticket["lower_bound"] - 1)
    assert re.match(r"[\d.]+ % above the best possible", ticket["sentence"])
    opt0 = json.loads(run("design", TOY, "--model", "opt0", "--json").stdout)["certificate"]
    assert opt0["lower_bound"] is None is opt0["gap"] and "8.5675" in opt0["note"]
    (tmp_path / "sets.toml").write_text(SETS)
    hits = run("design", tmp_path / "sets.toml", "--padding", 2, "--model", "hits", "--json").stdout
    sets = json.loads(hits)["certificate"]
    assert 0 < sets["lower_bound"] <= sets["value"]  # one budget: a closed formula
    assert re.search(r" above the best possible", sets["sentence"])


def test_a_weight_changes_the_design_but_stays_out_of_the_file(tmp_path):
    """It is the organiser's wish, no promise: two files of the same probabilities are the same."""
    path = tmp_path / "p.toml"
    path.write_text(
        TOY.read_text(encoding="utf-8").replace("items = [", "weight = 9\nitems = [", 1)
    )
    run("design", path, "-o", tmp_path / "m.json")
    assert '"weight"' not in (tmp_path / "m.json").read_text(encoding="utf-8")
    weighted, plain = d.Survey.load(tmp_path / "m.json").mechanism, d.design(d.Policy.load(TOY))
    assert weighted.fingerprint != plain.fingerprint
    mine, theirs = (theory.level_variance(m) for m in (weighted, plain))
    assert mine[0] < theirs[0] and mine[1] > theirs[1]
    assert run("check", tmp_path / "m.json", "--policy", path).stdout.startswith("OK")
    assert run("check", tmp_path / "m.json", "--policy", TOY).stdout.startswith("OK")


def test_design_of_every_prior(tmp_path):
    shares = {"serious": 0.1, "common": 0.9}
    (tmp_path / "p.csv").write_text(
        "level,share\nserious,0.1\n\ncommon, 0.9\n", encoding="utf-8-sig"
    )
    (tmp_path / "p.json").write_text(json.dumps(shares))
    (tmp_path / "list.json").write_text("[0.1, 0.225, 0.225, 0.225, 0.225]")
    expected = d.Survey("toy-survey", [d.design(d.Policy.load(TOY), prior=shares)])
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
        and worst["fingerprint"]
        == d.Survey("toy-survey", [d.design(d.Policy.load(TOY), prior="worst")]).fingerprint
    )
    assert "at the worst prior" in run("design", TOY, "--prior", "worst").stdout


def test_design_of_sets_and_encodings(tmp_path):
    path = tmp_path / "sets.toml"
    path.write_text(SETS)
    facts = json.loads(run("design", path, "--padding", 2, "--encoding", "ticket", "--json").stdout)
    assert (facts["padding"], facts["encoding"], facts["report_bytes"], facts["model"]) == (
        2,
        "ticket",
        4,
        "subset",
    )
    told = run("design", path, "--padding", 2, "--encoding", "ticket").stdout
    assert "a report has 4 bytes (ticket: a number of four bytes)" in told
    shown = run("design", path, "--padding", 2, "--model", "hits").stdout
    assert "sets of answers, padding 2" in shown and "a report has 9 bytes (hits: a" in shown
    assert "  • Whole lists: whoever sees your report can change their odds" in shown
    assert "needs a padding" in refused("design", path)


def test_design_and_check_of_items_that_are_protected_one_by_one(tmp_path):
    path, made = tmp_path / "sets.toml", tmp_path / "m.json"
    path.write_text(SETS.replace('"set"', '"each"'))
    shown = run("design", path, "-o", made).stdout
    assert "sets of answers, each protected on its own" in shown and "(plain LDP)" in shown
    assert "whole sets by no more than their sum" in shown
    promise = "each answer is protected on its own and the factors multiply, to at most 20.09 for"
    assert promise in shown and promise in run("check", made).stdout
    facts = json.loads(run("design", path, "--json").stdout)
    assert (facts["kind"], facts["padding"], facts["model"]) == ("each", None, "each")
    assert facts["set_factor"] is None and facts["ldp_epsilon"] == pytest.approx(3, rel=1e-6)
    assert 'applies to kind = "set" only' in refused("design", path, "--padding", 2)
    assert "rappor" in run("plan", path, "--users", 1000).stdout


def test_what_is_sampled_though_it_could_be_reported_whole_is_said(tmp_path):
    path = tmp_path / "sets.toml"
    path.write_text(SETS)
    for options, told in (
        (["--padding", 2, "--encoding", "ticket"], "leave --encoding out"),
        (["--padding", 65], "use a padding up to 64"),
        (["--padding", 2], None),
        (["--padding", 1], None),
    ):
        (*warnings,) = json.loads(run("design", path, *options, "--json").stdout)["warnings"]
        assert len(warnings) == bool(told) and (not told or told in warnings[0])


def test_items_that_are_protected_one_by_one_are_simulated(tmp_path):
    path, data = tmp_path / "sets.toml", tmp_path / "a.dat"
    path.write_text(SETS.replace('"set"', '"each"'))
    data.write_text("x y\n\nz\n" * 20)
    found = json.loads(run("simulate", path, data, "--seed", 1, "--json").stdout)
    assert {score["model"] for score in found["scores"]} == {"each", "rappor"}


def test_strict_sets_are_said(tmp_path):
    path = tmp_path / "sets.toml"
    path.write_text("strict = true\n" + SETS)
    shown = run("design", path, "--padding", 2, "-o", tmp_path / "m.json").stdout
    assert "padding 2, strict" in shown and "any two lists of answers by at most a factor" in shown
    path.write_text(SETS)
    result = run("check", tmp_path / "m.json", "--policy", path, code=1)
    assert "strict is true, not false" in result.stdout


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


# ---- check ---------------------------------------------------------------------------------------


def test_check_ok(saved):
    path, _ = saved
    mechanism = d.Survey.load(path).mechanism
    output = run("check", path).stdout
    assert output.startswith(
        f"OK: the guarantee holds exactly; fingerprint {mechanism.fingerprint}\n"
    )
    assert all(sentence in output for sentence in mechanism.guarantee().sentences())
    facts = json.loads(run("check", path, "--json").stdout)
    assert facts == {
        "holds": True,
        "problems": [],
        "caution": "",
        "promises": mechanism.guarantee().sentences(),
        "certificate": "the best possible for this guarantee and prior, with no level counted "
        "worse than under plain LDP",
        "proved": [],
        "fingerprint": mechanism.fingerprint,
    }
    assert output.endswith(
        "Expected error, as the designer says: the best possible for this guarantee and prior, "
        "with no level counted worse than under plain LDP.\n"
    )
    assert run("check", path, "--policy", TOY).stdout == output


def louder(document, part):
    """The last group's own answer is named a little more often."""
    document["parts"][part]["own"][-1] += 2**28


def likelier(document, part):
    """The first group takes the part more often, and the next one less often."""
    first, second = (document["parts"][part + k]["chance"] for k in (0, 1))
    more = min(first[0], second[0]) // 4
    first[0], second[0] = first[0] + more, second[0] - more


@pytest.mark.parametrize(
    ("model", "encoding", "part", "change"),
    [
        ("opt0", None, 0, louder),
        ("opt0", "ticket", 0, louder),
        ("subset", None, 1, louder),
        ("subset", None, 0, likelier),
        ("subset", "ticket", 0, likelier),
        ("grr", None, 0, louder),
        ("ss", None, 0, louder),
        ("oue", None, 0, louder),
    ],
)
def test_check_names_the_pair_that_fails(tmp_path, model, encoding, part, change):
    """A fingerprint that fits does not help: the inequality is checked on the raw file."""
    document = d.design(d.Policy.load(TOY), model, encoding=encoding, goal="total").to_canonical()
    change(document, part)
    result = run("check", resigned(tmp_path / "m.json", document), code=1)
    (line,) = result.stdout.splitlines()
    assert line.startswith("FAILED: the guarantee does not hold: ")
    assert '"serious"' in line or '"common"' in line
    facts = json.loads(run("check", tmp_path / "m.json", "--json", code=1).stdout)
    assert facts["holds"] is False and facts["promises"] == [] and len(facts["problems"]) == 1
    assert facts["certificate"] == ""  # nothing is said about what does not hold


def test_check_of_degenerate_probabilities(saved):
    path, document = saved
    document["parts"][1]["own"][1] = 2**32 + 1
    output = run("check", resigned(path, document), code=1).stdout
    assert "both lie strictly between 0 and 1" in output and "(part 1)" in output


def test_check_of_chances_that_do_not_sum_to_one(saved):
    path, document = saved
    document["parts"][0]["chance"][0] -= 1
    output = run("check", resigned(path, document), code=1).stdout
    assert "the chances of the parts do not sum to 2^32" in output


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
        'FAILED: not the policy given: question is "What did you see a doctor for?", '
        'not "What did you see a nurse for?"',
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


@pytest.mark.parametrize(
    "change",
    [
        {"note": "hello"},
        {"padding": ""},
        {"padding": False},
        {"format": "discreet-mechanism/1"},
        {"model": "no name"},
        {"encoding": {"kind": "compact"}},
        {"encoding": {"kind": "fixed", "q": 5}},
        {"groups": [1, 0]},
        {"shares": [2**32, 1]},
        {"parts": []},
        {"certificate": None},
        {"certificate": {"value": "1.0", "lower_bound": "", "note": ""}},
        {"certificate": {"value": "1", "lower_bound": "", "note": "", "gap": "0"}},
    ],
    ids=json.dumps,
)
def test_check_and_load_agree(saved, change):
    """A file that no participant's device would load must not be OK for the auditor."""
    path, document = saved
    resigned(path, {**document, **change})
    with pytest.raises(d.DiscreetError):
        d.Survey.load(path)
    assert CliRunner().invoke(main, ["check", str(path)]).exit_code != 0


def test_check_of_a_hostile_number(tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"policy": ' + "9" * 5000 + "}")
    refused("check", path)


# ---- plan and demo -------------------------------------------------------------------------------


def test_plan():
    output = run("plan", TOY, "--users", 100_000, "--target-error", 0.005).stdout
    for word in (
        "toy-survey",
        "100,000 people",
        "subset",
        "oue",
        "serious",
        "users for the target",
        "Chosen: subset",
        "Its expected error: the best possible for this guarantee and prior, with no level counted",
    ):
        assert word in output
    assert "users for the target" not in run("plan", TOY, "--users", 100).stdout


def test_plan_as_json():
    users, target = 50_000, 0.004
    facts = json.loads(
        run("plan", TOY, "--users", users, "--target-error", target, "--json").stdout
    )
    policy = d.Policy.load(TOY)
    assert {row["model"] for row in facts["rows"]} == set(SINGLE) == set(facts["total_mse"])
    for row in facts["rows"]:
        mechanism = d.design(policy, row["model"])
        k = ["serious", "common"].index(row["level"])
        of_counts = theory.level_variance(mechanism)[k]
        variance = theory.share_variance(mechanism)[k]
        assert row["stderr_count"] == pytest.approx((of_counts * users) ** 0.5)
        assert row["stderr_share"] == pytest.approx((variance / users) ** 0.5)
        needed = row["users_for_target"]  # enough, and one fewer is not
        assert (
            (variance / needed) ** 0.5
            <= target * (1 + 1e-12)
            < (variance / (needed - 1)) ** 0.5 * (1 + 1e-9)
        )
    totals = facts["total_mse"]
    assert facts["best"] == "subset" == min(totals, key=totals.get)
    assert facts["best_plain"] == min(BASELINES[:4], key=totals.get)
    assert facts["gain"] == pytest.approx(1 - totals["subset"] / totals[facts["best_plain"]])
    assert (
        "users_for_target"
        not in json.loads(run("plan", TOY, "--users", 9, "--json").stdout)["rows"][0]
    )


def test_plan_of_sets_leaves_out_what_takes_no_sets(tmp_path):
    (tmp_path / "sets.toml").write_text(SETS)
    facts = json.loads(
        run("plan", tmp_path / "sets.toml", "--users", 1000, "--padding", 2, "--json").stdout
    )
    assert (
        set(facts["total_mse"]) == {*SINGLE, "hits", "strict"} - {"grr", "ss"}
        and facts["padding"] == 2
    )
    for model in ("grr", "ss"):
        arguments = [tmp_path / "sets.toml", "--padding", 2, "--model", model]
        assert model in refused("design", *arguments)
        assert model in refused("plan", *arguments, "--users", 10)


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


# ---- help and bad input --------------------------------------------------------------------------


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
        (["design", TOY, "--encoding", "bytes"], ['encoding = "bytes"', "bits, ticket"]),
        (["design", TOY, "--encoding", "compact"], ['encoding = "compact"', "bits, ticket"]),
        (["design", TOY, "--model", "mixed"], ['model = "mixed" does not exist']),
        (["design", TOY, "--model", "grr", "--encoding", "ticket"], ["grr", "ticket"]),
        (["design", TOY, "--padding", 3], ["padding = 3", "set"]),
        (["design", TOY, "-o", "missing/m.json"], ["missing/m.json cannot be written"]),
        (["check", "missing.json"], ["missing.json does not exist"]),
        (["check", TOY], ["is a policy; make a mechanism of it with"]),
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


# ---- the installed command -----------------------------------------------------------------------


def test_the_script(tmp_path):
    path = tmp_path / "m.json"
    made = script("design", "-", "-o", path, "--json", input=TOY.read_bytes())
    assert made.returncode == 0 and made.stderr == b""
    assert json.loads(made.stdout)["fingerprint"] == d.Survey.load(path).fingerprint
    assert script("check", path).stdout.startswith(b"OK")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["questions"][0]["mechanism"]["policy"]["levels"][0]["epsilon"] = "ln(2)"
    del document["fingerprint"]
    path.write_text(json.dumps({**document, "fingerprint": Survey.fingerprint_body(document)}))
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


def test_plan_of_one_item(tmp_path):
    """Without any error there is nothing to gain."""
    (tmp_path / "one.toml").write_text('name="one"\n[[level]]\nname="l"\nepsilon=1\nitems=["x"]\n')
    assert "subset" in run("plan", tmp_path / "one.toml", "--users", 10).output
