"""Sentences of the paper that can be true or false, single-item input: its tables and figures 3 to 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.paper.experiments import Row
from discreet.paper.settings import PAPER_MODELS
from discreet.paper.verdicts import (
    FAILS,
    HOLDS,
    LEVEL,
    NOTHING,
    UNKNOWN,
    Cell,
    Findings,
    Verdict,
    against,
    below,
    claim,
    printed,
    within,
)

ALMOST = 0.05  # "almost the same"
NEAR = 0.10  # "near-optimal"
SOLVED = 1e-5  # differences below this are the solver's, not the mechanism's


# ---- table 1 ------------------------------------------------------------------------------------------------


@claim(
    "leakage bounds",
    "table1",
    "Sec. III-B, Table I",
    "The lower bound and upper bound (independent of y) of prior-posterior privacy leakage are summarized in Table I.",
)
def _leakage(found: Findings) -> Verdict:
    rows = found.tables["table1"]
    room = min(
        min(row["its lowest"] / row["lower bound"], row["upper bound"] / row["its highest"])
        for row in rows
    )
    number = f"{len(rows)} pairs of bounds; the extremes of the mechanisms stay within all, at the closest by a factor {room:.4g}"
    return Verdict(HOLDS if room >= 1 - 1e-6 else FAILS, number, round(room - 1, 9))


@claim(
    "twice the smallest budget",
    "table1",
    "Sec. VI, Lemma 1",
    "The privacy benefit is bounded by 2min{E} even when other privacy budgets are higher than 2min{E} "
    "(a level with 4 eps gets the parameters of the level with 2 eps).",
)
def _cap(found: Findings) -> Verdict:
    rows = found.tables["table1_cap"]
    half = len(rows) // 2
    gap = max(
        abs(x[key] - y[key]) for x, y in zip(rows[:half], rows[half:], strict=True) for key in "ab"
    )
    largest = max(row["LDP epsilon"] for row in rows)
    number = (
        f"largest difference of a and b: {gap:.1g}; realised LDP epsilon {largest:.3f}, allowed 2"
    )
    return Verdict(HOLDS if gap < 1e-6 and largest <= 2 + 1e-9 else FAILS, number, 1 - largest / 2)


# ---- table 2 ------------------------------------------------------------------------------------------------

FLIPS = ("1-a HIV", "1-a others", "b HIV", "b others")
VARIANCES = ("Var HIV /n", "Var HIV /c", "Var others /n", "Var others /c")
TOTALS = ("total from", "total to")
ROUNDED = "computed from a and b rounded to two digits"


def _toy(found: Findings, mechanism: str, row: str = "computed") -> dict[str, Any]:
    return next(
        x for x in found.tables["table2"] if x["mechanism"] == mechanism and x["row"] == row
    )


def _printed_row(
    found: Findings, mechanism: str, names: Sequence[str], halves: Mapping[str, float]
) -> Verdict:
    told, mine = _toy(found, mechanism, "printed"), _toy(found, mechanism)
    return printed({name: (told[name], mine[name], halves.get(name, 0.005)) for name in names})


@claim(
    "toy table, RAPPOR and OUE",
    "table2",
    "Sec. IV-E, Table II",
    "RAPPOR has 2n for every item and 10n in all, OUE 1.78n + c and 9.9n.",
)
def _toy_plain(found: Findings) -> Verdict:
    names = (*FLIPS, *VARIANCES, *TOTALS)
    both = [
        _printed_row(found, who, names, dict.fromkeys(TOTALS, 0.05)) for who in ("RAPPOR", "OUE")
    ]
    return next((verdict for verdict in both if verdict.verdict == FAILS), both[0])


@claim(
    "toy table, IDUE's probabilities",
    "table2",
    "Sec. IV-E, Table II",
    "IDUE flips with 0.41 and 0.33 (1 - a), 0.33 and 0.28 (b).",
)
def _toy_flips(found: Findings) -> Verdict:
    return _printed_row(found, "IDUE", FLIPS, {})


@claim(
    "toy table, IDUE's variances",
    "table2",
    "Sec. IV-E, Table II",
    "IDUE has 3.27n + 0.31c and 1.32n + 0.13c, in all 8.68n to 8.86n.",
)
def _toy_variances(found: Findings) -> Verdict:
    mine = _toy(found, "IDUE")
    verdict = _printed_row(found, "IDUE", (*VARIANCES, *TOTALS), {})
    number = f"in all {mine['total from']:.4g}n to {mine['total to']:.4g}n; {verdict.number}"
    return Verdict(verdict.verdict, number, verdict.margin, verdict.note)


@claim(
    "toy table, printed from rounded probabilities",
    "table2",
    "Sec. IV-E, Table II (our reading)",
    "The printed 8.68n to 8.86n comes from rounded probabilities.",
)
def _toy_rounding(found: Findings) -> Verdict:
    told, rounded = _toy(found, "IDUE", "printed"), _toy(found, "IDUE", ROUNDED)
    total = told["Var HIV /n"] + 4 * told["Var others /n"]
    summed = (total + told["Var others /c"], total + told["Var HIV /c"])
    entries = all(
        abs(told[name] - rounded[name]) <= 0.0101 for name in VARIANCES
    )  # 1.325 is printed as 1.32
    sums = all(abs(told[name] - x) < 0.0051 for name, x in zip(TOTALS, summed, strict=True))
    number = (
        f"rounded probabilities give {rounded['total from']:.3f}n to {rounded['total to']:.3f}n; "
        f"the sum of the printed entries is {summed[0]:.2f}n to {summed[1]:.2f}n"
    )
    if not (entries and sums):
        return Verdict(FAILS, number)
    return Verdict(
        HOLDS,
        number,
        None,
        "The total is the sum of entries that were rounded twice: 1.325 became 1.32.",
    )


@claim(
    "toy table, worst case",
    "table2",
    "Sec. IV-E",
    "The upper bound is still less than that of the existing mechanisms, indicating that our mechanism outperforms others even in "
    "the worst-case.",
)
def _toy_worst(found: Findings) -> Verdict:
    mine, plain = (
        _toy(found, "IDUE")["total to"],
        min(_toy(found, who)["total from"] for who in ("RAPPOR", "OUE")),
    )
    return Verdict(
        HOLDS if mine < plain else FAILS, f"{mine:.4g}n against {plain:.4g}n", 1 - mine / plain
    )


@claim(
    "toy table, smaller flips for the others",
    "table2",
    "Sec. IV-E",
    "This property of IDUE leads to a larger variance for i = 1, but smaller flipping probabilities and variance for the others.",
)
def _toy_shift(found: Findings) -> Verdict:
    mine, wrong = _toy(found, "IDUE"), []
    for who in ("RAPPOR", "OUE"):
        plain = _toy(found, who)
        if mine["Var HIV /n"] <= plain["Var HIV /n"]:
            wrong.append(f"its variance for HIV is not larger than that of {who}")
        for name in ("1-a others", "b others", "Var others /n"):
            if mine[name] >= plain[name]:
                wrong.append(f"{name} is {mine[name]:.3f}, with {who} {plain[name]:.3f}")
    number = f"{8 - len(wrong)} of 8 comparisons with RAPPOR and OUE"
    return Verdict(
        FAILS if wrong else HOLDS, number, None, f"Not so: {'; '.join(wrong)}." if wrong else ""
    )


@claim(
    "toy table, optimal utility",
    "table2",
    "Sec. IV-E",
    "By adjusting the flipping probabilities for different bits, IDUE can achieve the optimal utility with the required "
    "protection.",
)
def _toy_optimal(found: Findings) -> Verdict:
    rows = {
        row["mechanism"]: row["total variance / n, uniform answers"]
        for row in found.tables["table2_beyond"]
    }
    mine = rows["IDUE (the paper's best)"]
    best = min(rows, key=lambda name: rows[name])
    number = f"IDUE {mine:.4g}n, {best} {rows[best]:.4g}n (uniform answers)"
    if mine <= rows[best] * (1 + SOLVED):
        return Verdict(HOLDS, number)
    note = (
        "It is the optimum of one pair (a, b) per level, not of all mechanisms with this guarantee."
    )
    return Verdict(FAILS, number, rows[best] / mine - 1, note)


@claim(
    "toy table, GRR",
    "table2",
    "Sec. IV-E, Table II (not in the paper)",
    "GRR, which the paper does not compare there, beats all rows of the table.",
)
def _toy_grr(found: Findings) -> Verdict:
    grr = next(
        row["largest"] for row in found.tables["table2_beyond"] if row["mechanism"] == "GRR at ln 4"
    )
    best = min(_toy(found, who)["total from"] for who in ("RAPPOR", "OUE", "IDUE"))
    return Verdict(
        HOLDS if grr < best else FAILS,
        f"GRR {grr:.4g}n, the smallest of the table {best:.4g}n",
        1 - grr / best,
    )


# ---- table 3 ------------------------------------------------------------------------------------------------


def _data_claim(name: str) -> None:
    @claim(
        f"data set {name}",
        "table3",
        "Sec. VI, Table III",
        f"{name} has the records, users and items of Table III.",
    )
    def judge(found: Findings) -> Verdict:
        row = next(x for x in found.tables["table3"] if x["data set"] == name)
        if row["users here"] is None:
            return Verdict(UNKNOWN, "the file is not there")
        number = f"{row['records here']:,} records, {row['users here']:,} users, {row['items here']:,} items"
        if row["partial"]:
            return Verdict(
                UNKNOWN,
                number,
                None,
                f"The file at hand ({row['file']}) is not the whole data set.",
            )
        off = [what for what in ("records", "users", "items") if row[what] != row[f"{what} here"]]
        if not off:
            return Verdict(HOLDS, number)
        told = "; ".join(f"{what}: {row[what]:,} in the table" for what in off)
        return Verdict(FAILS, number, None, told + _unrated(found, name))


def _unrated(found: Findings, name: str) -> str:
    """Which file has the records of the table."""
    whole = next((x for x in found.tables["table3"] if x["file"].startswith("clothing_all")), None)
    if not whole or name != "Clothing":
        return "."
    return (
        f". The records of the table go with {whole['users here']:,} users ({whole['file']}: {whole['records here']:,} records), "
        "its users with the records that have a rating."
    )


for _name in ("Power-law", "Uniform", "Retail", "Kosarak", "Clothing"):
    _data_claim(_name)


# ---- figure 3 -----------------------------------------------------------------------------------------------


@claim(
    "guarantees",
    "fig3",
    "Sec. VI",
    "RAPPOR and OUE satisfy eps-LDP with eps = min{E}, while IDUE and IDUE-PS satisfy E-MinID-LDP.",
)
def _guarantees(found: Findings) -> Verdict:
    rows = found.tables["fig3_designs"]
    plain = max(
        row["LDP epsilon"] / row["eps"] for row in rows if row["model"] in ("rappor", "oue")
    )
    kept = all(row["holds"] for row in rows)
    number = f"{len(rows)} designs checked exactly; LDP epsilon of RAPPOR and OUE / min E at most {plain:.9f}"
    return Verdict(HOLDS if kept and plain <= 1 + 1e-12 else FAILS, number)


def _objectives(found: Findings, column: str = "worst case / n") -> dict[float, dict[str, float]]:
    """eps -> model -> a column of the designs."""
    table: dict[float, dict[str, float]] = {}
    for row in found.tables["fig3_designs"]:
        table.setdefault(row["eps"], {})[row["model"]] = row[column]
    return table


@claim(
    "opt0 in the worst case",
    "fig3",
    "Sec. IV-D",
    "The solution solved by opt0 will have less worst-case MSE than both RAPPOR and OUE.",
)
def _worst(found: Findings) -> Verdict:
    ratios = [
        row["opt0"] / row[other]
        for row in _objectives(found).values()
        for other in ("rappor", "oue")
    ]
    number = f"opt0 / the other: {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} cells"
    return Verdict(HOLDS if max(ratios) < 1 else FAILS, number, 1 - max(ratios))


@claim(
    "experiment is theory",
    "fig3",
    "Sec. VI-A, Fig. 3",
    "The empirical results are very close to the theoretical results, which validates the correctness of our theoretical analysis.",
)
def _theory(found: Findings) -> Verdict:
    rows = found.numbers.select(
        metric="mse", view="raw", data=("power-law", "uniform"), model=PAPER_MODELS
    )
    rows = [row for row in rows if row.sd]
    if not rows:
        return NOTHING
    z = np.array(
        [
            (np.mean(row.values) - np.mean(row.expected)) / (row.sd / len(row.values) ** 0.5)
            for row in rows
        ]
    )
    away = max(abs(np.mean(row.values) / np.mean(row.expected) - 1) for row in rows)
    largest, limit = float(np.abs(z).max()), float(-ndtri(LEVEL / 2 / len(rows)))
    number = (
        f"{len(rows)} cells: largest |z| {largest:.2f} (allowed {limit:.2f}), root mean square of z {np.sqrt((z**2).mean()):.2f}, "
        f"largest deviation {away:.1%}"
    )
    note = "Theory: the paper's MSE at the true counts. Its caption draws the theory solid, its text dashed; here it is solid."
    return Verdict(HOLDS if largest <= limit else FAILS, number, 1 - largest / limit, note)


def _synthetic(found: Findings, model: str, others: Sequence[str]) -> list[Cell]:
    return against(found.numbers, model, others, data=("power-law", "uniform"), metric="mse")


def _outperforms_claim(model: str) -> None:
    sentence = f"IDUE with MinID-LDP outperforms RAPPOR and OUE (solved by {model})."

    @claim(f"IDUE below RAPPOR and OUE, {model}", "fig3", "Sec. VI-A, Fig. 3", sentence)
    def judge(found: Findings) -> Verdict:
        verdict = below(
            _synthetic(found, model, ("rappor", "oue")), f"MSE of IDUE-{model} / the other's"
        )
        same = (
            [eps for eps in _objectives(found) if _is_oue(found, model, eps)]
            if found.tables.get("fig3_designs")
            else []
        )
        if not same:
            return verdict
        note = f"From eps = {min(same):g} on the optimum of {model} is OUE itself, so nothing is gained. {verdict.note}"
        return Verdict(FAILS, verdict.number, verdict.margin, note.strip())


def _is_oue(found: Findings, model: str, eps: float) -> bool:
    rows = {row["model"]: row for row in found.tables["fig3_designs"] if row["eps"] == eps}
    return all(
        abs(rows[model][key] - rows["oue"][key]) < 1e-6
        for key in rows["oue"]
        if key.startswith(("a ", "b "))
    )


for _model in ("opt0", "opt1", "opt2"):
    _outperforms_claim(_model)


@claim(
    "relatively similar utility",
    "fig3",
    "Sec. VI-A, Fig. 3",
    'Mechanisms satisfying LDP and MinID-LDP have relatively similar utility ("similar": OUE within a factor of two of IDUE).',
)
def _similar(found: Findings) -> Verdict:
    cells = _synthetic(found, "opt0", ("oue",))
    if not cells:
        return NOTHING
    gain = [1 / cell.ratio for cell in cells]
    return Verdict(
        HOLDS if max(gain) <= 2 else FAILS,
        f"OUE / IDUE-opt0: {min(gain):.3g} to {max(gain):.3g}",
        1 - max(gain) / 2,
    )


@claim(
    "opt1 and opt2 above opt0",
    "fig3",
    "Sec. VI-A, Fig. 3",
    "The reduced optimization models (opt1 and opt2) have relatively larger MSEs than the original optimization model (opt0).",
)
def _reduced(found: Findings) -> Verdict:
    return below(_synthetic(found, "opt0", ("opt1", "opt2")), "MSE of opt0 / opt1 and opt2")


@claim(
    "opt1 and opt2 near-optimal",
    "fig3",
    "Sec. VI-A, Fig. 3",
    f'They still can provide the near-optimal solution ("near": the better of the two within {NEAR:.0%} of opt0\'s objective).',
)
def _near(found: Findings) -> Verdict:
    excess = {
        eps: min(row["opt1"], row["opt2"]) / row["opt0"] - 1
        for eps, row in _objectives(found).items()
    }
    worst = max(excess, key=lambda eps: excess[eps])
    near = [f"{eps:g}" for eps, x in excess.items() if x <= NEAR]
    number = f"excess over opt0: {min(excess.values()):.1%} to {excess[worst]:.1%} (eps {worst:g})"
    note = f"Within {NEAR:.0%} at eps = {', '.join(near) or 'none'}."
    return Verdict(HOLDS if excess[worst] <= NEAR else FAILS, number, NEAR - excess[worst], note)


@claim(
    "complexity depends on the levels alone",
    "fig3",
    "Sec. VI",
    "The complexity of our solution, including the number of assigned privacy budgets and computation cost of solving our model, "
    "only depends on the number of privacy levels (rather than the domain size).",
)
def _cost(found: Findings) -> Verdict:
    rows = found.tables["fig3_cost"]
    sizes = {(row["variables"], row["constraints"]) for row in rows}
    listed = "; ".join(
        f"{variables} variables, {constraints} constraints" for variables, constraints in sizes
    )
    number = f"{listed} from {min(row['items'] for row in rows):,} to {max(row['items'] for row in rows):,} items"
    return Verdict(HOLDS if len(sizes) == 1 else FAILS, number)


@claim(
    "tickets beside bits",
    "fig3",
    "not in the paper",
    f'Reports of 4 bytes have almost the error of reports of m bits (IDUE-opt0; "almost": within {ALMOST:.0%} in theory).',
)
def _tickets(found: Findings) -> Verdict:
    rows = found.numbers.select(
        metric="mse", view="raw", data=("power-law", "uniform"), model="opt0"
    )
    bits = {(row.data, row.eps): row for row in rows if row.encoding == "bits" and row.sd}
    pairs = [
        (row, bits[row.data, row.eps])
        for row in rows
        if row.encoding == "ticket" and (row.data, row.eps) in bits
    ]
    if not pairs:
        return NOTHING
    z = [
        (_excess(x) - _excess(y)) / ((x.sd**2 / len(x.values) + y.sd**2 / len(y.values)) ** 0.5)
        for x, y in pairs
    ]
    theory = max(x.theory / y.theory - 1 for x, y in pairs if x.theory is not None and y.theory)
    largest, limit = max(map(abs, z)), float(-ndtri(LEVEL / 2 / len(z)))
    number = (
        f"{theory:.2%} more at most in theory; {len(z)} cells: largest |z| of the difference beyond it {largest:.2f} "
        f"(allowed {limit:.2f})"
    )
    return Verdict(
        HOLDS if largest <= limit and theory <= ALMOST else FAILS, number, ALMOST - theory
    )


def _excess(row: Row) -> float:
    """The mean of the experiment less its expectation."""
    return float(np.mean(row.values) - np.mean(row.expected))


@claim(
    "larger error of sensitive items",
    "fig3",
    "Sec. VI-B",
    "Items with the smallest privacy budget have larger error than the other two mechanisms.",
)
def _sensitive(found: Findings) -> Verdict:
    ratios = [
        row["opt0"] / row[other]
        for row in _objectives(found, "V 1").values()
        for other in ("rappor", "oue")
    ]
    number = f"variance of IDUE / the other's: {min(ratios):.3g} to {max(ratios):.3g}"
    return Verdict(HOLDS if min(ratios) > 1 else FAILS, number, min(ratios) - 1)


# ---- figures 4 and 5 ----------------------------------------------------------------------------------------


def _real_claim(
    name: str, needs: str, data: tuple[str, ...], metric: str, what: str, **want: Any
) -> None:
    sentence = f"The proposed IDUE has the best utility (i.e., smallest MSE and RE) for all considered eps and k: {what}."

    @claim(name, needs, f"Sec. VI-A, Fig. {needs[3:]}", sentence, data)
    def judge(found: Findings) -> Verdict:
        cells = against(
            found.numbers,
            "opt0",
            ("rappor", "oue"),
            data=data,
            metric=metric,
            levels=3,
            padding=0,
            **want,
        )
        return below(cells, f"{metric.upper()} of IDUE / the other's")


for _key, _keys in (("retail", ("retail",)), ("kosarak", ("kosarak", "kosarak-short"))):
    _said = _key.capitalize()
    _real_claim(f"MSE, {_key}", "fig4", _keys, "mse", f"MSE for all eps, {_said}")
    _real_claim(f"RE, {_key}", "fig4", _keys, "re", f"RE with k = 20 for all eps, {_said}", k=20)
    _real_claim(f"RE for all k, {_key}", "fig5", _keys, "re", f"RE for all eps and k, {_said}")


# ---- figure 6 -----------------------------------------------------------------------------------------------


def _shares(found: Findings, metric: str) -> dict[float, dict[float, float]]:
    """eps -> share of sensitive items -> IDUE / OUE in theory."""
    rows = {
        (r.model, r.eps, r.share): r
        for r in found.numbers.select(metric=metric, levels=2, view="raw", encoding="bits")
    }
    table: dict[float, dict[float, float]] = {}
    for (model, eps, share), row in rows.items():
        other = rows.get(("oue", eps, share))
        if model == "opt0" and other and row.theory is not None and other.theory:
            table.setdefault(eps, {})[share] = row.theory / other.theory
    return table


@claim(
    "more benefit with fewer sensitive items",
    "fig6",
    "Sec. VI-A, Fig. 6",
    "Under a smaller percentage, i.e., only a few of items are more sensitive than others, IDUE can get more benefits.",
    ("retail",),
)
def _skewed(found: Findings) -> Verdict:
    lines = [
        [ratios[share] for share in sorted(ratios)] for ratios in _shares(found, "mse").values()
    ]
    if not lines:
        return NOTHING
    rising = all(x <= y + SOLVED for line in lines for x, y in pairwise(line))
    first, last = max(line[0] for line in lines), min(line[-1] for line in lines)
    number = f"MSE of IDUE / OUE goes from {first:.3f} to {last:.3f} with the share of sensitive items (theory)"
    return Verdict(HOLDS if rising and first < last else FAILS, number, last - first)


def _almost_claim(metric: str, words: str) -> None:
    sentence = (
        f"When the percentage of the more sensitive items is more than 40%, IDUE has almost the same {words} as OUE "
        f'("almost": within {ALMOST:.0%}).'
    )

    @claim(
        f"IDUE is OUE above 40 %, {metric.upper()}",
        "fig6",
        "Sec. VI-A, Fig. 6",
        sentence,
        ("retail",),
    )
    def judge(found: Findings) -> Verdict:
        table = _shares(found, metric)
        ratios = {
            f"eps {eps:g}, {share:.0%}": x
            for eps, line in table.items()
            for share, x in line.items()
            if share >= 0.4
        }
        return within(ratios, ALMOST, f"{metric.upper()} of IDUE / OUE from 40 % on (theory)")


_almost_claim("mse", "total MSE")
_almost_claim("re", "average RE")


@claim(
    "OUE outperforms RAPPOR",
    "fig6",
    "Sec. VI-A, Fig. 6",
    "OUE (which outperforms RAPPOR).",
    ("retail",),
)
def _oue(found: Findings) -> Verdict:
    return below(
        against(found.numbers, "oue", ("rappor",), levels=2, metric=("mse", "re")),
        "MSE and RE of OUE / RAPPOR's",
    )


@claim(
    "the limit of few sensitive items",
    "fig6",
    "Sec. VII",
    "If items with the smaller budget only have little influence on the utility, the utility of IDUE will approach the LDP "
    "mechanism with the larger budget (here: the better one, OUE at 2 eps, within 10%).",
)
def _limit(found: Findings) -> Verdict:
    rows = found.tables["fig6_limit"]
    least = min(row["sensitive share"] for row in rows)
    last = [row for row in rows if row["sensitive share"] == least]
    oue, rappor = (max(row[f"/ {model} at 2 eps"] for row in last) for model in ("oue", "rappor"))
    number = f"with {least:.3%} sensitive items: up to {oue:.3g} x the MSE of OUE at 2 eps, {rappor:.3g} x that of RAPPOR at 2 eps"
    if oue <= 1.1:
        return Verdict(HOLDS, number, 1.1 - oue)
    note = "It approaches RAPPOR at 2 eps, slowly: ln(a/b) and ln((1-b)/(1-a)) are each held to eps, which OUE's are not."
    return Verdict(FAILS, number, 1.1 - oue, note)
