"""A policy is read exactly as written, or refused in one sentence that names the key and the
value.
"""

import itertools
import json
import math
import random
import re
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import policies

import discreet as d
from discreet.check import exact
from discreet.errors import PolicyError
from discreet.policy import OPEN, Budget, Level, Pair, Policy
from discreet.promises import paths

TOML = """
name = "health"
question = "Which?"
notion = "avg"

[[level]]
name = "serious"
epsilon = "ln(4)"
items = ["HIV"]
weight = 2.5

[[level]]
name = "common"
epsilon = 1.2
items = ["anemia", "Kopfweh – schlimm"]

[[pair]]
levels = ["common", "common"]
epsilon = 3

[[pair]]
levels = ["serious", "common"]
protected = false
"""

LEVELS = '[[level]]\nname = "a"\nepsilon = 1\n[[level]]\nname = "b"\nepsilon = 2\n'


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


# ---- reading -------------------------------------------------------------------------------------


def test_toml_and_json_and_code_agree(tmp_path):
    toml = Policy.load(write(tmp_path / "health.toml", TOML))
    document = {
        "name": "health",
        "question": "Which?",
        "notion": "avg",
        "level": [
            {"name": "serious", "epsilon": "ln(4)", "items": ["HIV"], "weight": 2.5},
            {"name": "common", "epsilon": 1.2, "items": ["anemia", "Kopfweh – schlimm"]},
        ],
        "pair": [
            {"levels": ["common", "common"], "epsilon": 3},
            {"levels": ["serious", "common"], "protected": False},
        ],
    }
    written = Policy.load(write(tmp_path / "health.json", json.dumps(document, ensure_ascii=False)))
    pairs = (Pair("common", "common", Budget.parse(3)), Pair("serious", "common", None))
    rows = [("serious", "ln(4)", ["HIV"], 2.5), ("common", "1.2", ["anemia", "Kopfweh – schlimm"])]
    made = Policy.from_levels(rows, question="Which?", notion="avg", pairs=pairs)
    assert toml == written == made
    assert hash(toml) == hash(made)
    assert toml.levels == (
        Level("serious", Budget(Fraction(4), True), 2.5),
        Level("common", Budget(Fraction(6, 5)), 1.0),
    )


def test_csv_of_budgets(tmp_path):
    policy = Policy.load(
        write(tmp_path / "budgets.csv", 'note,epsilon,item\n,1,z\n,ln(4),"a, b"\n,1.0,y\n\n')
    )
    assert policy == Policy.from_budgets({"z": 1, "a, b": "ln(4)", "y": "1"})
    assert policy.items == ("z", "a, b", "y") and policy.level_of == (0, 1, 0)
    assert [level.name for level in policy.levels] == ["1", "ln(4)"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_items_file_keeps_row_order(tmp_path, encoding, end):
    """Row order is index order, whatever the order of the levels; byte-order mark and Windows line
    ends are accepted.
    """
    write(tmp_path / "items.csv", end.join(["item,level", "grün,b", "x,a", "y,b", ""]), encoding)
    policy = Policy.load(
        write(
            tmp_path / "p.toml", f'items_file = "items.csv"\n{LEVELS}'.replace("\n", end), encoding
        )
    )
    assert policy.items == ("grün", "x", "y") and policy.level_of == (1, 0, 1)
    assert policy.level_sizes == (1, 2)


def test_a_million_rows(tmp_path):
    rows = "\n".join(f"i{k},{'ab'[k % 2]}" for k in range(10**6))
    write(tmp_path / "items.csv", f"item,level\n{rows}\n")
    policy = Policy.load(write(tmp_path / "p.toml", f'items_file = "items.csv"\n{LEVELS}'))
    assert policy.m == 10**6 and policy.level_sizes == (500_000, 500_000)
    assert policy.index["i999999"] == 999_999 and policy.level_of[999_999] == 1


def test_order_and_index():
    policy = Policy.from_levels([("b", 2, ["z", "y"]), ("a", 1, ["x"])])
    assert policy.items == ("z", "y", "x") and policy.level_of == (0, 0, 1)
    assert policy.index == {"z": 0, "y": 1, "x": 2}
    assert policy.index is policy.index  # one dictionary, built once: every look-up is O(1)


def test_frozen_hashable_equal(toy):
    again = Policy.from_levels(
        [("serious", "ln(4)", ["HIV"]), ("common", "ln(6)", list(toy.items[1:]))]
    )
    other = Policy.from_levels(
        [("serious", "ln(4)", ["HIV"]), ("common", "ln(5)", list(toy.items[1:]))]
    )
    assert {toy: 1}[again] == 1
    assert other != toy
    with pytest.raises(FrozenInstanceError):
        toy.notion = "avg"
    with pytest.raises(FrozenInstanceError):
        toy.levels[0].budget.value = 2


# ---- budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "value", "is_log", "text"),
    [
        (1, Fraction(1), False, "1"),
        (0.1, Fraction(1, 10), False, "0.1"),
        (Decimal("1.20"), Fraction(6, 5), False, "1.2"),
        ("2.50", Fraction(5, 2), False, "2.5"),
        (1e-7, Fraction(1, 10**7), False, "0.0000001"),
        (100, Fraction(100), False, "100"),
        ("ln(4)", Fraction(4), True, "ln(4)"),
        (" ln( 6/4 ) ", Fraction(3, 2), True, "ln(3/2)"),
        ("ln(2.5)", Fraction(5, 2), True, "ln(5/2)"),
        ("2/6", Fraction(1, 3), False, "1/3"),
        (" 1 / 4 ", Fraction(1, 4), False, "0.25"),
    ],
)
def test_budgets_are_exact(raw, value, is_log, text):
    budget = Budget.parse(raw)
    assert (budget.value, budget.is_log, budget.text) == (value, is_log, text)
    assert float(budget) == pytest.approx(math.log(value) if is_log else float(value), rel=1e-15)


