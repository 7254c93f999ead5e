"""Picks by enumeration from the document alone, in fractions: every report, every set. Shares
nothing with the package; what it says of a law is step by step what a device does.
"""

from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product
from math import comb, exp, prod

D, TOTAL = 2**32, 2**52


def subsets(items):
    items = tuple(items)
    return [frozenset(x) for k in range(len(items) + 1) for x in combinations(items, k)]


def groups_of(document):
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def blocks_of(document, part):
    """The items of every block."""
    of_item = [part["blocks"][g] for g in groups_of(document)]
    return [
        [i for i, b in enumerate(of_item) if b == block + 1] for block in range(len(part["sizes"]))
    ]


def named_by(document, part, x):
    """How many of these items every block has."""
    return tuple(len(set(block) & set(x)) for block in blocks_of(document, part))


def reports(document):
    """Every report, as its part and the items that it names."""
    found = []
    for o, part in enumerate(document["parts"]):
        each = map(combinations, blocks_of(document, part), part["sizes"])
        found += [(o, frozenset(chain(*y))) for y in product(*each)]
    return found


def outcomes(document, part, j):
    """The chance of every vector n of named own items with this part, given cut and class."""
    m, k, s = list(map(len, blocks_of(document, part))), part["sizes"], document["padding"]
    every = [c for c in product(range(s + 1), repeat=len(m)) if sum(c) <= s]
    possible = [
        n
        for n in product(*(range(x + 1) for x in j))
        if all(x <= b and b - x <= a - c for a, b, c, x in zip(m, k, j, n, strict=True))
    ]
    found = {}
    for mass, *places in part["rows"][every.index(j)]:
        ways = {
            possible[place]: prod(
                comb(c, x) * comb(a - c, b - x)
                for a, b, c, x in zip(m, k, j, possible[place], strict=True)
            )
            for place in places
        }
        found |= {n: Fraction(mass * way, TOTAL * sum(ways.values())) for n, way in ways.items()}
    return found


def law(document, x):
    """The chance of every report of a person with the set x."""
    s, table = document["padding"], {}
    cuts = [frozenset(c) for c in combinations(sorted(x), min(len(x), s))]
    for o, part in enumerate(document["parts"]):
        blocks = blocks_of(document, part)
        for kept in cuts:
            own = [[i for i in block if i in kept] for block in blocks]
            others = [[i for i in block if i not in kept] for block in blocks]
            for n, p in outcomes(document, part, tuple(map(len, own))).items():
                rest = [k - x for k, x in zip(part["sizes"], n, strict=True)]
                each = Fraction(part["chance"], D) * p / len(cuts)
                each /= prod(map(comb, map(len, [*own, *others]), [*n, *rest]))
                for y in product(*map(combinations, [*own, *others], [*n, *rest])):
                    report = o, frozenset(chain(*y))
                    table[report] = table.get(report, 0) + each
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
    by_part = worst_items_by_part(document)
    some = by_part if o is None else [by_part[o]]
    return [max(worst) for worst in zip(*some, strict=True)]


def worst_items_by_part(document):
    """The same of the reports of every part."""
    policy = document["policy"]
    m = len(policy["items"])
    worst = [[Fraction(1)] * len(policy["levels"]) for _ in document["parts"]]
    laws = {x: law(document, x) for x in subsets(range(m))}
    for x, p in laws.items():
        for i in set(range(m)) - x:
            q, level = laws[x | {i}], policy["level_of"][i]
            for y in p:
                more = p[y] / q[y]
                worst[y[0]][level] = max(worst[y[0]][level], more, 1 / more)
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
    part, body, first = document["parts"][o], 0, 0
    for block, k in zip(blocks_of(document, part), part["sizes"], strict=True):
        ranks = [block.index(i) for i in sorted(named) if i in block]
        m, width = len(block), max(1, (len(block) - 1).bit_length())
        as_numbers = k * width < m
        numbers = sum(rank << width * n for n, rank in enumerate(ranks))
        body |= (numbers if as_numbers else sum(1 << rank for rank in ranks)) << first
        first += k * width if as_numbers else m
    return bytes([o]) + body.to_bytes(document["encoding"]["size"] - 1, "little")
