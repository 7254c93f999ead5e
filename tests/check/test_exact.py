"""The check is a proof: it agrees with the enumeration of every report, on both sides."""

from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import exhaustive
import numpy as np
import pytest
from exhaustive import breaks, violations, worst_excess
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import changed, make_part
from strategies import of_kind, policies, small_bits, small_tickets, with_pairs
from test_exhaustive import random_document

import discreet as d
from discreet import encodings
from discreet.check import exact
from discreet.check.exact import Chances, D
from discreet.errors import DesignError, GuaranteeError
from discreet.mechanism import Mechanism, denominators
from discreet.policy import Budget, Policy

KINDS = ("fixed", "bits", "ticket")
PAPER = ("opt0", "opt1", "opt2", "rappor", "oue")
CLOSE = 1e-9  # of an excess in floats: logarithms of ratios


# ---- e^x -----------------------------------------------------------------------------------------


@given(st.fractions(min_value=0, max_value=45, max_denominator=10**6))
def test_exp_lower_is_below_and_close(x):
    low = exact.exp_lower(x)
    context = Context(prec=60)
    true = Fraction(context.exp(context.divide(Decimal(x.numerator), Decimal(x.denominator))))
    assert low <= true * (1 + Fraction(1, 10**55))
    assert low >= true * (1 - Fraction(1, 2**60))


def test_ln_is_exact_and_decimals_are_as_written():
    assert exact.factor(Budget.parse("ln(4)")) == 4
    assert exact.factor(Budget.parse("ln(7/2)")) == Fraction(7, 2)
    assert Budget.parse(0.1).value == Fraction(1, 10)


def test_huge_budgets_count_as_the_largest():
    largest = exact.factor(Budget.parse(45))
    assert exact.factor(Budget.parse(1000)) == exact.factor(Budget.parse("45.1")) == largest
    assert largest > exact.factor(Budget.parse("44.9")) * Fraction(11, 10)


# ---- designs, by enumeration ---------------------------------------------------------------------


def keeps(mechanism):
    """No report breaks the policy, for any pair of answers; and the chances are chances."""
    document = mechanism.to_document()
    assert violations(document) == []
    for x in exhaustive.answers(document):
        assert sum(exhaustive.distribution(document, x).values()) == 1


@pytest.mark.parametrize(("kind", "examples"), [("fixed", 60), ("bits", 12), ("ticket", 12)])
@pytest.mark.parametrize("what", ["single", "set"])
def test_every_report_of_subset_keeps_the_policy(kind, examples, what):
    @settings(max_examples=examples)
    @given(policy=policies(max_items=5 if kind == "fixed" else 4, max_size=3, kind=what))
    def run(policy):
        keeps(of_kind(kind, policy, padding=2 if what == "set" else None))

    run()


@pytest.mark.parametrize(("kind", "examples"), [("fixed", 40), ("bits", 6), ("ticket", 6)])
@pytest.mark.parametrize("what", ["single", "set"])
def test_every_report_keeps_explicit_and_unprotected_pairs(kind, examples, what):
    @settings(max_examples=examples)
    @given(policy=with_pairs(max_items=4, kind=what))
    def run(policy):
        keeps(of_kind(kind, policy, padding=2 if what == "set" else None))

    run()


@pytest.mark.parametrize("model", PAPER)
@pytest.mark.parametrize("kind", ["bits", "ticket"])
@settings(max_examples=8)
@given(data=st.data())
def test_every_report_of_the_papers_models_keeps_the_policy(model, kind, data):
    what = data.draw(st.sampled_from(["single", "set"]))
    policy = data.draw(policies(max_items=4, kind=what))
    keeps(of_kind(kind, policy, model, padding=2 if what == "set" else None))


@pytest.mark.parametrize("model", ["grr", "ss"])
@settings(max_examples=20)
@given(data=st.data())
def test_every_report_of_plain_subsets_keeps_the_policy(model, data):
    keeps(d.design(data.draw(policies(max_items=5) | with_pairs(max_items=4)), model))