@pytest.mark.parametrize(
    ("raw", "parts", "text"),
    [
        (1, 3, "1/3"),
        (1.5, 2, "0.75"),
        ("1/3", 2, "1/6"),
        ("ln(4)", 3, "ln(4)/3"),
        ("ln(4)/3", 2, "ln(4)/6"),
        ("ln(5/2)", 1, "ln(5/2)"),
    ],
)
def test_a_budget_is_divided_exactly(raw, parts, text):
    whole = Budget.parse(raw)
    part = whole.divided(parts)
    assert part.text == text and Budget.parse(text) == part
    assert float(part) * parts == pytest.approx(float(whole), rel=1e-15)
    assert OPEN.divided(parts) is OPEN


@pytest.mark.parametrize("k", [Fraction(4), Fraction(3, 2), Fraction(10**30), Fraction(101, 100)])
@pytest.mark.parametrize("root", [2, 3, 7, 1000])
def test_the_factor_of_a_divided_logarithm_is_never_too_large(k, root):
    """And by less than 2^-80 too small: its power is at most k, and that of the next is above."""
    factor = exact.factor(Budget(k, True, root=root))
    assert factor**root <= k < (factor + Fraction(1, 2**80)) ** root
    assert paths.factor_up(Budget(k, True, root=root)) ** root > k


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (np.float32(2.5), "2.5"),
        (np.float32(0.1), "0.1"),  # not the nearest double to it, 0.10000000149011612
        (np.float16(0.1), "0.1"),
        (np.float64(0.1), "0.1"),
        (np.longdouble("1.5"), "1.5"),
        (np.int64(3), "3"),
        (np.uint8(3), "3"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_numbers_of_numpy_are_budgets_as_they_are_printed(raw, text):
    assert Budget.parse(raw) == Budget.parse(text)
    policy = Policy.from_levels([("a", raw, ["x"], raw)])
    assert policy.levels[0].budget.text == text
    assert policy.levels[0].weight == float(raw) and type(policy.levels[0].weight) is float
    assert Policy.from_budgets({"x": raw}).levels[0].budget.text == text


@pytest.mark.parametrize(
    "raw", [np.float32("nan"), np.float32("inf"), np.int64(0), np.float32(-1), np.bool_(True)]
)
def test_numbers_of_numpy_that_are_no_budget(raw):
    with pytest.raises(PolicyError, match="must be a positive number"):
        Budget.parse(raw)


short = st.decimals(min_value=Decimal("0.000001"), max_value=1000, places=6).map(str)
logs = st.builds("ln({}/{})".format, st.integers(10**9, 10**12), st.integers(1, 10**8))
floats = st.floats(min_value=1e-6, max_value=1e6)


@given(st.one_of(short, logs, floats, st.integers(1, 10**20)))
def test_canonical_text_round_trip(raw):
    budget = Budget.parse(raw)
    assert Budget.parse(budget.text) == budget
    assert Budget.parse(budget.text).text == budget.text


@given(st.decimals(min_value=Decimal("1.1"), max_value=100, places=18))
@example(Decimal("2.718281828459045235"))
def test_canonical_text_round_trip_of_long_logarithms(k):
    budget = Budget.parse(f"ln({k})")
    assert Budget.parse(budget.text) == budget


# ---- notions, pairs, weights ---------------------------------------------------------------------


@pytest.mark.parametrize(("notion", "between"), [("min", 1), ("avg", 1.5)])
def test_notions(notion, between):
    policy = Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y"])], notion=notion)
    assert policy.pair_epsilon(0, 1) == policy.pair_epsilon(1, 0) == between
    assert policy.pair_epsilon(0, 0) == 1 and policy.pair_epsilon(1, 1) == 2


def test_explicit_pairs_hold_both_ways(tmp_path):
    policy = Policy.load(write(tmp_path / "p.toml", TOML))
    assert policy.pair_budgets == {(1, 1): Budget.parse(3), (0, 1): None, (1, 0): None}
    assert policy.pair_epsilon(1, 1) == 3
    assert policy.pair_epsilon(0, 1) == policy.pair_epsilon(1, 0) == math.inf
    assert policy.pair_epsilon(0, 0) == pytest.approx(math.log(4))


def test_the_same_pair_twice_is_fine():
    pairs = (Pair("a", "b", Budget.parse("0.50")), Pair("b", "a", Budget.parse(0.5)))
    assert (
        Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y"])], pairs=pairs).pair_epsilon(1, 0)
        == 0.5
    )


@pytest.mark.parametrize(
    "pair",
    [
        ("a", "b", 0.5), ["a", "b", "0.5"], ("b", "a", np.float32(0.5)), Pair("a", "b", 0.5),
        Pair("a", "b", "0.50"), Pair("b", "a", Decimal("0.5")), Pair("a", "b", Budget.parse(0.5)),
    ],
    ids=str,
)  # fmt: skip
def test_pairs_in_python(pair):
    """Tuples, and budgets as they are given to levels: they crashed."""
    policy = Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y", "z"])], pairs=[pair])
    assert policy.pair_epsilon(0, 1) == 0.5 and policy.pairs[0].budget == Budget.parse("0.5")
    assert d.design(policy).guarantee().holds
    assert Policy.from_canonical(policy.to_canonical()) == policy


def test_a_pair_of_none_is_not_protected():
    rows = [("a", 1, ["x"]), ("b", 2, ["y"])]
    policy = Policy.from_levels(rows, pairs=[("a", "b", None)])
    assert policy == Policy.from_levels(rows, pairs=(Pair("a", "b", None),))
    assert policy.pair_epsilon(0, 1) == math.inf


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        (("a", "b"), r"a pair is \(level, level, epsilon\)"),
        ("ab", r"a pair is \(level, level, epsilon\)"),
        ({"levels": ["a", "b"]}, r"a pair is \(level, level, epsilon\)"),
        (("a", "b", -1), r"epsilon = -1 in the pair \['a', 'b'\] must be a positive number"),
        (("a", "b", ""), "must be a positive number"),
        (("a", ["b"], 1), "a pair names two levels"),
        (("a", "c", 1), 'the level "c", which does not exist'),
    ],
)
def test_pairs_in_python_that_are_none(pair, match):
    with pytest.raises(PolicyError, match=match):
        Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y"])], pairs=[pair])


