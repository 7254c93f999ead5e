"""How a claim is judged: comparisons of rows, their sampling error, and what is written of them.

How verdicts are reached: comparisons are paired over repeats (the same assignment of levels for both mechanisms). A cell is
contrary if the mean difference has the wrong sign beyond sampling error (one-sided t test, 1 % over all cells of the claim).
One contrary cell and the claim does not hold. If all means have the right sign it holds. Cells in between are decided by the exact
theory where there is one; where there is none, it cannot be shown here. Words such as "almost" have a number, stated in the claim.
The margin is by how much, relatively, a claim holds (+) or fails (-).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from discreet.paper.experiments import Numbers, Row

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be shown here"
LEVEL = 0.01  # of all tests of one claim together


@dataclass(frozen=True)
class Findings:
    """What a run found: rows of experiments, tables by name, and facts about the data by key."""

    numbers: Numbers = field(default_factory=lambda: Numbers([]))
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What a claim comes to. `margin`: by how much it holds (positive) or fails (negative), where that has a meaning."""

    verdict: str
    number: str
    margin: float | None = None
    note: str = ""


NOTHING = Verdict(UNKNOWN, "no numbers")
Judge = Callable[[Findings], Verdict]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the function that judges it."""

    name: str
    needs: str  # the figure or table whose numbers it is judged by
    where: str
    sentence: str
    data: tuple[str, ...]  # the data sets behind it
    judge: Judge

    def report(self, found: Findings) -> dict[str, Any]:
        """The verdict as plain data, partial data named."""
        verdict = self.judge(found)
        partial = (found.data[key]["partial"] for key in self.data if key in found.data)
        return {
            "claim": self.name,
            "from": self.needs,
            "where": self.where,
            "sentence": self.sentence,
            "verdict": verdict.verdict,
            "number": verdict.number,
            "margin": verdict.margin,
            "note": " ".join(filter(None, (verdict.note, *partial))),
        }


CLAIMS: list[Claim] = []


def claim(
    name: str, needs: str, where: str, sentence: str, data: tuple[str, ...] = ()
) -> Callable[[Judge], Judge]:
    """Put a function on the list of claims."""

    def keep(judge: Judge) -> Judge:
        CLAIMS.append(Claim(name, needs, where, sentence, data, judge))
        return judge

    return keep


def judged(names: Iterable[str], found: Findings) -> list[dict[str, Any]]:
    """The claims that these tables and figures speak to."""
    chosen = set(names)
    return [one.report(found) for one in CLAIMS if one.needs in chosen]


# ---- comparisons --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """Two mechanisms in one place: ratio of the means, the t statistic of their difference, and the ratio in theory."""

    place: str
    ratio: float
    t: float
    repeats: int
    theory: float | None

    def contrary(self, sign: int, cells: int) -> bool:
        """Whether the first is above the second (sign -1: below) beyond sampling error, one of so many comparisons."""
        return sign * self.t > float(stdtrit(max(self.repeats - 1, 1), 1 - LEVEL / cells))


def place(row: Row) -> tuple[Any, ...]:
    """What two rows must share to be compared."""
    return (
        row.data,
        row.eps,
        row.levels,
        row.share,
        row.padding,
        row.encoding,
        row.metric,
        row.k,
        row.view,
    )


def pair(mine: Row, other: Row) -> Cell:
    """The comparison of two rows, paired by repeat."""
    difference = np.array(mine.values) - np.array(other.values)
    spread = float(np.std(difference, ddof=1)) if len(difference) > 1 else 0.0
    t = float(difference.mean()) / (spread / len(difference) ** 0.5) if spread else 0.0
    formula = mine.theory / other.theory if mine.theory is not None and other.theory else None
    where = f"{mine.data}, eps {mine.eps:g}" + (f", k {mine.k}" if mine.k else "")
    return Cell(
        where, mine.mean / other.mean if other.mean else float("inf"), t, len(difference), formula
    )


def against(numbers: Numbers, model: str, others: Sequence[str], **want: Any) -> list[Cell]:
    """A model beside every other one, in every cell that both have."""
    want = {"encoding": "bits", "view": "raw", **want}
    rest = {
        (row.model, place(row)): row
        for row in numbers.select(model=tuple(others), **want)
        if row.values
    }
    mine = [row for row in numbers.select(model=model, **want) if row.values]
    return [
        pair(row, rest[other, place(row)])
        for row in mine
        for other in others
        if (other, place(row)) in rest
    ]


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
        return Verdict(
            FAILS,
            number,
            margin,
            f"Contrary beyond sampling error in {len(contrary)} of them ({places}{more}).",
        )
    doubtful = [cell for cell in cells if sign * (cell.ratio - 1) > 0]
    if not doubtful:
        return Verdict(HOLDS, number, margin)
    return _by_theory(cells, doubtful, number, margin, sign)


def _by_theory(
    cells: Sequence[Cell], doubtful: Sequence[Cell], number: str, margin: float, sign: int
) -> Verdict:
    """Cells whose means lie on the other side, within sampling error."""
    worst = max(doubtful, key=lambda cell: sign * cell.ratio)
    note = f"{len(doubtful)} of {len(cells)} cells lie on the other side, within sampling error (worst: {worst.place})"
    known = [cell.theory for cell in doubtful if cell.theory is not None]
    if len(known) < len(doubtful):
        return Verdict(UNKNOWN, number, margin, f"{note}.")
    wrong = [ratio for ratio in known if sign * (ratio - 1) > 1e-9]
    if wrong:
        return Verdict(
            FAILS,
            number,
            margin,
            f"{note}; the theory has {len(wrong)} of them on the other side too.",
        )
    room = min(sign * (1 - cell.theory) for cell in cells if cell.theory is not None)
    return Verdict(
        HOLDS,
        number,
        room,
        f"{note}; the theory has all on the right side, and the margin is the theory's.",
    )


def within(ratios: Mapping[str, float], allowed: float, what: str) -> Verdict:
    """Whether all ratios are within 1 +- allowed."""
    if not ratios:
        return NOTHING
    worst = max(ratios, key=lambda key: abs(ratios[key] - 1))
    away = abs(ratios[worst] - 1)
    number = f"{what}: {min(ratios.values()):.3f} to {max(ratios.values()):.3f}"
    return Verdict(
        HOLDS if away <= allowed else FAILS,
        number,
        allowed - away,
        f"Allowed: {allowed:.0%}; furthest at {worst}.",
    )


def printed(pairs: Mapping[str, tuple[float, float, float]]) -> Verdict:
    """Whether printed numbers are the computed ones, rounded: name -> (printed, computed, half a unit of the last digit)."""
    off = {name: (p, c) for name, (p, c, half) in pairs.items() if abs(p - c) > half * (1 + 1e-9)}
    if not off:
        return Verdict(HOLDS, f"all {len(pairs)} numbers agree to the digits printed")
    largest = max(abs(p / c - 1) for p, c in off.values())
    note = "; ".join(f"{name} is printed as {p:g} and is {c:.4g}" for name, (p, c) in off.items())
    return Verdict(
        FAILS,
        f"{len(off)} of {len(pairs)} numbers differ, by at most {largest:.1%}",
        -largest,
        f"{note}.",
    )


# ---- the report ---------------------------------------------------------------------------------------------


def markdown(reports: Sequence[Mapping[str, Any]], note: str) -> str:
    """claims.md."""
    tally = {
        verdict: sum(one["verdict"] == verdict for one in reports)
        for verdict in (HOLDS, FAILS, UNKNOWN)
    }
    lines = [
        "# The paper's claims",
        "",
        f"{', '.join(f'{verdict}: {count}' for verdict, count in tally.items())}. {note}",
        "",
    ]
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
