"""The paper's data, designs, tables and experiments: exact where they can be, otherwise within derived sampling errors."""

import gzip
import itertools
import lzma
from pathlib import Path

import numpy as np
import pytest
from checks import assert_bernoulli, assert_mean, assert_variance, must_fail, z_for

import discreet as d
from discreet.designs import reductions
from discreet.designs.reductions import Levels
from discreet.errors import DataError
from discreet.paper import datasets, experiments, tables
from discreet.paper.boxed import boxed, optimum
from discreet.paper.datasets import Dataset
from discreet.paper.experiments import Numbers, Profile, Row, Task, mechanism_of, observe
from discreet.paper.run import merged
from discreet.paper.settings import SHARES, Settings
from discreet.paper.verdicts import Findings, judged

# ---- data -----------------------------------------------------------------------------------------------


def floor_chances(maximum, m):
    """Pr(item) given the maximum of the power law, item by item: the others are draws below it. F(t) = 1 - (1 + t)^-3."""
    edges = np.arange(m) * maximum / (m - 1)
    F = 1 - (1 + np.append(edges, np.inf).clip(max=maximum)) ** -3.0
    return np.diff(F) / F[-1]


def check_power_law(items, maximum, m):
    """All but the one who is the maximum (item m - 1) have the exact chances; rare items together."""
    n = len(items) - 1
    seen = np.bincount(items, minlength=m).astype(float)
    seen[m - 1] -= 1
    p = floor_chances(maximum, m)
    likely = n * p * (1 - p) > 60
    z = z_for(int(likely.sum()) + 1)
    assert_bernoulli(seen[likely], n, p[likely], z)
    assert likely.sum() > 10
    rest = float(p[~likely].sum())
    assert_bernoulli(seen[~likely].sum(), n, rest, z)


def test_power_law_data_have_the_exact_distribution():
    n, m, seed = 200_000, 300, 5
    items = datasets.power_law(n, m, np.random.default_rng(seed))
    u = np.random.default_rng(seed).random(n)
    maximum = float(((1 - u) ** (-1 / 3) - 1).max())
    assert items.min() == 0 and items.max() == m - 1 and np.count_nonzero(items == m - 1) >= 1
    check_power_law(items, maximum, m)
    assert floor_chances(maximum, m).sum() == pytest.approx(1)
    wrong = np.floor(
        ((1 - u) ** (-1 / 2.97) - 1) / ((1 - u.max()) ** (-1 / 2.97) - 1) * (m - 1)
    ).astype(int)
    must_fail(check_power_law, wrong, maximum, m)  # the twins: a slightly heavier tail,
    must_fail(
        check_power_law, np.minimum(items + (items == 3), m - 1), maximum, m
    )  # an item moved,
    must_fail(check_power_law, items, 1.1 * maximum, m)  # another maximum


def test_uniform_data_are_uniform():
    data = datasets.synthetic("uniform", Settings(seed=3))
    assert (data.n, data.m, data.records) == (100_000, 1_000, 100_000)
    assert_bernoulli(data.first, data.n, np.full(data.m, 1 / data.m), z_for(data.m))
    must_fail(
        assert_bernoulli, data.first * 1.6, data.n, np.full(data.m, 1 / data.m), z_for(data.m)
    )


@pytest.mark.parametrize("key", ["power-law", "uniform"])
def test_synthetic_data_are_those_of_the_seed(key):
    first, again, other = (datasets.synthetic(key, Settings(seed=s)) for s in (1, 1, 2))
    assert first.sha256 == again.sha256 != other.sha256
    assert (first.items == again.items).all() and (first.first == first.counts).all()
    assert (first.sizes == 1).all() and first.partial == "" and "seed 1" in first.source


LINES = "5 7 5\n9\n7 5 100000000000\n"


