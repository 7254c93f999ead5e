import sys
from pathlib import Path

import pytest
from hypothesis import settings

import discreet as d

sys.path.insert(0, str(Path(__file__).parent))
from postgres import database, postgres  # noqa: F401  # fixtures

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def toy():
    return d.Policy.from_levels(
        [
            ("serious", "ln(4)", ["HIV"]),
            ("common", "ln(6)", ["anemia", "headache", "stomachache", "toothache"]),
        ]
    )


def three_levels(eps=1.0, sizes=(5, 5, 90), **settings_):
    names = ("high", "middle", "low")
    budgets = (eps, round(1.2 * eps, 6), 2 * eps)
    rows = [
        (n, e, [f"{n}{i}" for i in range(k)]) for n, e, k in zip(names, budgets, sizes, strict=True)
    ]
    return d.Policy.from_levels(rows, **settings_)
