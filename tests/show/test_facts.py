"""What the commands say about a mechanism, as plain data."""

import json
import math

import numpy as np
import pytest
from policies import three_levels
from small import small

import discreet as d
from discreet.arrays import theory
from discreet.designs import BASELINES
from discreet.policy import Pair
from discreet.show import facts, outlook


@pytest.fixture(scope="module")
def survey():
    """Three levels of which the middle one costs little; several parts."""
    return d.design(three_levels(1.0, (5, 5, 40)))


@pytest.mark.parametrize("prior", ["uniform", "worst", [0.5, 0.3, 0.2]])
def test_a_mechanism_beside_plain_ldp(survey, prior):
    told = facts.describe(survey, prior)
    plain = {name: d.design(survey.policy, name, prior) for name in BASELINES[:4]}
    errors = {name: m.expected_mse(prior) for name, m in plain.items()}
    best = min(errors, key=errors.get)
    assert told["best_plain"] == best
    assert told["total_mse"] == {
        name: {"expected": m.expected_mse(prior), "worst_case": m.expected_mse("worst")}
        for name, m in {"subset": survey, **plain}.items()
    }
    at = "uniform" if isinstance(prior, str) else prior
    mine, theirs = (theory.level_variance(m, at) for m in (survey, plain[best]))
    for k, row in enumerate(told["levels"]):
        assert row["variance"] == mine[k] and row["plain_variance"][best] == theirs[k]
        assert row["against_best_plain"] == mine[k] / theirs[k]
        assert row["factor"] == pytest.approx(math.exp(survey.guarantee().epsilons[k]), rel=1e-12)
    assert [(row["level"], row["items"], row["epsilon"]) for row in told["levels"]] == [
        ("high", 5, "1"), ("middle", 5, "1.2"), ("low", 40, "2"),
    ]  # fmt: skip


def test_the_rest_of_a_mechanism(survey):
    told, guarantee = facts.describe(survey), survey.guarantee()
    policy = {"name": "question", "items": 50, "level_count": 3, "notion": "min", "kind": "single"}
    assert {key: told[key] for key in policy} == policy
    assert (told["model"], told["prior"], told["padding"]) == ("subset", "uniform", None)
    assert (told["encoding"], told["encoding_told"]) == ("bits", "subsets of fixed size")
    assert told["report_bytes"] == survey.report_size == 8
    assert told["mse_range"] == [*theory.mse_range(survey)]
    assert told["mse_range"][0] < told["mse_range"][1]
    assert (told["ldp_epsilon"], told["ldp_bound"]) == (guarantee.ldp_epsilon, 2.0)
    assert told["holds"] is True and told["promises"] == guarantee.sentences()
    assert told["fingerprint"] == survey.fingerprint
    best = survey.certificate
    assert told["certificate"] == {
        "value": best.value, "lower_bound": best.lower_bound, "gap": best.gap, "note": best.note,
        "sentence": best.sentence,
    }  # fmt: skip
    json.dumps(told, allow_nan=False, default=float)


