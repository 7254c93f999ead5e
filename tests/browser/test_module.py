"""The JavaScript module in Node: it reads, refuses, promises, perturbs, remembers and sends exactly as Python does."""

import base64
import copy
import json
import random
import re
import shutil
import subprocess
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from unicodedata import category
from urllib.parse import unquote

import numpy as np
import pytest
from checks import assert_bernoulli, detectable, must_fail, z_for
from statistical.test_samplers import bits_of, check_bits, check_pairs, inputs, mechanism_of

import discreet as d
from discreet import exact
from discreet.errors import DiscreetError, FingerprintError, GuaranteeError
from discreet.exact import D, P
from discreet.mechanism import Mechanism, canonical_json, fingerprint
from discreet.policy import Budget, Pair

HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors" / "v1"
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.skipif(NODE is None, reason="node is not installed, so the JavaScript module cannot be run"),
    pytest.mark.xdist_group("module"),  # what Node computes is shared by many tests
]


def node(script, payload, *args):
    """What a script of node/ prints for this input."""
    done = subprocess.run(
        [NODE, HERE / "node" / script, *args], input=json.dumps(payload), capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def vectors(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def document(mechanism):
    return signed(mechanism.to_canonical())


def signed(body):
    body = {key: value for key, value in body.items() if key != "fingerprint"}
    return {**body, "fingerprint": fingerprint(body)}


def verify(documents):
    return node("verify.mjs", [{"document": x} for x in documents])


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


# ---- the shared vectors -----------------------------------------------------------------------------------


def test_canonical_json_and_fingerprints():
    cases = vectors("canonical")
    found = node("canonical.mjs", [json.dumps(case["document"]) for case in cases])
    assert found == [{"canonical": case["canonical"], "sha256": case["sha256"]} for case in cases]


def test_keys_are_sorted_as_python_sorts_them():
    """By code point: JavaScript alone would put U+1F642, two UTF-16 units from U+D83D, before U+FFFD."""
    keys = ["\ufffd", "🙂", "\ue000", "𝒳", "z", "", "a", "ab", "a🙂", "a\ufffd", "~", "Ä", "\x7f", "10", "9", "__proto__"]
    documents = [dict.fromkeys(keys, 1), {k: {j: [] for j in keys} for k in reversed(keys)}]
    found = node("canonical.mjs", [json.dumps(x) for x in documents])
    assert [x["canonical"].encode() for x in found] == [canonical_json(x) for x in documents]
    assert [x["sha256"] for x in found] == [fingerprint(x) for x in documents]
    assert sorted(keys) != sorted(keys, key=lambda k: k.encode("utf-16-be"))  # or this test shows nothing


def test_every_character_is_escaped_as_python_escapes_it():
    rng = random.Random(2)
    points = [*range(0x300), 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x10FFFF, *(rng.randrange(0xE000, 0x110000) for _ in range(500))]
    text = {"".join(map(chr, points)): "".join(chr(x) for x in points for _ in range(2))}
    (found,) = node("canonical.mjs", [json.dumps(text)])
    assert found["canonical"].encode() == canonical_json(text)


@pytest.mark.parametrize(
    "text",
    ["0.5", "[1e-3]", "9007199254740992", "-9007199254740992", "1e400", '"\\ud800"', '{"a\\udfff":1}', '[["\\ud83d x"]]'],
)
def test_what_no_mechanism_holds_has_no_canonical_form(text):
    (found,) = node("canonical.mjs", [text])
    assert found["code"] == "mechanism" and "\n" not in found["message"]


MECHANISMS = vectors("mechanisms")
# JavaScript has no canonical form for a fraction, so it does not get as far as the guarantee.
FRACTIONS = {"a-is-a-fraction", "share-is-a-fraction", "direct-diagonal-is-a-fraction"}


@cache
def judged():
    return dict(zip([case["name"] for case in MECHANISMS], verify([case["document"] for case in MECHANISMS]), strict=True))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in MECHANISMS])
def test_mechanisms(case):
    found = judged()[case["name"]]
    expect = "mechanism" if case["name"] in FRACTIONS else {"unreadable": "mechanism"}.get(case["expect"], case["expect"])
    assert found["code"] == expect, found
    if expect == "ok":
        agrees(found, Mechanism.from_document(case["document"]))
    else:
        assert "\n" not in found["message"] and len(found["message"]) < 300


