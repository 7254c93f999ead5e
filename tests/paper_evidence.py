"""Numbers made by hand for the paper's claims, and the check that each can hold and can fail."""

from copy import deepcopy
from functools import cache

import numpy as np

from discreet.paper import fig3, fig6, fig7, table1, table2
from discreet.paper.datasets import Dataset
from discreet.paper.experiments import Experiment, Numbers, Row
from discreet.paper.settings import Setup
from discreet.paper.verdicts import FAILS, HOLDS, UNKNOWN, Evidence

GOOD = {"opt0": 1.0, "oue": 2.0, "rappor": 3.0}
BAD = {"opt0": 2.5, "oue": 2.0, "rappor": 3.0}
FALLING, RISING = [5, 3, 1, 2, 4], [1, 2, 3, 4, 5]


def row(values=(), **fields):
    """A row of the default experiment; a single number becomes ten repeats around it."""
    if isinstance(values, float | int):
        values = tuple(values * (1 + 0.001 * np.sin(np.arange(10))))
    base = {"data": "retail", "model": "opt0", "eps": 1.0, "levels": 3, "share": 0.05}
    base |= {"padding": 0, "encoding": "bits", "metric": "mse", "k": 0, "view": "raw"}
    return Row(**{**base, "values": values, **fields})


def models(values, **fields):
    """Rows of several models in one place; the theory is the value itself."""
    return [row(value, model=model, theory=value, **fields) for model, value in values.items()]


def evidence(rows=(), data=None, **changed):
    """These rows, the true tables but for those given, and facts about the data."""
    return Evidence(Numbers(rows), {**real(), **changed}, data or {})


@cache
def _real():
    quick = Setup(quick=True)
    fixed = (table1.leakage, table1.cap, table2.toy, table2.beyond, fig3.cost, fig7.set_budgets)
    made = [*(make() for make in fixed), fig3.designs(quick), fig6.limit(quick)]
    return {table.name: table.rows for table in made}


def real():
    """The true tables."""
    return deepcopy(_real())


def changed(name, change, **where):
    """A true table with rows changed where the columns have these values."""
    rows = real()[name]
    chosen = [x for x in rows if all(x[key] == value for key, value in where.items())]
    assert chosen
    for x in chosen:
        x.update(change)
    return evidence(**{name: rows})


def curve(data, metric, lines):
    """Theory rows: eps -> value at paddings 1, 2, …"""
    return [
        row(data=data, metric=metric, eps=eps, padding=ell, theory=float(value))
        for eps, line in lines.items()
        for ell, value in enumerate(line, 1)
    ]


def both(data, lines):
    """The same curves of both errors."""
    return curve(data, "re", lines) + curve(data, "mse", lines)


def sizes(mean, p90=4.0):
    """The tables of the items per person."""
    spread = {"mean": mean, "median": mean, "90th percentile": p90, "largest": 9}
    made = {key: {"data": key, "title": key, **spread} for key in ("clothing", "kosarak", "retail")}
    return {"fig8_sizes": [made["clothing"]], "fig9_sizes": [made["kosarak"], made["retail"]]}


def judge(target, name):
    """The judge of a claim."""
    return next(claim for claim in target.claims if claim.name == name).judge


def check_claims(target, cases):
    """Every claim of a target has numbers that make it hold and numbers that make it fail."""
    claims = {claim.name: claim for claim in target.claims}
    assert sorted(cases) == sorted(claims) and len(claims) == len(list(target.claims))
    for name, (good, *bad) in cases.items():
        reports = [claims[name].report(found) for found in (good, *bad)]
        verdicts = [report["verdict"] for report in reports]
        assert verdicts == [HOLDS] + [FAILS] * len(bad) and bad, reports
        for report in reports:
            assert report["number"] and report["sentence"] and report["where"]
            assert report["from"] == target.name
            assert report["margin"] is None or np.isfinite(report["margin"])


def check_unknown_without_numbers(target, cases, but=()):
    """Without rows, a claim about them cannot be shown; those named fail by a table alone."""
    for claim in target.claims:
        if cases[claim.name][0].numbers.rows:
            wanted = FAILS if claim.name in but else UNKNOWN
            assert claim.judge(evidence()).verdict == wanted, claim.name


def survey(n=400, seed=1, single=False, m=12):
    """People with 1 to 6 of m items, the first items common."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, m + 1)
    weights /= weights.sum()
    counts = [1 if single else rng.integers(1, 7) for _ in range(n)]
    sets = [rng.choice(m, k, replace=False, p=weights) for k in counts]
    items, offsets = np.concatenate([np.sort(x) for x in sets]), np.cumsum([0, *map(len, sets)])
    first = np.bincount([x[0] for x in sets], minlength=m)
    return Dataset("small", "Small", "made", "", len(items), items, offsets, first)


def experiment(**more):
    """A small one."""
    base = {"data": "small", "model": "opt0", "eps": 1.5, "repeats": 3}
    return Experiment(**{**base, "shares": (0.25, 0.25, 0.5), **more})


def fimi_lines(n, m, largest, seed):
    """Transactions in FIMI's layout; every item occurs, ids have gaps, one line names an item
    twice.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, m + 1)
    weights /= weights.sum()
    counts = [rng.integers(1, largest + 1) for _ in range(n)]
    rows = [rng.choice(m, k, replace=False, p=weights).tolist() for k in counts]
    rows += [[k] for k in range(m)]
    rows[5].append(rows[5][0])
    return "".join(" ".join(str(3 * item + 10) for item in line) + "\n" for line in rows)
