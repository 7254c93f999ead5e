"""What Python and JavaScript both spell: `vectors/v2/constants.json`, and documents that show it.

The file is written by hand: it is the contract. `test_vectors.py` holds Python to it and
`browser/test_constants.py` JavaScript.
"""

import json
from pathlib import Path

from discreet.check.document import fingerprint
from discreet.survey import Survey

CONSTANTS = json.loads(
    (Path(__file__).parent / "vectors" / "v2" / "constants.json").read_text(encoding="utf-8")
)
D = CONSTANTS["denominator"]
ABOUT = {  # every key that there is
    "organiser": "Étude · 健康",
    "contact": "study@example.org",
    "notice": "https://example.org/privacy",
    "purpose": "To know.\n\nNothing else.",
    "consent": "I may be counted.",
    "language": "pt-BR",
    "opens": "2026-02-28T23:59:59Z",
    "closes": "2026-03-01T00:00:00Z",
    "minimum": 50,
    "rehearsal": True,
}


def silent(levels, pairs=(), parts=1, padding=0, totals=None, last=None, policy=None, **more):
    """A mechanism file whose reports say nothing, so that it keeps all budgets. A pair is (level,
    level, epsilon), and "one_way" where it is; `policy` has more keys of it.
    """
    policy = policy or {}
    none = {"none": D // parts} if padding else {}
    body = {
        "format": CONSTANTS["format"],
        "policy": {
            "question": "",
            "kind": "set" if padding else "single",
            **({"strict": False} if padding else {}),
            "notion": "min",
            "items": [item for _, _, items in levels for item in items],
            "level_of": [k for k, (_, _, items) in enumerate(levels) for _ in items],
            "levels": [{"name": name, "epsilon": epsilon} for name, epsilon, _ in levels],
            "pairs": [
                {"levels": [a, b], "epsilon": epsilon, **dict.fromkeys(one_way, True)}
                for a, b, epsilon, *one_way in pairs
            ],
            **policy,
            **({"totals": totals} if totals else {}),
            **({"last": last} if last else {}),
        },
        "model": "subset",
        "prior": "uniform",
        "encoding": {"kind": "bits"},
        "padding": padding,
        "groups": [0] * len(levels),
        "shares": [D, *([0] if padding else [])],
        "parts": [{"chance": [D // parts], "own": [0], "other": [0], **none}] * parts,
        **more,
    }
    return {**body, "fingerprint": fingerprint(body)}


def one(epsilon="1", **more):
    return silent([("one", epsilon, "ab")], **more)


def certified(value="1", note=""):
    return one(certificate={"value": value, "lower_bound": "", "note": note})


def surveying(mechanism, name="survey", questions=None, **more):
    """A survey of this question, or of these."""
    body = {key: value for key, value in mechanism.items() if key != "fingerprint"}
    rows = [{"name": "question", "mechanism": body}] if questions is None else questions
    found = {"format": CONSTANTS["survey"]["format"], "name": name, "answers": 1, "questions": rows}
    return sealed({**found, **more})


def sealed(body):
    return {**body, "fingerprint": Survey.fingerprint_body(body)}


REGION = {"name": "region", "text": "Where?", "items": ["north", "south"]}


def whole_survey():
    """A survey with every key that there is."""
    body = {key: x for key, x in one().items() if key != "fingerprint"}
    cells = silent([("1", "1", [f"{x} × {y}" for x in "ab" for y in "ab"])])
    cross = {key: x for key, x in cells.items() if key != "fingerprint"}
    rows = [{"name": name, "mechanism": body} for name in ("first", "second")]
    rows.append({"name": "both", "mechanism": cross, "of": ["first", "second"]})
    wording = {"text": "Où ?", "items": {"north": "nord"}}
    translations = {"fr": {"about": {"organiser": "Étude"}, "public": {"region": wording}}}
    return surveying(
        {}, questions=rows, about=ABOUT, public=[REGION], translations=translations, answers=2
    )


def everything():
    """A document with every key that there is for single input."""
    certificate = {"value": "1", "lower_bound": "", "note": ""}
    levels = [("one", "1", "a"), ("two", "2", "b")]
    told = {"totals": [{"name": "both", "items": ["a", "b"]}], "last": ["a"]}
    return silent(levels, [("one", "two", "1", "one_way")], certificate=certificate, **told)


def at_the_limits():
    """Per limit, the last document that is accepted and the first that is not."""
    limits = CONSTANTS["limits"]
    levels, note = limits["levels_with_pairs"], limits["note_characters"]
    log, digits = limits["budget_characters"] - len("ln()"), limits["certificate_digits"]
    whole, least_t = limits["budget_digits"], limits["least_t"]

    def many(count):
        rows = [(f"level {k}", "1", [f"item {k}"]) for k in range(count)]
        return silent(rows, [("level 0", "level 1", "2")])

    def points(count, cap=0):
        rows = [(f"point {k}", "1", [f"point {k}"]) for k in range(count)]
        return silent(rows, policy={"notion": "scale", "cap": cap})

    def blocks(count):
        rows = [(f"level {k}", "1", [f"item {k}"]) for k in range(count)]
        return silent(rows, policy={"notion": "blocks"})

    def ticket(t):
        return one(encoding={"kind": "ticket", "q": 3, "t": t})

    model = limits["model_characters"]
    return {
        "characters of a model": (one(model="a" * model), one(model="a" * (model + 1))),
        "parts": (one(parts=limits["parts"]), one(parts=limits["parts"] + 1)),
        "padding": (one(padding=limits["padding"]), one(padding=limits["padding"] + 1)),
        "levels with pairs": (many(levels), many(levels + 1)),
        "levels as blocks": tuple(blocks(limits["levels_as_blocks"] + k) for k in (0, 1)),
        "points of a scale": tuple(points(limits["points_of_a_scale"] + k) for k in (0, 1)),
        "points of a scale, at least": (points(2), points(1)),
        "steps of a cap": (points(5, 4), points(5, 5)),
        "characters of a budget": (one(f"ln({'9' * log})"), one(f"ln({'9' * (log + 1)})")),
        "roots of a budget": (one("ln(2)/1000"), one("ln(2)/1001")),
        "digits of a budget": (one("9" * whole), one("9" * (whole + 1))),
        "zeros of a budget": (one(f"0.{'0' * (whole - 2)}1"), one(f"0.{'0' * (whole - 1)}1")),
        "digits of a certificate": (certified("9" * digits), certified("9" * (digits + 1))),
        "characters of a note": (certified(note="🙂" * note), certified(note="🙂" * (note + 1))),
        "shares": (one(shares=[D]), one(shares=[D + 1])),
        "shares, at least": (one(shares=[D]), one(shares=[D - 1])),
        "t of a ticket": (ticket(least_t), ticket(least_t - 1)),
    }


def surveys_at_the_limits():
    """Per limit of a survey, the last document that is accepted and the first that is not."""
    limits = CONSTANTS["survey"]["limits"]

    def told(key, *values):
        return tuple(surveying(one(), about={key: value}) for value in values)

    def asking(count):
        body = {key: x for key, x in one().items() if key != "fingerprint"}
        rows = [{"name": f"question {k}", "mechanism": body} for k in range(count)]
        return surveying({}, questions=rows)

    def openly(*sizes):
        return surveying(
            one(),
            public=[
                {"name": f"public {k}", "text": "", "items": [f"item {i}" for i in range(size)]}
                for k, size in enumerate(sizes)
            ],
        )

    def called(name):
        return surveying(one(), public=[{"name": name, "text": "", "items": ["a", "b"]}])

    reserved = CONSTANTS["survey"]["reserved"]
    least, most = CONSTANTS["about"]["minimum"]
    about = {
        f"characters of {key}": (
            told(key, "🙂" * count, "🙂" * (count + 1))
            if key != "notice"
            else told(key, "https://" + "x" * (count - 8), "https://" + "x" * (count - 7))
        )
        for key, count in CONSTANTS["about"]["characters"].items()
    }
    most_items, name = limits["items"], limits["name_characters"]
    return {
        **about,
        "minimum": told("minimum", least, least - 1),
        "minimum, at most": told("minimum", most, most + 1),
        "characters of a name": tuple(surveying(one(), "🙂" * (name + k)) for k in (0, 1)),
        "questions": (asking(limits["questions"]), asking(limits["questions"] + 1)),
        "public questions": tuple(openly(*[2] * (limits["public"] + k)) for k in (0, 1)),
        "groups": (openly(100, limits["groups"] // 100), openly(137, 73)),
        "items of a public question": (openly(most_items), openly(most_items + 1)),
        "items of a public question, at least": (openly(2), openly(1)),
        **{
            f"a public question called {name}": (called(f"my {name}"), called(name))
            for name in reserved
        },
    }


def promised():
    """Documents, and the sentences that a participant is told."""
    said = CONSTANTS["sentences"]

    def plain(name, items, kind="single"):
        return said[kind].format(level=name, items=items, factor=1)

    lists = {0: [], 1: [said["lists"].format(factor=1)]}
    found = [
        (
            silent([("one", "1", "abcde"[:count])], padding=padding),
            [plain("one", items, kind), *lists[padding]],
        )
        for count, items in enumerate(said["items"], 1)
        for kind, padding in (("single", 0), ("set", 1))
    ]
    for half, factor in CONSTANTS["factors_of_twice"]:  # one step to the level between, one from it
        still = said["through_others"].format(factor=factor)
        levels = [("one", "500", "a"), ("two", "500", "b"), ("between", half, "c")]
        each = [plain(name, f'"{items}"') for name, _, items in levels]
        open_ = said["unprotected"].format(first="one", second="two", still=still)
        found.append((silent(levels, [("one", "two", "")]), [*each, open_]))
    still = said["through_others"].format(factor="4")
    levels = [("one", "500", "ab"), ("between", "ln(2)", "c")]
    each, protected = (
        [plain("one", said["items"][1], kind), plain("between", '"c"', kind)]
        for kind in ("single", "single_protected")
    )
    alone = said["unprotected_alone"].format(first="one", still=still)
    found.append((silent(levels, [("one", "one", "")]), [*each, alone]))
    found.append(
        (silent(levels, [("between", "between", "")]), each)
    )  # of one item: nothing to say
    never = said["unprotected"].format(first="one", second="between", still=said["not_at_all"])
    shown = said["shown"].format(level="between", items='"c"')  # alone, and without protection
    found.append((silent(levels, [("one", "between", "")]), [protected[0], shown, never]))
    return found
