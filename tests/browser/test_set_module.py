"""Sets in the JavaScript module: counted hits, items on their own, and what is promised of whole
lists; against enumeration of all sets and all reports.
"""

import base64
import copy
import random
import re
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil, log

import numpy as np
import pytest
from checks import must_fail
from exhaustive import groups_of
from handmade import (
    D,
    G,
    body_of,
    densities,
    distribution,
    each_factors,
    each_of,
    extremes,
    hits_of,
    item_factors,
    keeps,
    list_factor,
    lists,
    named_by,
    own_chance,
    packed,
    policy_of,
    sampling_tables,
    set_factor,
    signed,
    some_report,
    weights,
)
from nodejs import NODE, node
from small import assert_distribution, missed, seen_in

import discreet as d
from discreet.errors import DiscreetError, GuaranteeError
from discreet.mechanism import Mechanism

pytestmark = [
    pytest.mark.skipif(
        NODE is None, reason="node is not installed, so the JavaScript module cannot be run"
    ),
    pytest.mark.xdist_group("sets"),
]

HALF = D // 2
TWO = [("grave", "ln(2)", ["a"]), ("mild", "ln(3)", ["b", "c", "d"])]
SAME = [("all", "ln(3)", ["a", "b", "c", "d"])]
THREE = [("x", "ln(2)", "a"), ("y", "ln(5)", "bc"), ("z", "ln(5/2)", "de")]


@cache
def hits():
    """Small enough for every set and every report."""
    both, mild = [1, 1], [0, 1]
    return {
        "any hit": hits_of(SAME, 11, 2, [([1], 3, [0, 0], D)]),
        "two parts": hits_of(TWO, 7, 2, [(both, 2, [0, 0], HALF), (mild, 3, [0, 1], HALF)]),
        "the sensitive item alone": hits_of(TWO, 5, 2, [([1, 0], 2, [0, 1], D)]),
        "one place": hits_of(TWO, 5, 1, [(both, 2, [0], D - 5), (mild, 1, [1], 5)]),
        "three places": hits_of(THREE, 7, 3, [([0, 1, 1], 3, [0, 1, 1], D)]),
        "groups": hits_of(THREE, 7, 2, [([1, 1], 2, [0, 1], 1), ([1, 0], 4, [1, 2], D - 1)],
                          groups=[0, 1, 0]),
        "more places than items": hits_of(TWO, 5, 4, [(both, 2, [0, 1, 1, 2], D)]),
        "strict": hits_of(TWO, 7, 2, [(both, 2, [0, 0], HALF), (mild, 3, [0, 1], HALF)],
                          strict=True),
        "less where more are named": hits_of(TWO, 7, 2, [(both, 4, [0, 0], D, Fraction(-1, 2))]),
        "one item": hits_of([("only", "ln(2)", ["a"])], 5, 2, [([1], 4, [0, 1], D)]),
        "uneven": uneven(),
        "fewer items than places": hits_of([("a", "ln(2)", "ab"), ("b", "ln(3)", "cd")], 5, 3,
                                           [([1, 0], 2, [0, 0, 0], D)]),
    }  # fmt: skip


def uneven():
    """Two active items, of which one alone is told well and both are not told at all: then what
    tells most is one of them in the other's place.
    """
    prime, limit = 7, 3
    low = int(Fraction(4, 7) * Fraction(3, 5) * G)
    flat = int(Fraction(16, 49) * G)
    rows = [[0, G - low, low, 0], [0, G - flat, flat, 0]]
    part = {"chance": D, "active": [0, 1], "limit": limit, "rows": rows}
    levels = [("grave", "ln(3)", ["a", "b"]), ("mild", "ln(5)", ["c", "d"])]
    return signed(body_of(policy_of(levels), {"kind": "hits", "prime": prime}, 2, [part]))


