"""Picks in the JavaScript module, against enumeration from the document: reports are drawn by their
law, read and refused as in Python, and the promises are the worst case of all sets.
"""

import base64
import copy
from collections import Counter
from functools import cache
from random import Random

import picked
import pytest
from checks import must_fail
from nodejs import NODE, node
from small import assert_distribution

import discreet as d
from discreet.check.document import fingerprint
from discreet.designs.set_subset import picks
from discreet.designs.task import Task

pytestmark = [
    pytest.mark.skipif(
        NODE is None, reason="node is not installed, so the JavaScript module cannot be run"
    ),
    pytest.mark.xdist_group("sets"),
]
SETS = [(), (0,), (1, 4), (0, 1, 2, 3, 4)]
N = 30_000


@cache
def designed(sizes=(2, 3), budgets=(1, 2), padding=2, several=True):
    levels = [
        (f"l{i}", e, [f"i{i}-{k}" for k in range(n)])
        for i, (n, e) in enumerate(zip(sizes, budgets, strict=True))
    ]
    policy = d.Policy.from_levels(levels, kind="set")
    return picks(Task(policy, "uniform", None, padding), several=several)


CASES = [((2, 3), (1, 2), 2), ((2, 3), (1, 2), 2, False), ((2, 1, 3), (1, "1.3", 2), 2)]


@pytest.mark.parametrize("case", [*CASES, ((20,), (4,), 2)])
def test_reports_are_drawn_by_their_law(case):
    """Of bits, and of numbers; sets larger than the padding are cut first."""
    document = designed(*case).to_document()
    (rows,) = node("perturb.mjs", [{"document": document, "answers": SETS, "each": N}])
    raw, size = base64.b64decode(rows), document["encoding"]["size"]
    reports = [raw[k : k + size] for k in range(0, len(raw), size)]
    for k, x in enumerate(SETS):
        seen = Counter(reports[k * N : (k + 1) * N])
        assert_distribution(seen, picked.reports_of_set(document, frozenset(x)))
        wrong = picked.reports_of_set(document, frozenset(x) ^ {3})
        must_fail(assert_distribution, seen, wrong)


@pytest.mark.parametrize("case", CASES)
def test_tampered_masses_are_judged_as_in_python(case):
    """And Python's verdict is that of the enumeration (tests/check/test_exact_picks.py)."""
    document, rng, cases = designed(*case).to_document(), Random(2), []
    for _ in range(40):
        changed = copy.deepcopy(document)
        del changed["fingerprint"]
        o, p = rng.sample([0, 1], 2)
        rows = [row for row, found in enumerate(changed["parts"][0]["rows"]) if found]
        j = rng.choice(rows)
        first, second = (rng.choice(changed["parts"][x]["rows"][j]) for x in (o, p))
        moved = first[0] * rng.choice((1, 30, 400)) // 1000
        first[0], second[0] = first[0] - moved, second[0] + moved
        cases.append({**changed, "fingerprint": fingerprint(changed)})
    found = node("verify.mjs", [{"document": case} for case in cases])
    verdicts = []
    for case in cases:
        try:
            d.Mechanism.from_document(case)
            verdicts.append("ok")
        except d.DiscreetError:
            verdicts.append("guarantee")
    assert [x["code"] for x in found] == verdicts
    assert len(set(verdicts)) == 2


@pytest.mark.parametrize("case", CASES)
def test_its_promises_are_those_of_python(case):
    mechanism = designed(*case)
    (found,) = node("verify.mjs", [{"document": mechanism.to_document()}])
    sentences = [promise["sentence"] for promise in found["promises"]]
    assert sentences == mechanism.guarantee().sentences()[: len(sentences)] and len(sentences) > 1


def test_what_would_take_long_to_check_is_refused_as_in_python():
    """Sixty blocks of one part: half a minute, and the fourth power of the blocks."""
    document, blocks = copy.deepcopy(designed().to_document()), 60
    items = [f"i{k}" for k in range(2 * blocks)]
    levels = [{"name": f"l{k}", "epsilon": "1"} for k in range(blocks)]
    document["policy"] |= {
        "items": items, "levels": levels, "level_of": [k // 2 for k in range(2 * blocks)]
    }  # fmt: skip
    document |= {"groups": [*range(blocks)], "padding": 1, "shares": [2**32, *[0] * blocks]}
    rows = [[[2**52, 0]], *([[2**52, 0, 1]] for _ in range(blocks))]
    document["parts"] = [
        {"chance": 2**32, "blocks": [*range(1, blocks + 1)], "sizes": [1] * blocks, "rows": rows}
    ]
    document["encoding"]["size"] = 1 + 2 * blocks // 8
    del document["fingerprint"]
    document["fingerprint"] = fingerprint(document)
    with pytest.raises(d.DiscreetError, match="take too long to check"):
        d.Mechanism.from_document(document)
    (found,) = node("verify.mjs", [{"document": document}])
    assert found["code"] == "mechanism" and "too long" in str(found)
