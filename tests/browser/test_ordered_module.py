"""The JavaScript reports of mechanisms with ordered budgets, against Python's exact law."""

import base64
from collections import Counter
from functools import cache

import ordered
import pytest
from checks import must_fail
from nodejs import NODE, node
from small import assert_distribution, missed

pytestmark = [
    pytest.mark.skipif(
        NODE is None, reason="node is not installed, so the JavaScript module cannot be run"
    ),
    pytest.mark.xdist_group("module"),
]
EACH = 6000
NAMES = [*ordered.POLICIES, *ordered.PLAIN]


def answers(mechanism):
    """The first and the last item; of lists also nothing and everything."""
    m = mechanism.m
    held = [(0,), (m - 1,)]
    return [*held, (), tuple(range(m))] if mechanism.policy.kind.lists else held


@cache
def drawn():
    """Per mechanism the reports of every answer, from one Node process."""
    payload = [
        {
            "document": mechanism.to_document(),
            "answers": [
                list(x) if mechanism.policy.kind.lists else x[0] for x in answers(mechanism)
            ],
            "each": EACH,
        }
        for mechanism in map(ordered.mechanisms().get, NAMES)
    ]
    found = {}
    for name, rows in zip(NAMES, node("perturb.mjs", payload), strict=True):
        raw, size = base64.b64decode(rows), ordered.mechanisms()[name].report_size
        found[name] = [raw[k : k + size] for k in range(0, len(raw), size)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_reports_have_the_law_that_python_states(name):
    mechanism = ordered.mechanisms()[name]
    every = ordered.all_reports(mechanism)
    laws = [{y: mechanism.coder.law(y, x) for y in every} for x in answers(mechanism)]
    for place, law in enumerate(laws):
        seen = Counter(drawn()[name][place * EACH : (place + 1) * EACH])
        other = laws[place - 1]  # the twin: somebody else's answer
        if 1 in law.values():
            assert [law[y] for y in seen] == [1]
            continue
        assert_distribution(seen, law)
        assert missed(EACH, other, law) < 1e-6 or 1 in other.values()
        must_fail(assert_distribution, seen, other)
