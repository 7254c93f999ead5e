"""Fig. 9: varying the padding on Kosarak; beyond it, on more people and on Retail."""

from __future__ import annotations

from itertools import pairwise

from discreet.paper import paddings
from discreet.paper.datasets import TENFOLD, Data
from discreet.paper.drawing import Figure
from discreet.paper.experiments import Experiment
from discreet.paper.paddings import best, curves, find_sizes, listed, regret
from discreet.paper.settings import Setup
from discreet.paper.tables import PaperTable
from discreet.paper.target import Target
from discreet.paper.verdicts import FAILS, HOLDS, NOTHING, UNKNOWN, Claims, Evidence, Verdict

CLAIMS = Claims("fig9", ("kosarak",))
K = 100
USES = (TENFOLD, "retail")
GOOD = 0.10  # a padding is good within this of the best RE
TRIED = ("clothing", "kosarak", "retail")  # what the advice is tried on


def _more(data: Data) -> list[str]:
    return [key for key in USES if key in data]


def _experiments(setup: Setup, data: Data) -> list[Experiment]:
    return paddings.experiments(["kosarak", *_more(data)], K, setup, data)


def _figures(setup: Setup, data: Data) -> list[Figure]:
    title = data["kosarak"].title
    rings = "Rings: the best ℓ of every line, in theory."
    caption = (
        f"Varying ℓ and ε in {title} item-set data (k = {K}), IDUE-PS, the paper's Fig. 9. {rings}"
    )
    own = paddings.panels("kosarak", K, setup, data)
    figures = [Figure("fig9", f"Varying the padding, {title}", caption, [own])]
    more = [paddings.panels(key, K, setup, data) for key in _more(data)]
    if more:
        beyond = (
            "Beyond the paper's figure: the same people ten times (as many as the paper has: the "
            "best padding depends on n), and Retail, of which the paper only says that it has "
            f"similar trends. {rings}"
        )
        name = "Beyond the paper's figure: more people, and Retail"
        figures.append(Figure("fig9_beyond", name, beyond, more))
    return figures


def _tables(setup: Setup, data: Data) -> list[PaperTable]:
    return [paddings.sizes("fig9", ("kosarak", "retail"), data)]


# ---- claims --------------------------------------------------------------------------------------

paddings.mean_claim(CLAIMS, "kosarak", 8)
paddings.growing_claim(CLAIMS, "kosarak", "The optimal l is larger under a larger eps (Kosarak).")
paddings.growing_claim(
    CLAIMS,
    "retail",
    "Results in Retail data have similar trends as in Kosarak data (the optimal l grows with eps).",
)


@CLAIMS.add(
    "the best padding differs between data sets",
    "Sec. VI-B, Fig. 8 and 9",
    "The optimal or near-optimal l differs in data distribution (users in Kosarak dataset have "
    "more items than in Clothing dataset).",
    ("kosarak", "clothing"),
)
def _differs(evidence: Evidence) -> Verdict:
    first, second = (best(evidence.numbers, key, "re") for key in ("clothing", "kosarak"))
    both = sorted(set(first) & set(second))
    if not both:
        return Verdict(UNKNOWN, "needs the numbers of fig8 too")
    number = f"best l by RE at eps {listed(first)} on Clothing, {listed(second)} on Kosarak"
    last = both[-1]
    holds = second[last] > first[last]
    return Verdict(HOLDS if holds else FAILS, number, None, "Judged at the largest eps.")


@CLAIMS.add(
    "variance grows and bias falls with the padding",
    "Sec. VI-B",
    "A larger l leads to a larger variance while a smaller l leads to a larger bias.",
)
def _trade(evidence: Evidence) -> Verdict:
    steps = []
    for metric, sign in (("variance", 1), ("bias", -1)):
        for line in curves(evidence.numbers, "kosarak", metric).values():
            values = [sign * line[ell] for ell in sorted(line)]
            steps += [y - x for x, y in pairwise(values)]
    if not steps:
        return NOTHING
    good = sum(step > 0 for step in steps)
    number = f"{good} of {len(steps)} steps of l go the right way (theory)"
    return Verdict(HOLDS if good == len(steps) else FAILS, number)


@CLAIMS.add(
    "variance dominates at small eps",
    "Sec. VI-B",
    "Under a smaller eps (i.e., stronger privacy), the error from variance dominates the error "
    "from bias, thus a smaller l should be selected to reduce the variance.",
)
def _dominates(evidence: Evidence) -> Verdict:
    variance, bias = (curves(evidence.numbers, "kosarak", x) for x in ("variance", "bias"))
    size = find_sizes(evidence, "kosarak")
    if not variance or size is None:
        return NOTHING
    ell = min(max(1, round(size["mean"])), max(next(iter(variance.values()))))
    share = {eps: line[ell] / (line[ell] + bias[eps][ell]) for eps, line in variance.items()}
    shares = ", ".join(f"{x:.1%} at eps {eps:g}" for eps, x in share.items())
    low, high = share[min(share)], share[max(share)]
    holds = low > 0.5 and low > high
    number = f"variance's share of the MSE at l = {ell}: {shares}"
    return Verdict(HOLDS if holds else FAILS, number, low - 0.5)


