"""Picks, once more: densities, factors, reports and the decoder, in fractions and step by step."""

from __future__ import annotations

from fractions import Fraction
from math import comb, prod
from typing import Any

Document = dict[str, Any]
D, TOTAL = 2**32, 2**52

Density = dict[tuple[int, int], Fraction]  # of j own items n are named: against a uniform subset


def groups_of(document: Document) -> list[int]:
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def active_of(document: Document, part: Document) -> list[int]:
    """The items that a part can name."""
    return [i for i, g in enumerate(groups_of(document)) if part["active"][g]]


def cuts(document: Document) -> list[list[int]]:
    """The parts with the same active groups."""
    parts = document["parts"]
    kinds = list(dict.fromkeys(tuple(part["active"]) for part in parts))
    return [[o for o, part in enumerate(parts) if tuple(part["active"]) == x] for x in kinds]


def can_be_named(m: int, k: int, j: int) -> list[int]:
    """How many of j own items a subset of k of m items can name."""
    return [n for n in range(j + 1) if n <= k and k - n <= m - j]


# ---- the check -----------------------------------------------------------------------------------


def proper(document: Document) -> bool:
    """Whether chances and masses are those of a client that can draw every report there is."""
    total = 0
    for cut in cuts(document):
        parts = [document["parts"][o] for o in cut]
        total += parts[0]["chance"]
        if parts[0]["chance"] <= 0 or len({part["chance"] for part in parts}) > 1:
            return False
        m = len(active_of(document, parts[0]))
        if not all(proper_part(part, m) for part in parts):
            return False
        for j in range(min(document["padding"], m) + 1):
            if sum(mass for part in parts for _, mass in part["rows"][j]) != TOTAL:
                return False
    return total == D


def proper_part(part: Document, m: int) -> bool:
    """Whether the runs cover just the numbers that can be named, each with a mass."""
    if not 0 <= part["size"] < m:
        return False
    for j, row in enumerate(part["rows"]):
        names = can_be_named(m, part["size"], j) if j <= m else []
        ends = [last for last, _ in row]
        if sorted(set(ends)) != ends or any(mass <= 0 for _, mass in row):
            return False
        if bool(names) != bool(ends) or (names and (ends[-1] != names[-1] or ends[0] < names[0])):
            return False
    return True


def density(document: Document, part: Document) -> Density:
    """f of all j and all n that there are."""
    m, k, found = len(active_of(document, part)), part["size"], {}
    for j, row in enumerate(part["rows"][: m + 1]):
        left = can_be_named(m, k, j)
        for last, mass in row:
            run, left = [n for n in left if n <= last], [n for n in left if n > last]
            all_ = sum(comb(j, n) * comb(m - j, k - n) for n in run)
            found |= {(j, n): Fraction(mass * comb(m, k), TOTAL * all_) for n in run}
    return found


def item_factor(document: Document, part: Document, group: int) -> Fraction:
    """What having an item of the group changes at most, in one part, of the reports there are."""
    everyone, s = len(groups_of(document)), document["padding"]
    m, own = len(active_of(document, part)), part["active"][group]
    f, found = density(document, part), [Fraction(1)]
    if own:
        found += [
            x / f[j - 1, n - h] for (j, n), x in f.items() for h in (0, 1) if (j - 1, n - h) in f
        ]
    others = everyone - m - (not own)  # silent items beside this one
    for (a, hit), x in f.items():
        if s - a > others or a > m - own or s < a:
            continue
        for named in (0, 1) if own else (0,):
            swaps = (hit, a - 1 + own, hit - 1 + named), (a - hit, a - 1 + own, hit + named)
            swaps += ((s - a, a + own, hit + named),)
            real = [(times, (j, n)) for times, j, n in swaps if times]
            if all(cell in f for _, cell in real):
                found.append((1 + sum(times * f[cell] for times, cell in real) / x) / (s + 1))
    return max(*found, *(1 / x for x in found))


