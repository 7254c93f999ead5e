"""Expected errors equal exact enumeration of every report, and the formulas of DESIGN evaluated directly."""

from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from exhaustive import sets, single, subsets
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import policies

import discreet as d
from discreet import theory
from discreet.errors import DesignError
from discreet.exact import D
from discreet.policy import Policy

CLOSE = 1e-9  # relative: the figures are floats computed from integers, with differences taken on the integers
ONE_PART = ("opt0", "opt1", "opt2", "rappor", "oue")


def shares(data, m):
    weights = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m).filter(any)), dtype=float
    )
    return weights / weights.sum()


def moments(table, contribution):
    """Mean and variance of one person's contribution, exactly, from Pr(report)."""
    mean = sum((chance * contribution(y) for y, chance in table.items()), Fraction(0))
    return mean, sum(
        (chance * contribution(y) ** 2 for y, chance in table.items()), Fraction(0)
    ) - mean**2


def unary_contributions(mechanism):
    """Of a report of a mechanism with one part to every item's estimate: (y - b) / (a - b)."""
    (part,) = mechanism.parts
    a, b = (
        [Fraction(x[k], base) for k in mechanism.policy.level_of]
        for x, base in ((part.A, D), (part.B, part.base))
    )
    return [lambda y, i=i: (y[1][i] - b[i]) / (a[i] - b[i]) for i in range(mechanism.m)]


def direct_contributions(mechanism):
    """Of an item sent to every item's estimate: the inverse of the whole matrix, in rational arithmetic."""
    m, of = mechanism.m, single(mechanism)
    rows = [
        [of(x)[y] for x in range(m)] + [Fraction(int(y == k)) for k in range(m)] for y in range(m)
    ]  # (P^T | 1)
    for k in range(m):
        pivot = next(r for r in range(k, m) if rows[r][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for r in range(m):
            if r != k:
                rows[r] = [x - rows[r][k] * y for x, y in zip(rows[r], rows[k], strict=True)]
    return [lambda y, row=rows[i][m:]: row[y] for i in range(m)]


def enumerated(mechanism):
    """Var of one person's contribution to item i's estimate, given input x; asserts that its mean is 1{i = x}."""
    contributions = (direct_contributions if mechanism.direct else unary_contributions)(mechanism)
    of, m = single(mechanism), mechanism.m
    variance = np.zeros((m, m))
    for x in range(m):
        table = of(x)
        for i in range(m):
            mean, var = moments(table, contributions[i])
            assert mean == (i == x)
            variance[i, x] = float(var)
    return variance


# ---- single answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["bits", "compact", None])
@settings(max_examples=20)
@given(policy=policies(max_items=4), data=st.data())
def test_figures_equal_enumeration(encoding, policy, data):
    """Per item, in total, at a prior and at the extremes; encoding None stands for direct and grr."""
    model = data.draw(st.sampled_from(ONE_PART if encoding else ("direct", "grr")))
    if model == "direct" and policy.m == 1:
        return
    mechanism = d.design(policy, model, encoding=encoding)
    variance, prior = enumerated(mechanism), shares(data, policy.m)
    assert theory.item_variance(mechanism, prior) == pytest.approx(variance @ prior, rel=CLOSE)
    assert theory.total_mse(mechanism, prior) == pytest.approx((variance @ prior).sum(), rel=CLOSE)
    assert mechanism.expected_mse() == pytest.approx(variance.mean(axis=1).sum(), rel=CLOSE)
    totals = variance.sum(axis=0)
    assert theory.mse_range(mechanism) == pytest.approx((totals.min(), totals.max()), rel=CLOSE)
    assert mechanism.worst_case_mse == pytest.approx(totals.max(), rel=CLOSE)
    level_of = np.array(policy.level_of)
    means = [(variance @ prior)[level_of == k].mean() for k in range(len(policy.levels))]
    assert theory.level_variance(mechanism, prior) == pytest.approx(means, rel=CLOSE)


def test_the_enumeration_sees_other_probabilities(toy):
    """The twin: a budget 0.1 % larger has another variance, by far more than the tolerance."""
    other = Policy.from_levels(
        [("serious", "ln(4.004)", ["HIV"]), ("common", "ln(6)", list(toy.items[1:]))]
    )
    for model in ("oue", "grr"):
        found = theory.item_variance(d.design(other, model))
        assert found != pytest.approx(
            enumerated(d.design(toy, model)).mean(axis=1), rel=1e5 * CLOSE
        )


@pytest.mark.parametrize("model", ["opt0", "direct"])
def test_an_item_that_nobody_holds(model):
    policy = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])])
    mechanism = d.design(policy, model)
    prior = [0.3, 0, 0.7, 0]
    assert theory.absent_variance(mechanism, prior) == pytest.approx(
        theory.item_variance(mechanism, prior)[[1, 3]], rel=CLOSE
    )


