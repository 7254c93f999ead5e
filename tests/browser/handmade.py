"""Mechanisms for sets, made by hand: counted hits and items on their own, with all that they
promise by enumeration, in fractions.

Mechanisms are their documents here; nothing of discreet is used but the fingerprint.
"""

from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, prod

import numpy as np
from exhaustive import D, groups_of

from discreet.check.document import fingerprint

G = 2**52
ONE = Fraction(1)


def signed(body):
    body = {key: value for key, value in body.items() if key != "fingerprint"}
    return {**body, "fingerprint": fingerprint(body)}


def policy_of(levels, kind="set", strict=False, **more):
    """From (name, epsilon, items) per level."""
    return {
        "question": "Which of these?",
        "kind": kind,
        "notion": "min",
        **({"strict": strict} if kind == "set" else {}),
        "items": [item for _, _, items in levels for item in items],
        "level_of": [k for k, (_, _, items) in enumerate(levels) for _ in items],
        "levels": [{"name": name, "epsilon": epsilon} for name, epsilon, _ in levels],
        "pairs": [],
        **more,
    }


def body_of(policy, encoding, padding, parts, groups=None, model="hits"):
    groups = list(range(len(policy["levels"]))) if groups is None else groups
    return {
        "format": "discreet-mechanism/3",
        "policy": policy,
        "model": model,
        "prior": "uniform",
        "encoding": encoding,
        "padding": padding,
        "groups": groups,
        "shares": [D] + [0] * (max(groups) + 1),
        "parts": parts,
    }


# ---- items on their own --------------------------------------------------------------------------


def each_of(levels, own, other, **more):
    """A part of independent bits, of which every item decides its own."""
    part = {"chance": [D] * len(levels), "own": own, "other": other, "none": D}
    policy = policy_of(levels, kind="each", **more)
    return signed(body_of(policy, {"kind": "each"}, 0, [part], model="each"))


def each_factors(document):
    """Per group, by the two reports about one item."""
    (part,) = document["parts"]
    found = []
    for own, other in zip(part["own"], part["other"], strict=True):
        ratios = [Fraction(own, other), Fraction(D - own, D - other)]
        found.append(max(*ratios, *(1 / x for x in ratios)))
    return found


# ---- counted hits --------------------------------------------------------------------------------


def weights(prime, limit, j):
    return [comb(j, n) * limit**n * (prime - limit) ** (j - n) for n in range(j + 1)]


def classes(prime, limit, j, row):
    """(mass, the numbers of hits) of N > tau, N = tau and N < tau."""
    tau, *masses = row
    numbers = (range(tau + 1, j + 1), range(tau, tau + 1), range(tau))
    return list(zip(masses, numbers, strict=True))


def densities(prime, part):
    """f[j, N] in fractions."""
    f = {(0, 0): ONE}
    for j, row in enumerate(part["rows"], 1):
        w = weights(prime, part["limit"], j)
        for mass, numbers in classes(prime, part["limit"], j, row):
            for n in numbers:
                f[j, n] = Fraction(mass * prime**j, G * sum(w[k] for k in numbers))
    return f


def rows_of(prime, limit, taus, high, low):
    """Rows of density about 1 + high above tau, between at tau, 1 - low below, of mean 1."""
    rows = []
    for j, tau in enumerate(taus, 1):
        w = [Fraction(x, prime**j) for x in weights(prime, limit, j)]
        above, below = sum(w[tau + 1 :]), sum(w[:tau])
        hi, lo = int((1 + high) * above * G), int((1 - low) * below * G)
        if not above:  # the mean is 1, so that of the others follows
            hi = 0
        rows.append([tau, hi, G - hi - lo, lo])
    return rows


def largest(passes, parts):
    """The largest of 1/parts, 2/parts, … that passes; all below it do."""
    low, high = 0, parts
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(Fraction(middle, parts)) else (low, middle)
    assert low
    return Fraction(low, parts)


