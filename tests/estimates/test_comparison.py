"""Two groups, two dates: what differs for certain, and how often that is wrong."""

import json
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

import discreet as d
from discreet.cli import main
from discreet.errors import DataError
from discreet.estimates.comparison import Comparison
from discreet.survey.about import REHEARSAL

ITEMS = [f"i{k}" for k in range(12)]
POLICY = d.Policy.from_levels([("a", 1, ITEMS[:3]), ("b", 2, ITEMS[3:])])
TURNED = d.Policy.from_levels([("c", 3, ITEMS[::-1])])


def drawn(truth, mechanism=None, seed=1):
    return d.simulate(truth, mechanism or d.design(POLICY), repeats=1, seed=seed).estimates[0]


def people(*more):
    return dict.fromkeys(ITEMS, 1000) | dict(more)


def test_a_large_difference_is_found_and_told():
    first, second = drawn(people(("i5", 60_000))), drawn(people(), seed=2)
    found = first.compare(second, names=("north", "south"))
    assert found.differs[5] and found.ranked[0] == 5
    low, high = found.interval
    true = 60_000 / 71_000 - 1000 / 12_000
    assert low[5] <= true <= high[5]
    assert found.sentence.startswith(f"{found.differs.sum()} of 12 items differ for certain (95 % ")
    assert '"i5" is more frequent in north, by ' in found.sentence
    other = second.compare(first, names=("south", "north"))
    assert other.differences == pytest.approx(-found.differences)
    assert [other.interval[0], other.interval[1]] == [
        pytest.approx(-high), pytest.approx(-low)
    ]  # fmt: skip
    assert '"i5" is more frequent in north, by ' in other.sentence


def test_without_a_difference_that_is_said():
    found = Comparison.between(drawn(people()), drawn(people(), seed=2))
    assert found.confidence == 0.95 and found.names == ("A", "B")
    assert not found.differs.any()
    assert found.sentence.startswith("No difference between A and B is certain (95 % for all 12 ")
    assert "percentage points to show." in found.sentence


def test_items_are_compared_by_label_whatever_the_mechanism():
    """Other levels, another order, another size."""
    mechanism = d.design(TURNED)
    first, second = drawn(people(("i0", 9000))), drawn(people(("i0", 9000)), mechanism, 3)
    found = first.compare(second)
    assert found.shares[1][0] == second["i0"]["share"] and not found.differs.any()
    assert found.table().rows()[0]["item"] == "i0"


@pytest.mark.parametrize("n", [300, 30_000])
def test_all_intervals_together_hold_as_often_as_said(n):
    """400 comparisons of groups with different shares: with 95 % or more for all items together
    fewer than 352 have a chance below 10^-6; 60 % intervals would fail.
    """
    rng, mechanism = np.random.default_rng(8), d.design(POLICY)
    truths = [rng.multinomial(n, rng.dirichlet(np.full(12, 0.4))) for _ in range(2)]
    true = truths[0] / n - truths[1] / n
    sides = [d.simulate(truth, mechanism, repeats=400, seed=k) for k, truth in enumerate(truths)]
    held = {0.95: 0, 0.6: 0}
    for a, b in zip(*(side.estimates for side in sides), strict=True):
        for confidence in held:
            low, high = a.compare(b, confidence).interval
            held[confidence] += bool(((low <= true) & (true <= high)).all())
    least = int(binom.ppf(1e-6, 400, 0.95))
    assert least == 355 or 345 < least < 360
    assert held[0.95] >= least > held[0.6]


def test_what_is_not_known_is_not_told():
    one = d.Policy.from_levels([("a", 1, ["x"]), ("b", 2, ["y", "z"])])
    silent = d.design(one)
    found = drawn([5, 5, 5], silent).compare(drawn([5, 5, 5], silent, 2))
    low, high = found.interval
    assert (low >= -1).all() and (high <= 1).all() and not found.differs.any()


