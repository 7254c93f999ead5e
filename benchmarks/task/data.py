"""The data of the task: `python -m benchmarks.task.data` writes answers.csv here."""

from __future__ import annotations

from pathlib import Path

import numpy as np

LEVELS = [
    ("serious", 1, ["HIV", "cancer", "psychosis"]),
    ("personal", 1.2, ["depression", "diabetes", "epilepsy", "miscarriage", "addiction"]),
    ("common", 2, ["flu", "cold", "headache", "back pain", "toothache", "allergy", "sprain",
                   "stomach bug", "migraine", "cough", "insomnia", "nothing"]),
]  # fmt: skip
LABELS = [label for _, _, labels in LEVELS for label in labels]


def answers(n: int = 50_000, seed: int = 1) -> list[str]:
    """One answer each, by Zipf's law; the frequent labels are of any level."""
    rng = np.random.default_rng(seed)
    shares = rng.permutation(1 / np.arange(1, len(LABELS) + 1))
    return [LABELS[i] for i in rng.choice(len(LABELS), n, p=shares / shares.sum())]


def write(path: Path, found: list[str]) -> None:
    path.write_text("answer\n" + "\n".join(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path("answers.csv"), answers())