def spread(prime, part):
    """The largest and the smallest density of every j."""
    found = {}
    for (j, _), value in densities(prime, part).items():
        high, low = found.get(j, (value, value))
        found[j] = (max(high, value), min(low, value))
    return found


def keeps(prime, s, part, factors):
    """Whether a part keeps the guarantee for sets; factors are of the groups."""
    ends = spread(prime, part)
    top, bottom = max(x for x, _ in ends.values()), min(x for _, x in ends.values())
    least = min(factors)
    spoken = min(e for e, active in zip(factors, part["active"], strict=True) if active)
    bounds = {j: (j * spoken + (s - j) * least) / s for j in range(s + 1)}
    within = (x <= bounds[j] * bottom and top <= bounds[j] * y for j, (x, y) in ends.items())
    return bottom > 0 and all(within)


def read_part(prime, s, active, limit, taus, factors, chance=D, slope=1):
    """A part with these thresholds that tells as much as it may: high = slope * low."""

    def made(low):
        rows = rows_of(prime, limit, taus, slope * low, low)
        return {"chance": chance, "active": active, "limit": limit, "rows": rows}

    def passes(low):
        part = made(low)
        whole = all(min(row) >= 0 for row in part["rows"])
        return whole and keeps(prime, s, part, factors)

    return made(largest(passes, 10_000))


def factor_of(epsilon):
    """ln(n/d) as a fraction."""
    return Fraction(epsilon.removeprefix("ln(").removesuffix(")"))


def hits_of(levels, prime, s, parts, groups=None, **more):
    """Parts are (active, limit, taus, chance[, slope]); budgets are spelled ln(k)."""
    policy = policy_of(levels, **more)
    groups = list(range(len(levels))) if groups is None else groups
    each = [factor_of(epsilon) for _, epsilon, _ in levels]
    if policy["strict"]:
        each = [min(each)] * len(each)
    factors = [
        min(e for e, g in zip(each, groups, strict=True) if g == group)
        for group in range(max(groups) + 1)
    ]
    made = [
        read_part(prime, s, active, limit, taus, factors, chance, *slope)
        for active, limit, taus, chance, *slope in parts
    ]
    return signed(body_of(policy, {"kind": "hits", "prime": prime}, s, made, groups))


# ---- all sets and all reports --------------------------------------------------------------------


def lists(m):
    """All sets of items."""
    return [x for size in range(m + 1) for x in combinations(range(m), size)]


@cache
def patterns(prime, limit, m, d):
    """Every way in which a polynomial names items, active or not, and how many do it."""
    found = {}
    for coefficients in product(range(prime), repeat=d):
        named = tuple(value(coefficients, i + 1, prime) < limit for i in range(m))
        found[named] = found.get(named, 0) + 1
    return found


def value(coefficients, x, prime):
    found = 0
    for c in reversed(coefficients):
        found = (found * x + c) % prime
    return found


def law(document, part, items, active_first=False):
    """The density of a report given a set, as a function of what it names.

    `active_first` is the wrong order: what is not active is left out before a sample is drawn.
    """
    s, of = document["padding"], groups_of(document)
    f = densities(document["encoding"]["prime"], part)
    active = [bool(part["active"][g]) for g in of]
    if active_first:
        items = [i for i in items if active[i]]
    samples = list(combinations(items, min(s, len(items))))
    own = [[i for i in sample if active[i]] for sample in samples]

    def density(named):
        values = [f[len(mine), sum(named[i] for i in mine)] for mine in own]
        return sum(values) / len(values)

    return density


def tables(document):
    """Per part, the densities of all patterns that there are, given every set."""
    m, d = len(document["policy"]["items"]), document["padding"] + 2
    prime = document["encoding"]["prime"]
    for part in document["parts"]:
        named = list(patterns(prime, part["limit"], m, d))
        yield {x: [*map(law(document, part, x), named)] for x in lists(m)}


def extremes(first, second):
    """The largest ratio of two rows, either way."""
    pairs = list(zip(first, second, strict=True))
    return max(max(x / y for x, y in pairs), max(y / x for x, y in pairs))