@pytest.mark.parametrize("weight", [1, 2.5, 1e-3, 10**6])
def test_weights(weight):
    assert Policy.from_levels([("a", 1, ["x"], weight)]).levels[0].weight == weight


# ---- canonical form ------------------------------------------------------------------------------


@given(policy=policies(question="Ça va?"))
def test_canonical_round_trip(policy):
    assert Policy.from_canonical(json.loads(json.dumps(policy.to_canonical()))) == policy


def test_canonical_round_trip_of_pairs_without_the_weights(tmp_path):
    """A weight is how the organiser weighs errors, no promise: it is not in the canonical form."""
    policy = Policy.load(write(tmp_path / "p.toml", TOML))
    assert [level.weight for level in policy.levels] == [2.5, 1]
    assert "weight" not in json.dumps(policy.to_canonical())
    back = Policy.from_canonical(policy.to_canonical())
    assert {level.weight for level in back.levels} == {1} and back.pairs == policy.pairs
    assert back == replace(policy, levels=tuple(replace(x, weight=1.0) for x in policy.levels))
    assert policy.differences(back) == back.differences(policy) == []


def test_the_canonical_form_holds_strings_and_integers_only(tmp_path):
    def leaves(value):
        if isinstance(value, dict):
            value = [*value, *value.values()]
        return (
            [leaf for part in value for leaf in leaves(part)]
            if isinstance(value, list)
            else [value]
        )

    canonical = Policy.load(write(tmp_path / "p.toml", TOML)).to_canonical()
    assert {type(leaf) for leaf in leaves(canonical)} == {str, int}


@pytest.mark.parametrize(
    "change",
    [
        {"levels": 5},
        {"levels": [{"name": "a"}]},
        {"level_of": [0]},
        {"level_of": [0, 2, 1]},
        {"level_of": [0, -1, 1]},
        {"level_of": [0, True, 1]},
        {"items": ["x", "x", "y"]},
        {"pairs": [{"levels": ["serious"], "epsilon": ""}]},
        {"notion": "max"},
    ],
    ids=str,
)
def test_a_broken_canonical_form_is_refused(tmp_path, change):
    canonical = Policy.load(write(tmp_path / "p.toml", TOML)).to_canonical()
    with pytest.raises(PolicyError):
        Policy.from_canonical({**canonical, **change})
    with pytest.raises(PolicyError):
        Policy.from_canonical({key: value for key, value in canonical.items() if key not in change})


# ---- differences ---------------------------------------------------------------------------------


def test_differences_names_everything(toy):
    rows = [
        ("serious", "ln(5)", ["HIV"]),
        ("other", "ln(6)", ["anemia", "headache", "toothache", "cold"]),
    ]
    other = Policy.from_levels(rows, notion="avg", question="How?")
    assert toy.differences(other) == [
        'notion is "avg", not "min"',
        'question is "How?", not ""',
        'item "HIV" has epsilon ln(5), not ln(4)',
        'item "stomachache" is missing',
        'item "cold" is not in the policy',
    ]
    assert toy.differences(toy) == []


def test_differences_ignores_level_names_and_sees_order(toy):
    rows = [("s", "ln(4)", ["HIV"]), ("c", "ln(6)", list(toy.items[1:]))]
    assert toy.differences(Policy.from_levels(rows)) == []
    assert toy.differences(Policy.from_levels(rows[::-1])) == ["the items are in another order"]
    assert toy.differences(Policy.from_levels(rows, pairs=(Pair("c", "c", None),))) == [
        "the explicit pair budgets differ"
    ]


