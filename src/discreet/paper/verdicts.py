"""How a claim is judged: comparisons of rows, their sampling error, and what is written of them.

How verdicts are reached: comparisons are paired over repeats (the same assignment of levels for
both mechanisms). A cell is contrary if the mean difference has the wrong sign beyond sampling error
(one-sided t test, 1 % over all cells of the claim). One contrary cell and the claim does not hold.
If all means have the right sign it holds. Cells in between are decided by the exact theory where
there is one; where there is none, it cannot be shown here. Words such as "almost" have a number,
stated in the claim. The margin is by how much, relatively, a claim holds (+) or fails (-).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
from scipy.special import stdtrit

from discreet.paper.datasets import DataFacts
from discreet.paper.experiments import Numbers, Row
from discreet.paper.tables import Rows

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be shown here"
LEVEL = 0.01  # of all tests of one claim together
ALMOST = 0.05  # "almost the same"
SOLVED = 1e-5  # differences below this are the solver's, not the mechanism's


@dataclass(frozen=True)
class Evidence:
    """What a run found: rows of experiments, tables by name, and facts about the data by key."""

    numbers: Numbers = field(default_factory=lambda: Numbers([]))
    tables: Mapping[str, Rows] = field(default_factory=dict)
    data: Mapping[str, DataFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim. `margin`: by how much it holds (positive) or fails (negative), if
    that has a meaning.
    """

    verdict: str
    number: str
    margin: float | None = None
    note: str = ""


