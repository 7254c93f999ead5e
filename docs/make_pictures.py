"""Draws docs/estimate.png: the demonstration's survey, estimates with intervals beside
the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.demo import answers, example
from discreet.designs import design
from discreet.plots import bars

if __name__ == "__main__":
    mechanism = design(example("health-survey"))
    given = answers(mechanism.m)
    estimate = mechanism.tally(mechanism.perturb_many(given)).estimate()
    bars(
        estimate,
        Path(__file__).parent / "estimate.png",
        20,
        np.bincount(given, minlength=mechanism.m),
    )
