"""What the paper's evaluation fixes, and what a run may change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

SEED = 2020  # of the numbers in docs/paper.md
REPEATS, QUICK_REPEATS = 10, 2

# the default budgets, times eps, and their shares of the items
FACTORS, SHARES = (1.0, 1.2, 2.0), (0.05, 0.05, 0.9)

PAPER_MODELS = ("rappor", "oue", "opt0", "opt1", "opt2")
THREE_MODELS = ("rappor", "oue", "opt0")
OURS = ("oue", "opt0", "subset")  # beyond the paper: plain LDP, the paper's best, our best


@dataclass(frozen=True)
class Setup:
    """The settings of a run. The same settings give the same numbers, except through reports: their
    randomness has no seed.
    """

    seed: int = SEED
    repeats: int = REPEATS
    quick: bool = False
    through_reports: bool = False

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The eps along the axis of a figure; the paper shows 1 and more."""
        return (2.0, 4.0) if self.quick else (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)

    @property
    def some_epsilons(self) -> tuple[float, ...]:
        """The eps of a figure with another axis: one column or line each."""
        return (2.0, 4.0) if self.quick else (1.0, 2.0, 4.0)

    @property
    def padding_epsilons(self) -> tuple[float, ...]:
        """The lines of the figures against the padding."""
        return (2.0, 4.0) if self.quick else (1.0, 2.0, 3.0, 4.0)

    @property
    def tops(self) -> tuple[int, ...]:
        """The k of the top-k figures."""
        return (10, 20, 50, 100) if self.quick else tuple(range(10, 101, 10))

    @property
    def sensitive(self) -> tuple[float, ...]:
        """Shares of the items with the smaller budget (fig6)."""
        few, all_ = (0.05, 0.2, 0.5, 0.9), (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
        return few if self.quick else all_

    @property
    def encodings(self) -> tuple[str, ...]:
        """Real reports are made in both encodings."""
        return ("bits", "ticket") if self.through_reports else ("bits",)

    def paddings(self, mean: float) -> tuple[int, ...]:
        """The paddings of the experiments, for sets of this mean size. The theory is shown for all
        up to the last.
        """
        if mean < 4:
            return (1, 2, 4, 6) if self.quick else (1, 2, 3, 4, 5, 6, 8)
        return (1, 5, 10, 30) if self.quick else (1, 2, 3, 5, 8, 10, 15, 20, 30)

    def rng(self, *key: object) -> np.random.Generator:
        """A separate generator for each key, so that results do not depend on the order of the
        work.
        """
        digest = hashlib.sha256("|".join(map(str, key)).encode()).digest()
        words = tuple(np.frombuffer(digest, "<u4").tolist())
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=words))

    @property
    def note(self) -> str:
        """What every caption says about the run."""
        repeats = f"{self.repeats} repeats"
        quick = f" Quick run: {repeats} and fewer points than in the paper." if self.quick else ""
        if not self.through_reports:
            return f"{repeats}, exact in distribution, seed {self.seed}.{quick}"
        return (
            f"{repeats}; every person's report was perturbed, encoded and tallied, in both "
            "encodings. Their secure randomness cannot be seeded: the experiment's numbers differ "
            f"from run to run.{quick}"
        )
