"""Picks, once more: densities, factors, reports and the decoder, in fractions and step by step."""

from __future__ import annotations

from fractions import Fraction
from math import comb, prod
from typing import Any

Document = dict[str, Any]
D, TOTAL = 2**32, 2**52

Vector = tuple[int, ...]  # a number of items per block
Density = dict[tuple[Vector, Vector], Fraction]  # of j own items n are named


def groups_of(document: Document) -> list[int]:
    return [document["groups"][level] for level in document["policy"]["level_of"]]


def blocks_of(document: Document, part: Document) -> list[list[int]]:
    """The items of every block."""
    of_item = [part["blocks"][g] for g in groups_of(document)]
    return [
        [i for i, block in enumerate(of_item) if block == b]
        for b in range(1, len(part["sizes"]) + 1)
    ]


def counts(document: Document, part: Document) -> Vector:
    """The number of items of every block."""
    return tuple(len(block) for block in blocks_of(document, part))


def cuts(document: Document) -> list[list[int]]:
    """The parts with the same blocks."""
    parts = document["parts"]
    kinds = list(dict.fromkeys(tuple(part["blocks"]) for part in parts))
    return [[o for o, part in enumerate(parts) if tuple(part["blocks"]) == x] for x in kinds]


def classes(blocks: int, s: int) -> list[Vector]:
    """Every class of people with at most s active items, whether there are so many or not."""
    found: list[Vector] = [()]
    for _ in range(blocks):
        found = [(*j, x) for j in found for x in range(s - sum(j) + 1)]
    return found


def can_be_named(m: Vector, k: list[int], j: Vector) -> list[Vector]:
    """How many of j own items of every block subsets of k of m items can name."""
    found: list[Vector] = [()]
    for a, b, c in zip(m, k, j, strict=True):
        found = [(*n, x) for n in found for x in range(c + 1) if x <= b and 0 <= b - x <= a - c]
    return found if all(c <= a for a, c in zip(m, j, strict=True)) else []


def named_ways(m: Vector, k: list[int], j: Vector, n: Vector) -> int:
    """How many subsets name n of j given items."""
    blocks = zip(m, k, j, n, strict=True)
    return prod(comb(c, x) * comb(a - c, b - x) for a, b, c, x in blocks)


# ---- the check -----------------------------------------------------------------------------------


def proper(document: Document) -> bool:
    """Whether chances and masses are those of a client that can draw every report there is."""
    total = 0
    for cut in cuts(document):
        parts = [document["parts"][o] for o in cut]
        total += parts[0]["chance"]
        if parts[0]["chance"] <= 0 or len({part["chance"] for part in parts}) > 1:
            return False
        m = counts(document, parts[0])
        if not all(proper_part(part, m, document["padding"]) for part in parts):
            return False
        for place, row in enumerate(parts[0]["rows"]):
            masses = [bunch[0] for part in parts for bunch in part["rows"][place]]
            if row and sum(masses) != TOTAL:
                return False
    return total == D


def proper_part(part: Document, m: Vector, s: int) -> bool:
    """Whether the bunches hold just the vectors that can be named, each with a mass."""
    if not all(0 <= k < size for k, size in zip(part["sizes"], m, strict=True)):
        return False
    for j, row in zip(classes(len(m), s), part["rows"], strict=True):
        places = [place for bunch in row for place in bunch[1:]]
        if any(bunch[0] <= 0 for bunch in row) or len(set(places)) < len(places):
            return False
        if set(places) != set(range(len(can_be_named(m, part["sizes"], j)))):
            return False
    return True


def density(document: Document, part: Document) -> Density:
    """f of all j and all n that there are."""
    m, k, found = counts(document, part), part["sizes"], {}
    everything = prod(comb(size, x) for size, x in zip(m, k, strict=True))
    for j, row in zip(classes(len(m), document["padding"]), part["rows"], strict=True):
        names = can_be_named(m, k, j)
        for mass, *places in row:
            all_ = sum(named_ways(m, k, j, names[place]) for place in places)
            for place in places:
                found[j, names[place]] = Fraction(mass * everything, TOTAL * all_)
    return found


def moved(vector: Vector, block: int | None, by: int) -> Vector:
    return tuple(x + by * (b == block) for b, x in enumerate(vector))


