"""Small mechanisms of every encoding, made by hand, and a test of the whole distribution of
reports.

Their levels take turns in the list of items, parts are far likelier for one level than for the
other,
and every level is silent somewhere: what a client or a decoder can get wrong shows.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, pairwise

import exhaustive
import numpy as np
from parts import make_part
from scipy.stats import chi2, ncx2

import discreet as d
from discreet.encodings import Bits, Fixed, Ticket
from discreet.mechanism import denominators

D = 2**32
LEAST = 50  # expected reports of a cell that is compared by itself

# per part: chance, own, other; each per group
PARTS = {
    "fixed": [((0.6, 0.3), (0.7, 0.4), (1, 3)), ((0.3, 0.2), (0, 0.6), (0, 1)),
              ((0.1, 0.5), (0.5, 0), (2, 0))],
    "bits": [((0.6, 0.3), (0.7, 0.4), (0.4, 0.2)), ((0.3, 0.2), (0, 0.6), (0, 0.3)),
             ((0.1, 0.5), (0.5, 0), (0.25, 0))],
    "ticket": [((0.6, 0.3), (0.7, 0.4), (2, 1)), ((0.3, 0.2), (0, 0.6), (0, 2)),
               ((0.1, 0.5), (0.8, 0), (3, 0))],
}  # fmt: skip
ENCODINGS = {"fixed": Fixed(), "bits": Bits(), "ticket": Ticket(5, 2)}
LEVEL_OF = (0, 1, 1, 0, 1, 1, 0)
NONE = (0.15, 0.35, 0.5)


def whole(shares):
    """Integers over 2^32 that sum to it; the last takes what remains."""
    first = [round(x * D) for x in shares[:-1]]
    return [*first, D - sum(first)]


def build(kind, parts, level_of=LEVEL_OF, padding=None, none=NONE, groups=None):
    """A mechanism of these chances; budgets are large enough for all that is tried here."""
    policy = d.Policy.from_budgets(
        {f"i{k}": f"{4 + level / 10}" for k, level in enumerate(level_of)},
        kind="set" if padding else "single",
    )
    groups = groups or tuple(range(len(policy.levels)))
    over = denominators(ENCODINGS[kind], groups, policy)
    chances = list(zip(*(whole(x) for x in zip(*(chance for chance, _, _ in parts)))))
    nothing = whole(none[: len(parts)]) if padding else [None] * len(parts)
    made = []
    for chance, (_, own, other), empty in zip(chances, parts, nothing):
        other = [round(x * D) if kind == "bits" else x for x in other]
        made.append(make_part(chance, [round(x * D) for x in own], other, empty, over, groups))
    shares = whole(np.full(len(over) + bool(padding), 1 / (len(over) + bool(padding))))
    return d.Mechanism(policy, "subset", ENCODINGS[kind], groups, made, shares, padding)


@cache
def small(kind, what="parts", padding=None):
    """`parts`: three of them, with silent levels. `one`: a single part. `groups`: two levels in a
    group.
    """
    if what == "one":
        (_, own, other), *_ = PARTS[kind]
        return build(kind, [((1, 1), own, other)], padding=padding)
    if what == "groups":
        level_of = (0, 1, 1, 2, 1, 1, 0)
        return build(kind, PARTS[kind], level_of, padding=padding, groups=(0, 1, 0))
    return build(kind, PARTS[kind], padding=padding)


KINDS = tuple(PARTS)
CASES = [(kind, what, padding) for kind in KINDS for what in ("parts", "one", "groups")
         for padding in (None, 2)]  # fmt: skip


def reports_of(mechanism, held, n):
    """n reports of people who hold an item, or nothing: through the mechanism's own client."""
    if mechanism.padding is None:
        return mechanism.perturb_many(np.full(n, held))
    out = np.empty((n, mechanism.report_size), np.uint8)
    from discreet.arrays.randomness import Keystream

    mechanism.arrays.coder.write(Keystream(), np.full(n, -1 if held is None else held), out)
    return out


def seen_in(rows):
    """How often every report was sent."""
    values, counts = np.unique(rows, axis=0, return_counts=True)
    return Counter({bytes(row): int(k) for row, k in zip(values, counts)})


