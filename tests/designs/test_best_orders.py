"""The best mechanism for budgets of ordered pairs: the numbers that were worked out, and that the
certificate says the truth.
"""

import math
import random

import numpy as np
import ordered
import pytest
from brute import budgets_of, smallest_error, smallest_error_of_small_budgets
from ordered import leveled, scale

import discreet as d

# total MSE / n of everybody at a uniform prior, to as many digits as they are known
ONE_WAY = {
    "(1, 1) at 1": (leveled((1, 1), (1, None)), "0.5820"),
    "(1, 4) at 1": (leveled((1, 4), (1, None)), "0.9312"),
    "(1, 4) at ln 4": (leveled((1, 4), ("ln(4)", None)), "0.5333"),
    "(5, 95) at 0.5": (leveled((5, 95), (0.5, None)), "44.77"),
    "(5, 95) at 1": (leveled((5, 95), (1, None)), "9.500"),
    "(5, 95) at 2": (leveled((5, 95), (2, None)), "1.716"),
    "(11, 30) at 1": (leveled((11, 30), (1, None)), "26.28"),
    "(5, 6, 30) at 1, 2": (leveled((5, 6, 30), (1, 2, None)), "13.83"),
    "(5, 6, 30) at 0.5, 1": (leveled((5, 6, 30), (0.5, 1, None)), "68.72"),
    "min among the 5 and 6": (
        leveled((5, 6, 30), (1, 2, None), pairs=[("l1", "l0", 1, True)]),
        "19.77",
    ),
    "(5, 6, 30) at 1, 2, 4": (leveled((5, 6, 30), (1, 2, 4)), "18.46"),
    "(50, 50) at 1, 2": (leveled((50, 50), (1, 2)), "214.94"),
    "(2, 1, 3), mixed": (ordered.table(ordered.MIXED, (2, 1, 3)), "6.3582"),
}
BLOCKS = {
    "3 x 3": (leveled((3,) * 3, (1,) * 3, "blocks"), "4.3601"),
    "5 x 5": (leveled((5,) * 5, (1,) * 5, "blocks"), "11.4298"),
    "10 x 10": (leveled((10,) * 10, (1,) * 10, "blocks"), "29.1041"),
}
SCALES = {
    (points, step): (scale(points, step), value)
    for points, *values in (
        (5, "26.702", "5.3282", "0.6931"),
        (7, "37.957", "6.2606", "0.7581"),
        (10, "50.850", "6.9757", "0.8069"),
        (11, "53.607", "7.1280", "0.8172"),
    )
    for step, value in zip((0.5, 1, 2), values, strict=True)
}
CAPPED = {
    (points, cap): (scale(points, 1, cap), value)
    for points, cap, value in (
        (5, 2, "5.6985"),
        (7, 3, "6.6167"),
        (10, 3, "8.2235"),
        (11, 3, "8.7289"),
    )
}
LONG = {20: (scale(20), "7.8133")}
CASES = [
    pytest.param(policy, value, id=f"{kind} {name}")
    for kind, rows in (("one-way", ONE_WAY), ("blocks", BLOCKS), ("scale", SCALES),
                       ("capped", CAPPED), ("long", LONG))
    for name, (policy, value) in rows.items()
]  # fmt: skip


@pytest.mark.parametrize(("policy", "value"), CASES)
def test_numbers_that_were_worked_out(policy, value):
    mechanism = d.design(policy, "subset")
    last_digit = 10.0 ** -len(value.partition(".")[2])
    certificate = mechanism.certificate
    for found in (mechanism.expected_mse(), certificate.value, certificate.lower_bound):
        assert found == pytest.approx(float(value), abs=last_digit)
    assert certificate.gap is not None and certificate.gap < 1e-5
    assert mechanism.check() is None


def test_per_level():
    """(5, 95) at 1: 8.12 and 1.38; a cap of one-way budgets costs those who need it nothing."""
    mechanism = d.design(leveled((5, 95), (1, None)), "subset")
    of = np.array(mechanism.policy.level_of)
    variance = item_errors(mechanism)
    assert variance[of == 0].sum() == pytest.approx(8.12, abs=0.01)
    assert variance[of == 1].sum() == pytest.approx(1.38, abs=0.01)


def item_errors(mechanism):
    """Variance / n of every item's estimate for people who are spread evenly over all items."""
    estimate = mechanism.arrays.decoder
    groups, m = mechanism.arrays.group_of, mechanism.m
    shares = np.bincount(groups) / m
    part_n = estimate.chance[:, : len(shares)] @ shares
    at_zero = estimate.variance_at_zero(part_n, shares)
    return (at_zero + estimate.slope / m)[groups] - 1 / m


# ---- the certificate against programs over all columns -------------------------------------------


def random_table(draw):
    """1 to 4 levels of 5 items or fewer, any budgets in both directions."""
    while True:
        sizes = [draw.choice((1, 1, 2, 3)) for _ in range(draw.randint(1, 4))]
        if 2 <= sum(sizes) <= 5:
            break
    values = (0.4, 0.7, 1, 1.3, 1.9, 2.5)
    gaps = draw.choice((0, 0.25, 0.6))
    r = [[None if draw.random() < gaps else draw.choice(values) for _ in sizes] for _ in sizes]
    if draw.random() < 0.3:
        r = [[row[k]] * len(sizes) for k, row in enumerate(r)]  # one-way
    if all(x is None for row in r for x in row):
        r[0][0] = 1
    if all(r[k][k] is None for k in range(len(r))) and len(r) == 1:
        r[0][0] = 1
    return ordered.table(r, sizes)