@pytest.mark.parametrize("model", ["opt0", "mixed", "direct"])
def test_weighted_total(model):
    policy = Policy.from_levels([("a", 1, ["x", "y"], 3), ("b", 2, ["z", "w"], 0.5)])
    mechanism = d.design(policy, model)
    variance = theory.level_variance(mechanism)
    assert theory.total_mse(mechanism, weighted=True) == pytest.approx(
        3 * 2 * variance[0] + 0.5 * 2 * variance[1], rel=CLOSE
    )


# ---- several parts: DESIGN "mixed designs", evaluated directly ------------------------------------------


def by_hand(mechanism):
    """V, h and s per level from u, w of every part."""
    V, h, s = [], [], []
    for level in range(len(mechanism.sizes)):
        rows = []
        for part in mechanism.parts:
            a, b = Fraction(part.A[level], D), Fraction(part.B[level], part.base)
            share, information = Fraction(part.numerator, D), (a - b) ** 2 / (b * (1 - b))
            if information:
                rows.append(
                    (share, information, b / (a - b), (1 - a) / (a - b))
                )  # p = 1/(e^u - 1), q = 1/(e^w - 1)
        total = sum(share * information for share, information, _, _ in rows)
        omega2 = [(share * information / total) ** 2 / share for share, information, _, _ in rows]
        V.append(1 / total)
        h.append(sum(x * (q - p) for x, (_, _, p, q) in zip(omega2, rows, strict=True)))
        s.append(sum(omega2) - 1)
    return tuple(np.array(list(map(float, column))) for column in (V, h, s))


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@settings(max_examples=20)
@given(policy=policies(max_items=5), data=st.data())
def test_several_parts_follow_the_formulas(encoding, policy, data):
    mechanism = d.design(policy, "mixed", encoding=encoding)
    V, h, s = by_hand(mechanism)
    found = theory.noise(mechanism)
    assert pytest.approx(V, rel=CLOSE) == found.V
    scale = CLOSE * V.max()
    assert found.h == pytest.approx(h, rel=CLOSE, abs=scale) and found.s == pytest.approx(
        s, rel=CLOSE, abs=scale
    )
    x, of = shares(data, policy.m), np.array(policy.level_of)
    expected = V[of] + h[of] * x + s[of] * x * (1 - x)
    assert theory.item_variance(mechanism, x) == pytest.approx(expected, rel=CLOSE)
    assert theory.total_mse(mechanism, x) == pytest.approx(expected.sum(), rel=CLOSE)
    low, high = theory.mse_range(mechanism)
    assert low * (1 - CLOSE) <= expected.sum() <= high * (1 + CLOSE)


def test_a_mixture_has_several_parts(toy):
    assert len(d.design(toy, "mixed").parts) > 1  # so that the test above has something to test


def simplex(m, steps):
    """All shares of m items in whole steps."""
    for cut in combinations_with_replacement(range(steps + 1), m - 1):
        edges = (0, *cut, steps)
        yield tuple((high - low) / steps for low, high in pairwise(edges))


levels = st.tuples(
    st.floats(-3, 3), st.sampled_from([0.0, 0.3, 1.0, 4.0]), st.integers(1, 2)
)  # h, s and size


@given(
    st.lists(levels, min_size=1, max_size=3).filter(
        lambda rows: sum(size for _, _, size in rows) <= 4
    )
)
def test_water_filling_against_a_grid(rows):
    """No share on the grid is worse, and the grid comes as near as its step allows: s dx^2 per item around the optimum."""
    h, s, sizes = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    of = np.repeat(np.arange(len(rows)), sizes.astype(int))
    steps = 40 if len(of) < 4 else 20
    x = np.array(list(simplex(len(of), steps)))
    best = (h[of] * x + s[of] * x * (1 - x)).sum(axis=1).max()
    found = theory._worst_holders(h, s, sizes)
    assert best <= found + 1e-9
    assert found - best <= len(of) * max(s.max(), 0) / steps**2 + 1e-9


