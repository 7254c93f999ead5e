"""Budgets of ordered pairs in the product's own integers: every report of small mechanisms, and
what the exact check says of integers that somebody changed.
"""

import copy
import math
import random
from fractions import Fraction
from itertools import permutations

import exhaustive
import numpy as np
import ordered
import pytest
from exhaustive import D, breaks, distribution, violations, worst_excess

import discreet as d
from discreet.check.document import fingerprint
from discreet.encodings import Fixed
from discreet.errors import GuaranteeError, MechanismError

NAMES = [*ordered.POLICIES, *ordered.PLAIN]
SINGLE = [name for name in NAMES if name != "each"]
BLIND = "six-mixed-ticket"  # its lone item is silent, and tickets do not tell how many hold it


@pytest.fixture(scope="module")
def laws():
    """Per mechanism its reports, and Pr(report | item) in fractions by the coder's own law."""
    found = {}
    for name, mechanism in ordered.mechanisms().items():
        reports = ordered.all_reports(mechanism)
        held = [(i,) for i in range(mechanism.m)]
        held += [(), tuple(range(mechanism.m))] if mechanism.policy.kind.lists else []
        law = {x: [mechanism.coder.law(y, x) for y in reports] for x in held}
        found[name] = reports, law
    return found


# ---- all reports ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_sum_to_one(name, laws):
    reports, law = laws[name]
    assert len(set(reports)) == len(reports)
    assert all(sum(row) == 1 and min(row) >= 0 for row in law.values())


@pytest.mark.parametrize("name", SINGLE)
def test_the_law_is_what_the_enumeration_finds(name, laws):
    (reports, law), document = laws[name], ordered.mechanisms()[name].to_document()
    for (i,), row in law.items():
        chances = {y: p for y, p in zip(reports, row, strict=True) if p}
        assert chances == distribution(document, i)


def excess(mechanism, law):
    """The largest Pr(y|i) / (e^r Pr(y|j)) over ordered pairs with a budget; None: infinite."""
    policy, worst = mechanism.to_document()["policy"], Fraction(0)
    for (i,), (j,) in permutations([x for x in law if len(x) == 1], 2):
        r = exhaustive.allowed(policy, i, j)
        if r is None:
            continue
        for p, q in zip(law[i,], law[j,], strict=True):
            if p and not q:
                return None
            worst = max(worst, p / q / exhaustive.factor(r)[1]) if p else worst
    return worst


@pytest.mark.parametrize("name", SINGLE)
def test_every_ordered_pair_keeps_its_budget(name, laws):
    mechanism = ordered.mechanisms()[name]
    worst = excess(mechanism, laws[name][1])
    assert worst is not None and 0.99 < worst <= 1  # so that little more would be too much
    document = mechanism.to_document()
    assert not breaks(document) and worst_excess(document) < 1e-9


@pytest.mark.parametrize("name", SINGLE)
def test_the_other_direction_is_free(name, laws):
    """The twin: where a direction has no budget, it has no bound either, and is used."""
    mechanism, (_, law) = ordered.mechanisms()[name], laws[name]
    r = np.array([[mechanism.policy.pair_epsilon(i, j) for j in mechanism.policy.level_of]
                  for i in mechanism.policy.level_of])  # fmt: skip
    given_away = any(
        p and not q
        for i, j in permutations(range(mechanism.m), 2)
        if r[i, j] == np.inf
        for p, q in zip(law[i,], law[j,], strict=True)
    )
    assert given_away == bool(np.isinf(r[~np.eye(mechanism.m, dtype=bool)]).any())


def test_every_item_alone_is_protected_one_way(laws):
    """Having an item raises the chance of a report by at most e^eps; not having it is known."""
    mechanism = ordered.mechanisms()["each"]
    document = mechanism.to_document()
    of = exhaustive.sets(document)
    rows = exhaustive.in_one_unit({x: of(x) for x in exhaustive.subsets(mechanism.m)})
    reports, law = laws["each"]
    for (i,), row in [(x, law[x]) for x in law if len(x) == 1]:
        assert dict(zip(reports, row, strict=True)) == {
            y: of(frozenset([i])).get(y, Fraction(0)) for y in reports
        }
    for x, row in rows.items():
        for i in x:
            level = document["policy"]["levels"][document["policy"]["level_of"][i]]
            most = exhaustive.factor(exhaustive.budget(level["epsilon"]))[1]
            without = rows[x - {i}]
            assert most * Fraction(999, 1000) < exhaustive.apart(row, without) <= most
            assert any(q and not p for p, q in zip(row, without, strict=True))


