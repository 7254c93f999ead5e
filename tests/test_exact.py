"""The check is a proof: it agrees with exact enumeration of every report, on both sides of the bound."""

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from exhaustive import factor, sets, subsets, violations
from hypothesis import given
from hypothesis import strategies as st
from strategies import policies

import discreet as d
from discreet import exact
from discreet.errors import GuaranteeError
from discreet.exact import D, P
from discreet.mechanism import Matrix, Mechanism, Part

UNARY = ("mixed", "opt0", "opt1", "opt2", "rappor", "oue")
ALL = (*UNARY, "direct", "grr")


@given(st.fractions(min_value=0, max_value=45, max_denominator=10**6))
def test_exp_lower_is_below_and_close(x):
    low = exact.exp_lower(x)
    context = Context(prec=60)
    true = Fraction(context.exp(context.divide(Decimal(x.numerator), Decimal(x.denominator))))
    assert low <= true * (1 + Fraction(1, 10**55))
    assert low >= true * (1 - Fraction(1, 2**60))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**18))
def test_sqrt_lower_is_below_and_close(x):
    low = exact.sqrt_lower(x)
    assert low * low <= x
    assert (low * (1 + Fraction(1, 2**50)) + Fraction(1, 2**70)) ** 2 > x


def test_ln_is_exact_and_decimals_are_as_written():
    assert exact.factor(d.policy.Budget.parse("ln(4)")) == 4
    assert exact.factor(d.policy.Budget.parse("ln(7/2)")) == Fraction(7, 2)
    assert d.policy.Budget.parse(0.1).value == Fraction(1, 10)


@pytest.mark.parametrize("model", ALL)
@given(policy=policies())
def test_every_report_keeps_the_policy(model, policy):
    """Enumerates all outputs of every model and notion, for every ordered pair of inputs."""
    assert violations(d.design(policy, model)) == []


@given(policy=policies(max_levels=2, max_items=4))
def test_compact_thresholds_keep_the_policy(policy):
    assert violations(d.design(policy, "opt0", encoding="compact")) == []


def _moved(mechanism, k, name, step):
    part = mechanism.parts[0]
    values = list(getattr(part, name))
    values[k] += step
    return Part(
        D, *(tuple(values) if key == name else getattr(part, key) for key in ("A", "B")), part.base
    )


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@given(policy=policies(max_items=4, max_levels=2), data=st.data())
def test_the_check_is_exact_on_both_sides(encoding, policy, data):
    """Move one probability to the last unit that passes: enumeration agrees. One unit further: it must fail."""
    mechanism = d.design(
        policy, data.draw(st.sampled_from(["opt0", "oue", "rappor"])), encoding=encoding
    )
    k = data.draw(st.integers(0, len(policy.levels) - 1))
    name, direction = data.draw(st.sampled_from([("A", 1), ("B", -1)]))
    base = mechanism.parts[0].base

    def check(step):
        part = _moved(mechanism, k, name, direction * step)
        return exact.check_unary(policy, [(D, part.A, part.B)], base)

    low, high = 0, D  # the last step that passes, by bisection
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if check(middle) is None else (low, middle)
    good, bad = (_moved(mechanism, k, name, direction * step) for step in (low, high))
    assert violations(Mechanism(policy, "opt0", encoding, (good,))) == []
    with pytest.raises(GuaranteeError):
        Mechanism(policy, "opt0", encoding, (bad,))
    # Levels of one item also promise their bit against itself (needed for sets), which no pair of single inputs shows.
    if min(policy.sizes) > 1 and bad.B[k] > 0 and bad.A[k] < D:
        broken = Mechanism.__new__(Mechanism)
        broken.__dict__.update(
            policy=policy, model="opt0", encoding=encoding, parts_=(bad,), matrix=None, padding=None
        )
        assert violations(broken) != []


def test_a_direct_matrix_one_unit_past_its_bound_is_refused(toy):
    mechanism = d.design(toy, "direct")
    matrix = mechanism.matrix
    diagonal, off = list(matrix.diagonal), [list(row) for row in matrix.off]
    for step in range(40):  # HIV is sent as itself more often, as others less often
        diagonal[0] += 4
        off[0][1] -= 1
        moved = Matrix(matrix.groups, tuple(diagonal), tuple(map(tuple, off)))
        try:
            accepted = Mechanism(toy, "direct", "item", (), moved)
        except GuaranteeError as error:
            assert set(error.levels) == {"serious", "common"}
            break
        assert violations(accepted) == [], step
    else:
        pytest.fail("the matrix was never refused")


