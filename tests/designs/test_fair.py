"""goal = "fair": the least total error such that no level is counted worse than under plain LDP."""

import json
from functools import cache

import numpy as np
import ordered
import pytest
from brute import budgets_of, smallest_error
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import three_levels
from strategies import of_kind, policies, with_pairs

import discreet as d
from discreet.arrays import theory
from discreet.check.certificate import FAIR
from discreet.cli import main
from discreet.designs import design
from discreet.designs.fair import Limits
from discreet.designs.groups import Groups
from discreet.designs.search import Search
from discreet.designs.subset import subset
from discreet.designs.task import Task
from discreet.encodings import Fixed
from discreet.errors import DesignError
from discreet.estimates.padding import choose_padding

SAME = 1e-6  # relative: what rounding to integers may add
# levels, budgets, and what is known of both goals: total MSE / n and the levels beside `ss`
TABLE = {
    ((5, 6, 30), (1, 1.2, 2)): (92.4, (1.51, 0.95, 0.44), 105.4, (1, 1, 0.64)),
    ((5, 5, 90), (1, 1.2, 2)): (172.4, (2.00, 1.16, 0.36), 222.2, (1, 1, 0.57)),
    ((5, 5, 90), (2, 2.4, 4)): (30.1, (1.80, 0.82, 0.33), 33.8, (1, 0.93, 0.43)),
    ((5, 5, 90), (0.5, 0.6, 1)): (775, (2.16, 1.33, 0.37), 1111, (1, 1, 0.69)),
    ((1, 4), ("ln(4)", "ln(6)")): (3.568, (1.24, 0.60), 3.69, (1, 0.69)),
    ((50, 50), (1, 2)): (328.5, (1.17, 0.65), 354.9, (1, 0.97)),
}
# of the figures above, which come from a search that let levels be a little worse than plain LDP:
# the certificates prove that nothing below 354.9 + 0.08 % is possible
FIGURES = 1e-3


@cache
def both(sizes, budgets):
    policy = ordered.leveled(sizes, budgets, "min")
    plain = theory.level_variance(d.design(policy, "ss"))
    return {
        goal: (made := d.design(policy, goal=goal), theory.level_variance(made) / plain)
        for goal in ("fair", "total")
    }


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_figures_that_were_worked_out(row):
    total, of_total, fair, of_fair = TABLE[row]
    mechanism, levels = both(*row)["fair"]
    assert mechanism.expected_mse() <= fair * (1 + FIGURES)
    assert levels == pytest.approx(of_fair, abs=0.006)
    assert levels.max() <= 1 + SAME
    certificate = mechanism.certificate
    assert certificate.gap < 1e-5
    assert certificate.sentence.endswith(f"for this guarantee and prior, with {FAIR}")
    other, levels = both(*row)["total"]
    assert other.expected_mse() == pytest.approx(total, rel=FIGURES)
    assert levels == pytest.approx(of_total, abs=0.006)
    assert FAIR not in other.certificate.sentence


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_what_is_best_in_total_is_not_fair(row):
    """The twin: the least total error makes a level pay, and being fair costs the others."""
    (fair, _), (total, levels) = both(*row)["fair"], both(*row)["total"]
    assert levels.max() > 1.1
    assert total.expected_mse() < fair.certificate.lower_bound


# ---- the certificate against programs over all columns -------------------------------------------