def test_differences_sees_which_items_a_pair_binds():
    """x-y and y-z unprotected, against x-y and x-z: budgets, order and first items agree, the
    promise does not.
    """
    levels = (Level("a", Budget.parse(1)), Level("b", Budget.parse(1)))
    one, two = (
        Policy(tuple("xyz"), of, levels, pairs=(Pair("a", "b", None),))
        for of in ((0, 1, 0), (0, 1, 1))
    )
    assert one.differences(two) != []


# ---- other files than policies -------------------------------------------------------------------


def not_loaded(path):
    with pytest.raises(PolicyError) as caught:
        Policy.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


@pytest.mark.parametrize("name", ["m.json", "m.toml", "m"])
def test_a_mechanism_or_a_tally_is_not_a_policy(tmp_path, toy, name):
    mechanism = d.design(toy)
    mechanism.save(tmp_path / name)
    assert not_loaded(tmp_path / name).endswith(
        " is a mechanism, not a policy; give the policy file that it was made from"
    )
    mechanism.tally([mechanism.perturb("HIV")]).save(tmp_path / name)
    assert " is a tally, not a policy" in not_loaded(tmp_path / name)


def test_tables_of_budgets_as_spreadsheets_write_them(tmp_path):
    path = write(tmp_path / "p.csv", "item;epsilon\nx;1,5\ny;2\n")
    assert "has semicolons between its columns; save it with commas" in not_loaded(path)
    write(path, "item,epsilon\ngröße,1\n", "latin-1")
    assert "is not UTF-8 text (Latin-1, perhaps); save it as UTF-8" in not_loaded(path)
    write(path, "item,epsilon\nx,1\n", "utf-16")
    assert "is UTF-16 text; save it as UTF-8" in not_loaded(path)
    for name in ("p.xlsx", "p.csv"):
        (tmp_path / name).write_bytes(b"PK\x03\x04\x14\x00\x06\x00")
        assert "is a spreadsheet or another zip file" in not_loaded(tmp_path / name)


# ---- bad input: one sentence that names key and value --------------------------------------------


def level(**changes):
    row = {"name": "a", "epsilon": 1, "items": ["x", "y"], **changes}
    return {key: value for key, value in row.items() if value is not None}


def refused(document):
    with pytest.raises(PolicyError) as caught:
        Policy.from_document(document)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    "raw",
    [
        0,
        -1,
        0.0,
        -0.5,
        "nan",
        math.nan,
        math.inf,
        -math.inf,
        Decimal("NaN"),
        Decimal("sNaN"),
        "much",
        "",
        True,
        False,
        [1],
        None,
        "ln(0)",
        "ln(1)",
        "ln(1/0)",
        "ln(1/2)",
        "ln(-4)",
        "ln()",
        "ln(x)",
        "ln(1.5/2)",
        "ln(4",
        1e300,
        10**60,
    ],
    ids=repr,
)
def test_bad_budgets(raw):
    document = {"level": [{"name": "serious", "items": ["x"], "epsilon": raw}]}
    sentence = refused(document)
    shown = f'"{raw}"' if isinstance(raw, str) else str(raw)
    shown = shown.lower() if isinstance(raw, bool) else shown
    assert f'epsilon = {shown} in level "serious"' in sentence
    pair = {"levels": ["a", "a"], "epsilon": raw}
    assert f"epsilon = {shown} in the pair" in refused({"level": [level()], "pair": [pair]})


@pytest.mark.parametrize("raw", ["inf", "nan", "-1", "0", "true", '"text"', '"ln(1)"', "-0.0"])
def test_bad_budgets_in_toml(tmp_path, raw):
    path = write(tmp_path / "p.toml", f'[[level]]\nname = "s"\nepsilon = {raw}\nitems = ["x"]')
    with pytest.raises(
        PolicyError, match=r'epsilon = .* in level "s" must be a positive number'
    ) as caught:
        Policy.load(path)
    assert str(path) in str(caught.value)


