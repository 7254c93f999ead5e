"""The JavaScript module in Node: it reads, refuses, promises, perturbs, remembers and
sends exactly as Python does.
"""

import base64
import copy
import json
import random
import re
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations, pairwise, product
from math import comb, exp, inf, log, prod
from pathlib import Path
from unicodedata import category
from urllib.parse import unquote

import handmade
import numpy as np
import pytest
from checks import assert_binomial, detectable, must_fail, z_for
from exhaustive import distribution
from nodejs import NODE, node

import discreet as d
from discreet.check import exact
from discreet.check.document import canonical_json, fingerprint, read_bytes
from discreet.check.exact import D
from discreet.errors import DesignError, DiscreetError, FingerprintError, GuaranteeError
from discreet.mechanism import Mechanism
from discreet.policy import Budget, Pair, Policy
from discreet.promises import paths
from discreet.survey import Survey
from discreet.survey.crosses import cross

HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors" / "v2"
KINDS = ("fixed", "bits", "ticket")
pytestmark = [
    pytest.mark.skipif(
        NODE is None, reason="node is not installed, so the JavaScript module cannot be run"
    ),
    pytest.mark.xdist_group("module"),  # what Node computes is shared by many tests
]


def vectors(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def document(mechanism):
    return signed(mechanism.to_canonical())


def unsigned(document_):
    return {key: value for key, value in document_.items() if key != "fingerprint"}


def signed(body):
    body = unsigned(body)
    return {**body, "fingerprint": fingerprint(body)}


def verify(documents):
    return node("verify.mjs", [{"document": x} for x in documents])


def verify_files(files):
    return node("verify.mjs", [{"bytes": base64.b64encode(x).decode()} for x in files])


def verdict(document_):
    """Python's, in the module's words."""
    try:
        Mechanism.from_document(document_)
    except GuaranteeError:
        return "guarantee"
    except FingerprintError:
        return "fingerprint"
    except DiscreetError:
        return "mechanism"
    return "ok"


def file_verdict(raw):
    try:
        document_ = read_bytes(raw)
    except DiscreetError:
        return "mechanism"
    return verdict(document_)


# ---- mechanisms made by hand: what the tests below need is in their integers ---------------------


def policy_of(rows, **more):
    """From (name, epsilon, items) per level."""
    unit = {"strict": False} if more.get("kind") == "set" else {}
    return {
        "question": "",
        "kind": "single",
        "notion": "min",
        **unit,
        "items": [item for _, _, items in rows for item in items],
        "level_of": [level for level, (_, _, items) in enumerate(rows) for _ in items],
        "levels": [{"name": name, "epsilon": epsilon} for name, epsilon, _ in rows],
        "pairs": [],
        **more,
    }


def body_of(policy, parts, encoding="bits", groups=None, model="subset", padding=3):
    groups = list(range(len(policy["levels"]))) if groups is None else groups
    sets = policy["kind"] != "single"
    return {
        "format": "discreet-mechanism/3",
        "policy": policy,
        "model": model,
        "prior": "uniform",
        "encoding": {"kind": encoding} if isinstance(encoding, str) else encoding,
        "padding": padding if sets else 0,
        "groups": groups,
        "shares": [D] + [0] * (max(groups) + sets),
        "parts": parts,
    }


def unary(rows, **more):
    """One part of independent bits; levels with larger budgets tell more: u_l = w_l =
    min(T, eps_l - T) (DESIGN 3.3, opt1).
    """
    policy = policy_of(rows, **more)
    eps = [float(Budget.parse(epsilon)) * (1 - 1e-6) for _, epsilon, _ in rows]
    top = 0.6 * min(eps)
    other = [round(D / (1 + exp(min(top, e - top)))) for e in eps]
    none = {"none": D} if policy["kind"] != "single" else {}
    return signed(
        body_of(
            policy,
            [{"chance": [D] * len(eps), "own": [D - b for b in other], "other": other, **none}],
            model="opt1",
        )
    )


LETTERS = {
    "few": "ae",
    "more": "bfh",
    "one": "c",
    "four": "dgij",
}  # the items of a level are not neighbours


def small(kind, sets=False, several=True):
    """Ten items in four levels, the second and the last in one group; three parts or
    one; most are silent about a group.
    """
    sixteenth = D // 16
    other = {  # per part and group, of 2, 7 and 1 items
        "fixed": [[1, 4, 0], [0, 3, 0], [1, 0, 0]],
        "bits": [
            [5 * sixteenth, 7 * sixteenth, 3 * sixteenth],
            [0, 4 * sixteenth, 6 * sixteenth],
            [9 * sixteenth, 0, 0],
        ],
        "ticket": [[2, 3, 1], [0, 2, 4], [1, 0, 0]],
    }[kind]
    chance = [[5, 7, 9], [4, 6, 1], [7, 3, 6]] if several else [[16] * 3]
    none = [6, 5, 5] if several else [16]
    parts = [
        {
            "chance": [c * sixteenth + (o == 0) - (o == 1) if several else D for c in row],
            "own": [0 if k == 0 else (9 + g + o) * sixteenth + 1 for g, k in enumerate(other[o])],
            "other": other[o],
            **({"none": none[o] * sixteenth} if sets else {}),
        }
        for o, row in enumerate(chance)
    ]
    encoding = {"kind": "ticket", "q": 5, "t": 2} if kind == "ticket" else kind
    level_of = [
        next(k for k, items in enumerate(LETTERS.values()) if x in items) for x in "abcdefghij"
    ]
    policy = policy_of(
        [(name, "40", items) for name, items in LETTERS.items()],
        items=list("abcdefghij"),
        level_of=level_of,
        kind="set" if sets else "single",
    )
    return signed(body_of(policy, parts, encoding, groups=[0, 1, 2, 1]))


def groups_of(document_):
    """The group of every item."""
    return [document_["groups"][k] for k in document_["policy"]["level_of"]]


# ---- the shared vectors --------------------------------------------------------------------------


def test_canonical_json_and_fingerprints():
    cases = vectors("canonical")
    found = node("canonical.mjs", [json.dumps(case["document"]) for case in cases])
    assert found == [{"canonical": case["canonical"], "sha256": case["sha256"]} for case in cases]


def test_keys_are_sorted_as_python_sorts_them():
    """By code point: JavaScript alone would put U+1F642, two UTF-16 units from U+D83D,
    before U+FFFD.
    """
    keys = [
        "\ufffd",
        "🙂",
        "\ue000",
        "𝒳",
        "z",
        "",
        "a",
        "ab",
        "a🙂",
        "a\ufffd",
        "~",
        "Ä",
        "\x7f",
        "10",
        "9",
        "__proto__",
    ]
    documents = [dict.fromkeys(keys, 1), {k: {j: [] for j in keys} for k in reversed(keys)}]
    found = node("canonical.mjs", [json.dumps(x) for x in documents])
    assert [x["canonical"].encode() for x in found] == [canonical_json(x) for x in documents]
    assert [x["sha256"] for x in found] == [fingerprint(x) for x in documents]
    assert sorted(keys) != sorted(
        keys, key=lambda k: k.encode("utf-16-be")
    )  # or this test shows nothing


def test_every_character_is_escaped_as_python_escapes_it():
    rng = random.Random(2)
    points = [
        *range(0x300),
        0x2028,
        0x2029,
        0xFEFF,
        0xFFFF,
        0x10FFFF,
        *(rng.randrange(0xE000, 0x110000) for _ in range(500)),
    ]
    text = {"".join(map(chr, points)): "".join(chr(x) for x in points for _ in range(2))}
    (found,) = node("canonical.mjs", [json.dumps(text)])
    assert found["canonical"].encode() == canonical_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "0.5",
        "[1e-3]",
        "9007199254740992",
        "-9007199254740992",
        "1e400",
        '"\\ud800"',
        '{"a\\udfff":1}',
        '[["\\ud83d x"]]',
    ],
)
def test_what_no_mechanism_holds_has_no_canonical_form(text):
    (found,) = node("canonical.mjs", [text])
    assert found["code"] == "mechanism" and "\n" not in found["message"]


MECHANISMS = vectors("mechanisms")
GOOD = {case["name"]: case["document"] for case in MECHANISMS if case["expect"] == "ok"}


@cache
def judged():
    return dict(
        zip(
            [case["name"] for case in MECHANISMS],
            verify([case["document"] for case in MECHANISMS]),
            strict=True,
        )
    )


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in MECHANISMS])
def test_mechanisms(case):
    found = judged()[case["name"]]
    assert found["code"] == case["expect"], found
    if case["expect"] == "ok":
        agrees(found, Mechanism.from_document(case["document"]))
    else:
        assert "\n" not in found["message"] and len(found["message"]) < 300


def agrees(found, mechanism):
    """What the module says of an accepted mechanism is what Python says."""
    policy, guarantee, body = mechanism.policy, mechanism.guarantee(), mechanism.to_canonical()
    assert found["fingerprint"] == mechanism.fingerprint
    assert (found["m"], found["reportSize"]) == (mechanism.m, mechanism.report_size)
    assert (found["model"], found["kind"], found["padding"]) == (
        body["model"],
        body["encoding"]["kind"],
        body["padding"],
    )
    assert (found["parts"], found["groups"]) == (body["parts"], body["groups"])
    for key in ("question", "kind", "notion", "items"):
        assert found["policy"][key] == body["policy"][key]
    levels = found["policy"]["levels"]
    assert found["policy"]["levelOf"] == list(policy.level_of)
    assert [level["count"] for level in levels] == list(policy.level_sizes)
    assert [(level["name"], level["budget"]) for level in levels] == [
        (x.name, x.budget.text) for x in policy.levels
    ]
    assert [finite(level["epsilon"]) for level in levels] == pytest.approx(
        [float(x.budget) for x in policy.levels]
    )
    epsilons = guarantee.epsilons
    assert [finite(x) for x in found["levelEpsilons"]] == pytest.approx(
        epsilons, rel=1e-11, abs=1e-11
    )  # floats of two libraries
    agrees_in_words(found["promises"], policy, guarantee, epsilons)