@pytest.mark.parametrize("notion", ["min", "avg"])
@pytest.mark.parametrize("what", ["single", "set"])
def test_one_budget_per_item_keeps_the_policy(notion, what):
    """Nine levels: the search for many of them, in bits and in tickets."""
    budgets = {f"i{k}": f"{0.8 + k / 12:.3f}" for k in range(9)}
    policy = Policy.from_budgets(budgets, notion=notion, kind=what)
    padding = 2 if what == "set" else None
    for mechanism in (small_bits(policy, padding=padding), small_tickets(policy, padding=padding)):
        assert not breaks(mechanism.to_document())


def test_the_budgets_are_used_up(toy):
    """So that the tests above are not about mechanisms that say nothing."""
    for kind in KINDS:
        assert worst_excess(of_kind(kind, toy).to_document()) > -1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_the_enumeration_sees_a_looser_budget(kind, toy):
    """The twin: made for ln(4.001), promised at ln(4)."""
    rows = [("serious", "ln(4.001)", ["HIV"]), ("common", "ln(6)", list(toy.items[1:]))]
    document = of_kind(kind, Policy.from_levels(rows)).to_document()
    assert not breaks(document)
    document["policy"] = toy.to_canonical()
    assert breaks(document)


# ---- groups of levels ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_has_the_smallest_budget_of_its_levels(kind):
    """Two levels that are treated alike: what one is promised binds both."""
    rows = [("a", "ln(3)", ["x", "y"]), ("b", "ln(9)", ["z", "w"]), ("c", "ln(4)", ["v"])]
    policy = Policy.from_levels(rows)
    encoding = {
        "fixed": encodings.Fixed(),
        "bits": encodings.Bits(),
        "ticket": encodings.Ticket(5, 2),
    }
    over = denominators(encoding[kind], (0, 0, 1), policy)
    other = [base // 2 for base in over[:1]] + [0]  # c is silent

    def at(odds):
        chance = Fraction(other[0], over[0])
        own = int(D * chance * odds / (chance * odds + 1 - chance))
        return make_part([D, D], [own, 0], other, None, over, (0, 0, 1))

    good = Mechanism(policy, "subset", encoding[kind], (0, 0, 1), [at(3)], (D // 2, D // 2))
    keeps(good)
    document = good.to_document()
    document["parts"][0]["own"][0] += D // 1000
    assert breaks(document)
    with pytest.raises(GuaranteeError) as caught:
        Mechanism(policy, "subset", encoding[kind], (0, 0, 1), [at(4)], good.shares)
    assert set(caught.value.levels) == {"a"}


# ---- both sides of the bound ---------------------------------------------------------------------


def checked(document):
    """What discreet's check says of the numbers of a document."""
    policy = Policy.from_canonical(document["policy"])
    encoding = encodings.from_document(document["encoding"])
    parts = [Chances(p["chance"], p["own"], p["other"], p.get("none")) for p in document["parts"]]
    over = denominators(encoding, tuple(document["groups"]), policy)
    assert exact.malformed(policy, len(over), parts) is None
    return exact.check(policy, document["groups"], over, parts)


def full(document):
    """A policy that can be read: the oracle needs fewer keys."""
    items = [f"i{k}" for k in range(len(document["policy"]["items"]))]
    whole = {"strict": False} if document["policy"]["kind"] == "set" else {}
    policy = {"name": "any", "question": "", **whole, **document["policy"], "items": items}
    return {**document, "policy": policy}


def test_the_check_and_the_enumeration_agree():
    """Any integers, levels of two items or more: neither may be stricter."""
    verdicts = []
    for seed in range(300):
        document = random_document(seed)
        kept = not breaks(document)
        assert (checked(full(document)) is None) == kept, seed
        verdicts.append(kept)
    assert 60 <= sum(verdicts) <= 240


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_the_check_is_exact_to_the_last_unit(kind, data):
    """Move a number as far as the check allows: enumeration agrees; one unit more: it must not."""
    what = data.draw(st.sampled_from(["single", "set"]))
    rows = [("a", data.draw(st.sampled_from(["ln(3)", 1])), ["x", "y"]), ("b", "ln(7)", ["z", "w"])]
    notion = data.draw(st.sampled_from(["min", "avg"]))
    policy = Policy.from_levels(rows, notion=notion, kind=what)
    model = "subset" if kind == "fixed" else data.draw(st.sampled_from(["opt0", "oue"]))
    document = of_kind(kind, policy, model, padding=2 if what == "set" else None).to_document()
    speaking = [
        (o, g) for o, p in enumerate(document["parts"]) for g, k in enumerate(p["other"]) if k
    ]
    o, g = data.draw(st.sampled_from(speaking))
    sign = data.draw(st.sampled_from([-1, 1]))
    start = document["parts"][o]["own"][g]

    def moved(step):
        changed = {**document, "parts": [dict(part) for part in document["parts"]]}
        own = list(document["parts"][o]["own"])
        own[g] = start + sign * step
        changed["parts"][o]["own"] = own
        return changed

    low, high = 0, start if sign < 0 else D - start  # the last step that passes, by bisection
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if checked(moved(middle)) is None else (low, middle)
    assert not breaks(moved(low))
    assert checked(moved(high)) is not None
    if 0 < start + sign * high < D:
        assert breaks(moved(high))


def test_levels_of_one_item_promise_their_bit_against_itself():
    """No pair of single answers shows it, but sets do; the check asks for it always."""
    policy = Policy.from_levels([("a", "ln(2)", ["x"]), ("b", "ln(9)", ["z", "w"])])
    document = small_bits(policy, "opt0").to_document()
    part = document["parts"][0]
    part["own"][0], part["other"][0] = D // 2, D // 4  # 2 if named, 2/3 if not: a factor of 3
    part["own"][1], part["other"][1] = 0, 0
    document["parts"] = [part]
    violation = checked(document)
    assert violation is not None and violation.groups == (0, 0)


# ---- planted faults ------------------------------------------------------------------------------


def planted(kind, policy, part, group, **values):
    """The numbers of a good mechanism with one of them changed, and whether it can be built."""
    good = of_kind(kind, policy)
    parts = list(good.parts)
    speaking = next(o for o, p in enumerate(parts) if p.ints.other[group]) if part is None else part
    ints = {
        name: [
            new if g == group else old for g, old in enumerate(getattr(parts[speaking].ints, name))
        ]
        for name, new in values.items()
    }
    parts[speaking] = changed(parts[speaking], **ints)
    return Mechanism(policy, "subset", good.encoding, good.groups, parts, good.shares)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chance", 0), ("chance", -1), ("own", 0), ("own", D), ("own", -1), ("own", D + 1),
        ("other", 0), ("other", "base"), ("other", -1), ("other", "more"),
    ],
)  # fmt: skip
def test_degenerate_chances_are_refused(kind, name, value, toy):
    """No chance at all, or one that rules a level out where its budgets do not allow that."""
    base = {"fixed": 4, "bits": D, "ticket": 5}[kind]
    number = {"base": base, "more": base + 1}.get(value, value)
    reasons = "strictly between 0 and 1|is negative|must be silent|told apart"
    with pytest.raises(GuaranteeError, match=reasons):
        planted(kind, toy, None, 1, **{name: number})


@pytest.mark.parametrize("kind", KINDS)
def test_chances_that_do_not_sum_are_refused(kind, toy):
    good = of_kind(kind, toy).parts[0].ints.chance[1]
    for other in (good + 1, good - 1, D):
        with pytest.raises(GuaranteeError, match="do not sum to 2"):
            planted(kind, toy, 0, 1, chance=other)


def test_a_chance_moved_from_part_to_part_is_refused(toy):
    """Sums are right, but a part is likelier for one level than its budget allows."""
    for kind in KINDS:
        good = of_kind(kind, toy)
        first, second, *rest = good.parts
        both = first.ints.chance[1] + second.ints.chance[1]
        for least in (1, both - 1):
            moved = [
                changed(part, chance=(part.ints.chance[0], chance))
                for part, chance in ((first, least), (second, both - least))
            ]
            with pytest.raises(GuaranteeError, match="told apart"):
                Mechanism(toy, "subset", good.encoding, good.groups, [*moved, *rest], good.shares)


def test_an_empty_sample_is_an_answer_like_any_other():
    policy = Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z"])], kind="set")
    good = d.design(policy, padding=1)
    assert len(good.parts) > 1
    first, second, *rest = good.parts
    for none in (0, first.ints.none + second.ints.none):
        moved = [
            changed(first, none=none),
            changed(second, none=first.ints.none + second.ints.none - none),
        ]
        with pytest.raises(GuaranteeError, match="not positive"):
            Mechanism(policy, "subset", good.encoding, good.groups, [*moved, *rest], good.shares, 1)
    least = [changed(first, none=1), changed(second, none=first.ints.none + second.ints.none - 1)]
    with pytest.raises(GuaranteeError, match='"none"') as caught:
        Mechanism(policy, "subset", good.encoding, good.groups, [*least, *rest], good.shares, 1)
    assert set(caught.value.levels) <= {"a", "b"} and caught.value.part in (0, 1)


SHAPES = [
    ({"chance": (D,)}, "2 numbers of each kind"),
    ({"own": (1, 2, 3)}, "2 numbers of each kind"),
    ({"none": 1}, 'has "none"'),
    ({"other": (1.0, 2)}, "whole numbers"),
    ({"own": (True, 2)}, "whole numbers"),
    ({"chance": ("1", 2)}, "whole numbers"),
]


@pytest.mark.parametrize(("changes", "sentence"), SHAPES, ids=str)
def test_what_are_no_numbers_of_a_part(changes, sentence, toy):
    good = small_bits(toy, "opt0")
    with pytest.raises(DesignError, match=sentence):
        replace(good, parts=[changed(good.parts[0], **changes)])


@pytest.mark.parametrize("groups", [(0,), (1, 0), (0, 2), (0, 1, 1), (0, -1), (0, "1"), (0, True)])
def test_groups_are_numbered_as_they_appear(groups, toy):
    good = small_bits(toy, "opt0")
    with pytest.raises(DesignError, match="numbered as they appear"):
        replace(good, groups=groups)


# ---- the numbers themselves ----------------------------------------------------------------------

HALF = D // 2


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({}, None),
        ({"own": (1, D - 1), "other": (1, 6)}, None),  # as far as it goes
        ({"own": (0, HALF), "other": (0, 3)}, None),  # the first is silent
        ({"none": 1, "chance": (1, 1)}, None),
        ({"chance": (D, 0)}, (1,)),
        ({"chance": (-1, D)}, (0,)),
        ({"chance": (-1, -2)}, (1,)),  # the least is named
        ({"none": 0}, ()),
        ({"none": -1, "chance": (1, D)}, ()),
        ({"own": (HALF, 0)}, (1,)),
        ({"other": (0, 3)}, (0,)),
        ({"own": (D, HALF)}, (0,)),
        ({"own": (HALF, -1)}, (1,)),
        ({"other": (1, 7)}, (1,)),
        ({"other": (2, 3)}, (0,)),
        ({"other": (1, -1)}, (1,)),
    ],
)
def test_chances_of_nothing_or_everything_are_refused(change, groups):
    part = Chances((D, D), (HALF, HALF), (1, 3))._replace(**change)
    found = exact.degenerate(part, (2, 7), zeros=False)
    assert (found and found[1]) == groups


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({}, None),
        ({"chance": (D, 0), "own": (HALF, 0), "other": (1, 0)}, None),
        ({"chance": (0, D)}, (0,)),  # it speaks, and nobody can use it
        ({"chance": (0, 0), "own": (0, 0), "other": (0, 0)}, ()),
        ({"chance": (-1, D)}, (0,)),
        ({"own": (D, HALF)}, None),
        ({"own": (D, HALF), "other": (0, 3)}, None),  # sent as it is
        ({"own": (HALF, HALF), "other": (0, 3)}, (0,)),
        ({"own": (D, HALF), "other": (2, 3)}, (0,)),
        ({"own": (D, HALF), "other": (-1, 3)}, (0,)),
        ({"own": (D + 1, HALF)}, (0,)),
        ({"own": (HALF, 0)}, (1,)),
        ({"other": (2, 3)}, (0,)),
    ],
)
def test_single_answers_may_have_chances_of_0_and_1(change, groups):
    part = Chances((D, D), (HALF, HALF), (1, 3))._replace(**change)
    found = exact.degenerate(part, (2, 7), zeros=True)
    assert (found and found[1]) == groups


