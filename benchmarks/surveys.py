"""Surveys of several questions: drawing one question beside asking all of them at a share of the
budget, beside multi-freq-ldpy's SPL and SMP, everything at the same budget per person.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np

import discreet as d
from benchmarks.reports import peer_python
from benchmarks.timing import table
from discreet.arrays.draws import draw_questions
from discreet.arrays.randomness import Keystream
from discreet.arrays.types import Floats, Ints
from discreet.designs.surveys import design_survey

PEOPLE, REPEATS, PEER_REPEATS = 10_000, 40, 10
SETTINGS = [(3, 10, eps) for eps in (0.5, 1, 2, 4, 8)] + [(8, 5, eps) for eps in (1, 4)]
SENSITIVE = 2  # items of every question with the smaller budget, where there are two levels


def run() -> str:
    python, rows = peer_python(), []
    for questions, items, eps in SETTINGS:
        truths = truth(questions, items)
        surveys = {
            "one": draft(questions, items, eps, 1),
            "auto": draft(questions, items, eps, "auto"),
            "all": draft(questions, items, eps, "all"),
            "levels": draft(questions, items, eps, 1, levels=True),
        }
        made = {name: design_survey(survey) for name, survey in surveys.items()}
        ours = {name: _error(survey, truths) for name, survey in made.items()}
        peers = {"SPL": "–", "SMP": "–"}
        if python:
            script = str(Path(__file__).with_name("peers.py"))
            call = [python, script, "surveys", json.dumps([x.tolist() for x in truths])]
            out = subprocess.run(
                [*call, str(eps), str(PEER_REPEATS)], capture_output=True, text=True, check=True
            )
            peers = {name: f"{x:.4g}" for name, x in json.loads(out.stdout).items()}
        drawn = made["auto"].answers
        rows.append(
            [
                f"{questions} of {items}",
                eps,
                peers["SPL"],
                peers["SMP"],
                *(f"{ours[name]:.4g}" for name in ("all", "one")),
                f"{ours['auto']:.4g} ({drawn})",
                f"{ours['levels']:.4g}",
            ]
        )
    heads = [
        "questions",
        "budget",
        "SPL",
        "SMP",
        "all at a share",
        "one drawn",
        "auto (drawn)",
        f"one drawn, {SENSITIVE} items at the budget, the others at twice",
    ]
    title = "Several questions: total squared error / n of everyone's counts"
    return (
        table(title, heads, rows)
        + f"\n\n{PEOPLE:,} people, real reports. Means of {REPEATS} runs (peers: {PEER_REPEATS}); "
        "every run draws anew. Peers: multi-freq-ldpy with subset selection, before it clips."
    )


def truth(questions: int, items: int) -> list[Ints]:
    """Counts of every question: each answer a third rarer than the one before."""
    shares: Floats = (2 / 3) ** np.arange(items)
    counts = np.floor(PEOPLE * shares / shares.sum()).astype(int)
    counts[0] += PEOPLE - counts.sum()
    return [np.roll(counts, k) for k in range(questions)]


def draft(
    questions: int, items: int, eps: float, answers: int | str, levels: bool = False
) -> dict[str, object]:
    """The content of a survey file."""
    names = [f"item {k}" for k in range(items)]
    rows = [{"name": "all", "epsilon": eps, "items": names}]
    if levels:
        rows = [
            {"name": "sensitive", "epsilon": eps, "items": names[:SENSITIVE]},
            {"name": "ordinary", "epsilon": 2 * eps, "items": names[SENSITIVE:]},
        ]
    asked = [{"name": f"q{k}", "text": f"Question {k}?", "level": rows} for k in range(questions)]
    return {"name": "survey", "answers": answers, "question": asked}


def _error(survey: d.Survey, truths: list[Ints]) -> float:
    """The mean over the runs of the squared error of everyone's counts, over all questions."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(REPEATS):
        chosen, error = draw_questions(survey, PEOPLE, Keystream()), 0.0
        for place, (question, counts) in enumerate(zip(survey.listed, truths, strict=True)):
            answers = rng.permutation(np.repeat(np.arange(len(counts)), counts))
            mine = answers[chosen[:, place]]
            reports = question.mechanism.perturb_many(mine, indices=True)
            estimate = question.mechanism.tally(reports).estimate().counts
            error += float(((estimate * PEOPLE / len(mine) - counts) ** 2).sum() / PEOPLE)
        errors.append(error)
    return float(np.mean(errors))