def finite(number):
    """JSON writes an infinite number as null."""
    return inf if number is None else number


def agrees_in_words(promises, policy, guarantee, epsilons):
    assert [rounded(x["sentence"]) for x in promises] == [rounded(x) for x in guarantee.sentences()]
    levels = [x for x in promises if x["level"] is not None]
    if policy.notion == "scale":  # whose promises are of distances
        assert not levels
        return
    assert [(x["level"], x["items"]) for x in levels] == [
        (x.name, n) for x, n in zip(policy.levels, policy.level_sizes, strict=True)
    ]
    if paths.has_gaps(policy):  # a factor over what is protected, and none beyond it
        epsilons = [0] * len(levels)
    assert all(
        finite(x["factor"]) >= np.exp(e) * (1 - 1e-11)
        for x, e in zip(levels, epsilons, strict=True)
    )  # rounded up
    examples = [[] for _ in levels]
    for item, level in zip(policy.items, policy.level_of, strict=True):
        examples[level].append(item)
    assert [x["examples"] for x in levels] == [x[:3] for x in examples]


def rounded(sentence):
    """The same with ten digits of its factor: the last of two libraries' floats differ."""
    return re.sub(r"\d{1,3}(,\d{3}){3,}", lambda x: f"{float(x[0].replace(',', '')):.9e}", sentence)


def test_surveys():
    """Both languages say the same word of every survey in the vectors, and promise the same."""
    cases = vectors("surveys")
    found = node("surveys.mjs", [case["document"] for case in cases])
    assert [x["code"] for x in found] == [case["expect"] for case in cases]
    for case, got in zip(cases, found, strict=True):
        if case["expect"] != "ok":
            assert "\n" not in got["message"] and len(got["message"]) < 400
            continue
        survey = d.Survey.from_document(case["document"])
        promise = survey.promise()
        assert got["fingerprint"] == survey.fingerprint == case["document"]["fingerprint"]
        assert (got["name"], got["answers"]) == (survey.name, survey.answers)
        assert got["questions"] == [
            {"name": q.name, "of": list(q.of) if q.of else None} for q in survey.listed
        ]
        assert rounded(got["promise"]["sentence"]) == rounded(promise.sentence)
        assert finite(got["promise"]["factor"]) >= float(promise.factor) * (1 - 1e-11)
        assert (got["drawn"], rounded(got["caution"])) == (promise.drawn, rounded(promise.caution))
        assert got["frontSize"] == (len(survey.listed) > 1) + len(survey.public)


def test_mutated_surveys_get_the_same_verdict():
    """One value replaced, moved, removed or added, around the mechanisms and in them."""
    rng = random.Random(11)
    good = [case["document"] for case in vectors("surveys") if case["expect"] == "ok"]
    small_ones = [unsigned(x) for x in good if len(json.dumps(x)) < 9_000]
    bodies = [mutate(rng, rng.choice(small_ones)) for _ in range(500)]
    documents = []
    for body in bodies:
        try:
            documents.append(sealed(body))
        except (UnicodeEncodeError, DiscreetError):
            documents.append({**body, "fingerprint": "0" * 64})
    assert 10 < same_surveys(documents) < 400


def bytes_of(case):
    return case["text"].encode() if "text" in case else bytes.fromhex(case["hex"])


def test_files():
    cases = vectors("files")
    found = verify_files([bytes_of(case) for case in cases])
    assert {case["name"]: x["code"] for case, x in zip(cases, found, strict=True)} == {
        x["name"]: x["expect"] for x in cases
    }


def test_reports():
    cases = vectors("reports")
    found = node("reports.mjs", {"documents": GOOD, "reports": cases})
    for case, got in zip(cases, found, strict=True):
        if "refused" in case:
            assert got == {"refused": case["refused"], "codes": ["report", "report"]}, case
        else:
            assert got["ones"] == got["named"] == case["named"], case
            assert re.fullmatch(r"(The|For) [^\n]{20,400}\.", got["sentence"]), got


def test_part_of_a_report_is_what_python_reads():
    cases = [x for x in vectors("reports") if "refused" not in x]
    found = node("reports.mjs", {"documents": GOOD, "reports": cases})
    seen = set()
    for case, got in zip(cases, found, strict=True):
        mechanism = mechanism_of(case["mechanism"])
        assert (
            mechanism.tally([bytes.fromhex(case["report"])]).part_n.tolist().index(1) == got["part"]
        )
        seen.add(got["part"])
    assert len(seen) > 2  # or this shows nothing


@cache
def mechanism_of(name):
    return Mechanism.from_document(GOOD[name])


# ---- what a report means, in a sentence ----------------------------------------------------------


def test_meanings_of_every_encoding():
    documents = {
        f"{kind} {sets}": small(kind, sets) for kind, sets in product(KINDS, (False, True))
    }
    first = {"fixed": bytes([0, 0b01101011, 0]), "bits": bytes([0, 0, 0]), "ticket": bytes(4)}
    only = {
        "fixed": bytes([2, 0b1, 0]),
        "bits": bytes([2, 0, 0]),
        "ticket": (2 * 125 + 124).to_bytes(4, "little"),
    }
    jobs = [
        (f"{kind} {sets}", x[kind])
        for kind, sets, x in product(KINDS, (False, True), (first, only))
    ]
    found = node(
        "reports.mjs",
        {"documents": documents, "reports": [{"mechanism": x, "report": y.hex()} for x, y in jobs]},
    )
    for (name, report), got in zip(jobs, found, strict=True):
        tells(documents[name], report, got)


def tells(document_, report, got):
    """The chances in a sentence are those of the part."""
    kind, part = document_["encoding"]["kind"], document_["parts"][got["part"]]
    of, sets = groups_of(document_), document_["policy"]["kind"] != "single"
    base = {"fixed": [of.count(g) for g in range(3)], "bits": [D] * 3, "ticket": [5] * 3}[kind]
    speaking = [g for g in range(3) if part["other"][g]]
    among = sum(of.count(g) for g in speaking)
    own = span(part["own"][g] / D for g in speaking)
    other = span(
        x
        for g in speaking
        for x in (part["other"][g] / base[g], *same_group(kind, part, g, base[g]))
    )
    if sets:
        these = " and is one of these" if among < 10 else ""
        who = f"one of yours, if one is drawn at random{these},"
    else:
        who = f"your own answer{', if it is one of these,' if among < 10 else ''}"
    sentence = got["sentence"]
    assert (
        f": {who} is named with a chance of {own}, one that is not yours with about {other}."
        in sentence
    )
    assert (
        re.search(rf"\b{len(got['named']) or 'none'}\b", sentence)
        and f" {among} answers" in sentence
    )
    assert (f"says nothing about {10 - among} of the answers" in sentence) == (among < 10)
    assert "is one of 3 kinds, drawn at random with chances that depend on your answer." in sentence


def same_group(kind, part, g, n):
    """A named own item takes a place of a subset of fixed size."""
    return [(part["other"][g] - part["own"][g] / D) / (n - 1)] if kind == "fixed" else []


def span(shares):
    found = sorted(shares)
    return " to ".join(dict.fromkeys(percent(x) for x in (found[0], found[-1])))


def percent(share):
    return f"{100 * share:.{1 if share < 0.1 else 0}f} %"


# ---- what Python designs is accepted, and says the same ------------------------------------------

LEVELS = [("grave", "ln(4)", ["x"]), ("odd", "1.25", ["y", "z"]), ("mild", 3, ["u", "v", "w", "o"])]
PAIRS = {
    "none": (),
    "one open": (Pair("grave", "mild", None),),
    "open and given": (
        Pair("odd", "odd", None),
        Pair("grave", "odd", Budget.parse("0.8")),
        Pair("odd", "grave", Budget.parse("0.8")),
    ),
    "an island": (
        Pair("grave", "odd", None),
        Pair("grave", "mild", None),
        Pair("grave", "grave", None),
        Pair("mild", "mild", None),
    ),
}
MODELS = ("subset", "opt0", "opt1", "opt2", "rappor", "oue", "grr", "ss")


def designs_of(policy, models, **more):
    """Every model that the design offers here, as bits and as tickets where it has them."""
    for model, encoding in product(models, ("bits", "ticket")):
        try:
            yield d.design(policy, model=model, encoding=encoding, **more)
        except (
            DesignError
        ):  # some models have one encoding, some take no sets or pairs: not this test's matter
            continue


@cache
def designed():
    found = []
    for notion, pairs in product(("min", "avg"), PAIRS.values()):
        policy = d.Policy.from_levels(
            LEVELS, notion=notion, pairs=pairs, question="Was?\u00a0Und 🙂?"
        )
        sets = d.Policy.from_levels(LEVELS, notion=notion, pairs=pairs, kind="set")
        models = (
            ("opt0", "rappor") if pairs else MODELS
        )  # a subset with pairs and tickets takes a minute
        found += [*designs_of(policy, models), *designs_of(sets, models, padding=3)]
    for budgets in (
        [1],
        [2, 2],
        [50, 60, 0.001],
        ["ln(1000)", "ln(1000)"],
        [15, 15],
        ["ln(4/3)", "0.00001", 7],
    ):
        policy = d.Policy.from_budgets({f"i{k}": e for k, e in enumerate(budgets)})
        found += [*designs_of(policy, ("rappor", "grr", "opt0")), d.design(policy)]
    wide = d.Policy.from_levels([("all", 2, [f"i{k}" for k in range(1500)])])
    return [*found, d.design(wide, model="oue", encoding="ticket"), d.design(wide)]