Report = TypedDict(  # a claim and its verdict, as claims.json has it; "from" is a keyword
    "Report",
    {
        "claim": str,
        "from": str,
        "where": str,
        "sentence": str,
        "verdict": str,
        "number": str,
        "margin": float | None,
        "note": str,
    },
)
NOTHING = Verdict(UNKNOWN, "no numbers")
Judge = Callable[[Evidence], Verdict]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the function that judges it."""

    name: str
    target: str  # the figure or table whose numbers it is judged by
    where: str
    sentence: str
    data: tuple[str, ...]  # the data sets behind it
    judge: Judge

    def report(self, evidence: Evidence) -> Report:
        """The verdict as plain data; the note names partial data."""
        verdict = self.judge(evidence)
        partial = (str(evidence.data[key]["partial"]) for key in self.data if key in evidence.data)
        return {
            "claim": self.name,
            "from": self.target,
            "where": self.where,
            "sentence": self.sentence,
            "verdict": verdict.verdict,
            "number": verdict.number,
            "margin": verdict.margin,
            "note": " ".join(filter(None, (verdict.note, *partial))),
        }


class Claims:
    """The claims of one table or figure, in order."""

    def __init__(self, target: str, data: tuple[str, ...] = ()) -> None:
        self.target, self.data = target, data
        self._all: list[Claim] = []

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._all)

    def add(
        self, name: str, where: str, sentence: str, data: tuple[str, ...] | None = None
    ) -> Callable[[Judge], Judge]:
        """A decorator that adds a judge. Its data are those of the list, unless you name others."""
        behind = self.data if data is None else data

        def keep(judge: Judge) -> Judge:
            self._all.append(Claim(name, self.target, where, sentence, behind, judge))
            return judge

        return keep


# ---- comparisons ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """Two mechanisms in one place: ratio of the means, the t statistic of their difference, and the
    ratio in theory.
    """

    place: str
    ratio: float
    t: float
    repeats: int
    theory: float | None

    def contrary(self, sign: int, cells: int) -> bool:
        """Whether the first is above the second (sign -1: below) beyond sampling error, one of so
        many comparisons.
        """
        return sign * self.t > float(stdtrit(max(self.repeats - 1, 1), 1 - LEVEL / cells))


_PLACE = ("data", "eps", "levels", "share", "padding", "encoding", "metric", "k", "view")


def place(row: Row) -> tuple[object, ...]:
    """What two rows must share to be compared."""
    return tuple(getattr(row, name) for name in _PLACE)


def pair(mine: Row, other: Row) -> Cell:
    """The comparison of two rows, paired by repeat."""
    difference = np.array(mine.values) - np.array(other.values)
    spread = float(np.std(difference, ddof=1)) if len(difference) > 1 else 0.0
    t = float(difference.mean()) / (spread / len(difference) ** 0.5) if spread else 0.0
    formula = mine.theory / other.theory if mine.theory is not None and other.theory else None
    where = f"{mine.data}, eps {mine.eps:g}" + (f", k {mine.k}" if mine.k else "")
    ratio = mine.mean / other.mean if other.mean else float("inf")
    return Cell(where, ratio, t, len(difference), formula)


def against(numbers: Numbers, model: str, others: Sequence[str], **want: object) -> list[Cell]:
    """A model beside every other one, in every cell that both have."""
    want = {"encoding": "bits", "view": "raw", **want}
    theirs = [row for row in numbers.select(model=tuple(others), **want) if row.values]
    rest = {(row.model, place(row)): row for row in theirs}
    mine = [row for row in numbers.select(model=model, **want) if row.values]
    pairs = ((row, rest.get((other, place(row)))) for row in mine for other in others)
    return [pair(row, other) for row, other in pairs if other]


def below(cells: Sequence[Cell], what: str, sign: int = 1) -> Verdict:
    """Whether the first is below the second in every cell (sign -1: above)."""
    if not cells:
        return NOTHING
    ratios = [cell.ratio for cell in cells]
    worst = max(cells, key=lambda cell: sign * cell.ratio)
    number = f"{what}: {min(ratios):.3g} to {max(ratios):.3g} in {len(cells)} cells"
    margin = sign * (1 - worst.ratio)
    contrary = [cell for cell in cells if cell.contrary(sign, len(cells))]
    if contrary:
        places = "; ".join(f"{cell.place}: {cell.ratio:.3g}" for cell in contrary[:6])
        more = f" and {len(contrary) - 6} more" if len(contrary) > 6 else ""
        note = f"Contrary beyond sampling error in {len(contrary)} of them ({places}{more})."
        return Verdict(FAILS, number, margin, note)
    doubtful = [cell for cell in cells if sign * (cell.ratio - 1) > 0]
    if not doubtful:
        return Verdict(HOLDS, number, margin)
    return _by_theory(cells, doubtful, number, margin, sign)


def _by_theory(
    cells: Sequence[Cell], doubtful: Sequence[Cell], number: str, margin: float, sign: int
) -> Verdict:
    """Cells whose means lie on the other side, within sampling error."""
    worst = max(doubtful, key=lambda cell: sign * cell.ratio)
    note = (
        f"{len(doubtful)} of {len(cells)} cells lie on the other side, within sampling error "
        f"(worst: {worst.place})"
    )
    ratios = [cell.theory for cell in doubtful if cell.theory is not None]
    if len(ratios) < len(doubtful):
        return Verdict(UNKNOWN, number, margin, f"{note}.")
    wrong = sum(sign * (ratio - 1) > 1e-9 for ratio in ratios)
    if wrong:
        note = f"{note}; the theory has {wrong} of them on the other side too."
        return Verdict(FAILS, number, margin, note)
    room = min(sign * (1 - cell.theory) for cell in cells if cell.theory is not None)
    note = f"{note}; the theory has all on the right side, and the margin is the theory's."
    return Verdict(HOLDS, number, room, note)


def within(ratios: Mapping[str, float], allowed: float, what: str) -> Verdict:
    """Whether all ratios are within 1 +- allowed."""
    if not ratios:
        return NOTHING
    worst = max(ratios, key=lambda key: abs(ratios[key] - 1))
    away = abs(ratios[worst] - 1)
    number = f"{what}: {min(ratios.values()):.3f} to {max(ratios.values()):.3f}"
    note = f"Allowed: {allowed:.0%}; furthest at {worst}."
    return Verdict(HOLDS if away <= allowed else FAILS, number, allowed - away, note)


def printed(pairs: Mapping[str, tuple[float, float, float]]) -> Verdict:
    """Whether printed numbers are the computed ones, rounded: name -> (printed, computed, half a
    unit of the last digit).
    """
    off = {name: (p, c) for name, (p, c, half) in pairs.items() if abs(p - c) > half * (1 + 1e-9)}
    if not off:
        return Verdict(HOLDS, f"all {len(pairs)} numbers agree to the digits printed")
    largest = max(abs(p / c - 1) for p, c in off.values())
    number = f"{len(off)} of {len(pairs)} numbers differ, by at most {largest:.1%}"
    note = "; ".join(f"{name} is printed as {p:g} and is {c:.4g}" for name, (p, c) in off.items())
    return Verdict(FAILS, number, -largest, f"{note}.")


# ---- the report ----------------------------------------------------------------------------------


def markdown(reports: Sequence[Report], note: str) -> str:
    """The text of claims.md."""
    verdicts = [one["verdict"] for one in reports]
    tally = ", ".join(f"{word}: {verdicts.count(word)}" for word in (HOLDS, FAILS, UNKNOWN))
    lines = ["# The paper's claims", "", f"{tally}. {note}", ""]
    lines += [line.strip() for line in (__doc__ or "").split("\n\n", 1)[1].strip().splitlines()]
    lines += [
        "",
        "| claim | from | verdict | number | margin | note |",
        "|---|---|---|---|---|---|",
    ]
    for one in reports:
        margin = "" if one["margin"] is None else f"{one['margin']:+.1%}"
        said = f"{one['claim']}: *{one['sentence']}* ({one['where']})"
        cells = (said, one["from"], f"**{one['verdict']}**", one["number"], margin, one["note"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
