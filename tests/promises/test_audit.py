"""The auditor's check of a raw file: what it finds, word for word."""

import json

import pytest
from small import small

import discreet as d
from discreet.check.document import fingerprint
from discreet.errors import GuaranteeError, MechanismError
from discreet.promises.audit import audit
from discreet.promises.words import in_words

CHANGED = "the content does not match the fingerprint: it was changed after it was made"


@pytest.fixture
def found(tmp_path):
    """Findings about a document; it is signed again unless it is to be `stale`."""

    def of(body, policy=None, stale=None):
        path = tmp_path / "survey.json"
        mark = fingerprint(body) if stale is None else stale
        path.write_text(json.dumps({**body, "fingerprint": mark}), encoding="utf-8")
        findings = audit(str(path), policy)
        assert findings.fingerprint == fingerprint(body)  # of what is there, not what it says
        return findings

    return of


@pytest.fixture
def designed(toy):
    return d.design(toy)


def test_a_good_file(found, designed, toy):
    findings = found(designed.to_canonical(), toy)
    assert findings.problems == []
    assert findings.fingerprint == designed.fingerprint
    assert findings.promises == designed.guarantee().sentences() and len(findings.promises) == 2
    assert findings.certificate == designed.certificate.sentence
    assert findings.certificate.startswith("the best possible for this guarantee and prior")


def test_without_a_certificate_nothing_is_said(found):
    findings = found(small("fixed").to_canonical())
    assert findings.certificate == "" and findings.problems == [] and findings.promises


@pytest.mark.parametrize("mark", ["0" * 64, "", False, 5])
def test_a_wrong_fingerprint_is_a_problem_and_all_else_is_still_said(found, designed, mark):
    findings = found(designed.to_canonical(), stale=mark)
    assert findings.problems == [CHANGED] and len(findings.promises) == 2


def test_a_broken_promise_names_the_levels_and_the_part(found, designed):
    """Nothing is promised then; every problem so far is told."""
    body = designed.to_canonical()
    body["parts"][0]["own"][1] = 2**32 + 1
    with pytest.raises(GuaranteeError) as caught:
        d.Mechanism.from_canonical(body)
    assert caught.value.part == 0 and caught.value.levels == ("common",)
    told = f"the guarantee does not hold: {caught.value} [levels common] (part 0)"
    findings = found(body)
    assert (findings.problems, findings.promises, findings.certificate) == ([told], [], "")
    assert found(body, stale="0" * 64).problems == [CHANGED, told]


def test_two_levels_and_no_part_are_not_said_again(found, designed):
    """The sentence itself names two levels; chances that do not sum are of no part."""
    body = designed.to_canonical()
    body["parts"][1]["own"][1] += 2**28
    assert found(body).problems == [
        'the guarantee does not hold: answers of the levels "common" and "serious" are told apart '
        "by more than their pair budget (part 1)"
    ]
    body = designed.to_canonical()
    body["parts"][0]["chance"][0] -= 1
    assert found(body).problems == [
        "the guarantee does not hold: the chances of the parts do not sum to 2^32 for every group"
    ]


def test_what_discreet_would_not_write_is_a_problem(found, designed):
    findings = found({**designed.to_canonical(), "hello": 1})
    assert findings.problems == [
        "the mechanism has keys or values that discreet would not write; it is refused"
    ]


def test_another_policy_is_a_problem(found, designed, toy):
    other = d.Policy.from_levels(
        [("serious", "ln(3)", ["HIV"]), ("common", "ln(6)", list(toy.items[1:]))]
    )
    told = 'not the policy given: item "HIV" has epsilon ln(4), not ln(3)'
    assert found(designed.to_canonical(), other).problems == [told]
    assert found(designed.to_canonical(), other, stale="0" * 64).problems == [CHANGED, told]


def test_another_padding_is_a_problem(found):
    """A policy may leave the padding open."""
    levels = [("a", 1, ["x", "y", "z"])]
    body = d.design(d.Policy.from_levels(levels, kind="set"), padding=2).to_canonical()
    for padding, problems in (
        (None, []),
        (2, []),
        (3, ["not the policy given: padding is 2, not 3"]),
    ):
        policy = d.Policy.from_levels(levels, kind="set", padding=padding)
        assert found(body, policy).problems == problems


def test_a_thousand_promises_are_listed(found):
    policy = d.Policy.from_budgets({f"i{k}": f"{1 + k / 1000}" for k in range(1000)})
    findings = found(d.design(policy, "rappor").to_canonical())
    assert findings.problems == [] and len(findings.promises) == 1000


@pytest.mark.parametrize("kind", ["single", "set"])
def test_thousands_of_promises_are_told_in_short(found, kind):
    """The smallest and the largest factor, each with the level that has it, and never nothing."""
    policy = d.Policy.from_budgets({f"i{k}": f"{1 + k / 1000}" for k in range(1001)}, kind=kind)
    made = d.design(policy, "opt1", padding=2 if kind == "set" else None)
    findings = found(made.to_canonical())
    factors = made.guarantee().factors
    told, *lists = findings.promises
    assert findings.problems == [] and len(lists) == (kind == "set")
    assert all(sentence.startswith("Whole lists: ") for sentence in lists)
    assert told.startswith("1,001 levels: ") and told.endswith(").")
    assert ("having or not having" if kind == "set" else "whoever sees your report") in told
    for pick in (min, max):
        factor = pick(factors)
        names = [policy.levels[k].name for k, x in enumerate(factors) if x == factor]
        assert any(f'{in_words(factor)} (level "{name}")' in told for name in names)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hello", 0.5, "the mechanism holds 0.5, which no mechanism does"),
        ("hello", 2**53, f"{2**53:.1f}|{2**53}"),
        ("model", "BEST", "the mechanism's pieces do not fit: model"),
        ("format", "discreet-mechanism/1", 'must be "discreet-mechanism/3"'),
    ],
)
def test_what_is_no_mechanism_raises(found, designed, key, value, message):
    """Also a strange value under a key that nobody reads."""
    with pytest.raises(MechanismError, match=message):
        found({**designed.to_canonical(), key: value}, stale="0" * 64)