@pytest.mark.parametrize("name", [name for name in NAMES if name != BLIND])
def test_estimates_are_unbiased(name, laws):
    mechanism, (reports, law) = ordered.mechanisms()[name], laws[name]
    scores = ordered.scored(mechanism, reports)
    for held, row in law.items():
        mean = np.array([float(p) for p in row]) @ scores
        truth = np.isin(np.arange(mechanism.m), held)
        assert np.abs(mean - truth).max() < 1e-9


def test_a_biased_estimate_is_seen(laws):
    """The twin: the scores of another mechanism of the same shape."""
    mechanisms = ordered.mechanisms()
    other = d.design(ordered.leveled((1, 4), ("ln(21/5)", None)), "subset")
    reports, law = laws["one-way (1, 4)"]
    assert [x.ints.other for x in other.parts] == [
        x.ints.other for x in mechanisms["one-way (1, 4)"].parts
    ]
    mean = np.array([float(p) for p in law[1,]]) @ ordered.scored(other, reports)
    assert np.abs(mean - np.eye(5)[1]).max() > 1e-3


def test_the_mixed_table_has_the_error_of_the_specification():
    found = ordered.mechanisms()["mixed"]
    assert found.expected_mse() == pytest.approx(6.3582, abs=5e-5)
    assert found.certificate.gap < 1e-5


def realised(law, level_of, one_way):
    """Per level the largest ln Pr(y|i) / Pr(y|j) of its answers, either way unless one-way."""
    found = [0.0] * (max(level_of) + 1)
    for i, j in permutations(range(len(level_of)), 2):
        both = [(p, q) for p, q in zip(law[i,], law[j,], strict=True) if p]
        ratio = math.inf if not all(q for _, q in both) else math.log(max(p / q for p, q in both))
        found[level_of[i]] = max(found[level_of[i]], ratio)
        if not one_way:
            found[level_of[j]] = max(found[level_of[j]], ratio)
    return found


@pytest.mark.parametrize("name", SINGLE)
def test_the_numbers_that_are_told_are_realised(name, laws):
    mechanism, (_, law) = ordered.mechanisms()[name], laws[name]
    guarantee, level_of = mechanism.guarantee(), mechanism.policy.level_of
    one_way = not mechanism.policy.is_mutual
    assert guarantee.epsilons == pytest.approx(realised(law, level_of, one_way))
    assert guarantee.level_epsilons == pytest.approx(realised(law, level_of, False))
    assert guarantee.ldp_epsilon == pytest.approx(max(realised(law, level_of, False)))


def test_shares_of_zero_still_give_estimates(laws):
    """Shares of 0 are allowed in a file; estimates are unbiased at any shares."""
    document = ordered.mechanisms()["one-way (1, 4)"].to_document()
    document["shares"] = [D, 0]
    scores = ordered.scored(d.Mechanism.from_document(signed(document)), laws["one-way (1, 4)"][0])
    assert np.isfinite(scores).all()


# ---- integers that somebody changed --------------------------------------------------------------


def signed(document):
    body = {key: value for key, value in document.items() if key != "fingerprint"}
    return {**body, "fingerprint": fingerprint(body)}


def accepted(document):
    """What the package says of a document that is well formed."""
    try:
        d.Mechanism.from_document(signed(document))
    except GuaranteeError:
        return False
    return True


def moved(document, group, source, target, chance):
    """A copy with chance of a group moved between parts; a group without a chance is silent."""
    document = copy.deepcopy(document)
    first, second = document["parts"][source], document["parts"][target]
    first["chance"][group] -= chance
    second["chance"][group] += chance
    if not first["chance"][group]:
        first["own"][group] = first["other"][group] = 0
    return document