def test_what_is_not_there_is_none():
    """No certificate; no bound between two levels that are not protected from each other."""
    policy = d.Policy.from_levels(
        [("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])], pairs=(Pair("a", "b", None),), kind="set"
    )
    mechanism = d.design(policy, "opt1", padding=2)
    told = facts.describe(mechanism)
    assert told["ldp_bound"] is None and not math.isfinite(mechanism.guarantee().ldp_bound)
    assert told["notion"] == "min with explicit pairs"
    assert (told["kind"], told["padding"]) == ("set", 2)
    assert set(told["total_mse"]) == {"opt1", "rappor", "oue"}  # the others take no sets
    assert facts.describe(small("bits"))["certificate"] is None


def test_probabilities_are_rounded_for_reading(survey):
    for part, told in zip(survey.parts, facts.probabilities(survey)["parts"]):
        for key in ("chance", "own", "other"):
            assert told[key] == [round(x, 6) for x in getattr(part, key)]
    mechanism = small("bits")
    (first, *others) = facts.probabilities(mechanism)["parts"]
    assert first == {"chance": [0.6, 0.3], "own": [0.7, 0.4], "other": [0.4, 0.2]}
    assert len(others) == 2 and others[0]["own"] == [0.0, 0.6]
    budgets = {f"i{k}": f"{2 + k / 1000}" for k in range(401)}
    few, many = (d.Policy.from_budgets(dict([*budgets.items()][:n])) for n in (400, 401))
    assert len(facts.probabilities(d.design(few, "rappor"))["parts"][0]["own"]) == 400
    assert facts.probabilities(d.design(many, "rappor"))["parts"][0]["own"] == "see the file"


@pytest.mark.parametrize("count", [20, 21])
def test_many_levels_are_shown_by_their_extremes(count):
    policy = d.Policy.from_budgets({f"i{k}": f"{1 + k / 10}" for k in range(count)})
    mechanism = d.design(policy, "opt1")
    told = facts.describe(mechanism)
    assert told["level_count"] == count and len(told["levels"]) == 20
    assert len(told["promises"]) == (20 if count == 20 else 0)
    shown = [row["epsilon"] for row in told["levels"]]
    if count == 20:
        assert shown == [level.budget.text for level in policy.levels]
    else:
        best = d.design(policy, told["best_plain"])
        ratio = theory.level_variance(mechanism) / theory.level_variance(best)
        order = np.argsort(ratio, kind="stable")
        places = [*order[:10], *order[-10:]]
        assert shown == [policy.levels[k].budget.text for k in places]


def test_a_plan(survey):
    users, target = 10_000, 0.01
    told = facts.plan(survey.policy, users, "uniform", None, target, survey)
    models = {name: d.design(survey.policy, name) for name in told["total_mse"]}
    rows = iter(told["rows"])
    for name, mechanism in models.items():
        variance, shares = theory.level_variance(mechanism), theory.share_variance(mechanism)
        noises = outlook.noises(mechanism, "uniform")
        for k, level in enumerate(survey.policy.levels):
            assert next(rows) == {
                "model": name,
                "level": level.name,
                "items": survey.policy.level_sizes[k],
                "stderr_count": pytest.approx((variance[k] * users) ** 0.5),
                "stderr_share": pytest.approx((shares[k] / users) ** 0.5),
                "smallest_share": outlook.visible_share(noises[k], users),
                "users_for_target": math.ceil(shares[k] / target**2),
            }
    assert next(rows, None) is None
    totals = told["total_mse"]
    assert told["best_plain"] == min(BASELINES[:4], key=totals.get) and told["best"] == "subset"
    assert told["gain"] == 1 - totals["subset"] / totals[told["best_plain"]] > 0
    assert told["certificate"]["sentence"] == survey.certificate.sentence
    asked = {"name": "question", "users": users, "prior": "uniform", "padding": None}
    assert {key: told[key] for key in asked} == asked and told["target_error"] == target


def test_a_plan_about_the_respondents_leaves_out_who_was_drawn(survey):
    drawn, given = (
        facts.plan(survey.policy, 400, "uniform", None, 0.01, survey, about=about)
        for about in ("population", "respondents")
    )
    assert drawn["about"] == "population" and given["about"] == "respondents"
    p = 1 / survey.m  # of every item
    for wide, narrow in zip(drawn["rows"], given["rows"], strict=True):
        assert wide["stderr_share"] ** 2 - narrow["stderr_share"] ** 2 == pytest.approx(
            p * (1 - p) / 400
        )
        assert narrow["stderr_share"] == pytest.approx(narrow["stderr_count"] / 400)
        assert wide["users_for_target"] > narrow["users_for_target"]
        assert wide["smallest_share"] > narrow["smallest_share"]


def test_a_plan_at_given_shares_without_a_target(survey):
    prior = [0.5, 0.3, 0.2]
    chosen = d.design(survey.policy, "rappor")
    told = facts.plan(survey.policy, 100, prior, None, None, chosen)
    assert told["prior"] == "given" and told["best"] == "rappor"
    assert all("users_for_target" not in row for row in told["rows"])
    plain = told["total_mse"][told["best_plain"]]
    assert told["gain"] == 1 - chosen.expected_mse(prior) / plain <= 0
    for name, error in told["total_mse"].items():
        assert error == d.design(survey.policy, name, prior).expected_mse(prior)


def test_a_plan_of_sets_tells_the_padding_of_the_policy():
    policy = d.Policy.from_levels([("a", 1, ["x", "y", "z"])], kind="set", padding=2)
    told = facts.plan(policy, 100, "uniform", None, None, d.design(policy))
    assert told["padding"] == 2 and not {"grr", "ss"} & set(told["total_mse"])


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        ([("a", 20, ["x", "y"])], {}, []),
        ([("a", "20.1", ["x", "y"])], {}, ['epsilon = 20.1 in level "a" gives almost no']),
        ([("a", 50, ["x"]), ("b", 50, ["y"])], {}, ['50 in level "a"', "e^50 on the odds"]),
        ([("a", 30, ["x"]), ("b", 50, ["y", "z"])], {}, ['50 in level "b" (and 1 more above 20)']),
        ([("a", 1, ["x"]), ("b", "2.5", ["y", "z"])], {}, ['2.5 in level "b" acts as 2:']),
        ([("a", 1, ["x"]), ("b", 2, ["y", "z"])], {}, []),
        ([("a", 1, ["x"]), ("b", 2, ["y"])], {}, ['2 in level "b" acts as 1:']),
        (
            [("a", 1, ["x"]), ("b", 3, ["y", "z"]), ("c", 9, ["u", "v"])],
            {},
            ['9 in level "c" acts as 2 (and 1 more level like it):'],
        ),
        ([("a", 1, ["x"]), ("b", 9, ["y", "z"])], {"notion": "avg"}, []),
        ([("a", 1, ["x"]), ("b", 3, ["y"])], {"notion": "avg"}, ['3 in level "b" acts as 2:']),
        ([("a", 1, ["x"]), ("b", 9, ["y"])], {"kind": "set", "padding": 2}, ["acts as 2:"]),
        ([("a", 1, ["x"]), ("b", 9, ["y"])], {"kind": "each"}, []),
        (
            [("a", 1, ["x"]), ("b", 9, ["y", "z"])],
            {"kind": "set", "padding": 2, "strict": True},
            [],
        ),
        (
            [("a", 1, ["x", "w"]), ("b", 9, ["y", "z"])],
            {"pairs": [("a", "b", 3)]},
            ['9 in level "b" acts as 6:'],
        ),
        ([("a", 1, ["x", "y"])], {"pairs": [("a", "a", 99)]}, ['99 in the pair of "a" and "a"']),
        ([("a", 1, ["x", "y"])], {"pairs": [("a", "a", None)]}, []),
        ([("a", 1, ["x"])], {}, ['"x" is the only item, so everybody\'s answer is known']),
        ([("a", 1, ["x"])], {"kind": "set", "padding": 1}, []),  # they have it or not
        ([("a", 1, ["x", "y"])], {}, []),
    ],
)
def test_what_is_hardly_meant_is_warned_of(rows, settings, words):
    found = facts.warnings(d.Policy.from_levels(rows, **settings))
    assert len(found) == bool(words) and all(word in found[0] for word in words)


def test_warnings_are_said_of_a_design_and_of_a_plan():
    policy = d.Policy.from_levels([("a", 1, ["x"]), ("b", 50, ["y", "z"])])
    mechanism = d.design(policy)
    planned = facts.plan(policy, 100, "uniform", None, None, mechanism)
    assert facts.describe(mechanism)["warnings"] == planned["warnings"] != []


def test_where_there_is_no_error_there_is_no_gain():
    policy = d.Policy.from_levels([("a", 1, ["x"])])
    told = facts.plan(policy, 100, "uniform", None, None, d.design(policy))
    assert told["gain"] == 0.0
