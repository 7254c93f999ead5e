"""The real samplers, secure randomness included: whole distributions of small mechanisms, every
item and
every pair of items of larger ones, in every encoding; each with a twin that must fail.

Chances of a false alarm are stated per test. A chi-square (`assert_distribution`) and a
comparison of many
frequencies (`z_for`) have 1e-7 each, twins miss what they must see with less than 1e-6.
"""

import copy
from functools import cache

import exhaustive
import numpy as np
import pytest
from checks import assert_bernoulli, assert_binomial, detectable, must_fail, z_for
from exhaustive import answers, distribution
from small import (
    CASES,
    KINDS,
    D,
    assert_distribution,
    chances_of,
    missed,
    named_in,
    ragged,
    reports_of,
    seen_in,
    small,
)

import discreet as d
from discreet.arrays import perturb, randomness
from discreet.arrays.base import sample
from discreet.arrays.randomness import Keystream

N = 100_000


@cache
def document_of(*case):
    return small(*case).to_document()


@cache
def exact(case, held):
    return distribution(document_of(*case), held)


# ---- the whole distribution ----------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reports_have_the_enumerated_distribution(case):
    """Every answer, "none" included: at most 8 chi-squares, false alarm 8e-7."""
    mechanism = small(*case)
    for held in answers(document_of(*case)):
        seen = seen_in(reports_of(mechanism, held, N))
        assert_distribution(seen, exact(case, held))
    # the twin: somebody else's answer, of the other level and of the own one
    for other in (1, 3):
        if other != held:
            assert missed(N, exact(case, other), exact(case, held)) < 1e-6
            must_fail(assert_distribution, seen, exact(case, other))


@pytest.mark.parametrize("kind", KINDS)
def test_sets_have_the_enumerated_distribution(kind):
    """Padding, sampling and perturbing at once: 5 chi-squares, false alarm 5e-7."""
    case = (kind, "parts", 2)
    mechanism, of = small(*case), exhaustive.sets(document_of(*case))
    sets = [set(), {0}, {6}, {0, 6}, {1, 2, 3, 6}]
    for x in sets:
        seen = seen_in(mechanism.perturb_many(ragged([x], N)))
        assert_distribution(seen, of(frozenset(x)))
    for other in ({1, 2, 3, 5}, {1, 2}):  # the twins: another item, no one sampled at a dummy
        assert missed(N, of(frozenset(other)), of(frozenset(x))) < 1e-6
        must_fail(assert_distribution, seen, of(frozenset(other)))


def shifted(document, key, o, g, by):
    """A copy with a slightly wrong integer."""
    document = copy.deepcopy(document)
    part = document["parts"][o]
    part[key][g] += by
    if key == "chance":
        document["parts"][o - 1][key][g] -= by
    return document