def cells(n, exact):
    """Reports that are compared one by one, and the rest together, with their chances."""
    alone = [y for y, p in exact.items() if n * p >= LEAST]
    rest = float(1 - sum(exact[y] for y in alone))
    chances = [float(exact[y]) for y in alone]
    if n * rest >= LEAST:
        return alone, np.array([*chances, rest])
    return alone, np.array(chances)


ALARM = 1e-8  # by the law of chi-square; at most 1e-7 with its error at LEAST


def assert_distribution(seen, exact):
    """Reports come with the chances of `exact` (chi-square, false alarm at most 1e-7); others
    never.
    """
    n = sum(seen.values())
    assert not set(seen) - {y for y, p in exact.items() if p}, "a report that cannot be sent"
    alone, chances = cells(n, exact)
    found = np.array([seen[y] for y in alone])
    if len(chances) > len(alone):
        found = np.append(found, n - found.sum())
    assert len(chances) > 1
    statistic = float(((found - n * chances) ** 2 / (n * chances)).sum())
    limit = chi2.isf(ALARM, len(chances) - 1)
    assert statistic <= limit, f"chi-square {statistic:.0f} > {limit:.0f}"


def missed(n, exact, truth):
    """The chance that n reports drawn from `truth` pass for `exact`."""
    alone, chances = cells(n, exact)
    real = np.array([float(truth.get(y, 0)) for y in alone])
    if len(chances) > len(alone):
        real = np.append(real, max(0.0, 1 - real.sum()))
    away = n * ((real - chances) ** 2 / chances).sum()
    free = len(chances) - 1
    return float(ncx2.cdf(chi2.isf(ALARM, free), free, away))


def pair_chances(document, o, held):
    """Pr(items i and j are both named | part o, what is held), m x m; on the diagonal Pr(i is
    named).
    """
    of, part = np.array(exhaustive.groups_of(document)), document["parts"][o]
    if document["encoding"]["kind"] == "ticket":
        return _ticket_pairs(document, of, part, held)
    m, other = len(of), np.array(part["other"], dtype=float)
    fixed = document["encoding"]["kind"] == "fixed"
    sizes = np.bincount(of, minlength=len(other))
    cases = [(None, 1.0)]
    if held is not None and other[of[held]]:
        own = part["own"][of[held]] / D
        cases = [(1, own), (0, 1 - own)]
    total = np.zeros((m, m))
    for own, chance in cases:
        p, both = np.zeros(m), np.zeros((m, m))
        for g, k in enumerate(other):
            mine = of == g
            around = own is not None and of[held] == g
            mine_too = own if around else 0
            n, k = (sizes[g] - around, k - mine_too) if fixed else (1, k / D)
            p[mine] = k / n if n else 0
            both[np.ix_(mine, mine)] = k * (k - 1) / (n * (n - 1)) if fixed and n > 1 else k * k
        if own is not None:
            p[held] = own
        joint = np.outer(p, p)
        if fixed:
            alike = of[:, None] == of[None, :]
            if own is not None:
                alike[held, :] = alike[:, held] = False
            joint = np.where(alike, both, joint)
        np.fill_diagonal(joint, p)
        total += chance * joint
    return total


def _ticket_pairs(document, of, part, held):
    """Two marks are independent, but for a held item on a line with both: there from all pairs of
    marks.
    """
    q, m = document["encoding"]["q"], len(of)
    limit = np.array(part["other"])[of]
    p = limit / q
    if held is None or not limit[held]:
        both = np.outer(p, p)
        np.fill_diagonal(both, p)
        return both
    own, v = part["own"][of[held]] / D, np.arange(q)
    weight = np.where(v < limit[held], own / limit[held], (1 - own) / (q - limit[held]))
    p[held] = own
    both = np.outer(p, p)
    np.fill_diagonal(both, p)
    codes = np.array([exhaustive.code(document, i) for i in range(m)])
    away = (codes - codes[held]) % q
    for i, j in combinations([x for x in range(m) if x != held], 2):
        lead = int(np.flatnonzero(away[i])[0])
        ratio = int(away[j][lead]) * pow(int(away[i][lead]), -1, q) % q
        if ((ratio * away[i] - away[j]) % q == 0).all():  # v_j = v + ratio (v_i - v)
            mark = (v[:, None] + ratio * (v[None, :] - v[:, None])) % q
            named = (v[None, :] < limit[i]) & (mark < limit[j])
            both[i, j] = both[j, i] = float(weight @ named.mean(axis=1))
    return both


