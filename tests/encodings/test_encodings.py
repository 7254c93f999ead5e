"""One report, as a device writes it: its law is what enumeration says, its draws follow that law.

False alarms: `assert_distribution` at most 1e-7, `assert_bernoulli` 6e-7 each.
"""

import json
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path

import exhaustive
import numpy as np
import pytest
from checks import assert_bernoulli, must_fail, z_for
from parts import make_part
from small import CASES, assert_distribution, small

import discreet as d
from discreet.arrays.plain import PlainBlocks
from discreet.arrays.randomness import Keystream
from discreet.check.exact import D
from discreet.device.randomness import SystemRandomness
from discreet.encodings import KINDS, Fixed
from discreet.encodings.base import choose, draw, is_prime, sample
from discreet.encodings.fixed import bernoulli
from discreet.encodings.hits import polynomial
from discreet.errors import DesignError

VECTORS = Path(__file__).parents[1] / "vectors" / "v2" / "mechanisms.json"
LEVELS = [("a", 1, ["x", "y"]), ("b", 2, ["z", "u"])]


@cache
def vector(name):
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))
    return d.Mechanism.from_document(next(x["document"] for x in cases if x["name"] == name))


@cache
def tiny_hits(padding=1):
    """Hits of four items over the field of five: 5^3 or 5^4 polynomials, all of them looked at."""
    from discreet.check.exact_sets import TOTAL, HitChances
    from discreet.check.parts import HitsPart
    from discreet.encodings import Hits

    policy = d.Policy.from_levels(
        [("a", 3, ["x", "y"]), ("b", 4, ["z", "u"])], kind="set", padding=padding
    )
    rows = [(0, TOTAL * 3 // 4, TOTAL // 4, 0), (1, TOTAL // 2, TOTAL // 4, TOTAL // 4)][:padding]
    parts = [
        HitsPart(HitChances(D // 4, (1, 1), 2, rows), 5, (0, 1)),
        HitsPart(HitChances(D - D // 4, (0, 1), 3, rows), 5, (0, 1)),
    ]
    return d.Mechanism(policy, "hits", Hits(5), (0, 1), parts, (D // 2, D // 2, 0), padding)


def single(kind, what):
    return pytest.param(lambda: small(kind, what), id=f"{kind} {what}")


SUBJECTS = [
    *(pytest.param(lambda case=case: small(*case), id=" ".join(map(str, case))) for case in CASES),
    pytest.param(lambda: d.design(d.Policy.from_levels(LEVELS, kind="each")), id="each"),
    pytest.param(tiny_hits, id="hits"),
    pytest.param(lambda: tiny_hits(2), id="hits of two"),
    pytest.param(lambda: d.design(d.Policy.from_levels(LEVELS, kind="set"), padding=2), id="picks"),
    pytest.param(lambda: d.design(d.Policy.from_levels(LEVELS)), id="designed"),
    pytest.param(lambda: d.design(d.Policy.from_levels(LEVELS), "grr"), id="grr"),
]
subjects = pytest.mark.parametrize("made", SUBJECTS)


def some_answers(mechanism):
    if not mechanism.policy.kind.lists:
        return [[i] for i in range(mechanism.m)]
    return [[], [0], [1, 2], [0, 1, 3], [*range(mechanism.m)]]


def enumerated(mechanism, items):
    document = mechanism.to_document()
    if mechanism.policy.kind.lists:
        return exhaustive.sets(document)(frozenset(items))
    return exhaustive.distribution(document, items[0])


# ---- the law -------------------------------------------------------------------------------------


@subjects
def test_the_law_of_a_report_is_what_enumeration_says(made):
    mechanism = made()
    for items in some_answers(mechanism):
        exactly = enumerated(mechanism, items)
        assert sum(exactly.values()) == 1
        laws = {y: mechanism.coder.law(y, items) for y in exactly}
        assert laws == exactly


@subjects
def test_the_law_of_another_answer_is_another(made):
    """The twin."""
    mechanism = made()
    first, last, *_ = some_answers(mechanism)
    exactly = enumerated(mechanism, first)
    assert {y: mechanism.coder.law(y, last) for y in exactly} != exactly


# ---- the draw ------------------------------------------------------------------------------------


@subjects
def test_reports_come_as_often_as_their_law_says(made):
    mechanism = made()
    for items in some_answers(mechanism)[:4]:
        exactly = enumerated(mechanism, items)
        n = min(30_000, max(4_000, int(60 / sorted(exactly.values())[len(exactly) // 2])))
        seen = Counter(mechanism.coder.write(SystemRandomness(), items) for _ in range(n))
        assert all(mechanism.coder.refusal(y) is None for y in seen)
        if len(exactly) > 500:  # too many to be seen often: those that name the same items together
            seen, exactly = (by_pattern(mechanism, x) for x in (seen, exactly))
        assert_distribution(seen, exactly)


def by_pattern(mechanism, reports):
    found = Counter()
    for report, share in reports.items():
        coder = mechanism.coder
        found[coder.read_part(report), tuple(coder.named(report))] += share
    return found


@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
def test_a_device_that_forgets_the_own_item_is_seen(kind):
    mechanism, n = small(kind, "one"), 8_000
    seen = Counter(mechanism.coder.write(SystemRandomness(), [1]) for _ in range(n))
    must_fail(assert_distribution, seen, enumerated(mechanism, [0]))


def large(size=400, count=120):
    """One level, so large that its subset is guessed and mended; the own item half of the time."""
    policy = d.Policy.from_levels([("a", 20, [f"i{k}" for k in range(size)])])
    part = make_part((D,), (D // 2,), (count,), None, (size,), (0,))
    return d.Mechanism(policy, "subset", Fixed(), (0,), [part], (D,))


def frequencies(mechanism, held, n):
    rows = np.zeros((n, mechanism.m), bool)
    for row in rows:
        row[mechanism.coder.named(mechanism.coder.write(SystemRandomness(), [held]))] = True
    return rows


@pytest.mark.parametrize("count", [5, 120, 280, 396])
def test_every_item_of_a_large_subset_is_as_likely(count):
    mechanism, n = large(count=count), 1_500 if 100 < count < 300 else 8_000
    rows = frequencies(mechanism, 7, n)
    assert (rows.sum(axis=1) == count).all()
    assert_bernoulli(rows[:, 7].sum(), n, 0.5)
    others = np.delete(rows, 7, axis=1)
    chance = (count - 0.5) / 399
    assert_bernoulli(others.sum(axis=0), n, chance, z_for(399))
    must_fail(assert_bernoulli, others.sum(), n * 399, chance + 0.03)
    if count < 100:
        return  # two of them are hardly ever named
    # given the own item, so many of the others, and any two of them as often as any other two
    both = (others[:, :-1] & others[:, 1:]).sum(axis=0)
    pair = sum((count - own) * (count - own - 1) / (399 * 398) / 2 for own in (0, 1))
    assert_bernoulli(both, n, pair, z_for(398))


def test_large_subsets_are_mended_and_small_ones_drawn(monkeypatch):
    mended = []
    coder = large().coder
    monkeypatch.setattr(coder, "_mended", lambda *arguments: mended.append(arguments[2]) or 0)
    coder._write(SystemRandomness(), 0, 3, True)
    assert mended == [119]
    few = large(count=60).coder
    assert len(few.named(few._write(SystemRandomness(), 0, 3, True))) == 60


class Script:
    """Numbers in a given order; it says what was asked."""

    def __init__(self, numbers=(), planes=()):
        self.numbers, self.planes, self.asked = list(numbers), list(planes), []

    def below(self, bound):
        number = self.numbers.pop(0)
        assert 0 <= number < bound
        self.asked.append(bound)
        return number

    def bits(self, count):
        return self.planes.pop(0)


@pytest.mark.parametrize("name", ["bits one", "bits parts"])
def test_bits_are_compared_with_their_thresholds(name):
    """All items at once give what one comparison of 32-bit numbers per item does."""
    mechanism, generator = small(*name.split()), random.Random(7)
    for o, part in enumerate(mechanism.parts):
        limits = [part.ints.other[mechanism.coder.group(i)] for i in range(mechanism.m)]
        for _ in range(200):
            near = generator.random() < 0.5
            drawn = [
                max(0, x + generator.randint(-2, 2)) if near else generator.getrandbits(32)
                for x in limits
            ]
            planes = [
                sum((x >> place & 1) << i for i, x in enumerate(drawn))
                for place in range(31, -1, -1)
            ]
            got = mechanism.coder._others(Script(planes=planes), o)
            assert [got >> i & 1 for i in range(mechanism.m)] == [
                int(x < limit) for x, limit in zip(drawn, limits)
            ]


def test_the_own_item_is_named_below_its_threshold():
    """By `own` of all 2^32 numbers, no more and no less; no other item is named here."""
    mechanism = small("bits", "one")
    own = mechanism.parts[0].ints.own[mechanism.coder.group(2)]
    for number, named in ((0, [2]), (own - 1, [2]), (own, []), (D - 1, [])):
        script = Script([0, number], planes=[2**mechanism.m - 1] * 32)
        assert mechanism.coder.named(mechanism.coder.write(script, [2])) == named


@pytest.mark.parametrize("chance", [0, 1, 2, 0x8000, 0xFFFF, 0x1234])
def test_guesses_have_their_chance(chance):
    """Of 2^16 items, one for every 16-bit number, so many are 1."""
    planes = [sum((x >> k & 1) << x for x in range(2**16)) for k in range(16)]
    # digit k of the chance is compared with plane k: the last digit first
    assert bernoulli(Script(planes=planes), 2**16, chance).bit_count() == chance


def test_sampling_choosing_and_drawing_by_all_their_numbers():
    places = [sample(Script([k]), [7, 9], 5) for k in range(5)]
    assert places == [7, 9, None, None, None]
    assert [sample(Script([k]), [7, 8, 9], 2) for k in range(3)] == [7, 8, 9]
    assert [draw(Script([k]), [2, 0, 3]) for k in range(5)] == [0, 0, 2, 2, 2]
    chosen = Counter(
        frozenset(choose(Script(numbers), "abcd", 2)) for numbers in product(range(4), range(3))
    )
    assert chosen == dict.fromkeys(map(frozenset, combinations("abcd", 2)), 2)
    script = Script([3, 0, 1])
    choose(script, "abcd", 3)
    assert script.asked == [4, 3, 2]


def test_what_is_drawn_before_a_ticket():
    """The part, the own item, then every digit and the mark: nothing depends on more."""
    mechanism = small("ticket", "one")
    script = Script([5, 1, 2, 0, 0])
    mechanism.coder.write(script, [2])
    limit = mechanism.parts[0].ints.other[mechanism.coder.group(2)]
    assert script.asked == [D, D, 5, 5, limit]


class Counted(SystemRandomness):
    """The system's numbers, and how many were asked for one by one."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def below(self, bound):
        self.asked += 1
        return super().below(bound)


def test_a_large_subset_is_nearly_right_before_it_is_mended():
    """Of 4,000 items 2,000, with the standard error 32: every second try mends one. More than 600
    tries are 300 items, or nine standard errors; from nothing it would take 2,000.
    """
    coder, source = large(4_000, 2_000).coder, Counted()
    assert len(coder.named(coder.write(source, [7]))) == 2_000
    assert source.asked < 600


# ---- what an encoding says of itself -------------------------------------------------------------


@subjects
def test_an_encoding_says_how_its_reports_name_items(made):
    """By enumeration of what an answer can become: whether all reports of a part name as many items
    of a group, and whether items are named independently.
    """
    mechanism = made()
    coder, parts = mechanism.coder, range(len(mechanism.parts))
    named = {y: (coder.read_part(y), coder.named(y)) for y in enumerated(mechanism, [0])}
    sizes = [
        {tuple(sum(coder.group(i) == g for i in items) for g in set(mechanism.groups))
         for part, items in named.values() if part == o}
        for o in parts
    ]  # fmt: skip
    assert mechanism.encoding.fixed_size == all(len(numbers) == 1 for numbers in sizes)
    speaking = [set().union(*(items for part, items in named.values() if part == o)) for o in parts]
    patterns = [len({tuple(items) for part, items in named.values() if part == o}) for o in parts]
    everything = all(n == 2 ** len(items) for n, items in zip(patterns, speaking))
    assert not mechanism.encoding.independent or everything


@subjects
def test_what_is_named_independently_is_a_product_of_chances(made):
    """Given the part, for every two items; the twin: where this is so, the encoding says it."""
    mechanism = made()
    law, coder = enumerated(mechanism, [0]), mechanism.coder
    independent = True
    for o in range(len(mechanism.parts)):
        rows = {y: p for y, p in law.items() if coder.read_part(y) == o}
        whole = sum(rows.values())
        for pair in combinations(range(mechanism.m), 2):
            chance = [
                sum(p for y, p in rows.items() if wanted <= set(coder.named(y))) / whole
                for wanted in ({pair[0]}, {pair[1]}, set(pair))
            ]
            independent &= chance[0] * chance[1] == chance[2]
    if mechanism.padding is None:  # a sample of a set ties its items together
        assert mechanism.encoding.independent == independent


@subjects
def test_counts_are_right_for_everybody_or_the_encoding_says_so(made):
    """Where all items of a list are reported, an item must be named as often beside others."""
    mechanism = made()
    alike = mechanism.encoding.lists != "counted" or all(
        chance_named(mechanism, [0], o) == chance_named(mechanism, [0, 1], o)
        for o in range(len(mechanism.parts))
    )
    assert mechanism.encoding.unbiased(mechanism) is (alike or mechanism.padding == 1)
    assert mechanism.encoding.as_uint32 == (mechanism.encoding.kind == "ticket")


def chance_named(mechanism, items, part):
    """Of the first of these items in reports of a part."""
    coder = mechanism.coder
    rows = {y: p for y, p in enumerated(mechanism, items).items() if coder.read_part(y) == part}
    return sum(p for y, p in rows.items() if items[0] in coder.named(y)) / sum(rows.values())


@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
def test_a_policy_of_another_kind_is_refused(kind):
    """One report with every item's own question has an encoding of its own."""
    mechanism = small(kind, "one")
    policy = replace(mechanism.policy, kind="each")
    with pytest.raises(DesignError, match=f'asks every item on its own, which "{kind}" does not'):
        replace(mechanism, policy=policy)


@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
@pytest.mark.parametrize("field", ["chance", "own", "other"])
def test_numbers_that_are_not_whole_are_refused(kind, field):
    mechanism = small(kind, "one")
    (part,) = mechanism.parts
    numbers = part.ints._replace(**{field: tuple(map(float, getattr(part.ints, field)))})
    with pytest.raises(DesignError, match="holds something else than whole numbers"):
        replace(mechanism, parts=(replace(part, ints=numbers),))


def test_primes_are_those_of_the_sieve():
    sieve = {n for n in range(2, 3_000) if not any(n % k == 0 for k in range(2, n))}
    assert {n for n in range(-2, 3_000) if is_prime(n)} == sieve
    assert is_prime(4_294_967_291) and not is_prime(65_521**2) and not is_prime(65_521 * 65_519)


# ---- polynomials ---------------------------------------------------------------------------------


@pytest.mark.parametrize("through", [[], [(1, 4)], [(2, 0), (4, 3)], [(1, 1), (2, 2), (3, 0)]])
def test_polynomials_through_points_are_uniform(through):
    free = 3 - len(through)
    seen = Counter(
        tuple(polynomial(Script(numbers), 5, 3, through))
        for numbers in product(range(5), repeat=free)
    )
    wanted = {
        c
        for c in product(range(5), repeat=3)
        if all(sum(a * x**k for k, a in enumerate(c)) % 5 == value for x, value in through)
    }
    assert seen == dict.fromkeys(wanted, 1) and len(wanted) == 5**free


@pytest.mark.parametrize("name", ["four-hits", "six-hits"])
def test_hits_name_their_own_items_as_often_as_they_promise(name):
    mechanism, n, items = vector(name), 4_000, [0, 1, 2]
    seen = Counter()
    for _ in range(n):
        report = mechanism.coder.write(SystemRandomness(), items)
        assert mechanism.coder.refusal(report) is None
        part, named = exhaustive.hits_named(mechanism.to_document(), report)
        assert mechanism.coder.named(report) == named
        seen[part, frozenset(named)] += 1
    exactly = exhaustive.hits_patterns(mechanism.to_document())(frozenset(items))
    assert_distribution(seen, exactly)
    other = exhaustive.hits_patterns(mechanism.to_document())(frozenset())
    must_fail(assert_distribution, seen, other)


# ---- many reports, one by one --------------------------------------------------------------------


@subjects
def test_plain_blocks_are_the_fast_ones(made):
    """The same reports are refused, the same counts come out; reports that cannot be are there."""
    mechanism, rng = made(), np.random.default_rng(3)
    plain, fast = PlainBlocks(mechanism), mechanism.arrays.coder
    answers = [some_answers(mechanism)[k % 3] for k in range(60)]
    held = [set(x) for x in answers] if mechanism.policy.kind.lists else [x[0] for x in answers]
    good = mechanism.perturb_many(held)
    bad = rng.integers(0, 256, (60, mechanism.report_size), dtype=np.uint8)
    rows = np.concatenate((good, bad))
    for times in (None, rng.integers(0, 5, len(rows))):
        found = []
        for coder in (plain, fast):
            into = coder.start(len(rows))
            refused = coder.gather(into, rows, times)
            total = coder.settle([into])
            found.append((refused, total.part_n.tolist(), total.counts.tolist()))
        assert found[0] == found[1] and (found[0][0] or mechanism.report_size == 1)


@pytest.mark.parametrize("kind", ["fixed", "bits", "ticket"])
def test_plain_blocks_write_what_the_source_gives(kind):
    mechanism, n = small(kind), 20_000
    out = np.empty((n, mechanism.report_size), np.uint8)
    PlainBlocks(mechanism).write(Keystream(), np.full(n, 3), out)
    assert_distribution(Counter(map(bytes, out)), enumerated(mechanism, [3]))


def test_every_encoding_is_tested_here():
    """With its law by enumeration and its draws."""
    assert {made.values[0]().encoding.kind for made in SUBJECTS} == set(KINDS)


def test_the_sum_of_all_laws_of_designs_is_one():
    for name in ("four-hits", "six-hits"):
        mechanism = vector(name)
        size, prime = mechanism.padding + 2, mechanism.encoding.prime
        if prime**size > 2**12:
            continue
        width = mechanism.encoding.width
        total = Fraction(0)
        for o, c in product(range(len(mechanism.parts)), product(range(prime), repeat=size)):
            report = bytes([o]) + b"".join(x.to_bytes(width, "little") for x in c)
            total += mechanism.coder.law(report, [0, 1])
        assert total == 1


def test_every_encoding_says_what_a_report_is():
    said = {kind: encoding.summary for kind, encoding in KINDS.items()}
    assert said == {
        "bits": "independent bits",
        "each": "an independent bit per item",
        "fixed": "subsets of fixed size",
        "hits": "a polynomial",
        "picks": "subsets of fixed size that your items are in more often",
        "ticket": "a number of four bytes",
    }