def test_states_by_hand():
    """Named, not named, silent and nothing; the larger one first, whichever it is."""
    assert exact.ranges(Chances((3,), (D,), (0,)), (9,)) == [((3 * D, 1), (0, 1))]
    part = Chances((8, 8, 5), (D // 4 * 3, D // 4, 0), (1, 1, 0), 7)
    found = exact.ranges(part, (2, 2, 9))
    values = [tuple(Fraction(*state) / D for state in pair) for pair in found]
    assert values == [(12, 4), (12, 4), (5, 5), (7, 7)]
    assert len(exact.ranges(part._replace(none=None), (2, 2, 9))) == 3


def told_apart(ranges, squares):
    """All pairs whose bound is broken, one by one."""
    return {
        (g, h)
        for g, first in enumerate(ranges)
        for h, second in enumerate(ranges)
        if Fraction(*first.high) ** 2 > squares(g, h) * Fraction(*second.low) ** 2
    }


@pytest.mark.parametrize("notion", ["min", "avg"])
def test_every_pair_is_looked_at(notion):
    """Any states and budgets: a pair is named if one breaks its bound, and it is one of those."""
    rng, verdicts = np.random.default_rng(6), []
    for _ in range(400):
        count = int(rng.integers(1, 5))
        e = [Fraction(int(x), 4) for x in rng.integers(5, 16, count)]
        states = [sorted(map(int, rng.integers(10, 22, 2))) for _ in range(count)]
        over = [tuple(map(int, rng.integers(1, 3, 2))) for _ in range(count)]
        ranges = [
            exact.Range((high * b, b), (low * a, a))
            for (low, high), (a, b) in zip(states, over, strict=True)
        ]

        def square(g, h, e=e):
            return e[g] * e[h] if notion == "avg" else min(e[g], e[h]) ** 2

        broken = told_apart(ranges, square)
        found = (exact._broken_avg if notion == "avg" else exact._broken_min)(ranges, e, None)
        assert found in broken if broken else found is None
        verdicts.append(bool(broken))
    assert 80 <= sum(verdicts) <= 320


def test_a_bound_that_is_met_is_not_broken():
    ranges = [exact.Range((6, 1), (6, 1)), exact.Range((2, 1), (2, 1))]
    e = [Fraction(3), Fraction(4)]
    assert exact._broken_min(ranges, e, None) is None
    assert exact._broken_min(ranges, [Fraction(4), Fraction(3)], None) is None
    assert exact._broken_min(ranges, [Fraction(299, 100), Fraction(4)], None) == (0, 1)
    assert exact._broken_min(ranges, [Fraction(4), Fraction(299, 100)], None) == (0, 1)
    assert exact._broken_avg(ranges, [Fraction(9), Fraction(1)], None) is None
    assert exact._broken_avg(ranges, [Fraction(899, 100), Fraction(1)], None) == (0, 1)
    assert not exact._exceeds((6, 1), (2, 1), Fraction(9))
    assert exact._exceeds((6, 1), (2, 1), Fraction(899, 100))


def test_the_notion_decides_what_two_budgets_allow():
    ranges = [exact.Range((6, 1), (6, 1)), exact.Range((2, 1), (2, 1))]  # 3 times as likely
    rows = [("a", "ln(9)", ["x", "y"]), ("b", "ln(2)", ["z", "w"])]
    for notion, pair in (("min", (0, 1)), ("avg", None)):  # 2, or the root of 18
        bounds = exact._Bounds(Policy.from_levels(rows, notion=notion), (0, 1), 2)
        assert bounds.broken(ranges) == pair


def test_strict_is_the_smallest_of_all_budgets():
    rows = [("a", "ln(4)", ["x", "y"]), ("b", "ln(9)", ["z", "w"])]
    pairs = [("a", "b", "ln(2)"), ("b", "b", None)]
    for more, factors in (
        ({}, [4, 9]),
        ({"pairs": pairs}, [4, 9]),
        ({"strict": True}, [4, 4]),
        ({"strict": True, "pairs": pairs}, [2, 2]),
    ):
        assert exact.level_factors(Policy.from_levels(rows, kind="set", **more)) == factors


def test_the_places_of_extremes():
    ratios = [(3, 2), (1, 2), (6, 4), (5, 3), (2, 4), (10, 6)]
    assert exact._extreme(ratios, largest=True) == 3  # the first of equal ones
    assert exact._extreme(ratios, largest=False) == 1


def test_the_verdict_says_where():
    """The part, and the groups; an empty sample has no group, but a name."""
    policy = Policy.from_levels([("a", "ln(2)", ["x", "y"]), ("b", "ln(8)", ["z", "w"])])
    silent = Chances((HALF, HALF), (0, 0), (0, 0))
    loud = Chances((HALF, HALF), (0, D // 10 * 9), (0, 1))
    assert exact.check(policy, (0, 1), (2, 2), [silent, silent]) is None
    found = exact.check(policy, (0, 1), (2, 2), [silent, loud])
    assert found.part == 1 and found.groups in {(1, 1), (0, 1), (1, 0)}
    assert '"b"' in found.sentence
    wrong = exact.check(policy, (0, 1), (2, 2), [silent, loud._replace(own=(0, D + 1))])
    assert (wrong.part, wrong.groups) == (1, (1,)) and "strictly between" in wrong.sentence
    assert "do not sum" in exact.check(policy, (0, 1), (2, 2), []).sentence
    short = exact.check(policy, (0, 1), (2, 2), [silent])
    assert "do not sum" in short.sentence and (short.part, short.groups) == (None, ())
    sets = replace(policy, kind="set")
    rare = [silent._replace(none=D // 8), silent._replace(none=D // 8 * 7)]
    found = exact.check(sets, (0, 1), (2, 2), rare)
    assert (found.part, found.groups) in {(0, (0,)), (0, (1,))} and '"none"' in found.sentence
    assert exact.check(sets, (0, 1), (2, 2), [silent._replace(none=HALF)] * 2) is None
    few = [silent._replace(none=HALF), silent._replace(none=HALF - 1)]
    assert "do not sum" in exact.check(sets, (0, 1), (2, 2), few).sentence


def test_a_pair_of_its_own_binds_an_empty_sample_by_the_smallest():
    """With explicit pairs every two groups have a bound; nothing has the smallest of a group."""
    rows = [("a", "ln(4)", ["x", "y"]), ("b", "ln(4)", ["z", "w"])]
    pairs = [("a", "b", "ln(2)"), ("b", "b", None)]
    bounds = exact._Bounds(Policy.from_levels(rows, kind="set", pairs=pairs), (0, 1), 2)
    assert bounds.table == [[16, 4, 4], [4, None, 4], [4, 4, None]]
    both = exact._Bounds(Policy.from_levels(rows, kind="set", pairs=pairs), (0, 0), 1)
    assert both.table == [[4, 4], [4, None]]
    flat = exact.Range((1, 1), (1, 1))
    for high, pair in ((2, None), (3, (1, 0))):
        assert bounds.broken([flat, exact.Range((high, 1), (1, 1)), flat]) == pair
    assert bounds.broken([flat, flat, exact.Range((3, 1), (1, 1))]) == (2, 0)
    assert (bounds.name(0), bounds.name(1), bounds.name(2)) == ("a", "b", "none")


# ---- clients that do something else --------------------------------------------------------------


def with_client(monkeypatch, **faults):
    """The oracle's client with a step replaced."""
    for name, fault in faults.items():
        monkeypatch.setattr(exhaustive, name, fault)


def two_levels_where_one_is_silent():
    rows = [("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])]
    document = small_bits(Policy.from_levels(rows)).to_document()
    assert any(0 in part["other"] for part in document["parts"])
    return document


def test_a_silent_level_that_draws_its_own_bit_breaks_the_promise(monkeypatch):
    """DESIGN 3.7: in a silent level nothing may depend on the answer, not even a little."""
    document = two_levels_where_one_is_silent()
    assert not breaks(document)

    def own_item(document, part, item):
        g = exhaustive.groups_of(document)[item]
        own = Fraction(part["own"][g] or D // 1000, D)  # one in a thousand
        return [(True, own), (False, 1 - own)]

    with_client(monkeypatch, own_item=own_item)
    assert worst_excess(document) == float("inf")


def test_a_silent_ticket_with_a_mark_of_its_own_breaks_the_promise(monkeypatch):
    """A/D that is compared with T/q is not the same chance."""
    rows = [("a", 1, ["x", "y"]), ("b", 2, ["z", "w"])]
    document = small_tickets(Policy.from_levels(rows)).to_document()
    o, g = next(
        (o, p["other"].index(0)) for o, p in enumerate(document["parts"]) if 0 in p["other"]
    )
    assert not breaks(document)
    document["parts"][o]["own"][g], document["parts"][o]["other"][g] = D // 2, 2
    assert breaks(document)


def test_a_part_drawn_by_the_wrong_level_breaks_the_promise(monkeypatch):
    """The part's chances of the next level: some report is told apart by more than allowed."""
    rows = [("a", 0.5, ["x", "y"]), ("b", 1, ["z", "w"])]
    document = d.design(Policy.from_levels(rows)).to_document()
    assert not breaks(document)
    right = exhaustive.distribution

    def wrong(document, item):
        parts = [{**p, "chance": p["chance"][::-1]} for p in document["parts"]]
        return right({**document, "parts": parts}, item)

    with_client(monkeypatch, distribution=wrong)
    assert worst_excess(document) > 0.01


# ---- sets ----------------------------------------------------------------------------------------


def item_promise_broken(document, policy):
    """Pairs (set, item) for which having the item changes some report by more than e^{eps_i}."""
    of = exhaustive.sets(document)
    tables = {x: of(x) for x in exhaustive.subsets(policy.m)}
    found = []
    for x, table in tables.items():
        for i in set(range(policy.m)) - x:
            e = exhaustive.factor(exhaustive.budget(policy.levels[policy.level_of[i]].budget.text))
            more = tables[x | {i}]
            if any(more[y] > e[1] * table[y] or table[y] > e[1] * more[y] for y in table):
                found.append((x, i))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padding", [1, 2, 3])
@settings(max_examples=6)
@given(policy=policies(max_levels=2, max_items=3, kind="set", notions=("min",)))
def test_sets_keep_the_item_promise(kind, padding, policy):
    """Having or not having item i: at most e^{eps_i}, for every set and every report."""
    mechanism = of_kind(kind, policy, padding=padding)
    document = mechanism.to_document()
    assert item_promise_broken(document, policy) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_item_promise_fails_for_a_mechanism_of_a_looser_policy(kind):
    """The twin: made for 2.5, promised at 2; padding 1 uses the budget up."""
    tight, loose = (
        Policy.from_levels([("a", eps, ["x", "y"]), ("b", eps, ["z"])], kind="set")
        for eps in (2, 2.5)
    )
    document = of_kind(kind, loose, padding=1).to_document()
    assert item_promise_broken(document, loose) == []
    assert item_promise_broken({**document, "policy": tight.to_canonical()}, tight) != []


def test_strict_is_exact_where_two_budgets_are_one_float(monkeypatch):
    """ln(4) and the decimal that is nearest to it, which is smaller by less than a float can say:
    pair by pair too.
    """
    rows = [("a", "ln(4)", ["x"]), ("b", "1.3862943611198906", ["y"])]
    for order in (rows, rows[::-1]):
        policy = Policy.from_levels(order, kind="set", strict=True)
        e = exact.level_factors(policy)
        assert e[0] == e[1] < 4
        bounds = exact._Bounds(policy, (0, 1), 2)
        monkeypatch.setattr(exact, "_CLOSED", {})
        by_pairs = exact._Bounds(policy, (0, 1), 2)
        monkeypatch.undo()
        assert bounds.closed is not None and by_pairs.closed is None
        assert by_pairs._square(0, 1) == e[0] ** 2 < 16