TWO = [level(), level(name="b", items=["z"])]


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ({"level": [level()], "epsilom": 1}, ['unknown key "epsilom"', "the policy", "known are"]),
        ({"level": [level(itms=[])]}, ['unknown key "itms"', "a level"]),
        (
            {"level": [level()], "pair": [{"levels": ["a", "a"], "eps": 1}]},
            ['unknown key "eps"', "a pair"],
        ),
        ([], ["the policy must be a table"]),
        ({"level": [5]}, ["a level must be a table", "5"]),
        ({"level": level()}, ["[[level]]"]),
        ({}, ["no items", "[[level]]"]),
        ({"level": [level(items=["x", "x"])]}, ['item "x" is named twice']),
        ({"level": [level(), level(items=["z"])]}, ['level "a" is named twice']),
        (
            {"level": [level(), level(name="b", items=["y"])]},
            ['item "y" is in two levels', '"a"', '"b"'],
        ),
        ({"level": [level(items=[])]}, ["items = []", 'level "a"']),
        ({"level": [level(items="HIV")]}, ['items = "HIV"', 'level "a"']),
        ({"level": [level(items=None)]}, ['level "a"', "items"]),
        ({"level": [level(items=[5])]}, ["item 5", "text"]),
        ({"level": [level(items=[" "])]}, ['item " "', "text"]),
        ({"level": [level(name=None)]}, ["name is missing"]),
        ({"level": [level(name=5)]}, ["name = 5"]),
        ({"level": [level(name="")]}, ['name = ""']),
        ({"level": [level(epsilon=None)]}, ["epsilon is missing", 'level "a"']),
        ({"level": [level(weight=0)]}, ["weight = 0", 'level "a"', "positive"]),
        ({"level": [level(weight=-1.5)]}, ["weight = -1.5"]),
        ({"level": [level(weight="heavy")]}, ['weight = "heavy"']),
        ({"level": [level(weight=True)]}, ["weight = true"]),
        ({"level": [level(weight=math.nan)]}, ["weight = nan"]),
        ({"level": [level(weight=math.inf)]}, ["weight = inf"]),
        ({"level": [level()], "notion": "max"}, ['notion = "max"', "min, avg"]),
        ({"level": [level()], "kind": "many"}, ['kind = "many"', "single, set, each"]),
        ({"level": [level()], "input": "set"}, ['unknown key "input"', "kind"]),
        ({"level": [level()], "last": 5}, ["last = 5", "list of items"]),
        ({"level": [level()], "last": ["nowhere"]}, ['last names "nowhere"']),
        ({"level": [level()], "question": 5}, ["question = 5"]),
        ({"level": [level()], "padding": 3}, ["padding = 3", 'kind = "set" only']),
        ({"level": [level()], "kind": "set", "padding": 0}, ["padding = 0", "from 1"]),
        ({"level": [level()], "kind": "set", "padding": -2}, ["padding = -2", "from 1"]),
        ({"level": [level()], "kind": "set", "padding": 1.5}, ["padding = 1.5", "whole number"]),
        ({"level": [level()], "kind": "set", "padding": True}, ["padding = true", "whole number"]),
        (
            {"level": TWO, "pair": [{"levels": ["a", "q"], "epsilon": 1}]},
            ['level "q"', "does not exist"],
        ),
        (
            {
                "level": TWO,
                "pair": [
                    {"levels": ["a", "b"], "epsilon": 1},
                    {"levels": ["b", "a"], "epsilon": 2},
                ],
            },
            ['("b", "a")', "twice", "different budgets"],
        ),
        (
            {
                "level": TWO,
                "pair": [
                    {"levels": ["a", "b"], "epsilon": 1},
                    {"levels": ["a", "b"], "protected": False},
                ],
            },
            ['("a", "b")', "twice", "different budgets"],
        ),
        (
            {"level": TWO, "pair": [{"levels": ["a", "b"], "epsilon": 1, "protected": False}]},
            ["'a', 'b'", "not both"],
        ),
        (
            {"level": TWO, "pair": [{"levels": ["a", "b"]}]},
            ["'a', 'b'", "either an epsilon or protected = false"],
        ),
        (
            {"level": TWO, "pair": [{"levels": ["a", "b"], "protected": "no"}]},
            ['protected = "no"', "true or false"],
        ),
        (
            {"level": TWO, "pair": [{"levels": ["a"], "epsilon": 1}]},
            ["levels = ['a']", "two level names"],
        ),
        ({"level": TWO, "pair": [{"epsilon": 1}]}, ["levels = None", "two level names"]),
        ({"level": [level()], "items_file": 5}, ["items_file = 5", "CSV"]),
    ],
    ids=lambda value: (
        value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""
    ),
)
def test_bad_documents(document, parts):
    sentence = refused(document)
    assert all(part in sentence for part in parts), sentence


@pytest.mark.parametrize("label", ["x\ny", "x\x1b[31my"])
def test_control_characters_are_refused_and_escaped(label):
    sentence = refused({"level": [level(items=[label])]})
    assert "control characters" in sentence and sentence.isprintable()


def test_too_many_levels_for_explicit_pairs():
    rows = [(f"L{k}", 1, [f"i{k}"]) for k in range(201)]
    with pytest.raises(PolicyError, match="at most 200 levels, got 201"):
        Policy.from_levels(rows, pairs=(Pair("L0", "L1", None),))


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("p.toml", "", ["is empty"]),
        ("p.toml", " \n\ufeff", ["is not TOML"]),
        ("p.toml", "level = [", ["is not TOML"]),
        ("p.json", "{", ["is not JSON"]),
        ("p.json", "[]", ["must be a table"]),
        ("p.csv", "", ["is empty"]),
        ("p.csv", "item,eps\nx,1\n", ['no column "epsilon"', "item, eps"]),
        ("p.csv", "label,epsilon\nx,1\n", ['no column "item"', "label, epsilon"]),
        ("p.csv", "item,epsilon\nx,1\ny\n", ["row 3 has 1 cells"]),
        ("p.csv", "item,epsilon,epsilon\nx,1,2\n", ['has 2 columns "epsilon"; keep one of them']),
        ("p.csv", "item,epsilon\nx,1\nx,2\n", ['item "x" is named twice']),
        ("p.csv", "item,epsilon\nx,-1\n", ['epsilon = "-1" in item "x"']),
        ("p.csv", "item,epsilon\nx,\n", ['epsilon = "" in item "x"']),
        ("p.csv", "item,epsilon\n", ["no items"]),
    ],
)
def test_bad_files(tmp_path, name, content, parts):
    path = write(tmp_path / name, content)
    with pytest.raises(PolicyError) as caught:
        Policy.load(path)
    assert all(part in str(caught.value) for part in parts), caught.value


