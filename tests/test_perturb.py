"""The user's side: compact reports and padding by exact enumeration, every form of answer, and one sentence for a bad one."""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod

import numpy as np
import pyarrow as pa
import pytest
from checks import must_fail
from exhaustive import sets, subsets
from hypothesis import given
from hypothesis import strategies as st
from strategies import policies

import discreet as d
from discreet import perturb
from discreet.errors import DataError
from discreet.exact import D, P
from discreet.kernels import compact_triples

# ---- compact reports, exactly, with a small prime (DESIGN "compact reports") ------------------------------


def compact(prime, a, T, i, quadratic=True):
    """Pr[(s, t, r) | i]: the bit is Bernoulli(a_i), the value at i uniform on its side, t and r uniform, s what remains."""
    found = {}
    c = i + 1
    sides = [(a[i], range(T[i])), (1 - a[i], range(T[i], prime))]
    rs = range(prime) if quadratic else [0]
    for chance, side in sides:
        for v, t, r in product(side, range(prime), rs):
            found[(v - t * c - r * c * c) % prime, t, r] = chance / (len(side) * prime * len(rs))
    return found


def bits(triple, prime, T):
    s, t, r = triple
    return tuple(int((s + t * c + r * c * c) % prime < T[c - 1]) for c in range(1, len(T) + 1))


def joint(table, prime, T, places):
    """The exact joint distribution of the bits at some places."""
    found = {}
    for triple, chance in table.items():
        y = bits(triple, prime, T)
        key = tuple(y[k] for k in places)
        found[key] = found.get(key, 0) + chance
    return found


def independent(table, p, prime, T, places):
    got = joint(table, prime, T, places)
    return all(
        got.get(y, 0) == prod(p[k] if bit else 1 - p[k] for k, bit in zip(places, y, strict=True))
        for y in product((0, 1), repeat=len(places))
    )


SMALL = [
    (5, [Fraction(1, 2), Fraction(2, 3), Fraction(4, 5), Fraction(3, 5)], [1, 2, 3, 2]),
    (7, [Fraction(k, 9) for k in (4, 5, 6, 7, 8, 8)], [1, 2, 3, 4, 5, 6]),
]


@pytest.mark.parametrize(("prime", "a", "T"), SMALL)
def test_a_triple_says_only_the_bit_of_the_input(prime, a, T):
    """Every triple is possible, and Pr[triple | i] depends on nothing but the bit it means at i."""
    for i in range(len(T)):
        table = compact(prime, a, T, i)
        assert len(table) == prime**3
        assert sum(table.values()) == 1
        by_bit = {
            y: {chance for triple, chance in table.items() if bits(triple, prime, T)[i] == y}
            for y in (0, 1)
        }
        assert by_bit == {
            1: {a[i] / (T[i] * prime**2)},
            0: {(1 - a[i]) / ((prime - T[i]) * prime**2)},
        }


@pytest.mark.parametrize(("prime", "a", "T"), SMALL)
def test_bits_of_a_triple_are_exact_and_pairwise_independent(prime, a, T):
    for i in range(len(T)):
        table = compact(prime, a, T, i)
        p = [a[k] if k == i else Fraction(T[k], prime) for k in range(len(T))]
        for k in range(len(T)):
            assert independent(table, p, prime, T, (k,))
        for pair in combinations(range(len(T)), 2):
            assert independent(table, p, prime, T, pair)
        # the held bit and any two others too: a random quadratic is 3-wise independent
        for pair in combinations([k for k in range(len(T)) if k != i], 2):
            assert independent(table, p, prime, T, (i, *pair))


@pytest.mark.parametrize(("prime", "a", "T"), SMALL)
def test_two_inputs_are_told_apart_by_alpha_over_beta_and_no_more(prime, a, T):
    tables = [compact(prime, a, T, i) for i in range(len(T))]
    for i, j in permutations(range(len(T)), 2):
        alpha, beta = a[i] / Fraction(T[i], prime), (1 - a[j]) / (1 - Fraction(T[j], prime))
        ratio = max(tables[i][y] / tables[j][y] for y in tables[i])
        assert ratio == max(
            alpha / beta,
            alpha / (a[j] * prime / T[j]),
            ((1 - a[i]) * prime / (prime - T[i])) / beta,
        )
        assert ratio <= alpha / beta