def chances_of(document, answer):
    """Pr(part o, and items i and j named | answer), parts x m x m, and Pr(part o); an answer is a
    set or an item.
    """
    single = document["policy"]["kind"] == "single"
    if single:
        held = {answer: 1.0}
    else:
        places = max(len(answer), document["padding"])
        held = dict.fromkeys(answer, 1 / places)
        if len(answer) < places:
            held[None] = 1 - len(answer) / places
    of, m = exhaustive.groups_of(document), len(document["policy"]["items"])
    pairs = np.zeros((len(document["parts"]), m, m))
    parts = np.zeros(len(document["parts"]))
    for o, part in enumerate(document["parts"]):
        for x, p in held.items():
            chance = (part["none"] if x is None else part["chance"][of[x]]) / D * p
            parts[o] += chance
            pairs[o] += chance * pair_chances(document, o, x)
    return parts, pairs


def named_in(document, rows):
    """The part of every row and what it names, rows x m of 0 and 1; apart from the package's own
    code.
    """
    of = np.array(exhaustive.groups_of(document))
    m, several = len(of), len(document["parts"]) > 1
    if document["encoding"]["kind"] != "ticket":
        part = rows[:, 0].astype(int) if several else np.zeros(len(rows), int)
        bits = np.unpackbits(rows[:, int(several) :], axis=1, bitorder="little")
        return part, bits[:, :m].astype(np.uint8)
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    numbers = np.ascontiguousarray(rows).view("<u4")[:, 0].astype(np.int64)
    part, y = numbers // q ** (t + 1), numbers % q ** (t + 1)
    digits = np.stack([y // q**k % q for k in range(t, -1, -1)], axis=1)
    other = np.array([p["other"] for p in document["parts"]])[part]
    named = np.empty((len(rows), m), np.uint8)
    for i in range(m):
        mark = (digits[:, 0] + digits[:, 1:] @ np.array(exhaustive.code(document, i))) % q
        named[:, i] = mark < other[:, of[i]]
    return part, named


def expected_tally(mechanism, truth, n):
    """The tally that n people give on average, truth[i] of whom have item i (sets: at most
    `padding` each).
    """
    document, m = mechanism.to_document(), mechanism.m
    of, k = np.array(exhaustive.groups_of(document)), len(mechanism.parts)
    samples = np.asarray(truth, dtype=float) / (mechanism.padding or 1)
    empty = n - samples.sum()
    fixed = document["encoding"]["kind"] == "fixed"
    part_n, counts = np.zeros(k), np.zeros((k, m))
    sizes = np.bincount(of)
    for o, part in enumerate(mechanism.parts):
        chance, own, other = map(np.array, part.by_group[:3])
        used = samples * chance[of]
        part_n[o] = used.sum() + (empty * part.ints.none / D if mechanism.padding else 0)
        near = (sizes * other - own) / np.maximum(sizes - 1, 1) if fixed else other
        near = np.where(other > 0, near, 0)
        of_group = np.bincount(of, weights=used)
        away = part_n[o] - of_group
        counts[o] = used * own[of] + (of_group[of] - used) * near[of] + (away * other)[of]
    part_n[0] += 1e-13 * n  # so that rounding does not make n one person less
    return d.Tally(mechanism, part_n, counts)


def ragged(sets, repeats=1):
    """Sets as (items, offsets), several times over."""
    items = np.tile(np.array([i for x in sets for i in sorted(x)], np.int64), repeats)
    lengths = np.tile([len(x) for x in sets], repeats)
    return items, np.concatenate(([0], np.cumsum(lengths)))


def blocks(rows, n):
    """Rows of surveys of n people each."""
    return [rows[a:b] for a, b in pairwise(range(0, len(rows) + 1, n))]
