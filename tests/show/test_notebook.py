"""What notebooks show, and the example notebook."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as d
from discreet.errors import DataError, short_fingerprint

BAD = "<b>&\"'"


class Shape(HTMLParser):
    """Balanced tags only; counts them, and keeps the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def survey(many=3, **more):
    items = [f"{BAD} {k}" for k in range(many)]
    return d.Policy.from_levels(
        [(f"serious {BAD}", 1, items[:2]), ("common", 2, items[2:])],
        question=f"Which? {BAD}", **more,
    )  # fmt: skip


def estimated(policy):
    mechanism = d.design(policy, padding=2 if policy.kind.lists else None)
    data = [5] * policy.m if not policy.kind.lists else [{0, 2}] * 9
    return d.simulate(data, mechanism, repeats=1, seed=3).estimates[0]


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("many", [3, 5850])
def test_pages_are_short_balanced_and_escaped(many, sets):
    policy = survey(many, kind="set" if sets else "single")
    estimate = estimated(policy)
    mechanism = estimate.mechanism
    shown = {
        "policy": (policy, ["Which?", "serious", "notion min", f"{many:,} items"]),
        "mechanism": (mechanism, ["promised factor", short_fingerprint(mechanism.fingerprint)]),
        "guarantee": (mechanism.guarantee(), ["holds, checked exactly", "by at most a factor of"]),
        "estimate": (estimate, [f"{estimate.n:,} reports", "95 % interval"]),
        "comparison": (estimate.compare(estimate), ["No difference", "difference"]),
    }  # fmt: skip
    for name, (thing, words) in shown.items():
        page = Shape(thing._repr_html_())
        assert all(word in page.text for word in words), (name, page.text)
        assert page.seen.count("tr") <= 14 and len(thing._repr_html_()) < 9000, name
        assert page.seen.count("b") <= 1, name  # ours
        assert BAD in page.text.replace("  ", " ") or name == "guarantee"
    if many > 100:
        assert f"and {many - 12:,} more" in Shape(estimate._repr_html_()).text


def test_tables_suit_screen_readers_and_dark_pages():
    """Real tables with heads for their columns, and no colour of their own."""
    estimate = estimated(survey())
    for thing in (estimate.mechanism.policy, estimate.mechanism, estimate):
        page = thing._repr_html_()
        assert page.count("<table") == 1 and page.count('<th scope="col"') >= 4
        assert "></th>" not in page  # a head says something
        assert "text-align:right" in page and "background:#" not in page
        assert not re.search(r"[:\s]#[0-9a-f]{3,6}\b", page)


def test_many_levels_are_counted():
    policy = d.Policy.from_budgets({f"i{k}": 1 + k / 100 for k in range(40)})
    mechanism = d.design(policy)
    for thing in (policy, mechanism):
        assert "and 28 more" in Shape(thing._repr_html_()).text
    assert "and 28 more levels" in Shape(mechanism.guarantee()._repr_html_()).text


def test_one_item_and_frames():
    estimate = estimated(survey())
    row = estimate[f"{BAD} 1"]
    assert row == estimate.table().rows()[1] == estimate[1]
    with pytest.raises(DataError, match="is not an item"):
        estimate["nothing"]
    frame = estimate.to_pandas(views=["consistent"])
    assert list(frame.columns)[:3] == ["item", "level", "count"] and "consistent" in frame
    assert np.array_equal(frame["count"], estimate.counts)
    assert isinstance(estimate.to_arrow(), pa.Table)
    assert list(estimate.compare(estimate).to_pandas()["differs"]) == [False] * 3


def test_without_pandas_a_frame_is_refused_in_a_sentence(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DataError, match="needs pandas: pip install pandas"):
        estimated(survey()).to_pandas()


# ---- plots ---------------------------------------------------------------------------------------


def test_plots_return_the_axes_and_accept_some(tmp_path):
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    estimate = estimated(d.Policy.from_levels([("a", 1, ["x", "y"]), ("b", 2, ["z"])]))
    for thing in (estimate, estimate.compare(estimate)):
        (axes,) = [Figure().subplots()]
        assert thing.plot(axes=axes) is axes and axes.get_title()
        new = thing.plot()
        assert new.figure in map(pyplot.figure, pyplot.get_fignums())  # a notebook shows it
        pyplot.close("all")
        saved = thing.plot(tmp_path / "p.png")
        assert saved.get_title() == axes.get_title() and not pyplot.get_fignums()
        both = thing.plot(tmp_path / "q.svg", axes=Figure().subplots())
        assert "<svg" in (tmp_path / "q.svg").read_text() and both.get_xlabel()


# ---- the example ---------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[2] / "docs" / "example.ipynb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_example_notebook_runs(tmp_path):
    """In a real kernel, from the first cell to the last; what it shows is not stored in it."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLE, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type in ("execute_result", "display_data")
    ]
    kinds = [kind for output in shown for kind in output.data]
    assert kinds.count("text/html") >= 5 and kinds.count("image/png") >= 2
    assert not re.search("Traceback|Warning", str(notebook))