def extremes(document: Document, part: Document) -> tuple[Fraction, Fraction]:
    every = density(document, part).values()
    return max(every), min(every)


def of_list(document: Document, part: Document, items: list[int]) -> tuple[Any, Any]:
    """The largest and the smallest chance of a list: the mean over how many active are kept."""
    f, active = density(document, part), set(active_of(document, part))
    k, a = len(items), len(active.intersection(items))
    kept, top, low = min(k, document["padding"]), Fraction(0), Fraction(0)
    for j in range(max(0, kept - (k - a)), min(kept, a) + 1):
        share = Fraction(comb(a, j) * comb(k - a, kept - j), comb(k, kept))
        row = [x for (c, _), x in f.items() if c == j]
        top, low = top + share * max(row), low + share * min(row)
    return top, low


# ---- reports -------------------------------------------------------------------------------------


def width(m: int) -> int:
    """Bits of a number below m."""
    return len(bin(m - 1)) - 2 if m > 1 else 0


def as_numbers(m: int, k: int) -> bool:
    """Whether k numbers take fewer bytes than m bits."""
    return -(-k * width(m) // 8) < -(-m // 8)


def body_size(document: Document, part: Document) -> int:
    m, k = len(active_of(document, part)), part["size"]
    return -(-k * width(m) // 8) if as_numbers(m, k) else -(-m // 8)


def write(document: Document, part: int, ranks: list[int], size: int | None = None) -> bytes:
    """A report with these numbers in this order, or these bits, whether it may be sent or not."""
    m, k = len(active_of(document, document["parts"][part])), document["parts"][part]["size"]
    if as_numbers(m, k):
        value = sum(rank << n * width(m) for n, rank in enumerate(ranks))
    else:
        value = sum(1 << rank for rank in set(ranks))
    room = document["encoding"]["size"] - 1 if size is None else size - 1
    return bytes([part]) + (value % 256**room).to_bytes(room, "little")


def meaning(document: Document, report: bytes) -> tuple[str, int, list[int]]:
    """The reason of a refusal ("" for none), the part, and the items that are named."""
    if report[0] >= len(document["parts"]):
        return "part", 0, []
    o, part = report[0], document["parts"][report[0]]
    active, k = active_of(document, part), part["size"]
    m, value = len(active), int.from_bytes(report[1:], "little")
    bits = k * width(m) if as_numbers(m, k) else m
    if value >= 2**bits:
        return "tail", 0, []
    if not as_numbers(m, k):
        ranks = [rank for rank in range(m) if value // 2**rank % 2]
        return ("", o, [active[x] for x in ranks]) if len(ranks) == k else ("size", 0, [])
    ranks = [value // 2 ** (n * width(m)) % 2 ** width(m) for n in range(k)]
    if sorted(set(ranks)) != ranks or any(rank >= m for rank in ranks):
        return "order", 0, []
    return "", o, [active[x] for x in ranks]


# ---- the decoder ---------------------------------------------------------------------------------


def people(document: Document) -> tuple[list[Fraction], list[Fraction]]:
    """How many have 0, …, s items, and the share of all items that each group has."""
    s, count = document["padding"], max(document["groups"]) + 1
    shares = [Fraction(x, D) for x in document["shares"]]
    sizes = [x * s / (s - k) for k, x in enumerate(shares[count:])]
    total = sum(shares[:count])
    return [*sizes, 1 - sum(sizes)], [x / total for x in shares[:count]]


def classes(document: Document, active: list[int]) -> list[Fraction]:
    """The shares of people with 0, 1, … active items, as if items were drawn from all."""
    sizes, groups = people(document)
    everyone = len(groups_of(document))
    m = sum(active[g] for g in groups_of(document))
    part = everyone * sum(x for x, on in zip(groups, active, strict=True) if on)
    law = [Fraction(0)] * (min(len(sizes) - 1, m) + 1)
    for k, share in enumerate(sizes):
        if not share:
            continue
        ways = [
            max(Fraction(0), choose(part, j) * choose(everyone - part, k - j))
            if j <= m and k - j <= everyone - m
            else Fraction(0)
            for j in range(min(k, m) + 1)
        ]
        if not any(ways):  # nobody can have so many: a rounded share
            law[min(m, max(0, k - (everyone - m)))] += share
            continue
        for j, way in enumerate(ways):
            law[j] += share * way / sum(ways)
    return law


def choose(n: Fraction, k: int) -> Fraction:
    return prod((Fraction(n - i) / (i + 1) for i in range(k)), start=Fraction(1))


def least(a: list[list[Fraction]], cost: list[Fraction], b: list[Fraction], solve: Any) -> Any:
    """The x with a x = b and the smallest sum of cost x^2."""
    if not a:
        return [Fraction(0)] * len(cost)
    gram = [[sum(x * y / c for x, y, c in zip(r, q, cost, strict=True)) for q in a] for r in a]
    z = solve(gram, b)
    return [sum(z[i] * a[i][o] for i in range(len(a))) / c for o, c in enumerate(cost)]


def decoder(document: Document, solve: Any) -> tuple[Any, Any, Any]:
    """w, kappa and tau, parts x groups."""
    parts, count = document["parts"], max(document["groups"]) + 1
    made, told = {}, {}
    for c, cut in enumerate(cuts(document)):
        mine = [parts[o] for o in cut]
        m, law = len(active_of(document, mine[0])), classes(document, mine[0]["active"])
        used, learnt = [], []
        for j in range(len(law)):
            masses = [moments(document, part, j) for part in mine]
            used.append([p for p, _ in masses])
            if 0 < j < m:
                learnt.append([
                    (named - p * Fraction(j * part["size"], m)) / (j * (1 - Fraction(j, m)))
                    for (p, named), part in zip(masses, mine, strict=True)
                ])  # fmt: skip
        share = [sum(x * row[o] for x, row in zip(law, used, strict=True)) for o in range(len(cut))]
        kappa = [Fraction(part["size"], m) for part in mine]
        noise = [p * x * (1 - x) or Fraction(1) for p, x in zip(share, kappa, strict=True)]
        w = least(learnt, noise, [Fraction(1)] * len(learnt), solve)
        tau = least(used, share, [Fraction(j, m) for j in range(len(law))], solve)
        cost = m * sum(
            p * (x * x * b * (1 - b) + t * t)
            for p, x, t, b in zip(share, w, tau, kappa, strict=True)
        )
        told[c] = Fraction(mine[0]["chance"], D) * m / cost
        for o, x, t, b in zip(cut, w, tau, kappa, strict=True):
            made[o] = c, x, t, b
    out: Any = [[[None] * count for _ in parts] for _ in range(3)]
    for o, part in enumerate(parts):
        c, x, t, b = made[o]
        for g in range(count):
            naming = [a for a, cut in enumerate(cuts(document)) if parts[cut[0]]["active"][g]]
            total = sum(told[a] for a in naming)
            if total:
                mix = part["active"][g] * told[c] / total * Fraction(D, part["chance"])
                out[0][o][g], out[1][o][g], out[2][o][g] = x * mix, b, t * mix
    return out[0], out[1], out[2]


def moments(document: Document, part: Document, j: int) -> tuple[Fraction, Fraction]:
    """The chance of the part in its cut, and the mean number of named own items times that."""
    m, k = len(active_of(document, part)), part["size"]
    f, law = density(document, part), {}
    for n in can_be_named(m, k, j):
        law[n] = f[j, n] * Fraction(comb(j, n) * comb(m - j, k - n), comb(m, k))
    return sum(law.values(), Fraction(0)), sum((n * p for n, p in law.items()), Fraction(0))