# ---- sets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ONE_PART)
@pytest.mark.parametrize("padding", [1, 2, 3])
@settings(max_examples=6)
@given(policy=policies(max_levels=2, max_items=3, input="set"), data=st.data())
def test_set_error_equals_enumeration(model, padding, policy, data):
    """Bias and variance of ell (y - b) / (a - b), summed over people with given sets, empty and too large ones included."""
    mechanism = d.design(policy, model, padding=padding)
    people = data.draw(st.lists(st.sampled_from(list(subsets(policy.m))), min_size=1, max_size=5))
    of, contributions = sets(mechanism), unary_contributions(mechanism)
    bias, variance = np.zeros(policy.m), np.zeros(policy.m)
    for held in people:
        table = of(held)
        for i in range(policy.m):
            mean, var = moments(table, contributions[i])
            bias[i] += float(padding * mean - (i in held))
            variance[i] += float(padding**2 * var)
    found = theory.set_error(mechanism, [sorted(held) for held in people])
    assert found.bias == pytest.approx(bias, rel=CLOSE, abs=CLOSE)
    assert found.variance == pytest.approx(variance, rel=CLOSE)
    assert found.mse == pytest.approx((bias**2 + variance).sum(), rel=CLOSE)


def test_bias_is_only_of_sets_larger_than_the_padding():
    policy = Policy.from_levels([("a", 1, list("xyz"))], input="set")
    mechanism = d.design(policy, "opt0", padding=2)
    assert theory.set_error(mechanism, [[0], [0, 1], []]).bias.tolist() == [0, 0, 0]
    assert theory.set_error(mechanism, [[0, 1, 2]] * 3).bias == pytest.approx([3 * (2 / 3 - 1)] * 3)


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@settings(max_examples=20)
@given(policy=policies(max_items=4, input="set"), data=st.data())
def test_set_error_of_several_parts_follows_the_formula(encoding, policy, data):
    """ell^2 { n V + sum_k omega^2/lambda_k sum_u [pi (q - p) + pi (1 - pi)] + s (sum pi^2 - (sum pi)^2 / n) }."""
    ell = data.draw(st.integers(1, 4))
    mechanism = d.design(policy, "mixed", encoding=encoding, padding=ell)
    people = data.draw(st.lists(st.sampled_from(list(subsets(policy.m))), min_size=1, max_size=8))
    V, h, s = (x[np.array(policy.level_of)] for x in by_hand(mechanism))
    pi = np.array([[(i in held) / max(len(held), ell) for i in range(policy.m)] for held in people])
    n = len(people)
    extra = h * pi.sum(axis=0) + (1 + s) * (pi * (1 - pi)).sum(axis=0)
    expected = ell**2 * (n * V + extra + s * ((pi**2).sum(axis=0) - pi.sum(axis=0) ** 2 / n))
    found = theory.set_error(mechanism, [sorted(held) for held in people])
    assert found.variance == pytest.approx(expected, rel=CLOSE)
    if max(len(held) for held in people) <= ell:  # then the prior says it all
        prior = (pi > 0).mean(axis=0)
        if prior.any():
            assert n * theory.item_variance(mechanism, prior) == pytest.approx(expected, rel=CLOSE)
            assert n * theory.total_mse(mechanism, prior) == pytest.approx(
                expected.sum(), rel=CLOSE
            )


def _worst_of_sets(policy, model, padding):
    mechanism = d.design(policy, model, padding=padding)
    low, high = theory.mse_range(mechanism)
    assert high == mechanism.worst_case_mse
    choices = [sorted(held) for held in subsets(policy.m) if len(held) <= padding]
    for people in product(choices, repeat=2):
        found = theory.set_error(mechanism, people).variance.sum() / 2
        assert low * (1 - CLOSE) <= found <= high * (1 + CLOSE), people


@pytest.mark.parametrize("model", ["rappor", "oue", "opt0", "mixed"])
@pytest.mark.parametrize("padding", [1, 2, 3])
def test_the_range_of_sets_holds_all_data(model, padding):
    for eps in (0.5, 2):
        _worst_of_sets(
            Policy.from_levels([("a", eps, ["x"]), ("b", 2.5 * eps, ["y", "z"])], input="set"),
            model,
            padding,
        )


@pytest.mark.parametrize("padding", [2, 3])
def test_the_range_of_sets_holds_all_data_of_one_item(padding):
    """One item, padding 2, everyone has it: pi = 1/2 and the sampling adds pi (1 - pi) = 1/4 per person."""
    _worst_of_sets(Policy.from_levels([("a", 1, ["x"])], input="set"), "rappor", padding)


def test_set_errors_need_set_input(toy):
    with pytest.raises(DesignError, match="takes single answers"):
        theory.set_error(d.design(toy, "opt0"), [[0]])
