"""Documents that must be refused, each with one fault, and their neighbours that must not be."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import badpicks
from building import (
    BITS,
    FIXED,
    HALF,
    QUARTER,
    altered,
    body,
    changed,
    extreme,
    last,
    last_speaking,
    policy,
    signed,
    ticket,
)
from good import CLEARED, FIVE, NINE, TWO, scale, silent
from reference import (
    SAFE,
    TOTAL,
    D,
    Document,
    classes,
    holds,
    item_factor,
    level_bound,
    plain,
    whole_sets_hold,
)


def at_the_bound(good: dict[str, Document]) -> dict[str, Document]:
    """Last numerators that pass, and the next ones, which do not."""
    found: dict[str, Document] = {}
    for name, document in good.items():
        if name in ("five-unprotected", "three-256-parts", "three-256-parts-ticket", "toy-silent"):
            continue
        if not any(any(part.get("own", [])) for part in document["parts"]):
            continue
        if document["encoding"]["kind"] not in ("hits", "picks") and plain(document["parts"][-1]):
            continue  # one unit less is no part at all
        o, g = last_speaking(document)
        own = document["parts"][o]["own"][g]
        most, least = (extreme(document, o, "own", g, end) for end in (D, 0))
        path = f"parts/{o}/own/{g}"
        if most != own:
            found[f"{name}-own-largest"] = changed(document, path, most)
        found[f"{name}-own-one-too-large"] = changed(document, path, most + 1)
        found[f"{name}-own-smallest"] = changed(document, path, least)
        found[f"{name}-own-one-too-small"] = changed(document, path, least - 1)
        if document["encoding"]["kind"] in ("bits", "each"):
            least = extreme(document, o, "other", g, 0)
            found[f"{name}-other-smallest"] = changed(document, f"parts/{o}/other/{g}", least)
            found[f"{name}-other-one-too-small"] = changed(
                document, f"parts/{o}/other/{g}", least - 1
            )
    found |= shifted_chances(good) | moved_masses(good)
    return found | badpicks.moved_masses(good)


def shifted_chances(good: dict[str, Document]) -> dict[str, Document]:
    """The chance of a part one unit further, taken from the next part."""
    found = {}
    places = [("two-silent", 0), ("two-silent", 1), ("two-avg", 0), ("two-silent-set", 0),
              ("two-silent-set", 2), ("toy-subset", 0), ("three-set-subset", 0)]  # fmt: skip
    for name, o in places:
        parts = good[name]["parts"]
        next_ = (o + 1) % len(parts)
        keys = [f"chance/{g}" for g in range(len(parts[0]["chance"]))]
        for key in [*keys, *(["none"] if "none" in parts[0] else [])]:

            def moved(
                x: int, name: str = name, key: str = key, o: int = o, n: int = next_
            ) -> Document:
                first, second = (value_at(good[name]["parts"][k], key) for k in (o, n))
                return altered(
                    good[name],
                    {f"parts/{o}/{key}": first + x, f"parts/{n}/{key}": second - x},
                )

            most = last(0, value_at(parts[next_], key), lambda x, moved=moved: holds(moved(x)))
            found[f"{name}-{o}-{key.replace('/', '-')}-most"] = moved(most)
            found[f"{name}-{o}-{key.replace('/', '-')}-one-more"] = moved(most + 1)
    return found


def moved(document: Document, o: int, j: int, mass: int, sign: bool = True) -> Document:
    """Mass of a row moved from the lowest class that is one to the highest."""
    tau, *row = document["parts"][o]["rows"][j - 1]
    there = [k for k, names in enumerate(classes(j, tau)) if names]
    row[there[0]] += mass
    row[there[-1]] -= mass
    return changed(document, f"parts/{o}/rows/{j - 1}", [tau, *row], sign)


def moved_masses(good: dict[str, Document]) -> dict[str, Document]:
    """The last mass of a row of hits, either way, and one unit more."""
    found = {}
    for name in ("four-hits", "five-hits", "five-hits-alike", "six-hits", "six-strict-hits",
                 "three-hits-65537", "seventy-hits", "seventy-hits-wide"):  # fmt: skip
        document = good[name]
        for o, j in ((0, 1), (len(document["parts"]) - 1, document["padding"])):
            tau, *row = document["parts"][o]["rows"][j - 1]
            there = [k for k, names in enumerate(classes(j, tau)) if names]
            for way, end in (("up", row[there[-1]]), ("down", -row[there[0]])):

                def passes(x: int, document: Document = document, o: int = o, j: int = j) -> bool:
                    return holds(moved(document, o, j, x, sign=False))

                most = last(0, end, passes)
                next_ = most + (1 if end > 0 else -1)
                found[f"{name}-{o}-row-{j}-{way}-most"] = moved(document, o, j, most)
                found[f"{name}-{o}-row-{j}-{way}-one-more"] = moved(document, o, j, next_)
    document = good_but_for_an_item(3)
    most = last(-TOTAL // 4, 0, lambda x: holds(moved(document, 0, 2, x, sign=False)))
    found["hits-item-factor-most"] = moved(document, 0, 2, most)
    found["hits-item-factor-one-more"] = moved(document, 0, 2, most + 1)
    return found


def good_but_for_an_item(active: int) -> Document:
    """Sets of three active items are seldom named and those of two often: whole lists are within
    their budgets, but an item that takes the place of an active one changes more than it may.
    """
    names = [f"item {k}" for k in range(2 + active)]
    two = policy([("a", "1", [0, 1]), ("b", "2.2", [*range(2, 2 + active)])], names, kind="set")
    b, f = Fraction(10, 101), [(0, 1), (0, Fraction(5, 2)), (1, Fraction(2, 5))]
    rows = []
    for j, (tau, top) in enumerate(f, 1):
        share = 1 - sum(comb(j, n) * b**n * (1 - b) ** (j - n) for n in range(tau + 1))
        high = round(top * share * TOTAL)
        middle = round((1 - top * share) * j * b * (1 - b) ** (j - 1) / (1 - share) * TOTAL)
        middle = middle if tau else TOTAL - high
        rows.append([tau, high, middle, TOTAL - high - middle])
    part = {"chance": D, "active": [0, 1], "limit": 10, "rows": rows}
    document = body(
        two, "hits", {"kind": "hits", "prime": 101}, padding=3,
        shares=[QUARTER, HALF, QUARTER], parts=[part],
    )  # fmt: skip
    assert whole_sets_hold(document, part)
    return signed(document)


def value_at(part: Document, key: str) -> int:
    name, _, place = key.partition("/")
    return part[name][int(place)] if place else part[name]


def broken_guarantees(good: dict[str, Document]) -> dict[str, Document]:
    """Readable, signed, and not private: the check alone must see it."""
    toy, subset, three = good["toy-opt0"], good["toy-subset"], good["three-set-bits"]
    tickets, sets = good["seventy-ticket"], good["three-set-subset"]
    chance = [part["chance"] for part in subset["parts"]]
    none = [part["none"] for part in sets["parts"]]
    grr, pairs, average = (
        good[x] for x in ("toy-grr", "five-pairs-subset", "five-avg-pairs-subset")
    )
    return {
        **wrong_plain(good),
        "chance-zero": altered(subset, {"parts/0/chance/0": 0, "parts/1/chance/0": D}),
        "chance-negative": altered(subset, {"parts/0/chance/0": -1, "parts/1/chance/0": D + 1}),
        "chances-one-too-many": changed(subset, "parts/0/chance/0", chance[0][0] + 1),
        "chances-one-too-few": changed(subset, "parts/1/chance/1", chance[1][1] - 1),
        "chance-of-one-part-too-small": changed(toy, "parts/0/chance", [D - 1, D - 1]),
        "chance-of-one-part-doubled": changed(toy, "parts/0/chance", [2 * D, 2 * D]),
        "none-zero": altered(
            sets, {"parts/0/none": 0, "parts/1/none": none[0] + none[1]}
        ),
        "nones-do-not-sum": changed(three, "parts/0/none", D - 1),
        "none-negative": changed(three, "parts/0/none", -D),
        "own-is-one": changed(toy, "parts/0/own/1", D),
        "own-is-more-than-one": changed(toy, "parts/0/own/1", D + 1),
        "own-negative": changed(toy, "parts/0/own/1", -1),
        "own-is-the-largest-safe-integer": changed(toy, "parts/0/own/1", SAFE),
        "own-zero-other-not": changed(toy, "parts/0/own/0", 0),
        "other-is-the-base-of-bits": changed(toy, "parts/0/other/1", D),
        "own-and-other-are-one": altered(toy, {"parts/0/own": [D, D], "parts/0/other": [D, D]}),
        "other-negative": changed(toy, "parts/0/other/1", -1),
        "other-is-the-size-of-the-group": changed(subset, "parts/1/other/1", 4),
        "other-is-beyond-the-group": changed(subset, "parts/1/other/1", 5),
        "fixed-own-zero": changed(subset, "parts/1/own/1", 0),
        "one-item-group-speaks": altered(
            subset, {"parts/1/own/0": HALF, "parts/1/other/0": 1}
        ),
        "the-only-item-speaks": altered(
            good["one-item"], {"parts/0/own/0": HALF, "parts/0/other/0": 1}
        ),
        "other-is-the-base-of-tickets": changed(tickets, "parts/1/other/1", 37),
        "ticket-other-over-2^32": changed(tickets, "parts/1/other/1", D // 9),
        "ticket-other-one-less": changed(tickets, "parts/1/other/1", 3),
        "second-part-broken": changed(subset, "parts/1/own/1", D - 1),
        "last-of-256-parts-broken": changed(good["three-256-parts"], "parts/255/own/0", D - 1),
        "budget-smaller": changed(toy, "policy/levels/0/epsilon", "ln(3)"),
        "group-takes-the-smallest-budget": changed(grr, "policy/levels/1/epsilon", "ln(3)"),
        "group-takes-the-smallest-budget-avg": altered(
            grr, {"policy/notion": "avg", "policy/levels/0/epsilon": "ln(2)"}
        ),
        "group-takes-the-smallest-pair": changed(
            grr, "policy/pairs",
            [{"levels": ["serious", "common"], "epsilon": "ln(2)"}],
        ),
        "group-of-one-item-with-itself-alone": changed(
            good["one-item-bits"], "parts/0/own/0", D - D // 16
        ),
        "pair-unprotected-no-more": changed(pairs, "policy/pairs/0/epsilon", "ln(2)"),
        "avg-pair-counts": changed(average, "policy/pairs/0/epsilon", "ln(3/2)"),
        "avg-pairs-do-not-replace-the-rest": changed(
            average, "policy/levels/0/epsilon", "ln(2)"
        ),
        "none-takes-the-smallest-pair": changed(
            good["three-set-subset"], "policy/pairs", [{"levels": ["b", "b"], "epsilon": "0.9"}]
        ),
        "avg-is-not-min": changed(good["nine-avg-opt1"], "policy/notion", "min"),
        "silent-chances-apart": body_signed_apart(),
        "budget-above-45-counts-as-45": far_apart("70"),
        **broken_strictness(good), **broken_items(good), **broken_hits(good),
        **broken_orders(good), **badpicks.broken(good),
    }  # fmt: skip


def broken_strictness(good: dict[str, Document]) -> dict[str, Document]:
    """What holds level by level, and not for the smallest budget of all."""
    names = ["five-cut-bits", "seventy-set-bits-parts", "seventy-set-subset", "seventy-hits",
             "four-hits", "five-hits"]  # fmt: skip
    found = {f"{name}-not-strict": changed(good[name], "policy/strict", True) for name in names}
    open_ = [{"levels": list(x), "epsilon": ""} for x in ("aa", "ab", "bb")]
    third = [{"levels": ["u", "u"], "epsilon": "ln(3/2)"}]
    return found | {
        "strict-protects-all-pairs": altered(
            good["three-set-bits"],
            {"policy/pairs": open_, "policy/strict": True, "parts/0/own/0": D - 1},
        ),
        "strict-counts-pairs": changed(good["five-strict-bits"], "policy/pairs", third),
        "strict-counts-all-levels": changed(
            good["six-strict-hits"], "policy/levels/0/epsilon", "0.4"
        ),
    }


def shifted(document: Document, group: int, first: int, second: int, chance: int) -> Document:
    """Chance of a group moved from one part to another."""
    chances = [document["parts"][o]["chance"][group] for o in (first, second)]
    return altered(
        document,
        {f"parts/{first}/chance/{group}": chances[0] - chance,
         f"parts/{second}/chance/{group}": chances[1] + chance},
    )  # fmt: skip


def broken_orders(good: dict[str, Document]) -> dict[str, Document]:
    """Budgets of ordered pairs: too much in one direction, or a zero that gives an answer away."""
    open_, seven, ticket_ = (
        good[x] for x in ("five-open-subset", "seven-open-subset", "five-open-ticket")
    )
    finite, mixed, two = (good[f"{x}-subset"] for x in
                          ("seven-one-way", "six-mixed", "five-two-ways"))  # fmt: skip
    freed, blocks = good["five-freed-subset"], good["seven-blocks-subset"]
    scale_, cap, each = (good[x] for x in ("five-scale-subset", "five-scale-cap-subset",
                                           "toy-one-way-each-one"))  # fmt: skip
    swapped = [{**row, "levels": row["levels"][::-1]} for row in two["policy"]["pairs"]]
    turned = [{**row, "levels": row["levels"][::-1]} for row in freed["policy"]["pairs"]]
    unused = {"chance": [0, 0], "own": [0, 0], "other": [0, 0]}
    return {
        "open-chance-moved": shifted(open_, 1, 0, 1, D // 50),
        "open-protected-answer-in-the-unit-part": shifted(open_, 0, 0, 1, 1),
        "open-protected-answer-is-plain": altered(
            shifted(ticket_, 0, 0, 1, 1), {"parts/1/own/0": D}
        ),
        "open-no-more": changed(open_, "policy/levels/1/epsilon", "3"),
        "open-no-more-ticket": changed(ticket_, "policy/levels/1/epsilon", "3"),
        "open-zero-where-a-budget-is-finite": shifted(
            open_, 1, 0, 1, open_["parts"][0]["chance"][1]
        ),
        "one-way-zero-where-a-budget-is-finite": shifted(
            finite, 2, 0, 2, finite["parts"][0]["chance"][2]
        ),
        "one-way-own-is-one": changed(seven, "parts/0/own/0", D),
        "one-way-budget-smaller": changed(seven, "policy/levels/1/epsilon", "1.9"),
        "one-way-is-not-min": changed(finite, "policy/notion", "min"),
        "one-way-is-not-avg": changed(finite, "policy/notion", "avg"),
        "one-way-chance-negative": altered(
            open_, {"parts/0/chance/0": D + 1, "parts/1/chance/0": -1}
        ),
        "one-way-chances-do-not-sum": changed(open_, "parts/1/chance/1", D // 2),
        "one-way-group-takes-the-smallest-budget": altered(
            good["seven-one-way-bits"],
            {"groups": [0, 1, 0], "shares": [HALF, HALF],
             "parts/0": {"chance": [D, D], "own": [D // 2, D // 4], "other": [D // 5, D // 5]}},
        ),
        "speaks-without-a-chance": altered(
            seven, {"parts/2/own/0": HALF, "parts/2/other/0": 1}
        ),
        "nobody-uses-a-part": changed(open_, "parts", [*open_["parts"], unused]),
        "nobody-uses-the-first-part": changed(open_, "parts", [unused, *open_["parts"]]),
        "directions-swapped": changed(two, "policy/pairs", swapped),
        "direction-of-no-budget-swapped": changed(freed, "policy/pairs", turned),
        "direction-of-no-budget-removed": changed(freed, "policy/pairs/0/epsilon", "9"),
        "one-way-pair-smaller": changed(two, "policy/pairs/0/epsilon", "ln(3/2)"),
        "one-way-pair-is-not-two-way": changed(
            mixed, "policy/pairs/2", {"levels": ["b", "c"], "epsilon": "1.5"}
        ),
        "one-way-pair-of-a-path": changed(mixed, "policy/pairs/2/epsilon", "1.4"),
        "one-way-pair-counts-within": changed(mixed, "policy/levels/0/epsilon", "0.9"),
        "blocks-own-larger": changed(blocks, "parts/0/own/0", D // 2 + D // 4),
        "blocks-own-is-one": changed(blocks, "parts/0/own/0", D),
        "blocks-budget-smaller": changed(blocks, "policy/levels/1/epsilon", "0.9"),
        "blocks-are-not-min": changed(blocks, "policy/notion", "min"),
        "blocks-joined-keep-the-smallest": changed(
            good["two-blocks-joined"], "policy/levels/1/epsilon", "ln(5/2)"
        ),
        "scale-chance-moved": shifted(scale_, 2, 2, 0, D // 50),
        "scale-zero": shifted(scale_, 4, 0, 4, scale_["parts"][0]["chance"][4]),
        "scale-step-smaller": stepped(scale_, "0.999"),
        "scale-with-a-cap": changed(scale_, "policy/cap", 3),
        "scale-cap-smaller": changed(cap, "policy/cap", 1),
        "scale-points-swapped": altered(
            scale_, {f"parts/{o}/chance": [row["chance"][k] for k in (0, 3, 2, 1, 4)]
                     for o, row in enumerate(scale_["parts"])},
        ),
        "scale-is-not-min": altered(scale_, {"policy/notion": "min", "policy/cap": ...}),
        "scale-joined": changed(good["five-scale-cap-bits"], "parts/0/own/0", D - 1),
        "each-one-way-is-not-min": changed(each, "policy/notion", "min"),
        "each-one-way-other-too-small": changed(each, "parts/0/other/0", D // 4 - 1),
        "each-one-way-other-zero": changed(each, "parts/0/other/0", 0),
        "each-one-way-other-is-one": changed(each, "parts/0/other/0", D),
        "each-one-way-own-beyond-one": changed(each, "parts/0/own/0", D + 1),
        "each-one-way-silent": altered(each, {"parts/0/own/0": 0, "parts/0/other/0": 0}),
        "each-one-way-chance-zero": altered(
            each, {"parts/0/own/0": 0, "parts/0/other/0": 0, "parts/0/chance/0": 0}
        ),
        "each-one-way-not-named-too-often": altered(
            each, {"parts/0/own/0": D // 100, "parts/0/other/0": D - D // 8}
        ),
        "set-own-is-one": changed(good["three-set-bits"], "parts/0/own/0", D),
    }  # fmt: skip


def stepped(document: Document, epsilon: str) -> Document:
    """A scale with another budget per step."""
    points = range(len(document["policy"]["levels"]))
    return altered(document, {f"policy/levels/{k}/epsilon": epsilon for k in points})


def broken_items(good: dict[str, Document]) -> dict[str, Document]:
    """Every item on its own."""
    toy = good["toy-each"]
    own, other = (toy["parts"][0][key] for key in ("own", "other"))
    return {
        "each-own-too-large": changed(toy, "parts/0/own/1", own[1] + D // 100),
        "each-own-is-one": changed(toy, "parts/0/own/1", D),
        "each-own-negative": changed(toy, "parts/0/own/1", -1),
        "each-other-too-small": changed(toy, "parts/0/other/0", other[0] - D // 100),
        "each-other-too-large": altered(
            toy, {"parts/0/own/0": D // 8, "parts/0/other/0": D - D // 8}
        ),
        "each-own-too-rare": altered(toy, {"parts/0/own/0": D // 10, "parts/0/other/0": D // 2}),
        "each-other-is-one": changed(toy, "parts/0/other/0", D),
        "each-silent": altered(toy, {"parts/0/own/0": 0, "parts/0/other/0": 0}),
        "each-silent-all": altered(toy, {"parts/0/own": [0, 0], "parts/0/other": [0, 0]}),
        "each-chance-too-small": changed(toy, "parts/0/chance/0", D - 1),
        "each-none-too-small": changed(toy, "parts/0/none", D - 1),
        "each-group-takes-the-smallest-budget": changed(
            good["nine-groups-each"], "policy/levels/3/epsilon", "ln(6)"
        ),
    }


def broken_hits(good: dict[str, Document]) -> dict[str, Document]:
    """Rows and thresholds that are no chances, or say too much."""
    hits, long = good["five-hits"], good["eight-hits-64"]
    first, second = (part["chance"] for part in hits["parts"])
    row, last_ = (hits["parts"][0]["rows"][k] for k in (0, 1))  # tau 0 of 1, and 1 of 2
    assert (row[0], last_[0], last_[1] > 0 < last_[3]) == (0, 1, True)
    whole = "parts/0/rows"
    found = {
        "hits-chance-zero": altered(hits, {"parts/0/chance": 0, "parts/1/chance": D}),
        "hits-chance-negative": altered(hits, {"parts/0/chance": -1, "parts/1/chance": D + 1}),
        "hits-chances-one-too-many": changed(hits, "parts/0/chance", first + 1),
        "hits-chances-one-too-few": changed(hits, "parts/1/chance", second - 1),
        "hits-row-one-too-many": changed(hits, f"{whole}/0/1", row[1] + 1),
        "hits-row-one-too-few": changed(hits, f"{whole}/1/3", last_[3] - 1),
        "hits-row-over-2^32": changed(hits, f"{whole}/0", [0, HALF, HALF, 0]),
        "hits-mass-moved": moved(hits, 0, 2, TOTAL // 100),
        "hits-mass-moved-in-the-first-row": moved(hits, 1, 1, TOTAL // 100),
        "hits-mass-negative": changed(hits, f"{whole}/1", [1, -1, TOTAL + 1 - last_[3], last_[3]]),
        "hits-mass-is-the-largest-safe-integer": changed(hits, f"{whole}/0/1", SAFE),
        "hits-a-class-never": changed(hits, f"{whole}/1", [1, 0, TOTAL - last_[3], last_[3]]),
        "hits-always-named": changed(hits, f"{whole}/0", [0, TOTAL, 0, 0]),
        "hits-lower-class-is-empty": changed(hits, f"{whole}/0", [0, row[1], row[2] - 1, 1]),
        "hits-upper-class-is-empty": changed(hits, f"{whole}/0", [1, 1, row[1] - 1, row[2]]),
        "hits-rows-swapped": changed(hits, whole, [last_, row]),
        "hits-row-that-no-set-reaches": moved(long, 0, 64, TOTAL // 10),
        "hits-budget-smaller": changed(hits, "policy/levels/0/epsilon", "ln(2)"),
        "hits-budget-of-the-active-smaller": changed(hits, "policy/levels/1/epsilon", "ln(4)"),
        "hits-active-though-sensitive": changed(hits, "parts/1/active", [1, 1]),
        "hits-prime-larger": changed(hits, "encoding/prime", 13),
        "hits-last-of-256-parts": moved(good["three-hits-256-parts"], 255, 1, TOTAL // 4),
        "hits-item-factor": good_but_for_an_item(3),
    }
    limits = {"zero": 0, "negative": -1, "the-prime": 11, "above": 12, "other": 6}
    found |= {f"hits-limit-{k}": changed(hits, "parts/0/limit", x) for k, x in limits.items()}
    taus = {"negative": (0, -1), "beyond": (0, 2), "beyond-two": (1, 3), "less": (1, 0)}
    found |= {f"hits-tau-{k}": changed(hits, f"{whole}/{j}/0", x) for k, (j, x) in taus.items()}
    item = found["hits-item-factor"]
    assert item_factor(item, 0) > level_bound(item["policy"], 0)[0]
    return found


def far_apart(epsilon: str) -> Document:
    """States that are 2^96 apart, as far as integers over 2^32 can be."""
    two = policy([("a", epsilon, [0, 1]), ("b", epsilon, [2, 3])], ["w", "x", "y", "z"])
    parts = [
        {"chance": [1, D - 1], "own": [1, D - 1], "other": [D - 1, 1]},
        {"chance": [D - 1, 1], "own": [HALF, HALF], "other": [HALF, HALF]},
    ]
    return signed(body(two, "subset", BITS, parts=parts))


def body_signed_apart() -> Document:
    """Two levels that no item tells apart, but the part does."""
    parts = [silent([D - 1, 1]), silent([1, D - 1])]
    return signed(body(TWO, "subset", FIXED, parts=parts))


DIVIDED = ["1/3", "4/3", "1/7", "22/7", "1/300", "1" * 29 + "/7", "1/300001",
           "ln(4)/3", "ln(4)/2", "ln(3/2)/7", "ln(2)/1000", "ln(601/100)/12"]  # fmt: skip


def still_good(good: dict[str, Document]) -> dict[str, Document]:
    """Changes that look like faults, and are none."""
    toy, note = good["toy-opt0"], good["toy-subset"]
    decimals = ["0", "1", "0.5", "10", "100000000000000000000000000000", "123456789012",
                "1234567890.12", "0.000000123456789012", "12345678901200000",
                "0." + "0" * 29 + "1", "1200000000000.5"[:11] + "5"]  # fmt: skip
    unbounded = changed(note, "certificate/lower_bound", "")
    mute = altered(toy, {"parts/0/own": [0, 0], "parts/0/other": [0, 0]})
    found = {f"value-{text}": changed(unbounded, "certificate/value", text) for text in decimals}
    return found | {
        "note-of-400": changed(note, "certificate/note", "n" * 400),
        "note-of-400-beyond-16-bits": changed(note, "certificate/note", "🙂" * 400),
        "lower-bound-reached": changed(
            note, "certificate/lower_bound", note["certificate"]["value"]
        ),
        "no-certificate": changed(note, "certificate", ...),
        "question-empty": changed(toy, "policy/question", ""),
        "question-of-any-blanks": changed(toy, "policy/question", "Quoi\u202f? \u3000何\u00a0?"),
        "question-with-joiners": changed(toy, "policy/question", f"{NINE[4]} {NINE[7]}"),
        "items-alike-but-for-accents": changed(toy, "policy/items/1", "H\u0406V\u0301"),
        "item-like-keys": changed(toy, "policy/items/1", 'a": 1, "a": 2, \\"b\\": [3], "a":'),
        "items-in-two-scripts": changed(toy, "policy/items/1", "вич"),
        "item-with-a-selector": changed(toy, "policy/items/1", "⚕\ufe0f"),
        "share-zero": changed(note, "shares", [0, D]),
        "prior-given": changed(toy, "prior", "given"),
        "own-equals-other": altered(
            toy, {"parts/0/own": [D // 3, D // 3], "parts/0/other": [D // 3, D // 3]}
        ),
        "every-group-silent": altered(toy, {"parts/0/own": [0, 0], "parts/0/other": [0, 0]}),
        "padding-65536": changed(good["three-set-bits"], "padding", 65536),
        "padding-1": changed(good["three-set-bits"], "padding", 1),
        "pair-between-levels": changed(
            toy, "policy/pairs", [{"levels": ["common", "serious"], "epsilon": "ln(4)"}]
        ),
        "none-without-a-bound": altered(
            good["three-set-bits"],
            {"policy/pairs": [{"levels": list(x), "epsilon": ""} for x in ("aa", "ab", "bb")],
             "parts/0/own/0": D - 1},
        ),
        "budget-of-many-digits": changed(
            toy, "policy/levels/1/epsilon", "1.79175946922805500081247735838070227272299"
        ),
        "budget-above-45-as-a-logarithm": far_apart(f"ln({2**97})"),
        **{
            f"budget-{k}": changed(mute, "policy/levels/1/epsilon", text)
            for k, text in enumerate(DIVIDED)
        },
        "budget-huge": changed(toy, "policy/levels/1/epsilon", "9" * 30),
        "budget-of-rational-logarithm": changed(toy, "policy/levels/1/epsilon", "ln(601/100)"),
        **still_good_of_sets(good), **still_good_orders(good),
    }  # fmt: skip


def still_good_orders(good: dict[str, Document]) -> dict[str, Document]:
    """Zeros, certainty and directions that no budget forbids."""
    toy, open_, ticket_ = (good[x] for x in ("toy-opt0", "five-open-subset", "five-open-ticket"))
    serious = {"levels": ["serious", "serious"], "epsilon": "ln(2)"}
    each, two, blocks = (good[x] for x in ("toy-one-way-each-one", "five-two-ways-subset",
                                           "seven-blocks-subset"))  # fmt: skip
    mangat = {"chance": [D, D], "own": [D, 0], "other": [D // 2, 0]}
    points = [f"point {k}" for k in range(50)]
    many = [f"i{k}" for k in range(200)]
    return {
        "group-of-one-item-with-itself": changed(toy, "policy/pairs", [serious]),
        "open-own-is-less": changed(open_, "parts/1/own/1", HALF),
        "open-own-equals-other": changed(open_, "parts/1/own/1", QUARTER),
        "open-chance-moved-to-the-safe-part": shifted(open_, 1, 1, 0, D // 50),
        "open-chance-zero": shifted(open_, 1, 1, 0, open_["parts"][1]["chance"][1] - 1),
        "open-lone-item-always-named": signed(body(CLEARED, "opt0", BITS, parts=[mangat])),
        "open-plain-is-rare": shifted(
            ticket_, 1, 1, 0, ticket_["parts"][1]["chance"][1] - 1
        ),
        "open-all-but-for-pairs": changed(
            good["six-mixed-subset"], "policy/levels/0/epsilon", "open"
        ),
        "open-with-a-pair": altered(
            open_,
            {"policy/pairs": [{"levels": ["open", "serious"], "epsilon": "ln(3)", "one_way": True}],
             "parts": [silent([D, D])]},
        ),
        "one-way-pair-twice": changed(
            two, "policy/pairs", [*two["policy"]["pairs"], two["policy"]["pairs"][0]]
        ),
        "one-way-pair-and-both-alike": changed(
            two, "policy/pairs",
            [{"levels": ["v", "u"], "epsilon": "ln(6)"}, {**two["policy"]["pairs"][1]}],
        ),
        "one-way-budget-larger": changed(
            good["seven-one-way-subset"], "policy/levels/0/epsilon", "9"
        ),
        "blocks-chance-moved-between-blocks": shifted(blocks, 0, 0, 1, D // 50),
        "blocks-of-200": signed(body(
            policy([(x, "1", [k]) for k, x in enumerate(many)], many, notion="blocks"),
            "subset", FIXED, groups=[0] * 200, parts=[silent([D])],
        )),
        "scale-of-50": signed(body(
            scale("0.1", 49, points), "subset", FIXED, groups=[0] * 50, parts=[silent([D])]
        )),
        "scale-step-larger": stepped(good["five-scale-subset"], "1.5"),
        "scale-capped-as-far": changed(good["five-scale-subset"], "policy/cap", 4),
        "each-one-way-own-is-rarer": altered(
            each, {"parts/0/own/0": D // 8, "parts/0/other/0": HALF}
        ),
        "each-one-way-budget-larger": changed(each, "policy/levels/0/epsilon", "9"),
    }  # fmt: skip


def still_good_of_sets(good: dict[str, Document]) -> dict[str, Document]:
    toy, hits = good["toy-each"], good["five-hits"]
    own, other = (toy["parts"][0][key] for key in ("own", "other"))
    half = {"own": [HALF, HALF], "other": [HALF, HALF]}
    turned = [[tau, high, mid, low] for tau, (high, mid, low) in
              ((j // 2, turned_row(11, j)) for j in (1, 2))]  # fmt: skip
    return {
        "each-own-equals-other": altered(toy, {f"parts/0/{k}": x for k, x in half.items()}),
        "each-own-is-rarer": altered(toy, {"parts/0/own": other, "parts/0/other": own}),
        "each-notion-avg": changed(toy, "policy/notion", "avg"),
        "strict-with-one-level": changed(good["five-hits-alike"], "policy/strict", True),
        "strict-avg": altered(
            good["six-strict-bits"], {"policy/notion": "avg", "policy/levels/1/epsilon": "3"}
        ),
        "strict-no-more": changed(good["six-strict-hits"], "policy/strict", False),
        "hits-budgets-larger": altered(
            hits, {"policy/levels/0/epsilon": "2", "policy/levels/1/epsilon": "100"}
        ),
        "hits-two-parts-alike": changed(
            hits, "parts", [{**hits["parts"][0], "chance": HALF} for _ in range(2)]
        ),
        "hits-named-less-often": changed(hits, "parts/0/rows", turned),
        **badpicks.still_good(good),
        "hits-share-zero": changed(hits, "shares", [0, D, 0]),
        "hits-item-factor-of-fewer-items": good_but_for_an_item(2),
    }


def turned_row(prime: int, j: int) -> list[int]:
    """With T = 1: own items are named a little less often than others."""
    b = Fraction(1, prime)
    law = [(1 - b) ** 2, 2 * b * (1 - b), b * b] if j == 2 else [1 - b, b]
    upper = law[j // 2 + 1 :]
    high = round(sum(upper) * Fraction(4, 5) * TOTAL)
    low = round(sum(law[: j // 2]) * TOTAL)
    return [high, TOTAL - high - low, low]


def wrong_fingerprints(good: dict[str, Document]) -> dict[str, Document]:
    toy = good["toy-opt0"]
    swapped = [*FIVE[:3], FIVE[4], FIVE[3]]
    return {
        "label-changed": changed(toy, "policy/items/0", "flu", sign=False),
        "label-composed": changed(
            good["nine-avg-opt1"], "policy/items/3", "naïve café", sign=False
        ),
        "labels-swapped": changed(toy, "policy/items", swapped, sign=False),
        "question-changed": changed(toy, "policy/question", "?", sign=False),
        "budget-changed": changed(toy, "policy/levels/0/epsilon", "ln(5)", sign=False),
        "own-changed": changed(toy, "parts/0/own/0", toy["parts"][0]["own"][0] - 1, sign=False),
        "shares-changed": changed(toy, "shares", [HALF, HALF], sign=False),
        "mass-moved": moved(good["five-hits"], 0, 1, -1, sign=False),
        "limit-changed": changed(good["seventy-hits"], "parts/0/limit", 9, sign=False),
        "strict-changed": changed(good["six-strict-hits"], "policy/strict", False, sign=False),
        "cap-changed": changed(good["five-scale-subset"], "policy/cap", 4, sign=False),
        "one-way-removed": changed(
            good["five-two-ways-subset"], "policy/pairs/0/one_way", ..., sign=False
        ),
        "kind-changed": changed(good["four-each"], "policy/kind", "set", sign=False),
        "fingerprint-missing": changed(toy, "fingerprint", ..., sign=False),
        "fingerprint-null": changed(toy, "fingerprint", None, sign=False),
        "fingerprint-upper-case": changed(
            toy, "fingerprint", toy["fingerprint"].upper(), sign=False
        ),
        "fingerprint-cut": changed(toy, "fingerprint", toy["fingerprint"][:32], sign=False),
        "fingerprint-of-another": changed(
            toy, "fingerprint", good["toy-grr"]["fingerprint"], sign=False
        ),
    }


def unreadable(good: dict[str, Document]) -> dict[str, Document]:
    """No mechanism of format 2, whatever its numbers promise."""
    return {
        **wrong_keys(good), **wrong_policies(good), **wrong_parts(good), **wrong_encodings(good),
        **wrong_numbers(good), **wrong_certificates(good), **wrong_protection(good),
        **wrong_hits(good), **wrong_rows(good), **wrong_orders(good), **badpicks.wrong(good),
    }  # fmt: skip


def wrong_keys(good: dict[str, Document]) -> dict[str, Document]:
    toy, sets = good["toy-opt0"], good["three-set-bits"]
    top = [key for key in toy if key not in ("fingerprint", "certificate")]
    found = {f"missing-{key}": changed(toy, key, ...) for key in top}
    found |= {f"missing-policy-{key}": changed(toy, f"policy/{key}", ...) for key in toy["policy"]}
    found |= {
        f"missing-part-{key}": changed(sets, f"parts/0/{key}", ...) for key in sets["parts"][0]
    }
    extra = {
        "": "extra", "policy/": "padding", "policy/levels/0/": "weight", "encoding/": "q",
        "parts/0/": "share", "certificate/": "objective",
    }  # fmt: skip
    found |= {f"extra-{path}{key}": changed(toy, path + key, "1") for path, key in extra.items()}
    return found | {
        "extra-__proto__": changed(toy, "__proto__", {}),
        "extra-__proto__-in-a-part": changed(toy, "parts/0/__proto__", [1]),
        "extra-matrix-null": changed(toy, "matrix", None),
        "none-in-single-input": changed(toy, "parts/0/none", D),
        "weight-in-a-pair": changed(good["five-pairs-bits"], "policy/pairs/0/weight", "1"),
        "format-1": changed(toy, "format", "discreet-mechanism/1"),
        "format-2": changed(toy, "format", "discreet-mechanism/2"),
        "format-4": changed(toy, "format", "discreet-mechanism/4"),
        "format-of-a-tally": changed(toy, "format", "discreet-tally/2"),
        "format-is-a-number": changed(toy, "format", 2),
        "model-capital": changed(toy, "model", "Best"),
        "model-empty": changed(toy, "model", ""),
        "model-long": changed(toy, "model", "a" * 21),
        "model-digit-first": changed(toy, "model", "0opt"),
        "model-line-feed": changed(toy, "model", "opt0\n"),
        "model-number": changed(toy, "model", 0),
        "prior-unknown": changed(toy, "prior", "zipf"),
        "set-without-padding": changed(sets, "padding", 0),
        "single-with-padding": changed(toy, "padding", 2),
        "padding-is-text": changed(sets, "padding", "2"),
        "padding-negative": changed(sets, "padding", -2),
        "padding-too-large": changed(sets, "padding", 65537),
        "padding-null": changed(toy, "padding", None),
    }


WRONG_TOTALS = {
    "empty": [],
    "object": {"any": ["HIV"]},
    "no-items": [{"name": "any", "items": []}],
    "text": [{"name": "any", "items": "HIV"}],
    "unknown-item": [{"name": "any", "items": ["HIV", "anemias"]}],
    "item-twice": [{"name": "any", "items": ["HIV", "HIV"]}],
    "item-is-a-number": [{"name": "any", "items": [0]}],
    "name-of-an-item": [{"name": "anemia", "items": ["HIV"]}],
    "looks-like-an-item": [{"name": "ANEMIA", "items": ["HIV"]}],
    "name-twice": [{"name": "any", "items": ["HIV"]}, {"name": "any", "items": ["anemia"]}],
    "name-blank": [{"name": " ", "items": ["HIV"]}],
    "name-is-a-number": [{"name": 1, "items": ["HIV"]}],
    "another-key": [{"name": "any", "items": ["HIV"], "weight": 1}],
    "key-missing": [{"name": "any"}],
}
WRONG_LAST = {
    "empty": [], "null": None, "text": "HIV", "object": {"HIV": 1}, "unknown": ["anemias"],
    "twice": ["HIV", "HIV"], "number": [0], "another-case": ["hiv"],
}  # fmt: skip


def wrong_policies(good: dict[str, Document]) -> dict[str, Document]:
    toy, pairs = good["toy-opt0"], good["five-pairs-bits"]
    texts = {
        "empty": "", "blank": " ", "a-number": 7, "null": None, "line-break": "a\nb",
        "delete": "a\x7f", "c1": "a\x85", "no-break-space": "a\u00a0b", "joiners": "\u200d\u200c",
        "right-to-left": "a\u202eb", "soft-hyphen": "a\u00adb", "line-separator": "a\u2028b",
        "byte-order-mark": "\ufeffa", "private": "\ue000", "noncharacter": "a\uffff",
        "selectors": "\ufe0f\U000e0100", "filler": "a\u3164", "braille-blank": "a\u2800b",
        "grapheme-joiner": "a\u034fb", "escape": "a\x1b[31mb", "tag": "a\U000e0041",
        "not-assigned-ignorable": "a\u2065", "another-case": "Hiv", "wide": "ＨＩＶ",
        "another-blank": " HIV  ", "selector-more": "HIV\ufe0f", "cyrillic": "Н\u0406V",
        "greek": "\u0397\u0399V",
    }  # fmt: skip
    found = {f"item-{name}": changed(toy, "policy/items/1", text) for name, text in texts.items()}
    lines = {
        "line-break": "a\nb", "escape": "a\x1b[2Jb", "carriage-return": "a\rb", "c1": "a\x9b1mb",
        "tab": "a\tb", "right-to-left": "a\u202eb", "isolate": "a\u2066b", "nul": "\0",
        "line-separator": "a\u2028b", "zero-width": "a\u200bb", "private": "\ue000",
        "tag": "a\U000e0041", "filler": "a\u3164", "noncharacter": "a\ufdd0", "null": None,
    }  # fmt: skip
    found |= {
        f"question-{name}": changed(toy, "policy/question", text) for name, text in lines.items()
    }
    found |= {
        f"{name}-{key}": changed(toy, path, texts[key])
        for name, path in (("level-name", "policy/levels/1/name"),)
        for key in ("line-break", "right-to-left", "filler", "selectors", "escape")
    }
    budgets = [
        "0", "-1", "inf", "nan", "1e0", "1.0", "01", ".5", "1.", "+1", " 1", "1 ", "1\n", "٣",
        "1_0", "ln(1)", "ln(1/2)", "ln(6/1)", "ln(12/2)", "ln(06)", "ln( 6 )", "ln(2.5)", "ln(6",
        "ln(٣)", "small", "", 1, None, True, "9" * 101, "2/6", "1/4", "3/1", "6/3", "0/3", "1/0",
        "01/3", "1/03", "1 / 3", "-1/3", "1.5/3", "1/3/5", "1/" + "3" * 31, "1" * 32 + "/3",
        "ln(4)/1", "ln(4)/0", "ln(4)/03", "ln(4)/1001", "ln(4)/1.5", "ln(1)/3", "ln(4/2)/3",
        "ln(4) / 3", "ln(4)/3/3", "ln(4)/-3", "(1/3)",
    ]  # fmt: skip
    mute = altered(toy, {"parts/0/own": [0, 0], "parts/0/other": [0, 0]})  # fine at any budget
    found |= {
        f"epsilon-{k}-{str(text)[:9].strip()}": changed(mute, "policy/levels/1/epsilon", text)
        for k, text in enumerate(budgets)
    }
    twice = [{"levels": list(x), "epsilon": y} for x, y in (("uv", "ln(3)"), ("vu", "ln(2)"))]
    return found | {
        "policy-is-a-list": changed(toy, "policy", []),
        "notion-unknown": changed(toy, "policy/notion", "max"),
        "kind-unknown": changed(toy, "policy/kind", "many"),
        "name-in-a-policy": changed(toy, "policy/name", "vectors"),
        "about-in-a-policy": changed(toy, "policy/about", {"organiser": "us"}),
        "question-is-a-number": changed(toy, "policy/question", 1),
        "item-twice": changed(toy, "policy/items/1", "HIV"),
        **{
            f"totals-{name}": changed(toy, "policy/totals", told)
            for name, told in WRONG_TOTALS.items()
        },
        **{f"last-{name}": changed(toy, "policy/last", told) for name, told in WRONG_LAST.items()},
        "last-of-a-scale": changed(good["five-scale-subset"], "policy/last", ["5"]),
        "no-items": altered(toy, {"policy/items": [], "policy/level_of": []}),
        "items-is-text": changed(toy, "policy/items", "abcde"),
        "level-of-too-short": changed(toy, "policy/level_of", [0, 1, 1, 1]),
        "level-of-out-of-range": changed(toy, "policy/level_of/4", 2),
        "level-of-negative": changed(toy, "policy/level_of/4", -1),
        "level-without-items": changed(toy, "policy/level_of", [1, 1, 1, 1, 1]),
        "level-looks-like-another": changed(toy, "policy/levels/1/name", "Seri\u043eus "),
        "level-named-twice": changed(toy, "policy/levels/1/name", "serious"),
        "level-name-blank": changed(toy, "policy/levels/1/name", " "),
        "level-is-text": changed(toy, "policy/levels/1", "common"),
        "pair-of-an-unknown-level": changed(pairs, "policy/pairs/0/levels", ["v", "w"]),
        "pair-of-one": changed(pairs, "policy/pairs/0/levels", ["v"]),
        "pair-of-three": changed(pairs, "policy/pairs/0/levels", ["v", "v", "v"]),
        "pair-of-places": changed(pairs, "policy/pairs/0/levels", [1, 1]),
        "pair-twice-with-two-budgets": changed(pairs, "policy/pairs", twice),
        "pair-epsilon-null": changed(pairs, "policy/pairs/0/epsilon", None),
        "pair-epsilon-zero": changed(pairs, "policy/pairs/0/epsilon", "0"),
    }


def wrong_parts(good: dict[str, Document]) -> dict[str, Document]:
    toy, sets, grr = good["toy-opt0"], good["three-set-bits"], good["toy-grr"]
    four, many = good["nine-groups-subset"], good["three-256-parts"]
    halved = [{**many["parts"][-1], "chance": [D // 512]}] * 2
    return {
        "no-parts": changed(toy, "parts", []),
        "parts-is-an-object": changed(toy, "parts", {"0": toy["parts"][0]}),
        "part-is-a-list": changed(toy, "parts/0", [[D, D], [1, 1], [1, 1]]),
        "257-parts": changed(many, "parts", [*many["parts"][:-1], *halved]),
        "chance-has-one-too-few": changed(toy, "parts/0/chance", [D]),
        "own-has-one-too-few": changed(toy, "parts/0/own", toy["parts"][0]["own"][:1]),
        "other-has-one-too-many": changed(toy, "parts/0/other", [*toy["parts"][0]["other"], 1]),
        "chance-per-level-and-not-per-group": changed(grr, "parts/0/chance", [D, D]),
        "chance-is-a-number": changed(grr, "parts/0/chance", D),
        "none-is-a-list": changed(sets, "parts/0/none", [D]),
        "none-is-null": changed(sets, "parts/0/none", None),
        "groups-too-few": changed(toy, "groups", [0]),
        "groups-too-many": changed(toy, "groups", [0, 1, 1]),
        "groups-per-item": changed(toy, "groups", [0, 1, 1, 1, 1]),
        "groups-in-another-order": changed(toy, "groups", [1, 0]),
        "groups-by-another-first-appearance": changed(four, "groups", [1, 0, 1, 0]),
        "groups-with-a-gap": changed(toy, "groups", [0, 2]),
        "groups-from-one": changed(toy, "groups", [1, 2]),
        "group-negative": changed(toy, "groups", [0, -1]),
        "group-without-levels": changed(toy, "groups", [0, 0]),
        "group-is-text": changed(toy, "groups", ["0", "1"]),
        "shares-one-too-many": changed(toy, "shares", [HALF, HALF + 1]),
        "shares-one-too-few": changed(toy, "shares", [HALF, HALF - 1]),
        "share-negative": changed(toy, "shares", [-1, D + 1]),
        "shares-of-too-few-groups": changed(toy, "shares", [D]),
        "shares-of-too-many-groups": changed(toy, "shares", [HALF, HALF, 0]),
        "shares-without-none": changed(sets, "shares", [HALF, HALF]),
    }


def wrong_encodings(good: dict[str, Document]) -> dict[str, Document]:
    toy, tickets, seventy = good["toy-opt0"], good["toy-ticket"], good["seventy-ticket"]
    wide, full = good["eight-ticket-1621"], good["nine-avg-ticket-full"]
    half = {**wide["parts"][0], "chance": [HALF]}
    fields = [
        (4, 2), (1, 2), (0, 2), (-5, 2), (9, 2), (25, 2), (341, 2), (561, 2), (1105, 2),
        (1619 * 2, 2), (5, 1), (5, 0), (5, -2), (3, 3), (5, 5), (5, 32), (2, 2),
    ]  # fmt: skip
    found = {f"ticket-q-{q}-t-{t}": changed(tickets, "encoding", ticket(q, t)) for q, t in fields}
    return found | {
        "encoding-is-text": changed(toy, "encoding", "bits"),
        "encoding-is-a-list": changed(toy, "encoding", ["bits"]),
        "encoding-unknown": changed(toy, "encoding", {"kind": "item"}),
        "encoding-without-kind": changed(toy, "encoding", {}),
        "encoding-kind-is-a-list": changed(toy, "encoding", {"kind": ["bits"]}),
        "fixed-with-q": changed(good["toy-grr"], "encoding", {"kind": "fixed", "q": 5, "t": 2}),
        "ticket-without-q": changed(tickets, "encoding", {"kind": "ticket", "t": 2}),
        "ticket-without-t": changed(tickets, "encoding", {"kind": "ticket", "q": 5}),
        "ticket-q-is-text": changed(tickets, "encoding", ticket("5", 2)),  # type: ignore[arg-type]
        "ticket-q-is-true": changed(tickets, "encoding", ticket(True, 2)),
        "ticket-too-few-codes": changed(seventy, "encoding", ticket(7, 2)),
        "ticket-one-code-too-few": altered(
            full,
            {"policy/items": [*NINE, "one more"],
             "policy/level_of": [*full["policy"]["level_of"], 0]},
        ),
        "ticket-beyond-32-bits": changed(wide, "encoding", ticket(1627, 2)),
        "ticket-beyond-32-bits-by-t": changed(wide, "encoding", ticket(11, 9)),
        "ticket-parts-beyond-32-bits": changed(wide, "parts", [half, half]),
        "ticket-256-parts-beyond-32-bits": changed(
            good["three-256-parts-ticket"], "encoding", ticket(257, 2)
        ),
        "ticket-q-beyond-53-bits": changed(tickets, "encoding", ticket(2**61 - 1, 2)),
    }  # fmt: skip


def wrong_protection(good: dict[str, Document]) -> dict[str, Document]:
    """What is protected, and how: of sets alone, and with encodings that keep it."""
    toy, sets, each, hits = (
        good[x] for x in ("toy-opt0", "three-set-bits", "toy-each", "five-hits")
    )
    strange = {"null": None, "unknown": "list", "number": 1, "list": ["set"], "empty": ""}
    found = {f"kind-{k}": changed(sets, "policy/kind", x) for k, x in strange.items()}
    strange = {"null": None, "text": "false", "number": 0, "one": 1, "list": []}
    found |= {f"strict-{k}": changed(sets, "policy/strict", x) for k, x in strange.items()}
    pair = [{"levels": ["serious", "common"], "epsilon": "ln(4)"}]
    half = {**each["parts"][0], "chance": [HALF, HALF], "none": HALF}
    whole = {"policy/kind": "each", "policy/strict": ..., "padding": 0}
    return found | {
        "set-without-kind": changed(sets, "policy/kind", ...),
        "set-without-strict": changed(sets, "policy/strict", ...),
        "single-with-strict": changed(toy, "policy/strict", False),
        "single-without-kind": changed(toy, "policy/kind", ...),
        "single-with-input": changed(toy, "policy/input", "single"),
        "single-with-each": changed(toy, "encoding", {"kind": "each"}),
        "item-and-strict": changed(each, "policy/strict", True),
        "item-and-not-strict": changed(each, "policy/strict", False),
        "item-with-pairs": changed(each, "policy/pairs", pair),
        "item-with-padding": changed(each, "padding", 1),
        "item-with-bits": changed(each, "encoding", BITS),
        "item-with-fixed": changed(each, "encoding", FIXED),
        "item-with-ticket": changed(each, "encoding", ticket(5, 2)),
        "item-with-bits-of-sets": altered(sets, whole),
        "item-with-hits": altered(hits, whole),
        "item-with-hits-and-padding": altered(
            hits, {"policy/kind": "each", "policy/strict": ...}
        ),
        "each-protects-sets": altered(each, {"policy/kind": "set", "policy/strict": False}),
        "each-protects-sets-with-padding": altered(
            each, {"policy/kind": "set", "policy/strict": False, "padding": 2}
        ),
        "each-with-two-parts": changed(each, "parts", [half, half]),
        "each-without-parts": changed(each, "parts", []),
        "each-without-none": changed(each, "parts/0/none", ...),
        "each-with-q": changed(each, "encoding/q", 5),
        "each-padding-null": changed(each, "padding", None),
    }  # fmt: skip


def wrong_orders(good: dict[str, Document]) -> dict[str, Document]:
    """Open levels, directions, blocks and scales that no policy has."""
    open_, two, scale_ = (good[f"five-{x}-subset"] for x in ("open", "two-ways", "scale"))
    sets, each, toy = good["three-set-bits"], good["toy-each"], good["toy-opt0"]
    mute = {"policy/pairs": [], "parts": [silent([D, D])]}
    found = {
        f"open-under-{notion}": altered(open_, {"policy/notion": notion, "parts": [silent([D, D])]})
        for notion in ("min", "avg", "blocks")
    }
    spelled = ["Open", "OPEN", " open", "open ", "inf", "infinity", "", None, True, "ln(open)"]
    found |= {
        f"open-spelled-{k}": changed(open_, "policy/levels/1/epsilon", x)
        for k, x in enumerate(spelled)
    }
    directions = {"false": False, "null": None, "one": 1, "text": "true", "list": [True]}
    found |= {
        f"one-way-{k}": changed(good["five-freed-subset"], "policy/pairs/0/one_way", x)
        for k, x in directions.items()
    }
    caps = {"too-large": 5, "negative": -1, "null": None, "text": "2", "fraction": 1.5,
            "true": True, "false": False, "empty": "", "list": [], "missing": ...}  # fmt: skip
    found |= {f"cap-{k}": changed(scale_, "policy/cap", x) for k, x in caps.items()}
    points = [f"point {k}" for k in range(51)]
    many = [f"i{k}" for k in range(201)]
    whole = {"policy/kind": "set", "policy/strict": False, "padding": 2, "shares": [D, 0, 0]}
    lists = {f"policy/levels/{k}/name": x for k, x in enumerate("xyz")}
    return found | {
        "open-everything": altered(open_, {"policy/levels/0/epsilon": "open", **mute}),
        "open-pair": altered(
            open_, {**mute, "policy/pairs": [{"levels": ["serious", "open"], "epsilon": "open"}]}
        ),
        "open-scale": stepped(scale_, "open"),
        "open-set": altered(sets, {"policy/notion": "one-way", "policy/levels/1/epsilon": "open"}),
        "open-min-set": changed(sets, "policy/levels/1/epsilon", "open"),
        "open-each": altered(each, {"policy/notion": "one-way", "policy/levels/1/epsilon": "open"}),
        "one-way-set": changed(sets, "policy/notion", "one-way"),
        "one-way-strict-set": altered(
            sets, {"policy/notion": "one-way", "policy/strict": True}
        ),
        "one-way-pair-set": changed(
            sets, "policy/pairs", [{"levels": ["a", "b"], "epsilon": "9", "one_way": True}]
        ),
        "one-way-hits": changed(good["five-hits"], "policy/notion", "one-way"),
        "blocks-set": changed(sets, "policy/notion", "blocks"),
        "blocks-hits": changed(good["five-hits"], "policy/notion", "blocks"),
        "blocks-each": changed(each, "policy/notion", "blocks"),
        "blocks-with-a-cap": changed(good["seven-blocks-subset"], "policy/cap", 0),
        "min-with-a-cap": changed(toy, "policy/cap", 0),
        "single-becomes-a-set": altered(open_, whole),
        "scale-each": altered(each, {"policy/notion": "scale", "policy/cap": 0}),
        "scale-set": altered(
            sets, {"policy/notion": "scale", "policy/cap": 0, "policy/level_of": [0, 1, 2],
                   "policy/levels": [{"name": x, "epsilon": "1"} for x in "xyz"],
                   "groups": [0, 1, 1], **lists},
        ),
        "scale-out-of-order": changed(scale_, "policy/level_of", [0, 2, 1, 3, 4]),
        "scale-items-out-of-order": changed(
            scale_, "policy/items", [scale_["policy"]["items"][k] for k in (0, 2, 1, 3, 4)]
        ),
        "scale-of-two-budgets": changed(scale_, "policy/levels/4/epsilon", "2"),
        "scale-with-another-name": changed(scale_, "policy/levels/4/name", "at all times"),
        "scale-with-pairs": changed(
            scale_, "policy/pairs", [{"levels": ["never", "always"], "epsilon": "2"}]
        ),
        "scale-with-two-items-at-a-point": altered(
            scale_, {"policy/items": [*scale_["policy"]["items"], "ever"],
                     "policy/level_of": [0, 1, 2, 3, 4, 4]},
        ),
        "scale-of-one": signed(body(
            policy([("it", "1", [0])], ["it"], notion="scale", cap=0), "subset", FIXED,
            parts=[silent([D])],
        )),
        "scale-of-51": signed(body(
            scale("0.1", 0, points), "subset", FIXED, groups=[0] * 51, parts=[silent([D])]
        )),
        "blocks-of-201": signed(body(
            policy([(x, "1", [k]) for k, x in enumerate(many)], many, notion="blocks"),
            "subset", FIXED, groups=[0] * 201, parts=[silent([D])],
        )),
        "one-way-pair-of-one-level": changed(
            two, "policy/pairs", [{"levels": ["v", "v"], "epsilon": "ln(6)", "one_way": True}]
        ),
        "one-way-pair-with-two-budgets": changed(
            two, "policy/pairs",
            [{"levels": ["u", "v"], "epsilon": "ln(6)", "one_way": True},
             {"levels": ["u", "v"], "epsilon": "ln(7)", "one_way": True}],
        ),
        "one-way-pair-against-both": changed(
            two, "policy/pairs",
            [{"levels": ["v", "u"], "epsilon": "ln(7)"},
             {"levels": ["u", "v"], "epsilon": "ln(6)", "one_way": True}],
        ),
        "notion-one_way": changed(open_, "policy/notion", "one_way"),
        "notion-block": changed(good["seven-blocks-subset"], "policy/notion", "block"),
    }  # fmt: skip


def wrong_plain(good: dict[str, Document]) -> dict[str, Document]:
    """Answers are sent as they are in the last part of tickets, which holds nothing else."""
    plain, seven, subset = (
        good[x] for x in ("five-open-ticket", "seven-open-ticket", "five-open-subset")
    )
    part = {"chance": [D], "own": [D], "other": [0]}
    return {
        "other-zero-own-not": changed(good["toy-opt0"], "parts/0/other/0", 0),
        "fixed-other-zero": changed(good["toy-subset"], "parts/1/other/1", 0),
        "plain-not-last": changed(plain, "parts", plain["parts"][::-1]),
        "plain-twice": changed(
            plain, "parts",
            [plain["parts"][0],
             *({**plain["parts"][1], "chance": [0, x]} for x in
               (1, plain["parts"][1]["chance"][1] - 1))],
        ),
        "plain-subset": changed(subset, "parts/1/other/1", 0),
        "plain-bits": altered(
            good["one-item-bits"], {"policy/pairs": [{"levels": ["only", "only"], "epsilon": ""}],
                                    "parts": [part]},
        ),
        "plain-almost": changed(plain, "parts/1/own/1", D - 1),
        "plain-beyond": changed(plain, "parts/1/own/1", D + 1),
        "plain-without-a-chance": altered(
            plain, {"parts/1/own/0": D, "parts/1/other/0": 0}
        ),
        "plain-and-silent": shifted(plain, 0, 0, 1, 1),
        "plain-and-speaking": altered(
            shifted(seven, 1, 0, 2, 1), {"parts/2/own/1": HALF, "parts/2/other/1": 1}
        ),
        "plain-and-always-named": altered(
            shifted(seven, 1, 1, 2, D // 100),
            {"policy/levels/1/epsilon": "open", "parts/2/own/1": D, "parts/2/other/1": 1},
        ),
    }  # fmt: skip


def wrong_hits(good: dict[str, Document]) -> dict[str, Document]:
    """Hits that do not belong to their policy, over no field, or with wrong keys."""
    hits, single = good["five-hits"], good["toy-opt0"]
    rows = [part["rows"] for part in good["eight-hits-64"]["parts"]]
    pair = [{"levels": ["a", "b"], "epsilon": "ln(3)"}]
    primes = {
        "one": 1, "zero": 0, "negative": -11, "two": 2, "three": 3, "as-many-as-items": 5,
        "nine": 9, "even": 12, "square": 121, "carmichael": 561, "square-of-a-large-one": 46337**2,
        "beyond": 2**31 + 11, "of-32-bits": D - 5, "of-61-bits": 2**61 - 1, "text": "11",
        "true": True, "null": None, "half": 11.5, "list": [11],
    }  # fmt: skip
    found = {f"hits-prime-{k}": changed(hits, "encoding/prime", x) for k, x in primes.items()}
    found |= {f"hits-without-{k}": changed(hits, f"parts/0/{k}", ...) for k in hits["parts"][0]}
    part = {"own": [1, 1], "other": [1, 1], "none": D, "tau": 0}
    found |= {f"hits-with-{k}": changed(hits, f"parts/0/{k}", x) for k, x in part.items()}
    alone = policy([("only", "1", [0, 1, 2])], list("xyz"), kind="set")
    three = good["three-hits-256-parts"]
    return found | {
        "hits-avg": changed(hits, "policy/notion", "avg"),
        "hits-pairs": changed(hits, "policy/pairs", pair),
        "hits-pairs-unprotected": changed(hits, "policy/pairs", [{**pair[0], "epsilon": ""}]),
        "hits-single": altered(
            single, {"encoding": hits["encoding"], "parts": hits["parts"]}
        ),
        "hits-padding-zero": altered(
            hits, {"padding": 0, "parts/0/rows": [], "parts/1/rows": []}
        ),
        "hits-padding-65": altered(
            good["eight-hits-64"], {"padding": 65, "parts/0/rows": [*rows[0], rows[0][-1]]}
        ),
        "hits-padding-larger": changed(hits, "padding", 3),
        "hits-padding-smaller": changed(hits, "padding", 1),
        "hits-prime-missing": changed(hits, "encoding/prime", ...),
        "hits-with-q": changed(hits, "encoding/q", 11),
        "hits-encoding-of-a-ticket": changed(hits, "encoding", {"kind": "hits", "q": 11, "t": 2}),
        "hits-parts-of-bits": changed(hits, "parts", good["five-cut-bits"]["parts"]),
        "bits-with-parts-of-hits": changed(hits, "encoding", BITS),
        "hits-257-parts": changed(
            three, "parts", [{**three["parts"][0], "chance": D // 512} for _ in range(257)]
        ),
        "hits-without-parts": changed(hits, "parts", []),
        "hits-of-another-policy": signed({**three, "policy": alone, "padding": 2}),
    }  # fmt: skip


def wrong_rows(good: dict[str, Document]) -> dict[str, Document]:
    """Too many or too few numbers, or none."""
    hits = good["five-hits"]
    part = hits["parts"][0]
    row, last_ = part["rows"]
    places = ["chance", "limit", "rows/0/0", "rows/1/1", "rows/1/2", "rows/0/3", "active/1"]
    strange = {"half": 0.5, "text": "1", "null": None, "list": [1], "true": True,
               "beyond": SAFE + 1}  # fmt: skip
    found = {
        f"hits-{place.replace('/', '-')}-{name}": changed(hits, f"parts/0/{place}", value)
        for place in places
        for name, value in strange.items()
    }
    fraction = [row[0], row[1] + 0.5, row[2] - 0.5, row[3]]
    return found | {
        "hits-rows-one-too-few": changed(hits, "parts/0/rows", [row]),
        "hits-rows-one-too-many": changed(hits, "parts/0/rows", [row, last_, last_]),
        "hits-rows-from-zero": changed(hits, "parts/0/rows", [[0, 0, TOTAL, 0], row, last_]),
        "hits-rows-empty": changed(hits, "parts/0/rows", []),
        "hits-rows-null": changed(hits, "parts/0/rows", None),
        "hits-rows-of-a-table": changed(hits, "parts/0/rows", {"1": row, "2": last_}),
        "hits-row-of-three": changed(hits, "parts/0/rows/0", row[:3]),
        "hits-row-of-five": changed(hits, "parts/0/rows/0", [*row, 0]),
        "hits-row-of-keys": changed(
            hits, "parts/0/rows/0", dict(zip(("tau", "hi", "mid", "lo"), row, strict=True))
        ),
        "hits-masses-are-fractions": changed(hits, "parts/0/rows/0", fraction),
        "hits-chance-per-group": changed(hits, "parts/0/chance", [HALF, HALF]),
        "hits-limit-per-group": changed(hits, "parts/0/limit", [1, 1]),
        "hits-active-too-few": changed(hits, "parts/0/active", [1]),
        "hits-active-too-many": changed(hits, "parts/0/active", [1, 1, 1]),
        "hits-active-per-item": changed(hits, "parts/0/active", [1, 1, 1, 1, 1]),
        "hits-active-nowhere": changed(hits, "parts/0/active", [0, 0]),
        "hits-active-two": changed(hits, "parts/0/active", [1, 2]),
        "hits-active-negative": changed(hits, "parts/0/active", [1, -1]),
        "hits-active-booleans": changed(hits, "parts/0/active", [True, True]),
        "hits-active-is-a-number": changed(hits, "parts/0/active", 1),
    }


def wrong_numbers(good: dict[str, Document]) -> dict[str, Document]:
    """Not integers, or none that a double holds exactly."""
    toy, sets, one = good["toy-opt0"], good["three-set-bits"], good["one-item"]
    found = {}
    places = ["padding", "policy/level_of/1", "groups/1", "shares/0"]
    places += [f"parts/0/{key}" for key in ("chance/0", "own/0", "other/0", "none")]
    strange = {"half": 0.5, "text": "1", "null": None, "list": [1], "beyond": SAFE + 1}
    for place in places:
        for name, value in strange.items():
            key = place.replace("/", "-")
            found[f"number-{key}-{name}"] = changed(sets, place, value)
    return found | {
        "own-is-a-fraction": changed(toy, "parts/0/own/0", toy["parts"][0]["own"][0] - 0.5),
        "own-is-1.5": changed(toy, "parts/0/own/0", 1.5),
        "chances-are-fractions": altered(
            good["two-silent"], {"parts/0/chance/0": HALF + 0.5, "parts/1/chance/0": HALF - 0.5}
        ),
        "own-is-huge": changed(toy, "parts/0/own/0", 2**60),
        "own-is-huge-and-negative": changed(toy, "parts/0/own/0", -(2**60)),
        "shares-are-huge": changed(toy, "shares", [2**60, D - 2**60]),
        "own-is-true": changed(toy, "parts/0/own/0", True),
        "other-is-true": changed(good["toy-grr"], "parts/0/other/0", True),
        "silence-is-false": altered(one, {"parts/0/own": [False], "parts/0/other": [False]}),
        "level-of-is-true": changed(toy, "policy/level_of/1", True),
        "group-is-false": changed(toy, "groups/0", False),
        "padding-is-true": changed(sets, "padding", True),
        "padding-is-false": changed(toy, "padding", False),
        "padding-is-a-fraction": changed(sets, "padding", 2.5),
    }


def wrong_certificates(good: dict[str, Document]) -> dict[str, Document]:
    note = good["toy-subset"]
    spellings = [
        "8.50", "08.5", ".5", "8.", "1e3", "-1", "+1", "", " 1", "1 ", "8.5\n", "0.0", "00", "1_0",
        "1,5", "٣", "0x1", "inf", "nan", "1" + "0" * 30, "0." + "0" * 30 + "1", "1.234567890123",
        "1234567890123", "1000000000000.1", 8.5, 8, None, True, [],
    ]  # fmt: skip
    found = {
        f"value-{k}-{str(x)[:9].strip()}": changed(note, "certificate/value", x)
        for k, x in enumerate(spellings)
    }
    return found | {
        "certificate-null": changed(note, "certificate", None),
        "certificate-is-text": changed(note, "certificate", "optimal"),
        "certificate-without-value": changed(note, "certificate/value", ...),
        "certificate-without-bound": changed(note, "certificate/lower_bound", ...),
        "certificate-without-note": changed(note, "certificate/note", ...),
        "lower-bound-null": changed(note, "certificate/lower_bound", None),
        "lower-bound-is-a-number": changed(note, "certificate/lower_bound", 3),
        "lower-bound-not-canonical": changed(note, "certificate/lower_bound", "3.50"),
        "lower-bound-above-value": altered(
            note, {"certificate/value": "3", "certificate/lower_bound": "3.00000000001"}
        ),
        "lower-bound-blank": changed(note, "certificate/lower_bound", " "),
        "note-too-long": changed(note, "certificate/note", "n" * 401),
        "note-with-a-line-break": changed(note, "certificate/note", "a\nb"),
        "note-with-an-escape": changed(note, "certificate/note", "a\x1b[1A"),
        "note-right-to-left": changed(note, "certificate/note", "a\u202eb"),
        "note-with-a-filler": changed(note, "certificate/note", "a\u3164"),
        "note-is-null": changed(note, "certificate/note", None),
    }
