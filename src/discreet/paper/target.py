"""What every table and figure of the paper is to a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.paper.datasets import Data
from discreet.paper.drawing import Figure
from discreet.paper.experiments import Experiment
from discreet.paper.settings import Setup
from discreet.paper.tables import PaperTable
from discreet.paper.verdicts import Claims


def _none(setup: Setup, data: Data) -> list[Any]:
    return []


@dataclass(frozen=True)
class Target:
    """A table or figure: its data, and functions that say what is run and shown; the tables of a
    figure are those behind its claims.
    """

    claims: Claims
    needs: tuple[str, ...] = ()  # data sets that it cannot be made without
    uses: tuple[str, ...] = ()  # data sets that are shown where they are there
    tables: Callable[[Setup, Data], list[PaperTable]] = _none
    experiments: Callable[[Setup, Data], list[Experiment]] = _none
    figures: Callable[[Setup, Data], list[Figure]] = _none  # the paper's, then those beyond it

    @property
    def name(self) -> str:
        """What the command calls it."""
        return self.claims.target
