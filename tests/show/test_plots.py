"""Pictures: what is drawn where, and files that are the same bytes every time."""

import numpy as np
import pytest
from small import expected_tally, small

from discreet.errors import DataError
from discreet.estimates.simulation import Score
from discreet.show import plots

to_hex = pytest.importorskip("matplotlib.colors").to_hex
TRUTH = [700, 100, 900, 300, 500, 0, 200]


@pytest.fixture(scope="module")
def estimate():
    """Of perfect input: the counts are the truth."""
    return expected_tally(small("bits"), TRUTH, sum(TRUTH)).estimate()


@pytest.fixture
def drawn(monkeypatch):
    """The figure that a function saves."""
    kept = []
    monkeypatch.setattr(plots, "save", lambda figure, path: kept.append((figure, path)))

    def of(draw, *arguments, **settings):
        draw(*arguments, **settings)
        ((figure, path),) = kept
        kept.clear()
        assert path == "x.svg"
        return figure

    return of


def texts(labels):
    return [label.get_text() for label in labels]


def test_bars_are_the_top_items_with_their_intervals(drawn, estimate):
    (axes,) = drawn(plots.bars, estimate, "x.svg", k=3).axes
    order = [2, 0, 4]
    assert texts(axes.get_yticklabels()) == ["i2", "i0", "i4"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the largest is on top
    bars = axes.patches[:3]
    assert [bar.get_width() for bar in bars] == pytest.approx([900, 700, 500], abs=1e-6)
    colours = [plots.COLOURS[estimate.mechanism.arrays.level_of[i]] for i in order]
    assert colours == [plots.COLOURS[1], plots.COLOURS[0], plots.COLOURS[1]]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == colours
    low, high = estimate.interval(0.95)
    whiskers = np.array(axes.collections[0].get_segments())[:, :, 0]
    assert whiskers == pytest.approx(np.stack((low[order], high[order]), axis=1))
    assert axes.get_title() == "question: 2,700 reports"
    assert axes.get_xlabel() == "people, with 95 % intervals"
    assert texts(axes.get_legend().get_texts()) == ["4 (ε = 4)", "4.1 (ε = 4.1)"]


def test_a_legend_has_only_the_levels_that_are_there(drawn, estimate):
    (axes,) = drawn(plots.bars, estimate, "x.svg", k=1).axes
    assert len(axes.get_legend().get_texts()) == 1


def test_the_truth_is_marked(drawn, estimate):
    truth = np.arange(7)
    (axes,) = drawn(plots.bars, estimate, "x.svg", k=2, truth=truth).axes
    (dots,) = (line for line in axes.get_lines() if line.get_label() == "truth")
    assert dots.get_xdata().tolist() == [2, 0] and list(dots.get_ydata()) == [0, 1]


def test_a_view_is_drawn_beside_and_orders_the_items(drawn, estimate):
    (axes,) = drawn(plots.bars, estimate, "x.svg", k=7, view="shrunk").axes
    shrunk = estimate.shrunk()
    order = np.argsort(-shrunk.counts, kind="stable")
    assert texts(axes.get_yticklabels()) == [f"i{k}" for k in order]
    (diamonds,) = (box for box in axes.containers if box.get_label() == "shrunk")
    assert diamonds[0].get_xdata() == pytest.approx(shrunk.counts[order])
    assert diamonds[0].get_ydata() == pytest.approx(np.arange(7) + 0.25)
    ends = np.stack([end[order] for end in shrunk.interval(0.95)], axis=1)
    assert np.array(diamonds[2][0].get_segments())[:, :, 0] == pytest.approx(ends)


def test_models_are_compared_in_two_pictures(drawn):
    scores = [
        Score("subset", "raw", 4.0, 0.4, 0.1, 0.75, 0.05, 0.95),
        Score("subset", "shrunk", 2.0, 0.2, 0.1, 0.8, 0.04, 0.9),
        Score("oue", "raw", 9.0, 0.9, 0.1, 0.5, 0.03, 0.94),
    ]
    figure = drawn(plots.models, scores, "x.svg", "A title", 12)
    left, right = figure.axes
    assert figure.get_suptitle() == "A title"
    assert (left.get_ylabel(), right.get_ylabel()) == ("total MSE / n", "precision of the top 12")
    assert (left.get_yscale(), right.get_yscale()) == ("log", "linear")
    for axes, heights in ((left, [4, 9, 2]), (right, [0.75, 0.5, 0.8])):
        assert texts(axes.get_xticklabels()) == ["subset", "oue"]
        assert [bar.get_height() for bar in axes.patches] == heights
        centres = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
        assert centres == pytest.approx([-0.2, 0.8, 0.2])  # a model's views side by side
    assert texts(left.get_legend().get_texts()) == ["raw", "shrunk"]
    (segments, *_), _ = (np.array(c.get_segments()) for c in left.collections)
    assert segments[:, 1] == pytest.approx([3.6, 4.4])


def test_the_same_figure_is_the_same_bytes(tmp_path, estimate):
    for name, start in (("e.png", b"\x89PNG\r\n\x1a\n"), ("e.svg", b"<?xml"), ("E.SVG", b"<?xml")):
        found = set()
        for _ in range(2):
            plots.bars(estimate, tmp_path / name)
            found.add((tmp_path / name).read_bytes())
        (data,) = found
        assert data.startswith(start)
    assert b">i2</text>" in data and b"dc:date" not in data  # text stays text; no time is told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["E.SVG", "e.png", "e.svg"]


def test_other_endings_are_refused_before_anything_is_drawn(tmp_path, estimate):
    with pytest.raises(DataError, match=r"e\.pdf: a plot is written as \.png or \.svg$"):
        plots.bars(estimate, tmp_path / "e.pdf")
    assert list(tmp_path.iterdir()) == []