def test_designs_are_accepted_and_promise_the_same():
    for found, mechanism in zip(verify([document(x) for x in designed()]), designed(), strict=True):
        assert found["code"] == "ok", found
        agrees(found, mechanism)


def test_designs_have_every_model_and_encoding():
    """Or the comparison above would not have seen them."""
    seen = {(x.model, x.encoding.kind, x.policy.kind) for x in designed()}
    assert {model for model, _, _ in seen} == set(MODELS)
    assert {(kind, sets) for _, kind, sets in seen} == set(product(KINDS, ("single", "set")))
    assert any(len(x.parts) > 1 for x in designed())


def test_sentences_reach_every_form():
    """Or the comparison above would not have seen them."""
    text = " ".join(
        sentence for mechanism in designed() for sentence in mechanism.guarantee().sentences()
    )
    for part in (
        "not at all",
        "only through others",
        "two answers of",
        "having or not having",
        "between any two lists",
        "and 1 more",
        "factor of 4.",
    ):
        assert part in text, part
    assert re.search(r"factor of \d,\d\d\d,\d\d\d", text)


# ---- near the bound, the two verdicts are the same -----------------------------------------------

BUDGETS = [
    *[
        "ln(4)",
        "ln(3/2)",
        "ln(9)",
        "1",
        "1.2",
        "0.05",
        "2",
        "3.5",
        "0.7",
        "8",
        "1.2345678901234567890123",
        "45",
        "60",
        "150",
    ],
    *["ln(100000)", "30.5"],
]


def random_policy(rng):
    t = rng.randint(1, 4)
    rows = [
        (f"L{k}", rng.choice(BUDGETS), [f"{k}.{i}" for i in range(rng.randint(1, 4))])
        for k in range(t)
    ]
    pairs = []
    if rng.random() < 0.4:
        chosen = {
            tuple(sorted((rng.randrange(t), rng.randrange(t)))) for _ in range(rng.randint(1, 4))
        }
        pairs = [
            {
                "levels": [f"L{i}", f"L{j}"],
                "epsilon": "" if rng.random() < 0.4 else rng.choice(BUDGETS),
            }
            for i, j in sorted(chosen)
        ]
    return policy_of(
        rows,
        notion=rng.choice(("min", "avg")),
        pairs=pairs,
        kind=rng.choice(("single", "single", "set")),
    )


def bases_of(body):
    of, encoding = groups_of(body), body["encoding"]
    return [
        {"fixed": of.count(g), "bits": D, "ticket": encoding.get("q")}[encoding["kind"]]
        for g in range(max(of) + 1)
    ]


def holds(body):
    """Python's exact check alone."""
    parts = [exact.Chances(p["chance"], p["own"], p["other"], p.get("none")) for p in body["parts"]]
    return (
        exact.check(Policy.from_canonical(body["policy"]), body["groups"], bases_of(body), parts)
        is None
    )