TINY = {
    "(1, 2) at 1, 2": (ordered.leveled((1, 2), (1, 2), "min"), None),
    "(1, 4), the paper's": (ordered.leveled((1, 4), ("ln(4)", "ln(6)"), "min"), None),
    "(1, 1, 2)": (ordered.leveled((1, 1, 2), (1, 1.2, 2), "min"), None),
    "(1, 1, 3)": (ordered.leveled((1, 1, 3), (1, 1.2, 2), "min"), None),
    "(1, 3), a prior": (ordered.leveled((1, 3), (1, 2), "min"), (0.1, 0.9)),
    "(2, 2), a prior": (ordered.leveled((2, 2), (1, 2), "min"), (0.1, 0.9)),
    "pairs": (ordered.table([[1, 1], [1, 2.5]], (1, 3)), None),
    # nobody pays here
    "(2, 3)": (ordered.leveled((2, 3), (1, 1.5), "min"), None),
    "avg": (ordered.leveled((1, 3), (1, 1.2), "avg"), (0.7, 0.3)),
    "one-way": (ordered.leveled((1, 3), (1, 1.1)), (0.9, 0.1)),
}
LIMITED = list(TINY)[:7]


def worked_out(name, loose=1.0):
    """The smallest total error if no level exceeds `loose` times plain LDP, and the design."""
    policy, prior = TINY[name]
    shares = theory.item_shares(policy, "uniform" if prior is None else prior)
    settings_ = {} if prior is None else {"prior": prior}
    plain = theory.level_variance(d.design(policy, "ss"), shares)[list(policy.level_of)]
    truth = smallest_error(budgets_of(policy), shares, loose * plain)
    return truth, d.design(policy, goal="fair", **settings_)


@pytest.mark.parametrize("name", TINY)
def test_the_certificate_does_not_lie(name):
    truth, mechanism = worked_out(name)
    certificate = mechanism.certificate
    assert certificate.lower_bound <= truth * (1 + 1e-6)
    assert certificate.lower_bound == pytest.approx(truth, rel=2e-5)
    assert certificate.value == pytest.approx(truth, rel=2e-5)


@pytest.mark.parametrize("name", TINY)
def test_which_of_them_are_limited(name):
    """Otherwise nothing was tested."""
    assert (FAIR in worked_out(name)[1].certificate.sentence) == (name in LIMITED)


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_that_is_a_hundredth_looser_is_seen(name):
    """The twin: with looser limits less error is possible, which the bound would contradict."""
    truth, mechanism = worked_out(name, loose=1.01)
    assert truth < mechanism.certificate.lower_bound * (1 - 1e-4)


@pytest.mark.parametrize("name", ["(1, 2) at 1, 2", "(1, 1, 2)"])
def test_the_bound_before_it_is_cut_to_the_value(name):
    """A certificate never claims more than the value; what was worked out is the truth as well."""
    truth, _ = worked_out(name)
    task = Task(TINY[name][0], "uniform", None, None)
    search = Search(task, Groups.for_task(task), Fixed(), Limits.for_model(task, subset))
    problem = search.problem(search.groups.shares, 0.0, True, search.groups.pieces[0])
    found = problem.solve()
    _, prices = problem.master(found.columns, found.shares)
    score = float(problem._price_all(prices)[1].max())
    assert prices.bound(score, problem.caps) - 1 == pytest.approx(truth, rel=2e-5)
    assert prices.bound(score, 0.99 * problem.caps) - 1 > truth * (1 + 1e-4)  # the twin


# ---- any policy ----------------------------------------------------------------------------------


def beside_plain(mechanism, plain, prior="uniform"):
    """The largest ratio of a level's error to that of plain LDP; 1 where neither has one."""
    mine, other = (theory.level_variance(x, prior) for x in (mechanism, plain))
    return float((np.maximum(mine, 1e-12) / np.maximum(other, 1e-12)).max())


def one_level(policy, **settings_):
    """The same items, all at the smallest budget."""
    t = range(len(policy.levels))
    smallest = min(policy.pair_epsilon(i, j) for i in t for j in t)
    return d.Policy.from_levels([("all", smallest, policy.items)], **settings_)


