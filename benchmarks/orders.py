"""One-way protection and scales beside the mechanisms that others proposed for the same guarantee:
uRR and uRAP (Murakami and Kawamoto, USENIX Security 2019) and the truncated geometric mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import discreet as d
from benchmarks.timing import table
from discreet.arrays.types import Floats, Ints

PEOPLE, REPEATS, REAL = 20_000, 100, 40
Draw = Callable[[Ints, np.random.Generator], Floats]  # estimates of these true counts
# sensitive items, open items, epsilon
ONE_WAY = ((1, 4, 1), (5, 95, 0.5), (5, 95, 1), (5, 95, 2), (11, 30, 1), (50, 50, 1))
SCALES = tuple((points, step) for points in (5, 11) for step in (0.5, 1, 2))  # points, per step


def run() -> str:
    return _one_way() + "\n" + _scales() + "\n" + _expected()


# ---- one-way protection --------------------------------------------------------------------------


def urr(sensitive: int, open_: int, eps: float) -> Floats:
    """Pr(report | answer) of utility-optimised randomised response, reports x answers; the first
    reports and answers are the sensitive ones.
    """
    other = 1 / (sensitive + np.exp(eps) - 1)
    chance = np.diag([np.exp(eps) * other] * sensitive + [1 - sensitive * other] * open_)
    return chance + other * ((np.arange(sensitive + open_) < sensitive)[:, None] & (chance == 0))


def urap(eps: float, own: float) -> tuple[float, float]:
    """Of utility-optimised RAPPOR: the chance that a sensitive bit is set though the answer is
    another one, and that the bit of an open answer is. `own` is that of a sensitive answer's bit.
    """
    weight = (1 - own) * np.exp(eps) + own
    return own / weight, 1 - weight * np.exp(-eps)


def rappor(eps: float) -> float:
    """The `own` with which uRAP was published."""
    return float(1 / (1 + np.exp(-eps / 2)))


def by_matrix(chance: Floats) -> Draw:
    """Draw reports by their chances; the inverse is the only unbiased estimate there is."""
    inverse, law = np.linalg.inv(chance), (chance / chance.sum(axis=0)).T

    def draw(truth: Ints, rng: np.random.Generator) -> Floats:
        return np.asarray(inverse @ rng.multinomial(truth, law).sum(axis=0))

    return draw


def by_bits(sensitive: int, eps: float, own: float) -> Draw:
    """Draw the bits of uRAP, whose errors do not depend on each other's."""
    other, open_ = urap(eps, own)

    def draw(truth: Ints, rng: np.random.Generator) -> Floats:
        n, hidden = truth.sum(), truth[:sensitive]
        bits = rng.binomial(hidden, own) + rng.binomial(n - hidden, other)
        shown = rng.binomial(truth[sensitive:], open_) / open_
        return np.concatenate(((bits - n * other) / (own - other), shown))

    return draw


def by_design(policy: d.Policy, model: str | None = None) -> Draw:
    """Real reports of a mechanism, and its estimate."""
    mechanism = d.design(policy, model)

    def draw(truth: Ints, rng: np.random.Generator) -> Floats:
        answers = np.repeat(np.arange(len(truth)), truth)
        reports = mechanism.perturb_many(answers, indices=True)
        return np.asarray(mechanism.tally(reports).estimate().counts)

    return draw


def _policy(sensitive: int, open_: int, low: float, high: float | None, notion: str) -> d.Policy:
    rows = [("high", low, _names(sensitive)), ("low", high, _names(open_, "other "))]
    return d.Policy.from_levels(rows, notion=notion, open=[] if high else ["low"])


def _names(count: int, prefix: str = "") -> list[str]:
    return [f"{prefix}{k}" for k in range(count)]


def _one_way() -> str:
    rows = []
    for sensitive, open_, eps in ONE_WAY:
        drawn = {
            "discreet, one-way": by_design(_policy(sensitive, open_, eps, None, "one-way")),
            "uRR": by_matrix(urr(sensitive, open_, eps)),
            "uRAP": by_bits(sensitive, eps, rappor(eps)),
            "uRAP, own bit 1/2 as in OUE": by_bits(sensitive, eps, 0.5),
            "discreet, `min`, open at 2 eps": by_design(
                _policy(sensitive, open_, eps, 2 * eps, "min")
            ),
            "plain LDP (ss)": by_design(_policy(sensitive, open_, eps, eps, "min"), "ss"),
        }
        truth = _evenly(sensitive + open_)
        found = {name: errors(draw, truth)[0] for name, draw in drawn.items()}
        rows += [[f"{sensitive} + {open_}", eps, *row] for row in _compared(found)]
    title = (
        f"Accuracy, one-way: {PEOPLE:,} people spread evenly over sensitive + open items, "
        f"{REPEATS} repeats; the first four rows of each keep the same guarantee"
    )
    return table(title, ["items", "eps", "who", "total MSE / n", "against discreet"], rows)


# ---- scales --------------------------------------------------------------------------------------


def geometric(points: int, step: float) -> Floats:
    """Pr(report | answer) of the truncated geometric mechanism, reports x answers."""
    kernel = np.exp(-step * np.abs(np.subtract.outer(np.arange(points), np.arange(points))))
    return np.asarray(kernel * np.linalg.solve(kernel, np.ones(points))[:, None])