@pytest.mark.parametrize(
    ("a", "b"),
    [(D, D), (0, 0), (D, 1), (D // 2, 0), (D // 3, D // 2)],
    ids=["one", "zero", "a=1", "b=0", "a<b"],
)
def test_degenerate_probabilities_are_refused(toy, a, b):
    """The inequality alone would hold as 0 <= 0 for a = b = 1 and a = b = 0 while privacy is broken."""
    good = d.design(toy, "opt0").parts[0]
    part = Part(D, (good.A[0], a), (good.B[0], b))
    with pytest.raises(GuaranteeError, match="0 < b <= a < 1"):
        Mechanism(toy, "opt0", "bits", (part,))


@pytest.mark.parametrize("shares", [(D, 1), (D - 1,), (0, D), (-1, D + 1)])
def test_shares_must_be_positive_and_sum_to_one(toy, shares):
    good = d.design(toy, "opt0").parts[0]
    with pytest.raises(GuaranteeError, match="share"):
        Mechanism(toy, "opt0", "bits", tuple(Part(s, good.A, good.B) for s in shares))


@pytest.mark.parametrize("model", UNARY)
@pytest.mark.parametrize("padding", [1, 2, 3])
@given(policy=policies(max_levels=2, max_items=3, input="set", notions=("min",)))
def test_sets_keep_the_item_promise_and_the_papers_theorem(model, padding, policy):
    """Having or not having item i: at most e^{eps_i}, for every set and every report; and Theorem 4 with eps_x."""
    mechanism = d.design(policy, model, padding=padding)
    of, guarantee = sets(mechanism), mechanism.guarantee()
    tables = {x: of(x) for x in subsets(policy.m)}
    for x, table in tables.items():
        assert sum(table.values()) == 1
        for i in range(policy.m):
            if i in x:
                continue
            e = factor(policy, policy.level_of[i], policy.level_of[i])
            more = tables[x | {i}]
            assert all(more[y] <= e * table[y] and table[y] <= e * more[y] for y in table)
    for x, table in tables.items():
        for x2, other in tables.items():
            worst = max(float(table[y] / other[y]) for y in table)
            allowed = min(guarantee.set_budget(x), guarantee.set_budget(x2))
            assert worst <= 2.718281828459045**allowed * (1 + 1e-9)
            assert worst <= 2.718281828459045 ** guarantee.set_bound(x, x2) * (1 + 1e-9)


def test_the_item_promise_fails_for_a_mechanism_of_a_looser_policy():
    """The twin: the same enumeration sees a mechanism that was designed for twice the budget."""
    tight = d.Policy.from_levels([("a", 1, ["x"]), ("b", 1, ["y"])], input="set")
    loose = d.Policy.from_levels([("a", 2, ["x"]), ("b", 2, ["y"])], input="set")
    of = sets(d.design(loose, "opt0", padding=1))
    e = factor(tight, 0, 0)
    table, more = of(frozenset({1})), of(frozenset({0, 1}))
    empty, one = of(frozenset()), of(frozenset({0}))
    assert any(more[y] > e * table[y] or table[y] > e * more[y] for y in table) or any(
        one[y] > e * empty[y] or empty[y] > e * one[y] for y in one
    )


def test_explicit_pairs_are_checked_pair_by_pair():
    policy = d.Policy.from_document(
        {
            "level": [
                {"name": "a", "epsilon": 1, "items": ["x", "y"]},
                {"name": "b", "epsilon": 2, "items": ["z", "w"]},
            ],
            "pair": [
                {"levels": ["b", "b"], "protected": False},
                {"levels": ["a", "a"], "epsilon": "ln(2)"},
            ],
        }
    )
    for model in (*UNARY, "direct", "grr"):
        mechanism = d.design(policy, model)
        assert violations(mechanism) == []
    assert P == 2**31 - 1