def agrees(found, mechanism):
    """What the module says of an accepted mechanism is what Python says."""
    policy, guarantee = mechanism.policy, mechanism.guarantee()
    assert found["fingerprint"] == mechanism.fingerprint
    assert (found["m"], found["reportSize"]) == (mechanism.m, mechanism.report_size)
    assert (found["model"], found["encoding"], found["padding"] or None) == (mechanism.model, mechanism.encoding, mechanism.padding)
    body = mechanism.to_canonical()
    assert found["parts"] == body.get("parts", []) and found["matrix"] == body.get("matrix")
    assert {key: found["policy"][key] for key in ("name", "question", "input", "notion", "items")} == {
        key: body["policy"][key] for key in ("name", "question", "input", "notion", "items")
    }
    assert found["policy"]["levelOf"] == list(policy.level_of)
    assert [level["count"] for level in found["policy"]["levels"]] == list(policy.sizes)
    assert [(level["name"], level["budget"]) for level in found["policy"]["levels"]] == [
        (x.name, x.budget.text) for x in policy.levels
    ]
    assert [level["epsilon"] for level in found["policy"]["levels"]] == pytest.approx([float(x.budget) for x in policy.levels])
    epsilons = guarantee.item_epsilons if policy.input == "set" else guarantee.level_epsilons
    assert found["levelEpsilons"] == pytest.approx(epsilons.tolist(), rel=1e-11, abs=1e-11)  # floats of two libraries
    promises = found["promises"]
    assert [x["sentence"] for x in promises] == guarantee.sentences()
    levels = [x for x in promises if x["level"] is not None]
    assert [(x["level"], x["items"]) for x in levels] == [(x.name, n) for x, n in zip(policy.levels, policy.sizes, strict=True)]
    assert all(x["factor"] >= np.exp(e) * (1 - 1e-11) for x, e in zip(levels, epsilons, strict=True))  # rounded up
    first = [
        [item for item, k in zip(policy.items, policy.level_of, strict=True) if k == level][:3] for level in range(len(levels))
    ]
    assert [x["examples"] for x in levels] == first


def test_reports():
    documents = {case["name"]: case["document"] for case in MECHANISMS if case["expect"] == "ok"}
    cases = vectors("reports")
    found = node("reports.mjs", {"documents": documents, "reports": cases})
    for case, got in zip(cases, found, strict=True):
        expect = {"refused": case["refused"], "code": "report"} if "refused" in case else {"ones": case["ones"]}
        assert got == expect, case


# ---- what Python designs is accepted, and says the same -----------------------------------------------------

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
UNARY = ("mixed", "opt0", "opt1", "opt2", "rappor", "oue")


@cache
def designed():
    found = []
    for notion, pairs in product(("min", "avg"), PAIRS.values()):
        policy = d.Policy.from_levels(LEVELS, notion=notion, pairs=pairs, name="Prüfung", question="Was?\nUnd 🙂?")
        sets = d.Policy.from_levels(LEVELS, notion=notion, pairs=pairs, input="set")
        found += [d.design(policy, model) for model in ("direct", "grr")]
        for model in UNARY if not pairs else ("opt0", "rappor"):
            found += [d.design(policy, model, encoding=encoding) for encoding in ("bits", "compact")]
            found += [d.design(sets, model, encoding=encoding, padding=3) for encoding in ("bits", "compact")]
    for budgets in ([1], [2, 2], [50, 60, 0.001], ["ln(1000)", "ln(1000)"], ["ln(4/3)", "0.00001", 7]):
        policy = d.Policy.from_budgets({f"i{k}": e for k, e in enumerate(budgets)})
        found += [d.design(policy, model) for model in ("rappor", "grr", "direct", "opt0")]
    found += [d.design(d.Policy.from_levels([("all", 2, [f"i{k}" for k in range(1500)])]), "oue", encoding="compact")]
    return found


def test_designs_are_accepted_and_promise_the_same():
    for found, mechanism in zip(verify([document(x) for x in designed()]), designed(), strict=True):
        assert found["code"] == "ok", found
        agrees(found, mechanism)


def test_sentences_reach_every_form():
    """Or the comparison above would not have seen them."""
    text = " ".join(sentence for mechanism in designed() for sentence in mechanism.guarantee().sentences())
    for part in (
        "not at all",
        "only through others",
        "two answers of",
        "having or not having",
        "and 1 more",
        "factor of 4.",
        "1000.",
    ):
        assert part in text, part
    assert re.search(r"factor of \d,\d\d\d,\d\d\d", text)


# ---- near the bound, the two verdicts are the same ------------------------------------------------------------

BUDGETS = [
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
    "ln(100000)",
]


def random_policy(rng, direct):
    t = rng.randint(1, 4)
    rows = [(f"L{k}", rng.choice(BUDGETS), [f"{k}.{i}" for i in range(rng.randint(1, 3))]) for k in range(t)]
    pairs = ()
    if rng.random() < 0.4:
        chosen = {tuple(sorted((rng.randrange(t), rng.randrange(t)))) for _ in range(rng.randint(1, 4))}
        pairs = tuple(
            Pair(f"L{i}", f"L{j}", None if rng.random() < 0.4 else Budget.parse(rng.choice(BUDGETS))) for i, j in sorted(chosen)
        )
    kind = "set" if not direct and rng.random() < 0.3 else "single"
    return d.Policy.from_levels(rows, notion=rng.choice(("min", "avg")), pairs=pairs, input=kind)


