"""What is refused on a device says what is wrong, and never repeats the answer."""

import numpy as np
import pytest
from collecting import mechanism

import discreet as d
from discreet.device import perturb
from discreet.errors import DataError

SECRET = "high 0"


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("bits", "high 00"), ("bits", {SECRET}), ("bits", [SECRET]), ("bits", 99), ("bits", None),
        ("set", SECRET), ("set", {"high 00"}), ("set", {SECRET: True}), ("set", 3),
        ("each", SECRET), ("hits", [SECRET, "high 00"]), ("set", np.array(0)), ("set", b"high 0"),
    ],
)  # fmt: skip
def test_refusals_do_not_repeat_the_answer(kind, answer):
    with pytest.raises(DataError) as caught:
        perturb(mechanism(kind), answer)
    assert "high" not in str(caught.value) and caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        ("bits", {SECRET}, "takes a single item, got set; the policy's kind is single"),
        ("bits", frozenset([SECRET]), "takes a single item, got frozenset;"),
        ("bits", [SECRET], "takes a single item, got list;"),
        ("bits", (SECRET,), "takes a single item, got tuple;"),
        ("bits", "high 00", "the answer is not an item of this question; policy.items lists them"),
        ("set", SECRET, "takes a set of items, got str; write {"),
        ("set", b"high 0", "takes a set of items, got bytes; write {"),
        ("each", {SECRET: True}, "takes a set of items, got dict; write {"),
        ("each", 3, "takes a set of items, got int; write {"),
        ("set", np.array(0), "takes a set of items, got something else"),
        ("set", {SECRET, "high 00"}, "the answer is not an item of this question"),
    ],
)
def test_a_refusal_says_what_is_wrong(kind, answer, words):
    with pytest.raises(DataError) as caught:
        perturb(mechanism(kind), answer)
    assert words in str(caught.value)


@pytest.mark.parametrize("answer", [0, 2, "z"])
def test_a_huge_budget_tells_the_answer(answer):
    """Of e^40 chances one is another answer, so what is named is what was given."""
    policy = d.Policy.from_levels([("a", 40, ["x", "y", "z"])])
    made = d.design(policy, "grr")
    (named,) = made.coder.named(perturb(made, answer))
    assert named == policy.place(answer)


@pytest.mark.parametrize("answer", [[], ["z"], {"z", "x"}, (1, "x"), [2, 1, 0, 2]])
def test_a_huge_budget_tells_every_item_of_a_list(answer):
    """An item is told wrongly once in e^20 reports."""
    policy = d.Policy.from_levels([("a", 40, ["x", "y", "z"])], kind="each")
    made = d.design(policy)
    named = made.coder.named(perturb(made, answer))
    assert named == sorted({policy.place(item) for item in answer})


def test_an_item_named_twice_counts_once():
    made = mechanism("each")
    assert made.coder.refusal(perturb(made, [SECRET, SECRET])) is None


class Hostile:
    """Says its secret wherever it is asked for something."""

    def __init__(self, method):
        self.method = method

    def _tell(self, *_):
        raise ValueError(f"the secret is {SECRET}")

    def __getattr__(self, name):
        if name == self.method:
            return self._tell
        raise AttributeError(name)


class HostileIndex:
    def __init__(self, index):
        self.index = index

    def __index__(self):
        if self.index is None:
            raise ValueError(f"the secret is {SECRET}")
        return self.index

    def __repr__(self):
        raise ValueError(f"the secret is {SECRET}")

    def __le__(self, other):
        return True

    def __lt__(self, other):
        return True

    __gt__ = __ge__ = __le__


class HostileText(str):
    def __hash__(self):
        raise ValueError(f"the secret is {SECRET}")


def telling():
    yield 0
    raise ValueError(f"the secret is {SECRET}")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("bits", HostileIndex(None)), ("bits", HostileIndex(-1)), ("bits", HostileIndex(10**6)),
        ("bits", HostileText("x")), ("bits", Hostile("__index__")), ("bits", 10**4000),
        ("set", telling()), ("each", [HostileIndex(-1)]), ("hits", [HostileIndex(None)]),
    ],
    ids=range(9),
)  # fmt: skip
def test_answers_that_raise_errors_of_their_own_tell_nothing(kind, answer):
    with pytest.raises(DataError) as caught:
        perturb(mechanism(kind), answer)
    assert "high" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
