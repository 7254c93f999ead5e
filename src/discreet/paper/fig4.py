"""Fig. 4: MSE and RE of real-world data, single-item input; fig5 shows the same by k."""

from __future__ import annotations

from typing import Any

from discreet.paper.datasets import Data
from discreet.paper.drawing import METRICS, Figure, Panel, lines
from discreet.paper.experiments import Experiment, grid
from discreet.paper.settings import OURS, THREE_MODELS, Setup
from discreet.paper.target import Target
from discreet.paper.verdicts import Claims, Evidence, Verdict, against, below

CLAIMS = Claims("fig4")
NEEDS, USES = ("retail", "kosarak"), ("kosarak-short",)
PARTS = {"retail": ("retail",), "kosarak": ("kosarak", "kosarak-short")}  # what is judged together
K = 20


def singles(data: Data) -> list[str]:
    """The data sets of the figure."""
    return [key for key in (*NEEDS, *USES) if key in data]


def shrunk(setup: Setup, data: Data) -> list[str]:
    """Those of them whose estimates are shrunk too; a quick run takes the first."""
    return singles(data)[:1] if setup.quick else singles(data)


def experiments(setup: Setup, data: Data) -> list[Experiment]:
    """Of every data set, all k."""
    tasks = []
    for key in singles(data):
        ks = data[key].tops(setup.tops, K)
        rest: dict[str, Any] = {"data": key, "repeats": setup.repeats, "ks": ks}
        tasks += grid(("rappor",), setup.epsilons, setup.encodings, **rest)
        too = key in shrunk(setup, data)
        tasks += grid(OURS, setup.epsilons, setup.encodings, shrunk=too, **rest)
    return tasks


def _figures(setup: Setup, data: Data) -> list[Figure]:
    own = [_panels(key, data, beyond=False) for key in singles(data)]
    more = [_panels(key, data, beyond=True) for key in shrunk(setup, data)]
    caption = (
        "MSE and RE of real-world data sets (single-item input: the first item of each user), the "
        "paper's Fig. 4."
    )
    beyond = (
        "Beyond the paper: the same reports, raw and as posterior means (empirical Bayes), and "
        "subset."
    )
    title = "Beyond the paper: shrunk estimates, subset"
    return [
        Figure("fig4", "MSE and RE of real-world data", caption, own),
        Figure("fig4_beyond", title, beyond, more),
    ]


def _panels(key: str, data: Data, beyond: bool) -> list[Panel]:
    k = data[key].top(K)
    panels = []
    for metric, want in (("mse", {}), ("re", {"k": k})):
        rows: dict[str, Any] = {"data": key, "levels": 3, "padding": 0, "metric": metric, **want}
        shown = lines(THREE_MODELS, **rows)
        if beyond:
            shown = lines(OURS, ", raw", **rows) + lines(OURS, ", shrunk", view="shrunk", **rows)
        panels.append(Panel(data[key].title, "eps", METRICS[metric].format(k=k), shown))
    return panels


def best_utility(claims: Claims, name: str, key: str, what: str, metric: str, k: int = 0) -> None:
    """Claim that IDUE is the best of the three on a data set, for one k or (0) for all."""
    sentence = (
        "The proposed IDUE has the best utility (i.e., smallest MSE and RE) for all considered eps "
        f"and k: {what}, {key.capitalize()}."
    )
    where = f"Sec. VI-A, Fig. {claims.target.removeprefix('fig')}"

    @claims.add(f"{name}, {key}", where, sentence, PARTS[key])
    def judge(evidence: Evidence) -> Verdict:
        want: dict[str, object] = {"data": PARTS[key], "metric": metric, "levels": 3, "padding": 0}
        if k:
            want["k"] = k
        cells = against(evidence.numbers, "opt0", ("rappor", "oue"), **want)
        return below(cells, f"{metric.upper()} of IDUE / the other's")


for _key in PARTS:
    best_utility(CLAIMS, "MSE", _key, "MSE for all eps", metric="mse")
    best_utility(CLAIMS, "RE", _key, f"RE with k = {K} for all eps", metric="re", k=K)

TARGET = Target(CLAIMS, NEEDS, USES, experiments=experiments, figures=_figures)