def tampered(document, draw):
    """Copies with one fault: 2 % of a chance moved, a zero planted, certainty planted."""
    parts, count = document["parts"], len(document["parts"][0]["chance"])
    o, g = draw.randrange(len(parts)), draw.randrange(count)
    sources = [k for k, part in enumerate(parts) if part["chance"][g] > 0 and k != o]
    if sources:
        source = draw.choice(sources)
        chance = parts[source]["chance"][g]
        yield moved(document, g, source, o, min(chance, D // 50))
        if any(x for k, x in enumerate(parts[source]["chance"]) if k != g):
            yield moved(document, g, source, o, chance)
    spoken = [(k, h) for k, part in enumerate(parts) for h in range(count) if part["own"][h]]
    if spoken:
        k, h = draw.choice(spoken)
        found = copy.deepcopy(document)
        found["parts"][k]["own"][h] = D
        yield found


BUDGETS = (0.4, 0.7, 1, "ln(3)", 1.5, 2)


def random_policy(kind, draw):
    """A small policy of one class."""
    sizes = [draw.choice((1, 1, 2, 3)) for _ in range(draw.randint(2, 3))]
    eps = [draw.choice(BUDGETS) for _ in sizes]
    if kind == "scale":
        points, step = draw.randint(2, 5), draw.choice(BUDGETS)
        policy = ordered.scale(points, step)
        return ordered.scale(points, step, str(2 * step)) if (
            points > 3 and draw.random() < 0.5 and not isinstance(step, str)
        ) else policy  # fmt: skip
    if kind == "blocks":
        return ordered.leveled([*sizes[:-1], sizes[-1] + 1], eps, "blocks")
    if kind == "open":
        return ordered.leveled(sizes, [*eps[:-1], None])
    if kind == "one-way":
        return ordered.leveled(sizes, eps)
    if kind == "min":  # with a pair of one direction
        return ordered.leveled(sizes, eps, "min", pairs=[("l1", "l0", draw.choice(BUDGETS), True)])
    r = [[draw.choice((*BUDGETS, None, None)) for _ in sizes] for _ in sizes]
    r[0][-1] = r[0][0] = 1  # so that something is protected
    return ordered.table(r, sizes)


CLASSES = ("open", "one-way", "blocks", "scale", "table", "min")


def test_the_check_says_what_the_enumeration_says():
    """60 random policies of every class; their designs pass, and of tampered integers both say the
    same. Where levels share a group the check is of the group's smallest budget: it may be
    stricter, and never less strict.
    """
    draw, verdicts = random.Random(27), {kind: [] for kind in CLASSES}
    for k in range(60):
        kind = CLASSES[k % len(CLASSES)]
        mechanism = d.design(random_policy(kind, draw), "subset")
        assert isinstance(mechanism.encoding, Fixed)
        document = mechanism.to_document()
        assert not breaks(document)
        own_groups = len(mechanism.group_sizes) == len(mechanism.policy.levels)
        for fault in tampered(document, draw):
            kept, passes = not breaks(fault), accepted(fault)
            assert passes <= kept, (k, kind, violations(fault))
            if own_groups:
                assert passes == kept, (k, kind)
            verdicts[kind].append(passes)
    for kind, found in verdicts.items():
        assert len(found) >= 10 and False in found, (kind, found)
    assert sum(map(sum, verdicts.values())) >= 10  # no budget forbids some of it


# ---- faults by hand ------------------------------------------------------------------------------


def document_of(name):
    return ordered.mechanisms()[name].to_document()


def moves(document):
    """2 % of a group's chance, from every part that has it to every other one."""
    parts = document["parts"]
    for source, target in permutations(range(len(parts)), 2):
        for group, chance in enumerate(parts[source]["chance"]):
            if chance > D // 50:
                yield moved(document, group, source, target, D // 50)


@pytest.mark.parametrize("name", [name for name in SINGLE if name != "blocks 3 x 3"])
def test_a_chance_that_moves_is_seen(name):
    document, verdicts = document_of(name), []
    for fault in moves(document):
        try:
            passes = accepted(fault)
        except MechanismError as error:  # a part of plain answers holds nothing else
            assert "as they are" in str(error)
            continue
        assert passes == (not breaks(fault))
        verdicts.append(passes)
    assert False in verdicts


def test_chance_between_blocks_may_move():
    document = document_of("blocks 3 x 3")
    for fault in moves(document):
        assert not breaks(fault) and accepted(fault)
    own = copy.deepcopy(document)
    o = next(k for k, part in enumerate(document["parts"]) if part["own"][0])
    own["parts"][o]["own"][0] += D // 50
    assert breaks(own) and not accepted(own)


def test_a_direction_that_is_swapped_is_seen():
    document = document_of("mixed")
    fault = copy.deepcopy(document)
    fault["policy"]["pairs"][-1]["levels"].reverse()  # l1 over l2 becomes l2 over l1
    assert breaks(fault) and not accepted(fault)
    both = copy.deepcopy(document)
    del both["policy"]["pairs"][-1]["one_way"]
    assert breaks(both) and not accepted(both)


@pytest.mark.parametrize("name", ["one-way (2, 2, 3)", "one-way, none open", "blocks 3 x 3"])
def test_certainty_is_seen_where_a_budget_forbids_it(name):
    document = document_of(name)
    o = next(k for k, part in enumerate(document["parts"]) if part["own"][0])
    fault = copy.deepcopy(document)
    fault["parts"][o]["own"][0] = D
    assert breaks(fault) and not accepted(fault)


def test_certainty_is_kept_where_no_budget_forbids_it():
    document = document_of("one-way (1, 4)")
    assert any(part["own"][1] == D for part in document["parts"])
    assert any(part["chance"][0] == 0 for part in document["parts"])
    closed = copy.deepcopy(document)
    closed["policy"]["levels"][1]["epsilon"] = "9"
    assert breaks(closed) and not accepted(closed)


def test_neighbours_of_a_scale_and_its_ends():
    document = document_of("scale of 5")
    capped = copy.deepcopy(document)
    capped["policy"]["cap"] = 3
    assert breaks(capped) and not accepted(capped)
    swapped = copy.deepcopy(document)
    for part in swapped["parts"]:
        part["chance"] = [part["chance"][k] for k in (0, 2, 1, 3, 4)]
    assert breaks(swapped) and not accepted(swapped)


# ---- any integers --------------------------------------------------------------------------------

LOGS = ("ln(2)", "ln(3)", "ln(9/2)")


def random_document(seed):
    """Any chances, zeros among them, for policies of every class and all encodings."""
    draw = random.Random(seed)
    notion = draw.choice(("one-way", "one-way", "blocks", "scale", "min"))
    kind = draw.choice(("fixed", "bits", "ticket"))
    sizes = draw.choice(([1, 2], [2, 2], [1, 3], [1, 1, 2]))
    if notion == "scale":
        sizes = [1] * draw.randint(2, 4)
    count = len(sizes)
    names = [f"i{k}" for k in range(sum(sizes))]
    levels = names if notion == "scale" else [f"l{g}" for g in range(count)]
    eps = [draw.choice(LOGS)] * count if notion == "scale" else [draw.choice(LOGS) for _ in sizes]
    if notion == "one-way" and draw.random() < 0.6:
        eps[-1] = "open"
    pairs = []
    if notion in ("one-way", "min") and (notion == "min" or draw.random() < 0.3):
        first, second = draw.sample(levels, 2)
        epsilon = draw.choice((*LOGS, ""))
        pairs = [{"levels": [first, second], "epsilon": epsilon, "one_way": True}]
    policy = {
        "question": "", "kind": "single", "notion": notion, "items": names,
        "level_of": [g for g, size in enumerate(sizes) for _ in range(size)],
        "levels": [{"name": x, "epsilon": e} for x, e in zip(levels, eps, strict=True)],
        "pairs": pairs,
    }  # fmt: skip
    if notion == "scale":  # the check of a cap of 1 is stricter for tickets and bits
        policy["cap"] = draw.choice((0, *range(2, count)))
    columns = [random_column(draw, draw.choice((1, 2, 3)) if seed % 4 else 2) for _ in sizes]
    many = max(map(len, columns))
    chances = [[*column, *[0] * (many - len(column))] for column in columns]
    parts = [random_part(draw, kind, sizes, [x[o] for x in chances]) for o in range(many)]
    if kind == "ticket" and draw.random() < 0.5:
        last = parts[-1]
        last["own"] = [D if x else 0 for x in last["chance"]]
        last["other"] = [0] * count
    return {
        "format": "discreet-mechanism/3", "policy": policy, "model": "subset", "prior": "uniform",
        "encoding": {"kind": kind, **({"q": 3, "t": 2} if kind == "ticket" else {})}, "padding": 0,
        "groups": list(range(count)), "shares": [D - count + 1, *[1] * (count - 1)],
        "parts": parts,
    }  # fmt: skip


def random_column(draw, parts):
    """Chances of so many parts."""
    cuts = sorted(draw.choice((D // 4, D // 2, D // 3)) for _ in range(parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, D], strict=True)]


def random_part(draw, kind, sizes, chances):
    """Who can use it speaks, mostly; sometimes the own item is always named."""
    part = {"chance": chances, "own": [], "other": []}
    for size, chance in zip(sizes, chances, strict=True):
        base = {"fixed": size, "bits": D, "ticket": 3}[kind]
        other = draw.randint(1, base - 1) if base > 1 and chance and draw.random() < 0.7 else 0
        odds = draw.choice((0.8, 1, 1.5, 2.5, 4))
        own = round(D * other * odds / (other * odds + base - other))
        part["own"].append(D if other and draw.random() < 0.2 else own)
        part["other"].append(other)
    return part


def test_the_check_and_the_enumeration_agree_on_any_integers():
    """1,500 documents; in bits and tickets a lone item has two states, and none other to tell."""
    verdicts = {}
    for seed in range(1500):
        document = random_document(seed)
        if not all(any(part["chance"]) for part in document["parts"]):
            continue
        passes, kept = accepted(document), not breaks(document)
        assert passes == kept, (seed, violations(document))
        key = document["policy"]["notion"], document["encoding"]["kind"]
        verdicts.setdefault(key, set()).add(passes)
    assert len(verdicts) == 12
    assert sum(found == {True, False} for found in verdicts.values()) >= 11, verdicts
