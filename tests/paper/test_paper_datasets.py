"""The paper's data: the generators' exact distributions, files as data sets, what is partial."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from checks import assert_bernoulli, must_fail, z_for
from paper_evidence import survey

from discreet.errors import DataError
from discreet.paper import datasets
from discreet.paper.settings import Setup

LINES = "5 7 5\n9\n7 5 100000000000\n"


def floor_chances(maximum, m):
    """Pr(item) given the maximum of the power law, item by item: the others are draws below it.
    F(t) = 1 - (1 + t)^-3.
    """
    edges = np.arange(m) * maximum / (m - 1)
    F = 1 - (1 + np.append(edges, np.inf).clip(max=maximum)) ** -3.0
    return np.diff(F) / F[-1]


def check_power_law(items, maximum, m):
    """All but the one who is the maximum (item m - 1) have the exact chances; rare ones in one."""
    n = len(items) - 1
    seen = np.bincount(items, minlength=m).astype(float)
    seen[m - 1] -= 1
    p = floor_chances(maximum, m)
    likely = n * p * (1 - p) > 60
    z = z_for(int(likely.sum()) + 1)
    assert_bernoulli(seen[likely], n, p[likely], z)
    assert likely.sum() > 10
    assert_bernoulli(seen[~likely].sum(), n, float(p[~likely].sum()), z)


def test_power_law_data_have_the_exact_distribution():
    n, m, seed = 200_000, 300, 5
    items = datasets.power_law(n, m, np.random.default_rng(seed))
    u = np.random.default_rng(seed).random(n)
    maximum = float(((1 - u) ** (-1 / 3) - 1).max())
    assert items.min() == 0 and items.max() == m - 1
    check_power_law(items, maximum, m)
    assert floor_chances(maximum, m).sum() == pytest.approx(1)
    heavy = (1 - u) ** (-1 / 2.97) - 1
    wrong = np.floor(heavy / heavy.max() * (m - 1)).astype(int)
    must_fail(check_power_law, wrong, maximum, m)  # the twins: a slightly heavier tail,
    moved = np.minimum(items + (items == 3), m - 1)
    must_fail(check_power_law, moved, maximum, m)  # an item moved,
    must_fail(check_power_law, items, 1.1 * maximum, m)  # another maximum


def test_uniform_data_are_uniform():
    data = datasets.synthetic("uniform", Setup(seed=3))
    assert (data.n, data.m, data.records) == (100_000, 1_000, 100_000)
    p, z = np.full(data.m, 1 / data.m), z_for(data.m)
    assert_bernoulli(data.first, data.n, p, z)
    must_fail(assert_bernoulli, data.first * 1.6, data.n, p, z)


@pytest.mark.parametrize("key", datasets.SYNTHETIC)
def test_synthetic_data_are_those_of_the_seed(key):
    first, again, other = (datasets.synthetic(key, Setup(seed=s)) for s in (1, 1, 2))
    assert first.sha256 == again.sha256 != other.sha256
    assert (first.items == again.items).all() and (first.first == first.counts).all()
    assert (first.sizes == 1).all() and first.partial == "" and "seed 1" in first.source


def test_a_file_has_first_items_sets_and_records(tmp_path):
    path = tmp_path / "retail.dat"
    path.write_text(LINES)
    data = datasets.load("retail", path)
    assert (data.n, data.m, data.records) == (3, 4, 7)
    # the last item is nobody's first, and belongs to the domain
    assert data.first.tolist() == [1, 1, 1, 0]
    assert data.sizes.tolist() == [2, 1, 3] and data.counts.tolist() == [2, 2, 1, 1]
    sets = [data.items[a:b].tolist() for a, b in itertools.pairwise(data.offsets)]
    assert sets == [[0, 1], [2], [0, 1, 3]]
    assert data.title == "Retail (partial: retail.dat)"
    assert "3 users and 4 items; the paper's has 88,162" in data.partial
    ten = data.repeated(10)
    assert (ten.n, ten.m, ten.records) == (30, 4, 70) and (ten.counts == 10 * data.counts).all()
    assert "10 times" in ten.title and "partial" in ten.title


def test_a_whole_file_is_not_called_partial(tmp_path, monkeypatch):
    told = datasets.Published("Retail", 7, 3, 4, ("retail",))
    monkeypatch.setitem(datasets.PUBLISHED, "retail", told)
    path = tmp_path / "retail.dat"
    path.write_text(LINES)
    whole = datasets.load("retail", path)
    assert (whole.title, whole.partial) == ("Retail", "")
    path.write_text(LINES + "5\n")
    assert "another file" in datasets.load("retail", path).title


def test_the_k_that_is_shown_is_always_run():
    data = survey()
    assert data.tops((5, 10, 20), 10) == (5, 10) and data.top(10) == 10
    assert data.tops((5, 10, 20), 20) == (5, 10, 12) and data.top(20) == 12
    assert data.tops((), 50) == (12,)


def test_the_whole_kosarak_comes_before_its_parts(tmp_path):
    for name in ("kosarak_first100k.dat.xz", "kosarak.dat.gz"):
        (tmp_path / name).touch()
    stems = datasets.PUBLISHED["kosarak"].stems
    assert datasets.find(tmp_path, stems).name == "kosarak.dat.gz"
    (tmp_path / "kosarak.dat.gz").unlink()
    assert datasets.find(tmp_path, stems).name == "kosarak_first100k.dat.xz"


def test_files_that_are_used_need_not_be_there(tmp_path):
    for name in ("retail.dat", "kosarak_first100k.dat", "kosarak_short_505k.dat"):
        (tmp_path / name).write_text("1\n")

    def located(needs, uses, **setup):
        found = datasets.locate(needs, uses, tmp_path, Setup(**setup), lambda key: ["table1"])
        return {key: path.name for key, path in found.items()}

    uses = ("kosarak", "clothing", "kosarak-short", "clothing-all")
    names = {"retail": "retail.dat", "kosarak": "kosarak_first100k.dat"}
    short = {"kosarak-short": "kosarak_short_505k.dat"}
    assert located(["retail"], uses) == {**names, **short}
    assert located(["retail"], uses, quick=True) == names
    (tmp_path / "kosarak.dat").write_text("1\n")  # the whole, so that no part is shown beside it
    assert located(["retail"], uses) == {**names, "kosarak": "kosarak.dat"}
    with pytest.raises(DataError, match=r"no clothing_rated\.dat .* table1 run without it"):
        located(["clothing"], uses)
    assert datasets.locate([], uses, None, Setup(), lambda key: []) == {}


def test_the_real_files_are_those_of_the_papers_table():
    folder = os.environ.get("DISCREET_DATA")
    if not folder:
        pytest.skip("the public data files are not in the repository; DISCREET_DATA names a folder")
    data = datasets.load("retail", datasets.find(Path(folder), ("retail",)))
    assert (data.records, data.n, data.m, data.partial) == (908_576, 88_162, 16_470, "")
