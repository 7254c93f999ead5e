"""The designs are the optimum, never worse than what they contain, and hold at the edges."""

import math

import numpy as np
import pytest
from conftest import three_levels
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import policies

import discreet as d
from discreet.designs import MODELS, mixed, program
from discreet.designs.reductions import Levels, opt0, opt1, opt2
from discreet.errors import DesignError

FIGURES = {  # DESIGN "numbers to land on": worst case / n for m = 100, shares 5/5/90 %
    1: {"rappor": 391.77, "oue": 369.27, "opt0": 239.72, "opt1": 250.67, "opt2": 304.09},
    2: {"rappor": 92.07, "oue": 73.41, "opt0": 48.49, "opt1": 57.10, "opt2": 69.56},
    3: {"rappor": 36.97, "oue": 23.06, "opt0": 15.93, "opt1": 21.91, "opt2": 23.06},
}


def test_the_papers_toy_example(toy):
    for model, figure in {"rappor": 10, "oue": 9.889, "opt0": 8.5675}.items():
        assert d.design(toy, model).worst_case_mse == pytest.approx(
            figure, abs=6e-5 if model == "opt0" else 6e-4
        )
    mechanism = d.design(toy, "opt0")
    assert 1 - mechanism.a == pytest.approx([0.40795, 0.32700], abs=6e-6)
    assert mechanism.b == pytest.approx([0.32700, 0.27756], abs=6e-6)
    low, high = d.theory.mse_range(mechanism)
    assert (low, high) == pytest.approx((8.387, 8.567), abs=1e-3)


@pytest.mark.parametrize("eps", FIGURES)
def test_the_figures_of_the_design(eps):
    policy = three_levels(eps)
    for model, figure in FIGURES[eps].items():
        assert d.design(policy, model).worst_case_mse == pytest.approx(figure, abs=0.006), model


@pytest.mark.parametrize(("eps", "figure"), [(1, 198.73), (2, 39.10), (3, 11.89)])
def test_mixed_reaches_its_theory(eps, figure):
    """DESIGN "mixed designs", without the holders' term; ours may be lower, never 0.5 % higher."""
    policy = three_levels(eps)
    mechanism = d.design(policy, "mixed")
    found = float((mechanism.sizes * d.theory.noise(mechanism).V).sum())
    assert found <= figure * 1.005
    certificate = mechanism.certificate
    assert certificate.lower_bound <= certificate.value
    assert certificate.gap < 2e-3
    assert len(mechanism.parts) <= len(policy.levels) + 2


def test_direct_on_the_toy_example(toy):
    mechanism = d.design(toy, "direct")
    assert mechanism.expected_mse() == pytest.approx(3.587, abs=5e-4)
    assert pytest.approx([0.4, 0.6], abs=1e-6) == mechanism.matrix.D
    assert d.design(toy).model == "direct"
    assert d.design(three_levels()).model == "mixed"
    assert "starts" in mechanism.certificate.note and mechanism.certificate.lower_bound is None


def _levels(draw_sizes, draw_eps, notion):
    return Levels(np.array(draw_eps), np.array(draw_sizes, dtype=float), notion)