@pytest.mark.parametrize("ending", [".dat", ".dat.gz", ".dat.xz"])
def test_files_are_read_with_first_items_sets_and_records(tmp_path, ending):
    opener = {".dat": open, ".dat.gz": gzip.open, ".dat.xz": lzma.open}[ending]
    path = tmp_path / f"retail{ending}"
    with opener(path, "wt") as file:
        file.write(LINES)
    read = []
    data = datasets.load("retail", path, read.append)
    assert (data.n, data.m, data.records) == (3, 4, 7)
    assert data.first.tolist() == [
        1,
        1,
        1,
        0,
    ]  # the last item is nobody's first, and belongs to the domain
    assert data.sizes.tolist() == [2, 1, 3] and data.counts.tolist() == [2, 2, 1, 1]
    assert [data.items[a:b].tolist() for a, b in itertools.pairwise(data.offsets)] == [
        [0, 1],
        [2],
        [0, 1, 3],
    ]
    assert (
        data.title == f"Retail (partial: retail{ending})"
        and "3 users and 4 items; the paper's has 88,162" in data.partial
    )
    assert sum(read) == path.stat().st_size
    ten = data.repeated(10)
    assert (ten.n, ten.m, ten.records) == (30, 4, 70) and (ten.counts == 10 * data.counts).all()
    assert "10 times" in ten.title and "partial" in ten.title


