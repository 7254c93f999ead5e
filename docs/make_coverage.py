"""Measures how often intervals of shares hold, and writes the part of docs/truth.md about it.

python docs/make_coverage.py [REPEATS [PROCESSES]]

Where a report is of one part, the number of reports that name an item is binomial, and coverage is
a sum over its values: exact. Otherwise, and to see both, it is simulated: samples of people and
their reports are drawn, from the exact chances of all reports.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binom, norm

import discreet as d
from discreet.arrays.tally import Tally
from discreet.estimates.formulas import Variance, luck_of_the_draw, score_interval

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import exhaustive  # the chance of every report, without discreet

EPSILONS = (0.5, 1, 2, 4, 8)
PEOPLE = (50, 200, 1_000, 10_000, 100_000)
SHARES = (0, 0.002, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 1)
ITEMS = [f"i{k}" for k in range(6)]
Reports = tuple[np.ndarray, np.ndarray]  # per kind of report: part_n, counts
BEGIN, END = "<!-- coverage -->", "<!-- /coverage -->"
# kind, model, encoding, whether the levels differ
ONE_PART = {
    "independent bits (oue)": ("single", "oue", None, False),
    "independent bits (rappor)": ("single", "rappor", None, False),
    "subsets of fixed size (ss)": ("single", "ss", None, False),
    "one item named (grr)": ("single", "grr", None, False),
    "each item a question": ("each", None, None, False),
    "sampled sets (oue)": ("set", "oue", None, False),
}
PARTS = {
    "subset, two levels": ("single", "subset", None, True),
    "subset, tickets": ("single", "subset", "ticket", True),
    "opt0": ("single", "opt0", None, True),
    "counted hits": ("set", None, None, True),
}

DRAWN = (*PARTS, "subsets of fixed size (ss)", "each item a question", "sampled sets (oue)")
DRAWN_EPSILONS = (0.5, 2, 8)
DRAWN_SHARES = (0, 0.02, 0.3, 0.9)
SAMPLES = (50, 2_000, 20_000)
SLOW, FEWER = "counted hits", 4  # made by the client: fewer samples of 2,000, none of 20,000


def made(setting: tuple, eps: float) -> d.Mechanism:
    kind, model, encoding, differ = setting
    levels = [("all", eps, ITEMS)]
    if differ:
        levels = [("a", eps, ITEMS[:2]), ("b", round(1.5 * eps, 6), ITEMS[2:])]
    options = {"padding": 2} if kind == "set" else {}
    if encoding:
        options["encoding"] = encoding
    return d.design(d.Policy.from_levels(levels, kind=kind), model, **options)


# ---- exact ---------------------------------------------------------------------------------------


def exact(task: tuple[str, float, int]) -> list[tuple[float, float]]:
    """The coverage of the population's share at every share, of one item and, as one of all, with
    simultaneous intervals (Sidak's bound of all items together).
    """
    name, eps, n = task
    mechanism = made(ONE_PART[name], eps)
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


def laws(mechanism: d.Mechanism, held: list[frozenset[int]]) -> tuple[np.ndarray, Reports]:
    """The exact chance of every kind of report (a row per answer), and what a report of each kind
    adds to a tally. Reports that a tally does not tell apart are of one kind.
    """
    document = mechanism.to_document()
    if document["encoding"]["kind"] == "ticket":
        return ticket_laws(document)
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


def tallies(
    mechanism: d.Mechanism, held: list[frozenset[int]], people: np.ndarray, rng: np.random.Generator
) -> Iterator[Tally]:
    """A tally per sample; `people` has how many give each answer. The laws of hits have too many
    reports to list, so theirs are made as a client makes them.
    """
    if mechanism.encoding.name == "hits":
        answers = [sorted(x) for x in held]
        for row in people:
            given = [answers[k] for k, count in enumerate(row) for _ in range(count)]
            yield mechanism.tally(mechanism.perturb_many(given, threads=1), threads=1)
        return
    law, (parts, counts) = laws(mechanism, held)
    kinds = sum(rng.multinomial(people[:, k], law[k]) for k in range(len(held)))
    for sent in kinds:
        yield Tally(mechanism, sent @ parts, np.tensordot(sent, counts, 1))


def drawn(task: tuple[str, float, int, float, int, int]) -> list[float]:
    """Draw samples of reports: how often the intervals of item 0 hold, of the population and of
    those who answered; those of all items together, of both; and how often two samples of one
    population differ for certain.
    """
    name, eps, n, share, repeats, seed = task
    mechanism = made({**ONE_PART, **PARTS}[name], eps)
    rng = np.random.default_rng(seed)
    held, chance = answers_of(mechanism, share)
    holds = np.array([[k in x for k in range(mechanism.m)] for x in held])
    truth = chance @ holds
    people = rng.multinomial(n, chance, repeats)
    hits, last = np.zeros(5), None
    for tally, given in zip(tallies(mechanism, held, people, rng), people @ holds / n, strict=True):
        estimate = tally.estimate()
        for k, (about, true) in enumerate((("population", truth), ("respondents", given))):
            for together in (False, True):
                _, low, high = estimate.shares(about=about, simultaneous=together)
                inside = (low <= true + 1e-12) & (true - 1e-12 <= high)
                hits[k + 2 * together] += inside.all() if together else inside[0]
        if last is None:
            last = estimate
        else:
            hits[4] += estimate.compare(last).differs.any()
            last = None
    return [*(hits[:4] / repeats), hits[4] / (repeats // 2)]


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


def drawn_table(pool: ProcessPoolExecutor, repeats: int) -> tuple[list[str], np.ndarray]:
    """The lines of the table, and all figures that are in it or behind it (cells x 5)."""
    tasks = [
        (name, eps, n, share, repeats // (FEWER if name == SLOW and n > 50 else 1), 1)
        for name in sorted(DRAWN, key=lambda name: name != SLOW)
        for n in SAMPLES
        for eps in DRAWN_EPSILONS
        for share in DRAWN_SHARES
        if name != SLOW or n <= 2_000
    ]
    found = dict(zip(tasks, pool.map(drawn, tasks), strict=True))
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
    return lines, np.array([*found.values()])


PART = """{begin}
## How often the intervals of shares hold

Made by `python docs/make_coverage.py {repeats}`. 95 % intervals; each cell is the worst of several
shares from 0 to 1. The first table is exact. The second is simulated, so chance moves its figures.

**Exact**, for reports of one part: the number of reports that name an item is binomial, so coverage
is a sum, without sampling; the worst of {shares} shares. The share of the population; in brackets a
lower bound for all six items together (simultaneous intervals, by Bonferroni's inequality).

{exact}

**Simulated**: {repeats:,} samples per figure. Reports are drawn from the exact law of the
mechanism, which a second implementation enumerates. The reports of counted hits are too many to
list, so the client's code makes them ({quarter:,} samples of 2,000 people, which have a standard
error of {coarse:.1f} points; none of 20,000). Each cell is the worst of the shares 0, 2, 30 and
90 %, and has five figures: the share of the population; the share of those who answered; the same
two for all items together (simultaneous intervals); and, after the semicolon, how often two samples
of one population were said to differ for certain.

What chance does to these figures:

| | one figure | the worst of {per} in a cell | the worst of all {count} |
|---|---|---|---|
| standard error of 95 % ({repeats:,} samples) | {error:.2f} points | | |
| if intervals held in exactly 95 % | 95 | about {cell_low:.1f} | about {all_low:.1f} |
| the lowest figure of the table: population, respondents | | | {lowest} |
| standard error of 5 % ({half:,} pairs) | {wrong:.2f} points | | |
| if false differences were exactly 5 % | 5 | about {cell_high:.1f} | about {all_high:.1f} |
| the highest rate of false differences in the table | | | {highest} |

{drawn}
{end}"""


def error(repeats: int) -> float:
    """One standard error of a share of 5 %, in points."""
    return 100 * (0.05 * 0.95 / repeats) ** 0.5


def furthest(k: int) -> float:
    """How many standard errors the furthest of k independent figures is off, to one side: the
    expected largest of k normal numbers.
    """
    x = np.linspace(0, 8, 8_001)[1:]
    return float((1 - norm.cdf(x) ** k - norm.cdf(-x) ** k).sum() * 1e-3)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with ProcessPoolExecutor(int(sys.argv[2]) if len(sys.argv) > 2 else 2) as pool:
        (lines, figures), exactly = drawn_table(pool, repeats), exact_table(pool)
    per, count, half = len(DRAWN_SHARES), len(figures), repeats // 2
    part = PART.format(
        begin=BEGIN, end=END, repeats=repeats, half=half, quarter=repeats // FEWER,
        coarse=error(repeats // FEWER),
        shares=len(SHARES), per=per, count=count,
        error=error(repeats), wrong=error(half),
        cell_low=95 - furthest(per) * error(repeats), all_low=95 - furthest(count) * error(repeats),
        cell_high=5 + furthest(per) * error(half), all_high=5 + furthest(count) * error(half),
        lowest=", ".join(map(percent, figures[:, :2].min(axis=0))),
        highest=percent(figures[:, 4].max()),
        exact="\n".join(exactly), drawn="\n".join(lines),
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