def tiny_policies():
    draw = random.Random(4)
    found = [random_table(draw) for _ in range(25)]
    return [
        *found,
        leveled((2, 3), (1, 0.5), "blocks"),
        leveled((1, 2, 2), (1, 2, 0.7), "min", pairs=[("l2", "l0", 0.4, True)]),
        scale(4, 0.7),
        scale(5, 0.7, 1.4),
    ]


@pytest.mark.parametrize("k", range(29))
def test_the_certificate_does_not_lie(k):
    policy = tiny_policies()[k]
    truth = smallest_error(budgets_of(policy), np.full(policy.m, 1 / policy.m))
    mechanism = d.design(policy, "subset")
    certificate, near = mechanism.certificate, 1e-5 * max(truth, 1e-3)
    assert certificate.lower_bound is not None
    assert certificate.lower_bound <= truth + near
    assert certificate.lower_bound == pytest.approx(truth, abs=near)
    assert certificate.value == pytest.approx(truth, abs=near)
    assert mechanism.expected_mse() == pytest.approx(certificate.value, rel=1e-6)


SMALL = {
    "min": leveled((1, 1, 3), (0.013, 0.021, 0.0083), "min"),
    "avg": leveled((3, 1), (0.0177, 0.0132), "avg"),
    "one-way": leveled((1, 3), (0.0127, 0.0227)),
    "pairs": ordered.table([[0.01, 0.012], [0.02, 0.005]], (1, 2)),
    "scale": scale(3, 0.02),
    "long scale of small steps": scale(5, 0.002),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_certificate_does_not_lie_at_small_budgets(name):
    policy = SMALL[name]
    truth, certificate = (
        smallest_error_of_small_budgets(budgets_of(policy)),
        d.design(policy, "subset", goal="total").certificate,
    )
    assert certificate.lower_bound <= truth * (1 + 1e-6)
    assert certificate.lower_bound == pytest.approx(truth, rel=1e-4)
    assert certificate.value == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("k", [0, 3])
def test_both_programs_over_all_columns_agree(k):
    r = budgets_of(tiny_policies()[k])
    other = smallest_error(r, np.full(len(r), 1 / len(r)))
    assert smallest_error_of_small_budgets(r) == pytest.approx(other, rel=1e-5)


@pytest.mark.parametrize("k", [0, 3, 25, 27])
def test_a_budget_that_is_a_thousandth_larger_is_seen(k):
    """The twin: the program of another table is not what is certified."""
    policy = tiny_policies()[k]
    other = smallest_error(1.001 * budgets_of(policy), np.full(policy.m, 1 / policy.m))
    value = d.design(policy, "subset").certificate.value
    assert value - other > 1e-4 * value


# ---- faults that are known -----------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2)])
def test_one_direction_between_two_open_levels(sizes):
    policy = ordered.table([[None, None], [0.4, None]], sizes)
    truth = smallest_error(budgets_of(policy), np.full(policy.m, 1 / policy.m))
    certificate = d.design(policy, "subset").certificate
    assert certificate.value == pytest.approx(truth, rel=1e-5)
    assert certificate.lower_bound == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize("prior", [[1, 0], [1 - 1e-6, 1e-6]])
def test_an_open_level_that_nearly_nobody_holds_is_counted_too(prior):
    mechanism = d.design(leveled((2, 3), (1, None)), "subset", prior=prior)
    assert mechanism.certificate.value > 1  # two answers at 1 cost 1.84
    assert math.isfinite(mechanism.expected_mse())


@pytest.mark.parametrize("estimate", ["both", "mean"])
def test_a_worst_case_is_of_the_items_whatever_a_scale_is_best_for(estimate):
    """What counts the mean too has another unit, so that a bound of it says nothing of items."""
    items, other = (
        d.design(d.Policy.from_scale(list("abcde"), step=0.5, estimate=x), prior="worst")
        for x in ("items", estimate)
    )
    assert other.worst_case_mse == pytest.approx(items.worst_case_mse, rel=1e-4)
    assert other.certificate.lower_bound == pytest.approx(items.certificate.lower_bound, rel=1e-4)
    assert "mean" not in other.certificate.note


@pytest.mark.parametrize(("points", "step"), [(5, 5e-4), (16, 1e-3), (5, 25)])
def test_steps_that_are_very_small_or_large(points, step):
    """Floats end before the budgets do: the bound may be loose, and is never above the value."""
    mechanism = d.design(scale(points, step), "subset")
    certificate = mechanism.certificate
    assert mechanism.check() is None
    assert certificate.lower_bound is None or certificate.lower_bound <= certificate.value
    distance = np.subtract.outer(np.arange(points), np.arange(points))
    kernel = np.exp(-step * abs(distance))
    chances = kernel * np.linalg.solve(kernel, np.ones(points))
    inverse = np.linalg.inv((chances / chances.mean(axis=0)) @ chances.T)
    geometric = np.trace(inverse) - 1  # of the truncated geometric mechanism
    assert certificate.value <= geometric * (1 + 1e-5) + 1e-8  # of integers over 2^32