@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
@given(policy=st.one_of(policies(), with_pairs()))
@settings(max_examples=25, deadline=None)
def test_no_level_is_counted_worse(kind, policy):
    if policy.m == 1:
        return
    plain = of_kind(kind, one_level(policy))
    fair, total = (of_kind(kind, policy, goal=goal) for goal in ("fair", "total"))
    of_plain = np.bincount(policy.level_of, theory.item_variance(plain)) / policy.level_sizes
    assert (theory.level_variance(fair) <= of_plain * (1 + SAME) + 1e-12).all()
    assert fair.expected_mse() <= plain.expected_mse() * (1 + SAME) + 1e-12
    # the search for independent items may end a little above its best
    near = 1e-5 if kind == "fixed" else 1e-3
    assert total.expected_mse() <= fair.expected_mse() * (1 + near) + 1e-12
    bound = fair.certificate.lower_bound
    assert bound is None or bound <= fair.certificate.value


def test_a_level_that_pays_would_be_seen():
    """The twin: the same comparison finds that the least total error makes a level pay."""
    policy = three_levels(sizes=(2, 2, 10))
    plain = d.design(policy, "ss")
    assert beside_plain(d.design(policy), plain) <= 1 + SAME
    assert beside_plain(d.design(policy, goal="total"), plain) > 1.1


@pytest.mark.parametrize("count", [6, 12])
def test_many_budgets(count):
    """Up to eight budgets it is certified, beyond it is at least fair and gains."""
    policy = ordered.leveled((4,) * count, [1 + 0.1 * k for k in range(count)], "min")
    mechanism, plain = d.design(policy), d.design(policy, "ss")
    assert beside_plain(mechanism, plain) <= 1 + SAME
    assert mechanism.expected_mse() < 0.97 * plain.expected_mse()
    assert beside_plain(d.design(policy, goal="total"), plain) > 1.1
    assert ("not certified" in mechanism.certificate.sentence) == (count > 8)


@pytest.mark.parametrize(
    "policy",
    [
        ordered.leveled((5, 95), (1, None)),
        ordered.leveled((5,) * 5, (1,) * 5, "blocks"),
        ordered.scale(5, 0.5),
        three_levels(notion="avg"),
    ],
    ids=["one-way", "blocks", "scale", "avg"],
)
def test_where_nobody_pays_both_goals_are_one(policy):
    """Then it is the best of all, and says so without a condition."""
    fair, total = (d.design(policy, goal=goal) for goal in ("fair", "total"))
    assert fair.fingerprint == total.fingerprint
    assert fair.certificate == total.certificate
    assert fair.certificate.sentence == "the best possible for this guarantee and prior"


def test_scales_for_the_mean():
    """`both` is limited like the items; who asks for the mean alone compares no points."""
    scales = [d.Policy.from_scale(list("abcde"), 0.5, estimate=x) for x in ("both", "mean")]
    plain = d.design(scales[0], "ss")
    assert beside_plain(d.design(scales[0], goal="total"), plain) > 1.04
    fair = d.design(scales[0])
    assert beside_plain(fair, plain) <= 1 + SAME
    assert fair.certificate.gap < 1e-6
    assert d.design(scales[1]).fingerprint == d.design(scales[1], goal="total").fingerprint


def test_sets():
    """Hits gain for some levels only at the expense of others, so that fair is plain LDP. Subsets
    with a size per level gain for all: the others need not pay more than that.
    """
    policy = three_levels(sizes=(2, 3, 12), kind="set")
    plain = d.Policy.from_levels([("a", 1, policy.items)], kind="set")
    counted, strict = (d.design(x, "hits", padding=2) for x in (policy, plain))
    assert counted.expected_mse() == pytest.approx(strict.expected_mse(), rel=1e-9)
    fair, total = (d.design(policy, padding=2, goal=goal) for goal in ("fair", "total"))
    strict = d.design(plain, padding=2)
    assert beside_plain(fair, strict) <= 1 + SAME < 1.02 < beside_plain(total, strict)
    assert fair.expected_mse() < 0.7 * strict.expected_mse()
    assert total.expected_mse() < 1.01 * fair.expected_mse()
    assert fair.certificate.note.startswith("no level counted worse than under plain LDP")
    noise = {
        goal: choose_padding(policy, {2: 1.0}, 10_000, goal=goal).expected
        for goal in ("fair", "total")
    }
    assert noise["total"].min() < 1.01 * noise["fair"].min()


