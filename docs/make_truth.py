"""Writes docs/truth.md: what post-processing and the choice of the padding bring, on real and on
synthetic data.

python docs/make_truth.py DATA [REPEATS]   where DATA holds retail, clothing_rated and
kosarak_first100k (.dat.xz)

python docs/make_truth.py few [REPEATS]    prints the table of few items alone

python docs/make_truth.py sets DATA [REPEATS]   measures the part on sets alone and puts it in the
place of the one in docs/truth.md
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import discreet as d
from discreet.arrays import theory
from discreet.estimates.mixture import posterior
from discreet.estimates.padding import choose_padding
from discreet.estimates.shrink import project
from discreet.estimates.simulation import top_errors
from discreet.estimates.two_phases import two_phases
from discreet.policy import Budget, Level, Policy

MODELS = ("oue", "opt0", "subset")
EPSILONS = (1, 2, 4)
TOPS = (10, 20, 50, 100)
FEW = (3, 5, 12, 41, 100)
FEW_PEOPLE = (100, 1_000, 10_000, 100_000)
FEW_REPEATS = 300
# levels, eps and model
FEW_SETTINGS = ((1, 1, "subset"), (3, 2, "subset"), (3, 1, "oue"))
LABELS = {
    "retail": "Retail",
    "kosarak_first100k": "Kosarak, first 100,000",
    "clothing_rated": "Clothing",
}
SET_MODELS = {"hits": None, "opt0": "opt0", "oue": "oue"}  # None: what design() takes by default
SET_PADDINGS = (1, 2, 3, 5, 8, 12, 20, 32)
SET_REPEATS = 6
# what is measured of every run, and the objective that a padding is chosen for
FIGURES = {"raw": "mse", "shrunk": "shrunk", "top raw": "mse", "top shrunk": "shrunk"}


def policy(m: int, eps: float, rng: np.random.Generator, kind: str = "single") -> Policy:
    """Levels 5/5/90 % with budgets eps x {1, 1.2, 2}, assigned at random."""
    level_of = rng.choice(3, m, p=[0.05, 0.05, 0.9])
    level_of[:3] = range(3)  # no level is empty
    levels = tuple(
        Level(f"L{k}", Budget.parse(round(eps * f, 6))) for k, f in enumerate((1, 1.2, 2))
    )
    return Policy(tuple(map(str, range(m))), tuple(map(int, level_of)), levels, kind=kind)


def load(path: Path) -> list[list[int]]:
    with lzma.open(path, "rt", encoding="ascii") as file:
        rows = [list(dict.fromkeys(line.split())) for line in file]
    index: dict[str, int] = {}
    return [[index.setdefault(item, len(index)) for item in row] for row in rows]


def single(task: tuple[str, Any, int, int]) -> list[Any]:
    """One assignment: (MSE of raw, norm-sub, consistent, shrunk; coverage of all and of
    the 100 ranked highest) per model.
    """
    _, truth, eps, seed = task
    m, n = len(truth), int(truth.sum())
    chosen = policy(m, eps, np.random.default_rng(seed))
    found = []
    for model in MODELS:
        estimate = d.simulate(
            truth, d.design(chosen, model, goal="total"), repeats=1, seed=seed
        ).estimates[0]
        shrunk = estimate.shrunk()
        low, high = shrunk.interval()
        inside = (low <= truth) & (truth <= high)
        top = np.argsort(-shrunk.counts, kind="stable")[:100]
        views = (
            estimate.counts,
            project(estimate.counts, np.ones(m), n),
            estimate.consistent(),
            shrunk.counts,
        )
        found.append(
            [((x - truth) ** 2).sum() / n for x in views] + [inside.mean(), inside[top].mean()]
        )
    return found


def ranked(task: tuple[Any, Any, Any, int, int, int]) -> list[Any]:
    """One assignment: precision of the top k per model and k, ranked as top() does by default."""
    items, offsets, truth, eps, ell, seed = task
    chosen = policy(len(truth), eps, np.random.default_rng(seed), "set")
    found = []
    for model in MODELS:
        mechanism = d.design(chosen, model, padding=ell, goal="total")
        drawn = d.simulate((items, offsets), mechanism, repeats=1, seed=seed, indices=True)
        estimate = drawn.estimates[0]
        place = np.argsort(-estimate.shrunk().counts, kind="stable")
        order = np.argsort(-truth, kind="stable")
        found.append([np.mean(truth[place[:k]] >= truth[order[k - 1]]) for k in TOPS])
    return found


def paddings(task: tuple[Any, Any, int, int]) -> list[Any]:
    """The best padding by trying all, and the error of the chosen ones relative to it."""
    items, offsets, eps, seed = task
    lengths = np.diff(offsets)
    m, n = int(items.max()) + 1, len(lengths)
    size_of = np.repeat(lengths, lengths)
    counts = {
        int(k): np.bincount(items[size_of == k], minlength=m).astype(float)
        for k in np.unique(size_of)
    }
    chosen = policy(m, eps, np.random.default_rng(seed), "set")
    base = d.design(chosen, "subset", padding=2, goal="total")
    error = [
        theory.set_error_by_size(replace(base, padding=ell), counts, n).mse / n
        for ell in range(1, 65)
    ]
    shares = np.bincount(items, minlength=m) / len(items)
    picks = [
        choose_padding(chosen, lengths, n, popularity=p, model="subset", goal="total").padding
        for p in (shares, "zipf")
    ]
    picks.append(two_phases(chosen, (items, offsets), model="subset", goal="total").choice.padding)
    return [int(np.argmin(error)) + 1] + [
        x for pick in picks for x in (pick, error[pick - 1] / min(error))
    ]


@dataclass
class SetRuns:
    """Set input on one data set at one eps. A figure is an array of repeats."""

    name: str
    eps: int
    chosen: dict[tuple[str, str, str], int]  # by model, objective and popularity
    figures: dict[tuple[str, int], dict[str, Any]]  # by model and padding
    sizes: dict[tuple[str, int], int]  # bytes of a report
    item: dict[str, Any]  # the same figures with kind = "each"
    budgets: Any  # median and 90th percentile of a person's sum, repeats x 2
    zero: float  # MSE / n of answering 0 everywhere

    def best(self, model: str, figure: str) -> int:
        """The padding of the grid with the best figure."""
        sign = -1 if figure.startswith("top") else 1
        return min(SET_PADDINGS, key=lambda s: sign * self.figures[model, s][figure].mean())


def set_runs(task: tuple[str, Any, Any, int, int]) -> SetRuns:
    """Every model at every padding, with a fresh assignment of levels in every repeat."""
    name, items, offsets, eps, repeats = task
    lengths, truth = np.diff(offsets), np.bincount(items).astype(float)
    m, n = len(truth), len(lengths)
    policies = [policy(m, eps, np.random.default_rng(seed), "set") for seed in range(repeats)]
    shares = truth / truth.sum()
    chosen = {
        (key, objective, known): choose_padding(
            policies[0], lengths, n, popularity, objective, model=model, goal="total"
        ).padding
        for key, model in SET_MODELS.items()
        for objective in ("mse", "shrunk")
        for known, popularity in (("zipf", "zipf"), ("known", shares))
    }

    def run(designs: list[d.Mechanism]) -> dict[str, Any]:
        rows = []
        for seed, mechanism in enumerate(designs):
            drawn = d.simulate((items, offsets), mechanism, repeats=1, seed=seed, indices=True)
            counts = (drawn.estimates[0].counts, drawn.estimates[0].shrunk().counts)
            rows.append([((x - truth) ** 2).sum() / n for x in counts])
            rows[-1] += [top_errors(x, truth, [20])[0][1] for x in counts]
        return dict(zip(FIGURES, np.array(rows).T, strict=True))

    figures, sizes = {}, {}
    for key, model in SET_MODELS.items():
        paddings = {*SET_PADDINGS, *(s for (k, *_), s in chosen.items() if k == key)}
        for padding in sorted(paddings):
            designs = [d.design(p, model, padding=padding, goal="total") for p in policies]
            sizes[key, padding] = max(x.report_size for x in designs)
            figures[key, padding] = run(designs)
            told = ", ".join(f"{k} {x.mean():.4g}" for k, x in figures[key, padding].items())
            print(f"{name}, eps = {eps}, {key}, padding {padding}: {told}", file=sys.stderr)
    by_item = [replace(p, kind="each") for p in policies]
    sums = [
        np.add.reduceat(
            np.array([float(lv.budget) for lv in p.levels])[list(p.level_of)][items], first
        )
        for p, first in ((p, offsets[:-1]) for p in by_item)
    ]
    return SetRuns(
        name,
        eps,
        chosen,
        figures,
        sizes,
        run([d.design(p, goal="total") for p in by_item]),
        np.array([np.quantile(x, [0.5, 0.9]) for x in sums]),
        float((truth**2).sum() / n),
    )


def set_tables(found: list[SetRuns]) -> dict[str, str]:
    """The tables on sets by the name of their place in the template."""
    text = {
        f"SETS{figure.replace(' ', '').upper()}": _set_table(found, figure) for figure in FIGURES
    }
    places = ("best", "zipf", "known")
    heads = ["data", "eps", *(f"{f}, {w}" for f in ("raw", "shrunk") for w in places)]
    text["SETSPADS"] = _row(heads) + "|" + "---|" * len(heads) + "\n"
    heads = ["data", "eps", "set: hits, raw", "item: raw", "set: hits, shrunk", "item: shrunk"]
    heads += ["item: top 20, shrunk", "sum of budgets, median", "90th percentile"]
    text["SETSITEM"] = _row(heads) + "|" + "---|" * len(heads) + "\n"
    for runs in found:
        pads: list[Any] = []
        cells: list[Any] = []
        for figure in ("raw", "shrunk"):
            best = runs.best("hits", figure)
            whole = runs.figures["hits", best][figure]
            pads.append(f"{best} ({runs.sizes['hits', best]} bytes)")
            for known in places[1:]:
                s = runs.chosen["hits", FIGURES[figure], known]
                loss = runs.figures["hits", s][figure].mean() / whole.mean()
                pads.append(f"{s} ({runs.sizes['hits', s]} bytes): {loss:.2f} ×")
            cells += [_mean(whole), _mean(runs.item[figure])]
        cells += [_mean(runs.item["top shrunk"]), *(f"{x:.1f}" for x in runs.budgets.mean(axis=0))]
        text["SETSPADS"] += _row([LABELS[runs.name], runs.eps, *pads])
        text["SETSITEM"] += _row([LABELS[runs.name], runs.eps, *cells])
    return text


def _set_table(found: list[SetRuns], figure: str) -> str:
    heads = ["data", "eps", *(f"{k}, {w}" for k in SET_MODELS for w in ("best", "chosen"))]
    extra = ["hits against opt0"] + (["all zero"] if figure == "shrunk" else [])
    text = _row(heads + extra) + "|" + "---|" * len(heads + extra) + "\n"
    for runs in found:
        cells, best = [], {}
        for model in SET_MODELS:
            paddings = runs.best(model, figure), runs.chosen[model, FIGURES[figure], "zipf"]
            values = [runs.figures[model, s][figure] for s in paddings]
            best[model] = values[0].mean()
            cells += [f"{s}: {_mean(x)}" for s, x in zip(paddings, values, strict=True)]
        if figure.startswith("top"):
            cells.append(f"{best['hits'] - best['opt0']:+.2f}")
        else:
            cells.append(f"{best['hits'] / best['opt0']:.2f} ×")
        if figure == "shrunk":
            cells.append(f"{runs.zero:,.0f}")
        text += _row([LABELS[runs.name], runs.eps, *cells])
    return text


def _mean(x: Any) -> str:
    """A mean over repeats and its standard error."""
    mean, error = x.mean(), x.std(ddof=1) / len(x) ** 0.5
    if mean <= 1:
        return f"{mean:.2f} ± {error:.2f}"
    if mean < 100:
        return f"{mean:.3g} ± {error:.1g}"
    return f"{float(f'{mean:.4g}'):,.0f} ± {max(1.0, float(f'{error:.2g}')):,.0f}"


def sets(folder: Path, repeats: int, pool: ProcessPoolExecutor) -> dict[str, str]:
    """Measure all of it."""
    ragged = {name: flat(load(folder / f"{name}.dat.xz")) for name in LABELS}
    tasks = [(name, *ragged[name], eps, repeats) for name in LABELS for eps in EPSILONS]
    found = list(pool.map(set_runs, tasks))
    return set_tables(found) | set_facts(ragged) | {"SETREPEATS": str(repeats)}


def set_facts(ragged: dict[str, Any]) -> dict[str, str]:
    """What truncation alone does, without noise: how well a padding of 1 ranks, and the share of
    all occurrences, and of the two most popular items of Kosarak, that a padding of 5 counts.
    """
    ranks = []
    for items, offsets in ragged.values():
        size = np.repeat(np.diff(offsets), np.diff(offsets))
        truth = np.bincount(items).astype(float)
        ranks.append(top_errors(np.bincount(items, weights=1 / size), truth, [20])[0][1])
    items, offsets = ragged["kosarak_first100k"]
    size = np.repeat(np.diff(offsets), np.diff(offsets))
    counted, truth = np.bincount(items, weights=np.minimum(1, 5 / size)), np.bincount(items)
    first, second = np.argsort(-truth)[:2]
    return {
        "SETSRANKED": ", ".join(f"{x:.2f}" for x in ranks),
        "SETSCOUNTED": f"{counted.sum() / truth.sum():.2f}",
        "SETSPOPULAR": f"{counted[first] / truth[first]:.2f} and "
        f"{counted[second] / truth[second]:.2f}",
    }


def put(tables: dict[str, str]) -> None:
    """Put the part on sets in its place in docs/truth.md, or at the end."""
    page, template = (Path(__file__).with_name(x) for x in ("truth.md", "truth.template.md"))
    made, wanted = (_parts(x.read_text(encoding="utf-8")) for x in (page, template))
    made |= {head: _filled(part, tables) for head, part in wanted.items() if "<SETS" in part}
    ordered = [head for head in wanted if head in made]
    page.write_text("\n\n".join(made[head] for head in ordered) + "\n", encoding="utf-8")


def _parts(text: str) -> dict[str, str]:
    parts = ["## " * bool(k) + part.strip() for k, part in enumerate(text.split("\n## "))]
    return {part.splitlines()[0]: part for part in parts}


def _filled(text: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        text = text.replace(f"<{key}>", value.rstrip("\n"))
    return text


def flat(rows: list[list[int]]) -> tuple[Any, Any]:
    """Sets as items and offsets."""
    return np.array([i for x in rows for i in x]), np.cumsum([0] + [len(x) for x in rows])


def synthetic() -> dict[str, Any]:
    rng, m, n = np.random.default_rng(7), 1000, 100_000
    power = 1 / np.arange(1, m + 1)
    spikes = np.full(m, 0.5 / (m - 2))
    spikes[:2] = 0.25
    one = np.zeros(m, int)
    one[5] = n
    return {
        "uniform": rng.multinomial(n, np.full(m, 1 / m)),
        "power law": rng.multinomial(n, power / power.sum()),
        "two spikes": rng.multinomial(n, spikes),
        "all but one empty": one,
        "one item": np.array([n, 0, 0]),
    }


def few_truths(m: int, n: int) -> dict[str, Any]:
    """Five shapes of a small domain, the largest item first (and so among the most sensitive)."""
    rank = np.arange(1, m + 1)
    large = np.where(rank <= max(m // 10, 2), m // 10 + 4.0 - rank, 0)
    shapes = {
        "uniform": np.ones(m),
        "Zipf": 1 / rank,
        "one holds 60 %": np.where(rank == 1, 1.5 * (m - 1), 1.0),
        "few large, rest zero": large,
        "linear": m + 1.0 - rank,
    }
    found = {}
    for name, shape in shapes.items():
        exact = shape / shape.sum() * n
        truth = np.floor(exact).astype(np.int64)
        truth[np.argsort(truth - exact, kind="stable")[: n - truth.sum()]] += 1
        found[name] = truth
    return found


def few_policy(m: int, levels: int, eps: float) -> Policy:
    """One level, or three with a tenth (at least one) of the items in each of the first two."""
    part = max(m // 10, 1)
    level_of = np.minimum(np.arange(m) // part, 2) if levels == 3 else np.zeros(m, int)
    budgets = [Budget.parse(round(eps * f, 6)) for f in (1, 1.2, 2)[:levels]]
    names = tuple(Level(f"L{k}", budget) for k, budget in enumerate(budgets))
    return Policy(tuple(map(str, range(m))), tuple(map(int, level_of)), names)


def few_cell(truth: Any, mechanism: d.Mechanism, repeats: int, seed: int) -> Any:
    """(coverage over items, of the largest, squared error relative to raw) of the fitted mixture
    alone and of `shrunk()`.
    """
    found, errors = [], []
    largest = int(np.argmax(truth))
    for estimate in d.simulate(truth, mechanism, repeats=repeats, seed=seed).estimates:
        shrunk = estimate.shrunk()
        fitted = shrunk.mixtures[0]
        variance = estimate.variance_at_zero
        mean = posterior(fitted, estimate.counts, variance, estimate.slope) @ fitted.grid
        clear = shrunk.own == 1  # those have never rested on the mixture
        alone = replace(shrunk, own=clear * 1.0, counts=np.where(clear, shrunk.counts, mean))
        views = []
        for view in (alone, shrunk):
            low, high = view.interval()
            inside = (low <= truth) & (truth <= high)
            views.append((inside.mean(), inside[largest], ((view.counts - truth) ** 2).sum()))
        found.append(views)
        errors.append(((estimate.counts - truth) ** 2).sum())
    every, raw = np.array(found), np.array(errors)
    ratio = every[:, 1, 2].mean() / raw.mean()
    sigma = np.std(every[:, 1, 2] - ratio * raw) / repeats**0.5 / raw.mean()
    mean = every.mean(axis=0)
    mean[:, 2] /= raw.mean()
    if mean[1, 0] < 0.93 or mean[1, 1] < 0.9 or ratio > 1 + 3 * sigma + 1e-6:
        print(f"missed: {mechanism.m} items, {truth}: {mean[1]} ± {sigma}", file=sys.stderr)
    return mean


def few_items(repeats: int) -> str:
    """Few items: the worst and the mean over shapes and settings, for every m and n."""
    views = ("mixture alone", "shrunk")
    heads = [f"{v}: {w}" for v in views for w in ("all items", "largest", "MSE / raw")]
    text = _row(["items", "n", *heads]) + "|" + "---|" * 8 + "\n"
    for m in FEW:
        designs = [
            d.design(few_policy(m, levels, eps), model, goal="total")
            for levels, eps, model in FEW_SETTINGS
        ]
        for n in FEW_PEOPLE:
            cells = np.array(
                [
                    few_cell(truth, mechanism, repeats, seed=m * n)
                    for truth in few_truths(m, n).values()
                    for mechanism in designs
                ]
            )
            row = []
            for view in range(2):
                every, largest, mse = cells[:, view].T
                row += [f"{x.min():.1%} ({x.mean():.1%})" for x in (every, largest)]
                row.append(f"{mse.max():.2f} ({mse.mean():.2f})")
            text += _row([m, f"{n:,}", *row])
            print(text.splitlines()[-1], file=sys.stderr, flush=True)
    return text


def grid(pool: ProcessPoolExecutor, work: Callable[[Any], Any], tasks: list[Any]) -> Any:
    print(f"{len(tasks)} tasks of {work.__name__}", file=sys.stderr)
    return np.array(list(pool.map(work, tasks)))


def _row(cells: list[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _mse_tables(
    pool: ProcessPoolExecutor, data: dict[str, Any], repeats: int, epsilons: tuple[int, ...]
) -> tuple[str, str]:
    text = _row(
        [
            "data",
            "eps",
            *(f"{m} {v}" for m in MODELS for v in ("raw", "norm-sub", "consistent", "shrunk")),
        ]
    )
    text += "|" + "---|" * 14 + "\n"
    cover = (
        _row(
            [
                "data",
                "eps",
                *(f"{m}, {w}" for m in MODELS for w in ("all items", "100 ranked highest")),
            ]
        )
        + "|"
        + "---|" * 8
        + "\n"
    )
    for name, truth in data.items():
        for eps in epsilons:
            found = grid(pool, single, [(name, truth, eps, seed) for seed in range(repeats)])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / repeats**0.5
            cells = [
                f"**{mean[i, j]:,.4g}** ± {error[i, j]:.2g}" if j == 3 else f"{mean[i, j]:,.4g}"
                for i in range(3)
                for j in range(4)
            ]
            text += _row([name, eps, *cells])
            cover += _row([name, eps, *(f"{mean[i, j]:.1%}" for i in range(3) for j in (4, 5))])
    return text, cover


def main() -> None:
    if sys.argv[1] == "few":
        print(few_items(int(sys.argv[2]) if len(sys.argv) > 2 else FEW_REPEATS), end="")
        return
    if sys.argv[1] == "sets":
        repeats = int(sys.argv[3]) if len(sys.argv) > 3 else SET_REPEATS
        with ProcessPoolExecutor(2) as pool:
            put(sets(Path(sys.argv[2]), repeats, pool))
        return
    folder, repeats = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8
    rows = {
        name: load(folder / f"{name}.dat.xz")
        for name in ("retail", "kosarak_first100k", "clothing_rated")
    }
    ragged = {name: flat(sets_) for name, sets_ in rows.items()}
    firsts = {
        label: np.bincount([x[0] for x in rows[name]], minlength=int(ragged[name][0].max()) + 1)
        for label, name in (("Retail", "retail"), ("Kosarak, first 100,000", "kosarak_first100k"))
    }
    with ProcessPoolExecutor(2) as pool:
        mse, cover = _mse_tables(pool, firsts, repeats, EPSILONS)
        toy, toy_cover = _mse_tables(pool, synthetic(), repeats, (1, 4))
        items, offsets = ragged["clothing_rated"]
        truth = np.bincount(items)
        precision = (
            _row(["padding", "eps", *(f"{m}, k = {k}" for m in MODELS for k in TOPS)])
            + "|"
            + "---|" * 14
            + "\n"
        )
        every = []
        for ell in (1, 2):
            for eps in EPSILONS:
                found = grid(
                    pool,
                    ranked,
                    [(items, offsets, truth, eps, ell, seed) for seed in range(repeats)],
                )
                mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / repeats**0.5
                every.append(mean)
                precision += _row(
                    [
                        ell,
                        eps,
                        *(
                            f"{mean[i, j]:.2f} ± {error[i, j]:.2f}"
                            for i in range(3)
                            for j in range(4)
                        ),
                    ]
                )
        average = np.mean(every, axis=(0, 2))
        pads = _row(
            [
                "data",
                "eps",
                "best",
                "known popularity",
                "error",
                "zipf",
                "error",
                "two phases, private",
                "error (mean)",
            ]
        )
        pads += "|" + "---|" * 9 + "\n"
        for name, label in (
            ("retail", "Retail"),
            ("clothing_rated", "Clothing"),
            ("kosarak_first100k", "Kosarak, first 100,000"),
        ):
            for eps in (1, 2, 4):
                found = grid(pool, paddings, [(*ragged[name], eps, seed) for seed in range(4)])
                mean = found.mean(axis=0)
                private = ", ".join(str(int(x)) for x in found[:, 5])
                known = [
                    int(found[0, 0]),
                    int(found[0, 1]),
                    f"{mean[2]:.2f} ×",
                    int(found[0, 3]),
                    f"{mean[4]:.2f} ×",
                ]
                pads += _row([label, eps, *known, private, f"{mean[6]:.2f} ×"])
        of_sets = sets(folder, SET_REPEATS, pool)
    values = {
        "REPEATS": str(repeats),
        "MSE": mse,
        "COVER": cover,
        "FEW": few_items(FEW_REPEATS),
        "FEWREPEATS": str(FEW_REPEATS),
        "SYNTHETIC": toy,
        "SYNCOVER": toy_cover,
        "PRECISION": precision,
        "AVERAGE": ", ".join(
            f"{m} {x:.3f} ({x / average[0]:.2f} ×)" for m, x in zip(MODELS, average, strict=True)
        ),
        "PADS": pads,
        **of_sets,
    }
    text = Path(__file__).with_name("truth.template.md").read_text(encoding="utf-8")
    Path(__file__).with_name("truth.md").write_text(_filled(text, values), encoding="utf-8")


if __name__ == "__main__":
    main()
