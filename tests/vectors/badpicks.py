"""Picks that are refused: what promises too little, what is not written as it must be; and the last
mass of a row that is accepted.
"""

from __future__ import annotations

from typing import Any

from building import HALF, altered, changed, last
from reference import SAFE, TOTAL, D, Document, holds


def moved(document: Document, j: int, mass: int, sign: bool = True) -> Document:
    """Mass of a row moved from the last bunch of the first part to that of the second."""
    found = document
    for o, sum_ in ((0, mass), (1, -mass)):
        row = document["parts"][o]["rows"][j]
        path = f"parts/{o}/rows/{j}/{len(row) - 1}/0"
        found = changed(found, path, row[-1][0] + sum_, sign)
    return found


def moved_masses(good: dict[str, Document]) -> dict[str, Document]:
    """The last mass of a row that keeps the promise, either way, and one unit more."""
    found = {}
    for name in (
        "four-picks",
        "five-picks",
        "five-picks-blocks",
        "five-picks-alike",
        "six-strict-picks",
        "seventy-picks",
    ):
        document = good[name]
        for j in (0, document["padding"]):
            first, second = (document["parts"][o]["rows"][j][-1][0] for o in (0, 1))
            for way, end in (("up", second), ("down", -first)):

                def passes(x: int, document: Document = document, j: int = j) -> bool:
                    return holds(moved(document, j, x, sign=False))

                most = last(0, end, passes)
                next_ = most + (1 if end > 0 else -1)
                found[f"{name}-row-{j}-{way}-most"] = moved(document, j, most)
                found[f"{name}-row-{j}-{way}-one-more"] = moved(document, j, next_)
    return found


def broken(good: dict[str, Document]) -> dict[str, Document]:
    """Numbers of picks that are no chances, or that promise too little."""
    five, one = good["five-picks"], good["five-picks-alike"]
    chance = five["parts"][0]["chance"]
    half = len(five["parts"]) // 2
    rows = five["parts"][1]["rows"]
    each = {f"parts/{o}/chance": 0 if o < half else D for o in range(2 * half)}
    return {
        "picks-chance-zero": altered(five, each),
        "picks-chance-negative": altered(five, {k: x + 1 if x else -1 for k, x in each.items()}),
        "picks-chances-of-one-cut-differ": changed(five, "parts/1/chance", chance - 1),
        "picks-chances-one-too-many": altered(
            five, {f"parts/{o}/chance": chance + 1 for o in range(half)}
        ),
        "picks-size-negative": changed(five, "parts/0/sizes/0", -1),
        "picks-size-of-all-items": changed(one, "parts/0/sizes/0", 5),
        "picks-size-of-a-block": changed(good["five-picks-blocks"], "parts/0/sizes/1", 3),
        "picks-mass-one-too-many": changed(five, "parts/1/rows/1/0/0", rows[1][0][0] + 1),
        "picks-mass-zero": altered(
            five,
            {
                "parts/1/rows/1/0/0": 0,
                "parts/0/rows/1/0/0": five["parts"][0]["rows"][1][0][0] + rows[1][0][0],
            },
        ),
        "picks-mass-negative": altered(
            five,
            {
                "parts/1/rows/1/0/0": -1,
                "parts/0/rows/1/0/0": five["parts"][0]["rows"][1][0][0] + rows[1][0][0] + 1,
            },
        ),
        "picks-mass-is-the-largest-safe-integer": changed(five, "parts/1/rows/0/0/0", SAFE),
        "picks-bunch-missing": changed(five, "parts/1/rows/1", rows[1][:1]),
        "picks-row-empty": changed(five, "parts/1/rows/1", []),
        "picks-place-beyond-the-last": changed(five, "parts/1/rows/0/0/1", 1),
        "picks-place-negative": changed(five, "parts/1/rows/0/0/1", -1),
        "picks-place-twice": changed(five, "parts/1/rows/1/1/1", rows[1][0][1]),
        "picks-place-twice-in-a-bunch": changed(five, "parts/1/rows/0/0", [rows[0][0][0], 0, 0]),
        "picks-row-that-nobody-can-have": changed(
            good["eight-picks-64"], "parts/0/rows/9", [[TOTAL, 0]]
        ),
        "picks-budget-smaller": changed(five, "policy/levels/0/epsilon", "ln(6/5)"),
        "picks-not-strict": changed(five, "policy/levels/0/epsilon", "0.1"),
        "picks-active-too-many": changed(five, f"parts/{half}/blocks", [1, 1]),
    }