@pytest.mark.parametrize("name", ["p.toml", "p.json", "p.csv"])
def test_unreadable_files(tmp_path, name):
    with pytest.raises(PolicyError, match=rf"{name} does not exist"):
        Policy.load(tmp_path / name)
    write(tmp_path / name, "grün", "latin-1")
    with pytest.raises(PolicyError, match=rf"{name} is not UTF-8"):
        Policy.load(tmp_path / name)
    (tmp_path / "folder").mkdir()
    with pytest.raises(PolicyError, match="cannot be read"):
        Policy.load(tmp_path / "folder")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, ["items.csv does not exist"]),
        ("", ["items.csv is empty"]),
        ("item\nx\n", ['no column "level"']),
        ("item,level\nx\n", ["row 2 has 1 cells"]),
        ("item,level\nx,q\n", ['level "q"', "a, b"]),
        ("item,level\nx,a\nx,b\n", ['item "x" is named twice']),
        ("item,level\nx,a\n", ['level "b" has no items']),
    ],
)
def test_bad_items_files(tmp_path, content, parts):
    if content is not None:
        write(tmp_path / "items.csv", content)
    with pytest.raises(PolicyError) as caught:
        Policy.load(write(tmp_path / "p.toml", f'items_file = "items.csv"\n{LEVELS}'))
    assert all(part in str(caught.value) for part in ("p.toml", *parts)), caught.value


def test_items_in_two_places_are_refused(tmp_path):
    write(tmp_path / "items.csv", "item,level\nx,a\n")
    text = 'items_file = "items.csv"\n[[level]]\nname = "a"\nepsilon = 1\nitems = ["y"]'
    with pytest.raises(PolicyError, match='level "a" lists items, but items_file'):
        Policy.load(write(tmp_path / "p.toml", text))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.toml", '[[level]]\nname = ["a"]\nepsilon = 1\nitems = ["x"]'),  # TypeError: unhashable
        (
            "p.toml",
            f'[[level]]\nname = "a"\nepsilon = 1\nitems = ["x"]\nweight = 1{"0" * 400}',
        ),  # OverflowError
        ("p.toml", f"padding = 1{'0' * 5000}"),  # ValueError of int()
        ("p.json", f'{{"padding": 1{"0" * 5000}}}'),  # ValueError of int()
        ("p.toml", "x = " + "[" * 50_000),  # RecursionError
        ("p.json", "[" * 200_000),  # RecursionError
        ("p.csv", f"item,epsilon\n{'x' * 140_000},1\n"),  # csv.Error: field larger than the limit
    ],
    ids=[
        "name-list",
        "huge-weight",
        "toml-digits",
        "json-digits",
        "toml-deep",
        "json-deep",
        "csv-field",
    ],
)
def test_hostile_files_get_a_sentence(tmp_path, name, content):
    with pytest.raises(d.DiscreetError):
        Policy.load(write(tmp_path / name, content))


def test_labels_may_be_spelled_with_joiners_but_not_of_joiners_alone():
    policy = Policy.from_levels([("a", 1, ["می\u200cخواهم", "👩\u200d⚕️"])])
    assert policy.index["👩\u200d⚕️"] == 1
    with pytest.raises(PolicyError, match="non-empty"):
        Policy.from_levels([("a", 1, ["x", "\u200d"])])


# ---- what of a set is protected ------------------------------------------------------------------

SET_ROWS = [("a", 1, ["x", "y"]), ("b", 2, ["z"])]


def test_kinds_and_strict():
    policy = Policy.from_levels(SET_ROWS, kind="set")
    assert (policy.kind, policy.strict, policy.kind.pads) == ("set", False, True)
    by_item = Policy.from_levels(SET_ROWS, kind="each")
    assert by_item.kind.lists and not by_item.kind.pads
    assert not Policy.from_levels(SET_ROWS).kind.pads
    for settings, sentence in (
        ({"strict": True}, 'strict = true applies to kind = "set" only'),
        ({"kind": "person"}, "must be one of single, set, each"),
        ({"kind": "set", "strict": "yes"}, "must be true or false"),
        ({"kind": "each", "padding": 3}, "padding applies to whole sets"),
        ({"kind": "each", "strict": True}, "strict applies to whole sets"),
        ({"kind": "each", "pairs": [("a", "b", 3)]}, "applies to whole sets"),
    ):
        with pytest.raises(PolicyError, match=re.escape(sentence)):
            Policy.from_levels(SET_ROWS, **settings)


def test_kinds_and_strict_are_read_written_and_compared(tmp_path):
    text = 'kind = "each"\n[[level]]\nname = "a"\nepsilon = 1\nitems = ["x"]\n'
    (tmp_path / "p.toml").write_text(text)
    policy = Policy.load(tmp_path / "p.toml")
    assert policy.kind == "each"
    (tmp_path / "p.toml").write_text(text.replace('kind = "each"', 'kind = "set"\nstrict = true'))
    strict = Policy.load(tmp_path / "p.toml")
    assert strict.strict
    for one in (policy, strict):
        assert Policy.from_canonical(one.to_canonical()) == one
    assert policy.differences(strict) == ['kind is "set", not "each"', "strict is true, not false"]
    for one, key in ((policy, "kind"), (strict, "kind"), (strict, "strict")):
        raw = one.to_canonical()
        del raw[key]
        with pytest.raises(PolicyError, match=key):
            Policy.from_canonical(raw)
    with pytest.raises(PolicyError, match="true or false"):
        Policy.from_canonical({**strict.to_canonical(), "strict": 1})