@CLAIMS.add(
    "padding 5 gains little from eps",
    "Sec. VI-B, Fig. 9",
    "When fixing a relatively small l (such as l = 5 in Kosarak), RE does not reduce much with "
    "increasing eps because eps has little influence on the bias "
    '("not much": by less than a third from eps = 2 to 4).',
)
def _little(evidence: Evidence) -> Verdict:
    mine, larger = _fall(evidence, "kosarak", 5), _fall(evidence, TENFOLD, 5)
    if mine is None:
        return NOTHING
    wide = max(curves(evidence.numbers, "kosarak", "re")[4.0])
    number = (
        f"RE falls by {mine:.0%} from eps 2 to 4 at l = 5, by "
        f"{_fall(evidence, 'kosarak', wide):.0%} at l = {wide} (theory)"
    )
    note = ""
    if larger is not None:
        note = (
            "With everyone ten times (about as many people as the paper has) it falls by "
            f"{larger:.0%}."
        )
    return Verdict(HOLDS if mine < 1 / 3 else FAILS, number, 1 / 3 - mine, note)


def _fall(evidence: Evidence, data: str, ell: int) -> float | None:
    """By how much RE falls from eps 2 to 4 at a padding."""
    lines = curves(evidence.numbers, data, "re")
    if not all(ell in lines.get(eps, {}) for eps in (2.0, 4.0)):
        return None
    return 1 - lines[4.0][ell] / lines[2.0][ell]


@CLAIMS.add(
    "the 90th percentile is not enough",
    "Sec. VI-B",
    "In [wang2018locally], l is selected as the 90th percentile of numbers of items of all users. "
    "However, a good l should also depend on eps "
    f'(the 90th percentile is "not good" if more than {GOOD:.0%} above the best RE at some eps).',
)
def _percentile(evidence: Evidence) -> Verdict:
    regrets: dict[str, float] = {}
    for data in TRIED:
        size = find_sizes(evidence, data)
        if size:
            ell, lines = round(size["90th percentile"]), curves(evidence.numbers, data, "re")
            regrets |= {f"{data}, eps {eps:g}": regret(x, ell) for eps, x in lines.items()}
    if not regrets:
        return NOTHING
    worst = max(regrets, key=lambda key: regrets[key])
    most, least = regrets[worst], min(regrets.values())
    number = f"RE at the 90th percentile / the best: {least:.2f} to {most:.2f} ({worst})"
    return Verdict(HOLDS if most > 1 + GOOD else FAILS, number, most - 1 - GOOD)


@CLAIMS.add(
    "a simple strategy for the padding",
    "Sec. VI-B",
    "A simple empirical strategy is to select l as the average number of items in each user under "
    "a larger eps (such as 4), while select l less than the average one under a smaller eps (such "
    "as "
    f'2) ("works": at eps = 4 the rounded mean is within {GOOD:.0%} of the best RE, at eps = 2 the '
    "best is below the mean).",
)
def _strategy(evidence: Evidence) -> Verdict:
    tried = {data: x for data in TRIED if (x := _tried(evidence, data, data))}
    if not tried:
        return NOTHING
    larger, note = _tried(evidence, TENFOLD, "kosarak"), ""
    if larger:
        works = "works" if larger[1] else "does not work"
        note = f"With everyone ten times it {works}: {larger[0]}."
    verdict = HOLDS if all(works for _, works in tried.values()) else FAILS
    return Verdict(verdict, "; ".join(said for said, _ in tried.values()), None, note)


def _tried(evidence: Evidence, data: str, name: str) -> tuple[str, bool] | None:
    """How the strategy does on a data set, and whether it works."""
    size, lines = find_sizes(evidence, name), curves(evidence.numbers, data, "re")
    if not size or not {2.0, 4.0} <= set(lines):
        return None
    lost = regret(lines[4.0], max(1, round(size["mean"])))
    pick = best(evidence.numbers, data, "re")[2.0]
    said = f"{name} (mean {size['mean']:.1f}): {lost:.2f} x the best at eps 4, best {pick} at eps 2"
    return said, lost <= 1 + GOOD and pick < size["mean"]


TARGET = Target(
    CLAIMS, ("kosarak",), USES, tables=_tables, experiments=_experiments, figures=_figures
)
