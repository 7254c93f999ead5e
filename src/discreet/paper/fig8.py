"""Fig. 8: varying the padding on Clothing."""

from __future__ import annotations

from discreet.paper import paddings
from discreet.paper.datasets import Data
from discreet.paper.drawing import Figure
from discreet.paper.experiments import Experiment
from discreet.paper.settings import Setup
from discreet.paper.tables import PaperTable
from discreet.paper.target import Target
from discreet.paper.verdicts import Claims

CLAIMS = Claims("fig8", ("clothing",))
K = 20


def _experiments(setup: Setup, data: Data) -> list[Experiment]:
    return paddings.experiments(("clothing",), K, setup, data)


def _figures(setup: Setup, data: Data) -> list[Figure]:
    title = data["clothing"].title
    caption = (
        f"Varying ℓ and ε in {title} item-set data (k = {K}), IDUE-PS, the paper's Fig. 8. Rings: "
        "the best ℓ of every line, in theory."
    )
    own = paddings.panels("clothing", K, setup, data)
    return [Figure("fig8", f"Varying the padding, {title}", caption, [own])]


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [paddings.sizes("fig8", ("clothing",), data)]


paddings.mean_claim(CLAIMS, "clothing", 2)
paddings.growing_claim(CLAIMS, "clothing", "The optimal l is larger under a larger eps (Clothing).")

TARGET = Target(CLAIMS, ("clothing",), tables=_tables, experiments=_experiments, figures=_figures)