def test_what_binds():
    pairs = [("a", "b", "ln(2)"), ("b", "b", None)]
    policy = Policy.from_levels(SET_ROWS, kind="set", pairs=pairs)
    assert policy.smallest == Budget.parse("ln(2)")
    assert [budget.text for budget in policy.effective_budgets] == ["1", "2"]
    strict = replace(policy, strict=True)
    assert [budget.text for budget in strict.effective_budgets] == ["ln(2)", "ln(2)"]
    assert strict.pair_budgets == {} and policy.pair_budgets != {}
    assert {strict.pair_epsilon(i, j) for i in (0, 1) for j in (0, 1)} == {math.log(2)}


def random_policy(rng):
    """A few items in one to three levels, with pairs of all kinds; strict or not."""
    levels = int(rng.integers(1, 4))
    rows = [
        (f"l{k}", float(rng.choice([0.5, 1, 2])), [f"{k}{x}" for x in "abc"[: rng.integers(1, 4)]])
        for k in range(levels)
    ]
    pairs = {
        tuple(sorted(rng.choice(levels, 2))): [None, 0.25, 0.5, 3.0][rng.integers(4)]
        for _ in range(rng.integers(3))
    }
    named = [(f"l{i}", f"l{j}", budget) for (i, j), budget in pairs.items()]
    strict = bool(rng.integers(2))
    return Policy.from_levels(rows, pairs=named, kind="set", padding=2, strict=strict)


def promised(policy):
    """What every two items are promised, the same item twice too: all that `differences` is for."""
    return {
        (x, y): policy.pair_epsilon(policy.level_of[i], policy.level_of[j])
        for i, x in enumerate(policy.items)
        for j, y in enumerate(policy.items)
    }


def test_policies_without_a_difference_promise_the_same():
    """Strict ones too, whose every pair has the smallest budget, be it that of a pair."""
    rng = np.random.default_rng(5)
    policies = [random_policy(rng) for _ in range(300)]
    alike = [(x, y) for x in policies for y in policies if not x.differences(y)]
    assert sum(x is not y and x.strict and bool(x.pairs) for x, y in alike) > 20
    for first, second in alike:
        assert promised(first) == promised(second)


def test_a_strict_policy_with_other_pairs_is_another():
    """Both have the smallest budget everywhere, and it is not the same."""

    def strict(budget):
        rows = [("a", 1, ["x"]), ("b", 2, ["y"])]
        pairs = [("a", "b", budget)]
        return Policy.from_levels(rows, pairs=pairs, kind="set", padding=1, strict=True)

    assert strict(0.5).differences(strict(0.25)) == ["the explicit pair budgets differ"]
    assert strict(0.5).differences(strict(0.5)) == []


@pytest.mark.parametrize("level_of", [(0,), (0, 1, 0), (0, 2), (0, -1), (0, True), (0, 0.0)])
def test_every_item_has_a_level(level_of):
    levels = (Level("a", Budget.parse(1)), Level("b", Budget.parse(2)))
    with pytest.raises(PolicyError, match="level_of must give every item"):
        Policy(("x", "y"), level_of, levels)


def test_a_key_twice_is_no_policy(tmp_path):
    (tmp_path / "p.json").write_text('{"level": [{"name": "a", "epsilon": 1, "epsilon": 9}]}')
    with pytest.raises(PolicyError, match='is not JSON: the key "epsilon" appears twice'):
        Policy.load(tmp_path / "p.json")


# ---- automatic padding ---------------------------------------------------------------------------


def automatic(**changes):
    level = {"name": "a", "epsilon": 1, "items": [f"i{k}" for k in range(60)]}
    sizes = {"1": Decimal("0.2"), "5": Decimal("0.8")}
    document = {"kind": "set", "padding": "auto", "sizes": sizes, "users": 1000, "level": [level]}
    return Policy.from_document(document | changes).padding


def test_automatic_padding_is_for_so_many_users_of_these_sizes():
    """More people have less noise, so their sets are cut less; nobody needs more than they have."""
    assert [automatic(users=n) for n in (1, 100, 1000, 10_000)] == [1, 1, 2, 5]
    for sizes, padding in (({"1": 1}, 1), ({"3": 1}, 3), ({"3": Decimal("0.5"), "4": 0}, 3)):
        assert automatic(users=100_000, sizes=sizes) == padding


@pytest.mark.parametrize("users", [0, -5, True, "10", Decimal(10), Decimal("10.5"), None])
def test_users_of_automatic_padding_that_are_no_number_of_people(users):
    with pytest.raises(PolicyError, match=r"^users = .* must be a whole number from 1$"):
        automatic(users=users)


@pytest.mark.parametrize("sizes", [3, [1, 2], {"1": "x"}, {"1": True}, {"1": 1, "2": 0.5}, None])
def test_sizes_of_automatic_padding_that_are_no_shares(sizes):
    with pytest.raises(PolicyError, match=r"^sizes = .* must be a table of shares by number"):
        automatic(sizes=sizes)


