"""Fig. 5: RE of the top k on real-world data, varying k; the experiments are fig4's."""

from __future__ import annotations

from discreet.paper import fig4
from discreet.paper.datasets import Data
from discreet.paper.drawing import METRICS, Figure, Panel, lines
from discreet.paper.settings import THREE_MODELS, Setup
from discreet.paper.target import Target
from discreet.paper.verdicts import Claims

CLAIMS = Claims("fig5")


def _figures(setup: Setup, data: Data) -> list[Figure]:
    panels = [[_panel(key, eps, data) for eps in setup.some_epsilons] for key in fig4.singles(data)]
    caption = (
        "RE of the top k frequent items, varying k, the paper's Fig. 5; the paper does not say at "
        "which ε."
    )
    return [Figure("fig5", "RE of the top k, varying k", caption, panels)]


def _panel(key: str, eps: float, data: Data) -> Panel:
    title = f"{data[key].title}, ε\u00a0=\u00a0{eps:g}"
    shown = lines(THREE_MODELS, data=key, levels=3, padding=0, metric="re", eps=eps)
    return Panel(title, "k", METRICS["re"].format(k="k"), shown)


for _key in fig4.PARTS:
    fig4.best_utility(CLAIMS, "RE for all k", _key, "RE for all eps and k", metric="re")

TARGET = Target(CLAIMS, fig4.NEEDS, fig4.USES, experiments=fig4.experiments, figures=_figures)