def still_good(good: dict[str, Document]) -> dict[str, Document]:
    five, one = good["five-picks"], good["five-picks-alike"]
    return {
        "picks-budgets-larger": altered(
            five, {"policy/levels/0/epsilon": "2", "policy/levels/1/epsilon": "100"}
        ),
        "picks-strict-with-one-level": changed(one, "policy/strict", True),
        "picks-bunches-turned": changed(five, "parts/1/rows/1", five["parts"][1]["rows"][1][::-1]),
        "picks-shares-elsewhere": changed(five, "shares", [0, 0, D - 5, 5]),
    }


def wrong(good: dict[str, Document]) -> dict[str, Document]:
    """No picks at all."""
    five = good["five-picks"]
    part, single = five["parts"][1], good["toy-opt0"]
    size = five["encoding"]["size"]
    rows: list[Any] = part["rows"]
    found = {f"picks-without-{k}": changed(five, f"parts/0/{k}", ...) for k in part}
    more = {"own": [HALF, HALF], "limit": 3, "none": HALF, "cut": 0, "active": [1, 1]}
    found |= {f"picks-with-{k}": changed(five, f"parts/0/{k}", x) for k, x in more.items()}
    sizes = {"larger": size + 1, "smaller": size - 1, "text": str(size), "zero": 0}
    found |= {f"picks-bytes-{k}": changed(five, "encoding/size", x) for k, x in sizes.items()}
    values = {
        "blocks-too-few": ("blocks", [1]), "blocks-nowhere": ("blocks", [0, 0]),
        "blocks-without-the-first": ("blocks", [0, 2]), "blocks-booleans": ("blocks", [True, True]),
        "blocks-turned": ("blocks", [2, 1]), "blocks-without-a-size": ("blocks", [1, 2]),
        "blocks-negative": ("blocks", [1, -1]), "blocks-null": ("blocks", None),
        "rows-one-too-few": ("rows", rows[:-1]), "rows-one-too-many": ("rows", [*rows, []]),
        "rows-null": ("rows", None), "rows-of-a-table": ("rows", {"0": rows[0]}),
        "row-is-a-number": ("rows/1", 5), "row-null": ("rows/0", None),
        "bunch-of-one": ("rows/0/0", [TOTAL]), "bunch-of-none": ("rows/0/0", []),
        "bunch-is-a-number": ("rows/0/0", 0), "bunch-of-keys": ("rows/0/0", {"0": TOTAL}),
        "mass-is-a-text": ("rows/0/0/0", str(TOTAL)), "mass-null": ("rows/0/0/0", None),
        "place-is-a-text": ("rows/0/0/1", "0"), "place-half": ("rows/0/0/1", 0.5),
        "chance-per-group": ("chance", [HALF, HALF]), "sizes-is-a-number": ("sizes", 1),
        "sizes-one-too-many": ("sizes", [1, 1]), "sizes-none": ("sizes", []),
        "size-is-a-text": ("sizes", ["1"]), "size-true": ("sizes", [True]),
    }  # fmt: skip
    found |= {
        f"picks-{name}": changed(five, f"parts/1/{path}", x) for name, (path, x) in values.items()
    }
    blocks = good["five-picks-blocks"]
    few = blocks["parts"][0]["rows"][:-1]
    found["picks-rows-of-blocks-one-too-few"] = changed(blocks, "parts/0/rows", few)
    pair = [{"levels": ["a", "b"], "epsilon": "2"}]
    return found | {
        "picks-avg": changed(five, "policy/notion", "avg"),
        "picks-one-way": changed(five, "policy/notion", "one-way"),
        "picks-pairs": changed(five, "policy/pairs", pair),
        "picks-single": altered(single, {"encoding": five["encoding"], "parts": five["parts"]}),
        "picks-padding-larger": changed(five, "padding", 3),
        "picks-padding-smaller": changed(five, "padding", 1),
        "picks-padding-zero": changed(five, "padding", 0),
        "picks-shares-of-hits": changed(five, "shares", [HALF, HALF, 0]),
        "picks-shares-too-many": changed(five, "shares", [*five["shares"], 0]),
        "picks-bytes-missing": changed(five, "encoding/size", ...),
        "picks-with-a-prime": changed(five, "encoding/prime", 11),
        "picks-without-parts": changed(five, "parts", []),
        "picks-parts-of-hits": changed(five, "parts", good["five-hits"]["parts"]),
        "hits-parts-of-picks": changed(good["five-hits"], "parts", five["parts"]),
    }
