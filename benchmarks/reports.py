"""Perturbing and counting: against numpy and the peers, on one and two threads, and how
time grows with n and m.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np

import discreet as d
from benchmarks.timing import best, seconds, si, table

ROOT = Path(__file__).parent.parent
PEERS = [
    "pure-ldp==1.2.0",
    "scikit-learn",
    "statsmodels",
    "multi-freq-ldpy==0.2.5",
    "opendp==0.16.0",
    "pandas",
    "matplotlib",
]
SETTINGS = [(10_000, 1_000), (100_000, 100), (100_000, 16_470)]


def policy(m: int, eps: float = 1.0) -> d.Policy:
    few = max(1, m // 20)
    rows = [("high", eps, few), ("middle", 1.2 * eps, few), ("low", 2 * eps, m - 2 * few)]
    return d.Policy.from_levels(
        [(name, e, [f"{name}{i}" for i in range(k)]) for name, e, k in rows]
    )


def peer_python() -> str | None:
    """The Python of the benchmark's own environment, made if it can be."""
    python = ROOT / ".bench-venv" / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(ROOT / ".bench-venv")], check=True)
        probe = "import opendp, multi_freq_ldpy, pure_ldp.frequency_oracles, pandas, matplotlib"
        have = subprocess.run([str(python), "-c", probe], capture_output=True)
        if have.returncode:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *PEERS], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return str(python)