def _scales() -> str:
    rows = []
    for points, step in SCALES:
        names, truth = _names(points), _evenly(points)
        drawn = {
            "discreet, for the items": by_design(
                d.Policy.from_scale(names, step, estimate="items")
            ),
            "discreet, for both": by_design(d.Policy.from_scale(names, step)),
            "truncated geometric": by_matrix(geometric(points, step)),
            "plain LDP (ss)": by_design(d.Policy.from_levels([("all", step, names)]), "ss"),
        }
        found = {name: errors(draw, truth) for name, draw in drawn.items()}
        items = _compared({name: both[0] for name, both in found.items()})
        means = _compared({name: both[1] for name, both in found.items()})
        rows += [
            [points, step, *row, *more[1:]] for row, more in zip(items, means, strict=True)
        ]  # fmt: skip
    title = (
        f"Accuracy, scales: {PEOPLE:,} people spread evenly over the points, {REPEATS} "
        "repeats; the first three rows of each keep the same guarantee"
    )
    heads = ["points", "eps per step", "who", "items: total MSE / n", "against discreet"]
    return table(title, [*heads, "sum of the answers: MSE / n", "against discreet"], rows)


# ---- as expected ---------------------------------------------------------------------------------


def _rows() -> dict[str, d.Policy]:
    """Questions of every order of budgets."""

    def of(rows: list[tuple[int, float | None]], notion: str) -> d.Policy:
        levels = [(f"l{k}", e, _names(m, f"{k}-")) for k, (m, e) in enumerate(rows)]
        return d.Policy.from_levels(
            levels, notion=notion, open=[f"l{k}" for k, (_, e) in enumerate(rows) if e is None]
        )

    def blocks(count: int, size: int) -> d.Policy:
        levels = [(f"b{k}", 1, _names(size, f"{k}-")) for k in range(count)]
        return d.Policy.from_levels(levels, blocks=True)

    return {
        "one-way, 5 at 1 and 95 open": of([(5, 1), (95, None)], "one-way"),
        "one-way, 5 at 1, 6 at 2, 30 open": of([(5, 1), (6, 2), (30, None)], "one-way"),
        "one-way, 5 at 1, 6 at 2, 30 at 4": of([(5, 1), (6, 2), (30, 4)], "one-way"),
        "one-way, 1 at 1 and 4 open": of([(1, 1), (4, None)], "one-way"),
        "blocks, 5 of 5 at 1": blocks(5, 5),
        "blocks, 10 of 10 at 1": blocks(10, 10),
        **{
            f"scale of {points} at {step}": d.Policy.from_scale(
                _names(points), step, estimate="items"
            )
            for points, step in ((5, 0.5), (5, 1), (5, 2), (11, 1), (50, 1))
        },
    }


def _expected() -> str:
    """Of every row: how long the design takes, what it promises to cost, and what it costs."""
    rows = []
    for name, policy in _rows().items():
        start = time.process_time()
        mechanism = d.design(policy, goal="total")
        spent = time.process_time() - start
        truth, gaps, inside = _evenly(mechanism.m), [], []
        for _ in range(REAL):
            answers = np.repeat(np.arange(mechanism.m), truth)
            estimate = mechanism.tally(mechanism.perturb_many(answers, indices=True)).estimate()
            low, high = estimate.interval()
            gaps.append(float(((estimate.counts - truth) ** 2).sum() / truth.sum()))
            inside.append(((low <= truth) & (truth <= high)).mean())
        mean, error = np.mean(gaps), np.std(gaps, ddof=1) / REAL**0.5
        value = mechanism.expected_mse()
        rows.append(
            [
                name, f"{spent:.2f} s", f"{value:.4g}", f"{mean:.4g} ± {error:.2g}",
                f"{(mean - value) / error:+.1f}", f"{np.mean(inside):.1%}",
                mechanism.certificate.sentence if mechanism.certificate else "",
            ]
        )  # fmt: skip
    title = (
        f'Any order of budgets (`goal="total"`): {PEOPLE:,} people spread evenly, {REAL} repeats '
        "of real reports; design times are of the processor"
    )
    heads = ["question", "design", "expected total MSE / n", "measured", "standard errors off"]
    return table(title, [*heads, "95 % intervals cover", "certificate"], rows)


# ---- measure -------------------------------------------------------------------------------------


def errors(draw: Draw, truth: Ints, repeats: int = REPEATS) -> tuple[Floats, Floats]:
    """The total squared error / n of every repeat; and that of the sum of answers 1, 2, 3, …"""
    rng = np.random.default_rng(1)
    gaps = np.array([draw(truth, rng) - truth for _ in range(repeats)])
    values = np.arange(len(truth)) - (len(truth) - 1) / 2
    return (gaps**2).sum(axis=1) / truth.sum(), (gaps @ values) ** 2 / truth.sum()


def _evenly(items: int) -> Ints:
    return np.full(items, PEOPLE // items)


def _compared(found: dict[str, Floats]) -> list[list[str]]:
    """Name, mean with its standard error, and the ratio to the first."""
    first = next(iter(found.values())).mean()
    return [
        [name, f"{x.mean():.4g} ± {x.std(ddof=1) / len(x) ** 0.5:.2g}", f"{x.mean() / first:.2f} ×"]
        for name, x in found.items()
    ]