def test_sets_of_which_one_item_is_sampled():
    policy = three_levels(sizes=(5, 6, 30), kind="set")
    one = d.Policy.from_levels([("a", 1, policy.items)], kind="set")
    one_item = {"encoding": "bits", "padding": 3}  # subset of whole lists is picks
    plain = d.design(one, "subset", **one_item)
    fair, total = (d.design(policy, "subset", goal=x, **one_item) for x in ("fair", "total"))
    limit = theory.item_variance(plain)[0]
    assert theory.level_variance(fair).max() <= limit * (1 + SAME)
    assert theory.level_variance(total).max() > 1.3 * limit
    assert fair.expected_mse() < 0.8 * plain.expected_mse()


def test_items_asked_one_by_one():
    """Every item is a question of its own, and never worse than at the smallest budget."""
    policy = three_levels(sizes=(1, 2, 3), kind="each")
    fair, total = (d.design(policy, goal=goal) for goal in ("fair", "total"))
    assert fair.fingerprint == total.fingerprint
    assert beside_plain(fair, d.design(policy, "rappor")) <= 1 + SAME


# ---- which goal ----------------------------------------------------------------------------------


def test_weights_mean_the_total():
    rows = [("a", 1, ["x"], 3), ("b", 2, ["y", "z"])]
    weighted = d.Policy.from_levels(rows)
    assert d.design(weighted) == d.design(weighted, goal="total")
    assert FAIR not in d.design(weighted).certificate.sentence
    with pytest.raises(DesignError, match='goal = "fair" does not apply to a policy with weights'):
        d.design(weighted, goal="fair")


def test_a_worst_case_is_of_the_total():
    policy = three_levels(sizes=(1, 2, 2))
    worst = d.design(policy, prior="worst")
    assert worst == d.design(policy, prior="worst", goal="total")
    with pytest.raises(DesignError, match='prior = "worst" has none'):
        d.design(policy, prior="worst", goal="fair")


def test_unknown_goals():
    with pytest.raises(DesignError, match='goal = "least" must be one of fair, total'):
        d.design(three_levels(), goal="least")


@pytest.mark.parametrize("model", ["opt0", "opt1", "opt2", "rappor", "oue", "grr", "ss"])
def test_models_with_an_objective_of_their_own(model):
    policy = three_levels(sizes=(1, 2, 2))
    assert design(policy, model, goal="fair") == design(policy, model, goal="total")


@pytest.mark.parametrize("command", ["design", "plan"])
def test_both_goals_side_by_side(command, tmp_path):
    file = tmp_path / "survey.toml"
    rows = {"private": (1, 5), "common": (2, 15)}
    file.write_text(
        "\n".join(
            f"[[level]]\nname = '{name}'\nepsilon = {epsilon}\n"
            f"items = {json.dumps([f'{name} {k}' for k in range(count)])}"
            for name, (epsilon, count) in rows.items()
        )
    )
    more = ["--users", "1000"] if command == "plan" else []

    def run(*arguments):
        result = CliRunner().invoke(main, [command, str(file), *more, *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    fair, total = json.loads(run("--json"))["goals"]
    assert (fair["goal"], total["goal"]) == ("fair", "total")
    assert fair["chosen"] and not total["chosen"]
    assert fair["total_mse"] > total["total_mse"]
    assert fair["against_best_plain"]["private"] == pytest.approx(1, abs=1e-4)
    assert total["against_best_plain"]["private"] > 1.1
    (line,) = [x for x in run("--goal", "total").splitlines() if x.strip().startswith("fair ")]
    assert line.split()[2:] == [f"{x:.2f}" for x in fair["against_best_plain"].values()]
    assert [row["chosen"] for row in json.loads(run("--json", "--goal", "total"))["goals"]] == [
        False,
        True,
    ]
