"""Measures how often intervals of shares hold, and writes the part of docs/truth.md about it.

python docs/make_coverage.py [REPEATS [PROCESSES]]

Where a report is of one part, the number of reports that name an item is binomial, and coverage is
a sum over its values: exact. Otherwise, and to see both, it is simulated: samples of people and
their reports are drawn, from the exact chances of all reports.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

import discreet as d
from discreet.arrays.tally import Tally
from discreet.estimates.estimate import Estimate
from discreet.estimates.formulas import Variance, luck_of_the_draw, score_interval

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import exhaustive  # the chance of every report, without discreet

EPSILONS = (0.5, 1, 2, 4, 8)
PEOPLE = (50, 200, 1_000, 10_000, 100_000)
SHARES = (0, 0.002, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 1)
ITEMS = [f"i{k}" for k in range(6)]
Reports = tuple[np.ndarray, np.ndarray]  # per kind of report: part_n, counts
BEGIN, END = "<!-- coverage -->", "<!-- /coverage -->"


class Setting(NamedTuple):
    """What is designed: six items, in one level or in two."""

    model: str | None
    levels: str = "one"  # one | two | open (an open level) | one-way | blocks | scale
    kind: str = "single"
    options: Mapping[str, Any] = MappingProxyType({})


ONE_PART = {
    "independent bits (oue)": Setting("oue"),
    "independent bits (rappor)": Setting("rappor"),
    "subsets of fixed size (ss)": Setting("ss"),
    "one item named (grr)": Setting("grr"),
    "each item a question": Setting(None, kind="each"),
    "sampled sets (oue)": Setting("oue", kind="set", options={"padding": 2}),
}
PARTS = {
    "subset, two levels": Setting("subset", "two"),
    "subset, tickets": Setting("subset", "two", options={"encoding": "ticket"}),
    "opt0": Setting("opt0", "two"),
    "opt1": Setting("opt1", "two"),
    "opt2": Setting("opt2", "two"),
    "one-way, an open level": Setting(None, "open"),
    "blocks": Setting(None, "blocks"),
    "scale, per step": Setting(None, "scale"),
    "counted hits": Setting("hits", "two", "set", {"padding": 4}),
    "sets by subsets": Setting("subset", "two", "set", {"padding": 2}),
    "each item, one-way": Setting(None, "one-way", "each"),
}
CLIENT = {  # reports are made by the client's code, not drawn by their law: of 2,000 people at most
    "subset, two levels, by the client": Setting("subset", "two"),
    "counted hits, by the client": Setting("hits", "two", "set", {"padding": 2}),
}

DRAWN = (
    *PARTS,
    *CLIENT,
    "subsets of fixed size (ss)",
    "each item a question",
    "sampled sets (oue)",
)
DRAWN_EPSILONS = (0.5, 2, 8)
DRAWN_SHARES = (0, 0.02, 0.3, 0.9, 1)
SAMPLES = (50, 2_000, 20_000, 100_000)
# the kinds of reports that take long have so many times fewer samples
FEWER = {"sets by subsets": 4, "counted hits, by the client": 4}
AGAIN, LOW, HIGH = 10, 0.94, 0.06  # times the samples, where a figure is out of these limits


@cache
def made(name: str, eps: float) -> d.Mechanism:
    setting = {**ONE_PART, **PARTS, **CLIENT}[name]
    first, rest = ("a", eps, ITEMS[:2]), ITEMS[2:]
    two = [first, ("b", round(1.5 * eps, 6), rest)]
    policy = {
        "one": lambda: d.Policy.from_levels([("all", eps, ITEMS)], kind=setting.kind),
        "two": lambda: d.Policy.from_levels(two, kind=setting.kind),
        "open": lambda: d.Policy.from_levels(
            [first, ("b", None, rest)], open=["b"], notion="one-way"
        ),
        "one-way": lambda: d.Policy.from_levels(two, kind=setting.kind, notion="one-way"),
        "blocks": lambda: d.Policy.from_levels(two, blocks=True),
        "scale": lambda: d.Policy.from_scale(ITEMS, step=eps),
    }[setting.levels]()
    return d.design(policy, setting.model, goal="total", **setting.options)


# ---- exact ---------------------------------------------------------------------------------------


def exact(task: tuple[str, float, int]) -> list[tuple[float, float]]:
    """The coverage of the population's share at every share, of one item and, as one of all, with
    simultaneous intervals (Sidak's bound of all items together).
    """
    name, eps, n = task
    mechanism = made(name, eps)
    coder, decoder = mechanism.arrays, mechanism.arrays.decoder
    named = np.arange(n + 1)
    scale, weight, kappa = mechanism.scale, decoder.weight[0, 0], decoder.kappa[0, 0]
    counts = scale * (weight * (named - n * kappa) + decoder.tau[0, 0] * n)
    some = mechanism.tally([mechanism.perturb(0 if not mechanism.policy.kind.lists else [0])] * n)
    base = some.estimate()
    same = np.ones(n + 1)
    noise = Variance(base.variance_at_zero[0] * same, base.slope[0] * same)
    law = noise + luck_of_the_draw(n, same)
    own, other = coder.own[0, 0], coder.other[0, 0]
    step, within = base.step[0] * same, np.clip(counts, 0, n)  # as `shares` does
    intervals = (
        score_interval(within, law, step, 0.95, False),
        _simultaneous(within, law, step, mechanism.m),
    )
    shares = [[np.clip(end / n, 0, 1) for end in ends] for ends in intervals]
    covers = []
    for share in SHARES:
        chance = other + share / scale * (own - other)
        if mechanism.encoding.fixed_size:  # another item of the group leaves less room
            size = mechanism.m
            near = (other * size - own) / (size - 1)
            chance = share / scale * own + (1 - share / scale) * near
        mass = binom.pmf(named, n, chance)
        inside = [(low <= share + 1e-12) & (share - 1e-12 <= high) for low, high in shares]
        covers.append(tuple(float(mass[x].sum()) for x in inside))
    return covers


def _simultaneous(counts, law, step, m):
    """The interval that an item gets among m items, for many counts of one item."""
    ends = [[], []]
    for k in range(0, len(counts), m):
        block = slice(k, k + m)
        pad = m - len(counts[block])
        rows = [np.pad(x[block], (0, pad), "edge") for x in (counts, law.at_zero, law.slope, step)]
        low, high = score_interval(
            rows[0], Variance(rows[1], rows[2], law.bend), rows[3], 0.95, True
        )
        for end, values in zip(ends, (low, high), strict=True):
            end.append(values[: m - pad])
    return tuple(np.concatenate(end) for end in ends)


# ---- simulated -----------------------------------------------------------------------------------


def answers_of(mechanism: d.Mechanism, share: float) -> tuple[list[frozenset[int]], np.ndarray]:
    """The answers that people give, and how likely each is. Item 0 has this share. Of a list, one
    more item at most, so that no list is longer than the padding.
    """
    rest = (1 - share) * np.array([0.5, 0.25, 0.15, 0.1, 0])
    if not mechanism.policy.kind.lists:
        return [frozenset([k]) for k in range(mechanism.m)], np.array([share, *rest])
    other = [*(0.3 * rest), 1 - 0.3 * rest.sum()]
    more = [*({k} for k in range(1, mechanism.m)), set()]
    held = [frozenset(own | x) for own in ({0}, set()) for x in more]
    return held, np.array([p * q for p in (share, 1 - share) for q in other])


@cache
def law_of(name: str, eps: float) -> tuple[np.ndarray, Reports]:
    """The law of the reports that these settings lead to."""
    return laws(made(name, eps), answers_of(made(name, eps), 0.5)[0])


def laws(mechanism: d.Mechanism, held: list[frozenset[int]]) -> tuple[np.ndarray, Reports]:
    """The exact chance of every kind of report (a row per answer), and what a report of each kind
    adds to a tally. Reports that a tally does not tell apart are of one kind.
    """
    document = mechanism.to_document()
    if document["encoding"]["kind"] == "ticket":
        return ticket_laws(document)
    if document["encoding"]["kind"] == "hits":
        return hits_laws(document, held)
    if mechanism.policy.kind.lists:
        of = exhaustive.sets(document)
        tables = [of(x) for x in held]
    else:
        tables = [exhaustive.distribution(document, next(iter(x))) for x in held]
    reports = sorted(set().union(*tables))
    kinds: dict[bytes, int] = {}
    tallies, kind_of = [], {}
    for report in reports:
        tally = mechanism.tally([report], threads=1)
        key = tally.part_n.tobytes() + tally.counts.tobytes()
        if key not in kinds:
            kinds[key] = len(tallies)
            tallies.append(tally)
        kind_of[report] = kinds[key]
    chances = np.zeros((len(held), len(tallies)))
    for row, table in zip(chances, tables, strict=True):
        for report, chance in table.items():
            row[kind_of[report]] += float(chance)
    parts, counts = (np.array([getattr(t, x) for t in tallies]) for x in ("part_n", "counts"))
    return chances / chances.sum(axis=1, keepdims=True), (parts, counts)


def ticket_laws(document: dict) -> tuple[np.ndarray, Reports]:
    """The same of tickets, of which there can be many millions: by counting how many of them name
    the same items. A ticket that names the own item, or does not, is uniform among its like.
    """
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    of, k = exhaustive.groups_of(document), len(document["parts"])
    m = len(of)
    named = (np.arange(2**m)[:, None] >> np.arange(m) & 1).astype(bool)
    chances = np.zeros((m, k, 2**m))
    first, *rest = np.ogrid[(slice(0, q),) * (t + 1)]
    for o, part in enumerate(document["parts"]):
        pattern = np.zeros((q,) * (t + 1), np.int16)
        for i in range(m):
            code = exhaustive.code(document, i)
            mark = (first + sum(a * c for a, c in zip(rest, code, strict=True))) % q
            pattern |= (mark < part["other"][of[i]]).astype(np.int16) << i
        tickets = np.bincount(pattern.ravel(), minlength=2**m).astype(float)
        for i in range(m):
            own, chance = part["own"][of[i]] / 2**32, part["chance"][of[i]] / 2**32
            sides = [(tickets, 1.0)]
            if part["own"][of[i]]:
                sides = [(tickets * named[:, i], own), (tickets * ~named[:, i], 1 - own)]
            chances[i, o] = chance * sum(p * side / side.sum() for side, p in sides)
    parts = np.repeat(np.eye(k, dtype=np.int64), 2**m, axis=0)
    counts = parts[:, :, None] * np.tile(named, (k, 1))[:, None, :]
    flat = chances.reshape(m, -1)
    return flat / flat.sum(axis=1, keepdims=True), (parts, counts)


def hits_laws(document: dict, held: list[frozenset[int]]) -> tuple[np.ndarray, Reports]:
    """The same of counted hits, of which there are even more: a tally sees only which items a
    report names. The items are no more than a polynomial has coefficients, so the number of
    polynomials per set of named items is known.
    """
    of = exhaustive.hits_patterns(document)
    tables = [of(x) for x in held]
    patterns = [*dict.fromkeys(pattern for table in tables for pattern in table)]
    parts = np.zeros((len(patterns), len(document["parts"])), np.int64)
    counts = np.zeros((*parts.shape, len(ITEMS)), np.int64)
    for kind, (part, named) in enumerate(patterns):
        parts[kind, part] = 1
        counts[kind, part, [*named]] = 1
    chances = np.array([[float(table.get(x, 0)) for x in patterns] for table in tables])
    return chances / chances.sum(axis=1, keepdims=True), (parts, counts)


def tallies(
    name: str, eps: float, held: list[frozenset[int]], people: np.ndarray, rng: np.random.Generator
) -> Iterator[Tally]:
    """A tally per sample; `people` has how many give each answer. Reports are drawn by their law,
    or made as a client makes them.
    """
    mechanism = made(name, eps)
    if name in CLIENT:
        lists, n = mechanism.policy.kind.lists, int(people[0].sum())
        answers = [sorted(x) if lists else next(iter(x)) for x in held]
        for first in range(0, len(people), 50):  # samples at a time
            some = people[first : first + 50]
            given = [answers[k] for row in some for k, x in enumerate(row) for _ in range(x)]
            reports = mechanism.perturb_many(given, threads=1)
            for k in range(len(some)):
                yield mechanism.tally(reports[k * n : (k + 1) * n], threads=1)
        return
    law, (parts, counts) = law_of(name, eps)
    kinds = sum(rng.multinomial(people[:, k], law[k]) for k in range(len(held)))
    for sent in kinds:
        yield Tally(mechanism, sent @ parts, np.tensordot(sent, counts, 1))


def drawn(task: tuple[str, float, int, float, int, int]) -> list[float]:
    """Draw samples of reports: how often the intervals of item 0 hold, of the population and of
    those who answered; those of all items together, of both; and how often two samples of one
    population differ for certain.
    """
    name, eps, n, share, repeats, seed = task
    mechanism = made(name, eps)
    rng = np.random.default_rng(seed)
    held, chance = answers_of(mechanism, share)
    holds = np.array([[k in x for k in range(mechanism.m)] for x in held])
    truth = chance @ holds
    people = rng.multinomial(n, chance, repeats)
    found = stacked(tallies(name, eps, held, people, rng))
    covers, given = [], people @ holds / n
    for together in (False, True):
        for about, true in (("population", truth[:, None]), ("respondents", given.T)):
            _, low, high = found.shares(about=about, simultaneous=together)
            inside = (low <= true + 1e-12) & (true - 1e-12 <= high)
            covers.append(float((inside.all(axis=0) if together else inside[0]).mean()))
    pairs = repeats // 2
    first, second = (taken(found, slice(k, 2 * pairs, 2)) for k in (0, 1))
    return [*covers, float(first.compare(second).differs.any(axis=0).mean())]


STACKED = ("counts", "variance_at_zero", "slope", "step")


def stacked(tallies: Iterable[Tally]) -> Estimate:
    """The estimates of many samples as one, with a column per sample: intervals and comparisons are
    worked out item by item, so they are those of every sample.
    """
    each = [tally.estimate() for tally in tallies]
    return replace(each[0], **{x: np.array([getattr(e, x) for e in each]).T for x in STACKED})


def taken(found: Estimate, samples: slice) -> Estimate:
    """Some of the samples."""
    return replace(found, **{x: getattr(found, x)[:, samples] for x in STACKED})


# ---- the page ------------------------------------------------------------------------------------


def percent(x: float) -> str:
    return f"{100 * x:.1f}"


def exact_table(pool: ProcessPoolExecutor) -> list[str]:
    tasks = [(name, eps, n) for name in ONE_PART for eps in EPSILONS for n in PEOPLE]
    found = dict(zip(tasks, pool.map(exact, tasks), strict=True))
    heads = " | ".join(f"n = {n:,}" for n in PEOPLE)
    lines = [f"| reports, eps | {heads} |", "|---|" + "---|" * len(PEOPLE)]
    for name in ONE_PART:
        for eps in EPSILONS:
            cells = []
            for n in PEOPLE:
                one, together = zip(*found[name, eps, n], strict=True)
                cells.append(
                    f"{percent(min(one))} ({percent(1 - len(ITEMS) * (1 - min(together)))})"
                )
            lines.append(f"| {name}, {eps:g} | {' | '.join(cells)} |")
    return lines


Figures = dict[tuple[str, float, int, float], list[float]]  # five per setting, eps, n and share


def all_drawn(pool: ProcessPoolExecutor, repeats: int) -> tuple[Figures, Figures]:
    """All figures of the table; and those that were out of the limits, from many more samples,
    which are new: so it is no matter that chance chose them.
    """
    cells = [
        (name, eps, n, share)
        for name in sorted(DRAWN, key=lambda name: name not in FEWER)
        for n in SAMPLES
        for eps in DRAWN_EPSILONS
        for share in DRAWN_SHARES
        if name not in CLIENT or n <= 2_000
    ]
    tasks = [(*cell, repeats // FEWER.get(cell[0], 1), 1) for cell in cells]
    found = dict(zip(cells, pool.map(drawn, tasks), strict=True))
    out = [cell for cell, x in found.items() if min(x[:4]) < LOW or x[4] > HIGH]
    tasks = [
        (*cell, repeats // FEWER.get(cell[0], 1), seed)
        for cell in out
        for seed in range(2, AGAIN + 2)
    ]
    runs = np.array([*pool.map(drawn, tasks)]).reshape(len(out), AGAIN, 5)
    return found, dict(zip(out, runs.mean(axis=1).tolist(), strict=True))


def drawn_table(found: Figures) -> list[str]:
    """The lines of the table."""
    heads = " | ".join(f"n = {n:,}" for n in SAMPLES)
    lines = [f"| reports, eps | {heads} |", "|---|" + "---|" * len(SAMPLES)]
    for name in DRAWN:
        for eps in DRAWN_EPSILONS:
            cells = []
            for n in SAMPLES:
                rows = np.array([x for t, x in found.items() if t[:3] == (name, eps, n)])
                if not len(rows):
                    cells.append("–")
                    continue
                low, wrong = map(percent, rows[:, :4].min(axis=0)), rows[:, 4].max()
                cells.append(f"{', '.join(low)}; {percent(wrong)}")
            lines.append(f"| {name}, {eps:g} | {' | '.join(cells)} |")
    return lines


KINDS = ("population", "respondents", "population, all items", "respondents, all items")


def again_table(again: Figures, repeats: int) -> list[str]:
    """The lowest coverage of every kind and the highest rate of false differences among the
    figures that were drawn again, with their standard errors.
    """
    lines = ["| figure | where | from new samples | standard error |", "|---|---|---|---|"]
    picks = [(kind, k, min) for k, kind in enumerate(KINDS)]
    for kind, k, worst in (*picks, ("false differences", 4, max)):
        cell = worst(again, key=lambda cell: again[cell][k])
        name, eps, n, share = cell
        samples = AGAIN * (repeats // FEWER.get(name, 1)) // (2 if k == 4 else 1)
        spread = 100 * (again[cell][k] * (1 - again[cell][k]) / samples) ** 0.5
        where = f"{name}, eps {eps:g}, n = {n:,}, share {100 * share:g} %"
        lines.append(f"| {kind} | {where} | {100 * again[cell][k]:.2f} | {spread:.2f} |")
    return lines


PART = """{begin}

## How often the intervals of shares hold

Made by `python docs/make_coverage.py {repeats}`. 95 % intervals; each cell is the worst of several
shares from 0 to 1. The first table is exact. The second is simulated, so chance moves its figures.

**Exact**, for reports of one part: the number of reports that name an item is binomial, so coverage
is a sum, without sampling; the worst of {shares} shares. The share of the population; in brackets a
lower bound for all six items together (simultaneous intervals, by Bonferroni's inequality).

{exact}

**Simulated**: {repeats:,} samples per figure. Reports are drawn from the exact law of the
mechanism, which a second implementation enumerates, or made by the client's code where the row says
so. Counted hits by the client and sets by subsets have {quarter:,} samples (standard error
{coarse:.2f} points). Each cell is the worst of the shares 0, 2, 30, 90 and 100 %, and has five
figures: the share of the population; the share of those who answered; the same two for all items
together (simultaneous intervals); and, after the semicolon, how often two samples of one population
were said to differ for certain.

A worst figure is partly bad luck. So every figure below {low:g} % (or above {high:g} %, of false
differences) was drawn again with {again} times the samples, all of them new, and the new figure
stands in the table. This were {out} of {count} settings. The furthest of their new figures:

{furthest}

What chance does to figures that were not drawn again:

| | one figure |
|---|---|
| standard error of 95 % ({repeats:,} samples) | {error:.2f} points |
| standard error of 5 % ({half:,} pairs) | {wrong:.2f} points |

{drawn}
{end}"""


def error(repeats: int) -> float:
    """One standard error of a share of 5 %, in points."""
    return 100 * (0.05 * 0.95 / repeats) ** 0.5


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with ProcessPoolExecutor(int(sys.argv[2]) if len(sys.argv) > 2 else 2) as pool:
        (found, again), exactly = all_drawn(pool, repeats), exact_table(pool)
    quarter = repeats // max(FEWER.values())
    part = PART.format(
        begin=BEGIN, end=END, repeats=repeats, half=repeats // 2, quarter=quarter,
        coarse=error(quarter), shares=len(SHARES), count=len(found), out=len(again), again=AGAIN,
        low=100 * LOW, high=100 * HIGH, error=error(repeats), wrong=error(repeats // 2),
        furthest="\n".join(again_table(again, repeats)),
        exact="\n".join(exactly), drawn="\n".join(drawn_table({**found, **again})),
    )  # fmt: skip
    for name in ("truth.md", "truth.template.md"):
        path = Path(__file__).parent / name
        text = path.read_text(encoding="utf-8")
        if BEGIN in text:
            text = re.sub(f"{BEGIN}.*{END}", lambda _: part, text, flags=re.DOTALL)
        else:
            text = text.rstrip() + "\n\n" + part + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