@pytest.mark.parametrize("sizes", [{"1": -1}, {"two": 1}, {"1": 0}])
def test_shares_of_automatic_padding_that_are_refused_later(sizes):
    with pytest.raises(PolicyError, match='^padding = "auto": sizes '):
        automatic(sizes=sizes)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Budget(Fraction(0)),
        lambda: Budget(Fraction(-1)),
        lambda: Budget(Fraction(1), True),
        lambda: Budget(Fraction(1, 2), True),
        lambda: Budget(1.0),
        lambda: Budget(Fraction(1), root=2),
        lambda: Budget(Fraction(4), True, root=0),
        lambda: Budget(Fraction(4), True, root=1001),
        lambda: Budget(Fraction(1, 2**200)),
    ],
)
def test_a_budget_can_be_written_and_read_however_it_is_made(made):
    with pytest.raises(PolicyError, match="a budget is a positive number|cannot be kept exactly"):
        made()


def test_a_level_has_a_budget_of_ours():
    class Lying(Budget):
        lies = False
        text = property(lambda self: "1" if self.lies else "40")

    lying = Lying(Fraction(40))
    Lying.lies = True
    for budget in (1.0, "1", None, lying):
        with pytest.raises(PolicyError, match="a level is Level"):
            Policy(("x", "y"), (0, 0), (Level("a", budget),))


@pytest.mark.parametrize("level", [("t", 1), "t", None])
def test_a_level_is_a_level(level):
    with pytest.raises(PolicyError, match="a level is Level"):
        Policy(("a", "b"), (0, 1), (Level("s", Budget.parse(1)), level))


def test_paddings_that_both_name_are_compared():
    two, five, none = (
        Policy.from_levels([("a", 1, ["x", "y"])], kind="set", padding=padding)
        for padding in (2, 5, None)
    )
    assert two.differences(five) == ["padding is 5, not 2"]
    assert two.differences(none) == none.differences(five) == []


# ---- totals --------------------------------------------------------------------------------------


def with_totals(totals, **more):
    levels = [("low", 1, ["cold", "flu"]), ("high", 2, ["HIV"])]
    return Policy.from_levels(levels, totals=totals, **more)


def test_totals_are_kept_in_files(tmp_path):
    policy = with_totals({"airways": ["cold", "flu"], 'any "x"': ["HIV", "cold"]})
    assert policy.totals == (("airways", ("cold", "flu")), ('any "x"', ("HIV", "cold")))
    policy.save(tmp_path / "p.toml")
    assert Policy.load(tmp_path / "p.toml") == policy
    assert Policy.from_canonical(policy.to_canonical()) == policy
    assert "totals" not in with_totals({}).to_canonical()
    assert with_totals([("airways", ["cold", "flu"])]).totals == policy.totals[:1]


@pytest.mark.parametrize(
    ("totals", "why"),
    [
        ("airways", "totals are {name: .items., …}, got"),
        (["airways"], "a total is a name and its items"),
        ({"airways": "cold"}, 'the total "airways" is a list of items, got "cold"'),
        ({"airways": [1]}, 'the total "airways" is a list of items'),
        ({"airways": []}, 'the total "airways" has no items; name some'),
        ({"airways": ["cold", "cold"]}, 'item of a total "cold" is'),
        ({"airways": ["cold", "plague"]}, 'names "plague", which is not an item'),
        ({"flu": ["cold"]}, 'item or total "flu" is'),
        ({"FLU": ["cold"]}, '"flu" and "FLU" look'),
        ({" ": ["cold"]}, "the name .* of a total must be a non-empty text"),
    ],
)
def test_what_is_no_total(totals, why):
    with pytest.raises(PolicyError, match=why):
        with_totals(totals)


@pytest.mark.parametrize("kind", ["set", "each"])
def test_totals_are_of_single_answers(kind):
    with pytest.raises(PolicyError, match='totals are for kind = "single"'):
        with_totals({"airways": ["cold", "flu"]}, kind=kind)


def test_which_items_share_a_level_is_a_difference_of_blocks():
    """Blocks protect within a level alone: the same items and budgets in other groups promise
    something else. Under `min` they do not.
    """
    for seed in range(200):
        rng = random.Random(seed)
        budgets = {item: rng.choice([1, 2]) for item in "abcdef"}
        one, other = (
            {item: (budget, rng.randrange(2)) for item, budget in budgets.items()} for _ in "xy"
        )
        same = (
            len(set(zip(one.values(), other.values(), strict=True)))
            == len(set(one.values()))
            == len(set(other.values()))
        )
        for notion, alike in (("blocks", same), ("min", True)):
            mine, theirs = (grouped_policy(groups, notion) for groups in (one, other))
            assert (mine.differences(theirs) == []) == alike, (seed, notion)
            promised = [
                [policy.pair_epsilon(policy.level_of[i], policy.level_of[j]) for i, j in pairs]
                for policy in (mine, theirs)
                for pairs in [list(itertools.combinations(range(6), 2))]
            ]
            assert (promised[0] == promised[1]) == alike


def grouped_policy(groups, notion):
    """Items in levels by their budget and a name, in the order of the items."""
    rows = {}
    for item, group in groups.items():
        rows.setdefault(group, []).append(item)
    policy = d.Policy.from_levels(
        [(str(group), group[0], items) for group, items in rows.items()], notion=notion
    )
    order = sorted(range(6), key=lambda k: policy.items[k])
    return d.Policy(
        tuple(policy.items[k] for k in order),
        tuple(policy.level_of[k] for k in order),
        policy.levels,
        notion=notion,
    )