@pytest.mark.parametrize(
    ("key", "o", "g"),
    [
        ("own", 0, 0),
        ("own", 0, 1),
        ("own", 1, 1),
        ("own", 2, 0),
        ("chance", 1, 0),
        ("chance", 2, 1),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_slightly_wrong_probabilities_are_seen(kind, key, o, g):
    """Own chances and chances of parts that are off by 1 to 6 %; the right ones pass, false alarm
    1e-7.
    """
    case, held = (kind, "parts", None), (0, 1)[g]
    n = 200_000
    seen = seen_in(reports_of(small(*case), held, n))
    assert_distribution(seen, exact(case, held))
    for by in (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1):
        for sign in (1, -1):
            wrong = distribution(shifted(document_of(*case), key, o, g, sign * round(by * D)), held)
            if missed(n, wrong, exact(case, held)) < 1e-6:
                must_fail(assert_distribution, seen, wrong)
                assert by < 0.1
                return
    pytest.fail("no shift is seen")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padding", [None, 2])
def test_a_client_that_draws_the_part_by_the_wrong_level_is_seen(kind, padding):
    """The twin of a part draw: the chances of the other level, or of "none"; false alarm 1e-7."""
    case = (kind, "parts", padding)
    mechanism = d.Mechanism.from_document(document_of(*case))
    assert_distribution(seen_in(reports_of(mechanism, 0, N)), exact(case, 0))
    right = mechanism.arrays.coder.edges.copy()
    mechanism.arrays.coder.edges = right[[1, 0, *range(2, len(right))]]
    for held in (0, 1):
        must_fail(assert_distribution, seen_in(reports_of(mechanism, held, N)), exact(case, held))
    if padding:
        mechanism.arrays.coder.edges = right[[0, 1, 0]]
        must_fail(assert_distribution, seen_in(reports_of(mechanism, None, N)), exact(case, None))


@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_level_that_draws_its_own_bit_is_seen(kind):
    """The twin of silence: in part 1, where level 0 is silent, the own item is named by its own
    chance.

    Bits and subsets then name what no report names. A ticket looks like any other: only its
    frequencies
    tell (false alarm 1e-7), and `other` of the part for the reader stays 0.
    """
    case = (kind, "parts", None)
    document = copy.deepcopy(document_of(*case))
    document["parts"][1]["own"][0] = D // 2
    document["parts"][1]["other"][0] = {"fixed": 1, "bits": D // 4, "ticket": 1}[kind]
    wrong = distribution(document, 0)
    rng = np.random.default_rng(8)
    keys, p = list(wrong), np.array([float(x) for x in wrong.values()])
    seen = dict(zip(keys, rng.multinomial(N, p / p.sum()).tolist()))
    must_fail(assert_distribution, seen_of(seen), exact(case, 0))
    assert_distribution(seen_in(reports_of(small(*case), 0, N)), exact(case, 0))
    if kind == "ticket":  # nothing else would show it
        assert set(wrong) == set(exact(case, 0))
        assert missed(N, exact(case, 0), wrong) < 1e-6
    else:
        assert set(wrong) - set(exact(case, 0))


def seen_of(table):
    from collections import Counter

    return Counter({key: k for key, k in table.items() if k})


# ---- every item and every pair of items ----------------------------------------------------------

EPS = (1.0, 1.2, 2.0)


@cache
def designed(model, encoding=None, kind="single", m=11):
    """Levels whose items are not neighbours: 0, 2, 2, 1, 2, 2, 1, …"""
    budgets = {f"i{k}": EPS[(k * k + 1) % 3] if k % 4 else EPS[2] for k in range(m)}
    budgets["i0"] = EPS[0]
    policy = d.Policy.from_budgets(budgets, kind=kind)
    return d.design(policy, model, encoding=encoding, padding=2 if kind == "set" else None)


def inputs(kind, m):
    """Answers to try: the first and the last item, one between, none, more than the padding."""
    if kind == "single":
        return [0, m // 2, m - 1]
    return [set(), {0, m - 1}, {1, 2, m // 2, m - 1}]


def counted(document, rows):
    """How often every part came, and how often with every item and pair of items."""
    part, named = named_in(document, rows)
    k = len(document["parts"])
    pairs = np.stack([(x := named[part == o].astype(np.float64)).T @ x for o in range(k)])
    return np.bincount(part, minlength=k), pairs


def assert_pairs(parts, pairs, n, expected):
    """Parts, items and pairs of items have their frequencies: all in one comparison, false alarm
    1e-7.
    """
    chance, both = expected
    rows, columns = np.triu_indices(both.shape[1])
    got = np.concatenate((parts, pairs[:, rows, columns].ravel()))
    p = np.concatenate((chance, both[:, rows, columns].ravel()))
    assert not got[p == 0].any(), "an item of a silent level is named"
    often = n * p * (1 - p) >= 50
    assert often.sum() > len(chance) / 2
    assert_binomial(got[often], n, p[often])


SETTINGS = [
    *((model, "bits", kind, 11) for model in ("subset", "opt0", "opt1", "opt2", "rappor", "oue")
      for kind in ("single", "set")),
    ("opt0", "ticket", "single", 11), ("oue", "ticket", "set", 11),
    ("grr", None, "single", 11), ("ss", None, "single", 11),
    ("subset", "ticket", "single", 70), ("subset", "ticket", "set", 70),
    ("subset", None, "single", 70), ("subset", "bits", "set", 70), ("ss", None, "single", 70),
    ("opt0", None, "single", 70), ("opt0", None, "set", 70),
]  # fmt: skip


@pytest.mark.parametrize(("model", "encoding", "kind", "m"), SETTINGS)
def test_every_item_and_every_pair_of_items(model, encoding, kind, m):
    """For holders and for others, the part too: 3 answers, false alarm 3e-7."""
    mechanism = designed(model, encoding, kind, m)
    document, n = mechanism.to_document(), 30_000
    for answer in inputs(kind, m):
        answers_ = np.full(n, answer) if kind == "single" else ragged([answer], n)
        rows = mechanism.perturb_many(answers_)
        expected = chances_of(document, answer)
        parts, pairs = counted(document, rows)
        assert_pairs(parts, pairs, n, expected)
    # the twins: a shift that so many draws see, items in another place, a pair that goes together
    chance, both = expected
    # where a shift shows best: a frequent item
    o, i = np.unravel_index(np.diagonal(both, axis1=1, axis2=2).argmax(), (len(both), m))
    away = both.copy()
    away[o, i, i] -= detectable(n, both[o, i, i], z_for(both.size)) + 1 / n
    must_fail(assert_pairs, parts, pairs, n, (chance, away))
    must_fail(assert_pairs, parts, np.roll(pairs, 1, axis=(1, 2)), n, expected)
    part, named = named_in(document, rows)
    named[::2, -1] = named[::2, 0]
    linked = np.stack([(x := named[part == o].astype(float)).T @ x for o in range(len(chance))])
    must_fail(assert_pairs, parts, linked, n, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_last_item_sent_as_it_is_is_seen(kind):
    """For years this was the bug of a well-known library: the last bit was never randomised."""
    mechanism, n = small(kind, "one"), 30_000
    document = mechanism.to_document()
    _, named = named_in(document, mechanism.perturb_many(np.full(n, 6)))
    expected = chances_of(document, 6)
    counts = named.astype(float)
    assert_pairs(np.array([n]), (counts.T @ counts)[None], n, expected)  # false alarm 1e-7
    counts[:, -1] = 1
    must_fail(assert_pairs, np.array([n]), (counts.T @ counts)[None], n, expected)


@pytest.mark.parametrize("what", ["parts", "groups"])
@pytest.mark.parametrize("padding", [None, 2])
def test_fixed_sizes_are_exact(what, padding):
    """Every report of a part names its number of items of each group: no chance in it."""
    mechanism = small("fixed", what, padding)
    document = mechanism.to_document()
    of = np.array(exhaustive.groups_of(document))
    held = answers(document)
    rows = np.concatenate([reports_of(mechanism, x, 5000) for x in held])
    part, named = named_in(document, rows)
    wanted = np.array([p["other"] for p in document["parts"]])[part]
    sizes = np.stack([named[:, of == g].sum(axis=1) for g in range(2)], axis=1)
    np.testing.assert_array_equal(sizes, wanted)
    assert not mechanism.tally(rows).refused
    with pytest.raises(AssertionError):  # the twin: the sizes of another part
        np.testing.assert_array_equal(sizes, wanted[np.argsort(part)])


@pytest.mark.parametrize("ell", [1, 2, 5])
def test_sampled_items(ell):
    """4 comparisons of 9 frequencies: false alarm 4e-7."""
    n, x = 60_000, np.array([2, 3, 5, 7])
    for size in (0, 1, 2, 4):
        items, offsets = np.tile(x[:size], n), np.arange(n + 1) * size
        held = sample(Keystream(), items, offsets, ell)
        got = np.bincount(held + 1, minlength=9)
        chance = np.zeros(9)
        chance[x[:size] + 1] = 1 / max(size, ell)
        chance[0] = max(0.0, 1 - size / max(size, ell))
        assert_bernoulli(got, n, chance, z_for(9))
        if size:  # the twin: the first item a little too rarely, a dummy instead
            other, shift = chance.copy(), max(0.02, float(detectable(n, chance[3], z_for(9))))
            other[3] -= shift
            other[0] += shift
            must_fail(assert_bernoulli, got, n, other, z_for(9))


# ---- nobody's randomness is used twice -----------------------------------------------------------


def check_halves(table, rows):
    """The first and the second half of the people, who gave the same answer, send the same report
    no
    more often than by chance: false alarm 6e-7.
    """
    half = len(rows) // 2
    same = (rows[:half] == rows[half:]).all(axis=1).sum()
    assert_bernoulli(same, half, float(sum(p * p for p in table.values())))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["parts", "one"])
def test_people_in_different_blocks_are_independent(kind, what, monkeypatch):
    case, n = (kind, what, None), 4 * 65536
    mechanism, people = small(*case), np.zeros(n, np.int64)
    check_halves(exact(case, 0), mechanism.perturb_many(people, threads=2))
    # the twin: every block draws from the same key
    monkeypatch.setattr(randomness.os, "urandom", lambda size: bytes(size))
    must_fail(check_halves, exact(case, 0), mechanism.perturb_many(people, threads=2))


def check_neighbours(table, rows):
    """People next to each other in a block too: false alarm 6e-7."""
    check_halves(table, np.concatenate((rows[0::2], rows[1::2])))


@pytest.mark.parametrize("kind", KINDS)
def test_people_in_one_block_are_independent(kind, monkeypatch):
    case, n = (kind, "one", None), 60_000
    mechanism, people = small(*case), np.zeros(n, np.int64)
    check_neighbours(exact(case, 0), mechanism.perturb_many(people))

    class Stuck(Keystream):
        """The twin: a stream that gives every 16 bytes twice."""

        def fill(self, buffer):
            super().fill(buffer)
            flat = buffer.view(np.uint8).reshape(-1)
            whole = flat[: len(flat) // 32 * 32].reshape(-1, 2, 16)
            whole[:, 1] = whole[:, 0]

    monkeypatch.setattr(perturb, "Keystream", Stuck)
    must_fail(check_distribution_or_neighbours, exact(case, 0), mechanism.perturb_many(people))


def check_distribution_or_neighbours(table, rows):
    assert_distribution(seen_in(rows), table)
    for step in (1, 2, 4):
        usable = rows[: len(rows) // (2 * step) * 2 * step].reshape(-1, 2, step, rows.shape[1])
        check_halves(table, np.concatenate((usable[:, 0].reshape(-1, rows.shape[1]),
                                            usable[:, 1].reshape(-1, rows.shape[1]))))  # fmt: skip