def item_factors(document):
    """Per group: any list with an item against the same without it, for every report."""
    of = groups_of(document)
    found = [ONE] * (max(of) + 1)
    for table in tables(document):
        for x, row in table.items():
            for i in x:
                without = table[tuple(j for j in x if j != i)]
                found[of[i]] = max(found[of[i]], extremes(row, without))
    return found


def set_factor(document):
    """Any two lists."""
    return max(
        max(column) / min(column)
        for table in tables(document)
        for column in zip(*table.values(), strict=True)
    )


def list_factor(document, items):
    """A list and any other."""
    found = ONE
    for table in tables(document):
        mine = table[tuple(sorted(items))]
        columns = zip(*table.values(), strict=True)
        for x, column in zip(mine, columns, strict=True):
            found = max(found, max(column) / x, x / min(column))
    return found


def distribution(document, items, active_first=False):
    """Pr(report | set) of every report."""
    if document["encoding"]["kind"] == "each":
        return each_distribution(document, items)
    prime, d, m = (
        document["encoding"]["prime"],
        document["padding"] + 2,
        len(document["policy"]["items"]),
    )
    found = {}
    for k, part in enumerate(document["parts"]):
        density = law(document, part, items, active_first)
        known = {named: density(named) for named in patterns(prime, part["limit"], m, d)}
        share = Fraction(part["chance"], D * prime**d)
        for coefficients in product(range(prime), repeat=d):
            named = tuple(value(coefficients, i + 1, prime) < part["limit"] for i in range(m))
            found[packed(document, k, coefficients)] = share * known[named]
    return found


