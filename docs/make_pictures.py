"""Draws docs/estimate.png: the demonstration's survey, estimates with intervals beside
the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.demo import USERS, example
from discreet.designs import design
from discreet.plots import bars
from discreet.rehearsal import answers

if __name__ == "__main__":
    mechanism = design(example("health-survey"))
    given = answers(mechanism.policy, USERS)
    estimate = mechanism.tally(mechanism.perturb_many(given)).estimate()
    bars(
        estimate,
        Path(__file__).parent / "estimate.png",
        20,
        truth=np.bincount(given, minlength=mechanism.m),
    )