def item_factor(document: Document, part: Document, group: int) -> Fraction:
    """What having an item of the group changes at most, in one part, of the reports there are."""
    everyone, s = len(groups_of(document)), document["padding"]
    m, block = counts(document, part), part["blocks"][group] - 1
    mine = None if block < 0 else block
    f, found = density(document, part), [Fraction(1)]
    if mine is not None:
        for (j, n), x in f.items():
            less = [(moved(j, mine, -1), moved(n, mine, -h)) for h in (0, 1)]
            found += [x / f[cell] for cell in less if cell in f]
    others = everyone - sum(m) - (mine is None)  # silent items beside this one
    for (j, n), x in f.items():
        idle = s - sum(j)
        if idle > others or (mine is not None and j[mine] == m[mine]):
            continue
        for named in (0, 1) if mine is not None else (0,):
            swaps = [(idle, moved(j, mine, 1), moved(n, mine, named))]
            for b in range(len(m)):
                _, more, hit = swaps[0]
                swaps.append((n[b], moved(more, b, -1), moved(hit, b, -1)))
                swaps.append((j[b] - n[b], moved(more, b, -1), hit))
            real = [(times, (a, b)) for times, a, b in swaps if times]
            if all(cell in f for _, cell in real):
                found.append((1 + sum(times * f[cell] for times, cell in real) / x) / (s + 1))
    return max(*found, *(1 / x for x in found))


def extremes(document: Document, part: Document) -> tuple[Fraction, Fraction]:
    every = density(document, part).values()
    return max(every), min(every)


def of_list(document: Document, part: Document, items: list[int]) -> tuple[Any, Any]:
    """The largest and the smallest chance of a list: the mean over which of its items are kept."""
    f, rows = density(document, part), {}
    for (j, _), x in f.items():
        rows.setdefault(j, []).append(x)
    mine = [len(set(block).intersection(items)) for block in blocks_of(document, part)]
    k = len(items)
    kept, top, low = min(k, document["padding"]), Fraction(0), Fraction(0)
    for j, row in rows.items():
        rest = kept - sum(j)
        if rest >= 0:
            ways = prod(comb(a, x) for a, x in zip(mine, j, strict=True))
            share = Fraction(ways * comb(k - sum(mine), rest), comb(k, kept))
            top, low = top + share * max(row), low + share * min(row)
    return top, low


# ---- reports -------------------------------------------------------------------------------------


def width(m: int) -> int:
    """Bits of a number below m; one at least."""
    return max(1, len(bin(m - 1)) - 2) if m > 1 else 1


def as_numbers(m: int, k: int) -> bool:
    """Whether k numbers take fewer bits than m."""
    return k * width(m) < m


def bits(document: Document, part: Document) -> list[int]:
    """Bits of every block."""
    both = zip(counts(document, part), part["sizes"], strict=True)
    return [k * width(m) if as_numbers(m, k) else m for m, k in both]