def test_a_whole_file_is_not_called_partial(tmp_path, monkeypatch):
    source = datasets.Source("Retail", 7, 3, 4, ("retail",))
    monkeypatch.setitem(datasets.SOURCES, "retail", source)
    path = tmp_path / "retail.dat"
    path.write_text(LINES)
    assert (datasets.load("retail", path).title, datasets.load("retail", path).partial) == (
        "Retail",
        "",
    )
    path.write_text(LINES + "5\n")
    assert "another file" in datasets.load("retail", path).title


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1 2\n3 x 4\n", 'line 2: "x" is not an item id'),
        ("1 2\n-3\n", 'line 2: "-3" is not an item id'),
        ("1,2\n", 'line 1: "1,2" is not'),
        ("1\n2.5\n", 'line 2: "2.5" is not'),
        ("1\n99999999999999999999\n", 'line 2: "99999999999999999999" is not'),
        ("1\n1_0\n", 'line 2: "1_0" is not'),
        ("1\n\xe9\n", "line 2: "),
        ("1\n\n2\n", "line 2 is empty"),
        ("", "is empty"),
        ("\n\n", "is empty"),
    ],
    ids=repr,
)
def test_malformed_files_are_one_sentence_with_the_line(tmp_path, text, match):
    path = tmp_path / "retail.dat"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=match) as caught:
        datasets.load("retail", path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_blank_end_of_a_file_is_no_person(tmp_path):
    path = tmp_path / "retail.dat"
    path.write_text("1 2\n3\n\n")
    assert datasets.load("retail", path).n == 2


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_file_that_is_cut_off_is_one_sentence(tmp_path, ending):
    path = tmp_path / f"retail.dat{ending}"
    text = "\n".join(map(str, np.random.default_rng(1).integers(0, 10**9, 2000))).encode()
    path.write_bytes((gzip if ending == ".gz" else lzma).compress(text)[:-500])
    with pytest.raises(DataError, match="cannot be read to its end"):
        datasets.load("retail", path)


def test_the_whole_kosarak_comes_before_its_parts(tmp_path):
    for name in ("kosarak_first100k.dat.xz", "kosarak.dat.gz"):
        (tmp_path / name).touch()
    assert datasets.find(tmp_path, datasets.SOURCES["kosarak"].stems).name == "kosarak.dat.gz"
    (tmp_path / "kosarak.dat.gz").unlink()
    assert (
        datasets.find(tmp_path, datasets.SOURCES["kosarak"].stems).name
        == "kosarak_first100k.dat.xz"
    )


# ---- opt0 in the authors' box ---------------------------------------------------------------------------


def objective(sizes, a, b):
    """opt0's objective in (a, b), as the paper writes it."""
    spread = (sizes * b * (1 - b) / (a - b) ** 2).sum(axis=-1)
    return spread + ((1 - a - b) / (a - b)).max(axis=-1)


@pytest.mark.parametrize("eps", [(1.0, 2.0), (0.8, 1.1), (2.0, 4.0)])
@pytest.mark.parametrize("sizes", [(1, 30), (10, 90), (20, 4)])
def test_the_boxed_optimum_is_that_of_a_grid(eps, sizes):
    u, w, value = optimum(Levels(np.array(eps), np.array(sizes, float), "min"))
    b = -np.expm1(-w) / (np.exp(u) - np.exp(-w))
    a = b * np.exp(u)
    assert (a >= 0.5 - 1e-9).all() and (b <= 0.5 + 1e-9).all()
    assert objective(np.array(sizes), a, b) == pytest.approx(value, rel=1e-9)
    # a on a grid of the box, b_1 from the smallest that its own level allows, b_2 from the smallest that all others allow
    E = [[np.exp(min(x, y)) for y in eps] for x in eps]
    side, steps = np.linspace(0.5, 0.95, 61), np.linspace(0, 1, 41) ** 2
    a1, a2, t1, t2 = (
        x.ravel()
        for x in np.meshgrid(side, side, steps, [0, 0.002, 0.01, 0.05, 0.2], indexing="ij")
    )
    b1 = _between(a1 / (a1 + E[0][0] * (1 - a1)), t1)
    lower = (
        a2 / (a2 + E[1][1] * (1 - a2)),
        1 - E[0][1] * b1 * (1 - a2) / a1,
        a2 * (1 - b1) / (E[1][0] * (1 - a1)),
    )
    b2 = _between(np.max(lower, axis=0), t2)
    ok = (b1 < 0.5) & (b2 < 0.5) & (b1 < a1 - 1e-6) & (b2 < a2 - 1e-6)
    found = objective(
        np.array(sizes), np.stack((a1, a2), axis=-1)[ok], np.stack((b1, b2), axis=-1)[ok]
    ).min()
    assert value * (1 - 1e-9) <= found <= value * 1.01


def _between(low, t):
    return low + t * np.maximum(0.5 - low, 0)


def test_the_box_costs_what_it_costs():
    for eps, both in (
        (1.0, (239.723, 243.146)),
        (2.0, (48.490, 50.357)),
        (3.0, (15.9337, 16.4896)),
    ):
        policy = experiments.policy_of(100, eps, (1.0, 1.2, 2.0), SHARES, "single")
        found = d.design(policy, "opt0").worst_case_mse, boxed(policy).worst_case_mse
        assert found == pytest.approx(both, rel=2e-5)
        assert boxed(policy).guarantee().holds
        assert both[1] <= boxed(policy, "ticket").worst_case_mse <= 1.02 * both[1]


def test_a_box_that_does_not_bind_changes_nothing(toy):
    levels = Levels(np.log([4.0, 6.0]), np.array([1.0, 4.0]), "min")
    assert optimum(levels)[2] == pytest.approx(reductions.opt0(levels)[2], rel=1e-7)
    assert boxed(toy).a == pytest.approx(d.design(toy, "opt0").a, abs=1e-4)


# ---- tables ---------------------------------------------------------------------------------------------


def column(table, name):
    return [row[name] for row in table.rows]


def test_table1_is_the_papers():
    table = tables.leakage()
    bounds = {
        (row["notion"], row["item"]): (row["lower bound"], row["upper bound"]) for row in table.rows
    }
    for notion in ("LDP", "PLDP"):
        for item in ("HIV", "anemia"):
            assert bounds[notion, item] == pytest.approx((1 / 4, 4))
    assert bounds["MinID-LDP", "HIV"] == pytest.approx((1 / 4, 4))
    assert bounds["MinID-LDP", "anemia"] == pytest.approx((1 / 6, 6))
    assert bounds["GI or CLDP", "HIV"] == pytest.approx((1 / 5 + 4 / 5 / 4, 1 / 5 + 4 / 5 * 4))
    assert all(
        low >= row["lower bound"] - 1e-9
        for row, low in zip(table.rows, column(table, "its lowest"), strict=True)
    )
    assert all(
        high <= row["upper bound"] + 1e-9
        for row, high in zip(table.rows, column(table, "its highest"), strict=True)
    )


def test_table2_is_the_papers_and_ours():
    rows = {(row["mechanism"], row["row"]): row for row in tables.toy().rows}
    computed = {who: rows[who, "computed"] for who in ("RAPPOR", "OUE", "IDUE")}
    assert computed["RAPPOR"]["total to"] == pytest.approx(10)
    assert computed["OUE"]["total to"] == pytest.approx(9 + 8 / 9)
    idue = computed["IDUE"]
    assert (idue["total from"], idue["total to"]) == pytest.approx((8.387, 8.5675), abs=6e-4)
    assert [idue[key] for key in ("1-a HIV", "1-a others", "b HIV", "b others")] == pytest.approx(
        [0.40795, 0.32700, 0.32700, 0.27756], abs=6e-6
    )
    rounded = rows["IDUE", "computed from a and b rounded to two digits"]
    assert (rounded["Var HIV /n"], rounded["Var others /n"]) == pytest.approx(
        (3.2707, 1.3254), abs=5e-5
    )
    beyond = {
        row["mechanism"]: row["total variance / n, uniform answers"]
        for row in tables.toy_beyond().rows
    }
    assert beyond["GRR at ln 4"] == pytest.approx(4.889, abs=5e-4)
    assert beyond["subset selection at ln 4"] == pytest.approx(4.889, abs=5e-4)
    assert beyond["subset (the best possible)"] == pytest.approx(3.568, abs=5e-4)


def test_the_designs_land_on_the_known_numbers():
    """DESIGN "numbers to land on"."""
    value = {
        (row["eps"], row["model"]): row["worst case / n"] for row in tables.designs(Settings()).rows
    }
    known = {
        1.0: (391.77, 369.27, 239.72, 250.67, 304.09),
        2.0: (92.07, 73.41, 48.49, 57.10, 69.56),
        3.0: (36.97, 23.06, 15.93, 21.91, 23.06),
    }
    for eps, numbers in known.items():
        assert [
            value[eps, model] for model in ("rappor", "oue", "opt0", "opt1", "opt2")
        ] == pytest.approx(numbers, abs=0.006)


def test_table3_names_what_is_missing_and_what_is_partial(tmp_path):
    path = tmp_path / "retail.dat"
    path.write_text(LINES)
    settings = Settings()
    data = {
        "retail": datasets.load("retail", path),
        "uniform": datasets.synthetic("uniform", settings),
    }
    rows = {row["data set"]: row for row in tables.data_sets(data).rows}
    assert rows["Kosarak"]["users here"] is None and rows["Kosarak"]["file"] == "not there"
    assert rows["Retail"]["partial"] and not rows["Uniform"]["partial"]
    assert (rows["Kosarak"]["records"], rows["Kosarak"]["users"], rows["Kosarak"]["items"]) == (
        8_019_015,
        990_002,
        41_270,
    )
    assert (
        "| Retail | 908,576 | 88,162 | 16,470 | 7 | 3 | 4 | retail.dat | True |"
        in tables.data_sets(data).markdown()
    )


# ---- theory and experiment ------------------------------------------------------------------------------


def survey(n=400, seed=1, single=False):
    """People with 1 to 6 of 12 items, the first items common."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 13)
    sets = [
        rng.choice(
            12, 1 if single else rng.integers(1, 7), replace=False, p=weights / weights.sum()
        )
        for _ in range(n)
    ]
    items, offsets = np.concatenate([np.sort(x) for x in sets]), np.cumsum([0, *map(len, sets)])
    first = np.bincount([x[0] for x in sets], minlength=12)
    return Dataset("small", "Small", "made", "", len(items), items, offsets, first)


def task(**more):
    return Task(
        **{
            "data": "small",
            "model": "opt0",
            "eps": 1.5,
            "repeats": 3,
            "shares": (0.25, 0.25, 0.5),
            **more,
        }
    )


@pytest.mark.parametrize("padding", [1, 2, 4, 8])
@pytest.mark.parametrize("model", ["opt0", "subset"])
def test_the_theory_of_sets_is_that_of_the_library(padding, model):
    """Bias and variance from the ragged array equal theory.set_error, item by item."""
    data = survey()
    mechanism = mechanism_of(task(model=model, padding=padding), 12)
    sets = [data.items[a:b].tolist() for a, b in itertools.pairwise(data.offsets)]
    from discreet.theory import set_error

    known, profile = set_error(mechanism, sets), Profile.of(data, padding)
    np.testing.assert_allclose(profile.bias, known.bias, atol=1e-9)
    np.testing.assert_allclose(
        profile.variance(mechanism, mechanism.level_of), known.variance, rtol=1e-12
    )
    assert profile.given(mechanism, mechanism.level_of)[0] == pytest.approx(
        known.mse / data.n, rel=1e-12
    )


@pytest.mark.parametrize("padding", [0, 2])
def test_the_theory_over_assignments_is_their_mean(padding):
    """Total MSE / n, averaged over all assignments of a level to an item, is the formula's."""
    data = survey()
    mechanism, profile = mechanism_of(task(padding=padding), 12), Profile.of(survey(), padding)
    mean = profile.theory(mechanism, (3,))[0]
    # by linearity a cyclic shift through all places visits every item with every level in the right share
    shifts = [profile.given(mechanism, np.roll(mechanism.level_of, k))[0] for k in range(data.m)]
    assert mean == pytest.approx(np.mean(shifts), rel=1e-12)
    if not padding:
        assert mean == pytest.approx(
            np.mean(
                [
                    mechanism.expected_mse((np.roll(data.first, k) / data.n).tolist())
                    for k in range(12)
                ]
            )
        )


def test_expected_relative_errors_are_those_of_draws():
    data = survey(n=4000)
    for padding in (0, 2):
        mine = task(padding=padding, repeats=400, ks=(3, 12))
        rows = {
            row.k: row
            for row in experiments.run(mine, data, Settings(seed=4))
            if row.metric == "re"
        }
        for k in (3, 12):
            sd = np.std(rows[k].values, ddof=1)
            assert_mean(rows[k].values, rows[k].theory, sd**2, z=5)
            must_fail(assert_mean, rows[k].values, rows[k].theory * 1.25, sd**2, z=5)


def moments(mechanism, data, rng, repeats):
    place = np.arange(data.m)
    return np.stack(
        [observe(mechanism, data, place, rng).estimate().counts for _ in range(repeats)]
    )


def check_estimates(counts, mechanism, data, padding):
    """Means and variances of all estimates are the theory's."""
    profile = Profile.of(data, padding)
    variance = profile.variance(mechanism, mechanism.level_of)
    assert_mean(counts, profile.truth + profile.bias, variance, z_for(2 * data.m))
    assert_variance(counts, variance, z_for(2 * data.m))


@pytest.mark.parametrize("padding", [0, 2], ids=["single", "sets"])
@pytest.mark.parametrize("encoding", ["bits", "ticket"])
def test_drawn_and_reported_experiments_agree(encoding, padding):
    """Both ways have the exact means and variances of every item's estimate; the twins of both are seen."""
    data, repeats = survey(single=padding == 0), 700
    mechanism = mechanism_of(task(model="opt0", encoding=encoding, padding=padding), 12)
    other = mechanism_of(task(model="opt0", encoding=encoding, padding=padding, eps=0.9), 12)
    for rng in (np.random.default_rng(8), None):  # drawn exactly in distribution; real reports
        counts = moments(mechanism, data, rng, repeats)
        check_estimates(counts, mechanism, data, padding)
        must_fail(
            check_estimates, counts[:, ::-1], mechanism, data, padding
        )  # the twins: other items,
        must_fail(check_estimates, counts, other, data, padding)  # another budget,
        must_fail(
            check_estimates, counts + 0.5 * np.sqrt(counts.var(axis=0)), mechanism, data, padding
        )  # a bias


def test_rows_through_reports_have_the_mse_of_the_theory():
    """A whole task, as the command runs it: every total MSE within sampling error of its expectation given the assignment."""
    data = survey(n=3000, single=True)
    for settings in (Settings(seed=1, through_reports=True), Settings(seed=1)):
        for encoding in ("bits", "ticket"):
            rows = experiments.run(task(encoding=encoding, repeats=40, ks=(3,)), data, settings)
            mse = next(row for row in rows if row.metric == "mse")

            def check(factor, mse=mse):
                z = (np.mean(mse.values) * factor - np.mean(mse.expected)) / (
                    mse.sd / len(mse.values) ** 0.5
                )
                assert abs(z) < 5.5, (
                    z
                )  # 12 chi-squares of unequal weight: a little heavier than normal

            check(1.0)
            must_fail(check, 2.0)


def test_levels_are_shares_of_the_items_and_assigned_at_random():
    policy = experiments.policy_of(16_470, 1.0, (1.0, 1.2, 2.0), SHARES, "single")
    assert (
        policy.sizes == (824, 824, 14_822)
        or policy.sizes == (823, 823, 14_824)
        or policy.sizes == (824, 823, 14_823)
    )
    assert [level.budget.text for level in policy.levels] == ["1", "1.2", "2"]
    places = np.stack(
        [Settings(seed=s).rng("levels", "retail", 0).permutation(20) for s in range(4000)]
    )
    assert_bernoulli(np.count_nonzero(places[:, 0] < 5), 4000, 0.25)


def test_the_same_people_are_compared_and_repeats_differ():
    data, settings = survey(), Settings(seed=9)
    first, again = (experiments.run(task(ks=(3,), shrunk=True), data, settings) for _ in range(2))
    assert first == again
    other = experiments.run(task(ks=(3,), shrunk=True), data, Settings(seed=10))
    assert first != other
    mse = next(row for row in first if row.metric == "mse" and row.view == "raw")
    assert len(set(mse.values)) == 3 and mse.stderr > 0
    oue = next(
        row for row in experiments.run(task(model="oue"), data, settings) if row.metric == "mse"
    )
    assert (
        len(set(oue.expected)) == 1 < len(set(mse.expected))
    )  # OUE does not care who is assigned what


def test_tasks_that_share_draws_are_run_once():
    one, two = task(padding=2, ks=(20,)), task(padding=2, ks=(10, 50), shrunk=True)
    assert merged([one, two, task(padding=3, ks=(1,))]) == [
        task(padding=2, ks=(10, 20, 50), shrunk=True),
        task(padding=3, ks=(1,)),
    ]


def test_rows_are_selected_by_any_of_their_fields():
    rows = [
        Row("a", "oue", eps, 3, 0.05, 0, "bits", "mse", 0, "raw", (1.0, 3.0)) for eps in (1.0, 2.0)
    ]
    assert (
        Numbers(rows).select(eps=1.0) == rows[:1]
        and Numbers(rows).select(eps=(1.0, 2.0), model="oue") == rows
    )
    assert (rows[0].mean, rows[0].stderr) == (2.0, 1.0)


# ---- docs/paper.md is true -------------------------------------------------------------------------------

PAGE = Path(__file__).parent.parent / "docs" / "paper.md"


def test_the_page_has_the_tables_of_today():
    text = PAGE.read_text(encoding="utf-8")
    settings = Settings()
    made = (
        tables.leakage(),
        tables.cap(),
        tables.toy(),
        tables.toy_beyond(),
        tables.designs(settings),
        tables.limit(settings),
    )
    for table in (*made, tables.box(settings)):
        assert table.markdown().strip() in text, table.name


def test_the_page_has_the_numbers_of_its_seed():
    """Figure 3 needs no data: its claims are judged again, and must read as on the page."""
    text, settings = PAGE.read_text(encoding="utf-8"), Settings()
    if f"numpy {np.__version__}," not in text:
        pytest.skip("the page was made with another numpy, whose random streams may differ")
    data = {key: datasets.synthetic(key, settings) for key in ("power-law", "uniform")}
    assert all(one.sha256 in text for one in data.values())
    rows = [
        row
        for task in experiments.tasks_of("fig3", settings, data)
        for row in experiments.run(task, data[task.data], settings)
    ]
    found = Findings(
        Numbers(rows),
        {table.name: table.rows for table in tables.tables_of("fig3", settings, data)},
    )
    reports = judged(["fig3"], found)
    assert len(reports) == 12
    for one in reports:
        assert one["number"].replace("|", "\\|") in text, one["claim"]


# ---- the real files, where they are ------------------------------------------------------------------------


def test_the_real_files_are_those_of_the_papers_table(pytestconfig):
    import os

    folder = os.environ.get("DISCREET_DATA")
    if not folder:
        pytest.skip(
            "the public data files are not in the repository; DISCREET_DATA names a folder of them"
        )
    path = datasets.find(Path(folder), ("retail",))
    data = datasets.load("retail", path)
    assert (data.records, data.n, data.m, data.partial) == (908_576, 88_162, 16_470, "")
