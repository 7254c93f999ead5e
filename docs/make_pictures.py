"""Draws docs/estimate.png: the demonstration's survey, estimates with intervals beside
the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.cli.demo import USERS
from discreet.data.examples import example, made_up_answers
from discreet.designs import design
from discreet.show.plots import bars

if __name__ == "__main__":
    mechanism = design(example("health-survey"))
    given = made_up_answers(mechanism.policy, USERS)
    estimate = mechanism.tally(mechanism.perturb_many(given)).estimate()
    bars(
        estimate,
        Path(__file__).parent / "estimate.png",
        20,
        truth=np.bincount(given, minlength=mechanism.m),
    )
