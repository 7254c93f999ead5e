"""The check of picks, sets that are reported as subsets of fixed size, in exact integer arithmetic.

As in exact.py: no floating point, no solver, no numpy; this file is meant to be audited.

Public chances first draw a *cut*: some groups, whose items are *active*, in one or several *blocks*
of groups. Parts with the same blocks belong to the same cut. A person with a set of at most s items
has the *class* j = (j_1, j_2, ...), the number of own active items of every block. By row j of the
cut a part and a *bunch* are drawn, some of the vectors n = (n_1, n_2, ...) that say how many own
items of every block are named; then a vector of the bunch, as often as a uniform subset would name
so many; then in every block n_b of the own items and k_b - n_b of the others, every choice alike.
So against uniform subsets of k_b of the m_b items of every block the density of a report is a
function of its part, j and n alone:

    f_j(n) = mass / (2^52 chance that uniform subsets have their n in the bunch)

A set of more than s items is first cut to a uniform subset of s, whatever is active.

What is proved, for any two sets x, x' and every report y, with the paper's budget eps_x of a set:

    Pr(y | x) <= min(e^{eps_x}, e^{eps_x'}) Pr(y | x')

from max f_j <= R_j LO and HI <= R_j min f_j for every j, as for hits (exact_sets.py): HI and LO
are the extremes of all densities of the part, R_j = (sum_b j_b E_b + (s - sum_b j_b) E_1) / s, E_1
at most e^{smallest budget} and E_b at most e^{smallest budget of a level in block b}. The chance of
the cut is the same for everybody and drops out. And that having or not having an item changes the
chance of any report by at most e^{eps of its level} (`item_factors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count, product
from math import comb, perm, prod
from typing import NamedTuple

from discreet.check.exact import D, Violation, level_factors
from discreet.check.exact_sets import TOTAL, worst
from discreet.policy import Policy

Vector = tuple[int, ...]  # a number of items per block
Row = Sequence[Sequence[int]]  # bunches: their mass, then the places of their vectors in `possible`
Densities = dict[Vector, dict[Vector, Fraction]]  # f_j(n), of what can happen


class PickChances(NamedTuple):
    """The integers of one part."""

    chance: int  # of the cut, over 2^32, whatever the answer
    blocks: Sequence[int]  # per group, the block its items are in, from 1; 0: they are never named
    sizes: Sequence[int]  # k, per block the number of items that every report names
    # of every class (`classes`), empty where nobody is in it; masses over 2^52, of all parts of the
    # cut
    rows: Sequence[Row]


class Bunch(NamedTuple):
    """What can be named with one density."""

    mass: int
    vectors: tuple[Vector, ...]
    weights: tuple[int, ...]  # of the vectors


# ---- one part ------------------------------------------------------------------------------------


def classes(blocks: int, s: int) -> list[Vector]:
    """The classes of people with at most s active items, in the order of the rows."""
    if not blocks:
        return [()]
    return [(j, *rest) for j in range(s + 1) for rest in classes(blocks - 1, s - j)]


def possible(m: Sequence[int], k: Sequence[int], j: Vector) -> list[Vector]:
    """How many of j own items of every block a subset of k of m can name, in their order."""
    ends = zip(m, k, j, strict=True)
    return list(product(*(range(max(0, b + c - a), min(b, c) + 1) for a, b, c in ends)))


def weight(m: Sequence[int], k: Sequence[int], j: Vector, n: Vector) -> int:
    """How often uniform subsets name n of j own items: out of `ways`."""
    blocks = zip(m, k, j, n, strict=True)
    return prod(comb(c, x) * perm(b, x) * perm(a - b, c - x) for a, b, c, x in blocks)


def ways(m: Sequence[int], j: Vector) -> int:
    """The sum of the weights of all n."""
    return prod(perm(a, c) for a, c in zip(m, j, strict=True))


def bunches(m: Sequence[int], k: Sequence[int], j: Vector, row: Row) -> Iterator[Bunch]:
    """The bunches of a row."""
    vectors = possible(m, k, j)
    for mass, *places in row:
        mine = tuple(vectors[place] for place in places)
        yield Bunch(mass, mine, tuple(weight(m, k, j, n) for n in mine))


def padding(part: PickChances) -> int:
    """s, from the number of its classes."""
    blocks = len(part.sizes)
    return next(s for s in count(1) if comb(s + blocks, blocks) >= len(part.rows))


def densities(m: Sequence[int], part: PickChances) -> Densities:
    """f_j(n) of the classes that people can be in."""
    return {
        j: {
            n: Fraction(bunch.mass * ways(m, j), TOTAL * sum(bunch.weights))
            for bunch in bunches(m, part.sizes, j, row)
            for n in bunch.vectors
        }
        for j, row in zip(classes(len(m), padding(part)), part.rows, strict=True)
        if row
    }


def laws(m: Sequence[int], k: Sequence[int], f: Densities) -> Densities:
    """The chance of the part and of n named own items, given the cut and the class j."""
    return {
        j: {n: x * weight(m, k, j, n) / ways(m, j) for n, x in row.items()} for j, row in f.items()
    }


def extremes(f: Densities) -> tuple[Fraction, Fraction]:
    """The largest and the smallest density."""
    values = [value for row in f.values() for value in row.values()]
    return max(values), min(values)


def item_factors(
    f: Densities, m: Sequence[int], s: int, others: int
) -> tuple[list[Fraction], Fraction]:
    """By how much having or not having an item changes the chance of any report that exists: an
    item of every block, and another, of so many that are not active.

    With at most s items beside it, it is one more of its class. Else it takes the place of one of
    s + 1, all alike; that changes most where there are just s beside it (exact_sets.item_factors).
    """
    held, lacked = [[Fraction(1)] for _ in m], [Fraction(1)]
    for j, row in f.items():
        idle = s - sum(j)
        for n, value in row.items():
            for b, of_block in enumerate(held):
                less = f.get(added(j, b, -1), {})
                of_block += [value / less[x] for x in (n, added(n, b, -1)) if x in less]
                if idle <= others and j[b] < m[b]:  # else nobody has s items of this class
                    ratios = (_replaced(f, j, n, idle, b, h) for h in (0, 1))
                    of_block += [x for x in ratios if x is not None]
            if idle < others:
                lacked += [x for x in (_replaced(f, j, n, idle, None, 0),) if x is not None]
    factors = [worst(ratios) for ratios in (*held, lacked)]
    return factors[:-1], factors[-1]


def _replaced(
    f: Densities, j: Vector, n: Vector, idle: int, block: int | None, h: int
) -> Fraction | None:
    """Law of x over law of x - i, where x - i has s items, of class j, and n are named: i takes the
    place of one of them or stays out, all alike. block: that of i, None where it is not active; h:
    whether i is named. None if there is no such report.
    """
    joined = added(j, block, 1), added(n, block, h)
    places = [(idle, *joined)]  # where the item whose place is taken is not active
    for b in range(len(j)):
        out = added(joined[0], b, -1)
        places += [(n[b], out, added(joined[1], b, -1)), (j[b] - n[b], out, joined[1])]
    mean = Fraction(0)  # s times the mean over the item whose place is taken
    for times, class_, named in places:
        if times:
            value = f.get(class_, {}).get(named)
            if value is None:
                return None
            mean += times * value
    return (1 + mean / f[j][n]) / (sum(j) + idle + 1)


def added(vector: Vector, block: int | None, more: int) -> Vector:
    """So many more in one block."""
    if block is None:
        return vector
    return (*vector[:block], vector[block] + more, *vector[block + 1 :])


def cuts(parts: Sequence[PickChances]) -> list[list[int]]:
    """The places of the parts of every cut: those with the same blocks."""
    by_blocks: dict[tuple[int, ...], list[int]] = {}
    for o, part in enumerate(parts):
        by_blocks.setdefault(tuple(part.blocks), []).append(o)
    return list(by_blocks.values())


def active_items(part: PickChances, sizes: Sequence[int]) -> Vector:
    """m, the number of items of every block, from the sizes of the groups."""
    return _block_sizes(sizes, part.blocks, len(part.sizes))


def _block_sizes(sizes: Sequence[int], of: Sequence[int], count: int) -> Vector:
    both = list(zip(sizes, of, strict=True))
    return tuple(sum(size for size, b in both if b == block + 1) for block in range(count))


# ---- the check -----------------------------------------------------------------------------------

MOST = 1 << 20  # of what is compared, about: vectors times the cube of the blocks, of all parts


def malformed(groups: int, s: int, parts: Sequence[PickChances]) -> str | None:
    """Why these are not the numbers of parts at all, for so many groups; None when they are."""
    blocks_of = [len(part.sizes) for part in parts]
    compared = sum(comb(s + 2 * blocks, s) * blocks**3 for blocks in blocks_of)
    if compared > MOST:
        return f"{len(parts)} parts of so many blocks at padding {s} take too long to check"
    for part in parts:
        flat = [x for row in part.rows for bunch in row for x in bunch]
        if any(type(x) is not int for x in (part.chance, *part.sizes, *part.blocks, *flat)):
            return "a part holds something else than whole numbers"
        blocks = len(part.sizes)
        named = [b for b in dict.fromkeys(part.blocks) if b]
        if len(part.blocks) != groups or not named or named != list(range(1, blocks + 1)):
            return (
                f"blocks of a part is a number for each of {groups} groups, 0 or that of a block, "
                "from 1 in their order; and there is one of sizes for every block"
            )
        if len(part.rows) != comb(s + blocks, blocks):
            return f"a part needs {comb(s + blocks, blocks)} rows, one per class of people"
        if any(len(bunch) < 2 for row in part.rows for bunch in row):
            return "a bunch is a mass, then the places of one or more vectors"
    return None


def check(policy: Policy, groups: Sequence[int], parts: Sequence[PickChances]) -> Violation | None:
    """None when the guarantee holds for any two sets, and for any item. What `malformed` refuses
    must have been refused before.
    """
    e = [factor for factor in level_factors(policy) if factor is not None]  # none is open
    for o, part in enumerate(parts):
        of_level = [part.blocks[g] for g in groups]
        m = _block_sizes(policy.level_sizes, of_level, len(part.sizes))
        wrong = _degenerate(m, part)
        if wrong:
            return Violation(wrong, (), o)
        s, f = padding(part), densities(m, part)
        of_block = [
            min(x for x, mine in zip(e, of_level, strict=True) if mine == b + 1)
            for b in range(len(m))
        ]
        if not _sets_hold(f, s, min(e), of_block):
            first = min((k for k, b in enumerate(of_level) if b), key=e.__getitem__)
            sentence = "two sets are told apart by more than their budgets allow"
            return Violation(sentence, (groups[first],), o)
        held, lacked = item_factors(f, m, s, policy.m - sum(m))
        for k, bound in enumerate(e):
            if (held[of_level[k] - 1] if of_level[k] else lacked) > bound:
                sentence = "having or not having an item is told by more than its budget allows"
                return Violation(sentence, (groups[k],), o)
    wrong = _wrong_chances(parts)
    return Violation(wrong) if wrong else None


def _wrong_chances(parts: Sequence[PickChances]) -> str | None:
    """What is wrong with the chances of cuts, and with the masses of the parts of one cut."""
    total = 0
    for cut in cuts(parts):
        first, *others = (parts[o] for o in cut)
        if first.chance <= 0 or any(part.chance != first.chance for part in others):
            return "every part of a cut must have the cut's chance, a positive number"
        total += first.chance
        for row, masses in enumerate(zip(*(parts[o].rows for o in cut), strict=True)):
            # rows of classes that nobody is in are empty in all parts of the cut
            if masses[0] and sum(mass for mine in masses for mass, *_ in mine) != TOTAL:
                return f"the masses of row {row} do not sum to 2^52 over the parts of a cut"
    if total != D:
        return "the chances of the cuts do not sum to 2^32"
    return None


def _degenerate(m: Sequence[int], part: PickChances) -> str | None:
    """Without this 0 <= 0 would pass for privacy: who can send a report, and who cannot."""
    for k, size in zip(part.sizes, m, strict=True):
        if not 0 <= k < size:
            return f"a size is {k} and must be from 0 to {size - 1}, fewer than its block's items"
    for row, j in enumerate(classes(len(m), padding(part))):
        if any(mass <= 0 for mass, *_ in part.rows[row]):
            return f"the bunches of row {row} must have positive masses"
        places = sorted(place for _, *mine in part.rows[row] for place in mine)
        vectors = len(possible(m, part.sizes, j))
        if places != list(range(vectors)):
            return f"the bunches of row {row} must hold each of its {vectors} vectors once"
    return None


def _sets_hold(f: Densities, s: int, smallest: Fraction, of_block: Sequence[Fraction]) -> bool:
    high, low = extremes(f)
    for j, row in f.items():
        own = sum(a * e for a, e in zip(j, of_block, strict=True))
        bound = (own + (s - sum(j)) * smallest) / s
        if max(row.values()) > bound * low or high > bound * min(row.values()):
            return False
    return True