def test_what_cannot_be_compared():
    first = drawn(people())
    other = drawn([1, 1], d.design(d.Policy.from_levels([("a", 1, ["x", "y"])])))
    with pytest.raises(DataError, match='not about the same items: "i0" is only in A; compare'):
        first.compare(other)
    with pytest.raises(DataError, match='not about the same items: "i0" is only in B; compare'):
        other.compare(first)
    fewer = drawn([1] * 11, d.design(d.Policy.from_levels([("a", 1, ITEMS[:-1])])))
    with pytest.raises(DataError, match='not about the same items: "i11" is only in A; compare'):
        first.compare(fewer)
    with pytest.raises(DataError, match='not about the same items: "i11" is only in south;'):
        fewer.compare(first, names=("north", "south"))
    with pytest.raises(DataError, match="is compared with another, got Tally"):
        first.compare(d.Tally.empty(first.mechanism))
    for confidence in (2, 1, 0, -1):
        with pytest.raises(DataError, match=f"confidence = {confidence} must be between 0 and 1"):
            first.compare(first, confidence)
    with pytest.raises(DataError, match='need different names, got "x" twice'):
        first.compare(first, names=("x", "x"))


# ---- by the numbers ------------------------------------------------------------------------------


def known(shares, policy=POLICY, n=100_000, noise=1.0):
    """An estimate with these shares by label, all equally noisy: a standard error of 100 noise."""
    counts = np.array([n * shares.get(item, 0.05) for item in policy.items])
    same = np.full(policy.m, 1.0)
    base = 10_000.0 * noise**2 * same
    return d.Estimate(d.design(policy), n, counts, base, 0 * same, 0 * same)


@pytest.mark.parametrize("many", range(1, 7))
def test_three_differences_are_told_and_the_others_counted(many):
    """The largest first, with their ends; in turns more frequent here and there."""
    shares = {f"i{k}": 0.05 + (-1) ** k * 0.006 * (k + 2) for k in range(many)}
    found = known(shares).compare(known({}, TURNED), names=("north", "south"))
    assert found.differs.sum() == many
    order = [*range(many)][::-1]
    assert found.ranked.tolist()[:many] == order and sorted(found.ranked) == [*range(12)]
    told = []
    for k in order[:3]:
        place = ("north", "south")[k % 2]
        ends = sorted(abs(100 * end[k]) for end in found.interval)
        told.append(f'"i{k}" is more frequent in {place}, by {ends[0]:.2g} to {ends[1]:.2g} percen')
    trust = "95 % for all of them together, of the populations"
    head = f"{many} of 12 items differ for certain ({trust}): "
    sentence = "; ".join(x + "tage points" for x in told)
    more = f"; and {many - 3} more" if many > 3 else ""
    assert found.sentence == head + sentence + more + "."


def test_what_is_certain_comes_before_what_only_looks_large():
    noisy, calm = known({"i0": 0.2}), known({})
    base = noisy.variance_at_zero.copy()
    base[0] *= 1e6  # 0.15 more, and a standard error of 1
    found = replace(noisy, variance_at_zero=base, counts=noisy.counts + 5000 * (np.arange(12) == 7))
    compared = found.compare(calm)
    assert compared.differs.tolist() == [k == 7 for k in range(12)]
    assert compared.ranked.tolist()[:2] == [7, 0]


def test_an_interval_joins_the_ends_of_both():
    """By hand: each estimate's own ends, joined by Pythagoras; the second in another order."""
    first = drawn(people(("i5", 3000)))
    second = drawn(people(("i1", 2000)), d.design(TURNED), 3)
    low, high = first.compare(second, 0.8, about="respondents").interval
    one, other = (est.interval(0.8, simultaneous=True) for est in (first, second))
    for k in range(12):
        place = TURNED.index[f"i{k}"]
        a, b = first.counts[k] / first.n, second.counts[place] / second.n
        down = a - one[0][k] / first.n, other[1][place] / second.n - b
        up = one[1][k] / first.n - a, b - other[0][place] / second.n
        assert low[k] == pytest.approx(a - b - np.hypot(*down), abs=1e-12)
        assert high[k] == pytest.approx(a - b + np.hypot(*up), abs=1e-12)


def test_what_has_no_estimate_may_differ_by_anything():
    first, second = known({}), known({})
    base, counts = second.variance_at_zero.copy(), second.counts.copy()
    base[2], counts[2] = np.inf, np.nan
    for pair in ((first, second), (second, first)):
        odd = [replace(x, variance_at_zero=base, counts=counts) if x is second else x for x in pair]
        found = odd[0].compare(odd[1])
        assert found.interval[0][2] == -1 and found.interval[1][2] == 1
        assert not found.differs.any() and found.ranked[-1] == 11
    far = known({"i3": 1.0}, noise=900).compare(known({"i3": 0.0}, noise=900))
    assert far.interval[0][0] == -1 and far.interval[1][0] == 1 and far.interval[1][3] == 1
    beyond = known({"i3": 2.5, "i4": -2.5}).compare(second)  # noise beyond what shares can be
    assert [end[3] for end in beyond.interval] == [1, 1]
    assert [end[4] for end in beyond.interval] == [-1, -1]


