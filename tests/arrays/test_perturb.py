"""The user's side: the client's distribution by feeding it every draw, every form of answer, and
one sentence
for a bad one. Nothing here is left to chance but where a docstring says so.
"""

import copy
from collections import defaultdict
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from checks import must_fail
from exhaustive import answers as every_answer
from exhaustive import distribution, members, sets, subsets
from parts import make_part
from small import CASES, KINDS, D, small

import discreet as d
from discreet.arrays import perturb
from discreet.arrays.answers import places, ragged
from discreet.arrays.base import sample
from discreet.arrays.randomness import BitSource
from discreet.encodings import Ticket
from discreet.errors import DataError

# ---- the client, fed with every draw -------------------------------------------------------------


class Script(BitSource):
    """A source that gives chosen draws: 32-bit integers and bounded ones call by call, then chosen
    words.
    """

    def __init__(self, integers, below=(), words=()):
        self.integers = [np.asarray(x, np.uint32) for x in integers]
        self.bounded = [np.asarray(x, np.uint64) for x in below]
        self.words, self.filled = np.asarray(words, np.uint32), False

    def uint32(self, count):
        head = self.integers.pop(0)
        assert len(head) == count
        return head

    def below(self, bounds):
        head = self.bounded.pop(0)
        assert len(head) == len(bounds) and (head < bounds).all()
        self.bounds = bounds
        return head

    def fill(self, buffer):
        assert len(self.words) or not self.filled, "the client asks for more than it needs"
        self.filled = True
        flat = buffer.view(np.uint32).reshape(-1)
        flat[:] = 0  # 0 is rejected where it would be one word too many
        head, self.words = self.words[: len(flat)], self.words[len(flat) :]
        flat[: len(head)] = head


def drawn_integers(mechanism, held, o, own, n):
    """What the client draws first: the part (where there are several) and the own item."""
    part = mechanism.parts[o]
    g = mechanism.arrays.group_of[held] if held is not None else None
    chance = [p.ints.none if g is None else p.ints.chance[g] for p in mechanism.parts]
    edge = sum(chance[:o])
    limit = 0 if g is None else part.ints.own[g]
    bit = max(limit - 1, 0) if own else limit
    several = len(mechanism.parts) > 1
    return [np.full(n, edge), np.full(n, bit)] if several else [np.full(n, bit)]


def fixed_words(mechanism, held, o, own):
    """Words for every subset, each equally often: all tuples of Floyd's draws, group
    after group.
    """
    draws, bounds = [()], []
    for members_, k in zip(members(mechanism.to_document()), mechanism.parts[o].ints.other):
        n = len(members_)
        if not k:
            continue
        if held in members_ and own is not None:
            n, k = n - 1, k - own
        few = min(k, n - k)
        bounds += range(n - few + 1, n + 1)
        draws = [
            (*x, *y) for x in draws for y in product(*(range(j + 1) for j in range(n - few, n)))
        ]
    return draws, [word(r, b) for row in draws for r, b in zip(row, bounds)]


