"""A table or figure of the paper, as a run sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discreet.paper.datasets import Data
from discreet.paper.drawing import Figure
from discreet.paper.experiments import Experiment
from discreet.paper.settings import Setup
from discreet.paper.tables import PaperTable
from discreet.paper.verdicts import Claims


def _none(setup: Setup, data: Data) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Target:
    """A table or figure: its data, and functions that say what to run and show. The tables of a
    figure are the ones behind its claims.
    """

    claims: Claims
    needs: tuple[str, ...] = ()  # data sets that it cannot do without
    uses: tuple[str, ...] = ()  # data sets that it shows if they are there
    tables: Callable[[Setup, Data], Sequence[PaperTable]] = _none
    experiments: Callable[[Setup, Data], Sequence[Experiment]] = _none
    figures: Callable[[Setup, Data], Sequence[Figure]] = _none  # the paper's, then those beyond it

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return self.claims.target