def test_a_linear_polynomial_or_three_other_bits_are_not_independent():
    """The twins, and why a quadratic is used: pairs need it, and it gives no more than pairs beside the held bit."""
    prime, a, T = SMALL[1]
    for i in range(len(T)):
        p = [a[k] if k == i else Fraction(T[k], prime) for k in range(len(T))]
        others = [k for k in range(len(T)) if k != i]
        linear, quadratic = compact(prime, a, T, i, quadratic=False), compact(prime, a, T, i)
        assert all(independent(linear, p, prime, T, (k,)) for k in range(len(T)))
        assert not all(independent(linear, p, prime, T, pair) for pair in combinations(others, 2))
        assert not all(
            independent(quadratic, p, prime, T, three) for three in combinations(others, 3)
        )


@pytest.mark.parametrize(("prime", "a", "T"), SMALL)
def test_the_compiled_triples_are_the_model(prime, a, T):
    """Fed with all words, the kernel makes each triple of a side once: with the bit's chance, the model's distribution."""
    for i in range(len(T)):
        found = {}
        for chance, low, span in [(a[i], 0, T[i]), (1 - a[i], T[i], prime - T[i])]:
            words = [
                x
                for v, t, r in product(range(span), range(prime), range(prime))
                for x in (v, 2 * t, 2 * r)
            ]
            n = len(words) // 3
            out = np.empty((n, 3), np.uint32)
            where = np.full(n, i), np.full(n, low, np.uint64), np.full(n, span, np.uint64)
            assert compact_triples(out, *where, prime, np.array(words, np.uint32), 0) == n
            found.update({tuple(row): chance / n for row in out.tolist()})
        assert found == compact(prime, a, T, i)


# ---- padding and sampling, exactly ------------------------------------------------------------------------


def as_in_the_paper(mechanism, x):
    """Algorithms 1 and 2 with their dummy items and bits kept, then the m real bits of the report."""
    (part,) = mechanism.parts
    m, ell = mechanism.m, mechanism.padding
    a = [Fraction(part.A[k], D) for k in mechanism.policy.level_of] + [Fraction(3, 5)] * ell
    b = [Fraction(part.B[k], part.base) for k in mechanism.policy.level_of] + [Fraction(1, 5)] * ell
    padded = (
        [tuple(x) + dummies for dummies in combinations(range(m, m + ell), ell - len(x))]
        if len(x) < ell
        else list(combinations(sorted(x), ell))
    )
    found = {}
    for x_p in padded:
        for sampled in x_p:
            for y in product((0, 1), repeat=m + ell):
                chance = Fraction(1, len(padded) * ell)
                for k, bit in enumerate(y):
                    p = a[k] if k == sampled else b[k]
                    chance *= p if bit else 1 - p
                found[0, y[:m]] = found.get((0, y[:m]), 0) + chance
    return found


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@pytest.mark.parametrize("padding", [1, 2])
def test_dropping_the_dummy_bits_changes_nothing_for_the_real_ones(encoding, padding):
    policy = d.Policy.from_levels([("a", "ln(4)", ["x"]), ("b", "ln(6)", ["y", "z"])], input="set")
    mechanism = d.design(policy, "opt0", padding=padding, encoding=encoding)
    ours = sets(mechanism)
    for x in subsets(3):
        assert as_in_the_paper(mechanism, x) == ours(x)
    other = sets(d.design(policy, "opt0", padding=padding + 1, encoding=encoding))  # the twin
    assert any(as_in_the_paper(mechanism, x) != other(x) for x in subsets(3))


