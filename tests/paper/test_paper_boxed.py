"""opt0 in the authors' box: the optimum of a grid, and what it costs."""

import numpy as np
import pytest

import discreet as d
from discreet.designs import reductions
from discreet.designs.reductions import Levels
from discreet.paper.boxed import boxed, optimum
from discreet.paper.experiments import make_policy
from discreet.paper.settings import FACTORS, SHARES


def objective(sizes, a, b):
    """opt0's objective in (a, b), as the paper writes it."""
    spread = (sizes * b * (1 - b) / (a - b) ** 2).sum(axis=-1)
    return spread + ((1 - a - b) / (a - b)).max(axis=-1)


@pytest.mark.parametrize("eps", [(1.0, 2.0), (0.8, 1.1), (2.0, 4.0)])
@pytest.mark.parametrize("sizes", [(1, 30), (10, 90), (20, 4)])
def test_the_boxed_optimum_is_that_of_a_grid(eps, sizes):
    u, w, value = optimum(Levels(np.array(eps), np.array(sizes, float), "min"))
    b = -np.expm1(-w) / (np.exp(u) - np.exp(-w))
    a = b * np.exp(u)
    assert (a >= 0.5 - 1e-9).all() and (b <= 0.5 + 1e-9).all()
    assert objective(np.array(sizes), a, b) == pytest.approx(value, rel=1e-9)
    # a on a grid of the box, b_1 from the smallest that its own level allows, b_2 from the smallest
    # that all others allow
    E = [[np.exp(min(x, y)) for y in eps] for x in eps]
    side, steps, few = (
        np.linspace(0.5, 0.95, 61),
        np.linspace(0, 1, 41) ** 2,
        [0, 0.002, 0.01, 0.05, 0.2],
    )
    a1, a2, t1, t2 = (x.ravel() for x in np.meshgrid(side, side, steps, few, indexing="ij"))
    b1 = _between(a1 / (a1 + E[0][0] * (1 - a1)), t1)
    lower = (
        a2 / (a2 + E[1][1] * (1 - a2)),
        1 - E[0][1] * b1 * (1 - a2) / a1,
        a2 * (1 - b1) / (E[1][0] * (1 - a1)),
    )
    b2 = _between(np.max(lower, axis=0), t2)
    ok = (b1 < 0.5) & (b2 < 0.5) & (b1 < a1 - 1e-6) & (b2 < a2 - 1e-6)
    both = (np.stack(x, axis=-1)[ok] for x in ((a1, a2), (b1, b2)))
    found = objective(np.array(sizes), *both).min()
    assert value * (1 - 1e-9) <= found <= value * 1.01


def _between(low, t):
    return low + t * np.maximum(0.5 - low, 0)


@pytest.mark.parametrize(
    ("eps", "free", "within"),
    [(1.0, 239.723, 243.146), (2.0, 48.490, 50.357), (3.0, 15.9337, 16.4896)],
)
def test_the_box_costs_what_it_costs(eps, free, within):
    policy = make_policy(100, eps, FACTORS, SHARES, "single")
    mine = boxed(policy)
    assert d.design(policy, "opt0").worst_case_mse == pytest.approx(free, rel=2e-5)
    assert mine.worst_case_mse == pytest.approx(within, rel=2e-5)
    told = float(mine.certificate.note.split(": ")[1])
    assert told == pytest.approx(within, rel=2e-5) and mine.guarantee().holds
    # a is at least 1/2 but for the rounding toward privacy
    assert (mine.a >= 0.5 - 1e-6).all() and (mine.b <= 0.5).all()


def test_the_box_has_tickets_and_sets_too():
    single, sets = (make_policy(100, 1.0, FACTORS, SHARES, kind) for kind in ("single", "set"))
    tickets = boxed(single, "ticket")
    assert tickets.encoding.name == "ticket" and tickets.report_size == 4
    assert 0.99 < tickets.expected_mse() / boxed(single).expected_mse() < 1.02
    padded = boxed(sets, "bits", 2)
    assert padded.padding == 2 and (padded.a == boxed(single).a).all()


def test_a_box_that_does_not_bind_changes_nothing(toy):
    levels = Levels(np.log([4.0, 6.0]), np.array([1.0, 4.0]), "min")
    assert optimum(levels)[2] == pytest.approx(reductions.opt0(levels)[2], rel=1e-7)
    assert boxed(toy).a == pytest.approx(d.design(toy, "opt0").a, abs=1e-4)