def each_distribution(document, items):
    (part,), of = document["parts"], groups_of(document)
    chances = [Fraction(part["own" if i in items else "other"][g], D) for i, g in enumerate(of)]
    found = {}
    for named in product((0, 1), repeat=len(of)):
        bits = sum(bit << i for i, bit in enumerate(named))
        chance = prod(p if bit else 1 - p for p, bit in zip(chances, named, strict=True))
        found[bits.to_bytes(-(-len(of) // 8), "little")] = chance
    return found


def packed(document, k, coefficients):
    width = 2 if document["encoding"]["prime"] < 2**16 else 4
    return bytes([k]) + b"".join(int(c).to_bytes(width, "little") for c in coefficients)


def coefficients_of(document, report):
    width = 2 if document["encoding"]["prime"] < 2**16 else 4
    return [int.from_bytes(report[k : k + width], "little") for k in range(1, len(report), width)]


def named_by(document, report):
    """The items that a report names."""
    of = groups_of(document)
    if document["encoding"]["kind"] == "each":
        return [i for i in range(len(of)) if report[i // 8] >> i % 8 & 1]
    part, prime = document["parts"][report[0]], document["encoding"]["prime"]
    coefficients = coefficients_of(document, report)
    return [
        i
        for i, g in enumerate(of)
        if part["active"][g] and value(coefficients, i + 1, prime) < part["limit"]
    ]


def own_chance(document, part, j):
    """The chance that one of j active own items is named."""
    prime = document["encoding"]["prime"]
    w, total = weights(prime, part["limit"], j), Fraction(0)
    for mass, numbers in classes(prime, part["limit"], j, part["rows"][j - 1]):
        if mass:
            mean = Fraction(sum(n * w[n] for n in numbers), sum(w[n] for n in numbers))
            total += Fraction(mass, G) * mean
    return total / j


# ---- Padding-and-Sampling of independent bits ----------------------------------------------------


def sampling_tables(document):
    """Per part, the chances of all reports given every set, up to the same factor each."""
    of, places = groups_of(document), document["padding"]
    for part in document["parts"]:
        table = {}
        for x in lists(len(of)):
            n = max(len(x), places)
            row = []
            for named in product((False, True), repeat=len(of)):
                state = {i: _state(part, of[i], named[i]) for i in x}
                row.append((sum(state.values()) + (n - len(x)) * Fraction(part["none"])) / n)
            table[x] = row
        yield table


def _state(part, g, named):
    chance, own, other = (part[key][g] for key in ("chance", "own", "other"))
    if not other:
        return Fraction(chance)
    return chance * (Fraction(own, other) if named else Fraction(D - own, D - other))


def some_report(document, rng):
    """A report that anybody may send."""
    if document["encoding"]["kind"] == "each":
        m = len(document["policy"]["items"])
        return rng.getrandbits(m).to_bytes(-(-m // 8), "little")
    prime = document["encoding"]["prime"]
    k = rng.randrange(len(document["parts"]))
    return packed(document, k, [rng.randrange(prime) for _ in range(document["padding"] + 2)])


def words_for(document, items, report):
    """32-bit words with which who has these items (at most `padding`) sends that report."""
    if document["encoding"]["kind"] == "each":
        named = named_by(document, report)
        return [0 if i in named else D - 1 for i in range(len(document["policy"]["items"]))]
    of, prime, parts = groups_of(document), document["encoding"]["prime"], document["parts"]
    part = parts[report[0]]
    words = [sum(x["chance"] for x in parts[: report[0]])] if len(parts) > 1 else []
    own = [i for i in items if part["active"][of[i]]]
    poly, hit = coefficients_of(document, report), named_by(document, report)
    values = [value(poly, i + 1, prime) for i in own]
    if own:
        words += _class_words(prime, part, len(own), sum(i in hit for i in own))
        words += _some_words(len(own), [k for k, i in enumerate(own) if i in hit])
    words += [v if v < part["limit"] else v - part["limit"] for v in values]
    for i in own:  # what is left of the polynomial over (x - point): the free coefficients
        quotient = []
        for c in reversed(poly):
            quotient.append((c + (quotient[-1] if quotient else 0) * (i + 1)) % prime)
        poly = quotient[-2::-1]
    return words + poly


def _class_words(prime, part, j, n):
    """52 bits of mass that lead to the class of n hits, and where in it the number stands."""
    row, w, before = part["rows"][j - 1], weights(prime, part["limit"], j), 0
    for mass, numbers in classes(prime, part["limit"], j, row):
        if n in numbers:
            total, place = sum(w[k] for k in numbers), sum(w[k] for k in numbers if k < n)
            size = -(-len(f"{total:x}") // 8)
            number = [place >> 32 * k & (D - 1) for k in reversed(range(size))]
            return [before // D << 12, before % D, *number]
        before += mass
    raise AssertionError("there is no such number")


def _some_words(j, wanted):
    """Swaps that bring the wanted places to the front."""
    left, words = list(range(j)), []
    for k, place in enumerate(wanted):
        at = left.index(place)
        left[k], left[at] = left[at], left[k]
        words.append(at - k)
    return words


def named_in(document, rows):
    """The part of every row and what it names, rows x m of 0 and 1."""
    named = np.zeros((len(rows), len(document["policy"]["items"])), np.uint8)
    for k, row in enumerate(rows):
        named[k, named_by(document, bytes(row))] = 1
    heads = document["encoding"]["kind"] == "hits"
    return (rows[:, 0].astype(int) if heads else np.zeros(len(rows), int)), named


def pairs_of(named, part, kinds, share):
    """How often every part came, and in every part every item and every two items, in one list."""
    upper = np.triu_indices(named.shape[1])
    found = [np.bincount(part, weights=share, minlength=kinds)]
    for o in range(kinds):
        mine = part == o
        found.append(((named[mine] * share[mine, None]).T @ named[mine])[upper])
    return np.concatenate(found)


def expected(document, answer, active_first=False):
    """The chances of the same, by enumeration."""
    chances = distribution(document, answer, active_first)
    part, named = named_in(document, np.array([[*report] for report in chances], np.uint8))
    share = np.array([float(x) for x in chances.values()])
    return np.clip(pairs_of(named.astype(float), part, len(document["parts"]), share), 0, 1)