@cache
def apart():
    """Items on their own."""
    return {
        "each": each_of(TWO, [D // 2 + 5, 3 * (D // 4)], [D // 3, D // 3]),
        "the other way": each_of(TWO, [D // 4, D // 3], [D // 3, D // 2 + 1]),
        "one item": each_of([("only", "ln(9)", ["a"])], [9 * (D // 10)], [D // 10 + 1]),
        "many": each_of([("a", "1", [f"i{k}" for k in range(30)]), ("b", "2", "xyz")],
                        [D // 2 + 99, D // 2 + D // 5], [D // 3, D // 4], notion="avg"),
    }  # fmt: skip


def sampling(own, other, chance=((D, D),), none=(D,), padding=2, **more):
    """Padding-and-Sampling of independent bits; budgets that allow all that is tried here."""
    levels = [("x", "40", ["a", "b"]), ("y", "40", ["c", "d"])]
    levels = more.pop("levels", levels)
    parts = [
        {"chance": list(c), "own": list(a), "other": list(b), "none": n}
        for c, a, b, n in zip(chance, own, other, none, strict=True)
    ]
    policy = policy_of(levels, **more)
    return signed(body_of(policy, {"kind": "bits"}, padding, parts, model="opt0"))


@cache
def sampled():
    q = D // 16
    one = {"own": [[12 * q, 9 * q]], "other": [[3 * q, 6 * q]]}
    parts = {
        "own": [[12 * q, 9 * q], [0, 5 * q]],
        "other": [[3 * q, 6 * q], [0, 3 * q]],
        "chance": [[5 * q, 11 * q], [11 * q, 5 * q]],
        "none": [6 * q, 10 * q],
    }
    return {
        **{f"one part, padding {n}": sampling(**one, padding=n) for n in (1, 2, 3, 4, 7)},
        **{f"two parts, padding {n}": sampling(**parts, padding=n) for n in (1, 2, 3, 5)},
        "less where an item is not named": sampling(
            [[15 * q, 15 * q]], [[12 * q, 12 * q]], padding=5
        ),
        "less than beside others": sampling(
            [[21 * D // 40, 43 * D // 100]], [[8 * q, D // 19]], padding=1
        ),
        "an item alone": sampling(
            **one, padding=1, levels=[("x", "40", ["a"]), ("y", "40", ["c", "d"])]
        ),
    }


@cache
def promised():
    """What the module says of all of these, and of every list or some."""
    documents = {**hits(), **{f"each {x}": y for x, y in apart().items()}, **sampled()}
    given = [{"document": x, "lists": lists_of(x)} for x in documents.values()]
    return dict(zip(documents, node("sets.mjs", given), strict=True))


def lists_of(document):
    return lists(m) if (m := len(document["policy"]["items"])) < 6 else [(), (0, 31), [*range(33)]]


def in_words(factor):
    """Rounded up to hundredths; these are all below 1,000."""
    assert factor < 1000
    return f"{ceil(100 * factor) / 100:g}"


def budgets_with_sizes(document, factors):
    return [factors[g] for g in document["groups"]]


def check_items(document, found, factors):
    """Per level the log-ratio, and the sentence rounded up."""
    each = budgets_with_sizes(document, factors)
    assert found["levelEpsilons"] == pytest.approx([log(x) for x in each], rel=1e-13, abs=1e-15)
    sentences = [x["sentence"] for x in found["promises"]][: len(each)]
    ends = [re.search(r"by at most a factor of ([\d.,]+)\.$", x)[1] for x in sentences]
    assert ends == [in_words(x) for x in each]


# ---- promises, by enumeration --------------------------------------------------------------------


@pytest.mark.parametrize("name", [*hits()])
def test_promises_of_hits_are_those_of_all_sets_and_reports(name):
    document, found = hits()[name], promised()[name]
    factors = item_factors(document)
    check_items(document, found, factors)
    must_fail(check_items, document, found, [x + Fraction(1, 50) for x in factors])
    most, least = most_of(document), set_factor(document)
    assert found["wholeEpsilon"] == pytest.approx(log(most), rel=1e-13)
    assert most >= least
    assert name in FEW or most < least * (1 + Fraction(1, 10**12))  # rows differ by a unit
    *_, whole = found["promises"]
    assert whole == {
        "level": None,
        "items": 0,
        "examples": [],
        "factor": float(in_words(most)),
        "sentence": "Whole lists: whoever sees your report can change their odds between any two "
        f"lists of answers by at most a factor of {in_words(most)}.",
        "whole": True,
    }


# Parts that speak about so few items that no report is the best for one list and the worst for
# another: for these what is promised is a bound.
FEW = ("the sensitive item alone", "one item", "fewer items than places", "uneven")


def reachable(document):
    """Per part, the densities that lists of these items can have."""
    s, groups = document["padding"], groups_of(document)
    for part in document["parts"]:
        f = densities(document["encoding"]["prime"], part)
        spoken = sum(part["active"][g] for g in groups)
        yield {key: value for key, value in f.items() if key[0] <= min(s, spoken)}


def most_of(document):
    """The largest density over the smallest."""
    return max(max(f.values()) / min(f.values()) for f in reachable(document))


def sampled_bound(document, items):
    """The worst of every sample at once, against the most and the least that there is."""
    s, groups = document["padding"], groups_of(document)
    found = Fraction(1)
    for part, f in zip(document["parts"], reachable(document), strict=True):
        spoken = [i for i, g in enumerate(groups) if part["active"][g]]
        most = f.values()
        samples = [*combinations(items, min(s, len(items)))]
        rows = [len({*sample} & {*spoken}) for sample in samples]
        ends = [[f[j, n] for n in range(j + 1)] for j in rows]
        top, low = (Fraction(sum(map(end, ends)), len(samples)) for end in (max, min))
        found = max(found, top / min(most), max(most) / low)
    return found


@pytest.mark.parametrize("name", [*hits()])
def test_promises_of_a_list_bound_all_reports(name):
    """Equal to the largest ratio there is where at most `padding` items are listed; beyond, the
    worst of the samples at once bounds it.
    """
    document, found = hits()[name], promised()[name]
    reached = 0
    for items, got in zip(lists_of(document), found["lists"], strict=True):
        exact = in_words(list_factor(document, items))
        assert got["factor"] == float(in_words(sampled_bound(document, items)))
        sentence = (
            "Your whole list: whoever sees your report can change their odds between it and any "
            "other list by at most a factor of {}."
        )
        assert got["sentence"] == sentence.format(f"{got['factor']:g}")
        assert got["factor"] >= float(exact)
        reached += got["factor"] == float(exact)
        if len(items) <= document["padding"] and name not in FEW:
            assert got["factor"] == float(exact), (items, got)
    assert name in FEW or reached > len(found["lists"]) / 2


def test_promises_of_items_on_their_own_multiply():
    for name, document in apart().items():
        found, factors = promised()[f"each {name}"], each_factors(document)
        check_items(document, found, factors)
        groups = [document["groups"][k] for k in document["policy"]["level_of"]]
        each = sorted((factors[g] for g in groups), reverse=True)
        total = sum(log(x) for x in each)
        assert found["wholeEpsilon"] == pytest.approx(total, rel=1e-12)
        for items, got in zip(lists_of(document), found["lists"], strict=True):
            odds = Fraction(1)
            for i in items:
                odds *= factors[groups[i]]
            assert float(odds) <= got["factor"] <= 1.01 * float(odds)
            begins = (
                "Your whole list is not protected as one: whoever sees your report can change "
                "their odds between it and an empty one by at most a factor of "
            )
            assert got["sentence"].startswith(begins if items else "You ticked nothing. Lists are")
    text = {name: promised()[f"each {name}"]["promises"][-1] for name in apart()}
    start = "Whole lists: each answer is protected on its own and the factors multiply, to at most "
    assert text["one item"]["sentence"] == f"{start}9 for a list of 1 answer against an empty one."
    assert text["each"]["sentence"] == f"{start}28.45 for a list of 4 answers against an empty one."
    many = re.fullmatch(
        re.escape(start)
        + r"([\d.,]+) for a list of 5 answers against an empty one, and to at most "
        + r"([\d.,]+) for 20\.",
        text["many"]["sentence"],
    )
    assert many and text["many"]["whole"] is True
    few, most = (float(x.replace(",", "")) for x in many.groups())
    assert few < most == text["many"]["factor"]


def test_every_list_of_items_on_their_own_by_enumeration():
    """Having or not having an item, and a list against the empty one: for every report."""
    document, found = apart()["each"], promised()["each each"]
    laws = {x: [*distribution(document, x).values()] for x in lists(4)}
    factors = [Fraction(1)] * 2
    for x in laws:
        for i in x:
            g = document["policy"]["level_of"][i]
            without = laws[tuple(j for j in x if j != i)]
            factors[g] = max(factors[g], extremes(laws[x], without))
    check_items(document, found, factors)
    for x, got in zip(laws, found["lists"], strict=True):
        exact = float(in_words(extremes(laws[x], laws[()])))
        assert got["factor"] == exact if len(x) < 2 else got["factor"] >= exact


@pytest.mark.parametrize("name", [*sampled()])
def test_promises_of_sampling_are_those_of_all_sets_and_reports(name):
    document, found = sampled()[name], promised()[name]
    of = document["policy"]["level_of"]
    factors, most = [Fraction(1)] * 2, Fraction(1)
    each = {x: Fraction(1) for x in lists(len(of))}
    for table in sampling_tables(document):
        for x in table:
            for i in x:
                without = table[tuple(j for j in x if j != i)]
                factors[of[i]] = max(factors[of[i]], extremes(table[x], without))
            each[x] = max(each[x], *(extremes(table[x], y) for y in table.values()))
        most = max(most, *each.values())
    check_items(document, found, factors)
    assert found["wholeEpsilon"] >= log(most) * (1 - 1e-12)
    if document["padding"] == 1 and name != "an item alone":  # a list may be one item
        assert found["wholeEpsilon"] == pytest.approx(log(most), rel=1e-12)
    for x, got in zip(each, found["lists"], strict=True):
        assert got["factor"] >= float(in_words(each[x])), x
    assert sum(x["whole"] for x in found["promises"] if x["level"] is None) == 1


# ---- the exact check -----------------------------------------------------------------------------


def changed(document, change):
    body = copy.deepcopy(document)
    change(body)
    return signed(body)


def verdict(document):
    """Python's, in the module's words."""
    try:
        Mechanism.from_document(document)
    except GuaranteeError:
        return "guarantee"
    except DiscreetError:
        return "mechanism"
    return "ok"


def verdicts(documents):
    return [x["code"] for x in node("verify.mjs", [{"document": x} for x in documents])]


def row(place, value, j=0, part=0):
    def change(body):
        body["parts"][part]["rows"][j][place] = value

    return change


def moved(mass, source, target, j=0, part=0):
    def change(body):
        body["parts"][part]["rows"][j][source] -= mass
        body["parts"][part]["rows"][j][target] += mass

    return change


def put(*path):
    *path, value = path

    def change(body):
        home = body
        for key in path[:-1]:
            home = home[key]
        home[path[-1]] = value

    return change


def gone(*path):
    def change(body):
        home = body
        for key in path[:-1]:
            home = home[key]
        del home[path[-1]]

    return change


BROKEN = {  # of "two parts": mass at tau = 0 is `mid`
    "more where own items are named": moved(G // 100, 2, 1),
    "more where two own items are named": moved(G // 100, 2, 1, j=1),
    "more in the part of the mild ones": moved(G // 100, 2, 1, part=1),
    "less where own items are named": moved(G // 2, 1, 2),
    "no limit": put("parts", 0, "limit", 0),
    "a limit of all": put("parts", 0, "limit", 7),
    "a negative limit": put("parts", 0, "limit", -2),
    "no limit, so that nothing is named": lambda body: body["parts"][0].update(
        limit=0, rows=[[0, 0, G, 0], [0, 0, G, 0]]
    ),
    "a limit of all, so that all is named": lambda body: body["parts"][0].update(
        limit=7, rows=[[1, 0, G, 0], [2, 0, G, 0]]
    ),
    "a sum that is too small": lambda body: row(2, body["parts"][0]["rows"][0][2] - 1)(body),
    "a sum that is too large": row(1, G),
    "a negative mass": moved(G, 1, 2),
    "tau beyond": row(0, 2),
    "tau before": row(0, -1),
    "tau beyond, all below": put("parts", 0, "rows", 0, [2, 0, 0, G]),
    "tau before, all above": put("parts", 0, "rows", 0, [-1, G, 0, 0]),
    "a mass that cannot be": moved(5, 1, 3),
    "a class that never comes": lambda body: put("parts", 0, "rows", 0, [0, G, 0, 0])(body),
    "a part that never comes": lambda body: (
        put("parts", 0, "chance", 0)(body), put("parts", 1, "chance", D)(body),
    ),
    "chances that do not sum": put("parts", 0, "chance", HALF - 1),
    "a smaller budget": put("policy", "levels", 1, "epsilon", "ln(29/10)"),
    "strict": put("policy", "strict", True),
    "the sensitive item in the part of the mild ones": put("parts", 1, "active", [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_hits_are_refused(name):
    good = hits()["two parts"]
    bad = changed(good, BROKEN[name])
    assert verdicts([good, bad]) == ["ok", "guarantee"]
    assert verdict(bad) == "guarantee"


def test_an_item_that_is_told_too_well_is_refused_though_sets_keep():
    """Row 1 says that nothing was named, row 2 that something was: an item that is not active takes
    the place of one that is, and shifts between them.
    """
    prime, limit = 11, 5
    first, second = (weights(prime, limit, j) for j in (1, 2))
    low = ceil(Fraction(first[1], prime) / 2 * G)
    other = ceil(Fraction(second[0], prime**2) / 2 * G)
    rows = [[0, low, G - low, 0], [0, G - other, other, 0]]
    levels = [("grave", "ln(2)", ["a"]), ("mild", "ln(100)", ["b", "c", "d"])]
    part = {"chance": D, "active": [0, 1], "limit": limit, "rows": rows}
    factors = [Fraction(2), Fraction(100)]
    assert keeps(prime, 2, part, factors)
    encoding = {"kind": "hits", "prime": prime}
    bad = signed(body_of(policy_of(levels), encoding, 2, [part]))
    told, _ = item_factors(bad)
    assert told > 2
    (found,) = node("verify.mjs", [{"document": bad}])
    assert found["code"] == verdict(bad) == "guarantee"
    assert 'an item of level "grave"' in found["message"]
    fine = f"ln({ceil(told * 1000)}/1000)"
    good = changed(bad, put("policy", "levels", 0, "epsilon", fine))
    assert verdicts([good]) == ["ok"]


def test_what_tells_most_is_bounded_by_the_sets_that_may_tell_least():
    """Two mild items may tell 100, but the empty set is told from all others by 2 at most: the
    largest density is too large for it, though not for the smallest.
    """
    prime, limit, s = 11, 3, 2
    flat, high = int(Fraction(limit, prime) * G), int(Fraction(limit**2, prime**2) * 5 / 2 * G)
    low = int((G - high) * Fraction(64, 64 + 48))
    rows = [[0, flat, G - flat, 0], [1, high, G - high - low, low]]
    part = {"chance": D, "active": [0, 1], "limit": limit, "rows": rows}
    levels = [("grave", "ln(2)", ["a"]), ("mild", "ln(100)", ["b", "c", "d"])]
    bad = signed(body_of(policy_of(levels), {"kind": "hits", "prime": prime}, s, [part]))
    values = densities(prime, part)
    assert 2 < max(values.values()) < 2 * 2 * min(values.values())
    assert max(item_factors(bad)[0], 1) < 2 and item_factors(bad)[1] < 100
    (found,) = node("verify.mjs", [{"document": bad}])
    assert found["code"] == verdict(bad) == "guarantee"
    assert "lists with 0 of the answers" in found["message"]
    good = changed(bad, put("policy", "levels", 0, "epsilon", "ln(13/5)"))
    assert verdicts([good]) == ["ok"]


def at_the_bound(document, name):
    """A mass that is as large as it may be, and one unit more."""
    good = copy.deepcopy(document)
    low, high = 0, good["parts"][0]["rows"][0][2]
    while high - low > 1:
        middle = (low + high) // 2
        passes = verdict(changed(good, moved(middle, 2, 1))) == "ok"
        low, high = (middle, high) if passes else (low, middle)
    return [changed(good, moved(low, 2, 1)), changed(good, moved(high, 2, 1))]


@pytest.mark.parametrize("name", ["any hit", "two parts", "three places", "strict"])
def test_hits_are_checked_at_their_bound(name):
    assert verdicts(at_the_bound(hits()[name], name)) == ["ok", "guarantee"]


EACH_BROKEN = {
    "own too large": put("parts", 0, "own", 0, 2 * (D // 3) + 2),
    "own too small": put("parts", 0, "own", 0, D // 6 - 1),
    "other too small": put("parts", 0, "other", 1, D // 4 - 1),
    "other too large": put("parts", 0, "other", 0, 3 * (D // 4) + 3),
    "own of 0": put("parts", 0, "own", 0, 0),
    "own of 1": put("parts", 0, "own", 0, D),
    "other of 0": put("parts", 0, "other", 0, 0),
    "silent": lambda body: body["parts"][0].update(own=[0, D // 2], other=[0, D // 3]),
    "a chance": put("parts", 0, "chance", 0, D - 1),
    "none": put("parts", 0, "none", D - 1),
}  # fmt: skip


@pytest.mark.parametrize("name", EACH_BROKEN)
def test_broken_items_on_their_own_are_refused(name):
    good = apart()["each"]
    bad = changed(good, EACH_BROKEN[name])
    assert verdicts([good, bad]) == ["ok", "guarantee"]
    assert verdict(bad) == "guarantee"


def test_items_on_their_own_are_checked_at_their_bound():
    good = apart()["each"]
    edge = [changed(good, put("parts", 0, "own", 0, 2 * (D // 3) + more)) for more in (0, 1)]
    assert verdicts(edge) == [verdict(x) for x in edge] == ["ok", "guarantee"]


def wide(body):
    body["policy"]["items"] += [f"item {k}" for k in range(9)]
    body["policy"]["level_of"] += [0] * 9


ILLEGIBLE = {
    "prime of 9": put("encoding", "prime", 9),
    "prime of 3": put("encoding", "prime", 3),
    "prime as text": put("encoding", "prime", "7"),
    "a prime beyond 2^31": put("encoding", "prime", 2147483659),
    "as many items as the prime": wide,
    "no prime": gone("encoding", "prime"),
    "another key of the encoding": put("encoding", "q", 5),
    "a padding of 0": put("padding", 0),
    "a padding that is not the rows'": put("padding", 3),
    "a row too few": gone("parts", 0, "rows", 1),
    "a row of three": put("parts", 0, "rows", 0, [0, 1, 2]),
    "a row of text": put("parts", 0, "rows", 0, 1, "5"),
    "a row that is none": put("parts", 0, "rows", 0, 3),
    "no rows": put("parts", 0, "rows", {}),
    "active of 2": put("parts", 0, "active", [1, 2]),
    "nothing active": put("parts", 0, "active", [0, 0]),
    "active too short": put("parts", 0, "active", [1]),
    "active as a truth": put("parts", 0, "active", [1, True]),
    "a chance per group": put("parts", 0, "chance", [HALF, HALF]),
    "a limit as text": put("parts", 0, "limit", "2"),
    "no limit at all": gone("parts", 0, "limit"),
    "another key of a part": put("parts", 0, "none", D),
    "no parts": put("parts", []),
    "notion avg": put("policy", "notion", "avg"),
    "a pair": put("policy", "pairs", [{"levels": ["grave", "mild"], "epsilon": "1"}]),
    "single input": lambda body: body["policy"].update(kind="single"),
    "kind each": put("policy", "kind", "each"),
    "another kind": put("policy", "kind", "list"),
    "no kind": gone("policy", "kind"),
    "strict as a number": put("policy", "strict", 0),
    "strict as nothing": put("policy", "strict", None),
    "not said whether strict": gone("policy", "strict"),
    "parts of bits": put("parts", [{"chance": [D, D], "own": [9, 9], "other": [9, 9], "none": D}]),
    "bits": put("encoding", {"kind": "bits"}),
    "each": put("encoding", {"kind": "each"}),
    "a share too few": gone("shares", 0),
}


def test_illegible_hits_are_refused_as_such():
    good = hits()["two parts"]
    bad = [changed(good, change) for change in ILLEGIBLE.values()]
    long = changed(good, put("padding", 65))
    long["parts"] = [{**part, "rows": part["rows"][:1] * 65} for part in long["parts"]]
    found = verdicts([good, *bad, signed(long)])
    names = ["good", *ILLEGIBLE, "a padding of 65"]
    assert dict(zip(names, found, strict=True)) == {
        name: "ok" if name == "good" else "mechanism" for name in names
    }
    for name, document in zip(ILLEGIBLE, bad, strict=True):
        assert verdict(document) == "mechanism", name


EACH_ILLEGIBLE = {
    "strict": put("policy", "strict", True),
    "a pair": put("policy", "pairs", [{"levels": ["grave", "mild"], "epsilon": "1"}]),
    "a padding": put("padding", 1),
    "two parts": lambda body: body["parts"].append(body["parts"][0]),
    "sets that are padded": lambda body: (
        body["policy"].update(kind="set"),
        body.update(padding=1),
    ),
    "single answers": lambda body: (
        body["policy"].update(kind="single"),
        body["parts"][0].pop("none"),
        body["shares"].pop(),
    ),
    "kind set": put("policy", "kind", "set"),
    "bits": put("encoding", "kind", "bits"),
    "a prime": put("encoding", "prime", 7),
    "no none": gone("parts", 0, "none"),
    "own of a level too few": put("parts", 0, "own", [HALF]),
    "a text": put("parts", 0, "own", 0, "1"),
}


def test_illegible_items_on_their_own_are_refused_as_such():
    good = apart()["each"]
    bad = [changed(good, change) for change in EACH_ILLEGIBLE.values()]
    found = verdicts([good, *bad])
    assert dict(zip(EACH_ILLEGIBLE, found[1:], strict=True)) == dict.fromkeys(
        EACH_ILLEGIBLE, "mechanism"
    )
    assert found[0] == "ok"
    for name, document in zip(EACH_ILLEGIBLE, bad, strict=True):
        assert verdict(document) == "mechanism", name


@pytest.mark.parametrize("prime", [5, 251, 65521, 65537, 67108859, 67108879, 2**31 - 1])
def test_primes_of_every_size(prime):
    document = sure(prime, items=4)
    assert verdicts([document]) == ["ok"]
    assert verdict(document) == "ok"


PAIRS = [{"levels": ["x", "y"], "epsilon": ""}, {"levels": ["x", "x"], "epsilon": "3"}]


def test_strict_binds_every_pair_with_the_smallest_budget():
    """Levels of 40 and an explicit pair of 3; unprotected pairs count, and are not told about."""
    at = round(D / (1 + np.exp(1.5)))
    q = D // 16
    told = {"own": [[9 * q, 12 * q]], "other": [[7 * q, 4 * q]]}
    loose = sampling(**told, pairs=PAIRS)
    fine = {"own": [[9 * q, D - at - 9]], "other": [[7 * q, at + 9]]}
    far = {"own": [[9 * q, D - at + 9]], "other": [[7 * q, at - 9]]}
    documents = [
        loose,
        sampling(**told, pairs=PAIRS, strict=True),
        sampling(**fine, pairs=PAIRS, strict=True),
        sampling(**far, pairs=PAIRS, strict=True),
        sampling(**far, pairs=PAIRS),
        sampling(**far, pairs=PAIRS[:1], strict=True),  # the smallest is 40
        sampling(**fine, pairs=PAIRS, strict=True, notion="avg"),
        sampling(**far, pairs=PAIRS, strict=True, notion="avg"),
    ]
    expected = ["ok", "ok", "ok", "guarantee", "ok", "ok", "ok", "guarantee"]
    assert verdicts(documents) == [verdict(x) for x in documents] == expected
    plain, strict = (
        [x["sentence"] for x in found["promises"]]
        for found in node("verify.mjs", [{"document": x} for x in documents[:2]])
    )
    assert strict == plain[:-1] and "chose not to protect" in plain[-1]
    assert plain[-2].startswith("Whole lists: ")


# ---- reports -------------------------------------------------------------------------------------


def test_reports_are_read_and_refused():
    rng, documents = random.Random(4), {**hits(), **apart(), "big": sure(2**31 - 1)}
    jobs = []
    for name, document in documents.items():
        good = [some_report(document, rng) for _ in range(20)]
        jobs += [(name, report, None) for report in good]
        jobs += [(name, x, "length") for x in (b"", good[0][:-1], good[0] + b"\0")]
        if document["encoding"]["kind"] == "hits":
            prime, size = document["encoding"]["prime"], document["padding"] + 2
            kinds = len(document["parts"])
            jobs.append((name, packed(document, kinds - 1, [prime - 1] * size), None))
            jobs.append((name, packed(document, 0, [0] * size), None))
            for place in range(size):
                values = [0] * size
                values[place] = prime
                jobs.append((name, packed(document, 0, values), "residue"))
                jobs.append((name, packed(document, kinds, values), "part"))
            jobs.append((name, packed(document, 255, [0] * size), "part"))
        elif (m := len(document["policy"]["items"])) % 8:
            jobs.append((name, (1 << m).to_bytes(-(-m // 8), "little"), "tail"))
    given = [{"mechanism": name, "report": report.hex()} for name, report, _ in jobs]
    found = node("reports.mjs", {"documents": documents, "reports": given})
    for (name, report, reason), got in zip(jobs, found, strict=True):
        if reason:
            assert got == {"refused": reason, "codes": ["report", "report"]}, (name, report)
        else:
            assert got["ones"] == got["named"] == named_by(documents[name], report)
            heads = documents[name]["encoding"]["kind"] == "hits"
            assert got["part"] == (report[0] if heads else 0)


def sure(prime, items=3000):
    """Own items are named but for a chance of 2^-31, others with one of 1 in 1,000 or so."""
    limit = max(1, prime // 1000)
    few = 2**20
    rows = [[j - 1, G - few * (1 + (j > 1)), few, few * (j > 1)] for j in (1, 2, 3)]
    part = {"chance": D, "active": [1], "limit": limit, "rows": rows}
    policy = policy_of([("all", f"ln({10**60})", [f"item {k}" for k in range(items)])])
    return signed(body_of(policy, {"kind": "hits", "prime": prime}, 3, [part]))


@pytest.mark.parametrize("prime", [3001, 65521, 65537, 67108859, 67108879, 2**31 - 1])
def test_arithmetic_is_exact_for_primes_of_every_size(prime):
    """The polynomial takes the values that were drawn for the own items: these are named."""
    document, rng = sure(prime), random.Random(prime)
    answers = [
        [0],
        [2999],
        [0, 2999],
        [2999, 0, 1],
        *(rng.sample(range(3000), n) for n in (1, 2, 3) for _ in range(60)),
    ]
    (rows,) = node("perturb.mjs", [{"document": document, "answers": answers, "each": 1}])
    rows = base64.b64decode(rows)
    size = len(rows) // len(answers)
    named = [named_by(document, rows[k : k + size]) for k in range(0, len(rows), size)]
    for answer, found in zip(answers, named, strict=True):
        assert set(answer) <= set(found)
    others = sum(map(len, named)) - sum(map(len, answers))
    chance = document["parts"][0]["limit"] / prime
    expected = chance * 3000 * len(answers)  # of uncorrelated items
    # about 550, as of Poisson's law: a false alarm of 4e-10
    assert abs(others - expected) < 7 * expected**0.5


# ---- reports, in distribution --------------------------------------------------------------------

PEOPLE = 80_000


@cache
def drawn_documents():
    """With 625 polynomials, or 16 lists of bits."""
    both, mild = [1, 1], [0, 1]
    rows = [("grave", "ln(9)", ["a", "b"]), ("mild", "ln(40)", ["c", "d"])]
    third = D // 3
    parts = [(both, 2, [0, 1], third), (mild, 3, [1, 0], D - third)]
    return {
        "hits": hits_of(rows, 5, 2, parts),
        "one part": hits_of(rows, 5, 2, [(mild, 2, [0, 1], D)]),
        "each": apart()["each"],
    }


ANSWERS = [[], [0], [3], [2, 3], [1, 2], [0, 1, 2], [0, 1, 2, 3]]


@cache
def drawn():
    documents = drawn_documents()
    given = [{"document": x, "answers": ANSWERS, "each": PEOPLE} for x in documents.values()]
    found = {}
    for name, rows in zip(documents, node("perturb.mjs", given), strict=True):
        table = np.frombuffer(base64.b64decode(rows), np.uint8)
        found[name] = table.reshape(len(ANSWERS), PEOPLE, -1)
    return found


@cache
def law_of(name, place, active_first=False):
    return distribution(drawn_documents()[name], ANSWERS[place], active_first)


@pytest.mark.parametrize("place", range(len(ANSWERS)), ids=str)
@pytest.mark.parametrize("name", ["hits", "one part", "each"])
def test_every_report_comes_as_often_as_its_chance_says(name, place):
    seen = seen_in(drawn()[name][place])
    exact = law_of(name, place)
    assert sum(exact.values()) == 1
    assert_distribution(seen, exact)
    twins = 0
    for other in range(len(ANSWERS)):  # what somebody else's reports would be
        truth = law_of(name, other)
        if truth != exact and missed(PEOPLE, truth, exact) < 1e-9:
            must_fail(assert_distribution, seen, truth)
            twins += 1
    assert twins >= 4


@pytest.mark.parametrize("place", [5, 6])
def test_a_set_is_sampled_before_activity_is_looked_at(place):
    """Of three or four items two are kept, whatever is active; the other order would be seen."""
    wrong = law_of("one part", place, active_first=True)
    assert missed(PEOPLE, wrong, law_of("one part", place)) < 1e-9
    must_fail(assert_distribution, seen_in(drawn()["one part"][place]), wrong)
    same = law_of("one part", 4, active_first=True)  # two items: nothing is left out
    assert same == law_of("one part", 4)


def test_the_wrong_order_breaks_the_promise():
    """Or the test above would be about nothing: leaving out before sampling tells two sets apart
    by more than a set of two sensitive ones and a mild one allows.
    """
    document = drawn_documents()["one part"]
    right, wrong = (
        extremes(
            [*distribution(document, [0, 1, 2], first).values()],
            [*distribution(document, [], first).values()],
        )
        for first in (False, True)
    )
    assert wrong > right


SCRIPTED = hits_of(TWO, 7, 2, [([1, 1], 2, [0, 0], HALF), ([0, 1], 3, [0, 1], HALF)])


def test_draws_are_compared_with_the_masses_themselves():
    """One item, part 0: at the last mass of a class it is named, at the next one it is not. What is
    drawn: the part, 52 bits of mass, the number in its class, which are named, the value, the free
    coefficients.
    """
    high = SCRIPTED["parts"][0]["rows"][0][1]
    cases, expected = [], []
    for mass, named in ((0, 1), (high - 1, 1), (high, 0), (G - 1, 0)):
        for value in (0, 1) if named else (2, 6):
            free = [3, 0, 6]
            words = [HALF - 1, mass // D << 12 | 0xFFF, mass % D, 0, *[0] * named]
            words += [value - 2 * (not named), *free]
            cases.append({"answer": [0], "draws": words})
            expected.append((value, free))
    (found,) = node("scripted.mjs", [{"document": SCRIPTED, "cases": cases}])
    for got, (value, free) in zip(found, expected, strict=True):
        report = bytes.fromhex(got["report"])
        poly = [value, 0, 0, 0]
        for k, c in enumerate(free):  # (x - 1) times the free polynomial
            poly[k] -= c
            poly[k + 1] += c
        assert report == packed(SCRIPTED, 0, [c % 7 for c in poly])


def test_draws_of_an_incomplete_round_are_thrown_away():
    """In the number of a class: of 24 ways to be named 20 name one item of two."""
    words = [HALF - 1, 0, 0], [0, 1, 1, 3, 6, 2]
    limit = D // 24 * 24
    assert limit < D
    draws = [[*words[0], *thrown, *words[1]] for thrown in ([], [limit], [D - 1, limit])]
    draws += [[*words[0], limit - 24, *words[1][1:]], [*words[0], limit - 1, *words[1][1:]]]
    cases = [{"answer": [0, 1], "draws": x} for x in draws]
    (found,) = node("scripted.mjs", [{"document": SCRIPTED, "cases": cases}])
    first, *same, other = (x["report"] for x in found)
    assert {*same} == {first} != {other}  # the last: both are named


# ---- what a report means, in words ---------------------------------------------------------------


def percent(share):
    return f"{100 * share:.{1 if share < 0.1 else 0}f} %"


def chances(shares):
    found = [percent(float(x)) for x in (min(shares), max(shares))]
    return " to ".join(dict.fromkeys(found))


MEANT = {"two parts": 1, "any hit": 0, "one place": 0, "more places than items": 0, "groups": 1}


@pytest.mark.parametrize("name", MEANT)
def test_what_a_report_of_hits_means(name):
    document, k = hits()[name], MEANT[name]
    s, m, kinds = document["padding"], len(document["policy"]["items"]), len(document["parts"])
    part, prime = document["parts"][k], document["encoding"]["prime"]
    groups = [document["groups"][x] for x in document["policy"]["level_of"]]
    among = sum(part["active"][g] for g in groups)
    own = chances([own_chance(document, part, j) for j in range(1, min(s, among) + 1)])
    other = percent(part["limit"] / prime)
    report = packed(document, k, [0] * (s + 2))  # p = 0: all are named
    given = [{"mechanism": name, "report": report.hex()}]
    (found,) = node("reports.mjs", {"documents": {name: document}, "reports": given})
    these = ", if it is one of these," if among < m else ""
    are, count = ("is", "counts") if s == 1 else ("are", "count")
    many = f"; if more than {s} {are} yours, {s} of them, drawn at random, {count} as yours"
    rest = [f"says nothing about {m - among} of the answers"] if among < m else []
    rest += [f"is one of {kinds} kinds, drawn at random whatever your answers are"] * (kinds > 1)
    assert found["named"] == [i for i, g in enumerate(groups) if part["active"][g]]
    assert found["sentence"] == (
        f"The report is a row of numbers that stands for a random choice among {among} answers; it "
        f"names {among}: one of yours{these} is named with a chance of {own}, one that is not yours"
        f" with about {other}{many if m > s else ''}."
        + (f" It {', and '.join(rest)}." if rest else "")
    )


def test_what_a_report_of_items_on_their_own_means():
    given = [{"mechanism": "each", "report": "05"}]
    documents = {"each": apart()["each"]}
    (found,) = node("reports.mjs", {"documents": documents, "reports": given})
    assert found["named"] == [0, 2]
    assert found["sentence"] == (
        "For each of 4 answers it was drawn at random whether the report names it; it names 2: one "
        "of yours is named with a chance of 50 % to 75 %, one that is not yours with about 33 %."
    )


# ---- what Python designs -------------------------------------------------------------------------


@cache
def designed():
    rare, rest = ["HIV", "hepatitis"], [f"item {k}" for k in range(60)]
    rows = [("rare", 1, rare), ("odd", "ln(4)", rest[:7]), ("common", 2, rest[7:])]
    one = [("all", "ln(3)", rest[:9])]
    found = [
        d.design(d.Policy.from_levels(x, kind="set", padding=s, **more), "hits", goal="total")
        for x in (rows, one)
        for s in (2, 5)
        for more in ({}, {"strict": True})
    ]
    found += [
        d.design(d.Policy.from_levels(x, kind="each", notion=notion))
        for x in (rows, one, [("few", 1, ["a", "b"])])
        for notion in ("min", "avg")
    ]
    many = [("rare", 1, ["HIV", "flu"]), ("common", 2, [f"item {k}" for k in range(7000)])]
    return [*found, d.design(d.Policy.from_levels(many, kind="set", padding=2))]


def test_designs_of_python_are_accepted_and_promise_the_same():
    kinds = {x.encoding.kind for x in designed()}
    assert kinds == {"hits", "each"}, kinds
    some = [[], [0], [0, 1], [1], [1, 0]]
    given = [{"document": x.to_document(), "lists": some} for x in designed()]
    for mechanism, found in zip(designed(), node("sets.mjs", given), strict=True):
        guarantee = mechanism.guarantee()
        assert [x["sentence"] for x in found["promises"]] == guarantee.sentences()
        assert found["levelEpsilons"] == pytest.approx(guarantee.epsilons, rel=1e-11)
        assert found["wholeEpsilon"] == pytest.approx(guarantee.ldp_epsilon, rel=1e-11)
        for items, got in zip(some, found["lists"], strict=True):
            assert got["sentence"] == guarantee.list_sentence(items)
            told = in_words(guarantee.list_factor(items))
            assert (f" by at most a factor of {told}." in got["sentence"]) == (
                bool(items) or mechanism.policy.kind == "set"
            )


def test_reports_of_python_are_read_alike():
    documents = {str(k): x.to_document() for k, x in enumerate(designed())}
    jobs = []
    for name, mechanism in zip(documents, designed(), strict=True):
        reports = [mechanism.perturb(x) for x in ([], [0], [0, 1], [1, 0]) for _ in range(3)]
        jobs += [(name, mechanism, bytes(x)) for x in reports]
    given = [{"mechanism": name, "report": report.hex()} for name, _, report in jobs]
    found = node("reports.mjs", {"documents": documents, "reports": given})
    for (name, mechanism, report), got in zip(jobs, found, strict=True):
        assert got["named"] == named_by(documents[name], report)
        assert got["named"] == sorted(int(x) for x in mechanism.coder.named(report))