def word(r, bound):
    """A 32-bit word that means r: the upper half of word * bound; + 1 keeps clear of the rejected
    ones.
    """
    return -(-r * 2**32 // bound) + 1


def sent(mechanism, held, o, own):
    """All reports of one part and own bit, each draw once: equally likely."""
    coder, who = mechanism.arrays.coder, -1 if held is None else held
    if isinstance(mechanism.encoding, Ticket):
        q, t = coder.q, coder.t
        limit = 0 if own is None else int(coder.other[o, mechanism.arrays.group_of[held]])
        span = q if own is None else limit if own else q - limit
        every = list(product(range(span), range(q**t)))
        words = [word(x, b) for row in every for x, b in zip(row, (span, q**t))]
        n = len(every)
    else:
        draws, words = fixed_words(mechanism, held, o, own)
        n = len(draws)
    script = Script(drawn_integers(mechanism, held, o, own, n), (), words)
    out = np.full((n, mechanism.report_size), 255, np.uint8)
    coder.write(script, np.full(n, who), out)
    assert not script.integers and not len(script.words)
    return [bytes(row) for row in out]


def client(mechanism, held):
    """The exact distribution of the real client's reports."""
    found, document = defaultdict(Fraction), mechanism.to_document()
    for o, part in enumerate(document["parts"]):
        g = None if held is None else mechanism.arrays.group_of[held]
        chance = Fraction(part["none"] if g is None else part["chance"][g], D)
        speaks = g is not None and part["other"][g]
        own = Fraction(part["own"][g], D) if speaks else None
        for bit, p in [(True, own), (False, 1 - own)] if speaks else [(None, Fraction(1))]:
            reports = sent(mechanism, held, o, bit)
            for report in reports:
                found[report] += chance * p / len(reports)
    return dict(found)


@pytest.mark.parametrize("case", [x for x in CASES if x[0] != "bits"], ids=str)
def test_the_client_has_the_enumerated_distribution(case):
    """Subsets and tickets, every answer and none: equal as fractions, report by report."""
    mechanism = small(*case)
    document = mechanism.to_document()
    found = {held: client(mechanism, held) for held in every_answer(document)}
    for held, table in found.items():
        assert table == distribution(document, held)
    assert found[0] != distribution(document, 1)


@pytest.mark.parametrize("kind", ["fixed", "ticket"])
def test_clients_that_are_wrong_by_one_unit_or_one_row_are_seen(kind):
    """The twins: one more mark or item is named; a silent level takes part as if it spoke."""
    right = small(kind, "parts")
    for change in ("other", "silent"):
        mechanism = d.Mechanism.from_document(right.to_document())
        other = mechanism.arrays.coder.other.copy()
        other[(0, 0) if change == "other" else (1, 0)] += 1
        mechanism.arrays.coder.other = other
        if kind == "ticket":
            wrong = [sent(mechanism, 0, o, own) for o, own in ((0, True), (1, False))]
            same = [sent(right, 0, 0, True), sent(right, 0, 1, None)]
            assert sorted(wrong[change == "silent"]) != sorted(same[change == "silent"])
        else:
            source = perturb.Keystream()
            out = np.empty((2000, mechanism.report_size), np.uint8)
            mechanism.arrays.coder.write(source, np.zeros(2000, np.int64), out)
            assert right.tally(out).refused["size"] > 0  # missed with 0.6^2000


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("what", ["parts", "one", "groups"])
def test_thresholds_of_bits_are_the_integers_of_the_file(what, padding):
    """What the compiled comparison is given, lane by lane (it is itself tested bit by bit)."""
    mechanism = small("bits", what, padding)
    planes, lanes = mechanism.arrays.coder.planes
    for o, part in enumerate(mechanism.parts):
        for i in range(64 * len(lanes)):
            bits = [int(planes[o, j, i // 64]) >> (i % 64) & 1 for j in range(32)]
            value = int("".join(map(str, bits)), 2)
            inside = i < mechanism.m
            assert value == (part.ints.other[mechanism.arrays.group_of[i]] if inside else 0)
            assert int(lanes[i // 64]) >> (i % 64) & 1 == inside


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padding", [None, 2])
def test_parts_change_exactly_at_their_integers(kind, padding):
    """The first and the last draw of every part, by the chances of the own group or of none."""
    mechanism = small(kind, "parts", padding)
    part_edges_are_exact(mechanism.arrays.coder, mechanism.to_document())
    swapped = copy.copy(mechanism.arrays.coder)  # the twins: another level's chances, one unit more
    swapped.edges = swapped.edges[[1, 0, *range(2, len(swapped.edges))]]
    must_fail(part_edges_are_exact, swapped, mechanism.to_document())
    swapped.edges = mechanism.arrays.coder.edges.copy()
    swapped.edges[-1, 0] += np.uint64(1)
    must_fail(part_edges_are_exact, swapped, mechanism.to_document())


def part_edges_are_exact(coder, document):
    groups = [*range(len(document["parts"][0]["chance"]))]
    groups += [-1] if document["policy"]["kind"] != "single" else []
    for g in groups:
        edge = 0
        for o, part in enumerate(document["parts"]):
            last = edge + (part["none"] if g < 0 else part["chance"][g]) - 1
            draws = [edge, (edge + last) // 2, last]
            got = coder._draw_part(Script([draws]), np.full(3, g))
            assert got.tolist() == [o] * 3, (g, o)
            edge = last + 1
        assert edge == D


def test_parts_of_many_groups():
    """More groups than are looked at one by one: the same edges, empty samples included."""
    budgets = {f"i{k}": f"{1 + k / 100:.2f}" for k in range(70)}
    policy = d.Policy.from_budgets(budgets, kind="set")
    base = d.design(policy, "opt0", padding=1)
    (part,) = base.parts
    first = [D // 3 + 1000 * k for k in range(70)]
    rest = [D - x for x in first]
    parts = [
        make_part(chance, part.ints.own, part.ints.other, none, part.denominators, part.groups)
        for chance, none in ((first, D // 2), (rest, D // 2))
    ]
    wide = d.Policy.from_budgets({k: 40 + float(v) for k, v in budgets.items()}, kind="set")
    mechanism = d.Mechanism(
        wide, "subset", base.encoding, base.groups, parts, base.shares, padding=1
    )
    assert len(mechanism.arrays.coder.edges) > 64
    part_edges_are_exact(mechanism.arrays.coder, mechanism.to_document())
    mixed = np.array([0, -1, 69, 35])
    draws = [first[0] - 1, D // 2, first[69], first[35] - 1]
    assert mechanism.arrays.coder._draw_part(Script([draws]), mixed).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_own_item_is_named_exactly_below_its_integer(kind):
    """Draws just below `own` name it, `own` itself does not; a silent level never does, nor does
    none.
    """
    mechanism = small(kind, "parts", 2)
    coder, document = mechanism.arrays.coder, mechanism.to_document()
    for o, held in product(range(3), (0, 1, 3, 6)):
        g = mechanism.arrays.group_of[held]
        own, chances = mechanism.parts[o].ints.own[g], [p.ints.chance[g] for p in mechanism.parts]
        n = 64
        for draw in (0, own - 1, own, D - 1) if own else (0, D - 1):
            source = Half(sum(chances[:o]), draw)
            out = np.empty((n, mechanism.report_size), np.uint8)
            coder.write(source, np.full(n, held), out)
            for row in out:
                named = mechanism.coder.named(bytes(row))
                assert (held in named) == (draw < own), (o, held, draw)
                if not document["parts"][o]["other"][g] and kind != "ticket":
                    assert not set(members(document)[g]) & set(named)


class Half(perturb.Keystream):
    """The part's and the own item's integers are chosen, the rest is random."""

    def __init__(self, *integers):
        super().__init__()
        self.integers = list(integers)

    def uint32(self, count):
        if self.integers:
            return np.full(count, self.integers.pop(0), np.uint32)
        return super().uint32(count)


# ---- padding and sampling, exactly ---------------------------------------------------------------


def as_in_the_paper(mechanism, x):
    """Algorithms 1 and 2 with their dummy items and bits kept, then the m real bits of
    the report.
    """
    (part,) = mechanism.parts
    m, ell, of = mechanism.m, mechanism.padding, mechanism.arrays.group_of
    a = [Fraction(part.ints.own[g], D) for g in of] + [Fraction(3, 5)] * ell
    b = [Fraction(part.ints.other[g], D) for g in of] + [Fraction(1, 5)] * ell
    padded = (
        [tuple(x) + dummies for dummies in combinations(range(m, m + ell), ell - len(x))]
        if len(x) < ell
        else list(combinations(sorted(x), ell))
    )
    found = defaultdict(Fraction)
    for x_p in padded:
        for sampled in x_p:
            for y in product((0, 1), repeat=m + ell):
                chance = Fraction(1, len(padded) * ell)
                for k, bit in enumerate(y):
                    p = a[k] if k == sampled else b[k]
                    chance *= p if bit else 1 - p
                found[bytes([sum(bit << k for k, bit in enumerate(y[:m]))])] += chance
    return dict(found)


@pytest.mark.parametrize("padding", [1, 2])
def test_dropping_the_dummy_bits_changes_nothing_for_the_real_ones(padding):
    policy = d.Policy.from_levels([("a", "ln(4)", ["x"]), ("b", "ln(6)", ["y", "z"])], kind="set")
    mechanism = d.design(policy, "opt0", padding=padding)
    ours = sets(mechanism.to_document())
    for x in subsets(3):
        assert as_in_the_paper(mechanism, x) == ours(x)
    other = sets(d.design(policy, "opt0", padding=padding + 1).to_document())  # the twin
    assert any(as_in_the_paper(mechanism, x) != other(x) for x in subsets(3))


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
            script = Script([], [draw])
            held = sample(script, items, offsets, ell)
            assert script.bounds.tolist() == [max(k, ell) for k in (0, 1, 2, 4)]
            seen.append(int(held[person]))
        assert sorted(seen) == sorted(
            [*items[first:last].tolist(), *[-1] * (places - (last - first))]
        )


def test_sampling_when_nobody_has_an_item():
    nobody = sample(Script([], [[0, 1]]), np.array([], np.int64), np.array([0, 0, 0]), 2)
    assert nobody.tolist() == [-1, -1]


# ---- answers -------------------------------------------------------------------------------------

LABELS = ["HIV", "anemia", "headache", "stomachache", "toothache"]


def survey(kind, epsilon=60, encoding="bits"):
    """A budget so large that a bit is wrong once in 2^32: what is read back is the answer."""
    policy = d.Policy.from_levels([("only", epsilon, LABELS)], kind=kind)
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


@pytest.mark.parametrize("encoding", ["bits", "ticket"])
@pytest.mark.parametrize("form", SINGLE)
def test_every_form_of_single_answers(form, encoding):
    mechanism = survey("single", encoding=encoding)
    assert places(mechanism, SINGLE[form]).tolist() == [0, 1, 2, 0]
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
    items, offsets = ragged(mechanism, answers)
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
@pytest.mark.parametrize("encoding", ["bits", "ticket"])
def test_nobody(kind, encoding):
    mechanism = survey(kind, encoding=encoding)
    none = [[], (), pa.array([], pa.string() if kind == "single" else pa.list_(pa.string()))]
    for answers in none + (
        [np.array([], np.int64)] if kind == "single" else [(np.array([], np.int64), np.array([0]))]
    ):
        assert mechanism.perturb_many(answers).shape == (0, mechanism.report_size)


def test_a_set_larger_than_the_padding_is_sampled_among_its_own_items():
    """Of 64 people with 3 items and padding 2, each is sampled at one of the three, never at a
    dummy or another.
    """
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


# ---- labels that look like whole numbers ---------------------------------------------------------

NUMBERS = ["1", "2", "3"]


def numbered(kind="single", labels=NUMBERS):
    policy = d.Policy.from_levels([("only", 60, list(labels))], kind=kind)
    return d.design(policy, "opt0", padding=2 if kind == "set" else None)


INTS = {
    "int": lambda m: m.perturb(1),
    "numpy int": lambda m: m.perturb(np.int64(1)),
    "list": lambda m: m.perturb_many([m.policy.items[0], 2]),
    "array": lambda m: m.perturb_many(np.array([1, 2])),
    "Arrow": lambda m: m.perturb_many(pa.array([1, 2])),
    "Arrow dictionary": lambda m: m.perturb_many(pa.array([1, 2]).dictionary_encode()),
}
INTS_OF_SETS = {
    "set": lambda m: m.perturb({1}),
    "list of sets": lambda m: m.perturb_many([{m.policy.items[0]}, {2}]),
    "ragged": lambda m: m.perturb_many((np.array([1, 2]), np.array([0, 1, 2]))),
    "Arrow lists": lambda m: m.perturb_many(pa.array([[1], [2]])),
}


@pytest.mark.parametrize("labels", [NUMBERS, ["a", "b", "-7"], ["x", "007", "y"]], ids=str)
@pytest.mark.parametrize("form", [*INTS, *INTS_OF_SETS])
def test_an_int_that_may_be_a_label_is_refused(form, labels):
    """DESIGN 4: with a sentence that says how to mean either."""
    mechanism = numbered("set" if form in INTS_OF_SETS else "single", labels)
    sentence = refused(lambda: {**INTS, **INTS_OF_SETS}[form](mechanism), "label")
    label = next(x for x in labels if x.strip("-").isdigit())
    assert f'because "{label}" is a label' in sentence
    assert "policy.items[" in sentence or "say indices=True" in sentence


@pytest.mark.parametrize("kind", ["single", "set"])
def test_how_to_mean_either(kind):
    mechanism = numbered(kind)
    wrap = (lambda x: x) if kind == "single" else (lambda x: {x})
    assert read_back(mechanism, [mechanism.perturb(wrap("1"))] * 9)[1:] == [0, 0]
    by_index = mechanism.perturb(wrap(mechanism.policy.items[1]))
    assert read_back(mechanism, [by_index])[::2] == [0, 0]
    given = (
        [[0, 1, 1], np.array([0, 1, 1]), pa.array([0, 1, 1])]
        if kind == "single"
        else [[{0}, {1}, {1}], (np.array([0, 1, 1]), np.arange(4)), pa.array([[0], [1], [1]])]
    )
    for answers in given:
        read = places if kind == "single" else lambda *x: ragged(*x)[0]
        assert read(mechanism, answers, True).tolist() == [0, 1, 1]
        assert len(mechanism.perturb_many(answers, indices=True)) == 3


def test_labels_are_not_indices():
    for answers in (["1"], np.array(["1"]), [True]):
        refused(lambda x=answers: numbered().perturb_many(x, indices=True), "an index is a whole")
    many = numbered().perturb_many(["1", "2", "3"] * 50)
    assert read_back(numbered(), many) == [50, 50, 50]


# ---- bad answers ---------------------------------------------------------------------------------

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
ON_A_DEVICE = "the answer is not an item of this question"  # errors there never repeat an answer


def refused(call, match):
    with pytest.raises(DataError, match=match) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and len(text) < 200, text
    return text


@pytest.mark.parametrize("bad", BAD_ITEMS)
def test_a_bad_single_answer_is_one_sentence(bad):
    item, match = BAD_ITEMS[bad]
    mechanism = survey("single")
    refused(lambda: mechanism.perturb(item), ON_A_DEVICE)
    refused(lambda: mechanism.policy.place(item), match)
    refused(lambda: mechanism.perturb_many(["HIV", item]), match)
    refused(lambda: mechanism.perturb_many([item, "HIV"]), match)


@pytest.mark.parametrize("bad", BAD_ITEMS)
def test_a_bad_item_of_a_set_is_one_sentence(bad):
    item, match = BAD_ITEMS[bad]
    mechanism = survey("set")
    refused(lambda: mechanism.perturb({item, "HIV"}), ON_A_DEVICE)
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
        ({"HIV", "anemia"}, "sequence of sets of items, one set per person, got set"),
        (ONE, "set of items per person, got int"),
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
    mechanism = d.design(toy)
    refused(
        lambda: mechanism.perturb_many(np.array([0] * 100_000 + [5])),
        "item index 5 is out of range; it must be from 0 to 4",
    )
    refused(lambda: mechanism.perturb("tothache"), ON_A_DEVICE)


# ---- the bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 7, 8, 9, 63, 64, 65, 70, 512, 515])
@pytest.mark.parametrize("kind", ["single", "set"])
def test_bits_and_places_of_a_report(m, kind):
    """With a huge budget the report is the answer: item k at byte k // 8, bit k % 8, the unused
    high bits 0.
    """
    policy = d.Policy.from_levels([("only", 60, [f"i{k}" for k in range(m)])], kind=kind)
    mechanism = d.design(policy, "rappor", padding=1 if kind == "set" else None)
    for k in {0, m // 2, m - 1}:
        expected = bytearray(-(-m // 8))
        expected[k // 8] |= 1 << (k % 8)
        assert mechanism.perturb({k} if kind == "set" else k) == bytes(expected)
