"""Models compared on the user's own data, and the commands around post-processing and padding."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from policies import three_levels

import discreet as d
from discreet.cli import main
from discreet.designs import alternatives
from discreet.estimates.simulation import compare, measure, simulate


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


POLICY = three_levels(1.0, sizes=(3, 3, 34))
# sensitive items are as frequent as others: shrinking has one prior for all items, which is right
# only then
TRUTH = np.random.default_rng(0).permutation(
    np.random.default_rng(1).multinomial(
        20_000, 1 / np.arange(1, 41) / (1 / np.arange(1, 41)).sum()
    )
)


def test_scores_agree_with_theory():
    models = {
        name: m
        for name, m in alternatives(POLICY).items()
        if name in ("subset", "oue", "opt0", "grr")
    }
    scores = {(s.model, s.view): s for s in compare(TRUTH, models, k=5, repeats=60, seed=3)}
    for name, mechanism in models.items():
        raw = scores[name, "raw"]
        assert abs(raw.mse - mechanism.expected_mse(TRUTH / TRUTH.sum())) < 5 * raw.mse_error
        assert 0.94 <= raw.coverage <= 0.965
        assert scores[name, "shrunk"].mse < raw.mse
        assert (
            scores[name, "consistent"].coverage != scores[name, "consistent"].coverage
        )  # it has no intervals
    assert scores["subset", "raw"].mse < scores["opt0", "raw"].mse < scores["oue", "raw"].mse


def test_one_experiment_says_nothing_of_chance(files):
    (score, *_) = compare(TRUTH, {"oue": d.design(POLICY, "oue")}, k=5, repeats=1, seed=3)
    assert np.isnan([score.mse_error, score.precision_error]).all() and score.mse > 0
    told = run("simulate", files / "p.toml", files / "a.csv", "--repeats", 1).output
    assert "± –" in told and "One experiment; use --repeats" in told


def test_measures_on_perfect_and_on_reversed_estimates():
    estimate = simulate(TRUTH, d.design(POLICY, "oue"), repeats=1, seed=1).estimates[0]
    perfect = estimate.__class__(
        estimate.mechanism,
        estimate.n,
        TRUTH.astype(float),
        estimate.variance_at_zero,
        estimate.slope,
        estimate.step,
    )
    mse, relative, precision, coverage = measure(perfect, TRUTH.astype(float), 5)["raw"]
    assert (mse, relative, precision, coverage) == (0, 0, 1, 1)
    upside = estimate.__class__(
        estimate.mechanism,
        estimate.n,
        -TRUTH.astype(float),
        estimate.variance_at_zero,
        estimate.slope,
        estimate.step,
    )
    assert measure(upside, TRUTH.astype(float), 5)["raw"][2] == 0


@pytest.fixture
def files(tmp_path):
    (tmp_path / "p.toml").write_text(
        'name = "pages"\n[[level]]\nname = "a"\nepsilon = 1\nitems = ["x", "y"]\n'
        '[[level]]\nname = "b"\nepsilon = 2\nitems = ["u", "v", "w"]\n'
    )
    (tmp_path / "a.csv").write_text(
        "item\n" + "\n".join(["x"] * 300 + ["u"] * 500 + ["w"] * 200) + "\n"
    )
    (tmp_path / "s.toml").write_text('kind = "set"\n' + (tmp_path / "p.toml").read_text())
    (tmp_path / "s.dat").write_text("x u\nu v w\n\nx\n" * 100)
    return tmp_path


def test_simulate_command(files):
    output = run(
        "simulate",
        files / "p.toml",
        files / "a.csv",
        "--seed",
        1,
        "--repeats",
        3,
        "--top",
        2,
        "--plot",
        files / "m.png",
    ).output
    assert "subset" in output and "grr" in output and "shrunk" in output
    assert (files / "m.png").stat().st_size > 1000
    facts = [
        json.loads(
            run(
                "simulate", files / "p.toml", files / "a.csv", "--seed", 1, "--repeats", 3, "--json"
            ).output
        )
        for _ in "ab"
    ]
    assert facts[0] == facts[1] and len(facts[0]["scores"]) == 8 * 3
    sets = json.loads(
        run(
            "simulate", files / "s.toml", files / "s.dat", "--padding", 2, "--seed", 1, "--json"
        ).output
    )
    assert {score["model"] for score in sets["scores"]} == {
        "subset",
        "hits",
        "strict",
        "opt0",
        "opt1",
        "opt2",
        "rappor",
        "oue",
    }
    assert "error: " in run("simulate", files / "p.toml", files / "none.csv", code=2).output
    assert "needs a padding" in run("simulate", files / "s.toml", files / "s.dat", code=2).output


def test_estimate_with_post_processing(files):
    """Fresh randomness: intervals of 1 - 1e-8 miss less than once in a million runs, and u leads x
    by ten standard errors.
    """
    mechanism = d.design(d.Policy.load(files / "p.toml"), "oue")
    mechanism.save(files / "m.json")
    mechanism.tally(mechanism.perturb_many(["x"] * 3000 + ["u"] * 5000)).save(files / "t.json")
    arguments = ("estimate", files / "m.json", files / "t.json", "--shrunk", "--consistent")
    arguments += ("--confidence", 1 - 1e-8)
    output = run(*arguments, "-o", files / "e.csv", "--plot", files / "e.svg").output
    assert "shrunk" in output and "consistent" in output
    assert "in the top" not in output  # all are shown
    assert "in the top" in run(*arguments, "--top", 1).output
    header = (files / "e.csv").read_text().splitlines()[0]
    assert all(
        f'"{name}"' in header
        for name in ("count", "shrunk", "shrunk_sd", "shrunk_lower", "shrunk_upper", "consistent")
    )
    rows = json.loads(run(*arguments, "--json").output)["items"]
    assert sum(row["consistent"] for row in rows) == pytest.approx(8000)
    assert rows[0]["item"] == "u" and rows[0]["shrunk_lower"] <= 5000 <= rows[0]["shrunk_upper"]
    raw = json.loads(
        run("estimate", files / "m.json", files / "t.json", "--ranking", "raw", "--json").output
    )["items"]
    assert "in_top" not in raw[0]


def test_plan_with_automatic_padding(files):
    (files / "z.csv").write_text("size,share\n1,0.5\n2,0.3\n4,0.2\n")
    (files / "z.json").write_text('{"1": 0.5, "2": 0.3, "4": 0.2}')
    arguments = ("plan", files / "s.toml", "--users", 100_000, "--padding", "auto")
    output = run(*arguments, "--sizes", files / "z.csv").output
    assert "Padding" in output and "smallest expected" in output
    facts = json.loads(
        run(*arguments, "--sizes", files / "z.json", "--popularity", 0.3, "--json").output
    )
    assert facts["padding"] == 4 and len(facts["padding_curve"]) == 4
    model = (*arguments, "--sizes", files / "z.json", "--popularity", 0.3, "--json", "--model")
    other, loaded = json.loads(run(*model, "opt0").output), d.Policy.load(files / "s.toml")
    wanted = d.choose_padding(
        loaded, {1: 0.5, 2: 0.3, 4: 0.2}, 100_000, 0.3, model="opt0", prior="uniform"
    )
    assert other["padding_curve"] == {str(k): pytest.approx(x) for k, x in wanted.curve.items()}
    assert other["padding_curve"] != facts["padding_curve"]
    assert "needs --sizes" in run(*arguments, code=2).output
    assert "must be a CSV" in run(*arguments, "--sizes", files / "p.toml", code=2).output
    assert (
        "zipf or a number"
        in run(*arguments, "--sizes", files / "z.csv", "--popularity", "much", code=2).output
    )
    assert (
        "whole number or auto"
        in run("plan", files / "s.toml", "--users", 5, "--padding", "two", code=2).output
    )
