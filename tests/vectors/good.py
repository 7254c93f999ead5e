"""Mechanisms that hold, of every encoding and kind of policy."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from building import (
    ABSENT,
    BITS,
    FIXED,
    HALF,
    PLAIN,
    QUARTER,
    altered,
    body,
    boxed,
    changed,
    e,
    each,
    high,
    hits,
    low,
    middle,
    of_sets,
    picked,
    policy,
    signed,
    ticket,
    tightened,
    unary,
)
from reference import MANY, D, Document, verdict

FIVE = ["HIV", "anemia", "headache", "stomachache", "toothache"]
TOY = policy([("serious", "ln(4)", [0]), ("common", "ln(6)", [1, 2, 3, 4])], FIVE)
THIRD = policy([("serious", "1/3", [0]), ("common", "ln(6)/3", [1, 2, 3, 4])], FIVE)
NINE = [
    "größe", "Ångström", "日本語", "nai\u0308ve cafe\u0301", "👩\u200d⚕\ufe0f 🙂", 'say "hi"',
    "back\\slash", "می\u200cخواهم", "жар-птица, <b>&amp;",
]  # fmt: skip
AVERAGE = policy(
    [("hoch", "0.7", [1, 4, 8]), ("tief", "ln(7/2)", [0, 2, 3, 5, 6, 7])],
    NINE, notion="avg", question="Was trifft zu? 🙂",
)  # fmt: skip
FOUR = policy(
    [("a", "1", [0, 5]), ("b", "2", [1, 2]), ("c", "1.1", [3, 8]), ("d", "ln(7)", [4, 6, 7])], NINE
)
THREE = policy([("a", "1", [1]), ("b", "1.2", [0, 2])], ["x", "y", "z"], kind="set")
EIGHT = policy([("all", "2", list(range(8)))], [f"i{k}" for k in range(8)])
PAGES = [f"page {k}" for k in range(70)]
SEVENTY = policy(
    [("high", "1", list(range(0, 70, 14))), ("low", "2", [k for k in range(70) if k % 14])], PAGES
)
SETS = of_sets(SEVENTY)
STRICT_PAIRS = {"strict": True, "pairs": [{"levels": ["high", "low"], "epsilon": "0.7"}]}
PAIRS = policy(
    [("u", "ln(3)", [0, 3]), ("v", "2.5", [1, 2, 4])], ["p", "q", "r", "s", "t"],
    pairs=[{"levels": ["v", "v"], "epsilon": ""}, {"levels": ["u", "u"], "epsilon": "ln(2)"}],
)  # fmt: skip
AVERAGE_PAIRS = policy(
    [("u", "ln(3)", [0, 3]), ("v", "ln(12)", [1, 2, 4])], ["p", "q", "r", "s", "t"],
    notion="avg", pairs=[{"levels": ["u", "u"], "epsilon": "ln(2)"}],
)  # fmt: skip
NAMES = ("u", "u"), ("u", "v"), ("v", "v")
FREE = {**PAIRS, "pairs": [{"levels": list(names), "epsilon": ""} for names in NAMES]}
TWO = policy([("a", "ln(3)", [0]), ("b", "ln(3)", [1])], ["yes", "no"])
ONLY = policy([("only", "ln(5)", [0, 1, 2])], ["1", "2", "3"])
TWELVE = policy(
    [(f"budget {k}", f"{k / 10 + 0.5:.2f}".rstrip("0").rstrip("."), [k]) for k in range(12)],
    [str(k) for k in range(12)],
)
E = e("1")
TOY_SETS, EIGHT_SETS = of_sets(TOY), of_sets(EIGHT)
LEVELS = policy([("a", "1", [0]), ("b", "1.2", [1]), ("c", "2", [2, 3])], list("wxyz"), kind="set")
CUT = policy([("a", "ln(3)", [0, 2]), ("b", "ln(8)", [1, 3, 4])], list("pqrst"), kind="set")
HALVES = policy([("a", "1", [0, 2, 4]), ("b", "2", [1, 3, 5])], list("uvwxyz"), kind="set")
SIX = policy([("a", "0.5", [1, 2]), ("b", "1.5", [0, 3, 4, 5])], list("uvwxyz"), kind="set")
STRICT = {**SIX, "strict": True}
STRICT_PAIRS = of_sets(PAIRS, strict=True)  # ln(2), the smallest budget, is one of a pair


def fixed_mechanisms() -> dict[str, Document]:
    """Subsets of fixed size."""
    grr = {"chance": [D], "own": [HALF], "other": [1]}
    optimum = [[high(4), low(1)], [low("1.5"), (1, 6, 1)]]
    two = [[3 * QUARTER, QUARTER], [QUARTER, 3 * QUARTER]]
    r, root = e("0.35"), Fraction(MANY.sqrt(Decimal("3.5"))).limit_denominator(10**12)
    empty = [high(E), low(1), low(1)], [low(1), low(1), high(E)], [low(1), (1, E, 1), low(1)]
    seventy = [[(1, E, 1), high(E)], [middle(E), (8, E**2, 1)]]
    nothing = [*seventy[0], low(1)], [*seventy[1], middle(E)], [low(1), low(1), high(E)]
    four = [[(1, E, 1), high(E)], [low(7 / E), (1, 7, 1)]]
    three = policy([("all", "ln(2)", [0, 1, 2])], ["x", "y", "z"])
    return {
        "toy-subset": tightened(boxed(TOY, FIXED, optimum)),
        "toy-subset-three-parts": tightened(
            boxed(TOY, FIXED, [*optimum, [low(1), (2, 4, 1)]], ["0.05"], prior="given",
                  shares=[QUARTER, 3 * QUARTER])
        ),
        "toy-grr": body(TOY, "grr", FIXED, groups=[0, 0], parts=[grr]),
        "toy-ss": unary(TOY, "ss", FIXED, ["2/5"], groups=[0, 0]),
        "three-grr": body(three, "grr", FIXED, parts=[grr]),
        "two-silent": body(TWO, "subset", FIXED, parts=[silent(x) for x in two]),
        "two-silent-set": body(
            policy([("a", "ln(2)", [0]), ("b", "ln(2)", [1])], ["yes", "no"], kind="set"),
            "subset", FIXED, padding=1, shares=[QUARTER, HALF, QUARTER],
            parts=[silent(x[:2], x[2]) for x in
                   ([HALF, QUARTER, QUARTER], [QUARTER, HALF, QUARTER], [QUARTER, QUARTER, HALF])],
        ),
        "two-avg": body(
            policy([("a", "ln(2)", [0]), ("b", "ln(8)", [1])], ["yes", "no"], notion="avg"),
            "subset", FIXED, parts=[silent([HALF, D // 8]), silent([HALF, 7 * D // 8])],
        ),
        "one-item": body(
            policy([("only", "1", [0])], ["it"]), "subset", FIXED, parts=[silent([D])]
        ),
        "toy-third-ss": unary(THIRD, "ss", FIXED, ["2/5"], groups=[0, 0]),
        "eight-ss": unary(EIGHT, "ss", FIXED, ["1/8"]),
        "nine-avg-subset": tightened(
            boxed(AVERAGE, FIXED, [[(1, r, 1 / r), low(1 / root)],
                                   [low(1 / r), (2, root, 1 / root)]], prior="worst")
        ),
        "nine-groups-subset": tightened(boxed(FOUR, FIXED, four, groups=[0, 1, 0, 1])),
        "five-pairs-subset": tightened(
            boxed(PAIRS, FIXED, [[(1, 2, 1), low("2/3")], [low(1), (1, 3, "2/3")]])
        ),
        "five-avg-pairs-subset": tightened(
            boxed(AVERAGE_PAIRS, FIXED, [[(1, 2, 1), low("1/2")], [low(1), (1, 6, "1/2")]])
        ),
        "three-set-subset": tightened(
            boxed(THREE, FIXED, [*map(list, empty)], shares=[QUARTER, HALF, QUARTER], padding=2)
        ),
        "three-set-ss": unary(THREE, "ss", FIXED, ["1/3"], groups=[0, 0]),
        "seventy-subset": tightened(
            boxed(SEVENTY, FIXED, [*seventy, [(1, E, 1), (12, E, 1)]], ["0.1"])
        ),
        "five-strict-ss": unary(STRICT_PAIRS, "ss", FIXED, ["1/5"], groups=[0, 0], padding=2),
        "seventy-set-subset": tightened(
            boxed(SETS, FIXED, [*map(list, nothing)], padding=65536)
        ),
    }  # fmt: skip


def silent(chance: list[int], none: int | None = None) -> Document:
    """A part in which every group is silent."""
    zeros = [0] * len(chance)
    part = {"chance": chance, "own": zeros, "other": list(zeros)}
    return part if none is None else {**part, "none": none}


def bits_mechanisms() -> dict[str, Document]:
    """Independent bits."""
    many = unary(ONLY, "subset", BITS, ["0.3"])
    many["parts"] = [{**many["parts"][0], "chance": [D // 256]} for _ in range(256)]
    free = {"chance": [D, D], "own": [D - 1, 1], "other": [1, D - 1]}
    fewer = {"chance": [D], "own": [D // 5], "other": [D // 3]}
    seventy = [[("0.27", E, 1), high(E)], [middle(E), ("0.12", E**2, 1)]]
    nothing = [*seventy[0], low(1)], [*seventy[1], middle(E)], [low(1), low(1), high(E)]
    cut = [("0.3", 3, 1), high(3), low(1)], [middle(3), ("0.2", 8, 1), middle(3)], [
        low(1), low(1), high(3)]  # fmt: skip
    found = {
        "toy-opt0": unary(TOY, "opt0", BITS, ["0.327", "0.27756"]),
        "toy-third-opt0": unary(THIRD, "opt0", BITS, ["0.45", "0.4"]),
        "toy-bits-parts": tightened(
            boxed(TOY, BITS, [[("0.3", 4, 1), low(1)], [low("1.5"), ("0.25", 6, 1)]])
        ),
        "toy-silent": unary(TOY, "opt0", BITS, ["0.327", "0.27756"]),
        "three-256-parts": many,
        "three-own-is-rarer": body(ONLY, "opt0", BITS, parts=[fewer]),
        "three-set-bits": unary(THREE, "oue", BITS, ["0.3", "0.25"], padding=2),
        "one-item-bits": unary(policy([("only", "1", [0])], ["it"]), "oue", BITS, ["0.25"]),
        "five-pairs-bits": unary(PAIRS, "opt0", BITS, ["0.35", "0.2"]),
        "five-unprotected": body(FREE, "opt0", BITS, parts=[free]),
        "eight-rappor": unary(EIGHT, "rappor", BITS, ["0.26894142"]),
        "nine-avg-opt1": unary(AVERAGE, "opt1", BITS, ["0.4", "0.3"], prior="worst"),
        "nine-groups-bits": unary(FOUR, "opt2", BITS, ["0.3", "0.2", "0.3"], groups=[0, 1, 2, 1]),
        "twelve-budgets": unary(TWELVE, "opt0", BITS, [f"{0.4 - k / 100:.2f}" for k in range(12)]),
        "seventy-opt0": unary(SEVENTY, "opt0", BITS, ["0.27", "0.2"]),
        "seventy-bits-parts": tightened(boxed(SEVENTY, BITS, seventy)),
        "four-set-bits": unary(LEVELS, "opt0", BITS, ["0.3", "0.27", "0.2"], padding=2),
        "five-cut-bits": tightened(
            boxed(CUT, BITS, [*map(list, cut)], shares=[HALF, QUARTER, QUARTER], padding=2)
        ),
        "six-strict-bits": unary(STRICT, "oue", BITS, ["0.35", "0.35"], padding=2),
        "five-strict-bits": unary(STRICT_PAIRS, "oue", BITS, ["0.3", "0.3"]),
        "seventy-set-oue": unary(SETS, "oue", BITS, ["0.3", "0.2"], padding=5),
        "seventy-set-bits-parts": tightened(
            boxed(SETS, BITS, [*map(list, nothing)], shares=[HALF, QUARTER, QUARTER])
        ),
    }
    part = found["toy-silent"]["parts"][0]
    part["own"][0] = part["other"][0] = 0
    return found


def ticket_mechanisms() -> dict[str, Document]:
    """Tickets over small and large fields, up to the last that fits into 32 bits."""
    toy = [[(1, 4, 1), low(1)], [low("1.5"), (1, 6, 1)]]
    seventy = [[(10, E, 1), high(E)], [middle(E), (4, E**2, 1)]]
    three = [(1, E, 1), low(1), low(1)], [low(1), (2, E, 1), low(1)], [low(1), low(1), high(E)]
    many = unary(ONLY, "subset", ticket(251, 2), ["80/251"])
    many["parts"] = [
        {**many["parts"][0], "chance": [D // 256], "other": [80 + k % 2]} for k in range(256)
    ]
    return {
        "toy-ticket": tightened(boxed(TOY, ticket(5, 2), toy)),
        "toy-ticket-opt0": unary(TOY, "opt0", ticket(5, 2), ["2/5", "1/5"]),
        "three-256-parts-ticket": many,
        "three-set-ticket": tightened(
            boxed(THREE, ticket(5, 2), [*map(list, three)], shares=[QUARTER, HALF, QUARTER])
        ),
        "six-strict-ticket": unary(STRICT, "oue", ticket(7, 2), ["2/7", "2/7"], padding=2),
        "five-pairs-ticket": unary(PAIRS, "opt0", ticket(3, 2), ["1/3", "1/3"]),
        "eight-ticket-11-8": unary(EIGHT, "oue", ticket(11, 8), ["3/11"]),
        "eight-ticket-1621": unary(EIGHT, "oue", ticket(1621, 2), ["200/1621"]),
        "nine-avg-ticket-full": unary(AVERAGE, "opt1", ticket(3, 2), ["1/3", "1/3"]),
        "nine-groups-ticket": unary(
            FOUR, "opt2", ticket(7, 4), ["2/7", "1/7"], groups=[0, 1, 0, 1]
        ),
        "seventy-ticket": tightened(boxed(SEVENTY, ticket(37, 3), seventy)),
        "seventy-set-ticket": unary(SETS, "opt2", ticket(11, 2), ["3/11", "2/11"], padding=5),
    }


def each_mechanisms() -> dict[str, Document]:
    """Every item on its own."""
    found = {
        "toy-each": each(TOY_SETS),
        "one-item-each": each(policy([("only", "1", [0])], ["it"], kind="set")),
        "four-each": each(LEVELS),
        "nine-avg-each": each(of_sets(AVERAGE), prior="worst"),
        "nine-groups-each": each(of_sets(FOUR), groups=[0, 1, 0, 1]),
        "seventy-each": each(SETS),
    }
    asymmetric = {"parts/0/own": [D // 2, D // 2], "parts/0/other": [D // 5 + 1, D // 7 + 1]}
    return found | {"toy-each-oue": altered(found["toy-each"], asymmetric)}


SEVEN = ["flu", "HIV", "cold", "cough", "none", "cancer", "hay fever"]
CLEARED = policy([("serious", "1", [0]), ("open", "open", [1, 2, 3, 4])], FIVE, notion="one-way")
CLEARED_4 = policy(
    [("serious", "ln(4)", [0]), ("open", "open", [1, 2, 3, 4])], FIVE, notion="one-way"
)
STEPS = policy(
    [("a", "1", [1, 5]), ("b", "2", [0, 3]), ("open", "open", [2, 4, 6])], SEVEN, notion="one-way"
)
NONE_OPEN = policy(
    [("a", "ln(2)", [1, 5]), ("b", "2", [0, 3]), ("c", "4", [2, 4, 6])], SEVEN, notion="one-way"
)
BLOCKS = policy(
    [("a", "ln(3)", [0, 1, 6]), ("b", "1", [3, 5]), ("c", "2", [2]), ("d", "1", [4])],
    SEVEN, notion="blocks",
)  # fmt: skip
POINTS = ["never", "rarely", "sometimes", "often", "always"]


def scale(step: str, cap: int, points: list[str] = POINTS) -> Document:
    """A policy of points in their order; the cap is in steps, or 0."""
    levels = [(point, step, [k]) for k, point in enumerate(points)]
    return policy(levels, points, notion="scale", cap=cap)


def one_way(first: str, second: str, epsilon: str) -> Document:
    return {"levels": [first, second], "epsilon": epsilon, "one_way": True}


MIXED = policy(
    [("a", "1", [0, 4]), ("b", "open", [2]), ("c", "open", [1, 3, 5])], SEVEN[:6],
    notion="one-way",
    pairs=[one_way("a", "b", "2"), one_way("a", "c", "0.5"), one_way("b", "c", "1.5")],
)  # fmt: skip
TWO_WAYS = policy(
    [("u", "ln(3)", [0, 3]), ("v", "2.5", [1, 2, 4])], ["p", "q", "r", "s", "t"],
    pairs=[one_way("u", "v", "ln(2)"), one_way("v", "u", "ln(6)")],
)  # fmt: skip
FREED = policy(
    [("u", "ln(3)", [0, 3]), ("v", "2.5", [1, 2, 4])], ["p", "q", "r", "s", "t"],
    pairs=[one_way("v", "u", ""), {"levels": ["v", "v"], "epsilon": ""}],
)  # fmt: skip


def ordered_mechanisms() -> dict[str, Document]:
    """Budgets of ordered pairs: levels that are open or protected one way, blocks and scales."""
    unit = (1, 1, 0)
    cleared = [[high(E), low(1)], [ABSENT, unit]]
    cleared_4 = [[high(4), low(1)], [ABSENT, (2, 1, 0)]]
    steps = [[(1, E, 1), low(1), low(1)], [low(1), (1, E**2, 1), low(1)]]
    two, four, root = e("2"), e("4"), e("0.5")
    finite = [[(1, 2, 1), low(1), low(1)], [low(1), (1, two, 1), low(1)],
              [low(1), low(1), (1, four, 1)]]  # fmt: skip
    mixed = [[(1, root, 1 / root), middle(1), low(1)], [ABSENT, high(e("1.5")), low(1)]]
    blocks = [[(1, 3, 1), *[ABSENT] * 3], [ABSENT, (1, E, 1), *[ABSENT] * 2],
              [*[ABSENT] * 2, middle(1), ABSENT], [*[ABSENT] * 3, middle(1)]]  # fmt: skip
    pair = {"chance": [D], "own": [3 * QUARTER], "other": [1]}
    found = {
        "five-open-subset": boxed(CLEARED, FIXED, cleared),
        "five-open-4-subset": boxed(CLEARED_4, FIXED, cleared_4),
        "seven-open-subset": boxed(STEPS, FIXED, [*steps, [ABSENT, ABSENT, unit]]),
        "seven-open-bits": unary(STEPS, "opt0", BITS, ["0.3", "0.2", "0.1"]),
        "five-open-ticket": boxed(CLEARED, ticket(5, 2), [[high(E), low(1)], [ABSENT, PLAIN]]),
        "five-open-speaking-ticket": boxed(
            CLEARED_4, ticket(5, 2), [[(1, 4, 1), low(1)], [ABSENT, PLAIN]]
        ),
        "five-open-no-plain-ticket": boxed(CLEARED, ticket(5, 2), cleared),
        "seven-open-ticket": boxed(STEPS, ticket(3, 2), [*steps, [ABSENT, ABSENT, PLAIN]]),
        "seven-one-way-subset": tightened(boxed(NONE_OPEN, FIXED, finite)),
        "seven-one-way-ticket": tightened(boxed(NONE_OPEN, ticket(3, 2), finite)),
        "seven-one-way-bits": unary(NONE_OPEN, "opt0", BITS, ["0.4", "0.2", "0.1"]),
        "six-mixed-subset": boxed(MIXED, FIXED, [*mixed, [ABSENT, ABSENT, unit]]),
        "six-mixed-ticket": boxed(
            MIXED, ticket(5, 2),
            [[(3, *mixed[0][0][1:]), *mixed[0][1:]], mixed[1], [ABSENT, ABSENT, PLAIN]],
        ),
        "five-two-ways-bits": unary(TWO_WAYS, "opt0", BITS, ["0.35", "0.2"]),
        "five-two-ways-subset": tightened(
            boxed(TWO_WAYS, FIXED, [[(1, 2, 1), low(1)], [low(1), (1, 6, 1)]])
        ),
        "five-freed-subset": boxed(FREED, FIXED, [[(1, 3, 1), middle(1)], [ABSENT, unit]]),
        "seven-blocks-subset": boxed(BLOCKS, FIXED, blocks),
        "seven-blocks-ticket": unary(BLOCKS, "opt0", ticket(3, 2), ["1/3"] * 4),
        "two-blocks-joined": body(
            policy([("a", "ln(3)", [0]), ("b", "ln(4)", [1])], ["yes", "no"], notion="blocks"),
            "subset", FIXED, groups=[0, 0], parts=[pair],
        ),
        "five-scale-subset": boxed(scale("1", 0), FIXED, geometric("1", 4)),
        "five-scale-cap-subset": boxed(scale("1", 2), FIXED, geometric("1", 2)),
        "five-scale-cap-all-subset": boxed(scale("ln(3)", 4), FIXED, geometric("1.09", 4)),
        "five-scale-bits": unary(scale("1", 0), "opt0", BITS, ["0.3"] * 5),
        "five-scale-cap-bits": unary(scale("1", 2), "opt0", BITS, ["0.4", "0.3"], groups=CAPPED),
        "two-scale-subset": body(
            scale("ln(3)", 1, ["no", "yes"]), "subset", FIXED,
            parts=[silent([3 * QUARTER, QUARTER]), silent([QUARTER, 3 * QUARTER])],
        ),
        "one-item-one-way": body(
            policy([("only", "1", [0])], ["it"], notion="one-way"), "subset", FIXED,
            parts=[silent([D])],
        ),
    }  # fmt: skip
    return found | one_way_each()


CAPPED = [0, 1, 1, 0, 0]  # points that are told of together


def geometric(step: str, cap: int) -> list[list[Any]]:
    """A part for every point, its chance e^-step smaller for every step away, up to the cap."""
    r = e(step) * (1 - Fraction(1, 10**5))
    return [[middle(r ** -min(abs(i - y), cap)) for i in range(5)] for y in range(5)]


def one_way_each() -> dict[str, Document]:
    """Every item on its own: having it is protected, and not having it is not."""
    found = {}
    for name, own in (("one", D), ("less", D - D // 8)):
        document = each({**of_sets(TOY), "notion": "one-way"})
        bounds_ = [Fraction(4), Fraction(6)]
        document["parts"][0] |= {
            "own": [own, own],
            "other": [-(-own * x.denominator // x.numerator) for x in bounds_],
        }
        found[f"toy-one-way-each-{name}"] = document
    return found


BOTH, SECOND = (1, 1), (0, 1)


def hits_mechanisms() -> dict[str, Document]:
    """Polynomials over small and large fields, of a few own items and of many."""
    half = {BOTH: "1/2", SECOND: "1/2"}
    levels = {(1, 1, 1): "1/2", (0, 1, 1): "1/8", (0, 0, 1): "3/8"}
    many = hits(of_sets(ONLY), 7, 1, {(1,): "1"})
    many["parts"] = [{**many["parts"][0], "chance": D // 256, "active": [1]} for _ in range(256)]
    return {
        "four-hits": hits(LEVELS, 11, 2, levels),
        "six-hits-halves": hits(HALVES, 13, 2, {BOTH: "3/4", SECOND: "1/4"}),
        "five-hits": hits(CUT, 11, 2, half),
        "five-hits-three": hits(CUT, 7, 3, {SECOND: "1/3", BOTH: "2/3"}, prior="worst"),
        "five-hits-alike": hits(
            policy([("all", "ln(5)", [0, 1, 2, 3, 4])], list("pqrst"), kind="set"), 7, 3,
            {(1,): "1"},
        ),
        "six-hits": hits(SIX, 7, 4, half),
        "six-strict-hits": hits(STRICT, 13, 2, {BOTH: "1"}),
        "three-hits": hits(THREE, 5, 3, half),
        "three-hits-65537": hits(THREE, 65537, 2, half),
        "three-hits-256-parts": many,
        "eight-hits-64": hits(EIGHT_SETS, 65521, 64, {(1,): "1"}),
        "nine-groups-hits": hits(of_sets(FOUR), 11, 2, half, groups=[0, 1, 0, 1]),
        "nine-never-active": hits(of_sets(FOUR), 13, 2, {SECOND: "1"}, groups=[0, 1, 0, 1]),
        "seventy-hits": hits(SETS, 65521, 5, half),
        "seventy-hits-wide": hits(SETS, 2**31 - 1, 3, half, shares=[HALF, QUARTER, QUARTER]),
        "seventy-strict-hits": hits({**SETS, "strict": True}, 65521, 3, {BOTH: "1"}),
        "seventy-strict-pairs-hits": hits({**SETS, **STRICT_PAIRS}, 65521, 3, {BOTH: "0.7"}),
    }  # fmt: skip


def picks_mechanisms() -> dict[str, Document]:
    """Subsets of a few sizes, of bits and of numbers; cuts that overlap, and one that is small."""
    half = {BOTH: "1/2", SECOND: "1/2"}
    levels = {(1, 1, 1): "1/2", (0, 1, 1): "1/8", (0, 0, 1): "3/8"}
    alike = policy([("all", "ln(5)", [0, 1, 2, 3, 4])], list("pqrst"), kind="set")
    one = policy([("a", "ln(3)", [0]), ("b", "2", [1, 2, 3])], list("wxyz"), kind="set")
    alone = {(1, 0): "1/3", (0, 1): "2/3"}
    return {
        "four-picks": picked(LEVELS, 2, levels, [1, 2, 1]),
        "four-picks-blocks": picked(LEVELS, 2, {(1, 2, 3): "1"}, [1, 2, 0], sharp="0.4"),
        "five-picks-blocks": picked(CUT, 2, {(1, 2): "1"}, [(1, 1), (1, 2)]),
        "five-picks-blocks-three": picked(
            CUT, 3, {(1, 2): "2/3", BOTH: "1/3"}, [1, 2],
            prior="worst",
        ),
        "seventy-picks-blocks": picked(SETS, 3, {(1, 2): "1"}, [(1, 8), (3, 3), (2, 20)]),
        "five-picks": picked(CUT, 2, half, [0, 1, 2]),
        "five-picks-three": picked(CUT, 3, {SECOND: "1/3", BOTH: "2/3"}, [1, 2, 3], prior="worst"),
        "five-picks-alike": picked(alike, 3, {(1,): "1"}, [0, 1, 2, 4]),
        "four-picks-a-lone-item": picked(one, 2, alone, [1, 2]),
        "three-picks": picked(THREE, 3, half, [1, 2, 1]),
        "three-picks-five": picked(THREE, 5, half, [0, 1, 2]),
        "six-strict-picks": picked(STRICT, 2, {BOTH: "1"}, [2, 3, 1]),
        "six-picks-groups": picked(
            HALVES, 2, {(1,): "1"}, [1, 3], groups=[0, 0], shares=[D - HALF, QUARTER, QUARTER]
        ),
        "eight-picks-64": picked(EIGHT_SETS, 64, {(1,): "1"}, [1, 3, 5, 7], sharp="0.1"),
        "seventy-picks": picked(SETS, 4, half, [1, 3, 8, 20]),
        "seventy-strict-picks": picked({**SETS, "strict": True}, 2, {BOTH: "1"}, [2, 5, 9]),
    }  # fmt: skip


NOTES = {
    "toy-subset": {"value": "3.58668", "lower_bound": "3.5682", "note": "a vector"},
    "toy-opt0": {
        "value": "8.5",
        "lower_bound": "",
        "note": "not proven – a vector 👩\u200d⚕\ufe0f",
    },
    "seventy-ticket": {"value": "0", "lower_bound": "0", "note": ""},
    "four-hits": {"value": "21.5", "lower_bound": "", "note": "a vector"},
}


LAST = {"one": ["anemia"], "two": ["headache", "HIV"]}
TOTALS = {
    "lone": [{"name": "any", "items": ["HIV", "anemia"]}],
    "two": [
        {"name": "Ж", "items": ["anemia"]},
        {"name": "all", "items": ["anemia", "HIV", "headache"]},
    ],
}


@cache
def good_mechanisms() -> dict[str, Document]:
    found = fixed_mechanisms() | bits_mechanisms() | ticket_mechanisms()
    found |= each_mechanisms() | hits_mechanisms() | picks_mechanisms() | ordered_mechanisms()
    for name, note in NOTES.items():
        found[name]["certificate"] = note
    found = {name: signed(document) for name, document in found.items()}
    for key, told in (("model", "personal"), ("prior", "given"), ("certificate", ...)):
        found[f"toy-another-{key}"] = changed(found["toy-opt0"], key, told, sign=False)
    for name, told in TOTALS.items():
        found[f"toy-totals-{name}"] = changed(found["toy-opt0"], "policy/totals", told)
    for name, told in LAST.items():
        found[f"toy-last-{name}"] = changed(found["toy-opt0"], "policy/last", told)
    assert {
        name: verdict(document) for name, document in found.items() if verdict(document) != "ok"
    } == {}
    return found