class Fed:
    """A stream that gives chosen integers: to sample, and to draw."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def uint32(self, count):
        assert count == len(self.values)
        return self.values.astype(np.uint32)

    def below(self, bounds):
        self.bounds = bounds
        return self.values.astype(np.uint64)


@pytest.mark.parametrize("ell", [1, 2, 3, 7])
def test_sampling_takes_each_place_of_the_padded_set_once(ell):
    """Of max(|x|, ell) places each item has one, the dummies have the rest."""
    items, offsets = np.array([5, 6, 9, 1, 2, 3, 4]), np.array([0, 0, 1, 3, 7])
    for person, (first, last) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        places = max(last - first, ell)
        seen = []
        for place in range(places):
            draw = np.zeros(4, int)
            draw[person] = place
            stream = Fed(draw)
            held = perturb.sample(stream, items, offsets, ell)
            assert stream.bounds.tolist() == [max(k, ell) for k in (0, 1, 2, 4)]
            seen.append(int(held[person]))
        assert sorted(seen) == sorted(
            [*items[first:last].tolist(), *[-1] * (places - (last - first))]
        )


def test_sampling_when_nobody_has_an_item():
    assert perturb.sample(Fed([0, 1]), np.array([], np.int64), np.array([0, 0, 0]), 2).tolist() == [
        -1,
        -1,
    ]


# ---- direct: every 32-bit draw --------------------------------------------------------------------------


def intervals(mechanism, x):
    """Where every draw of someone who holds x must go: (first, end, item), by the matrix."""
    matrix, groups = (
        mechanism.matrix,
        [mechanism.matrix.groups[k] for k in mechanism.policy.level_of],
    )
    c = groups[x]
    found, at = [(0, matrix.diagonal[c], x)], matrix.diagonal[c]
    for k in range(len(matrix.diagonal)):
        for item in (y for y in range(mechanism.m) if groups[y] == k and y != x):
            found.append((at, at + matrix.off[c][k], item))
            at += matrix.off[c][k]
    assert at == D
    return found


@given(policy=policies(max_levels=3, max_items=5), model=st.sampled_from(["direct", "grr"]))
def test_draws_per_item_equal_the_integers_of_the_matrix(policy, model):
    edges_are_exact(d.design(policy, model))


@pytest.mark.parametrize(
    "budgets", [[1], [1, 2], [1, 2, 1, 3, 2, 1, 1], [2, 1, 1, 1, 1, 1, 2, 1]], ids=str
)
@pytest.mark.parametrize("model", ["direct", "grr"])
def test_draws_per_item_in_any_order_of_items(budgets, model):
    """Groups whose items are not neighbours, groups of one item, a single item."""
    edges_are_exact(
        d.design(d.Policy.from_budgets({f"i{k}": e for k, e in enumerate(budgets)}), model)
    )


def edges_are_exact(mechanism, make=None):
    make = make or perturb._Direct(mechanism, mechanism.matrix)
    for x in range(mechanism.m):
        parts = intervals(mechanism, x)
        draws = [value for first, end, _ in parts for value in (first, (first + end) // 2, end - 1)]
        out = np.empty((len(draws), 4), np.uint8)
        make(Fed(draws), np.full(len(draws), x), out)
        assert out.view("<u4")[:, 0].tolist() == [item for _, _, item in parts for _ in range(3)]


def test_the_edges_see_a_matrix_off_by_one(toy):
    """The twin: the draws of one matrix, sent by another that gives one unit more to the item itself."""
    mechanism = d.design(toy, "direct")
    make = perturb._Direct(mechanism, mechanism.matrix)
    make.edges[:, :-1] += 1
    must_fail(edges_are_exact, mechanism, make)


# ---- unary: the part and the held bit -------------------------------------------------------------------


class Script:
    """A stream that gives chosen 32-bit draws one call after another; what fills buffers is random."""

    def __init__(self, *draws):
        self.draws = [np.asarray(x, dtype=np.uint32) for x in draws]

    def uint32(self, count):
        head = self.draws.pop(0)
        assert len(head) == count
        return head


@pytest.mark.parametrize("encoding", ["bits", "compact"])
def test_part_and_held_bit_change_exactly_at_their_integers(encoding):
    policy = d.Policy.from_budgets({"x": 1, "y": 3, "z": 1.2, "w": 3})
    mechanism = d.design(policy, "mixed", encoding=encoding)
    assert len(mechanism.parts) > 1
    maker = perturb._maker(mechanism)
    edge = 0
    for k, part in enumerate(mechanism.parts):
        last = edge + part.numerator - 1
        for item in range(4):
            a = part.A[policy.level_of[item]]
            out = np.zeros((4, mechanism.report_size), np.uint8)
            got, bit = maker.draw(
                Script([edge, last] * 2, [a - 1, a - 1, a, a]), np.full(4, item), out
            )
            assert got.tolist() == out[:, 0].tolist() == [k] * 4
            assert bit.tolist() == [True, True, False, False]
        edge = last + 1
    assert edge == D


def test_compact_values_lie_on_the_side_of_the_bit():
    policy = d.Policy.from_budgets({"x": 1, "y": 2, "z": 1, "w": 2})
    mechanism = d.design(policy, "opt0", encoding="compact")
    thresholds = np.array(mechanism.parts[0].B)[mechanism.level_of]
    for item in range(4):
        a, n = mechanism.parts[0].A[policy.level_of[item]], 400
        draws = np.where(np.arange(n) % 2, a, a - 1)

        class Stream(perturb.Keystream):
            def uint32(self, count, draws=draws):
                return draws.astype(np.uint32)

        out = np.empty((n, 12), np.uint8)
        perturb._Compact(mechanism)(Stream(), np.full(n, item), out)
        s, t, r = out.view("<u4").astype(object).T
        values = (s + t * (item + 1) + r * (item + 1) ** 2) % P
        assert [v < thresholds[item] for v in values] == [k % 2 == 0 for k in range(n)]


# ---- answers --------------------------------------------------------------------------------------------

LABELS = ["HIV", "anemia", "headache", "stomachache", "toothache"]


def survey(kind, epsilon=60, encoding="bits"):
    """A budget so large that a bit is wrong once in 2^32: what is read back is the answer."""
    policy = d.Policy.from_levels([("only", epsilon, LABELS)], input=kind)
    return d.design(policy, "rappor", padding=2 if kind == "set" else None, encoding=encoding)


def read_back(mechanism, reports):
    tally = mechanism.tally(reports)
    assert tally.n == len(reports) and not tally.refused
    return tally.counts[0].tolist()


SINGLE = {
    "labels": LABELS[:3] + ["HIV"],
    "tuple": (*LABELS[:3], "HIV"),
    "array of labels": np.array([*LABELS[:3], "HIV"]),
    "array of objects": np.array([*LABELS[:3], "HIV"], dtype=object),
    "indices": [0, 1, 2, 0],
    "range and int": [*range(3), 0],
    "numpy integers": [np.int64(0), np.uint8(1), np.int32(2), 0],
    "labels and indices": ["HIV", 1, "headache", np.int64(0)],
    "int64": np.array([0, 1, 2, 0]),
    "uint8": np.array([0, 1, 2, 0], np.uint8),
    "uint64": np.array([0, 1, 2, 0], np.uint64),
    "Arrow labels": pa.array([*LABELS[:3], "HIV"]),
    "Arrow large labels": pa.array([*LABELS[:3], "HIV"], pa.large_string()),
    "Arrow dictionary": pa.array([*LABELS[:3], "HIV"]).dictionary_encode(),
    "Arrow integers": pa.array([0, 1, 2, 0], pa.int32()),
    "Arrow chunks": pa.chunked_array([[*LABELS[:2]], ["headache", "HIV"]]),
    "Arrow slice": pa.array(["toothache", *LABELS[:3], "HIV", "toothache"]).slice(1, 4),
}


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@pytest.mark.parametrize("form", SINGLE)
def test_every_form_of_single_answers(form, encoding):
    mechanism = survey("single", encoding=encoding)
    assert perturb.indices(mechanism, SINGLE[form]).tolist() == [0, 1, 2, 0]
    reports = mechanism.perturb_many(SINGLE[form])
    assert reports.shape == (4, mechanism.report_size) and reports.dtype == np.uint8
    if encoding == "bits":
        assert read_back(mechanism, reports) == [2, 1, 1, 0, 0]


@pytest.mark.parametrize("answer", ["toothache", 4, np.int64(4), np.uint8(4), np.str_("toothache")])
def test_one_answer(answer):
    mechanism = survey("single")
    report = mechanism.perturb(answer)
    assert type(report) is bytes
    assert read_back(mechanism, [report]) == [0, 0, 0, 0, 1]


SETS = {
    "sets of labels": [{"HIV", "anemia"}, set(), {"headache"}, frozenset({"HIV"})],
    "lists": [["HIV", "anemia"], [], ["headache"], ["HIV"]],
    "duplicates": [["HIV", "anemia", "HIV"], (), ["headache", 2, "headache"], ("HIV",)],
    "indices": [{0, 1}, set(), {2}, {0}],
    "numpy integers": [{np.int64(0), 1}, set(), [np.uint8(2)], np.array([0])],
    "tuple of sets": ({0, 1}, set(), {2}, {0}),
    "generator": None,
    "ragged": (np.array([0, 1, 2, 0]), np.array([0, 2, 2, 3, 4])),
    "ragged with duplicates": (np.array([1, 0, 1, 2, 2, 0]), np.array([0, 3, 3, 5, 6])),
    "ragged uint8": (np.array([0, 1, 2, 0], np.uint8), np.array([0, 2, 2, 3, 4], np.int32)),
    "Arrow lists": pa.array([["HIV", "anemia"], [], ["headache"], ["HIV"]]),
    "Arrow large lists": pa.array(
        [["HIV", "anemia"], [], ["headache"], ["HIV"]], pa.large_list(pa.large_string())
    ),
    "Arrow lists of integers": pa.array([[1, 0, 1], [], [2], [0]]),
    "Arrow chunks": pa.chunked_array([[["HIV", "anemia"], []], [["headache"], ["HIV"]]]),
    "Arrow slice": pa.array(
        [["toothache"], ["HIV", "anemia"], [], ["headache"], ["HIV"], ["toothache"]]
    ).slice(1, 4),
}


@pytest.mark.parametrize("form", SETS)
def test_every_form_of_sets(form):
    mechanism = survey("set")
    answers = ({"HIV", "anemia"}, set(), {"headache"}, {"HIV"})
    answers = (x for x in answers) if form == "generator" else SETS[form]
    items, offsets = perturb.ragged(mechanism, answers)
    assert offsets.tolist() == [0, 2, 2, 3, 4]
    assert [
        sorted(items[a:b].tolist()) for a, b in zip(offsets[:-1], offsets[1:], strict=True)
    ] == [[0, 1], [], [2], [0]]
    if form != "generator":
        assert mechanism.perturb_many(answers).shape == (4, 1)


def test_sets_where_nobody_has_an_item():
    mechanism = survey("set")
    for answers in (
        [set()] * 3,
        [[]] * 3,
        pa.array([[], [], []]),
        (np.array([], np.int64), np.zeros(4, np.int64)),
    ):
        assert read_back(mechanism, mechanism.perturb_many(answers)) == [0] * 5
    assert read_back(mechanism, [mechanism.perturb(set())]) == [0] * 5


@pytest.mark.parametrize("kind", ["single", "set"])
@pytest.mark.parametrize("encoding", ["bits", "compact"])
def test_nobody(kind, encoding):
    mechanism = survey(kind, encoding=encoding)
    none = [[], (), pa.array([], pa.string() if kind == "single" else pa.list_(pa.string()))]
    for answers in none + (
        [np.array([], np.int64)] if kind == "single" else [(np.array([], np.int64), np.array([0]))]
    ):
        assert mechanism.perturb_many(answers).shape == (0, mechanism.report_size)


def test_a_set_larger_than_the_padding_is_sampled_among_its_own_items():
    """Of 64 people with 3 items and padding 2, each is sampled at one of the three, never at a dummy or another."""
    mechanism = survey("set")
    counts = read_back(mechanism, mechanism.perturb_many([{0, 2, 4}] * 64))
    assert sum(counts) == 64 and counts[1] == counts[3] == 0
    counts = read_back(
        mechanism, mechanism.perturb_many([["HIV", "HIV", "HIV"]] * 64)
    )  # repeated items are one
    assert counts[1:] == [0] * 4 and 0 < counts[0] < 64  # 2^-64 each


def test_one_set():
    mechanism = survey("set")
    for answer in (
        {"HIV", 1},
        ["HIV", "anemia"],
        ("HIV", 1),
        frozenset({0, 1}),
        np.array([0, 1]),
        ["HIV", 0, 1],
    ):
        counts = read_back(mechanism, [mechanism.perturb(answer)])
        assert sum(counts) == 1 and counts[2:] == [0, 0, 0]


# ---- bad answers ------------------------------------------------------------------------------------------

NAN = float("nan")
BAD_ITEMS = {
    "unknown label": ("anmia", '"anmia" is not an item; did you mean "anemia"'),
    "far label": ("zzzzzz", '"zzzzzz" is not an item'),
    "empty label": ("", '"" is not an item'),
    "none": (None, "label"),
    "nan": (NAN, "label"),
    "numpy nan": (np.float64("nan"), "label"),
    "float": (1.0, "label"),
    "true": (True, "label"),
    "numpy true": (np.True_, "label"),
    "bytes": (b"HIV", "label|set|item"),
    "out of range": (5, "item index 5 is out of range; it must be from 0 to 4"),
    "numpy out of range": (np.int64(5), "item index 5 is out of range"),
    "negative": (-1, "item index -1 is out of range"),
    "huge": (10**30, "out of range"),
}


def refused(call, match):
    with pytest.raises(DataError, match=match) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and len(text) < 200, text


@pytest.mark.parametrize("bad", BAD_ITEMS)
def test_a_bad_single_answer_is_one_sentence(bad):
    item, match = BAD_ITEMS[bad]
    mechanism = survey("single")
    refused(lambda: mechanism.perturb(item), match)
    refused(lambda: mechanism.perturb_many(["HIV", item]), match)
    refused(lambda: mechanism.perturb_many([item, "HIV"]), match)


@pytest.mark.parametrize("bad", BAD_ITEMS)
def test_a_bad_item_of_a_set_is_one_sentence(bad):
    item, match = BAD_ITEMS[bad]
    mechanism = survey("set")
    refused(lambda: mechanism.perturb({item, "HIV"}), match)
    refused(lambda: mechanism.perturb_many([set(), {"HIV", item}]), match)


@pytest.mark.parametrize("answer", [{"HIV"}, ["HIV"], ("HIV", "anemia"), frozenset({0}), set()])
def test_a_set_where_one_item_is_expected(answer):
    mechanism = survey("single")
    refused(lambda: mechanism.perturb(answer), "single item")
    refused(lambda: mechanism.perturb_many([answer, answer]), "single item")


@pytest.mark.parametrize("answer", ["HIV", 0, np.int64(0), None, NAN, 1.5, True])
def test_one_item_where_a_set_is_expected(answer):
    mechanism = survey("set")
    refused(lambda: mechanism.perturb(answer), "set of items")
    refused(lambda: mechanism.perturb_many([{"HIV"}, answer]), "set of items")


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        ("HIV", "sequence of items"),
        (3, "sequence of items"),
        (None, "sequence of items"),
        ({"HIV"}, "sequence of items"),
        (np.array([0.0, 1.0]), "label"),
        (np.array([True, False]), "label"),
        (np.array([0, 5]), "item index 5 is out of range"),
        (np.array([0, -1]), "item index -1 is out of range"),
        (np.array([[0, 1], [2, 3]]), "label|single|one per person"),
        (np.array([2**64 - 1], np.uint64), "out of range"),
        (pa.array(["HIV", None]), "label"),
        (pa.array([0, None]), "label"),
        (pa.array([0.0, 1.0]), "label"),
        (pa.array([True]), "label"),
        (pa.array([7]), "item index 7 is out of range"),
        (pa.array(["HIVV"]), '"HIVV" is not an item; did you mean "HIV"'),
        (pa.array([["HIV"]]), "label|single"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_sequences_of_single_answers(answers, match):
    refused(lambda: survey("single").perturb_many(answers), match)


ONE = np.array([0, 1])


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        ("HIV", "sequence of sets"),
        (3, "sequence of sets"),
        (None, "sequence of sets"),
        (["HIV", "anemia"], "set of items"),
        ({"HIV", "anemia"}, "set of items"),
        (ONE, "sequence of sets"),
        ((ONE, np.array([0, 1])), "offsets"),
        ((ONE, np.array([1, 2])), "offsets"),
        ((ONE, np.array([0, 2, 1, 2])), "offsets"),
        ((ONE, np.array([], np.int64)), "offsets"),
        ((ONE, np.array([0.0, 2.0])), "whole numbers"),
        ((np.array([0.0, 1.0]), np.array([0, 2])), "whole numbers"),
        ((np.array([0, 5]), np.array([0, 2])), "item index 5 is out of range"),
        ((np.array([-1, 0]), np.array([0, 2])), "item index -1 is out of range"),
        (pa.array(["HIV"]), "Arrow list"),
        (pa.array([["HIV"], None]), "null"),
        (pa.array([["HIV", None]]), "missing"),
        (pa.array([[1.0]]), "decimal"),
        (pa.array([[5]]), "item index 5 is out of range"),
        (pa.array([[-1]]), "item index -1 is out of range"),
        (pa.array([["HIV", "anmia"]]), '"anmia" is not an item; did you mean "anemia"'),
        (pa.array([[True]]), "true and false"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_sequences_of_sets(answers, match):
    refused(lambda: survey("set").perturb_many(answers), match)


@pytest.mark.parametrize(
    "answers",
    [np.array(1), pa.table({"item": ["HIV"]}), pa.scalar("HIV")],
    ids=["0-d array", "table", "scalar"],
)
def test_what_is_no_sequence_is_one_sentence(answers):
    refused(lambda: survey("single").perturb_many(answers), "sequence of items")


def test_unsigned_offsets_that_fall_are_one_sentence():
    refused(lambda: survey("set").perturb_many((ONE, np.array([0, 2, 1, 2], np.uint64))), "offsets")


def test_items_of_two_dimensions_are_one_sentence():
    refused(lambda: survey("set").perturb_many((np.zeros((2, 2), int), np.array([0, 2]))), "ragged")


def test_nothing_is_sent_for_anyone_when_one_answer_is_bad(toy):
    mechanism = d.design(toy, "direct")
    refused(
        lambda: mechanism.perturb_many(np.array([0] * 100_000 + [5])),
        "item index 5 is out of range; it must be from 0 to 4",
    )
    refused(lambda: mechanism.perturb("tothache"), 'did you mean "toothache"')


# ---- the bytes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 7, 8, 9, 63, 64, 65, 70, 512, 515])
@pytest.mark.parametrize("kind", ["single", "set"])
def test_bits_and_places_of_a_report(m, kind):
    """With a huge budget the report is the answer: item k at byte k // 8, bit k % 8, the unused high bits 0."""
    policy = d.Policy.from_levels([("only", 60, [f"i{k}" for k in range(m)])], input=kind)
    mechanism = d.design(policy, "rappor", padding=1 if kind == "set" else None)
    for k in {0, m // 2, m - 1}:
        expected = bytearray(-(-m // 8))
        expected[k // 8] |= 1 << (k % 8)
        assert mechanism.perturb({k} if kind == "set" else k) == bytes(expected)
