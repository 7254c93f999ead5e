"""Figures: what is selected is drawn, and what selects nothing is refused."""

from dataclasses import replace

import pytest
from paper_evidence import row, survey

from discreet.errors import DataError
from discreet.paper import drawing
from discreet.paper.drawing import Figure, Line, Panel
from discreet.paper.experiments import Numbers
from discreet.paper.settings import Setup

pytest.importorskip("matplotlib")

ROWS = [row(float(eps), data="small", eps=eps, theory=2.0 * eps) for eps in (2.0, 1.0, 4.0)]
LINE = Line("IDUE", {"data": "small", "model": "opt0"}, "#000000", "o")
PANEL = Panel("A panel", "eps", "MSE", [LINE])


def figure(*panels):
    return Figure("fig0", "A figure", "What it shows.", [list(panels)])


def test_a_figure_has_its_rows_from_left_to_right_once_each():
    other = Line("again", {"eps": (1.0, 4.0)}, "#000000", "o")
    found = figure(PANEL, replace(PANEL, lines=[other])).rows(Numbers(ROWS))
    assert [x.eps for x in found] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("want", [{"model": "oue"}, {"eps": 3.0}, {"data": "nowhere"}])
def test_a_line_that_selects_nothing_is_refused(want, tmp_path):
    wrong = figure(replace(PANEL, lines=[LINE, replace(LINE, label="lost", want=want)]))
    (key,) = want
    for use in (lambda x: wrong.rows(x), lambda x: drawing.draw(wrong, x, tmp_path)):
        with pytest.raises(DataError, match=f'"A panel" has no numbers for its line "lost": {key}'):
            use(Numbers(ROWS))
    assert list(tmp_path.iterdir()) == []


def test_values_are_divided_by_the_theory_of_their_place():
    panel = replace(PANEL, over={"data": "small"})
    assert panel.scale(Numbers(ROWS)) == {1.0: 2.0, 2.0: 4.0, 4.0: 8.0}
    assert PANEL.scale(Numbers(ROWS)) == {}


def test_a_place_without_a_theory_to_divide_by_is_refused(tmp_path):
    panel = replace(PANEL, over={"eps": (1.0, 2.0)})
    with pytest.raises(KeyError):
        drawing.draw(figure(panel), Numbers(ROWS), tmp_path)


def test_a_picture_is_written_twice(tmp_path):
    drawing.draw(figure(PANEL, replace(PANEL, log=False, best=True)), Numbers(ROWS), tmp_path)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["fig0.png", "fig0.svg"]
    text = (tmp_path / "fig0.svg").read_text()
    assert "A figure" in text and "A panel" in text and "IDUE" in text


def test_captions_name_data_run_and_what_is_partial():
    data = {"small": replace(survey(), partial="Small is partial here.")}
    (plain,) = drawing.complete([figure(PANEL)], Setup(), data)
    for told in ("What it shows.", "n = 400, m = 12", "Small is partial here.", "seed 2020"):
        assert told in plain.caption
    assert plain.title == "A figure"
    (quick,) = drawing.complete([figure(PANEL)], Setup(quick=True, repeats=2), data)
    assert quick.title == "A figure (quick run, 2 repeats)" and "Quick run" in quick.caption
    assert drawing.complete([], Setup(), data) == []


def test_through_reports_the_papers_figure_comes_from_tickets_too():
    data, beyond = {"small": survey()}, replace(figure(PANEL), name="fig0_beyond")
    found = drawing.complete([figure(PANEL), beyond], Setup(through_reports=True), data)
    assert [x.name for x in found] == ["fig0", "fig0_ticket", "fig0_beyond"]
    assert found[1].panels[0][0].lines[0].want["encoding"] == "ticket"
    assert "From tickets, reports of 4 bytes" in found[1].caption