def test_the_width_of_a_typical_item_is_told():
    """Most intervals are as wide; one is far wider, which is not typical."""
    first, second = known({}), known({})
    found = replace(
        first, variance_at_zero=first.variance_at_zero * np.where(np.arange(12) < 5, 100, 1)
    )
    compared = found.compare(second, 0.9, ("x", "y"))
    half = 100 * compared.interval[1][11]
    assert compared.sentence == (
        "No difference between x and y is certain (90 % for all 12 items together, of the "
        "populations): each could be "
        f"chance. A typical item would have to differ by about {half:.2g} percentage points to "
        "show."
    )
    lopsided = known(dict.fromkeys(ITEMS, 0.052)).compare(second)
    lopsided.__dict__["interval"] = (lopsided.differences - 0.03, lopsided.differences + 0.01)
    assert "by about 3 percentage points" in lopsided.sentence
    lopsided.__dict__["interval"] = (lopsided.differences - 0.01, lopsided.differences + 0.02)
    assert "by about 2 percentage points" in lopsided.sentence


def test_a_share_differs_if_its_interval_leaves_out_zero():
    found = known({}).compare(known({}))
    low, high = np.full(12, -0.1), np.full(12, 0.1)
    low[:2], high[2:4] = (0, 0.01), (0, -0.01)
    found.__dict__["interval"] = (low, high)
    assert found.differs.tolist() == [False, True, False, True] + [False] * 8


def test_the_table_has_the_numbers_of_both():
    first, second = known({"i2": 0.3}), known({"i4": 0.4}, TURNED)
    found = first.compare(second, names=("then", "now"))
    rows = found.table().rows()
    assert [row["item"] for row in rows] == ITEMS
    assert [row["level"] for row in rows] == ["a"] * 3 + ["b"] * 9
    assert rows == found.to_pandas().to_dict("records") and "<table" in found._repr_html_()
    for k, row in enumerate(rows):
        assert row["share_then"] == first[ITEMS[k]]["share"] == found.shares[0][k]
        assert row["share_now"] == second[ITEMS[k]]["share"] == found.shares[1][k]
        assert row["difference"] == row["share_then"] - row["share_now"]
        assert (row["lower"], row["upper"]) == (found.interval[0][k], found.interval[1][k])
        assert row["differs"] == (k in (2, 4))


def test_the_note_names_rehearsals_and_paddings():
    def made(padding=None, rehearsal=False):
        rows = [("a", 1, ["x", "y", "z"])]
        question = REHEARSAL + "Which?" if rehearsal else "Which?"
        kind = "set" if padding else "single"
        policy = d.Policy.from_levels(rows, kind=kind, question=question)
        mechanism, some = d.design(policy, padding=padding), np.ones(3)
        return d.Estimate(mechanism, 10, some, some, some, some)

    def note(*pair):
        return made(**pair[0]).compare(made(**pair[1]), names=("p", "q")).note

    assert note({}, {}) == ""
    assert note({"rehearsal": True}, {}) == "p is a rehearsal: its people are simulated."
    assert note({}, {"rehearsal": True}) == "q is a rehearsal: its people are simulated."
    assert "than the padding (2) are" in note({"padding": 2}, {"padding": 2})
    assert "than the padding (1 and 2) are" in note({"padding": 1}, {"padding": 2})
    assert "than the padding (none and 2) are" in note({}, {"padding": 2})
    both = note({"padding": 2, "rehearsal": True}, {"padding": 2})
    assert both.startswith("p is a rehearsal: its people are simulated. People with more items")


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    for name, policy in (("mechanism", POLICY), ("other", TURNED)):
        made = d.design(policy)
        made.save(f"{name.replace('mechanism', 'survey')}.json")
        for k, weight in enumerate((1, 20)):
            share = np.where(np.array(policy.items) == "i5", weight, 1.0)
            held = rng.choice(12, 20_000, p=share / share.sum())
            made.tally(made.perturb_many(held)).save(f"{name}{k}.json")
    return tmp_path


