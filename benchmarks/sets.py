"""Set input: counted hits beside the paper's Padding-and-Sampling, by real reports; the speed of
their reports, and the variance that the designed integers give.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as d
from benchmarks.timing import seconds, si, table
from discreet.arrays import theory
from discreet.check import exact_sets
from discreet.designs import cuts

EPSILONS = (1, 2, 4)
RETAIL = 16_470
REPEATS = 40
GOAL, GOAL_RATE = 0.45, 2e9  # of the error of opt0; items per second and core, 5 items each


def three(m: int, eps: float) -> d.Policy:
    """Budgets eps x {1, 1.2, 2} for 5, 5 and 90 % of the items."""
    few = m // 20
    ends = {"high": (1, 0, few), "middle": (1.2, few, 2 * few), "low": (2, 2 * few, m)}
    rows = [(k, round(f * eps, 6), list(map(str, range(a, b)))) for k, (f, a, b) in ends.items()]
    return d.Policy.from_levels(rows, kind="set")


def people(n: int, m: int, size: int, rng: np.random.Generator) -> Any:
    """Everybody's set of so many items, drawn with chances 1 / rank^0.8 without replacement; the
    ranks are spread over the items, and so over the levels, at random.
    """
    weight = -0.8 * np.log(rng.permutation(m) + 1)
    drawn = np.argsort(-(weight + rng.gumbel(size=(n, m))), axis=1)[:, :size]
    return drawn.ravel(), np.arange(n + 1) * size


def run() -> str:
    return _few_items() + _accuracy() + _speed() + _variance()


def _few_items() -> str:
    """Picks beside other mechanisms for 100 items, 5 each: expected errors, and real reports."""
    m, size, n, rows = 100, 5, 20_000, []
    rng = np.random.default_rng(1)
    drawn = np.argsort(rng.random((n, m)), axis=1)[:, :size]
    sets = drawn.ravel(), np.arange(n + 1) * size
    held = np.bincount(sets[0], minlength=m).astype(float)
    for eps, levels in ((1, (m,)), (2, (m,)), (4, (m,)), (1, (10, 90)), (2, (10, 90))):
        budgets = [eps * (k + 1) for k in range(len(levels))]
        ends = np.cumsum((0, *levels)).tolist()
        policy = d.Policy.from_levels(
            [
                (f"l{k}", e, list(map(str, range(ends[k], ends[k + 1]))))
                for k, e in enumerate(budgets)
            ],
            kind="set",
        )
        counted, picked = (
            d.design(policy, model, padding=size, goal="total") for model in ("hits", "subset")
        )
        errors, covered = _errors(picked, sets, held, n), _coverage(picked, sets, held)
        others = [d.design(policy, model, padding=size).expected_mse() for model in ("oue", "opt0")]
        spread = errors.std(ddof=1) / REPEATS**0.5
        expected = picked.expected_mse()
        rows.append(
            [
                " + ".join(map(str, levels)), eps, *(f"{x:,.4g}" for x in others),
                *(f"{peer(m, size, eps):,.4g}" for peer in (_privset, _wheel, _collision)),
                f"{counted.expected_mse():,.4g}",
                f"{expected:,.4g}", f"{errors.mean():,.4g} ± {spread:.2g}",
                f"{(errors.mean() - expected) / spread:.1f}", f"{covered:.1%}",
                f"{picked.report_size} / {counted.report_size}",
                *(" / ".join(_rates(x, sets, n)) for x in (picked, counted)),
            ]
        )  # fmt: skip
    heads = [
        "items",
        "eps",
        "oue, one sampled",
        "opt0, one sampled",
        "PrivSet",
        "wheel",
        "Collision",
    ]
    heads += ["hits", "subset", "subset, measured", "standard errors off", "95 % intervals cover"]
    heads += [
        "bytes: subset / hits",
        "subset: perturb / tally per s",
        "hits: perturb / tally per s",
    ]
    title = (
        f"Sets of few items: total MSE / n, {size} of {m} items each; {n:,} real reports, "
        f'{REPEATS} repeats; the second level has twice the budget (`goal="total"`); oue, PrivSet, '
        "wheel and Collision at the smallest"
    )
    return table(title, heads, rows)


def _privset(m: int, s: int, eps: float) -> float:
    """The error of PrivSet (Wang et al. 2018) at its best size: a subset of m items and s dummies
    that is likelier by e^eps if it names any own item or dummy.
    """
    found = []
    for k in range(1, m):
        factor, miss = math.exp(eps), math.comb(m, k) / math.comb(m + s, k)
        named = factor * k * s / (m + s) / (factor - (factor - 1) * miss)
        a, b = named / s, (k - named) / m
        if a > b:
            found.append((s * a * (1 - a) + (m - s) * b * (1 - b)) / (a - b) ** 2)
    return min(found)


def _wheel(m: int, s: int, eps: float) -> float:
    """The error of the wheel mechanism (Wang et al. 2020) at its published width: a point of a
    circle on which every item covers an arc that a public hash chooses.
    """
    return _covered(m, s, eps, 1 / (2 * s - 1 + s * math.exp(eps)))


def _collision(m: int, s: int, eps: float) -> float:
    """The error of Collision (Wang et al. 2023) at its best number of values: one value, to which a
    public hash sends every item.
    """
    return min(_covered(m, s, eps, 1 / t) for t in range(s + 1, math.ceil(4 * s * math.exp(eps))))


def _covered(m: int, s: int, eps: float, share: float) -> float:
    """The error where an own item is reported with density e^eps, another as often as chance has
    it; a report covers this share of all items.
    """
    factor = math.exp(eps)
    own = share * factor / (s * share * factor + 1 - s * share)
    return (s * own * (1 - own) + (m - s) * share * (1 - share)) / (own - share) ** 2


def _coverage(mechanism: d.Mechanism, sets: Any, held: Any) -> float:
    """The share of counts that their 95 % intervals hold, over all items and repeats."""
    inside = []
    for _ in range(REPEATS):
        low, high = (
            mechanism.tally(mechanism.perturb_many(sets, indices=True)).estimate().interval()
        )
        inside.append(((low <= held) & (held <= high)).mean())
    return float(np.mean(inside))


def _rates(mechanism: d.Mechanism, sets: Any, n: int) -> list[str]:
    """People per second and core: reports written, and counted."""
    reports = mechanism.perturb_many(sets, indices=True)
    write = _core(lambda: mechanism.perturb_many(sets, indices=True, threads=1))
    count = _core(lambda: mechanism.tally(reports, threads=1))
    return [si(n / write), si(n / count)]


def _accuracy() -> str:
    m, n, size, rows = 100, 40_000, 5, []
    sets = people(n, m, size, np.random.default_rng(0))
    held = np.bincount(sets[0], minlength=m).astype(float)
    for eps in EPSILONS:
        policy, found = three(m, eps), {}
        for name, model in (("opt0", "opt0"), ("hits", None)):
            designs = [d.design(policy, model, padding=s, goal="total") for s in range(1, size + 1)]
            expected = [theory.set_error_by_size(x, {size: held}, n).mse / n for x in designs]
            place = int(np.argmin(expected))
            found[name] = place + 1, expected[place], _errors(designs[place], sets, held, n)
        cells: list[Any] = [eps]
        for padding, theory_, errors in found.values():
            spread = errors.std(ddof=1) / REPEATS**0.5
            cells += [padding, f"{theory_:,.4g}", f"{errors.mean():,.4g} ± {spread:.2g}"]
        before, after = (found[k][2].mean() for k in ("opt0", "hits"))
        met = "yes" if after <= GOAL * before else "no"
        rows.append([*cells, f"{after / before:.3f}", met])
    heads = ["eps"] + [
        f"{k}: {w}" for k in ("opt0", "hits") for w in ("padding", "expected", "measured")
    ]
    heads += ["hits against opt0", f"at most {GOAL}"]
    title = (
        f"Sets: total MSE / n of {n:,} real reports, {size} of {m} items each (1 / rank^0.8), "
        f"budgets eps × {{1, 1.2, 2}} for 5/5/90 items; each at its best padding of 1 to {size}, "
        f"{REPEATS} repeats"
    )
    return table(title, heads, rows)


def _errors(mechanism: d.Mechanism, sets: Any, held: Any, n: int) -> Any:
    """Total squared error / n of repeated collections."""
    found = []
    for _ in range(REPEATS):
        estimate = mechanism.tally(mechanism.perturb_many(sets, indices=True)).estimate()
        found.append(((estimate.counts - held) ** 2).sum() / n)
    return np.array(found)


def _speed() -> str:
    rng, rows = np.random.default_rng(0), []
    policy = three(RETAIL, 1)
    d.design(policy, "hits", padding=3)  # what is loaded once
    for s in (2, 5, 10):
        n = 100_000
        items = rng.integers(0, RETAIL // s, (n, s)) + np.arange(s) * (RETAIL // s)
        ragged = items.ravel(), np.arange(n + 1) * s
        mechanism = d.design(policy, "hits", padding=s, goal="total")

        def design(s: int = s) -> None:
            cuts.best_cut.cache_clear()
            d.design(policy, "hits", padding=s, goal="total")

        reports = mechanism.perturb_many(ragged, indices=True)
        mechanism.tally(reports[:1000])
        write = _core(lambda: mechanism.perturb_many(ragged, indices=True, threads=1))
        count = _core(lambda: mechanism.tally(reports, threads=1))
        rate = n * RETAIL / count
        goal = "" if s != 5 else "yes" if rate >= GOAL_RATE else "no"
        rows.append([s, mechanism.report_size, si(n / write), si(rate), goal, seconds(count)])
        rows[-1].append(seconds(_core(design)))
    heads = ["items each", "bytes", "people / s", "tally: items / s", f"at least {si(GOAL_RATE)}"]
    heads += [f"{n:,} reports", "design, checked"]
    title = (
        f"Sets: speed of counted hits, {RETAIL:,} items, three levels, one thread, processor time"
    )
    return table(title, heads, rows)


def _core(work: Callable[[], Any]) -> float:
    """The least processor time of several runs, in seconds: others may use the machine."""
    times = []
    for _ in range(7):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def _variance() -> str:
    rows = []
    for eps in EPSILONS:
        for s in (2, 5, 10):
            level = [("all", eps, [str(i) for i in range(10_000)])]
            policy = d.Policy.from_levels(level, kind="set")
            (part,) = d.design(policy, "hits", padding=s, goal="total").parts
            sampled = theory.absent_variance(d.design(policy, "opt0", padding=s))[0]
            found = float(_absent(part))
            rows.append([eps, s, f"{sampled:.4g}", f"{found:.4g}", f"{found / sampled:.3f}"])
    heads = ["eps", "items each", "opt0, one sampled", "hits", "hits against opt0"]
    title = "Sets: variance / n of an item that nobody has, one level, from the designed integers"
    return table(title, heads, rows)


def _absent(part: Any) -> Fraction:
    """b (1 - b) / delta^2 of a part, from its integers alone."""
    chances, b = part.ints, Fraction(part.limit, part.prime)
    own = []
    for j, row in enumerate(chances.rows, 1):
        weights, mean = exact_sets.weights(part.prime, part.limit, j), Fraction(0)
        for mass, whole, numbers in exact_sets.classes(part.prime, part.limit, j, row):
            if whole:
                mean += Fraction(mass * sum(k * weights[k] for k in numbers), whole)
        own.append(mean / (j * exact_sets.TOTAL))
    return b * (1 - b) / (min(own) - b) ** 2