def last_passing(passes, end):
    """The last step from 0 that passes; 0 does, `end` does not."""
    low, high = 0, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def unary_case(rng):
    """A mechanism with one probability at, just before and just beyond its bound."""
    policy = random_policy(rng, direct=False)
    encoding = rng.choice(("bits", "compact"))
    q = P if encoding == "compact" else D
    t, parts = len(policy.levels), []
    for share in rng.choice(([D], [D], [D // 3, D - D // 3], [1, 7, D - 8])):
        low = [rng.randrange(1, q) for _ in range(t)]
        parts.append({"share": share, "a": [-(-x * D // q) for x in low], "b": low})  # a = b: holds for any budget
    k, level = rng.randrange(len(parts)), rng.randrange(t)
    for i in range(t):
        if i != level and rng.random() < 0.7:  # others may stand at their bound as well
            move(policy, parts[k], q, "a", i, 1, rng.randint(0, 1))
    key, sign = rng.choice((("a", 1), ("b", -1)))
    model = "mixed" if len(parts) > 1 else rng.choice(UNARY)
    padding = rng.randint(1, 9) if policy.input == "set" else 0
    for offset in (-1, 0, 1, 2):
        changed = copy.deepcopy(parts)
        move(policy, changed[k], q, key, level, sign, -offset)
        yield body_of(policy, model, encoding, padding, parts=changed)


def move(policy, part, q, key, level, sign, back):
    """Move a or b of a level to the last integer that passes, and then some units back."""
    old = part[key][level]

    def passes(step):
        part[key][level] = old + sign * step
        return exact.check_unary(policy, [(D, part["a"], part["b"])], q) is None

    step = last_passing(passes, 2 * D)
    part[key][level] = old + sign * (step - back)


def direct_case(rng):
    """A matrix whose rows sum to 2^32, with mass moved to the diagonal as far as it goes, and about there."""
    policy = random_policy(rng, direct=True)
    t = len(policy.levels)
    count = rng.randint(1, t)
    groups = rng.sample([*range(count), *(rng.randrange(count) for _ in range(t - count))], t)  # every group has a level
    each = D // policy.m
    base = D - (policy.m - 1) * each  # all rows alike: holds for any budget that is not tiny
    sizes = [sum(n for n, g in zip(policy.sizes, groups, strict=True) if g == c) for c in range(max(groups) + 1)]
    diagonal = [base] * len(sizes)
    off = [[0 if c == e and sizes[c] == 1 else each for e in range(len(sizes))] for c in range(len(sizes))]
    row, column = rng.randrange(len(sizes)), rng.randrange(len(sizes))
    others = sizes[column] - (row == column)

    def moved(step):
        tall, flat = list(diagonal), copy.deepcopy(off)
        tall[row] += step * others
        flat[row][column] -= step
        return tall, flat

    if others == 0 or exact.check_direct(policy, groups, diagonal, off):
        return
    step = last_passing(lambda k: exact.check_direct(policy, groups, *moved(k)) is None, each + 1)
    for offset in (-1, 0, 1, 2, -step - 2):
        tall, flat = moved(step + offset)
        model = "grr" if len(sizes) == 1 else "direct"
        yield body_of(policy, model, "item", 0, matrix={"groups": groups, "diagonal": tall, "off": flat})


def body_of(policy, model, encoding, padding, **more):
    head = {"format": "discreet-mechanism/1", "policy": policy.to_canonical(), "model": model, "prior": "uniform"}
    return {**head, "encoding": encoding, "padding": padding, **more}


def test_verdicts_near_the_bound_are_the_same():
    rng = random.Random(6)
    bodies = [body for _ in range(150) for body in unary_case(rng)] + [body for _ in range(150) for body in direct_case(rng)]
    documents = [signed(body) for body in bodies]
    expect = [verdict(x) for x in documents]
    for kind in ("bits", "compact", "item"):  # both verdicts, often, or this shows nothing
        seen = [e for e, x in zip(expect, documents, strict=True) if x["encoding"] == kind]
        assert seen.count("ok") > 60 and seen.count("guarantee") > 60, (kind, len(seen))
    assert {x["policy"]["notion"] for x in documents} == {"min", "avg"}
    assert sum(bool(x["policy"]["pairs"]) for x in documents) > 100
    found = verify(documents)
    for got, want, x in zip(found, expect, documents, strict=True):
        assert got["code"] == want, (got, json.dumps(x))


@pytest.mark.parametrize("notion", ["min", "avg"])
def test_many_budgets_are_checked_at_their_bound(notion):
    """300 levels, in O(t): one unit more than what Python lets pass is refused."""
    rng = random.Random(7)
    budgets = {f"i{k}": f"{1 + 3 * rng.random():.6f}" for k in range(300)}
    policy = d.Policy.from_budgets(budgets, notion=notion)
    part = d.design(policy, "opt0").to_canonical()["parts"][0]
    documents = []
    for level in rng.sample(range(300), 8):
        for back in (0, -1):
            changed = copy.deepcopy(part)
            move(policy, changed, D, "a", level, 1, back)
            documents.append(signed(body_of(policy, "opt0", "bits", 0, parts=[changed])))
    assert [x["code"] for x in verify(documents)] == [verdict(x) for x in documents] == ["ok", "guarantee"] * 8


# ---- the structure is read as strictly --------------------------------------------------------------------------


def constant(epsilon="1", weight="1", item="x", name="only", **policy):
    """A mechanism that tells nothing, so that its guarantee holds whatever the budget."""
    head = {"name": "n", "question": "", "input": "single", "notion": "min", "items": [item, "y"], "level_of": [0, 0]}
    levels = [{"name": name, "epsilon": epsilon, "weight": weight}]
    return {
        "format": "discreet-mechanism/1", "policy": {**head, "levels": levels, "pairs": [], **policy}, "model": "opt0",
        "prior": "uniform", "encoding": "bits", "padding": 0, "parts": [{"share": D, "a": [D // 2], "b": [D // 2]}],
    }  # fmt: skip


def words(text):
    return text.split()


EPSILONS = [
    *words("1 1.0 01 00 1e1 10 0.5 .5 5. 0.50 0 0.0 -0 +1 -1 1_0 1,5 inf nan ٣ 0x10 1n ln() ln(2 LN(2) ln(-2) ln(2/0)"),
    *words("ln(2) ln(2/1) ln(4/2) ln(3/2) ln(2/3) ln(1) ln(1/1) ln(0) ln(02) ln(3/02) ln(1.5) ln(.5)"),
    *["ln(2/3/4)", "ln(e)", "ln(٣)", " ln(2)", "ln(2) ", "ln( 2)", " 1", "1 ", "1\n", "\t1", "", 1, 1.5, True, None, [], ["1"], {}],
    *("0." + "0" * zeros + "1" for zeros in (28, 29)),
    *(digit * count for digit, count in (("9", 30), ("9", 31))),
    *("1" + "0" * zeros for zeros in (29, 30)),
    *("1." + "3" * digits for digits in (98, 99)),  # 100 characters and one more
    *("ln(" + "9" * digits + ")" for digits in (96, 97)),
    *["5." + "0" * 29 + "1", "0." + "7" * 98, "ln(" + "9" * 47 + "/" + "8" * 47 + ")", "ln(" + "8" * 47 + "/" + "3" * 46 + ")"],
]
WEIGHTS = [
    *words("1 1.0 2.5 0.1 0.10000000000000001 1e-05 1e-5 0.00001 1.0000000000000001e-05 0.0001 0.00012207031250000001"),
    *words(
        "0.0001220703125 1e12 1000000000000 1000000000001 999999999999.5 0 -1 nan inf 1_0 ٣ 4.9406564584124654e-324 5e-324 1e-100"
    ),
    *["2.2250738585072014e-308", "123456789.12345679", " 1", "", 1, True, None],
    *(format(random.Random(k).lognormvariate(0, 8), ".17g") for k in range(60)),
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
        "\U0010ffff",
        "\U000f0000",
        "🙂",
        "👩\u200d⚕",
        "می\u200cخواهم",
        "\u200d",
        "日本語",
    ],
    *["سلام", "e\u0301", "y", "y ", "Y", "ｙ", "<b>", 1, None],
    *(f"a{chr(k)}" for k in range(0x3001) if not chr(k).isprintable() and category(chr(k)) != "Cn"),
]


def compare(bodies):
    """Both accept or both refuse; returns how many were accepted."""
    documents = []
    for body in bodies:
        try:
            documents.append(signed(body))
        except UnicodeEncodeError:
            documents.append({**body, "fingerprint": "0" * 64})
    found = verify(documents)
    for got, x in zip(found, documents, strict=True):
        assert got["code"] in ("ok", "mechanism", "guarantee", "fingerprint"), got
        assert (got["code"] == "ok") == (verdict(x) == "ok"), (got, json.dumps(x))
    return [x["code"] for x in found].count("ok")


def test_budgets_have_one_spelling():
    assert compare(constant(epsilon=x) for x in EPSILONS) == 13
    pairs = [constant(pairs=[{"levels": ["only", "only"], "epsilon": x}]) for x in EPSILONS]
    assert compare(pairs) == 14  # and "", which is no protection


def test_weights_have_one_spelling():
    assert compare(constant(weight=x) for x in WEIGHTS) > 60


def test_labels_and_names():
    for key in ("item", "name"):
        assert compare(constant(**{key: x}) for x in LABELS) > 10
    body = constant()
    assert compare({**body, "policy": {**body["policy"], "name": x}} for x in LABELS) > 10
    assert compare({**body, "policy": {**body["policy"], "question": x}} for x in LABELS) >= 30


def test_every_printable_character_below_u3000_may_be_in_a_label():
    labels = [chr(k) for k in range(33, 0x3000) if chr(k).isprintable()]
    assert compare([constant(items=labels, level_of=[0] * len(labels))]) == 1


def test_half_a_surrogate_pair_is_refused():
    compare([constant(item="\ud800"), constant(name="x\udfff"), {**constant(), "\ud83d": 1}])


STRANGE = [
    *[0, 1, 2, -1, 0.5, 2.0, D, D + 1, 2**53 + 2, True, False, None, [], [0], [[0]], {}, {"a": 1}],
    *["", "0", "1", "x", "set", "min", "avg", "item", "bits", "toString", "__proto__", "length"],
]


def mutations(rng, body):
    """The body with one value replaced, removed, doubled or added anywhere, and once two of them."""
    places = []

    def walk(value, path):
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((*path, key))
            if isinstance(value[key], dict | list):
                walk(value[key], (*path, key))

    walk(body, ())
    places = [path for path in places if "certificate" not in path]
    for path in places:
        changed = copy.deepcopy(body)
        *inner, key = path
        home = changed
        for step in inner:
            home = home[step]
        action = rng.choice(["replace", "replace", "remove", "double", "add"])
        if action == "replace":
            home[key] = rng.choice(STRANGE)
        elif action == "remove":
            del home[key]
        elif isinstance(home, list):
            home.insert(key, copy.deepcopy(home[key])) if action == "double" else home.append(rng.choice(STRANGE))
        else:
            home[rng.choice(["extra", "__proto__", "constructor", "fingerprint2", ""])] = rng.choice(STRANGE)
        yield changed


def test_mutated_documents_get_the_same_verdict():
    rng = random.Random(8)
    toy = {case["name"]: case["document"] for case in MECHANISMS if case["expect"] == "ok"}
    bodies = []
    for name in ("toy-opt0-compact", "toy-direct", "three-set-bits", "five-pairs", "nine-avg-compact-parts"):
        body = {key: value for key, value in toy[name].items() if key != "fingerprint"}
        bodies += [x for _ in range(4) for x in mutations(rng, body)]
    bodies = [x for x in bodies if not any(isinstance(g, bool) for g in groups_of(x))]
    assert len(bodies) > 700
    assert 0 < compare(bodies) < 100


def groups_of(body):
    """Python reads a group `false` as 0; the module does not."""
    groups = body["matrix"].get("groups") if isinstance(body.get("matrix"), dict) else []
    return groups if isinstance(groups, list) else []


def test_groups_and_certificates_are_numbers_and_texts():
    direct = copy.deepcopy(next(case["document"] for case in MECHANISMS if case["name"] == "toy-direct"))
    direct["matrix"]["groups"] = [False, True]
    certified = copy.deepcopy(next(case["document"] for case in MECHANISMS if case["name"] == "toy-weighted-certificate"))
    good, note, value, bound, extra, missing = (copy.deepcopy(certified) for _ in range(6))
    note["certificate"]["note"] = ["x"]
    value["certificate"]["value"] = "large"
    bound["certificate"]["lower_bound"] = 1
    extra["certificate"]["more"] = ""
    del missing["certificate"]["note"]
    good["certificate"] |= {"value": "1.5e-07", "lower_bound": "1e+16"}
    found = verify([signed(x) for x in (direct, note, value, bound, extra, missing, good)])
    assert [x["code"] for x in found] == ["guarantee", *["mechanism"] * 5, "ok"]


@pytest.mark.parametrize("raw", [None, 1, "x", [], [1], True])
def test_what_is_no_document_is_refused(raw):
    assert verify([raw])[0]["code"] == "mechanism"


def test_pinned_fingerprints():
    toy = document(d.design(d.Policy.from_levels(LEVELS), "opt0"))
    good, other = toy["fingerprint"], "0" * 64
    cases = [(None, "ok"), (good, "ok"), (other, "pinned"), (good.upper(), "pinned"), (good[:32], "pinned"), ("", "pinned")]
    found = node("verify.mjs", [{"document": toy, "pinned": pinned} for pinned, _ in cases])
    assert [x["code"] for x in found] == [code for _, code in cases]
    changed = {**toy, "prior": "worst"}  # what is pinned is the content, not what the document says of itself
    (found,) = node("verify.mjs", [{"document": {**changed, "fingerprint": good}, "pinned": good}])
    assert found["code"] == "fingerprint"
    (found,) = node("verify.mjs", [{"document": signed(changed), "pinned": good}])
    assert found["code"] == "pinned"


# ---- reports, exactly: Web Crypto is scripted -------------------------------------------------------------------


def scripted(jobs):
    """[(mechanism, [(answer, draws)])] -> the reports."""
    payload = [{"document": document(m), "cases": [{"answer": x, "draws": y} for x, y in cases]} for m, cases in jobs]
    return [[bytes.fromhex(x["report"]) for x in row] for row in node("scripted.mjs", payload)]


def edges(numerators):
    """Every way to fall on either side of every numerator, by one unit: (draws, which were below)."""
    for below in product((True, False), repeat=len(numerators)):
        yield [n - 1 if y else n for n, y in zip(numerators, below, strict=True)], below


def shares_of(parts):
    """(part, a draw) for the first and the last draw of every part; none is drawn for one part."""
    edge = 0
    for k, part in enumerate(parts):
        yield from ((k, [edge]), (k, [edge + part.numerator - 1])) if len(parts) > 1 else ((k, []),)
        edge += part.numerator


@cache
def small(encoding, kind="single"):
    policy = d.Policy.from_budgets({"x": 1, "y": 3, "z": 1.2, "w": 3}, input=kind)
    mechanism = d.design(policy, "mixed", encoding=encoding, padding=3 if kind == "set" else None)
    assert len(mechanism.parts) > 1
    one = d.design(policy, "opt0", encoding=encoding, padding=3 if kind == "set" else None)
    return mechanism, one


def bits_cases(mechanism, off=0):
    cases, expect = [], []
    level_of = mechanism.policy.level_of
    for held, (k, front) in product(range(mechanism.m), shares_of(mechanism.parts)):
        part = mechanism.parts[k]
        numerators = [(part.A if i == held else part.B)[level_of[i]] + off for i in range(mechanism.m)]
        for draws, bits in edges(numerators):
            cases.append((held, front + draws))
            head = [k] if front else []
            expect.append(bytes([*head, sum(bit << i for i, bit in enumerate(bits))]))
    return cases, expect


def test_a_bit_is_one_exactly_below_its_numerator():
    """Every part, every held item and every pattern of bits: with the draws at the numerators themselves, nothing is sampled."""
    jobs = [(m, *bits_cases(m)) for m in small("bits")]
    assert scripted([(m, cases) for m, cases, _ in jobs]) == [expect for _, _, expect in jobs]
    (twin,) = scripted([(jobs[1][0], bits_cases(jobs[1][0], off=1)[0])])
    assert twin != jobs[1][2]


def test_a_direct_draw_lands_on_its_item():
    """The edges of every interval of every row, groups whose items are not neighbours included."""
    jobs = []
    for budgets, model in product(([1], [1, 2], [1, 2, 1, 3, 2, 1, 1], [2, 1, 1, 1, 1, 1, 2, 1]), ("direct", "grr")):
        mechanism = d.design(d.Policy.from_budgets({f"i{k}": e for k, e in enumerate(budgets)}), model)
        groups = [mechanism.matrix.groups[k] for k in mechanism.policy.level_of]
        cases, expect = [], []
        for x in range(mechanism.m):
            c, at = groups[x], 0
            order = [x] + [y for k in range(max(groups) + 1) for y in range(mechanism.m) if groups[y] == k and y != x]
            for y in order:
                size = mechanism.matrix.diagonal[c] if x == y else mechanism.matrix.off[c][groups[y]]
                for draw in (at, at + size // 2, at + size - 1):
                    cases.append((x, [draw]))
                    expect.append(y.to_bytes(4, "little"))
                at += size
            assert at == D
        jobs.append((mechanism, cases, expect))
    assert scripted([(m, cases) for m, cases, _ in jobs]) == [expect for _, _, expect in jobs]


def limit(bound):
    return D // bound * bound


def test_sets_are_padded_and_sampled_by_rejection():
    """One of max(|x|, padding) places; draws from the last incomplete round are thrown away."""
    (_, mechanism) = small("bits", "set")
    part, level_of = mechanism.parts[0], mechanism.policy.level_of
    cases, expect = [], []
    for answer in ([], [2], ["z", 0], [3, 1, 0, 2], [1, 1, "y"]):
        items = list(dict.fromkeys(mechanism.policy.index.get(x, x) for x in answer))
        places = max(len(items), 3)
        for draw in (0, 1, 2, 3, places, limit(places) - 1):
            held = items[draw % places] if draw % places < len(items) else None
            numerators = [(part.A if i == held else part.B)[level_of[i]] for i in range(4)]
            for rejected in ([], [limit(places)] * 2 if limit(places) < D else []):
                for draws, bits in edges(numerators):
                    cases.append((answer, rejected + [draw] + draws))
                    expect.append(bytes([sum(bit << i for i, bit in enumerate(bits))]))
    assert scripted([(mechanism, cases)]) == [expect]


def compact_cases(mechanism, rng, sets=False):
    """Draws for the part, the bit, v, t and r at their edges; the triple they must give, by Python's integers."""
    cases, expect = [], []
    for held, (k, front), _ in product([*range(mechanism.m), *([None] if sets else [])], shares_of(mechanism.parts), range(12)):
        part, level = mechanism.parts[k], mechanism.policy.level_of[held or 0]
        bit = rng.random() < 0.5
        threshold = part.B[level]
        low, span = (0, P) if held is None else (0, threshold) if bit else (threshold, P - threshold)
        v = rng.choice([0, 1, span - 1, span, limit(span) - 1, rng.randrange(limit(span))])
        t, r = (rng.choice([0, 1, P - 1, P, P + 1, 2 * P - 1, rng.randrange(2 * P)]) for _ in range(2))
        reject = [limit(span)] if limit(span) < D else []
        draws = [part.A[level] - bit, *reject, v, *rng.choice([[], [D - 1], [2 * P]]), t, *rng.choice([[], [2 * P + 1]]), r]
        sample = [0 if held is not None else 1] if sets else []  # of three places the first is the item
        cases.append((([] if held is None else [held]) if sets else held, sample + front + draws))
        c = (held or 0) + 1
        s = (low + v % span - (t % P) * c - (r % P) * c * c) % P
        head = bytes([k]) if front else b""
        expect.append(head + b"".join(x.to_bytes(4, "little") for x in (s, t % P, r % P)))
        assert held is None or ((s + t * c + r * c * c) % P < threshold) == bit
    return cases, expect


def test_compact_triples_are_pythons_integers():
    rng = random.Random(9)
    wide = d.design(d.Policy.from_levels([("all", 2, [f"i{k}" for k in range(3000)])]), "oue", encoding="compact")
    far = compact_cases(wide, rng)  # products far beyond 2^53
    jobs = [(m, *compact_cases(m, rng)) for m in small("compact")] + [(wide, *far)]
    jobs += [(m, *compact_cases(m, rng, sets=True)) for m in small("compact", "set")]
    assert scripted([(m, cases) for m, cases, _ in jobs]) == [expect for _, _, expect in jobs]


def test_long_reports_draw_in_pieces():
    """20,000 bits are more random words than Web Crypto gives at once."""
    mechanism = d.design(d.Policy.from_levels([("all", 2, [f"i{k}" for k in range(20_000)])]), "oue")
    (b,), (a,) = mechanism.parts[0].B, mechanism.parts[0].A
    rng = random.Random(10)
    bits = [rng.random() < 0.5 for _ in range(20_000)]
    draws = [(a if k == 19_999 else b) - bit for k, bit in enumerate(bits)]
    expect = np.packbits(bits, bitorder="little").tobytes()
    # The marker 0xdeadbeef is above a and b: a word that was skipped or read twice would be seen.
    assert scripted([(mechanism, [(19_999, draws)])]) == [[expect]]


# ---- reports, in distribution ---------------------------------------------------------------------------------

SETTINGS = [
    ("opt0", "bits", "single"), ("mixed", "bits", "single"), ("oue", "bits", "set"), ("mixed", "bits", "set"),
    ("opt0", "compact", "single"), ("mixed", "compact", "single"), ("opt2", "compact", "set"), ("mixed", "compact", "set"),
]  # fmt: skip
DIRECT = ("direct", "grr")
EACH = 5000


@cache
def drawn():
    """20,000 reports or more of every setting, from one Node process."""
    jobs = {}
    for model, encoding, kind in SETTINGS:
        jobs[model, encoding, kind] = (mechanism_of(model, encoding, kind), [sorted(x) for x in inputs(kind, 11)])
    for model in DIRECT:
        jobs[model] = (mechanism_of(model), [[0], [1], [5], [10]])
    payload = [
        {"document": document(m), "answers": answers if m.padding else [x for (x,) in answers], "each": EACH}
        for m, answers in jobs.values()
    ]
    found = node("perturb.mjs", payload)
    rows = [
        np.frombuffer(base64.b64decode(x), np.uint8).reshape(-1, m.report_size)
        for x, (m, _) in zip(found, jobs.values(), strict=True)
    ]
    return {key: (*job, row) for (key, job), row in zip(jobs.items(), rows, strict=True)}


@pytest.mark.parametrize("setting", SETTINGS, ids="-".join)
def test_every_bit_and_every_pair_of_bits(setting):
    """The tests of Python's own sampler, and their twins."""
    mechanism, listed, rows = drawn()[setting]
    answers = [set(x) for x in listed]
    part, bits = bits_of(mechanism, rows)
    tally = mechanism.tally(rows)
    assert tally.n == len(rows) == EACH * len(answers) and not tally.refused
    assert tally.counts.tolist() == [bits[part == k].sum(axis=0).tolist() for k in range(len(mechanism.parts))]
    shares = np.array([p.share for p in mechanism.parts])
    assert_bernoulli(np.bincount(part, minlength=len(shares)), len(rows), shares, z_for(len(shares)))
    check_bits(mechanism, answers, part, bits)
    check_pairs(mechanism, answers, part, bits)
    most = max(np.bincount(part[k * EACH : (k + 1) * EACH]).max() for k in range(len(answers)))
    shift = float(detectable(most, 0.5, z_for(len(answers) * len(shares) * mechanism.m)))
    must_fail(check_bits, mechanism, answers, part, bits, shift)
    must_fail(check_bits, mechanism, answers, part, bits, -shift)
    must_fail(check_bits, mechanism, answers, part, np.roll(bits, 1, axis=1))
    linked = bits.copy()
    linked[::4, -1] = linked[::4, 0]
    must_fail(check_pairs, mechanism, answers, part, linked)
    if len(shares) > 1:
        wrong = shares + float(detectable(len(rows), shares[0], z_for(len(shares)))) * np.array([1, -1] + [0] * (len(shares) - 2))
        must_fail(assert_bernoulli, np.bincount(part, minlength=len(shares)), len(rows), wrong, z_for(len(shares)))


@pytest.mark.parametrize("model", DIRECT)
def test_every_item_sent(model):
    mechanism, answers, rows = drawn()[model]
    matrix, groups = mechanism.matrix, np.array(mechanism.matrix.groups)[mechanism.level_of]
    z = z_for(mechanism.m * len(answers))
    assert mechanism.tally(rows).n == len(rows)
    for k, (x,) in enumerate(answers):
        sent = mechanism.tally(rows[k * EACH : (k + 1) * EACH]).counts[0]
        expected = matrix.O[groups[x], groups]
        expected[x] = matrix.D[groups[x]]
        assert_bernoulli(sent, EACH, expected, z)
        moved = expected.copy()
        moved[x] += float(detectable(EACH, expected[x], z))
        must_fail(assert_bernoulli, sent, EACH, moved, z)
        must_fail(assert_bernoulli, np.roll(sent, 1), EACH, expected, z)


# ---- answers, ledger and client ------------------------------------------------------------------------------------------


def names(script):
    """The checks of a script, by name; a name in backticks stands for several."""
    return re.findall(r'await checks\.check\("([^"]+)"', (HERE / "node" / script).read_text(encoding="utf-8"))


@cache
def module_checks():
    rng = random.Random(3)
    many = {f"item {k}": f"{1 + 3 * rng.random():.6f}" for k in range(16_470)}
    toy = [("serious", "ln(4)", ["HIV"]), ("common", "ln(6)", ["anemia", "headache"])]
    mechanisms = {
        "single": d.design(d.Policy.from_levels([("only", 60, ["HIV", "anemia", "headache"])]), "rappor"),
        "sets": d.design(d.Policy.from_levels([("only", 60, ["HIV", "anemia", "headache"])], input="set"), "rappor", padding=1),
        "toy": d.design(d.Policy.from_levels(toy), "mixed"),
        "min": d.design(d.Policy.from_budgets(many), "rappor"),
        "avg": d.design(d.Policy.from_budgets(many, notion="avg"), "rappor"),
        "kosarak": d.design(d.Policy.from_levels([("only", 1, [f"i{k}" for k in range(41_270)])]), "oue"),
    }
    return node("module.mjs", {name: document(mechanism) for name, mechanism in mechanisms.items()})


@pytest.mark.parametrize("name", names("module.mjs"))
def test_module(name):
    assert module_checks()[name] is None, module_checks()[name]


@cache
def ledger_checks():
    policies = {
        "toy": d.Policy.from_levels([("serious", "ln(4)", ["HIV"]), ("common", "ln(6)", ["anemia", "headache", "toothache"])]),
        "spelled": d.Policy.from_levels([("all", 1, ["\uff28\uff29\uff36", "Head Ache"]), ("less", 2, ["  ANEMIA"])]),
        "respelled": d.Policy.from_levels([("all", 1, ["head   ache", "other"])]),
        "apart": d.Policy.from_levels([("all", 1, ["HIV test", "anaemia"])]),
        "street": d.Policy.from_levels([("all", 1, ["straße", "ΟΔΟΣ", "FIT", "İl"])]),
        "streets": d.Policy.from_levels([("all", 1, ["STRASSE", "οδος", "ﬁt", "el"])]),
        "twice": d.Policy.from_levels([("all", 1, ["HIV", "else"]), ("less", 2, ["hiv"])]),
        "strict": d.Policy.from_levels([("all", "0.1", ["HIV", "nothing"])]),
    }
    sets = d.design(d.Policy.from_levels([("all", 1, ["HIV", "none"])], input="set"), "oue", padding=1)
    return node(
        "ledger.mjs", {name: document(d.design(policy, "opt0")) for name, policy in policies.items()} | {"sets": document(sets)}
    )


@pytest.mark.parametrize("name", names("ledger.mjs"))
def test_ledger(name):
    assert ledger_checks()[name] is None, ledger_checks()[name]


class Collector(BaseHTTPRequestHandler):
    """A collection is named after what it does; `server.seen` is what it was asked."""

    def do_GET(self):
        name = unquote(self.path.rsplit("/", 1)[1])
        if self.path.startswith("/seen/"):
            return self.reply(200, self.server.seen.get(name, []))
        self.note(name, b"")
        special = {
            "missing": (404, {"detail": "there is no collection of that name; see /v1/collections"}),
            "bare": (403, "no"),
            "html": (200, "<html>"),
            "stateless": (200, {"mechanism": self.server.document}),
            "without": (200, {"state": "open"}),
            "tampered": (200, {"mechanism": self.server.tampered, "state": "open"}),
            "changed": (200, {"mechanism": {**self.server.document, "prior": "worst"}, "state": "open"}),
            "closed": (200, {"mechanism": self.server.document, "state": "closed"}),
        }
        if name == "moved":
            return self.reply(302, "", {"Location": "/v1/collections/elsewhere"})
        if name == "hanging":
            return self.server.stop.wait(30)
        return self.reply(*special.get(name, (200, {"mechanism": self.server.document, "state": "open"})))

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
            return self.reply(200, [{}, {"accepted": 0, "duplicates": 0}, {"accepted": "1", "duplicates": ""}, []][attempt - 1])
        with self.server.lock:
            new = (name, body[:16]) not in self.server.ids
            self.server.ids.add((name, body[:16]))
        if name == "lost" and attempt == 1:
            return None
        return self.reply(200, {"accepted": int(new), "duplicates": int(not new)})

    def note(self, name, body):
        """Remember the request; which of this name and method it is."""
        headers = {key.lower(): value for key, value in self.headers.items()}
        raw = [self.requestline, *(f"{key}: {value}" for key, value in self.headers.items()), body.hex()]
        with self.server.lock:
            seen = self.server.seen.setdefault(name, [])
            seen.append({"method": self.command, "path": self.path, "headers": headers, "body": body.hex(), "raw": raw})
            return sum(x["method"] == self.command for x in seen)

    def reply(self, status, body, headers=None):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
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
    server.lock, server.stop, server.seen, server.ids = threading.Lock(), threading.Event(), {}, set()
    labels = ["HIV", "anemia", "headache", "stomachache", "toothache"]
    server.document = document(
        d.design(d.Policy.from_levels([("serious", "ln(4)", labels[:1]), ("common", "ln(6)", labels[1:])]), "opt0")
    )
    server.tampered = copy.deepcopy(server.document)
    server.tampered["parts"][0]["a"][0] += 1000
    server.tampered = signed(server.tampered)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        payload = {"fingerprint": server.document["fingerprint"], "document": server.document}
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
        *(f"the same bytes are sent until the collector takes them: {name}" for name in ("busy", "failing", "dropped")),
    ],
)
def test_client(name, client_checks):
    assert client_checks[name] is None, client_checks[name]


def test_every_check_of_the_scripts_is_asked_for(client_checks):
    assert set(module_checks()) == set(names("module.mjs"))
    assert set(ledger_checks()) == set(names("ledger.mjs"))
    assert len(client_checks) == len(names("client.mjs")) + 3
