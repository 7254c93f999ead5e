"""The part of docs/truth.md about coverage: what its maker draws, and what it says of chance."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import exhaustive
import numpy as np
import pytest
from checks import must_fail

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker():
    sys.path.insert(0, str(DOCS))
    try:
        import make_coverage
    finally:
        sys.path.remove(str(DOCS))
    return make_coverage


def page_part(maker, name="truth.md"):
    text = (DOCS / name).read_text("utf-8")
    return text[text.index(maker.BEGIN) : text.index(maker.END)]


def check_laws(maker, mechanism, truth, n=1000):
    """The expected tally of n people gives back their shares: the estimate is unbiased, so a law
    that is a little wrong shows.
    """
    held, chance = maker.answers_of(mechanism, truth)
    law, (parts, counts) = maker.laws(mechanism, held)
    np.testing.assert_allclose(law.sum(axis=1), 1)
    expected = n * chance @ law
    tally = maker.Tally(mechanism, expected @ parts, np.tensordot(expected, counts, 1))
    holds = np.array([[k in x for k in range(mechanism.m)] for x in held])
    np.testing.assert_allclose(tally.estimate().counts, n * chance @ holds, atol=n * 1e-6)


@pytest.mark.parametrize("eps", [0.5, 2])
def test_reports_are_drawn_by_the_law_of_the_mechanism(maker, eps):
    for name in maker.DRAWN:
        if name in maker.CLIENT:
            continue
        mechanism = maker.made(name, eps)
        check_laws(maker, mechanism, 0.3)


def test_a_wrong_law_is_noticed(maker, monkeypatch):
    mechanism = maker.made("subsets of fixed size (ss)", 2)
    right = exhaustive.distribution

    def wrong(document, item):
        table = right(document, item)
        first, second, *_ = sorted(table)
        shift = table[first] / 1000
        return {**table, first: table[first] - shift, second: table[second] + shift}

    monkeypatch.setattr(exhaustive, "distribution", wrong)
    must_fail(check_laws, maker, mechanism, 0.3)


def test_a_wrong_law_of_hits_is_noticed(maker, monkeypatch):
    mechanism, right = maker.made("counted hits", 2), exhaustive.own_hits

    def wrong(document, part, own):
        return [(own - named, p) for named, p in right(document, part, own)]

    check_laws(maker, mechanism, 0.3)
    monkeypatch.setattr(exhaustive, "own_hits", wrong)
    must_fail(check_laws, maker, mechanism, 0.3)


def check_stacked(maker, tallies, place):
    """A column of the stacked estimates has the intervals and the differences of its sample."""
    found, mine = maker.stacked(tallies), tallies[place].estimate()
    for about in ("population", "respondents"):
        for together in (False, True):
            columns = found.shares(about=about, simultaneous=together)
            own = mine.shares(about=about, simultaneous=together)
            np.testing.assert_allclose([x[:, 1] for x in columns], own, rtol=1e-12, atol=1e-12)
    one, two = (maker.taken(found, slice(k, k + 1)) for k in (0, 1))
    ends = tallies[0].estimate().compare(tallies[place].estimate()).interval
    together = one.compare(two).interval
    np.testing.assert_allclose([x[:, 0] for x in together], ends, rtol=1e-12, atol=1e-12)


def test_stacked_samples_are_worked_out_one_by_one(maker):
    name, eps, rng = "scale, per step", 2, np.random.default_rng(1)
    held, chance = maker.answers_of(maker.made(name, eps), 0.3)
    tallies = [*maker.tallies(name, eps, held, rng.multinomial(200, chance, 3), rng)]
    check_stacked(maker, tallies, 1)
    must_fail(check_stacked, maker, tallies, 2)


def test_tickets_that_are_counted_are_those_that_are_listed(maker):
    document = maker.made("subset, tickets", 2).to_document()
    found, (parts, counts) = maker.ticket_laws(document)
    for item in (0, 3):
        listed = np.zeros(found.shape[1])
        for report, chance in exhaustive.distribution(document, item).items():
            part, named = exhaustive.part_and_named(document, report)
            kind = part * 2**6 + sum(1 << i for i in named)
            assert parts[kind, part] == 1 and counts[kind, part].sum() == len(named)
            listed[kind] += float(chance)
        np.testing.assert_allclose(found[item], listed, atol=1e-12)


def test_the_page_states_the_error_of_its_figures(maker):
    part = page_part(maker)
    repeats = int(re.search(r"make_coverage\.py (\d+)`", part)[1])
    stated = re.search(r"standard error of 95 % \(([\d,]+) samples\) \| ([\d.]+) points", part)
    assert int(stated[1].replace(",", "")) == repeats
    assert float(stated[2]) == pytest.approx(maker.error(repeats), abs=0.006)
    assert part == page_part(maker, "truth.template.md")


def figures_of(maker):
    """The cells of the table: cells x 5."""
    cells = re.findall(r"([\d.]+), ([\d.]+), ([\d.]+), ([\d.]+); ([\d.]+)", page_part(maker))
    return np.array(cells, float)


def check_limits(figures):
    """What is out of these limits was drawn again, with samples that leave no doubt."""
    assert (figures[:, :4] >= 94.0).all() and (figures[:, 4] <= 6.0).all()


def test_the_figures_keep_their_limits(maker):
    figures = figures_of(maker)
    sizes = {name: 2 if name in maker.CLIENT else len(maker.SAMPLES) for name in maker.DRAWN}
    assert len(figures) == sum(sizes.values()) * len(maker.DRAWN_EPSILONS)
    check_limits(figures)
    must_fail(check_limits, figures - [1.0, 0, 0, 0, 0])
    must_fail(check_limits, figures + [0, 0, 0, 0, 1.0])


def test_what_is_said_for_statisticians_is_what_the_table_has(maker):
    figures, text = figures_of(maker), (DOCS / "statistics.md").read_text("utf-8")
    said = re.search(r"lowest coverage in the table is ([\d.]+) %", text)
    wrong = re.search(r"highest rate of\s+false differences is ([\d.]+) %", text)
    assert float(said[1]) == figures[:, :4].min() and float(wrong[1]) == figures[:, 4].max()


def test_what_is_out_of_the_limits_is_drawn_again(maker, monkeypatch):
    """With new samples, many more, and these count."""
    monkeypatch.setattr(maker, "DRAWN", ("opt0",))
    monkeypatch.setattr(maker, "SAMPLES", (50,))
    monkeypatch.setattr(maker, "LOW", 0.99)
    with ThreadPoolExecutor(1) as pool:
        found, again = maker.all_drawn(pool, 40)
    assert set(again) == {cell for cell, x in found.items() if min(x[:4]) < 0.99 or x[4] > 0.06}
    assert 0 < len(again) < len(found) == 15
    (cell, figures), *_ = again.items()
    runs = [maker.drawn((*cell, 40, seed)) for seed in range(2, 12)]
    assert figures == pytest.approx(np.mean(runs, axis=0))
    assert len(maker.again_table(again, 40)) == 7