def run(*arguments, code=0):
    found = CliRunner().invoke(main, ["compare", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


def test_the_command(folder):
    """A twelfth and two thirds of 20,000 people: over 40 standard errors apart."""
    output = run("mechanism0.json", "mechanism1.json").output
    assert "mechanism0: 20,000 reports; mechanism1: 20,000 reports" in output
    assert '"i5" is more frequent in mechanism1' in " ".join(output.split())
    again = run("mechanism0.json", "other1.json", "-m", "survey.json", "-m", "other.json",
                "--json", "-o", "t.csv", "--plot", "t.png", "--top", 3)  # fmt: skip
    facts = json.loads(again.output)
    assert facts["n"] == {"mechanism0": 20_000, "other1": 20_000} and len(facts["items"]) == 3
    assert facts["items"][0]["item"] == "i5" and facts["items"][0]["differs"] is True
    assert (folder / "t.csv").read_text().count("\n") == 13
    assert (folder / "t.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mechanism0.json", "mechanism0.json"), "are the same file"),
        (("mechanism0.json", "other1.json"), "other1.json is a tally of another mechanism"),
        (("mechanism0.json", "nothing.json"), "nothing.json does not exist"),
        (("mechanism0.json", "survey.json"), "survey.json is not a tally file"),
        (("mechanism0.json", "mechanism1.json", "-m", "none.json"), "none.json does not exist"),
        (("mechanism0.json", "mechanism1.json", "-o", "t.txt"), "must end in .csv or .parquet"),
        (("mechanism0.json", "mechanism1.json", "--plot", "t.pdf"), "must end in .png or .svg"),
    ],
)
def test_what_the_command_refuses(folder, arguments, words):
    (line,) = run(*arguments, code=2).stderr.splitlines()
    assert words in line


# ---- sums of items -------------------------------------------------------------------------------

WITH_SUMS = {"totals": {"some": ITEMS[:3], "other": ITEMS[6:]}}
SUMS = d.Policy.from_levels([("a", 1, ITEMS[:3]), ("b", 2, ITEMS[3:])], **WITH_SUMS)


def test_named_sums_are_compared_too():
    mechanism, rng, found = d.design(SUMS), np.random.default_rng(1), []
    for share in (0.7, 0.2):
        answers = rng.choice(12, 4_000, p=[share / 3] * 3 + [(1 - share) / 9] * 9)
        found.append(mechanism.tally(mechanism.perturb_many(answers)).estimate())
    compared = found[0].compare(found[1], names=("x", "y"))
    assert compared.labels == (*ITEMS, "some", "other")
    rows = {row["item"]: row for row in compared.table().rows()}
    for total, items in WITH_SUMS["totals"].items():
        row, sums = rows[total], [e.total(items) for e in found]
        assert row["level"] == "total"
        assert row["difference"] == pytest.approx(sums[0]["share"] - sums[1]["share"])
        assert row["lower"] < row["difference"] < row["upper"]
    assert rows["some"]["lower"] < 0.5 < rows["some"]["upper"]
    assert rows["some"]["differs"] and compared.ranked[0] == 12
    assert " of 14 items and totals differ for certain" in compared.sentence
    assert '"some" is more frequent in x' in compared.sentence


def check_false(share, other, limit=0.05):
    """How often 14 items and totals of two samples differ for certain, with 5 standard errors."""
    mechanism, rng, repeats = d.design(SUMS), np.random.default_rng(5), 120
    wrong = 0
    for _ in range(repeats):
        both = []
        for p in (share, other):
            answers = rng.choice(12, 500, p=[p / 3] * 3 + [(1 - p) / 9] * 9)
            reports = mechanism.perturb_many(answers, threads=1)
            both.append(mechanism.tally(reports, threads=1).estimate())
        wrong += both[0].compare(both[1]).differs.any()
    assert wrong / repeats <= limit + 5 * (limit * (1 - limit) / repeats) ** 0.5


def test_differences_of_sums_are_seldom_false():
    check_false(0.3, 0.3)
    with pytest.raises(AssertionError):
        check_false(0.3, 0.9)


def test_a_sum_of_other_items_is_not_compared():
    other = d.Policy.from_levels([("a", 1, ITEMS)], totals={"some": ITEMS[:2], "more": ITEMS[3:5]})
    first, second = (
        d.design(policy).tally(d.design(policy).perturb_many([0] * 50)).estimate()
        for policy in (SUMS, other)
    )
    assert first.compare(second).labels == tuple(ITEMS)


def test_plots_show_as_many_items_as_those_of_an_estimate():
    most = [signature(kind.plot).parameters["k"].default for kind in (Comparison, d.Estimate)]
    assert most == [30, 30]
