"""Picks by enumeration from the document alone, in fractions: every report, every set. Shares
nothing with the package; what it says of a law is step by step what a device does.
"""

from fractions import Fraction
from functools import cache
from itertools import chain, combinations
from math import comb, exp

D, TOTAL = 2**32, 2**52


def subsets(items):
    items = tuple(items)
    return [frozenset(x) for k in range(len(items) + 1) for x in combinations(items, k)]


def groups_of(document):
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def active_of(document, part):
    return [i for i, g in enumerate(groups_of(document)) if part["active"][g]]


def reports(document):
    """Every report, as its part and the items that it names."""
    found = []
    for o, part in enumerate(document["parts"]):
        found += [(o, frozenset(y)) for y in combinations(active_of(document, part), part["size"])]
    return found


def outcomes(m, part, j):
    """The chance of every number n of named own items with this part, given the cut and j."""
    k, row, found = part["size"], part["rows"][j], {}
    first = max(0, k + j - m)
    for last, mass in row:
        ways = {n: comb(j, n) * comb(m - j, k - n) for n in range(first, last + 1)}
        for n, way in ways.items():
            found[n] = Fraction(mass * way, TOTAL * sum(ways.values()))
        first = last + 1
    return found


def law(document, x):
    """The chance of every report of a person with the set x."""
    s, table = document["padding"], {}
    cuts = [frozenset(c) for c in combinations(sorted(x), min(len(x), s))]
    for o, part in enumerate(document["parts"]):
        active = active_of(document, part)
        m, k = len(active), part["size"]
        for kept in cuts:
            own = [i for i in active if i in kept]
            others = [i for i in active if i not in kept]
            for n, p in outcomes(m, part, len(own)).items():
                each = Fraction(part["chance"], D) * p / len(cuts)
                each /= comb(len(own), n) * comb(len(others), k - n)
                for mine in combinations(own, n):
                    for rest in combinations(others, k - n):
                        y = o, frozenset(chain(mine, rest))
                        table[y] = table.get(y, 0) + each
    return table


@cache
def _factor(text):
    return exp(float(text))


def budget(document, x):
    """e^{eps_x}, the paper's: the mean over the places."""
    policy, s = document["policy"], document["padding"]
    e = [_factor(level["epsilon"]) for level in policy["levels"]]
    e = [min(e)] * len(e) if policy["strict"] else e
    own = [e[policy["level_of"][i]] for i in x]
    places = max(len(own), s)
    return (sum(own) + (places - len(own)) * min(e)) / places


def worst_sets(document):
    """By how much two sets are told apart at most, over what their budgets allow."""
    m = len(document["policy"]["items"])
    laws = {x: law(document, x) for x in subsets(range(m))}
    worst = 0.0
    for y in reports(document):
        values = [(p[y], budget(document, x)) for x, p in laws.items()]
        top, bottom = max(p for p, _ in values), min(p for p, _ in values)
        for p, e in values:
            worst = max(worst, float(p / bottom) / e, float(top / p) / e)
    return worst


def worst_items(document, o=None):
    """Per level, by how much having or not having an item changes the chance of a report."""
    policy = document["policy"]
    m, worst = len(policy["items"]), [Fraction(1)] * len(policy["levels"])
    laws = {x: law(document, x) for x in subsets(range(m))}
    for x, p in laws.items():
        for i in set(range(m)) - x:
            q = laws[x | {i}]
            level = policy["level_of"][i]
            for y in p:
                if o is None or y[0] == o:
                    worst[level] = max(worst[level], p[y] / q[y], q[y] / p[y])
    return worst


def holds(document):
    """Whether every two sets and every item keep their promises."""
    policy = document["policy"]
    strict = min(float(level["epsilon"]) for level in policy["levels"])
    if any(sum(law(document, x).values()) != 1 for x in ((), (0,))) or worst_sets(document) > 1:
        return False
    budgets = [strict if policy["strict"] else float(x["epsilon"]) for x in policy["levels"]]
    return all(float(w) <= exp(e) for w, e in zip(worst_items(document), budgets, strict=True))


def reports_of_set(document, x):
    """The same as `law`, of the bytes of reports."""
    return {pack(document, *y): p for y, p in law(document, x).items()}


def pack(document, o, named):
    """The bytes of a report."""
    part = document["parts"][o]
    active = active_of(document, part)
    ranks = [active.index(i) for i in sorted(named)]
    m, k = len(active), part["size"]
    width = (m - 1).bit_length()
    if -(-k * width // 8) < -(-m // 8):
        body = sum(rank << width * n for n, rank in enumerate(ranks))
    else:
        body = sum(1 << rank for rank in ranks)
    return bytes([o]) + body.to_bytes(document["encoding"]["size"] - 1, "little")