@st.composite
def levels(draw, notion):
    t = draw(st.integers(1, 12))
    eps = [draw(st.floats(0.05, 8)) for _ in range(t)]
    sizes = [10 ** draw(st.floats(0, 6)) // 1 for _ in range(t)]
    return Levels(np.array(eps), np.array(sizes), notion)


def _pairs(lv):
    return (
        np.minimum.outer(lv.eps, lv.eps) if lv.notion == "min" else np.add.outer(lv.eps, lv.eps) / 2
    )


def _worst(lv, u, w):
    p, q = 1 / np.expm1(u), 1 / np.expm1(w)
    return float(lv.sizes @ (p * (1 + q)) + (q - p).max())


@pytest.mark.parametrize("notion", ["min", "avg"])
@settings(max_examples=20)
@given(data=st.data())
def test_opt0_is_the_optimum_of_the_geometric_program(notion, data):
    lv = data.draw(levels(notion))
    u, w, value, bound = opt0(lv)
    r = _pairs(lv)
    assert (u[:, None] + w[None, :] <= r + 1e-12).all()
    assert value == pytest.approx(_worst(lv, u, w), rel=1e-12)
    assert bound <= value * (1 + 1e-12)
    assert value - bound <= 1e-6 * value
    u2, w2 = program.solve(r, lv.sizes, "opt0")
    # the program's answer may overshoot the budgets by its tolerance; its own certificate is the fair comparison
    reference, reference_bound = program.certify(r, lv.sizes, u2, w2)
    assert value <= reference * (1 + 1e-6)
    assert reference_bound <= value * (1 + 1e-9)


@pytest.mark.parametrize("notion", ["min", "avg"])
@settings(max_examples=10)
@given(data=st.data())
def test_opt1_and_opt2_are_the_optimum_of_their_programs(notion, data):
    lv = data.draw(levels(notion))
    for model, reduced in (("opt1", opt1), ("opt2", opt2)):
        u, w = program.solve(_pairs(lv), lv.sizes, model)
        overshoot = max(
            1.0, ((u[:, None] + w[None, :]) / _pairs(lv)).max()
        )  # of the budgets, by the solver's tolerance
        assert overshoot < 1 + 1e-4
        assert _worst(lv, *reduced(lv)) <= _worst(lv, u / overshoot, w / overshoot) * (1 + 1e-6)


@pytest.mark.parametrize("notion", ["min", "avg"])
@given(data=st.data())
def test_opt0_is_never_worse_and_survives_rounding(notion, data):
    policy = data.draw(policies(max_levels=4, max_size=6, max_items=24, notions=(notion,)))
    worst = {
        model: d.design(policy, model).worst_case_mse
        for model in ("opt0", "opt1", "opt2", "rappor", "oue")
    }
    assert worst["opt0"] <= min(worst.values()) * (1 + 1e-5)
    assert worst["opt0"] == pytest.approx(d.design(policy, "opt0").certificate.value, rel=1e-5)


@pytest.mark.parametrize("notion", ["min", "avg"])
@given(data=st.data())
def test_ours_are_never_worse_at_their_prior(notion, data):
    policy = data.draw(policies(max_levels=4, max_size=6, max_items=24, notions=(notion,)))
    shares = np.array(
        data.draw(st.lists(st.integers(1, 9), min_size=policy.m, max_size=policy.m)), dtype=float
    )
    for prior in ("uniform", "worst", shares / shares.sum()):
        mixed_, direct = (d.design(policy, model, prior=prior) for model in ("mixed", "direct"))
        assert mixed_.expected_mse(prior) <= d.design(policy, "opt0").expected_mse(prior) * (
            1 + 1e-12
        )
        assert direct.expected_mse(prior) <= d.design(policy, "grr").expected_mse(prior) * (
            1 + 1e-12
        )
        assert len(mixed_.parts) <= len(policy.levels) + 2
        best = min(mixed_.expected_mse(prior), direct.expected_mse(prior))
        assert d.design(policy, prior=prior).expected_mse(prior) == pytest.approx(best, rel=1e-9)


@settings(max_examples=25)
@given(lv=levels("min"))
def test_the_mixture_beats_every_part_of_a_grid(lv):
    """The certificate is honest: no design on a fine grid of (U, W) improves the mixture by more than the stated gap."""
    found = mixed.search(lv, lv.sizes)
    information = mixed.information(lv, found.U, found.W) @ found.shares
    value = found.value(lv, lv.sizes)
    e = lv.smallest
    U, W = (x.ravel() for x in np.meshgrid(np.linspace(0, e, 90), np.linspace(0, e, 90)))
    gains = (lv.sizes / information**2) @ mixed.information(lv, U, W)
    assert found.lower_bound <= value
    assert value**2 / max(gains.max(), value) >= found.lower_bound * (1 - 1e-9)
    assert 1 - found.lower_bound / value < 1e-4


def test_two_levels_mix_as_the_closed_form_says():
    """DESIGN: V_oue(eps) x min over lambda of s/(1-lambda) + (1-s)/(1+3 lambda), a share s of sensitive items."""
    lv = Levels(np.array([1.0, 2.0]), np.array([5.0, 95.0]), "min")
    lam = np.linspace(0, 0.999, 100_001)
    oue = 4 * math.e / (math.e - 1) ** 2
    expected = 100 * oue * (0.05 / (1 - lam) + 0.95 / (1 + 3 * lam)).min()
    assert mixed.search(lv, lv.sizes).value(lv, lv.sizes) == pytest.approx(expected, rel=1e-6)


def test_weights_shift_the_error(toy):
    def policy(weight):
        rows = [
            ("serious", 1, [f"s{i}" for i in range(5)], weight),
            ("common", 2, [f"c{i}" for i in range(95)]),
        ]
        return d.Policy.from_levels(rows)

    plain, heavy = (d.theory.level_variance(d.design(policy(w), "mixed")) for w in (1, 20))
    assert heavy[0] < plain[0] * 0.8
    assert heavy[1] > plain[1]


@pytest.mark.parametrize("notion", ["min", "avg"])
@pytest.mark.parametrize("model", [m for m in MODELS if m != "auto"])
@pytest.mark.parametrize(
    "budgets",
    [[0.01], [20], [0.01, 20], [1, 1], [1, 5], [3, 3.0000001], [0.01, 0.02, 20, 0.5]],
    ids=str,
)
def test_edges(notion, model, budgets):
    """One item, one level, levels of one item, equal budgets, beyond twice the smallest, 0.01 to 20; warnings are errors."""
    for size in (1, 3):
        rows = [(f"L{k}", eps, [f"{k}.{i}" for i in range(size)]) for k, eps in enumerate(budgets)]
        mechanism = d.design(d.Policy.from_levels(rows, notion=notion), model)
        assert np.isfinite(mechanism.expected_mse()) and np.isfinite(mechanism.worst_case_mse)
        assert mechanism.guarantee().holds


@pytest.mark.parametrize("notion", ["min", "avg"])
def test_uniform_budgets_give_the_plain_mechanisms(notion):
    policy = d.Policy.from_levels([("a", 1, list("xyz")), ("b", 1, list("uvw"))], notion=notion)
    assert d.design(policy, "opt1").a == pytest.approx(d.design(policy, "rappor").a, abs=1e-8)
    assert d.design(policy, "opt2").b == pytest.approx(d.design(policy, "oue").b, abs=1e-8)
    grr = d.design(policy, "grr")
    assert grr.a == pytest.approx(math.e / (math.e + 5), abs=1e-8)
    assert grr.b == pytest.approx(1 / (math.e + 5), abs=1e-8)
    assert d.design(policy, "direct").expected_mse() == pytest.approx(grr.expected_mse(), rel=1e-6)
    binary = d.design(d.Policy.from_levels([("a", 1, ["yes", "no"])]), "grr")
    assert binary.a == pytest.approx(math.e / (math.e + 1), abs=1e-8)


def test_huge_budgets_become_the_identity():
    policy = d.Policy.from_levels([("a", 44, list("xyz"))])
    assert d.design(policy, "grr").a == pytest.approx(1, abs=1e-8)
    mechanism = d.design(policy, "rappor")
    assert mechanism.a == pytest.approx([1], abs=1e-6) and mechanism.b == pytest.approx(
        [0], abs=1e-6
    )


def test_per_item_budgets(tmp_path):
    rng = np.random.default_rng(0)
    policy = d.Policy.from_budgets(
        {f"i{k}": round(float(x), 5) for k, x in enumerate(rng.uniform(0.5, 3, 3000))}
    )
    assert len(policy.levels) > 2900
    for model in ("opt0", "mixed", "direct", "grr"):
        mechanism = d.design(policy, model)
        assert mechanism.guarantee().holds
        gap = mechanism.certificate.gap if mechanism.certificate else None
        assert gap is None or gap < 1e-4


# ---- explicit pairs ---------------------------------------------------------------------------------


def _graph(*pairs, sizes=(2, 3, 4)):
    names, eps = ("a", "b", "c"), (1, 1.5, 2)
    return d.Policy.from_document(
        {
            "level": [
                {"name": n, "epsilon": e, "items": [f"{n}{i}" for i in range(k)]}
                for n, e, k in zip(names, eps, sizes, strict=True)
            ],
            "pair": list(pairs),
        }
    )


def test_explicit_pairs_that_repeat_the_notion_change_nothing():
    policy = _graph({"levels": ["a", "b"], "epsilon": 1})
    plain = _graph()
    for model in ("opt0", "opt1", "opt2"):
        assert d.design(policy, model).worst_case_mse == pytest.approx(
            d.design(plain, model).worst_case_mse, rel=1e-5
        )
    mechanism = d.design(policy, "mixed")
    assert "mixed is opt0" in mechanism.certificate.note
    assert d.design(policy, "opt0").certificate.gap < 1e-5


def test_leaving_pairs_out_helps_and_is_said():
    """More than Lemma 1's factor two becomes possible (the paper's Discussions)."""
    policy = _graph(
        {"levels": ["a", "c"], "protected": False}, {"levels": ["a", "b"], "protected": False}
    )
    free, full = d.design(policy, "opt0"), d.design(_graph(), "opt0")
    assert free.worst_case_mse < full.worst_case_mse
    assert free.certificate.gap < 1e-4
    guarantee = free.guarantee()
    assert [(x, y) for x, y, _ in guarantee.unprotected] == [("a", "c"), ("a", "b")]
    assert guarantee.ldp_bound == math.inf
    assert any("not to protect" in sentence for sentence in guarantee.sentences())


def test_a_level_free_of_all_pairs_does_not_make_the_solver_run_away():
    free = [{"levels": ["c", x], "protected": False} for x in "abc"]
    for model in ("opt0", "opt1", "opt2", "mixed", "direct", "auto"):
        mechanism = d.design(_graph(*free), model)
        assert np.isfinite(mechanism.worst_case_mse)


def test_a_pair_left_out_may_be_protected_through_others():
    guarantee = d.design(_graph({"levels": ["c", "c"], "protected": False}), "opt0").guarantee()
    assert guarantee.unprotected == [("c", "c", 2.0)]  # through a: 1 + 1
    assert guarantee.ldp_epsilon <= guarantee.ldp_bound + 1e-9 == 2 + 1e-9


def test_nothing_protected_is_refused():
    everything = [{"levels": [x, y], "protected": False} for x in "abc" for y in "abc" if x <= y]
    with pytest.raises(DesignError, match="no pair of levels is protected"):
        d.design(_graph(*everything))


# ---- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"model": "opt9"}, "the models are auto, mixed, direct"),
        ({"encoding": "bytes"}, "must be one of bits, compact"),
        ({"model": "grr", "encoding": "bits"}, "does not apply to grr"),
        ({"padding": 3}, 'applies to input = "set" only'),
        ({"prior": "best"}, "must be uniform, worst"),
        ({"prior": [1, 2, 3]}, "needs one per item"),
        ({"prior": [0.5, -0.5, 0, 0, 1]}, "not negative"),
        ({"prior": [0.5, float("nan"), 0, 0, 0.5]}, "finite"),
        ({"prior": [1, 1, 1, 1, 1]}, "sums to 5"),
        ({"prior": {"HIV": 0.5, "flu": 0.5}}, '"flu", which is neither'),
        ({"prior": {"HIV": "much"}}, "numbers"),
    ],
)
def test_bad_arguments_get_a_sentence(toy, arguments, sentence):
    with pytest.raises(DesignError, match=sentence):
        d.design(toy, **arguments)


def test_set_input_needs_a_padding_and_no_direct():
    policy = d.Policy.from_levels([("a", 1, list("xyz"))], input="set")
    with pytest.raises(DesignError, match="needs a padding"):
        d.design(policy)
    with pytest.raises(DesignError, match="cannot take set input"):
        d.design(policy, "direct", padding=2)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(d.DiscreetError, match="whole number from 1"):
            d.design(policy, padding=bad)
    assert d.design(policy, padding=2).model == "mixed"


def test_a_budget_too_small_for_the_grid_is_refused():
    with pytest.raises(DesignError, match="at least 1e-6"):
        d.design(d.Policy.from_levels([("a", 1e-9, list("xyz"))]), "opt0")


def test_priors_by_level_and_by_name(toy):
    by_list = d.design(toy, "direct", prior=[0.2, 0.8])
    by_name = d.design(toy, "direct", prior={"serious": 0.2, "common": 0.8})
    by_item = d.design(toy, "direct", prior=dict.fromkeys(toy.items, 0.2))
    assert by_list.matrix == by_name.matrix == by_item.matrix
    assert by_list.prior == "given"