def level_ground(rng):
    """A mechanism whose parts tell next to nothing, so that it holds for every budget
    of the list.
    """
    policy = random_policy(rng)
    groups = []
    for _ in policy["levels"]:
        count = max(groups, default=-1) + 1
        groups.append(rng.randrange(count) if count and rng.random() < 0.3 else count)
    encoding = rng.choice(
        (
            {"kind": "fixed"},
            {"kind": "bits"},
            {"kind": "ticket", "q": rng.choice((5, 7, 61)), "t": 2},
        )
    )
    body = body_of(policy, [], encoding, groups, padding=rng.randint(1, 9))
    chances = rng.choice(([D], [D], [D // 3, D - D // 3], [1000, 7 * 10**6, D - 7 * 10**6 - 1000]))
    for chance in chances:
        other = [
            0 if base < 2 or rng.random() < 0.2 else rng.randrange(1, base)
            for base in bases_of(body)
        ]
        own = [
            min(D - 1, max(1, b * D // base)) if b else 0
            for b, base in zip(other, bases_of(body), strict=True)
        ]
        none = {"none": chance} if policy["kind"] != "single" else {}
        body["parts"].append({"chance": [chance] * len(other), "own": own, "other": other, **none})
    return body


def moves(rng, body):
    """Ways to leave the level ground: (what changes, by one unit more of it)."""
    k, g = rng.randrange(len(body["parts"])), rng.randrange(len(body["parts"][0]["own"]))
    part = body["parts"][k]
    if len(body["parts"]) > 1 and rng.random() < 0.4:  # more of one part, less of another
        other = body["parts"][k - 1]
        if "none" in part and rng.random() < 0.5:
            return lambda step: (
                part.update(none=part["none"] + step),
                other.update(none=other["none"] - step),
            )
        return lambda step: (add(part, "chance", g, step), add(other, "chance", g, -step))
    if part["own"][g] == 0:
        return None
    sign, key = (
        rng.choice((-1, 1)),
        rng.choice(("own", "own", "other") if body["encoding"]["kind"] == "bits" else ("own",)),
    )
    return lambda step: add(part, key, g, sign * step)


def add(part, key, g, step):
    part[key][g] += step


def last_passing(passes, end):
    """The last step from 0 that passes; 0 does, `end` does not."""
    low, high = 0, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def near_the_bound(rng):
    """A mechanism with one numerator at, just before and just beyond its bound."""
    body = level_ground(rng)
    if not holds(body):
        return
    for _ in range(rng.randint(1, 3)):  # the others may stand at a bound as well
        move = moves(rng, body)
        if move is None:
            continue
        step = last_passing(tried(body, move), 2 * D)
        for offset in (-1, 0, 1, 2):
            move(step + offset)
            yield copy.deepcopy(body)
            move(-step - offset)
        move(step - rng.randint(0, 1) if step else 0)


def tried(body, move):
    def passes(step):
        move(step)
        try:
            return holds(body)
        finally:
            move(-step)

    return passes


def test_verdicts_near_the_bound_are_the_same():
    rng = random.Random(6)
    documents = [signed(body) for _ in range(400) for body in near_the_bound(rng)]
    expect = [verdict(x) for x in documents]
    for kind in KINDS:  # both verdicts, often, or this shows nothing
        seen = [e for e, x in zip(expect, documents, strict=True) if x["encoding"]["kind"] == kind]
        assert seen.count("ok") > 100 and seen.count("guarantee") > 100, (kind, len(seen))
    assert {x["policy"]["notion"] for x in documents} == {"min", "avg"}
    assert sum(bool(x["policy"]["pairs"]) for x in documents) > 200
    assert sum(x["policy"]["kind"] != "single" for x in documents) > 200
    assert sum(len(x["parts"]) > 1 for x in documents) > 200
    for got, want, x in zip(verify(documents), expect, documents, strict=True):
        assert got["code"] == want, (got, json.dumps(x))


@pytest.mark.parametrize("notion", ["min", "avg"])
def test_many_budgets_are_checked_at_their_bound(notion):
    """300 levels, in O(groups): one unit more than what Python lets pass is refused."""
    rng = random.Random(7)
    rows = [(f"L{k}", f"{1 + 3 * rng.random():.6f}1", [f"i{k}"]) for k in range(300)]
    body = unsigned(unary(rows, notion=notion))
    documents = []
    for level in rng.sample(range(300), 8):
        changed = copy.deepcopy(body)
        move = lambda step, part=changed["parts"][0], g=level: add(part, "own", g, step)  # noqa: E731
        step = last_passing(tried(changed, move), D)
        for beyond in (0, 1):
            move(step + beyond)
            documents.append(signed(copy.deepcopy(changed)))
            move(-step - beyond)
    assert (
        [x["code"] for x in verify(documents)]
        == [verdict(x) for x in documents]
        == ["ok", "guarantee"] * 8
    )


# ---- the structure is read as strictly -----------------------------------------------------------


def constant(epsilon="1", item="x", name="only", certificate=None, **policy):
    """A mechanism that tells nothing, so that its guarantee holds whatever the budget."""
    base = {**policy_of([(name, epsilon, [item, "y"])]), **policy}
    body = body_of(base, [{"chance": [D], "own": [D // 2], "other": [D // 2]}])
    return body if certificate is None else {**body, "certificate": certificate}


def words(text):
    return text.split()


EPSILONS = [
    *words(
        "1 1.0 01 00 1e1 10 0.5 .5 5. 0.50 0 0.0 -0 +1 -1 1_0 1,5 inf nan ٣ 0x10 1n ln() ln(2 "
        "LN(2) ln(-2) ln(2/0)"
    ),
    *words(
        "ln(2) ln(2/1) ln(4/2) ln(3/2) ln(2/3) ln(1) ln(1/1) ln(0) ln(02) ln(3/02) ln(1.5) ln(.5)"
    ),
    *[
        "ln(2/3/4)",
        "ln(e)",
        "ln(٣)",
        " ln(2)",
        "ln(2) ",
        "ln( 2)",
        " 1",
        "1 ",
        "1\n",
        "\t1",
        "",
        1,
        1.5,
        True,
        None,
        [],
        ["1"],
        {},
    ],
    *("0." + "0" * zeros + "1" for zeros in (28, 29)),
    *(digit * count for digit, count in (("9", 30), ("9", 31))),
    *("1" + "0" * zeros for zeros in (29, 30)),
    *("1." + "3" * digits for digits in (98, 99)),  # 100 characters and one more
    *("ln(" + "9" * digits + ")" for digits in (96, 97)),
    *[
        "5." + "0" * 29 + "1",
        "0." + "7" * 98,
        "ln(" + "9" * 47 + "/" + "8" * 47 + ")",
        "ln(" + "8" * 47 + "/" + "3" * 46 + ")",
    ],
]
DECIMALS = [
    *words(
        "0 1 10 1.5 0.5 123456789012 1234567890123 0.123456789012 0.1234567890123 1.23456789012 "
        "1.234567890123 100000000000000"
    ),
    *words(
        "123456789012000 1234567890120 0.000000000001 0.00000000000012345 00 01 1. .5 1.0 1.50 -1 "
        "+1 1e5 1E5 inf nan ١ 1_0 0x1"
    ),
    *("1" + "0" * zeros for zeros in (29, 30)),
    *("0." + "0" * zeros + "1" for zeros in (28, 29, 30)),
    *("12." + "0" * zeros + "1" for zeros in (8, 9, 10)),
    *[
        "",
        " 1",
        "1 ",
        "1\n",
        "9" * 12 + "0" * 18,
        "9" * 12 + "0" * 19,
        1,
        1.5,
        None,
        True,
        [],
        ["1"],
    ],
]
NOTES = [
    "",
    "a",
    " ",
    "x" * 400,
    "x" * 401,
    "🙂" * 400,
    "🙂" * 401,
    "\u200d",
    "a\nb",
    "a\tb",
    "a\u00a0b",
    "\u0600",
    "é",
    1,
    None,
    [],
]
LABELS = [
    *[
        "x",
        " x",
        "x ",
        " ",
        "",
        "a\tb",
        "\ue000",
        "\ufffe",
        "\uffff",
        "\ufdd0",
        "\ufdef",
        "\ufdcf",
        "\U0001fffe",
        "\U0010ffff",
    ],
    *[
        "\U000f0000",
        "🙂",
        "👩\u200d⚕",
        "می\u200cخواهم",
        "\u200d",
        " \u200c ",
        "日本語",
        "سلام",
        "e\u0301",
        "y",
        "y ",
        "Y",
        "ｙ",
    ],
    *[
        "<b>",
        "\U0001342f",
        "\U00013430",
        "\U0001343f",
        "\U00013440",
        "\U00013447",
        "\U0001345f",
        "\U00013460",
        "\u0378",
    ],
    *[
        "\U000e0001",
        "\U000e0041",
        "\U0001d173",
        "\U000110bd",
        "\ufeff",
        "\u2028",
        "\u2029",
        "\u3000",
        "\u00ad",
        "\u180e",
        1,
        None,
    ],
    *(f"a{chr(k)}" for k in range(0x3001) if not chr(k).isprintable() and category(chr(k)) != "Cn"),
]


def same_verdicts(documents):
    """Both accept or both refuse; how many were accepted."""
    found = verify(documents)
    for got, x in zip(found, documents, strict=True):
        assert got["code"] in ("ok", "mechanism", "guarantee", "fingerprint"), got
        assert (got["code"] == "ok") == (verdict(x) == "ok"), (got, verdict(x), json.dumps(x))
    return [x["code"] for x in found].count("ok")


def compare(bodies):
    """The same for bodies, signed where that is possible."""
    documents = []
    for body in bodies:
        try:
            documents.append(signed(body))
        except (UnicodeEncodeError, DiscreetError):
            documents.append({**body, "fingerprint": "0" * 64})
    return same_verdicts(documents)


def survey_verdict(document_):
    """Python's, in the module's words."""
    try:
        d.Survey.from_document(document_)
    except GuaranteeError:
        return "guarantee"
    except FingerprintError:
        return "fingerprint"
    except DiscreetError:
        return "mechanism"
    return "ok"


def same_surveys(documents):
    """Both accept or both refuse; how many were accepted."""
    documents = list(documents)
    found = node("surveys.mjs", documents)
    for got, x in zip(found, documents, strict=True):
        assert got["code"] in ("ok", "mechanism", "guarantee", "fingerprint"), got
        verdict_ = survey_verdict(x)
        assert (got["code"] == "ok") == (verdict_ == "ok"), (got, verdict_, json.dumps(x)[:2000])
    return [x["code"] for x in found].count("ok")


def test_budgets_have_one_spelling():
    assert compare(constant(epsilon=x) for x in EPSILONS) == 13
    pairs = [constant(pairs=[{"levels": ["only", "only"], "epsilon": x}]) for x in EPSILONS]
    assert compare(pairs) == 14  # and "", which is no protection


def test_certificates_have_one_spelling():
    good = {"value": "1.5", "lower_bound": "1.25", "note": ""}
    unbounded = {**good, "lower_bound": ""}
    assert compare(constant(certificate={**unbounded, "value": x}) for x in DECIMALS) == 19
    huge = {**good, "value": "9" * 12 + "0" * 18}
    assert (
        compare(constant(certificate={**huge, "lower_bound": x}) for x in DECIMALS) == 20
    )  # and "": none is known
    bounds = ["1.49999999999", "1.5", "1.50000000001", "2", "0", "10"]
    assert compare(constant(certificate={**good, "lower_bound": x}) for x in bounds) == 3
    assert compare(constant(certificate={**good, "note": x}) for x in NOTES) == 7
    changes = [
        {**good, "more": ""},
        {**good, "objective": ""},
        {},
        [],
        None,
        "x",
        {"value": "1", "note": ""},
    ]
    assert (
        compare(
            constant(certificate=x) if x is not None else {**constant(), "certificate": None}
            for x in changes
        )
        == 0
    )


def test_labels_and_names():
    for key in ("item", "name"):
        assert compare(constant(**{key: x}) for x in LABELS) > 15
    body = constant()
    assert same_surveys(asking(body, x) for x in LABELS) > 15
    assert compare({**body, "policy": {**body["policy"], "question": x}} for x in LABELS) >= 30


UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u2800"  # below U+3000, of the category of a letter or so


def test_every_printable_character_below_u3000_may_be_in_a_label():
    """But for those that show nothing, and are needed by nobody."""
    seen = [chr(k) for k in range(33, 0x3000) if chr(k).isprintable() and chr(k) not in UNSEEN]
    labels = [f"{k} {c}" for k, c in enumerate(seen)]
    assert compare([constant(items=labels, level_of=[0] * len(labels))]) == 1
    assert compare(constant(item=f"a{c}b") for c in UNSEEN) == 0


def test_texts_that_people_read():
    cases = vectors("texts")
    for key, expected in (("item", "label"), ("name", "label"), ("question", "question")):
        found = verify([signed(constant(**{key: case["text"]})) for case in cases])
        for case, got in zip(cases, found, strict=True):
            assert got["code"] == ("ok" if case[expected] else "mechanism"), (case, got)
    note = {"value": "1", "lower_bound": "", "note": "x"}
    inside = [case for case in cases if case["text"].startswith("a")]  # a note may be empty
    found = verify([signed(constant(certificate={**note, "note": x["text"]})) for x in inside])
    assert [got["code"] == "ok" for got in found] == [case["label"] for case in inside]


def test_labels_that_look_the_same():
    """Two in one question are refused, and a question with one of them knows the other."""
    cases = vectors("pairs")
    both = [[case["first"], case["second"]] for case in cases]
    found = verify([signed(constant(items=x, level_of=[0, 0])) for x in both])
    expected = ["mechanism" if case["same"] else "ok" for case in cases]
    assert [got["code"] for got in found] == expected
    assert all(
        case["same"] == ("look the same" in got.get("message", ""))
        for case, got in zip(cases, found, strict=True)
    )
    asked = [
        [signed(constant(items=[label, f"nr. {k}"], level_of=[0, 0])) for k, label in enumerate(x)]
        for x in both
    ]
    assert node("labels.mjs", asked) == [case["same"] for case in cases]


def test_no_other_letter_is_folded():
    """Every letter below U+0530 beside all plain letters and digits: refused by both or neither."""
    plain = [chr(k) for k in range(33, 127) if chr(k).isalnum() and not chr(k).isupper()]
    level_of = [0] * (len(plain) + 1)
    points = [chr(k) for k in range(0xA1, 0x530)]
    found = compare(constant(items=[*plain, c], level_of=level_of) for c in points)
    assert len(points) - 150 < found < len(points) - 80


def test_every_code_point_gets_the_same_verdict():
    """But for the few that Unicode has assigned since: Node's tables and Python's are
    of different years.
    """
    blocks = [
        *range(0, 0x3000, 7),
        *range(0x3000, 0x110000, 997),
        *range(0xE0000, 0xE0200, 5),
        *range(0x13400, 0x13480),
    ]
    points = [k for k in blocks if not 0xD800 <= k < 0xE000 and k > 32]
    assert 1000 < compare(constant(item=f"a{chr(k)}") for k in points) < len(points) - 20


def test_half_a_surrogate_pair_is_refused():
    bodies = [
        constant(item="\ud800"),
        constant(name="x\udfff"),
        constant(question="\ud83d"),
        {**constant(), "\ud83d": 1},
    ]
    assert compare(bodies) == 0


STRANGE = [
    "open",
    "one-way",
    "blocks",
    "scale",
    *[
        0,
        1,
        2,
        -1,
        0.5,
        2.0,
        3,
        5,
        D - 1,
        D,
        D + 1,
        2**53 - 1,
        2**53 + 2,
        10**30,
        True,
        False,
        None,
        [],
        [0],
        [[0]],
        {},
        {"a": 1},
    ],
    *[
        "",
        "0",
        "1",
        "x",
        "set",
        "single",
        "min",
        "avg",
        "bits",
        "fixed",
        "ticket",
        "hits",
        "each",
        "item",
        "subset",
        "toString",
        "__proto__",
        "length",
    ],
]


HIDDEN = [
    x for x in STRANGE if not (isinstance(x, float | int) and (x > 2**53 or x % 1))
]  # see the test of what is hidden


def item_places(body):
    found = []

    def walk(value, path):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((*path, key))
            if isinstance(value[key], dict | list):
                walk(value[key], (*path, key))

    walk(body, ())
    return found


def mutate(rng, body):
    """The body with one value replaced, moved a little, removed, doubled, swapped or
    added anywhere.
    """
    changed = copy.deepcopy(body)
    *inner, key = rng.choice(item_places(body))
    home = changed
    for step in inner:
        home = home[step]
    action = rng.choice(["replace", "replace", "nudge", "remove", "double", "add", "swap"])
    if action == "nudge" and type(home[key]) is int:
        home[key] += rng.choice((-2, -1, 1, 2))
    elif action in ("replace", "nudge"):
        home[key] = rng.choice(STRANGE)
    elif action == "remove":
        del home[key]
    elif action == "swap":
        other = rng.choice(list(home) if isinstance(home, dict) else range(len(home)))
        home[key], home[other] = home[other], home[key]
    elif isinstance(home, list):
        home.insert(key, copy.deepcopy(home[key])) if action == "double" else home.append(
            rng.choice(STRANGE)
        )
    else:
        keys = ["extra", "__proto__", "constructor", "none", "weight", "q", "", "cap", "one_way"]
        home[rng.choice(keys)] = rng.choice(STRANGE)
    return changed


ORDERED = ("five-open-subset", "seven-open-ticket", "six-mixed-subset", "five-freed-subset",
           "seven-blocks-subset", "five-scale-cap-subset", "toy-one-way-each-one")  # fmt: skip


def seeds():
    """Small mechanisms of every encoding and input, with pairs and a certificate."""
    certificate = {"value": "12.5", "lower_bound": "", "note": "not certified"}
    policy = policy_of(
        [("a", "1", ["x", "z"]), ("b", "ln(3)", ["y"])],
        pairs=[{"levels": ["a", "b"], "epsilon": ""}],
    )
    parts = [{"chance": [D, D], "own": [D // 2 + 9, D // 2], "other": [D // 2, D // 2 - 7]}]
    made = [unsigned(small(kind, sets)) for kind, sets in product(KINDS, (False, True))]
    rows, half = [("a", "ln(2)", ["x", "z"]), ("b", "ln(3)", ["y"])], D // 2
    hits = handmade.hits_of(rows, 5, 2, [([1, 1], 2, [0, 1], half), ([0, 1], 1, [0, 0], half)])
    return [
        *made,
        constant(certificate=certificate),
        body_of(policy, parts),
        unsigned(small("bits", several=False)),
        unsigned(hits),
        unsigned(handmade.each_of(rows, [half, half + 9], [half - 9, D // 3])),
        constant(last=["y"]),
        *(unsigned(GOOD[name]) for name in ORDERED),
    ]


@pytest.mark.parametrize(
    ("seed", "n"), [(8, 1_200), pytest.param(9, 4_000, marks=pytest.mark.slow)]
)
def test_mutated_documents_get_the_same_verdict(seed, n):
    rng = random.Random(seed)
    bodies = [mutate(rng, rng.choice(seeds())) for _ in range(n)]
    bodies += [mutate(rng, mutate(rng, rng.choice(seeds()))) for _ in range(n // 6)]
    assert n / 30 < compare(bodies) < n / 1.5


def test_a_huge_group_is_refused():
    assert compare([{**constant(), "groups": [10**15]}]) == 0


NUMBER = re.compile(rb"(?<=[:\[,])-?\d+(?=[,\]}])")
SPELLINGS = [
    *[
        "{}.0",
        "{}e0",
        "{}E+0",
        "{}.000",
        "{}0e-1",
        "-{}",
        "+{}",
        "0{}",
        "{}.",
        "{}.5",
        "{}n",
        "{}e",
        "{}_0",
        "0x{}",
    ],
    *[
        '"{}"',
        "[{}]",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-0",
        "-0.0",
        "1e-400",
        "0e5",
        "true",
        "null",
    ],
    *[
        "9007199254740992",
        "9007199254740991",
        "{}00000000000000000000000000000",
        "{}.0000000000000000000001",
    ],
    *["{}.9999999999999999999999", "9" * 5000, "4.294967296e9"],
]
AROUND = [
    *[
        b"\xef\xbb\xbf%s",
        b"\xef\xbb\xbf\xef\xbb\xbf%s",
        b"%s\xef\xbb\xbf",
        b" \n\t\r%s \n",
        b"\x0b%s",
        b"\x0c%s",
        b"\xc2\xa0%s",
    ],
    *[
        b"%s,",
        b"%s%%",
        b"[%s]",
        b"%s{}",
        b"\x00%s",
        b"%s\x00",
        b"%s\xff",
        b"\xff\xfe%s",
        b"/**/%s",
        b"%s//",
        b"\xe2\x80\xa8%s",
    ],
]
INSIDE = [
    *[
        b"\\u0061",
        b"\\ud83d\\ude42",
        b"\\ud83d",
        b"\\ude42\\ud83d",
        b"\\/",
        b"\\x61",
        b"\\",
        b"\n",
        b"\t",
        b"\x7f",
        b"\\u00",
    ],
    *[
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xff",
        b"\xc3\xa9",
        b"\\u00e9",
        b"\xf0\x9f\x99\x82",
    ],
    *[b"\xef\xbb\xbf", b'"', b"\\u0000"],
]


def raw_mutations(rng, body):
    """Bytes of a file, signed for what they mean where they mean the same."""
    document_ = signed(body)
    raw = json.dumps(document_, separators=(",", ":"), ensure_ascii=rng.random() < 0.5).encode()
    spots = [m.span() for m in NUMBER.finditer(raw)]
    for spelling in rng.sample(SPELLINGS, 12):
        start, end = rng.choice(spots)
        yield raw[:start] + spelling.format(raw[start:end].decode()).encode() + raw[end:]
    for form in rng.sample(AROUND, 4):
        yield form % raw
    for inside in rng.sample(INSIDE, 6):
        yield raw.replace(b'"name":"', b'"name":"' + inside, 1)
    keys = [m.span(1) for m in re.finditer(rb'("[a-z_]+"):', raw)]
    for _ in range(8):  # a key twice: the last counts
        start, end = rng.choice(keys)
        yield (
            raw[:start]
            + raw[start:end]
            + b":"
            + json.dumps(rng.choice(HIDDEN)).encode()
            + b","
            + raw[start:]
        )
    for _ in range(8):
        at = rng.randrange(len(raw))
        yield (
            raw[:at]
            + rng.choice((b"", raw[at : at + 1] * 2, bytes([rng.randrange(256)])))
            + raw[at + 1 :]
        )
    yield from (
        raw.decode().encode("utf-16"),
        raw.decode().encode("utf-32"),
        raw[: rng.randrange(len(raw))],
        b"",
        b"null",
        b"[" * 99999,
    )


def respelled(rng):
    """A file whose labels, names and texts are what the bytes inside mean, with its fingerprint."""
    for inside in INSIDE:
        body = constant()
        try:
            text = json.loads(b'"' + inside + b'"')
        except ValueError:
            continue
        body["policy"]["question"] = f"mark{text}"
        try:
            raw = json.dumps(signed(body), ensure_ascii=False).encode()
        except (UnicodeEncodeError, DiscreetError):
            raw = json.dumps({**body, "fingerprint": "0" * 64}).encode()
        yield raw.replace(b'"mark' + text.encode(errors="surrogatepass"), b'"mark' + inside, 1)


def test_mutated_files_get_the_same_verdict():
    rng = random.Random(11)
    files = [x for _ in range(8) for body in seeds() for x in raw_mutations(rng, body)]
    files += [x for _ in range(10) for x in respelled(rng)]
    found = verify_files(files)
    for got, raw in zip(found, files, strict=True):
        assert got["code"] in ("ok", "mechanism", "guarantee", "fingerprint"), (got, raw[:3000])
        assert (got["code"] == "ok") == (file_verdict(raw) == "ok"), (
            got,
            file_verdict(raw),
            raw[:3000],
        )
    codes = Counter(x["code"] for x in found)
    assert len(files) > 3000 and min(codes[x] for x in ("ok", "mechanism", "fingerprint")) > 300, (
        codes
    )


@pytest.mark.parametrize("value", ["0.5", "9007199254740992", '"uniform"'])
def test_a_repeated_key_is_refused(value):
    """Also one that is right twice, and where a label looks like keys."""
    whole = json.dumps(signed(constant()))
    raw = whole.replace('"prior":', f'"prior": {value}, "prior":', 1).encode()
    assert verify_files([whole.encode(), raw])[1]["code"] == "mechanism"
    assert file_verdict(raw) == "mechanism"


def test_labels_that_look_like_keys_are_no_keys():
    good = [x["document"] for x in vectors("mechanisms") if x["expect"] == "ok"]
    raw = [json.dumps(x).encode() for x in good]
    assert any(rb"a\": 1, \"a\": 2" in x for x in raw)
    assert {x["code"] for x in verify_files(raw)} == {"ok"}


@pytest.mark.parametrize("raw", [None, 1, "x", [], [1], True])
def test_what_is_no_document_is_refused(raw):
    assert verify([raw])[0]["code"] == "mechanism"


def test_pinned_fingerprints():
    toy = small("fixed")
    good, other = toy["fingerprint"], "0" * 64
    cases = [
        (None, "ok"),
        (good, "ok"),
        (other, "pinned"),
        (good.upper(), "pinned"),
        (good[:32], "pinned"),
        ("", "pinned"),
    ]
    found = node("verify.mjs", [{"document": toy, "pinned": pinned} for pinned, _ in cases])
    assert [x["code"] for x in found] == [code for _, code in cases]
    # what is pinned is the content, not what the document says of itself
    changed = {**toy, "policy": {**toy["policy"], "question": "?"}}
    (found,) = node("verify.mjs", [{"document": {**changed, "fingerprint": good}, "pinned": good}])
    assert found["code"] == "fingerprint"
    (found,) = node("verify.mjs", [{"document": signed(changed), "pinned": good}])
    assert found["code"] == "pinned"


# ---- planted faults ------------------------------------------------------------------------------

FAULTS = {
    "a chance of 0": lambda part, _: part["chance"].__setitem__(0, 0),
    "chances that do not sum": lambda part, _: part["chance"].__setitem__(0, part["chance"][0] - 1),
    "a negative chance": lambda part, _: part["chance"].__setitem__(0, -part["chance"][0]),
    "own of 1": lambda part, g: part["own"].__setitem__(g, D),
    "own of 0": lambda part, g: part["own"].__setitem__(g, 0),
    "other of 0": lambda part, g: part["other"].__setitem__(g, 0),
    "other of 1": lambda part, g: part["other"].__setitem__(
        g, {"fixed": 7, "bits": D, "ticket": 5}[part["kind"]]
    ),
    "own of a silent group": lambda part, g: (
        part["own"].__setitem__(g, 5),
        part["other"].__setitem__(g, 0),
    ),
    "none of 0": lambda part, _: part.update(none=0),
    "none that does not sum": lambda part, _: part.update(none=part["none"] + 1),
}


@pytest.mark.parametrize(("kind", "name"), [*product(KINDS, FAULTS)])
def test_planted_faults_are_refused(kind, name):
    body = unsigned(small(kind, sets=True))
    part = body["parts"][0]
    part["kind"] = kind
    FAULTS[name](part, 1)
    del part["kind"]
    (found,) = verify([signed(body)])
    assert found["code"] == verdict(signed(body)) == "guarantee", found


def test_an_item_alone_is_silent_in_a_subset():
    body = unsigned(small("fixed"))
    body["parts"][0]["own"][2], body["parts"][0]["other"][2] = D // 2, 1
    assert verify([signed(body)])[0]["code"] == verdict(signed(body)) == "guarantee"


# ---- reports, exactly: Web Crypto is scripted ----------------------------------------------------


def scripted(jobs):
    """[(document, [(answer, draws)])] -> the reports."""
    payload = [
        {"document": x, "cases": [{"answer": answer, "draws": y} for answer, y in cases]}
        for x, cases in jobs
    ]
    return [[bytes.fromhex(x["report"]) for x in row] for row in node("scripted.mjs", payload)]


def limit(bound):
    return D // bound * bound


def edges(numerators):
    """Every way to fall on either side of every numerator, by one unit: (draws, which
    were below).
    """
    for below in product((True, False), repeat=len(numerators)):
        yield [n - 1 if y else n for n, y in zip(numerators, below, strict=True)], below


def make_parts(document_, group):
    """(part, its draw) for the first and the last draw of every part, for a group
    (None: nothing held); one part needs no draw.
    """
    chances = [
        part["none"] if group is None else part["chance"][group] for part in document_["parts"]
    ]
    bounds = [sum(chances[:k]) for k in range(len(chances) + 1)]
    for k, (low, high) in enumerate(pairwise(bounds)):
        yield from ((k, [low]), (k, [high - 1])) if len(chances) > 1 else ((k, []),)


def held_of(document_):
    """(the answer, draws that sample it, the item held or None) of every item, and of nothing."""
    m = len(document_["policy"]["items"])
    if document_["policy"]["kind"] == "single":
        return [(item, [], item) for item in range(m)]
    return [*(([item], [0], item) for item in range(m)), ([], [1], None), ([3], [2], None)]


def packed(document_, part, items):
    number = sum(1 << item for item in items)
    m = len(document_["policy"]["items"])
    return (bytes([part]) if len(document_["parts"]) > 1 else b"") + number.to_bytes(
        -(-m // 8), "little"
    )


def bits_cases(rng, document_, off=0):
    """Draws at the numerators themselves: a bit is 1 exactly below. Patterns of bits at
    random, all-0 and all-1 among them.
    """
    cases, expect, of = [], [], groups_of(document_)
    for answer, sample, held in held_of(document_):
        group = None if held is None else of[held]
        for k, front in make_parts(document_, group):
            part = document_["parts"][k]
            own = [] if held is None or not part["own"][group] else [held]
            order = [
                *own,
                *(i for i, g in enumerate(of) if i != held and part["other"][g]),
            ]  # the own bit is drawn first
            for pattern in (0, -1, *(rng.getrandbits(10) for _ in range(6))):
                ones = [i for i in order if pattern >> i & 1]
                numerators = [part["own" if i == held else "other"][of[i]] + off for i in order]
                draws = [n - 1 if i in ones else n for i, n in zip(order, numerators, strict=True)]
                cases.append((answer, sample + front + draws))
                expect.append(packed(document_, k, ones))
    return cases, expect


def test_a_bit_is_one_exactly_below_its_numerator():
    """Every part and held item: with the draws at the numerators themselves, nothing is sampled."""
    rng = random.Random(9)
    documents = [small("bits", sets, several) for sets, several in product((False, True), repeat=2)]
    jobs = [(x, *bits_cases(rng, x)) for x in documents]
    assert scripted([(x, cases) for x, cases, _ in jobs]) == [expect for _, _, expect in jobs]
    twin, expect = bits_cases(rng, documents[0], off=1)
    assert scripted([(documents[0], twin)]) != [expect]


def test_a_subset_is_uniform_over_all_draws():
    """All draws of the subsets of one part, each once: every report comes exactly as
    often as its probability says.
    """
    jobs, expected = [], []
    for sets, several in product((False, True), repeat=2):
        document_ = small("fixed", sets, several)
        for answer, sample, held in held_of(document_):
            if held in (0, 2, 5, 9, None):
                for cases, law in all_draws(document_, answer, sample, held):
                    jobs.append((document_, cases))
                    expected.append(law)
    for found, (reports, often) in zip(scripted(jobs), expected, strict=True):
        counts = Counter(found)
        assert len(counts) == len(reports) and set(counts.values()) == {often}
        assert set(counts) == reports


def all_draws(document_, answer, sample, held):
    """Per part and side of the own item: all draws, the reports, and how often each must come."""
    of = groups_of(document_)
    group = None if held is None else of[held]
    for k, front in [*make_parts(document_, group)][::2]:
        part = document_["parts"][k]
        speaks = held is not None and part["own"][group] > 0
        for own in (True, False) if speaks else (False,):
            bounds, sizes = [], []
            for g, wanted in enumerate(part["other"]):
                mine = speaks and g == group
                n, kept = of.count(g) - mine, wanted - (mine and own)
                if wanted:
                    bounds += range(n - kept + 1, n + 1)
                    sizes.append((g, n, kept))
            head = sample + front + ([part["own"][group] - own] if speaks else [])
            cases = [(answer, head + list(x)) for x in product(*map(range, bounds))]
            reports = {
                packed(document_, k, x)
                for x in subsets_of(of, sizes, held if speaks else None, own)
            }
            possible = prod(comb(n, kept) for _, n, kept in sizes)
            assert len(reports) == possible
            yield cases, (reports, prod(bounds) // possible)


def subsets_of(of, sizes, held, own):
    """Every subset with so many items of every group, around the held item."""
    each = [
        combinations([i for i, x in enumerate(of) if x == g and i != held], kept)
        for g, _, kept in sizes
    ]
    return [
        [*([held] if own else []), *(i for x in chosen for i in x)] for chosen in product(*each)
    ]


def test_draws_of_an_incomplete_round_are_thrown_away():
    """In subsets, tickets and samples: the draws at and beyond the last multiple of the bound."""
    document_ = small("fixed", several=False)
    part = document_["parts"][0]
    own = [part["own"][1] - 1]
    plain, rejected = own + [1, 3, 0, 2], own + [1]
    bounds = [2, 4, 5, 6]  # of a group of 2 one; of the other 6 of 7 the other three
    for bound, draw in zip(bounds[1:], [3, 0, 2], strict=True):
        rejected += [x for x in (limit(bound), D - 1) if limit(bound) < D] + [draw]
    (found,) = scripted([(document_, [(1, plain), (1, rejected), (1, plain + [7])])])
    assert len(set(found)) == 1


def ticket_of(document_, item, mark, y):
    """y_0 that gives the item its mark, then y_1 … y_t, as one number (by the
    contract's formula).
    """
    q, t = document_["encoding"]["q"], document_["encoding"]["t"]
    digits = [item // q**j % q for j in range(t)]
    code = [digits[0], *((digits[j] + digits[0] ** (j + 1)) % q for j in range(1, t))]
    first = (mark - sum(a * b for a, b in zip(code, y, strict=True))) % q
    return sum(x * q ** (t - j) for j, x in enumerate([first, *y]))


def ticket_cases(rng, document_, each=12):
    cases, expect, of = [], [], groups_of(document_)
    q, t = document_["encoding"]["q"], document_["encoding"]["t"]
    tickets = q ** (t + 1)
    for answer, sample, held in held_of(document_):
        group = None if held is None else of[held]
        for (k, front), _ in product(make_parts(document_, group), range(each)):
            part = document_["parts"][k]
            if held is None or not part["own"][group]:  # any ticket, whatever the item
                number = rng.choice([0, tickets - 1, rng.randrange(tickets)])
                thrown = rng.choice([[], [limit(tickets)], [D - 1]]) if limit(tickets) < D else []
                draws = [
                    *thrown,
                    rng.choice([number, number + tickets, limit(tickets) - tickets + number]),
                ]
            else:
                below = rng.random() < 0.5
                low, end = (0, part["other"][group]) if below else (part["other"][group], q)
                mark, y = rng.randrange(low, end), [rng.randrange(q) for _ in range(t)]
                span = end - low
                thrown = [limit(span)] if limit(span) < D and rng.random() < 0.5 else []
                draws = [part["own"][group] - below, *thrown, limit(span) - span + mark - low]
                draws += [
                    x
                    for digit in y
                    for x in (*rng.choice([[], [D - 1]]), rng.choice([digit, digit + q]))
                ]
                number = ticket_of(document_, held, mark, y)
            cases.append((answer, sample + front + draws))
            expect.append((k * tickets + number).to_bytes(4, "little"))
    return cases, expect


def test_tickets_are_pythons_integers():
    rng = random.Random(9)
    documents = [
        small("ticket", sets, several) for sets, several in product((False, True), repeat=2)
    ]
    part = {"chance": [D], "own": [D // 2 + 5], "other": [20]}
    many = policy_of([("all", "9", [f"i{k}" for k in range(3000)])])
    documents += [
        signed(body_of(many, [part], {"kind": "ticket", "q": q, "t": t}))
        for q, t in ((61, 3), (37, 4), (1621, 2))
    ]
    jobs = [(x, *ticket_cases(rng, x, each=2 if len(x["groups"]) == 1 else 12)) for x in documents]
    assert (D - 1) >= limit(61)  # the draw that is thrown away above
    assert scripted([(x, cases) for x, cases, _ in jobs]) == [expect for _, _, expect in jobs]


def test_sets_are_padded_and_sampled_by_rejection():
    """One of max(|x|, padding) places; draws from the last incomplete round are thrown away."""
    document_ = small("bits", sets=True, several=False)
    part, of, items = document_["parts"][0], groups_of(document_), document_["policy"]["items"]
    cases, expect = [], []
    for answer in ([], [2], [items[5], 0], [3, 1, 0, 2], [1, 1, items[1]]):
        chosen = list(dict.fromkeys(items.index(x) if isinstance(x, str) else x for x in answer))
        places = max(len(chosen), 3)
        for draw in (0, 1, 2, 3, places, limit(places) - 1):
            held = chosen[draw % places] if draw % places < len(chosen) else None
            order = [*([held] if held is not None else []), *(i for i in range(10) if i != held)]
            numerators = [part["own" if i == held else "other"][of[i]] for i in order]
            for thrown in ([], [limit(places)] * 2 if limit(places) < D else []):
                for draws, below in [*edges(numerators)][::37]:
                    cases.append((answer, [*thrown, draw, *draws]))
                    expect.append(
                        packed(
                            document_, 0, [i for i, bit in zip(order, below, strict=True) if bit]
                        )
                    )
    assert scripted([(document_, cases)]) == [expect]


def test_long_reports_draw_in_pieces():
    """20,000 bits are more random words than Web Crypto gives at once."""
    other, own = D // 3, D // 2
    policy = policy_of([("all", "2", [f"i{k}" for k in range(20_000)])])
    document_ = signed(body_of(policy, [{"chance": [D], "own": [own], "other": [other]}]))
    rng = random.Random(10)
    bits = [rng.random() < 0.5 for _ in range(20_000)]
    draws = [own - bits[-1], *(other - bit for bit in bits[:-1])]
    expect = np.packbits(bits, bitorder="little").tobytes()
    # The marker 0xdeadbeef is above both: a word that was skipped or read twice would be seen.
    assert scripted([(document_, [(19_999, draws)])]) == [[expect]]


# ---- reports, in distribution --------------------------------------------------------------------

SETTINGS = [
    (kind, sets, several) for kind in KINDS for sets in (False, True) for several in (False, True)
]
EACH = 6000


def answers_of(sets):
    """The first and the last item, two of one group, one that is alone; sets: none,
    more than the padding.
    """
    return [[], [0], [9], [0, 9], [1, 2, 5, 9]] if sets else [[0], [1], [2], [9]]


@cache
def drawn():
    """24,000 reports or more of every setting, from one Node process."""
    jobs = {x: small(*x) for x in SETTINGS}
    payload = [
        {
            "document": y,
            "answers": answers_of(x[1]) if x[1] else [k for (k,) in answers_of(False)],
            "each": EACH,
        }
        for x, y in jobs.items()
    ]
    found = node("perturb.mjs", payload)
    return {key: base64.b64decode(rows) for key, rows in zip(jobs, found, strict=True)}


def chances_of(document_, answer):
    """Pr(report) of an answer, by the enumeration that the other tests use."""
    if document_["policy"]["kind"] == "single":
        return distribution(document_, answer[0])
    places = max(len(answer), document_["padding"])
    total = Counter()
    for held, share in [
        *((i, Fraction(1, places)) for i in answer),
        (None, 1 - Fraction(len(answer), places)),
    ]:
        if share:
            for report, chance in distribution(document_, held).items():
                total[report] += share * chance
    return total


@cache
def moments(setting, place):
    """Chances of the parts, of every item to be named in a part, and of every two of
    them, exactly.
    """
    document_ = small(*setting)
    chances = chances_of(document_, answers_of(setting[1])[place])
    reports = list(chances)
    weights = np.array([float(x) for x in chances.values()])
    features = features_of(document_, reports)
    return weights @ features


def features_of(document_, reports):
    """Per report: which part, which item of which part, which two of them, as 0 and 1."""
    coder, parts = Mechanism.from_document(document_).coder, len(document_["parts"])
    named = np.zeros((len(reports), 10))
    part = np.zeros(len(reports), int)
    for row, report in enumerate(reports):
        assert coder.refusal(report) is None
        named[row, coder.named(report)] = 1
        number = int.from_bytes(report, "little")
        part[row] = (
            number // 125
            if document_["encoding"]["kind"] == "ticket"
            else report[0]
            if parts > 1
            else 0
        )
    pairs = np.stack([named[:, i] * named[:, j] for i, j in combinations(range(10), 2)], axis=1)
    each = np.concatenate([np.ones((len(reports), 1)), named, pairs], axis=1)
    return np.concatenate([each * (part == k)[:, None] for k in range(parts)], axis=1)


def check_moments(setting, found, expected, shift=0.0):
    """Every frequency is one that its chance allows, but for 1e-7; a rare one is never far off."""
    common = (
        (EACH * expected * (1 - expected) >= 50) | (expected <= 1e-12) | (expected >= 1 - 1e-12)
    )
    chances = np.clip(expected + shift, 0, 1).round(12)
    assert_binomial(np.rint(found * EACH)[common], EACH, chances[common])
    assert (np.abs(found - expected)[~common] * EACH < 100).all()


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda x: f"{x[0]}-{'set' if x[1] else 'single'}-{3 if x[2] else 1}"
)
def test_every_bit_and_every_pair_of_bits(setting):
    """Frequencies of parts, items and pairs of items against the exact enumeration;
    each with its twin.
    """
    document_, rows = small(*setting), drawn()[setting]
    size = Mechanism.from_document(document_).report_size
    reports = [rows[k : k + size] for k in range(0, len(rows), size)]
    answers = answers_of(setting[1])
    assert len(reports) == EACH * len(answers)
    for place in range(len(answers)):
        features = features_of(document_, reports[place * EACH : (place + 1) * EACH])
        expected = moments(setting, place)
        found = features.mean(axis=0)
        check_moments(setting, found, expected)
        shift = float(detectable(EACH, 0.5, z_for(found.size)))
        moved = np.where((expected > 0.1) & (expected < 0.9), expected + shift, expected)
        must_fail(check_moments, setting, found, moved)
        other = moments(setting, (place + 1) % len(answers))  # what someone else's report would be
        if np.abs(other - expected).max() > 2 * shift:
            must_fail(check_moments, setting, found, other)
    linked = features.copy()
    linked[::3] = linked[0]  # one report sent again and again
    must_fail(check_moments, setting, linked.mean(axis=0), expected)


# ---- answers, ledger and client ------------------------------------------------------------------


def names(script):
    """The checks of a script, by name; a name in backticks stands for several."""
    return re.findall(
        r'await checks\.check\(\s*"([^"]+)"', (HERE / "node" / script).read_text(encoding="utf-8")
    )


def plain(m, encoding, own, other, **more):
    """One level of m items and one part."""
    part = {
        "chance": [D],
        "own": [own],
        "other": [other],
        **({"none": D} if more.get("kind") == "set" else {}),
    }
    labels = ["HIV", "anemia", "headache"] if m == 3 else [f"i{k}" for k in range(m)]
    return signed(body_of(policy_of([("only", "60", labels)], **more), [part], encoding, padding=1))


TOY = [("serious", "ln(4)", ["HIV"]), ("common", "ln(6)", ["anemia", "headache"])]
MEANINGS = {
    "toy": {
        "report": "06",
        "part": 0,
        "named": [1, 2],
        "sentence": "For each of 3 answers it was drawn at random whether the report names "
        "it; it names 2: "
        "your own answer is named with a chance of 64 % to 70 %, one that is not yours with about "
        "30 % to 36 %.",
    },
    "thousand": {
        "report": "ff" * 25 + "00" * 100,
        "part": 0,
        "named": list(range(200)),
        "sentence": "The report names 200 of 1,000 answers, drawn at random: your own "
        "answer is named with a "
        "chance of 50 %, one that is not yours with about 20 %.",
    },
    "parts": {
        "report": "006b00",
        "part": 0,
        "named": [0, 1, 3, 5, 6],
        "sentence": "The report names 5 of 9 answers, drawn at random: your own answer, if "
        "it is one of these, is "
        "named with a chance of 56 % to 63 %, one that is not yours with about 44 % to 57 %. It "
        "says nothing about "
        "1 of the answers, and is one of 3 kinds, drawn at random with chances that depend on "
        "your answer.",
    },
    "grr": {
        "report": "080000000000",
        "part": 0,
        "named": [3],
        "sentence": "The report names 1 of 41 answers, drawn at random: your own answer is "
        "named with a chance of "
        "50 %, one that is not yours with about 1.3 %.",
    },
    "empty": {
        "report": "0100",
        "part": 1,
        "named": [],
        "sentence": "The report names no answer, whatever yours is. It is one of 2 kinds, "
        "drawn at random with "
        "chances that depend on your answer.",
    },
}


@cache
def module_checks():
    rng = random.Random(3)
    many = [(f"L{k}", f"{1 + 3 * rng.random():.6f}1", [f"item {k}"]) for k in range(16_470)]
    silent = {"chance": [D // 2], "own": [0], "other": [0]}
    documents = {
        "single": plain(3, "bits", D - 1, 1),
        "sets": plain(3, "bits", D - 1, 1, kind="set"),
        "toy": unary(TOY),
        "hits": handmade.hits_of([("all", "ln(3)", "abcd")], 5, 2, [([1], 2, [0, 0], D)]),
        "min": unary(many),
        "avg": unary(many, notion="avg"),
        "kosarak": plain(41_270, "bits", D // 2, D // 3),
        "thousand": plain(1000, "fixed", D // 2, 200),
        "tickets": plain(41_270, {"kind": "ticket", "q": 61, "t": 3}, D // 2, 20),
        "parts": small("fixed"),
        "grr": plain(41, "fixed", D // 2, 1),
        "empty": signed(body_of(policy_of([("only", "1", ["x", "y"])]), [silent, silent], "fixed")),
    }
    return node("module.mjs", {**documents, "meanings": MEANINGS})


@pytest.mark.parametrize("name", names("module.mjs"))
def test_module(name):
    assert module_checks()[name] is None, module_checks()[name]


def crossed(first, second):
    """The cross of two mechanisms' questions, by `unary`."""
    one, two = (Policy.from_canonical(x["policy"]) for x in (first, second))
    cells = cross(one, two)
    return unary(
        [
            (
                level.name,
                level.budget.text,
                [x for x, j in zip(cells.items, cells.level_of) if j == k],
            )
            for k, level in enumerate(cells.levels)
        ],
        items=list(cells.items),
        level_of=list(cells.level_of),
    )


@cache
def ledger_checks():
    documents = {
        "toy": unary(
            [
                ("serious", "ln(4)", ["HIV"]),
                ("common", "ln(6)", ["anemia", "headache", "toothache"]),
            ]
        ),
        "spelled": unary(
            [("all", "1", ["\uff28\uff29\uff36", "Head Ache"]), ("less", "2", ["  ANEMIA"])]
        ),
        "respelled": unary([("all", "1", ["head   ache", "other"])]),
        "apart": unary([("all", "1", ["HIV test", "anaemia"])]),
        "street": unary([("all", "1", ["straße", "ΟΔΟΣ", "FIT", "İl"])]),
        "streets": unary([("all", "1", ["STRASSE", "οδος", "ﬁt", "el"])]),
        "twice": unary([("all", "1", ["HIV", "else"]), ("less", "2", ["hi"])]),
        "strict": unary([("all", "0.1", ["HIV", "nothing"])]),
        "sets": unary([("all", "1", ["HIV", "none"])], kind="set"),
        "hits": handmade.hits_of([("all", "ln(3)", "abcd")], 5, 2, [([1], 2, [0, 0], D)]),
        "each": handmade.each_of([("all", "ln(3)", "abcd")], [D // 2], [D // 3]),
        "clinic": unary([("all", "1", ["HIV clinic", "elsewhere"])]),
        "nobody": unary([("all", "1", ["x", "y"])]),
        "letters": unary([("all", "5", ["x", "y"])]),
    }
    documents["cells"] = crossed(documents["toy"], documents["strict"])
    (part,) = documents["sets"]["parts"]
    whole = {
        # named against not named; "none" lies between
        "sets": 2 * log(part["own"][0] / part["other"][0]),
        "hits": log(handmade.set_factor(documents["hits"])),
        "each": 4 * log(handmade.each_factors(documents["each"])[0]),
    }
    return node("ledger.mjs", {"documents": documents, "whole": whole})


@pytest.mark.parametrize("name", names("ledger.mjs"))
def test_ledger(name):
    assert ledger_checks()[name] is None, ledger_checks()[name]


def sealed(body):
    return {**body, "fingerprint": Survey.fingerprint_body(body)}


def asking(mechanism, name, **more):
    """A survey of one question."""
    rows = [{"name": "question", "mechanism": unsigned(mechanism)}]
    body = {"format": "discreet-survey/1", "name": name, "answers": 1, "questions": rows}
    return sealed({**body, **more})


class Collector(BaseHTTPRequestHandler):
    """A collection is named after what it does; `server.seen` is what it was asked."""

    def do_GET(self):
        name = unquote(self.path.rsplit("/", 1)[1])
        if self.path.startswith("/seen/"):
            return self.reply(200, self.server.seen.get(name, []))
        self.note(name, b"")
        special = {
            "missing": (
                404,
                {"detail": "there is no collection of that name; see /v1/collections"},
            ),
            "bare": (403, "no"),
            "html": (200, "<html>"),
            "latin-1": (200, b'{"survey": {}, "state": "open", "name": "\xe9"}'),
            "marked": (
                200,
                b"\xef\xbb\xbf"
                + json.dumps({"survey": self.named(name), "state": "open"}).encode(),
            ),
            "stateless": (200, {"survey": self.named(name)}),
            "without": (200, {"state": "open", "survey": sealed({})}),
            "bare-mechanism": (200, {"state": "open", "survey": self.server.mechanism}),
            "tampered": (200, {"survey": self.server.tampered, "state": "open"}),
            "changed": (
                200,
                {"survey": {**self.named(name), "answers": 2}, "state": "open"},
            ),
            "closed": (200, {"survey": self.named(name), "state": "closed"}),
            "over": (200, {"survey": self.dated(name, -70), "state": "open"}),
            "just-over": (200, {"survey": self.dated(name, -30), "state": "open"}),
            "timeless": (200, {"survey": self.named(name), "state": "upcoming"}),
        }
        if name == "moved":
            return self.reply(302, "", {"Location": "/v1/collections/elsewhere"})
        if name == "hanging":
            return self.server.stop.wait(30)
        return self.reply(*special.get(name, (200, {"survey": self.named(name), "state": "open"})))

    def named(self, name):
        """The survey of this name, but for one that keeps another."""
        if name == "translated":
            return self.server.translated
        return asking(self.server.mechanism, "good" if name == "another-name" else name)

    def dated(self, name, minutes):
        """The same survey, which closes so many minutes from now."""
        closes = datetime.now(UTC) + timedelta(minutes=minutes)
        about = {"closes": closes.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return asking(self.server.mechanism, name, about=about)

    def do_POST(self):
        name = unquote(self.path.split("/")[3])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        attempt = self.note(name, body)
        if name == "busy" and attempt < 3:
            return self.reply(503, {"detail": "full"}, {"Retry-After": "0"})
        if name == "failing" and attempt < 3:
            return self.reply(500, "oops")
        if name == "dropped" and attempt < 3:
            return None
        if name == "refusing" and attempt == 1:
            return self.reply(409, {"detail": "the collection is closed; nothing was counted"})
        if name == "garbled":
            return self.reply(
                200,
                [{}, {"accepted": 0, "duplicates": 0}, {"accepted": "1", "duplicates": ""}, []][
                    attempt - 1
                ],
            )
        with self.server.lock:
            new = (name, body[:16]) not in self.server.ids
            self.server.ids.add((name, body[:16]))
        if name == "lost" and attempt == 1:
            return None
        return self.reply(200, {"accepted": int(new), "duplicates": int(not new)})

    def note(self, name, body):
        """Remember the request; which of this name and method it is."""
        headers = {key.lower(): value for key, value in self.headers.items()}
        raw = [
            self.requestline,
            *(f"{key}: {value}" for key, value in self.headers.items()),
            body.hex(),
        ]
        with self.server.lock:
            seen = self.server.seen.setdefault(name, [])
            seen.append(
                {
                    "method": self.command,
                    "path": self.path,
                    "headers": headers,
                    "body": body.hex(),
                    "raw": raw,
                }
            )
            return sum(x["method"] == self.command for x in seen)

    def reply(self, status, body, headers=None):
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        data = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def client_checks():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.lock, server.stop, server.seen, server.ids = (
        threading.Lock(),
        threading.Event(),
        {},
        set(),
    )
    labels = ["HIV", "anemia", "headache", "stomachache", "toothache"]
    server.mechanism = unary([("serious", "ln(4)", labels[:1]), ("common", "ln(6)", labels[1:])])
    tampered = copy.deepcopy(server.mechanism)
    tampered["parts"][0]["own"][0] += 1_000_000
    server.tampered = asking(tampered, "tampered")
    document = asking(server.mechanism, "good")
    age = unary([("all", "0.9", ["young", "old"])])
    several = {"ill": server.mechanism, "age": age, "both": crossed(server.mechanism, age)}
    ill = {"items": {"anemia": "Anämie"}}
    server.translated = sealed(
        {
            "format": "discreet-survey/1",
            "name": "translated",
            "about": {"language": "en"},
            "answers": 2,
            "questions": [
                {
                    "name": name,
                    "mechanism": unsigned(x),
                    **({"of": ["ill", "age"]} if name == "both" else {}),
                }
                for name, x in several.items()
            ],
            "public": [{"name": "region", "text": "Where?", "items": ["north", "south"]}],
            "translations": {"de": {"questions": {"ill": ill}}},
        }
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        rows = [("a", 1, ["a"]), ("b", 2, ["b"]), ("c", None, ["c"])]
        one_way = d.Policy.from_levels(rows, notion="one-way", open=["c"])
        payload = {
            "fingerprint": document["fingerprint"],
            "document": document,
            "mechanism": server.mechanism,
            "several": several,
            "oneWay": d.design(one_way).to_document(),
        }
        yield node("client.mjs", payload, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "name",
    [
        *names("client.mjs"),
        *(
            f"the same bytes are sent until the collector takes them: {name}"
            for name in ("busy", "failing", "dropped")
        ),
    ],
)
def test_client(name, client_checks):
    assert client_checks[name] is None, client_checks[name]


def test_every_check_of_the_scripts_is_asked_for(client_checks):
    assert set(module_checks()) == set(names("module.mjs"))
    assert set(ledger_checks()) == set(names("ledger.mjs"))
    assert len(client_checks) == len(names("client.mjs")) + 3