def _numpy_perturb(b: np.ndarray, n: int, m: int) -> np.ndarray:
    """The plain numpy way, in blocks of about 100 MB so that it fits: everything at
    once would be slower still.
    """
    rng, step = np.random.default_rng(), max(1, 12_500_000 // m)
    return np.concatenate(
        [np.packbits(rng.random((min(step, n - k), m)) < b, axis=1) for k in range(0, n, step)]
    )


def _numpy_tally(reports: np.ndarray) -> np.ndarray:
    step = max(1, 50_000_000 // (8 * reports.shape[1]))
    return sum(
        np.unpackbits(reports[k : k + step], axis=1).sum(0) for k in range(0, len(reports), step)
    )


def against_peers() -> str:
    python = peer_python()
    rng, rows, sizes = np.random.default_rng(0), [], []
    for n, m in SETTINGS:
        chosen = policy(m)
        answers = rng.integers(0, m, n)
        oue = d.design(chosen, "oue")
        found = oue.perturb_many(answers)  # compiles
        oue.tally(found)
        once = 0.5 if m > 10_000 else 1.0
        mine = best(lambda: oue.perturb_many(answers, threads=1), once)
        count = best(lambda: oue.tally(found, threads=1), once)
        read = best(
            lambda: np.add.reduce(found.reshape(-1)[: found.size // 8 * 8].view(np.uint64)), once
        )
        b = oue.b[list(oue.policy.level_of)]
        plain, plain_count = (
            best(lambda: _numpy_perturb(b, n, m), once, 2),
            best(lambda: _numpy_tally(found), once, 2),
        )
        name = f"n = {n:,}, m = {m:,}"
        rows.append([name, "discreet, bits", seconds(mine), "1", seconds(count), "1"])
        rows.append(
            [
                name,
                "numpy",
                seconds(plain),
                f"{plain / mine:.1f} ×",
                seconds(plain_count),
                f"{plain_count / count:.1f} ×",
            ]
        )
        rows.append(
            [name, "(reading the bytes once)", "", "", seconds(read), f"{read / count:.2f} ×"]
        )
        sizes.append([name, "discreet bits", oue.report_size])
        sizes.append([name, "discreet ticket", 4])
        alike = (math.nan, math.nan)  # of ours, beside a peer's subset selection
        if m <= 1000:
            fixed = d.design(chosen, "ss")
            made = fixed.perturb_many(answers)
            fixed.tally(made)
            alike = (
                best(lambda: fixed.perturb_many(answers, threads=1), once),
                best(lambda: fixed.tally(made, threads=1), once),
            )
            rows.append(
                [name, "discreet, subset selection", seconds(alike[0]), "", seconds(alike[1]), ""]
            )
        if python is None:
            continue
        text = subprocess.run(
            [python, str(ROOT / "benchmarks" / "peers.py"), str(n), str(m), "1"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for peer, result in json.loads(text.splitlines()[-1]).items():
            if "error" in result:
                rows.append([name, peer, result["error"], "", "", ""])
                continue
            perturb, tally = result["perturb"] * n, result.get("tally", float("nan")) * n
            ours, kind = (alike, " (subset)") if peer.endswith("subset") else ((mine, count), "")
            against, counting = (
                f"{x / y:.0f} ×{kind}" if x / y == x / y else ""
                for x, y in zip((perturb, tally), ours, strict=True)
            )
            told = seconds(tally) if tally == tally else ""
            rows.append([name, peer, seconds(perturb), against, told, counting])
            sizes.append([name, peer, int(result["bytes"])])
    heads = ["setting", "who", "perturb", "against discreet", "tally", "against discreet"]
    return table("One thread, OUE at eps = 1, beside peers in the same run", heads, rows) + table(
        "Bytes per report", ["setting", "who", "bytes"], sizes
    )


def rates() -> str:
    """Tickets and subsets of fixed size, and two threads against one."""
    rng, rows = np.random.default_rng(0), []
    for model, encoding, n, m in [
        ("oue", "ticket", 1_000_000, 100),
        ("oue", "ticket", 1_000_000, 1_000),
        ("subset", "ticket", 200_000, 16_470),
        ("subset", "ticket", 10_000_000, 16_470),
        ("subset", "bits", 100_000, 16_470),
        ("oue", "bits", 100_000, 16_470),
        ("subset", "bits", 1_000_000, 100),
        ("subset", "bits", 200_000, 1_000),
        ("grr", None, 1_000_000, 1_000),
    ]:
        mechanism = d.design(policy(m), model, encoding=encoding, goal="total")
        answers = rng.integers(0, m, n)
        reports = mechanism.perturb_many(answers)
        mechanism.tally(reports[:1000])
        one, two = (best(lambda k=k: mechanism.perturb_many(answers, threads=k), 1) for k in (1, 2))
        count, count2 = (best(lambda k=k: mechanism.tally(reports, threads=k), 1) for k in (1, 2))
        rows.append(
            [
                model,
                f"{encoding or 'bits'} ({mechanism.encoding.summary})",
                f"{n:,}",
                f"{m:,}",
                si(n / one),
                f"{one / two:.2f} × ({seconds(one)})",
            ]
            + [si(n * m / count), f"{count / count2:.2f} × ({seconds(count)})"]
        )
    heads = [
        "model",
        "encoding",
        "n",
        "m",
        "reports / s, one thread",
        "two threads",
        "tally: items / s, one thread",
        "two threads",
    ]
    return table("Rates", heads, rows)


def growth(folder: Path) -> str:
    """How time grows with n and m, as a table and a log-log plot."""
    from matplotlib.figure import Figure

    rng, rows = np.random.default_rng(0), []
    curves: dict[str, list[tuple[float, float]]] = {}
    for encoding in ("bits", "ticket"):
        for n, m in [
            (10**3, 1000),
            (10**4, 1000),
            (10**5, 1000),
            (10**6, 1000),
            (10**5, 10),
            (10**5, 100),
            (10**5, 10_000),
        ]:
            mechanism = d.design(policy(m), "oue", encoding=encoding)
            answers = rng.integers(0, m, n)
            reports = mechanism.perturb_many(answers)
            times = (
                best(lambda: mechanism.perturb_many(answers, threads=1), 0.3),
                best(lambda: mechanism.tally(reports, threads=1), 0.3),
            )
            rows.append([encoding, f"{n:,}", f"{m:,}", *map(seconds, times)])
            for what, time in zip(("perturb", "tally"), times, strict=True):
                if m == 1000:
                    curves.setdefault(f"{what}, {encoding}, m = 1,000|n", []).append((n, time))
                if n == 10**5:
                    curves.setdefault(f"{what}, {encoding}, n = 100,000|m", []).append((m, time))
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, points in curves.items():
        label, axis = name.split("|")
        (left if axis == "n" else right).loglog(
            *zip(*sorted(points), strict=True), "o-", label=label
        )
    for axes, axis in ((left, "n, people"), (right, "m, items")):
        axes.set_xlabel(axis)
        axes.set_ylabel("seconds, one thread")
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    figure.savefig(folder / "growth.png", dpi=130)
    return table("How time grows (one thread)", ["encoding", "n", "m", "perturb", "tally"], rows)


def accuracy() -> str:
    """Total squared error / n on the same data in one run; plain models and peers at
    the smallest budget.
    """
    python, rows = peer_python(), []
    m, n = 100, 20_000
    shares = 1 / np.arange(1, m + 1)
    truth = np.random.default_rng(1).multinomial(n, shares / shares.sum())
    order = np.random.default_rng(2).permutation(m)  # the frequent items are of any level
    truth = truth[order]
    for eps in (1.0, 2.0, 4.0):
        found = {}
        for model in ("subset", "opt0", "ss", "oue", "grr"):
            mechanism = d.design(policy(m, eps), model, goal="total")
            answers = np.repeat(np.arange(m), truth)
            errors = [
                float(
                    (
                        (mechanism.tally(mechanism.perturb_many(answers)).estimate().counts - truth)
                        ** 2
                    ).sum()
                    / n
                )
                for _ in range(20)
            ]
            found[model] = (np.mean(errors), np.std(errors, ddof=1) / 20**0.5)
        for model, (mean, error) in found.items():
            rows.append(
                [
                    eps,
                    f"discreet, {model}",
                    f"{mean:.4g} ± {error:.2g}",
                    f"{mean / found['subset'][0]:.2f} ×",
                ]
            )
        if python is None:
            continue
        command = [
            python,
            str(ROOT / "benchmarks" / "peers.py"),
            "accuracy",
            json.dumps(truth.tolist()),
            str(eps),
        ]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(5)
        ]
        for peer in runs[0]:
            errors = [run[peer] for run in runs]
            mean, error = np.mean(errors), np.std(errors, ddof=1) / len(runs) ** 0.5
            rows.append(
                [eps, peer, f"{mean:.4g} ± {error:.2g}", f"{mean / found['subset'][0]:.2f} ×"]
            )
    heads = ["eps", "who", "total MSE / n", "against subset"]
    title = (
        f"Accuracy: {n:,} real reports over {m} items (Zipf), budgets eps × {{1, 1.2, 2}} for "
        "5/5/90 items; peers at eps"
    )
    return table(title, heads, rows)