def body_size(document: Document, part: Document) -> int:
    return -(-sum(bits(document, part)) // 8)


def write(document: Document, part: int, ranks: list[list[int]], size: int | None = None) -> bytes:
    """A report with these numbers of every block in this order, or these bits, whether it may be
    sent or not.
    """
    of, value, first = document["parts"][part], 0, 0
    room = zip(counts(document, of), of["sizes"], ranks, bits(document, of), strict=True)
    for m, k, mine, used in room:
        if as_numbers(m, k):
            value += sum(rank << n * width(m) for n, rank in enumerate(mine)) << first
        else:
            value += sum(1 << rank for rank in set(mine)) << first
        first += used
    bytes_ = document["encoding"]["size"] - 1 if size is None else size - 1
    return bytes([part]) + (value % 256**bytes_).to_bytes(bytes_, "little")


def meaning(document: Document, report: bytes) -> tuple[str, int, list[int]]:
    """The reason of a refusal ("" for none), the part, and the items that are named."""
    if report[0] >= len(document["parts"]):
        return "part", 0, []
    o, part = report[0], document["parts"][report[0]]
    value, found = int.from_bytes(report[1:], "little"), []
    if value >= 2 ** sum(bits(document, part)):
        return "tail", 0, []
    for block, k, used in zip(
        blocks_of(document, part), part["sizes"], bits(document, part), strict=True
    ):
        m = len(block)
        if as_numbers(m, k):
            ranks = [value // 2 ** (n * width(m)) % 2 ** width(m) for n in range(k)]
        else:
            ranks = [rank for rank in range(m) if value // 2**rank % 2]
        found.append((block, k, ranks))
        value //= 2**used
    if any(len(ranks) != k for _, k, ranks in found):
        return "size", 0, []
    if any(sorted(set(x)) != x or max(x, default=0) >= len(block) for block, _, x in found):
        return "order", 0, []
    return "", o, sorted(block[x] for block, _, ranks in found for x in ranks)


# ---- the decoder ---------------------------------------------------------------------------------


def people(document: Document) -> tuple[list[Fraction], list[Fraction]]:
    """How many have 0, …, s items, and the share of all items that each group has."""
    s, count = document["padding"], max(document["groups"]) + 1
    shares = [Fraction(x, D) for x in document["shares"]]
    sizes = [x * s / (s - k) for k, x in enumerate(shares[count:])]
    total = sum(shares[:count])
    return [*sizes, 1 - sum(sizes)], [x / total for x in shares[:count]]


def law(document: Document, blocks: list[int]) -> dict[Vector, Fraction]:
    """The shares of people of every class that there is, as if items were drawn from all."""
    sizes, groups = people(document)
    of, count = groups_of(document), max(blocks)
    m = [sum(blocks[g] == b for g in of) for b in range(count + 1)]
    part = [
        len(of) * sum(x for x, mine in zip(groups, blocks, strict=True) if mine == b)
        for b in range(count + 1)
    ]
    every = [j for j in classes(count, len(sizes) - 1) if all(map(int.__le__, j, m[1:]))]
    found = dict.fromkeys(every, Fraction(0))
    for k, share in enumerate(sizes):
        there = [j for j in every if 0 <= min(k, len(of)) - sum(j) <= m[0]]
        ways = {
            j: choose(part[0], min(k, len(of)) - sum(j))
            * prod(map(choose, part[1:], j), start=Fraction(1))
            for j in there
        }
        if share and not any(ways.values()):  # nobody can have so many: a rounded share
            ways = {there[0]: Fraction(1)}
        for j, way in ways.items():
            if share:
                found[j] += share * way / sum(ways.values())
    return found


def choose(n: Fraction, k: int) -> Fraction:
    steps = (max(Fraction(0), Fraction(n - i) / (i + 1)) for i in range(k))
    return prod(steps, start=Fraction(1))


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
    for cut in cuts(document):
        mine = [parts[o] for o in cut]
        m, shares = counts(document, mine[0]), law(document, mine[0]["blocks"])
        masses = {j: [moments(document, part, j) for part in mine] for j in shares}
        used = [[p for p, _ in row] for row in masses.values()]
        share = [
            sum(x * row[o] for x, row in zip(shares.values(), used, strict=True))
            for o in range(len(cut))
        ]
        for b, size in enumerate(m):
            kappa = [Fraction(part["sizes"][b], size) for part in mine]
            learnt = [
                [
                    (named[b] - p * j[b] * x) / (j[b] * (1 - Fraction(j[b], size)))
                    for (p, named), x in zip(row, kappa, strict=True)
                ]
                for j, row in masses.items()
                if 0 < j[b] < size
            ]
            noise = [p * x * (1 - x) or Fraction(1) for p, x in zip(share, kappa, strict=True)]
            w = least(learnt, noise, [Fraction(1)] * len(learnt), solve)
            tau = least(used, share, [Fraction(j[b], size) for j in shares], solve)
            cost = size * sum(
                p * (x * x * y * (1 - y) + t * t)
                for p, x, t, y in zip(share, w, tau, kappa, strict=True)
            )
            for o, x, t, y in zip(cut, w, tau, kappa, strict=True):
                made[o, b + 1] = x, y, t
            told[cut[0], b + 1] = Fraction(mine[0]["chance"], D) * size / cost
    out: Any = [[[None] * count for _ in parts] for _ in range(3)]
    for cut in cuts(document):
        for g in range(count):
            block = parts[cut[0]]["blocks"][g]
            naming = [(a[0], parts[a[0]]["blocks"][g]) for a in cuts(document)]
            total = sum(told[place] for place in naming if place[1])
            for o in cut if total else ():
                x, y, t = made.get((o, block), (Fraction(0),) * 3)
                mix = told.get((cut[0], block), 0) / total * Fraction(D, parts[o]["chance"])
                out[0][o][g], out[1][o][g], out[2][o][g] = x * mix, y, t * mix
    return out[0], out[1], out[2]


def moments(document: Document, part: Document, j: Vector) -> tuple[Fraction, list[Fraction]]:
    """The chance of the part in its cut, and that times how many items of every block are named."""
    m, k = counts(document, part), part["sizes"]
    f, every = density(document, part), prod(map(comb, m, k))
    names = can_be_named(m, k, j)
    chances = {n: f[j, n] * Fraction(named_ways(m, k, j, n), every) for n in names}
    each = [sum((n[b] * p for n, p in chances.items()), Fraction(0)) for b in range(len(m))]
    return sum(chances.values(), Fraction(0)), each
